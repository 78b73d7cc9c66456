//! The index of a store ([`Index`]): a file of SQLite beside the run files. What is damaged is made
//! anew, and where no file can be written the index is in memory: a store that is read-only or full
//! is read all the same. So it is where another program has a database of this name: it stays as it
//! is.
//!
//! Several processes write one index: each waits for the others, and writes what it read of the run
//! files, which is the same. Not here: its rows (`rows`).

use crate::rows;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file of the index in a store.
const FILE: &str = "index.sqlite";
/// So long one writer waits for the others.
const BUSY: Duration = Duration::from_secs(10);

/// An index that is open.
pub struct Index {
    /// The database.
    pub connection: Connection,
    /// Its file; `None`: it is in memory.
    path: Option<PathBuf>,
}

impl Index {
    /// The index of a folder. A folder that is not there gets none: nothing is written where nobody
    /// has kept a run.
    pub fn open(folder: &Path) -> Result<Index, Error> {
        // SQLite follows no link at all, so that the folder itself may not lie behind one.
        let Ok(folder) = fs::canonicalize(folder) else { return Index::in_memory() };
        let path = folder.join(FILE);
        // Another name of the same file is somebody else's: a copy of the store by hard links.
        if with_suffixes(&path).any(|file| fs::symlink_metadata(file).is_ok_and(|it| it.is_file() && it.nlink() > 1)) {
            return Index::anew(path);
        }
        match open_file(&path) {
            Ok(connection) => Ok(Index { connection, path: Some(path) }),
            Err(error) if is_damage(&error) => Index::anew(path),
            Err(_) => Index::in_memory(),
        }
    }

    /// An empty index in memory.
    pub fn in_memory() -> Result<Index, Error> {
        let connection = Connection::open_in_memory()?;
        rows::create(&connection)?;
        Ok(Index { connection, path: None })
    }

    /// An empty index in the place of a damaged one.
    fn anew(path: PathBuf) -> Result<Index, Error> {
        for beside in with_suffixes(&path) {
            // What is not there needs no removing; what cannot be removed is found when it is
            // opened.
            let _ = fs::remove_file(beside);
        }
        match open_file(&path) {
            Ok(connection) => Ok(Index { connection, path: Some(path) }),
            Err(_) => Index::in_memory(),
        }
    }

    /// Does `work` on the index; where the index proves damaged, full or read-only, again on one
    /// that was made anew or is in memory. `work` writes all that it needs.
    pub fn run<T>(&mut self, mut work: impl FnMut(&mut Connection) -> Result<T, Error>) -> Result<T, Error> {
        let first = work(&mut self.connection);
        let (Err(error), Some(path)) = (&first, self.path.clone()) else { return first };
        *self = if is_damage(error) { Index::anew(path)? } else { Index::in_memory()? };
        let again = work(&mut self.connection);
        if again.is_err() && self.path.is_some() {
            *self = Index::in_memory()?;
            return work(&mut self.connection);
        }
        again
    }
}

/// The file of an index, and those that SQLite has beside it.
fn with_suffixes(path: &Path) -> impl Iterator<Item = PathBuf> {
    ["", "-journal", "-wal", "-shm"].into_iter().map(move |suffix| {
        let mut beside = path.as_os_str().to_owned();
        beside.push(suffix);
        PathBuf::from(beside)
    })
}

fn open_file(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    // The index can be made anew: it need not survive a loss of power.
    connection.pragma_update(None, "synchronous", "OFF")?;
    let schema: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if rows::is_foreign(&connection)? {
        let denied = rusqlite::ffi::Error { code: ErrorCode::PermissionDenied, extended_code: 3 };
        return Err(Error::SqliteFailure(denied, Some("a database of another program".to_owned())));
    }
    match schema {
        rows::SCHEMA => Ok(connection),
        0 => {
            rows::create(&connection)?;
            Ok(connection)
        }
        _ => Err(Error::InvalidQuery),
    }
}

/// Whether the content of the file is wrong, and not its place or its rights.
fn is_damage(error: &Error) -> bool {
    match error {
        Error::SqliteFailure(failure, _) => matches!(
            failure.code,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::SchemaChanged | ErrorCode::Unknown
        ),
        // Of another layout, or with a row that does not read.
        _ => true,
    }
}
