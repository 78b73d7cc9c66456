//! `plimsoll find`: the search for the load line.

use super::capture::{self, Like, Wanted};
use super::{first_answer, print_json, print_profiles, print_report, report};
use crate::args::FindArgs;
use crate::capacity::{self, Limits};
use crate::conduct::Conduct;
use crate::failure::{Failure, exit};
use crate::kept;
use crate::live::Live;
use crate::meant::{Base, positive_time};
use crate::probes::{self, Watcher};
use crate::recording::Recording;
use crate::runner::ThisMachine;
use plimsoll_analysis::find::{self, Demand, Forecast};
use plimsoll_analysis::study::search::outcome;
use plimsoll_analysis::{AtLine, Findings, Settings, Slo, Study};
use plimsoll_model::units::parse_number;
use plimsoll_model::{Asked, Curve, Experiment, FindAsked, LoadShape, Noted, Purpose, Run};
use plimsoll_report::chart::heading;
use plimsoll_report::levels::{Profiles, levels_document};
use plimsoll_report::{
    Around, Report, RunContext, ServerView, add_server, find_page, find_report, format, json, server_document,
};

/// The settings of a recorded search.
fn settings(asked: &Asked) -> Result<Settings, Failure> {
    let Asked::Find(find) = asked else { return Err(Failure::start("the run file holds no search")) };
    let slo = Slo::parse(&find.slo).map_err(|e| Failure::start(format!("the run file's SLO: {e}")))?;
    let FindAsked { base, budget_ns, max_rate, arrivals, first_answer_ns, .. } = find.clone();
    Ok(Settings { base, slo, budget_ns, max_rate, arrivals, first_answer_ns })
}

