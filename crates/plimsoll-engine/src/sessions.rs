//! The state of sessions: for each user the position in its scenario, its captured values and its
//! cookies.
//!
//! A user of a closed loop runs one session after another, and keeps cookies and captured values.
//! An arrival of an open loop has a single session. A random value depends only on the seed and the
//! number of the session. Not here: encoding requests ([`crate::template_fill`]), sockets, clocks,
//! counting.

use crate::cookies::CookieJar;
use plimsoll_model::RouteNumber;
use plimsoll_model::rng::{Rng, mix_bits};
use plimsoll_model::session::{LOOP_NESTING_MAX, Scenario, SessionOp};
use std::collections::HashMap;

/// A constant that is mixed into the seed, so that scenario choices and think times are independent
/// of other random numbers.
const SCENARIO_CHOICE_SEED: u64 = 0x5343_454e_4152_494f;
const THINK_TIME_SEED: u64 = 0x0054_4849_4e4b_5321;
/// The maximum number of operations of a scenario between two requests. At the maximum, a
/// repetition without requests ends, because such a repetition has no effect.
const OPS_BETWEEN_REQUESTS_MAX: u32 = 100_000;
/// The maximum length of a captured value in bytes. Longer values are cut.
pub const CAPTURED_VALUE_BYTES_MAX: usize = 64 << 10;

/// The next step of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStep {
    /// The session sends a request after a wait.
    Send {
        /// The think time before the request, ns.
        wait_ns: u64,
        /// The route of the request.
        route: RouteNumber,
    },
    /// The session has ended, and all of its requests succeeded or were allowed to fail.
    Completed,
    /// The session ended because a request failed.
    Abandoned,
}

/// A user with the state of its current session.
#[derive(Debug, Clone, Default)]
pub struct UserSession {
    scenario: usize,
    /// The index of the next operation in the scenario.
    at: usize,
    /// For each nesting level of repetitions, the number of rounds that the current repetition at
    /// this level has completed.
    rounds: [u32; LOOP_NESTING_MAX],
    /// The number of sessions that this user has begun.
    begun: u64,
    /// Whether a session of the user is active.
    is_active: bool,
    /// The number of requests that the session has prepared so far.
    pub requests_prepared: u64,
    /// The slot of the connection that only this session uses; `None` if the session has no own
    /// connection.
    pub slot: Option<u32>,
    /// The number of the session among all sessions of the load.
    pub number: u64,
    /// The intended start of the session (absolute, ns).
    pub intended_ns: u64,
    /// Whether the session counts in the measured window.
    pub measured: bool,
    /// Whether the scenario allows the current request to fail.
    continues_on_failure: bool,
    /// The random number generator for the think times of the session.
    think_time_rng: Option<Rng>,
    /// The captured values, by the number of the capture name. A value that was not captured yet is
    /// empty.
    pub captured: Vec<String>,
    /// The user's cookies.
    pub cookies: CookieJar,
}

/// The sessions of all users of a worker.
#[derive(Debug, Clone)]
pub struct UserSessions {
    scenarios: Vec<Scenario>,
    /// For each scenario, the sum of the weights up to and including this scenario.
    cumulative_weights: Vec<u64>,
    seed: u64,
    /// The number of capture names in the plan. Each session has one value for each capture name.
    capture_count: usize,
    /// The sessions by the number of the user or arrival. Users of a closed loop are never removed.
    places: HashMap<u64, Box<UserSession>>,
    /// Sessions of finished arrivals, whose memory is reused.
    #[expect(clippy::vec_box, reason = "they go back into their boxes' places")]
    free: Vec<Box<UserSession>>,
    /// Whether users keep their cookies and captured values from one session to the next.
    keeps_user_state: bool,
    /// The number of active sessions.
    active_sessions: u64,
}

