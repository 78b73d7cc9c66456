//! Renders the analysis of access logs as text, and as a page with charts.
//!
//! Not here: the JSON document (`traffic_json`).

use crate::block::{Report, Tone};
use crate::chart::{AxisQuantity, AxisUnit, ChartLine, Heading, Panel, Theme, curve_chart, time_chart};
use crate::format;
use crate::profile::printable_function_name;
use crate::remedy::sentence_text;
use plimsoll_analysis::{DoubtKind, Doubts};
use plimsoll_logs::access_log::TimestampMeaning;
use plimsoll_logs::survey::{DISORDER_WINDOW_S, LogFigures, Popularity};
use plimsoll_model::units::SECOND;
use plimsoll_model::{Histogram, redact};

/// An access log that was analysed, with its format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSummary {
    /// The path of the log file.
    pub name: String,
    /// The name of the log's format.
    pub format: String,
    /// Whether a timestamp in the log is the start or the end of its request.
    pub timestamp_meaning: TimestampMeaning,
}

/// The access logs that were analysed, with the number of lines that could not be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrafficContext<'a> {
    /// The log files.
    pub logs: &'a [LogSummary],
    /// The number of lines in the logs, without empty lines.
    pub lines_read: u64,
    /// The number of log lines that could not be parsed.
    pub lines_unparsed: u64,
    /// The first line that could not be parsed: its position in the logs, and its first characters.
    pub first_unparsed: Option<(&'a str, &'a str)>,
}

pub(crate) fn timestamp_meaning_name(stamp: TimestampMeaning) -> &'static str {
    match stamp {
        TimestampMeaning::Start => "start",
        TimestampMeaning::End => "end",
    }
}

pub(crate) fn share_of_whole(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Formats `part` as a percentage of `whole`.
fn percentage_text(part: u64, whole: u64) -> String {
    format::share(share_of_whole(part, whole))
}

/// Formats the result of the analysis as one sentence: the number of requests, the time span of the
/// log, and the request rates.
fn summary_sentence(figures: &LogFigures) -> String {
    let span = format::duration(figures.span_ns as f64);
    let mean = format::rate(figures.rate_mean_rps());
    let peak = figures.peak_1s.map_or(String::new(), |peak| {
        format!(", {peak_rate}/s in the busiest second", peak_rate = format::count(peak))
    });
    // A log shorter than one minute has no busiest minute.
    let minute = match figures.span_ns >= 60 * SECOND {
        true => {
            format!(", {peak_rate}/s in the busiest minute", peak_rate = format::rate(figures.peak_1min as f64 / 60.0))
        }
        false => String::new(),
    };
    format!(
        "{requests} request{plural_s} in {span}: {mean}/s on average{peak}{minute}",
        requests = format::count(figures.requests),
        plural_s = if figures.requests == 1 { "" } else { "s" }
    )
}

/// Returns the doubts (evidence against the figures), such as lines that could not be parsed.
pub(crate) fn traffic_doubts(figures: &LogFigures, context: &TrafficContext) -> Doubts {
    let mut doubts = Doubts::default();
    if context.lines_unparsed > 0 {
        let first =
            context.first_unparsed.map_or(String::new(), |(place, text)| format!("; the first is {place}: \"{text}\""));
        let (lines, read) = (format::count(context.lines_unparsed), format::count(context.lines_read));
        doubts.add(DoubtKind::Unmeasured, format!("{lines} of {read} log lines could not be parsed{first}"));
    }
    if figures.late_requests > 0 {
        let text = format!(
            "{late_requests} requests are more than {minutes} min older than the previous log line: the rates, \
             dispersion and concurrency leave these requests out",
            late_requests = format::count(figures.late_requests),
            minutes = DISORDER_WINDOW_S / 60
        );
        doubts.add(DoubtKind::IgnoredLoads, text);
    }
    if figures.requests_beyond_endpoint_limit > 0 {
        let text = format!(
            "{requests} requests belong to endpoints beyond the limit of {endpoints}: merge similar paths with --fold \
             REGEX",
            requests = format::count(figures.requests_beyond_endpoint_limit),
            endpoints = format::count(figures.endpoints.len() as u64)
        );
        doubts.add(DoubtKind::Rough, text);
    }
    if figures.sessions.has_early_closed_sessions {
        doubts.add(
            DoubtKind::Rough,
            "the log has too many visitors at once, so plimsoll counted some sessions as ended too early",
        );
    }
    doubts
}

/// Returns notes on the limits of the log: timestamps with a low resolution, and requests without a
/// start time.
pub(crate) fn traffic_notes(figures: &LogFigures) -> Vec<String> {
    let mut notes = Vec::new();
    let resolution = format::duration(figures.resolution_ns as f64);
    if figures.resolution_ns > 100_000_000 {
        notes.push(format!(
            "The log's timestamps have a resolution of {resolution}, and hide faster changes. In nginx, $msec and \
             $request_time are finer."
        ));
    }
    if figures.requests_without_arrival > 0 {
        notes.push(format!(
            "For {share_percent} of the requests, the log has the end time but no duration: the end counts as the \
             arrival.",
            share_percent = percentage_text(figures.requests_without_arrival, figures.requests)
        ));
    }
    notes
}

/// Formats the mean, three quantiles and the maximum of a distribution. The function `format_value`
/// formats one value.
fn distribution_text(histogram: &Histogram, format_value: &dyn Fn(f64) -> String) -> String {
    let at = |q| format_value(histogram.quantile_ns(q) as f64);
    format!(
        "{mean} on average; p50 {p50}, p90 {p90}, p99 {p99}, at most {maximum}",
        mean = format_value(histogram.mean_ns()),
        p50 = at(0.5),
        p90 = at(0.9),
        p99 = at(0.99),
        maximum = format_value(histogram.max_ns() as f64)
    )
}

/// Formats the first `entries_max` entries of a list with their shares of `whole`, and the number
/// of entries that were omitted.
fn format_top_shares<'a>(parts: impl Iterator<Item = (String, u64)> + 'a, whole: u64, entries_max: usize) -> String {
    let all: Vec<(String, u64)> = parts.collect();
    let mut text: Vec<String> = all
        .iter()
        .take(entries_max)
        .map(|(name, count)| format!("{name} {}", percentage_text(*count, whole)))
        .collect();
    if all.len() > entries_max {
        text.push(format!("{} more", all.len() - entries_max));
    }
    text.join(", ")
}

