//! Carries a comparison out: one block after the other, until the analysis or the time says stop. Not here: which load.

use super::asked::{Arm, Asked};
use crate::capacity::{self, Limits};
use crate::failure::Failure;
use crate::live::Live;
use crate::probes::MachineSeen;
use crate::progress::Meter;
use crate::recording::Recording;
use crate::subject::{Running, Subject, prepare};
use plimsoll_analysis::Summary;
use plimsoll_analysis::prove::{self, arm_name};
use plimsoll_model::rng::mix;
use plimsoll_model::{Plan, Probes, Purpose, Stop, Tag};
use plimsoll_report::{
    Progress, ladder_heading, ladder_line, ladder_standing, prove_heading, prove_line, prove_standing,
};
use plimsoll_sys::group::CpuClocks;
use std::cell::Cell;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Before so many blocks nobody can say how many it takes.
const ENOUGH_FROM: usize = 14;

/// A comparison under way.
pub struct Comparison<'a> {
    pub asked: &'a Asked,
    pub recording: &'a mut Recording,
    pub live: &'a mut Live,
    /// Where output of builds goes: beside the run file.
    pub beside: PathBuf,
    /// What the machine can hold.
    pub limits: Limits,
    /// The blocks so far.
    pub blocks: prove::Blocks,
    /// The rates so far, and how the comparison stands, for the eye.
    pub meter: Meter,
    pub standing: String,
    /// What of the load was fitted to the machine.
    pub setup: Vec<String>,
    /// Whether any build was started already.
    pub builds_started: Cell<bool>,
}

