//! The behaviour of a server above its load line ([`OverloadResult`]). One load rises in steps from
//! half the load line to three times the load line, and then returns to half the load line. For
//! each step the result contains the goodput and the failures by kind. The result also contains the
//! recovery time: the time from the fall of the load until the server has recovered.
//!
//! Goodput counts only successes within the longest latency bound of the SLO. A server that answers
//! all requests much later than the longest latency bound has no goodput.
//!
//! Not here: the search for the load line, and the choice of the loads (`study::overload`).

use crate::explain::reference_rate;
use crate::find::Findings;
use crate::judge::Verdict;
use plimsoll_model::retry::RETRY_ROUTE;
use plimsoll_model::units::SECOND;
use plimsoll_model::{FailedResponse, GrpcStatus, Histogram, Interval, RequestFailure, RouteFigures, Run};
use std::ops::Range;

/// The rates of the steps of an overload study, as multiples of the load line. The last step, at
/// half the load line, tests whether the server recovers.
pub const STEP_RATE_FACTORS: [f64; 6] = [0.5, 1.0, 1.5, 2.0, 3.0, 0.5];

/// Returns the base rate of an overload study, 1/s: the load line, whose multiples are the rates of
/// the steps. If the search found no load line (because of stalls or uncertainty), the base rate is
/// the highest throughput that met the SLO. The base rate is 0 if no load met the SLO.
pub fn overload_base_rps(findings: &Findings) -> f64 {
    let held = findings.trials.iter().any(|trial| trial.verdict == Verdict::Pass);
    if held { reference_rate(findings) } else { 0.0 }
}

/// The figures of one step of an overload study, whose rate rises above the load line in steps.
#[derive(Debug, Clone, PartialEq)]
pub struct OverloadStep {
    /// The offered rate of the step, as a multiple of the load line.
    pub factor: f64,
    /// Scheduled requests, without retries, 1/s.
    pub offered_rps: f64,
    /// Retries of failed requests, 1/s; `None` if the clients do not retry.
    pub retries_rps: Option<f64>,
    /// Successful responses within the latency bound of the SLO, 1/s.
    pub goodput_rps: f64,
    /// Successful responses of any response time, 1/s.
    pub succeeded_rps: f64,
    /// Goodput as a share of the load line. At a step at or below the load line that offers less
    /// than the load line, the share is of the offered rate. A step without offered requests has
    /// the share 0.
    pub goodput_share: f64,
    /// Response time p99 of the successful requests, ns; `None` without a response.
    pub accepted_p99_ns: Option<u64>,
    /// The failed and unsent requests, by kind.
    pub unsuccessful: UnsuccessfulCounts,
}

/// Counts of the requests that did not succeed, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnsuccessfulCounts {
    /// Responses with status 429 or 503; for gRPC calls, with RESOURCE_EXHAUSTED or UNAVAILABLE.
    pub overload_status: u64,
    /// Responses that count as failures for a reason other than overload: because of their status,
    /// or because an expectation about the response was not met.
    pub other_status: u64,
    /// Requests that got no complete response before their timeout.
    pub timeout: u64,
    /// Requests whose connection was refused, reset, closed, or broke the protocol.
    pub connection: u64,
    /// Unsent requests: plimsoll could not send them.
    pub unsent: u64,
    /// Median time until the client received a failure other than a timeout, ns; `None` without
    /// such failures.
    pub failure_time_p50_ns: Option<u64>,
}

/// The behaviour of a server above its load line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverloadVerdict {
    /// The goodput is at least nine tenths of the load line at every step above the load line. The
    /// server refuses the surplus requests, or has more capacity than the load line suggests.
    Sheds,
    /// The goodput is at least half of the load line at every step above the load line.
    Degrades,
    /// The goodput falls below half of the load line at some step. Or the server did not recover
    /// during the observation, although its backlog shrinks.
    Collapses,
    /// The server does not recover after the load has fallen, and its backlog does not shrink.
    Metastable,
}

impl OverloadVerdict {
    /// Returns the word for this verdict.
    pub fn word(self) -> &'static str {
        match self {
            OverloadVerdict::Sheds => "sheds",
            OverloadVerdict::Degrades => "degrades",
            OverloadVerdict::Collapses => "collapses",
            OverloadVerdict::Metastable => "metastable",
        }
    }
}

