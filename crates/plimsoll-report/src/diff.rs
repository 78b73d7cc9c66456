//! How two recordings look beside each other: a table of relative changes, and the sentence about what they prove.

use crate::block::{Report, Tone};
use crate::chart::heading;
use crate::format::{count, duration, rate, share};
use plimsoll_analysis::levels::{Level, LevelChange, LoadUnit, changes};
use serde_json::{Value, json};

/// One of the two recordings.
#[derive(Debug, Clone)]
pub struct DiffSide<'a> {
    /// The file it was read from.
    pub file: String,
    /// Its name in tables and charts.
    pub name: &'a str,
    /// What was measured.
    pub levels: &'a [Level],
}

/// (change, level of A, level of B) at each load that both hold.
fn rows(sides: &[DiffSide; 2]) -> Vec<(LevelChange, Level, Level)> {
    let of = |side: &DiffSide, load: f64| side.levels.iter().find(|l| l.load == load).cloned();
    let row = |change: LevelChange| Some((change, of(&sides[0], change.load)?, of(&sides[1], change.load)?));
    changes(sides[0].levels, sides[1].levels).into_iter().filter_map(row).collect()
}

fn percent(change: Option<f64>) -> String {
    change.map_or("-".into(), |change| format!("{:+.1} %", change * 100.0))
}

/// How many loads only one of the two holds, in words.
fn unmatched(sides: &[DiffSide; 2], matched: usize) -> Option<String> {
    let only = [0, 1].map(|n| sides[n].levels.len() - matched);
    match only {
        [0, 0] => None,
        [a, b] => Some(format!(
            "{a} of the loads are in {} alone and {b} in {} alone; they are not compared",
            sides[0].name, sides[1].name
        )),
    }
}

/// The table of relative changes of the second against the first.
pub fn diff_report(over: LoadUnit, sides: &[DiffSide; 2]) -> Report {
    let mut report = Report::default();
    let rows = rows(sides);
    let [a, b] = sides;
    report.text(Tone::Warning, heading::caveat((a.name, a.levels), (b.name, b.levels)));
    if let Some(text) = unmatched(sides, rows.len()) {
        report.text(Tone::Warning, text);
    }
    report.text(Tone::Answer, heading::throughput_diff((a.name, a.levels), (b.name, b.levels)).title);
    let load = match over {
        LoadUnit::Concurrency => "concurrency",
        LoadUnit::Rate => "offered/s",
    };
    let load_of = |change: &LevelChange| match over {
        LoadUnit::Concurrency => count(change.load.round() as u64),
        LoadUnit::Rate => rate(change.load),
    };
    let table = rows.iter().map(|(change, a, b)| {
        vec![
            load_of(change),
            rate(a.rps),
            rate(b.rps),
            percent(change.rps),
            duration(a.mean_ns),
            duration(b.mean_ns),
            percent(change.mean),
        ]
    });
    report.table(&[load, "A req/s", "B req/s", "change", "A mean", "B mean", "change"], table.collect());
    let success = rows.iter().map(|(change, a, b)| {
        let points = format!("{:+.2}", change.success_points * 100.0);
        vec![load_of(change), share(a.success_rate), share(b.success_rate), points]
    });
    report.table(&[load, "A success", "B success", "points"], success.collect());
    report.facts(vec![("A", a.file.clone()), ("B", b.file.clone())]);
    report
}

/// The same as a document of the schema `plimsoll.diff/1`. Rates in 1/s, times in ns, shares 0..=1, changes as B over A
/// less 1; a spread is a coefficient of variation, null where a file does not tell it.
pub fn diff_document(over: LoadUnit, sides: &[DiffSide; 2], charts: &[String]) -> Value {
    let level = |level: &Level| {
        json!({
            "throughput_rps": level.rps,
            "mean_ns": level.mean_ns,
            "p99_ns": level.p99_ns,
            "success_rate": level.success_rate,
            "spread": level.spread.map(|s| s.variation),
            "spread_stretch_s": level.spread.map(|s| s.stretch_ns as f64 / 1e9),
        })
    };
    let rows = rows(sides);
    let levels: Vec<Value> = rows
        .iter()
        .map(|(change, a, b)| {
            json!({
                "load": change.load,
                "a": level(a),
                "b": level(b),
                "change": {
                    "throughput": change.rps,
                    "mean": change.mean,
                    "success_points": change.success_points,
                },
            })
        })
        .collect();
    let [a, b] = sides;
    let warnings: Vec<String> = [heading::caveat((a.name, a.levels), (b.name, b.levels))]
        .into_iter()
        .chain(unmatched(sides, rows.len()))
        .collect();
    json!({
        "schema": "plimsoll.diff/1",
        "warnings": warnings,
        "a": { "file": a.file, "name": a.name },
        "b": { "file": b.file, "name": b.name },
        "over": match over { LoadUnit::Concurrency => "concurrency", LoadUnit::Rate => "rate" },
        "levels": levels,
        "charts": charts,
    })
}
