//! Removes everything from a draft that a traffic file cannot contain, and adds a note for each
//! removal. The removal ensures that plimsoll can read every file that an importer writes.
//!
//! [`Draft::finish`] cleans the draft, renders it, and parses the result as a check. Not here:
//! parsing the formats of other tools.

use super::draft::{
    Draft, DraftAction, DraftBody, DraftPartContent, DraftRequest, DraftStep, DraftText, ImportOmission, ImportResult,
};
use super::nodes::{is_http_token, is_valid_origin, variable_name};
use crate::file::{CAPTURES_MAX, FileContext, TextPosition, TrafficFile, TrafficFileError, TrafficFormat};
use plimsoll_model::expect::{CaptureSource, TextExpectation};
use plimsoll_model::json_path::JsonPath;
use plimsoll_model::pattern_budget::PatternBudget;
use plimsoll_model::session::{LOOP_NESTING_MAX, REPETITIONS_MAX, SCENARIO_OPS_MAX, ThinkTime};
use plimsoll_model::template::{Template, TemplatePart, TemplateValue, is_name};
use plimsoll_model::traffic::StatusSet;
use regex::bytes::RegexBuilder;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The longest template value that is searched for the name of a data column, bytes.
const VALUE_BYTES_MAX: usize = 1_000;
/// Header fields of message framing, which the HTTP client sets itself.
const FRAMING_HEADERS: [&str; 2] = ["content-length", "transfer-encoding"];

/// The results of checked regular expressions, and the remaining size budget for all patterns of a
/// load.
#[derive(Default)]
struct PatternChecker {
    is_valid_by_pattern: RefCell<HashMap<String, bool>>,
    budget: RefCell<PatternBudget>,
}

impl PatternChecker {
    fn is_supported(&self, pattern: &str) -> bool {
        if let Some(is_sound) = self.is_valid_by_pattern.borrow().get(pattern) {
            return *is_sound;
        }
        let is_sound = self.can_compile_pattern(pattern);
        self.is_valid_by_pattern.borrow_mut().insert(pattern.to_owned(), is_sound);
        is_sound
    }

    fn can_compile_pattern(&self, pattern: &str) -> bool {
        let build = |bytes: usize| match RegexBuilder::new(pattern).size_limit(bytes).build() {
            Ok(_) => Ok(Some(())),
            Err(regex::Error::CompiledTooBig(_)) => Ok(None),
            Err(error) => Err(error),
        };
        self.budget.borrow_mut().build(build).is_ok()
    }
}

/// The notes about removed parts, with or without a position.
#[derive(Default)]
struct CleanupNotes {
    patterns: PatternChecker,
    with_position: Vec<(TextPosition, String)>,
    without_position: BTreeSet<String>,
}

impl CleanupNotes {
    fn add_note(&mut self, at: Option<TextPosition>, text: String) {
        match at {
            Some(at) => self.with_position.push((at, text)),
            None => _ = self.without_position.insert(text),
        }
    }
}

impl Draft {
    /// Cleans and renders the draft. If the draft has no requests, the result is an error whose
    /// sentence begins with the argument `no_requests_text`.
    pub fn finish(self, no_requests_text: &str) -> Result<ImportResult, TrafficFileError> {
        self.finish_at(no_requests_text, |at| at)
    }

    /// Cleans and renders a draft with provisional positions, as [`Draft::finish`] does.
    /// `final_position` converts each provisional position to the final position, and is called in
    /// order of position.
    pub fn finish_at(
        mut self,
        no_requests_text: &str,
        final_position: impl Fn(TextPosition) -> TextPosition,
    ) -> Result<ImportResult, TrafficFileError> {
        let beginning = TextPosition { line: 1, column: 1 };
        let (unplaced, patterns) = remove_invalid_parts(&mut self);
        self.append_omission_counts();
        self.left_out.sort();
        self.left_out.iter_mut().for_each(|left| left.at = final_position(left.at));
        drop(self.left_out.splice(..0, unplaced.into_iter().map(|text| ImportOmission { at: beginning, text })));
        self.make_names_unique();
        if self.requests.is_empty() && self.scenarios.is_empty() {
            let why = self.left_out.first().map(|left| format!("; {}:{}: {}", left.at.line, left.at.column, left.text));
            return Err(TrafficFileError::new(beginning, format!("{no_requests_text}{}", why.unwrap_or_default())));
        }
        let (text, requests) = (self.file_text(), self.total_requests());
        match check_parses(&text, &self, patterns) {
            Ok(()) => Ok(ImportResult { text, requests, left_out: self.left_out }),
            Err(why) => Err(TrafficFileError::new(
                beginning,
                format!("plimsoll cannot make a traffic file from this input: {reason}", reason = why.text),
            )),
        }
    }
}

