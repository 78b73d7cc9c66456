//! The report of an explanation: what limits the load line, the evidence for this limit, and the
//! causes that were ruled out. The load line is the highest rate that meets the SLO. The report
//! also states what would raise the load line.
//!
//! Not here: the JSON document of an explanation (`explain_json`).

use crate::block::{Report, Tone};
use crate::chart::{EvidenceBars, Heading, Theme, evidence_chart};
use crate::find::{find_answer, stop_reason_text};
use crate::format::{duration, rate, whole_percent as percent};
use crate::remedy::sentence_text;
use crate::run::RunContext;
use plimsoll_analysis::explain::{
    Cause, Explanation, InFlightState, InterventionReport, SettingEffect, SettingValueLoad, SignalEvidence,
    format_signal_value,
};
use plimsoll_analysis::finding::{ExplainFinding, SearchFinding};
use plimsoll_analysis::{Doubts, Findings};
use plimsoll_model::Intervention;

/// Formats the cause and its explanation as one sentence. The probability of the cause is included
/// if the diagnosis is certain enough to name a cause.
pub(crate) fn explain_answer(explanation: &Explanation) -> String {
    if explanation.cause == Cause::Unknown {
        return sentence_text(&explanation.sentence);
    }
    let named = explanation.causes.first().filter(|_| !explanation.abstained);
    let sure = named.map_or_else(String::new, |named| format!(" ({})", percent(named.probability)));
    format!("{}{sure}: {}", explanation.cause, sentence_text(&explanation.sentence))
}

/// Returns the headings of the three steady loads: low, at the load line, and above the load line.
/// If no load line was found, the middle load is near the peak throughput.
pub(crate) fn level_headings(findings: &Findings) -> [&'static str; 3] {
    match findings.load_line.rps > 0.0 {
        true => ["low load", "at the line", "past it"],
        false => ["low load", "near the peak", "past it"],
    }
}

/// Returns the headings of the table that shows where in the system requests in flight are, such as
/// in a queue of the server.
pub(crate) fn request_place_headings(findings: &Findings) -> [&'static str; 4] {
    let [low, line, past] = level_headings(findings);
    ["where requests are", low, line, past]
}
/// The smallest share (0 to 1) of the requests in flight for which a place in the system is shown.
/// A place is shown if its share reaches this limit at one or more of the three loads.
const PLACE_SHARE_MIN: f64 = 0.02;

/// Returns the places in the system where requests in flight are, such as a queue of the server. A
/// place with less than `PLACE_SHARE_MIN` of the requests at every load is omitted. Each place has
/// its share of the requests in flight at the low load, at the load line and above the load line.
/// The places are sorted by their share at the highest load, largest first.
fn request_places(explanation: &Explanation) -> Vec<(InFlightState, [Option<f64>; 3])> {
    let share =
        |place: InFlightState| [0, 1, 2].map(|at| explanation.request_places[at].as_ref()?.share_at_place(place));
    let all = InFlightState::ALL.into_iter().map(|place| (place, share(place)));
    let most = |shares: &[Option<f64>; 3]| shares.iter().flatten().copied().fold(0.0, f64::max);
    let mut found: Vec<_> = all.filter(|(_, shares)| most(shares) >= PLACE_SHARE_MIN).collect();
    let last = |shares: &[Option<f64>; 3]| shares.iter().rev().flatten().next().copied().unwrap_or(0.0);
    found.sort_by(|a, b| last(&b.1).total_cmp(&last(&a.1)));
    found
}

/// The name of the table row for the sum of all places in the system that have no row of their own.
const OTHER_PLACES: &str = "other places";

