//! Reads files that are named on the command line, up to a size limit. Without a size limit,
//! `/dev/zero`, an endless pipe or a wrong file would fill the memory. With the size limit, an
//! endless or too large file causes an error message. Not here: the content of files.

use crate::{signal, system_text};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The largest number of bytes read from a file that is not regular, because a file such as a pipe
/// may have no end.
const IRREGULAR_FILE_BYTES_MAX: u64 = 64 << 20;
/// The time between two checks for a stop by the user (such as ^C), while a read blocks.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The first bytes of a run file, as `plimsoll_model::codec` writes them.
pub const RUN_FILE_MAGIC: [u8; 7] = *b"PLIMSOL";

/// The purpose of a file. Each purpose has a limit for the number of bytes that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePurpose {
    /// A run file. The size limit of a run file is twice the size that a load of one day needs.
    RunFile,
    /// The body of a request, which stays in memory.
    Body,
    /// A PEM file with certificates or keys.
    Pem,
    /// A CPU or memory profile.
    Profile,
    /// A text file with the levels of a sweep (`.dat`).
    Dat,
    /// A traffic file, which describes requests.
    Traffic,
    /// A script that describes traffic.
    Script,
    /// Rows of values for requests, which stay in memory.
    Rows,
    /// A description of messages: `.proto` files, descriptor sets.
    Schema,
    /// A file of another tool to import. An imported file may be large, because a recording of a
    /// browser (HAR) contains every response.
    Import,
}

impl FilePurpose {
    fn bytes_max(self) -> u64 {
        match self {
            FilePurpose::RunFile => 1 << 30,
            FilePurpose::Body => 64 << 20,
            FilePurpose::Pem => 4 << 20,
            FilePurpose::Profile => 256 << 20,
            FilePurpose::Dat => 16 << 20,
            FilePurpose::Traffic => 16 << 20,
            FilePurpose::Script => 16 << 20,
            FilePurpose::Rows => 256 << 20,
            FilePurpose::Schema => 64 << 20,
            FilePurpose::Import => 512 << 20,
        }
    }

    fn purpose_text(self) -> &'static str {
        match self {
            FilePurpose::RunFile => "a run file",
            FilePurpose::Body => "a body",
            FilePurpose::Pem => "certificates and keys",
            FilePurpose::Profile => "a profile",
            FilePurpose::Dat => "a run file or a .dat file of a sweep",
            FilePurpose::Traffic => "a file of traffic",
            FilePurpose::Script => "a script",
            FilePurpose::Rows => "rows of data",
            FilePurpose::Schema => "descriptions of messages",
            FilePurpose::Import => "a file to import from another tool",
        }
    }

    /// Returns the bytes with which every file of this purpose begins; empty if the purpose has no
    /// fixed first bytes.
    fn magic_bytes(self) -> &'static [u8] {
        match self {
            FilePurpose::RunFile => &RUN_FILE_MAGIC,
            _ => &[],
        }
    }
}

/// Reads the content of a file. The error text continues a sentence that begins with the path,
/// "'PATH' ...".
pub fn read(path: &Path, what: FilePurpose) -> Result<Vec<u8>, String> {
    read_with_detected_purpose(path, move |_| what)
}

