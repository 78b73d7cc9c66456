//! The first screens of a comparison (two servers, A and B) and of a ladder (several servers). A
//! screen has the verdict, the effect with its interval, and what the effect means in practice.
//!
//! Not here: the sentence of the verdict, and the full tables (`prove`).

use super::Screen;
use crate::format::{duration, rate};
use crate::prove::{
    P_VALUE_COLUMN, ProveContext, compared_load, comparison_end_text, ladder_answer, ladder_table, measure_rows,
    measure_text, measure_value_text, prove_answer_without_scope,
};
use crate::run::load_text;
use plimsoll_analysis::FailedResponseGroup;
use plimsoll_analysis::prove::{ComparisonResult, Ladder, MeasureComparison, ProveVerdict, RouteComparison, arm_name};
use plimsoll_model::shell;
use plimsoll_model::{Criterion, ExperimentSpec, LoadShape};

/// The maximum number of servers in the sentence that compares how many servers A and B need.
const SERVERS_MAX: u32 = 5;
/// The maximum number of rungs (servers of a ladder) on a screen. `ROUTES_MAX` limits the routes of
/// a comparison.
const RUNGS_MAX: usize = 8;
const ROUTES_MAX: usize = 3;

/// Returns two numbers of servers that handle the same load: first of the costlier build, then of
/// the cheaper build. Of all pairs up to `SERVERS_MAX` servers, the function returns the pair with
/// the largest relative saving. `cost_ratio` is the CPU cost of a request on the cheaper build
/// divided by the cost on the costlier build. Returns `None` if the cheaper build never needs fewer
/// servers than the costlier build.
fn smallest_server_counts(cost_ratio: f64) -> Option<(u32, u32)> {
    let b_for = |a: u32| (f64::from(a) * cost_ratio - 1e-9).ceil() as u32;
    let better = (2..=SERVERS_MAX).map(|a| (a, b_for(a))).filter(|(a, b)| b < a);
    better.min_by(|x, y| (f64::from(x.1) / f64::from(x.0)).total_cmp(&(f64::from(y.1) / f64::from(y.0))))
}

fn is_different<M>(one: &MeasureComparison<M>) -> bool {
    matches!(one.verdict, ProveVerdict::Better | ProveVerdict::Worse)
}

/// Formats a change of CPU time per request as numbers of servers with equal capacity. An example
/// is 3 servers of B for 4 servers of A. The numbers are computed from the end of the confidence
/// interval that is closer to no change. Returns `None` if the comparison does not prove a change
/// of CPU time.
fn cpu_change_as_server_counts(cpu: &MeasureComparison) -> Option<String> {
    let interval = cpu.ratio_interval.filter(|_| is_different(cpu))?;
    let (costlier, cheaper, ratio) = match cpu.verdict {
        ProveVerdict::Better => ("A", "B", interval.upper),
        _ => ("B", "A", 1.0 / interval.lower),
    };
    let (many, fewer) = smallest_server_counts(ratio)?;
    let servers = if fewer == 1 { "server" } else { "servers" };
    Some(format!("if CPU is the limit, {fewer} {servers} of {cheaper} can carry the load of {many} of {costlier}"))
}

/// Formats what the result of a comparison means in practice. The text claims nothing beyond the
/// measured figures.
fn practical_meaning(context: &ProveContext, proof: &ComparisonResult) -> Option<String> {
    let primary = proof.measures.first().filter(|one| one.is_primary)?;
    let [level_a, level_b] = primary.side_values.map(|level| measure_value_text(primary.measure, level));
    let load = match context.measured.arm_plans.as_slice() {
        [first, ..] => match &first.load.shape {
            LoadShape::Closed { .. } => format!("with {}", load_text(first)),
            LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. } => format!("at {}", load_text(first)),
        },
        [] => "under this load".to_owned(),
    };
    let says = match primary.measure {
        Criterion::Goodput => {
            let counted = context.measured.plan.traffic.arrivals_word();
            let [a, b] = primary.side_values.map(rate);
            format!("{load}, B completes {b} {counted}/s and A {a} {counted}/s")
        }
        Criterion::P50 => format!("{load}, B sends half of its responses within {level_b}, and A within {level_a}"),
        Criterion::P99 => format!("{load}, B sends 99 % of its responses within {level_b}, and A within {level_a}"),
        Criterion::Cpu => format!("{load}, a request takes {level_b} of CPU time on B and {level_a} on A"),
    };
    // The number of servers is stated only if CPU time has the same verdict as the primary measure.
    // If the verdicts differ, B may do work in processes whose CPU time is not counted.
    let cpu = proof.measures.iter().find(|one| one.measure == Criterion::Cpu && one.verdict == primary.verdict);
    let cpu = cpu.and_then(cpu_change_as_server_counts);
    Some(std::iter::once(says).chain(cpu).collect::<Vec<_>>().join("; "))
}

