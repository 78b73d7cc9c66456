//! Pauses downstream dependencies of the server, such as a database, that the user permits plimsoll
//! to pause (`--may-signal`). [`find_pausable_processes`] selects the processes. [`ProcessPauser`]
//! pauses the selected processes during a load, and resumes them however the load ends.
//!
//! Only dependencies may be paused: processes to which the server has connections, and the
//! dependencies of these processes. The server, plimsoll, their ancestors and all other processes
//! are refused. Not here: the rhythm of pauses, and resuming after the end of plimsoll (`pauser`).

use crate::base::ResolvedTarget;
use crate::pauser;
use plimsoll_model::ExperimentSettings;
use plimsoll_model::failure::Failure;
use plimsoll_probe::{ServerFinder, has_process_name};
use plimsoll_sys::pause::{ProcessHandle, own_user};
use plimsoll_sys::probe::listener::{find_dependencies, processes, processes_with_descendants};
use plimsoll_sys::probe::process::Stat;
use plimsoll_sys::system_text;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, ChildStdin};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest wait for the pauser process to start, and also to exit.
const PAUSER_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest number of processes that are paused. One process name may match many processes, such
/// as the worker processes of a database.
const PROCESSES_MAX: usize = 256;

/// A process that the user permits plimsoll to pause, identified by id and start time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausableProcess {
    /// The process's id.
    pub pid: u32,
    /// The process's start time in clock ticks. A later process with the same id has another start
    /// time.
    pub started_ticks: u64,
}

/// A snapshot of the processes of this machine. plimsoll decides from this snapshot which processes
/// may be paused.
struct ProcessSnapshot {
    all: BTreeMap<u32, (Stat, String)>,
    /// Ids of plimsoll and its descendants.
    own_pids: BTreeSet<u32>,
    server: BTreeSet<u32>,
    /// Ids of all ancestors of plimsoll and of the server, such as shells. Pausing an ancestor
    /// could stop plimsoll or the server.
    ancestor_pids: BTreeSet<u32>,
    /// Ids of the server's dependencies on this machine, also of indirect dependencies
    /// ([`find_dependencies`]).
    dependency_pids: BTreeSet<u32>,
}

/// Returns the processes that the user permits plimsoll to pause (`--may-signal`). Fails if the
/// server is not found on this machine, or if a permitted process does not exist. Also fails if
/// plimsoll must not pause a permitted process, for example a process that is no dependency of the
/// server.
pub fn find_pausable_processes(
    settings: &ExperimentSettings<String>,
    base: &ResolvedTarget,
) -> Result<Vec<PausableProcess>, Failure> {
    let words = &settings.interventions.may_signal;
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let no = |why: String| Failure::cannot_start(format!("--may-signal: {why}"));
    if !base.local || base.plan.connection_plan.unix.is_some() {
        return Err(no("the target is not on this machine: leave --may-signal out".to_owned()));
    }
    let finder = ServerFinder::new(&settings.probes, &base.watch_target(&base.url_resolver()))?;
    let server = finder
        .initial_result()
        .clone()
        .map_err(|reason| no(format!("the server's processes are not known: {reason}")))?;
    let unread =
        |error: std::io::Error| no(format!("the processes cannot be read: {reason}", reason = system_text(&error)));
    let all = processes().map_err(unread)?;
    let parents: BTreeMap<u32, u32> = all.iter().map(|(pid, (stat, _))| (*pid, stat.parent)).collect();
    let me = std::process::id();
    let server: BTreeSet<u32> = processes_with_descendants(&server.roots, me, &parents).into_iter().collect();
    let port = base.plan.connection_plan.addresses.first().map_or(0, SocketAddr::port);
    let behind = find_dependencies(&server, &BTreeSet::new(), port, me).map_err(unread)?;
    let above = server.iter().chain([&me]).flat_map(|pid| process_ancestors(*pid, &parents)).collect();
    let ours = processes_with_descendants(&[me], 0, &parents).into_iter().collect();
    select_processes(
        words,
        &ProcessSnapshot { all, own_pids: ours, server, ancestor_pids: above, dependency_pids: behind.pids },
    )
    .map_err(no)
}

/// Returns all ancestors of a process, the parent first.
fn process_ancestors(pid: u32, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let mut found = Vec::new();
    let mut next = parents.get(&pid).copied();
    while let Some(pid) = next.filter(|pid| *pid != 0 && !found.contains(pid)) {
        found.push(pid);
        next = parents.get(&pid).copied();
    }
    found
}

