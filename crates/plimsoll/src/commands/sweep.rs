//! `plimsoll sweep`: measures throughput and latency at several concurrencies (numbers of users).
//! `plimsoll_analysis::study` chooses the next load and its length.

use super::{note_ports_in_time_wait, run_preflight};
use crate::args::{SweepArgs, join_conditions};
use crate::event_stream;
use crate::live::ProgressDisplay;
use crate::pictures::write_chart;
use crate::plan_from_args;
use crate::results::page::write_page_beside;
use crate::results::{Results, typed_url};
use crate::study_screen::StudyScreen;
use plimsoll_analysis::finding::SweepLevel;
use plimsoll_analysis::levels::LEVEL_TIME_NS_MIN;
use plimsoll_analysis::{Conditions, Finding, Study};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::units::{MS, SECOND, parse_duration_ns};
use plimsoll_model::{
    Experiment, ExperimentSettings, ExperimentSpec, LevelDurations, LoadPurpose, Plan, StartNotes, SweepSpec,
};
use plimsoll_probe::ProbeEffort;
use plimsoll_report::chart::PICTURE_SUFFIX;
use plimsoll_report::repeat_command;
use plimsoll_report::{ROUTES_MAX, dat_line, format, route_tables, sweep_charts};
use plimsoll_study::base::ResolvedTarget;
use plimsoll_study::capacity::ConnectionLimits;
use plimsoll_study::fields::path_text;
use plimsoll_study::gate::Gate;
use plimsoll_study::output;
use plimsoll_study::output::write_file;
use plimsoll_study::quantity::{parse_positive_time, parse_user_counts, with_flag_name};
use plimsoll_study::recording::Recording;
use plimsoll_study::result_store;
use plimsoll_study::runner::LocalMachineRunner;
use plimsoll_study::runner::machine::LoadFitter;
use plimsoll_study::script_run::{ScriptRun, into_author_factory};
use plimsoll_study::study_loop::{StepOutcome, StudyLoop};
use plimsoll_study::traffic_file;
use plimsoll_sys::output_file;
use plimsoll_sys::system_text;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The concurrencies (numbers of users) of --full, in order.
const FULL_SWEEP_USERS: [u64; 10] = [200, 500, 1000, 3000, 5000, 10_000, 15_000, 20_000, 25_000, 50_000];
/// The time for each concurrency of --full, ns (300 s).
const FULL_SWEEP_LEVEL_NS: u64 = 300 * SECOND;
/// The largest number of users of a sweep without --full and -c, in which the number of users
/// doubles from 1 on.
const DOUBLED_USERS_MAX: u64 = 512;
/// The time for each concurrency chosen with -c, unless --for sets it, ns (10 s).
const LISTED_LEVEL_DEFAULT_NS: u64 = 10 * SECOND;
/// Total time of a sweep without -c, --for and --full, ns (60 s).
const SWEEP_BUDGET_DEFAULT_NS: u64 = 60 * SECOND;
/// The warm-up before the measured part of each load, ns (200 ms). The measured figures exclude the
/// warm-up, because the connections have only just been opened.
const WARMUP_DEFAULT_NS: u64 = 200 * MS;

/// The concurrencies, the durations and the warm-up that the flags ask for.
#[derive(Debug)]
struct LevelsSpec {
    users: Vec<u64>,
    lengths: LevelDurations,
    warmup_ns: u64,
}

