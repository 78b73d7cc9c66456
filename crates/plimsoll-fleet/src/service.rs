//! Runs an agent on this machine ([`serve_session`]). The agent runs loads for one coordinator with
//! this program's engine, only against permitted addresses. An agent that communicates over
//! standard input and output ([`serve_over_stdio`]) ends when its coordinator is gone.
//!
//! Not here: the protocol (`agent`), the permitted addresses (`allow`), and the bus (`nats_agent`).

use crate::agent::{Agent, AgentAction};
use crate::allow::{AllowList, is_on_this_machine};
use crate::message::{AgentLoadTask, CalibrationTask, Hello, PartTotals, ToAgent, ToCoordinator};
use crate::stdio_link::{StdioEvent, StdioLink};
use crate::task_key::TaskVerifier;
use plimsoll_engine::{LoadHelpers, prepare_with_helpers};
use plimsoll_model::failure::Failure;
use plimsoll_model::machine_facts::SelfMeasurement;
use plimsoll_model::{EarlyStopReason, Injector, Interval, Ledger, LoadEnd, LoadShape, Plan, Stripe, redact};
use plimsoll_study::capacity::{self, ConnectionLimits, FixedSettings};
use plimsoll_study::{grpc, self_measurement};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::probe::cgroup::usable_cores;
use plimsoll_sys::{process, system_text};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest wait for an event in one iteration of the session loop.
const EVENT_WAIT_MAX: Duration = Duration::from_millis(20);
/// The timeout of the test connection to each target address before a load.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The longest wait for a load to end when the session with its coordinator has ended.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// An event that an agent's session with a coordinator must handle.
pub enum AgentSessionEvent {
    /// A coordinator claims the agent; the value is the name of its run.
    Claimed(String),
    /// A message of the coordinator, with its time of arrival in ns.
    Message(u64, ToAgent),
    /// The connection has closed; if the connection ended early, the value is the reason.
    Closed(Option<String>),
    /// The spool (the agent's storage on disk) cannot store intervals; the value is the reason.
    SpoolFailed(String),
    /// The result of preparing the load with this number.
    Prepared(u64, Result<(Injector, Vec<String>), String>),
    /// The result of the calibration with this number.
    Calibrated(u32, Result<SelfMeasurement, String>),
    /// The measurements of one tick (100 ms): the number of the load, the number of the tick, and
    /// the interval.
    Tick(u64, u32, Box<Interval>),
    /// The load with this number has ended.
    Ended(u64, PartTotals),
}

/// The message transport of an agent.
pub trait AgentTransport {
    /// Sends a message to the coordinator of the session.
    fn send(&mut self, message: &ToCoordinator);

    /// Whether the agent keeps running without its coordinator and waits for another coordinator.
    fn keeps_running_without_coordinator(&self) -> bool;
}

/// The restrictions of an agent: permitted addresses, and trusted coordinators.
#[derive(Debug, Clone)]
pub struct Permissions {
    /// The addresses to which the agent may send load.
    pub allow: AllowList,
    /// The public key with which the agent verifies tasks. If the value is `None`, the agent
    /// accepts tasks of any coordinator.
    pub verifier: Option<TaskVerifier>,
}

/// The reason why a session ended.
#[derive(Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// The coordinator ended the session.
    EndedByCoordinator,
    /// No message of the coordinator arrived during the agent's lease (10 s).
    CoordinatorSilent,
    /// The connection closed; if the connection ended early, the value is the reason.
    Closed(Option<String>),
}

/// A load that is being prepared or is running in a thread.
struct LoadHandle {
    start: Sender<u64>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// Collects the facts that an agent on this machine reports about itself in its first message.
pub fn local_agent_hello() -> Hello {
    Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cores: usable_cores(),
        pid: std::process::id(),
        system: system_identifier(),
        machine: machine_fingerprint(),
    }
}

impl From<StdioEvent> for AgentSessionEvent {
    fn from(event: StdioEvent) -> AgentSessionEvent {
        match event {
            StdioEvent::Message(came_ns, message) => AgentSessionEvent::Message(came_ns, message),
            StdioEvent::Closed(why) => AgentSessionEvent::Closed(why),
        }
    }
}

