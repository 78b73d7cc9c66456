//! What machines of a fleet say to each other: any bytes are refused, or are messages that are
//! written and read again as they are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_fleet::frame::{MessageReader, GREETING};
use plimsoll_fleet::message::{ToAgent, ToCoordinator};

fuzz_target!(|bytes: &[u8]| {
    // Most inputs are worth more behind a greeting.
    let stream = [&GREETING, bytes].concat();
    let mut reader = MessageReader::default();
    stream.chunks(7).for_each(|piece| reader.push(piece));
    while let Ok(Some(message)) = reader.read_next::<ToCoordinator>() {
        let mut again = MessageReader::default();
        let mut written = GREETING.to_vec();
        message.encode(&mut written);
        again.push(&written);
        assert_eq!(again.read_next::<ToCoordinator>(), Ok(Some(message)));
    }
    let mut reader = MessageReader::default();
    reader.push(&stream);
    while let Ok(Some(_)) = reader.read_next::<ToAgent>() {}
});
