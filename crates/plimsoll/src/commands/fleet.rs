//! `plimsoll fleet`: shows the machines of a fleet and measures their capacity. The command also
//! fetches runs from a bus, starts local agents for a trial fleet, and makes keys. No load is sent
//! to a target.

use crate::args::FleetCommandArgs;
use crate::results::print_json;
use plimsoll_fleet::fleet_location::BusAddress;
use plimsoll_fleet::shares::agent_weights_from_calibrations;
use plimsoll_fleet::{BusAccess, FetchedRun, TaskKey};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::{AgentLossPolicy, FleetSettings};
use plimsoll_report::block::Report;
use plimsoll_report::calibration::{calibration_document, calibration_text};
use plimsoll_report::{format, text};
use plimsoll_study::output::{print, print_to_stderr};
use plimsoll_study::quantity::{parse_positive_time, with_flag_name};
use std::path::{Path, PathBuf};

/// Executes the action that the arguments name. Returns the exit code.
pub fn run(args: &FleetCommandArgs) -> Result<u8, Failure> {
    let of = [
        ("--local", args.local.is_some(), &["up"][..]),
        ("--allow", args.allow.is_some(), &["up"]),
        ("--agents", args.agents.is_some(), &["status", "calibrate"]),
        ("--wait", args.wait.is_some(), &["status", "calibrate"]),
        ("--fleet-copy", args.fleet_copy, &["status", "calibrate"]),
        ("--json", args.json, &["calibrate"]),
        ("--output", args.output.is_some(), &["fetch"]),
        ("RUN", args.word.is_some(), &["fetch"]),
    ];
    if let Some((argument, _, actions)) =
        of.iter().find(|(_, is_stated, actions)| *is_stated && !actions.contains(&&*args.what))
    {
        let actions = actions.join(" and ");
        return Err(Failure::usage(format!(
            "{argument}: only plimsoll fleet {actions} uses this argument; leave {argument} out"
        )));
    }
    let place =
        |remedy: &str| args.place.as_deref().ok_or_else(|| Failure::usage(format!("fleet {}: {remedy}", args.what)));
    match args.what.as_str() {
        "status" => {
            status(place("give the address of the agents, such as ssh://load1,load2 or nats://bus:4222")?, args)
        }
        "calibrate" => calibrate_agents(
            place("give the address of the agents, such as ssh://load1,load2 or nats://bus:4222")?,
            args,
        ),
        "fetch" => {
            fetch_run_file(place("give the address of the bus that stores the run, such as nats://bus:4222")?, args)
        }
        "key" => {
            let public = TaskKey::create_key_file(Path::new(place("give a file for the new key, such as fleet.key")?))?;
            print(&format!("{public}\n"));
            Ok(exit::SUCCESS)
        }
        _ => run_local_agents(args),
    }
}

/// Asks each machine for its status and prints a table.
fn status(fleet_url: &str, args: &FleetCommandArgs) -> Result<u8, Failure> {
    let agents = plimsoll_fleet::query_agent_status(&parse_fleet_settings(fleet_url, args)?)?;
    let time = |ns: u64| format::duration(ns as f64);
    let rows = agents.into_iter().map(|agent| {
        let (cores, round_trip) = (agent.cores.to_string(), time(agent.round_trip_ns));
        vec![agent.name, agent.version, cores, round_trip, time(agent.clock_error_ns_max)]
    });
    let mut report = Report::default();
    report.add_table(&["agent", "plimsoll", "cores", "round trip", "clock within"], rows.collect());
    print(&text::render(&report, false));
    Ok(exit::SUCCESS)
}

/// Makes each machine measure its capacity. Stores and prints the measured capacities. If every
/// machine has a measured capacity, also prints each machine's share of a load, which follows from
/// its capacity. Otherwise returns an error that names the machines without a measured capacity.
fn calibrate_agents(fleet_url: &str, args: &FleetCommandArgs) -> Result<u8, Failure> {
    let settings = parse_fleet_settings(fleet_url, args)?;
    print_to_stderr("each machine measures plimsoll's speed with a local reference server: 10 s");
    let (mut agents, mut failed) = (Vec::new(), Vec::new());
    for found in plimsoll_fleet::calibrate_fleet(&settings)? {
        match found {
            Ok(agent) => agents.push(agent),
            Err((name, why)) => failed.push(format!("agent {name}: {why}")),
        }
    }
    let weights = if failed.is_empty() { agent_weights_from_calibrations(&agents) } else { Vec::new() };
    match args.json {
        true => print_json(&calibration_document(&agents, &weights)),
        false => print(&calibration_text(&agents, &weights)),
    }
    match failed.is_empty() {
        true => Ok(exit::SUCCESS),
        false => Err(Failure::cannot_start(failed.join("; "))),
    }
}

/// Converts the flags to the settings that select the agents.
fn parse_fleet_settings(fleet_url: &str, args: &FleetCommandArgs) -> Result<FleetSettings, Failure> {
    let wait_ns = args.wait.as_deref().map(|wait| parse_positive_time("--wait", wait)).transpose()?;
    let (url, agents) = (fleet_url.to_owned(), args.agents.clone());
    let (copied, on_loss) = (args.fleet_copy, AgentLossPolicy::Stop);
    let fleet = FleetSettings { url, copied, on_loss, skew_ns_max: u64::MAX, agents, wait_ns, weights: None };
    plimsoll_fleet::check_fleet_options(&fleet).map_err(Failure::usage)?;
    Ok(fleet)
}

/// Fetches a run from the bus, writes it to a file, and prints whether it is complete.
fn fetch_run_file(fleet_url: &str, args: &FleetCommandArgs) -> Result<u8, Failure> {
    let address = with_flag_name("fleet fetch", BusAddress::parse(fleet_url))?;
    let run = args.word.as_deref().ok_or_else(|| {
        Failure::usage(
            "fleet fetch: the name of the run is missing; the plimsoll that started the run printed the name",
        )
    })?;
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{run}.plimsoll")));
    let run_file = path.display();
    let message = match plimsoll_fleet::fetch_run_file(&BusAccess::from_environment(address), run, &path)? {
        FetchedRun::Whole => format!("run file: {run_file}"),
        FetchedRun::Recovered { intervals, unfinished } => {
            let unfinished = match unfinished.is_empty() {
                true => String::new(),
                false => format!(
                    " The bus has no record of how the load of these agents ended: {agents}.",
                    agents = unfinished.join(", ")
                ),
            };
            format!(
                "run file: {run_file}\nThe plimsoll that started the run was lost. The run file contains only the \
                 run's last load: {intervals} intervals that all agents had finished.{unfinished}"
            )
        }
    };
    print(&format!("{message}\n"));
    Ok(exit::SUCCESS)
}

/// Runs agents on this machine until ^C.
fn run_local_agents(args: &FleetCommandArgs) -> Result<u8, Failure> {
    if args.place.is_some() {
        return Err(Failure::usage("fleet up starts agents on this machine; give --local N, and no address"));
    }
    let count = args.local.ok_or_else(|| Failure::usage("fleet up: give the number of agents, such as --local 3"))?;
    plimsoll_fleet::run_local_fleet(count, args.allow.as_deref(), &mut |line| print(&format!("{line}\n")))?;
    Ok(exit::SUCCESS)
}
