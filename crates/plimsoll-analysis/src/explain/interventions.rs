//! Changes that tell causes apart: what each cause predicts of each change, written down here and shown before it is made
//! ([`prediction`]), and which changes are worth making for the causes that still stand ([`worth_making`]).
//!
//! All loads are of one kind: as many users as fill the server, each waiting for its answer, so that what is answered is what it
//! can answer.
//!
//! Not here: what became of those that were made (`made_changes`), when they are made (`study::explain`), and how a plan is changed
//! (the binary).

use super::cause::Cause;
use super::contrast::{Contrast, Loads};
use super::weigh::Weighed;
use crate::find::Findings;
use plimsoll_model::Intervention;

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

/// It may matter or not; that it does says something, that it goes the other way says the contrary.
const fn leaning(effects: &'static [Effect]) -> Prediction {
    Prediction { effects, speaks: 1.0, denies: 1.0 }
}

/// Nothing follows from it.
const OPEN: Prediction = Prediction { effects: &[Rises, Stays, Falls], speaks: 0.0, denies: 0.0 };

/// What `cause` predicts of what is answered when `intervention` is made.
pub fn prediction(intervention: Intervention, cause: Cause) -> Prediction {
    use Cause::*;
    match (intervention, cause) {
        // What makes more of a longer body makes less of a shorter one. Memory that is short is so of large bodies first.
        (Intervention::LargerBody, Memory) => leaning(&[Falls, Stays]),
        (Intervention::SmallerBody, Memory) => leaning(&[Rises, Stays]),
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
        // The few connections that it has files for carry more of what takes less; ports are missed by whoever asks others, which
        // such a path may not.
        (Intervention::Reference, Files | Ports) => OPEN,
        (Intervention::Reference, Client | AcceptBacklog) => firm(&[Stays]),
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
        (Intervention::Head | Intervention::SmallerAnswer, Network | SlowReader) => firm(&[Rises]),
        // Many servers make the body all the same; some do not.
        (Intervention::Head | Intervention::SmallerAnswer, OneThread | Cpu | CpuQuota | Gc | Client) => {
            Prediction { effects: &[Rises, Stays], speaks: 0.0, denies: 1.0 }
        }
        // Of a file only the part is read that is asked for.
        (Intervention::SmallerAnswer, Disk) => leaning(&[Rises, Stays]),
        (Intervention::Head | Intervention::SmallerAnswer, Limiter | AcceptBacklog) => firm(&[Stays]),
        (Intervention::Head | Intervention::SmallerAnswer, _) => loose(&[Stays]),
        // A body has to be carried, read, kept in memory, and mostly worked at or passed on: who has none of that to spare answers
        // fewer long ones and more short ones, if the body matters to it at all. It never goes the other way.
        (
            Intervention::LargerBody,
            Network | SlowReader | Gc | OneThread | Cpu | CpuQuota | Disk | Downstream | Lock | Client,
        ) => leaning(&[Falls, Stays]),
        (
            Intervention::SmallerBody,
            Network | SlowReader | Gc | OneThread | Cpu | CpuQuota | Disk | Downstream | Lock | Client,
        ) => leaning(&[Rises, Stays]),
        // Who counts requests counts no bytes.
        (Intervention::LargerBody | Intervention::SmallerBody, Limiter | AcceptBacklog | Files | Ports) => {
            firm(&[Stays])
        }
        (Intervention::LargerBody | Intervention::SmallerBody, _) => loose(&[Stays]),
        // Two of plimsoll make twice as much, if there is a core for the other. A server is as full of requests from two processes.
        (Intervention::SecondGenerator, Client) => Prediction { effects: &[Rises], speaks: 4.0, denies: 1.0 },
        (Intervention::SecondGenerator, OneThread | Cpu | CpuQuota | Gc) => loose(&[Stays, Falls]),
        (Intervention::SecondGenerator, _) => firm(&[Stays]),
        // What is behind is away for a part of the time. If that is what is full, as much is lost; else requests that wait elsewhere
        // are enough to go on with, and what is behind makes up for it afterwards.
        (Intervention::Stopped, Downstream) => Prediction { effects: &[Falls], speaks: 3.0, denies: 3.0 },
        (Intervention::Stopped, Pool) => loose(&[Falls]),
        // Their requests wait for what is behind as well, with nobody in their place.
        (Intervention::Stopped, Workers | Lock | Delay | SlowReader) => OPEN,
        (Intervention::Stopped, _) => loose(&[Stays]),
        // A limit for each client is another for another client; one for all is not.
        (Intervention::Identities | Intervention::Sources, Limiter) => {
            Prediction { effects: &[Rises, Stays], speaks: 4.0, denies: 1.0 }
        }
        (Intervention::Identities | Intervention::Sources, _) => firm(&[Stays]),
        // Just below the line on average: what queues takes a burst in and answers it later, a limit without a bucket refuses it.
        (Intervention::Bursts, Limiter) => Prediction { effects: &[Falls, Stays], speaks: 2.0, denies: 0.0 },
        (Intervention::Bursts, Pool | Lock | Downstream | Disk | Workers | OneThread | Cpu | Delay) => loose(&[Stays]),
        (Intervention::Bursts, _) => OPEN,
        // Twice as many as are served at a time, by Little's law: of places for so many half have to wait for the others; what lets one
        // through at a time for a part of its work serves one after the other; and a limit on the rate that saves up for bursts
        // (a token bucket) lets all of them through.
        (Intervention::Together, Pool | Workers) => firm(&[Stays]),
        // Where work before the lock takes now longer, now shorter, requests that were asked at once do not meet at it.
        (Intervention::Together, Lock) => loose(&[Falls]),
        (Intervention::Together, Limiter) => Prediction { effects: &[Rises, Falls], speaks: 2.0, denies: 3.0 },
        (Intervention::Together, _) => OPEN,
        // As many as there are places find one each; at a lock they meet.
        (Intervention::Abreast, Pool | Workers) => firm(&[Rises]),
        (Intervention::Abreast, Lock) => Prediction { effects: &[Falls], speaks: 3.0, denies: 2.0 },
        (Intervention::Abreast, Limiter) => Prediction { effects: &[Rises, Falls], speaks: 2.0, denies: 0.0 },
        (Intervention::Abreast, _) => OPEN,
    }
}

