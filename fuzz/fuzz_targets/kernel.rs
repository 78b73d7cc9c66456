//! Fuzzes the parsers of what the kernel tells of processes, host, control groups and sockets, with
//! the driver of their tests: any bytes.

#![no_main]

#[path = "../../crates/plimsoll-sys/tests/parsers/driver.rs"]
mod driver;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    driver::parse_all(data);
});
