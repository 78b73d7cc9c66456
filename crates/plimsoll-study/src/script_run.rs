//! Runs a Lua script that builds the requests of a load. Creates new Lua states for each load,
//! gives each worker its Lua thread, and detects functions that do not end.
//!
//! Not here: the script API (`plimsoll_script`), and the command line.

use crate::message::terminal_message;
use crate::output;
use crate::target;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::{EarlyStopReason, ExperimentSettings, LoadShape, Plan, ScriptSettings, redact};
use plimsoll_script::run_figures::RunFigures;
use plimsoll_script::{Dialect, HungCallWatch, HungFunction, Program, Script, ScriptError, ScriptNetwork};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::files::{self, FilePurpose};
use plimsoll_traffic::target_url;
use plimsoll_wire::{AuthorFactory, WorkerAuthor};
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The longest run of a script's function during a load, ns (10 s). If a function runs longer than
/// 10 s, plimsoll abandons the worker of the function, and the load ends.
const FUNCTION_NS_MAX_DURING_LOAD: u64 = 10_000_000_000;
/// The longest run of a script's function outside a load, ns (5 min). If a function runs longer
/// than 5 min outside a load, plimsoll exits.
const FUNCTION_NS_MAX_OUTSIDE_LOAD: u64 = 300_000_000_000;
/// The interval between checks for functions that do not end.
const SCRIPT_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Connect timeout of the script function `wrk.connect`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A script, and its Lua states in the current load. Clones of a `ScriptRun` share the script and
/// its Lua states.
#[derive(Clone)]
pub struct ScriptRun {
    program: Arc<Program>,
    network: Arc<dyn ScriptNetwork>,
    present: Arc<Mutex<Option<ScriptStatesInLoad>>>,
    /// Whether the warning about an unused `delay` function was printed already.
    is_delay_warning_shown: Arc<AtomicBool>,
    /// The text to print after the script's initial output and before the first load; `None` once
    /// the text is printed.
    announcement: Arc<Mutex<Option<String>>>,
}

/// The Lua states of a script in one load, and the list of abandoned workers.
struct ScriptStatesInLoad {
    script: Arc<Script>,
    stage: Arc<ScriptLoadPhase>,
    /// For each worker, the reason why the worker was abandoned; empty for a worker that still
    /// runs.
    given_up: Vec<Arc<OnceLock<String>>>,
}

impl Drop for ScriptStatesInLoad {
    fn drop(&mut self) {
        self.stage.is_over.store(true, Ordering::Relaxed);
    }
}

/// The state of the script in the current load, shared with the thread that detects functions that
/// do not end.
#[derive(Default)]
struct ScriptLoadPhase {
    /// Whether a load is running, so that script functions have the shorter time limit.
    is_load_running: AtomicBool,
    /// Whether the load is over. If so, the thread that detects functions that do not end stops.
    is_over: AtomicBool,
}

/// Gives scripts access to the name resolver and the sockets of this machine.
struct Network {
    allow_public: bool,
}

impl ScriptNetwork for Network {
    fn lookup(&self, host: &str, service: &str) -> Result<Vec<SocketAddr>, String> {
        let port = service.parse().ok().or_else(|| target_url::default_port(service));
        let port = port.ok_or("Servname not supported")?;
        let found = target::resolve_addresses(host, port, self.allow_public);
        found.map(|(addresses, _)| addresses).map_err(|failure| terminal_message(&failure.to_string()))
    }

    fn connect(&self, address: SocketAddr) -> bool {
        TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).is_ok()
    }
}

/// Reads a script file. Returns an empty script if the file name `file` is empty.
pub fn read_script_file(file: &str) -> Result<Vec<u8>, Failure> {
    if file.is_empty() {
        return Ok(Vec::new());
    }
    files::read(file.as_ref(), FilePurpose::Script)
        .map_err(|why| Failure::usage(format!("--lua: the file '{file}' {why}")))
}

impl ScriptRun {
    /// Returns the script that the user's options name; `None` without a script. Fails if the
    /// script's digest differs from the digest in the recorded options.
    pub fn from_settings(plan: &Plan, settings: &ExperimentSettings<String>) -> Result<Option<ScriptRun>, Failure> {
        Self::from_settings_with_url(None, plan, settings)
    }

