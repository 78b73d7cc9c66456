//! An encoder for results in Go's gob: first the type definitions, then a message for each result,
//! with the order and numbers that vegeta uses. The output equals vegeta's own byte for byte.
//!
//! Not here: the decoder (`gob`).

use super::gob::EPOCH_S;
use super::result::VegetaResult;

/// Built-in types.
const INT: i64 = 2;
const UINT: i64 = 3;
const BYTES: i64 = 5;
const TEXT: i64 = 6;
/// Type numbers of results, as in vegeta.
const RESULT: i64 = 64;
const MOMENT: i64 = 65;
const TEXTS: i64 = 66;
const HEADER: i64 = 67;

/// Fields of a result, in their order.
const FIELDS: [(&str, i64); 12] = [
    ("Attack", TEXT),
    ("Seq", UINT),
    ("Code", UINT),
    ("Timestamp", MOMENT),
    ("Latency", INT),
    ("BytesOut", UINT),
    ("BytesIn", UINT),
    ("Error", TEXT),
    ("Body", BYTES),
    ("Method", TEXT),
    ("URL", TEXT),
    ("Headers", HEADER),
];

/// An unsigned number: small ones are one byte; otherwise the first byte is the negated length.
fn uint(out: &mut Vec<u8>, number: u64) {
    if number < 128 {
        return out.push(number as u8);
    }
    let bytes = number.to_be_bytes();
    let from = number.leading_zeros() as usize / 8;
    out.push((from as u8).wrapping_sub(8));
    out.extend_from_slice(&bytes[from..]);
}

/// A signed number: the lowest bit marks a complement.
fn int(out: &mut Vec<u8>, number: i64) {
    uint(out, if number < 0 { (!number as u64) << 1 | 1 } else { (number as u64) << 1 });
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    uint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A struct: each field has its distance from the one before; zero fields are absent.
struct GobFields<'a> {
    out: &'a mut Vec<u8>,
    last: u64,
}

impl<'a> GobFields<'a> {
    fn begin(out: &'a mut Vec<u8>) -> GobFields<'a> {
        GobFields { out, last: 0 }
    }

    /// Begins the field with this number, from 1; its value follows.
    fn begin_field(&mut self, number: u64) -> &mut Vec<u8> {
        uint(self.out, number - self.last);
        self.last = number;
        self.out
    }

    fn count(&mut self, number: u64, value: u64) {
        if value > 0 {
            uint(self.begin_field(number), value);
        }
    }

    fn text(&mut self, number: u64, value: &[u8]) {
        if !value.is_empty() {
            bytes(self.begin_field(number), value);
        }
    }

    fn end(self) {
        self.out.push(0);
    }
}

/// A message: its length and content.
fn message(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let mut body = Vec::new();
    write(&mut body);
    bytes(out, &body);
}

/// A type definition: `kind` is its field in the list of kinds, `more` writes what follows name and
/// number.
fn layout(out: &mut Vec<u8>, number: i64, name: &str, kind: u64, more: impl FnOnce(&mut GobFields)) {
    message(out, |out| {
        int(out, -number);
        let mut kinds = GobFields::begin(out);
        let mut fields = GobFields::begin(kinds.begin_field(kind));
        let mut common = GobFields::begin(fields.begin_field(1));
        common.text(1, name.as_bytes());
        int(common.begin_field(2), number);
        common.end();
        more(&mut fields);
        fields.end();
        kinds.end();
    });
}

/// The type definitions at the beginning of a stream.
pub(super) fn write_layouts(out: &mut Vec<u8>) {
    layout(out, RESULT, "Result", 3, |fields| {
        let list = fields.begin_field(2);
        uint(list, FIELDS.len() as u64);
        for (name, of) in FIELDS {
            let mut field = GobFields::begin(list);
            field.text(1, name.as_bytes());
            int(field.begin_field(2), of);
            field.end();
        }
    });
    // A type with an encoding of its own.
    layout(out, MOMENT, "Time", 5, |_| {});
    layout(out, HEADER, "Header", 4, |fields| {
        int(fields.begin_field(2), TEXT);
        int(fields.begin_field(3), TEXTS);
    });
    layout(out, TEXTS, "", 2, |fields| int(fields.begin_field(2), TEXT));
}

/// Appends one result.
pub(super) fn write_result(result: &VegetaResult, out: &mut Vec<u8>) {
    message(out, |out| {
        int(out, RESULT);
        let mut fields = GobFields::begin(out);
        fields.text(1, result.attack.as_bytes());
        fields.count(2, result.seq);
        fields.count(3, u64::from(result.code));
        fields.text(4, &moment(result.sent_ns));
        if result.latency_ns > 0 {
            int(fields.begin_field(5), i64::try_from(result.latency_ns).unwrap_or(i64::MAX));
        }
        fields.count(6, result.bytes_out);
        fields.count(7, result.bytes_in);
        fields.text(8, result.error.as_bytes());
        fields.text(9, &result.body);
        fields.text(10, result.method.as_bytes());
        fields.text(11, result.url.as_bytes());
        if !result.headers.is_empty() {
            let out = fields.begin_field(12);
            uint(out, result.headers.len() as u64);
            for (name, values) in &result.headers {
                bytes(out, name.as_bytes());
                uint(out, values.len() as u64);
                values.iter().for_each(|value| bytes(out, value.as_bytes()));
            }
        }
        fields.end();
    });
}

/// A Go time: version, seconds since year 1, ns, and a zone of 0 minutes from UTC.
fn moment(ns: u64) -> [u8; 15] {
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
    fn numbers_are_as_short_as_they_can_be() {
        let written = |number: i64| {
            let mut out = Vec::new();
            int(&mut out, number);
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
