//! Fills in request templates: replaces the placeholders of a request by values. A template is
//! compiled once, and each filled-in request is written into reused buffers.
//!
//! A random value depends only on the seed and the number of the request or session, and not on
//! threads and machines. Once the buffers have their final size, no memory is allocated.

use plimsoll_model::calendar::date_of_day;
use plimsoll_model::data::{RowChoice, ValueTable};
use plimsoll_model::rng::{Rng, mix_bits};
use plimsoll_model::template::{Template, TemplatePart, TemplateValue, TimeFormatPiece, ValueEscape};
use plimsoll_model::{Plan, Request, Route};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

/// A constant that is mixed into the seed, so that template values are independent of other random
/// numbers from the same seed.
const TEMPLATE_VALUES_SEED: u64 = 0x0056_414c_5545_5321;
/// The characters from which `text(n)` chooses.
const LOWERCASE_ALPHANUMERICS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
/// The digits with which `uuid()`, `hex(n)` and escaped characters are written.
const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The reason why a request template cannot be compiled, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TemplateCompileError(String);

/// The section of a request that contains a value. The section decides how the value is escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestSection {
    Target,
    Header,
    Body,
}

/// The source of a value in a template. Names of tables and captures are resolved to indices.
#[derive(Debug, Clone)]
enum ValueSource {
    Generator(TemplateValue),
    Fixed(Box<str>),
    Cell {
        data: usize,
        column: usize,
    },
    /// A captured value, by the number of its name.
    Captured(usize),
}

#[derive(Debug, Clone)]
enum CompiledTemplatePiece {
    Text(Box<str>),
    /// Fixed bytes of a body, which may be binary.
    Bytes(Box<[u8]>),
    Value(ValueSource, ValueEscape),
}

/// A compiled request template.
#[derive(Debug, Clone)]
pub struct RequestTemplate {
    /// The pieces of the path and query; `None` if they contain no placeholder and stay fixed.
    target: Option<Vec<CompiledTemplatePiece>>,
    headers: Vec<Option<Vec<CompiledTemplatePiece>>>,
    body: Option<Vec<CompiledTemplatePiece>>,
}

/// A compiled text template, such as the condition of an operation in a scenario.
#[derive(Debug, Clone)]
pub struct TextTemplate(Vec<CompiledTemplatePiece>);

/// The names that the templates of a plan may use: variables, tables and captures. The lookup table
/// is built at its first use.
#[derive(Debug)]
pub struct TemplateNames<'p> {
    plan: &'p Plan,
    known: OnceCell<TemplateNameTable<'p>>,
}

#[derive(Debug)]
struct TemplateNameTable<'p> {
    variables: HashMap<&'p str, &'p str>,
    /// By table name, the number of the table and the numbers of its columns by name.
    data: HashMap<&'p str, (usize, HashMap<&'p str, usize>)>,
    /// The values that requests of the setup captured, by name.
    setup_values: HashMap<&'p str, &'p str>,
    /// The number of each capture name.
    captured: HashMap<&'p str, usize>,
}

