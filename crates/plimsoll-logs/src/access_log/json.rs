//! Parses JSON lines: extracts the values at a few paths in one pass and skips all other values.
//! The results are slices of the line, or of the caller's buffer if a text has escapes. Not here:
//! the paths of each log format ([`super::format`]).

use super::entry::{FieldMeaning, ParsedLogFields, TimestampMeaning};
use plimsoll_model::timestamp::TimestampFormat;
use plimsoll_model::units::{MS, SECOND};

/// The reason why a mapping of JSON fields is invalid. The text is the end of an error message that
/// begins with "--field".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FieldMappingError(String);

/// A path of names in a JSON line, and the meaning of the value at the path.
pub(super) type PathMeaning = (Vec<String>, FieldMeaning);

/// A tree of the paths whose values are extracted from a line, with one node for each name of a
/// path.
#[derive(Debug, Clone, Default)]
pub(super) struct PathNode {
    name: Vec<u8>,
    meaning: Option<FieldMeaning>,
    children: Vec<PathNode>,
}

impl PathNode {
    /// Builds the tree of the paths in `path_meanings`. If a path occurs twice, its first meaning
    /// applies.
    pub fn new(path_meanings: &[PathMeaning]) -> PathNode {
        let mut root = PathNode::default();
        for (path, place) in path_meanings {
            root.add(path, place);
            // Some logs write a whole path as one name with dots.
            if path.len() > 1 {
                root.add(&[path.join(".")], place);
            }
        }
        root
    }

    /// Adds a path, or replaces the meaning of an existing path.
    pub fn set_meaning(&mut self, path: &[String], place: FieldMeaning) {
        match path.split_first() {
            None => self.meaning = Some(place),
            Some((first, rest)) => self.find_or_add_child(first).set_meaning(rest, place),
        }
    }

    /// Returns whether one of the wanted values is a timestamp.
    pub fn has_time(&self) -> bool {
        self.meaning.as_ref().is_some_and(FieldMeaning::is_timestamp) || self.children.iter().any(PathNode::has_time)
    }

    /// Returns the meaning of the value with this top-level name.
    pub fn meaning_of_name(&self, name: &[u8]) -> Option<&FieldMeaning> {
        self.children.iter().find(|node| node.name == name)?.meaning.as_ref()
    }

    fn find_or_add_child(&mut self, name: &str) -> &mut PathNode {
        let at = self.children.iter().position(|node| node.name == name.as_bytes()).unwrap_or_else(|| {
            self.children.push(PathNode { name: name.as_bytes().to_vec(), ..PathNode::default() });
            self.children.len() - 1
        });
        &mut self.children[at]
    }

    fn add(&mut self, path: &[String], place: &FieldMeaning) {
        let Some((first, rest)) = path.split_first() else {
            self.meaning.get_or_insert_with(|| place.clone());
            return;
        };
        self.find_or_add_child(first).add(rest, place);
    }
}

/// Parses a mapping such as `path=.url,client=.ip`. `session` is the path of the value that
/// identifies sessions.
pub(super) fn parse_mapping(
    text: &str,
    session: Option<&str>,
) -> Result<(Vec<PathMeaning>, TimestampMeaning), FieldMappingError> {
    let error = |text: String| Err(FieldMappingError(text));
    let mut wanted = Vec::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let Some((name, path)) = pair.split_once('=') else {
            return error(format!("'{pair}' is not written as NAME=PATH, such as path=.url"));
        };
        let place = match name.trim() {
            "time" => FieldMeaning::Time(TimestampFormat::Auto),
            "start" => FieldMeaning::Start(TimestampFormat::Auto),
            "end" => FieldMeaning::End(TimestampFormat::Auto),
            "method" => FieldMeaning::Method,
            "path" => FieldMeaning::Target,
            "status" => FieldMeaning::Status,
            "bytes" => FieldMeaning::Bytes,
            "duration_s" => FieldMeaning::Duration(SECOND),
            "duration_ms" => FieldMeaning::Duration(MS),
            "duration_us" => FieldMeaning::Duration(1_000),
            "client" => FieldMeaning::Client,
            "user_agent" => FieldMeaning::UserAgent,
            field_name => {
                return error(format!(
                    "'{field_name}' is not a field of a request; choose time, start, end, method, path, status, bytes, \
                     duration_ms, duration_s, duration_us, client or user_agent"
                ));
            }
        };
        wanted.push((
            split_json_path(path.trim()).ok_or_else(|| {
                FieldMappingError(format!("'{path}' is not the path of a JSON value, such as .request.uri"))
            })?,
            place,
        ));
    }
    if !wanted
        .iter()
        .any(|(_, place)| matches!(place, FieldMeaning::Time(_) | FieldMeaning::Start(_) | FieldMeaning::End(_)))
    {
        return error(format!("'{mapping}' has no time: add time=, start= or end=", mapping = text));
    }
    if !wanted.iter().any(|(_, place)| *place == FieldMeaning::Target) {
        return error(format!("'{mapping}' has no path: add path=", mapping = text));
    }
    if let Some(path) = session {
        let keys = split_json_path(path)
            .ok_or_else(|| FieldMappingError(format!("'{path}' is not the path of a JSON value, such as .user")))?;
        wanted.push((keys, FieldMeaning::Session));
    }
    Ok((wanted, TimestampMeaning::End))
}

