//! Rows of what is not the server: we ourselves, nothing at all, others on the machine.
//!
//! Not here: what a row is, and the other rows (`rules`).

use super::sign::{Rule, RuleStage, must, must_not, words};
use crate::explain::cause::Cause;
use crate::explain::laws::{crowded_out, window_full};
use crate::explain::signals::{LoadSignals, Signal};
use crate::find::StoppedBy;

/// The rows.
pub(super) const ROWS: &[Rule] = &[
    Rule {
        cause: Cause::Client,
        stage: RuleStage::Ourselves,
        signs: &[must(
            6.0,
            "plimsoll could not make the load, or takes answers later than the server sends them",
            "plimsoll had room",
            &[Signal::Generator, Signal::ClientCores, Signal::InFlight, Signal::WindowLimited],
            |case| {
                // Where others use the machine up it is they who leave us no room.
                let of = |sight: &LoadSignals| {
                    let none_left = crowded_out(sight).unwrap_or(false);
                    sight.limited.is_some() && sight.disturbed.is_none() && !none_left
                };
                let here = of(&case.line) || of(&case.past) && case.upper_rps.is_none();
                let whole = case.stopped_by == StoppedBy::Client && case.line.disturbed.is_none();
                let few = case.held_by_our_connections().unwrap_or(false);
                let ours = !case.line.read_by_others && window_full(case).unwrap_or(false);
                let slow = ours && case.nothing_full() == Some(true) && case.plateau() == Some(true);
                Some(whole || here || few || slow)
            },
        )],
        yields_to: &[Cause::Ports],
        to_tell: &[],
    },
    Rule {
        cause: Cause::None,
        stage: RuleStage::Ourselves,
        signs: &[must(
            6.0,
            "the highest rate allowed still holds",
            "the highest rate allowed was not what ended it",
            &[Signal::Goodput],
            |case| Some(case.stopped_by == StoppedBy::MaxRate && case.upper_rps.is_none()),
        )],
        yields_to: &[],
        to_tell: &[],
    },
    Rule {
        cause: Cause::Neighbour,
        stage: RuleStage::Ourselves,
        signs: &[
            must(
                4.0,
                "others on the machine used cores that were wanted",
                "nobody else used much of the machine",
                &[Signal::Others, Signal::Steal],
                |case| {
                    // A search that was disturbed says less than a steady load that was not: by that the server is judged, and the
                    // search only where the server holds more now than it did then.
                    let near = if case.line.is_seen() { &case.line } else { &case.past };
                    let seen = near.get(Signal::Others).or(near.get(Signal::Steal)).is_some();
                    let searched = case.stopped_by == StoppedBy::Disturbed;
                    match seen {
                        true => Some(near.disturbed.is_some() || searched && case.holds_more().is_some()),
                        false => searched.then_some(true),
                    }
                },
            ),
            must_not(
                "they used little, and cores were idle all the same",
                "they used a good part of a core, or no core was idle",
                &[Signal::Others, Signal::Idle],
                |case| {
                    let others = case.top(Signal::Others)?;
                    let taken = others + case.top(Signal::Steal).unwrap_or(0.0) * case.top(Signal::Cores)?;
                    // What was used in the search is told in its own way.
                    let before = case.stopped_by == StoppedBy::Disturbed && case.holds_more().is_some();
                    Some(!before && taken < 0.4 && case.bottom(Signal::Idle)? >= 0.5)
                },
            ),
            must(
                1.0,
                "what they used does not follow the load",
                "what they used grows with the load: it works for the server",
                &[Signal::Others],
                |case| {
                    let near = case.line.get(Signal::Others).or(case.past.get(Signal::Others));
                    let (low, line) = (case.low.get(Signal::Others)?, near?);
                    Some(low >= 0.4 * line || case.line.get(Signal::Steal).is_some_and(|share| share > 0.05))
                },
            ),
        ],
        yields_to: &[],
        to_tell: &[words("the machine's CPU time (probes)")],
    },
];
