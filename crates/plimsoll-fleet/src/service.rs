//! An agent at work on this machine ([`serve`]): messages over standard input and output, loads
//! with the engine of this program. It loads what its own list permits, and ends when whoever
//! started it is gone.
//!
//! Not here: what it does with what it hears (`agent`), and which addresses it permits (`allow`).

use crate::agent::{Agent, AgentAct};
use crate::allow::{AllowList, is_on_this_machine};
use crate::frame::{GREETING, MessageReader};
use crate::message::{Hello, PartTask, Seal, ToAgent};
use plimsoll_engine::{Aids, prepare_aided};
use plimsoll_model::failure::Failure;
use plimsoll_model::{Ending, Injector, Interval, Ledger, LoadShape, Plan, Stop, Stripe};
use plimsoll_study::capacity::{self, Fixed, Limits};
use plimsoll_study::grpc;
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::{process, system_text};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How often it looks for what is due.
const LOOK: Duration = Duration::from_millis(20);
/// How long a target may take to accept the connection that is tried before a load.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);

/// What happens to an agent.
enum ServiceEvent {
    /// Its coordinator says something; when that came.
    Message(u64, ToAgent),
    /// Nobody says anything any more, and why if not because all is over.
    Closed(Option<String>),
    /// The connections of a load stand, or cannot.
    Prepared(u64, Result<(Injector, Vec<String>), String>),
    /// A tick of a load has passed.
    Tick(u64, u32, Box<Interval>),
    /// A load has ended.
    Ended(u64, Seal),
}

/// A load under way, as the loop sees it.
struct LoadHandle {
    start: Sender<u64>,
    stop: Arc<AtomicBool>,
}

/// Serves over standard input and output until the coordinator is gone. The error says why before
/// its time.
pub fn serve(allow: AllowList) -> Result<(), Failure> {
    let (sender, events) = channel();
    let events_of_input = sender.clone();
    std::thread::spawn(move || listen(&mut io::stdin(), &events_of_input));
    let (outgoing, queue) = channel::<Vec<u8>>();
    std::thread::spawn(move || write_all(&mut io::stdout(), &queue));
    let _ = outgoing.send(GREETING.to_vec());
    let hello = Hello {
        plimsoll: env!("CARGO_PKG_VERSION").to_owned(),
        cores: process::cores(),
        pid: std::process::id(),
        system: system(),
    };
    let allow = Arc::new(allow);
    let (mut agent, mut load) = (Agent::new(hello, monotonic_ns()), None::<LoadHandle>);
    loop {
        let mut acts = Vec::new();
        match events.recv_timeout(LOOK).ok() {
            Some(ServiceEvent::Message(came_ns, message)) => agent.take(came_ns, message, &mut acts),
            Some(ServiceEvent::Closed(why)) => return why.map_or(Ok(()), |why| Err(Failure::start(why))),
            Some(ServiceEvent::Prepared(epoch, result)) => agent.take_preparation(epoch, result, &mut acts),
            Some(ServiceEvent::Tick(epoch, index, interval)) => {
                agent.tick(monotonic_ns(), epoch, index, *interval, &mut acts);
            }
            Some(ServiceEvent::Ended(epoch, seal)) => agent.take_end(monotonic_ns(), epoch, seal, &mut acts),
            None => {}
        }
        agent.poll(monotonic_ns(), &mut acts);
        for act in acts {
            match act {
                AgentAct::Send(message) => {
                    let mut bytes = Vec::new();
                    message.encode(&mut bytes);
                    let _ = outgoing.send(bytes);
                }
                AgentAct::Prepare(task) => load = Some(LoadHandle::begin(*task, &allow, &sender)),
                AgentAct::Begin { origin_ns } => {
                    // A load that is gone says so by itself.
                    let _ = load.as_ref().map(|load| load.start.send(origin_ns));
                }
                AgentAct::End => load.iter().for_each(|load| load.stop.store(true, Ordering::Relaxed)),
                AgentAct::Leave => return Ok(()),
            }
        }
    }
}

/// This machine, and the processes that its numbers are of: a number means a process only where
/// this is the same. Empty: not known.
pub fn system() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let processes = std::fs::read_link("/proc/self/ns/pid");
    match (boot, processes) {
        (Ok(boot), Ok(processes)) => format!("{} {}", boot.trim(), processes.display()),
        _ => String::new(),
    }
}

/// Passes on what the coordinator says, until its end.
fn listen(input: &mut impl Read, events: &Sender<ServiceEvent>) {
    let (mut reader, mut piece) = (MessageReader::default(), vec![0; 64 << 10]);
    let why = 'stream: loop {
        match input.read(&mut piece) {
            Ok(0) => break None,
            Ok(count) => reader.push(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => break Some(system_text(&error)),
        }
        let came_ns = monotonic_ns();
        loop {
            match reader.read_next::<ToAgent>() {
                Ok(None) => break,
                Ok(Some(message)) => {
                    if events.send(ServiceEvent::Message(came_ns, message)).is_err() {
                        return;
                    }
                }
                Err(error) => break 'stream Some(format!("the coordinator's message is not valid: {error}")),
            }
        }
    };
    let _ = events.send(ServiceEvent::Closed(why));
}

/// Writes what is queued, until nobody reads: then nobody says anything either.
fn write_all(output: &mut impl Write, queue: &Receiver<Vec<u8>>) {
    while let Ok(bytes) = queue.recv()
        && output.write_all(&bytes).and_then(|()| output.flush()).is_ok()
    {}
}

