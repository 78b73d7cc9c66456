//! The errors of the readers of profiles, and the limit of the memory that a profile may take.

use plimsoll_model::profile::ProfileBuilder;
use thiserror::Error;

/// The reason why some bytes are no profile. The text of the error completes a sentence that begins
/// with the name of the file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The input is empty.
    #[error("is empty: fetch the profile again")]
    Empty,
    /// The input is a file of another known format. The text names the format and says what to do.
    #[error("cannot be read as a profile: {0}")]
    ForeignFormat(&'static str),
    /// The gzip stream ends early.
    #[error("is cut off in the middle of its gzip data: fetch or copy the profile again")]
    GzipCut,
    /// The gzip stream is damaged.
    #[error("has damaged gzip data: fetch or copy the profile again")]
    GzipDamaged,
    /// The input unpacks to more than this number of MiB.
    #[error("unpacks to more than {0} MiB, which no profile needs: take the profile for a shorter time")]
    TooLarge(usize),
    /// The tables of the profile need more than this number of MiB.
    #[error("has entries that take more than {0} MiB, which no profile needs: take the profile for a shorter time")]
    TooMuchMemory(usize),
    /// The input is not the complete protobuf of a pprof profile.
    #[error(
        "cannot be read as a profile: the content is neither pprof, folded stacks nor 'perf script' text, or was cut \
         off (byte {at}: {fault}). Fetch the profile again, or convert the profile"
    )]
    Pprof {
        /// Approximate offset of the fault in the unpacked bytes.
        at: usize,
        /// The fault in words.
        fault: &'static str,
    },
    /// A line of text does not fit the format (folded stacks or `perf script`).
    #[error("is no profile: line {line}: {what}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The fault as a sentence without a full stop.
        what: &'static str,
    },
}

/// The memory that the tables of a profile may take, in bytes: the whole limit, and the part that
/// is left.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryBudget {
    whole: usize,
    left: usize,
}

impl MemoryBudget {
    /// Creates a limit of `whole` bytes, of which `taken` bytes are already in use.
    pub(super) fn new(whole: usize, taken: usize) -> MemoryBudget {
        MemoryBudget { whole, left: whole.saturating_sub(taken) }
    }

    /// Reserves memory for `count` table entries of `bytes` bytes each. The reservation lasts until
    /// the whole profile is read. Returns [`ReadError::TooMuchMemory`] if the limit is exceeded.
    pub(super) fn reserve_memory(&mut self, count: usize, bytes: usize) -> Result<(), ReadError> {
        self.left =
            self.left.checked_sub(count.saturating_mul(bytes)).ok_or(ReadError::TooMuchMemory(self.whole >> 20))?;
        Ok(())
    }

    /// Returns [`ReadError::TooMuchMemory`] if the tables built so far and `more` bytes together
    /// exceed the limit.
    #[inline]
    pub(super) fn check_memory(&self, builder: &ProfileBuilder, more: usize) -> Result<(), ReadError> {
        match builder.memory_bytes() + more <= self.left {
            true => Ok(()),
            false => Err(ReadError::TooMuchMemory(self.whole >> 20)),
        }
    }
}
