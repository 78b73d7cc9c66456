//! Renders results as JUnit XML, which CI systems show as passed and failed tests.
//!
//! Not here: deciding which results fail a CI job. The caller of this file decides.

use crate::chart::escape_xml;
use crate::prove::prove_answer;
use crate::remedy::sentence_text;
use crate::run::load_text;
use crate::visible_controls::escape_to_one_line;
use plimsoll_analysis::find::StopReason;
use plimsoll_analysis::levels::{MeasuredLoad, measured_loads};
use plimsoll_analysis::prove::{ComparisonResult, ProveVerdict};
use plimsoll_analysis::{Condition, Conditions, Doubts, Findings};
use plimsoll_model::Experiment;
use std::fmt::Write;

/// The outcome of a JUnit test case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseOutcome {
    /// The condition that the test case checks is met.
    Passed,
    /// The condition that the test case checks is not met; the text is the reason.
    Failed(String),
    /// The measurement cannot decide whether the condition of the test case is met; the text is the
    /// reason.
    Skipped(String),
}

/// A JUnit test case, which checks one condition on a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The name of the case: the condition in words.
    pub name: String,
    /// The duration of the measurement in s.
    pub time_s: f64,
    /// The outcome of the case.
    pub outcome: CaseOutcome,
}

/// The test cases of one run file, with warnings about its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// The name of the run file.
    pub name: String,
    /// The test cases of the run file.
    pub cases: Vec<Case>,
    /// The warnings about the figures of the run file, one sentence each.
    pub warnings: Vec<String>,
}

/// Returns the test cases of a search. Three cases check that a load meets the SLO, the load
/// generator was not the limit, and no other process disturbed the machine.
pub(crate) fn search_cases(findings: &Findings, doubts: &Doubts) -> Vec<Case> {
    let line = findings.load_line;
    let answer = crate::find::find_answer(findings, doubts);
    let held = if line.lower > 0.0 { CaseOutcome::Passed } else { CaseOutcome::Failed(answer) };
    let own = match findings.stopped_by {
        StopReason::GeneratorLimited => CaseOutcome::Failed("the generator was the limit, not the server".into()),
        _ => CaseOutcome::Passed,
    };
    let undisturbed = match &findings.interference.reason {
        Some(reason) if findings.interference.is_disturbed => CaseOutcome::Skipped(reason.clone()),
        _ => CaseOutcome::Passed,
    };
    vec![
        Case { name: format!("a load meets {}", findings.slo), time_s: findings.elapsed_s, outcome: held },
        Case { name: "the generator was not the limit".into(), time_s: 0.0, outcome: own },
        Case { name: "no other process disturbed the machine".into(), time_s: 0.0, outcome: undisturbed },
    ]
}

/// Returns one test case for each pair of a load of the experiment and a condition in `demands`. If
/// the load generator was the limit of a load, all test cases of this load are skipped.
pub(crate) fn all_load_cases(experiment: &Experiment, demands: &Conditions) -> Vec<Case> {
    let loads = measured_loads(experiment).into_iter();
    loads.flat_map(|load| load_cases(&load_text(&load.run.plan), &load, demands)).collect()
}

/// Returns the test cases of one load. `name` is the description of the load, and a part of each
/// case's name.
fn load_cases(name: &str, load: &MeasuredLoad, demands: &Conditions) -> Vec<Case> {
    let (run, summary) = (&*load.run, load.summary());
    let case = |demand: &Condition| {
        let outcome = match demand.figure_with_cpu_use(run, &|| load.server_use().ok()) {
            _ if summary.generator.is_limit => CaseOutcome::Skipped(format!(
                "the generator was the limit: {reason}",
                reason = summary
                    .generator
                    .reason
                    .as_ref()
                    .map_or_else(|| "the generator could not keep up".to_owned(), sentence_text)
            )),
            Some(figure) if demand.op.holds(figure, demand.value) => CaseOutcome::Passed,
            figure => CaseOutcome::Failed(demand.describe_figure(figure)),
        };
        Case { name: format!("{demand} with {name}"), time_s: run.duration_ns() as f64 / 1e9, outcome }
    };
    demands.0.iter().map(case).collect()
}

