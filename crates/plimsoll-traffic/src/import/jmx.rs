//! Imports JMeter test plans. A thread group becomes a scenario whose weight is the number of
//! threads. Each pass of a thread through its loop becomes a session.
//!
//! As in JMeter, a configuration element applies to its siblings and to all elements below its
//! siblings. Not here: scripts, protocols other than HTTP, listeners.

mod checks;
mod level;
mod reader;
mod sampler;
mod steps;
mod threads;
mod timers;
mod values;
mod xml;

use super::draft::{DraftAction, DraftData, DraftScenario, DraftStep, ImportResult};
use super::nodes::plain_name;
use crate::file::tree::{LinePositions, TextPosition, TrafficFileError};
use level::TestLevel;
use plimsoll_model::{ParseBudget, library_panic};
use reader::{DEPTH_MAX, JmxReader};
use roxmltree::{Document, ParsingOptions};
use std::collections::HashSet;
use values::ExtractorNames;
use xml::{Element, elements, property, short_text};

/// The largest accepted number of XML nodes.
const NODES_MAX: u32 = 2_000_000;

/// Imports the text of a test plan.
pub fn import_jmx(source: &str) -> Result<ImportResult, TrafficFileError> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    let beginning = TextPosition { line: 1, column: 1 };
    if let Some(byte) = xml::excess_attributes_offset(source) {
        let text = format!(
            "an XML element has more than {attributes_max} attributes, which no JMeter test plan has",
            attributes_max = xml::ATTRIBUTES_MAX
        );
        return Err(TrafficFileError::new(TextPosition::from_byte(source, byte), text));
    }
    let parsed = library_panic::catch_library_panic("XML", || Document::parse_with_options(source, options));
    let parsed = parsed.map_err(|error| TrafficFileError::new(beginning, error.to_string()))?;
    let document = parsed.map_err(|error| {
        // If the file is truncated, the only reliable error is the early end of the file, so the
        // error gets that position.
        let is_cut = matches!(error, roxmltree::Error::UnclosedRootNode | roxmltree::Error::UnexpectedEndOfStream);
        let at = match is_cut {
            true => TextPosition::from_byte(source, source.trim_end().len()),
            false => TextPosition { line: error.pos().row as usize, column: error.pos().col as usize },
        };
        let text = error.to_string();
        let text = text.rsplit_once(" at ").map_or(text.as_str(), |(text, _)| text);
        let reason = short_text(text);
        let text = match is_cut {
            true => format!("this is not complete XML: {reason}: the file is cut off: save the file again"),
            false => format!("this is not complete XML: {reason}"),
        };
        TrafficFileError::new(at, text)
    })?;
    let root = document.root_element();
    if root.tag_name().name() != "jmeterTestPlan" {
        let text = format!(
            "this is not a test plan of JMeter: the file begins with <{element}>",
            element = short_text(root.tag_name().name())
        );
        return Err(TrafficFileError::new(TextPosition::from_byte(source, root.range().start), text));
    }
    let mut reader = JmxReader::default();
    reader.values.budget = ParseBudget::proportional_to_input(source.len()).into();
    let top: Vec<Element> = root.children().filter(|node| node.has_tag_name("hashTree")).flat_map(elements).collect();
    reader.collect_names(&top, 0);
    collect_load_extractor_names(&top, 0, &mut reader.values.captured_in_load);
    let mut seen_by_all = HashSet::new();
    collect_global_extractor_names(&top, 0, true, &mut seen_by_all);
    reader.values.extractor_names = ExtractorNames::new(&reader.values.captured, seen_by_all);
    reader.draft.data = std::mem::take(&mut reader.values.data);
    let mut levels = Vec::new();
    reader.import_plan(&top, &mut levels, 0);
    if let Err(error) = reader.values.budget.get().check() {
        let (at, reason) = reader
            .values
            .budget_exceeded_at
            .get()
            .unwrap_or((xml::provisional_position(root), "this JMeter plan is too large"));
        let text = format!("{reason}, at this position or before: {error}");
        return Err(TrafficFileError::new(xml::line_and_column(at, &LinePositions::new(source)), text));
    }
    reader.finish_import(&LinePositions::new(source))
}