/// Removes invalid parts from a draft. Returns the notes without a position, and the checked
/// patterns.
fn remove_invalid_parts(draft: &mut Draft) -> (BTreeSet<String>, PatternChecker) {
    let mut notes = CleanupNotes::default();
    if let Some(base) = draft.base.take_if(|base| !is_valid_origin(base)) {
        notes.add_note(
            None,
            format!("'{host}' is not a valid host: give the target's URL", host = printable_excerpt(&base)),
        );
    }
    let data: HashSet<String> = draft.data.iter().map(|data| data.name.clone()).collect();
    let scenarios = draft.scenarios.iter_mut().map(|scenario| &mut scenario.steps);
    let lists = scenarios.chain([&mut draft.requests, &mut draft.setup, &mut draft.cleanup]);
    lists.for_each(|steps| clean_requests(steps, 0, &mut notes));
    for scenario in &mut draft.scenarios {
        let mut left = ScenarioLimits { ops: SCENARIO_OPS_MAX, captured: HashSet::new() };
        left.remove_beyond_limits(&mut scenario.steps, &mut notes);
    }
    let mut before = HashSet::new();
    clean_in_order(&mut draft.setup, &data, &mut before, &mut notes);
    for scenario in &mut draft.scenarios {
        // Every step can use every capture of its scenario.
        let mut names = before.clone();
        collect_captured_names(&scenario.steps, &mut names);
        replace_undefined_values(&mut scenario.steps, &data, &names, &mut notes);
    }
    replace_undefined_values(&mut draft.requests, &data, &before, &mut notes);
    let mut names = before;
    clean_in_order(&mut draft.cleanup, &data, &mut names, &mut notes);
    for (at, text) in notes.with_position {
        draft.note_repeated_omission(at, text);
    }
    (notes.without_position, notes.patterns)
}

fn printable_excerpt(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
}

/// Removes invalid parts from steps, and removes steps that remain invalid. `depth` is the number
/// of enclosing repetitions.
fn clean_requests(steps: &mut Vec<DraftStep>, depth: usize, notes: &mut CleanupNotes) {
    steps.retain_mut(|step| {
        let (at, step_name) = (step.at, step.name.as_deref().map(printable_excerpt).unwrap_or_default());
        if let Some(times) = step.times.as_mut() {
            *times = (*times).clamp(1, REPETITIONS_MAX);
        }
        if step.times.is_some_and(|times| times > 1) && depth >= LOOP_NESTING_MAX {
            step.times = None;
            notes.add_note(
                at,
                format!(
                    "'{step_name}': this loop runs only once, because loops can be nested at most {LOOP_NESTING_MAX} levels \
                     deep"
                ),
            );
        }
        if let Some(think) = step.think.take_if(|think| ThinkTime::parse(think).is_err()) {
            let pause = printable_excerpt(&think);
            notes.add_note(
                at,
                format!("'{step_name}': the pause {pause} before this request is not valid, and is left out"),
            );
        }
        let inner_depth = depth + usize::from(step.times.is_some_and(|times| times > 1));
        match &mut step.action {
            DraftAction::Steps(inner) => {
                clean_requests(inner, inner_depth, notes);
                true
            }
            DraftAction::Request(request)
                if !is_http_token(&request.method) || request.method.eq_ignore_ascii_case("connect") =>
            {
                let method = printable_excerpt(&request.method);
                notes.add_note(at, format!("'{step_name}' is not imported: its method '{method}' is not valid"));
                false
            }
            DraftAction::Request(request) => {
                clean_request(request, at, &step_name, notes);
                true
            }
        }
    });
}

