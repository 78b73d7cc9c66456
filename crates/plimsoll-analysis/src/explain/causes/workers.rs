//! The cause workers: all workers of the server or of a dependency are busy. A worker is a process
//! or thread that handles one request at a time.

use super::card::{
    CauseCard, CauseForm, CauseText, ExpectedAnswer, PROCESS_PROBES_ADVICE, count_with_noun, dependency_text,
    idle_cores_text, max_at_high_load_or_zero, server_name,
};
use crate::explain::features::Feature;
use crate::explain::predictions::{ALWAYS_RISES, ALWAYS_STAYS, ANY_EFFECT, MOSTLY_RISES, MOSTLY_STAYS, Predictions};
use crate::explain::queues::connections_queue_at_dependency;
use crate::explain::signals::Signal;
use crate::explain::thresholds::TWOFOLD_FACTOR;

pub(super) static CARD: CauseCard = CauseCard {
    name: "the server's workers: a fixed number of requests that the server handles at once",
    forms: &[
        CauseForm {
            word: "workers",
            expects: &[
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Mostly("yes")),
                (Feature::CeilingMet, ExpectedAnswer::Mostly("none")),
                (Feature::AcceptsLate, ExpectedAnswer::Mostly("yes")),
                (Feature::Plateau, ExpectedAnswer::Is("yes")),
                (Feature::RequestsInService, ExpectedAnswer::Not("below_one")),
                (Feature::FixedConnections, ExpectedAnswer::Any),
                (Feature::ResponsesInBatches, ExpectedAnswer::Any),
                (Feature::CallsPileUp, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "workers_full_threads",
            expects: &[
                (Feature::ThreadsFull, ExpectedAnswer::Is("several")),
                (Feature::CoresFull, ExpectedAnswer::Is("no")),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
                (Feature::AcceptsLate, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "workers_dependency",
            expects: &[
                (Feature::QueuesAtDependency, ExpectedAnswer::Is("yes")),
                (Feature::Plateau, ExpectedAnswer::Is("yes")),
                (Feature::CallsPileUp, ExpectedAnswer::Any),
                (Feature::FixedConnections, ExpectedAnswer::Any),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
                (Feature::ReadsSlowly, ExpectedAnswer::Any),
            ],
        },
    ],
    predicts: Predictions {
        reference: MOSTLY_RISES,
        more_users: ALWAYS_STAYS,
        new_connections: ANY_EFFECT,
        kept_connections: ANY_EFFECT,
        head: MOSTLY_STAYS,
        smaller_answer: MOSTLY_STAYS,
        larger_body: MOSTLY_STAYS,
        smaller_body: MOSTLY_STAYS,
        second_generator: ALWAYS_STAYS,
        stopped: ANY_EFFECT,
        other_clients: ALWAYS_STAYS,
        bursts: MOSTLY_STAYS,
        together: ALWAYS_STAYS,
        abreast: ALWAYS_RISES,
    },
    resources: &[],
    is_countable: true,
    missing_evidence: PROCESS_PROBES_ADVICE,
    describe: |case| {
        let idle_cores = idle_cores_text(case);
        let count = case.requests_in_service().unwrap_or(0.0).max(1.0);
        if max_at_high_load_or_zero(case, Signal::FullThreads) >= TWOFOLD_FACTOR {
            let threads = count_with_noun(max_at_high_load_or_zero(case, Signal::FullThreads), "thread", "threads");
            return CauseText::for_resource(
                format!("{threads} of {}", server_name(case)),
                format!("{threads} of the server are saturated{idle_cores}"),
            )
            .with_plural_subject(true);
        }
        if connections_queue_at_dependency(case) == Some(true) {
            let who = case
                .slowest_accepting_dependency()
                .map_or_else(|| "a dependency".to_owned(), |peer| dependency_text(case, peer));
            let how = format!(
                "the dependency handles about {requests} at once, and {connections} wait to be accepted{idle_cores}",
                requests = count_with_noun(count, "request", "requests"),
                connections =
                    count_with_noun(max_at_high_load_or_zero(case, Signal::PeerQueued), "connection", "connections")
            );
            return CauseText::for_resource(format!("the workers of {who}"), how).with_plural_subject(true);
        }
        let in_flight = max_at_high_load_or_zero(case, Signal::InFlight);
        CauseText::for_resource(
            format!("{} of {}", count_with_noun(count, "worker", "workers"), server_name(case)),
            format!("each worker serves one request at a time, and {in_flight:.0} requests are in flight{idle_cores}"),
        )
        .with_plural_subject(count.round() > 1.0)
    },
};
