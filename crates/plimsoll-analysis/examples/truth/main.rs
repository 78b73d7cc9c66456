//! Measures how often the figures that a search states are true. The example runs searches with
//! many seeds on simulated servers whose load line is known.
//!
//! ```sh
//! cargo run --release -p plimsoll-analysis --example truth -- \
//!     find [SEEDS] [BUDGET_S] [MODEL] [CAPACITY] [quiet|disturbed] [SEED]
//! ```
//!
//! The example prints a row for each model, capacity and noise. Each row shows how often the 90 %
//! interval contains the true load line, and the width of the interval. Each row also shows how
//! often a stated estimate is more than 3 % above the true load line. With SEED the example prints
//! the trials of the search with this seed. With `time [SEED] [BUDGET_S] [NAME]` in place of
//! `find`, the example prints searches on servers whose capacity changes.

#[path = "../../tests/truths/mod.rs"]
mod truths;

use plimsoll_model::units::SECOND;
use plimsoll_simulator::{self as simulator, CapacityDrift, Noise, ServerKind, ServerModel, ServiceTimeDistribution};

const MODELS: [(&str, ServerKind); 4] = [
    ("M/D/1", ServerKind::Queue(ServiceTimeDistribution::Constant, 1)),
    ("M/M/1", ServerKind::Queue(ServiceTimeDistribution::Exponential, 1)),
    ("H2/1", ServerKind::Queue(ServiceTimeDistribution::Hyperexponential(4.0), 1)),
    ("M/M/8", ServerKind::Queue(ServiceTimeDistribution::Exponential, 8)),
];
const CAPACITIES: [f64; 5] = [10.0, 100.0, 1_000.0, 12_000.0, 100_000.0];

/// Servers whose capacity changes over time. Each row contains the server's name, kind, nominal
/// capacity in 1/s, and the rate that the server sustains for half an hour in 1/s.
const CHANGING_SERVERS: [(&str, ServerKind, f64, f64); 12] = [
    ("3 000 a minute", ServerKind::Quota(3_000.0, 60.0), 2_000.0, 50.0),
    ("500 in 10 s", ServerKind::Quota(500.0, 10.0), 2_000.0, 50.0),
    ("5 000 in 5 s", ServerKind::Quota(5_000.0, 5.0), 5_000.0, 1_000.0),
    ("credit 20 000, 250 to 50/s", ServerKind::Ages(CapacityDrift::Credit(20_000.0, 0.2)), 250.0, 50.0),
    ("credit 20 000, 1 000 to 200/s", ServerKind::Ages(CapacityDrift::Credit(20_000.0, 0.2)), 1_000.0, 200.0),
    ("credit 3 000, 1 000 to 400/s", ServerKind::Ages(CapacityDrift::Credit(3_000.0, 0.4)), 1_000.0, 400.0),
    ("scales after 20 s, 500 to 1 000/s", ServerKind::Ages(CapacityDrift::Scales(20.0, 2.0)), 500.0, 1_000.0),
    ("scales after 90 s, 500 to 1 000/s", ServerKind::Ages(CapacityDrift::Scales(90.0, 2.0)), 500.0, 1_000.0),
    ("cache of 5 000, 400 to 1 000/s", ServerKind::Ages(CapacityDrift::Warms(5_000.0, 0.4)), 1_000.0, 1_000.0),
    ("cache of 40 000, 400 to 1 000/s", ServerKind::Ages(CapacityDrift::Warms(40_000.0, 0.4)), 1_000.0, 1_000.0),
    ("leak, half after 100 000", ServerKind::Ages(CapacityDrift::Leaks(100_000.0)), 1_000.0, 0.0),
    ("leak, half after 1 000 000", ServerKind::Ages(CapacityDrift::Leaks(1_000_000.0)), 1_000.0, 0.0),
];

#[allow(clippy::print_stdout)]
fn print_changing_server_searches(seed: u64, budget_s: u64, name: Option<&str>) {
    for (model_name, kind, capacity, sustained) in CHANGING_SERVERS {
        if name.is_some_and(|name| !model_name.starts_with(name)) {
            continue;
        }
        let noise = Noise { disturbed: 0.0, jitter: 0.0, stalls_per_s: 0.0 };
        let model = ServerModel { name: model_name, kind, capacity, noise, client_rps: f64::INFINITY };
        let findings = simulator::simulate_search(model, seed, budget_s * SECOND, None);
        println!("{model_name}: capacity for half an hour {sustained}/s");
        if name.is_some() {
            println!("{}", simulator::format_search(&findings, capacity));
        }
        let line = findings.load_line;
        println!(
            "  line {:.1} ({:.1} to {:.1?}){} seen {} s by {:?} after {:.0} s",
            line.rps,
            line.lower,
            line.upper,
            if line.is_confirmed { "" } else { " not confirmed" },
            findings.longest_pass_at_line_s,
            findings.stopped_by,
            findings.elapsed_s
        );
        for doubt in findings.doubts.inline_texts().chain(findings.doubts.banner_texts()) {
            println!("  - {doubt:?}");
        }
    }
}

#[allow(clippy::print_stdout)]
fn main() {
    let args: Vec<String> = std::env::args().skip(2).collect();
    if std::env::args().nth(1).as_deref() == Some("time") {
        let number = |at: usize, default: u64| args.get(at).and_then(|a| a.parse().ok()).unwrap_or(default);
        return print_changing_server_searches(number(0, 1), number(1, 60), args.get(2).map(String::as_str));
    }
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
                let model = ServerModel { name, kind, capacity, noise, client_rps: f64::INFINITY };
                if let Some(seed) = args.get(5).and_then(|a| a.parse().ok()) {
                    let model = model.with_seeded_capacity(seed);
                    let findings = simulator::simulate_search(model, seed, budget_s * SECOND, None);
                    let truth = truths::queueing_load_line_rps(kind, model.capacity);
                    println!("truth {truth}\n{}", simulator::format_search(&findings, truth.max(1e-9)));
                    continue;
                }
                let coverage = truths::SearchCoverage::from_searches(model, 0..seeds, budget_s);
                println!("{name:6} {capacity:>8} {noise_name:9} {coverage}");
            }
        }
    }
}
