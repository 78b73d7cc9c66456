//! Opens all output files of plimsoll: results, pages, tables, pictures, logs. No write follows a
//! symbolic link that another user may have made. No partial file replaces a complete file.
//!
//! Not here: the content of files, and standard output.

use crate::file::{WriteMode, is_symlink_error, open};
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The default folder of results, if the user names no folder.
pub const DEFAULT_RESULTS_FOLDER: &str = "_output/plimsoll";
/// The folders that contain device files. Links in these folders (such as `/dev/stdout`) belong to
/// the system, so plimsoll follows the links.
const DEVICE_FOLDERS: [&str; 2] = ["/dev/", "/proc/"];

/// Returns the metadata of a path, without following a symbolic link.
fn symlink_metadata(path: &Path) -> Option<Metadata> {
    fs::symlink_metadata(path).ok()
}

fn symlink_error(path: &Path) -> io::Error {
    let destination =
        fs::read_link(path).map_or_else(|_| "elsewhere".to_owned(), |to| format!("to '{}'", to.display()));
    io::Error::other(format!("the path is a symbolic link {destination}: remove the link, or name the file itself"))
}

/// Whether a path leads to a device, a pipe or a socket. A device, pipe or socket is opened as it
/// is, and never replaced by a file.
fn is_device(path: &Path) -> bool {
    if DEVICE_FOLDERS.iter().any(|folder| path.starts_with(folder)) {
        return true;
    }
    symlink_metadata(path).is_some_and(|it| {
        let kind = it.file_type();
        kind.is_char_device() || kind.is_block_device() || kind.is_fifo() || kind.is_socket()
    })
}

/// Creates the folder of a file if it is missing. A symbolic link is refused in the default folder
/// of results, [`DEFAULT_RESULTS_FOLDER`].
pub fn create_parent_folder(path: &Path) -> io::Result<()> {
    let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else { return Ok(()) };
    refuse_linked_folder(parent)?;
    fs::create_dir_all(parent)
}

/// Refuses a folder in the default folder of results, [`DEFAULT_RESULTS_FOLDER`], if the folder is
/// reached through a symbolic link. The reason is that the target of the link may belong to another
/// user.
pub fn refuse_linked_folder(folder: &Path) -> io::Result<()> {
    if !folder.starts_with(DEFAULT_RESULTS_FOLDER) {
        return Ok(());
    }
    match folder.ancestors().filter(|one| !one.as_os_str().is_empty()).find(|one| is_linked(one)) {
        Some(link) => Err(io::Error::other(format!("the folder '{}': {}", link.display(), symlink_error(link)))),
        None => Ok(()),
    }
}

/// Refuses a path that is a symbolic link.
pub fn refuse_link(path: &Path) -> io::Result<()> {
    if is_linked(path) { Err(symlink_error(path)) } else { Ok(()) }
}

fn is_linked(path: &Path) -> bool {
    symlink_metadata(path).is_some_and(|it| it.is_symlink())
}

/// Opens a file for continuous writing; `mode` decides whether new content overwrites or follows
/// existing content. The file is not truncated here.
pub fn open_file(path: &Path, mode: WriteMode) -> io::Result<File> {
    create_parent_folder(path)?;
    if is_device(path) {
        return File::options().write(true).open(path);
    }
    // A second hard link to the file may belong to another user, so this path is removed and gets a
    // new file.
    if symlink_metadata(path).is_some_and(|it| it.is_file() && it.nlink() > 1) {
        fs::remove_file(path)?;
    }
    open(path, mode).map_err(|error| if is_symlink_error(&error) { symlink_error(path) } else { error })
}

/// Opens a file and truncates it, to write it from its beginning.
pub fn create(path: &Path) -> io::Result<File> {
    let file = open_file(path, WriteMode::Overwrite)?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Writes a new file that only its owner can read. An existing file is an error.
pub fn create_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_parent_folder(path)?;
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Writes a whole file: first into a temporary file in the same folder, which is then renamed. The
/// old file therefore exists until the new file is complete.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_parent_folder(path)?;
    if is_device(path) {
        return File::options().write(true).open(path)?.write_all(bytes);
    }
    let before = symlink_metadata(path);
    refuse_link(path)?;
    if before.as_ref().is_some_and(Metadata::is_dir) {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let (beside, mut file) = match create_temporary_file(path) {
        Ok(beside) => beside,
        // If the user may write the file but not create files in its folder, the existing file is
        // overwritten in place.
        Err(_) if before.is_some() => return create(path)?.write_all(bytes),
        Err(error) => return Err(error),
    };
    let permissions = before.map(|before| before.permissions());
    let written = file.write_all(bytes).and_then(|()| permissions.map_or(Ok(()), |it| file.set_permissions(it)));
    written.and_then(|()| fs::rename(&beside, path)).inspect_err(|_| _ = fs::remove_file(&beside))
}

/// Creates a temporary file in the folder of `path`. Returns the temporary file and its path.
fn create_temporary_file(path: &Path) -> io::Result<(PathBuf, File)> {
    static NEXT_FILE_NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NEXT_FILE_NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut name = std::ffi::OsString::from(".plimsoll-");
    name.push(format!("{}-{number}.part", std::process::id()));
    let beside = path.with_file_name(name);
    // An existing temporary file is from an earlier process with the same process id.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::create_new(&beside).map(|file| (beside, file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// Creates an empty folder for this test.
    fn create_test_folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("plimsoll-output-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn output_does_not_follow_symbolic_links() {
        let folder = create_test_folder("links");
        let victim = folder.join("victim");
        let is_precious = || fs::read_to_string(&victim).is_ok_and(|text| text == "precious");
        for writer in ["whole", "create", "append"] {
            let write = |path: &Path| match writer {
                "whole" => write(path, b"new"),
                "create" => create(path)?.write_all(b"new"),
                _ => open_file(path, WriteMode::Append)?.write_all(b"new"),
            };
            fs::write(&victim, "precious").expect("written");
            for (name, to) in [("link", victim.clone()), ("dangling", folder.join("nowhere"))] {
                let link = folder.join(format!("{writer}-{name}"));
                symlink(&to, &link).expect("a link");
                let error = write(&link).expect_err("refused").to_string();
                assert!(error.contains("symbolic link") && is_precious(), "{writer} {name}: {error}");
            }
            let other_name = folder.join(format!("{writer}-other-name"));
            fs::hard_link(&victim, &other_name).expect("another name");
            write(&other_name).expect("written");
            assert!(is_precious() && fs::read_to_string(&other_name).is_ok_and(|text| text == "new"), "{writer}");
            let fresh = folder.join(format!("in/{writer}"));
            write(&fresh).expect("written");
            assert_eq!(fs::read_to_string(&fresh).expect("read"), "new");
            write(Path::new("/dev/null")).expect("written");
        }
        assert!(!folder.join("nowhere").exists());
        let left = fs::read_dir(&folder).expect("a folder").flatten();
        assert!(left.map(|entry| entry.file_name()).all(|name| !name.to_string_lossy().ends_with(".part")));
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn a_rewritten_file_keeps_its_permissions() {
        let folder = create_test_folder("mode");
        let path = folder.join("a");
        fs::write(&path, "old").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
        write(&path, b"new").expect("written");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        fs::remove_dir_all(&folder).expect("removed");
    }
}