impl LevelsSpec {
    fn from_args(args: &SweepArgs) -> Result<LevelsSpec, Failure> {
        let time =
            |flag: &str, text: &Option<String>| text.as_deref().map(|text| parse_positive_time(flag, text)).transpose();
        let (each_ns, budget_ns) = (time("--for", &args.level_time)?, time("--budget", &args.budget)?);
        if args.full && args.concurrency.is_some() {
            return Err(Failure::usage("--full and --concurrency: both choose the user counts; leave one out"));
        }
        if budget_ns.is_some() && (each_ns.is_some() || args.full) {
            let flag = if args.full { "--full" } else { "--for" };
            return Err(Failure::usage(format!(
                "--budget and {flag}: both set how long each user count is measured; leave one out"
            )));
        }
        let chosen = args.concurrency.as_deref().map(|text| parse_user_counts("--concurrency", text)).transpose()?;
        let lengths = match (each_ns, budget_ns, args.full) {
            (Some(ns), ..) => LevelDurations::Fixed(ns),
            (None, Some(ns), _) => LevelDurations::Budget(ns),
            (None, None, true) => LevelDurations::Fixed(FULL_SWEEP_LEVEL_NS),
            (None, None, false) if chosen.is_some() => LevelDurations::Fixed(LISTED_LEVEL_DEFAULT_NS),
            (None, None, false) => LevelDurations::Budget(SWEEP_BUDGET_DEFAULT_NS),
        };
        let levels = match (chosen, args.full) {
            (Some(chosen), _) => chosen,
            (None, true) => FULL_SWEEP_USERS.to_vec(),
            (None, false) => std::iter::successors(Some(1), |users| Some(users * 2))
                .take_while(|u| *u <= DOUBLED_USERS_MAX)
                .collect(),
        };
        if let LevelDurations::Budget(ns) = lengths
            && ns < levels.len() as u64 * LEVEL_TIME_NS_MIN
        {
            return Err(Failure::usage(format!(
                "--budget: {user_counts} user counts need at least {duration}; give more time, or fewer user counts \
                 with -c",
                user_counts = levels.len(),
                duration = format::duration((levels.len() as u64 * LEVEL_TIME_NS_MIN) as f64)
            )));
        }
        let warmup_ns = match (&args.warmup, lengths) {
            (Some(text), _) => parse_duration_ns(text).map_err(|e| Failure::usage(format!("--warmup: {e}")))?,
            (None, _) => WARMUP_DEFAULT_NS,
        };
        Ok(LevelsSpec { users: levels, lengths, warmup_ns })
    }
}

/// Converts the flags to a sweep.
pub fn spec_from_args(args: &SweepArgs) -> Result<(SweepSpec<Plan>, ExperimentSettings<String>), Failure> {
    let LevelsSpec { users, lengths, warmup_ns } = LevelsSpec::from_args(args)?;
    let fail_if = join_conditions(&args.fail_if)
        .as_deref()
        .map(|text| with_flag_name("--fail-if", Conditions::parse(text)))
        .transpose()?;
    if args.name.is_empty() || args.name.contains('/') {
        return Err(Failure::usage("--name: give a file name without '/'; --dir sets the folder"));
    }
    let (base, mut settings) = plan_from_args::plan_for_url(&args.request, &args.generator, &args.script)?;
    let routes = base.traffic.record().routes;
    with_flag_name("--fail-if", fail_if.as_ref().map_or(Ok(()), |conditions| conditions.check_routes(&routes)))?;
    traffic_file::refuse_unique_rows(&base)?;
    if args.generator.arrivals.is_some() || args.request.max_connections.is_some() {
        return Err(Failure::usage(
            "--arrivals and --max-connections: these flags need an open loop (a rate), and a sweep is a closed loop \
             (users); leave both flags out",
        ));
    }
    settings.fleet = plan_from_args::fleet_settings(&args.fleet, &base, &settings)?;
    settings.probes = plan_from_args::probe_settings(&args.probes)?;
    settings.fail_if = fail_if.as_ref().map(ToString::to_string);
    settings.on_inconclusive = plan_from_args::verdict_when_inconclusive(&args.inconclusive);
    settings.output = args.out.to_settings(None)?;
    settings.output.files = Some((path_text("--dir", &args.dir)?, args.name.clone()));
    Ok((SweepSpec { base, levels: users, lengths, warmup_ns }, settings))
}

