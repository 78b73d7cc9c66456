//! `plimsoll find`: the search for the load line.

use super::capture::Like;
use super::search::{Flags, Prepared, hint};
use crate::args::FindArgs;
use crate::conduct::Conduct;
use crate::failure::{Failure, exit};
use crate::kept;
use crate::live::Live;
use crate::probes::Effort;
use crate::quantity::positive_time;
use crate::recording::Recording;
use crate::results::page::write_beside;
use crate::results::{Results, profiles as taken};
use crate::runner::ThisMachine;
use plimsoll_analysis::find::{self, Demand, Forecast};
use plimsoll_analysis::{Finding, Settings, Study};
use plimsoll_model::Asked;
use plimsoll_report::chart::heading;
use plimsoll_report::format;

/// Searches, reports, and says with which code to end.
pub fn run(args: &FindArgs) -> Result<u8, Failure> {
    let budget_ns = positive_time("--budget", &args.budget)?;
    let fail_if = args.fail_if.as_deref().map(Demand::parse_list).transpose();
    let fail_if = fail_if.map_err(|e| Failure::usage(format!("--fail-if: {e}")))?.unwrap_or_default();
    let flags = Flags {
        request: &args.request,
        generator: &args.generator,
        probes: &args.probes,
        profiles: &args.profiles,
        slo: &args.slo,
        max_rate: args.max_rate.as_deref(),
    };
    let prepared = Prepared::of(&flags, budget_ns, Effort::Little)?;
    let asked = Asked::Find(prepared.asked());
    let Prepared { base, plan, injector, settings, profiles, noted, watcher } = prepared;
    let mut live = Live::new(args.out.quiet);
    live.line(&question(&settings, &find::forecast(&settings)));

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
    hint(&flags, &base, &mut conduct.live);
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
