//! Renders the profiles that were taken of the server during loads, as text and as JSON. The text
//! states how much profiling slowed the server, and the functions with the highest cost per
//! request. Profiles at a low load are compared with profiles at a second load, usually the load
//! line.

use crate::block::{Report, Tone};
use crate::document::ObjectByName;
use crate::format::{duration, rate};
use crate::profile::{
    CostChangeFields, FunctionChange, ProfileWarningFields, change_cells, format_with_unit, printable_function_name,
    profile_warnings,
};
use plimsoll_analysis::Assessment;
use plimsoll_analysis::profile::{DiffRow, PeriodFigures, ProfileDiff, ProfiledTrial};
use plimsoll_analysis::profile_findings::{ProfileFindings, ProfileTotal, ProfileTotals, SingleTargetProfiles};
use serde::Serialize;

/// The maximum number of functions in the table of the text output; `DOCUMENT_FUNCTIONS_MAX` is the
/// limit of the JSON document.
const TEXT_FUNCTIONS_MAX: usize = 15;
const DOCUMENT_FUNCTIONS_MAX: usize = 50;
/// The maximum number of functions with a changed cost that the text names.
const NAMED_FUNCTIONS_MAX: usize = 5;

fn with_and_without_profiling_text(level: &ProfiledTrial, figure_text: impl Fn(&PeriodFigures) -> String) -> String {
    format!("{} with, {} without", figure_text(&level.with_cpu_profile), figure_text(&level.without_profiling))
}

/// Returns the relative change of the goodput while profiling, so -0.01 means that profiling costs
/// 1 %. Returns `None` if no request succeeded without profiling.
fn goodput_change_while_profiling(level: &ProfiledTrial) -> Option<f64> {
    (level.without_profiling.goodput_rps > 0.0)
        .then(|| level.with_cpu_profile.goodput_rps / level.without_profiling.goodput_rps - 1.0)
}

/// Formats how many profile files a run has, and the command for a flame graph of their difference.
/// Returns `None` for a comparison, or if the CPU profile of a load is missing.
pub fn profiles_note(findings: &ProfileFindings) -> Option<String> {
    let ProfileFindings::SingleTarget(profiles) = findings else { return None };
    let profiles = profiles.doubts_and_figures().1;
    let cpu = |level: &str| {
        let kept = profiles.files.iter().find(|kept| kept.level == level && kept.kind == "cpu");
        kept.map(|kept| kept.file.as_str())
    };
    let (low, high) = (cpu("low")?, cpu(&profiles.level_name)?);
    let [before, after] = profiles.requests.as_slice() else { return None };
    Some(format!(
        "profiles: {files} files beside the run file; the flame graph of the difference: plimsoll profile --diff {low} \
         {high} --requests-a {before:.0} --requests-b {after:.0} -o diff.html",
        files = profiles.files.len(),
    ))
}

/// Renders the section of a report about profiles. Warnings about the profiles come first.
pub fn profiles_report(profiles: &Assessment<SingleTargetProfiles>) -> Report {
    let (doubts, profiles) = profiles.doubts_and_figures();
    let mut report = profile_warnings(doubts);
    let mut facts: Vec<(&str, String)> = Vec::new();
    let names = profiles.level_names();
    let rates: Vec<String> = profiles
        .levels
        .iter()
        .zip(names)
        .map(|(l, name)| format!("{} {}/s ({name})", rate(l.offered_rps), profiles.rate_unit))
        .collect();
    if rates.is_empty() {
        return report;
    }
    facts.push((
        "profiles",
        format!(
            "CPU profiles of {seconds} s from {url}, at {rates}",
            rates = rates.join(" and "),
            seconds = profiles.seconds,
            url = profiles.base
        ),
    ));
    if let Some(level) = profiles.levels.last() {
        let percent =
            goodput_change_while_profiling(level).map_or(String::new(), |share| format!(" ({:+.2} %)", share * 100.0));
        facts.push((
            "cost of profiling",
            format!(
                "goodput {}{percent}; p50 {}; p99 {}",
                with_and_without_profiling_text(level, |m| format!("{}/s", rate(m.goodput_rps))),
                with_and_without_profiling_text(level, |m| duration(m.p50_ns as f64)),
                with_and_without_profiling_text(level, |m| duration(m.p99_ns as f64)),
            ),
        ));
    }
    if let Some(comparison) = &profiles.comparison {
        facts.push(("CPU a request", total_cpu_cost_text(comparison, names)));
    }
    for kind in &profiles.kinds {
        facts.extend(profile_kind_text(kind, names).map(|text| (kind.kind.as_str(), text)));
    }
    report.add_facts(facts);
    if let Some(comparison) = &profiles.comparison {
        let few_samples = "too few samples to tell differences from chance: profile for longer (--pprof-seconds)";
        add_function_cost_table(&mut report, comparison, names, few_samples);
    }
    report
}

