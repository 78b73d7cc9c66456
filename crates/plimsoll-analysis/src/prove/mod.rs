//! Decides whether one build is better than another, from blocks of paired loads. The rate of false
//! verdicts is known in advance.
//!
//! A block is one short load on each arm (build A and build B), in direct succession and in random
//! order. So a disturbance of the machine affects both arms (builds) equally, or either arm with
//! equal probability. All statistical tests are over blocks (paired loads), never over requests.
//!
//! A single *primary* measure decides, together with the success rate. The p-values of all other
//! measures are corrected for the number of these measures.
//!
//! Everything in this module is a pure function of the measured blocks. Not here: making the loads,
//! and starting the builds.

mod by_route;
pub mod comparison_blocks;
pub mod evaluations;
pub mod ladder;
mod measure_comparison;
pub mod process_age;
pub mod required_blocks;
pub mod rules;
pub mod verdict;

pub use by_route::{RouteComparison, RouteMeasure};
pub use comparison_blocks::{
    ArmLoadFigures, ArmRouteFigures, ComparisonBlock, RecordedBlocks, arm_name, blocks_from_trials, shuffled_arm_order,
};
pub use ladder::{Ladder, Rung, compute_ladder};
pub use measure_comparison::{MeasureComparison, ProveVerdict};
pub use plimsoll_model::Criterion;
pub use plimsoll_statistics::basics::ConfidenceInterval;
pub use plimsoll_statistics::resample::{BlockRatio, EffectEstimate, LoadResponseTimes};
pub use process_age::ProcessAge;
pub use required_blocks::sufficient_budget_ns;
pub use rules::ComparisonRules;
pub use verdict::{SuccessRateComparison, VerdictReason};

use crate::doubts::{DoubtKind, Doubts};
use crate::interference::Interference;
use crate::sentence::Sentence;
use evaluations::{EvaluationNumber, EvaluationResult};
use rules::{EffectUnavailable, valid_blocks};
use verdict::{Decision, decide_verdict};

/// Number of void (unusable) blocks after which a comparison may end. The comparison ends if it
/// also has more than twice as many void blocks as valid blocks.
const VOID_BLOCKS_MIN: usize = 6;

/// Why a comparison of two builds ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComparisonEnd {
    /// A planned evaluation of the blocks (paired loads) measured so far had a certain verdict.
    Verdict,
    /// The requested number of blocks (paired loads of both builds) was measured.
    BlocksMaxReached,
    /// The time budget was exhausted.
    Budget,
    /// Hardly any block (paired loads of both builds) was valid. The last entry of
    /// [`ComparisonResult::doubts`] gives the reason.
    TooFewValidBlocks,
    /// The comparison ended for another reason, given in words. For example, the user pressed ^C,
    /// or a build exited.
    Aborted(String),
}

/// An estimate of the primary measure after a number of blocks (paired loads). The interval has the
/// error probability of the last evaluation, except at a planned evaluation in
/// [`interim_estimate`]. A sequence of interim estimates shows how the interval narrows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InterimEstimate {
    /// Number of valid blocks (paired loads of both builds).
    pub blocks: usize,
    /// Estimate of B/A.
    pub ratio: f64,
    /// Interval of `ratio`; `None` with too few blocks (paired loads).
    pub ratio_interval: Option<ConfidenceInterval>,
}

/// The outcome of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonResult {
    /// The verdict from the primary measure and the success rate; inconclusive if other evidence
    /// contradicts the primary measure.
    pub verdict: ProveVerdict,
    /// The reason for the verdict; `None` if the primary measure alone decides.
    pub reason: Option<VerdictReason>,
    /// All compared measures, the primary measure first.
    pub measures: Vec<MeasureComparison>,
    /// The comparison of success rates; `None` without a valid block (paired loads of both builds).
    pub success: Option<SuccessRateComparison>,
    /// The comparison of each route, in the order of the plan; empty for a single route.
    pub routes: Vec<RouteComparison>,
    /// The standard deviation of a single load's value on each side, as a share of the value. The
    /// standard deviation is estimated from the differences between neighbouring loads. `None` with
    /// too few blocks (paired loads).
    pub relative_deviations: [Option<f64>; 2],
    /// Whether every load ran on a newly started build. If the builds were not started anew, the
    /// verdict applies to two running processes, and not to their builds.
    pub restarts_builds: bool,
    /// Number of valid blocks (paired loads of both builds).
    pub blocks: usize,
    /// Number of void blocks, which do not count: the generator was the limit, or no response
    /// arrived in time.
    pub blocks_void: usize,
    /// The approximate number of further blocks (paired loads) with which the comparison would give
    /// a verdict. `further_blocks` has a value only if the verdict is inconclusive because of too
    /// few blocks.
    pub further_blocks: Option<usize>,
    /// The budget that is enough for `further_blocks` further blocks (paired loads), ns.
    /// [`compute_comparison_result`] leaves this field empty. The caller of
    /// [`compute_comparison_result`] knows the length of a block, and sets this field
    /// ([`sufficient_budget_ns`]).
    pub sufficient_budget_ns: Option<u64>,
    /// The reason why the comparison ended.
    pub stopped_by: ComparisonEnd,
    /// The evidence against the figures of the comparison.
    pub doubts: Doubts,
}

