//! The traits through which this crate uses the command `plimsoll run`.
//!
//! Not here: implementations of the traits.

use plimsoll_logs::vegeta::VegetaTimeSeries;
use plimsoll_model::{ExperimentSettings, Failure, Plan, Run, RunSpec};
use plimsoll_script::ScriptError;
use plimsoll_script::run_figures::RunFigures;
use plimsoll_wire::AuthorFactory;
use std::sync::Arc;

/// The command `plimsoll run`, which executes the loads for the commands of other tools.
pub trait RunCommand {
    /// Parses the arguments of `run`, which are given without `plimsoll run` before them.
    fn parse(&self, words: &[String]) -> Result<(RunSpec<Plan>, ExperimentSettings<String>), Failure>;

    /// Returns the script that the arguments of `run` name; `None` if the arguments name no script.
    /// `url` is the URL as the user typed it.
    fn script(
        &self,
        url: &str,
        plan: &Plan,
        settings: &ExperimentSettings<String>,
    ) -> Result<Option<Arc<dyn WrkScript>>, Failure>;

    /// Executes the load. If an author (code that writes requests, such as a script) is given, the
    /// author writes the requests. Without an author, the plan defines the requests.
    fn execute_load(
        &self,
        spec: RunSpec<Plan>,
        settings: &ExperimentSettings<String>,
        authoring: Option<Arc<dyn AuthorFactory>>,
    ) -> Result<Box<dyn FinishedLoad>, Failure>;

    /// Renders the HTML page of `vegeta plot`, with at most `points_max` points in each line of the
    /// plot.
    fn vegeta_page(&self, series: &VegetaTimeSeries, title: &str, points_max: usize) -> String;
}

/// A function that prints plimsoll's own results of a load. If the first argument is true, the
/// function prints JSON instead of text. If the second argument is true, the function prints all
/// results. If the second argument is false, the function prints only results that were not printed
/// during the load.
pub type PrintResults<'a> = Box<dyn Fn(bool, bool) + 'a>;

/// A finished load, whose results can be computed and printed.
pub trait FinishedLoad {
    /// Returns the record of the load with all measurements.
    fn run(&self) -> &Run;

    /// Returns whether the load generator was the limit instead of the server.
    fn is_generator_limited(&self) -> bool;

    /// Computes the results of the load, and returns a function that prints plimsoll's own results.
    fn build_results_printer(&self) -> Result<PrintResults<'_>, Failure>;

    /// Writes notes about the load to standard error: plimsoll's own notes, then the tool's notes
    /// `notes`.
    fn write_notes(self: Box<Self>, notes: &[String]);
}

/// A wrk script (in Lua) that writes the requests of a load.
pub trait WrkScript {
    /// Sets a text that is printed before the script's first load, but after the text that the
    /// script itself prints while it starts.
    fn set_announcement(&self, text: String);

    /// Flushes the output that the script has printed so far.
    fn flush(&self);

    /// Calls the function `done` of the wrk script, with the figures of the load. Returns an error
    /// if the script failed during the load or in `done`.
    fn call_done(&self, figures: &RunFigures) -> Option<ScriptError>;

    /// Returns a factory that gives each worker of a load an author, through which the script
    /// writes the worker's requests.
    fn author_factory(&self) -> Arc<dyn AuthorFactory + Send + Sync>;
}
