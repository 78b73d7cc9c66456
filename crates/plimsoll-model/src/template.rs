//! Templates: texts with placeholders, such as `/page/{{ int(1,50) }}`. A template is parsed once;
//! the engine fills in new values for each request.
//!
//! The text between `{{` and `}}` is a function with arguments, `env.NAME`, a table's column
//! (`user.name`), or the name of a captured value. A text in quotation marks, such as `{{ "{{" }}`,
//! is inserted unchanged, without the quotation marks. A value may be followed by `|` and an
//! escape: `json` for the inside of a JSON string, `url` for percent-encoding.

use crate::redact::{self, RedactionLevel};

/// Longest result of `text(n)` and `hex(n)`, in characters.
pub const RANDOM_TEXT_CHARS_MAX: u32 = 1 << 20;
/// The maximum number of choices of one `pick`.
const PICK_ARGUMENTS_MAX: usize = 10_000;

/// A parsed template: a text that contains values to fill in.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// The parts of the template, in order.
    pub parts: Vec<TemplatePart>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq)]
pub enum TemplatePart {
    /// Fixed text.
    Text(String),
    /// A value and its escape.
    Value(TemplateValue, ValueEscape),
}

/// How a value is escaped when it is filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ValueEscape {
    /// The value is not escaped.
    #[default]
    Plain,
    /// The value is escaped as the inside of a JSON string.
    Json,
    /// The value is percent-encoded, including all reserved characters of a URL.
    Url,
}

/// A value of a template, to be filled in.
#[derive(Debug, Clone, PartialEq)]
pub enum TemplateValue {
    /// A random whole number between two limits, which are included.
    Int {
        /// The least possible number.
        from: i64,
        /// The greatest possible number.
        to: i64,
    },
    /// A random number with three decimals.
    Float {
        /// The least possible number.
        from: f64,
        /// The greatest possible number.
        to: f64,
    },
    /// A random UUID (version 4).
    Uuid,
    /// A random text of the characters a-z and 0-9, with the given length.
    Text(u32),
    /// Random hexadecimal digits, with the given length.
    Hex(u32),
    /// The current time in UTC, in the given format.
    Now(Vec<TimeFormatPiece>),
    /// The number of the request in the load, from 1. In a load of scenarios, the value is the
    /// number of the session.
    Seq,
    /// One text of the given list, chosen at random.
    Pick(Vec<String>),
    /// The value of the environment variable with the given name.
    Env(String),
    /// A cell of a table of values.
    Column {
        /// The name of the table.
        data: String,
        /// The name of the column.
        column: String,
    },
    /// The value with the given name, captured from an earlier response.
    Captured(String),
}

impl TemplateValue {
    /// Returns whether the value is a number, which JSON has without quotation marks.
    pub fn is_number(&self) -> bool {
        matches!(self, TemplateValue::Int { .. } | TemplateValue::Float { .. } | TemplateValue::Seq)
    }
}

/// A piece of a time format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimeFormatPiece {
    /// Fixed text.
    Text(String),
    /// The year (`%Y`).
    Year,
    /// The month (`%m`).
    Month,
    /// The day of the month (`%d`).
    Day,
    /// The hour (`%H`).
    Hour,
    /// The minute (`%M`).
    Minute,
    /// The second (`%S`).
    Second,
    /// The milliseconds in three digits (`%L`).
    Milli,
    /// The seconds since 1970 (`%s`).
    Epoch,
}

/// Why a text is no valid template: a sentence that says how to correct the template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(String);

fn template_error<T>(text: impl Into<String>) -> Result<T, TemplateError> {
    Err(TemplateError(text.into()))
}

