//! Decodes results in Go's gob encoding, a stream of type definitions and values. The decoder takes
//! the types from the stream itself and identifies fields by name.
//!
//! Not here: the encoder (`gob_encoder`), and types that do not occur in results (arrays,
//! interfaces, complex numbers).

use super::result::{RECORD_BYTES_MAX, VegetaResult};
use std::collections::HashMap;
use std::io::{self, BufRead, Read};

/// The deepest accepted nesting of types.
const DEPTH_MAX: u32 = 16;
/// The seconds from the start of year 1, the epoch of Go's clock, to the Unix epoch.
pub(super) const EPOCH_S: i64 = 62_135_596_800;

/// The reason why a gob stream is unreadable: an I/O error, or invalid content of the stream.
#[derive(Debug)]
pub(super) enum GobError {
    Io(io::Error),
    Flaw(&'static str),
}

impl From<io::Error> for GobError {
    fn from(error: io::Error) -> GobError {
        GobError::Io(error)
    }
}

impl From<&'static str> for GobError {
    fn from(why: &'static str) -> GobError {
        GobError::Flaw(why)
    }
}

/// The layout of a gob type. A layout names the types of its elements and fields by the type
/// numbers of the gob stream.
#[derive(Debug, Clone)]
enum Layout {
    List(i64),
    Map(i64, i64),
    Struct(Vec<(String, i64)>),
    /// A type with its own encoding (Go's `GobEncoder` and similar interfaces). The decoder sees
    /// the values of the type as bytes.
    SelfEncoded,
}

/// A decoded gob value.
#[derive(Debug)]
enum GobValue {
    Int(i64),
    Uint(u64),
    Bytes(Vec<u8>),
    List(Vec<GobValue>),
    Map(Vec<(GobValue, GobValue)>),
    Struct(Vec<(String, GobValue)>),
    Other,
}

/// The types that a gob stream has defined so far, by number.
#[derive(Debug, Default)]
pub(super) struct GobDecoder {
    layouts: HashMap<i64, Layout>,
}

const TRUNCATED_FILE_TEXT: &str = "the gob file is cut off";

/// The bytes of one gob message that are not decoded yet.
struct GobMessage<'a>(&'a [u8]);

impl<'a> GobMessage<'a> {
    fn read_byte(&mut self) -> Result<u8, &'static str> {
        let (first, rest) = self.0.split_first().ok_or(TRUNCATED_FILE_TEXT)?;
        self.0 = rest;
        Ok(*first)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], &'static str> {
        let length =
            usize::try_from(length).ok().filter(|length| *length <= self.0.len()).ok_or(TRUNCATED_FILE_TEXT)?;
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        Ok(taken)
    }

    /// Decodes an unsigned number. A number below 128 is one byte. For a larger number, the first
    /// byte is the negated count of the bytes that follow.
    fn decode_uint(&mut self) -> Result<u64, &'static str> {
        let first = self.read_byte()?;
        if first < 128 {
            return Ok(u64::from(first));
        }
        let length = 256 - u64::from(first);
        if length > 8 {
            return Err("a number in the gob file is too long");
        }
        Ok(self.take(length)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Decodes a signed number. The lowest bit is 1 for a negative number, whose other bits are
    /// complemented.
    fn decode_int(&mut self) -> Result<i64, &'static str> {
        let number = self.decode_uint()?;
        let value = (number >> 1) as i64;
        Ok(if number & 1 == 1 { !value } else { value })
    }

    fn text(&mut self) -> Result<String, &'static str> {
        let length = self.decode_uint()?;
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    /// Calls `each` for every field of a struct, with the number of the field from 0. Fields with a
    /// zero value are absent in gob.
    fn for_each_field(
        &mut self,
        each: &mut dyn FnMut(&mut Self, usize) -> Result<(), &'static str>,
    ) -> Result<(), &'static str> {
        let mut number = 0u64;
        loop {
            match self.decode_uint()? {
                0 => return Ok(()),
                step => number = number.saturating_add(step),
            }
            each(self, usize::try_from(number - 1).map_err(|_| TRUNCATED_FILE_TEXT)?)?;
        }
    }

    /// Skips the name and number at the beginning of every type definition.
    fn skip_type_header(&mut self) -> Result<(), &'static str> {
        self.for_each_field(&mut |message, number| match number {
            0 => message.text().map(|_| ()),
            1 => message.decode_int().map(|_| ()),
            _ => Err("the description of a gob type has an unknown field"),
        })
    }

    fn decode_layout(&mut self) -> Result<Layout, &'static str> {
        let mut layout = Err("a type in the gob file has no layout");
        self.for_each_field(&mut |message, kind| {
            let (mut of, mut named) = ([0i64; 2], Vec::new());
            message.for_each_field(&mut |message, field| match (kind, field) {
                (_, 0) => message.skip_type_header(),
                (1 | 3, 1) => message.decode_int().map(|number| of[0] = number),
                (3, 2) => message.decode_int().map(|number| of[1] = number),
                (2, 1) => {
                    for _ in 0..message.decode_uint()? {
                        let (mut name, mut number) = (String::new(), 0);
                        message.for_each_field(&mut |message, field| match field {
                            0 => message.text().map(|text| name = text),
                            1 => message.decode_int().map(|it| number = it),
                            _ => Err("the description of a gob field has an unknown entry"),
                        })?;
                        named.push((name, number));
                    }
                    Ok(())
                }
                _ => Err("a type in the gob file is not a type of vegeta's results"),
            })?;
            layout = Ok(match kind {
                1 => Layout::List(of[0]),
                2 => Layout::Struct(std::mem::take(&mut named)),
                3 => Layout::Map(of[0], of[1]),
                4..=6 => Layout::SelfEncoded,
                _ => return Err("a type in the gob file is not a type of vegeta's results"),
            });
            Ok(())
        })?;
        layout
    }
}

