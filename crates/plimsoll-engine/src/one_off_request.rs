//! Single requests outside a load (setup and teardown). Plimsoll fills in and checks single
//! requests like the requests of the load.
//!
//! Not here: when a single request is sent, and over which connection.

use crate::Error;
use crate::answers::{ResponseChecks, StoredResponse};
use crate::encoded_route::{FilledRoutes, RouteCompiler, unix_offset_ns};
use crate::patterns::PatternCache;
use crate::sessions::CAPTURED_VALUE_BYTES_MAX;
use crate::template_fill::{FillContext, TemplateNames, TemplateValues};
use plimsoll_model::{Origin, Plan, Route};
use plimsoll_wire::redirect::is_redirect;
use plimsoll_wire::{EncodedRequest, ResponsePiece};

/// A single request outside a load, such as a request of the setup.
#[derive(Debug)]
pub struct OneOffRequest {
    filled: FilledRoutes,
    checks: Option<Box<ResponseChecks>>,
    /// The names of the values that are captured from the response.
    names: Vec<String>,
    origin: Origin,
    redirects_max: u8,
    /// The context with which the request's template is filled in.
    fill_context: FillContext<'static>,
}

/// The received part of the response to a single request.
#[derive(Debug, Default)]
pub struct StoredOneOffResponse(StoredResponse);

impl StoredOneOffResponse {
    /// Appends a piece of the response.
    pub fn add(&mut self, piece: ResponsePiece) {
        self.0.add_piece(piece);
    }

    /// Sets the header fields, which over HTTP/2 arrive separately from the content.
    pub fn set_header_fields(&mut self, fields: &[u8]) {
        self.0.set_separate_head(fields);
    }
}

impl OneOffRequest {
    /// Compiles a request of `plan`. The request may use the values that were captured from earlier
    /// responses. Returns an error if the request cannot be encoded.
    pub fn compile(plan: &Plan, route: &Route) -> Result<OneOffRequest, Error> {
        let unix_offset_ns = unix_offset_ns();
        let (names, mut values) = (TemplateNames::new(plan), TemplateValues::new(plan));
        let mut patterns = PatternCache::default();
        let mut compiler = RouteCompiler {
            plan,
            names: &names,
            values: &mut values,
            patterns: &mut patterns,
            unix_offset_ns,
            cookies: false,
        };
        let mut compiled = compiler.compile(route)?;
        let checks = compiled.checks.take();
        let names = route.captures.iter().map(|capture| capture.name.clone()).collect();
        Ok(OneOffRequest {
            filled: FilledRoutes::new(vec![compiled], values, unix_offset_ns),
            checks,
            names,
            origin: plan.traffic.origin.clone(),
            redirects_max: route.redirects_max,
            fill_context: FillContext::for_first_request(0),
        })
    }

    /// Fills in and encodes the request for repetition `number`, from 0.
    pub fn encode_repetition(&mut self, number: u64) -> &EncodedRequest {
        let now_ns = plimsoll_sys::clock::monotonic_ns();
        let unix_ms = now_ns.saturating_add(self.filled.unix_offset_ns) / 1_000_000;
        self.fill_context = FillContext { number, ..FillContext::for_first_request(unix_ms) };
        self.filled.fill(0, 0, &self.fill_context, &mut |_, _| ());
        self.filled.request(0, 0)
    }