/// Formats the rows of the table that shows where in the system requests are. Each share has a bar
/// of one character for each 10 %. Only the first `rows_max` places have their own row. The last
/// row has the sum of all other places, if this sum is at least `PLACE_SHARE_MIN` at one of the
/// loads.
pub(crate) fn request_place_rows(explanation: &Explanation, rows_max: usize) -> Vec<Vec<String>> {
    let bar = |share: f64| format!("{} {}", "\u{2588}".repeat((share * 10.0).round() as usize), percent(share));
    let cell = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| bar(share).trim_start().to_owned());
    let row = |name: &str, shares: [Option<f64>; 3]| std::iter::once(name.to_owned()).chain(shares.map(cell)).collect();
    let mut places = request_places(explanation);
    places.truncate(rows_max);
    let others = [0, 1, 2].map(|load: usize| {
        let shown: Vec<f64> = places.iter().filter_map(|(_, shares)| shares[load]).collect();
        (!shown.is_empty()).then(|| (1.0 - shown.iter().sum::<f64>()).max(0.0))
    });
    let mut rows: Vec<Vec<String>> = places.iter().map(|(place, shares)| row(place.display_text(), *shares)).collect();
    if others.iter().flatten().any(|share| *share >= PLACE_SHARE_MIN) {
        rows.push(row(OTHER_PLACES, others));
    }
    rows
}

/// If at least this share (0 to 1) of the requests in flight is at an unknown place, the report has
/// a note. The note explains how to observe the requests at the unknown place.
const UNOBSERVED_SHARE_MIN: f64 = 0.2;

/// Returns a note if many requests in flight are at an unknown place in the system, otherwise
/// `None`. The note states where the unobserved requests may wait, and how to observe them.
pub(crate) fn unobserved_note(finding: &ExplainFinding) -> Option<&'static str> {
    let loads = finding.explanation.request_places.iter().flatten();
    let most = loads.filter_map(|load| load.share_at_place(InFlightState::Unobserved)).fold(0.0, f64::max);
    (most >= UNOBSERVED_SHARE_MIN).then_some(match finding.search.server.usage {
        Err(_) => "not observed: no probe reads the server; run plimsoll on its machine, or use --watch ssh://HOST",
        Ok(_) if finding.explanation.abstained => {
            "not observed: requests wait in the server or its sockets; --metrics URL reads the server's queues"
        }
        Ok(_) => "not observed: requests that wait in the server (see --metrics); other evidence gives the cause",
    })
}

/// Draws the share of requests in flight at each place in the system, for the three steady loads.
fn request_places_svg(explanation: &Explanation, theme: Theme) -> String {
    let value = |share: Option<f64>| share.map(|share| (share, percent(share)));
    let of = |(place, shares): (InFlightState, [Option<f64>; 3])| EvidenceBars {
        name: place.display_text().to_owned(),
        values: shares.map(value),
    };
    let bars: Vec<EvidenceBars> = request_places(explanation).into_iter().map(of).collect();
    let heading = Heading {
        title: "Places of the requests in flight: at a low load, at the load line, and above it".into(),
        subtitle: "shares of all requests in flight; each group of three bars is relative to its longest bar".into(),
    };
    evidence_chart(&heading, &bars, theme)
}

/// Returns the headings of the evidence table. Each row of the table is a signal (measured figure)
/// that is evidence for a cause.
fn evidence_headings(findings: &Findings) -> [&'static str; 6] {
    let [low, line, past] = level_headings(findings);
    ["signal", low, line, past, "evidence for", "from"]
}

pub(crate) fn evidence_row(evidence: &SignalEvidence) -> Vec<String> {
    let text = evidence.signal.text();
    let value =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format_signal_value(evidence.signal, value));
    vec![
        text.words.to_owned(),
        value(evidence.low),
        value(evidence.line),
        value(evidence.past),
        evidence.supports.identifier().to_owned(),
        text.source.to_owned(),
    ]
}

fn evidence_bars(evidence: &SignalEvidence) -> EvidenceBars {
    let value = |value: Option<f64>| value.map(|value| (value, format_signal_value(evidence.signal, value)));
    EvidenceBars {
        name: evidence.signal.text().words.to_owned(),
        values: [value(evidence.low), value(evidence.line), value(evidence.past)],
    }
}

