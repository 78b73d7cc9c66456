//! The comparison of each route, build B with build A, for plans with several routes. The
//! comparison covers the success rate and the response times, over all blocks (a block is one load
//! of each build).
//!
//! No single route decides the comparison, so all routes share one error probability. The tests of
//! all measures of all routes are one family, and Holm's method divides the error probability among
//! them.
//!
//! Holm's method compares the smallest p-value with the error probability divided by the number of
//! tests. For each further p-value, in ascending order, the divisor is smaller by one. Holm's
//! method stops at the first p-value that is too large to reject its hypothesis.
//!
//! The comparison of a route never changes the verdict on the whole comparison. Not here: the
//! primary measure, which decides the comparison.

use super::comparison_blocks::{ArmRouteFigures, ComparisonBlock};
use super::evaluations::{EvaluationNumber, INTERVAL_ERROR_PROBABILITY};
use super::measure_comparison::{JudgementSettings, MeasureComparison, compare_measure};
use super::rules::{ComparisonRules, EffectQuantity};
use crate::doubts::{Doubt, DoubtKind};
use plimsoll_statistics::basics;
use plimsoll_statistics::resample::{BlockRatio, EffectEstimate};

/// A measure of one route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteMeasure {
    /// Share of the route's requests that succeeded.
    Success,
    /// Median response time of the route.
    P50,
    /// Response time p99 of the route.
    P99,
}

impl RouteMeasure {
    /// All measures by which a route is compared.
    pub const ALL: [RouteMeasure; 3] = [RouteMeasure::Success, RouteMeasure::P50, RouteMeasure::P99];

    /// Returns the quantity from which the effect of this measure is computed.
    fn effect_quantity(self, blocks: &[[ArmRouteFigures; 2]]) -> EffectQuantity<'_> {
        let times = |q| {
            EffectQuantity::Quantile(
                q,
                blocks.iter().map(|sides| [&sides[0].response_times, &sides[1].response_times]).collect(),
            )
        };
        match self {
            RouteMeasure::Success => {
                let amount = |route: &ArmRouteFigures| BlockRatio {
                    numerator: route.response_times.succeeded() as f64,
                    divisor: route.response_times.scheduled as f64,
                };
                EffectQuantity::Amounts(blocks.iter().map(|[a, b]| [amount(a), amount(b)]).collect())
            }
            RouteMeasure::P50 => times(0.5),
            RouteMeasure::P99 => times(0.99),
        }
    }
}

/// The comparison of one route, build B with build A.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteComparison {
    /// The name of the route.
    pub name: String,
    /// Number of the route's requests in all valid blocks (paired loads), for A and for B.
    pub requests: [u64; 2],
    /// Share of the route's requests that succeeded, for A and for B, 0..=1.
    pub success_rate: [f64; 2],
    /// Number of blocks (paired loads of A and B) in which both sides got requests of the route.
    pub blocks: usize,
    /// The comparison of each measure. If no request of the route succeeded on one side, no ratio
    /// is known, so measures may be missing.
    pub measures: Vec<MeasureComparison<RouteMeasure>>,
}

/// One test of the family (all measures of all routes): its route, measure and effect, and its
/// p-value. The p-value is corrected for all evaluations of the comparison.
struct RouteTest {
    route: usize,
    measure: RouteMeasure,
    effect: EffectEstimate,
    p: f64,
}

/// Returns whether `blocks` has enough blocks (paired loads) to prove an effect of a route at this
/// evaluation of the comparison, if all blocks agreed. A comparison does not end with fewer blocks
/// (paired loads), because no route could then have a verdict.
pub(super) fn can_prove_routes(blocks: &[ComparisonBlock], evaluation: EvaluationNumber) -> bool {
    let routes = blocks.first().and_then(|block| block.arm_loads.first()).map_or(0, |reading| reading.routes.len());
    let error = INTERVAL_ERROR_PROBABILITY / (routes * RouteMeasure::ALL.len()).max(1) as f64 * evaluation.error_part();
    routes == 0 || 2f64.powi(1 - blocks.len().min(1000) as i32) <= error
}

