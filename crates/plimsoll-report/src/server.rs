//! Renders what probes observed on the server. The forms are facts of a report, the member `server`
//! of a JSON document, and a CSV file of all readings.

use crate::block::Report;
use crate::format::{bytes, count, duration, rate};
use plimsoll_analysis::server_view::SeriesReadings;
use plimsoll_analysis::{ServerUse, ServerView};
use plimsoll_model::{Run, WatchedServer};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Formats the CPU use of the server, such as
/// `105 us CPU a request = 9 500 requests/s a core, 1.52 cores used`.
pub(crate) fn server_cpu_use_text(server_use: &ServerUse) -> String {
    let mut parts = Vec::new();
    if let (Some(us), Some(rps)) = (server_use.cpu_us_per_request(), server_use.rps_per_core()) {
        parts.push(format!(
            "{cpu_time} CPU a request = {rate_rps} requests/s a core",
            cpu_time = duration(us * 1e3),
            rate_rps = rate(rps)
        ));
    }
    parts.push(format!("{:.2} cores used", server_use.cores_used()));
    parts.join(", ")
}

fn server_memory_and_threads_text(server_use: &ServerUse) -> String {
    let mut parts = Vec::new();
    parts.extend(server_use.rss_bytes_max.map(|most| format!("at most {} resident", bytes(most))));
    parts.extend(server_use.threads_max.map(|most| match most as u64 {
        1 => "1 thread".to_owned(),
        threads => format!("{} threads", count(threads)),
    }));
    if let Some(thread) = &server_use.busiest_thread {
        parts.push(format!(
            "the busiest thread, {thread_name}, used {core_percent:.0} % of a core",
            thread_name = thread.name,
            core_percent = thread.share * 100.0
        ));
    }
    parts.join(", ")
}

fn gaps_text(readings: &BTreeMap<&str, SeriesReadings>) -> String {
    let reasons: BTreeSet<&str> = readings.values().flat_map(|readings| readings.reasons.iter().copied()).collect();
    let reasons: Vec<&str> = reasons.into_iter().collect();
    match reasons.len() {
        0 => String::new(),
        1..=3 => format!("; gaps: {}", reasons.join("; ")),
        more => format!("; gaps: {}, and {} reasons more (--json)", reasons[..3].join("; "), more - 3),
    }
}

/// Adds the observations of the server to a report as facts, above the table at the report's end.
/// Adds nothing if no probe read the server.
pub(crate) fn add_server_facts(report: &mut Report, view: &ServerView) {
    if !view.has_probe_readings() {
        return;
    }
    let (around, readings) = (view.probe_notes(), view.readings());
    let mut facts: Vec<(String, String)> = Vec::new();
    match &view.usage {
        Ok(used) => {
            let host = view.host().map_or_else(String::new, |host| format!(" on {host}"));
            let who = used.servers.last().map(|server| format!("{} (pid {}){host}: ", server.name, server.pid));
            facts.push(("server".into(), format!("{}{}", who.unwrap_or_default(), server_cpu_use_text(used))));
            let size = server_memory_and_threads_text(used);
            if !size.is_empty() {
                facts.push((String::new(), size));
            }
            if let Some(from) = &view.source {
                facts.push((String::new(), format!("from {from}")));
            }
        }
        Err(reason) => facts.push(("server".into(), format!("not seen: {reason}"))),
    }
    for reason in around.missing.iter().filter(|_| view.usage.is_ok()) {
        facts.push((String::new(), format!("not seen: {reason}")));
    }
    facts.push((
        "probes".into(),
        format!(
            "the probes recorded {series} time series, and used {core_percent:.2} % of a core{gaps}",
            series = readings.len(),
            core_percent = around.probing_cpu_share() * 100.0,
            gaps = gaps_text(&readings)
        ),
    ));
    report.add_facts_above_table(facts);
}

