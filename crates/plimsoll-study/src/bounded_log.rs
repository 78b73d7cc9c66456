//! Bounds the log files of other programs (builds, setup commands): only the first and the last
//! megabyte of a file are kept. Programs write directly into the files, so no program waits for a
//! reader. If a log file grows too long, plimsoll removes the middle of the file.
//!
//! Not here: the programs, and the content of logs.

use plimsoll_sys::file::WriteMode;
use plimsoll_sys::output_file;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

/// The number of bytes that are kept at the beginning of a log, and again at its end.
const KEPT_BYTES_AT_EACH_END: u64 = 1 << 20;
/// The length in bytes above which a log is cut while its program still writes.
const TRUNCATION_THRESHOLD_BYTES: u64 = 4 << 20;
/// The interval between checks of the log lengths. The interval is short, because a program may
/// write 1 GB/s.
const LENGTH_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// An open log file whose length plimsoll limits. A program may still be writing into the file.
struct BoundedLogFile {
    /// Device and inode number, which identify the log file.
    id: (u64, u64),
    file: File,
    left_out: u64,
}

static BOUNDED_LOGS: Mutex<Vec<BoundedLogFile>> = Mutex::new(Vec::new());

fn lock_logs() -> MutexGuard<'static, Vec<BoundedLogFile>> {
    BOUNDED_LOGS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl BoundedLogFile {
    /// Removes the middle of this log if the file is longer than `bytes_max` and longer than the
    /// kept beginning and end together.
    fn remove_middle(&mut self, bytes_max: u64) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        if length <= bytes_max.max(2 * KEPT_BYTES_AT_EACH_END) {
            return Ok(());
        }
        let mut end = vec![0; KEPT_BYTES_AT_EACH_END as usize];
        self.file.read_exact_at(&mut end, length - KEPT_BYTES_AT_EACH_END)?;
        self.left_out += length - 2 * KEPT_BYTES_AT_EACH_END;
        self.file.set_len(KEPT_BYTES_AT_EACH_END)?;
        let said = format!("\n[... {bytes} bytes are left out here ...]\n", bytes = self.left_out);
        self.file.write_all(&[said.as_bytes(), &end].concat())
    }
}

/// Opens a log file for appending. After `open`, a thread limits the length of the file until
/// plimsoll exits.
pub fn open(path: &Path) -> io::Result<File> {
    static CHECK_THREAD_ONCE: Once = Once::new();
    let file = output_file::open_file(path, WriteMode::Append)?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        let id = (metadata.dev(), metadata.ino());
        let mut logs = lock_logs();
        // A restarted build writes into the same log file again, so the file may already be in the
        // list.
        if logs.iter().all(|log| log.id != id) {
            logs.push(BoundedLogFile { id, file: file.try_clone()?, left_out: 0 });
        }
        drop(logs);
        CHECK_THREAD_ONCE.call_once(|| {
            let look = || {
                loop {
                    std::thread::sleep(LENGTH_CHECK_INTERVAL);
                    bound_all_logs(TRUNCATION_THRESHOLD_BYTES);
                }
            };
            // The error is ignored: without the thread that checks log lengths, logs are cut only
            // after their programs have ended.
            let _ = std::thread::Builder::new().name("logs".into()).spawn(look);
        });
    }
    Ok(file)
}

/// Cuts all logs to their first and last megabyte. Plimsoll calls this function when a program that
/// writes a log has ended.
pub fn truncate_all_logs() {
    bound_all_logs(0);
}

fn bound_all_logs(bytes_max: u64) {
    // Errors are ignored: a log that cannot be cut is limited only by the size of the disk.
    lock_logs().iter_mut().for_each(|log| _ = log.remove_middle(bytes_max));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_log_keeps_its_first_and_last_megabyte() {
        let path = std::env::temp_dir().join(format!("plimsoll-bounded-log-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mut writer = output_file::open_file(&path, WriteMode::Append).expect("a file");
        let mut log = BoundedLogFile { id: (0, 0), file: writer.try_clone().expect("a file"), left_out: 0 };
        writer.write_all(b"begins\n").expect("written");
        log.remove_middle(0).expect("bound");
        assert_eq!(std::fs::read(&path).expect("read"), b"begins\n");
        for _ in 0..3 {
            for _ in 0..5 {
                writer.write_all(&vec![b'x'; 1 << 20]).expect("written");
            }
            log.remove_middle(TRUNCATION_THRESHOLD_BYTES).expect("bound");
            assert!(std::fs::metadata(&path).expect("there").len() <= 2 * KEPT_BYTES_AT_EACH_END + 100);
        }
        writer.write_all(b"ends\n").expect("written");
        let text = std::fs::read(&path).expect("read");
        assert!(text.starts_with(b"begins\n") && text.ends_with(b"xends\n"));
        let said =
            String::from_utf8_lossy(&text[KEPT_BYTES_AT_EACH_END as usize..KEPT_BYTES_AT_EACH_END as usize + 60])
                .into_owned();
        assert!(said.starts_with("\n[... 1") && said.contains("bytes are left out here"), "{said}");
        std::fs::remove_file(&path).expect("removed");
    }
}
