//! Parses logs that declare their fields in a directive, such as `#Fields: date time c-ip ...` (W3C
//! extended format, as IIS and CloudFront write it).

use super::entry::{FieldMeaning, ParsedLogFields};
use plimsoll_model::timestamp::{TimestampFormat, unix_time_ns};
use plimsoll_model::units::{MS, SECOND};

/// The largest accepted number of fields in a `#Fields` directive.
const FIELDS_MAX: usize = 100;

/// The fields of each line, in order, as a `#Fields` directive declares them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct W3cFields {
    places: Vec<W3cFieldMeaning>,
    /// Whether CloudFront wrote the log, so that all durations are in seconds.
    pub is_cloudfront: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum W3cFieldMeaning {
    Date,
    Time,
    Path,
    Query,
    /// The duration of the request. The value of the variant is the unit of durations without a
    /// decimal point, ns. Durations with a decimal point are in seconds.
    Duration(u64),
    Field(FieldMeaning),
}

/// Returns whether a line is a directive instead of a request.
pub(super) fn is_directive(line: &[u8]) -> bool {
    line.starts_with(b"#")
}

impl W3cFields {
    /// Parses a `#Fields` directive. `None` if the line is not a `#Fields` directive, lacks a
    /// required field, or has more than `FIELDS_MAX` fields.
    pub fn parse_fields_directive(line: &[u8]) -> Option<W3cFields> {
        let names = std::str::from_utf8(line.strip_prefix(b"#Fields:")?).ok()?;
        let names: Vec<String> = names.split_ascii_whitespace().map(str::to_ascii_lowercase).collect();
        let has = |name: &str| names.iter().any(|own| own == name);
        let is_cloudfront = has("x-edge-location");
        let forwarded = has("x-forwarded-for") && !has("c-ip");
        let unit_ns = if is_cloudfront { SECOND } else { MS };
        let place = |name: &String| match name.as_str() {
            "date" => W3cFieldMeaning::Date,
            "time" => W3cFieldMeaning::Time,
            "cs-uri-stem" => W3cFieldMeaning::Path,
            "cs-uri-query" => W3cFieldMeaning::Query,
            "time-taken" => W3cFieldMeaning::Duration(unit_ns),
            "cs-uri" => W3cFieldMeaning::Field(FieldMeaning::Target),
            "cs-method" => W3cFieldMeaning::Field(FieldMeaning::Method),
            "sc-status" => W3cFieldMeaning::Field(FieldMeaning::Status),
            "sc-bytes" => W3cFieldMeaning::Field(FieldMeaning::Bytes),
            "c-ip" => W3cFieldMeaning::Field(FieldMeaning::Client),
            "x-forwarded-for" if forwarded => W3cFieldMeaning::Field(FieldMeaning::Client),
            "cs(user-agent)" => W3cFieldMeaning::Field(FieldMeaning::UserAgent),
            "timestamp" => W3cFieldMeaning::Field(FieldMeaning::End(TimestampFormat::Auto)),
            _ => W3cFieldMeaning::Field(FieldMeaning::Ignored),
        };
        let is_enough = has("time") && has("date") && (has("cs-uri-stem") || has("cs-uri"));
        let places = names.iter().map(place).collect();
        (is_enough && names.len() <= FIELDS_MAX).then_some(W3cFields { places, is_cloudfront })
    }

    /// Splits a line into its fields. `buffer` is a buffer for the joined path and query.
    pub fn parse<'a>(&self, line: &'a [u8], buffer: &'a mut Vec<u8>) -> Option<ParsedLogFields<'a>> {
        let mut raw = ParsedLogFields::default();
        let between = if memchr::memchr(b'\t', line).is_some() { b'\t' } else { b' ' };
        let mut texts = line.split(|b| *b == between);
        let (mut date, mut time, mut path, mut query): (&[u8], &[u8], &[u8], &[u8]) = (b"", b"", b"", b"");
        for place in &self.places {
            let text = texts.next()?;
            match place {
                W3cFieldMeaning::Date => date = text,
                W3cFieldMeaning::Time => time = text,
                W3cFieldMeaning::Path => path = text,
                W3cFieldMeaning::Query => query = text,
                W3cFieldMeaning::Duration(unit_ns) => {
                    let unit_ns = if text.contains(&b'.') { SECOND } else { *unit_ns };
                    raw.parse_field(&FieldMeaning::Duration(unit_ns), text)?;
                }
                W3cFieldMeaning::Field(place) => raw.parse_field(place, text)?,
            }
        }
        // A line with more texts than declared fields has another format.
        texts.next().is_none().then_some(())?;
        if !date.is_empty() {
            let mut whole = [0u8; 48];
            let (length, day) = (date.len() + 1 + time.len(), date.len());
            whole.get_mut(..day)?.copy_from_slice(date);
            *whole.get_mut(day)? = b'T';
            whole.get_mut(day + 1..length)?.copy_from_slice(time);
            raw.end = Some(unix_time_ns(whole.get(..length)?)?);
        }
        if !path.is_empty() {
            buffer.clear();
            buffer.extend_from_slice(path);
            if !query.is_empty() && query != b"-" {
                buffer.push(b'?');
                buffer.extend_from_slice(query);
            }
            raw.target = buffer;
        }
        Some(raw)
    }
}
