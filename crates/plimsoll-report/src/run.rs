//! Renders the report of a single load: its answer, its latencies, and the number of requests by
//! outcome.

use crate::agents;
use crate::block::{Report, Tone};
use crate::failure_kinds;
use crate::format::{self, bytes, count, duration, rate, share};
use crate::replay;
use plimsoll_analysis::quantile::REQUESTS_BEYOND_MIN;
use plimsoll_analysis::stages::StageFigures;
use plimsoll_analysis::summary::Latency;
use plimsoll_analysis::{Interference, Quantiles, RouteSummary, Summary};
use plimsoll_model::grpc_message::DEFAULT_MESSAGE_BYTES_MAX;
use plimsoll_model::{
    AgentAccount, ArrivalSpacing, CountsByKey, EarlyStopReason, GrpcStatus, H2Error, HttpChoice, Injector, Ledger,
    LoadFigures, LoadShape, LoadStage, PlanRecord, RequestFailure, RouteFigures, Spin, TlsFailure,
};
use std::borrow::Cow;

/// The settings and machines of a load or a search, which a report states in addition to the
/// measured figures.
#[derive(Debug, Clone)]
pub struct RunContext<'a> {
    /// The settings of the load that was generated.
    pub plan: &'a PlanRecord,
    /// The machines that generated the load, each with its settings.
    pub injectors: &'a [Injector],
    /// The number of CPU cores of this machine.
    pub cores: u32,
    /// Whether the target server is on this machine.
    pub is_target_local: bool,
    /// The changes that plimsoll made to the plan because of the limits of this machine, each as a
    /// text.
    pub plan_adjustments: &'a [String],
    /// The figures of each agent of a fleet; empty if this machine generated the load.
    pub agents: Vec<AgentAccount>,
    /// The URL as the user typed it, only for output to the user's own terminal. `None` in every
    /// other output, which shows the redacted URL of the plan.
    pub typed_url: Option<&'a str>,
}

impl RunContext<'_> {
    /// Formats the target of the load. With `typed_url`, the URL is shown as the user typed it.
    pub(crate) fn target_text(&self) -> String {
        append_transport_remarks(self.plan.traffic.title().replace(&self.plan.traffic.url(), &self.url()), self.plan)
    }

    /// Returns the URL of the load: as the user typed it if `typed_url` is set, otherwise redacted.
    pub(crate) fn url(&self) -> String {
        self.typed_url.map_or_else(|| self.plan.traffic.url(), str::to_owned)
    }

    /// Formats the number of threads that generated the load, with the number of cores or agents.
    pub(crate) fn threads_text(&self) -> String {
        let threads = match self.load_thread_count() {
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads"),
        };
        match self.agents.len() {
            0 => format!("{threads} of {} cores", self.cores),
            1 => format!("{threads} of 1 agent"),
            agents => format!("{threads} of {agents} agents"),
        }
    }

    /// Returns the total number of load-generating threads on all machines.
    pub(crate) fn load_thread_count(&self) -> u32 {
        match self.agents.as_slice() {
            [] => self.injectors.iter().map(|injector| injector.workers).sum(),
            agents => agents.iter().map(|agent| agent.workers).sum(),
        }
    }
}

/// Formats the reason why a load was stopped. For a stop condition of the user, the text names the
/// flag `--stop-if`.
pub(crate) fn stop_text(stop: &EarlyStopReason) -> Cow<'_, str> {
    match stop {
        EarlyStopReason::Condition(crossing) => format!("--stop-if {crossing}").into(),
        other => format::stop_reason(other).into(),
    }
}

