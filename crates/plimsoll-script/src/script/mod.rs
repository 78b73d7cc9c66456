//! Runs a wrk script in Lua. The script has a main Lua state for `setup` and `done`. Each thread
//! has its own Lua state, in which the script writes the thread's requests.
//!
//! The script's functions are called in wrk's order, with one correction: `setup` and `init` run
//! for all threads before the first request.

mod address;
mod errors;
mod figures_handle;
mod state;
mod thread;
mod transfer;

use crate::failure::{HookName, ScriptError};
use crate::figures::ScriptFigures;
use crate::hung_calls::HungCallWatch;
use crate::messages;
use crate::program::{Dialect, Program};
use crate::script_network::ScriptNetwork;
use crate::summary::ScriptSummary;
use figures_handle::FiguresHandle;
use mlua::{Function, LuaString, Value};
use plimsoll_wire::{Author, AuthorResponse, AuthorStopReason, Batch};
use state::ScriptState;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use thread::{ScriptThreadState, ThreadHandle};

/// The longest delay that `delay()` may return, ns (a day).
const DELAY_NS_MAX: f64 = 86_400e9;

/// A script with its Lua states. Keep the `Script` until after the load, because the script's
/// function `done` may read the global variables of the threads.
pub struct Script {
    program: Program,
    main: ScriptState,
    threads: Vec<(ScriptState, Arc<ScriptThreadState>)>,
    /// The first script error in any thread, which ends the load.
    failure: Arc<Mutex<Option<ScriptError>>>,
}

impl Script {
    /// Creates the Lua states of a script. `new` does not execute any code of the script.
    pub fn new(program: Program, threads: usize, network: &Arc<dyn ScriptNetwork>) -> Result<Script, ScriptError> {
        let main = ScriptState::new(&program, network)?;
        let threads = (0..threads)
            .map(|_| Ok((ScriptState::new(&program, network)?, Arc::default())))
            .collect::<Result<_, ScriptError>>()?;
        Ok(Script { program, main, threads, failure: Arc::default() })
    }

    /// Returns a watch that detects, from another thread, functions of the script that do not end.
    /// Call `hung_call_watch` before [`run_setup_hooks`](Self::run_setup_hooks), so that all
    /// functions of the script are watched.
    pub fn hung_call_watch(&self) -> HungCallWatch {
        let states = self.threads.iter().map(|(state, _)| state);
        HungCallWatch::new(std::iter::once(&self.main).chain(states).map(|state| Arc::clone(&state.call_progress)))
    }

    /// Executes the script in every Lua state, and calls `setup` and `init` for every thread. After
    /// `init`, calls the first thread's `request` once without sending its result, as in wrk,
    /// because scripts with counters rely on this extra call. Returns a [`ScriptAuthor`] for each
    /// thread, which writes the thread's requests.
    pub fn run_setup_hooks(&self) -> Result<Vec<ScriptAuthor>, ScriptError> {
        let program = &self.program;
        self.main.execute_script_text(program)?;
        self.main.call_wrk_function::<()>(
            HookName::Load,
            "resolve",
            (program.host.as_str(), program.port_or_scheme()),
        )?;
        if !self.main.run_as_hook(HookName::Load, || self.main.has_reachable_address())? {
            return Err(ScriptError::Unreachable {
                host: program.host.clone(),
                service: program.port_or_scheme().to_owned(),
            });
        }
        let (mut authors, mut messages) = (Vec::new(), 1);
        for (number, (state, facts)) in self.threads.iter().enumerate() {
            state.execute_script_text(program)?;
            let handle = ThreadHandle { thread_state: Arc::clone(facts), state: state.lua.weak() };
            let own = handle.clone();
            state.run_as_hook(HookName::Load, || state.wrk_table()?.set("thread", own))?;
            self.main.call_wrk_function::<()>(HookName::Setup, "setup", handle)?;
            let init = || {
                let args = state.lua.create_table()?;
                for (at, arg) in program.args.iter().enumerate() {
                    args.raw_set(at, arg.as_str())?;
                }
                state.wrk_table()?.get::<Function>("init")?.call::<()>(args)
            };
            state.run_as_hook(HookName::Init, init)?;
            let mut author = self.create_author(number)?;
            if number == 0 {
                let mut batch = Batch::default();
                author.call_request_hook(&mut batch)?;
                messages::parse_messages(&mut batch).map_err(|flaw| ScriptError::Request {
                    reason: flaw.reason,
                    line: flaw.line,
                    column: flaw.column,
                })?;
                messages = batch.head_request_flags.len() as u32;
            }
            author.messages = messages;
            authors.push(author);
        }
        self.flush();
        for (_, facts) in &self.threads {
            facts.set_running(true);
        }
        Ok(authors)
    }

