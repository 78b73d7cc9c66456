//! Plans of a search's trials. Each trial fits into the budget, and starts with the server in a
//! known state.

use super::peak;
use super::rejection::limiter_rate_rps;
use super::search_settings::{PlannedTrial, SearchSettings, TIME_MAX_NS};
use super::search_state::SearchState;
use crate::judge::{TrialOutcome, Verdict};
use crate::watch::{TrialWatch, judged_window_ns};
use plimsoll_model::traffic::RouteChoice;
use plimsoll_model::units::{MS, SECOND};
use plimsoll_model::{ArrivalSpacing, Load, LoadCurve, LoadPurpose, LoadShape, LoadStage, Plan, PlanRecord};

/// The time that a trial takes beyond its schedule, ns: to connect, and to transfer the result.
const OVERHEAD_NS: u64 = 150 * MS;
/// Length of the load on new connections before the judged window (the time whose requests count)
/// of a trial near the load line, ns. Closed-loop trials have no load before the judged window,
/// because an overload before the window would leave a backlog.
const WARMUP_LINE_NS: u64 = 200 * MS;
/// Length of the warm-up before an open trial of a slow server, as a multiple of the server's
/// response time.
const WARMUP_RESPONSE_TIMES: u64 = 2;
/// The load that empties a rate limiter's token bucket has this multiple of the limiter's rate.
const TOKEN_EMPTYING_RATE_FACTOR: f64 = 3.0;
/// Maximum length of a load that empties a rate limiter's token bucket, ns. The load is shorter in
/// a small budget.
const TOKEN_EMPTYING_NS_MAX: u64 = 4 * SECOND;
/// Maximum number of consecutive loads that empty a rate limiter's token bucket.
const TOKEN_EMPTYING_LOADS_MAX: usize = 3;
/// Length of a trial's first stage, ns. The high rate of the first stage empties the token bucket
/// of a rate limiter before the stage at the trial's own rate.
const TOKEN_EMPTYING_STAGE_NS: u64 = 500 * MS;
/// The rate of a trial's first stage (see [`TOKEN_EMPTYING_STAGE_NS`]), as a multiple of the higher
/// of two rates: the limiter's rate and the trial's rate.
const TOKEN_EMPTYING_STAGE_FACTOR: f64 = 2.0;
/// Length of the stage between the first stage (see [`TOKEN_EMPTYING_STAGE_NS`]) and the judged
/// window, ns. The stage before the judged window already has the trial's own rate.
const STAGE_BEFORE_JUDGED_WINDOW_NS: u64 = 300 * MS;
/// A trial at this share of a limiter's rate or above leaves the token bucket nearly empty.
const NEAR_LIMITER_RATE_SHARE: f64 = 0.95;
/// If the server processes its backlog within this time, s, no drain (a low load until the backlog
/// is processed) is needed.
const DRAIN_MIN_S: f64 = 0.03;
/// Maximum number of consecutive drains: low loads that wait until the server has processed a
/// backlog.
const DRAINS_MAX: usize = 2;
/// Minimum length of an open trial, as a multiple of the mean interval between arrivals.
pub(super) const TRIAL_ARRIVALS_MIN: f64 = 3.0;
/// Rate, 1/s, of the load that waits until a server that rejects all requests serves again.
const RECOVERY_LOAD_RPS: f64 = 10.0;
/// Maximum number of connections that plimsoll opens before a trial.
const CONNECTIONS_READY_MAX: u64 = 2048;

/// Rounds a rate to four significant digits.
pub fn round_rate(rate: f64) -> f64 {
    let unit = 10f64.powf(rate.max(1e-9).log10().floor() - 3.0);
    (rate / unit).round() * unit
}

/// Creates the plans of the next trials of a search from the trials made until now.
pub(super) struct Planner<'a> {
    pub settings: &'a SearchSettings,
    pub history: &'a [TrialOutcome],
    pub elapsed_ns: u64,
    /// Number of all trials of the search, including trials before a change of the capacity
    /// ([`super::present_capacity::LastCapacityChange`]).
    pub trial_count: usize,
}

