//! The verdict of `--fail-if` ([`Gate`]): an exit code, and a note for each condition.
//!
//! Not here: parsing and evaluating conditions (`plimsoll-analysis`).

use plimsoll_analysis::finding::{SweepFinding, SweepLevel};
use plimsoll_analysis::{Conditions, CrossedCondition, Summary};
use plimsoll_model::failure::exit;
use plimsoll_model::{ExperimentSettings, OnInconclusive};

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
    /// Judges one load by the `--fail-if` conditions in `crossed`, which are true or cannot be
    /// decided. Returns the verdict, and a note for each condition. If the load is void (the
    /// generator was the limit, or interference disturbed the machine), only conditions about
    /// errors make the gate fail.
    pub fn judge_conditions(crossed: &[CrossedCondition], summary: &Summary) -> (Gate, Vec<String>) {
        let void = if summary.generator.is_limit {
            Some("the load generator was the limit, not the server")
        } else {
            summary.interference.is_disturbed.then_some("interference disturbed the machine during the load")
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

    /// Evaluates the conditions of `--fail-if` at the peak of a sweep: the number of users with the
    /// highest goodput. Returns the verdict of the gate and notes. If no request succeeded, the
    /// gate fails.
    pub fn judge_at_peak(conditions: &Conditions, finding: &SweepFinding) -> (Gate, Vec<String>) {
        let figures = finding.levels.iter().filter_map(SweepLevel::figures);
        let mut at_peak = figures.filter(|figures| finding.peak.as_ref() == Some(&figures.level));
        match at_peak.next() {
            None => (Gate::Failed, vec!["--fail-if: no request succeeded with any number of users".to_owned()]),
            Some(figures) => {
                let crossed = conditions.crossed_conditions_with_cpu_use(&figures.load.run, &|| figures.server.clone());
                let (gate, notes) = Gate::judge_conditions(&crossed, &figures.summary);
                (gate, notes.into_iter().map(|note| format!("{note} (at the peak)")).collect())
            }
        }
    }

    /// Returns the exit code of the verdict.
    pub fn exit_code(self, settings: &ExperimentSettings<String>) -> u8 {
        match self {
            Gate::Passed => exit::SUCCESS,
            Gate::Inconclusive => OnInconclusive::exit_code(settings.on_inconclusive),
            Gate::Failed => exit::NEGATIVE_RESULT,
        }
    }
}
