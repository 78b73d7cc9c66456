//! All integration tests of this crate, in one executable, because linking takes most of the build
//! time.

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
