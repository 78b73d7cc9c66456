//! Tests the conversion of log lines to a load: the requests, their times, and the skipped lines.
//! No line may cause a panic.

use plimsoll_logs::access_log::{Format, LineBuffers, find_format};
use plimsoll_logs::modelling::{ModelOptions, TrafficModel};
use plimsoll_logs::replay::{Replay, ReplayChoice, ReplayDefaults, ReplayError, ReplayTiming, RequestCollector};
use plimsoll_model::{Origin, RedactionLevel, RequestList, StatusSet, Traffic};
use proptest::prelude::*;

const SECOND_NS: u64 = 1_000_000_000;
const TIMING: ReplayTiming = ReplayTiming { seed: 7, speed_milli: 1000, scale_milli: 1000, length_ns: None, lines: 0 };

/// The options of a replay that the tests change; all other options have default values.
struct ReplayTestOptions<'a> {
    with_unsafe: bool,
    prefix: &'a str,
    skip: &'a str,
}

const REPLAY_ALL_REQUESTS: ReplayTestOptions = ReplayTestOptions { with_unsafe: true, prefix: "", skip: "nothing" };

fn detect_log_format(lines: &[&[u8]]) -> Format {
    find_format(lines, None).expect("a known format")
}

fn replay_from_log(text: &str, chosen: &ReplayTestOptions, timing: &ReplayTiming) -> Result<Replay, ReplayError> {
    let lines: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
    let (format, mut buffer) = (detect_log_format(&lines), LineBuffers::default());
    let wanted = |request: &str| !request.contains(chosen.skip);
    let ReplayTestOptions { with_unsafe, prefix, .. } = *chosen;
    let mut gathering =
        RequestCollector::new(ReplayChoice { fold: None, wanted: &wanted, is_unsafe_included: with_unsafe, prefix });
    for line in lines {
        gathering.add(&format.parse(line, &mut buffer).expect("understood"));
    }
    gathering.finish()?.to_replay(timing)
}

fn traffic(replay: &Replay) -> Traffic {
    let origin = Origin { scheme: "http".into(), host: "h".into(), port: 80 };
    let defaults = ReplayDefaults { headers: vec![], ok_status: StatusSet::default(), timeout_ns: 1 };
    replay.traffic(origin, &defaults, RedactionLevel::Secrets)
}

/// Returns the requests of a replay in order, as `GET /path?query 200`.
fn replayed_request_lines(replay: &Replay) -> Vec<String> {
    let traffic = traffic(replay);
    let RequestList { targets, entries, .. } = traffic.request_list.as_deref().expect("a list");
    let text = |entry: &plimsoll_model::RequestListEntry| {
        let method = &traffic.routes[usize::from(entry.route)].request.method;
        format!("{method} {} {}", targets.get(entry.target), entry.status)
    };
    entries.iter().map(text).collect()
}

/// Returns lines of the combined log format with these seconds, requests and statuses.
fn combined_log_lines(lines: &[(u64, &str, u16)]) -> String {
    let line = |(second, request, status): &(u64, &str, u16)| {
        let (minute, second) = (second / 60, second % 60);
        format!(
            "10.0.0.1 - - [22/Nov/2026:10:{minute:02}:{second:02} +0000] \"{request} HTTP/1.1\" {status} 5 \"-\" \"agent\"\n"
        )
    };
    lines.iter().map(line).collect()
}

#[test]
fn the_rate_of_a_mix_counts_every_request() {
    // One request a second. The requests 50 to 53 are one visit, and each other request is a visit.
    let line = |second: u64| {
        let client = if (50..54).contains(&second) { 50 } else { second };
        let (minute, second) = (second / 60, second % 60);
        format!(
            "10.0.0.{client} - - [22/Nov/2026:10:{minute:02}:{second:02} +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"agent\"\n"
        )
    };
    let text: String = (0..100).map(line).collect();
    let lines: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
    let (format, mut buffer) = (detect_log_format(&lines), LineBuffers::default());
    let wanted = |_: &str| true;
    let choice = ReplayChoice { fold: None, wanted: &wanted, is_unsafe_included: true, prefix: "" };
    let mut gathering = RequestCollector::new(choice);
    lines.iter().for_each(|line| gathering.add(&format.parse(line, &mut buffer).expect("understood")));
    let options = ModelOptions { base: "http://h", folder: "f", comment_lines: &[], keep_keys: false };
    let model = TrafficModel::fit(gathering.finish().expect("requests"), 7, &options).expect("a model");
    let rate = model.visit_arrivals.rate.max();
    assert!(model.facts.scenarios == 0 && (0.99..1.02).contains(&rate), "{rate}");
}

