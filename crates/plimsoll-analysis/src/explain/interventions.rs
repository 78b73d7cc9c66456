//! Changes that tell causes apart: what can be predicted of them ([`Predictions`]), and which are worth making for the causes that
//! remain ([`worth_making`]).
//!
//! All loads are of one kind: as many users as fill the server, each waiting for its answer, so that what is answered is what it
//! can answer.
//!
//! Not here: what each cause predicts (`causes`), what became of those that were made (`made_changes`), when they are made (`study::explain`), and how a plan is changed
//! (the binary).

use super::cause::Cause;
use super::contrast::{Contrast, Loads};
use super::posterior::{CauseProbability, Posterior};
use super::thresholds::AS_FAST;
use crate::find::Findings;
use plimsoll_model::Intervention;
use serde::{Deserialize, Serialize};

/// What becomes of what succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It rises by more than noise, and by a third at least.
    Rises,
    /// It stays.
    Stays,
    /// It falls by more than noise, and by a quarter at least.
    Falls,
}

impl Effect {
    /// All of them.
    pub const ALL: [Effect; 3] = [Effect::Rises, Effect::Stays, Effect::Falls];
}

/// What a cause predicts of an intervention: the probability of each effect, in the order of [`Effect::ALL`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction([f64; 3]);

/// A law without known exceptions.
pub(super) const RISES: Prediction = Prediction([0.92, 0.05, 0.03]);
/// See [`RISES`].
pub(super) const STAYS: Prediction = Prediction([0.04, 0.92, 0.04]);
/// See [`RISES`].
pub(super) const FALLS: Prediction = Prediction([0.03, 0.05, 0.92]);
/// A law with known exceptions.
pub(super) const MOSTLY_RISES: Prediction = Prediction([0.70, 0.24, 0.06]);
/// See [`MOSTLY_RISES`].
pub(super) const MOSTLY_STAYS: Prediction = Prediction([0.14, 0.74, 0.12]);
/// See [`MOSTLY_RISES`].
pub(super) const MOSTLY_FALLS: Prediction = Prediction([0.06, 0.24, 0.70]);
/// It may matter or not, and never goes the other way.
pub(super) const RISES_OR_STAYS: Prediction = Prediction([0.45, 0.48, 0.07]);
/// See [`RISES_OR_STAYS`].
pub(super) const STAYS_OR_FALLS: Prediction = Prediction([0.07, 0.48, 0.45]);
/// Either it is limited together, or not at all.
pub(super) const RISES_OR_FALLS: Prediction = Prediction([0.48, 0.07, 0.45]);
/// Nothing follows from it.
pub(super) const OPEN: Prediction = Prediction([1.0 / 3.0; 3]);

/// An effect with this probability is told as predicted.
const PREDICTED: f64 = 0.3;

impl Prediction {
    /// How probable an effect is.
    pub fn probability(&self, effect: Effect) -> f64 {
        self.0[effect as usize]
    }

    /// Whether nothing follows from it.
    pub fn is_open(&self) -> bool {
        *self == OPEN
    }

    /// How far two predictions are apart: half the sum of differences (total variation), 0..=1.
    fn distance(&self, other: &Prediction) -> f64 {
        self.0.iter().zip(&other.0).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0
    }

    /// As a sentence without a subject, of what succeeds with `intervention`.
    pub fn text(&self, intervention: Intervention) -> String {
        let word = |effect: &Effect| match (intervention, effect) {
            (Intervention::Together | Intervention::Abreast, Effect::Rises) => "comes as soon as alone",
            (Intervention::Together, Effect::Stays) => "comes in two parts",
            (Intervention::Together, Effect::Falls) => "comes one after the other",
            (Intervention::Abreast, Effect::Falls) => "waits its turn",
            (_, Effect::Rises) => "rises",
            (_, Effect::Stays) => "stays",
            (_, Effect::Falls) => "falls",
        };
        let predicted = Effect::ALL.iter().filter(|effect| self.probability(**effect) >= PREDICTED);
        predicted.map(word).collect::<Vec<_>>().join(" or ")
    }
}

/// What a cause predicts of each intervention. There is no default: who adds one says what each cause predicts.
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
    /// Of what is no limit of the server's.
    pub(super) const OPEN: Predictions = Predictions {
        reference: OPEN,
        more_users: OPEN,
        new_connections: OPEN,
        kept_connections: OPEN,
        head: OPEN,
        smaller_answer: OPEN,
        larger_body: OPEN,
        smaller_body: OPEN,
        second_generator: OPEN,
        stopped: OPEN,
        other_clients: OPEN,
        bursts: OPEN,
        together: OPEN,
        abreast: OPEN,
    };

    /// That of an intervention.
    pub fn of(&self, intervention: Intervention) -> Prediction {
        match intervention {
            Intervention::Control => OPEN,
            Intervention::Reference => self.reference,
            Intervention::MoreUsers => self.more_users,
            Intervention::NewConnections => self.new_connections,
            Intervention::KeptConnections => self.kept_connections,
            Intervention::Head => self.head,
            Intervention::SmallerAnswer => self.smaller_answer,
            Intervention::LargerBody => self.larger_body,
            Intervention::SmallerBody => self.smaller_body,
            Intervention::SecondGenerator => self.second_generator,
            Intervention::Stopped => self.stopped,
            Intervention::Identities | Intervention::Sources => self.other_clients,
            Intervention::Bursts => self.bursts,
            Intervention::Together => self.together,
            Intervention::Abreast => self.abreast,
        }
    }
}

