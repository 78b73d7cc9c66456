//! Coverage-guided fuzzing of a whole connection of plimsoll-wire, with the driver of its tests:
//! any bytes after a request, in many splits.
//!
//! The first byte says whether the request was a HEAD, and seeds the splits. The other bytes are
//! the bytes from the server.

#![no_main]

#[path = "../../crates/plimsoll-wire/tests/wire/driver.rs"]
#[allow(dead_code, reason = "the tests use all of the driver")]
mod driver;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let [first, bytes @ ..] = data {
        let mut random = driver::Random(u64::from(*first));
        let method = if first % 2 == 1 { "HEAD" } else { "GET" };
        driver::same_events_in_all_splits(method, bytes, &mut random).unwrap_or_else(|what| panic!("{what}"));
    }
});
