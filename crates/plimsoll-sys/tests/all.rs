//! All integration tests of this crate in one executable, because linking takes most of the time.

#![forbid(unsafe_code)]

#[path = "parsers/main.rs"]
mod parsers;
mod pause;
