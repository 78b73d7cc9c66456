//! Which run files a folder has, as the file system states them.
//!
//! Not here: what is in them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How run files end.
pub const SUFFIX: &str = ".plimsoll";
/// How files of marks end, which stand beside them.
pub const MARKS_SUFFIX: &str = ".marks";

/// A file as the file system states it: another stamp is another content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// Its length.
    pub bytes: i64,
    /// When it was written last, in ns since 1970.
    pub modified_ns: i64,
    /// Its number in the file system.
    pub inode: i64,
}

/// The run files of a folder by name. A folder that is not there has none; links and folders are
/// none.
pub fn run_files(folder: &Path) -> io::Result<BTreeMap<String, FileStamp>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        entries => entries?,
    };
    let (mut files, mut marks) = (BTreeMap::new(), Vec::new());
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let stem_of_marks = name.strip_suffix(MARKS_SUFFIX).map(str::to_owned);
        if stem_of_marks.is_none() && !name.ends_with(SUFFIX) || name.starts_with('.') {
            continue;
        }
        // Of the entry itself; a file that was removed meanwhile is none.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() {
            let modified_ns = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
            let stamp = FileStamp { bytes: metadata.size() as i64, modified_ns, inode: metadata.ino() as i64 };
            match stem_of_marks {
                Some(stem) => marks.push((format!("{stem}{SUFFIX}"), stamp)),
                None => _ = files.insert(name, stamp),
            }
        }
    }
    // A run with other marks is read again.
    for (name, marks) in marks {
        if let Some(stamp) = files.get_mut(&name) {
            stamp.bytes = stamp.bytes.saturating_add(marks.bytes);
            stamp.modified_ns = stamp.modified_ns.max(marks.modified_ns);
        }
    }
    Ok(files)
}
