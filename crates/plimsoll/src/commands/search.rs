//! The common part of all commands that search for a load line: parses the flags, prepares the
//! target, executes the search, shows and records it.
//!
//! Not here: the additional flags of each command, and the exit codes.

use super::run_timed_preflight;
use crate::args::SearchArgs;
use crate::event_stream;
use crate::live::ProgressDisplay;
use crate::plan_from_args;
use crate::results::page::write_page_beside;
use crate::results::{Results, typed_url};
use crate::study_screen::StudyScreen;
use plimsoll_analysis::{Finding, SearchSettings, Slo, Study};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::units::parse_number;
use plimsoll_model::{
    ArrivalSpacing, ExperimentSettings, ExperimentSpec, FindSpec, Injector, LoadCurve, LoadShape, Plan, Planning,
    StartNotes,
};
use plimsoll_probe::{ProbeEffort, ReadingSource};
use plimsoll_report::load_profiles::profiles_note;
use plimsoll_report::repeat_command;
use plimsoll_study::base::ResolvedTarget;
use plimsoll_study::capacity::{self, ConnectionLimits};
use plimsoll_study::hints::flag_hints;
use plimsoll_study::profile_capture::RequestedProfiles;
use plimsoll_study::quantity::with_flag_name;
use plimsoll_study::recording::Recording;
use plimsoll_study::result_store;
use plimsoll_study::runner::process_pauser::PausableProcess;
use plimsoll_study::runner::{LocalMachineRunner, PlanChange, PlanVariant, VariedServerSetting};
use plimsoll_study::script_run::{ScriptRun, into_author_factory};
use plimsoll_study::study_loop::StudyLoop;
use plimsoll_study::traffic_file;
use std::collections::BTreeMap;

/// A search whose target is resolved and checked. `plan` is the plan of `base`, adapted to the
/// limits of this machine.
pub struct PreparedSearch {
    pub target: ResolvedTarget,
    pub plan: Plan,
    pub injector: Injector,
    pub settings: SearchSettings,
    pub planning: Planning,
    pub profiles: Option<RequestedProfiles>,
    pub start_notes: StartNotes,
    pub source: Option<Box<dyn ReadingSource>>,
    /// The plans that differ from `plan` by one change, such as retries of failed requests. A load
    /// whose tag (its purpose and its target) implies a change uses the plan of that change.
    pub variants: BTreeMap<PlanChange, PlanVariant>,
    /// The processes that plimsoll may pause during the loads of an experiment with pauses
    /// (`--may-signal`).
    pub pausable_processes: Vec<PausableProcess>,
}

/// Converts the flags to a search within `budget_ns`. The caller sets the conditions of `--fail-if`
/// and the output paths.
pub fn spec_from_args(args: &SearchArgs, budget_ns: u64) -> Result<FindInput, Failure> {
    let (asked, _, settings) = spec_with_other_targets(args, &[], budget_ns)?;
    Ok((asked, settings))
}

/// Converts the flags to a search, and calls `edit`, which replaces the requests of the
/// plan.
pub fn search_with_changes(args: &SearchArgs, budget_ns: u64, edit: &mut PlanEditor) -> Result<FindInput, Failure> {
    let (asked, _, settings) = spec_with_changed_plan(args, &[], budget_ns, edit)?;
    Ok((asked, settings))
}

/// A search, and the settings of the experiment.
pub type FindInput = (FindSpec<Plan>, ExperimentSettings<String>);

/// A function that changes a plan and the settings of its experiment.
pub type PlanEditor<'a> = dyn FnMut(&mut Plan, &mut ExperimentSettings<String>) -> Result<(), Failure> + 'a;

/// A search, the plans of further targets that get the same requests, and the settings of the
/// experiment.
pub type SearchInput = (FindSpec<Plan>, Vec<Plan>, ExperimentSettings<String>);