/// Executes the sweep, prints its results and writes tables and charts. Returns the exit code.
pub fn carry_out(spec: SweepSpec<Plan>, settings: &ExperimentSettings<String>) -> Result<u8, Failure> {
    let SweepSpec { base: plan, levels: users, lengths, warmup_ns } = spec;
    let fail_if =
        settings.fail_if.as_deref().map(|text| with_flag_name("--fail-if", Conditions::parse(text))).transpose()?;
    let (folder, name) =
        settings.output.files.clone().unwrap_or_else(|| (result_store::FOLDER.to_owned(), "sweep".to_owned()));
    let stem = Path::new(&folder).join(name);
    let mut base = ResolvedTarget::resolve_target(&plan, settings)?;
    let noted: Vec<String> = run_preflight(&mut base.plan, &base.injector, settings)?;
    let source = plimsoll_fleet::start_reading_source(&base, settings, ProbeEffort::Little)?;
    let mut live = ProgressDisplay::new(settings.output.quiet);
    noted.iter().for_each(|warning| live.print_note(&format!("warning: {warning}")));
    let (run_path, dat_path) = (output_path(&stem, ".plimsoll"), output_path(&stem, ".dat"));
    let asked =
        ExperimentSpec::Sweep(SweepSpec { base: base.plan.record(), levels: users.clone(), lengths, warmup_ns });
    let mut study = Study::new(&asked).map_err(|error| Failure::usage(error.to_string()))?;
    let fleet = plimsoll_fleet::connect_fleet(&[&base.plan], settings)?;
    let before = StartNotes { warnings: noted.clone(), adjustments: Vec::new() };
    let recording = Recording::begin(
        asked,
        settings,
        before,
        base.local,
        &base.injector,
        Some(&run_path),
        repeat_command::repeat_command_words,
    )?;
    let cannot = |e: std::io::Error| {
        Failure::cannot_start(format!("'{}' cannot be written: {}", dat_path.display(), system_text(&e)))
    };
    let mut dat = output_file::create(&dat_path).map_err(cannot)?;
    let (plan, injector) = (base.plan.clone(), base.injector.clone());
    let typed = typed_url(&plan);
    let moves = settings.preflight && fleet.is_none();
    let fitting = LoadFitter { base, limits: ConnectionLimits::limits_of_machine() };
    let scripted = ScriptRun::from_settings(&plan, settings)?;
    let mut runner = LocalMachineRunner::new(source, plan, injector, Some(fitting));
    runner = runner
        .with_request_script(scripted.map(into_author_factory))
        .with_source_address_changes(moves)
        .with_fleet(fleet);
    let mut study_loop = StudyLoop::new(&mut runner, recording, StudyScreen::new(live));
    event_stream::attach_if_requested(&mut study_loop, &settings.output);
    study_loop.run_study(&mut study, &mut |done, screen| {
        let StepOutcome::Measured(trial) = done else { return };
        let Some(level) =
            Some(trial).filter(|it| it.tag.purpose == LoadPurpose::Level).and_then(SweepLevel::from_single_load)
        else {
            return;
        };
        if let Ok(figures) = &level.outcome {
            note_ports_in_time_wait(&mut screen.live, &figures.summary);
        }
        // If the table cannot be written, the sweep continues: its measurements are still useful.
        if let Some(line) = dat_line(&level)
            && let Err(error) = dat.write_all(line.as_bytes())
        {
            output::record_write_failure(cannot(error).to_string());
        }
    })?;
    let (experiment, note, StudyScreen { mut live, .. }) = study_loop.end(None);
    let results = Results::from_experiment(&experiment, Some(&run_path))?.with_typed_url(typed);
    let Finding::Sweep(found) = results.finding() else {
        return Err(Failure::cannot_start("the run file contains no sweep (one load for each user count)"));
    };
    // During the sweep, the table has one line of text for each load. The final table has one line
    // for each concurrency.
    let lines: String = found.levels.iter().filter_map(dat_line).collect();
    if let Err(error) = output_file::write(&dat_path, lines.as_bytes()) {
        output::record_write_failure(cannot(error).to_string());
    }
    results.print(&settings.output, true);
    live.print_note(&format!("table: {}", dat_path.display()));
    match write_tables_by_route(&stem, &found.levels) {
        Ok(note) => note.iter().for_each(|note| live.print_note(note)),
        Err(failure) => output::record_write_failure(failure.to_string()),
    }
    match write_charts(&stem, &experiment, &found.levels) {
        Ok(paths) => paths.iter().for_each(|path| live.print_note(&format!("chart: {path}"))),
        Err(failure) => output::record_write_failure(failure.to_string()),
    }
    for note in write_page_beside(&run_path, &experiment).into_iter().chain(note) {
        live.print_note(&note);
    }
    let (gate, notes) = fail_if.map(|conditions| Gate::judge_at_peak(&conditions, found)).unwrap_or_default();
    notes.iter().for_each(|note| live.print_note(note));
    let anything = found.measured_levels().iter().any(|level| level.success_rate > 0.0);
    Ok(match (plimsoll_sys::signal::is_stop_requested(), anything) {
        (true, _) => exit::INTERRUPTED,
        (false, false) => exit::NEGATIVE_RESULT,
        (false, true) => gate.exit_code(settings),
    })
}

