//! Runners execute loads ([`Runner`]). The trait has few methods, so that one loop over studies
//! (`study_loop`) works with all runners. Runners exist for this machine, for builds under test,
//! and for a simulated server in tests.
//!
//! Not here: choosing loads (`plimsoll-analysis`), and recording them (`recording`).

pub mod builds;
mod load_probes;
pub mod machine;
mod part_processes;
pub mod process_pauser;
mod setting;
mod sources;

pub use builds::Builds;
pub use machine::{PlanChange, ThisMachine, Variant};
pub use setting::{PLACE, Setting};

use crate::grpc;
use plimsoll_analysis::study::TrialPlan;
use plimsoll_engine::{LoadHelpers, Tick, TickListener};
use plimsoll_model::failure::Failure;
use plimsoll_model::{Injector, Plan, Probes, Run, Stop};
use plimsoll_wire::AuthorFactory;
use std::ops::ControlFlow;
use std::path::Path;

/// Callback that receives every tick with readings of the target, and may end the load.
pub type TickHandler<'a> = dyn FnMut(&Tick, TickProbes) -> ControlFlow<Stop> + 'a;

/// Readings of the target that come with a tick.
#[derive(Default)]
pub struct TickProbes {
    /// All readings since the last part; `None` if no part is due yet.
    pub part: Option<Probes>,
    /// Number of cores that the server used in the last second; `None` if unknown.
    pub server_cores: Option<f64>,
}

/// The result of an executed load.
pub struct LoadOutcome {
    /// The load's measurements, with all readings of the target.
    pub run: Run,
    /// The readings that no tick has reported yet.
    pub seen_last: Option<Probes>,
}

/// The reason why a load cannot begin.
pub enum Unready {
    /// The machine cannot send this load; contains the reason and the way out. Other loads may
    /// work.
    Unheld(String),
    /// No load can be measured; contains the failure.
    Failed(Failure),
}

/// Creates the helpers of a load's workers: a script's authors of requests, and converters of gRPC
/// messages.
pub fn aids(authoring: Option<&dyn AuthorFactory>, plan: &Plan, workers: u32) -> Result<LoadHelpers, Failure> {
    let authors = authoring.map_or(Ok(Vec::new()), |authoring| authoring.begin(&plan.load.shape, workers))?;
    Ok(LoadHelpers { authors, texts: grpc::texts(plan)? })
}

/// Time in ns between the preparation and the start of the schedule. This time lets every worker
/// enter its loop.
const START_AHEAD_NS: u64 = 1_000_000;

/// Other machines (a fleet) that send the load in place of this one.
pub trait RemoteLoad {
    /// The generator settings of the next load on each machine, as far as known.
    fn injectors(&self) -> Vec<Injector>;

    /// Ids of the fleet's processes on this machine, whose CPU use counts as that of the generator.
    fn local_pids(&self) -> Vec<u32>;

    /// Makes all machines open the connections of a load. `goes_on` says whether the load continues
    /// if a machine is lost; the user's settings may forbid that.
    fn connect(&mut self, plan: &Plan, goes_on: bool, on_tick: &mut TickListener) -> Result<(), Failure>;

    /// Least time in ns until the load may begin, so that all machines learn the start time.
    fn start_ahead_ns(&self) -> u64;

    /// Runs the load on all machines to its end. The schedule starts at `origin_ns` on this
    /// machine's monotonic clock.
    fn run(&mut self, plan: &Plan, origin_ns: u64, on_tick: &mut TickListener) -> Result<Run, Failure>;

    /// Returns new warnings that belong to no load.
    fn take_warnings(&mut self) -> Vec<String>;

    /// Stores a run file on the fleet's message bus. Returns a sentence that says where; `None`
    /// without a bus.
    fn store_file(&mut self, path: &Path) -> Result<Option<String>, String>;
}

/// Executes loads one after another.
pub trait Runner {
    /// Time since the start of the experiment, ns.
    fn elapsed_ns(&self) -> u64;

    /// Prepares a load: adds the secrets that no record contains, adapts the plan, and starts the
    /// target if needed. Returns a sentence for each adaptation.
    fn prepare(&mut self, trial: &mut TrialPlan) -> Result<Vec<String>, Unready>;

    /// The generator settings of the prepared load, one for each machine or process.
    fn injectors(&self) -> Vec<Injector>;

    /// Opens the connections of the prepared load.
    fn connect(&mut self, on_tick: &mut TickHandler) -> Result<(), Failure>;

    /// Least time in ns from open connections to the start of the load.
    fn start_ahead_ns(&self) -> u64 {
        START_AHEAD_NS
    }

    /// Runs the load, with its connections open, until its end or until `on_tick` ends it. The
    /// schedule begins at `start_ns` since the start of the experiment.
    fn run(&mut self, start_ns: u64, on_tick: &mut TickHandler) -> Result<LoadOutcome, Failure>;

    /// Ends the targets that the runner started.
    fn finish(&mut self) -> Result<(), Failure>;

    /// Returns new messages for the user.
    fn take_news(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Returns new warnings that belong to no load.
    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Stores the run file of a finished study on the fleet's message bus. Returns a sentence that
    /// says where; `None` without a bus.
    fn store_file(&mut self, _path: &Path) -> Result<Option<String>, String> {
        Ok(None)
    }
}