impl<'p> TemplateNames<'p> {
    pub fn new(plan: &'p Plan) -> TemplateNames<'p> {
        TemplateNames { plan, known: OnceCell::new() }
    }

    fn name_table(&self) -> &TemplateNameTable<'p> {
        self.known.get_or_init(|| {
            let traffic = &self.plan.traffic;
            let pair = |(name, value): &'p (String, String)| (name.as_str(), value.as_str());
            let columns =
                |table: &'p ValueTable| table.columns.iter().enumerate().map(|(at, name)| (name.as_str(), at));
            let table =
                |(at, table): (usize, &'p Arc<ValueTable>)| (table.name.as_str(), (at, columns(table).collect()));
            TemplateNameTable {
                // If a name occurs several times in the plan, the first entry counts. The lists are
                // reversed, because a later entry with the same name replaces an earlier entry in
                // the map.
                variables: traffic.variables.iter().rev().map(pair).collect(),
                data: traffic.data.iter().enumerate().rev().map(table).collect(),
                setup_values: traffic.setup_teardown.captured_values.iter().rev().map(pair).collect(),
                captured: traffic.captured_names().into_iter().enumerate().map(|(at, name)| (name, at)).collect(),
            }
        })
    }

    /// Resolves the names in a template's value to the numbers of their tables and captures.
    fn resolve_value(&self, value: TemplateValue) -> Result<ValueSource, TemplateCompileError> {
        let unknown =
            |name: String| TemplateCompileError(format!("a template uses {name}, which the load plan does not define"));
        Ok(match value {
            TemplateValue::Env(name) => match self.name_table().variables.get(name.as_str()) {
                Some(value) => ValueSource::Fixed((*value).into()),
                None => return Err(unknown(format!("env.{name}"))),
            },
            TemplateValue::Column { data, column } => {
                let table = self.name_table().data.get(data.as_str());
                let cell = table.and_then(|(at, columns)| Some((*at, *columns.get(column.as_str())?)));
                let (data, column) = cell.ok_or_else(|| unknown(data))?;
                ValueSource::Cell { data, column }
            }
            TemplateValue::Captured(name) => {
                match (self.name_table().setup_values.get(name.as_str()), self.capture_number(&name)) {
                    (Some(value), _) => ValueSource::Fixed((*value).into()),
                    (None, Some(number)) => ValueSource::Captured(number),
                    (None, None) => return Err(unknown(name)),
                }
            }
            drawn => ValueSource::Generator(drawn),
        })
    }

    /// Returns the number of a capture name; `None`: no request captures a value of this name.
    pub fn capture_number(&self, name: &str) -> Option<usize> {
        self.name_table().captured.get(name).copied()
    }

    /// Returns the number of capture names in the plan.
    pub fn capture_name_count(&self) -> usize {
        self.name_table().captured.len()
    }
}

/// The values and buffers for filling in templates.
#[derive(Debug, Clone)]
pub struct TemplateValues {
    seed: u64,
    data: Vec<RankedData>,
    /// The number of rows that the current request has taken so far from tables in which each use
    /// takes the next row.
    uses: u64,
    scratch: String,
    /// A reused buffer for one value of a body.
    text: String,
}

#[derive(Debug, Clone)]
struct RankedData {
    rows: Arc<ValueTable>,
    /// The cumulated Zipf weights of the rows; empty if the rows are not chosen by a Zipf
    /// distribution.
    ranks: Arc<[f64]>,
}

/// The context in which one request is filled in: the numbers and values that its template may use.
#[derive(Debug, Clone, Copy)]
pub struct FillContext<'a> {
    /// The number of the request or session.
    pub number: u64,
    /// The number of the request within its session, from 1. The number is 0 for requests outside
    /// sessions.
    pub request_number: u64,
    /// The index of the row that the session uses in tables with unique rows.
    pub unique: u64,
    /// The current time, ms since 1970.
    pub unix_ms: u64,
    /// The captured values, by the number of their name.
    pub captured: &'a [String],
}

impl FillContext<'_> {
    /// Returns the context of the first request of a load.
    pub fn for_first_request(unix_ms: u64) -> FillContext<'static> {
        FillContext { number: 0, request_number: 0, unique: 0, unix_ms, captured: &[] }
    }
}

impl TemplateValues {
    pub fn new(plan: &Plan) -> TemplateValues {
        let table =
            |data: &Arc<ValueTable>| RankedData { rows: Arc::clone(data), ranks: data.cumulated_zipf_weights().into() };
        TemplateValues {
            seed: mix_bits(plan.load.seed ^ TEMPLATE_VALUES_SEED),
            data: plan.traffic.data.iter().map(table).collect(),
            uses: 0,
            scratch: String::new(),
            text: String::new(),
        }
    }

    /// Returns the number of rows in the shortest table with unique rows; `None`: no table has
    /// unique rows.
    pub fn unique_row_count(&self) -> Option<u64> {
        self.data.iter().filter(|table| table.rows.pick == RowChoice::Unique).map(|table| table.rows.row_count()).min()
    }

    /// Fills in the template `form` and writes the result into `request`, from which the template
    /// was compiled.
    pub fn fill(&mut self, form: &RequestTemplate, request: &mut Request, turn: &FillContext) {
        self.uses = 0;
        let mut rng = self.request_rng(turn);
        if let Some(pieces) = &form.target {
            request.target.clear();
            self.write(pieces, RequestSection::Target, turn, &mut rng, &mut request.target);
            convert_to_path_and_query(&mut request.target);
        }
        for (pieces, (_, value)) in form.headers.iter().zip(&mut request.headers) {
            if let Some(pieces) = pieces {
                value.clear();
                self.write(pieces, RequestSection::Header, turn, &mut rng, value);
            }
        }
        if let Some(pieces) = &form.body {
            request.body.clear();
            let mut text = std::mem::take(&mut self.text);
            for piece in pieces {
                match piece {
                    CompiledTemplatePiece::Bytes(bytes) => request.body.extend_from_slice(bytes),
                    value => {
                        text.clear();
                        self.write(std::slice::from_ref(value), RequestSection::Body, turn, &mut rng, &mut text);
                        request.body.extend_from_slice(text.as_bytes());
                    }
                }
            }
            self.text = text;
        }
    }

