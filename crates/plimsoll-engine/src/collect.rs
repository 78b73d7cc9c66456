//! Workers' ticks become one run: the same tick of all workers is summed, shown to the caller and kept.

use plimsoll_model::failed_answer::merge_first;
use plimsoll_model::{Ending, FailedAnswer, Injector, Interval, Plan, Run, Schedule, Stop};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Connections are made ready; the schedule has not begun.
    Preparing,
    /// Load that is not measured.
    Warmup,
    /// The measured window.
    Measured,
    /// The schedule is over; answers under way are awaited.
    Grace,
}

/// One look at a running load.
#[derive(Debug)]
pub struct Tick<'a> {
    /// What the run is doing.
    pub phase: Phase,
    /// Schedule time at the tick's start, in ns.
    pub start_ns: u64,
    /// Schedule time at the tick's end, in ns.
    pub end_ns: u64,
    /// Schedule time 0 on the monotonic clock, in ns; 0 while it is not yet known.
    pub origin_ns: u64,
    /// What happened during the tick, over all workers.
    pub interval: &'a Interval,
}

/// What a worker tells the collector.
#[derive(Debug)]
pub enum Message {
    /// Its connections are made ready.
    Ready,
    /// The system refused it an event loop.
    Refused(std::io::Error),
    /// What happened in tick number `index`.
    Tick { worker: usize, index: u64, interval: Interval },
    /// It has finished: what happened since its last tick, and where its part of the measured window ended (schedule
    /// time), and the first failed answers that it saw.
    Done { worker: usize, index: u64, interval: Interval, window_end_ns: u64, failed_answers: Vec<FailedAnswer> },
}

/// Sums the ticks of all workers.
pub struct Collector {
    run: Run,
    measured_from_ns: u64,
    schedule_end_ns: u64,
    /// How many ticks each worker has delivered; all of them (u64::MAX) once it is done.
    delivered: Vec<u64>,
    /// Sums of the ticks that some worker has not delivered yet.
    open: BTreeMap<u64, Interval>,
    stopped: Option<Stop>,
    window_end_ns: u64,
    origin_ns: u64,
}

impl Collector {
    pub fn new(plan: Plan, injector: &Injector, schedule: &Schedule) -> Collector {
        Collector {
            run: Run { injectors: vec![injector.clone()], ..Run::new(plan) },
            measured_from_ns: schedule.measured_from_ns(),
            schedule_end_ns: schedule.end_ns().unwrap_or(u64::MAX),
            delivered: vec![0; injector.workers.max(1) as usize],
            open: BTreeMap::new(),
            stopped: None,
            window_end_ns: 0,
            origin_ns: 0,
        }
    }

    /// The schedule begins at `origin_ns` of the monotonic clock.
    pub fn begin(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
    }

    /// Lets the caller look while nothing is measured yet.
    pub fn idle_tick(&mut self, on_tick: &mut dyn FnMut(&Tick) -> ControlFlow<Stop>, stop: &AtomicBool) {
        let interval = Interval::default();
        let tick = Tick { phase: Phase::Preparing, start_ns: 0, end_ns: 0, origin_ns: 0, interval: &interval };
        self.look(&tick, on_tick, stop);
    }

    /// Takes a worker's message and shows every tick that is now complete.
    pub fn take(&mut self, message: Message, on_tick: &mut dyn FnMut(&Tick) -> ControlFlow<Stop>, stop: &AtomicBool) {
        let (index, interval) = match message {
            Message::Ready | Message::Refused(_) => return,
            Message::Tick { worker, index, interval } => {
                self.delivered[worker] = index + 1;
                (index, interval)
            }
            Message::Done { worker, index, interval, window_end_ns, failed_answers } => {
                merge_first(&mut self.run.failed_answers, &failed_answers);
                self.delivered[worker] = u64::MAX;
                self.window_end_ns = self.window_end_ns.max(window_end_ns);
                (index, interval)
            }
        };
        self.open.entry(index).or_default().merge_beside(&interval);
        let complete = self.delivered.iter().copied().min().unwrap_or(0);
        while let Some(first) = self.open.first_entry()
            && *first.key() < complete
        {
            let (index, interval) = first.remove_entry();
            let start_ns = index * Plan::TICK_NS;
            let phase = match start_ns {
                t if t >= self.schedule_end_ns => Phase::Grace,
                t if t < self.measured_from_ns => Phase::Warmup,
                _ => Phase::Measured,
            };
            self.run.push(start_ns, &interval);
            let (end_ns, origin_ns) = (start_ns + Plan::TICK_NS, self.origin_ns);
            self.look(&Tick { phase, start_ns, end_ns, origin_ns, interval: &interval }, on_tick, stop);
        }
    }

    /// Every tick is shown, also what comes after the run was ended: it belongs to the record. The first reason counts.
    fn look(&mut self, tick: &Tick, on_tick: &mut dyn FnMut(&Tick) -> ControlFlow<Stop>, stop: &AtomicBool) {
        if let ControlFlow::Break(reason) = on_tick(tick)
            && self.stopped.is_none()
        {
            self.stopped = Some(reason);
            stop.store(true, Ordering::Relaxed);
        }
    }

    /// The whole run, when every worker is done.
    pub fn finish(mut self) -> Run {
        debug_assert!(self.open.is_empty(), "every worker has said that it is done");
        self.run.window_ns = (self.measured_from_ns.min(self.window_end_ns), self.window_end_ns);
        self.run.ending = Some(match self.stopped {
            Some(reason) => Ending::Stopped(reason),
            None => Ending::Finished,
        });
        self.run
    }
}
