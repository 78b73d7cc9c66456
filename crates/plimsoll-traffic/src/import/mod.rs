//! Imports requests from other sources. A curl command line becomes one request. API descriptions,
//! browser recordings and files of other tools become a traffic file.
//!
//! Each importer is a function that takes the text to import. Each part that cannot be imported
//! gets a note with its position. Not here: reading files, sending requests, presentation.

pub mod curl;
pub mod draft;
mod draft_cleanup;
mod har;
mod host;
mod jmx;
mod nodes;
mod openapi;
mod postman;

pub use draft::{ImportOmission, ImportResult};
pub use har::import_har;
pub use host::host_to_ascii;
pub use jmx::import_jmx;
pub use openapi::import_openapi;
pub use postman::import_postman;
