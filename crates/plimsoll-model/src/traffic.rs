//! What is asked, and of whom: the requests of a load, each with what counts as its success, and
//! the rule by which the next one is chosen. One URL is a list of one.
//!
//! Not here: when and by whom ([`crate::load`]), over what ([`crate::carriage`]), the bytes on the
//! wire.

use crate::RouteNumber;
use crate::data::Data;
use crate::expect::{AnswerCapture, Expectations};
use crate::grpc::{self, GrpcCall};
use crate::redact::{self, Redact};
use crate::request_list::RequestList;
use crate::session::Scenario;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// Whom a load asks: the beginning of every URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// `http` or `https`; of gRPC `grpc` or `grpcs`.
    pub scheme: String,
    /// Host as in the URL.
    pub host: String,
    /// Port, resolved from the scheme when the URL has none.
    pub port: u16,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, bracketed(&self.host), self.port)
    }
}

impl Origin {
    /// Whether TLS is spoken there.
    pub fn is_secure(&self) -> bool {
        matches!(self.scheme.as_str(), "https" | "grpcs")
    }

    /// Whether what is asked there are calls of gRPC's.
    pub fn is_grpc(&self) -> bool {
        matches!(self.scheme.as_str(), "grpc" | "grpcs")
    }
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Method.
    pub method: String,
    /// Path and query, as sent.
    pub target: String,
    /// Headers given by the user, in order.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl Request {
    /// `GET /`.
    pub fn get() -> Request {
        Request { method: "GET".into(), target: "/".into(), headers: vec![], body: vec![] }
    }
}

/// One thing that is asked again and again, and what its answers are to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Its name in reports: nothing secret.
    pub label: String,
    /// What is asked.
    pub request: Request,
    /// How often, against the weights of the others; 0: never.
    pub weight: u32,
    /// What counts as success.
    pub ok_status: StatusSet,
    /// A request that takes longer has failed, ns.
    pub timeout_ns: u64,
    /// Which parts of the request are templates ([`crate::template`]), filled in for each.
    pub filled: TemplateFlags,
    /// What an answer is to be beside its status.
    pub expect: Expectations,
    /// What is taken from an answer; one that does not have all of it has failed.
    pub captures: Vec<AnswerCapture>,
    /// How many redirects of an answer are followed, all of them one request; 0: none.
    pub follow: u8,
    /// It is a call of gRPC's.
    pub grpc: Option<GrpcCall>,
}

/// Which parts of a request are templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TemplateFlags {
    /// Path and query.
    pub target: bool,
    /// The values of header fields.
    pub headers: bool,
    /// The body.
    pub body: bool,
}

impl TemplateFlags {
    /// Whether any is.
    pub fn any(self) -> bool {
        self.target || self.headers || self.body
    }
}

impl Route {
    /// The most redirects that are followed.
    pub const FOLLOW_MAX: u8 = 20;

    /// `request` with the usual success and a timeout of 30 s; its label is its method and what is
    /// plain of its path.
    pub fn new(request: Request) -> Route {
        let path = request.target.split(['?', '#']).next().unwrap_or_default();
        Route {
            label: format!("{} {}", request.method, redact::path(path)),
            request,
            weight: 1,
            ok_status: StatusSet::default(),
            timeout_ns: 30_000_000_000,
            filled: TemplateFlags::default(),
            expect: Expectations::default(),
            captures: Vec::new(),
            follow: 0,
            grpc: None,
        }
    }

    /// The request as it is sent: a call with its messages in place of the body, and with the
    /// fields that make it one.
    pub fn on_wire(&self) -> Cow<'_, Request> {
        let Some(call) = &self.grpc else { return Cow::Borrowed(&self.request) };
        let mut request = self.request.clone();
        request.body = call.content.clone().unwrap_or_default();
        let own = [
            ("content-type", "application/grpc".to_owned()),
            ("te", "trailers".to_owned()),
            ("grpc-timeout", grpc::timeout_text(self.timeout_ns)),
        ];
        for (name, value) in own {
            if !request.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)) {
                request.headers.push((name.to_owned(), value));
            }
        }
        Cow::Owned(request)
    }
}

/// The rule by which the next route is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Each request is drawn for itself, by weight; a function of the seed and the number of the
    /// request's user.
    #[default]
    Weighted,
    /// Each user, or arrival, goes through a session of a scenario, drawn by weight.
    Scenarios,
    /// Arrival n asks what entry n of a list says.
    Listed,
}

/// What is asked once a load: before it, to make something ready, and after it, to take that away
/// again. None of it counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetupTeardown {
    /// Before it, in order; one that fails keeps the load from beginning.
    pub setup: Vec<OneOffRoute>,
    /// After it, in order, however it ended.
    pub cleanup: Vec<OneOffRoute>,
    /// What was captured before the load, by name; none of it is recorded.
    pub given: Vec<(String, String)>,
}

/// A request that is asked once a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneOffRoute {
    /// What.
    pub route: Route,
    /// How often, one after the other.
    pub times: u32,
    /// Whether it matters that it fails.
    pub goes_on: bool,
}

