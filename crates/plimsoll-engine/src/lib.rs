//! Carries a [`Plan`] out on this machine, fast and honestly. One public entry: [`drive`].
//!
//! Each worker thread owns an event loop, its connections and its recorder; workers share nothing but the wish to stop.
//! Every 100 ms each hands over what it counted; the caller sees the sum and may end the run ([`ControlFlow`]).
//!
//! This crate knows no command line, no reports or analyses, no probes and no async runtime. Requests that fail are
//! data; only what keeps a plan from being carried out at all is an [`Error`].

#![forbid(unsafe_code)]

mod addresses;
mod collect;
mod connection;
mod encode;
mod exchanges;
mod failed;
mod job;
mod net;
mod recorder;
#[cfg(test)]
mod sim;
mod source;
mod spin;
mod worker;

pub use collect::{Phase, Tick};
pub use encode::{encode_request, tls_client};

use addresses::Resolved;
use collect::{Collector, Message};
use job::{Job, Resources};
use net::real::RealNet;
use plimsoll_model::{Injector, Plan, RouteNumber, Run, Schedule, Stop, Stripe};
use plimsoll_wire::{h1, tls};

use source::Source;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use worker::Worker;

/// Why a plan could not be carried out at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request cannot be written as HTTP.
    #[error(transparent)]
    Request(#[from] h1::RequestError),
    /// The plan names no address to connect to.
    #[error("the host has no address")]
    NoAddress,
    /// TLS cannot be set up as the plan asks.
    #[error(transparent)]
    Tls(#[from] tls::ConfigError),
    /// The system refused what an event loop needs.
    #[error("the system refused an event loop: {0}")]
    System(#[from] std::io::Error),
}

/// What the first arrivals of `plan` ask: the route of each, and its request as it goes on the wire.
pub fn first_requests(plan: &Plan, count: u64) -> Result<Vec<(RouteNumber, Vec<u8>)>, Error> {
    let mut source = Source::compile(plan)?.for_worker(Stripe::ALL, None);
    let asked = (0..count).filter_map(|arrival| match source.next(arrival, None) {
        source::Next::Send(route) | source::Next::Wait(_, route) => {
            Some((route, source.route(route).request.h1().to_vec()))
        }
        source::Next::End => None,
    });
    Ok(asked.collect())
}

/// Carries out one stripe of `plan` on this machine, which is `injector`, and returns what happened.
///
/// `on_tick` is called about every 100 ms, while connections are made ready, during the load and in the grace period;
/// `Break(reason)` ends the run within a tick: what was under way counts as in flight. The ticks that workers still hand
/// over after that are shown as well, so that whoever records them holds the whole run; what is returned then changes
/// nothing.
pub fn drive(
    plan: &Plan,
    injector: &Injector,
    stripe: Stripe,
    on_tick: &mut dyn FnMut(&Tick) -> ControlFlow<Stop>,
) -> Result<Run, Error> {
    if plan.carriage.addresses.is_empty() && plan.carriage.unix.is_none() {
        return Err(Error::NoAddress);
    }
    let tls = tls_client(plan)?;
    let schedule = Arc::new(Schedule::compile(&plan.load));
    let source = Source::compile(plan)?;
    let workers = u64::from(injector.workers.max(1));
    let spare_core = u64::from(plimsoll_sys::process::cores()) > workers;
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel::<Message>();
    let mut resources = Resources { source, resolved: None, tls };
    // Dropped at the end of the load: that ends the asking.
    let mut _resolving = None;
    if let (Some(spec), None) = (&plan.carriage.resolve, &plan.carriage.unix) {
        let resolved = Arc::new(Resolved::new(&plan.carriage.addresses));
        _resolving = Some(Arc::clone(&resolved).keep_up(spec.clone())?);
        resources.resolved = Some(resolved);
    }

    let mut starts = Vec::new();
    let mut threads = Vec::new();
    for index in 0..workers {
        let job = Job::new(plan, injector, &schedule, &resources, stripe, index, spare_core);
        let (close_reset, stop) = (plan.carriage.close_reset, Arc::clone(&stop));
        let (start, started) = mpsc::channel::<u64>();
        let sender = sender.clone();
        let thread =
            std::thread::Builder::new().name(format!("worker-{index}")).stack_size(512 << 10).spawn(move || {
                plimsoll_sys::clock::set_timer_slack_ns(1);
                // Each worker may have as many connections as the limit of open files allows a process. Where the system
                // has no such tables the workers share one, and the limit with it.
                let _ = plimsoll_sys::process::own_file_table(None);
                let net = match RealNet::new(close_reset) {
                    Ok(net) => net,
                    Err(error) => {
                        let _ = sender.send(Message::Refused(error));
                        return;
                    }
                };
                let mut worker = Worker::new(net, job, stop);
                worker.prepare();
                // A closed channel means that the run was given up; there is nobody left to tell.
                if sender.send(Message::Ready).is_ok()
                    && let Ok(origin_ns) = started.recv()
                {
                    worker.run(origin_ns, &mut |message| {
                        let _ = sender.send(message);
                    });
                }
            })?;
        starts.push(start);
        threads.push(thread);
    }
    drop(sender);

    let mut collector = Collector::new(plan.clone(), injector, &schedule);
    let mut ready = 0;
    let mut refused = None;
    let mut origin_ns = 0;
    loop {
        match receiver.recv_timeout(Duration::from_nanos(Plan::TICK_NS)) {
            Ok(Message::Ready) => {
                ready += 1;
                if ready == workers {
                    // A moment ahead, so that every worker is at its loop when the schedule begins.
                    origin_ns = plimsoll_sys::clock::monotonic_ns() + 1_000_000;
                    collector.begin(origin_ns);
                    for start in &starts {
                        // A worker that is gone has said so by closing its end.
                        let _ = start.send(origin_ns);
                    }
                }
            }
            Ok(Message::Refused(error)) => {
                refused = Some(error);
                stop.store(true, Ordering::Relaxed);
                // Those who wait for the start are let go.
                starts.clear();
            }
            Ok(message) => collector.take(message, on_tick, &stop),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if origin_ns == 0 {
                    collector.idle_tick(on_tick, &stop);
                    // A worker that ends before the start has panicked: the others are let go, and its panic is passed on.
                    if threads.iter().any(|thread| thread.is_finished()) {
                        starts.clear();
                    }
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    for thread in threads {
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
    if let Some(error) = refused {
        return Err(error.into());
    }
    let mut run = collector.finish();
    if let Some(resolved) = &resources.resolved {
        run.plan.carriage.addresses = resolved.known();
    }
    Ok(run)
}
