//! Numbers distinct endpoints in order of appearance. An endpoint is a method and a path template,
//! such as `/users/{id}`. Not here: building the templates.

use super::hashing::{HashKeyMap, hash};
use super::template;

/// The number of slots in the cache that maps paths to endpoints.
const ENDPOINT_CACHE_SLOTS: usize = 1 << 15;

/// A function that replaces parts of a path before its template is built.
pub type PathReplacement<'f> = dyn Fn(&str) -> String + 'f;

/// An endpoint: a method and a path template, with its number of requests.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficEndpoint {
    /// The HTTP method; empty if the logged request was invalid.
    pub method: String,
    /// The path template, such as `/users/{id}`.
    pub template: String,
    /// The number of requests to the endpoint.
    pub requests: u64,
}

/// The distinct endpoints of a log, numbered in order of appearance.
pub(crate) struct Endpoints {
    max: usize,
    pub all: Vec<TrafficEndpoint>,
    numbers: HashKeyMap<u32>,
    /// A cache from paths to endpoint numbers. Each slot has the hash of method and path; the low
    /// bits of this hash select the slot.
    path_cache: Vec<(u64, u32)>,
    /// The number of requests to endpoints beyond the first `max` endpoints.
    pub requests_beyond_limit: u64,
    text: Vec<u8>,
}

/// The common number of all endpoints that did not fit into the list of at most `max` endpoints.
const ENDPOINT_BEYOND_LIMIT: u32 = u32::MAX;

impl Endpoints {
    /// Creates an empty list of at most `max` distinct endpoints.
    pub fn new(max: usize) -> Endpoints {
        Endpoints {
            max,
            all: Vec::new(),
            numbers: HashKeyMap::default(),
            path_cache: vec![(0, ENDPOINT_BEYOND_LIMIT); ENDPOINT_CACHE_SLOTS],
            requests_beyond_limit: 0,
            text: Vec::new(),
        }
    }

    /// Counts a request. Returns the number of its endpoint, and a hash of its method and path.
    #[inline]
    pub fn add(&mut self, method: &[u8], path: &[u8], fold: Option<&PathReplacement>) -> (u32, u64) {
        let key = hash(path, hash(method, 1));
        let place = key as usize & (ENDPOINT_CACHE_SLOTS - 1);
        let (known, number) = self.path_cache[place];
        let number = if known == key && number != ENDPOINT_BEYOND_LIMIT {
            number
        } else {
            let number = self.find_or_add_endpoint(method, path, fold);
            self.path_cache[place] = (key, number);
            number
        };
        match self.all.get_mut(number as usize) {
            Some(endpoint) => endpoint.requests += 1,
            None => self.requests_beyond_limit += 1,
        }
        (number, key)
    }

    fn find_or_add_endpoint(&mut self, method: &[u8], path: &[u8], fold: Option<&PathReplacement>) -> u32 {
        match fold {
            Some(fold) => {
                template::write_path_template(fold(&String::from_utf8_lossy(path)).as_bytes(), &mut self.text)
            }
            None => template::write_path_template(path, &mut self.text),
        }
        let key = hash(&self.text, hash(method, 2));
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        if self.all.len() >= self.max {
            return ENDPOINT_BEYOND_LIMIT;
        }
        let number = self.all.len() as u32;
        self.all.push(TrafficEndpoint {
            method: String::from_utf8_lossy(method).into_owned(),
            template: String::from_utf8_lossy(&self.text).into_owned(),
            requests: 0,
        });
        self.numbers.insert(key, number);
        number
    }
}
