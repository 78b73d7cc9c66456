//! Encodes and decodes base64, which JSON and CSV results use for bytes.

/// Appends `bytes` to `out` as base64 with padding.
pub(super) fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    const BASE64_DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for three in bytes.chunks(3) {
        let number =
            three.iter().chain([0, 0].iter()).take(3).fold(0u32, |number, byte| number << 8 | u32::from(*byte));
        for digit in 0..4 {
            let value = (number >> (18 - 6 * digit)) & 63;
            out.push(if digit <= three.len() { BASE64_DIGITS[value as usize] } else { b'=' });
        }
    }
}

/// Decodes base64 with padding; `None` if the text is invalid.
pub(super) fn read_base64(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.iter().position(|byte| *byte == b'=').unwrap_or(text.len());
    let padding = &text[digits..];
    if !text.len().is_multiple_of(4) || padding.len() > 2 || padding.iter().any(|byte| *byte != b'=') {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in text[..digits].chunks(4) {
        let mut number = 0u32;
        for digit in four {
            let value = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'a'..=b'z' => digit - b'a' + 26,
                b'0'..=b'9' => digit - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            number = number << 6 | u32::from(value);
        }
        number <<= 6 * (4 - four.len());
        bytes.extend_from_slice(&number.to_be_bytes()[1..four.len()]);
    }
    Some(bytes)
}
