//! What this crate needs of the program around it: the verb `run`, as traits.
//!
//! Not here: any implementation of them.

use plimsoll_model::{Failure, Plan, Run, RunSpec, Terms};
use plimsoll_script::ScriptError;
use plimsoll_script::run_figures::RunFigures;
use plimsoll_traffic::vegeta::VegetaCourse;
use plimsoll_wire::AuthorFactory;
use std::sync::Arc;

/// The verb `run` of the program.
pub trait RunVerb {
    /// Parses a line of `run`, without `plimsoll run` before it.
    fn parse(&self, words: &[String]) -> Result<(RunSpec<Plan>, Terms<String>), Failure>;

    /// The script that a line names, with the URL as the line has it; `None` where it names none.
    fn script(&self, url: &str, plan: &Plan, terms: &Terms<String>) -> Result<Option<Arc<dyn WrkScript>>, Failure>;

    /// Carries the load out. With an author, the author writes the requests.
    fn carry_out(
        &self,
        asked: RunSpec<Plan>,
        terms: &Terms<String>,
        authoring: Option<Arc<dyn AuthorFactory>>,
    ) -> Result<Box<dyn FinishedLoad>, Failure>;

    /// The page of `vegeta plot`, with at most `points_max` points for each line.
    fn vegeta_page(&self, course: &VegetaCourse, title: &str, points_max: usize) -> String;
}

/// Prints plimsoll's own results: as JSON or as text; in full, or only what was not shown during
/// the load.
pub type PrintResults<'a> = Box<dyn Fn(bool, bool) + 'a>;

/// A load that was carried out.
pub trait FinishedLoad {
    /// What the load did.
    fn run(&self) -> &Run;

    /// Whether the load generator was the limit, and not the server.
    fn generator_limited(&self) -> bool;

    /// plimsoll's own results of it.
    fn results(&self) -> Result<PrintResults<'_>, Failure>;

    /// Writes the program's own notes on the load to standard error, then these.
    fn end(self: Box<Self>, notes: &[String]);
}

/// A script of wrk's as the traffic of a load.
pub trait WrkScript {
    /// Prints this text between what the script prints as it begins and its first load.
    fn announce(&self, text: String);

    /// Writes out what the script has printed so far.
    fn flush(&self);

    /// Calls the script's `done` with these figures. Returns what went wrong in the script, in the
    /// load or in `done`.
    fn done(&self, figures: &RunFigures) -> Option<ScriptError>;

    /// The script as the author of a load's requests.
    fn author(&self) -> Arc<dyn AuthorFactory + Send + Sync>;
}
