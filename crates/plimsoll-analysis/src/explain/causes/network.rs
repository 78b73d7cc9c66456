//! The network: bandwidth, or losses on the way.

use super::{CONNECTIONS, CauseCard, CauseText, Expect, Feature, Predictions, Signal, Way, idle, number, share, top};
use crate::explain::cause::Cause;
use crate::explain::interventions::{MOSTLY_STAYS, OPEN, RISES, RISES_OR_STAYS, STAYS, STAYS_OR_FALLS};
use crate::explain::queues::{comes_in_for_long, on_the_way};
use crate::explain::thresholds::LOSSY;
use crate::format;

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::Network,
    ways: &[
        Way {
            word: "network_server",
            expects: &[
                (Feature::OnTheWay, Expect::Is("server")),
                (Feature::CoresFull, Expect::Is("no")),
                (Feature::ThreadsFull, Expect::Is("no")),
                (Feature::ServedAtATime, Expect::Any),
                (Feature::WorkersAsServed, Expect::Any),
                (Feature::ThreadsWait, Expect::Any),
                (Feature::ReadsSlowly, Expect::Any),
                (Feature::ConnectsLate, Expect::Any),
            ],
        },
        Way {
            word: "network_dependency",
            expects: &[
                (Feature::OnTheWay, Expect::Is("dependency")),
                (Feature::CoresFull, Expect::Is("no")),
                (Feature::CallsPileUp, Expect::Any),
                (Feature::FixedConnections, Expect::Any),
                (Feature::CallsAsServed, Expect::Any),
                (Feature::WorkersAsServed, Expect::Any),
                (Feature::EachHasOne, Expect::Any),
                (Feature::DatabaseLocks, Expect::Any),
            ],
        },
        Way {
            word: "network_lossy",
            expects: &[
                (Feature::OnTheWay, Expect::Is("lossy")),
                (Feature::CoresFull, Expect::Is("no")),
                (Feature::ThreadsFull, Expect::Is("no")),
                (Feature::ConnectsLate, Expect::Any),
                (Feature::Plateau, Expect::Any),
                (Feature::CallsPileUp, Expect::Any),
                (Feature::SlowAtLowLoad, Expect::Any),
            ],
        },
    ],
    predicts: Predictions {
        reference: RISES_OR_STAYS,
        more_users: STAYS,
        new_connections: MOSTLY_STAYS,
        kept_connections: MOSTLY_STAYS,
        head: RISES,
        smaller_answer: RISES,
        larger_body: STAYS_OR_FALLS,
        smaller_body: RISES_OR_STAYS,
        second_generator: STAYS,
        stopped: MOSTLY_STAYS,
        other_clients: STAYS,
        bursts: OPEN,
        together: OPEN,
        abreast: OPEN,
    },
    resources: &[],
    is_countable: false,
    to_tell: CONNECTIONS,
    tell: |case| {
        let idle = idle(case);
        let how = if on_the_way(case) == Some(true) {
            format!(
                "{} of responses from a dependency are on their way{idle}",
                format::bytes(top(case, Signal::PeerOnTheWay))
            )
        } else if comes_in_for_long(case) == Some(true) {
            format!(
                "{}/s come from a dependency, and {} come in piece by piece{idle}",
                format::bytes(top(case, Signal::PeerReceived)),
                number(top(case, Signal::PeerComing), "response", "responses")
            )
        } else if case.reaches(Signal::Retransmits, LOSSY) == Some(true) {
            format!("{} of the segments are sent again{idle}", share(case, Signal::Retransmits))
        } else {
            format!("{} lie ready to leave the server{idle}", format::bytes(top(case, Signal::SendQueue)))
        };
        CauseText::limit(Cause::Network.text(), how)
    },
};
