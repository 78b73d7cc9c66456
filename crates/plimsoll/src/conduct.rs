//! The one loop for every study: asks which load is next, has it carried out, records it, shows it, and asks again, until the
//! study, the user or the world says stop.
//!
//! Profiles are taken under loads that are steps like the others; who takes them hears of each tick ([`Profiler`]).
//!
//! Not here: which load is next, and what it all says (`plimsoll-analysis`); how loads are carried out (`runner`), and profiles
//! taken (`commands::capture`).

use crate::live::Live;
use crate::progress::Meter;
use crate::recording::Recording;
use plimsoll_analysis::prove::looks;
use plimsoll_analysis::study::blocks::Stand;
use plimsoll_analysis::study::explain::HoldLevel;
use plimsoll_analysis::study::profiling::{TURNS_OF_SIDES, turn_of_sides};
use plimsoll_analysis::study::search::planned_tag;
use plimsoll_analysis::study::{History, Search, Step, Study, TrialPlan};
use plimsoll_engine::{Phase, Tick};
use plimsoll_model::failure::Failure;
use plimsoll_model::intervention::varied_number;
use plimsoll_model::{
    ArmIndex, Ending, Experiment, Intervention, Lengths, ProfileTaken, Purpose, Remark, Stop, Tag, Trial, Unheld,
};
use plimsoll_report::{
    Progress, broken_text, format, ladder_heading, ladder_line, ladder_standing, load_text, prediction_text,
    prove_heading, prove_line, prove_standing, search_text, trial_heading, trial_line,
};
use plimsoll_study::runner::{Runner, Unready};
use plimsoll_sys::signal;
use std::ops::ControlFlow;

/// Of what went wrong beside the loads so much is said.
const WARNINGS_MAX: usize = 3;

/// An experiment under way.
pub struct Conduct<'a> {
    /// Who carries loads out.
    pub runner: &'a mut dyn Runner,
    /// What is kept.
    pub recording: Recording,
    /// What is shown meanwhile.
    pub live: Live,
    /// What of the loads was fitted to the machine, each sentence once.
    pub fitted: Vec<String>,
    /// What takes profiles, where they are asked for.
    pub profiler: Option<Box<dyn Profiler>>,
    meter: Meter,
    /// How it stands, for the eye.
    standing: String,
}

/// Takes profiles of the target under loads that are made for it, and keeps them: the one thing that is done beside a load.
pub trait Profiler {
    /// A load begins.
    fn begin(&mut self, trial: &TrialPlan);

    /// A tick of it has passed.
    fn tick(&mut self, tick: &Tick);

    /// It is over, and its number among the loads and how it ended; or it could not be driven, and why. What was taken under it
    /// is kept, and recorded; and what was not, with the reason.
    fn end(&mut self, tag: Tag, driven: Result<(Option<u32>, Option<Ending>), String>, recording: &mut Recording);
}

/// What happened to a step of a study.
pub enum Done<'a> {
    /// A load was carried out.
    Measured(&'a Trial),
    /// A load could not be made.
    Unheld,
}