/// Converts the flags to a search, and to plans for further targets that get the same requests.
pub fn spec_with_other_targets(args: &SearchArgs, urls: &[String], budget_ns: u64) -> Result<SearchInput, Failure> {
    spec_with_changed_plan(args, urls, budget_ns, &mut |_, _| Ok(()))
}

fn spec_with_changed_plan(
    args: &SearchArgs,
    urls: &[String],
    budget_ns: u64,
    edit: &mut PlanEditor,
) -> Result<SearchInput, Failure> {
    let slo = with_flag_name("--slo", Slo::parse(&args.slo))?;
    let max_rate = match &args.max_rate {
        None => None,
        Some(text) => match with_flag_name("--max-rate", parse_number(text))? {
            rate if rate > 0.0 => Some(rate),
            _ => return Err(Failure::usage("--max-rate: must be more than 0")),
        },
    };
    let (plans, mut settings, file) =
        plan_from_args::plans_for_urls(&args.request, urls, &args.generator, &args.script)?;
    // Real users arrive at random, so the search uses Poisson arrivals unless a flag or the traffic
    // file sets another spacing. Evenly spaced arrivals make a server look better than it is.
    let is_asked = args.generator.arrivals.is_some() || file.arrivals.is_some();
    let arrivals =
        if is_asked { plan_from_args::arrival_spacing(&args.generator, &file)? } else { ArrivalSpacing::Poisson };
    let mut plans = plans.into_iter();
    let mut base = plans.next().ok_or_else(|| Failure::usage("the target is missing: give a URL"))?;
    edit(&mut base, &mut settings)?;
    with_flag_name("--slo", slo.check_routes(&base.traffic.record().routes))?;
    let slo = slo.to_string();
    traffic_file::refuse_unique_rows(&base)?;
    settings.probes = plan_from_args::probe_settings(&args.probes)?;
    settings.profiles = plan_from_args::profile_settings(&args.profiles);
    let (preflight_ns, profiles, planning) = (0, None, Planning::default());
    let asked = FindSpec { base, slo, budget_ns, max_rate, arrivals, preflight_ns, profiles, planning };
    Ok((asked, plans.collect(), settings))
}

impl PreparedSearch {
    /// Prepares a search on this machine: resolves the target, adapts the settings, and sends the
    /// preflight request.
    pub fn prepare(
        spec: FindSpec<Plan>,
        settings: &ExperimentSettings<String>,
        effort: ProbeEffort,
    ) -> Result<PreparedSearch, Failure> {
        let FindSpec { base: plan, slo, budget_ns, max_rate, arrivals, planning, .. } = spec;
        let slo = with_flag_name("--slo", Slo::parse(&slo))?;
        let base = ResolvedTarget::resolve_target(&plan, settings)?;
        let mut plan = base.plan.clone();
        // The study chooses the loads later. The limits of the machine are therefore checked for an
        // open loop, which may need all connections.
        plan.load.shape = LoadShape::Open { rate: LoadCurve::constant(1.0), arrivals };
        let mut injector = base.injector.clone();
        // Each machine of a fleet adapts its own share of the load to its own limits, so this
        // machine adapts nothing.
        let fitted = match &settings.fleet {
            Some(_) => Vec::new(),
            None => capacity::fit_to_machine(
                &mut plan,
                &mut injector,
                base.fixed,
                base.local,
                &ConnectionLimits::limits_of_machine(),
            )
            .map_err(|reason| Failure::usage(format!("--max-connections: {reason}")))?,
        };
        plan.load.shape = base.plan.load.shape.clone();
        let (warnings, preflight_ns) = run_timed_preflight(&mut plan, &injector, settings)?;
        let start_notes = StartNotes { warnings, adjustments: fitted };
        let profiles = RequestedProfiles::from_settings(&plan, settings)?;
        let search_settings = SearchSettings { base: plan.record(), slo, budget_ns, max_rate, arrivals, preflight_ns };
        let source = plimsoll_fleet::start_reading_source(&base, settings, effort)?;
        let (variants, pausable_processes) = (BTreeMap::new(), Vec::new());
        Ok(PreparedSearch {
            target: base,
            plan,
            injector,
            settings: search_settings,
            planning,
            profiles,
            start_notes,
            source,
            variants,
            pausable_processes,
        })
    }