fn status_text(status: u16) -> String {
    if status == 0 { "none".into() } else { status.to_string() }
}

fn method_text(method: &str) -> String {
    if method.is_empty() { "(none)".into() } else { method.to_owned() }
}

/// Formats an endpoint as its method and path. Random-looking segments of the path are shortened,
/// because they may be secret keys.
fn endpoint_text(method: &str, template: &str) -> String {
    match (method, redact::redact_path(template).as_str()) {
        ("", "") => "(no request)".into(),
        (method, "") => method.to_owned(),
        (method, template) => format!("{method} {template}").trim_start().to_owned(),
    }
}

fn window_text(width_ns: u64) -> String {
    format::duration(width_ns as f64)
}

fn popularity_text(popularity: &Popularity) -> Option<String> {
    let exponent = popularity.zipf_exponent?;
    let more_than = if popularity.is_exact { "" } else { "more than " };
    Some(format!(
        "Zipf exponent {exponent:.2} for the popularity of {more_than}{ids} ids of {endpoint}",
        ids = format::count(popularity.ids),
        endpoint = endpoint_text(&popularity.method, &popularity.template)
    ))
}

fn traffic_facts(figures: &LogFigures, context: &TrafficContext) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    for (number, log) in context.logs.iter().take(5).enumerate() {
        let label = if number == 0 { "log" } else { "" };
        let text = format!(
            "{log_name}: {log_format}; a timestamp is the {start_or_end} of a request",
            log_name = log.name,
            log_format = log.format,
            start_or_end = timestamp_meaning_name(log.timestamp_meaning)
        );
        facts.push((label, text));
    }
    if context.logs.len() > 5 {
        facts.push(("", format!("and {} more", context.logs.len() - 5)));
    }
    let date = |ns: u64| format::format_utc_date(ns / 1_000_000);
    facts.push(("time", format!("{} to {}", date(figures.first_ns), date(figures.last_ns))));
    let whole = figures.requests;
    let methods = figures.methods.iter().map(|(method, count)| (method_text(method), *count));
    facts.push(("methods", format_top_shares(methods, whole, 6)));
    let mut statuses = figures.statuses.clone();
    statuses.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    facts.push((
        "statuses",
        format_top_shares(statuses.into_iter().map(|(s, count)| (status_text(s), count)), whole, 8),
    ));
    if let Some((_, most)) = figures.clients.first() {
        let more_than = if figures.clients_error_max > 0 { "more than " } else { "" };
        let clients = format::count(figures.clients.len() as u64);
        let text = format!(
            "{more_than}{clients}; the busiest client sent {share_percent} of the requests",
            share_percent = percentage_text(*most, whole)
        );
        facts.push(("clients", text));
    }
    let sessions = &figures.sessions;
    if sessions.requests.count() > 0 {
        let count = |value: f64| if value.fract() == 0.0 { format::count(value as u64) } else { format::rate(value) };
        let all = format::count(sessions.requests.count());
        facts.push(("sessions", format!("{all}; requests of each: {}", distribution_text(&sessions.requests, &count))));
    }
    if sessions.think_times_ns.count() > 0 {
        facts.push(("think time", distribution_text(&sessions.think_times_ns, &format::duration)));
    }
    if let Some(concurrency) = figures.concurrency {
        let max =
            concurrency.max.map_or("the maximum in flight is unknown: the timestamps are too coarse".into(), |max| {
                format!("{} at most", format::count(max))
            });
        facts.push(("in flight", format!("{} requests on average, {max}", format::rate(concurrency.mean))));
    }
    if figures.durations.count() > 0 {
        facts.push(("duration", distribution_text(&figures.durations, &format::duration)));
    }
    if figures.sizes.count() > 0 {
        facts.push(("size", distribution_text(&figures.sizes, &format::bytes)));
    }
    let bursts = figures.dispersion.iter().map(|(width, index)| {
        let index = index.map_or("not known".into(), format::rate);
        format!("{index} over {}", window_text(*width))
    });
    let bursts: Vec<String> = bursts.collect();
    facts.push(("burstiness", format!("{} (variance over mean of the counts; 1: as by chance)", bursts.join(", "))));
    if let Some(text) = figures.popularity.as_ref().and_then(popularity_text) {
        facts.push(("popularity", text));
    }
    facts
}