impl<'a> Conduct<'a> {
    /// Nothing is measured yet.
    pub fn new(runner: &'a mut dyn Runner, recording: Recording, live: Live) -> Conduct<'a> {
        let (fitted, profiler, meter, standing) = (Vec::new(), None, Meter::default(), String::new());
        Conduct { runner, recording, live, fitted, profiler, meter, standing }
    }

    /// Carries a study out. `after` is called after each step that it measures.
    pub fn carry_out(&mut self, study: &mut Study, after: &mut dyn FnMut(Done, &mut Live)) -> Result<(), Failure> {
        while !signal::interrupted() {
            let step = study.next(&self.history());
            match step {
                Step::Stop => break,
                Step::Break(broken) => return Err(Failure::start(broken_text(&broken))),
                Step::Skip(tag) => self.unheld(tag, Unheld::NoTime, after),
                Step::Unprofiled(tag, why) => {
                    // Of sides it is said with what else is missing.
                    if tag.arm.is_none() {
                        self.live.line(&format!("no profiles are taken: {}", why.text()));
                    }
                    self.unprofiled(tag, why.text());
                }
                Step::Measure(trial) if trial.tag.purpose == Purpose::Profile => self.profile(study, *trial),
                Step::Measure(mut trial) => match self.runner.prepare(&mut trial) {
                    Err(Unready::Failed(failure)) => return Err(failure),
                    // What cannot be changed ends nothing that was measured before.
                    Err(Unready::Unheld(reason))
                        if matches!(study, Study::Sweep(_)) || is_an_experiment(&trial.tag) =>
                    {
                        self.unheld(trial.tag, Unheld::Machine(reason), after);
                    }
                    Err(Unready::Unheld(reason)) => return Err(Failure::usage(format!("--concurrency: {reason}"))),
                    Ok(fitted) => {
                        self.note_fitted(study, fitted);
                        self.measure(study, *trial)?;
                        if let Some(trial) = self.recording.trials().last() {
                            after(Done::Measured(trial), &mut self.live);
                        }
                    }
                },
            }
        }
        if signal::interrupted()
            && let Some(tag) = study.left_unprofiled(&self.history())
        {
            self.unprofiled(tag, "the user ended it");
        }
        self.live.clear();
        Ok(())
    }

    /// What was measured so far.
    pub fn history(&self) -> History<'_> {
        History {
            trials: self.recording.trials(),
            remarks: self.recording.remarks(),
            elapsed_ns: self.runner.elapsed_ns(),
        }
    }

    /// Records that there is no profile, and why.
    fn unprofiled(&mut self, tag: Tag, why: &str) {
        let (kind, file) = ("cpu".to_owned(), Err(why.to_owned()));
        self.recording.remark(Remark::Profile(ProfileTaken { tag, kind, trial: None, file }));
    }

    /// Has a load driven under which profiles are taken. What goes wrong is in the record, and ends nothing.
    fn profile(&mut self, study: &Study, mut trial: TrialPlan) {
        let Some(mut profiler) = self.profiler.take() else {
            return self.unprofiled(trial.tag, "nothing takes profiles");
        };
        let tag = trial.tag;
        self.tell_profile(study, &trial);
        let driven = match self.runner.prepare(&mut trial) {
            Err(Unready::Failed(failure)) => Err(failure.to_string()),
            Err(Unready::Unheld(reason)) => Err(reason),
            Ok(_) => {
                let saying = self.saying(study, &trial);
                profiler.begin(&trial);
                let mut say = |tick: &Tick| {
                    profiler.tick(tick);
                    Saying { elapsed_s: tick.end_ns as f64 / 1e9, ..saying.clone() }
                };
                self.drive(trial, &mut say).map(|trial| trial.run.ending.clone()).map_err(|error| error.to_string())
            }
        };
        let last = self.recording.trials().len().checked_sub(1);
        let number = last.filter(|at| driven.is_ok() && self.recording.trials()[*at].tag == tag).map(|at| at as u32);
        profiler.end(tag, driven.map(|ending| (number, ending)), &mut self.recording);
        self.profiler = Some(profiler);
    }

    /// Says that profiles are going to be taken: of one target before each load, of two sides before the first.
    fn tell_profile(&mut self, study: &Study, trial: &TrialPlan) {
        let load = &trial.plan.load;
        let (rate, counted) = (format::rate(load.shape.curve().max()), trial.plan.traffic.counted());
        let length_ns = (load.warmup_ns + load.duration_ns.unwrap_or(0)) as f64;
        let line = match trial.tag.arm {
            None => {
                let name = self.recording.asked().profile_name(&trial.tag);
                format!("profiling at {rate} {counted}/s ({name}), {}", format::duration(length_ns))
            }
            Some(_) if study.is_profiling(&self.history()) => return,
            Some(_) => {
                let all = format::duration(length_ns * TURNS_OF_SIDES as f64);
                format!("profiling both sides in turn at {rate} {counted}/s, {all}")
            }
        };
        self.live.line(&line);
    }

    fn unheld(&mut self, tag: Tag, reason: Unheld, after: &mut dyn FnMut(Done, &mut Live)) {
        after(Done::Unheld, &mut self.live);
        self.recording.remark(Remark::Unheld { tag, reason });
    }

