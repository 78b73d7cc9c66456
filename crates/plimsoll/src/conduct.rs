//! The one loop for every study: asks which load is next, has it carried out, records it, shows it, and asks again, until the
//! study, the user or the world says stop.
//!
//! Not here: which load is next, and what it all says (`plimsoll-analysis`); how loads are carried out (`runner`).

use crate::failure::Failure;
use crate::live::Live;
use crate::progress::Meter;
use crate::recording::Recording;
use crate::runner::{Runner, Unready};
use plimsoll_analysis::prove::looks;
use plimsoll_analysis::study::blocks::Stand;
use plimsoll_analysis::study::explain::HoldLevel;
use plimsoll_analysis::study::{History, Search, Step, Study, TrialPlan};
use plimsoll_engine::{Phase, Tick};
use plimsoll_model::{ArmIndex, Experiment, Lengths, Purpose, Remark, Stop, Tag, Trial, Unheld};
use plimsoll_report::{
    Progress, broken_text, ladder_heading, ladder_line, ladder_standing, load_text, prove_heading, prove_line,
    prove_standing, search_text, trial_heading, trial_line,
};
use plimsoll_sys::signal;
use std::ops::ControlFlow;

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
    meter: Meter,
    /// How it stands, for the eye.
    standing: String,
}

/// What happened to a step of a study.
pub enum Done<'a> {
    /// A load was carried out.
    Measured(&'a Trial),
    /// A load could not be made: why.
    Unheld(Tag, &'a Unheld),
}

impl<'a> Conduct<'a> {
    /// Nothing is measured yet.
    pub fn new(runner: &'a mut dyn Runner, recording: Recording, live: Live) -> Conduct<'a> {
        Conduct { runner, recording, live, fitted: Vec::new(), meter: Meter::default(), standing: String::new() }
    }

    /// Carries a study out. `after` is called after each of its steps.
    pub fn carry_out(&mut self, study: &mut Study, after: &mut dyn FnMut(Done, &mut Live)) -> Result<(), Failure> {
        while !signal::interrupted() {
            let history = History {
                trials: self.recording.trials(),
                remarks: self.recording.remarks(),
                elapsed_ns: self.runner.elapsed_ns(),
            };
            match study.next(&history) {
                Step::Stop => break,
                Step::Break(broken) => return Err(Failure::start(broken_text(&broken))),
                Step::Skip(tag) => self.unheld(tag, Unheld::NoTime, after),
                Step::Measure(mut trial) => match self.runner.prepare(&mut trial) {
                    Err(Unready::Failed(failure)) => return Err(failure),
                    Err(Unready::Unheld(reason)) if matches!(study, Study::Sweep(_)) => {
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
        self.live.clear();
        Ok(())
    }

    fn unheld(&mut self, tag: Tag, reason: Unheld, after: &mut dyn FnMut(Done, &mut Live)) {
        after(Done::Unheld(tag, &reason), &mut self.live);
        self.recording.remark(Remark::Unheld { tag, reason });
    }

    /// Levels differ in what they need, so that it is said at once; of blocks it is the same, and said in the end.
    fn note_fitted(&mut self, study: &Study, fitted: Vec<String>) {
        for sentence in fitted {
            if matches!(study, Study::Sweep(_)) {
                self.live.line(&sentence);
            } else if !self.fitted.contains(&sentence) {
                self.fitted.push(sentence);
            }
        }
    }

    fn measure(&mut self, study: &mut Study, trial: TrialPlan) -> Result<(), Failure> {
        let began_s = self.runner.elapsed_ns() as f64 / 1e9;
        let saying = self.saying(study, &trial);
        let alone = matches!(study, Study::Run(..));
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

    /// The same after a study, of a load that is none of its own; it is prepared first.
    pub fn measure_beside(
        &mut self,
        mut trial: TrialPlan,
        say: &mut dyn FnMut(&Tick) -> Saying,
    ) -> Result<&Trial, Failure> {
        match self.runner.prepare(&mut trial) {
            Err(Unready::Failed(failure)) => Err(failure),
            Err(Unready::Unheld(reason)) => Err(Failure::start(reason)),
            Ok(_) => self.drive(trial, say),
        }
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
        let load = || load_text(&trial.plan.load.shape);
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
                let level = format!("{}, level {} of {}", load(), trial.tag.turn + 1, asked.levels.len());
                (level, String::new(), s(total_ns))
            }
            Study::Find(search) => {
                let so_far = search.so_far(self.runner.elapsed_ns());
                let (doing, why) = search_text(trial.tag.purpose, &trial.plan.load.shape, so_far);
                (doing, why, s(search.settings.budget_ns))
            }
            Study::Explain(explain) => {
                let load = load();
                let (doing, why) = match HoldLevel::of(&trial.tag) {
                    Some(level) => (
                        format!("holding {}: {load}", level.text()),
                        "what changes from a low load to past the line tells what holds it".to_owned(),
                    ),
                    None => {
                        let so_far = explain.search.so_far(self.runner.elapsed_ns());
                        search_text(trial.tag.purpose, &trial.plan.load.shape, so_far)
                    }
                };
                (doing, why, s(explain.budget_ns))
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

    /// Shows what the last load said.
    fn tell(&mut self, study: &mut Study) {
        let known = |study: &Study| match study {
            Study::Find(search) => search.outcomes.len(),
            Study::Explain(explain) => explain.search.outcomes.len(),
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
        let (experiment, note) = match broken {
            Some(reason) => self.recording.break_off(reason),
            None => self.recording.end(self.runner.elapsed_ns()),
        };
        let mut live = self.live;
        if let Err(failure) = finished {
            live.note(&format!("warning: {failure}"));
        }
        (experiment, note, live)
    }
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
    use crate::runner::{Driven, Glance, OnTick};
    use plimsoll_model::{Arm, Arrivals, BlocksAsked, Criterion, Curve};
    use plimsoll_model::{
        Asked, Ending, Injector, Interval, LoadShape, Noted, Plan, PlanRecord, ProveAsked, Run, RunAsked, SweepAsked,
        Terms,
    };

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
                run.push(at_ns, &interval);
                let end_ns = at_ns + Plan::TICK_NS;
                let tick =
                    Tick { phase: Phase::Measured, start_ns: at_ns, end_ns, origin_ns: start_ns, interval: &interval };
                self.now_ns = start_ns + end_ns;
                if let ControlFlow::Break(stop) = on_tick(&tick, Glance::default()) {
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
        let mut study = Study::new(&asked).expect("a question");
        let recording = {
            let (terms, noted, injector) = (Terms::default(), Noted::default(), Injector::default());
            Recording::begin(asked, &terms, noted, true, &injector, None).expect("in memory")
        };
        let mut conduct = Conduct::new(runner, recording, Live::new(true));
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
            count_disturbed: false,
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
