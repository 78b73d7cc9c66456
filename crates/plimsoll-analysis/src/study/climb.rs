//! Finds the load of a comparison's blocks: the length of the loads, and the number of users or the
//! rate of each compared target (arm). If no flag gives the load, a climb finds the load. A climb
//! is a series of short loads with rising numbers of users on one compared target.
//!
//! Not here: the sequence of the blocks (`blocks.rs`).

use super::step::{Step, StopRule, StudyFailure, closed_loop_plan, trial_end_ns};
use crate::format;
use crate::summary::Summary;
use plimsoll_model::units::{MS, SECOND};
use plimsoll_model::{BlocksSpec, LoadCurve, LoadEnd, LoadShape, LoadTag, Plan, PlanRecord, Trial};

/// Numbers of users that the climb (the search for the load of a compared target) tries, in order.
const CLIMB_USER_COUNTS: [u64; 6] = [1, 4, 16, 64, 256, 1024];
/// Shortest length of each load of the climb (the search for the load of a compared target), ns.
const CLIMB_LOAD_NS_MIN: u64 = 250 * MS;
/// Shortest length of a load of the climb (the search for the load of a compared target), as a
/// multiple of the response time.
const CLIMB_LOAD_RESPONSE_TIMES_MIN: f64 = 5.0;
/// Longest planned length of a load of the climb (the search for the load of a compared target),
/// ns. A repetition of a load with too few responses may take longer.
const CLIMB_LOAD_NS_MAX: u64 = 4 * SECOND;
/// All climbs (searches for the load of a compared target) together take at most the budget divided
/// by this number. A load that has begun is completed, even if the climbs then take longer than
/// this part of the budget.
const CLIMB_BUDGET_DIVISOR: u64 = 3;
/// Smallest growth of the goodput that counts as growth in the climb (the search for a target's
/// load), as a factor of the previous maximum. The goodput measured in the short loads of the climb
/// varies by some percent. With a smaller factor, random variation would count as growth, and the
/// climb would end with far more users than saturate the server.
const GOODPUT_GROWTH_FACTOR_MIN: f64 = 1.08;
/// The climb (the search for a target's load) selects the smallest number of users whose goodput is
/// at least this share of the maximum goodput.
const PEAK_GOODPUT_SHARE_MIN: f64 = 0.93;
/// Number of users at which the climb (the search for a target's load) ends, as a multiple of the
/// users that saturate the server. Little's law gives the number of users that saturate the server,
/// and this multiple of the number is certainly enough.
const AMPLE_USERS_FACTOR_MIN: f64 = 8.0;
/// For a slow server ([`SLOW_SERVER_RESPONSES_MAX`]), this multiple of the number of users that
/// saturate the server is certainly enough. On a slow server, a few more responses in a short load
/// do not show a higher goodput, and superfluous users would wait for long.
const SLOW_SERVER_AMPLE_USERS_FACTOR_MIN: f64 = 2.0;
/// A server counts as slow if its load with the highest goodput has fewer responses than this
/// number.
const SLOW_SERVER_RESPONSES_MAX: f64 = 200.0;
/// For a slow server, the selected number of users is at most this multiple of the number that
/// saturates the server. Users beyond this number would only wait for the server, longest on the
/// slower side of the comparison.
const SLOW_SERVER_USERS_FACTOR_MAX: f64 = 1.5;
/// Shortest warm-up before a load on a target that plimsoll has newly started, ns.
pub const NEW_TARGET_WARMUP_NS_MIN: u64 = 500 * MS;
/// Shortest warm-up before a load on a target that already runs, ns.
const WARMUP_NS_MIN: u64 = 30 * MS;
/// Length of a warm-up, as a multiple of the response time, if that is longer than the shortest
/// warm-up.
const WARMUP_RESPONSE_TIMES: f64 = 3.0;
/// If slow responses make a warm-up longer, the warm-up takes at most the load's length divided by
/// this number.
const WARMUP_LENGTH_DIVISOR: u64 = 3;
/// The fixed rate of a comparison, as a share of the slower side's goodput at its peak.
const FIXED_RATE_GOODPUT_SHARE: f64 = 0.6;
/// Shortest measured length of a load in a block (one load on each compared target), ns.
const BLOCK_LOAD_NS_MIN: u64 = 400 * MS;
/// Shortest length of a load in a block (one load on each compared target), as a multiple of the
/// response time.
const BLOCK_LOAD_RESPONSE_TIMES_MIN: f64 = 10.0;
/// Smallest number of responses in a load on the slower side of the comparison. Loads are shorter
/// if the budget would otherwise allow too few blocks (repetitions of the comparison).
const BLOCK_LOAD_RESPONSES_MIN: f64 = 100.0;
/// Smallest number of blocks (one load on each compared target) that must fit into the budget. If
/// the budget is too short for this number of blocks, each load becomes shorter.
const BLOCKS_MIN: u64 = 16;
/// Shortest length of a load on a slow server, as a multiple of the response time. If the budget is
/// too short for loads of this length, the comparison has fewer blocks, but not shorter loads. A
/// load shorter than its slowest response has no information.
const SLOW_SERVER_LOAD_RESPONSE_TIMES_MIN: f64 = 3.0;
/// Smallest number of blocks for a slow server, if [`BLOCKS_MIN`] blocks would make the loads too
/// short.
const SLOW_SERVER_BLOCKS_MIN: u64 = 11;
/// Maximum number of connections that are opened before a load with a fixed rate starts.
const READY_CONNECTIONS_MAX: f64 = 2048.0;

