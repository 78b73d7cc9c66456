//! The cause slow reader: clients, a dependency or the reader of a pipe read the server's output
//! slowly.

use super::card::{
    CONNECTION_STATISTICS_ADVICE, CauseCard, CauseForm, CauseText, ExpectedAnswer, idle_cores_text,
    max_at_high_load_or_zero, percent_at_high_load, server_name,
};
use crate::explain::features::Feature;
use crate::explain::predictions::{
    ALWAYS_RISES, ALWAYS_STAYS, ANY_EFFECT, MOSTLY_RISES, MOSTLY_STAYS, Predictions, RISES_OR_STAYS, STAYS_OR_FALLS,
};
use crate::explain::queues::{other_receivers_read_late, server_reads_dependency_late, threads_wait_for_pipe_reader};
use crate::explain::signals::Signal;
use crate::explain::thresholds::SLOWER_FACTOR_MIN;
use crate::format;

pub(super) static CARD: CauseCard = CauseCard {
    name: "a slow reader of the server's responses",
    forms: &[
        CauseForm {
            word: "slow_reader_window",
            expects: &[
                (Feature::ReadsSlowly, ExpectedAnswer::Is("window")),
                (Feature::Plateau, ExpectedAnswer::Mostly("yes")),
                (Feature::DataInTransit, ExpectedAnswer::Any),
                (Feature::RequestsInService, ExpectedAnswer::Any),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "slow_reader_dependency",
            expects: &[
                (Feature::ReadsSlowly, ExpectedAnswer::Is("dependency")),
                (Feature::Plateau, ExpectedAnswer::Mostly("yes")),
                (Feature::DataInTransit, ExpectedAnswer::Any),
                (Feature::CallsPileUp, ExpectedAnswer::Any),
                (Feature::FixedConnections, ExpectedAnswer::Any),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "slow_reader_pipe",
            expects: &[
                (Feature::ReadsSlowly, ExpectedAnswer::Is("pipe")),
                (Feature::Plateau, ExpectedAnswer::Mostly("yes")),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
                (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
                (Feature::ConnectsLate, ExpectedAnswer::Any),
                (Feature::AcceptsLate, ExpectedAnswer::Any),
                (Feature::Polls, ExpectedAnswer::Any),
            ],
        },
    ],
    predicts: Predictions {
        reference: RISES_OR_STAYS,
        more_users: MOSTLY_RISES,
        new_connections: MOSTLY_STAYS,
        kept_connections: MOSTLY_STAYS,
        head: ALWAYS_RISES,
        smaller_answer: ALWAYS_RISES,
        larger_body: STAYS_OR_FALLS,
        smaller_body: RISES_OR_STAYS,
        second_generator: ALWAYS_STAYS,
        stopped: ANY_EFFECT,
        other_clients: ALWAYS_STAYS,
        bursts: ANY_EFFECT,
        together: ANY_EFFECT,
        abreast: ANY_EFFECT,
    },
    resources: &[],
    is_countable: false,
    missing_evidence: CONNECTION_STATISTICS_ADVICE,
    describe: |case| {
        let (server, idle_cores) = (server_name(case), idle_cores_text(case));
        if other_receivers_read_late(case) == Some(true) {
            let bytes = format::bytes(max_at_high_load_or_zero(case, Signal::PeerUnsent));
            let how = format!("the dependency has not read {bytes} that the server sent{idle_cores}");
            return CauseText::for_resource(format!("a dependency that slowly reads data from {server}"), how);
        }
        if server_reads_dependency_late(case) == Some(true) {
            let how = format!(
                "{bytes} of the dependency's responses wait until the server reads them{idle_cores}",
                bytes = format::bytes(max_at_high_load_or_zero(case, Signal::PeerUnread))
            );
            return CauseText::for_resource(format!("slow reading of dependency responses by {server}"), how);
        }
        if threads_wait_for_pipe_reader(case) == Some(true) {
            let how = match max_at_high_load_or_zero(case, Signal::InWrite) {
                count if count < SLOWER_FACTOR_MIN => format!(
                    "for {share_percent} of the time, a thread of the server is blocked in a write, because the reader \
                     is too slow{idle_cores}",
                    share_percent = percent_at_high_load(case, Signal::InWrite)
                ),
                threads => {
                    format!(
                        "{threads:.0} threads of the server are blocked in a write, because the reader is too \
                         slow{idle_cores}"
                    )
                }
            };
            let subject = format!("the reader of a pipe or unix socket that {server} writes to");
            return CauseText::for_resource(subject, how);
        }
        let how = format!(
            "the TCP receive window of a client is full for {share_percent} of the time, so that responses wait in \
             the server{idle_cores}",
            share_percent = percent_at_high_load(case, Signal::WindowLimited)
        );
        CauseText::for_resource(CARD.name, how)
    },
};
