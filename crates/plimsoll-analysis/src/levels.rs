//! The figures at each level of a sweep, from recorded runs or from the text of `.dat` files. Other
//! functions find the peak and the knee of the goodput, compare two lists of levels, and compute
//! for how long a level is measured.
//!
//! A line of a `.dat` file contains one level: `concurrency qps mean_ms success_percent`, separated
//! by white space. The parser skips empty lines, comments (`#`, `%`, `;`, `//`), a heading of
//! words, and further columns.

use crate::interference::Interference;
use crate::series::{GoodputVariation, goodput_variation};
use crate::server::ServerUse;
use crate::summary::Summary;
use plimsoll_model::units::{MS, SECOND};
use plimsoll_model::{Experiment, ExperimentSpec, LoadPurpose, LoadShape, LoadTag, Run, Trial};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

/// The unit of the load at a level (a load with a fixed number of users or a fixed rate).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadUnit {
    /// The load is a number of simultaneous users.
    Concurrency,
    /// The load is a number of offered requests a second.
    Rate,
    /// The load is a number of offered sessions a second.
    Sessions,
}

/// The figures measured at one level of load.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// The load: the number of users, or the offered requests or sessions a second.
    pub load: f64,
    /// Successful requests a second.
    pub rps: f64,
    /// Mean time to the last byte, in ns.
    pub mean_ns: f64,
    /// Response time p99 over all requests, in ns; `None` if it is not known.
    pub p99_ns: Option<f64>,
    /// Share of the requests that succeeded, 0..=1.
    pub success_rate: f64,
    /// The variation of the goodput within the measurement of the level; `None` if it is not known.
    pub spread: Option<GoodputVariation>,
}

impl Level {
    /// Computes the level that `run` measured, and the unit of its load. Returns `None` if the load
    /// changes during the run.
    pub fn from_run(run: &Run) -> Option<(LoadUnit, Level)> {
        let (over, curve) = match &run.plan.load.shape {
            LoadShape::Closed { users } => (LoadUnit::Concurrency, users),
            LoadShape::Open { rate, .. } if run.plan.traffic.scenarios.is_empty() => (LoadUnit::Rate, rate),
            LoadShape::Open { rate, .. } => (LoadUnit::Sessions, rate),
            LoadShape::ArrivalTimes { .. } => return None,
        };
        let load = curve.max();
        if curve.stages.iter().any(|stage| stage.from != load || stage.to != load) {
            return None;
        }
        let summary = Summary::from_run(run);
        Some((
            over,
            Level {
                load,
                rps: summary.throughput_rps,
                mean_ns: summary.routes_sum.response.mean_ns,
                p99_ns: summary.routes_sum.response.quantiles.p99.time_ns().map(|ns| ns as f64),
                success_rate: summary.success_rate,
                spread: goodput_variation(run),
            },
        ))
    }
}

/// A measured load of an experiment: a single trial, or all trials (visits) of one level of a sweep
/// combined.
#[derive(Debug, Clone)]
pub struct MeasuredLoad<'a> {
    /// The visits (trials) of this load; at least one.
    pub visits: Vec<&'a Trial>,
    /// All visits (trials of this load) merged into one run.
    pub run: Cow<'a, Run>,
}