fn select_processes(words: &[String], sight: &ProcessSnapshot) -> Result<Vec<PausableProcess>, String> {
    let mut found: BTreeMap<u32, PausableProcess> = BTreeMap::new();
    for word in words {
        let pids: Vec<u32> = match word.parse() {
            Ok(pid) if sight.all.get(&pid).is_some_and(|(stat, _)| !stat.has_ended()) => vec![pid],
            Ok(pid) => return Err(format!("there is no process {pid}")),
            Err(_) => {
                let called = |(pid, (stat, name)): (&u32, &(Stat, String))| {
                    (!stat.has_ended() && has_process_name(*pid, name, word)).then_some(*pid)
                };
                let called: Vec<u32> = sight.all.iter().filter_map(called).collect();
                // If several processes have the name `word`, only the processes that may be paused
                // are selected.
                let may: Vec<u32> = called.iter().copied().filter(|pid| sight.refusal_reason(*pid).is_none()).collect();
                match (called.first(), may.is_empty()) {
                    (None, _) => return Err(format!("no process has the name '{word}'; see ps -e, or give the PID")),
                    (Some(first), true) => vec![*first],
                    (Some(_), false) => may,
                }
            }
        };
        for pid in pids {
            if let Some(why) = sight.refusal_reason(pid) {
                return Err(why);
            }
            let started_ticks = sight.all.get(&pid).map_or(0, |(stat, _)| stat.started_ticks);
            found.insert(pid, PausableProcess { pid, started_ticks });
        }
    }
    match found.len() {
        0..=PROCESSES_MAX => Ok(found.into_values().collect()),
        count => Err(format!("{count} processes are too many to pause: give fewer PIDs")),
    }
}

impl ProcessSnapshot {
    /// Returns the reason why a process must not be paused; `None` if the process may be paused.
    fn refusal_reason(&self, pid: u32) -> Option<String> {
        let name = self.all.get(&pid).map_or("?", |(_, name)| name.as_str());
        let shown: String = name.chars().filter(|c| !c.is_control()).collect();
        let user = std::fs::metadata(format!("/proc/{pid}")).ok().map(|folder| folder.uid());
        let process = format!("process {pid} ({shown})");
        Some(if pid == 1 {
            format!("{process} is the init process of the system, and cannot be paused")
        } else if self.own_pids.contains(&pid) {
            format!("{process} is plimsoll itself")
        } else if self.server.contains(&pid) {
            format!("{process} is the server itself; name a downstream dependency")
        } else if self.ancestor_pids.contains(&pid) {
            format!("{process} started plimsoll or the server, so plimsoll does not pause this process")
        } else if user.is_none() {
            format!("{process} has ended")
        } else if user != Some(own_user()) {
            format!(
                "{process} belongs to user {user_id}: run plimsoll as that user",
                user_id = user.unwrap_or_default()
            )
        } else if !self.dependency_pids.contains(&pid) {
            format!("{process} is no downstream dependency of the server")
        } else {
            return None;
        })
    }
}

/// Pauses processes during a load, after [`ProcessPauser::begin`]. Dropping this value resumes all
/// processes.
pub struct ProcessPauser {
    held: Arc<Vec<ProcessHandle>>,
    stopper: Child,
    /// The pipe to the pauser process. Closing this pipe resumes all processes.
    to: Option<ChildStdin>,
    /// A thread that resumes all processes if the pauser process exits.
    watch: Option<JoinHandle<()>>,
}

