//! The cause accept backlog: new connections arrive faster than the server accepts them.

use super::card::{CauseCard, CauseForm, CauseText, ExpectedAnswer, idle_cores_text, signal_max_or_zero, words};
use crate::explain::cause::Cause;
use crate::explain::features::Feature;
use crate::explain::predictions::{MOSTLY_STAYS, OPEN, Predictions, RISES, STAYS, STAYS_OR_FALLS};
use crate::explain::signals::Signal;
use crate::explain::thresholds::{FEW, LATE_CONNECT_NS};
use crate::format;

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::AcceptBacklog,
    ways: &[CauseForm {
        word: "accept_backlog",
        expects: &[
            (Feature::ConnectsLate, ExpectedAnswer::Is("yes")),
            (Feature::QueueOverflows, ExpectedAnswer::Mostly("yes")),
            (Feature::AcceptsLate, ExpectedAnswer::Any),
            (Feature::ServedAtATime, ExpectedAnswer::Any),
            (Feature::PlimsollLimited, ExpectedAnswer::Any),
        ],
    }],
    predicts: Predictions {
        reference: STAYS,
        more_users: STAYS_OR_FALLS,
        new_connections: STAYS_OR_FALLS,
        kept_connections: RISES,
        head: STAYS,
        smaller_answer: STAYS,
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
    missing_evidence: &[words("the kernel's counters of the listening socket (probes)")],
    tell: |case| {
        // The kernel completes connections before the server accepts them, so connecting may be
        // fast.
        let is_queued = case.signal_reaches(Signal::Unaccepted, 1.0) == Some(true);
        let how = match signal_max_or_zero(case, Signal::Connect) {
            ns if ns < FEW * LATE_CONNECT_NS && is_queued => {
                format!(
                    "{waiting:.0} connections wait in this queue{idle_cores}",
                    waiting = signal_max_or_zero(case, Signal::Unaccepted),
                    idle_cores = idle_cores_text(case)
                )
            }
            ns => format!(
                "connecting took up to {connect_time}, but responses were not slow",
                connect_time = format::duration(ns)
            ),
        };
        CauseText::limit(Cause::AcceptBacklog.text(), how)
    },
};