/// Draws the signals (measured figures) that are evidence for causes, at each of the three steady
/// loads.
pub(crate) fn evidence_svg(explanation: &Explanation, theme: Theme) -> String {
    let bars: Vec<EvidenceBars> = explanation.evidence.iter().map(evidence_bars).collect();
    let heading = Heading {
        title: "Changes from a low load to past the load line".into(),
        subtitle: format!("each group of three bars is relative to its longest bar; cause: {}", explanation.cause),
    };
    evidence_chart(&heading, &bars, theme)
}

/// Formats what each cause that was not ruled out predicts about the throughput in an experiment.
/// The text is printed before the experiment starts.
pub fn prediction_text(intervention: Intervention, predicted: &[(Cause, String)]) -> String {
    match (intervention, predicted) {
        (Intervention::Control, _) => {
            "the control load, without a change: plimsoll compares the experiments with this load".to_owned()
        }
        (_, []) => "none of the causes that are still possible predicts a result of this experiment".to_owned(),
        (_, predicted) => {
            let texts = predicted.iter().map(|(cause, effect)| format!("{effect} (if the cause is {cause})"));
            format!("prediction: {}", texts.collect::<Vec<_>>().join("; "))
        }
    }
}

/// The column headings of the table of experiments. An experiment changes one condition to decide
/// between causes.
const EXPERIMENT_TABLE_HEADINGS: [&str; 4] = ["experiment", "predicted throughput", "measured", "evidence"];

fn experiment_row(report: &InterventionReport) -> Vec<String> {
    let predicted: Vec<String> = report.predictions.iter().map(|(cause, text)| format!("{cause}: {text}")).collect();
    let words = |causes: &[Cause]| causes.iter().map(|cause| cause.identifier()).collect::<Vec<_>>().join(", ");
    let speaks = match (report.supports.as_slice(), report.contradicts.as_slice()) {
        ([], []) => "neither way".to_owned(),
        (supports, []) => format!("for {}", words(supports)),
        ([], denies) => format!("against {}", words(denies)),
        (supports, denies) => format!("for {}, against {}", words(supports), words(denies)),
    };
    let predicted = if predicted.is_empty() { "nothing".to_owned() } else { predicted.join("; ") };
    vec![report.intervention.description().to_owned(), predicted, report.measured.clone(), speaks]
}

/// Formats how much the throughput changed when a setting of the server was varied.
fn setting_elasticity_text(varied: &SettingEffect) -> String {
    match varied.elasticity {
        Some(elasticity) => format!(
            "elasticity {elasticity:.2}: twice the setting's value gives {factor:.2} times the throughput{consequence}",
            factor = 2f64.powf(elasticity),
            consequence = match varied.limits_load_line() {
                Some(true) => "; the setting limits the load line",
                Some(false) => "; the setting does not limit the load line",
                None => "",
            }
        ),
        None => "the elasticity is not known: it needs valid loads at two or more values of the setting".to_owned(),
    }
}

fn setting_value_row(step: &SettingValueLoad) -> Vec<String> {
    let counts = if step.is_void { "void load: plimsoll or other processes were the limit" } else { "" };
    vec![step.value.to_string(), format!("{}/s", rate(step.goodput_rps)), counts.to_owned()]
}

/// Formats two predicted load lines: with twice the capacity of the limiting resource, and without
/// the limit of this resource. Returns `None` if no prediction was possible.
pub(crate) fn line_prediction_text(explanation: &Explanation, arrivals_word: &str) -> Option<String> {
    let predicted = explanation.line_prediction?;
    let doubled = predicted.doubled_limit_line_rps.filter(|rps| *rps < predicted.line_rps * 0.98);
    let (rate_rps, next_cause) = (rate(predicted.line_rps), predicted.next_cause);
    let (lowest_rps, highest_rps) = (rate(predicted.range_rps.0), rate(predicted.range_rps.1));
    Some(match doubled.map(rate) {
        Some(doubled_rps) => format!(
            "load line with twice this limit: about {doubled_rps} {arrivals_word}/s; without this limit: about {rate_rps} \
             {arrivals_word}/s ({lowest_rps} to {highest_rps}); then {next_cause} is the limit"
        ),
        None => format!(
            "load line without this limit: about {rate_rps} {arrivals_word}/s ({lowest_rps} to {highest_rps}); then \
             {next_cause} is the limit"
        ),
    })
}