fn clean_request(request: &mut DraftRequest, at: Option<TextPosition>, step_name: &str, notes: &mut CleanupNotes) {
    let CleanupNotes { patterns, with_position: placed, without_position: unplaced } = notes;
    let is_pattern = |pattern: &str| patterns.is_supported(pattern);
    let mut say = |text: String| {
        let text = format!("'{step_name}': {text}");
        match at {
            Some(at) => placed.push((at, text)),
            None => _ = unplaced.insert(text),
        }
    };
    let is_options = request.method.eq_ignore_ascii_case("options");
    let begins = request.target.beginning();
    if !begins.starts_with('/')
        && request.target.first_value().is_none()
        && !(is_options && request.target.as_literal() == Some("*"))
    {
        let mut target = DraftText::literal("/");
        target.append(&request.target);
        request.target = target;
    }
    let mut has_host = false;
    request.headers.retain(|(name, value)| {
        if name.eq_ignore_ascii_case("host") && std::mem::replace(&mut has_host, true) {
            say("a second header Host is not sent: a request can have only one header Host".to_owned());
            return false;
        }
        if FRAMING_HEADERS.iter().any(|framing| name.eq_ignore_ascii_case(framing)) {
            let name = printable_excerpt(name);
            say(format!("the header {name} is not imported: plimsoll sets this header from the body"));
            return false;
        }
        let is_sendable = is_http_token(name) && !['\r', '\n', '\0'].iter().any(|c| value.contains(*c));
        if !is_sendable {
            let name = printable_excerpt(name);
            say(format!(
                "the header '{name}' is not sent: its name is not a valid header name, or its value has several lines"
            ));
        }
        is_sendable
    });
    if let DraftBody::Parts(parts) = &mut request.body {
        for part in parts.iter_mut() {
            let is_line = |text: &String| !text.contains(['\r', '\n', '\0']);
            if part.kind.take_if(|kind| !is_line(kind)).is_some()
                | part.file_name.take_if(|name| !is_line(name)).is_some()
            {
                say(format!(
                    "the media type or file name of the form part '{part}' is not sent, because it has several lines",
                    part = printable_excerpt(&part.name)
                ));
            }
        }
        parts.retain(|part| {
            let is_sound = !matches!(&part.content, DraftPartContent::File(path) if path.contains(['\r', '\n', '\0']));
            if !is_sound {
                let part = printable_excerpt(&part.name);
                say(format!("the form part '{part}' is not sent: its file name contains a line break"));
            }
            is_sound
        });
        if parts.is_empty() {
            request.body = DraftBody::None;
        }
    }
    let is_head = request.method == "HEAD";
    let mut names: HashSet<String> = HashSet::new();
    // If several captures have equal names, the last capture counts, as in the tools whose files
    // are imported.
    request.captures.reverse();
    request.captures.retain(|capture| {
        let variable = printable_excerpt(&capture.name);
        let text = match CaptureSource::parse(&capture.from) {
            _ if !is_name(&capture.name) => {
                format!(
                    "the variable '{variable}' is not captured: its name must begin with a letter, and have only \
                     letters, digits, _ and -"
                )
            }
            Err(_) => format!(
                "the variable '{variable}' is not captured: plimsoll does not support its place in the response"
            ),
            Ok(from) if from.pattern().is_some_and(|pattern| !is_pattern(pattern)) => {
                format!("the variable '{variable}' is not captured: its regular expression is not supported")
            }
            Ok(from) if is_head && from.reads_content() => {
                format!("the variable '{variable}' is not captured: the response to a HEAD request has no content")
            }
            Ok(_) if !names.insert(capture.name.clone()) => {
                format!("the variable '{variable}' is captured twice in this request: only the last capture counts")
            }
            Ok(_) => return true,
        };
        say(text);
        false
    });
    request.captures.reverse();
    let braces = !request.may_be_raw();
    let has_braces = |text: &str| braces && text.contains("{{");
    let fits = |text: &str| {
        let pattern = TextExpectation::parse(text);
        !has_braces(text) && pattern.pattern().is_none_or(is_pattern)
    };
    let expect = &mut request.expect;
    if expect.status.take_if(|status| StatusSet::parse(status).is_err()).is_some() {
        say("the expected statuses are not valid, so the status of the response is not checked".to_owned());
    }
    expect.headers.retain(|(name, text)| {
        let is_kept = is_http_token(name) && fits(text);
        if !is_kept {
            let header = printable_excerpt(name);
            say(format!("the expected text of the header '{header}' is not supported, and is not checked"));
        }
        is_kept
    });
    let mut paths: HashSet<String> = HashSet::new();
    expect.json.retain(|(path, value)| {
        let is_kept = !is_head && JsonPath::parse(path).is_ok() && !has_braces(value) && paths.insert(path.clone());
        if !is_kept {
            let json_path = printable_excerpt(path);
            say(format!("the expected value of the JSON path '{json_path}' is not supported, and is not checked"));
        }
        is_kept
    });
    if expect.body.take_if(|body| is_head || !fits(body)).is_some() {
        say("the expected text of the response content is not supported, and is not checked".to_owned());
    }
    let mut names: HashSet<String> = HashSet::new();
    expect.headers.retain(|(name, _)| {
        let is_kept = names.insert(name.clone());
        if !is_kept {
            say(format!(
                "a second expected text for the header '{header}' is not checked: only the first text is checked",
                header = printable_excerpt(name)
            ));
        }
        is_kept
    });
}

