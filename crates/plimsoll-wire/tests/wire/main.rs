//! Tests of plimsoll-wire from outside: tables of single cases, properties over generated
//! responses, and a seeded fuzz driver. Deliberately broken parsers prove that the fuzz driver
//! detects mistakes. All tests are one executable, so that only one program is linked.
//!
//! Random tests start from a seed that they print (cargo shows it when a test fails). The
//! environment variable `PLIMSOLL_SEED` sets the seed, to repeat a run.

mod conn;
mod driver;
mod fuzz;
mod h2;
mod h2_calls;
mod h2_driver;
mod h2_frames;
mod property;
mod request;
mod response;
mod tls;

use std::hash::{BuildHasher, RandomState};

/// Returns the seed of the random tests: the value of `PLIMSOLL_SEED` in the environment, or a new
/// random number. The seed is always printed, so that a failed test can be repeated.
#[expect(clippy::print_stderr, reason = "a random test must say how to repeat it")]
fn seed() -> u64 {
    let seed = match std::env::var("PLIMSOLL_SEED") {
        Ok(text) => text.parse().expect("PLIMSOLL_SEED is a decimal number below 2^64"),
        Err(_) => RandomState::new().hash_one("seed"),
    };
    eprintln!("PLIMSOLL_SEED={seed}");
    seed
}
