//! A request source whose users run sessions of scenarios. The source captures values from a user's
//! responses, and inserts the captured values into later requests of the user.
//!
//! Not here: the steps of a session ([`crate::sessions`]), the start of a session, and counting.

use crate::answers::{FailedCheck, StoredResponse};
use crate::cookies::CookieScope;
use crate::encoded_route::{FilledRoutes, RequestEncodeError, path_and_query};
use crate::sessions::{SessionStep, UserSession, UserSessions};
use crate::template_fill::{FillContext, TemplateNames, TextTemplate};
use crate::users::{LastRequest, UserAction, WorkerUsers};
use plimsoll_model::session::SessionOp;
use plimsoll_model::{Origin, Outcome, Plan, RouteNumber};
use plimsoll_wire::redirect::RedirectRefusal;

/// A session that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedSession {
    /// The session's intended start (absolute, ns).
    pub intended_ns: u64,
    /// Whether the session counts in the measured window.
    pub measured: bool,
    /// Whether the session completed; false if the session ended early or one of its requests
    /// failed.
    pub completed: bool,
    /// The slot of the session's own connection, if it had one.
    pub slot: Option<u32>,
}

/// Facts about a complete response that its checks need: the user, the route, the status and the
/// times.
#[derive(Debug, Clone, Copy)]
pub struct ResponseCheckInput {
    /// The number of the user that got the response.
    pub user: u64,
    /// The route of the request.
    pub route: RouteNumber,
    /// The number of the exchange that received the response.
    pub exchange: u32,
    /// Whether the status counts as success for the route.
    pub has_ok_status: bool,
    /// The response time from the intended start, ns.
    pub took_ns: u64,
    /// The current time (absolute, ns).
    pub now_ns: u64,
}

/// A source whose users run sessions of scenarios.
#[derive(Debug, Clone)]
pub struct SessionSource {
    pub(crate) filled: FilledRoutes,
    pub(crate) users: WorkerUsers,
    sessions: UserSessions,
    /// By scenario and operation, the compiled condition of the operation; `None` if the operation
    /// has no condition.
    conditions: Vec<Vec<Option<TextTemplate>>>,
    /// For each route, the numbers of the names under which values captured from its responses are
    /// stored.
    capture_numbers_by_route: Vec<Vec<usize>>,
    origin: Origin,
    /// Whether each session belongs to a new user; see
    /// [`Load::new_users`](plimsoll_model::Load::new_users).
    new_user_each_session: bool,
    /// The session that ended last; `None` after `take_ended_session` has returned it.
    ended: Option<EndedSession>,
    /// A reused buffer for a filled-in text.
    scratch: String,
}

impl SessionSource {
    pub(crate) fn new(
        plan: &Plan,
        names: &TemplateNames,
        filled: FilledRoutes,
        users: WorkerUsers,
    ) -> Result<SessionSource, RequestEncodeError> {
        let traffic = &plan.traffic;
        let number = |name: &str| names.capture_number(name).unwrap_or(0);
        let captured = traffic.routes.iter().map(|route| route.captures.iter().map(|it| number(&it.name)).collect());
        let condition = |op: &SessionOp| match op {
            SessionOp::JumpUnlessText { text, .. } => TextTemplate::compile(names, text).map(Some),
            _ => Ok(None),
        };
        let conditions = traffic.scenarios.iter().map(|scenario| scenario.ops.iter().map(condition).collect());
        Ok(SessionSource {
            conditions: conditions.collect::<Result<_, _>>()?,
            capture_numbers_by_route: captured.collect(),
            sessions: UserSessions::new(
                traffic.scenarios.clone(),
                plan.load.seed,
                names.capture_name_count(),
                users.restarts_after_end() && !plan.load.new_users,
            ),
            filled,
            users,
            origin: traffic.origin.clone(),
            new_user_each_session: plan.load.new_users,
            ended: None,
            scratch: String::new(),
        })
    }

    /// Sets the users of the worker that runs the sessions.
    pub(crate) fn set_users(&mut self, users: WorkerUsers) {
        self.sessions.set_keeps_user_state(users.restarts_after_end() && !self.new_user_each_session);
        self.users = users;
    }