fn endpoint_rows(figures: &LogFigures, top: usize) -> Vec<Vec<String>> {
    let row = |endpoint: &plimsoll_logs::survey::TrafficEndpoint| {
        vec![
            printable_function_name(&endpoint_text(&endpoint.method, &endpoint.template)),
            format::count(endpoint.requests),
            percentage_text(endpoint.requests, figures.requests),
        ]
    };
    figures.endpoints.iter().take(top).map(row).collect()
}

fn add_top_tables(report: &mut Report, figures: &LogFigures, top: usize) {
    if top == 0 {
        return;
    }
    let more = |report: &mut Report, all: usize, what: &str| {
        if all > top {
            report.add_sentence(Tone::Plain, format!("{top} of {} {what} (--top N)", format::count(all as u64)));
        }
    };
    report.add_heading("Endpoints");
    report.add_table(&["endpoint", "requests", "share"], endpoint_rows(figures, top));
    more(report, figures.endpoints.len(), "endpoints");
    if !figures.clients.is_empty() {
        let rows = figures.clients.iter().take(top.min(10)).map(|(client, count)| {
            vec![client.clone(), format::count(*count), percentage_text(*count, figures.requests)]
        });
        report.add_heading("Clients");
        report.add_table(&["client", "requests", "share"], rows.collect());
    }
}

/// Renders the analysis as text. Each table has at most `top` rows.
pub fn traffic_report(figures: &LogFigures, context: &TrafficContext, top: usize) -> Report {
    let mut report = Report::default();
    report.add_sentence(Tone::Answer, summary_sentence(figures));
    for doubt in traffic_doubts(figures, context).iter() {
        report.add_sentence(Tone::Warning, sentence_text(&doubt.text));
    }
    for text in traffic_notes(figures) {
        report.add_sentence(Tone::Plain, text);
    }
    report.add_facts(traffic_facts(figures, context));
    add_top_tables(&mut report, figures, top);
    report
}

/// Creates the panels of the chart over time. One panel has the request rate. If the log has the
/// durations of requests, another panel has the requests in flight.
fn time_panels(figures: &LogFigures) -> Vec<Panel> {
    let line = |name: &str, value: &dyn Fn(usize) -> f64| ChartLine {
        name: name.to_owned(),
        points: (0..figures.intervals.len()).map(|at| ((at as f64 + 0.5) * figures.interval_s, value(at))).collect(),
    };
    let panel = |title: &str, line| Panel {
        title: title.to_owned(),
        unit: AxisUnit::Count,
        is_log_scale: false,
        lines: vec![line],
    };
    // The last interval of the log usually ends early, so its rate is computed with its real
    // length.
    let begun_s =
        figures.span_ns as f64 / 1e9 - (figures.intervals.len().saturating_sub(1)) as f64 * figures.interval_s;
    let last_s = begun_s.clamp(figures.interval_s / 10.0, figures.interval_s);
    let length_s = |at: usize| if at + 1 == figures.intervals.len() { last_s } else { figures.interval_s };
    let title = format!("requests/s, over {}", format::duration(figures.interval_s * 1e9));
    let mut panels =
        vec![panel(&title, line("requests/s", &|at| figures.intervals[at].arrivals as f64 / length_s(at)))];
    if figures.concurrency.is_some() {
        panels.push(panel("requests in flight", line("in flight", &|at| figures.intervals[at].in_flight_mean)));
    }
    panels
}

