//! Storage.

use super::{CauseCard, CauseText, Expect, Feature, PROBES, Predictions, Signal, Way, idle, top};
use crate::explain::cause::Cause;
use crate::explain::interventions::{MOSTLY_RISES, MOSTLY_STAYS, OPEN, RISES_OR_STAYS, STAYS, STAYS_OR_FALLS};

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::Disk,
    ways: &[Way {
        word: "disk",
        expects: &[
            (Feature::StorageWaits, Expect::Is("yes")),
            (Feature::Plateau, Expect::Mostly("yes")),
            (Feature::WorkersAsServed, Expect::Any),
            (Feature::ThreadsWait, Expect::Any),
            (Feature::ThreadsFull, Expect::Any),
            (Feature::FixedConnections, Expect::Any),
            (Feature::CallsPileUp, Expect::Any),
            (Feature::AcceptsLate, Expect::Any),
            (Feature::EachHasOne, Expect::Any),
            (Feature::CallsAsServed, Expect::Any),
            (Feature::TakesTurns, Expect::Any),
        ],
    }],
    predicts: Predictions {
        reference: MOSTLY_RISES,
        more_users: STAYS,
        new_connections: MOSTLY_STAYS,
        kept_connections: MOSTLY_STAYS,
        head: MOSTLY_STAYS,
        smaller_answer: RISES_OR_STAYS,
        larger_body: STAYS_OR_FALLS,
        smaller_body: RISES_OR_STAYS,
        second_generator: STAYS,
        stopped: MOSTLY_STAYS,
        other_clients: STAYS,
        bursts: MOSTLY_STAYS,
        together: OPEN,
        abreast: OPEN,
    },
    resources: &[],
    is_countable: false,
    to_tell: PROBES,
    tell: |case| {
        let waiting = top(case, Signal::Blocked).max(top(case, Signal::InDisk));
        CauseText::limit(Cause::Disk.text(), format!("{waiting:.1} of its threads wait for it{}", idle(case)))
    },
};
