//! A script as the traffic of loads: its states are made for each load, its threads given to the
//! workers, and somebody looks whether its functions end.
//!
//! Not here: the contract of scripts (`plimsoll_script`), and what a command line says of one.

use crate::message::presentable;
use crate::output;
use crate::target;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::{LoadShape, Plan, ScriptTerms, Stop, Terms, redact};
use plimsoll_script::run_figures::RunFigures;
use plimsoll_script::{Dialect, HungFunction, Program, PulseWatch, Reach, Script, ScriptError};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::files::{self, Use};
use plimsoll_traffic::target_url;
use plimsoll_wire::{AuthorFactory, WorkerAuthor};
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How long a function of a script may take while a load runs, and before and after.
const LOADED_NS_MAX: u64 = 10_000_000_000;
const UNLOADED_NS_MAX: u64 = 300_000_000_000;
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(250);
/// How long `wrk.connect` waits.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// A script, and its states in the present load; clones are the same one.
#[derive(Clone)]
pub struct ScriptRun {
    program: Arc<Program>,
    reach: Arc<dyn Reach>,
    present: Arc<Mutex<Option<ScriptLoad>>>,
    /// It was said that `delay` is not asked.
    is_delay_told: Arc<AtomicBool>,
    /// Printed when the script has begun, before its first load.
    announcement: Arc<Mutex<Option<String>>>,
}

/// The states of one load.
struct ScriptLoad {
    script: Arc<Script>,
    stage: Arc<ScriptStage>,
    /// Why each worker is given up, if it is.
    given_up: Vec<Arc<OnceLock<String>>>,
}

impl Drop for ScriptLoad {
    fn drop(&mut self) {
        self.stage.is_over.store(true, Ordering::Relaxed);
    }
}

/// How far a load has come, for whoever looks whether its script's functions end.
#[derive(Default)]
struct ScriptStage {
    is_loaded: AtomicBool,
    /// Nobody need look any more.
    is_over: AtomicBool,
}

/// This machine's names and sockets.
struct Network {
    allow_public: bool,
}

impl Reach for Network {
    fn lookup(&self, host: &str, service: &str) -> Result<Vec<SocketAddr>, String> {
        let port = service.parse().ok().or_else(|| target_url::default_port(service));
        let port = port.ok_or("Servname not supported")?;
        let found = target::addresses(host, port, self.allow_public);
        found.map(|(addresses, _)| addresses).map_err(|failure| presentable(&failure.to_string()))
    }

    fn connect(&self, address: SocketAddr) -> bool {
        TcpStream::connect_timeout(&address, CONNECT_PATIENCE).is_ok()
    }
}

/// The text of a script; none where no file is named.
pub fn text_of(file: &str) -> Result<Vec<u8>, Failure> {
    if file.is_empty() {
        return Ok(Vec::new());
    }
    files::read(file.as_ref(), Use::Script).map_err(|why| Failure::usage(format!("--lua: the file '{file}' {why}")))
}

impl ScriptRun {
    /// The script that says what is asked of a plan's URL, if one does; it must be the one that was
    /// asked for.
    pub fn from_terms(plan: &Plan, terms: &Terms<String>) -> Result<Option<ScriptRun>, Failure> {
        Self::of_url(None, plan, terms)
    }

    /// The same, told the URL as it was written.
    pub fn of_url(url: Option<&str>, plan: &Plan, terms: &Terms<String>) -> Result<Option<ScriptRun>, Failure> {
        let Some(ScriptTerms { file, digest, args }) = &terms.script else { return Ok(None) };
        let text = text_of(file)?;
        if redact::digest(&text) != *digest {
            return Err(Failure::usage(format!(
                "--lua: '{file}' differs from the recorded script (sha256 {digest}...): give the recorded \
                script, or start a new run"
            )));
        }
        // Whoever names a URL of another tool has that tool's contract.
        let may_exit = url.is_some();
        let url = url.map_or_else(|| url_of(plan), str::to_owned);
        let mut program = Program::of_url(&url).ok_or_else(|| {
            Failure::usage(format!("'{}' is not a URL", plimsoll_traffic::target_url::redact_query(&url)))
        })?;
        program.name.clone_from(file);
        program.may_exit = may_exit;
        program.text = (!file.is_empty()).then_some(text);
        program.args.extend(args.iter().cloned());
        if let Some(route) = plan.traffic.routes.first() {
            program.headers.clone_from(&route.request.headers);
        }
        let reach = Arc::new(Network { allow_public: terms.public });
        let (present, is_delay_told, announcement) = Default::default();
        Ok(Some(ScriptRun { program: Arc::new(program), reach, present, is_delay_told, announcement }))
    }