/// Formats a load in a few words, such as `64 users`, `5 000 requests/s, evenly spaced` or `20
/// sessions/s, Poisson arrivals`.
pub fn load_text(plan: &PlanRecord) -> String {
    let (load, counted) = (&plan.load.shape, plan.traffic.arrivals_word());
    let level = |value: f64| match value {
        few if few < 10.0 && few.fract() != 0.0 => format::rate(few),
        many => count(many.round() as u64),
    };
    let unit = match load {
        LoadShape::Closed { .. } => " users".to_owned(),
        LoadShape::Open { .. } => format!(" {counted}/s"),
        LoadShape::ArrivalTimes { .. } => String::new(),
    };
    let curve = load.curve();
    let (repeated, times) = shortest_repeated_sequence(&curve.stages);
    let stages: Vec<String> = repeated
        .iter()
        .enumerate()
        .map(|(number, stage)| {
            // The unit, such as `users`, follows only the level of the first stage, so that the
            // text does not repeat the unit.
            let unit = if number == 0 { unit.as_str() } else { "" };
            let levels = if stage.from == stage.to {
                format!("{}{unit}", level(stage.from))
            } else {
                format!("{} to {}{unit}", level(stage.from), level(stage.to))
            };
            match stage.duration_ns {
                Some(ns) if curve.stages.len() > 1 || stage.from != stage.to => {
                    format!("{levels} for {}", duration(ns as f64))
                }
                _ => levels,
            }
        })
        .collect();
    let mut stages = stages.join(", then ");
    if times > 1 {
        stages += &format!(", {times} times");
    }
    match load {
        LoadShape::Closed { .. } if stages == "1 users" => "1 user".into(),
        LoadShape::Closed { .. } => stages,
        LoadShape::Open { arrivals: ArrivalSpacing::Constant, .. } => format!("{stages}, evenly spaced"),
        LoadShape::Open { arrivals: ArrivalSpacing::Poisson, .. } => format!("{stages}, Poisson arrivals"),
        LoadShape::Open { arrivals: ArrivalSpacing::Replayed, .. } => format!("{stages}, drawn from a log"),
        LoadShape::ArrivalTimes { arrivals } => {
            let length = duration(curve.duration_ns().unwrap_or(0) as f64);
            format!(
                "{requests} requests of a log in {length}, {mean_rate} a second on average",
                requests = count(arrivals.count()),
                mean_rate = stages
            )
        }
    }
}

/// Returns the shortest sequence of stages whose repetition makes up `stages`, and the number of
/// repetitions (at least 3). If there is no such sequence, returns all stages and 1.
fn shortest_repeated_sequence(stages: &[LoadStage]) -> (&[LoadStage], usize) {
    let repeats = |length: usize| {
        let first = &stages[..length];
        stages.len().is_multiple_of(length) && stages.chunks(length).all(|part| part == first)
    };
    let length = (1..=stages.len() / 3).find(|length| repeats(*length)).unwrap_or(stages.len());
    (&stages[..length], stages.len().checked_div(length).unwrap_or(1))
}

/// Formats the target of a load. The text mentions a Unix socket, forced HTTP/2 and an unverified
/// certificate if the plan has them.
pub(crate) fn target_text(plan: &PlanRecord) -> String {
    append_transport_remarks(plan.traffic.title(), plan)
}

/// Appends to `title` how the requests are sent: over a Unix socket, over HTTP/2, or without
/// certificate verification.
fn append_transport_remarks(title: String, plan: &PlanRecord) -> String {
    let mut text = title;
    if let Some(path) = &plan.connection_plan.unix {
        text.push_str(&format!(" over the unix socket {path}"));
    }
    // The text does not mention HTTP/2 for gRPC, because gRPC always uses HTTP/2.
    if plan.connection_plan.http == HttpChoice::H2 && plan.traffic.first_route().ok_grpc.is_none() {
        text.push_str(" over HTTP/2");
    }
    if plan.connection_plan.tls.as_ref().is_some_and(|tls| !tls.verify) {
        text.push_str(" (certificate not verified)");
    }
    text
}

