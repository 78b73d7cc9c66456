//! Replays an access log as a load. A [`RequestCollector`] collects the requests of the log, and
//! [`LogRequests::to_replay`] schedules them.
//!
//! All requests are in memory, at 24 bytes for each request plus the distinct paths, and are sorted
//! after the last line is read. Because requests are sorted in memory, the lines of the log may be
//! in any order, but the number of requests is limited. A log has no bodies, few header fields and
//! no conditional requests, so a replay cannot reproduce bodies, most header fields and conditional
//! requests. Not here: reading lines, and executing the load.

mod logged;
mod scaled;
mod sendable;
mod sessions;
mod spread;

use crate::access_log::Entry;
use crate::survey::endpoints::Endpoints;
use crate::survey::hashing::{HashKeyMap, hash};
use crate::survey::{PathReplacement, TrafficEndpoint};
pub(crate) use logged::{LoggedRequest, session_ranges};
use plimsoll_model::traffic::RouteChoice;
use plimsoll_model::units::SECOND;
use plimsoll_model::{
    ArrivalTimes, Origin, RedactionLevel, ReplayFacts, Request, RequestList, RequestListEntry, RequestTargets, Route,
    RouteNumber, SetupTeardown, StatusSet, Traffic, redact,
};
use std::collections::BTreeMap;
use std::sync::Arc;

pub use logged::ReplayTiming;

/// The largest number of requests in memory. The requests take at most 768 MiB while a log is read.
pub const REQUESTS_MAX: usize = 32 << 20;
/// The largest total size of distinct paths, bytes (1 GiB).
pub const TARGETS_BYTES_MAX: usize = 1 << 30;
/// The largest number of endpoints with separate figures. All endpoints beyond the first
/// `ENDPOINTS_MAX` share one route for each HTTP method.
const ENDPOINTS_MAX: usize = 500;
/// The largest number of reasons for skipped requests that are counted separately. Each skipped
/// HTTP method is a separate reason. `METHODS_MAX` also limits the distinct methods of requests to
/// endpoints beyond `ENDPOINTS_MAX`.
const METHODS_MAX: usize = 64;
/// The length of the shortest load, ns (1 ms).
const LENGTH_NS_MIN: u64 = 1_000_000;
/// The length of the longest load, ns (30 days).
const LENGTH_NS_MAX: u64 = 30 * 86_400 * SECOND;

/// Selects the requests of a log to replay.
pub struct ReplayChoice<'f> {
    /// A function that replaces parts of a path before the path's template is built, in addition to
    /// the built-in rules.
    pub fold: Option<&'f PathReplacement<'f>>,
    /// A function that returns whether to replay a request, which is given as `GET /path?query`.
    pub wanted: &'f dyn Fn(&str) -> bool,
    /// Whether to replay requests with methods other than GET and HEAD, which may change data on
    /// the server.
    pub is_unsafe_included: bool,
    /// A prefix that is added to every path.
    pub prefix: &'f str,
}

/// A route of the replay: method, path template, and the path number of an example request.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ReplayRoute {
    method: String,
    template: String,
    example: u32,
}

/// Collects the requests of a log line by line.
pub struct RequestCollector<'f> {
    choice: ReplayChoice<'f>,
    endpoints: Endpoints,
    /// The route of each endpoint, by endpoint number.
    route_by_endpoint: Vec<Option<RouteNumber>>,
    /// The routes that endpoints beyond `ENDPOINTS_MAX` share, by HTTP method.
    routes_beyond_limit: BTreeMap<String, RouteNumber>,
    routes: Vec<ReplayRoute>,
    targets: RequestTargets,
    numbers: HashKeyMap<u32>,
    requests: Vec<LoggedRequest>,
    skip_counts: BTreeMap<String, u64>,
    resolution_ns: u64,
    is_full: bool,
    /// A reusable buffer for the method and path of the current request.
    text: String,
}

/// All collected requests of a log, in order of time.
#[derive(Debug, Clone)]
pub struct LogRequests {
    routes: Vec<ReplayRoute>,
    targets: RequestTargets,
    requests: Vec<LoggedRequest>,
    skip_counts: BTreeMap<String, u64>,
    resolution_ns: u64,
}

/// The load that replays a log. The load sends the listed requests at fixed start times, or draws
/// random sessions of these requests.
#[derive(Debug, Clone)]
pub struct Replay {
    routes: Vec<ReplayRoute>,
    request_list: Arc<RequestList>,
    /// The start time of each request. `None` if the load draws random sessions of the log.
    pub arrivals: Option<ArrivalTimes>,
    /// The length of the load, ns. If the load draws random sessions, `length_ns` is the length of
    /// the log.
    pub length_ns: u64,
}

