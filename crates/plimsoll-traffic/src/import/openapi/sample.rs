//! Generates example values for a schema: the literal example if there is one, otherwise template
//! values that generate random values.

use super::super::draft::DraftText;
use super::super::nodes::{
    entries, field, field_number, is_field_true, items, node_at, scalar_field_text, scalar_text,
};
use super::api::{ApiDescription, is_read_only};
use crate::file::push_json_string;
use crate::file::tree::{TextPosition, TreeNode, TreeValue};
use std::collections::{HashMap, HashSet};

/// The deepest nesting of required values in an example.
const DEPTH_MAX: usize = 24;
/// The nesting depth from which an example contains required properties only.
const OPTIONAL_DEPTH_MAX: usize = 5;
/// The largest number of pieces (visited schemas and literal texts) of one example. The limit on
/// pieces ends the examples of recursive schemas.
const PIECES_MAX: usize = 4_000;
/// The smallest cost of a piece (a visited schema or literal text) of an example, in bytes of the
/// import's memory budget.
const PIECE_BYTES: usize = 64;
/// The largest number of values of an OpenAPI `enum` that are used; further values are ignored.
const CHOICES_MAX: usize = 100;
/// The largest number of list items in an example, even if the schema demands more.
const ITEMS_MAX: f64 = 20.0;

/// Generates examples for one parameter or body, and collects notes about omissions.
pub struct ExampleGenerator<'a, 'b> {
    api: &'b ApiDescription<'a>,
    pub left_out: Vec<(TextPosition, String)>,
    /// The references that are being expanded, for the detection of recursion.
    open: Vec<String>,
    pieces: usize,
    /// The name and value of the discriminator property for the next object.
    discriminator: Option<(String, String)>,
}

/// The example value of a parameter or form field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SampleValue {
    One(DraftText),
    List(Vec<DraftText>),
    Table(Vec<(String, DraftText)>),
}

impl SampleValue {
    /// Returns whether the value has no template values.
    pub fn is_fixed(&self) -> bool {
        let is_fixed = |text: &DraftText| text.as_literal().is_some();
        match self {
            SampleValue::One(text) => is_fixed(text),
            SampleValue::List(items) => items.iter().all(is_fixed),
            SampleValue::Table(entries) => entries.iter().all(|(_, text)| is_fixed(text)),
        }
    }
}

/// A form field with its example value.
pub struct SampledField<'a> {
    pub name: String,
    pub value: SampleValue,
    /// Whether the field is a file to upload.
    pub is_file: bool,
    /// The JSON text of a field that has a structured value.
    pub json: Option<DraftText>,
    pub schema: Option<&'a TreeNode>,
}

/// The largest number of multiples to choose from, for a schema with `multipleOf`.
const MULTIPLES_MAX: usize = 100;

/// The kind of value that a schema describes; the kind decides how an example is generated.
enum SchemaKind {
    Fixed,
    Object,
    Array,
    Scalar,
}

impl<'a, 'b> ExampleGenerator<'a, 'b> {
    pub fn new(api: &'b ApiDescription<'a>) -> ExampleGenerator<'a, 'b> {
        ExampleGenerator { api, left_out: Vec::new(), open: Vec::new(), pieces: 0, discriminator: None }
    }

    /// Returns an example for a schema, as JSON.
    pub fn example_json(&mut self, schema: &'a TreeNode) -> DraftText {
        let mut out = DraftText::default();
        self.write(schema, 0, &mut out);
        out
    }

    /// Returns a literal example as JSON. A string that contains JSON is used unchanged.
    pub fn json_example(&mut self, example: &TreeNode) -> DraftText {
        if let TreeValue::Text(text) = &example.value
            && text.trim_start().starts_with(['{', '['])
        {
            return DraftText::literal(text);
        }
        let mut text = String::new();
        write_value(example, &mut text);
        DraftText::literal(&text)
    }

    /// Returns an example for a parameter with this schema.
    pub fn example_value(&mut self, schema: &'a TreeNode) -> SampleValue {
        self.nested_example_value(schema, 0)
    }

