//! The predictions of a cause for experiments ([`Predictions`]): the probability that the goodput
//! rises, stays or falls.
//!
//! Not here: the causes (`causes`), and which experiments are made (`interventions`).

use plimsoll_model::Intervention;
use serde::{Deserialize, Serialize};

/// The effect of an experiment (intervention) on the goodput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The goodput rises by more than noise, and by a third at least.
    Rises,
    /// The goodput stays: the change is within the noise, at most about 15 %.
    Stays,
    /// The goodput falls by more than noise, and by a quarter at least.
    Falls,
}

impl Effect {
    /// All effects.
    pub const ALL: [Effect; 3] = [Effect::Rises, Effect::Stays, Effect::Falls];

    /// Returns the word for the effect on throughput, or on simultaneous requests.
    pub(super) fn text_for_intervention(self, intervention: Intervention) -> &'static str {
        match (intervention, self) {
            (Intervention::BurstsAtTwiceConcurrency | Intervention::BurstsAtConcurrency, Effect::Rises) => {
                "simultaneous requests take as long \
             as a single request"
            }
            (Intervention::BurstsAtTwiceConcurrency, Effect::Stays) => {
                "the server handles two groups of requests, one group after the other"
            }
            (Intervention::BurstsAtTwiceConcurrency, Effect::Falls) => "the server handles one request after the other",
            (Intervention::BurstsAtConcurrency, Effect::Falls) => "the simultaneous requests wait in a queue",
            (_, Effect::Rises) => "rises",
            (_, Effect::Stays) => "unchanged",
            (_, Effect::Falls) => "falls",
        }
    }
}

/// What a cause predicts for one experiment: the probability of each effect on the goodput, in the
/// order of [`Effect::ALL`]. The probabilities sum to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction([f64; 3]);

/// Prediction: the goodput rises, without known exceptions.
pub(super) const ALWAYS_RISES: Prediction = Prediction([0.92, 0.05, 0.03]);
/// Prediction: the goodput stays, without known exceptions.
pub(super) const ALWAYS_STAYS: Prediction = Prediction([0.04, 0.92, 0.04]);
/// Prediction: the goodput falls, without known exceptions.
pub(super) const ALWAYS_FALLS: Prediction = Prediction([0.03, 0.05, 0.92]);
/// Prediction: the goodput rises, with known exceptions.
pub(super) const MOSTLY_RISES: Prediction = Prediction([0.70, 0.24, 0.06]);
/// Prediction: the goodput stays, with known exceptions.
pub(super) const MOSTLY_STAYS: Prediction = Prediction([0.14, 0.74, 0.12]);
/// Prediction: the goodput falls, with known exceptions.
pub(super) const MOSTLY_FALLS: Prediction = Prediction([0.06, 0.24, 0.70]);
/// Prediction: the goodput rises or stays, and hardly ever falls.
pub(super) const RISES_OR_STAYS: Prediction = Prediction([0.45, 0.48, 0.07]);
/// Prediction: the goodput stays or falls, and hardly ever rises.
pub(super) const STAYS_OR_FALLS: Prediction = Prediction([0.07, 0.48, 0.45]);
/// Prediction: the goodput rises or falls, and hardly ever stays.
pub(super) const RISES_OR_FALLS: Prediction = Prediction([0.48, 0.07, 0.45]);
/// Prediction: all effects on the goodput are equally probable, so the experiment does not test the
/// cause.
pub(super) const ANY_EFFECT: Prediction = Prediction([1.0 / 3.0; 3]);

/// The minimum probability of an effect that the text of a prediction mentions.
const MENTIONED_EFFECT_PROBABILITY_MIN: f64 = 0.3;

impl Prediction {
    /// Returns the probability of an effect.
    pub fn probability(&self, effect: Effect) -> f64 {
        self.0[effect as usize]
    }

    /// Returns whether all effects are equally probable, so that the experiment does not test the
    /// cause.
    pub fn is_undecided(&self) -> bool {
        *self == ANY_EFFECT
    }

