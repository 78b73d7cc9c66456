//! Executes loads from this machine on a running target, and collects the measurements (readings)
//! of the target.
//!
//! Not here: choosing loads (`plimsoll-analysis`), and recording them (`recording`).

use super::load_probes::LoadProbes;
use super::part_processes::{self, FURTHER_PROCESSES, PartProcesses};
use super::process_pauser::{PausableProcess, ProcessPauser};
use super::sources::SourceAddressRotation;
use super::{
    LoadObstacle, LoadOutcome, RemoteLoad, Runner, START_AHEAD_NS, TickCallback, TickProbes, VariedServerSetting,
    load_helpers,
};
use crate::base::ResolvedTarget;
use crate::capacity::{self, ConnectionLimits};
use crate::preflight;
use crate::setup_teardown::TeardownGuard;
use plimsoll_analysis::study::TrialPlan;
use plimsoll_engine::{PreparedLoad, Tick, prepare_with_helpers};
use plimsoll_model::failure::Failure;
use plimsoll_model::{
    ArmIndex, EarlyStopReason, Injector, Intervention, LoadEnd, LoadPurpose, LoadTag, Plan, Run, Stripe,
};
use plimsoll_probe::{LiveServerCpu, ReadingSource};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::signal;
use plimsoll_wire::AuthorFactory;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// A runner that executes loads from this machine.
pub struct LocalMachineRunner {
    began: Instant,
    /// Measures the target during loads; `None` if the user switched probes (measurements of server
    /// and host) off.
    source: Option<Box<dyn ReadingSource>>,
    /// The plan of all loads, with the load shape (users or rate) of the current load.
    plan: Plan,
    injector: Injector,
    fitting: Option<LoadFitter>,
    /// The script that builds the requests; `None` if the plan contains them.
    authoring: Option<Arc<dyn AuthorFactory>>,
    /// For each plan change, the changed plan and its generator settings. The key `None` contains
    /// the original plan, so that the original plan can be restored.
    variants: BTreeMap<Option<PlanChange>, PlanVariant>,
    /// The plan change that is active for the current load; `None` means the original plan.
    active_change: Option<PlanChange>,
    /// The user's command that changes a server setting (`--vary`).
    setting: Option<VariedServerSetting>,
    /// The processes that may be paused (`--may-signal`).
    pausable_processes: Vec<PausableProcess>,
    /// Pauses processes during the current load; `None` for a load without pauses.
    stopping: Option<ProcessPauser>,
    /// The other processes that send shares of the current load, or the reason why they did not
    /// start. `None` if this process sends the whole load.
    part_processes: Option<Result<PartProcesses, String>>,
    /// The other machines (a fleet) that send the whole load in place of this machine.
    fleet: Option<Box<dyn RemoteLoad>>,
    /// Whether the current load continues if a machine of the fleet is lost.
    may_continue: bool,
    /// Sends the cleanup requests of the current load when the load ends; `None` without setup and
    /// cleanup.
    teardown: Option<TeardownGuard>,
    /// Chooses the source addresses of successive loads.
    sources: SourceAddressRotation,
    /// Whether the generator settings contain a source address that was chosen for the current load
    /// only.
    has_temporary_source: bool,
    /// Failed cleanup requests of earlier loads, which are reported as warnings.
    warnings: Vec<String>,
    /// The load whose connections are open and which has not started.
    ready: Option<PreparedLoad>,
    /// Collects the target's readings during the current load.
    load_readings: LoadProbes,
}

/// A change of the plan that applies to some loads only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanChange {
    /// An intervention of the command `explain`: a change of the load that tests a possible cause.
    Intervention(Intervention),
    /// The load retries failed requests, as the command `overload` requires.
    WithRetries,
    /// The load goes to the second target of `overload --against` (`ArmIndex::SECOND_TARGET`).
    SecondTarget,
}

impl PlanChange {
    /// Returns the plan change that a load needs according to its tag (purpose, side and turn);
    /// `None` means the original plan.
    fn from_tag(tag: &LoadTag) -> Option<PlanChange> {
        match tag.purpose {
            LoadPurpose::Overload if tag.arm == Some(ArmIndex::SECOND_TARGET) => Some(PlanChange::SecondTarget),
            LoadPurpose::Overload => Some(PlanChange::WithRetries),
            _ => Intervention::from_tag(tag).map(PlanChange::Intervention),
        }
    }
}

