//! Tests of users with several requests: the worker executes the actions of a source, and each
//! request has the timeout of its route.

use super::*;
use crate::source::RequestSource;
use crate::users::UserAction;
use plimsoll_model::session::{Scenario, SessionOp, ThinkTime};
use plimsoll_model::traffic::RouteChoice;
use plimsoll_model::{ArrivalTimes, Ledger, ReplayFacts, RequestList, RequestListEntry, RequestTargets};
use std::collections::HashMap;
use std::sync::Arc;

/// Runs `plan` with users that perform `steps`, on one route for each of the timeouts
/// `timeouts_ns`.
fn run_scripted_users(
    plan: &SimulatedPlan,
    server: &SimServer,
    timeouts_ns: &[u64],
    steps: &[UserAction],
) -> SimulatedRun {
    let (machine, seed) = (SimMachine::default(), first_seed());
    let sim = Simulation { plan, stripe: Stripe::WHOLE_SCHEDULE, server, machine, seed }.run_with_modified_sources(
        &mut |source| {
            let route = source.route(0).clone();
            let routes = timeouts_ns
                .iter()
                .map(|&timeout_ns| crate::encoded_route::EncodedRoute { timeout_ns, ..route.clone() });
            *source = RequestSource::Script { routes: routes.collect(), steps: steps.to_vec(), at: HashMap::new() };
        },
        &mut |_| ControlFlow::Continue(()),
    );
    verify(&sim, server).expect("holds");
    sim
}

#[test]
fn an_arrival_can_start_a_session() {
    let steps = [UserAction::Send(0), UserAction::Wait(20 * MS, 0), UserAction::Send(0)];
    // Each of fifty arrivals starts a session of three requests. The sessions of the last two
    // arrivals are cut at the end of the schedule.
    let sim = run_scripted_users(&constant_rate_plan("100@500ms"), &SimServer::new(MS), &[60 * MS], &steps);
    let ledger = sim.run.totals().routes_sum.ledger;
    assert_eq!(ledger.scheduled, ledger.succeeded, "{ledger:?}");
    assert_eq!(ledger.scheduled, 50 + 48 + 48, "{ledger:?}");
    // If only the number of arrivals limits the load, all sessions run to their end.
    let plan = constant_rate_plan("100").with_change(|it| {
        it.load.requests_max = Some(10);
        it.load.duration_ns = None
    });
    let ledger = run_scripted_users(&plan, &SimServer::new(MS), &[60 * MS], &steps).run.totals().routes_sum.ledger;
    assert_eq!((ledger.scheduled, ledger.succeeded), (30, 30), "{ledger:?}");
}

#[test]
fn a_user_starts_again_after_its_session() {
    // A session takes 23.3 ms: three requests of 1.1 ms each, and a think time of 20 ms after the
    // first request.
    let steps = [UserAction::Send(0), UserAction::Wait(20 * MS, 0), UserAction::Send(0)];
    let sim = run_scripted_users(&closed_loop_plan("4@2330ms"), &SimServer::new(MS), &[60 * MS], &steps);
    let ledger = sim.run.totals().routes_sum.ledger;
    assert!(is_near(ledger.succeeded as f64, 4.0 * 300.0, 0.01), "{ledger:?}");
    assert_eq!(sim.account.connects, 4, "a user keeps its connection while it thinks");
    // Each session of this load begins with a think time of 20 ms.
    let ledger = run_scripted_users(
        &closed_loop_plan("4@2110ms"),
        &SimServer::new(MS),
        &[60 * MS],
        &[UserAction::Wait(20 * MS, 0)],
    )
    .run
    .totals()
    .routes_sum
    .ledger;
    assert!(is_near(ledger.succeeded as f64, 4.0 * 100.0, 0.01), "{ledger:?}");
}