    /// Returns the random number generator of one request. Each request of a session has a separate
    /// generator.
    fn request_rng(&self, turn: &FillContext) -> Rng {
        let seed = if turn.request_number == 0 {
            self.seed
        } else {
            mix_bits(self.seed.rotate_left(32) ^ turn.request_number)
        };
        Rng::for_stream(seed, turn.number)
    }

    /// Fills in a text template and appends the result to `out`.
    pub fn write_text(&mut self, text: &TextTemplate, turn: &FillContext, out: &mut String) {
        self.uses = 0;
        let mut rng = self.request_rng(turn);
        self.write(&text.0, RequestSection::Body, turn, &mut rng, out);
    }

    fn write(
        &mut self,
        pieces: &[CompiledTemplatePiece],
        within: RequestSection,
        turn: &FillContext,
        rng: &mut Rng,
        out: &mut String,
    ) {
        let mut scratch = std::mem::take(&mut self.scratch);
        for piece in pieces {
            match piece {
                CompiledTemplatePiece::Text(text) => out.push_str(text),
                // A text template has no pieces of raw bytes.
                CompiledTemplatePiece::Bytes(_) => {}
                // Random values that need no escape in any section of a request, such as numbers,
                // are written directly.
                CompiledTemplatePiece::Value(ValueSource::Generator(value), _) if needs_no_escape(value) => {
                    append_generated_value(value, turn, rng, out)
                }
                CompiledTemplatePiece::Value(ValueSource::Generator(value), writing) => {
                    scratch.clear();
                    append_generated_value(value, turn, rng, &mut scratch);
                    append_escaped(&scratch, *writing, within, out);
                }
                CompiledTemplatePiece::Value(ValueSource::Fixed(text), writing) => {
                    append_escaped(text, *writing, within, out)
                }
                CompiledTemplatePiece::Value(ValueSource::Cell { data, column }, writing) => {
                    let row = self.choose_row(*data, turn, rng);
                    append_escaped(self.data[*data].rows.cell(row, *column), *writing, within, out);
                }
                CompiledTemplatePiece::Value(ValueSource::Captured(number), writing) => {
                    let value = turn.captured.get(*number).map_or("", String::as_str);
                    append_escaped(value, *writing, within, out);
                }
            }
        }
        self.scratch = scratch;
    }

    /// Returns the index of the table row that the current request uses.
    fn choose_row(&mut self, data: usize, turn: &FillContext, rng: &mut Rng) -> u64 {
        let RankedData { rows, ranks } = &self.data[data];
        match rows.pick {
            RowChoice::Unique => rows.choose_row(turn.unique, rng, ranks),
            // Each use of the table takes another row in sequence. The row depends on the numbers
            // of the session, the request and the use.
            RowChoice::Sequential if rows.each_use => {
                self.uses += 1;
                rows.choose_row(turn.number.wrapping_add(turn.request_number).wrapping_add(self.uses - 1), rng, ranks)
            }
            RowChoice::Sequential => rows.choose_row(turn.number, rng, ranks),
            _ if rows.each_use => rows.choose_row(turn.number, rng, ranks),
            // All uses of the table within a session take the same row. The row follows from the
            // seed, the table and the session, so that every use draws the same row.
            _ => rows.choose_row(
                turn.number,
                &mut Rng::for_stream(mix_bits(self.seed ^ (data as u64 + 1)), turn.number),
                ranks,
            ),
        }
    }
}

impl RequestTemplate {
    /// Returns whether the body is a template.
    pub fn has_body_template(&self) -> bool {
        self.body.is_some()
    }

