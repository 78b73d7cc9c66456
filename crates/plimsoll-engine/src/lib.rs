//! Executes a plan on this machine: generates the load and counts the results. The entry point is
//! [`prepare`], which returns a load that can run.
//!
//! Each worker thread owns an event loop, its connections and its recorder. Workers share nothing
//! but a stop flag. Every 100 ms each worker reports its counts. The caller gets the sum of all
//! workers' counts and may end the run.
//!
//! This crate has no command line, reports, analyses, probes or async runtime. A failed request is
//! counted as a result and does not cause an error. Only a plan that cannot run at all causes an
//! [`Error`].

#![forbid(unsafe_code)]

mod addresses;
mod answers;
mod author_source;
mod collect;
mod connection;
mod content_coding;
mod cookies;
mod encode;
mod encoded_route;
mod exchanges;
mod failed;
mod job;
mod json_find;
mod mix_source;
mod net;
mod one_off_request;
mod patterns;
mod prepared;
mod recorder;
mod replay_source;
mod session_source;
mod sessions;
#[cfg(test)]
mod sim;
mod source;
mod spin;
mod template_fill;
mod users;
mod worker;

pub use answers::content_budget_miss_count;
pub use collect::{Collector, PartReport, Phase, Tick, TickListener};
pub use encode::{encode_request, tls_client};
pub use encoded_route::RequestEncodeError;
pub use one_off_request::{OneOffRequest, StoredOneOffResponse};
pub use patterns::{PatternCache, PatternError};
pub use prepared::{LoadHelpers, PreparedLoad, prepare, prepare_with_helpers};

use encoded_route::RouteCompiler;
use plimsoll_model::grpc_message::{GrpcMessageConverter, RouteMessageConverters};
use plimsoll_model::{Failure, HttpChoice, Outcome, Plan, Route, RouteNumber, Stripe};
use plimsoll_wire::{EncodedRequest, tls};
use source::RequestSource;
use std::sync::Arc;
use template_fill::{TemplateNames, TemplateValues};
use users::{LastRequest, UserAction};

/// The reason why a plan cannot run at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request is not valid HTTP, or its template cannot be filled in.
    #[error(transparent)]
    Request(#[from] RequestEncodeError),
    /// The plan comes from the record of an earlier run, which does not contain the arrival times
    /// that the load needs.
    #[error("the plan lacks data that its load needs")]
    IncompletePlan,
    /// The plan has no target address.
    #[error("the host has no address")]
    NoAddress,
    /// The TLS options are invalid.
    #[error(transparent)]
    Tls(#[from] tls::ConfigError),
    /// The operating system refused a resource that a worker's event loop needs.
    #[error("the system refused an event loop: {0}")]
    System(#[from] std::io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::cannot_start(error.to_string())
    }
}

/// Returns the request that the first session sends for a route. `texts`: the converters of gRPC
/// messages, as in [`LoadHelpers`]. Returns an error if the plan cannot run.
pub fn first_request(plan: &Plan, texts: &RouteMessageConverters, route: RouteNumber) -> Result<EncodedRequest, Error> {
    Ok(RequestSource::compile(plan)?.with_message_converters(plan, texts)?.route(route).request.clone())
}

/// Checks that the routes of a plan can be encoded. Routes are checked one by one, because a plan
/// may have very many routes.
#[derive(Debug)]
pub struct RouteEncodeCheck<'p> {
    plan: &'p Plan,
    names: TemplateNames<'p>,
    values: TemplateValues,
    patterns: PatternCache,
}

impl<'p> RouteEncodeCheck<'p> {
    /// Creates a check for the routes of a plan.
    pub fn new(plan: &'p Plan) -> RouteEncodeCheck<'p> {
        let (names, values) = (TemplateNames::new(plan), TemplateValues::new(plan));
        RouteEncodeCheck { plan, names, values, patterns: PatternCache::default() }
    }

    /// Returns an error if the requests of a route cannot be encoded. `text`: the converter of a
    /// gRPC call's messages.
    pub fn check(&mut self, route: &Route, text: Option<&Arc<dyn GrpcMessageConverter>>) -> Result<(), Error> {
        let RouteEncodeCheck { plan, names, values, patterns } = self;
        let plan = *plan;
        if !route.template_flags.any_template() {
            encode_request(plan, &route.request_to_send()).map_err(RequestEncodeError::Request)?;
            return Ok(());
        }
        let mut compiler = RouteCompiler { plan, names, values, patterns, unix_offset_ns: 0, cookies: false };
        let mut compiled = compiler.compile(route)?;
        text.map_or(Ok(()), |text| compiled.set_grpc_converter(plan, text))?;
        Ok(())
    }
}

/// Finds the route of the first request of each arrival in a stripe of an open loop. A stripe is
/// the share of the arrivals that one worker or machine of the load sends. The caller uses
/// [`ArrivalRoutes`] to count, by route, the requests that a lost worker or machine never sent.
#[derive(Debug)]
pub struct ArrivalRoutes(RequestSource);

impl ArrivalRoutes {
    /// Creates the sequence of first routes for one stripe of `plan`.
    pub fn new(plan: &Plan, stripe: Stripe) -> Result<ArrivalRoutes, Error> {
        Ok(ArrivalRoutes(RequestSource::compile(plan)?.for_worker(stripe, None)))
    }