#[test]
fn routes_are_requested_by_weight() {
    for (plan, machines) in [
        (closed_loop_plan("6@1s"), 1),
        (constant_rate_plan("300@1s"), 1),
        (closed_loop_plan("6@1s"), 3),
        (constant_rate_plan("300@1s"), 2),
    ] {
        let plan = plan.with_change(|it| {
            let quick = plimsoll_model::Route { timeout_ns: 10 * MS, weight: 3, ..it.traffic.routes[0].clone() };
            it.traffic.routes.push(quick);
        });
        let server = SimServer::new(MS).with_fault(Fault::NeverAnswers, 1.0);
        let (mut quick, mut all) = (0, 0);
        for index in 0..machines {
            let (stripe, machine, seed) = (Stripe::new(index, machines), SimMachine::default(), first_seed());
            let sim = Simulation { plan: &plan, stripe, server: &server, machine, seed }
                .run(&mut |_| ControlFlow::Continue(()));
            verify(&sim, &server).expect("holds");
            let totals = sim.run.totals();
            all += totals.routes_sum.response.count();
            quick += totals.routes_sum.response.count() - totals.routes_sum.response.count_above(30 * MS);
        }
        let (share, spread) = (quick as f64 / all as f64, 3.0 * (0.75 * 0.25 / all as f64).sqrt());
        assert!((share - 0.75).abs() < spread, "{quick} of {all}");
    }
}

#[test]
fn a_request_has_the_timeout_of_its_route() {
    let server = SimServer::new(MS).with_fault(Fault::NeverAnswers, 1.0);
    let steps = [UserAction::Send(0), UserAction::Send(1), UserAction::Send(2), UserAction::Send(1)];
    for plan in [closed_loop_plan("3@1s"), constant_rate_plan("20@1s")] {
        let totals = run_scripted_users(&plan, &server, &[60 * MS, 10 * MS, 30 * MS], &steps).run.totals();
        let (all, response) = (totals.routes_sum.ledger.scheduled, &totals.routes_sum.response);
        assert_eq!(totals.routes_sum.ledger.failed[RequestFailure::Timeout as usize], all);
        let share = |low_ns: u64, high_ns: u64| {
            (response.count_above(low_ns) - response.count_above(high_ns)) as f64 / all as f64
        };
        for (timeout_ms, expect) in [(10, 0.5), (30, 0.25), (60, 0.25)] {
            let at_ns = timeout_ms * MS;
            assert!((share(at_ns - MS, at_ns + MS) - expect).abs() < 0.05, "{timeout_ms} ms: {response:?}");
        }
    }
}