    /// Said once, when it is first so; of blocks, which have it in common, in the end.
    fn note_fitted(&mut self, study: &Study, fitted: Vec<String>) {
        for sentence in fitted {
            if self.fitted.contains(&sentence) {
                continue;
            }
            if !matches!(study, Study::Blocks(_)) {
                self.live.line(&sentence);
            }
            self.fitted.push(sentence);
        }
    }

    fn measure(&mut self, study: &mut Study, trial: TrialPlan) -> Result<(), Failure> {
        let began_s = self.runner.elapsed_ns() as f64 / 1e9;
        let saying = self.saying(study, &trial);
        let alone = matches!(study, Study::Run(..));
        // What is predicted stands there before it is tried, not on terminals alone.
        if let (Study::Explain(_), Some(intervention)) = (&*study, Intervention::of(&trial.tag))
            && intervention != Intervention::Control
        {
            self.live.line(&format!("experiment: {}; {}", intervention.text(), saying.why));
        }
        self.drive(trial, &mut |tick| {
            let at_s = tick.end_ns as f64 / 1e9;
            match alone {
                true => Saying { doing: in_phase(tick.phase, &saying.doing), elapsed_s: at_s, ..saying.clone() },
                false => Saying { elapsed_s: began_s + at_s, ..saying.clone() },
            }
        })?;
        self.tell(study);
        Ok(())
    }

    /// Has one load driven that is prepared. `say` tells what is shown of it, tick by tick.
    fn drive(&mut self, trial: TrialPlan, say: &mut dyn FnMut(&Tick) -> Saying) -> Result<&Trial, Failure> {
        let TrialPlan { tag, plan, mut until } = trial;
        self.meter.next_load();
        let (live, meter) = (&mut self.live, &mut self.meter);
        let driven = self.recording.drive(self.runner, tag, &plan, &mut |tick, server_cores| {
            if signal::interrupted() {
                return ControlFlow::Break(Stop::Interrupted);
            }
            let Saying { doing, why, elapsed_s, total_s } = say(tick);
            live.passing(&Progress { doing, why, elapsed_s, total_s, server_cores, ..meter.push(tick) });
            match tick.end_ns {
                // Connections are made ready.
                0 => ControlFlow::Continue(()),
                _ => until.push(tick.start_ns, tick.end_ns, tick.interval),
            }
        });
        live.clear();
        driven
    }

    /// What a load does, and why.
    fn saying(&self, study: &Study, trial: &TrialPlan) -> Saying {
        let s = |ns: u64| Some(ns as f64 / 1e9);
        if trial.tag.purpose == Purpose::Profile {
            return self.saying_of_profile(trial);
        }
        let load = || load_text(&trial.plan);
        let (doing, why, total_s) = match study {
            Study::Run(run, _) => {
                let total_ns = run.plan.load.duration_ns.map(|ns| ns + run.plan.load.warmup_ns);
                (load(), String::new(), total_ns.and_then(s))
            }
            Study::Sweep(asked) => {
                let total_ns = match asked.lengths {
                    Lengths::Budget(ns) => ns,
                    Lengths::Fixed(ns) => (ns + asked.warmup_ns) * asked.levels.len() as u64,
                };
                let visits = self.recording.trials().iter().filter(|before| before.tag == trial.tag).count();
                let visit = if visits > 0 { format!(", visit {}", visits + 1) } else { String::new() };
                let level = format!("{}, level {} of {}{visit}", load(), trial.tag.turn + 1, asked.levels.len());
                (level, String::new(), s(total_ns))
            }
            Study::Find(search) => {
                let so_far = search.so_far(self.runner.elapsed_ns());
                let (doing, why) = match trial.tag == planned_tag() {
                    true => (format!("holding what to plan with: {}", load()), "the line less the headroom".to_owned()),
                    false => search_text(trial.tag.purpose, &trial.plan, so_far),
                };
                (doing, why, s(search.whole_ns()))
            }
            Study::Explain(explain) => {
                let load = load();
                let (doing, why) = match HoldLevel::of(&trial.tag) {
                    Some(level) => (
                        format!("holding {}: {load}", level.text()),
                        "what changes from a low load to past the line tells what holds it".to_owned(),
                    ),
                    None => match Intervention::of(&trial.tag) {
                        Some(intervention) => {
                            let predicted = explain.predicted(self.recording.trials(), intervention);
                            (format!("{}: {load}", intervention.text()), prediction_text(intervention, &predicted))
                        }
                        None => match varied_number(&trial.tag).and_then(|number| explain.varied.get(number)) {
                            Some(value) => {
                                let why = "what a setting of the server's matters".to_owned();
                                (format!("the setting at {value}: {load}"), why)
                            }
                            None => {
                                let so_far = explain.search.so_far(self.runner.elapsed_ns());
                                search_text(trial.tag.purpose, &trial.plan, so_far)
                            }
                        },
                    },
                };
                (doing, why, s(explain.budget_ns))
            }
            Study::Overload(overload) => {
                let so_far = overload.search.so_far(self.runner.elapsed_ns());
                let (doing, why) = search_text(trial.tag.purpose, &trial.plan, so_far);
                (doing, why, s(overload.budget_ns))
            }
            Study::Blocks(comparison) => {
                let arm = trial.tag.arm.map_or('A', ArmIndex::letter);
                let doing = match trial.tag.purpose {
                    Purpose::Block => format!("block {}: {arm}", trial.tag.turn + 1),
                    _ => format!("what {arm} can do: {} users", trial.plan.load.shape.curve().max()),
                };
                (doing, self.standing.clone(), s(comparison.budget_ns()))
            }
        };
        Saying { doing, why, elapsed_s: 0.0, total_s }
    }

