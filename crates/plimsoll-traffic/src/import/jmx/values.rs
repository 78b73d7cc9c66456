//! Converts texts of a JMeter test plan with `${name}` and `${__function(...)}` to templates.

use super::super::curl::form_encoded;
use super::super::draft::{DraftData, DraftText};
use super::super::nodes::{plain_name, variable_name};
use crate::file::TextPosition;
use plimsoll_model::ParseBudget;
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The deepest nesting of variables that is expanded. A variable is nested if the value of another
/// variable refers to it.
const DEPTH_MAX: usize = 8;

/// The names that a test plan defines, with the value or the source of the value of each name.
#[derive(Debug, Default)]
pub struct TestPlanVariables {
    /// The values of user-defined variables by name.
    pub variables: HashMap<String, String>,
    /// Random variables and counters by name, as template values.
    pub generated_values: HashMap<String, String>,
    /// The names of variables that extractors set from responses.
    pub captured: HashSet<String>,
    /// The names of variables that conditions of steps test.
    pub condition_variables: HashSet<String>,
    /// The extractor names that are visible in the current thread group. The visibility of
    /// extractor names differs between thread groups.
    pub extractor_names: ExtractorNames,
    /// The traffic-file names that extractors outside of setup and teardown thread groups set.
    pub captured_in_load: HashSet<String>,
    /// The prefix that distinguishes names in setup or cleanup requests from names of the load. The
    /// prefix is `None` while the requests of the load are imported.
    pub phase_prefix: Option<&'static str>,
    /// The columns of data tables as template values, by variable name.
    pub columns: HashMap<String, String>,
    pub data: Vec<DraftData>,
    /// The name of the first data table whose column names are in its data file, not in the test
    /// plan. A variable that the test plan does not define may be a column of this data table.
    pub table_with_own_heading: Option<String>,
    /// The remaining memory budget for the expansion of all texts.
    pub budget: Cell<ParseBudget>,
    /// The position of the current request in the test plan.
    pub at: Cell<TextPosition>,
    /// The position at which the memory budget ran out, and the clause that begins the error
    /// message. `None` if the budget suffices.
    pub budget_exceeded_at: Cell<Option<(TextPosition, &'static str)>>,
}

/// The names that extractors set, and the visibility of each name in the current thread group. A
/// traffic-file name (`plain_name`) has only supported characters, so several extractor names can
/// share one traffic-file name.
#[derive(Debug, Default)]
pub struct ExtractorNames {
    /// Whether a thread group is being imported. Outside of thread groups every extractor name is
    /// visible, and the import of each thread group checks the names later.
    is_in_group: bool,
    /// For each traffic-file name: the number of extractor names in the plan.
    all: HashMap<String, usize>,
    /// The extractor names that are visible in every thread group.
    for_all: HashSet<String>,
    /// For each traffic-file name: the number of names in `for_all`.
    for_all_plain: HashMap<String, usize>,
    /// The further extractor names that are visible in the current thread group.
    in_group: HashSet<String>,
    /// For each traffic-file name: the number of names in `in_group`.
    in_group_plain: HashMap<String, usize>,
}

impl ExtractorNames {
    /// Creates the list of extractor names. `captured` has all names, and `for_all` the names
    /// visible in every thread group.
    pub fn new(captured: &HashSet<String>, for_all: HashSet<String>) -> ExtractorNames {
        let for_all: HashSet<String> = for_all.into_iter().filter(|name| captured.contains(name)).collect();
        let (is_in_group, in_group, in_group_plain) = Default::default();
        let counts = |names: &HashSet<String>| {
            let mut counts = HashMap::new();
            names.iter().for_each(|name| *counts.entry(plain_name(name)).or_insert(0) += 1);
            counts
        };
        ExtractorNames {
            is_in_group,
            all: counts(captured),
            for_all_plain: counts(&for_all),
            for_all,
            in_group,
            in_group_plain,
        }
    }

    /// Enters a thread group whose extractors set `names`.
    pub fn enter_thread_group(&mut self, names: HashSet<String>, captured: &HashSet<String>) {
        self.is_in_group = true;
        self.in_group =
            names.into_iter().filter(|name| captured.contains(name) && !self.for_all.contains(name)).collect();
        self.in_group_plain.clear();
        self.in_group.iter().for_each(|name| *self.in_group_plain.entry(plain_name(name)).or_insert(0) += 1);
    }

    fn is_visible(&self, name: &str) -> bool {
        !self.is_in_group || self.for_all.contains(name) || self.in_group.contains(name)
    }

    /// Returns whether any extractor of the plan sets this traffic-file name.
    fn has_extractor_for(&self, plain: &str) -> bool {
        self.all.contains_key(plain)
    }

