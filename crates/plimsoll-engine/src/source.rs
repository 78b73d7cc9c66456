//! The source of requests: the encoded requests of a load, and the rule that selects each user's
//! next request.
//!
//! A user sends its requests in sequence until [`UserAction::End`]. After [`UserAction::End`], an
//! arrival of an open loop is done, and a user of a closed loop begins again. Every kind of source
//! is a variant of [`RequestSource`], so that a load of a single URL costs only one branch per
//! request.
//!
//! Not here: when a user begins, and which connection it uses.

use crate::answers::{FailedCheck, StoredResponse};
use crate::author_source::AuthorSource;
use crate::encoded_route::{EncodedRoute, FilledRoutes, RequestEncodeError, RouteCompiler, unix_offset_ns};
use crate::mix_source::MixSource;
use crate::patterns::PatternCache;
use crate::replay_source::ReplaySource;
use crate::session_source::{EndedSession, ResponseCheckInput, SessionSource};
use crate::template_fill::{TemplateNames, TemplateValues};
use crate::users::{LastRequest, UserAction, WorkerUsers};
use plimsoll_model::grpc_message::RouteMessageConverters;
use plimsoll_model::traffic::RouteChoice;
use plimsoll_model::{Plan, RequestFailure, RouteNumber, Stripe};
use plimsoll_wire::redirect::RedirectRefusal;
use plimsoll_wire::tls::TlsParameters;
use plimsoll_wire::{Author, EncodedRequest, ResponsePiece, ResponseTimes};

/// A source of requests: encoded requests, and the rule that selects each user's next request.
#[derive(Debug)]
pub enum RequestSource {
    /// A single request, which each user sends once.
    Single([EncodedRoute; 1]),
    /// Each user sends one request, which is drawn at random by weight.
    Weighted(MixSource),
    /// Each user runs a session of a scenario.
    Sessions(Box<SessionSource>),
    /// An author (a script) writes the requests, batch by batch.
    Authored([EncodedRoute; 1], Box<AuthorSource>),
    /// Each arrival sends the next request of a list.
    Replayed { routes: Vec<EncodedRoute>, requests: ReplaySource },
    /// For tests: each user performs the actions in `steps`.
    #[cfg(test)]
    Script { routes: Vec<EncodedRoute>, steps: Vec<UserAction>, at: std::collections::HashMap<u64, usize> },
}

impl RequestSource {
    /// Compiles the source of `plan`: encodes its fixed requests, and compiles its templates and
    /// checks.
    pub fn compile(plan: &Plan) -> Result<RequestSource, RequestEncodeError> {
        let unix_offset_ns = unix_offset_ns();
        let (names, mut values) = (TemplateNames::new(plan), TemplateValues::new(plan));
        let cookies = plan.traffic.choice == RouteChoice::Scenarios;
        let mut patterns = PatternCache::default();
        let mut compiler = RouteCompiler {
            plan,
            names: &names,
            values: &mut values,
            patterns: &mut patterns,
            unix_offset_ns,
            cookies,
        };
        if let [only] = plan.traffic.routes.as_slice()
            && !only.template_flags.any_template()
            && only.redirects_max == 0
            && plan.traffic.choice == RouteChoice::Weighted
        {
            return Ok(RequestSource::Single([compiler.compile(only)?]));
        }
        let routes = plan.traffic.routes.iter().map(|route| compiler.compile(route)).collect::<Result<_, _>>()?;
        let users = WorkerUsers::new(Stripe::WHOLE_SCHEDULE, None, values.unique_row_count());
        let filled = |routes| FilledRoutes::new(routes, values, unix_offset_ns);
        Ok(match plan.traffic.choice {
            RouteChoice::Weighted => RequestSource::Weighted(MixSource::new(plan, filled(routes), users)),
            RouteChoice::Scenarios => {
                RequestSource::Sessions(Box::new(SessionSource::new(plan, &names, filled(routes), users)?))
            }
            RouteChoice::RequestList => {
                let listed = plan.traffic.request_list.as_ref().ok_or(RequestEncodeError::MissingRequestList)?;
                RequestSource::Replayed { routes, requests: ReplaySource::compile(plan, listed)? }
            }
        })
    }

