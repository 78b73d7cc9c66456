//! All tests of this crate from outside, in one executable: linking is what takes time.

#![forbid(unsafe_code)]

mod bounds;
mod files;
mod golden;
mod grpc;
mod import;
mod logs;
mod replay;
