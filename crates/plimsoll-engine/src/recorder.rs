//! Counts the requests of one worker. At the end of each tick (100 ms) the recorder returns its
//! counts as an interval.

use plimsoll_model::{
    CallFault, CountingHistogram, GrpcStatus, H2Error, Interval, LoadFigures, Outcome, RequestFailure, RouteFigures,
    RouteNumber, TlsFailure, WorkerTime,
};

/// One finished request with its outcome; all times are absolute, ns.
#[derive(Debug, Clone, Copy)]
pub struct FinishedRequest {
    /// The route of the request.
    pub route: RouteNumber,
    /// The time at which the request was intended to start.
    pub intended_ns: u64,
    /// The time at which the first byte of the request was sent; 0 if none was sent.
    pub sent_ns: u64,
    /// The time at which the first byte of the response arrived; 0 if none arrived.
    pub first_byte_ns: u64,
    /// The time at which the request ended.
    pub done_ns: u64,
    /// The status of the response; 0 without a response.
    pub status: u16,
    /// Whether the request succeeded or how it failed.
    pub outcome: Outcome,
    /// The timeout of the request in ns, if the request ended by its timeout; otherwise 0.
    pub timeout_ns: u64,
}

/// The counters of one worker since the end of its last tick (100 ms).
pub struct Recorder {
    /// The figures of the load as a whole. Other modules update the byte counts in `load` directly.
    pub load: LoadFigures<CountingHistogram>,
    routes: Vec<RouteFigures<CountingHistogram>>,
    /// The response times of each route, for successful requests that were sent on time and whose
    /// whole response was received in a single read. A request in this histogram has equal response
    /// time, service time and time to first byte, so one histogram update replaces three. With many
    /// routes, histogram updates are most of the recorder's cost.
    equal_times: Vec<CountingHistogram>,
    /// The time that the worker spent on events and request starts since the last interval, ns.
    pub work_ns: u64,
    /// The number of requests in flight.
    in_flight: u64,
    /// The sum of the intended starts of the requests in flight, ns.
    in_flight_starts_ns: u128,
    /// The time in flight, ns, of the requests that finished since the last interval. Time in
    /// flight that earlier intervals already contain is subtracted.
    in_flight_closed_ns: i128,
    /// The start of the current interval, which is the end of the last interval (absolute, ns).
    interval_start_ns: u64,
    /// The CPU time that the worker's thread had used at the start of the current interval, ns.
    interval_start_cpu_ns: u64,
    worker: u32,
    /// The start and end of the measured window (absolute, ns). A request that completes in the
    /// window counts as throughput, whenever the request was scheduled.
    window_ns: (u64, u64),
}

impl Recorder {
    /// Creates the recorder of worker number `worker`, for a plan with `routes` routes.
    pub fn new(worker: u32, routes: usize) -> Recorder {
        Recorder {
            load: LoadFigures::default(),
            routes: (0..routes).map(|_| RouteFigures::default()).collect(),
            equal_times: vec![CountingHistogram::default(); routes],
            work_ns: 0,
            in_flight: 0,
            in_flight_starts_ns: 0,
            in_flight_closed_ns: 0,
            interval_start_ns: 0,
            interval_start_cpu_ns: 0,
            worker,
            window_ns: (u64::MAX, u64::MAX),
        }
    }

    /// Starts the schedule at `origin_ns`, and discards the work time and CPU time of the
    /// preparation. `window_ns` is the start and end of the measured window, absolute. The end of
    /// the window is `u64::MAX` if a number of requests ends the window.
    pub fn begin(&mut self, origin_ns: u64, window_ns: (u64, u64), cpu_ns: u64) {
        self.interval_start_ns = origin_ns;
        self.interval_start_cpu_ns = cpu_ns;
        self.window_ns = window_ns;
        self.work_ns = 0;
    }

    /// Ends the measured window early, at `at_ns`. Requests that complete after `at_ns` are not
    /// counted as throughput.
    pub fn end_window(&mut self, at_ns: u64) {
        self.window_ns.1 = self.window_ns.1.min(at_ns);
    }

    /// Returns whether `at_ns` is in the measured window.
    #[inline]
    fn in_window(&self, at_ns: u64) -> bool {
        at_ns >= self.window_ns.0 && at_ns <= self.window_ns.1
    }

