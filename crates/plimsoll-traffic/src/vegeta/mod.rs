//! Results as vegeta writes them, one for each request: read in its three encodings ([`VegetaReader`]), written in two of them
//! ([`VegetaResult`]), and their figures as its own reports have them ([`VegetaFigures`]); its files of targets ([`TargetReader`]).
//!
//! Not here: how a report looks, files, and attacks.

mod base64;
mod csv;
mod digest;
mod figures;
mod gob;
mod json;
mod moment;
mod reader;
mod result;
mod targets;

pub use figures::VegetaFigures;
pub use reader::{VegetaEncoding, VegetaError, VegetaReader};
pub use result::VegetaResult;
pub use targets::{TargetBody, TargetError, TargetFormat, TargetReader, VegetaTarget};
