//! Parses header lines of requests and responses: finds the end of the name and of the value, and
//! parses lengths. Bytes are read eight at a time, because header lines cause most of the cost of
//! parsing a response.
//!
//! Not here: selecting the header fields that matter, and combining the meanings of several header
//! fields.

use super::token::{IS_TOKEN_BYTE, list_elements};

/// The result of searching for the end of a header field's value and the end of its line.
pub(super) enum ValueEnd {
    /// The header field's value ends before the first index, and its line ends before the second
    /// index.
    At(usize, usize),
    /// The header line's line feed has not arrived yet.
    NotYet,
    /// The value contains a NUL, or a carriage return that no line feed follows (the line feed may
    /// still arrive).
    InvalidByte,
}

/// Finds the end of the header field's value that starts at index `at`. Control characters other
/// than NUL, CR and LF are accepted ([RFC 9110,
/// 5.5](https://www.rfc-editor.org/rfc/rfc9110#section-5.5) leaves the decision to the recipient).
#[inline]
pub(super) fn value_end(bytes: &[u8], mut at: usize) -> ValueEnd {
    loop {
        at = next_control(bytes, at);
        match bytes.get(at..).unwrap_or_default() {
            [] => return ValueEnd::NotYet,
            [b'\n', ..] => return ValueEnd::At(at, at + 1),
            [b'\r', b'\n', ..] => return ValueEnd::At(at, at + 2),
            [b'\r' | 0, ..] => return ValueEnd::InvalidByte,
            _ => at += 1,
        }
    }
}

/// Returns the number of bytes at the start of `bytes` that form a token.
#[inline]
pub(super) fn token_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        // Nearly all names consist of letters and hyphens, which are checked eight at a time.
        while let Some(eight) = eight_bytes_at(bytes, at) {
            let seven_bits = eight & !HIGH_BITS;
            let lower = seven_bits | repeat_byte(0x20);
            // The high bit of each byte in `from_a`, `above_z` and `hyphen` marks an input byte at
            // least 'a', above 'z', or equal to '-', respectively. No addition overflows into the
            // next byte.
            let from_a = lower + repeat_byte(0x80 - b'a');
            let above_z = lower + repeat_byte(0x80 - b'z' - 1);
            let hyphen = repeat_byte(0x80) - (seven_bits ^ repeat_byte(b'-'));
            let other = (!((from_a & !above_z) | hyphen) | eight) & HIGH_BITS;
            if other != 0 {
                at += lowest_byte_index(other);
                break;
            }
            at += 8;
        }
        match bytes.get(at) {
            Some(&b) if IS_TOKEN_BYTE[usize::from(b)] => at += 1,
            _ => return at,
        }
    }
}

/// Returns the index of the first control character (below 0x20) at or after `at`; `bytes.len()` if
/// there is none.
#[inline]
fn next_control(bytes: &[u8], mut at: usize) -> usize {
    while let Some(eight) = eight_bytes_at(bytes, at) {
        // In `below`, the high bit of each byte marks that the input byte is below 0x20. The
        // subtraction's borrow can mark a wrong byte, but only after a correctly marked byte. Only
        // the first marked byte is used, so a wrong mark does no harm.
        let below = eight.wrapping_sub(repeat_byte(0x20)) & !eight & HIGH_BITS;
        if below != 0 {
            return at + lowest_byte_index(below);
        }
        at += 8;
    }
    while at < bytes.len() && bytes[at] >= 0x20 {
        at += 1;
    }
    at
}

/// A word in which the high bit of each of the eight bytes is set.
const HIGH_BITS: u64 = repeat_byte(0x80);

/// Returns a word whose eight bytes all equal `byte`.
const fn repeat_byte(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Returns the eight bytes from index `at` on as one little-endian number; `None` if fewer than
/// eight bytes are left.
#[inline]
fn eight_bytes_at(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*eight))
}

/// Returns the index of the byte that contains the lowest set bit.
#[inline]
fn lowest_byte_index(bits: u64) -> usize {
    (bits.trailing_zeros() / 8) as usize
}

/// Returns whether the token `name` equals `lower`, ignoring case. In each byte, the comparison
/// sets the bit 0x20, which turns an upper-case letter into a lower-case letter. Setting the bit
/// turns no other byte of a token into a letter or a hyphen.
#[inline]
pub(super) fn equals_ignoring_case<const N: usize>(name: &[u8], lower: &[u8; N]) -> bool {
    name.len() == N && (0..N).fold(0, |differ, at| differ | ((name[at] | 0x20) ^ lower[at])) == 0
}

/// Parses the value of `Content-Length`: one number, or one number repeated ("5, 5").
/// Intermediaries write a repeated number when they combine repeated `Content-Length` fields ([RFC
/// 9110, 8.6](https://www.rfc-editor.org/rfc/rfc9110#section-8.6)).
pub(crate) fn content_length(value: &[u8]) -> Option<u64> {
    parse_decimal(value).or_else(|| {
        let mut numbers = list_elements(value).map(parse_decimal);
        let first = numbers.next()??;
        numbers.all(|n| n == Some(first)).then_some(first)
    })
}

/// Parses a number that consists only of decimal digits; `None` if it does not fit into 64 bits.
fn parse_decimal(digits: &[u8]) -> Option<u64> {
    let mut sum = 0u64;
    for b in digits {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        sum = sum.checked_mul(10)?.checked_add(digit)?;
    }
    (!digits.is_empty()).then_some(sum)
}
