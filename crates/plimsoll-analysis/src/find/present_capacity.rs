//! The last change of the server's capacity during a search ([`LastCapacityChange`]). During a
//! search, exhausted CPU credit, added machines, a warm cache or a leak may change the capacity.
//! Trials before a change of the capacity have no information about the present load line.
//!
//! The saturated trials are split where the capacities before and after differ most. The split
//! counts as a change if the capacities differ by more than chance. The difference must also be
//! larger than one or two trials disturbed by other processes would cause. Open trials with a
//! growing backlog are left out, because some servers complete less under more load.
//!
//! Not here: quotas per time window ([`super::quota`]). Servers that alternate between two speeds
//! have an interval that contains both speeds ([`super::capacity`]).

use crate::doubts::DoubtKind;
use crate::format;
use crate::judge::{TrialOutcome, Verdict};
use crate::sentence::{Remedy, Sentence};
use plimsoll_model::LoadPurpose;
use plimsoll_statistics::basics;

/// The minimum relative change of the capacity. A smaller change is within the usual variation of
/// servers.
const CHANGE_MIN: f64 = 0.1;
/// A change of the capacity must exceed this number of standard errors of the difference between
/// the two median capacities.
const CHANGE_STANDARD_ERRORS_MIN: f64 = 5.0;
/// A change of the capacity must also exceed this number of standard errors, computed from the
/// scatter of the trials before and after (one-sided 0.1 %). Some servers' capacities vary by 5 %
/// from trial to trial.
const CHANGE_SCATTER_ERRORS_MIN: f64 = 3.1;
/// Ratio of the standard error of a median to the standard error of a mean (normal distribution).
const MEDIAN_TO_MEAN_ERROR_RATIO: f64 = 1.25;
/// The minimum number of trials before a change. If only one trial came before the change, the
/// search ignores this trial, but does not report the change.
const TRIALS_BEFORE_CHANGE_MIN: usize = 1;
/// The minimum number of trials after a change. Other processes disturb one trial in ten, but
/// hardly ever three consecutive trials.
const TRIALS_AFTER_CHANGE_MIN: usize = 3;
/// The search reports a change only after at least this number of trials, because other processes
/// may have disturbed a single trial.
const REPORTED_TRIALS_BEFORE_MIN: usize = 2;
/// The minimum share of the trials before a change whose capacities lie on one side of the midpoint
/// between the old and the new capacity. The same share of the trials after the change must lie on
/// the other side of the midpoint.
const SAME_SIDE_TRIALS_SHARE_MIN: f64 = 0.8;

/// The last change of the server's capacity during the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LastCapacityChange {
    /// Index of the first trial since the last change of the capacity.
    pub first_trial_index: usize,
    /// Capacity before the last change, 1/s.
    pub before_rps: f64,
    /// Capacity since the last change, 1/s.
    pub present_rps: f64,
    /// Total length of the trials since the last change, s.
    pub seconds: f64,
    /// Number of trials that measured the capacity between the previous change and the last change.
    pub trials_at_previous_capacity: usize,
    /// Number of consecutive changes in one direction, at least 1. Two or more changes form a
    /// trend, which may continue.
    pub consecutive_change_count: usize,
}

/// The capacity that one trial shows: the index of the trial, the completions a second, and the
/// relative standard error of the completions a second.
#[derive(Debug, Clone, Copy)]
struct TrialCapacity {
    trial: usize,
    rps: f64,
    error: f64,
}

