//! The finding of a sweep: the figures of each level, the peak and the knee. A level is a load with
//! a fixed number of users.

use super::recording::cut_off_doubt;
use crate::by_route::{RouteSummary, summarize_routes};
use crate::doubts::{Assessment, DoubtKind, Doubts};
use crate::format;
use crate::interference::Interference;
use crate::levels::{LEVEL_ERROR_MAX, Level, LoadUnit, MeasuredLoad, knee, peak, visits_of_level};
use crate::sentence::{Remedy, Sentence};
use crate::series::{goodput_error, goodput_error_between_visits};
use crate::server::ServerUse;
use crate::summary::Summary;
use plimsoll_model::{Experiment, ExperimentEvent, LoadSkipReason, SweepSpec, Trial};

/// One level of a sweep: a load with a fixed number of users.
#[derive(Debug, Clone)]
pub struct SweepLevel<'a> {
    /// Number of users of the level, each with one request at a time.
    pub concurrency: u64,
    /// The figures of the level, or the reason why the level was skipped.
    pub outcome: Result<SweepFigures<'a>, LoadSkipReason>,
}

/// The figures of a measured level of a sweep.
#[derive(Debug, Clone)]
pub struct SweepFigures<'a> {
    /// The loads (visits) that measured the level.
    pub load: MeasuredLoad<'a>,
    /// All figures of the level, over all its visits (separate loads with the level's number of
    /// users).
    pub summary: Summary,
    /// The figures of each route, if the plan has several routes.
    pub routes: Vec<RouteSummary>,
    /// The figures by which levels are compared with each other.
    pub level: Level,
    /// The error of the goodput: half of its 95 % interval, as a share of the goodput. `None` if
    /// the level was measured too briefly to compute an error.
    pub error: Option<f64>,
    /// Whether `error` comes from several visits (separate loads) of the level, and so includes the
    /// variation between visits.
    pub is_error_between_visits: bool,
    /// The server's use of CPU and memory at the level; `None` if it was not observed.
    pub server: Option<ServerUse>,
}

/// The finding of a sweep: the figures of all levels, the peak and the knee.
#[derive(Debug, Clone)]
pub struct SweepFinding<'a> {
    /// The levels in the order of the command line, including skipped levels.
    pub levels: Vec<SweepLevel<'a>>,
    /// The level with the highest goodput. Levels that other processes disturbed also count,
    /// because interference affects all levels of the sweep.
    pub peak: Option<Level>,
    /// The knee: the level with the fewest users whose goodput reaches 95 % of the peak.
    pub knee: Option<Level>,
    /// The CPU that other processes used during all levels.
    pub interference: Interference,
}

impl<'a> SweepLevel<'a> {
    /// Computes the level that a single load measured. Returns `None` if the load has no fixed
    /// number of users.
    pub fn from_single_load(trial: &'a Trial) -> Option<SweepLevel<'a>> {
        SweepLevel::from_load(MeasuredLoad::from_visits(vec![trial])?)
    }

    /// Computes the level that the visits (separate loads with one number of users) of `load`
    /// measured. Returns `None` if the load has no fixed number of users.
    pub fn from_load(load: MeasuredLoad<'a>) -> Option<SweepLevel<'a>> {
        let (LoadUnit::Concurrency, level) = Level::from_run(&load.run)? else { return None };
        let between = goodput_error_between_visits(&load.visit_rates_rps());
        let figures = SweepFigures {
            summary: load.summary(),
            routes: summarize_routes(&load.run),
            error: between.or_else(|| goodput_error(&load.run)),
            is_error_between_visits: between.is_some(),
            server: load.server_use().ok(),
            level,
            load,
        };
        Some(SweepLevel { concurrency: figures.level.load as u64, outcome: Ok(figures) })
    }

    /// Creates a level that was skipped for `reason`.
    pub fn skipped_level(concurrency: u64, reason: &LoadSkipReason) -> SweepLevel<'a> {
        SweepLevel { concurrency, outcome: Err(reason.clone()) }
    }

    /// Returns the figures of the level; `None` if the level was skipped.
    pub fn figures(&self) -> Option<&SweepFigures<'a>> {
        self.outcome.as_ref().ok()
    }
}

