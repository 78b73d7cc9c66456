//! Samples become intervals: what a worker counts while a tick lasts, and hands over at its end.

use plimsoll_model::{Failure, Histogram, Interval, Ledger, Outcome, TlsFailure, WorkerTime};

/// One finished request; times absolute in ns.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// When it was to start.
    pub intended_ns: u64,
    /// When its first byte was sent; 0 if none was.
    pub sent_ns: u64,
    /// When the first byte of the answer came; 0 if none did.
    pub first_byte_ns: u64,
    /// When it was finished.
    pub done_ns: u64,
    /// The answer's status; 0 without an answer.
    pub status: u16,
    /// How it ended.
    pub outcome: Outcome,
    /// The timeout that it had, if that has ended it.
    pub timeout_ns: u64,
}

/// The counters of one worker.
pub struct Recorder {
    ledger: Ledger,
    succeeded_in_window: u64,
    response: Histogram,
    service: Histogram,
    ttfb: Histogram,
    connect: Histogram,
    failed: Histogram,
    lag: Histogram,
    statuses: Box<[u64; 500]>,
    connect_errors: Vec<(u16, u64)>,
    address_errors: Vec<(u16, u64)>,
    handshake: Histogram,
    handshakes_resumed: u64,
    tls_errors: Vec<(u16, u64)>,
    pub bytes_in: u64,
    pub bytes_out: u64,
    surplus_bytes: u64,
    surplus_connections: u64,
    connections_opened: u64,
    pub work_ns: u64,
    /// Requests in flight, the sum of their intended starts, and the time already finished ones took since the last flush.
    in_flight: u64,
    in_flight_starts_ns: u128,
    in_flight_closed_ns: i128,
    flushed_ns: u64,
    cpu_flushed_ns: u64,
    worker: u32,
    window_end_ns: u64,
}

impl Recorder {
    pub fn new(worker: u32) -> Recorder {
        Recorder {
            ledger: Ledger::default(),
            succeeded_in_window: 0,
            response: Histogram::new(),
            service: Histogram::new(),
            ttfb: Histogram::new(),
            connect: Histogram::new(),
            failed: Histogram::new(),
            lag: Histogram::new(),
            statuses: Box::new([0; 500]),
            connect_errors: Vec::new(),
            address_errors: Vec::new(),
            handshake: Histogram::new(),
            handshakes_resumed: 0,
            tls_errors: Vec::new(),
            bytes_in: 0,
            bytes_out: 0,
            surplus_bytes: 0,
            surplus_connections: 0,
            connections_opened: 0,
            work_ns: 0,
            in_flight: 0,
            in_flight_starts_ns: 0,
            in_flight_closed_ns: 0,
            flushed_ns: 0,
            cpu_flushed_ns: 0,
            worker,
            window_end_ns: u64::MAX,
        }
    }

    /// The schedule begins now: what preparations cost is forgotten. `window_end_ns`: absolute end of the measured window
    /// (u64::MAX if only a count ends it).
    pub fn begin(&mut self, origin_ns: u64, window_end_ns: u64, cpu_ns: u64) {
        self.flushed_ns = origin_ns;
        self.cpu_flushed_ns = cpu_ns;
        self.window_end_ns = window_end_ns;
        self.work_ns = 0;
    }

    /// A request starts (or would have).
    #[inline]
    pub fn started(&mut self, intended_ns: u64, measured: bool) {
        self.in_flight += 1;
        self.in_flight_starts_ns += u128::from(intended_ns);
        self.ledger.scheduled += u64::from(measured);
    }

    /// How late the generator started a request of the schedule.
    #[inline]
    pub fn lagged(&mut self, lag_ns: u64) {
        self.lag.record(lag_ns);
    }

    /// A scheduled request was never sent.
    pub fn unsent(&mut self) {
        self.ledger.scheduled += 1;
        self.ledger.unsent += 1;
    }

    /// A connection stands.
    pub fn connected(&mut self, took_ns: u64) {
        self.connections_opened += 1;
        self.connect.record(took_ns);
    }

    /// A connection to the address with this number could not be opened.
    pub fn connect_failed(&mut self, error: u16, address: u16) {
        add(&mut self.connect_errors, error);
        add(&mut self.address_errors, address);
    }

    /// A TLS handshake is over.
    pub fn handshaken(&mut self, took_ns: u64, resumed: bool) {
        self.handshake.record(took_ns);
        self.handshakes_resumed += u64::from(resumed);
    }

    /// TLS has failed.
    pub fn tls_failed(&mut self, reason: TlsFailure) {
        add(&mut self.tls_errors, reason as u16);
    }

    /// A connection brought bytes that belong to no answer; it is not used again.
    #[cold]
    pub fn surplus(&mut self, bytes: usize) {
        self.surplus_bytes += bytes as u64;
        self.surplus_connections += 1;
    }

