//! The estimate of the load line from the trials made until now, and the highest rate that can be
//! tried ([`LineEstimate`]).
//!
//! Not here: the choice of the next trial ([`super::choice`]).

use super::line_distribution::estimate_load_line;
use super::plans::round_rate;
use super::search_settings::{RATE_MIN, StopReason, is_void_by_generator};
use super::search_state::SearchState;
use crate::judge::TrialOutcome;
use plimsoll_statistics::line_distribution::LINE_QUANTILE_LOW;
use plimsoll_statistics::{Capacity, LoadLineDistribution};

/// The highest rate that a search tries, as a share of the lowest rate that exceeded plimsoll's
/// capacity. If only closed-loop trials exceeded plimsoll's capacity, and the server's capacity is
/// unknown, the share is of the highest closed-loop throughput.
const GENERATABLE_RATE_FACTOR: f64 = 0.93;

/// The estimate of the load line from all trials, and the highest rate that the search can try.
#[derive(Debug)]
pub(super) struct LineEstimate {
    pub capacity: Option<Capacity>,
    /// The probability distribution of the load line.
    pub distribution: LoadLineDistribution,
    /// The highest rate that the search can try, 1/s. The lower of two limits applies: the user's
    /// limit, and the highest rate that plimsoll can generate. Infinite if neither limit exists.
    pub rate_rps_max: f64,
    /// Why the search stops if the server meets the SLO at `rate_rps_max`.
    pub rate_max_reason: StopReason,
}

impl LineEstimate {
    pub(super) fn new(state: &SearchState) -> LineEstimate {
        let history = state.history;
        let capacity = state.estimate_capacity();
        let distribution = estimate_load_line(
            history,
            capacity.as_ref(),
            &state.settings.slo,
            state.settings.arrivals.dispersion(),
            state.single_user_service_s(),
        );
        let mut line =
            LineEstimate { capacity, distribution, rate_rps_max: f64::INFINITY, rate_max_reason: StopReason::MaxRate };
        if let Some(most) = state.settings.max_rate {
            line.rate_rps_max = most;
        }
        // The search tries only rates below the lowest rate that plimsoll could not generate.
        let void = history.iter().filter(|trial| is_void_by_generator(trial)).filter_map(TrialOutcome::offered_rps);
        let lowest = void.fold(f64::INFINITY, f64::min) * GENERATABLE_RATE_FACTOR;
        let closed_limited = history.iter().any(|trial| trial.user_count().is_some() && is_void_by_generator(trial));
        let made = history.iter().filter(|trial| trial.user_count().is_some()).map(|trial| trial.goodput_rps);
        let own = if lowest.is_finite() {
            round_rate(lowest).max(RATE_MIN)
        } else if closed_limited && line.capacity.is_none() {
            round_rate(made.fold(0.0, f64::max) * GENERATABLE_RATE_FACTOR).max(RATE_MIN)
        } else {
            f64::INFINITY
        };
        if own < line.rate_rps_max {
            (line.rate_rps_max, line.rate_max_reason) = (own, StopReason::GeneratorLimited);
        }
        line
    }

    /// Returns the `p` quantile of the load line, 1/s, but at most `rate_rps_max`.
    pub(super) fn quantile(&self, p: f64) -> f64 {
        self.distribution.quantile(p).min(self.rate_rps_max)
    }

    /// Returns whether the load line is almost certainly above the highest rate that can be tried.
    pub(super) fn is_above_rate_max(&self) -> bool {
        self.distribution.quantile(LINE_QUANTILE_LOW) >= self.rate_rps_max
    }
}
