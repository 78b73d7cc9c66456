//! The cause downstream: a dependency is saturated, or its calls take longer under load.

use super::card::{CauseCard, CauseText, ExpectedAnswer, Manifestation, idle, peer_text, top, words};
use crate::explain::cause::Cause;
use crate::explain::demands::UsedResource;
use crate::explain::features::Feature;
use crate::explain::predictions::{
    FALLS, MOSTLY_RISES, MOSTLY_STAYS, OPEN, Predictions, RISES_OR_STAYS, STAYS, STAYS_OR_FALLS,
};
use crate::explain::signals::Signal;
use crate::explain::thresholds::NEARLY_FULL;
use crate::sentence::{Remedy, SentencePart};

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::Downstream,
    ways: &[
        Manifestation {
            word: "downstream_full",
            expects: &[
                (Feature::DependencyFull, ExpectedAnswer::Is("yes")),
                (Feature::CeilingMet, ExpectedAnswer::Mostly("dependency")),
                (Feature::CoresFull, ExpectedAnswer::Any),
                (Feature::CallsPileUp, ExpectedAnswer::Any),
                (Feature::FixedConnections, ExpectedAnswer::Any),
                (Feature::WaitsForData, ExpectedAnswer::Any),
                (Feature::CallsAsServed, ExpectedAnswer::Any),
                (Feature::WorkersAsServed, ExpectedAnswer::Any),
                (Feature::EachHasOne, ExpectedAnswer::Any),
                (Feature::QueuesBefore, ExpectedAnswer::Any),
                (Feature::ReadsSlowly, ExpectedAnswer::Any),
                (Feature::AcceptsLate, ExpectedAnswer::Any),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
            ],
        },
        Manifestation {
            word: "downstream_slow",
            expects: &[
                (Feature::CallsPileUp, ExpectedAnswer::Is("yes")),
                (Feature::Plateau, ExpectedAnswer::Is("yes")),
                (Feature::CallsAreFew, ExpectedAnswer::Not("yes")),
                (Feature::FixedConnections, ExpectedAnswer::Any),
                (Feature::WaitsForData, ExpectedAnswer::Any),
                (Feature::WorkersAsServed, ExpectedAnswer::Any),
                (Feature::EachHasOne, ExpectedAnswer::Any),
                (Feature::AcceptsLate, ExpectedAnswer::Any),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
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
    missing_evidence: &[
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
