//! How the result of a comparison looks.

use crate::block::{Report, Tone};
use crate::format::{duration, rate};
use crate::run::load_text;
use plimsoll_analysis::prove::{
    Block, Compared, Interval, Ladder, Measure, Progress, Proof, StoppedBy, Verdict, arm_name,
};
use plimsoll_model::{Experiment, LoadShape, Plan};

/// What stands around the figures of a comparison.
#[derive(Debug, Clone)]
pub struct ProveContext<'a> {
    /// The recording.
    pub experiment: &'a Experiment,
    /// The plan that all loads share but for their target and load.
    pub plan: &'a Plan,
    /// The sides in words: URLs or commands.
    pub sides: &'a [String],
    /// The load of each side in the blocks, if it came to any: the same of sides that are compared.
    pub loads: Vec<&'a LoadShape>,
    /// Length of each load.
    pub load_ns: u64,
    /// Warnings from before the first load.
    pub warnings: &'a [String],
}

/// A ratio as a change: `-4.8 %`.
fn change(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

/// An interval of ratios as changes: `-6.1 to -3.4 %`.
fn changes(interval: Option<Interval>) -> String {
    match interval {
        Some(Interval { lower, upper }) => format!("{:+.1} to {:+.1} %", (lower - 1.0) * 100.0, (upper - 1.0) * 100.0),
        None => "too few blocks".into(),
    }
}

/// A share as a percentage with one digit.
fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn p_text(p: f64) -> String {
    if p < 0.001 { "<0.001".into() } else { format!("{p:.3}") }
}

/// The name of a measure for people.
pub fn measure_text(measure: Measure) -> &'static str {
    match measure {
        Measure::Goodput => "goodput",
        Measure::P50 => "p50",
        Measure::P99 => "p99",
        Measure::Cpu => "CPU time a request",
    }
}

/// A figure with its unit.
pub(crate) fn value_text(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Goodput => format!("{}/s", rate(value)),
        Measure::P50 | Measure::P99 | Measure::Cpu => duration(value),
    }
}

/// One line of progress.
pub fn prove_line(elapsed_ns: u64, measure: Measure, standing: &Progress) -> String {
    format!(
        "{:>6.1} s  block {:<3}  {} of B against A: {}  ({}; margin {})",
        elapsed_ns as f64 / 1e9,
        standing.blocks,
        measure_text(measure),
        change(standing.ratio),
        changes(standing.ratio_interval),
        percent(standing.margin),
    )
}

/// The answer in one sentence.
pub fn prove_answer(proof: &Proof) -> String {
    let Some(primary) = proof.measures.first() else { return "inconclusive: nothing was compared".into() };
    let Compared { measure, ratio, ratio_interval, margin, .. } = primary;
    let what = measure_text(*measure);
    let seen = format!("{what} {} ({})", change(*ratio), changes(*ratio_interval));
    let margin = percent(*margin);
    match (proof.verdict, proof.blocks_more) {
        (Verdict::Better, _) => format!("B is better than A: {seen}, beyond the margin of {margin}"),
        (Verdict::Worse, _) => format!("B is worse than A: {seen}, beyond the margin of {margin}"),
        (Verdict::Same, _) => format!("B is the same as A: {seen}, inside the margin of {margin}"),
        (Verdict::Small, _) => format!("B differs from A, but by little: {seen}; the margin is {margin}"),
        (Verdict::Inconclusive, Some(more)) => {
            format!("inconclusive: {seen}; about {more} more blocks would tell (--budget, --blocks)")
        }
        (Verdict::Inconclusive, None) => format!("inconclusive: {seen}"),
    }
}

/// Why a comparison ended, in words.
fn stopped_text(stopped_by: &StoppedBy) -> &str {
    match stopped_by {
        StoppedBy::Verdict => "ended because the verdict was certain",
        StoppedBy::Blocks => "all blocks asked for",
        StoppedBy::Budget => "the budget was used up",
        StoppedBy::Generator => "ended because the generator was the limit",
        StoppedBy::Broken(_) => "broken off",
    }
}

fn elapsed_text(experiment: &Experiment) -> String {
    match experiment.elapsed_ns {
        Some(ns) => format!(" in {}", duration(ns as f64)),
        None => String::new(),
    }
}

pub(crate) fn load_line(context: &ProveContext) -> String {
    match loads_text(context) {
        Some(loads) => format!("{loads}, {} on each side of a block", duration(context.load_ns as f64)),
        None => "none".into(),
    }
}

/// The loads of the sides in words: one if they have the same; `None` if there were none.
pub(crate) fn loads_text(context: &ProveContext) -> Option<String> {
    let first = context.loads.first()?;
    if context.loads.iter().all(|load| load == first) {
        return Some(load_text(first));
    }
    let each = context.loads.iter().enumerate();
    let each: Vec<String> = each.map(|(arm, load)| format!("{} {}", arm_name(arm as u8), load_text(load))).collect();
    Some(each.join(", "))
}