/// Returns the operating system's message for an error number (errno), in lower case.
pub fn errno_message(number: u16) -> String {
    let text = std::io::Error::from_raw_os_error(i32::from(number)).to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// Formats the figures of the load generator in one line: threads, share of working time, lag,
/// delay in reading responses, and CPU time.
pub fn generator_text(context: &RunContext, summary: &Summary) -> String {
    let generator_threads = context.threads_text();
    let place = if context.is_target_local { "; the target is on the same machine" } else { "" };
    let lag = match summary.generator.lag.count {
        0 => String::new(),
        _ => format!(", lag {}", summary.generator.lag.tail_text()),
    };
    let read_wait = match summary.generator.read_wait.count {
        0 => String::new(),
        _ => format!(", responses read after {}", summary.generator.read_wait.tail_text()),
    };
    let spin = match context.injectors.first().map(|injector| injector.spin) {
        Some(Spin::Auto) | None => "",
        Some(Spin::On) => ", spinning",
        Some(Spin::Off) => ", not spinning",
    };
    format!(
        "{generator_threads}{place}; busy {busy_percent:.0} %{lag}{read_wait}, {cpu_time} CPU{spin}",
        busy_percent = summary.generator.work_share * 100.0,
        cpu_time = duration(summary.generator.cpu_s * 1e9),
    )
}

/// Formats how much CPU was used by processes other than plimsoll and the server, or why this CPU
/// use is not known.
pub(crate) fn interference_text(interference: &Interference) -> String {
    let stolen = interference.steal_share.filter(|share| *share >= 0.005);
    let stolen = stolen.map_or_else(String::new, |share| {
        format!("; the host took {steal_percent:.0} % of the needed CPU time (steal)", steal_percent = share * 100.0)
    });
    match (interference.cores, &interference.reason) {
        (Some(cores), _) => {
            format!(
                "processes other than the server and plimsoll used {cores:.2} of {machine_cores:.0} cores{stolen}",
                machine_cores = interference.machine_cores
            )
        }
        (None, Some(reason)) => {
            format!("{reason}{stolen}")
        }
        (None, None) => "not known".into(),
    }
}

/// Formats how the plan was adapted to the limits of this machine; `None` if the plan was not
/// adapted.
pub(crate) fn plan_adjustments_fact(context: &RunContext) -> Option<(&'static str, String)> {
    (!context.plan_adjustments.is_empty()).then(|| ("fitted", context.plan_adjustments.join("; ")))
}

pub(crate) fn latency_row(name: &str, latency: &Latency) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    if latency.count == 0 && latency.quantiles == Quantiles::default() {
        row.extend(std::iter::repeat_n("-".to_owned(), 8));
        return row;
    }
    // A failed request counts as slower than every successful request, so quantiles exist even if
    // no response arrived. The mean and the maximum need at least one response.
    let time = |ns: f64| if latency.count == 0 { "-".to_owned() } else { duration(ns) };
    row.push(time(latency.mean_ns));
    let Quantiles { p50, p75, p90, p95, p99, p999 } = latency.quantiles;
    row.extend([p50, p75, p90, p95, p99, p999].map(|quantile| quantile.to_string()));
    row.push(time(latency.max_ns as f64));
    row
}

/// Formats the figures of one stage of a load as a table row.
pub(crate) fn stage_row(number: usize, stage: &StageFigures) -> Vec<String> {
    let level = |value: f64| count(value.round() as u64);
    let time = |ns: u64| if ns > 0 { duration(ns as f64) } else { "-".to_owned() };
    let levels = match stage.from == stage.to {
        true => level(stage.from),
        false => format!("{} to {}", level(stage.from), level(stage.to)),
    };
    vec![
        (number + 1).to_string(),
        levels,
        duration(stage.duration_ns as f64),
        rate(stage.achieved_rps),
        share(stage.success_rate),
        stage.p50.to_string(),
        stage.p99.to_string(),
        time(stage.max_ns),
    ]
}

/// The answer mentions late successes only if their share of all successes exceeds
/// `LATE_SHARE_REPORTED_MIN`. A success is late if its response arrives after the end of the
/// measured window. Without the remark about late successes, the throughput and the success rate
/// would seem to contradict each other.
const LATE_SHARE_REPORTED_MIN: f64 = 0.02;

/// The column headings of the table of routes, for the rows of [`route_row`].
pub(crate) const ROUTE_HEADINGS: [&str; 9] =
    ["route", "requests", "requests/s", "success", "mean", "p50", "p99", "max", "failed"];

/// Formats the figures of one route (a kind of request) as a table row.
pub(crate) fn route_row(route: &RouteSummary) -> Vec<String> {
    let RouteSummary { figures, .. } = route;
    let time = |ns: f64| if figures.response.count > 0 { duration(ns) } else { "-".to_owned() };
    vec![
        route.name.clone(),
        count(route.requests),
        rate(route.throughput_rps),
        if route.requests > 0 { share(route.success_rate) } else { "-".to_owned() },
        time(figures.response.mean_ns),
        figures.response.quantiles.p50.to_string(),
        figures.response.quantiles.p99.to_string(),
        time(figures.response.max_ns as f64),
        count(figures.ledger.failed_total()),
    ]
}

