//! Executes loads on the targets of a comparison in turn ([`ComparisonRunner`]). Each target is one
//! side (arm) of the comparison. Targets are running servers, or builds that plimsoll starts and
//! ends for each load.
//!
//! Not here: starting and ending a build (`subject`), and the order of the sides
//! (`plimsoll-analysis`).

use super::load_probes::LoadProbes;
use super::machine::{LoadFitter, to_monotonic_ns};
use super::{LoadObstacle, LoadOutcome, RemoteLoad, Runner, START_AHEAD_NS, TickCallback, TickProbes, load_helpers};
use crate::base::ResolvedTarget;
use crate::setup_teardown::TeardownGuard;
use crate::subject::{BuildUnderTest, RunningBuild, run_user_command};
use plimsoll_analysis::study::TrialPlan;
use plimsoll_engine::{PreparedLoad, Tick, prepare_with_helpers};
use plimsoll_model::failure::Failure;
use plimsoll_model::{
    ArmIndex, EarlyStopReason, HttpChoice, Injector, LoadEnd, LoadPurpose, LoadTag, Plan, Probes, Run, Stripe,
};
use plimsoll_probe::{MachineRecorder, ReadingSource, ServerFinder};
use plimsoll_sys::group::CpuClocks;
use plimsoll_wire::AuthorFactory;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One of several compared targets.
pub struct ComparisonTarget {
    /// The resolved address and settings of the target.
    pub base: ResolvedTarget,
    /// The command that starts the target; `None` if the server runs already.
    pub command: Option<String>,
    /// Finds the server's processes; `None` for a build that plimsoll starts.
    pub finder: Option<ServerFinder>,
    /// The script that writes the requests; `None` if the plan contains them.
    pub authoring: Option<Arc<dyn AuthorFactory>>,
}

/// A runner that executes loads on the targets of a comparison in turn.
pub struct ComparisonRunner<'a> {
    targets: &'a [ComparisonTarget],
    fitting: LoadFitter,
    /// The plan of the load that was prepared last.
    plan: Plan,
    /// The generator settings of the load that was prepared last.
    injector: Injector,
    /// The longest time from the start of a build to its first response.
    start_patience: Duration,
    /// The user's shell command that runs before every block (a group of loads, one on each side).
    before_block: Option<&'a str>,
    /// The path of the run file. The log files with the output of builds are in the folder of the
    /// run file, and are named after the run file.
    run_file_path: PathBuf,
    began: Instant,
    /// The tag of the current load (its purpose, side and turn), and the build that was started for
    /// the load. The build is `None` if the target is a server that runs already.
    current_load: Option<(LoadTag, Option<RunningBuild>)>,
    /// Whether a build was already started in this comparison, so that the address may still be in
    /// use for a while.
    any_started: bool,
    /// The protocol (HTTP/1.1 or HTTP/2) of the first response of the first build. If the plan
    /// permits both protocols, all loads use this protocol.
    negotiated_http: Option<HttpChoice>,
    /// The number of the last block for which the command `before_block` has run.
    block: Option<u32>,
    /// The other machines (a fleet) that send the whole load in place of this machine.
    fleet: Option<Box<dyn RemoteLoad>>,
    /// For each target, a source of measurements (readings) from another machine. The list is empty
    /// if the targets run on this machine.
    readings: Vec<Box<dyn ReadingSource>>,
    /// Sends the cleanup requests of the current load when the load ends; `None` without setup and
    /// cleanup.
    teardown: Option<TeardownGuard>,
    /// Failed cleanup requests of earlier loads, which are reported as warnings.
    warnings: Vec<String>,
    /// The load whose connections are open and which has not started.
    ready: Option<PreparedLoad>,
    /// Collects the measurements (readings) of the current load's target.
    target_readings: Option<TargetReadings>,
}