    /// Sets the converters of gRPC messages, which checks and filled-in bodies need.
    pub fn with_message_converters(
        mut self,
        plan: &Plan,
        texts: &RouteMessageConverters,
    ) -> Result<RequestSource, RequestEncodeError> {
        let routes = match &mut self {
            RequestSource::Single(routes) => &mut routes[..],
            RequestSource::Weighted(weighted) => &mut weighted.filled.routes,
            RequestSource::Sessions(sessions) => &mut sessions.filled.routes,
            RequestSource::Authored(routes, _) => &mut routes[..],
            RequestSource::Replayed { routes, .. } => routes,
            #[cfg(test)]
            RequestSource::Script { routes, .. } => routes,
        };
        for (route, text) in routes.iter_mut().zip(texts) {
            text.as_ref().map_or(Ok(()), |text| route.set_grpc_converter(plan, text))?;
        }
        Ok(self)
    }

    /// Returns the source of one worker. `stripe` is the worker's share of the load; `users` is the
    /// number of users of a closed loop.
    pub fn for_worker(&self, stripe: Stripe, users: Option<u64>) -> RequestSource {
        match self {
            RequestSource::Single(routes) => RequestSource::Single(routes.clone()),
            RequestSource::Weighted(weighted) => {
                let mut weighted = weighted.clone();
                weighted.users = WorkerUsers::new(stripe, users, weighted.filled.values.unique_row_count());
                RequestSource::Weighted(weighted)
            }
            RequestSource::Sessions(sessions) => {
                let mut sessions = sessions.clone();
                sessions.set_users(WorkerUsers::new(stripe, users, sessions.filled.values.unique_row_count()));
                RequestSource::Sessions(sessions)
            }
            // An author (script) belongs to a single worker, so the copy of the source for another
            // worker has no author.
            RequestSource::Authored(routes, _) => RequestSource::Single(routes.clone()),
            RequestSource::Replayed { routes, requests } => {
                let mut requests = requests.clone();
                requests.set_users(WorkerUsers::new(stripe, users, None));
                RequestSource::Replayed { routes: routes.clone(), requests }
            }
            #[cfg(test)]
            RequestSource::Script { routes, steps, at } => {
                RequestSource::Script { routes: routes.clone(), steps: steps.clone(), at: at.clone() }
            }
        }
    }

    /// Returns a source whose requests `author` (a script) writes. All figures count the requests
    /// of the author (script) under the first route.
    pub fn with_author(self, author: Box<dyn Author>, is_open: bool) -> RequestSource {
        let route = EncodedRoute { request_builder: None, ..self.route(0).clone() };
        let authored = AuthorSource::new(route.request.clone(), author, is_open);
        RequestSource::Authored([route], Box::new(authored))
    }

    /// Returns all routes of the source, by number.
    #[inline]
    pub fn routes(&self) -> &[EncodedRoute] {
        match self {
            RequestSource::Single(routes) => routes,
            RequestSource::Weighted(weighted) => &weighted.filled.routes,
            RequestSource::Sessions(sessions) => &sessions.filled.routes,
            RequestSource::Authored(routes, _) => routes,
            RequestSource::Replayed { routes, .. } => routes,
            #[cfg(test)]
            RequestSource::Script { routes, .. } => routes,
        }
    }

    /// Returns the route with this number.
    #[inline]
    pub fn route(&self, number: RouteNumber) -> &EncodedRoute {
        &self.routes()[usize::from(number)]
    }

    /// Returns whether a request is available. An author (script) may write the request during this
    /// call, which takes time.
    #[inline]
    pub fn ensure_request_ready(&mut self) -> bool {
        match self {
            RequestSource::Authored(_, authored) => authored.prepare_batch(),
            _ => true,
        }
    }

