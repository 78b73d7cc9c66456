//! What an answer is to be beside its status, and what is taken from it for later requests.
//!
//! An answer with a status that counts as success, but that misses any of this, has failed all the
//! same ([`RequestFailure::Expectation`], [`RequestFailure::Capture`]). Not here: statuses
//! ([`crate::traffic`]), and how an answer is looked through (the engine).
//!
//! [`RequestFailure::Expectation`]: crate::RequestFailure::Expectation
//! [`RequestFailure::Capture`]: crate::RequestFailure::Capture

use crate::json_path::JsonPath;

/// Bytes of an answer's content that are looked at: what comes behind them is not seen.
pub const CONTENT_BYTES_MAX: usize = 4 << 20;

/// What an answer is to be beside its status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expectations {
    /// It is whole so long after the intended start of its request, ns.
    pub within_ns: Option<u64>,
    /// Fields of its head, by name.
    pub headers: Vec<(String, TextExpectation)>,
    /// Values in its content, which is JSON.
    pub json: Vec<(JsonPath, JsonExpectation)>,
    /// Its content.
    pub body: Option<TextExpectation>,
}

/// What a text is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextExpectation {
    /// It holds this text.
    Holds(String),
    /// This regular expression matches somewhere in it.
    Matches(String),
}

/// What a value in JSON is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonExpectation {
    /// `null`.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A number, as it is written.
    Number(String),
    /// A text, without escapes.
    Text(String),
}

/// Something that is taken from an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerCapture {
    /// How templates call it.
    pub name: String,
    /// Where it is.
    pub from: CaptureFrom,
    /// What stands for it where it is not there; `None`: then the request has failed.
    pub default: Option<String>,
}

/// Where something is in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureFrom {
    /// In its content, which is JSON: a text without its quotation marks, anything else as it is
    /// written.
    Json(JsonPath),
    /// In its content: the first group of the first match of this regular expression, or the whole
    /// match if it has no group.
    Regex(String),
    /// The value of a field of its head.
    Header(String),
    /// In the values of the fields of this name: the first group of the first match, or the whole
    /// match if there is no group.
    HeaderRegex(String, String),
    /// The value of a cookie that it sets.
    Cookie(String),
}

impl Expectations {
    /// Whether nothing is expected.
    pub fn is_empty(&self) -> bool {
        *self == Expectations::default()
    }
}

impl TextExpectation {
    /// As a file of traffic writes it: a text, or `regex:...`.
    pub fn parse(text: &str) -> TextExpectation {
        match text.strip_prefix("regex:") {
            Some(pattern) => TextExpectation::Matches(pattern.to_owned()),
            None => TextExpectation::Holds(text.to_owned()),
        }
    }

    /// The regular expression, if it is one.
    pub fn pattern(&self) -> Option<&str> {
        match self {
            TextExpectation::Matches(pattern) => Some(pattern),
            TextExpectation::Holds(_) => None,
        }
    }
}

impl CaptureFrom {
    /// As a file of traffic writes it: `$.token`, `regex:...`, `header:Location`, `cookie:sid`.
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
            // A name has no blank.
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

    /// The regular expression, if it has one.
    pub fn pattern(&self) -> Option<&str> {
        match self {
            CaptureFrom::Regex(pattern) | CaptureFrom::HeaderRegex(_, pattern) => Some(pattern),
            CaptureFrom::Json(_) | CaptureFrom::Header(_) | CaptureFrom::Cookie(_) => None,
        }
    }

    /// Whether it is in the content of an answer.
    pub fn is_of_content(&self) -> bool {
        matches!(self, CaptureFrom::Json(_) | CaptureFrom::Regex(_))
    }

    /// As [`CaptureFrom::parse`] reads it.
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
