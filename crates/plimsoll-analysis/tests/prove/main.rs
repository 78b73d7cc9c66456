//! Comparisons: the statistics against SciPy, their laws, and the verdicts on simulated builds.
//!
//! `PLIMSOLL_SEED` shifts the seeds; failures print them.

mod golden;
mod laws;
mod simulated;
mod simulator;

fn seed() -> u64 {
    std::env::var("PLIMSOLL_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0)
}
