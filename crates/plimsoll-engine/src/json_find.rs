//! Finds the value at a path in JSON bytes without parsing the whole document into memory. Values
//! outside the path are skipped, and no memory is allocated. Documents are untrusted: a search that
//! meets an incomplete, too deep or invalid part of a document finds no value.
//!
//! Not here: the syntax of paths (`plimsoll_model::json_path`), and the use of values.

use plimsoll_model::expect::JsonExpectation;
use plimsoll_model::json_path::{JsonPath, JsonSelector, JsonStep};

/// The maximum nesting depth of lists and objects. A deeper document counts as invalid.
const DEPTH_MAX: u32 = 128;

/// Returns the bytes of the first value at the path. A string includes its quotation marks.
pub fn find<'a>(document: &'a [u8], path: &JsonPath) -> Option<&'a [u8]> {
    let mut reader = JsonWalker { bytes: document, at: 0, depth: 0 };
    reader.find(path.steps()).ok().flatten()
}

/// Appends a JSON value as text to `out`. A string is written without quotation marks and with
/// decoded escapes; any other value is copied. The escape of an unpaired surrogate is omitted.
pub fn append_value_as_text(value: &[u8], out: &mut Vec<u8>) {
    let Some(inside) = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) else {
        out.extend_from_slice(value);
        return;
    };
    let mut rest = inside;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let (char, length) = decode_escape_sequence(&rest[at..]);
        if let Some(char) = char {
            out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        }
        rest = rest.get(at + length..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}

/// Decodes an escape sequence in a JSON string. Returns the decoded character, and the length of
/// the escape sequence in bytes.
fn decode_escape_sequence(text: &[u8]) -> (Option<char>, usize) {
    let unit = |at: usize| -> Option<u32> {
        let digits = text.get(at..at + 4)?;
        digits.iter().try_fold(0, |sum, digit| Some(sum * 16 + char::from(*digit).to_digit(16)?))
    };
    match text.get(1) {
        Some(b'b') => (Some('\u{8}'), 2),
        Some(b'f') => (Some('\u{c}'), 2),
        Some(b'n') => (Some('\n'), 2),
        Some(b'r') => (Some('\r'), 2),
        Some(b't') => (Some('\t'), 2),
        Some(b'u') => match unit(2) {
            Some(high @ 0xd800..0xdc00) if text.get(6..8) == Some(b"\\u") => match unit(8) {
                Some(low @ 0xdc00..0xe000) => (char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)), 12),
                _ => (None, 6),
            },
            Some(unit) => (char::from_u32(unit), 6),
            None => (None, 2),
        },
        Some(other) if other.is_ascii() => (Some(char::from(*other)), 2),
        _ => (None, 1),
    }
}

/// Returns whether a JSON value meets an expectation. `scratch` is a reused buffer.
pub fn meets_expectation(value: &[u8], expected: &JsonExpectation, scratch: &mut Vec<u8>) -> bool {
    match expected {
        JsonExpectation::Null => value == b"null",
        JsonExpectation::Flag(flag) => value == if *flag { &b"true"[..] } else { &b"false"[..] },
        JsonExpectation::Number(number) => {
            if value == number.as_bytes() {
                return true;
            }
            // Numbers are compared by value, because one number can be written in several ways.
            let read = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<f64>().ok();
            value.first().is_some_and(|first| matches!(first, b'-' | b'0'..=b'9'))
                && read(value).is_some_and(|value| read(number.as_bytes()) == Some(value))
        }
        JsonExpectation::Text(text) => {
            scratch.clear();
            append_value_as_text(value, scratch);
            value.first() == Some(&b'"') && scratch == text.as_bytes()
        }
    }
}

/// The error for bytes that are incomplete, too deeply nested or invalid JSON.
struct NotJson;

struct JsonWalker<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
}

