//! Standard input and output as an agent's way to its coordinator ([`StdioLink`]).
//!
//! Not here: what an agent does with a message (`service`, `watch_service`).

use crate::frame::GREETING;
use crate::message::{ToAgent, ToCoordinator};
use crate::message_stream::{StreamEnd, read_messages};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};

/// What comes over standard input.
pub enum StdioEvent {
    /// The coordinator says something; when that came.
    Message(u64, ToAgent),
    /// Nobody says anything any more, and why if not because all is over.
    Closed(Option<String>),
}

/// The way to the coordinator.
pub struct StdioLink {
    outgoing: Sender<Vec<u8>>,
}

impl StdioLink {
    /// Greets the coordinator, and passes on what it says as the receiver's events.
    pub fn start<E: From<StdioEvent> + Send + 'static>(events: Sender<E>) -> StdioLink {
        std::thread::spawn(move || listen(&events));
        let (outgoing, queue) = channel::<Vec<u8>>();
        std::thread::spawn(move || write_all(&mut io::stdout(), &queue));
        let _ = outgoing.send(GREETING.to_vec());
        StdioLink { outgoing }
    }

    /// Sends a message. A coordinator that is gone says so by its end.
    pub fn send(&self, message: &ToCoordinator) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let _ = self.outgoing.send(bytes);
    }
}

/// Passes on what the coordinator says, until its end.
fn listen<E: From<StdioEvent>>(events: &Sender<E>) {
    let mut pass_on = |came_ns, message| events.send(StdioEvent::Message(came_ns, message).into()).is_ok();
    let why = match read_messages::<ToAgent>(&mut io::stdin(), &mut pass_on) {
        StreamEnd::Unwanted => return,
        StreamEnd::Closed => None,
        StreamEnd::Unreadable(why) => Some(why),
        StreamEnd::Invalid(error) => Some(format!("the coordinator's message is not valid: {error}")),
    };
    let _ = events.send(StdioEvent::Closed(why).into());
}

/// Writes what is queued, until nobody reads: then nobody says anything either.
fn write_all(output: &mut impl Write, queue: &Receiver<Vec<u8>>) {
    while let Ok(bytes) = queue.recv()
        && output.write_all(&bytes).and_then(|()| output.flush()).is_ok()
    {}
}