    /// Executes the search, then prints and records the findings. `code` returns the exit code for
    /// the findings, and may print notes. After an interrupt by the user, the exit code is 130
    /// whatever `code` returns.
    pub fn carry_out(
        self,
        spec: ExperimentSpec,
        settings: &ExperimentSettings<String>,
        live: ProgressDisplay,
        code: impl FnOnce(&Finding, &mut ProgressDisplay) -> u8,
    ) -> Result<u8, Failure> {
        let PreparedSearch {
            target: base,
            plan,
            injector,
            profiles,
            start_notes,
            source,
            variants,
            pausable_processes,
            ..
        } = self;
        let typed = typed_url(&plan);
        let path = result_store::run_file_path(&settings.output, spec.study_word());
        let setting = match &spec {
            ExperimentSpec::Explain(explain) => {
                VariedServerSetting::from_settings(settings, &explain.setting_values, &path)
            }
            _ => None,
        };
        let mut study = Study::new(&spec).map_err(|error| Failure::usage(format!("--slo: {error}")))?;
        let targets: Vec<&Plan> = std::iter::once(&plan).chain(variants.values().map(|it| &it.plan)).collect();
        let fleet = plimsoll_fleet::connect_fleet(&targets, settings)?;
        let recording = Recording::begin(
            spec,
            settings,
            start_notes,
            base.local,
            &injector,
            Some(&path),
            repeat_command::repeat_command_words,
        )?;
        let scripted = ScriptRun::from_settings(&plan, settings)?;
        let moves = settings.preflight && fleet.is_none();
        let mut runner =
            LocalMachineRunner::new(source, plan, injector, None).with_source_address_changes(moves).with_fleet(fleet);
        runner = runner
            .with_request_script(scripted.map(into_author_factory))
            .with_variants(variants)
            .with_setting(setting)
            .with_pausable_processes(pausable_processes);
        let mut study_loop = StudyLoop::new(&mut runner, recording, StudyScreen::new(live));
        event_stream::attach_if_requested(&mut study_loop, &settings.output);
        study_loop.profiler = profiles.map(|wanted| wanted.into_profiler(&path));
        study_loop.run_study(&mut study, &mut |_, _| ())?;
        if !plimsoll_sys::signal::is_stop_requested() {
            flag_hints(&base, settings).iter().for_each(|line| study_loop.display.live.print_line_unless_quiet(line));
        }
        let (experiment, note, StudyScreen { mut live, .. }) = study_loop.end(None);
        let results = Results::from_experiment(&experiment, Some(&path))?.with_typed_url(typed);
        results.print(&settings.output, !live.are_lines_on_result_terminal());
        let profiled = results.profiles.as_ref().and_then(profiles_note);
        let page = write_page_beside(&path, &experiment);
        for note in page.into_iter().chain(note).chain(result_store::remove_oldest_runs(&path)).chain(profiled) {
            live.print_note(&note);
        }
        let code = code(results.finding(), &mut live);
        Ok(if plimsoll_sys::signal::is_stop_requested() { exit::INTERRUPTED } else { code })
    }

    /// Returns the specification of the search for the run file.
    pub fn search_spec(&self) -> FindSpec {
        let SearchSettings { base, slo, budget_ns, max_rate, arrivals, preflight_ns } = self.settings.clone();
        let profiles = self.profiles.as_ref().map(RequestedProfiles::profiles_spec);
        let (slo, planning) = (slo.to_string(), self.planning);
        FindSpec { base, slo, budget_ns, max_rate, arrivals, preflight_ns, profiles, planning }
    }
}