/// Splits a path such as `.a.b`, `a.b` or `."a.b".c` into its names. `None` if the path is invalid.
pub(super) fn split_json_path(path: &str) -> Option<Vec<String>> {
    let mut keys = Vec::new();
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    rest = rest.strip_prefix('.').unwrap_or(rest);
    while !rest.is_empty() {
        let (key, after) = match rest.strip_prefix('"') {
            Some(inner) => inner.split_once('"')?,
            None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
        };
        keys.push(key.to_owned());
        rest = match after.strip_prefix('.') {
            Some("") => return None,
            Some(next) => next,
            None if after.is_empty() => after,
            None => return None,
        };
    }
    (!keys.is_empty() && keys.iter().all(|key| !key.is_empty())).then_some(keys)
}

/// A wanted value of a line: its meaning, its byte range, and whether its text has escapes.
#[derive(Debug, Clone, Copy)]
struct FieldSpan<'n> {
    meaning: &'n FieldMeaning,
    from: usize,
    to: usize,
    escaped: bool,
}

/// The largest number of values that are extracted from one line; further values are ignored.
const EXTRACTED_VALUES_MAX: usize = 24;

/// Extracts the wanted values of a line. `None` if the line is not a complete JSON object. `buffer`
/// is a buffer for unescaped texts.
pub(super) fn read<'a>(root: &PathNode, line: &'a [u8], buffer: &'a mut Vec<u8>) -> Option<ParsedLogFields<'a>> {
    let mut found: [Option<FieldSpan>; EXTRACTED_VALUES_MAX] = [None; EXTRACTED_VALUES_MAX];
    let mut scan = JsonLineScanner { line, at: 0, found: &mut found, count: 0 };
    scan.parse_object(root)?;
    scan.skip_blanks();
    (scan.at == line.len()).then_some(())?;
    let escaped = found.iter().flatten().filter(|found| found.escaped);
    buffer.clear();
    let mut places = [(0, 0); EXTRACTED_VALUES_MAX];
    for (place, found) in places.iter_mut().zip(escaped) {
        let from = buffer.len();
        unescape_json(&line[found.from..found.to], buffer)?;
        *place = (from, buffer.len());
    }
    let buffer: &'a [u8] = buffer;
    let mut places = places.into_iter();
    let mut raw = ParsedLogFields::default();
    for found in found.iter().flatten() {
        let text = if found.escaped {
            let (from, to) = places.next()?;
            &buffer[from..to]
        } else {
            &line[found.from..found.to]
        };
        raw.parse_field(found.meaning, text)?;
    }
    Some(raw)
}

struct JsonLineScanner<'a, 'n, 'f> {
    line: &'a [u8],
    at: usize,
    found: &'f mut [Option<FieldSpan<'n>>; EXTRACTED_VALUES_MAX],
    count: usize,
}

