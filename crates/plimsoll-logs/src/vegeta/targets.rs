//! Parses vegeta's target files. A target is `METHOD URL` followed by lines of header fields, or a
//! JSON object on one line. Each error states the number of its line in the file.
//!
//! Not here: the body files that targets name.

use super::base64::read_base64;
use serde_json::Value;
use std::io::{BufRead, Read};

/// The longest accepted line, bytes: 16 MiB.
const LINE_BYTES_MAX: u64 = 16 << 20;
/// The largest accepted number of header fields of a target. Typical servers accept a hundred
/// header fields.
const HEADERS_MAX: usize = 1_000;

/// One request of a target file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VegetaTarget {
    /// The HTTP method.
    pub method: String,
    /// The URL, with scheme `http` or `https`.
    pub url: String,
    /// The header fields: name and value. The case of names is preserved.
    pub headers: Vec<(String, String)>,
    /// The body of the request.
    pub body: TargetBody,
}

/// The body of a request in a target file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TargetBody {
    /// The target states no body. The caller decides about the body of the request.
    #[default]
    Unspecified,
    /// The path of a file with the body.
    File(String),
    /// The bytes of the body, which the target contains itself.
    Bytes(Vec<u8>),
}

/// The format of a target file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TargetFormat {
    /// The file is text. Each target is a line `METHOD URL`, then lines with header fields and the
    /// body file.
    #[default]
    Http,
    /// The file is JSON, one object on each line.
    Json,
}

/// An error in a target file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct TargetError {
    /// The number of the line, from 1.
    pub line: u64,
    /// The reason, as a phrase that follows "line N: ".
    pub why: &'static str,
}

/// Reads the targets of a file one by one.
#[derive(Debug)]
pub struct TargetReader<R> {
    from: R,
    format: TargetFormat,
    line: u64,
    /// A line that was read ahead and begins the next target.
    line_ahead: Option<String>,
}

/// Returns whether a line begins with a method in capital letters and a blank.
fn begins_with_method(line: &str) -> bool {
    line.split_once([' ', '\t'])
        .is_some_and(|(word, _)| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase()))
}

/// Returns whether `name` and `value` are valid in a header field.
pub fn is_valid_header_field(name: &str, value: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token) && !value.chars().any(|c| c.is_control() && c != '\t')
}

fn is_url(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        && !url.contains(char::is_control)
        // A blank is invalid in a host. A blank in a path is percent-encoded later.
        && !rest.is_some_and(|rest| rest.split(['/', '?']).next().unwrap_or_default().contains(char::is_whitespace))
}

impl<R: BufRead> TargetReader<R> {
    /// Creates a reader at the beginning of a file.
    pub fn new(from: R, format: TargetFormat) -> TargetReader<R> {
        TargetReader { from, format, line: 0, line_ahead: None }
    }