/// The number of operations that a scenario may still have, and the names that its steps capture so
/// far.
struct ScenarioLimits {
    ops: usize,
    captured: HashSet<String>,
}

impl ScenarioLimits {
    /// Removes steps and captures beyond the limits of a scenario.
    fn remove_beyond_limits(&mut self, steps: &mut Vec<DraftStep>, notes: &mut CleanupNotes) {
        steps.retain_mut(|step| {
            let around = usize::from(step.once)
                + usize::from(step.condition.is_some())
                + usize::from(step.unless.is_some())
                + usize::from(step.think.is_some())
                + usize::from(step.times.is_some_and(|times| times > 1));
            if self.ops <= around {
                let text = format!(
                    "steps beyond the first {SCENARIO_OPS_MAX} of a scenario are not imported (conditions and pauses count, too)"
                );
                notes.add_note(step.at, text);
                return false;
            }
            self.ops -= around;
            match &mut step.action {
                DraftAction::Steps(inner) => self.remove_beyond_limits(inner, notes),
                DraftAction::Request(request) => {
                    self.ops -= 1;
                    request.captures.retain(|capture| {
                        let is_kept = self.captured.contains(&capture.name) || self.captured.len() < CAPTURES_MAX;
                        match is_kept {
                            true => _ = self.captured.insert(capture.name.clone()),
                            false => notes.add_note(
                                step.at,
                                format!(
                                    "the variable '{capture}' is not captured: a scenario captures at most \
                                     {CAPTURES_MAX} names",
                                    capture = printable_excerpt(&capture.name)
                                ),
                            ),
                        }
                        is_kept
                    });
                }
            }
            true
        });
    }
}

fn collect_captured_names(steps: &[DraftStep], names: &mut HashSet<String>) {
    for step in steps {
        match &step.action {
            DraftAction::Request(request) => names.extend(request.captures.iter().map(|capture| capture.name.clone())),
            DraftAction::Steps(inner) => collect_captured_names(inner, names),
        }
    }
}

/// Removes invalid template values from requests that run in sequence. Each request can use values
/// that earlier requests capture.
fn clean_in_order(
    steps: &mut [DraftStep],
    data: &HashSet<String>,
    names: &mut HashSet<String>,
    notes: &mut CleanupNotes,
) {
    for step in steps {
        replace_undefined_values(std::slice::from_mut(step), data, names, notes);
        collect_captured_names(std::slice::from_ref(step), names);
    }
}

