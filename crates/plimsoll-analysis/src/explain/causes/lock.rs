//! A lock: threads, or statements of a database, wait for each other.

use super::{
    CauseCard, CauseText, Expect, Feature, PROBES, Predictions, Signal, Way, idle, peer_text, server, share, top,
};
use crate::explain::cause::Cause;
use crate::explain::interventions::{
    FALLS, MOSTLY_FALLS, MOSTLY_RISES, MOSTLY_STAYS, OPEN, RISES_OR_STAYS, STAYS, STAYS_OR_FALLS,
};
use crate::explain::queues::{database, database_locks, waiting_statements};
use crate::explain::thresholds::{FELT, ONE_CORE};

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::Lock,
    ways: &[
        Way {
            word: "lock_threads",
            expects: &[
                (Feature::ThreadsWait, Expect::Mostly("lock")),
                (Feature::CeilingMet, Expect::Mostly("none")),
                (Feature::Plateau, Expect::Is("yes")),
                (Feature::ServedAtATime, Expect::Mostly("one")),
                (Feature::WaitsForData, Expect::Not("yes")),
                (Feature::WorkersAsServed, Expect::Not("yes")),
                (Feature::FixedConnections, Expect::Not("in_use")),
                (Feature::ThreadEach, Expect::Any),
                (Feature::ServedAsFast, Expect::Not("yes")),
                (Feature::SpinsForLocks, Expect::Any),
            ],
        },
        Way {
            word: "lock_turns",
            expects: &[
                (Feature::TakesTurns, Expect::Is("lock")),
                (Feature::ThreadsWait, Expect::Any),
                (Feature::Plateau, Expect::Is("yes")),
                (Feature::Polls, Expect::Any),
                (Feature::ServedAsFast, Expect::Not("yes")),
            ],
        },
        Way {
            word: "lock_polled",
            expects: &[
                (Feature::Polls, Expect::Is("yes")),
                (Feature::Plateau, Expect::Is("yes")),
                (Feature::ServedAsFast, Expect::Not("yes")),
                (Feature::FixedConnections, Expect::Any),
                (Feature::WaitsForData, Expect::Not("yes")),
            ],
        },
        Way {
            word: "lock_unseen",
            expects: &[
                (Feature::WaitsUnseen, Expect::Is("yes")),
                (Feature::Plateau, Expect::Is("yes")),
                (Feature::IsProxy, Expect::Not("yes")),
                (Feature::ServedAtATime, Expect::Not("below_one")),
                (Feature::ServedAsFast, Expect::Not("yes")),
            ],
        },
        Way {
            word: "lock_database",
            expects: &[
                (Feature::DatabaseLocks, Expect::Is("yes")),
                (Feature::Plateau, Expect::Is("yes")),
                (Feature::CallsPileUp, Expect::Any),
                (Feature::FixedConnections, Expect::Any),
                (Feature::EachHasOne, Expect::Any),
                (Feature::WaitsForData, Expect::Any),
                (Feature::WorkersAsServed, Expect::Any),
                (Feature::ThreadsWait, Expect::Any),
                (Feature::CallsAsServed, Expect::Any),
                (Feature::AcceptsLate, Expect::Any),
            ],
        },
        Way {
            word: "lock_spins",
            expects: &[
                (Feature::SpinsForLocks, Expect::Is("yes")),
                (Feature::Plateau, Expect::Mostly("yes")),
                (Feature::CoresFull, Expect::Any),
                (Feature::ThreadsFull, Expect::Any),
                (Feature::ThreadsWait, Expect::Any),
                (Feature::WorkersAsServed, Expect::Any),
                (Feature::AcceptsLate, Expect::Any),
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
        second_generator: STAYS,
        stopped: OPEN,
        other_clients: STAYS,
        bursts: MOSTLY_STAYS,
        // Where work before the lock takes now longer, now shorter, requests sent at once do not meet at it.
        together: MOSTLY_FALLS,
        abreast: FALLS,
    },
    resources: &[],
    is_countable: false,
    to_tell: PROBES,
    tell: |case| {
        let (server, idle) = (server(case), idle(case));
        if top(case, Signal::Spinning) >= FELT {
            let how = format!("waiting for it takes {} of the server's CPU time", share(case, Signal::Spinning));
            return CauseText::limit(format!("a lock in {server}"), how);
        }
        if let Some(peer) = database(case).filter(|_| database_locks(case) == Some(true)) {
            let calls = match waiting_statements(case) {
                Some(waiting) => format!("{waiting:.0} statements wait there for another's"),
                None => format!("{:.0} calls wait there", top(case, Signal::PeerWaiting)),
            };
            let cores = top(case, Signal::DownstreamCores);
            let how = format!("{calls} while it uses {cores:.2} cores{idle}");
            return CauseText::limit(format!("a lock in {}", peer_text(case, peer)), how);
        }
        let used = top(case, Signal::ServerCores);
        let how = match ONE_CORE.contains(&used) {
            // From outside, one goroutine or actor that does all the work looks the same.
            true => format!(
                "its threads work in turn, for {used:.2} cores in all, as behind a lock, or for a goroutine or an actor that \
                 does all the work{idle}"
            ),
            false => format!("{:.1} requests are served at a time{idle}", case.at_a_time().unwrap_or(0.0)),
        };
        CauseText::limit(format!("a lock in {server}"), how)
    },
};
