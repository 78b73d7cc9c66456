//! Coverage-guided fuzzing of the text that a script's `request()` returns. The parser counts the
//! messages of the text, or reports the first position that is not valid HTTP.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_script::messages::{count_messages, find_messages};
use plimsoll_wire::Batch;

fuzz_target!(|data: &[u8]| {
    let mut batch = Batch { bytes: data.to_vec(), ..Batch::default() };
    let found = find_messages(&mut batch);
    let messages = batch.heads_only.len();
    match found {
        Ok(()) => assert!(messages > 0),
        Err(flaw) => {
            let lines = data.iter().filter(|byte| **byte == b'\n').count() + 1;
            assert!((1..=lines).contains(&flaw.line) && (1..=data.len() + 1).contains(&flaw.column), "{flaw:?}");
        }
    }
    // The load waits for one response to each message, so every parsed message must count.
    count_messages(&mut batch);
    assert_eq!(batch.heads_only.len(), messages.max(1));
    assert_eq!(batch.bytes, data);
});