impl Prediction {
    /// As a sentence without a subject, of what is answered with `intervention`.
    pub fn text(&self, intervention: Intervention) -> String {
        let word = |effect: &Effect| match (intervention, effect) {
            (Intervention::Together | Intervention::Abreast, Rises) => "comes as soon as alone",
            (Intervention::Together, Stays) => "comes in two parts",
            (Intervention::Together, Falls) => "comes one after the other",
            (Intervention::Abreast, Falls) => "waits its turn",
            (_, Rises) => "rises",
            (_, Stays) => "stays",
            (_, Falls) => "falls",
        };
        let words: Vec<&str> = self.effects.iter().map(word).collect();
        words.join(" or ")
    }

    /// Whether nothing follows from it.
    pub(super) fn is_open(&self) -> bool {
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
pub(super) fn at_stake(weighed: &Weighed) -> Vec<Cause> {
    weighed.candidates.iter().map(|candidate| candidate.cause).take(CAUSES_MAX).collect()
}

/// Which of the changes that can be made tell the causes apart that stand, the most telling first. Where one stands alone, it
/// is put to the test; where none does, what a path that does little, or more users, say is a beginning.
pub fn worth_making(weighed: &Weighed, possible: &[Intervention], flagged: &[Intervention]) -> Vec<Intervention> {
    let is_asked_for = |change: Intervention| flagged.contains(&change);
    let standing = at_stake(weighed);
    // What is held against the standing ones where they are few: every other cause that nothing has ruled out; or, of one for which
    // too little speaks, every other one.
    let open = |cause: &Cause| !weighed.named || weighed.ruled_out.iter().all(|(out, ..)| out != cause);
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
    // Where nothing stands: what does not need the asked path, then whether it is us, then what waits.
    let beginning = |intervention: &Intervention| match intervention {
        _ if !standing.is_empty() => 0,
        Intervention::Reference => 3,
        Intervention::SecondGenerator => 2,
        Intervention::MoreUsers => 1,
        _ => 0,
    };
    // A second process of ours tells of us only: of nothing else is there a doubt that it could take away.
    let ours = [Cause::Client, Cause::Ports, Cause::Files];
    let tells = |intervention: &Intervention| {
        *intervention != Intervention::SecondGenerator
            || standing.is_empty()
            || standing.iter().any(|cause| ours.contains(cause))
    };
    let mut worth: Vec<(usize, Intervention)> = possible
        .iter()
        .filter(|intervention| **intervention != Intervention::Control && tells(intervention))
        .map(|intervention| (score(*intervention) + beginning(intervention), *intervention))
        .filter(|(score, intervention)| *score > 0 || is_asked_for(*intervention))
        .collect();
    // What somebody gave a flag for is made, and first.
    worth.sort_by_key(|(score, it)| (!is_asked_for(*it), std::cmp::Reverse(*score), *it));
    let mut left = CHANGES_MAX.saturating_sub(worth.iter().filter(|(_, it)| is_asked_for(*it)).count());
    worth.retain(|(_, intervention)| {
        let kept = is_asked_for(*intervention) || left > 0;
        left -= usize::from(kept && !is_asked_for(*intervention));
        kept
    });
    worth.into_iter().map(|(_, intervention)| intervention).collect()
}

/// What the causes that stand predict, as far as they predict anything.
pub fn predictions(weighed: &Weighed, intervention: Intervention) -> Vec<(Cause, String)> {
    let told = at_stake(weighed).into_iter().map(|cause| (cause, prediction(intervention, cause)));
    told.filter(|(_, prediction)| !prediction.is_open()).map(|(cause, it)| (cause, it.text(intervention))).collect()
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
#[cfg(test)]
mod tests {
    use super::*;

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
        use Intervention::{Identities, LargerBody, SmallerBody, Stopped};
        let flags = [Identities, LargerBody, SmallerBody, Stopped];
        let without_flags: Vec<Intervention> = Intervention::ALL.into_iter().filter(|it| !flags.contains(it)).collect();
        let all = without_flags.as_slice();
        for (standing, possible, first) in [
            (vec![(Cause::Pool, 5.0), (Cause::AcceptBacklog, 5.0)], &all[..4], Some(Intervention::Reference)),
            (vec![(Cause::Network, 4.0), (Cause::Workers, 4.0)], all, Some(Intervention::Head)),
            (vec![(Cause::Limiter, 6.0)], &[Intervention::Sources][..], Some(Intervention::Sources)),
            // A second process of ours where we, or what is ours, may be to blame, and nowhere else.
            (vec![(Cause::Client, 6.0)], &[Intervention::SecondGenerator][..], Some(Intervention::SecondGenerator)),
            (vec![], &[Intervention::SecondGenerator], Some(Intervention::SecondGenerator)),
            (vec![(Cause::Pool, 6.0)], &[Intervention::SecondGenerator], None),
            (
                vec![(Cause::Network, 4.0), (Cause::Workers, 4.0)],
                &[Intervention::SmallerAnswer],
                Some(Intervention::SmallerAnswer),
            ),
            (
                vec![(Cause::Downstream, 4.0), (Cause::OneThread, 4.0)],
                &[Intervention::Stopped],
                Some(Intervention::Stopped),
            ),
            // What a flag was given for is made though nothing that stands predicts anything of it.
            (vec![(Cause::None, 6.0)], &[Intervention::LargerBody], Some(Intervention::LargerBody)),
            (vec![(Cause::None, 6.0)], &all[1..2], None),
            (vec![], all, Some(Intervention::Reference)),
            (vec![(Cause::Pool, 5.0)], &[], None),
        ] {
            let chosen = worth_making(&Weighed::standing(&standing), possible, &flags);
            assert_eq!(chosen.first().copied(), first, "{standing:?}: {chosen:?}");
            assert!(chosen.len() <= CHANGES_MAX && !chosen.contains(&Intervention::Control));
        }
        let standing = Weighed::standing(&[(Cause::Downstream, 5.0), (Cause::Network, 4.0), (Cause::Limiter, 4.0)]);
        let chosen = worth_making(&standing, &Intervention::ALL, &flags);
        assert!(flags.iter().all(|it| chosen.contains(it)), "{chosen:?}");
        // And so is a change that is made without one, where one says with what.
        let limited = Weighed::standing(&[(Cause::Limiter, 6.0)]);
        let both = [Intervention::Sources, Intervention::Reference];
        assert_eq!(worth_making(&limited, &both, &[]).first(), Some(&Intervention::Sources));
        assert_eq!(worth_making(&limited, &both, &[Intervention::Reference]).first(), Some(&Intervention::Reference));
    }

    /// What each cause says of the changes that tell of one thing only.
    #[test]
    fn what_tells_of_one_thing_is_predicted_by_it_alone() {
        let effects = |intervention, cause| prediction(intervention, cause).effects;
        for cause in Cause::ALL {
            let second = effects(Intervention::SecondGenerator, cause);
            let is_told = prediction(Intervention::SecondGenerator, cause).is_open() || cause == Cause::Client;
            assert!(is_told || !second.contains(&Rises), "{cause}");
            let stopped = prediction(Intervention::Stopped, cause);
            let behind = matches!(cause, Cause::Downstream | Cause::Pool);
            assert_eq!(stopped.effects == [Falls], behind, "{cause}");
            assert!(behind || stopped.is_open() || stopped.effects == [Stays], "{cause}");
            // No cause answers more of what is longer.
            let longer = prediction(Intervention::LargerBody, cause);
            assert!(longer.is_open() || !longer.effects.contains(&Rises), "{cause}");
            let shorter = prediction(Intervention::SmallerBody, cause);
            assert!(shorter.is_open() || !shorter.effects.contains(&Falls), "{cause}");
            assert_eq!(longer.effects.len(), shorter.effects.len(), "{cause}");
        }
        assert_eq!(effects(Intervention::SecondGenerator, Cause::Client), [Rises]);
        assert_eq!(effects(Intervention::SmallerAnswer, Cause::Network), [Rises]);
    }
}
