//! Stores an agent's intervals on its own disk until a coordinator has recorded them ([`Spool`]).
//! All intervals of a run are in one file. A separate thread writes and synchronises the files, so
//! the load never waits for a disk.
//!
//! ```text
//! file  = magic (8 bytes: "PLIMSPL", version 1) entry*
//! entry = length of message (u32 LE)  epoch (u64 LE)  sequence (u64 LE)  message
//!         CRC-32 of the preceding bytes of the entry (u32 LE)
//! ```
//!
//! A spool file is truncated when a coordinator has recorded all its entries, and removed at the
//! end of its run. If an agent was killed, its entries are sent when the agent starts again. Not
//! here: the content of messages, and their transport (`nats_agent`).

use plimsoll_model::failure::Failure;
use plimsoll_sys::{output_file, system_text};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime};

const MAGIC: [u8; 8] = *b"PLIMSPL\x01";
const ENTRY_HEADER_BYTES: usize = 20;
const ENTRY_CHECKSUM_BYTES: usize = 4;
/// The longest message of an entry in a spool file, bytes. The limit protects against damaged
/// length fields.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// The largest file of one run, bytes (4 GiB).
const FILE_BYTES_MAX: u64 = 4 << 30;
/// The time after which entries that no coordinator has recorded are removed (24 h). The bus also
/// drops stored intervals after 24 h.
const UNRECORDED_RETENTION: Duration = Duration::from_secs(24 * 3_600);
const SPOOL_FILE_EXTENSION: &str = "spool";
const LOCK_NAME: &str = "lock";

/// A stored message of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolEntry {
    /// The name of the run.
    pub run: String,
    /// The position of the entry in the run: the number of the load, and the sequence number of the
    /// message.
    pub key: (u64, u64),
    /// The encoded message.
    pub message: Vec<u8>,
}

/// A command for the thread that writes the spool files.
enum SpoolCommand {
    Append(SpoolEntry),
    /// All entries of the run up to this key (load number, sequence number) are recorded in a run
    /// file.
    Commit(String, (u64, u64)),
    /// The coordinator's session for this run has ended.
    Close(String),
}

/// The callbacks of the thread that writes the spool files.
pub struct SpoolCallbacks {
    /// Called with each entry when the entry is on disk.
    pub on_stored: Box<dyn FnMut(SpoolEntry) + Send>,
    /// Called once per session with the reason when entries cannot be stored on disk. Entries that
    /// cannot be stored are still passed to `on_stored`.
    pub on_failed: Box<dyn FnMut(String) + Send>,
}

/// A handle to the thread that writes an agent's intervals to disk.
#[derive(Clone)]
pub struct Spool {
    commands: Sender<SpoolCommand>,
}

impl Spool {
    /// Locks a folder and starts the writing thread. Entries that an earlier agent left in the
    /// folder are passed to `callbacks.on_stored`. An error says that the folder is not writable,
    /// or belongs to a running agent.
    pub fn open(folder: &Path, mut callbacks: SpoolCallbacks) -> Result<Spool, Failure> {
        let cannot = |error: io::Error| {
            Failure::cannot_start(format!(
                "the spool '{folder}' (an agent's stored measurements) cannot be written: {reason}; name another \
                 folder with --spool",
                folder = folder.display(),
                reason = system_text(&error)
            ))
        };
        let lock = lock_folder(folder).map_err(cannot)?.ok_or_else(|| {
            Failure::usage(format!(
                "the spool '{folder}' (an agent's stored measurements) belongs to a running agent: name another \
                 folder with --spool",
                folder = folder.display()
            ))
        })?;
        let mut files = BTreeMap::new();
        for (run, file, entries) in read_earlier_entries(folder, SystemTime::now()).map_err(cannot)? {
            entries.into_iter().for_each(&mut callbacks.on_stored);
            files.insert(run, file);
        }
        let (orders, queue) = channel();
        let writer = SpoolWriter { folder: folder.to_owned(), files, callbacks, has_failed: false, _lock: lock };
        std::thread::spawn(move || writer.process_commands(&queue));
        Ok(Spool { commands: orders })
    }

