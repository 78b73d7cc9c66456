//! What a run file of one load holds.

use super::{print_json, print_profiles, print_report};
use crate::failure::Failure;
use plimsoll_analysis::Summary;
use plimsoll_model::{Experiment, Run};
use plimsoll_report::load_profiles::{Profiles, profiles_document};
use plimsoll_report::{
    Around, Report, RunContext, ServerView, add_server, json, run_page, run_report, server_document,
};

/// Prints the result of a recorded run.
pub fn show(experiment: &Experiment, as_json: bool, profiles: Option<&Profiles>) -> Result<(), Failure> {
    if as_json {
        print_json(&document(experiment, profiles)?);
        return Ok(());
    }
    let (trial, summary) = only_trial(experiment)?;
    let context = context(experiment, &trial.run);
    let mut report = run_report(&context, &summary);
    add_server(&mut report, &ServerView::of(&trial.run));
    print_report(&report);
    print_profiles(profiles);
    Ok(())
}

/// The JSON document of a recorded run.
pub fn document(experiment: &Experiment, profiles: Option<&Profiles>) -> Result<serde_json::Value, Failure> {
    let (trial, summary) = only_trial(experiment)?;
    let mut document = json::run(experiment, &context(experiment, &trial.run), &summary);
    document["fitted"] = experiment.noted.fitted.clone().into();
    document["server"] = server_document(&ServerView::of(&trial.run));
    document["profiles"] = profiles.map(profiles_document).into();
    Ok(document)
}

/// The page of a recorded run.
pub fn page(experiment: &Experiment, around: &Around) -> Result<Report, Failure> {
    let (trial, _) = only_trial(experiment)?;
    let context = context(experiment, &trial.run);
    Ok(run_page(experiment, &context, trial, around))
}

/// What stands around the figures of a run.
fn context<'a>(experiment: &'a Experiment, run: &'a Run) -> RunContext<'a> {
    RunContext {
        plan: &run.plan,
        injectors: &run.injectors,
        cores: experiment.environment.cores,
        local: experiment.environment.target_local,
        warnings: &experiment.noted.warnings,
        setup: &experiment.noted.fitted,
    }
}

fn only_trial(experiment: &Experiment) -> Result<(&plimsoll_model::Trial, Summary), Failure> {
    let trial = experiment.trials.first().ok_or_else(|| Failure::start("the run file was cut before its run began"))?;
    Ok((trial, Summary::of(&trial.run)))
}
