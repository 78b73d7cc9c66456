//! Converts logged text back to valid requests. Servers escape bytes in logs as `\x22`, and also
//! log invalid requests. Not here: selecting the requests.

use std::borrow::Cow;
use std::fmt::Write;

/// The longest accepted path and query, bytes; a longer request is skipped.
const TARGET_BYTES_MAX: usize = 64 << 10;

/// Returns the HTTP method of a logged request. `None` if the text is not a method, or is
/// `CONNECT`, which opens a tunnel.
pub(crate) fn sendable_method(logged: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(logged).ok()?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if text.is_empty() || text.len() > 32 || !text.chars().all(is_word) {
        return None;
    }
    // Methods in lower case, as in some logs, are converted to capitals, because servers reject
    // methods in lower case.
    let method =
        if text.chars().any(|c| c.is_ascii_uppercase()) { text.into() } else { text.to_ascii_uppercase().into() };
    (method != "CONNECT").then_some(method)
}

/// Appends the logged path and query, percent-encoded where needed. Returns false if the text has
/// no path or is too long.
pub(crate) fn append_encoded_target(logged: &[u8], out: &mut String) -> bool {
    let logged = memchr::memchr(b'#', logged).map_or(logged, |at| &logged[..at]);
    if logged.len() > TARGET_BYTES_MAX || !(logged.starts_with(b"/") || logged == b"*") {
        return false;
    }
    let mut rest = logged;
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            (b'\\', [b'x', high, low, after @ ..]) => match (parse_hex_digit(*high), parse_hex_digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, after),
                _ => (*first, &rest[1..]),
            },
            (b'\\', [escaped @ (b'"' | b'\\'), after @ ..]) => (*escaped, after),
            (first, after) => (*first, after),
        };
        rest = after;
        match byte {
            byte if byte.is_ascii_graphic() => out.push(char::from(byte)),
            // Writing to a string cannot fail.
            byte => drop(write!(out, "%{byte:02X}")),
        }
    }
    true
}

fn parse_hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logged_paths_become_sendable_paths() {
        for (logged, expect) in [
            ("/items?page=2&q=a%20b", Some("/items?page=2&q=a%20b")),
            ("/a b", Some("/a%20b")),
            ("/\\x22quoted\\x22", Some("/\"quoted\"")),
            ("/\\xC3\\xA4?q=ä", Some("/%C3%A4?q=%C3%A4")),
            ("/\\\"a\\\\b", Some("/\"a\\b")),
            ("/\\x4", Some("/\\x4")),
            ("/\\xzz", Some("/\\xzz")),
            ("/a\\", Some("/a\\")),
            ("/a#top", Some("/a")),
            ("/a\t\x00", Some("/a%09%00")),
            ("*", Some("*")),
            ("", None),
            ("-", None),
            ("a/b", None),
            ("http://h/a", None),
        ] {
            let mut out = String::new();
            let got = append_encoded_target(logged.as_bytes(), &mut out).then_some(out.as_str());
            assert_eq!(got, expect, "{logged:?}");
        }
        assert!(!append_encoded_target(&[b'/'; TARGET_BYTES_MAX + 1], &mut String::new()));
    }

    #[test]
    fn sendable_methods_are_recognised() {
        for (logged, expect) in [
            ("GET", Some("GET")),
            ("get", Some("GET")),
            ("Get", Some("Get")),
            ("M-SEARCH", Some("M-SEARCH")),
            ("CONNECT", None),
            ("connect", None),
            ("", None),
            ("\\x16\\x03", None),
            ("G T", None),
        ] {
            assert_eq!(sendable_method(logged.as_bytes()).as_deref(), expect, "{logged}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_accepted_request_can_be_sent(logged in proptest::collection::vec(proptest::num::u8::ANY, 0..60)) {
            let mut out = String::new();
            if append_encoded_target(&logged, &mut out) {
                proptest::prop_assert!(!out.is_empty() && out.bytes().all(|byte| byte.is_ascii_graphic()));
            }
            sendable_method(&logged);
        }
    }
}