    /// Stores an entry on disk, and then passes the entry to the callback `on_stored`. An entry
    /// that is on disk already is passed to `on_stored` without a second copy on disk.
    pub fn append_entry(&self, entry: SpoolEntry) {
        let _ = self.commands.send(SpoolCommand::Append(entry));
    }

    /// Tells the writing thread that all entries of a run up to this key (load number, sequence
    /// number) are recorded in a run file.
    pub fn confirm_recorded(&self, run: &str, key: (u64, u64)) {
        let _ = self.commands.send(SpoolCommand::Commit(run.to_owned(), key));
    }

    /// Tells the writing thread that the coordinator's session for a run has ended. The run's file
    /// is removed once all its entries are recorded.
    pub fn close(&self, run: &str) {
        let _ = self.commands.send(SpoolCommand::Close(run.to_owned()));
    }
}

/// Locks the folder of a spool, so that no other agent uses the folder. `None` if another process
/// has the lock.
fn lock_folder(folder: &Path) -> io::Result<Option<File>> {
    let file = output_file::create(&folder.join(LOCK_NAME))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        // Some file systems do not support locks, so the folder is used without one.
        Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}

/// The spool file of one run, which stores intervals until they are recorded.
#[derive(Debug)]
struct SpoolFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// The keys of the entries that no coordinator has recorded yet.
    unrecorded_keys: BTreeSet<(u64, u64)>,
    last: (u64, u64),
    is_closed: bool,
}

/// Reads the entries that earlier agents left on disk. Files that are older than
/// [`UNRECORDED_RETENTION`] are removed.
fn read_earlier_entries(folder: &Path, now: SystemTime) -> io::Result<Vec<(String, SpoolFile, Vec<SpoolEntry>)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(run) = path.file_stem().and_then(|name| name.to_str()).map(str::to_owned) else { continue };
        if path.extension().is_none_or(|extension| extension != SPOOL_FILE_EXTENSION) {
            continue;
        }
        let changed = fs::symlink_metadata(&path)?.modified()?;
        let is_old = now.duration_since(changed).is_ok_and(|age| age > UNRECORDED_RETENTION);
        let (entries, whole_bytes) = if is_old { (Vec::new(), 0) } else { parse_entries(&run, &fs::read(&path)?) };
        if entries.is_empty() {
            fs::remove_file(&path)?;
            continue;
        }
        let mut file = output_file::open_file(&path, plimsoll_sys::file::WriteMode::Overwrite)?;
        // The last entry of the file may be incomplete; an incomplete entry is cut off.
        file.set_len(whole_bytes)?;
        file.seek(SeekFrom::End(0))?;
        let open: BTreeSet<_> = entries.iter().map(|entry| entry.key).collect();
        let last = open.last().copied().unwrap_or_default();
        found.push((
            run,
            SpoolFile { path, file, bytes: whole_bytes, unrecorded_keys: open, last, is_closed: true },
            entries,
        ));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

/// Parses the complete entries of a file. Returns the entries, and the length of the file in bytes
/// up to the end of the last complete entry. The list of entries is empty if the file is not a
/// spool file.
fn parse_entries(run: &str, bytes: &[u8]) -> (Vec<SpoolEntry>, u64) {
    let (mut entries, mut at) = (Vec::new(), MAGIC.len());
    if !bytes.starts_with(&MAGIC) {
        return (entries, 0);
    }
    while let Some((key, length)) = parse_entry_header(&bytes[at..]) {
        let end = at + ENTRY_HEADER_BYTES + length;
        let Some(tail) = bytes.get(end..end + ENTRY_CHECKSUM_BYTES) else { break };
        if crc32fast::hash(&bytes[at..end]).to_le_bytes() != *tail {
            break;
        }
        let message = bytes[at + ENTRY_HEADER_BYTES..end].to_vec();
        entries.push(SpoolEntry { run: run.to_owned(), key, message });
        at = end + ENTRY_CHECKSUM_BYTES;
    }
    (entries, at as u64)
}