/// The counts of one second of an overload study: scheduled requests, and successful responses
/// within the latency bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OverloadSecond {
    /// Scheduled requests, without retries.
    pub offered: u64,
    /// Successful responses within the latency bound of the SLO.
    pub in_time: u64,
}

impl OverloadSecond {
    fn is_recovered(&self) -> bool {
        let offered = self.offered as f64;
        // A response belongs to a request that arrived up to one response time earlier. So the
        // numbers of responses and arrivals in a second differ by chance.
        let by_chance = (CHANCE_DEVIATIONS_MAX * offered.sqrt()).min(MISSING_BY_CHANCE_SHARE_MAX * offered);
        self.in_time as f64 + by_chance >= RECOVERED_SHARE_MIN * offered
    }
}

/// The result of an overload study, whose load rises in steps above the load line.
#[derive(Debug, Clone, PartialEq)]
pub struct OverloadResult {
    /// The load line, 1/s, in the unit of the offered load: requests or sessions.
    pub line_rps: f64,
    /// Mean number of requests of a session; 1 for a load without sessions.
    pub requests_per_session: f64,
    /// The steps that the load reached.
    pub steps: Vec<OverloadStep>,
    /// The counts of each whole second of the load.
    pub seconds: Vec<OverloadSecond>,
    /// Recovery time, s: from the fall of the load to the end of the last second in which too few
    /// requests met the latency bound. `None` means that the server did not recover during the
    /// observation.
    pub recovery_s: Option<f64>,
    /// How long the server was observed after the load had fallen, s.
    pub watched_s: f64,
    /// Whether the server sends the header `Retry-After` with its rejections. `None` means that the
    /// server rejected no request by a status, or that the header was not observed.
    pub retry_after: Option<bool>,
    /// The verdict; `None` means that the load did not end as planned.
    pub verdict: Option<OverloadVerdict>,
}

/// HTTP statuses by which a server says that it is overloaded.
const OVERLOAD_STATUSES: [u16; 2] = [429, 503];
/// The server counts as recovered in a second if at least this share of the requests of the second
/// succeeds within the latency bound.
const RECOVERED_SHARE_MIN: f64 = 0.95;
/// Number of standard deviations by which the responses of a second may be below the arrivals of
/// the second by chance. The value is the one-sided 1 % quantile of the normal distribution. For
/// Poisson arrivals and a response time of half a second, the variance of arrivals minus responses
/// equals the number of arrivals.
const CHANCE_DEVIATIONS_MAX: f64 = 2.33;
/// Largest share of a second's arrivals whose responses count as missing by chance, even if the
/// second has few arrivals.
const MISSING_BY_CHANCE_SHARE_MAX: f64 = 0.5;
/// The verdict is [`OverloadVerdict::Sheds`] if the goodput is at least this share of the load line
/// at every step above the load line.
const SHEDS_SHARE_MIN: f64 = 0.9;
/// The verdict is [`OverloadVerdict::Degrades`] if the goodput is at least this share of the load
/// line at every step above the load line.
const DEGRADES_SHARE_MIN: f64 = 0.5;
/// The backlog counts as shrinking if it falls by at least this share of the requests offered in
/// the last quarter of the last step. The fall of the backlog is measured from the third to the
/// last quarter of the last step.
const BACKLOG_FALL_SHARE_MIN: f64 = 0.1;

