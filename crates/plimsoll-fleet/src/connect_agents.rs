//! Connects a study to the agents of its fleet ([`connect_fleet`]) over any transport. Also queries
//! the status of agents when no study runs ([`query_agent_status`]), and calibrates agents
//! ([`calibrate_fleet`]).
//!
//! Not here: the transports (`ssh_login`, `nats_bus`).

use crate::allow::AllowList;
use crate::bus::Bus;
use crate::calibration_store;
use crate::fleet_load::{AgentStatus, FleetLoad, FleetOptions};
use crate::fleet_location::FleetLocation;
use crate::nats_bus::NatsBus;
use crate::nats_client::BusAccess;
use crate::roster::AgentChoice;
use crate::service::system_identifier;
use crate::shares::{AgentWeights, calibrated_weights};
use crate::ssh;
use crate::task_key::TaskKey;
use plimsoll_model::failure::Failure;
use plimsoll_model::machine_facts::SelfMeasurement;
use plimsoll_model::{AgentCalibration, AgentLossPolicy, ExperimentSettings, FleetSettings, Plan, Spin};
use plimsoll_study::runner::RemoteLoad;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns an error for options that work only on this machine and therefore cannot be used with a
/// fleet.
pub fn refuse_local_only_options(plan: &Plan, settings: &ExperimentSettings<String>) -> Result<(), Failure> {
    let refused = [
        (settings.script.is_some(), "--lua", "a Lua script runs only on this machine, not on agents"),
        (
            plan.connection_plan.unix.is_some(),
            "--unix",
            "other machines cannot connect to a unix socket of this machine",
        ),
        (
            plan.connection_plan.resolve.is_some(),
            "--resolve-every",
            "an agent uses only the target addresses that this plimsoll resolved before the load",
        ),
        (
            !settings.injector.sources.is_empty(),
            "--source-ip",
            "other machines cannot send from this machine's addresses",
        ),
    ];
    match refused.iter().find(|(is_present, ..)| *is_present) {
        Some((_, flag, reason)) => {
            Err(Failure::usage(format!("{flag} does not work with --fleet: {reason}. Leave {flag} or --fleet out")))
        }
        None => Ok(()),
    }
}

/// Checks that the user's options for a fleet are valid, without connecting to the fleet.
pub fn check_fleet_options(fleet: &FleetSettings) -> Result<(), String> {
    let place = FleetLocation::parse(&fleet.url).map_err(|why| format!("--fleet: {why}"))?;
    let is_bus = matches!(place, FleetLocation::Bus(_));
    let choice =
        fleet.agents.as_deref().map(AgentChoice::parse).transpose().map_err(|why| format!("--agents: {why}"))?;
    if let Some(weights) = parse_weights(fleet).map_err(|why| format!("--weights: {why}"))? {
        let names = match (place, choice) {
            (FleetLocation::Ssh(hosts), _) => Some(hosts.into_iter().map(|host| host.name).collect()),
            (FleetLocation::Bus(_), Some(AgentChoice::Named(names))) => Some(names),
            (FleetLocation::Bus(_), _) => None,
        };
        let known = names.map_or(Ok(()), |names: Vec<String>| weights.weight_of_each_agent(&names).map(drop));
        known.map_err(|why| format!("--weights: {why}"))?;
    }
    let of_a_bus = [("--agents", fleet.agents.is_some()), ("--wait", fleet.wait_ns.is_some())];
    match of_a_bus.iter().find(|(_, is_stated)| *is_stated && !is_bus) {
        Some((flag, _)) => Err(format!(
            "{flag} works only with a bus (--fleet nats://HOST:PORT): leave {flag} out, and name the hosts in --fleet \
             ssh://HOST,HOST"
        )),
        None if is_bus && fleet.copied => {
            Err("--fleet-copy: plimsoll cannot be copied over a bus; install the same plimsoll on the agents' \
                machines"
                .to_owned())
        }
        None => Ok(()),
    }
}

/// Parses the weights that the user sets for the agents' shares of the load. Weights without names
/// belong to the agents in the order in which the user names the agents.
fn parse_weights(fleet: &FleetSettings) -> Result<Option<AgentWeights>, String> {
    let weights = fleet.weights.as_deref().map(AgentWeights::parse).transpose()?;
    let named = match fleet.agents.as_deref().map(AgentChoice::parse) {
        Some(Ok(AgentChoice::Named(names))) => names,
        _ => Vec::new(),
    };
    Ok(match weights {
        Some(AgentWeights::Ordered(weights)) if weights.len() == named.len() => {
            Some(AgentWeights::Named(named.into_iter().zip(weights).collect()))
        }
        weights => weights,
    })
}

/// Sets the agents' shares of the load from the user's weights, or from stored calibrations.
fn choose_agent_shares<B: Bus>(load: &mut FleetLoad<B>, fleet: &FleetSettings) -> Result<(), Failure> {
    let agents = load.status();
    let refused = |why: String| Failure::usage(format!("--weights: {why}"));
    let (shares, note) = match parse_weights(fleet).map_err(refused)? {
        Some(weights) => {
            let names: Vec<String> = agents.into_iter().map(|agent| agent.name).collect();
            (weights.weight_of_each_agent(&names).map_err(refused)?, None)
        }
        None => match calibration_store::read(&calibration_store::calibration_file_path()) {
            Ok(known) => calibrated_weights(&known, &agents),
            Err(reason) => (Vec::new(), Some(format!("all agents get equal shares of the load, because {reason}"))),
        },
    };
    load.set_weights(shares, note);
    Ok(())
}

