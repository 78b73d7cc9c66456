//! Runs `prove` on simulated builds: `prove-simulated [COMPARISONS] [tables]` prints one JSON
//! document.
//!
//! The document has the number of comparisons for each simulated world and each verdict. With
//! `tables` the document has all tables: false alarms, coverage, and builds that are worse in one
//! hidden way.

#[path = "../../../crates/plimsoll-analysis/examples/truth/prove.rs"]
mod truth;

use std::io::Write;
use std::process::ExitCode;
use truth::{
    BENCHMARK_MACHINE, BLOCKS, BUSY, EQUAL_BUILDS, Machine, Outcomes, SimulatedComparison, write_truth_tables,
};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let count: u64 = words.first().and_then(|word| word.parse().ok()).unwrap_or(1000);
    if words.get(1).is_some_and(|word| word == "tables") {
        write_truth_tables(count, &mut std::io::stdout());
        return ExitCode::SUCCESS;
    }
    match writeln!(std::io::stdout(), "{}", verdict_counts_json(count)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn verdict_counts_json(count: u64) -> String {
    let on = |machine| SimulatedComparison { machine, ..EQUAL_BUILDS };
    let worlds = [
        ("copies", EQUAL_BUILDS, BLOCKS),
        ("copies for 2 min", EQUAL_BUILDS, 2 * BLOCKS),
        ("copies, noisy", on(BUSY), BLOCKS),
        ("copies, wild drift", on(Machine { drift: 0.2, drift_correlation: 0.8, ..BENCHMARK_MACHINE }), BLOCKS),
        ("copies, starts differ by 2 %", SimulatedComparison { start_deviation: 0.02, ..EQUAL_BUILDS }, BLOCKS),
        ("slower", SimulatedComparison { ratio: 1.0 / 1.05, ..EQUAL_BUILDS }, BLOCKS),
    ];
    let counts = worlds.iter().map(|(name, world, blocks)| {
        let Outcomes { count, better, worse, same, small, .. } = world.outcomes(0..count, *blocks);
        let inconclusive = count - better - worse - same - small;
        format!(
            "\"{name}\": {{\"better\": {better}, \"worse\": {worse}, \"same\": {same}, \"small\": {small}, \
             \"inconclusive\": {inconclusive}}}"
        )
    });
    format!("{{{}}}", counts.collect::<Vec<_>>().join(",\n "))
}