impl OverloadResult {
    /// Computes the result of `run`, whose stages have the rates [`STEP_RATE_FACTORS`] times
    /// `line_rps`. `bound_ns` is the longest latency bound of the SLO. `retried` says whether
    /// failed requests were retried; retries are recorded as a route of their own.
    pub fn from_run(run: &Run, line_rps: f64, bound_ns: Option<u64>, retried: bool) -> OverloadResult {
        let parts = RunTimeline { run, bound_ns, retried };
        let requests_per_session = requests_per_session(parts);
        // The throughput of responses counts requests, not sessions, so the load line is converted
        // to requests a second.
        let requests_line_rps = line_rps * requests_per_session;
        let mut steps = Vec::new();
        let mut back = None;
        let mut from_ns = run.plan.load.warmup_ns;
        for (stage, factor) in run.plan.load.shape.curve().stages.iter().zip(STEP_RATE_FACTORS) {
            let to_ns = from_ns.saturating_add(stage.duration_ns.unwrap_or(0));
            // The run has no figures of a step that lies after the end of the load.
            if to_ns > run.window_ns.1 {
                break;
            }
            steps.push(parts.step_figures(factor, requests_line_rps, from_ns..to_ns));
            back = Some(from_ns..to_ns);
            from_ns = to_ns;
        }
        let back = back.filter(|_| steps.len() == STEP_RATE_FACTORS.len());
        let recovery_s = back.clone().and_then(|back| parts.recovery_s(back));
        let settles = back.clone().is_some_and(|back| parts.backlog_shrinks(back));
        let least = steps.iter().filter(|step| step.factor > 1.0).map(|step| step.goodput_share).reduce(f64::min);
        // If no step had a successful response, `line_rps` was no load line of this server, so
        // there is no verdict.
        let serves = steps.iter().any(|step| step.succeeded_rps > 0.0);
        let verdict = least.filter(|_| back.is_some() && serves).map(|least| match recovery_s {
            None if !settles => OverloadVerdict::Metastable,
            Some(_) if least >= SHEDS_SHARE_MIN => OverloadVerdict::Sheds,
            Some(_) if least >= DEGRADES_SHARE_MIN => OverloadVerdict::Degrades,
            _ => OverloadVerdict::Collapses,
        });
        let is_of_limit = |answer: &&FailedResponse| match answer.grpc_status {
            Some(end) => GrpcStatus::from_code(end.into()).is_refusal(),
            None => OVERLOAD_STATUSES.contains(&answer.status),
        };
        let turned_away = run.failed_answers.iter().filter(is_of_limit);
        OverloadResult {
            line_rps,
            requests_per_session,
            steps,
            seconds: parts.counts_by_second(run.plan.load.warmup_ns..run.window_ns.1),
            recovery_s,
            watched_s: back.map_or(0.0, |back| (back.end - back.start) as f64 / 1e9),
            retry_after: turned_away.filter_map(|answer| answer.has_retry_after).reduce(|a, b| a || b),
            verdict,
        }
    }
}

/// Returns the mean number of requests of a session. The mean is computed from the first step of
/// the load, because all sessions complete only at a rate below the load line.
fn requests_per_session(parts: RunTimeline) -> f64 {
    let load = &parts.run.plan.load;
    let first_ns = load.shape.curve().stages.first().and_then(|stage| stage.duration_ns).unwrap_or(u64::MAX);
    let stretch = load.warmup_ns..load.warmup_ns.saturating_add(first_ns);
    let (requests, sessions) = parts.ticks_in(stretch).fold((0, 0), |sum, (_, interval, _)| {
        (sum.0 + parts.scheduled_and_retried(interval).0, sum.1 + interval.load.sessions_started)
    });
    if sessions > 0 { (requests as f64 / sessions as f64).max(1.0) } else { 1.0 }
}

/// A run, with functions that sum up the figures of a period of the run.
#[derive(Clone, Copy)]
struct RunTimeline<'a> {
    run: &'a Run,
    bound_ns: Option<u64>,
    retried: bool,
}

impl<'a> RunTimeline<'a> {
    /// Returns the ticks whose middle lies in the period `stretch`. Each item contains the middle
    /// of the tick in ns, the tick, and its time integral of the requests in flight, in ns.
    fn ticks_in(self, stretch: Range<u64>) -> impl Iterator<Item = (u64, &'a Interval, u64)> {
        let interval_ns = self.run.plan.load.interval_ns.max(1);
        let all = self.run.intervals.iter().map(move |(index, interval)| {
            let middle_ns = u64::from(*index).saturating_mul(interval_ns).saturating_add(interval_ns / 2);
            (middle_ns, interval, interval.load.in_flight_ns)
        });
        all.filter(move |(middle_ns, ..)| stretch.contains(middle_ns))
    }

    /// Returns the number of first attempts and the number of retries that were scheduled in a
    /// tick.
    fn scheduled_and_retried(self, interval: &Interval) -> (u64, u64) {
        let all = interval.all_routes().ledger.scheduled;
        let again = interval.routes.get(RETRY_ROUTE).filter(|_| self.retried).map_or(0, |again| again.ledger.scheduled);
        (all - again, again)
    }

