//! A dependency: it is full, or its calls take longer under load.

use super::{
    CauseCard, CauseText, Expect, Feature, Predictions, Remedy, SentencePart, Signal, UsedResource, Way, idle,
    peer_text, top, words,
};
use crate::explain::cause::Cause;
use crate::explain::interventions::{FALLS, MOSTLY_RISES, MOSTLY_STAYS, OPEN, RISES_OR_STAYS, STAYS, STAYS_OR_FALLS};
use crate::explain::thresholds::NEARLY_FULL;

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::Downstream,
    ways: &[
        Way {
            word: "downstream_full",
            expects: &[
                (Feature::DependencyFull, Expect::Is("yes")),
                (Feature::CeilingMet, Expect::Mostly("dependency")),
                (Feature::CoresFull, Expect::Any),
                (Feature::CallsPileUp, Expect::Any),
                (Feature::FixedConnections, Expect::Any),
                (Feature::WaitsForData, Expect::Any),
                (Feature::CallsAsServed, Expect::Any),
                (Feature::WorkersAsServed, Expect::Any),
                (Feature::EachHasOne, Expect::Any),
                (Feature::QueuesBefore, Expect::Any),
                (Feature::ReadsSlowly, Expect::Any),
                (Feature::AcceptsLate, Expect::Any),
                (Feature::ThreadsWait, Expect::Any),
            ],
        },
        Way {
            word: "downstream_slow",
            expects: &[
                (Feature::CallsPileUp, Expect::Is("yes")),
                (Feature::Plateau, Expect::Is("yes")),
                (Feature::CallsAreFew, Expect::Not("yes")),
                (Feature::FixedConnections, Expect::Any),
                (Feature::WaitsForData, Expect::Any),
                (Feature::WorkersAsServed, Expect::Any),
                (Feature::EachHasOne, Expect::Any),
                (Feature::AcceptsLate, Expect::Any),
                (Feature::ThreadsWait, Expect::Any),
            ],
        },
    ],
    predicts: Predictions {
        reference: MOSTLY_RISES,
        more_users: STAYS_OR_FALLS,
        new_connections: MOSTLY_STAYS,
        kept_connections: MOSTLY_STAYS,
        head: MOSTLY_STAYS,
        smaller_answer: MOSTLY_STAYS,
        larger_body: STAYS_OR_FALLS,
        smaller_body: RISES_OR_STAYS,
        second_generator: STAYS,
        stopped: FALLS,
        other_clients: STAYS,
        bursts: MOSTLY_STAYS,
        together: OPEN,
        abreast: OPEN,
    },
    resources: &[UsedResource::Downstream],
    is_countable: false,
    to_tell: &[
        words("what the server calls, on this machine (probes) or by its own figures ("),
        SentencePart::Remedy(Remedy::Metrics),
        words(")"),
    ],
    tell: |case| {
        let subject = match case.peer() {
            Some((peer, _)) if case.name_of_peer(peer).is_some() => peer_text(case, peer),
            Some((peer, _)) => format!("the dependency at {peer}"),
            None => "what the server calls".to_owned(),
        };
        let how = match case.top(Signal::DownstreamCores).filter(|cores| *cores >= NEARLY_FULL) {
            Some(cores) => {
                format!("it uses {cores:.2} cores, the server {:.2}{}", top(case, Signal::ServerCores), idle(case))
            }
            None => format!("its responses take longer under load, and the server waits for them{}", idle(case)),
        };
        CauseText::limit(subject, how)
    },
};
