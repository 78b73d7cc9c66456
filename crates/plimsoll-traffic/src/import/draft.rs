//! The draft of a traffic file, which an importer builds from the file of another tool. The draft
//! has requests of a mix or steps of scenarios, and a note for every part that could not be
//! imported.
//!
//! The draft contains only content of the original file. Each note has the position of the
//! omitted part in the original file, and one sentence for the user. Not here: parsing the
//! formats of other tools.

use crate::file::TextPlace;
use plimsoll_model::ArrivalSpacing;
use plimsoll_model::control_characters::is_control_character;
use std::collections::HashMap;
use std::fmt::Write;

/// A part of the original file that could not be imported.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImportOmission {
    /// The position of the omitted part in the original file.
    pub at: TextPlace,
    /// A sentence for the user: which part is missing, and what this changes in the imported
    /// traffic.
    pub text: String,
}

/// The result of an import: a traffic file, and notes about omissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportResult {
    /// The text of the traffic file, in TOML.
    pub text: String,
    /// The number of imported requests, including those in steps.
    pub requests: usize,
    /// The parts of the original file that could not be imported, in order of their position.
    pub left_out: Vec<ImportOmission>,
}

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
    pub fn literal(text: &str) -> DraftText {
        let mut out = DraftText::default();
        out.push(text);
        out
    }

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

    fn has_values(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, DraftPiece::Value(_)))
    }

    fn contains_double_braces(&self) -> bool {
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

/// The body of a drafted request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DraftBody {
    #[default]
    None,
    Text(DraftText),
    /// The path of a file next to the traffic file.
    File(String),
    /// The parts of a multipart form.
    Parts(Vec<DraftPart>),
}

/// One part of a multipart form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftPart {
    pub name: String,
    pub content: DraftPartContent,
    /// The media type of the part. `None` if the original file states no media type.
    pub kind: Option<String>,
    /// The file name that the request states for the part. `None` stands for the name of the
    /// uploaded file itself.
    pub file_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftPartContent {
    Text(DraftText),
    /// The path of a file next to the traffic file.
    File(String),
}

impl Default for DraftPartContent {
    fn default() -> DraftPartContent {
        DraftPartContent::Text(DraftText::default())
    }
}

impl DraftPart {
    pub fn text(name: &str, text: DraftText) -> DraftPart {
        DraftPart { name: name.to_owned(), content: DraftPartContent::Text(text), ..DraftPart::default() }
    }

    pub fn file(name: &str, path: &str) -> DraftPart {
        DraftPart { name: name.to_owned(), content: DraftPartContent::File(path.to_owned()), ..DraftPart::default() }
    }

    pub fn is_file(&self) -> bool {
        matches!(self.content, DraftPartContent::File(_))
    }
}

/// A value to capture from a response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftCapture {
    pub name: String,
    /// The position of the value in the response, such as `$.id` (JSON path) or
    /// `header:Location`.
    pub from: String,
    /// The value to use if the response lacks the value to capture.
    pub default: Option<String>,
}

/// The expectations of a response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftExpect {
    pub status: Option<String>,
    /// JSON paths, each with its expected value in TOML syntax.
    pub json: Vec<(String, String)>,
    /// The expected header fields: each name with a text that the value must contain, or with
    /// `regex:...`.
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    pub within_ms: Option<u64>,
}

/// A drafted request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftRequest {
    pub method: String,
    pub target: DraftText,
    pub headers: Vec<(String, DraftText)>,
    pub body: DraftBody,
    pub captures: Vec<DraftCapture>,
    pub expect: DraftExpect,
    pub timeout_ms: Option<u64>,
    /// The largest number of redirects to follow. `None` means that redirects are not followed.
    pub follow: Option<u32>,
    /// Whether the session continues after the request fails.
    pub may_continue: bool,
}

impl DraftRequest {
    /// Returns the approximate memory use of the texts of the request, in bytes.
    pub fn bytes(&self) -> usize {
        let of_part = |part: &DraftPart| match &part.content {
            DraftPartContent::Text(text) => part.name.len() + text.bytes(),
            DraftPartContent::File(path) => part.name.len() + path.len(),
        };
        let body = match &self.body {
            DraftBody::Text(text) => text.bytes(),
            DraftBody::Parts(parts) => parts.iter().map(of_part).sum(),
            DraftBody::None | DraftBody::File(_) => 0,
        };
        let headers = self.headers.iter().map(|(name, text)| name.len() + text.bytes());
        self.target.bytes() + headers.sum::<usize>() + body
    }