/// Replaces each undefined template value by an environment variable.
fn replace_undefined_values(
    steps: &mut [DraftStep],
    data: &HashSet<String>,
    names: &HashSet<String>,
    notes: &mut CleanupNotes,
) {
    let is_known = |value: &str| match Template::parse(&format!("{{{{ {value} }}}}")) {
        Err(_) => false,
        Ok(template) => template.values().all(|value| match value {
            TemplateValue::Captured(name) => names.contains(name),
            TemplateValue::Column { data: name, .. } => data.contains(name),
            _ => true,
        }),
    };
    for step in steps {
        let at = step.at;
        for condition in [&mut step.condition, &mut step.unless] {
            if let Some(name) = condition.take_if(|name| !is_known(name)) {
                let name = printable_excerpt(&name);
                notes.add_note(
                    at,
                    format!("nothing sets the variable '{name}' in the condition of a step: the step always runs"),
                );
            }
        }
        let mut settle = |text: &mut DraftText| {
            if text.values().all(is_known) {
                return;
            }
            *text = text.replace_template_values(|value| {
                if is_known(value) {
                    return Ok(value.to_owned());
                }
                let name = value.split(" | ").next().unwrap_or(value);
                let variable = variable_name(name.strip_prefix("env.").unwrap_or(name));
                let name = printable_excerpt(name);
                notes.add_note(
                    at,
                    format!("nothing sets the variable '{name}': it becomes the environment variable {variable}"),
                );
                Ok(format!("env.{variable}{}", if value.ends_with(" | url") { " | url" } else { "" }))
            });
        };
        match &mut step.action {
            DraftAction::Steps(inner) => replace_undefined_values(inner, data, names, notes),
            DraftAction::Request(request) => {
                settle(&mut request.target);
                request.headers.iter_mut().for_each(|(_, text)| settle(text));
                match &mut request.body {
                    DraftBody::Text(text) => settle(text),
                    DraftBody::Parts(parts) => parts.iter_mut().for_each(|part| {
                        if let DraftPartContent::Text(text) = &mut part.content {
                            settle(text);
                        }
                    }),
                    DraftBody::None | DraftBody::File(_) => {}
                }
            }
        }
    }
}

/// A stand-in for the real files and environment while a draft of a traffic file is checked. Every
/// file and environment variable seems to exist, and every data file seems to have the columns that
/// the draft uses. No file is read.
struct PermissiveFileContext {
    columns: HashMap<String, BTreeSet<String>>,
    patterns: PatternChecker,
}

impl FileContext for PermissiveFileContext {
    fn read_file(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }

    fn read_data_rows(&mut self, path: &str) -> Result<String, String> {
        let columns = self.columns.get(path).into_iter().flatten();
        let cells: Vec<String> = columns.map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect();
        match path.ends_with(".jsonl") || path.ends_with(".ndjson") {
            true => {
                let pairs: Vec<String> = cells.iter().map(|cell| format!("{cell}: \"x\"")).collect();
                Ok(format!("{{{}}}\n", if pairs.is_empty() { "\"x\": \"x\"".to_owned() } else { pairs.join(",") }))
            }
            false if cells.is_empty() => Ok("x\nx\n".to_owned()),
            false => Ok(format!("{}\n{}\n", cells.join(","), vec!["x"; cells.len()].join(","))),
        }
    }

    fn check_regex(&mut self, text: &str) -> Result<(), String> {
        if self.patterns.is_supported(text) { Ok(()) } else { Err("is no pattern".to_owned()) }
    }

    fn environment_variable(&mut self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }
}

/// Returns the first `bytes` bytes of a text, or fewer to end at a character boundary.
fn text_prefix(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Checks that the rendered draft parses as a traffic file.
fn check_parses(text: &str, draft: &Draft, patterns: PatternChecker) -> Result<(), TrafficFileError> {
    let mut columns: HashMap<String, BTreeSet<String>> = HashMap::new();
    // The file of each data table, by table name. Several tables may share a file.
    let files: HashMap<&str, &str> = draft.data.iter().map(|data| (data.name.as_str(), data.file.as_str())).collect();
    for (at, _) in text.match_indices("{{ ").take_while(|_| !files.is_empty()) {
        let value = text_prefix(&text[at..], VALUE_BYTES_MAX);
        let end = value[3..].find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).map_or(0, |end| end + 3);
        let Some(file) = files.get(&value[3.min(end)..end]).filter(|_| value[end..].starts_with('.')) else { continue };
        let Some(length) = Template::value_length(value) else { continue };
        let parts = Template::split_into_parts(&value[..length]).ok().and_then(|parts| parts.into_iter().next());
        if let Some((TemplatePart::Value(TemplateValue::Column { column, .. }, _), _)) = parts {
            columns.entry((*file).to_owned()).or_default().insert(column);
        }
    }
    TrafficFile::read(text, TrafficFormat::Toml, &mut PermissiveFileContext { columns, patterns }).map(|_| ())
}
