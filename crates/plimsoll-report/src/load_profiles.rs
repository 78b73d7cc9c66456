//! Profiles taken beside a load: what profiling cost, and what the dearest functions cost a request at low load and at
//! the load in question, as text and as JSON.

use crate::block::{Report, Tone};
use crate::format::{duration, rate};
use crate::profile::{amount, change_cells, change_value, name_text};
use plimsoll_analysis::profile::{DiffRow, Meanwhile, ProfileDiff, ProfiledTrial};
use serde_json::{Map, Value, json};

/// Rows of the table in the text, and of the document.
const ROWS: usize = 15;
const ROWS_DOCUMENT: usize = 50;
/// So many of the functions that changed are named.
const NAMED: usize = 5;

/// A profile of one kind at both levels: the sum of one column.
#[derive(Debug, Clone, PartialEq)]
pub struct KindSums {
    /// As in its address: `allocs`, `mutex`, ...
    pub kind: String,
    /// The column, such as `alloc_space`.
    pub sample_type: String,
    /// Unit of the sums, as pprof spells it.
    pub unit: String,
    /// Low load and the load in question: the sum of what was added meanwhile, and the requests meanwhile; none where
    /// the profile is missing.
    pub sums: [Option<(f64, f64)>; 2],
    /// Whether the sum is a stock (memory in use, goroutines), of which a share for each request says nothing.
    pub stock: bool,
}

/// What was caught beside one experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Profiles {
    /// Where from.
    pub base: String,
    /// Length of the CPU profiles as asked for, s.
    pub seconds: u32,
    /// What the higher level is called: `line`, or `load` of a single run.
    pub level_name: String,
    /// Low load and the load in question, as far as they were driven.
    pub levels: Vec<ProfiledTrial>,
    /// Requests completed while each CPU profile was taken.
    pub requests: Vec<f64>,
    /// CPU a request, low against the load in question; none unless both profiles are there.
    pub comparison: Option<ProfileDiff>,
    /// The other kinds.
    pub kinds: Vec<KindSums>,
    /// The profiles kept: level, kind, file.
    pub files: Vec<(String, String, String)>,
    /// What is missing, and why.
    pub missing: Vec<String>,
    /// What speaks against the figures.
    pub warnings: Vec<String>,
}

impl Profiles {
    fn level_names(&self) -> [&str; 2] {
        ["low", &self.level_name]
    }
}

fn with_without(level: &ProfiledTrial, of: impl Fn(&Meanwhile) -> String) -> String {
    format!("{} with, {} without", of(&level.with), of(&level.without))
}

/// The change by profiling, as a share.
fn cost(level: &ProfiledTrial) -> Option<f64> {
    (level.without.goodput_rps > 0.0).then(|| level.with.goodput_rps / level.without.goodput_rps - 1.0)
}

/// The part of a report that is about profiles.
pub fn profiles_report(profiles: &Profiles) -> Report {
    let mut report = Report::default();
    for text in profiles.missing.iter().chain(&profiles.warnings) {
        report.text(Tone::Warning, text.clone());
    }
    let mut facts: Vec<(&str, String)> = Vec::new();
    let names = profiles.level_names();
    let rates: Vec<String> = profiles
        .levels
        .iter()
        .zip(names)
        .map(|(l, name)| format!("{} requests/s ({name})", rate(l.offered_rps)))
        .collect();
    if rates.is_empty() {
        return report;
    }
    facts.push((
        "profiles",
        format!("at {}, {} s of CPU each, from {}", rates.join(" and "), profiles.seconds, profiles.base),
    ));
    if let Some(level) = profiles.levels.last() {
        let percent = cost(level).map_or(String::new(), |share| format!(" ({:+.2} %)", share * 100.0));
        facts.push((
            "cost of profiling",
            format!(
                "goodput {}{percent}; p50 {}; p99 {}",
                with_without(level, |m| format!("{}/s", rate(m.goodput_rps))),
                with_without(level, |m| duration(m.p50_ns as f64)),
                with_without(level, |m| duration(m.p99_ns as f64)),
            ),
        ));
    }
    if let Some(comparison) = &profiles.comparison {
        let total = &comparison.total;
        let [before, after, delta, z] = change_cells(total, &comparison.sample_type.unit);
        let sign = if total.delta() > 0.0 { "+" } else { "" };
        let z = if total.z.is_some() { format!(", {z} standard deviations") } else { String::new() };
        facts.push(("CPU a request", format!("{before} low, {after} {} ({sign}{delta}{z})", profiles.level_name)));
    }
    for kind in &profiles.kinds {
        facts.extend(kind_text(kind, names).map(|text| (kind.kind.as_str(), text)));
    }
    report.facts(facts);
    if let Some(comparison) = &profiles.comparison {
        functions(&mut report, profiles, comparison);
    }
    report
}