impl<'a> MeasuredLoad<'a> {
    /// Combines the visits (trials) of one load; `None` for an empty list.
    pub fn from_visits(visits: Vec<&'a Trial>) -> Option<MeasuredLoad<'a>> {
        let run = match visits.as_slice() {
            [only] => Cow::Borrowed(&only.run),
            several => Cow::Owned(Run::join_loads(&several.iter().map(|visit| &visit.run).collect::<Vec<_>>())?),
        };
        Some(MeasuredLoad { visits, run })
    }

    /// Returns the interference by other processes, combined over all visits (trials) of this load.
    pub fn interference(&self) -> Interference {
        match self.visits.as_slice() {
            [only] => Interference::from_run(&only.run),
            several => {
                let others: Vec<Interference> =
                    several.iter().map(|visit| Interference::from_run(&visit.run)).collect();
                Interference::combine(&others, "visits")
            }
        }
    }

    /// Returns the figures of all visits (trials) of this load combined.
    pub fn summary(&self) -> Summary {
        Summary::with_interference(&self.run, None, self.interference())
    }

    /// Returns the server's CPU and memory use over all visits (trials) of this load. The error is
    /// the reason why the CPU and memory use in one of the visits (trials) is not known.
    pub fn server_use(&self) -> Result<ServerUse, String> {
        let mut sum: Option<ServerUse> = None;
        for visit in &self.visits {
            let used = ServerUse::from_run(&visit.run)?;
            match &mut sum {
                Some(sum) => sum.add(used),
                None => sum = Some(used),
            }
        }
        sum.ok_or_else(|| "no probe ran".to_owned())
    }

    /// Returns the successes a second in the measured window of each visit (trial) of this load.
    pub fn visit_rates_rps(&self) -> Vec<f64> {
        self.visits.iter().map(|visit| measured_goodput_rps(&visit.run)).collect()
    }
}

/// Returns the successes a second inside the measured window.
fn measured_goodput_rps(run: &Run) -> f64 {
    let succeeded: u64 = run.intervals.values().map(|interval| interval.all_routes().succeeded_in_window).sum();
    if run.duration_ns() > 0 { succeeded as f64 * 1e9 / run.duration_ns() as f64 } else { 0.0 }
}

/// Returns the loads of an experiment whose figures describe the target, in order. The levels of a
/// sweep are in the order of the command line. Pilot trials (short trials that show the response
/// time) and loads for profiles are left out.
pub fn measured_loads(experiment: &Experiment) -> Vec<MeasuredLoad<'_>> {
    let trials = &experiment.trials;
    match &experiment.spec {
        ExperimentSpec::Sweep(spec) => {
            (0..spec.levels.len()).filter_map(|turn| visits_of_level(trials, turn)).collect()
        }
        _ => {
            let counts = |trial: &&Trial| !matches!(trial.tag.purpose, LoadPurpose::Profile | LoadPurpose::Settle);
            trials.iter().filter(counts).filter_map(|trial| MeasuredLoad::from_visits(vec![trial])).collect()
        }
    }
}

/// Returns the levels of a recorded experiment and the unit of their loads. Returns `None` if the
/// experiment has no levels, or levels of different units.
pub fn recorded_levels(experiment: &Experiment) -> Option<(LoadUnit, Vec<Level>)> {
    let levels: Option<Vec<(LoadUnit, Level)>> =
        measured_loads(experiment).iter().map(|load| Level::from_run(&load.run)).collect();
    let levels = levels?;
    let over = levels.first()?.0;
    levels.iter().all(|level| level.0 == over).then(|| (over, levels.into_iter().map(|level| level.1).collect()))
}

/// Returns the load of level number `turn` of a sweep, combined from all measured visits (trials)
/// of the level; `None` without a visit.
pub(crate) fn visits_of_level(trials: &[Trial], turn: usize) -> Option<MeasuredLoad<'_>> {
    MeasuredLoad::from_visits(trials_of_level(trials, LoadPurpose::Level, turn).collect())
}

/// Returns the trials of one purpose at level number `turn` of a sweep.
pub(crate) fn trials_of_level(trials: &[Trial], purpose: LoadPurpose, turn: usize) -> impl Iterator<Item = &Trial> {
    trials.iter().filter(move |trial| trial.tag == LoadTag { turn: turn as u32, ..LoadTag::for_purpose(purpose) })
}

/// The knee is the lowest load whose goodput reaches this share of the goodput at the peak.
pub const KNEE_SHARE: f64 = 0.95;

/// Returns the level with the most successes a second. If several levels have equal successes a
/// second, the level with the lowest load counts. The rate and the load of a peak always belong to
/// one level.
pub fn peak(levels: &[Level]) -> Option<&Level> {
    let measured = levels.iter().filter(|level| level.rps > 0.0 && level.rps.is_finite());
    measured.max_by(|a, b| a.rps.total_cmp(&b.rps).then(b.load.total_cmp(&a.load)))
}

