//! gRPC as people write it: a body of JSON becomes the messages that a method takes, by descriptors
//! out of `.proto` files, of a set that a compiler wrote, or of the server's own reflection.
//!
//! Not here: files, sockets, HTTP/2, how a call ends.

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
pub use text::texts;
