//! `plimsoll find`: the search for the load line.

use super::capture::{Capture, Like};
use super::first_answer;
use crate::args::FindArgs;
use crate::capacity::{self, Limits};
use crate::conduct::Conduct;
use crate::failure::{Failure, exit};
use crate::kept;
use crate::live::Live;
use crate::probes::{self, Watcher};
use crate::quantity::positive_time;
use crate::recording::Recording;
use crate::resolve::Base;
use crate::results::page::write_beside;
use crate::results::{Results, profiles as taken};
use crate::runner::ThisMachine;
use crate::traffic_file;
use plimsoll_analysis::find::{self, Demand, Forecast};
use plimsoll_analysis::{Finding, Settings, Slo, Study};
use plimsoll_model::units::parse_number;
use plimsoll_model::{Asked, Curve, FindAsked, LoadShape, Noted};
use plimsoll_report::chart::heading;
use plimsoll_report::format;

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
    traffic_file::rows_again(&base.plan)?;
    let mut plan = base.plan.clone();
    // The load is chosen later; what it may take of the machine is what an open load may.
    plan.load.shape = LoadShape::Open { rate: Curve::constant(1.0), arrivals: base.arrivals };
    let mut injector = base.injector.clone();
    let setup = capacity::fit(&mut plan, &mut injector, base.fixed, base.local, &Limits::of_machine())
        .map_err(|reason| Failure::usage(format!("--max-connections: {reason}")))?;
    plan.load.shape = base.plan.load.shape.clone();
    let (warning, first_answer_ns) = first_answer(&plan, &injector, args.request.no_preflight)?;
    let warnings: Vec<String> = warning.into_iter().collect();
    let profiles = Capture::of(&args.profiles, &base)?;
    let settings = Settings { base: plan.record(), slo, budget_ns, max_rate, arrivals: base.arrivals, first_answer_ns };
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
        profiles: profiles.as_ref().map(Capture::asked),
    });
    let noted = Noted { warnings, fitted: setup };
    let path = args.output.clone().unwrap_or_else(|| kept::new_path("find"));
    let mut study = Study::new(&asked).map_err(|error| Failure::usage(format!("--slo: {error}")))?;
    let recording = Recording::begin(asked, noted, base.local, &injector, Some(&path))?;
    let mut runner = ThisMachine::new(watcher, plan, injector, None);
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
        Capture::hint(&base, &mut conduct.live);
        if args.probes.metrics.is_none()
            && !args.probes.no_probes
            && let Some(place) = probes::served_by(&base.plan)
        {
            conduct.live.line(&format!("the target tells of itself at {place}: --metrics keeps that beside the load"));
        }
    }
    let (experiment, note, mut live) = conduct.end(None);
    let results = Results::of(&experiment, Some(&path))?;
    results.print(args.out.json, !live.lines_seen());
    let page = write_beside(&path, &experiment);
    for note in
        page.into_iter().chain(note).chain(kept::tidy(&path)).chain(results.profiles.as_ref().and_then(taken::note))
    {
        live.note(&note);
    }
    let Finding::Find(found) = results.finding() else { return Err(Failure::start("the run file holds no search")) };
    let cpu_ns = found.cpu_us().map(|us| us * 1e3);
    let crossed: Vec<String> = fail_if
        .iter()
        .filter_map(|demand| {
            demand.crossed(&found.findings, cpu_ns).map(|figure| format!("--fail-if {demand}: {figure}"))
        })
        .collect();
    crossed.iter().for_each(|sentence| live.note(sentence));
    Ok(match (plimsoll_sys::signal::interrupted(), crossed.is_empty()) {
        (true, _) => exit::INTERRUPTED,
        (false, true) if found.findings.load_line_rps.lower > 0.0 => exit::DONE,
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
