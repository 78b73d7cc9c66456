//! The report of `plimsoll doctor`, which checks whether a machine is fit to generate load and
//! measure. The report of `plimsoll doctor` is a screen of text and a JSON document.
//!
//! Not here: the checks themselves, and their limits (`plimsoll_analysis::fitness`).

use crate::block::{Report, Tone};
use crate::document::to_json_value;
use crate::format::{duration, rate};
use crate::screen::{COLUMNS_MAX, LINES_MAX};
use crate::text::render_wrapped;
use plimsoll_analysis::fitness::{
    BENCHMARK_CPU_US, BENCHMARK_RPS, Fitness, FitnessCheck, LAG_NS_FIT_MAX, MachineFitness,
};
use plimsoll_model::machine_facts::{MachineFacts, SelfMeasurement};
use serde::Serialize;
use serde_json::Value;

/// The documentation page with the figures of the benchmark machine, for comparison.
const BENCHMARK_PAGE: &str = "docs/reference/benchmarks.md";

/// Formats the overall result of the checks as one sentence.
fn fitness_sentence(fitness: &MachineFitness) -> String {
    let list = |of: Fitness| fitness.check_names_with_fitness(of).join(", ");
    match fitness.fitness() {
        Fitness::Fit => "this machine is fit to measure".to_owned(),
        Fitness::Limited => {
            format!("this machine is fit to measure, with limits: {checks}", checks = list(Fitness::Limited))
        }
        Fitness::Unfit => {
            format!("this machine is not fit to measure: {checks}", checks = list(Fitness::Unfit))
        }
    }
}

/// Returns table rows that compare this machine with the benchmark machine. Each row has the name
/// of a figure, its value on this machine, and its value on the benchmark machine.
fn comparison_rows(measured: &SelfMeasurement) -> Vec<[String; 3]> {
    let row = |name: &str, here: String, there: String| [name.to_owned(), here, there];
    let (per_s, cpu) = (|rps: f64| format!("{}/s", rate(rps)), |us: f64| duration(us * 1e3));
    let lag = format!("{} at {}", duration(measured.lag_p99_ns as f64), per_s(measured.rate_rps));
    vec![
        row("highest rate", per_s(measured.highest_rps), per_s(BENCHMARK_RPS)),
        row("CPU a request", cpu(measured.cpu_us), cpu(BENCHMARK_CPU_US)),
        row("lag p99", lag, format!("limit {}", duration(LAG_NS_FIT_MAX as f64))),
    ]
}

/// Renders the screen: the answer, a row for each check, plimsoll's measurement of its own speed on
/// this machine, and the remedies. `columns` is the width of the terminal, if known.
pub fn doctor_text(measured: Option<&SelfMeasurement>, fitness: &MachineFitness, columns: Option<usize>) -> String {
    let mut report = Report::default();
    report.add_sentence(Tone::Answer, fitness_sentence(fitness));
    let row =
        |check: &FitnessCheck| vec![check.name.to_owned(), check.fitness.word().to_owned(), check.observation.clone()];
    report.add_table(&["check", "is", "found"], fitness.checks.iter().map(row).collect());
    if let Some(measured) = measured {
        let rows = comparison_rows(measured).into_iter().map(Vec::from).collect();
        report.add_table(&["10 s of load on the reference server", "here", "benchmark machine"], rows);
    }
    let mut text = render_wrapped(&report, false, Some(columns.unwrap_or(COLUMNS_MAX)));
    // The remedies for the most serious problems come first. Remedies that do not fit on the screen
    // are only in the JSON document.
    let mut remedies: Vec<(Fitness, &str)> =
        fitness.checks.iter().filter_map(|check| Some((check.fitness, check.remedy.as_deref()?))).collect();
    remedies.sort_by_key(|(fitness, _)| std::cmp::Reverse(*fitness));
    let room = LINES_MAX.saturating_sub(text.lines().count() + 1).max(1);
    if !remedies.is_empty() {
        text.push('\n');
    }
    let shown = if remedies.len() > room { room - 1 } else { remedies.len() };
    for (_, remedy) in &remedies[..shown] {
        text.push_str(&format!("  -> {remedy}\n"));
    }
    if remedies.len() > shown {
        text.push_str(&format!(
            "  -> {remedies} more remedies: plimsoll doctor --json\n",
            remedies = remedies.len() - shown
        ));
    }
    text
}

#[derive(Serialize)]
struct DoctorDocument<'a> {
    schema: &'static str,
    fitness: &'static str,
    checks: Vec<CheckFields<'a>>,
    machine: DoctorMachineFields<'a>,
    measured: Option<MeasuredFields>,
    benchmark: BenchmarkFields,
    benchmark_page: &'static str,
}

#[derive(Serialize)]
struct CheckFields<'a> {
    name: &'static str,
    fitness: &'static str,
    found: &'a str,
    remedy: Option<&'a str>,
}

#[derive(Serialize)]
struct DoctorMachineFields<'a> {
    cores: u32,
    cores_online: u32,
    cpu: &'a str,
    is_virtual: bool,
    kernel: &'a str,
    governors: &'a [String],
    interference_cores: Option<f64>,
    steal_share: Option<f64>,
    files_max: u64,
    local_ports: u64,
    ports_in_time_wait: u64,
    accept_queue_max: u64,
    memory_available_bytes: u64,
    quota_cores: Option<f64>,
    memory_limit_bytes: Option<u64>,
    perf_event_paranoid: Option<i64>,
}

