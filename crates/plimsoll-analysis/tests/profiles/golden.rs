//! Compares plimsoll's sums of real profiles with the output of `go tool pprof -top -cum`. The
//! script `regenerate` creates the profiles and the output of `go tool pprof`.

use plimsoll_analysis::profile::{FunctionCostOrder, ProfileView, percent, read, sum_by_function};
use plimsoll_model::profile::{LabelValue, Profile};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

fn profiles_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/profiles")
}

fn read_profile(name: &str) -> Profile {
    read(&fs::read(profiles_folder().join(format!("{name}.pb.gz"))).expect("the file is there")).expect("a profile")
}

/// A number as pprof prints it: its value in the smallest unit, and half a unit of its last digit
/// as the error.
#[derive(Debug, Clone, Copy)]
struct PrintedNumber {
    value: f64,
    half_digit: f64,
}

impl PrintedNumber {
    fn parse(text: &str) -> PrintedNumber {
        let digits = text.find(|c: char| !c.is_ascii_digit() && !".e-".contains(c)).unwrap_or(text.len());
        let scale = match &text[digits..] {
            "" | "ns" | "B" | "%" => 1.0,
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "mins" => 60e9,
            "kB" => 1024.0,
            "MB" => 1024.0 * 1024.0,
            other => panic!("{text}: the unit {other} is new"),
        };
        // pprof prints a very small percentage with an exponent.
        let (mantissa, exponent) = text[..digits].split_once('e').unwrap_or((&text[..digits], "0"));
        let scale = scale * 10_f64.powi(exponent.parse().expect("an exponent"));
        let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
        let value: f64 = mantissa.parse().expect("a number");
        PrintedNumber { value: value * scale, half_digit: 0.5 * scale * 10_f64.powi(-decimals) }
    }

    fn is_within_rounding(self, value: f64) -> bool {
        (self.value - value).abs() <= self.half_digit * 1.0001
    }
}

/// Reads the rows of pprof's output: flat, flat%, cum and cum% of each function.
fn read_pprof_rows(name: &str) -> BTreeMap<String, [PrintedNumber; 4]> {
    let text = fs::read_to_string(profiles_folder().join(format!("{name}.top"))).expect("the file is there");
    let rows = text.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1);
    rows.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let function = words[5..].join(" ");
        let function = function.trim_end_matches(" (inline)").trim_end_matches(" (partial-inline)").to_owned();
        (function, [words[0], words[1], words[3], words[4]].map(PrintedNumber::parse))
    })
    .collect()
}

/// Compares every row of pprof's output with plimsoll's sums, and returns the number of rows.
fn check(golden_name: &str, profile: &Profile, view: &ProfileView) -> usize {
    let mut expect = read_pprof_rows(golden_name);
    let top = sum_by_function(profile, view, FunctionCostOrder::Cum);
    assert!(top.rows.is_sorted_by_key(|row| -row.cum.abs()));
    for row in &top.rows {
        let name = &profile.functions()[row.function as usize].name;
        let [flat, flat_percent, cum, cum_percent] =
            expect.remove(name).unwrap_or_else(|| panic!("{golden_name}: pprof does not list {name}"));
        assert!(flat.is_within_rounding(row.flat as f64), "{golden_name}: {name} flat {} {flat:?}", row.flat);
        assert!(cum.is_within_rounding(row.cum as f64), "{golden_name}: {name} cum {} {cum:?}", row.cum);
        // pprof prints 100 % from 99.95 % on.
        for (printed, value) in [(flat_percent, row.flat), (cum_percent, row.cum)] {
            let share = percent(value, top.total);
            let whole = printed.value == 100.0 && (99.95..=100.05).contains(&share);
            assert!(whole || printed.is_within_rounding(share), "{golden_name}: {name} {share} {printed:?}");
        }
    }
    assert!(expect.is_empty(), "{golden_name}: only pprof lists {:?}", expect.keys());
    top.rows.len()
}

#[test]
fn profile_figures_agree_with_pprof() {
    let mut rows = 0;
    for kind in ["cpu", "heap", "allocs", "mutex", "block", "goroutine", "threadcreate"] {
        let profile = read_profile(kind);
        rows += check(kind, &profile, &ProfileView::all_samples(profile.sample_type_default));
    }
    for (kind, column) in
        [("cpu", "samples"), ("heap", "alloc_space"), ("heap", "inuse_objects"), ("mutex", "contentions")]
    {
        let profile = read_profile(kind);
        let column_index = profile.sample_type_index(Some(column)).expect("the column is there");
        rows += check(&format!("{kind}.{column}"), &profile, &ProfileView::all_samples(column_index));
    }
    let cpu = read_profile("cpu");
    let all = || ProfileView::all_samples(cpu.sample_type_default);
    rows += check("cpu.focus", &cpu, &all().focus(&cpu, |text| text.contains("json")));
    rows +=
        check("cpu.ignore", &cpu, &all().ignore(&cpu, |text| text.contains("recurse") || text.contains("reflect.go")));
    assert!(rows > 400, "only {rows} rows compared");
}

#[test]
fn the_golden_profiles_cover_the_tested_features() {
    let cpu = read_profile("cpu");
    let names = |sample: &plimsoll_model::profile::ProfileSample| -> Vec<String> {
        sample.functions_from_root().map(|f| cpu.functions()[f as usize].name.clone()).collect()
    };
    assert!(cpu.samples().any(|s| names(&s).iter().filter(|n| *n == "main.recurse").count() > 1), "recursion");
    let text = fs::read_to_string(profiles_folder().join("cpu.top")).expect("the file is there");
    assert!(text.contains("(inline)"), "inlined frames");
    let labels: Vec<_> = cpu.samples().flat_map(|s| s.labels().map(|l| l.value.clone()).collect::<Vec<_>>()).collect();
    for endpoint in ["/list", "/pick"] {
        assert!(labels.contains(&LabelValue::Text(endpoint.into())), "labels");
    }
    assert_eq!(cpu.period, 10_000_000);
    assert!(cpu.duration_ns > 3_000_000_000 && cpu.time_unix_ns > 0);
    let kinds = |p: Profile| p.sample_types[p.sample_type_default].kind.clone();
    let defaults = ["cpu", "heap", "allocs", "mutex", "block", "goroutine"].map(|name| kinds(read_profile(name)));
    assert_eq!(defaults, ["cpu", "inuse_space", "alloc_space", "delay", "delay", "goroutine"]);
}
