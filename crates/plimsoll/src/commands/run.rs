//! `plimsoll run`: executes one load on one target.

use super::{note_ports_in_time_wait, run_preflight};
use crate::args::{RunArgs, join_conditions};
use crate::event_stream;
use crate::live::ProgressDisplay;
use crate::plan_from_args;
use crate::results::{Results, typed_url};
use crate::study_screen::StudyScreen;
use plimsoll_analysis::condition::Metric;
use plimsoll_analysis::{Conditions, Study, Summary};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::units::{SECOND, parse_duration_ns};
use plimsoll_model::{
    Experiment, ExperimentSettings, ExperimentSpec, LoadCurve, LoadShape, Plan, Run, RunSpec, Schedule, StartNotes,
};
use plimsoll_probe::ProbeEffort;
use plimsoll_report::load_profiles::profiles_note;
use plimsoll_report::repeat_command;
use plimsoll_script::run_figures::RunFigures;
use plimsoll_study::base::ResolvedTarget;
use plimsoll_study::capacity::{self, ConnectionLimits};
use plimsoll_study::gate::Gate;
use plimsoll_study::profile_capture::RequestedProfiles;
use plimsoll_study::quantity::{parse_positive_count, parse_positive_time, with_flag_name};
use plimsoll_study::recording::Recording;
use plimsoll_study::result_store;
use plimsoll_study::runner::LocalMachineRunner;
use plimsoll_study::script_run::{ScriptRun, into_author_factory};
use plimsoll_study::study_loop::{StepOutcome, StudyLoop};
use plimsoll_study::traffic_file;
use plimsoll_wire::AuthorFactory;
use std::path::PathBuf;
use std::sync::Arc;

/// Converts the flags to a load.
pub fn spec_from_args(args: &RunArgs) -> Result<(RunSpec<Plan>, ExperimentSettings<String>), Failure> {
    let (stop_if, fail_if) = parse_conditions(&args.stop_if, &join_conditions(&args.fail_if))?;
    if args.rate.is_some() && args.concurrency.is_some() {
        return Err(Failure::usage(
            "--rate and -c exclude each other: a rate opens connections as needed; limit their number with \
             --max-connections",
        ));
    }
    let duration_ns = args.duration.as_deref().map(|text| parse_positive_time("--duration", text)).transpose()?;
    let requests_max = args.requests.as_deref().map(|text| parse_positive_count("--requests", text)).transpose()?;
    let warmup_ns = with_flag_name("--warmup", parse_duration_ns(&args.warmup))?;
    let of_flags = match (&args.rate, &args.concurrency) {
        (Some(rate), _) => Some(("--rate", with_flag_name("--rate", LoadCurve::parse_rate_curve(rate))?, true)),
        (None, Some(users)) => {
            Some(("--concurrency", with_flag_name("--concurrency", LoadCurve::parse_user_curve(users))?, false))
        }
        (None, None) => None,
    };
    let (mut plan, mut settings, file) = plan_from_args::plan_and_load(&args.request, &args.generator, &args.script)?;
    // Flags override the traffic file. If -n or -d is given, the duration and the number of
    // sessions in the traffic file are ignored.
    let ends = (duration_ns, requests_max);
    let (duration_ns, requests_max) = if ends == (None, None) { (file.duration_ns, file.sessions) } else { ends };
    let by_flags = of_flags.is_some();
    let of_file = || match (file.rate.clone(), file.users.clone()) {
        (Some(rate), _) => ("--file", rate, true),
        (None, Some(users)) => ("--file", users, false),
        (None, None) => ("--concurrency", LoadCurve::constant(10.0), false),
    };
    let (flag, curve, is_open) = of_flags.unwrap_or_else(of_file);
    // If the flags set stages, the load ends with its last stage, so the duration in the traffic
    // file is ignored.
    let duration_ns =
        if by_flags && ends == (None, None) && curve.duration_ns().is_some() { None } else { duration_ns };
    if args.generator.arrivals.is_some() && !is_open {
        return Err(Failure::usage("--arrivals: only an open loop has arrivals; add --rate"));
    }
    if args.request.max_connections.is_some() && !is_open {
        return Err(Failure::usage(
            "--max-connections: a closed loop has one connection for each user; set -c instead",
        ));
    }
    if let (Some(stages_ns), Some(_)) = (curve.duration_ns(), duration_ns) {
        let seconds = stages_ns as f64 / 1e9;
        return Err(Failure::usage(format!(
            "--duration: the load stages of {flag} already last {seconds} s; leave --duration out"
        )));
    }
    let arrivals = plan_from_args::arrival_spacing(&args.generator, &file)?;
    if !is_open && plan.connection_plan.keep_alive {
        // Connections are opened before the load, because opening them is not measured. Without
        // keep-alive, the load opens connections as it runs.
        plan.load.connections_ready = curve.stages.first().map_or(0, |stage| stage.from as u32);
    }
    plan.load.requests_max = requests_max;
    plan.load.warmup_ns = warmup_ns;
    plan.load.duration_ns = match (curve.duration_ns(), duration_ns, requests_max) {
        (Some(ns), _, _) | (None, Some(ns), _) => Some(ns),
        (None, None, Some(_)) => None,
        (None, None, None) => Some(10 * SECOND),
    };
    plan.load.shape =
        if is_open { LoadShape::Open { rate: curve, arrivals } } else { LoadShape::Closed { users: curve } };
    // Runs longer than 120 s, or without a set duration, record intervals of one second. Over an
    // hour, intervals of 100 ms would fill memory without showing more.
    if plan.load.duration_ns.is_none_or(|ns| ns > 120 * SECOND) {
        plan.load.interval_ns = SECOND;
    }
    let routes = plan.traffic.record().routes;
    for (name, conditions) in [("--stop-if", &stop_if), ("--fail-if", &fail_if)] {
        if let Some(text) = conditions {
            with_flag_name(name, with_flag_name(name, Conditions::parse(text))?.check_routes(&routes))?;
        }
    }
    let needed = match &plan.load.shape {
        LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. } => Schedule::compile(&plan.load).arrivals_total(),
        LoadShape::Closed { .. } => plan.load.requests_max,
    };
    traffic_file::check_unique_rows_suffice(&plan, needed)?;
    settings.probes = plan_from_args::probe_settings(&args.probes)?;
    settings.profiles = plan_from_args::profile_settings(&args.profiles);
    settings.fleet = plan_from_args::fleet_settings(&args.fleet, &plan, &settings)?;
    settings.fail_if = fail_if;
    settings.on_inconclusive = plan_from_args::verdict_when_inconclusive(&args.inconclusive);
    settings.output = plan_from_args::stored_output_settings(&args.out, args.output.as_deref(), &args.place)?;
    Ok((RunSpec { plan, stop_if, profiles: None }, settings))
}

