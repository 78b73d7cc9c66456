//! All tests of this crate from outside, in one executable: linking is what takes time.

#![forbid(unsafe_code)]

mod completion;
mod plan_bytes;
mod run_file;