/// Formats the result of one load as one sentence with two figures: successful requests a second
/// within the measured window, and the success rate.
pub(crate) fn run_answer(plan: &PlanRecord, summary: &Summary) -> String {
    let RouteFigures { ledger, succeeded_in_window, .. } = &summary.routes_sum;
    let load = match plan.load.shape {
        LoadShape::Closed { .. } => format!(" with {}", load_text(plan)),
        LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. } => format!(" (offered: {})", load_text(plan)),
    };
    let late = ledger.succeeded.saturating_sub(*succeeded_in_window);
    let (in_window, in_the_end) = match late as f64 > LATE_SHARE_REPORTED_MIN * ledger.succeeded as f64 {
        true => (
            " in the window",
            format!(
                ", {late_requests} of these requests completed after the measured window",
                late_requests = count(late)
            ),
        ),
        false => ("", String::new()),
    };
    let requests = if ledger.scheduled == 1 { "request" } else { "requests" };
    format!(
        "{rate_rps} requests/s succeeded{in_window}{load}; {success_share} of {scheduled} {requests} \
         succeeded{in_the_end}",
        rate_rps = rate(summary.throughput_rps),
        success_share = share(summary.success_rate),
        scheduled = count(ledger.scheduled),
    )
}

/// Renders the report of one load, without its warnings.
pub(crate) fn run_report(context: &RunContext, summary: &Summary, routes: &[RouteSummary]) -> Report {
    let mut report = Report::default();
    report.add_sentence(Tone::Answer, run_answer(context.plan, summary));
    report.add_facts(vec![
        ("target", context.target_text()),
        ("measured", format!("{} (seed {})", duration(summary.duration_ns as f64), context.plan.load.seed)),
    ]);
    let mut rows = vec![latency_row("response time", &summary.routes_sum.response)];
    // The response time, service time and time to first byte are equal if requests never wait
    // before sending and responses arrive in one piece. Times with equal values share one row of
    // the table.
    let mut alike = Vec::new();
    for (name, latency) in
        [("service time", &summary.routes_sum.service), ("time to first byte", &summary.routes_sum.ttfb)]
    {
        let row = latency_row(name, latency);
        match rows.iter().find(|above| latency.count > 0 && above[1..] == row[1..]) {
            Some(above) => alike.push(format!("{name} as {}", above[0])),
            None => rows.push(row),
        }
    }
    for (name, times) in
        [("first message", &summary.routes_sum.first_message), ("between messages", &summary.routes_sum.message_gap)]
    {
        if times.count > 0 {
            rows.push(latency_row(name, times));
        }
    }
    rows.push(latency_row("connect", &summary.load.connect));
    if context.plan.connection_plan.tls.is_some() {
        rows.push(latency_row("TLS handshake", &summary.load.handshake));
    }
    report.add_table(&["", "mean", "p50", "p75", "p90", "p95", "p99", "p99.9", "max"], rows);
    if !routes.is_empty() {
        report.add_table(&ROUTE_HEADINGS, routes.iter().map(route_row).collect());
    }
    agents::append_agents(&mut report, &context.agents);
    if !summary.stages.is_empty() {
        let over = match context.plan.load.shape {
            LoadShape::Closed { .. } => "users",
            LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. } => "offered/s",
        };
        let rows = summary.stages.iter().enumerate().map(|(number, stage)| stage_row(number, stage)).collect();
        report.add_table(&["stage", over, "length", "requests/s", "success", "p50", "p99", "max"], rows);
    }
    let mut facts = ledger_facts(context, summary);
    facts.extend(unreliable_quantiles_fact(summary));
    facts.extend(replay::replay_fact(context.plan, summary));
    if !alike.is_empty() {
        facts.insert(0, ("alike", alike.join(", ")));
    }
    report.add_facts(facts);
    report
}

/// Lists the quantiles of the response time that are not shown, because too few requests were
/// slower than the quantile. Returns `None` if the report shows all quantiles.
pub(crate) fn unreliable_quantiles_fact(summary: &Summary) -> Option<(&'static str, String)> {
    let response = &summary.routes_sum.response;
    let few: Vec<&str> = response.quantiles.unstated_quantile_names().collect();
    (!few.is_empty() && response.count > 0).then(|| {
        let requests = count(summary.routes_sum.ledger.scheduled);
        let text = format!(
            "{quantiles} unknown: fewer than {REQUESTS_BEYOND_MIN} of {requests} requests are slower",
            quantiles = few.join(", ")
        );
        ("not shown", text)
    })
}

/// Formats how the sessions of a load ended; `None` for a load without sessions.
fn sessions_fact(summary: &Summary) -> Option<(&'static str, String)> {
    let LoadFigures { sessions_started, sessions_completed, sessions_abandoned, sessions_cut, session_time, .. } =
        &summary.load;
    let took = match session_time.count {
        0 => String::new(),
        _ => format!("; a whole one took p50 {}, {}", session_time.quantiles.p50, session_time.tail_text()),
    };
    (*sessions_started > 0).then(|| {
        let text = format!(
            "{started} started = {completed} completed + {abandoned} abandoned after a failure + {in_progress} in \
             progress at the end{took}",
            started = count(*sessions_started),
            completed = count(*sessions_completed),
            abandoned = count(*sessions_abandoned),
            in_progress = count(*sessions_cut),
        );
        ("sessions", text)
    })
}

