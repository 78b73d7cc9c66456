//! The cause files: the server has reached its limit of open files.

use super::card::{CauseCard, CauseForm, CauseText, ExpectedAnswer, PROBES, server, share};
use crate::explain::cause::Cause;
use crate::explain::features::Feature;
use crate::explain::predictions::{MOSTLY_STAYS, OPEN, Predictions, RISES, STAYS, STAYS_OR_FALLS};
use crate::explain::signals::Signal;

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::Files,
    ways: &[CauseForm {
        word: "files",
        expects: &[
            (Feature::FilesUsedUp, ExpectedAnswer::Is("yes")),
            (Feature::ConnectsLate, ExpectedAnswer::Any),
            (Feature::QueueOverflows, ExpectedAnswer::Any),
            (Feature::AcceptsLate, ExpectedAnswer::Any),
            (Feature::CoresFull, ExpectedAnswer::Any),
            (Feature::ThreadsFull, ExpectedAnswer::Any),
            (Feature::PlimsollLimited, ExpectedAnswer::Any),
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
    missing_evidence: PROBES,
    tell: |case| {
        let how = format!("{open_share} of the allowed number are open", open_share = share(case, Signal::Files));
        CauseText::limit(format!("open files of {}", server(case)), how).plural(true)
    },
};
