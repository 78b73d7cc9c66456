//! `plimsoll fleet status`: what is known of the machines of a fleet. Nothing is loaded.

use crate::args::FleetStatusArgs;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_report::block::Report;
use plimsoll_report::{format, text};
use plimsoll_study::output::print;

/// Asks each machine, and shows what it says.
pub fn run(args: &FleetStatusArgs) -> Result<u8, Failure> {
    let agents = plimsoll_fleet::status(&args.place, args.fleet_copy)?;
    let time = |ns: u64| format::duration(ns as f64);
    let rows = agents.into_iter().map(|agent| {
        let (cores, round_trip) = (agent.cores.to_string(), time(agent.round_trip_ns));
        vec![agent.name, agent.plimsoll, cores, round_trip, time(agent.clock_error_ns_max)]
    });
    let mut report = Report::default();
    report.table(&["agent", "plimsoll", "cores", "round trip", "clock within"], rows.collect());
    print(&text::render(&report, false));
    Ok(exit::DONE)
}
