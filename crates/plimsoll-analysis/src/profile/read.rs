//! Detects the format of a profile and reads the profile. If some bytes are no profile, the error
//! explains why.
//!
//! Only the bytes decide the format, never the file name. Gzip data begins with its magic bytes.
//! Text has no control characters, while every pprof file has some. So bytes that are neither gzip
//! data nor text are read as pprof.

use super::memory_budget::{MemoryBudget, ReadError};
use super::{folded, perf, pprof};
use flate2::read::MultiGzDecoder;
use plimsoll_model::profile::Profile;
use std::io::{ErrorKind, Read};

/// Largest size of an unpacked profile, in bytes. Real profiles are smaller. The reader refuses a
/// file that unpacks to more bytes, before the file fills the memory.
pub const READ_BYTES_MAX: usize = 1 << 30;

/// Memory that any profile may take with its tables, in bytes. A profile from a large file may take
/// more: see [`MEMORY_FACTOR_MAX`].
const MEMORY_BYTES_MAX: usize = 256 << 20;
/// Largest memory for a profile from a gzip file, as a multiple of the file's size. Unpacking makes
/// well compressed profiles thirty times as large.
const GZIP_MEMORY_FACTOR_MAX: usize = 64;
/// Largest memory for a profile from a file without compression, as a multiple of the file's size.
/// A file that contains only new names would need twenty times its size. Such a file is no real
/// profile, so a large file of this kind is refused.
const MEMORY_FACTOR_MAX: usize = 16;

/// Number of bytes at the start of the input in which the reader searches for control characters,
/// which distinguish pprof from text.
const SNIFF_BYTES: usize = 4096;

/// Reads a profile in any of the formats that plimsoll knows.
///
/// # Errors
/// [`ReadError`]: its text says what the user can do.
pub fn read(bytes: &[u8]) -> Result<Profile, ReadError> {
    // A large file may be a real profile, so the limit of the memory grows with the size of the
    // file. A small file that expands to more than [`MEMORY_BYTES_MAX`] is no real profile.
    let times = if is_gzip(bytes) { GZIP_MEMORY_FACTOR_MAX } else { MEMORY_FACTOR_MAX };
    let memory_bytes_max = bytes.len().saturating_mul(times).max(MEMORY_BYTES_MAX);
    read_within_limits(bytes, ReadLimits { unpacked_bytes_max: READ_BYTES_MAX.min(memory_bytes_max), memory_bytes_max })
}

/// The limits of a reader of profiles.
#[derive(Debug, Clone, Copy)]
pub struct ReadLimits {
    /// Largest size of an unpacked profile, in bytes.
    pub unpacked_bytes_max: usize,
    /// Largest memory of a profile's tables, in bytes.
    pub memory_bytes_max: usize,
}

impl ReadLimits {
    /// The limits for a profile from an untrusted sender, of which at most `unpacked_bytes_max`
    /// bytes are unpacked.
    pub fn for_untrusted_sender(unpacked_bytes_max: usize) -> ReadLimits {
        ReadLimits { unpacked_bytes_max, memory_bytes_max: MEMORY_BYTES_MAX }
    }
}

/// Reads a profile within `limits`.
///
/// # Errors
///
/// [`ReadError`]: its text says what the user can do.
pub fn read_within_limits(bytes: &[u8], limits: ReadLimits) -> Result<Profile, ReadError> {
    let ReadLimits { unpacked_bytes_max, memory_bytes_max } = limits;
    if is_gzip(bytes) {
        let unpacked = gunzip(bytes, unpacked_bytes_max)?;
        let budget = MemoryBudget::new(memory_bytes_max, unpacked.len());
        return read_unpacked(&unpacked, unpacked_bytes_max, budget);
    }
    read_unpacked(bytes, unpacked_bytes_max, MemoryBudget::new(memory_bytes_max, 0))
}

fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

fn gunzip(bytes: &[u8], bytes_max: usize) -> Result<Vec<u8>, ReadError> {
    // The last four bytes of a gzip file contain the unpacked length of its last member. Real
    // profiles have one member, so the length of the last member is the length of the whole
    // profile. For any other file, the length in the last four bytes is only a hint.
    let hint = bytes.last_chunk::<4>().map_or(0, |tail| u32::from_le_bytes(*tail) as usize);
    // Gzip's compression factor is at most 1032.
    let mut unpacked = Vec::with_capacity(hint.min(bytes_max).min(bytes.len().saturating_mul(1032)) + 1);
    let read = MultiGzDecoder::new(bytes).take(bytes_max as u64 + 1).read_to_end(&mut unpacked);
    match read {
        Ok(length) if length > bytes_max => Err(ReadError::TooLarge(bytes_max >> 20)),
        Ok(_) => Ok(unpacked),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(ReadError::GzipCut),
        Err(_) => Err(ReadError::GzipDamaged),
    }
}

fn read_unpacked(bytes: &[u8], bytes_max: usize, budget: MemoryBudget) -> Result<Profile, ReadError> {
    if bytes.len() > bytes_max {
        return Err(ReadError::TooLarge(bytes_max >> 20));
    }
    if let Some(other) = foreign_format_error(bytes) {
        return Err(other);
    }
    let sniffed = &bytes[..bytes.len().min(SNIFF_BYTES)];
    if sniffed.iter().any(|byte| *byte < b' ' && !b"\t\n\r\x1b".contains(byte)) {
        return pprof::decode(bytes, budget);
    }
    let text = String::from_utf8_lossy(bytes);
    if perf::is_perf_output(&text) { perf::parse(&text, budget) } else { folded::parse(&text, budget) }
}

/// Returns an error if the input is empty, or is a file of another known format that people pass by
/// mistake. Returns `None` otherwise.
fn foreign_format_error(bytes: &[u8]) -> Option<ReadError> {
    if bytes.trim_ascii().is_empty() {
        return Some(ReadError::Empty);
    }
    let kinds: [(&[u8], &'static str); 9] = [
        (b"PERFILE2", "the given profile is raw perf data. Run `perf script -i FILE > FILE.txt` and give FILE.txt"),
        (b"go 1.", "the given profile is an execution trace of Go. Fetch /debug/pprof/profile instead of trace"),
        (
            b"FLR\0",
            "the given profile is a Java flight recording. Convert the recording to pprof or collapsed stacks with \
             jfrconv",
        ),
        (b"heap profile:", "the given profile is in text form. Fetch the profile without debug= in the URL"),
        (b"goroutine profile:", "the given profile is in text form. Fetch the profile without debug= in the URL"),
        (b"goroutine ", "the given profile is a text dump of goroutines. Fetch the profile without debug= in the URL"),
        (b"--- ", "the given profile is in text form. Fetch the profile without debug= in the URL"),
        (b"{", "the given profile is JSON. Export the profile as pprof or as folded (collapsed) stacks"),
        (
            b"<",
            "the given profile is HTML or XML. Give the address of the profile itself, such as /debug/pprof/profile",
        ),
    ];
    kinds.iter().find(|(start, _)| bytes.starts_with(start)).map(|(_, what)| ReadError::ForeignFormat(what))
}
