//! Tests of the public functions for profiles. Figures must agree with pprof on real profiles, and
//! input that is no profile must be refused with a reason. A seeded fuzz test comes with a second
//! test, which shows that the fuzz test can fail.
//!
//! A random test prints its seed, which cargo shows if the test fails. To repeat the test, set the
//! environment variable `PLIMSOLL_SEED` to this seed.

mod driver;
mod encode;
mod fuzz;
mod golden;
mod refused;

use std::hash::{BuildHasher, RandomState};

/// Returns the seed of this test run, from the environment or random. Always prints the seed.
#[expect(clippy::print_stderr, reason = "a random test must say how to repeat it")]
fn seed() -> u64 {
    let seed = match std::env::var("PLIMSOLL_SEED") {
        Ok(text) => text.parse().expect("PLIMSOLL_SEED is a decimal number below 2^64"),
        Err(_) => RandomState::new().hash_one("seed"),
    };
    eprintln!("PLIMSOLL_SEED={seed}");
    seed
}
