//! Tests of fleets in simulated time. Despite faults of messages and agents, the agents' results
//! must add up exactly, every request must have an outcome, and every load must end.

use crate::bus::Bus;
use crate::fleet_load::{FleetLoad, FleetOptions};
use crate::sim_bus::{MILLISECOND_NS, MessageFaults, SECOND_NS, SimBus, simulated_calibration, simulated_ticks};
use plimsoll_engine::{Collector, PartReport, Tick};
use plimsoll_model::codec::Frame;
use plimsoll_model::rng::Rng;
use plimsoll_model::{
    AgentLossPolicy, ArrivalSpacing, EarlyStopReason, Injector, LoadCurve, LoadEnd, LoadPurpose, LoadShape, Plan, Run,
    Schedule, Spin,
};
use plimsoll_model::{LoadTag, Stripe};
use plimsoll_study::runner::RemoteLoad;
use std::ops::ControlFlow;
use std::time::Duration;

const SEVERE_MESSAGE_FAULTS: MessageFaults =
    MessageFaults { loss_share: 0.1, duplicate_share: 0.1, delay_ns: MILLISECOND_NS, jitter_ns: 60 * MILLISECOND_NS };

fn fleet_options(on_loss: AgentLossPolicy) -> FleetOptions {
    let (workers, spin, preflight) = (None, Spin::Auto, false);
    FleetOptions {
        workers,
        spin,
        preflight,
        on_loss,
        skew_ns_max: 60 * MILLISECOND_NS,
        system: String::new(),
        key: None,
    }
}

/// Returns a load of 400 requests a second for 3 s without a warm-up, on two routes.
fn two_route_plan(seed: u64) -> Plan {
    let addresses = vec![([127, 0, 0, 1], 80).into()];
    let rate = LoadCurve::constant(400.0);
    let mut plan =
        Plan::for_get_request("h", 80, addresses, LoadShape::Open { rate, arrivals: ArrivalSpacing::Poisson });
    (plan.load.duration_ns, plan.load.warmup_ns, plan.load.seed) = (Some(3 * SECOND_NS), 0, seed);
    plan.traffic.routes.push(plan.traffic.routes[0].clone());
    plan
}

fn start_fleet(bus: SimBus, on_loss: AgentLossPolicy) -> FleetLoad<SimBus> {
    let names = bus.agent_names();
    FleetLoad::wait_for_agents(bus, &names, fleet_options(on_loss)).unwrap_or_else(|failure| panic!("{failure}"))
}

fn on_tick(_: &Tick) -> ControlFlow<EarlyStopReason> {
    ControlFlow::Continue(())
}