/// Formats the CPU cost per request of all functions together, at the low load and at the second
/// load.
pub(crate) fn total_cpu_cost_text(comparison: &ProfileDiff, [first, second]: [&str; 2]) -> String {
    let total = &comparison.total;
    let [before, after, delta, z] = change_cells(total, &comparison.sample_type.unit);
    let sign = if total.delta() > 0.0 { "+" } else { "" };
    let z = if total.z.is_some() { format!(", {z} standard deviations") } else { String::new() };
    format!("{before} {first}, {after} {second} ({sign}{delta}{z})")
}

/// Formats the totals of one kind of profile, such as `allocs` or `mutex`; `None` if no profile of
/// this kind was taken.
fn profile_kind_text(kind: &ProfileTotals, names: [&str; 2]) -> Option<String> {
    let caught: Vec<(ProfileTotal, &str)> =
        kind.sums.iter().zip(names).filter_map(|(sum, name)| Some(((*sum)?, name))).collect();
    if caught.is_empty() {
        return None;
    }
    // A Go program records `block` and `mutex` profiles only after the program has called the
    // function that turns the profile on.
    let switch = match kind.kind.as_str() {
        "block" => Some("runtime.SetBlockProfileRate"),
        "mutex" => Some("runtime.SetMutexProfileFraction"),
        _ => None,
    };
    if let Some(switch) = switch
        && caught.iter().all(|(caught, _)| caught.sum == 0.0)
    {
        return Some(format!("the profile is empty; a Go server records this profile after a call of {switch}"));
    }
    let texts =
        caught.into_iter().map(|(ProfileTotal { sum, requests }, name)| match (kind.is_stock, requests > 0.0) {
            (true, _) => format!("{}{} {name}", if sum > 0.0 { "+" } else { "" }, format_with_unit(sum, &kind.unit)),
            (false, true) => format!("{} a request {name}", format_with_unit(sum / requests, &kind.unit)),
            (false, false) => format!("{} {name}", format_with_unit(sum, &kind.unit)),
        });
    Some(format!("{} {}", kind.sample_type, texts.collect::<Vec<_>>().join(", ")))
}

/// A function is omitted from the table if at least this share of its cost is in one callee.
/// Without this rule, chains of callers such as middleware would fill the table of functions.
const CALLEE_COST_SHARE_MIN: f64 = 0.97;