/// What one of the other kinds says; none where it is missing.
fn kind_text(kind: &KindSums, names: [&str; 2]) -> Option<String> {
    let caught: Vec<(f64, f64, &str)> = kind
        .sums
        .iter()
        .zip(names)
        .filter_map(|(sum, name)| sum.map(|(sum, requests)| (sum, requests, name)))
        .collect();
    if caught.is_empty() {
        return None;
    }
    // Go records these only where it is told to.
    let switch = match kind.kind.as_str() {
        "block" => Some("runtime.SetBlockProfileRate"),
        "mutex" => Some("runtime.SetMutexProfileFraction"),
        _ => None,
    };
    if let Some(switch) = switch
        && caught.iter().all(|(sum, _, _)| *sum == 0.0)
    {
        return Some(format!("nothing was recorded; a Go server records it once it calls {switch}"));
    }
    let texts = caught.into_iter().map(|(sum, requests, name)| match (kind.stock, requests > 0.0) {
        (true, _) => format!("{}{} {name}", if sum > 0.0 { "+" } else { "" }, amount(sum, &kind.unit)),
        (false, true) => format!("{} a request {name}", amount(sum / requests, &kind.unit)),
        (false, false) => format!("{} {name}", amount(sum, &kind.unit)),
    });
    Some(format!("{} {}", kind.sample_type, texts.collect::<Vec<_>>().join(", ")))
}

/// The dearest functions, and what changed.
fn functions(report: &mut Report, profiles: &Profiles, comparison: &ProfileDiff) {
    let unit = &comparison.sample_type.unit;
    let mut rows: Vec<&DiffRow> = comparison.rows.iter().collect();
    rows.sort_by(|a, b| b.cum.after.total_cmp(&a.cum.after));
    let row = |row: &&DiffRow| {
        let [before, after, delta, z] = change_cells(&row.cum, unit);
        vec![name_text(&row.function), before, after, delta, z, amount(row.flat.after, unit)]
    };
    report.table(
        &["CPU a request, with callees", "low", &profiles.level_name, "change", "z", "itself"],
        rows.iter().take(ROWS).map(row).collect(),
    );
    let mut changed: Vec<&DiffRow> = comparison.rows.iter().filter(|row| row.flat.is_finding()).collect();
    changed.sort_by(|a, b| b.flat.delta().abs().total_cmp(&a.flat.delta().abs()));
    let named: Vec<String> = changed
        .iter()
        .take(NAMED)
        .map(|row| {
            let delta = row.flat.delta();
            format!("{} {}{}", name_text(&row.function), if delta > 0.0 { "+" } else { "" }, amount(delta, unit))
        })
        .collect();
    let of = format!("of {} tested", comparison.tested_flat);
    let text = match (comparison.tested_flat, named.is_empty()) {
        (0, _) => "too few samples to tell differences from chance: profile for longer (--pprof-seconds)".into(),
        (_, true) => format!("no function itself costs a request more or less than at low load beyond chance, {of}"),
        _ => format!("changed beyond chance themselves, {} {of}: {}", changed.len(), named.join(", ")),
    };
    report.text(Tone::Plain, text);
}

fn meanwhile(with: &Meanwhile, without: &Meanwhile, of: impl Fn(&Meanwhile) -> Value) -> Value {
    json!({ "with": of(with), "without": of(without) })
}

