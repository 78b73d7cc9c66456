//! The cause pool: a fixed number of connections to a dependency, or another pool of fixed size, is
//! exhausted.

use super::card::{
    CauseCard, CauseForm, CauseText, ExpectedAnswer, PROCESS_PROBES_ADVICE, count_with_noun, dependency_text,
    idle_cores_text, max_at_high_load_or_zero, server_name,
};
use crate::explain::features::Feature;
use crate::explain::predictions::{ALWAYS_RISES, ALWAYS_STAYS, MOSTLY_FALLS, MOSTLY_RISES, MOSTLY_STAYS, Predictions};
use crate::explain::queues::{has_fixed_dependency_connections, open_calls_equal_served_requests};
use crate::explain::signals::Signal;

pub(super) static CARD: CauseCard = CauseCard {
    name: "a pool: a fixed number of connections to a downstream dependency",
    forms: &[
        CauseForm {
            word: "pool_connections",
            expects: &[
                (Feature::FixedConnections, ExpectedAnswer::Is("in_use")),
                (Feature::CeilingMet, ExpectedAnswer::Mostly("none")),
                (Feature::Plateau, ExpectedAnswer::Is("yes")),
                (Feature::ServedAsFast, ExpectedAnswer::Not("yes")),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
                (Feature::CallsPileUp, ExpectedAnswer::Any),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
                (Feature::Polls, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "pool_queue",
            expects: &[
                (Feature::ThreadsWait, ExpectedAnswer::Is("queue")),
                (Feature::Plateau, ExpectedAnswer::Is("yes")),
                (Feature::RequestsInService, ExpectedAnswer::Is("several")),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
                (Feature::ServedAsFast, ExpectedAnswer::Not("yes")),
            ],
        },
        CauseForm {
            word: "pool_unseen",
            expects: &[
                (Feature::Plateau, ExpectedAnswer::Is("yes")),
                (Feature::RequestsInService, ExpectedAnswer::Is("several")),
                (Feature::ServedAsFast, ExpectedAnswer::Not("yes")),
            ],
        },
    ],
    predicts: Predictions {
        reference: MOSTLY_RISES,
        more_users: ALWAYS_STAYS,
        new_connections: MOSTLY_STAYS,
        kept_connections: MOSTLY_STAYS,
        head: MOSTLY_STAYS,
        smaller_answer: MOSTLY_STAYS,
        larger_body: MOSTLY_STAYS,
        smaller_body: MOSTLY_STAYS,
        second_generator: ALWAYS_STAYS,
        stopped: MOSTLY_FALLS,
        other_clients: ALWAYS_STAYS,
        bursts: MOSTLY_STAYS,
        together: ALWAYS_STAYS,
        abreast: ALWAYS_RISES,
    },
    resources: &[],
    is_countable: true,
    missing_evidence: PROCESS_PROBES_ADVICE,
    describe: |case| {
        let how = |pool_use: &str| {
            format!(
                "{pool_use} above the load line, with {requests:.0} requests in flight{idle_cores}",
                requests = max_at_high_load_or_zero(case, Signal::InFlight),
                idle_cores = idle_cores_text(case)
            )
        };
        if let Some((peer, count)) =
            case.main_dependency().filter(|_| has_fixed_dependency_connections(case) == Some(true))
        {
            let several = count.round() != 1.0;
            let connections = count_with_noun(count, "connection", "connections");
            let how = match several {
                true => how(&format!("all {connections} are in use")),
                // From outside, one shared connection looks like a lock around each call.
                false => how("the only connection to the dependency, or a lock around this connection, is in use"),
            };
            return CauseText::for_resource(format!("{connections} to {}", dependency_text(case, peer)), how)
                .with_plural_subject(several);
        }
        let pool = format!(
            "a pool in {server} that admits about {requests} at a time",
            server = server_name(case),
            requests = count_with_noun(case.requests_in_service().unwrap_or(0.0), "request", "requests")
        );
        let subject =
            match case.most_called_dependency().filter(|_| open_calls_equal_served_requests(case) == Some(true)) {
                Some((peer, _)) => format!("{pool}, for calls to {}", dependency_text(case, peer)),
                None => pool,
            };
        CauseText::for_resource(subject, how("the whole pool is in use"))
    },
};
