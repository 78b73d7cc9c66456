//! All figures of one run ([`Summary`]), and whether the load generator, not the server, was the
//! limit ([`GeneratorFigures`]).
//!
//! Not here: the report of the figures, and the verdict on a trial.

use crate::doubts::{DoubtKind, Doubts};
use crate::failed::FailedResponseGroup;
use crate::fleet;
use crate::format;
use crate::interference::Interference;
use crate::quantile::{Quantile, Quantiles};
use crate::sentence::{Remedy, Sentence};
use crate::stages::{StageFigures, stage_figures};
use plimsoll_model::units::MS;
use plimsoll_model::{CountsByKey, Histogram, HttpChoice, LoadEnd, LoadFigures, RouteFigures, Run};
use std::collections::BTreeMap;

/// A worker thread of plimsoll counts as saturated if it works for at least this share of its time.
pub const WORK_SHARE_MAX: f64 = 0.95;
/// Smallest share of the scheduled requests that plimsoll must send. If plimsoll sent a smaller
/// share, the generator may have been the limit.
pub const SENT_SHARE_MIN: f64 = 0.995;
/// The largest allowed lag p99 (see [`GeneratorFigures::lag`]), as a share of the latency bound. A
/// p99 of up to [`LAG_FLOOR_NS`] is allowed for any bound.
const LAG_SHARE_MAX: f64 = 0.1;
/// A lag (the delay of a request's start behind its schedule) is always allowed if its p99 is at
/// most this value, in ns.
const LAG_FLOOR_NS: u64 = MS;
/// Largest share of the response time for which responses may wait unread in plimsoll without a
/// warning. The median wait is compared with the median response time, and the p99 of the wait with
/// the p99 of the response time.
const READ_WAIT_SHARE_REPORTED_MIN: f64 = 0.1;
/// Responses may always wait unread for this time, in ns, without a warning. A busy worker handles
/// about ten requests in this time.
const READ_WAIT_FLOOR_NS: u64 = 100_000;
/// Largest share of the median response time for which responses may wait unread. Above this share,
/// a closed load measures the generator more than the server.
const READ_WAIT_SHARE_MAX: f64 = 0.5;
/// A worker thread of plimsoll that works for at least this share of its time is reported. At this
/// share and with random arrivals, a request waits 4.5 service times of the worker on average
/// (M/D/1).
const WORK_SHARE_REPORTED_MIN: f64 = 0.9;

/// The usual figures of a distribution of times, all in ns. A figure without a value is 0. All
/// fields except `quantiles` cover only the requests whose time was measured. Reports show
/// `quantiles`, which can cover all scheduled requests.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Latency {
    pub count: u64,
    pub min_ns: u64,
    pub mean_ns: f64,
    pub stdev_ns: f64,
    pub p50_ns: u64,
    pub p75_ns: u64,
    pub p90_ns: u64,
    pub p95_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub max_ns: u64,
    pub quantiles: Quantiles,
}

impl Latency {
    /// Computes the figures of a histogram that contains the times of all requests.
    pub fn from_histogram(histogram: &Histogram) -> Latency {
        let [p50_ns, p75_ns, p90_ns, p95_ns, p99_ns, p999_ns] =
            histogram.quantiles_ns([0.5, 0.75, 0.9, 0.95, 0.99, 0.999]);
        Latency {
            count: histogram.count(),
            min_ns: histogram.min_ns(),
            mean_ns: histogram.mean_ns(),
            stdev_ns: histogram.stdev_ns(),
            p50_ns,
            p75_ns,
            p90_ns,
            p95_ns,
            p99_ns,
            p999_ns,
            max_ns: histogram.max_ns(),
            quantiles: Quantiles::from_histogram(histogram),
        }
    }

    /// Formats the highest usual quantile, up to p99, that has enough requests beyond it: `p99 12.5
    /// ms`. If p99 has too few requests beyond it, the text contains the maximum: `max 20.1 ms (17
    /// samples)`.
    pub fn tail_text(&self) -> String {
        match self.quantiles.p99 {
            Quantile::Few => {
                let samples = if self.count == 1 {
                    "1 sample".to_owned()
                } else {
                    format!("{} samples", format::count(self.count))
                };
                format!("max {} ({samples})", format::duration(self.max_ns as f64))
            }
            p99 => format!("p99 {p99}"),
        }
    }
}