/// The requirements of a comparison on its loads that [`BlocksSpec`] does not contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadRules {
    /// Whether the loads have a fixed rate. If the loads have no fixed rate, they are closed loops
    /// with enough users to reach the server's highest goodput.
    pub has_fixed_rate: bool,
    /// Whether every arm (compared target) has a load of its own, because the arms do different
    /// work. If this field is false, all arms (compared targets) have equal loads.
    pub has_separate_loads: bool,
}

/// The highest goodput of an arm (one of the compared targets), as its climb (the search for the
/// arm's load) measured the goodput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ArmPeak {
    /// Smallest number of users that reaches the peak (the target's highest goodput).
    pub users: u64,
    /// Successful requests a second at the peak; for sessions, sessions a second.
    pub goodput_rps: f64,
    /// Mean service time at the peak, ns.
    pub service_mean_ns: f64,
    /// Number of responses in the load that reached the peak.
    pub responses: f64,
}

/// The load of one arm (compared target), which is the same in all blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ArmLoad {
    /// For a closed loop, the number of users. For a fixed rate, the number of connections opened
    /// before the load.
    users_or_connections: u64,
    /// The fixed rate, 1/s; `None` for a closed loop.
    rate: Option<f64>,
    length_ns: u64,
    warmup_ns: u64,
}

impl ArmLoad {
    /// Creates the plan of this load on arm number `arm`.
    pub fn plan(&self, spec: &BlocksSpec, arm: usize, seed: u64) -> PlanRecord {
        let base = &spec.arms[arm].plan;
        let mut plan = match self.rate {
            None => closed_loop_plan(base, self.users_or_connections),
            Some(rate) => {
                let mut plan = base.clone();
                plan.load.shape = LoadShape::Open { rate: LoadCurve::constant(rate), arrivals: spec.arrivals };
                plan
            }
        };
        plan.load.seed = seed;
        plan.load.duration_ns = Some(self.length_ns);
        plan.load.warmup_ns = self.warmup_ns;
        plan.load.connections_ready = (self.users_or_connections as u32).min(plan.connection_plan.connections_max);
        // The grace period (the wait for late responses) is long enough for the slowest useful
        // response, and short enough to fit into the budget.
        plan.load.grace_ns = plan.load.grace_ns.min(2 * SECOND);
        plan
    }
}