/// Parses the conditions of --stop-if and --fail-if, and returns them in normal form.
pub fn parse_conditions(
    stop_if: &Option<String>,
    fail_if: &Option<String>,
) -> Result<(Option<String>, Option<String>), Failure> {
    let read = |name: &str, text: &Option<String>| {
        text.as_deref().map(|text| with_flag_name(name, Conditions::parse(text))).transpose()
    };
    let stop_if = read("--stop-if", stop_if)?;
    if stop_if.as_ref().is_some_and(|conditions| conditions.0.iter().any(|c| c.metric == Metric::Cpu)) {
        return Err(Failure::usage("--stop-if: cpu is known only after the load; use --fail-if"));
    }
    let fail_if = read("--fail-if", fail_if)?;
    Ok((stop_if.as_ref().map(ToString::to_string), fail_if.as_ref().map(ToString::to_string)))
}

/// An executed load with its results.
pub struct MeasuredRun {
    pub experiment: Experiment,
    /// The path of the load's run file; `None` if no run file was written.
    pub path: Option<PathBuf>,
    pub live: ProgressDisplay,
    /// A note to print below the results.
    pub note: Option<String>,
}

impl MeasuredRun {
    /// Returns the measurements of the load.
    pub fn run(&self) -> &Run {
        &self.experiment.trials[0].run
    }
}