impl UserSessions {
    /// Creates an empty set of sessions. `capture_count` is the number of capture names.
    /// `keeps_user_state` says whether users keep cookies and captured values between sessions.
    pub fn new(scenarios: Vec<Scenario>, seed: u64, capture_count: usize, keeps_user_state: bool) -> UserSessions {
        let sum = |sum: &mut u64, scenario: &Scenario| {
            *sum += u64::from(scenario.weight);
            Some(*sum)
        };
        let cumulative_weights = scenarios.iter().scan(0, sum).collect();
        UserSessions {
            scenarios,
            cumulative_weights,
            seed,
            capture_count,
            places: HashMap::new(),
            free: Vec::new(),
            keeps_user_state,
            active_sessions: 0,
        }
    }

    /// Sets whether users keep cookies and captured values between sessions. The caller must call
    /// this function before any session begins.
    pub fn set_keeps_user_state(&mut self, stays: bool) {
        self.keeps_user_state = stays;
    }

    /// Begins a session of `user`. `number` is the number of the session among all sessions of the
    /// load.
    pub fn begin(&mut self, user: u64, number: u64) {
        let free = &mut self.free;
        let session = self.places.entry(user).or_insert_with(|| free.pop().unwrap_or_default());
        if !self.keeps_user_state {
            // The memory of a session may be reused from an earlier user, so the cookies and
            // captured values of that user are removed.
            session.begun = 0;
            session.cookies = CookieJar::default();
            session.captured.iter_mut().for_each(String::clear);
        }
        session.captured.resize(self.capture_count, String::new());
        self.active_sessions += u64::from(!std::mem::replace(&mut session.is_active, true));
        (session.requests_prepared, session.slot) = (0, None);
        let total = self.cumulative_weights.last().copied().unwrap_or(0);
        let drawn = Rng::for_stream(mix_bits(self.seed ^ SCENARIO_CHOICE_SEED), number).uniform_below(total.max(1));
        session.scenario = self.cumulative_weights.partition_point(|up_to| *up_to <= drawn);
        session.at = 0;
        session.rounds = [0; LOOP_NESTING_MAX];
        session.begun += 1;
        session.number = number;
        session.continues_on_failure = true;
        session.think_time_rng = Some(Rng::for_stream(mix_bits(self.seed ^ THINK_TIME_SEED), number));
    }

    /// Returns the active session of `user`; `None` if the user has no active session.
    pub fn active_session(&self, user: u64) -> Option<&UserSession> {
        self.places.get(&user).map(|session| &**session).filter(|session| session.is_active)
    }

    /// Returns the active session of `user`, or `None` if the user has no active session.
    pub fn active_session_mut(&mut self, user: u64) -> Option<&mut UserSession> {
        self.places.get_mut(&user).map(|session| &mut **session).filter(|session| session.is_active)
    }

    /// Returns the next step of the session of `user`. `went_well` is true if the last request of
    /// the session succeeded, or if the session begins. `is_empty` fills in the text of a
    /// condition, and returns whether the result is empty.
    pub fn next_step(
        &mut self,
        user: u64,
        went_well: bool,
        is_empty: &mut dyn FnMut(&UserSession, usize, usize) -> bool,
    ) -> SessionStep {
        let Some(session) = self.places.get_mut(&user).filter(|it| it.is_active) else { return SessionStep::Completed };
        if !went_well && !session.continues_on_failure {
            return SessionStep::Abandoned;
        }
        let ops = self.scenarios.get(session.scenario).map_or(&[][..], |scenario| scenario.ops.as_slice());
        let mut wait_ns = 0u64;
        let mut done = 0;
        while let Some(op) = ops.get(session.at) {
            let here = session.at;
            done += 1;
            session.at += 1;
            match op {
                SessionOp::Send { route, may_continue } => {
                    session.continues_on_failure = *may_continue;
                    return SessionStep::Send { wait_ns, route: *route };
                }
                SessionOp::Think(think) => {
                    if let Some(rng) = &mut session.think_time_rng {
                        wait_ns = wait_ns.saturating_add(think.draw_ns(rng));
                    }
                }
                SessionOp::JumpUnlessText { empty, to, .. } => {
                    if is_empty(session, session.scenario, here) != *empty {
                        session.at = *to as usize;
                    }
                }
                SessionOp::JumpUnlessFirstSession { to } if session.begun > 1 => session.at = *to as usize,
                SessionOp::JumpUnlessFirstSession { .. } => {}
                SessionOp::JumpIfSucceeded { to } if went_well => session.at = *to as usize,
                SessionOp::JumpIfSucceeded { .. } => {}
                SessionOp::Repeat { times, from, depth } => {
                    let rounds = &mut session.rounds[usize::from(*depth)];
                    *rounds += 1;
                    if *rounds < *times && done < OPS_BETWEEN_REQUESTS_MAX {
                        session.at = *from as usize;
                    } else {
                        *rounds = 0;
                    }
                }
            }
        }
        SessionStep::Completed
    }

