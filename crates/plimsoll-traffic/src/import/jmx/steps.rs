//! Imports the steps of a JMeter thread group. Controllers become groups with conditions and
//! repetitions, and samplers become requests.

use super::super::draft::{DraftAction, DraftStep};
use super::super::nodes::plain_name;
use super::checks;
use super::level::TestLevel;
use super::reader::{DEPTH_MAX, JmxReader};
use super::xml::{Element, short_text};
use crate::file::TextPosition;

/// The largest number of repetitions of a loop; a larger number is reduced to this limit.
const TIMES_MAX: f64 = 1_000_000.0;
/// Elements that display results or control JMeter itself. The import ignores the listed elements
/// without a note.
const IGNORED_ELEMENTS: [&str; 8] = [
    "ResultCollector",
    "Summariser",
    "BackendListener",
    "ViewResultsFullVisualizer",
    "CookieManager",
    "TestPlan",
    "ResultSaver",
    "PropertyControlGui",
];
/// Controllers that run their steps in sequence.
const SEQUENTIAL_CONTROLLERS: [&str; 5] = [
    "GenericController",
    "TransactionController",
    "RecordingController",
    "CriticalSectionController",
    "LogicController",
];
/// Controllers that choose among their steps, repeat them, or limit their time. Each of the listed
/// controllers is imported as one pass through all its steps.
const CHOICE_CONTROLLERS: [&str; 8] = [
    "RandomController",
    "RandomOrderController",
    "InterleaveControl",
    "SwitchController",
    "ThroughputController",
    "RunTime",
    "WhileController",
    "ForeachController",
];

impl JmxReader {
    /// Converts the elements of one level of a JMeter test plan, and of the levels below, to steps.
    pub fn import_steps<'a, 'i>(
        &mut self,
        elements: &[Element<'a, 'i>],
        levels: &mut Vec<TestLevel<'a, 'i>>,
        depth: usize,
    ) -> Vec<DraftStep> {
        let level = self.collect_level(elements);
        levels.push(level);
        let mut steps = Vec::new();
        for element in elements {
            if depth > DEPTH_MAX {
                let text =
                    format!("JMeter elements that are nested more than {DEPTH_MAX} levels deep are not imported");
                self.draft.note_omission(element.place(), text);
                break;
            }
            let name = short_text(element.name());
            let at = element.place();
            let group = |steps: Vec<DraftStep>| DraftStep {
                at: Some(at),
                name: Some(name.clone()).filter(|name| !name.is_empty()),
                action: DraftAction::Steps(steps),
                ..DraftStep::default()
            };
            match element.kind() {
                "HTTPSamplerProxy" | "HTTPSampler" | "HTTPSampler2" => {
                    steps.extend(self.import_sampler(element, levels))
                }
                "LoopController" => {
                    let times =
                        element.property("LoopController.loops").and_then(|text| self.values.literal_number(text));
                    let times = times.filter(|times| {
                        *times >= 0.0 && !element.is_property_true("LoopController.continue_forever") || *times >= 1.0
                    });
                    let inner = self.import_steps(&element.child_elements(), levels, depth + 1);
                    if times.is_some_and(|times| times < 1.0) {
                        continue;
                    }
                    let (inner, first) = self.split_once_only_steps(inner, &name, at);
                    steps.extend(first);
                    match times {
                        Some(times) => {
                            let times = times.min(TIMES_MAX) as u32;
                            steps.push(DraftStep { times: Some(times).filter(|times| *times > 1), ..group(inner) });
                        }
                        None => {
                            self.draft.note_omission(
                                at,
                                format!(
                                    "'{name}': the number of repetitions of this loop is not known: its steps run once"
                                ),
                            );
                            steps.push(group(inner));
                        }
                    }
                }
                "OnceOnlyController" => {
                    let inner = self.import_steps(&element.child_elements(), levels, depth + 1);
                    steps.push(DraftStep { once: true, ..group(inner) });
                }
                "IfController" => {
                    let inner = self.import_steps(&element.child_elements(), levels, depth + 1);
                    let text = element.property("IfController.condition").unwrap_or_default();
                    let mut step = group(inner);
                    match self.parse_condition(text) {
                        Some((condition, unless)) => (step.condition, step.unless) = (condition, unless),
                        None => self.draft.note_omission(
                            at,
                            format!(
                                "'{name}': the condition of this If Controller is not supported: its steps always run"
                            ),
                        ),
                    }
                    steps.push(step);
                }
                kind if SEQUENTIAL_CONTROLLERS.contains(&kind) => {
                    let inner = self.import_steps(&element.child_elements(), levels, depth + 1);
                    steps.push(group(inner));
                }
                kind if CHOICE_CONTROLLERS.contains(&kind) => {
                    self.draft.note_omission(
                        at,
                        format!("'{name}' ({kind}): plimsoll runs all steps of this controller once, in order"),
                    );
                    let inner = self.import_steps(&element.child_elements(), levels, depth + 1);
                    steps.push(group(inner));
                }
                "TestAction" => {
                    let part = |name: &str| element.property(name).and_then(|text| self.values.literal_number(text));
                    match (part("ActionProcessor.action"), part("ActionProcessor.duration")) {
                        (Some(1.0), Some(ms)) => self.pause_ms += ms.clamp(0.0, 86_400_000.0),
                        (Some(1.0), _) => self.draft.note_omission(
                            at,
                            format!(
                                "'{name}': the pause of this action is not imported, because its duration is not a \
                                 fixed number"
                            ),
                        ),
                        _ => {
                            self.draft.note_omission(at, format!("'{name}' is not imported: this action stops threads"))
                        }
                    }
                }
                kind => self.handle_other_element(kind, element, &name),
            }
        }
        levels.pop();
        steps
    }

