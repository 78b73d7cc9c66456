//! Traits through which this crate uses the program's command `run`.
//!
//! Not here: implementations of the traits.

use plimsoll_model::{Failure, Plan, Run, RunSpec, Terms};
use plimsoll_script::ScriptError;
use plimsoll_script::run_figures::RunFigures;
use plimsoll_traffic::vegeta::VegetaCourse;
use plimsoll_wire::AuthorFactory;
use std::sync::Arc;

/// The command `plimsoll run`, as the commands for other tools use it.
pub trait RunVerb {
    /// Parses arguments of `run`, without `plimsoll run` before them.
    fn parse(&self, words: &[String]) -> Result<(RunSpec<Plan>, Terms<String>), Failure>;

    /// Returns the script that the parsed arguments name; `None` without one. `url` is the URL as
    /// the user wrote it.
    fn script(&self, url: &str, plan: &Plan, terms: &Terms<String>) -> Result<Option<Arc<dyn WrkScript>>, Failure>;

    /// Executes the load. An author, if given, writes the requests in place of the plan.
    fn carry_out(
        &self,
        asked: RunSpec<Plan>,
        terms: &Terms<String>,
        authoring: Option<Arc<dyn AuthorFactory>>,
    ) -> Result<Box<dyn FinishedLoad>, Failure>;

    /// Formats the HTML page of `vegeta plot`, with at most `points_max` points for each line.
    fn vegeta_page(&self, course: &VegetaCourse, title: &str, points_max: usize) -> String;
}

/// A function that prints plimsoll's own results. The first argument selects JSON instead of text.
/// The second argument selects all results instead of the results not shown during the load.
pub type PrintResults<'a> = Box<dyn Fn(bool, bool) + 'a>;

/// A finished load, whose results can be printed.
pub trait FinishedLoad {
    /// Returns the measurements of the load.
    fn run(&self) -> &Run;

    /// Whether the load generator was the limit, and not the server.
    fn generator_limited(&self) -> bool;

    /// Evaluates the load, and returns a function that prints plimsoll's own results.
    fn results(&self) -> Result<PrintResults<'_>, Failure>;

    /// Writes the program's notes on the load to standard error, then `notes`.
    fn end(self: Box<Self>, notes: &[String]);
}

/// A wrk script that writes the requests of a load.
pub trait WrkScript {
    /// Sets a text to print after the script's initial output and before its first load.
    fn announce(&self, text: String);

    /// Flushes what the script has printed so far.
    fn flush(&self);

    /// Calls the script's function `done` with these figures. Returns the error of the script,
    /// during the load or in `done`, if there was one.
    fn done(&self, figures: &RunFigures) -> Option<ScriptError>;

    /// Returns the script as the author of a load's requests.
    fn author(&self) -> Arc<dyn AuthorFactory + Send + Sync>;
}