/// An author (a writer of requests) that writes the same request repeatedly, in batches of several
/// requests, each batch after a delay.
#[derive(Debug)]
struct RepeatingRequestScript {
    request: Vec<u8>,
    messages: usize,
    delay_ns: u64,
    left: u32,
    fails: bool,
    heard: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl plimsoll_wire::Author for RepeatingRequestScript {
    fn writes_every_batch(&self) -> bool {
        true
    }

    fn has_delays(&self) -> bool {
        self.delay_ns > 0
    }

    fn wants_responses(&self) -> bool {
        true
    }

    fn messages_per_batch(&self) -> u32 {
        self.messages as u32
    }

    fn write(&mut self, batch: &mut plimsoll_wire::Batch) -> Result<(), plimsoll_wire::AuthorStopReason> {
        let halt = if self.fails {
            plimsoll_wire::AuthorStopReason::Failed
        } else {
            plimsoll_wire::AuthorStopReason::Requested
        };
        self.left = self.left.checked_sub(1).ok_or(halt)?;
        batch.bytes.extend(self.request.repeat(self.messages));
        batch.head_request_flags = vec![false; self.messages];
        Ok(())
    }

    fn delay_ns(&mut self) -> Result<u64, plimsoll_wire::AuthorStopReason> {
        Ok(self.delay_ns)
    }

    fn receive_response(
        &mut self,
        answer: &plimsoll_wire::AuthorResponse,
    ) -> Result<(), plimsoll_wire::AuthorStopReason> {
        assert!(answer.status == 200 && answer.head.starts_with(b"HTTP/1.1 200") && answer.head.ends_with(b"\r\n\r\n"));
        self.heard.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }
}

/// Runs `plan` with a [`RepeatingRequestScript`] as the author of its requests. Returns the run,
/// and the number of responses reported to the author.
fn run_script_requests(
    plan: &SimulatedPlan,
    messages: usize,
    delay_ns: u64,
    bytes_left: u32,
    fails: bool,
) -> (SimulatedRun, u64) {
    let server = SimServer::new(MS);
    let heard = std::sync::Arc::default();
    let (machine, seed) = (SimMachine::default(), first_seed());
    let is_open = plimsoll_model::Schedule::compile(&plan.load).is_open();
    let sim = Simulation { plan, stripe: Stripe::WHOLE_SCHEDULE, server: &server, machine, seed }
        .run_with_modified_sources(
            &mut |source| {
                let request = source.route(0).request.h1().to_vec();
                let heard = std::sync::Arc::clone(&heard);
                let author =
                    Box::new(RepeatingRequestScript { request, messages, delay_ns, left: bytes_left, fails, heard });
                *source = source.for_worker(Stripe::WHOLE_SCHEDULE, None).with_author(author, is_open);
            },
            &mut |_| ControlFlow::Continue(()),
        );
    // `verify` compares the sent bytes with the plan's single request, so it cannot check batches
    // of several requests.
    if messages == 1 {
        verify(&sim, &server).expect("holds");
    }
    (sim, heard.load(std::sync::atomic::Ordering::Relaxed))
}

#[test]
fn a_script_writes_each_request_and_receives_each_response() {
    for plan in [closed_loop_plan("4@1s"), constant_rate_plan("200@1s")] {
        let (sim, heard) = run_script_requests(&plan, 1, 0, u32::MAX, false);
        let ledger = sim.run.totals().routes_sum.ledger;
        assert!(ledger.scheduled >= 200 && ledger.succeeded == heard, "{ledger:?}");
    }
    // In a closed loop the delay of the author (script) precedes each request, including the first.
    // Arrivals of an open loop are not delayed.
    let (sim, _) = run_script_requests(&closed_loop_plan("4@2110ms"), 1, 20 * MS, u32::MAX, false);
    let ledger = sim.run.totals().routes_sum.ledger;
    assert!(is_near(ledger.succeeded as f64, 4.0 * 100.0, 0.01), "{ledger:?}");
    let (sim, _) = run_script_requests(&constant_rate_plan("200@1s"), 1, 20 * MS, u32::MAX, false);
    assert_eq!(sim.run.totals().routes_sum.ledger.succeeded, 200);
}

#[test]
fn each_message_of_a_batch_is_a_request() {
    let (sim, heard) = run_script_requests(&closed_loop_plan("2@1s"), 3, 0, 10, false);
    let ledger = sim.run.totals().routes_sum.ledger;
    assert_eq!((ledger.scheduled, ledger.succeeded), (30, 30), "{ledger:?}");
    assert!((24..=30).contains(&heard), "{heard}");
}

#[test]
fn a_stopped_script_ends_the_load_of_its_worker() {
    for fails in [false, true] {
        for plan in [closed_loop_plan("4@2s"), constant_rate_plan("200@2s")] {
            let (sim, heard) = run_script_requests(&plan, 1, 0, 10, fails);
            let ledger = sim.run.totals().routes_sum.ledger;
            assert_eq!((ledger.scheduled, ledger.succeeded), (10, 10), "{ledger:?}");
            // Responses to requests that were in flight when the author (script) stopped are not
            // reported to the author.
            assert!((7..=10).contains(&heard), "{heard}");
            assert!(sim.finish_ns < 1_000 * MS, "{} ns", sim.finish_ns);
        }
    }
}

/// Returns a plan whose users run a scenario with these operations. All routes have the same
/// request.
fn with_sessions(plan: SimulatedPlan, own_connection: bool, ops: &[SessionOp]) -> SimulatedPlan {
    plan.with_change(|it| {
        let route = it.traffic.routes[0].clone();
        it.traffic.routes = vec![route.clone(), route.clone(), route];
        it.traffic.choice = RouteChoice::Scenarios;
        let (name, ops) = ("user".into(), ops.to_vec());
        it.traffic.scenarios = vec![Scenario { name, weight: 1, own_connection, cookies: true, ops }];
    })
}

fn request_operation(route: u16) -> SessionOp {
    SessionOp::Send { route, may_continue: false }
}

/// Returns the numbers of sessions started, completed, abandoned and cut, and the ledger of
/// requests.
fn session_counts_and_ledger(sim: &SimulatedRun) -> ([u64; 4], Ledger) {
    let totals = sim.run.totals();
    let load = &totals.load;
    assert_eq!(load.session_time.count(), load.sessions_completed);
    let ended = load.sessions_completed + load.sessions_abandoned + load.sessions_cut;
    assert_eq!(load.sessions_started, ended, "{load:?}");
    (
        [load.sessions_started, load.sessions_completed, load.sessions_abandoned, load.sessions_cut],
        totals.routes_sum.ledger,
    )
}

#[test]
fn every_session_ends_and_is_counted() {
    let thought = SessionOp::Think(ThinkTime::Fixed(20 * MS));
    let three = [request_operation(0), thought.clone(), request_operation(1), request_operation(2)];
    for own in [false, true] {
        // A session takes about 3.3 ms plus a think time of 20 ms, so the load's end cuts the last
        // two or three sessions.
        let sim = run(&with_sessions(constant_rate_plan("100@500ms"), own, &three), &SimServer::new(MS), first_seed());
        let ([started, completed, abandoned, cut], ledger) = session_counts_and_ledger(&sim);
        assert_eq!((started, abandoned), (50, 0));
        assert!((47..=48).contains(&completed) && cut == started - completed, "{completed} {cut}");
        assert_eq!(ledger.succeeded, 50 + 2 * completed);
        assert!(sim.run.totals().load.session_time.min_ns() >= 20 * MS);
        // If sessions have own connections, each session opens one connection. Sessions without own
        // connections share connections, which are free during think times.
        match own {
            true => assert_eq!(sim.account.connects, 50),
            false => assert!(sim.account.connects < 10, "{}", sim.account.connects),
        }
    }
    // With sessions, a limit of requests counts complete sessions, in closed and open loops.
    for plan in [constant_rate_plan("100"), closed_loop_plan("3"), closed_loop_plan("1")] {
        let plan = plan.with_change(|it| {
            it.load.requests_max = Some(10);
            it.load.duration_ns = None;
        });
        let sim = run(&with_sessions(plan, false, &three), &SimServer::new(MS), first_seed());
        let (sessions, ledger) = session_counts_and_ledger(&sim);
        assert_eq!((sessions, ledger.succeeded), ([10, 10, 0, 0], 30));
        assert_eq!(sim.run.ending, Some(plimsoll_model::LoadEnd::Finished));
    }
    // Users that leave the load do not complete their session.
    let ramp = with_sessions(closed_loop_plan("8@200ms,2@200ms,8@200ms"), false, &three);
    let ([started, completed, ..], _) = session_counts_and_ledger(&run(&ramp, &SimServer::new(MS), first_seed()));
    assert!(started > 80 && completed >= started - 16, "{started} {completed}");
}

#[test]
fn a_failure_abandons_its_session_unless_allowed() {
    let may_continue = [SessionOp::Send { route: 0, may_continue: true }, request_operation(1)];
    for fault in [Fault::Status(500), Fault::NeverAnswers, Fault::ClosesWithoutReply, Fault::Refuses] {
        for plan in [constant_rate_plan("200@1s"), closed_loop_plan("4@1s")] {
            for own in [false, true] {
                let server = SimServer::new(MS).with_fault(fault, 0.5);
                let plan_of = |ops: &[SessionOp]| with_sessions(plan.clone(), own, ops);
                let sim = run(&plan_of(&[request_operation(0), request_operation(1)]), &server, first_seed());
                let ([started, completed, abandoned, cut], ledger) = session_counts_and_ledger(&sim);
                // `Fault::Refuses` affects only new connections, so the later requests of a
                // session, which use an open connection, do not fail.
                let fails = abandoned > 0 || fault == Fault::Refuses;
                assert!(completed > 0 && fails && cut <= 20, "{fault:?}: {started} {completed} {cut}");
                assert!(ledger.failed_total() >= abandoned, "{ledger:?}");
                let sim = run(&plan_of(&may_continue), &server, first_seed());
                let of = |route, interval: &plimsoll_model::Interval| {
                    interval.routes.get(route).map_or(0, |figures| figures.ledger.scheduled)
                };
                let scheduled = |route| sim.run.intervals.values().map(|it| of(route, it)).sum::<u64>();
                assert!(scheduled(0) - scheduled(1) <= 20, "{fault:?}: {} {}", scheduled(0), scheduled(1));
            }
        }
    }
}

#[test]
fn a_session_without_requests_does_not_block_the_worker() {
    let once = [SessionOp::JumpUnlessFirstSession { to: 2 }, request_operation(0)];
    let endless = [
        SessionOp::JumpUnlessText { text: "{{ none }}".into(), empty: false, to: 2 },
        request_operation(0),
        SessionOp::Repeat { times: 1_000_000, from: 0, depth: 1 },
        SessionOp::Repeat { times: 1_000_000, from: 0, depth: 0 },
    ];
    for ops in [&once[..], &endless] {
        let plan = with_sessions(closed_loop_plan("2@500ms"), false, ops).with_change(|it| {
            let from = plimsoll_model::expect::CaptureSource::Header("x-none".into());
            let capture = plimsoll_model::expect::ResponseCapture { name: "none".into(), from, default: None };
            it.traffic.routes[2].captures = vec![capture];
        });
        let ([started, completed, abandoned, cut], ledger) =
            session_counts_and_ledger(&run(&plan, &SimServer::new(MS), first_seed()));
        assert!(started > 10 && started < 200 && abandoned + cut == 0, "{started} {completed}");
        assert!(ledger.succeeded <= 2, "{ledger:?}");
    }
}

/// Returns a replay of `requests` logged requests, one each millisecond. Every fourth request uses
/// the second route, and every tenth request had status 404 in the log.
fn log_replay_setup(requests: u64) -> SimulatedPlan {
    let arrivals = ArrivalTimes::new((0..requests).map(|n| n * MS).collect(), 0, requests * MS).expect("moments");
    plan_with_load(LoadShape::ArrivalTimes { arrivals }).with_change(|it| {
        let second = it.traffic.routes[0].clone();
        it.traffic.routes.push(second);
        let mut targets = RequestTargets::default();
        // The simulated server accepts only one kind of request, so all paths of the list are
        // equal.
        (0..5).for_each(|_| _ = targets.push("/"));
        let entry = |n: u64| RequestListEntry {
            target: (n % 5) as u32,
            route: u16::from(n.is_multiple_of(4)),
            status: if n.is_multiple_of(10) { 404 } else { 200 },
        };
        let entries = (0..requests).map(entry).collect();
        it.traffic.choice = RouteChoice::RequestList;
        it.traffic.request_list = Some(Arc::new(RequestList {
            targets: targets.into(),
            entries,
            sessions: None,
            facts: ReplayFacts::default(),
        }));
    })
}

#[test]
fn a_replay_sends_each_logged_request_once() {
    for machines in [1, 3] {
        let plan = log_replay_setup(400);
        let server = SimServer::new(MS);
        let (mut scheduled, mut changed) = ([0; 2], [0; 2]);
        for index in 0..machines {
            let (stripe, machine, seed) = (Stripe::new(index, machines), SimMachine::default(), first_seed());
            let sim = Simulation { plan: &plan, stripe, server: &server, machine, seed }
                .run(&mut |_| ControlFlow::Continue(()));
            verify(&sim, &server).expect("holds");
            for (route, figures) in sim.run.route_totals().enumerate() {
                scheduled[route] += figures.ledger.scheduled;
                changed[route] += figures.status_changed;
            }
        }
        // All responses have status 200, so the requests with 404 in the log count as changed. Half
        // of the requests with 404 in the log are on the second route.
        assert_eq!((scheduled, changed), ([300, 100], [20, 20]), "{machines}");
    }
}
