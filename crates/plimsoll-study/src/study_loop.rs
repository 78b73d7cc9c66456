//! The loop that executes every study, such as a search or a comparison. A study chooses loads one
//! after another. The loop executes, records and shows each load (a trial in the run file). The
//! study, the user or a failure ends the loop.
//!
//! Profiles are taken during separate loads, and the [`Profiler`] receives the ticks (100 ms) of
//! these loads.
//!
//! Not here: choosing and interpreting loads (`plimsoll-analysis`), executing loads (`runner`),
//! taking profiles (`profile_capture`), and presentation ([`StudyDisplay`]).

use crate::recording::Recording;
use crate::runner::{LoadObstacle, Runner};
use plimsoll_analysis::study::{History, Step, Study, StudyFailure, TrialPlan};
use plimsoll_engine::Tick;
use plimsoll_model::failure::Failure;
use plimsoll_model::intervention::setting_value_index;
use plimsoll_model::{
    EarlyStopReason, Experiment, ExperimentEvent, ExperimentSpec, Intervention, LoadEnd, LoadPurpose, LoadShape,
    LoadSkipReason, LoadTag, ProfileRecord, Trial,
};
use plimsoll_sys::signal;
use std::ops::ControlFlow;
use std::path::Path;

/// The largest number of warnings shown at the end of a study. Many loads may cause many warnings.
const WARNINGS_MAX: usize = 3;

/// A study in progress, with its runner, recording and outputs.
pub struct StudyLoop<'a, D: StudyDisplay> {
    /// Executes the loads of the study.
    pub runner: &'a mut dyn Runner,
    /// Records the loads, in memory and in the run file.
    pub recording: Recording,
    /// Shows the study's progress to the user.
    pub display: D,
    /// Further outputs that follow the study, such as a JSON stream.
    pub outputs: Vec<Box<dyn Output>>,
    /// The sentences about adaptations of loads to the machine that were already shown or stored.
    /// Each sentence is in the list once.
    pub fitted: Vec<String>,
    /// Takes profiles in separate loads; `None` if no profiles are requested.
    pub profiler: Option<Box<dyn Profiler>>,
}

/// Takes and stores profiles during separate loads.
pub trait Profiler {
    /// Called at the beginning of a load during which profiles are taken.
    fn begin(&mut self, trial: &TrialPlan);

    /// Called on each tick of the load.
    fn tick(&mut self, tick: &Tick);

    /// Stores and records the profiles of a load that has ended, or the reasons for missing
    /// profiles. `driven` has the index of the load in the recording and how the load ended. If the
    /// load could not be executed, `driven` is the reason.
    fn end(&mut self, tag: LoadTag, driven: Result<(Option<u32>, Option<LoadEnd>), String>, recording: &mut Recording);
}

/// The result of one step of a study.
pub enum StepOutcome<'a> {
    /// The step executed and recorded a load.
    Measured(&'a Trial),
    /// The load of the step could not be executed, for example for lack of time; the reason is
    /// recorded.
    Skipped,
}