    /// Ends the session of `user`. If users do not keep cookies and captured values, as in an open
    /// loop, the state of the ended session is removed.
    pub fn end(&mut self, user: u64) {
        let Some(session) = self.places.get_mut(&user) else { return };
        self.active_sessions -= u64::from(std::mem::take(&mut session.is_active));
        if !self.keeps_user_state {
            self.free.extend(self.places.remove(&user));
        }
    }

    /// Returns whether any session is active.
    #[inline]
    pub fn has_active_sessions(&self) -> bool {
        self.active_sessions > 0
    }

    /// Returns the number of active sessions that count in the measured window.
    pub fn active_measured_sessions(&self) -> u64 {
        self.places.values().filter(|session| session.is_active && session.measured).count() as u64
    }

    /// Returns whether each session of the scenario of `user` needs a connection of its own.
    pub fn needs_own_connection(&self, user: u64) -> bool {
        self.active_scenario(user).is_some_and(|scenario| scenario.own_connection)
    }

    /// Returns whether the scenario of `user` stores and sends cookies.
    pub fn has_cookies(&self, user: u64) -> bool {
        self.active_scenario(user).is_some_and(|scenario| scenario.cookies)
    }

    /// Returns the scenario of the active session of `user`; `None` if the user has no active
    /// session.
    fn active_scenario(&self, user: u64) -> Option<&Scenario> {
        self.scenarios.get(self.active_session(user)?.scenario)
    }

