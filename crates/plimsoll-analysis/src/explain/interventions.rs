//! The choice of experiments that separate the possible causes of a load line
//! ([`informative_interventions`]). An experiment (intervention) changes one thing and compares the
//! goodput.
//!
//! Except for bursts and simultaneous requests, the loads of experiments are closed loops with
//! enough users to saturate the server. The goodput of a closed loop that saturates the server is
//! the server's capacity.
//!
//! Not here: the predictions of causes (`causes`), the results (`intervention_results`), the time
//! of each experiment (`study::explain`), and the change of a plan (the binary).

use super::causes::Cause;
use super::posterior::{CauseProbability, Posterior};
use super::predictions::{ANY_EFFECT, Prediction};
use super::server_facts::{Loads, ServerFacts};
use super::thresholds::TWOFOLD_FACTOR;
use crate::find::Findings;
use plimsoll_model::Intervention;

/// The minimum probability of a cause that experiments try to confirm or rule out.
const UNDECIDED_PROBABILITY_MIN: f64 = 0.01;
/// The maximum number of causes that experiments try to separate.
const SEPARATED_CAUSES_MAX: usize = 4;
/// The maximum number of experiments in an explanation.
const EXPERIMENTS_MAX: usize = 4;
/// The minimum score of an experiment that is worth its time. The score is the distance of the
/// causes' predictions, weighted by the causes' probabilities.
const EXPERIMENT_SCORE_MIN: f64 = 0.02;

/// Returns what a cause predicts for the goodput in an experiment.
fn prediction_of_cause(cause: &CauseProbability, intervention: Intervention) -> Prediction {
    cause.candidate.card.predicts.for_intervention(intervention)
}

/// Returns the causes that an experiment could still confirm or rule out, the most probable first.
pub(super) fn undecided_causes(posterior: &Posterior) -> Vec<CauseProbability<'_>> {
    posterior
        .causes()
        .into_iter()
        .filter(|it| it.probability >= UNDECIDED_PROBABILITY_MIN)
        .take(SEPARATED_CAUSES_MAX)
        .collect()
}

/// Returns the possible experiments that separate the remaining causes, the most informative first.
/// The score of an experiment is the distance of two causes' predictions, weighted by the
/// probabilities of both causes. `flagged`: experiments that a command-line flag requested.
/// Requested experiments are always made, and come first.
pub fn informative_interventions(
    posterior: &Posterior,
    possible: &[Intervention],
    flagged: &[Intervention],
) -> Vec<Intervention> {
    let causes = posterior.causes();
    let standing: Vec<&CauseProbability> =
        causes.iter().filter(|it| it.probability >= UNDECIDED_PROBABILITY_MIN).collect();
    let may_be_ours = standing.iter().any(|it| it.cause == Cause::Client);
    let score = |intervention: Intervention| {
        let apart = standing.iter().enumerate().map(|(at, one)| {
            let others = &standing[at + 1..];
            let pair = |other: &&&CauseProbability| {
                let distance = prediction_of_cause(one, intervention)
                    .total_variation_distance(&prediction_of_cause(other, intervention));
                one.probability * other.probability * distance
            };
            others.iter().map(|other| pair(&other)).sum::<f64>()
        });
        // Even a single probable cause is tested: an experiment with a clear prediction may refute
        // it.
        let tested = causes
            .first()
            .map_or(0.0, |one| prediction_of_cause(one, intervention).total_variation_distance(&ANY_EFFECT));
        // If no other cause is named, an experiment tests whether plimsoll is the limit: the first
        // experiment if plimsoll may be the limit, otherwise the last.
        let is_open = posterior.named_cause.is_none_or(|cause| cause == Cause::Client);
        let doubt = match intervention == Intervention::SecondGenerator && is_open {
            true if may_be_ours => 1.0,
            true => EXPERIMENT_SCORE_MIN,
            false => 0.0,
        };
        apart.sum::<f64>() + EXPERIMENT_SCORE_MIN * tested * TWOFOLD_FACTOR + doubt
    };
    let is_flagged = |it: &Intervention| flagged.contains(it);
    // The experiment with a second process of plimsoll only shows whether plimsoll is the limit.
    let tells =
        |it: &Intervention| *it != Intervention::SecondGenerator || may_be_ours || posterior.named_cause.is_none();
    let made = possible.iter().filter(|it| **it != Intervention::Control && tells(it));
    let scored =
        made.map(|it| (score(*it), *it)).filter(|(score, it)| *score >= EXPERIMENT_SCORE_MIN || is_flagged(it));
    let mut worth: Vec<(f64, Intervention)> = scored.collect();
    worth.sort_by(|a, b| is_flagged(&b.1).cmp(&is_flagged(&a.1)).then(b.0.total_cmp(&a.0)).then(a.1.cmp(&b.1)));
    let count = worth.iter().filter(|(_, it)| is_flagged(it)).count().max(EXPERIMENTS_MAX);
    worth.into_iter().take(count).map(|(_, intervention)| intervention).collect()
}

/// Returns the predicted effect of an experiment in words, for each remaining cause that predicts
/// an effect.
pub fn prediction_texts(posterior: &Posterior, intervention: Intervention) -> Vec<(Cause, String)> {
    let told = undecided_causes(posterior).into_iter().map(|it| (it.cause, prediction_of_cause(&it, intervention)));
    told.filter(|(_, it)| !it.is_undecided())
        .map(|(cause, it)| (cause, it.predicted_effects_text(intervention)))
        .collect()
}

/// The number of requests that a server serves at once, for experiments that send simultaneous
/// requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerConcurrency {
    /// The number of requests in service at once at the server's peak.
    pub requests_in_service: u64,
    /// The mean service time of a single request, ns.
    pub alone_ns: f64,
}

/// The range of `served` for a useful experiment. With fewer simultaneous requests, the experiment
/// does not show whether one request waits for another. With more simultaneous requests, the
/// experiment is already a load that saturates the server.
const SIMULTANEOUS_SERVED_RANGE: std::ops::RangeInclusive<f64> = 1.6..=256.0;
/// The range of `alone_ns` for a useful experiment. If requests are shorter, waking a thread takes
/// much of the response time. If requests are longer, the budget allows too few requests.
const SIMULTANEOUS_SERVICE_TIME_RANGE_NS: std::ops::RangeInclusive<f64> = 1e6..=2e8;

impl ServerConcurrency {
    /// Computes the concurrency of the server from these loads; `None` if no experiment can use it.
    pub fn from_findings(findings: &Findings, loads: &Loads) -> Option<ServerConcurrency> {
        let case = ServerFacts::from_loads(findings, loads);
        let (served, alone_ns) = (case.requests_in_service()?, case.alone_ns?);
        let can_be = SIMULTANEOUS_SERVED_RANGE.contains(&served)
            && SIMULTANEOUS_SERVICE_TIME_RANGE_NS.contains(&alone_ns)
            && case.requests_each <= 1.0;
        can_be.then_some(ServerConcurrency { requests_in_service: served.round() as u64, alone_ns })
    }

    /// Returns the number of simultaneous requests or users of an experiment; `None` for an
    /// experiment without such a number.
    pub fn simultaneous_requests(&self, intervention: Intervention) -> Option<u64> {
        match intervention {
            Intervention::BurstsAtTwiceConcurrency => Some(2 * self.requests_in_service),
            Intervention::BurstsAtConcurrency => Some(self.requests_in_service),
            _ => None,
        }
    }
}