/// Returns the key of an entry, and the length of its message in bytes. `None` if the header is
/// incomplete or the length is too large.
fn parse_entry_header(bytes: &[u8]) -> Option<((u64, u64), usize)> {
    let number = |from: usize| Some(u64::from_le_bytes(bytes.get(from..from + 8)?.try_into().ok()?));
    let length = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let key = (number(4)?, number(12)?);
    (length <= MESSAGE_BYTES_MAX).then_some((key, length))
}

impl SpoolFile {
    fn create(folder: &Path, run: &str) -> io::Result<SpoolFile> {
        let path = folder.join(format!("{run}.{SPOOL_FILE_EXTENSION}"));
        let mut file = output_file::create(&path)?;
        file.write_all(&MAGIC)?;
        let bytes = MAGIC.len() as u64;
        Ok(SpoolFile { path, file, bytes, unrecorded_keys: BTreeSet::new(), last: (0, 0), is_closed: false })
    }

    fn write_entry(&mut self, entry: &SpoolEntry) -> io::Result<()> {
        if self.bytes > FILE_BYTES_MAX {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let mut bytes = (entry.message.len() as u32).to_le_bytes().to_vec();
        bytes.extend_from_slice(&entry.key.0.to_le_bytes());
        bytes.extend_from_slice(&entry.key.1.to_le_bytes());
        bytes.extend_from_slice(&entry.message);
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        if let Err(error) = self.file.write_all(&bytes) {
            // An incomplete entry is removed, because entries after it could not be read.
            self.file.set_len(self.bytes)?;
            self.file.seek(SeekFrom::End(0))?;
            return Err(error);
        }
        self.bytes += bytes.len() as u64;
        self.last = entry.key;
        self.unrecorded_keys.insert(entry.key);
        Ok(())
    }

    fn mark_recorded(&mut self, key: (u64, u64)) -> io::Result<()> {
        let had = self.unrecorded_keys.len();
        self.unrecorded_keys = self.unrecorded_keys.split_off(&(key.0, key.1.saturating_add(1)));
        if had > 0 && self.unrecorded_keys.is_empty() {
            self.bytes = MAGIC.len() as u64;
            self.file.set_len(self.bytes)?;
            self.file.seek(SeekFrom::End(0))?;
        }
        Ok(())
    }
}

/// The state of the thread that writes the spool files.
struct SpoolWriter {
    folder: PathBuf,
    files: BTreeMap<String, SpoolFile>,
    callbacks: SpoolCallbacks,
    has_failed: bool,
    _lock: File,
}

impl SpoolWriter {
    fn process_commands(mut self, queue: &Receiver<SpoolCommand>) {
        while let Ok(first) = queue.recv() {
            let mut stored = Vec::new();
            let mut touched = BTreeSet::new();
            // All waiting commands are carried out first, so that each changed file is synchronised
            // to disk only once.
            for order in std::iter::once(first).chain(queue.try_iter()) {
                if let Err(error) = self.execute_command(order, &mut stored, &mut touched) {
                    self.report_failure_once(&error);
                }
            }
            for run in touched {
                if let Some(Err(error)) = self.files.get(&run).map(|file| file.file.sync_data()) {
                    self.report_failure_once(&error);
                }
            }
            stored.into_iter().for_each(&mut self.callbacks.on_stored);
        }
    }

