//! Runs a load on this machine in two steps. [`prepare`] opens the connections.
//! [`PreparedLoad::run`] starts the schedule at a given time, so that several machines begin
//! together.

use crate::Error;
use crate::addresses::{AddressSequence, ResolvedAddresses};
use crate::collect::{Collector, PartReport, TickListener};
use crate::encode::tls_client;
use crate::job::{SharedWorkerResources, WorkerJob};
use crate::net::real::RealNet;
use crate::source::RequestSource;
use crate::worker::Worker;
use plimsoll_model::grpc_message::RouteMessageConverters;
use plimsoll_model::{ConnectionPlan, EarlyStopReason, Injector, Plan, Run, Schedule, Stripe};
use plimsoll_wire::WorkerAuthor;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// A message from a worker's thread to the thread that runs the load.
#[expect(clippy::large_enum_variant, reason = "most of what is said are ticks, ten a second")]
enum WorkerMessage {
    /// The worker's connections are ready.
    Ready,
    /// The system refused to create the worker's event loop.
    Refused(std::io::Error),
    /// The worker reports about its part of the load.
    Reported(PartReport),
}

/// Helpers that workers need but a plan does not contain: authors (scripts that write requests),
/// and converters of gRPC messages.
#[derive(Debug, Default)]
pub struct LoadHelpers {
    /// The authors (scripts) that write the requests: one for each worker in order, or none.
    pub authors: Vec<WorkerAuthor>,
    /// The converters of gRPC messages by route number; empty if no route needs them.
    pub message_converters: RouteMessageConverters,
}

/// Reports a worker as lost when its thread panics. Without this report the collector would wait
/// for the dead worker, and no tick (100 ms of results) would be complete.
struct WorkerPanicGuard<'a> {
    part: usize,
    sender: &'a mpsc::Sender<WorkerMessage>,
}

impl Drop for WorkerPanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = EarlyStopReason::CannotContinue("a load thread of plimsoll ended unexpectedly".to_owned());
            let _ = self.sender.send(WorkerMessage::Reported(PartReport::Lost { part: self.part, why }));
        }
    }
}

/// A load whose connections are open and whose workers wait for the start. Dropping the
/// `PreparedLoad` cancels the load.
pub struct PreparedLoad {
    collector: Collector,
    receiver: mpsc::Receiver<WorkerMessage>,
    workers: Workers,
    /// The resolved addresses of the host name, and the sender whose drop ends the resolver thread.
    /// `None`: names are not resolved during the load.
    resolved: Option<(Arc<ResolvedAddresses>, mpsc::Sender<()>)>,
}

/// The worker threads of a load, and the channels to them.
struct Workers {
    /// For each worker, the channel that sends the start time of the schedule. A worker ends if its
    /// channel is closed before the start.
    starts: Vec<mpsc::Sender<u64>>,
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    /// For each worker with an author (a script that writes requests), the reason why the worker
    /// must be given up. The cell of a worker is empty until a reason to give up the worker exists.
    abandon_reasons: Vec<Arc<OnceLock<String>>>,
    /// The indices of abandoned workers. A worker is abandoned if a function of its script does not
    /// return. Reports of abandoned workers are ignored, and their threads are not joined.
    abandoned: Vec<usize>,
}

/// Prepares one stripe (one machine's share) of `plan`: creates the workers, and opens the
/// connections that must be open before the schedule starts. `injector` describes this machine.
///
/// `on_tick` is called about every 100 ms. If `on_tick` returns `Break(reason)`, the load ends as
/// soon as it begins.
///
/// # Errors
/// Returns the reason why the plan cannot run, or why the operating system refuses a worker.
pub fn prepare(
    plan: &Plan,
    injector: &Injector,
    stripe: Stripe,
    on_tick: &mut TickListener,
) -> Result<PreparedLoad, Error> {
    prepare_with_helpers(plan, injector, stripe, LoadHelpers::default(), on_tick)
}