impl<'a, D: StudyDisplay> StudyLoop<'a, D> {
    /// Creates a study loop that has not executed a load yet.
    pub fn new(runner: &'a mut dyn Runner, recording: Recording, display: D) -> StudyLoop<'a, D> {
        StudyLoop { runner, recording, display, outputs: Vec::new(), fitted: Vec::new(), profiler: None }
    }

    /// Executes a study to its end. Calls `after` after each load that was executed or skipped.
    pub fn run_study(&mut self, study: &mut Study, after: &mut dyn FnMut(StepOutcome, &mut D)) -> Result<(), Failure> {
        while !signal::is_stop_requested() {
            let step = study.next(&self.history_so_far());
            match step {
                Step::Stop => break,
                Step::Fail(broken) => return Err(Failure::cannot_start(self.display.study_failure_text(&broken))),
                Step::Skip(tag) => self.skip_load(tag, LoadSkipReason::NoTime, after),
                Step::SkipProfile(tag, why) => {
                    // A comparison reports missing profiles only at its end, for both sides
                    // together.
                    if tag.arm.is_none() {
                        self.display.print_unless_quiet(&format!(
                            "plimsoll takes no profiles: {reason}",
                            reason = why.reason_text()
                        ));
                    }
                    self.record_missing_profile(tag, why.reason_text());
                }
                Step::Measure(trial) if trial.tag.purpose == LoadPurpose::Profile => self.profile_load(study, *trial),
                Step::Measure(mut trial) => match self.runner.prepare(&mut trial) {
                    Err(LoadObstacle::Failed(failure)) => return Err(failure),
                    // A sweep or an experiment skips a load that cannot be executed, and the study
                    // continues.
                    Err(LoadObstacle::LoadImpossible(reason))
                        if matches!(study, Study::Sweep(_)) || is_an_experiment(&trial.tag) =>
                    {
                        self.skip_load(trial.tag, LoadSkipReason::Machine(reason), after);
                    }
                    Err(LoadObstacle::LoadImpossible(reason)) => {
                        let flag = match trial.plan.load.shape {
                            LoadShape::Closed { .. } => "--concurrency",
                            LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. } => "--max-connections",
                        };
                        return Err(Failure::usage(format!("{flag}: {reason}")));
                    }
                    Ok(fitted) => {
                        self.show_adaptations(study, fitted);
                        self.measure_load(study, *trial)?;
                        if let Some(trial) = self.recording.trials().last() {
                            after(StepOutcome::Measured(trial), &mut self.display);
                        }
                    }
                },
            }
        }
        if signal::is_stop_requested()
            && let Some(tag) = study.next_unprofiled_tag(&self.history_so_far())
        {
            self.record_missing_profile(tag, "the user stopped the run");
        }
        self.display.clear();
        Ok(())
    }

