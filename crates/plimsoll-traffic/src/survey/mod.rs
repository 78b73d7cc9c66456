//! Statistics over many requests: rates and peaks, endpoints, clients, sessions, popularity, sizes.
//! A [`Survey`] reads [`Entry`]s, roughly in order of time, in bounded memory. If that costs
//! exactness, the [`Figures`] say so.
//!
//! Not here: the source of entries, and the presentation of figures.

pub(crate) mod endpoints;
mod frequent;
pub(crate) mod hashing;
mod popularity;
mod sessions;
pub(crate) mod template;
mod timeline;

use crate::logs::{Entry, Stamp};
use endpoints::Endpoints;
use frequent::Frequent;
use hashing::hash;
use plimsoll_model::Histogram;
use plimsoll_model::units::SECOND;
use sessions::Sessions;
use std::collections::BTreeMap;
use timeline::Timeline;

pub use endpoints::{Fold, TrafficEndpoint};
pub use popularity::zipf_exponent;
pub use sessions::GAP_NS;
pub use timeline::WINDOW_S;

/// Most distinct endpoints; requests to further ones are counted together.
const ENDPOINTS_MAX: usize = 10_000;
/// Most distinct methods.
const METHODS_MAX: usize = 100;
/// Most distinct clients at a time.
const CLIENTS_MAX: usize = 1 << 17;
/// Most distinct paths at a time, for popularity.
const IDS_MAX: usize = 1 << 20;
/// Fewest whole windows for a dispersion.
const WINDOWS_MIN: u64 = 5;
/// Most ranks of popularity in the result.
const RANKS_MAX: usize = 10_000;

/// Statistics under construction.
pub struct Survey<'f> {
    fold: Option<&'f Fold<'f>>,
    requests: u64,
    first_ns: u64,
    last_ns: u64,
    resolution_ns: u64,
    with_duration: u64,
    from_ends: u64,
    duration_ns: u128,
    endpoints: Endpoints,
    methods: BTreeMap<Vec<u8>, u64>,
    statuses: Vec<u64>,
    clients: Frequent<Box<[u8]>>,
    ids: Frequent<u32>,
    sessions: Sessions,
    timeline: Timeline,
    sizes: Histogram,
    durations: Histogram,
}

impl<'f> Survey<'f> {
    /// An empty survey. `fold` is applied to each new path.
    pub fn new(fold: Option<&'f Fold<'f>>) -> Survey<'f> {
        Survey {
            fold,
            requests: 0,
            first_ns: u64::MAX,
            last_ns: 0,
            resolution_ns: 60 * SECOND,
            with_duration: 0,
            from_ends: 0,
            duration_ns: 0,
            endpoints: Endpoints::new(ENDPOINTS_MAX),
            methods: BTreeMap::new(),
            statuses: vec![0; 1000],
            clients: Frequent::new(CLIENTS_MAX),
            ids: Frequent::new(IDS_MAX),
            sessions: Sessions::default(),
            timeline: Timeline::new(),
            sizes: Histogram::new(),
            durations: Histogram::new(),
        }
    }

    /// Adds one request; `stamp` is the meaning of the log's timestamps.
    #[inline]
    pub fn add(&mut self, entry: &Entry, stamp: Stamp) {
        self.requests += 1;
        while !entry.stamp_ns.is_multiple_of(self.resolution_ns) {
            self.resolution_ns = if self.resolution_ns > SECOND { SECOND } else { self.resolution_ns / 10 };
        }
        self.first_ns = self.first_ns.min(entry.start_ns);
        self.last_ns = self.last_ns.max(entry.start_ns);
        match entry.duration_ns {
            Some(ns) => {
                self.with_duration += 1;
                self.duration_ns += u128::from(ns);
                self.durations.record(ns);
            }
            None if stamp == Stamp::End => self.from_ends += 1,
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
            // Invalid methods come from scanners, and there may be many.
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

    /// The figures of all requests.
    pub fn finish(mut self) -> Figures {
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
        let of_words = named_items(&self.endpoints.all).map(|(method, parent, counts)| {
            Popularity::from_counts(method.to_owned(), format!("{parent}*"), counts, self.endpoints.beyond == 0)
        });
        let popularity =
            of_ids.into_iter().chain(of_words).reduce(|one, other| if other.ids > one.ids { other } else { one });
        // If most lines lack a duration, the sums mean nothing.
        let timed = self.with_duration * 2 > self.requests;
        let concurrency = timed.then(|| Concurrency {
            mean: self.duration_ns as f64 / span_ns as f64,
            max: tells(timeline::BIN_NS).then(|| self.timeline.under_way_max()),
        });
        let (point_s, points) = self.timeline.series();
        let moments = points.into_iter().map(|(arrivals, under_way)| TrafficInterval { arrivals, under_way }).collect();
        let mut endpoints = self.endpoints.all;
        endpoints.sort_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.template.cmp(&b.template)));
        let mut clients: Vec<(String, u64)> =
            self.clients.items().map(|seen| (String::from_utf8_lossy(&seen.value).into_owned(), seen.count)).collect();
        clients.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let text = |method: Vec<u8>| String::from_utf8_lossy(&method).into_owned();
        let mut methods: Vec<(String, u64)> = self.methods.into_iter().map(|(m, count)| (text(m), count)).collect();
        methods.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let statuses = (0u16..).zip(self.statuses).filter(|(_, count)| *count > 0).collect();
        let late = self.timeline.late();
        let (requests_each, think, closed_early) = self.sessions.finish();
        Figures {
            requests: self.requests,
            first_ns: if self.requests == 0 { 0 } else { self.first_ns },
            last_ns: self.last_ns,
            span_ns,
            resolution_ns: self.resolution_ns,
            from_ends: self.from_ends,
            late,
            peak_1s: (self.resolution_ns <= SECOND).then_some(second),
            peak_1min: minute,
            endpoints,
            endpoints_beyond: self.endpoints.beyond,
            methods,
            statuses,
            clients_error_max: self.clients.error_max(),
            clients,
            sessions: SessionStats { requests: requests_each, think, closed_early },
            popularity,
            dispersion,
            concurrency,
            sizes: self.sizes,
            durations: self.durations,
            point_s,
            moments,
        }
    }
}