    fn nested_example_value(&mut self, schema: &'a TreeNode, depth: usize) -> SampleValue {
        let none = || SampleValue::One(DraftText::literal("value"));
        // A schema may contain itself, so the nesting has a limit, and each level is charged to the
        // memory budget.
        if depth > DEPTH_MAX || !self.spend_budget(0) {
            return none();
        }
        let Some(schema) = self.resolve_or_report(schema) else { return none() };
        if let Some(fixed) = self.fixed_value(schema) {
            return self.example_as_value(fixed);
        }
        match (schema_kind(schema), first_alternative(schema)) {
            (SchemaKind::Array, _) => {
                let Some(items) = field(schema, "items") else { return none() };
                SampleValue::List(
                    (0..self.least_items(schema)).map(|_| self.nested_example_text(items, depth + 1)).collect(),
                )
            }
            (SchemaKind::Object, _) => {
                let mut entries = Vec::new();
                for (name, node, _) in self.collect_properties(schema, 0) {
                    if self.api.resolve_reference(node).is_some_and(|property| !is_read_only(property)) {
                        entries.push((name.to_owned(), self.nested_example_text(node, depth + 1)));
                    }
                }
                SampleValue::Table(entries)
            }
            (_, Some(inner)) => self.nested_example_value(inner, depth + 1),
            _ => SampleValue::One(self.scalar_value(schema).0),
        }
    }

    /// Returns a literal example as the value of a parameter.
    pub fn example_as_value(&mut self, example: &TreeNode) -> SampleValue {
        match &example.value {
            TreeValue::List(items) => SampleValue::List(items.iter().map(|item| self.plain_example(item)).collect()),
            TreeValue::Table(pairs) => SampleValue::Table(
                pairs.iter().map(|(key, value)| (key.name.clone(), self.plain_example(value))).collect(),
            ),
            _ => SampleValue::One(DraftText::literal(scalar_text(example).unwrap_or_default())),
        }
    }

    /// Returns an example as plain text. Structured values become JSON.
    pub fn example_text(&mut self, schema: &'a TreeNode) -> DraftText {
        self.nested_example_text(schema, 0)
    }

    fn nested_example_text(&mut self, schema: &'a TreeNode, depth: usize) -> DraftText {
        let resolved = self.api.resolve_reference(schema).filter(|schema| self.fixed_value(schema).is_none());
        // Lists and tables become JSON, which has its own limit of the nesting.
        if resolved.is_some_and(|schema| matches!(schema_kind(schema), SchemaKind::Array | SchemaKind::Object)) {
            return self.example_json(schema);
        }
        match self.nested_example_value(schema, depth) {
            SampleValue::One(text) => text,
            _ => self.example_json(schema),
        }
    }

    fn plain_example(&mut self, example: &TreeNode) -> DraftText {
        match &example.value {
            TreeValue::List(_) | TreeValue::Table(_) => self.json_example(example),
            _ => DraftText::literal(scalar_text(example).unwrap_or_default()),
        }
    }

