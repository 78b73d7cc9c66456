//! Access logs: a [`Format`] tells what each place of a line means, [`Format::parse`] makes an
//! [`Entry`] of a line without copying it, [`find_format`] looks for the format of a file by its
//! first lines.
//!
//! A stamp means the start of a request or its end, depending on who wrote it; arrivals are
//! computed from ends where durations are logged. Not here: reading files, what many lines say
//! together ([`crate::survey`]).

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

/// Most bytes of a line; a longer one is not understood.
pub const LINE_BYTES_MAX: usize = 1 << 20;