    /// Returns the number of messages (requests of a batch) that `exchange` is about to send.
    #[inline]
    pub fn message_count(&self, exchange: u32) -> u32 {
        match self {
            RequestSource::Authored(_, authored) => authored.request(exchange).messages(),
            _ => 1,
        }
    }

    /// Returns the number of requests that an arrival would have sent, which count as unsent if the
    /// arrival does not start.
    pub fn messages_per_arrival(&self) -> u32 {
        match self {
            RequestSource::Authored(_, authored) => authored.messages,
            _ => 1,
        }
    }

    /// Returns whether an author (script) wants the responses, with head and content.
    #[inline]
    pub fn wants_responses(&self) -> bool {
        matches!(self, RequestSource::Authored(_, authored) if authored.wants_responses)
    }

    /// Stores a piece of a response for the author (script).
    #[cold]
    pub fn add_response_piece(&mut self, exchange: u32, piece: ResponsePiece) {
        if let RequestSource::Authored(_, authored) = self {
            authored.add_response_piece(exchange, piece);
        }
    }

    /// Reports to the author (script) that `exchange` ended without a response.
    #[cold]
    pub fn report_missing_response(&mut self, exchange: u32, failure: RequestFailure, times: ResponseTimes) {
        if let RequestSource::Authored(_, authored) = self {
            authored.report_missing_response(exchange, failure, times);
        }
    }

    /// Reports the TLS parameters of a newly opened connection to the author (script).
    #[cold]
    pub fn report_tls_parameters(&mut self, agreed: &dyn Fn() -> Option<TlsParameters>) {
        if let RequestSource::Authored(_, authored) = self
            && authored.wants_responses
        {
            authored.report_tls_parameters(agreed);
        }
    }

    /// Reports a complete response to the author (script), or lets the author follow the redirect
    /// in the response. The pair `ends` says whether the response is the last response of the
    /// exchange, and whether the author (script) may follow a redirect. Returns whether the
    /// exchange sends another request.
    #[inline(never)]
    pub fn report_response(
        &mut self,
        exchange: u32,
        status: u16,
        piece: ResponsePiece,
        times: ResponseTimes,
        ends: (bool, bool),
    ) -> bool {
        match self {
            RequestSource::Authored(_, authored) => authored.report_response(exchange, status, piece, times, ends),
            _ => false,
        }
    }

    /// Prepares the request that `exchange` sends for `user`, and fills in its template. Returns
    /// whether the preparation took time. A fixed request needs no preparation.
    #[inline]
    pub fn prepare_request(&mut self, exchange: u32, user: u64, route: RouteNumber, now_ns: u64) -> bool {
        match self {
            RequestSource::Weighted(weighted) => match &weighted.filled.routes[usize::from(route)].request_builder {
                Some(form) if form.has_template() => {
                    weighted.fill_request(exchange, user, route, now_ns);
                    true
                }
                Some(_) => {
                    weighted.filled.use_fixed_request(exchange);
                    false
                }
                None => false,
            },
            RequestSource::Sessions(sessions) => sessions.fill_request(exchange, user, route, now_ns),
            RequestSource::Authored(_, authored) => {
                authored.assign_batch(exchange);
                true
            }
            RequestSource::Replayed { routes, requests } => {
                requests.write(exchange, user, &routes[usize::from(route)].request);
                true
            }
            _ => false,
        }
    }

    /// Returns the request that `exchange` sends.
    #[inline]
    pub fn request(&self, exchange: u32, route: RouteNumber) -> &EncodedRequest {
        let of_route = self.route(route);
        match self {
            RequestSource::Weighted(weighted) if of_route.request_builder.is_some() => {
                weighted.filled.request(exchange, route)
            }
            RequestSource::Sessions(sessions) => sessions.filled.request(exchange, route),
            RequestSource::Authored(_, authored) => authored.request(exchange),
            RequestSource::Replayed { requests, .. } => requests.request(exchange),
            _ => &of_route.request,
        }
    }