#[test]
fn a_log_is_replayed_as_recorded() {
    let text = combined_log_lines(&[
        (2, "GET /items/7?q=a b", 200),
        (0, "GET /items/5", 404),
        (1, "HEAD /items/5", 499),
        (1, "POST /orders", 201),
        (3, "GET /items/5", 200),
    ]);
    let whole = replay_from_log(&text, &REPLAY_ALL_REQUESTS, &TIMING).expect("a load");
    let order =
        ["GET /items/5 404", "HEAD /items/5 0", "POST /orders 201", "GET /items/7?q=a%20b 200", "GET /items/5 200"];
    assert_eq!(replayed_request_lines(&whole), order);
    let labels: Vec<String> = traffic(&whole).routes.into_iter().map(|route| route.label).collect();
    assert_eq!(labels, ["GET /items/{id}", "HEAD /items/{id}", "POST /orders"]);
    // The timestamps span 4 s, with at least one request in each second.
    assert_eq!(whole.length_ns, 4 * SECOND_NS);
    let facts = &traffic(&whole).request_list.expect("a list").facts.clone();
    assert!(facts.has_whole_seconds && facts.skip_counts.is_empty(), "{facts:?}");

    let safe =
        replay_from_log(&text, &ReplayTestOptions { with_unsafe: false, prefix: "/v2", skip: "q=a%20b" }, &TIMING)
            .expect("a load");
    assert_eq!(replayed_request_lines(&safe), ["GET /v2/items/5 404", "HEAD /v2/items/5 0", "GET /v2/items/5 200"]);
    let left_out: Vec<(String, u64)> =
        traffic(&safe).request_list.expect("a list").facts.skip_counts.clone().into_iter().collect();
    assert_eq!(left_out, [("POST".to_owned(), 1), ("pattern".to_owned(), 1)]);
    // The label of a route does not show the path prefix that the replay adds to each request.
    assert_eq!(traffic(&safe).routes[0].label, "GET /items/{id}");
}

#[test]
fn a_replay_can_run_faster_and_end_early() {
    let text: String = (0..100)
        .map(|n| {
            let (second, milli) = (n / 10, n % 10 * 100);
            format!("{{\"ts\":\"2026-11-22T10:00:{second:02}.{milli:03}Z\",\"method\":\"GET\",\"path\":\"/{n}\",\"status\":200}}\n")
        })
        .collect();
    let lines: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
    let format =
        Format::from_json_mapping("time=.ts,method=.method,path=.path,status=.status", None).expect("a mapping");
    let load = |timing: &ReplayTiming| {
        let (wanted, mut buffer) = (|_: &str| true, LineBuffers::default());
        let mut gathering =
            RequestCollector::new(ReplayChoice { fold: None, wanted: &wanted, is_unsafe_included: false, prefix: "" });
        lines.iter().for_each(|line| gathering.add(&format.parse(line, &mut buffer).expect("understood")));
        gathering.finish().and_then(|gathered| gathered.to_replay(timing)).expect("a load")
    };
    for (speed_milli, length_ns, count, last_ns, length) in [
        (1000, None, 100, 9_900_000_000, 10 * SECOND_NS),
        (2000, None, 100, 4_950_000_000, 5 * SECOND_NS),
        (500, None, 100, 19_800_000_000, 20 * SECOND_NS),
        (1000, Some(SECOND_NS), 10, 900_000_000, SECOND_NS),
        (2000, Some(SECOND_NS), 20, 950_000_000, SECOND_NS),
    ] {
        let load = load(&ReplayTiming { speed_milli, length_ns, ..TIMING });
        let starts = load.arrivals.as_ref().expect("moments").starts_ns();
        assert_eq!(
            (load.arrivals.as_ref().expect("moments").count(), starts[0], *starts.last().expect("some")),
            (count, 0, last_ns)
        );
        assert_eq!(load.length_ns, length, "{speed_milli} {length_ns:?}");
        assert_eq!(replayed_request_lines(&load).len() as u64, count);
    }
    // The replay does not spread requests within a second, because the timestamps of the log are
    // finer than a second.
    assert!(!traffic(&load(&TIMING)).request_list.expect("a list").facts.has_whole_seconds);
    // A replay with twice the visitors sends the only session of this log twice.
    assert_eq!(load(&ReplayTiming { scale_milli: 2000, ..TIMING }).arrivals.as_ref().expect("moments").count(), 200);
}

