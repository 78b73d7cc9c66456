//! Encodes results in Go's gob: first the type definitions, then a message for each result. Type
//! numbers and the order of fields are vegeta's, so the output equals vegeta's own byte for byte.
//!
//! Not here: the decoder (`gob`).

use super::gob::EPOCH_S;
use super::result::VegetaResult;

/// The numbers of gob's built-in types.
const INT_TYPE_ID: i64 = 2;
const UINT_TYPE_ID: i64 = 3;
const BYTES_TYPE_ID: i64 = 5;
const STRING_TYPE_ID: i64 = 6;
/// The numbers of the types that vegeta defines for results.
const RESULT_TYPE_ID: i64 = 64;
const TIME_TYPE_ID: i64 = 65;
const STRING_LIST_TYPE_ID: i64 = 66;
const HEADER_TYPE_ID: i64 = 67;

/// The fields of a result and their types, in vegeta's order.
const RESULT_FIELDS: [(&str, i64); 12] = [
    ("Attack", STRING_TYPE_ID),
    ("Seq", UINT_TYPE_ID),
    ("Code", UINT_TYPE_ID),
    ("Timestamp", TIME_TYPE_ID),
    ("Latency", INT_TYPE_ID),
    ("BytesOut", UINT_TYPE_ID),
    ("BytesIn", UINT_TYPE_ID),
    ("Error", STRING_TYPE_ID),
    ("Body", BYTES_TYPE_ID),
    ("Method", STRING_TYPE_ID),
    ("URL", STRING_TYPE_ID),
    ("Headers", HEADER_TYPE_ID),
];

/// Appends an unsigned number. A number below 128 is one byte. For a larger number, the first byte
/// is the negated count of the bytes that follow.
fn append_uint(out: &mut Vec<u8>, number: u64) {
    if number < 128 {
        return out.push(number as u8);
    }
    let bytes = number.to_be_bytes();
    let from = number.leading_zeros() as usize / 8;
    out.push((from as u8).wrapping_sub(8));
    out.extend_from_slice(&bytes[from..]);
}

/// Appends a signed number. The lowest bit is 1 for a negative number, whose other bits are
/// complemented.
fn append_int(out: &mut Vec<u8>, number: i64) {
    append_uint(out, if number < 0 { (!number as u64) << 1 | 1 } else { (number as u64) << 1 });
}

fn append_length_prefixed_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    append_uint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// An encoder of one struct. Each field begins with the difference between its number and the
/// number of the previous field. Fields with a zero value are omitted.
struct GobFields<'a> {
    out: &'a mut Vec<u8>,
    last: u64,
}

