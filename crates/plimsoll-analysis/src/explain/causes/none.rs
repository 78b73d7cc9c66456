//! No limit was reached: the highest rate allowed meets the SLO.

use super::{CauseCard, CauseText, Expect, Feature, Predictions, Way};
use crate::explain::cause::Cause;

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::None,
    ways: &[Way {
        word: "none",
        expects: &[
            (Feature::HighestRateMet, Expect::Is("yes")),
            (Feature::Plateau, Expect::Not("yes")),
            (Feature::CoresFull, Expect::Any),
            (Feature::ThreadsFull, Expect::Any),
        ],
    }],
    predicts: Predictions::OPEN,
    resources: &[],
    is_countable: false,
    to_tell: &[],
    tell: |case| {
        let held = case.offered_text(case.lower_rps);
        let whole = format!("no limit was reached: {held}, the highest rate allowed, meets the SLO");
        CauseText::sentence(Cause::None, whole)
    },
};
