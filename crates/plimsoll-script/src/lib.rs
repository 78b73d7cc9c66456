//! Scripts in Lua that say what is asked: the whole contract of wrk's (`setup`, `init`, `delay`,
//! `request`, `response`, `done`, the table `wrk`), so that scripts which were written for wrk run
//! as they are.
//!
//! A [`Script`] is made of a [`Program`], begun, and then asks through a [`ScriptAuthor`] for each
//! worker; a [`PulseWatch`] sees whether its functions end. What must never be known here: sockets
//! (who looks up and connects is a [`Reach`] given from outside), the command line, how a load is
//! carried out, and how anything looks.

#![deny(unsafe_code)]
// What only Lua calls has no caller without it.
#![cfg_attr(not(feature = "lua"), allow(dead_code))]

mod failure;
mod figures;
pub mod messages;
mod program;
mod pulse;
mod reach;
pub mod run_figures;
mod summary;

// Twins: the same items with Lua and without it.
#[cfg(feature = "lua")]
mod script;
#[cfg(not(feature = "lua"))]
#[path = "script_off.rs"]
mod script;

pub use failure::{HookName, ScriptError};
pub use figures::ScriptFigures;
pub use program::{Dialect, Program};
pub use pulse::{HungFunction, PulseWatch};
pub use reach::Reach;
pub use script::{Script, ScriptAuthor};
pub use summary::ScriptSummary;

/// Memory that one state of a script may take unless it is said otherwise, bytes.
pub const MEMORY_BYTES_MAX: usize = 2 << 30;