impl<'a> ComparisonRunner<'a> {
    /// Creates the runner, and sets time 0 of the experiment to now.
    pub fn new(
        targets: &'a [ComparisonTarget],
        fitting: LoadFitter,
        start_patience: Duration,
        before_block: Option<&'a str>,
        run_file_path: PathBuf,
    ) -> ComparisonRunner<'a> {
        let (began, plan, injector) = (Instant::now(), fitting.base.plan.clone(), fitting.base.injector.clone());
        let (current_load, any_started, negotiated_http, block) = (None, false, None, None);
        ComparisonRunner {
            targets,
            fitting,
            plan,
            injector,
            start_patience,
            before_block,
            run_file_path,
            began,
            current_load,
            any_started,
            negotiated_http,
            block,
            fleet: None,
            readings: Vec::new(),
            teardown: None,
            warnings: Vec::new(),
            ready: None,
            target_readings: None,
        }
    }

    /// Sets the fleet, that is, the machines that send the load in place of this machine. With
    /// `None`, this machine sends the load.
    pub fn with_fleet(self, fleet: Option<Box<dyn RemoteLoad>>) -> ComparisonRunner<'a> {
        ComparisonRunner { fleet, ..self }
    }

    /// Sets, for each target, a source of measurements from another machine, if there are such
    /// sources.
    pub fn with_readings(self, readings: Vec<Box<dyn ReadingSource>>) -> ComparisonRunner<'a> {
        ComparisonRunner { readings, ..self }
    }

    /// Returns the source of measurements from another machine for the current target, if there is
    /// one.
    fn current_reading_source(&self) -> Option<&dyn ReadingSource> {
        let (tag, _) = self.current_load.as_ref()?;
        self.readings.get(tag.arm.map_or(0, ArmIndex::index)).map(|source| &**source)
    }

    fn current_target(&self) -> Option<&'a ComparisonTarget> {
        let (tag, _) = self.current_load.as_ref()?;
        self.targets.get(tag.arm.map_or(0, ArmIndex::index))
    }

    /// Makes the target of a load the current target. If targets are builds, this function ends the
    /// previous build and starts the build of the new target.
    fn switch_target(&mut self, tag: LoadTag) -> Result<(), Failure> {
        if self.current_load.as_ref().is_some_and(|(on, _)| *on == tag) {
            return Ok(());
        }
        self.finish()?;
        if tag.purpose == LoadPurpose::Block && self.block != Some(tag.turn) {
            self.block = Some(tag.turn);
            if let Some(command) = self.before_block {
                run_user_command("--before-block", command, &self.build_log_path("before-block"))?;
            }
        }
        self.current_load = Some((tag, None));
        let (Some(target), Some(arm)) = (self.current_target(), tag.arm) else { return Ok(()) };
        if let Some(command) = &target.command {
            let name = arm.letter();
            let subject = BuildUnderTest {
                name,
                command: command.clone(),
                output: self.build_log_path(&name.to_ascii_lowercase().to_string()),
                patience: self.start_patience,
                after_another: std::mem::replace(&mut self.any_started, true),
            };
            let mut base = target.base.clone();
            let is_open = base.plan.connection_plan.negotiates_http_version();
            self.apply_negotiated_http(&mut base.plan);
            let running = subject.start(&base)?;
            if is_open && self.negotiated_http.is_none() {
                self.negotiated_http = running.is_h2.map(|is_h2| if is_h2 { HttpChoice::H2 } else { HttpChoice::H1 });
            }
            self.current_load = Some((tag, Some(running)));
        }
        Ok(())
    }

    /// Sets the protocol that the first build used, if the plan permits HTTP/1.1 and HTTP/2.
    fn apply_negotiated_http(&self, plan: &mut Plan) {
        if let (true, Some(http)) = (plan.connection_plan.negotiates_http_version(), self.negotiated_http) {
            plan.connection_plan.fix_http_version(http);
        }
    }

    fn build_log_path(&self, what: &str) -> PathBuf {
        self.run_file_path.with_extension(format!("{what}.log"))
    }

    /// Returns the CPU clocks of the current target's processes; `None` if this machine cannot see
    /// the processes.
    fn target_cpu_clocks(&self) -> Option<CpuClocks> {
        if let Some((_, Some(running))) = &self.current_load {
            return Some(running.cpu_clocks());
        }
        let finder = self.current_target()?.finder.as_ref()?;
        let found = finder.initial_result().as_ref().ok()?;
        let clocks = Some(CpuClocks::with_descendants(&found.roots)).filter(|clocks| !clocks.is_empty());
        // If the known processes are gone, the server may have restarted, so plimsoll searches for
        // the server's processes again.
        let again = || finder.find_successor().ok().map(|found| CpuClocks::with_descendants(&found.roots));
        clocks.or_else(again).filter(|clocks| !clocks.is_empty())
    }
}

