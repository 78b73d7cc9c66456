//! Renders the reports, answers and live logs of comparisons (`prove`) and of ladders. A comparison
//! measures two servers, side A and side B, alternately. A ladder measures several servers (rungs)
//! in turn. A block is one round in which every server is measured once.

use crate::block::{Report, Tone};
use crate::failure_kinds;
use crate::format::{count, duration, flag_time, rate, share};
use crate::remedy::sentence_text;
use crate::run::load_text;
use crate::wrap::wrap_text;
use plimsoll_analysis::FailedResponseGroup;
use plimsoll_analysis::finding::MeasuredBlocks;
use plimsoll_analysis::prove::rules::{EffectUnavailable, quantile_requests_needed};
use plimsoll_analysis::prove::{
    ComparisonBlock, ComparisonEnd, ComparisonResult, ComparisonRules, ConfidenceInterval, Criterion, InterimEstimate,
    Ladder, MeasureComparison, ProveVerdict, RouteComparison, RouteMeasure, Rung, VerdictReason, arm_name,
};
use plimsoll_analysis::study::StudyFailure;
use plimsoll_model::{Experiment, ExperimentSpec, PlanRecord};

/// A recorded comparison or ladder, with its blocks (a block measures every server once).
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProveContext<'a> {
    /// The recorded experiment.
    pub(crate) experiment: &'a Experiment,
    /// The blocks that were measured in the experiment.
    pub(crate) measured: &'a MeasuredBlocks<'a>,
}

/// Formats the ratio of server B's value to server A's as a relative change, such as `-4.8 %`.
fn relative_change_text(ratio: f64) -> String {
    if ratio.is_infinite() { "no bound".into() } else { format!("{:+.1} %", (ratio - 1.0) * 100.0) }
}

/// Formats an interval of ratios as relative changes, such as `-6.1 to -3.4 %`.
fn relative_change_interval_text(interval: Option<ConfidenceInterval>) -> String {
    match interval {
        Some(ConfidenceInterval { lower, upper }) if upper.is_infinite() => {
            if lower.is_infinite() {
                "no bound".into()
            } else {
                format!("{:+.1} % to no bound", (lower - 1.0) * 100.0)
            }
        }
        Some(ConfidenceInterval { lower, upper }) => {
            format!("{:+.1} to {:+.1} %", (lower - 1.0) * 100.0, (upper - 1.0) * 100.0)
        }
        None => "too few blocks".into(),
    }
}

/// Formats the confidence interval that decides the verdict of a measure. The interval is the 90 %
/// interval of the equivalence test for the verdict `same`, and the 95 % interval for every other
/// verdict.
fn interval_text<M>(one: &MeasureComparison<M>) -> String {
    match one.verdict {
        ProveVerdict::Same => format!("90 % interval: {}", relative_change_interval_text(one.equivalence_interval)),
        _ => relative_change_interval_text(one.ratio_interval),
    }
}

/// Formats a share as a percentage with one decimal.
fn percent_text(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn p_value_text(p: f64) -> String {
    if p < 0.001 { "<0.001".into() } else { format!("{p:.3}") }
}

/// Returns the name of a measure as it is shown to users.
pub fn measure_text(measure: Criterion) -> &'static str {
    match measure {
        Criterion::Goodput => "goodput",
        Criterion::P50 => "p50",
        Criterion::P99 => "p99",
        Criterion::Cpu => "CPU time a request",
    }
}

/// Formats a value of a measure with its unit.
pub(crate) fn measure_value_text(measure: Criterion, value: f64) -> String {
    match measure {
        Criterion::Goodput => format!("{}/s", rate(value)),
        Criterion::P50 | Criterion::P99 | Criterion::Cpu => time_text(value),
    }
}

/// Formats a time in ns. An infinite time is formatted as `no bound`: a quantile is infinite if too
/// many requests failed.
fn time_text(ns: f64) -> String {
    if ns.is_infinite() { "no bound".into() } else { duration(ns) }
}

