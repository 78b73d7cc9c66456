//! Access logs: a [`Format`] defines the fields of a line, [`Format::parse`] returns the [`Entry`]
//! of a line without copying, [`find_format`] detects the format of a file from its first lines.
//!
//! A timestamp is the start or the end of a request, depending on the server. Arrivals are computed
//! from ends if durations are logged. Not here: reading files, and statistics over many lines
//! ([`crate::survey`]).

mod directives;
mod entry;
mod format;
mod json;
mod known;
mod logfmt;
mod pattern;
mod prefix;
mod stamp;
mod w3c;

pub use entry::{Entry, Stamp};
pub use format::{Format, FormatError, KNOWN_FORMATS, LineRoom, find_format};
pub use json::{FIELDS, FieldsError};
pub(crate) use stamp::read as moment_ns;

/// Longest line in bytes; longer ones are not parsed.
pub const LINE_BYTES_MAX: usize = 1 << 20;