/// A changed plan, and the load generator settings for this plan.
#[derive(Debug, Clone)]
pub struct PlanVariant {
    /// The changed plan. The load shape (users or rate) of the changed plan is not used.
    pub plan: Plan,
    /// The generator settings for this plan.
    pub injector: Injector,
}

/// Adapts the plan of each load to the limits of this machine, such as open files and ports.
pub struct LoadFitter {
    /// The target, and the settings that the user fixed.
    pub base: ResolvedTarget,
    /// The limits of this machine, such as open files and ports.
    pub limits: ConnectionLimits,
}

impl LoadFitter {
    /// Adapts a plan and its generator settings. Returns a sentence for each adaptation; the error
    /// says why the machine cannot send the load.
    pub fn fit_load(&self, plan: &mut Plan, injector: &mut Injector) -> Result<Vec<String>, String> {
        *injector = self.base.generator_settings_for_load(&plan.load);
        capacity::fit_to_machine(plan, injector, self.base.fixed, self.base.local, &self.limits)
    }
}

impl LocalMachineRunner {
    /// Creates the runner, and sets time 0 of the experiment to now. `fitting` adapts each load to
    /// this machine; `None` if the plan was already adapted.
    pub fn new(
        source: Option<Box<dyn ReadingSource>>,
        plan: Plan,
        injector: Injector,
        fitting: Option<LoadFitter>,
    ) -> LocalMachineRunner {
        let (began, ready, load_readings) = (Instant::now(), None, LoadProbes::default());
        let (variants, active_change, setting) = (BTreeMap::new(), None, None);
        let (teardown, warnings, pausable_processes) = (None, Vec::new(), Vec::new());
        let (authoring, stopping, others) = (None, None, None);
        let (fleet, may_continue) = (None, false);
        let (sources, has_temporary_source) = (SourceAddressRotation::default(), false);
        LocalMachineRunner {
            began,
            source,
            plan,
            injector,
            fitting,
            authoring,
            variants,
            active_change,
            setting,
            pausable_processes,
            stopping,
            part_processes: others,
            fleet,
            may_continue,
            teardown,
            sources,
            has_temporary_source,
            warnings,
            ready,
            load_readings,
        }
    }

    /// Sets the script that builds the requests, if there is one.
    pub fn with_request_script(mut self, authoring: Option<Arc<dyn AuthorFactory>>) -> LocalMachineRunner {
        self.authoring = authoring;
        self
    }

    /// Sets the changed plans. A changed plan replaces the original plan in loads whose tag
    /// (purpose, side and turn) asks for the change.
    pub fn with_variants(mut self, variants: BTreeMap<PlanChange, PlanVariant>) -> LocalMachineRunner {
        if !variants.is_empty() {
            let own = PlanVariant { plan: self.plan.clone(), injector: self.injector.clone() };
            self.variants = variants.into_iter().map(|(change, variant)| (Some(change), variant)).collect();
            self.variants.insert(None, own);
        }
        self
    }

    /// Sets the fleet, that is, the machines that send the load in place of this machine. With
    /// `None`, this machine sends the load. This machine measures the target in both cases.
    pub fn with_fleet(self, fleet: Option<Box<dyn RemoteLoad>>) -> LocalMachineRunner {
        if let (Some(fleet), Some(source)) = (&fleet, &self.source) {
            fleet.local_pids().into_iter().for_each(|pid| source.count_process_as_plimsoll(pid));
        }
        LocalMachineRunner { fleet, ..self }
    }

    /// Sets the command that changes a server setting. The command runs before each load whose tag
    /// (purpose, side and turn) has a value for the setting.
    pub fn with_setting(self, setting: Option<VariedServerSetting>) -> LocalMachineRunner {
        LocalMachineRunner { setting, ..self }
    }

    /// Sets the processes that may be paused during loads whose tag (purpose, side and turn) asks
    /// for pauses.
    pub fn with_pausable_processes(self, pausable_processes: Vec<PausableProcess>) -> LocalMachineRunner {
        LocalMachineRunner { pausable_processes, ..self }
    }

    /// Lets loads use other loopback addresses when earlier loads left too many ports in TIME-WAIT.
    /// `may_ask` says whether plimsoll may send requests to check that the target responds to
    /// requests from another loopback address. Without this permission, loads keep their source
    /// address.
    pub fn with_source_address_changes(self, may_ask: bool) -> LocalMachineRunner {
        let sources = if may_ask {
            SourceAddressRotation::with_changes_between_loads()
        } else {
            SourceAddressRotation::default()
        };
        LocalMachineRunner { sources, ..self }
    }

