//! All cores that the server may use.

use super::{
    CauseCard, CauseText, Expect, Feature, PROBES, Predictions, Signal, UsedResource, Way, number, server, top,
};
use crate::explain::cause::Cause;
use crate::explain::interventions::{MOSTLY_STAYS, OPEN, RISES_OR_STAYS, STAYS, STAYS_OR_FALLS};
use crate::explain::thresholds::FEW;

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::Cpu,
    ways: &[
        Way {
            word: "cpu_machine",
            expects: &[
                (Feature::CoresFull, Expect::Is("machine")),
                (Feature::CeilingMet, Expect::Mostly("cores")),
                (Feature::WaitsForCores, Expect::Mostly("yes")),
                (Feature::ThreadsFull, Expect::Any),
                (Feature::ConnectsLate, Expect::Any),
                (Feature::AcceptsLate, Expect::Any),
                (Feature::FixedConnections, Expect::Any),
                (Feature::PlimsollLimited, Expect::Any),
                (Feature::ThreadsWait, Expect::Any),
                (Feature::WorkersAsServed, Expect::Any),
                (Feature::EachHasOne, Expect::Any),
                (Feature::CallsAsServed, Expect::Any),
                (Feature::OnTheWay, Expect::Any),
            ],
        },
        Way {
            word: "cpu_allowed",
            expects: &[
                (Feature::CoresFull, Expect::Is("allowed")),
                (Feature::CeilingMet, Expect::Mostly("cores")),
                (Feature::WaitsForCores, Expect::Mostly("yes")),
                (Feature::ThreadsFull, Expect::Any),
                (Feature::TakesTurns, Expect::Any),
                (Feature::ConnectsLate, Expect::Any),
                (Feature::AcceptsLate, Expect::Any),
                (Feature::FixedConnections, Expect::Any),
                (Feature::ThreadsWait, Expect::Any),
                (Feature::WorkersAsServed, Expect::Any),
                (Feature::EachHasOne, Expect::Any),
                (Feature::DependencyFull, Expect::Any),
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
    resources: &[UsedResource::Cores, UsedResource::Allowed],
    is_countable: true,
    to_tell: PROBES,
    tell: |case| {
        let downstream = case.top(Signal::DownstreamCores).filter(|cores| *cores > FEW);
        let downstream = downstream.map_or_else(String::new, |cores| format!(", its dependencies {cores:.2}"));
        let own = top(case, Signal::ServerCores);
        let all = case.cores_full() == Some(true);
        let count = match (all, case.allowed_full()) {
            (true, _) => top(case, Signal::Cores),
            (false, Some(true)) => top(case, Signal::CoresAllowed),
            (false, _) => own,
        };
        let cores = number(count, "core", "cores");
        let several = count.round() != 1.0;
        let of_them = if several { "of them" } else { "of it" };
        let subject = if all {
            format!("the {cores} of this machine")
        } else {
            format!("the {cores} that {} may use", server(case))
        };
        let ours = top(case, Signal::ClientCores);
        CauseText::limit(subject, format!("the server uses {own:.2} {of_them}{downstream}, plimsoll {ours:.2}"))
            .several(several)
    },
};
