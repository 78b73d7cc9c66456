//! The closed-loop climb: trials with more and more users, until the goodput no longer grows. The
//! climb gives the server's highest goodput (the peak) and the number of users at the peak.

use crate::judge::TrialOutcome;
use plimsoll_model::LoadPurpose;
use plimsoll_statistics::Capacity;

/// The goodput of a trial counts as grown if it is more than this multiple of the previous maximum
/// goodput.
const GOODPUT_GROWTH_FACTOR_MIN: f64 = 1.03;
/// The knee is the lowest number of users whose goodput is at least this share of the peak.
const KNEE_SHARE: f64 = 0.95;
/// The search tries more numbers of users around the knee until neighbouring numbers differ by at
/// most this factor.
const KNEE_NEIGHBOUR_FACTOR_MAX: f64 = 1.3;
/// Goodput counts as still growing if the last increase of users in the climb raised goodput to
/// more than this multiple.
const STILL_GROWING_FACTOR: f64 = 1.1;
/// An increase of the number of users by at least this factor shows whether goodput still grows
/// with the number of users.
const USERS_STEP_FACTOR_MIN: f64 = 1.2;
/// Maximum number of trials that narrow down the knee.
const KNEE_REFINEMENT_TRIALS_MAX: usize = 3;

/// The peak: the highest goodput of the closed-loop climb (trials with more and more users).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// Successes a second at the peak.
    pub rps: f64,
    /// Number of users at the peak.
    pub users: u64,
}

/// The knee: the lowest concurrency with at least 95 % of the peak goodput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knee {
    /// Number of users at the knee.
    pub users: u64,
    /// Successes a second at the knee.
    pub rps: f64,
    /// Response time p99 at the knee, ns; `None` if the trial had too few requests to state it.
    pub p99_ns: Option<u64>,
}

/// Returns (users, goodput in 1/s, p99 in ns) of the trials, in ascending order of users. Among
/// trials with equal users, the trial with the higher goodput counts.
fn goodput_and_p99_by_users(history: &[TrialOutcome]) -> Vec<(u64, f64, Option<u64>)> {
    let mut points: Vec<(u64, f64, Option<u64>)> = Vec::new();
    for trial in history.iter().filter(|t| t.purpose == LoadPurpose::Peak) {
        let Some(users) = trial.user_count() else { continue };
        let goodput = trial_goodput(trial);
        match points.iter_mut().find(|p| p.0 == users) {
            Some(point) if point.1 < goodput => *point = (users, goodput, trial.stated_p99_ns()),
            Some(_) => {}
            None => points.push((users, goodput, trial.stated_p99_ns())),
        }
    }
    points.sort_by_key(|p| p.0);
    points
}

/// Returns the goodput of a trial, 1/s. If the server rejects requests, successes from a limiter's
/// saved-up tokens do not count.
fn trial_goodput(trial: &TrialOutcome) -> f64 {
    match trial.evidence.saturated_rps {
        Some(rps) if trial.evidence.is_rejecting_surplus => rps.min(trial.goodput_rps),
        _ => trial.goodput_rps,
    }
}

/// Returns the response time of a single user, ns: the median of the first load that got a
/// response. Returns `None` before any load got a response.
pub fn single_user_response_ns(history: &[TrialOutcome]) -> Option<u64> {
    history.iter().find(|t| t.purpose == LoadPurpose::Peak && has_response(t)).map(|t| t.p50_ns)
}

/// Returns whether any request of a trial got a response, of any status.
fn has_response(trial: &TrialOutcome) -> bool {
    trial.success_rate > 0.0 || trial.evidence.failed_count() > 0
}

/// Returns whether every request failed in the first load of the climb that got a response.
pub fn has_first_answered_load_failed(history: &[TrialOutcome]) -> bool {
    let mut closed = history.iter().filter(|t| t.purpose == LoadPurpose::Peak && has_response(t));
    closed.next().is_some_and(|t| t.success_rate == 0.0)
}

