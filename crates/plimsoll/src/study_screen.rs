//! How a study looks while it is carried out: progress on a terminal, and lines that stay.
//!
//! Not here: the terminal itself (`live`), the figures of the moment (`progress`), and texts
//! (`plimsoll_report`).

use crate::live::Live;
use crate::progress::Meter;
use plimsoll_analysis::prove::looks;
use plimsoll_analysis::study::blocks::BlocksStatus;
use plimsoll_analysis::study::explain::HoldLevel;
use plimsoll_analysis::study::profiling::{TURNS_OF_SIDES, turn_of_sides};
use plimsoll_analysis::study::search::planned_tag;
use plimsoll_analysis::study::{Search, Study, StudyFailure, TrialPlan};
use plimsoll_engine::{Phase, Tick};
use plimsoll_model::intervention::varied_number;
use plimsoll_model::{ArmIndex, ExperimentSpec, Intervention, Lengths, Purpose, Trial};
use plimsoll_report::{
    Progress, broken_text, format, ladder_heading, ladder_line, ladder_standing, load_text, prediction_text,
    prove_heading, prove_line, prove_standing, search_text, trial_heading, trial_line,
};
use plimsoll_study::study_loop::{Output, StudyDisplay, StudyState};

/// A study on a terminal.
pub struct StudyScreen {
    pub live: Live,
    meter: Meter,
    /// How it stands.
    standing: String,
    /// What is shown of the load under way.
    saying: LoadStatus,
    /// The load is all that there is: its phases are shown.
    alone: bool,
}

/// What is shown of a load.
#[derive(Debug, Clone, Default)]
struct LoadStatus {
    /// What is being done.
    doing: String,
    /// Why; empty where that needs no words.
    why: String,
    /// Time since the experiment began, s.
    elapsed_s: f64,
    /// How long it takes, at most, s.
    total_s: Option<f64>,
}

/// What a load is doing, in words.
fn in_phase(phase: Phase, load: &str) -> String {
    match phase {
        Phase::Preparing => format!("opening connections for {load}"),
        Phase::Warmup => format!("warming up with {load}: not measured"),
        Phase::Measured => load.to_owned(),
        Phase::Grace => format!("waiting for the last responses of {load}"),
    }
}

impl StudyScreen {
    /// Nothing is shown yet.
    pub fn new(live: Live) -> StudyScreen {
        let (meter, standing, saying) = (Meter::default(), String::new(), LoadStatus::default());
        StudyScreen { live, meter, standing, saying, alone: false }
    }

    /// What a load does, and why.
    fn saying(&self, study: &Study, trial: &TrialPlan, state: &StudyState) -> LoadStatus {
        let s = |ns: u64| Some(ns as f64 / 1e9);
        if trial.tag.purpose == Purpose::Profile {
            return saying_of_profile(trial, state.asked);
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
                let visits = state.history.trials.iter().filter(|before| before.tag == trial.tag).count();
                let visit = if visits > 0 { format!(", visit {}", visits + 1) } else { String::new() };
                let level = format!("{}, level {} of {}{visit}", load(), trial.tag.turn + 1, asked.levels.len());
                (level, String::new(), s(total_ns))
            }
            Study::Find(search) => {
                let so_far = search.so_far(state.history.elapsed_ns);
                let (doing, why) = match trial.tag == planned_tag() {
                    true => {
                        (format!("testing the rate with headroom: {}", load()), "the line less the headroom".to_owned())
                    }
                    false => search_text(trial.tag.purpose, &trial.plan, so_far),
                };
                (doing, why, s(search.whole_ns()))
            }
            Study::Explain(explain) => {
                let load = load();
                let (doing, why) = match HoldLevel::from_tag(&trial.tag) {
                    Some(level) => (
                        format!("holding {}: {load}", level.text()),
                        "the changes from a low load to past the line show the bottleneck".to_owned(),
                    ),
                    None => match Intervention::from_tag(&trial.tag) {
                        Some(intervention) => {
                            let predicted = explain.predicted(state.history.trials, intervention);
                            (format!("{}: {load}", intervention.text()), prediction_text(intervention, &predicted))
                        }
                        None => match varied_number(&trial.tag).and_then(|number| explain.varied.get(number)) {
                            Some(value) => {
                                let why = "the effect of a setting of the server".to_owned();
                                (format!("setting {value}: {load}"), why)
                            }
                            None => {
                                let so_far = explain.search.so_far(state.history.elapsed_ns);
                                search_text(trial.tag.purpose, &trial.plan, so_far)
                            }
                        },
                    },
                };
                (doing, why, s(explain.budget_ns))
            }
            Study::Overload(overload) => {
                let so_far = overload.search.so_far(state.history.elapsed_ns);
                let (doing, why) = search_text(trial.tag.purpose, &trial.plan, so_far);
                (doing, why, s(overload.budget_ns))
            }
            Study::Blocks(comparison) => {
                let arm = trial.tag.arm.map_or('A', ArmIndex::letter);
                let doing = match trial.tag.purpose {
                    Purpose::Block => format!("block {}: {arm}", trial.tag.turn + 1),
                    _ => format!("peak of {arm}: {} users", trial.plan.load.shape.curve().max()),
                };
                (doing, self.standing.clone(), s(comparison.budget_ns()))
            }
        };
        LoadStatus { doing, why, elapsed_s: 0.0, total_s }
    }

    fn tell_trial(&mut self, search: &Search, elapsed_ns: u64) {
        let columns = self.live.columns();
        if let Some(outcome) = search.outcomes.last() {
            self.live.row(&trial_heading(columns), &trial_line(elapsed_ns, outcome, columns));
        }
    }
}

