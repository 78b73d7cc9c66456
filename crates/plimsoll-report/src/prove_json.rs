//! The documents of comparisons: `plimsoll.prove/1` and `plimsoll.ladder/1`, as `docs/json.md` describes them.

use crate::document::value;
use crate::failed::{FailedAnswerFields, failed_answers};
use crate::json::{FrameFields, MadeFields, OthersFields};
use crate::prove::{ProveContext, length_ns};
use crate::prove_profiles::{ProveProfiles, ProveProfilesFields};
use crate::remedy::spelled;
use crate::run::load_text;
use plimsoll_analysis::finding::{LadderFinding, ProveFinding};
use plimsoll_analysis::prove::{
    Block, Compared, ComparisonEnd, ConfidenceInterval, Criterion, Reading, RouteCompared, RouteMeasure, Rung,
    Standing, arm_name,
};
use plimsoll_analysis::{Doubted, FailedKind};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The name of a measure, with its unit.
fn measure_name(measure: Criterion) -> &'static str {
    match measure {
        Criterion::Goodput => "goodput_rps",
        Criterion::P50 => "p50_ns",
        Criterion::P99 => "p99_ns",
        Criterion::Cpu => "cpu_ns_per_request",
    }
}

fn ends(interval: Option<ConfidenceInterval>) -> Option<[f64; 2]> {
    interval.map(|interval| [interval.lower, interval.upper])
}

fn stopped_name(stopped_by: &ComparisonEnd) -> &'static str {
    match stopped_by {
        ComparisonEnd::Verdict => "verdict",
        ComparisonEnd::Blocks => "blocks",
        ComparisonEnd::Budget => "budget",
        ComparisonEnd::Void => "void",
        ComparisonEnd::Broken(_) => "broken",
    }
}

/// What one load said.
#[derive(Serialize)]
struct ReadingFields {
    goodput_rps: f64,
    p50_ns: f64,
    p99_ns: f64,
    cpu_ns_per_request: Option<f64>,
    success_rate: f64,
}

impl From<&Reading> for ReadingFields {
    fn from(reading: &Reading) -> ReadingFields {
        ReadingFields {
            goodput_rps: reading.goodput_rps,
            p50_ns: reading.p50_ns,
            p99_ns: reading.p99_ns,
            cpu_ns_per_request: reading.cpu_ns_per_request,
            success_rate: reading.success_rate,
        }
    }
}

/// A block: its loads by the letter of their arm, and why it does not count.
struct BlockFields<'a>(&'a Block);

impl Serialize for BlockFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.readings.len() + 1))?;
        for (arm, reading) in (0..).zip(&self.0.readings) {
            map.serialize_entry(&arm_name(arm).to_ascii_lowercase(), &ReadingFields::from(reading))?;
        }
        map.serialize_entry("void", &self.0.void().map(spelled))?;
        map.end()
    }
}

/// What every document of a comparison begins with.
#[derive(Serialize)]
struct ComparisonFields<'a> {
    #[serde(flatten)]
    frame: FrameFields<'a>,
    #[serde(flatten)]
    others: OthersFields<'a>,
    warnings: &'a [String],
    failed_answers: Vec<FailedAnswerFields<'a>>,
    sides: &'a [String],
    elapsed_s: Option<f64>,
}

impl<'a> ComparisonFields<'a> {
    fn of(
        schema: &'static str,
        context: &ProveContext<'a>,
        warnings: &'a [String],
        kinds: &'a [FailedKind],
    ) -> ComparisonFields<'a> {
        let ProveContext { experiment, measured } = context;
        let made = MadeFields::of(measured.plan, &experiment.environment.injectors);
        ComparisonFields {
            frame: FrameFields::of(schema, experiment, Some(made)),
            others: OthersFields::from(&measured.others),
            warnings,
            failed_answers: failed_answers(kinds),
            sides: &measured.arms,
            elapsed_s: measured.elapsed_ns.map(|ns| ns as f64 / 1e9),
        }
    }
}

/// The load of an arm in words, and its length.
fn load(context: &ProveContext, arm: usize) -> (Option<String>, Option<f64>) {
    let plan = context.measured.loads.get(arm);
    (plan.map(|plan| load_text(plan)), plan.map(|plan| length_ns(plan) as f64 / 1e9))
}

/// `plimsoll.prove/1`.
#[derive(Serialize)]
struct ProveDocument<'a> {
    #[serde(flatten)]
    begin: ComparisonFields<'a>,
    load: Option<String>,
    load_s: Option<f64>,
    verdict: String,
    measures: Vec<MeasureFields>,
    routes: Vec<ComparedRouteFields<'a>>,
    margin: Option<f64>,
    margin_asked: Option<f64>,
    aa: ControlFields,
    blocks: usize,
    blocks_void: usize,
    blocks_more: Option<usize>,
    budget_enough_s: Option<f64>,
    stopped_by: &'static str,
    narrowing: Vec<StandingFields>,
    readings: Vec<BlockFields<'a>>,
    profiles: Option<ProveProfilesFields<'a>>,
}