    /// Returns whether an extractor that is not visible in the current thread group sets this
    /// traffic-file name.
    fn has_invisible_extractor(&self, plain: &str) -> bool {
        let count = |names: &HashMap<String, usize>| names.get(plain).copied().unwrap_or(0);
        self.is_in_group && count(&self.for_all_plain) + count(&self.in_group_plain) < count(&self.all)
    }
}

/// A converted text, and notes about references that could not be converted.
pub type ConvertedText = (DraftText, BTreeSet<String>);

fn undefined_variable_note(name: &str) -> String {
    format!(
        "nothing sets the variable {name} in this thread group: the reference ${{{name}}} is sent as text",
        name = printable_name(name)
    )
}

impl TestPlanVariables {
    /// Converts a text from an enclosing element for use in the current thread group. A note names
    /// each variable whose extractor is not visible in the current thread group.
    pub fn resolve_in_thread_group(&self, text: &DraftText) -> ConvertedText {
        let name_of = |value: &str| value.split(" | ").next().unwrap_or(value).to_owned();
        let lacks = std::cell::RefCell::new(BTreeSet::new());
        let text = text.replace_template_values(|value| {
            let name = name_of(value);
            if self.extractor_names.has_invisible_extractor(&name) {
                lacks.borrow_mut().insert(undefined_variable_note(&name));
                return Err(format!("${{{name}}}"));
            }
            match self.extractor_names.has_extractor_for(&name) {
                true => Ok(format!("{}{}", self.captured_name(&name), &value[name.len()..])),
                false => Ok(value.to_owned()),
            }
        });
        (text, lacks.into_inner())
    }

    /// Converts a text with references to a template.
    pub fn convert_to_template(&self, source: &str) -> ConvertedText {
        let mut out = (DraftText::default(), BTreeSet::new());
        self.expand_references(source, 0, &mut out);
        out
    }

    /// Returns the text with its references resolved; `None` if the resolved text has template
    /// values.
    pub fn text_without_templates(&self, source: &str) -> Option<String> {
        self.convert_to_template(source).0.as_literal().map(str::to_owned)
    }

    pub fn literal_number(&self, source: &str) -> Option<f64> {
        self.text_without_templates(source)?.trim().parse::<f64>().ok().filter(|number| number.is_finite())
    }

    /// Returns the name of a capture in the traffic file. Names in setup and cleanup get a prefix
    /// if the load has the same name.
    pub fn captured_name(&self, plain: &str) -> String {
        match self.phase_prefix {
            Some(around) if self.captured_in_load.contains(plain) => format!("{around}_{plain}"),
            _ => plain.to_owned(),
        }
    }

    /// Subtracts bytes from the memory budget of the import. Returns false if the budget is
    /// exhausted.
    pub fn spend_budget(&self, bytes: usize) -> bool {
        self.spend_budget_for(bytes, "the variables of this JMeter plan refer to each other too often")
    }

    /// Subtracts bytes from the memory budget, for an element that each request copies. `reason` is
    /// the clause with which the error message begins.
    pub fn spend_budget_for(&self, bytes: usize, reason: &'static str) -> bool {
        // The smallest charge for a piece of text, bytes, so that very many empty pieces exhaust
        // the budget.
        const PIECE_BYTES: usize = 64;
        let mut budget = self.budget.get();
        let has_room = budget.spend_bytes(bytes.saturating_add(PIECE_BYTES)).is_ok();
        if !has_room && self.budget_exceeded_at.get().is_none() {
            self.budget_exceeded_at.set(Some((self.at.get(), reason)));
        }
        self.budget.set(budget);
        has_room
    }

    fn expand_references(&self, source: &str, depth: usize, out: &mut ConvertedText) {
        if !self.spend_budget(source.len()) {
            return;
        }
        let mut rest = source;
        let mut has_reference = false;
        while let Some(at) = next_reference_offset(rest) {
            let (before, after) = (&rest[..at], &rest[at + 2..]);
            let Some(end) = closing_brace_offset(after) else { break };
            if !self.spend_budget(0) {
                return;
            }
            has_reference = true;
            out.0.push(&unescape_text(before));
            let inside = after[..end].trim();
            rest = &after[end + 1..];
            match inside.strip_prefix("__") {
                Some(call) => self.append_function_call(call, inside, depth, out),
                None => self.append_variable(inside, depth, out),
            }
        }
        match has_reference {
            true => out.0.push(&unescape_text(rest)),
            false => out.0.push(rest),
        }
    }