impl AgentTransport for StdioLink {
    fn send(&mut self, message: &ToCoordinator) {
        StdioLink::send(self, message);
    }

    fn keeps_running_without_coordinator(&self) -> bool {
        false
    }
}

/// Serves a coordinator over standard input and output until the coordinator is gone. An error
/// gives the reason why the connection ended early.
pub fn serve_over_stdio(permissions: Permissions) -> Result<(), Failure> {
    let (sender, events) = channel();
    let mut link = StdioLink::start(sender.clone());
    match serve_session("", &events, &sender, &mut link, &Arc::new(permissions)) {
        SessionEnd::EndedByCoordinator | SessionEnd::CoordinatorSilent | SessionEnd::Closed(None) => Ok(()),
        SessionEnd::Closed(Some(why)) => Err(Failure::cannot_start(why)),
    }
}

/// Serves one coordinator until its session ends. `run` is the name of the coordinator's run, or
/// empty on a transport for a single run.
pub fn serve_session(
    run: &str,
    events: &Receiver<AgentSessionEvent>,
    sender: &Sender<AgentSessionEvent>,
    carrier: &mut dyn AgentTransport,
    permissions: &Arc<Permissions>,
) -> SessionEnd {
    let (mut agent, mut load) = (Agent::new(local_agent_hello(), monotonic_ns()), None::<LoadHandle>);
    let mut calibration = None::<JoinHandle<()>>;
    let mut unstored = None::<String>;
    let end = 'session: loop {
        let mut acts = Vec::new();
        match events.recv_timeout(EVENT_WAIT_MAX).ok() {
            Some(AgentSessionEvent::Message(came_ns, message)) => agent.handle_message(came_ns, message, &mut acts),
            Some(AgentSessionEvent::Closed(why)) => break SessionEnd::Closed(why),
            Some(AgentSessionEvent::SpoolFailed(why)) => {
                unstored = Some(why);
                load.iter().for_each(|load| load.stop.store(true, Ordering::Relaxed));
            }
            Some(AgentSessionEvent::Prepared(epoch, result)) => {
                agent.handle_preparation_result(epoch, result, &mut acts)
            }
            Some(AgentSessionEvent::Calibrated(number, result)) => {
                agent.handle_calibration_result(number, result, &mut acts)
            }
            Some(AgentSessionEvent::Tick(epoch, index, interval)) => {
                agent.send_tick(monotonic_ns(), epoch, index, *interval, &mut acts);
            }
            Some(AgentSessionEvent::Ended(epoch, mut seal)) => {
                seal.failure_reason = seal.failure_reason.or_else(|| unstored.clone());
                agent.on_load_end(monotonic_ns(), epoch, seal, &mut acts);
            }
            // A claim that arrives during a session needs no action. Such a claim only repeats the
            // claim of the current run, because the transport refuses claims of other runs.
            Some(AgentSessionEvent::Claimed(_)) | None => {}
        }
        agent.poll(monotonic_ns(), &mut acts);
        for act in acts {
            match act {
                AgentAction::Send(message) => carrier.send(&message),
                AgentAction::Prepare(task) => {
                    load = Some(LoadHandle::prepare_in_thread(run, *task, permissions, sender))
                }
                AgentAction::Calibrate(task) => calibration = Some(start_calibration(run, task, permissions, sender)),
                AgentAction::Begin { origin_ns } => {
                    // An error of sending is ignored, because sending fails only if the load has
                    // ended. The load's own thread reports the end of the load.
                    let _ = load.as_ref().map(|load| load.start.send(origin_ns));
                }
                AgentAction::End => load.iter().for_each(|load| load.stop.store(true, Ordering::Relaxed)),
                AgentAction::Leave => break 'session SessionEnd::EndedByCoordinator,
            }
        }
        if carrier.keeps_running_without_coordinator() && agent.can_end_session(monotonic_ns()) {
            break SessionEnd::CoordinatorSilent;
        }
    };
    if let Some(load) = load.filter(|_| carrier.keeps_running_without_coordinator()) {
        load.stop_and_wait();
    }
    if let Some(thread) = calibration.filter(|_| carrier.keeps_running_without_coordinator()) {
        // The calibration thread needs no stop signal, because the calibration ends by itself. The
        // result of `join` is ignored, because a panic of the thread has already printed its own
        // message.
        let _ = thread.join();
    }
    end
}

