//! What many requests say together: rates and their peaks, endpoints, clients, sessions,
//! popularity, sizes. A [`Survey`] takes [`Entry`]s in, about in the order of time, and keeps
//! bounded memory however many there are; where that costs exactness, the [`Figures`] say so.
//!
//! Not here: where entries come from, how figures look.

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

/// Most endpoints that are told apart; requests of further ones are counted together.
const ENDPOINTS_MAX: usize = 10_000;
/// Most methods that are told apart.
const METHODS_MAX: usize = 100;
/// Most clients that are told apart at a time.
const CLIENTS_MAX: usize = 1 << 17;
/// Most paths that are told apart at a time, for their popularity.
const IDS_MAX: usize = 1 << 20;
/// Fewest whole windows of which a dispersion is computed.
const WINDOWS_MIN: u64 = 5;
/// Most ranks of the popularity that are handed on.
const RANKS_MAX: usize = 10_000;

/// Requests that are being looked at.
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
    /// Nothing was seen yet. `fold` is applied to each path that is new.
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

    /// Takes one request in, of a log whose stamps mean `stamp`.
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
            // What is no method of anybody is a guess of some scanner; there may be many.
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

    /// What all of them say together.
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
        // Where most lines have no duration the sums say nothing.
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

/// Fewer names below one path are endpoints of their own.
const NAMED_ITEMS_MIN: usize = 50;

/// Things that have names in place of ids: the most endpoints that differ in the last part of their
/// path alone. Method, what they have in common, and the requests of each.
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
    /// Of things with so many requests each.
    fn from_counts(method: String, template: String, mut counts: Vec<u64>, exact: bool) -> Popularity {
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let (zipf_exponent, ids) = (zipf_exponent(&counts), counts.len() as u64);
        counts.truncate(RANKS_MAX);
        Popularity { method, template, ids, exact, zipf_exponent, counts }
    }
}

/// How many requests were under way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Concurrency {
    /// On average.
    pub mean: f64,
    /// At most, where stamps are fine enough to tell.
    pub max: Option<u64>,
}

/// Sessions that were seen.
#[derive(Debug, Clone)]
pub struct SessionStats {
    /// Requests of each.
    pub requests: Histogram,
    /// From an answer to the next request, ns.
    pub think: Histogram,
    /// Whether some were closed before their time, for want of memory.
    pub closed_early: bool,
}

/// What is asked for most of the endpoint with most ids.
#[derive(Debug, Clone)]
pub struct Popularity {
    /// Its method.
    pub method: String,
    /// Its template.
    pub template: String,
    /// How many ids were seen.
    pub ids: u64,
    /// Whether that is all of them; else those seen seldom were forgotten.
    pub exact: bool,
    /// The exponent of Zipf's law.
    pub zipf_exponent: Option<f64>,
    /// Requests of each id, the most first; the first of many.
    pub counts: Vec<u64>,
}

/// A stretch of the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrafficInterval {
    /// Requests that came.
    pub arrivals: u64,
    /// Requests under way, on average.
    pub under_way: f64,
}

/// What a log says.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Requests.
    pub requests: u64,
    /// The first arrival, ns since the epoch.
    pub first_ns: u64,
    /// The last arrival.
    pub last_ns: u64,
    /// From the first to the last, with what stamps cannot show.
    pub span_ns: u64,
    /// How fine stamps are, ns.
    pub resolution_ns: u64,
    /// Requests whose arrival is not known: the end of the answer stands for it.
    pub from_ends: u64,
    /// Requests too far out of order to be put in place: in all figures but rates, dispersion and
    /// concurrency over time.
    pub late: u64,
    /// Most requests in a second of the clock, where stamps can tell.
    pub peak_1s: Option<u64>,
    /// Most requests in a minute of the clock.
    pub peak_1min: u64,
    /// Endpoints, the most asked first.
    pub endpoints: Vec<TrafficEndpoint>,
    /// Requests of further endpoints than are told apart.
    pub endpoints_beyond: u64,
    /// Requests by method.
    pub methods: Vec<(String, u64)>,
    /// Answers by status; 0 where none was logged.
    pub statuses: Vec<(u16, u64)>,
    /// Requests by client, the most first.
    pub clients: Vec<(String, u64)>,
    /// How much too low the count of a client may be; 0: exact, and all clients are there.
    pub clients_error_max: u64,
    /// Sessions; none where no client is logged.
    pub sessions: SessionStats,
    /// Popularity; none without an endpoint with ids.
    pub popularity: Option<Popularity>,
    /// Widths of windows in ns, and the index of dispersion over them where stamps and the length
    /// of the log can tell.
    pub dispersion: [(u64, Option<f64>); 4],
    /// Requests under way; none where durations are not logged.
    pub concurrency: Option<Concurrency>,
    /// Bytes of answers.
    pub sizes: Histogram,
    /// Durations, ns.
    pub durations: Histogram,
    /// Length of each of `moments`, seconds.
    pub point_s: f64,
    /// The time from the first arrival on, in stretches.
    pub moments: Vec<TrafficInterval>,
}

impl Figures {
    /// Requests a second, on average.
    pub fn rate_mean_rps(&self) -> f64 {
        if self.span_ns == 0 { 0.0 } else { self.requests as f64 * 1e9 / self.span_ns as f64 }
    }
}