    /// Returns the fields of a form with example values.
    pub fn example_form_fields(
        &mut self,
        schema: Option<&'a TreeNode>,
        example: Option<&'a TreeNode>,
    ) -> Vec<SampledField<'a>> {
        let of_example = |sampler: &mut Self, name: &str, value: &'a TreeNode| {
            let has_parts = matches!(value.value, TreeValue::Table(_));
            SampledField {
                name: name.to_owned(),
                json: has_parts.then(|| sampler.json_example(value)),
                value: sampler.example_as_value(value),
                is_file: false,
                schema: None,
            }
        };
        if let Some(example) = example.filter(|example| !entries(example).is_empty()) {
            return entries(example).iter().map(|(key, value)| of_example(self, &key.name, value)).collect();
        }
        let Some(schema) = schema.and_then(|schema| self.resolve_or_report(schema)) else { return Vec::new() };
        if let Some(fixed) = self.fixed_value(schema).filter(|fixed| !entries(fixed).is_empty()) {
            return entries(fixed).iter().map(|(key, value)| of_example(self, &key.name, value)).collect();
        }
        let mut fields = Vec::new();
        for (name, node, _) in self.collect_properties(schema, 0) {
            let Some(property) = self.resolve_or_report(node) else { continue };
            if is_read_only(property) {
                continue;
            }
            let inner =
                field(property, "items").and_then(|items| self.api.resolve_reference(items)).unwrap_or(property);
            let is_file = scalar_field_text(inner, "format") == Some("binary")
                || field(inner, "contentMediaType").is_some() && field(inner, "contentEncoding").is_none();
            if is_file {
                let text =
                    format!("the form field '{name}' is a file: put a file named {name} beside the traffic file");
                self.left_out.push((property.at, text));
            }
            let value = if is_file { SampleValue::One(DraftText::literal(name)) } else { self.example_value(property) };
            let json = (!is_file && matches!(value, SampleValue::Table(_))).then(|| self.example_json(property));
            fields.push(SampledField { name: name.to_owned(), value, is_file, json, schema: Some(property) });
        }
        fields
    }

    /// Returns the constant, example or default of a schema. `None` if the schema has no constant,
    /// no example and no default.
    pub fn fixed_value(&self, schema: &'a TreeNode) -> Option<&'a TreeNode> {
        field(schema, "const").or_else(|| self.api.literal_example(schema)).or_else(|| field(schema, "default"))
    }

    fn resolve_or_report(&mut self, schema: &'a TreeNode) -> Option<&'a TreeNode> {
        let resolved = self.api.resolve_reference(schema);
        if resolved.is_none() {
            self.left_out.push((schema.at, "a schema in another document is not imported".to_owned()));
        }
        resolved
    }

    /// Counts one more piece of the example (a visited schema or literal text), and charges its
    /// memory to the budget. Returns false if the limit on pieces or the memory budget is
    /// exhausted.
    fn spend_budget(&mut self, bytes: usize) -> bool {
        self.pieces += 1;
        self.pieces <= PIECES_MAX && self.api.spend_budget(bytes + PIECE_BYTES)
    }

    fn write(&mut self, schema: &'a TreeNode, depth: usize, out: &mut DraftText) {
        if depth > DEPTH_MAX || !self.spend_budget(0) {
            return out.push("null");
        }
        let reference = scalar_field_text(schema, "$ref").map(str::to_owned);
        let Some(schema) = self.resolve_or_report(schema) else { return out.push("null") };
        let is_open = reference.as_ref().is_some_and(|reference| self.open.contains(reference));
        if is_open {
            return out.push(if matches!(schema_kind(schema), SchemaKind::Array) { "[]" } else { "null" });
        }
        // The schema may be one alternative of a parent schema with a discriminator.
        let parts = items(schema, "allOf").iter().filter_map(|part| self.api.resolve_reference(part));
        let named =
            reference.as_ref().and_then(|own| parts.into_iter().find_map(|part| discriminator_value(part, own)));
        if self.discriminator.is_none() {
            self.discriminator = named;
        }
        let opened = reference.map(|reference| self.open.push(reference)).is_some();
        self.write_resolved(schema, depth, out);
        if opened {
            self.open.pop();
        }
    }

    fn write_resolved(&mut self, schema: &'a TreeNode, depth: usize, out: &mut DraftText) {
        if let Some(chosen) =
            first_alternative(schema).and_then(|inner| discriminator_value(schema, scalar_field_text(inner, "$ref")?))
        {
            self.discriminator = Some(chosen);
        }
        if let Some(fixed) = self.fixed_value(schema) {
            let mut text = String::new();
            write_value(fixed, &mut text);
            return out.push(if self.spend_budget(text.len()) { &text } else { "null" });
        }
        match schema_kind(schema) {
            SchemaKind::Object => self.write_object(schema, depth, out),
            _ if first_alternative(schema).is_some() => {
                if let Some(inner) = first_alternative(schema) {
                    self.write(inner, depth + 1, out);
                }
            }
            SchemaKind::Array => {
                out.push("[");
                if let Some(items) = field(schema, "items") {
                    for number in 0..self.least_items(schema) {
                        out.push(if number > 0 { "," } else { "" });
                        self.write(items, depth + 1, out);
                    }
                }
                out.push("]");
            }
            SchemaKind::Scalar | SchemaKind::Fixed => {
                let (value, is_text) = self.scalar_value(schema);
                if !is_text {
                    return out.append(&value);
                }
                let escape = |text: &str| {
                    let mut out = String::new();
                    push_json_string(text, &mut out);
                    out[1..out.len() - 1].to_owned()
                };
                out.push("\"");
                out.append(&value.escape_with_filter(escape, "json"));
                out.push("\"");
            }
        }
    }

    fn write_object(&mut self, schema: &'a TreeNode, depth: usize, out: &mut DraftText) {
        out.push("{");
        let mut comma = "";
        let discriminator = self.discriminator.take();
        if let Some((property, value)) = &discriminator {
            let mut pair = String::new();
            push_json_string(property, &mut pair);
            pair.push(':');
            push_json_string(value, &mut pair);
            out.push(&pair);
            comma = ",";
        }
        for (name, node, is_required) in self.collect_properties(schema, 0) {
            if discriminator.as_ref().is_some_and(|(property, _)| property == name) {
                continue;
            }
            let Some(property) = self.api.resolve_reference(node) else {
                self.left_out.push((
                    node.at,
                    format!("the property '{name}' is described in another document, and is left out"),
                ));
                continue;
            };
            let recurs =
                scalar_field_text(node, "$ref").is_some_and(|reference| self.open.iter().any(|open| open == reference));
            if is_read_only(property) || (!is_required && (depth >= OPTIONAL_DEPTH_MAX || recurs)) {
                continue;
            }
            let mut key = String::new();
            push_json_string(name, &mut key);
            out.push(&format!("{comma}{key}:"));
            self.write(node, depth + 1, out);
            comma = ",";
        }
        out.push("}");
    }

    /// Returns the properties of an object schema and of all schemas that the object schema
    /// combines. The boolean after each property states whether the property is required.
    fn collect_properties(&mut self, schema: &'a TreeNode, depth: usize) -> Vec<(&'a str, &'a TreeNode, bool)> {
        let mut all: Vec<(&str, &TreeNode, bool)> = Vec::new();
        if depth > DEPTH_MAX || !self.spend_budget(0) {
            return all;
        }
        for part in items(schema, "allOf").iter().chain(first_alternative(schema)) {
            if let Some(part) = self.resolve_or_report(part) {
                all.extend(self.collect_properties(part, depth + 1));
            }
        }
        if let Some(properties) = field(schema, "properties")
            && self.spend_budget(entries(properties).len().saturating_mul(PIECE_BYTES))
        {
            all.extend(entries(properties).iter().map(|(key, node)| (key.name.as_str(), node, false)));
        }
        let required: HashSet<&str> = items(schema, "required").iter().filter_map(scalar_text).collect();
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

    /// Returns a value for a scalar schema, and whether the value is a JSON string.
    fn scalar_value(&mut self, schema: &TreeNode) -> (DraftText, bool) {
        let choices = items(schema, "enum");
        // A null value is chosen only if the enumeration has no other value.
        let first = choices.iter().find(|choice| scalar_text(choice).is_some()).or(choices.first());
        if let Some(first) = first {
            return (enum_choice(first, choices), matches!(first.value, TreeValue::Text(_)));
        }
        let format = scalar_field_text(schema, "format").unwrap_or_default();
        let value = |value: &str| DraftText::value(value);
        let (least, most) = number_range(schema);
        if let Some(value) = choice_of_multiples(schema, least, most) {
            return (value, false);
        }
        match schema_type(schema) {
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
            Some("null") => (DraftText::literal("null"), false),
            _ => (self.example_string(schema, format), true),
        }
    }

    /// Returns the number of list items to generate: `minItems` of the schema, but at least one.
    fn least_items(&mut self, schema: &TreeNode) -> usize {
        let least = field_number(schema, "minItems").unwrap_or(1.0);
        if least > ITEMS_MAX {
            let said = format!(
                "a list gets {ITEMS_MAX} items, although its minimum is {least_items}: add an example to the OpenAPI \
                 file",
                least_items = least
            );
            self.left_out.push((schema.at, said));
        }
        if least > 1.0 && is_field_true(schema, "uniqueItems") {
            let said = "the items of a list must differ, but the random items may be equal: add an example to the \
                        OpenAPI file";
            self.left_out.push((schema.at, said.to_owned()));
        }
        least.clamp(1.0, ITEMS_MAX) as usize
    }

    fn example_string(&mut self, schema: &TreeNode, format: &str) -> DraftText {
        let value = |value: &str| DraftText::value(value);
        let drawn = |before: &str, after: &str| {
            let mut text = DraftText::literal(before);
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
            "ipv4" => DraftText::literal("192.0.2.1"),
            "ipv6" => DraftText::literal("2001:db8::1"),
            "byte" => DraftText::literal("cGxpbXNvbGw="),
            _ => {
                if let Some(pattern) = scalar_field_text(schema, "pattern") {
                    let said =
                        format!("a random text ignores the pattern {pattern}: add an example to the OpenAPI file");
                    self.left_out.push((schema.at, said));
                }
                let least = field_number(schema, "minLength").unwrap_or(0.0).max(0.0);
                let most = field_number(schema, "maxLength").unwrap_or(f64::MAX);
                let length = 8f64.max(least).min(most).clamp(1.0, 100_000.0);
                // The memory check counts N bytes for the short template `text(N)`, because every
                // request contains the whole text of N characters.
                let length = if self.spend_budget(length as usize) { length as u32 } else { 1 };
                value(&format!("text({length})"))
            }
        }
    }
}

/// Returns the name of the discriminator property of `schema`, and its value for the schema to
/// which `reference` points. The mapping of the discriminator defines the value. Without a mapping,
/// the value of the discriminator property is the name of the schema to which `reference` points.
fn discriminator_value(schema: &TreeNode, reference: &str) -> Option<(String, String)> {
    let discriminator = field(schema, "discriminator")?;
    // In OpenAPI 2, the field `discriminator` is a string, the name of the property, instead of an
    // object.
    let property = scalar_field_text(discriminator, "propertyName").or_else(|| scalar_text(discriminator))?;
    let name = reference.rsplit('/').next().unwrap_or(reference);
    let mapped = field(discriminator, "mapping").and_then(|mapping| {
        let is_it = |target: &str| target == reference || target == name;
        entries(mapping)
            .iter()
            .find(|(_, target)| scalar_text(target).is_some_and(is_it))
            .map(|(key, _)| key.name.as_str())
    });
    Some((property.to_owned(), mapped.unwrap_or(name).to_owned()))
}

/// Returns a template that picks a random multiple of `multipleOf` within the number range of a
/// schema. `None` if the schema has no `multipleOf`.
fn choice_of_multiples(schema: &TreeNode, least: Option<f64>, most: Option<f64>) -> Option<DraftText> {
    let of = field_number(schema, "multipleOf").filter(|of| *of > 0.0)?;
    let is_integer = schema_type(schema) == Some("integer");
    if !is_integer && schema_type(schema) != Some("number") || is_integer && of == 1.0 {
        return None;
    }
    let of = if is_integer { of.ceil() } else { of };
    let from = (least.unwrap_or(of) / of).ceil();
    let to = most.map_or(from + MULTIPLES_MAX as f64 - 1.0, |most| (most / of).floor());
    let count = (to - from + 1.0).clamp(1.0, MULTIPLES_MAX as f64) as usize;
    let texts: Vec<String> = (0..count)
        .map(|number| (from + number as f64) * of)
        // Rounding removes the error digits of binary floating-point numbers, as in
        // 0.30000000000000004.
        .map(|value| ((value * 1e9).round() / 1e9).to_string())
        .collect();
    match texts.as_slice() {
        [only] => Some(DraftText::literal(only)),
        several => Some(DraftText::value(&format!("pick({})", several.join(",")))),
    }
}

/// Returns the first alternative of a schema (`oneOf`, `anyOf`) that is not null.
fn first_alternative(schema: &TreeNode) -> Option<&TreeNode> {
    let choices = ["oneOf", "anyOf"].map(|key| items(schema, key));
    let is_null = |schema: &&TreeNode| schema_type(schema) == Some("null");
    let choice = choices.iter().flat_map(|list| list.iter()).find(|schema| !is_null(schema));
    // An `allOf` with one entry usually adds a description to a reference, so its entry counts as
    // an alternative.
    choice.or_else(|| match items(schema, "allOf") {
        [only] if field(schema, "properties").is_none() => Some(only),
        _ => None,
    })
}

/// Returns the type of a schema. If the schema has several types, the result is the first type
/// other than null.
fn schema_type(schema: &TreeNode) -> Option<&str> {
    match &field(schema, "type")?.value {
        TreeValue::List(types) => types.iter().filter_map(scalar_text).find(|name| *name != "null"),
        TreeValue::Text(name) => Some(name),
        _ => None,
    }
}

fn schema_kind(schema: &TreeNode) -> SchemaKind {
    let has = |key: &str| field(schema, key).is_some();
    match schema_type(schema) {
        Some("object") => SchemaKind::Object,
        Some("array") => SchemaKind::Array,
        Some(_) => SchemaKind::Scalar,
        None if has("const") || has("example") || has("default") || has("examples") => SchemaKind::Fixed,
        None if has("properties") || items(schema, "allOf").len() > 1 || has("additionalProperties") => {
            SchemaKind::Object
        }
        None if has("items") => SchemaKind::Array,
        None => SchemaKind::Scalar,
    }
}

/// Returns the smallest and largest number that a schema allows. An exclusive bound
/// (`exclusiveMinimum`, `exclusiveMaximum`) is a flag in OpenAPI 2 and 3.0, and a number since
/// OpenAPI 3.1.
fn number_range(schema: &TreeNode) -> (Option<f64>, Option<f64>) {
    let step = if schema_type(schema) == Some("integer") { 1.0 } else { 0.001 };
    let is_exclusive = |key: &str| node_at(schema, &[key]).is_some_and(|node| node.value == TreeValue::Flag(true));
    let least = field_number(schema, "minimum")
        .map(|least| if is_exclusive("exclusiveMinimum") { least + step } else { least });
    let most =
        field_number(schema, "maximum").map(|most| if is_exclusive("exclusiveMaximum") { most - step } else { most });
    let least = least.or_else(|| field_number(schema, "exclusiveMinimum").map(|least| least + step));
    let most = most.or_else(|| field_number(schema, "exclusiveMaximum").map(|most| most - step));
    match (least, most) {
        // If a schema has no minimum and a maximum below 1, the lower of 0 and the maximum becomes
        // the minimum.
        (None, Some(most)) if most < 1.0 => (Some(most.min(0.0)), Some(most)),
        both => both,
    }
}

/// Returns a template that picks a random value of an enumeration. If a value has characters that a
/// template cannot contain, the result is always the first value.
fn enum_choice(first: &TreeNode, choices: &[TreeNode]) -> DraftText {
    let texts: Vec<&str> = choices.iter().filter_map(scalar_text).take(CHOICES_MAX).collect();
    let is_plain = |text: &&str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_.:/ ".contains(c)) && text.trim() == *text
    };
    match texts.len() > 1 && texts.iter().all(is_plain) {
        true => {
            let quoted: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
            DraftText::value(&format!("pick({})", quoted.join(",")))
        }
        false => DraftText::literal(scalar_text(first).unwrap_or_default()),
    }
}

/// Appends a value to `out` as JSON.
fn write_value(node: &TreeNode, out: &mut String) {
    match &node.value {
        TreeValue::Null => out.push_str("null"),
        TreeValue::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
        TreeValue::Number(number) => match crate::file::json::is_number(number) {
            true => out.push_str(number),
            false => push_json_string(number, out),
        },
        TreeValue::Text(text) => push_json_string(text, out),
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
                push_json_string(&key.name, out);
                out.push(':');
                write_value(value, out);
            }
            out.push('}');
        }
    }
}
