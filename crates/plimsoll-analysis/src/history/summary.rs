//! Summarises the finding (the result of a study) in a few figures ([`study_summary`]), which are
//! stored at the end of the run file.
//!
//! Not here: the computation and the display of the figures.

use crate::doubts::{Assessment, DoubtKind, Doubts};
use crate::explain::Cause;
use crate::explain::functions::FunctionObservation;
use crate::find::StopReason;
use crate::finding::{Finding, SearchFinding, bottleneck_of_search};
use crate::judge::{TrialOutcome, Verdict};
use crate::prove::ComparisonResult;
use crate::summary::Summary;
use plimsoll_model::{LineSummary, LoadPurpose, StudySummary, SummaryValue};

/// Smallest rate of a trial that counts as a trial at the load line, as a share of the load line.
const AT_LINE_RATE_SHARE_MIN: f64 = 0.98;

/// Returns the summary of a study's finding, for display in lists of runs.
pub fn study_summary(finding: &Assessment<Finding>) -> StudySummary {
    let (doubts, finding) = finding.doubts_and_figures();
    match finding {
        Finding::Run(found) => {
            let used = found.server.usage.as_ref().ok();
            load_summary(&found.summary, used.and_then(|used| used.cpu_us_per_request()), doubts)
        }
        Finding::Find(found) => {
            let held_by = bottleneck_of_search(found);
            let cause = held_by.map(|held| (held.cause, held.subject));
            with_cause(search_summary(found), cause)
        }
        Finding::Explain(found) => {
            let explanation = &found.explanation;
            let subject = explanation.causes.first().map(|first| first.subject.clone()).unwrap_or_default();
            let cause = if explanation.abstained { Cause::Unknown } else { explanation.cause };
            let mut summary = with_cause(search_summary(&found.search), Some((cause, subject)));
            if let Some(FunctionObservation::Costs(costs)) = &explanation.functions {
                let total = costs.comparison.total.after;
                let rows = costs.comparison.rows.iter().map(|row| (row.function.clone(), row.flat.after / total));
                let mut shares: Vec<(String, f64)> = rows.filter(|(_, share)| (0.0..=1.0).contains(share)).collect();
                shares.sort_by(|a, b| b.1.total_cmp(&a.1));
                shares.truncate(StudySummary::FUNCTIONS_MAX);
                summary.functions = shares.into_iter().map(|(name, share)| (truncated_text(&name), share)).collect();
            }
            summary
        }
        Finding::Prove(found) => proof_summary(&found.comparison),
        Finding::Sweep(_) | Finding::Overload(_) | Finding::Ladder(_) => StudySummary::default(),
    }
}

/// Cuts a text to the maximum length of a text in a summary, 200 characters.
fn truncated_text(text: &str) -> String {
    text.chars().take(200).collect()
}

fn with_cause(summary: StudySummary, cause: Option<(Cause, String)>) -> StudySummary {
    let Some((cause, subject)) = cause else { return summary };
    let subject = Some(truncated_text(&subject)).filter(|subject| !subject.is_empty());
    StudySummary { cause: Some(cause.identifier().to_owned()), cause_subject: subject, ..summary }
}

fn load_summary(summary: &Summary, cpu_us: Option<f64>, doubts: &Doubts) -> StudySummary {
    let void = match () {
        () if doubts.has(DoubtKind::Generator) => Some("the load generator was the limit"),
        () if doubts.has(DoubtKind::Interference) => Some("other processes disturbed the machine"),
        () => None,
    };
    StudySummary {
        goodput_rps: Some(SummaryValue { value: summary.throughput_rps, lower: None, upper: None }),
        p99_ns: summary.routes_sum.response.quantiles.p99.time_ns().map(|ns| ns as f64),
        success_rate: Some(summary.success_rate),
        cpu_us,
        void_reason: void.map(str::to_owned),
        ..StudySummary::default()
    }
}

fn search_summary(finding: &SearchFinding) -> StudySummary {
    let findings = &finding.findings;
    let line = findings.load_line;
    let count = |verdict: Verdict| findings.trials.iter().filter(|trial| trial.verdict == verdict).count() as u64;
    let trials = [count(Verdict::Pass), count(Verdict::Fail), count(Verdict::Void)];
    let void = match findings.stopped_by {
        StopReason::GeneratorLimited => Some("the load generator was the limit"),
        StopReason::Disturbed => Some("other processes disturbed the machine"),
        StopReason::Interrupted if line.rps <= 0.0 => Some("the search was interrupted before it found a load line"),
        _ if trials[0] + trials[1] == 0 => Some("no trial gave a valid result"),
        _ => None,
    };
    StudySummary {
        load_line: Some(LineSummary {
            rps: line.rps,
            lower: line.lower,
            upper: line.upper,
            confirmed: line.is_confirmed,
        }),
        p99_ns: p99_at_line_ns(&findings.trials, line.rps),
        cpu_us: finding.cpu_us_at_load_line(),
        trials,
        void_reason: void.map(str::to_owned),
        ..StudySummary::default()
    }
}

/// Returns the response time p99, ns, of the longest trial at the load line that met the SLO;
/// `None` without such a trial.
fn p99_at_line_ns(trials: &[TrialOutcome], line_rps: f64) -> Option<f64> {
    let at_line = trials.iter().filter(|trial| {
        trial.verdict == Verdict::Pass
            && !matches!(trial.purpose, LoadPurpose::Settle | LoadPurpose::Profile)
            && trial.offered_rps().is_some_and(|rate| (AT_LINE_RATE_SHARE_MIN..=1.02).contains(&(rate / line_rps)))
    });
    at_line.max_by_key(|trial| trial.duration_ns).map(|trial| trial.p99_ns as f64)
}

fn proof_summary(proof: &ComparisonResult) -> StudySummary {
    let ratio = proof.measures.first().map(|measure| SummaryValue {
        value: measure.ratio,
        lower: measure.ratio_interval.map(|interval| interval.lower),
        upper: measure.ratio_interval.map(|interval| interval.upper),
    });
    let is_finite = |it: &SummaryValue| [Some(it.value), it.lower, it.upper].into_iter().flatten().all(f64::is_finite);
    StudySummary { verdict: Some(proof.verdict.to_string()), ratio: ratio.filter(is_finite), ..StudySummary::default() }
}
