//! A limit on the rate, set on purpose: it refuses, or lets responses wait.

use super::{CauseCard, CauseText, Expect, Feature, PROBES, Predictions, Signal, Way, idle, rate_past, top};
use crate::explain::cause::Cause;
use crate::explain::interventions::{MOSTLY_STAYS, RISES_OR_FALLS, RISES_OR_STAYS, STAYS, STAYS_OR_FALLS};

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::Limiter,
    ways: &[
        Way {
            word: "limiter_refuses",
            expects: &[
                (Feature::Refuses, Expect::Is("yes")),
                (Feature::ServedAsFast, Expect::Is("yes")),
                (Feature::Plateau, Expect::Mostly("yes")),
                (Feature::CallsPileUp, Expect::Any),
                (Feature::FixedConnections, Expect::Any),
            ],
        },
        Way {
            word: "limiter_delays",
            expects: &[
                (Feature::ServedAtATime, Expect::Is("below_one")),
                (Feature::Plateau, Expect::Is("yes")),
                (Feature::ComesEvenly, Expect::Mostly("yes")),
                (Feature::ServedAsFast, Expect::Not("yes")),
                (Feature::Polls, Expect::Any),
                (Feature::ThreadsWait, Expect::Any),
                (Feature::WaitsForData, Expect::Not("yes")),
                (Feature::FixedConnections, Expect::Any),
            ],
        },
        Way {
            word: "limiter_window",
            expects: &[
                (Feature::ComesInLumps, Expect::Is("yes")),
                (Feature::Plateau, Expect::Is("yes")),
                (Feature::WaitsUnseen, Expect::Mostly("yes")),
                (Feature::ServedAsFast, Expect::Not("yes")),
                (Feature::Polls, Expect::Any),
            ],
        },
        Way {
            word: "limiter_unseen",
            expects: &[
                (Feature::WaitsUnseen, Expect::Is("yes")),
                (Feature::Plateau, Expect::Is("yes")),
                (Feature::ServedAtATime, Expect::Is("several")),
                (Feature::ComesEvenly, Expect::Mostly("yes")),
                (Feature::ServedAsFast, Expect::Not("yes")),
            ],
        },
    ],
    predicts: Predictions {
        reference: RISES_OR_STAYS,
        more_users: STAYS,
        new_connections: MOSTLY_STAYS,
        kept_connections: MOSTLY_STAYS,
        head: STAYS,
        smaller_answer: STAYS,
        larger_body: STAYS,
        smaller_body: STAYS,
        second_generator: STAYS,
        stopped: MOSTLY_STAYS,
        other_clients: RISES_OR_STAYS,
        bursts: STAYS_OR_FALLS,
        together: RISES_OR_FALLS,
        abreast: RISES_OR_FALLS,
    },
    resources: &[],
    is_countable: true,
    to_tell: PROBES,
    tell: |case| match case.past.refusals.iter().max_by_key(|(_, times)| *times) {
        Some((status, _)) if top(case, Signal::Refused) > 0.0 => CauseText::limit(
            format!("a limit on the rate (status {status})"),
            format!("{} succeeded, whatever was asked", rate_past(case)),
        ),
        _ => CauseText::limit(
            "a limit on the rate that lets responses wait",
            format!("{} succeeded, and nothing works all the time{}", rate_past(case), idle(case)),
        ),
    },
};