impl ProcessPauser {
    /// Starts the pauser process, which does not pause processes yet. The error says why the start
    /// failed.
    pub fn start_pauser(processes: &[PausableProcess]) -> Result<ProcessPauser, String> {
        let hold = |process: &PausableProcess| {
            ProcessHandle::open_process(process.pid, process.started_ticks).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => format!("process {} has ended", process.pid),
                _ => {
                    format!("process {pid} cannot be paused: {reason}", pid = process.pid, reason = system_text(&error))
                }
            })
        };
        let held: Arc<Vec<ProcessHandle>> = Arc::new(processes.iter().map(hold).collect::<Result<_, _>>()?);
        if held.is_empty() {
            return Err("there is no process to pause".to_owned());
        }
        let no = |error: std::io::Error| {
            format!(
                "plimsoll's helper process, which pauses processes, could not be started: {reason}",
                reason = system_text(&error)
            )
        };
        let command = &mut pauser::pauser_command(processes.iter().map(|process| (process.pid, process.started_ticks)));
        let mut stopper = command.spawn().map_err(no)?;
        let (to, from) = (stopper.stdin.take(), stopper.stdout.take());
        let (ready, wait) = channel();
        let for_watch = Arc::clone(&held);
        let watch = from.map(|mut from| {
            std::thread::spawn(move || {
                if from.read_exact(&mut [0]).is_ok() {
                    let _ = ready.send(());
                    let _ = from.read_to_end(&mut Vec::new());
                }
                // The pauser process has exited, so this thread resumes all processes.
                for_watch.iter().for_each(|process| _ = process.resume());
            })
        });
        let stopping = ProcessPauser { held, stopper, to, watch };
        match wait.recv_timeout(PAUSER_TIMEOUT) {
            Ok(()) => Ok(stopping),
            Err(_) => Err("plimsoll's helper process, which pauses processes, does not respond".to_owned()),
        }
    }

    /// Starts to pause and resume the processes periodically.
    pub fn begin(&mut self) {
        if let Some(to) = &mut self.to {
            // If the pauser process has exited, the write fails and no process is paused.
            let _ = to.write_all(b"+").and_then(|()| to.flush());
        }
    }
}

impl Drop for ProcessPauser {
    fn drop(&mut self) {
        self.to = None;
        let deadline = Instant::now() + PAUSER_TIMEOUT;
        while Instant::now() < deadline && matches!(self.stopper.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.stopper.kill();
        let _ = self.stopper.wait();
        if let Some(watch) = self.watch.take() {
            let _ = watch.join();
        }
        self.held.iter().for_each(|process| _ = process.resume());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn process_snapshot(child: u32) -> ProcessSnapshot {
        let set = |pids: &[u32]| pids.iter().copied().collect::<BTreeSet<u32>>();
        let all = processes().expect("seen");
        ProcessSnapshot {
            all,
            own_pids: set(&[std::process::id()]),
            server: set(&[]),
            ancestor_pids: set(&[]),
            dependency_pids: set(&[child]),
        }
    }

    fn selection_error(words: &[&str], sight: &ProcessSnapshot) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        select_processes(&words, sight).map(|found| panic!("{found:?}")).unwrap_err()
    }

    #[test]
    fn only_dependencies_of_the_server_can_be_paused() {
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("starts");
        let (pid, me) = (child.id(), std::process::id());
        let seen = process_snapshot(pid);
        let found = select_processes(&[pid.to_string()], &seen).expect("may be");
        assert_eq!(found.iter().map(|process| process.pid).collect::<Vec<_>>(), [pid]);
        let number = pid.to_string();
        for (words, sight, expect) in [
            (vec!["4294967295"], process_snapshot(pid), "there is no process"),
            (vec!["no such program"], process_snapshot(pid), "no process has the name"),
            (vec!["1"], process_snapshot(pid), "the init process of the system"),
            (vec![number.as_str(), &me.to_string()], process_snapshot(pid), "plimsoll itself"),
            (
                vec![&number],
                ProcessSnapshot { server: BTreeSet::from([pid]), ..process_snapshot(pid) },
                "the server itself",
            ),
            (
                vec![&number],
                ProcessSnapshot { ancestor_pids: BTreeSet::from([pid]), ..process_snapshot(pid) },
                "started plimsoll or the server",
            ),
            (
                vec![&number],
                ProcessSnapshot { dependency_pids: BTreeSet::new(), ..process_snapshot(pid) },
                "is no downstream dependency of the server",
            ),
        ] {
            let why = selection_error(&words, &sight);
            assert!(why.contains(expect), "{words:?}: {why}");
        }
        child.kill().expect("is ours");
        child.wait().expect("ended");
        assert!(ProcessPauser::start_pauser(&found).is_err_and(|why| why.contains("has ended")));
        let parents = processes().expect("seen").iter().map(|(pid, (stat, _))| (*pid, stat.parent)).collect();
        let above = process_ancestors(me, &parents);
        assert!(!above.is_empty() && !above.contains(&me), "{above:?}");
    }
}
