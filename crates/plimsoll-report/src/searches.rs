//! Renders the comparison of two separate searches for the load line: load lines, peaks, knees, and
//! p99 and CPU at the load line. The comparison has no verdict, because two searches do not show
//! how much results vary by chance. The command `plimsoll prove` measures two servers alternately
//! and gives a verdict.

use crate::block::{Report, Tone};
use crate::chart::{self, Heading, NamedSearch, Theme};
use crate::document::to_json_value;
use crate::format::{count, duration, rate, signed_percent};
use crate::page_charts::common_rate_unit;
use crate::remedy::sentence_text;
use plimsoll_analysis::find::LoadLine;
use plimsoll_analysis::finding::SearchFinding;
use plimsoll_analysis::{Finding, Findings, Verdict};
use plimsoll_model::LoadPurpose;
use plimsoll_model::shell;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// One of the two searches that are compared.
#[derive(Debug, Clone)]
pub struct SearchSide<'a> {
    /// The run file that contains the search.
    pub file: String,
    /// The name of the search in tables and charts.
    pub name: &'a str,
    /// The redacted target of the search: a URL, or the origin of a traffic file.
    pub url: String,
    /// The target of the search, as a command line names it.
    pub target: SearchTarget,
    /// The result of the search.
    pub findings: &'a Findings,
    /// The CPU time of the server per request at the load line, in us; `None` if it was not
    /// observed.
    pub cpu_us: Option<f64>,
}

/// A search for the load line that was read from a run file, ready for a comparison.
#[derive(Debug, Clone)]
pub struct RecordedSearch {
    /// The redacted target of the search: a URL, or the origin of a traffic file.
    pub url: String,
    /// The target of the search, as a command line names it.
    pub target: SearchTarget,
    /// The load line and the other results of the search.
    pub findings: Findings,
    /// The CPU time of the server per request at the load line, in us; `None` if it was not
    /// observed.
    pub cpu_us: Option<f64>,
}

impl RecordedSearch {
    /// Returns the search that a finding contains; `None` if the finding is not from a search or an
    /// explanation.
    pub fn from_finding(finding: &Finding) -> Option<RecordedSearch> {
        match finding {
            Finding::Find(found) => Some(RecordedSearch::from_search(found)),
            Finding::Explain(found) => Some(RecordedSearch::from_search(&found.search)),
            Finding::Run(_) | Finding::Sweep(_) | Finding::Overload(_) | Finding::Prove(_) | Finding::Ladder(_) => None,
        }
    }

    fn from_search(finding: &SearchFinding) -> RecordedSearch {
        let traffic = &finding.settings.base.traffic;
        let target = match traffic.target_label() == traffic.url() {
            true => SearchTarget::Url(traffic.url()),
            false => SearchTarget::File(traffic.origin.to_string()),
        };
        RecordedSearch {
            url: traffic.target_label(),
            target,
            findings: finding.findings.clone(),
            cpu_us: finding.cpu_us_at_load_line(),
        }
    }

    /// Returns this search as one side of a comparison. `file` is the run file of the search, and
    /// `name` is its name in tables and charts.
    pub fn comparison_side<'a>(&'a self, file: &str, name: &'a str) -> SearchSide<'a> {
        SearchSide {
            file: file.to_owned(),
            name,
            url: self.url.clone(),
            target: self.target.clone(),
            findings: &self.findings,
            cpu_us: self.cpu_us,
        }
    }
}

/// The target of a search, as a command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchTarget {
    /// The target is one URL.
    Url(String),
    /// The target is a traffic file; the text is the origin (scheme, host and port) of its
    /// requests.
    File(String),
}

impl SearchSide<'_> {
    fn load_line_rate(&self) -> Option<f64> {
        Some(self.findings.load_line.rps).filter(|line| *line > 0.0)
    }

    /// Returns the p99 response time in ns at the load line; `None` if it was not measured. The p99
    /// comes from the longest trial at the load line's rate that met the SLO.
    fn p99_at_line_ns(&self) -> Option<f64> {
        let line = self.load_line_rate()?;
        let held = self.findings.trials.iter().filter(|trial| {
            trial.verdict == Verdict::Pass
                && !matches!(trial.purpose, LoadPurpose::Settle | LoadPurpose::Profile)
                && trial.offered_rps().is_some_and(|rate| (rate / line - 1.0).abs() < 1e-6)
        });
        held.max_by_key(|trial| trial.duration_ns).map(|trial| trial.p99_ns as f64)
    }
}

/// A figure that is compared: its name in text, its key in JSON, and its values in search A and
/// search B. `text` formats a value.
struct ComparedFigure {
    name: String,
    key: &'static str,
    values: [Option<f64>; 2],
    text: fn(f64) -> String,
}