/// The member `profiles` of a document.
pub fn profiles_document(profiles: &Profiles) -> Value {
    let names = profiles.level_names();
    let mut levels = Map::new();
    for ((level, name), requests) in profiles.levels.iter().zip(names).zip(&profiles.requests) {
        let pair = |of: &dyn Fn(&Meanwhile) -> Value| meanwhile(&level.with, &level.without, of);
        let files = profiles.files.iter().filter(|(of, _, _)| of == name);
        let files: Map<String, Value> = files.map(|(_, kind, file)| (kind.clone(), file.as_str().into())).collect();
        let value = json!({
            "offered_rps": level.offered_rps,
            "requests": requests,
            "goodput_rps": pair(&|m| m.goodput_rps.into()),
            "p50_ns": pair(&|m| m.p50_ns.into()),
            "p99_ns": pair(&|m| m.p99_ns.into()),
            "files": files,
        });
        levels.insert(name.to_owned(), value);
    }
    let kinds: Vec<Value> = profiles
        .kinds
        .iter()
        .map(|kind| {
            let side = |at: usize| {
                kind.sums[at].map_or(Value::Null, |(sum, requests)| json!({ "sum": sum, "requests": requests }))
            };
            json!({
                "kind": kind.kind, "sample_type": kind.sample_type, "unit": kind.unit, "stock": kind.stock,
                "low": side(0), &profiles.level_name: side(1),
            })
        })
        .collect();
    let (mut total, mut top, mut unit) = (Value::Null, Vec::new(), Value::Null);
    if let Some(comparison) = &profiles.comparison {
        total = change_value(&comparison.total);
        unit = comparison.sample_type.unit.clone().into();
        let mut rows: Vec<&DiffRow> = comparison.rows.iter().collect();
        rows.sort_by(|a, b| b.cum.after.total_cmp(&a.cum.after));
        top = rows
            .iter()
            .take(ROWS_DOCUMENT)
            .map(|row| json!({ "function": row.function, "flat": change_value(&row.flat), "cum": change_value(&row.cum) }))
            .collect();
    }
    json!({
        "base": profiles.base,
        "seconds": profiles.seconds,
        "levels": levels,
        "unit": unit,
        "cpu_per_request": total,
        "kinds": kinds,
        "top": top,
        "missing": profiles.missing,
        "warnings": profiles.warnings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;
    use plimsoll_analysis::profile::{Basis, Sort, View, diff, read};

    fn caught() -> Profiles {
        let (a, b) = (read(b"m;json 900\nm;sql 100\n"), read(b"m;json 18000\nm;sql 1000\n"));
        let (a, b, view) = (a.expect("folded"), b.expect("folded"), View::all(0));
        let basis = Basis::Requests { before: 100.0, after: 1000.0 };
        let level = |offered_rps: f64, goodput_rps: f64| ProfiledTrial {
            offered_rps,
            without: Meanwhile {
                seconds: 10.0,
                completed_rps: offered_rps,
                goodput_rps: offered_rps,
                p50_ns: 1000,
                p99_ns: 9000,
            },
            with: Meanwhile { seconds: 10.0, completed_rps: offered_rps, goodput_rps, p50_ns: 1100, p99_ns: 9900 },
            others: Meanwhile::default(),
        };
        Profiles {
            base: "http://h/debug/pprof".into(),
            seconds: 10,
            level_name: "line".into(),
            levels: vec![level(10.0, 10.0), level(100.0, 99.0)],
            requests: vec![100.0, 1000.0],
            comparison: Some(diff((&a, &view), (&b, &view), basis, Sort::Cum).expect("comparable")),
            kinds: vec![
                KindSums {
                    kind: "allocs".into(),
                    sample_type: "alloc_space".into(),
                    unit: "bytes".into(),
                    sums: [Some((1024.0, 4.0)), None],
                    stock: false,
                },
                KindSums {
                    kind: "goroutine".into(),
                    sample_type: "goroutine".into(),
                    unit: "count".into(),
                    sums: [Some((0.0, 4.0)), Some((7.0, 40.0))],
                    stock: true,
                },
                KindSums {
                    kind: "mutex".into(),
                    sample_type: "delay".into(),
                    unit: "nanoseconds".into(),
                    sums: [Some((0.0, 4.0)), Some((0.0, 40.0))],
                    stock: false,
                },
            ],
            files: vec![("line".into(), "cpu".into(), "x.line.cpu.pb.gz".into())],
            missing: vec!["line: mutex: answers 404".into()],
            warnings: vec!["line: no steady state".into()],
        }
    }

    #[test]
    fn the_text_states_cost_and_functions() {
        let shown = text::render(&profiles_report(&caught()), false);
        for part in [
            "warning: line: mutex: answers 404",
            "warning: line: no steady state",
            "at 10.0 requests/s (low) and 100 requests/s (line), 10 s of CPU each, from http://h/debug/pprof",
            "goodput 99.0/s with, 100/s without (-1.00 %); p50 1.10 us with, 1.00 us without",
            "10 low, 19 line (+9, ",
            "alloc_space 256 B a request low",
            "goroutine 0 low, +7 line",
            "mutex              nothing was recorded; a Go server",
            "changed beyond chance themselves, 1 of 2 tested: json +9",
        ] {
            assert!(shown.contains(part), "{part}\n{shown}");
        }
        let json = shown.lines().map(str::trim).find(|line| line.starts_with("json ")).expect("a row");
        assert_eq!(json.split_whitespace().collect::<Vec<_>>()[..4], ["json", "9", "18", "9"]);
    }

    #[test]
    fn the_document_holds_all() {
        let document = profiles_document(&caught());
        assert_eq!(document["levels"]["line"]["goodput_rps"], json!({ "with": 99.0, "without": 100.0 }));
        assert_eq!(document["levels"]["line"]["files"]["cpu"], "x.line.cpu.pb.gz");
        assert_eq!(document["top"][0]["function"], "m");
        assert_eq!(document["top"][1]["flat"]["delta"], 9.0);
        assert_eq!(document["cpu_per_request"]["before"], 10.0);
        assert_eq!(document["kinds"][1]["line"]["sum"], 7.0);
        assert_eq!(document["kinds"][0]["line"], Value::Null);
    }
}
