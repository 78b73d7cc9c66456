//! The cause CPU: all cores that the server may use are saturated.

use super::card::{
    CauseCard, CauseForm, CauseText, ExpectedAnswer, PROCESS_PROBES_ADVICE, count_with_noun, max_at_high_load_or_zero,
    server_name,
};
use crate::explain::demands::UsedResource;
use crate::explain::features::Feature;
use crate::explain::predictions::Predictions;
use crate::explain::signals::Signal;
use crate::explain::thresholds::SMALL_SHARE_MAX;

pub(super) static CARD: CauseCard = CauseCard {
    name: "the cores that the server may use",
    forms: &[
        CauseForm {
            word: "cpu_machine",
            expects: &[
                (Feature::CoresFull, ExpectedAnswer::Is("machine")),
                (Feature::CeilingMet, ExpectedAnswer::Mostly("cores")),
                (Feature::ThreadsFull, ExpectedAnswer::Any),
                (Feature::ConnectsLate, ExpectedAnswer::Any),
                (Feature::AcceptsLate, ExpectedAnswer::Any),
                (Feature::FixedConnections, ExpectedAnswer::Any),
                (Feature::PlimsollLimited, ExpectedAnswer::Any),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
                (Feature::DataInTransit, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "cpu_allowed",
            expects: &[
                (Feature::CoresFull, ExpectedAnswer::Is("allowed")),
                (Feature::CeilingMet, ExpectedAnswer::Mostly("cores")),
                (Feature::ThreadsFull, ExpectedAnswer::Any),
                (Feature::ThreadsRunOneAtATime, ExpectedAnswer::Any),
                (Feature::ConnectsLate, ExpectedAnswer::Any),
                (Feature::AcceptsLate, ExpectedAnswer::Any),
                (Feature::FixedConnections, ExpectedAnswer::Any),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
                (Feature::DependencyFull, ExpectedAnswer::Any),
            ],
        },
    ],
    predicts: Predictions::BUSY_RESOURCE_PREDICTIONS,
    resources: &[UsedResource::Cores, UsedResource::AllowedCores],
    is_countable: true,
    missing_evidence: PROCESS_PROBES_ADVICE,
    describe: |case| {
        let downstream = case.max_at_high_load(Signal::DownstreamCores).filter(|cores| *cores > SMALL_SHARE_MAX);
        let dependency_use = downstream.map_or_else(String::new, |cores| format!(", its dependencies {cores:.2}"));
        let server_cores = max_at_high_load_or_zero(case, Signal::ServerCores);
        let all = case.are_cores_saturated() == Some(true);
        let count = match (all, case.are_bound_cores_saturated()) {
            (true, _) => max_at_high_load_or_zero(case, Signal::Cores),
            (false, Some(true)) => max_at_high_load_or_zero(case, Signal::CoresAllowed),
            (false, _) => server_cores,
        };
        let cores = count_with_noun(count, "core", "cores");
        let several = count.round() != 1.0;
        let subject = if all {
            let host = [&case.line, &case.past].into_iter().find_map(|sight| sight.host.as_deref());
            format!("the {cores} of {}", host.unwrap_or("this machine"))
        } else {
            format!("the {cores} that {server_name} may use", server_name = server_name(case))
        };
        // If plimsoll runs on a separate machine, plimsoll uses no core of the server, so this text
        // is empty.
        let plimsoll_cores = case.max_at_high_load(Signal::ClientCores);
        let plimsoll_use = plimsoll_cores.map_or_else(String::new, |cores| format!(", plimsoll {cores:.2}"));
        let how = format!("the server uses {server_cores:.2} cores{dependency_use}{plimsoll_use}");
        CauseText::for_resource(subject, how).with_plural_subject(several)
    },
};
