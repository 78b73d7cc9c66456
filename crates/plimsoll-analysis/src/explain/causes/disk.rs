//! The cause disk: storage is the limit.

use super::card::{
    CauseCard, CauseForm, CauseText, ExpectedAnswer, PROCESS_PROBES_ADVICE, idle_cores_text, max_at_high_load_or_zero,
};
use crate::explain::features::Feature;
use crate::explain::predictions::{
    ALWAYS_STAYS, ANY_EFFECT, MOSTLY_RISES, MOSTLY_STAYS, Predictions, RISES_OR_STAYS, STAYS_OR_FALLS,
};
use crate::explain::signals::Signal;

pub(super) static CARD: CauseCard = CauseCard {
    name: "storage",
    forms: &[CauseForm {
        word: "disk",
        expects: &[
            (Feature::StorageWaits, ExpectedAnswer::Is("yes")),
            (Feature::Plateau, ExpectedAnswer::Mostly("yes")),
            (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
            (Feature::ThreadsWait, ExpectedAnswer::Any),
            (Feature::ThreadsFull, ExpectedAnswer::Any),
            (Feature::FixedConnections, ExpectedAnswer::Any),
            (Feature::CallsPileUp, ExpectedAnswer::Any),
            (Feature::AcceptsLate, ExpectedAnswer::Any),
            (Feature::ThreadsRunOneAtATime, ExpectedAnswer::Any),
        ],
    }],
    predicts: Predictions {
        reference: MOSTLY_RISES,
        more_users: ALWAYS_STAYS,
        new_connections: MOSTLY_STAYS,
        kept_connections: MOSTLY_STAYS,
        head: MOSTLY_STAYS,
        smaller_answer: RISES_OR_STAYS,
        larger_body: STAYS_OR_FALLS,
        smaller_body: RISES_OR_STAYS,
        second_generator: ALWAYS_STAYS,
        stopped: MOSTLY_STAYS,
        other_clients: ALWAYS_STAYS,
        bursts: MOSTLY_STAYS,
        together: ANY_EFFECT,
        abreast: ANY_EFFECT,
    },
    resources: &[],
    is_countable: false,
    missing_evidence: PROCESS_PROBES_ADVICE,
    describe: |case| {
        let waiting =
            max_at_high_load_or_zero(case, Signal::Blocked).max(max_at_high_load_or_zero(case, Signal::InDisk));
        CauseText::for_resource(
            CARD.name,
            format!(
                "{waiting:.1} of the server's threads wait for storage{idle_cores}",
                idle_cores = idle_cores_text(case)
            ),
        )
    },
};
