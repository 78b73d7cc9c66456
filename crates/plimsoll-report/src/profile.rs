//! Renders profiles as text and JSON: the table of functions, and the table of differences between
//! two profiles.

use crate::block::{Report, Tone};
use crate::document::to_json_value;
use crate::format;
use crate::remedy::sentence_text;
use plimsoll_analysis::profile::{
    CostChange, CostDivisor, DiffRow, FALSE_DISCOVERY_RATE_MAX, FunctionCostOrder, FunctionCostRow, FunctionCostTable,
    ProfileDiff, percent,
};
use plimsoll_analysis::{DoubtKind, Doubts};
use plimsoll_model::profile::{Function, Profile, ValueType};
use serde::Serialize;
use serde_json::Value;

/// The maximum length of a function's name in tables, in characters. The middle of a longer name is
/// left out.
const NAME_CHARACTERS_MAX: usize = 72;

/// Formats a value whose unit is a unit name of pprof. Times are scaled to ns, us, ms or s, and
/// bytes to powers of 1024. Values of other units are formatted as counts.
pub fn format_with_unit(value: f64, unit: &str) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    let size = value.abs();
    match unit {
        "nanoseconds" => format!("{sign}{}", format::duration(size)),
        "bytes" => format!("{sign}{}", binary_bytes(size)),
        "percent" => format!("{value:.2} %"),
        "count" => format!("{sign}{}", format_amount(size)),
        _ => format!("{sign}{} {unit}", format_amount(size)),
    }
}

fn format_amount(value: f64) -> String {
    if value.fract() == 0.0 { format::count(value as u64) } else { format::rate(value) }
}

fn binary_bytes(value: f64) -> String {
    let (mut scaled, mut unit) = (value, "B");
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if scaled < 1023.5 {
            break;
        }
        (scaled, unit) = (scaled / 1024.0, next);
    }
    if scaled.fract() == 0.0 { format!("{scaled:.0} {unit}") } else { format!("{scaled:.2} {unit}") }
}

/// Formats a function's name for a terminal, on one line. Control characters are replaced, and the
/// middle of a long name is left out.
pub(crate) fn printable_function_name(name: &str) -> String {
    let characters: Vec<char> = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if characters.len() <= NAME_CHARACTERS_MAX {
        return characters.into_iter().collect();
    }
    let half = (NAME_CHARACTERS_MAX - 1) / 2;
    let (start, end) = (&characters[..half], &characters[characters.len() - half..]);
    start.iter().chain(&['\u{2026}']).chain(end).collect()
}

/// Formats the kind of samples, their total, and the duration of the profile.
pub fn profile_facts(profile: &Profile, column: &ValueType, total: i64) -> String {
    let mut text = format!("{}: {} in all", column.kind, format_with_unit(total as f64, &column.unit));
    if profile.duration_ns > 0 {
        text.push_str(&format!(", over {}", format::duration(profile.duration_ns as f64)));
    }
    text
}

/// Renders the table of functions with at most `limit` rows. In some profiles, the root frame of
/// each stack names a group of stacks, such as a process. `group` is the word for such a group, and
/// adds a separate table with a row for each group.
pub fn function_table_report(
    profile: &Profile,
    column: &ValueType,
    top: &FunctionCostTable,
    limit: usize,
    group: Option<&str>,
) -> Report {
    let mut report = Report::default();
    report.add_sentence(Tone::Plain, profile_facts(profile, column, top.total));
    let shown = &top.rows[..top.rows.len().min(limit)];
    if top.total == 0 {
        report.add_sentence(
            Tone::Warning,
            "the profile contains no samples: take the profile while the server is under load",
        );
        return report;
    }
    if top.selected_total != top.total {
        let (kept, share) =
            (format_with_unit(top.selected_total as f64, &column.unit), percent(top.selected_total, top.total));
        report.add_sentence(Tone::Plain, format!("selected: {kept}, {share:.2} % of it"));
    }
    let share = |value| format!("{:.2} %", percent(value, top.total));
    if let Some(group) = group {
        let start = format!("{group}: ");
        let name_of = |row: &&FunctionCostRow| profile.functions()[row.function as usize].name.strip_prefix(&start);
        let groups = top.rows.iter().filter_map(|row| {
            Some(vec![
                printable_function_name(name_of(&row)?),
                format_with_unit(row.cum as f64, &column.unit),
                share(row.cum),
            ])
        });
        report.add_table(&[group, "cum", ""], groups.collect());
    }
    let rows = shown
        .iter()
        .map(|row| {
            vec![
                printable_function_name(&profile.functions()[row.function as usize].name),
                format_with_unit(row.flat as f64, &column.unit),
                share(row.flat),
                format_with_unit(row.cum as f64, &column.unit),
                share(row.cum),
            ]
        })
        .collect();
    if limit > 0 {
        report.add_table(&["function", "flat", "", "cum", ""], rows);
    }
    if shown.len() < top.rows.len() {
        report.add_sentence(Tone::Plain, format!("{} of {} functions (--top N)", shown.len(), top.rows.len()));
    }
    report
}