impl Template {
    /// Parses a template.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let parts = Template::split_into_parts(text)?.into_iter().map(|(part, _)| part).collect();
        Ok(Template { parts })
    }

    /// Splits a template text into its parts: fixed texts and values. Each value comes with the
    /// text between its braces.
    pub fn split_into_parts(text: &str) -> Result<Vec<(TemplatePart, &str)>, TemplateError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("{{") {
            literal.push_str(&rest[..at]);
            let inside = &rest[at + 2..];
            let Some(end) = closing_braces_offset(inside) else {
                return template_error(format!(
                    "'{text}' has no closing }}}}; a text without placeholders needs raw = true",
                    text = &rest[at..]
                ));
            };
            match parse_expression(inside[..end].trim())? {
                TemplatePart::Text(text) => literal.push_str(&text),
                value => {
                    if !literal.is_empty() {
                        parts.push((TemplatePart::Text(std::mem::take(&mut literal)), ""));
                    }
                    parts.push((value, inside[..end].trim()));
                }
            }
            rest = &inside[end + 2..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push((TemplatePart::Text(literal), ""));
        }
        Ok(parts)
    }

    /// Returns the length in bytes of the value at the beginning of `text`, including its braces;
    /// `None` means that the closing braces are missing.
    pub fn value_length(text: &str) -> Option<usize> {
        closing_braces_offset(text.strip_prefix("{{")?).map(|at| at + 4)
    }

    /// Returns the values of the template, in order.
    pub fn values(&self) -> impl Iterator<Item = &TemplateValue> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Value(value, _) => Some(value),
            TemplatePart::Text(_) => None,
        })
    }

    /// Returns whether the template has no values.
    pub fn has_no_values(&self) -> bool {
        self.values().next().is_none()
    }

    /// Returns the text of the template with `value` in place of each value to fill in.
    pub fn replace_values(&self, value: &str) -> String {
        let part = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => text.clone(),
            TemplatePart::Value(..) => value.to_owned(),
        };
        self.parts.iter().map(part).collect()
    }
}

/// Returns a path template for reports: fixed text is redacted as in any path, and values are
/// replaced by placeholders.
pub fn redact_target_template(text: &str, how: RedactionLevel) -> String {
    // `PLACEHOLDER_WORD` replaces each value during redaction, because redaction does not change
    // plain words.
    const PLACEHOLDER_WORD: &str = "valueofplimsoll";
    let text = Template::parse(text)
        .map_or_else(|_| redact::REDACTED.to_owned(), |template| template.replace_values(PLACEHOLDER_WORD));
    redact::redact_target(&text, how).replace(PLACEHOLDER_WORD, "{}")
}

/// Returns the offset of the `}}` that ends an expression, outside quotation marks.
fn closing_braces_offset(inside: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in inside.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, '}') if inside[at..].starts_with("}}") => return Some(at),
            _ => {}
        }
    }
    None
}

/// Parses the text between `{{` and `}}`.
fn parse_expression(text: &str) -> Result<TemplatePart, TemplateError> {
    if let Some(quoted) = strip_quotes(text) {
        return Ok(TemplatePart::Text(quoted.to_owned()));
    }
    let (text, writing) = match text.rsplit_once('|') {
        Some((before, how)) if !how.contains(['"', '\'', ')']) => (
            before.trim_end(),
            match how.trim() {
                "json" => ValueEscape::Json,
                "url" => ValueEscape::Url,
                other => {
                    return template_error(format!(
                        "'| {other}' is not an encoding of a template value: write | json or | url"
                    ));
                }
            },
        ),
        _ => (text, ValueEscape::Plain),
    };
    Ok(TemplatePart::Value(parse_value(text)?, writing))
}

fn strip_quotes(text: &str) -> Option<&str> {
    let inner = |quote: char| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains(quote)).then_some(inner)
    };
    inner('"').or_else(|| inner('\''))
}

fn parse_value(text: &str) -> Result<TemplateValue, TemplateError> {
    if let Some((name, rest)) = text.split_once('(') {
        let Some(arguments) = rest.trim_end().strip_suffix(')') else {
            return template_error(format!("the template function '{text}' has no closing bracket"));
        };
        return parse_function_call(name.trim(), &split_arguments(arguments)?);
    }
    match text.split_once('.') {
        Some(("env", name)) if is_name(name) => Ok(TemplateValue::Env(name.to_owned())),
        Some((data, column)) if is_name(data) && !column.is_empty() => {
            Ok(TemplateValue::Column { data: data.to_owned(), column: column.to_owned() })
        }
        None if is_name(text) => Ok(TemplateValue::Captured(text.to_owned())),
        _ => template_error(format!(
            "'{text}' is not valid between {{{{ and }}}}: write a function such as int(1,50), env.NAME, \
             DATA.COLUMN, a captured name, or a \"text\""
        )),
    }
}