/// Compares all routes over the valid blocks (paired loads) at one evaluation of the comparison.
/// The list is empty for a plan with a single route.
pub(super) fn compare_routes(
    settings: &ComparisonRules,
    blocks: &[ComparisonBlock],
    evaluation: EvaluationNumber,
) -> Vec<RouteComparison> {
    let Some(first) = blocks.first().and_then(|block| block.arm_loads.first()) else { return Vec::new() };
    let mut routes: Vec<RouteComparison> = Vec::with_capacity(first.routes.len());
    let mut tests = Vec::with_capacity(first.routes.len() * RouteMeasure::ALL.len());
    for (number, route) in first.routes.iter().enumerate() {
        let (both, sides) = blocks_with_route_on_both_sides(blocks, number);
        for measure in RouteMeasure::ALL {
            if let Ok(effect) = measure.effect_quantity(&sides).compute_effect(&both) {
                let p = (effect.p_two_sided() / evaluation.error_part()).min(1.0);
                tests.push(RouteTest { route: number, measure, effect, p });
            }
        }
        routes.push(route_totals(&route.name, blocks, number, sides.len()));
    }
    let adjusted = basics::holm_adjusted_p(&tests.iter().map(|test| test.p).collect::<Vec<_>>());
    let mut order: Vec<usize> = (0..tests.len()).collect();
    order.sort_by(|a, b| tests[*a].p.total_cmp(&tests[*b].p));
    // For each test, in the order of `tests`, the number by which Holm's method divides the error
    // probability.
    let mut families = vec![tests.len(); tests.len()];
    let mut family = tests.len();
    for at in order {
        families[at] = family;
        if adjusted[at] <= INTERVAL_ERROR_PROBABILITY {
            family -= 1;
        }
    }
    for ((test, p), family) in tests.iter().zip(adjusted).zip(families) {
        let more_is_better = test.measure == RouteMeasure::Success;
        let judged =
            JudgementSettings { margin: settings.margin, evaluation, family, is_primary: false, more_is_better };
        let mut compared = compare_measure(&test.effect, test.measure, judged, &[]);
        compared.p = p;
        routes[test.route].measures.push(compared);
    }
    routes
}

/// Returns the blocks (paired loads) in which A and B got requests of the route with index `at`,
/// and the route's readings in these blocks.
fn blocks_with_route_on_both_sides(
    blocks: &[ComparisonBlock],
    at: usize,
) -> (Vec<ComparisonBlock>, Vec<[ArmRouteFigures; 2]>) {
    let of = |block: &ComparisonBlock, arm: usize| {
        block.arm_loads.get(arm).and_then(|reading| reading.routes.get(at)).cloned()
    };
    let both = |block: &ComparisonBlock| Some([of(block, 0)?, of(block, 1)?]);
    let is_asked = |sides: &[ArmRouteFigures; 2]| sides.iter().all(|route| route.response_times.scheduled > 0);
    blocks.iter().filter_map(|block| Some((block.clone(), both(block).filter(is_asked)?))).unzip()
}

/// Sums the requests and the successes of a route over all blocks (paired loads). Leaves the
/// field `measures` of the result empty.
fn route_totals(name: &str, counted: &[ComparisonBlock], at: usize, blocks: usize) -> RouteComparison {
    let (mut requests, mut succeeded) = ([0; 2], [0; 2]);
    for block in counted {
        for (arm, reading) in block.arm_loads.iter().enumerate().take(2) {
            let Some(route) = reading.routes.get(at) else { continue };
            requests[arm] += route.response_times.scheduled;
            succeeded[arm] += route.response_times.succeeded();
        }
    }
    let rate = |arm: usize| if requests[arm] > 0 { succeeded[arm] as f64 / requests[arm] as f64 } else { 0.0 };
    RouteComparison { name: name.to_owned(), requests, success_rate: [rate(0), rate(1)], blocks, measures: Vec::new() }
}

/// Returns a warning about a route that succeeds on one side only, because such a route has no
/// ratio. Returns `None` if no route succeeds on one side only.
pub(super) fn one_sided_success_doubt(routes: &[RouteComparison]) -> Option<Doubt> {
    let never = |route: &RouteComparison, side: usize| {
        route.requests[side] > 0 && route.success_rate[side] <= 0.0 && route.success_rate[1 - side] > 0.0
    };
    let (route, side) =
        routes.iter().find_map(|route| (0..2).find(|side| never(route, *side)).map(|side| (route, side)))?;
    let failing_side = ["A", "B"][side];
    let other_side = ["A", "B"][1 - side];
    let text = format!(
        "the sides respond differently: request '{request}' never succeeds on side {failing_side}, but \
         {success_percent:.1} % of its requests succeed on side {other_side}",
        request = route.name,
        success_percent = route.success_rate[1 - side] * 100.0
    );
    Some(Doubt { kind: DoubtKind::SidesDiffer, text: text.into() })
}
