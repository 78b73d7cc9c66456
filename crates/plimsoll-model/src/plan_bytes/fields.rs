//! The encoding of all parts of a plan: tagged fields, without default values and without unknown
//! tags.

use crate::tagged_fields::{FieldReader, TagRecognition, append_field, append_varint};

/// The maximum number of items of a list in a plan, such as routes, headers or addresses. Lists of
/// real plans are far shorter.
pub(super) const ITEMS_MAX: usize = 1 << 16;

/// Appends a number as a field, even 0, since a plan has no default values.
pub(super) fn append_number(out: &mut Vec<u8>, tag: u32, value: u64) {
    append_field(out, tag, |out| append_varint(out, value));
}

pub(super) fn append_bytes(out: &mut Vec<u8>, tag: u32, value: &[u8]) {
    append_field(out, tag, |out| out.extend_from_slice(value));
}

/// Reads a message, and calls `each` with the tag and value of every field. `None` means that
/// `each` refuses a field, or that the bytes are damaged.
pub(super) fn for_each_field<'a>(
    message: FieldReader<'a>,
    mut each: impl FnMut(u32, FieldReader<'a>) -> Option<()>,
) -> Option<()> {
    message.read_fields(|tag, value| each(tag, value).map(|()| TagRecognition::Known)).map(|_| ())
}

/// Stores the value of a field that may occur only once; `None` means that the field occurred
/// before.
pub(super) fn store_once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

pub(super) fn push<T>(list: &mut Vec<T>, value: T) -> Option<()> {
    (list.len() < ITEMS_MAX).then(|| list.push(value))
}

pub(super) fn read_text(value: FieldReader) -> Option<String> {
    std::str::from_utf8(value.bytes).ok().map(str::to_owned)
}

pub(super) fn read_flag(value: FieldReader) -> Option<bool> {
    match value.read_number()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

pub(super) fn read_u32(value: FieldReader) -> Option<u32> {
    value.read_number()?.try_into().ok()
}

pub(super) fn read_port(value: FieldReader) -> Option<u16> {
    value.read_number()?.try_into().ok()
}

pub(super) fn read_f64(value: FieldReader) -> Option<f64> {
    Some(f64::from_le_bytes(value.bytes.try_into().ok()?))
}

/// Appends a field with a name and a value.
pub(super) fn append_pair(out: &mut Vec<u8>, tag: u32, name: &str, value: &str) {
    append_field(out, tag, |out| {
        append_bytes(out, 1, name.as_bytes());
        append_bytes(out, 2, value.as_bytes());
    });
}

pub(super) fn read_pair(message: FieldReader) -> Option<(String, String)> {
    let (mut name, mut content) = (None, None);
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut name, read_text(value)?),
        2 => store_once(&mut content, read_text(value)?),
        _ => None,
    })?;
    Some((name?, content?))
}

/// Reads consecutive numbers.
pub(super) fn read_numbers<T>(mut value: FieldReader, mut each: impl FnMut(u64) -> Option<T>) -> Option<Vec<T>> {
    let mut numbers = Vec::new();
    while !value.bytes.is_empty() {
        numbers.push(each(value.read_varint()?)?);
    }
    Some(numbers)
}

/// Appends ascending times, ns; each time is stored as its difference from the previous time.
pub(super) fn append_times(out: &mut Vec<u8>, moments_ns: &[u64]) {
    let mut before_ns = 0;
    for at_ns in moments_ns {
        append_varint(out, at_ns - std::mem::replace(&mut before_ns, *at_ns));
    }
}

pub(super) fn read_times(value: FieldReader) -> Option<Vec<u64>> {
    let mut at_ns = 0u64;
    read_numbers(value, |step_ns| {
        at_ns = at_ns.checked_add(step_ns)?;
        Some(at_ns)
    })
}
