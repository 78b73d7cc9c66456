//! The bottleneck that limits a load line ([`explain`]). Signals (measured figures) of steady loads
//! at a low rate, at the line and above it give the answers to some thirty questions
//! ([`features`]). Bayes' rule turns these answers, and the effects of experiments, into a
//! probability of each cause ([`posterior`]). Without a probable cause, the result is "not known",
//! with the missing evidence.
//!
//! Not here: the choice of loads (`study::explain`), and the presentation.

pub mod causes;
pub mod demands;
pub mod features;
pub mod function_kinds;
pub mod functions;
pub mod in_flight_breakdown;
pub mod intervention_results;
pub mod interventions;
pub mod likelihoods;
pub mod posterior;
pub mod predictions;
pub mod server_facts;
pub mod setting_effect;
pub mod signals;

mod not_known;
mod queues;
#[cfg(test)]
mod tests;
mod thresholds;

pub use causes::Cause;
pub use demands::{ServiceDemand, UsedResource};
pub use functions::{FunctionCosts, FunctionObservation};
pub use in_flight_breakdown::{InFlightBreakdown, InFlightState, RequestsAtPlace};
pub use intervention_results::{ExperimentLoads, InterventionOutcome, InterventionOutcomes};
pub use interventions::ServerConcurrency;
pub use posterior::{FeatureAnswers, Posterior};
pub use predictions::Effect;
pub use server_facts::{Loads, ServerFacts, killed_processes, reference_rate};
pub use setting_effect::{SettingEffect, SettingValueLoad};
pub use signals::{LoadSignals, Signal, format_signal_value};

use crate::doubts::{Assessment, DoubtKind, Doubts};
use crate::find::{Findings, LoadLine};
use crate::interference::Interference;
use crate::sentence::Sentence;
use demands::interpreter_demand;
use features::Feature;
use likelihoods::EvidenceWeights;
use plimsoll_model::Intervention;
use posterior::{CauseProbability, EvidenceTerm};
use thresholds::{CONSIDERABLE_SHARE_MIN, SATURATED_THREAD_SHARE_MIN, SMALL_SHARE_MAX};

/// A possible cause of the load line, with its probability for the tested server.
#[derive(Debug, Clone, PartialEq)]
pub struct LikelyCause {
    /// The possible cause.
    pub cause: Cause,
    /// The probability of the cause, 0..=1.
    pub probability: f64,
    /// The limiting resource of the tested server, such as `4 connections to 127.0.0.1:6379`.
    pub subject: String,
}

/// The values of one signal (measured figure) at three loads, as evidence for a cause.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalEvidence {
    /// The shown signal, a measured figure of each load.
    pub signal: Signal,
    /// The value at the low load; `None` if it was not observed.
    pub low: Option<f64>,
    /// The value at the load line; `None` if it was not observed.
    pub line: Option<f64>,
    /// The value above the load line; `None` if it was not observed.
    pub past: Option<f64>,
    /// The cause that the signal makes more probable.
    pub supports: Cause,
}

/// The predicted load line if the named cause were removed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinePrediction {
    /// The predicted line, 1/s: the lowest rate that saturates one of the remaining resources.
    pub line_rps: f64,
    /// The range of the predicted line, 1/s: the lowest and the highest estimate.
    pub range_rps: (f64, f64),
    /// The cause that would limit the server after the named cause is removed.
    pub next_cause: Cause,
    /// The predicted line if the present limit were doubled, 1/s, at most `line_rps`. `None` if the
    /// limit is no number that can be doubled, or if the present load line is uncertain.
    pub doubled_limit_line_rps: Option<f64>,
}

/// The result of one experiment (intervention), for the report.
#[derive(Debug, Clone, PartialEq)]
pub struct InterventionReport {
    /// The experiment.
    pub intervention: Intervention,
    /// The effect on the goodput that each remaining cause predicted, in words.
    pub predictions: Vec<(Cause, String)>,
    /// The measured effect of the experiment and its figures, in words.
    pub measured: String,
    /// The causes that the effect makes more probable.
    pub supports: Vec<Cause>,
    /// The causes that the effect makes less probable.
    pub contradicts: Vec<Cause>,
}

