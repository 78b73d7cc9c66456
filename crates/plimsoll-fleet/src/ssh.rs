//! Fleets of machines that one can log in to: an agent on each, reached by `ssh`.
//!
//! Not here: how a login is made (`ssh_login`), and what is said over its pipe.

use crate::allow::AllowList;
use crate::fleet_load::{AgentStatus, FleetLoad, FleetWishes};
use crate::pipe_bus::{PipeBus, PipeCommand};
use crate::place::Place;
use crate::service::system;
use crate::ssh_login::{own_program, pipe_command};
use plimsoll_model::failure::Failure;
use plimsoll_model::{OnLoss, Plan, Spin, Terms, shell};
use plimsoll_study::runner::RemoteLoad;
use std::net::SocketAddr;

/// Refuses what a fleet cannot do: what belongs to this machine alone.
pub fn refuse(plan: &Plan, terms: &Terms<String>) -> Result<(), Failure> {
    let refused = [
        (terms.script.is_some(), "--lua: a script asks from one machine only"),
        (plan.carriage.unix.is_some(), "--unix: a socket of this machine is none of another's"),
        (plan.carriage.resolve.is_some(), "--resolve-every: agents load only addresses that they checked before"),
        (!terms.injector.sources.is_empty(), "--source-ip: addresses of this machine are none of another's"),
    ];
    match refused.iter().find(|(is_asked, _)| *is_asked) {
        Some((_, why)) => Err(Failure::usage(format!("{why}; leave it out, or leave --fleet out"))),
        None => Ok(()),
    }
}

/// Starts the agents that the terms ask for, if any, and waits until they are there. `plans`: of
/// the targets that they load.
pub fn reach(plans: &[&Plan], terms: &Terms<String>) -> Result<Option<Box<dyn RemoteLoad>>, Failure> {
    let Some(fleet) = &terms.fleet else { return Ok(None) };
    let mut targets: Vec<SocketAddr> = plans.iter().flat_map(|plan| &plan.carriage.addresses).copied().collect();
    targets.sort_unstable();
    targets.dedup();
    let wishes = FleetWishes {
        workers: terms.injector.workers,
        spin: terms.injector.spin,
        preflight: terms.preflight,
        on_loss: fleet.on_loss,
        skew_ns_max: fleet.skew_ns_max,
        system: system(),
    };
    let fleet = meet(&fleet.place, fleet.copied, &AllowList::only(&targets), wishes)?;
    fleet.refuse_unfit()?;
    fleet.refuse_own_addresses(&targets)?;
    Ok(Some(Box::new(fleet)))
}

/// What is known of the agents at a place, which load nothing.
pub fn status(place: &str, copied: bool) -> Result<Vec<AgentStatus>, Failure> {
    let (workers, spin, system) = (None, Spin::Auto, system());
    let wishes = FleetWishes { workers, spin, preflight: false, on_loss: OnLoss::Stop, skew_ns_max: u64::MAX, system };
    Ok(meet(place, copied, "", wishes)?.status())
}

fn meet(place: &str, copied: bool, allow: &str, wishes: FleetWishes) -> Result<FleetLoad<PipeBus>, Failure> {
    let place = Place::parse(place).map_err(|why| Failure::usage(format!("fleet: {why}")))?;
    let program = if copied { Some(own_program("--fleet-copy")?) } else { None };
    let names: Vec<String> = place.hosts.iter().map(|host| host.name.clone()).collect();
    let words = format!("--allow {}", shell::quoted(allow));
    let command = |host| pipe_command(host, &words, program.clone(), "--fleet-copy");
    let commands: Vec<PipeCommand> = place.hosts.iter().map(command).collect();
    FleetLoad::meet(PipeBus::start(commands)?, &names, wishes)
}