/// The JSON document `plimsoll.profile/1`: the cost of each function in a profile.
#[derive(Serialize)]
struct ProfileDocument<'a> {
    schema: &'static str,
    sample_type: &'a str,
    unit: &'a str,
    total: i64,
    top: Vec<CostFields<'a>>,
}

/// The cost of one function. `flat` is the cost in the function itself, `cum` includes its callees.
#[derive(Serialize)]
struct CostFields<'a> {
    function: &'a str,
    flat: i64,
    flat_percent: f64,
    cum: i64,
    cum_percent: f64,
}

/// Renders the JSON document `plimsoll.profile/1` of a profile.
pub fn profile_document(functions: &[Function], column: &ValueType, top: &FunctionCostTable, limit: usize) -> Value {
    let row = |row: &FunctionCostRow| CostFields {
        function: &functions[row.function as usize].name,
        flat: row.flat,
        flat_percent: percent(row.flat, top.total),
        cum: row.cum,
        cum_percent: percent(row.cum, top.total),
    };
    to_json_value(&ProfileDocument {
        schema: "plimsoll.profile/1",
        sample_type: &column.kind,
        unit: &column.unit,
        total: top.total,
        top: top.rows.iter().take(limit).map(row).collect(),
    })
}

/// Returns the unit of the costs in a comparison of profiles. The second returned value is the
/// quantity that the costs were divided by, such as `request`; `None` if the costs are shares.
pub fn diff_cost_unit(comparison: &ProfileDiff) -> (&str, Option<&'static str>) {
    match comparison.basis {
        CostDivisor::Requests { .. } => (&comparison.sample_type.unit, Some("request")),
        CostDivisor::Shares => ("percent", None),
    }
}

/// Formats a change of cost as four table cells: before, after, difference, and the difference in
/// standard deviations.
pub(crate) fn change_cells(change: &CostChange, unit: &str) -> [String; 4] {
    let z = change.z.map_or("-".into(), |z| format!("{z:.1}"));
    [
        format_with_unit(change.before, unit),
        format_with_unit(change.after, unit),
        format_with_unit(change.delta(), unit),
        z,
    ]
}

/// Renders the table of functions whose cost changed significantly, with at most `limit` rows. The
/// report states how many functions were tested, but lists no function whose cost change may be due
/// to chance.
pub fn diff_report(comparison: &ProfileDiff, sort: FunctionCostOrder, limit: usize) -> Report {
    let mut report = Report::default();
    let (unit, per) = diff_cost_unit(comparison);
    let kind = &comparison.sample_type.kind;
    if per.is_none() {
        report.add_sentence(
            Tone::Warning,
            "without --requests-a and --requests-b only shares are compared, and a change of the total cost \
             stays hidden",
        );
    }
    let (changed, tested): (fn(&DiffRow) -> &CostChange, _) = match sort {
        FunctionCostOrder::Flat => (|row| &row.flat, comparison.tested_flat),
        FunctionCostOrder::Cum => (|row| &row.cum, comparison.tested_cum),
    };
    let per_text = per.map_or(String::new(), |per| format!(" a {per}"));
    if per.is_some() {
        let total = &comparison.total;
        let [before, after, delta, z] = change_cells(total, unit);
        let sign = if total.delta() > 0.0 { "+" } else { "" };
        let significance = if total.z.is_some() { format!(", {z} standard deviations") } else { String::new() };
        let text = format!("{kind}{per_text}: {before} before, {after} after ({sign}{delta}{significance})");
        report.add_sentence(Tone::Answer, text);
    }
    let findings: Vec<&DiffRow> = comparison.rows.iter().filter(|row| changed(row).is_finding()).collect();
    let counted_functions = match sort {
        FunctionCostOrder::Flat => "each function itself",
        FunctionCostOrder::Cum => "each function with its callees",
    };
    if tested == 0 {
        report.add_sentence(
            Tone::Warning,
            "too few samples to tell differences from chance: profile for longer, under load",
        );
    } else if findings.is_empty() {
        report.add_sentence(Tone::Plain, format!("none of the {tested} tested functions changed by more than chance"));
    } else {
        let what = format!(
            "{changed} of {tested} functions changed by more than chance (false discovery rate {FALSE_DISCOVERY_RATE_MAX}); the table \
             shows {kind}{per_text} of {counted_functions}:",
            changed = findings.len()
        );
        report.add_sentence(Tone::Plain, what);
        let row = |row: &&DiffRow| {
            let mut cells = vec![printable_function_name(&row.function)];
            cells.extend(change_cells(changed(row), unit));
            cells
        };
        let rows = findings.iter().take(limit).map(row).collect();
        report.add_table(&["function", "before", "after", "change", "z"], rows);
    }
    report
}

