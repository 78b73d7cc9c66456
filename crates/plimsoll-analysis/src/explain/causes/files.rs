//! The cause files: the server has reached its limit of open files.

use super::card::{
    CauseCard, CauseForm, CauseText, ExpectedAnswer, PROCESS_PROBES_ADVICE, percent_at_high_load, server_name,
};
use crate::explain::features::Feature;
use crate::explain::predictions::{ALWAYS_RISES, ALWAYS_STAYS, ANY_EFFECT, MOSTLY_STAYS, Predictions, STAYS_OR_FALLS};
use crate::explain::signals::Signal;

pub(super) static CARD: CauseCard = CauseCard {
    name: "the server's limit of open files",
    forms: &[CauseForm {
        word: "files",
        expects: &[
            (Feature::FilesUsedUp, ExpectedAnswer::Is("yes")),
            (Feature::ConnectsLate, ExpectedAnswer::Any),
            (Feature::AcceptsLate, ExpectedAnswer::Any),
            (Feature::CoresFull, ExpectedAnswer::Any),
            (Feature::ThreadsFull, ExpectedAnswer::Any),
            (Feature::PlimsollLimited, ExpectedAnswer::Any),
        ],
    }],
    predicts: Predictions {
        reference: ANY_EFFECT,
        more_users: STAYS_OR_FALLS,
        new_connections: STAYS_OR_FALLS,
        kept_connections: ALWAYS_RISES,
        head: MOSTLY_STAYS,
        smaller_answer: MOSTLY_STAYS,
        larger_body: ALWAYS_STAYS,
        smaller_body: ALWAYS_STAYS,
        second_generator: ALWAYS_STAYS,
        stopped: MOSTLY_STAYS,
        other_clients: ALWAYS_STAYS,
        bursts: ANY_EFFECT,
        together: ANY_EFFECT,
        abreast: ANY_EFFECT,
    },
    resources: &[],
    is_countable: false,
    missing_evidence: PROCESS_PROBES_ADVICE,
    describe: |case| {
        let how = format!(
            "{open_share} of the files that the server may open are open",
            open_share = percent_at_high_load(case, Signal::Files)
        );
        CauseText::for_resource(format!("open files of {}", server_name(case)), how).with_plural_subject(true)
    },
};