    /// Returns the loads, events and elapsed time of the study so far.
    pub fn history_so_far(&self) -> History<'_> {
        study_state(&self.recording, self.runner).history
    }

    /// Records in the run file why a load level has no profile.
    fn record_missing_profile(&mut self, tag: LoadTag, why: &str) {
        let (kind, file) = ("cpu".to_owned(), Err(why.to_owned()));
        self.recording.record_event(ExperimentEvent::Profile(ProfileRecord { tag, kind, trial: None, file }));
    }

    /// Executes a load during which profiles are taken. If the load for profiles fails, the failure
    /// is recorded and the study continues.
    fn profile_load(&mut self, study: &Study, mut trial: TrialPlan) {
        let Some(mut profiler) = self.profiler.take() else {
            return self.record_missing_profile(trial.tag, "nothing takes profiles");
        };
        let tag = trial.tag;
        self.display.profile_planned(study, &trial, &study_state(&self.recording, self.runner));
        let driven = match self.runner.prepare(&mut trial) {
            Err(LoadObstacle::Failed(failure)) => Err(failure.to_string()),
            Err(LoadObstacle::LoadImpossible(reason)) => Err(reason),
            Ok(_) => {
                self.begin_load(study, &trial);
                profiler.begin(&trial);
                let driven = self
                    .drive_load(trial, &mut |tick| profiler.tick(tick))
                    .map(|trial| trial.run.ending.clone())
                    .map_err(|error| error.to_string());
                self.end_load(study);
                driven
            }
        };
        let last = self.recording.trials().len().checked_sub(1);
        let number = last.filter(|at| driven.is_ok() && self.recording.trials()[*at].tag == tag).map(|at| at as u32);
        profiler.end(tag, driven.map(|ending| (number, ending)), &mut self.recording);
        self.profiler = Some(profiler);
    }

    fn skip_load(&mut self, tag: LoadTag, reason: LoadSkipReason, after: &mut dyn FnMut(StepOutcome, &mut D)) {
        after(StepOutcome::Skipped, &mut self.display);
        self.recording.record_event(ExperimentEvent::LoadSkipped { tag, reason });
    }

    /// Shows each sentence about an adapted load once. A comparison shows the sentences about
    /// adapted loads only at its end.
    fn show_adaptations(&mut self, study: &Study, fitted: Vec<String>) {
        for sentence in fitted {
            if self.fitted.contains(&sentence) {
                continue;
            }
            if !matches!(study, Study::Blocks(_)) {
                self.display.print_unless_quiet(&sentence);
            }
            self.fitted.push(sentence);
        }
    }

    /// Executes one load of the study, lets the study evaluate it, and shows the result.
    fn measure_load(&mut self, study: &mut Study, trial: TrialPlan) -> Result<(), Failure> {
        self.begin_load(study, &trial);
        self.drive_load(trial, &mut |_| ())?;
        let known = outcome_count(study);
        study.add_new_trials(self.recording.trials());
        self.end_load(study);
        if outcome_count(study) != known {
            self.display.show_outcome(study, &study_state(&self.recording, self.runner));
        }
        Ok(())
    }

    fn begin_load(&mut self, study: &Study, trial: &TrialPlan) {
        let state = study_state(&self.recording, self.runner);
        self.display.load_begins(study, trial, &state);
        self.outputs.iter_mut().for_each(|output| output.load_begins(study, trial, &state));
    }

    fn end_load(&mut self, study: &Study) {
        for news in self.runner.take_user_messages() {
            self.display.print_always(&format!("warning: {news}"));
        }
        let state = study_state(&self.recording, self.runner);
        if let Some(trial) = state.history.trials.last() {
            self.outputs.iter_mut().for_each(|output| output.load_ends(study, trial, &state));
        }
    }

    /// Executes and records one prepared load. Passes each tick to the callback `on_tick`, to the
    /// display and to the outputs. The user's stop request or the rule `trial.stop_rule` ends the
    /// load.
    fn drive_load(&mut self, trial: TrialPlan, on_tick: &mut dyn FnMut(&Tick)) -> Result<&Trial, Failure> {
        let TrialPlan { tag, plan, stop_rule: mut until } = trial;
        let (display, outputs) = (&mut self.display, &mut self.outputs);
        let driven = self.recording.run_and_record_load(self.runner, tag, &plan, &mut |tick, server_cores| {
            if signal::is_stop_requested() {
                return ControlFlow::Break(EarlyStopReason::Interrupted);
            }
            on_tick(tick);
            display.tick(tick, server_cores);
            outputs.iter_mut().for_each(|output| output.tick(tick, server_cores));
            match tick.end_ns {
                // A tick that ends at 0 ns means that connections are still being opened.
                0 => ControlFlow::Continue(()),
                _ => until.push(tick.start_ns, tick.end_ns, tick.interval),
            }
        });
        display.clear();
        driven
    }

    /// Ends all processes that plimsoll started, then ends the experiment and returns it with the
    /// display. Also returns a note with the path of the run file. `broken` is the reason if the
    /// study ended early.
    pub fn end(self, broken: Option<&str>) -> (Experiment, Option<String>, D) {
        // A failure to end the processes is shown as a warning below. A process that cannot be
        // ended now ends together with plimsoll.
        let finished = self.runner.finish();
        plimsoll_sys::process::drop_unmodified_file_pages();
        let mut warnings = self.runner.take_warnings();
        warnings.dedup();
        let path = self.recording.path().map(Path::to_owned);
        let (experiment, note) = match broken {
            Some(reason) => self.recording.end_early(reason),
            None => self.recording.end(self.runner.elapsed_ns()),
        };
        let mut display = self.display;
        match path.map_or(Ok(None), |path| self.runner.store_file(&path)) {
            Ok(None) => {}
            Ok(Some(how)) => display.print_always(&how),
            Err(why) => display.print_always(&format!("warning: {why}")),
        }
        // A study with many loads may have many warnings, so only the first [`WARNINGS_MAX`]
        // warnings are shown.
        for warning in warnings.iter().take(WARNINGS_MAX) {
            display.print_always(&format!("warning: {warning}"));
        }
        if let Err(failure) = finished {
            display.print_always(&format!("warning: {failure}"));
        }
        (experiment, note, display)
    }
}