/// The explanation of a load line: the causes with their evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The named cause; [`Cause::Unknown`] if no cause is named.
    pub cause: Cause,
    /// The possible causes with their probabilities, the most probable first.
    pub causes: Vec<LikelyCause>,
    /// Whether the evidence is too weak to name a cause, although a limit may exist.
    pub abstained: bool,
    /// Where the requests in flight wait or run: at the low load, at the load line, and above the
    /// load line. `None` for a load without requests in flight.
    pub request_places: [Option<InFlightBreakdown>; 3],
    /// The explanation in one sentence, without a full stop.
    pub sentence: Sentence,
    /// The visible effect of the named cause, as a clause. `None` if no cause is named, or if the
    /// sentence already contains the effect.
    pub visible_effect: Option<String>,
    /// The signals that support the shown causes, the strongest first.
    pub evidence: Vec<SignalEvidence>,
    /// The causes that are ruled out, each with the strongest reason.
    pub ruled_out: Vec<(Cause, String)>,
    /// The experiments (interventions) and their results.
    pub interventions: Vec<InterventionReport>,
    /// The effect of the server's setting that `--vary` changed; `None` without that flag.
    pub setting_effect: Option<SettingEffect>,
    /// The observations that would show the cause, if no cause is named: sentences without a full
    /// stop.
    pub missing_evidence: Vec<Sentence>,
    /// The predicted load line without the named cause; `None` if no prediction is possible.
    pub line_prediction: Option<LinePrediction>,
    /// The demand of a request on each resource. The resource that saturates at the lowest rate
    /// comes first.
    pub demands: Vec<ServiceDemand>,
    /// The CPU cost of the server's functions per request; `None` if functions were not sampled.
    pub functions: Option<FunctionObservation>,
    /// The explained load line.
    pub load_line_rps: LoadLine,
}

/// Returns the probabilities of the causes from the loads alone, before any experiment.
pub fn probabilities_from_loads(findings: &Findings, loads: &Loads) -> Posterior {
    Posterior::from_facts(&ServerFacts::from_loads(findings, loads), &[])
}

/// Explains the load line of a search by these steady loads and experiments. The result contains
/// only the doubts of the explanation, not the doubts of the search.
pub fn explain(findings: &Findings, loads: &Loads, experiments: &ExperimentLoads) -> Assessment<Explanation> {
    let case = ServerFacts::from_loads(findings, loads);
    let changes = InterventionOutcomes::from_loads(experiments);
    let explanation = explanation_from_facts(&case, &changes, findings.load_line);
    let (varied, functions) =
        (SettingEffect::from_loads(&experiments.setting_loads), FunctionObservation::from_loads(&case, loads));
    let mut doubts = explanation_doubts(findings, loads, &case);
    if let Some(why) = FunctionObservation::missing_samples_reason(loads).filter(|_| functions.is_none()) {
        doubts.add(DoubtKind::Unmeasured, why);
    }
    let limits = explanation.abstained && varied.as_ref().and_then(SettingEffect::limits_load_line) == Some(true);
    let sentence = match limits {
        true => {
            let setting = "The server setting that the study varied limits the load line: the throughput follows \
                           this setting";
            explanation.sentence.words(". ").words(setting)
        }
        false => explanation.sentence,
    };
    Assessment::new(doubts, Explanation { sentence, setting_effect: varied, functions, ..explanation })
}

/// Returns whether a cause may be named for this server. Only some causes may be named if the
/// server has not recovered from the search, or if requests fail at any load.
fn may_be_named(case: &ServerFacts, cause: Cause) -> bool {
    // Exhausted memory, files or ports may be the reason why the server has not recovered, so these
    // causes may be named. All other causes describe only a working server.
    let is_used_up = matches!(cause, Cause::Memory | Cause::Files | Cause::Ports);
    // These causes can make requests fail at every load, so such failures do not rule these causes
    // out.
    let by_itself = is_used_up || matches!(cause, Cause::Delay | Cause::Client | Cause::AcceptBacklog);
    (is_used_up || case.goodput_of_broken_server_rps().is_none())
        && (by_itself || case.constant_failure_share().is_none())
}

