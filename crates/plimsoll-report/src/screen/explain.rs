//! The first screen of an explanation: the bottleneck, its certainty, the strongest evidence, and
//! the predicted load line without the bottleneck.
//!
//! Not here: the tables of all evidence and of ruled-out causes (`explain`).

use super::Screen;
use super::find::{short_load_line_sentence, target_and_slo_arguments};
use crate::explain::{
    evidence_row, explain_answer, level_headings, line_prediction_text, request_place_headings, request_place_rows,
    unobserved_note,
};
use crate::format::{rate, whole_percent};
use crate::profile::{format_with_unit, printable_function_name};
use crate::remedy::sentence_text;
use crate::run::RunContext;
use plimsoll_analysis::explain::{Explanation, FunctionObservation, SettingEffect, SignalEvidence};
use plimsoll_analysis::finding::ExplainFinding;
use plimsoll_analysis::profile::{DiffRow, ProfileDiff};
use plimsoll_analysis::profile_findings::ProfileFindings;
use plimsoll_analysis::{DoubtKind, Doubts};

/// The maximum number of signals (measured figures that are evidence for a cause) on a screen, and
/// also the maximum number of functions.
const ROWS_SHOWN_MAX: usize = 3;
/// The maximum number of places with requests in flight (such as queues) that have their own row on
/// a screen.
const IN_FLIGHT_PLACES_SHOWN_MAX: usize = 3;

/// Formats the certainty of the named cause: the next likely cause, and the experiments that
/// support or contradict the named cause. Returns `None` if the diagnosis names no cause.
fn certainty_text(explanation: &Explanation) -> Option<String> {
    let [first, rest @ ..] = explanation.causes.as_slice() else { return None };
    if explanation.abstained {
        return None;
    }
    let mut text = match rest.first() {
        None => "each other cause is <1 % likely".to_owned(),
        Some(next) => {
            format!(
                "the second most likely cause is {cause}, {probability_percent} ({subject})",
                cause = next.cause,
                probability_percent = whole_percent(next.probability),
                subject = next.subject
            )
        }
    };
    for made in &explanation.interventions {
        let says = match (made.supports.contains(&first.cause), made.contradicts.contains(&first.cause)) {
            (true, _) => "supports it",
            (false, true) => "contradicts it",
            (false, false) => continue,
        };
        text += &format!("; experiment '{}' {says} ({})", made.intervention.description(), made.measured);
    }
    Some(text)
}

/// Returns table rows for the first `ROWS_SHOWN_MAX` signals (measured figures) that changed with
/// the load. If the diagnosis names a cause, only signals that support this cause are included.
fn strongest_signal_rows(explanation: &Explanation) -> Vec<Vec<String>> {
    let row = |shown: &SignalEvidence| {
        let [words, low, line, past, ..] = <[String; 6]>::try_from(evidence_row(shown)).unwrap_or_default();
        vec![words, low, line, past]
    };
    let of_cause = |shown: &&SignalEvidence| explanation.abstained || shown.supports == explanation.cause;
    let rows = explanation.evidence.iter().filter(of_cause).map(row);
    let changed = |row: &Vec<String>| row[1] != row[3] || row[1] != row[2];
    rows.filter(changed).take(ROWS_SHOWN_MAX).collect()
}