    /// Returns the next line of the file, trimmed; `None` at the end of the file.
    fn next_line(&mut self) -> Result<Option<String>, TargetError> {
        if let Some(line) = self.line_ahead.take() {
            return Ok(Some(line));
        }
        self.line += 1;
        let mut bytes = Vec::new();
        let read = (&mut self.from).take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes);
        match read {
            Err(_) => Err(self.error_at_line("the line of the targets file cannot be read")),
            Ok(0) => Ok(None),
            Ok(length) if length as u64 == LINE_BYTES_MAX => {
                Err(self.error_at_line("the line of the targets file is longer than 16 MiB"))
            }
            Ok(_) => match String::from_utf8(bytes) {
                Ok(line) => Ok(Some(line.trim().to_owned())),
                Err(_) => Err(self.error_at_line("the line of the targets file is not UTF-8")),
            },
        }
    }

    fn error_at_line(&self, why: &'static str) -> TargetError {
        TargetError { line: self.line, why }
    }

    /// Reads the next target; `None` at the end of the file.
    ///
    /// # Errors
    /// Returns an error if a line cannot be read, or is not part of a valid target.
    pub fn next_target(&mut self) -> Result<Option<VegetaTarget>, TargetError> {
        loop {
            let Some(line) = self.next_line()? else { return Ok(None) };
            match self.format {
                TargetFormat::Http if line.is_empty() || line.starts_with('#') => {}
                TargetFormat::Json if line.is_empty() => {}
                TargetFormat::Http => return self.read_http_target(&line).map(Some),
                TargetFormat::Json => return parse_json_target(&line).map(Some).map_err(|why| self.error_at_line(why)),
            }
        }
    }

    fn read_http_target(&mut self, first: &str) -> Result<VegetaTarget, TargetError> {
        let Some((method, url)) = first.split_once(' ') else {
            return Err(self.error_at_line("a target must be written as METHOD URL, such as GET http://HOST/"));
        };
        if !begins_with_method(first) {
            return Err(self.error_at_line("the method of the target is not in capital letters"));
        }
        let url = url.trim();
        if !is_url(url) {
            return Err(self.error_at_line("the URL of the target is not valid: write http://HOST:PORT/PATH"));
        }
        let mut target = VegetaTarget { method: method.to_owned(), url: url.to_owned(), ..VegetaTarget::default() };
        while let Some(line) = self.next_line()? {
            if line.is_empty() {
                break;
            }
            if begins_with_method(&line) && target.headers.is_empty() {
                self.line_ahead = Some(line);
                break;
            }
            if line.starts_with('#') {
                continue;
            }
            if let Some(path) = line.strip_prefix('@') {
                target.body = TargetBody::File(path.to_owned());
                break;
            }
            let field = line.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
            match field {
                Some(_) if target.headers.len() == HEADERS_MAX => {
                    return Err(self.error_at_line("a target can have at most 1000 header fields"));
                }
                Some((name, value)) if is_valid_header_field(name, value) && !value.is_empty() => {
                    target.headers.push((name.to_owned(), value.to_owned()));
                }
                _ => return Err(self.error_at_line("a header field of a target must be written as Name: value")),
            }
        }
        Ok(target)
    }
}

