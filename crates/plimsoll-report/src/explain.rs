//! How an explanation looks: what holds the line, what speaks for it, what was ruled out, and what would move the line.
//!
//! Not here: its document (`explain_json`).

use crate::block::{Report, Tone};
use crate::find::{answer, stopped_text};
use crate::format::{duration, rate};
use crate::remedy::spelled;
use crate::run::RunContext;
use plimsoll_analysis::Doubts;
use plimsoll_analysis::explain::{Cause, Explanation, ShownSignal, shown_value};
use plimsoll_analysis::finding::{ExplainFinding, SearchFinding};

/// The answer in one sentence.
fn explain_answer(explanation: &Explanation) -> String {
    format!("{}: {}", explanation.cause, spelled(&explanation.sentence))
}

/// The headings of the table of evidence.
const EVIDENCE: [&str; 6] = ["signal", "low", "line", "past", "speaks for", "from"];

fn evidence_row(shown: &ShownSignal) -> Vec<String> {
    let text = shown.signal.text();
    let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| shown_value(shown.signal, value));
    vec![
        text.words.to_owned(),
        value(shown.low),
        value(shown.line),
        value(shown.past),
        shown.supports.word().to_owned(),
        text.source.to_owned(),
    ]
}

/// What would move the line.
fn moved(explanation: &Explanation) -> Option<String> {
    let predicted = explanation.predicted?;
    let doubled = predicted.doubled_rps.filter(|rps| *rps < predicted.line_rps * 0.98);
    let doubled =
        doubled.map_or_else(String::new, |rps| format!("twice as much of it: about {} requests/s; ", rate(rps)));
    Some(format!(
        "{doubled}without it: about {} requests/s, where {} ends ({})",
        rate(predicted.line_rps),
        predicted.next_cause.text(),
        predicted.next_cause
    ))
}

/// The report of an explanation, below what speaks against it.
pub(crate) fn explain_report(context: &RunContext, found: &ExplainFinding, doubts: &Doubts) -> Report {
    let ExplainFinding { searched: SearchFinding { findings, .. }, explanation } = found;
    let mut report = Report::default();
    report.text(Tone::Answer, explain_answer(explanation));
    let mut facts = vec![("target", context.plan.traffic.title()), ("line", answer(findings, doubts))];
    facts.extend(moved(explanation).map(|text| ("moves it", text)));
    if let [first, also, ..] = explanation.causes.as_slice()
        && !explanation.abstained
        && also.weight >= first.weight / 2.0
    {
        facts.push(("beside it", format!("{}: {}", also.cause, also.subject)));
    }
    if explanation.abstained {
        for named in &explanation.causes {
            facts.push(("possible", format!("{}: {} (weight {:.0})", named.cause, named.subject, named.weight)));
        }
        facts.extend(explanation.to_tell.iter().map(|text| ("would tell", spelled(text))));
    }
    for demand in &explanation.demands {
        facts.push((
            "demand",
            format!(
                "{} of {} a request: it ends at {} requests/s",
                duration(demand.per_request_s * 1e9),
                demand.resource.text(),
                rate(demand.ceiling_rps)
            ),
        ));
    }
    facts.push((
        "search",
        format!(
            "{} trials, then steady loads, in {} (seed {}); the search ended because {}",
            findings.trials.len(),
            duration(findings.elapsed_s * 1e9),
            context.plan.load.seed,
            stopped_text(findings.stopped_by)
        ),
    ));
    report.facts(facts);
    if !explanation.evidence.is_empty() {
        report.table(&EVIDENCE, explanation.evidence.iter().map(evidence_row).collect());
    }
    if !explanation.ruled_out.is_empty() {
        let row = |(cause, why): &(Cause, String)| vec![cause.word().to_owned(), why.clone()];
        report.table(&["ruled out", "why"], explanation.ruled_out.iter().map(row).collect());
    }
    report
}
