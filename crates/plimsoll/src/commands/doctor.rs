//! `plimsoll doctor`: checks whether this machine is fit to measure, and what it lacks.

use crate::args::DoctorArgs;
use crate::live::ProgressDisplay;
use crate::results::{print, print_json, stdout_terminal_width};
use plimsoll_analysis::fitness::{Fitness, MachineFitness};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_probe::machine_facts;
use plimsoll_report::doctor::{doctor_document, doctor_text};
use plimsoll_study::self_measurement;
use std::time::Duration;

/// The time for which the CPU use of other processes is sampled.
const CPU_SAMPLE_DURATION: Duration = Duration::from_secs(1);

/// Checks the machine, measures plimsoll's own capacity, and prints the result. Returns the exit
/// code.
pub fn run(args: &DoctorArgs) -> Result<u8, Failure> {
    let facts = machine_facts::read_machine_facts(CPU_SAMPLE_DURATION);
    let measured = match args.quick || plimsoll_sys::signal::is_stop_requested() {
        true => None,
        false => {
            ProgressDisplay::new(args.json)
                .print_line_unless_quiet("measuring plimsoll's speed with its reference server: 10 s");
            Some(self_measurement::measure_own_speed()?)
        }
    };
    let fitness = MachineFitness::assess(&facts, measured.as_ref());
    if args.json {
        print_json(&doctor_document(&facts, measured.as_ref(), &fitness));
    } else {
        print(&doctor_text(measured.as_ref(), &fitness, stdout_terminal_width()));
    }
    Ok(match fitness.fitness() {
        _ if plimsoll_sys::signal::is_stop_requested() => exit::INTERRUPTED,
        Fitness::Unfit => exit::NEGATIVE_RESULT,
        Fitness::Fit | Fitness::Limited => exit::SUCCESS,
    })
}