/// Adds the table of the functions with the highest cost, and a sentence about functions whose cost
/// changed significantly. `few_samples` is the sentence for a comparison with too few samples.
pub(crate) fn add_function_cost_table(
    report: &mut Report,
    comparison: &ProfileDiff,
    [first, second]: [&str; 2],
    few_samples: &str,
) {
    let unit = &comparison.sample_type.unit;
    let mut rows: Vec<&DiffRow> = comparison.rows.iter().collect();
    rows.retain(|DiffRow { flat, cum, costliest_callee_cost: handed_on, .. }| {
        cum.after == 0.0
            || *handed_on < CALLEE_COST_SHARE_MIN * cum.after
            || flat.after > (1.0 - CALLEE_COST_SHARE_MIN) * cum.after
    });
    rows.sort_by(|a, b| b.cum.after.total_cmp(&a.cum.after));
    let row = |row: &&DiffRow| {
        let [before, after, delta, z] = change_cells(&row.cum, unit);
        vec![printable_function_name(&row.function), before, after, delta, z, format_with_unit(row.flat.after, unit)]
    };
    report.add_table(
        &["CPU per request, with callees", first, second, "change", "z", "itself"],
        rows.iter().take(TEXT_FUNCTIONS_MAX).map(row).collect(),
    );
    let mut changed: Vec<&DiffRow> = comparison.rows.iter().filter(|row| row.flat.is_finding()).collect();
    changed.sort_by(|a, b| b.flat.delta().abs().total_cmp(&a.flat.delta().abs()));
    let named: Vec<String> = changed
        .iter()
        .take(NAMED_FUNCTIONS_MAX)
        .map(|row| {
            let delta = row.flat.delta();
            format!(
                "{} {}{}",
                printable_function_name(&row.function),
                if delta > 0.0 { "+" } else { "" },
                format_with_unit(delta, unit)
            )
        })
        .collect();
    let text = match (comparison.tested_flat, named.is_empty()) {
        (0, _) => few_samples.to_owned(),
        (tested, true) => format!(
            "no function's own cost per request differs significantly from its cost at the {first} load ({tested} \
             functions were tested)"
        ),
        (tested, false) => {
            let (changed, functions) = (changed.len(), named.join(", "));
            format!("cost changed beyond chance for {changed} of {tested} tested functions: {functions}")
        }
    };
    report.add_sentence(Tone::Plain, text);
}

/// One figure of a load in two variants: measured during profiling, and measured without profiling.
#[derive(Serialize)]
struct ProfilingPairFields<T> {
    with: T,
    without: T,
}

impl<T> ProfilingPairFields<T> {
    fn from_trial(level: &ProfiledTrial, figure: impl Fn(&PeriodFigures) -> T) -> ProfilingPairFields<T> {
        ProfilingPairFields { with: figure(&level.with_cpu_profile), without: figure(&level.without_profiling) }
    }
}

/// The JSON fields of one load during which profiles were taken.
#[derive(Serialize)]
struct ProfiledLoadFields<'a> {
    offered_rps: f64,
    requests: f64,
    goodput_rps: ProfilingPairFields<f64>,
    p50_ns: ProfilingPairFields<u64>,
    p99_ns: ProfilingPairFields<u64>,
    files: ObjectByName<&'a str, &'a str>,
}

/// The JSON fields of one kind of profile, with the total of each load under the name of the load.
#[derive(Serialize)]
struct ProfileKindFields<'a> {
    kind: &'a str,
    sample_type: &'a str,
    unit: &'a str,
    stock: bool,
    #[serde(flatten)]
    sums: ObjectByName<&'a str, Option<ProfileTotal>>,
}

/// Returns the functions with the highest cost, at most `DOCUMENT_FUNCTIONS_MAX` of them, for a
/// JSON document.
pub(crate) fn costliest_functions(comparison: &ProfileDiff) -> Vec<FunctionChange<'_>> {
    let mut rows: Vec<&DiffRow> = comparison.rows.iter().collect();
    rows.sort_by(|a, b| b.cum.after.total_cmp(&a.cum.after));
    rows.into_iter().take(DOCUMENT_FUNCTIONS_MAX).map(FunctionChange::from).collect()
}

/// The member `profiles` of a JSON document, if the server itself recorded the profiles.
#[derive(Serialize)]
pub(crate) struct ProfilesFields<'a> {
    source: &'static str,
    base: &'a str,
    seconds: u32,
    levels: ObjectByName<&'a str, ProfiledLoadFields<'a>>,
    unit: Option<&'a str>,
    cpu_per_request: Option<CostChangeFields>,
    kinds: Vec<ProfileKindFields<'a>>,
    top: Vec<FunctionChange<'a>>,
    #[serde(flatten)]
    doubts: ProfileWarningFields,
}