impl GobDecoder {
    /// Decodes the next result; `None` at the end of the stream.
    pub(super) fn next_result(&mut self, from: &mut impl BufRead) -> Result<Option<VegetaResult>, GobError> {
        loop {
            let Some(bytes) = read_message_bytes(from)? else { return Ok(None) };
            let mut message = GobMessage(&bytes);
            let number = message.decode_int()?;
            if number < 0 {
                let layout = message.decode_layout()?;
                self.layouts.insert(number.checked_neg().ok_or(TRUNCATED_FILE_TEXT)?, layout);
                continue;
            }
            let Some(Layout::Struct(_)) = self.layouts.get(&number) else {
                return Err("a value in the gob file is not a struct".into());
            };
            let GobValue::Struct(fields) = self.decode_value(&mut message, number, 0)? else {
                return Err(TRUNCATED_FILE_TEXT.into());
            };
            return Ok(Some(result_from_fields(fields)?));
        }
    }

    fn decode_value(&self, message: &mut GobMessage, number: i64, depth: u32) -> Result<GobValue, &'static str> {
        if depth > DEPTH_MAX {
            return Err("the types in the gob file are nested too deep");
        }
        Ok(match number {
            2 => GobValue::Int(message.decode_int()?),
            3 => GobValue::Uint(message.decode_uint()?),
            // Gob types 1 (boolean) and 4 (floating-point number) do not occur in vegeta's results,
            // so their values are skipped.
            1 | 4 => {
                message.decode_uint()?;
                GobValue::Other
            }
            5 | 6 => {
                let length = message.decode_uint()?;
                GobValue::Bytes(message.take(length)?.to_vec())
            }
            number => match self.layouts.get(&number).ok_or("the gob file uses a type that it does not describe")? {
                Layout::SelfEncoded => {
                    let length = message.decode_uint()?;
                    GobValue::Bytes(message.take(length)?.to_vec())
                }
                Layout::List(of) => {
                    let count = message.decode_uint()?;
                    let mut values = Vec::new();
                    for _ in 0..count {
                        values.push(self.decode_value(message, *of, depth + 1)?);
                    }
                    GobValue::List(values)
                }
                Layout::Map(key, value) => {
                    let count = message.decode_uint()?;
                    let mut pairs = Vec::new();
                    for _ in 0..count {
                        pairs.push((
                            self.decode_value(message, *key, depth + 1)?,
                            self.decode_value(message, *value, depth + 1)?,
                        ));
                    }
                    GobValue::Map(pairs)
                }
                Layout::Struct(named) => {
                    let mut fields = Vec::new();
                    message.for_each_field(&mut |message, at| {
                        let (name, number) =
                            named.get(at).ok_or("a value in the gob file has more fields than its type")?;
                        fields.push((name.clone(), self.decode_value(message, *number, depth + 1)?));
                        Ok(())
                    })?;
                    GobValue::Struct(fields)
                }
            },
        })
    }
}

