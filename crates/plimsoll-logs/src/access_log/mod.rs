//! Parses access logs. A [`Format`] defines the fields of a line. [`Format::parse`] returns the
//! [`Entry`] of a line without copying. [`find_format`] detects the format from the first lines of
//! a file.
//!
//! A timestamp is the start or the end of a request, depending on the server. If a log has the end
//! and the duration of each request, the arrival is computed as the difference. Not here: reading
//! files, and statistics over many lines ([`crate::survey`]).

mod directives;
mod entry;
mod format;
mod json;
mod known;
mod logfmt;
mod pattern;
mod prefix;
mod w3c;

pub use entry::{Entry, TimestampMeaning};
pub use format::{Format, FormatError, KNOWN_FORMATS, LineBuffers, find_format};
pub use json::FieldMappingError;

/// The longest line that is parsed, bytes. Longer lines are skipped.
pub const LINE_BYTES_MAX: usize = 1 << 20;
