//! Memory: pages are read back from storage, or the limit of the control group is reached.

use super::{CauseCard, CauseText, Expect, Feature, PROBES, Predictions, Signal, Way, idle, number, top};
use crate::explain::cause::Cause;
use crate::explain::interventions::{OPEN, RISES_OR_STAYS, STAYS_OR_FALLS};
use crate::format;

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::Memory,
    ways: &[
        Way {
            word: "memory_short",
            expects: &[
                (Feature::MemoryShort, Expect::Is("yes")),
                (Feature::CoresFull, Expect::Any),
                (Feature::OthersTookCores, Expect::Any),
                (Feature::StorageWaits, Expect::Any),
                (Feature::ConnectsLate, Expect::Any),
                (Feature::WorkersAsServed, Expect::Any),
                (Feature::TakesTurns, Expect::Any),
            ],
        },
        Way {
            word: "memory_killed",
            expects: &[
                (Feature::MemoryShort, Expect::Is("killed")),
                (Feature::StorageWaits, Expect::Any),
                (Feature::ConnectsLate, Expect::Any),
                (Feature::CoresFull, Expect::Any),
                (Feature::ThreadsFull, Expect::Any),
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
    to_tell: PROBES,
    tell: |case| match (case.killed.unwrap_or(0.0), top(case, Signal::MajorFaults)) {
        (killed, _) if killed >= 1.0 => CauseText::limit(
            "the limit of memory of the server's control group",
            format!("the kernel ended {} for it", number(killed, "process", "processes")),
        ),
        (_, pages) if pages >= 1.0 => CauseText::limit(
            Cause::Memory.text(),
            format!("{} pages a second are read back from storage{}", format::rate(pages), idle(case)),
        ),
        _ => CauseText::limit(Cause::Memory.text(), format!("more load brings no more responses{}", idle(case))),
    },
};