/// Returns the peak of an arm (a compared target): its highest goodput and the number of users that
/// reaches this goodput. Until the peak is known, the error contains the next step, usually the
/// next load of the climb that searches for the peak. If a flag gives the number of users, the
/// climb tries only that number. `tag` is the tag of the climb's loads.
pub(super) fn find_arm_peak(spec: &BlocksSpec, tag: LoadTag, trials: &[&Trial]) -> Result<ArmPeak, Step> {
    let Some(arm) = tag.arm else { return Err(Step::Stop) };
    // If a flag gives a fixed rate, the climb measures only the response time of the target, with
    // one user.
    let given = spec.users.or(spec.rate.map(|_| 1));
    let levels = given.map_or_else(|| CLIMB_USER_COUNTS.to_vec(), |users| vec![users]);
    let part_ns = spec.budget_ns / (CLIMB_BUDGET_DIVISOR * spec.arms.len() as u64);
    let finish_ns = trials.first().map_or(u64::MAX, |first| first.start_ns.saturating_add(part_ns));
    let mut trials = trials.iter();
    let mut tried: Vec<ArmPeak> = Vec::new();
    let mut flat = 0;
    let mut length_ns = CLIMB_LOAD_NS_MIN;
    for users in levels {
        let (summary, ended_ns) = loop {
            let Some(trial) = trials.next() else {
                let mut plan = closed_loop_plan(&spec.arms[arm.index()].plan, users);
                plan.load.duration_ns = Some(length_ns);
                plan.load.warmup_ns = if tried.is_empty() { warmup_ns(spec, 0.0, 0) } else { 0 };
                return Err(Step::measure_trial(tag, plan, StopRule::EndOfSchedule));
            };
            if let Some(LoadEnd::Stopped(stop)) = &trial.run.ending {
                return Err(Step::Fail(StudyFailure::LoadEndedEarly(format::stop_reason(stop).to_owned())));
            }
            let summary = Summary::from_run(&trial.run);
            // A load that is shorter than its first response has no information, so a longer load
            // follows. A load in which the server rejects requests has information, so no longer
            // load is needed.
            let traffic = &trial.run.plan.traffic;
            let refused = summary.routes_sum.statuses.iter().any(|(status, _)| !traffic.counts_as_success(status));
            if summary.throughput_rps > 0.0 || refused || length_ns >= CLIMB_LOAD_NS_MAX {
                break (summary, trial_end_ns(trial));
            }
            length_ns *= 4;
        };
        let needed_ns = (summary.routes_sum.service.mean_ns * CLIMB_LOAD_RESPONSE_TIMES_MIN) as u64;
        let responses = summary.throughput_rps * length_ns as f64 / 1e9;
        length_ns = length_ns.max(needed_ns.next_multiple_of(Plan::TICK_NS)).min(CLIMB_LOAD_NS_MAX);
        let best = tried.iter().map(|peak| peak.goodput_rps).fold(0.0, f64::max);
        if summary.throughput_rps <= 0.0 && best <= 0.0 {
            let statuses = summary.routes_sum.statuses.iter().map(|(status, _)| status).collect();
            return Err(Step::Fail(StudyFailure::NoSuccess(arm.letter(), statuses)));
        }
        let goodput_rps = summary.offered_unit_rps();
        flat = if goodput_rps > best * GOODPUT_GROWTH_FACTOR_MIN { 0 } else { flat + 1 };
        tried.push(ArmPeak { users, goodput_rps, service_mean_ns: summary.routes_sum.service.mean_ns, responses });
        // The climb ends, because more users would not help: a slow server would still process the
        // requests of one load when the next load begins.
        if flat >= 2 || smallest_ample_load(&tried).is_some() || ended_ns >= finish_ns {
            break;
        }
    }
    saturating_peak(&tried).ok_or(Step::Fail(StudyFailure::NotReached(arm.letter())))
}

fn highest_peak(tried: &[ArmPeak]) -> Option<ArmPeak> {
    crate::find::highest_goodput(tried, |peak| peak.goodput_rps).copied()
}

/// Returns the smallest tried number of users that is certainly more than enough to saturate the
/// server. By Little's law, the highest goodput times the response time of a single user gives the
/// number of users that saturate the server. The climb does not rely on the measured goodput alone,
/// because a disturbance may hide that few users were enough to saturate the server.
fn smallest_ample_load(tried: &[ArmPeak]) -> Option<ArmPeak> {
    let best = highest_peak(tried)?;
    let filling = best.goodput_rps * tried.first()?.service_mean_ns / 1e9;
    let times = if best.responses < SLOW_SERVER_RESPONSES_MAX {
        SLOW_SERVER_AMPLE_USERS_FACTOR_MIN
    } else {
        AMPLE_USERS_FACTOR_MIN
    };
    tried.iter().find(|peak| peak.users as f64 >= times * filling).copied()
}