    /// Splits the steps of a loop. Returns the steps that repeat, and the steps that run once
    /// before the loop. JMeter runs a Once Only Controller in the first pass of its enclosing loop
    /// only.
    fn split_once_only_steps(
        &mut self,
        inner: Vec<DraftStep>,
        name: &str,
        at: TextPosition,
    ) -> (Vec<DraftStep>, Vec<DraftStep>) {
        let has_others_before = inner.iter().skip_while(|step| step.once).any(|step| step.once);
        if has_others_before {
            self.draft.note_omission(
                at,
                format!("'{name}': the steps of this loop that run once are executed before its other steps"),
            );
        }
        let (mut first, each): (Vec<DraftStep>, Vec<DraftStep>) = inner.into_iter().partition(|step| step.once);
        first.iter_mut().for_each(|step| step.once = false);
        (each, first)
    }

    /// Handles an element that does not become a step. Elements that other code imports, or that
    /// have no effect on the load, are ignored. Any other element gets a note.
    pub fn handle_other_element(&mut self, kind: &str, element: &Element, name: &str) {
        let is_config = [
            "HeaderManager",
            "AuthManager",
            "CacheManager",
            "CSVDataSet",
            "Arguments",
            "CounterConfig",
            "RandomVariableConfig",
        ];
        let is_defaults = kind == "ConfigTestElement" && element.node.attribute("guiclass") == Some("HttpDefaultsGui");
        let is_of_level = kind.ends_with("Timer") || kind.ends_with("Assertion");
        if IGNORED_ELEMENTS.contains(&kind)
            || is_config.contains(&kind)
            || is_defaults
            || is_of_level
            || kind.ends_with("Visualizer")
            || (kind == "DNSCacheManager" && !element.is_property_true("DNSCacheManager.isCustomResolver"))
        {
            return;
        }
        if !checks::extractor_names(element).is_empty() {
            let text = format!(
                "'{name}' ({kind}) is not imported: move this element below the request whose response the element \
                 reads"
            );
            return self.draft.note_omission(element.place(), text);
        }
        self.draft.note_omission(element.place(), format!("'{name}': a {} is not imported", short_text(kind)));
    }

    /// Parses the condition of an If Controller. Returns the pair (`if`, `unless`): steps run only
    /// if the template value `if` is not empty, or only if `unless` is empty. Both template values
    /// are `None` if the condition is always true. Returns `None` for a condition that is not
    /// supported.
    fn parse_condition(&self, text: &str) -> Option<(Option<String>, Option<String>)> {
        let text = text.trim();
        let is_always = ["", "true", "${__jexl3(true)}", "${JMeterThread.last_sample_ok}"];
        if is_always.contains(&text) {
            return Some((None, None));
        }
        let wrapped = ["${__jexl3(", "${__jexl2(", "${__groovy(", "${__javaScript("];
        let inner = wrapped.iter().find_map(|call| text.strip_prefix(call)?.strip_suffix('}')?.strip_suffix(')'));
        let text = inner.unwrap_or(text).trim_end_matches(',').trim();
        let (left, is_equal, right) = match (text.split_once("!="), text.split_once("==")) {
            (Some((left, right)), _) => (left, false, right),
            (None, Some((left, right))) => (left, true, right),
            (None, None) => return None,
        };
        let bare = |side: &str| side.trim().trim_matches(['"', '\'']).trim().to_owned();
        let (left, right) = (bare(left), bare(right));
        let name = left.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'))?;
        let is_nothing = right.is_empty() || right.eq_ignore_ascii_case("not_found") || right == format!("${{{name}}}");
        let is_known = self.values.captured.contains(name);
        (is_known && is_nothing && !name.contains(['$', '{'])).then(|| match is_equal {
            false => (Some(self.values.captured_name(&plain_name(name))), None),
            true => (None, Some(self.values.captured_name(&plain_name(name)))),
        })
    }
}
