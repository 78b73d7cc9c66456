//! Reads vegeta's results and detects their encoding. Not here: decoding each encoding.

use super::gob::{GobDecoder, GobError};
use super::result::{RECORD_BYTES_MAX, VegetaResult};
use super::{csv, json};
use std::io::{self, BufRead, Read};

/// The encoding of a file of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VegetaEncoding {
    /// The encoding is Go's gob, vegeta's default.
    Gob,
    /// The encoding is JSON, one object on each line.
    Json,
    /// The encoding is CSV, one row on each line.
    Csv,
}

impl VegetaEncoding {
    /// Parses vegeta's name of an encoding: `gob`, `json` or `csv`.
    pub fn from_name(name: &str) -> Option<VegetaEncoding> {
        match name {
            "gob" => Some(VegetaEncoding::Gob),
            "json" => Some(VegetaEncoding::Json),
            "csv" => Some(VegetaEncoding::Csv),
            _ => None,
        }
    }
}

/// The reason why results are unreadable.
#[derive(Debug, thiserror::Error)]
pub enum VegetaError {
    /// An I/O error of the input.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// An invalid record: its number, counted from 1, and the reason.
    #[error("result {0} is not a result of vegeta: {1}")]
    Record(u64, &'static str),
}

/// Reads results one by one. The first byte of the input determines the encoding.
#[derive(Debug)]
pub struct VegetaReader<R> {
    from: R,
    encoding: Option<VegetaEncoding>,
    gob: GobDecoder,
    records_read: u64,
    line: Vec<u8>,
}

impl<R: BufRead> VegetaReader<R> {
    /// Creates a reader at the beginning of an input.
    pub fn new(from: R) -> VegetaReader<R> {
        VegetaReader { from, encoding: None, gob: GobDecoder::default(), records_read: 0, line: Vec::new() }
    }