    /// Returns the next action of `user`. `last` is the result of the user's last request; `None`
    /// if the user begins a session.
    pub fn next(&mut self, user: u64, last: Option<&LastRequest>) -> UserAction {
        let went_well = match last {
            Some(last) => last.outcome == Outcome::Success,
            None => {
                if self.users.start_user(user).is_none() {
                    return UserAction::End;
                }
                self.sessions.begin(user, self.users.start_number(user));
                true
            }
        };
        let (values, conditions, scratch) = (&mut self.filled.values, &self.conditions, &mut self.scratch);
        let unique = self.users.unique_row(user);
        let step = self.sessions.next_step(user, went_well, &mut |session, scenario, at| {
            let Some(text) = conditions[scenario][at].as_ref() else { return true };
            scratch.clear();
            values.write_text(text, &fill_context(session, unique, 0), scratch);
            scratch.is_empty()
        });
        match step {
            SessionStep::Send { wait_ns: 0, route } => UserAction::Send(route),
            SessionStep::Send { wait_ns, route } => UserAction::Wait(wait_ns, route),
            SessionStep::Completed | SessionStep::Abandoned => {
                self.ended = self.end(user, step == SessionStep::Completed);
                UserAction::End
            }
        }
    }

    /// Sets the intended start of the session of `user`, and whether the session is measured.
    pub fn set_session_start(&mut self, user: u64, intended_ns: u64, measured: bool) {
        if let Some(session) = self.sessions.active_session_mut(user) {
            (session.intended_ns, session.measured) = (intended_ns, measured);
        }
    }

    /// Ends the active session of `user` early and returns it; `None` without an active session.
    pub fn end_session_early(&mut self, user: u64) -> Option<EndedSession> {
        self.end(user, false)
    }

    fn end(&mut self, user: u64, completed: bool) -> Option<EndedSession> {
        let session = self.sessions.active_session(user)?;
        let UserSession { intended_ns, measured, slot, .. } = *session;
        self.sessions.end(user);
        Some(EndedSession { intended_ns, measured, completed, slot })
    }

    /// Returns the session that the last [`UserAction::End`] ended.
    pub fn take_ended_session(&mut self) -> Option<EndedSession> {
        self.ended.take()
    }

    /// Returns whether any session is active.
    pub fn has_active_sessions(&self) -> bool {
        self.sessions.has_active_sessions()
    }

    /// Returns the number of active sessions that count in the measured window.
    pub fn active_measured_sessions(&self) -> u64 {
        self.sessions.active_measured_sessions()
    }

    /// Returns whether the active session of `user` needs a connection of its own.
    pub fn needs_own_connection(&self, user: u64) -> bool {
        self.sessions.needs_own_connection(user)
    }

    /// Returns the slot of the connection that only the session of `user` uses; `None` if the
    /// session has no own connection.
    pub fn own_connection_slot(&self, user: u64) -> Option<u32> {
        self.sessions.active_session(user)?.slot
    }

    /// Sets the slot of the connection that only the session of `user` uses.
    pub fn set_own_connection_slot(&mut self, user: u64, slot: u32) {
        if let Some(session) = self.sessions.active_session_mut(user) {
            session.slot = Some(slot);
        }
    }

    /// Fills in the request that `exchange` sends for `user`. Returns false if the request is
    /// fixed: no part of it is a template, and the user has no cookies.
    pub fn fill_request(&mut self, exchange: u32, user: u64, route: RouteNumber, now_ns: u64) -> bool {
        let unix_ms = now_ns.saturating_add(self.filled.unix_offset_ns) / 1_000_000;
        let unique = self.users.unique_row(user);
        let form = self.filled.routes[usize::from(route)].request_builder.as_ref();
        let Some((session, form)) = self.sessions.active_session_mut(user).zip(form) else { return false };
        session.requests_prepared += 1;
        let session = &*session;
        if !form.has_template() && session.cookies.is_empty() {
            self.filled.use_fixed_request(exchange);
            return false;
        }
        let (host, https, now_s) = (self.origin.host.as_str(), self.origin.is_secure(), unix_ms / 1_000);
        self.filled.fill(exchange, route, &fill_context(session, unique, unix_ms), &mut |target, out| {
            session.cookies.write(CookieScope { host, target, https, now_s }, out);
        });
        true
    }

    /// Prepares the next request of an exchange that follows a redirect, with the cookies of
    /// `user`.
    pub fn prepare_redirect(
        &mut self,
        (exchange, user): (u32, u64),
        route: RouteNumber,
        to: (u16, &str),
        now_ns: u64,
    ) -> Result<(), RedirectRefusal> {
        let unix_ms = now_ns.saturating_add(self.filled.unix_offset_ns) / 1_000_000;
        let unique = self.users.unique_row(user);
        let Some(session) = self.sessions.active_session(user) else { return Err(RedirectRefusal::TooManyRedirects) };
        let (host, https, now_s) = (self.origin.host.as_str(), self.origin.is_secure(), unix_ms / 1_000);
        self.filled.prepare_redirect(
            exchange,
            route,
            to,
            &self.origin,
            &fill_context(session, unique, unix_ms),
            &mut |target, out| {
                session.cookies.write(CookieScope { host, target, https, now_s }, out);
            },
        )
    }

