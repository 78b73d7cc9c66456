//! Tests of plimsoll-wire from outside: tables of single cases, properties over generated
//! responses, and a seeded fuzz driver with a proof that it can fail. All tests are one executable,
//! so that only one program is linked.
//!
//! Random tests start from a seed that they print (cargo shows it when a test fails). The
//! environment variable `PLIMSOLL_SEED` repeats a run.

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

/// The seed of this run, from the environment or new. It is printed in both cases.
#[expect(clippy::print_stderr, reason = "a random test must say how to repeat it")]
fn seed() -> u64 {
    let seed = match std::env::var("PLIMSOLL_SEED") {
        Ok(text) => text.parse().expect("PLIMSOLL_SEED is a decimal number below 2^64"),
        Err(_) => RandomState::new().hash_one("seed"),
    };
    eprintln!("PLIMSOLL_SEED={seed}");
    seed
}
