//! Parses `/proc/PID/maps`: the executable parts of a process's memory, and their files.

/// An executable part of a process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The first address of the part.
    pub start: u64,
    /// The address after the last byte of the part.
    pub end: u64,
    /// The offset in the file at which the mapping begins.
    pub offset: u64,
    /// The device of the file, as the kernel writes it.
    pub device: String,
    /// The inode number of the file on its device; 0 without a file.
    pub inode: u64,
    /// The path of the file, a name of the kernel in brackets (such as `[vdso]`), or empty.
    pub path: String,
}

impl Mapping {
    /// Whether the mapping belongs to a file; shared memory with a name (`/memfd:`, `/dev/zero`)
    /// does not.
    pub fn is_file(&self) -> bool {
        self.inode != 0
            && self.path.starts_with('/')
            && !self.path.starts_with("/memfd:")
            && !self.path.starts_with("/dev/")
    }
}

/// Parses the executable parts of a process's memory from `/proc/PID/maps`, and sorts the parts by
/// address. Invalid lines are skipped.
pub fn parse(bytes: &[u8]) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = bytes.split(|byte| *byte == b'\n').filter_map(parse_mapping_line).collect();
    mappings.sort_by_key(|mapping| mapping.start);
    mappings
}

/// Parses a line of the file: `START-END PERMS OFFSET DEVICE INODE   PATH`.
fn parse_mapping_line(line: &[u8]) -> Option<Mapping> {
    let text = String::from_utf8_lossy(line);
    let mut rest = text.as_ref();
    let mut word = || {
        let trimmed = rest.trim_start_matches(' ');
        let end = trimmed.find(' ').unwrap_or(trimmed.len());
        let (word, after) = trimmed.split_at(end);
        rest = after;
        word
    };
    let (range, allowed, offset, device, inode) = (word(), word(), word(), word().to_owned(), word());
    let (start, end) = range.split_once('-')?;
    let hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let (start, end, offset, inode) = (hex(start)?, hex(end)?, hex(offset)?, inode.parse().ok()?);
    let path = rest.trim_start_matches(' ').to_owned();
    // A mapping whose end offset in the file would overflow belongs to no file.
    let fits = start < end && offset.checked_add(end - start).is_some();
    (allowed.as_bytes().get(2) == Some(&b'x') && fits).then_some(Mapping { start, end, offset, device, inode, path })
}
