//! Loads from this machine on a target that runs already, watched by the probes.

use super::{Driven, Glance, OnTick, Runner, Unready};
use crate::capacity::{self, Limits};
use crate::failure::Failure;
use crate::probes::{LiveServer, Watcher};
use crate::resolve::Base;
use plimsoll_analysis::study::TrialPlan;
use plimsoll_engine::Tick;
use plimsoll_model::{Injector, Plan, Probes, Run, Stop, Stripe};
use plimsoll_sys::clock::monotonic_ns;
use std::ops::ControlFlow;
use std::time::Instant;

/// This machine.
pub struct ThisMachine {
    began: Instant,
    watcher: Option<Watcher>,
    /// What all loads share, and the load that is ready.
    plan: Plan,
    injector: Injector,
    fitting: Option<Fitting>,
}

/// How loads are fitted to the machine.
pub struct Fitting {
    /// Where they go, and what of it is the user's own word.
    pub base: Base,
    /// What the machine can hold.
    pub limits: Limits,
}

impl Fitting {
    /// Fits a plan, and says who makes its load; the error says why the machine cannot hold it.
    pub fn fit(&self, plan: &mut Plan, injector: &mut Injector) -> Result<Vec<String>, String> {
        *injector = self.base.injector_for(&plan.load);
        capacity::fit(plan, injector, self.base.fixed, self.base.local, &self.limits)
    }
}

impl ThisMachine {
    /// The experiment begins. `fitting`: how each load is fitted, and who makes it, where that was not decided before.
    pub fn new(watcher: Option<Watcher>, plan: Plan, injector: Injector, fitting: Option<Fitting>) -> ThisMachine {
        ThisMachine { began: Instant::now(), watcher, plan, injector, fitting }
    }
}

impl Runner for ThisMachine {
    fn elapsed_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn prepare(&mut self, trial: &mut TrialPlan) -> Result<Vec<String>, Unready> {
        self.plan.load.clone_from(&trial.plan.load);
        let fitted = match &self.fitting {
            Some(fitting) => fitting.fit(&mut self.plan, &mut self.injector).map_err(Unready::Unheld)?,
            None => Vec::new(),
        };
        trial.plan = self.plan.record();
        Ok(fitted)
    }

    fn injectors(&self) -> Vec<Injector> {
        vec![self.injector.clone()]
    }

    fn run(&mut self, on_tick: &mut OnTick) -> Result<Driven, Failure> {
        let mut seen = LoadProbes::begin(self.watcher.as_ref());
        let live = self.watcher.as_ref().map_or_else(LiveServer::unseen, Watcher::live);
        let (run, start_ns) = drive(self.began, &self.plan, &self.injector, &mut |tick| {
            let part = if tick.end_ns > 0 { seen.tick(tick) } else { None };
            on_tick(tick, Glance { part, server_cores: live.cores() })
        })?;
        let seen_last = seen.end();
        Ok(Driven { run: Run { probes: seen.whole, ..run }, start_ns, seen_last })
    }

    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Carries a plan out from this machine; gives what happened, and when its schedule began, ns since `began`: after connections
/// were made ready, at the first tick that is not preparation.
pub(super) fn drive(
    began: Instant,
    plan: &Plan,
    injector: &Injector,
    on_tick: &mut dyn FnMut(&Tick) -> ControlFlow<Stop>,
) -> Result<(Run, u64), Failure> {
    let mut start_ns = began.elapsed().as_nanos() as u64;
    let mut started = false;
    let run = plimsoll_engine::drive(plan, injector, Stripe::ALL, &mut |tick| {
        if tick.end_ns > 0 && !std::mem::replace(&mut started, true) {
            let since_origin_ns = monotonic_ns().saturating_sub(tick.origin_ns);
            start_ns = (began.elapsed().as_nanos() as u64).saturating_sub(since_origin_ns);
        }
        on_tick(tick)
    })?;
    Ok((run, start_ns))
}

/// What the probes see during one load, moved to its clock and kept in parts.
struct LoadProbes<'a> {
    watcher: Option<&'a Watcher>,
    /// Schedule time 0 on the monotonic clock, once it is known.
    origin_ns: Option<i64>,
    taken_ns: u64,
    whole: Probes,
}

impl<'a> LoadProbes<'a> {
    /// How often a part goes to the run file: what a crash can lose.
    const PART_NS: u64 = 2_000_000_000;

    fn begin(watcher: Option<&'a Watcher>) -> LoadProbes<'a> {
        if let Some(watcher) = watcher {
            // What was seen between loads belongs to none.
            watcher.take();
            watcher.sample_now();
        }
        LoadProbes { watcher, origin_ns: None, taken_ns: 0, whole: Probes::default() }
    }

    /// A tick has passed; gives the part to be written, if it is time for one.
    fn tick(&mut self, tick: &Tick) -> Option<Probes> {
        self.origin_ns = Some(tick.origin_ns as i64);
        if tick.end_ns < self.taken_ns + Self::PART_NS {
            return None;
        }
        self.taken_ns = tick.end_ns;
        self.take()
    }

    /// The load is over; gives the last part.
    fn end(&mut self) -> Option<Probes> {
        self.watcher?.sample_now();
        self.take()
    }

    fn take(&mut self) -> Option<Probes> {
        let part = self.watcher?.take().shifted(-self.origin_ns?);
        self.whole.merge(&part);
        Some(part)
    }
}
