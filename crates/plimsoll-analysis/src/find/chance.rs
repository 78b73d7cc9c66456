//! Decides whether chance alone explains a bad trial. Suppose the server just meets the SLO at the
//! trial's rate. Chance explains the trial if at least 1 % of the trials at this rate would be as
//! bad.
//!
//! A trial that chance explains supports a load line ([`is_line_supported`]). A trial that chance
//! does not explain contradicts a load line ([`breaks_slo_even_if_disturbed`]). On a machine that
//! other programs use, the tried rates also move the interval of the load line ([`TriedRates`]).
//!
//! Not here: the estimate of the load line ([`plimsoll_statistics::line_distribution`]).

use super::search_settings::{is_line_or_confirming_trial, is_void_by_generator};
use super::search_state::SearchState;
use crate::judge::{TrialOutcome, Verdict};
use crate::sentence::Sentence;
use plimsoll_model::LoadPurpose;
use plimsoll_statistics::{BoundEvidence, Capacity};

/// Number of standard deviations by which the bad requests or the backlog of a trial may exceed
/// their expected number, and still count as chance. At a rate that just meets the SLO, 1 % of
/// trials exceed this number.
const CHANCE_DEVIATIONS: f64 = 2.33;
/// A trial is at the load line, and can confirm it, if the trial's rate is at least this share of
/// the lower end of the load line's interval.
pub(super) const AT_LINE_SHARE_MIN: f64 = 0.98;
/// For a server that stalls, a confirming trial counts only if the trial is long enough. The
/// minimum length is this share of the length of [`super::stalls::Stalls::confirming_trial_ns`].
const CONFIRMING_LENGTH_SHARE_MIN: f64 = 0.8;
/// If a trial meets the SLO at this share of the upper end of the load line's interval, or above,
/// the upper end is doubtful. On a machine that other programs use, the capacity may rise again,
/// and then higher rates also meet the SLO.
const DOUBTFUL_END_SHARE_MIN: f64 = 0.97;

/// Returns whether confirming trials support `low` as the lower end of the load line's interval. A
/// trial counts if its rate is at least 98 % of `low`. The trial supports `low` if it met the SLO,
/// or if chance explains its bad requests and backlog. A trial that does not support `low`
/// contradicts `low`, unless the rate of the trial is more than 2 % above `low`. More trials must
/// support `low` than contradict it. For a server that stalls, only trials of sufficient length
/// count.
pub(super) fn is_line_supported(state: &SearchState, capacity: Option<&Capacity>, low: f64) -> bool {
    let dispersion = backlog_dispersion(state, capacity);
    let long_ns = state.stalls.as_ref().map_or(0, |stalls| stalls.confirming_trial_ns());
    let confirms = state.history.iter().filter(|trial| trial.purpose == LoadPurpose::Confirm);
    let near = confirms.filter(|trial| trial.offered_rps().is_some_and(|rate| rate >= AT_LINE_SHARE_MIN * low));
    let length_ns_min = (long_ns as f64 * CONFIRMING_LENGTH_SHARE_MIN) as u64;
    let counted = near.filter(|trial| trial.planned_ns >= length_ns_min && !is_void_by_generator(trial));
    let meets = |trial: &&TrialOutcome| trial.verdict == Verdict::Pass || chance_explains_trial(trial, dispersion);
    let broke = counted.clone().filter(|trial| can_contradict_lower_end(trial, low) && !meets(trial)).count();
    counted.filter(meets).count() > broke
}

/// Returns whether the rate of a confirming trial is at most 2 % above `low`. A confirming trial at
/// a higher rate cannot contradict the load line.
pub(super) fn can_contradict_lower_end(trial: &TrialOutcome, low: f64) -> bool {
    trial.offered_rps().is_some_and(|rate| rate * AT_LINE_SHARE_MIN <= low)
}

/// Returns whether a trial broke the SLO by more than chance explains. `dispersion` is the result
/// of [`backlog_dispersion`].
pub(super) fn fails_beyond_chance(trial: &TrialOutcome, dispersion: f64) -> bool {
    trial.verdict == Verdict::Fail && !chance_explains_trial(trial, dispersion)
}

/// Returns the trials with verdicts that agree with the load line. If a trial near the load line
/// broke the SLO, but chance explains this, the trial supports its rate. The verdict of such a
/// trial becomes a pass, and its reason states the chance. Trials above `line_rps_max`, the upper
/// end of the load line's interval in 1/s, keep their verdicts.
pub(super) fn with_verdicts_by_chance(
    trials: &[TrialOutcome],
    line_rps_max: Option<f64>,
    dispersion: f64,
) -> Vec<TrialOutcome> {
    // A bound that allows no bad request cannot be broken by chance.
    let allows_chance = |bound: &BoundEvidence| bound.allowed_share > 0.0 || bound.bad_requests == 0;
    let is_within = |rate: f64| line_rps_max.is_none_or(|max| rate <= max);
    let verdict_by_chance = |trial: &TrialOutcome| {
        let passes = is_line_or_confirming_trial(trial)
            && trial.verdict == Verdict::Fail
            && trial.offered_rps().is_some_and(is_within)
            && !trial.evidence.is_generator_limited
            && trial.evidence.bounds.iter().all(allows_chance)
            && chance_explains_trial(trial, dispersion);
        let mut trial = trial.clone();
        if passes {
            trial.verdict = Verdict::Pass;
            trial.reason = Sentence::from("chance explains that ").append_sentence(&trial.reason);
            trial.evidence.has_failed_by_chance = true;
        }
        trial
    };
    trials.iter().map(verdict_by_chance).collect()
}