    /// Compiles the templates in the request of `route`. Returns `None` if the request is fixed.
    pub fn compile(names: &TemplateNames, route: &Route) -> Result<Option<RequestTemplate>, TemplateCompileError> {
        if !route.template_flags.any_template() {
            return Ok(None);
        }
        let pieces = |is: bool, text: &str, within: RequestSection| match is {
            true => compile(names, text, within).map(Some),
            false => Ok(None),
        };
        let Request { target, headers, body, .. } = &route.request;
        let headers =
            headers.iter().map(|(_, value)| pieces(route.template_flags.headers, value, RequestSection::Header));
        let body = if route.template_flags.body { Some(compile_body(names, body)?) } else { None };
        Ok(Some(RequestTemplate {
            target: pieces(route.template_flags.target, target, RequestSection::Target)?,
            headers: headers.collect::<Result<_, _>>()?,
            body,
        }))
    }
}

impl TextTemplate {
    /// Compiles a text template of the plan.
    pub fn compile(names: &TemplateNames, text: &str) -> Result<TextTemplate, TemplateCompileError> {
        compile(names, text, RequestSection::Body).map(TextTemplate)
    }
}

/// Returns whether a value needs no escape in any section of a request.
fn needs_no_escape(value: &TemplateValue) -> bool {
    matches!(
        value,
        TemplateValue::Int { .. }
            | TemplateValue::Float { .. }
            | TemplateValue::Uuid
            | TemplateValue::Text(_)
            | TemplateValue::Hex(_)
            | TemplateValue::Seq
    )
}

fn compile(
    names: &TemplateNames,
    text: &str,
    within: RequestSection,
) -> Result<Vec<CompiledTemplatePiece>, TemplateCompileError> {
    let template = Template::parse(text).map_err(|error| TemplateCompileError(error.to_string()))?;
    template
        .parts
        .into_iter()
        .map(|part| match part {
            TemplatePart::Text(text) if within == RequestSection::Body => Ok(CompiledTemplatePiece::Text(text.into())),
            TemplatePart::Text(text) => {
                let mut out = String::new();
                append_escaped(&text, ValueEscape::Plain, within, &mut out);
                Ok(CompiledTemplatePiece::Text(out.into()))
            }
            TemplatePart::Value(value, writing) => {
                Ok(CompiledTemplatePiece::Value(names.resolve_value(value)?, writing))
            }
        })
        .collect()
}

/// Compiles the template of a body, which may contain binary bytes.
fn compile_body(names: &TemplateNames, body: &[u8]) -> Result<Vec<CompiledTemplatePiece>, TemplateCompileError> {
    let (mut pieces, mut bytes) = (Vec::new(), Vec::new());
    for chunk in body.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = rest.find("{{") {
            bytes.extend_from_slice(&rest.as_bytes()[..at]);
            let from = &rest[at..];
            let length = Template::value_length(from).unwrap_or(from.len());
            for piece in compile(names, &from[..length], RequestSection::Body)? {
                match piece {
                    CompiledTemplatePiece::Text(text) => bytes.extend_from_slice(text.as_bytes()),
                    value => {
                        if !bytes.is_empty() {
                            pieces.push(CompiledTemplatePiece::Bytes(std::mem::take(&mut bytes).into()));
                        }
                        pieces.push(value);
                    }
                }
            }
            rest = &from[length..];
        }
        bytes.extend_from_slice(rest.as_bytes());
        bytes.extend_from_slice(chunk.invalid());
    }
    if !bytes.is_empty() {
        pieces.push(CompiledTemplatePiece::Bytes(bytes.into()));
    }
    Ok(pieces)
}

