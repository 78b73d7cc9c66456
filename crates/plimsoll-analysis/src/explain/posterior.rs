//! The probability of each cause given the observations ([`Posterior`]). Bayes' rule combines the
//! answers to all features (questions about the server) and the effects of all experiments.
//!
//! Not here: the probabilities of answers (`likelihoods`), and texts.

use super::causes::Cause;
use super::causes::card::{CauseCard, CauseForm};
use super::causes::cause_forms;
use super::features::Feature;
use super::likelihoods::EvidenceWeights;
use super::predictions::Effect;
use super::server_facts::ServerFacts;
use plimsoll_model::Intervention;

/// The answers to all features, in the order of [`Feature::ALL`]: the index of an answer, or `None`
/// if nothing was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureAnswers(pub Vec<Option<usize>>);

impl FeatureAnswers {
    /// Computes the answers to all features from the facts about one server.
    pub fn from_facts(case: &ServerFacts) -> FeatureAnswers {
        FeatureAnswers(Feature::ALL.iter().map(|feature| (feature.card().read)(case)).collect())
    }

    /// Returns the features with an observed answer, and the index of the answer.
    pub fn observed_answers(&self) -> impl Iterator<Item = (Feature, usize)> {
        Feature::ALL.iter().zip(&self.0).filter_map(|(feature, answer)| Some((*feature, (*answer)?)))
    }
}

/// The evidence that one answer gives for or against a cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EvidenceTerm {
    /// The feature (a question about the server) that was answered.
    pub feature: Feature,
    /// The index of the answer into the feature's answers.
    pub answer_index: usize,
    /// Natural logarithm of a ratio: the probability of the answer under the cause, divided by its
    /// probability for any server. If the value is above 0, the answer supports the cause.
    pub log_ratio: f64,
}

/// One form (manifestation) in which a cause shows itself, with its probability for the tested
/// server.
#[derive(Debug, Clone)]
pub struct CauseFormProbability {
    /// The cause.
    pub cause: Cause,
    /// The description of the cause.
    pub card: &'static CauseCard,
    /// The form of the cause, which determines the expected answers to the features (questions
    /// about the server).
    pub form: &'static CauseForm,
    /// The probability of this form of the cause given the observations, 0..=1.
    pub probability: f64,
    /// The evidence for and against this form of the cause, the strongest first.
    pub terms: Vec<EvidenceTerm>,
}

/// A cause with its probability, the sum over all its manifestations (forms).
#[derive(Debug, Clone, Copy)]
pub struct CauseProbability<'a> {
    /// The cause.
    pub cause: Cause,
    /// The probability of the cause given the observations, 0..=1.
    pub probability: f64,
    /// The most probable manifestation of the cause.
    pub candidate: &'a CauseFormProbability,
}

/// The probabilities of all causes given the observations.
#[derive(Debug, Clone)]
pub struct Posterior {
    /// The manifestations (forms) of all causes, the most probable first.
    pub candidates: Vec<CauseFormProbability>,
    /// The probability that none of the known causes applies, 0..=1.
    pub unknown: f64,
    /// The cause that the explanation names; `None` if no cause is probable enough.
    pub named_cause: Option<Cause>,
}

/// Prior probability that none of the known causes applies.
const UNKNOWN_PRIOR: f64 = 0.1;

impl Posterior {
    /// Computes the probabilities from the facts about a server and the effects of experiments.
    pub fn from_facts(case: &ServerFacts, effects: &[(Intervention, Effect)]) -> Posterior {
        Posterior::compute(EvidenceWeights::fitted_to_corpus(), &FeatureAnswers::from_facts(case), effects)
    }

    /// Computes the probabilities from these answers and effects, with the given weights.
    pub fn compute(
        weights: &EvidenceWeights,
        answers: &FeatureAnswers,
        effects: &[(Intervention, Effect)],
    ) -> Posterior {
        let prior = (1.0 - UNKNOWN_PRIOR) / cause_forms().count() as f64;
        let mut candidates: Vec<CauseFormProbability> = cause_forms()
            .zip(&weights.log_ratios)
            .map(|((cause, card, form), log_ratios)| {
                let term = |((feature, value), log_ratios): ((&Feature, &Option<usize>), &Vec<f64>)| {
                    let value = (*value)?;
                    Some(EvidenceTerm { feature: *feature, answer_index: value, log_ratio: log_ratios[value] })
                };
                let mut terms: Vec<EvidenceTerm> =
                    Feature::ALL.iter().zip(&answers.0).zip(log_ratios).filter_map(term).collect();
                terms.sort_by(|a, b| b.log_ratio.abs().total_cmp(&a.log_ratio.abs()));
                let of = |(intervention, effect): &(Intervention, Effect)| {
                    (card.predicts.for_intervention(*intervention).probability(*effect) * Effect::ALL.len() as f64).ln()
                };
                let seen: f64 = terms.iter().map(|term| term.log_ratio).sum();
                let changed: f64 = effects.iter().map(of).sum();
                let probability = prior.ln() + weights.temperature * (seen + changed);
                CauseFormProbability { cause, card, form, probability, terms }
            })
            .collect();
        let most = candidates.iter().map(|it| it.probability).fold(UNKNOWN_PRIOR.ln(), f64::max);
        let sum: f64 = candidates.iter().map(|it| (it.probability - most).exp()).sum();
        let unknown = (UNKNOWN_PRIOR.ln() - most).exp();
        for candidate in &mut candidates {
            candidate.probability = (candidate.probability - most).exp() / (sum + unknown);
        }
        candidates.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        let mut found = Posterior { candidates, unknown: unknown / (sum + unknown), named_cause: None };
        found.named_cause =
            found.causes().first().filter(|it| it.probability >= weights.naming_probability_min).map(|it| it.cause);
        found
    }

    /// Returns the causes with their probabilities, the most probable first.
    pub fn causes(&self) -> Vec<CauseProbability<'_>> {
        let mut found: Vec<CauseProbability> = Vec::new();
        for candidate in &self.candidates {
            let cause = candidate.cause;
            match found.iter_mut().find(|other| other.cause == cause) {
                Some(other) => other.probability += candidate.probability,
                None => found.push(CauseProbability { cause, probability: candidate.probability, candidate }),
            }
        }
        found.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        found
    }
}
