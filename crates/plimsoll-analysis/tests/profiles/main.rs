//! Tests of the public functions for profiles: figures that agree with pprof on real profiles,
//! refusals with a reason, and a seeded fuzz test with a proof that it can fail.
//!
//! Random tests print their seed, which cargo shows when a test fails. The environment variable
//! `PLIMSOLL_SEED` repeats a run.

mod driver;
mod encode;
mod fuzz;
mod golden;
mod refused;

use std::hash::{BuildHasher, RandomState};

/// The seed of this run: from the environment, or random. The function always prints the seed.
#[expect(clippy::print_stderr, reason = "a random test must say how to repeat it")]
fn seed() -> u64 {
    let seed = match std::env::var("PLIMSOLL_SEED") {
        Ok(text) => text.parse().expect("PLIMSOLL_SEED is a decimal number below 2^64"),
        Err(_) => RandomState::new().hash_one("seed"),
    };
    eprintln!("PLIMSOLL_SEED={seed}");
    seed
}