impl<'n> JsonLineScanner<'_, 'n, '_> {
    fn peek_byte(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while matches!(self.peek_byte(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn expect_byte(&mut self, byte: u8) -> Option<()> {
        self.skip_blanks();
        (self.peek_byte()? == byte).then(|| self.at += 1)
    }

    /// Parses a string. Returns the range without the quotes, and whether the string has escapes.
    #[inline]
    fn parse_string(&mut self) -> Option<(usize, usize, bool)> {
        self.expect_byte(b'"')?;
        let from = self.at;
        let mut escaped = false;
        loop {
            self.at += memchr::memchr2(b'"', b'\\', self.line.get(self.at..)?)?;
            if self.line[self.at] == b'"' {
                self.at += 1;
                return Some((from, self.at - 1, escaped));
            }
            escaped = true;
            self.at += 2;
        }
    }

    fn parse_object(&mut self, node: &'n PathNode) -> Option<()> {
        self.expect_byte(b'{')?;
        self.skip_blanks();
        if self.peek_byte()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            let (from, to, _) = self.parse_string()?;
            let name = &self.line[from..to];
            let wanted = node.children.iter().find(|node| node.name == name);
            self.expect_byte(b':')?;
            self.skip_blanks();
            match wanted {
                Some(node) => self.parse_value(node)?,
                None => self.skip_value()?,
            }
            self.skip_blanks();
            match self.peek_byte()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    fn parse_value(&mut self, node: &'n PathNode) -> Option<()> {
        match self.peek_byte()? {
            // The depth of the recursion is bounded by the length of the wanted paths.
            b'{' if !node.children.is_empty() => self.parse_object(node),
            b'[' if node.meaning.is_some() => {
                // Only the first element of a list is used. Some loggers write a header field as a
                // list.
                let before = self.at;
                self.at += 1;
                self.skip_blanks();
                if matches!(self.peek_byte()?, b'"' | b'-' | b'0'..=b'9') {
                    self.store_scalar(node)?;
                }
                self.at = before;
                self.skip_value()
            }
            b'"' | b'-' | b'0'..=b'9' if node.meaning.is_some() => self.store_scalar(node),
            _ => self.skip_value(),
        }
    }

    fn store_scalar(&mut self, node: &'n PathNode) -> Option<()> {
        let (from, to, escaped) = if self.peek_byte()? == b'"' {
            self.parse_string()?
        } else {
            let from = self.at;
            self.skip_value()?;
            (from, self.at, false)
        };
        if let (Some(place), Some(slot)) = (&node.meaning, self.found.get_mut(self.count)) {
            *slot = Some(FieldSpan { meaning: place, from, to, escaped });
            self.count += 1;
        }
        Some(())
    }

    /// Skips a value of any kind.
    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.peek_byte()? {
                b'"' => _ = self.parse_string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' | b' ' | b'\t' | b'\r' if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                _ => {
                    let rest = &self.line[self.at..];
                    let length = rest
                        .iter()
                        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
                        .count();
                    (length > 0).then_some(())?;
                    self.at += length;
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

/// Unescapes a JSON string and appends the result to `out`. `None` if the string has an invalid
/// escape.
pub(super) fn unescape_json(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let code = *rest.get(at + 1)?;
        rest = &rest[at + 2..];
        match code {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'u' => {
                let mut unit = parse_hex_digits(rest)?;
                rest = &rest[4..];
                if (0xd800..0xdc00).contains(&unit)
                    && let Some(low) = rest.strip_prefix(b"\\u").and_then(parse_hex_digits)
                    && (0xdc00..0xe000).contains(&low)
                {
                    unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                    rest = &rest[6..];
                }
                let c = char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            // nginx writes `\xHH` in formats without JSON escaping.
            b'x' if rest.len() >= 2 => {
                let digits = std::str::from_utf8(&rest[..2]).ok()?;
                out.push(u8::from_str_radix(digits, 16).ok()?);
                rest = &rest[2..];
            }
            other => out.push(other),
        }
    }
    out.extend_from_slice(rest);
    Some(())
}

fn parse_hex_digits(text: &[u8]) -> Option<u32> {
    let digits = text.get(..4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_target(path: &str, line: &str) -> Option<String> {
        let root = PathNode::new(&[(split_json_path(path).expect(path), FieldMeaning::Target)]);
        let mut buffer = Vec::new();
        Some(String::from_utf8_lossy(read(&root, line.as_bytes(), &mut buffer)?.target).into_owned())
    }

    #[test]
    fn json_values_are_found_by_path() {
        for (path, line, expect) in [
            (".url", r#"{"url":"/a"}"#, Some("/a")),
            ("url", r#" { "x" : [1,{"url":"/no"},"]"], "url" : "/a" } "#, Some("/a")),
            (".request.uri", r#"{"request":{"host":"h","uri":"/a"},"uri":"/no"}"#, Some("/a")),
            (".request.uri", r#"{"request.uri":"/a"}"#, Some("/a")),
            (".request.uri", r#"{"request":"none"}"#, Some("")),
            (".h.ua", r#"{"h":{"ua":["x","y"]}}"#, Some("x")),
            (".h.ua", r#"{"h":{"ua":[]},"e":1.5e3}"#, Some("")),
            (".\"a.b\"", r#"{"a.b":"/c"}"#, Some("/c")),
            (".url", r#"{"url":"\/a?b=1\u0026c=\"\u00e9\ud83d\ude00"}"#, Some("/a?b=1&c=\"é😀")),
            (".url", r#"{"url":null,"b":true}"#, Some("")),
            (".url", r#"{"url":"/a""#, None),
            (".url", r#"{"url":"/a"} x"#, None),
            (".url", r#"{"url":"#, None),
            (".url", r#"["url"]"#, None),
            (".url", r#"{"x":"\"#, None),
            (".url", "", None),
        ] {
            assert_eq!(read_target(path, line).as_deref(), expect, "{path} {line}");
        }
        for path in ["", ".", "a..b", "a.", "\"a", "\"a\"b"] {
            assert_eq!(split_json_path(path), None, "{path}");
        }
    }

    #[test]
    fn log_mapping_errors_are_explained() {
        for (text, expect) in [
            ("path=.url", "has no time"),
            ("time=.ts", "has no path"),
            ("time=.ts,path", "not written as NAME=PATH"),
            ("time=.ts,pth=.url", "'pth' is not a field"),
            ("time=.ts,path=.a..b", "is not the path of a JSON value"),
        ] {
            let error = parse_mapping(text, None).expect_err(text).to_string();
            assert!(error.contains(expect), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_line_parses_without_a_panic(line in "[{}\\[\\]\":,\\\\a-cu0-9 ]{0,60}") {
            let root = PathNode::new(&[(vec!["a".into(), "b".into()], FieldMeaning::Target), (vec!["c".into()], FieldMeaning::Status)]);
            let _ = read(&root, line.as_bytes(), &mut Vec::new());
        }
    }
}