/// Computes the usual figures of each histogram of a route. The quantiles of request times cover
/// all requests of the ledger (the counts by outcome). The quantiles of other times cover only the
/// measured values.
pub(crate) fn summarize_latencies(sums: &mut RouteFigures<Histogram>) -> RouteFigures<Latency> {
    let mut figures = sums.take(|times| Latency::from_histogram(times));
    for (latency, times) in [
        (&mut figures.response, &sums.response),
        (&mut figures.service, &sums.service),
        (&mut figures.ttfb, &sums.ttfb),
    ] {
        latency.quantiles = Quantiles::quantiles_of_ledger(times, &figures.ledger);
    }
    figures
}

/// The work of the generator, and whether the generator was the limit.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratorFigures {
    /// CPU time of all worker threads in seconds, including spinning.
    pub cpu_s: f64,
    /// Share of the measured window that the busiest worker spent working, 0..=1.
    pub work_share: f64,
    /// The lag: the time between the scheduled and the real start of a request.
    pub lag: Latency,
    /// The time for which responses were readable before plimsoll read them.
    pub read_wait: Latency,
    /// Share of the scheduled requests that were sent, 0..=1.
    pub sent_share: f64,
    /// Whether the generator, not the server, set the limit.
    pub is_limit: bool,
    /// Why the generator was the limit. If the generator was not the limit, the field says why
    /// requests were not sent. `None` if the generator was not the limit and sent enough of the
    /// requests.
    pub reason: Option<Sentence>,
    /// For a closed load, a sentence about the part of the response times that the generator
    /// caused. `None` if the generator's part of the response times is small.
    pub wait_sentence: Option<Sentence>,
}

/// All figures of one run (one load).
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Length of the measured window, ns.
    pub duration_ns: u64,
    /// Requests that ended with a response or a failure.
    pub requests: u64,
    /// Share of the scheduled requests that succeeded, 0..=1.
    pub success_rate: f64,
    /// Successes a second. All requests that succeed inside the measured window count, even those
    /// scheduled before the window.
    pub throughput_rps: f64,
    /// Mean number of requests in flight in the window, counted from their intended starts; `None`
    /// without a window.
    pub in_flight_mean: Option<f64>,
    /// Bytes received and bytes sent a second inside the measured window, on the wire.
    pub bytes_per_s: [f64; 2],
    /// Mean number of requests of a session; 1 for a load without sessions. In a load with
    /// sessions, the offered rate counts sessions.
    pub requests_per_session: f64,
    /// The totals of the load. A gauge has no total, so its maximum takes the place of a total.
    pub load: LoadFigures<Latency>,
    /// The totals over all routes.
    pub routes_sum: RouteFigures<Latency>,
    /// The target's IP addresses. Address numbers elsewhere in the figures are indices into this
    /// list.
    addresses: Vec<String>,
    /// The figures of the load generator itself.
    pub generator: GeneratorFigures,
    /// The CPU used by other processes during the run, and whether this CPU use disturbed the run.
    pub interference: Interference,
    /// How the run ended; `None` means that the recording was cut off.
    pub ending: Option<LoadEnd>,
    /// The kinds of failed responses, each with its first response and its number of requests.
    pub failed_answers: Vec<FailedResponseGroup>,
    /// The figures of each stage; empty for a load without stages.
    pub stages: Vec<StageFigures>,
    /// The reasons to doubt the figures of this run.
    pub doubts: Doubts,
}

impl Summary {
    /// Computes the figures of a run without an SLO. The lag is compared with 10 % of the run's
    /// response p99.
    pub fn from_run(run: &Run) -> Summary {
        Summary::with_bound(run, None)
    }

    /// Computes the figures of a run under an SLO whose shortest latency bound is `bound_ns`. The
    /// lag is compared with 10 % of `bound_ns`.
    pub fn with_bound(run: &Run, bound_ns: Option<u64>) -> Summary {
        Summary::with_interference(run, bound_ns, Interference::from_run(run))
    }