impl JmxReader {
    /// Collects the names that variables, data sets and extractors define anywhere in the plan.
    fn collect_names(&mut self, elements: &[Element], depth: usize) {
        for element in elements {
            match element.kind() {
                "TestPlan" | "Arguments" => {
                    for argument in element.collection_items("Arguments.arguments") {
                        let part = |name: &str| property(argument, name).unwrap_or_default();
                        let name = part("Argument.name").trim().to_owned();
                        self.values.variables.insert(name, part("Argument.value").to_owned());
                    }
                }
                "CSVDataSet" => self.import_data_set(element),
                "RandomVariableConfig" => {
                    let part = |name: &str| element.property(name).unwrap_or_default();
                    let (from, to) = (part("minimumValue").trim(), part("maximumValue").trim());
                    if let (Ok(from), Ok(to)) = (from.parse::<i64>(), to.parse::<i64>()) {
                        let drawn = format!("int({},{})", from.min(to), from.max(to));
                        self.values.generated_values.insert(part("variableName").trim().to_owned(), drawn);
                    }
                }
                "CounterConfig" => {
                    let name = element.property("CounterConfig.name").unwrap_or_default().trim();
                    self.values.generated_values.insert(name.to_owned(), "seq()".to_owned());
                    self.draft.note_omission(
                        element.place(),
                        "a JMeter counter becomes the number of the session in the load",
                    );
                }
                "IfController" => {
                    let mut rest = element.property("IfController.condition").unwrap_or_default();
                    while let Some((_, after)) = rest.split_once("${") {
                        let end = after.find('}').unwrap_or(after.len());
                        self.values.condition_variables.insert(after[..end].trim().to_owned());
                        rest = &after[end..];
                    }
                }
                "ForeachController" => {
                    // A ForEach controller is imported as one pass, so its output variable has the
                    // first value of its input.
                    let part = |name: &str| element.property(name).unwrap_or_default().trim();
                    let (input, each) = (part("ForeachController.inputVal"), part("ForeachController.returnVal"));
                    let first = format!("{input}_1");
                    let input = if self.values.variables.contains_key(&first) { &first } else { input };
                    if !each.is_empty() && !input.is_empty() && each != input {
                        self.values.variables.entry(each.to_owned()).or_insert_with(|| format!("${{{input}}}"));
                    }
                }
                _ => self.values.captured.extend(checks::extractor_names(element)),
            }
            if depth < DEPTH_MAX {
                self.collect_names(&element.child_elements(), depth + 1);
            }
        }
    }

    /// Imports a CSV data set as a table of data rows.
    fn import_data_set(&mut self, element: &Element) {
        let part = |name: &str| element.property(name).unwrap_or_default().trim();
        let file = self.values.text_without_templates(part("filename")).unwrap_or_default().replace('\\', "/");
        let at = element.place();
        if file.is_empty() {
            return self
                .draft
                .note_omission(at, "the rows of a data file whose name has a placeholder are not imported");
        }
        let stem = file.rsplit('/').next().unwrap_or(&file).split('.').next().unwrap_or_default();
        let stem = plain_name(stem);
        let name = self.data_names.reserve_unique(stem);
        let columns: Vec<&str> =
            part("variableNames").split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        for column in &columns {
            // A column name that contains `.`, `(`, `}` or `|` would end its template value too
            // early.
            if !column.contains(['.', '(', '}', '|']) {
                self.values.columns.insert((*column).to_owned(), format!("{name}.{column}"));
            }
        }
        if columns.is_empty() {
            self.values.table_with_own_heading.get_or_insert(name.clone());
        } else {
            let heading = columns.join(",");
            let text = match element.is_property_true("ignoreFirstLine") {
                true => format!("the first line of the data file {file} must be the heading {heading}"),
                false => format!("the data file {file} needs a heading as its first line: {heading}"),
            };
            self.draft.note_omission(at, text);
        }
        if !["", "UTF-8", "utf-8"].contains(&part("fileEncoding")) {
            self.draft.note_omission(at, format!("the data file {file} must be in UTF-8"));
        }
        if !["", "shareMode.all"].contains(&part("shareMode")) {
            let mode = short_text(part("shareMode"));
            let text =
                format!("in plimsoll, all users share the rows of {file}: the sharing mode {mode} is not imported");
            self.draft.note_omission(at, text);
        }
        if !["", ",", "\\,"].contains(&part("delimiter")) {
            self.draft.note_omission(at, format!("separate the columns of the data file {file} with commas"));
        }
        // If the property `recycle` is false, JMeter stops a thread when the rows of the data file
        // run out.
        let is_once = part("recycle") == "false";
        self.values.data.push(DraftData {
            name,
            file,
            pick: if is_once { "unique" } else { "sequential" },
            each_use: false,
        });
    }