impl<'a> GobFields<'a> {
    fn begin(out: &'a mut Vec<u8>) -> GobFields<'a> {
        GobFields { out, last: 0 }
    }

    /// Begins the struct field `number`, counted from 1. The caller then appends the value of the
    /// field to the returned buffer.
    fn begin_field(&mut self, number: u64) -> &mut Vec<u8> {
        append_uint(self.out, number - self.last);
        self.last = number;
        self.out
    }

    fn append_uint_field(&mut self, number: u64, value: u64) {
        if value > 0 {
            append_uint(self.begin_field(number), value);
        }
    }

    fn append_bytes_field(&mut self, number: u64, value: &[u8]) {
        if !value.is_empty() {
            append_length_prefixed_bytes(self.begin_field(number), value);
        }
    }

    fn end(self) {
        self.out.push(0);
    }
}

/// Appends a message: its length, and the content that `write` produces.
fn append_message(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let mut body = Vec::new();
    write(&mut body);
    append_length_prefixed_bytes(out, &body);
}

/// Appends a gob type definition. `kind` is the field number that gob reserves for this kind of
/// type, for example 4 for maps. `more` appends the parts of the definition that follow the name
/// and number of the type.
fn append_type_definition(out: &mut Vec<u8>, number: i64, name: &str, kind: u64, more: impl FnOnce(&mut GobFields)) {
    append_message(out, |out| {
        append_int(out, -number);
        let mut kinds = GobFields::begin(out);
        let mut fields = GobFields::begin(kinds.begin_field(kind));
        let mut common = GobFields::begin(fields.begin_field(1));
        common.append_bytes_field(1, name.as_bytes());
        append_int(common.begin_field(2), number);
        common.end();
        more(&mut fields);
        fields.end();
        kinds.end();
    });
}

/// Appends the type definitions that begin a stream.
pub(super) fn write_type_definitions(out: &mut Vec<u8>) {
    append_type_definition(out, RESULT_TYPE_ID, "Result", 3, |fields| {
        let list = fields.begin_field(2);
        append_uint(list, RESULT_FIELDS.len() as u64);
        for (name, of) in RESULT_FIELDS {
            let mut field = GobFields::begin(list);
            field.append_bytes_field(1, name.as_bytes());
            append_int(field.begin_field(2), of);
            field.end();
        }
    });
    // `Time` has its own encoding (Go's `GobEncoder`).
    append_type_definition(out, TIME_TYPE_ID, "Time", 5, |_| {});
    append_type_definition(out, HEADER_TYPE_ID, "Header", 4, |fields| {
        append_int(fields.begin_field(2), STRING_TYPE_ID);
        append_int(fields.begin_field(3), STRING_LIST_TYPE_ID);
    });
    append_type_definition(out, STRING_LIST_TYPE_ID, "", 2, |fields| append_int(fields.begin_field(2), STRING_TYPE_ID));
}

/// Appends the message of one result.
pub(super) fn write_result(result: &VegetaResult, out: &mut Vec<u8>) {
    append_message(out, |out| {
        append_int(out, RESULT_TYPE_ID);
        let mut fields = GobFields::begin(out);
        fields.append_bytes_field(1, result.attack.as_bytes());
        fields.append_uint_field(2, result.seq);
        fields.append_uint_field(3, u64::from(result.code));
        fields.append_bytes_field(4, &encode_time(result.sent_ns));
        if result.latency_ns > 0 {
            append_int(fields.begin_field(5), i64::try_from(result.latency_ns).unwrap_or(i64::MAX));
        }
        fields.append_uint_field(6, result.bytes_out);
        fields.append_uint_field(7, result.bytes_in);
        fields.append_bytes_field(8, result.error.as_bytes());
        fields.append_bytes_field(9, &result.body);
        fields.append_bytes_field(10, result.method.as_bytes());
        fields.append_bytes_field(11, result.url.as_bytes());
        if !result.headers.is_empty() {
            let out = fields.begin_field(12);
            append_uint(out, result.headers.len() as u64);
            for (name, values) in &result.headers {
                append_length_prefixed_bytes(out, name.as_bytes());
                append_uint(out, values.len() as u64);
                values.iter().for_each(|value| append_length_prefixed_bytes(out, value.as_bytes()));
            }
        }
        fields.end();
    });
}

/// Encodes a time, ns since the Unix epoch, as Go does: version, seconds since year 1, ns, and a
/// zone offset of 0 minutes.
fn encode_time(ns: u64) -> [u8; 15] {
    let mut bytes = [0; 15];
    bytes[0] = 1;
    bytes[1..9].copy_from_slice(&((ns / 1_000_000_000) as i64 + EPOCH_S).to_be_bytes());
    bytes[9..13].copy_from_slice(&((ns % 1_000_000_000) as u32).to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gob_numbers_have_minimal_length() {
        let written = |number: i64| {
            let mut out = Vec::new();
            append_int(&mut out, number);
            out
        };
        for (number, expect) in [
            (0, &[0][..]),
            (-64, &[0x7f]),
            (64, &[0xff, 0x80]),
            (-65, &[0xff, 0x81]),
            (1_181_187, &[0xfd, 0x24, 0x0c, 0x06]),
            (i64::MAX, &[0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]),
        ] {
            assert_eq!(written(number), expect, "{number}");
        }
    }
}
