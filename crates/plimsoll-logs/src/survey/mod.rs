//! Computes statistics over the requests of an access log: rates and peaks, endpoints, clients,
//! sessions, popularity, and sizes. A [`Survey`] reads [`Entry`]s, roughly in order of time, in
//! bounded memory. The [`LogFigures`] state where the memory bound makes a figure inexact.
//!
//! Not here: reading the entries, and presenting the figures.

pub(crate) mod endpoints;
mod frequent;
pub(crate) mod hashing;
mod popularity;
mod sessions;
pub(crate) mod template;
mod timeline;

use crate::access_log::{Entry, TimestampMeaning};
use endpoints::Endpoints;
use frequent::FrequentItemCounter;
use hashing::hash;
use plimsoll_model::Histogram;
use plimsoll_model::units::SECOND;
use sessions::Sessions;
use std::collections::BTreeMap;
use timeline::Timeline;

pub use endpoints::{PathReplacement, TrafficEndpoint};
pub use popularity::zipf_exponent;
pub use sessions::SESSION_GAP_NS;
pub use timeline::DISORDER_WINDOW_S;

/// The largest number of distinct endpoints. Requests to further endpoints are counted together.
const ENDPOINTS_MAX: usize = 10_000;
/// The largest number of distinct methods with separate counts.
const METHODS_MAX: usize = 100;
/// The largest number of distinct clients that are counted at a time. If a log has more clients,
/// rare clients are dropped.
const CLIENTS_MAX: usize = 1 << 17;
/// The largest number of distinct paths that are counted at a time, for popularity. If a log has
/// more paths, rare paths are dropped.
const COUNTED_PATHS_MAX: usize = 1 << 20;
/// The fewest complete time windows from which an index of dispersion is computed.
const WINDOWS_MIN: u64 = 5;
/// The largest number of resources whose counts are in the result; the counts of rarer resources
/// are omitted.
const RANKS_MAX: usize = 10_000;

/// The statistics of a log, while requests are still being added.
pub struct Survey<'f> {
    fold: Option<&'f PathReplacement<'f>>,
    requests: u64,
    first_ns: u64,
    last_ns: u64,
    resolution_ns: u64,
    requests_with_duration: u64,
    requests_without_arrival: u64,
    duration_ns: u128,
    endpoints: Endpoints,
    methods: BTreeMap<Vec<u8>, u64>,
    statuses: Vec<u64>,
    clients: FrequentItemCounter<Box<[u8]>>,
    ids: FrequentItemCounter<u32>,
    sessions: Sessions,
    timeline: Timeline,
    sizes: Histogram,
    durations: Histogram,
}

