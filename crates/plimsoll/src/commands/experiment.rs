//! Every command that measures, from its flags to what is to be carried out ([`asked`]), and from
//! there on ([`carry_out`]): a repetition comes from a record instead of flags, and enters at the
//! same place.

use super::{demo, explain, find, overload, prove, replay, run, sweep};
use crate::args::Command;
use plimsoll_model::failure::Failure;
use plimsoll_model::{Asked, Plan, Terms};
use plimsoll_study::output;

/// What is asked, and on what terms.
pub type Told = (Asked<Plan>, Terms<String>);

/// What a command asks; `None` of a command that measures nothing. Nothing is looked up or started.
pub fn asked(command: &Command) -> Result<Option<Told>, Failure> {
    Ok(Some(match command {
        Command::Run(args) => run::asked(args).map(|(asked, terms)| (Asked::Run(asked), terms))?,
        Command::Replay(args) => replay::asked(args).map(|(asked, terms)| (Asked::Run(asked), terms))?,
        Command::Sweep(args) => sweep::asked(args).map(|(asked, terms)| (Asked::Sweep(asked), terms))?,
        Command::Find(args) => find::asked(args).map(|(asked, terms)| (Asked::Find(asked), terms))?,
        Command::Demo(args) => demo::asked(args).map(|(asked, terms)| (Asked::Find(asked), terms))?,
        Command::Explain(args) if explain::file(args).is_some() => return Ok(None),
        Command::Explain(args) => explain::asked(args).map(|(asked, terms)| (Asked::Explain(asked), terms))?,
        Command::Overload(args) => overload::asked(args).map(|(asked, terms)| (Asked::Overload(asked), terms))?,
        Command::Prove(args) => prove::asked(args)?,
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

/// Measures, reports, and says with which code to end.
pub fn carry_out(asked: Asked<Plan>, terms: &Terms<String>) -> Result<u8, Failure> {
    // A script may print what it likes, and in ways of its own.
    if !terms.output.is_text() && terms.script.is_some() {
        output::reserve();
    }
    match asked {
        Asked::Run(asked) => run::carry_out(asked, terms),
        Asked::Sweep(asked) => sweep::carry_out(asked, terms),
        Asked::Find(asked) if terms.demo => demo::carry_out(asked, terms),
        Asked::Find(asked) => find::carry_out(asked, terms),
        Asked::Explain(asked) => explain::carry_out(asked, terms),
        Asked::Overload(asked) => overload::carry_out(asked, terms),
        Asked::Prove(asked) => prove::carry_out(asked, terms),
        Asked::Ladder(asked) => prove::climb(asked, terms),
    }
}