    /// Gives the current load another local address if earlier loads left many ports of the present
    /// address in TIME-WAIT. Returns a note for the user if the address changed.
    fn change_source_address_if_needed(&mut self) -> Option<String> {
        let plan = &self.plan;
        let injector = self.sources.injector_for_next_load(plan, &self.injector, |injector| {
            preflight::responds_successfully(plan, injector)
        })?;
        (self.injector, self.has_temporary_source) = (injector, true);
        Some(
            "plimsoll has few free local ports left (TIME-WAIT), so further loads also come from 127.0.0.2 and \
            up; the results stay valid (--source-ip 127.0.0.1 prevents this)"
                .to_owned(),
        )
    }

    /// Makes a changed plan the current plan; `None` restores the original plan. Nothing is copied
    /// if the wanted plan is already the current plan.
    fn switch_plan_variant(&mut self, plan_change: Option<PlanChange>) {
        let plan_change = plan_change.filter(|change| self.variants.contains_key(&Some(*change)));
        if plan_change == self.active_change {
            return;
        }
        if let Some(PlanVariant { plan, injector }) = self.variants.get(&plan_change) {
            self.plan.clone_from(plan);
            self.injector.clone_from(injector);
            self.active_change = plan_change;
        }
    }
}

impl Runner for LocalMachineRunner {
    fn elapsed_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn prepare(&mut self, trial: &mut TrialPlan) -> Result<Vec<String>, LoadObstacle> {
        if std::mem::take(&mut self.has_temporary_source) {
            self.injector.sources.clear();
        }
        self.switch_plan_variant(PlanChange::from_tag(&trial.tag));
        if let Some(setting) = &self.setting {
            setting.change_setting(&trial.tag, &self.plan).map_err(LoadObstacle::LoadImpossible)?;
        }
        (self.stopping, self.part_processes) = (None, None);
        match Intervention::from_tag(&trial.tag) {
            Some(Intervention::DependencyPauses) => {
                self.stopping =
                    Some(ProcessPauser::start_pauser(&self.pausable_processes).map_err(LoadObstacle::LoadImpossible)?);
            }
            Some(Intervention::SecondGenerator) if self.fleet.is_some() => {
                return Err(LoadObstacle::LoadImpossible(
                    "no second process is needed, because several machines already generate the load".to_owned(),
                ));
            }
            Some(Intervention::SecondGenerator) => {
                let others = PartProcesses::start(FURTHER_PROCESSES).map_err(LoadObstacle::LoadImpossible)?;
                if let Some(source) = &self.source {
                    others.process_ids().for_each(|pid| source.count_process_as_plimsoll(pid));
                }
                self.part_processes = Some(Ok(others));
            }
            _ => {}
        }
        self.plan.load.restore_from_record(&trial.plan.load);
        self.may_continue = trial.tag.purpose == LoadPurpose::Run;
        if self.fleet.is_some() {
            // Each machine of the fleet adapts its own share of the load, so this machine adapts
            // nothing.
            trial.plan = self.plan.record();
            return Ok(Vec::new());
        }
        let mut fitted = match &self.fitting {
            Some(fitting) => {
                fitting.fit_load(&mut self.plan, &mut self.injector).map_err(LoadObstacle::LoadImpossible)?
            }
            None => Vec::new(),
        };
        fitted.extend(self.change_source_address_if_needed());
        self.injector.sources_so_far = Some(self.sources.record_addresses_used(&self.injector));
        trial.plan = self.plan.record();
        Ok(fitted)
    }

    fn injectors(&self) -> Vec<Injector> {
        if let Some(fleet) = &self.fleet {
            return fleet.injectors();
        }
        // The other processes use the same generator settings as this process.
        let others = self
            .part_processes
            .as_ref()
            .map_or(0, |others| others.as_ref().map_or(FURTHER_PROCESSES, PartProcesses::count));
        vec![self.injector.clone(); 1 + others]
    }