    /// Returns the number of successful responses within the latency bound.
    fn successes_in_time(self, figures: &RouteFigures) -> u64 {
        let Some(bound_ns) = self.bound_ns else { return figures.ledger.succeeded };
        let late = figures.response.to_histogram().count_above(bound_ns);
        // The histogram of response times also contains timeouts. A timeout counts as late unless
        // it is shorter than the latency bound.
        let timeouts = figures.ledger.failed[RequestFailure::Timeout as usize];
        let is_beyond = self.run.plan.traffic.routes.iter().all(|route| route.timeout_ns >= bound_ns);
        figures.ledger.succeeded.saturating_sub(late.saturating_sub(if is_beyond { timeouts } else { 0 }))
    }

    fn step_figures(self, factor: f64, line_rps: f64, stretch: Range<u64>) -> OverloadStep {
        let seconds = ((stretch.end - stretch.start) as f64 / 1e9).max(1e-9);
        let (mut unsuccessful, mut failed, mut accepted) =
            (UnsuccessfulCounts::default(), Histogram::new(), Histogram::new());
        let (mut scheduled, mut came_again, mut in_time, mut succeeded) = (0, 0, 0, 0);
        for (_, interval, _) in self.ticks_in(stretch) {
            let (whole, (first, again)) = (interval.all_routes(), self.scheduled_and_retried(interval));
            scheduled += first;
            came_again += again;
            in_time += self.successes_in_time(whole);
            succeeded += whole.ledger.succeeded;
            accepted.merge_sparse(&whole.response);
            let traffic = &self.run.plan.traffic;
            let unwanted = whole.statuses.iter().filter(|(status, _)| !traffic.counts_as_success(*status));
            let unwanted = unwanted.map(|(status, times)| (OVERLOAD_STATUSES.contains(&status), times));
            let ends = whole.grpc_statuses.iter().map(|(code, times)| (GrpcStatus::from_code(code.into()), times));
            let ends = ends.filter(|(end, _)| !traffic.counts_as_grpc_success(*end));
            // The status of a gRPC call says more than the HTTP status of the call, so only the
            // gRPC status counts.
            let of_calls = !whole.grpc_statuses.is_empty();
            let ends = ends.map(|(end, times)| (end.is_refusal(), times));
            for (is_too_much, times) in unwanted.filter(|_| !of_calls).chain(ends) {
                *(if is_too_much { &mut unsuccessful.overload_status } else { &mut unsuccessful.other_status }) +=
                    times;
            }
            let of = |kind: RequestFailure| whole.ledger.failed[kind as usize];
            let timeouts = of(RequestFailure::Timeout);
            unsuccessful.timeout += timeouts;
            let unexpected = of(RequestFailure::Expectation) + of(RequestFailure::Capture);
            unsuccessful.other_status += unexpected;
            let answered = of(RequestFailure::Status) + unexpected;
            unsuccessful.connection += whole.ledger.failed_total().saturating_sub(timeouts + answered);
            unsuccessful.unsent += whole.ledger.unsent;
            failed.merge_sparse(&whole.failed);
        }
        unsuccessful.failure_time_p50_ns = (failed.count() > 0).then(|| failed.quantile_ns(0.5));
        let (goodput_rps, offered_rps) = (in_time as f64 / seconds, scheduled as f64 / seconds);
        // Above the load line, goodput is compared with the load line even if the generator offered
        // less. If goodput were compared with the offered rate, a low offered rate would hide lost
        // goodput.
        let possible_rps = if factor > 1.0 { line_rps } else { offered_rps.min(line_rps) };
        // Timeouts are the longest recorded times, so the shortest times belong to the successes.
        let share_accepted = (succeeded as f64 / accepted.count().max(1) as f64).min(1.0);
        OverloadStep {
            factor,
            offered_rps,
            retries_rps: self.retried.then_some(came_again as f64 / seconds),
            goodput_rps,
            succeeded_rps: succeeded as f64 / seconds,
            goodput_share: if possible_rps > 0.0 { goodput_rps / possible_rps } else { 0.0 },
            accepted_p99_ns: (succeeded > 0).then(|| accepted.quantile_ns(0.99 * share_accepted)),
            unsuccessful,
        }
    }

