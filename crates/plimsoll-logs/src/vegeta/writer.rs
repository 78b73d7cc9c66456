//! Writes vegeta's results in a chosen encoding. Not here: encoding a single result.

use super::gob_encoder::{write_result, write_type_definitions};
use super::reader::VegetaEncoding;
use super::result::VegetaResult;

/// Writes results one by one in one encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VegetaWriter {
    encoding: VegetaEncoding,
    /// Whether a result was written. In gob, type definitions precede the first result.
    is_begun: bool,
}

impl VegetaWriter {
    /// Creates a writer at the beginning of a file.
    pub fn new(encoding: VegetaEncoding) -> VegetaWriter {
        VegetaWriter { encoding, is_begun: false }
    }

    /// Appends a result to `out`.
    pub fn write(&mut self, result: &VegetaResult, out: &mut Vec<u8>) {
        let first = !std::mem::replace(&mut self.is_begun, true);
        match self.encoding {
            VegetaEncoding::Json => result.write_json(out),
            VegetaEncoding::Csv => result.write_csv(out),
            VegetaEncoding::Gob => {
                if first {
                    write_type_definitions(out);
                }
                write_result(result, out);
            }
        }
    }
}