    /// Returns the script like [`ScriptRun::from_settings`]. `url` is the URL that the user wrote
    /// in a command line of another tool; `None` uses the URL of the plan.
    pub fn from_settings_with_url(
        url: Option<&str>,
        plan: &Plan,
        settings: &ExperimentSettings<String>,
    ) -> Result<Option<ScriptRun>, Failure> {
        let Some(ScriptSettings { file, digest, args }) = &settings.script else { return Ok(None) };
        let text = read_script_file(file)?;
        if redact::short_digest(&text) != *digest {
            return Err(Failure::usage(format!(
                "--lua: '{file}' differs from the recorded script (sha256 {digest}...): give the recorded \
                script, or start a new run"
            )));
        }
        // `url` is given only for a command line of another tool, and the scripts of other tools
        // may exit the process.
        let may_exit = url.is_some();
        let url = url.map_or_else(|| plan_url(plan), str::to_owned);
        let mut program = Program::from_url(&url).ok_or_else(|| {
            Failure::usage(format!("'{}' is not a URL", plimsoll_traffic::target_url::redact_query(&url)))
        })?;
        program.name.clone_from(file);
        program.may_exit = may_exit;
        program.text = (!file.is_empty()).then_some(text);
        program.args.extend(args.iter().cloned());
        if let Some(route) = plan.traffic.routes.first() {
            program.headers.clone_from(&route.request.headers);
        }
        let network = Arc::new(Network { allow_public: settings.public });
        let (present, is_delay_warning_shown, announcement) = Default::default();
        Ok(Some(ScriptRun { program: Arc::new(program), network, present, is_delay_warning_shown, announcement }))
    }

