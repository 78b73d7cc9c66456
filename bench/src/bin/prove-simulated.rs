//! `prove` on simulated builds: how often each verdict is given. `prove-simulated [COMPARISONS]` prints one JSON document,
//! the number of comparisons by world and verdict. The machine is that of the analysis crate's tests.

#[path = "../../../crates/plimsoll-analysis/tests/prove/simulator.rs"]
mod simulator;

use plimsoll_analysis::prove::ProveVerdict;
use simulator::{HERE, NOISY, World};
use std::io::Write;
use std::process::ExitCode;

/// Blocks that fit into the default budget of 60 s, as measured.
const BLOCKS: usize = 64;

fn main() -> ExitCode {
    let count: u64 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1000);
    let worlds = [
        ("copies", HERE, BLOCKS),
        ("copies for 2 min", HERE, 2 * BLOCKS),
        ("copies, noisy", NOISY, BLOCKS),
        ("copies, wild drift", World { drift: 0.2, memory: 0.8, ..HERE }, BLOCKS),
        ("copies, slow drift", World { drift: 0.2, memory: 0.99, ..HERE }, BLOCKS),
        ("slower", World { effect: -(1.05f64.ln()), ..HERE }, BLOCKS),
    ];
    let counts = worlds.iter().map(|(name, world, blocks)| format!("\"{name}\": {}", counted(world, *blocks, count)));
    let lines: Vec<String> = counts.collect();
    match writeln!(std::io::stdout(), "{{{}}}", lines.join(",\n ")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Comparisons by verdict, as a JSON object.
fn counted(world: &World, blocks: usize, count: u64) -> String {
    let verdicts: Vec<ProveVerdict> = (0..count).map(|seed| world.prove(seed, blocks).verdict).collect();
    let all = [
        ProveVerdict::Better,
        ProveVerdict::Worse,
        ProveVerdict::Same,
        ProveVerdict::Small,
        ProveVerdict::Inconclusive,
    ];
    let each = all.map(|one| format!("\"{one}\": {}", verdicts.iter().filter(|verdict| **verdict == one).count()));
    format!("{{{}}}", each.join(", "))
}
