//! Reads and writes the results of the load tester vegeta; each result describes one request. A
//! decoder ([`VegetaReader`]) and an encoder ([`VegetaWriter`]) support three encodings: gob, JSON
//! and CSV. [`VegetaFigures`] computes the figures of vegeta's reports, and [`VegetaTimeSeries`]
//! computes figures over time. [`TargetReader`] parses vegeta's target files.
//!
//! Not here: presenting results, opening files, and running attacks.

mod base64;
mod csv;
mod digest;
mod figures;
mod gob;
mod gob_encoder;
mod json;
mod reader;
mod result;
mod targets;
mod time_series;
mod timestamp;
mod writer;

pub use figures::VegetaFigures;
pub use reader::{VegetaEncoding, VegetaError, VegetaReader};
pub use result::VegetaResult;
pub use targets::{TargetBody, TargetError, TargetFormat, TargetReader, VegetaTarget, is_valid_header_field};
pub use time_series::{AttackIntervalFigures, AttackTimeSeries, VegetaTimeSeries};
pub use writer::VegetaWriter;
