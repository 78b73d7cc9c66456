//! The finding of an explanation: the bottleneck that limits the load line. The finding is computed
//! from the steady loads of an explanation, or only from the trials of a search.

use super::recording::NoFinding;
use super::search::{self, SearchFinding};
use crate::doubts::{Assessment, Doubt, DoubtKind, Doubts};
use crate::explain::interventions::informative_interventions;
use crate::explain::{
    Cause, ExperimentLoads, Explanation, InterventionOutcomes, Loads, ServerFacts, explain, probabilities_from_loads,
};
use crate::find::{LoadLine, contradicts_load_line};
use crate::format::{self, skip_reason};
use crate::judge::{TrialOutcome, judge};
use crate::sentence::Sentence;
use crate::study::explain::{experiment_loads, is_skipped, steady_loads};
use plimsoll_model::intervention::{setting_value_index, setting_value_tag};
use plimsoll_model::{Experiment, ExperimentEvent, ExperimentSpec, ExplainSpec, Intervention, LoadPurpose, LoadTag};

/// The finding of an explanation: a load line, and the bottleneck that limits the load line.
#[derive(Debug, Clone)]
pub struct ExplainFinding<'a> {
    /// The search whose load line is explained.
    pub search: SearchFinding<'a>,
    /// The probable causes of the load line, with their evidence.
    pub explanation: Explanation,
}

/// The probable bottleneck of a load line in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bottleneck {
    /// The probable cause of the load line.
    pub cause: Cause,
    /// The limiting resource, such as `one thread of node`.
    pub subject: String,
    /// What the bottleneck does to the server, as a part of a sentence.
    pub effect: String,
}

pub(super) fn explain_finding<'a>(
    experiment: &'a Experiment,
    spec: &ExplainSpec,
) -> Result<Assessment<ExplainFinding<'a>>, NoFinding> {
    let searched = search::search_finding(experiment, &spec.search)?;
    let loads = steady_loads(&experiment.trials, &searched.doubts_and_figures().1.settings.slo);
    let experiments = experiment_loads(&experiment.trials, &spec.setting_values);
    let explained = explain_with_experiments(&searched, &loads, &experiments);
    let (doubts, found) = explained.doubts_and_figures();
    let (found, refuted) = withdraw_contradicted_load_line(found.clone(), &loads);
    let worth = informative_interventions(
        &probabilities_from_loads(&searched.doubts_and_figures().1.findings, &loads),
        &spec.interventions,
        &spec.requested_interventions,
    );
    let untried_experiment_doubts = untried_experiment_doubts(experiment, spec, &experiments, &worth);
    let doubts = doubts
        .clone()
        .into_iter()
        .chain(refuted)
        .chain(skipped_load_doubts(experiment, spec))
        .chain(untried_experiment_doubts);
    Ok(Assessment::new(doubts.collect(), found))
}

/// Returns the facts about the server that a recorded explanation shows at its different loads, and
/// the results of its experiments. The corpus (the collection of recorded cases) stores both.
/// Returns `None` if the recording is no explanation.
///
/// # Errors
/// The function fails if no finding can be computed from the recording ([`NoFinding`]).
pub fn recorded_facts_and_outcomes(
    experiment: &Experiment,
) -> Result<Option<(ServerFacts, InterventionOutcomes)>, NoFinding> {
    let ExperimentSpec::Explain(spec) = &experiment.spec else { return Ok(None) };
    let searched = search::search_finding(experiment, &spec.search)?;
    let found = searched.doubts_and_figures().1;
    let loads = steady_loads(&experiment.trials, &found.settings.slo);
    let changes = InterventionOutcomes::from_loads(&experiment_loads(&experiment.trials, &spec.setting_values));
    Ok(Some((ServerFacts::from_loads(&found.findings, &loads), changes)))
}

/// Withdraws the load line if a steady load at or below the load line broke the SLO by more than
/// chance. A steady load is longer than any trial of the search, so the steady load decides.
/// Returns the finding, and a doubt with the reason if the load line was withdrawn.
fn withdraw_contradicted_load_line<'a>(
    mut found: ExplainFinding<'a>,
    loads: &Loads,
) -> (ExplainFinding<'a>, Option<Doubt>) {
    let SearchFinding { settings, findings, .. } = &mut found.search;
    let steady = [loads.low, loads.half, loads.line].into_iter().flatten();
    let later = steady.map(|run| judge(LoadPurpose::Line, 0, run, &settings.slo));
    let contradicts_load_line =
        |later: &TrialOutcome| contradicts_load_line(settings, &findings.trials, later, findings.load_line);
    let Some(later) = later.into_iter().find(contradicts_load_line) else { return (found, None) };
    let rate_rps = later.offered_rps().unwrap_or(0.0);
    let text = format!(
        "a steady load of {offered_rate} a second broke the SLO (p99 {p99}, {success_share} succeeded in \
         {load_time}), so the search's load line is not valid",
        offered_rate = format::rate(rate_rps),
        load_time = format::duration(later.duration_ns as f64),
        p99 = format::duration(later.p99_ns as f64),
        success_share = format::share(later.success_rate),
    );
    findings.load_line = LoadLine { upper: Some(rate_rps), ..LoadLine::NONE };
    found.explanation.load_line_rps = findings.load_line;
    (found, Some(Doubt { kind: DoubtKind::Contradicted, text: text.into() }))
}