/// The sides by name.
fn sides<'a>(context: &'a ProveContext) -> impl Iterator<Item = (String, String)> + 'a {
    context.sides.iter().enumerate().map(|(at, side)| (arm_name(at as u8).to_string(), side.clone()))
}

/// The report of a comparison.
pub fn prove_report(context: &ProveContext, proof: &Proof) -> Report {
    let mut report = Report::default();
    for warning in context.warnings.iter().chain(&proof.warnings) {
        report.text(Tone::Warning, warning.clone());
    }
    report.text(Tone::Answer, prove_answer(proof));
    let sides: Vec<(String, String)> = sides(context).collect();
    let mut facts: Vec<(&str, String)> = sides.iter().map(|(name, side)| (name.as_str(), side.clone())).collect();
    facts.push((
        "blocks",
        format!(
            "{} that count, {} void{}; {} (seed {})",
            proof.blocks,
            proof.blocks_void,
            elapsed_text(context.experiment),
            stopped_text(&proof.stopped_by),
            context.plan.seed
        ),
    ));
    facts.push(("load", load_line(context)));
    let control = match proof.control.half_width {
        Some(half_width) => format!(
            "two measurements of the same build differ by +-{}{} (p {})",
            percent(half_width),
            if proof.control.rejected { ": more than by chance" } else { ", by chance" },
            p_text(proof.control.p)
        ),
        None => "too few blocks".into(),
    };
    facts.push(("A/A control", control));
    report.facts(facts);
    let rows = proof.measures.iter().map(|one| {
        vec![
            format!("{}{}", measure_text(one.measure), if one.primary { " (decides)" } else { "" }),
            value_text(one.measure, one.medians[0]),
            value_text(one.measure, one.medians[1]),
            change(one.ratio),
            changes(one.ratio_interval),
            p_text(one.p),
            one.verdict.to_string(),
        ]
    });
    report.table(&["measure", "A", "B", "B against A", "95 % interval", "p", "verdict"], rows.collect());
    report
}

/// What every block said of the primary measure, as a table.
pub(crate) fn block_rows(proof: &Proof, blocks: &[Block]) -> ([&'static str; 4], Vec<Vec<String>>) {
    let headings = ["block", "A", "B", "B against A"];
    let Some(measure) = proof.measures.first().map(|primary| primary.measure) else { return (headings, Vec::new()) };
    let row = |(number, block): (usize, &Block)| {
        let values: Vec<Option<f64>> = block.readings.iter().map(|reading| reading.value(measure)).collect();
        let told = |value: &Option<f64>| value.map_or_else(|| "-".to_owned(), |value| value_text(measure, value));
        let against = match (block.void(), values.as_slice()) {
            (Some(reason), _) => format!("void: {reason}"),
            (None, [Some(a), Some(b)]) => change(b / a),
            _ => "-".into(),
        };
        let mut row = vec![(number + 1).to_string()];
        row.extend(values.iter().map(told));
        row.push(against);
        row
    };
    (headings, blocks.iter().enumerate().map(row).collect())
}

/// The report of a ladder.
pub fn ladder_report(context: &ProveContext, ladder: &Ladder) -> Report {
    let mut report = Report::default();
    for warning in context.warnings.iter().chain(&ladder.warnings) {
        report.text(Tone::Warning, warning.clone());
    }
    let first = ladder.rungs.first().map_or(0.0, |rung| rung.goodput_rps);
    let last = ladder.rungs.last().map_or(0.0, |rung| rung.goodput_rps);
    let whole = if first > 0.0 { percent(last / first) } else { "nothing".into() };
    report.text(
        Tone::Answer,
        format!("{} requests/s on the first rung, {} on the last: {whole} are left", rate(first), rate(last)),
    );
    report.facts(vec![
        (
            "blocks",
            format!(
                "{} that count, {} void{} (seed {})",
                ladder.blocks,
                ladder.blocks_void,
                elapsed_text(context.experiment),
                context.plan.seed
            ),
        ),
        ("load", load_line(context)),
    ]);
    let mut rows = Vec::new();
    for ((name, side), rung) in sides(context).zip(&ladder.rungs) {
        let interval = |interval: Option<Interval>, text: &dyn Fn(Interval) -> String| match (rung.share, interval) {
            (None, _) => String::new(),
            (Some(_), Some(interval)) => text(interval),
            (Some(_), None) => "too few blocks".into(),
        };
        rows.push(vec![
            name,
            format!("{}/s", rate(rung.goodput_rps)),
            rung.share.map(percent).unwrap_or_default(),
            interval(rung.share_interval, &|i| format!("{:.1} to {:.1} %", i.lower * 100.0, i.upper * 100.0)),
            rung.cost_us.map(|us| format!("{us:+.1} us")).unwrap_or_default(),
            interval(rung.cost_us_interval, &|i| format!("{:+.1} to {:+.1} us", i.lower, i.upper)),
            side,
        ]);
    }
    report.table(&["rung", "goodput", "of the one before", "95 %", "cost a request", "95 %", "target"], rows);
    report
}