    /// Computes the figures like [`Summary::with_bound`], with the given interference
    /// `interference`. Use this function for a `run` that was merged from several loads, because
    /// the interference cannot be computed from a merged run.
    pub fn with_interference(run: &Run, bound_ns: Option<u64>, interference: Interference) -> Summary {
        let mut totals = run.totals();
        let load = totals.load.take(|times| Latency::from_histogram(times));
        let routes_sum = summarize_latencies(&mut totals.routes_sum);
        let ledger = routes_sum.ledger;
        let seconds = run.duration_ns() as f64 / 1e9;
        let sent = ledger.scheduled.saturating_sub(ledger.unsent);
        let sessions = load.sessions_started;
        let mut generator = GeneratorFigures {
            cpu_s: load.workers.iter().map(|w| w.cpu_ns).sum::<u64>() as f64 / 1e9,
            work_share: busiest_worker_share(run),
            lag: load.lag,
            read_wait: load.read_wait,
            sent_share: if ledger.scheduled == 0 { 1.0 } else { sent as f64 / ledger.scheduled as f64 },
            is_limit: false,
            reason: None,
            wait_sentence: None,
        };
        if !run.plan.load.shape.is_open() {
            generator.wait_sentence = generator_wait_sentence(&generator, &routes_sum.response);
        }
        let lag_max_ns = lag_allowed_ns(bound_ns.unwrap_or(routes_sum.response.p99_ns));
        (generator.is_limit, generator.reason) = match exhausted_resource_sentence(&load.connect_errors)
            .map(|reason| (true, reason))
            .or_else(|| fleet::limiting_agent_text(run, WORK_SHARE_MAX, lag_max_ns).map(|reason| (true, reason.into())))
            .or_else(|| generator_limit(run, &generator, lag_max_ns, load.connections_open))
            .or_else(|| read_wait_limit(run, &generator, &routes_sum.response))
        {
            Some((limited, reason)) => (limited, Some(reason)),
            None => (false, None),
        };
        let doubts = collect_doubts(&interference, &generator, &load, run.ending.as_ref());
        Summary {
            duration_ns: run.duration_ns(),
            requests: ledger.finished_requests(),
            success_rate: ledger.success_rate(),
            throughput_rps: if seconds > 0.0 { routes_sum.succeeded_in_window as f64 / seconds } else { 0.0 },
            in_flight_mean: run.in_flight_mean(),
            bytes_per_s: [run.rate_in_window(|load| load.bytes_in), run.rate_in_window(|load| load.bytes_out)],
            requests_per_session: if sessions > 0 { (ledger.scheduled as f64 / sessions as f64).max(1.0) } else { 1.0 },
            load,
            routes_sum,
            addresses: match &run.plan.connection_plan.unix {
                Some(path) => vec![path.clone()],
                None => run.plan.connection_plan.addresses.iter().map(ToString::to_string).collect(),
            },
            generator,
            interference,
            ending: run.ending.clone(),
            failed_answers: FailedResponseGroup::failures_of_run(run),
            stages: stage_figures(run),
            doubts,
        }
    }

    /// Returns the successes a second in the unit of the offered load: requests a second, or
    /// sessions a second for a load of sessions.
    pub fn offered_unit_rps(&self) -> f64 {
        self.throughput_rps / self.requests_per_session
    }

    /// Returns the IP address with this number, as text. An address that the plan does not contain
    /// was resolved during the load.
    pub fn address(&self, number: u16) -> &str {
        self.addresses
            .get(usize::from(number))
            .map_or("an address that plimsoll resolved during the load", String::as_str)
    }
}

/// Collects the evidence against the figures of a load.
fn collect_doubts(
    interference: &Interference,
    generator: &GeneratorFigures,
    load: &LoadFigures<Latency>,
    ending: Option<&LoadEnd>,
) -> Doubts {
    let mut doubts: Doubts = interference.doubt().into_iter().collect();
    match (&generator.reason, generator.is_limit) {
        (Some(reason), true) => {
            let text = Sentence::from("the generator was the limit, not the server: ");
            doubts.add(DoubtKind::Generator, text.append_sentence(reason));
        }
        (Some(reason), false) => doubts.add(DoubtKind::Unsent, reason.clone()),
        (None, _) => {}
    }
    if let Some(text) = generator.wait_sentence.clone().filter(|_| !generator.is_limit) {
        doubts.add(DoubtKind::Rough, text);
    }
    if let Some(text) = describe_surplus_bytes(load.surplus_bytes, load.surplus_connections) {
        doubts.add(DoubtKind::Surplus, text);
    }
    match ending {
        Some(LoadEnd::Finished) => {}
        Some(LoadEnd::Stopped(stop)) => {
            doubts.add(DoubtKind::Ended, format!("ended early: {}", format::stop_reason(stop)))
        }
        None => doubts.add(DoubtKind::Ended, "the recording was cut off before the run ended"),
    }
    doubts
}