/// Formats one sentence that names the routes (kinds of requests) that became worse or better.
fn routes_text(routes: &[RouteComparison]) -> String {
    let names = |verdict: ProveVerdict| {
        let is_so = |route: &&RouteComparison| route.measures.iter().any(|one| one.verdict == verdict);
        let names: Vec<&str> = routes.iter().filter(is_so).map(|route| route.name.as_str()).collect();
        let more = names.len().saturating_sub(ROUTES_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let shown = names.iter().take(ROUTES_MAX).copied().collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| format!("{verdict}: {shown}{more}"))
    };
    let told: Vec<String> = [ProveVerdict::Worse, ProveVerdict::Better].into_iter().filter_map(names).collect();
    let told = if told.is_empty() {
        "no kind of request is better or worse on B than on A".to_owned()
    } else {
        told.join("; ")
    };
    format!("{told}; {} requests: --verbose", routes.len())
}

fn add_side_facts(screen: &mut Screen<'_>, context: &ProveContext) {
    const SIDE_NAMES: [&str; RUNGS_MAX] = ["A", "B", "C", "D", "E", "F", "G", "H"];
    for (name, side) in SIDE_NAMES.into_iter().zip(&context.measured.arms) {
        screen.add_fact(2, name, side.clone());
    }
}

fn elapsed_text(context: &ProveContext) -> String {
    context.measured.elapsed_ns.map_or_else(String::new, |ns| format!(" in {}", duration(ns as f64)))
}

/// Renders the first screen of a comparison of two servers, A and B.
pub(crate) fn prove_screen(context: &ProveContext, proof: &ComparisonResult) -> Screen<'static> {
    let mut screen = Screen::new(prove_answer_without_scope(proof));
    add_side_facts(&mut screen, context);
    if let Some(text) = practical_meaning(context, proof) {
        screen.add_fact(0, "meaning", text);
    }
    if !proof.restarts_builds {
        screen.add_fact(
            1,
            "scope",
            "the result is about these two running processes; --a CMD --b CMD compares builds, and starts each \
            build anew for each load",
        );
    }
    if let ExperimentSpec::Prove(asked) = &context.experiment.spec {
        let others = if proof.measures.len() > 1 { "; the other measures are secondary" } else { "" };
        screen.add_fact(1, "decided by", format!("{} and success{others}", measure_text(asked.criterion)));
    }
    let reason = comparison_end_text(&proof.stopped_by);
    let (blocks, void, elapsed) = (proof.blocks, proof.blocks_void, elapsed_text(context));
    screen.add_fact(1, "blocks", format!("{blocks} valid, {void} void{elapsed}; stopped: {reason}"));
    screen.add_fact(3, "load", compared_load(context));
    screen.add_failed_response(2, &FailedResponseGroup::failures_of_trials(context.experiment.trials.iter()));
    if !proof.routes.is_empty() {
        screen.add_fact(1, "by request", routes_text(&proof.routes));
    }
    // The screen has no column for p-values, which are in the full report.
    let rows = measure_rows(proof).into_iter().map(|mut row| {
        row.remove(P_VALUE_COLUMN);
        row
    });
    screen.add_table(1, &["measure", "A", "B", "change", "95 % interval", "verdict"], rows.collect(), RUNGS_MAX);
    if let Some(b) = context.measured.arms.get(1).filter(|arm| arm.contains("://") && !arm.contains(' '))
        && proof.verdict != ProveVerdict::Inconclusive
    {
        screen.set_next_step(format!("plimsoll find {url} (the load line of B)", url = shell::quote_if_needed(b)));
    }
    screen
}

/// Renders the first screen of a ladder, which measures several servers (rungs) in turn.
pub(crate) fn ladder_screen(context: &ProveContext, ladder: &Ladder) -> Screen<'static> {
    let mut screen = Screen::new(ladder_answer(ladder));
    add_side_facts(&mut screen, context);
    let (blocks, void, elapsed) = (ladder.blocks, ladder.blocks_void, elapsed_text(context));
    screen.add_fact(1, "blocks", format!("{blocks} valid, {void} void{elapsed}"));
    screen.add_fact(3, "load", compared_load(context));
    screen.add_failed_response(2, &FailedResponseGroup::failures_of_trials(context.experiment.trials.iter()));
    let steps = (1u8..).zip(ladder.rungs.iter().skip(1));
    let largest = steps.filter_map(|(at, rung)| Some((at, rung.cost_us?))).max_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((at, us)) = largest.filter(|(_, us)| *us > 0.0) {
        let (name, added_time, first) = (arm_name(at), duration(us * 1e3), ladder.rungs.first());
        let first_step = first.map_or_else(String::new, |rung| {
            format!("; the first step completes {goodput}/s", goodput = rate(rung.goodput_rps))
        });
        screen.add_fact(
            1,
            "costliest",
            format!("step {name}: {added_time} more for each request than the previous step{first_step}"),
        );
    }
    let (headings, rows) = ladder_table(ladder);
    screen.add_table(1, &headings, rows, RUNGS_MAX);
    screen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_count_follows_from_the_cost() {
        for (ratio, expect) in
            [(0.5, Some((2, 1))), (0.721, Some((4, 3))), (0.6, Some((5, 3))), (0.9, None), (1.2, None)]
        {
            assert_eq!(smallest_server_counts(ratio), expect, "{ratio}");
        }
    }
}