impl<'a> JsonWalker<'a> {
    /// Follows the path `steps` from the current value, and returns the first value at the end of
    /// the path. If no value matches the path, the reading position moves past the current value.
    fn find(&mut self, steps: &[JsonStep]) -> Result<Option<&'a [u8]>, NotJson> {
        let Some((step, later)) = steps.split_first() else {
            self.peek_nonblank()?;
            let from = self.at;
            self.skip()?;
            return Ok(Some(&self.bytes[from..self.at]));
        };
        let is_list = match self.peek_nonblank()? {
            b'{' => false,
            b'[' => true,
            _ => {
                self.skip()?;
                return Ok(None);
            }
        };
        let place = match step.selector {
            // An index that counts from the end needs the length of the list.
            JsonSelector::At(place) if is_list && place < 0 => self.count_list_elements()?.checked_add_signed(place),
            JsonSelector::At(place) if is_list => u64::try_from(place).ok(),
            _ => None,
        };
        let closing = if is_list { b']' } else { b'}' };
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(NotJson);
        }
        self.skip_byte();
        let mut number = 0;
        while self.peek_nonblank()? != closing {
            if number > 0 {
                self.expect_byte(b',')?;
            }
            let key = if is_list { None } else { Some(self.read_key()?) };
            let is_meant = match &step.selector {
                JsonSelector::Any => true,
                JsonSelector::Key(name) => key.is_some_and(|key| key_equals_name(key, name)),
                JsonSelector::At(_) => is_list && place == Some(number),
            };
            let from = self.at;
            if is_meant && let Some(found) = self.find(later)? {
                return Ok(Some(found));
            }
            if step.deep {
                // Search the same value again, because this step of the path may also match at a
                // greater depth.
                self.at = from;
                if let Some(found) = self.find(steps)? {
                    return Ok(Some(found));
                }
            } else if !is_meant {
                self.skip()?;
            }
            self.skip_blanks();
            number += 1;
        }
        self.skip_byte();
        self.depth -= 1;
        Ok(None)
    }

    /// Returns the number of elements of the current list. The reading position does not change.
    fn count_list_elements(&mut self) -> Result<u64, NotJson> {
        let from = self.at;
        self.skip_byte();
        let mut count = 0;
        while self.peek_nonblank()? != b']' {
            if count > 0 {
                self.expect_byte(b',')?;
            }
            self.skip()?;
            self.skip_blanks();
            count += 1;
        }
        self.at = from;
        Ok(count)
    }

    /// Skips the current JSON value. Inside the value only strings and brackets are parsed.
    fn skip(&mut self) -> Result<(), NotJson> {
        let mut open = 0u32;
        loop {
            match self.peek_nonblank()? {
                b'"' => {
                    self.read_string()?;
                }
                b'{' | b'[' => {
                    open += 1;
                    self.at += 1;
                }
                b'}' | b']' if open > 0 => {
                    open -= 1;
                    self.at += 1;
                }
                b',' | b':' if open > 0 => self.at += 1,
                b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                    let rest = &self.bytes[self.at..];
                    let is_end = |byte: &u8| matches!(byte, b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n');
                    self.at += rest.iter().position(is_end).unwrap_or(rest.len());
                }
                _ => return Err(NotJson),
            }
            if open == 0 {
                return Ok(());
            }
        }
    }

    /// Reads the current string and returns its bytes without the quotation marks.
    fn read_string(&mut self) -> Result<&'a [u8], NotJson> {
        let from = self.at + 1;
        let mut at = from;
        loop {
            let rest = self.bytes.get(at..).ok_or(NotJson)?;
            at += memchr::memchr2(b'"', b'\\', rest).ok_or(NotJson)?;
            if self.bytes[at] == b'"' {
                self.at = at + 1;
                return Ok(&self.bytes[from..at]);
            }
            at += 2;
        }
    }

    /// Reads a key and its colon, and returns the key. After the call the reading position is at
    /// the key's value.
    fn read_key(&mut self) -> Result<&'a [u8], NotJson> {
        if self.peek_nonblank()? != b'"' {
            return Err(NotJson);
        }
        let key = self.read_string()?;
        self.skip_blanks();
        self.expect_byte(b':')?;
        Ok(key)
    }

    /// Reads `byte` and the white space after it. A byte other than `byte` is an error.
    fn expect_byte(&mut self, byte: u8) -> Result<(), NotJson> {
        if self.peek_nonblank()? != byte {
            return Err(NotJson);
        }
        self.skip_byte();
        Ok(())
    }

    /// Skips one byte and the white space after it.
    fn skip_byte(&mut self) {
        self.at += 1;
        self.skip_blanks();
    }

    fn skip_blanks(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).unwrap_or(rest.len());
    }

    /// Returns the next byte that is not white space, without reading it.
    fn peek_nonblank(&mut self) -> Result<u8, NotJson> {
        self.skip_blanks();
        self.bytes.get(self.at).copied().ok_or(NotJson)
    }
}

