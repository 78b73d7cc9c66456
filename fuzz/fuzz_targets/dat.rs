//! Coverage-guided fuzzing of plimsoll-analysis' parser of `.dat` files, with the driver of its
//! tests: any text.

#![no_main]

#[path = "../../crates/plimsoll-analysis/tests/dat/driver.rs"]
mod driver;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &str| {
    driver::check_reader(plimsoll_analysis::levels::parse_dat, data).unwrap_or_else(|what| panic!("{what}"));
});
