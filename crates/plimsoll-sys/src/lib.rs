//! Safe wrappers of system calls and kernel files that a load generator needs and the standard
//! library lacks.
//!
//! The crate `plimsoll-sys` is the only crate with `libc` and `cfg(target_os)`. All `unsafe` code
//! is in this crate, except one call in `plimsoll-script`. Most functions make one or two system
//! calls and return their errors.
//!
//! Not here: plans, protocols, statistics.

pub mod allocations;
pub mod clock;
pub mod epoll;
pub mod file;
pub mod files;
pub mod group;
pub mod output_file;
pub mod pause;
pub mod probe;
pub mod process;
pub mod sampling;
pub mod signal;
pub mod stdout;
pub mod symbols;
pub mod tcp;

/// Returns the operating system's error text in lower case, without the error number.
pub fn system_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.strip_prefix("failed to lookup address information: ").unwrap_or(text).to_lowercase()
}

/// Converts the result of a system call: a negative number becomes the error that the system
/// reports.
fn error_if_negative(result: libc::c_int) -> std::io::Result<libc::c_int> {
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(result) }
}

/// A lock that makes tests with child processes run one after another, because one of the tests
/// ends all children of the process.
#[cfg(test)]
static CHILD_PROCESSES: std::sync::Mutex<()> = std::sync::Mutex::new(());