/// Formats the reason why a comparison or ladder was aborted.
pub fn abort_reason_text(broken: &StudyFailure) -> String {
    match broken {
        StudyFailure::NoSuccess(arm, statuses) => {
            let statuses: Vec<String> = statuses.iter().map(u16::to_string).collect();
            let statuses =
                if statuses.is_empty() { String::new() } else { format!(" (status {})", statuses.join(", ")) };
            format!(
                "{arm} completes no request successfully{statuses}: check its URL, or set the successful \
                 statuses with --ok-status"
            )
        }
        StudyFailure::NotReached(arm) => format!("{arm} was not reached"),
        StudyFailure::LoadEndedEarly(reason) => reason.clone(),
    }
}

/// Formats the interim result of a comparison as one sentence. `budget_enough_ns` is the time
/// budget in ns that would probably lead to a verdict, if the present budget is too small.
pub fn comparison_progress_text(
    settings: &ComparisonRules,
    standing: &InterimEstimate,
    budget_enough_ns: Option<u64>,
) -> String {
    let advice = budget_enough_ns.map(|ns| format!("; --budget {} would decide", flag_time(ns)));
    format!(
        "after {blocks} blocks, {measure} of B differs from A by {change} ({interval}); the margin is {margin}{advice}",
        blocks = standing.blocks,
        measure = measure_text(settings.primary),
        change = relative_change_text(standing.ratio),
        interval = relative_change_interval_text(standing.ratio_interval),
        margin = percent_text(settings.margin),
        advice = advice.unwrap_or_default(),
    )
}

/// Formats a row of a comparison's live log (one row for each interim result). The row has 59
/// columns, so that it fits nearly every terminal.
fn comparison_log_row_text([at, blocks, change, interval, margin]: [&str; 5]) -> String {
    format!("{at:>8}  {blocks:>6}  {change:>11}  {interval:<20}  {margin:>6}").trim_end().to_owned()
}

/// Formats the column headings of a comparison's live log, for the rows of [`comparison_log_row`].
pub fn comparison_log_heading() -> String {
    comparison_log_row_text(["at", "blocks", "B against A", "95 % interval", "margin"])
}

/// Formats one row of the live log of a comparison: the change from server A to server B, estimated
/// from all blocks measured so far.
pub fn comparison_log_row(elapsed_ns: u64, settings: &ComparisonRules, standing: &InterimEstimate) -> String {
    let at = format!("{:.1} s", elapsed_ns as f64 / 1e9);
    let (change, interval) =
        (relative_change_text(standing.ratio), relative_change_interval_text(standing.ratio_interval));
    comparison_log_row_text([&at, &standing.blocks.to_string(), &change, &interval, &percent_text(settings.margin)])
}

/// Formats the interim result of a ladder: the goodput of each rung (server) as a share of the
/// previous rung's goodput.
pub fn ladder_progress_text(ladder: &Ladder) -> String {
    let left = |(number, rung): (u8, &Rung)| {
        Some(format!(
            "{} {} of {}",
            arm_name(number),
            rung_goodput_share_text(rung)?,
            arm_name(number.saturating_sub(1))
        ))
    };
    (0..).zip(&ladder.rungs).filter_map(left).collect::<Vec<_>>().join("; ")
}

/// Formats the column headings of a ladder's live log, for the rows of [`ladder_log_row`].
pub fn ladder_log_heading() -> String {
    format!(
        "{time:>8}  {blocks:>6}  goodput as a share of the step before (95 % interval)",
        time = "at",
        blocks = "blocks"
    )
}

/// Formats one row of the live log of a ladder, in lines of at most `columns` characters.
pub fn ladder_log_row(elapsed_ns: u64, ladder: &Ladder, columns: Option<usize>) -> String {
    let at = format!("{:.1} s", elapsed_ns as f64 / 1e9);
    wrap_text(&format!("{at:>8}  {:>6}  {}", ladder.blocks, ladder_progress_text(ladder)), columns, 18)
}

/// Formats the result of a comparison as one sentence.
pub fn prove_answer(proof: &ComparisonResult) -> String {
    // If both servers are restarted for each load, the confidence interval includes the variation
    // between starts of a server. If the servers are not restarted, the result is valid only for
    // the two running server processes.
    comparison_answer_with_scope(
        proof,
        if proof.restarts_builds { "" } else { ", valid only for these two running processes" },
    )
}

/// Formats the result of a comparison as [`prove_answer`] does, without the remark that the result
/// is valid only for the running processes.
pub(crate) fn prove_answer_without_scope(proof: &ComparisonResult) -> String {
    comparison_answer_with_scope(proof, "")
}