/// Generates the value of a placeholder, and appends the value to `out`.
fn append_generated_value(value: &TemplateValue, turn: &FillContext, rng: &mut Rng, out: &mut String) {
    match value {
        TemplateValue::Int { from, to } => {
            let span = to.wrapping_sub(*from) as u64;
            let above = if span == u64::MAX { rng.next_u64() } else { rng.uniform_below(span + 1) };
            let number = from.wrapping_add(above as i64);
            if number < 0 {
                out.push('-');
            }
            push_decimal(number.unsigned_abs(), 1, out);
        }
        TemplateValue::Float { from, to } => {
            let milli = ((from + (to - from) * rng.next_f64()) * 1e3).round();
            if milli < 0.0 {
                out.push('-');
            }
            let milli = milli.abs() as u64;
            push_decimal(milli / 1_000, 1, out);
            out.push('.');
            push_decimal(milli % 1_000, 3, out);
        }
        TemplateValue::Uuid => {
            let high = rng.next_u64() & !0xf000 | 0x4000;
            let low = rng.next_u64() & !(0b11 << 62) | 0b10 << 62;
            for (bits, from, to) in [(high, 64, 32), (high, 32, 16), (high, 16, 0), (low, 64, 48), (low, 48, 0)] {
                if from < 64 || to > 32 {
                    out.push('-');
                }
                (to..from)
                    .step_by(4)
                    .rev()
                    .for_each(|shift| out.push(char::from(HEX_DIGITS[(bits >> shift & 15) as usize])));
            }
        }
        TemplateValue::Text(count) => {
            for _ in 0..*count {
                out.push(char::from(LOWERCASE_ALPHANUMERICS[rng.uniform_below(36) as usize]));
            }
        }
        TemplateValue::Hex(count) => {
            let mut bits = 0;
            for at in 0..*count {
                if at % 16 == 0 {
                    bits = rng.next_u64();
                }
                out.push(char::from(HEX_DIGITS[(bits & 15) as usize]));
                bits >>= 4;
            }
        }
        TemplateValue::Seq => push_decimal(turn.number + 1, 1, out),
        TemplateValue::Pick(choices) => out.push_str(&choices[rng.uniform_below(choices.len() as u64) as usize]),
        TemplateValue::Now(pieces) => write_time(pieces, turn.unix_ms, out),
        // Values of environment variables, tables and captures are not random, so this function
        // does not generate them.
        TemplateValue::Env(_) | TemplateValue::Column { .. } | TemplateValue::Captured(_) => {}
    }
}

/// Appends a number in decimal, padded with zeros to at least `digits_min` digits.
fn push_decimal(mut number: u64, digits_min: usize, out: &mut String) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while number > 0 {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    let at = at.min(digits.len() - digits_min);
    digits[at..].iter().for_each(|digit| out.push(char::from(*digit)));
}

fn write_time(pieces: &[TimeFormatPiece], unix_ms: u64, out: &mut String) {
    let seconds = unix_ms / 1_000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date_of_day(days);
    for piece in pieces {
        let (number, digits) = match piece {
            TimeFormatPiece::Text(text) => {
                out.push_str(text);
                continue;
            }
            TimeFormatPiece::Year => (year, 4),
            TimeFormatPiece::Month => (month, 2),
            TimeFormatPiece::Day => (day, 2),
            TimeFormatPiece::Hour => (of_day / 3_600, 2),
            TimeFormatPiece::Minute => (of_day / 60 % 60, 2),
            TimeFormatPiece::Second => (of_day % 60, 2),
            TimeFormatPiece::Milli => (unix_ms % 1_000, 3),
            TimeFormatPiece::Epoch => (seconds, 1),
        };
        push_decimal(number, digits, out);
    }
}

/// Converts a filled-in text to a path and query. The text may be a whole URL, or empty.
fn convert_to_path_and_query(target: &mut String) {
    if target.starts_with('/') {
        return;
    }
    if let Some(scheme) = target.find("://").filter(|at| !target[..*at].contains(['/', '?'])) {
        let host = &target[scheme + 3..];
        let path = host.find(['/', '?']).unwrap_or(host.len());
        target.drain(..scheme + 3 + path);
    }
    if !target.starts_with('/') {
        target.insert(0, '/');
    }
}

/// Appends `text` to `out`, escaped as the section of the request that contains the text requires.
fn append_escaped(text: &str, writing: ValueEscape, within: RequestSection, out: &mut String) {
    match writing {
        ValueEscape::Url => text.bytes().for_each(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => push_percent_encoded(byte, out),
        }),
        ValueEscape::Json => text.chars().for_each(|c| match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                out.push_str("\\u00");
                out.push(char::from(HEX_DIGITS[c as usize >> 4]));
                out.push(char::from(HEX_DIGITS[c as usize & 15]));
            }
            c => out.push(c),
        }),
        ValueEscape::Plain if within == RequestSection::Body => out.push_str(text),
        // Line breaks are removed, because a line break would end the header field.
        ValueEscape::Plain if within == RequestSection::Header => {
            out.extend(text.chars().filter(|c| !matches!(c, '\r' | '\n' | '\0')))
        }
        ValueEscape::Plain => text.bytes().for_each(|byte| match byte {
            b'#' | b'"' | b'<' | b'>' => push_percent_encoded(byte, out),
            byte if byte.is_ascii_graphic() => out.push(char::from(byte)),
            _ => push_percent_encoded(byte, out),
        }),
    }
}