/// Returns the sum of the dispersions of arrivals and completions (I_a + I_s in
/// docs/explanation/load-line.md), which determines how much a backlog varies by chance. If the
/// capacity is not known, the dispersion of the completions is assumed to be 1, as for exponential
/// service times.
pub(super) fn backlog_dispersion(state: &SearchState, capacity: Option<&Capacity>) -> f64 {
    state.settings.arrivals.dispersion() + capacity.map_or(1.0, |capacity| capacity.dispersion)
}

/// Returns whether a trial broke the SLO by more than chance, even if other programs disturbed the
/// trial. If a disturbed trial broke the SLO, the machine did not sustain the rate, whether the
/// server or another program was the reason. `dispersion` is the result of [`backlog_dispersion`].
pub(super) fn breaks_slo_even_if_disturbed(trial: &TrialOutcome, dispersion: f64) -> bool {
    trial.verdict != Verdict::Pass && !is_void_by_generator(trial) && !chance_explains_evidence(trial, dispersion)
}

/// Returns whether other programs disturbed more than half of the trials that saturate the server
/// or are near the load line.
pub(super) fn is_machine_shared(history: &[TrialOutcome]) -> bool {
    let telling =
        || history.iter().filter(|trial| trial.purpose == LoadPurpose::Saturate || is_line_or_confirming_trial(trial));
    let disturbed = telling().filter(|trial| trial.interference.is_disturbed).count();
    2 * disturbed > telling().count()
}

/// The rates of the trials near the load line, on a machine that other programs use.
pub(super) struct TriedRates {
    /// The highest rate, in 1/s, whose trial met the SLO, or broke the SLO so slightly that chance
    /// explains it.
    pub highest_passed_rate_rps: Option<f64>,
    /// The rates above `highest_passed_rate_rps` that broke the SLO beyond chance, 1/s, the lowest
    /// first.
    pub failed_rates_rps: Vec<f64>,
}

impl TriedRates {
    /// Collects the rates of the trials near the load line. Disturbed trials count, because on such
    /// a machine the search states the load line of the disturbed server.
    pub(super) fn from_history(history: &[TrialOutcome], dispersion: f64) -> TriedRates {
        let near = || history.iter().filter(|trial| is_line_or_confirming_trial(trial) && !is_void_by_generator(trial));
        // A trial was stopped early because it was certain to fail, so chance does not explain the
        // failure of a stopped trial.
        let broke = |trial: &&TrialOutcome| trial.is_stopped_early || breaks_slo_even_if_disturbed(trial, dispersion);
        let met = near().filter(|trial| !broke(trial)).filter_map(TrialOutcome::offered_rps);
        let met_rps = met.reduce(f64::max);
        let broken = near().filter(broke).filter_map(TrialOutcome::offered_rps);
        let mut broken_rps: Vec<f64> = broken.filter(|rate| Some(*rate) > met_rps).collect();
        broken_rps.sort_by(f64::total_cmp);
        TriedRates { highest_passed_rate_rps: met_rps, failed_rates_rps: broken_rps }
    }

    /// Returns the lower end of the load line's interval: `lower`, or the highest rate that met the
    /// SLO if this rate is lower. A rate above the highest rate that met the SLO is not proven.
    /// Returns 0 if no rate met the SLO.
    pub(super) fn lower_end(&self, lower: f64) -> f64 {
        match self.highest_passed_rate_rps {
            Some(met_rps) if met_rps >= AT_LINE_SHARE_MIN * lower => lower,
            met_rps => met_rps.unwrap_or(0.0),
        }
    }

    /// Corrects `upper`, the estimated upper end of the load line's interval, by the tried rates.
    /// If a trial met the SLO near `upper`, the upper end becomes the lowest rate that broke the
    /// SLO, but at least `upper`. If a trial met the SLO near `upper` and no rate broke the SLO,
    /// the upper end is unknown (`None`). If no trial met the SLO near `upper`, the second-lowest
    /// rate that broke the SLO lowers the upper end.
    pub(super) fn upper_end(&self, upper: f64) -> Option<f64> {
        if self.highest_passed_rate_rps.is_some_and(|met_rps| makes_upper_end_doubtful(met_rps, upper)) {
            return self.failed_rates_rps.first().map(|rps| rps.max(upper));
        }
        Some(self.failed_rates_rps.get(1).map_or(upper, |rps| rps.min(upper)))
    }
}

