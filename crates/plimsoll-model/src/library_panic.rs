//! A guard around calls of libraries that read untrusted input. If a library panics, the program
//! continues, and the caller of the library gets an error that names the input.
//!
//! Not here: conditions that end a process at once (no memory, stack overflow). The size of an
//! input is limited before a library reads the input ([`ParseBudget`](crate::budget::ParseBudget)).

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use thiserror::Error;

/// Largest number of characters of a panic's message that an error repeats.
const MESSAGE_CHARS_MAX: usize = 120;

/// The error for an input on which a library panicked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the library that reads {input_name} failed on this input ({message}): the input is damaged, or has an unknown \
     format"
)]
pub struct LibraryPanic {
    /// The input that the library reads, in words.
    pub input_name: &'static str,
    /// The message of the panic.
    pub message: String,
}

thread_local! {
    /// Depth of nested library calls on this thread.
    static LIBRARY_CALL_DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// A guard that decrements the depth of library calls when a call ends, also during a panic.
struct LibraryCallGuard;

impl LibraryCallGuard {
    fn enter_library_call() -> LibraryCallGuard {
        LIBRARY_CALL_DEPTH.with(|calls| calls.set(calls.get() + 1));
        LibraryCallGuard
    }
}

impl Drop for LibraryCallGuard {
    fn drop(&mut self) {
        LIBRARY_CALL_DEPTH.with(|calls| calls.set(calls.get() - 1));
    }
}

/// Installs a panic hook that prints nothing for panics inside library calls, because
/// [`catch_library_panic`] returns an error for such a panic.
fn install_quiet_panic_hook() {
    static HOOK_INSTALL_ONCE: Once = Once::new();
    HOOK_INSTALL_ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if LIBRARY_CALL_DEPTH.with(Cell::get) == 0 {
                before(info);
            }
        }));
    });
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("without a message").split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().filter(|c| !c.is_control()).take(MESSAGE_CHARS_MAX).collect()
}

/// Calls `read` and returns its result, or an error if `read` panicked. `input_name` completes the
/// text "the library that reads". After a panic, the caller must not use state that
/// `read` changed.
pub fn catch_library_panic<T>(input_name: &'static str, read: impl FnOnce() -> T) -> Result<T, LibraryPanic> {
    install_quiet_panic_hook();
    let inside = LibraryCallGuard::enter_library_call();
    let result = catch_unwind(AssertUnwindSafe(read));
    drop(inside);
    result.map_err(|panic| LibraryPanic { input_name, message: panic_message(panic.as_ref()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_panic_becomes_an_error_message() {
        assert_eq!(catch_library_panic("numbers", || 7), Ok(7));
        let long = "x".repeat(1_000);
        for (said, message) in [("no\nsuch \u{1b} file", "no such file"), (long.as_str(), &long[..MESSAGE_CHARS_MAX])] {
            let text = said.to_owned();
            let error = catch_library_panic("descriptors", || -> () { panic!("{text}") }).expect_err("panics");
            assert_eq!(error.message.replace("  ", " "), message);
            assert!(error.to_string().starts_with("the library that reads descriptors failed on this input ("));
        }
        assert_eq!(LIBRARY_CALL_DEPTH.with(Cell::get), 0);
    }
}
