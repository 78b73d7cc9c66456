//! Coverage-guided fuzzing of the parsers of kernel files (processes, host, control groups,
//! sockets), with the driver of their tests: any bytes.

#![no_main]

#[path = "../../crates/plimsoll-sys/tests/parsers/driver.rs"]
mod driver;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    driver::parse_all(data);
});
