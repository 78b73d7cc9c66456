//! Fuzzes HPACK's reader by coverage: any blocks in a row, with a table of any size; what is read
//! and written again reads the same.
//!
//! The first byte is the table's size in units of 32 bytes; blocks are apart by the byte 0xfe.

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
