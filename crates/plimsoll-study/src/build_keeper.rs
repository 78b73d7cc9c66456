//! The keeper: a process between plimsoll and a program that plimsoll starts. The keeper ensures
//! that none of the program's processes outlives plimsoll, even if plimsoll is killed with SIGKILL.
//!
//! The keeper reads a pipe whose write end only plimsoll has. When the pipe closes, plimsoll has
//! exited, and the keeper ends all its descendant processes. The keeper adopts orphans, so the
//! program's processes stay descendants of the keeper in any session or process group. The keeper
//! exits with the program's status, so plimsoll, the keeper's parent process, learns whether the
//! program succeeded.
//!
//! The keeper runs plimsoll's own executable with [`KEEPER_ARGUMENT`] as the first argument. Not
//! here: the output and the timeouts of a build (`subject`).

use crate::self_process;
use plimsoll_sys::group::{self, DescendantSet};
use plimsoll_sys::system_text;
use plimsoll_sys::{process, signal};
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The first argument that makes plimsoll's executable run as a keeper. The keeper's argument takes
/// the position of a command such as `run`.
const KEEPER_ARGUMENT: &str = "keep-processes";
/// The time for remaining processes to end by themselves before the keeper sends SIGKILL.
const GRACEFUL_EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether plimsoll has exited. The keeper sets `PARENT_EXITED` when its pipe closes.
static PARENT_EXITED: AtomicBool = AtomicBool::new(false);

/// The keeper's policy for processes that a program leaves behind when it exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrphanPolicy {
    /// The keeper ends the processes that the program left behind. Builds under test use this
    /// policy, because after a build exits there is nothing left to measure.
    End,
    /// The processes that the program left behind keep running. The user's own commands have this
    /// policy, because such commands may start background processes on purpose.
    Stay,
}

impl OrphanPolicy {
    fn argument_text(self) -> &'static str {
        match self {
            OrphanPolicy::End => "end",
            OrphanPolicy::Stay => "stay",
        }
    }
}

/// Returns a command that starts a keeper process in its own process group. The keeper starts
/// `program`. The command's standard input is the keeper's pipe. The caller must keep the keeper's
/// pipe open while the program runs.
pub fn keeper_command(program: impl AsRef<OsStr>, orphan_policy: OrphanPolicy) -> Command {
    let mut command = self_process::helper_command("build-keeper", KEEPER_ARGUMENT);
    command.arg(orphan_policy.argument_text()).arg(program);
    command
}

/// Parses the arguments of a keeper: the orphan policy, and the program with its arguments. `None`
/// if this process is not a keeper.
fn parse_arguments(mut arguments: impl Iterator<Item = OsString>) -> Option<(OrphanPolicy, OsString, Vec<OsString>)> {
    if arguments.nth(1)? != KEEPER_ARGUMENT {
        return None;
    }
    let word = arguments.next()?;
    let left = [OrphanPolicy::End, OrphanPolicy::Stay].into_iter().find(|left| word == left.argument_text())?;
    Some((left, arguments.next()?, arguments.collect()))
}

/// Runs this process as a keeper, and never returns, if the first argument of the process is
/// [`KEEPER_ARGUMENT`].
pub fn run_keeper_if_requested() {
    let Some((left, program, arguments)) = parse_arguments(std::env::args_os()) else { return };
    process::set_process_name(c"build-keeper");
    signal::ignore_user_signals();
    // If the kernel does not let the keeper adopt orphans, the keeper does not find processes whose
    // parent process has exited.
    let _ = group::adopt_orphans();
    let mut command = Command::new(&program);
    command.args(arguments).process_group(0).stdin(Stdio::null());
    group::kill_when_thread_ends(&mut command);
    let child = match command.spawn() {
        Ok(child) => child.id(),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{}: {}", program.to_string_lossy(), system_text(&error));
            std::process::exit(127);
        }
    };
    std::thread::spawn(|| {
        // plimsoll writes no bytes to the pipe, so the read returns only when plimsoll has exited.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        PARENT_EXITED.store(true, Ordering::SeqCst);
        let _ = DescendantSet::all_descendants().end(|| GRACEFUL_EXIT_TIMEOUT);
        std::process::exit(1);
    });
    while let Some((pid, status)) = group::wait_for_ended_child() {
        if pid == child {
            if left == OrphanPolicy::End || PARENT_EXITED.load(Ordering::SeqCst) {
                let _ = DescendantSet::all_descendants().end(|| GRACEFUL_EXIT_TIMEOUT);
            }
            group::end_like_process(status);
        }
    }
    std::process::exit(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keeper_is_requested_only_by_its_keyword() {
        for (words, expect) in [
            (&["plimsoll", KEEPER_ARGUMENT, "end", "sh", "-c", "x y"][..], Some((OrphanPolicy::End, "sh", 2))),
            (&["plimsoll", KEEPER_ARGUMENT, "stay", "sh"], Some((OrphanPolicy::Stay, "sh", 0))),
            (&["plimsoll", KEEPER_ARGUMENT, "maybe", "sh"], None),
            (&["plimsoll", KEEPER_ARGUMENT, "end"], None),
            (&["plimsoll", "run", KEEPER_ARGUMENT], None),
            (&["plimsoll"], None),
        ] {
            let got = parse_arguments(words.iter().map(OsString::from));
            let got = got.as_ref().map(|(left, program, rest)| (*left, program.to_str().expect("text"), rest.len()));
            assert_eq!(got, expect, "{words:?}");
        }
    }
}