/// Computes the explanation from the facts about a server and the results of the experiments on the
/// server.
pub fn explanation_from_facts(
    case: &ServerFacts,
    changes: &InterventionOutcomes,
    load_line_rps: LoadLine,
) -> Explanation {
    let answers = FeatureAnswers::from_facts(case);
    let of =
        |effects: &[(Intervention, Effect)]| Posterior::compute(EvidenceWeights::fitted_to_corpus(), &answers, effects);
    let (before, posterior) = (of(&[]), of(&changes.effects()));
    let causes = posterior.causes();
    let seen = case.has_steady_loads() && case.target_loss.is_none();
    // If the server process ended, the kernel may still report that it killed the process for lack
    // of memory. The cause memory may therefore be named although the server process is gone.
    let can_tell = |cause: Cause| (seen || cause == Cause::Memory) && may_be_named(case, cause);
    let first = causes.first().filter(|it| posterior.named_cause == Some(it.cause) && can_tell(it.cause));
    let told: Vec<&CauseProbability> = causes.iter().filter(|it| it.probability >= REPORTED_PROBABILITY_MIN).collect();
    let shown = if first.is_some() { &told[..1] } else { &told[..told.len().min(CAUSES_SHOWN_MAX)] };
    let text = |cause: Cause| causes::cause_card(cause).map(|card| (card.describe)(case));
    let named = |it: &&CauseProbability| LikelyCause {
        cause: it.cause,
        probability: it.probability,
        subject: text(it.cause).map_or_else(String::new, |text| text.subject),
    };
    let intervened = |made: &InterventionOutcome| InterventionReport {
        intervention: made.intervention,
        predictions: interventions::prediction_texts(&before, made.intervention),
        measured: made.measured_text(),
        supports: made.more_probable_causes(&before),
        contradicts: made.less_probable_causes(&before),
    };
    let names: Vec<Cause> = shown.iter().map(|it| it.cause).collect();
    Explanation {
        cause: first.map_or(Cause::Unknown, |first| first.cause),
        causes: told.iter().map(named).collect(),
        abstained: first.is_none(),
        request_places: in_flight_breakdown::breakdown_at_each_load(case),
        sentence: match first.and_then(|first| text(first.cause)) {
            Some(text) => text.sentence_for_server(case),
            None => not_known::unknown_cause_sentence(case, &names).into(),
        },
        visible_effect: first.and_then(|first| text(first.cause)?.visible_effect),
        evidence: supporting_signals(case, shown),
        // Without any load, no cause is ruled out.
        ruled_out: if seen { ruled_out_causes(case, &causes, changes) } else { Vec::new() },
        interventions: changes.0.iter().map(intervened).collect(),
        setting_effect: None,
        missing_evidence: if first.is_some() { Vec::new() } else { not_known::missing_evidence(case, &names) },
        line_prediction: first.and_then(|first| predict_line_without_cause(case, first.cause)),
        demands: case.demands.clone(),
        functions: None,
        load_line_rps,
    }
}

/// Causes with a lower probability than this threshold are not reported.
const REPORTED_PROBABILITY_MIN: f64 = 0.01;
/// The number of possible causes that are shown if no cause is named.
const CAUSES_SHOWN_MAX: usize = 3;
/// An answer is evidence against a cause if the answer's log ratio ([`EvidenceTerm::log_ratio`]) is
/// at most the negative of this value.
const EVIDENCE_LOG_RATIO_MIN: f64 = 1.0;

/// Returns the signals of the answers that support the shown causes, the strongest first. Each
/// signal appears once.
fn supporting_signals(case: &ServerFacts, causes: &[&CauseProbability]) -> Vec<SignalEvidence> {
    let mut told: Vec<SignalEvidence> = Vec::new();
    for cause in causes {
        let mut terms: Vec<&EvidenceTerm> = cause.candidate.terms.iter().filter(|it| it.log_ratio > 0.0).collect();
        terms.sort_by(|a, b| b.log_ratio.total_cmp(&a.log_ratio));
        // The first answer (index 0) is the answer of most servers, so this answer is no evidence.
        for signal in terms.iter().filter(|it| it.answer_index > 0).flat_map(|it| it.feature.card().signals) {
            let [low, line, past] = case.values_at_each_load(*signal);
            let known = low.is_some() || line.is_some() || past.is_some();
            if known && told.iter().all(|other| other.signal != *signal) {
                told.push(SignalEvidence { signal: *signal, low, line, past, supports: cause.cause });
            }
        }
    }
    told
}