    /// The same of a load under which profiles are taken.
    fn saying_of_profile(&self, trial: &TrialPlan) -> Saying {
        let load = &trial.plan.load;
        let (doing, measured) = match trial.tag.arm {
            None => {
                let name = self.recording.asked().profile_name(&trial.tag);
                (
                    format!(
                        "profiling at {} {}/s ({name})",
                        format::rate(load.shape.curve().max()),
                        trial.plan.traffic.counted()
                    ),
                    "the measurement",
                )
            }
            Some(arm) => {
                let turn = turn_of_sides(&trial.tag).map_or(0, |turn| turn + 1);
                (format!("profile {turn} of {TURNS_OF_SIDES}: {}", arm.letter()), "the blocks")
            }
        };
        let figure = if trial.tag.arm.is_none() { "no figure of it pays" } else { "no figure of theirs pays" };
        let total_s = (load.warmup_ns + load.duration_ns.unwrap_or(0)) as f64 / 1e9;
        let why = format!("after {measured}, so that {figure} for profiles");
        Saying { doing, why, elapsed_s: 0.0, total_s: Some(total_s) }
    }

    /// Shows what the last load said.
    fn tell(&mut self, study: &mut Study) {
        let known = |study: &Study| match study {
            Study::Find(search) => search.outcomes.len(),
            Study::Explain(explain) => explain.search.outcomes.len(),
            Study::Overload(overload) => overload.search.outcomes.len(),
            Study::Blocks(comparison) => comparison.blocks().len(),
            Study::Run(..) | Study::Sweep(_) => 0,
        };
        let before = known(study);
        study.read(self.recording.trials());
        let elapsed_ns = self.runner.elapsed_ns();
        let columns = self.live.columns();
        if known(study) == before {
            return;
        }
        match study {
            Study::Find(search) => self.tell_trial(search, elapsed_ns),
            Study::Explain(explain) => self.tell_trial(&explain.search, elapsed_ns),
            Study::Overload(overload) => self.tell_trial(&overload.search, elapsed_ns),
            Study::Blocks(comparison) => {
                let number = comparison.blocks().len();
                let Some(stand) = comparison.stand(self.recording.trials()) else { return };
                let (heading, line, standing) = match (&stand, comparison.rules()) {
                    (Stand::Proof(standing, enough_ns), Some(rules)) => {
                        let line = prove_line(elapsed_ns, rules, standing);
                        (prove_heading(), line, prove_standing(rules, standing, *enough_ns))
                    }
                    (Stand::Ladder(ladder), _) => {
                        (ladder_heading(), ladder_line(elapsed_ns, ladder, columns), ladder_standing(ladder))
                    }
                    (Stand::Proof(..), None) => return,
                };
                if looks::interim(stand.blocks()).is_some() || number.is_multiple_of(20) {
                    self.live.row(&heading, &line);
                }
                self.standing = standing;
            }
            Study::Run(..) | Study::Sweep(_) => {}
        }
    }