impl<'a> SweepFinding<'a> {
    /// Combines these levels into the finding of a sweep.
    pub fn from_levels(levels: Vec<SweepLevel<'a>>) -> SweepFinding<'a> {
        let others = |levels: &[SweepLevel]| {
            Interference::combine(
                levels.iter().filter_map(SweepLevel::figures).map(|figures| &figures.summary.interference),
                "levels",
            )
        };
        let figures = levels.iter().filter_map(SweepLevel::figures);
        let measured: Vec<Level> = figures.map(|figures| figures.level.clone()).collect();
        let (peak, knee) = (peak(&measured).cloned(), knee(&measured).cloned());
        SweepFinding { interference: others(&levels), peak, knee, levels }
    }

    /// Returns the figures of the measured levels, without skipped levels.
    pub fn measured_levels(&self) -> Vec<Level> {
        self.levels.iter().filter_map(SweepLevel::figures).map(|figures| figures.level.clone()).collect()
    }

    /// Returns the doubts about the figures. `noted` contains the warnings from before the sweep.
    /// Further doubts concern interference, levels at which the generator was the limit, skipped
    /// levels and imprecise levels.
    pub fn doubts(&self, noted: &[String]) -> Doubts {
        let mut doubts: Doubts = self.interference.doubt().into_iter().chain(Doubts::from_warnings(noted)).collect();
        let figures = || self.levels.iter().filter_map(|level| Some((level.concurrency, level.figures()?)));
        let mut limits = figures().filter(|(_, figures)| figures.summary.generator.is_limit);
        if let Some((users, first)) = limits.next() {
            let users = if users == 1 { "1 user".to_owned() } else { format!("{} users", format::count(users)) };
            let text = match limits.count() {
                0 => format!("with {users}, plimsoll was the limit, not the server: "),
                1 => format!("with {users} and one further user count, plimsoll was the limit, not the server: "),
                more => {
                    format!("with {users} and {more} further user counts, plimsoll was the limit, not the server: ")
                }
            };
            let reason = first.summary.generator.reason.clone();
            let reason = reason.unwrap_or_else(|| "plimsoll could not generate the load fast enough".into());
            doubts.add(DoubtKind::Generator, Sentence::from(text).append_sentence(&reason));
        }
        for SweepLevel { concurrency, outcome } in &self.levels {
            if let Err(reason) = outcome {
                let (users, reason) = (format::count(*concurrency), format::skip_reason(reason));
                let text =
                    Sentence::from(format!("the load with {users} users was not measured: ")).append_sentence(&reason);
                doubts.add(DoubtKind::Unmeasured, text);
            }
        }
        let rough: Vec<(u64, f64)> = figures()
            .filter_map(|(users, figures)| Some((users, figures.error?)))
            .filter(|(_, error)| *error > 2.0 * LEVEL_ERROR_MAX)
            .collect();
        if let Some(worst) = rough.iter().map(|(_, error)| *error).reduce(f64::max) {
            let at: Vec<String> = rough.iter().map(|(users, _)| format::count(*users)).collect();
            let text = format!(
                "the goodput varied: with {users} users, the error of the goodput is up to {error_percent:.0} %. Small \
                 differences between user counts carry no information. More time reduces this error (",
                users = at.join(", "),
                error_percent = worst * 100.0
            );
            let text = Sentence::from(text).remedy(Remedy::LoadTime).words(", ").remedy(Remedy::Budget);
            doubts.add(DoubtKind::Rough, text.words(")"));
        }
        doubts
    }
}

pub(super) fn sweep_finding<'a>(experiment: &'a Experiment, spec: &SweepSpec) -> Assessment<SweepFinding<'a>> {
    let of_turn = |(turn, users): (u32, &u64)| {
        let load = visits_of_level(&experiment.trials, turn as usize).and_then(SweepLevel::from_load);
        let unheld = || {
            let mut unheld = experiment.events.iter().filter_map(ExperimentEvent::skipped_load);
            let (_, reason) = unheld.find(|(tag, _)| tag.turn == turn)?;
            Some(SweepLevel::skipped_level(*users, reason))
        };
        load.or_else(unheld)
    };
    let found = SweepFinding::from_levels((0..).zip(&spec.levels).filter_map(of_turn).collect());
    let doubts = cut_off_doubt(experiment).into_iter().chain(found.doubts(&experiment.start_notes.warnings)).collect();
    Assessment::new(doubts, found)
}
