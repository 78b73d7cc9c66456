//! Paths to values in a JSON document: the part of JSONPath ([RFC
//! 9535](https://www.rfc-editor.org/rfc/rfc9535)) without filters. Examples are `$.token`,
//! `$.items[0].id`, `$['a b']`, `$.items[*].id` and `$..id`. If a path matches several values, the
//! first value counts.
//!
//! Not here: JSON documents, and the search in a document (the engine).

/// The maximum number of steps of a path.
const STEPS_MAX: usize = 32;
/// The maximum number of recursive steps (`..`) in a path. A recursive step searches all nested
/// values, so every further recursive step can multiply the search time.
const DEEP_STEPS_MAX: usize = 2;

/// A parsed path into a JSON document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    text: String,
    steps: Vec<JsonStep>,
}

/// A step from a value to a nested value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonStep {
    /// Whether the step searches nested values at any depth (`..`).
    pub deep: bool,
    /// Which nested values the step selects.
    pub selector: JsonSelector,
}

/// Which values of an object or array a step selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonSelector {
    /// The step selects the value of a key.
    Key(String),
    /// The step selects the element at an index; a negative index counts from the end (-1 is the
    /// last element).
    At(i64),
    /// The step selects all values of an object or array.
    Any,
}

/// The error for a text that is no valid path: a sentence that says how to correct the path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a JSONPath that plimsoll supports: {why}")]
pub struct JsonPathError {
    text: String,
    why: &'static str,
}

impl JsonPath {
    /// Parses the text of a path.
    pub fn parse(text: &str) -> Result<JsonPath, JsonPathError> {
        let error = |why| JsonPathError { text: text.to_owned(), why };
        let Some(mut rest) = text.strip_prefix('$') else {
            return Err(error("a JSONPath begins with $, such as $.token"));
        };
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if steps.len() == STEPS_MAX {
                return Err(error("the JSONPath has too many steps"));
            }
            let (deep, after) = match rest.strip_prefix("..") {
                Some(after) => (true, after),
                None => (false, rest.strip_prefix('.').unwrap_or(rest)),
            };
            let dotted = after.len() < rest.len();
            let (selector, left) = if after.starts_with('[') && (deep || !dotted) {
                parse_bracket(after).map_err(error)?
            } else if dotted {
                parse_name(after).ok_or_else(|| error("a dot must precede a name or *, as in $.token"))?
            } else {
                return Err(error("each step must begin with a dot or a bracket, as in $.items[0].id"));
            };
            steps.push(JsonStep { deep, selector });
            if steps.iter().filter(|step| step.deep).count() > DEEP_STEPS_MAX {
                return Err(error("the JSONPath has more than two '..'"));
            }
            rest = left;
        }
        Ok(JsonPath { text: text.to_owned(), steps })
    }

    /// Returns the text of the path.
    pub fn source_text(&self) -> &str {
        &self.text
    }

    /// Returns the steps from the document to the value; an empty list means the document itself.
    pub fn steps(&self) -> &[JsonStep] {
        &self.steps
    }
}

/// Parses `name` or `*` at the start of `text`, and returns the unparsed rest.
fn parse_name(text: &str) -> Option<(JsonSelector, &str)> {
    if let Some(rest) = text.strip_prefix('*') {
        return Some((JsonSelector::Any, rest));
    }
    // A key without brackets may contain more characters than the RFC allows, because many keys
    // contain dashes.
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-' || c == '$' || c == '@';
    let end = text.find(|c| !is_of_name(c)).unwrap_or(text.len());
    (end > 0).then(|| (JsonSelector::Key(text[..end].to_owned()), &text[end..]))
}

/// Parses `[0]`, `[-1]`, `[*]` or `['a key']` at the start of `text`, and returns the unparsed
/// rest.
fn parse_bracket(text: &str) -> Result<(JsonSelector, &str), &'static str> {
    let inside = text[1..].trim_start();
    if let Some(quote) = inside.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        let mut key = String::new();
        let mut chars = inside[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some((_, c @ ('\\' | '\'' | '"' | '/'))) => key.push(c),
                    _ => {
                        return Err(
                            "a backslash in a quoted key may precede only a quotation mark or another backslash",
                        );
                    }
                },
                c if c == quote => {
                    let rest = inside[1 + at + 1..].trim_start();
                    let rest = rest
                        .strip_prefix(']')
                        .ok_or("a bracket of a JSONPath contains exactly one key, as in $['a b']")?;
                    return Ok((JsonSelector::Key(key), rest));
                }
                c => key.push(c),
            }
        }
        return Err("a quoted key of the JSONPath has no closing quotation mark");
    }
    let (inner, rest) = inside.split_once(']').ok_or("a bracket of the JSONPath is not closed")?;
    let inner = inner.trim();
    if inner == "*" {
        return Ok((JsonSelector::Any, rest));
    }
    match inner.parse::<i64>() {
        Ok(at) => Ok((JsonSelector::At(at), rest)),
        Err(_) => {
            Err("a bracket contains an index ([0], [-1]), a 'key' in quotation marks, or *; filters are not supported")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_step(name: &str) -> JsonStep {
        JsonStep { deep: false, selector: JsonSelector::Key(name.into()) }
    }

    fn step_at(place: i64) -> JsonStep {
        JsonStep { deep: false, selector: JsonSelector::At(place) }
    }

    #[test]
    fn json_paths_parse_or_explain_the_error() {
        let any = JsonStep { deep: false, selector: JsonSelector::Any };
        let deep = |step: JsonStep| JsonStep { deep: true, ..step };
        for (text, expect) in [
            ("$", Ok(vec![])),
            ("$.token", Ok(vec![key_step("token")])),
            ("$.items[0].id", Ok(vec![key_step("items"), step_at(0), key_step("id")])),
            ("$[-1]['a b'][\"c.d\"]", Ok(vec![step_at(-1), key_step("a b"), key_step("c.d")])),
            ("$['it\\'s']", Ok(vec![key_step("it's")])),
            ("$.items[*].x-id", Ok(vec![key_step("items"), any.clone(), key_step("x-id")])),
            ("$.*", Ok(vec![any])),
            ("$..id", Ok(vec![deep(key_step("id"))])),
            ("$..[0]", Ok(vec![deep(step_at(0))])),
            ("$.\u{e9}t\u{e9}", Ok(vec![key_step("\u{e9}t\u{e9}")])),
            ("token", Err("begins with $")),
            ("$token", Err("a dot or a bracket")),
            ("$.", Err("must precede a name")),
            ("$.a.", Err("must precede a name")),
            ("$.[0]", Err("must precede a name")),
            ("$[0", Err("is not closed")),
            ("$['a", Err("quotation mark")),
            ("$['a','b']", Err("one key")),
            ("$[?(@.a)]", Err("filters are not supported")),
            ("$[1:2]", Err("filters are not supported")),
            ("$['\\n']", Err("backslash")),
            ("$..a..b..c", Err("more than two")),
        ] {
            match (JsonPath::parse(text), expect) {
                (Ok(path), Ok(steps)) => assert_eq!(path.steps(), steps, "{text}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{text}: {error}"),
                (other, _) => panic!("{text}: {other:?}"),
            }
        }
        assert!(JsonPath::parse(&format!("${}", ".a".repeat(33))).is_err());
    }
}