    /// Stores a captured value for the session of `user`.
    pub fn store_captured_value(&mut self, user: u64, number: usize, value: &[u8]) {
        let Some(place) = self.active_session_mut(user).and_then(|session| session.captured.get_mut(number)) else {
            return;
        };
        place.clear();
        // Bytes that are not valid UTF-8 are replaced, because they cannot be part of a request.
        place.push_str(&String::from_utf8_lossy(&value[..value.len().min(CAPTURED_VALUE_BYTES_MAX)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::session::ThinkTime;

    fn request_op(route: RouteNumber) -> SessionOp {
        SessionOp::Send { route, may_continue: false }
    }

    fn weighted_scenario(weight: u32, ops: Vec<SessionOp>) -> Scenario {
        let scenario = Scenario { name: "a".into(), weight, own_connection: false, cookies: true, ops };
        assert!(scenario.is_sound(100));
        scenario
    }

    /// Runs a session of `user`. Returns the routes of the session's requests, and how the session
    /// ends. Requests for the routes in `fail` fail.
    fn route_sequence(sessions: &mut UserSessions, user: u64, fail: &[RouteNumber]) -> (Vec<RouteNumber>, SessionStep) {
        let (mut all, mut went_well) = (Vec::new(), true);
        loop {
            let is_empty =
                &mut |session: &UserSession, _: usize, _: usize| session.captured.first().is_none_or(String::is_empty);
            match sessions.next_step(user, went_well, is_empty) {
                SessionStep::Send { route, .. } => {
                    all.push(route);
                    went_well = !fail.contains(&route);
                    if route == 7 {
                        sessions.store_captured_value(user, 0, b"t");
                    }
                }
                end => return (all, end),
            }
        }
    }

    #[test]
    fn a_session_follows_its_scenario() {
        let nested = vec![
            request_op(0),
            request_op(1),
            SessionOp::Repeat { times: 2, from: 1, depth: 1 },
            SessionOp::Repeat { times: 3, from: 0, depth: 0 },
            request_op(2),
        ];
        let once = vec![SessionOp::JumpUnlessFirstSession { to: 2 }, request_op(0), request_op(1)];
        let when = vec![
            SessionOp::JumpUnlessText { text: "{{ token }}".into(), empty: false, to: 2 },
            request_op(1),
            request_op(7),
            SessionOp::JumpUnlessText { text: "{{ token }}".into(), empty: false, to: 5 },
            request_op(2),
            SessionOp::JumpUnlessText { text: "{{ token }}".into(), empty: true, to: 7 },
            request_op(3),
        ];
        let may_continue = vec![SessionOp::Send { route: 5, may_continue: true }, request_op(6), request_op(1)];
        for (ops, expect) in [
            (nested, [vec![0, 1, 1, 0, 1, 1, 0, 1, 1, 2], vec![0, 1, 1, 0, 1, 1, 0, 1, 1, 2]]),
            (once, [vec![0, 1], vec![1]]),
            (when, [vec![7, 2], vec![1, 7, 2]]),
            (may_continue, [vec![5, 6, 1], vec![5, 6, 1]]),
        ] {
            let mut sessions = UserSessions::new(vec![weighted_scenario(1, ops)], 3, 1, true);
            for (number, expect) in expect.iter().enumerate() {
                sessions.begin(4, number as u64);
                assert_eq!(route_sequence(&mut sessions, 4, &[5]), (expect.clone(), SessionStep::Completed));
                sessions.end(4);
            }
        }
        let mut sessions = UserSessions::new(
            vec![weighted_scenario(1, vec![request_op(0), request_op(6), request_op(1)])],
            3,
            1,
            false,
        );
        sessions.begin(9, 0);
        assert_eq!(route_sequence(&mut sessions, 9, &[6]), (vec![0, 6], SessionStep::Abandoned));
        sessions.end(9);
        assert!(sessions.active_session(9).is_none() && sessions.places.is_empty());
    }

    #[test]
    fn an_arrival_starts_without_earlier_state() {
        let mut sessions = UserSessions::new(
            vec![weighted_scenario(1, vec![SessionOp::JumpUnlessFirstSession { to: 2 }, request_op(7), request_op(0)])],
            3,
            1,
            false,
        );
        for arrival in 0..3 {
            sessions.begin(arrival, arrival);
            assert_eq!(
                sessions.active_session(arrival).map(|session| session.captured[0].clone()),
                Some(String::new())
            );
            assert_eq!(route_sequence(&mut sessions, arrival, &[]).0, [7, 0]);
            sessions.end(arrival);
        }
        assert_eq!(sessions.free.len(), 1, "room is used again");
    }

    #[test]
    fn the_session_number_determines_scenario_and_think_times() {
        let think = SessionOp::Think(ThinkTime::Uniform(1, 1_000_000));
        let two = vec![
            weighted_scenario(3, vec![think.clone(), request_op(0)]),
            weighted_scenario(1, vec![think, request_op(1)]),
        ];
        let drawn = |stays: bool, order: &mut dyn Iterator<Item = u64>| {
            let mut sessions = UserSessions::new(two.clone(), 5, 0, stays);
            let mut all: Vec<(u64, SessionStep)> = order
                .map(|number| {
                    let user = if stays { number % 7 } else { number };
                    sessions.begin(user, number);
                    (number, sessions.next_step(user, true, &mut |_, _, _| false))
                })
                .collect();
            all.sort_by_key(|(number, _)| *number);
            all
        };
        let forward = drawn(false, &mut (0..4_000));
        assert_eq!(forward, drawn(true, &mut (0..4_000).rev()));
        let first = forward.iter().filter(|(_, step)| matches!(step, SessionStep::Send { route: 0, .. })).count();
        assert!((2_850..3_150).contains(&first), "{first}");
    }
}
