//! The choice of the next trial of a search ([`TrialChooser`]). The search begins with closed-loop
//! loads of more and more users. Closed-loop loads that keep the server saturated then show its
//! capacity, and open-loop loads try rates near the probable load line. If the budget suffices,
//! further loads confirm the load line.

use super::budget_division::{BudgetDivision, TRIAL_RESPONSE_TIMES_MIN};
use super::capacity::{is_capacity_hidden_by_generator, is_rejecting_overload};
use super::chance::{
    TriedRates, backlog_dispersion, breaks_slo_even_if_disturbed, can_contradict_lower_end, fails_beyond_chance,
    is_line_supported, is_machine_shared, makes_upper_end_doubtful,
};
use super::line_estimate::LineEstimate;
use super::peak;
use super::plans::{Planner, TRIAL_ARRIVALS_MIN, round_rate, trial_time_max_ns};
use super::present_capacity::LastCapacityChange;
use super::quota::QuotaEstimate;
use super::search_settings::{PlannedTrial, StopReason, is_line_or_confirming_trial, is_void_by_generator};
use super::search_state::SearchState;
use super::target_loss::ServerLoss;
use crate::judge::{TrialOutcome, Verdict};
use plimsoll_model::units::SECOND;
use plimsoll_model::{LoadPurpose, Plan};
use plimsoll_statistics::line_distribution::{LINE_QUANTILE_HIGH, LINE_QUANTILE_LOW};

/// The maximum number of repetitions of the first load (a single user) while no request gets a
/// response.
const FIRST_LOAD_REPETITIONS_MAX: u32 = 3;
/// Each repetition of the first load (a single user) takes this multiple of the time of the
/// previous load.
const FIRST_LOAD_FACTOR: u64 = 4;
/// After this number of consecutive trials near the load line that exceeded plimsoll's capacity,
/// the search stops: the generator is the limit.
const CONSECUTIVE_VOID_TRIALS_MAX: usize = 3;
/// The search stops if the load line is confirmed and its 90 % interval is narrow. An interval is
/// narrow if its upper end is at most this multiple of its lower end.
const NARROW_INTERVAL_FACTOR_MAX: f64 = 1.02;
/// A closed-loop trial that keeps the server saturated has this multiple of the number of users
/// that just saturate the server.
const SATURATING_FACTOR: u64 = 4;
/// The minimum number of users of a closed-loop trial that keeps the server saturated.
const SATURATING_USERS_MIN: u64 = 8;
/// The number of closed-loop trials that saturate the server, before the first trial near the load
/// line.
const SATURATED_TRIALS_FIRST: usize = 6;
/// The number of closed-loop trials that saturate the server, before the first trial near the load
/// line, in a small budget.
const SATURATED_TRIALS_SMALL_BUDGET: usize = 2;
/// The number of completions for which a trial of the saturated server is planned.
const SATURATED_COMPLETIONS: f64 = 1000.0;
/// The minimum number of completions in a trial of the saturated server with the maximum length.
/// The search makes no trials of a slower saturated server: trials with fewer completions would
/// give no useful estimate of the capacity and leave a long backlog.
const SATURATED_COMPLETIONS_MIN: f64 = 20.0;
/// The maximum length of a trial that saturates the server, as a share of the budget.
const SATURATED_TRIAL_BUDGET_SHARE: f64 = 1.0 / 12.0;
/// The maximum number of trials that try to confirm one lower end of the load line.
const CONFIRMING_TRIALS_MAX: usize = 4;
/// The load line's interval counts as wide if its lower end is below this share of its median. In a
/// wide interval, a confirming trial tries the lower quartile ([`LOWER_QUARTILE`]) instead of the
/// lower end.
const WIDE_INTERVAL_LOWER_END_SHARE_MAX: f64 = 0.7;
/// The probability that the load line is below the lower quartile.
const LOWER_QUARTILE: f64 = 0.25;
/// The search tries a lower rate after this number of failed trials near the load line, if no trial
/// near the line met the SLO.
const FAILS_BEFORE_DESCENT: usize = 2;
/// Each descent lowers the rate to this share of the lowest rate that failed.
const DESCENT_FACTOR: f64 = 0.8;
/// Each ascent raises the rate to this multiple of the highest rate that met the SLO.
const ASCENT_FACTOR: f64 = 1.05;
/// The minimum response time under load, as a share of the response time of a single user. A server
/// under load may respond faster, because its threads need not be woken. A measured Go server under
/// load took 0.77 of the response time of a single user.
const BUSY_RESPONSE_SHARE_MIN: f64 = 0.7;
/// The lowest rate at which the search looks for the load line, as a share of the peak goodput.
/// With a strict SLO, the load line can be far below the peak. The larger of this rate and
/// [`SEARCHED_RATE_RPS_MIN`] applies.
const SEARCHED_RATE_PEAK_SHARE_MIN: f64 = 1.0 / 2000.0;
/// The lowest rate at which the search looks for the load line, 1/s: one request in 20 s.
const SEARCHED_RATE_RPS_MIN: f64 = 0.05;
/// The maximum number of users of a closed-loop trial.
const CLOSED_LOOP_USERS_MAX: u64 = 16_384;
/// A trial of the saturated server can narrow the load line's interval only if the uncertain
/// capacity causes more than this share of the interval's variance.
const CAPACITY_VARIANCE_SHARE_MIN: f64 = 0.5;

