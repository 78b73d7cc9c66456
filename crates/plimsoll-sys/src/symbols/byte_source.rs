//! A source of bytes that is read in parts ([`RandomAccessBytes`]): a file, or bytes in memory. Not
//! here: the meaning of the bytes.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// A source of bytes that is read in parts.
pub trait RandomAccessBytes {
    /// Returns `length` bytes from offset `at` on. Returns fewer bytes at the end, and no bytes
    /// beyond the end or after a read error.
    fn read_part(&self, at: u64, length: usize) -> Cow<'_, [u8]>;
}

impl RandomAccessBytes for [u8] {
    fn read_part(&self, at: u64, length: usize) -> Cow<'_, [u8]> {
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(self.len());
        Cow::Borrowed(&self[from..from.saturating_add(length).min(self.len())])
    }
}

impl RandomAccessBytes for Vec<u8> {
    fn read_part(&self, at: u64, length: usize) -> Cow<'_, [u8]> {
        self.as_slice().read_part(at, length)
    }
}

impl RandomAccessBytes for File {
    fn read_part(&self, at: u64, length: usize) -> Cow<'_, [u8]> {
        let mut bytes = vec![0; length];
        let mut read = 0;
        while read < length {
            match self.read_at(&mut bytes[read..], at.saturating_add(read as u64)) {
                Ok(0) | Err(_) => break,
                Ok(more) => read += more,
            }
        }
        bytes.truncate(read);
        Cow::Owned(bytes)
    }
}

/// Reads the little-endian number of `size` bytes (1 to 8) at offset `at`; `None` beyond the end.
pub(crate) fn little_endian_number_at(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(size)?)?;
    Some(part.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}
