//! Transports messages over pipes to processes ([`PipeBus`]). Each agent's messages use the
//! standard input and output of one process, usually `ssh`. The last lines of the process's
//! standard error explain why the process ended.
//!
//! Not here: the commands of the processes, and the meaning of the last lines of standard error
//! (`ssh_login`).

use crate::bus::{Bus, BusEvent};
use crate::frame::PROTOCOL_GREETING;
use crate::message::{ToAgent, ToCoordinator};
use crate::message_stream::{StreamEnd, read_messages};
use plimsoll_model::failure::Failure;
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::{signal, system_text};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time that an agent's process has to exit by itself before plimsoll kills the process.
const END_TIMEOUT: Duration = Duration::from_millis(500);
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// The number of bytes at the end of a process's standard error that are kept to explain its exit.
const STDERR_TAIL_BYTES: usize = 4_096;

/// A function that explains why an agent's process ended. The function gets the last lines of
/// standard error, and the error in the received messages, if any. The function returns a sentence
/// without the agent's name.
pub type ExitFormatter = Box<dyn Fn(&str, Option<String>) -> String + Send>;

/// A process to start for one agent.
pub struct PipeCommand {
    /// The name of the agent.
    pub name: String,
    /// The command that starts the process.
    pub command: Command,
    /// Bytes to write to standard input before any message.
    pub first: Option<Vec<u8>>,
    /// Explains the end of the process to the user.
    pub explain_exit: ExitFormatter,
}

/// The processes of all agents. Dropping the `PipeBus` ends the processes of all agents.
pub struct PipeBus {
    processes: Vec<AgentProcess>,
    events: Receiver<(usize, u64, BusEvent)>,
}

struct AgentProcess {
    child: Child,
    /// The queue of bytes to write to the standard input of the process. Closing the queue closes
    /// the standard input.
    outgoing: Option<Sender<Vec<u8>>>,
}

impl PipeBus {
    /// Starts a process for each agent. Ctrl-C in the terminal does not reach the agents'
    /// processes. An error names the agent whose process could not be started.
    pub fn start(commands: Vec<PipeCommand>) -> Result<PipeBus, Failure> {
        let (sender, arrived) = channel();
        let mut bus = PipeBus { processes: Vec::new(), events: arrived };
        for (agent, started) in commands.into_iter().enumerate() {
            let PipeCommand { name, mut command, first, explain_exit: explain } = started;
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
            let mut child = command.spawn().map_err(|error| {
                Failure::cannot_start(format!(
                    "agent {name} could not be started: {reason}",
                    reason = system_text(&error)
                ))
            })?;
            let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
            let (outgoing, queue) = channel::<Vec<u8>>();
            bus.processes.push(AgentProcess { child, outgoing: Some(outgoing) });
            if let (Some(input), Some(output), Some(errors)) = (input, output, errors) {
                std::thread::spawn(move || write_all(input, first, &queue));
                let last_words = std::thread::spawn(move || read_stderr_tail(errors));
                let sender = sender.clone();
                std::thread::spawn(move || forward_messages(output, agent, &sender, last_words, &explain));
            }
        }
        Ok(bus)
    }
}

/// Writes the queued bytes until the queue closes or the process stops reading.
fn write_all(mut input: ChildStdin, first: Option<Vec<u8>>, queue: &Receiver<Vec<u8>>) {
    let mut write = |bytes: &[u8]| input.write_all(bytes).and_then(|()| input.flush()).is_ok();
    // Errors of writing to the agent's process are ignored, because the reason is reported when the
    // process ends.
    if first.is_none_or(|bytes| write(&bytes)) && write(&PROTOCOL_GREETING) {
        while let Ok(bytes) = queue.recv()
            && write(&bytes)
        {}
    }
}

/// Reads the standard error of a process to its end, and returns the last bytes.
fn read_stderr_tail(mut errors: impl Read) -> String {
    let (mut kept, mut piece) = (Vec::new(), [0; 1_024]);
    loop {
        match errors.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => {
                kept.extend_from_slice(&piece[..count]);
                if kept.len() > 2 * STDERR_TAIL_BYTES {
                    kept.drain(..kept.len() - STDERR_TAIL_BYTES);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// Passes the messages of an agent to the coordinator until the stream ends, then reports the end.
fn forward_messages(
    mut output: impl Read,
    agent: usize,
    sender: &Sender<(usize, u64, BusEvent)>,
    last_words: JoinHandle<String>,
    explain: &ExitFormatter,
) {
    let mut pass_on = |came_ns, message| sender.send((agent, came_ns, BusEvent::Message(message))).is_ok();
    let wrong = match read_messages::<ToCoordinator>(&mut output, &mut pass_on) {
        StreamEnd::Unwanted => return,
        StreamEnd::Closed => None,
        StreamEnd::Unreadable(why) => Some(why),
        StreamEnd::Invalid(error) => Some(error.to_string()),
    };
    // Standard error usually ends together with the process. If standard error stays open, this
    // function reports the end of the process without the text of standard error.
    let deadline = Instant::now() + END_TIMEOUT;
    while !last_words.is_finished() && Instant::now() < deadline {
        std::thread::sleep(EXIT_CHECK_INTERVAL);
    }
    let words = if last_words.is_finished() { last_words.join().unwrap_or_default() } else { String::new() };
    let _ = sender.send((agent, monotonic_ns(), BusEvent::Gone(explain(&words, wrong))));
}

impl Bus for PipeBus {
    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    fn send(&mut self, agent: usize, message: &ToAgent) {
        if let Some(outgoing) = &self.processes[agent].outgoing {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            // An error of sending to an agent's process is ignored, because the end of the process
            // is reported when its output ends.
            let _ = outgoing.send(bytes);
        }
    }

    fn receive(&mut self, patience: Duration) -> Option<(usize, u64, BusEvent)> {
        self.events.recv_timeout(patience).ok()
    }

    fn is_interrupted(&self) -> bool {
        signal::is_stop_requested()
    }
}

impl Drop for PipeBus {
    fn drop(&mut self) {
        // The processes exit by themselves when their pipes close.
        self.processes.iter_mut().for_each(|end| end.outgoing = None);
        let deadline = Instant::now() + END_TIMEOUT;
        for end in &mut self.processes {
            while !matches!(end.child.try_wait(), Ok(Some(_))) && Instant::now() < deadline {
                std::thread::sleep(EXIT_CHECK_INTERVAL);
            }
            let _ = end.child.kill();
            let _ = end.child.wait();
        }
    }
}
