//! Importers. A curl command line becomes one request. API descriptions, browser recordings and
//! files of other tools become a traffic file.
//!
//! Each importer is a function of a text. It returns a note with a position for everything that it
//! could not import. Not here: reading files, sending requests, presentation.

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