    /// Checks a response and returns the first failed check. A response with an unsuccessful status
    /// is not checked. Values captured before a failed check are stored. Cookies are always stored,
    /// unless the scenario ignores cookies.
    pub fn check_response(&mut self, input: ResponseCheckInput, answer: &StoredResponse) -> Option<FailedCheck> {
        let ResponseCheckInput { user, route, exchange, .. } = input;
        let has_cookies = self.sessions.has_cookies(user);
        if let Some(session) = self.sessions.active_session_mut(user).filter(|_| has_cookies) {
            let target = path_and_query(self.filled.request(exchange, route));
            let now_s = input.now_ns.saturating_add(self.filled.unix_offset_ns) / 1_000_000_000;
            let (host, https) = (self.origin.host.as_str(), self.origin.is_secure());
            let scope = CookieScope { host, target, https, now_s };
            answer.field_values("set-cookie").for_each(|field| session.cookies.store_cookie(field, scope));
        }
        if !input.has_ok_status {
            return None;
        }
        let (sessions, numbers) = (&mut self.sessions, &self.capture_numbers_by_route[usize::from(route)]);
        let checks = self.filled.routes[usize::from(route)].checks.as_mut()?;
        checks.check_response(answer, input.took_ns, &mut |capture, value| {
            sessions.store_captured_value(user, numbers[capture], value)
        })
    }

    /// Stores an invented value for each capture of a route, as if a response had arrived. `value`
    /// returns the invented value for the number of a capture name.
    pub fn store_invented_captures(&mut self, user: u64, route: RouteNumber, value: &dyn Fn(usize) -> String) {
        for number in &self.capture_numbers_by_route[usize::from(route)] {
            self.sessions.store_captured_value(user, *number, value(*number).as_bytes());
        }
    }
}

