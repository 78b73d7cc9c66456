//! Tests of the engine in simulation. A random test that fails prints its seed. The environment
//! variable `PLIMSOLL_SEED` sets the first seed of random tests.

mod accounts;
mod answers;
mod canary;
mod clocks;
mod connections;
mod cost;
mod failed;
mod generator;
mod ledger;
mod merging;
mod sessions;
mod streams;
mod turns;
mod unit;

use super::net::SimMachine;
use super::server::{Fault, MS, ResponseSplit, ServiceTimes, SimServer, SimStall};
use super::{SimulatedPlan, SimulatedRun, Simulation, simulate, verify};
use plimsoll_model::units::SECOND;
use plimsoll_model::{ArrivalSpacing, CountsByKey, Injector, LoadCurve, LoadShape, Plan, RequestFailure, Spin, Stripe};
use std::ops::ControlFlow;

/// Returns the first seed of every random test, from `PLIMSOLL_SEED` if set.
fn first_seed() -> u64 {
    let default = 20_260_101;
    std::env::var("PLIMSOLL_SEED").map_or(default, |text| text.parse().expect("PLIMSOLL_SEED is a number"))
}

/// Returns a plan with this load, a timeout of 60 ms, a grace period of 85 ms and no polling.
fn plan_with_load(shape: LoadShape) -> SimulatedPlan {
    let mut plan = Plan::for_get_request("localhost", 80, vec!["127.0.0.1:80".parse().expect("an address")], shape);
    plan.traffic.routes[0].timeout_ns = 60 * MS;
    plan.load.grace_ns = 85 * MS;
    SimulatedPlan { plan, injector: Injector { spin: Spin::Off, ..Injector::default() } }
}

fn closed_loop_plan(users: &str) -> SimulatedPlan {
    plan_with_load(LoadShape::Closed { users: LoadCurve::parse(users).expect(users) })
}

fn constant_rate_plan(rate: &str) -> SimulatedPlan {
    plan_with_load(LoadShape::Open { rate: LoadCurve::parse(rate).expect(rate), arrivals: ArrivalSpacing::Constant })
}

fn poisson_rate_plan(rate: &str) -> SimulatedPlan {
    plan_with_load(LoadShape::Open { rate: LoadCurve::parse(rate).expect(rate), arrivals: ArrivalSpacing::Poisson })
}

/// Runs a plan and verifies the run. Every error message contains the seed.
fn run(plan: &SimulatedPlan, server: &SimServer, seed: u64) -> SimulatedRun {
    run_on_machine(SimMachine::default(), plan, server, seed)
}

fn run_on_machine(machine: SimMachine, plan: &SimulatedPlan, server: &SimServer, seed: u64) -> SimulatedRun {
    let sim = Simulation { plan, stripe: Stripe::WHOLE_SCHEDULE, server, machine, seed }
        .run(&mut |_| ControlFlow::Continue(()));
    if let Err(complaint) = verify(&sim, server) {
        panic!("PLIMSOLL_SEED={seed}: {complaint}");
    }
    sim
}

/// Returns the number of measured arrivals of an open schedule up to `until_ns` of schedule time.
fn measured_arrivals_until(sim: &SimulatedRun, until_ns: u64) -> u64 {
    let measured = sim.schedule.measured_from_ns()..=until_ns;
    sim.schedule
        .arrivals_of_stripe(Stripe::WHOLE_SCHEDULE)
        .take_while(|(_, at)| *at <= until_ns)
        .filter(|(_, at)| measured.contains(at))
        .count() as u64
}

fn failed_request_count(sim: &SimulatedRun, failure: RequestFailure) -> u64 {
    sim.run.totals().routes_sum.ledger.failed[failure as usize]
}

/// Returns whether `value` differs from `expect` by at most `share` times `expect`.
fn is_near(value: f64, expect: f64, share: f64) -> bool {
    (value - expect).abs() <= share * expect
}
