//! The file of traffic that an importer makes, before it is text, and what of the original could not be carried over.
//!
//! Only what the original says is written; whatever is left out has a place and a sentence. Not here: any foreign format.

use crate::file::{TextPlace, TrafficFileError};
use std::collections::HashMap;
use std::fmt::Write;

/// What of a file could not be carried over.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// Where it stands.
    pub at: TextPlace,
    /// What it is, and what became of it.
    pub text: String,
}

/// A file that was made of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// A file of traffic, in TOML.
    pub text: String,
    /// How many requests or steps it has.
    pub requests: usize,
    /// What it lacks, by place.
    pub left_out: Vec<LeftOut>,
}

/// A text with values in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftText(Vec<DraftPiece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum DraftPiece {
    Text(String),
    /// What stands between `{{` and `}}`.
    Value(String),
}

impl DraftText {
    pub fn fixed(text: &str) -> DraftText {
        let mut out = DraftText::default();
        out.push(text);
        out
    }

    pub fn value(value: &str) -> DraftText {
        DraftText(vec![DraftPiece::Value(value.to_owned())])
    }

    /// More text.
    pub fn push(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(DraftPiece::Text(last)) => last.push_str(text),
            _ => self.0.push(DraftPiece::Text(text.to_owned())),
        }
    }

    /// A value that is filled in.
    pub fn push_value(&mut self, value: &str) {
        self.0.push(DraftPiece::Value(value.to_owned()));
    }

    pub fn append(&mut self, other: &DraftText) {
        for piece in &other.0 {
            match piece {
                DraftPiece::Text(text) => self.push(text),
                DraftPiece::Value(value) => self.push_value(value),
            }
        }
    }

    /// With its text changed; values that may mean something there are written in this way.
    pub fn mapped(&self, change: impl Fn(&str) -> String, way: &str) -> DraftText {
        let mut out = DraftText::default();
        for piece in &self.0 {
            match piece {
                DraftPiece::Text(text) => out.push(&change(text)),
                DraftPiece::Value(value) if value.contains('|') || is_plain(value) => out.push_value(value),
                DraftPiece::Value(value) => out.push_value(&format!("{value} | {way}")),
            }
        }
        out
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, if there are no values in it.
    pub fn as_fixed(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [DraftPiece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// What it begins with, up to the first value.
    pub fn beginning(&self) -> &str {
        match self.0.first() {
            Some(DraftPiece::Text(text)) => text,
            _ => "",
        }
    }

    /// Without so many bytes of the text that it begins with.
    pub fn after(&self, bytes: usize) -> DraftText {
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

    /// Whether its text has this character.
    pub fn contains(&self, c: char) -> bool {
        self.0.iter().any(|piece| matches!(piece, DraftPiece::Text(text) if text.contains(c)))
    }

    fn has_values(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, DraftPiece::Value(_)))
    }

    fn needs_raw(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, DraftPiece::Text(text) if text.contains("{{")))
    }

    /// As the file has it; `raw` texts are taken as they are.
    fn written(&self, raw: bool) -> String {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                DraftPiece::Text(text) if raw => out.push_str(text),
                // Values come after it, so that two braces never meet.
                DraftPiece::Text(text) => out.push_str(&text.replace("{{", "{{ '{{' }}")),
                DraftPiece::Value(value) => _ = write!(out, "{{{{ {value} }}}}"),
            }
        }
        out
    }
}

/// Whether a value is nothing but letters, digits and signs that mean nothing anywhere.
fn is_plain(value: &str) -> bool {
    ["int(", "float(", "uuid(", "seq(", "hex(", "text("].iter().any(|function| value.starts_with(function))
}

/// The content of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DraftBody {
    #[default]
    None,
    Text(DraftText),
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftRequest {
    pub name: Option<String>,
    pub method: String,
    pub target: DraftText,
    pub headers: Vec<(String, DraftText)>,
    pub body: DraftBody,
    /// Statuses that are expected, if that is said.
    pub status: Option<String>,
}

/// A file of traffic that is being made.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// Lines at its beginning.
    pub about: Vec<String>,
    pub base: Option<String>,
    pub requests: Vec<DraftRequest>,
    pub left_out: Vec<LeftOut>,
    /// Where in `left_out` something is that is said once, with how often it was met.
    pub(super) counted: HashMap<String, (usize, u64)>,
}

