//! The limit of open files of the server.

use super::{CauseCard, CauseText, Expect, Feature, PROBES, Predictions, Signal, Way, server, share};
use crate::explain::cause::Cause;
use crate::explain::interventions::{MOSTLY_STAYS, OPEN, RISES, STAYS, STAYS_OR_FALLS};

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::Files,
    ways: &[Way {
        word: "files",
        expects: &[
            (Feature::FilesUsedUp, Expect::Is("yes")),
            (Feature::ConnectsLate, Expect::Any),
            (Feature::QueueOverflows, Expect::Any),
            (Feature::AcceptsLate, Expect::Any),
            (Feature::CoresFull, Expect::Any),
            (Feature::ThreadsFull, Expect::Any),
            (Feature::PlimsollLimited, Expect::Any),
        ],
    }],
    predicts: Predictions {
        reference: OPEN,
        more_users: STAYS_OR_FALLS,
        new_connections: STAYS_OR_FALLS,
        kept_connections: RISES,
        head: MOSTLY_STAYS,
        smaller_answer: MOSTLY_STAYS,
        larger_body: STAYS,
        smaller_body: STAYS,
        second_generator: STAYS,
        stopped: MOSTLY_STAYS,
        other_clients: STAYS,
        bursts: OPEN,
        together: OPEN,
        abreast: OPEN,
    },
    resources: &[],
    is_countable: false,
    to_tell: PROBES,
    tell: |case| {
        let how = format!("{} of the limit are open", share(case, Signal::Files));
        CauseText::limit(format!("open files of {}", server(case)), how).several(true)
    },
};