impl LastCapacityChange {
    /// Finds the last change of the server's capacity in the trials of a search. Returns `None` if
    /// the capacity did not change.
    pub(super) fn detect(history: &[TrialOutcome]) -> Option<LastCapacityChange> {
        let shown = TrialCapacity::from_history(history);
        let splits = change_indices(&shown);
        let last = *splits.last()?;
        let level = |from: usize, to: usize| median(&shown[from..to], |it| it.rps);
        let ends = || splits.iter().copied().skip(1).chain([shown.len()]);
        let levels: Vec<f64> = [level(0, splits[0])]
            .into_iter()
            .chain(splits.iter().zip(ends()).map(|(from, to)| level(*from, to)))
            .collect();
        let rises: Vec<bool> = levels.windows(2).map(|pair| pair[1] > pair[0]).collect();
        let changes = rises.iter().rev().take_while(|rise| Some(*rise) == rises.last()).count();
        let first = shown[last].trial;
        Some(LastCapacityChange {
            first_trial_index: first,
            before_rps: levels[levels.len() - 2],
            present_rps: levels[levels.len() - 1],
            seconds: history[first..].iter().map(|trial| trial.duration_ns as f64 / 1e9).sum(),
            trials_at_previous_capacity: last - splits.len().checked_sub(2).map_or(0, |at| splits[at]),
            consecutive_change_count: changes,
        })
    }

    /// Returns the trials since the last change of the capacity, and the trials of the climb
    /// (closed loads of more and more users). The climb shows how many users the server handles at
    /// once, so its trials always count.
    pub(super) fn trials_at_present_capacity(
        history: &[TrialOutcome],
        era: Option<LastCapacityChange>,
    ) -> Vec<TrialOutcome> {
        let first = era.map_or(0, |era| era.first_trial_index);
        let counts = |it: &(usize, &TrialOutcome)| it.0 >= first || it.1.purpose == LoadPurpose::Peak;
        history.iter().enumerate().filter(counts).map(|(_, trial)| trial.clone()).collect()
    }

    /// Returns whether the last trials suggest a change of the capacity that more saturated trials
    /// could confirm. A change is suspected if the last saturated trials, or the last open trial,
    /// differ from earlier trials.
    pub(super) fn is_change_suspected(history: &[TrialOutcome]) -> bool {
        let shown = TrialCapacity::from_history(history);
        let differ = (1..TRIALS_AFTER_CHANGE_MIN).any(|last| {
            let Some(at) = shown.len().checked_sub(last).filter(|at| *at >= REPORTED_TRIALS_BEFORE_MIN) else {
                return false;
            };
            let (before, after) = shown.split_at(at);
            let ratio = |it: &TrialCapacity| (it.rps / median(before, |it| it.rps)).ln();
            let beyond = |it: &TrialCapacity| {
                CHANGE_MIN.max(CHANGE_STANDARD_ERRORS_MIN * it.error.hypot(median(before, |it| it.error)))
            };
            let all = |sign: f64| after.iter().all(|it| sign * ratio(it) > beyond(it));
            all(1.0) || all(-1.0)
        });
        let Some(last) = history.iter().rfind(|trial| trial.purpose != LoadPurpose::Settle) else { return false };
        let all_rps = median(&shown, |it| it.rps);
        let open = match (shown.is_empty(), last.verdict, last.offered_rps()) {
            (false, Verdict::Pass, Some(rate)) => rate > all_rps * (1.0 + CHANGE_MIN),
            (false, Verdict::Fail, Some(rate)) => {
                let did = last.evidence.saturated_rps.unwrap_or(rate);
                did < all_rps * (1.0 - CHANGE_MIN)
                    && did < rate * (1.0 - CHANGE_MIN)
                    && last.evidence.failed_count() == 0
            }
            _ => false,
        };
        differ || open
    }

    /// Returns whether the search reports the change of the capacity. A change after a single trial
    /// is not reported, because other processes may have disturbed this trial.
    pub(super) fn is_reported(&self) -> bool {
        self.trials_at_previous_capacity >= REPORTED_TRIALS_BEFORE_MIN
    }

    /// Returns whether the capacity changed at least twice in one direction.
    pub(super) fn is_trend(&self) -> bool {
        self.consecutive_change_count > 1
    }

    /// Returns whether the last change lowered the capacity.
    pub(super) fn has_fallen(&self) -> bool {
        self.present_rps < self.before_rps
    }

