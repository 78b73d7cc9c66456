//! Experiments that separate causes: which are worth their time for the causes that remain
//! ([`worth_making`]).
//!
//! All their loads are closed loops with enough users to saturate the server, so that the
//! throughput is its capacity.
//!
//! Not here: the predictions of causes (`causes`), the results (`made_changes`), the time of each
//! experiment (`study::explain`), and how a plan is changed (the binary).

use super::cause::Cause;
use super::contrast::{Contrast, Loads};
use super::posterior::{CauseProbability, Posterior};
use super::predictions::{OPEN, Prediction};
use super::thresholds::AS_FAST;
use crate::find::Findings;
use plimsoll_model::Intervention;

/// Causes below this probability are not separated any further.
const AT_STAKE: f64 = 0.01;
/// At most this number of causes is shown as possible.
const CAUSES_MAX: usize = 4;
/// At most so many interventions are made.
const CHANGES_MAX: usize = 4;
/// An intervention that tells causes apart by less than this is not worth its time.
const TELLS_MIN: f64 = 0.02;

/// The prediction of a cause for an experiment.
fn prediction(cause: &CauseProbability, intervention: Intervention) -> Prediction {
    cause.candidate.card.predicts.for_intervention(intervention)
}

/// Causes that an intervention could still name or deny, the most probable first.
pub(super) fn at_stake(posterior: &Posterior) -> Vec<CauseProbability<'_>> {
    posterior.causes().into_iter().filter(|it| it.probability >= AT_STAKE).take(CAUSES_MAX).collect()
}

/// The possible experiments that separate the remaining causes, the most informative first: by the
/// distance of their predictions, weighted by the probabilities of both causes. An experiment
/// requested by a flag is always made, and first.
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
        // Where no cause is named, or plimsoll itself, the first doubt is of ourselves.
        let is_open = posterior.named.is_none_or(|cause| cause == Cause::Client);
        let is_doubt = is_open && intervention == Intervention::SecondGenerator;
        apart.sum::<f64>() + TELLS_MIN * tested * AS_FAST + f64::from(u8::from(is_doubt))
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

/// The predictions of the causes that remain, where they have one.
pub fn predictions(posterior: &Posterior, intervention: Intervention) -> Vec<(Cause, String)> {
    let told = at_stake(posterior).into_iter().map(|it| (it.cause, prediction(&it, intervention)));
    told.filter(|(_, it)| !it.is_open()).map(|(cause, it)| (cause, it.text(intervention))).collect()
}

/// The number of requests that a server serves at a time, where a load can have so many.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerConcurrency {
    /// How many it serves at a time.
    pub served: u64,
    /// The mean service time of a request that is alone, ns.
    pub alone_ns: f64,
}

/// Fewer requests at once do not show whether one waits for another; more of them are a load.
const TOGETHER: std::ops::RangeInclusive<f64> = 1.6..=256.0;
/// For shorter requests, waking a thread is a part of the time; for longer ones there is no time
/// for enough of them.
const TOGETHER_ALONE_NS: std::ops::RangeInclusive<f64> = 1e6..=2e8;

impl ServerConcurrency {
    /// The concurrency that these loads show, where an experiment can use it.
    pub fn from_findings(findings: &Findings, loads: &Loads) -> Option<ServerConcurrency> {
        let case = Contrast::from_loads(findings, loads);
        let (served, alone_ns) = (case.at_a_time()?, case.alone_ns?);
        let can_be = TOGETHER.contains(&served) && TOGETHER_ALONE_NS.contains(&alone_ns) && case.requests_each <= 1.0;
        can_be.then_some(ServerConcurrency { served: served.round() as u64, alone_ns })
    }

    /// The number of users of an experiment; `None`: it adds none.
    pub fn count(&self, intervention: Intervention) -> Option<u64> {
        match intervention {
            Intervention::Together => Some(2 * self.served),
            Intervention::Abreast => Some(self.served),
            _ => None,
        }
    }
}
