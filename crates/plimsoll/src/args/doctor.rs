//! Arguments of `plimsoll doctor`.
//!
//! Not here: the checks (`plimsoll_analysis::fitness`).

use clap::Args;

/// `plimsoll doctor`
#[derive(Debug, Clone, Args)]
#[command(after_help = "Exit codes: 0 machine fit to measure, 1 machine not fit, 2 usage error or cannot start, \
    130 interrupted.\n\n\
    Examples:\n  \
    plimsoll doctor\n  \
    plimsoll doctor --quick          skip the self-measurement; takes one second\n  \
    plimsoll doctor --json | jq '.checks[] | select(.fitness != \"fit\")'")]
pub struct DoctorArgs {
    /// Skip the self-measurement of plimsoll's speed
    #[arg(long)]
    pub quick: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}
