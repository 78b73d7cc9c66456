//! Runners execute loads ([`Runner`]). A load is one execution of a plan: requests to a target for
//! a limited time (a trial in the run file). The trait [`Runner`] has few methods, so that one loop
//! (`study_loop`) can execute studies with every runner. Runners exist for one target (with the
//! load from this machine or a fleet), for builds under test, and for a simulated server in tests.
//!
//! Not here: choosing loads (`plimsoll-analysis`), and recording them (`recording`).

pub mod builds;
mod load_probes;
pub mod machine;
pub(crate) mod part_processes;
pub mod process_pauser;
mod setting;
mod sources;

pub use builds::ComparisonRunner;
pub use machine::{LocalMachineRunner, PlanChange, PlanVariant};
pub use setting::{VALUE_PLACEHOLDER, VariedServerSetting};

use crate::grpc;
use plimsoll_analysis::study::TrialPlan;
use plimsoll_engine::{LoadHelpers, Tick, TickListener};
use plimsoll_model::failure::Failure;
use plimsoll_model::{EarlyStopReason, Injector, Plan, Probes, Run};
use plimsoll_wire::AuthorFactory;
use std::ops::ControlFlow;
use std::path::Path;

/// A callback that receives every tick (100 ms) with readings of the target, and that may end the
/// load.
pub type TickCallback<'a> = dyn FnMut(&Tick, TickProbes) -> ControlFlow<EarlyStopReason> + 'a;

/// The measurements (readings) of the target that belong to a tick.
#[derive(Default)]
pub struct TickProbes {
    /// The new measurements of the target to write to the run file; `None` if no measurements are
    /// due at this tick.
    pub new_readings: Option<Probes>,
    /// The number of cores that the server used in the last second; `None` if unknown.
    pub server_cores: Option<f64>,
}

/// The result of an executed load.
pub struct LoadOutcome {
    /// The load's measurements, with all readings of the target.
    pub run: Run,
    /// The last measurements of the target, which no tick has reported. The caller must still write
    /// these measurements to the run file.
    pub unreported_readings: Option<Probes>,
}

/// The reason why a load cannot begin.
pub enum LoadObstacle {
    /// This load cannot be executed, but other loads may be possible. The text says why the load is
    /// impossible, and what the user can change.
    LoadImpossible(String),
    /// No load can be measured at all. The value is the failure.
    Failed(Failure),
}

/// Creates the helpers of a load's worker threads: script objects that write requests (authors),
/// and converters of gRPC messages.
pub fn load_helpers(authoring: Option<&dyn AuthorFactory>, plan: &Plan, workers: u32) -> Result<LoadHelpers, Failure> {
    let authors = authoring.map_or(Ok(Vec::new()), |authoring| authoring.create_authors(&plan.load.shape, workers))?;
    Ok(LoadHelpers { authors, message_converters: grpc::message_converters(plan)? })
}

/// The time in ns between the preparation of a load and the start of its schedule (1 ms). During
/// this 1 ms, every worker thread enters its event loop.
const START_AHEAD_NS: u64 = 1_000_000;

/// Other machines (a fleet) that send the load in place of this machine.
pub trait RemoteLoad {
    /// Returns the generator settings that each machine is expected to use for the next load.
    fn injectors(&self) -> Vec<Injector>;

    /// Returns the ids of the fleet's processes on this machine. The CPU use of the fleet's
    /// processes counts as CPU use of the load generator.
    fn local_pids(&self) -> Vec<u32>;

    /// Makes all machines open the connections of a load. `may_continue` says whether the load may
    /// continue without a machine that is lost. Even if `may_continue` is true, the user's settings
    /// may stop a load that has lost a machine.
    fn connect(&mut self, plan: &Plan, may_continue: bool, on_tick: &mut TickListener) -> Result<(), Failure>;

    /// Returns the shortest time in ns from the opening of all connections to the start of the
    /// load. During this time, all machines of the fleet learn when the load starts.
    fn start_ahead_ns(&self) -> u64;

    /// Runs the load on all machines to its end. The schedule starts at `origin_ns` on this
    /// machine's monotonic clock.
    fn run(&mut self, plan: &Plan, origin_ns: u64, on_tick: &mut TickListener) -> Result<Run, Failure>;

    /// Returns the warnings that belong to no load and were added since the last call.
    fn take_warnings(&mut self) -> Vec<String>;

    /// Stores a run file on the fleet's message bus. Returns a sentence that says where the file
    /// is; `None` if the fleet has no bus.
    fn store_file(&mut self, path: &Path) -> Result<Option<String>, String>;
}

/// Executes loads one after another.
pub trait Runner {
    /// Returns the time since the start of the experiment, ns.
    fn elapsed_ns(&self) -> u64;

    /// Prepares a load. Adds the secrets that the record does not contain, adapts the plan to the
    /// machine, and starts the target if needed. Returns a sentence for each adaptation.
    fn prepare(&mut self, trial: &mut TrialPlan) -> Result<Vec<String>, LoadObstacle>;

    /// Returns the generator settings of the prepared load, one for each machine or process.
    fn injectors(&self) -> Vec<Injector>;

    /// Opens the connections of the prepared load.
    fn connect(&mut self, on_tick: &mut TickCallback) -> Result<(), Failure>;

    /// Returns the shortest time in ns from the opening of all connections to the start of the
    /// load.
    fn start_ahead_ns(&self) -> u64 {
        START_AHEAD_NS
    }

    /// Runs the prepared load until its end, or until `on_tick` ends the load. The connections are
    /// already open. The schedule begins `start_ns` after the start of the experiment.
    fn run(&mut self, start_ns: u64, on_tick: &mut TickCallback) -> Result<LoadOutcome, Failure>;

    /// Ends the targets that the runner started. The default implementation does nothing, for
    /// runners that start no target.
    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns the messages for the user since the last call.
    fn take_user_messages(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the warnings that belong to no load and were added since the last call.
    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Stores the run file of a finished study on the fleet's message bus. Returns a sentence that
    /// says where the file is; `None` without a bus.
    fn store_file(&mut self, _path: &Path) -> Result<Option<String>, String> {
        Ok(None)
    }
}