    fn create_author(&self, number: usize) -> Result<ScriptAuthor, ScriptError> {
        let (state, facts) = &self.threads[number];
        let (request_fn, response_fn, delay_fn) =
            state.run_as_hook(HookName::Load, || state.load_exchange_functions())?;
        Ok(ScriptAuthor {
            has_request_hook: state.hook_function(HookName::Request).is_some(),
            has_response_hook: state.hook_function(HookName::Response).is_some(),
            has_delay_hook: state.hook_function(HookName::Delay).is_some() && self.program.dialect == Dialect::Wrk,
            state: state.clone(),
            thread_state: Arc::clone(facts),
            failure: Arc::clone(&self.failure),
            request_fn,
            response_fn,
            delay_fn,
            messages: 1,
            last: Batch::default(),
        })
    }

    /// Returns the address that each thread connects to, as set by `setup`; `None` if `setup` sets
    /// no address.
    pub fn addresses(&self) -> Vec<Option<SocketAddr>> {
        self.threads.iter().map(|(_, facts)| facts.connection_address()).collect()
    }

    /// Returns whether the script defines `done`.
    pub fn defines_done(&self) -> bool {
        self.main.hook_function(HookName::Done).is_some()
    }

    /// Returns whether the script defines the function `delay`. Loads with a given request rate
    /// never call `delay`.
    pub fn defines_delay(&self) -> bool {
        self.threads.iter().any(|(state, _)| state.hook_function(HookName::Delay).is_some())
    }

    /// Returns the script error that ended the load; `None`: no function of the script has failed.
    pub fn failure(&self) -> Option<ScriptError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records that a script function did not return within `seconds` and is abandoned. Returns the
    /// error that ends the load.
    pub fn record_hung_function(&self, hook: HookName, seconds: u64) -> ScriptError {
        let error = ScriptError::HungHook { hook, seconds };
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error).clone()
    }

    /// Calls the script's function `done` with the results of the load, if the script defines this
    /// function.
    pub fn run_done_hook(
        &self,
        summary: &ScriptSummary,
        latency_us: ScriptFigures,
        requests: ScriptFigures,
    ) -> Result<(), ScriptError> {
        for (_, facts) in &self.threads {
            facts.set_running(false);
        }
        let Some(done) = self.main.hook_function(HookName::Done) else { return Ok(()) };
        let lua = &self.main.lua;
        let counts_all = self.program.dialect == Dialect::Wrk2;
        let work = || {
            let errors = lua.create_table_from([
                ("connect", summary.errors_connect as f64),
                ("read", summary.errors_read as f64),
                ("write", summary.errors_write as f64),
                ("status", summary.errors_status as f64),
                ("timeout", summary.errors_timeout as f64),
            ])?;
            let told = lua.create_table_from([
                ("duration", summary.duration_us as f64),
                ("requests", summary.requests as f64),
                ("bytes", summary.bytes as f64),
            ])?;
            told.raw_set("errors", errors)?;
            let figures = |figures| FiguresHandle { figures, counts_all };
            done.call::<()>((told, figures(latency_us), figures(requests)))
        };
        let result = self.main.run_as_hook(HookName::Done, work);
        self.flush();
        result
    }

    /// Flushes the output that the script has printed.
    pub fn flush(&self) {
        self.main.flush();
    }
}

