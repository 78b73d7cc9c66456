//! A file of the kernel that some machines lack.

use plimsoll_sys::probe::ProcFile;

/// A kernel file, or the reason why it cannot be read.
pub struct OptionalFile {
    source: Result<ProcFile, String>,
}

impl OptionalFile {
    pub fn open(path: &str) -> OptionalFile {
        OptionalFile { source: ProcFile::open(path).map_err(|error| unreadable_file_reason(path, &error)) }
    }

    /// Reads and parses the file. The error is the reason why the file could not be read or parsed.
    pub fn read<T>(&self, buffer: &mut Vec<u8>, parse: impl FnOnce(&[u8]) -> Option<T>) -> Result<T, String> {
        let source = self.source.as_ref().map_err(String::clone)?;
        let text = source.read(buffer).map_err(|error| plimsoll_sys::system_text(&error))?;
        parse(text).ok_or_else(|| "a file of the kernel (in /proc or /sys) has an unknown format".to_owned())
    }
}

fn unreadable_file_reason(path: &str, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => format!("{path} is not there"),
        _ => format!("{path}: {}", plimsoll_sys::system_text(error)),
    }
}