/// One cost in two profiles, before and after, with its change. `z` is the change in standard
/// deviations, and `q` is the false discovery rate.
#[derive(Serialize)]
pub(crate) struct CostChangeFields {
    before: f64,
    after: f64,
    delta: f64,
    z: Option<f64>,
    q: Option<f64>,
    finding: bool,
}

impl From<&CostChange> for CostChangeFields {
    fn from(change: &CostChange) -> CostChangeFields {
        let CostChange { before, after, z, q, .. } = *change;
        CostChangeFields { before, after, delta: change.delta(), z, q, finding: change.is_finding() }
    }
}

/// The cost of one function in two profiles, before and after. `flat` is the cost in the function
/// itself, `cum` includes its callees.
#[derive(Serialize)]
pub(crate) struct FunctionChange<'a> {
    function: &'a str,
    flat: CostChangeFields,
    cum: CostChangeFields,
}

impl<'a> From<&'a DiffRow> for FunctionChange<'a> {
    fn from(row: &'a DiffRow) -> FunctionChange<'a> {
        FunctionChange {
            function: &row.function,
            flat: CostChangeFields::from(&row.flat),
            cum: CostChangeFields::from(&row.cum),
        }
    }
}

/// The JSON document `plimsoll.profile-diff/1`: the cost of each function in two profiles.
#[derive(Serialize)]
pub(crate) struct ProfileDiffFields<'a> {
    schema: &'static str,
    sample_type: &'a str,
    unit: &'a str,
    per: Option<&'static str>,
    requests: Option<RequestDivisorFields>,
    total: TotalFields,
    tested_flat: usize,
    tested_cum: usize,
    top: Vec<FunctionChange<'a>>,
}

/// The numbers of requests by which the costs of the two profiles (before and after) were divided.
#[derive(Serialize)]
struct RequestDivisorFields {
    before: f64,
    after: f64,
}

/// The total cost of all functions in the profile before and in the profile after.
#[derive(Serialize)]
struct TotalFields {
    before: f64,
    after: f64,
    delta: f64,
    z: Option<f64>,
}

