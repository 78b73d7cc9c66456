//! Gives other tools' command lines access to the command `run` ([`RunCommand`]). The command lines
//! of all tools therefore share one parser and one record format.
//!
//! Not here: other tools' arguments and output (`plimsoll_compat`), and executing loads.

use crate::args::{Cli, Command, parser_for_command};
use crate::commands::run::{self, MeasuredRun};
use crate::results::Results;
use crate::secrets::command_line_secrets;
use clap::{CommandFactory, FromArgMatches};
use plimsoll_analysis::Summary;
use plimsoll_compat::{FinishedLoad, PrintResults, RunCommand, WrkScript};
use plimsoll_logs::vegeta::VegetaTimeSeries;
use plimsoll_model::failure::Failure;
use plimsoll_model::{ExperimentSettings, Plan, Run, RunSpec};
use plimsoll_report::{attacks_page, page};
use plimsoll_script::ScriptError;
use plimsoll_script::run_figures::RunFigures;
use plimsoll_study::script_run::ScriptRun;
use plimsoll_wire::AuthorFactory;
use std::sync::Arc;

/// The implementation of `RunCommand`, through which `plimsoll_compat` uses the command `run`.
pub struct RunCommandAdapter;

impl RunCommand for RunCommandAdapter {
    /// Parses arguments of `run`. After parsing, messages hide the secrets in the parsed arguments.
    fn parse(&self, words: &[String]) -> Result<(RunSpec<Plan>, ExperimentSettings<String>), Failure> {
        let refused = |error: clap::Error| Failure::usage(crate::usage_error::error_sentence(&Cli::command(), &error));
        let line = ["plimsoll", "run"].into_iter().chain(words.iter().map(String::as_str));
        let mut parser = parser_for_command::<Cli>("run");
        let matches = parser.try_get_matches_from_mut(line).map_err(refused)?;
        let cli = Cli::from_arg_matches(&matches).map_err(refused)?;
        if let (Some(command), Some((_, matches))) = (parser.find_subcommand("run"), matches.subcommand()) {
            command_line_secrets(command, matches).store_for_process();
        }
        let Command::Run(args) = &cli.command else {
            return Err(Failure::usage(
                "the other tool's command line (such as ab or wrk) was not translated into a plimsoll run command",
            ));
        };
        run::spec_from_args(args)
    }

    fn script(
        &self,
        url: &str,
        plan: &Plan,
        settings: &ExperimentSettings<String>,
    ) -> Result<Option<Arc<dyn WrkScript>>, Failure> {
        let scripted = ScriptRun::from_settings_with_url(Some(url), plan, settings)?;
        Ok(scripted.map(|scripted| -> Arc<dyn WrkScript> { Arc::new(ScriptAdapter(scripted)) }))
    }

    fn execute_load(
        &self,
        spec: RunSpec<Plan>,
        settings: &ExperimentSettings<String>,
        authoring: Option<Arc<dyn AuthorFactory>>,
    ) -> Result<Box<dyn FinishedLoad>, Failure> {
        Ok(Box::new(run::measure_load(spec, settings, authoring)?))
    }

    fn vegeta_page(&self, course: &VegetaTimeSeries, title: &str, points_max: usize) -> String {
        page::render(&attacks_page(course, title, points_max), if title.is_empty() { "vegeta" } else { title })
    }
}

impl FinishedLoad for MeasuredRun {
    fn run(&self) -> &Run {
        self.run()
    }

    fn is_generator_limited(&self) -> bool {
        Summary::from_run(self.run()).generator.is_limit
    }

    fn build_results_printer(&self) -> Result<PrintResults<'_>, Failure> {
        let results = Results::from_experiment(&self.experiment, self.path.as_deref())?;
        Ok(Box::new(move |as_json, in_full| results.print(as_json, in_full)))
    }

    fn write_notes(mut self: Box<Self>, notes: &[String]) {
        self.note.iter().chain(notes).for_each(|note| self.live.print_note(note));
    }
}

/// A wrk script that `plimsoll_study` runs. `plimsoll_compat` uses the script through `WrkScript`.
struct ScriptAdapter(ScriptRun);

impl WrkScript for ScriptAdapter {
    fn set_announcement(&self, text: String) {
        self.0.set_announcement(text);
    }

    fn flush(&self) {
        self.0.flush();
    }

    fn call_done(&self, figures: &RunFigures) -> Option<ScriptError> {
        self.0.call_done_function(figures)
    }

    fn author_factory(&self) -> Arc<dyn AuthorFactory + Send + Sync> {
        Arc::new(self.0.clone())
    }
}
