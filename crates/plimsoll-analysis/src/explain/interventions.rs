//! Changes that tell causes apart: what each cause predicts of each change, written down here and shown before it is made
//! ([`prediction`]); which changes are worth making for the causes that still stand ([`worth_making`]); and what those that were
//! made say ([`MadeChanges::weights`]).
//!
//! All loads are of one kind: as many users as fill the server, each waiting for its answer, so that what is answered is what it
//! can answer. The first and the last are made without a change; how far they lie apart is the noise that every effect has to
//! exceed. What plimsoll or others limited says nothing of the server.
//!
//! Not here: when they are made (`study::explain`), and how a plan is changed (the binary).

use super::cause::Cause;
use super::signals::{LoadSignals, Signal};
use super::weigh::Weighed;
use crate::format;
use plimsoll_model::{Intervention, Run};
use std::collections::BTreeMap;

/// What becomes of what is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It rises by more than noise, and by a third at least.
    Rises,
    /// It stays.
    Stays,
    /// It falls by more than noise, and by a quarter at least.
    Falls,
}

/// What a cause predicts of a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// What may become of it: one effect, or several that the cause leaves open.
    pub effects: &'static [Effect],
    /// How much it speaks for the cause where it comes so, and another cause predicted otherwise.
    pub speaks: f64,
    /// How much it speaks against the cause where it does not.
    pub denies: f64,
}

use Effect::{Falls, Rises, Stays};

const fn firm(effects: &'static [Effect]) -> Prediction {
    Prediction { effects, speaks: 2.0, denies: 3.0 }
}

/// A law with known exceptions: it speaks, but denies little.
const fn loose(effects: &'static [Effect]) -> Prediction {
    Prediction { effects, speaks: 2.0, denies: 1.0 }
}

/// Nothing follows from it.
const OPEN: Prediction = Prediction { effects: &[Rises, Stays, Falls], speaks: 0.0, denies: 0.0 };

/// What `cause` predicts of what is answered when `intervention` is made.
pub fn prediction(intervention: Intervention, cause: Cause) -> Prediction {
    use Cause::*;
    match (intervention, cause) {
        // What is no limit of the server's, or is not known, predicts nothing.
        (_, None | Unknown | Neighbour | WarmUp | Memory) | (Intervention::Control, _) => OPEN,
        // A path that does little needs none of what the asked one waits for. Who waits on every path (a session in a store, a
        // lock around all) is the exception.
        (Intervention::Reference, Pool | Lock | Downstream | Disk | Delay) => loose(&[Rises]),
        (Intervention::Reference, Workers | Gc) => loose(&[Rises]),
        (Intervention::Reference, OneThread | Cpu | CpuQuota | Network | SlowReader) => {
            Prediction { effects: &[Rises, Stays], speaks: 0.0, denies: 1.0 }
        }
        // A limit may be for some paths only.
        (Intervention::Reference, Limiter) => Prediction { effects: &[Rises, Stays], speaks: 0.0, denies: 1.0 },
        (Intervention::Reference, Client | AcceptBacklog | Files | Ports) => firm(&[Stays]),
        // What is full answers no more when more ask; who waits for a time answers twice as many.
        (Intervention::MoreUsers, Delay) => firm(&[Rises]),
        (Intervention::MoreUsers, SlowReader) => loose(&[Rises]),
        (Intervention::MoreUsers, Lock | Gc | Downstream | AcceptBacklog) => firm(&[Stays, Falls]),
        (Intervention::MoreUsers, Files | Ports) => firm(&[Stays, Falls]),
        (Intervention::MoreUsers, _) => firm(&[Stays]),
        // Opening connections is work: what has none to spare answers less. Workers that kept connections bind are freed.
        (Intervention::NewConnections, Workers) => OPEN,
        (Intervention::NewConnections, Pool | Lock | Downstream | Disk | Limiter | Delay | Network | SlowReader) => {
            loose(&[Stays])
        }
        (Intervention::NewConnections, _) => Prediction { effects: &[Stays, Falls], speaks: 0.0, denies: 1.0 },
        // Where each request had a new connection.
        (Intervention::KeptConnections, AcceptBacklog | Ports | Files) => firm(&[Rises]),
        (Intervention::KeptConnections, OneThread | Cpu | CpuQuota | Client) => {
            Prediction { effects: &[Rises, Stays], speaks: 0.0, denies: 1.0 }
        }
        (Intervention::KeptConnections, Workers) => OPEN,
        (Intervention::KeptConnections, _) => loose(&[Stays]),
        (Intervention::Head, Network | SlowReader) => firm(&[Rises]),
        // Many servers make the body all the same; some do not.
        (Intervention::Head, OneThread | Cpu | CpuQuota | Gc | Client) => {
            Prediction { effects: &[Rises, Stays], speaks: 0.0, denies: 1.0 }
        }
        (Intervention::Head, Limiter | AcceptBacklog) => firm(&[Stays]),
        (Intervention::Head, _) => loose(&[Stays]),
        // A limit for each client is another for another client; one for all is not.
        (Intervention::Identities | Intervention::Sources, Limiter) => {
            Prediction { effects: &[Rises, Stays], speaks: 4.0, denies: 1.0 }
        }
        (Intervention::Identities | Intervention::Sources, _) => firm(&[Stays]),
        // Just below the line on average: what queues takes a burst in and answers it later, a limit without a bucket refuses it.
        (Intervention::Bursts, Limiter) => Prediction { effects: &[Falls, Stays], speaks: 2.0, denies: 0.0 },
        (Intervention::Bursts, Pool | Lock | Downstream | Disk | Workers | OneThread | Cpu | Delay) => loose(&[Stays]),
        (Intervention::Bursts, _) => OPEN,
    }
}