/// Returns the highest goodput of an arm (a compared target), with the smallest number of users
/// that saturates the server.
fn saturating_peak(tried: &[ArmPeak]) -> Option<ArmPeak> {
    let best = highest_peak(tried)?;
    let enough = tried.iter().find(|peak| peak.goodput_rps >= best.goodput_rps * PEAK_GOODPUT_SHARE_MIN).copied();
    let mut peak = [enough, smallest_ample_load(tried)].into_iter().flatten().min_by_key(|peak| peak.users)?;
    if best.responses < SLOW_SERVER_RESPONSES_MAX {
        let filling =
            (best.goodput_rps * tried.first()?.service_mean_ns / 1e9 * SLOW_SERVER_USERS_FACTOR_MAX).ceil().max(1.0);
        peak.users = peak.users.min(filling as u64);
    }
    Some(peak)
}

/// Computes the load of each arm (compared target) from the arm's highest goodput and the time left
/// for all blocks. Arms that are compared with each other have equal loads.
pub fn plan_arm_loads(spec: &BlocksSpec, load_rules: LoadRules, peaks: &[ArmPeak], left_ns: u64) -> Vec<ArmLoad> {
    if load_rules.has_separate_loads {
        return arm_loads_for_peaks(spec, load_rules, peaks, left_ns);
    }
    let users = spec.users.or(peaks.iter().map(|peak| peak.users).max()).unwrap_or(1);
    let goodput_rps = peaks.iter().map(|peak| peak.goodput_rps).fold(f64::INFINITY, f64::min);
    let mean_ns = peaks.iter().map(|peak| peak.service_mean_ns).fold(0.0, f64::max);
    // By Little's law, `waiting_ns` is the response time of the slower side if it gets as many
    // users as saturate the faster side.
    let waiting_ns = if load_rules.has_fixed_rate { 0.0 } else { users as f64 * 1e9 / goodput_rps };
    let hardest = ArmPeak { users, goodput_rps, service_mean_ns: mean_ns.max(waiting_ns), responses: 0.0 };
    arm_loads_for_peaks(spec, load_rules, &vec![hardest; peaks.len()], left_ns)
}

fn arm_loads_for_peaks(spec: &BlocksSpec, load_rules: LoadRules, peaks: &[ArmPeak], left_ns: u64) -> Vec<ArmLoad> {
    let slowest = peaks.iter().map(|peak| peak.goodput_rps).fold(f64::INFINITY, f64::min);
    let rate = load_rules
        .has_fixed_rate
        .then(|| spec.rate.unwrap_or_else(|| round_to_two_digits(slowest * FIXED_RATE_GOODPUT_SHARE)));
    let lengths = peaks.iter().map(|peak| {
        let wanted_s = (BLOCK_LOAD_RESPONSE_TIMES_MIN * peak.service_mean_ns / 1e9)
            .max(BLOCK_LOAD_RESPONSES_MIN / rate.unwrap_or(peak.goodput_rps));
        ((wanted_s * 1e9) as u64).max(BLOCK_LOAD_NS_MIN)
    });
    // In addition to its measured time, a load needs time for its warm-up and for the last
    // responses.
    let beside_ns: u64 = peaks.iter().map(|peak| warmup_ns(spec, 0.0, 0) + peak.service_mean_ns as u64).sum();
    let measured = |blocks: u64| {
        (left_ns / blocks).saturating_sub(beside_ns) / (WARMUP_LENGTH_DIVISOR + 1) * WARMUP_LENGTH_DIVISOR
    };
    let most_ns = fair_share_max(lengths.clone().collect(), measured(BLOCKS_MIN)).max(BLOCK_LOAD_NS_MIN);
    let few_ns = measured(SLOW_SERVER_BLOCKS_MIN) / peaks.len() as u64;
    let load = |(peak, wanted_ns): (&ArmPeak, u64)| {
        let least_ns = ((peak.service_mean_ns * SLOW_SERVER_LOAD_RESPONSE_TIMES_MIN) as u64).min(few_ns);
        let found_ns = wanted_ns.min(most_ns).max(least_ns).next_multiple_of(Plan::TICK_NS);
        let length_ns = spec.load_ns.unwrap_or(found_ns);
        let users_or_connections = match rate {
            // The number of connections is twice the number of requests in flight by Little's law,
            // plus 8.
            Some(rate) => (2.0 * rate * peak.service_mean_ns / 1e9 + 8.0).min(READY_CONNECTIONS_MAX) as u64,
            None => spec.users.unwrap_or(peak.users),
        };
        ArmLoad { users_or_connections, rate, length_ns, warmup_ns: warmup_ns(spec, peak.service_mean_ns, length_ns) }
    };
    peaks.iter().zip(lengths).map(load).collect()
}

