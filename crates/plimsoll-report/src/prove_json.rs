//! The JSON documents of comparisons (`plimsoll.prove/1`) and ladders (`plimsoll.ladder/1`), which
//! `docs/reference/json.md` describes.

use crate::document::to_json_value;
use crate::failure_kinds::{FailedAnswerFields, failed_answers};
use crate::json::{CommonDocumentFields, InterferenceFields, LoadSetupFields};
use crate::prove::{ProveContext, planned_duration_ns, prove_answer};
use crate::prove_profiles::ProveProfilesFields;
use crate::remedy::sentence_text;
use crate::run::load_text;
use plimsoll_analysis::finding::{LadderFinding, ProveFinding};
use plimsoll_analysis::profile_findings::BothSidesProfiles;
use plimsoll_analysis::prove::{
    ArmLoadFigures, ComparisonBlock, ComparisonEnd, ConfidenceInterval, Criterion, InterimEstimate, MeasureComparison,
    RouteComparison, RouteMeasure, Rung, SuccessRateComparison, VerdictReason, arm_name,
};
use plimsoll_analysis::{Assessment, FailedResponseGroup};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Returns the JSON name of a measure, which ends with the unit of the measure.
fn measure_json_key(measure: Criterion) -> &'static str {
    match measure {
        Criterion::Goodput => "goodput_rps",
        Criterion::P50 => "p50_ns",
        Criterion::P99 => "p99_ns",
        Criterion::Cpu => "cpu_ns_per_request",
    }
}

fn interval_ends(interval: Option<ConfidenceInterval>) -> Option<[f64; 2]> {
    interval.map(|interval| [interval.lower, interval.upper])
}

/// Returns a figure for a JSON document; `None` (written as null) if the figure is infinite.
fn finite_or_none(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

fn finite_interval_ends(interval: Option<ConfidenceInterval>) -> Option<[Option<f64>; 2]> {
    interval.map(|interval| [finite_or_none(interval.lower), finite_or_none(interval.upper)])
}

/// Returns the JSON name of the reason for a verdict that does not follow from the primary measure
/// alone.
fn verdict_reason_json_name(reason: &VerdictReason) -> &'static str {
    match reason {
        VerdictReason::MoreFailures => "fails_more",
        VerdictReason::PrimaryUnavailable(_) => "not_taken",
        VerdictReason::Contradicted(..) => "speaks_against",
        VerdictReason::NoValidMeasurement(_) => "ended",
    }
}

fn comparison_end_json_name(stopped_by: &ComparisonEnd) -> &'static str {
    match stopped_by {
        ComparisonEnd::Verdict => "verdict",
        ComparisonEnd::BlocksMaxReached => "blocks",
        ComparisonEnd::Budget => "budget",
        ComparisonEnd::TooFewValidBlocks => "void",
        ComparisonEnd::Aborted(_) => "broken",
    }
}

/// The figures of one load of a comparison. A quantile is null if the load had too few requests to
/// determine the quantile.
#[derive(Serialize)]
struct ReadingFields {
    goodput_rps: f64,
    p50_ns: Option<f64>,
    p99_ns: Option<f64>,
    cpu_ns_per_request: Option<f64>,
    requests: u64,
    success_rate: f64,
    client_wait_share: f64,
    disturbed: bool,
}

impl From<&ArmLoadFigures> for ReadingFields {
    fn from(reading: &ArmLoadFigures) -> ReadingFields {
        ReadingFields {
            goodput_rps: reading.goodput_rps(),
            p50_ns: reading.printable_value(Criterion::P50),
            p99_ns: reading.printable_value(Criterion::P99),
            cpu_ns_per_request: reading.printable_value(Criterion::Cpu),
            requests: reading.response_times.scheduled,
            success_rate: reading.success_rate(),
            client_wait_share: reading.client_wait_share,
            disturbed: reading.interference.is_disturbed,
        }
    }
}

/// Serialises a block: one round in which every arm (server) is measured once. The letter of an arm
/// is the JSON key of the arm's figures. For a void (discarded) block, the field `void` states the
/// reason.
struct BlockFields<'a>(&'a ComparisonBlock);

impl Serialize for BlockFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.arm_loads.len() + 1))?;
        for (arm, reading) in (0..).zip(&self.0.arm_loads) {
            map.serialize_entry(&arm_name(arm).to_ascii_lowercase(), &ReadingFields::from(reading))?;
        }
        map.serialize_entry("void", &self.0.void_reason().map(sentence_text))?;
        map.end()
    }
}

/// The fields with which the JSON documents of comparisons and of ladders both begin.
#[derive(Serialize)]
struct ComparisonFields<'a> {
    #[serde(flatten)]
    frame: CommonDocumentFields<'a>,
    #[serde(flatten)]
    others: InterferenceFields<'a>,
    warnings: &'a [String],
    failed_answers: Vec<FailedAnswerFields<'a>>,
    sides: &'a [String],
    elapsed_s: Option<f64>,
}