/// Fewest names below a path that count as identifiers; fewer are endpoints of their own.
const NAMED_ITEMS_MIN: usize = 50;

/// Resources with names instead of ids: the largest group of endpoints that differ only in the last
/// path segment. Returns the method, the common path, and the requests of each.
fn named_items(endpoints: &[TrafficEndpoint]) -> Option<(&str, &str, Vec<u64>)> {
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
    /// The popularity of resources with these counts.
    fn from_counts(method: String, template: String, mut counts: Vec<u64>, exact: bool) -> Popularity {
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let (zipf_exponent, ids) = (zipf_exponent(&counts), counts.len() as u64);
        counts.truncate(RANKS_MAX);
        Popularity { method, template, ids, exact, zipf_exponent, counts }
    }
}

/// Number of requests in flight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Concurrency {
    /// Mean.
    pub mean: f64,
    /// Maximum, if the timestamps are precise enough.
    pub max: Option<u64>,
}

/// Statistics of sessions.
#[derive(Debug, Clone)]
pub struct SessionStats {
    /// Requests of a session.
    pub requests: Histogram,
    /// Time from a response to the next request, ns.
    pub think: Histogram,
    /// Whether some sessions were closed early for want of memory.
    pub closed_early: bool,
}

/// Popularity of the resources of the endpoint with the most ids.
#[derive(Debug, Clone)]
pub struct Popularity {
    /// The method of the endpoint.
    pub method: String,
    /// The template of the endpoint.
    pub template: String,
    /// Number of ids.
    pub ids: u64,
    /// Whether all ids were counted; otherwise rare ones were dropped.
    pub exact: bool,
    /// The exponent of Zipf's law.
    pub zipf_exponent: Option<f64>,
    /// Requests of each id in descending order, up to a limit.
    pub counts: Vec<u64>,
}

/// One interval of the log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrafficInterval {
    /// Arrivals.
    pub arrivals: u64,
    /// Mean number of requests in flight.
    pub under_way: f64,
}

/// The figures of a log.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Number of requests.
    pub requests: u64,
    /// The first arrival, ns since the epoch.
    pub first_ns: u64,
    /// The last arrival.
    pub last_ns: u64,
    /// Time from the first to the last arrival, extended by the resolution of timestamps.
    pub span_ns: u64,
    /// Resolution of the timestamps, ns.
    pub resolution_ns: u64,
    /// Requests without a known arrival: the end of the response takes its place.
    pub from_ends: u64,
    /// Requests too far out of order: missing in rates, dispersion and concurrency over time only.
    pub late: u64,
    /// Most requests in a second of the clock, if timestamps are precise enough.
    pub peak_1s: Option<u64>,
    /// Most requests in a minute of the clock.
    pub peak_1min: u64,
    /// Endpoints, the most frequent first.
    pub endpoints: Vec<TrafficEndpoint>,
    /// Requests to endpoints above the limit.
    pub endpoints_beyond: u64,
    /// Requests by method.
    pub methods: Vec<(String, u64)>,
    /// Responses by status; 0 if none was logged.
    pub statuses: Vec<(u16, u64)>,
    /// Requests by client, the most frequent first.
    pub clients: Vec<(String, u64)>,
    /// Largest amount by which a client's count may be too low; 0: exact and complete.
    pub clients_error_max: u64,
    /// Sessions; empty if no client is logged.
    pub sessions: SessionStats,
    /// Popularity; `None` without an endpoint with ids.
    pub popularity: Option<Popularity>,
    /// Window widths in ns, with the index of dispersion; `None` if timestamps or the length of the
    /// log do not suffice.
    pub dispersion: [(u64, Option<f64>); 4],
    /// Requests in flight; `None` if durations are not logged.
    pub concurrency: Option<Concurrency>,
    /// Bytes of responses.
    pub sizes: Histogram,
    /// Durations, ns.
    pub durations: Histogram,
    /// Length of each interval in `moments`, s.
    pub point_s: f64,
    /// Intervals from the first arrival on.
    pub moments: Vec<TrafficInterval>,
}

impl Figures {
    /// Mean request rate, 1/s.
    pub fn rate_mean_rps(&self) -> f64 {
        if self.span_ns == 0 { 0.0 } else { self.requests as f64 * 1e9 / self.span_ns as f64 }
    }
}