    /// Returns the doubt that describes the change and its consequence for the load line.
    pub(super) fn capacity_change_doubt(&self) -> (DoubtKind, Sentence) {
        let (before_rps, present_rps) = (format::rate(self.before_rps), format::rate(self.present_rps));
        let change = match (self.has_fallen(), self.is_trend()) {
            (true, false) => format!(
                "The server's capacity fell from {before_rps} to {present_rps} a second during the search. An \
                 exhausted CPU credit may be the reason."
            ),
            (true, true) => format!(
                "The server's capacity fell repeatedly during the search, most recently from {before_rps} to \
                 {present_rps} a second. A leak or growing data may be the reason."
            ),
            (false, false) => format!(
                "The server's capacity rose from {before_rps} to {present_rps} a second during the search. Scaling \
                 or a warm cache may be the reason."
            ),
            (false, true) => format!(
                "The server's capacity rose repeatedly during the search, most recently from {before_rps} to \
                 {present_rps} a second. A cache that fills may be the reason."
            ),
        };
        let consequence = match self.is_trend() {
            true => "The server's capacity may change further.",
            false => "Trials before the change of the capacity do not count.",
        };
        let text = format!(
            "{change} {consequence} The load line describes only the last {recent_time} of the search. A longer \
             search observes more of this change (",
            recent_time = format::duration(self.seconds.round() * 1e9),
        );
        (DoubtKind::Server, Sentence::from(text).remedy(Remedy::Budget).words(")."))
    }
}

impl TrialCapacity {
    /// Returns the capacities of all trials that show a capacity, in order.
    fn from_history(history: &[TrialOutcome]) -> Vec<TrialCapacity> {
        history.iter().enumerate().filter_map(|(at, trial)| TrialCapacity::from_trial(at, trial)).collect()
    }

    fn from_trial(trial: usize, outcome: &TrialOutcome) -> Option<TrialCapacity> {
        let evidence = &outcome.evidence;
        let it = evidence.saturation.filter(|it| it.seconds > 0.0 && it.completed > 0.0)?;
        let counts =
            !(evidence.is_generator_limited || outcome.interference.is_disturbed || evidence.is_rejecting_surplus);
        let error = (it.dispersion.max(0.0) / it.completed).sqrt().min(1.0);
        counts.then(|| TrialCapacity { trial, rps: it.completed / it.seconds, error })
    }
}

/// Returns all indices where the capacity changed, in order. A trial during a change has an
/// intermediate capacity, so changes closer than two trials count as one.
fn change_indices(trials: &[TrialCapacity]) -> Vec<usize> {
    let Some((at, ..)) = split_at_largest_change(trials) else { return Vec::new() };
    let after = change_indices(&trials[at..]).into_iter().map(|more| at + more);
    let mut all: Vec<usize> = change_indices(&trials[..at]).into_iter().chain([at]).chain(after).collect();
    for place in (1..all.len()).rev() {
        if all[place] - all[place - 1] < REPORTED_TRIALS_BEFORE_MIN {
            all.remove(place - 1);
        }
    }
    all
}