impl ComparedFigure {
    /// Returns the relative change from search A to search B; `None` if one of the values is
    /// missing.
    fn relative_change(&self) -> Option<f64> {
        match self.values {
            [Some(a), Some(b)] if a > 0.0 => Some(b / a - 1.0),
            _ => None,
        }
    }
}

/// Returns the unit of the rates in the two searches: the common unit, or both units if they
/// differ.
fn shared_rate_unit(sides: &[SearchSide; 2]) -> &'static str {
    common_rate_unit(sides[0].findings, sides[1].findings)
}

fn compared_figures(sides: &[SearchSide; 2]) -> Vec<ComparedFigure> {
    let of = |value: &dyn Fn(&SearchSide) -> Option<f64>| [value(&sides[0]), value(&sides[1])];
    let users: fn(f64) -> String = |users| count(users as u64);
    let counted = shared_rate_unit(sides);
    vec![
        ComparedFigure {
            name: format!("load line, {counted}/s"),
            key: "line_rps",
            values: of(&|side| side.load_line_rate()),
            text: rate,
        },
        ComparedFigure {
            name: format!("load line's upper end, {counted}/s"),
            key: "line_upper_rps",
            values: of(&|side| side.findings.load_line.upper),
            text: rate,
        },
        ComparedFigure {
            name: "p99 at the load line".to_owned(),
            key: "p99_at_line_ns",
            values: of(&|side| side.p99_at_line_ns()),
            text: duration,
        },
        ComparedFigure {
            name: "CPU per request at the load line".to_owned(),
            key: "cpu_us_per_request",
            values: of(&|side| side.cpu_us),
            text: |us| duration(us * 1e3),
        },
        ComparedFigure {
            name: format!("peak, {counted}/s"),
            key: "peak_rps",
            values: of(&|side| side.findings.peak.as_ref().map(|peak| peak.rps)),
            text: rate,
        },
        ComparedFigure {
            name: "users at the peak goodput".to_owned(),
            key: "peak_concurrency",
            values: of(&|side| side.findings.peak.as_ref().map(|peak| peak.users as f64)),
            text: users,
        },
        ComparedFigure {
            name: "users at the knee (95 % of peak)".to_owned(),
            key: "knee_concurrency",
            values: of(&|side| side.findings.knee.as_ref().map(|knee| knee.users as f64)),
            text: users,
        },
    ]
}

/// Returns the command line of the controlled comparison (`plimsoll prove`) that would give a
/// verdict.
fn prove_command(sides: &[SearchSide; 2]) -> String {
    let [a, b] = sides;
    let of = |side: &SearchSide| match &side.target {
        SearchTarget::Url(url) => (String::new(), shell::quote_if_needed(url)),
        SearchTarget::File(origin) => ("-f FILE ".to_owned(), shell::quote_if_needed(origin)),
    };
    let ((file_a, target_a), (file_b, target_b)) = (of(a), of(b));
    let file = if file_a.is_empty() { file_b } else { file_a };
    match target_a == target_b {
        // Both servers have the same address, so `prove` must start each of them by a command, one
        // at a time.
        true => format!("plimsoll prove {file}--a 'COMMAND_A' --b 'COMMAND_B' {target_a}"),
        false => format!("plimsoll prove {file}{target_a} {target_b}"),
    }
}

/// Returns the warnings about the comparison of two searches. The first warning is that two
/// searches cannot prove a difference. Warnings about different SLOs and the doubts about each
/// search follow.
fn comparison_warnings(sides: &[SearchSide; 2]) -> Vec<String> {
    let [a, b] = sides;
    let mut warnings = vec![format!(
        "Two searches at different times cannot prove a difference, because their chance variation is not known. Use \
         prove: {command}",
        command = prove_command(sides)
    )];
    if a.findings.slo != b.findings.slo {
        warnings.push(format!(
            "the SLOs differ, so the load lines are not comparable: {slo_a} in {name_a}, {slo_b} in {name_b}",
            slo_a = a.findings.slo,
            name_a = a.name,
            slo_b = b.findings.slo,
            name_b = b.name
        ));
    }
    for side in sides {
        let of_side =
            side.findings.doubts.banner_texts().map(|warning| format!("{}: {}", side.name, sentence_text(warning)));
        warnings.extend(of_side);
    }
    warnings
}