/// Returns an identifier of this machine and its namespace of process ids; empty if unknown.
/// Process ids of two agents are comparable only if both agents have the same identifier.
pub fn system_identifier() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let processes = std::fs::read_link("/proc/self/ns/pid");
    match (boot, processes) {
        (Ok(boot), Ok(processes)) => format!("{} {}", boot.trim(), processes.display()),
        _ => String::new(),
    }
}

/// Returns a fingerprint of this machine. The fingerprint changes with the machine id, the host
/// name, the processor model and the number of cores.
fn machine_fingerprint() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let (id, name) = (read("/etc/machine-id"), read("/proc/sys/kernel/hostname"));
    let text = format!("{}\n{}\n{}\n{}", id.trim(), name.trim(), process::cpu_model(), process::allowed_core_count());
    redact::short_digest(text.as_bytes())
}

/// Measures the capacity of this machine in a thread, against a reference server on the same
/// machine. The list of permitted addresses does not apply, because only the reference server gets
/// load.
fn start_calibration(
    run: &str,
    task: CalibrationTask,
    permissions: &Arc<Permissions>,
    events: &Sender<AgentSessionEvent>,
) -> JoinHandle<()> {
    let (run, permissions, events) = (run.to_owned(), Arc::clone(permissions), events.clone());
    std::thread::spawn(move || {
        let permitted =
            permissions.verifier.as_ref().map_or(Ok(()), |verifier| verifier.check_calibration(&run, &task));
        let result = permitted.and_then(|()| {
            let measured = self_measurement::measure_own_speed();
            measured.map_err(|failure| format!("the agent cannot be calibrated: {failure}"))
        });
        let _ = events.send(AgentSessionEvent::Calibrated(task.number, result));
    })
}

impl LoadHandle {
    /// Prepares a task (the agent's share of a load) in a thread. The thread runs the task once it
    /// has received the start time.
    fn prepare_in_thread(
        run: &str,
        task: AgentLoadTask,
        permissions: &Arc<Permissions>,
        events: &Sender<AgentSessionEvent>,
    ) -> LoadHandle {
        let (start, started) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (run, permissions) = (run.to_owned(), Arc::clone(permissions));
        let (events, stopped) = (events.clone(), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let epoch = task.epoch;
            let _watch = PanicReporter { epoch, events: events.clone() };
            if let Err(why) = prepare_and_run_task(&run, &task, &permissions, &started, &stopped, &events) {
                let _ = events.send(AgentSessionEvent::Prepared(epoch, Err(why)));
            }
        });
        LoadHandle { start, stop, thread }
    }

    /// Ends the load, and waits up to [`END_TIMEOUT`] so that the load does not overlap the next
    /// coordinator's load.
    fn stop_and_wait(self) {
        self.stop.store(true, Ordering::Relaxed);
        let deadline = Instant::now() + END_TIMEOUT;
        while !self.thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(EVENT_WAIT_MAX);
        }
    }
}

/// Reports the end of a load whose thread panics. Without a report of the panic, the coordinator
/// would wait for results in vain.
struct PanicReporter {
    epoch: u64,
    events: Sender<AgentSessionEvent>,
}

impl Drop for PanicReporter {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "a load thread of the agent ended unexpectedly".to_owned();
            let _ = self.events.send(AgentSessionEvent::Prepared(self.epoch, Err(why.clone())));
            let seal = PartTotals { failure_reason: Some(why), ..PartTotals::default() };
            let _ = self.events.send(AgentSessionEvent::Ended(self.epoch, seal));
        }
    }
}

