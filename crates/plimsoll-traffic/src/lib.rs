//! What people have of their traffic, as text, made into values: a file that says what is asked
//! becomes a [`plimsoll_model::Traffic`], access logs become figures of what came, a load that asks
//! the same again, or a file that asks alike; the results of vegeta become figures, too.
//!
//! Text in, values out. Where the text comes from is the caller's to know: nothing here reads
//! files, the environment or the clock, starts threads or talks to a server, and nothing knows how
//! a load is carried out or how anything looks.

#![forbid(unsafe_code)]

pub mod file;
pub mod import;
pub mod logs;
pub mod modelling;
pub mod replay;
pub mod survey;
pub mod target_url;
pub mod vegeta;

// Twins: what a program without gRPC has of it, too, can be named in both.
#[cfg(feature = "grpc")]
pub mod grpc;
#[cfg(not(feature = "grpc"))]
#[path = "grpc_off.rs"]
pub mod grpc;
