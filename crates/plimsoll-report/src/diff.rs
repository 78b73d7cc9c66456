//! The comparison of two recordings of levels: a table of relative changes, and a sentence about
//! what two recordings can prove. A level is one measured load with its figures.

use crate::block::{Report, Tone};
use crate::chart::heading;
use crate::document::to_json_value;
use crate::format::{count, duration, rate, share};
use plimsoll_analysis::levels::{Level, LevelChange, LoadUnit, level_changes};
use serde::Serialize;
use serde_json::Value;

/// One of the two recordings of levels that are compared.
#[derive(Debug, Clone)]
pub struct DiffSide<'a> {
    /// The file of the recording.
    pub file: String,
    /// The name of the recording in tables and charts.
    pub name: &'a str,
    /// The measured levels: loads with their figures.
    pub levels: &'a [Level],
}

/// Returns a row for each load that both recordings measured: the change, the figures of A, and the
/// figures of B.
fn common_load_rows(sides: &[DiffSide; 2]) -> Vec<(LevelChange, Level, Level)> {
    let of = |side: &DiffSide, load: f64| side.levels.iter().find(|l| l.load == load).cloned();
    let row = |change: LevelChange| Some((change, of(&sides[0], change.load)?, of(&sides[1], change.load)?));
    level_changes(sides[0].levels, sides[1].levels).into_iter().filter_map(row).collect()
}

fn format_percent_change(change: Option<f64>) -> String {
    change.map_or("-".into(), |change| format!("{:+.1} %", change * 100.0))
}

/// Formats the number of loads that only one of the recordings contains; `None` if there is no such
/// load.
fn unmatched_loads_note(sides: &[DiffSide; 2], matched: usize) -> Option<String> {
    let only = [0, 1].map(|n| sides[n].levels.len() - matched);
    match only {
        [0, 0] => None,
        [a, b] => Some(format!(
            "{a} loads are only in {name_a} and {b} loads only in {name_b}; plimsoll does not compare these loads",
            name_a = sides[0].name,
            name_b = sides[1].name
        )),
    }
}

/// Renders the table of relative changes from the first recording to the second.
pub fn diff_report(over: LoadUnit, sides: &[DiffSide; 2]) -> Report {
    let mut report = Report::default();
    let rows = common_load_rows(sides);
    let [a, b] = sides;
    report.add_sentence(Tone::Warning, heading::comparison_caveat((a.name, a.levels), (b.name, b.levels)));
    if let Some(text) = unmatched_loads_note(sides, rows.len()) {
        report.add_sentence(Tone::Warning, text);
    }
    report.add_sentence(Tone::Answer, heading::throughput_diff_heading((a.name, a.levels), (b.name, b.levels)).title);
    let load = match over {
        LoadUnit::Concurrency => "concurrency",
        LoadUnit::Rate => "offered/s",
        LoadUnit::Sessions => "sessions/s",
    };
    let load_of = |change: &LevelChange| match over {
        LoadUnit::Concurrency => count(change.load.round() as u64),
        LoadUnit::Rate | LoadUnit::Sessions => rate(change.load),
    };
    let table = rows.iter().map(|(change, a, b)| {
        vec![
            load_of(change),
            rate(a.rps),
            rate(b.rps),
            format_percent_change(change.rps),
            duration(a.mean_ns),
            duration(b.mean_ns),
            format_percent_change(change.mean),
        ]
    });
    report.add_table(&[load, "A req/s", "B req/s", "change", "A mean", "B mean", "change"], table.collect());
    let success = rows.iter().map(|(change, a, b)| {
        let points = format!("{:+.2}", change.success_points * 100.0);
        vec![load_of(change), share(a.success_rate), share(b.success_rate), points]
    });
    report.add_table(&[load, "A success", "B success", "points"], success.collect());
    report.add_facts(vec![("A", a.file.clone()), ("B", b.file.clone())]);
    report
}

/// The document `plimsoll.diff/1` of two recordings of levels. Rates are in 1/s, times in ns, and
/// shares between 0 and 1. Relative changes are B divided by A, minus 1. A spread is the
/// coefficient of variation of the goodput; null if the file does not contain it.
#[derive(Serialize)]
struct LevelsDiffDocument<'a> {
    schema: &'static str,
    warnings: Vec<String>,
    a: RecordingFields<'a>,
    b: RecordingFields<'a>,
    over: &'static str,
    levels: Vec<LevelDiffFields>,
    charts: &'a [String],
}

#[derive(Serialize)]
struct RecordingFields<'a> {
    file: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
struct LevelDiffFields {
    load: f64,
    a: DiffLevelFields,
    b: DiffLevelFields,
    change: LevelChangeFields,
}

#[derive(Serialize)]
struct DiffLevelFields {
    throughput_rps: f64,
    mean_ns: f64,
    p99_ns: Option<f64>,
    success_rate: f64,
    spread: Option<f64>,
    spread_stretch_s: Option<f64>,
}

impl From<&Level> for DiffLevelFields {
    fn from(level: &Level) -> DiffLevelFields {
        DiffLevelFields {
            throughput_rps: level.rps,
            mean_ns: level.mean_ns,
            p99_ns: level.p99_ns,
            success_rate: level.success_rate,
            spread: level.spread.map(|spread| spread.variation),
            spread_stretch_s: level.spread.map(|spread| spread.period_ns as f64 / 1e9),
        }
    }
}

#[derive(Serialize)]
struct LevelChangeFields {
    throughput: Option<f64>,
    mean: Option<f64>,
    success_points: f64,
}

/// Renders the document `plimsoll.diff/1`. `charts` are the names of the chart files.
pub fn diff_document(over: LoadUnit, sides: &[DiffSide; 2], charts: &[String]) -> Value {
    let rows = common_load_rows(sides);
    let [a, b] = sides;
    let caveat = heading::comparison_caveat((a.name, a.levels), (b.name, b.levels));
    let level = |(change, a, b): &(LevelChange, Level, Level)| LevelDiffFields {
        load: change.load,
        a: DiffLevelFields::from(a),
        b: DiffLevelFields::from(b),
        change: LevelChangeFields { throughput: change.rps, mean: change.mean, success_points: change.success_points },
    };
    to_json_value(&LevelsDiffDocument {
        schema: "plimsoll.diff/1",
        warnings: [caveat].into_iter().chain(unmatched_loads_note(sides, rows.len())).collect(),
        a: RecordingFields { file: &a.file, name: a.name },
        b: RecordingFields { file: &b.file, name: b.name },
        over: match over {
            LoadUnit::Concurrency => "concurrency",
            LoadUnit::Rate => "rate",
            LoadUnit::Sessions => "sessions",
        },
        levels: rows.iter().map(level).collect(),
        charts,
    })
}
