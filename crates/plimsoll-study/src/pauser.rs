//! The pauser: a process that briefly stops other processes (SIGSTOP) during a load, and reliably
//! resumes them. The pauser runs plimsoll's own executable with [`PAUSER_ARGUMENT`] as first
//! argument.
//!
//! The pauser reads a pipe whose write end only plimsoll has. A byte in the pipe starts the pauses.
//! When the pipe closes, because the load or plimsoll ended, the pauser resumes all processes and
//! exits. ^C and the usual signals do not reach the pauser. If the pauser is killed, plimsoll
//! resumes the stopped processes (`runner::process_pauser`). A process stays stopped only if
//! plimsoll and the pauser are killed at once.
//!
//! Not here: choosing the processes, and checking whether they may be stopped.

use crate::self_process;
use plimsoll_model::intervention::{DEPENDENCY_PAUSE_NS, DEPENDENCY_PAUSE_PERIOD_NS};
use plimsoll_sys::pause::ProcessHandle;
use plimsoll_sys::{process, signal};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The first argument of a pauser process, in the position of a command such as `run`. Further
/// arguments of a pauser are the processes to pause, each in the format of [`process_argument`].
const PAUSER_ARGUMENT: &str = "stop-processes";

/// Formats a process as an argument of the pauser: process id and start time. The start time lets
/// the pauser detect that another process has the same id now.
fn process_argument(pid: u32, started_ticks: u64) -> String {
    format!("{pid}.{started_ticks}")
}

/// Returns the command that starts a pauser for these processes, each given as id and start time.
pub fn pauser_command(processes: impl IntoIterator<Item = (u32, u64)>) -> Command {
    let mut command = self_process::helper_command("plimsoll", PAUSER_ARGUMENT);
    command
        .stdout(Stdio::piped())
        .args(processes.into_iter().map(|(pid, started_ticks)| process_argument(pid, started_ticks)));
    command
}

/// Parses the arguments of a pauser process to processes (id, start time). `None` if this process
/// is not a pauser.
fn parse_arguments(mut arguments: impl Iterator<Item = OsString>) -> Option<Vec<(u32, u64)>> {
    if arguments.nth(1)? != PAUSER_ARGUMENT {
        return None;
    }
    let process = |word: OsString| {
        let (pid, started_ticks) = word.to_str()?.split_once('.')?;
        Some((pid.parse().ok()?, started_ticks.parse().ok()?))
    };
    let processes: Vec<(u32, u64)> = arguments.map(process).collect::<Option<_>>()?;
    (!processes.is_empty()).then_some(processes)
}

/// The processes that the pauser stops. Dropping a `PausableProcesses` resumes all of its
/// processes, also during a panic.
struct PausableProcesses(Vec<ProcessHandle>);

impl PausableProcesses {
    fn stop(&self) {
        // Errors are ignored: a process that has ended need not be stopped.
        self.0.iter().for_each(|process| _ = process.stop());
    }

    fn resume(&self) {
        self.0.iter().for_each(|process| _ = process.resume());
    }
}

impl Drop for PausableProcesses {
    fn drop(&mut self) {
        self.resume();
    }
}

/// Runs this process as a pauser, and never returns, if the first argument of the process is
/// [`PAUSER_ARGUMENT`].
pub fn run_pauser_if_requested() {
    let Some(processes) = parse_arguments(std::env::args_os()) else { return };
    process::set_process_name(c"stopper");
    signal::ignore_user_signals();
    let held: Result<Vec<ProcessHandle>, _> =
        processes.iter().map(|(pid, ticks)| ProcessHandle::open_process(*pid, *ticks)).collect();
    let Ok(held) = held.map(PausableProcesses) else { std::process::exit(2) };
    let mut out = std::io::stdout();
    if out.write_all(b"+").and_then(|()| out.flush()).is_err() || std::io::stdin().read_exact(&mut [0]).is_err() {
        std::process::exit(1);
    }
    let (over, wait) = channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(over);
    });
    pause_periodically(&held, &wait);
    drop(held);
    std::process::exit(0);
}

/// Stops and resumes the processes periodically until the pipe to plimsoll closes.
fn pause_periodically(processes: &PausableProcesses, over: &Receiver<()>) {
    let waits = |ns: u64| {
        over.recv_timeout(Duration::from_nanos(ns)).is_err_and(|why| why == std::sync::mpsc::RecvTimeoutError::Timeout)
    };
    while waits(DEPENDENCY_PAUSE_PERIOD_NS - DEPENDENCY_PAUSE_NS) {
        processes.stop();
        let goes = waits(DEPENDENCY_PAUSE_NS);
        processes.resume();
        if !goes {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pauser_is_requested_only_by_its_keyword() {
        for (words, expect) in [
            (&["plimsoll", PAUSER_ARGUMENT, "12.345", "7.1"][..], Some(vec![(12, 345), (7, 1)])),
            (&["plimsoll", PAUSER_ARGUMENT], None),
            (&["plimsoll", PAUSER_ARGUMENT, "12"], None),
            (&["plimsoll", PAUSER_ARGUMENT, "12.345", "x"], None),
            (&["plimsoll", PAUSER_ARGUMENT, "-1.5"], None),
            (&["plimsoll", "run", PAUSER_ARGUMENT, "12.345"], None),
        ] {
            assert_eq!(parse_arguments(words.iter().map(OsString::from)), expect, "{words:?}");
        }
        assert_eq!(
            parse_arguments(["plimsoll", PAUSER_ARGUMENT, &process_argument(3, 9)].iter().map(OsString::from)),
            Some(vec![(3, 9)])
        );
    }
}
