//! The closed-loop climb: how much the server can do at most, and with how many users.

use super::capacity::Capacity;
use crate::judge::TrialOutcome;
use plimsoll_model::Purpose;

/// Goodput has grown when it is this much above the best so far.
const GROWN: f64 = 1.03;
/// The knee has this share of the peak.
const KNEE_SHARE: f64 = 0.95;
/// Concurrencies around the knee are refined down to this factor.
const KNEE_FACTOR: f64 = 1.3;
/// At most so many trials refine the knee.
const REFINE_MAX: usize = 3;

/// The most that the server did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// Successes a second.
    pub rps: f64,
    /// With so many users.
    pub concurrency: u64,
}

/// The least concurrency with 95 % of the peak.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knee {
    /// Users.
    pub concurrency: u64,
    /// Successes a second with them.
    pub rps: f64,
    /// Response time p99 with them.
    pub p99_ns: u64,
}

/// (users, goodput, p99 in ns), ascending by users; for equal users the better trial.
fn points(history: &[TrialOutcome]) -> Vec<(u64, f64, u64)> {
    let mut points: Vec<(u64, f64, u64)> = Vec::new();
    for trial in history.iter().filter(|t| t.purpose == Purpose::Peak) {
        let Some(users) = trial.concurrency() else { continue };
        let goodput = goodput(trial);
        match points.iter_mut().find(|p| p.0 == users) {
            Some(point) if point.1 < goodput => *point = (users, goodput, trial.p99_ns),
            Some(_) => {}
            None => points.push((users, goodput, trial.p99_ns)),
        }
    }
    points.sort_by_key(|p| p.0);
    points
}

/// Where requests are rejected, tokens saved up before are not counted as goodput.
fn goodput(trial: &TrialOutcome) -> f64 {
    match trial.evidence.saturated_rps {
        Some(rps) if trial.evidence.rejecting => rps.min(trial.achieved_rps),
        _ => trial.achieved_rps,
    }
}

/// How long an answer takes to a single user, in ns: the median of the first load that saw one;
/// `None` before.
pub fn answer_ns(history: &[TrialOutcome]) -> Option<u64> {
    history.iter().find(|t| t.purpose == Purpose::Peak && answered(t)).map(|t| t.p50_ns)
}

/// Whether anybody answered in time, however badly.
fn answered(trial: &TrialOutcome) -> bool {
    trial.success_rate > 0.0 || trial.evidence.failed_count() > 0
}

/// There were answers to the first load, and all of them were failures.
pub fn nothing_succeeds(history: &[TrialOutcome]) -> bool {
    let mut closed = history.iter().filter(|t| t.purpose == Purpose::Peak && answered(t));
    closed.next().is_some_and(|t| t.success_rate == 0.0)
}

/// How many users to try next; `None` once goodput no longer grows and the knee is found.
pub fn next(history: &[TrialOutcome], factor: u64, users_max: u64) -> Option<u64> {
    let points = points(history);
    let Some(&(users, _, _)) = points.last() else { return Some(1) };
    // Two levels in a row without growth: one might be chance.
    let mut best = 0.0f64;
    let mut flat = 0;
    for &(_, goodput, _) in &points {
        flat = if goodput > best * GROWN { 0 } else { flat + 1 };
        best = best.max(goodput);
    }
    if flat < 2 && users < users_max {
        return Some(users.saturating_mul(factor).min(users_max));
    }
    let levels = (users as f64).log(factor as f64).ceil() as usize + 1;
    if points.len() >= levels + REFINE_MAX {
        return None;
    }
    let at = points.iter().position(|p| p.1 >= KNEE_SHARE * best)?;
    let (below, knee) = (points.get(at.checked_sub(1)?)?.0, points[at].0);
    let middle = (below as f64 * knee as f64).sqrt().round() as u64;
    (knee as f64 / below as f64 > KNEE_FACTOR && middle > below && middle < knee).then_some(middle)
}

/// The load with the highest goodput among the loads of a climb, in ascending order of users; the
/// first of equal ones. This is the one rule for the peak of a climb.
pub fn best<T>(loads: &[T], rps: impl Fn(&T) -> f64) -> Option<&T> {
    loads.iter().rev().max_by(|a, b| rps(a).total_cmp(&rps(b)))
}

/// The highest goodput, and the users that made it.
pub fn highest(history: &[TrialOutcome]) -> Option<Peak> {
    let points = points(history);
    let &(concurrency, rps, _) = best(&points, |p| p.1)?;
    (rps > 0.0).then_some(Peak { rps, concurrency })
}

/// Fewest responses at a peak from which equally good concurrencies can be told.
const TELLING_ANSWERS: f64 = 30.0;

/// Users that saturate the server, at the least: the fewest whose goodput is that of the peak, but
/// for chance. A peak of few answers may be anywhere on the plateau.
pub fn saturating_users(history: &[TrialOutcome]) -> u64 {
    let points = points(history);
    let Some(&(users, rps, _)) = best(&points, |p| p.1) else { return 1 };
    let trial = history.iter().find(|trial| trial.concurrency() == Some(users));
    let answers = trial.map_or(1.0, |trial| rps * trial.duration_ns as f64 / 1e9);
    if answers < TELLING_ANSWERS {
        return users;
    }
    let least = (KNEE_SHARE - 2.0 / answers.max(1.0).sqrt()) * rps;
    points.iter().find(|p| p.1 >= least).map_or(users, |p| p.0)
}

/// The peak with the rate that saturated trials confirm: the best of several short trials is the
/// luckiest of them.
pub fn confirmed(history: &[TrialOutcome], capacity: Option<&Capacity>) -> Option<Peak> {
    let peak = highest(history)?;
    Some(capacity.map_or(peak, |capacity| Peak { rps: capacity.rps, ..peak }))
}

/// The least concurrency with 95 % of the peak.
pub fn knee(history: &[TrialOutcome]) -> Option<Knee> {
    let points = points(history);
    let peak = highest(history)?;
    let at = points.iter().find(|p| p.1 >= KNEE_SHARE * peak.rps)?;
    Some(Knee { concurrency: at.0, rps: at.1, p99_ns: at.2 })
}

/// Whether goodput was still growing when the climb ended.
pub fn still_growing(history: &[TrialOutcome]) -> bool {
    let points = points(history);
    match points.as_slice() {
        [.., before, last] => last.1 > before.1 * 1.1,
        _ => false,
    }
}