/// Renders the report of a diagnosis. `doubts` is the evidence against the load line, which the
/// report states next to the load line.
pub(crate) fn explain_report(context: &RunContext, finding: &ExplainFinding, doubts: &Doubts) -> Report {
    let ExplainFinding { search: SearchFinding { findings, .. }, explanation } = finding;
    let mut report = Report::default();
    report.add_sentence(Tone::Answer, explain_answer(explanation));
    let mut facts = vec![("target", context.target_text()), ("line", find_answer(findings, doubts))];
    facts.extend(line_prediction_text(explanation, findings.rate_unit).map(|text| ("forecast", text)));
    facts.extend(explanation.setting_effect.as_ref().map(|varied| ("setting", setting_elasticity_text(varied))));
    if let [first, also, ..] = explanation.causes.as_slice()
        && !explanation.abstained
        && also.probability >= first.probability / 4.0
    {
        facts.push(("beside it", format!("{}: {}", also.cause, also.subject)));
    }
    if explanation.abstained {
        for named in &explanation.causes {
            facts.push(("possible", format!("{}, {}: {}", named.cause, percent(named.probability), named.subject)));
        }
        facts.extend(explanation.missing_evidence.iter().map(|text| ("to decide", sentence_text(text))));
    }
    for demand in &explanation.demands {
        facts.push((
            "demand",
            format!(
                "a request uses {used_time} of {resource}, so this resource is saturated at {ceiling_rps} requests/s",
                used_time = duration(demand.per_request_s * 1e9),
                resource = demand.resource.display_text(),
                ceiling_rps = rate(demand.ceiling_rps)
            ),
        ));
    }
    facts.push((
        "search",
        format!(
            "{trials} trials{steady_loads} in {elapsed} (seed {seed}); the search ended because {stop_reason}",
            trials = findings.trials.len(),
            steady_loads = if findings.target_loss.is_some() { "" } else { ", then steady loads," },
            elapsed = duration(findings.elapsed_s * 1e9),
            seed = context.plan.load.seed,
            stop_reason = stop_reason_text(findings.stopped_by)
        ),
    ));
    report.add_facts(facts);
    if explanation.request_places.iter().any(Option::is_some) {
        let (headings, rows) =
            (request_place_headings(findings), request_place_rows(explanation, InFlightState::ALL.len()));
        report.add_responsive_chart(|theme| request_places_svg(explanation, theme), &headings, rows.clone());
        report.add_table(&headings, rows);
        if let Some(note) = unobserved_note(finding) {
            report.add_sentence(Tone::Plain, note);
        }
    }
    if !explanation.evidence.is_empty() {
        let rows = || explanation.evidence.iter().map(evidence_row).collect();
        let headings = evidence_headings(findings);
        report.add_responsive_chart(|theme| evidence_svg(explanation, theme), &headings, rows());
        report.add_table(&headings, rows());
    }
    if let Some(varied) = &explanation.setting_effect {
        report.add_table(&["setting", "goodput", ""], varied.steps.iter().map(setting_value_row).collect());
    }
    if !explanation.interventions.is_empty() {
        report.add_table(&EXPERIMENT_TABLE_HEADINGS, explanation.interventions.iter().map(experiment_row).collect());
    }
    if !explanation.ruled_out.is_empty() {
        let row = |(cause, why): &(Cause, String)| vec![cause.identifier().to_owned(), why.clone()];
        report.add_table(&["ruled out", "why"], explanation.ruled_out.iter().map(row).collect());
    }
    report
}
