//! Rows of what waits for the outside of processes: storage, and those who read or carry what is sent.
//!
//! Not here: what a row is, and the other rows (`rules`).

use super::sign::{NOTHING_FULL, PLATEAU, PROBES, Rule, RuleStage, must, must_not, speaks, words};
use crate::explain::cause::Cause;
use crate::explain::contrast::Contrast;
use crate::explain::laws::{
    comes_in_for_long, leaves_unsent, may_be_one_at_a_time, on_the_way, overflows, reads_late, window_full, writes_wait,
};
use crate::explain::signals::Signal;

/// The rows.
pub(super) const ROWS: &[Rule] = &[
    Rule {
        cause: Cause::Disk,
        stage: RuleStage::Server,
        signs: &[
            must(
                4.0,
                "threads wait for storage",
                "no thread waits for storage",
                &[Signal::Blocked, Signal::InDisk, Signal::IoPressure],
                |case| {
                    let rises = |signal: Signal, least: f64| {
                        let low = case.low.get(signal).unwrap_or(0.0);
                        // Where one waits at a time at least, it cannot become twice as much.
                        let more = |top: f64| top >= 2.0 * low || top >= 0.7 && low <= 0.6 && top >= 1.3 * low;
                        case.top(signal).map(|top| top >= least && more(top))
                    };
                    // Where one request is served at a time, less of it is a large part of what is done.
                    let one = may_be_one_at_a_time(case) == Some(true);
                    let own = [rises(Signal::Blocked, 0.4), rises(Signal::InDisk, 0.4)];
                    let machine = rises(Signal::IoPressure, if one { 0.25 } else { 0.3 });
                    let seen = own.into_iter().chain([machine]).flatten();
                    seen.reduce(|a, b| a || b)
                },
            ),
            must(0.0, "the cores are not what is full", "the cores are full", &[Signal::Idle], Contrast::cores_spare),
            speaks(2.0, "they are the server's own", &[Signal::Blocked, Signal::InDisk], |case| {
                let blocked = case.reaches(Signal::Blocked, 0.4).unwrap_or(false);
                Some(blocked || case.reaches(Signal::InDisk, 0.4)?)
            }),
        ],
        yields_to: &[],
        to_tell: PROBES,
    },
    Rule {
        cause: Cause::SlowReader,
        stage: RuleStage::Server,
        signs: &[
            must(
                5.0,
                "what is sent is not read: the reader's window was full for most of the time, or answers, or what others get, lie unread",
                "whoever reads the answers took what was sent",
                &[
                    Signal::WindowLimited,
                    Signal::WindowWaiting,
                    Signal::SendQueue,
                    Signal::PeerUnread,
                    Signal::PeerUnsent,
                    Signal::InWrite,
                ],
                |case| {
                    let by_others = case.line.read_by_others || case.past.read_by_others;
                    let window = window_full(case).map(|full| full && by_others);
                    [window, reads_late(case), leaves_unsent(case), writes_wait(case)]
                        .into_iter()
                        .flatten()
                        .reduce(|a, b| a || b)
                },
            ),
            NOTHING_FULL,
            PLATEAU,
            speaks(
                3.0,
                "it is others than those who ask that leave it, whatever answers are",
                &[Signal::PeerUnsent],
                leaves_unsent,
            ),
            speaks(
                3.0,
                "threads wait until somebody reads what they write to a pipe or a unix socket",
                &[Signal::InWrite],
                writes_wait,
            ),
        ],
        yields_to: &[],
        to_tell: &[words("the kernel's account of the connections (probes)")],
    },
    Rule {
        cause: Cause::Network,
        stage: RuleStage::Server,
        signs: &[
            NOTHING_FULL,
            must(
                4.0,
                "answers lie ready to leave the server, or are sent again and again, or are on their way to it from behind",
                "what the server sends leaves it",
                &[
                    Signal::SendQueue,
                    Signal::PeerOnTheWay,
                    Signal::PeerComing,
                    Signal::PeerReceived,
                    Signal::Retransmits,
                    Signal::BytesIn,
                ],
                |case| {
                    if on_the_way(case) == Some(true) || comes_in_for_long(case) == Some(true) {
                        return Some(true);
                    }
                    // It is dear to read, so that a short load may have no reading of it.
                    let below = [&case.low, &case.half, &case.line];
                    let low = below.into_iter().find_map(|sight| sight.get(Signal::SendQueue))?;
                    let top = case.top(Signal::SendQueue)?;
                    // More waits than a few answers, and a noticeable part of what is sent in a second.
                    let waits = top >= 64e3 && top >= 10.0 * low && top >= 0.02 * case.top(Signal::BytesIn)?;
                    let lost = case.top(Signal::Retransmits).unwrap_or(0.0);
                    let lossy = lost >= 0.02 && lost >= 3.0 * case.low.get(Signal::Retransmits).unwrap_or(0.0);
                    Some(waits || lossy)
                },
            ),
            // More than an experiment takes away in which our own answers have no body: that leaves what comes from behind as it is.
            speaks(
                5.0,
                "a tenth of a second's worth or more is on its way from behind, while the server reads all that arrives",
                &[Signal::PeerOnTheWay, Signal::PeerUnread],
                on_the_way,
            ),
            speaks(
                5.0,
                "answers from behind come in piece by piece, while the server reads all that arrives and who sends them has cores to spare",
                &[Signal::PeerComing, Signal::PeerReceived, Signal::PeerUnread],
                comes_in_for_long,
            ),
            must_not("the reader took no more", "the reader took what was sent", &[Signal::WindowLimited], |case| {
                case.reaches(Signal::WindowLimited, 0.5)
            }),
            must_not(
                "what is sent again was sent to a server that had not read what came before",
                "what came was read",
                &[Signal::PeerUnread],
                reads_late,
            ),
            must_not(
                "what is sent again asks for connections, which a full queue turned away",
                "no connection was turned away",
                &[Signal::ListenOverflows],
                overflows,
            ),
        ],
        yields_to: &[],
        to_tell: &[words("the kernel's account of the connections (probes)")],
    },
];
