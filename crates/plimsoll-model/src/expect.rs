//! Expectations of a response beyond its status, and values captured from it for later requests.
//!
//! A response with a successful status that misses an expectation or a capture counts as failed
//! ([`RequestFailure::Expectation`], [`RequestFailure::Capture`]). Not here: statuses
//! ([`crate::traffic`]), and the search through a response (the engine).
//!
//! [`RequestFailure::Expectation`]: crate::RequestFailure::Expectation
//!
//! [`RequestFailure::Capture`]: crate::RequestFailure::Capture

use crate::json_path::JsonPath;

/// Most bytes of a response's content that checks search; later bytes are ignored.
pub const CONTENT_BYTES_MAX: usize = 4 << 20;

/// Expectations of a response beyond its status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expectations {
    /// The longest response time, from the intended start of the request, ns.
    pub within_ns: Option<u64>,
    /// Expectations of header fields, by field name.
    pub headers: Vec<(String, TextExpectation)>,
    /// Expectations of values in JSON content, by path.
    pub json: Vec<(JsonPath, JsonExpectation)>,
    /// The expectation of the whole content.
    pub body: Option<TextExpectation>,
}

/// The expectation of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextExpectation {
    /// The text must contain this text.
    Holds(String),
    /// This regular expression matches somewhere in the text.
    Matches(String),
}

/// The expectation of a JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonExpectation {
    /// The value must be `null`.
    Null,
    /// The value must be this `true` or `false`.
    Flag(bool),
    /// The value must be this number, as written in the document.
    Number(String),
    /// The value must be this text, without escapes.
    Text(String),
}

/// A value captured from a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerCapture {
    /// The name of the capture in templates.
    pub name: String,
    /// Where the value is found in the response.
    pub from: CaptureFrom,
    /// The value used when the response lacks it; `None`: the request has then failed.
    pub default: Option<String>,
}

/// Where a value is found in a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureFrom {
    /// In JSON content: a text without its quotation marks, any other value as written.
    Json(JsonPath),
    /// In the content: the first group of the first match of this regular expression, or the whole
    /// match if the expression has no group.
    Regex(String),
    /// The value of a header field with this name.
    Header(String),
    /// In the header fields of this name: the first group of the first match of the regular
    /// expression, or the whole match if it has no group.
    HeaderRegex(String, String),
    /// The value of a cookie that the response sets.
    Cookie(String),
}

impl Expectations {
    /// Whether there is no expectation.
    pub fn is_empty(&self) -> bool {
        *self == Expectations::default()
    }
}

impl TextExpectation {
    /// Parses the syntax of a traffic file: a text, or `regex:...`.
    pub fn parse(text: &str) -> TextExpectation {
        match text.strip_prefix("regex:") {
            Some(pattern) => TextExpectation::Matches(pattern.to_owned()),
            None => TextExpectation::Holds(text.to_owned()),
        }
    }

    /// The regular expression, if the expectation has one.
    pub fn pattern(&self) -> Option<&str> {
        match self {
            TextExpectation::Matches(pattern) => Some(pattern),
            TextExpectation::Holds(_) => None,
        }
    }
}

impl CaptureFrom {
    /// Parses the syntax of a traffic file: `$.token`, `regex:...`, `header:Location`,
    /// `cookie:sid`.
    ///
    /// # Errors
    /// A sentence with the way out.
    pub fn parse(text: &str) -> Result<CaptureFrom, String> {
        if text.starts_with('$') {
            return JsonPath::parse(text).map(CaptureFrom::Json).map_err(|error| error.to_string());
        }
        let named = |name: &str, from: fn(String) -> CaptureFrom| match name.trim() {
            "" => Err(format!("'{text}' has no name: write for example header:Location or cookie:sid")),
            name => Ok(from(name.to_owned())),
        };
        match text.split_once(':') {
            Some(("regex", pattern)) => Ok(CaptureFrom::Regex(pattern.to_owned())),
            // The name of a header field contains no blank.
            Some(("header", rest)) if rest.contains(" regex:") => match rest.split_once(" regex:") {
                Some((name, pattern)) if !name.trim().is_empty() => {
                    Ok(CaptureFrom::HeaderRegex(name.trim().to_owned(), pattern.to_owned()))
                }
                _ => named("", CaptureFrom::Header),
            },
            Some(("header", name)) => named(name, CaptureFrom::Header),
            Some(("cookie", name)) => named(name, CaptureFrom::Cookie),
            _ => Err(format!(
                "'{text}' has no known source: write $.KEY (JSONPath), regex:PATTERN, header:NAME or cookie:NAME"
            )),
        }
    }

    /// The regular expression that finds the value; `None`: the value is found in another way.
    pub fn pattern(&self) -> Option<&str> {
        match self {
            CaptureFrom::Regex(pattern) | CaptureFrom::HeaderRegex(_, pattern) => Some(pattern),
            CaptureFrom::Json(_) | CaptureFrom::Header(_) | CaptureFrom::Cookie(_) => None,
        }
    }

    /// Whether the value is in the content of a response.
    pub fn is_of_content(&self) -> bool {
        matches!(self, CaptureFrom::Json(_) | CaptureFrom::Regex(_))
    }

    /// The place in the syntax that [`CaptureFrom::parse`] reads.
    pub fn text(&self) -> String {
        match self {
            CaptureFrom::Json(path) => path.text().to_owned(),
            CaptureFrom::Regex(pattern) => format!("regex:{pattern}"),
            CaptureFrom::Header(name) => format!("header:{name}"),
            CaptureFrom::HeaderRegex(name, pattern) => format!("header:{name} regex:{pattern}"),
            CaptureFrom::Cookie(name) => format!("cookie:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_read_back_or_say_why_not() {
        for text in [
            "$.token",
            "$..id",
            "regex:id=(\\d+)",
            "regex:",
            "header:Location",
            "header:Location regex:id=(\\d+)",
            "cookie:sid",
        ] {
            assert_eq!(CaptureFrom::parse(text).expect(text).text(), text);
        }
        for (text, part) in [
            ("token", "JSONPath"),
            ("$token", "a dot"),
            ("header:", "header:Location"),
            ("header: regex:a", "header:Location"),
            ("xpath://a", "regex:PATTERN"),
        ] {
            let error = CaptureFrom::parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