    /// Returns whether the request can be marked `raw`: it has no template values, no multipart
    /// form and no body file.
    pub fn may_be_raw(&self) -> bool {
        let body = if let DraftBody::Text(text) = &self.body { Some(text) } else { None };
        let texts = || std::iter::once(&self.target).chain(self.headers.iter().map(|(_, text)| text)).chain(body);
        !texts().any(DraftText::has_values) && (body.is_some() || self.body == DraftBody::None)
    }

    /// Returns whether an expectation contains `{{`, which only a `raw` request allows.
    pub fn expects_braces(&self) -> bool {
        self.expect.body.iter().any(|text| text.contains("{{"))
            || self.expect.headers.iter().chain(&self.expect.json).any(|(_, text)| text.contains("{{"))
    }

    pub fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
    }
}

/// A step of a scenario, or a request of a mix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftStep {
    /// The position of the step in the original file.
    pub at: Option<TextPlace>,
    pub name: Option<String>,
    /// The weight of a request in a mix, which sets how often the request is sent relative to the
    /// other requests.
    pub weight: Option<u32>,
    pub think: Option<String>,
    pub once: bool,
    /// A template value that controls the step: the step runs only if the value is not empty.
    pub condition: Option<String>,
    /// A template value that controls the step: the step runs only if the value is empty.
    pub unless: Option<String>,
    pub times: Option<u32>,
    pub what: DraftAction,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftAction {
    Ask(Box<DraftRequest>),
    Steps(Vec<DraftStep>),
}

impl Default for DraftAction {
    fn default() -> DraftAction {
        DraftAction::Steps(Vec::new())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftScenario {
    pub name: String,
    pub weight: u32,
    /// Whether users keep cookies.
    pub cookies: bool,
    pub steps: Vec<DraftStep>,
}

/// A table of data rows from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftData {
    pub name: String,
    pub file: String,
    pub pick: &'static str,
    /// Whether every use of the table takes a new data row. If false, each session takes one row.
    pub each_use: bool,
}

/// The load settings of the original file, in the syntax of a traffic file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftLoad {
    /// The number of users of a closed loop. With `users` there is no `rate`.
    pub users: Option<String>,
    /// The session arrival rate of an open loop, in sessions per second.
    pub rate: Option<String>,
    /// The spacing of the session arrivals of the open loop. `None` if the original file states no
    /// spacing.
    pub arrivals: Option<ArrivalSpacing>,
    pub sessions: Option<u64>,
    /// The duration of the load. `None` if the stages in `users` or `rate` define the duration.
    pub duration: Option<String>,
}

/// A traffic file under construction by an importer.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// The comment lines for the beginning of the file.
    pub about: Vec<String>,
    pub base: Option<String>,
    pub data: Vec<DraftData>,
    /// The requests of a mix (requests drawn at random by weight). Empty if the file has scenarios.
    pub requests: Vec<DraftStep>,
    pub scenarios: Vec<DraftScenario>,
    /// The setup requests, as a flat list without groups.
    pub setup: Vec<DraftStep>,
    /// The cleanup requests, as a flat list without groups.
    pub cleanup: Vec<DraftStep>,
    pub load: DraftLoad,
    pub left_out: Vec<ImportOmission>,
    /// For each omission that may repeat, by the text of its note: the index in `left_out`, and the
    /// number of occurrences.
    pub counted: HashMap<String, (usize, u64)>,
}

/// The longest note about an omission, in characters. Notes repeat names of the original file,
/// which may be long, and every part of that file may have a note.
const NOTE_CHARS_MAX: usize = 400;
/// The longest name of the original file that a note shows, in characters. A longer name is cut
/// off.
const SHOWN_CHARS_MAX: usize = 100;

/// Shortens a name of the original file to one line for a note.
pub fn short_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect()
}

fn shorten_note(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(NOTE_CHARS_MAX) {
        text.truncate(end);
        text.push_str("...");
        text.shrink_to_fit();
    }
    text
}

impl Draft {
    /// Adds a note about an omission.
    pub fn note_omission(&mut self, at: TextPlace, text: impl Into<String>) {
        self.left_out.push(ImportOmission { at, text: shorten_note(text.into()) });
    }

