//! An agent's connection to its coordinator over standard input and output ([`StdioLink`]).
//!
//! Not here: the handling of messages (`service`, `watch_service`).

use crate::frame::PROTOCOL_GREETING;
use crate::message::{ToAgent, ToCoordinator};
use crate::message_stream::{StreamEnd, read_messages};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};

/// An event on standard input.
pub enum StdioEvent {
    /// A message of the coordinator, with its time of arrival in ns.
    Message(u64, ToAgent),
    /// Standard input has ended. The value is the reason for the end, or `None` if the coordinator
    /// closed the stream normally.
    Closed(Option<String>),
}

/// An agent's connection to its coordinator.
pub struct StdioLink {
    outgoing: Sender<Vec<u8>>,
}

impl StdioLink {
    /// Sends the greeting (protocol version), and passes received messages to `events`.
    pub fn start<E: From<StdioEvent> + Send + 'static>(events: Sender<E>) -> StdioLink {
        std::thread::spawn(move || forward_messages(&events));
        let (outgoing, queue) = channel::<Vec<u8>>();
        std::thread::spawn(move || write_all(&mut io::stdout(), &queue));
        let _ = outgoing.send(PROTOCOL_GREETING.to_vec());
        StdioLink { outgoing }
    }

    /// Sends a message. If the coordinator is gone, the end of standard input reports the loss.
    pub fn send(&self, message: &ToCoordinator) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let _ = self.outgoing.send(bytes);
    }
}

/// Passes the coordinator's messages to `events` until the stream ends, then reports the end.
fn forward_messages<E: From<StdioEvent>>(events: &Sender<E>) {
    let mut pass_on = |came_ns, message| events.send(StdioEvent::Message(came_ns, message).into()).is_ok();
    let why = match read_messages::<ToAgent>(&mut io::stdin(), &mut pass_on) {
        StreamEnd::Unwanted => return,
        StreamEnd::Closed => None,
        StreamEnd::Unreadable(why) => Some(why),
        StreamEnd::Invalid(error) => {
            Some(format!("a message from the coordinator (the plimsoll that started this agent) is not valid: {error}"))
        }
    };
    let _ = events.send(StdioEvent::Closed(why).into());
}

/// Writes the queued bytes until the queue closes or the coordinator stops reading. If the
/// coordinator is gone, the end of standard input reports the loss.
fn write_all(output: &mut impl Write, queue: &Receiver<Vec<u8>>) {
    while let Ok(bytes) = queue.recv()
        && output.write_all(&bytes).and_then(|()| output.flush()).is_ok()
    {}
}
