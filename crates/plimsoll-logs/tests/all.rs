//! All integration tests of this crate, in one executable, because linking takes most of the build
//! time.

#![forbid(unsafe_code)]

mod logs;
mod replay;
