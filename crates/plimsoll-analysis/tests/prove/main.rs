//! Tests of comparisons: the statistics, their laws, and the verdicts on simulated builds.
//!
//! `PLIMSOLL_SEED` shifts the seeds. Failures print the seeds.

mod golden;
mod laws;
mod simulated;
#[path = "../../examples/truth/prove.rs"]
mod truth;

fn seed() -> u64 {
    std::env::var("PLIMSOLL_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0)
}
