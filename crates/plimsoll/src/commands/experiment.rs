//! The common entry of all commands that measure: converts flags to an experiment
//! ([`spec_from_command`]), and executes it ([`carry_out`]). A rerun takes its experiment from a
//! run file instead of flags, and executes it in the same way.

use super::{demo, explain, find, overload, prove, replay, run, sweep};
use crate::args::Command;
use plimsoll_model::failure::Failure;
use plimsoll_model::{ExperimentSpec, Plan, Terms};
use plimsoll_study::output;

/// The specification of an experiment, and its terms (all settings that are not in the plan).
pub type ExperimentInput = (ExperimentSpec<Plan>, Terms<String>);

/// Converts a command's flags to an experiment; `None` for a command that measures nothing. No host
/// is resolved and no process is started.
pub fn spec_from_command(command: &Command) -> Result<Option<ExperimentInput>, Failure> {
    Ok(Some(match command {
        Command::Run(args) => run::spec_from_args(args).map(|(asked, terms)| (ExperimentSpec::Run(asked), terms))?,
        Command::Replay(args) => {
            replay::spec_from_args(args).map(|(asked, terms)| (ExperimentSpec::Run(asked), terms))?
        }
        Command::Sweep(args) => {
            sweep::spec_from_args(args).map(|(asked, terms)| (ExperimentSpec::Sweep(asked), terms))?
        }
        Command::Find(args) => find::spec_from_args(args).map(|(asked, terms)| (ExperimentSpec::Find(asked), terms))?,
        Command::Demo(args) => demo::spec_from_args(args).map(|(asked, terms)| (ExperimentSpec::Find(asked), terms))?,
        Command::Explain(args) if explain::run_file_path(args).is_some() => return Ok(None),
        Command::Explain(args) => {
            explain::spec_from_args(args).map(|(asked, terms)| (ExperimentSpec::Explain(asked), terms))?
        }
        Command::Overload(args) => {
            overload::spec_from_args(args).map(|(asked, terms)| (ExperimentSpec::Overload(asked), terms))?
        }
        Command::Prove(args) => prove::spec_from_args(args)?,
        Command::Baseline(_) | Command::Show(_) | Command::Profile(_) | Command::Diff(_) => return Ok(None),
        Command::Report(_) | Command::Rerun(_) | Command::Clean(_) | Command::Check(_) => return Ok(None),
        Command::Traffic(_) | Command::Wrk(_) | Command::Wrk2(_) | Command::Vegeta(_) => return Ok(None),
        Command::Ab(_) | Command::Hey(_) | Command::Grpc(_) | Command::Agent(_) | Command::Fleet(_) => return Ok(None),
        Command::History(_) | Command::Gate(_) | Command::Serve(_) => return Ok(None),
        Command::Import(_) | Command::Model(_) | Command::Completions(_) | Command::Man(_) | Command::Doctor(_) => {
            return Ok(None);
        }
    }))
}

/// Executes an experiment and prints its results. Returns the exit code.
pub fn carry_out(spec: ExperimentSpec<Plan>, terms: &Terms<String>) -> Result<u8, Failure> {
    // A Lua script may print on standard output, so standard output is reserved for the JSON
    // document of the results.
    if !terms.output.is_text_output() && terms.script.is_some() {
        output::reserve_stdout();
    }
    plimsoll_sys::process::drop_unmodified_file_pages();
    match spec {
        ExperimentSpec::Run(asked) => run::carry_out(asked, terms),
        ExperimentSpec::Sweep(asked) => sweep::carry_out(asked, terms),
        ExperimentSpec::Find(asked) if terms.demo => demo::carry_out(asked, terms),
        ExperimentSpec::Find(asked) => find::carry_out(asked, terms),
        ExperimentSpec::Explain(asked) => explain::carry_out(asked, terms),
        ExperimentSpec::Overload(asked) => overload::carry_out(asked, terms),
        ExperimentSpec::Prove(asked) => prove::carry_out(asked, terms),
        ExperimentSpec::Ladder(asked) => prove::run_ladder(asked, terms),
    }
}
