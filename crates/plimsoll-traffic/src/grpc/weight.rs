//! Estimates the memory of descriptors from their bytes, before any library decodes them. An empty
//! message takes two bytes in a file and more than a thousand bytes in memory. Descriptors of 4 MB
//! could therefore take 4 GB of memory.
//!
//! Not here: whether descriptors are valid, which their decoders check.

use plimsoll_model::{BudgetError, ParseBudget};

/// The largest estimated memory of one schema, bytes. The public APIs of the largest cloud
/// providers together take half of `SCHEMA_MEMORY_BYTES_MAX`.
pub(super) const SCHEMA_MEMORY_BYTES_MAX: usize = 256 << 20;
/// The deepest accepted nesting of messages. Protobuf decoders reject deeper nesting, and the
/// messages of real files are nested less deeply.
pub(super) const DEPTH_MAX: usize = 90;
/// The memory of a name or number, as a multiple of its bytes. The file, the descriptor pool and
/// its name tables each have a copy of a name.
const TEXT_MEMORY_FACTOR: usize = 4;
/// The field number of source positions in a file descriptor. Source positions are not used, and
/// make up half of compiled files.
const SOURCE_INFO_FIELD_NUMBER: u64 = 9;

/// The kind of a descriptor element. `Other` is a name, number or any other field that contains no
/// further elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DescriptorPart {
    File,
    Message,
    Field,
    Enum,
    EnumValue,
    Service,
    Method,
    Range,
    Options,
    Other,
}

impl DescriptorPart {
    /// Returns the estimated memory of one element in descriptor and pool, bytes: measured and
    /// rounded up.
    fn estimated_memory_bytes(self) -> usize {
        match self {
            DescriptorPart::File => 2_200,
            DescriptorPart::Message => 1_400,
            DescriptorPart::Field | DescriptorPart::Enum | DescriptorPart::Service | DescriptorPart::Method => 700,
            DescriptorPart::EnumValue => 400,
            DescriptorPart::Range | DescriptorPart::Options | DescriptorPart::Other => 200,
        }
    }

    /// Returns the kind of the nested element in field `number` (google/protobuf/descriptor.proto).
    fn nested_part(self, number: u64) -> DescriptorPart {
        use DescriptorPart::{Enum, EnumValue, Field, File, Message, Method, Options, Other, Range, Service};
        match (self, number) {
            (File, 4) | (Message, 3) => Message,
            (File, 5) | (Message, 4) => Enum,
            (File, 6) => Service,
            (File, 7) | (Message, 2 | 6) => Field,
            (Message, 5) => Range,
            (Enum, 2) => EnumValue,
            (Service, 2) => Method,
            (File, 8) | (Message | Method, 7 | 4) | (Field, 8) | (Enum | EnumValue | Service | Range, 3) => Options,
            _ => Other,
        }
    }
}

/// Charges the memory of a file descriptor to `budget`, and returns its bytes without source
/// positions. Invalid bytes are returned unchanged, so that their decoder reports the error.
pub(super) fn charge_descriptor(bytes: &[u8], budget: &mut ParseBudget) -> Result<Vec<u8>, BudgetError> {
    budget.spend_bytes(DescriptorPart::File.estimated_memory_bytes())?;
    let mut kept = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some((number, content, after)) = split_first_field(rest) else {
            kept.extend_from_slice(rest);
            break;
        };
        if number != SOURCE_INFO_FIELD_NUMBER {
            kept.extend_from_slice(&rest[..rest.len() - after.len()]);
            charge_element(DescriptorPart::File.nested_part(number), content, 1, budget)?;
        }
        rest = after;
    }
    Ok(kept)
}

/// Counts the fields at a path of nested field numbers. The path `[6, 1]` means every field 1
/// inside every field 6. Counting stops at the first invalid byte.
pub(super) fn count_entries(bytes: &[u8], path: &[u64]) -> usize {
    let [wanted, below @ ..] = path else { return 1 };
    let (mut count, mut rest) = (0, bytes);
    while let Some((number, content, after)) = split_first_field(rest) {
        if number == *wanted {
            count += content.map_or(0, |content| count_entries(content, below));
        }
        rest = after;
    }
    count
}

fn charge_element(
    part: DescriptorPart,
    content: Option<&[u8]>,
    depth: usize,
    budget: &mut ParseBudget,
) -> Result<(), BudgetError> {
    let Some(content) = content else { return Ok(()) };
    budget.spend_bytes(part.estimated_memory_bytes())?;
    if part == DescriptorPart::Other || depth > DEPTH_MAX {
        return budget.spend_bytes(content.len().saturating_mul(TEXT_MEMORY_FACTOR));
    }
    let mut rest = content;
    while let Some((number, content, after)) = split_first_field(rest) {
        charge_element(part.nested_part(number), content, depth + 1, budget)?;
        rest = after;
    }
    budget.spend_bytes(rest.len())
}

/// A raw protobuf field: its number, its content if it is length-delimited, and the bytes after it.
type RawField<'a> = (u64, Option<&'a [u8]>, &'a [u8]);

