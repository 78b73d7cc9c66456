//! Pipes to processes as a carrier ([`PipeBus`]): each agent's messages go over standard input and
//! output of a process, usually `ssh`. Its last lines on standard error explain its end.
//!
//! Not here: the processes, and the meaning of their last lines (`ssh_login`).

use crate::bus::{Bus, BusEvent};
use crate::frame::GREETING;
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

/// Time that such a process gets to end by itself.
const END_PATIENCE: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(5);
/// Bytes of its standard error to keep.
const LAST_BYTES: usize = 4_096;

/// Turns the last lines of an ended process, and an error in its messages, into a sentence about
/// "it".
pub type ExitFormatter = Box<dyn Fn(&str, Option<String>) -> String + Send>;

/// A process to start for an agent.
pub struct PipeCommand {
    /// The name of the agent.
    pub name: String,
    /// The command.
    pub command: Command,
    /// Bytes to write first.
    pub first: Option<Vec<u8>>,
    /// Explains its last lines.
    pub last_words: ExitFormatter,
}

/// Processes with an agent each; dropping it ends them.
pub struct PipeBus {
    ends: Vec<PipeEnd>,
    arrived: Receiver<(usize, u64, BusEvent)>,
}

struct PipeEnd {
    child: Child,
    /// Bytes to write; closing it closes the process's standard input.
    outgoing: Option<Sender<Vec<u8>>>,
}

impl PipeBus {
    /// Starts a process for each agent, out of reach of ^C. The error names the agent that failed.
    pub fn start(commands: Vec<PipeCommand>) -> Result<PipeBus, Failure> {
        let (sender, arrived) = channel();
        let mut bus = PipeBus { ends: Vec::new(), arrived };
        for (agent, started) in commands.into_iter().enumerate() {
            let PipeCommand { name, mut command, first, last_words: explain } = started;
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
            let mut child = command.spawn().map_err(|error| {
                Failure::start(format!("agent {name} could not be started: {}", system_text(&error)))
            })?;
            let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
            let (outgoing, queue) = channel::<Vec<u8>>();
            bus.ends.push(PipeEnd { child, outgoing: Some(outgoing) });
            if let (Some(input), Some(output), Some(errors)) = (input, output, errors) {
                std::thread::spawn(move || write_all(input, first, &queue));
                let last_words = std::thread::spawn(move || last_words(errors));
                let sender = sender.clone();
                std::thread::spawn(move || listen(output, agent, &sender, last_words, &explain));
            }
        }
        Ok(bus)
    }
}

/// Writes queued bytes, until the queue closes or the process stops reading.
fn write_all(mut input: ChildStdin, first: Option<Vec<u8>>, queue: &Receiver<Vec<u8>>) {
    let mut write = |bytes: &[u8]| input.write_all(bytes).and_then(|()| input.flush()).is_ok();
    // If the process does not read, its end explains it.
    if first.is_none_or(|bytes| write(&bytes)) && write(&GREETING) {
        while let Ok(bytes) = queue.recv()
            && write(&bytes)
        {}
    }
}

/// The last bytes of the output.
fn last_words(mut errors: impl Read) -> String {
    let (mut kept, mut piece) = (Vec::new(), [0; 1_024]);
    loop {
        match errors.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => {
                kept.extend_from_slice(&piece[..count]);
                if kept.len() > 2 * LAST_BYTES {
                    kept.drain(..kept.len() - LAST_BYTES);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// Passes on an agent's messages, until its end.
fn listen(
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
    // Its standard error ends with it; a process that continues is not awaited.
    let deadline = Instant::now() + END_PATIENCE;
    while !last_words.is_finished() && Instant::now() < deadline {
        std::thread::sleep(LOOK);
    }
    let words = if last_words.is_finished() { last_words.join().unwrap_or_default() } else { String::new() };
    let _ = sender.send((agent, monotonic_ns(), BusEvent::Gone(explain(&words, wrong))));
}

impl Bus for PipeBus {
    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    fn send(&mut self, agent: usize, message: &ToAgent) {
        if let Some(outgoing) = &self.ends[agent].outgoing {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            // A lost process is reported by its end.
            let _ = outgoing.send(bytes);
        }
    }

    fn receive(&mut self, patience: Duration) -> Option<(usize, u64, BusEvent)> {
        self.arrived.recv_timeout(patience).ok()
    }

    fn is_interrupted(&self) -> bool {
        signal::interrupted()
    }
}

impl Drop for PipeBus {
    fn drop(&mut self) {
        // With closed pipes they end by themselves.
        self.ends.iter_mut().for_each(|end| end.outgoing = None);
        let deadline = Instant::now() + END_PATIENCE;
        for end in &mut self.ends {
            while !matches!(end.child.try_wait(), Ok(Some(_))) && Instant::now() < deadline {
                std::thread::sleep(LOOK);
            }
            let _ = end.child.kill();
            let _ = end.child.wait();
        }
    }
}
