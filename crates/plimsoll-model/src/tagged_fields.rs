//! Tagged fields: the encoding of packed frames in a run file, and of plans between machines.
//!
//! ```text
//!     message = field*                      ends with the frame or field that contains the message
//!     field   = tag (varint)  length (varint)  value (length bytes)
//!     varint  = bytes with seven bits of the number each, the lowest bits first (LEB128);
//!               the eighth bit is 1 in every byte except the last byte
//! ```
//!
//! A field that is absent has its default value. A reader skips and counts unknown tags, so that
//! later writers may add figures. The tag decides whether a value is a number (varint), bytes, or a
//! nested message.
//!
//! Not here: the meaning of tags, and checksums (`codec`).

/// Appends a number as a varint (LEB128).
pub(crate) fn append_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the field `tag`; its value consists of the bytes that `write` appends.
pub(crate) fn append_field(out: &mut Vec<u8>, tag: u32, write: impl FnOnce(&mut Vec<u8>)) {
    append_varint(out, u64::from(tag));
    let at = out.len();
    // Most values are shorter than 128 bytes, so reserve one byte for the length.
    out.push(0);
    write(out);
    let length = out.len() - at - 1;
    if length < 0x80 {
        out[at] = length as u8;
        return;
    }
    let mut head = Vec::with_capacity(4);
    append_varint(&mut head, length as u64);
    out.splice(at..=at, head);
}

/// Appends the field `tag` with a number, unless the number is 0, the default value.
pub(crate) fn append_nonzero_number(out: &mut Vec<u8>, tag: u32, value: u64) {
    if value > 0 {
        append_field(out, tag, |out| append_varint(out, value));
    }
}

/// Whether the reader knows the tag of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TagRecognition {
    Known,
    Unknown,
}

/// Reads a message; `bytes` is the part of the message that is not read yet. Every method returns
/// `None` for bytes that no writer produces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldReader<'a> {
    pub(crate) bytes: &'a [u8],
}

impl<'a> FieldReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> FieldReader<'a> {
        FieldReader { bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn read_varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            value |= u64::from(first & 0x7f).checked_shl(shift)?;
            if first & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// Reads the number of following items or bytes. Each item takes at least one byte, so a number
    /// above the number of bytes left gives `None`.
    pub(crate) fn read_length(&mut self) -> Option<usize> {
        let length = usize::try_from(self.read_varint()?).ok()?;
        (length <= self.bytes.len()).then_some(length)
    }

    /// Reads `length` bytes.
    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    /// Returns the value of a field that consists of a single number (varint).
    pub(crate) fn read_number(mut self) -> Option<u64> {
        let value = self.read_varint()?;
        self.is_empty().then_some(value)
    }

    /// Reads a message to its end, and calls `read` with each field's tag and value. Returns the
    /// number of unknown tags.
    pub(crate) fn read_fields(
        mut self,
        mut read: impl FnMut(u32, FieldReader<'a>) -> Option<TagRecognition>,
    ) -> Option<usize> {
        let mut unknown = 0;
        while !self.is_empty() {
            let tag = u32::try_from(self.read_varint()?).ok()?;
            let length = self.read_length()?;
            let value = FieldReader::new(self.take(length)?);
            unknown += usize::from(read(tag, value)? == TagRecognition::Unknown);
        }
        Some(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode_message(fields: &[(u32, Vec<u8>)]) -> Vec<u8> {
        let mut out = Vec::new();
        fields.iter().for_each(|(tag, value)| append_field(&mut out, *tag, |out| out.extend_from_slice(value)));
        out
    }

    fn read(bytes: &[u8]) -> Option<Vec<(u32, Vec<u8>)>> {
        let mut fields = Vec::new();
        FieldReader::new(bytes).read_fields(|tag, value| {
            fields.push((tag, value.bytes.to_vec()));
            Some(TagRecognition::Known)
        })?;
        Some(fields)
    }

    proptest! {
        #[test]
        fn tagged_fields_round_trip(fields in prop::collection::vec((any::<u32>(), prop::collection::vec(any::<u8>(), 0..300)), 0..6)) {
            prop_assert_eq!(read(&encode_message(&fields)), Some(fields));
        }

        #[test]
        fn varints_round_trip(value in any::<u64>()) {
            let mut out = Vec::new();
            append_varint(&mut out, value);
            prop_assert_eq!(FieldReader::new(&out).read_number(), Some(value));
            out.push(0);
            prop_assert_eq!(FieldReader::new(&out).read_number(), None);
        }

        #[test]
        fn any_bytes_are_decoded_within_their_length(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let held: usize = read(&bytes).unwrap_or_default().iter().map(|(_, value)| value.len()).sum();
            prop_assert!(held <= bytes.len());
        }
    }

    #[test]
    fn a_message_truncated_inside_a_field_is_refused() {
        let fields = [(1, vec![7; 3]), (300, vec![]), (2, vec![9; 200])];
        let whole = encode_message(&fields);
        let ends: Vec<usize> = (0..=3).map(|count| encode_message(&fields[..count]).len()).collect();
        for cut in 0..=whole.len() {
            assert_eq!(read(&whole[..cut]).is_some(), ends.contains(&cut), "{cut}");
        }
    }

    #[test]
    fn unknown_tags_are_counted() {
        let bytes = encode_message(&[(1, vec![1]), (9, vec![1, 2]), (1, vec![]), (8, vec![])]);
        let known = |tag, _: FieldReader| Some(if tag == 1 { TagRecognition::Known } else { TagRecognition::Unknown });
        assert_eq!(FieldReader::new(&bytes).read_fields(known), Some(2));
    }

    #[test]
    fn default_values_are_not_encoded() {
        let mut out = Vec::new();
        append_nonzero_number(&mut out, 5, 0);
        assert!(out.is_empty());
        append_nonzero_number(&mut out, 5, 300);
        assert_eq!(out, [5, 2, 0xac, 2]);
    }
}
