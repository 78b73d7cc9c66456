//! Runs an agent that measures a server on this machine ([`run_measuring_agent`]). Messages travel
//! over standard input and output, and readings come from this program's probes. The agent runs no
//! load, and ends when its coordinator is gone.
//!
//! Not here: the protocol (`watch_agent`), and readings (`plimsoll-probe`).

use crate::message::{ToCoordinator, WatchTask};
use crate::service::local_agent_hello;
use crate::stdio_link::{StdioEvent, StdioLink};
use crate::watch_agent::{WatchAgent, WatchAgentAction};
use plimsoll_model::Probes;
use plimsoll_model::experiment_settings::ProbesSettings;
use plimsoll_model::failure::Failure;
use plimsoll_probe::{ProbeEffort, ReadingSource, Watcher};
use plimsoll_sys::clock::monotonic_ns;
use std::sync::mpsc::channel;
use std::time::Duration;

/// The interval at which the agent sends readings, ns: as long as a tick (100 ms) of a load.
const TICK_NS: u64 = 100_000_000;

/// Serves a coordinator over standard input and output until the coordinator is gone. An error
/// gives the reason why the connection ended early.
pub fn run_measuring_agent() -> Result<(), Failure> {
    let (sender, events) = channel::<StdioEvent>();
    let link = StdioLink::start(sender);
    let send = |message: &ToCoordinator| link.send(message);
    let mut agent = WatchAgent::new(local_agent_hello(), monotonic_ns());
    let (mut watcher, mut next_ns) = (None::<Watcher>, monotonic_ns());
    loop {
        let (mut acts, mut sample) = (Vec::new(), None);
        let until_tick = Duration::from_nanos(next_ns.saturating_sub(monotonic_ns()));
        match events.recv_timeout(until_tick).ok() {
            Some(StdioEvent::Message(came_ns, message)) => agent.handle_message(came_ns, message, &mut acts),
            Some(StdioEvent::Closed(why)) => return why.map_or(Ok(()), |why| Err(Failure::cannot_start(why))),
            None => {}
        }
        agent.poll(monotonic_ns(), &mut acts);
        for act in acts {
            match act {
                WatchAgentAction::Send(message) => send(&message),
                WatchAgentAction::Begin(task) => {
                    // The previous measurement ends before the new measurement begins.
                    drop(watcher.take());
                    let begun = start_server_probes(&task);
                    send(&agent.handle_watch_result(begun.as_ref().map(|_| ()).map_err(Clone::clone)));
                    watcher = begun.ok();
                }
                WatchAgentAction::Sample(number) => sample = Some(number),
                WatchAgentAction::Leave => return Ok(()),
            }
        }
        let is_tick = monotonic_ns() >= next_ns;
        if is_tick {
            next_ns = monotonic_ns() + TICK_NS;
        }
        if let Some(watcher) = watcher.as_ref().filter(|_| is_tick || sample.is_some()) {
            send_readings(watcher, sample, &send);
        }
    }
}

/// Sends the readings (measurements) that the probes took since the last call. If `sample` is set,
/// a sample with this number is taken now and included.
fn send_readings(watcher: &Watcher, sample: Option<u32>, send: &dyn Fn(&ToCoordinator)) {
    if sample.is_some() {
        watcher.sample_now();
    }
    let probes = watcher.take_new_readings();
    if sample.is_some() || probes != Probes::default() {
        let live_milli = watcher.live_server_cpu().cores_used().map(|cores| (cores * 1e3) as u32);
        send(&ToCoordinator::Readings { sample: sample.unwrap_or(0), live_milli, probes: Box::new(probes) });
    }
}

/// Starts to measure a server. An error is a sentence without the agent's name.
fn start_server_probes(task: &WatchTask) -> Result<Watcher, String> {
    let (pid, process, cgroup) = (task.pid, task.process.clone(), task.cgroup.clone());
    let settings = ProbesSettings { is_disabled: false, pid, process, metrics: None, cgroup, watch: None };
    let effort = if task.thorough { ProbeEffort::Thorough } else { ProbeEffort::Little };
    Watcher::begin_for_remote_load(&settings, &task.addresses, effort).map_err(|failure| failure.to_string())
}
