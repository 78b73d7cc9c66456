//! The search on simulated servers of known capacity: prints a table of found / true load line over many seeds.
//!
//! `cargo run --release -p plimsoll-analysis --example find_simulated -- [SEEDS] [BUDGET_S] [NOISE] [MODEL] [SEED]`
//! where NOISE is `disturbed` (default; 10 % of the trials), `quiet` or `real` (disturbed, capacity +-1 %, stalls). With
//! MODEL only that one is run; with SEED its trials are told one by one.

#[path = "../tests/simulator/mod.rs"]
mod simulator;

use plimsoll_model::units::SECOND;
use simulator::{Model, Noise};

#[allow(clippy::print_stdout)]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| args.get(at).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (seeds, budget_s) = (number(0, 200), number(1, 60));
    let noise = match args.get(2).map(String::as_str) {
        Some("quiet") => Noise { disturbed: 0.0, jitter: 0.0, stalls_per_s: 0.0 },
        Some("real") => Noise { disturbed: 0.1, jitter: 0.01, stalls_per_s: 0.2 },
        _ => Noise { disturbed: 0.1, jitter: 0.0, stalls_per_s: 0.0 },
    };
    println!(
        "{:20} {:>5} {:>6} {:>6} {:>6}  {:>6} {:>7} {:>7}  stopped by",
        "model", "line", "5 %", "50 %", "95 %", "within", "elapsed", "max"
    );
    let stalling = args.get(2).is_some_and(|name| name == "stalling");
    let models = if stalling { Model::stalling(Noise { disturbed: 0.0, ..noise }) } else { Model::all(noise) };
    for model in models {
        if args.get(3).is_some_and(|name| name != model.name) {
            continue;
        }
        let share = model.line_share();
        if let Some(seed) = args.get(4).and_then(|a| a.parse().ok()) {
            let model = model.seeded(seed);
            let findings = simulator::search(model, seed, budget_s * SECOND, None);
            let truth = if share > 0.0 { share * model.capacity } else { model.capacity };
            println!("{}", simulator::tell(&findings, truth));
            continue;
        }
        let mut ratios = Vec::new();
        let (mut elapsed, mut longest) = (0.0, 0.0f64);
        let mut ends: Vec<(String, u64)> = Vec::new();
        let mut far = Vec::new();
        let (mut stated, mut confirmed, mut above, mut doubted) = (0u64, 0u64, 0u64, 0u64);
        for seed in 0..seeds {
            let model = model.seeded(seed);
            let findings = simulator::search(model, seed, budget_s * SECOND, None);
            let lower = findings.load_line_rps.lower;
            // Where no line exists, any that is stated is beyond it.
            let ratio =
                if share > 0.0 { lower / (share * model.capacity) } else { f64::from(u8::from(lower > 0.0)) * 9.0 };
            stated += u64::from(lower > 0.0);
            confirmed += u64::from(findings.load_line_rps.confirmed);
            doubted += u64::from(
                findings.doubts.beside().count() as u64 > u64::from(!findings.load_line_rps.confirmed && lower > 0.0),
            );
            above += u64::from(ratio > 1.03);
            ratios.push(ratio);
            if if stalling { ratio > 1.03 } else { !(0.97..=1.03).contains(&ratio) } {
                far.push(format!("{seed}:{ratio:.3}"));
            }
            elapsed += findings.elapsed_s / seeds as f64;
            longest = longest.max(findings.elapsed_s);
            let end = format!("{:?}", findings.stopped_by);
            match ends.iter_mut().find(|e| e.0 == end) {
                Some(entry) => entry.1 += 1,
                None => ends.push((end, 1)),
            }
        }
        ratios.sort_by(f64::total_cmp);
        let q = |q: f64| ratios[((ratios.len() - 1) as f64 * q).round() as usize];
        let within = ratios.iter().filter(|r| (0.97..=1.03).contains(*r)).count() as f64 / ratios.len() as f64;
        println!(
            "{:20} {share:5.3} {:6.3} {:6.3} {:6.3}  {:5.1}% {:6.1}s {:6.1}s stated {stated} confirmed {confirmed} doubted {doubted} above {above} {ends:?} far {}",
            model.name,
            q(0.05),
            q(0.5),
            q(0.95),
            within * 100.0,
            elapsed,
            longest,
            far[..far.len().min(12)].join(" ")
        );
    }
}