/// Causes below this probability are not told apart any further.
const AT_STAKE: f64 = 0.01;
/// So many of them are told as what stands.
const CAUSES_MAX: usize = 4;
/// At most so many interventions are made.
const CHANGES_MAX: usize = 4;
/// An intervention that tells causes apart by less than this is not worth its time.
const TELLS_MIN: f64 = 0.02;

/// What a cause predicts of an intervention.
fn prediction(cause: &CauseProbability, intervention: Intervention) -> Prediction {
    cause.candidate.card.predicts.of(intervention)
}

/// Causes that an intervention could still name or deny, the most probable first.
pub(super) fn at_stake(posterior: &Posterior) -> Vec<CauseProbability<'_>> {
    posterior.causes().into_iter().filter(|it| it.probability >= AT_STAKE).take(CAUSES_MAX).collect()
}

/// The interventions that can be made and tell apart the causes that remain, the most telling first: by how far their predictions lie
/// apart, weighted by how probable both causes are. What a flag asks for is made in any case, and first.
pub fn worth_making(posterior: &Posterior, possible: &[Intervention], flagged: &[Intervention]) -> Vec<Intervention> {
    let causes = posterior.causes();
    let standing: Vec<&CauseProbability> = causes.iter().filter(|it| it.probability >= AT_STAKE).collect();
    let score = |intervention: Intervention| {
        let apart = standing.iter().enumerate().map(|(at, one)| {
            let others = &standing[at + 1..];
            let pair = |other: &&&CauseProbability| {
                let distance = prediction(one, intervention).distance(&prediction(other, intervention));
                one.probability * other.probability * distance
            };
            others.iter().map(|other| pair(&other)).sum::<f64>()
        });
        // One that stands nearly alone is put to the test.
        let tested = causes.first().map_or(0.0, |one| prediction(one, intervention).distance(&OPEN));
        apart.sum::<f64>() + TELLS_MIN * tested * AS_FAST
    };
    let is_flagged = |it: &Intervention| flagged.contains(it);
    // A second process of ours tells of us only.
    let ours = standing.iter().any(|it| it.cause == Cause::Client) || posterior.named.is_none();
    let tells = |it: &Intervention| *it != Intervention::SecondGenerator || ours;
    let made = possible.iter().filter(|it| **it != Intervention::Control && tells(it));
    let scored = made.map(|it| (score(*it), *it)).filter(|(score, it)| *score >= TELLS_MIN || is_flagged(it));
    let mut worth: Vec<(f64, Intervention)> = scored.collect();
    worth.sort_by(|a, b| is_flagged(&b.1).cmp(&is_flagged(&a.1)).then(b.0.total_cmp(&a.0)).then(a.1.cmp(&b.1)));
    let count = worth.iter().filter(|(_, it)| is_flagged(it)).count().max(CHANGES_MAX);
    worth.into_iter().take(count).map(|(_, intervention)| intervention).collect()
}

/// What the causes that remain predict, as far as they predict anything.
pub fn predictions(posterior: &Posterior, intervention: Intervention) -> Vec<(Cause, String)> {
    let told = at_stake(posterior).into_iter().map(|it| (it.cause, prediction(&it, intervention)));
    told.filter(|(_, it)| !it.is_open()).map(|(cause, it)| (cause, it.text(intervention))).collect()
}

/// What a server serves at a time, where it can be asked for so many at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Together {
    /// How many it serves at a time.
    pub served: u64,
    /// What one takes that is alone, on average, ns.
    pub alone_ns: f64,
}

/// Of fewer at once it cannot be told that one waits for the other; more are a load.
const TOGETHER: std::ops::RangeInclusive<f64> = 1.6..=256.0;
/// Of requests that take less, what waking somebody takes is a part; of those that take more there is no time for enough.
const TOGETHER_ALONE_NS: std::ops::RangeInclusive<f64> = 1e6..=2e8;

impl Together {
    /// What these loads say, where it can be tried.
    pub fn of(findings: &Findings, loads: &Loads) -> Option<Together> {
        let case = Contrast::of(findings, loads);
        let (served, alone_ns) = (case.at_a_time()?, case.alone_ns?);
        let can_be = TOGETHER.contains(&served) && TOGETHER_ALONE_NS.contains(&alone_ns) && case.requests_each <= 1.0;
        can_be.then_some(Together { served: served.round() as u64, alone_ns })
    }

    /// How many are asked at once; `None`: nobody is.
    pub fn count(&self, intervention: Intervention) -> Option<u64> {
        match intervention {
            Intervention::Together => Some(2 * self.served),
            Intervention::Abreast => Some(self.served),
            _ => None,
        }
    }
}