impl<'a> ProfileDiffFields<'a> {
    /// Creates the fields from a comparison of two profiles, with at most `limit` functions.
    pub(crate) fn new(comparison: &'a ProfileDiff, limit: usize) -> ProfileDiffFields<'a> {
        let (unit, per) = diff_cost_unit(comparison);
        let requests = match comparison.basis {
            CostDivisor::Requests { before, after } => Some(RequestDivisorFields { before, after }),
            CostDivisor::Shares => None,
        };
        let total = &comparison.total;
        ProfileDiffFields {
            schema: "plimsoll.profile-diff/1",
            sample_type: &comparison.sample_type.kind,
            unit,
            per,
            requests,
            total: TotalFields { before: total.before, after: total.after, delta: total.delta(), z: total.z },
            tested_flat: comparison.tested_flat,
            tested_cum: comparison.tested_cum,
            top: comparison.rows.iter().take(limit).map(FunctionChange::from).collect(),
        }
    }
}

/// Renders the JSON document `plimsoll.profile-diff/1`, which compares two profiles.
pub fn diff_document(comparison: &ProfileDiff, limit: usize) -> Value {
    to_json_value(&ProfileDiffFields::new(comparison, limit))
}

/// Renders warnings about profiles: first about missing profiles, then other evidence against the
/// figures.
pub(crate) fn profile_warnings(doubts: &Doubts) -> Report {
    let mut report = Report::default();
    let ProfileWarningFields { missing, warnings } = ProfileWarningFields::from(doubts);
    for text in missing.into_iter().chain(warnings) {
        report.add_sentence(Tone::Warning, text);
    }
    report
}

/// The warnings about profiles as fields of a JSON document: missing profiles, and other evidence
/// against the figures.
#[derive(Serialize)]
pub(crate) struct ProfileWarningFields {
    missing: Vec<String>,
    warnings: Vec<String>,
}

impl From<&Doubts> for ProfileWarningFields {
    fn from(doubts: &Doubts) -> ProfileWarningFields {
        let texts =
            |missing| doubts.texts(move |kind| (kind == DoubtKind::Unmeasured) == missing).map(sentence_text).collect();
        ProfileWarningFields { missing: texts(true), warnings: texts(false) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;
    use plimsoll_analysis::profile::{ProfileView, diff, read, sum_by_function};
    use serde_json::json;

    #[test]
    fn profile_amounts_have_units() {
        for (value, unit, expect) in [
            (1_250_000.0, "nanoseconds", "1.25 ms"),
            (-1_250_000.0, "nanoseconds", "-1.25 ms"),
            (1536.0, "bytes", "1.50 KiB"),
            (512.0, "bytes", "512 B"),
            (1e6, "count", "1 000 000"),
            (2.5, "count", "2.50"),
            (12.0, "pages", "12 pages"),
            (-3.456, "percent", "-3.46 %"),
        ] {
            assert_eq!(format_with_unit(value, unit), expect);
        }
    }

    #[test]
    fn the_profile_table_names_functions_first() {
        let long = "x".repeat(100);
        let profile = read(format!("main;a\u{1b}[31m 30\nmain;{long} 10\n").as_bytes()).expect("folded");
        let column = &profile.sample_types[0];
        let sums = sum_by_function(&profile, &ProfileView::all_samples(0), FunctionCostOrder::Cum);
        let shown = text::render(&function_table_report(&profile, column, &sums, 2, None), false);
        assert!(shown.starts_with("samples: 40 in all\n"), "{shown}");
        assert!(shown.contains("main         0   0.00 %   40  100.00 %"), "{shown}");
        assert!(shown.contains("a\u{fffd}[31m") && shown.contains("2 of 3 functions"), "{shown}");
        assert_eq!(printable_function_name(&long).chars().count(), NAME_CHARACTERS_MAX - 1);
        let document = profile_document(profile.functions(), column, &sums, 1);
        let expect = json!({
            "schema": "plimsoll.profile/1", "sample_type": "samples", "unit": "count", "total": 40,
            "top": [{"function": "main", "flat": 0, "flat_percent": 0.0, "cum": 40, "cum_percent": 100.0}],
        });
        assert_eq!(document, expect);
    }

    #[test]
    fn missing_measurements_are_reported_first() {
        let mut doubts = Doubts::default();
        for kind in [DoubtKind::Server, DoubtKind::Unmeasured, DoubtKind::Generator] {
            doubts.add(kind, format!("{kind:?}"));
        }
        let shown = text::render(&profile_warnings(&doubts), false);
        assert_eq!(shown, "warning: Unmeasured\nwarning: Server\nwarning: Generator\n");
        let expect = json!({ "missing": ["Unmeasured"], "warnings": ["Server", "Generator"] });
        assert_eq!(to_json_value(&ProfileWarningFields::from(&doubts)), expect);
    }

    #[test]
    fn only_significant_changes_are_shown() {
        let (a, b) = (read(b"m;json 900\nm;sql 100\n"), read(b"m;json 1800\nm;sql 110\n"));
        let (a, b, view) = (a.expect("folded"), b.expect("folded"), ProfileView::all_samples(0));
        let of = |basis| diff((&a, &view), (&b, &view), basis, FunctionCostOrder::Flat).expect("comparable");
        let comparison = of(CostDivisor::Requests { before: 100.0, after: 100.0 });
        let shown = text::render(&diff_report(&comparison, FunctionCostOrder::Flat, 20), false);
        assert!(shown.contains("samples a request: 10 before, 19.1 after (+9.10, 16.9 standard"), "{shown}");
        assert!(
            shown.contains("1 of 2 functions") && shown.contains("json           9     18       9  17.3"),
            "{shown}"
        );
        assert!(!shown.contains("sql"), "{shown}");
        let document = diff_document(&comparison, 9);
        assert_eq!(document["top"][0]["flat"]["finding"], true);
        assert_eq!(document["top"][2]["flat"]["finding"], false);
        let shares = of(CostDivisor::Shares);
        assert!(
            text::render(&diff_report(&shares, FunctionCostOrder::Flat, 20), false)
                .starts_with("warning: without --requests-a")
        );
    }
}