fn comparison_answer_with_scope(proof: &ComparisonResult, scope: &str) -> String {
    let verdict = match proof.verdict {
        ProveVerdict::Better => "B is better than A",
        ProveVerdict::Worse => "B is worse than A",
        ProveVerdict::Same => "B is the same as A",
        ProveVerdict::SmallDifference => "B differs from A by less than the margin",
        ProveVerdict::Inconclusive => return inconclusive_text(proof),
    };
    let primary = proof.measures.first().filter(|one| one.is_primary);
    let estimate = primary.map(|one| {
        format!("{} {} ({})", measure_text(one.measure), relative_change_text(one.ratio), interval_text(one))
    });
    let estimate = estimate.unwrap_or_default();
    if let (Some(VerdictReason::MoreFailures), Some(success)) = (&proof.reason, &proof.success) {
        let [a, b] = success.rates.map(|rate| share(1.0 - rate));
        let estimate = if estimate.is_empty() { estimate } else { format!("; {estimate}") };
        return format!("{verdict}{scope}: B fails {b} of its requests, A fails {a}{estimate}");
    }
    let margin = primary.map_or_else(String::new, |one| percent_text(one.margin));
    match proof.verdict {
        ProveVerdict::Better | ProveVerdict::Worse => {
            format!("{verdict}{scope}: {estimate}, beyond the margin of {margin}")
        }
        ProveVerdict::Same => format!("{verdict}{scope}: {estimate}, inside the margin of {margin}"),
        ProveVerdict::SmallDifference | ProveVerdict::Inconclusive => {
            format!("{verdict}{scope}: {estimate}; the margin is {margin}")
        }
    }
}

/// Formats the sentence for the verdict `inconclusive`: the estimate, the reason, and how to reach
/// a verdict.
fn inconclusive_text(proof: &ComparisonResult) -> String {
    let primary = proof.measures.first().filter(|one| one.is_primary);
    let seen = primary.map(|one| {
        let interval = interval_text(one);
        format!("{} {} ({interval})", measure_text(one.measure), relative_change_text(one.ratio))
    });
    let advice = budget_advice_text(proof).map(|advice| format!("; {advice}")).unwrap_or_default();
    match (&proof.reason, primary, seen) {
        (Some(VerdictReason::NoValidMeasurement(why)), _, Some(seen)) => {
            format!("inconclusive: {why}; until then {seen}")
        }
        (Some(VerdictReason::NoValidMeasurement(why)), _, None) => format!("inconclusive: {why}"),
        (Some(VerdictReason::Contradicted(verdict, reason)), _, Some(estimate)) => {
            let way_out = match verdict {
                ProveVerdict::Better => "; --allow-different-answers compares A and B anyway",
                _ => "",
            };
            format!("inconclusive: {estimate}. The verdict would be {verdict}, but {reason}{way_out}")
        }
        (Some(VerdictReason::PrimaryUnavailable(why)), ..) => {
            format!("not provable: {}{advice}", missing_measure_text(*why))
        }
        (_, Some(one), Some(estimate)) => {
            // A 95 % interval that excludes the ratio 1 (no change) is not enough for a verdict. A
            // verdict also depends on the margin, and on a stricter test.
            if one.ratio_interval.is_some_and(|interval| !interval.contains(1.0)) {
                return format!("inconclusive, though a difference is likely: {estimate}{advice}");
            }
            let at_most = one.difference_max().filter(|most| most.is_finite()).map(|most| {
                format!(
                    ", which excludes a difference of more than {difference_max} (the margin is {margin})",
                    difference_max = percent_text(most),
                    margin = percent_text(one.margin)
                )
            });
            format!("inconclusive: {estimate}{}{advice}", at_most.unwrap_or_default())
        }
        _ => format!("inconclusive: no block (one load of each server) was measured{advice}"),
    }
}

/// Formats the reason why a measure of the comparison has no estimate.
fn missing_measure_text(why: EffectUnavailable) -> String {
    match why {
        EffectUnavailable::MissingMeasure => "the compared measure could not be measured".into(),
        EffectUnavailable::TooFewRequests { q, requests } => format!(
            "p{percentile:.0} needs {requests_needed} requests to each server, and there were only {requests_measured}",
            percentile = q * 100.0,
            requests_needed = count(quantile_requests_needed(q) as u64),
            requests_measured = count(requests as u64)
        ),
    }
}

