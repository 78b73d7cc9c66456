//! An example of what a schema describes: the one that stands there, else one that is drawn anew for each request.

use super::super::draft::DraftText;
use super::super::nodes::{at, entries, field, items, number, own_text, text};
use super::api::{Api, is_read_only};
use crate::file::quoted;
use crate::file::tree::{TextPlace, TreeNode, TreeValue};
use std::collections::{HashMap, HashSet};

/// Values that are inside each other, at most; what need not be there ends before.
const DEPTH_MAX: usize = 24;
const OPTIONAL_DEPTH_MAX: usize = 5;
/// Pieces of one example, at most: schemas that branch could go on for ever.
const PIECES_MAX: usize = 4_000;
/// What a piece takes, however short it is.
const PIECE_BYTES: usize = 64;
/// Choices of an enumeration that are written, at most.
const CHOICES_MAX: usize = 100;

/// Makes examples, and notes what they lack.
pub struct Sampler<'a, 'b> {
    api: &'b Api<'a>,
    pub left_out: Vec<(TextPlace, String)>,
    /// References that are being followed.
    open: Vec<String>,
    pieces: usize,
}

/// The example beside a schema, in any of the writings there are.
pub fn example_of(node: &TreeNode) -> Option<&TreeNode> {
    let listed = || match field(node, "examples").map(|examples| &examples.value) {
        Some(TreeValue::List(examples)) => examples.first(),
        Some(TreeValue::Table(examples)) => examples.first().and_then(|(_, example)| field(example, "value")),
        _ => None,
    };
    field(node, "example").or_else(|| field(node, "x-example")).or_else(listed)
}

/// What one schema says, as far as an example needs it.
enum SchemaKind {
    Fixed,
    Object,
    Array,
    Scalar,
}

impl<'a, 'b> Sampler<'a, 'b> {
    pub fn new(api: &'b Api<'a>) -> Sampler<'a, 'b> {
        Sampler { api, left_out: Vec::new(), open: Vec::new(), pieces: 0 }
    }

    /// An example as JSON.
    pub fn json(&mut self, schema: &'a TreeNode) -> DraftText {
        let mut out = DraftText::default();
        self.write(schema, 0, &mut out);
        out
    }

    /// An example that stands there, as JSON; one that is a text may be JSON already.
    pub fn json_example(&mut self, example: &TreeNode) -> DraftText {
        if let TreeValue::Text(text) = &example.value
            && text.trim_start().starts_with(['{', '['])
        {
            return DraftText::fixed(text);
        }
        let mut text = String::new();
        write_value(example, &mut text);
        DraftText::fixed(&text)
    }

    /// An example as plain text: that of a parameter.
    pub fn plain(&mut self, schema: &'a TreeNode) -> DraftText {
        // Lists and choices may hold themselves.
        if !self.has_room(0) {
            return DraftText::fixed("value");
        }
        let Some(schema) = self.resolved(schema) else { return DraftText::fixed("value") };
        if let Some(fixed) = fixed_value(schema) {
            return self.plain_example(fixed);
        }
        match (kind(schema), first_of(schema)) {
            (_, Some(inner)) => self.plain(inner),
            (SchemaKind::Array, _) => {
                field(schema, "items").map_or_else(|| DraftText::fixed("value"), |items| self.plain(items))
            }
            (SchemaKind::Object, _) => self.json(schema),
            _ => self.scalar(schema).0,
        }
    }

    pub fn plain_example(&mut self, example: &TreeNode) -> DraftText {
        match &example.value {
            TreeValue::List(items) => {
                let texts: Vec<&str> = items.iter().filter_map(own_text).collect();
                DraftText::fixed(&texts.join(","))
            }
            TreeValue::Table(_) => self.json_example(example),
            _ => DraftText::fixed(own_text(example).unwrap_or_default()),
        }
    }