/// Formats a sentence about received bytes that belong to no response; `None` if there were no such
/// bytes.
fn describe_surplus_bytes(bytes: u64, connections: u64) -> Option<String> {
    let bytes_text = if bytes == 1 { "1 byte".to_owned() } else { format!("{} bytes", format::count(bytes)) };
    let connections_text = match connections {
        0 => return None,
        1 => "1 connection".to_owned(),
        _ => format!("{} connections", format::count(connections)),
    };
    Some(format!(
        "the server sent {bytes_text} beyond the end of its responses (more than Content-Length, or a body where \
         none is allowed) on {connections_text}, which plimsoll closed"
    ))
}

/// Error number (Linux) of a failed connect if plimsoll's machine has no free local port.
const NO_PORT_ERROR_NUMBER: u16 = 99;
/// Error numbers (Linux) of a failed connect if plimsoll's machine has no free file descriptor.
const NO_FILE_ERROR_NUMBERS: [u16; 2] = [23, 24];

/// Formats a sentence about connections that failed because plimsoll's machine had no free local
/// port or file descriptor. Returns `None` if no connection failed for lack of a local port or file
/// descriptor. If a connection failed for lack of a port or file descriptor, plimsoll's machine was
/// the limit, not the server.
fn exhausted_resource_sentence(connect_errors: &CountsByKey) -> Option<Sentence> {
    let of = |numbers: &[u16]| numbers.iter().map(|number| connect_errors.get(*number)).sum::<u64>();
    match (of(&[NO_PORT_ERROR_NUMBER]), of(&NO_FILE_ERROR_NUMBERS)) {
        (0, 0) => None,
        (0, files) => Some(
            format!("the limit of open files on plimsoll's machine (ulimit -n, or fs.file-max) prevented {files} connections").into(),
        ),
        (ports, _) => {
            let text = format!(
                "no local port was left for {ports} connections. Keep connections alive, use more source addresses, \
                 or close connections by reset ("
            );
            let text = Sentence::from(text).remedy(Remedy::SourceAddresses).words(", ");
            Some(text.remedy(Remedy::CloseByReset).words(")"))
        }
    }
}

/// Returns the largest allowed lag p99 under a latency bound, in ns: max(1 ms, 10 % of the bound).
pub fn lag_allowed_ns(bound_ns: u64) -> u64 {
    LAG_FLOOR_NS.max((bound_ns as f64 * LAG_SHARE_MAX) as u64)
}

/// Returns the maximum number of requests in flight at the end of any interval. Each request in
/// flight has a connection, or waits until the server accepts its connection. If a stalled server
/// accepts no connection, the server and not the generator makes the requests wait.
fn in_flight_max(run: &Run) -> u64 {
    run.intervals.values().map(|interval| interval.all_routes().in_flight_end).max().unwrap_or(0)
}