    /// Counts the start of a request for `route`, including a request that should start but cannot
    /// be sent.
    #[inline]
    pub fn count_started_request(&mut self, route: RouteNumber, intended_ns: u64, measured: bool) {
        self.in_flight += 1;
        self.in_flight_starts_ns += u128::from(intended_ns);
        let figures = &mut self.routes[usize::from(route)];
        figures.in_flight_end += 1;
        figures.ledger.scheduled += u64::from(measured);
    }

    /// Counts a delay between intended start and send of a request that the load generator, not the
    /// server, caused.
    #[inline]
    pub fn count_send_lag(&mut self, lag_ns: u64) {
        self.load.lag.record(lag_ns);
    }

    /// Counts a scheduled request for `route` that was never sent.
    pub fn count_unsent_request(&mut self, route: RouteNumber) {
        let ledger = &mut self.routes[usize::from(route)].ledger;
        ledger.scheduled += 1;
        ledger.unsent += 1;
    }

    /// Counts bytes of a response for `route` that arrived at `at_ns`.
    #[inline]
    pub fn count_received_bytes(&mut self, route: RouteNumber, bytes: usize, at_ns: u64, measured: bool) {
        let in_window = self.in_window(at_ns);
        let figures = &mut self.routes[usize::from(route)];
        figures.answers_bytes += if measured { bytes as u64 } else { 0 };
        figures.answers_bytes_in_window += if in_window { bytes as u64 } else { 0 };
    }

    /// Counts a read at `at_ns` that returned bytes which had been readable for `wait_ns`.
    #[inline]
    pub fn count_read_wait(&mut self, at_ns: u64, wait_ns: u64) {
        if self.in_window(at_ns) {
            self.load.read_wait.record(wait_ns);
        }
    }

    /// Counts a connection that opened, `took_ns` after the start of the connect.
    pub fn count_opened_connection(&mut self, took_ns: u64) {
        self.load.connections_opened += 1;
        self.load.connect.record(took_ns);
    }

    /// Counts a failed connect to the address with this number.
    pub fn count_failed_connect(&mut self, error: u16, address: u16) {
        self.load.connect_errors.add(error, 1);
        self.load.address_errors.add(address, 1);
    }

    /// Counts a finished TLS handshake.
    pub fn count_tls_handshake(&mut self, took_ns: u64, resumed: bool) {
        self.load.handshake.record(took_ns);
        self.load.handshakes_resumed += u64::from(resumed);
    }

    /// Counts a TLS failure.
    pub fn count_tls_failure(&mut self, reason: TlsFailure) {
        self.load.tls_errors.add(reason as u16, 1);
    }

    /// Counts an open connection that uses HTTP/2.
    pub fn count_h2_connection(&mut self) {
        self.load.h2_connections += 1;
    }

    /// Counts a request that waits because all streams of its connection are in use.
    pub fn count_stream_wait(&mut self) {
        self.load.stream_waits += 1;
    }

    /// Counts that an HTTP/2 server may have to wait, because plimsoll's flow-control window is
    /// nearly exhausted.
    pub fn count_exhausted_flow_window(&mut self) {
        self.load.windows_empty += 1;
    }

    /// Counts a redirect that is followed.
    pub fn count_redirect(&mut self, measured: bool) {
        self.load.redirects += u64::from(measured);
    }

    /// Counts a request that is sent again.
    pub fn count_resent_request(&mut self) {
        self.load.resent += 1;
    }

    /// Counts a stream that the server has reset.
    pub fn count_stream_reset(&mut self, error: H2Error) {
        self.load.stream_resets.add(error as u16, 1);
    }

    /// Counts a connection whose end the server announced by a GOAWAY frame.
    pub fn count_goaway(&mut self, error: H2Error) {
        self.load.goaways.add(error as u16, 1);
    }

    /// Counts received bytes that belong to no response. The worker closes a connection that
    /// received bytes without a matching request.
    #[cold]
    pub fn count_surplus_bytes(&mut self, bytes: usize) {
        self.load.surplus_bytes += bytes as u64;
        self.load.surplus_connections += 1;
    }

