//! Runners of loads ([`Runner`]): few methods, so that the one loop over studies (`study_loop`)
//! works with this machine, with builds under test, and in tests with a simulated server.
//!
//! Not here: the choice of loads (`plimsoll-analysis`), and their recording (`recording`).

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

/// Receives every tick with readings of the target, and may end the load.
pub type TickHandler<'a> = dyn FnMut(&Tick, TickProbes) -> ControlFlow<Stop> + 'a;

/// Readings of the target at a tick.
#[derive(Default)]
pub struct TickProbes {
    /// All readings since the last part, when a part is due.
    pub part: Option<Probes>,
    /// Cores that the server used in the last second; `None` if unknown.
    pub server_cores: Option<f64>,
}

/// An executed load.
pub struct LoadOutcome {
    /// Its result, with all readings of the target.
    pub run: Run,
    /// Readings after the last tick's part.
    pub seen_last: Option<Probes>,
}

/// Why a load does not begin.
pub enum Unready {
    /// The machine cannot make it: the reason, and the way out.
    Unheld(String),
    /// No load can be measured.
    Failed(Failure),
}

/// The helpers of a load's workers: authors of requests, and converters of gRPC messages.
pub fn aids(authoring: Option<&dyn AuthorFactory>, plan: &Plan, workers: u32) -> Result<LoadHelpers, Failure> {
    let authors = authoring.map_or(Ok(Vec::new()), |authoring| authoring.begin(&plan.load.shape, workers))?;
    Ok(LoadHelpers { authors, texts: grpc::texts(plan)? })
}

/// Time between the preparation and the start of the schedule, ns, so that every worker is in its
/// loop.
const START_AHEAD_NS: u64 = 1_000_000;

/// Other machines that make loads in place of this one.
pub trait RemoteLoad {
    /// The injectors of the next load, as far as known.
    fn injectors(&self) -> Vec<Injector>;

    /// Their processes on this machine, whose CPU use belongs to the generator.
    fn local_pids(&self) -> Vec<u32>;

    /// Makes all machines open the connections of a load. `goes_on`: the load continues without a
    /// lost machine, unless the user forbids that.
    fn connect(&mut self, plan: &Plan, goes_on: bool, on_tick: &mut TickListener) -> Result<(), Failure>;

    /// Least time until the load may begin, ns, so that all machines are informed.
    fn start_ahead_ns(&self) -> u64;

    /// Starts all machines at `origin_ns` of this machine's monotonic clock, and runs the load to
    /// its end.
    fn run(&mut self, plan: &Plan, origin_ns: u64, on_tick: &mut TickListener) -> Result<Run, Failure>;

    /// New warnings outside the loads.
    fn take_warnings(&mut self) -> Vec<String>;

    /// Stores a run file on the bus. Returns a sentence about its place; `None`: there is none.
    fn store_file(&mut self, path: &Path) -> Result<Option<String>, String>;
}

/// Executes loads one after another.
pub trait Runner {
    /// Time since the start of the experiment, ns.
    fn elapsed_ns(&self) -> u64;

    /// Prepares a load: adds the secrets that no record has, adapts the plan, starts its target.
    /// Returns what was adapted.
    fn prepare(&mut self, trial: &mut TrialPlan) -> Result<Vec<String>, Unready>;

    /// The injectors of the prepared load, one for each machine.
    fn injectors(&self) -> Vec<Injector>;

    /// Opens the connections of the prepared load.
    fn connect(&mut self, on_tick: &mut TickHandler) -> Result<(), Failure>;

    /// Least time from open connections to the start of the load, ns.
    fn start_ahead_ns(&self) -> u64 {
        START_AHEAD_NS
    }

    /// Runs the load with open connections from `start_ns` since the start of the experiment, until
    /// its end or until `on_tick` ends it.
    fn run(&mut self, start_ns: u64, on_tick: &mut TickHandler) -> Result<LoadOutcome, Failure>;

    /// Ends the targets that were started.
    fn finish(&mut self) -> Result<(), Failure>;

    /// New messages for the user.
    fn take_news(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// New warnings outside the loads.
    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Stores the run file of a finished study on the bus. Returns a sentence about its place;
    /// `None`: there is none.
    fn store_file(&mut self, _path: &Path) -> Result<Option<String>, String> {
        Ok(None)
    }
}
