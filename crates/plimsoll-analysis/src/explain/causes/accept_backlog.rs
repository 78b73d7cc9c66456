//! The cause accept backlog: new connections arrive faster than the server accepts them.

use super::card::{
    CauseCard, CauseForm, CauseText, ExpectedAnswer, idle_cores_text, max_at_high_load_or_zero, text_part,
};
use crate::explain::features::Feature;
use crate::explain::predictions::{ALWAYS_RISES, ALWAYS_STAYS, ANY_EFFECT, MOSTLY_STAYS, Predictions, STAYS_OR_FALLS};
use crate::explain::signals::Signal;
use crate::explain::thresholds::{LATE_CONNECT_NS_MIN, SMALL_SHARE_MAX};
use crate::format;

pub(super) static CARD: CauseCard = CauseCard {
    name: "the server's accept queue of new connections",
    forms: &[CauseForm {
        word: "accept_backlog",
        expects: &[
            (Feature::ConnectsLate, ExpectedAnswer::Is("yes")),
            (Feature::AcceptsLate, ExpectedAnswer::Any),
            (Feature::RequestsInService, ExpectedAnswer::Any),
            (Feature::PlimsollLimited, ExpectedAnswer::Any),
        ],
    }],
    predicts: Predictions {
        reference: ALWAYS_STAYS,
        more_users: STAYS_OR_FALLS,
        new_connections: STAYS_OR_FALLS,
        kept_connections: ALWAYS_RISES,
        head: ALWAYS_STAYS,
        smaller_answer: ALWAYS_STAYS,
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
    missing_evidence: &[text_part(
        "plimsoll needs the kernel's counters of the server's listening socket, which probes on the server's machine \
         read",
    )],
    describe: |case| {
        // The kernel completes connections before the server accepts them, so connecting may be
        // fast.
        let is_queued = case.signal_reaches(Signal::Unaccepted, 1.0) == Some(true);
        let how = match max_at_high_load_or_zero(case, Signal::Connect) {
            ns if ns < SMALL_SHARE_MAX * LATE_CONNECT_NS_MIN && is_queued => {
                format!(
                    "{waiting:.0} connections wait in the server's accept queue{idle_cores}",
                    waiting = max_at_high_load_or_zero(case, Signal::Unaccepted),
                    idle_cores = idle_cores_text(case)
                )
            }
            ns => format!(
                "opening a connection took up to {connect_time}, but responses on open connections were not slow",
                connect_time = format::duration(ns)
            ),
        };
        CauseText::for_resource(CARD.name, how)
    },
};
