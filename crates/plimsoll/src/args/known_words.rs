//! The words that a flag accepts, for completion in shells. The flag keeps its own parser and error
//! messages.
//!
//! Not here: flags whose values have their own type (clap's `ValueEnum`).

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use std::ffi::OsStr;

/// A parser of a flag's value that also lists the accepted words for completion. `KnownWords`
/// itself does not refuse other words. The inner parser, or the code that reads the value, refuses
/// words that are not accepted.
#[derive(Debug, Clone)]
pub struct KnownWords<P> {
    words: &'static [&'static str],
    parser: P,
}

impl KnownWords<StringValueParser> {
    /// Lists the words of a flag whose value stays text.
    pub fn for_text_value(words: &'static [&'static str]) -> KnownWords<StringValueParser> {
        KnownWords::new(words, StringValueParser::new())
    }
}

impl<P> KnownWords<P> {
    /// Lists the words of a flag that has its own parser.
    pub const fn new(words: &'static [&'static str], parser: P) -> KnownWords<P> {
        KnownWords { words, parser }
    }
}

impl<P: TypedValueParser> TypedValueParser for KnownWords<P> {
    type Value = P::Value;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<P::Value, Error> {
        self.parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.words.iter().map(PossibleValue::new)))
    }
}