/// Splits off the first raw field; `None` if the bytes are empty or invalid.
fn split_first_field(bytes: &[u8]) -> Option<RawField<'_>> {
    let (key, rest) = split_first_varint(bytes)?;
    let (content, rest) = match key & 7 {
        0 => (None, split_first_varint(rest)?.1),
        1 => (None, rest.get(8..)?),
        2 => {
            let (length, rest) = split_first_varint(rest)?;
            let (content, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            (Some(content), rest)
        }
        5 => (None, rest.get(4..)?),
        // Descriptors contain no groups, so start and end marks of groups are skipped.
        3 | 4 => (None, rest),
        _ => return None,
    };
    Some((key >> 3, content, rest))
}

fn split_first_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at).min(63);
        if *byte < 0x80 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

/// Charges the memory of a `.proto` text to `budget`. Each statement, list item and opening bracket
/// is charged like one descriptor field, which gives an upper bound of the memory. A returned error
/// is a sentence for the user.
pub(super) fn charge_proto_text(text: &str, budget: &mut ParseBudget) -> Result<(), String> {
    let (mut depth, mut deepest, mut parts) = (0usize, 0usize, 0usize);
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = match byte {
            b'/' if after.starts_with(b"/") => bytes_after_marker(after, b"\n"),
            b'/' if after.starts_with(b"*") => bytes_after_marker(after, b"*/"),
            b'"' | b'\'' => bytes_after_quote(after, *byte),
            _ => after,
        };
        match byte {
            b'{' | b'(' | b'[' | b'<' => {
                depth += 1;
                deepest = deepest.max(depth);
                parts += 1;
            }
            b'}' | b')' | b']' | b'>' => depth = depth.saturating_sub(1),
            b';' | b',' => parts += 1,
            _ => {}
        }
    }
    if deepest > DEPTH_MAX {
        return Err(format!("the blocks of a .proto file are nested more than {DEPTH_MAX} levels deep"));
    }
    let bytes = parts.saturating_mul(DescriptorPart::Field.estimated_memory_bytes())
        + text.len().saturating_mul(TEXT_MEMORY_FACTOR);
    budget.spend_bytes(bytes).map_err(|error| error.to_string())
}

/// Returns the bytes after the first occurrence of `end`; empty if `end` does not occur.
fn bytes_after_marker<'a>(bytes: &'a [u8], end: &[u8]) -> &'a [u8] {
    memchr::memmem::find(bytes, end).map_or(&[], |at| &bytes[at + end.len()..])
}

/// Returns the bytes after the closing quote. A backslash escapes the next byte.
fn bytes_after_quote(bytes: &[u8], quote: u8) -> &[u8] {
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += if *byte == b'\\' { 2 } else { 1 };
        if *byte == quote {
            return &bytes[at..];
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;
    use prost_types::source_code_info::Location;
    use prost_types::{DescriptorProto, FileDescriptorProto, SourceCodeInfo};

    #[test]
    fn descriptors_are_charged_their_estimated_memory() {
        let message = |nested: Vec<DescriptorProto>| DescriptorProto { nested_type: nested, ..Default::default() };
        let file = |messages| FileDescriptorProto { message_type: messages, ..Default::default() }.encode_to_vec();
        for (bytes, weight) in [
            (file(vec![]), 2_200),
            (file(vec![message(vec![])]), 3_600),
            (file(vec![message(vec![message(vec![]), message(vec![])])]), 6_400),
        ] {
            let mut budget = ParseBudget::new(weight);
            assert_eq!(charge_descriptor(&bytes, &mut budget).as_deref(), Ok(&*bytes));
            assert!(budget.spend_bytes(1).is_err());
            assert!(charge_descriptor(&bytes, &mut ParseBudget::new(weight - 1)).is_err());
        }
    }

    #[test]
    fn descriptor_source_info_is_omitted() {
        let mut file = FileDescriptorProto { name: Some("a".into()), ..Default::default() };
        let without = file.encode_to_vec();
        file.source_code_info = Some(SourceCodeInfo { location: vec![Location::default(); 100_000] });
        let mut budget = ParseBudget::new(10_000);
        assert_eq!(charge_descriptor(&file.encode_to_vec(), &mut budget), Ok(without));
        // Invalid protobuf bytes pass unchanged, so that the decoder reports the error.
        assert_eq!(charge_descriptor(&[0xff, 1, 2], &mut budget), Ok(vec![0xff, 1, 2]));
    }

    #[test]
    fn descriptor_entries_are_counted() {
        assert_eq!(count_entries(&[0x32, 4, 0x0a, 0, 0x0a, 0, 0x32, 2, 0x0a, 0], &[6, 1]), 3);
        assert_eq!(count_entries(&[0xff], &[6, 1]), 0);
    }

    #[test]
    fn oversized_proto_texts_are_refused() {
        for (text, expect) in [
            ("message A { string a = 1; }".to_owned(), true),
            ("message A {}".repeat(1_000_000), false),
            ("{".repeat(1_000), false),
            (
                format!("/* {0} */ // {0}\nmessage A {{ string a = 1 [default = \"\\\"{0}\"]; }}", "{".repeat(1_000)),
                true,
            ),
            ("\"\\".to_owned(), true),
        ] {
            assert_eq!(
                charge_proto_text(&text, &mut ParseBudget::new(SCHEMA_MEMORY_BYTES_MAX)).is_ok(),
                expect,
                "{:.30}",
                text
            );
        }
    }
}
