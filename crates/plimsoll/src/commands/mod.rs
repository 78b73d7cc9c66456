//! The commands, one file each: they connect arguments, the engine, the analysis and the report, and do no more.

pub mod baseline;
pub mod capture;
pub mod diff;
pub mod find;
pub mod profile;
pub mod prove;
pub mod report;
pub mod rerun;
pub mod run;
pub mod show;
pub mod sweep;

use crate::failure::Failure;
use crate::live::Live;
use crate::meant::Base;
use plimsoll_model::{LoadShape, Plan};
use plimsoll_report::block::Block;
use plimsoll_report::levels::{Profiles, levels_report};
use plimsoll_report::{Report, text};
use std::io::{IsTerminal, Write};

/// Descriptors that are not connections: standard streams, epoll, the run file.
const FILES_SPARE: u64 = 32;
/// Local ports for one pair of addresses, as Linux sets them up (32768 to 60999).
const PORTS: u64 = 28_232;

/// Writes the result to standard output. A reader that is gone is not an error.
pub fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
    let _ = std::io::stdout().flush();
}

/// Writes a report as text.
pub fn print_report(report: &Report) {
    let terminal = std::io::stdout().is_terminal();
    let size = terminal.then(plimsoll_sys::process::terminal_size).flatten();
    print(&text::render_in(report, terminal, size.map(|size| size.0)));
}

/// Writes what profiles say, below the report of what they were taken beside.
pub fn print_profiles(profiles: Option<&Profiles>) {
    if let Some(profiles) = profiles {
        let report = levels_report(profiles);
        // Facts and tables stand apart by themselves.
        if matches!(report.blocks.first(), Some(Block::Text(..))) {
            print("\n");
        }
        print_report(&report);
    }
}

/// Writes a JSON document.
pub fn print_json(document: &serde_json::Value) {
    print(&format!("{document:#}\n"));
}

/// Asks once before the load, unless told not to; returns a warning about an answer that would not count.
pub fn preflight(plan: &Plan, skip: bool) -> Result<Option<String>, Failure> {
    if skip {
        return Ok(None);
    }
    let status = crate::preflight::ask(plan)?;
    Ok((!plan.ok_status.contains(status))
        .then(|| format!("the first answer had status {status}, which does not count as success (--ok-status)")))
}

/// What this machine cannot hold of a plan, if anything, in a sentence.
pub fn cannot_hold(plan: &Plan) -> Option<String> {
    let LoadShape::Closed { users } = &plan.load else { return None };
    let (users, files) = (users.max() as u64, plimsoll_sys::process::raise_files_max());
    let ports = PORTS * plan.request.addresses.len() as u64;
    if users + FILES_SPARE > files {
        let room = files.saturating_sub(FILES_SPARE);
        Some(format!("{users} connections need more open files than the limit of {files}: at most {room} (ulimit -n)"))
    } else if users > ports {
        Some(format!("{users} connections need more local ports than the {ports} that there are"))
    } else {
        None
    }
}

/// Lowers the connections of an open plan to what this machine can hold; returns the warning for it.
pub fn fit_connections(plan: &mut Plan) -> Option<String> {
    let files = plimsoll_sys::process::raise_files_max();
    let room = u32::try_from(files.saturating_sub(FILES_SPARE).max(1)).unwrap_or(u32::MAX);
    (plan.connections_max > room).then(|| {
        plan.connections_max = room;
        format!("at most {room} connections instead of more: the limit of open files is {files} (ulimit -n)")
    })
}

/// Says on standard error how the generator is set up, where that is worth a line.
pub fn say_setup(live: &mut Live, base: &Base, plan: &Plan) {
    if base.local && !base.threads_given {
        let threads = if plan.workers == 1 { "thread" } else { "threads" };
        live.line(&format!(
            "the target is on this machine: plimsoll takes {} {threads} of its {} cores and leaves it the rest (-t)",
            plan.workers, base.cores
        ));
    }
}