impl Runner for ComparisonRunner<'_> {
    fn elapsed_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn prepare(&mut self, trial: &mut TrialPlan) -> Result<Vec<String>, LoadObstacle> {
        self.switch_target(trial.tag).map_err(LoadObstacle::Failed)?;
        let base = self.current_target().map_or(&self.fitting.base, |target| &target.base);
        let mut plan = base.plan.clone();
        plan.load.restore_from_record(&trial.plan.load);
        self.apply_negotiated_http(&mut plan);
        self.plan = plan;
        if self.fleet.is_some() {
            // Each machine of the fleet adapts its own share of the load, so this machine adapts
            // nothing.
            trial.plan = self.plan.record();
            return Ok(Vec::new());
        }
        let fitted = self.fitting.fit_load(&mut self.plan, &mut self.injector).map_err(LoadObstacle::LoadImpossible)?;
        trial.plan = self.plan.record();
        Ok(fitted)
    }

    fn injectors(&self) -> Vec<Injector> {
        self.fleet.as_ref().map_or_else(|| vec![self.injector.clone()], |fleet| fleet.injectors())
    }

    fn connect(&mut self, on_tick: &mut TickCallback) -> Result<(), Failure> {
        self.teardown = TeardownGuard::begin(&mut self.plan, &self.injector)?;
        self.target_readings = Some(match self.current_reading_source() {
            Some(source) => TargetReadings::Elsewhere(LoadProbes::begin(Some(source))),
            None => {
                let port = self.plan.connection_plan.addresses.first().map(SocketAddr::port);
                TargetReadings::Here(Box::new(TargetCpuRecorder::begin(
                    self.target_cpu_clocks(),
                    self.fitting.base.local,
                    port,
                )))
            }
        });
        if let Some(fleet) = &mut self.fleet {
            return fleet.connect(&self.plan, false, &mut |tick| on_tick(tick, TickProbes::default()));
        }
        let authoring = self.current_target().and_then(|target| target.authoring.as_deref());
        let load_helpers = load_helpers(authoring, &self.plan, self.injector.workers)?;
        let mut running = self.current_load.as_mut().and_then(|(_, running)| running.as_mut());
        self.ready = Some(prepare_with_helpers(
            &self.plan,
            &self.injector,
            Stripe::WHOLE_SCHEDULE,
            load_helpers,
            &mut |tick| {
                on_tick(tick, TickProbes::default())?;
                check_build_alive(&mut running)
            },
        )?);
        Ok(())
    }

    fn start_ahead_ns(&self) -> u64 {
        self.fleet.as_ref().map_or(START_AHEAD_NS, |fleet| fleet.start_ahead_ns())
    }

    /// Runs the prepared load. If the build exits during the load, the result contains the reason.
    fn run(&mut self, start_ns: u64, on_tick: &mut TickCallback) -> Result<LoadOutcome, Failure> {
        let mut seen = self.target_readings.take().expect("it is looked at since then");
        let authoring = self.current_target().and_then(|target| target.authoring.as_deref());
        let arm = self.current_load.as_ref().map_or(0, |(tag, _)| tag.arm.map_or(0, ArmIndex::index));
        let source = self.readings.get(arm).map(|source| &**source);
        let mut running = self.current_load.as_mut().and_then(|(_, running)| running.as_mut());
        let mut on_tick = |tick: &Tick| {
            on_tick(tick, seen.handle_tick(tick, source))?;
            authoring.map_or(ControlFlow::Continue(()), AuthorFactory::may_continue)?;
            check_build_alive(&mut running)
        };
        let origin_ns = to_monotonic_ns(self.began, start_ns);
        let mut run = match &mut self.fleet {
            None => self.ready.take().expect("connections were made ready").run(origin_ns, &mut on_tick),
            Some(fleet) => fleet.run(&self.plan, origin_ns, &mut on_tick)?,
        };
        // If one agent (a machine that sends a share of the load) is lost, the loads of the two
        // sides differ, so the comparison fails.
        if let Some(agent) = run.agents.iter().find(|agent| agent.loss_reason.is_some()) {
            let why = agent.loss_reason.as_deref().unwrap_or_default();
            return Err(Failure::cannot_start(format!("agent {} was lost: {why}", agent.name)));
        }
        authoring.into_iter().for_each(AuthorFactory::mark_load_ended);
        let (probes, unreported_readings) = seen.end(source);
        self.warnings.extend(self.teardown.take().into_iter().flat_map(TeardownGuard::end));
        let untouched = run.ending == Some(LoadEnd::Finished);
        if let Some(why) = running.and_then(RunningBuild::exit_reason).filter(|_| untouched) {
            run.ending = Some(LoadEnd::Stopped(EarlyStopReason::CannotContinue(why)));
        }
        Ok(LoadOutcome { run: Run { probes, ..run }, unreported_readings })
    }

    fn finish(&mut self) -> Result<(), Failure> {
        match self.current_load.take() {
            Some((_, Some(running))) => running.end(),
            _ => Ok(()),
        }
    }

    fn take_user_messages(&mut self) -> Vec<String> {
        self.readings.iter().flat_map(|source| source.take_user_messages()).collect()
    }

    fn take_warnings(&mut self) -> Vec<String> {
        self.warnings.extend(self.fleet.iter_mut().flat_map(|fleet| fleet.take_warnings()));
        std::mem::take(&mut self.warnings)
    }

    fn store_file(&mut self, path: &Path) -> Result<Option<String>, String> {
        self.fleet.as_mut().map_or(Ok(None), |fleet| fleet.store_file(path))
    }
}

