//! Converts a run to wrk's figures, which a script's `done` receives and `plimsoll wrk` prints. Not
//! here: printing the figures, and the Lua functions that give scripts access to them.

use crate::{ScriptFigures, ScriptSummary};
use plimsoll_model::tally::CountsByKey;
use plimsoll_model::{Histogram, LoadShape, RequestFailure, Run};
use std::collections::BTreeMap;

/// The results of a run as the figures that wrk reports.
pub struct RunFigures {
    /// Totals of the run: duration, responses, bytes and errors.
    pub summary: ScriptSummary,
    /// Service times in us: from sending to the last byte of the response.
    pub service_us: ScriptFigures,
    /// Response times in us: from the intended start to the last byte of the response.
    pub response_us: ScriptFigures,
    /// The rates of the threads in responses per second: at most one sample for each thread and
    /// interval of the run.
    pub requests: ScriptFigures,
    is_open: bool,
}

impl RunFigures {
    /// Computes the figures of one run.
    pub fn from_run(run: &Run) -> RunFigures {
        let totals = run.totals();
        let (whole, load) = (&totals.routes_sum, &totals.load);
        let failed = |kind: RequestFailure| whole.ledger.failed[kind as usize];
        let at_status = |status: &(u16, u64)| if status.0 > 399 { status.1 } else { 0 };
        let duration_ns = run.window_ns.1 - run.window_ns.0;
        let summary = ScriptSummary {
            duration_us: duration_ns / 1000,
            requests: whole.statuses.iter().map(|(_, count)| count).sum(),
            bytes: load.bytes_in,
            errors_connect: failed(RequestFailure::Connect) + failed(RequestFailure::Tls),
            errors_read: failed(RequestFailure::Reset)
                + failed(RequestFailure::ClosedEarly)
                + failed(RequestFailure::Protocol),
            // The number of write errors stays 0. wrk reads before it writes, so wrk also reports
            // an error during sending as a read error.
            errors_write: 0,
            errors_status: whole.statuses.iter().map(|status| at_status(&status)).sum(),
            errors_timeout: failed(RequestFailure::Timeout),
        };
        let mut service = whole.service.clone();
        let mut response = whole.response.clone();
        // The service and response times also include failed requests, with the time until each
        // failure.
        for all in [&mut service, &mut response] {
            all.merge(&whole.failed);
        }
        let is_open = matches!(run.plan.load.shape, LoadShape::Open { .. });
        let requests = thread_rate_samples(
            run.intervals.iter().map(|(index, interval)| (*index, &interval.load.worker_answers)),
            run.worker_count(),
            (run.plan.load.interval_ns, duration_ns),
            is_open,
        );
        RunFigures {
            summary,
            service_us: figures_in_us(&service),
            response_us: figures_in_us(&response),
            requests,
            is_open,
        }
    }

    /// Replaces the service and response times of the run by the times in the histograms `service`
    /// and `response`.
    pub fn with_times(self, service: &Histogram, response: &Histogram) -> RunFigures {
        RunFigures { service_us: figures_in_us(service), response_us: figures_in_us(response), ..self }
    }

    /// Returns the values that scripts know as `latency`. The values are response times for an open
    /// loop (a load with a rate), as in wrk2, and service times for other loads.
    pub fn latency_us(&self) -> &ScriptFigures {
        if self.is_open { &self.response_us } else { &self.service_us }
    }
}

/// Returns a sample of responses per second for each thread and tick (a short interval of equal
/// length) of the load. As in wrk, a tick without responses gives no sample and lengthens the next
/// sample. With `keeps_empty`, as in wrk2, a tick without responses gives a sample of 0. `ticks`
/// contains, for each tick, its index and the number of responses of each thread. `times_ns` is the
/// pair (length of a tick, length of the load), ns.
fn thread_rate_samples<'a>(
    ticks: impl Iterator<Item = (u32, &'a CountsByKey)>,
    threads: u32,
    times_ns: (u64, u64),
    keeps_empty: bool,
) -> ScriptFigures {
    let (tick_ns, load_ns) = (times_ns.0.max(1), times_ns.1);
    let by_tick: BTreeMap<u64, &CountsByKey> = ticks.map(|(index, answers)| (u64::from(index), answers)).collect();
    let nothing = CountsByKey::default();
    let mut samples: BTreeMap<u64, u64> = BTreeMap::new();
    let mut since_ns = vec![0; threads as usize];
    for index in 0..load_ns.div_ceil(tick_ns) {
        let answers = by_tick.get(&index).copied().unwrap_or(&nothing);
        let end_ns = ((index + 1) * tick_ns).min(load_ns);
        for (thread, since_ns) in since_ns.iter_mut().enumerate() {
            let (count, elapsed_ms) = (answers.get(thread as u16), (end_ns - *since_ns) / 1_000_000);
            if elapsed_ms > 0 && (count > 0 || keeps_empty) {
                *samples.entry((count as f64 / elapsed_ms as f64 * 1000.0) as u64).or_default() += 1;
                *since_ns = end_ns;
            }
        }
    }
    ScriptFigures::new(samples)
}

fn figures_in_us(times: &Histogram) -> ScriptFigures {
    let classes =
        times.buckets().map(|(index, count)| (plimsoll_model::histogram::bucket_highest_value(index) / 1000, count));
    ScriptFigures::new(classes).with_exact_extremes(times.min_ns() / 1000, times.max_ns() / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own_samples() {
        let tick = |counts: &[(u16, u64)]| CountsByKey::from_iter(counts.iter().copied());
        // The second thread gets no responses for two ticks (the time intervals of a load). The
        // last tick of the load is half as long as the other ticks, and one tick lies after the end
        // of the load.
        let ticks = [
            (0, tick(&[(0, 10), (1, 20)])),
            (1, tick(&[(0, 30)])),
            (3, tick(&[(1, 6)])),
            (4, tick(&[(0, 5)])),
            (5, tick(&[(0, 1000)])),
        ];
        let of = |keeps_empty| {
            let ticks = ticks.iter().map(|(index, answers)| (*index, answers));
            thread_rate_samples(ticks, 2, (100_000_000, 450_000_000), keeps_empty)
        };
        assert_eq!(of(false), ScriptFigures::new([(100, 1), (200, 1), (300, 1), (20, 2)]));
        assert_eq!(of(true), ScriptFigures::new([(100, 2), (200, 1), (300, 1), (60, 1), (0, 5)]));
        assert_eq!(thread_rate_samples([].into_iter(), 2, (100_000_000, 0), true), ScriptFigures::new([]));
    }
}