    /// Returns the counts of each whole second of the period `stretch`.
    fn counts_by_second(self, stretch: Range<u64>) -> Vec<OverloadSecond> {
        let whole = (stretch.end.saturating_sub(stretch.start) / SECOND) as usize;
        let mut seconds = vec![OverloadSecond::default(); whole];
        for (middle_ns, interval, _) in self.ticks_in(stretch.clone()) {
            if let Some(second) = seconds.get_mut(((middle_ns - stretch.start) / SECOND) as usize) {
                second.in_time += self.successes_in_time(interval.all_routes());
                second.offered += self.scheduled_and_retried(interval).0;
            }
        }
        seconds
    }

    /// Returns when the server recovered, in s after the start of the period `stretch`. After the
    /// recovery, nearly all requests of every second succeed within the latency bound. Returns
    /// `None` if the period ends less than two seconds after the recovery.
    fn recovery_s(self, stretch: Range<u64>) -> Option<f64> {
        let seconds = self.counts_by_second(stretch);
        let after_last_bad = seconds.iter().rposition(|second| !second.is_recovered()).map_or(0, |last| last + 1);
        (seconds.len() >= after_last_bad + 2).then_some(after_last_bad as f64)
    }

    /// Returns whether the backlog shrinks towards the end of the period `stretch`. A shrinking
    /// backlog means that the server is about to recover.
    fn backlog_shrinks(self, stretch: Range<u64>) -> bool {
        let quarter_ns = ((stretch.end - stretch.start) / 4).max(1);
        // For the quarter that starts at `from_ns`: the mean number of requests in flight, and the
        // number of offered requests.
        let of = |from_ns: u64| {
            let sum = self.ticks_in(from_ns..from_ns + quarter_ns).fold((0, 0), |sum, (_, interval, in_flight_ns)| {
                (sum.0 + in_flight_ns, sum.1 + self.scheduled_and_retried(interval).0)
            });
            (sum.0 as f64 / quarter_ns as f64, sum.1 as f64)
        };
        let ((before, _), (last, offered)) = (of(stretch.end - 2 * quarter_ns), of(stretch.end - quarter_ns));
        before - last >= (BACKLOG_FALL_SHARE_MIN * offered).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::units::MS;
    use plimsoll_model::{CountsByKey, GrpcStatusSet, Interval, LoadCurve, LoadEnd, LoadShape, LoadStage, Plan};

    /// The outcomes of one second of a simulated server whose load line is 100/s. Each test passes
    /// a function that computes the outcomes from the number of the second and the number of
    /// offered requests.
    struct SecondCounts {
        in_time: u64,
        late: u64,
        refused: u64,
        waiting: u64,
    }

    /// Creates a run with steps of 2 s each, and a last step (the recovery) of 8 s.
    fn run_on_simulated_server(server: fn(u64, u64) -> SecondCounts) -> Run {
        let level = |(number, factor): (usize, f64)| LoadStage {
            from: 100.0 * factor,
            to: 100.0 * factor,
            duration_ns: Some(if number + 1 == STEP_RATE_FACTORS.len() { 8 } else { 2 } * SECOND),
        };
        let rate = LoadCurve { stages: STEP_RATE_FACTORS.into_iter().enumerate().map(level).collect() };
        let shape = LoadShape::Open { rate: rate.clone(), arrivals: plimsoll_model::ArrivalSpacing::Constant };
        let mut plan = Plan::for_get_request("h", 80, vec![], shape);
        plan.load.interval_ns = SECOND;
        plan.load.warmup_ns = 0;
        let mut run = Run::new(plan.record());
        run.window_ns = (0, 18 * SECOND);
        run.ending = Some(LoadEnd::Finished);
        for second in 0..18u64 {
            let stage = (second / 2).min(5) as usize;
            let offered = rate.stages[stage].from as u64;
            let SecondCounts { in_time, late, refused, waiting } = server(second, offered);
            let (mut response, mut failed) = (Histogram::new(), Histogram::new());
            response.record_n(20 * MS, in_time);
            response.record_n(3000 * MS, late);
            failed.record_n(2 * MS, refused);
            let mut interval = Interval::default();
            interval.load.in_flight_ns = waiting * SECOND;
            let figures = interval.routes.figures_mut(0);
            figures.ledger.scheduled = offered;
            figures.ledger.succeeded = in_time + late;
            figures.ledger.failed[RequestFailure::Status as usize] = refused;
            figures.statuses.add(429, refused);
            (figures.response, figures.failed) = (response.drain(), failed.drain());
            run.intervals.insert(second as u32, interval);
        }
        run
    }

    fn shedding_server(_: u64, offered: u64) -> SecondCounts {
        SecondCounts { in_time: offered.min(100), late: 0, refused: offered.saturating_sub(100), waiting: 2 }
    }

    #[test]
    fn overload_verdicts_are_named() {
        for (what, server, verdict, recovery_s) in [
            (
                "refuses what is too much",
                shedding_server as fn(u64, u64) -> SecondCounts,
                Some(OverloadVerdict::Sheds),
                Some(0.0),
            ),
            (
                "loses with each that is too much",
                |_, offered| SecondCounts {
                    in_time: if offered > 100 { 60 } else { offered },
                    late: 0,
                    refused: 0,
                    waiting: 9,
                },
                Some(OverloadVerdict::Degrades),
                Some(0.0),
            ),
            (
                "answers all the rest late, and works it off",
                |second, offered| match second {
                    0..=3 => SecondCounts { in_time: offered, late: 0, refused: 0, waiting: 5 },
                    4..=12 => SecondCounts { in_time: 0, late: 100, refused: 0, waiting: 400 },
                    _ => SecondCounts { in_time: offered, late: 0, refused: 0, waiting: 2 },
                },
                Some(OverloadVerdict::Collapses),
                Some(3.0),
            ),
            (
                "is still working it off at the end",
                |second, offered| match second {
                    0..=3 => SecondCounts { in_time: offered, late: 0, refused: 0, waiting: 5 },
                    _ => SecondCounts { in_time: 0, late: 100, refused: 0, waiting: 1000 - second * 50 },
                },
                Some(OverloadVerdict::Collapses),
                None,
            ),
            (
                "never comes back",
                |second, offered| match second {
                    0..=3 => SecondCounts { in_time: offered, late: 0, refused: 0, waiting: 5 },
                    _ => SecondCounts { in_time: 0, late: 20, refused: 0, waiting: 300 },
                },
                Some(OverloadVerdict::Metastable),
                None,
            ),
        ] {
            let found = OverloadResult::from_run(&run_on_simulated_server(server), 100.0, Some(500 * MS), false);
            assert_eq!((found.verdict, found.recovery_s), (verdict, recovery_s), "{what}: {found:?}");
            assert_eq!(found.steps.len(), STEP_RATE_FACTORS.len());
        }
        let shed = OverloadResult::from_run(&run_on_simulated_server(shedding_server), 100.0, Some(500 * MS), false);
        let third = &shed.steps[4];
        assert_eq!((third.offered_rps, third.goodput_rps, third.goodput_share), (300.0, 100.0, 1.0));
        assert_eq!(
            (third.unsuccessful.overload_status, third.unsuccessful.other_status, third.unsuccessful.unsent),
            (400, 0, 0)
        );
        assert!(third.unsuccessful.failure_time_p50_ns.is_some_and(|ns| ns < 3 * MS), "{third:?}");
        assert_eq!(shed.seconds[9], OverloadSecond { offered: 300, in_time: 100 });
    }

    #[test]
    fn recovered_seconds_miss_few_responses() {
        for (offered, in_time, expect) in [
            (50, 44, true),
            (50, 25, false),
            (10_000, 9_500, true),
            (10_000, 9_000, false),
            (0, 0, true),
            (4, 0, false),
        ] {
            assert_eq!(OverloadSecond { offered, in_time }.is_recovered(), expect, "{in_time} of {offered}");
        }
    }

    #[test]
    fn refused_calls_are_recognised_by_their_status() {
        let mut called = run_on_simulated_server(shedding_server);
        called.plan.traffic.routes[0].ok_grpc = Some(GrpcStatusSet::default());
        for interval in called.intervals.values_mut() {
            let figures = interval.routes.figures_mut(0);
            let refused = figures.ledger.failed[RequestFailure::Status as usize];
            // gRPC sends the HTTP status 200, whatever the status of the call is.
            figures.statuses = CountsByKey::default();
            figures.statuses.add(200, figures.ledger.scheduled);
            for (end, times) in [
                (GrpcStatus::Ok, figures.ledger.succeeded),
                (GrpcStatus::ResourceExhausted, refused / 2),
                (GrpcStatus::Unavailable, refused / 4),
                (GrpcStatus::Internal, refused - refused / 2 - refused / 4),
            ] {
                figures.grpc_statuses.add(end as u16, times);
            }
        }
        let found = OverloadResult::from_run(&called, 100.0, Some(500 * MS), false);
        assert_eq!((found.steps[4].unsuccessful.overload_status, found.steps[4].unsuccessful.other_status), (300, 100));
        assert_eq!(found.verdict, Some(OverloadVerdict::Sheds));
    }

    #[test]
    fn retries_are_counted_separately() {
        let mut retried = run_on_simulated_server(shedding_server);
        for interval in retried.intervals.values_mut() {
            let refused = interval.all_routes().ledger.failed_total();
            let again = interval.routes.figures_mut(RETRY_ROUTE);
            again.ledger.scheduled = refused;
            again.ledger.failed[RequestFailure::Status as usize] = refused;
            again.statuses.add(429, refused);
        }
        let found = OverloadResult::from_run(&retried, 100.0, Some(500 * MS), true);
        let third = &found.steps[4];
        assert_eq!((third.offered_rps, third.retries_rps, third.goodput_rps), (300.0, Some(200.0), 100.0));
        assert_eq!(third.unsuccessful.overload_status, 800, "both are refused");
        assert_eq!(found.seconds[9], OverloadSecond { offered: 300, in_time: 100 });
        assert_eq!(found.verdict, Some(OverloadVerdict::Sheds));
    }

    /// Turns the refused requests of a run into timeouts.
    fn with_timeouts(mut run: Run, timeout_ns: u64) -> Run {
        run.plan.traffic.routes[0].timeout_ns = timeout_ns;
        for interval in run.intervals.values_mut() {
            let figures = interval.routes.figures_mut(0);
            let count = std::mem::take(&mut figures.ledger.failed[RequestFailure::Status as usize]);
            figures.ledger.failed[RequestFailure::Timeout as usize] = count;
            let mut response = figures.response.to_histogram();
            response.record_n(timeout_ns, count);
            (figures.response, figures.failed, figures.statuses) =
                (response.drain(), Default::default(), CountsByKey::default());
        }
        run
    }

    #[test]
    fn timeouts_are_not_late_responses() {
        for timeout_ns in [30_000 * MS, 300 * MS] {
            let found = OverloadResult::from_run(
                &with_timeouts(run_on_simulated_server(shedding_server), timeout_ns),
                100.0,
                Some(500 * MS),
                false,
            );
            let third = &found.steps[4];
            assert_eq!((third.goodput_rps, third.succeeded_rps, third.goodput_share), (100.0, 100.0, 1.0), "{third:?}");
            assert!(third.accepted_p99_ns.is_some_and(|ns| ns < 21 * MS), "{third:?}");
            assert_eq!((third.unsuccessful.timeout, found.verdict), (400, Some(OverloadVerdict::Sheds)));
        }
    }

    #[test]
    fn a_server_without_responses_has_no_overload_verdict() {
        let refused =
            run_on_simulated_server(|_, offered| SecondCounts { in_time: 0, late: 0, refused: offered, waiting: 1 });
        for run in [with_timeouts(refused.clone(), 30_000 * MS), refused] {
            let found = OverloadResult::from_run(&run, 100.0, None, false);
            assert_eq!((found.steps.len(), found.verdict), (STEP_RATE_FACTORS.len(), None));
            assert_eq!((found.steps[4].succeeded_rps, found.steps[4].accepted_p99_ns), (0.0, None));
        }
    }

    #[test]
    fn aborted_loads_have_no_overload_verdict() {
        let mut cut =
            run_on_simulated_server(|_, offered| SecondCounts { in_time: offered, late: 0, refused: 0, waiting: 1 });
        cut.window_ns.1 = 5 * SECOND;
        let found = OverloadResult::from_run(&cut, 100.0, None, false);
        assert_eq!((found.steps.len(), found.verdict, found.recovery_s), (2, None, None));
        assert_eq!(found.retry_after, None);
    }
}
