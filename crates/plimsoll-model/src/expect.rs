//! Expectations of a response beyond its status, and values that are captured from a response for
//! later requests.
//!
//! A response with a successful status counts as failed if the response misses an expectation or
//! lacks a value to capture ([`RequestFailure::Expectation`], [`RequestFailure::Capture`]). Not
//! here: statuses ([`crate::traffic`]), and the search through a response (the engine).
//!
//! [`RequestFailure::Expectation`]: crate::RequestFailure::Expectation
//!
//! [`RequestFailure::Capture`]: crate::RequestFailure::Capture

use crate::json_path::JsonPath;

/// Number of bytes at the beginning of a response's content in which expectations and captures
/// search. Later bytes are ignored.
pub const CONTENT_BYTES_MAX: usize = 4 << 20;

/// Expectations of a response beyond its status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expectations {
    /// The longest response time, from the intended start of the request, ns.
    pub response_time_ns_max: Option<u64>,
    /// Expectations of header fields, by field name.
    pub headers: Vec<(String, TextExpectation)>,
    /// Expectations of values in JSON content, by path.
    pub json: Vec<(JsonPath, JsonExpectation)>,
    /// The expectation of the whole content.
    pub body: Option<TextExpectation>,
}

/// The expectation of a text in a response, such as a header field or the whole content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextExpectation {
    /// The checked text must contain the given text.
    Contains(String),
    /// The regular expression must match somewhere in the checked text.
    Matches(String),
}

/// The expectation of a JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonExpectation {
    /// The value must be `null`.
    Null,
    /// The value must be this Boolean (`true` or `false`).
    Flag(bool),
    /// The value must be this number, as written in the document.
    Number(String),
    /// The value must be this text, without escapes.
    Text(String),
}

/// A value captured from a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseCapture {
    /// The name of the capture in templates.
    pub name: String,
    /// Where the value is found in the response.
    pub from: CaptureSource,
    /// The value to use if the response lacks the captured value. `None` means that a request fails
    /// if its response lacks the captured value.
    pub default: Option<String>,
}

/// Where a value is found in a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureSource {
    /// The value is in the JSON content of the response, at this path. A JSON string is captured
    /// without its quotation marks; any other JSON value is captured as written.
    Json(JsonPath),
    /// The value is in the content of the response: the first group of the first match of this
    /// regular expression. If the regular expression has no group, the value is the whole match.
    Regex(String),
    /// The value is a header field with this name.
    Header(String),
    /// The value is in the header fields of this name: the first group of the first match of the
    /// regular expression. If the regular expression has no group, the value is the whole match.
    HeaderRegex(String, String),
    /// The value is a cookie that the response sets.
    Cookie(String),
}

impl Expectations {
    /// Returns whether the request has no expectation of its response.
    pub fn is_empty(&self) -> bool {
        *self == Expectations::default()
    }
}

impl TextExpectation {
    /// Parses an expectation in the syntax of a traffic file: a text, or `regex:...`.
    pub fn parse(text: &str) -> TextExpectation {
        match text.strip_prefix("regex:") {
            Some(pattern) => TextExpectation::Matches(pattern.to_owned()),
            None => TextExpectation::Contains(text.to_owned()),
        }
    }

    /// Returns the regular expression, if the expectation has one.
    pub fn pattern(&self) -> Option<&str> {
        match self {
            TextExpectation::Matches(pattern) => Some(pattern),
            TextExpectation::Contains(_) => None,
        }
    }
}

impl CaptureSource {
    /// Parses a capture in the syntax of a traffic file: `$.token`, `regex:...`, `header:Location`,
    /// `cookie:sid`.
    ///
    /// # Errors
    /// The error is a sentence that says how to correct the text of the capture.
    pub fn parse(text: &str) -> Result<CaptureSource, String> {
        if text.starts_with('$') {
            return JsonPath::parse(text).map(CaptureSource::Json).map_err(|error| error.to_string());
        }
        let named = |name: &str, from: fn(String) -> CaptureSource| match name.trim() {
            "" => Err(format!("'{text}' names no header or cookie: write for example header:Location or cookie:sid")),
            name => Ok(from(name.to_owned())),
        };
        match text.split_once(':') {
            Some(("regex", pattern)) => Ok(CaptureSource::Regex(pattern.to_owned())),
            // The name of a header field contains no blank, so the name ends where ` regex:`
            // begins.
            Some(("header", rest)) if rest.contains(" regex:") => match rest.split_once(" regex:") {
                Some((name, pattern)) if !name.trim().is_empty() => {
                    Ok(CaptureSource::HeaderRegex(name.trim().to_owned(), pattern.to_owned()))
                }
                _ => named("", CaptureSource::Header),
            },
            Some(("header", name)) => named(name, CaptureSource::Header),
            Some(("cookie", name)) => named(name, CaptureSource::Cookie),
            _ => Err(format!(
                "'{text}' does not say what to read from the response: write $.KEY (JSONPath), regex:PATTERN, \
                 header:NAME or cookie:NAME"
            )),
        }
    }

    /// Returns the regular expression that finds the captured value; `None` means that the capture
    /// has no regular expression.
    pub fn pattern(&self) -> Option<&str> {
        match self {
            CaptureSource::Regex(pattern) | CaptureSource::HeaderRegex(_, pattern) => Some(pattern),
            CaptureSource::Json(_) | CaptureSource::Header(_) | CaptureSource::Cookie(_) => None,
        }
    }

    /// Returns whether the value is in the content of a response.
    pub fn reads_content(&self) -> bool {
        matches!(self, CaptureSource::Json(_) | CaptureSource::Regex(_))
    }

    /// Returns the source of the captured value, in the syntax that [`CaptureSource::parse`] reads.
    pub fn source_text(&self) -> String {
        match self {
            CaptureSource::Json(path) => path.source_text().to_owned(),
            CaptureSource::Regex(pattern) => format!("regex:{pattern}"),
            CaptureSource::Header(name) => format!("header:{name}"),
            CaptureSource::HeaderRegex(name, pattern) => format!("header:{name} regex:{pattern}"),
            CaptureSource::Cookie(name) => format!("cookie:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_parse_back_or_explain_the_error() {
        for text in [
            "$.token",
            "$..id",
            "regex:id=(\\d+)",
            "regex:",
            "header:Location",
            "header:Location regex:id=(\\d+)",
            "cookie:sid",
        ] {
            assert_eq!(CaptureSource::parse(text).expect(text).source_text(), text);
        }
        for (text, part) in [
            ("token", "JSONPath"),
            ("$token", "a dot"),
            ("header:", "header:Location"),
            ("header: regex:a", "header:Location"),
            ("xpath://a", "regex:PATTERN"),
        ] {
            let error = CaptureSource::parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