/// Returns the path of an output file of the sweep: folder and name, followed by a suffix.
fn output_path(stem: &Path, suffix: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Writes a table for each route (request of a traffic file) if the load has several routes.
/// Returns a note about the files, or about the reason why no tables were written.
fn write_tables_by_route(stem: &Path, levels: &[SweepLevel]) -> Result<Option<String>, Failure> {
    let tables = match route_tables(levels) {
        Ok(tables) => tables,
        Err(routes) => {
            return Ok(Some(format!(
                "plimsoll wrote no tables for single routes: the sweep has {routes} routes, more than the maximum \
                 {ROUTES_MAX}"
            )));
        }
    };
    for (end, lines) in &tables {
        write_file(&output_path(stem, end), lines.as_bytes())?;
    }
    let (Some(first), Some(last)) = (tables.first(), tables.last()) else { return Ok(None) };
    let [first, last] = [first, last].map(|(end, _)| output_path(stem, end));
    Ok(Some(format!(
        "plimsoll wrote a table for each route: {first_file} to {last_file}",
        first_file = first.display(),
        last_file = last.display()
    )))
}

/// Draws the charts and returns their paths.
fn write_charts(stem: &Path, experiment: &Experiment, levels: &[SweepLevel]) -> Result<Vec<String>, Failure> {
    let mut written = Vec::new();
    for (end, svg) in sweep_charts(experiment, levels) {
        let path = output_path(stem, &format!("{end}.{PICTURE_SUFFIX}"));
        write_chart(&path, &svg)?;
        written.push(path.display().to_string());
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    #[test]
    fn flags_determine_sweep_levels_and_lengths() {
        let doubled: Vec<u64> = vec![1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
        for (said, expect) in [
            ("", Ok((doubled.clone(), LevelDurations::Budget(60 * SECOND), WARMUP_DEFAULT_NS))),
            ("--budget 30s", Ok((doubled.clone(), LevelDurations::Budget(30 * SECOND), WARMUP_DEFAULT_NS))),
            ("--for 5s", Ok((doubled.clone(), LevelDurations::Fixed(5 * SECOND), WARMUP_DEFAULT_NS))),
            ("-c 1,2", Ok((vec![1, 2], LevelDurations::Fixed(10 * SECOND), WARMUP_DEFAULT_NS))),
            ("-c 1,2 --for 2s --warmup 1s", Ok((vec![1, 2], LevelDurations::Fixed(2 * SECOND), SECOND))),
            ("-c 1,2 --budget 10s --warmup 0s", Ok((vec![1, 2], LevelDurations::Budget(10 * SECOND), 0))),
            ("--full", Ok((FULL_SWEEP_USERS.to_vec(), LevelDurations::Fixed(300 * SECOND), WARMUP_DEFAULT_NS))),
            ("--full --for 1m", Ok((FULL_SWEEP_USERS.to_vec(), LevelDurations::Fixed(60 * SECOND), WARMUP_DEFAULT_NS))),
            ("--full -c 1", Err("--full and --concurrency")),
            ("--full --budget 1m", Err("--budget and --full")),
            ("--for 1s --budget 1m", Err("--budget and --for")),
            ("--budget 2s", Err("10 user counts need at least 5.00 s")),
            ("--budget 0s", Err("--budget")),
            ("-c 1,0", Err("--concurrency")),
        ] {
            let words = ["plimsoll", "sweep", "http://127.0.0.1:9/"].into_iter().chain(said.split_whitespace());
            let Command::Sweep(args) = Cli::try_parse_from(words).expect("parses").command else { panic!("{said}") };
            match (LevelsSpec::from_args(&args), expect) {
                (Ok(asked), Ok(expect)) => assert_eq!((asked.users, asked.lengths, asked.warmup_ns), expect, "{said}"),
                (Err(failure), Err(part)) => assert!(failure.to_string().contains(part), "{said}: {failure}"),
                (got, want) => panic!("{said}: {got:?}, expected {want:?}"),
            }
        }
    }
}
