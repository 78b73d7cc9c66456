//! Who carries loads out ([`Runner`]): few verbs, so that the one loop over studies (`study_loop`)
//! need not know whether loads are driven from this machine, on builds that are started for them,
//! or, in its tests, against a simulated server.
//!
//! Not here: which load is next (the studies of `plimsoll-analysis`), what is kept of it
//! (`recording`).

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

/// Is told every tick, with what was seen of the target; may end the load.
pub type TickHandler<'a> = dyn FnMut(&Tick, TickProbes) -> ControlFlow<Stop> + 'a;

/// What is seen of the target at a tick.
#[derive(Default)]
pub struct TickProbes {
    /// All since the last such part, where it is time for one.
    pub part: Option<Probes>,
    /// Cores that the server used in the last second; `None` where it is not seen.
    pub server_cores: Option<f64>,
}

/// A load that was carried out.
pub struct LoadOutcome {
    /// What it did, and all that was seen of the target meanwhile.
    pub run: Run,
    /// What was seen of the target after the last part that a tick was told.
    pub seen_last: Option<Probes>,
}

/// Why a load is not begun.
pub enum Unready {
    /// The machine cannot hold it: why, and what to do.
    Unheld(String),
    /// Nothing can be measured.
    Failed(Failure),
}

/// Who helps the workers of a load: those who write what is asked, where it is not in the plan, and
/// those who know its messages.
pub fn aids(authoring: Option<&dyn AuthorFactory>, plan: &Plan, workers: u32) -> Result<LoadHelpers, Failure> {
    let authors = authoring.map_or(Ok(Vec::new()), |authoring| authoring.begin(&plan.load.shape, workers))?;
    Ok(LoadHelpers { authors, texts: grpc::texts(plan)? })
}

/// A load begins so long after its connections stand, ns: every worker is at its loop by then.
const START_AHEAD_NS: u64 = 1_000_000;

/// Other machines that make loads in place of this one.
pub trait RemoteLoad {
    /// Who makes the load that comes next, as far as that is known.
    fn injectors(&self) -> Vec<Injector>;

    /// Processes of theirs on this machine: what they use is the generator's.
    fn local_pids(&self) -> Vec<u32>;

    /// Has all make the connections of their parts of a load ready. `goes_on`: it goes on without a
    /// machine that is lost, unless the user wants it to end.
    fn connect(&mut self, plan: &Plan, goes_on: bool, on_tick: &mut TickListener) -> Result<(), Failure>;

    /// How long after that the load may begin at the earliest, ns: until all have heard of it.
    fn start_ahead_ns(&self) -> u64;

    /// Has all begin at `origin_ns` of this machine's monotonic clock, and runs the load to its
    /// end.
    fn run(&mut self, plan: &Plan, origin_ns: u64, on_tick: &mut TickListener) -> Result<Run, Failure>;

    /// What went wrong beside the loads since this was asked last.
    fn take_warnings(&mut self) -> Vec<String>;

    /// Stores a run file where others can fetch it; how, in a sentence. `None`: these machines have
    /// no such place.
    fn store_file(&mut self, path: &Path) -> Result<Option<String>, String>;
}

/// Carries loads out, one after the other.
pub trait Runner {
    /// Time since the experiment began, ns.
    fn elapsed_ns(&self) -> u64;

    /// Makes all ready that a load needs: adds to its plan what no record has (bodies, keys), fits
    /// it to what there is, starts what is to be measured. Says what was fitted.
    fn prepare(&mut self, trial: &mut TrialPlan) -> Result<Vec<String>, Unready>;

    /// Who makes the load that is ready: one for each machine.
    fn injectors(&self) -> Vec<Injector>;

    /// Makes the connections of the load ready that was prepared.
    fn connect(&mut self, on_tick: &mut TickHandler) -> Result<(), Failure>;

    /// How long after its connections are ready the load may begin at the earliest, ns.
    fn start_ahead_ns(&self) -> u64 {
        START_AHEAD_NS
    }

    /// Runs the load whose connections are ready, from `start_ns` since the experiment began on, to
    /// its end or to where `on_tick` ends it.
    fn run(&mut self, start_ns: u64, on_tick: &mut TickHandler) -> Result<LoadOutcome, Failure>;

    /// Ends what was started to be measured.
    fn finish(&mut self) -> Result<(), Failure>;

    /// What the user should know at once, since this was asked last.
    fn take_news(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// What went wrong beside the loads since this was asked last.
    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Stores the run file of a study that is over where others can fetch it; how, in a sentence.
    /// `None`: there is no such place.
    fn store_file(&mut self, _path: &Path) -> Result<Option<String>, String> {
        Ok(None)
    }
}