    /// Adds a note about an omission that may repeat. Omissions with equal texts share one note, to
    /// which the number of omissions is appended later.
    pub fn note_repeated_omission(&mut self, at: TextPlace, text: impl Into<String>) {
        let text = shorten_note(text.into());
        if let Some((_, count)) = self.counted.get_mut(&text) {
            *count += 1;
            return;
        }
        self.counted.insert(text.clone(), (self.left_out.len(), 1));
        self.left_out.push(ImportOmission { at, text });
    }

    /// Makes the names of requests and scenarios unique, and removes empty scenarios.
    pub fn make_names_unique(&mut self) {
        self.scenarios.retain(|scenario| count_requests(&scenario.steps) > 0);
        let mut names = DraftNames::default();
        names.normalize_steps(&mut self.requests);
        for once in [&mut self.setup, &mut self.cleanup] {
            DraftNames::default().normalize_steps(once);
        }
        let mut scenario_names = DraftNames::default();
        for scenario in &mut self.scenarios {
            names.normalize_steps(&mut scenario.steps);
            scenario.name = scenario_names.unique_name(&scenario.name).unwrap_or_else(|| "scenario".to_owned());
        }
    }

    /// Returns the number of requests, including those in steps. Setup and cleanup do not count.
    pub fn total_requests(&self) -> usize {
        count_requests(&self.requests)
            + self.scenarios.iter().map(|scenario| count_requests(&scenario.steps)).sum::<usize>()
    }

    /// Appends the counts of repeated omissions to their notes.
    pub fn append_omission_counts(&mut self) {
        for (at, count) in std::mem::take(&mut self.counted).into_values() {
            if count > 1 {
                _ = write!(self.left_out[at].text, " ({count} times)");
            }
        }
    }

    /// Renders the draft as the text of a traffic file.
    pub fn file_text(&self) -> String {
        let mut out = String::new();
        for line in &self.about {
            let line: String = line.chars().map(|c| if is_control_character(c) { ' ' } else { c }).collect();
            _ = writeln!(out, "# {line}");
        }
        if let Some(base) = &self.base {
            _ = writeln!(out, "base = {}", toml_text(base));
        }
        for data in &self.data {
            _ = writeln!(out, "\n[data.{}]", toml_key(&data.name));
            _ = writeln!(out, "file = {}\npick = {}", toml_text(&data.file), toml_text(data.pick));
            if data.each_use {
                _ = writeln!(out, "each = \"use\"");
            }
        }
        self.write_load(&mut out);
        write_steps(&self.setup, "setup", &mut out);
        write_steps(&self.cleanup, "cleanup", &mut out);
        for scenario in &self.scenarios {
            _ = writeln!(out, "\n[[scenario]]\nname = {}", toml_text(&scenario.name));
            if scenario.weight != 1 {
                _ = writeln!(out, "weight = {}", scenario.weight);
            }
            if !scenario.cookies {
                _ = writeln!(out, "cookies = false");
            }
            write_steps(&scenario.steps, "scenario.step", &mut out);
        }
        write_steps(&self.requests, "request", &mut out);
        out
    }
}

impl Draft {
    fn write_load(&self, out: &mut String) {
        let DraftLoad { users, rate, arrivals, sessions, duration } = &self.load;
        if self.load == DraftLoad::default() {
            return;
        }
        _ = writeln!(out, "\n[load]");
        for (key, value) in [("users", users), ("rate", rate)] {
            if let Some(value) = value {
                let is_plain = value.parse::<f64>().is_ok();
                _ = writeln!(out, "{key} = {}", if is_plain { value.clone() } else { toml_text(value) });
            }
        }
        if let Some(arrivals) = arrivals {
            _ = writeln!(out, "arrivals = {}", toml_text(arrivals.name()));
        }
        if let Some(sessions) = sessions {
            _ = writeln!(out, "sessions = {sessions}");
        }
        if let Some(duration) = duration {
            _ = writeln!(out, "duration = {}", toml_text(duration));
        }
    }
}

/// Returns the number of requests in steps and nested steps.
fn count_requests(steps: &[DraftStep]) -> usize {
    let of_one = |step: &DraftStep| match &step.what {
        DraftAction::Ask(_) => 1,
        DraftAction::Steps(inner) => count_requests(inner),
    };
    steps.iter().map(of_one).sum()
}

