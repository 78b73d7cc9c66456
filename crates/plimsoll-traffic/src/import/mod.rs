//! What people have at hand instead of a file of traffic, made into what is asked: a command line of curl into one request,
//! a description of an API into a file of traffic.
//!
//! Each importer is a function of a text, and says of what it could not carry over where that stands. Not here: reading files,
//! carrying anything out, how anything looks.

pub mod curl;
mod draft;
mod nodes;
mod openapi;

pub use draft::{Imported, LeftOut};
pub use openapi::openapi;