/// Returns whether a trial that met the SLO at `met_rps` makes `upper`, the upper end of the load
/// line's interval, doubtful.
pub(super) fn makes_upper_end_doubtful(met_rps: f64, upper: f64) -> bool {
    met_rps >= DOUBTFUL_END_SHARE_MIN * upper
}

/// Returns whether a valid trial may have broken the SLO by chance alone, although the server meets
/// the SLO at this rate.
pub(super) fn chance_explains_trial(trial: &TrialOutcome, dispersion: f64) -> bool {
    !trial.is_stopped_early && trial.verdict != Verdict::Void && chance_explains_evidence(trial, dispersion)
}

/// Returns whether chance alone explains the bad (late or failed) requests and the backlog of a
/// trial, although the server meets the SLO at the trial's rate.
fn chance_explains_evidence(trial: &TrialOutcome, dispersion: f64) -> bool {
    let backlog_deviation = (dispersion * trial.evidence.scheduled as f64 / 2.0).sqrt();
    trial.evidence.bounds.iter().all(chance_explains_bound)
        && trial.evidence.backlog_growth_requests <= CHANCE_DEVIATIONS * backlog_deviation + 1.0
}

/// Returns whether the number of bad requests exceeds the allowed number by no more than chance.
fn chance_explains_bound(bound: &BoundEvidence) -> bool {
    let mean = bound.allowed_share * bound.scheduled as f64;
    bound.bad_requests as f64 <= mean + CHANCE_DEVIATIONS * (mean * bound.bunch_size).sqrt() + bound.bunch_size
}

/// Returns whether chance explains the bad requests of several trials together.
pub(super) fn chance_explains_bad_requests(trials: &[&TrialOutcome]) -> bool {
    let bounds = trials.iter().map(|trial| trial.evidence.bounds.len()).min().unwrap_or(0);
    (0..bounds).all(|at| {
        let each = || trials.iter().map(|trial| &trial.evidence.bounds[at]);
        let Some(first) = each().next() else { return true };
        chance_explains_bound(&BoundEvidence {
            scheduled: each().map(|bound| bound.scheduled).sum(),
            bad_requests: each().map(|bound| bound.bad_requests).sum(),
            bunch_size: each().map(|bound| bound.bunch_size).fold(1.0, f64::max),
            ..*first
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::OfferedLoad;

    #[test]
    fn chance_changes_only_verdicts_up_to_the_load_line() {
        let check = |name: &str, rate: f64, backlog_growth_requests: f64, expect: Verdict| {
            let mut trial =
                TrialOutcome::one_second_trial(LoadPurpose::Confirm, OfferedLoad::Rate(rate), Verdict::Fail);
            trial.reason = "the backlog grew".into();
            trial.evidence.scheduled = 1_000;
            trial.evidence.backlog_growth_requests = backlog_growth_requests;
            let shown = &with_verdicts_by_chance(&[trial.clone()], Some(194.0), 1.0)[0];
            assert_eq!(shown.verdict, expect, "{name}");
            match expect {
                Verdict::Pass => assert_eq!(shown.reason, "chance explains that the backlog grew".into(), "{name}"),
                _ => assert_eq!(*shown, trial, "{name}"),
            }
        };
        // The standard deviation of the backlog's growth is about 22 requests.
        check("a backlog that chance explains", 190.0, 26.0, Verdict::Pass);
        check("a backlog beyond chance", 190.0, 80.0, Verdict::Fail);
        check("a rate above the load line", 200.0, 26.0, Verdict::Fail);
    }

    #[test]
    fn tried_rates_move_the_interval_of_a_shared_machine() {
        let check = |met_rps: Option<f64>, broken_rps: &[f64], expect: Option<f64>| {
            let tried = TriedRates { highest_passed_rate_rps: met_rps, failed_rates_rps: broken_rps.to_vec() };
            assert_eq!(tried.upper_end(100.0), expect, "{met_rps:?} {broken_rps:?}");
            let proven_rps = met_rps.map_or(0.0, |rps| rps.min(85.0));
            assert_eq!(tried.lower_end(85.0), proven_rps, "{met_rps:?} {broken_rps:?}");
        };
        check(None, &[], Some(100.0));
        check(Some(90.0), &[], Some(100.0));
        // One trial that broke the SLO may be chance; two trials that broke the SLO lower the upper
        // end of the interval.
        check(Some(80.0), &[85.0], Some(100.0));
        check(Some(80.0), &[85.0, 95.0, 99.0], Some(95.0));
        check(None, &[110.0, 120.0], Some(100.0));
        // If a rate near the upper end met the SLO, the upper end rises to the lowest rate that
        // broke the SLO. If no rate broke the SLO, the upper end is unknown.
        check(Some(98.0), &[], None);
        check(Some(98.0), &[99.0], Some(100.0));
        check(Some(104.0), &[110.0, 120.0], Some(110.0));
    }
}