    /// Imports the thread groups, and the elements of the plan above them.
    fn import_plan<'a, 'i>(&mut self, elements: &[Element<'a, 'i>], levels: &mut Vec<TestLevel<'a, 'i>>, depth: usize) {
        let level = self.collect_level(elements);
        levels.push(level);
        for element in elements {
            match element.kind() {
                "TestPlan" if depth < DEPTH_MAX => self.import_plan(&element.child_elements(), levels, depth + 1),
                "SetupThreadGroup" => self.import_setup_or_teardown_group(element, levels, depth, "setup"),
                "PostThreadGroup" => self.import_setup_or_teardown_group(element, levels, depth, "cleanup"),
                kind if kind.ends_with("ThreadGroup") => self.import_thread_group(element, levels, depth),
                _ => {}
            }
        }
        levels.pop();
    }

    /// Sets the extractor names that requests of a thread group may use: names from the group's own
    /// extractors, and names visible in all thread groups.
    fn set_visible_extractor_names(&mut self, group: &Element) {
        let mut names = HashSet::new();
        collect_extractor_names_below(group, 0, &mut names);
        self.values.extractor_names.enter_thread_group(names, &self.values.captured);
    }

    fn import_thread_group<'a, 'i>(
        &mut self,
        element: &Element<'a, 'i>,
        levels: &mut Vec<TestLevel<'a, 'i>>,
        depth: usize,
    ) {
        let at = element.place();
        self.set_visible_extractor_names(element);
        let name = short_text(if element.name().is_empty() { "threads" } else { element.name() });
        let mut left_out = Vec::new();
        let threads = self.load.begin_group(element, &name, &self.values, &mut left_out);
        left_out.into_iter().for_each(|text| self.draft.note_omission(at, text));
        let on_error = element.property("ThreadGroup.on_sample_error").unwrap_or("continue");
        self.may_continue = on_error == "continue";
        if on_error.starts_with("stop") {
            self.draft
                .note_omission(at, format!("'{name}': in plimsoll, a failed request ends the session, not the load"));
        }
        if element.property("ThreadGroup.same_user_on_next_iteration") == Some("false") {
            self.draft.note_repeated_omission(
                at,
                "in plimsoll, unlike in this JMeter plan, a user keeps its cookies for the next session",
            );
        }
        let steps = self.import_steps(&element.child_elements(), levels, depth + 1);
        self.pause_ms = 0.0;
        let requests = count_with_repetitions(&steps);
        // Without an HTTP Cookie Manager, JMeter ignores the cookies that responses set.
        let cookies = levels.iter().any(|level| level.keeps_cookies) || has_cookie_manager(element, 0);
        self.load.end_group(requests);
        let weight = (threads.unwrap_or(1.0) as u32).clamp(1, 1_000_000);
        self.draft.scenarios.push(DraftScenario { name, weight, cookies, steps });
    }

    /// Imports a setup or teardown thread group as setup or cleanup requests.
    fn import_setup_or_teardown_group<'a, 'i>(
        &mut self,
        element: &Element<'a, 'i>,
        levels: &mut Vec<TestLevel<'a, 'i>>,
        depth: usize,
        phase: &'static str,
    ) {
        let at = element.place();
        let name = short_text(if element.name().is_empty() { phase } else { element.name() });
        self.values.phase_prefix = Some(phase);
        self.set_visible_extractor_names(element);
        self.may_continue = element.property("ThreadGroup.on_sample_error").unwrap_or("continue") == "continue";
        let steps = self.import_steps(&element.child_elements(), levels, depth + 1);
        (self.values.phase_prefix, self.pause_ms) = (None, 0.0);
        let number = |property: Option<&str>| property.and_then(|text| self.values.literal_number(text));
        let threads = number(element.property("ThreadGroup.num_threads")).unwrap_or(1.0);
        let loops = element.node.descendants().find_map(|node| property(node, "LoopController.loops"));
        let loops = number(loops).unwrap_or(1.0);
        let mut flat = FlatSteps::default();
        flat.add(steps, 1);
        let mut say = |text: String| self.draft.note_omission(at, text);
        // A loop over several requests cannot become repetitions of single requests, because the
        // order of the requests would change.
        let times = if loops > 1.0 && flat.steps.len() == 1 { loops.min(1e6) as u32 } else { 1 };
        if threads > 1.0 || loops > 1.0 && times == 1 {
            say(format!("'{name}' ({phase}): this thread group runs once, for one user"));
        }
        if flat.lost_condition {
            say(format!("'{name}' ({phase}): plimsoll ignores the conditions of the steps in this thread group"));
        }
        if flat.lost_group_repetition {
            say(format!("'{name}' ({phase}): steps that repeat as a group in JMeter repeat one by one in plimsoll"));
        }
        for step in &mut flat.steps {
            step.times = Some(step.times.unwrap_or(1).saturating_mul(times).min(1_000_000)).filter(|times| *times > 1);
        }
        match phase {
            "setup" => self.draft.setup.append(&mut flat.steps),
            _ => self.draft.cleanup.append(&mut flat.steps),
        }
    }