    /// Counts a measured gRPC call for `route` that ended with this status, and the fault in its
    /// messages, if any. `is_large`: a message is longer than gRPC clients accept by default.
    #[inline]
    pub fn count_grpc_call(
        &mut self,
        route: RouteNumber,
        status: GrpcStatus,
        fault: Option<CallFault>,
        is_large: bool,
    ) {
        let figures = &mut self.routes[usize::from(route)];
        figures.grpc_statuses.add(status as u16, 1);
        figures.grpc_large_answers += u64::from(is_large);
        if let Some(fault) = fault {
            figures.grpc_faults.add(fault as u16, 1);
        }
    }

    /// Counts complete messages that a measured gRPC call for `route` received.
    #[inline]
    pub fn count_grpc_messages(&mut self, route: RouteNumber, count: u32) {
        self.routes[usize::from(route)].grpc_messages += u64::from(count);
    }

    /// Counts messages of a streamed response that arrived together. `after_ns` is the time since
    /// the previous message. For the first message (`is_first`), `after_ns` is the time since the
    /// first byte of the request was sent.
    pub fn count_stream_messages(&mut self, route: RouteNumber, count: u32, after_ns: u64, is_first: bool) {
        let figures = &mut self.routes[usize::from(route)];
        if is_first {
            figures.first_message.record(after_ns)
        } else {
            figures.message_gap.record(after_ns)
        }
        (1..count).for_each(|_| figures.message_gap.record(0));
    }

    /// Counts the end of a request whose start [`Recorder::count_started_request`] counted.
    #[inline]
    pub fn count_finished_request(&mut self, sample: &FinishedRequest, measured: bool) {
        self.in_flight -= 1;
        self.in_flight_starts_ns -= u128::from(sample.intended_ns);
        self.in_flight_closed_ns += i128::from(sample.done_ns) - i128::from(sample.intended_ns);
        let in_window = self.in_window(sample.done_ns);
        let figures = &mut self.routes[usize::from(sample.route)];
        figures.in_flight_end -= 1;
        // Throughput counts requests that complete in the measured window. The ledger of outcomes
        // counts requests that were scheduled in the measured window.
        figures.succeeded_in_window += u64::from(in_window && sample.outcome == Outcome::Success);
        if !measured {
            return;
        }
        if sample.status != 0 {
            figures.statuses.add(sample.status, 1);
        }
        let response_ns = sample.done_ns - sample.intended_ns;
        match sample.outcome {
            Outcome::Success => {
                figures.ledger.succeeded += 1;
                let service_ns = sample.done_ns - sample.sent_ns;
                let ttfb_ns = sample.first_byte_ns - sample.sent_ns;
                if response_ns == service_ns && service_ns == ttfb_ns {
                    self.equal_times[usize::from(sample.route)].record(response_ns);
                } else {
                    figures.response.record(response_ns);
                    figures.service.record(service_ns);
                    figures.ttfb.record(ttfb_ns);
                }
            }
            Outcome::Failed(failure) => {
                figures.ledger.failed[failure as usize] += 1;
                if failure == RequestFailure::Timeout {
                    figures.response.record(response_ns.max(sample.timeout_ns));
                    // After a slow connect a request is sent late, so the time from its send to its
                    // end can be shorter than its timeout. The recorded service time of a timed-out
                    // request is at least the length of the timeout.
                    if sample.sent_ns != 0 {
                        figures.service.record((sample.done_ns - sample.sent_ns).max(sample.timeout_ns));
                    }
                } else {
                    figures.failed.record(response_ns);
                }
            }
        }
    }

    /// Counts a measured response for `route` whose status differs from the replayed log.
    pub fn count_changed_status(&mut self, route: RouteNumber) {
        self.routes[usize::from(route)].status_changed += 1;
    }

    /// Counts a measured request for `route` that is still in flight at the end of the run.
    pub fn count_in_flight_at_end(&mut self, route: RouteNumber) {
        self.routes[usize::from(route)].ledger.in_flight += 1;
    }

    /// Counts a measured session that has begun.
    pub fn count_started_session(&mut self) {
        self.load.sessions_started += 1;
    }

    /// Counts a measured session that ended. `took_ns` is the duration of the session from its
    /// intended start. `None`: a request of the session failed.
    pub fn count_ended_session(&mut self, took_ns: Option<u64>) {
        match took_ns {
            Some(took_ns) => {
                self.load.sessions_completed += 1;
                self.load.session_time.record(took_ns);
            }
            None => self.load.sessions_abandoned += 1,
        }
    }

