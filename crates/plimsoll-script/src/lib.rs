//! Runs Lua scripts that write the requests of a load. Scripts have the complete API of wrk:
//! `setup`, `init`, `delay`, `request`, `response`, `done` and the table `wrk`. Scripts written for
//! wrk run unchanged.
//!
//! A [`Script`] is created from a [`Program`] and started. The script then writes requests through
//! one [`ScriptAuthor`] for each worker, and a [`HungCallWatch`] detects functions that do not end.
//! This crate must not depend on sockets (a [`ScriptNetwork`] looks up names and connects), on the
//! command line, on how a load is executed, or on presentation.

#![deny(unsafe_code)]
// Without the feature `lua`, functions that only Lua code calls are unused, so dead code is
// allowed.
#![cfg_attr(not(feature = "lua"), allow(dead_code))]

mod failure;
mod figures;
mod hung_calls;
pub mod messages;
mod program;
pub mod run_figures;
mod script_network;
mod summary;

// The module `script` has two versions with the same public items: one for builds with Lua, one for
// builds without Lua.
#[cfg(feature = "lua")]
mod script;
#[cfg(not(feature = "lua"))]
#[path = "script_off.rs"]
mod script;

pub use failure::{HookName, ScriptError};
pub use figures::ScriptFigures;
pub use hung_calls::{HungCallWatch, HungFunction};
pub use program::{Dialect, Program};
pub use script::{Script, ScriptAuthor};
pub use script_network::ScriptNetwork;
pub use summary::ScriptSummary;

/// The default memory limit for one Lua state of a script, bytes (2 GiB).
pub const MEMORY_BYTES_MAX: usize = 2 << 30;