impl<'f> Survey<'f> {
    /// Creates an empty survey. `fold` replaces parts of each distinct path before the template of
    /// the path is built.
    pub fn new(fold: Option<&'f PathReplacement<'f>>) -> Survey<'f> {
        Survey {
            fold,
            requests: 0,
            first_ns: u64::MAX,
            last_ns: 0,
            resolution_ns: 60 * SECOND,
            requests_with_duration: 0,
            requests_without_arrival: 0,
            duration_ns: 0,
            endpoints: Endpoints::new(ENDPOINTS_MAX),
            methods: BTreeMap::new(),
            statuses: vec![0; 1000],
            clients: FrequentItemCounter::new(CLIENTS_MAX),
            ids: FrequentItemCounter::new(COUNTED_PATHS_MAX),
            sessions: Sessions::default(),
            timeline: Timeline::new(),
            sizes: Histogram::new(),
            durations: Histogram::new(),
        }
    }

    /// Adds one request. `stamp` states whether the timestamps of the log are the starts or the
    /// ends of requests.
    #[inline]
    pub fn add(&mut self, entry: &Entry, stamp: TimestampMeaning) {
        self.requests += 1;
        while !entry.stamp_ns.is_multiple_of(self.resolution_ns) {
            self.resolution_ns = if self.resolution_ns > SECOND { SECOND } else { self.resolution_ns / 10 };
        }
        self.first_ns = self.first_ns.min(entry.start_ns);
        self.last_ns = self.last_ns.max(entry.start_ns);
        match entry.duration_ns {
            Some(ns) => {
                self.requests_with_duration += 1;
                self.duration_ns += u128::from(ns);
                self.durations.record(ns);
            }
            None if stamp == TimestampMeaning::End => self.requests_without_arrival += 1,
            None => {}
        }
        self.timeline.add(entry.start_ns, entry.duration_ns);
        let (endpoint, path) = self.endpoints.add(entry.method, entry.path(), self.fold);
        if self.endpoints.all.get(endpoint as usize).is_some_and(|endpoint| endpoint.template.contains('{')) {
            self.ids.add(path, || endpoint);
        }
        if let Some(count) = self.methods.get_mut(entry.method) {
            *count += 1;
        } else {
            // Scanners send very many different invalid methods, so methods beyond the limit share
            // one count.
            let method = if self.methods.len() < METHODS_MAX { entry.method } else { b"other" };
            *self.methods.entry(method.to_vec()).or_default() += 1;
        }
        self.statuses[usize::from(entry.status.unwrap_or(0)).min(999)] += 1;
        if let Some(bytes) = entry.bytes {
            self.sizes.record(bytes);
        }
        if !entry.client.is_empty() {
            let client = hash(entry.client, 3);
            self.clients.add(client, || entry.client.into());
            let visitor =
                if entry.session.is_empty() { hash(entry.user_agent, client) } else { hash(entry.session, 4) };
            self.sessions.add(visitor, entry.start_ns, entry.end_ns());
        } else if !entry.session.is_empty() {
            self.sessions.add(hash(entry.session, 4), entry.start_ns, entry.end_ns());
        }
    }

    /// Computes the figures of all added requests.
    pub fn finish(mut self) -> LogFigures {
        self.timeline.finish();
        let span_ns = match self.requests {
            0 => 0,
            _ => self.last_ns - self.first_ns + self.resolution_ns,
        };
        let (second, minute) = self.timeline.peaks();
        let tells = |width_ns: u64| self.resolution_ns <= width_ns;
        let dispersion = self
            .timeline
            .windows()
            .map(|(width_ns, windows)| (width_ns, windows.dispersion(WINDOWS_MIN).filter(|_| tells(width_ns))));
        let mut ids: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for seen in self.ids.items() {
            ids.entry(seen.value).or_default().push(seen.count);
        }
        let popularity = ids.into_iter().max_by_key(|(number, counts)| (counts.len(), u32::MAX - number));
        let of_ids = popularity.map(|(number, counts)| {
            let endpoint = &self.endpoints.all[number as usize];
            let exact = self.ids.error_max() == 0;
            Popularity::from_counts(endpoint.method.clone(), endpoint.template.clone(), counts, exact)
        });
        let of_words = largest_group_of_named_items(&self.endpoints.all).map(|(method, parent, counts)| {
            Popularity::from_counts(
                method.to_owned(),
                format!("{parent}*"),
                counts,
                self.endpoints.requests_beyond_limit == 0,
            )
        });
        let popularity =
            of_ids.into_iter().chain(of_words).reduce(|one, other| if other.ids > one.ids { other } else { one });
        // If most lines of the log lack a duration, the number of requests in flight cannot be
        // computed.
        let timed = self.requests_with_duration * 2 > self.requests;
        let concurrency = timed.then(|| Concurrency {
            mean: self.duration_ns as f64 / span_ns as f64,
            max: tells(timeline::BIN_NS).then(|| self.timeline.in_flight_max()),
        });
        let (interval_s, points) = self.timeline.series();
        let intervals = points
            .into_iter()
            .map(|(arrivals, under_way)| TrafficInterval { arrivals, in_flight_mean: under_way })
            .collect();
        let mut endpoints = self.endpoints.all;
        endpoints.sort_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.template.cmp(&b.template)));
        let mut clients: Vec<(String, u64)> =
            self.clients.items().map(|seen| (String::from_utf8_lossy(&seen.value).into_owned(), seen.count)).collect();
        clients.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let text = |method: Vec<u8>| String::from_utf8_lossy(&method).into_owned();
        let mut methods: Vec<(String, u64)> = self.methods.into_iter().map(|(m, count)| (text(m), count)).collect();
        methods.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let statuses = (0u16..).zip(self.statuses).filter(|(_, count)| *count > 0).collect();
        let late_requests = self.timeline.late_arrivals();
        let (requests_each, think, closed_early) = self.sessions.finish();
        LogFigures {
            requests: self.requests,
            first_ns: if self.requests == 0 { 0 } else { self.first_ns },
            last_ns: self.last_ns,
            span_ns,
            resolution_ns: self.resolution_ns,
            requests_without_arrival: self.requests_without_arrival,
            late_requests,
            peak_1s: (self.resolution_ns <= SECOND).then_some(second),
            peak_1min: minute,
            endpoints,
            requests_beyond_endpoint_limit: self.endpoints.requests_beyond_limit,
            methods,
            statuses,
            clients_error_max: self.clients.error_max(),
            clients,
            sessions: SessionStats {
                requests: requests_each,
                think_times_ns: think,
                has_early_closed_sessions: closed_early,
            },
            popularity,
            dispersion,
            concurrency,
            sizes: self.sizes,
            durations: self.durations,
            interval_s,
            intervals,
        }
    }
}

/// The fewest distinct names below one path that count as identifiers of resources. Fewer names
/// count as separate endpoints.
const NAMED_ITEMS_MIN: usize = 50;

/// Finds resources with names instead of numeric ids: the largest group of endpoints that differ
/// only in the last path segment. Returns the method, the common path, and the number of requests
/// of each name.
fn largest_group_of_named_items(endpoints: &[TrafficEndpoint]) -> Option<(&str, &str, Vec<u64>)> {
    let mut groups: BTreeMap<(&str, &str), Vec<u64>> = BTreeMap::new();
    for endpoint in endpoints.iter().filter(|endpoint| !endpoint.template.contains('{')) {
        if let Some(slash) = endpoint.template.trim_end_matches('/').rfind('/') {
            let key = (endpoint.method.as_str(), &endpoint.template[..=slash]);
            groups.entry(key).or_default().push(endpoint.requests);
        }
    }
    let most = groups.into_iter().filter(|(_, counts)| counts.len() >= NAMED_ITEMS_MIN);
    most.max_by_key(|(_, counts)| counts.len()).map(|((method, parent), counts)| (method, parent, counts))
}