impl Draft {
    /// Something is not carried over.
    pub fn leave_out(&mut self, at: TextPlace, text: impl Into<String>) {
        self.left_out.push(LeftOut { at, text: text.into() });
    }

    /// Something is not carried over, as before: it is said once, with how often.
    pub fn leave_out_again(&mut self, at: TextPlace, text: impl Into<String>) {
        let text = text.into();
        let next = self.left_out.len();
        let (_, count) = self.counted.entry(text.clone()).or_insert((next, 0));
        *count += 1;
        if *count == 1 {
            self.left_out.push(LeftOut { at, text });
        }
    }

    /// The file, and what it lacks. A file that asks for nothing is refused with `nothing`.
    pub fn finish(mut self, nothing: &str) -> Result<Imported, TrafficFileError> {
        for (at, count) in std::mem::take(&mut self.counted).into_values() {
            if count > 1 {
                _ = write!(self.left_out[at].text, " ({count} times)");
            }
        }
        self.left_out.sort();
        if self.requests.is_empty() {
            let why = self.left_out.first().map(|left| format!("; {}:{}: {}", left.at.line, left.at.column, left.text));
            let text = format!("{nothing}{}", why.unwrap_or_default());
            return Err(TrafficFileError::new(TextPlace { line: 1, column: 1 }, text));
        }
        let mut names = DraftNames::default();
        self.requests
            .iter_mut()
            .for_each(|request| request.name = request.name.take().and_then(|name| names.own(&name)));
        Ok(Imported { text: self.written(), requests: self.requests.len(), left_out: self.left_out })
    }

    fn written(&self) -> String {
        let mut out = String::new();
        for line in &self.about {
            let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            _ = writeln!(out, "# {line}");
        }
        if let Some(base) = &self.base {
            _ = writeln!(out, "base = {}", toml_text(base));
        }
        self.requests.iter().for_each(|request| request_written(request, &mut out));
        out
    }
}

/// Names that are taken: each is given once, and fits into a column.
#[derive(Default)]
struct DraftNames(HashMap<String, u64>);

impl DraftNames {
    fn own(&mut self, name: &str) -> Option<String> {
        const CHARS_MAX: usize = 70;
        let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).take(CHARS_MAX).collect();
        let name = name.trim();
        if name.is_empty() {
            return None;
        }
        loop {
            let count = self.0.entry(name.to_owned()).or_insert(0);
            *count += 1;
            if *count == 1 {
                return Some(name.to_owned());
            }
            let numbered = format!("{name} ({count})");
            if self.0.insert(numbered.clone(), 1).is_none() {
                return Some(numbered);
            }
        }
    }
}

const VERBS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

fn request_written(request: &DraftRequest, out: &mut String) {
    let body = if let DraftBody::Text(text) = &request.body { Some(text) } else { None };
    let texts = || std::iter::once(&request.target).chain(request.headers.iter().map(|(_, text)| text)).chain(body);
    let begins_with_at = body.is_some_and(|text| text.beginning().starts_with('@'));
    let raw = !texts().any(DraftText::has_values) && (begins_with_at || texts().any(DraftText::needs_raw));
    out.push_str("\n[[request]]\n");
    let mut line = |key: &str, value: &str| _ = writeln!(out, "{key} = {value}");
    if let Some(name) = &request.name {
        line("name", &toml_text(name));
    }
    let target = request.target.written(raw);
    if VERBS.contains(&request.method.as_str()) {
        line(&request.method.to_ascii_lowercase(), &toml_text(&target));
    } else {
        line("method", &toml_text(&request.method));
        line("url", &toml_text(&target));
    }
    if raw {
        line("raw", "true");
    }
    if !request.headers.is_empty() {
        let fields: Vec<(String, String)> =
            request.headers.iter().map(|(name, text)| (name.clone(), toml_text(&text.written(raw)))).collect();
        line("headers", &toml_table(&fields));
    }
    match body {
        None => {}
        Some(text) if begins_with_at && !raw => {
            line("body", &toml_text(&format!("{{{{ '@' }}}}{}", text.after(1).written(false))));
        }
        Some(text) => line("body", &toml_text(&text.written(raw))),
    }
    if let Some(status) = &request.status {
        line("expect", &toml_table(&[("status".to_owned(), toml_text(status))]));
    }
}

