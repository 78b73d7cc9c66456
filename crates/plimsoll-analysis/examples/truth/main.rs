//! How often the stated figures are true: searches on simulated servers whose load line is known, over many seeds.
//!
//! `cargo run --release -p plimsoll-analysis --example truth -- find [SEEDS] [BUDGET_S] [MODEL] [CAPACITY] [quiet|disturbed] [SEED]`
//! prints a row for each model, capacity and noise: how often the 90 % interval covers the truth, how often a stated estimate lies
//! more than 3 % above it, how wide the interval is. With SEED the trials of that one search are printed.

#[path = "../../tests/simulator/mod.rs"]
mod simulator;
#[path = "../../tests/truths/mod.rs"]
mod truths;

use plimsoll_model::units::SECOND;
use simulator::{Kind, Model, Noise, Service};

const MODELS: [(&str, Kind); 4] = [
    ("M/D/1", Kind::Queue(Service::Constant, 1)),
    ("M/M/1", Kind::Queue(Service::Exponential, 1)),
    ("H2/1", Kind::Queue(Service::Hyperexponential(4.0), 1)),
    ("M/M/8", Kind::Queue(Service::Exponential, 8)),
];
const CAPACITIES: [f64; 5] = [10.0, 100.0, 1_000.0, 12_000.0, 100_000.0];

#[allow(clippy::print_stdout)]
fn main() {
    let args: Vec<String> = std::env::args().skip(2).collect();
    let number = |at: usize, default: u64| args.get(at).and_then(|a| a.parse().ok()).unwrap_or(default);
    let is = |at: usize, name: &str| args.get(at).is_none_or(|arg| arg == name || arg == "all");
    let (seeds, budget_s) = (number(0, 200), number(1, 60));
    println!(
        "{:6} {:>8} {:9} {:>7} {:>7} {:>6} {:>6} {:>7} {:>7} {:>7} {:>6} {:>6}",
        "model", "capacity", "noise", "covers", "stated", "> 3 %", "conf", "width", "median", "below", "above", "took"
    );
    for (name, kind) in MODELS {
        for capacity in CAPACITIES {
            for (noise_name, disturbed) in [("quiet", 0.0), ("disturbed", 0.1)] {
                if !(is(2, name) && is(3, &capacity.to_string()) && is(4, noise_name)) {
                    continue;
                }
                let noise = Noise { disturbed, jitter: 0.0, stalls_per_s: 0.0 };
                let model = Model { name, kind, capacity, noise, client_rps: f64::INFINITY };
                if let Some(seed) = args.get(5).and_then(|a| a.parse().ok()) {
                    let model = model.seeded(seed);
                    let findings = simulator::search(model, seed, budget_s * SECOND, None);
                    let truth = truths::line_rps(kind, model.capacity);
                    println!("truth {truth}\n{}", simulator::tell(&findings, truth.max(1e-9)));
                    continue;
                }
                let coverage = truths::Coverage::of(model, 0..seeds, budget_s);
                println!("{name:6} {capacity:>8} {noise_name:9} {coverage}");
            }
        }
    }
}
