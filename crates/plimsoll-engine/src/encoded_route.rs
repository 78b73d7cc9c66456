//! A route of a plan as it goes on the wire: encoded once, or filled in anew for each exchange, and
//! what its answers are looked at for.
//!
//! Not here: which route is asked next.

use crate::answers::AnswerChecks;
use crate::encode::{encode_request, host_field};
use crate::fill::{FormError, FormNames, FormTurn, FormValues, RequestForm};
use crate::patterns::{PatternCache, PatternError};
use plimsoll_model::grpc_message::MessageText;
use plimsoll_model::traffic::StatusSet;
use plimsoll_model::{GrpcStatusSet, Origin, Plan, Request, Route, RouteNumber};
use plimsoll_wire::redirect::{RedirectRefusal, target_of, turns_into_get};
use plimsoll_wire::{EncodedRequest, h1};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Why the requests of a plan cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A request cannot be written as HTTP.
    #[error(transparent)]
    Request(#[from] h1::RequestError),
    /// One cannot be filled in.
    #[error(transparent)]
    Form(#[from] FormError),
    /// What an answer is to be cannot be told.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A body that is filled in is no message.
    #[error("its body, filled in, does not fit the message that the method takes")]
    Message,
    /// What each arrival asks is not said.
    #[error("the plan has no list of requests")]
    Unlisted,
}

/// What is kept of an answer while it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerRetention {
    /// Nothing: its status and its end are enough.
    Nothing,
    /// Its head.
    Head,
    /// Head and content.
    All,
}

/// A request as it goes on the wire, and what its answer is to be.
#[derive(Debug, Clone)]
pub struct EncodedRoute {
    /// Encoded once; where a form is to be filled in, as it is for the first.
    pub request: EncodedRequest,
    /// Statuses that are success.
    pub ok_status: StatusSet,
    /// Of a call of gRPC's, which of its ends are, too.
    pub ok_grpc: Option<GrpcStatusSet>,
    /// Its answers are streams of messages, each with a time of its own.
    pub times_messages: bool,
    /// From the moment it is started to the last byte.
    pub timeout_ns: u64,
    /// How many redirects are followed.
    pub follow: u8,
    /// What is kept of its answers.
    pub kept: AnswerRetention,
    /// What its answers are looked through for, if for anything.
    pub checks: Option<Box<AnswerChecks>>,
    /// What is filled in for each request.
    pub(crate) form: Option<Box<RouteForm>>,
}

/// A request of which parts are filled in, and room for that.
#[derive(Debug, Clone)]
pub(crate) struct RouteForm {
    /// `None`: nothing but cookies.
    form: Option<RequestForm>,
    request: Request,
    /// How many header fields are its own: cookies come behind them.
    headers: usize,
    /// Room for the field of cookies while there are none.
    cookie: Option<(String, String)>,
    host: String,
    keep_alive: bool,
    /// Of a call: what makes messages of the body.
    messages: Option<FilledMessages>,
}

/// Bodies that are made into messages.
#[derive(Debug, Clone)]
struct FilledMessages {
    text: Arc<dyn MessageText>,
    content: Vec<u8>,
}

impl RouteForm {
    /// Whether parts of it are templates.
    pub fn is_filled(&self) -> bool {
        self.form.is_some()
    }

    fn parts(&self) -> h1::RequestParts<'_> {
        let Request { method, target, headers, body } = &self.request;
        let body = self.messages.as_ref().map_or(body, |messages| &messages.content);
        h1::RequestParts { method, target, host: &self.host, headers, body, keep_alive: self.keep_alive }
    }

    /// Makes the body into messages, of a call. Returns whether it stands for any: else there are
    /// none, and it is the server that says so.
    fn make_messages(&mut self) -> bool {
        let Some(FilledMessages { text, content }) = &mut self.messages else { return true };
        content.clear();
        text.write(&self.request.body, content)
    }

    /// Whether it has cookies of its own: then a user's are not sent with it.
    fn has_cookie(&self) -> bool {
        self.request.headers[..self.headers].iter().any(|(name, _)| name.eq_ignore_ascii_case("cookie"))
    }

    /// Sends the cookies along that are written for its path and query, if there are any.
    fn set_cookie(&mut self, write: &mut dyn FnMut(&str, &mut String)) {
        if self.request.headers.len() > self.headers {
            self.cookie = self.request.headers.pop();
        }
        if self.has_cookie() {
            return;
        }
        let (name, mut value) = self.cookie.take().unwrap_or_else(|| ("Cookie".to_owned(), String::new()));
        value.clear();
        write(&self.request.target, &mut value);
        match value.is_empty() {
            true => self.cookie = Some((name, value)),
            false => self.request.headers.push((name, value)),
        }
    }
}

