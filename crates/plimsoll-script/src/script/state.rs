//! A Lua state with the standard libraries, the table `wrk`, and the script.
//!
//! This file has the only unsafe line of the workspace outside `plimsoll-sys`. Scripts may use
//! `ffi`, `debug` and C libraries, so a script can do whatever a program can. Users must trust a
//! script as much as any other program.

use super::address;
use crate::failure::{HookName, ScriptError};
use crate::hung_calls::CallProgress;
use crate::program::Program;
use crate::script_network::ScriptNetwork;
use mlua::{FromLuaMulti, Function, IntoLuaMulti, Lua, Result, Table, Value};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The Lua code that defines the table `wrk`.
const WRK_TABLE_LUA: &str = include_str!("wrk.lua");

/// Lua code that adds the folders in which Linux distributions install modules for Lua 5.1 to the
/// module search path. The LuaJIT of a distribution searches the distribution's module folders, but
/// the bundled LuaJIT does not.
const MODULE_PATHS_LUA: &str = "
local arch = ...
package.path = package.path .. ';/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua'
package.cpath = package.cpath .. ';/usr/lib/' .. arch .. '-linux-gnu/lua/5.1/?.so;/usr/lib64/lua/5.1/?.so;/usr/lib/lua/5.1/?.so'
";

/// Lua code that makes a call of `os.exit` an error. With a working `os.exit`, a script could end
/// plimsoll with status 0 before the results are checked, and a CI gate would pass.
const FORBID_EXIT_LUA: &str = "
os.exit = function(code)
   error('os.exit(' .. tostring(code == nil and '' or code) .. ') ends no load here: leave it out, or call error()', 2)
end
";

/// Lua code that calls the script's functions `request`, `response` and `delay` for each request. A
/// script may replace its global functions at any time, so the Lua code looks up the functions at
/// each call. A lookup in Lua costs less than a lookup in Rust.
const REQUEST_CALLS_LUA: &str = "
local wrk, type, tonumber, gmatch, match = wrk, type, tonumber, string.gmatch, string.match
local function ask()
   local f = request
   if type(f) ~= 'function' then f = wrk.request end
   return f()
end
-- The fields of the last head: answers are much alike, and a head that is the same text is not read again.
local last, names, values, count = nil, {}, {}, 0
local function read(head)
   last, count = head, 0
   for name, value in gmatch(head, '\\n([^:\\n]*):[ \\t]*([^\\r\\n]*)') do
      count = count + 1
      names[count], values[count] = name, match(value, '^(.*[^ \\t])') or ''
   end
end
local function hear(status, head, body)
   local f = response
   if type(f) ~= 'function' then return end
   if head ~= last then read(head) end
   -- A script may keep its table, and change it.
   local headers = {}
   for i = 1, count do headers[names[i]] = values[i] end
   f(status, headers, body)
end
local function wait()
   local f = delay
   if type(f) ~= 'function' then return 0 end
   local ms = f()
   return tonumber(ms) or 0
end
return ask, hear, wait
";

/// A Lua state of a script, with a record of the beginnings and ends of its function calls
/// (`pulse`). Clones of a `ScriptState` share one Lua state.
#[derive(Clone)]
pub(crate) struct ScriptState {
    pub(crate) lua: Lua,
    pub(crate) call_progress: Arc<CallProgress>,
}

impl std::fmt::Debug for ScriptState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptState").field("pulse", &self.call_progress).finish_non_exhaustive()
    }
}

/// Creates a Lua state with all libraries.
#[allow(unsafe_code)]
fn create_lua_with_libraries() -> Lua {
    // SAFETY: a script is responsible for what it does with `ffi` and `debug`, as in wrk. The Lua
    // bindings have no other safety requirement.
    unsafe { Lua::unsafe_new() }
}

impl ScriptState {
    /// Creates a state that contains only the libraries and the table `wrk`.
    pub(crate) fn new(
        program: &Program,
        network: &Arc<dyn ScriptNetwork>,
    ) -> std::result::Result<ScriptState, ScriptError> {
        let state = ScriptState { lua: create_lua_with_libraries(), call_progress: Arc::default() };
        // The error is ignored: if the allocator cannot be bounded, the state has no memory limit.
        let _ = state.lua.set_memory_limit(program.memory_bytes_max);
        state.add_libraries(program, network).map_err(|error| ScriptError::from_hook_error(HookName::Load, &error))?;
        Ok(state)
    }

