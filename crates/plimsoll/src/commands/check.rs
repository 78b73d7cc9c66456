//! `plimsoll check`: whether a file of traffic is understood, and what its first requests would be. Nothing is sent, and no host
//! is looked up.

use crate::args::CheckArgs;
use crate::plan_from_args;
use plimsoll_analysis::format;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::terms::MixTerms;
use plimsoll_model::{
    Carriage, Curve, HttpChoice, Load, LoadShape, OnceAsked, Plan, Redact, StatusSet, Terms, Traffic,
};
use plimsoll_report::visible::visible;
use plimsoll_study::output::print;
use plimsoll_study::{grpc, traffic_file};
use plimsoll_traffic::file::TrafficFile;
use std::fmt::Write;

/// Requests that are shown.
const SHOWN: usize = 5;
/// Characters of a body that are shown.
const BODY_CHARS_MAX: usize = 400;
/// Where it would be asked if nobody says where.
const ANYWHERE: &str = "http://localhost/";

/// Reads the file and shows what it asks.
pub fn run(args: &CheckArgs) -> Result<u8, Failure> {
    let file = traffic_file::read_to_show(&args.file)?;
    let (mut plan, mix) = plan_of(&file, &args.file.display().to_string(), args.target.clone(), args.http.as_deref())?;
    plan.load.seed = args.seed;
    let http = plan.carriage.http;
    let schema = plan_from_args::schema(&args.schema)?;
    let is_grpc = plan.traffic.origin.is_grpc();
    match (&schema, is_grpc) {
        (Some(_), true) => {
            let mut called = plan.clone();
            grpc::make_messages(&mut called, &Terms { mix: Some(mix), schema: schema.clone(), ..Terms::default() })?;
            traffic_file::encodes(&called)?;
        }
        (Some(_), false) => {
            return Err(Failure::usage(
                "--proto, --descriptor-set: only gRPC has a use for them; write grpc:// or grpcs:// in --target or base",
            ));
        }
        (None, _) => {}
    }
    for route in &mut plan.traffic.routes {
        if let Some(call) = &mut route.grpc {
            // Bodies are shown as they stand in the file, not as the messages that they become.
            call.content = Some(route.request.body.clone());
        }
    }
    traffic_file::encodes(&plan)?;
    let first = plimsoll_engine::first_requests(&plan, SHOWN)?;
    let Traffic { origin, routes, scenarios, .. } = &plan.traffic;
    let of = |count: usize, what: &str| if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") };
    let drawn =
        if routes.len().min(scenarios.len().max(1)) > 1 || scenarios.len() > 1 { ", drawn by weight" } else { "" };
    let asked = of(routes.len(), "request");
    let mut text = match scenarios.len() {
        0 => format!("{asked} at {origin}{drawn}\n"),
        count => format!("{} of {asked} at {origin}{drawn}\n", of(count, "scenario")),
    };
    match (is_grpc, &schema) {
        (true, Some(_)) => text.push_str("calls over HTTP/2; their bodies, shown as JSON, fit the messages that they are sent as\n"),
        (true, None) => text.push_str(
            "calls over HTTP/2; their bodies, shown as JSON, are sent as messages (whether they fit: --proto or --descriptor-set)\n",
        ),
        (false, _) if http == HttpChoice::Auto && origin.is_secure() => {
            text.push_str("over HTTP/2 where the server takes it, else HTTP/1.1 as shown (--http 2 shows the other)\n");
        }
        (false, _) => {}
    }
    let weights: Vec<(u32, &str)> = match scenarios.is_empty() {
        true => routes.iter().map(|route| (route.weight, route.label.as_str())).collect(),
        false => scenarios.iter().map(|scenario| (scenario.weight, scenario.name.as_str())).collect(),
    };
    let around = &plan.traffic.around;
    let names = |asked: &[OnceAsked]| -> Vec<String> {
        let name = |asked: &OnceAsked| {
            let times = if asked.times > 1 { format!(" ({} times)", asked.times) } else { String::new() };
            format!("{}{times}", visible(&asked.route.label))
        };
        asked.iter().map(name).collect()
    };
    let mut beside = String::new();
    for (when, asked) in [("before each load", &around.setup), ("after it", &around.cleanup)] {
        if !asked.is_empty() {
            let _ = writeln!(beside, "{when}: {}", names(asked).join(", "));
        }
    }
    let total: u64 = weights.iter().map(|(weight, _)| u64::from(*weight)).sum();
    for (weight, name) in weights {
        let share = 100.0 * f64::from(weight) / total as f64;
        let _ = writeln!(text, "{share:>6.1} %  {}", visible(name));
    }
    text.push_str(&beside);
    let _ = writeln!(text, "\nthe first {SHOWN}, with seed {}:", args.seed);
    for (number, asked) in first.iter().enumerate() {
        let name = visible(&routes[usize::from(asked.route)].label);
        let mut along = Vec::new();
        if !scenarios.is_empty() {
            along.push(format!("session {}", asked.arrival + 1));
        }
        if asked.wait_ns > 0 {
            along.push(format!("after {}", format::duration(asked.wait_ns as f64)));
        }
        let along = if along.is_empty() { String::new() } else { format!(" ({})", along.join(", ")) };
        let _ = writeln!(text, "\n{}. {name}{along}", number + 1);
        shown(&asked.bytes, is_grpc).iter().for_each(|line| _ = writeln!(text, "   {line}"));
    }
    print(&text);
    Ok(exit::DONE)
}

/// What a file asks, of `target` or where it says itself.
pub fn plan_of(
    file: &TrafficFile,
    name: &str,
    target: Option<String>,
    http: Option<&str>,
) -> Result<(Plan, MixTerms<String>), Failure> {
    let address = target.or_else(|| file.base().map(str::to_owned)).unwrap_or_else(|| ANYWHERE.to_owned());
    let mix = MixTerms {
        file: name.to_owned(),
        bases: vec![address],
        headers: Vec::new(),
        ok_status: StatusSet::default(),
        ok_grpc: None,
        in_turn: false,
        timeout_ns: 30_000_000_000,
    };
    let (traffic, _) = plan_from_args::asked_of(file, &mix, Redact::Secrets)?.remove(0);
    let load = Load::new(LoadShape::Closed { users: Curve::constant(1.0) });
    let http = plan_from_args::http_choice(http, &traffic.origin)?;
    Ok((Plan { traffic, load, carriage: Carriage { http, ..Carriage::tcp(vec![]) } }, mix))
}

/// The lines of a request, without fields that every request has; of a call without the length of what its body becomes.
fn shown(request: &[u8], is_call: bool) -> Vec<String> {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(request.len());
    let head = String::from_utf8_lossy(&request[..end]);
    let told = |line: &&str| {
        let line = line.to_ascii_lowercase();
        let is_usual = line.starts_with("user-agent: plimsoll/") || line == "accept: */*";
        let of_body = is_call && line.starts_with("content-length:");
        !(is_usual || of_body)
    };
    let mut lines: Vec<String> = head.split("\r\n").filter(told).map(|line| visible(line).into_owned()).collect();
    let body = request.get(end + 4..).unwrap_or_default();
    if body.is_empty() {
        return lines;
    }
    match std::str::from_utf8(body) {
        Ok(text) => {
            let start: String = text.chars().take(BODY_CHARS_MAX).collect();
            lines.extend(start.lines().map(|line| visible(line).into_owned()));
            if start.len() < text.len() {
                lines.push(format!("... ({} bytes in all)", body.len()));
            }
        }
        Err(_) => lines.push(format!("({} bytes that are no text)", body.len())),
    }
    lines
}