    /// Prints this between what the script prints as it begins and its first load.
    pub fn announce(&self, text: String) {
        *self.announcement.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    /// The states of the last load.
    fn script(&self) -> Option<Arc<Script>> {
        let present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        present.as_ref().map(|present| Arc::clone(&present.script))
    }

    /// The error that has ended the load, if one has.
    pub fn failure(&self) -> Option<ScriptError> {
        self.script()?.failure()
    }

    /// What the script has printed stands before what is printed next.
    pub fn flush(&self) {
        if let Some(script) = self.script() {
            script.flush();
        }
    }

    /// Calls `done` for the load that has ended with these figures. Returns what went wrong in the
    /// script, in the load or here.
    pub fn done(&self, told: &RunFigures) -> Option<ScriptError> {
        let script = self.script()?;
        let done = script.done(&told.summary, told.latency_us().clone(), told.requests.clone());
        script.failure().or(done.err())
    }

    /// A function that does not end cannot be ended from outside, and its thread not be joined. In
    /// a load its worker is given up, and the load ends with what was measured. Before and after
    /// one all that is left is to say so and to go.
    fn look_after(&self, mut watch: PulseWatch, present: &ScriptLoad) {
        let name = self.program.name.clone();
        let (script, stage) = (Arc::downgrade(&present.script), Arc::clone(&present.stage));
        let given_up = present.given_up.clone();
        std::thread::spawn(move || {
            let mut limit_unloaded_ns = UNLOADED_NS_MAX;
            while !stage.is_over.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK);
                let loaded = stage.is_loaded.load(Ordering::Relaxed);
                let limit_ns = if loaded { LOADED_NS_MAX } else { limit_unloaded_ns };
                let Some(hanging) = watch.hanging(monotonic_ns(), limit_ns) else { continue };
                let HungFunction { hook, thread } = hanging;
                let seconds = limit_ns / 1_000_000_000;
                let author = thread.and_then(|thread| given_up.get(thread)).filter(|_| loaded);
                if let (Some(author), Some(script)) = (author, script.upgrade()) {
                    // Set once; and `done` may ask for what the thread has, which does not give it.
                    let _ = author.set(format!("the script failed: {}", script.give_up(hook, seconds)));
                    watch.give_up(hanging);
                    // Dropped, its states would be waited for.
                    std::mem::forget(script);
                    limit_unloaded_ns = LOADED_NS_MAX;
                } else {
                    output::note(&presentable(&format!("plimsoll: {name}: {hook}() has not ended after {seconds} s")));
                    std::process::exit(i32::from(if loaded { exit::CROSSED } else { exit::USAGE }));
                }
            }
        });
    }
}

impl AuthorFactory for ScriptRun {
    /// Makes the states anew and begins the script: who writes for each worker, and where its
    /// connections go. A script that has failed in the load before is not begun again.
    fn begin(&self, shape: &LoadShape, workers: u32) -> Result<Vec<WorkerAuthor>, Failure> {
        if let Some(error) = self.failure() {
            return Err(Failure::start(format!("the script failed: {error}")));
        }
        let is_open = matches!(shape, LoadShape::Open { .. });
        let dialect = if is_open { Dialect::Wrk2 } else { Dialect::Wrk };
        let program = Program { dialect, ..(*self.program).clone() };
        let usage = |error: ScriptError| Failure::usage(error.to_string());
        let script = Script::new(program, workers.max(1) as usize, &self.reach).map_err(usage)?;
        let watch = script.watch();
        let given_up = (0..workers.max(1)).map(|_| Arc::default()).collect();
        let present = ScriptLoad { script: Arc::new(script), stage: Arc::default(), given_up };
        self.look_after(watch, &present);
        let authors = present.script.begin().map_err(usage)?;
        if is_open && present.script.has_delay() && !self.is_delay_told.swap(true, Ordering::Relaxed) {
            output::note("warning: the script's delay() has no effect: the rate sets the times of requests");
        }
        if let Some(text) = self.announcement.lock().unwrap_or_else(PoisonError::into_inner).take() {
            output::print(&text);
        }
        let each = authors.into_iter().zip(present.script.addresses()).zip(present.given_up.clone());
        let authorship = |((author, address), given_up)| WorkerAuthor { author: Box::new(author), address, given_up };
        let each = each.map(authorship).collect();
        present.stage.is_loaded.store(true, Ordering::Relaxed);
        *self.present.lock().unwrap_or_else(PoisonError::into_inner) = Some(present);
        Ok(each)
    }

    /// Ends a load whose script has failed.
    fn goes_on(&self) -> ControlFlow<Stop> {
        match self.failure() {
            Some(error) => ControlFlow::Break(Stop::Died(format!("the script failed: {error}"))),
            None => ControlFlow::Continue(()),
        }
    }

    /// The load has ended; what is called after it may take its time.
    fn unload(&self) {
        if let Some(present) = &*self.present.lock().unwrap_or_else(PoisonError::into_inner) {
            present.stage.is_loaded.store(false, Ordering::Relaxed);
        }
    }
}

/// As a runner has it.
pub fn shared(scripted: ScriptRun) -> Arc<dyn AuthorFactory> {
    Arc::new(scripted)
}

/// The URL of a plan, with its port where that is not the scheme's own.
fn url_of(plan: &Plan) -> String {
    let origin = &plan.traffic.origin;
    let target = plan.traffic.routes.first().map_or("/", |route| &route.request.target);
    format!("{}://{}{target}", origin.scheme, target_url::host_of(origin))
}
