//! The commands, one file each. Commands only connect arguments, engine, analysis and report.

pub mod agent;
pub mod baseline;
pub mod check;
pub mod clean;
pub mod completions;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod experiment;
pub mod explain;
pub mod find;
pub mod fleet;
pub mod gate;
pub mod grpc;
pub mod history;
pub mod import;
pub mod man;
pub mod model;
pub mod overload;
pub mod profile;
pub mod prove;
pub mod replay;
mod replay_file;
pub mod report;
pub mod rerun;
pub mod run;
mod search;
#[cfg(feature = "web")]
pub mod serve;
#[cfg(not(feature = "web"))]
#[path = "serve_off.rs"]
pub mod serve;
pub mod show;
mod stored_run;
pub mod sweep;
pub mod traffic;

use crate::live::ProgressDisplay;
use plimsoll_analysis::Summary;
pub use plimsoll_study::preflight::{run_preflight, run_timed_preflight};

/// Prints how many local ports are in TIME-WAIT, if connections of the load found no free port.
pub fn note_ports_in_time_wait(live: &mut ProgressDisplay, summary: &Summary) {
    if summary.load.connect_errors.get(plimsoll_sys::tcp::NO_PORT_LEFT) > 0 {
        live.print_note(&format!(
            "{} local ports are in TIME-WAIT now",
            plimsoll_sys::process::time_wait_connections()
        ));
    }
}