/// The longest time budget in ns that a message to the user may recommend: one day.
const RECOMMENDED_BUDGET_NS_MAX: u64 = 24 * 3600 * 1_000_000_000;

/// Formats advice on how a comparison can reach a verdict: a sufficient time budget, or a number of
/// further blocks. Returns `None` if no estimate exists.
fn budget_advice_text(proof: &ComparisonResult) -> Option<String> {
    let more = proof.further_blocks?;
    let blocks = proof.stopped_by == ComparisonEnd::BlocksMaxReached;
    Some(match proof.sufficient_budget_ns {
        Some(ns) if ns > RECOMMENDED_BUDGET_NS_MAX => {
            "on such a noisy machine, even a comparison of one day would not decide".into()
        }
        Some(ns) if blocks => {
            format!("--budget {budget} without --blocks would decide the comparison", budget = flag_time(ns))
        }
        Some(ns) => format!("--budget {} would decide", flag_time(ns)),
        // The duration of a block (one load of each server) is unknown, so the text recommends a
        // number of blocks, not a time budget.
        None => format!("about {more} more blocks (loads of A and B) would decide the comparison"),
    })
}

/// Returns in words the reason why a comparison ended.
pub(crate) fn comparison_end_text(stopped_by: &ComparisonEnd) -> &str {
    match stopped_by {
        ComparisonEnd::Verdict => "the verdict was certain",
        ComparisonEnd::BlocksMaxReached => "all requested blocks (loads of A and B) were measured",
        ComparisonEnd::Budget => "the time budget was exhausted",
        ComparisonEnd::TooFewValidBlocks => "too few blocks were valid (a block is one load on each side)",
        ComparisonEnd::Aborted(_) => "broken off",
    }
}

fn elapsed_text(context: &ProveContext) -> String {
    match context.measured.elapsed_ns {
        Some(ns) => format!(" in {}", duration(ns as f64)),
        None => String::new(),
    }
}

pub(crate) fn compared_load(context: &ProveContext) -> String {
    match load_text_per_side(context).as_slice() {
        [] => "none".into(),
        [load] => format!("{load} on each side of a block"),
        each => {
            each.iter().zip(0..).map(|(load, arm)| format!("{}: {load}", arm_name(arm))).collect::<Vec<_>>().join("; ")
        }
    }
}

/// Formats the load that each side receives. If all sides receive the same load, the result has one
/// text. If no load was recorded, the result is empty.
pub(crate) fn load_text_per_side(context: &ProveContext) -> Vec<String> {
    let one = |plan: &&PlanRecord| format!("{}, {}", load_text(plan), duration(planned_duration_ns(plan) as f64));
    let mut loads: Vec<String> = context.measured.arm_plans.iter().map(one).collect();
    if loads.iter().all(|load| *load == loads[0]) {
        loads.truncate(1);
    }
    loads
}

/// Returns the duration of the load in ns; 0 if the plan has no fixed duration.
pub(crate) fn planned_duration_ns(plan: &PlanRecord) -> u64 {
    plan.load.duration_ns.unwrap_or(0)
}

/// Returns the letter of each side with the description of its server.
fn side_descriptions<'a>(context: &'a ProveContext) -> impl Iterator<Item = (String, String)> + 'a {
    context.measured.arms.iter().enumerate().map(|(at, side)| (arm_name(at as u8).to_string(), side.clone()))
}

/// Lists the kinds of failed responses as facts (a label and a text) for the report.
fn failed_facts(context: &ProveContext) -> Vec<(&'static str, String)> {
    failure_kinds::failure_facts(&FailedResponseGroup::failures_of_trials(context.experiment.trials.iter()))
}

