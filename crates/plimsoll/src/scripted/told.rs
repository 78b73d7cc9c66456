//! A run in the figures of wrk's contract, as scripts are told of it in the end and as `plimsoll wrk` prints it. A run in, figures
//! out. Not here: how they are printed, and the functions that scripts have for them.

use plimsoll_model::{Histogram, LoadShape, RequestFailure, Run};
use plimsoll_script::{ScriptFigures, ScriptSummary};

/// A run in wrk's figures.
pub struct ToldFigures {
    /// Totals.
    pub summary: ScriptSummary,
    /// From sending to the last byte, us.
    pub service_us: ScriptFigures,
    /// From the intended start to the last byte, us.
    pub response_us: ScriptFigures,
    /// Requests a second of a thread, by tenths of a second.
    pub requests: ScriptFigures,
    is_open: bool,
}

impl ToldFigures {
    /// Of one run.
    pub fn of(run: &Run) -> ToldFigures {
        let totals = run.totals();
        let (whole, load) = (&totals.whole, &totals.load);
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
            // What breaks in sending is counted as what it is found to be in reading.
            errors_write: 0,
            errors_status: whole.statuses.iter().map(|status| at_status(&status)).sum(),
            errors_timeout: failed(RequestFailure::Timeout),
        };
        let mut service = whole.service.clone();
        let mut response = whole.response.clone();
        // A request that was given up took its time as well.
        for all in [&mut service, &mut response] {
            all.merge(&whole.failed);
        }
        let interval_s = run.plan.load.interval_ns as f64 / 1e9;
        let threads = run.injectors.iter().map(|injector| u64::from(injector.workers)).sum::<u64>().max(1);
        let a_second = |requests: u64| (requests as f64 / interval_s / threads as f64) as u64;
        // One sample for each thread and interval: each has its share of what all have done.
        let samples = run.intervals.values().map(|interval| interval.whole().ledger.requests());
        let requests = ScriptFigures::new(samples.filter(|count| *count > 0).map(|count| (a_second(count), threads)));
        let is_open = matches!(run.plan.load.shape, LoadShape::Open { .. });
        ToldFigures { summary, service_us: in_us(&service), response_us: in_us(&response), requests, is_open }
    }

    /// What scripts call latency: of a load with a rate from the intended start on, as with wrk2.
    pub fn latency_us(&self) -> &ScriptFigures {
        if self.is_open { &self.response_us } else { &self.service_us }
    }
}

fn in_us(times: &Histogram) -> ScriptFigures {
    let classes = times.buckets().map(|(index, count)| (plimsoll_model::histogram::highest_of(index) / 1000, count));
    ScriptFigures::new(classes).with_exact(times.min_ns() / 1000, times.max_ns() / 1000)
}
