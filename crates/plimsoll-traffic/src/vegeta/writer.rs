//! Writes results in one encoding. Not here: the encodings.

use super::gob_written::{write_layouts, write_result};
use super::reader::VegetaEncoding;
use super::result::VegetaResult;

/// Writes results in one encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VegetaWriter {
    encoding: VegetaEncoding,
    /// Whether the beginning of the file was written.
    is_begun: bool,
}

impl VegetaWriter {
    /// A writer at the beginning.
    pub fn new(encoding: VegetaEncoding) -> VegetaWriter {
        VegetaWriter { encoding, is_begun: false }
    }

    /// Appends a result.
    pub fn write(&mut self, result: &VegetaResult, out: &mut Vec<u8>) {
        let first = !std::mem::replace(&mut self.is_begun, true);
        match self.encoding {
            VegetaEncoding::Json => result.write_json(out),
            VegetaEncoding::Csv => result.write_csv(out),
            VegetaEncoding::Gob => {
                if first {
                    write_layouts(out);
                }
                write_result(result, out);
            }
        }
    }
}
