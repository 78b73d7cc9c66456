//! All tests of this crate from outside, in one executable: linking is what takes time.

#![forbid(unsafe_code)]

#[path = "parsers/main.rs"]
mod parsers;
mod pause;