    fn append_variable(&self, name: &str, depth: usize, out: &mut ConvertedText) {
        let is_captured = self.captured.contains(name);
        if is_captured && self.extractor_names.is_visible(name) {
            out.0.push_value(&self.captured_name(&plain_name(name)));
        } else if let Some(column) = self.columns.get(name) {
            out.0.push_value(column);
        } else if let Some(drawn) = self.generated_values.get(name) {
            out.0.push_value(drawn);
        } else if let (Some(value), true) = (self.variables.get(name), depth < DEPTH_MAX) {
            self.expand_references(value, depth + 1, out);
        } else if let (Some(data), false) = (&self.table_with_own_heading, name.contains(['.', '(', '}', '|'])) {
            out.0.push_value(&format!("{data}.{name}"));
        } else if is_captured {
            // JMeter sends a reference to an undefined name as literal text.
            out.1.insert(undefined_variable_note(name));
            out.0.push(&format!("${{{name}}}"));
        } else {
            let variable = variable_name(name);
            out.1.insert(format!(
                "nothing sets the variable {name}: it becomes the environment variable {variable}",
                name = printable_name(name)
            ));
            out.0.push_value(&format!("env.{variable}"));
        }
    }

    /// Converts a function call. `call` lacks the two leading underscores, and `whole` is the whole
    /// text between the braces.
    fn append_function_call(&self, call: &str, whole: &str, depth: usize, out: &mut ConvertedText) {
        let (name, arguments) = match call.split_once('(') {
            Some((name, rest)) => (name, split_arguments(rest.strip_suffix(')').unwrap_or(rest))),
            None => (call, Vec::new()),
        };
        let inner = |number: usize| -> Option<String> {
            let mut inner = (DraftText::default(), BTreeSet::new());
            self.expand_references(arguments.get(number)?, depth + 1, &mut inner);
            inner.0.as_literal().map(|text| text.trim().to_owned())
        };
        let whole_number = |number: usize| inner(number)?.parse::<i64>().ok();
        if depth > DEPTH_MAX {
            return out.0.push(whole);
        }
        let value = match name {
            "Random" => match (whole_number(0), whole_number(1)) {
                (Some(from), Some(to)) => Some(format!("int({},{})", from.min(to), from.max(to))),
                _ => None,
            },
            "RandomString" => {
                if arguments.get(1).is_some_and(|chars| !chars.trim().is_empty()) {
                    out.1.insert(
                        "the function __RandomString draws letters and digits in plimsoll, not the characters in the \
                         JMeter plan"
                            .to_owned(),
                    );
                }
                whole_number(0).filter(|n| (1..=1 << 20).contains(n)).map(|count| format!("text({count})"))
            }
            "UUID" => Some("uuid()".to_owned()),
            "time" => convert_time_format(&inner(0).unwrap_or_default()).map(|format| format!("now(\"{format}\")")),
            "counter" | "threadNum" => {
                out.1.insert(format!("the JMeter function __{name} becomes the number of the request in the load"));
                Some("seq()".to_owned())
            }
            "env" => inner(0).map(|name| format!("env.{}", variable_name(&name))),
            "P" | "property" => {
                let default = arguments.get(if name == "P" { 1 } else { 2 }).filter(|text| !text.trim().is_empty());
                match (default, inner(0)) {
                    (Some(default), _) => return self.expand_references(default.trim(), depth + 1, out),
                    (None, Some(name)) => {
                        let variable = variable_name(&name);
                        out.1.insert(format!(
                            "the JMeter property {name} becomes the environment variable {variable}",
                            name = printable_name(&name)
                        ));
                        Some(format!("env.{variable}"))
                    }
                    (None, None) => None,
                }
            }
            "urlencode" => match arguments.first() {
                Some(inner) => {
                    let mut plain = ConvertedText::default();
                    self.expand_references(inner, depth + 1, &mut plain);
                    // Java's URL encoder writes a blank as `+`.
                    out.0.append(&plain.0.escape_with_filter(|text| form_encoded(text.as_bytes()), "url"));
                    return out.1.append(&mut plain.1);
                }
                None => None,
            },
            "eval" | "V" => match arguments.first() {
                Some(inner) => return self.expand_references(inner, depth + 1, out),
                None => None,
            },
            _ => None,
        };
        match value {
            Some(value) => out.0.push_value(&value),
            None => {
                out.1.insert(format!(
                    "the JMeter function __{name} is not supported: the function is left out",
                    name = printable_name(name)
                ));
            }
        }
    }
}

fn printable_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(60).collect()
}

/// Returns the offset of the brace that closes a `${`.
fn closing_brace_offset(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '{' if before == '$' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
        before = c;
    }
    None
}

