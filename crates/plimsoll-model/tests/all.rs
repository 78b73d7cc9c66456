//! All integration tests of this crate are in one executable, because linking executables takes
//! most of the build time.

#![forbid(unsafe_code)]

mod completion;
mod plan_bytes;
mod run_file;
