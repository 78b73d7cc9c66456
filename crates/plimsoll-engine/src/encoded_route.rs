//! A route (a kind of request in the plan) encoded for the wire, with the checks of its responses.
//! A fixed request is encoded once, and a template is filled in and encoded for each exchange.
//!
//! Not here: the choice of the next route.

use crate::answers::ResponseChecks;
use crate::encode::{encode_request, host_field};
use crate::patterns::{PatternCache, PatternError};
use crate::template_fill::{FillContext, RequestTemplate, TemplateCompileError, TemplateNames, TemplateValues};
use plimsoll_model::grpc_message::GrpcMessageConverter;
use plimsoll_model::traffic::StatusSet;
use plimsoll_model::{GrpcStatusSet, Origin, Plan, Request, Route, RouteNumber};
use plimsoll_wire::redirect::{RedirectRefusal, redirect_target, turns_into_get};
use plimsoll_wire::{EncodedRequest, h1};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The reason why the requests of a plan cannot be encoded.
#[derive(Debug, thiserror::Error)]
pub enum RequestEncodeError {
    /// A request is not valid HTTP.
    #[error(transparent)]
    Request(#[from] h1::RequestError),
    /// A template cannot be filled in.
    #[error(transparent)]
    Template(#[from] TemplateCompileError),
    /// An expectation has an invalid pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The filled-in body of a gRPC call is not a valid message of the method's type.
    #[error("the body with its values does not fit the message type of the method")]
    Message,
    /// The plan sends a list of requests, but the list is missing.
    #[error("the plan has no list of requests")]
    MissingRequestList,
}

/// Which parts of the responses of a route are stored for checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseRetention {
    /// Nothing is stored, because only the status is checked.
    Nothing,
    /// The response head is stored, because its cookies or its redirect are needed.
    Head,
    /// The head and the content are stored.
    All,
}

/// A route encoded for the wire, with the checks of its responses.
#[derive(Debug, Clone)]
pub struct EncodedRoute {
    /// The encoded request of the route. If the route has a template, this field contains the first
    /// filled-in request.
    pub request: EncodedRequest,
    /// The HTTP statuses that count as success for this route.
    pub ok_status: StatusSet,
    /// For a gRPC call, the gRPC statuses that count as success.
    pub ok_grpc: Option<GrpcStatusSet>,
    /// Whether the route's responses are streams, so that the arrival time of each message is
    /// recorded.
    pub has_message_times: bool,
    /// The maximum time from the start of a request to the last byte of its response, ns.
    pub timeout_ns: u64,
    /// The maximum number of redirects that one request of the route may follow.
    pub redirects_max: u8,
    /// Which parts of the route's responses are stored.
    pub retention: ResponseRetention,
    /// The compiled checks of the route's responses; `None`: only the status is checked.
    pub checks: Option<Box<ResponseChecks>>,
    /// The route's request template; `None`: every request of the route is equal.
    pub(crate) request_builder: Option<Box<RouteRequestBuilder>>,
}

/// The request template of a route, with the buffers for filling it in.
#[derive(Debug, Clone)]
pub(crate) struct RouteRequestBuilder {
    /// The compiled template; `None`: only cookies and redirects change the request.
    template: Option<RequestTemplate>,
    request: Request,
    /// The number of header fields before the `Cookie` field that contains the user's cookies. The
    /// `Cookie` field with the user's cookies is the last header field.
    header_count_before_cookie: usize,
    /// The memory of the `Cookie` field, kept for reuse while the user has no matching cookies.
    unused_cookie_field: Option<(String, String)>,
    host: String,
    keep_alive: bool,
    /// For a gRPC call, the converter of the filled-in JSON body to messages.
    messages: Option<GrpcBodyConverter>,
}

/// The converter of filled-in JSON bodies to gRPC messages.
#[derive(Debug, Clone)]
struct GrpcBodyConverter {
    message_converter: Arc<dyn GrpcMessageConverter>,
    content: Vec<u8>,
}

impl RouteRequestBuilder {
    /// Returns whether any part of the request is a template.
    pub fn has_template(&self) -> bool {
        self.template.is_some()
    }

    fn request_parts(&self) -> h1::RequestParts<'_> {
        let Request { method, target, headers, body } = &self.request;
        let body = self.messages.as_ref().map_or(body, |messages| &messages.content);
        h1::RequestParts { method, target, host: &self.host, headers, body, keep_alive: self.keep_alive }
    }

    /// Converts the filled-in body of a gRPC call to messages. Returns false if the body is not a
    /// valid message. A call with an invalid body is sent without a message, so that the server
    /// reports the error.
    fn convert_body_to_messages(&mut self) -> bool {
        let Some(GrpcBodyConverter { message_converter: text, content }) = &mut self.messages else { return true };
        content.clear();
        text.encode_from_json(&self.request.body, content)
    }

