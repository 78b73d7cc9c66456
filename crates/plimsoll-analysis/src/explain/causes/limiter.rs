//! The cause limiter: a rate limiter rejects requests, or delays responses.

use super::card::{
    CauseCard, CauseForm, CauseText, ExpectedAnswer, PROCESS_PROBES_ADVICE, goodput_above_line_text, idle_cores_text,
    max_at_high_load_or_zero,
};
use crate::explain::features::Feature;
use crate::explain::predictions::{
    ALWAYS_STAYS, MOSTLY_STAYS, Predictions, RISES_OR_FALLS, RISES_OR_STAYS, STAYS_OR_FALLS,
};
use crate::explain::signals::Signal;

pub(super) static CARD: CauseCard = CauseCard {
    name: "a rate limiter that rejects or delays requests",
    forms: &[
        CauseForm {
            word: "limiter_refuses",
            expects: &[
                (Feature::Refuses, ExpectedAnswer::Is("yes")),
                // A limiter may let requests queue before it rejects further requests, so
                // successful responses above the load line may be slow.
                (Feature::ServedAsFast, ExpectedAnswer::Mostly("yes")),
                (Feature::Plateau, ExpectedAnswer::Mostly("yes")),
                (Feature::CallsPileUp, ExpectedAnswer::Any),
                (Feature::FixedConnections, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "limiter_delays",
            expects: &[
                (Feature::RequestsInService, ExpectedAnswer::Is("below_one")),
                (Feature::Plateau, ExpectedAnswer::Is("yes")),
                (Feature::ComesEvenly, ExpectedAnswer::Mostly("yes")),
                (Feature::ServedAsFast, ExpectedAnswer::Not("yes")),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
                (Feature::FixedConnections, ExpectedAnswer::Any),
                (Feature::Polls, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "limiter_window",
            expects: &[
                (Feature::ResponsesInBatches, ExpectedAnswer::Is("yes")),
                (Feature::Plateau, ExpectedAnswer::Is("yes")),
                (Feature::ServedAsFast, ExpectedAnswer::Not("yes")),
                (Feature::Polls, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "limiter_unseen",
            expects: &[
                (Feature::Plateau, ExpectedAnswer::Is("yes")),
                (Feature::RequestsInService, ExpectedAnswer::Is("several")),
                // A pool or a lock with constant service times also responds at even intervals.
                (Feature::ComesEvenly, ExpectedAnswer::Any),
                (Feature::ServedAsFast, ExpectedAnswer::Not("yes")),
            ],
        },
    ],
    predicts: Predictions {
        reference: RISES_OR_STAYS,
        more_users: ALWAYS_STAYS,
        new_connections: MOSTLY_STAYS,
        kept_connections: MOSTLY_STAYS,
        head: ALWAYS_STAYS,
        smaller_answer: ALWAYS_STAYS,
        larger_body: ALWAYS_STAYS,
        smaller_body: ALWAYS_STAYS,
        second_generator: ALWAYS_STAYS,
        stopped: MOSTLY_STAYS,
        other_clients: RISES_OR_STAYS,
        bursts: STAYS_OR_FALLS,
        together: RISES_OR_FALLS,
        abreast: RISES_OR_FALLS,
    },
    resources: &[],
    is_countable: true,
    missing_evidence: PROCESS_PROBES_ADVICE,
    describe: |case| match case.past.refusals.iter().max_by_key(|(_, times)| *times) {
        Some((status, _)) if max_at_high_load_or_zero(case, Signal::Refused) > 0.0 => CauseText::for_resource(
            format!("a rate limit (status {status})"),
            format!(
                "above the load line, the goodput was only {goodput}, and further requests were rejected",
                goodput = goodput_above_line_text(case)
            ),
        ),
        _ => CauseText::for_resource(
            "a rate limit that delays responses",
            format!(
                "above the load line, the goodput was {goodput}, and no resource was saturated{idle_cores}",
                goodput = goodput_above_line_text(case),
                idle_cores = idle_cores_text(case)
            ),
        ),
    },
};
