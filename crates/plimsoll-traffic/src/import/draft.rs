//! The draft of a traffic file, which an importer builds from the file of another tool. The draft
//! has requests of a mix or steps of scenarios, and a note for every part that could not be
//! imported.
//!
//! The draft contains only content of the original file. Each note has the position of the omitted
//! part in the original file, and one sentence for the user. Not here: texts with template values
//! (`text`), the syntax of the traffic file (`toml`), and parsing the formats of other tools.

mod text;
mod toml;

pub use text::DraftText;
pub use toml::toml_line;

use crate::file::TextPosition;
use plimsoll_model::ArrivalSpacing;
use std::collections::HashMap;
use std::fmt::Write;

/// A part of the original file that could not be imported.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImportOmission {
    /// The position of the omitted part in the original file.
    pub at: TextPosition,
    /// A sentence for the user: the missing part, and the effect of the omission on the imported
    /// traffic.
    pub text: String,
}

/// The result of an import: a traffic file, and notes about omissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportResult {
    /// The text of the traffic file, in TOML.
    pub text: String,
    /// The number of imported requests, including the requests in steps.
    pub requests: usize,
    /// The parts of the original file that could not be imported, in order of their position.
    pub left_out: Vec<ImportOmission>,
}

/// The body of a drafted request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DraftBody {
    /// The request has no body.
    #[default]
    None,
    /// The request has this text as its body.
    Text(DraftText),
    /// The body is the content of a file; the field is its path next to the traffic file.
    File(String),
    /// The body is a multipart form with these parts.
    Parts(Vec<DraftPart>),
}

/// One part of a multipart form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftPart {
    /// The name of the form field.
    pub name: String,
    /// The value of the form field.
    pub content: DraftPartContent,
    /// The media type of the part. `None` if the original file states no media type.
    pub kind: Option<String>,
    /// The file name that the request states for the part. `None` stands for the name of the
    /// uploaded file itself.
    pub file_name: Option<String>,
}

/// The value of a form field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftPartContent {
    /// The form field has this text as its value.
    Text(DraftText),
    /// The form field is the content of a file; the variant contains its path.
    File(String),
}

impl Default for DraftPartContent {
    fn default() -> DraftPartContent {
        DraftPartContent::Text(DraftText::default())
    }
}

impl DraftPart {
    /// Creates a form field whose value is a text.
    pub fn text(name: &str, text: DraftText) -> DraftPart {
        DraftPart { name: name.to_owned(), content: DraftPartContent::Text(text), ..DraftPart::default() }
    }

    /// Creates a form field whose value is the content of the file at `path`.
    pub fn file(name: &str, path: &str) -> DraftPart {
        DraftPart { name: name.to_owned(), content: DraftPartContent::File(path.to_owned()), ..DraftPart::default() }
    }

    /// Returns whether the value of the field is the content of a file.
    pub fn is_file(&self) -> bool {
        matches!(self.content, DraftPartContent::File(_))
    }
}

/// A value to capture from a response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftCapture {
    /// The name of the variable that takes the captured value.
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
    /// The expected status codes, in the syntax of a traffic file.
    pub status: Option<String>,
    /// JSON paths, each with its expected value in TOML syntax.
    pub json: Vec<(String, String)>,
    /// The expected header fields: each name with a text that the value must contain, or with
    /// `regex:...`.
    pub headers: Vec<(String, String)>,
    /// A text that the body must contain, or `regex:...`.
    pub body: Option<String>,
    /// The longest accepted response time, ms.
    pub within_ms: Option<u64>,
}

/// A drafted request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftRequest {
    /// The HTTP method.
    pub method: String,
    /// The URL, or a path below the base URL.
    pub target: DraftText,
    /// The header fields: names and values.
    pub headers: Vec<(String, DraftText)>,
    /// The body.
    pub body: DraftBody,
    /// The values that later requests take from the response.
    pub captures: Vec<DraftCapture>,
    /// The expectations of the response.
    pub expect: DraftExpect,
    /// The time after which the request fails, ms. `None` stands for the default.
    pub timeout_ms: Option<u64>,
    /// The largest number of redirects to follow. `None` means that redirects are not followed.
    pub redirects_max: Option<u32>,
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

    /// Returns whether the request has a header field of this name; upper and lower case are equal.
    pub fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
    }
}

/// A step of a scenario, or a request of a mix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftStep {
    /// The position of the step in the original file.
    pub at: Option<TextPosition>,
    /// The name of the step, which reports show.
    pub name: Option<String>,
    /// The weight of a request in a mix, which sets how often the request is sent relative to the
    /// other requests.
    pub weight: Option<u32>,
    /// The pause before the step, in the syntax of a traffic file.
    pub think: Option<String>,
    /// Whether each user runs the step only in the user's first session.
    pub once: bool,
    /// A template value that controls the step: the step runs only if the value is not empty.
    pub condition: Option<String>,
    /// A template value that controls the step: the step runs only if the value is empty.
    pub unless: Option<String>,
    /// The number of times that the step runs. `None` stands for one time.
    pub times: Option<u32>,
    /// The request of the step, or its inner steps.
    pub action: DraftAction,
}