    /// Prepares the request that follows a redirect. `of` contains the exchange and its user. `to`
    /// contains the status and the `Location` field of the redirect response. Returns the reason if
    /// the redirect cannot be followed.
    #[cold]
    pub fn prepare_redirect(
        &mut self,
        of: (u32, u64),
        route: RouteNumber,
        to: (u16, &str),
        now_ns: u64,
    ) -> Result<(), RedirectRefusal> {
        match self {
            RequestSource::Weighted(weighted) => weighted.prepare_redirect(of, route, to, now_ns),
            RequestSource::Sessions(sessions) => sessions.prepare_redirect(of, route, to, now_ns),
            _ => Err(RedirectRefusal::TooManyRedirects),
        }
    }

    /// Checks a stored response, if its status counts as success. Returns the first failed check;
    /// `None` if no check fails.
    #[inline(never)]
    pub fn check_response(&mut self, input: ResponseCheckInput, answer: &StoredResponse) -> Option<FailedCheck> {
        let routes = match self {
            RequestSource::Single(routes) => &mut routes[..],
            RequestSource::Weighted(weighted) => &mut weighted.filled.routes,
            RequestSource::Sessions(sessions) => return sessions.check_response(input, answer),
            RequestSource::Authored(routes, _) => &mut routes[..],
            RequestSource::Replayed { routes, .. } => routes,
            #[cfg(test)]
            RequestSource::Script { routes, .. } => routes,
        };
        let checks = routes[usize::from(input.route)].checks.as_mut().filter(|_| input.has_ok_status)?;
        checks.check_response(answer, input.took_ns, &mut |_, _| {})
    }

    /// Returns the error message for a failed check of `route`.
    pub fn failed_check_message(&self, route: RouteNumber, miss: FailedCheck) -> &str {
        self.route(route).checks.as_ref().map_or("", |checks| checks.reason(miss))
    }

    /// Returns whether this status counts as success for a request of `user` to `route`.
    #[inline]
    pub fn is_success_status(&self, route: RouteNumber, user: u64, status: u16) -> bool {
        self.route(route).ok_status.contains(status)
            || matches!(self, RequestSource::Replayed { requests, .. } if requests.is_logged_success_status(user, status))
    }

    /// Returns whether the status of a response to `user` differs from the status in the replayed
    /// log.
    #[inline]
    pub fn differs_from_logged_status(&self, user: u64, status: u16) -> bool {
        matches!(self, RequestSource::Replayed { requests, .. } if requests.differs_from_logged_status(user, status))
    }

    /// Returns the converted content of the route's last response; `None` if the content was used
    /// as received.
    pub fn converted_content(&self, route: RouteNumber) -> Option<&[u8]> {
        self.route(route).checks.as_ref()?.converted_content()
    }

    /// Returns whether the source has no more requests: every row of a table with unique rows is
    /// used, or the author (script) has stopped.
    pub fn has_no_more_requests(&self) -> bool {
        match self {
            RequestSource::Weighted(weighted) => weighted.users.is_out_of_unique_rows(),
            RequestSource::Sessions(sessions) => sessions.users.is_out_of_unique_rows(),
            RequestSource::Authored(_, authored) => authored.stop_reason.is_some(),
            _ => false,
        }
    }

    /// Returns whether the author (script) has stopped. After the author (script) has stopped, no
    /// user may send another request, whatever the schedule says.
    pub fn has_script_stopped(&self) -> bool {
        matches!(self, RequestSource::Authored(_, authored) if authored.stop_reason.is_some())
    }

