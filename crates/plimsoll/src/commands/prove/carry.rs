//! Carries a comparison out: finds the load, then one block after the other until the analysis or the time says stop.

use super::asked::{Arm, Asked};
use crate::capacity::{self, Limits};
use crate::failure::Failure;
use crate::live::Live;
use crate::progress::Meter;
use crate::recording::Recording;
use crate::subject::{Running, Subject, prepare};
use plimsoll_analysis::Summary;
use plimsoll_analysis::prove::{self, Measure, arm_name};
use plimsoll_model::probes::Sample;
use plimsoll_model::rng::mix;
use plimsoll_model::units::{MS, SECOND};
use plimsoll_model::{Curve, LoadShape, Plan, Probes, Purpose, Series, SeriesKind};
use plimsoll_report::{Progress, prove_line};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::group::CpuClocks;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Users tried to find the peak, in turn.
const CLIMB: [u64; 6] = [1, 4, 16, 64, 256, 1024];
/// Length of each of these loads; where answers take long, so many times as long as they take, up to the longest.
const CLIMB_NS: u64 = 250 * MS;
const CLIMB_ANSWERS_IN_TURN: f64 = 5.0;
const CLIMB_NS_MAX: u64 = 4 * SECOND;
/// Goodput has grown when it is this much above the best so far. Loads this short differ by some percent by themselves:
/// a closer look would take chance for growth, and end at far more users than fill the server.
const GROWN: f64 = 1.08;
/// As few users as have this share of the peak are enough.
const ENOUGH: f64 = 0.93;
/// So many times the users that fill a server are more than enough.
const FILLING_TIMES: f64 = 8.0;
/// Load that is not measured before each load: of a fresh start, and of a target that runs already (at least; there, so
/// many answers after one another, but no more than this part of the load).
pub const WARMUP_FRESH_NS: u64 = 500 * MS;
const WARMUP_NS: u64 = 30 * MS;
const WARMUP_ANSWERS_IN_TURN: f64 = 2.0;
const WARMUP_PART: u64 = 4;
/// Share of what the slower side can do, for measures at a fixed rate.
const RATE_SHARE: f64 = 0.6;
/// A load is at least so long,
const LOAD_NS: u64 = 400 * MS;
/// as long as so many answers after one another take,
const LOAD_ANSWERS_IN_TURN: f64 = 20.0;
/// and as so many answers in all take (a p99 needs more); but so short that the budget holds so many blocks.
const LOAD_ANSWERS: f64 = 200.0;
const LOAD_ANSWERS_P99: f64 = 1000.0;
const BLOCKS_MIN: u64 = 16;
/// Where answers take so long that this cannot be had: so many in turn, and so many blocks.
const LOAD_ANSWERS_FEW: f64 = 3.0;
const BLOCKS_FEW: u64 = 6;
/// Connections made ready for a fixed rate, at most.
const READY_MAX: f64 = 2048.0;

/// What a side can do.
#[derive(Debug, Clone, Copy)]
struct Peak {
    users: u64,
    rps: f64,
    /// Mean service time at that load.
    mean_ns: f64,
}

