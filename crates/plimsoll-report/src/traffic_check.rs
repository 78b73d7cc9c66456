//! Renders the output of `plimsoll check`, which shows what a traffic file would send: its routes
//! by weight, and the first requests in full.
//!
//! Not here: choosing the first requests, and parsing the file.

use crate::visible_controls::escape_to_one_line;
use plimsoll_analysis::format;
use plimsoll_model::{OneOffRoute, RouteNumber, Traffic};
use std::fmt::Write;

/// The maximum number of characters shown of a request body.
const BODY_CHARS_MAX: usize = 400;

/// One of the first requests that the traffic file would send.
pub struct CheckedRequest<'a> {
    /// The number of the arrival that sends this request, from 0. If the traffic has scenarios, an
    /// arrival starts a session of several requests.
    pub arrival: u64,
    /// The pause in ns between the previous request of the session and this request.
    pub wait_ns: u64,
    /// The number of the request's route (kind of request) in the traffic file.
    pub route: RouteNumber,
    /// The request as it is sent. For HTTP/2, the header is shown as lines of text.
    pub bytes: &'a [u8],
}

/// A parsed traffic file with its first requests.
pub struct TrafficCheck<'a> {
    /// The content of the traffic file.
    pub traffic: &'a Traffic,
    /// Whether the HTTP version is negotiated with the server when a connection is opened.
    pub negotiates_http_version: bool,
    /// Whether a schema that describes the gRPC messages is available.
    pub has_schema: bool,
    /// The random seed with which the first requests were chosen.
    pub seed: u64,
    /// The number of requests that the user wants to see.
    pub requests_max: usize,
    /// The first requests of the traffic, at most `requests_max`.
    pub first_requests: &'a [CheckedRequest<'a>],
}

/// Renders the output of `plimsoll check`, which describes a traffic file.
pub fn render_traffic_check(check: &TrafficCheck) -> String {
    let TrafficCheck { traffic, negotiates_http_version, has_schema, seed, requests_max, first_requests } = *check;
    let Traffic { origin, routes, scenarios, setup_teardown: around, .. } = traffic;
    let is_grpc = origin.is_grpc();
    let of = |count: usize, what: &str| if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") };
    let drawn =
        if routes.len().min(scenarios.len().max(1)) > 1 || scenarios.len() > 1 { ", drawn by weight" } else { "" };
    let asked = of(routes.len(), "request");
    let mut text = match scenarios.len() {
        0 => format!("{asked} at {origin}{drawn}\n"),
        count => format!("{} of {asked} at {origin}{drawn}\n", of(count, "scenario")),
    };
    match (is_grpc, has_schema) {
        (true, true) => {
            text.push_str("the calls use HTTP/2; the bodies, shown as JSON, fit the message types of the calls\n")
        }
        (true, false) => text.push_str(
            "the calls use HTTP/2; the bodies are shown as JSON (--proto or --descriptor-set checks the bodies)\n",
        ),
        (false, _) if negotiates_http_version && origin.is_secure() => {
            text.push_str(
                "the requests use HTTP/2 if the server offers HTTP/2, else HTTP/1.1 as shown (--http 2 shows HTTP/2)\n",
            );
        }
        (false, _) => {}
    }
    let weights: Vec<(u32, &str)> = match scenarios.is_empty() {
        true => routes.iter().map(|route| (route.weight, route.label.as_str())).collect(),
        false => scenarios.iter().map(|scenario| (scenario.weight, scenario.name.as_str())).collect(),
    };
    let names = |asked: &[OneOffRoute]| -> Vec<String> {
        let name = |asked: &OneOffRoute| {
            let times = if asked.times > 1 { format!(" ({} times)", asked.times) } else { String::new() };
            format!("{}{times}", escape_to_one_line(&asked.route.label))
        };
        asked.iter().map(name).collect()
    };
    let mut beside = String::new();
    for (when, asked) in [("before each load", &around.setup), ("after it", &around.teardown)] {
        if !asked.is_empty() {
            let _ = writeln!(beside, "{when}: {}", names(asked).join(", "));
        }
    }
    let total: u64 = weights.iter().map(|(weight, _)| u64::from(*weight)).sum();
    for (weight, name) in weights {
        let share = 100.0 * f64::from(weight) / total as f64;
        let _ = writeln!(text, "{share:>6.1} %  {}", escape_to_one_line(name));
    }
    text.push_str(&beside);
    let _ = writeln!(text, "\nthe first requests of this traffic (at most {requests_max}; random seed {seed}):");
    for (number, asked) in first_requests.iter().enumerate() {
        let name = escape_to_one_line(&routes[usize::from(asked.route)].label);
        let mut along = Vec::new();
        if !scenarios.is_empty() {
            along.push(format!("session {}", asked.arrival + 1));
        }
        if asked.wait_ns > 0 {
            along.push(format!("after {}", format::duration(asked.wait_ns as f64)));
        }
        let along = if along.is_empty() { String::new() } else { format!(" ({})", along.join(", ")) };
        let _ = writeln!(text, "\n{}. {name}{along}", number + 1);
        request_lines(asked.bytes, is_grpc).iter().for_each(|line| _ = writeln!(text, "   {line}"));
    }
    text
}

/// Formats a request as lines of text, without the header fields that plimsoll adds to every
/// request. For a gRPC call, the content length is omitted: the body is shown as JSON but sent as
/// protobuf.
fn request_lines(request: &[u8], is_call: bool) -> Vec<String> {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(request.len());
    let head = String::from_utf8_lossy(&request[..end]);
    let told = |line: &&str| {
        let line = line.to_ascii_lowercase();
        let is_usual = line.starts_with("user-agent: plimsoll/") || line == "accept: */*";
        let of_body = is_call && line.starts_with("content-length:");
        !(is_usual || of_body)
    };
    let mut lines: Vec<String> =
        head.split("\r\n").filter(told).map(|line| escape_to_one_line(line).into_owned()).collect();
    let body = request.get(end + 4..).unwrap_or_default();
    if body.is_empty() {
        return lines;
    }
    match std::str::from_utf8(body) {
        Ok(text) => {
            let start: String = text.chars().take(BODY_CHARS_MAX).collect();
            lines.extend(start.lines().map(|line| escape_to_one_line(line).into_owned()));
            if start.len() < text.len() {
                lines.push(format!("... ({} bytes in all)", body.len()));
            }
        }
        Err(_) => lines.push(format!("(the body has {length} bytes of binary data)", length = body.len())),
    }
    lines
}
