//! Coverage-guided fuzzing of the HPACK decoder: any consecutive blocks, with a table of any size.
//! Decoded fields that are encoded again must decode to the same fields.
//!
//! The first byte is the size of the table in units of 32 bytes. The byte 0xfe separates blocks.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::h2::{HpackDecoder, Secrecy, write_field};

fuzz_target!(|data: &[u8]| {
    let [first, blocks @ ..] = data else { return };
    let mut decoder = HpackDecoder::new(usize::from(*first) * 32);
    for block in blocks.split(|byte| *byte == 0xfe) {
        let (mut written, mut fields) = (Vec::new(), Vec::new());
        let read = decoder.decode(block, 1 << 16, |name, value| {
            write_field(&mut written, name, value, Secrecy::Plain);
            fields.push((name.to_vec(), value.to_vec()));
        });
        if read.is_err() {
            return;
        }
        let bytes: usize = fields.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
        assert!(bytes <= 1 << 16);
        let mut again = Vec::new();
        HpackDecoder::new(0)
            .decode(&written, 1 << 16, |name, value| again.push((name.to_vec(), value.to_vec())))
            .expect("what was written is a block");
        assert_eq!(again, fields);
    }
});
