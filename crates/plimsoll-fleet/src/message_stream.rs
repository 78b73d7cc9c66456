//! Reads messages from a byte stream ([`read_messages`]). The stream is an agent's standard input,
//! or a coordinator's pipe from an agent.
//!
//! Not here: handling messages, and their encoding (`frame`).

use crate::frame::{FleetMessage, FrameError, MessageReader};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::system_text;
use std::io::{ErrorKind, Read};

/// The largest number of bytes in one read.
const READ_BYTES_MAX: usize = 64 << 10;

/// The reason why a message stream ended.
#[derive(Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The peer closed the stream.
    Closed,
    /// The receiver of the messages no longer accepts messages.
    Unwanted,
    /// The operating system reported an error; the value is its text.
    Unreadable(String),
    /// The stream contained bytes that are not a valid message.
    Invalid(FrameError),
}

/// Reads messages and passes each message to `take` with its time of arrival in ns. Ends when the
/// stream ends or `take` returns false.
pub fn read_messages<M: FleetMessage>(input: &mut impl Read, take: &mut dyn FnMut(u64, M) -> bool) -> StreamEnd {
    let (mut reader, mut piece) = (MessageReader::default(), vec![0; READ_BYTES_MAX]);
    loop {
        match input.read(&mut piece) {
            Ok(0) => return StreamEnd::Closed,
            Ok(count) => reader.push(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return StreamEnd::Unreadable(system_text(&error)),
        }
        let came_ns = monotonic_ns();
        loop {
            match reader.read_next::<M>() {
                Ok(None) => break,
                Ok(Some(message)) => {
                    if !take(came_ns, message) {
                        return StreamEnd::Unwanted;
                    }
                }
                Err(error) => return StreamEnd::Invalid(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::PROTOCOL_GREETING;
    use crate::message::ToAgent;

    #[test]
    fn a_message_stream_ends_for_one_of_four_reasons() {
        let mut whole = PROTOCOL_GREETING.to_vec();
        ToAgent::Lease.encode(&mut whole);
        ToAgent::Leave.encode(&mut whole);
        let read = |bytes: &[u8], wanted: usize| {
            let mut taken = Vec::new();
            let end = read_messages::<ToAgent>(&mut &*bytes, &mut |_, message| {
                taken.push(message);
                taken.len() < wanted
            });
            (taken, end)
        };
        assert_eq!(read(&whole, 9), (vec![ToAgent::Lease, ToAgent::Leave], StreamEnd::Closed));
        assert_eq!(read(&whole, 1), (vec![ToAgent::Lease], StreamEnd::Unwanted));
        assert_eq!(read(b"Welcome to load1", 9), (Vec::new(), StreamEnd::Invalid(FrameError::NoGreeting)));
        struct BrokenInput;
        impl Read for BrokenInput {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::from(ErrorKind::BrokenPipe))
            }
        }
        let end = read_messages::<ToAgent>(&mut BrokenInput, &mut |_, _| true);
        assert!(matches!(end, StreamEnd::Unreadable(_)), "{end:?}");
    }
}