/// Like [`prepare`], with helpers for the workers.
pub fn prepare_with_helpers(
    plan: &Plan,
    injector: &Injector,
    stripe: Stripe,
    LoadHelpers { authors, message_converters: texts }: LoadHelpers,
    on_tick: &mut TickListener,
) -> Result<PreparedLoad, Error> {
    assert!(
        authors.is_empty() || authors.len() as u64 == u64::from(injector.workers.max(1)),
        "there must be one author (script) for each worker"
    );
    let mut authors = authors.into_iter();
    if plan.connection_plan.addresses.is_empty() && plan.connection_plan.unix.is_none() {
        return Err(Error::NoAddress);
    }
    plimsoll_sys::process::drop_unmodified_file_pages();
    if !plan.load.shape.is_executable() {
        return Err(Error::IncompletePlan);
    }
    // If the plan draws arrivals at random from a log, the arrivals are drawn here. The record of
    // the run does not contain the drawn arrivals, but only the seed of the draw.
    let recorded = plan.record();
    let drawn = plan.with_drawn_arrivals().ok_or(Error::IncompletePlan)?;
    let plan: &Plan = &drawn;
    let tls = tls_client(plan)?;
    let messages = authors.as_slice().first().map_or(1, |first| first.author.messages_per_batch());
    let schedule = Arc::new(Schedule::compile(&plan.load.in_batches_of(messages)));
    let source = RequestSource::compile(plan)?.with_message_converters(plan, &texts)?;
    let workers = u64::from(injector.workers.max(1));
    let spare_core = u64::from(plimsoll_sys::probe::cgroup::usable_cores()) > workers;
    let (sender, receiver) = mpsc::channel::<WorkerMessage>();
    let resolved = match (&plan.connection_plan.resolve, &plan.connection_plan.unix) {
        (Some(spec), None) => {
            let resolved = Arc::new(ResolvedAddresses::new(&plan.connection_plan.addresses));
            let resolving = Arc::clone(&resolved).start_resolver(spec.clone())?;
            Some((resolved, resolving))
        }
        _ => None,
    };
    let known = resolved.as_ref().map(|(resolved, _)| Arc::clone(resolved));
    let resources = SharedWorkerResources { source, resolved: known, tls };
    let mut prepared = PreparedLoad {
        collector: Collector::new(recorded, vec![injector.clone()], workers as usize, &schedule),
        receiver,
        workers: Workers {
            starts: Vec::new(),
            threads: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            abandon_reasons: Vec::new(),
            abandoned: Vec::new(),
        },
        resolved,
    };
    for index in 0..workers {
        let mut job = WorkerJob::new(plan, injector, &schedule, &resources, stripe, index, spare_core);
        if let Some(WorkerAuthor { author, address, abandon_reason }) = authors.next() {
            prepared.workers.abandon_reasons.push(abandon_reason);
            job.source = job.source.with_author(author, schedule.is_open());
            if let Some(address) = address {
                let connection_plan = ConnectionPlan { addresses: vec![address], ..plan.connection_plan.clone() };
                job.addresses = AddressSequence::new(&connection_plan, &injector.sources, u64::from(job.number), None);
            }
        }
        let (close_reset, stop) = (plan.connection_plan.close_reset, Arc::clone(&prepared.workers.stop));
        let (start, started) = mpsc::channel::<u64>();
        let sender = sender.clone();
        let thread =
            std::thread::Builder::new().name(format!("worker-{index}")).stack_size(512 << 10).spawn(move || {
                plimsoll_sys::clock::set_timer_slack_ns(1);
                // With a separate file descriptor table, each worker may open as many files as a
                // process may. Without separate tables, all workers share one table and its limit.
                let _ = plimsoll_sys::process::unshare_file_table(None);
                let net = match RealNet::new(close_reset) {
                    Ok(net) => net,
                    Err(error) => {
                        let _ = sender.send(WorkerMessage::Refused(error));
                        return;
                    }
                };
                let mut worker = Worker::new(net, job, stop);
                worker.open_ready_connections();
                // A closed channel means that the load was cancelled.
                if sender.send(WorkerMessage::Ready).is_ok()
                    && let Ok(origin_ns) = started.recv()
                {
                    let _watch = WorkerPanicGuard { part: index as usize, sender: &sender };
                    worker.run(origin_ns, &mut |reported| {
                        let _ = sender.send(WorkerMessage::Reported(reported));
                    });
                }
            })?;
        prepared.workers.starts.push(start);
        prepared.workers.threads.push(thread);
    }
    drop(sender);
    prepared.await_workers(workers, on_tick)?;
    Ok(prepared)
}