    /// Returns the distance of two predictions, 0..=1: half the sum of the absolute differences of
    /// their probabilities (total variation).
    pub(super) fn total_variation_distance(&self, other: &Prediction) -> f64 {
        self.0.iter().zip(&other.0).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0
    }

    /// Formats the predicted effects of `intervention` without a subject, such as `rises or
    /// unchanged`.
    pub fn predicted_effects_text(&self, intervention: Intervention) -> String {
        let predicted =
            Effect::ALL.iter().filter(|effect| self.probability(**effect) >= MENTIONED_EFFECT_PROBABILITY_MIN);
        predicted.map(|effect| effect.text_for_intervention(intervention)).collect::<Vec<_>>().join(" or ")
    }
}

/// What a cause predicts for each experiment. There is no default value: a new cause must state
/// every prediction.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "each is the intervention of its name")]
pub struct Predictions {
    pub reference: Prediction,
    pub more_users: Prediction,
    pub new_connections: Prediction,
    pub kept_connections: Prediction,
    pub head: Prediction,
    pub smaller_answer: Prediction,
    pub larger_body: Prediction,
    pub smaller_body: Prediction,
    pub second_generator: Prediction,
    pub stopped: Prediction,
    pub other_clients: Prediction,
    pub bursts: Prediction,
    pub together: Prediction,
    pub abreast: Prediction,
}

impl Predictions {
    /// The predictions of a cause that no experiment tests, such as a cause outside the server.
    pub(super) const UNTESTED_CAUSE: Predictions = Predictions {
        reference: ANY_EFFECT,
        more_users: ANY_EFFECT,
        new_connections: ANY_EFFECT,
        kept_connections: ANY_EFFECT,
        head: ANY_EFFECT,
        smaller_answer: ANY_EFFECT,
        larger_body: ANY_EFFECT,
        smaller_body: ANY_EFFECT,
        second_generator: ANY_EFFECT,
        stopped: ANY_EFFECT,
        other_clients: ANY_EFFECT,
        bursts: ANY_EFFECT,
        together: ANY_EFFECT,
        abreast: ANY_EFFECT,
    };

    /// The predictions of causes whose resource is always busy: cores, a thread, or a CPU quota.
    pub(super) const BUSY_RESOURCE_PREDICTIONS: Predictions = Predictions {
        reference: RISES_OR_STAYS,
        more_users: ALWAYS_STAYS,
        new_connections: STAYS_OR_FALLS,
        kept_connections: RISES_OR_STAYS,
        head: RISES_OR_STAYS,
        smaller_answer: RISES_OR_STAYS,
        larger_body: STAYS_OR_FALLS,
        smaller_body: RISES_OR_STAYS,
        second_generator: STAYS_OR_FALLS,
        stopped: MOSTLY_STAYS,
        other_clients: ALWAYS_STAYS,
        bursts: MOSTLY_STAYS,
        together: ANY_EFFECT,
        abreast: ANY_EFFECT,
    };

    /// Returns the prediction for one experiment.
    pub fn for_intervention(&self, intervention: Intervention) -> Prediction {
        match intervention {
            Intervention::Control => ANY_EFFECT,
            Intervention::Reference => self.reference,
            Intervention::MoreUsers => self.more_users,
            Intervention::NewConnections => self.new_connections,
            Intervention::KeptConnections => self.kept_connections,
            Intervention::Head => self.head,
            Intervention::SmallerAnswer => self.smaller_answer,
            Intervention::LargerBody => self.larger_body,
            Intervention::SmallerBody => self.smaller_body,
            Intervention::SecondGenerator => self.second_generator,
            Intervention::DependencyPauses => self.stopped,
            Intervention::Identities | Intervention::Sources => self.other_clients,
            Intervention::Bursts => self.bursts,
            Intervention::BurstsAtTwiceConcurrency => self.together,
            Intervention::BurstsAtConcurrency => self.abreast,
        }
    }
}