/// Returns the index where the capacities of the trials before and after differ most, and both
/// median capacities, 1/s. Returns `None` if the capacities do not differ enough.
fn split_at_largest_change(trials: &[TrialCapacity]) -> Option<(usize, f64, f64)> {
    let last = trials.len().checked_sub(TRIALS_AFTER_CHANGE_MIN)?;
    let mut best: Option<(f64, (usize, f64, f64))> = None;
    for at in TRIALS_BEFORE_CHANGE_MIN..=last {
        let (before, after) = trials.split_at(at);
        let (from, to) = (median(before, |it| it.rps), median(after, |it| it.rps));
        let change = (to / from).ln();
        let error = |side: &[TrialCapacity]| {
            MEDIAN_TO_MEAN_ERROR_RATIO * median(side, |it| it.error) / (side.len() as f64).sqrt()
        };
        let by_chance = CHANGE_STANDARD_ERRORS_MIN * error(before).hypot(error(after));
        let by_scatter = CHANGE_SCATTER_ERRORS_MIN * median_standard_error(before).hypot(median_standard_error(after));
        let is_beyond = change.abs() > CHANGE_MIN.max(by_chance).max(by_scatter);
        let middle = (from * to).sqrt();
        let on_side = |side: &[TrialCapacity], high: bool| {
            side.iter().filter(|it| (it.rps > middle) == high).count() as f64
                >= SAME_SIDE_TRIALS_SHARE_MIN * side.len() as f64
        };
        if !(is_beyond && on_side(after, change > 0.0) && on_side(before, change < 0.0)) {
            continue;
        }
        let weight = change.abs() * (before.len() as f64 * after.len() as f64 / trials.len() as f64).sqrt();
        if best.is_none_or(|it| weight > it.0) {
            best = Some((weight, (at, from, to)));
        }
    }
    best.map(|it| it.1)
}

/// Returns the relative standard error of the median capacity of these trials, from the scatter of
/// their capacities.
fn median_standard_error(side: &[TrialCapacity]) -> f64 {
    let middle = median(side, |it| it.rps);
    let deviation = basics::DEVIATION_PER_MAD * median(side, |it| (it.rps / middle).ln().abs());
    MEDIAN_TO_MEAN_ERROR_RATIO * deviation / (side.len() as f64).sqrt()
}

fn median(trials: &[TrialCapacity], of: impl Fn(&TrialCapacity) -> f64) -> f64 {
    let values: Vec<f64> = trials.iter().map(of).collect();
    basics::median(&values).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rates: &[f64], error: f64, expect: Option<(usize, f64, f64)>) {
        let shown: Vec<TrialCapacity> =
            rates.iter().enumerate().map(|(trial, rps)| TrialCapacity { trial, rps: *rps, error }).collect();
        assert_eq!(split_at_largest_change(&shown), expect, "{rates:?}");
    }

    #[test]
    fn capacity_change_differs_from_noise() {
        const EQUAL_CAPACITIES: [f64; 6] = [1000.0; 6];
        check(&EQUAL_CAPACITIES, 0.02, None);
        check(&[1000.0, 1000.0, 200.0, 200.0, 200.0], 0.02, Some((2, 1000.0, 200.0)));
        check(&[500.0, 500.0, 500.0, 1000.0, 1010.0, 990.0], 0.02, Some((3, 500.0, 1000.0)));
        // The last two trials alone show no change of the capacity, because other processes may
        // have disturbed both trials. A single disturbed trial before a change of the capacity
        // (300/s below) does not hide the change.
        check(&[1000.0, 1000.0, 1000.0, 700.0, 700.0], 0.02, None);
        check(&[1000.0, 1000.0, 700.0, 1000.0, 700.0, 1000.0], 0.02, None);
        check(&[500.0, 500.0, 500.0, 500.0, 300.0, 1000.0, 1000.0, 1000.0], 0.02, Some((5, 500.0, 1000.0)));
        // The difference between the capacities is within their standard error, which is large
        // because each trial has few completions.
        check(&[10.0, 11.0, 8.0, 8.0, 8.0], 0.2, None);
        check(&[1000.0, 400.0, 400.0, 400.0], 0.02, Some((1, 1000.0, 400.0)));
        // A heavy load slowed down a Go server a little. No change is found, because the server's
        // capacity varies from trial to trial as much as it changed.
        check(&[456.0, 446.0, 445.0, 431.0, 401.0, 353.0, 395.0, 304.0, 422.0], 0.001, None);
        check(&[510.0, 500.0, 490.0, 420.0, 410.0, 430.0], 0.001, Some((3, 500.0, 420.0)));
        // The capacity alternates between two values, so no change of the capacity is found.
        check(&[1000.0, 1250.0, 1000.0, 1250.0, 1250.0, 1000.0, 1250.0], 0.02, None);
        check(&[], 0.02, None);
    }
}