/// Formats the load lines of both searches as one sentence.
fn load_line_sentence(sides: &[SearchSide; 2]) -> String {
    let [a, b] = sides;
    let bracket = |side: &SearchSide| match side.findings.load_line {
        LoadLine { lower, upper: Some(upper), .. } => format!("{} to {}", rate(lower), rate(upper)),
        LoadLine { lower, upper: None, .. } => format!("at least {}", rate(lower)),
    };
    match (a.load_line_rate(), b.load_line_rate()) {
        (Some(line_a), Some(line_b)) => {
            let apart = |upper: Option<f64>, lower: f64| upper.is_some_and(|upper| upper <= lower);
            let (line_of_a, line_of_b) = (a.findings.load_line, b.findings.load_line);
            let overlap = !apart(line_of_a.upper, line_of_b.lower) && !apart(line_of_b.upper, line_of_a.lower);
            format!(
                "load line of {name_a}: {interval_a} {rate_unit}/s; of {name_b}: {interval_b} ({change}){overlap}",
                name_a = a.name,
                interval_a = bracket(a),
                rate_unit = shared_rate_unit(sides),
                name_b = b.name,
                interval_b = bracket(b),
                change = signed_percent(line_b / line_a - 1.0),
                overlap = if overlap { "; the intervals overlap" } else { "" }
            )
        }
        (None, None) => "neither search found a load line".into(),
        (None, _) => format!("{} found no load line; {}: {} {}/s", a.name, b.name, bracket(b), b.findings.rate_unit),
        (_, None) => format!("{} found no load line; {}: {} {}/s", b.name, a.name, bracket(a), a.findings.rate_unit),
    }
}

/// Renders the warnings, the answer and the table of a comparison of two searches.
pub fn searches_report(sides: &[SearchSide; 2]) -> Report {
    let mut report = Report::default();
    for warning in comparison_warnings(sides) {
        report.add_sentence(Tone::Warning, warning);
    }
    report.add_sentence(Tone::Answer, load_line_sentence(sides));
    let cell = |figure: &ComparedFigure, side: usize| figure.values[side].map_or_else(|| "-".to_owned(), figure.text);
    let rows = compared_figures(sides).into_iter().map(|figure| {
        let changed = figure.relative_change().map_or_else(|| "-".to_owned(), signed_percent);
        vec![figure.name.clone(), cell(&figure, 0), cell(&figure, 1), changed]
    });
    report.add_table(&["", "A", "B", "change"], rows.collect());
    let side = |side: &SearchSide| format!("{}, {}", side.file, side.url);
    report.add_facts(vec![("A", side(&sides[0])), ("B", side(&sides[1]))]);
    report
}

/// Creates the heading of the chart that shows both searches.
pub fn searches_heading(sides: &[SearchSide; 2]) -> Heading {
    Heading {
        title: load_line_sentence(sides),
        subtitle: "Two separate searches cannot show how much of their difference is due to chance.".into(),
    }
}

/// Draws both searches in one chart as SVG.
pub fn searches_chart(sides: &[SearchSide; 2], heading: &Heading, theme: Theme) -> String {
    let searched = [0, 1].map(|n| NamedSearch { name: sides[n].name, findings: sides[n].findings });
    chart::search_chart(heading, &searched, None, theme)
}

/// The document `plimsoll.diff/1` of two searches.
#[derive(Serialize)]
struct SearchesDiffDocument<'a> {
    schema: &'static str,
    warnings: Vec<String>,
    a: SearchFields<'a>,
    b: SearchFields<'a>,
    over: &'static str,
    levels: [u8; 0],
    figures: ComparedFigures,
    prove: String,
    charts: &'a [String],
}

#[derive(Serialize)]
struct SearchFields<'a> {
    file: &'a str,
    name: &'a str,
    url: &'a str,
    slo: String,
}

impl<'a> From<&'a SearchSide<'a>> for SearchFields<'a> {
    fn from(side: &'a SearchSide<'a>) -> SearchFields<'a> {
        SearchFields { file: &side.file, name: side.name, url: &side.url, slo: side.findings.slo.to_string() }
    }
}

/// The compared figures, serialised as a JSON map by their keys.
struct ComparedFigures(Vec<ComparedFigure>);

impl Serialize for ComparedFigures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = |figure: &ComparedFigure| {
            let [a, b] = figure.values;
            (figure.key, ComparedFigureFields { a, b, change: figure.relative_change() })
        };
        serializer.collect_map(self.0.iter().map(fields))
    }
}

#[derive(Serialize)]
struct ComparedFigureFields {
    a: Option<f64>,
    b: Option<f64>,
    change: Option<f64>,
}

/// Renders the document `plimsoll.diff/1` of two searches. `charts` are the names of the chart
/// files.
pub fn searches_document(sides: &[SearchSide; 2], charts: &[String]) -> Value {
    to_json_value(&SearchesDiffDocument {
        schema: "plimsoll.diff/1",
        warnings: comparison_warnings(sides),
        a: SearchFields::from(&sides[0]),
        b: SearchFields::from(&sides[1]),
        over: "search",
        levels: [],
        figures: ComparedFigures(compared_figures(sides)),
        prove: prove_command(sides),
        charts,
    })
}
