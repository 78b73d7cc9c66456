//! Reads and writes the rows of the index: the layout of its tables, and all SQL statements.
//!
//! Not here: where the index is, and what happens when it is damaged (`index`).

use crate::folder::FileStamp;
use plimsoll_analysis::history::{HistoryRun, RunState};
use rusqlite::{Connection, Error, Row, Transaction, params};
use std::collections::BTreeMap;

/// The version of the index layout; an index with another version is created again.
pub const SCHEMA_VERSION: i64 = 2;

/// Creates the tables of an empty index.
pub fn create_tables(connection: &Connection) -> Result<(), Error> {
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE;
         CREATE TABLE IF NOT EXISTS runs (
             file TEXT PRIMARY KEY,
             bytes INTEGER NOT NULL,
             modified_ns INTEGER NOT NULL,
             inode INTEGER NOT NULL,
             started_unix_ms INTEGER NOT NULL,
             service TEXT NOT NULL,
             summary_pending INTEGER NOT NULL,
             run TEXT NOT NULL
         ) WITHOUT ROWID;
         CREATE INDEX IF NOT EXISTS runs_of_service ON runs (service, started_unix_ms);
         CREATE TABLE IF NOT EXISTS unreadable (
             file TEXT PRIMARY KEY,
             bytes INTEGER NOT NULL,
             modified_ns INTEGER NOT NULL,
             inode INTEGER NOT NULL,
             reason TEXT NOT NULL
         ) WITHOUT ROWID;
         PRAGMA user_version = {SCHEMA_VERSION};
         COMMIT;"
    ))
}

/// Returns whether a database has tables that no version of the index ever had. A database with
/// other tables was created by another program.
pub fn belongs_to_other_program(connection: &Connection) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE tbl_name NOT IN ('runs', 'unreadable'))";
    connection.query_row(sql, [], |row| row.get(0))
}

fn read_stamp(row: &Row) -> Result<(String, FileStamp), Error> {
    Ok((row.get(0)?, FileStamp { bytes: row.get(1)?, modified_ns: row.get(2)?, inode: row.get(3)? }))
}

/// Returns the stamps (size, time, inode) of all files in the index, readable or not. A file whose
/// stamp differs from its stamp in the index must be read again.
pub fn file_stamps(connection: &Connection) -> Result<BTreeMap<String, FileStamp>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT file, bytes, modified_ns, inode FROM runs \
         UNION ALL SELECT file, bytes, modified_ns, inode FROM unreadable",
    )?;
    let rows = statement.query_map([], read_stamp)?;
    rows.collect()
}

/// Writes the facts of a run to the index, or the reason why its run file cannot be read. The new
/// row replaces the earlier row of the file.
pub fn write_run(
    transaction: &Transaction,
    file: &str,
    stamp: FileStamp,
    read: &Result<HistoryRun, String>,
) -> Result<(), Error> {
    remove_file_rows(transaction, file)?;
    let FileStamp { bytes, inode, .. } = stamp;
    // A run in progress may end without a change of its run file. The row of a run in progress gets
    // the modification time 0, so that every refresh reads the run file again.
    let is_under_way = read.as_ref().is_ok_and(|run| run.state == RunState::UnderWay);
    let modified_ns = if is_under_way { 0 } else { stamp.modified_ns };
    match read {
        Ok(run) => {
            let started = i64::try_from(run.started_unix_ms).unwrap_or(i64::MAX);
            let pending = run.is_without_summary();
            transaction
                .prepare_cached("INSERT INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?
                .execute(params![file, bytes, modified_ns, inode, started, run.service, pending, encode_run(run)])?;
        }
        Err(reason) => {
            transaction.prepare_cached("INSERT INTO unreadable VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(params![
                file,
                bytes,
                modified_ns,
                inode,
                reason
            ])?;
        }
    }
    Ok(())
}

/// Writes the newly computed summary of a run to the index. The run's stamp (size, time, inode)
/// stays the same, because the run file did not change.
pub fn write_summary(connection: &Connection, run: &HistoryRun) -> Result<(), Error> {
    connection
        .prepare_cached("UPDATE runs SET run = ?2, summary_pending = 0 WHERE file = ?1")?
        .execute(params![run.file, encode_run(run)])?;
    Ok(())
}

/// Removes the rows of a file from the index.
pub fn remove_file_rows(transaction: &Transaction, file: &str) -> Result<(), Error> {
    transaction.prepare_cached("DELETE FROM runs WHERE file = ?1")?.execute([file])?;
    transaction.prepare_cached("DELETE FROM unreadable WHERE file = ?1")?.execute([file])?;
    Ok(())
}

/// Returns the runs whose summary is not computed yet, the latest first.
pub fn runs_without_summary(connection: &Connection) -> Result<Vec<HistoryRun>, Error> {
    query_runs(connection, "SELECT run FROM runs WHERE summary_pending ORDER BY started_unix_ms DESC", [])
}

/// Returns all runs, the oldest first.
pub fn all_runs(connection: &Connection) -> Result<Vec<HistoryRun>, Error> {
    query_runs(connection, "SELECT run FROM runs ORDER BY started_unix_ms, file", [])
}

/// Returns the runs of one service, the oldest first.
pub fn runs_of_service(connection: &Connection, service: &str) -> Result<Vec<HistoryRun>, Error> {
    query_runs(connection, "SELECT run FROM runs WHERE service = ?1 ORDER BY started_unix_ms, file", [service])
}

/// Returns the files that cannot be read, each with the reason.
pub fn unreadable_files(connection: &Connection) -> Result<Vec<(String, String)>, Error> {
    let mut statement = connection.prepare_cached("SELECT file, reason FROM unreadable ORDER BY file")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn query_runs(connection: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<Vec<HistoryRun>, Error> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(values, |row| row.get::<_, String>(0))?;
    rows.map(|text| decode_run(&text?)).collect()
}

fn encode_run(run: &HistoryRun) -> String {
    // The run consists of numbers and text, which always serialise.
    serde_json::to_string(run).unwrap_or_default()
}

/// Decodes the JSON of a row. A row that cannot be decoded is an error, which counts as damage of
/// the index.
fn decode_run(text: &str) -> Result<HistoryRun, Error> {
    serde_json::from_str(text)
        .map_err(|error| Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error)))
}