    fn execute_command(
        &mut self,
        order: SpoolCommand,
        stored: &mut Vec<SpoolEntry>,
        touched: &mut BTreeSet<String>,
    ) -> io::Result<()> {
        match order {
            SpoolCommand::Append(entry) => {
                let run = entry.run.clone();
                let appended = self.append_if_new(&entry);
                stored.push(entry);
                if appended? {
                    touched.insert(run);
                }
            }
            SpoolCommand::Commit(run, key) => {
                if let Some(file) = self.files.get_mut(&run) {
                    file.mark_recorded(key)?;
                }
                self.remove_file_if_recorded(&run)?;
            }
            SpoolCommand::Close(run) => {
                self.has_failed = false;
                self.files.get_mut(&run).into_iter().for_each(|file| file.is_closed = true);
                self.remove_file_if_recorded(&run)?;
            }
        }
        Ok(())
    }

    /// Appends an entry to the file of its run. Returns false if the file already contains the
    /// entry.
    fn append_if_new(&mut self, entry: &SpoolEntry) -> io::Result<bool> {
        if !self.files.contains_key(&entry.run) {
            self.files.insert(entry.run.clone(), SpoolFile::create(&self.folder, &entry.run)?);
        }
        let Some(file) = self.files.get_mut(&entry.run) else { return Ok(false) };
        if entry.key <= file.last {
            return Ok(false);
        }
        file.write_entry(entry)?;
        Ok(true)
    }

    fn remove_file_if_recorded(&mut self, run: &str) -> io::Result<()> {
        if self.files.get(run).is_some_and(|file| file.is_closed && file.unrecorded_keys.is_empty())
            && let Some(file) = self.files.remove(run)
        {
            fs::remove_file(file.path)?;
        }
        Ok(())
    }

