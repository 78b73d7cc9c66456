//! Whether one build is better than another: blocks of paired loads, and a verdict with a known rate of false alarms.
//!
//! A block is one short load on each arm (A and B), one right after the other, in an order drawn at random. What a block
//! says is the ratio B/A; what the machine does meanwhile meets both arms alike, or either with the same chance. All
//! inference is over blocks, never over requests. One *primary* measure decides; the others stand beside it, corrected
//! for their number. The same blocks hold a control: A against A and B against B in neighbouring blocks, which shows
//! how much two measurements of one and the same build differ here.
//!
//! Everything is a pure function of the blocks measured so far. Not here: carrying loads out, starting builds.

mod by_route;
mod compared;
pub mod enough;
pub mod ladder;
pub mod looks;
pub mod past;
pub mod reading;
pub mod rules;
pub mod stats;

pub use by_route::{RouteCompared, RouteMeasure};
pub use compared::{Compared, ProveVerdict};
pub use enough::budget_enough_ns;
pub use ladder::{Ladder, Rung, ladder};
pub use past::Past;
pub use plimsoll_model::Criterion;
pub use reading::{Block, Blocks, Reading, RouteReading, arm_name, blocks, order};
pub use rules::{Rules, log_ratios};
pub use stats::ConfidenceInterval;

use crate::doubts::{DoubtKind, Doubts};
use crate::others::Others;
use crate::sentence::{Remedy, Sentence};
use compared::{Judged, MARGIN_ERROR, compare, control_log_ratios, judge, margin_ln};
use looks::{CONTROL_ERROR, Look, LookNumber};
use rules::counting;

/// So many void blocks, and twice as many as others, end a comparison.
const VOIDS_MAX: usize = 6;

/// Why a comparison ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComparisonEnd {
    /// A planned look was certain.
    Verdict,
    /// The number of blocks asked for.
    Blocks,
    /// The time was used up.
    Budget,
    /// Hardly a block counted: why, the last doubt says.
    Void,
    /// Something else, in words: ^C, a build that died.
    Broken(String),
}

/// The A/A control.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Control {
    /// Whether measurements of the same build differ: then nothing can be said.
    pub rejected: bool,
    /// p of no difference, of the last look alone.
    pub p: f64,
    /// Half-width of the 95 % interval of the ratio of two measurements of the same build; `None`: too few blocks.
    pub half_width: Option<f64>,
}

/// The primary measure after so many blocks, at the error of a last look: how the interval narrows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// Blocks that count.
    pub blocks: usize,
    /// Estimate of B/A.
    pub ratio: f64,
    /// Its interval; `None`: too few blocks.
    pub ratio_interval: Option<ConfidenceInterval>,
    /// The margin at this point, a share.
    pub margin: f64,
}

/// The outcome of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// Of the primary measure, unless something forbids it.
    pub verdict: ProveVerdict,
    /// All measures that were taken, the primary one first.
    pub measures: Vec<Compared>,
    /// Each of several routes, in the order of the plan; none where there is only one.
    pub routes: Vec<RouteCompared>,
    /// The control.
    pub control: Control,
    /// Blocks that count.
    pub blocks: usize,
    /// Blocks that say nothing: the generator was the limit, or nothing was answered in the time.
    pub blocks_void: usize,
    /// About how many more blocks it would take, when inconclusive for want of blocks.
    pub blocks_more: Option<usize>,
    /// The budget that would hold them, ns; for who knows how long blocks take ([`budget_enough_ns`]) to fill in.
    pub budget_enough_ns: Option<u64>,
    /// Why it ended.
    pub stopped_by: ComparisonEnd,
    /// What speaks against these figures.
    pub doubts: Doubts,
}