/// Decides whether the generator was too slow, by rules in the order of their strength. The
/// returned boolean says whether the generator was the limit, and the returned sentence gives the
/// reason. Returns `None` if no rule applies.
fn generator_limit(
    run: &Run,
    generator: &GeneratorFigures,
    lag_max_ns: u64,
    connections_open: u64,
) -> Option<(bool, Sentence)> {
    let open = run.plan.load.shape.is_open();
    if generator.work_share >= WORK_SHARE_MAX {
        let share = generator.work_share * 100.0;
        return Some((true, format!("a worker thread of plimsoll was busy {share:.0} % of the time").into()));
    }
    if open && generator.lag.p99_ns > lag_max_ns {
        let (lag, allowed) = (generator.lag.tail_text(), format::duration(lag_max_ns as f64));
        return Some((true, format!("plimsoll sent requests late: lag {lag}, more than the {allowed} allowed").into()));
    }
    if open && generator.sent_share < SENT_SHARE_MIN {
        let share = format::share(generator.sent_share);
        let connections_max = run.plan.connection_plan.connections_max;
        let requests_max = u64::from(connections_max) * u64::from(run.plan.connection_plan.streams_max.max(1));
        let waited = connections_open >= u64::from(connections_max) || in_flight_max(run) >= requests_max;
        return Some(match waited {
            // The slow server, not the generator, is the reason for unsent requests.
            true => {
                let text = format!(
                    "plimsoll sent only {share} of the scheduled requests, because all {connections_max} connections \
                     were waiting for the server. Allow more requests at once ("
                );
                let sentence = Sentence::from(text).remedy(Remedy::MaxConnections);
                // Over HTTP/2 one connection can carry several requests at a time.
                let connection_plan = &run.plan.connection_plan;
                let shares = connection_plan.http == HttpChoice::H2 && connection_plan.streams_max <= 1;
                let sentence = if shares { sentence.words(", ").remedy(Remedy::Streams) } else { sentence };
                (false, sentence.words(")"))
            }
            false => (true, format!("plimsoll sent only {share} of the scheduled requests").into()),
        });
    }
    None
}

/// Returns `true` and a sentence if responses wait unread in plimsoll for so long that a closed
/// load measures the generator more than the server. Returns `None` if the responses wait for a
/// shorter time.
fn read_wait_limit(run: &Run, generator: &GeneratorFigures, response: &Latency) -> Option<(bool, Sentence)> {
    let most = READ_WAIT_SHARE_MAX * response.p50_ns as f64;
    let closed = !run.plan.load.shape.is_open();
    let limited = closed && generator.read_wait.p50_ns > READ_WAIT_FLOOR_NS && generator.read_wait.p50_ns as f64 > most;
    limited.then(|| (true, read_wait_text(generator).into()))
}

/// Formats a sentence about the part of a load's response times that the generator caused. Returns
/// `None` if the generator's part is small and no worker thread of plimsoll was busy.
fn generator_wait_sentence(generator: &GeneratorFigures, response: &Latency) -> Option<Sentence> {
    let wait = &generator.read_wait;
    let much = |wait_ns: u64, response_ns: u64| {
        wait_ns > READ_WAIT_FLOOR_NS && wait_ns as f64 > READ_WAIT_SHARE_REPORTED_MIN * response_ns as f64
    };
    let waits = much(wait.p50_ns, response.p50_ns) || much(wait.p99_ns, response.p99_ns);
    (waits || generator.work_share >= WORK_SHARE_REPORTED_MIN).then(|| {
        let text = format!(
            "{read_wait}, and plimsoll's busiest worker was busy {busy_percent:.0} % of the time: the response \
             times include time spent in plimsoll",
            read_wait = read_wait_text(generator),
            busy_percent = generator.work_share * 100.0
        );
        text.into()
    })
}

fn read_wait_text(generator: &GeneratorFigures) -> String {
    let wait = &generator.read_wait;
    match wait.count {
        0 => "the time that responses waited in plimsoll is not known".to_owned(),
        _ => format!(
            "responses waited in plimsoll before it read them, p50 {p50}, {p99_or_max}",
            p50 = wait.quantiles.p50,
            p99_or_max = wait.tail_text()
        ),
    }
}

