//! Traffic as text, parsed into values: a traffic file becomes a [`plimsoll_model::Traffic`].
//! Access logs become figures, a replay, or a traffic file that models them. Results of vegeta
//! become figures.
//!
//! Text in, values out. This crate reads no files, environment or clock, starts no threads and
//! connects to no server. It does not know how a load runs or how anything looks.

#![forbid(unsafe_code)]

pub mod file;
pub mod import;
pub mod logs;
pub mod modelling;
pub mod replay;
pub mod survey;
pub mod target_url;
pub mod vegeta;

// Twins: a build without gRPC has the same names.
#[cfg(feature = "grpc")]
pub mod grpc;
#[cfg(not(feature = "grpc"))]
#[path = "grpc_off.rs"]
pub mod grpc;