impl<'a> ComparisonFields<'a> {
    fn new(
        schema: &'static str,
        context: &ProveContext<'a>,
        warnings: &'a [String],
        kinds: &'a [FailedResponseGroup],
    ) -> ComparisonFields<'a> {
        let ProveContext { experiment, measured } = context;
        let made = LoadSetupFields::new(measured.plan, &experiment.environment.injectors);
        ComparisonFields {
            frame: CommonDocumentFields::new(schema, experiment, Some(made)),
            others: InterferenceFields::from(&measured.interference),
            warnings,
            failed_answers: failed_answers(kinds),
            sides: &measured.arms,
            elapsed_s: measured.elapsed_ns.map(|ns| ns as f64 / 1e9),
        }
    }
}

/// Returns the load of an arm (server) in words, and its duration in s.
fn load_text_and_duration(context: &ProveContext, arm: usize) -> (Option<String>, Option<f64>) {
    let plan = context.measured.arm_plans.get(arm);
    (plan.map(|plan| load_text(plan)), plan.map(|plan| planned_duration_ns(plan) as f64 / 1e9))
}

/// The document `plimsoll.prove/1` of a comparison of A and B.
#[derive(Serialize)]
struct ProveDocument<'a> {
    #[serde(flatten)]
    begin: ComparisonFields<'a>,
    load: Option<String>,
    load_s: Option<f64>,
    verdict: String,
    answer: String,
    reason: Option<&'static str>,
    measures: Vec<MeasureFields>,
    success: Option<SuccessFields>,
    routes: Vec<RouteComparisonFields<'a>>,
    margin: Option<f64>,
    fresh_starts: bool,
    spread: [Option<f64>; 2],
    blocks: usize,
    blocks_void: usize,
    blocks_more: Option<usize>,
    budget_enough_s: Option<f64>,
    stopped_by: &'static str,
    narrowing: Vec<InterimEstimateFields>,
    readings: Vec<BlockFields<'a>>,
    profiles: Option<ProveProfilesFields<'a>>,
}

#[derive(Serialize)]
struct MeasureFields {
    name: &'static str,
    primary: bool,
    a: Option<f64>,
    b: Option<f64>,
    ratio: Option<f64>,
    ci95: Option<[Option<f64>; 2]>,
    ci90: Option<[Option<f64>; 2]>,
    p: f64,
    margin: f64,
    at_most: Option<f64>,
    verdict: String,
}

impl MeasureFields {
    fn from_comparison<M: Copy>(one: &MeasureComparison<M>, name: fn(M) -> &'static str) -> MeasureFields {
        MeasureFields {
            name: name(one.measure),
            primary: one.is_primary,
            a: finite_or_none(one.side_values[0]),
            b: finite_or_none(one.side_values[1]),
            ratio: finite_or_none(one.ratio),
            ci95: finite_interval_ends(one.ratio_interval),
            ci90: finite_interval_ends(one.equivalence_interval),
            p: one.p,
            margin: one.margin,
            at_most: one.difference_max().and_then(finite_or_none),
            verdict: one.verdict.to_string(),
        }
    }
}

/// The comparison of one route (a kind of request) between A and B.
#[derive(Serialize)]
struct RouteComparisonFields<'a> {
    name: &'a str,
    requests: [u64; 2],
    success_rate: [f64; 2],
    blocks: usize,
    measures: Vec<MeasureFields>,
}

fn route_measure_json_key(measure: RouteMeasure) -> &'static str {
    match measure {
        RouteMeasure::Success => "success_rate",
        RouteMeasure::P50 => "p50_ns",
        RouteMeasure::P99 => "p99_ns",
    }
}

impl<'a> From<&'a RouteComparison> for RouteComparisonFields<'a> {
    fn from(route: &'a RouteComparison) -> RouteComparisonFields<'a> {
        RouteComparisonFields {
            name: &route.name,
            requests: route.requests,
            success_rate: route.success_rate,
            blocks: route.blocks,
            measures: route
                .measures
                .iter()
                .map(|one| MeasureFields::from_comparison(one, route_measure_json_key))
                .collect(),
        }
    }
}

/// The success rates of servers A and B. `ci95` is the 95 % interval of the ratio of B's success
/// rate to A's. `fallen` is true if requests to B succeed significantly less often than requests to
/// A.
#[derive(Serialize)]
struct SuccessFields {
    a: f64,
    b: f64,
    ci95: Option<[Option<f64>; 2]>,
    fallen: bool,
}