/// Runs one load of a fleet. The load starts 3 s after all agents have opened their connections.
fn run(fleet: &mut FleetLoad<SimBus>, plan: &Plan, may_continue: bool) -> Run {
    fleet.connect(plan, may_continue, &mut on_tick).unwrap_or_else(|failure| panic!("{failure}"));
    let origin_ns = fleet.bus().now_ns() + 3 * SECOND_NS;
    fleet.run(plan, origin_ns, &mut on_tick).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Encodes a run as in a run file, to compare two runs byte by byte.
fn encode_run(run: &Run) -> Vec<u8> {
    let mut out = Vec::new();
    let (plan, injectors) = (Box::new(run.plan.clone()), run.injectors.clone());
    Frame::TrialStart { tag: LoadTag::for_purpose(LoadPurpose::Run), start_ns: 0, plan, injectors }.encode(&mut out);
    for (index, interval) in &run.intervals {
        Frame::Interval { index: *index, interval: Box::new(interval.clone()) }.encode(&mut out);
    }
    let (ending, window_ns) = (run.ending.clone().expect("an end"), run.window_ns);
    let (addresses, failed_answers) = (Vec::new(), run.failed_answers.clone());
    Frame::TrialEnd { ending, window_ns, start_ns: 0, addresses, failed_answers }.encode(&mut out);
    out
}

/// Returns the run of one process that executes the load in this number of equal stripes (shares of
/// the schedule).
fn run_in_one_process(plan: &Plan, stripes: u64) -> Run {
    run_stripes_in_one_process(plan, &(0..stripes).map(|part| Stripe::new(part, stripes)).collect::<Vec<_>>())
}

/// Returns the run of one process that executes the load in the given stripes (shares of the
/// schedule).
fn run_stripes_in_one_process(plan: &Plan, stripes: &[Stripe]) -> Run {
    let schedule = Schedule::compile(&plan.load);
    let injectors = vec![Injector::default(); stripes.len()];
    let mut collector = Collector::new(plan.record(), injectors, stripes.len(), &schedule);
    for (part, stripe) in stripes.iter().enumerate() {
        for (index, interval) in simulated_ticks(plan, *stripe).into_iter().enumerate() {
            let tick = PartReport::Tick { part, index: index as u64, interval };
            assert!(collector.add_report(tick, &mut on_tick).is_continue());
        }
        let (window_end_ns, failed_answers) = (schedule.end_ns().expect("an end"), Vec::new());
        let _ = collector.add_report(
            PartReport::Done { part, window_end_ns, failed_answers, has_no_more_requests: false },
            &mut on_tick,
        );
    }
    collector.finish()
}

#[test]
fn three_agents_give_the_same_run_as_one_process() {
    for seed in 0..20 {
        let weather = if seed == 0 { MessageFaults::default() } else { SEVERE_MESSAGE_FAULTS };
        let mut fleet = start_fleet(SimBus::new(3, weather, seed), AgentLossPolicy::Continue);
        for load in 0..2 {
            let plan = two_route_plan(seed * 10 + load);
            let run = run(&mut fleet, &plan, true);
            assert!(run.totals().routes_sum.ledger.scheduled > 1_000, "seed {seed}");
            assert_eq!(encode_run(&run), encode_run(&run_in_one_process(&plan, 3)), "seed {seed}");
            let frames: Vec<u64> = run.agents.iter().map(|agent| agent.intervals_recorded).collect();
            assert!(
                run.agents.iter().all(|agent| agent.loss_reason.is_none() && agent.ledger.counts_add_up()),
                "{:?}",
                run.agents
            );
            assert!(frames.iter().all(|frames| *frames > 30), "{frames:?}");
            assert_eq!(run.agents.iter().any(|agent| agent.frames_repeated > 0), seed > 0, "seed {seed}");
        }
    }
}

fn weighted_stripes(weights: &[u32]) -> Vec<Stripe> {
    (0..weights.len()).map(|part| Stripe::weighted(part, weights).expect("a part")).collect()
}

#[test]
fn weighted_agents_give_the_same_run_as_one_process() {
    for (seed, weights) in [(0, vec![2, 1, 1]), (1, vec![1, 2, 7]), (2, vec![61, 13, 54]), (3, vec![5, 5, 5])] {
        let weather = if seed == 0 { MessageFaults::default() } else { SEVERE_MESSAGE_FAULTS };
        let mut fleet = start_fleet(SimBus::new(3, weather, seed), AgentLossPolicy::Continue);
        fleet.set_weights(weights.clone(), None);
        let plan = two_route_plan(seed);
        let run = run(&mut fleet, &plan, true);
        assert_eq!(
            encode_run(&run),
            encode_run(&run_stripes_in_one_process(&plan, &weighted_stripes(&weights))),
            "{weights:?}"
        );
        let whole = run.totals().routes_sum.ledger;
        assert_eq!(
            whole.scheduled,
            run_in_one_process(&plan, 1).totals().routes_sum.ledger.scheduled,
            "a partition: {weights:?}"
        );
        let sum: u32 = weights.iter().sum();
        for (agent, weight) in run.agents.iter().zip(&weights) {
            let share = whole.scheduled as f64 * f64::from(*weight) / f64::from(sum);
            assert!((agent.ledger.scheduled as f64 - share).abs() <= 3.0, "{weights:?}: {agent:?}");
        }
    }
}

#[test]
fn remaining_agents_keep_their_proportions_after_a_loss() {
    let mut fleet = start_fleet(SimBus::new(3, MessageFaults::default(), 7), AgentLossPolicy::Continue);
    fleet.set_weights(vec![4, 2, 1], None);
    fleet.bus_mut().agents[1].killed_ns = Some((6 * SECOND_NS, true));
    let plan = two_route_plan(1);
    let lost = run(&mut fleet, &plan, true);
    let whole = run_in_one_process(&plan, 1).totals().routes_sum.ledger.scheduled;
    assert_eq!((lost.totals().routes_sum.ledger.scheduled, lost.agents[1].loss_reason.is_some()), (whole, true));
    let next = run(&mut fleet, &plan, true);
    assert_eq!(encode_run(&next), encode_run(&run_stripes_in_one_process(&plan, &weighted_stripes(&[4, 1]))));
}

/// Checks that an agent with a full disk ends its load and delivers all results, and that the other
/// agents continue.
#[test]
fn a_full_disk_loses_the_agent_but_keeps_its_results() {
    for seed in 0..10 {
        let weather = if seed < 5 { MessageFaults::default() } else { SEVERE_MESSAGE_FAULTS };
        let mut fleet = start_fleet(SimBus::new(3, weather, seed), AgentLossPolicy::Continue);
        let plan = two_route_plan(seed);
        fleet.connect(&plan, true, &mut on_tick).unwrap_or_else(|failure| panic!("{failure}"));
        let origin_ns = fleet.bus().now_ns() + 3 * SECOND_NS;
        let full_ms = 300 + seed * 200;
        fleet.bus_mut().agents[2].disk_full_from_ns = origin_ns + full_ms * MILLISECOND_NS;
        let run = fleet.run(&plan, origin_ns, &mut on_tick).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(run.ending, Some(LoadEnd::Finished), "seed {seed}");
        let (ledger, whole) = (run.totals().routes_sum.ledger, run_in_one_process(&plan, 3).totals().routes_sum.ledger);
        assert!(ledger.counts_add_up() && ledger.scheduled == whole.scheduled, "seed {seed}: {ledger:?} of {whole:?}");
        let full = &run.agents[2];
        assert_eq!(
            full.loss_reason.as_deref(),
            Some("the agent's spool (its stored measurements) cannot be written"),
            "seed {seed}"
        );
        assert!(full.ledger.counts_add_up() && full.ledger.unsent > 0, "seed {seed}: {full:?}");
        // The measurements of all ticks (100 ms each) of the agent have arrived, and also the seal
        // (the totals).
        assert!((full_ms / 100 + 1..=full_ms / 100 + 3).contains(&full.intervals_recorded), "seed {seed}: {full:?}");
        assert!(
            run.agents[..2].iter().all(|agent| agent.loss_reason.is_none() && agent.ledger.unsent == 0),
            "seed {seed}"
        );
        assert_eq!(
            fleet.take_warnings(),
            ["agent load2 was lost: the agent's spool (its stored measurements) cannot be written"]
        );
    }
}

#[test]
fn agents_are_calibrated_despite_message_faults() {
    for (seed, weather) in [(1, MessageFaults::default()), (2, SEVERE_MESSAGE_FAULTS)] {
        let mut fleet = start_fleet(SimBus::new(3, weather, seed), AgentLossPolicy::Continue);
        let found = fleet.calibrate_each_agent().unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(found, [0, 1, 2].map(|agent| Ok(simulated_calibration(agent))), "seed {seed}");
    }
    let mut fleet = start_fleet(SimBus::new(2, MessageFaults::default(), 1), AgentLossPolicy::Continue);
    fleet.bus_mut().agents[1].killed_ns = Some((0, true));
    let found = fleet.calibrate_each_agent().unwrap_or_else(|failure| panic!("{failure}"));
    assert!(found[0].is_ok() && found[1] == Err("its ssh ended".to_owned()), "{found:?}");
}

#[test]
fn requests_of_a_lost_agent_count_as_unsent() {
    for seed in 0..20 {
        let (tells, weather) =
            (seed % 2 == 0, if seed < 10 { MessageFaults::default() } else { SEVERE_MESSAGE_FAULTS });
        let mut fleet = start_fleet(SimBus::new(3, weather, seed), AgentLossPolicy::Continue);
        let plan = two_route_plan(seed);
        fleet.connect(&plan, true, &mut on_tick).unwrap_or_else(|failure| panic!("{failure}"));
        let origin_ns = fleet.bus().now_ns() + 3 * SECOND_NS;
        let killed_ns = origin_ns + seed * 150 * MILLISECOND_NS;
        fleet.bus_mut().agents[1].killed_ns = Some((killed_ns, tells));
        let run = fleet.run(&plan, origin_ns, &mut on_tick).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(run.ending, Some(LoadEnd::Finished), "seed {seed}");
        let (ledger, whole) = (run.totals().routes_sum.ledger, run_in_one_process(&plan, 3).totals().routes_sum.ledger);
        assert!(ledger.counts_add_up() && ledger.scheduled == whole.scheduled, "seed {seed}: {ledger:?} of {whole:?}");
        let [first, lost, third] = run.agents.as_slice() else { panic!("{:?}", run.agents) };
        assert!(first.loss_reason.is_none() && third.loss_reason.is_none() && first.ledger.unsent == 0, "seed {seed}");
        let why = lost.loss_reason.as_deref().unwrap_or_default();
        assert_eq!(why, if tells { "its ssh ended" } else { "the agent sent nothing for 4 s" }, "seed {seed}");
        assert_eq!((lost.ledger.unsent, lost.ledger.counts_add_up()), (ledger.unsent, true), "seed {seed}");
        // Results of the lost agent count if the results arrived before the agent was killed.
        // Results that were in transit when the agent was killed are lost.
        let part = plan.load.duration_ns.expect("a length") - seed * 150 * MILLISECOND_NS;
        let expect = 400.0 / 3.0 * part as f64 / 1e9;
        assert!((lost.ledger.unsent as f64 - expect).abs() < 90.0, "seed {seed}: {} of {expect}", lost.ledger.unsent);
    }
}

#[test]
fn a_study_continues_with_new_shares_after_an_agent_is_lost() {
    let mut fleet = start_fleet(SimBus::new(3, MessageFaults::default(), 7), AgentLossPolicy::Continue);
    fleet.bus_mut().agents[0].killed_ns = Some((6 * SECOND_NS, true));
    let plan = two_route_plan(1);
    let lost = run(&mut fleet, &plan, false);
    let why = "agent load0 was lost: its ssh ended";
    assert_eq!(lost.ending, Some(LoadEnd::Stopped(EarlyStopReason::CannotContinue(why.into()))));
    assert!(lost.totals().routes_sum.ledger.counts_add_up() && lost.totals().routes_sum.ledger.unsent == 0);
    let next = run(&mut fleet, &plan, false);
    assert_eq!(encode_run(&next), encode_run(&run_in_one_process(&plan, 2)));
    assert_eq!(fleet.take_warnings(), [why]);
}

#[test]
fn the_stop_policy_ends_load_and_study_after_a_loss() {
    let mut fleet = start_fleet(SimBus::new(2, MessageFaults::default(), 7), AgentLossPolicy::Stop);
    fleet.bus_mut().agents[0].killed_ns = Some((6 * SECOND_NS, true));
    let run = run(&mut fleet, &two_route_plan(1), true);
    assert!(matches!(run.ending, Some(LoadEnd::Stopped(EarlyStopReason::CannotContinue(_)))));
    let failure = fleet.connect(&two_route_plan(1), true, &mut on_tick).expect_err("no fleet");
    assert!(failure.to_string().contains("agent load0 was lost: its ssh ended"), "{failure}");
}

#[test]
fn an_interrupt_ends_all_loads_within_a_second() {
    for (seed, weather) in [(1, MessageFaults::default()), (2, SEVERE_MESSAGE_FAULTS)] {
        let mut fleet = start_fleet(SimBus::new(3, weather, seed), AgentLossPolicy::Continue);
        let plan = two_route_plan(seed);
        fleet.connect(&plan, true, &mut on_tick).unwrap_or_else(|failure| panic!("{failure}"));
        let origin_ns = fleet.bus().now_ns() + 3 * SECOND_NS;
        let interrupted_ns = origin_ns + SECOND_NS;
        fleet.bus_mut().interrupted_at_ns = interrupted_ns;
        // The connection of one agent is cut during the load, so that the agent does not receive
        // the stop message.
        fleet.bus_mut().agents[2].disconnected_ns = (origin_ns + 500 * MILLISECOND_NS, u64::MAX);
        let interrupted = &mut |tick: &Tick| match tick.origin_ns + tick.end_ns >= interrupted_ns {
            true => ControlFlow::Break(EarlyStopReason::Interrupted),
            false => ControlFlow::Continue(()),
        };
        let run = fleet.run(&plan, origin_ns, interrupted).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(fleet.bus().now_ns() <= interrupted_ns + SECOND_NS, "seed {seed}");
        assert!(matches!(run.ending, Some(LoadEnd::Stopped(_))) && run.totals().routes_sum.ledger.counts_add_up());
        let reached = &fleet.bus().agents[..2];
        assert!(reached.iter().all(|agent| agent.loading_ns <= interrupted_ns + SECOND_NS), "seed {seed}");
    }
}

#[test]
fn a_load_without_a_coordinator_ends_with_its_lease() {
    let mut fleet = start_fleet(SimBus::new(3, MessageFaults::default(), 3), AgentLossPolicy::Continue);
    let mut plan = two_route_plan(3);
    plan.load.duration_ns = Some(60 * SECOND_NS);
    fleet.connect(&plan, true, &mut on_tick).unwrap_or_else(|failure| panic!("{failure}"));
    let origin_ns = fleet.bus().now_ns() + SECOND_NS;
    let cut_ns = origin_ns + 2 * SECOND_NS;
    fleet.bus_mut().agents.iter_mut().for_each(|agent| agent.disconnected_ns = (cut_ns, u64::MAX));
    let run = fleet.run(&plan, origin_ns, &mut on_tick).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(run.totals().routes_sum.ledger.counts_add_up());
    let bus = fleet.bus_mut();
    while bus.now_ns < cut_ns + 15 * SECOND_NS {
        bus.advance_one_ms();
    }
    for agent in &bus.agents {
        let after_ns = agent.loading_ns - cut_ns;
        assert!((9 * SECOND_NS..11 * SECOND_NS).contains(&after_ns), "{after_ns}");
    }
}

#[test]
fn a_clock_with_an_uncertain_offset_is_refused() {
    let far = MessageFaults { delay_ns: 100 * MILLISECOND_NS, ..MessageFaults::default() };
    let bus = SimBus::new(2, far, 1);
    let names = bus.agent_names();
    let failure =
        start_fleet(bus, AgentLossPolicy::Continue).refuse_mismatched_agents().expect_err("too far").to_string();
    assert!(
        failure.contains("the clock of agent load0 may be wrong by 10") && failure.contains("--max-skew allows 60ms"),
        "{failure}"
    );
    let mut silent = SimBus::new(2, MessageFaults::default(), 1);
    silent.agents[1].disconnected_ns = (0, u64::MAX);
    let failure = FleetLoad::wait_for_agents(silent, &names, fleet_options(AgentLossPolicy::Continue))
        .err()
        .expect("nobody")
        .to_string();
    assert!(failure.contains("no response within 60 s from: load1"), "{failure}");
}

#[test]
fn a_bus_delays_messages() {
    let mut bus = SimBus::new(1, MessageFaults { delay_ns: 5 * MILLISECOND_NS, ..MessageFaults::default() }, 1);
    assert!(bus.receive(Duration::from_millis(3)).is_none());
    assert!(
        bus.receive(Duration::from_millis(9))
            .is_some_and(|(agent, at_ns, _)| agent == 0 && at_ns == 6 * MILLISECOND_NS)
    );
}

/// Checks that every scheduled request has an outcome when agents are killed and disconnected at
/// random times, with reliable and unreliable messages. Delivered results must count exactly once.
/// If no agent is lost, the result must equal the result of one process. No load may outlive its
/// lease, which ends 10 s after the last message of the coordinator.
#[test]
fn every_request_has_an_outcome_under_random_agent_faults() {
    let (mut losses, mut exact) = (0, 0);
    for seed in 0..200 {
        let mut rng = Rng::for_stream(seed, 99);
        let weather = if rng.uniform_below(2) == 0 { MessageFaults::default() } else { SEVERE_MESSAGE_FAULTS };
        let mut fleet = start_fleet(SimBus::new(3, weather, seed), AgentLossPolicy::Continue);
        let plan = two_route_plan(seed);
        fleet.connect(&plan, true, &mut on_tick).unwrap_or_else(|failure| panic!("{failure}"));
        let origin_ns = fleet.bus().now_ns() + 3 * SECOND_NS;
        for agent in &mut fleet.bus_mut().agents {
            let at_ns = origin_ns + rng.uniform_below(3_500) * MILLISECOND_NS;
            match rng.uniform_below(4) {
                0 => agent.killed_ns = Some((at_ns, rng.uniform_below(2) == 0)),
                1 => agent.disconnected_ns = (at_ns, at_ns + rng.uniform_below(6_000) * MILLISECOND_NS),
                _ => {}
            }
        }
        let run = fleet.run(&plan, origin_ns, &mut on_tick).unwrap_or_else(|failure| panic!("{failure}"));
        let (ledger, whole) = (run.totals().routes_sum.ledger, run_in_one_process(&plan, 3).totals().routes_sum.ledger);
        assert!(ledger.counts_add_up(), "seed {seed}: {ledger:?}");
        let lost = run.agents.iter().filter(|agent| agent.loss_reason.is_some()).count();
        match lost {
            0 => {
                assert_eq!(encode_run(&run), encode_run(&run_in_one_process(&plan, 3)), "seed {seed}");
                exact += 1;
            }
            3 => {}
            _ => assert_eq!(ledger.scheduled, whole.scheduled, "seed {seed}: {:?}", run.agents),
        }
        losses += lost;
        for agent in &run.agents {
            assert!(agent.ledger.counts_add_up(), "seed {seed}: {agent:?}");
            assert!(agent.loss_reason.is_some() || agent.ledger.unsent == 0, "seed {seed}: {agent:?}");
        }
        let bus = fleet.bus_mut();
        let finish_ns = bus.now_ns + 11 * SECOND_NS;
        while bus.now_ns < finish_ns {
            bus.advance_one_ms();
        }
        let last_ns = bus.agents.iter().map(|agent| agent.loading_ns).max().expect("agents");
        assert!(last_ns < finish_ns - 500 * MILLISECOND_NS, "seed {seed}: a load runs on");
    }
    assert!(losses > 50 && exact > 50, "{losses} losses, {exact} exact");
}

#[test]
fn a_hundred_agents_give_the_same_run_as_one_process() {
    let mut fleet = start_fleet(SimBus::new(100, SEVERE_MESSAGE_FAULTS, 5), AgentLossPolicy::Continue);
    let mut plan = two_route_plan(5);
    plan.traffic.routes.push(plan.traffic.routes[0].clone());
    plan.load.duration_ns = Some(2 * SECOND_NS);
    let run = run(&mut fleet, &plan, true);
    assert_eq!(encode_run(&run), encode_run(&run_in_one_process(&plan, 100)));
    assert!(run.agents.len() == 100 && run.agents.iter().all(|agent| agent.loss_reason.is_none()));
}