/// Returns the context in which the current request of `session` is filled in.
fn fill_context(session: &UserSession, unique: u64, unix_ms: u64) -> FillContext<'_> {
    FillContext {
        number: session.number,
        request_number: session.requests_prepared,
        unique,
        unix_ms,
        captured: &session.captured,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::RequestSource;
    use plimsoll_model::data::{RowChoice, ValueTable};
    use plimsoll_model::expect::{CaptureSource, ResponseCapture};
    use plimsoll_model::session::{Scenario, ThinkTime};
    use plimsoll_model::traffic::{RouteChoice, TemplateFlags};
    use plimsoll_model::{LoadCurve, LoadShape, Request, Route, Stripe};
    use std::sync::Arc;

    /// Returns a plan whose scenario logs in once, and then sends two requests with the captured
    /// token.
    fn login_scenario_plan() -> Plan {
        let mut plan = Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) });
        let route = |target: &str, header: Option<&str>| {
            let headers = header.map(|value| ("Authorization".to_owned(), value.to_owned())).into_iter().collect();
            let template_flags =
                TemplateFlags { target: target.contains("{{"), headers: header.is_some(), body: false };
            Route { template_flags, ..Route::new(Request { target: target.into(), headers, ..Request::get_root() }) }
        };
        let mut login = route("/login?u={{ user.name }}", None);
        login.captures = vec![ResponseCapture {
            name: "token".into(),
            from: CaptureSource::Header("x-token".into()),
            default: None,
        }];
        let me = route("/shop/{{ uuid() }}", Some("Bearer {{ token }}"));
        plan.traffic.routes = vec![login, me, route("/out", None)];
        let mut users = ValueTable::new("user".into(), vec!["name".into()], RowChoice::Sequential, false);
        (0..50).for_each(|row| users.push([format!("u{row}").as_str()].into_iter()).expect("room"));
        plan.traffic.data = vec![Arc::new(users)];
        plan.traffic.choice = RouteChoice::Scenarios;
        let ask = |route| SessionOp::Send { route, may_continue: false };
        let ops = vec![
            SessionOp::JumpUnlessFirstSession { to: 2 },
            ask(0),
            SessionOp::JumpUnlessText { text: "{{ token }}".into(), empty: false, to: 6 },
            SessionOp::Think(ThinkTime::Uniform(1, 1_000_000)),
            ask(1),
            SessionOp::Repeat { times: 2, from: 4, depth: 0 },
            ask(2),
        ];
        plan.traffic.scenarios =
            vec![Scenario { name: "a".into(), weight: 1, own_connection: false, cookies: true, ops }];
        plan
    }

    /// Returns the requests of a user's next session if every response has the header fields
    /// `fields`.
    fn next_session_requests(source: &mut RequestSource, user: u64, fields: &str) -> Vec<String> {
        let (mut asked, mut last) = (Vec::new(), None);
        loop {
            let route = match source.next_action(user, last.as_ref()) {
                UserAction::Send(route) | UserAction::Wait(_, route) => route,
                UserAction::End => return asked,
            };
            let exchange = user as u32 % 3;
            source.prepare_request(exchange, user, route, 5);
            asked.push(String::from_utf8(source.request(exchange, route).h1().to_vec()).expect("text"));
            let mut answer = StoredResponse::default();
            answer.begin_response(Some(fields.as_bytes()), false);
            let of = ResponseCheckInput { user, route, exchange, has_ok_status: true, took_ns: 1, now_ns: 5 };
            let outcome = match source.check_response(of, &answer) {
                None => Outcome::Success,
                Some(miss) => Outcome::Failed(miss.failure),
            };
            last = Some(LastRequest { route, status: 200, outcome });
        }
    }

    #[test]
    fn captures_are_used_in_later_requests() {
        let whole = RequestSource::compile(&login_scenario_plan()).expect("compiles");
        let mut source = whole.for_worker(Stripe::WHOLE_SCHEDULE, Some(2));
        let fields = "x-token: t0k\r\nset-cookie: sid=7; Path=/shop\r\nset-cookie: all=1; Path=/\r\n";
        let first = next_session_requests(&mut source, 1, fields);
        assert_eq!(first.len(), 4, "{first:?}");
        assert!(first[0].starts_with("GET /login?u=u1 ") && !first[0].contains("Cookie:"), "{}", first[0]);
        for asked in &first[1..3] {
            assert!(asked.contains("Authorization: Bearer t0k\r\nCookie: sid=7; all=1\r\n"), "{asked}");
        }
        assert_ne!(first[1], first[2], "what is drawn is drawn for each");
        assert!(first[3].starts_with("GET /out ") && first[3].contains("Cookie: all=1\r\n"), "{}", first[3]);
        // The second session of a user skips the login, because the user still has the captured
        // values. Another user does not have the captured values of the first user.
        let second = next_session_requests(&mut source, 1, "");
        assert!(second.len() == 3 && second[0].contains("Bearer t0k\r\nCookie: sid=7"), "{second:?}");
        let other = next_session_requests(&mut source, 0, "");
        assert_eq!(other.len(), 1, "what was to be captured was not there: {other:?}");
        // If each session belongs to a new user, each session begins with the login.
        let mut newcomers = login_scenario_plan();
        newcomers.load.new_users = true;
        let mut source =
            RequestSource::compile(&newcomers).expect("compiles").for_worker(Stripe::WHOLE_SCHEDULE, Some(2));
        for turn in 0..2 {
            let asked = next_session_requests(&mut source, 1, fields);
            assert!(asked.len() == 4 && asked[0].starts_with("GET /login?u="), "{turn}: {asked:?}");
            assert!(!asked[0].contains("Cookie"), "{}", asked[0]);
        }
        // A scenario that ignores cookies sends none, but captured values are kept.
        let mut plain = login_scenario_plan();
        plain.traffic.scenarios[0].cookies = false;
        let mut source = RequestSource::compile(&plain).expect("compiles").for_worker(Stripe::WHOLE_SCHEDULE, Some(2));
        let asked = next_session_requests(&mut source, 1, fields);
        assert!(asked.len() == 4 && asked[1].contains("Bearer t0k"), "{asked:?}");
        assert!(asked.iter().all(|it| !it.contains("Cookie")), "{asked:?}");
        // Each arrival of an open loop is a new user.
        let mut source = whole.for_worker(Stripe::WHOLE_SCHEDULE, None);
        for arrival in [3, 4] {
            let asked = next_session_requests(&mut source, arrival, fields);
            assert!(asked.len() == 4 && asked[0].contains(&format!("u=u{arrival} ")), "{asked:?}");
            assert!(!asked[0].contains("Cookie"), "{}", asked[0]);
        }
    }

    #[test]
    fn requests_depend_on_the_seed_and_not_on_the_workers() {
        let whole = RequestSource::compile(&login_scenario_plan()).expect("compiles");
        let asked = |of: u64| -> Vec<Vec<String>> {
            let user = |user: u64| {
                let mut source = whole.for_worker(Stripe::new(user % of, of), Some(6));
                (0..3).flat_map(|_| next_session_requests(&mut source, user / of, "x-token: t")).collect()
            };
            (0..6).map(user).collect()
        };
        assert_eq!(asked(1), asked(2));
        assert_eq!(asked(1), asked(3));
        let mut all: Vec<String> = asked(1).into_iter().flatten().filter(|it| it.contains("/shop/")).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 36, "none is asked twice");
    }
}