    /// Reads the next result; `None` at the end of the input.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read, or if the next record is not a result of
    /// vegeta.
    pub fn next_result(&mut self) -> Result<Option<VegetaResult>, VegetaError> {
        let encoding = match self.encoding {
            Some(encoding) => encoding,
            None => {
                let encoding = match self.from.fill_buf()?.first() {
                    None => return Ok(None),
                    Some(b'{' | b'\n' | b' ') => VegetaEncoding::Json,
                    Some(b'0'..=b'9') => VegetaEncoding::Csv,
                    Some(_) => VegetaEncoding::Gob,
                };
                *self.encoding.insert(encoding)
            }
        };
        self.records_read += 1;
        let flaw = |why: &'static str| VegetaError::Record(self.records_read, why);
        if encoding == VegetaEncoding::Gob {
            return self.gob.next_result(&mut self.from).map_err(|error| match error {
                GobError::Io(error) => VegetaError::Io(error),
                GobError::Flaw(why) => flaw(why),
            });
        }
        loop {
            self.line.clear();
            (&mut self.from).take(RECORD_BYTES_MAX as u64).read_until(b'\n', &mut self.line)?;
            if self.line.is_empty() {
                return Ok(None);
            }
            if self.line.len() == RECORD_BYTES_MAX {
                return Err(flaw("the line with the result is longer than 64 MiB"));
            }
            if encoding == VegetaEncoding::Csv {
                // A line break within quotation marks is part of the CSV row, so the next line of
                // the file is appended.
                while !csv::is_complete_row(&self.line) {
                    let before = self.line.len();
                    let room = RECORD_BYTES_MAX.saturating_sub(before) as u64;
                    (&mut self.from).take(room).read_until(b'\n', &mut self.line)?;
                    if self.line.len() == before {
                        return Err(flaw("a quotation mark of the CSV row has no closing quotation mark"));
                    }
                }
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let result = match encoding {
            VegetaEncoding::Csv => csv::read(&self.line),
            _ => json::read(&self.line),
        };
        result.map(Some).map_err(flaw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::vegeta::VegetaWriter;

    // The files in `tests/vegeta` are output of vegeta 12.12 for one attack: the attack's results
    // in each encoding, and vegeta's own reports.
    const JSON_RESULTS: &[u8] = include_bytes!("../../tests/vegeta/results.json");
    const CSV_RESULTS: &[u8] = include_bytes!("../../tests/vegeta/results.csv");
    const GOB_RESULTS: &[u8] = include_bytes!("../../tests/vegeta/results.gob");

    fn read_all_results(bytes: &[u8]) -> Result<Vec<VegetaResult>, VegetaError> {
        let mut reader = VegetaReader::new(bytes);
        std::iter::from_fn(|| reader.next_result().transpose()).collect()
    }

    fn encode_results(results: &[VegetaResult], encoding: VegetaEncoding) -> Vec<u8> {
        let (mut writer, mut out) = (VegetaWriter::new(encoding), Vec::new());
        results.iter().for_each(|result| writer.write(result, &mut out));
        out
    }

    /// Sorts the header fields of results, because Go's maps have no fixed order.
    fn in_order(mut results: Vec<VegetaResult>) -> Vec<VegetaResult> {
        results.iter_mut().for_each(|result| result.headers.sort());
        results
    }

    #[test]
    fn vegeta_results_round_trip_byte_for_byte() {
        let json = in_order(read_all_results(JSON_RESULTS).expect("JSON"));
        assert_eq!((json.len(), json[2].code, json[2].error.as_str()), (120, 503, "503 Service Unavailable"));
        assert_eq!(
            (json[0].sent_ns, json[0].latency_ns, json[0].body.len()),
            (1_795_307_654_063_832_482, 1_181_187, 15)
        );
        assert_eq!(json[0].headers[0], ("Content-Length".to_owned(), vec!["15".to_owned()]));
        assert_eq!(in_order(read_all_results(CSV_RESULTS).expect("CSV")), json);
        assert_eq!(in_order(read_all_results(GOB_RESULTS).expect("gob")), json);
        for (encoding, fixture) in [
            (VegetaEncoding::Json, JSON_RESULTS),
            (VegetaEncoding::Csv, CSV_RESULTS),
            (VegetaEncoding::Gob, GOB_RESULTS),
        ] {
            let read = read_all_results(fixture).expect("results");
            assert!(encode_results(&read, encoding) == fixture, "{encoding:?} is written as vegeta writes it");
        }
    }

    #[test]
    fn invalid_records_are_refused_with_their_number() {
        for (text, expect) in [
            (&b"{\"code\":}\n"[..], "result 1 is not a result of vegeta"),
            (b"{}\n[]\n", "result 2 is not a result of vegeta"),
            (b"{\"timestamp\":\"yesterday\"}\n", "result 1 is not a result of vegeta"),
            (b"12,200\n", "result 1 is not a result of vegeta"),
            (b"1,200,5,0,2,\"open,,a,0,GET,u,\n", "result 1 is not a result of vegeta"),
            (b"hello", "result 1 is not a result of vegeta"),
            (&GOB_RESULTS[..GOB_RESULTS.len() - 3], "result 120 is not a result of vegeta"),
        ] {
            let error = read_all_results(text).expect_err("refused").to_string();
            assert!(error.contains(expect), "{}: {error}", text.escape_ascii());
        }
        assert_eq!(read_all_results(b"").expect("nothing"), []);
        assert_eq!(read_all_results(b"\n\n").expect("nothing"), []);
    }

    proptest! {
        #[test]
        fn vegeta_texts_round_trip(error in "\\PC*|[\",\r\n ]*", body in proptest::collection::vec(any::<u8>(), 0..40), code in any::<u16>()) {
            // The CSV reader reads a CRLF within a row as LF, as Go does, so the tested error text
            // has no carriage return.
            let error = error.replace("\r\n", "\n").replace('\r', "");
            let result = VegetaResult { error, body, code, sent_ns: 1_700_000_000_120_000_000, ..VegetaResult::default() };
            let results = vec![result.clone(), VegetaResult { seq: u64::MAX, ..result }];
            for encoding in [VegetaEncoding::Json, VegetaEncoding::Csv, VegetaEncoding::Gob] {
                prop_assert_eq!(&read_all_results(&encode_results(&results, encoding)).expect("read again"), &results);
            }
        }

        #[test]
        fn any_input_is_handled_without_a_panic(cuts in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..8), which in 0..3usize, end in any::<usize>()) {
            let mut bytes = [JSON_RESULTS, CSV_RESULTS, GOB_RESULTS][which].to_vec();
            for (at, byte) in cuts {
                let at = at % bytes.len().min(2_000);
                bytes[at] = byte;
            }
            bytes.truncate(end % bytes.len());
            let _ = read_all_results(&bytes);
        }
    }
}