    fn finish_import(mut self, lines: &LinePositions) -> Result<ImportResult, TrafficFileError> {
        let origin = self.origin.take().filter(|origin| origin.starts_with("http"));
        self.draft.base = origin;
        self.draft
            .about
            .push("Imported from a JMeter test plan: each pass through a thread group's loop is a session.".to_owned());
        let (load, left_out) = self.load.draft_load();
        left_out.into_iter().for_each(|(at, text)| self.draft.note_omission(at, text));
        self.draft.load = load;
        self.draft
            .finish_at("plimsoll can import no request of this JMeter test plan", |at| xml::line_and_column(at, lines))
    }
}

/// A flat list of requests, made from nested steps.
#[derive(Default)]
struct FlatSteps {
    steps: Vec<DraftStep>,
    /// Whether any nested step had a condition, which the flat list loses.
    lost_condition: bool,
    /// Whether a group of several requests was repeated; in the flat list each request repeats
    /// alone.
    lost_group_repetition: bool,
}

impl FlatSteps {
    fn add(&mut self, steps: Vec<DraftStep>, times: u32) {
        for step in steps {
            self.lost_condition |= step.condition.is_some() || step.unless.is_some();
            let times = times.saturating_mul(step.times.unwrap_or(1));
            match step.action {
                DraftAction::Request(_) => self.steps.push(DraftStep {
                    name: step.name,
                    times: Some(times),
                    action: step.action,
                    ..DraftStep::default()
                }),
                DraftAction::Steps(inner) => {
                    let before = self.steps.len();
                    self.add(inner, times);
                    self.lost_group_repetition |= step.times.is_some() && self.steps.len() > before + 1;
                }
            }
        }
    }
}

/// Returns whether a cookie manager is anywhere below an element.
fn has_cookie_manager(element: &Element, depth: usize) -> bool {
    element
        .child_elements()
        .iter()
        .any(|element| element.kind() == "CookieManager" || depth < DEPTH_MAX && has_cookie_manager(element, depth + 1))
}

/// Collects the names that extractors outside of setup and teardown thread groups set.
fn collect_load_extractor_names(elements: &[Element], depth: usize, names: &mut HashSet<String>) {
    for element in elements.iter().filter(|element| !["SetupThreadGroup", "PostThreadGroup"].contains(&element.kind()))
    {
        names.extend(checks::extractor_names(element).iter().map(|name| plain_name(name)));
        if depth < DEPTH_MAX {
            collect_load_extractor_names(&element.child_elements(), depth + 1, names);
        }
    }
}

/// Collects the names that are visible in every thread group: the names of extractors above all
/// thread groups, and of extractors in setup groups.
fn collect_global_extractor_names(elements: &[Element], depth: usize, is_seen: bool, names: &mut HashSet<String>) {
    for element in elements {
        let is_group = element.kind().ends_with("ThreadGroup");
        let is_seen = if is_group { element.kind() == "SetupThreadGroup" } else { is_seen };
        if is_seen {
            names.extend(checks::extractor_names(element));
        }
        if depth < DEPTH_MAX {
            collect_global_extractor_names(&element.child_elements(), depth + 1, is_seen, names);
        }
    }
}

/// Collects the names that extractors below an element set.
fn collect_extractor_names_below(element: &Element, depth: usize, names: &mut HashSet<String>) {
    for element in &element.child_elements() {
        names.extend(checks::extractor_names(element));
        if depth < DEPTH_MAX {
            collect_extractor_names_below(element, depth + 1, names);
        }
    }
}

/// Returns the number of requests in steps, including repetitions.
fn count_with_repetitions(steps: &[DraftStep]) -> usize {
    let of_one = |step: &DraftStep| {
        let once = match &step.action {
            DraftAction::Request(_) => 1,
            DraftAction::Steps(inner) => count_with_repetitions(inner),
        };
        once.saturating_mul(step.times.unwrap_or(1) as usize)
    };
    steps.iter().map(of_one).sum()
}