    /// Returns whether the request has its own `Cookie` field, which replaces the cookies of a
    /// user.
    fn has_cookie(&self) -> bool {
        self.request.headers[..self.header_count_before_cookie]
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("cookie"))
    }

    /// Adds the `Cookie` field with the cookies that match the request's path and query, if there
    /// are any. `write` appends the cookies for a given path and query to a text. No field is added
    /// if the plan's request has its own `Cookie` field.
    fn set_cookie(&mut self, write: &mut dyn FnMut(&str, &mut String)) {
        if self.request.headers.len() > self.header_count_before_cookie {
            self.unused_cookie_field = self.request.headers.pop();
        }
        if self.has_cookie() {
            return;
        }
        let (name, mut value) = self.unused_cookie_field.take().unwrap_or_else(|| ("Cookie".to_owned(), String::new()));
        value.clear();
        write(&self.request.target, &mut value);
        match value.is_empty() {
            true => self.unused_cookie_field = Some((name, value)),
            false => self.request.headers.push((name, value)),
        }
    }
}

/// Encodes the routes of a plan, and compiles their templates and checks.
pub(crate) struct RouteCompiler<'a, 'p> {
    pub plan: &'a Plan,
    pub names: &'a TemplateNames<'p>,
    pub values: &'a mut TemplateValues,
    pub patterns: &'a mut PatternCache,
    /// The offset from the monotonic clock to Unix time, ns.
    pub unix_offset_ns: u64,
    /// Whether users have cookies. If users have cookies, the heads of all responses are stored,
    /// and any request may change with the cookies.
    pub cookies: bool,
}

impl EncodedRoute {
    /// Sets the converter of gRPC messages. Returns an error if the body of the first request is
    /// not a valid message.
    pub fn set_grpc_converter(
        &mut self,
        plan: &Plan,
        text: &Arc<dyn GrpcMessageConverter>,
    ) -> Result<(), RequestEncodeError> {
        if let Some(checks) = &mut self.checks {
            checks.set_message_converter(Arc::clone(text));
        }
        let fills_body = |form: &&mut Box<RouteRequestBuilder>| {
            form.template.as_ref().is_some_and(RequestTemplate::has_body_template)
        };
        let Some(form) = self.request_builder.as_mut().filter(fills_body) else { return Ok(()) };
        form.messages = Some(GrpcBodyConverter { message_converter: Arc::clone(text), content: Vec::new() });
        let fits = form.convert_body_to_messages();
        let like = self.request.clone();
        self.request.rewrite(&like, &form.request_parts());
        // Captured values are unknown before the first response. A body that does not convert is
        // therefore no error yet if the plan captures values from responses.
        if fits || !plan.traffic.captured_names().is_empty() { Ok(()) } else { Err(RequestEncodeError::Message) }
    }
}

impl RouteCompiler<'_, '_> {
    pub fn compile(&mut self, route: &Route) -> Result<EncodedRoute, RequestEncodeError> {
        let mut request = route.request_to_send().into_owned();
        let template = RequestTemplate::compile(self.names, route)?;
        if let Some(form) = &template {
            self.values.fill(form, &mut request, &FillContext::for_first_request(self.unix_offset_ns / 1_000_000));
        }
        let checks = ResponseChecks::compile(route, self.patterns)?;
        let retention = match (&checks, self.cookies || route.redirects_max > 0) {
            (Some(_), _) => ResponseRetention::All,
            (None, true) => ResponseRetention::Head,
            (None, false) => ResponseRetention::Nothing,
        };
        let mut encoded = encode_request(self.plan, &request)?;
        let returns_stream = route.grpc.as_ref().is_some_and(|call| call.returns_stream);
        encoded = match &route.grpc {
            Some(call) if returns_stream && call.in_turn => encoded.with_messages_in_turn(),
            Some(_) if !returns_stream => encoded.requiring_one_response_message(),
            _ => encoded,
        };
        let is_written = template.is_some() || self.cookies || route.redirects_max > 0;
        Ok(EncodedRoute {
            ok_status: route.ok_status.clone(),
            ok_grpc: route.grpc.as_ref().map(|call| call.ok),
            has_message_times: returns_stream,
            timeout_ns: route.timeout_ns,
            redirects_max: route.redirects_max,
            request_builder: is_written.then(|| {
                let (host, keep_alive) = (host_field(self.plan), self.plan.connection_plan.keep_alive);
                let header_count_before_cookie = request.headers.len();
                Box::new(RouteRequestBuilder {
                    template,
                    request,
                    header_count_before_cookie,
                    unused_cookie_field: None,
                    host,
                    keep_alive,
                    messages: None,
                })
            }),
            request: if retention == ResponseRetention::Nothing { encoded } else { encoded.with_content() },
            retention,
            checks: checks.map(Box::new),
        })
    }
}

/// Returns the offset from the monotonic clock to Unix time, ns.
pub(crate) fn unix_offset_ns() -> u64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    unix.saturating_sub(plimsoll_sys::clock::monotonic_ns())
}