/// Formats which parts of the system were not observed, each with the reason; `None` if all parts
/// were observed.
fn unobserved_parts_text(finding: &ExplainFinding, doubts: &Doubts) -> Option<String> {
    let server = &finding.search.server;
    let mut texts: Vec<String> = doubts.texts(|kind| kind == DoubtKind::Unmeasured).map(sentence_text).collect();
    let unseen = match &server.usage {
        Err(reason) => vec![format!("the server: {reason}")],
        Ok(_) => server.probe_notes().missing,
    };
    let refused = match &finding.explanation.functions {
        Some(FunctionObservation::NotPermitted(why)) => Some(format!("functions: {why}")),
        Some(FunctionObservation::Costs(_)) | None => None,
    };
    texts.extend(unseen.into_iter().chain(refused));
    texts.dedup();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Formats the functions with the highest CPU cost per request, not counting their callees. `level`
/// is the name of the load at which the cost was measured, such as `line`. Returns `None` if no
/// function used CPU.
fn costliest_functions_text(comparison: &ProfileDiff, level: &str) -> Option<String> {
    let mut rows: Vec<&DiffRow> = comparison.rows.iter().filter(|row| row.flat.after > 0.0).collect();
    rows.sort_by(|a, b| b.flat.after.total_cmp(&a.flat.after));
    let unit = &comparison.sample_type.unit;
    let text = |row: &&DiffRow| {
        format!("{} {}", printable_function_name(&row.function), format_with_unit(row.flat.after, unit))
    };
    let top: Vec<String> = rows.iter().take(ROWS_SHOWN_MAX).map(text).collect();
    (!top.is_empty()).then(|| format!("{} (CPU a request, {level})", top.join(", ")))
}

/// Formats in a few words the functions that profiles show. For a comparison, the text lists the
/// functions whose CPU cost changed most between A and B. For one server, the text lists the
/// functions with the highest CPU cost. Returns `None` if there is no function to list.
pub(crate) fn profiled_functions_text(profiles: &ProfileFindings) -> Option<String> {
    match profiles {
        ProfileFindings::SingleTarget(profiles) => {
            let profiles = profiles.doubts_and_figures().1;
            costliest_functions_text(profiles.comparison.as_ref()?, &profiles.level_name)
        }
        ProfileFindings::BothSides(profiles) => {
            let comparison = profiles.doubts_and_figures().1.comparison.as_ref()?;
            let mut rows: Vec<&DiffRow> = comparison.rows.iter().filter(|row| row.flat.is_finding()).collect();
            rows.sort_by(|a, b| b.flat.delta().abs().total_cmp(&a.flat.delta().abs()));
            let unit = &comparison.sample_type.unit;
            let sign = |delta: f64| if delta > 0.0 { "+" } else { "" };
            let text = |row: &&DiffRow| {
                let (name, delta) = (printable_function_name(&row.function), row.flat.delta());
                format!("{name} {}{}", sign(delta), format_with_unit(delta, unit))
            };
            let top: Vec<String> = rows.iter().take(ROWS_SHOWN_MAX).map(text).collect();
            (!top.is_empty()).then(|| format!("{} (CPU a request, B against A)", top.join(", ")))
        }
    }
}

/// Formats whether a server setting (measured at several values) limits the load line, with the
/// goodput at each value.
fn varied_setting_text(varied: &SettingEffect) -> String {
    let steps: Vec<String> = varied
        .steps
        .iter()
        .filter(|step| !step.is_void)
        .map(|step| format!("{}: {}/s", step.value, rate(step.goodput_rps)))
        .collect();
    if steps.is_empty() {
        return "not known: every load with a value of the setting is void; --verbose says why".to_owned();
    }
    let limits = match varied.limits_load_line() {
        Some(true) => "the setting limits the load line",
        Some(false) => "the setting does not limit the load line",
        None if varied.elasticity.is_some() => "the setting has an effect, but is not the only limit",
        None => "too few valid loads to tell whether the setting limits the load line",
    };
    format!("{limits} ({})", steps.join(", "))
}

/// Renders the first screen of an explanation.
pub(crate) fn explain_screen(
    context: &RunContext,
    finding: &ExplainFinding,
    doubts: &Doubts,
    profiles: Option<&ProfileFindings>,
) -> Screen<'static> {
    let ExplainFinding { search, explanation } = finding;
    let findings = &search.findings;
    let mut screen = Screen::new(explain_answer(explanation));
    if let Some(text) = certainty_text(explanation) {
        screen.add_fact(2, "how sure", text);
    }
    if explanation.abstained {
        for named in explanation.causes.iter().take(2) {
            let sure = whole_percent(named.probability);
            screen.add_fact(0, "possible", format!("{}, {sure}: {}", named.cause, named.subject));
        }
        for text in explanation.missing_evidence.iter().take(2) {
            screen.add_fact(1, "to decide", sentence_text(text));
        }
    }
    let line = short_load_line_sentence(findings);
    screen.add_fact(1, "line", line.strip_prefix("load line: ").unwrap_or(&line));
    if let Some(text) = line_prediction_text(explanation, findings.rate_unit) {
        screen.add_fact(0, "forecast", text);
    }
    if let Some(varied) = &explanation.setting_effect {
        screen.add_fact(1, "setting", varied_setting_text(varied));
    }
    let own = profiles.and_then(ProfileFindings::single_target_profiles).and_then(|profiles| {
        let profiles = profiles.doubts_and_figures().1;
        Some((profiles.comparison.as_ref()?, profiles.level_name.as_str()))
    });
    let sampled = match &explanation.functions {
        Some(FunctionObservation::Costs(costs)) => Some((&costs.comparison, costs.level_names[1])),
        Some(FunctionObservation::NotPermitted(_)) | None => None,
    };
    if let Some(text) = own.or(sampled).and_then(|(comparison, level)| costliest_functions_text(comparison, level)) {
        screen.add_fact(2, "functions", text);
    }
    if let Some(text) = unobserved_parts_text(finding, doubts) {
        screen.add_fact(1, "not observed", text);
    }
    match explanation.ruled_out.len() {
        0 => {}
        1 => {
            screen.add_fact(2, "ruled out", "1 cause: --verbose");
        }
        many => {
            screen.add_fact(2, "ruled out", format!("{many} causes: --verbose"));
        }
    }
    let places = request_place_rows(explanation, IN_FLIGHT_PLACES_SHOWN_MAX);
    if !places.is_empty() {
        // The last row of the table is the sum of all places (such as queues) without their own
        // row.
        screen.add_table(0, &request_place_headings(findings), places, IN_FLIGHT_PLACES_SHOWN_MAX + 1);
        if let Some(note) = unobserved_note(finding) {
            screen.add_note(1, note);
        }
    }
    let rows = strongest_signal_rows(explanation);
    if !rows.is_empty() {
        let name = if explanation.abstained { "signal" } else { "evidence" };
        let [low, line, past] = level_headings(findings);
        screen.add_table(1, &[name, low, line, past], rows, ROWS_SHOWN_MAX);
    }
    let target = target_and_slo_arguments(context, &findings.slo);
    screen.set_next_step(match (explanation.abstained, explanation.missing_evidence.is_empty()) {
        (true, false) => {
            format!(
                "follow the advice in the row 'to decide', then repeat: plimsoll explain {target} (--verbose: \
             all signals)"
            )
        }
        (true, true) => {
            format!("repeat with more time (--budget): plimsoll explain {target} (--verbose: all signals)")
        }
        (false, _) => format!("change the server, then compare: plimsoll prove {target} OTHER_URL"),
    });
    screen
}