/// Returns the protocol that the connections used: HTTP/1.1, HTTP/2, or both.
pub(crate) fn connection_protocol(summary: &Summary) -> &'static str {
    let (h2, opened) = (summary.load.h2_connections, summary.load.connections_opened);
    // A connection whose TLS handshake failed used no HTTP protocol, so it is not counted.
    let failed: u64 = summary.load.tls_errors.iter().map(|(_, count)| count).sum();
    match (h2, opened.saturating_sub(failed)) {
        (0, _) => "HTTP/1.1",
        (h2, spoken) if h2 >= spoken => "HTTP/2",
        _ => "HTTP/1.1 and HTTP/2",
    }
}

/// Formats the HTTP version of the connections. For HTTP/2 the text adds the limit of concurrent
/// streams, and the number of requests that waited for a free stream. For HTTP/2 the text also
/// states how often the server waited for flow control, and how many requests plimsoll sent again.
fn http_version_text(plan: &PlanRecord, summary: &Summary) -> String {
    let mut text = connection_protocol(summary).to_owned();
    if summary.load.h2_connections == 0 {
        return text;
    }
    match plan.connection_plan.streams_max {
        1 => text.push_str(" with one request at a time on each connection"),
        streams => text.push_str(&format!(
            " with up to {requests_max} requests at a time on each connection",
            requests_max = count(streams.into())
        )),
    }
    let of = |requests: u64| share(requests as f64 / summary.routes_sum.ledger.scheduled.max(1) as f64);
    if summary.load.stream_waits > 0 {
        let waits = summary.load.stream_waits;
        text.push_str(&format!(
            ", {requests} requests ({requests_share}) waited for a free stream",
            requests = count(waits),
            requests_share = of(waits)
        ));
    }
    if summary.load.windows_empty > 0 {
        let times = count(summary.load.windows_empty);
        text.push_str(&format!(", the server waited {times} times for plimsoll's flow-control window"));
    }
    if summary.load.resent > 0 {
        text.push_str(&format!(
            ", plimsoll sent {requests} requests again because the server had not accepted these requests",
            requests = count(summary.load.resent)
        ));
    }
    text
}

/// Returns the counts of a tally, each with the text of its code. A tally has a count for each
/// numeric code, such as an HTTP/2 error code, and the function `text` formats a code.
fn labelled_counts(tally: &CountsByKey, text: impl Fn(u16) -> String) -> Vec<(String, u64)> {
    tally.iter().map(|(key, count)| (text(key), count)).collect()
}

/// Formats the number of failed requests by kind of failure, in parentheses; empty if no request
/// failed.
pub(crate) fn failures_by_kind_text(ledger: &Ledger) -> String {
    let kinds: Vec<String> = RequestFailure::ALL
        .iter()
        .filter(|kind| ledger.failed[**kind as usize] > 0)
        .map(|kind| format!("{} {}", kind.name().replace('_', " "), count(ledger.failed[*kind as usize])))
        .collect();
    if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) }
}

