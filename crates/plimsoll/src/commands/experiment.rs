//! The common entry of all commands that measure: converts flags to an experiment
//! ([`spec_from_command`]), and executes it ([`carry_out`]). A rerun takes its experiment from a
//! run file instead of flags, and executes it in the same way.

use super::{demo, explain, find, overload, prove, replay, run, sweep};
use crate::args::Command;
use plimsoll_model::failure::Failure;
use plimsoll_model::{ExperimentSettings, ExperimentSpec, Plan};
use plimsoll_study::output;

/// The specification of an experiment, and all settings that are not in the plan.
pub type ExperimentInput = (ExperimentSpec<Plan>, ExperimentSettings<String>);

/// Converts a command's flags to an experiment; `None` for a command that measures nothing. No host
/// is resolved and no process is started.
pub fn spec_from_command(command: &Command) -> Result<Option<ExperimentInput>, Failure> {
    Ok(Some(match command {
        Command::Run(args) => experiment_input(ExperimentSpec::Run, run::spec_from_args(args)?),
        Command::Replay(args) => experiment_input(ExperimentSpec::Run, replay::spec_from_args(args)?),
        Command::Sweep(args) => experiment_input(ExperimentSpec::Sweep, sweep::spec_from_args(args)?),
        Command::Find(args) => experiment_input(ExperimentSpec::Find, find::spec_from_args(args)?),
        Command::Demo(args) => experiment_input(ExperimentSpec::Find, demo::spec_from_args(args)?),
        Command::Explain(args) if explain::run_file_path(args).is_some() => return Ok(None),
        Command::Explain(args) => experiment_input(ExperimentSpec::Explain, explain::spec_from_args(args)?),
        Command::Overload(args) => experiment_input(ExperimentSpec::Overload, overload::spec_from_args(args)?),
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

fn experiment_input<S>(kind: fn(S) -> ExperimentSpec<Plan>, input: (S, ExperimentSettings<String>)) -> ExperimentInput {
    (kind(input.0), input.1)
}

/// Executes an experiment and prints its results. Returns the exit code.
pub fn carry_out(spec: ExperimentSpec<Plan>, settings: &ExperimentSettings<String>) -> Result<u8, Failure> {
    // A Lua script may print on standard output, so standard output is reserved for the JSON
    // document of the results.
    if !settings.output.is_text_output() && settings.script.is_some() {
        output::reserve_stdout();
    }
    match spec {
        ExperimentSpec::Run(asked) => run::carry_out(asked, settings),
        ExperimentSpec::Sweep(asked) => sweep::carry_out(asked, settings),
        ExperimentSpec::Find(asked) if settings.demo => demo::carry_out(asked, settings),
        ExperimentSpec::Find(asked) => find::carry_out(asked, settings),
        ExperimentSpec::Explain(asked) => explain::carry_out(asked, settings),
        ExperimentSpec::Overload(asked) => overload::carry_out(asked, settings),
        ExperimentSpec::Prove(asked) => prove::carry_out(asked, settings),
        ExperimentSpec::Ladder(asked) => prove::run_ladder(asked, settings),
    }
}