/// Writes the requests of one thread of a script.
#[derive(Debug)]
pub struct ScriptAuthor {
    state: ScriptState,
    thread_state: Arc<ScriptThreadState>,
    failure: Arc<Mutex<Option<ScriptError>>>,
    has_request_hook: bool,
    has_response_hook: bool,
    has_delay_hook: bool,
    request_fn: Function,
    response_fn: Function,
    delay_fn: Function,
    /// The number of messages (pipelined requests) in the first batch of the first thread.
    messages: u32,
    /// The last batch of requests with its request count, so that the requests of an identical
    /// batch need not be counted again.
    last: Batch,
}

impl ScriptAuthor {
    /// Calls the script's function `request()` and stores the returned text in `batch`, without
    /// counting the requests in the text.
    fn call_request_hook(&self, batch: &mut Batch) -> Result<(), ScriptError> {
        batch.clear();
        self.state.run_as_hook(HookName::Request, || {
            match self.request_fn.call::<Value>(())? {
                Value::String(text) => batch.bytes.extend_from_slice(&text.as_bytes()),
                // As in Lua, a number that `request()` returns becomes its digits. If `request()`
                // returns neither a string nor a number, the text is empty.
                value @ (Value::Integer(_) | Value::Number(_)) => {
                    batch.bytes.extend_from_slice(value.to_string()?.as_bytes());
                }
                _ => {}
            }
            Ok(())
        })
    }

    #[cold]
    fn record_failure(&self, error: ScriptError) -> AuthorStopReason {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        AuthorStopReason::Failed
    }

    fn continue_unless_stopped<R>(&self, result: Result<R, ScriptError>) -> Result<R, AuthorStopReason> {
        match result {
            Err(error) => Err(self.record_failure(error)),
            Ok(_) if self.thread_state.is_stopped() => Err(AuthorStopReason::Requested),
            Ok(result) => Ok(result),
        }
    }
}

impl Author for ScriptAuthor {
    fn writes_every_batch(&self) -> bool {
        self.has_request_hook
    }

    fn has_delays(&self) -> bool {
        self.has_delay_hook
    }

    fn wants_responses(&self) -> bool {
        self.has_response_hook
    }

    fn messages_per_batch(&self) -> u32 {
        self.messages
    }

    fn write(&mut self, batch: &mut Batch) -> Result<(), AuthorStopReason> {
        let asked = self.call_request_hook(batch);
        self.continue_unless_stopped(asked)?;
        if batch.bytes == self.last.bytes {
            batch.head_request_flags.clone_from(&self.last.head_request_flags);
        } else if batch.bytes.is_empty() {
            // An empty text from `request()` is an error, because without a request there would be
            // no response.
            let flaw = ScriptError::Request { reason: "incomplete request", line: 1, column: 1 };
            return Err(self.record_failure(flaw));
        } else {
            messages::count_messages(batch);
            self.last.clone_from(batch);
        }
        Ok(())
    }

    fn delay_ns(&mut self) -> Result<u64, AuthorStopReason> {
        let delay_ms = self.state.run_as_hook(HookName::Delay, || self.delay_fn.call::<f64>(()));
        // If `delay()` returns a negative number or a value that is not a number, there is no
        // delay.
        self.continue_unless_stopped(delay_ms).map(|delay_ms| (delay_ms * 1e6).clamp(0.0, DELAY_NS_MAX) as u64)
    }

    fn receive_response(&mut self, answer: &AuthorResponse) -> Result<(), AuthorStopReason> {
        let heard = self.state.run_as_hook(HookName::Response, || {
            // Lua code splits the header fields of a response, because passing each field from Rust
            // to Lua costs more time.
            self.response_fn.call::<()>((answer.status, LuaString::wrap(answer.head), LuaString::wrap(answer.content)))
        });
        self.continue_unless_stopped(heard)
    }
}