/// Returns whether a word is a valid name of a table, capture or variable.
pub fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && word.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// Splits the arguments of a function, and removes their quotation marks.
fn split_arguments(text: &str) -> Result<Vec<String>, TemplateError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let (mut arguments, mut from, mut quote) = (Vec::new(), 0, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, ',') => {
                arguments.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    arguments.push(&text[from..]);
    let plain = |argument: &str| strip_quotes(argument.trim()).unwrap_or(argument.trim()).to_owned();
    match quote {
        None => Ok(arguments.into_iter().map(plain).collect()),
        Some(_) => template_error(format!("the template arguments '{text}' have no closing quotation mark")),
    }
}

fn parse_function_call(name: &str, arguments: &[String]) -> Result<TemplateValue, TemplateError> {
    let number = |text: &str| match text.parse::<i64>() {
        Ok(number) => Ok(number),
        Err(_) => {
            template_error(format!("the argument '{text}' of the template function {name} is not a whole number"))
        }
    };
    let decimal = |text: &str| match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number.abs() < 1e15 => Ok(number),
        _ => template_error(format!("the argument '{text}' of the template function {name} is not a number")),
    };
    let length = |text: &str| match text.parse::<u32>() {
        Ok(length) if (1..=RANDOM_TEXT_CHARS_MAX).contains(&length) => Ok(length),
        _ => template_error(format!(
            "the argument '{text}' of the template function {name} is not a length from 1 to {RANDOM_TEXT_CHARS_MAX}"
        )),
    };
    match (name, arguments) {
        ("int", [from, to]) => match (number(from)?, number(to)?) {
            (from, to) if from <= to => Ok(TemplateValue::Int { from, to }),
            _ => template_error(format!("int({from},{to}): the first number is more than the second")),
        },
        ("float", [from, to]) => match (decimal(from)?, decimal(to)?) {
            (from, to) if from <= to => Ok(TemplateValue::Float { from, to }),
            _ => template_error(format!("float({from},{to}): the first number is more than the second")),
        },
        ("uuid", []) => Ok(TemplateValue::Uuid),
        ("text", [count]) => Ok(TemplateValue::Text(length(count)?)),
        ("hex", [count]) => Ok(TemplateValue::Hex(length(count)?)),
        ("now", []) => Ok(TemplateValue::Now(parse_time_format("%Y-%m-%dT%H:%M:%SZ")?)),
        ("now", [format]) => Ok(TemplateValue::Now(parse_time_format(format)?)),
        ("seq", []) => Ok(TemplateValue::Seq),
        ("pick", [_, ..]) if arguments.len() <= PICK_ARGUMENTS_MAX => Ok(TemplateValue::Pick(arguments.to_vec())),
        ("env", [name]) if is_name(name) => Ok(TemplateValue::Env(name.clone())),
        (known, _) => match FUNCTION_EXAMPLES.iter().find(|usage| usage.split('(').next() == Some(known)) {
            Some(usage) => template_error(format!("'{name}' has other arguments: {usage}")),
            None => template_error(format!(
                "'{name}' is not a template function: use {functions}",
                functions = FUNCTION_EXAMPLES.join(", ")
            )),
        },
    }
}

/// Examples that show the syntax of each template function.
const FUNCTION_EXAMPLES: [&str; 9] = [
    "int(1,50)",
    "float(0,1)",
    "uuid()",
    "text(8)",
    "hex(16)",
    "now(\"%Y-%m-%d\")",
    "seq()",
    "pick(7,8,9)",
    "env(\"NAME\")",
];