impl SetupTeardown {
    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.setup.is_empty() && self.cleanup.is_empty()
    }

    /// All that is asked.
    pub fn requests(&self) -> impl Iterator<Item = &OneOffRoute> {
        self.setup.iter().chain(&self.cleanup)
    }

    /// What was captured under this name.
    pub fn captured_value(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// All that is asked in a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traffic {
    /// Of whom.
    pub origin: Origin,
    /// What; never empty.
    pub routes: Vec<Route>,
    /// In which order.
    pub choice: Choice,
    /// What sessions do, where they are asked for; else empty.
    pub scenarios: Vec<Scenario>,
    /// The one that may be asked once before a load, to see whether anybody answers; `None`: none
    /// of them.
    pub first: Option<RouteNumber>,
    /// Rows that requests are filled in with.
    pub data: Vec<Arc<Data>>,
    /// Variables that requests are filled in with, and their values: none of them is recorded.
    pub variables: Vec<(String, String)>,
    /// What is asked once, before and after the load.
    pub around: SetupTeardown,
    /// What each arrival asks, where that stands in a list.
    pub listed: Option<Arc<RequestList>>,
    /// How much of it is left out of records and reports.
    pub redact: Redact,
}

impl Traffic {
    /// One request, and no other.
    pub fn one(origin: Origin, route: Route) -> Traffic {
        Traffic {
            origin,
            routes: vec![route],
            choice: Choice::Weighted,
            scenarios: Vec::new(),
            first: Some(0),
            data: Vec::new(),
            variables: Vec::new(),
            around: SetupTeardown::default(),
            listed: None,
            redact: Redact::Secrets,
        }
    }

    /// The route that may be asked once before a load.
    pub fn first(&self) -> Option<&Route> {
        self.routes.get(usize::from(self.first?))
    }

    /// The names under which anything is captured, each once.
    pub fn captured(&self) -> Vec<&str> {
        let mut known = HashSet::new();
        let routes = self.routes.iter().chain(self.around.requests().map(|asked| &asked.route));
        let names = routes.flat_map(|route| &route.captures).map(|capture| capture.name.as_str());
        names.filter(|name| known.insert(*name)).collect()
    }

    /// Whether an answer of this status is a success of any route.
    pub fn succeeds(&self, status: u16) -> bool {
        self.routes.iter().any(|route| route.ok_status.contains(status))
    }

    /// The longest timeout of any route, ns.
    pub fn timeout_ns_max(&self) -> u64 {
        self.routes.iter().map(|route| route.timeout_ns).max().unwrap_or(0)
    }
}

/// A host as it stands in a URL: an IPv6 address in brackets, so that its colons are not taken for
/// that of the port.
pub fn bracketed(host: &str) -> Cow<'_, str> {
    if host.contains(':') { format!("[{host}]").into() } else { host.into() }
}

/// A set of HTTP status codes, 100..=599.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StatusSet {
    bits: [u64; 8],
    text: String,
}

/// Why a status set could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a set of status codes; write for example 200-299,404 or 2xx")]
pub struct StatusSetError(String);

impl StatusSet {
    /// Reads `200`, `200-299`, `2xx` and lists of these.
    pub fn parse(text: &str) -> Result<StatusSet, StatusSetError> {
        let error = || StatusSetError(text.to_owned());
        let code = |text: &str| text.trim().parse::<u16>().ok().filter(|c| (100..600).contains(c)).ok_or_else(error);
        let mut bits = [0u64; 8];
        for part in text.split(',').map(str::trim) {
            let (from, to) = match part.split_once('-') {
                Some((from, to)) => (code(from)?, code(to)?),
                None => match part.strip_suffix("xx") {
                    Some(class) => {
                        let from = code(&format!("{class}00"))?;
                        (from, from + 99)
                    }
                    None => (code(part)?, code(part)?),
                },
            };
            if from > to {
                return Err(error());
            }
            for status in from..=to {
                let at = usize::from(status - 100);
                bits[at / 64] |= 1 << (at % 64);
            }
        }
        Ok(StatusSet { bits, text: text.to_owned() })
    }

    /// Whether `status` is in the set.
    #[inline]
    pub fn contains(&self, status: u16) -> bool {
        let at = usize::from(status.wrapping_sub(100));
        at < 500 && self.bits[at / 64] & (1 << (at % 64)) != 0
    }
}

impl Default for StatusSet {
    /// 100-399, the field's usual meaning of success.
    fn default() -> Self {
        StatusSet::parse("100-399").unwrap_or_else(|_| unreachable!("a constant that parses"))
    }
}

impl TryFrom<String> for StatusSet {
    type Error = StatusSetError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        StatusSet::parse(&text)
    }
}

impl From<StatusSet> for String {
    fn from(set: StatusSet) -> String {
        set.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_sets() {
        for (text, inside, outside) in [
            ("100-399", vec![100, 200, 399], vec![99, 400, 600, 0]),
            ("2xx,404", vec![200, 299, 404], vec![300, 403]),
            ("503", vec![503], vec![502, 504]),
        ] {
            let set = StatusSet::parse(text).expect(text);
            inside.iter().for_each(|s| assert!(set.contains(*s), "{s} in {text}"));
            outside.iter().for_each(|s| assert!(!set.contains(*s), "{s} not in {text}"));
        }
        for text in ["", "abc", "99", "600", "300-200", "9xx", "200-"] {
            assert!(StatusSet::parse(text).is_err(), "{text:?}");
        }
    }
}
