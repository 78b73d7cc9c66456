//! Coverage-guided fuzzing of plimsoll-wire's response parser, with the driver of its tests: any
//! bytes, in many splits.
//!
//! The first byte says whether the request was a HEAD, and seeds the splits. The other bytes are
//! the bytes from the server.

#![no_main]

#[path = "../../crates/plimsoll-wire/tests/wire/driver.rs"]
#[allow(dead_code, reason = "the tests use all of the driver")]
mod driver;

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::h1::ResponseParser;

fuzz_target!(|data: &[u8]| {
    if let [first, bytes @ ..] = data {
        let mut random = driver::Random(u64::from(*first));
        driver::same_in_all_splits(&mut ResponseParser::new(), first % 2 == 1, bytes, &mut random)
            .unwrap_or_else(|what| panic!("{what}"));
    }
});