impl PreparedLoad {
    /// Waits until the connections of all workers are ready.
    fn await_workers(&mut self, workers: u64, on_tick: &mut TickListener) -> Result<(), Error> {
        let mut ready = 0;
        while ready < workers {
            match self.receiver.recv_timeout(Duration::from_nanos(Plan::TICK_NS)) {
                Ok(WorkerMessage::Ready) => ready += 1,
                Ok(WorkerMessage::Refused(error)) => return Err(error.into()),
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    self.workers.stop_on_listener_break(self.collector.notify_during_preparation(on_tick));
                    // A worker whose thread ends before the start has panicked. `join` releases the
                    // workers that still wait, and passes on the panic.
                    if self.workers.threads.iter().any(JoinHandle::is_finished) {
                        self.workers.join();
                    }
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    self.workers.join();
                    return Err(Error::System(std::io::Error::other(
                        "a load thread of plimsoll ended before the load started",
                    )));
                }
            }
        }
        Ok(())
    }

    /// Runs the load and returns its figures. The schedule begins at `origin_ns` of the monotonic
    /// clock. `origin_ns` must be in the future, so that every worker is ready when the schedule
    /// begins.
    ///
    /// `on_tick` is called about every 100 ms, during the load and the grace period. If `on_tick`
    /// returns `Break(reason)`, the run ends within a tick, and unanswered requests count as in
    /// flight. `on_tick` also gets the ticks after a `Break`, so that a caller who stores the ticks
    /// has the whole run.
    pub fn run(mut self, origin_ns: u64, on_tick: &mut TickListener) -> Run {
        self.collector.set_schedule_start(origin_ns);
        for start in &self.workers.starts {
            // `send` fails only if the worker is lost, because a lost worker closes its channel.
            // The loss of a worker is reported separately.
            let _ = start.send(origin_ns);
        }
        loop {
            match self.receiver.recv_timeout(Duration::from_nanos(Plan::TICK_NS)) {
                Ok(WorkerMessage::Reported(reported)) if !self.workers.abandoned.contains(&reported.part()) => {
                    self.workers.stop_on_listener_break(self.collector.add_report(reported, on_tick));
                }
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                // An abandoned worker keeps the channel open, so the loop ends when all other
                // workers have ended.
                Err(mpsc::RecvTimeoutError::Timeout) if self.workers.are_only_abandoned_left() => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            for (part, why) in self.workers.abandon_stuck_workers() {
                self.workers.stop_on_listener_break(
                    self.collector
                        .add_report(PartReport::Lost { part, why: EarlyStopReason::CannotContinue(why) }, on_tick),
                );
            }
        }
        self.workers.join();
        let mut run = self.collector.finish();
        if let Some((resolved, _)) = &self.resolved {
            run.plan.connection_plan.addresses = resolved.all_addresses();
        }
        run
    }
}