    /// Sets the text that is printed after the script's initial output and before its first load.
    pub fn set_announcement(&self, text: String) {
        *self.announcement.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    /// Returns the script's Lua states in the current or last load.
    fn current_script(&self) -> Option<Arc<Script>> {
        let present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        present.as_ref().map(|present| Arc::clone(&present.script))
    }

    /// Returns the script error that ended the load, if any.
    pub fn script_error(&self) -> Option<ScriptError> {
        self.current_script()?.failure()
    }

    /// Flushes the script's buffered output, before plimsoll prints its own output.
    pub fn flush(&self) {
        if let Some(script) = self.current_script() {
            script.flush();
        }
    }

    /// Calls the script's `done` function with the figures of the load. Returns an error if the
    /// script or plimsoll fails.
    pub fn call_done_function(&self, figures: &RunFigures) -> Option<ScriptError> {
        let script = self.current_script()?;
        let done = script.run_done_hook(&figures.summary, figures.latency_us().clone(), figures.requests.clone());
        script.failure().or(done.err())
    }

    /// Starts a thread that detects script functions that do not end, because a running function
    /// cannot be stopped. If a function hangs during a load, the worker of the function is
    /// abandoned, and the load ends and keeps its measurements. If a function hangs outside a load,
    /// plimsoll reports the function and exits.
    fn watch_for_hung_functions(&self, mut watch: HungCallWatch, present: &ScriptStatesInLoad) {
        let name = self.program.name.clone();
        let (script, stage) = (Arc::downgrade(&present.script), Arc::clone(&present.stage));
        let given_up = present.given_up.clone();
        std::thread::spawn(move || {
            let mut limit_unloaded_ns = FUNCTION_NS_MAX_OUTSIDE_LOAD;
            while !stage.is_over.load(Ordering::Relaxed) {
                std::thread::sleep(SCRIPT_CHECK_INTERVAL);
                let loaded = stage.is_load_running.load(Ordering::Relaxed);
                let limit_ns = if loaded { FUNCTION_NS_MAX_DURING_LOAD } else { limit_unloaded_ns };
                let Some(hanging) = watch.find_hung_function(monotonic_ns(), limit_ns) else { continue };
                let HungFunction { hook, thread } = hanging;
                let seconds = limit_ns / 1_000_000_000;
                let author = thread.and_then(|thread| given_up.get(thread)).filter(|_| loaded);
                if let (Some(author), Some(script)) = (author, script.upgrade()) {
                    // The result of `set` is ignored, because only the first reason for abandoning
                    // a worker counts. After the load, the script's `done` function may wait for
                    // data of the abandoned thread, so `done` gets a shorter time limit.
                    let _ = author.set(format!("the script failed: {}", script.record_hung_function(hook, seconds)));
                    watch.stop_reporting(hanging);
                    // The script is leaked with `forget`, because dropping the script would wait
                    // for the hanging function.
                    std::mem::forget(script);
                    limit_unloaded_ns = FUNCTION_NS_MAX_DURING_LOAD;
                } else {
                    output::print_to_stderr(&terminal_message(&format!(
                        "plimsoll: {name}: the function {hook}() of the script has not ended after {seconds} s"
                    )));
                    std::process::exit(i32::from(if loaded { exit::NEGATIVE_RESULT } else { exit::USAGE }));
                }
            }
        });
    }
}

impl AuthorFactory for ScriptRun {
    /// Creates new Lua states and runs the script's setup. Returns an author (a source of requests)
    /// for each worker. If the script has failed before, returns the script's error.
    fn create_authors(&self, shape: &LoadShape, workers: u32) -> Result<Vec<WorkerAuthor>, Failure> {
        if let Some(error) = self.script_error() {
            return Err(Failure::cannot_start(format!("the script failed: {error}")));
        }
        let is_open = matches!(shape, LoadShape::Open { .. });
        let dialect = if is_open { Dialect::Wrk2 } else { Dialect::Wrk };
        let program = Program { dialect, ..(*self.program).clone() };
        let usage = |error: ScriptError| Failure::usage(error.to_string());
        let script = Script::new(program, workers.max(1) as usize, &self.network).map_err(usage)?;
        let watch = script.hung_call_watch();
        let given_up = (0..workers.max(1)).map(|_| Arc::default()).collect();
        let present = ScriptStatesInLoad { script: Arc::new(script), stage: Arc::default(), given_up };
        self.watch_for_hung_functions(watch, &present);
        let authors = present.script.run_setup_hooks().map_err(usage)?;
        if is_open && present.script.defines_delay() && !self.is_delay_warning_shown.swap(true, Ordering::Relaxed) {
            output::print_to_stderr("warning: the script's delay() has no effect: the rate sets the times of requests");
        }
        if let Some(text) = self.announcement.lock().unwrap_or_else(PoisonError::into_inner).take() {
            output::print(&text);
        }
        let each = authors.into_iter().zip(present.script.addresses()).zip(present.given_up.clone());
        let authorship =
            |((author, address), abandon_reason)| WorkerAuthor { author: Box::new(author), address, abandon_reason };
        let each = each.map(authorship).collect();
        present.stage.is_load_running.store(true, Ordering::Relaxed);
        *self.present.lock().unwrap_or_else(PoisonError::into_inner) = Some(present);
        Ok(each)
    }

    /// Ends the load once its script has failed.
    fn may_continue(&self) -> ControlFlow<EarlyStopReason> {
        match self.script_error() {
            Some(error) => ControlFlow::Break(EarlyStopReason::CannotContinue(format!("the script failed: {error}"))),
            None => ControlFlow::Continue(()),
        }
    }

    /// Marks the end of a load. Script functions that are called after the load have the longer
    /// time limit.
    fn mark_load_ended(&self) {
        if let Some(present) = &*self.present.lock().unwrap_or_else(PoisonError::into_inner) {
            present.stage.is_load_running.store(false, Ordering::Relaxed);
        }
    }
}

/// Wraps a script as a source of requests for a runner.
pub fn into_author_factory(scripted: ScriptRun) -> Arc<dyn AuthorFactory> {
    Arc::new(scripted)
}

/// Returns the URL of a plan. The URL contains the port only if it differs from the scheme's
/// default port.
fn plan_url(plan: &Plan) -> String {
    let origin = &plan.traffic.origin;
    let target = plan.traffic.routes.first().map_or("/", |route| &route.request.target);
    format!("{}://{}{target}", origin.scheme, target_url::host_header_value(origin))
}
