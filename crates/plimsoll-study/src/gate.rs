//! The verdict of `--fail-if` ([`Gate`]): an exit code, and a note for each condition.
//!
//! Not here: parsing and evaluating conditions (`plimsoll-analysis`).

use plimsoll_analysis::{CrossedCondition, Summary};
use plimsoll_model::failure::exit;
use plimsoll_model::{OnInconclusive, Terms};

/// The verdict of a gate. If there are several conditions, the worst verdict counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Gate {
    /// The gate passes: no condition of `--fail-if` is true.
    #[default]
    Passed,
    /// The gate is inconclusive: a condition may be true, but the measurements cannot decide.
    Inconclusive,
    /// The gate fails: a condition of `--fail-if` is true.
    Failed,
}

impl Gate {
    /// Returns the verdict for the conditions that are true of one load, and a note for each of
    /// these conditions. In a void load (generator limit or interference) only conditions about
    /// errors decide.
    pub fn judge_conditions(crossed: &[CrossedCondition], summary: &Summary) -> (Gate, Vec<String>) {
        let void = if summary.generator.limited {
            Some("the load generator was the limit, not the server")
        } else {
            summary.interference.disturbed.then_some("interference disturbed the machine during the load")
        };
        let (mut gate, mut notes) = (Gate::Passed, Vec::new());
        for crossing in crossed {
            let decides = crossing.makes_gate_fail(void.is_some());
            gate = gate.max(if decides { Gate::Failed } else { Gate::Inconclusive });
            let more = void.filter(|_| !decides).map_or_else(String::new, |reason| format!("; not decided: {reason}"));
            notes.push(format!("--fail-if {crossing}{more}"));
        }
        (gate, notes)
    }

    /// Returns the exit code of the verdict.
    pub fn exit_code(self, terms: &Terms<String>) -> u8 {
        match self {
            Gate::Passed => exit::SUCCESS,
            Gate::Inconclusive => OnInconclusive::exit_code(terms.on_inconclusive),
            Gate::Failed => exit::NEGATIVE_RESULT,
        }
    }
}