#[derive(Serialize)]
struct MeasuredFields {
    highest_rps: f64,
    cpu_us: f64,
    rate_rps: f64,
    lag_p99_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    disturbed: Option<String>,
}

#[derive(Serialize)]
struct BenchmarkFields {
    highest_rps: f64,
    cpu_us: f64,
}

impl From<&SelfMeasurement> for MeasuredFields {
    fn from(measured: &SelfMeasurement) -> MeasuredFields {
        let SelfMeasurement { highest_rps, cpu_us, rate_rps, lag_p99_ns, disturbance: disturbed } = measured.clone();
        MeasuredFields { highest_rps, cpu_us, rate_rps, lag_p99_ns, disturbed }
    }
}

/// Renders the JSON document `plimsoll.doctor/1`: the checks of a machine and their results.
pub fn doctor_document(facts: &MachineFacts, measured: Option<&SelfMeasurement>, fitness: &MachineFitness) -> Value {
    let checks = fitness.checks.iter().map(|check| CheckFields {
        name: check.name,
        fitness: check.fitness.word(),
        found: &check.observation,
        remedy: check.remedy.as_deref(),
    });
    let interference = facts.interference.as_ref();
    to_json_value(&DoctorDocument {
        schema: "plimsoll.doctor/1",
        fitness: fitness.fitness().word(),
        checks: checks.collect(),
        machine: DoctorMachineFields {
            cores: facts.cores,
            cores_online: facts.cores_online,
            cpu: &facts.cpu_model,
            is_virtual: facts.is_virtual,
            kernel: &facts.kernel,
            governors: &facts.governors,
            interference_cores: interference.map(|sample| sample.cores),
            steal_share: interference.map(|sample| sample.steal_share),
            files_max: facts.files_max,
            local_ports: facts.local_ports,
            ports_in_time_wait: facts.ports_in_time_wait,
            accept_queue_max: facts.accept_queue_max,
            memory_available_bytes: facts.memory_available_bytes,
            quota_cores: facts.limits.cores_milli.map(|milli| milli as f64 / 1e3),
            memory_limit_bytes: facts.limits.memory_bytes,
            perf_event_paranoid: facts.perf_event_paranoid,
        },
        measured: measured.map(MeasuredFields::from),
        benchmark: BenchmarkFields { highest_rps: BENCHMARK_RPS, cpu_us: BENCHMARK_CPU_US },
        benchmark_page: BENCHMARK_PAGE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::MachineLimits;
    use plimsoll_model::machine_facts::{InterferenceSample, MissingProbe, SamplingAccess};

    const QUIET_MEASUREMENT: SelfMeasurement = SelfMeasurement {
        highest_rps: 90_000.0,
        cpu_us: 9.0,
        rate_rps: 10_000.0,
        lag_p99_ns: 100_000,
        disturbance: None,
    };

    /// Checks that the output fits on one screen even for a machine that fails every check.
    #[test]
    fn doctor_output_fits_one_screen_if_every_check_fails() {
        let facts = MachineFacts {
            cores: 1,
            cores_online: 64,
            cpu_model: "A Processor With a Long Name @ 2.60GHz".into(),
            kernel: "Linux 4.18.0-553.el8_10.x86_64".into(),
            governors: vec!["powersave".into(), "schedutil".into()],
            interference: Some(InterferenceSample {
                cores: 12.0,
                steal_share: 0.3,
                busiest: Some(("chromium".into(), 3.0)),
            }),
            files_max: 1024,
            local_ports: 5000,
            accept_queue_max: 128,
            memory_available_bytes: 100 << 20,
            limits: MachineLimits { cores_milli: Some(500), memory_bytes: None },
            probes_missing: vec![MissingProbe::OtherUsers, MissingProbe::Pressure],
            sampling: SamplingAccess::Refused,
            ..MachineFacts::default()
        };
        let measured = SelfMeasurement { lag_p99_ns: 50_000_000, highest_rps: 900.0, ..QUIET_MEASUREMENT };
        let fitness = MachineFitness::assess(&facts, Some(&measured));
        let text = doctor_text(Some(&measured), &fitness, None);
        assert!(text.lines().count() <= LINES_MAX, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS_MAX), "{text}");
        assert!(text.starts_with("this machine is not fit to measure: steal, interference"), "{text}");
        assert!(text.contains("more remedies: plimsoll doctor --json"), "{text}");
        let document = doctor_document(&facts, Some(&measured), &fitness);
        assert_eq!(document["fitness"], "unfit");
        let remedies = document["checks"].as_array().expect("a list").iter().filter(|it| it["remedy"].is_string());
        assert!(remedies.count() >= 10, "{document:#}");
    }

    #[test]
    fn a_fit_machine_gets_no_advice() {
        let fitness = MachineFitness { checks: Vec::new() };
        let text = doctor_text(Some(&QUIET_MEASUREMENT), &fitness, None);
        assert!(text.starts_with("this machine is fit to measure\n") && !text.contains("->"), "{text}");
    }
}
