//! The index of a store ([`Index`]): an SQLite file next to the run files. The index has a row for
//! each run, with the facts that a list of runs shows. A damaged index is created again. If the
//! file cannot be written, the index is in memory, so that a read-only or full store remains
//! readable. If another program's database has the file name of the index, the index is in memory,
//! and the database is left unchanged.
//!
//! Several processes may write one index. Each process waits for the lock on the index before it
//! writes. All processes write equal rows, because they read the rows from the same run files. Not
//! here: the rows of the index (`rows`).

use crate::rows;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file name of the index in a store.
const INDEX_FILE_NAME: &str = "index.sqlite";
/// The maximum time that one writer waits for another process's lock on the index.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);

/// An open index of a store.
pub struct Index {
    /// The SQLite database of the index.
    pub connection: Connection,
    /// The path of the database file; `None` if the database is in memory.
    path: Option<PathBuf>,
}

impl Index {
    /// Opens the index of a store's folder. If the folder does not exist, creates no file and
    /// returns an empty index in memory.
    pub fn open(folder: &Path) -> Result<Index, Error> {
        // SQLite is opened without following symbolic links, so links in the path of the folder are
        // resolved first.
        let Ok(folder) = fs::canonicalize(folder) else { return Index::in_memory() };
        let path = folder.join(INDEX_FILE_NAME);
        // A file with several hard links may also belong to a copy of the store, so the file is
        // replaced, never written.
        if database_files(&path).any(|file| fs::symlink_metadata(file).is_ok_and(|it| it.is_file() && it.nlink() > 1)) {
            return Index::recreate_index(path);
        }
        match open_file(&path) {
            Ok(connection) => Ok(Index { connection, path: Some(path) }),
            Err(error) if is_damage(&error) => Index::recreate_index(path),
            Err(_) => Index::in_memory(),
        }
    }

    /// Creates an empty index in memory.
    pub fn in_memory() -> Result<Index, Error> {
        let connection = Connection::open_in_memory()?;
        rows::create_tables(&connection)?;
        Ok(Index { connection, path: None })
    }

    /// Deletes the files of a damaged index and creates an empty index at the same path. If the
    /// file cannot be created, the new index is in memory.
    fn recreate_index(path: PathBuf) -> Result<Index, Error> {
        for beside in database_files(&path) {
            // Errors of a removal are ignored. A missing file needs no removal, and a file that
            // cannot be removed causes an error when the file is opened.
            let _ = fs::remove_file(beside);
        }
        match open_file(&path) {
            Ok(connection) => Ok(Index { connection, path: Some(path) }),
            Err(_) => Index::in_memory(),
        }
    }

    /// Runs `work` on the index. If `work` fails on a damaged index file, the index is created
    /// again, and `work` is repeated. If `work` fails for another reason, or fails again, `work` is
    /// repeated on an index in memory. `work` must write all rows that it needs, because a new
    /// index is empty.
    pub fn run_with_recovery<T>(
        &mut self,
        mut work: impl FnMut(&mut Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let first = work(&mut self.connection);
        let (Err(error), Some(path)) = (&first, self.path.clone()) else { return first };
        *self = if is_damage(error) { Index::recreate_index(path)? } else { Index::in_memory()? };
        let again = work(&mut self.connection);
        if again.is_err() && self.path.is_some() {
            *self = Index::in_memory()?;
            return work(&mut self.connection);
        }
        again
    }
}

/// Returns the path of the index, and the paths of the temporary files that SQLite creates next to
/// the index.
fn database_files(path: &Path) -> impl Iterator<Item = PathBuf> {
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
    connection.busy_timeout(LOCK_WAIT_MAX)?;
    // The index can be created again from the run files, so the index need not survive a loss of
    // power.
    connection.pragma_update(None, "synchronous", "OFF")?;
    let schema: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if rows::belongs_to_other_program(&connection)? {
        let denied = rusqlite::ffi::Error { code: ErrorCode::PermissionDenied, extended_code: 3 };
        let reason = "the file index.sqlite was made by another program, not by plimsoll".to_owned();
        return Err(Error::SqliteFailure(denied, Some(reason)));
    }
    match schema {
        rows::SCHEMA_VERSION => Ok(connection),
        0 => {
            rows::create_tables(&connection)?;
            Ok(connection)
        }
        _ => Err(Error::InvalidQuery),
    }
}

/// Returns whether an error means that the content of the index is damaged. Errors about the path
/// or the permissions of the index file do not count as damage.
fn is_damage(error: &Error) -> bool {
    match error {
        Error::SqliteFailure(failure, _) => matches!(
            failure.code,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::SchemaChanged | ErrorCode::Unknown
        ),
        // Any other error means that the index has another layout, or a row that cannot be decoded.
        _ => true,
    }
}