/// Returns the improbable causes, each with the strongest evidence against it.
fn ruled_out_causes(
    case: &ServerFacts,
    causes: &[CauseProbability],
    changes: &InterventionOutcomes,
) -> Vec<(Cause, String)> {
    let out = causes.iter().filter(|it| it.probability < REPORTED_PROBABILITY_MIN);
    let why = |it: &CauseProbability| {
        let against = it.candidate.terms.iter().filter(|term| term.log_ratio <= -EVIDENCE_LOG_RATIO_MIN);
        // The reason is an answer to a feature that this cause lists. Without such an answer, the
        // reason is an answer to a feature of another cause.
        let own = |term: &&EvidenceTerm| it.candidate.form.expects.iter().any(|(of, _)| *of == term.feature);
        let term = against.clone().find(own).or_else(|| against.clone().next())?;
        Some((it.cause, answer_with_figure_text(case, term.feature, term.answer_index)))
    };
    let changed = |it: &CauseProbability| {
        let denied = changes.0.iter().find(|made| {
            let given = made
                .effect
                .map(|effect| it.candidate.card.predicts.for_intervention(made.intervention).probability(effect));
            given.is_some_and(|given| given <= SMALL_SHARE_MAX)
        })?;
        let predicted = it
            .candidate
            .card
            .predicts
            .for_intervention(denied.intervention)
            .predicted_effects_text(denied.intervention);
        let reason = format!(
            "this cause predicts the effect '{predicted}' for the experiment '{experiment}', but the measured effect \
             is '{measured}'",
            experiment = denied.intervention.description(),
            measured = denied.measured_text()
        );
        Some((it.cause, reason))
    };
    out.filter_map(|it| why(it).or_else(|| changed(it))).collect()
}

/// Formats the answer to a feature together with the measured figure that the answer depends on.
fn answer_with_figure_text(case: &ServerFacts, feature: Feature, value: usize) -> String {
    let card = feature.card();
    let answer = card.values[value].text;
    let Some(signal) = card.signals.iter().find(|signal| case.max_at_high_load(**signal).is_some()) else {
        return answer.to_owned();
    };
    let value = |value: Option<f64>| value.map(|value| format_signal_value(*signal, value));
    let signal_name = signal.text().words;
    let [low, line, past] = case.values_at_each_load(*signal);
    let top = line.into_iter().chain(past).reduce(f64::max);
    match (value(low), value(top)) {
        (Some(low), Some(high)) => {
            format!("{answer} ({signal_name}: {low} at a low load, {high} at or above the load line)")
        }
        (None, Some(high)) => format!("{answer} ({signal_name}: {high})"),
        (_, None) => answer.to_owned(),
    }
}

fn cause_of_saturated_resource(resource: UsedResource) -> Cause {
    match resource {
        UsedResource::Thread | UsedResource::Interpreter => Cause::OneThread,
        UsedResource::Cores | UsedResource::AllowedCores => Cause::Cpu,
        UsedResource::Quota => Cause::CpuQuota,
        UsedResource::Downstream => Cause::Downstream,
        UsedResource::Client => Cause::Client,
    }
}

/// Predicts the load line if `cause` were removed: the lowest rate that saturates one of the other
/// resources. Returns `None` if no prediction is possible.
fn predict_line_without_cause(case: &ServerFacts, cause: Cause) -> Option<LinePrediction> {
    if cause == Cause::Gc {
        return predict_without_gc(case);
    }
    // If the cause is no limit of the server, no next limit can be predicted. A change of the code
    // against a slow start or slow responses also changes the demand of a request.
    if matches!(cause, Cause::None | Cause::Unknown | Cause::Delay | Cause::Client | Cause::WarmUp) {
        return None;
    }
    let card = causes::cause_card(cause)?;
    let next = case.demands.iter().find(|demand| !card.resources.contains(&demand.resource))?;
    let upper_rps = next.range_rps.1;
    let loads = [&case.low, &case.half, &case.line, &case.past];
    let interpreter = queues::has_shared_interpreter(case).then(|| interpreter_demand(&loads)).flatten();
    let is_next =
        |own: &ServiceDemand| own.ceiling_rps < next.ceiling_rps && !card.resources.contains(&UsedResource::Thread);
    let next = interpreter.as_ref().filter(|own| is_next(own)).unwrap_or(next);
    // The server already reached a higher throughput than the estimated rate that saturates the
    // next resource, so the estimate is wrong.
    if next.ceiling_rps < case.sustained_rps {
        return None;
    }
    // `sustained_rps` may come from a closed loop with few users, which may get a higher throughput
    // than an open loop. The load line is the rate of an open loop, so `line_rps` is at most 10 %
    // above the measured load line.
    let most_rps = case.sustained_rps;
    let line_rps = if case.lower_rps > 0.0 { most_rps.min((1.0 + SMALL_SHARE_MAX) * case.lower_rps) } else { most_rps };
    // Requests a second are converted into the unit of the load line, such as sessions a second.
    let offered = |requests_rps: f64| requests_rps / case.requests_each;
    let lower_rps = next.range_rps.0;
    Some(LinePrediction {
        line_rps: offered(next.ceiling_rps),
        range_rps: (offered(lower_rps.max(case.sustained_rps)), offered(upper_rps)),
        next_cause: cause_of_saturated_resource(next.resource),
        doubled_limit_line_rps: (card.is_countable && !case.is_load_line_uncertain())
            .then_some(offered((2.0 * line_rps).min(next.ceiling_rps))),
    })
}