/// Splits arguments at commas that are neither escaped nor in brackets.
fn split_arguments(text: &str) -> Vec<String> {
    let (mut all, mut depth) = (vec![String::new()], 0usize);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let last = all.len() - 1;
        match c {
            '\\' => all[last].extend(rest.next()),
            ',' if depth == 0 => all.push(String::new()),
            c => {
                depth = match c {
                    '{' | '(' => depth + 1,
                    '}' | ')' => depth.saturating_sub(1),
                    _ => depth,
                };
                all[last].push(c);
            }
        }
    }
    all
}

/// Converts a Java `SimpleDateFormat` to the format of the template function `now`. An empty format
/// means milliseconds since 1970.
fn convert_time_format(format: &str) -> Option<String> {
    match format {
        "" => return Some("%s%L".to_owned()),
        "/1000" => return Some("%s".to_owned()),
        "YMD" => return Some("%Y%m%d".to_owned()),
        "HMS" => return Some("%H%M%S".to_owned()),
        "YMDHMS" => return Some("%Y%m%d-%H%M%S".to_owned()),
        _ => {}
    }
    let mut out = String::new();
    let mut rest = format;
    while let Some(c) = rest.chars().next() {
        if c == '\'' {
            let (text, after) = rest[1..].split_once('\'')?;
            out.push_str(if text.is_empty() { "'" } else { text });
            rest = after;
            continue;
        }
        let end = rest.find(|other| other != c).unwrap_or(rest.len());
        let piece = match &rest[..end] {
            "yyyy" => "%Y",
            "MM" => "%m",
            "dd" => "%d",
            "HH" => "%H",
            "mm" => "%M",
            "ss" => "%S",
            "SSS" => "%L",
            "Z" | "X" | "XX" | "XXX" => "Z",
            other if !other.contains(|c: char| c.is_alphabetic() || "%\"{}|".contains(c)) => other,
            _ => return None,
        };
        out.push_str(piece);
        rest = &rest[end..];
    }
    (!out.contains(['"', '{', '}', '|'])).then_some(out)
}

/// Returns the offset of the next `${` that is not escaped.
fn next_reference_offset(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'$', b'\\', &text.as_bytes()[from..])?;
        match &text.as_bytes()[at..] {
            [b'$', b'{', ..] => return Some(at),
            [b'\\', b'$' | b',' | b'\\', ..] => from = at + 2,
            _ => from = at + 1,
        }
    }
}

/// Removes backslashes before `$`, `,` and `\`. JMeter removes backslashes before `$`, `,` and `\`
/// only in texts with references to variables or functions.
fn unescape_text(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text.chars().peekable());
    while let Some(c) = rest.next() {
        let escaped = if c == '\\' { rest.next_if(|next| ['$', ',', '\\'].contains(next)) } else { None };
        out.push(escaped.unwrap_or(c));
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jmeter_expressions_are_substituted() {
        let mut values = TestPlanVariables::default();
        values.variables.insert("host".into(), "${__P(host,localhost)}".into());
        values.variables.insert("loop".into(), "${loop}".into());
        values.captured.insert("token".into());
        values.extractor_names = ExtractorNames::new(&values.captured, values.captured.clone());
        values.columns.insert("user".into(), "users.user".into());
        for (source, expect, left_out) in [
            ("/a", "/a", 0),
            ("${host}:80", "localhost:80", 0),
            ("\\${host}", "\\${host}", 0),
            ("\\${host} \\\\ \\, \\n ${host}", "${host} \\ , \\n localhost", 0),
            ("a\\\\${host}", "a\\localhost", 0),
            ("Bearer ${token}", "Bearer {{ token }}", 0),
            ("${user}", "{{ users.user }}", 0),
            ("${__Random(1,${__P(n,9)})}", "{{ int(1,9) }}", 0),
            ("${__Random(9,1,v)}", "{{ int(1,9) }}", 0),
            ("${__UUID}${__UUID()}", "{{ uuid() }}{{ uuid() }}", 0),
            ("${__time(yyyy-MM-dd'T'HH:mm:ss.SSSZ)}", "{{ now(\"%Y-%m-%dT%H:%M:%S.%LZ\") }}", 0),
            ("${__time}", "{{ now(\"%s%L\") }}", 0),
            ("${__time(EEE)}x", "x", 1),
            ("${__groovy(vars.get('a'))}x", "x", 1),
            ("${unknown one}", "{{ env.unknown_one }}", 1),
            ("${__P(users)}", "{{ env.users }}", 1),
            ("${open", "${open", 0),
            ("$ { } $${a}", "$ { } ${{ env.a }}", 1),
        ] {
            let (text, left) = values.convert_to_template(source);
            assert_eq!((text.display_text().as_str(), left.len()), (expect, left_out), "{source}: {left:?}");
        }
        // The expansion of a variable that refers to itself must end.
        assert!(values.text_without_templates("${loop}").is_none());
    }
}
