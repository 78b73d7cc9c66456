//! Traffic from text: a file that says what is asked becomes a [`plimsoll_model::Traffic`].
//!
//! Text in, a value out. Where the text comes from is the caller's to know: nothing here reads files, the environment or the
//! clock, or talks to a server.

#![forbid(unsafe_code)]

pub mod file;
