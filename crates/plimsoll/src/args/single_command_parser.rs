//! Declares the flags of a command only if the command line names that command. Each of the 30
//! commands has tens of flags, and declaring them all takes most of the time of a short command.
//!
//! Not here: the commands and their flags.

use clap::{ArgMatches, Args, Command, CommandFactory, Error, FromArgMatches};
use std::cell::RefCell;
use std::ops::Deref;

thread_local! {
    /// The only command whose flags are declared. With `None`, the flags of all commands are
    /// declared.
    static ONLY_DECLARED_COMMAND: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Returns the parser of a command line whose command is `name`. The parser knows the names of the
/// other commands, but not their flags.
pub fn parser_for_command<P: CommandFactory>(name: &str) -> Command {
    ONLY_DECLARED_COMMAND.with_borrow_mut(|named| *named = Some(name.to_owned()));
    let parser = P::command();
    ONLY_DECLARED_COMMAND.with_borrow_mut(|named| *named = None);
    parser
}

/// The parsed flags `T` of one command. clap declares these flags only for the command in
/// `ONLY_DECLARED_COMMAND`.
#[derive(Debug)]
pub struct CommandFlags<T>(Box<T>);

impl<T> Deref for CommandFlags<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: FromArgMatches> FromArgMatches for CommandFlags<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<CommandFlags<T>, Error> {
        T::from_arg_matches(matches).map(|flags| CommandFlags(Box::new(flags)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for CommandFlags<T> {
    fn augment_args(command: Command) -> Command {
        match ONLY_DECLARED_COMMAND.with_borrow(|named| named.as_deref().is_none_or(|name| name == command.get_name()))
        {
            true => T::augment_args(command),
            false => command,
        }
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}