/// The state of a study, as outputs receive it.
pub struct StudyState<'a> {
    /// The specification of the study.
    pub spec: &'a ExperimentSpec,
    /// The loads, events and elapsed time of the study so far.
    pub history: History<'a>,
}

fn study_state<'s>(recording: &'s Recording, runner: &dyn Runner) -> StudyState<'s> {
    let (trials, events, elapsed_ns) = (recording.trials(), recording.events(), runner.elapsed_ns());
    StudyState { spec: recording.experiment_spec(), history: History { trials, events, elapsed_ns } }
}

/// Returns the number of measured loads or blocks that a study has evaluated so far (0 for a run or
/// a sweep).
fn outcome_count(study: &Study) -> usize {
    match study {
        Study::Find(search) => search.outcomes.len(),
        Study::Explain(explain) => explain.search.outcomes.len(),
        Study::Overload(overload) => overload.search.outcomes.len(),
        Study::Blocks(comparison) => comparison.blocks().len(),
        Study::Run(..) | Study::Sweep(_) => 0,
    }
}

/// An output that follows a study, for example a terminal, a JSON stream or an exporter.
pub trait Output {
    /// Called when a prepared load begins. The index of the load will be
    /// `state.history.trials.len()`.
    fn load_begins(&mut self, study: &Study, trial: &TrialPlan, state: &StudyState);

    /// Called on each tick. `server_cores` is the number of cores that the server uses, if known.
    fn tick(&mut self, tick: &Tick, server_cores: Option<f64>);

    /// Called when a load has ended. The study has already evaluated the load, unless the load was
    /// only for profiles. The load is the last of `state.history.trials`.
    fn load_ends(&mut self, study: &Study, trial: &Trial, state: &StudyState);
}

/// An output that shows text to a waiting user.
pub trait StudyDisplay: Output {
    /// Called before the preparation of a load during which profiles are taken.
    fn profile_planned(&mut self, study: &Study, trial: &TrialPlan, state: &StudyState);

    /// Called after a load that added an outcome (a measured load or a block) to the study.
    fn show_outcome(&mut self, study: &Study, state: &StudyState);

    /// Returns the sentence that explains why a study cannot continue.
    fn study_failure_text(&self, broken: &StudyFailure) -> String;

    /// Writes a line that stays on the screen, unless `--quiet` is set.
    fn print_unless_quiet(&mut self, line: &str);

    /// Writes a line that stays on the screen, even with `--quiet`.
    fn print_always(&mut self, line: &str);

    /// Clears the progress display of the current load.
    fn clear(&mut self);
}

