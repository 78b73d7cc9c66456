//! The requests of a load: the origin, each route with its successful statuses, and the rule that
//! chooses the next route. A load of a single URL has one route.
//!
//! Not here: times and users ([`crate::load`]), transport ([`crate::transport`]), the bytes on the
//! wire.

use crate::RouteNumber;
use crate::data::ValueTable;
use crate::expect::{Expectations, ResponseCapture};
use crate::grpc::{self, GrpcCall};
use crate::redact::{self, RedactionLevel};
use crate::request_list::RequestList;
use crate::session::Scenario;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// The origin of a load: the beginning of every URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// `http` or `https`; for gRPC `grpc` or `grpcs`.
    pub scheme: String,
    /// The host of the URL.
    pub host: String,
    /// The port of the URL, or the scheme's default port if the URL has no port.
    pub port: u16,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, url_host(&self.host), self.port)
    }
}

impl Origin {
    /// Returns whether the origin uses TLS.
    pub fn is_secure(&self) -> bool {
        matches!(self.scheme.as_str(), "https" | "grpcs")
    }

    /// Returns whether the requests are gRPC calls.
    pub fn is_grpc(&self) -> bool {
        matches!(self.scheme.as_str(), "grpc" | "grpcs")
    }
}

/// An HTTP request, not yet encoded as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The HTTP method.
    pub method: String,
    /// Path and query of the request, as sent.
    pub target: String,
    /// Headers given by the user, in order.
    pub headers: Vec<(String, String)>,
    /// The body of the request; may be empty.
    pub body: Vec<u8>,
}

impl Request {
    /// Creates the request `GET /`.
    pub fn get_root() -> Request {
        Request { method: "GET".into(), target: "/".into(), headers: vec![], body: vec![] }
    }
}

/// A kind of request, sent repeatedly, with the expectations of its responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The name of the route in reports, without secrets.
    pub label: String,
    /// The request that the route sends.
    pub request: Request,
    /// The weight of the route among all routes; 0 means that the route is never sent.
    pub weight: u32,
    /// The HTTP statuses that count as success for the route.
    pub ok_status: StatusSet,
    /// The timeout of a request of the route, ns.
    pub timeout_ns: u64,
    /// The parts of the request that are templates ([`crate::template`]), filled in for each
    /// request.
    pub template_flags: TemplateFlags,
    /// Expectations of a response beyond its status.
    pub expect: Expectations,
    /// Values to capture from a response. A response without a value to capture counts as failed,
    /// unless the capture has a default.
    pub captures: Vec<ResponseCapture>,
    /// The maximum number of redirects to follow as part of one request; 0 means none.
    pub redirects_max: u8,
    /// The gRPC options of the request; `None` means that the request is no gRPC call.
    pub grpc: Option<GrpcCall>,
}

/// Which parts of a request are templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TemplateFlags {
    /// Whether path and query are a template.
    pub target: bool,
    /// Whether values of header fields are templates.
    pub headers: bool,
    /// Whether the body is a template.
    pub body: bool,
}

impl TemplateFlags {
    /// Returns whether any part of the request is a template.
    pub fn any_template(self) -> bool {
        self.target || self.headers || self.body
    }
}

impl Route {
    /// The maximum number of redirects that a user may allow for a request.
    pub const FOLLOW_REDIRECTS_MAX: u8 = 20;

    /// Creates a route with the default statuses and a timeout of 30 s. The label of the route is
    /// the method and the redacted path.
    pub fn new(request: Request) -> Route {
        let path = request.target.split(['?', '#']).next().unwrap_or_default();
        Route {
            label: format!("{} {}", request.method, redact::redact_path(path)),
            request,
            weight: 1,
            ok_status: StatusSet::default(),
            timeout_ns: 30_000_000_000,
            template_flags: TemplateFlags::default(),
            expect: Expectations::default(),
            captures: Vec::new(),
            redirects_max: 0,
            grpc: None,
        }
    }

