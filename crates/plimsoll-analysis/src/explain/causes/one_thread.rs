//! One thread of the server, or several of which one runs at a time.

use super::{CauseCard, CauseText, Expect, Feature, PROBES, Predictions, Signal, UsedResource, Way, idle, server, top};
use crate::explain::cause::Cause;
use crate::explain::interventions::{MOSTLY_STAYS, OPEN, RISES_OR_STAYS, STAYS, STAYS_OR_FALLS};

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::OneThread,
    ways: &[
        Way {
            word: "one_thread",
            expects: &[
                (Feature::ThreadsFull, Expect::Is("one")),
                (Feature::CeilingMet, Expect::Mostly("thread")),
                (Feature::CoresFull, Expect::Not("machine")),
                (Feature::ConnectsLate, Expect::Any),
                (Feature::QueueOverflows, Expect::Any),
                (Feature::Collects, Expect::Not("yes")),
                (Feature::AcceptsLate, Expect::Any),
                (Feature::FixedConnections, Expect::Any),
            ],
        },
        Way {
            word: "one_thread_interpreter",
            expects: &[
                (Feature::TakesTurns, Expect::Is("interpreter")),
                (Feature::ThreadsWait, Expect::Any),
                (Feature::Polls, Expect::Any),
                (Feature::WorkersAsServed, Expect::Any),
                (Feature::FixedConnections, Expect::Any),
                (Feature::CoresFull, Expect::Not("machine")),
                (Feature::AcceptsLate, Expect::Any),
            ],
        },
    ],
    predicts: Predictions {
        reference: RISES_OR_STAYS,
        more_users: STAYS,
        new_connections: STAYS_OR_FALLS,
        kept_connections: RISES_OR_STAYS,
        head: RISES_OR_STAYS,
        smaller_answer: RISES_OR_STAYS,
        larger_body: STAYS_OR_FALLS,
        smaller_body: RISES_OR_STAYS,
        second_generator: STAYS_OR_FALLS,
        stopped: MOSTLY_STAYS,
        other_clients: STAYS,
        bursts: MOSTLY_STAYS,
        together: OPEN,
        abreast: OPEN,
    },
    resources: &[UsedResource::Thread],
    is_countable: true,
    to_tell: PROBES,
    tell: |case| {
        let server = server(case);
        if case.thread_full() != Some(true) {
            let how = format!("together they use {:.2} of a core{}", top(case, Signal::ServerCores), idle(case));
            return CauseText::limit(format!("the threads of {server}, of which one runs at a time"), how)
                .several(true);
        }
        let thread = case.past.fullest_thread.clone().or_else(|| case.line.fullest_thread.clone());
        let thread = thread.map_or_else(String::new, |name| format!(", {name}"));
        let how = format!("it uses {:.2} of a core{}", top(case, Signal::FullestThread), idle(case));
        CauseText::limit(format!("one thread of {server}{thread}"), how)
    },
};
