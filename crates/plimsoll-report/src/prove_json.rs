//! The documents of comparisons: `plimsoll.prove/1` and `plimsoll.ladder/1`, as `docs/json.md` describes them.

use crate::failed;
use crate::json::{self, Made, frame};
use crate::prove::{ProveContext, length_ns};
use crate::prove_profiles::{self, ProveProfiles};
use crate::run::load_text;
use plimsoll_analysis::FailedKind;
use plimsoll_analysis::finding::{LadderFinding, MeasuredBlocks, ProveFinding};
use plimsoll_analysis::prove::{
    Block, Compared, ComparisonEnd, ConfidenceInterval, Criterion, Reading, Standing, arm_name,
};
use serde_json::{Map, Value, json};

/// The name of a measure, with its unit.
fn measure_name(measure: Criterion) -> &'static str {
    match measure {
        Criterion::Goodput => "goodput_rps",
        Criterion::P50 => "p50_ns",
        Criterion::P99 => "p99_ns",
        Criterion::Cpu => "cpu_ns_per_request",
    }
}

fn ends(interval: Option<ConfidenceInterval>) -> Value {
    interval.map_or(Value::Null, |interval| json!([interval.lower, interval.upper]))
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

fn reading(reading: &Reading) -> Value {
    json!({
        "goodput_rps": reading.goodput_rps,
        "p50_ns": reading.p50_ns,
        "p99_ns": reading.p99_ns,
        "cpu_ns_per_request": reading.cpu_ns_per_request,
        "success_rate": reading.success_rate,
    })
}

fn readings(blocks: &[Block]) -> Value {
    let block = |block: &Block| {
        let sides = block.readings.iter().enumerate();
        let mut map: Map<String, Value> =
            sides.map(|(at, one)| (arm_name(at as u8).to_ascii_lowercase().to_string(), reading(one))).collect();
        map.insert("void".into(), block.void().map_or(Value::Null, Into::into));
        Value::Object(map)
    };
    blocks.iter().map(block).collect()
}

/// What every document of a comparison begins with.
fn begin(schema: &str, context: &ProveContext, warnings: &[&str]) -> Map<String, Value> {
    let ProveContext { experiment, measured } = context;
    let made = Made { plan: measured.plan, injectors: &experiment.environment.injectors };
    let mut map = frame(schema, experiment, Some(made));
    json::others(&mut map, &measured.others);
    map.insert("warnings".into(), warnings.into());
    let kinds = FailedKind::of_trials(context.experiment.trials.iter());
    map.insert("failed_answers".into(), failed::list(&kinds));
    map.insert("sides".into(), measured.arms.clone().into());
    map.insert("elapsed_s".into(), measured.elapsed_ns.map(|ns| ns as f64 / 1e9).into());
    map
}

/// The load of a side in words, and its length.
fn load(context: &ProveContext, side: usize) -> (Option<String>, Option<f64>) {
    let plan = context.measured.loads.get(side);
    (plan.map(|plan| load_text(&plan.load.shape)), plan.map(|plan| length_ns(plan) as f64 / 1e9))
}

/// The document of a comparison: `plimsoll.prove/1`.
pub(crate) fn proof(
    context: &ProveContext,
    found: &ProveFinding,
    warnings: &[&str],
    profiles: Option<&ProveProfiles>,
) -> Value {
    let ProveFinding { measured: MeasuredBlocks { blocks, .. }, proof, narrowing } = found;
    let compared = |one: &Compared| {
        json!({
            "name": measure_name(one.measure),
            "primary": one.primary,
            "a": one.levels[0],
            "b": one.levels[1],
            "ratio": one.ratio,
            "ci95": ends(one.ratio_interval),
            "ci90": ends(one.equivalence_interval),
            "p": one.p,
            "margin": one.margin,
            "at_most": one.at_most(),
            "verdict": one.verdict.to_string(),
        })
    };
    let point = |point: &Standing| {
        json!({
            "blocks": point.blocks,
            "ratio": point.ratio,
            "ci95": ends(point.ratio_interval),
            "margin": point.margin,
        })
    };
    let mut map = begin("plimsoll.prove/1", context, warnings);
    let (load, load_s) = load(context, 0);
    map.insert("load".into(), load.into());
    map.insert("load_s".into(), load_s.into());
    map.insert("verdict".into(), proof.verdict.to_string().into());
    map.insert("measures".into(), proof.measures.iter().map(compared).collect());
    map.insert("margin".into(), proof.measures.first().map(|primary| primary.margin).into());
    map.insert("margin_asked".into(), proof.measures.first().map(|primary| primary.margin_asked).into());
    map.insert(
        "aa".into(),
        json!({
            "rejected": proof.control.rejected,
            "half_width": proof.control.half_width,
            "p": proof.control.p,
        }),
    );
    map.insert("blocks".into(), proof.blocks.into());
    map.insert("blocks_void".into(), proof.blocks_void.into());
    map.insert("blocks_more".into(), proof.blocks_more.into());
    map.insert("budget_enough_s".into(), proof.budget_enough_ns.map(|ns| ns as f64 / 1e9).into());
    map.insert("stopped_by".into(), stopped_name(&proof.stopped_by).into());
    map.insert("narrowing".into(), narrowing.iter().map(point).collect());
    map.insert("readings".into(), readings(blocks));
    map.insert("profiles".into(), profiles.map(prove_profiles::document).into());
    Value::Object(map)
}

/// The document of a ladder: `plimsoll.ladder/1`.
pub(crate) fn ladder(
    context: &ProveContext,
    found: &LadderFinding,
    warnings: &[&str],
    profiles: Option<&ProveProfiles>,
) -> Value {
    let LadderFinding { measured: MeasuredBlocks { blocks, .. }, ladder } = found;
    let rungs: Vec<Value> = ladder
        .rungs
        .iter()
        .zip(&context.measured.arms)
        .enumerate()
        .map(|(at, (rung, side))| {
            let (load, load_s) = load(context, at);
            json!({
                "url": side,
                "load": load,
                "load_s": load_s,
                "goodput_rps": rung.goodput_rps,
                "share": rung.share,
                "share_ci95": ends(rung.share_interval),
                "cost_us": rung.cost_us,
                "cost_us_ci95": ends(rung.cost_us_interval),
            })
        })
        .collect();
    let mut map = begin("plimsoll.ladder/1", context, warnings);
    map.insert("rungs".into(), rungs.into());
    map.insert("blocks".into(), ladder.blocks.into());
    map.insert("blocks_void".into(), ladder.blocks_void.into());
    map.insert("readings".into(), readings(blocks));
    map.insert("profiles".into(), profiles.map(prove_profiles::document).into());
    Value::Object(map)
}
