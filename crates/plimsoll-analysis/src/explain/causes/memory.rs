//! The cause memory: memory is short, so pages are read back from storage, or the control group
//! reaches its memory limit.

use super::card::{
    CauseCard, CauseForm, CauseText, ExpectedAnswer, PROBES, idle_cores_text, number, signal_max_or_zero,
};
use crate::explain::cause::Cause;
use crate::explain::features::Feature;
use crate::explain::predictions::{OPEN, Predictions, RISES_OR_STAYS, STAYS_OR_FALLS};
use crate::explain::signals::Signal;
use crate::format;

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::Memory,
    ways: &[
        CauseForm {
            word: "memory_short",
            expects: &[
                (Feature::MemoryShort, ExpectedAnswer::Is("yes")),
                (Feature::CoresFull, ExpectedAnswer::Any),
                (Feature::OthersTookCores, ExpectedAnswer::Any),
                (Feature::StorageWaits, ExpectedAnswer::Any),
                (Feature::ConnectsLate, ExpectedAnswer::Any),
                (Feature::WorkersAsServed, ExpectedAnswer::Any),
                (Feature::TakesTurns, ExpectedAnswer::Any),
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
        head: OPEN,
        ..Predictions::OPEN
    },
    resources: &[],
    is_countable: false,
    missing_evidence: PROBES,
    tell: |case| match (case.killed.unwrap_or(0.0), signal_max_or_zero(case, Signal::MajorFaults)) {
        (killed, _) if killed >= 1.0 => CauseText::limit(
            "the limit of memory of the server's control group",
            format!(
                "the kernel ended {processes} because of the memory limit",
                processes = number(killed, "process", "processes")
            ),
        ),
        (_, pages) if pages >= 1.0 => CauseText::limit(
            Cause::Memory.text(),
            format!(
                "{pages_per_s} pages a second are read back from storage{idle_cores}",
                pages_per_s = format::rate(pages),
                idle_cores = idle_cores_text(case)
            ),
        ),
        _ => CauseText::limit(
            Cause::Memory.text(),
            format!("more load brings no more responses{idle_cores}", idle_cores = idle_cores_text(case)),
        ),
    },
};