/// Reads the bytes of the next message; `None` at the end of the stream.
fn read_message_bytes(from: &mut impl BufRead) -> Result<Option<Vec<u8>>, GobError> {
    let mut head = [0; 9];
    if from.read(&mut head[..1])? == 0 {
        return Ok(None);
    }
    let cut = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => GobError::Flaw(TRUNCATED_FILE_TEXT),
        _ => GobError::Io(error),
    };
    let length = match head[0] {
        first @ 0..128 => u64::from(first),
        first @ 248.. => {
            let count = 256 - usize::from(first);
            from.read_exact(&mut head[1..=count]).map_err(cut)?;
            head[1..=count].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
        }
        _ => return Err("the file with the results is not JSON, CSV or gob".into()),
    };
    if length > RECORD_BYTES_MAX as u64 {
        return Err("the file with the results is not JSON, CSV or gob, or a result is longer than 64 MiB".into());
    }
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(Some(bytes)) } else { Err(TRUNCATED_FILE_TEXT.into()) }
}

fn result_from_fields(fields: Vec<(String, GobValue)>) -> Result<VegetaResult, &'static str> {
    let mut result = VegetaResult::default();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("Attack", GobValue::Bytes(bytes)) => result.attack = text(bytes),
            ("Seq", GobValue::Uint(number)) => result.seq = number,
            ("Code", GobValue::Uint(code)) => {
                result.code = u16::try_from(code).map_err(|_| "the status code of the gob result is not valid")?
            }
            ("Timestamp", GobValue::Bytes(bytes)) => {
                result.sent_ns = decode_go_time(&bytes).ok_or("the timestamp of the gob result is not valid")?
            }
            ("Latency", GobValue::Int(ns)) => result.latency_ns = u64::try_from(ns).unwrap_or(0),
            ("BytesOut", GobValue::Uint(bytes)) => result.bytes_out = bytes,
            ("BytesIn", GobValue::Uint(bytes)) => result.bytes_in = bytes,
            ("Error", GobValue::Bytes(bytes)) => result.error = text(bytes),
            ("Body", GobValue::Bytes(bytes)) => result.body = bytes,
            ("Method", GobValue::Bytes(bytes)) => result.method = text(bytes),
            ("URL", GobValue::Bytes(bytes)) => result.url = text(bytes),
            ("Headers", GobValue::Map(pairs)) => {
                for (name, values) in pairs {
                    let (GobValue::Bytes(name), GobValue::List(values)) = (name, values) else {
                        return Err("the header fields of the gob result are not valid");
                    };
                    let value = |value| match value {
                        GobValue::Bytes(bytes) => Ok(text(bytes)),
                        _ => Err("the header fields of the gob result are not valid"),
                    };
                    result.headers.push((text(name), values.into_iter().map(value).collect::<Result<_, _>>()?));
                }
            }
            // Unknown fields come from a later version of vegeta and are ignored.
            _ => {}
        }
    }
    Ok(result)
}

/// Decodes a Go time into ns since the Unix epoch. The encoding has a version, seconds since year
/// 1, ns, and a zone, which does not change the time.
fn decode_go_time(bytes: &[u8]) -> Option<u64> {
    let seconds = i64::from_be_bytes(bytes.get(1..9)?.try_into().ok()?).checked_sub(EPOCH_S)?;
    let ns = u32::from_be_bytes(bytes.get(9..13)?.try_into().ok()?);
    u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)?.checked_add(u64::from(ns))
}