    /// Counts measured sessions that were still active when the load ended.
    pub fn count_cut_sessions(&mut self, count: u64) {
        self.load.sessions_cut += count;
    }

    /// Adds the duration (ns) of a poll that returned no event while no other thread wanted the
    /// core.
    #[inline]
    pub fn add_idle_poll_time(&mut self, ns: u64) {
        self.load.looked_ns += ns;
    }

    /// Returns the number of requests in flight, including requests outside the measured window.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Returns the counts since the last interval as the interval that ends at `at_ns`, and resets
    /// the counts. `cpu_ns` is the CPU time that the worker's thread has used so far.
    /// `connections_open` is the number of open connections.
    pub fn take_interval(&mut self, at_ns: u64, cpu_ns: u64, connections_open: u64) -> Interval {
        // The integral of requests in flight over time is the time of finished requests, plus the
        // time of open requests until `at_ns`. Time in flight that earlier intervals already
        // contain is subtracted.
        let open_ns = i128::from(self.in_flight) * i128::from(at_ns) - self.in_flight_starts_ns as i128;
        // Requests that start after `at_ns` can make the balance of time in flight negative. A
        // negative balance is carried over to the next interval, so that the sum over all intervals
        // is exact.
        let balance_ns = self.in_flight_closed_ns + open_ns;
        let in_flight_ns = balance_ns.max(0) as u64;
        self.in_flight_closed_ns = balance_ns.min(0) - open_ns;
        let time = WorkerTime {
            worker: self.worker,
            work_ns: std::mem::take(&mut self.work_ns),
            cpu_ns: cpu_ns.saturating_sub(self.interval_start_cpu_ns),
            wall_ns: at_ns.saturating_sub(self.interval_start_ns),
        };
        self.interval_start_cpu_ns = cpu_ns;
        self.interval_start_ns = self.interval_start_ns.max(at_ns);
        self.load.in_flight_ns = in_flight_ns;
        self.load.connections_open = connections_open;
        self.load.workers.push(time);
        let answers = self.routes.iter().map(|figures| figures.statuses.total()).sum();
        if answers > 0 {
            self.load.worker_answers.add(self.worker as u16, answers);
        }
        let routes =
            self.routes.iter_mut().zip(&mut self.equal_times).zip(0..).filter_map(|((figures, at_once), number)| {
                let mut counted = figures.take(CountingHistogram::drain);
                let at_once = at_once.drain();
                if at_once.count() > 0 {
                    counted.response.merge(&at_once);
                    counted.service.merge(&at_once);
                    counted.ttfb.merge(&at_once);
                }
                (!counted.is_empty()).then_some((number, counted))
            });
        Interval { load: self.load.take(CountingHistogram::drain), routes: routes.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::measures::FigureRef;

    #[test]
    fn the_integral_of_requests_in_flight_is_exact() {
        let mut recorder = Recorder::new(0, 1);
        recorder.begin(100, (100, u64::MAX), 0);
        let finish = |recorder: &mut Recorder, intended_ns, done_ns| {
            let (outcome, timeout_ns) = (Outcome::Success, 1_000);
            let first_byte_ns = done_ns;
            let sample = FinishedRequest {
                route: 0,
                intended_ns,
                sent_ns: intended_ns,
                first_byte_ns,
                done_ns,
                status: 200,
                outcome,
                timeout_ns,
            };
            recorder.count_finished_request(&sample, true);
        };
        recorder.count_started_request(0, 110, true);
        recorder.count_started_request(0, 150, true);
        finish(&mut recorder, 110, 160);
        // The first request was in flight for 50 ns. The second request is in flight for 50 ns
        // until time 200.
        assert_eq!(recorder.take_interval(200, 0, 2).load.in_flight_ns, 100);
        assert_eq!(recorder.take_interval(300, 0, 2).load.in_flight_ns, 100);
        finish(&mut recorder, 150, 350);
        let last = recorder.take_interval(400, 0, 2);
        assert_eq!((last.load.in_flight_ns, last.all_routes().in_flight_end), (50, 0));
    }

    #[test]
    fn a_recorded_timeout_lasts_at_least_the_timeout() {
        let mut recorder = Recorder::new(0, 1);
        let outcome = Outcome::Failed(RequestFailure::Timeout);
        for (done_ns, expect) in [(900, 1_000), (5_000, 5_000)] {
            recorder.count_started_request(0, 0, true);
            let timeout_ns = 1_000;
            let sample = FinishedRequest {
                route: 0,
                intended_ns: 0,
                sent_ns: 0,
                first_byte_ns: 0,
                done_ns,
                status: 0,
                outcome,
                timeout_ns,
            };
            recorder.count_finished_request(&sample, true);
            assert_eq!(recorder.take_interval(10_000, 0, 0).all_routes().response.max_ns(), expect);
        }
    }

    /// Creates a finished request of `route` with a service time of `service_ns`.
    fn finished_request(route: RouteNumber, service_ns: u64, outcome: Outcome) -> FinishedRequest {
        let first_byte_ns = 1 + service_ns / 2;
        let (done_ns, timeout_ns) = (1 + service_ns, 1_000_000_000);
        FinishedRequest { route, intended_ns: 0, sent_ns: 1, first_byte_ns, done_ns, status: 200, outcome, timeout_ns }
    }

    #[test]
    fn routes_are_counted_separately_and_in_flight_persists() {
        let mut recorder = Recorder::new(0, 3);
        for route in [2, 0, 2] {
            recorder.count_started_request(route, 0, true);
        }
        recorder.count_finished_request(&finished_request(2, 500, Outcome::Success), true);
        recorder.count_finished_request(&finished_request(0, 900, Outcome::Failed(RequestFailure::Status)), true);
        recorder.count_unsent_request(0);
        recorder.count_received_bytes(0, 100, 5, true);
        recorder.count_received_bytes(2, 20, 5, true);
        recorder.count_received_bytes(2, 3, 5, true);
        let first = recorder.take_interval(1_000, 0, 0);
        let seen: Vec<_> = first.routes.iter().map(|(route, f)| (route, f.ledger.scheduled, f.in_flight_end)).collect();
        assert_eq!(seen, [(0, 2, 0), (2, 2, 1)]);
        assert_eq!(
            first.routes.get(2).map(|f| (f.response.count(), f.ttfb.count(), f.failed.count())),
            Some((1, 1, 0))
        );
        assert_eq!((first.all_routes().ledger.finished_requests(), first.all_routes().answers_bytes), (2, 123));
        assert_eq!(first.routes.iter().map(|(_, f)| f.answers_bytes).collect::<Vec<_>>(), [100, 23]);
        // Nothing happened in the second interval, but one request is still in flight.
        let second = recorder.take_interval(2_000, 0, 0);
        assert_eq!(second.routes.iter().map(|(route, f)| (route, f.in_flight_end)).collect::<Vec<_>>(), [(2, 1)]);
        recorder.count_in_flight_at_end(2);
        assert_eq!(recorder.take_interval(3_000, 0, 0).routes.get(2).map(|f| f.ledger.in_flight), Some(1));
    }

    #[test]
    fn throughput_counts_completions_and_the_ledger_counts_arrivals() {
        // Each case has a request (measured, end time, outcome), and the expected counts of this
        // request in throughput and in the ledger. The window is from 100 to 200 ns.
        let failed = Outcome::Failed(RequestFailure::Status);
        for (measured, done_ns, outcome, expect) in [
            (false, 99, Outcome::Success, (0, 0)),
            (false, 100, Outcome::Success, (1, 0)),
            (false, 150, failed, (0, 0)),
            (true, 150, Outcome::Success, (1, 1)),
            (true, 200, Outcome::Success, (1, 1)),
            (true, 201, Outcome::Success, (0, 1)),
            (true, 150, failed, (0, 1)),
        ] {
            let mut recorder = Recorder::new(0, 1);
            recorder.begin(0, (100, 300), 0);
            recorder.end_window(200);
            let (intended_ns, bytes) = (if measured { 100 } else { 50 }, 7);
            recorder.count_started_request(0, intended_ns, measured);
            recorder.count_received_bytes(0, bytes, done_ns, measured);
            let sample = FinishedRequest { intended_ns, done_ns, ..finished_request(0, 0, outcome) };
            recorder.count_finished_request(
                &FinishedRequest { sent_ns: intended_ns, first_byte_ns: done_ns, ..sample },
                measured,
            );
            let interval = recorder.take_interval(1_000, 0, 0);
            let whole = interval.all_routes();
            let what = format!("{measured}, {done_ns}, {outcome:?}");
            assert_eq!((whole.succeeded_in_window, whole.ledger.finished_requests()), expect, "{what}");
            let in_window = (100..=200).contains(&done_ns);
            let counted = |counts: bool| if counts { bytes as u64 } else { 0 };
            let bytes = (whole.answers_bytes_in_window, whole.answers_bytes);
            assert_eq!(bytes, (counted(in_window), counted(measured)), "{what}");
        }
    }

    #[test]
    fn equal_times_appear_in_all_three_histograms() {
        let mut recorder = Recorder::new(0, 1);
        let [mut response, mut service, mut ttfb] = [const { Vec::new() }; 3];
        // Each case has four times of a request: intended start, send, first byte and end.
        for (intended_ns, sent_ns, first_byte_ns, done_ns) in [
            (5, 5, 905, 905),
            (5, 5, 305, 905),
            (5, 9, 905, 905),
            (7, 7, 107, 107),
            (3, 8, 9, 10),
            (7, 7, 5_007, 5_007),
        ] {
            recorder.count_started_request(0, intended_ns, true);
            let took = finished_request(0, 0, Outcome::Success);
            recorder.count_finished_request(
                &FinishedRequest { intended_ns, sent_ns, first_byte_ns, done_ns, ..took },
                true,
            );
            response.push(done_ns - intended_ns);
            service.push(done_ns - sent_ns);
            ttfb.push(first_byte_ns - sent_ns);
        }
        let of = |values: &[u64]| {
            let mut counted = CountingHistogram::default();
            values.iter().for_each(|ns| counted.record(*ns));
            counted.drain()
        };
        let interval = recorder.take_interval(10_000, 0, 0);
        let counted = interval.all_routes();
        assert_eq!((&counted.response, &counted.service, &counted.ttfb), (&of(&response), &of(&service), &of(&ttfb)));
        assert!(recorder.take_interval(20_000, 0, 0).routes.iter().next().is_none());
    }

    #[test]
    fn two_hundred_routes_on_two_workers_stay_under_40_mb() {
        let mut rng = plimsoll_model::rng::Rng::new(1);
        let mut bytes = 0;
        for worker in 0..2 {
            let mut recorder = Recorder::new(worker, 200);
            for tick in 1..=20 {
                for _ in 0..50_000 {
                    // Each route has its own latency between 0.1 ms and 100 ms. Latencies within a
                    // route spread widely: 99 % lie within a factor of 3.7 of the middle. Some
                    // requests fail, and some time out.
                    let route = rng.uniform_below(200) as RouteNumber;
                    let middle_ns = 100_000.0 * 1_000f64.powf(f64::from(route) / 200.0);
                    let spread: f64 = (0..12).map(|_| rng.uniform_below(1_000_000) as f64 / 1e6).sum::<f64>() - 6.0;
                    let service_ns = (middle_ns * (0.5 * spread).exp()) as u64;
                    let (outcome, service_ns) = match rng.uniform_below(1_000) {
                        0 => (Outcome::Failed(RequestFailure::Timeout), 1_000_000_000),
                        1..=10 => (Outcome::Failed(RequestFailure::Status), service_ns / 4),
                        _ => (Outcome::Success, service_ns),
                    };
                    recorder.count_started_request(route, 0, true);
                    recorder.count_finished_request(&finished_request(route, service_ns, outcome), true);
                }
                recorder.take_interval(tick * 100_000_000, 0, 64);
            }
            let of_route = |figures: &RouteFigures<CountingHistogram>| {
                let times = figures.figure_values().filter_map(|(_, held)| match held {
                    FigureRef::Times(times) => Some(times.memory_bytes()),
                    _ => None,
                });
                times.sum::<usize>()
            };
            bytes += recorder.routes.iter().map(of_route).sum::<usize>();
            bytes += recorder.equal_times.iter().map(CountingHistogram::memory_bytes).sum::<usize>();
        }
        assert!(bytes < 40_000_000, "{bytes}");
        // The histograms must use more than 5 MB, because the upper limit of 40 MB proves nothing
        // about empty histograms.
        assert!(bytes > 5_000_000, "{bytes}");
    }
}
