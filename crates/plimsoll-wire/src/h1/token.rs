//! Checks tokens, and splits lists, in HTTP/1.1 requests and responses.

/// For each byte value, whether it may occur in a token ([RFC 9110,
/// 5.6.2](https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2)).
pub(crate) const IS_TOKEN_BYTE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let b = byte as u8;
        table[byte] = b.is_ascii_alphanumeric()
            || matches!(
                b,
                b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
            );
        byte += 1;
    }
    table
};

/// Returns whether `bytes` is a token: one or several bytes, all of them permitted in a token.
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&b| IS_TOKEN_BYTE[usize::from(b)])
}

/// Returns `bytes` without the spaces and tabs around them (OWS, [RFC 9110,
/// 5.6.3](https://www.rfc-editor.org/rfc/rfc9110#section-5.6.3)).
pub(crate) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// Returns the trimmed elements of a comma-separated list, including empty elements ([RFC 9110,
/// 5.6.1](https://www.rfc-editor.org/rfc/rfc9110#section-5.6.1)).
pub(crate) fn list_elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&b| b == b',').map(trim)
}