/// The encoded routes of a plan, and the filled-in request of each exchange, by exchange number.
#[derive(Debug, Clone)]
pub(crate) struct FilledRoutes {
    pub routes: Vec<EncodedRoute>,
    pub values: TemplateValues,
    filled: Vec<FilledRequest>,
    pub unix_offset_ns: u64,
}

#[derive(Debug, Clone)]
struct FilledRequest {
    request: EncodedRequest,
    /// Whether the exchange sends this filled-in request instead of the route's fixed one.
    is_filled_in: bool,
    /// The number of redirects that the exchange has followed.
    hops: u8,
    /// Whether a redirect that the exchange followed changed the method to GET.
    as_get: bool,
}

impl FilledRequest {
    /// Returns the filled-in request of `exchange` in `all`. If `exchange` has no filled-in
    /// request, creates one as a copy of `like`.
    fn for_exchange<'a>(
        all: &'a mut Vec<FilledRequest>,
        exchange: u32,
        like: &EncodedRequest,
    ) -> &'a mut FilledRequest {
        while all.len() <= exchange as usize {
            all.push(FilledRequest { request: like.clone(), is_filled_in: false, hops: 0, as_get: false });
        }
        &mut all[exchange as usize]
    }
}

/// Returns the path and query of an encoded request.
pub(crate) fn path_and_query(request: &EncodedRequest) -> &str {
    let target = request.h1().split(|byte| *byte == b' ').nth(1);
    target.and_then(|it| std::str::from_utf8(it).ok()).unwrap_or("/")
}

impl FilledRoutes {
    pub fn new(routes: Vec<EncodedRoute>, values: TemplateValues, unix_offset_ns: u64) -> FilledRoutes {
        FilledRoutes { routes, values, filled: Vec::new(), unix_offset_ns }
    }

    /// Fills in the request that `exchange` sends for `route`, which has a template. `cookies`
    /// writes the user's cookies for a given path and query.
    pub fn fill(
        &mut self,
        exchange: u32,
        route: RouteNumber,
        turn: &FillContext,
        cookies: &mut dyn FnMut(&str, &mut String),
    ) {
        let route = &mut self.routes[usize::from(route)];
        let Some(form) = &mut route.request_builder else { return };
        let filled = FilledRequest::for_exchange(&mut self.filled, exchange, &route.request);
        (filled.hops, filled.as_get) = (0, false);
        if let Some(templates) = &form.template {
            self.values.fill(templates, &mut form.request, turn);
            form.convert_body_to_messages();
        }
        form.set_cookie(cookies);
        filled.request.rewrite(&route.request, &form.request_parts());
        filled.is_filled_in = true;
    }

    /// Marks that `exchange` sends the fixed request of its route, not a filled-in one.
    pub fn use_fixed_request(&mut self, exchange: u32) {
        if let Some(filled) = self.filled.get_mut(exchange as usize) {
            (filled.is_filled_in, filled.hops, filled.as_get) = (false, 0, false);
        }
    }

    /// Prepares the next request of an exchange that follows a redirect: the exchange's first
    /// request, with the path of the redirect. `status` and `location` come from the redirect
    /// response. Returns the reason if the redirect cannot be followed. Redirects are rare, so this
    /// function may allocate memory.
    pub fn prepare_redirect(
        &mut self,
        exchange: u32,
        route: RouteNumber,
        (status, location): (u16, &str),
        origin: &Origin,
        turn: &FillContext,
        cookies: &mut dyn FnMut(&str, &mut String),
    ) -> Result<(), RedirectRefusal> {
        let target = redirect_target(location, path_and_query(self.request(exchange, route)), origin)?;
        let route = &mut self.routes[usize::from(route)];
        let Some(form) = &route.request_builder else { return Err(RedirectRefusal::TooManyRedirects) };
        let filled = FilledRequest::for_exchange(&mut self.filled, exchange, &route.request);
        if filled.hops >= route.redirects_max {
            return Err(RedirectRefusal::TooManyRedirects);
        }
        let mut form = form.as_ref().clone();
        if let Some(templates) = &form.template {
            self.values.fill(templates, &mut form.request, turn);
        }
        filled.as_get |= turns_into_get(status, &form.request.method);
        if filled.as_get {
            form.request.method = "GET".into();
            form.request.body.clear();
            let before = form.request.headers.len();
            form.request.headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("content-"));
            form.header_count_before_cookie -= before - form.request.headers.len();
        }
        form.request.target = target;
        form.set_cookie(cookies);
        filled.request.rewrite(&route.request, &form.request_parts());
        (filled.is_filled_in, filled.hops) = (true, filled.hops + 1);
        Ok(())
    }

    /// Returns the request that `exchange` sends for `route`: the filled-in one, or the fixed one
    /// of the route.
    #[inline]
    pub fn request(&self, exchange: u32, route: RouteNumber) -> &EncodedRequest {
        match self.filled.get(exchange as usize) {
            Some(filled) if filled.is_filled_in => &filled.request,
            _ => &self.routes[usize::from(route)].request,
        }
    }
}