    /// A request that was [`Recorder::started`] is finished.
    #[inline]
    pub fn finished(&mut self, sample: &Sample, measured: bool) {
        self.in_flight -= 1;
        self.in_flight_starts_ns -= u128::from(sample.intended_ns);
        self.in_flight_closed_ns += i128::from(sample.done_ns) - i128::from(sample.intended_ns);
        if !measured {
            return;
        }
        if sample.status != 0 {
            self.statuses[usize::from(sample.status - 100)] += 1;
        }
        let response_ns = sample.done_ns - sample.intended_ns;
        match sample.outcome {
            Outcome::Success => {
                self.ledger.succeeded += 1;
                self.succeeded_in_window += u64::from(sample.done_ns <= self.window_end_ns);
                self.response.record(response_ns);
                self.service.record(sample.done_ns - sample.sent_ns);
                self.ttfb.record(sample.first_byte_ns - sample.sent_ns);
            }
            Outcome::Failed(failure) => {
                self.ledger.failed[failure as usize] += 1;
                if failure == Failure::Timeout {
                    self.response.record(response_ns.max(sample.timeout_ns));
                    // Sent late after a slow connect it was watched for less, but it had not been answered for that long.
                    if sample.sent_ns != 0 {
                        self.service.record((sample.done_ns - sample.sent_ns).max(sample.timeout_ns));
                    }
                } else {
                    self.failed.record(response_ns);
                }
            }
        }
    }

    /// A measured request is given up at the end of the run.
    pub fn abandoned(&mut self) {
        self.ledger.in_flight += 1;
    }

    /// Number of requests in flight, measured or not.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Hands over everything counted since the last flush, as the interval up to `at_ns`.
    pub fn flush(&mut self, at_ns: u64, cpu_ns: u64, connections_open: u64) -> Interval {
        // The integral of the number in flight: finished requests took their time, those under way up to now; less what
        // was handed over already (which began the balance anew at the last flush).
        let open_ns = i128::from(self.in_flight) * i128::from(at_ns) - self.in_flight_starts_ns as i128;
        // Starts after `at_ns` can bring it below 0: that is carried over, so that the sum stays exact.
        let balance_ns = self.in_flight_closed_ns + open_ns;
        let in_flight_ns = balance_ns.max(0) as u64;
        self.in_flight_closed_ns = balance_ns.min(0) - open_ns;
        let statuses: Vec<(u16, u64)> = self
            .statuses
            .iter_mut()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(at, count)| (at as u16 + 100, std::mem::take(count)))
            .collect();
        let time = WorkerTime {
            worker: self.worker,
            work_ns: std::mem::take(&mut self.work_ns),
            cpu_ns: cpu_ns.saturating_sub(self.cpu_flushed_ns),
            wall_ns: at_ns.saturating_sub(self.flushed_ns),
        };
        self.cpu_flushed_ns = cpu_ns;
        self.flushed_ns = self.flushed_ns.max(at_ns);
        Interval {
            ledger: std::mem::take(&mut self.ledger),
            succeeded_in_window: std::mem::take(&mut self.succeeded_in_window),
            response: self.response.drain(),
            service: self.service.drain(),
            ttfb: self.ttfb.drain(),
            connect: self.connect.drain(),
            failed: self.failed.drain(),
            lag: self.lag.drain(),
            statuses,
            connect_errors: std::mem::take(&mut self.connect_errors),
            address_errors: std::mem::take(&mut self.address_errors),
            handshake: self.handshake.drain(),
            handshakes_resumed: std::mem::take(&mut self.handshakes_resumed),
            tls_errors: std::mem::take(&mut self.tls_errors),
            bytes_in: std::mem::take(&mut self.bytes_in),
            bytes_out: std::mem::take(&mut self.bytes_out),
            surplus_bytes: std::mem::take(&mut self.surplus_bytes),
            surplus_connections: std::mem::take(&mut self.surplus_connections),
            connections_opened: std::mem::take(&mut self.connections_opened),
            connections_open,
            in_flight_ns,
            in_flight_end: self.in_flight,
            workers: vec![time],
        }
    }
}

/// One more of `key` in a list that ascends by it.
fn add(counts: &mut Vec<(u16, u64)>, key: u16) {
    match counts.binary_search_by_key(&key, |(key, _)| *key) {
        Ok(at) => counts[at].1 += 1,
        Err(at) => counts.insert(at, (key, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_integral_of_requests_in_flight_is_exact() {
        let mut recorder = Recorder::new(0);
        recorder.begin(100, u64::MAX, 0);
        let finish = |recorder: &mut Recorder, intended_ns, done_ns| {
            let (outcome, timeout_ns) = (Outcome::Success, 1_000);
            let first_byte_ns = done_ns;
            let sample =
                Sample { intended_ns, sent_ns: intended_ns, first_byte_ns, done_ns, status: 200, outcome, timeout_ns };
            recorder.finished(&sample, true);
        };
        recorder.started(110, true);
        recorder.started(150, true);
        finish(&mut recorder, 110, 160);
        // 50 by the first, 50 by the second up to 200.
        assert_eq!(recorder.flush(200, 0, 2).in_flight_ns, 100);
        assert_eq!(recorder.flush(300, 0, 2).in_flight_ns, 100);
        finish(&mut recorder, 150, 350);
        let last = recorder.flush(400, 0, 2);
        assert_eq!((last.in_flight_ns, last.in_flight_end), (50, 0));
    }

    #[test]
    fn a_timeout_is_at_least_as_long_as_the_timeout() {
        let mut recorder = Recorder::new(0);
        let outcome = Outcome::Failed(Failure::Timeout);
        for (done_ns, expect) in [(900, 1_000), (5_000, 5_000)] {
            recorder.started(0, true);
            let timeout_ns = 1_000;
            let sample =
                Sample { intended_ns: 0, sent_ns: 0, first_byte_ns: 0, done_ns, status: 0, outcome, timeout_ns };
            recorder.finished(&sample, true);
            assert_eq!(recorder.flush(10_000, 0, 0).response.max_ns(), expect);
        }
    }
}
