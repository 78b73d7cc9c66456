//! The cause lock: threads wait for a lock, or database statements wait for locks of other
//! statements.

use super::card::{
    CauseCard, CauseForm, CauseText, ExpectedAnswer, PROCESS_PROBES_ADVICE, dependency_text, idle_cores_text,
    max_at_high_load_or_zero, percent_at_high_load, server_name,
};
use crate::explain::features::Feature;
use crate::explain::predictions::{
    ALWAYS_FALLS, ALWAYS_STAYS, ANY_EFFECT, MOSTLY_RISES, MOSTLY_STAYS, Predictions, RISES_OR_STAYS, STAYS_OR_FALLS,
};
use crate::explain::queues::{database_address, statements_wait_for_locks, waiting_statements};
use crate::explain::signals::Signal;
use crate::explain::thresholds::{NOTICEABLE_SHARE_MIN, ONE_CORE_RANGE};

pub(super) static CARD: CauseCard = CauseCard {
    name: "a lock: requests wait for each other",
    forms: &[
        CauseForm {
            word: "lock_threads",
            expects: &[
                (Feature::ThreadsWait, ExpectedAnswer::Mostly("lock")),
                (Feature::CeilingMet, ExpectedAnswer::Mostly("none")),
                (Feature::Plateau, ExpectedAnswer::Is("yes")),
                (Feature::RequestsInService, ExpectedAnswer::Mostly("one")),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Not("yes")),
                (Feature::FixedConnections, ExpectedAnswer::Not("in_use")),
                (Feature::ServedAsFast, ExpectedAnswer::Not("yes")),
                (Feature::SpinsForLocks, ExpectedAnswer::Any),
                // Workers that wait for a lock do not accept connections, so connections may be
                // accepted late.
                (Feature::AcceptsLate, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "lock_turns",
            expects: &[
                (Feature::ThreadsRunOneAtATime, ExpectedAnswer::Is("lock")),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
                (Feature::Plateau, ExpectedAnswer::Is("yes")),
                (Feature::ServedAsFast, ExpectedAnswer::Not("yes")),
                (Feature::Polls, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "lock_polled",
            expects: &[
                (Feature::Polls, ExpectedAnswer::Is("yes")),
                (Feature::Plateau, ExpectedAnswer::Is("yes")),
                (Feature::ServedAsFast, ExpectedAnswer::Not("yes")),
                (Feature::FixedConnections, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "lock_unseen",
            expects: &[
                (Feature::Plateau, ExpectedAnswer::Is("yes")),
                (Feature::RequestsInService, ExpectedAnswer::Not("below_one")),
                (Feature::ServedAsFast, ExpectedAnswer::Not("yes")),
            ],
        },
        CauseForm {
            word: "lock_database",
            expects: &[
                (Feature::DatabaseLocks, ExpectedAnswer::Is("yes")),
                (Feature::Plateau, ExpectedAnswer::Is("yes")),
                (Feature::CallsPileUp, ExpectedAnswer::Any),
                (Feature::FixedConnections, ExpectedAnswer::Any),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
                (Feature::AcceptsLate, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "lock_spins",
            expects: &[
                (Feature::SpinsForLocks, ExpectedAnswer::Is("yes")),
                (Feature::Plateau, ExpectedAnswer::Mostly("yes")),
                (Feature::CoresFull, ExpectedAnswer::Any),
                (Feature::ThreadsFull, ExpectedAnswer::Any),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
                (Feature::AcceptsLate, ExpectedAnswer::Any),
            ],
        },
    ],
    predicts: Predictions {
        reference: MOSTLY_RISES,
        more_users: STAYS_OR_FALLS,
        new_connections: MOSTLY_STAYS,
        kept_connections: MOSTLY_STAYS,
        head: MOSTLY_STAYS,
        smaller_answer: MOSTLY_STAYS,
        larger_body: STAYS_OR_FALLS,
        smaller_body: RISES_OR_STAYS,
        second_generator: ALWAYS_STAYS,
        stopped: ANY_EFFECT,
        other_clients: ALWAYS_STAYS,
        bursts: MOSTLY_STAYS,
        // If the work before the lock varies in length, requests that start together reach the lock
        // at different times.
        together: STAYS_OR_FALLS,
        abreast: ALWAYS_FALLS,
    },
    resources: &[],
    is_countable: false,
    missing_evidence: PROCESS_PROBES_ADVICE,
    describe: |case| {
        let (server, idle_cores) = (server_name(case), idle_cores_text(case));
        if max_at_high_load_or_zero(case, Signal::Spinning) >= NOTICEABLE_SHARE_MIN {
            let how = format!(
                "waiting for the lock takes {waiting_share} of the server's CPU time",
                waiting_share = percent_at_high_load(case, Signal::Spinning)
            );
            return CauseText::for_resource(format!("a lock in {server}"), how);
        }
        if let Some(peer) = database_address(case).filter(|_| statements_wait_for_locks(case) == Some(true)) {
            let waiting_calls = match waiting_statements(case) {
                Some(waiting) => format!("{waiting:.0} database statements wait for a lock of another statement"),
                None => format!(
                    "{calls:.0} calls of the server wait for this database",
                    calls = max_at_high_load_or_zero(case, Signal::PeerWaiting)
                ),
            };
            let cores = max_at_high_load_or_zero(case, Signal::DownstreamCores);
            let how = format!("{waiting_calls} while the database uses {cores:.2} cores{idle_cores}");
            return CauseText::for_resource(format!("a lock in {}", dependency_text(case, peer)), how);
        }
        let used = max_at_high_load_or_zero(case, Signal::ServerCores);
        let how = match ONE_CORE_RANGE.contains(&used) {
            // From outside, a single goroutine or actor that does all the work looks like a lock.
            true => format!(
                "the server's threads run one at a time and use {used:.2} cores in total: a lock, one goroutine or \
                 one actor can cause this{idle_cores}"
            ),
            false => format!(
                "on average, the server handles {requests:.1} requests at a time{idle_cores}",
                requests = case.requests_in_service().unwrap_or(0.0)
            ),
        };
        CauseText::for_resource(format!("a lock in {server}"), how)
    },
};
