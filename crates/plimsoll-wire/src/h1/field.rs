//! The grammar of a header line, in requests and responses: the ends of its name and value, and the
//! value of a length. Bytes are read eight at a time, since this is most of a response's cost.
//!
//! Not here: which fields matter, and their combined meaning.

use super::token::{TOKEN, list};

/// Where the value of a field and its line end.
pub(super) enum ValueEnd {
    /// The value ends before the first index, the line before the second.
    At(usize, usize),
    /// There is no line feed yet.
    NotYet,
    /// A NUL, or a carriage return without its line feed (which may be still to come).
    Bad,
}

/// Finds the end of the value that starts at `at`. Control characters other than NUL, CR and LF are
/// accepted ([RFC 9110, 5.5](https://www.rfc-editor.org/rfc/rfc9110#section-5.5) leaves that to the
/// recipient).
#[inline]
pub(super) fn value_end(bytes: &[u8], mut at: usize) -> ValueEnd {
    loop {
        at = next_control(bytes, at);
        match bytes.get(at..).unwrap_or_default() {
            [] => return ValueEnd::NotYet,
            [b'\n', ..] => return ValueEnd::At(at, at + 1),
            [b'\r', b'\n', ..] => return ValueEnd::At(at, at + 2),
            [b'\r' | 0, ..] => return ValueEnd::Bad,
            _ => at += 1,
        }
    }
}

/// Number of bytes at the start of `bytes` that form a token.
#[inline]
pub(super) fn token_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        // Nearly all names consist of letters and hyphens, which are checked eight at a time.
        while let Some(eight) = eight_at(bytes, at) {
            let seven_bits = eight & !HIGH;
            let lower = seven_bits | each(0x20);
            // The high bits mark bytes that are at least 'a', above 'z', or equal to '-'. No sum
            // overflows its byte.
            let from_a = lower + each(0x80 - b'a');
            let above_z = lower + each(0x80 - b'z' - 1);
            let hyphen = each(0x80) - (seven_bits ^ each(b'-'));
            let other = (!((from_a & !above_z) | hyphen) | eight) & HIGH;
            if other != 0 {
                at += lowest(other);
                break;
            }
            at += 8;
        }
        match bytes.get(at) {
            Some(&b) if TOKEN[usize::from(b)] => at += 1,
            _ => return at,
        }
    }
}

/// The index of the first byte below 0x20 (space) at or after `at`; `bytes.len()` if there is none.
#[inline]
fn next_control(bytes: &[u8], mut at: usize) -> usize {
    while let Some(eight) = eight_at(bytes, at) {
        // The high bits mark bytes below 0x20. A borrow can mark a wrong byte, but only above a
        // right one, and the lowest one is used.
        let below = eight.wrapping_sub(each(0x20)) & !eight & HIGH;
        if below != 0 {
            return at + lowest(below);
        }
        at += 8;
    }
    while at < bytes.len() && bytes[at] >= 0x20 {
        at += 1;
    }
    at
}

/// The high bit of each of the eight bytes of a word.
const HIGH: u64 = each(0x80);

/// A word of eight times this byte.
const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Eight bytes from `at` on as one number, the first byte lowest; `None` if fewer are left.
#[inline]
fn eight_at(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*eight))
}

/// Index of the byte that contains the lowest set bit.
#[inline]
fn lowest(bits: u64) -> usize {
    (bits.trailing_zeros() / 8) as usize
}

/// Whether the token `name` equals `lower`, ignoring case. Setting the bit for small letters maps
/// no other byte of a token to a letter or a hyphen.
#[inline]
pub(super) fn is_name<const N: usize>(name: &[u8], lower: &[u8; N]) -> bool {
    name.len() == N && (0..N).fold(0, |differ, at| differ | ((name[at] | 0x20) ^ lower[at])) == 0
}

/// Parses a `Content-Length`: one number, or the same number several times ("5, 5"). Intermediaries
/// write the latter for repeated fields ([RFC 9110,
/// 8.6](https://www.rfc-editor.org/rfc/rfc9110#section-8.6)).
pub(crate) fn content_length(value: &[u8]) -> Option<u64> {
    number(value).or_else(|| {
        let mut numbers = list(value).map(number);
        let first = numbers.next()??;
        numbers.all(|n| n == Some(first)).then_some(first)
    })
}

/// Parses a number from decimal digits only; `None` if it does not fit.
fn number(digits: &[u8]) -> Option<u64> {
    let mut sum = 0u64;
    for b in digits {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        sum = sum.checked_mul(10)?.checked_add(digit)?;
    }
    (!digits.is_empty()).then_some(sum)
}