/// Stops a load when its build has exited.
fn check_build_alive(running: &mut Option<&mut RunningBuild>) -> ControlFlow<EarlyStopReason> {
    match running.as_mut().and_then(|running| running.exit_reason()) {
        Some(why) => ControlFlow::Break(EarlyStopReason::CannotContinue(why)),
        None => ControlFlow::Continue(()),
    }
}

/// Collects the readings (measurements) of the current target during one load.
enum TargetReadings {
    /// This machine records the CPU time of the target. For a target on another machine, the
    /// recorder has no clock.
    Here(Box<TargetCpuRecorder>),
    /// The target runs on another machine, and that machine sends the measurements of the target.
    Elsewhere(LoadProbes),
}

impl TargetReadings {
    /// Handles a tick (100 ms). Returns the measurements of the target to record with this tick.
    fn handle_tick(&mut self, tick: &Tick, source: Option<&dyn ReadingSource>) -> TickProbes {
        match self {
            TargetReadings::Here(seen) => {
                seen.record_cpu_sample(tick.origin_ns, false);
                TickProbes::default()
            }
            TargetReadings::Elsewhere(seen) => {
                let server_cores = source.and_then(|source| source.live_server_cpu().cores_used());
                TickProbes { new_readings: seen.take_readings_if_due(tick, source), server_cores }
            }
        }
    }

    /// Ends the collection of readings at the end of the load. Returns all measurements of the
    /// target, and separately the measurements that no tick has reported yet.
    fn end(self, source: Option<&dyn ReadingSource>) -> (Probes, Option<Probes>) {
        match self {
            TargetReadings::Here(seen) => {
                let probes = seen.end();
                (probes.clone().unwrap_or_default(), probes)
            }
            TargetReadings::Elsewhere(mut seen) => {
                let last = seen.end(source);
                (seen.whole, last)
            }
        }
    }
}

/// Records the CPU time of a target, of the machine and of plimsoll during one load.
struct TargetCpuRecorder {
    clocks: Option<CpuClocks>,
    /// The start of the load's schedule on the monotonic clock, ns; 0 before the first tick.
    origin_ns: u64,
    machine: MachineRecorder,
}

impl TargetCpuRecorder {
    fn begin(clocks: Option<CpuClocks>, local: bool, port: Option<u16>) -> TargetCpuRecorder {
        let mut seen = TargetCpuRecorder { clocks, origin_ns: 0, machine: MachineRecorder::new(local, port) };
        // The first CPU sample is taken before the load, because the first tick (100 ms) may end
        // after the start of the measured window.
        seen.record_cpu_sample(0, true);
        seen
    }

    fn record_cpu_sample(&mut self, origin_ns: u64, edge: bool) {
        self.origin_ns = origin_ns;
        self.machine.take_sample(edge, self.clocks.as_ref());
    }

    fn end(mut self) -> Option<Probes> {
        self.record_cpu_sample(self.origin_ns, true);
        (self.origin_ns > 0).then(|| self.machine.take().shift_times(-(self.origin_ns as i64)))
    }
}