/// Returns the share of its time for which the busiest worker thread worked, over the intervals in
/// the measured window.
fn busiest_worker_share(run: &Run) -> f64 {
    let length = run.plan.load.interval_ns.max(1);
    let inside = |index: u32| {
        let start = u64::from(index) * length;
        start + length > run.window_ns.0 && start < run.window_ns.1
    };
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (_, interval) in run.intervals.iter().filter(|(index, _)| inside(**index)) {
        for worker in &interval.load.workers {
            let sum = sums.entry(worker.worker).or_default();
            sum.0 += worker.work_ns;
            sum.1 += worker.wall_ns;
        }
    }
    let shares = sums.values().filter(|s| s.1 > 0).map(|s| s.0 as f64 / s.1 as f64);
    shares.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{ArrivalSpacing, Interval, LoadCurve, LoadShape, Plan, WorkerTime};

    /// Creates a run in which all requests took `response_ns` and then waited unread for `wait_ns`.
    /// The only worker thread worked for the share `busy` of its time.
    fn run_with_read_wait(is_closed: bool, response_ns: u64, wait_ns: u64, busy: f64) -> Run {
        let level = LoadCurve::constant(4.0);
        let shape = match is_closed {
            true => LoadShape::Closed { users: level },
            false => LoadShape::Open { rate: level, arrivals: ArrivalSpacing::Constant },
        };
        let mut run = Run::new(Plan::for_get_request("h", 80, vec![], shape));
        let times = |ns: u64| {
            let mut times = Histogram::new();
            times.record_n(ns, 2_000);
            times.drain()
        };
        let mut interval = Interval::default();
        let figures = interval.routes.figures_mut(0);
        (figures.ledger.scheduled, figures.ledger.succeeded, figures.succeeded_in_window) = (2_000, 2_000, 2_000);
        (figures.response, figures.service) = (times(response_ns), times(response_ns));
        interval.load.read_wait = times(wait_ns);
        let wall_ns = 100 * MS;
        let work_ns = (busy * wall_ns as f64) as u64;
        interval.load.workers = vec![WorkerTime { worker: 0, work_ns, cpu_ns: work_ns, wall_ns }];
        run.push(0, interval);
        run.window_ns = (0, wall_ns);
        run.ending = Some(LoadEnd::Finished);
        run
    }

    #[test]
    fn generator_share_of_a_closed_loop_is_reported() {
        const MICROSECOND_NS: u64 = 1_000;
        for (is_closed, response_ns, wait_ns, busy, limited, expect) in [
            (true, 5_000 * MICROSECOND_NS, 20 * MICROSECOND_NS, 0.5, false, None),
            // The time for which responses wait unread is a large part of the response time, but is
            // shorter than `READ_WAIT_FLOOR_NS`.
            (true, 200 * MICROSECOND_NS, 60 * MICROSECOND_NS, 0.5, false, None),
            (
                true,
                5_000 * MICROSECOND_NS,
                600 * MICROSECOND_NS,
                0.5,
                false,
                Some("responses waited in plimsoll before it read them, p50 600 us, p99 600 us"),
            ),
            (
                true,
                5_000 * MICROSECOND_NS,
                3_000 * MICROSECOND_NS,
                0.5,
                true,
                Some("the generator was the limit, not the server: responses waited"),
            ),
            // A worker thread that is busy for 94 % of its time is reported.
            (
                true,
                5_000 * MICROSECOND_NS,
                49 * MICROSECOND_NS,
                0.94,
                false,
                Some("p50 49.0 us, p99 49.0 us, and plimsoll's busiest worker was busy 94 %"),
            ),
            (
                true,
                5_000 * MICROSECOND_NS,
                49 * MICROSECOND_NS,
                0.97,
                true,
                Some("a worker thread of plimsoll was busy 97 %"),
            ),
            // In an open load, the lag of the requests shows a slow generator, so no sentence about
            // unread responses is expected.
            (false, 5_000 * MICROSECOND_NS, 600 * MICROSECOND_NS, 0.94, false, None),
        ] {
            let summary = Summary::from_run(&run_with_read_wait(is_closed, response_ns, wait_ns, busy));
            let doubts: Vec<String> = summary.doubts.iter().map(|doubt| doubt.text.render_text(|_| "")).collect();
            let what = format!("{is_closed}, {response_ns}, {wait_ns}, {busy}: {doubts:?}");
            assert_eq!(summary.generator.is_limit, limited, "{what}");
            assert_eq!(doubts.len(), usize::from(expect.is_some()), "{what}");
            assert!(expect.is_none_or(|part| doubts[0].contains(part)), "{what}");
        }
    }

    #[test]
    fn load_quantiles_count_the_whole_ledger() {
        let mut broken = run_with_read_wait(true, 5 * MS, 0, 0.1);
        let figures = broken.intervals.get_mut(&0).expect("one").routes.figures_mut(0);
        (figures.ledger.scheduled, figures.ledger.failed[0]) = (2_100, 100);
        let response = Summary::from_run(&broken).routes_sum.response;
        assert_eq!(response.quantiles.p90.time_ns().map(|ns| ns / MS), Some(5));
        assert_eq!((response.quantiles.p99, response.quantiles.p999), (Quantile::Failed, Quantile::Few));
        assert_eq!((response.tail_text(), response.count), ("p99 failed".to_owned(), 2_000));
    }
}
