//! Opens files for writing without following a symbolic link in the last part of the path.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The position at which new content is written into an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// New content overwrites the file from its beginning. The file is not truncated.
    Overwrite,
    /// New content is written at the end of the file.
    Append,
}

/// Opens a file for writing, and creates it if it is missing. A symbolic link is an error
/// ([`is_symlink_error`]).
pub fn open(path: &Path, mode: WriteMode) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).custom_flags(libc::O_NOFOLLOW);
    match mode {
        WriteMode::Overwrite => options.write(true).truncate(false),
        // The file is also opened for reading, because a caller that limits the length of a log
        // reads the end of the log.
        WriteMode::Append => options.read(true).append(true),
    };
    options.open(path)
}

/// Whether opening a file failed because its name is a symbolic link.
pub fn is_symlink_error(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ELOOP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn symbolic_links_are_not_followed() {
        let folder = std::env::temp_dir().join(format!("plimsoll-file-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let (file, link, dangling) = (folder.join("file"), folder.join("link"), folder.join("dangling"));
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        std::os::unix::fs::symlink(folder.join("nowhere"), &dangling).expect("a link");
        for (mode, expect) in [(WriteMode::Overwrite, "bb"), (WriteMode::Append, "aabb")] {
            std::fs::write(&file, "aa").expect("written");
            open(&file, mode).expect("a file").write_all(b"bb").expect("written");
            assert_eq!(std::fs::read_to_string(&file).expect("read"), expect, "{mode:?}");
            assert!(
                [&link, &dangling].iter().all(|link| open(link, mode).is_err_and(|error| is_symlink_error(&error)))
            );
        }
        assert!(!folder.join("nowhere").exists());
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