/// Searches, reports, and says with which code to end.
pub fn run(args: &FindArgs) -> Result<u8, Failure> {
    let slo = Slo::parse(&args.slo).map_err(|e| Failure::usage(format!("--slo: {e}")))?;
    let budget_ns = positive_time("--budget", &args.budget)?;
    let max_rate = match &args.max_rate {
        None => None,
        Some(text) => match parse_number(text).map_err(|e| Failure::usage(format!("--max-rate: {e}")))? {
            rate if rate > 0.0 => Some(rate),
            _ => return Err(Failure::usage("--max-rate: must be more than 0")),
        },
    };
    let fail_if = args.fail_if.as_deref().map(Demand::parse_list).transpose();
    let fail_if = fail_if.map_err(|e| Failure::usage(format!("--fail-if: {e}")))?.unwrap_or_default();
    let base = Base::new(&args.request, &args.generator)?;
    let mut plan = base.plan.clone();
    // The load is chosen later; what it may take of the machine is what an open load may.
    plan.load.shape = LoadShape::Open { rate: Curve::constant(1.0), arrivals: base.arrivals };
    let mut injector = base.injector.clone();
    let setup = capacity::fit(&mut plan, &mut injector, base.fixed, base.local, &Limits::of_machine())
        .map_err(|reason| Failure::usage(format!("--max-connections: {reason}")))?;
    plan.load.shape = base.plan.load.shape.clone();
    let (warning, first_answer_ns) = first_answer(&plan, &injector, args.request.no_preflight)?;
    let warnings: Vec<String> = warning.into_iter().collect();
    let profiles = Wanted::of(&args.profiles, &args.request)?;
    let settings = Settings { base: plan, slo, budget_ns, max_rate, arrivals: base.arrivals, first_answer_ns };
    let watcher = Watcher::begin(&args.probes, &base)?;
    let mut live = Live::new(args.out.quiet);
    let forecast = find::forecast(&settings);
    live.line(&question(&settings, &forecast));

    let asked = Asked::Find(FindAsked {
        base: settings.base.clone(),
        slo: settings.slo.to_string(),
        budget_ns,
        max_rate,
        arrivals: base.arrivals,
        first_answer_ns,
        profiles: profiles.as_ref().map(Wanted::asked),
    });
    let noted = Noted { warnings, fitted: setup };
    let path = args.output.clone().unwrap_or_else(|| kept::new_path("find"));
    let mut study = Study::new(&asked).map_err(|error| Failure::usage(format!("--slo: {error}")))?;
    let recording = Recording::begin(asked, noted, base.local, &injector, Some(&path))?;
    let mut runner = ThisMachine::new(watcher, injector, None);
    let mut conduct = Conduct::new(&mut runner, recording, live);
    conduct.carry_out(&mut study, &mut |_, _| ())?;
    if let (Some(wanted), Study::Find(search)) = (&profiles, &study) {
        let line_rps = search.so_far(conduct.runner.elapsed_ns()).lower;
        let like = Like { plan: &settings.base, arrivals: base.arrivals };
        wanted.capture(&mut conduct, &like, line_rps, &path)?;
    }
    // Hints are about addresses, which a unix socket has none of.
    let addressed = base.plan.carriage.unix.is_none();
    if profiles.is_none() && addressed && base.local && !plimsoll_sys::signal::interrupted() {
        Wanted::hint(&args.request, &mut conduct.live);
        if args.probes.metrics.is_none()
            && !args.probes.no_probes
            && let Some(place) = probes::served_by(&settings.base)
        {
            conduct.live.line(&format!("the target tells of itself at {place}: --metrics keeps that beside the load"));
        }
    }
    let (experiment, note, mut live) = conduct.end(None);
    let profiles = capture::read_back(&experiment, Some(&path));
    let findings = show_found(&experiment, args.out.json, !live.lines_seen(), profiles.as_ref())?;
    let page = report::write_beside(&path, &experiment);
    for note in page.into_iter().chain(note).chain(kept::tidy(&path)).chain(profiles.as_ref().and_then(capture::note)) {
        live.note(&note);
    }
    let found = findings.load_line_rps.lower > 0.0;
    let cpu_ns = searched(&experiment)?.cpu_us.map(|us| us * 1e3);
    let crossed: Vec<String> = fail_if
        .iter()
        .filter_map(|demand| demand.crossed(&findings, cpu_ns).map(|figure| format!("--fail-if {demand}: {figure}")))
        .collect();
    crossed.iter().for_each(|sentence| live.note(sentence));
    Ok(match (plimsoll_sys::signal::interrupted(), crossed.is_empty()) {
        (true, _) => exit::INTERRUPTED,
        (false, true) if found => exit::DONE,
        (false, _) => exit::CROSSED,
    })
}

/// What is going to be found out, in a sentence.
fn question(settings: &Settings, forecast: &Forecast) -> String {
    format!(
        "looking for the highest rate at which {} holds {}: {} at most, which can tell it to about {:.0} %",
        heading::target(&settings.base),
        settings.slo,
        format::duration(settings.budget_ns as f64),
        (forecast.width * 100.0).max(1.0),
    )
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

fn show_found(
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
    document["profiles"] = profiles.map(levels_document).into();
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
pub struct Found {
    /// The URL searched, without secrets.
    pub url: String,
    pub findings: Findings,
    /// CPU time of the server for each request at the line, us, where it was seen.
    pub cpu_us: Option<f64>,
}

/// What a recorded search found.
pub fn searched(experiment: &Experiment) -> Result<Found, Failure> {
    let (settings, findings, server) = concluded(experiment)?;
    let cpu_us = server.used.ok().and_then(|used| used.cpu_us_per_request());
    Ok(Found { url: settings.base.traffic.url_redacted(), findings, cpu_us })
}

/// The JSON document of a recorded search.
pub fn document(experiment: &Experiment, profiles: Option<&Profiles>) -> Result<serde_json::Value, Failure> {
    let (settings, findings, server) = concluded(experiment)?;
    Ok(written(experiment, &settings, &findings, &server, profiles))
}