    fn add_libraries(&self, program: &Program, network: &Arc<dyn ScriptNetwork>) -> Result<()> {
        let lua = &self.lua;
        lua.load(MODULE_PATHS_LUA).set_name("=package").call::<()>(std::env::consts::ARCH)?;
        let wrk: Table = lua.load(WRK_TABLE_LUA).set_name("=wrk").call(())?;
        lua.globals().set("wrk", &wrk)?;
        lua.globals().get::<Table>("package")?.get::<Table>("loaded")?.set("wrk", &wrk)?;
        address::add_functions(lua, &wrk, network)?;
        if !program.may_exit {
            lua.load(FORBID_EXIT_LUA).set_name("=wrk").exec()?;
        }
        wrk.raw_set("scheme", program.scheme.as_str())?;
        wrk.raw_set("host", program.host.as_str())?;
        wrk.raw_set("port", program.port.as_deref())?;
        wrk.raw_set("path", program.path.as_str())?;
        let headers: Table = wrk.raw_get("headers")?;
        for (name, value) in &program.headers {
            headers.raw_set(name.as_str(), value.as_str())?;
        }
        // `wrk.time_us()` returns the wall-clock time in us, as in wrk2.
        let time_us = lua.create_function(|_, ()| {
            Ok(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as f64)
        })?;
        wrk.raw_set("time_us", time_us)
    }

    /// Executes the script's text in this Lua state, which defines the functions of the script.
    pub(crate) fn execute_script_text(&self, program: &Program) -> std::result::Result<(), ScriptError> {
        let Some(text) = &program.text else { return Ok(()) };
        self.run_as_hook(HookName::Load, || {
            // If the first line of a script begins with `#`, the line is for the shell and is
            // skipped. The line break of the skipped line stays, so that line numbers in error
            // messages are right.
            let text = match text.first() {
                Some(b'#') => &text[text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len())..],
                _ => &text[..],
            };
            self.lua.load(text).set_name(format!("@{}", program.name)).exec()
        })
    }

    /// Runs `work` as part of a hook (a script function that plimsoll calls). The watch for hung
    /// calls also covers `work`, and errors of `work` are reported as errors of the hook.
    pub(crate) fn run_as_hook<R>(
        &self,
        hook: HookName,
        work: impl FnOnce() -> Result<R>,
    ) -> std::result::Result<R, ScriptError> {
        self.call_progress.begin(hook);
        let result = work();
        self.call_progress.end();
        result.map_err(|error| ScriptError::from_hook_error(hook, &error))
    }

    /// Calls a function of the table `wrk` as part of a hook (a script function that plimsoll
    /// calls).
    pub(crate) fn call_wrk_function<R: FromLuaMulti>(
        &self,
        hook: HookName,
        name: &str,
        arguments: impl IntoLuaMulti,
    ) -> std::result::Result<R, ScriptError> {
        self.run_as_hook(hook, || self.wrk_table()?.get::<Function>(name)?.call(arguments))
    }

    /// Returns whether the lookup of the target's host name found an address that accepts
    /// connections.
    pub(crate) fn has_reachable_address(&self) -> Result<bool> {
        Ok(self.wrk_table()?.get::<Option<Table>>("addrs")?.is_some_and(|found| found.raw_len() > 0))
    }

    /// Returns the table `wrk`.
    pub(crate) fn wrk_table(&self) -> Result<Table> {
        self.lua.globals().get("wrk")
    }

    /// Returns the script's global function for this hook; `None` if the script defines no such
    /// function.
    pub(crate) fn hook_function(&self, hook: HookName) -> Option<Function> {
        match self.lua.globals().raw_get(hook.name()) {
            Ok(Value::Function(function)) => Some(function),
            _ => None,
        }
    }

    /// Returns three Lua functions, which call the script's `request`, `response` and `delay`, in
    /// this order.
    pub(crate) fn load_exchange_functions(&self) -> Result<(Function, Function, Function)> {
        self.lua.load(REQUEST_CALLS_LUA).set_name("=wrk").call(())
    }

    /// Flushes Lua's own output buffer, which contains text that the script has printed.
    pub(crate) fn flush(&self) {
        // Errors of the flush are ignored, because a script may have replaced Lua's table `io` on
        // purpose.
        let _ = self.lua.load("if io and io.stdout then io.stdout:flush() end").exec();
    }
}