impl LoadHandle {
    /// Has a thread make a task ready, and carry it out when it is told to begin.
    fn begin(task: PartTask, allow: &Arc<AllowList>, events: &Sender<ServiceEvent>) -> LoadHandle {
        let (start, started) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (allow, events, stopped) = (Arc::clone(allow), events.clone(), Arc::clone(&stop));
        std::thread::spawn(move || {
            let epoch = task.epoch;
            let _watch = LoadWatch { epoch, events: events.clone() };
            if let Err(why) = carry_out(&task, &allow, &started, &stopped, &events) {
                let _ = events.send(ServiceEvent::Prepared(epoch, Err(why)));
            }
        });
        LoadHandle { start, stop }
    }
}

/// Says of a load whose thread panics that it has ended: else the coordinator would wait for it.
struct LoadWatch {
    epoch: u64,
    events: Sender<ServiceEvent>,
}

impl Drop for LoadWatch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "one of its load threads ended unexpectedly".to_owned();
            let _ = self.events.send(ServiceEvent::Prepared(self.epoch, Err(why.clone())));
            let seal = Seal { died: Some(why), ..Seal::default() };
            let _ = self.events.send(ServiceEvent::Ended(self.epoch, seal));
        }
    }
}

/// Makes a task ready and carries it out. The error says why it cannot be made ready: a sentence
/// about "it", the agent.
fn carry_out(
    task: &PartTask,
    allow: &AllowList,
    started: &Receiver<u64>,
    stopped: &AtomicBool,
    events: &Sender<ServiceEvent>,
) -> Result<(), String> {
    let mut plan = Plan::from_bytes(&task.plan).map_err(|error| error.to_string())?;
    allow.check(&plan)?;
    if task.preflight {
        reach(&plan)?;
    }
    let (injector, fitted) = fit(&mut plan, task)?;
    let texts = grpc::texts(&plan).map_err(|failure: Failure| failure.to_string())?;
    let (aids, stripe) = (Aids { authors: Vec::new(), texts }, Stripe { index: task.index, of: task.of });
    let flow = || match stopped.load(Ordering::Relaxed) {
        true => ControlFlow::Break(Stop::Interrupted),
        false => ControlFlow::Continue(()),
    };
    let prepared = prepare_aided(&plan, &injector, stripe, aids, &mut |_| flow()).map_err(|error| error.to_string())?;
    let _ = events.send(ServiceEvent::Prepared(task.epoch, Ok((injector, fitted))));
    let origin_ns = loop {
        match started.recv_timeout(LOOK) {
            Ok(origin_ns) => break origin_ns,
            Err(_) if stopped.load(Ordering::Relaxed) => return Ok(()),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
        }
    };
    let run = prepared.run(origin_ns, &mut |tick| {
        if tick.end_ns > 0 {
            let index = (tick.start_ns / Plan::TICK_NS) as u32;
            let _ = events.send(ServiceEvent::Tick(task.epoch, index, Box::new(tick.interval.clone())));
        }
        flow()
    });
    let died = match &run.ending {
        Some(Ending::Stopped(Stop::Died(why))) => Some(why.clone()),
        _ => None,
    };
    let seal = Seal {
        ticks: 0,
        ledger: Ledger::default(),
        window_end_ns: run.window_ns.1,
        failed_answers: run.failed_answers,
        used_up: run.ending == Some(Ending::Stopped(Stop::UsedUp)),
        died,
    };
    let _ = events.send(ServiceEvent::Ended(task.epoch, seal));
    Ok(())
}

/// Whether the target takes connections from here: of several addresses each.
fn reach(plan: &Plan) -> Result<(), String> {
    for address in &plan.carriage.addresses {
        TcpStream::connect_timeout(address, CONNECT_PATIENCE)
            .map_err(|error| format!("it cannot connect to {address}: {}", system_text(&error)))?;
    }
    Ok(())
}

/// Fits the plan to this machine, as far as its part of it goes, and says who makes it.
fn fit(plan: &mut Plan, task: &PartTask) -> Result<(Injector, Vec<String>), String> {
    let is_local = plan.carriage.addresses.iter().all(|address| is_on_this_machine(&address.ip()));
    let cores = process::cores();
    let usual = if is_local && plan.carriage.keep_alive { (cores / 2).max(1) } else { cores };
    let mut injector = Injector { workers: task.workers.unwrap_or(usual), spin: task.spin, ..Injector::default() };
    let mut part = plan.clone();
    let share = |count: u64| count.div_ceil(task.of.max(1));
    match &mut part.load.shape {
        LoadShape::Closed { users } => {
            *users = users.times(1.0 / task.of as f64);
            injector = injector.at_most(share(plan.load.shape.curve().max() as u64));
        }
        LoadShape::Open { .. } | LoadShape::Given { .. } => {
            part.carriage.connections_max = share(u64::from(plan.carriage.connections_max)) as u32;
        }
    }
    let fixed = Fixed { threads: task.workers.is_some(), connections: false };
    let fitted = capacity::fit(&mut part, &mut injector, fixed, is_local, &Limits::of_machine())?;
    if matches!(plan.load.shape, LoadShape::Open { .. } | LoadShape::Given { .. }) {
        let whole = u64::from(part.carriage.connections_max).saturating_mul(task.of);
        plan.carriage.connections_max = u32::try_from(whole).unwrap_or(u32::MAX).min(plan.carriage.connections_max);
    }
    Ok((injector, fitted))
}