/// Returns the number of users of the next trial of the climb, the closed-loop trials with more and
/// more users. Returns `None` once goodput no longer grows and the knee is found.
pub fn next_user_count(history: &[TrialOutcome], factor: u64, users_max: u64) -> Option<u64> {
    let points = goodput_and_p99_by_users(history);
    let Some(&(users, _, _)) = points.last() else { return Some(1) };
    // Two consecutive numbers of users without growth of the goodput end the climb, because a
    // single step without growth may be chance.
    let mut best = 0.0f64;
    let mut flat = 0;
    for &(_, goodput, _) in &points {
        flat = if goodput > best * GOODPUT_GROWTH_FACTOR_MIN { 0 } else { flat + 1 };
        best = best.max(goodput);
    }
    if flat < 2 && users < users_max {
        return Some(users.saturating_mul(factor).min(users_max));
    }
    let levels = (users as f64).log(factor as f64).ceil() as usize + 1;
    if points.len() >= levels + KNEE_REFINEMENT_TRIALS_MAX {
        return None;
    }
    let at = points.iter().position(|p| p.1 >= KNEE_SHARE * best)?;
    let (below, knee) = (points.get(at.checked_sub(1)?)?.0, points[at].0);
    let middle = (below as f64 * knee as f64).sqrt().round() as u64;
    (knee as f64 / below as f64 > KNEE_NEIGHBOUR_FACTOR_MAX && middle > below && middle < knee).then_some(middle)
}

/// Returns the load with the highest goodput of a climb (loads with more and more users). Among
/// loads with equal goodput, returns the load with the fewest users. `loads` must be in ascending
/// order of users. Every peak of a climb is computed by this function.
pub fn highest_goodput<T>(loads: &[T], rps: impl Fn(&T) -> f64) -> Option<&T> {
    loads.iter().rev().max_by(|a, b| rps(a).total_cmp(&rps(b)))
}

/// Returns the highest goodput of the closed-loop trials, and its number of users. Returns `None`
/// if no request succeeded.
pub fn closed_loop_peak(history: &[TrialOutcome]) -> Option<Peak> {
    let points = goodput_and_p99_by_users(history);
    let &(users, rps, _) = highest_goodput(&points, |p| p.1)?;
    (rps > 0.0).then_some(Peak { rps, users })
}

/// The minimum number of responses at the peak. If the peak has fewer responses, goodput varies too
/// much by chance to show which numbers of users reach the same goodput.
const PEAK_RESPONSES_MIN: f64 = 30.0;

/// Returns the minimum number of users that saturate the server: the lowest number whose goodput
/// equals the peak within chance. If the peak has few responses, the result is the number of users
/// at the peak.
pub fn saturating_users(history: &[TrialOutcome]) -> u64 {
    let points = goodput_and_p99_by_users(history);
    let Some(&(users, rps, _)) = highest_goodput(&points, |p| p.1) else { return 1 };
    let trial = history.iter().find(|trial| trial.user_count() == Some(users));
    let answers = trial.map_or(1.0, |trial| rps * trial.duration_ns as f64 / 1e9);
    if answers < PEAK_RESPONSES_MIN {
        return users;
    }
    let least = (KNEE_SHARE - 2.0 / answers.max(1.0).sqrt()) * rps;
    points.iter().find(|p| p.1 >= least).map_or(users, |p| p.0)
}

/// Returns the peak of the climb. If the capacity is known from saturated trials, the rate of the
/// peak is this capacity. The maximum goodput of several short trials is by chance higher than the
/// true peak.
pub fn peak_with_capacity_rate(history: &[TrialOutcome], capacity: Option<&Capacity>) -> Option<Peak> {
    let peak = closed_loop_peak(history)?;
    Some(capacity.map_or(peak, |capacity| Peak { rps: capacity.rps, ..peak }))
}

/// Returns the knee: the lowest number of users with at least 95 % of the peak goodput.
pub fn knee(history: &[TrialOutcome]) -> Option<Knee> {
    let points = goodput_and_p99_by_users(history);
    let peak = closed_loop_peak(history)?;
    let at = points.iter().find(|p| p.1 >= KNEE_SHARE * peak.rps)?;
    Some(Knee { users: at.0, rps: at.1, p99_ns: at.2 })
}

/// Returns the largest number of users of the climb, the closed-loop trials with more and more
/// users; 0 before its first trial.
pub fn users_tried_max(history: &[TrialOutcome]) -> u64 {
    goodput_and_p99_by_users(history).last().map_or(0, |point| point.0)
}

/// Returns whether the last increase of users in the climb raised goodput by more than 10 %.
pub fn is_goodput_still_growing(history: &[TrialOutcome]) -> bool {
    match goodput_and_p99_by_users(history).as_slice() {
        [.., before, last] => last.1 > before.1 * STILL_GROWING_FACTOR,
        _ => false,
    }
}

/// Returns whether the last increase of users in the climb was at least a fifth, and raised goodput
/// by at most 10 %.
pub fn is_goodput_flat(history: &[TrialOutcome]) -> bool {
    match goodput_and_p99_by_users(history).as_slice() {
        [.., before, last] => {
            last.0 as f64 >= USERS_STEP_FACTOR_MIN * before.0 as f64 && !is_goodput_still_growing(history)
        }
        _ => false,
    }
}