impl Workers {
    /// Stops the workers if the listener returned `Break`.
    fn stop_on_listener_break(&self, flow: ControlFlow<()>) {
        if flow.is_break() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Marks each worker as abandoned that has a reason in `abandon_reasons` and is not marked yet.
    /// Returns the numbers of the newly abandoned workers and the reasons.
    fn abandon_stuck_workers(&mut self) -> Vec<(usize, String)> {
        let reason = |(part, given_up): (usize, &Arc<OnceLock<String>>)| Some((part, given_up.get()?.clone()));
        let lost = self.abandon_reasons.iter().enumerate().filter_map(reason);
        let lost: Vec<_> = lost.filter(|(part, _)| !self.abandoned.contains(part)).collect();
        self.abandoned.extend(lost.iter().map(|(part, _)| part));
        lost
    }

    /// Returns whether all workers that were not abandoned have ended. Without an abandoned worker
    /// the function returns false, because the closed report channel already shows that all workers
    /// have ended.
    fn are_only_abandoned_left(&self) -> bool {
        let is_over = |(part, thread): (usize, &JoinHandle<()>)| thread.is_finished() || self.abandoned.contains(&part);
        !self.abandoned.is_empty() && self.threads.iter().enumerate().all(is_over)
    }

    /// Removes and returns the threads of the workers that were not abandoned. The thread of an
    /// abandoned worker is left out, because it may never end.
    fn take_unabandoned_threads(&mut self) -> Vec<JoinHandle<()>> {
        let threads = self.threads.drain(..).enumerate();
        threads.filter(|(part, _)| !self.abandoned.contains(part)).map(|(_, thread)| thread).collect()
    }

    /// Closes the start channels, so that waiting workers end. Joins the threads and passes on
    /// their panics.
    fn join(&mut self) {
        self.starts.clear();
        for thread in self.take_unabandoned_threads() {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.starts.clear();
        for thread in self.take_unabandoned_threads() {
            // The load was cancelled, so the results of the workers do not matter.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{ArrivalSpacing, LoadCurve, LoadShape};
    use plimsoll_sys::clock::monotonic_ns;
    use plimsoll_wire::Author;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Checks that two machines that each send half of a plan begin together at the given time.
    /// Checks that the sum of the two machines' runs is correct in every tick and at the end.
    #[test]
    fn parts_start_together_and_their_results_are_summed() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                std::thread::spawn(move || {
                    let mut bytes = [0; 4096];
                    while stream.read(&mut bytes).is_ok_and(|count| count > 0) {
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                    }
                });
            }
        });
        let shape = LoadShape::Open { rate: LoadCurve::constant(200.0), arrivals: ArrivalSpacing::Constant };
        let mut plan = Plan::for_get_request("127.0.0.1", address.port(), vec![address], shape);
        plan.load.duration_ns = Some(300_000_000);
        plan.load.connections_ready = 4;
        // The two injectors (machines) may differ in their number of workers.
        let injectors = vec![Injector { workers: 2, ..Injector::default() }, Injector::default()];
        let parts: Vec<PreparedLoad> = (0..2)
            .map(|index| {
                let stripe = Stripe::new(index, 2);
                prepare(&plan, &injectors[index as usize], stripe, &mut |_| ControlFlow::Continue(())).expect("ready")
            })
            .collect();
        let origin_ns = monotonic_ns() + 30_000_000;
        let (sender, reports) = mpsc::channel();
        let threads: Vec<JoinHandle<Run>> = parts
            .into_iter()
            .enumerate()
            .map(|(part, prepared)| {
                let sender = sender.clone();
                std::thread::spawn(move || {
                    let run = prepared.run(origin_ns, &mut |tick| {
                        assert_eq!(tick.origin_ns, origin_ns);
                        let (index, interval) = (tick.start_ns / Plan::TICK_NS, tick.interval.clone());
                        sender.send(PartReport::Tick { part, index, interval }).expect("somebody listens");
                        ControlFlow::Continue(())
                    });
                    let (window_end_ns, failed_answers) = (run.window_ns.1, run.failed_answers.clone());
                    sender
                        .send(PartReport::Done { part, window_end_ns, failed_answers, has_no_more_requests: false })
                        .expect("somebody listens");
                    run
                })
            })
            .collect();
        drop(sender);
        let mut collector = Collector::new(plan.record(), injectors, 2, &Schedule::compile(&plan.load));
        collector.set_schedule_start(origin_ns);
        let mut ends_ns = Vec::new();
        for reported in reports {
            let flow = collector.add_report(reported, &mut |tick| {
                ends_ns.push(tick.end_ns);
                ControlFlow::Continue(())
            });
            assert!(flow.is_continue());
        }
        assert!(ends_ns.len() >= 3 && ends_ns.is_sorted(), "each tick once, and in order: {ends_ns:?}");
        let mut summed = collector.finish();
        let mut runs = threads.into_iter().map(|thread| thread.join().expect("a run"));
        let (mut whole, other) = (runs.next().expect("one"), runs.next().expect("another"));
        assert_eq!(whole.totals().routes_sum.ledger.scheduled, 30);
        whole.merge(&other);
        let ledger = whole.totals().routes_sum.ledger;
        assert_eq!((ledger.scheduled, ledger.succeeded, ledger.unsent), (60, 60, 0), "{ledger:?}");
        let numbers: Vec<u32> = whole.totals().load.workers.iter().map(|time| time.worker).collect();
        assert_eq!(numbers, [0, 1, 2], "each worker of all machines has a number of its own");
        summed.injectors.sort_unstable();
        assert_eq!(summed, whole);
    }