fn parse_json_target(line: &str) -> Result<VegetaTarget, &'static str> {
    let Ok(Value::Object(object)) = serde_json::from_str(line) else {
        return Err("the line with the target is not a JSON object");
    };
    let mut target = VegetaTarget::default();
    for (key, value) in object {
        match (key.as_str(), value) {
            ("method", Value::String(method)) => target.method = method,
            ("url", Value::String(url)) => target.url = url,
            ("body", Value::Null) | ("header", Value::Null) => {}
            ("body", Value::String(body)) => {
                target.body = TargetBody::Bytes(
                    read_base64(body.as_bytes()).ok_or("the body of the target is not valid base64")?,
                );
            }
            ("header", Value::Object(fields)) => {
                for (name, values) in fields {
                    let Value::Array(values) = values else {
                        return Err("the values of a header field of the target are not a list");
                    };
                    for value in values {
                        let Value::String(value) = value else {
                            return Err("the value of a header field of the target is not a text");
                        };
                        if !is_valid_header_field(&name, &value) {
                            return Err("a header field of the target has characters that are not allowed");
                        }
                        target.headers.push((name.clone(), value));
                    }
                }
            }
            _ => return Err("the target has keys other than method, url, body and header, or values of a wrong type"),
        }
    }
    match () {
        () if target.method.is_empty() || !target.method.bytes().all(|byte| byte.is_ascii_uppercase()) => {
            Err("the method of the target is missing, or not in capital letters")
        }
        () if !is_url(&target.url) => Err("the URL of the target is not valid: write http://HOST:PORT/PATH"),
        () => Ok(target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse_targets(text: &str, format: TargetFormat) -> Result<Vec<VegetaTarget>, TargetError> {
        let mut reader = TargetReader::new(text.as_bytes(), format);
        std::iter::from_fn(|| reader.next_target().transpose()).collect()
    }

    fn expected_target(method: &str, url: &str, headers: &[(&str, &str)], body: TargetBody) -> VegetaTarget {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        VegetaTarget { method: method.into(), url: url.into(), headers, body }
    }

    #[test]
    fn vegeta_targets_are_parsed() {
        use TargetBody::{Bytes, File, Unspecified};
        let text = "# first\n\nPOST http://h/things\nContent-Type: a/b\nx-y: 1:2\n# between\n@/path/body.json\nGET http://h/a\nGET http://h/b\nA: b\n\nDELETE http://h/c";
        let expect = [
            expected_target(
                "POST",
                "http://h/things",
                &[("Content-Type", "a/b"), ("x-y", "1:2")],
                File("/path/body.json".into()),
            ),
            expected_target("GET", "http://h/a", &[], Unspecified),
            expected_target("GET", "http://h/b", &[("A", "b")], Unspecified),
            expected_target("DELETE", "http://h/c", &[], Unspecified),
        ];
        assert_eq!(parse_targets(text, TargetFormat::Http).expect("targets"), expect);
        let text = "{\"method\":\"POST\",\"url\":\"http://h/x\",\"header\":{\"A\":[\"b\",\"c\"]},\"body\":\"eyJhIjoxfQ==\"}\n\n{\"method\":\"GET\",\"url\":\"https://h\"}\n";
        let expect = [
            expected_target("POST", "http://h/x", &[("A", "b"), ("A", "c")], Bytes(b"{\"a\":1}".to_vec())),
            expected_target("GET", "https://h", &[], Unspecified),
        ];
        assert_eq!(parse_targets(text, TargetFormat::Json).expect("targets"), expect);
        let fixture = include_str!("../../tests/vegeta/targets.http");
        assert_eq!(parse_targets(fixture, TargetFormat::Http).expect("targets").len(), 3);
    }

    #[test]
    fn a_target_has_a_maximum_of_header_fields() {
        let text = |fields: usize| format!("GET http://h/\n{}", "A: b\n".repeat(fields));
        assert_eq!(parse_targets(&text(1_000), TargetFormat::Http).expect("targets")[0].headers.len(), 1_000);
        let error = parse_targets(&text(1_001), TargetFormat::Http).expect_err("too many").to_string();
        assert!(error.contains("line 1002: a target can have at most 1000 header fields"), "{error}");
    }

    #[test]
    fn target_errors_name_their_line() {
        use TargetFormat::{Http, Json};
        for (text, format, expect) in [
            ("GET http://h/\n\nget http://h/\n", Http, "line 3: the method"),
            ("GET\n", Http, "line 1: a target must"),
            ("GET h:80/\n", Http, "line 1: the URL"),
            ("GET http://h/\nA: b\nno field\n", Http, "line 3: a header field"),
            ("GET http://h/\nA:\n", Http, "line 2: a header field"),
            ("GET http://h/\na b: c\n", Http, "line 2: a header field"),
            ("GET http://h/\nA: b\u{1}c\n", Http, "line 2: a header field"),
            (
                "{\"method\":\"GET\",\"url\":\"http://h/\",\"header\":{\"A\":[\"b\\r\\nC: d\"]}}",
                Json,
                "line 1: a header field of the target has characters",
            ),
            ("{}\n", Json, "line 1: the method"),
            (
                "{\"method\":\"GET\",\"url\":\"http://h/\"}\n[]",
                Json,
                "line 2: the line with the target is not a JSON object",
            ),
            ("{\"method\":\"GET\",\"url\":\"http://h/\",\"rate\":5}", Json, "line 1: the target has keys other"),
            ("{\"method\":\"GET\",\"url\":\"http://h/\",\"body\":\"%\"}", Json, "line 1: the body"),
        ] {
            let error = parse_targets(text, format).expect_err("refused").to_string();
            assert!(error.starts_with(expect), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_input_is_handled_without_a_panic(text in "(GET |POST |http://h|@|#|: |\\{|\"method\":|\n|\\PC){0,40}", json in any::<bool>()) {
            let _ = parse_targets(&text, if json { TargetFormat::Json } else { TargetFormat::Http });
        }
    }
}
