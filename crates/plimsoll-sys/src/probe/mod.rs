//! Reads the kernel's figures about processes, the host, control groups and sockets, cheaply enough
//! for ten readings a second.
//!
//! Parsers are plain functions over bytes that return `None` for text in an unknown format. A
//! [`ProcFile`] keeps its file open and reads the file from its beginning each time. Not here: the
//! choice of processes, and the meaning of readings.

pub mod cgroup;
pub mod host;
pub mod listener;
pub mod process;
pub mod sockets;
pub mod unix;
pub mod unix_diag;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The largest number of bytes that one read of a kernel file accepts. The kernel files that
/// plimsoll reads are shorter than this limit.
const KERNEL_FILE_BYTES_MAX: usize = 1 << 20;

/// A file of /proc or /sys that is kept open. If the process of a /proc file has ended, a read of
/// the file fails, even if the process id was reused.
#[derive(Debug)]
pub struct ProcFile {
    file: File,
}

impl ProcFile {
    /// Opens the file.
    pub fn open(path: impl AsRef<Path>) -> io::Result<ProcFile> {
        Ok(ProcFile { file: File::open(path)? })
    }

    /// Reads the whole file into `buffer`, which later reads can reuse, and returns the bytes.
    pub fn read<'a>(&self, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        if buffer.len() < 4096 {
            buffer.resize(4096, 0);
        }
        let mut length = 0;
        loop {
            match self.file.read_at(&mut buffer[length..], length as u64) {
                Ok(0) => return Ok(&buffer[..length]),
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if length == buffer.len() {
                if length >= KERNEL_FILE_BYTES_MAX {
                    return Ok(&buffer[..length]);
                }
                buffer.resize(length * 2, 0);
            } else if length > 0 && length < 1024 {
                // The first read returns the whole content of a short /proc file. A second read of
                // a short file would only confirm the end of the file.
                return Ok(&buffer[..length]);
            }
        }
    }
}

/// Parses the number at the start of `text` (after spaces), and returns the number and the rest of
/// `text`. Returns `None` for a number that needs more than 64 bits.
pub(crate) fn parse_leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
    Some((value, &text[digits..]))
}

/// Parses the number after `key` at the start of a line, such as `nr_throttled 5` or `VmRSS:   12
/// kB`.
pub(crate) fn number_after_key(text: &[u8], key: &[u8]) -> Option<u64> {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| {
        let rest = line.strip_prefix(key)?;
        rest.first().is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').then_some(rest)
    })?;
    parse_leading_number(line.strip_prefix(b":").unwrap_or(line)).map(|(value, _)| value)
}

/// Returns the space-separated fields of a line.
pub(crate) fn split_fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| byte.is_ascii_whitespace()).filter(|field| !field.is_empty())
}

/// Parses a field as a number.
pub(crate) fn parse_number_field(field: Option<&[u8]>) -> Option<u64> {
    parse_leading_number(field?).filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_their_key() {
        for (text, key, expect) in [
            ("nr_periods 5\nnr_throttled 7\n", "nr_throttled", Some(7)),
            ("VmRSS:\t  12 kB\n", "VmRSS", Some(12)),
            ("user 1\nuser_usec 2\n", "user_usec", Some(2)),
            ("user_usec 2\n", "user", None),
            ("nr_periods\n", "nr_periods", None),
            ("x 99999999999999999999\n", "x", None),
            ("", "x", None),
        ] {
            assert_eq!(number_after_key(text.as_bytes(), key.as_bytes()), expect, "{text:?} {key}");
        }
    }

    #[test]
    fn a_proc_file_can_be_read_again() {
        let source = ProcFile::open("/proc/self/stat").expect("opens");
        let mut buffer = Vec::new();
        let first = process::parse_stat(source.read(&mut buffer).expect("reads")).expect("parses");
        assert_eq!(first.pid, std::process::id());
        let spent = (0..20_000_000u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
        std::hint::black_box(spent);
        let again = process::parse_stat(source.read(&mut buffer).expect("reads")).expect("parses");
        assert!(again.user_ticks + again.system_ticks >= first.user_ticks + first.system_ticks);
    }
}
