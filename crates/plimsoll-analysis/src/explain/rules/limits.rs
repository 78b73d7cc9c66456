//! Rows of what somebody has set: a quota, a limiter, a fixed time that an answer takes.
//!
//! Not here: what a row is, and the other rows (`rules`).

use super::sign::{NOTHING_FULL, PLATEAU, PROBES, Rule, RuleStage, must, must_not, speaks, words};
use crate::explain::cause::Cause;
use crate::explain::contrast::Contrast;
use crate::explain::laws::{
    comes_in_for_long, in_lumps, leaves_unsent, on_the_way, stand_in_storage, unaccepted, waits_unseen,
};
use crate::explain::signals::Signal;
use crate::sentence::{Remedy, SentencePart};
use plimsoll_model::units::MS;

/// The rows.
pub(super) const ROWS: &[Rule] = &[
    Rule {
        cause: Cause::CpuQuota,
        stage: RuleStage::Limits,
        signs: &[
            must(
                5.0,
                "the control group used up its quota and was stopped until the next period",
                "the server was not stopped by a quota",
                &[Signal::Throttled, Signal::Quota, Signal::ServerCores],
                Contrast::quota_full,
            ),
            must(1.0, "it was not at a low load", "it was at a low load as well", &[Signal::Throttled], |case| {
                Some(case.low.get(Signal::Throttled)? < 0.5 * case.top(Signal::Throttled)?)
            }),
        ],
        yields_to: &[],
        to_tell: &[words("the server's control group ("), SentencePart::Remedy(Remedy::ControlGroup), words(")")],
    },
    Rule {
        cause: Cause::CpuQuota,
        stage: RuleStage::Limits,
        signs: &[
            NOTHING_FULL,
            must(
                5.0,
                "the control group of what is behind the server used up its quota and was stopped until the next period",
                "what is behind the server was not stopped by a quota",
                &[Signal::DownstreamThrottled, Signal::DownstreamQuota, Signal::DownstreamCores],
                |case| case.reaches(Signal::DownstreamThrottled, 0.3),
            ),
            must(
                1.0,
                "it was not at a low load",
                "it was at a low load as well",
                &[Signal::DownstreamThrottled],
                |case| Some(case.low.get(Signal::DownstreamThrottled)? < 0.5 * case.top(Signal::DownstreamThrottled)?),
            ),
        ],
        yields_to: &[],
        to_tell: &[],
    },
    Rule {
        cause: Cause::Limiter,
        stage: RuleStage::Limits,
        signs: &[
            must(
                4.0,
                "what is too much is refused, and nothing was at a low load",
                "nothing was refused",
                &[Signal::Refused, Signal::Failed],
                |case| {
                    let low = case.low.get(Signal::Refused)?;
                    Some(case.top(Signal::Refused)? > 0.01 && low <= 0.1 * case.top(Signal::Refused)?)
                },
            ),
            must(
                1.0,
                "what is answered is answered as fast as at a low load",
                "what is answered takes longer, too: the server has all hands full",
                &[Signal::Service],
                |case| {
                    let low = case.low.get(Signal::Service)?;
                    // An answer by a timer of ours differs by some wake-ups.
                    Some(case.bottom(Signal::Service)? <= 2.0 * low + 0.3 * MS as f64)
                },
            ),
            must_not(
                "the server has no core or thread to spare: it refuses since it is full",
                "the server has room",
                &[Signal::Idle, Signal::FullestThread],
                |case| Some(case.thread_full()? || case.cores_full()?),
            ),
            speaks(1.0, "refusals come at once", &[Signal::FailedAfter], |case| {
                Some(case.top(Signal::FailedAfter)? <= case.low.get(Signal::Service)? * 2.0 + MS as f64)
            }),
            speaks(1.0, "what is answered stays the same, whatever is asked", &[Signal::Goodput], Contrast::plateau),
        ],
        yields_to: &[],
        to_tell: &[],
    },
    Rule {
        cause: Cause::Limiter,
        stage: RuleStage::Server,
        signs: &[
            NOTHING_FULL,
            PLATEAU,
            must(
                4.0,
                "less than one request is served at a time: answers are held back, not worked on",
                "at least one request is served at a time",
                &[Signal::Service, Signal::Goodput],
                |case| Some(case.at_a_time()? < 0.6),
            ),
            must_not(
                "what it is sent is on its way, or what it sends to others is not taken",
                "nothing is on its way for long",
                &[Signal::PeerOnTheWay, Signal::PeerComing, Signal::PeerUnsent],
                |case| {
                    let ways = [on_the_way(case), comes_in_for_long(case), leaves_unsent(case)];
                    Some(ways.into_iter().flatten().any(|it| it))
                },
            ),
            must_not(
                "most requests wait for their connection to be accepted: nobody holds answers back",
                "connections are accepted",
                &[Signal::Unaccepted, Signal::InFlight],
                unaccepted,
            ),
            must_not(
                "threads stand in storage for half of the requests: nobody holds these back",
                "threads stand in storage for few of the requests",
                &[Signal::InDisk, Signal::InFlight],
                stand_in_storage,
            ),
            speaks(1.0, "answers come as evenly as a clock", &[Signal::Dispersion], |case| {
                Some(case.past.get(Signal::Dispersion)? < 0.3)
            }),
        ],
        // Answers that lie ready have been made: it is not the server that holds them back.
        yields_to: &[Cause::Network, Cause::SlowReader],
        to_tell: &[words("whether the server's cores are idle (probes)")],
    },
    // One that is refilled at times: by the clock, whatever was taken.
    Rule {
        cause: Cause::Limiter,
        stage: RuleStage::Server,
        signs: &[
            NOTHING_FULL,
            PLATEAU,
            must(
                5.0,
                "so many requests are let through at a time, by the clock: answers come in lumps of one size at even distances",
                "answers do not come in lumps of one size",
                &[Signal::Lumps, Signal::Goodput],
                in_lumps,
            ),
            must(
                1.0,
                "nothing that they wait for is to be seen",
                "it is to be seen what requests wait for",
                &[Signal::InLock, Signal::PeerWaiting, Signal::Unaccepted],
                waits_unseen,
            ),
        ],
        yields_to: &[Cause::Network, Cause::SlowReader],
        to_tell: PROBES,
    },
    // One that lets answers wait whose requests take longer than lies between them: experiments tell it from places for so many.
    Rule {
        cause: Cause::Limiter,
        stage: RuleStage::Server,
        signs: &[
            NOTHING_FULL,
            PLATEAU,
            must(
                2.5,
                "several requests are served at a time, and nothing that they wait for is to be seen",
                "it is to be seen what requests wait for, or one is served at a time",
                &[Signal::Service, Signal::Goodput, Signal::InFlight],
                |case| Some(case.at_a_time()? >= 1.6 && waits_unseen(case)?),
            ),
        ],
        yields_to: &[Cause::Network, Cause::SlowReader],
        to_tell: PROBES,
    },
    Rule {
        cause: Cause::Delay,
        stage: RuleStage::Limits,
        signs: &[
            must(
                5.0,
                "answers are later than promised even at a low load, where nobody waits",
                "at a low load answers are as fast as promised",
                &[Signal::P99, Signal::P50],
                Contrast::slow_when_low,
            ),
            must(
                0.0,
                "nothing is full at a low load",
                "the server is busy even at a low load",
                &[Signal::ServerCores, Signal::FullestThread],
                |case| Some(case.low.get(Signal::FullestThread).is_none_or(|share| share < 0.7)),
            ),
        ],
        yields_to: &[],
        to_tell: &[],
    },
];