fn push_percent_encoded(byte: u8, out: &mut String) {
    out.push('%');
    out.push(char::from(HEX_DIGITS[usize::from(byte >> 4)].to_ascii_uppercase()));
    out.push(char::from(HEX_DIGITS[usize::from(byte & 15)].to_ascii_uppercase()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::traffic::TemplateFlags;
    use plimsoll_model::{LoadCurve, LoadShape};

    const SAMPLE_FILL_CONTEXT: FillContext<'static> =
        FillContext { number: 6, request_number: 0, unique: 1, unix_ms: 1_795_310_187_042, captured: &[] };

    fn plan_with_tables() -> Plan {
        let mut plan = Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) });
        let mut user = |name: &str, pick, each_use| {
            let mut data = ValueTable::new(name.into(), vec!["name".into(), "id".into()], pick, each_use);
            for (name, id) in [("ann b", "1"), ("b\"c\n", "2"), ("\u{e9}&x", "3")] {
                data.push([name, id].into_iter()).expect("room");
            }
            plan.traffic.data.push(Arc::new(data));
        };
        user("user", RowChoice::Sequential, false);
        user("once", RowChoice::Unique, false);
        user("any", RowChoice::Random, false);
        user("each", RowChoice::Random, true);
        user("next", RowChoice::Sequential, true);
        plan.traffic.variables = vec![("TOKEN".into(), "t\r\nx".into())];
        plan
    }

    fn fill_request(target: &str, header: &str, body: &str, turn: FillContext) -> Request {
        let mut plan = plan_with_tables();
        let mut route = Route::new(Request {
            target: target.into(),
            headers: vec![("x".into(), header.into())],
            body: body.into(),
            ..Request::get_root()
        });
        route.template_flags = TemplateFlags { target: true, headers: true, body: true };
        plan.traffic.routes = vec![route.clone()];
        let form =
            RequestTemplate::compile(&TemplateNames::new(&plan), &route).expect("compiles").expect("is filled in");
        let mut request = route.request;
        let mut values = TemplateValues::new(&plan);
        values.fill(&form, &mut request, &turn);
        request
    }

    #[test]
    fn values_are_escaped_for_their_section() {
        for (template, target, header, body) in [
            ("/{{ user.name }}", "/ann%20b", "/ann b", "/ann b"),
            ("/{{ next.id }}{{ next.id }}{{ next.id }}{{ next.id }}", "/1231", "/2312", "/3123"),
            ("/{{ once.name | json }}", "/b\\\"c\\n", "/b\\\"c\\n", "/b\\\"c\\n"),
            ("/{{ once.name | url }}", "/b%22c%0A", "/b%22c%0A", "/b%22c%0A"),
            ("/{{ once.name }}", "/b%22c%0A", "/b\"c", "/b\"c\n"),
            ("/{{ env.TOKEN }}", "/t%0D%0Ax", "/tx", "/t\r\nx"),
            ("/{{ seq() }}/{{ int(5,5) }}/{{ int(-7,-7) }}", "/7/5/-7", "/7/5/-7", "/7/5/-7"),
            ("/{{ float(1.5,1.5) }}/{{ float(-0.25,-0.25) }}", "/1.500/-0.250", "/1.500/-0.250", "/1.500/-0.250"),
            ("/{{ pick(\"a b\") }}", "/a%20b", "/a b", "/a b"),
            (
                "/{{ now(\"%Y-%m-%dT%H:%M:%S.%L %s\") }}",
                "/2026-11-22T01:16:27.042%201795310187",
                "/2026-11-22T01:16:27.042 1795310187",
                "/2026-11-22T01:16:27.042 1795310187",
            ),
            ("/\u{e9} x", "/%C3%A9%20x", "/\u{e9} x", "/\u{e9} x"),
        ] {
            // Parts of a request without placeholders stay fixed.
            let fixed = Template::parse(template).expect("a template").has_no_values();
            let request = fill_request(template, template, template, SAMPLE_FILL_CONTEXT);
            if !fixed {
                assert_eq!(request.target, target, "{template}");
            }
            assert_eq!(request.headers[0].1, header, "{template}");
            assert_eq!(std::str::from_utf8(&request.body).expect("text"), body, "{template}");
        }
    }

    #[test]
    fn a_body_template_may_contain_raw_bytes() {
        let mut plan = plan_with_tables();
        let mut route = Route::new(Request {
            body: b"\xff{{ seq() }}{{ '{{' }}\xfe}}{{ user.name }}\x80".to_vec(),
            ..Request::get_root()
        });
        route.template_flags = TemplateFlags { target: false, headers: false, body: true };
        plan.traffic.routes = vec![route.clone()];
        let form =
            RequestTemplate::compile(&TemplateNames::new(&plan), &route).expect("compiles").expect("is filled in");
        let mut request = route.request;
        TemplateValues::new(&plan).fill(&form, &mut request, &SAMPLE_FILL_CONTEXT);
        assert_eq!(request.body, b"\xff7{{\xfe}}ann b\x80");
    }

    /// Checks that templates of many values are compiled quickly. Regression test: compilation of a
    /// template once took minutes with many values.
    #[test]
    fn templates_of_many_values_are_compiled_in_one_pass() {
        const VALUE_COUNT: usize = 40_000;
        let mut plan = plan_with_tables();
        plan.traffic.variables = (0..VALUE_COUNT).map(|n| (format!("V{n}"), "x".to_owned())).collect();
        plan.traffic.setup_teardown.captured_values =
            (0..VALUE_COUNT).map(|n| (format!("c{n}"), "y".to_owned())).collect();
        let body: String =
            (0..VALUE_COUNT).map(|n| format!("{{{{ int(1,9) }}}}{{{{ env.V{n} }}}}{{{{ c{n} }}}}")).collect();
        let mut route = Route::new(Request { body: body.into(), ..Request::get_root() });
        route.template_flags = TemplateFlags { body: true, ..TemplateFlags::default() };
        let began_ns = plimsoll_sys::clock::thread_cpu_ns();
        let form =
            RequestTemplate::compile(&TemplateNames::new(&plan), &route).expect("compiles").expect("is filled in");
        let took_ns = plimsoll_sys::clock::thread_cpu_ns() - began_ns;
        assert!(form.has_body_template() && took_ns < 3_000_000_000, "{took_ns} ns");
    }

    #[test]
    fn a_target_that_starts_with_a_placeholder_is_a_path() {
        let captured = ["http://h:8080/orders/7?x=1", "/orders/7", "orders/7", "", "https://h", "x?u=http://h/"];
        for (value, expect) in
            captured.iter().zip(["/orders/7?x=1", "/orders/7", "/orders/7", "/", "/", "/x?u=http://h/"])
        {
            let mut target = (*value).to_owned();
            convert_to_path_and_query(&mut target);
            assert_eq!(target, expect, "{value}");
        }
    }

    #[test]
    fn random_values_depend_on_seed_and_number_only() {
        let draw = |template: &str, number: u64| {
            fill_request(template, "", "", FillContext { number, ..SAMPLE_FILL_CONTEXT }).target
        };
        for number in 0..200 {
            let uuid = draw("/{{ uuid() }}", number);
            let groups: Vec<usize> = uuid[1..].split('-').map(str::len).collect();
            assert_eq!(groups, [8, 4, 4, 4, 12], "{uuid}");
            assert!(uuid.as_bytes()[15] == b'4' && b"89ab".contains(&uuid.as_bytes()[20]), "{uuid}");
            let int: i64 = draw("/{{ int(-3,3) }}", number)[1..].parse().expect("a number");
            assert!((-3..=3).contains(&int));
            assert_eq!(draw("/{{ text(9) }}{{ hex(40) }}", number).len(), 50);
            let pair = draw("/{{ any.id }}={{ any.id }}", number);
            let (a, b) = pair[1..].split_once('=').expect("two");
            assert_eq!(a, b, "one row for a request");
            assert_eq!(draw("/{{ uuid() }}", number), uuid);
            assert_ne!(draw("/{{ uuid() }}", number + 1), uuid);
        }
        let differ = (0..200).filter(|number| {
            let pair = draw("/{{ each.id }}={{ each.id }}", *number);
            pair[1..].split_once('=').is_some_and(|(a, b)| a != b)
        });
        assert!((90..180).contains(&differ.count()), "a row for every use");
        let extremes = format!("/{{{{ int({},{}) }}}}", i64::MIN, i64::MAX);
        assert!(draw(&extremes, 1)[1..].parse::<i64>().is_ok());
    }
}
