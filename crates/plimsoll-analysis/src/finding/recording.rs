//! Incomplete recordings: such a recording may have no finding, or may lack some measurements.

use crate::doubts::{Doubt, DoubtKind};
use plimsoll_model::Experiment;

/// Why no finding can be computed from a recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoFinding {
    /// The recording contains no load that the finding needs.
    #[error("the run file was cut off before its run began")]
    NoLoad,
    /// The SLO text in the recording cannot be parsed.
    #[error("the run file's SLO: {0}")]
    InvalidSlo(String),
    /// No load of the search met the SLO, so there is no load line that the overload could exceed.
    #[error("no load met the SLO, so there is no load line to exceed: plimsoll find shows the trials")]
    NoLine,
    /// The search for the load line was interrupted, so the overload (the load above the load line)
    /// was never made.
    #[error("the run ended before a load line was found, so the run file contains no overload")]
    SearchInterrupted,
    /// The search for the load line exhausted the budget, so no time was left for the overload (the
    /// load above the load line).
    #[error("the search for the load line exhausted the budget: give a longer budget, or give the load line itself")]
    NoTime,
    /// The recording has no arms (no targets) to compare.
    #[error("the run file contains no comparison")]
    NoArms,
}

/// Returns the doubt about a recording that was cut off before its end; `None` for a complete
/// recording.
pub(super) fn cut_off_doubt(experiment: &Experiment) -> Option<Doubt> {
    let text = match (experiment.elapsed_ns, experiment.abort_reason()) {
        (Some(_), _) => return None,
        (None, Some(reason)) => {
            format!("the run ended early ({reason}): the results cover only the recorded part")
        }
        (None, None) => "the recording was cut off before its end: the results cover only the recorded part".to_owned(),
    };
    Some(Doubt { kind: DoubtKind::CutOff, text: text.into() })
}
