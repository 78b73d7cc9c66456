//! The texts of a drafted traffic file, with their literal parts and their template values. Not
//! here: the rest of the draft (`super`), and its TOML syntax (`toml`).

use std::fmt::Write;

/// A text of the drafted traffic file that may contain template values (`{{ value }}`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftText(Vec<DraftPiece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum DraftPiece {
    Text(String),
    /// A template value: the text between `{{` and `}}`.
    Value(String),
}

impl DraftText {
    /// Creates a text without template values.
    pub fn literal(text: &str) -> DraftText {
        let mut out = DraftText::default();
        out.push(text);
        out
    }

    /// Creates a text that is one template value.
    pub fn value(value: &str) -> DraftText {
        DraftText(vec![DraftPiece::Value(value.to_owned())])
    }

    /// Appends literal text.
    pub fn push(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(DraftPiece::Text(last)) => last.push_str(text),
            _ => self.0.push(DraftPiece::Text(text.to_owned())),
        }
    }

    /// Appends a template value.
    pub fn push_value(&mut self, value: &str) {
        self.0.push(DraftPiece::Value(value.to_owned()));
    }

    /// Appends another text with its template values.
    pub fn append(&mut self, other: &DraftText) {
        for piece in &other.0 {
            match piece {
                DraftPiece::Text(text) => self.push(text),
                DraftPiece::Value(value) => self.push_value(value),
            }
        }
    }

    /// Returns a copy in which `change` escapes the literal text, and the template filter `way`,
    /// such as `url` or `json`, escapes the template values. A template value that has a filter,
    /// or whose output needs no escape, stays as it is.
    pub fn escape_with_filter(&self, change: impl Fn(&str) -> String, way: &str) -> DraftText {
        let mut out = DraftText::default();
        for piece in &self.0 {
            match piece {
                DraftPiece::Text(text) => out.push(&change(text)),
                DraftPiece::Value(value) if value.contains('|') || needs_no_escape(value) => out.push_value(value),
                DraftPiece::Value(value) => out.push_value(&format!("{value} | {way}")),
            }
        }
        out
    }

    /// Returns a copy whose literal text is changed by `change`. Template values stay unchanged.
    pub fn map_literal_text(&self, change: impl Fn(&str) -> String) -> DraftText {
        let mut out = DraftText::default();
        for piece in &self.0 {
            match piece {
                DraftPiece::Text(text) => out.push(&change(text)),
                DraftPiece::Value(value) => out.push_value(value),
            }
        }
        out
    }

    /// Returns a copy in which `change` replaces every template value. `change` returns another
    /// template value (`Ok`), or literal text (`Err`).
    pub fn replace_template_values(&self, mut change: impl FnMut(&str) -> Result<String, String>) -> DraftText {
        let mut out = DraftText::default();
        for piece in &self.0 {
            match piece {
                DraftPiece::Text(text) => out.push(text),
                DraftPiece::Value(value) => match change(value) {
                    Ok(value) => out.push_value(&value),
                    Err(text) => out.push(&text),
                },
            }
        }
        out
    }

    /// Returns whether the text has neither characters nor template values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the approximate memory use of the text, in bytes.
    pub fn bytes(&self) -> usize {
        let of_piece = |piece: &DraftPiece| match piece {
            DraftPiece::Text(text) | DraftPiece::Value(text) => size_of::<DraftPiece>() + text.len(),
        };
        self.0.iter().map(of_piece).sum()
    }

    /// Returns the text as a literal; `None` if the text has template values.
    pub fn as_literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [DraftPiece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the literal text before the first template value.
    pub fn beginning(&self) -> &str {
        match self.0.first() {
            Some(DraftPiece::Text(text)) => text,
            _ => "",
        }
    }

    /// Returns the text without its first `bytes` bytes, which must be literal.
    pub fn without_literal_prefix(&self, bytes: usize) -> DraftText {
        let mut out = DraftText::default();
        for (number, piece) in self.0.iter().enumerate() {
            match piece {
                DraftPiece::Text(text) if number == 0 => out.push(text.get(bytes..).unwrap_or_default()),
                DraftPiece::Text(text) => out.push(text),
                DraftPiece::Value(value) => out.push_value(value),
            }
        }
        out
    }

    /// Returns the template value at the beginning of the text, and the text after the template
    /// value. `None` if the text begins with literal text.
    pub fn first_value(&self) -> Option<(&str, DraftText)> {
        let (DraftPiece::Value(value), rest) = self.0.split_first()? else { return None };
        Some((value, DraftText(rest.to_vec())))
    }

    /// Returns whether the literal text contains the character `c`.
    pub fn contains(&self, c: char) -> bool {
        self.0.iter().any(|piece| matches!(piece, DraftPiece::Text(text) if text.contains(c)))
    }

    /// Returns the text as it appears in a traffic file.
    #[cfg(test)]
    pub fn display_text(&self) -> String {
        self.file_text(false)
    }

    /// Returns the template values in order.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            DraftPiece::Value(value) => Some(value.as_str()),
            DraftPiece::Text(_) => None,
        })
    }

    pub(super) fn has_values(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, DraftPiece::Value(_)))
    }

    pub(super) fn contains_double_braces(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, DraftPiece::Text(text) if text.contains("{{")))
    }

    /// Returns the text as it appears in a traffic file. The text of a `raw` request is not
    /// escaped, because `raw` requests have no templates.
    pub fn file_text(&self, raw: bool) -> String {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                DraftPiece::Text(text) if raw => out.push_str(text),
                // Two literal braces are written as a template value, because `{{` would begin a
                // template value.
                DraftPiece::Text(text) => out.push_str(&text.replace("{{", "{{ '{{' }}")),
                DraftPiece::Value(value) => {
                    // A literal brace directly before a template value would change where the
                    // template value begins.
                    if !raw && out.ends_with('{') {
                        out.pop();
                        out.push_str("{{ '{' }}");
                    }
                    _ = write!(out, "{{{{ {value} }}}}");
                }
            }
        }
        out
    }
}

/// Returns whether a template value calls a function whose output needs no escape, such as a
/// number or letters.
fn needs_no_escape(value: &str) -> bool {
    ["int(", "float(", "uuid(", "seq(", "hex(", "text("].iter().any(|function| value.starts_with(function))
}
