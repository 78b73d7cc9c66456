//! The cause slow reader: clients, a dependency or the reader of a pipe read the server's output
//! slowly.

use super::card::{
    CONNECTION_STATISTICS_ADVICE, CauseCard, CauseForm, CauseText, ExpectedAnswer, idle_cores_text, server_name, share,
    signal_max_or_zero,
};
use crate::explain::cause::Cause;
use crate::explain::features::Feature;
use crate::explain::predictions::{
    ALWAYS_RISES, ALWAYS_STAYS, ANY_EFFECT, MOSTLY_RISES, MOSTLY_STAYS, Predictions, RISES_OR_STAYS, STAYS_OR_FALLS,
};
use crate::explain::queues::{leaves_unsent, reads_late, writes_wait};
use crate::explain::signals::Signal;
use crate::explain::thresholds::SLOWER_FACTOR_MIN;
use crate::format;

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::SlowReader,
    ways: &[
        CauseForm {
            word: "slow_reader_window",
            expects: &[
                (Feature::ReadsSlowly, ExpectedAnswer::Is("window")),
                (Feature::Plateau, ExpectedAnswer::Mostly("yes")),
                (Feature::OnTheWay, ExpectedAnswer::Any),
                (Feature::ServedAtATime, ExpectedAnswer::Any),
                (Feature::WorkersAsServed, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "slow_reader_dependency",
            expects: &[
                (Feature::ReadsSlowly, ExpectedAnswer::Is("dependency")),
                (Feature::Plateau, ExpectedAnswer::Mostly("yes")),
                (Feature::OnTheWay, ExpectedAnswer::Any),
                (Feature::CallsPileUp, ExpectedAnswer::Any),
                (Feature::FixedConnections, ExpectedAnswer::Any),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
                (Feature::WorkersAsServed, ExpectedAnswer::Any),
                (Feature::EachHasOne, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "slow_reader_pipe",
            expects: &[
                (Feature::ReadsSlowly, ExpectedAnswer::Is("pipe")),
                (Feature::Plateau, ExpectedAnswer::Mostly("yes")),
                (Feature::ThreadsWait, ExpectedAnswer::Any),
                (Feature::WorkersAsServed, ExpectedAnswer::Any),
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
    tell: |case| {
        let (server, idle) = (server_name(case), idle_cores_text(case));
        if leaves_unsent(case) == Some(true) {
            let bytes = format::bytes(signal_max_or_zero(case, Signal::PeerUnsent));
            let how = format!("the receiver has not read {bytes} that the server sent{idle}");
            return CauseText::for_resource(format!("a receiver of data from {server} (not a client)"), how);
        }
        if reads_late(case) == Some(true) {
            let how = format!(
                "{bytes} of the dependency's responses wait until the server reads them{idle}",
                bytes = format::bytes(signal_max_or_zero(case, Signal::PeerUnread))
            );
            return CauseText::for_resource(format!("slow reading of dependency responses by {server}"), how);
        }
        if writes_wait(case) == Some(true) {
            let how = match signal_max_or_zero(case, Signal::InWrite) {
                count if count < SLOWER_FACTOR_MIN => format!(
                    "for {share_percent} of the time, a thread of the server waits until its output is read{idle}",
                    share_percent = share(case, Signal::InWrite)
                ),
                count => format!("{count:.0} threads of the server wait until their output is read{idle}"),
            };
            let subject = format!("the reader of a pipe or unix socket that {server} writes to");
            return CauseText::for_resource(subject, how);
        }
        let how = format!(
            "the receive window of the responses' reader is full for {share_percent} of the time, so that responses \
             wait in the server{idle}",
            share_percent = share(case, Signal::WindowLimited)
        );
        CauseText::for_resource(Cause::SlowReader.text(), how)
    },
};