/// The reason under which a log line without an HTTP method is counted as skipped.
const NO_METHOD: &str = "no method";

/// The reason why a log cannot become a load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The log has no request to replay, because the log is empty, or all its requests were
    /// skipped.
    #[error("no request of the log remains to be sent")]
    NoRequests,
    /// The log has more than [`REQUESTS_MAX`] requests, or too many paths or routes.
    #[error("the log has more than {} million requests, or paths of more than 1 GiB: more than plimsoll keeps in memory", REQUESTS_MAX / 1_000_000)]
    TooManyRequests,
    /// The replay would be longer than 30 days.
    #[error("the replay would last {days} days, longer than the maximum of 30 days")]
    TooLong {
        /// The length of the replay, days.
        days: u64,
    },
}

impl<'f> RequestCollector<'f> {
    /// Creates an empty collector.
    pub fn new(choice: ReplayChoice<'f>) -> RequestCollector<'f> {
        RequestCollector {
            choice,
            endpoints: Endpoints::new(ENDPOINTS_MAX),
            route_by_endpoint: Vec::new(),
            routes_beyond_limit: BTreeMap::new(),
            routes: Vec::new(),
            targets: RequestTargets::default(),
            numbers: HashKeyMap::default(),
            requests: Vec::new(),
            skip_counts: BTreeMap::new(),
            resolution_ns: SECOND,
            is_full: false,
            text: String::new(),
        }
    }

    /// Adds a request, or counts the request as skipped.
    pub fn add(&mut self, entry: &Entry) {
        while !entry.stamp_ns.is_multiple_of(self.resolution_ns) {
            self.resolution_ns /= 10;
        }
        if entry.method.is_empty() && entry.target.starts_with(b"/") {
            return self.count_skipped(NO_METHOD);
        }
        let Some(method) = sendable::sendable_method(entry.method) else { return self.count_skipped("malformed") };
        if !self.choice.is_unsafe_included && !matches!(&*method, "GET" | "HEAD") {
            return self.count_skipped(&method);
        }
        self.text.clear();
        self.text.extend([&*method, " "]);
        if !sendable::append_encoded_target(entry.target, &mut self.text) {
            return self.count_skipped("malformed");
        }
        if !(self.choice.wanted)(&self.text) {
            return self.count_skipped("pattern");
        }
        if self.requests.len() >= REQUESTS_MAX || self.targets.text_bytes() >= TARGETS_BYTES_MAX {
            self.is_full = true;
            return;
        }
        let (Some(target), Some(route)) =
            (self.find_or_add_target(method.len() + 1), self.find_or_add_route(&method, entry))
        else {
            self.is_full = true;
            return;
        };
        self.requests.push(LoggedRequest {
            start_ns: entry.start_ns,
            target,
            visitor: visitor_hash(entry),
            duration_us: u32::try_from(entry.duration_ns.unwrap_or(0) / 1000).unwrap_or(u32::MAX),
            route,
            status: entry.status.filter(|status| comes_from_server(*status)).unwrap_or(0),
        });
        let example = &mut self.routes[usize::from(route)].example;
        if *example == u32::MAX {
            *example = target;
        }
    }

    /// Counts a skipped request by its reason.
    fn count_skipped(&mut self, why: &str) {
        if self.skip_counts.len() >= METHODS_MAX && !self.skip_counts.contains_key(why) {
            return self.count_skipped_other_method();
        }
        match self.skip_counts.get_mut(why) {
            Some(count) => *count += 1,
            None => drop(self.skip_counts.insert(why.to_owned(), 1)),
        }
    }

    #[cold]
    fn count_skipped_other_method(&mut self) {
        *self.skip_counts.entry("other methods".to_owned()).or_default() += 1;
    }

    /// Returns the number of the path that begins at offset `from` of the buffer `text`. `None` if
    /// the list of paths is full.
    fn find_or_add_target(&mut self, from: usize) -> Option<u32> {
        let target = &self.text[from..];
        let key = hash(target.as_bytes(), 5);
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        let number = match self.choice.prefix {
            "" => self.targets.push(target),
            prefix => self.targets.push(&format!("{prefix}{target}")),
        }?;
        self.numbers.insert(key, number);
        Some(number)
    }

    /// Returns the route of a request. `None` if there are too many routes.
    fn find_or_add_route(&mut self, method: &str, entry: &Entry) -> Option<RouteNumber> {
        let (number, _) = self.endpoints.add(method.as_bytes(), entry.path(), self.choice.fold);
        let Some(TrafficEndpoint { template, .. }) = self.endpoints.all.get(number as usize) else {
            if let Some(route) = self.routes_beyond_limit.get(method) {
                return Some(*route);
            }
            if self.routes_beyond_limit.len() >= METHODS_MAX {
                return None;
            }
            let route = push_route(&mut self.routes, method, "(other paths)");
            self.routes_beyond_limit.insert(method.to_owned(), route);
            return Some(route);
        };
        if self.route_by_endpoint.len() <= number as usize {
            self.route_by_endpoint.resize(number as usize + 1, None);
        }
        let routes = &mut self.routes;
        Some(*self.route_by_endpoint[number as usize].get_or_insert_with(|| push_route(routes, method, template)))
    }

    /// Returns the collected requests in order of time, or an error if the log had too many
    /// requests, paths or routes.
    pub fn finish(self) -> Result<LogRequests, ReplayError> {
        let RequestCollector { routes, targets, mut requests, skip_counts, resolution_ns, is_full, .. } = self;
        if is_full {
            return Err(ReplayError::TooManyRequests);
        }
        // The sort is stable: requests with equal timestamps keep the order of their lines.
        requests.sort_by_key(|request| request.start_ns);
        Ok(LogRequests { routes, targets, requests, skip_counts, resolution_ns })
    }
}

fn push_route(routes: &mut Vec<ReplayRoute>, method: &str, template: &str) -> RouteNumber {
    routes.push(ReplayRoute { method: method.to_owned(), template: template.to_owned(), example: u32::MAX });
    (routes.len() - 1) as RouteNumber
}

/// Returns a 32-bit hash that identifies the visitor. The hash is computed from the session if the
/// log has sessions, otherwise from client and user agent. The statistics in [`crate::survey`] also
/// identify visitors by session, or by client and user agent.
fn visitor_hash(entry: &Entry) -> u32 {
    let whole = match entry.session.is_empty() {
        true => hash(entry.user_agent, hash(entry.client, 3)),
        false => hash(entry.session, 4),
    };
    (whole >> 32) as u32
}

/// Returns whether the server sent this status. 499 (nginx) and 460 (AWS) mean that the client
/// closed the connection before the response.
fn comes_from_server(status: u16) -> bool {
    (100..600).contains(&status) && !matches!(status, 499 | 460)
}

impl LogRequests {
    /// Returns the number of lines that were skipped because of a missing method.
    pub fn lines_without_method(&self) -> u64 {
        self.skip_counts.get(NO_METHOD).copied().unwrap_or(0)
    }