    fn tell_trial(&mut self, search: &Search, elapsed_ns: u64) {
        let columns = self.live.columns();
        if let Some(outcome) = search.outcomes.last() {
            self.live.row(&trial_heading(columns), &trial_line(elapsed_ns, outcome, columns));
        }
    }

    /// Ends what was started, and the experiment; with `broken`, that it broke off, and why. The note says where its file is.
    pub fn end(self, broken: Option<&str>) -> (Experiment, Option<String>, Live) {
        // What cannot be ended now ends with plimsoll.
        let finished = self.runner.finish();
        let mut warnings = self.runner.take_warnings();
        warnings.dedup();
        let (experiment, note) = match broken {
            Some(reason) => self.recording.break_off(reason),
            None => self.recording.end(self.runner.elapsed_ns()),
        };
        let mut live = self.live;
        // Of many loads the first tell enough.
        for warning in warnings.iter().take(WARNINGS_MAX) {
            live.note(&format!("warning: {warning}"));
        }
        if let Err(failure) = finished {
            live.note(&format!("warning: {failure}"));
        }
        (experiment, note, live)
    }
}

/// Whether a load is made with something changed.
fn is_an_experiment(tag: &Tag) -> bool {
    varied_number(tag).is_some() || Intervention::of(tag).is_some()
}

/// What is shown of a load.
#[derive(Debug, Clone, Default)]
pub struct Saying {
    /// What is being done.
    pub doing: String,
    /// Why; empty where that needs no words.
    pub why: String,
    /// Time since the experiment began, s.
    pub elapsed_s: f64,
    /// How long it takes, at most, s.
    pub total_s: Option<f64>,
}