    #[test]
    fn a_worker_panic_is_reported() {
        let (sender, receiver) = mpsc::channel();
        for panics in [true, false] {
            let sender = sender.clone();
            let thread = std::thread::spawn(move || {
                let _watch = WorkerPanicGuard { part: 1, sender: &sender };
                assert!(!panics, "as a worker might");
            });
            assert_eq!(thread.join().is_err(), panics);
        }
        drop(sender);
        let told: Vec<WorkerMessage> = receiver.iter().collect();
        assert!(matches!(
            told[..],
            [WorkerMessage::Reported(PartReport::Lost { part: 1, why: EarlyStopReason::CannotContinue(_) })]
        ));
    }

    /// An author (a writer of requests) that blocks until the test releases it.
    #[derive(Debug)]
    struct BlockedRequestScript(mpsc::Receiver<()>);

    impl Author for BlockedRequestScript {
        fn writes_every_batch(&self) -> bool {
            true
        }

        fn has_delays(&self) -> bool {
            false
        }

        fn wants_responses(&self) -> bool {
            false
        }

        fn messages_per_batch(&self) -> u32 {
            1
        }

        fn write(&mut self, _: &mut plimsoll_wire::Batch) -> Result<(), plimsoll_wire::AuthorStopReason> {
            // After the test has released the author, the author has no request to write.
            let _ = self.0.recv();
            Err(plimsoll_wire::AuthorStopReason::Requested)
        }

        fn delay_ns(&mut self) -> Result<u64, plimsoll_wire::AuthorStopReason> {
            Ok(0)
        }

        fn receive_response(
            &mut self,
            _: &plimsoll_wire::AuthorResponse,
        ) -> Result<(), plimsoll_wire::AuthorStopReason> {
            Ok(())
        }
    }

    #[test]
    fn a_worker_with_a_blocked_script_is_abandoned() {
        let shape = LoadShape::Closed { users: LoadCurve::constant(2.0) };
        let plan = Plan::for_get_request("127.0.0.1", 9, vec![([127, 0, 0, 1], 9).into()], shape);
        let injector = Injector { workers: 2, ..Injector::default() };
        let given_up: Arc<OnceLock<String>> = Arc::default();
        let (free, freed) = mpsc::channel();
        let (gone, stuck) = mpsc::channel();
        drop(gone);
        let authors = [(freed, Arc::clone(&given_up)), (stuck, Arc::default())].map(|(stuck, abandon_reason)| {
            WorkerAuthor { author: Box::new(BlockedRequestScript(stuck)), address: None, abandon_reason }
        });
        let mut on_tick = |_: &crate::Tick| ControlFlow::Continue(());
        let load_helpers = LoadHelpers { authors: authors.into(), ..LoadHelpers::default() };
        let prepared =
            prepare_with_helpers(&plan, &injector, Stripe::WHOLE_SCHEDULE, load_helpers, &mut on_tick).expect("ready");
        given_up.set("write() has not ended".to_owned()).expect("the first");
        let run = prepared.run(monotonic_ns(), &mut on_tick);
        let why = EarlyStopReason::CannotContinue("write() has not ended".to_owned());
        assert_eq!(run.ending, Some(plimsoll_model::LoadEnd::Stopped(why)));
        drop(free);
    }

    #[test]
    fn a_cancelled_load_ends() {
        let plan = Plan::for_get_request(
            "127.0.0.1",
            9,
            vec![([127, 0, 0, 1], 9).into()],
            LoadShape::Closed { users: LoadCurve::constant(2.0) },
        );
        let prepared = prepare(&plan, &Injector::default(), Stripe::WHOLE_SCHEDULE, &mut |_| ControlFlow::Continue(()))
            .expect("ready");
        let stop = Arc::clone(&prepared.workers.stop);
        drop(prepared);
        assert_eq!((stop.load(Ordering::Relaxed), Arc::strong_count(&stop)), (true, 1));
    }
}