/// Connects to the fleet that the settings name, and waits for its agents. The agents may send load
/// only to the targets of `plans`. Returns `None` if the settings name no fleet.
pub fn connect_fleet(
    plans: &[&Plan],
    settings: &ExperimentSettings<String>,
) -> Result<Option<Box<dyn RemoteLoad>>, Failure> {
    let Some(fleet) = &settings.fleet else { return Ok(None) };
    let mut targets: Vec<SocketAddr> = plans.iter().flat_map(|plan| &plan.connection_plan.addresses).copied().collect();
    targets.sort_unstable();
    targets.dedup();
    let key = TaskKey::key_from_environment()?.map(Arc::new);
    let wishes = FleetOptions {
        workers: settings.injector.workers,
        spin: settings.injector.spin,
        preflight: settings.preflight,
        on_loss: fleet.on_loss,
        skew_ns_max: fleet.skew_ns_max,
        system: system_identifier(),
        key,
    };
    match FleetLocation::parse(&fleet.url).map_err(|why| Failure::usage(format!("fleet: {why}")))? {
        FleetLocation::Ssh(hosts) => check_and_share_load(
            ssh::start_agents(&hosts, fleet.copied, &AllowList::list_text(&targets), wishes)?,
            fleet,
            &targets,
        )
        .map(Some),
        FleetLocation::Bus(address) => {
            check_and_share_load(connect_on_bus(&BusAccess::from_environment(address), fleet, wishes)?, fleet, &targets)
                .map(Some)
        }
    }
}

/// Checks that the agents can send load to the targets together, and sets the agents' shares of the
/// load.
fn check_and_share_load<B: Bus + 'static>(
    mut load: FleetLoad<B>,
    fleet: &FleetSettings,
    targets: &[SocketAddr],
) -> Result<Box<dyn RemoteLoad>, Failure> {
    load.refuse_mismatched_agents()?;
    load.refuse_loopback_targets(targets)?;
    choose_agent_shares(&mut load, fleet)?;
    Ok(Box::new(load))
}

fn connect_on_bus(
    access: &BusAccess,
    fleet: &FleetSettings,
    options: FleetOptions,
) -> Result<FleetLoad<NatsBus>, Failure> {
    let choice = fleet.agents.as_deref().map_or(Ok(AgentChoice::All), AgentChoice::parse);
    let choice = choice.map_err(|why| Failure::usage(format!("--agents: {why}")))?;
    let (bus, names) = NatsBus::open(access, &choice, fleet.wait_ns.map(Duration::from_nanos))?;
    FleetLoad::wait_for_agents(bus, &names, options)
}

/// Returns the status of the agents of a fleet, without running a load.
pub fn query_agent_status(fleet: &FleetSettings) -> Result<Vec<AgentStatus>, Failure> {
    let wishes = options_without_load(None);
    match FleetLocation::parse(&fleet.url).map_err(|why| Failure::usage(format!("fleet: {why}")))? {
        FleetLocation::Ssh(hosts) => Ok(ssh::start_agents(&hosts, fleet.copied, "", wishes)?.status()),
        FleetLocation::Bus(address) => {
            Ok(connect_on_bus(&BusAccess::from_environment(address), fleet, wishes)?.status())
        }
    }
}

/// Returns the fleet options for a connection that only queries or calibrates agents and runs no
/// load.
fn options_without_load(key: Option<Arc<TaskKey>>) -> FleetOptions {
    let (workers, spin, system) = (None, Spin::Auto, system_identifier());
    let (preflight, on_loss, skew_ns_max) = (false, AgentLossPolicy::Stop, u64::MAX);
    FleetOptions { workers, spin, preflight, on_loss, skew_ns_max, system, key }
}

/// The calibrated capacity of each agent. An error has the agent's name, and the reason as a
/// sentence without that name.
pub type AgentCalibrations = Vec<Result<AgentCalibration, (String, String)>>;

/// Calibrates the agents of a fleet and stores the results.
pub fn calibrate_fleet(fleet: &FleetSettings) -> Result<AgentCalibrations, Failure> {
    let wishes = options_without_load(TaskKey::key_from_environment()?.map(Arc::new));
    let found = match FleetLocation::parse(&fleet.url).map_err(|why| Failure::usage(format!("fleet: {why}")))? {
        FleetLocation::Ssh(hosts) => calibrate_agents(ssh::start_agents(&hosts, fleet.copied, "", wishes)?),
        FleetLocation::Bus(address) => {
            calibrate_agents(connect_on_bus(&BusAccess::from_environment(address), fleet, wishes)?)
        }
    }?;
    let new: Vec<AgentCalibration> = found.iter().flatten().cloned().collect();
    if !new.is_empty() {
        calibration_store::store_calibrations(&calibration_store::calibration_file_path(), &new)
            .map_err(Failure::cannot_start)?;
    }
    Ok(found)
}

fn calibrate_agents<B: Bus>(mut load: FleetLoad<B>) -> Result<AgentCalibrations, Failure> {
    load.refuse_mismatched_agents()?;
    let measured = load.calibrate_each_agent()?;
    let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    // The status of the agents is read after the calibration, because the pings during the
    // calibration have reduced the error of the clock offsets.
    let calibration = |(agent, measured): (AgentStatus, Result<SelfMeasurement, String>)| {
        let AgentStatus { name, version: plimsoll, cores, machine_fingerprint: machine, clock_error_ns_max, .. } =
            agent;
        match measured {
            Ok(measurement) => {
                Ok(AgentCalibration { name, machine, plimsoll, cores, clock_error_ns_max, unix_s, measurement })
            }
            Err(why) => Err((name, why)),
        }
    };
    Ok(load.status().into_iter().zip(measured).map(calibration).collect())
}