/// A text as TOML has it, in the writing that is read most easily.
pub fn toml_text(text: &str) -> String {
    let has_control = |but: &[char]| text.chars().any(|c| c.is_control() && !but.contains(&c));
    if text.contains(['"', '\\']) && !text.contains('\'') && !has_control(&['\t']) {
        return format!("'{text}'");
    }
    if text.contains('\n') && !text.contains("'''") && !text.ends_with('\'') && !has_control(&['\n', '\t']) {
        return format!("'''\n{text}'''");
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => _ = write!(out, "\\u{:04X}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn toml_key(name: &str) -> String {
    let is_bare = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    if is_bare { name.to_owned() } else { toml_text(&name.replace('\n', " ")) }
}

/// A table in one line, or one line an entry where it is long.
fn toml_table(entries: &[(String, String)]) -> String {
    const LINE_CHARS: usize = 110;
    // A key stands once; of several the last counts.
    let mut unique: Vec<(String, &str)> = Vec::new();
    for (name, value) in entries {
        let key = toml_key(name);
        match unique.iter_mut().find(|(own, _)| *own == key) {
            Some((_, own)) => *own = value,
            None => unique.push((key, value)),
        }
    }
    let entries: Vec<String> = unique.into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let line = format!("{{ {} }}", entries.join(", "));
    if line.chars().count() <= LINE_CHARS { line } else { format!("{{\n  {}\n}}", entries.join(",\n  ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Surroundings, TrafficFile, TrafficFormat};
    use proptest::prelude::*;

    pub struct Nowhere;

    impl Surroundings for Nowhere {
        fn file(&mut self, _: &str) -> Result<Vec<u8>, String> {
            Err("is not there".into())
        }

        fn rows(&mut self, _: &str) -> Result<String, String> {
            Err("is not there".into())
        }

        fn pattern(&mut self, _: &str) -> Result<(), String> {
            Ok(())
        }

        fn variable(&mut self, name: &str) -> Option<String> {
            Some(name.to_owned())
        }
    }

    #[test]
    fn literal_braces_and_at_signs_are_themselves() {
        let step = |target: DraftText, body: DraftText| DraftRequest {
            method: "POST".into(),
            target,
            body: DraftBody::Text(body),
            ..DraftRequest::default()
        };
        let mut drawn = DraftText::fixed("@a {{b ");
        drawn.push_value("int(1,1)");
        let fixed = step(DraftText::fixed("/{{x"), DraftText::fixed("@a {{b"));
        let filled = step(DraftText::fixed("/"), drawn);
        let draft = Draft { requests: vec![fixed, filled], ..Draft::default() };
        let imported = draft.finish("nothing").expect("a file");
        assert!(imported.text.contains("raw = true"), "{}", imported.text);
        assert!(imported.text.contains("{{ '@' }}a {{ '{{' }}b {{ int(1,1) }}"), "{}", imported.text);
        TrafficFile::read(&imported.text, TrafficFormat::Toml, &mut Nowhere).expect("it is read");
    }

    #[test]
    fn names_are_each_given_once() {
        let mut names = DraftNames::default();
        let given: Vec<_> = ["a", "a (2)", "a", "a", " \n", "a"].iter().map(|name| names.own(name)).collect();
        let expect = [Some("a"), Some("a (2)"), Some("a (3)"), Some("a (4)"), None, Some("a (5)")];
        assert_eq!(given, expect.map(|name| name.map(str::to_owned)));
    }

    proptest! {
        #[test]
        fn any_text_is_read_back(text in "(\\PC|[\\x00-\\x1f\\x7f'\"\\\\]){0,40}") {
            let toml = format!("a = {}\n", toml_text(&text));
            let tree = crate::file::toml::tree(&toml).expect("TOML");
            prop_assert_eq!(tree.open_table("a table").unwrap().get("a").unwrap().text("a").unwrap(), text);
        }
    }
}
