//! Writes a draft as a traffic file in TOML. Not here: the contents of the draft (`super`).

use super::{
    Draft, DraftAction, DraftBody, DraftCapture, DraftLoad, DraftPart, DraftPartContent, DraftRequest, DraftStep,
    DraftText,
};
use plimsoll_model::control_characters::is_control_character;
use std::collections::HashMap;
use std::fmt::Write;

impl Draft {
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
        match &step.action {
            DraftAction::Request(request) => {
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
    let body_text = if let DraftBody::Text(text) = &request.body { Some(text) } else { None };
    let texts = || {
        let of_headers = request.headers.iter().map(|(_, text)| text);
        std::iter::once(&request.target).chain(of_headers).chain(body_text)
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
            let parts = parts.iter().map(|part| (part.name.clone(), render_form_part(part))).collect();
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
    if let Some(hops) = request.redirects_max {
        keys.write_key_value("follow", &hops.to_string());
    }
    if request.may_continue {
        keys.write_key_value("on_fail", &toml_text("continue"));
    }
    out.push_str(&keys.lines);
    out.push_str(&keys.below);
}

/// Renders a form part as a TOML value: a string, the string `@FILE`, or an inline table.
fn render_form_part(part: &DraftPart) -> String {
    let (key, text) = match &part.content {
        DraftPartContent::Text(text) => ("text", text.file_text(false)),
        DraftPartContent::File(path) => ("file", path.clone()),
    };
    if part.kind.is_none() && part.file_name.is_none() {
        match key {
            // A text that begins with `@` is rendered as a table, because `@` would mark a file.
            "text" if !text.starts_with('@') => return toml_text(&text),
            "file" => return toml_text(&format!("@{text}")),
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

/// Renders a text as a TOML string in the most readable syntax. A text with line breaks becomes a
/// multi-line string, unless such a string cannot contain the text.
fn toml_text(text: &str) -> String {
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
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_draft_text_parses_back(text in "(\\PC|[\\x00-\\x1f\\x7f'\"\\\\]){0,40}") {
            let toml = format!("a = {}\n", toml_text(&text));
            let tree = crate::file::toml::parse_toml_tree(&toml).expect("TOML");
            prop_assert_eq!(tree.open_table("a table").unwrap().get("a").unwrap().text("a").unwrap(), text);
        }
    }
}