/// The planned look at exactly these blocks, if it is certain.
fn certain(settings: &Rules, counted: &[Block]) -> Option<LookNumber> {
    let number = looks::interim(counted.len()).filter(|number| by_route::can_tell(counted, *number))?;
    let seen = Look::of(&log_ratios(counted, settings.primary), number, 1)?;
    let control = control_of(settings, counted);
    let margin = margin_ln(settings.margin, &control);
    let asked = (1.0 + settings.margin).ln();
    match judge(&seen, asked, margin, settings.primary.more_is_better()) {
        ProveVerdict::Better | ProveVerdict::Worse => Some(number),
        // Noise beyond the margin narrows with more blocks: until then "inside" says little.
        ProveVerdict::Same | ProveVerdict::Small if margin <= asked => Some(number),
        _ => None,
    }
}

/// Whether to stop after these blocks for a reason that lies in them; time is the caller's.
pub fn stop(settings: &Rules, blocks: &[Block]) -> Option<ComparisonEnd> {
    let counted = counting(blocks, settings.primary);
    // Others come and go: while they disturb, blocks are lost, but the next one may count.
    let void = blocks.iter().filter(|block| !block.disturbed()).count() - counted.len();
    if void >= VOIDS_MAX && void > 2 * counted.len() {
        return Some(ComparisonEnd::Void);
    }
    if certain(settings, &counted).is_some() {
        return Some(ComparisonEnd::Verdict);
    }
    settings.blocks_max.is_some_and(|most| counted.len() >= most).then_some(ComparisonEnd::Blocks)
}

/// How the primary measure stands after these blocks, to be shown while more are measured.
pub fn standing(settings: &Rules, blocks: &[Block]) -> Option<Standing> {
    standing_of(settings, &counting(blocks, settings.primary))
}

fn standing_of(settings: &Rules, counted: &[Block]) -> Option<Standing> {
    let seen = Look::of(&log_ratios(counted, settings.primary), LookNumber::Last, 1)?;
    let control = control_of(settings, counted);
    Some(Standing {
        blocks: counted.len(),
        ratio: seen.estimate.exp(),
        ratio_interval: seen.interval.map(|interval| interval.map(f64::exp)),
        margin: margin_ln(settings.margin, &control).exp() - 1.0,
    })
}

/// How the interval narrowed, at up to 100 points of the way.
pub fn narrowing(settings: &Rules, blocks: &[Block]) -> Vec<Standing> {
    let counted = counting(blocks, settings.primary);
    let step = counted.len().div_ceil(100).max(1);
    let mut after: Vec<usize> = (step..=counted.len()).step_by(step).collect();
    if after.last() != Some(&counted.len()) && !counted.is_empty() {
        after.push(counted.len());
    }
    after.into_iter().filter_map(|n| standing_of(settings, &counted[..n])).collect()
}