impl Prediction {
    /// As a sentence without a subject.
    pub fn text(&self) -> String {
        let word = |effect: &Effect| match effect {
            Rises => "rises",
            Stays => "stays",
            Falls => "falls",
        };
        let words: Vec<&str> = self.effects.iter().map(word).collect();
        words.join(" or ")
    }

    fn is_open(&self) -> bool {
        self.effects.len() == 3
    }

    /// Whether no effect agrees with both.
    fn excludes(&self, other: &Prediction) -> bool {
        self.effects.iter().all(|effect| !other.effects.contains(effect))
    }
}

/// So many of the causes that stand are told apart; what comes after them hardly matters.
const CAUSES_MAX: usize = 4;
/// At most so many changes are made.
const CHANGES_MAX: usize = 4;

/// Causes that an experiment could still name or deny.
fn at_stake(weighed: &Weighed) -> Vec<Cause> {
    weighed.candidates.iter().map(|candidate| candidate.cause).take(CAUSES_MAX).collect()
}

/// Which of the changes that can be made tell the causes apart that stand, the most telling first. Where one stands alone, it
/// is put to the test; where none does, what a path that does little, or more users, say is a beginning.
pub fn worth_making(weighed: &Weighed, possible: &[Intervention]) -> Vec<Intervention> {
    let standing = at_stake(weighed);
    // What is held against the standing ones where they are few: every other cause that nothing has ruled out.
    let open = |cause: &Cause| weighed.ruled_out.iter().all(|(out, ..)| out != cause);
    let others: Vec<Cause> = Cause::ALL.into_iter().filter(|cause| !standing.contains(cause) && open(cause)).collect();
    let score = |intervention: Intervention| {
        let of = |cause: &Cause| prediction(intervention, *cause);
        let told: usize = standing
            .iter()
            .enumerate()
            .map(|(at, cause)| {
                let apart = standing[at + 1..].iter().filter(|other| of(cause).excludes(&of(other))).count();
                let tested = others.iter().filter(|other| of(cause).excludes(&of(other))).count();
                // Two that stand told apart are worth more than all that do not.
                apart * 100 + tested
            })
            .sum();
        // Who was given other clients wants to know of them, and a limit may be for each of them.
        let clients = matches!(intervention, Intervention::Identities | Intervention::Sources);
        told + if clients && standing.contains(&Cause::Limiter) { 50 } else { 0 }
    };
    let asked_for = |intervention: &Intervention| *intervention == Intervention::Identities;
    let beginning = |intervention: &Intervention| {
        standing.is_empty() && matches!(intervention, Intervention::Reference | Intervention::MoreUsers)
    };
    let mut worth: Vec<(usize, Intervention)> = possible
        .iter()
        .filter(|intervention| **intervention != Intervention::Control)
        .map(|intervention| (score(*intervention), *intervention))
        .filter(|(score, intervention)| *score > 0 || asked_for(intervention) || beginning(intervention))
        .collect();
    worth.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    worth.truncate(CHANGES_MAX);
    worth.into_iter().map(|(_, intervention)| intervention).collect()
}

