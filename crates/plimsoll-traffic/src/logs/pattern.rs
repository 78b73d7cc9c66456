//! Text lines with fields between fixed texts, as `log_format` and `LogFormat` define them:
//! compiled to steps, each a field and the text that ends it. Not here: the format languages
//! ([`super::directives`]).

use super::entry::{LinePlace, Raw};
use super::stamp::{StampFormat, Token};
use memchr::memmem::Finder;

/// One field and the text after it.
#[derive(Debug, Clone)]
struct LineStep {
    place: LinePlace,
    end: PlaceEnd,
}

/// How a field ends.
#[derive(Debug, Clone)]
enum PlaceEnd {
    /// At this byte, the only separator of the next field.
    Byte(u8),
    /// At this byte, after padding blanks.
    Padded(u8),
    /// At the second of these bytes: the first belongs to the field.
    Second(u8),
    /// At this text.
    Text(Box<Finder<'static>>),
    /// At an unescaped quote, followed by this text (possibly empty).
    Quote(Vec<u8>),
    /// At this text, unless it is inside a list of upstream servers.
    List(Box<Finder<'static>>),
    /// Before this byte, which belongs to the next field.
    Before(u8),
    /// At the end of the line.
    Line,
}

/// The fields of a line.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    begin: Vec<u8>,
    steps: Vec<LineStep>,
    /// Whether more text may follow.
    open_end: bool,
}

/// A piece of a format: a field or fixed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FormatPiece {
    Place(LinePlace),
    Text(Vec<u8>),
}

impl Pattern {
    /// Compiles `pieces`; `None` if two fields touch, so that their boundary is unknown.
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
            let FormatPiece::Place(place) = piece else { return None };
            let end = match pieces.peek() {
                None => PlaceEnd::Line,
                Some(FormatPiece::Text(text)) => ending(&before, &place, text),
                // A host directly before a path ends where the path begins.
                Some(FormatPiece::Place(LinePlace::Target)) if place == LinePlace::Other => PlaceEnd::Before(b'/'),
                Some(FormatPiece::Place(_)) => return None,
            };
            before = text_next(&mut pieces);
            steps.push(LineStep { place, end });
        }
        Some(Pattern { begin, steps, open_end })
    }

    /// Whether a line has a timestamp.
    pub fn has_time(&self) -> bool {
        self.steps.iter().any(|step| step.place.is_moment())
    }

    /// The texts of a line by meaning; `None` if it has another format.
    #[inline]
    pub fn read<'a>(&self, line: &'a [u8]) -> Option<Raw<'a>> {
        let mut raw = Raw::default();
        let mut rest = line.strip_prefix(self.begin.as_slice())?;
        for step in &self.steps {
            let (text, after) = match &step.end {
                PlaceEnd::Byte(byte) => {
                    let at = memchr::memchr(*byte, rest)?;
                    (&rest[..at], &rest[at + 1..])
                }
                PlaceEnd::Padded(byte) => {
                    let padded = rest.trim_ascii_start();
                    let at = memchr::memchr(*byte, padded)?;
                    (&padded[..at], &padded[at + 1..])
                }
                PlaceEnd::Second(byte) => {
                    let at = memchr::memchr_iter(*byte, rest).nth(1)?;
                    (&rest[..at], &rest[at + 1..])
                }
                PlaceEnd::Text(text) => {
                    let at = text.find(rest)?;
                    (&rest[..at], &rest[at + text.needle().len()..])
                }
                PlaceEnd::List(text) => {
                    let at = end_of_list(text, rest)?;
                    (&rest[..at], &rest[at + text.needle().len()..])
                }
                PlaceEnd::Quote(more) => {
                    let at = closing_quote(rest)?;
                    (&rest[..at], rest[at + 1..].strip_prefix(more.as_slice())?)
                }
                PlaceEnd::Before(byte) => rest.split_at(memchr::memchr(*byte, rest)?),
                PlaceEnd::Line => (rest, &rest[rest.len()..]),
            };
            raw.put(&step.place, text)?;
            rest = after;
        }
        (rest.is_empty() || self.open_end).then_some(raw)
    }
}

/// How a field between two texts ends.
fn ending(before: &[u8], place: &LinePlace, after: &[u8]) -> PlaceEnd {
    match after {
        [b'"', more @ ..] if before.last() == Some(&b'"') => PlaceEnd::Quote(more.to_vec()),
        [b' ', rest @ ..] if has_blank(place) => {
            if rest.is_empty() {
                PlaceEnd::Second(b' ')
            } else {
                PlaceEnd::Text(Box::new(Finder::new(after).into_owned()))
            }
        }
        [b' ', ..] if matches!(place, LinePlace::List | LinePlace::Client) => {
            PlaceEnd::List(Box::new(Finder::new(after).into_owned()))
        }
        [b' '] if matches!(place, LinePlace::Duration(_)) => PlaceEnd::Padded(b' '),
        [only] => PlaceEnd::Byte(*only),
        _ => PlaceEnd::Text(Box::new(Finder::new(after).into_owned())),
    }
}

/// The end of a list: nginx writes `a, b` and `a, b : c` for several upstream servers.
fn end_of_list(end: &Finder, text: &[u8]) -> Option<usize> {
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

/// Whether a timestamp contains a blank.
fn has_blank(place: &LinePlace) -> bool {
    match place {
        LinePlace::Time(StampFormat::Pattern(tokens))
        | LinePlace::Start(StampFormat::Pattern(tokens))
        | LinePlace::End(StampFormat::Pattern(tokens)) => {
            tokens.iter().any(|token| matches!(token, Token::Text(text) if text.contains(&b' ')))
        }
        _ => false,
    }
}

/// The offset of the closing quote of a text; `\"` is escaped.
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