/// Renders the report of a comparison of two servers, A and B.
pub(crate) fn prove_report(context: &ProveContext, proof: &ComparisonResult) -> Report {
    let mut report = Report::default();
    report.add_sentence(Tone::Answer, prove_answer(proof));
    let sides: Vec<(String, String)> = side_descriptions(context).collect();
    let mut facts: Vec<(&str, String)> = sides.iter().map(|(name, side)| (name.as_str(), side.clone())).collect();
    facts.push((
        "blocks",
        format!(
            "{} valid, {} void{}; stopped: {} (seed {})",
            proof.blocks,
            proof.blocks_void,
            elapsed_text(context),
            comparison_end_text(&proof.stopped_by),
            context.measured.plan.load.seed
        ),
    ));
    facts.push(("load", compared_load(context)));
    facts.push(("spread", spread_text(proof)));
    if let ExperimentSpec::Prove(asked) = &context.experiment.spec {
        let others = if proof.measures.len() > 1 {
            "; the other measures are secondary, and corrected for the number of comparisons"
        } else {
            ""
        };
        facts.push(("decides", format!("{}, and success{others}", measure_text(asked.criterion))));
    }
    facts.extend(failed_facts(context));
    report.add_facts(facts);
    let rows = measure_rows(proof);
    report.add_table(&["measure", "A", "B", "change", "95 % interval", "p", "verdict"], rows);
    if !proof.routes.is_empty() {
        report.add_facts(vec![("by request", routes_text(&proof.routes))]);
        report.add_table(
            &["request", "measure", "A", "B", "change", "95 % interval", "p", "verdict"],
            proof.routes.iter().flat_map(route_rows).collect(),
        );
    }
    report
}

/// The index of the column with the p-value in a row of [`measure_rows`].
pub(crate) const P_VALUE_COLUMN: usize = 5;

/// Formats the table rows of the measures: name, value of A, value of B, change, interval, p-value,
/// verdict. If a request failed, the first row has the success rates.
pub(crate) fn measure_rows(proof: &ComparisonResult) -> Vec<Vec<String>> {
    let rows = proof.measures.iter().map(|one| {
        vec![
            if one.measure == Criterion::Cpu { "CPU a request" } else { measure_text(one.measure) }.to_owned(),
            measure_value_text(one.measure, one.side_values[0]),
            measure_value_text(one.measure, one.side_values[1]),
            relative_change_text(one.ratio),
            interval_text(one),
            p_value_text(one.p),
            one.verdict.to_string(),
        ]
    });
    success_row(proof).into_iter().chain(rows).collect()
}

/// Formats the table row of the success rates; `None` if all requests of both sides succeeded.
fn success_row(proof: &ComparisonResult) -> Option<Vec<String>> {
    let success = proof.success.as_ref().filter(|success| success.rates != [1.0, 1.0])?;
    let [a, b] = success.rates.map(share);
    let verdict = if success.is_b_worse { "worse" } else { "-" };
    let row = [
        "success".into(),
        a,
        b,
        relative_change_text(success.ratio),
        relative_change_interval_text(success.ratio_interval),
        "-".into(),
        verdict.into(),
    ];
    Some(row.into())
}

/// Formats how much the goodput varies between the loads of one side, as a standard deviation.
fn spread_text(proof: &ComparisonResult) -> String {
    let [Some(a), Some(b)] = proof.relative_deviations else { return "too few blocks".into() };
    let (a, b) = (percent_text(a), percent_text(b));
    match proof.restarts_builds {
        true => format!(
            "goodput varies between starts of the same build by {a} on A and {b} on B (standard deviation); the \
             intervals include this variation"
        ),
        false => format!(
            "goodput varies from load to load by {a} on A and {b} on B (standard deviation); the intervals include \
             this variation"
        ),
    }
}

/// Returns the name of a route's measure as it is shown to users.
fn route_measure_text(measure: RouteMeasure) -> &'static str {
    match measure {
        RouteMeasure::Success => "success",
        RouteMeasure::P50 => "p50",
        RouteMeasure::P99 => "p99",
    }
}

/// Formats one sentence that names the routes (kinds of requests) that became worse and those that
/// became better.
fn routes_text(routes: &[RouteComparison]) -> String {
    /// The maximum number of routes named for each verdict.
    const ROUTES_SHOWN_MAX: usize = 6;
    let of = |verdict: ProveVerdict| {
        let told = |route: &RouteComparison| {
            let it = route.measures.iter().filter(|one| one.verdict == verdict);
            let it: Vec<String> = it
                .map(|one| format!("{} {}", route_measure_text(one.measure), relative_change_text(one.ratio)))
                .collect();
            (!it.is_empty()).then(|| format!("{} ({})", route.name, it.join(", ")))
        };
        let mut all: Vec<String> = routes.iter().filter_map(told).collect();
        if all.len() > ROUTES_SHOWN_MAX {
            let more = all.len() - ROUTES_SHOWN_MAX;
            all.truncate(ROUTES_SHOWN_MAX);
            all.push(format!("{more} more"));
        }
        (!all.is_empty()).then(|| format!("{verdict}: {}", all.join(", ")))
    };
    let told: Vec<String> = [ProveVerdict::Worse, ProveVerdict::Better].into_iter().filter_map(of).collect();
    let changes = if told.is_empty() {
        "no kind of request is better or worse on B than on A".to_owned()
    } else {
        told.join("; ")
    };
    format!("{changes}; these results are secondary, and corrected for the number of comparisons (Holm)")
}