/// What a load is doing, in words.
fn in_phase(phase: Phase, load: &str) -> String {
    match phase {
        Phase::Preparing => format!("opening connections for {load}"),
        Phase::Warmup => format!("warming up with {load}: not measured"),
        Phase::Measured => load.to_owned(),
        Phase::Grace => format!("waiting for the last answers to {load}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_analysis::study::profiling::level_tag;
    use plimsoll_model::{Arm, Arrivals, BlocksAsked, Criterion, Curve};
    use plimsoll_model::{
        Asked, Injector, Interval, LoadShape, Noted, Plan, PlanRecord, ProfilesAsked, ProveAsked, Run, RunAsked,
        SweepAsked, Terms,
    };
    use plimsoll_study::runner::{Driven, Glance, OnTick};
    use std::cell::RefCell;
    use std::rc::Rc;

    /// A server that answers a hundred requests in each tick, in no time; and a machine that holds so many users.
    struct Simulated {
        now_ns: u64,
        users_max: f64,
        /// Arms that cannot be started.
        dead: Option<char>,
        finished: bool,
        /// The load that is ready.
        ready: PlanRecord,
    }

    impl Runner for Simulated {
        fn elapsed_ns(&self) -> u64 {
            self.now_ns
        }

        fn prepare(&mut self, trial: &mut TrialPlan) -> Result<Vec<String>, Unready> {
            self.ready.clone_from(&trial.plan);
            let users = trial.plan.load.shape.curve().max();
            match trial.tag.arm.map(ArmIndex::letter) {
                arm if arm.is_some() && arm == self.dead => Err(Unready::Failed(Failure::start("B does not start"))),
                _ if users > self.users_max => Err(Unready::Unheld("too many".into())),
                _ => Ok(vec!["fitted".into()]),
            }
        }

        fn injectors(&self) -> Vec<Injector> {
            vec![Injector::default()]
        }

        fn connect(&mut self, _: &mut OnTick) -> Result<(), Failure> {
            Ok(())
        }

        fn run(&mut self, start_ns: u64, on_tick: &mut OnTick) -> Result<Driven, Failure> {
            let plan = &self.ready;
            let (from_ns, length_ns) = (plan.load.warmup_ns, plan.load.duration_ns.expect("a length"));
            let mut run = Run::new(plan.clone());
            run.window_ns = (from_ns, from_ns + length_ns);
            run.ending = Some(Ending::Finished);
            for at_ns in (0..from_ns + length_ns).step_by(Plan::TICK_NS as usize) {
                let mut interval = Interval::default();
                let figures = interval.routes.of_mut(0);
                (figures.ledger.scheduled, figures.ledger.succeeded, figures.succeeded_in_window) = (100, 100, 100);
                let end_ns = at_ns + Plan::TICK_NS;
                let tick =
                    Tick { phase: Phase::Measured, start_ns: at_ns, end_ns, origin_ns: start_ns, interval: &interval };
                self.now_ns = start_ns + end_ns;
                let flow = on_tick(&tick, Glance::default());
                run.push(at_ns, interval);
                if let ControlFlow::Break(stop) = flow {
                    run.ending = Some(Ending::Stopped(stop));
                    break;
                }
            }
            Ok(Driven { run, seen_last: None })
        }

        fn finish(&mut self) -> Result<(), Failure> {
            self.finished = true;
            Ok(())
        }
    }

    fn plan() -> PlanRecord {
        Plan::get("h", 80, vec![], LoadShape::Closed { users: Curve::constant(1.0) }).record()
    }

    /// What is recorded of a study, how it ended, and how many steps were told.
    fn carried_out(asked: Asked, runner: &mut Simulated) -> (Experiment, Result<(), String>, usize) {
        carried_out_with(asked, runner, None)
    }

    /// The same with somebody who takes profiles.
    fn carried_out_with(
        asked: Asked,
        runner: &mut Simulated,
        profiler: Option<Box<dyn Profiler>>,
    ) -> (Experiment, Result<(), String>, usize) {
        let mut study = Study::new(&asked).expect("a question");
        let recording = {
            let (terms, noted, injector) = (Terms::default(), Noted::default(), Injector::default());
            Recording::begin(asked, &terms, noted, true, &injector, None).expect("in memory")
        };
        let mut conduct = Conduct::new(runner, recording, Live::new(true));
        conduct.profiler = profiler;
        let mut told = 0;
        let outcome = conduct.carry_out(&mut study, &mut |_, _| told += 1).map_err(|failure| failure.to_string());
        (conduct.end(outcome.as_ref().err().map(String::as_str)).0, outcome, told)
    }

    fn simulated() -> Simulated {
        Simulated { now_ns: 0, users_max: 8.0, dead: None, finished: false, ready: plan() }
    }

    #[test]
    fn a_condition_ends_a_load_and_is_recorded() {
        for (stop_if, expect) in
            [("goodput<1", Ending::Finished), ("goodput<5000", Ending::Stopped(Stop::Condition("goodput<5000".into())))]
        {
            let mut runner = simulated();
            let asked = Asked::Run(RunAsked { plan: plan(), stop_if: Some(stop_if.into()), profiles: None });
            let (experiment, outcome, told) = carried_out(asked, &mut runner);
            assert_eq!((outcome, told, experiment.trials.len()), (Ok(()), 1, 1));
            match (&experiment.trials[0].run.ending, expect) {
                (Some(Ending::Stopped(Stop::Condition(said))), Ending::Stopped(Stop::Condition(part))) => {
                    assert!(said.contains(&part), "{said}");
                }
                (ending, expect) => assert_eq!(*ending, Some(expect), "{stop_if}"),
            }
            assert!(runner.finished && experiment.elapsed_ns == Some(runner.now_ns));
        }
    }

    #[test]
    fn a_level_that_is_not_held_is_a_remark_and_the_next_is_measured() {
        let (levels, lengths) = (vec![1, 16, 4], Lengths::Fixed(500_000_000));
        let asked = Asked::Sweep(SweepAsked { base: plan(), levels, lengths, warmup_ns: 0 });
        let (experiment, outcome, told) = carried_out(asked, &mut simulated());
        assert_eq!((outcome, told), (Ok(()), 3));
        let turns: Vec<u32> = experiment.trials.iter().map(|trial| trial.tag.turn).collect();
        let tag = Tag { turn: 1, ..Tag::of(Purpose::Level) };
        assert_eq!(turns, [0, 2]);
        assert_eq!(experiment.remarks, [Remark::Unheld { tag, reason: Unheld::Machine("too many".into()) }]);
        // Each begins a moment after it is ready.
        assert_eq!(experiment.trials.iter().map(|trial| trial.start_ns).collect::<Vec<_>>(), [1_000_000, 502_000_000]);
    }

    /// Hears of loads under which it takes nothing.
    #[derive(Default)]
    struct Heard {
        ticks: usize,
        loads: Rc<RefCell<Vec<HeardLoad>>>,
    }

    #[derive(Debug, PartialEq)]
    struct HeardLoad {
        tag: Tag,
        /// How many ticks of it were heard of.
        ticks: usize,
        /// Its number among the loads.
        trial: Option<u32>,
    }

    impl Profiler for Heard {
        fn begin(&mut self, _: &TrialPlan) {
            self.ticks = 0;
        }

        fn tick(&mut self, _: &Tick) {
            self.ticks += 1;
        }

        fn end(&mut self, tag: Tag, driven: Result<(Option<u32>, Option<Ending>), String>, recording: &mut Recording) {
            let trial = driven.as_ref().ok().and_then(|(trial, _)| *trial);
            self.loads.borrow_mut().push(HeardLoad { tag, ticks: std::mem::take(&mut self.ticks), trial });
            let file = Err(driven.err().unwrap_or_else(|| "nothing is taken".to_owned()));
            recording.remark(Remark::Profile(ProfileTaken { tag, kind: "cpu".to_owned(), trial, file }));
        }
    }

    #[test]
    fn profiles_are_taken_under_loads_of_their_own_after_the_rest() {
        let profiles = Some(ProfilesAsked { bases: vec!["http://h/debug/pprof".into()], seconds: 1 });
        let mut bounded = plan();
        bounded.load.duration_ns = Some(500_000_000);
        let asked = Asked::Run(RunAsked { plan: bounded, stop_if: None, profiles });
        // The machine holds the low level, and not the one in question: both are heard of, and it ends well.
        let mut runner = Simulated { users_max: 500.0, ..simulated() };
        let heard = Heard::default();
        let loads = Rc::clone(&heard.loads);
        let (experiment, outcome, told) = carried_out_with(asked, &mut runner, Some(Box::new(heard)));
        assert_eq!((outcome, told), (Ok(()), 1));
        let purposes: Vec<Purpose> = experiment.trials.iter().map(|trial| trial.tag.purpose).collect();
        assert_eq!(purposes, [Purpose::Run, Purpose::Profile]);
        let length_ticks = experiment.trials[1].run.intervals.len();
        assert!(length_ticks > 10);
        let expect = [
            HeardLoad { tag: level_tag(0), ticks: length_ticks, trial: Some(1) },
            HeardLoad { tag: level_tag(1), ticks: 0, trial: None },
        ];
        assert_eq!(*loads.borrow(), expect);
        let files: Vec<_> = experiment.profiles().map(|taken| taken.file.clone()).collect();
        assert_eq!(files, [Err("nothing is taken".to_owned()), Err("too many".to_owned())]);
    }

    #[test]
    fn what_does_not_start_breaks_a_comparison_off() {
        let arm = |name: &str| Arm { name: name.into(), plan: plan(), started: true };
        let blocks = BlocksAsked {
            arms: vec![arm("a"), arm("b")],
            users: Some(4),
            rate: None,
            arrivals: Arrivals::Constant,
            load_ns: Some(200_000_000),
            warmup_ns: Some(0),
            budget_ns: 60_000_000_000,
            blocks_max: Some(2),
            answers_may_differ: false,
        };
        let asked = Asked::Prove(ProveAsked { blocks, criterion: Criterion::Goodput, margin: 0.02, profiles: None });
        let (experiment, outcome, _) = carried_out(asked.clone(), &mut simulated());
        let blocks = experiment.trials.iter().filter(|trial| trial.tag.purpose == Purpose::Block);
        assert_eq!((outcome, blocks.count()), (Ok(()), 4));
        let mut runner = Simulated { dead: Some('B'), ..simulated() };
        let (experiment, outcome, _) = carried_out(asked, &mut runner);
        assert_eq!(outcome, Err("B does not start".into()));
        assert_eq!((experiment.broken(), experiment.elapsed_ns), (Some("B does not start"), None));
        assert!(runner.finished && experiment.trials.len() == 1);
    }
}