/// Prepares and runs a task (the agent's share of a load). An error says why the task cannot be
/// prepared, as a sentence without the agent's name.
fn prepare_and_run_task(
    run: &str,
    task: &AgentLoadTask,
    permissions: &Permissions,
    started: &Receiver<u64>,
    stopped: &AtomicBool,
    events: &Sender<AgentSessionEvent>,
) -> Result<(), String> {
    if let Some(verifier) = &permissions.verifier {
        verifier.check_task(run, task)?;
    }
    let mut plan = Plan::from_bytes(&task.plan).map_err(|error| error.to_string())?;
    permissions.allow.check(&plan)?;
    if task.preflight {
        check_target(&plan)?;
    }
    let stripe = task.schedule_stripe().ok_or("the agent's share of the load is not valid")?;
    let (injector, fitted) = fit_plan_to_machine(&mut plan, task, stripe)?;
    let texts = grpc::message_converters(&plan).map_err(|failure: Failure| failure.to_string())?;
    let load_helpers = LoadHelpers { authors: Vec::new(), message_converters: texts };
    let flow = || match stopped.load(Ordering::Relaxed) {
        true => ControlFlow::Break(EarlyStopReason::Interrupted),
        false => ControlFlow::Continue(()),
    };
    let prepared = prepare_with_helpers(&plan, &injector, stripe, load_helpers, &mut |_| flow())
        .map_err(|error| error.to_string())?;
    let _ = events.send(AgentSessionEvent::Prepared(task.epoch, Ok((injector, fitted))));
    let origin_ns = loop {
        match started.recv_timeout(EVENT_WAIT_MAX) {
            Ok(origin_ns) => break origin_ns,
            Err(_) if stopped.load(Ordering::Relaxed) => return Ok(()),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
        }
    };
    let run = prepared.run(origin_ns, &mut |tick| {
        if tick.end_ns > 0 {
            let index = (tick.start_ns / Plan::TICK_NS) as u32;
            let _ = events.send(AgentSessionEvent::Tick(task.epoch, index, Box::new(tick.interval.clone())));
        }
        flow()
    });
    let died = match &run.ending {
        Some(LoadEnd::Stopped(EarlyStopReason::CannotContinue(why))) => Some(why.clone()),
        _ => None,
    };
    let seal = PartTotals {
        ticks: 0,
        ledger: Ledger::default(),
        window_end_ns: run.window_ns.1,
        failed_answers: run.failed_answers,
        has_no_more_requests: run.ending == Some(LoadEnd::Stopped(EarlyStopReason::RequestsExhausted)),
        failure_reason: died,
    };
    let _ = events.send(AgentSessionEvent::Ended(task.epoch, seal));
    Ok(())
}

/// Checks that every address of the target accepts connections from this machine.
fn check_target(plan: &Plan) -> Result<(), String> {
    for address in &plan.connection_plan.addresses {
        TcpStream::connect_timeout(address, CONNECT_TIMEOUT).map_err(|error| {
            format!("the agent cannot connect to {address}: {reason}", reason = system_text(&error))
        })?;
    }
    Ok(())
}

/// Adapts the plan to this machine for the agent's share of the load. Returns the load generator
/// settings (injector), and a sentence for each adaptation.
fn fit_plan_to_machine(
    plan: &mut Plan,
    task: &AgentLoadTask,
    stripe: Stripe,
) -> Result<(Injector, Vec<String>), String> {
    let is_local = plan.connection_plan.addresses.iter().all(|address| is_on_this_machine(&address.ip()));
    let cores = usable_cores();
    let usual = if is_local && plan.connection_plan.keep_alive { (cores / 2).max(1) } else { cores };
    let mut injector = Injector { workers: task.workers.unwrap_or(usual), spin: task.spin, ..Injector::default() };
    let mut part = plan.clone();
    match &mut part.load.shape {
        LoadShape::Closed { users } => {
            *users = users.scale_levels(stripe.share());
            injector = injector.with_workers_at_most(stripe.items_max_among(plan.load.shape.curve().max() as u64));
        }
        LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. } => {
            part.connection_plan.connections_max =
                stripe.items_max_among(u64::from(plan.connection_plan.connections_max)) as u32;
        }
    }
    let fixed = FixedSettings { is_thread_count_fixed: task.workers.is_some(), is_connection_count_fixed: false };
    let fitted =
        capacity::fit_to_machine(&mut part, &mut injector, fixed, is_local, &ConnectionLimits::limits_of_machine())?;
    if matches!(plan.load.shape, LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. }) {
        let whole = stripe.estimate_schedule_items(u64::from(part.connection_plan.connections_max));
        plan.connection_plan.connections_max =
            u32::try_from(whole).unwrap_or(u32::MAX).min(plan.connection_plan.connections_max);
    }
    Ok((injector, fitted))
}
