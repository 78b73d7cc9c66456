//! Replaces the module `script` in a build without Lua. [`Script::new`] always returns an error
//! about the missing Lua.
//!
//! Not here: running scripts (`script`).

use crate::failure::{HookName, ScriptError};
use crate::figures::ScriptFigures;
use crate::hung_calls::HungCallWatch;
use crate::program::Program;
use crate::script_network::ScriptNetwork;
use crate::summary::ScriptSummary;
use plimsoll_wire::{Author, AuthorResponse, AuthorStopReason, Batch};
use std::net::SocketAddr;
use std::sync::Arc;

/// A script. In a build without Lua, the type `Script` has no values.
#[derive(Debug)]
pub enum Script {}

/// The writer of a script's requests. In a build without Lua, the type `ScriptAuthor` has no
/// values.
#[derive(Debug)]
pub enum ScriptAuthor {}

#[allow(missing_docs, reason = "as in the twin; none can be called")]
impl Script {
    /// # Errors
    /// Always returns [`ScriptError::NoLua`].
    pub fn new(_: Program, _: usize, _: &Arc<dyn ScriptNetwork>) -> Result<Script, ScriptError> {
        Err(ScriptError::NoLua)
    }

    pub fn hung_call_watch(&self) -> HungCallWatch {
        match *self {}
    }

    pub fn run_setup_hooks(&self) -> Result<Vec<ScriptAuthor>, ScriptError> {
        match *self {}
    }

    pub fn addresses(&self) -> Vec<Option<SocketAddr>> {
        match *self {}
    }

    pub fn defines_done(&self) -> bool {
        match *self {}
    }

    pub fn defines_delay(&self) -> bool {
        match *self {}
    }

    pub fn failure(&self) -> Option<ScriptError> {
        match *self {}
    }

    pub fn record_hung_function(&self, _: HookName, _: u64) -> ScriptError {
        match *self {}
    }

    pub fn run_done_hook(&self, _: &ScriptSummary, _: ScriptFigures, _: ScriptFigures) -> Result<(), ScriptError> {
        match *self {}
    }

    pub fn flush(&self) {
        match *self {}
    }
}

impl Author for ScriptAuthor {
    fn writes_every_batch(&self) -> bool {
        match *self {}
    }

    fn has_delays(&self) -> bool {
        match *self {}
    }

    fn wants_responses(&self) -> bool {
        match *self {}
    }

    fn messages_per_batch(&self) -> u32 {
        match *self {}
    }

    fn write(&mut self, _: &mut Batch) -> Result<(), AuthorStopReason> {
        match *self {}
    }

    fn delay_ns(&mut self) -> Result<u64, AuthorStopReason> {
        match *self {}
    }

    fn receive_response(&mut self, _: &AuthorResponse) -> Result<(), AuthorStopReason> {
        match *self {}
    }
}
