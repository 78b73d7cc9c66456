//! Encodes JSON bodies as gRPC messages of a method. The descriptors of message types come from
//! `.proto` files, from a compiled descriptor set, or from the server's reflection service.
//!
//! Not here: files, sockets, HTTP/2, and statuses of calls.

mod any;
mod editions;
mod example;
pub mod health;
pub mod reflection;
mod schema;
mod text;
mod weight;
mod work;

pub use schema::{Method, Schema, SchemaError};
pub use text::build_message_converters;
