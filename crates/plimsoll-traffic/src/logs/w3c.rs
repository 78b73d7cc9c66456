//! Parses logs that declare their fields in a directive, such as `#Fields: date time c-ip ...` (W3C
//! extended format, as IIS and CloudFront write it).

use super::entry::{LinePlace, Raw};
use super::stamp::{self, StampFormat};
use plimsoll_model::units::{MS, SECOND};

/// The largest accepted number of fields of a line.
const FIELDS_MAX: usize = 100;

/// The fields of each line, in order, as a `#Fields` directive declares them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct W3cFields {
    places: Vec<W3cPlace>,
    /// Whether the log is CloudFront's, whose durations are seconds.
    pub is_cloudfront: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum W3cPlace {
    Date,
    Time,
    Path,
    Query,
    /// A duration. A whole number has this unit in ns; a number with a decimal point is in seconds.
    Taken(u64),
    Is(LinePlace),
}

/// Whether a line is a directive instead of a request.
pub(super) fn is_directive(line: &[u8]) -> bool {
    line.starts_with(b"#")
}

impl W3cFields {
    /// Parses a `#Fields` directive. `None` for any other line, or if required fields are missing.
    pub fn read(line: &[u8]) -> Option<W3cFields> {
        let names = std::str::from_utf8(line.strip_prefix(b"#Fields:")?).ok()?;
        let names: Vec<String> = names.split_ascii_whitespace().map(str::to_ascii_lowercase).collect();
        let has = |name: &str| names.iter().any(|own| own == name);
        let is_cloudfront = has("x-edge-location");
        let forwarded = has("x-forwarded-for") && !has("c-ip");
        let unit_ns = if is_cloudfront { SECOND } else { MS };
        let place = |name: &String| match name.as_str() {
            "date" => W3cPlace::Date,
            "time" => W3cPlace::Time,
            "cs-uri-stem" => W3cPlace::Path,
            "cs-uri-query" => W3cPlace::Query,
            "time-taken" => W3cPlace::Taken(unit_ns),
            "cs-uri" => W3cPlace::Is(LinePlace::Target),
            "cs-method" => W3cPlace::Is(LinePlace::Method),
            "sc-status" => W3cPlace::Is(LinePlace::Status),
            "sc-bytes" => W3cPlace::Is(LinePlace::Bytes),
            "c-ip" => W3cPlace::Is(LinePlace::Client),
            "x-forwarded-for" if forwarded => W3cPlace::Is(LinePlace::Client),
            "cs(user-agent)" => W3cPlace::Is(LinePlace::UserAgent),
            "timestamp" => W3cPlace::Is(LinePlace::End(StampFormat::Auto)),
            _ => W3cPlace::Is(LinePlace::Other),
        };
        let is_enough = has("time") && has("date") && (has("cs-uri-stem") || has("cs-uri"));
        let places = names.iter().map(place).collect();
        (is_enough && names.len() <= FIELDS_MAX).then_some(W3cFields { places, is_cloudfront })
    }

    /// Splits a line into its fields. `room` stores path and query joined.
    pub fn parse<'a>(&self, line: &'a [u8], room: &'a mut Vec<u8>) -> Option<Raw<'a>> {
        let mut raw = Raw::default();
        let between = if memchr::memchr(b'\t', line).is_some() { b'\t' } else { b' ' };
        let mut texts = line.split(|b| *b == between);
        let (mut date, mut time, mut path, mut query): (&[u8], &[u8], &[u8], &[u8]) = (b"", b"", b"", b"");
        for place in &self.places {
            let text = texts.next()?;
            match place {
                W3cPlace::Date => date = text,
                W3cPlace::Time => time = text,
                W3cPlace::Path => path = text,
                W3cPlace::Query => query = text,
                W3cPlace::Taken(unit_ns) => {
                    let unit_ns = if text.contains(&b'.') { SECOND } else { *unit_ns };
                    raw.put(&LinePlace::Duration(unit_ns), text)?;
                }
                W3cPlace::Is(place) => raw.put(place, text)?,
            }
        }
        // A line with more texts than fields has another format.
        texts.next().is_none().then_some(())?;
        if !date.is_empty() {
            let mut whole = [0u8; 48];
            let (length, day) = (date.len() + 1 + time.len(), date.len());
            whole.get_mut(..day)?.copy_from_slice(date);
            *whole.get_mut(day)? = b'T';
            whole.get_mut(day + 1..length)?.copy_from_slice(time);
            raw.end = Some(stamp::read(whole.get(..length)?)?);
        }
        if !path.is_empty() {
            room.clear();
            room.extend_from_slice(path);
            if !query.is_empty() && query != b"-" {
                room.push(b'?');
                room.extend_from_slice(query);
            }
            raw.target = room;
        }
        Some(raw)
    }
}