/// Returns the knee: the level with the lowest load whose goodput reaches [`KNEE_SHARE`] of the
/// peak.
pub fn knee(levels: &[Level]) -> Option<&Level> {
    let enough = peak(levels)?.rps * KNEE_SHARE;
    levels.iter().filter(|level| level.rps >= enough).min_by(|a, b| a.load.total_cmp(&b.load))
}

/// Largest error of a level's goodput at which the goodput counts as exact: half of its 95 %
/// interval, as a share of the goodput.
pub const LEVEL_ERROR_MAX: f64 = 0.03;
/// Shortest measurement of a level, as a multiple of the mean response time. The users of a closed
/// loop get their responses one after another, and a measurement needs several responses per user.
pub(crate) const LEVEL_RESPONSE_TIMES_MIN: f64 = 5.0;
/// Smallest time for a level of a sweep with a budget, in ns, including the level's pilot trial (a
/// short first trial).
pub const LEVEL_TIME_NS_MIN: u64 = 500 * MS;

/// Returns the length of the pilot trial of a level, in ns. The pilot trial shows how long
/// responses take. `share_ns` is the level's part of the sweep's time budget, in ns.
pub fn pilot_ns(share_ns: u64) -> u64 {
    (share_ns / 12).clamp(300 * MS, SECOND) / (100 * MS) * (100 * MS)
}

/// Why a `.dat` file could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatError {
    /// The number of the faulty line of the file (from 1), and a description of the fault.
    Line(usize, String),
    /// The file contains no level.
    Empty,
}

impl fmt::Display for DatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatError::Line(line, what) => write!(f, "line {line}: {what}"),
            DatError::Empty => {
                write!(f, "no line of the file has the four columns concurrency, requests/s, mean ms and success %")
            }
        }
    }
}

impl std::error::Error for DatError {}

/// Largest value that the parser accepts. A larger value has lost its decimal point, or is no
/// measurement.
const VALUE_MAX: f64 = 1e15;
/// Maximum number of levels of a recording. A chart of more levels would be unreadable.
const LEVELS_MAX: usize = 1_000;

/// Parses the text of a `.dat` file. The levels are returned in the order of the file's lines.
pub fn parse_dat(text: &str) -> Result<Vec<Level>, DatError> {
    let mut levels: Vec<Level> = Vec::new();
    let mut known = HashSet::new();
    let mut heading_allowed = true;
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        let bad = |what: String| DatError::Line(number + 1, what);
        if line.is_empty() || ["#", "%", ";", "//"].iter().any(|sign| line.starts_with(sign)) {
            continue;
        }
        let fields: Vec<&str> = line.split_whitespace().collect();
        let words = fields.iter().all(|field| field.starts_with(|c: char| c.is_alphabetic() || c == '"' || c == '('));
        if words && std::mem::take(&mut heading_allowed) {
            continue;
        }
        heading_allowed = false;
        if fields.len() < 4 {
            let fields = if fields.len() == 1 { "1 field".to_owned() } else { format!("{} fields", fields.len()) };
            return Err(bad(format!(
                "the line has {fields}, but needs four: concurrency, requests/s, mean ms and success %"
            )));
        }
        let names = ["concurrency", "requests/s", "mean ms", "success %"];
        let mut values = [0.0; 4];
        for ((value, field), column) in values.iter_mut().zip(&fields).zip(names) {
            let bare = field.trim_end_matches([',', ';']).trim_end_matches('%').trim_end_matches("ms");
            let read = bare.parse::<f64>().ok().filter(|v| (0.0..=VALUE_MAX).contains(v));
            *value = read.ok_or_else(|| bad(format!("'{field}' is not a number for the column '{column}'")))?;
        }
        let [load, rps, mean_ms, success] = values;
        if load == 0.0 {
            return Err(bad("a concurrency of 0".into()));
        }
        if success > 100.0 {
            return Err(bad(format!("a success rate of {success} %")));
        }
        if levels.len() == LEVELS_MAX {
            return Err(bad(format!("more than {LEVELS_MAX} levels")));
        }
        if !known.insert(load.to_bits()) {
            return Err(bad(format!("concurrency {load} appears twice")));
        }
        let mean_ns = mean_ms * 1e6;
        levels.push(Level { load, rps, mean_ns, p99_ns: None, success_rate: success / 100.0, spread: None });
    }
    if levels.is_empty() { Err(DatError::Empty) } else { Ok(levels) }
}