/// Whether a load belongs to an experiment of `explain`: an intervention, or a changed server
/// setting.
fn is_an_experiment(tag: &LoadTag) -> bool {
    setting_value_index(tag).is_some() || Intervention::from_tag(tag).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::{LoadOutcome, TickCallback, TickProbes};
    use plimsoll_analysis::study::profiling::single_target_profile_tag;
    use plimsoll_engine::Phase;
    use plimsoll_model::{Arm, ArmIndex, ArrivalSpacing, BlocksSpec, Criterion, LevelDurations, LoadCurve};
    use plimsoll_model::{
        ExperimentSettings, Injector, Interval, LoadShape, Plan, PlanRecord, ProfilesSpec, ProveSpec, Run, RunSpec,
        StartNotes, SweepSpec,
    };
    use std::cell::RefCell;
    use std::rc::Rc;

    /// A simulated server with one hundred immediate responses in each tick. The simulated machine
    /// supports a limited number of users.
    struct FakeServer {
        now_ns: u64,
        users_max: f64,
        /// The side of a comparison (arm) whose build fails to start.
        dead: Option<char>,
        finished: bool,
        /// The plan of the prepared load.
        ready: PlanRecord,
    }

    impl Runner for FakeServer {
        fn elapsed_ns(&self) -> u64 {
            self.now_ns
        }

        fn prepare(&mut self, trial: &mut TrialPlan) -> Result<Vec<String>, LoadObstacle> {
            self.ready.clone_from(&trial.plan);
            let users = trial.plan.load.shape.curve().max();
            match trial.tag.arm.map(ArmIndex::letter) {
                arm if arm.is_some() && arm == self.dead => {
                    Err(LoadObstacle::Failed(Failure::cannot_start("B does not start")))
                }
                _ if users > self.users_max => Err(LoadObstacle::LoadImpossible("too many".into())),
                _ => Ok(vec!["fitted".into()]),
            }
        }

        fn injectors(&self) -> Vec<Injector> {
            vec![Injector::default()]
        }

        fn connect(&mut self, _: &mut TickCallback) -> Result<(), Failure> {
            Ok(())
        }

        fn run(&mut self, start_ns: u64, on_tick: &mut TickCallback) -> Result<LoadOutcome, Failure> {
            let plan = &self.ready;
            let (from_ns, length_ns) = (plan.load.warmup_ns, plan.load.duration_ns.expect("a length"));
            let mut run = Run::new(plan.clone());
            run.window_ns = (from_ns, from_ns + length_ns);
            run.ending = Some(LoadEnd::Finished);
            for at_ns in (0..from_ns + length_ns).step_by(Plan::TICK_NS as usize) {
                let mut interval = Interval::default();
                let figures = interval.routes.figures_mut(0);
                (figures.ledger.scheduled, figures.ledger.succeeded, figures.succeeded_in_window) = (100, 100, 100);
                let end_ns = at_ns + Plan::TICK_NS;
                let tick =
                    Tick { phase: Phase::Measured, start_ns: at_ns, end_ns, origin_ns: start_ns, interval: &interval };
                self.now_ns = start_ns + end_ns;
                let flow = on_tick(&tick, TickProbes::default());
                run.push(at_ns, interval);
                if let ControlFlow::Break(stop) = flow {
                    run.ending = Some(LoadEnd::Stopped(stop));
                    break;
                }
            }
            Ok(LoadOutcome { run, unreported_readings: None })
        }

        fn finish(&mut self) -> Result<(), Failure> {
            self.finished = true;
            Ok(())
        }
    }

    /// A display that shows nothing.
    struct NullDisplay;

    impl Output for NullDisplay {
        fn load_begins(&mut self, _: &Study, _: &TrialPlan, _: &StudyState) {}
        fn tick(&mut self, _: &Tick, _: Option<f64>) {}
        fn load_ends(&mut self, _: &Study, _: &Trial, _: &StudyState) {}
    }

    impl StudyDisplay for NullDisplay {
        fn profile_planned(&mut self, _: &Study, _: &TrialPlan, _: &StudyState) {}
        fn show_outcome(&mut self, _: &Study, _: &StudyState) {}
        fn study_failure_text(&self, broken: &StudyFailure) -> String {
            format!("{broken:?}")
        }
        fn print_unless_quiet(&mut self, _: &str) {}
        fn print_always(&mut self, _: &str) {}
        fn clear(&mut self) {}
    }

    fn single_user_plan() -> PlanRecord {
        Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }).record()
    }

    /// Executes a study. Returns the study's record, the study's result, and the number of loads
    /// executed or skipped.
    fn execute_study(spec: ExperimentSpec, runner: &mut FakeServer) -> (Experiment, Result<(), String>, usize) {
        execute_study_with_profiler(spec, runner, None)
    }

    /// Executes a study with a profiler. Returns the study's record, the study's result, and the
    /// number of loads executed or skipped.
    fn execute_study_with_profiler(
        spec: ExperimentSpec,
        runner: &mut FakeServer,
        profiler: Option<Box<dyn Profiler>>,
    ) -> (Experiment, Result<(), String>, usize) {
        let mut study = Study::new(&spec).expect("a question");
        let recording = {
            let (settings, noted, injector) =
                (ExperimentSettings::default(), StartNotes::default(), Injector::default());
            Recording::begin(spec, &settings, noted, true, &injector, None, |_, _| Vec::new()).expect("in memory")
        };
        let mut study_loop = StudyLoop::new(runner, recording, NullDisplay);
        study_loop.profiler = profiler;
        let mut told = 0;
        let outcome = study_loop.run_study(&mut study, &mut |_, _| told += 1).map_err(|failure| failure.to_string());
        (study_loop.end(outcome.as_ref().err().map(String::as_str)).0, outcome, told)
    }

    fn simulated_server() -> FakeServer {
        FakeServer { now_ns: 0, users_max: 8.0, dead: None, finished: false, ready: single_user_plan() }
    }

    #[test]
    fn a_stop_condition_ends_a_load_and_is_recorded() {
        for (stop_if, expect) in [
            ("goodput<1", LoadEnd::Finished),
            ("goodput<5000", LoadEnd::Stopped(EarlyStopReason::Condition("goodput<5000".into()))),
        ] {
            let mut runner = simulated_server();
            let asked = ExperimentSpec::Run(RunSpec {
                plan: single_user_plan(),
                stop_if: Some(stop_if.into()),
                profiles: None,
            });
            let (experiment, outcome, told) = execute_study(asked, &mut runner);
            assert_eq!((outcome, told, experiment.trials.len()), (Ok(()), 1, 1));
            match (&experiment.trials[0].run.ending, expect) {
                (
                    Some(LoadEnd::Stopped(EarlyStopReason::Condition(said))),
                    LoadEnd::Stopped(EarlyStopReason::Condition(part)),
                ) => {
                    assert!(said.contains(&part), "{said}");
                }
                (ending, expect) => assert_eq!(*ending, Some(expect), "{stop_if}"),
            }
            assert!(runner.finished && experiment.elapsed_ns == Some(runner.now_ns));
        }
    }

    #[test]
    fn a_skipped_level_becomes_a_remark_and_the_next_level_runs() {
        let (levels, lengths) = (vec![1, 16, 4], LevelDurations::Fixed(500_000_000));
        let asked = ExperimentSpec::Sweep(SweepSpec { base: single_user_plan(), levels, lengths, warmup_ns: 0 });
        let (experiment, outcome, told) = execute_study(asked, &mut simulated_server());
        assert_eq!((outcome, told), (Ok(()), 3));
        let turns: Vec<u32> = experiment.trials.iter().map(|trial| trial.tag.turn).collect();
        let tag = LoadTag { turn: 1, ..LoadTag::for_purpose(LoadPurpose::Level) };
        assert_eq!(turns, [0, 2]);
        assert_eq!(
            experiment.events,
            [ExperimentEvent::LoadSkipped { tag, reason: LoadSkipReason::Machine("too many".into()) }]
        );
        // Each load begins 1 ms after its preparation.
        assert_eq!(experiment.trials.iter().map(|trial| trial.start_ns).collect::<Vec<_>>(), [1_000_000, 502_000_000]);
    }

    /// A profiler that records the calls for each load and takes no profiles.
    #[derive(Default)]
    struct FakeProfiler {
        ticks: usize,
        loads: Rc<RefCell<Vec<ProfilerCall>>>,
    }

    #[derive(Debug, PartialEq)]
    struct ProfilerCall {
        tag: LoadTag,
        /// The number of ticks received during the load.
        ticks: usize,
        /// The index of the load in the recording; `None` if the load was not executed.
        trial: Option<u32>,
    }

    impl Profiler for FakeProfiler {
        fn begin(&mut self, _: &TrialPlan) {
            self.ticks = 0;
        }

        fn tick(&mut self, _: &Tick) {
            self.ticks += 1;
        }

        fn end(
            &mut self,
            tag: LoadTag,
            driven: Result<(Option<u32>, Option<LoadEnd>), String>,
            recording: &mut Recording,
        ) {
            let trial = driven.as_ref().ok().and_then(|(trial, _)| *trial);
            self.loads.borrow_mut().push(ProfilerCall { tag, ticks: std::mem::take(&mut self.ticks), trial });
            let file = Err(driven.err().unwrap_or_else(|| "nothing is taken".to_owned()));
            recording.record_event(ExperimentEvent::Profile(ProfileRecord {
                tag,
                kind: "cpu".to_owned(),
                trial,
                file,
            }));
        }
    }

    #[test]
    fn profiles_are_taken_under_separate_loads_at_the_end() {
        let profiles = Some(ProfilesSpec { bases: vec!["http://h/debug/pprof".into()], seconds: 1 });
        let mut bounded = single_user_plan();
        bounded.load.duration_ns = Some(500_000_000);
        let asked = ExperimentSpec::Run(RunSpec { plan: bounded, stop_if: None, profiles });
        // Of the two loads for profiles, the simulated machine can execute only the low load. The
        // profiler is called for the low and the high load, and the study succeeds.
        let mut runner = FakeServer { users_max: 500.0, ..simulated_server() };
        let heard = FakeProfiler::default();
        let loads = Rc::clone(&heard.loads);
        let (experiment, outcome, told) = execute_study_with_profiler(asked, &mut runner, Some(Box::new(heard)));
        assert_eq!((outcome, told), (Ok(()), 1));
        let purposes: Vec<LoadPurpose> = experiment.trials.iter().map(|trial| trial.tag.purpose).collect();
        assert_eq!(purposes, [LoadPurpose::Run, LoadPurpose::Profile]);
        let length_ticks = experiment.trials[1].run.intervals.len();
        assert!(length_ticks > 10);
        let expect = [
            ProfilerCall { tag: single_target_profile_tag(0), ticks: length_ticks, trial: Some(1) },
            ProfilerCall { tag: single_target_profile_tag(1), ticks: 0, trial: None },
        ];
        assert_eq!(*loads.borrow(), expect);
        let files: Vec<_> = experiment.profiles().map(|taken| taken.file.clone()).collect();
        assert_eq!(files, [Err("nothing is taken".to_owned()), Err("too many".to_owned())]);
    }

    #[test]
    fn a_build_that_does_not_start_ends_the_comparison() {
        let arm = |name: &str| Arm { name: name.into(), plan: single_user_plan(), is_started_per_load: true };
        let blocks = BlocksSpec {
            arms: vec![arm("a"), arm("b")],
            users: Some(4),
            rate: None,
            arrivals: ArrivalSpacing::Constant,
            load_ns: Some(200_000_000),
            warmup_ns: Some(0),
            budget_ns: 60_000_000_000,
            blocks_max: Some(2),
            answers_may_differ: false,
        };
        let asked =
            ExperimentSpec::Prove(ProveSpec { blocks, criterion: Criterion::Goodput, margin: 0.02, profiles: None });
        let (experiment, outcome, _) = execute_study(asked.clone(), &mut simulated_server());
        let blocks = experiment.trials.iter().filter(|trial| trial.tag.purpose == LoadPurpose::Block);
        assert_eq!((outcome, blocks.count()), (Ok(()), 4));
        let mut runner = FakeServer { dead: Some('B'), ..simulated_server() };
        let (experiment, outcome, _) = execute_study(asked, &mut runner);
        assert_eq!(outcome, Err("B does not start".into()));
        assert_eq!((experiment.abort_reason(), experiment.elapsed_ns), (Some("B does not start"), None));
        assert!(runner.finished && experiment.trials.len() == 1);
    }
}