/// Reads the first bytes of a file, at most `count` bytes.
pub fn first_bytes(path: &Path, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(count as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the last bytes of a file, at most `count` bytes.
pub fn last_bytes(path: &Path, count: usize) -> io::Result<Vec<u8>> {
    let mut file = open_regular(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(count as u64)))?;
    let mut bytes = Vec::new();
    file.take(count as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a regular file. A pipe is refused with an error, because opening a pipe would wait for a
/// writer.
fn open_regular(path: &Path) -> io::Result<File> {
    match std::fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(io::Error::other("the path is not a regular file")),
    }
}

/// Reads a file. The function `what` derives the purpose of the file from its first bytes, and the
/// purpose determines the size limit.
pub fn read_with_detected_purpose(
    path: &Path,
    what: impl Fn(&[u8]) -> FilePurpose + Send + 'static,
) -> Result<Vec<u8>, String> {
    let cannot = |e: io::Error| format!("cannot be read: {}", system_text(&e));
    let metadata = std::fs::metadata(path).map_err(cannot)?;
    if metadata.is_dir() {
        return Err("is a folder".into());
    }
    let endless = !metadata.is_file();
    let path = path.to_owned();
    let take = move || read_bounded(File::open(path).map_err(cannot)?, endless, what);
    if endless { read_on_thread(take) } else { take() }
}

/// Reads standard input to its end. The error text continues a sentence that begins with "standard
/// input ...".
pub fn read_stdin(what: FilePurpose) -> Result<Vec<u8>, String> {
    read_on_thread(move || read_bounded(io::stdin().lock(), true, move |_| what))
}

fn read_bounded(mut from: impl Read, endless: bool, what: impl Fn(&[u8]) -> FilePurpose) -> Result<Vec<u8>, String> {
    let cannot = |e: io::Error| format!("cannot be read: {}", system_text(&e));
    let mut bytes = Vec::new();
    // The first eight bytes are enough to recognise the purpose of the file.
    from.by_ref().take(8).read_to_end(&mut bytes).map_err(cannot)?;
    let what = what(&bytes);
    if !bytes.starts_with(what.magic_bytes()) {
        // The file has the wrong first bytes. The caller reports the wrong format as an error, so
        // no further bytes are read.
        return Ok(bytes);
    }
    let bytes_max = if endless { what.bytes_max().min(IRREGULAR_FILE_BYTES_MAX) } else { what.bytes_max() };
    from.take(bytes_max + 1 - bytes.len() as u64).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > bytes_max {
        let limit_mib = bytes_max >> 20;
        let source = if endless { " from a pipe, a device or another source that is not a regular file" } else { "" };
        let purpose = what.purpose_text();
        return Err(format!("has more than {limit_mib} MiB, the limit for {purpose}{source}"));
    }
    Ok(bytes)
}

/// Runs `take` on another thread, so that the user can interrupt the wait for input that never
/// arrives.
fn read_on_thread(take: impl FnOnce() -> Result<Vec<u8>, String> + Send + 'static) -> Result<Vec<u8>, String> {
    let (sender, receiver) = channel();
    // After an interruption by the user, the read may still block the new thread, but the program
    // ends soon and ends the thread.
    let thread = std::thread::Builder::new().name("reader".into()).spawn(move || sender.send(take()));
    thread.map_err(|e| format!("cannot be read: {}", system_text(&e)))?;
    loop {
        match receiver.recv_timeout(STOP_CHECK_INTERVAL) {
            Ok(read) => return read,
            Err(RecvTimeoutError::Timeout) if signal::is_stop_requested() => {
                return Err("was not read to its end, because the user stopped plimsoll".into());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err("cannot be read".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_up_to_the_stated_length() {
        for (length, endless, what, expect) in [
            (0, false, FilePurpose::Body, Ok(0)),
            (4 << 20, false, FilePurpose::Pem, Ok(4 << 20)),
            ((4 << 20) + 1, false, FilePurpose::Pem, Err("has more than 4 MiB, the limit for certificates and keys")),
            ((64 << 20) + 1, true, FilePurpose::Profile, Err("has more than 64 MiB")),
            ((64 << 20) + 1, false, FilePurpose::Profile, Ok((64 << 20) + 1)),
            (u64::MAX, true, FilePurpose::Body, Err("not a regular file")),
            // If an endless file is read as a run file, only its first 8 bytes are read, because it
            // is no run file.
            (u64::MAX, true, FilePurpose::RunFile, Ok(8)),
        ] {
            match (read_bounded(io::repeat(0).take(length), endless, |_| what), expect) {
                (Ok(bytes), Ok(length)) => assert_eq!(bytes.len(), length),
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (got, want) => panic!("{length} {what:?}: {:?}, expected {want:?}", got.map(|bytes| bytes.len())),
            }
        }
    }
}