pub(crate) fn ledger_facts(context: &RunContext, summary: &Summary) -> Vec<(&'static str, String)> {
    let ledger = &summary.routes_sum.ledger;
    let failed = format!("{} failed{}", count(ledger.failed_total()), failures_by_kind_text(ledger));
    let statuses: Vec<String> = summary.routes_sum.statuses.iter().map(|(s, n)| format!("{s}: {}", count(n))).collect();
    let [in_rate, out_rate] = summary.bytes_per_s.map(|rate| format!("{}/s", bytes(rate)));
    let mut facts = vec![
        (
            "ledger",
            format!(
                "{scheduled} scheduled = {succeeded} succeeded + {failed} + {unsent} unsent + {in_flight} in flight \
                 at the end",
                scheduled = count(ledger.scheduled),
                succeeded = count(ledger.succeeded),
                unsent = count(ledger.unsent),
                in_flight = count(ledger.in_flight),
            ),
        ),
        ("statuses", if statuses.is_empty() { "none".into() } else { statuses.join(", ") }),
    ];
    if !summary.routes_sum.grpc_statuses.is_empty() {
        let calls = labelled_counts(&summary.routes_sum.grpc_statuses, |code| {
            GrpcStatus::from_code(code.into()).name().to_owned()
        });
        let calls: Vec<String> = calls.iter().map(|(name, calls)| format!("{name}: {}", count(*calls))).collect();
        let messages = count(summary.routes_sum.grpc_messages);
        let large_messages = match summary.routes_sum.grpc_large_answers {
            0 => String::new(),
            answers => format!(
                "; {responses} responses have a message above {size_mib} MiB, which clients refuse by default",
                responses = count(answers),
                size_mib = DEFAULT_MESSAGE_BYTES_MAX >> 20
            ),
        };
        let text = format!(
            "{calls_by_status}; messages in the responses: {messages}{large_messages}",
            calls_by_status = calls.join(", ")
        );
        facts.push(("calls", text));
    }
    facts.extend(failure_kinds::failure_facts(&summary.failed_answers));
    facts.extend(sessions_fact(summary));
    if ledger.failed_total() > ledger.failed[RequestFailure::Timeout as usize] {
        let failed = &summary.routes_sum.failed;
        facts.push(("failures took", format!("p50 {}, {}", failed.quantiles.p50, failed.tail_text())));
    }
    let list = |counts: Vec<(String, u64)>| {
        let parts: Vec<String> = counts.into_iter().map(|(what, n)| format!("{what}: {}", count(n))).collect();
        parts.join(", ")
    };
    if !summary.load.connect_errors.is_empty() {
        let reasons = list(labelled_counts(&summary.load.connect_errors, errno_message));
        let text = match context.plan.connection_plan.addresses.len() {
            0 | 1 => reasons,
            _ => format!(
                "{reasons} (at {})",
                list(labelled_counts(&summary.load.address_errors, |number| summary.address(number).to_owned()))
            ),
        };
        facts.push(("not connected", text));
    }
    if !summary.load.tls_errors.is_empty() {
        let reasons = labelled_counts(&summary.load.tls_errors, |number| {
            TlsFailure::from_number(number).description().to_owned()
        });
        facts.push(("TLS failed", list(reasons)));
    }
    facts.push((
        "bytes",
        format!(
            "{} in ({in_rate}), {} out ({out_rate})",
            bytes(summary.load.bytes_in as f64),
            bytes(summary.load.bytes_out as f64),
        ),
    ));
    let resumed = match summary.load.handshake.count {
        0 => String::new(),
        _ => format!(", {} TLS sessions resumed", count(summary.load.handshakes_resumed)),
    };
    // If each connection closes after one request, the number of open connections has no meaning,
    // so it is omitted.
    let at_once = match context.plan.connection_plan.keep_alive && summary.load.connections_open > 0 {
        true => {
            let connections = count(summary.load.connections_open);
            format!(", at most {connections} connections open at once")
        }
        false => String::new(),
    };
    let opened = count(summary.load.connections_opened);
    facts.push((
        "connections",
        format!("{opened} opened{at_once}{resumed}, {}", http_version_text(context.plan, summary)),
    ));
    let reasons =
        |tally: &CountsByKey| list(labelled_counts(tally, |code| H2Error::from_code(code.into()).name().to_owned()));
    if !summary.load.stream_resets.is_empty() {
        facts.push(("streams reset", reasons(&summary.load.stream_resets)));
    }
    if !summary.load.goaways.is_empty() {
        facts.push(("GOAWAY", reasons(&summary.load.goaways)));
    }
    facts.push(("generator", generator_text(context, summary)));
    facts.push(("other processes", interference_text(&summary.interference)));
    facts.extend(plan_adjustments_fact(context));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_stages_are_counted() {
        let stages = |levels: &[f64]| -> Vec<LoadStage> {
            levels.iter().map(|level| LoadStage { from: *level, to: *level, duration_ns: Some(1) }).collect()
        };
        for (levels, length, times) in [
            (&[0.0, 9.0, 0.0, 9.0, 0.0, 9.0][..], 2, 3),
            (&[0.0, 9.0, 0.0, 9.0], 4, 1),
            (&[0.0, 9.0, 0.0, 9.0, 0.0], 5, 1),
            (&[1.0], 1, 1),
            (&[], 0, 1),
        ] {
            let stages = stages(levels);
            let (repeated, count) = shortest_repeated_sequence(&stages);
            assert_eq!((repeated.len(), count), (length, times), "{levels:?}");
        }
    }
}
