//! The words that a flag knows, for shells to complete. The flag keeps its parser, and its
//! messages.
//!
//! Not here: flags whose values are a type of their own (clap's `ValueEnum`).

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use std::ffi::OsStr;

/// A parser that also names the words of its flag. It does not refuse other words: the inner parser
/// does, or the code that reads the value, with a sentence that names the words.
#[derive(Debug, Clone)]
pub struct KnownWords<P> {
    words: &'static [&'static str],
    parser: P,
}

impl KnownWords<StringValueParser> {
    /// Words of a flag that keeps its value as text.
    pub fn text(words: &'static [&'static str]) -> KnownWords<StringValueParser> {
        KnownWords::new(words, StringValueParser::new())
    }
}

impl<P> KnownWords<P> {
    /// Words of a flag that has a parser.
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
