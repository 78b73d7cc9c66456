//! All integration tests of this crate in one executable, because linking takes most of the time.

#![forbid(unsafe_code)]

mod completion;
mod plan_bytes;
mod run_file;
