//! Starts and ends the servers of `plimsoll demo`. Each server is plimsoll's own reference server
//! in a separate process.
//!
//! Not here: the demo itself, and the reference server's code (`baseline`).

use crate::subject::HelperProgram;
use plimsoll_model::failure::Failure;
use plimsoll_model::shell;
use plimsoll_sys::system_text;
use std::path::PathBuf;

fn start_failure(error: &std::io::Error) -> Failure {
    Failure::cannot_start(format!(
        "the sample server of the demo could not be started: {reason}",
        reason = system_text(error)
    ))
}

fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| start_failure(&error))
}

/// Starts the reference server with these flags in a new process, on a free port.
pub fn start(flags: &[&str]) -> Result<HelperProgram, Failure> {
    let words = [&["baseline", "--listen", "127.0.0.1:0"], flags].concat();
    HelperProgram::start(&own_program()?, &words).map_err(|error| start_failure(&error))
}

/// Ends a demo server. Returns an error if its process failed.
pub fn end(server: HelperProgram) -> Result<(), Failure> {
    server.end().map_err(|e| {
        Failure::cannot_start(format!(
            "the sample server of the demo ended with an error: {reason}",
            reason = system_text(&e)
        ))
    })
}

/// Returns the shell command that starts a reference server at `address`. The reference server
/// forwards requests to the server `behind` over a pool of connections.
pub fn pooled_server_command(address: &str, behind: &str, pool: &str) -> Result<String, Failure> {
    let program = shell::quote(&own_program()?.display().to_string());
    Ok(format!("{program} baseline --listen {address} --behind {behind} --pool {pool}"))
}

/// Returns a loopback address (`IP:PORT`) on which no process listens.
pub fn free_address() -> Result<String, Failure> {
    let free = plimsoll_sys::tcp::unused_loopback_address();
    Ok(free.map_err(|error| start_failure(&error))?.to_string())
}
