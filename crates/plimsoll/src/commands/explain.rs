//! `plimsoll explain`: names the bottleneck that limits the load line of a target or of a recorded
//! search.

use super::search::{self, PreparedSearch};
use crate::args::ExplainArgs;
use crate::live::ProgressDisplay;
use crate::plan_from_args;
use crate::results::{Results, read_run_file};
use plimsoll_analysis::Finding;
use plimsoll_analysis::study::search::search_part_ns;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::{ExperimentSettings, ExperimentSpec, ExplainSpec, Intervention, Plan};
use plimsoll_probe::ProbeEffort;
use plimsoll_report::questions::explain_question;
use plimsoll_study::interventions;
use plimsoll_study::quantity::parse_positive_time;
use plimsoll_study::runner::{PlanChange, process_pauser};
use std::path::Path;

/// Returns the path of the run file to explain, if the arguments name one in place of a target.
pub fn run_file_path(args: &ExplainArgs) -> Option<&Path> {
    let is_file = |word: &&str| word.ends_with(".plimsoll") && !word.contains("://");
    args.search.request.url.as_deref().filter(is_file).map(Path::new)
}

/// Converts the flags to a study of the bottleneck.
pub fn spec_from_args(args: &ExplainArgs) -> Result<(ExplainSpec<Plan>, ExperimentSettings<String>), Failure> {
    let budget_ns = parse_positive_time("--budget", &args.budget)?;
    let (search, mut settings) = search::spec_from_args(&args.search, search_part_ns(budget_ns))?;
    settings.output = plan_from_args::stored_output_settings(&args.out, args.output.as_deref(), &args.place)?;
    settings.fleet = plan_from_args::fleet_settings(&args.fleet, &search.base, &settings)?;
    settings.interventions = args.interventions.intervention_settings()?;
    let mut interventions = interventions::interventions_possible_before_load(&search.base, &settings)?;
    if search.max_rate.is_some() {
        // The experiments of explain use closed loops, which send as fast as the server responds
        // and could therefore exceed --max-rate. With --max-rate, explain makes no experiments.
        interventions.clear();
    }
    let requested_interventions =
        interventions::explicitly_requested_interventions(&interventions, &settings.interventions);
    let setting_values = args.interventions.parse_setting_values()?;
    Ok((ExplainSpec { search, budget_ns, interventions, requested_interventions, setting_values }, settings))
}

/// Executes the study and prints the explanation. Returns the exit code.
pub fn carry_out(spec: ExplainSpec<Plan>, settings: &ExperimentSettings<String>) -> Result<u8, Failure> {
    let ExplainSpec { search, budget_ns, interventions, requested_interventions, setting_values } = spec;
    let prepared = PreparedSearch::prepare(search, settings, ProbeEffort::Thorough)?;
    let pausable_processes = match interventions.contains(&Intervention::DependencyPauses) {
        true => process_pauser::find_pausable_processes(settings, &prepared.target)?,
        false => Vec::new(),
    };
    let variants =
        interventions::intervention_variants(&interventions, (&prepared.plan, &prepared.injector), settings)?;
    let interventions = interventions::possible_interventions(&interventions, &variants);
    let requested_interventions =
        requested_interventions.into_iter().filter(|change| interventions.contains(change)).collect();
    let asked = ExperimentSpec::Explain(ExplainSpec {
        search: prepared.search_spec(),
        budget_ns,
        interventions,
        requested_interventions,
        setting_values,
    });
    let variants = variants.into_iter().map(|(change, variant)| (PlanChange::Intervention(change), variant)).collect();
    let prepared = PreparedSearch { variants, pausable_processes, ..prepared };
    let mut live = ProgressDisplay::new(settings.output.quiet);
    live.print_line_unless_quiet(&explain_question(&prepared.settings, budget_ns));
    prepared.carry_out(asked, settings, live, |finding, _| exit_code(finding))
}

/// Returns the exit code: an explanation that names no bottleneck is a failure.
fn exit_code(finding: &Finding) -> u8 {
    match finding {
        Finding::Explain(found) if !found.explanation.abstained => exit::SUCCESS,
        _ => exit::NEGATIVE_RESULT,
    }
}

/// Explains the search recorded in a run file. Returns the exit code.
pub fn explain_run_file(args: &ExplainArgs) -> Result<u8, Failure> {
    let file = run_file_path(args).unwrap_or(Path::new(""));
    let experiment = read_run_file(file)?;
    let Some(results) = Results::explain_recorded_search(&experiment, Some(file))? else {
        return Err(Failure::usage(format!(
            "'{recording}' contains no load line to explain; plimsoll explain URL searches for the load line first",
            recording = file.display()
        )));
    };
    results.print(&args.out.to_settings(None)?, true);
    Ok(exit_code(results.finding()))
}
