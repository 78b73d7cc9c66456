//! The cause memory: memory is short, so pages are read back from storage, or the control group
//! reaches its memory limit.

use super::card::{
    CauseCard, CauseForm, CauseText, ExpectedAnswer, PROCESS_PROBES_ADVICE, count_with_noun, idle_cores_text,
    max_at_high_load_or_zero,
};
use crate::explain::features::Feature;
use crate::explain::predictions::{ANY_EFFECT, Predictions, RISES_OR_STAYS, STAYS_OR_FALLS};
use crate::explain::signals::Signal;
use crate::format;

pub(super) static CARD: CauseCard = CauseCard {
    name: "memory",
    forms: &[
        CauseForm {
            word: "memory_short",
            expects: &[
                (Feature::MemoryShort, ExpectedAnswer::Is("yes")),
                (Feature::CoresFull, ExpectedAnswer::Any),
                (Feature::OthersTookCores, ExpectedAnswer::Any),
                (Feature::StorageWaits, ExpectedAnswer::Any),
                (Feature::ConnectsLate, ExpectedAnswer::Any),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
                (Feature::ThreadsRunOneAtATime, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "memory_killed",
            expects: &[
                (Feature::MemoryShort, ExpectedAnswer::Is("killed")),
                (Feature::StorageWaits, ExpectedAnswer::Any),
                (Feature::ConnectsLate, ExpectedAnswer::Any),
                (Feature::CoresFull, ExpectedAnswer::Any),
                (Feature::ThreadsFull, ExpectedAnswer::Any),
            ],
        },
    ],
    predicts: Predictions {
        larger_body: STAYS_OR_FALLS,
        smaller_body: RISES_OR_STAYS,
        head: ANY_EFFECT,
        ..Predictions::UNTESTED_CAUSE
    },
    resources: &[],
    is_countable: false,
    missing_evidence: PROCESS_PROBES_ADVICE,
    describe: |case| match (case.killed.unwrap_or(0.0), max_at_high_load_or_zero(case, Signal::MajorFaults)) {
        (killed, _) if killed >= 1.0 => CauseText::for_resource(
            "the memory limit of the server's control group",
            format!(
                "the kernel killed {processes} of the server's control group, because of the group's memory limit",
                processes = count_with_noun(killed, "process", "processes")
            ),
        ),
        (_, pages) if pages >= 1.0 => CauseText::for_resource(
            CARD.name,
            format!(
                "{pages_per_s} memory pages a second are read back from storage{idle_cores}",
                pages_per_s = format::rate(pages),
                idle_cores = idle_cores_text(case)
            ),
        ),
        _ => CauseText::for_resource(
            CARD.name,
            format!("a higher load does not raise the goodput{idle_cores}", idle_cores = idle_cores_text(case)),
        ),
    },
};