impl<'a> Planner<'a> {
    pub(super) fn new(known: &'a SearchState<'a>, trial_count: usize, elapsed_ns: u64) -> Planner<'a> {
        Planner { settings: known.settings, history: known.history, elapsed_ns, trial_count }
    }

    /// Creates a closed-loop trial with `users` users.
    pub fn closed_loop_trial(&self, purpose: LoadPurpose, users: u64, length_ns: u64) -> PlannedTrial {
        let load = LoadShape::Closed { users: LoadCurve::constant_for_duration(users as f64, length_ns) };
        let ready = u32::try_from(users).unwrap_or(u32::MAX);
        self.create_planned_trial(purpose, self.build_plan(load, length_ns, 0, ready))
    }

    /// Creates a closed-loop trial that keeps the server saturated. The users of the trial start
    /// one after another. If all users started at once, their requests would stay synchronised, and
    /// the completions in a short interval would depend on the interval's start. `ramp_answers` is
    /// the length of the ramp, in response times.
    pub fn saturated_trial(&self, users: u64, ramp_answers: u64, length_ns: u64) -> PlannedTrial {
        let answer_ns = peak::single_user_response_ns(self.history).unwrap_or(0);
        let ramp_ns = (ramp_answers * answer_ns).next_multiple_of(Plan::TICK_NS).max(Plan::TICK_NS);
        let stage = |from: f64, duration_ns| LoadStage { from, to: users as f64, duration_ns: Some(duration_ns) };
        let load = LoadShape::Closed {
            users: LoadCurve { stages: vec![stage(1.0, ramp_ns), stage(users as f64, length_ns)] },
        };
        let ready = u32::try_from(users).unwrap_or(u32::MAX);
        self.create_planned_trial(LoadPurpose::Saturate, self.build_plan(load, ramp_ns + length_ns, 0, ready))
    }

    /// Creates a load with a single user. The load takes at most `length_ns`, and at most the
    /// remaining budget. The load ends early, at `shown_ns` or later, as soon as some requests have
    /// got a response. Returns `None` if the budget is too small for any load.
    pub fn first_single_user_load(&self, length_ns: u64, shown_ns: u64) -> Option<PlannedTrial> {
        let room_ns = self
            .budget_left_ns()
            .checked_sub(trial_time_max_ns(&self.closed_loop_trial(LoadPurpose::Peak, 1, 0).plan))?
            / Plan::TICK_NS
            * Plan::TICK_NS;
        let mut measure = self.closed_loop_trial(LoadPurpose::Peak, 1, length_ns.min(room_ns));
        measure.watch = TrialWatch::end_after_responses(&measure.plan, &self.settings.slo, shown_ns);
        (length_ns.min(room_ns) > 0).then_some(measure)
    }

    /// Creates an open trial of `length_ns`, or a longer trial if only few requests would arrive in
    /// `length_ns`. If the server rejects surplus requests, the limiter's token bucket must be
    /// empty. If the bucket is not empty, the returned trial is a load that empties the bucket,
    /// with the purpose `Settle`.
    pub fn open_loop_trial(&self, purpose: LoadPurpose, rate: f64, length_ns: u64) -> PlannedTrial {
        let ready = self.ready_connections(rate);
        let length_ns = length_ns.max(self.time_of_few_arrivals_ns(rate));
        let Some(limit) = limiter_rate_rps(self.history) else {
            let warmup_ns = WARMUP_LINE_NS.max(self.filling_warmup_ns());
            let plan = self.build_plan(
                self.open_load_shape(LoadCurve::constant_for_duration(rate, length_ns)),
                length_ns,
                warmup_ns,
                ready,
            );
            return self.create_planned_trial(purpose, plan);
        };
        if !self.is_bucket_empty(limit) {
            return self.token_emptying_load(limit.max(rate * 0.7));
        }
        let stage = |level, ns| LoadStage { from: level, to: level, duration_ns: Some(ns) };
        let high = self.cap_rate(limit.max(rate) * TOKEN_EMPTYING_STAGE_FACTOR);
        let stages = vec![
            stage(high, TOKEN_EMPTYING_STAGE_NS),
            stage(rate, STAGE_BEFORE_JUDGED_WINDOW_NS),
            stage(rate, length_ns),
        ];
        let whole_ns = TOKEN_EMPTYING_STAGE_NS + STAGE_BEFORE_JUDGED_WINDOW_NS + length_ns;
        self.create_planned_trial(
            purpose,
            self.build_plan(self.open_load_shape(LoadCurve { stages }), whole_ns, 0, ready),
        )
    }

    /// Creates a drain: a low load that lasts until a server that fell behind in the last trial
    /// responds quickly again. Returns `None` if the server did not fall behind, or did not recover
    /// in earlier drains.
    pub fn backlog_drain_load(&self) -> Option<PlannedTrial> {
        let settled = self.history.iter().rev().take_while(|t| t.purpose == LoadPurpose::Settle);
        let failed_drains = settled.clone().filter(|t| t.verdict == Verdict::Fail).count();
        if settled.clone().any(|t| t.verdict == Verdict::Pass) || failed_drains >= DRAINS_MAX {
            return None;
        }
        let last = self.history.iter().rev().find(|t| t.purpose != LoadPurpose::Settle)?;
        let peak = peak::closed_loop_peak(self.history).map_or(100.0, |p| p.rps);
        let capacity = last.evidence.saturated_rps.unwrap_or(peak).max(1.0);
        // A server that has answered its whole backlog may still be busy with closing the many
        // connections that an open load opened. So the growth of the backlog during a trial that
        // failed or was void also decides whether a drain is needed.
        let grown = match last.verdict {
            Verdict::Fail | Verdict::Void => last.evidence.backlog_growth_share * last.evidence.scheduled as f64 / 2.0,
            Verdict::Pass => 0.0,
        };
        let drain_s = (last.evidence.unanswered as f64 / capacity).max(grown / last.goodput_rps.max(1.0));
        if last.evidence.is_rejecting_surplus || drain_s < DRAIN_MIN_S {
            return None;
        }
        let left_s = self.settings.budget_ns.saturating_sub(self.elapsed_ns) as f64 / 1e9;
        let answer_s = peak::single_user_response_ns(self.history).unwrap_or(0) as f64 / 1e9;
        let rate = self.cap_rate(round_rate((peak * 0.02).clamp(20.0, 100.0).min(peak * 0.2).max(1.0)));
        // The drain is planned for twice the time that the server needs for its backlog, plus the
        // time for three more requests and responses.
        let calm_s = (3.0 * answer_s + 3.0 / rate).max(1.5);
        let length_s = (2.0 * drain_s + calm_s).min(15f64.max(2.0 * calm_s)).min((left_s - 1.0).max(0.3));
        let length_ns = ((length_s * 10.0).ceil() * 1e8) as u64;
        let mut plan = self.build_plan(
            self.open_load_shape(LoadCurve::constant_for_duration(rate, length_ns)),
            length_ns,
            0,
            self.ready_connections(rate),
        );
        plan.load.grace_ns = plan.load.grace_ns.min(100 * MS);
        let watch = TrialWatch::end_when_drained(&plan, &self.settings.slo, self.recovered_response_ns());
        let measure = PlannedTrial { purpose: LoadPurpose::Settle, plan, watch };
        self.fits_in_budget(&measure).then_some(measure)
    }

    /// Creates a low load that lasts until one request succeeds, or until the budget ends. Returns
    /// `None` if less than a second of the budget is left.
    pub fn low_load_until_success(&self) -> Option<PlannedTrial> {
        let rate = self.cap_rate(RECOVERY_LOAD_RPS);
        let plan = |length_ns| {
            // Evenly spaced requests show most exactly at what time the server serves again.
            let shape = LoadShape::Open {
                rate: LoadCurve::constant_for_duration(rate, length_ns),
                arrivals: ArrivalSpacing::Constant,
            };
            self.build_plan(shape, length_ns, 0, self.ready_connections(rate))
        };
        let room_ns = self.budget_left_ns().checked_sub(trial_time_max_ns(&plan(0)))? / Plan::TICK_NS * Plan::TICK_NS;
        let plan = (room_ns >= SECOND).then(|| plan(room_ns))?;
        let watch = TrialWatch::end_after_first_success(&plan, &self.settings.slo);
        Some(PlannedTrial { purpose: LoadPurpose::Settle, plan, watch })
    }

    /// Returns whether a trial fits into the rest of the budget even if it takes its maximum time.
    pub fn fits_in_budget(&self, measure: &PlannedTrial) -> bool {
        self.elapsed_ns.saturating_add(trial_time_max_ns(&measure.plan)) <= self.settings.budget_ns
    }

    /// Returns the remaining time of the budget, ns.
    pub fn budget_left_ns(&self) -> u64 {
        self.settings.budget_ns.saturating_sub(self.elapsed_ns)
    }

    fn token_emptying_load(&self, limit: f64) -> PlannedTrial {
        let rate = self.cap_rate(round_rate(limit * TOKEN_EMPTYING_RATE_FACTOR));
        let length_ns = (self.settings.budget_ns / 12 / (100 * MS) * (100 * MS)).clamp(SECOND, TOKEN_EMPTYING_NS_MAX);
        let plan = self.build_plan(
            self.open_load_shape(LoadCurve::constant_for_duration(rate, length_ns)),
            length_ns,
            0,
            self.ready_connections(rate),
        );
        let watch = TrialWatch::end_when_rejecting(&plan, &self.settings.slo);
        PlannedTrial { purpose: LoadPurpose::Settle, plan, watch }
    }

    /// Returns whether a rate limiter's token bucket counts as empty: the last load emptied it, or
    /// enough attempts to empty it failed.
    fn is_bucket_empty(&self, limit: f64) -> bool {
        let Some(last) = self.history.last() else { return false };
        let primes = self.history.iter().rev().take_while(|t| t.purpose == LoadPurpose::Settle).count();
        if last.purpose == LoadPurpose::Settle {
            return last.verdict == Verdict::Pass && last.success_rate < 1.0 || primes >= TOKEN_EMPTYING_LOADS_MAX;
        }
        // During a trial well below the limiter's rate, the token bucket fills again.
        let near = last.offered_rps().is_some_and(|rate| rate > limit * NEAR_LIMITER_RATE_SHARE);
        last.evidence.is_rejecting_surplus || last.evidence.has_failures_before_window && near
    }

    fn create_planned_trial(&self, purpose: LoadPurpose, plan: PlanRecord) -> PlannedTrial {
        let watch = TrialWatch::new(purpose, &plan, &self.settings.slo);
        PlannedTrial { purpose, plan, watch }
    }

    fn open_load_shape(&self, rate: LoadCurve) -> LoadShape {
        LoadShape::Open { rate, arrivals: self.settings.arrivals }
    }

    fn cap_rate(&self, rate: f64) -> f64 {
        rate.min(self.settings.max_rate.unwrap_or(f64::INFINITY))
    }

    fn build_plan(&self, shape: LoadShape, length_ns: u64, warmup_ns: u64, ready: u32) -> PlanRecord {
        let base = &self.settings.base;
        // A response later than the longest latency bound of the SLO counts as bad in any case. So
        // after its last request, a trial waits for late responses at most as long as the longest
        // latency bound.
        let bound_ns = self.settings.slo.bound_max_ns().unwrap_or(base.load.grace_ns);
        let load = Load {
            // Every trial has a different seed, and so different arrivals.
            seed: plimsoll_model::rng::mix_bits(base.load.seed.wrapping_add(self.trial_count as u64)),
            shape,
            requests_max: None,
            duration_ns: Some(length_ns),
            warmup_ns,
            grace_ns: base.load.grace_ns.min(bound_ns),
            connections_ready: ready.min(base.connection_plan.connections_max),
            interval_ns: Plan::TICK_NS,
            // A closed loop has few users at a time, which stand for many people, so each session
            // logs in as a new user.
            new_users: base.traffic.choice == RouteChoice::Scenarios,
        };
        PlanRecord { load, ..base.clone() }
    }

    /// Returns the number of connections that plimsoll opens before a load: twice the requests in
    /// flight by Little's law, plus a margin. Near the load line the result is at least twice the
    /// users at the peak.
    fn ready_connections(&self, rate: f64) -> u32 {
        let low_s = self.single_user_trial().map_or(0.0, |t| t.evidence.service_mean_ns / 1e9);
        let in_flight = (rate * low_s).ceil() as u64;
        let peak = peak::closed_loop_peak(self.history);
        let at_peak = peak.filter(|p| rate > 0.5 * p.rps).map_or(0, |p| p.users);
        (2 * in_flight.max(at_peak).min(CONNECTIONS_READY_MAX) + 8).min(CONNECTIONS_READY_MAX) as u32
    }

    /// Returns the trial with a single user.
    fn single_user_trial(&self) -> Option<&TrialOutcome> {
        self.history.iter().find(|t| t.purpose == LoadPurpose::Peak && t.user_count() == Some(1))
    }

    /// Returns the response time up to which a server counts as recovered from an overload, ns.
    fn recovered_response_ns(&self) -> u64 {
        self.single_user_trial().map_or(100 * MS, |t| t.p99_ns.saturating_mul(3).saturating_add(5 * MS))
    }

    /// Returns the length of the warm-up in which the number of requests in flight reaches its
    /// steady level, ns. If the number of requests in flight still rose after the warm-up, a slow
    /// server would seem to fall behind. For a fast server the result is 0.
    fn filling_warmup_ns(&self) -> u64 {
        let filling_ns = WARMUP_RESPONSE_TIMES * peak::single_user_response_ns(self.history).unwrap_or(0);
        if filling_ns < WARMUP_LINE_NS { 0 } else { filling_ns.next_multiple_of(Plan::TICK_NS) }
    }

    /// Returns the time in which a few requests arrive at this rate and the last of these requests
    /// gets its response, ns.
    fn time_of_few_arrivals_ns(&self, rate: f64) -> u64 {
        let few_s = TRIAL_ARRIVALS_MIN / rate.max(1e-9);
        let answer_ns = peak::single_user_response_ns(self.history).unwrap_or(0);
        // For a fast server at a usual rate, the time in which a few requests arrive is less than
        // the length of any trial.
        (((few_s * 1e9) as u64).min(TIME_MAX_NS) + answer_ns).next_multiple_of(Plan::TICK_NS)
    }
}

/// Returns the maximum time that the trial of a plan takes, ns.
pub fn trial_time_max_ns(plan: &PlanRecord) -> u64 {
    judged_window_ns(plan).1.saturating_add(plan.load.grace_ns).saturating_add(OVERHEAD_NS)
}