/// Returns whether a key in the document, which may contain escapes, equals `name`.
fn key_equals_name(key: &[u8], name: &str) -> bool {
    if !key.contains(&b'\\') {
        return key == name.as_bytes();
    }
    let (mut rest, mut name) = (key, name.as_bytes());
    while let [first, after @ ..] = rest {
        let mut utf8 = [0; 4];
        let (part, length) = match first {
            b'\\' => match decode_escape_sequence(rest) {
                (Some(char), length) => (char.encode_utf8(&mut utf8).as_bytes(), length),
                (None, _) => return false,
            },
            _ => (std::slice::from_ref(first), rest.len() - after.len()),
        };
        let Some(left) = name.strip_prefix(part) else { return false };
        (rest, name) = (rest.get(length..).unwrap_or_default(), left);
    }
    name.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE_JSON_DOCUMENT: &str = r#" {"a": {"b c": [1, 2.50, {"id": "x\n\"y\u00e9\ud83d\ude00"}], "t": true}, "n": null,
        "it\u0065ms": [{"id": 7}, {"id": 8, "deep": {"id": [9]}}, []], "e": {}, "s": "[{,:\\"} "#;

    fn find_text(path: &str, document: &str) -> Option<String> {
        let path = JsonPath::parse(path).expect(path);
        find(document.as_bytes(), &path).map(|value| String::from_utf8(value.to_vec()).expect("text"))
    }

    #[test]
    fn the_first_value_of_a_path_is_found() {
        for (path, expect) in [
            ("$.a['b c'][1]", Some("2.50")),
            ("$.a['b c'][-1].id", Some("\"x\\n\\\"y\\u00e9\\ud83d\\ude00\"")),
            ("$.a['b c'][-4]", None),
            ("$.a.t", Some("true")),
            ("$.n", Some("null")),
            ("$.items[0].id", Some("7")),
            ("$.items[*].deep.id[0]", Some("9")),
            ("$.items[2]", Some("[]")),
            ("$.items[3]", None),
            ("$..deep", Some("{\"id\": [9]}")),
            ("$..id[0]", Some("9")),
            ("$.items..id", Some("7")),
            ("$.*.t", Some("true")),
            ("$.e.x", None),
            ("$.e[0]", None),
            ("$.s", Some("\"[{,:\\\\\"")),
            ("$.n.x", None),
        ] {
            assert_eq!(find_text(path, SAMPLE_JSON_DOCUMENT).as_deref(), expect, "{path}");
        }
        assert_eq!(find_text("$", " 5 ").as_deref(), Some("5"));
        for broken in
            ["", " ", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{a:1}", "[1 2]", "\"a", "hello", "{\"x\":1,,\"a\":2}", "}"]
        {
            let path = if broken.starts_with('[') { "$[1]" } else { "$.a" };
            assert!(find_text(path, broken).is_none_or(|value| value == "1"), "{broken}");
        }
        let nested = "[".repeat(100_000);
        assert_eq!(find_text("$..x", &nested), None);
    }

    #[test]
    fn json_values_are_compared_by_meaning() {
        let text = |text: &str| JsonExpectation::Text(text.into());
        let number = |text: &str| JsonExpectation::Number(text.into());
        for (value, expected, is) in [
            ("true", JsonExpectation::Flag(true), true),
            ("true", JsonExpectation::Flag(false), false),
            ("\"true\"", JsonExpectation::Flag(true), false),
            ("true", text("true"), false),
            ("null", JsonExpectation::Null, true),
            ("2.50", number("2.5"), true),
            ("25e-1", number("2.5"), true),
            ("2.6", number("2.5"), false),
            ("\"2.5\"", number("2.5"), false),
            ("\"x\\n\\\"y\\u00e9\\ud83d\\ude00\\/\"", text("x\n\"y\u{e9}\u{1f600}/"), true),
            ("\"\\ud83dx\"", text("x"), true),
            ("\"a\"", text("b"), false),
        ] {
            assert_eq!(meets_expectation(value.as_bytes(), &expected, &mut Vec::new()), is, "{value} {expected:?}");
        }
    }

    #[test]
    fn any_json_bytes_are_searched_without_a_panic() {
        let paths =
            ["$.a", "$..a", "$[-1]", "$..[0]", "$.*", "$.a[*].b"].map(|path| JsonPath::parse(path).expect(path));
        let mut rng = plimsoll_model::rng::Rng::new(11);
        let alphabet = b"{}[]\",:\\ua0tn1- \xff";
        for _ in 0..20_000 {
            let length = rng.uniform_below(40);
            let bytes: Vec<u8> =
                (0..length).map(|_| alphabet[rng.uniform_below(alphabet.len() as u64) as usize]).collect();
            for path in &paths {
                if let Some(value) = find(&bytes, path) {
                    append_value_as_text(value, &mut Vec::new());
                }
            }
        }
    }
}
