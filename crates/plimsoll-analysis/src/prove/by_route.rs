//! Each of several routes, B against A: its share of successes and its response times, over the
//! same blocks.
//!
//! Nobody said beforehand which route matters, so all of them together have one error: the tests of
//! all routes are one family, and Holm's method shares the error out among them. The smallest p is
//! judged at the error divided by the number of tests, the next at the error divided by one less,
//! and so on up to the first that rejects nothing; the rest are judged as that one. They decide
//! nothing about the whole. Not here: the measure that does.

use super::compared::{JudgementTerms, MeasureComparison, compare};
use super::looks::{ERROR, LookNumber};
use super::reading::{Block, RouteReading};
use super::resample::{BlockAmount, ProvedEffect};
use super::rules::{Quantity, Rules};
use super::stats;
use crate::doubts::{Doubt, DoubtKind};

/// The measures of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteMeasure {
    /// Share of its requests that succeeded.
    Success,
    /// Median response time.
    P50,
    /// Response time that 99 % stay below.
    P99,
}

impl RouteMeasure {
    /// All of them.
    pub const ALL: [RouteMeasure; 3] = [RouteMeasure::Success, RouteMeasure::P50, RouteMeasure::P99];

    /// The quantity behind its effect.
    fn quantity(self, blocks: &[[RouteReading; 2]]) -> Quantity<'_> {
        let times =
            |q| Quantity::Quantile(q, blocks.iter().map(|sides| [&sides[0].ledger, &sides[1].ledger]).collect());
        match self {
            RouteMeasure::Success => {
                let amount = |route: &RouteReading| BlockAmount {
                    of: route.ledger.succeeded() as f64,
                    per: route.ledger.scheduled as f64,
                };
                Quantity::Amounts(blocks.iter().map(|[a, b]| [amount(a), amount(b)]).collect())
            }
            RouteMeasure::P50 => times(0.5),
            RouteMeasure::P99 => times(0.99),
        }
    }
}

/// One route, B against A.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteComparison {
    /// Its name.
    pub name: String,
    /// Requests in the blocks that count, by side.
    pub requests: [u64; 2],
    /// Share of them that succeeded, by side, 0..=1.
    pub success_rate: [f64; 2],
    /// Blocks in which both sides got such requests.
    pub blocks: usize,
    /// The compared measures: a route without any success has no ratio.
    pub measures: Vec<MeasureComparison<RouteMeasure>>,
}

/// One test of the family: its route, its measure, its effect, and its p over all looks.
struct Test {
    route: usize,
    measure: RouteMeasure,
    effect: ProvedEffect,
    p: f64,
}

/// Whether this number of blocks can decide about a route at this look, if all blocks agreed. A
/// comparison does not end before, or it would say nothing about its routes.
pub(super) fn can_tell(counted: &[Block], look: LookNumber) -> bool {
    let routes = counted.first().and_then(|block| block.readings.first()).map_or(0, |reading| reading.routes.len());
    let error = ERROR / (routes * RouteMeasure::ALL.len()).max(1) as f64 * look.part();
    routes == 0 || 2f64.powi(1 - counted.len().min(1000) as i32) <= error
}

/// All routes over the blocks that count, at one look; none where there is only one.
pub(super) fn compare_routes(settings: &Rules, counted: &[Block], look: LookNumber) -> Vec<RouteComparison> {
    let Some(first) = counted.first().and_then(|block| block.readings.first()) else { return Vec::new() };
    let mut routes: Vec<RouteComparison> = Vec::with_capacity(first.routes.len());
    let mut tests = Vec::with_capacity(first.routes.len() * RouteMeasure::ALL.len());
    for (number, route) in first.routes.iter().enumerate() {
        let (both, sides) = common_blocks(counted, number);
        for measure in RouteMeasure::ALL {
            if let Ok(effect) = measure.quantity(&sides).effect(&both) {
                let p = (effect.p() / look.part()).min(1.0);
                tests.push(Test { route: number, measure, effect, p });
            }
        }
        routes.push(summed(&route.name, counted, number, sides.len()));
    }
    let adjusted = stats::holm(&tests.iter().map(|test| test.p).collect::<Vec<_>>());
    let mut order: Vec<usize> = (0..tests.len()).collect();
    order.sort_by(|a, b| tests[*a].p.total_cmp(&tests[*b].p));
    // So many tests share the error, for each in the order of `tests`.
    let mut families = vec![tests.len(); tests.len()];
    let mut family = tests.len();
    for at in order {
        families[at] = family;
        if adjusted[at] <= ERROR {
            family -= 1;
        }
    }
    for ((test, p), family) in tests.iter().zip(adjusted).zip(families) {
        let more_is_better = test.measure == RouteMeasure::Success;
        let judged = JudgementTerms { margin: settings.margin, look, family, primary: false, more_is_better };
        let mut compared = compare(&test.effect, test.measure, judged, &[]);
        compared.p = p;
        routes[test.route].measures.push(compared);
    }
    routes
}

/// The blocks in which both sides got requests of a route, with their readings of it.
fn common_blocks(counted: &[Block], at: usize) -> (Vec<Block>, Vec<[RouteReading; 2]>) {
    let of = |block: &Block, arm: usize| block.readings.get(arm).and_then(|reading| reading.routes.get(at)).cloned();
    let both = |block: &Block| Some([of(block, 0)?, of(block, 1)?]);
    let is_asked = |sides: &[RouteReading; 2]| sides.iter().all(|route| route.ledger.scheduled > 0);
    counted.iter().filter_map(|block| Some((block.clone(), both(block).filter(is_asked)?))).unzip()
}

/// The number of requests of a route, and its success rate.
fn summed(name: &str, counted: &[Block], at: usize, blocks: usize) -> RouteComparison {
    let (mut requests, mut succeeded) = ([0; 2], [0; 2]);
    for block in counted {
        for (arm, reading) in block.readings.iter().enumerate().take(2) {
            let Some(route) = reading.routes.get(at) else { continue };
            requests[arm] += route.ledger.scheduled;
            succeeded[arm] += route.ledger.succeeded();
        }
    }
    let rate = |arm: usize| if requests[arm] > 0 { succeeded[arm] as f64 / requests[arm] as f64 } else { 0.0 };
    RouteComparison { name: name.to_owned(), requests, success_rate: [rate(0), rate(1)], blocks, measures: Vec::new() }
}

/// The doubt about a route that succeeds on one side only: without successes there is no ratio.
pub(super) fn succeed_on_one_side(routes: &[RouteComparison]) -> Option<Doubt> {
    let never = |route: &RouteComparison, side: usize| {
        route.requests[side] > 0 && route.success_rate[side] <= 0.0 && route.success_rate[1 - side] > 0.0
    };
    let (route, side) =
        routes.iter().find_map(|route| (0..2).find(|side| never(route, *side)).map(|side| (route, side)))?;
    let letter = ["A", "B"][side];
    let other = ["A", "B"][1 - side];
    let text = format!(
        "the targets respond differently: '{}' never succeeds on {letter}, but on {other} ({:.1} %)",
        route.name,
        route.success_rate[1 - side] * 100.0
    );
    Some(Doubt { kind: DoubtKind::Unlike, text: text.into() })
}