/// Predicts the load line without garbage collection, if the collector and requests together
/// saturate the cores.
fn predict_without_gc(case: &ServerFacts) -> Option<LinePrediction> {
    let full = case.are_cores_saturated()? || case.are_bound_cores_saturated() == Some(true);
    let share = case.gc_share().filter(|share| full && (0.0..SATURATED_THREAD_SHARE_MIN).contains(share))?;
    let line_rps = case.sustained_rps / (1.0 - share) / case.requests_each;
    // Without garbage collection, requests would get between half and all of the CPU time that
    // the garbage collector uses now.
    let least_rps = case.sustained_rps / (1.0 - share / 2.0) / case.requests_each;
    Some(LinePrediction {
        line_rps,
        range_rps: (least_rps, line_rps * (1.0 + SMALL_SHARE_MAX)),
        next_cause: Cause::Cpu,
        doubled_limit_line_rps: None,
    })
}

/// Returns the doubts about the explanation beyond the doubts of the search, such as disturbed or
/// missing loads.
fn explanation_doubts(findings: &Findings, loads: &Loads, case: &ServerFacts) -> Doubts {
    let mut doubts = Doubts::default();
    let steady = [("low load", loads.low), ("load at half the load line", loads.half)];
    let steady = steady.into_iter().chain([("load at the load line", loads.line)]);
    let steady = steady.chain([("load above the load line", loads.past)]);
    let disturbed: Vec<(&str, Interference)> = steady
        .filter_map(|(name, run)| Some((name, Interference::from_run(run?))))
        .filter(|(_, others)| others.is_disturbed)
        .collect();
    if !disturbed.is_empty() {
        let names = disturbed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let text = match findings.interference.is_disturbed {
            // This text continues the sentence about the disturbed search.
            true => format!("these steady loads were disturbed, too: {names}"),
            false => {
                let all: Vec<&Interference> = disturbed.iter().map(|(_, others)| others).collect();
                format!(
                    "the machine was disturbed during steady loads ({names}): {disturbance}",
                    disturbance = Interference::mean_disturbance_text(&all)
                )
            }
        };
        doubts.add(DoubtKind::Interference, text);
    }
    let missing: Vec<&str> =
        [("low load", loads.low), ("load at the load line", loads.line), ("load above the load line", loads.past)]
            .into_iter()
            .filter(|(_, run)| run.is_none())
            .map(|(what, _)| what)
            .collect();
    if !missing.is_empty() {
        let text = format!(
            "the study has no {missing_loads}, so plimsoll cannot tell how the server's figures change with the load",
            missing_loads = missing.join(" and no ")
        );
        doubts.add(DoubtKind::Unmeasured, text);
    }
    if findings.load_line.rps <= 0.0 {
        doubts.add(
            DoubtKind::NoSuccess,
            "there is no load line, so plimsoll chose the rates of the loads relative to the peak throughput",
        );
    }
    if let (Some(client), Some(server)) =
        (case.max_at_high_load(Signal::ClientCores), case.max_at_high_load(Signal::ServerCores))
        && case.are_cores_saturated() == Some(true)
        && client > CONSIDERABLE_SHARE_MIN * server
    {
        let text = format!(
            "plimsoll itself uses {client:.2} cores of the server's machine: run plimsoll on another machine to \
             free these cores"
        );
        doubts.add(DoubtKind::Generator, text);
    }
    if let Some(ns) = case.held_back_ns {
        let text = format!(
            "The server delays responses by up to {delay}, at low loads too. It sends a response in small pieces, and \
             its kernel waits for the acknowledgement of the first piece. To avoid the delay, set TCP_NODELAY in the \
             server, or send each response with one write.",
            delay = crate::format::duration(ns)
        );
        doubts.add(DoubtKind::Server, text);
    }
    doubts
}
