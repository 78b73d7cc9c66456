//! Results as vegeta writes them, one for each request: read ([`VegetaReader`]) and written
//! ([`VegetaWriter`]) in its three encodings, their figures as its own reports have them
//! ([`VegetaFigures`]), and over time ([`VegetaCourse`]); its files of targets ([`TargetReader`]).
//!
//! Not here: how a report looks, files, and attacks.

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