/// The names in use, each with the number of its occurrences. Request and scenario names are made
/// unique, and short enough for a column of a report.
#[derive(Default)]
struct DraftNames(HashMap<String, u64>);

impl DraftNames {
    /// Makes the name of every request unique, and removes empty groups.
    fn normalize_steps(&mut self, steps: &mut Vec<DraftStep>) {
        for step in steps.iter_mut() {
            match &mut step.what {
                DraftAction::Ask(_) => step.name = step.name.take().and_then(|name| self.unique_name(&name)),
                DraftAction::Steps(inner) => self.normalize_steps(inner),
            }
        }
        steps.retain(|step| !matches!(&step.what, DraftAction::Steps(inner) if inner.is_empty()));
    }

    fn unique_name(&mut self, name: &str) -> Option<String> {
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

const METHODS_WITH_KEYS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

fn write_steps(steps: &[DraftStep], path: &str, out: &mut String) {
    for step in steps {
        _ = writeln!(out, "\n[[{path}]]");
        let mut line = |key: &str, value: &str| _ = writeln!(out, "{key} = {value}");
        if let Some(name) = &step.name {
            line("name", &toml_text(name));
        }
        if let Some(weight) = step.weight {
            line("weight", &weight.to_string());
        }
        if step.once {
            line("once", "true");
        }
        for (key, value) in [("if", &step.condition), ("unless", &step.unless)] {
            if let Some(value) = value {
                line(key, &toml_text(&format!("{{{{ {value} }}}}")));
            }
        }
        if let Some(think) = &step.think {
            line("think", &toml_text(think));
        }
        match &step.what {
            DraftAction::Ask(request) => {
                if let Some(times) = step.times {
                    line("repeat", &times.to_string());
                }
                write_request(request, path, out);
            }
            DraftAction::Steps(inner) => {
                if let Some(times) = step.times {
                    line("times", &times.to_string());
                }
                write_steps(inner, &format!("{path}.step"), out);
            }
        }
    }
}

/// The TOML text of one request, under construction. Short tables take one line of the file; long
/// tables follow below under their own heading.
struct TomlRequestWriter<'a> {
    path: &'a str,
    lines: String,
    below: String,
}

impl TomlRequestWriter<'_> {
    fn write_key_value(&mut self, key: &str, value: &str) {
        _ = writeln!(self.lines, "{key} = {value}");
    }

    /// Writes a short table in one line of the file, and a long table under its own heading. A
    /// table with a line break always gets a heading.
    fn write_table(&mut self, key: &str, entries: &[(String, String)]) {
        const LINE_CHARS: usize = 110;
        let entries = toml_entries(entries);
        let line = toml_inline(&entries);
        if line.chars().count() <= LINE_CHARS && !line.contains('\n') {
            return self.write_key_value(key, &line);
        }
        _ = writeln!(self.below, "[{}.{key}]", self.path);
        entries.iter().for_each(|entry| _ = writeln!(self.below, "{entry}"));
    }
}

