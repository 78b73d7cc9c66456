//! The cause none: the highest allowed rate meets the SLO, so no limit was reached.

use super::card::{CauseCard, CauseForm, CauseText, ExpectedAnswer};
use crate::explain::features::Feature;
use crate::explain::predictions::Predictions;

pub(super) static CARD: CauseCard = CauseCard {
    name: "no limit reached",
    forms: &[CauseForm {
        word: "none",
        expects: &[
            (Feature::HighestRateMet, ExpectedAnswer::Is("yes")),
            (Feature::Plateau, ExpectedAnswer::Not("yes")),
            (Feature::CoresFull, ExpectedAnswer::Any),
            (Feature::ThreadsFull, ExpectedAnswer::Any),
        ],
    }],
    predicts: Predictions::UNTESTED_CAUSE,
    resources: &[],
    is_countable: false,
    missing_evidence: &[],
    describe: |case| {
        let highest_rate = case.rate_text(case.lower_rps);
        let whole = format!(
            "no limit was reached: the server meets the SLO even at {highest_rate}, the highest rate that \
             plimsoll may apply"
        );
        CauseText::from_sentence(CARD.name, whole)
    },
};