impl Popularity {
    /// Computes the popularity of resources from the number of requests of each resource.
    fn from_counts(method: String, template: String, mut counts: Vec<u64>, exact: bool) -> Popularity {
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let (zipf_exponent, ids) = (zipf_exponent(&counts), counts.len() as u64);
        counts.truncate(RANKS_MAX);
        Popularity { method, template, ids, is_exact: exact, zipf_exponent, counts }
    }
}

/// The number of requests in flight (concurrency) over the whole log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Concurrency {
    /// The mean number of requests in flight.
    pub mean: f64,
    /// The largest number of requests in flight. `None` if the timestamps are too coarse.
    pub max: Option<u64>,
}

/// The statistics of sessions: requests of one visitor without a gap of half an hour.
#[derive(Debug, Clone)]
pub struct SessionStats {
    /// The number of requests in a session.
    pub requests: Histogram,
    /// The think time from a response to the next request of the session, ns.
    pub think_times_ns: Histogram,
    /// Whether some sessions were closed before half an hour without requests, to bound the memory.
    pub has_early_closed_sessions: bool,
}

/// How often each resource is requested, for the endpoint with the most distinct ids.
#[derive(Debug, Clone)]
pub struct Popularity {
    /// The method of the endpoint.
    pub method: String,
    /// The path template of the endpoint.
    pub template: String,
    /// The number of distinct ids.
    pub ids: u64,
    /// Whether the counts include all ids. If false, rare ids were dropped to bound the memory.
    pub is_exact: bool,
    /// The exponent of Zipf's law that fits the counts. `None` if there are too few ids for a fit.
    pub zipf_exponent: Option<f64>,
    /// The number of requests of each id, in descending order, up to a limit.
    pub counts: Vec<u64>,
}

/// The figures of one interval of the log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrafficInterval {
    /// The number of requests that arrived in the interval.
    pub arrivals: u64,
    /// The mean number of requests in flight during the interval.
    pub in_flight_mean: f64,
}

/// The statistics of an access log.
#[derive(Debug, Clone)]
pub struct LogFigures {
    /// The number of requests.
    pub requests: u64,
    /// The time of the first arrival, ns since the Unix epoch.
    pub first_ns: u64,
    /// The time of the last arrival, ns since the Unix epoch.
    pub last_ns: u64,
    /// The time from the first to the last arrival plus the resolution of the timestamps, ns.
    pub span_ns: u64,
    /// The resolution of the timestamps, ns.
    pub resolution_ns: u64,
    /// The number of requests whose arrival is unknown, because the timestamps are the ends of
    /// responses and the log line has no duration. For such a request, the end of the response
    /// counts as the arrival.
    pub requests_without_arrival: u64,
    /// The number of requests whose log lines were too far out of time order. Late requests are
    /// missing from rates, dispersion and concurrency over time, but not from other statistics.
    pub late_requests: u64,
    /// The largest number of requests in one clock second. `None` if the timestamps are too coarse.
    pub peak_1s: Option<u64>,
    /// The largest number of requests in one clock minute.
    pub peak_1min: u64,
    /// The endpoints, most frequent first.
    pub endpoints: Vec<TrafficEndpoint>,
    /// The number of requests to endpoints beyond the first 10,000 endpoints.
    pub requests_beyond_endpoint_limit: u64,
    /// The number of requests by method, most frequent first.
    pub methods: Vec<(String, u64)>,
    /// The number of responses by status; status 0 means that no status was logged.
    pub statuses: Vec<(u16, u64)>,
    /// The number of requests by client, most frequent first.
    pub clients: Vec<(String, u64)>,
    /// The largest amount by which a client's count may be too low. 0 means that all counts are
    /// exact.
    pub clients_error_max: u64,
    /// The statistics of sessions. Empty if the log names neither clients nor sessions.
    pub sessions: SessionStats,
    /// The popularity of resources. `None` if no endpoint has ids.
    pub popularity: Option<Popularity>,
    /// The index of dispersion of the arrivals, by window width in ns. `None` if the timestamps are
    /// too coarse or the log is too short.
    pub dispersion: [(u64, Option<f64>); 4],
    /// The number of requests in flight (concurrency) over the whole log. `None` if most lines have
    /// no duration.
    pub concurrency: Option<Concurrency>,
    /// The sizes of responses, bytes.
    pub sizes: Histogram,
    /// The durations of requests, ns.
    pub durations: Histogram,
    /// The length of each interval in `intervals`, s.
    pub interval_s: f64,
    /// The figures over time, in intervals of equal length from the first arrival on.
    pub intervals: Vec<TrafficInterval>,
}

impl LogFigures {
    /// Returns the mean arrival rate, 1/s.
    pub fn rate_mean_rps(&self) -> f64 {
        if self.span_ns == 0 { 0.0 } else { self.requests as f64 * 1e9 / self.span_ns as f64 }
    }
}