/// The load of all blocks.
#[derive(Debug, Clone, Copy)]
struct Load {
    /// Closed: users. At a fixed rate: connections made ready.
    users: u64,
    /// Requests a second, at a fixed rate.
    rate: Option<f64>,
    length_ns: u64,
    warmup_ns: u64,
}

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
                let plan = self.block_plan(&self.asked.arms[usize::from(arm)], loads[usize::from(arm)], number as u64);
                let mut running = self.start(arm)?;
                let doing = format!("block {}: {}", number + 1, arm_name(arm));
                self.drive((Purpose::Arm(arm), arm, &doing), &plan, &mut running)?;
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
        if self.asked.ladder {
            return broken || settings.blocks_max.is_some_and(|most| blocks.len() >= most);
        }
        if let Some(standing) = prove::standing(settings, blocks) {
            let line = prove_line(elapsed_ns, settings.primary, &standing);
            if prove::looks::interim_part(standing.blocks).is_some() || number.is_multiple_of(20) {
                self.live.line(&line);
            }
            self.standing = line.trim_start().to_owned();
        }
        broken || prove::stop(settings, blocks).is_some()
    }

    /// Drives one load; the build under it must live to its end.
    fn drive(
        &mut self,
        (purpose, arm, doing): (Purpose, u8, &str),
        plan: &Plan,
        running: &mut Option<Running>,
    ) -> Result<Summary, Failure> {
        let clocks = self.clocks(arm, running.as_ref());
        let plan = &mut plan.clone();
        // The flags are the same for all sides.
        let base = &self.asked.arms[0].base;
        let adapted = capacity::fit(plan, base.fixed, base.local, &self.limits)
            .map_err(|reason| Failure::usage(format!("--concurrency: {reason}")))?;
        // The same for every load: once is enough.
        if self.recording.trials().is_empty() {
            adapted.iter().for_each(|sentence| self.live.line(sentence));
        }
        let began_s = self.recording.elapsed_ns() as f64 / 1e9;
        let total_s = Some(self.asked.budget_ns as f64 / 1e9);
        let (live, meter, why) = (&mut *self.live, &mut self.meter, &self.standing);
        meter.next_load();
        let mut cpu = CpuSeen::begin(clocks);
        let trial = self.recording.drive(purpose, plan, &mut |tick| {
            if plimsoll_sys::signal::interrupted() {
                return ControlFlow::Break("interrupted".into());
            }
            cpu.look(tick.origin_ns);
            let elapsed_s = began_s + tick.end_ns as f64 / 1e9;
            live.passing(&Progress {
                doing: doing.to_owned(),
                why: why.clone(),
                elapsed_s,
                total_s,
                ..meter.push(tick)
            });
            match running.as_mut().and_then(Running::died) {
                Some(why) => ControlFlow::Break(why),
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
        };
        subject.start(&base.plan).map(Some)
    }

    fn output_of(&self, what: &str) -> PathBuf {
        self.beside.with_extension(format!("{what}.log"))
    }

    /// The load of each side: as asked, or found by trying each. Sides that are compared have the same; the rungs of a
    /// ladder do different work, and each has as many users as fill it.
    fn find_loads(&mut self) -> Result<Vec<Load>, Failure> {
        let asked = self.asked;
        let mut peaks = Vec::new();
        for arm in 0..asked.arms.len() as u8 {
            let mut running = self.start(arm)?;
            peaks.push(self.climb(arm, &mut running)?);
            if let Some(running) = running {
                running.end()?;
            }
        }
        let slowest = peaks.iter().map(|peak| peak.rps).fold(f64::INFINITY, f64::min);
        let mean_ns = peaks.iter().map(|peak| peak.mean_ns).fold(0.0, f64::max);
        let fixed = asked.settings.primary.at_fixed_rate();
        let rate = fixed.then(|| asked.rate.unwrap_or_else(|| rounded(slowest * RATE_SHARE)));
        let most_users = peaks.iter().map(|peak| peak.users).max().unwrap_or(1);
        let users = |peak: &Peak| match rate {
            // Little's law, and as much again.
            Some(rate) => (2.0 * rate * mean_ns / 1e9 + 8.0).min(READY_MAX) as u64,
            None => asked.users.unwrap_or(if asked.ladder { peak.users } else { most_users }),
        };
        let answers = if asked.settings.primary == Measure::P99 { LOAD_ANSWERS_P99 } else { LOAD_ANSWERS };
        let wanted_s = (LOAD_ANSWERS_IN_TURN * mean_ns / 1e9).max(answers / rate.unwrap_or(slowest));
        let wanted_ns = ((wanted_s * 1e9) as u64).max(LOAD_NS).next_multiple_of(Plan::TICK_NS);
        let left_ns = asked.budget_ns.saturating_sub(self.recording.elapsed_ns());
        let most_ns = left_ns / (BLOCKS_MIN * asked.arms.len() as u64);
        let least_warmup_ns = self.warmup_ns(0.0, 0);
        let most_ns = (most_ns.saturating_sub(least_warmup_ns) / Plan::TICK_NS * Plan::TICK_NS).max(LOAD_NS);
        // A load that is over before the slowest has answered says nothing: rather fewer blocks.
        let few_ns = ((mean_ns * LOAD_ANSWERS_FEW) as u64).min(left_ns / (BLOCKS_FEW * asked.arms.len() as u64));
        let least_ns = few_ns.next_multiple_of(Plan::TICK_NS);
        let length_ns = asked.load_ns.unwrap_or(wanted_ns.min(most_ns).max(least_ns));
        let warmup_ns = self.warmup_ns(mean_ns, length_ns);
        Ok(peaks.iter().map(|peak| Load { users: users(peak), rate, length_ns, warmup_ns }).collect())
    }

    /// How long to load before what is measured, where an answer takes `mean_ns` and a load `length_ns`.
    fn warmup_ns(&self, mean_ns: f64, length_ns: u64) -> u64 {
        let fresh = self.asked.arms.iter().any(|arm| arm.command.is_some());
        let needed_ns = ((mean_ns * WARMUP_ANSWERS_IN_TURN) as u64).min(length_ns / WARMUP_PART);
        self.asked.warmup_ns.unwrap_or(if fresh { WARMUP_FRESH_NS } else { WARMUP_NS.max(needed_ns) })
    }

    /// What a side can do, and with how many users; of a number of users that was given, only that.
    fn climb(&mut self, arm: u8, running: &mut Option<Running>) -> Result<Peak, Failure> {
        let asked = self.asked;
        let given = asked.users.map(|users| vec![users]);
        let levels = given.unwrap_or_else(|| CLIMB.to_vec());
        let mut tried: Vec<Peak> = Vec::new();
        let mut flat = 0;
        let mut length_ns = CLIMB_NS;
        for users in levels {
            let doing = format!("what {} can do: {users} users", arm_name(arm));
            let summary = loop {
                let mut plan = asked.arms[usize::from(arm)].base.closed(Curve::constant(users as f64));
                plan.duration_ns = Some(length_ns);
                plan.warmup_ns = if tried.is_empty() { self.warmup_ns(0.0, 0) } else { 0 };
                plan.connections_ready = users as u32;
                let summary = self.drive((Purpose::Peak, arm, &doing), &plan, running)?;
                // A load that was over before the first answer says nothing; one that was refused does.
                let refused = summary.statuses.iter().any(|(status, _)| !plan.ok_status.contains(*status));
                if summary.throughput_rps > 0.0 || refused || length_ns >= CLIMB_NS_MAX {
                    break summary;
                }
                length_ns *= 4;
            };
            let needed_ns = (summary.service.mean_ns * CLIMB_ANSWERS_IN_TURN) as u64;
            length_ns = length_ns.max(needed_ns.next_multiple_of(Plan::TICK_NS)).min(CLIMB_NS_MAX);
            let best = tried.iter().map(|peak| peak.rps).fold(0.0, f64::max);
            if summary.throughput_rps <= 0.0 && best <= 0.0 {
                let statuses: Vec<String> = summary.statuses.iter().map(|(status, _)| status.to_string()).collect();
                let statuses =
                    if statuses.is_empty() { String::new() } else { format!(" (status {})", statuses.join(", ")) };
                return Err(Failure::start(format!(
                    "{} answers no request successfully{statuses}: check its URL, or say what counts with --ok-status",
                    arm_name(arm)
                )));
            }
            flat = if summary.throughput_rps > best * GROWN { 0 } else { flat + 1 };
            tried.push(Peak { users, rps: summary.throughput_rps, mean_ns: summary.service.mean_ns });
            // A disturbance may hide that few users were enough. Little's law knows how many fill a server that answers one
            // alone as fast as it did: more than some times as many only wait, and a slow server would still be at their
            // requests when the next load begins.
            let best = best.max(summary.throughput_rps);
            let filling = best * tried[0].mean_ns / 1e9;
            if flat >= 2 || users as f64 >= FILLING_TIMES * filling {
                break;
            }
        }
        let best = tried.iter().map(|peak| peak.rps).fold(0.0, f64::max);
        let enough = tried.into_iter().find(|peak| peak.rps >= best * ENOUGH);
        enough.ok_or_else(|| Failure::start(format!("{} was not reached", arm_name(arm))))
    }

    /// The plan of one load of a block: the same seed on every arm.
    fn block_plan(&self, arm: &Arm, load: Load, block: u64) -> Plan {
        let mut plan = match load.rate {
            None => arm.base.closed(Curve::constant(load.users as f64)),
            Some(rate) => {
                let mut plan = arm.base.plan.clone();
                plan.load = LoadShape::Open { rate: Curve::constant(rate), arrivals: arm.base.arrivals };
                plan
            }
        };
        plan.seed = mix(self.asked.settings.seed.wrapping_add(block));
        plan.duration_ns = Some(load.length_ns);
        plan.warmup_ns = load.warmup_ns;
        plan.connections_ready = (load.users as u32).min(plan.connections_max);
        // Long enough for the slowest answer that is worth waiting for, short enough for the budget.
        plan.grace_ns = plan.grace_ns.min(2 * SECOND);
        plan
    }
}

/// The CPU time of a build, over one load: as the series that every probe of a server keeps.
struct CpuSeen {
    clocks: Option<CpuClocks>,
    /// Schedule time 0 on the monotonic clock.
    origin_ns: u64,
    /// (monotonic time, CPU time), ns.
    seen: Vec<(u64, u64)>,
}

impl CpuSeen {
    fn begin(clocks: Option<CpuClocks>) -> CpuSeen {
        // Before the load: its first tick comes later than the measured part begins.
        let seen = clocks.iter().map(|clocks| (monotonic_ns(), clocks.cpu_ns())).collect();
        CpuSeen { clocks, origin_ns: 0, seen }
    }

    fn look(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
        if let Some(clocks) = &self.clocks {
            self.seen.push((monotonic_ns(), clocks.cpu_ns()));
        }
    }

    fn end(mut self) -> Option<Probes> {
        self.look(self.origin_ns);
        self.clocks.as_ref().filter(|_| self.origin_ns > 0)?;
        let mut series = Series::new(SeriesKind::Counter, "ns");
        for (at_ns, cpu_ns) in self.seen {
            let at_ns = at_ns as i64 - self.origin_ns as i64;
            series.push(Sample { at_ns, value: cpu_ns as f64 });
        }
        let mut probes = Probes::default();
        probes.series.insert("server.cpu".into(), series);
        Some(probes)
    }
}

/// A rate with two significant digits.
fn rounded(rate: f64) -> f64 {
    let unit = 10f64.powf(rate.max(1e-9).log10().floor() - 1.0);
    (rate / unit).round() * unit
}
