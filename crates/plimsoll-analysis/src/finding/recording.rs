//! Incomplete recordings: a recording may have no finding, or lack some measurements.

use crate::doubts::{Doubt, DoubtKind};
use plimsoll_model::Experiment;

/// Why no finding can be computed from a recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoFinding {
    /// The recording contains no load that the finding needs.
    #[error("the run file was cut before its run began")]
    NoLoad,
    /// The SLO in the recording cannot be parsed.
    #[error("the run file's SLO: {0}")]
    Promise(String),
    /// No load of the search met the SLO, so there is no load line that the overload could exceed.
    #[error("no load met the SLO, so there is no line to exceed: plimsoll find shows the trials")]
    NoLine,
    /// The search for the load line before the overload was interrupted.
    #[error("it was ended before its line was found: it holds nothing of what lies beyond")]
    NoEnd,
    /// The search for the load line used all the time of the overload.
    #[error("the search for the line used up the budget: give a longer one, or name the line")]
    NoTime,
    /// The recording has no arms to compare.
    #[error("the run file contains no comparison")]
    NoArms,
}

/// Returns the doubt that a recording was cut off before its end; `None` for a complete recording.
pub(super) fn cut_off(experiment: &Experiment) -> Option<Doubt> {
    let text = match (experiment.elapsed_ns, experiment.broken()) {
        (Some(_), _) => return None,
        (None, Some(reason)) => {
            format!("the run broke off before its end ({reason}): the results cover only the recorded part")
        }
        (None, None) => "the recording was cut off before its end: the results cover only the recorded part".to_owned(),
    };
    Some(Doubt { kind: DoubtKind::CutOff, text: text.into() })
}
