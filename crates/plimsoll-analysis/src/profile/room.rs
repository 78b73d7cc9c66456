//! Why bytes are no profile, and how much memory one may take: what all formats share.

use plimsoll_model::profile::ProfileBuilder;
use thiserror::Error;

/// Why bytes are no profile. The text completes "'FILE' ...".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// Nothing in it.
    #[error("is empty: fetch it again")]
    Empty,
    /// Another known format; the text names it and the way out.
    #[error("{0}")]
    Other(&'static str),
    /// The gzip stream ends early.
    #[error("is cut off in the middle of its gzip data: fetch or copy it again")]
    GzipCut,
    /// The gzip stream is damaged.
    #[error("has damaged gzip data: fetch or copy it again")]
    GzipDamaged,
    /// Beyond so many MiB.
    #[error("unpacks to more than {0} MiB, which no profile needs: take it for a shorter time")]
    TooLarge(usize),
    /// Its entries take more than so many MiB.
    #[error("has entries that take more than {0} MiB, which no profile needs: take it for a shorter time")]
    TooMany(usize),
    /// Not the protobuf of a pprof profile, or one cut off.
    #[error(
        "is neither pprof, folded stacks nor 'perf script' text, or was cut off (byte {at}: {what}): fetch it again, or convert it"
    )]
    Pprof {
        /// Offset into the unpacked bytes, near the fault.
        at: usize,
        /// What is wrong there.
        what: &'static str,
    },
    /// A line of text that does not fit its format.
    #[error("is no profile: line {line} {what}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// The error.
        what: &'static str,
    },
}

/// How much memory the tables of a profile may take, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    whole: usize,
    left: usize,
}

impl Room {
    /// A budget of `whole` bytes, of which `taken` are used.
    pub(super) fn new(whole: usize, taken: usize) -> Room {
        Room { whole, left: whole.saturating_sub(taken) }
    }

    /// Takes room for `count` entries of a table of so many bytes each, as long as the profile is
    /// read.
    pub(super) fn take(&mut self, count: usize, bytes: usize) -> Result<(), ReadError> {
        self.left = self.left.checked_sub(count.saturating_mul(bytes)).ok_or(ReadError::TooMany(self.whole >> 20))?;
        Ok(())
    }

    /// Whether the tables so far and `more` bytes fit the budget.
    #[inline]
    pub(super) fn holds(&self, builder: &ProfileBuilder, more: usize) -> Result<(), ReadError> {
        match builder.memory_bytes() + more <= self.left {
            true => Ok(()),
            false => Err(ReadError::TooMany(self.whole >> 20)),
        }
    }
}
