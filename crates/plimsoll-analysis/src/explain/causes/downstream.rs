//! The cause downstream: a dependency is saturated, or its calls take longer under load.

use super::card::{
    CauseCard, CauseForm, CauseText, ExpectedAnswer, dependency_text, idle_cores_text, max_at_high_load_or_zero,
    text_part,
};
use crate::explain::demands::UsedResource;
use crate::explain::features::Feature;
use crate::explain::predictions::{
    ALWAYS_FALLS, ALWAYS_STAYS, ANY_EFFECT, MOSTLY_RISES, MOSTLY_STAYS, Predictions, RISES_OR_STAYS, STAYS_OR_FALLS,
};
use crate::explain::signals::Signal;
use crate::explain::thresholds::INTERRUPTED_THREAD_SHARE_MIN;
use crate::sentence::{Remedy, SentencePart};

pub(super) static CARD: CauseCard = CauseCard {
    name: "a downstream dependency of the server",
    forms: &[
        CauseForm {
            word: "downstream_full",
            expects: &[
                (Feature::DependencyFull, ExpectedAnswer::Is("yes")),
                // A dependency on the server's machine also uses the cores of the server, so a
                // saturated dependency may saturate these cores, too.
                (Feature::CeilingMet, ExpectedAnswer::Any),
                (Feature::CoresFull, ExpectedAnswer::Any),
                (Feature::CallsPileUp, ExpectedAnswer::Any),
                (Feature::FixedConnections, ExpectedAnswer::Any),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
                (Feature::ReadsSlowly, ExpectedAnswer::Any),
                (Feature::QueuesAtDependency, ExpectedAnswer::Any),
                (Feature::AcceptsLate, ExpectedAnswer::Any),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "downstream_slow",
            expects: &[
                (Feature::CallsPileUp, ExpectedAnswer::Is("yes")),
                (Feature::Plateau, ExpectedAnswer::Is("yes")),
                (Feature::FixedConnections, ExpectedAnswer::Any),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
                (Feature::AcceptsLate, ExpectedAnswer::Any),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
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
        stopped: ALWAYS_FALLS,
        other_clients: ALWAYS_STAYS,
        bursts: MOSTLY_STAYS,
        together: ANY_EFFECT,
        abreast: ANY_EFFECT,
    },
    resources: &[UsedResource::Downstream],
    is_countable: false,
    missing_evidence: &[
        text_part(
            "plimsoll needs data about the server's dependencies: from probes on this machine, or from the server's \
             own metrics (",
        ),
        SentencePart::Remedy(Remedy::Metrics),
        text_part(")"),
    ],
    describe: |case| {
        let subject = match case.main_dependency() {
            Some((peer, _)) if case.dependency_process_name(peer).is_some() => dependency_text(case, peer),
            Some((peer, _)) => format!("the dependency at {peer}"),
            None => "a dependency of the server".to_owned(),
        };
        let how =
            match case.max_at_high_load(Signal::DownstreamCores).filter(|cores| *cores >= INTERRUPTED_THREAD_SHARE_MIN)
            {
                Some(cores) => {
                    format!(
                        "the dependency uses {cores:.2} cores, the server uses {server_cores:.2}{idle_cores}",
                        server_cores = max_at_high_load_or_zero(case, Signal::ServerCores),
                        idle_cores = idle_cores_text(case)
                    )
                }
                None => format!(
                    "the dependency's responses take longer under load, and the server waits for these \
                 responses{idle_cores}",
                    idle_cores = idle_cores_text(case)
                ),
            };
        CauseText::for_resource(subject, how)
    },
};