fn parse_time_format(format: &str) -> Result<Vec<TimeFormatPiece>, TemplateError> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let known: &[TimeFormatPiece] = match chars.next() {
            Some('%') => {
                text.push('%');
                continue;
            }
            Some('Y') => &[TimeFormatPiece::Year],
            Some('m') => &[TimeFormatPiece::Month],
            Some('d') => &[TimeFormatPiece::Day],
            Some('H') => &[TimeFormatPiece::Hour],
            Some('M') => &[TimeFormatPiece::Minute],
            Some('S') => &[TimeFormatPiece::Second],
            Some('L') => &[TimeFormatPiece::Milli],
            Some('s') => &[TimeFormatPiece::Epoch],
            other => {
                let other = other.map_or_else(String::new, String::from);
                return template_error(format!(
                    "the time format %{other} of now() is unknown: use %Y %m %d %H %M %S %L (ms) %s (s since 1970) %%"
                ));
            }
        };
        if !text.is_empty() {
            pieces.push(TimeFormatPiece::Text(std::mem::take(&mut text)));
        }
        pieces.extend_from_slice(known);
    }
    if !text.is_empty() {
        pieces.push(TimeFormatPiece::Text(text));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_parse_or_explain_the_error() {
        let text = |text: &str| TemplatePart::Text(text.to_owned());
        let value = |value| TemplatePart::Value(value, ValueEscape::Plain);
        for (source, expect) in [
            ("/items", Ok(vec![text("/items")])),
            ("", Ok(vec![])),
            (
                "/a?p={{ int(1,50) }}&x",
                Ok(vec![text("/a?p="), value(TemplateValue::Int { from: 1, to: 50 }), text("&x")]),
            ),
            ("{{uuid()}}{{ seq() }}", Ok(vec![value(TemplateValue::Uuid), value(TemplateValue::Seq)])),
            ("{{ \"{{\" }} {{ '}}' }}", Ok(vec![text("{{ }}")])),
            (
                "{{ pick(\"a,b\", c) | json }}",
                Ok(vec![TemplatePart::Value(TemplateValue::Pick(vec!["a,b".into(), "c".into()]), ValueEscape::Json)]),
            ),
            ("{{ pick(\"a|b\") }}", Ok(vec![value(TemplateValue::Pick(vec!["a|b".into()]))])),
            (
                "{{ user.name | url }}",
                Ok(vec![TemplatePart::Value(
                    TemplateValue::Column { data: "user".into(), column: "name".into() },
                    ValueEscape::Url,
                )]),
            ),
            (
                "{{ env.TOKEN }}{{ token }}",
                Ok(vec![value(TemplateValue::Env("TOKEN".into())), value(TemplateValue::Captured("token".into()))]),
            ),
            (
                "{{ now(\"%Y%%\") }}",
                Ok(vec![value(TemplateValue::Now(vec![TimeFormatPiece::Year, TimeFormatPiece::Text("%".into())]))]),
            ),
            ("a } b }} c", Ok(vec![text("a } b }} c")])),
            ("{{ int(1,50)", Err("no closing }}")),
            ("{{ int(5,1) }}", Err("more than")),
            ("{{ int(1) }}", Err("int(1,50)")),
            ("{{ innt(1,2) }}", Err("'innt' is not a template function")),
            ("{{ text(0) }}", Err("a length")),
            ("{{ text(99999999) }}", Err("a length")),
            ("{{ now(\"%q\") }}", Err("%q of now() is unknown")),
            ("{{ pick() }}", Err("pick(7,8,9)")),
            ("{{ }}", Err("is not valid between")),
            ("{{ a b }}", Err("is not valid between")),
            ("{{ user.name | xml }}", Err("| json or | url")),
            ("{{ float(0,inf) }}", Err("not a number")),
        ] {
            match (Template::parse(source), expect) {
                (Ok(template), Ok(parts)) => assert_eq!(template.parts, parts, "{source}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{source}: {error}"),
                (got, want) => panic!("{source}: {got:?}, expected {want:?}"),
            }
        }
    }
}
