//! Results of vegeta, one for each request: decoded ([`VegetaReader`]) and encoded
//! ([`VegetaWriter`]) in three encodings, with the figures of its reports ([`VegetaFigures`]), and
//! over time ([`VegetaCourse`]). Also its target files ([`TargetReader`]).
//!
//! Not here: presentation, files, and attacks.

mod base64;
mod course;
mod csv;
mod digest;
mod figures;
mod gob;
mod gob_written;
mod json;
mod moment;
mod reader;
mod result;
mod targets;
mod writer;

pub use course::{AttackCourse, CoursePoint, VegetaCourse};
pub use figures::VegetaFigures;
pub use reader::{VegetaEncoding, VegetaError, VegetaReader};
pub use result::VegetaResult;
pub use targets::{TargetBody, TargetError, TargetFormat, TargetReader, VegetaTarget, is_field};
pub use writer::VegetaWriter;
