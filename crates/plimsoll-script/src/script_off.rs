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
use plimsoll_wire::{Author, AuthorAnswer, AuthorStopReason, Batch};
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

    pub fn watch(&self) -> HungCallWatch {
        match *self {}
    }

    pub fn begin(&self) -> Result<Vec<ScriptAuthor>, ScriptError> {
        match *self {}
    }

    pub fn addresses(&self) -> Vec<Option<SocketAddr>> {
        match *self {}
    }

    pub fn defines_done(&self) -> bool {
        match *self {}
    }

    pub fn has_delay(&self) -> bool {
        match *self {}
    }

    pub fn failure(&self) -> Option<ScriptError> {
        match *self {}
    }

    pub fn give_up(&self, _: HookName, _: u64) -> ScriptError {
        match *self {}
    }

    pub fn done(&self, _: &ScriptSummary, _: ScriptFigures, _: ScriptFigures) -> Result<(), ScriptError> {
        match *self {}
    }

    pub fn flush(&self) {
        match *self {}
    }
}

impl Author for ScriptAuthor {
    fn writes_each(&self) -> bool {
        match *self {}
    }

    fn delays(&self) -> bool {
        match *self {}
    }

    fn hears(&self) -> bool {
        match *self {}
    }

    fn messages(&self) -> u32 {
        match *self {}
    }

    fn write(&mut self, _: &mut Batch) -> Result<(), AuthorStopReason> {
        match *self {}
    }

    fn delay_ns(&mut self) -> Result<u64, AuthorStopReason> {
        match *self {}
    }

    fn hear(&mut self, _: &AuthorAnswer) -> Result<(), AuthorStopReason> {
        match *self {}
    }
}
