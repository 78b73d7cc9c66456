//! What people have at hand instead of a file of traffic, made into what is asked: a command line
//! of curl into one request, descriptions of an API, recordings and the files of other tools into a
//! file of traffic.
//!
//! Each importer is a function of a text, and says of what it could not carry over where that
//! stands. Not here: reading files, carrying anything out, how anything looks.

pub mod curl;
pub(crate) mod draft;
mod har;
mod host;
mod jmx;
mod nodes;
mod openapi;
mod postman;
mod sound;

pub use draft::{ImportOmission, ImportResult};
pub use har::har;
pub use host::host_in_ascii;
pub use jmx::jmx;
pub use openapi::openapi;
pub use postman::postman;
