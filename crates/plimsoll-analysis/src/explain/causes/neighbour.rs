//! The cause neighbour: other processes of the machine used cores that the server's threads waited
//! for.

use super::card::{CauseCard, CauseForm, CauseText, ExpectedAnswer, max_at_high_load_or_zero, text_part};
use crate::explain::features::Feature;
use crate::explain::predictions::Predictions;
use crate::explain::signals::Signal;

pub(super) static CARD: CauseCard = CauseCard {
    name: "other processes that use the cores of the server's machine",
    forms: &[CauseForm {
        word: "neighbour",
        expects: &[
            (Feature::OthersTookCores, ExpectedAnswer::Is("yes")),
            (Feature::CoresFull, ExpectedAnswer::Mostly("others")),
            (Feature::ThreadsFull, ExpectedAnswer::Any),
        ],
    }],
    predicts: Predictions::UNTESTED_CAUSE,
    resources: &[],
    is_countable: false,
    missing_evidence: &[text_part(
        "plimsoll needs the CPU use of the server's machine, which probes on that machine read",
    )],
    describe: |case| {
        let (others, waiting) =
            (max_at_high_load_or_zero(case, Signal::Others), max_at_high_load_or_zero(case, Signal::RunQueue));
        let whole = format!(
            "other processes on the machine limited the server: they used {others:.2} cores, while {waiting:.1} \
             threads of the server waited for a core"
        );
        CauseText::from_sentence(CARD.name, whole)
    },
};
