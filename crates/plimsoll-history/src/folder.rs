//! Lists the run files of a folder with their sizes and times, as the file system reports them.
//!
//! Not here: the contents of run files (`run_file`, `whole_file`).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The suffix of run files.
pub const RUN_FILE_SUFFIX: &str = ".plimsoll";
/// The suffix of marks files. A marks file is next to its run file and contains the run's pin and
/// tags.
pub const MARKS_SUFFIX: &str = ".marks";

/// The size, time and inode of a run file. The run file is read again when its size, time or inode
/// changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// The sum of the lengths of the run file and its marks file, in bytes.
    pub bytes: i64,
    /// The later of the last changes of the run file and its marks file, in ns since 1970.
    pub modified_ns: i64,
    /// Inode number of the run file.
    pub inode: i64,
}

/// Returns the stamps (size, time, inode) of the run files in `folder` by file name. A folder that
/// does not exist has no run files. Links, subfolders and hidden files are skipped.
pub fn run_file_stamps(folder: &Path) -> io::Result<BTreeMap<String, FileStamp>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        entries => entries?,
    };
    let (mut files, mut marks) = (BTreeMap::new(), Vec::new());
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let stem_of_marks = name.strip_suffix(MARKS_SUFFIX).map(str::to_owned);
        if stem_of_marks.is_none() && !name.ends_with(RUN_FILE_SUFFIX) || name.starts_with('.') {
            continue;
        }
        // `DirEntry::metadata` describes the entry itself, so symbolic links are not followed. A
        // file that was removed after the folder was listed is skipped.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() {
            let modified_ns = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
            let stamp = FileStamp { bytes: metadata.size() as i64, modified_ns, inode: metadata.ino() as i64 };
            match stem_of_marks {
                Some(stem) => marks.push((format!("{stem}{RUN_FILE_SUFFIX}"), stamp)),
                None => _ = files.insert(name, stamp),
            }
        }
    }
    // The stamp of a run file includes its marks file, so that a run whose marks (pin, tags)
    // changed is read again.
    for (name, marks) in marks {
        if let Some(stamp) = files.get_mut(&name) {
            stamp.bytes = stamp.bytes.saturating_add(marks.bytes);
            stamp.modified_ns = stamp.modified_ns.max(marks.modified_ns);
        }
    }
    Ok(files)
}
