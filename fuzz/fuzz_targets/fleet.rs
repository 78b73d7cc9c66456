//! Coverage-guided fuzzing of messages between machines of a fleet. Any bytes are refused, or are
//! messages that stay the same when they are encoded and decoded again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_fleet::frame::{MessageReader, PROTOCOL_GREETING};
use plimsoll_fleet::message::{ToAgent, ToCoordinator};

fuzz_target!(|bytes: &[u8]| {
    // Most inputs reach more code after a greeting.
    let stream = [&PROTOCOL_GREETING, bytes].concat();
    let mut reader = MessageReader::default();
    stream.chunks(7).for_each(|piece| reader.push(piece));
    while let Ok(Some(message)) = reader.read_next::<ToCoordinator>() {
        let mut again = MessageReader::default();
        let mut written = PROTOCOL_GREETING.to_vec();
        message.encode(&mut written);
        again.push(&written);
        assert_eq!(again.read_next::<ToCoordinator>(), Ok(Some(message)));
    }
    let mut reader = MessageReader::default();
    reader.push(&stream);
    while let Ok(Some(_)) = reader.read_next::<ToAgent>() {}
});