/// Returns doubts about requested experiments and values of a server setting that were not tried,
/// each with the reason. `worth` contains the experiments whose results would help to decide
/// between the possible causes.
fn untried_experiment_doubts(
    experiment: &Experiment,
    spec: &ExplainSpec,
    experiments: &ExperimentLoads,
    worth: &[Intervention],
) -> Doubts {
    let mut doubts = Doubts::default();
    // If the study ended early, another doubt of the finding already says that the study ended
    // early.
    if experiment.elapsed_ns.is_none() {
        return doubts;
    }
    let unheld = |tag: LoadTag| is_skipped(&experiment.events, tag);
    let was_made =
        |it: Intervention| experiments.intervention_loads.iter().any(|(other, _)| *other == it) || unheld(it.tag());
    for change in spec.requested_interventions.iter().filter(|change| !was_made(**change)) {
        let reason = match worth.contains(change) {
            true => "the budget left no time for this experiment",
            false => "this experiment would not help to decide between the possible causes",
        };
        let text = format!("the experiment '{experiment}' was not tried: {reason}", experiment = change.description());
        doubts.add(DoubtKind::Unmeasured, text);
    }
    let values = spec.setting_values.iter().enumerate().filter(|(number, value)| {
        experiments.setting_loads.iter().all(|(tried, _)| tried != *value) && !unheld(setting_value_tag(*number))
    });
    let values: Vec<String> = values.map(|(_, value)| value.to_string()).collect();
    if !values.is_empty() {
        let text = format!(
            "the server setting was not tried with {values}: the budget left no time for these loads",
            values = values.join(", ")
        );
        doubts.add(DoubtKind::Unmeasured, text);
    }
    doubts
}

/// Returns doubts about experiments and values of a server setting whose loads could not be made,
/// each with the reason.
fn skipped_load_doubts(experiment: &Experiment, spec: &ExplainSpec) -> Doubts {
    let mut doubts = Doubts::default();
    for (tag, reason) in experiment.events.iter().filter_map(ExperimentEvent::skipped_load) {
        let value = setting_value_index(&tag).and_then(|number| spec.setting_values.get(number));
        let what = match (Intervention::from_tag(&tag), value) {
            (Some(intervention), _) => format!("the experiment '{}'", intervention.description()),
            (None, Some(value)) => format!("the value {value} of the server setting"),
            (None, None) => continue,
        };
        doubts.add(
            DoubtKind::Unmeasured,
            Sentence::from(format!("{what} was not tried: ")).append_sentence(&skip_reason(reason)),
        );
    }
    doubts
}

/// Explains the load line of a search only from the trials of that search, without further loads.
pub fn explain_search<'a>(searched: &Assessment<SearchFinding<'a>>) -> Assessment<ExplainFinding<'a>> {
    let found = searched.doubts_and_figures().1;
    let loads = Loads::from_search(&found.findings, &found.server.runs);
    explain_with_experiments(searched, &loads, &ExperimentLoads::default())
}

/// Returns the bottleneck of a search's load line, from the trials of that search. Returns `None`
/// if there is no load line, or if the trials show no bottleneck of the server.
pub fn bottleneck_of_search(finding: &SearchFinding) -> Option<Bottleneck> {
    let loads = Loads::from_search(&finding.findings, &finding.server.runs);
    let explained = explain(&finding.findings, &loads, &ExperimentLoads::default());
    let (_, explanation) = explained.doubts_and_figures();
    let how = explanation.visible_effect.clone().filter(|_| finding.findings.load_line.rps > 0.0)?;
    let first = explanation.causes.first()?;
    Some(Bottleneck { cause: explanation.cause, subject: first.subject.clone(), effect: how })
}

fn explain_with_experiments<'a>(
    searched: &Assessment<SearchFinding<'a>>,
    loads: &Loads,
    experiments: &ExperimentLoads,
) -> Assessment<ExplainFinding<'a>> {
    let (of_search, found) = searched.doubts_and_figures();
    let explained = explain(&found.findings, loads, experiments);
    let (own, explanation) = explained.doubts_and_figures();
    let mut doubts = of_search.clone();
    for doubt in own.clone() {
        match doubt.kind {
            DoubtKind::Interference => doubts.add_or_append_text(doubt),
            _ => doubts.extend([doubt]),
        }
    }
    Assessment::new(doubts, ExplainFinding { search: found.clone(), explanation: explanation.clone() })
}