/// Formats the table rows of one route (a kind of request). The row of success rates is omitted if
/// all requests of both sides succeeded.
fn route_rows(route: &RouteComparison) -> Vec<Vec<String>> {
    let all_succeed = route.success_rate == [1.0, 1.0];
    let shown = |one: &&MeasureComparison<RouteMeasure>| one.measure != RouteMeasure::Success || !all_succeed;
    let told = |one: &MeasureComparison<RouteMeasure>| {
        let value = |side: usize| match one.measure {
            RouteMeasure::Success => percent_text(route.success_rate[side]),
            RouteMeasure::P50 | RouteMeasure::P99 => time_text(one.side_values[side]),
        };
        let (change, interval) = (relative_change_text(one.ratio), interval_text(one));
        let measure = route_measure_text(one.measure);
        [measure.into(), value(0), value(1), change, interval, p_value_text(one.p), one.verdict.to_string()]
    };
    let mut rows: Vec<[String; 7]> = route.measures.iter().filter(shown).map(told).collect();
    let is_success = |one: &MeasureComparison<RouteMeasure>| one.measure == RouteMeasure::Success;
    if route.blocks == 0 {
        let none = String::new;
        let reason = "no block sent this request to both servers".into();
        rows = vec![[reason, none(), none(), none(), none(), none(), none()]];
    } else if !route.measures.iter().any(is_success) {
        let [a, b] = route.success_rate.map(percent_text);
        rows.insert(0, ["success".into(), a, b, "-".into(), "-".into(), "-".into(), "-".into()]);
    }
    let name = |(at, row): (usize, [String; 7])| {
        let name = if at == 0 { route.name.clone() } else { String::new() };
        std::iter::once(name).chain(row).collect()
    };
    rows.into_iter().enumerate().map(name).collect()
}