impl Comparison<'_> {
    /// Measures until something says stop. `Some`: why it broke off, beyond what the recording tells.
    pub fn carry_out(&mut self) -> Option<String> {
        match self.all_blocks() {
            Ok(()) => None,
            Err(_) if plimsoll_sys::signal::interrupted() => Some("interrupted".into()),
            Err(failure) => Some(failure.to_string()),
        }
    }

    fn all_blocks(&mut self) -> Result<(), Failure> {
        let loads = self.find_loads()?;
        let arms = self.asked.arms.len();
        let began_ns = self.recording.elapsed_ns();
        for number in 0.. {
            let elapsed_ns = self.recording.elapsed_ns();
            let block_ns = (elapsed_ns - began_ns) / (number as u64).max(1);
            if number > 0 && elapsed_ns + block_ns * 21 / 20 > self.asked.budget_ns {
                return Ok(());
            }
            if let Some(command) = &self.asked.before_block {
                prepare("--before-block", command, &self.output_of("before-block"))?;
            }
            for arm in prove::order(self.asked.settings.seed, number, arms) {
                // The same seed on every arm.
                let seed = mix(self.asked.settings.seed.wrapping_add(number as u64));
                let plan = loads[usize::from(arm)].plan(&self.asked.arms[usize::from(arm)], seed);
                let mut running = self.start(arm)?;
                let doing = format!("block {}: {}", number + 1, arm_name(arm));
                let tag = self.asked.tag(Purpose::Block, arm, number);
                self.drive((tag, arm, &doing), &plan, &mut running)?;
                if let Some(running) = running {
                    running.end()?;
                }
            }
            if self.is_over(number + 1) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether the blocks so far are enough; shows where they stand.
    fn is_over(&mut self, number: usize) -> bool {
        let settings = &self.asked.settings;
        self.blocks.read(self.recording.trials());
        let (blocks, broken) = (&self.blocks.whole, self.blocks.broken.is_some());
        let elapsed_ns = self.recording.elapsed_ns();
        let (shown, counting, over) = if self.asked.ladder {
            let ladder = prove::ladder(blocks, self.asked.arms.len(), None);
            let over = settings.blocks_max.is_some_and(|most| ladder.blocks >= most);
            let line = ladder_line(elapsed_ns, &ladder, self.live.columns());
            (Some((ladder_heading(), line, ladder_standing(&ladder))), ladder.blocks, over)
        } else {
            let standing = prove::standing(settings, blocks);
            let enough = prove::budget_enough_ns(settings, blocks, self.recording.trials())
                .filter(|ns| blocks.len() >= ENOUGH_FROM && *ns > self.asked.budget_ns);
            let shown = standing.map(|standing| {
                let line = prove_line(elapsed_ns, settings, &standing);
                (prove_heading(), line, prove_standing(settings, &standing, enough))
            });
            (shown, standing.map_or(0, |standing| standing.blocks), prove::stop(settings, blocks).is_some())
        };
        if let Some((heading, line, standing)) = shown {
            if prove::looks::interim_part(counting).is_some() || number.is_multiple_of(20) {
                self.live.row(&heading, &line);
            }
            self.standing = standing;
        }
        broken || over
    }

    /// Drives one load; the build under it must live to its end.
    pub fn drive(
        &mut self,
        (tag, arm, doing): (Tag, u8, &str),
        plan: &Plan,
        running: &mut Option<Running>,
    ) -> Result<Summary, Failure> {
        let clocks = self.clocks(arm, running.as_ref());
        let plan = &mut plan.clone();
        // The flags are the same for all sides.
        let base = &self.asked.arms[0].base;
        let mut injector = base.injector_for(&plan.load);
        let adapted = capacity::fit(plan, &mut injector, base.fixed, base.local, &self.limits)
            .map_err(|reason| Failure::usage(format!("--concurrency: {reason}")))?;
        // The same for every load: once is enough.
        if self.recording.trials().is_empty() {
            self.setup = adapted;
        }
        let began_s = self.recording.elapsed_ns() as f64 / 1e9;
        let total_s = Some(self.asked.budget_ns as f64 / 1e9);
        let (live, meter, why) = (&mut *self.live, &mut self.meter, &self.standing);
        meter.next_load();
        let mut cpu = CpuSeen::begin(clocks, base.local, plan.carriage.addresses.first().map(SocketAddr::port));
        let trial = self.recording.drive(tag, plan, &injector, &mut |tick| {
            if plimsoll_sys::signal::interrupted() {
                return ControlFlow::Break(Stop::Interrupted);
            }
            cpu.look(tick.origin_ns, false);
            let elapsed_s = began_s + tick.end_ns as f64 / 1e9;
            live.passing(&Progress {
                doing: doing.to_owned(),
                why: why.clone(),
                elapsed_s,
                total_s,
                ..meter.push(tick)
            });
            match running.as_mut().and_then(Running::died) {
                Some(why) => ControlFlow::Break(Stop::Died(why)),
                None => ControlFlow::Continue(()),
            }
        })?;
        let summary = Summary::of(&trial.run);
        if let Some(probes) = cpu.end() {
            self.recording.add_seen(probes);
        }
        if plimsoll_sys::signal::interrupted() {
            return Err(Failure::start("interrupted"));
        }
        match running.as_mut().and_then(Running::died) {
            Some(why) => Err(Failure::start(why)),
            None => Ok(summary),
        }
    }

    /// The clocks of the processes that an arm has now; `None` where they are not on this machine, or not to be seen.
    fn clocks(&self, arm: u8, running: Option<&Running>) -> Option<CpuClocks> {
        if let Some(running) = running {
            return Some(running.cpu_clocks());
        }
        let finder = self.asked.arms[usize::from(arm)].finder.as_ref()?;
        let found = finder.first().as_ref().ok()?;
        let clocks = Some(CpuClocks::below(&found.roots)).filter(|clocks| !clocks.is_empty());
        // A server that was restarted has other processes.
        let again = || finder.look_again().ok().map(|found| CpuClocks::below(&found.roots));
        clocks.or_else(again).filter(|clocks| !clocks.is_empty())
    }

    /// Starts the build of an arm, if it is to be started.
    pub fn start(&self, arm: u8) -> Result<Option<Running>, Failure> {
        let Arm { base, command, .. } = &self.asked.arms[usize::from(arm)];
        let Some(command) = command else { return Ok(None) };
        let name = arm_name(arm);
        let subject = Subject {
            name,
            command: command.clone(),
            output: self.output_of(&name.to_ascii_lowercase().to_string()),
            patience: self.asked.start_patience,
            after_another: self.builds_started.replace(true),
        };
        subject.start(base).map(Some)
    }

    fn output_of(&self, what: &str) -> PathBuf {
        self.beside.with_extension(format!("{what}.log"))
    }
}

/// The CPU time of a build, of the machine and of plimsoll over one load: as the series that every probe keeps.
struct CpuSeen {
    clocks: Option<CpuClocks>,
    /// Schedule time 0 on the monotonic clock.
    origin_ns: u64,
    machine: MachineSeen,
}

impl CpuSeen {
    fn begin(clocks: Option<CpuClocks>, local: bool, port: Option<u16>) -> CpuSeen {
        let mut seen = CpuSeen { clocks, origin_ns: 0, machine: MachineSeen::new(local, port) };
        // Before the load: its first tick comes later than the measured part begins.
        seen.look(0, true);
        seen
    }

    fn look(&mut self, origin_ns: u64, edge: bool) {
        self.origin_ns = origin_ns;
        self.machine.look(edge, self.clocks.as_ref());
    }

    fn end(mut self) -> Option<Probes> {
        self.look(self.origin_ns, true);
        (self.origin_ns > 0).then(|| self.machine.take().shifted(-(self.origin_ns as i64)))
    }
}
