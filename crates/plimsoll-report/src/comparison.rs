//! Compares two recordings of the same kind ([`RecordedPair`]): measured levels (loads with their
//! figures), or searches for the load line. This file creates the table, charts, JSON document and
//! page of two compared recordings.
//!
//! Not here: the texts for each kind of recording (`diff`, `searches`), and reading files.

use crate::block::Report;
use crate::chart::{NamedLevels, Theme, heading, success_diff_chart, throughput_diff_chart};
use crate::diff::{DiffSide, diff_document, diff_report};
use crate::searches::{
    RecordedSearch, SearchSide, searches_chart, searches_document, searches_heading, searches_report,
};
use plimsoll_analysis::levels::{Level, LoadUnit};
use serde_json::Value;

/// The content of a run file that can be compared with another run file.
#[derive(Debug, Clone)]
pub enum RecordedInput {
    /// Measured levels, and the unit of their loads. A level is one load with its figures.
    Levels(LoadUnit, Vec<Level>),
    /// A search for the load line with its result.
    Search(Box<RecordedSearch>),
}

impl RecordedInput {
    /// Returns in words what kind of content the file has.
    pub fn kind(&self) -> &'static str {
        match self {
            RecordedInput::Levels(LoadUnit::Concurrency, _) => "loads of concurrent users",
            RecordedInput::Levels(LoadUnit::Rate, _) => "loads of requests a second",
            RecordedInput::Levels(LoadUnit::Sessions, _) => "loads of sessions a second",
            RecordedInput::Search(_) => "a search for the load line",
        }
    }
}

/// Two recordings of the same kind, ready for comparison.
#[derive(Debug, Clone)]
pub enum RecordedPair<'a> {
    /// Two recordings of measured levels, and the common unit of their loads.
    Levels(LoadUnit, [DiffSide<'a>; 2]),
    /// Two searches for the load line, with their results.
    Searches([SearchSide<'a>; 2]),
}

impl<'a> RecordedPair<'a> {
    /// Combines the recordings `a` and `b`, each given with its file and its name. Returns `None`
    /// if the recordings are of different kinds.
    pub fn new(
        (file_a, name_a, a): (String, &'a str, &'a RecordedInput),
        (file_b, name_b, b): (String, &'a str, &'a RecordedInput),
    ) -> Option<RecordedPair<'a>> {
        match (a, b) {
            (RecordedInput::Search(a), RecordedInput::Search(b)) => {
                Some(RecordedPair::Searches([a.comparison_side(&file_a, name_a), b.comparison_side(&file_b, name_b)]))
            }
            (RecordedInput::Levels(over, a), RecordedInput::Levels(other, b)) if over == other => {
                let a = DiffSide { file: file_a, name: name_a, levels: a };
                Some(RecordedPair::Levels(*over, [a, DiffSide { file: file_b, name: name_b, levels: b }]))
            }
            _ => None,
        }
    }

    /// Draws the charts of the two recordings as SVG. Returns each chart with a suffix for the name
    /// of the chart's file.
    pub fn draw_charts(&self) -> Vec<(&'static str, String)> {
        match self {
            RecordedPair::Searches(sides) => {
                vec![("line.diff", searches_chart(sides, &searches_heading(sides), Theme::Light))]
            }
            RecordedPair::Levels(over, [a, b]) => {
                let (first, second) = ((a.name, a.levels), (b.name, b.levels));
                let recorded = [first, second].map(|(name, levels)| NamedLevels { name, levels });
                let throughput = heading::throughput_diff_heading(first, second);
                let success = heading::success_diff_heading(first, second);
                vec![
                    ("qps.ttlb.diff", throughput_diff_chart(&throughput, *over, recorded, Theme::Light)),
                    ("success_rate.diff", success_diff_chart(&success, *over, recorded, Theme::Light)),
                ]
            }
        }
    }

    /// Renders the table of the comparison, and a sentence about what the comparison can prove.
    pub fn table_report(&self) -> Report {
        match self {
            RecordedPair::Searches(sides) => searches_report(sides),
            RecordedPair::Levels(over, sides) => diff_report(*over, sides),
        }
    }

    /// Renders the report for an HTML page. For a pair of searches, the report includes their
    /// chart.
    pub fn page_report(&self) -> Report {
        let mut report = self.table_report();
        if let RecordedPair::Searches(sides) = self {
            // The title of the chart is omitted, because the heading of the page already shows it.
            let heading = searches_heading(sides).without_title();
            let mut charts = Report::default();
            charts.add_responsive_chart(|theme| searches_chart(sides, &heading, theme), &[], Vec::new());
            report.insert_after_answer(charts);
        }
        report
    }

    /// Renders the JSON document. `charts` are the names of the chart files.
    pub fn comparison_document(&self, charts: &[String]) -> Value {
        match self {
            RecordedPair::Searches(sides) => searches_document(sides, charts),
            RecordedPair::Levels(over, sides) => diff_document(*over, sides, charts),
        }
    }
}