fn write_request(request: &DraftRequest, path: &str, out: &mut String) {
    let parts: &[DraftPart] = if let DraftBody::Parts(parts) = &request.body { parts } else { &[] };
    let body_text = if let DraftBody::Text(text) = &request.body { Some(text) } else { None };
    let texts = || {
        let of_parts = parts.iter().filter_map(|part| match &part.content {
            DraftPartContent::Text(text) => Some(text),
            DraftPartContent::File(_) => None,
        });
        let of_headers = request.headers.iter().map(|(_, text)| text);
        std::iter::once(&request.target).chain(of_headers).chain(of_parts).chain(body_text)
    };
    let begins_with_at = body_text.is_some_and(|text| text.beginning().starts_with('@'));
    let raw = request.may_be_raw()
        && (begins_with_at || request.expects_braces() || texts().any(DraftText::contains_double_braces));
    let mut keys = TomlRequestWriter { path, lines: String::new(), below: String::new() };
    let target = request.target.file_text(raw);
    if METHODS_WITH_KEYS.contains(&request.method.as_str()) {
        keys.write_key_value(&request.method.to_ascii_lowercase(), &toml_text(&target));
    } else {
        keys.write_key_value("method", &toml_text(&request.method));
        keys.write_key_value("url", &toml_text(&target));
    }
    if raw {
        keys.write_key_value("raw", "true");
    }
    let text_of = |text: &DraftText| toml_text(&text.file_text(raw));
    if !request.headers.is_empty() {
        let fields = request.headers.iter().map(|(name, text)| (name.clone(), text_of(text))).collect();
        keys.write_table("headers", &merge_entries_by_name(fields));
    }
    match &request.body {
        DraftBody::None => {}
        DraftBody::Text(text) if begins_with_at && !raw => {
            keys.write_key_value(
                "body",
                &toml_text(&format!("{{{{ '@' }}}}{}", text.without_literal_prefix(1).file_text(false))),
            );
        }
        DraftBody::Text(text) => keys.write_key_value("body", &text_of(text)),
        DraftBody::File(path) => keys.write_key_value("body", &toml_text(&format!("@{path}"))),
        DraftBody::Parts(parts) => {
            let parts = parts.iter().map(|part| (part.name.clone(), render_form_part(part, raw))).collect();
            keys.write_table("multipart", &merge_entries_by_name(parts));
        }
    }
    if !request.captures.is_empty() {
        let capture = |DraftCapture { name, from, default }: &DraftCapture| match default {
            None => (name.clone(), toml_text(from)),
            Some(default) => {
                (name.clone(), format!("{{ from = {}, default = {} }}", toml_line(from), toml_line(default)))
            }
        };
        keys.write_table("capture", &request.captures.iter().map(capture).collect::<Vec<_>>());
    }
    let expect = &request.expect;
    let mut expected = Vec::new();
    expected.extend(expect.status.as_ref().map(|status| ("status".to_owned(), toml_text(status))));
    if !expect.json.is_empty() {
        expected.push(("json".to_owned(), toml_inline(&toml_entries(&expect.json))));
    }
    if !expect.headers.is_empty() {
        let fields: Vec<_> = expect.headers.iter().map(|(name, text)| (name.clone(), toml_line(text))).collect();
        expected.push(("header".to_owned(), toml_inline(&toml_entries(&fields))));
    }
    expected.extend(expect.body.as_ref().map(|body| ("body".to_owned(), toml_text(body))));
    expected.extend(expect.within_ms.map(|ms| ("within".to_owned(), toml_text(&format!("{ms}ms")))));
    if !expected.is_empty() {
        keys.write_table("expect", &expected);
    }
    if let Some(ms) = request.timeout_ms {
        keys.write_key_value("timeout", &toml_text(&format!("{ms}ms")));
    }
    if let Some(hops) = request.follow {
        keys.write_key_value("follow", &hops.to_string());
    }
    if request.may_continue {
        keys.write_key_value("on_fail", &toml_text("continue"));
    }
    out.push_str(&keys.lines);
    out.push_str(&keys.below);
}

/// Renders a form part as a TOML value: a string, the string `@FILE`, or an inline table.
fn render_form_part(part: &DraftPart, raw: bool) -> String {
    let (key, text) = match &part.content {
        DraftPartContent::Text(text) => ("text", text.file_text(raw)),
        DraftPartContent::File(path) => ("file", path.clone()),
    };
    if part.kind.is_none() && part.file_name.is_none() {
        match key {
            // A text that begins with `@` is rendered as a table, because `@` would mark a file.
            "text" if !text.starts_with('@') || raw => return toml_text(&text),
            "file" if !raw => return toml_text(&format!("@{text}")),
            _ => {}
        }
    }
    let mut entries = vec![(key.to_owned(), toml_line(&text))];
    entries.extend(part.kind.iter().map(|kind| ("type".to_owned(), toml_line(kind))));
    entries.extend(part.file_name.iter().map(|name| ("filename".to_owned(), toml_line(name))));
    toml_inline(&toml_entries(&entries))
}

/// Merges entries of the same name into one entry, whose value is a TOML list.
fn merge_entries_by_name(pairs: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (name, value) in pairs {
        let place = *places.entry(name.clone()).or_insert(all.len());
        match all.get_mut(place) {
            Some((_, values)) => values.push(value),
            None => all.push((name, vec![value])),
        }
    }
    let joined = |values: Vec<String>| match values.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    all.into_iter().map(|(name, values)| (name, joined(values))).collect()
}