/// Compiles the routes of a plan.
pub(crate) struct RouteCompiler<'a, 'p> {
    pub plan: &'a Plan,
    pub names: &'a FormNames<'p>,
    pub values: &'a mut FormValues,
    pub patterns: &'a mut PatternCache,
    /// From our clock to the time of day, ns.
    pub unix_offset_ns: u64,
    /// Users have cookies: heads are kept, and every request may be written anew.
    pub cookies: bool,
}

impl EncodedRoute {
    /// Answers are messages with this text, and so is a body that is filled in, which is to fit as
    /// it is for the first.
    pub fn translate(&mut self, plan: &Plan, text: &Arc<dyn MessageText>) -> Result<(), SourceError> {
        if let Some(checks) = &mut self.checks {
            checks.read_by(Arc::clone(text));
        }
        let fills_body = |form: &&mut Box<RouteForm>| form.form.as_ref().is_some_and(RequestForm::fills_body);
        let Some(form) = self.form.as_mut().filter(fills_body) else { return Ok(()) };
        form.messages = Some(FilledMessages { text: Arc::clone(text), content: Vec::new() });
        let fits = form.make_messages();
        let like = self.request.clone();
        self.request.rewrite(&like, &form.parts());
        // What is captured is not known before the first answer.
        if fits || !plan.traffic.captured().is_empty() { Ok(()) } else { Err(SourceError::Message) }
    }
}

impl RouteCompiler<'_, '_> {
    pub fn compile(&mut self, route: &Route) -> Result<EncodedRoute, SourceError> {
        let mut request = route.on_wire().into_owned();
        let form = RequestForm::compile(self.names, route)?;
        if let Some(form) = &form {
            self.values.fill(form, &mut request, &FormTurn::first(self.unix_offset_ns / 1_000_000));
        }
        let checks = AnswerChecks::compile(route, self.patterns)?;
        let kept = match (&checks, self.cookies || route.follow > 0) {
            (Some(_), _) => AnswerRetention::All,
            (None, true) => AnswerRetention::Head,
            (None, false) => AnswerRetention::Nothing,
        };
        let mut encoded = encode_request(self.plan, &request)?;
        let gives_stream = route.grpc.as_ref().is_some_and(|call| call.gives_stream);
        encoded = match &route.grpc {
            Some(call) if gives_stream && call.in_turn => encoded.in_turn(),
            Some(_) if !gives_stream => encoded.with_one_message(),
            _ => encoded,
        };
        let is_written = form.is_some() || self.cookies || route.follow > 0;
        Ok(EncodedRoute {
            ok_status: route.ok_status.clone(),
            ok_grpc: route.grpc.as_ref().map(|call| call.ok),
            times_messages: gives_stream,
            timeout_ns: route.timeout_ns,
            follow: route.follow,
            form: is_written.then(|| {
                let (host, keep_alive) = (host_field(self.plan), self.plan.carriage.keep_alive);
                let headers = request.headers.len();
                Box::new(RouteForm { form, request, headers, cookie: None, host, keep_alive, messages: None })
            }),
            request: if kept == AnswerRetention::Nothing { encoded } else { encoded.with_content() },
            kept,
            checks: checks.map(Box::new),
        })
    }
}

/// From our clock to the time of day, in ns.
pub(crate) fn unix_offset_ns() -> u64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    unix.saturating_sub(plimsoll_sys::clock::monotonic_ns())
}

/// Routes, and the requests that were filled in from them, by the number of their exchange.
#[derive(Debug, Clone)]
pub(crate) struct FilledRoutes {
    pub routes: Vec<EncodedRoute>,
    pub values: FormValues,
    filled: Vec<FilledRequest>,
    pub unix_offset_ns: u64,
}