    /// Returns the number of requests to replay.
    pub fn request_count(&self) -> usize {
        self.requests.len()
    }

    /// Returns the method and path template of each endpoint, in order of endpoint numbers.
    pub(crate) fn methods_and_templates(&self) -> impl Iterator<Item = (&str, &str)> {
        self.routes.iter().map(|route| (route.method.as_str(), route.template.as_str()))
    }

    /// Returns the resolution of the log's timestamps, ns.
    pub(crate) fn resolution_ns(&self) -> u64 {
        self.resolution_ns
    }

    /// Returns the number of skipped requests by reason.
    pub(crate) fn skip_counts(&self) -> &BTreeMap<String, u64> {
        &self.skip_counts
    }

    /// Returns four values: the paths, the requests in order of time, the first arrival, and the
    /// length of the log in ns. If the timestamps are whole seconds, each request is moved to a
    /// random time within its second. Returns `None` if there are no requests.
    pub(crate) fn into_time_order(self, seed: u64) -> Option<(RequestTargets, Vec<LoggedRequest>, u64, u64)> {
        let LogRequests { targets, mut requests, resolution_ns, .. } = self;
        let (first_ns, last_ns) = (requests.first()?.start_ns, requests.last()?.start_ns);
        if resolution_ns >= SECOND {
            spread::spread_timestamps(&mut requests, resolution_ns, seed);
        }
        Some((targets, requests, first_ns, (last_ns - first_ns).saturating_add(resolution_ns)))
    }

