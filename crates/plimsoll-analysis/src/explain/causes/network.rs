//! The cause network: the bandwidth of the network is saturated, or the network loses packets.

use super::card::{
    CONNECTION_STATISTICS_ADVICE, CauseCard, CauseForm, CauseText, ExpectedAnswer, count_with_noun, idle_cores_text,
    max_at_high_load_or_zero, percent_at_high_load,
};
use crate::explain::features::Feature;
use crate::explain::predictions::{
    ALWAYS_RISES, ALWAYS_STAYS, ANY_EFFECT, MOSTLY_STAYS, Predictions, RISES_OR_STAYS, STAYS_OR_FALLS,
};
use crate::explain::queues::{dependency_bytes_are_in_transit, dependency_responses_arrive_slowly};
use crate::explain::signals::Signal;
use crate::explain::thresholds::RETRANSMIT_SHARE_MIN;
use crate::format;

pub(super) static CARD: CauseCard = CauseCard {
    name: "the network",
    forms: &[
        CauseForm {
            word: "network_server",
            expects: &[
                (Feature::DataInTransit, ExpectedAnswer::Is("server")),
                (Feature::CoresFull, ExpectedAnswer::Is("no")),
                (Feature::ThreadsFull, ExpectedAnswer::Is("no")),
                (Feature::RequestsInService, ExpectedAnswer::Any),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
                (Feature::ReadsSlowly, ExpectedAnswer::Any),
                (Feature::ConnectsLate, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "network_dependency",
            expects: &[
                (Feature::DataInTransit, ExpectedAnswer::Is("dependency")),
                (Feature::CoresFull, ExpectedAnswer::Is("no")),
                (Feature::CallsPileUp, ExpectedAnswer::Any),
                (Feature::FixedConnections, ExpectedAnswer::Any),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
                (Feature::DatabaseLocks, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "network_lossy",
            expects: &[
                (Feature::DataInTransit, ExpectedAnswer::Is("lossy")),
                (Feature::CoresFull, ExpectedAnswer::Is("no")),
                (Feature::ThreadsFull, ExpectedAnswer::Is("no")),
                (Feature::ConnectsLate, ExpectedAnswer::Any),
                (Feature::Plateau, ExpectedAnswer::Any),
                (Feature::CallsPileUp, ExpectedAnswer::Any),
                (Feature::SlowAtLowLoad, ExpectedAnswer::Any),
            ],
        },
    ],
    predicts: Predictions {
        reference: RISES_OR_STAYS,
        more_users: ALWAYS_STAYS,
        new_connections: MOSTLY_STAYS,
        kept_connections: MOSTLY_STAYS,
        head: ALWAYS_RISES,
        smaller_answer: ALWAYS_RISES,
        larger_body: STAYS_OR_FALLS,
        smaller_body: RISES_OR_STAYS,
        second_generator: ALWAYS_STAYS,
        stopped: MOSTLY_STAYS,
        other_clients: ALWAYS_STAYS,
        bursts: ANY_EFFECT,
        together: ANY_EFFECT,
        abreast: ANY_EFFECT,
    },
    resources: &[],
    is_countable: false,
    missing_evidence: CONNECTION_STATISTICS_ADVICE,
    describe: |case| {
        let idle_cores = idle_cores_text(case);
        let how = if dependency_bytes_are_in_transit(case) == Some(true) {
            format!(
                "{transit_bytes} of responses from a dependency are in transit{idle_cores}",
                transit_bytes = format::bytes(max_at_high_load_or_zero(case, Signal::PeerOnTheWay))
            )
        } else if dependency_responses_arrive_slowly(case) == Some(true) {
            format!(
                "a dependency sends {bytes_per_second}/s, and {responses} arrive in small pieces{idle_cores}",
                bytes_per_second = format::bytes(max_at_high_load_or_zero(case, Signal::PeerReceived)),
                responses =
                    count_with_noun(max_at_high_load_or_zero(case, Signal::PeerComing), "response", "responses")
            )
        } else if case.signal_reaches(Signal::Retransmits, RETRANSMIT_SHARE_MIN) == Some(true) {
            format!(
                "{share_percent} of the TCP segments are retransmitted{idle_cores}",
                share_percent = percent_at_high_load(case, Signal::Retransmits)
            )
        } else {
            format!(
                "{waiting_bytes} wait in the server's send buffers{idle_cores}",
                waiting_bytes = format::bytes(max_at_high_load_or_zero(case, Signal::SendQueue))
            )
        };
        CauseText::for_resource(CARD.name, how)
    },
};