/// Executes the load and prints its results. Returns the exit code.
pub fn carry_out(spec: RunSpec<Plan>, settings: &ExperimentSettings<String>) -> Result<u8, Failure> {
    let fail_if =
        settings.fail_if.as_deref().map(|text| with_flag_name("--fail-if", Conditions::parse(text))).transpose()?;
    let scripted = ScriptRun::from_settings(&spec.plan, settings)?;
    let typed = typed_url(&spec.plan);
    let mut measured = measure_load(spec, settings, scripted.clone().map(into_author_factory))?;
    let crossed = fail_if.map(|conditions| conditions.crossed_conditions(measured.run())).unwrap_or_default();
    let summary = Summary::from_run(measured.run());
    let succeeded = summary.routes_sum.ledger.succeeded > 0;
    let (gate, notes) = Gate::judge_conditions(&crossed, &summary);
    let results = Results::from_experiment(&measured.experiment, measured.path.as_deref())?.with_typed_url(typed);
    results.print(&settings.output, true);
    let failed = scripted.and_then(|scripted| scripted.call_done_function(&RunFigures::from_run(measured.run())));
    let tidied = measured.path.as_deref().and_then(result_store::remove_oldest_runs);
    let live = &mut measured.live;
    for note in measured.note.into_iter().chain(results.profiles.as_ref().and_then(profiles_note)).chain(tidied) {
        live.print_note(&note);
    }
    notes.iter().for_each(|note| live.print_note(note));
    if let Some(error) = &failed {
        live.print_note(&format!("the script failed: {error}"));
    }
    Ok(match (plimsoll_sys::signal::is_stop_requested(), failed.is_none() && succeeded) {
        (true, _) => exit::INTERRUPTED,
        (false, false) => exit::NEGATIVE_RESULT,
        (false, true) => gate.exit_code(settings),
    })
}

/// Executes the load and takes the requested profiles. `authoring` creates the authors through
/// which a script writes the requests; `None` without a script.
pub fn measure_load(
    spec: RunSpec<Plan>,
    settings: &ExperimentSettings<String>,
    authoring: Option<Arc<dyn AuthorFactory>>,
) -> Result<MeasuredRun, Failure> {
    let RunSpec { plan, stop_if, .. } = spec;
    let base = ResolvedTarget::resolve_target(&plan, settings)?;
    let mut plan = base.plan.clone();
    let mut injector = base.generator_settings_for_load(&plan.load);
    let flag = match &plan.load.shape {
        LoadShape::Closed { .. } => "--concurrency",
        LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. } => "--max-connections",
    };
    // Each machine of a fleet adapts its own share of the load to its own limits, so this machine
    // adapts nothing.
    let setup = match &settings.fleet {
        Some(_) => Vec::new(),
        None => capacity::fit_to_machine(
            &mut plan,
            &mut injector,
            base.fixed,
            base.local,
            &ConnectionLimits::limits_of_machine(),
        )
        .map_err(|reason| Failure::usage(format!("{flag}: {reason}")))?,
    };
    let mut warnings = Vec::new();
    warnings.extend(run_preflight(&mut plan, &injector, settings)?);
    let fleet = plimsoll_fleet::connect_fleet(&[&plan], settings)?;
    let profiles = RequestedProfiles::from_settings(&plan, settings)?;
    // A run file is needed if profiles are taken, because profiles are stored next to the run file.
    // A run file is also needed if the user named a store.
    let is_kept =
        profiles.is_some() || settings.output.file.is_some() || result_store::is_store_chosen_by_user(&settings.output);
    let path = is_kept.then(|| result_store::run_file_path(&settings.output, "run"));
    let source = plimsoll_fleet::start_reading_source(&base, settings, ProbeEffort::Little)?;
    let profiles_asked = profiles.as_ref().map(RequestedProfiles::profiles_spec);
    let asked = ExperimentSpec::Run(RunSpec { plan: plan.record(), stop_if, profiles: profiles_asked });
    let mut study = Study::new(&asked).map_err(|error| Failure::usage(format!("--stop-if: {error}")))?;
    let noted = StartNotes { warnings, adjustments: setup };
    let recording = Recording::begin(
        asked,
        settings,
        noted,
        base.local,
        &injector,
        path.as_deref(),
        repeat_command::repeat_command_words,
    )?;
    let mut runner =
        LocalMachineRunner::new(source, plan, injector, None).with_request_script(authoring).with_fleet(fleet);
    let mut study_loop =
        StudyLoop::new(&mut runner, recording, StudyScreen::new(ProgressDisplay::new(settings.output.quiet)));
    event_stream::attach_if_requested(&mut study_loop, &settings.output);
    study_loop.profiler = profiles.zip(path.as_deref()).map(|(wanted, path)| wanted.into_profiler(path));
    study_loop.run_study(&mut study, &mut |done, screen| {
        if let StepOutcome::Measured(trial) = done {
            note_ports_in_time_wait(&mut screen.live, &Summary::from_run(&trial.run));
        }
    })?;
    if study_loop.recording.trials().is_empty() {
        return Err(Failure::cannot_start("interrupted"));
    }
    let (experiment, note, StudyScreen { live, .. }) = study_loop.end(None);
    Ok(MeasuredRun { experiment, path, live, note })
}