/// The action of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftAction {
    /// Sends a request.
    Request(Box<DraftRequest>),
    /// Runs inner steps.
    Steps(Vec<DraftStep>),
}

impl Default for DraftAction {
    fn default() -> DraftAction {
        DraftAction::Steps(Vec::new())
    }
}

/// A scenario: the steps of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftScenario {
    /// The name of the scenario, which reports show.
    pub name: String,
    /// The weight of the scenario, which sets how often it runs relative to the other scenarios.
    pub weight: u32,
    /// Whether users keep cookies.
    pub cookies: bool,
    /// The steps, in their order.
    pub steps: Vec<DraftStep>,
}

/// A table of data rows from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftData {
    /// The name of the table.
    pub name: String,
    /// The path of the file with the rows.
    pub file: String,
    /// How sessions choose a row, in the syntax of a traffic file.
    pub pick: &'static str,
    /// Whether every use of the table takes a new data row. If false, each session takes one row.
    pub each_use: bool,
}

/// The load settings of the original file, in the syntax of a traffic file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftLoad {
    /// The number of users of a closed loop. A load with `users` has no `rate`.
    pub users: Option<String>,
    /// The arrival rate of an open loop: sessions per second, or requests per second for a mix of
    /// requests.
    pub rate: Option<String>,
    /// The spacing of the session arrivals of the open loop. `None` if the original file states no
    /// spacing.
    pub arrivals: Option<ArrivalSpacing>,
    /// The number of sessions after which the load ends; for a mix, the number of requests.
    pub sessions: Option<u64>,
    /// The duration of the load. `None` if the stages in `users` or `rate` define the duration.
    pub duration: Option<String>,
}

/// A traffic file under construction by an importer.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// The comment lines for the beginning of the file.
    pub about: Vec<String>,
    /// The base URL of the requests.
    pub base: Option<String>,
    /// The tables of data rows.
    pub data: Vec<DraftData>,
    /// The requests of a mix (requests drawn at random by weight). Empty if the file has scenarios.
    pub requests: Vec<DraftStep>,
    /// The scenarios of a session. Empty if the file has a mix.
    pub scenarios: Vec<DraftScenario>,
    /// The setup requests, as a flat list without groups.
    pub setup: Vec<DraftStep>,
    /// The cleanup requests, as a flat list without groups.
    pub cleanup: Vec<DraftStep>,
    /// The load settings.
    pub load: DraftLoad,
    /// The parts of the original file that could not be imported.
    pub left_out: Vec<ImportOmission>,
    /// For each omission that may repeat, by the text of its note: the index in `left_out`, and the
    /// number of occurrences.
    pub repeated_omissions: HashMap<String, (usize, u64)>,
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
    pub fn note_omission(&mut self, at: TextPosition, text: impl Into<String>) {
        self.left_out.push(ImportOmission { at, text: shorten_note(text.into()) });
    }

    /// Adds a note about an omission that may repeat. Omissions with equal texts share one note, to
    /// which the number of omissions is appended later.
    pub fn note_repeated_omission(&mut self, at: TextPosition, text: impl Into<String>) {
        let text = shorten_note(text.into());
        if let Some((_, count)) = self.repeated_omissions.get_mut(&text) {
            *count += 1;
            return;
        }
        self.repeated_omissions.insert(text.clone(), (self.left_out.len(), 1));
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

    /// Returns the number of requests in the draft, including the requests in steps. Setup and
    /// cleanup requests do not count.
    pub fn total_requests(&self) -> usize {
        count_requests(&self.requests)
            + self.scenarios.iter().map(|scenario| count_requests(&scenario.steps)).sum::<usize>()
    }

    /// Appends the counts of repeated omissions to their notes.
    pub fn append_omission_counts(&mut self) {
        for (at, count) in std::mem::take(&mut self.repeated_omissions).into_values() {
            if count > 1 {
                _ = write!(self.left_out[at].text, " ({count} times)");
            }
        }
    }
}

/// Returns the number of requests in steps and nested steps.
fn count_requests(steps: &[DraftStep]) -> usize {
    let of_one = |step: &DraftStep| match &step.action {
        DraftAction::Request(_) => 1,
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
            match &mut step.action {
                DraftAction::Request(_) => step.name = step.name.take().and_then(|name| self.unique_name(&name)),
                DraftAction::Steps(inner) => self.normalize_steps(inner),
            }
        }
        steps.retain(|step| !matches!(&step.action, DraftAction::Steps(inner) if inner.is_empty()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{FileContext, TrafficFile, TrafficFormat};

    pub struct EmptyFileContext;

    impl FileContext for EmptyFileContext {
        fn read_file(&mut self, _: &str) -> Result<Vec<u8>, String> {
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
            action: DraftAction::Request(Box::new(DraftRequest {
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
}