#[derive(Serialize)]
struct MeasureFields {
    name: &'static str,
    primary: bool,
    a: f64,
    b: f64,
    ratio: f64,
    ci95: Option<[f64; 2]>,
    ci90: Option<[f64; 2]>,
    p: f64,
    margin: f64,
    at_most: Option<f64>,
    verdict: String,
}

impl MeasureFields {
    fn of<M: Copy>(one: &Compared<M>, name: fn(M) -> &'static str) -> MeasureFields {
        MeasureFields {
            name: name(one.measure),
            primary: one.primary,
            a: one.levels[0],
            b: one.levels[1],
            ratio: one.ratio,
            ci95: ends(one.ratio_interval),
            ci90: ends(one.equivalence_interval),
            p: one.p,
            margin: one.margin,
            at_most: one.at_most(),
            verdict: one.verdict.to_string(),
        }
    }
}

/// One of several routes, B against A.
#[derive(Serialize)]
struct ComparedRouteFields<'a> {
    name: &'a str,
    requests: [u64; 2],
    success_rate: [f64; 2],
    blocks: usize,
    measures: Vec<MeasureFields>,
}

fn route_measure_name(measure: RouteMeasure) -> &'static str {
    match measure {
        RouteMeasure::Success => "success_rate",
        RouteMeasure::P50 => "p50_ns",
        RouteMeasure::P99 => "p99_ns",
    }
}

impl<'a> From<&'a RouteCompared> for ComparedRouteFields<'a> {
    fn from(route: &'a RouteCompared) -> ComparedRouteFields<'a> {
        ComparedRouteFields {
            name: &route.name,
            requests: route.requests,
            success_rate: route.success_rate,
            blocks: route.blocks,
            measures: route.measures.iter().map(|one| MeasureFields::of(one, route_measure_name)).collect(),
        }
    }
}

#[derive(Serialize)]
struct ControlFields {
    rejected: bool,
    half_width: Option<f64>,
    p: f64,
}

#[derive(Serialize)]
struct StandingFields {
    blocks: usize,
    ratio: f64,
    ci95: Option<[f64; 2]>,
    margin: f64,
}

impl From<&Standing> for StandingFields {
    fn from(point: &Standing) -> StandingFields {
        let Standing { blocks, ratio, ratio_interval, margin } = *point;
        StandingFields { blocks, ratio, ci95: ends(ratio_interval), margin }
    }
}

/// The document of a comparison: `plimsoll.prove/1`.
pub(crate) fn proof(
    context: &ProveContext,
    found: &ProveFinding,
    warnings: &[String],
    profiles: Option<&Doubted<ProveProfiles>>,
) -> Value {
    let proof = &found.proof;
    let (load, load_s) = load(context, 0);
    let control = &proof.control;
    let kinds = FailedKind::of_trials(context.experiment.trials.iter());
    value(&ProveDocument {
        begin: ComparisonFields::of("plimsoll.prove/1", context, warnings, &kinds),
        load,
        load_s,
        verdict: proof.verdict.to_string(),
        measures: proof.measures.iter().map(|one| MeasureFields::of(one, measure_name)).collect(),
        routes: proof.routes.iter().map(ComparedRouteFields::from).collect(),
        margin: proof.measures.first().map(|primary| primary.margin),
        margin_asked: proof.measures.first().map(|primary| primary.margin_asked),
        aa: ControlFields { rejected: control.rejected, half_width: control.half_width, p: control.p },
        blocks: proof.blocks,
        blocks_void: proof.blocks_void,
        blocks_more: proof.blocks_more,
        budget_enough_s: proof.budget_enough_ns.map(|ns| ns as f64 / 1e9),
        stopped_by: stopped_name(&proof.stopped_by),
        narrowing: found.narrowing.iter().map(StandingFields::from).collect(),
        readings: found.measured.blocks.iter().map(BlockFields).collect(),
        profiles: profiles.map(ProveProfilesFields::of),
    })
}

/// `plimsoll.ladder/1`.
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
    let (load, load_s) = load(context, at);
    RungFields {
        url,
        load,
        load_s,
        goodput_rps: rung.goodput_rps,
        share: rung.share,
        share_ci95: ends(rung.share_interval),
        cost_us: rung.cost_us,
        cost_us_ci95: ends(rung.cost_us_interval),
    }
}

/// The document of a ladder: `plimsoll.ladder/1`.
pub(crate) fn ladder(
    context: &ProveContext,
    found: &LadderFinding,
    warnings: &[String],
    profiles: Option<&Doubted<ProveProfiles>>,
) -> Value {
    let ladder = &found.ladder;
    let rung = |((at, rung), url)| rung_fields(context, at, rung, url);
    let rungs = ladder.rungs.iter().enumerate().zip(&found.measured.arms).map(rung).collect();
    let kinds = FailedKind::of_trials(context.experiment.trials.iter());
    value(&LadderDocument {
        begin: ComparisonFields::of("plimsoll.ladder/1", context, warnings, &kinds),
        rungs,
        blocks: ladder.blocks,
        blocks_void: ladder.blocks_void,
        readings: found.measured.blocks.iter().map(BlockFields).collect(),
        profiles: profiles.map(ProveProfilesFields::of),
    })
}