    /// Returns the route of the first request of arrival number `arrival`. `None`: the source has
    /// no more requests. Callers must pass the arrival numbers in ascending order.
    pub fn first_route(&mut self, arrival: u64) -> Option<RouteNumber> {
        match self.0.next_action(arrival, None) {
            UserAction::Send(route) | UserAction::Wait(_, route) => Some(route),
            UserAction::End => None,
        }
    }
}

/// A request of one of the first arrivals of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstRequest {
    /// The number of the arrival, from 0.
    pub arrival: u64,
    /// The think time before the request, ns.
    pub wait_ns: u64,
    /// The route that the request belongs to.
    pub route: RouteNumber,
    /// The encoded request. For HTTP/2 the header fields are written as lines of text. Captured
    /// values are unknown before the load, so the request contains the names of the captures in
    /// place of the values.
    pub bytes: Vec<u8>,
}

/// Returns the requests that the first arrivals of `plan` send if every request succeeds.
pub fn first_requests(plan: &Plan, count: usize) -> Result<Vec<FirstRequest>, Error> {
    let captured = plan.traffic.captured_names();
    let marks: Vec<String> =
        (0..captured.len()).map(|number| format!("{CAPTURE_PLACEHOLDER_PREFIX}{number}-")).collect();
    // The requests of the load may use values that are captured from responses to the setup
    // requests.
    let before = plan.traffic.setup_teardown.setup.iter().flat_map(|asked| &asked.route.captures);
    let names = TemplateNames::new(plan);
    let mark_of = |name: &str| names.capture_number(name).map(|number| marks[number].clone());
    let mut marked = plan.clone();
    marked.traffic.setup_teardown.captured_values =
        before.filter_map(|capture| Some((capture.name.clone(), mark_of(&capture.name)?))).collect();
    let mut source = RequestSource::compile(&marked)?.for_worker(Stripe::WHOLE_SCHEDULE, None);
    let now_ns = plimsoll_sys::clock::monotonic_ns();
    let mut asked = Vec::new();
    // A session may send no request at all, so the loop limits the number of arrivals as well as
    // the number of requests.
    for arrival in 0..count as u64 {
        let mut last = None;
        while asked.len() < count {
            let (wait_ns, route) = match source.next_action(arrival, last.as_ref()) {
                UserAction::Send(route) => (0, route),
                UserAction::Wait(wait_ns, route) => (wait_ns, route),
                UserAction::End => break,
            };
            source.prepare_request(0, arrival, route, now_ns);
            let request = source.request(0, route);
            let mut bytes = match plan.connection_plan.http {
                HttpChoice::H2 => request.h2_form_text(),
                HttpChoice::Auto | HttpChoice::H1 => request.h1().to_vec(),
            };
            bytes = restore_capture_names(&bytes, &captured);
            asked.push(FirstRequest { arrival, wait_ns, route, bytes });
            if let Some(sessions) = source.sessions() {
                sessions.store_invented_captures(arrival, route, &|number| marks[number].clone());
            }
            last = Some(LastRequest { route, status: 200, outcome: Outcome::Success });
        }
    }
    Ok(asked)
}

/// The beginning of the placeholder for a captured value. In each placeholder, the number of the
/// capture and a `-` follow this text.
const CAPTURE_PLACEHOLDER_PREFIX: &str = "plimsoll-captured-";

#[cfg(test)]
#[test]
fn capture_placeholders_become_capture_names() {
    for (bytes, expect) in [
        ("/a", "/a"),
        ("/plimsoll-captured-1-/plimsoll-captured-0-x", "/{{ token }}/{{ id }}x"),
        (
            "plimsoll-captured-2-, plimsoll-captured-x, plimsoll-captured-1",
            "plimsoll-captured-2-, plimsoll-captured-x, plimsoll-captured-1",
        ),
    ] {
        assert_eq!(restore_capture_names(bytes.as_bytes(), &["id", "token"]), expect.as_bytes());
    }
}

/// Replaces the placeholders for captured values in a request by the names of the captures.
fn restore_capture_names(bytes: &[u8], names: &[&str]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memchr::memmem::find(rest, CAPTURE_PLACEHOLDER_PREFIX.as_bytes()) {
        let after = &rest[at + CAPTURE_PLACEHOLDER_PREFIX.len()..];
        let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&after[..digits]).ok().and_then(|digits| digits.parse::<usize>().ok());
        out.extend_from_slice(&rest[..at]);
        match number.and_then(|number| names.get(number)) {
            Some(name) if after.get(digits) == Some(&b'-') => {
                out.extend_from_slice(format!("{{{{ {name} }}}}").as_bytes());
                rest = &after[digits + 1..];
            }
            _ => {
                out.extend_from_slice(CAPTURE_PLACEHOLDER_PREFIX.as_bytes());
                rest = after;
            }
        }
    }
    out.extend_from_slice(rest);
    out
}