/// The difference between two recordings A and B at one load. A relative change is B's value
/// divided by A's value, minus 1; `None` if A's value is 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelChange {
    /// The load: users, or offered requests or sessions a second.
    pub load: f64,
    /// The relative change of the successes a second.
    pub rps: Option<f64>,
    /// The relative change of the mean time to the last byte.
    pub mean: Option<f64>,
    /// The change of the success rate: B minus A, as a share (0.01 is one percentage point).
    pub success_points: f64,
}

/// Returns the changes from recording `a` to recording `b`, for the loads that both recordings
/// contain, by ascending load.
pub fn level_changes(a: &[Level], b: &[Level]) -> Vec<LevelChange> {
    let relative = |a: f64, b: f64| (a > 0.0).then(|| b / a - 1.0);
    // If a recording has several levels with the same load, the first of them counts.
    let mut by_load: HashMap<u64, &Level> = HashMap::new();
    b.iter().for_each(|level| _ = by_load.entry(level.load.to_bits()).or_insert(level));
    let shared = a.iter().filter_map(|a| by_load.get(&a.load.to_bits()).map(|b| (a, *b)));
    let mut changes: Vec<LevelChange> = shared
        .map(|(a, b)| LevelChange {
            load: a.load,
            rps: relative(a.rps, b.rps),
            mean: relative(a.mean_ns, b.mean_ns),
            success_points: b.success_rate - a.success_rate,
        })
        .collect();
    changes.sort_by(|a, b| a.load.total_cmp(&b.load));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dat_errors_name_the_file_line() {
        for (text, expect) in [
            ("200 13000.5 15.2 100.00\n500 12000 41 99.98\n", Ok(2)),
            ("# made by a script\nconcurrency qps ttlb success\n\n200\t13000 15.2 100\r\n", Ok(1)),
            ("\u{feff}200 13000 15.2ms 100%\n", Ok(1)),
            ("200 13000 15.2 100 extra columns\n", Ok(1)),
            ("", Err("no line of the file has the four columns")),
            ("# nothing\n", Err("no line of the file has the four columns")),
            ("200 13000 15.2\n", Err("line 1: the line has 3 fields")),
            ("200 13000 15.2 100\nfive 1 2 3\n", Err("line 2: 'five' is not a number for the column 'concurrency'")),
            ("200 13000 15.2 100\nfive\n", Err("line 2: the line has 1 field,")),
            ("200 nan 15.2 100\n", Err("line 1: 'nan' is not a number for the column 'requests/s'")),
            ("200 1 -15.2 100\n", Err("line 1: '-15.2' is not a number for the column 'mean ms'")),
            ("200 1 15.2 101\n", Err("line 1: a success rate of 101 %")),
            ("0 1 15.2 100\n", Err("line 1: a concurrency of 0")),
            ("2 1 15.2 100\n2 1 15.2 100\n", Err("line 2: concurrency 2 appears twice")),
            ("a b c d\ne f g h\n", Err("line 2: 'e' is not a number")),
        ] {
            match (parse_dat(text), expect) {
                (Ok(levels), Ok(count)) => assert_eq!(levels.len(), count, "{text}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{text}: {error}"),
                (got, want) => panic!("{text}: {got:?}, expected {want:?}"),
            }
        }
        let level = &parse_dat("200 13000.5 15.2 99.5").expect("read")[0];
        assert_eq!((level.load, level.rps, level.mean_ns, level.success_rate), (200.0, 13000.5, 15.2e6, 0.995));
    }

    #[test]
    fn peak_and_knee_name_their_level() {
        for (dat, peak_at, knee_at) in [
            (
                "1 100 1 100\n2 190 1 100\n4 196 2 100\n8 200 4 100\n16 199 8 100",
                Some((8.0, 200.0)),
                Some((2.0, 190.0)),
            ),
            ("8 200 1 100\n4 200 1 100", Some((4.0, 200.0)), Some((4.0, 200.0))),
            ("1 0 1 0\n2 0 1 0", None, None),
        ] {
            let levels = parse_dat(dat).expect("read");
            let of = |level: Option<&Level>| level.map(|l| (l.load, l.rps));
            assert_eq!((of(peak(&levels)), of(knee(&levels))), (peak_at, knee_at), "{dat}");
        }
    }

    #[test]
    fn pilot_trials_are_short() {
        assert_eq!([pilot_ns(0), pilot_ns(6 * SECOND), pilot_ns(60 * SECOND)], [300 * MS, 500 * MS, SECOND]);
    }

    #[test]
    fn visits_of_a_level_are_combined() {
        use plimsoll_model::{Interval, LoadCurve, Plan};
        let visit = |warmup: u64, windows: &[u64], after: u64| {
            let mut plan =
                Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(4.0) });
            plan.load.warmup_ns = warmup * 100 * MS;
            let mut run = Run::new(plan);
            for (at, count) in windows.iter().enumerate() {
                let mut interval = Interval::default();
                let figures = interval.routes.figures_mut(0);
                (figures.succeeded_in_window, figures.ledger.scheduled, figures.ledger.succeeded) = (*count, 10, 10);
                interval.load.in_flight_ns = 400 * MS;
                run.push((warmup + at as u64) * 100 * MS, interval);
            }
            for (at, count) in [(0, 7), (warmup + windows.len() as u64, after)] {
                let mut interval = Interval::default();
                interval.load.bytes_in = count;
                run.push(at * 100 * MS, interval);
            }
            run.window_ns = (warmup * 100 * MS, (warmup + windows.len() as u64) * 100 * MS);
            run.ending = Some(plimsoll_model::LoadEnd::Finished);
            Trial { tag: LoadTag::for_purpose(LoadPurpose::Level), start_ns: 0, run }
        };
        let visits = [visit(2, &[10, 20], 1), visit(1, &[30, 40, 50], 2), visit(3, &[60], 4)];
        let load = MeasuredLoad::from_visits(visits.iter().collect()).expect("visits");
        assert_eq!(load.visit_rates_rps(), [150.0, 400.0, 600.0]);
        let summary = load.summary();
        assert_eq!((summary.throughput_rps, summary.duration_ns), (350.0, 600 * MS));
        assert_eq!((summary.routes_sum.ledger.scheduled, summary.load.bytes_in), (60, 28));
        assert!(summary.in_flight_mean.is_some_and(|mean| (mean - 4.0).abs() < 1e-9), "{:?}", summary.in_flight_mean);
        assert_eq!(load.run.window_ns, (600 * MS, 1_200 * MS));
        assert!(MeasuredLoad::from_visits(Vec::new()).is_none());
    }

    #[test]
    fn level_changes_compare_b_with_a() {
        let a = parse_dat("10 100 10 100\n20 0 10 100\n30 1 1 1").expect("read");
        let b = parse_dat("20 50 20 50\n10 110 5 99\n40 1 1 1").expect("read");
        let changes = level_changes(&a, &b);
        assert_eq!(changes.iter().map(|c| c.load).collect::<Vec<_>>(), [10.0, 20.0]);
        assert!((changes[0].rps.expect("a change") - 0.1).abs() < 1e-9);
        assert_eq!((changes[0].mean, changes[1].rps, changes[1].mean), (Some(-0.5), None, Some(1.0)));
        assert!((changes[0].success_points + 0.01).abs() < 1e-9);
    }
}