/// Divides `sum` among elements that want the amounts `wanted`. Returns the largest amount that any
/// element may get. Elements that want less than an equal share leave the remainder of their share
/// to the other elements. Returns `u64::MAX` if all wanted amounts together fit into `sum`.
fn fair_share_max(mut wanted: Vec<u64>, sum: u64) -> u64 {
    wanted.sort_unstable();
    let (mut left, mut count) = (sum, wanted.len() as u64);
    for one in wanted {
        if one > left / count {
            return left / count;
        }
        left -= one;
        count -= 1;
    }
    u64::MAX
}

/// Returns the length of the warm-up, ns, before a load of `length_ns` if the mean response time is
/// `mean_ns`.
fn warmup_ns(spec: &BlocksSpec, mean_ns: f64, length_ns: u64) -> u64 {
    let fresh = spec.arms.iter().any(|arm| arm.is_started_per_load);
    let needed_ns = ((mean_ns * WARMUP_RESPONSE_TIMES) as u64).min(length_ns / WARMUP_LENGTH_DIVISOR);
    spec.warmup_ns.unwrap_or(needed_ns.max(if fresh { NEW_TARGET_WARMUP_NS_MIN } else { WARMUP_NS_MIN }))
}

/// Rounds a rate to two significant digits.
fn round_to_two_digits(rate: f64) -> f64 {
    let unit = 10f64.powf(rate.max(1e-9).log10().floor() - 1.0);
    (rate / unit).round() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_climb_selects_the_fewest_saturating_users() {
        // Each level contains (users, successes a second, mean service time in ms, seconds). The
        // last argument is the number of users that the climb is expected to select.
        let check = |levels: &[(u64, f64, f64, f64)], expected| {
            let tried: Vec<ArmPeak> = levels
                .iter()
                .map(|&(users, goodput_rps, ms, s)| ArmPeak {
                    users,
                    goodput_rps,
                    service_mean_ns: ms * 1e6,
                    responses: goodput_rps * s,
                })
                .collect();
            assert_eq!(saturating_peak(&tried).map(|peak| peak.users), expected, "{levels:?}");
        };
        check(&[], None);
        // More than four users give no significantly higher throughput.
        check(&[(1, 9e3, 0.1, 0.25), (4, 20e3, 0.2, 0.25), (16, 20.5e3, 0.8, 0.25), (64, 20e3, 3.2, 0.25)], Some(4));
        // A disturbance lowered the goodput of the load with four users, although four users
        // saturate the server.
        check(&[(1, 9e3, 0.1, 0.25), (4, 12e3, 0.3, 0.25), (16, 17e3, 0.8, 0.25), (64, 19.9e3, 3.2, 0.25)], Some(16));
        // The server has twenty workers of 130 ms each. 64 users saturate the workers, but so would
        // 25 users.
        check(
            &[(1, 7.7, 130.0, 0.7), (4, 30.8, 130.0, 0.7), (16, 120.0, 130.0, 0.7), (64, 154.0, 400.0, 0.7)],
            Some(31),
        );
        // The server runs a query of 130 ms on two cores. Sixteen users seem to give a tenth more
        // goodput than four users, but the difference comes from three of 28 responses.
        check(&[(1, 7.0, 130.0, 0.7), (4, 13.0, 300.0, 1.5), (16, 14.4, 1000.0, 1.8)], Some(3));
        // The server has ten workers of 300 ms each.
        check(
            &[(1, 3.3, 300.0, 1.5), (4, 13.3, 300.0, 1.5), (16, 33.0, 480.0, 1.5), (64, 33.0, 1900.0, 2.4)],
            Some(15),
        );
    }

    #[test]
    fn unused_shares_go_to_larger_elements() {
        let check =
            |wanted: &[u64], sum, expected| assert_eq!(fair_share_max(wanted.to_vec(), sum), expected, "{wanted:?}");
        check(&[4, 4], 8, u64::MAX);
        check(&[9, 9], 8, 4);
        check(&[100, 1, 1], 12, 10);
        check(&[100, 5, 1], 12, 6);
        check(&[], 12, u64::MAX);
    }
}