/// Returns the evaluation of the comparison that is planned after exactly these blocks (paired
/// loads), and its decision. Returns `None` if no evaluation is planned after these blocks, or if
/// the evaluation's verdict is not certain.
fn certain_decision(settings: &ComparisonRules, blocks: &[ComparisonBlock]) -> Option<(EvaluationNumber, Decision)> {
    let number =
        evaluations::planned_evaluation(blocks.len()).filter(|number| by_route::can_prove_routes(blocks, *number))?;
    // Most evaluations give no certain verdict, so the whole evaluation is skipped if the primary
    // measure and the success rate rule out a certain verdict.
    if !verdict::may_be_certain(settings, blocks, number) {
        return None;
    }
    let decision = decide_verdict(settings, blocks, number);
    (decision.verdict != ProveVerdict::Inconclusive).then_some((number, decision))
}

/// Returns the reason to stop the comparison after these blocks (paired loads); `None` to continue.
/// The caller checks the time budget.
pub fn stop_reason(settings: &ComparisonRules, blocks: &[ComparisonBlock]) -> Option<ComparisonEnd> {
    let counted = valid_blocks(blocks, settings.primary);
    let void = blocks.len() - counted.len();
    if void >= VOID_BLOCKS_MIN && void > 2 * counted.len() {
        return Some(ComparisonEnd::TooFewValidBlocks);
    }
    if certain_decision(settings, &counted).is_some() {
        return Some(ComparisonEnd::Verdict);
    }
    settings.blocks_max.is_some_and(|most| counted.len() >= most).then_some(ComparisonEnd::BlocksMaxReached)
}

/// Estimates the primary measure after these blocks (paired loads), for display during the
/// measurement. At a planned evaluation, the verdict uses the interval that this function returns.
pub fn interim_estimate(settings: &ComparisonRules, blocks: &[ComparisonBlock]) -> Option<InterimEstimate> {
    let counted = valid_blocks(blocks, settings.primary);
    let evaluation = evaluations::planned_evaluation(counted.len()).unwrap_or(EvaluationNumber::Last);
    estimate_from_blocks(settings, &counted, evaluation)
}

fn estimate_from_blocks(
    settings: &ComparisonRules,
    blocks: &[ComparisonBlock],
    evaluation: EvaluationNumber,
) -> Option<InterimEstimate> {
    let seen = EvaluationResult::from_effect(&rules::effect_of_measure(blocks, settings.primary).ok()?, evaluation, 1);
    Some(InterimEstimate {
        blocks: blocks.len(),
        ratio: seen.estimate.exp(),
        ratio_interval: seen.interval.map(|interval| interval.map(f64::exp)),
    })
}

/// Estimates the primary measure after increasing numbers of blocks (paired loads). At most 40
/// estimates are returned.
pub fn interim_estimates(settings: &ComparisonRules, blocks: &[ComparisonBlock]) -> Vec<InterimEstimate> {
    let counted = valid_blocks(blocks, settings.primary);
    let step = counted.len().div_ceil(40).max(1);
    let mut after: Vec<usize> = (step..=counted.len()).step_by(step).collect();
    if after.last() != Some(&counted.len()) && !counted.is_empty() {
        after.push(counted.len());
    }
    after.into_iter().filter_map(|n| estimate_from_blocks(settings, &counted[..n], EvaluationNumber::Last)).collect()
}