/// Formats a table with the value of the primary measure in each block. Returns the headings and
/// the rows.
pub(crate) fn block_values_table(
    proof: &ComparisonResult,
    blocks: &[ComparisonBlock],
) -> ([&'static str; 4], Vec<Vec<String>>) {
    let headings = ["block", "A", "B", "B against A"];
    let Some(measure) = proof.measures.first().map(|primary| primary.measure) else { return (headings, Vec::new()) };
    let row = |(number, block): (usize, &ComparisonBlock)| {
        let values: Vec<Option<f64>> = block.arm_loads.iter().map(|reading| reading.printable_value(measure)).collect();
        let told =
            |value: &Option<f64>| value.map_or_else(|| "-".to_owned(), |value| measure_value_text(measure, value));
        let against = match (block.void_reason(), values.as_slice()) {
            (Some(reason), _) => format!("void: {}", sentence_text(reason)),
            (None, [Some(a), Some(b)]) => relative_change_text(b / a),
            _ => "-".into(),
        };
        let mut row = vec![(number + 1).to_string()];
        row.extend(values.iter().map(told));
        row.push(against);
        row
    };
    (headings, blocks.iter().enumerate().map(row).collect())
}

/// Formats the goodput of a rung (a server of a ladder) as a percentage of the previous rung's
/// goodput. The percentage may exceed 100 %.
fn goodput_share_percent_text(ratio: f64) -> String {
    if ratio > 1.0 { percent_text(ratio) } else { share(ratio) }
}

/// Formats the cost that a rung (a server of a ladder) adds to each request in us. The text
/// includes the sign, such as `+71.2 us` or `+76 900 us`.
fn added_cost_text(us: f64) -> String {
    let size = if us.abs() < 999.95 { format!("{:.1}", us.abs()) } else { count(us.abs().round() as u64) };
    format!("{}{size} us", if us < 0.0 { '-' } else { '+' })
}

/// Formats both ends of an interval, with the unit only after the upper end.
fn interval_ends_text(interval: Option<ConfidenceInterval>, text: fn(f64) -> String) -> String {
    let Some(ConfidenceInterval { lower, upper }) = interval else { return "too few blocks".into() };
    let (lower, upper) = (text(lower), text(upper));
    let number = lower.rsplit_once(' ').map_or(lower.as_str(), |(number, _)| number);
    format!("{number} to {upper}")
}

/// Formats the goodput of a rung (a server of a ladder) as a share of the previous rung's goodput,
/// with the confidence interval. Returns `None` for the first rung of the ladder.
pub(crate) fn rung_goodput_share_text(rung: &Rung) -> Option<String> {
    rung.goodput_ratio.map(|share| {
        format!(
            "{} ({})",
            goodput_share_percent_text(share),
            interval_ends_text(rung.goodput_ratio_interval, goodput_share_percent_text)
        )
    })
}

/// Formats the cost per request that a rung (a server of a ladder) adds compared with the previous
/// rung, with the confidence interval. Returns `None` for the first rung of the ladder.
pub(crate) fn rung_added_cost_text(rung: &Rung) -> Option<String> {
    rung.cost_us
        .map(|us| format!("{} ({})", added_cost_text(us), interval_ends_text(rung.cost_us_interval, added_cost_text)))
}

/// Formats the result of a ladder as one sentence: the goodput of the first and the last rung
/// (server).
pub fn ladder_answer(ladder: &Ladder) -> String {
    if ladder.blocks == 0 {
        return format!(
            "no result for the {steps} servers of the ladder: no block (one load of each server) is valid",
            steps = ladder.rungs.len()
        );
    }
    let first = ladder.rungs.first().map_or(0.0, |rung| rung.goodput_rps);
    let last = ladder.rungs.last().map_or(0.0, |rung| rung.goodput_rps);
    let share_of_first = if first > 0.0 { goodput_share_percent_text(last / first) } else { "nothing".into() };
    format!(
        "{first_rps} requests/s at the first step, {last_rps} at the last: {share_of_first} of the first",
        first_rps = rate(first),
        last_rps = rate(last)
    )
}

/// Renders the report of a ladder, which measures several servers (rungs) in turn.
pub(crate) fn ladder_report(context: &ProveContext, ladder: &Ladder) -> Report {
    let mut report = Report::default();
    report.add_sentence(Tone::Answer, ladder_answer(ladder));
    let sides: Vec<(String, String)> = side_descriptions(context).collect();
    let mut facts: Vec<(&str, String)> = sides.iter().map(|(name, side)| (name.as_str(), side.clone())).collect();
    facts.push((
        "blocks",
        format!(
            "{} valid, {} void{} (seed {})",
            ladder.blocks,
            ladder.blocks_void,
            elapsed_text(context),
            context.measured.plan.load.seed
        ),
    ));
    facts.push(("load", compared_load(context)));
    facts.extend(failed_facts(context));
    report.add_facts(facts);
    let (headings, rows) = ladder_table(ladder);
    report.add_table(&headings, rows);
    report
}

/// Formats a table with one row for each rung (server) of a ladder. Returns the headings and the
/// rows.
pub(crate) fn ladder_table(ladder: &Ladder) -> ([&'static str; 6], Vec<Vec<String>>) {
    let row = |(number, rung): (usize, &Rung)| {
        let known = |of: Option<f64>, text: fn(f64) -> String| of.map(text).unwrap_or_default();
        let ends = |of: Option<f64>, interval, text| of.map(|_| interval_ends_text(interval, text)).unwrap_or_default();
        vec![
            arm_name(number as u8).to_string(),
            if ladder.blocks > 0 { format!("{}/s", rate(rung.goodput_rps)) } else { "-".to_owned() },
            known(rung.goodput_ratio, goodput_share_percent_text),
            ends(rung.goodput_ratio, rung.goodput_ratio_interval, goodput_share_percent_text),
            known(rung.cost_us, added_cost_text),
            ends(rung.cost_us, rung.cost_us_interval, added_cost_text),
        ]
    };
    let headings = ["step", "goodput", "of before", "95 %", "a request", "95 %"];
    (headings, ladder.rungs.iter().enumerate().map(row).collect())
}