impl<'a> ProfilesFields<'a> {
    /// Creates the member `profiles` from the server's profiles.
    pub(crate) fn new(profiles: &'a Assessment<SingleTargetProfiles>) -> ProfilesFields<'a> {
        let (doubts, profiles) = profiles.doubts_and_figures();
        let names = profiles.level_names();
        let level = |((level, name), requests): ((&ProfiledTrial, &'a str), &f64)| {
            let files = profiles.files.iter().filter(|kept| kept.level == name);
            let fields = ProfiledLoadFields {
                offered_rps: level.offered_rps,
                requests: *requests,
                goodput_rps: ProfilingPairFields::from_trial(level, |m| m.goodput_rps),
                p50_ns: ProfilingPairFields::from_trial(level, |m| m.p50_ns),
                p99_ns: ProfilingPairFields::from_trial(level, |m| m.p99_ns),
                files: ObjectByName(files.map(|kept| (kept.kind.as_str(), kept.file.as_str())).collect()),
            };
            (name, fields)
        };
        let kind = |kind: &'a ProfileTotals| ProfileKindFields {
            kind: &kind.kind,
            sample_type: &kind.sample_type,
            unit: &kind.unit,
            stock: kind.is_stock,
            sums: ObjectByName(names.into_iter().zip(kind.sums).collect()),
        };
        let comparison = profiles.comparison.as_ref();
        ProfilesFields {
            source: "pprof",
            base: &profiles.base,
            seconds: profiles.seconds,
            levels: ObjectByName(profiles.levels.iter().zip(names).zip(&profiles.requests).map(level).collect()),
            unit: comparison.map(|comparison| comparison.sample_type.unit.as_str()),
            cpu_per_request: comparison.map(|comparison| CostChangeFields::from(&comparison.total)),
            kinds: profiles.kinds.iter().map(kind).collect(),
            top: comparison.map_or_else(Vec::new, costliest_functions),
            doubts: ProfileWarningFields::from(doubts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::to_json_value;
    use crate::text;
    use plimsoll_analysis::profile::{CostDivisor, FunctionCostOrder, ProfileView, diff, read};
    use plimsoll_analysis::profile_findings::StoredProfile;
    use plimsoll_analysis::{DoubtKind, Doubts};
    use serde_json::json;

    fn example_profiles() -> Assessment<SingleTargetProfiles> {
        let (a, b) = (read(b"m;json 900\nm;sql 100\n"), read(b"m;json 18000\nm;sql 1000\n"));
        let (a, b, view) = (a.expect("folded"), b.expect("folded"), ProfileView::all_samples(0));
        let basis = CostDivisor::Requests { before: 100.0, after: 1000.0 };
        let level = |offered_rps: f64, goodput_rps: f64| ProfiledTrial {
            offered_rps,
            requests_per_session: 1.0,
            without_profiling: PeriodFigures {
                seconds: 10.0,
                completed_rps: offered_rps,
                goodput_rps: offered_rps,
                p50_ns: 1000,
                p99_ns: 9000,
            },
            with_cpu_profile: PeriodFigures {
                seconds: 10.0,
                completed_rps: offered_rps,
                goodput_rps,
                p50_ns: 1100,
                p99_ns: 9900,
            },
            other_kinds: PeriodFigures::default(),
        };
        let sum = |sum, requests| Some(ProfileTotal { sum, requests });
        let mut doubts = Doubts::default();
        doubts.add(DoubtKind::Server, "line: no steady state");
        doubts.add(DoubtKind::Unmeasured, "line: mutex: answers 404");
        let profiles = SingleTargetProfiles {
            base: "http://h/debug/pprof".into(),
            seconds: 10,
            level_name: "line".into(),
            rate_unit: "requests",
            levels: vec![level(10.0, 10.0), level(100.0, 99.0)],
            requests: vec![100.0, 1000.0],
            comparison: Some(diff((&a, &view), (&b, &view), basis, FunctionCostOrder::Cum).expect("comparable")),
            kinds: vec![
                ProfileTotals {
                    kind: "allocs".into(),
                    sample_type: "alloc_space".into(),
                    unit: "bytes".into(),
                    sums: [sum(1024.0, 4.0), None],
                    is_stock: false,
                },
                ProfileTotals {
                    kind: "goroutine".into(),
                    sample_type: "goroutine".into(),
                    unit: "count".into(),
                    sums: [sum(0.0, 4.0), sum(7.0, 40.0)],
                    is_stock: true,
                },
                ProfileTotals {
                    kind: "mutex".into(),
                    sample_type: "delay".into(),
                    unit: "nanoseconds".into(),
                    sums: [sum(0.0, 4.0), sum(0.0, 40.0)],
                    is_stock: false,
                },
            ],
            files: vec![StoredProfile { level: "line".into(), kind: "cpu".into(), file: "x.line.cpu.pb.gz".into() }],
        };
        Assessment::new(doubts, profiles)
    }

    #[test]
    fn the_profile_text_states_cost_and_functions() {
        let shown = text::render(&profiles_report(&example_profiles()), false);
        for part in [
            "warning: line: mutex: answers 404",
            "warning: line: no steady state",
            "CPU profiles of 10 s from http://h/debug/pprof, at 10.0 requests/s (low) and 100 requests/s (line)",
            "goodput 99.0/s with, 100/s without (-1.00 %); p50 1.10 us with, 1.00 us without",
            "10 low, 19 line (+9, ",
            "alloc_space 256 B a request low",
            "goroutine 0 low, +7 line",
            "mutex              the profile is empty; a Go server",
            "cost changed beyond chance for 1 of 2 tested functions: json +9",
        ] {
            assert!(shown.contains(part), "{part}\n{shown}");
        }
        let json = shown.lines().map(str::trim).find(|line| line.starts_with("json ")).expect("a row");
        assert_eq!(json.split_whitespace().collect::<Vec<_>>()[..4], ["json", "9", "18", "9"]);
    }

    #[test]
    fn callers_without_own_cost_are_not_listed() {
        let check = |folded: &str, expect: &[&str]| {
            let profile = read(folded.as_bytes()).expect("folded");
            let (view, basis) = (ProfileView::all_samples(0), CostDivisor::Requests { before: 100.0, after: 100.0 });
            let comparison =
                diff((&profile, &view), (&profile, &view), basis, FunctionCostOrder::Cum).expect("comparable");
            let mut report = Report::default();
            add_function_cost_table(&mut report, &comparison, ["low", "line"], "longer");
            let shown = text::render(&report, false);
            let rows = shown.trim_start().lines().map(str::trim).skip(1).take_while(|line| !line.is_empty());
            let told: Vec<&str> = rows.filter_map(|line| line.split_whitespace().next()).collect();
            assert_eq!(told, expect, "{folded}{shown}");
        };
        check("a;b;c;dump;json 600\na;b;c;dump 100\na;b;c;log 300\n", &["c", "dump", "json", "log"]);
        // The functions b and d have almost equal cost and do not call each other, so the table
        // lists b and d.
        check("a;b 500\na;c;d 495\n", &["a", "b", "d"]);
        // A function that uses CPU time itself is listed, even if most of its cost is in one
        // callee. A recursive function is listed only once.
        check("a;b;json 960\na;b 40\n", &["b", "json"]);
        check("a;b;a;b;a 500\n", &["a"]);
        check("a 10\n", &["a"]);
    }

    #[test]
    fn the_document_contains_all_profiles() {
        let caught = example_profiles();
        let document = to_json_value(&ProfilesFields::new(&caught));
        assert_eq!(document["levels"]["line"]["goodput_rps"], json!({ "with": 99.0, "without": 100.0 }));
        assert_eq!(document["levels"]["line"]["files"]["cpu"], "x.line.cpu.pb.gz");
        assert_eq!(document["top"][0]["function"], "m");
        assert_eq!(document["top"][1]["flat"]["delta"], 9.0);
        assert_eq!(document["cpu_per_request"]["before"], 10.0);
        assert_eq!(document["kinds"][1]["line"]["sum"], 7.0);
        assert_eq!(document["kinds"][0]["line"], serde_json::Value::Null);
    }
}
