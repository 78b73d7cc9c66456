//! Other processes on the machine took cores that the server's threads waited for.

use super::{CauseCard, CauseText, Expect, Feature, Predictions, Signal, Way, top, words};
use crate::explain::cause::Cause;

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::Neighbour,
    ways: &[Way {
        word: "neighbour",
        expects: &[
            (Feature::OthersTookCores, Expect::Is("yes")),
            (Feature::WaitsForCores, Expect::Mostly("yes")),
            (Feature::CoresFull, Expect::Mostly("others")),
            (Feature::ThreadsFull, Expect::Any),
        ],
    }],
    predicts: Predictions::OPEN,
    resources: &[],
    is_countable: false,
    to_tell: &[words("the machine's CPU time (probes)")],
    tell: |case| {
        let (others, waiting) = (top(case, Signal::Others), top(case, Signal::RunQueue));
        let whole = format!(
            "other processes on the machine limited the server: they used {others:.2} cores, while {waiting:.1} of its threads waited for one"
        );
        CauseText::sentence(Cause::Neighbour, whole)
    },
};
