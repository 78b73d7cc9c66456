//! Coverage-guided fuzzing of plimsoll-analysis' profile parsers, with the driver of their tests:
//! any bytes.

#![no_main]

#[path = "../../crates/plimsoll-analysis/tests/profiles/driver.rs"]
mod driver;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    driver::check_reader(plimsoll_analysis::profile::read, data).unwrap_or_else(|what| panic!("{what}"));
});