impl Output for StudyScreen {
    fn load_begins(&mut self, study: &Study, trial: &TrialPlan, state: &StudyState) {
        let is_profile = trial.tag.purpose == Purpose::Profile;
        let saying = self.saying(study, trial, state);
        // What is predicted stands there before it is tried, not on terminals alone.
        if let (false, Study::Explain(_), Some(intervention)) = (is_profile, study, Intervention::from_tag(&trial.tag))
            && intervention != Intervention::Control
        {
            self.live.line(&format!("experiment: {}; {}", intervention.text(), saying.why));
        }
        self.alone = matches!(study, Study::Run(..)) && !is_profile;
        let began_s = if self.alone || is_profile { 0.0 } else { state.history.elapsed_ns as f64 / 1e9 };
        self.saying = LoadStatus { elapsed_s: began_s, ..saying };
        self.meter.next_load();
    }

    fn tick(&mut self, tick: &Tick, server_cores: Option<f64>) {
        let LoadStatus { doing, why, elapsed_s, total_s } = self.saying.clone();
        let doing = if self.alone { in_phase(tick.phase, &doing) } else { doing };
        let elapsed_s = elapsed_s + tick.end_ns as f64 / 1e9;
        let progress = Progress { doing, why, elapsed_s, total_s, server_cores, ..self.meter.push(tick) };
        self.live.passing(&progress);
    }

    /// Of a search the outcome says it.
    fn load_ends(&mut self, _: &Study, _: &Trial, _: &StudyState) {}
}

impl StudyDisplay for StudyScreen {
    /// Of one target before each load, of two sides before the first.
    fn profile_planned(&mut self, study: &Study, trial: &TrialPlan, state: &StudyState) {
        let load = &trial.plan.load;
        let (rate, counted) = (format::rate(load.shape.curve().max()), trial.plan.traffic.counted());
        let length_ns = (load.warmup_ns + load.duration_ns.unwrap_or(0)) as f64;
        let line = match trial.tag.arm {
            None => {
                let name = state.asked.profile_name(&trial.tag);
                format!("profiling at {rate} {counted}/s ({name}), {}", format::duration(length_ns))
            }
            Some(_) if study.is_profiling(&state.history) => return,
            Some(_) => {
                let all = format::duration(length_ns * TURNS_OF_SIDES as f64);
                format!("profiling both sides in turn at {rate} {counted}/s, {all}")
            }
        };
        self.live.line(&line);
    }

    fn outcome(&mut self, study: &Study, state: &StudyState) {
        let (elapsed_ns, columns) = (state.history.elapsed_ns, self.live.columns());
        match study {
            Study::Find(search) => self.tell_trial(search, elapsed_ns),
            Study::Explain(explain) => self.tell_trial(&explain.search, elapsed_ns),
            Study::Overload(overload) => self.tell_trial(&overload.search, elapsed_ns),
            Study::Blocks(comparison) => {
                let number = comparison.blocks().len();
                let Some(stand) = comparison.stand(state.history.trials) else { return };
                let (heading, line, standing) = match (&stand, comparison.rules()) {
                    (BlocksStatus::Proof(standing, enough_ns), Some(rules)) => {
                        let line = prove_line(elapsed_ns, rules, standing);
                        (prove_heading(), line, prove_standing(rules, standing, *enough_ns))
                    }
                    (BlocksStatus::Ladder(ladder), _) => {
                        (ladder_heading(), ladder_line(elapsed_ns, ladder, columns), ladder_standing(ladder))
                    }
                    (BlocksStatus::Proof(..), None) => return,
                };
                if looks::interim(stand.blocks()).is_some() || number.is_multiple_of(20) {
                    self.live.row(&heading, &line);
                }
                self.standing = standing;
            }
            Study::Run(..) | Study::Sweep(_) => {}
        }
    }

    fn broken(&self, broken: &StudyFailure) -> String {
        broken_text(broken)
    }

    fn line(&mut self, line: &str) {
        self.live.line(line);
    }

    fn note(&mut self, line: &str) {
        self.live.note(line);
    }

    fn clear(&mut self) {
        self.live.clear();
    }
}

/// The same of a load under which profiles are taken.
fn saying_of_profile(trial: &TrialPlan, asked: &ExperimentSpec) -> LoadStatus {
    let load = &trial.plan.load;
    let (doing, measured) = match trial.tag.arm {
        None => {
            let name = asked.profile_name(&trial.tag);
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
    let figure = if trial.tag.arm.is_none() { "it" } else { "them" };
    let total_s = (load.warmup_ns + load.duration_ns.unwrap_or(0)) as f64 / 1e9;
    let why = format!("after {measured}, so that profiles do not disturb {figure}");
    LoadStatus { doing, why, elapsed_s: 0.0, total_s: Some(total_s) }
}