/// Computes the result of all blocks (paired loads) of a comparison together.
pub fn compute_comparison_result(
    settings: &ComparisonRules,
    blocks: &[ComparisonBlock],
    stopped_by: ComparisonEnd,
) -> ComparisonResult {
    let counted = valid_blocks(blocks, settings.primary);
    let early = if stopped_by == ComparisonEnd::Verdict { certain_decision(settings, &counted) } else { None };
    let (evaluation, decision) =
        early.unwrap_or_else(|| (EvaluationNumber::Last, decide_verdict(settings, &counted, EvaluationNumber::Last)));
    let Decision { mut verdict, primary, secondary, success, mut reason } = decision;
    let mut measures: Vec<MeasureComparison> = primary.into_iter().chain(secondary).collect();
    let mut routes = by_route::compare_routes(settings, &counted, evaluation);
    let mut doubts: Doubts = comparison_blocks::void_blocks_doubt(blocks).into_iter().collect();
    if let Some(success) = success.filter(|success| success.is_b_worse) {
        let [failed_a, failed_b] = success.rates.map(|rate| crate::format::share(1.0 - rate));
        let text = format!("{failed_b} of the requests to side B fail, but only {failed_a} of the requests to side A");
        doubts.add(DoubtKind::SidesDiffer, text);
    }
    // If more requests of B than of A fail, the responses of B differ as well, so the warning about
    // the failures is enough.
    let fails = success.is_some_and(|success| success.is_b_worse);
    if let Some(differing) = verdict::describe_response_difference(&counted).filter(|_| !fails) {
        let text = format!("{difference}; the two sides may not do the same work", difference = differing.text);
        doubts.add(DoubtKind::SidesDiffer, text);
    }
    doubts.extend(by_route::one_sided_success_doubt(&routes));
    let loads = counted.iter().flat_map(|block| &block.arm_loads).map(|reading| &reading.interference);
    if let Interference { is_disturbed: true, reason: Some(reason), .. } = Interference::combine(loads, "loads") {
        let text = format!(
            "the machine was disturbed: {reason}; the intervals stay valid, but are wider than without the disturbance"
        );
        doubts.add(DoubtKind::Interference, text);
    }
    let refused = match &stopped_by {
        ComparisonEnd::Aborted(reason) => Some(format!("the comparison ended early: {reason}")),
        ComparisonEnd::TooFewValidBlocks => {
            Some("too few blocks were valid (a block is one load on each side)".to_owned())
        }
        ComparisonEnd::Verdict | ComparisonEnd::BlocksMaxReached | ComparisonEnd::Budget => None,
    };
    if let Some(why) = refused {
        let kind = if stopped_by == ComparisonEnd::TooFewValidBlocks { DoubtKind::Void } else { DoubtKind::Ended };
        doubts.add(kind, Sentence::from(format!("no verdict, because {why}")));
        (verdict, reason) = (ProveVerdict::Inconclusive, Some(VerdictReason::NoValidMeasurement(why)));
        let of_routes = routes.iter_mut().flat_map(|route| &mut route.measures);
        of_routes.for_each(|one| one.verdict = ProveVerdict::Inconclusive);
        measures.iter_mut().filter(|one| one.is_primary).for_each(|one| one.verdict = verdict);
    }
    // If evidence contradicts the verdict, more blocks (paired loads) would not help.
    let only_blocks_are_missing = verdict == ProveVerdict::Inconclusive
        && matches!(reason, None | Some(VerdictReason::PrimaryUnavailable(EffectUnavailable::TooFewRequests { .. })));
    let further_blocks = only_blocks_are_missing.then(|| required_blocks::further_blocks_needed(settings, &counted));
    ComparisonResult {
        verdict,
        reason,
        measures,
        success,
        routes,
        relative_deviations: [0, 1].map(|side| relative_deviation(&counted, settings.primary, side)),
        restarts_builds: settings.restarts_builds,
        blocks: counted.len(),
        blocks_void: blocks.len() - counted.len(),
        further_blocks,
        sufficient_budget_ns: None,
        stopped_by,
        doubts,
    }
}

/// Returns the standard deviation of a load's value on one side, as a share. The estimate uses the
/// differences between neighbouring loads, so that drift has no effect.
fn relative_deviation(blocks: &[ComparisonBlock], measure: Criterion, side: usize) -> Option<f64> {
    let values: Vec<f64> =
        blocks.iter().filter_map(|block| block.arm_loads[side].measure_value(measure)).map(f64::ln).collect();
    let squares: Vec<f64> =
        values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).filter(|square| square.is_finite()).collect();
    (squares.len() >= VARIATION_PAIRS_MIN).then(|| (squares.iter().sum::<f64>() / squares.len() as f64 / 2.0).sqrt())
}

/// Minimum number of pairs of neighbouring loads from which the standard deviation is estimated.
const VARIATION_PAIRS_MIN: usize = 5;
