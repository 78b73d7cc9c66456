//! What happened in a stretch of a run: counters and histograms that add up over time, workers and machines.

use crate::histogram::SparseHistogram;
use crate::ledger::Ledger;

/// How one worker spent its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerTime {
    /// Which worker (unique over all machines of a run).
    pub worker: u32,
    /// Time in turns that did work, in ns; waiting and spinning are not work.
    pub work_ns: u64,
    /// CPU time of its thread, in ns (spinning included).
    pub cpu_ns: u64,
    /// Wall-clock time covered, in ns.
    pub wall_ns: u64,
}

impl WorkerTime {
    /// Share of the time spent working, 0..=1.
    pub fn work_share(&self) -> f64 {
        if self.wall_ns == 0 { 0.0 } else { self.work_ns as f64 / self.wall_ns as f64 }
    }
}

/// Counters and histograms of one stretch of a run. Only measured requests are in the ledger and the histograms;
/// bytes, connections and times cover all that happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interval {
    /// Where requests ended. Scheduled requests count where their intended start lies, finished ones where they finished.
    pub ledger: Ledger,
    /// Successes that finished inside the measured window (not in the grace period after it).
    pub succeeded_in_window: u64,
    /// From the intended start to the last byte: successes and timeouts.
    pub response: SparseHistogram,
    /// From the first byte sent to the last byte received: successes and timeouts that were sent.
    pub service: SparseHistogram,
    /// From the first byte sent to the first byte received: successes.
    pub ttfb: SparseHistogram,
    /// Opening a connection, to the moment it can be written to.
    pub connect: SparseHistogram,
    /// Response times of failures other than timeouts.
    pub failed: SparseHistogram,
    /// How late requests were started against their intended start, by the generator itself.
    pub lag: SparseHistogram,
    /// Answers by status code, ascending.
    pub statuses: Vec<(u16, u64)>,
    /// Connections that could not be opened, by the system's error number, ascending; those before the load included.
    pub connect_errors: Vec<(u16, u64)>,
    /// Connections that could not be opened, by the number of their address in the plan, ascending.
    pub address_errors: Vec<(u16, u64)>,
    /// TLS handshakes, from the moment the connection stands to the moment a request can be sent.
    pub handshake: SparseHistogram,
    /// Handshakes that took up an earlier session.
    pub handshakes_resumed: u64,
    /// Failures of TLS, by the number of their reason ([`crate::TlsFailure`]), ascending.
    pub tls_errors: Vec<(u16, u64)>,
    /// Bytes received, heads included.
    pub bytes_in: u64,
    /// Bytes sent, heads included.
    pub bytes_out: u64,
    /// Bytes received that belong to no answer: beyond the end of one, or on a connection that asked for nothing. As far
    /// as they were read: such a connection is closed at once.
    pub surplus_bytes: u64,
    /// Connections that brought such bytes.
    pub surplus_connections: u64,
    /// Connections opened.
    pub connections_opened: u64,
    /// Connections open at the end of the interval.
    pub connections_open: u64,
    /// Integral of the number of requests in flight over the interval, in requests x ns. From the intended start.
    pub in_flight_ns: u64,
    /// Requests in flight at the end of the interval.
    pub in_flight_end: u64,
    /// The workers' times, ascending by worker.
    pub workers: Vec<WorkerTime>,
}

impl Interval {
    /// Adds the same interval as other workers or machines saw it: gauges add up too.
    pub fn merge_beside(&mut self, other: &Interval) {
        self.add_counters(other);
        self.connections_open += other.connections_open;
        self.in_flight_end += other.in_flight_end;
    }

    /// Adds the interval that follows this one: gauges are those of the later.
    pub fn merge_after(&mut self, later: &Interval) {
        self.add_counters(later);
        self.connections_open = later.connections_open;
        self.in_flight_end = later.in_flight_end;
    }

    fn add_counters(&mut self, other: &Interval) {
        self.add_scalars(other);
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.ttfb.merge(&other.ttfb);
        self.connect.merge(&other.connect);
        self.handshake.merge(&other.handshake);
        self.failed.merge(&other.failed);
        self.lag.merge(&other.lag);
    }

    /// Adds all that is neither a histogram nor a gauge.
    pub(crate) fn add_scalars(&mut self, other: &Interval) {
        self.ledger.merge(&other.ledger);
        self.succeeded_in_window += other.succeeded_in_window;
        merge_sorted(&mut self.statuses, &other.statuses, |s| s.0, |mine, theirs| mine.1 += theirs.1);
        merge_sorted(&mut self.connect_errors, &other.connect_errors, |e| e.0, |mine, theirs| mine.1 += theirs.1);
        merge_sorted(&mut self.address_errors, &other.address_errors, |e| e.0, |mine, theirs| mine.1 += theirs.1);
        merge_sorted(&mut self.tls_errors, &other.tls_errors, |e| e.0, |mine, theirs| mine.1 += theirs.1);
        self.handshakes_resumed += other.handshakes_resumed;
        self.bytes_in = self.bytes_in.saturating_add(other.bytes_in);
        self.bytes_out = self.bytes_out.saturating_add(other.bytes_out);
        self.surplus_bytes = self.surplus_bytes.saturating_add(other.surplus_bytes);
        self.surplus_connections += other.surplus_connections;
        self.connections_opened += other.connections_opened;
        self.in_flight_ns = self.in_flight_ns.saturating_add(other.in_flight_ns);
        merge_sorted(
            &mut self.workers,
            &other.workers,
            |w| w.worker,
            |mine, theirs| {
                mine.work_ns = mine.work_ns.saturating_add(theirs.work_ns);
                mine.cpu_ns = mine.cpu_ns.saturating_add(theirs.cpu_ns);
                mine.wall_ns = mine.wall_ns.saturating_add(theirs.wall_ns);
            },
        );
    }
}

/// Merges two lists that ascend by key; equal keys are joined by `add`.
fn merge_sorted<T: Copy, K: Ord>(mine: &mut Vec<T>, theirs: &[T], key: impl Fn(&T) -> K, add: impl Fn(&mut T, &T)) {
    for item in theirs {
        match mine.binary_search_by_key(&key(item), &key) {
            Ok(at) => add(&mut mine[at], item),
            Err(at) => mine.insert(at, *item),
        }
    }
}