/// What all blocks together say.
pub fn conclude(settings: &Rules, blocks: &[Block], stopped_by: ComparisonEnd) -> Proof {
    let counted = counting(blocks, settings.primary);
    let look = if stopped_by == ComparisonEnd::Verdict { certain(settings, &counted) } else { None };
    let look = look.unwrap_or(LookNumber::Last);
    let control_values = control_of(settings, &counted);
    let control_p = stats::sign_flip_p(&control_values);
    let control = Control {
        rejected: control_p <= CONTROL_ERROR * look.part(),
        p: control_p,
        half_width: stats::interval(&control_values, MARGIN_ERROR).map(|interval| interval.half_width().exp() - 1.0),
    };
    let mut measures: Vec<Compared> = compare_all(settings, &counted, settings.primary, look, 1).into_iter().collect();
    for compared in &mut measures {
        compared.p = (compared.p / look.part()).min(1.0);
    }
    measures.append(&mut secondary(settings, &counted, look));
    let mut verdict = measures.first().map_or(ProveVerdict::Inconclusive, |compared| compared.verdict);
    let mut routes = by_route::compare_routes(settings, &counted, look);
    let void = blocks.len() - counted.len();
    let mut doubts = reading::void_blocks(blocks, counted.len());
    doubts.extend(reading::answers_differ(&counted));
    doubts.extend(by_route::succeed_on_one_side(&routes));
    if let ComparisonEnd::Broken(reason) = &stopped_by {
        doubts.add(DoubtKind::Ended, format!("no verdict, because the comparison broke off: {reason}"));
        verdict = ProveVerdict::Inconclusive;
    }
    if stopped_by == ComparisonEnd::Void {
        doubts.add(DoubtKind::Void, "no verdict, because hardly a block counted");
        verdict = ProveVerdict::Inconclusive;
    }
    let loads = counted.iter().flat_map(|block| &block.readings).map(|reading| &reading.others);
    if let Others { disturbed: true, reason: Some(reason), .. } = Others::over(loads, "loads that count") {
        let text = format!("the machine was disturbed: {reason}, as was asked for (");
        doubts.add(DoubtKind::Others, Sentence::from(text).remedy(Remedy::CountDisturbed).words(")"));
    }
    let disturbed = blocks.iter().filter(|block| block.disturbed()).count();
    let disturbed_mostly = disturbed > counted.len();
    if disturbed_mostly {
        let sentence =
            "no verdict, because others disturbed more blocks than count: stop what else runs, or ask again later";
        doubts.add(DoubtKind::Others, sentence);
        verdict = ProveVerdict::Inconclusive;
    }
    if control.rejected {
        let text = "no verdict, because two measurements of the same build differ (the A/A control)";
        doubts.add(DoubtKind::Unlike, text);
        verdict = ProveVerdict::Inconclusive;
    }
    let refused =
        control.rejected || disturbed_mostly || matches!(stopped_by, ComparisonEnd::Broken(_) | ComparisonEnd::Void);
    if refused {
        routes
            .iter_mut()
            .flat_map(|route| &mut route.measures)
            .for_each(|one| one.verdict = ProveVerdict::Inconclusive);
    }
    // What decides says what the whole says.
    measures.iter_mut().filter(|one| one.primary).for_each(|one| one.verdict = verdict);
    let only_blocks_are_missing = verdict == ProveVerdict::Inconclusive
        && matches!(stopped_by, ComparisonEnd::Blocks | ComparisonEnd::Budget)
        && !control.rejected
        && !disturbed_mostly;
    let blocks_more = only_blocks_are_missing.then(|| enough::blocks_more(settings, &counted));
    let (blocks, budget_enough_ns) = (counted.len(), None);
    Proof {
        verdict,
        measures,
        routes,
        control,
        blocks,
        blocks_void: void,
        blocks_more,
        budget_enough_ns,
        stopped_by,
        doubts,
    }
}

/// The measures that do not decide, each at its share of the look's error, their p adjusted for their number.
fn secondary(settings: &Rules, counted: &[Block], look: LookNumber) -> Vec<Compared> {
    let taken =
        |measure: &Criterion| *measure != settings.primary && log_ratios(counted, *measure).len() == counted.len();
    // At a fixed rate goodput is that rate.
    let others: Vec<Criterion> = Criterion::ALL
        .into_iter()
        .filter(taken)
        .filter(|measure| *measure != Criterion::Goodput || !settings.primary.at_fixed_rate())
        .collect();
    let mut compared: Vec<Compared> =
        others.iter().filter_map(|measure| compare_all(settings, counted, *measure, look, others.len())).collect();
    let adjusted = stats::holm(&compared.iter().map(|one| one.p).collect::<Vec<_>>());
    for (one, p) in compared.iter_mut().zip(adjusted) {
        one.p = p;
    }
    compared
}

/// One measure of all requests, in a family that shares the error of a look.
fn compare_all(
    settings: &Rules,
    counted: &[Block],
    measure: Criterion,
    look: LookNumber,
    family: usize,
) -> Option<Compared> {
    let primary = measure == settings.primary;
    let more_is_better = measure.more_is_better();
    let judged = Judged { margin: settings.margin, seed: settings.seed, look, family, primary, more_is_better };
    compare(counted, measure, judged, |reading| reading.value(measure))
}

/// The control of the measure that decides.
fn control_of(settings: &Rules, counted: &[Block]) -> Vec<f64> {
    control_log_ratios(counted, settings.seed, |reading| reading.value(settings.primary))
}
