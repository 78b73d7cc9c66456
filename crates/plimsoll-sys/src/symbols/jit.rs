//! Reads the functions of just-in-time compiled code from `/tmp/perf-PID.map`, which the compiler
//! writes for profilers. Each line of the file has the format `START SIZE NAME` (hexadecimal).
//! Node.js (`--perf-basic-prof`), Python (`-X perf`) and agents of the JVM write this file.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

/// The longest part of a `/tmp/perf-PID.map` file that is read, in bytes.
const BYTES_MAX: u64 = 32 << 20;

/// The just-in-time compiled functions of a process, by address.
#[derive(Default)]
pub struct JitNames {
    bytes: Vec<u8>,
    /// The length of the file at the last read, bytes.
    length: u64,
    /// The first address and the end address of each function, and the range of its name in
    /// `bytes`, ascending by address.
    ranges: Vec<(u64, u64, std::ops::Range<usize>)>,
}

impl JitNames {
    /// Reads the file `/tmp/perf-PID.map` of a process again if the length of the file has changed.
    /// The path is resolved in the process's view of the file system. The file is read only if its
    /// owner is the process's user or root. If the file is missing, the functions of the last read
    /// stay.
    pub fn refresh(&mut self, pid: u32) {
        // The last number of the line `NSpid:` is the process id in the innermost namespace, as the
        // process itself sees its id.
        let status = std::fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
        let status = String::from_utf8_lossy(&status);
        let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let own: u32 = line.and_then(|line| line.split_whitespace().last()?.parse().ok()).unwrap_or(pid);
        let path = format!("/proc/{pid}/root/tmp/perf-{own}.map");
        let own_length = || {
            let (file, process) = (std::fs::metadata(&path).ok()?, std::fs::metadata(format!("/proc/{pid}")).ok()?);
            let is_own = file.is_file() && (file.uid() == process.uid() || file.uid() == 0);
            is_own.then_some(file.len())
        };
        let Some(length) = own_length().filter(|length| *length != self.length) else { return };
        let mut bytes = Vec::new();
        // If the file cannot be read, the process has no names for just-in-time compiled functions.
        _ = File::open(&path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes));
        *self = JitNames { length, ..JitNames::parse(bytes) };
    }

    /// Parses a `/tmp/perf-PID.map` file. Invalid lines are skipped, and the last of overlapping
    /// entries is used.
    pub fn parse(bytes: Vec<u8>) -> JitNames {
        let mut ranges = Vec::new();
        let mut at = 0;
        for line in bytes.split(|byte| *byte == b'\n') {
            let text = String::from_utf8_lossy(&line[..line.len().min(40)]);
            let mut words = text.split(' ');
            let hex = |word: Option<&str>| u64::from_str_radix(word?.trim_start_matches("0x"), 16).ok();
            let name = line.iter().enumerate().filter(|(_, byte)| **byte == b' ').nth(1).map(|(at, _)| at + 1);
            if let (Some(start), Some(size), Some(name)) = (hex(words.next()), hex(words.next()), name) {
                ranges.push((start, start.saturating_add(size), at + name..at + line.len()));
            }
            at += line.len() + 1;
        }
        // The sort is stable, so the last of several entries at one address stays last.
        ranges.sort_by_key(|range| range.0);
        JitNames { bytes, length: 0, ranges }
    }

    /// Returns the function at an address.
    pub fn function_at(&self, address: u64) -> Option<&[u8]> {
        let after = self.ranges.partition_point(|range| range.0 <= address);
        let (_, end, name) = self.ranges.get(after.checked_sub(1)?)?;
        (address < *end).then(|| self.bytes.get(name.clone())).flatten()
    }
}