    /// Returns the request in the form in which it is sent. For a gRPC call, the body contains the
    /// encoded messages, and the header fields of gRPC are added.
    pub fn request_to_send(&self) -> Cow<'_, Request> {
        let Some(call) = &self.grpc else { return Cow::Borrowed(&self.request) };
        let mut request = self.request.clone();
        request.body = call.content.clone().unwrap_or_default();
        let own = [
            ("content-type", "application/grpc".to_owned()),
            ("te", "trailers".to_owned()),
            ("grpc-timeout", grpc::grpc_timeout_text(self.timeout_ns)),
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
pub enum RouteChoice {
    /// The route of each request is drawn at random by weight. The seed and the number of the
    /// user's request determine the draw.
    #[default]
    Weighted,
    /// Each user (or each arrival in an open loop) runs a session of a scenario, which is drawn at
    /// random by weight.
    Scenarios,
    /// Arrival n of the load sends entry n of the request list.
    #[serde(rename = "listed")]
    RequestList,
}

/// Requests that are sent once for each load: setup requests before the load, and teardown requests
/// after the load. Setup and teardown requests do not count in any figure of the results.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetupTeardown {
    /// Setup requests, in order; a failure prevents the load.
    pub setup: Vec<OneOffRoute>,
    /// Teardown requests, in order; plimsoll sends these requests however the load ended.
    pub teardown: Vec<OneOffRoute>,
    /// Values captured from responses to setup requests, by name; run files never contain the
    /// values.
    pub captured_values: Vec<(String, String)>,
}

/// A setup or teardown request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneOffRoute {
    /// The request, with its expectations and captures.
    pub route: Route,
    /// How often the request is sent; each repetition waits for the previous response.
    pub times: u32,
    /// Whether the load continues if the request fails.
    pub may_fail: bool,
}

impl SetupTeardown {
    /// Returns whether there are no setup and teardown requests.
    pub fn is_empty(&self) -> bool {
        self.setup.is_empty() && self.teardown.is_empty()
    }

    /// Returns all setup and teardown requests.
    pub fn requests(&self) -> impl Iterator<Item = &OneOffRoute> {
        self.setup.iter().chain(&self.teardown)
    }

    /// Returns the value that the setup requests captured under `name`.
    pub fn captured_value(&self, name: &str) -> Option<&str> {
        self.captured_values.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// All requests of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traffic {
    /// Scheme, host and port of every request.
    pub origin: Origin,
    /// The routes (kinds of requests) of the load; never empty.
    pub routes: Vec<Route>,
    /// The rule that chooses a user's next route.
    pub choice: RouteChoice,
    /// The scenarios that sessions of users follow; empty if the load has no sessions.
    pub scenarios: Vec<Scenario>,
    /// The route of the preflight request, which checks that the server responds; `None` means that
    /// no route's request can safely be sent once more.
    pub preflight: Option<RouteNumber>,
    /// Tables of values that are inserted into requests.
    pub data: Vec<Arc<ValueTable>>,
    /// Variables that are inserted into requests, with their values; run files never contain the
    /// values.
    pub variables: Vec<(String, String)>,
    /// Setup and teardown requests.
    pub setup_teardown: SetupTeardown,
    /// The list that defines the request of each arrival; `None` means that `choice` needs no list.
    pub request_list: Option<Arc<RequestList>>,
    /// Which parts of the traffic are redacted in records and reports.
    pub redact: RedactionLevel,
}

impl Traffic {
    /// Creates traffic with a single route.
    pub fn with_one_route(origin: Origin, route: Route) -> Traffic {
        Traffic {
            origin,
            routes: vec![route],
            choice: RouteChoice::Weighted,
            scenarios: Vec::new(),
            preflight: Some(0),
            data: Vec::new(),
            variables: Vec::new(),
            setup_teardown: SetupTeardown::default(),
            request_list: None,
            redact: RedactionLevel::Secrets,
        }
    }

    /// Returns the route of the preflight request.
    pub fn preflight_route(&self) -> Option<&Route> {
        self.routes.get(usize::from(self.preflight?))
    }

    /// Returns the distinct names of the values that are captured from responses.
    pub fn captured_names(&self) -> Vec<&str> {
        let mut known = HashSet::new();
        let routes = self.routes.iter().chain(self.setup_teardown.requests().map(|asked| &asked.route));
        let names = routes.flat_map(|route| &route.captures).map(|capture| capture.name.as_str());
        names.filter(|name| known.insert(*name)).collect()
    }

    /// Returns whether `status` counts as success for at least one route.
    pub fn counts_as_success(&self, status: u16) -> bool {
        self.routes.iter().any(|route| route.ok_status.contains(status))
    }

    /// Returns the longest timeout of any route, ns.
    pub fn timeout_ns_max(&self) -> u64 {
        self.routes.iter().map(|route| route.timeout_ns).max().unwrap_or(0)
    }
}

/// Returns the host in the form for a URL. An IPv6 address gets brackets, so that its colons do not
/// look like the colon before a port.
pub fn url_host(host: &str) -> Cow<'_, str> {
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
    /// Parses a set of HTTP statuses: entries of the form `200`, `200-299` or `2xx`, with commas
    /// between the entries.
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

    /// Returns whether `status` is in the set.
    #[inline]
    pub fn contains(&self, status: u16) -> bool {
        let at = usize::from(status.wrapping_sub(100));
        at < 500 && self.bits[at / 64] & (1 << (at % 64)) != 0
    }
}

impl Default for StatusSet {
    /// Returns the default set: 100-399, the usual meaning of success.
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
    fn status_sets_parse_or_fail() {
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