#[derive(Debug, Clone)]
struct FilledRequest {
    request: EncodedRequest,
    /// Whether the exchange asks it, and not what is always the same.
    is_asked: bool,
    /// Redirects that it has followed, and whether one of them has turned it into GET.
    hops: u8,
    as_get: bool,
}

impl FilledRequest {
    /// That of an exchange; there is room for it.
    fn for_exchange<'a>(
        all: &'a mut Vec<FilledRequest>,
        exchange: u32,
        like: &EncodedRequest,
    ) -> &'a mut FilledRequest {
        while all.len() <= exchange as usize {
            all.push(FilledRequest { request: like.clone(), is_asked: false, hops: 0, as_get: false });
        }
        &mut all[exchange as usize]
    }
}

/// The path and query of a request.
pub(crate) fn target(request: &EncodedRequest) -> &str {
    let target = request.h1().split(|byte| *byte == b' ').nth(1);
    target.and_then(|it| std::str::from_utf8(it).ok()).unwrap_or("/")
}

impl FilledRoutes {
    pub fn new(routes: Vec<EncodedRoute>, values: FormValues, unix_offset_ns: u64) -> FilledRoutes {
        FilledRoutes { routes, values, filled: Vec::new(), unix_offset_ns }
    }

    /// Fills in the request of an exchange for `route`, which has a form. `cookies` writes those
    /// for a path and query.
    pub fn fill(
        &mut self,
        exchange: u32,
        route: RouteNumber,
        turn: &FormTurn,
        cookies: &mut dyn FnMut(&str, &mut String),
    ) {
        let route = &mut self.routes[usize::from(route)];
        let Some(form) = &mut route.form else { return };
        let filled = FilledRequest::for_exchange(&mut self.filled, exchange, &route.request);
        (filled.hops, filled.as_get) = (0, false);
        if let Some(templates) = &form.form {
            self.values.fill(templates, &mut form.request, turn);
            form.make_messages();
        }
        form.set_cookie(cookies);
        filled.request.rewrite(&route.request, &form.parts());
        filled.is_asked = true;
    }

    /// The exchange asks what is always the same.
    pub fn leave(&mut self, exchange: u32) {
        if let Some(filled) = self.filled.get_mut(exchange as usize) {
            (filled.is_asked, filled.hops, filled.as_get) = (false, 0, false);
        }
    }

    /// Has an exchange for `route` ask where the answer redirects to: what it asked at its
    /// beginning, of another path. Redirects are few against requests: what they need may be
    /// allocated.
    pub fn redirect(
        &mut self,
        exchange: u32,
        route: RouteNumber,
        (status, location): (u16, &str),
        origin: &Origin,
        turn: &FormTurn,
        cookies: &mut dyn FnMut(&str, &mut String),
    ) -> Result<(), RedirectRefusal> {
        let target = target_of(location, target(self.request(exchange, route)), origin)?;
        let route = &mut self.routes[usize::from(route)];
        let Some(form) = &route.form else { return Err(RedirectRefusal::TooOften) };
        let filled = FilledRequest::for_exchange(&mut self.filled, exchange, &route.request);
        if filled.hops >= route.follow {
            return Err(RedirectRefusal::TooOften);
        }
        let mut form = form.as_ref().clone();
        if let Some(templates) = &form.form {
            self.values.fill(templates, &mut form.request, turn);
        }
        filled.as_get |= turns_into_get(status, &form.request.method);
        if filled.as_get {
            form.request.method = "GET".into();
            form.request.body.clear();
            let before = form.request.headers.len();
            form.request.headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("content-"));
            form.headers -= before - form.request.headers.len();
        }
        form.request.target = target;
        form.set_cookie(cookies);
        filled.request.rewrite(&route.request, &form.parts());
        (filled.is_asked, filled.hops) = (true, filled.hops + 1);
        Ok(())
    }

    /// The request of an exchange for `route`, which has a form.
    #[inline]
    pub fn request(&self, exchange: u32, route: RouteNumber) -> &EncodedRequest {
        match self.filled.get(exchange as usize) {
            Some(filled) if filled.is_asked => &filled.request,
            _ => &self.routes[usize::from(route)].request,
        }
    }
}