/// Returns two lines of the burstiness chart. The x axis of the chart is the width of the time
/// windows. One line is the index of dispersion: the variance of the request counts divided by
/// their mean. The other line of the chart is the constant 1, which is the index of random
/// (Poisson) arrivals.
fn dispersion_lines(figures: &LogFigures) -> Vec<ChartLine> {
    let seconds = |width_ns: u64| width_ns as f64 / 1e9;
    let points = figures.dispersion.iter().filter_map(|(width, index)| Some((seconds(*width), (*index)?)));
    let chance = figures.dispersion.iter().map(|(width, _)| (seconds(*width), 1.0)).collect();
    vec![
        ChartLine { name: "this log".into(), points: points.collect() },
        ChartLine { name: "chance".into(), points: chance },
    ]
}

/// Returns the lines of the popularity chart. The first line has the number of requests for each
/// id, by the rank of the id. If a Zipf exponent could be fitted, a second line has the request
/// counts predicted by Zipf's law.
fn popularity_lines(popularity: &Popularity) -> Vec<ChartLine> {
    let counts = &popularity.counts;
    // The ranks to draw are evenly spaced on a log axis.
    let mut ranks: Vec<usize> =
        (0..=120).map(|step| (counts.len() as f64).powf(f64::from(step) / 120.0) as usize).collect();
    ranks.dedup();
    ranks.retain(|rank| (1..=counts.len()).contains(rank));
    let points = ranks.iter().map(|rank| (*rank as f64, counts[rank - 1] as f64)).collect();
    let mut lines = vec![ChartLine { name: "this log".into(), points }];
    if let Some(a) = popularity.zipf_exponent {
        let total: f64 = counts.iter().map(|count| *count as f64).sum();
        let weights: f64 = (1..=counts.len()).map(|rank| (rank as f64).powf(-a)).sum();
        let law = ranks.iter().map(|rank| (*rank as f64, total * (*rank as f64).powf(-a) / weights)).collect();
        lines.push(ChartLine { name: "Zipf's law".into(), points: law });
    }
    lines
}

fn chart_table_rows(lines: &[ChartLine]) -> Vec<Vec<String>> {
    let value = |value: f64| AxisUnit::Count.tick_label(format::round_to_digits(value, 4));
    let first = lines.first().map(|line| line.points.as_slice()).unwrap_or_default();
    let row = |&(at, first): &(f64, f64)| {
        let others = lines
            .iter()
            .skip(1)
            .map(|line| line.points.iter().find(|p| p.0 == at).map_or(String::new(), |p| value(p.1)));
        [value(at), value(first)].into_iter().chain(others).collect()
    };
    first.iter().map(row).collect()
}

/// Renders the analysis as a page, with charts of the rate over time, burstiness and popularity.
pub fn traffic_page(figures: &LogFigures, context: &TrafficContext, top: usize) -> Report {
    let mut charts = Report::default();
    let panels = time_panels(figures);
    let headings: Vec<&str> = ["s", "requests/s", "in flight"].into_iter().take(panels.len() + 1).collect();
    let rows = chart_table_rows(&panels.iter().flat_map(|panel| panel.lines.clone()).collect::<Vec<_>>());
    charts.add_responsive_chart(|theme: Theme| time_chart(&Heading::default(), &panels, theme), &headings, rows);
    let mut report = traffic_report(figures, context, top);
    report.insert_after_answer(charts);
    let bursts = dispersion_lines(figures);
    if !bursts[0].points.is_empty() {
        report.add_heading("Burstiness");
        report.add_sentence(
            Tone::Plain,
            "The chart shows the variance of the arrivals in a window, divided by the mean, for windows of each width. \
             Independent users give 1 at every width. A rise shows bursts, or a changing rate.",
        );
        let (x, y) = (
            AxisQuantity { title: "width of the time windows, s", unit: AxisUnit::Count },
            AxisQuantity { title: "index of dispersion", unit: AxisUnit::Count },
        );
        let rows = chart_table_rows(&bursts);
        report.add_responsive_chart(
            |theme| curve_chart(&Heading::default(), x, y, &bursts, theme),
            &["s", "this log", "chance"],
            rows,
        );
    }
    if let Some(popularity) = figures.popularity.as_ref().filter(|popularity| popularity.counts.len() > 1) {
        report.add_heading("Popularity");
        let text = popularity_text(popularity).unwrap_or_else(|| {
            let endpoint = endpoint_text(&popularity.method, &popularity.template);
            format!("The ids of {endpoint} have too few requests each to fit a distribution")
        });
        report.add_sentence(Tone::Plain, text);
        let lines = popularity_lines(popularity);
        let (x, y) = (
            AxisQuantity { title: "rank of the id by number of requests", unit: AxisUnit::Count },
            AxisQuantity { title: "requests", unit: AxisUnit::Count },
        );
        let headings: Vec<&str> = ["rank", "requests", "Zipf's law"].into_iter().take(lines.len() + 1).collect();
        let rows = chart_table_rows(&lines);
        report.add_responsive_chart(|theme| curve_chart(&Heading::default(), x, y, &lines, theme), &headings, rows);
    }
    report
}
