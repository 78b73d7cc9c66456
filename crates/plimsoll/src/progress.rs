//! The figures behind what is shown while a load runs, collected tick by tick.

use plimsoll_engine::{Phase, Tick};
use plimsoll_model::{Histogram, Plan, RouteFigures};
use plimsoll_report::{LiveFigures, Progress};
use std::collections::VecDeque;

/// Ticks of which "now" is made: one second.
const RECENT: usize = 10;
/// Stretches that are kept; from there on two are joined to one.
const RATES_MAX: usize = 480;

/// What happened so far, over all loads of an experiment.
#[derive(Default)]
pub struct Meter {
    recent: VecDeque<RouteFigures>,
    bad: u64,
    /// Successes a second, oldest first, each over `ticks_each` ticks; then the sum of the stretch
    /// under way.
    rates: Vec<f64>,
    ticks_each: usize,
    under_way: (usize, u64),
}

impl Meter {
    /// A new load begins: what is shown as now is of this load alone.
    pub fn next_load(&mut self) {
        self.recent.clear();
        self.bad = 0;
    }

    /// Takes a tick in; returns what is known then. Time and words are the caller's.
    pub fn push(&mut self, tick: &Tick) -> Progress {
        let whole = tick.interval.whole();
        let measured = matches!(tick.phase, Phase::Measured | Phase::Grace);
        if measured {
            self.bad += whole.ledger.failed_total() + whole.ledger.unsent;
            self.recent.push_back(whole.clone());
            if self.recent.len() > RECENT {
                self.recent.pop_front();
            }
        }
        if tick.phase == Phase::Measured {
            self.keep(whole.ledger.succeeded);
        }
        Progress { rates_rps: self.rates.clone(), now: self.now(), bad: self.bad, ..Progress::default() }
    }

    fn keep(&mut self, succeeded: u64) {
        let each = self.ticks_each.max(1);
        self.under_way.0 += 1;
        self.under_way.1 += succeeded;
        if self.under_way.0 >= each {
            let seconds = (each as u64 * Plan::TICK_NS) as f64 / 1e9;
            self.rates.push(self.under_way.1 as f64 / seconds);
            self.under_way = (0, 0);
        }
        if self.rates.len() >= RATES_MAX {
            self.rates = self.rates.chunks(2).map(|pair| pair.iter().sum::<f64>() / pair.len() as f64).collect();
            self.ticks_each = each * 2;
        }
    }

    fn now(&self) -> Option<LiveFigures> {
        let last = self.recent.back()?;
        let mut response = Histogram::new();
        let mut succeeded = 0;
        for whole in &self.recent {
            response.merge_sparse(&whole.response);
            succeeded += whole.ledger.succeeded;
        }
        let seconds = self.recent.len() as f64 * Plan::TICK_NS as f64 / 1e9;
        Some(LiveFigures {
            rps: succeeded as f64 / seconds,
            p50_ns: response.quantile_ns(0.5),
            p90_ns: response.quantile_ns(0.9),
            p99_ns: response.quantile_ns(0.99),
            max_ns: response.max_ns(),
            in_flight: last.in_flight_end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Interval;

    fn tick(number: u64, succeeded: u64) -> Interval {
        let mut response = Histogram::new();
        response.record_n(1_000_000 * (number + 1), succeeded);
        let mut figures = RouteFigures { response: response.drain(), ..RouteFigures::default() };
        (figures.ledger.succeeded, figures.ledger.unsent) = (succeeded, 1);
        Interval { routes: figures.into(), ..Interval::default() }
    }

    #[test]
    fn now_is_the_last_second_and_the_line_is_all_of_it() {
        let mut meter = Meter::default();
        let mut last = Progress::default();
        for number in 0..2000u64 {
            let interval = tick(number, if number < 1000 { 10 } else { 20 });
            let (start_ns, end_ns) = (number * Plan::TICK_NS, (number + 1) * Plan::TICK_NS);
            last = meter.push(&Tick { start_ns, end_ns, phase: Phase::Measured, origin_ns: 0, interval: &interval });
        }
        let now = last.now.expect("figures");
        assert!((now.rps - 200.0).abs() < 1e-9 && last.bad == 2000, "{last:?}");
        assert!(now.p50_ns > 1_900_000_000 && now.max_ns >= now.p99_ns, "{now:?}");
        assert!((100..RATES_MAX).contains(&last.rates_rps.len()), "{}", last.rates_rps.len());
        assert_eq!((last.rates_rps[0], last.rates_rps[last.rates_rps.len() - 1]), (100.0, 200.0));
        meter.next_load();
        let interval = tick(0, 5);
        let tick =
            Tick { start_ns: 0, end_ns: Plan::TICK_NS, phase: Phase::Measured, origin_ns: 0, interval: &interval };
        assert_eq!(meter.push(&tick).now.map(|n| n.rps), Some(50.0));
    }
}
