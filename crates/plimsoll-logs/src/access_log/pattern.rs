//! Parses log lines with fields between fixed texts, as `log_format` and `LogFormat` define. A log
//! format is compiled to steps. Each step has a field and the rule that finds the end of the field.
//! Not here: the format languages ([`super::directives`]).

use super::entry::{FieldMeaning, ParsedLogFields};
use memchr::memmem::Finder;
use plimsoll_model::timestamp::{TimestampFormat, TimestampToken};

/// One field of a log line, with the rule that finds the end of the field.
#[derive(Debug, Clone)]
struct LineStep {
    meaning: FieldMeaning,
    end: FieldEnd,
}

/// The rule that finds the end of a field.
#[derive(Debug, Clone)]
enum FieldEnd {
    /// The field ends at this byte, which separates the field from the next field.
    Byte(u8),
    /// Blanks before the field are skipped, and the field ends at this byte.
    Padded(u8),
    /// The field ends at the second occurrence of this byte; the first occurrence is part of the
    /// field.
    SecondOccurrence(u8),
    /// The field ends at this text.
    Text(Box<Finder<'static>>),
    /// The field ends at the next unescaped quote. The text that is the variant's value, which may
    /// be empty, must follow the quote.
    Quote(Vec<u8>),
    /// The field is a list of upstream servers or of clients. The list ends at this text;
    /// occurrences of the text between two entries of the list are skipped.
    List(Box<Finder<'static>>),
    /// The field ends before this byte, which begins the next field.
    Before(u8),
    /// The field ends at the end of the line.
    Line,
}

/// A compiled text format: the text at the beginning of a line, and one step for each field.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    begin: Vec<u8>,
    steps: Vec<LineStep>,
    /// Whether more text may follow the last field.
    open_end: bool,
}

/// A piece of a format: a field or a fixed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FormatPiece {
    Field(FieldMeaning),
    Text(Vec<u8>),
}

impl Pattern {
    /// Compiles the pieces of a format. Returns `None` if two fields have no text between them,
    /// because a parser could not find the boundary between such fields.
    pub fn new(pieces: Vec<FormatPiece>, open_end: bool) -> Option<Pattern> {
        let mut pieces = pieces.into_iter().peekable();
        let text_next = |pieces: &mut std::iter::Peekable<std::vec::IntoIter<FormatPiece>>| match pieces
            .next_if(|piece| matches!(piece, FormatPiece::Text(_)))
        {
            Some(FormatPiece::Text(text)) => text,
            _ => Vec::new(),
        };
        let begin = text_next(&mut pieces);
        let mut before = begin.clone();
        let mut steps: Vec<LineStep> = Vec::new();
        while let Some(piece) = pieces.next() {
            let FormatPiece::Field(place) = piece else { return None };
            let end = match pieces.peek() {
                None => FieldEnd::Line,
                Some(FormatPiece::Text(text)) => field_end_rule(&before, &place, text),
                // A host directly before a path ends where the path begins.
                Some(FormatPiece::Field(FieldMeaning::Target)) if place == FieldMeaning::Ignored => {
                    FieldEnd::Before(b'/')
                }
                Some(FormatPiece::Field(_)) => return None,
            };
            before = text_next(&mut pieces);
            steps.push(LineStep { meaning: place, end });
        }
        Some(Pattern { begin, steps, open_end })
    }

    /// Returns whether the format has a timestamp.
    pub fn has_time(&self) -> bool {
        self.steps.iter().any(|step| step.meaning.is_timestamp())
    }

    /// Splits a line into its fields. `None` if the line does not match the format.
    #[inline]
    pub fn read<'a>(&self, line: &'a [u8]) -> Option<ParsedLogFields<'a>> {
        let mut raw = ParsedLogFields::default();
        let mut rest = line.strip_prefix(self.begin.as_slice())?;
        for step in &self.steps {
            let (text, after) = match &step.end {
                FieldEnd::Byte(byte) => {
                    let at = memchr::memchr(*byte, rest)?;
                    (&rest[..at], &rest[at + 1..])
                }
                FieldEnd::Padded(byte) => {
                    let padded = rest.trim_ascii_start();
                    let at = memchr::memchr(*byte, padded)?;
                    (&padded[..at], &padded[at + 1..])
                }
                FieldEnd::SecondOccurrence(byte) => {
                    let at = memchr::memchr_iter(*byte, rest).nth(1)?;
                    (&rest[..at], &rest[at + 1..])
                }
                FieldEnd::Text(text) => {
                    let at = text.find(rest)?;
                    (&rest[..at], &rest[at + text.needle().len()..])
                }
                FieldEnd::List(text) => {
                    let at = upstream_list_end(text, rest)?;
                    (&rest[..at], &rest[at + text.needle().len()..])
                }
                FieldEnd::Quote(more) => {
                    let at = closing_quote(rest)?;
                    (&rest[..at], rest[at + 1..].strip_prefix(more.as_slice())?)
                }
                FieldEnd::Before(byte) => rest.split_at(memchr::memchr(*byte, rest)?),
                FieldEnd::Line => (rest, &rest[rest.len()..]),
            };
            raw.parse_field(&step.meaning, text)?;
            rest = after;
        }
        (rest.is_empty() || self.open_end).then_some(raw)
    }
}

/// Returns the rule that finds the end of a field between the texts `before` and `after`.
fn field_end_rule(before: &[u8], place: &FieldMeaning, after: &[u8]) -> FieldEnd {
    match after {
        [b'"', more @ ..] if before.last() == Some(&b'"') => FieldEnd::Quote(more.to_vec()),
        [b' ', rest @ ..] if has_blank(place) => {
            if rest.is_empty() {
                FieldEnd::SecondOccurrence(b' ')
            } else {
                FieldEnd::Text(Box::new(Finder::new(after).into_owned()))
            }
        }
        [b' ', ..] if matches!(place, FieldMeaning::UpstreamList | FieldMeaning::Client) => {
            FieldEnd::List(Box::new(Finder::new(after).into_owned()))
        }
        [b' '] if matches!(place, FieldMeaning::Duration(_)) => FieldEnd::Padded(b' '),
        [only] => FieldEnd::Byte(*only),
        _ => FieldEnd::Text(Box::new(Finder::new(after).into_owned())),
    }
}

/// Returns the offset where a list of upstream servers ends. nginx writes `a, b` and `a, b : c` for
/// several upstream servers.
fn upstream_list_end(end: &Finder, text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + end.find(text.get(from..)?)?;
        let (before, after) = (&text[..at], &text[at + 1..]);
        if !before.ends_with(b",") && !before.ends_with(b" :") && !after.starts_with(b": ") {
            return Some(at);
        }
        from = at + 1;
    }
}

/// Returns whether the text of a timestamp field contains a blank.
fn has_blank(place: &FieldMeaning) -> bool {
    match place {
        FieldMeaning::Time(TimestampFormat::Pattern(tokens))
        | FieldMeaning::Start(TimestampFormat::Pattern(tokens))
        | FieldMeaning::End(TimestampFormat::Pattern(tokens)) => {
            tokens.iter().any(|token| matches!(token, TimestampToken::Text(text) if text.contains(&b' ')))
        }
        _ => false,
    }
}

/// Returns the offset of the closing quote of a text. A quote after a backslash (`\"`) does not
/// close the text.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr(b'"', &text[from..])?;
        let escapes = text[..at].iter().rev().take_while(|b| **b == b'\\').count();
        if escapes % 2 == 0 {
            return Some(at);
        }
        from = at + 1;
    }
}
