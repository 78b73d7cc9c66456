//! The cause delay: responses take longer than the SLO allows although no request queues.

use super::card::{CauseCard, CauseForm, CauseText, ExpectedAnswer};
use crate::explain::features::Feature;
use crate::explain::predictions::{ALWAYS_RISES, ALWAYS_STAYS, ANY_EFFECT, MOSTLY_RISES, MOSTLY_STAYS, Predictions};
use crate::explain::signals::Signal;
use crate::format;

pub(super) static CARD: CauseCard = CauseCard {
    name: "a response time that exceeds the SLO at any load",
    forms: &[CauseForm {
        word: "delay",
        expects: &[
            (Feature::SlowAtLowLoad, ExpectedAnswer::Is("yes")),
            (Feature::ServedAsFast, ExpectedAnswer::Any),
            (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
            (Feature::FixedConnections, ExpectedAnswer::Any),
            (Feature::StorageWaits, ExpectedAnswer::Any),
            (Feature::ThreadsWait, ExpectedAnswer::Any),
            (Feature::CallsPileUp, ExpectedAnswer::Any),
            (Feature::CoresFull, ExpectedAnswer::Any),
            (Feature::ThreadsFull, ExpectedAnswer::Any),
            (Feature::PlimsollLimited, ExpectedAnswer::Any),
        ],
    }],
    predicts: Predictions {
        reference: MOSTLY_RISES,
        more_users: ALWAYS_RISES,
        new_connections: MOSTLY_STAYS,
        kept_connections: MOSTLY_STAYS,
        head: MOSTLY_STAYS,
        smaller_answer: MOSTLY_STAYS,
        larger_body: MOSTLY_STAYS,
        smaller_body: MOSTLY_STAYS,
        second_generator: ALWAYS_STAYS,
        stopped: ANY_EFFECT,
        other_clients: ALWAYS_STAYS,
        bursts: MOSTLY_STAYS,
        together: ANY_EFFECT,
        abreast: ANY_EFFECT,
    },
    resources: &[],
    is_countable: false,
    missing_evidence: &[],
    describe: |case| {
        let low = case.unloaded_latency_load();
        let measured_time = match low.get(Signal::P99) {
            Some(p99) => {
                // The goodput may be 0 if no slow request completed in the window, so the offered
                // rate is shown.
                let rate = format::rate(low.get(Signal::Offered).or(low.get(Signal::Goodput)).unwrap_or(0.0));
                format!(
                    "the response time p99 is {p99_time} at {rate} requests/s, a rate at which no request queues",
                    p99_time = format::duration(p99)
                )
            }
            None => format!("a request alone takes {}", format::duration(case.alone_ns.unwrap_or(0.0))),
        };
        CauseText::from_sentence(
            CARD.name,
            format!("responses take longer than the SLO allows even without a queue: {measured_time}"),
        )
    },
};
