//! What one measure says of B against A ([`Compared`]): the ratio of the arms over all blocks, how sure it is, and whether it is
//! better, worse or the same.
//!
//! Not here: which measures there are, and how many share an error (`mod`, `by_route`); when to look (`looks`).

use super::looks::{Look, LookNumber};
use super::reading::{Block, Reading};
use super::rules::log_ratios_by;
use super::stats::{self, ConfidenceInterval};
use plimsoll_model::Criterion;
use plimsoll_model::rng::Rng;
use std::fmt;

/// Error of the control's interval whose half-width may widen the margin.
pub(super) const MARGIN_ERROR: f64 = 0.05;

/// What a comparison says of B against A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProveVerdict {
    /// A real difference beyond the margin, for the better.
    Better,
    /// A real difference beyond the margin, for the worse.
    Worse,
    /// Any difference lies inside the margin asked for, and none was seen.
    Same,
    /// A real difference inside the margin.
    Small,
    /// None of these can be said.
    Inconclusive,
}

impl fmt::Display for ProveVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProveVerdict::Better => "better",
            ProveVerdict::Worse => "worse",
            ProveVerdict::Same => "same",
            ProveVerdict::Small => "small",
            ProveVerdict::Inconclusive => "inconclusive",
        })
    }
}

/// What one measure says of B against A.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared<M = Criterion> {
    /// Which.
    pub measure: M,
    /// Whether it decides.
    pub primary: bool,
    /// Hodges-Lehmann estimate of B/A.
    pub ratio: f64,
    /// Interval of B/A that holds over all looks, and over all measures of its family together; `None`: too few blocks.
    pub ratio_interval: Option<ConfidenceInterval>,
    /// The interval of B/A by which it is the same, or not: two one-sided tests at 5 % over all looks are an interval at 90 %.
    pub equivalence_interval: Option<ConfidenceInterval>,
    /// p of no difference: of the primary measure over all looks (Bonferroni), of the others by Holm within their family.
    pub p: f64,
    /// The margin that was asked for, a share: what it takes to be the same.
    pub margin_asked: f64,
    /// The margin that noise leaves, a share: what it takes to be better or worse. At least the one asked for.
    pub margin: f64,
    /// What it says.
    pub verdict: ProveVerdict,
    /// The level of each arm in the measure's unit: the middle of both, apart by the estimated ratio. (The medians of the
    /// arms may lie the other way round than what the blocks say, as the machine drifts.)
    pub levels: [f64; 2],
}

impl<M> Compared<M> {
    /// The largest difference that the interval leaves, as a share; `None` with too few blocks.
    pub fn at_most(&self) -> Option<f64> {
        self.ratio_interval.map(|interval| (interval.upper - 1.0).abs().max((interval.lower - 1.0).abs()))
    }
}

/// The logarithms of the ratios of two measurements of one and the same build in neighbouring blocks, labelled first and
/// second at random.
pub(super) fn control_log_ratios(blocks: &[Block], seed: u64, value: impl Fn(&Reading) -> Option<f64>) -> Vec<f64> {
    let mut labels = Rng::stream(seed, u64::MAX);
    let mut ratios = Vec::with_capacity(blocks.len());
    for pair in blocks.chunks_exact(2) {
        for (one, other) in pair[0].readings.iter().zip(&pair[1].readings) {
            let sign = if labels.below(2) == 0 { 1.0 } else { -1.0 };
            if let (Some(one), Some(other)) = (value(one), value(other)) {
                ratios.push(sign * (other / one).ln());
            }
        }
    }
    ratios
}

/// The margin in logarithms: the wider of what was asked for and the control's half-width.
pub(super) fn margin_ln(asked: f64, control: &[f64]) -> f64 {
    let half_width = stats::interval(control, MARGIN_ERROR).map_or(0.0, |interval| interval.half_width());
    (1.0 + asked).ln().max(half_width)
}

/// What one look says, in logarithms. A difference is real where the wide interval has no 0. It is beyond the margin that
/// noise leaves: at a planned look with the whole interval, at the last one with the best estimate. It is inside the margin
/// asked for when the equivalence interval lies there as a whole: noise does not change what was asked.
pub(super) fn judge(seen: &Look, asked: f64, margin: f64, more_is_better: bool) -> ProveVerdict {
    let last = seen.number == LookNumber::Last;
    let (Some(interval), Some(wide)) = (seen.interval, seen.wide) else { return ProveVerdict::Inconclusive };
    let real = !wide.contains(0.0);
    let inside = seen.equivalence.is_some_and(|interval| interval.within_ratio(asked));
    let beyond = if last { seen.estimate.abs() > margin } else { interval.lower > margin || interval.upper < -margin };
    match (real, beyond, inside) {
        (true, true, _) if (seen.estimate > 0.0) == more_is_better => ProveVerdict::Better,
        (true, true, _) => ProveVerdict::Worse,
        (false, _, true) => ProveVerdict::Same,
        (true, false, true) => ProveVerdict::Small,
        // Inside to the best of our knowledge, not for certain.
        (true, false, false) if last && seen.estimate.abs() <= asked => ProveVerdict::Small,
        _ => ProveVerdict::Inconclusive,
    }
}

/// How a measure is judged among others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judged {
    /// The margin asked for, a share.
    pub(super) margin: f64,
    /// The control's labels follow from it.
    pub(super) seed: u64,
    /// The look.
    pub(super) look: LookNumber,
    /// So many measures share the look's part of the error.
    pub(super) family: usize,
    /// Whether it decides.
    pub(super) primary: bool,
    /// Whether more of it is better.
    pub(super) more_is_better: bool,
}

/// One measure at one look, by its value in each load; its p is that of this look alone. `None` where no block has it.
pub(super) fn compare<M>(
    counted: &[Block],
    measure: M,
    judged: Judged,
    value: impl Fn(&Reading) -> Option<f64>,
) -> Option<Compared<M>> {
    let Judged { look, family, primary, more_is_better, .. } = judged;
    let mut seen = Look::of(&log_ratios_by(counted, &value), look, family)?;
    if !primary {
        // They decide nothing: what their interval shows is enough.
        seen.wide = seen.interval;
    }
    let margin = margin_ln(judged.margin, &control_log_ratios(counted, judged.seed, &value));
    let median = |arm: usize| {
        let values: Vec<f64> = counted.iter().filter_map(|block| value(&block.readings[arm])).collect();
        stats::median(&values).unwrap_or(0.0)
    };
    let (middle, apart) = ((median(0) * median(1)).sqrt(), (seen.estimate / 2.0).exp());
    Some(Compared {
        measure,
        primary,
        ratio: seen.estimate.exp(),
        ratio_interval: seen.interval.map(|interval| interval.map(f64::exp)),
        equivalence_interval: seen.equivalence.map(|interval| interval.map(f64::exp)),
        p: seen.p,
        margin_asked: judged.margin,
        margin: margin.exp() - 1.0,
        verdict: judge(&seen, (1.0 + judged.margin).ln(), margin, more_is_better),
        levels: [middle / apart, middle * apart],
    })
}
