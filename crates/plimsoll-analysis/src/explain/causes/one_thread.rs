//! The cause one thread: one thread of the server is saturated, or several threads run one at a
//! time.

use super::card::{
    CauseCard, CauseForm, CauseText, ExpectedAnswer, PROCESS_PROBES_ADVICE, idle_cores_text, max_at_high_load_or_zero,
    server_name,
};
use crate::explain::demands::UsedResource;
use crate::explain::features::Feature;
use crate::explain::predictions::Predictions;
use crate::explain::signals::Signal;

pub(super) static CARD: CauseCard = CauseCard {
    name: "one thread of the server",
    forms: &[
        CauseForm {
            word: "one_thread",
            expects: &[
                (Feature::ThreadsFull, ExpectedAnswer::Is("one")),
                (Feature::CeilingMet, ExpectedAnswer::Mostly("thread")),
                (Feature::CoresFull, ExpectedAnswer::Not("machine")),
                (Feature::ConnectsLate, ExpectedAnswer::Any),
                (Feature::Collects, ExpectedAnswer::Not("yes")),
                (Feature::AcceptsLate, ExpectedAnswer::Any),
                (Feature::FixedConnections, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "one_thread_interpreter",
            expects: &[
                (Feature::ThreadsRunOneAtATime, ExpectedAnswer::Is("interpreter")),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
                (Feature::FixedConnections, ExpectedAnswer::Any),
                (Feature::CoresFull, ExpectedAnswer::Not("machine")),
                (Feature::AcceptsLate, ExpectedAnswer::Any),
                (Feature::Polls, ExpectedAnswer::Any),
            ],
        },
    ],
    predicts: Predictions::BUSY_RESOURCE_PREDICTIONS,
    resources: &[UsedResource::Thread],
    is_countable: true,
    missing_evidence: PROCESS_PROBES_ADVICE,
    describe: |case| {
        let server = server_name(case);
        if case.is_thread_saturated() != Some(true) {
            let how = format!(
                "all threads of the server together use {cores:.2} of a core{idle_cores}",
                cores = max_at_high_load_or_zero(case, Signal::ServerCores),
                idle_cores = idle_cores_text(case)
            );
            return CauseText::for_resource(format!("the threads of {server}, of which only one runs at a time"), how)
                .with_plural_subject(true);
        }
        let thread = case.past.fullest_thread.clone().or_else(|| case.line.fullest_thread.clone());
        let thread_name = thread.map_or_else(String::new, |name| format!(" ({name})"));
        let how = format!(
            "the server's busiest thread uses {cores:.2} of a core{idle_cores}",
            cores = max_at_high_load_or_zero(case, Signal::FullestThread),
            idle_cores = idle_cores_text(case)
        );
        CauseText::for_resource(format!("one thread of {server}{thread_name}"), how)
    },
};