#[test]
fn a_replay_without_requests_is_refused() {
    let only = |request: &str| combined_log_lines(&[(0, request, 200)]);
    for (text, chosen, expect) in [
        (only("POST /a"), ReplayTestOptions { with_unsafe: false, ..REPLAY_ALL_REQUESTS }, ReplayError::NoRequests),
        (only("GET /nothing"), REPLAY_ALL_REQUESTS, ReplayError::NoRequests),
        (only("CONNECT h:443"), REPLAY_ALL_REQUESTS, ReplayError::NoRequests),
    ] {
        assert_eq!(replay_from_log(&text, &chosen, &TIMING).err(), Some(expect), "{text}");
    }
    let years = combined_log_lines(&[(0, "GET /a", 200), (0, "GET /b", 200)]).replacen("2026", "2016", 1);
    assert!(matches!(
        replay_from_log(&years, &REPLAY_ALL_REQUESTS, &TIMING),
        Err(ReplayError::TooLong { days: 3652..=3654 })
    ));
    // The whole log is too long for a load, but its first second is short enough.
    let beginning = ReplayTiming { length_ns: Some(SECOND_NS), ..TIMING };
    assert_eq!(
        replayed_request_lines(&replay_from_log(&years, &REPLAY_ALL_REQUESTS, &beginning).expect("a load")),
        ["GET /a 200"]
    );
}

#[test]
fn endpoints_beyond_the_limit_share_figures() {
    let word =
        |n: u32| format!("GET /{}", (0..4).map(|at| char::from(b'a' + (n >> (at * 4) & 15) as u8)).collect::<String>());
    let requests: Vec<String> = (0..2000).map(word).collect();
    let lines: Vec<(u64, &str, u16)> = requests.iter().map(|request| (0, request.as_str(), 200)).collect();
    let load = replay_from_log(&combined_log_lines(&lines), &REPLAY_ALL_REQUESTS, &TIMING).expect("a load");
    let routes = traffic(&load).routes;
    assert_eq!((routes.len(), routes[500].label.as_str()), (501, "GET (other paths)"));
    assert_eq!(replayed_request_lines(&load).len(), 2000);
}

proptest! {
    /// Checks that any log lines become a load or are rejected, without a panic.
    #[test]
    fn any_log_lines_make_a_load_or_are_refused(
        lines in prop::collection::vec((any::<u16>(), "[ -~]{0,20}", any::<u16>()), 1..40),
        seed in any::<u64>(), speed_milli in 1u64..1_000_000, scale_milli in 1u64..20_000,
        length_ns in prop::option::of(any::<u64>()),
    ) {
        let requests: Vec<(u64, String, u16)> = lines
            .iter()
            .map(|(second, path, status)| (u64::from(second % 3600), format!("GET /{}", path.replace('"', "")), status % 1000))
            .collect();
        let lines: Vec<(u64, &str, u16)> = requests.iter().map(|(at, text, status)| (*at, text.as_str(), *status)).collect();
        let text = combined_log_lines(&lines);
        let parsed: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
        let Ok(format) = find_format(&parsed, None) else { return Ok(()) };
        let (wanted, mut buffer) = (|_: &str| true, LineBuffers::default());
        let mut gathering = RequestCollector::new(ReplayChoice { fold: None, wanted: &wanted, is_unsafe_included: false, prefix: "" });
        for line in parsed {
            if let Some(entry) = format.parse(line, &mut buffer) {
                gathering.add(&entry);
            }
        }
        let timing = ReplayTiming { seed, speed_milli, scale_milli, length_ns, lines: 0 };
        let gathered = gathering.finish();
        if let Ok(load) = gathered.clone().and_then(|gathered| gathered.to_session_replay(seed, 0)) {
            let traffic = traffic(&load);
            let listed = traffic.request_list.as_deref().expect("a list");
            prop_assert!(listed.is_consistent(traffic.routes.len()) && listed.sessions.is_some() && load.arrivals.is_none());
            let facts = listed.facts.sessions.expect("facts");
            prop_assert!(facts.sessions > 0 && facts.busiest_second_requests <= facts.busiest_minute_requests);
            prop_assert!(facts.busiest_minute_requests <= listed.entries.len() as u64);
        }
        if let Ok(load) = gathered.and_then(|gathered| gathered.to_replay(&timing)) {
            let traffic = traffic(&load);
            let listed = traffic.request_list.as_deref().expect("a list");
            prop_assert!(listed.is_consistent(traffic.routes.len()));
            prop_assert_eq!(listed.entries.len() as u64, load.arrivals.as_ref().expect("moments").count());
            prop_assert!(load.arrivals.as_ref().expect("moments").starts_ns().iter().all(|start| *start < load.length_ns));
        }
    }
}