    /// Returns the next action of `user`. `last` is the result of the user's last request; `None`
    /// if the user begins.
    #[inline]
    pub fn next_action(&mut self, user: u64, last: Option<&LastRequest>) -> UserAction {
        match self {
            RequestSource::Single(_) if last.is_none() => UserAction::Send(0),
            RequestSource::Weighted(weighted) if last.is_none() => {
                weighted.draw_route(user).map_or(UserAction::End, UserAction::Send)
            }
            RequestSource::Sessions(sessions) => sessions.next(user, last),
            RequestSource::Replayed { requests, .. } if last.is_none() => {
                requests.begin(user);
                requests.route_for_user(user).map_or(UserAction::End, UserAction::Send)
            }
            RequestSource::Authored(_, authored) if last.is_none() => match authored.user_delay_ns() {
                None => UserAction::End,
                Some(0) => UserAction::Send(0),
                Some(ns) => UserAction::Wait(ns, 0),
            },
            RequestSource::Single(_)
            | RequestSource::Weighted(_)
            | RequestSource::Authored(..)
            | RequestSource::Replayed { .. } => UserAction::End,
            #[cfg(test)]
            RequestSource::Script { steps, at, .. } => {
                let at = at.entry(user).or_default();
                *at = if last.is_none() { 0 } else { *at + 1 };
                steps.get(*at).copied().unwrap_or(UserAction::End)
            }
        }
    }

    /// Returns the sessions of scenarios; `None` for a source without scenarios.
    #[inline]
    pub fn sessions(&mut self) -> Option<&mut SessionSource> {
        match self {
            RequestSource::Sessions(sessions) => Some(sessions),
            _ => None,
        }
    }

    /// Returns the session that the last [`UserAction::End`] ended.
    #[inline]
    pub fn take_ended_session(&mut self) -> Option<EndedSession> {
        self.sessions()?.take_ended_session()
    }

    /// Returns whether any session is active.
    #[inline]
    pub fn has_active_sessions(&self) -> bool {
        matches!(self, RequestSource::Sessions(sessions) if sessions.has_active_sessions())
    }

    /// Returns the number of active sessions that count in the measured window.
    pub fn active_measured_sessions(&self) -> u64 {
        match self {
            RequestSource::Sessions(sessions) => sessions.active_measured_sessions(),
            _ => 0,
        }
    }