    /// Returns the encoded request that follows the redirect in a response. `None`: the response is
    /// not a redirect, has no `Location` field, or the route follows no redirects.
    ///
    /// # Errors
    /// Returns the reason why the redirect cannot be followed.
    pub fn request_after_redirect(
        &mut self,
        status: u16,
        answer: &StoredOneOffResponse,
    ) -> Option<Result<&EncodedRequest, &'static str>> {
        let location =
            answer.0.field_values("location").next().filter(|_| self.redirects_max > 0 && is_redirect(status))?;
        let location = String::from_utf8_lossy(location);
        let followed =
            self.filled.prepare_redirect(0, 0, (status, &location), &self.origin, &self.fill_context, &mut |_, _| ());
        Some(followed.map(|()| self.filled.request(0, 0)).map_err(|why| why.reason()))
    }

    /// Returns whether a response with this status counts as success.
    pub fn succeeds(&self, status: u16) -> bool {
        self.filled.routes[0].ok_status.contains(status)
    }

    /// Checks a response with the response time `took_ns`. Returns the captured values with their
    /// names.
    ///
    /// # Errors
    /// Returns the message for the first failed expectation or capture.
    pub fn check_response(
        &mut self,
        answer: &StoredOneOffResponse,
        took_ns: u64,
    ) -> Result<Vec<(String, String)>, String> {
        let (mut taken, names) = (Vec::new(), &self.names);
        let Some(checks) = &mut self.checks else { return Ok(taken) };
        let miss = checks.check_response(&answer.0, took_ns, &mut |capture, value| {
            let value = String::from_utf8_lossy(&value[..value.len().min(CAPTURED_VALUE_BYTES_MAX)]).into_owned();
            taken.push((names[capture].clone(), value));
        });
        match miss {
            Some(miss) => Err(checks.reason(miss).to_owned()),
            None => Ok(taken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::expect::{CaptureSource, ResponseCapture};
    use plimsoll_model::grpc_message::RouteMessageConverters;
    use plimsoll_model::json_path::JsonPath;
    use plimsoll_model::traffic::TemplateFlags;
    use plimsoll_model::{LoadCurve, LoadShape, OneOffRoute, Request};
    use plimsoll_wire::{Conn, ConnectionEvent};

    /// Returns the values that the captures of `once` take from the response `bytes`.
    fn values_from_response(once: &mut OneOffRequest, bytes: &[u8]) -> Result<Vec<(String, String)>, String> {
        let (mut conn, mut answer, mut plain) = (Conn::new(), StoredOneOffResponse::default(), Vec::new());
        let _ = conn.start(0, once.encode_repetition(0));
        let mut received = conn.receive(bytes, &mut plain);
        while let Some(event) = conn.next(&mut received) {
            match event {
                ConnectionEvent::Piece { piece, .. } => answer.add(piece),
                ConnectionEvent::Answered { piece, .. } => {
                    answer.add(piece);
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        once.check_response(&answer, 1)
    }

    #[test]
    fn setup_captures_fill_later_requests() {
        let mut plan = Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) });
        let path = JsonPath::parse("$.token").expect("a path");
        let captures = vec![ResponseCapture { name: "token".into(), from: CaptureSource::Json(path), default: None }];
        let post = Request { method: "POST".into(), target: "/{{ seq() }}".into(), ..Request::get_root() };
        let template_flags = TemplateFlags { target: true, ..TemplateFlags::default() };
        let login = Route { captures, template_flags, ..Route::new(post) };
        plan.traffic.setup_teardown.setup = vec![OneOffRoute { route: login.clone(), times: 2, may_fail: false }];
        let target = Request { target: "/{{ token }}".into(), ..Request::get_root() };
        plan.traffic.routes = vec![Route { template_flags, ..Route::new(target) }];
        let mut once = OneOffRequest::compile(&plan, &login).expect("compiles");
        for (number, expect) in [(0, &b"POST /1 "[..]), (1, b"POST /2 ")] {
            assert!(once.encode_repetition(number).h1().starts_with(expect), "{number}");
        }
        let answered = b"HTTP/1.1 201 Created\r\nContent-Length: 16\r\n\r\n{\"token\": \"a b\"}";
        plan.traffic.setup_teardown.captured_values = values_from_response(&mut once, answered).expect("a token");
        assert_eq!(plan.traffic.setup_teardown.captured_value("token"), Some("a b"));
        let asked = crate::first_request(&plan, &RouteMessageConverters::new(), 0).expect("a request");
        assert!(asked.h1().starts_with(b"GET /a%20b "), "{}", String::from_utf8_lossy(asked.h1()));
        let missed = values_from_response(&mut once, b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")
            .expect_err("no token");
        assert_eq!(missed, "the response has no $.token to capture 'token' from");
        // Before the setup there are no captured values.
        plan.traffic.setup_teardown.captured_values.clear();
        let asked = crate::first_request(&plan, &RouteMessageConverters::new(), 0).expect("a request");
        assert!(asked.h1().starts_with(b"GET / "), "{}", String::from_utf8_lossy(asked.h1()));
    }
}
