//! What a run file of a search holds.

use super::{print_json, print_profiles, print_report};
use crate::failure::Failure;
use plimsoll_analysis::study::search::outcome;
use plimsoll_analysis::{AtLine, Findings, Settings, Slo, find};
use plimsoll_model::{Asked, Experiment, FindAsked, Purpose, Run};
use plimsoll_report::chart::heading;
use plimsoll_report::load_profiles::{Profiles, profiles_document};
use plimsoll_report::{
    Around, Report, RunContext, ServerView, add_server, find_page, find_report, json, server_document,
};

/// The settings of a recorded search.
fn settings(asked: &Asked) -> Result<Settings, Failure> {
    let Asked::Find(find) = asked else { return Err(Failure::start("the run file holds no search")) };
    let slo = Slo::parse(&find.slo).map_err(|e| Failure::start(format!("the run file's SLO: {e}")))?;
    let FindAsked { base, budget_ns, max_rate, arrivals, first_answer_ns, .. } = find.clone();
    Ok(Settings { base, slo, budget_ns, max_rate, arrivals, first_answer_ns })
}

/// The findings of a recorded search, computed from what was measured.
fn concluded(experiment: &Experiment) -> Result<(Settings, Findings, ServerView<'_>), Failure> {
    let settings = settings(&experiment.asked)?;
    let (profiled, searched): (Vec<_>, Vec<_>) =
        experiment.trials.iter().partition(|trial| trial.tag.purpose == Purpose::Profile);
    let judged = searched.into_iter().filter_map(|trial| Some((trial, outcome(trial, &settings.slo)?)));
    let (whole, history): (Vec<_>, Vec<_>) = judged.unzip();
    let latest_ns = || experiment.trials.iter().map(|t| t.start_ns + t.run.duration_ns()).max().unwrap_or(0);
    // The search was over when profiles began to be taken.
    let began_ns = profiled.first().map(|trial| trial.start_ns);
    let elapsed_ns = began_ns.or(experiment.elapsed_ns).unwrap_or_else(latest_ns);
    let findings = find::conclude(&settings, &history, elapsed_ns);
    let runs: Vec<&Run> = whole.iter().map(|trial| &trial.run).collect();
    let (used, from) = match AtLine::of(&findings, &runs) {
        Ok(at) => (Ok(at.used), Some(at.from)),
        Err(reason) => (Err(reason), None),
    };
    Ok((settings, findings, ServerView { used, from, runs }))
}

/// Prints a search that was concluded; gives its findings.
pub fn show_found(
    experiment: &Experiment,
    as_json: bool,
    with_trials: bool,
    profiles: Option<&Profiles>,
) -> Result<Findings, Failure> {
    let (settings, findings, server) = concluded(experiment)?;
    if as_json {
        print_json(&written(experiment, &settings, &findings, &server, profiles));
    } else {
        let mut report = find_report(experiment, &context(experiment, &settings), &findings, with_trials);
        add_server(&mut report, &server);
        print_report(&report);
        print_profiles(profiles);
    }
    Ok(findings)
}

/// What stands around the figures of a search.
fn context<'a>(experiment: &'a Experiment, settings: &'a Settings) -> RunContext<'a> {
    RunContext {
        plan: &settings.base,
        injectors: &experiment.environment.injectors,
        cores: experiment.environment.cores,
        local: experiment.environment.target_local,
        warnings: &experiment.noted.warnings,
        setup: &experiment.noted.fitted,
    }
}

/// The document of a search that was concluded.
fn written(
    experiment: &Experiment,
    settings: &Settings,
    findings: &Findings,
    server: &ServerView,
    profiles: Option<&Profiles>,
) -> serde_json::Value {
    let mut document = json::find(experiment, &context(experiment, settings), findings);
    document["fitted"] = experiment.noted.fitted.clone().into();
    document["server"] = server_document(server);
    document["profiles"] = profiles.map(profiles_document).into();
    document
}

/// Prints the result of a recorded search.
pub fn show(experiment: &Experiment, profiles: Option<&Profiles>) -> Result<(), Failure> {
    show_found(experiment, false, true, profiles).map(|_| ())
}

/// The page of a recorded search.
pub fn page(experiment: &Experiment, around: &Around) -> Result<Report, Failure> {
    let (settings, findings, server) = concluded(experiment)?;
    Ok(find_page(experiment, &context(experiment, &settings), (&findings, &server), around))
}

/// The request of a recorded search in a few words, and its findings.
pub fn found(experiment: &Experiment) -> Result<(String, Findings), Failure> {
    let (settings, findings, _) = concluded(experiment)?;
    Ok((heading::target(&settings.base), findings))
}

/// What a recorded search found, to be compared with another.
pub struct RecordedSearch {
    /// The URL searched, without secrets.
    pub url: String,
    pub findings: Findings,
    /// CPU time of the server for each request at the line, us, where it was seen.
    pub cpu_us: Option<f64>,
}

/// What a recorded search found.
pub fn searched(experiment: &Experiment) -> Result<RecordedSearch, Failure> {
    let (settings, findings, server) = concluded(experiment)?;
    let cpu_us = server.used.ok().and_then(|used| used.cpu_us_per_request());
    Ok(RecordedSearch { url: settings.base.traffic.url(), findings, cpu_us })
}

/// The JSON document of a recorded search.
pub fn document(experiment: &Experiment, profiles: Option<&Profiles>) -> Result<serde_json::Value, Failure> {
    let (settings, findings, server) = concluded(experiment)?;
    Ok(written(experiment, &settings, &findings, &server, profiles))
}