    /// Builds the load that replays the requests at their logged times, changed by `timing`.
    ///
    /// # Errors
    /// Returns an error if no request remains, if the load is longer than 30 days, or if the scaled
    /// load has more than [`REQUESTS_MAX`] requests.
    pub fn to_replay(self, timing: &ReplayTiming) -> Result<Replay, ReplayError> {
        let LogRequests { routes, targets, mut requests, skip_counts, resolution_ns } = self;
        let (Some(first), Some(last)) = (requests.first(), requests.last()) else {
            return Err(ReplayError::NoRequests);
        };
        let (first_ns, span_ns) = (first.start_ns, (last.start_ns - first.start_ns).saturating_add(resolution_ns));
        let has_whole_seconds = resolution_ns >= SECOND;
        if has_whole_seconds {
            spread::spread_timestamps(&mut requests, resolution_ns, timing.seed);
        }
        if timing.scale_milli != 1000 {
            let room = REQUESTS_MAX;
            requests = scaled::scale_sessions(requests, timing, (first_ns, span_ns), room)
                .ok_or(ReplayError::TooManyRequests)?;
        }
        let at_speed =
            |ns: u64| u64::try_from(u128::from(ns) * 1000 / u128::from(timing.speed_milli.max(1))).unwrap_or(u64::MAX);
        let length_ns = at_speed(span_ns).min(timing.length_ns.unwrap_or(u64::MAX)).max(LENGTH_NS_MIN);
        if length_ns > LENGTH_NS_MAX {
            return Err(ReplayError::TooLong { days: length_ns.div_ceil(86_400 * SECOND) });
        }
        let mut starts_ns: Vec<u64> = requests.iter().map(|request| at_speed(request.start_ns - first_ns)).collect();
        let kept = starts_ns.partition_point(|start| *start < length_ns);
        starts_ns.truncate(kept);
        requests.truncate(kept);
        let entries: Vec<RequestListEntry> = requests.iter().map(listed_request).collect();
        let ReplayTiming { speed_milli, scale_milli, lines, .. } = *timing;
        let facts = ReplayFacts { speed_milli, scale_milli, lines, skip_counts, has_whole_seconds, sessions: None };
        let targets = Arc::new(targets);
        Ok(Replay {
            routes,
            request_list: Arc::new(RequestList { targets, entries, sessions: None, facts }),
            arrivals: Some(ArrivalTimes::new(starts_ns, 0, length_ns).ok_or(ReplayError::NoRequests)?),
            length_ns,
        })
    }

    /// Builds a load that draws random sessions of the log, at any session rate. `lines` is the
    /// number of log lines read.
    ///
    /// # Errors
    /// Returns an error if the log has no requests, or too many requests.
    pub fn to_session_replay(self, seed: u64, lines: u64) -> Result<Replay, ReplayError> {
        let (routes, skip_counts, resolution_ns) = (self.routes.clone(), self.skip_counts.clone(), self.resolution_ns);
        let (targets, requests, _, span_ns) = self.into_time_order(seed).ok_or(ReplayError::NoRequests)?;
        let (sessions, facts) = sessions::group_sessions(&requests, span_ns).ok_or(ReplayError::TooManyRequests)?;
        let has_whole_seconds = resolution_ns >= SECOND;
        let drawn_from = Some(facts);
        let facts = ReplayFacts {
            speed_milli: 1000,
            scale_milli: 1000,
            lines,
            skip_counts,
            has_whole_seconds,
            sessions: drawn_from,
        };
        let entries = requests.iter().map(listed_request).collect();
        let targets = Arc::new(targets);
        let listed = Arc::new(RequestList { targets, entries, sessions: Some(sessions), facts });
        Ok(Replay { routes, request_list: listed, arrivals: None, length_ns: span_ns })
    }
}

/// Converts a request to an entry of the load plan's request list.
fn listed_request(request: &LoggedRequest) -> RequestListEntry {
    let LoggedRequest { target, route, status, .. } = *request;
    RequestListEntry { target, route, status }
}

/// The request settings that a log does not contain.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayDefaults {
    /// The header fields of every request.
    pub headers: Vec<(String, String)>,
    /// The response statuses that count as success.
    pub ok_status: StatusSet,
    /// The timeout of a request, ns.
    pub timeout_ns: u64,
}

impl Replay {
    /// Returns the number of requests in the list.
    pub fn request_count(&self) -> u64 {
        self.request_list.entries.len() as u64
    }

    /// Returns the number of endpoints.
    pub fn endpoint_count(&self) -> usize {
        self.routes.len()
    }

    /// Builds the traffic of the replay for the server at `origin`.
    pub fn traffic(&self, origin: Origin, defaults: &ReplayDefaults, redact: RedactionLevel) -> Traffic {
        let route = |route: &ReplayRoute| {
            let request = Request {
                method: route.method.clone(),
                target: self.request_list.targets.get(route.example).to_owned(),
                headers: defaults.headers.clone(),
                body: Vec::new(),
            };
            Route {
                label: format!("{} {}", route.method, redact::redact_path(&route.template)),
                ok_status: defaults.ok_status.clone(),
                timeout_ns: defaults.timeout_ns,
                ..Route::new(request)
            }
        };
        let is_safe = |route: &ReplayRoute| matches!(route.method.as_str(), "GET" | "HEAD");
        Traffic {
            origin,
            routes: self.routes.iter().map(route).collect(),
            choice: RouteChoice::RequestList,
            scenarios: Vec::new(),
            preflight: self.routes.iter().position(is_safe).map(|number| number as RouteNumber),
            data: Vec::new(),
            variables: Vec::new(),
            setup_teardown: SetupTeardown::default(),
            request_list: Some(Arc::clone(&self.request_list)),
            redact,
        }
    }
}