/// What the causes that stand predict, as far as they predict anything.
pub fn predictions(weighed: &Weighed, intervention: Intervention) -> Vec<(Cause, String)> {
    let told = at_stake(weighed).into_iter().map(|cause| (cause, prediction(intervention, cause)));
    told.filter(|(_, prediction)| !prediction.is_open()).map(|(cause, it)| (cause, it.text())).collect()
}

/// One change, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct MadeChange {
    /// What was changed.
    pub intervention: Intervention,
    /// What was answered without the change, 1/s.
    pub control_rps: f64,
    /// What was answered with it, 1/s.
    pub changed_rps: f64,
    /// What that is; `None`: it cannot be told.
    pub effect: Option<Effect>,
    /// Why it cannot be told.
    pub void: Option<String>,
}

/// The loads that experiments are made of.
#[derive(Debug, Clone, Default)]
pub struct ExperimentLoads<'a> {
    /// Without a change: the first, and the last where there is one.
    pub controls: Vec<&'a Run>,
    /// At the line, as it was held: what bursts are held against.
    pub line: Option<&'a Run>,
    /// With a change.
    pub changed: Vec<(Intervention, &'a Run)>,
    /// With another value of a setting of the server's.
    pub varied: Vec<(f64, &'a Run)>,
}

/// All that was made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MadeChanges(pub Vec<MadeChange>);

/// An effect is at least as large, as a natural logarithm: a third more, a quarter less.
const EFFECT: f64 = 0.288;
/// What changes by less than this has stayed.
const STAYED: f64 = 0.14;
/// Of two loads without a change one differs from the other by so much of noise; an effect is more than twice that.
const NOISE_TIMES: f64 = 2.0;

impl MadeChanges {
    /// What these loads say.
    pub fn of(loads: &ExperimentLoads) -> MadeChanges {
        let goodput = |sight: &LoadSignals| sight.get(Signal::Goodput).filter(|rps| *rps > 0.0);
        let controls: Vec<LoadSignals> = loads.controls.iter().map(|run| LoadSignals::of(run)).collect();
        let rates: Vec<f64> = controls.iter().filter_map(goodput).collect();
        let control_rps = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        let noise = match rates.as_slice() {
            [first, .., last] => (last / first).ln().abs() * NOISE_TIMES,
            _ => 0.0,
        };
        let held_back = controls.iter().find_map(hindered);
        let of = |(intervention, run): &(Intervention, &Run)| {
            let sight = LoadSignals::of(run);
            if *intervention == Intervention::Bursts {
                return of_bursts(&sight, loads.line.map(LoadSignals::of).as_ref());
            }
            let changed_rps = sight.get(Signal::Goodput).unwrap_or(0.0);
            let (effect, void) = if control_rps <= 0.0 {
                (None, Some("nothing was answered without the change".to_owned()))
            } else if changed_rps <= 0.0 {
                // A path or client that the server does not answer says nothing of its limits.
                (None, Some("nothing was answered with it".to_owned()))
            } else {
                match (effect(changed_rps / control_rps, noise), held_back.clone().or_else(|| hindered(&sight))) {
                    // Less of us would be more of it: what rises in spite of that has risen.
                    (Some(Effect::Rises), Some(_)) if held_back.is_none() => (Some(Effect::Rises), None),
                    (_, Some(reason)) => (None, Some(reason)),
                    (Some(effect), None) => (Some(effect), None),
                    (None, None) => (None, Some("the difference is not clear of noise".to_owned())),
                }
            };
            MadeChange { intervention: *intervention, control_rps, changed_rps, effect, void }
        };
        MadeChanges(loads.changed.iter().map(of).collect())
    }

    /// What they add to each cause that stands, and take from it. `weighed`: without them.
    pub fn weights(&self, weighed: &Weighed) -> BTreeMap<Cause, f64> {
        let mut added = BTreeMap::new();
        for experiment in &self.0 {
            for cause in experiment.supports(weighed) {
                *added.entry(cause).or_insert(0.0) += prediction(experiment.intervention, cause).speaks;
            }
            for cause in experiment.denies(weighed) {
                *added.entry(cause).or_insert(0.0) -= prediction(experiment.intervention, cause).denies;
            }
        }
        added
    }
}

/// What kept a load from saying anything of the server.
fn hindered(sight: &LoadSignals) -> Option<String> {
    let others = sight.disturbed.as_ref().map(|reason| format!("others disturbed it: {reason}"));
    let own = sight.limited.as_ref().map(|_| "plimsoll was the limit".to_owned());
    others.or(own)
}

fn effect(ratio: f64, noise: f64) -> Option<Effect> {
    let change = ratio.ln();
    if change.abs() >= EFFECT.max(noise) {
        return Some(if change > 0.0 { Effect::Rises } else { Effect::Falls });
    }
    (change.abs() <= STAYED && noise <= EFFECT).then_some(Effect::Stays)
}

/// Bursts are made at the rate of the line, so that what is refused or late counts, not how much is answered.
fn of_bursts(sight: &LoadSignals, line: Option<&LoadSignals>) -> MadeChange {
    let get = |sight: &LoadSignals, signal| sight.get(signal).unwrap_or(0.0);
    let (changed_rps, refused) = (get(sight, Signal::Goodput), get(sight, Signal::Refused));
    let control = line.map(|line| (get(line, Signal::Goodput), get(line, Signal::Refused)));
    let (control_rps, refused_before) = control.unwrap_or_default();
    let void = hindered(sight).or_else(|| control.is_none().then(|| "there was no load at the line".to_owned()));
    let effect = match (void.is_none(), refused - refused_before) {
        (false, _) => None,
        (true, more) if more >= 0.02 => Some(Effect::Falls),
        (true, more) if more <= 0.002 => Some(Effect::Stays),
        _ => None,
    };
    let unclear = effect.is_none().then(|| "the difference is not clear".to_owned());
    MadeChange { intervention: Intervention::Bursts, control_rps, changed_rps, effect, void: void.or(unclear) }
}

impl MadeChange {
    /// What was measured, in words.
    pub fn measured(&self) -> String {
        let rates =
            format!("{}/s without it, {}/s with it", format::rate(self.control_rps), format::rate(self.changed_rps));
        match (self.effect, &self.void) {
            (Some(effect), _) => {
                let word = match (effect, self.intervention) {
                    (Effect::Falls, Intervention::Bursts) => "part of it is refused",
                    (Effect::Stays, Intervention::Bursts) => "nothing more is refused",
                    (Effect::Rises, _) => "rises",
                    (Effect::Stays, _) => "stays",
                    (Effect::Falls, _) => "falls",
                };
                format!("{word}: {rates}")
            }
            (None, Some(void)) => format!("says nothing ({void}): {rates}"),
            (None, None) => format!("says nothing: {rates}"),
        }
    }

    /// Standing causes that predicted it, where another that stands did not: what all predict tells nothing.
    pub fn supports(&self, weighed: &Weighed) -> Vec<Cause> {
        let Some(effect) = self.effect else { return Vec::new() };
        let predicted = |cause: &Cause| prediction(self.intervention, *cause);
        let standing = at_stake(weighed);
        let agrees = |cause: &Cause| predicted(cause).effects.contains(&effect) && !predicted(cause).is_open();
        // One that stands alone is put to the test by what any other cause would have done.
        let otherwise = |cause: &Cause| !predicted(cause).effects.contains(&effect);
        let told = match standing.as_slice() {
            [_] => Cause::ALL.iter().any(otherwise),
            _ => standing.iter().any(otherwise),
        };
        if !told {
            return Vec::new();
        }
        standing.into_iter().filter(agrees).filter(|cause| predicted(cause).speaks > 0.0).collect()
    }

    /// Standing causes that predicted otherwise.
    pub fn denies(&self, weighed: &Weighed) -> Vec<Cause> {
        let Some(effect) = self.effect else { return Vec::new() };
        let standing = at_stake(weighed).into_iter();
        standing.filter(|cause| !prediction(self.intervention, *cause).effects.contains(&effect)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::rules::RULES;
    use crate::explain::weigh::Candidate;

    fn weighed(standing: &[(Cause, f64)]) -> Weighed {
        let candidate = |(cause, weight): &(Cause, f64)| {
            let rule = RULES.iter().find(|rule| rule.cause == *cause).expect("a row");
            Candidate { cause: *cause, weight: *weight, rule, signs: Vec::new(), unseen: Vec::new() }
        };
        Weighed { candidates: standing.iter().map(candidate).collect(), named: false, ruled_out: Vec::new() }
    }

    fn made(intervention: Intervention, effect: Effect) -> MadeChanges {
        let (control_rps, changed_rps) = (100.0, 100.0);
        MadeChanges(vec![MadeChange { intervention, control_rps, changed_rps, effect: Some(effect), void: None }])
    }

    #[test]
    fn every_prediction_leaves_something_open_or_says_something() {
        for intervention in Intervention::ALL {
            for cause in Cause::ALL {
                let prediction = prediction(intervention, cause);
                assert!((1..=3).contains(&prediction.effects.len()), "{intervention:?} {cause}");
                assert_eq!(prediction.is_open(), prediction.speaks == 0.0 && prediction.denies == 0.0);
            }
        }
    }

    #[test]
    fn what_tells_the_standing_apart_is_made() {
        let all = Intervention::ALL;
        for (standing, possible, first) in [
            (vec![(Cause::Pool, 5.0), (Cause::AcceptBacklog, 5.0)], &all[..4], Some(Intervention::Reference)),
            (vec![(Cause::Network, 4.0), (Cause::Workers, 4.0)], &all[..], Some(Intervention::Head)),
            (vec![(Cause::Limiter, 6.0)], &[Intervention::Sources][..], Some(Intervention::Sources)),
            (vec![(Cause::None, 6.0)], &all[1..2], None),
            (vec![], &all[..], Some(Intervention::Reference)),
            (vec![(Cause::Pool, 5.0)], &[], None),
        ] {
            let chosen = worth_making(&weighed(&standing), possible);
            assert_eq!(chosen.first().copied(), first, "{standing:?}: {chosen:?}");
            assert!(chosen.len() <= CHANGES_MAX && !chosen.contains(&Intervention::Control));
        }
    }

    #[test]
    fn what_was_predicted_speaks_and_what_was_not_denies() {
        let standing = weighed(&[(Cause::Pool, 5.0), (Cause::AcceptBacklog, 5.0)]);
        let weights = made(Intervention::Reference, Effect::Rises).weights(&standing);
        assert_eq!((weights[&Cause::Pool], weights[&Cause::AcceptBacklog]), (2.0, -3.0));
        let weights = made(Intervention::Reference, Effect::Stays).weights(&standing);
        assert_eq!((weights[&Cause::Pool], weights[&Cause::AcceptBacklog]), (-1.0, 2.0));
        // What both predict tells nothing.
        assert!(made(Intervention::Identities, Effect::Stays).weights(&standing).is_empty());
        // A limit for each client shows.
        let limited = weighed(&[(Cause::Limiter, 5.0)]);
        assert_eq!(made(Intervention::Identities, Effect::Rises).weights(&limited)[&Cause::Limiter], 4.0);
        assert!(made(Intervention::Identities, Effect::Stays).weights(&limited).is_empty());
    }

    #[test]
    fn effects_are_clear_of_noise() {
        for (ratio, noise, expect) in [
            (2.0, 0.0, Some(Effect::Rises)),
            (0.5, 0.0, Some(Effect::Falls)),
            (1.05, 0.05, Some(Effect::Stays)),
            (1.2, 0.0, None),
            (1.5, 0.6, None),
            (1.0, 0.6, None),
            (2.0, 0.6, Some(Effect::Rises)),
        ] {
            assert_eq!(effect(ratio, noise), expect, "{ratio} {noise}");
        }
    }
}