/// Returns the test case of a comparison. The test case fails with the verdict `worse`, and is
/// skipped with the verdict `inconclusive`.
pub(crate) fn prove_case(experiment: &Experiment, proof: &ComparisonResult) -> Case {
    let outcome = match proof.verdict {
        ProveVerdict::Worse => CaseOutcome::Failed(prove_answer(proof)),
        ProveVerdict::Inconclusive => CaseOutcome::Skipped(prove_answer(proof)),
        ProveVerdict::Better | ProveVerdict::Same | ProveVerdict::SmallDifference => CaseOutcome::Passed,
    };
    comparison_case(experiment, outcome)
}

/// Returns the test case of a ladder, which measures several servers in turn. The case is always
/// skipped, because a ladder has no verdict.
pub(crate) fn ladder_case(experiment: &Experiment) -> Case {
    let why = "a ladder only measures several servers in turn, and has no verdict";
    comparison_case(experiment, CaseOutcome::Skipped(why.into()))
}

fn comparison_case(experiment: &Experiment, outcome: CaseOutcome) -> Case {
    let time_s = experiment.elapsed_ns.unwrap_or(0) as f64 / 1e9;
    Case { name: "B is not worse than A".into(), time_s, outcome }
}

/// Renders the JUnit XML of several run files. The XML element for standard error (`system-err`)
/// contains the warnings of a run file.
pub fn render(suites: &[Suite]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for Suite { name, cases, warnings } in suites {
        let failed = cases.iter().filter(|c| matches!(c.outcome, CaseOutcome::Failed(_))).count();
        let skipped = cases.iter().filter(|c| matches!(c.outcome, CaseOutcome::Skipped(_))).count();
        let time: f64 = cases.iter().map(|c| c.time_s).sum();
        let name = escape_xml(name);
        let _ = writeln!(
            out,
            "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failed}\" skipped=\"{skipped}\" errors=\"0\" time=\"{time:.3}\">",
            cases.len()
        );
        for case in cases {
            let _ = write!(
                out,
                "    <testcase classname=\"plimsoll\" name=\"{}\" time=\"{:.3}\"",
                escape_xml(&case.name),
                case.time_s
            );
            let _ = match &case.outcome {
                CaseOutcome::Passed => writeln!(out, "/>"),
                CaseOutcome::Failed(why) => {
                    writeln!(out, ">\n      <failure message=\"{}\"/>\n    </testcase>", escape_xml(why))
                }
                CaseOutcome::Skipped(why) => {
                    writeln!(out, ">\n      <skipped message=\"{}\"/>\n    </testcase>", escape_xml(why))
                }
            };
        }
        if !warnings.is_empty() {
            let lines: Vec<String> = warnings
                .iter()
                .map(|warning| format!("warning: {}", escape_xml(&escape_to_one_line(warning))))
                .collect();
            let _ = writeln!(out, "    <system-err>{}</system-err>", lines.join("\n"));
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junit_cases_are_counted_and_written() {
        let case = |name: &str, outcome| Case { name: name.into(), time_s: 1.5, outcome };
        let cases = vec![
            case("a", CaseOutcome::Passed),
            case("b < c", CaseOutcome::Failed("p99 was \"2 s\"".into())),
            case("d", CaseOutcome::Skipped("late".into())),
        ];
        let suite = |warnings| Suite { name: "run & more".into(), cases: cases.clone(), warnings };
        assert!(!render(&[suite(Vec::new())]).contains("system-err"));
        let text = render(&[suite(vec!["<slow>".into(), "late".into()])]);
        for part in [
            "name=\"run &amp; more\" tests=\"3\" failures=\"1\" skipped=\"1\" errors=\"0\" time=\"4.500\"",
            "name=\"a\" time=\"1.500\"/>",
            "<failure message=\"p99 was &quot;2 s&quot;\"/>",
            "<skipped message=\"late\"/>",
            "b &lt; c",
            "    <system-err>warning: &lt;slow&gt;\nwarning: late</system-err>\n  </testsuite>",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
