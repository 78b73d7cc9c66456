//! All tests of this crate from outside, in one executable: linking is what takes time.

#![forbid(unsafe_code)]

mod bounds;
#[cfg(feature = "grpc")]
mod descriptor_bounds;
mod files;
#[cfg(feature = "grpc")]
mod golden;
#[cfg(feature = "grpc")]
mod grpc;
mod import;
mod logs;
mod replay;
