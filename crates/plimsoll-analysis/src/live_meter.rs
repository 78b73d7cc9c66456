//! Collects the figures of a running load tick by tick ([`LiveMeter`]). A meter has the figures of
//! the last second, and the throughput since the start in intervals of equal length.
//!
//! Not here: figures of a load that has ended ([`crate::summary`]), and the display of the figures.

use crate::quantile::is_stated;
use plimsoll_model::{Histogram, Interval, Plan, RouteFigures};
use std::collections::VecDeque;

/// The number of ticks that [`LiveFigures`] covers. Ten ticks of 100 ms are one second.
const LIVE_FIGURE_TICKS: usize = 10;
/// The maximum number of throughput intervals. When the number of intervals reaches this maximum,
/// adjacent intervals are joined in pairs.
const THROUGHPUT_INTERVALS_MAX: usize = 480;

/// The figures of the last second of a running load.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LiveFigures {
    /// Successful requests a second.
    pub rps: f64,
    /// Response time p50 in ns; `None` if too few responses were slower to state it.
    pub p50_ns: Option<u64>,
    /// Response time p90 in ns; `None` if too few responses were slower to state it.
    pub p90_ns: Option<u64>,
    /// Response time p99 in ns; `None` if too few responses were slower to state it.
    pub p99_ns: Option<u64>,
    /// Longest response time of the last second, in ns.
    pub max_ns: u64,
    /// Requests in flight at the end of the last second.
    pub in_flight: u64,
    /// Whether the load has just begun, so that the figures cover less than one second.
    pub has_just_begun: bool,
}

/// The figures of an experiment while its loads run.
#[derive(Debug, Default)]
pub struct LiveMeter {
    recent: VecDeque<RouteFigures>,
    bad: u64,
    /// Throughput in finished intervals of `ticks_each` ticks, oldest first, in successes a second.
    rates: Vec<f64>,
    ticks_each: usize,
    /// The unfinished last throughput interval: its number of ticks, and its number of successes.
    unfinished_interval: (usize, u64),
}

impl LiveMeter {
    /// Starts the figures of a new load. After this call, [`LiveFigures`] covers only the new load.
    pub fn start_load(&mut self) {
        self.recent.clear();
        self.bad = 0;
    }

    /// Adds a tick of the running load. `in_window` says whether the tick is in the measured
    /// window. Ticks after the measured window contain only the last responses.
    pub fn push(&mut self, interval: &Interval, in_window: bool) {
        let whole = interval.all_routes();
        self.bad += whole.ledger.failed_total() + whole.ledger.unsent;
        self.recent.push_back(whole.clone());
        if self.recent.len() > LIVE_FIGURE_TICKS {
            self.recent.pop_front();
        }
        if in_window {
            self.add_rate(whole.ledger.succeeded);
        }
    }

    fn add_rate(&mut self, succeeded: u64) {
        let each = self.ticks_each.max(1);
        self.unfinished_interval.0 += 1;
        self.unfinished_interval.1 += succeeded;
        if self.unfinished_interval.0 >= each {
            let seconds = (each as u64 * Plan::TICK_NS) as f64 / 1e9;
            self.rates.push(self.unfinished_interval.1 as f64 / seconds);
            self.unfinished_interval = (0, 0);
        }
        if self.rates.len() >= THROUGHPUT_INTERVALS_MAX {
            self.rates = self.rates.chunks(2).map(|pair| pair.iter().sum::<f64>() / pair.len() as f64).collect();
            self.ticks_each = each * 2;
        }
    }

    /// Returns the throughput since the start of the first load in intervals of equal length,
    /// oldest first, in successes a second.
    pub fn throughput_intervals_rps(&self) -> &[f64] {
        &self.rates
    }

    /// Returns the number of requests of the current load that failed or were never sent.
    pub fn failed_or_unsent(&self) -> u64 {
        self.bad
    }

    /// Returns the figures of the last second; `None` before the first measurement.
    pub fn last_second_figures(&self) -> Option<LiveFigures> {
        let last = self.recent.back()?;
        let mut response = Histogram::new();
        let mut succeeded = 0;
        for whole in &self.recent {
            response.merge_sparse(&whole.response);
            succeeded += whole.ledger.succeeded;
        }
        let seconds = self.recent.len() as f64 * Plan::TICK_NS as f64 / 1e9;
        let quantile_ns = |q: f64| is_stated(q, response.count()).then(|| response.quantile_ns(q));
        Some(LiveFigures {
            rps: succeeded as f64 / seconds,
            p50_ns: quantile_ns(0.5),
            p90_ns: quantile_ns(0.9),
            p99_ns: quantile_ns(0.99),
            max_ns: response.max_ns(),
            in_flight: last.in_flight_end,
            has_just_begun: self.recent.len() < LIVE_FIGURE_TICKS,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval_with_successes(number: u64, succeeded: u64) -> Interval {
        let mut response = Histogram::new();
        response.record_n(1_000_000 * (number + 1), succeeded);
        let mut figures = RouteFigures { response: response.drain(), ..RouteFigures::default() };
        (figures.ledger.succeeded, figures.ledger.unsent) = (succeeded, 1);
        Interval { routes: figures.into(), ..Interval::default() }
    }

    #[test]
    fn live_figures_cover_one_second_and_the_curve_the_whole_load() {
        let mut meter = LiveMeter::default();
        for number in 0..2000u64 {
            meter.push(&interval_with_successes(number, if number < 1000 { 10 } else { 20 }), true);
        }
        let now = meter.last_second_figures().expect("figures");
        assert!((now.rps - 200.0).abs() < 1e-9 && meter.failed_or_unsent() == 2000, "{now:?}");
        assert!(now.p50_ns > Some(1_900_000_000) && now.p99_ns.is_none(), "{now:?}");
        let rates = meter.throughput_intervals_rps();
        assert!((100..THROUGHPUT_INTERVALS_MAX).contains(&rates.len()), "{}", rates.len());
        assert_eq!((rates[0], rates[rates.len() - 1]), (100.0, 200.0));
        meter.start_load();
        meter.push(&interval_with_successes(0, 5), false);
        assert!(!now.has_just_begun);
        assert_eq!(meter.last_second_figures().map(|now| (now.rps, now.has_just_begun)), Some((50.0, true)));
    }
}
