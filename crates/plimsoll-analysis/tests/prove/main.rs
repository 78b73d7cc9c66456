//! Tests of comparisons: the statistics, properties that always hold, and the verdicts on simulated
//! builds.
//!
//! The environment variable `PLIMSOLL_SEED` shifts the seeds. A failure prints the seed.

mod golden;
mod laws;
mod simulated;
#[path = "../../examples/truth/prove.rs"]
mod truth;

fn seed() -> u64 {
    std::env::var("PLIMSOLL_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0)
}