impl From<&SuccessRateComparison> for SuccessFields {
    fn from(success: &SuccessRateComparison) -> SuccessFields {
        let SuccessRateComparison { rates: [a, b], ratio_interval, is_b_worse, .. } = *success;
        SuccessFields { a, b, ci95: finite_interval_ends(ratio_interval), fallen: is_b_worse }
    }
}

#[derive(Serialize)]
struct InterimEstimateFields {
    blocks: usize,
    ratio: Option<f64>,
    ci95: Option<[Option<f64>; 2]>,
}

impl From<&InterimEstimate> for InterimEstimateFields {
    fn from(point: &InterimEstimate) -> InterimEstimateFields {
        let InterimEstimate { blocks, ratio, ratio_interval } = *point;
        InterimEstimateFields { blocks, ratio: finite_or_none(ratio), ci95: finite_interval_ends(ratio_interval) }
    }
}

/// Renders the JSON document of a comparison of two servers: `plimsoll.prove/1`.
pub(crate) fn proof_document(
    context: &ProveContext,
    finding: &ProveFinding,
    warnings: &[String],
    profiles: Option<&Assessment<BothSidesProfiles>>,
) -> Value {
    let proof = &finding.comparison;
    let (load, load_s) = load_text_and_duration(context, 0);
    let kinds = FailedResponseGroup::failures_of_trials(context.experiment.trials.iter());
    to_json_value(&ProveDocument {
        begin: ComparisonFields::new("plimsoll.prove/1", context, warnings, &kinds),
        load,
        load_s,
        verdict: proof.verdict.to_string(),
        answer: prove_answer(proof),
        reason: proof.reason.as_ref().map(verdict_reason_json_name),
        measures: proof.measures.iter().map(|one| MeasureFields::from_comparison(one, measure_json_key)).collect(),
        routes: proof.routes.iter().map(RouteComparisonFields::from).collect(),
        success: proof.success.as_ref().map(SuccessFields::from),
        margin: proof.measures.first().map(|one| one.margin),
        fresh_starts: proof.restarts_builds,
        spread: proof.relative_deviations,
        blocks: proof.blocks,
        blocks_void: proof.blocks_void,
        blocks_more: proof.further_blocks,
        budget_enough_s: proof.sufficient_budget_ns.map(|ns| ns as f64 / 1e9),
        stopped_by: comparison_end_json_name(&proof.stopped_by),
        narrowing: finding.interim_estimates.iter().map(InterimEstimateFields::from).collect(),
        readings: finding.blocks.blocks.iter().map(BlockFields).collect(),
        profiles: profiles.map(ProveProfilesFields::new),
    })
}

/// The document `plimsoll.ladder/1` of a ladder, which measures several servers (rungs) in turn.
#[derive(Serialize)]
struct LadderDocument<'a> {
    #[serde(flatten)]
    begin: ComparisonFields<'a>,
    rungs: Vec<RungFields<'a>>,
    blocks: usize,
    blocks_void: usize,
    readings: Vec<BlockFields<'a>>,
    profiles: Option<ProveProfilesFields<'a>>,
}

#[derive(Serialize)]
struct RungFields<'a> {
    url: &'a str,
    load: Option<String>,
    load_s: Option<f64>,
    goodput_rps: f64,
    share: Option<f64>,
    share_ci95: Option<[f64; 2]>,
    cost_us: Option<f64>,
    cost_us_ci95: Option<[f64; 2]>,
}

fn rung_fields<'a>(context: &ProveContext, at: usize, rung: &Rung, url: &'a String) -> RungFields<'a> {
    let (load, load_s) = load_text_and_duration(context, at);
    RungFields {
        url,
        load,
        load_s,
        goodput_rps: rung.goodput_rps,
        share: rung.goodput_ratio,
        share_ci95: interval_ends(rung.goodput_ratio_interval),
        cost_us: rung.cost_us,
        cost_us_ci95: interval_ends(rung.cost_us_interval),
    }
}

/// Renders the JSON document of a ladder, which measures several servers (rungs) in turn:
/// `plimsoll.ladder/1`.
pub(crate) fn ladder_document(
    context: &ProveContext,
    finding: &LadderFinding,
    warnings: &[String],
    profiles: Option<&Assessment<BothSidesProfiles>>,
) -> Value {
    let ladder = &finding.ladder;
    let rung = |((at, rung), url)| rung_fields(context, at, rung, url);
    let rungs = ladder.rungs.iter().enumerate().zip(&finding.blocks.arms).map(rung).collect();
    let kinds = FailedResponseGroup::failures_of_trials(context.experiment.trials.iter());
    to_json_value(&LadderDocument {
        begin: ComparisonFields::new("plimsoll.ladder/1", context, warnings, &kinds),
        rungs,
        blocks: ladder.blocks,
        blocks_void: ladder.blocks_void,
        readings: finding.blocks.blocks.iter().map(BlockFields).collect(),
        profiles: profiles.map(ProveProfilesFields::new),
    })
}