    fn connect(&mut self, on_tick: &mut TickCallback) -> Result<(), Failure> {
        self.teardown = TeardownGuard::begin(&mut self.plan, &self.injector)?;
        self.load_readings = LoadProbes::begin(self.source.as_deref());
        let live = self.source.as_ref().map_or_else(LiveServerCpu::without_value, |source| source.live_server_cpu());
        if let Some(fleet) = &mut self.fleet {
            return fleet.connect(&self.plan, self.may_continue, &mut |tick| {
                on_tick(tick, TickProbes { new_readings: None, server_cores: live.cores_used() })
            });
        }
        let load_helpers = load_helpers(self.authoring.as_deref(), &self.plan, self.injector.workers)?;
        let mut stripe = Stripe::WHOLE_SCHEDULE;
        if let Some(Ok(others)) = &mut self.part_processes {
            stripe = Stripe::new(0, others.count() as u64 + 1);
            others.assign_tasks(&self.plan, &self.injector);
        }
        self.ready = Some(prepare_with_helpers(&self.plan, &self.injector, stripe, load_helpers, &mut |tick| {
            on_tick(tick, TickProbes { new_readings: None, server_cores: live.cores_used() })
        })?);
        if let Some(Ok(others)) = &mut self.part_processes
            && let Err(why) = others.wait_until_ready()
        {
            self.part_processes = Some(Err(why));
        }
        Ok(())
    }

    fn start_ahead_ns(&self) -> u64 {
        self.fleet.as_ref().map_or(START_AHEAD_NS, |fleet| fleet.start_ahead_ns())
    }

    fn run(&mut self, start_ns: u64, on_tick: &mut TickCallback) -> Result<LoadOutcome, Failure> {
        let source = self.source.as_deref();
        let live = source.map_or_else(LiveServerCpu::without_value, |source| source.live_server_cpu());
        let (seen, authoring) = (&mut self.load_readings, self.authoring.as_deref());
        let mut on_tick = |tick: &Tick| {
            let part = seen.take_readings_if_due(tick, source);
            on_tick(tick, TickProbes { new_readings: part, server_cores: live.cores_used() })?;
            authoring.map_or(ControlFlow::Continue(()), AuthorFactory::may_continue)
        };
        let origin_ns = to_monotonic_ns(self.began, start_ns);
        self.stopping.iter_mut().for_each(ProcessPauser::begin);
        let mut ready = || self.ready.take().expect("connections were made ready");
        let run = match (&mut self.fleet, &mut self.part_processes) {
            (Some(fleet), _) => fleet.run(&self.plan, origin_ns, &mut on_tick)?,
            (None, None) => ready().run(origin_ns, &mut on_tick),
            (None, Some(Ok(others))) => {
                let injectors = vec![self.injector.clone(); others.count() + 1];
                part_processes::run(ready(), others, &self.plan, injectors, origin_ns, &mut on_tick)
            }
            // A process that should send a share of the load has failed. The load is not run,
            // because the remaining shares would be a different load.
            (None, Some(Err(why))) => {
                drop(ready());
                let stop = if signal::is_stop_requested() {
                    EarlyStopReason::Interrupted
                } else {
                    EarlyStopReason::CannotContinue(why.clone())
                };
                Run { ending: Some(LoadEnd::Stopped(stop)), ..Run::new(self.plan.record()) }
            }
        };
        self.stopping = None;
        authoring.into_iter().for_each(AuthorFactory::mark_load_ended);
        let unreported_readings = seen.end(source);
        self.part_processes = None;
        self.warnings.extend(self.teardown.take().into_iter().flat_map(TeardownGuard::end));
        self.sources
            .record_closed_connections(run.intervals.values().map(|interval| interval.load.connections_opened).sum());
        Ok(LoadOutcome { run: Run { probes: std::mem::take(&mut seen.whole), ..run }, unreported_readings })
    }

    fn take_user_messages(&mut self) -> Vec<String> {
        self.source.as_ref().map_or_else(Vec::new, |source| source.take_user_messages())
    }

    fn take_warnings(&mut self) -> Vec<String> {
        self.warnings.extend(self.fleet.iter_mut().flat_map(|fleet| fleet.take_warnings()));
        std::mem::take(&mut self.warnings)
    }

    fn store_file(&mut self, path: &Path) -> Result<Option<String>, String> {
        self.fleet.as_mut().map_or(Ok(None), |fleet| fleet.store_file(path))
    }
}

/// Converts ns since `began` to a time on the monotonic clock, ns.
pub(super) fn to_monotonic_ns(began: Instant, at_ns: u64) -> u64 {
    (monotonic_ns() + at_ns).saturating_sub(began.elapsed().as_nanos() as u64)
}
