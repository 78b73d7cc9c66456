//! `plimsoll find`: the search for the load line.

use super::search::{Flags, PreparedSearch, hint};
use crate::args::FindArgs;
use crate::asking;
use crate::conduct::Conduct;
use crate::failure::{Failure, exit};
use crate::kept;
use crate::live::Live;
use crate::probes::Effort;
use crate::quantity::{flag, positive_time};
use crate::recording::Recording;
use crate::results::page::write_beside;
use crate::results::{Results, profiles as taken};
use crate::runner::ThisMachine;
use plimsoll_analysis::find::{self, Demand, Forecast};
use plimsoll_analysis::{Finding, Settings, Study};
use plimsoll_model::{Asked, FindAsked, Plan, Terms};
use plimsoll_report::chart::heading;
use plimsoll_report::{format, spelled};
use std::path::PathBuf;

/// What the flags ask for.
pub fn asked(args: &FindArgs) -> Result<(FindAsked<Plan>, Terms<String>), Failure> {
    let flags = Flags {
        request: &args.request,
        generator: &args.generator,
        probes: &args.probes,
        profiles: &args.profiles,
        slo: &args.slo,
        max_rate: args.max_rate.as_deref(),
    };
    let (asked, mut terms) = flags.asked(positive_time("--budget", &args.budget)?)?;
    if let Some(text) = &args.fail_if {
        demands(text)?;
    }
    terms.fail_if.clone_from(&args.fail_if);
    terms.output = asking::output(&args.out, args.output.as_deref())?;
    Ok((asked, terms))
}

/// The demands of --fail-if.
fn demands(text: &str) -> Result<Vec<Demand>, Failure> {
    flag("--fail-if", Demand::parse_list(text).map_err(|error| spelled(&error.sentence())))
}

/// Searches, reports, and says with which code to end.
pub fn carry_out(asked: FindAsked<Plan>, terms: &Terms<String>) -> Result<u8, Failure> {
    let fail_if = terms.fail_if.as_deref().map(demands).transpose()?;
    let fail_if = fail_if.unwrap_or_default();
    let prepared = PreparedSearch::of(asked, terms, Effort::Little)?;
    let asked = Asked::Find(prepared.asked());
    let PreparedSearch { base, plan, injector, settings, profiles, noted, watcher } = prepared;
    let mut live = Live::new(terms.output.quiet);
    live.line(&question(&settings, &find::forecast(&settings)));

    let path = terms.output.file.as_ref().map_or_else(|| kept::new_path("find"), PathBuf::from);
    let mut study = Study::new(&asked).map_err(|error| Failure::usage(format!("--slo: {error}")))?;
    let recording = Recording::begin(asked, terms, noted, base.local, &injector, Some(&path))?;
    let mut runner = ThisMachine::new(watcher, plan, injector, None);
    let mut conduct = Conduct::new(&mut runner, recording, live);
    conduct.profiler = profiles.map(|wanted| wanted.profiler(&path));
    conduct.carry_out(&mut study, &mut |_, _| ())?;
    hint(terms, &base, &mut conduct.live);
    let (experiment, note, mut live) = conduct.end(None);
    let results = Results::of(&experiment, Some(&path))?;
    results.print(terms.output.json, !live.lines_seen());
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