    /// Returns the longest timeout of all routes, ns.
    pub fn timeout_ns_max(&self) -> u64 {
        self.routes().iter().map(|route| route.timeout_ns).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::data::{RowChoice, ValueTable};
    use plimsoll_model::{
        LoadCurve, LoadShape, Outcome, ReplayFacts, Request, RequestList, RequestListEntry, RequestTargets,
    };
    use plimsoll_wire::h1;
    use std::sync::Arc;

    fn plan_with_weights(weights: &[u32]) -> Plan {
        let mut plan = Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) });
        let route = |(number, weight): (usize, &u32)| plimsoll_model::Route {
            weight: *weight,
            ..plimsoll_model::Route::new(Request { target: format!("/{number}"), ..Request::get_root() })
        };
        plan.traffic.routes = weights.iter().enumerate().map(route).collect();
        plan
    }

    fn draw_route(source: &mut RequestSource, user: u64) -> usize {
        match source.next_action(user, None) {
            UserAction::Send(route) => {
                let last = LastRequest { route, status: 200, outcome: Outcome::Success };
                assert_eq!(source.next_action(user, Some(&last)), UserAction::End);
                usize::from(route)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn routes_are_drawn_by_weight() {
        let weights = [80, 0, 15, 5];
        let whole = RequestSource::compile(&plan_with_weights(&weights)).expect("compiles");
        assert!(whole.routes()[2].request.h1().starts_with(b"GET /2 "));
        // The load is a hundred thousand arrivals, or one user with as many requests.
        for users in [None, Some(1)] {
            let mut source = whole.for_worker(Stripe::WHOLE_SCHEDULE, users);
            let mut counts = [0u32; 4];
            (0..100_000).for_each(|n| counts[draw_route(&mut source, if users.is_none() { n } else { 0 })] += 1);
            for (count, weight) in counts.into_iter().zip(weights) {
                let (expect, count) = (f64::from(weight) * 1e3, f64::from(count));
                assert!((count - expect).abs() <= 4.0 * expect.sqrt(), "{users:?}: {counts:?}");
            }
        }
    }

    /// Returns the requests of each user in a closed loop that is divided among `of` workers.
    fn user_requests(whole: &RequestSource, of: u64, users: u64, turns: u64) -> Vec<Vec<String>> {
        let of_user = |user: u64| {
            let mut source = whole.for_worker(Stripe::new(user % of, of), Some(users));
            let mut request = |turn| {
                let UserAction::Send(route) = source.next_action(user / of, None) else { return "nothing".to_owned() };
                assert!(source.prepare_request(turn as u32 % 3, user / of, route, 0));
                String::from_utf8(source.request(turn as u32 % 3, route).h1().to_vec()).expect("text")
            };
            (0..turns).map(&mut request).collect()
        };
        (0..users).map(of_user).collect()
    }

    #[test]
    fn template_values_depend_on_the_seed_and_not_on_the_workers() {
        let mut plan = plan_with_weights(&[1, 2]);
        for route in &mut plan.traffic.routes {
            route.request.target = "/{{ seq() }}/{{ uuid() }}/{{ int(1,1000000) }}".into();
            route.request.body = b"{{ text(20) }}{{ seq() }}".to_vec();
            route.template_flags = plimsoll_model::traffic::TemplateFlags { target: true, headers: false, body: true };
        }
        let whole = RequestSource::compile(&plan).expect("compiles");
        let one = user_requests(&whole, 1, 6, 20);
        assert!(one[0][0].starts_with("GET /1/") && one[5][1].starts_with("GET /12/"), "{one:?}");
        assert!(one[5][1].contains("\r\nContent-Length: 22\r\n\r\n") && one[5][1].ends_with("12"), "{}", one[5][1]);
        assert_eq!(one, user_requests(&whole, 2, 6, 20));
        assert_eq!(one, user_requests(&whole, 3, 6, 20));
        let mut all: Vec<&String> = one.iter().flatten().collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 120, "none is asked twice");
        plan.load.seed += 1;
        assert_ne!(one, user_requests(&RequestSource::compile(&plan).expect("compiles"), 1, 6, 20));
    }

    #[test]
    fn unique_data_rows_run_out() {
        let mut plan = plan_with_weights(&[1]);
        let mut data = ValueTable::new("user".into(), vec!["id".into()], RowChoice::Unique, false);
        (0..7).for_each(|row| data.push([format!("u{row}").as_str()].into_iter()).expect("room"));
        plan.traffic.data = vec![Arc::new(data)];
        plan.traffic.routes[0].request.target = "/{{ user.id }}".into();
        plan.traffic.routes[0].template_flags.target = true;
        let whole = RequestSource::compile(&plan).expect("compiles");
        let mut seen = Vec::new();
        for index in 0..2 {
            let mut source = whole.for_worker(Stripe::new(index, 2), Some(4));
            // One of the worker's two users sends its requests much faster than the other user.
            while let UserAction::Send(route) = source.next_action(0, None) {
                source.prepare_request(0, 0, route, 0);
                seen.push(source.request(0, route).h1()[4..7].to_vec());
            }
            assert!(source.has_no_more_requests());
            assert_eq!(source.next_action(1, None), UserAction::End);
        }
        seen.sort();
        assert_eq!(seen, (0..7).map(|row| format!("/u{row}").into_bytes()).collect::<Vec<_>>());
    }

    #[test]
    fn random_routes_depend_on_the_seed_and_not_on_the_workers() {
        let mut plan = plan_with_weights(&[1, 1, 1]);
        let whole = RequestSource::compile(&plan).expect("compiles");
        let arrivals = |source: &RequestSource| -> Vec<usize> {
            (0..50).map(|n| draw_route(&mut source.for_worker(Stripe::WHOLE_SCHEDULE, None), n)).collect()
        };
        let users = |of: u64| -> Vec<Vec<usize>> {
            (0..6)
                .map(|user| {
                    let stripe = Stripe::new(user % of, of);
                    let mut source = whole.for_worker(stripe, Some(6));
                    (0..20).map(|_| draw_route(&mut source, user / of)).collect()
                })
                .collect()
        };
        assert_eq!(users(1), users(2));
        assert_eq!(users(1), users(3));
        assert_ne!(users(1)[0], users(1)[1]);
        assert_eq!(arrivals(&whole), arrivals(&whole.for_worker(Stripe::new(1, 2), None)));
        plan.load.seed += 1;
        assert_ne!(arrivals(&whole), arrivals(&RequestSource::compile(&plan).expect("compiles")));
    }

    #[test]
    fn a_request_list_is_sent_in_order() {
        let mut plan = plan_with_weights(&[1, 1]);
        (plan.traffic.routes[1].request.method, plan.traffic.choice) = ("HEAD".into(), RouteChoice::RequestList);
        assert!(matches!(RequestSource::compile(&plan), Err(RequestEncodeError::MissingRequestList)));
        let mut targets = RequestTargets::default();
        ["/a", "/b?c=d"].iter().for_each(|target| _ = targets.push(target));
        let entry = |(target, route, status)| RequestListEntry { target, route, status };
        let entries = [(0, 0, 200), (1, 1, 404), (1, 0, 500)].map(entry).to_vec();
        plan.traffic.request_list = Some(Arc::new(RequestList {
            targets: targets.into(),
            entries,
            sessions: None,
            facts: ReplayFacts::default(),
        }));
        let mut source = RequestSource::compile(&plan).expect("compiles").for_worker(Stripe::new(1, 2), None);
        for (number, expect) in [(0, "GET /a "), (1, "HEAD /b?c=d "), (2, "GET /b?c=d ")] {
            let UserAction::Send(route) = source.next_action(number, None) else { panic!("{number}") };
            assert!(source.prepare_request(1, number, route, 0));
            let bytes = String::from_utf8_lossy(source.request(1, route).h1()).into_owned();
            assert!(bytes.starts_with(expect), "{bytes}");
            let last = LastRequest { route, status: 200, outcome: Outcome::Success };
            assert_eq!(source.next_action(number, Some(&last)), UserAction::End);
        }
        // After the last entry of the list, the load continues with the first entry.
        assert_eq!(
            (source.next_action(3, None), source.next_action(4, None)),
            (UserAction::Send(0), UserAction::Send(1))
        );
        for (number, status, succeeds, changed) in [
            (0, 200, true, false),
            (1, 404, true, false),
            (1, 200, true, true),
            (2, 500, false, false),
            (0, 404, false, true),
        ] {
            assert_eq!(
                (source.is_success_status(0, number, status), source.differs_from_logged_status(number, status)),
                (succeeds, changed)
            );
        }
        // All users share the list. The seed of the load chooses the entry of the list at which the
        // users begin.
        let whole = RequestSource::compile(&plan).expect("compiles");
        let asked: Vec<Vec<RouteNumber>> = (0..2)
            .map(|index| {
                let mut source = whole.for_worker(Stripe::new(index, 2), Some(2));
                let mut next = || match source.next_action(0, None) {
                    UserAction::Send(route) => route,
                    other => panic!("{other:?}"),
                };
                (0..6).map(|_| next()).collect()
            })
            .collect();
        let together: Vec<RouteNumber> = (0..6).flat_map(|turn| [asked[0][turn], asked[1][turn]]).collect();
        let begins_at = (plimsoll_model::rng::mix_bits(plan.load.seed) % 3) as usize;
        let expect: Vec<RouteNumber> = [0, 1, 0].into_iter().cycle().skip(begins_at).take(12).collect();
        assert_eq!(together, expect);
        let listed = plan.traffic.request_list.as_mut().expect("listed");
        Arc::make_mut(&mut Arc::make_mut(listed).targets).push("/a b").expect("room");
        assert!(matches!(RequestSource::compile(&plan), Err(RequestEncodeError::Request(h1::RequestError::Target(_)))));
    }
}