/// The data for the choice of the next trial: the state of the search, and the outcomes of all
/// earlier trials.
pub(super) struct TrialChooser<'a> {
    search_state: &'a SearchState<'a>,
    /// The trials that measured the server with its present capacity, and the trials of the climb
    /// (closed loads of more and more users).
    present_trials: &'a [TrialOutcome],
    /// All trials of the search, in order.
    all_trials: &'a [TrialOutcome],
    plans: Planner<'a>,
}

impl<'a> TrialChooser<'a> {
    /// Creates the choice of the next trial. `known` contains the trials that measured the server
    /// with its present capacity ([`super::present_capacity::LastCapacityChange`]). `all`
    /// contains all trials.
    pub(super) fn new(known: &'a SearchState<'a>, all: &'a [TrialOutcome], elapsed_ns: u64) -> TrialChooser<'a> {
        TrialChooser {
            search_state: known,
            present_trials: known.history,
            all_trials: all,
            plans: Planner::new(known, all.len(), elapsed_ns),
        }
    }

    /// Returns the next trial, or the reason to stop.
    pub(super) fn next_trial(&self) -> Result<PlannedTrial, StopReason> {
        if ServerLoss::detect(self.all_trials).is_some() {
            return Err(StopReason::ServerLost);
        }
        if let Some(measure) = QuotaEstimate::from_history(self.all_trials).next_trial(&self.plans) {
            return measure;
        }
        if let Some(measure) = self.next_peak_trial() {
            return measure;
        }
        if self.search_state.stalls.as_ref().is_some_and(|stalls| stalls.impossible_bound.is_some()) {
            return Err(StopReason::Stalls);
        }
        if self.needs_saturated_trials() {
            let measure = self.saturated_trial();
            if self.plans.fits_in_budget(&measure) {
                return Ok(measure);
            }
        }
        if let Some(measure) = self.plans.backlog_drain_load() {
            return Ok(measure);
        }
        if self.consecutive_generator_void_trials() >= CONSECUTIVE_VOID_TRIALS_MAX {
            return Err(StopReason::GeneratorLimited);
        }
        self.next_trial_near_line()
    }

    /// Returns the next closed-loop trial; `None` if the climb to the peak (trials with more and
    /// more users) has ended.
    fn next_peak_trial(&self) -> Option<Result<PlannedTrial, StopReason>> {
        if self.all_trials.iter().any(|t| t.purpose != LoadPurpose::Peak && t.purpose != LoadPurpose::Settle) {
            return None;
        }
        if peak::has_first_answered_load_failed(self.present_trials) {
            return Some(Err(StopReason::NothingSucceeds));
        }
        let users_max = self.users_max();
        if peak::single_user_response_ns(self.present_trials).is_none() {
            return Some(self.first_load());
        }
        let users =
            peak::next_user_count(self.present_trials, self.search_state.budget_division.users_factor, users_max)?;
        let (p50_ns, planned_ns) = self.present_trials.last().map_or((0, 0), |t| (t.p50_ns, t.planned_ns));
        // Responses to more users take longer than the responses in the last trial, so the trial's
        // length follows from the last median.
        let least_ns = p50_ns.saturating_mul(TRIAL_RESPONSE_TIMES_MIN).min(planned_ns.saturating_mul(2));
        let shown_ns = p50_ns.saturating_mul(8).min(SECOND);
        let length_ns = shown_ns.max(least_ns).max(self.search_state.budget_division.climb_trial_ns) / Plan::TICK_NS
            * Plan::TICK_NS;
        if self.plans.elapsed_ns.saturating_add(length_ns) > self.search_state.budget_division.climb_end_ns_max {
            return None;
        }
        Some(self.require_fit_in_budget(self.plans.closed_loop_trial(LoadPurpose::Peak, users, length_ns)))
    }

    /// Returns the largest number of users of a closed-loop trial. If a maximum rate is set, so few
    /// users are returned that they cannot exceed the maximum rate. A small number of users limits
    /// the rate, because each user waits for its response before its next request. Returns 0 if
    /// even a single user may exceed the maximum rate, or if no request has got a response yet.
    fn users_max(&self) -> u64 {
        let connections =
            u64::from(self.search_state.settings.base.connection_plan.connections_max).min(CLOSED_LOOP_USERS_MAX);
        let Some(rate_max) = self.search_state.settings.max_rate else { return connections };
        // If more users did not increase the goodput, even more users will not bring the goodput
        // above the maximum rate.
        let is_flat = peak::is_goodput_flat(self.present_trials)
            && peak::closed_loop_peak(self.present_trials)
                .is_some_and(|peak| peak.rps <= BUSY_RESPONSE_SHARE_MIN * rate_max);
        if is_flat {
            return connections;
        }
        let answer_s = peak::single_user_response_ns(self.present_trials).unwrap_or(0) as f64 / 1e9;
        connections.min((rate_max * answer_s * BUSY_RESPONSE_SHARE_MIN) as u64)
    }

    /// Returns the first load: a single user, for a few response times. The first load ends only
    /// after enough responses, because the first response of a server may be slow. A first load
    /// without responses is repeated with a longer duration.
    fn first_load(&self) -> Result<PlannedTrial, StopReason> {
        let silent = self.present_trials.iter().filter(|t| t.purpose == LoadPurpose::Peak).count() as u32;
        if silent > FIRST_LOAD_REPETITIONS_MAX {
            return Err(StopReason::NothingAnswered);
        }
        let wanted_ns = self
            .search_state
            .budget_division
            .climb_trial_ns
            .saturating_mul(2)
            .saturating_mul(FIRST_LOAD_FACTOR.saturating_pow(silent));
        // A single user may exceed the highest allowed rate, so the first load is as short as
        // possible if a highest rate is set.
        let usual_ns = BudgetDivision::for_budget(self.search_state.settings.budget_ns, 0).climb_trial_ns;
        let shown_ns = if self.search_state.settings.max_rate.is_some() { 0 } else { usual_ns };
        let no_room = if silent > 0 { StopReason::NothingAnswered } else { StopReason::Budget };
        let measure = self.plans.first_single_user_load(wanted_ns, shown_ns).ok_or(no_room)?;
        let longer = self.present_trials.last().is_none_or(|t| measure.plan.load.duration_ns > Some(t.planned_ns));
        if longer { Ok(measure) } else { Err(StopReason::NothingAnswered) }
    }

    fn require_fit_in_budget(&self, measure: PlannedTrial) -> Result<PlannedTrial, StopReason> {
        if self.plans.fits_in_budget(&measure) { Ok(measure) } else { Err(StopReason::Budget) }
    }

    /// Returns the number of most recent trials near the load line that exceeded plimsoll's
    /// capacity.
    fn consecutive_generator_void_trials(&self) -> usize {
        self.present_trials
            .iter()
            .rev()
            .filter(|t| is_line_or_confirming_trial(t))
            .take_while(|t| is_void_by_generator(t))
            .count()
    }

    /// Returns whether trials that saturate the server are possible. To saturate the server, a
    /// trial needs more users than at the peak, and an allowed rate above the peak. The trial also
    /// needs a generator with spare capacity, and enough completions.
    fn can_saturate(&self) -> bool {
        let Some(peak) = peak::closed_loop_peak(self.present_trials) else { return false };
        // If the highest allowed rate ended the climb (closed loops of more and more users), a
        // trial with even more users may exceed this rate.
        let climb_ended_before_rate_max = || peak::users_tried_max(self.present_trials) < self.users_max();
        let is_rate_allowed = self
            .search_state
            .settings
            .max_rate
            .is_none_or(|rate_max| rate_max > peak.rps && climb_ended_before_rate_max());
        let tries = self.present_trials.iter().filter(|trial| trial.purpose == LoadPurpose::Saturate);
        let is_generator_limit = tries.rev().take_while(|trial| is_capacity_hidden_by_generator(trial)).count() >= 2
            || self
                .present_trials
                .iter()
                .any(|trial| trial.purpose == LoadPurpose::Peak && is_capacity_hidden_by_generator(trial));
        let budget_s = self.search_state.settings.budget_ns as f64 / 1e9;
        let has_enough_completions = peak.rps * budget_s * SATURATED_TRIAL_BUDGET_SHARE >= SATURATED_COMPLETIONS_MIN;
        is_rate_allowed && !is_generator_limit && has_enough_completions
    }

    fn needs_saturated_trials(&self) -> bool {
        let saturated = self.present_trials.iter().filter(|trial| trial.purpose == LoadPurpose::Saturate);
        let made = saturated.filter(|trial| !is_capacity_hidden_by_generator(trial)).count();
        // Closed-loop loads of more and more users already overloaded a server that rejects
        // requests, so few more trials of the saturated server suffice.
        let few =
            self.search_state.budget_division.has_few_trials || self.present_trials.iter().any(is_rejecting_overload);
        let first = if few { SATURATED_TRIALS_SMALL_BUDGET } else { SATURATED_TRIALS_FIRST };
        made < first && self.can_saturate() && !self.present_trials.iter().any(is_line_or_confirming_trial)
    }

    fn saturated_trial(&self) -> PlannedTrial {
        let peak = peak::closed_loop_peak(self.present_trials);
        let rps = peak.map_or(100.0, |peak| peak.rps);
        let at_peak = peak::saturating_users(self.present_trials);
        // If the goodput still grew with the number of users, more users than in the best
        // closed-loop trial are needed to saturate the server.
        let best = peak.filter(|_| peak::is_goodput_still_growing(self.present_trials)).map_or(1, |peak| peak.users);
        let users = at_peak.max(best).saturating_mul(SATURATING_FACTOR).max(SATURATING_USERS_MIN);
        // The number of users is limited: with `timeout_s / 2.0 * rps` users, a request waits for
        // half of its timeout on average.
        let timeout_s = self.search_state.settings.base.traffic.timeout_ns_max() as f64 / 1e9;
        let users_by_timeout = ((timeout_s / 2.0 * rps) as u64).max(at_peak.saturating_mul(2));
        let wanted_ns = (SATURATED_COMPLETIONS / rps.max(1e-3) * 1e9) as u64;
        let pace = &self.search_state.budget_division;
        let length_ns = wanted_ns.clamp(
            pace.saturated_trial_ns_min,
            pace.saturated_trial_ns_min
                .max((self.search_state.settings.budget_ns as f64 * SATURATED_TRIAL_BUDGET_SHARE) as u64),
        );
        let length_ns = length_ns / Plan::TICK_NS * Plan::TICK_NS;
        let users = users.min(users_by_timeout).min(self.users_max()).max(1);
        self.plans.saturated_trial(users, SATURATING_FACTOR, length_ns)
    }

    /// Returns a trial that narrows the load line's interval, or a trial that confirms the load
    /// line. A trial that narrows the interval is near the load line or saturates the server. The
    /// error value is the reason to stop the search.
    fn next_trial_near_line(&self) -> Result<PlannedTrial, StopReason> {
        let line = LineEstimate::new(self.search_state);
        let [low, middle, high] = [LINE_QUANTILE_LOW, 0.5, LINE_QUANTILE_HIGH].map(|p| line.quantile(p));
        let peak_rps = peak::closed_loop_peak(self.present_trials).map_or(1.0, |peak| peak.rps);
        // The lowest rate that the search tries (`floor`) is below the highest allowed rate, which
        // may be far below the peak.
        let floor = (peak_rps * SEARCHED_RATE_PEAK_SHARE_MIN).max(SEARCHED_RATE_RPS_MIN).min(line.rate_rps_max / 2.0);
        let tried = || self.present_trials.iter().filter(|trial| is_line_or_confirming_trial(trial));
        if middle < floor || tried().next().is_none() && line.capacity.is_none() {
            let lowest = tried().filter_map(TrialOutcome::offered_rps).fold(f64::INFINITY, f64::min);
            let fails = tried().filter(|t| t.verdict == Verdict::Fail && t.offered_rps() <= Some(floor * 1.01)).count();
            if fails >= 2 {
                return Err(StopReason::LowestFails);
            }
            let rate = if lowest.is_finite() { (lowest / 4.0).max(floor) } else { (peak_rps / 2.0).max(floor) };
            let rate = rate.min(line.rate_rps_max);
            return self.require_fit_in_budget(self.line_trial(rate, self.search_state.budget_division.line_trial_ns));
        }
        let narrow = high <= low * NARROW_INTERVAL_FACTOR_MAX && low > 0.0;
        let is_above_rate_max = line.is_above_rate_max();
        let is_confirmed = low > 0.0 && is_line_supported(self.search_state, line.capacity.as_ref(), low);
        let ended_by = if is_above_rate_max { line.rate_max_reason } else { StopReason::PrecisionReached };
        // A trial that contradicts the load line may have been disturbed, so more trials decide if
        // the budget permits.
        let dispersion = backlog_dispersion(self.search_state, line.capacity.as_ref());
        let contradicts = |trial: &&TrialOutcome| {
            fails_beyond_chance(trial, dispersion) && trial.offered_rps().is_some_and(|rate| rate <= high)
        };
        let is_contradicted = tried().any(|trial| contradicts(&trial));
        if let Some(rate) = self.lower_rate_after_failures(dispersion).filter(|rate| *rate >= floor) {
            return self.require_fit_in_budget(self.line_trial(rate, self.search_state.budget_division.line_trial_ns));
        }
        if let Some(rate) =
            self.higher_rate_above_doubtful_end(dispersion, high).filter(|rate| *rate <= line.rate_rps_max)
        {
            let next = self.line_trial(rate, self.search_state.budget_division.line_trial_ns);
            if self.plans.fits_in_budget(&next) {
                return Ok(next);
            }
        }
        if (narrow || is_above_rate_max) && is_confirmed {
            let again = self.line_trial(low, self.search_state.budget_division.line_trial_ns);
            return if is_contradicted && self.plans.fits_in_budget(&again) { Ok(again) } else { Err(ended_by) };
        }
        let confirming = self.present_trials.iter().filter(|trial| trial.purpose == LoadPurpose::Confirm);
        // A trial at the lower end of a wide interval would show little: nearly any server meets
        // the SLO at such a low rate. For a rate limiter, the lower end is tried even so: the
        // interval is wide because the size of the token bucket is unknown.
        let rejects = line.capacity.is_some_and(|capacity| capacity.rejects);
        let is_wide = low < WIDE_INTERVAL_LOWER_END_SHARE_MAX * middle && !rejects;
        let confirming_rate = if is_wide { line.quantile(LOWER_QUARTILE) } else { low };
        let confirm_count = confirming.filter(|trial| can_contradict_lower_end(trial, confirming_rate)).count();
        let confirm = (!is_confirmed && low > 0.0 && confirm_count < CONFIRMING_TRIALS_MAX)
            .then(|| self.confirming_trial(confirming_rate))
            .flatten();
        if (narrow || is_above_rate_max) && tried().next().is_some() && confirm_count < CONFIRMING_TRIALS_MAX {
            return confirm.ok_or(ended_by);
        }
        if LastCapacityChange::is_change_suspected(self.present_trials) && self.can_saturate() {
            let measure = self.saturated_trial();
            if self.plans.fits_in_budget(&measure) {
                return Ok(measure);
            }
        }
        let decisive_rate = line.distribution.decisive_rate_rps.map(|rate| rate.min(line.rate_rps_max));
        // Until a trial near the load line meets the SLO, trials of the saturated server and trials
        // near the load line alternate. Trials of the saturated server alone would never make the
        // capacity certain if it changes from trial to trial.
        let may_saturate = tried().any(|trial| trial.verdict == Verdict::Pass)
            || self.present_trials.last().is_none_or(|last| last.purpose != LoadPurpose::Saturate);
        let saturate = decisive_rate.is_none()
            && may_saturate
            && line.distribution.capacity_variance_share > CAPACITY_VARIANCE_SHARE_MIN
            && self.can_saturate()
            && tried().next().is_some();
        let next = if saturate {
            self.saturated_trial()
        } else {
            // Half of the trials are in the middle of the possible range, and half are at the ends
            // of the range. If the capacity is not known, the rate of the trials increases until a
            // trial fails.
            let failed = tried().any(|trial| trial.verdict == Verdict::Fail);
            let climbing = line.capacity.is_none() && !failed;
            // At a rate below `affordable_rps`, too few requests would arrive in a trial of the
            // usual length.
            let affordable_rps =
                TRIAL_ARRIVALS_MIN * 1e9 / self.search_state.budget_division.line_trial_ns.max(1) as f64;
            let rate = match (decisive_rate, tried().count() % 4) {
                (Some(rate), _) => rate,
                _ if climbing => high,
                (None, 1) => low.max(affordable_rps.min(middle)),
                (None, 3) => high,
                (None, _) => middle,
            };
            self.line_trial(rate.max(floor), self.search_state.budget_division.line_trial_ns)
        };
        let confirm_ns = confirm.as_ref().map_or(0, |measure| trial_time_max_ns(&measure.plan));
        if self.plans.budget_left_ns() >= trial_time_max_ns(&next.plan).saturating_add(confirm_ns) {
            return Ok(next);
        }
        confirm.ok_or(StopReason::Budget)
    }

    /// Returns a rate well below all rates that failed, 1/s, if at least two trials near the load
    /// line failed and none met the SLO. If all trials near the predicted load line fail, the
    /// prediction is wrong, so the search lowers the rate without the prediction.
    fn lower_rate_after_failures(&self, dispersion: f64) -> Option<f64> {
        let is_shared = is_machine_shared(self.present_trials);
        let tried = || self.present_trials.iter().filter(|trial| is_line_or_confirming_trial(trial));
        let broke = |trial: &&TrialOutcome| match is_shared {
            true => breaks_slo_even_if_disturbed(trial, dispersion),
            false => fails_beyond_chance(trial, dispersion),
        };
        let fails = || tried().filter(broke);
        let met = tried()
            .any(|trial| trial.verdict == Verdict::Pass || is_shared && !is_void_by_generator(trial) && !broke(&trial));
        if fails().count() < FAILS_BEFORE_DESCENT || met {
            return None;
        }
        fails().filter_map(TrialOutcome::offered_rps).reduce(f64::min).map(|lowest| lowest * DESCENT_FACTOR)
    }

    /// Returns a rate above all rates that met the SLO, 1/s, if `high`, the upper end of the load
    /// line's interval, is doubtful. The upper end is doubtful if a trial near it met the SLO, and
    /// if no higher rate failed. Doubtful upper ends occur on a machine that other programs use,
    /// where a saturated server gets less CPU time.
    fn higher_rate_above_doubtful_end(&self, dispersion: f64, high: f64) -> Option<f64> {
        let tried = TriedRates::from_history(self.present_trials, dispersion);
        let doubtful = tried
            .highest_passed_rate_rps
            .filter(|rps| tried.failed_rates_rps.is_empty() && makes_upper_end_doubtful(*rps, high));
        doubtful.filter(|_| is_machine_shared(self.present_trials)).map(|rps| rps * ASCENT_FACTOR)
    }

    fn line_trial(&self, rate: f64, length_ns: u64) -> PlannedTrial {
        self.plans.open_loop_trial(LoadPurpose::Line, round_rate(rate), length_ns)
    }

    /// Returns a trial that confirms `rate`. The trial has the usual length, or up to twice this
    /// length if the budget allows. For a server that stalls, the trial is long compared with the
    /// time between stalls. Returns `None` if the budget is too small.
    fn confirming_trial(&self, rate: f64) -> Option<PlannedTrial> {
        let pace = &self.search_state.budget_division;
        let stalls = self.search_state.stalls.as_ref();
        let long_ns =
            stalls.map_or(0, |stalls| stalls.limited_confirming_trial_ns(self.search_state.settings.budget_ns));
        let least_ns = pace.line_trial_ns.max(long_ns) / Plan::TICK_NS * Plan::TICK_NS;
        // The confirming trial runs slightly below `rate`, so that rounding does not raise the
        // trial's rate above `rate`.
        let rate = round_rate(rate * 0.9995);
        let least = self.plans.open_loop_trial(LoadPurpose::Confirm, rate, least_ns);
        if least.purpose == LoadPurpose::Settle {
            return self.plans.fits_in_budget(&least).then_some(least);
        }
        let spare_ns = self.plans.budget_left_ns().checked_sub(trial_time_max_ns(&least.plan))?;
        let longer_ns = spare_ns.min(pace.line_trial_ns) / Plan::TICK_NS * Plan::TICK_NS;
        Some(self.plans.open_loop_trial(LoadPurpose::Confirm, rate, least_ns + longer_ns))
    }
}