/// The member `server` of a JSON document, with everything that probes observed on the server.
#[derive(Serialize)]
pub(crate) struct ServerFields<'a> {
    host: Option<&'a str>,
    pid: Option<u32>,
    name: Option<String>,
    found_by: Option<String>,
    servers: Vec<ProcessFields<'a>>,
    cpu_us_per_request: Option<f64>,
    rps_per_core: Option<f64>,
    cores_used: Option<f64>,
    rss_bytes_max: Option<f64>,
    threads_max: Option<u64>,
    fullest_thread_share: Option<f64>,
    fullest_thread: Option<String>,
    from: Option<String>,
    reason: Option<String>,
    unseen: Vec<String>,
    probes_cpu_share: Option<f64>,
    probes: Vec<ProbeFields<'a>>,
}

/// A process that probes observed as the server. If the server was restarted, there are several
/// processes.
#[derive(Serialize)]
struct ProcessFields<'a> {
    pid: u32,
    name: &'a str,
    from_s: f64,
    found_by: &'a str,
}

/// The summary of one series that probes observed, over all loads.
#[derive(Serialize)]
struct ProbeFields<'a> {
    name: &'a str,
    samples: usize,
    gaps: usize,
    gap_reasons: BTreeSet<&'a str>,
    unit: String,
    min: Option<f64>,
    mean: Option<f64>,
    max: Option<f64>,
}

impl<'a> ServerFields<'a> {
    /// Creates the member `server` from the observations of the server.
    pub(crate) fn new(view: &ServerView<'a>) -> ServerFields<'a> {
        let around = view.probe_notes();
        let used = view.usage.as_ref().ok();
        let met = view.servers();
        let present = used.and_then(|used| used.servers.last()).or(met.last().copied());
        let process = |server: &&'a WatchedServer| ProcessFields {
            pid: server.pid,
            name: &server.name,
            from_s: server.from_ns as f64 / 1e9,
            found_by: &server.found_by,
        };
        let thread = used.and_then(|used| used.busiest_thread.as_ref());
        ServerFields {
            host: view.host(),
            pid: present.map(|server| server.pid),
            name: present.map(|server| server.name.clone()),
            found_by: present.map(|server| server.found_by.clone()),
            servers: met.iter().map(process).collect(),
            cpu_us_per_request: used.and_then(ServerUse::cpu_us_per_request),
            rps_per_core: used.and_then(ServerUse::rps_per_core),
            cores_used: used.map(ServerUse::cores_used),
            rss_bytes_max: used.and_then(|used| used.rss_bytes_max),
            threads_max: used.and_then(|used| used.threads_max).map(|most| most as u64),
            fullest_thread_share: thread.map(|thread| thread.share),
            fullest_thread: thread.map(|thread| thread.name.clone()),
            from: view.source.clone(),
            reason: view.usage.as_ref().err().cloned(),
            probes_cpu_share: view.has_probe_readings().then(|| around.probing_cpu_share()),
            unseen: around.missing,
            probes: view.readings().into_iter().map(|(name, readings)| ProbeFields::new(name, readings)).collect(),
        }
    }
}

impl<'a> ProbeFields<'a> {
    fn new(name: &'a str, readings: SeriesReadings<'a>) -> ProbeFields<'a> {
        let SeriesReadings { unit, samples, gaps, reasons, values } = readings;
        let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let (min, max) = (values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max));
        ProbeFields { name, samples, gaps, gap_reasons: reasons, unit, min, mean, max }
    }
}

/// Formats all readings of probes as CSV: number of the load, name of the series, unit, time since
/// the start of the load, value. Counters are not converted to rates.
pub fn probes_csv(runs: &[&Run]) -> String {
    let mut out = String::from("trial,series,unit,at_s,value\n");
    for (number, run) in runs.iter().enumerate() {
        for (name, series) in &run.probes.series {
            // The name of the series is escaped, because the label of a metric comes from the
            // server and may contain any character.
            let name = format!("\"{}\"", crate::visible_controls::escape_to_one_line(name).replace('"', "\"\""));
            let unit = if series.unit.contains([',', '"', '\n', '\r']) { "" } else { series.unit.as_str() };
            for sample in &series.samples {
                out.push_str(&format!("{number},{name},{},{:.6},{}\n", unit, sample.at_ns as f64 / 1e9, sample.value));
            }
        }
    }
    out
}