    fn report_failure_once(&mut self, error: &io::Error) {
        if !self.has_failed {
            self.has_failed = true;
            (self.callbacks.on_failed)(format!(
                "the agent's spool (its stored measurements) cannot be written: {reason}",
                reason = system_text(error)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Instant;

    fn fresh_folder_path() -> PathBuf {
        static NEXT_FOLDER_NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NEXT_FOLDER_NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("plimsoll-spool-test-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    fn test_entry(run: &str, sequence: u64) -> SpoolEntry {
        SpoolEntry { run: run.to_owned(), key: (1, sequence), message: vec![sequence as u8; 100] }
    }

    fn open_test_spool(folder: &Path) -> (Result<Spool, Failure>, Receiver<SpoolEntry>, Receiver<String>) {
        let ((stored, entries), (failed, failures)) = (channel(), channel());
        let outlet = SpoolCallbacks {
            on_stored: Box::new(move |entry| _ = stored.send(entry)),
            on_failed: Box::new(move |why| _ = failed.send(why)),
        };
        (Spool::open(folder, outlet), entries, failures)
    }

    fn receive_entries(entries: &Receiver<SpoolEntry>, count: usize) -> Vec<SpoolEntry> {
        let next = |_| entries.recv_timeout(Duration::from_secs(5)).expect("an entry in time");
        (0..count).map(next).collect()
    }

    fn wait_until_true(mut holds: impl FnMut() -> bool) -> bool {
        let deadline = Instant::now() + Duration::from_secs(5);
        while !holds() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        holds()
    }

    #[test]
    fn spool_entries_of_a_killed_agent_are_resent_until_recorded() {
        let folder = fresh_folder_path();
        let (spool, stored, failures) = open_test_spool(&folder);
        let spool = spool.expect("opens");
        for sequence in 1..=3 {
            spool.append_entry(test_entry("r1", sequence));
        }
        // An entry that is appended twice is passed to the outlet twice, but stored only once.
        spool.append_entry(test_entry("r1", 2));
        assert_eq!(receive_entries(&stored, 4)[3], test_entry("r1", 2));
        let path = folder.join("r1.spool");
        let bytes = fs::read(&path).expect("a file");
        assert_eq!(parse_entries("r1", &bytes).0, [1, 2, 3].map(|sequence| test_entry("r1", sequence)));
        assert!(open_test_spool(&folder).0.is_err_and(|failure| failure.to_string().contains("running agent")));
        drop(spool);
        assert!(wait_until_true(|| lock_folder(&folder).is_ok_and(|lock| lock.is_some())), "the thread ends");
        // The file is cut within its last entry, as if the agent was killed while writing the
        // entry.
        fs::write(&path, &bytes[..bytes.len() - 3]).expect("written");
        let (spool, stored, _) = open_test_spool(&folder);
        let spool = spool.expect("opens");
        assert_eq!(receive_entries(&stored, 2), [test_entry("r1", 1), test_entry("r1", 2)]);
        spool.append_entry(test_entry("r1", 3));
        assert_eq!(receive_entries(&stored, 1), [test_entry("r1", 3)]);
        spool.confirm_recorded("r1", (1, 2));
        spool.append_entry(test_entry("r2", 1));
        assert_eq!(receive_entries(&stored, 1), [test_entry("r2", 1)]);
        assert_eq!(parse_entries("r1", &fs::read(&path).expect("a file")).0.len(), 3, "one of them is not recorded");
        spool.confirm_recorded("r1", (1, 3));
        assert!(wait_until_true(|| !path.exists()), "all of a run that is over are recorded");
        spool.confirm_recorded("r2", (1, 1));
        let path = folder.join("r2.spool");
        assert!(wait_until_true(|| fs::read(&path).is_ok_and(|bytes| bytes == MAGIC)), "cut, but the run goes on");
        spool.close("r2");
        assert!(wait_until_true(|| !path.exists()) && failures.try_recv().is_err());
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn an_unwritable_spool_reports_once_and_forwards_frames() {
        let folder = fresh_folder_path();
        let (spool, stored, failures) = open_test_spool(&folder);
        let spool = spool.expect("opens");
        // The test creates a folder at the path of the spool file, so that the agent cannot create
        // the file.
        fs::create_dir_all(folder.join("r1.spool")).expect("made");
        spool.append_entry(test_entry("r1", 1));
        spool.append_entry(test_entry("r1", 2));
        assert_eq!(receive_entries(&stored, 2), [test_entry("r1", 1), test_entry("r1", 2)]);
        let why = failures.recv_timeout(Duration::from_secs(5)).expect("a reason");
        assert!(why.starts_with("the agent's spool (its stored measurements) cannot be written"), "{why}");
        assert!(failures.recv_timeout(Duration::from_millis(100)).is_err(), "once");
        let _ = fs::remove_dir_all(&folder);
        let nowhere = open_test_spool(Path::new("/proc/no/spool")).0;
        assert!(nowhere.is_err_and(|failure| failure.to_string().contains("--spool")));
    }

    #[test]
    fn old_spool_entries_are_removed() {
        let folder = fresh_folder_path();
        fs::create_dir_all(&folder).expect("made");
        let mut file = SpoolFile::create(&folder, "r1").expect("made");
        file.write_entry(&test_entry("r1", 1)).expect("written");
        let later = |seconds| SystemTime::now() + Duration::from_secs(seconds);
        assert_eq!(read_earlier_entries(&folder, later(3_600)).expect("read").len(), 1);
        assert!(
            read_earlier_entries(&folder, later(90_000)).expect("read").is_empty() && !folder.join("r1.spool").exists()
        );
        let _ = fs::remove_dir_all(&folder);
    }

    proptest! {
        #[test]
        fn any_spool_bytes_are_entries_or_ignored(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..250) {
            let mut whole = MAGIC.to_vec();
            whole.extend_from_slice(&bytes);
            whole.truncate(cut);
            let (found, taken) = parse_entries("r", &whole);
            prop_assert!(taken as usize <= whole.len().max(MAGIC.len()) && found.len() <= whole.len() / ENTRY_HEADER_BYTES);
        }
    }
}
