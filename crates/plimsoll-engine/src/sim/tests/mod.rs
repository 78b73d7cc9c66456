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
use super::server::{Cut, Fault, MS, Service, SimServer, SimStall};
use super::{Setup, Sim, Simulation, simulate, verify};
use plimsoll_model::units::SECOND;
use plimsoll_model::{Arrivals, Curve, Injector, LoadShape, Plan, RequestFailure, Spin, Stripe, Tally};
use std::ops::ControlFlow;

/// Returns the first seed of every random test, from `PLIMSOLL_SEED` if set.
fn first_seed() -> u64 {
    let default = 20_260_101;
    std::env::var("PLIMSOLL_SEED").map_or(default, |text| text.parse().expect("PLIMSOLL_SEED is a number"))
}

/// Returns a plan with this load, a timeout of 60 ms, a grace period of 85 ms and no polling.
fn plan_with_load(shape: LoadShape) -> Setup {
    let mut plan = Plan::get("localhost", 80, vec!["127.0.0.1:80".parse().expect("an address")], shape);
    plan.traffic.routes[0].timeout_ns = 60 * MS;
    plan.load.grace_ns = 85 * MS;
    Setup { plan, injector: Injector { spin: Spin::Off, ..Injector::default() } }
}

fn closed_loop_plan(users: &str) -> Setup {
    plan_with_load(LoadShape::Closed { users: Curve::parse(users).expect(users) })
}

fn constant_rate_plan(rate: &str) -> Setup {
    plan_with_load(LoadShape::Open { rate: Curve::parse(rate).expect(rate), arrivals: Arrivals::Constant })
}

fn poisson_rate_plan(rate: &str) -> Setup {
    plan_with_load(LoadShape::Open { rate: Curve::parse(rate).expect(rate), arrivals: Arrivals::Poisson })
}

/// Runs a plan and verifies the run. Every error message contains the seed.
fn run(plan: &Setup, server: &SimServer, seed: u64) -> Sim {
    run_on(SimMachine::default(), plan, server, seed)
}

fn run_on(machine: SimMachine, plan: &Setup, server: &SimServer, seed: u64) -> Sim {
    let sim = Simulation { plan, stripe: Stripe::WHOLE_SCHEDULE, server, machine, seed }
        .run(&mut |_| ControlFlow::Continue(()));
    if let Err(complaint) = verify(&sim, server) {
        panic!("PLIMSOLL_SEED={seed}: {complaint}");
    }
    sim
}

/// Returns the number of measured arrivals of an open schedule up to `until_ns` of schedule time.
fn measured_arrivals_until(sim: &Sim, until_ns: u64) -> u64 {
    let measured = sim.schedule.measured_from_ns()..=until_ns;
    sim.schedule
        .arrivals(Stripe::WHOLE_SCHEDULE)
        .take_while(|(_, at)| *at <= until_ns)
        .filter(|(_, at)| measured.contains(at))
        .count() as u64
}

fn failed_request_count(sim: &Sim, failure: RequestFailure) -> u64 {
    sim.run.totals().routes_sum.ledger.failed[failure as usize]
}

/// Returns whether `value` differs from `expect` by at most `share` times `expect`.
fn is_near(value: f64, expect: f64, share: f64) -> bool {
    (value - expect).abs() <= share * expect
}