/// Renders a text as a TOML string in the most readable syntax. Texts with line breaks become
/// multi-line strings.
pub fn toml_text(text: &str) -> String {
    let has_control = |but: &[char]| text.chars().any(|c| is_control_character(c) && !but.contains(&c));
    if text.contains('\n') && !text.contains("'''") && !text.ends_with('\'') && !has_control(&['\n', '\t']) {
        return format!("'''\n{text}'''");
    }
    toml_line(text)
}

/// Renders a text as a TOML string in one line.
pub fn toml_line(text: &str) -> String {
    if text.contains(['"', '\\']) && !text.contains('\'') && !text.chars().any(|c| is_control_character(c) && c != '\t')
    {
        return format!("'{text}'");
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_control_character(c) && u32::from(c) <= 0xffff => _ = write!(out, "\\u{:04X}", u32::from(c)),
            c if is_control_character(c) => _ = write!(out, "\\U{:08X}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn toml_key(name: &str) -> String {
    let is_bare = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    if is_bare { name.to_owned() } else { toml_line(name) }
}

/// Renders the entries of a TOML table. If keys are equal, the last entry counts.
fn toml_entries(entries: &[(String, String)]) -> Vec<String> {
    let mut unique: Vec<(String, &str)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (name, value) in entries {
        let key = toml_key(name);
        let place = *places.entry(key.clone()).or_insert(unique.len());
        match unique.get_mut(place) {
            Some((_, own)) => *own = value,
            None => unique.push((key, value)),
        }
    }
    unique.into_iter().map(|(key, value)| format!("{key} = {value}")).collect()
}

/// Renders entries as a TOML table in one line.
fn toml_inline(entries: &[String]) -> String {
    format!("{{ {} }}", entries.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{FileContext, TrafficFile, TrafficFormat};
    use proptest::prelude::*;

    pub struct EmptyFileContext;

    impl FileContext for EmptyFileContext {
        fn file(&mut self, _: &str) -> Result<Vec<u8>, String> {
            Err("is not there".into())
        }

        fn read_data_rows(&mut self, _: &str) -> Result<String, String> {
            Err("is not there".into())
        }

        fn check_regex(&mut self, _: &str) -> Result<(), String> {
            Ok(())
        }

        fn environment_variable(&mut self, name: &str) -> Option<String> {
            Some(name.to_owned())
        }
    }

    #[test]
    fn literal_braces_and_at_signs_are_escaped() {
        let step = |target: DraftText, body: DraftText| DraftStep {
            what: DraftAction::Ask(Box::new(DraftRequest {
                method: "POST".into(),
                target,
                body: DraftBody::Text(body),
                ..DraftRequest::default()
            })),
            ..DraftStep::default()
        };
        let mut drawn = DraftText::literal("@a {{b {");
        drawn.push_value("int(1,1)");
        let fixed = step(DraftText::literal("/{{x"), DraftText::literal("@a {{b"));
        let filled = step(DraftText::literal("/"), drawn);
        let draft = Draft { requests: vec![fixed, filled], ..Draft::default() };
        let imported = draft.finish("nothing").expect("a file");
        assert!(imported.text.contains("raw = true"), "{}", imported.text);
        assert!(imported.text.contains("{{ '@' }}a {{ '{{' }}b {{ '{' }}{{ int(1,1) }}"), "{}", imported.text);
        TrafficFile::read(&imported.text, TrafficFormat::Toml, &mut EmptyFileContext).expect("it is read");
    }

    #[test]
    fn draft_names_are_unique() {
        let mut names = DraftNames::default();
        let given: Vec<_> = ["a", "a (2)", "a", "a", " \n", "a"].iter().map(|name| names.unique_name(name)).collect();
        let expect = [Some("a"), Some("a (2)"), Some("a (3)"), Some("a (4)"), None, Some("a (5)")];
        assert_eq!(given, expect.map(|name| name.map(str::to_owned)));
    }

    proptest! {
        #[test]
        fn any_draft_text_parses_back(text in "(\\PC|[\\x00-\\x1f\\x7f'\"\\\\]){0,40}") {
            let toml = format!("a = {}\n", toml_text(&text));
            let tree = crate::file::toml::parse_toml_tree(&toml).expect("TOML");
            prop_assert_eq!(tree.open_table("a table").unwrap().get("a").unwrap().text("a").unwrap(), text);
        }
    }
}