    /// The fields of a form.
    pub fn fields(&mut self, schema: Option<&'a TreeNode>, example: Option<&'a TreeNode>) -> Vec<(String, DraftText)> {
        if let Some(example) = example.filter(|example| !entries(example).is_empty()) {
            return entries(example).iter().map(|(key, value)| (key.name.clone(), self.plain_example(value))).collect();
        }
        let Some(schema) = schema.and_then(|schema| self.resolved(schema)) else { return Vec::new() };
        let mut fields = Vec::new();
        for (name, node, _) in self.properties(schema, 0) {
            let Some(property) = self.resolved(node) else { continue };
            if is_read_only(property) {
                continue;
            }
            let is_file = text(property, "format") == Some("binary")
                || field(property, "contentMediaType").is_some() && field(property, "contentEncoding").is_none();
            let value = match is_file {
                true => {
                    let text = format!("'{name}' is a file: @{name} is to be beside this one");
                    self.left_out.push((property.at, text));
                    DraftText::fixed(&format!("@{name}"))
                }
                false => self.plain(property),
            };
            fields.push((name.to_owned(), value));
        }
        fields
    }

    fn resolved(&mut self, schema: &'a TreeNode) -> Option<&'a TreeNode> {
        let resolved = self.api.resolved(schema);
        if resolved.is_none() {
            self.left_out.push((schema.at, "a schema in another document".to_owned()));
        }
        resolved
    }

    /// Takes a piece of so many bytes; `false`: there is no more room.
    fn has_room(&mut self, bytes: usize) -> bool {
        self.pieces += 1;
        self.pieces <= PIECES_MAX && self.api.has_room(bytes + PIECE_BYTES)
    }

    fn write(&mut self, schema: &'a TreeNode, depth: usize, out: &mut DraftText) {
        if depth > DEPTH_MAX || !self.has_room(0) {
            return out.push("null");
        }
        let reference = text(schema, "$ref").map(str::to_owned);
        let Some(schema) = self.resolved(schema) else { return out.push("null") };
        let is_open = reference.as_ref().is_some_and(|reference| self.open.contains(reference));
        if is_open {
            return out.push(if matches!(kind(schema), SchemaKind::Array) { "[]" } else { "null" });
        }
        let opened = reference.map(|reference| self.open.push(reference)).is_some();
        self.write_resolved(schema, depth, out);
        if opened {
            self.open.pop();
        }
    }

    fn write_resolved(&mut self, schema: &'a TreeNode, depth: usize, out: &mut DraftText) {
        if let Some(fixed) = fixed_value(schema) {
            let mut text = String::new();
            write_value(fixed, &mut text);
            return out.push(if self.has_room(text.len()) { &text } else { "null" });
        }
        match kind(schema) {
            SchemaKind::Object => self.object(schema, depth, out),
            _ if first_of(schema).is_some() => {
                if let Some(inner) = first_of(schema) {
                    self.write(inner, depth + 1, out);
                }
            }
            SchemaKind::Array => {
                out.push("[");
                if let Some(items) = field(schema, "items") {
                    // As many as there must be, and one in any case.
                    let least = number(schema, "minItems").unwrap_or(1.0).clamp(1.0, 20.0) as usize;
                    for number in 0..least {
                        out.push(if number > 0 { "," } else { "" });
                        self.write(items, depth + 1, out);
                    }
                }
                out.push("]");
            }
            SchemaKind::Scalar | SchemaKind::Fixed => {
                let (value, is_text) = self.scalar(schema);
                if !is_text {
                    return out.append(&value);
                }
                let escape = |text: &str| {
                    let mut out = String::new();
                    quoted(text, &mut out);
                    out[1..out.len() - 1].to_owned()
                };
                out.push("\"");
                out.append(&value.mapped(escape, "json"));
                out.push("\"");
            }
        }
    }

    fn object(&mut self, schema: &'a TreeNode, depth: usize, out: &mut DraftText) {
        out.push("{");
        let mut comma = "";
        for (name, node, is_required) in self.properties(schema, 0) {
            let Some(property) = self.api.resolved(node) else {
                self.left_out.push((node.at, format!("'{name}' is described in another document")));
                continue;
            };
            let recurs = text(node, "$ref").is_some_and(|reference| self.open.iter().any(|open| open == reference));
            if is_read_only(property) || (!is_required && (depth >= OPTIONAL_DEPTH_MAX || recurs)) {
                continue;
            }
            let mut key = String::new();
            quoted(name, &mut key);
            out.push(&format!("{comma}{key}:"));
            self.write(node, depth + 1, out);
            comma = ",";
        }
        out.push("}");
    }

    /// The properties of an object with those of all that it is made of, and whether each must be there.
    fn properties(&mut self, schema: &'a TreeNode, depth: usize) -> Vec<(&'a str, &'a TreeNode, bool)> {
        let mut all: Vec<(&str, &TreeNode, bool)> = Vec::new();
        if depth > DEPTH_MAX || !self.has_room(0) {
            return all;
        }
        for part in items(schema, "allOf").iter().chain(first_of(schema)) {
            if let Some(part) = self.resolved(part) {
                all.extend(self.properties(part, depth + 1));
            }
        }
        if let Some(properties) = field(schema, "properties")
            && self.has_room(entries(properties).len().saturating_mul(PIECE_BYTES))
        {
            all.extend(entries(properties).iter().map(|(key, node)| (key.name.as_str(), node, false)));
        }
        let required: HashSet<&str> = items(schema, "required").iter().filter_map(own_text).collect();
        let mut out: Vec<(&str, &TreeNode, bool)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (name, node, is_required) in all {
            let is_required = is_required || required.contains(&name);
            let place = *places.entry(name).or_insert(out.len());
            match out.get_mut(place) {
                Some(other) => *other = (name, node, other.2 || is_required),
                None => out.push((name, node, is_required)),
            }
        }
        out
    }

    /// A value that is drawn, and whether it is a text.
    fn scalar(&mut self, schema: &TreeNode) -> (DraftText, bool) {
        let choices = items(schema, "enum");
        if let [first, ..] = choices {
            return (enumerated(first, choices), matches!(first.value, TreeValue::Text(_)));
        }
        let format = text(schema, "format").unwrap_or_default();
        let value = |value: &str| DraftText::value(value);
        let (least, most) = range(schema);
        match type_of(schema) {
            Some("integer") => {
                let from = least.unwrap_or(1.0).ceil().clamp(-1e15, 1e15) as i64;
                let to = most.unwrap_or(from as f64 + 99.0).floor().clamp(-1e15, 1e15) as i64;
                (value(&format!("int({from},{})", to.max(from))), false)
            }
            Some("number") => {
                let from = least.unwrap_or(1.0).clamp(-1e14, 1e14);
                let to = most.unwrap_or(from + 99.0).clamp(-1e14, 1e14).max(from);
                (value(&format!("float({from},{to})")), false)
            }
            Some("boolean") => (value("pick(true,false)"), false),
            Some("null") => (DraftText::fixed("null"), false),
            _ => (self.text(schema, format), true),
        }
    }

    fn text(&mut self, schema: &TreeNode, format: &str) -> DraftText {
        let value = |value: &str| DraftText::value(value);
        let drawn = |before: &str, after: &str| {
            let mut text = DraftText::fixed(before);
            text.push_value("text(8)");
            text.push(after);
            text
        };
        match format {
            "uuid" => value("uuid()"),
            "date" => value("now(\"%Y-%m-%d\")"),
            "date-time" => value("now()"),
            "time" => value("now(\"%H:%M:%SZ\")"),
            "email" | "idn-email" => drawn("", "@example.com"),
            "uri" | "url" | "iri" => drawn("https://example.com/", ""),
            "hostname" | "idn-hostname" => drawn("", ".example.com"),
            "ipv4" => DraftText::fixed("192.0.2.1"),
            "ipv6" => DraftText::fixed("2001:db8::1"),
            "byte" => DraftText::fixed("cGxpbXNvbGw="),
            _ => {
                if let Some(pattern) = text(schema, "pattern") {
                    let said =
                        format!("a text that is to match {pattern} is drawn without regard to that: write an example");
                    self.left_out.push((schema.at, said));
                }
                let least = number(schema, "minLength").unwrap_or(0.0).max(0.0);
                let most = number(schema, "maxLength").unwrap_or(f64::MAX);
                let length = 8f64.max(least).min(most).clamp(1.0, 100_000.0) as u32;
                value(&format!("text({length})"))
            }
        }
    }
}

/// The value that a schema gives itself.
fn fixed_value(schema: &TreeNode) -> Option<&TreeNode> {
    field(schema, "const").or_else(|| example_of(schema)).or_else(|| field(schema, "default"))
}

/// The first of several schemas, one of which holds.
fn first_of(schema: &TreeNode) -> Option<&TreeNode> {
    let choices = ["oneOf", "anyOf"].map(|key| items(schema, key));
    let is_null = |schema: &&TreeNode| type_of(schema) == Some("null");
    let choice = choices.iter().flat_map(|list| list.iter()).find(|schema| !is_null(schema));
    // One part alone stands for a reference with a description beside it.
    choice.or_else(|| match items(schema, "allOf") {
        [only] if field(schema, "properties").is_none() => Some(only),
        _ => None,
    })
}

/// The type, of several the first that is not null.
fn type_of(schema: &TreeNode) -> Option<&str> {
    match &field(schema, "type")?.value {
        TreeValue::List(types) => types.iter().filter_map(own_text).find(|name| *name != "null"),
        TreeValue::Text(name) => Some(name),
        _ => None,
    }
}

fn kind(schema: &TreeNode) -> SchemaKind {
    let has = |key: &str| field(schema, key).is_some();
    match type_of(schema) {
        Some("object") => SchemaKind::Object,
        Some("array") => SchemaKind::Array,
        Some(_) => SchemaKind::Scalar,
        None if fixed_value(schema).is_some() => SchemaKind::Fixed,
        None if has("properties") || items(schema, "allOf").len() > 1 || has("additionalProperties") => {
            SchemaKind::Object
        }
        None if has("items") => SchemaKind::Array,
        None => SchemaKind::Scalar,
    }
}

/// The least and greatest number; both spellings of exclusive ends.
fn range(schema: &TreeNode) -> (Option<f64>, Option<f64>) {
    let step = if type_of(schema) == Some("integer") { 1.0 } else { 0.001 };
    let is_exclusive = |key: &str| at(schema, &[key]).is_some_and(|node| node.value == TreeValue::Flag(true));
    let least =
        number(schema, "minimum").map(|least| if is_exclusive("exclusiveMinimum") { least + step } else { least });
    let most = number(schema, "maximum").map(|most| if is_exclusive("exclusiveMaximum") { most - step } else { most });
    let least = least.or_else(|| number(schema, "exclusiveMinimum").map(|least| least + step));
    let most = most.or_else(|| number(schema, "exclusiveMaximum").map(|most| most - step));
    match (least, most) {
        // The least is 1 unless that is more than the most.
        (None, Some(most)) if most < 1.0 => (Some(most.min(0.0)), Some(most)),
        both => both,
    }
}

/// One of the choices, if they can be written as such.
fn enumerated(first: &TreeNode, choices: &[TreeNode]) -> DraftText {
    let texts: Vec<&str> = choices.iter().filter_map(own_text).take(CHOICES_MAX).collect();
    let is_plain = |text: &&str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_.:/ ".contains(c)) && text.trim() == *text
    };
    match texts.len() > 1 && texts.iter().all(is_plain) {
        true => {
            let quoted: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
            DraftText::value(&format!("pick({})", quoted.join(",")))
        }
        false => DraftText::fixed(own_text(first).unwrap_or_default()),
    }
}

/// A value as JSON.
fn write_value(node: &TreeNode, out: &mut String) {
    match &node.value {
        TreeValue::Null => out.push_str("null"),
        TreeValue::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
        TreeValue::Number(number) => match crate::file::json::is_number(number) {
            true => out.push_str(number),
            false => quoted(number, out),
        },
        TreeValue::Text(text) => quoted(text, out),
        TreeValue::List(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                write_value(item, out);
            }
            out.push(']');
        }
        TreeValue::Table(entries) => {
            out.push('{');
            for (number, (key, value)) in entries.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                quoted(&key.name, out);
                out.push(':');
                write_value(value, out);
            }
            out.push('}');
        }
    }
}
