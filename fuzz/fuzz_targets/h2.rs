//! Coverage-guided fuzzing of an HTTP/2 connection of plimsoll-wire, with the driver of its tests.
//! Any bytes follow three requests, in many splits. The same bytes are also passed to the server's
//! side.
//!
//! The first byte seeds the splits. The other bytes are the bytes from the peer.

#![no_main]

#[path = "../../crates/plimsoll-wire/tests/wire/driver.rs"]
#[allow(dead_code, reason = "the tests use all of the driver")]
mod driver;
#[path = "../../crates/plimsoll-wire/tests/wire/h2_driver.rs"]
#[allow(dead_code, reason = "the tests use all of the driver")]
mod h2_driver;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let [first, bytes @ ..] = data {
        let mut random = driver::Random(u64::from(*first));
        h2_driver::same_h2_events_in_all_splits(bytes, &mut random).unwrap_or_else(|what| panic!("{what}"));
        h2_driver::serve(bytes, &mut random).unwrap_or_else(|what| panic!("{what}"));
    }
});
