//! How a study reaches the agents that it asks for ([`reach`]), whatever the carrier, and what is
//! known of agents without a study ([`status`]).
//!
//! Not here: the carriers (`ssh`, `nats_bus`).

use crate::allow::AllowList;
use crate::bus::Bus;
use crate::fleet_load::{AgentStatus, FleetLoad, FleetOptions};
use crate::nats_bus::NatsBus;
use crate::nats_client::BusAccess;
use crate::place::Place;
use crate::roster::AgentChoice;
use crate::service::system;
use crate::ssh;
use crate::task_key::TaskKey;
use plimsoll_model::failure::Failure;
use plimsoll_model::{AgentLossPolicy, FleetTerms, Plan, Spin, Terms};
use plimsoll_study::runner::RemoteLoad;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Refuses what a fleet cannot do: what belongs to this machine alone.
pub fn refuse(plan: &Plan, terms: &Terms<String>) -> Result<(), Failure> {
    let refused = [
        (terms.script.is_some(), "--lua: a script runs on one machine only"),
        (plan.carriage.unix.is_some(), "--unix: other machines do not have this machine's socket"),
        (plan.carriage.resolve.is_some(), "--resolve-every: agents load only addresses that they checked before"),
        (!terms.injector.sources.is_empty(), "--source-ip: other machines do not have this machine's addresses"),
    ];
    match refused.iter().find(|(is_asked, _)| *is_asked) {
        Some((_, why)) => Err(Failure::usage(format!("{why}; leave it out, or leave --fleet out"))),
        None => Ok(()),
    }
}

/// Checks what is said of a fleet, without reaching it.
pub fn check(fleet: &FleetTerms) -> Result<(), String> {
    let is_bus = matches!(Place::parse(&fleet.place).map_err(|why| format!("--fleet: {why}"))?, Place::Bus(_));
    if let Some(agents) = &fleet.agents {
        AgentChoice::parse(agents).map_err(|why| format!("--agents: {why}"))?;
    }
    let of_a_bus = [("--agents", fleet.agents.is_some()), ("--wait", fleet.wait_ns.is_some())];
    match of_a_bus.iter().find(|(_, is_said)| *is_said && !is_bus) {
        Some((flag, _)) => Err(format!("{flag}: it belongs to --fleet nats://HOST:PORT; over ssh, name the hosts")),
        None if is_bus && fleet.copied => {
            Err("--fleet-copy: nothing is copied over a bus; install the same plimsoll where the agents are".to_owned())
        }
        None => Ok(()),
    }
}

/// Reaches the agents that the terms ask for, if any, and waits until they are there. `plans`: of
/// the targets that they load.
pub fn reach(plans: &[&Plan], terms: &Terms<String>) -> Result<Option<Box<dyn RemoteLoad>>, Failure> {
    let Some(fleet) = &terms.fleet else { return Ok(None) };
    let mut targets: Vec<SocketAddr> = plans.iter().flat_map(|plan| &plan.carriage.addresses).copied().collect();
    targets.sort_unstable();
    targets.dedup();
    let key = TaskKey::of_environment()?.map(Arc::new);
    let wishes = FleetOptions {
        workers: terms.injector.workers,
        spin: terms.injector.spin,
        preflight: terms.preflight,
        on_loss: fleet.on_loss,
        skew_ns_max: fleet.skew_ns_max,
        system: system(),
        key,
    };
    match Place::parse(&fleet.place).map_err(|why| Failure::usage(format!("fleet: {why}")))? {
        Place::Ssh(hosts) => {
            checked_load(ssh::meet(&hosts, fleet.copied, &AllowList::only(&targets), wishes)?, &targets).map(Some)
        }
        Place::Bus(address) => {
            checked_load(meet_on_bus(&BusAccess::of_environment(address), fleet, wishes)?, &targets).map(Some)
        }
    }
}

/// Refuses agents that cannot load the targets together.
fn checked_load<B: Bus + 'static>(fleet: FleetLoad<B>, targets: &[SocketAddr]) -> Result<Box<dyn RemoteLoad>, Failure> {
    fleet.refuse_unfit()?;
    fleet.refuse_own_addresses(targets)?;
    Ok(Box::new(fleet))
}

fn meet_on_bus(access: &BusAccess, fleet: &FleetTerms, wishes: FleetOptions) -> Result<FleetLoad<NatsBus>, Failure> {
    let choice = fleet.agents.as_deref().map_or(Ok(AgentChoice::All), AgentChoice::parse);
    let choice = choice.map_err(|why| Failure::usage(format!("--agents: {why}")))?;
    let (bus, names) = NatsBus::open(access, &choice, fleet.wait_ns.map(Duration::from_nanos))?;
    FleetLoad::meet(bus, &names, wishes)
}

/// What is known of the agents at a place, which load nothing.
pub fn status(fleet: &FleetTerms) -> Result<Vec<AgentStatus>, Failure> {
    let (workers, spin, system) = (None, Spin::Auto, system());
    let (preflight, on_loss, skew_ns_max, key) = (false, AgentLossPolicy::Stop, u64::MAX, None);
    let wishes = FleetOptions { workers, spin, preflight, on_loss, skew_ns_max, system, key };
    match Place::parse(&fleet.place).map_err(|why| Failure::usage(format!("fleet: {why}")))? {
        Place::Ssh(hosts) => Ok(ssh::meet(&hosts, fleet.copied, "", wishes)?.status()),
        Place::Bus(address) => Ok(meet_on_bus(&BusAccess::of_environment(address), fleet, wishes)?.status()),
    }
}
