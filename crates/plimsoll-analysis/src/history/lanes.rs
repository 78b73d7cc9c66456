//! Groups comparable runs into lanes ([`group_comparable_runs`]). The runs of a lane have the same
//! service, traffic, SLO and kind of machine. A lane is a series of runs in order, with its change
//! points.
//!
//! Not here: the search for change points (`change_points`), and the display of a lane.

use super::change_points::{ChangePoint, change_points};
use super::run::HistoryRun;
use plimsoll_model::rng::mix_bits;
use std::collections::BTreeMap;
use std::ops::Range;

/// The order of the runs in a lane (a group of comparable runs).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeriesOrder {
    /// Runs are ordered by start time; each run is one point of the series.
    #[default]
    Time,
    /// Runs are ordered by the time of their commit; all runs of one commit are one point of the
    /// series.
    Commit,
}

/// Returns the reasons why two runs must not be compared, as sentences without a full stop. The
/// list is empty if the runs are comparable.
pub fn incomparability_reasons(a: &HistoryRun, b: &HistoryRun) -> Vec<String> {
    let slo = |run: &HistoryRun| run.slo.clone().unwrap_or_else(|| "none".to_owned());
    if a.measure_name() != b.measure_name() {
        return vec![format!(
            "the runs measured different figures: {measure_a} and {measure_b}",
            measure_a = a.measure_name(),
            measure_b = b.measure_name()
        )];
    }
    let reasons = [
        (
            a.traffic != b.traffic,
            "the runs have different traffic: requests, connections, protocol or arrivals differ".to_owned(),
        ),
        (a.slo != b.slo, format!("the runs have different SLOs: {slo_a} and {slo_b}", slo_a = slo(a), slo_b = slo(b))),
        (
            a.machine != b.machine,
            format!(
                "the runs come from different machines: {machine_a} and {machine_b}",
                machine_a = a.machine,
                machine_b = b.machine
            ),
        ),
    ];
    reasons.into_iter().filter(|(differs, _)| *differs).map(|(_, reason)| reason).collect()
}

/// A point in the series of a lane (comparable runs): one run, or all runs of one commit.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesPoint {
    /// The indices of the runs that this point combines, in [`ComparableRunSeries::runs`].
    pub runs: Vec<usize>,
    /// The value of the point, 1/s: the geometric mean of the load lines or throughputs of its
    /// runs.
    pub rps: f64,
    /// The lowest lower end and the highest upper end of the runs' load line intervals, 1/s; `None`
    /// if no run has a load line.
    pub interval: Option<(f64, f64)>,
}

/// Figures of a lane (comparable runs) that differ before and after a change point of its series.
/// Each figure is a mean over the runs between two neighbouring change points, where the level is
/// constant.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConcurrentChanges {
    /// CPU time of a request, us: before and after the change.
    pub cpu_us: Option<(f64, f64)>,
    /// Response time p99, ns: before and after the change.
    pub p99_ns: Option<(f64, f64)>,
    /// The most frequently diagnosed cause (bottleneck), before and after the change; `None` if the
    /// cause is the same.
    pub cause: Option<(String, String)>,
    /// The functions whose share of the server's CPU time changed most, each with its share (0..=1)
    /// before and after the change.
    pub functions: Vec<(String, f64, f64)>,
}

/// A change point of a lane (comparable runs), with the other figures that changed at this point.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesChange {
    /// The index and the size of the change.
    pub point: ChangePoint,
    /// The figures, other than the value of the series itself, that changed at the same point.
    pub concurrent: ConcurrentChanges,
}

/// A lane: comparable runs of one service, in order, as a series with change points.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparableRunSeries {
    /// The service under load.
    pub service: String,
    /// The measure of the series: `load line` or `goodput`.
    pub measure: &'static str,
    /// The common SLO of all runs of the lane; `None` for runs without an SLO.
    pub slo: Option<String>,
    /// The description of the machine that generated the load.
    pub machine: String,
    /// All runs of the lane, in order, including void runs (runs without information about the
    /// server).
    pub runs: Vec<HistoryRun>,
    /// The points of the series, in order.
    pub points: Vec<SeriesPoint>,
    /// The change points of the series, in order.
    pub changes: Vec<SeriesChange>,
    /// Why the runs of this lane (group of comparable runs) are not in the first lane of their
    /// service, as sentences without a full stop. The list is empty for the first lane of a
    /// service.
    pub separation_reasons: Vec<String>,
    /// The indices of the runs that are excluded from the series, each with the reason.
    pub excluded_runs: Vec<(usize, String)>,
}

impl ComparableRunSeries {
    /// Returns the geometric mean of the values of these points, 1/s; 1 for no points.
    pub fn geometric_mean_rps(&self, points: Range<usize>) -> f64 {
        let count = points.len().max(1) as f64;
        (self.points[points].iter().map(|point| point.rps.ln()).sum::<f64>() / count).exp()
    }
}

/// Smallest change of a function's share of the CPU time (0..=1) that is reported.
const SHARE_CHANGE_MIN: f64 = 0.02;
/// Largest number of functions whose change is reported per change point.
const FUNCTIONS_MAX: usize = 3;

/// Groups runs into lanes (groups of comparable runs), sorted by service. For each service, the
/// lanes that compare load lines come before the lanes that compare goodput. Among the lanes of one
/// service and one measure, the lane with the latest run comes first. Runs of comparisons (`prove`)
/// and sweeps belong to no lane.
pub fn group_comparable_runs(runs: &[HistoryRun], order: SeriesOrder) -> Vec<ComparableRunSeries> {
    let mut by_key: BTreeMap<[&str; 5], Vec<&HistoryRun>> = BTreeMap::new();
    for run in runs.iter().filter(|run| ["load line", "goodput"].contains(&run.measure_name())) {
        let slo = run.slo.as_deref().unwrap_or_default();
        let key = [run.service.as_str(), run.measure_name(), run.traffic.as_str(), slo, run.machine.as_str()];
        by_key.entry(key).or_default().push(run);
    }
    let mut all: Vec<ComparableRunSeries> =
        by_key.into_values().filter_map(|runs| build_comparable_series(runs, order)).collect();
    let latest = |lane: &ComparableRunSeries| lane.runs.iter().map(|run| run.started_unix_ms).max();
    let is_of_load = |lane: &ComparableRunSeries| lane.measure != "load line";
    all.sort_by(|a, b| {
        let of_load = is_of_load(a).cmp(&is_of_load(b));
        a.service.cmp(&b.service).then(of_load).then(latest(b).cmp(&latest(a)))
    });
    let mut first: Option<HistoryRun> = None;
    for lane in &mut all {
        let here = lane.runs[0].clone();
        match &first {
            Some(first) if first.service == here.service => {
                lane.separation_reasons = incomparability_reasons(first, &here)
            }
            _ => first = Some(here),
        }
    }
    all
}

fn build_comparable_series(mut runs: Vec<&HistoryRun>, order: SeriesOrder) -> Option<ComparableRunSeries> {
    let committed = |run: &HistoryRun| run.revision.as_ref().and_then(|revision| revision.committed_unix_s);
    match order {
        SeriesOrder::Time => runs.sort_by_key(|run| run.started_unix_ms),
        SeriesOrder::Commit => runs.sort_by_key(|run| (committed(run), run.started_unix_ms)),
    }
    let first = *runs.first()?;
    let runs: Vec<HistoryRun> = runs.into_iter().cloned().collect();
    let mut excluded_runs = Vec::new();
    let mut points: Vec<SeriesPoint> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, run) in runs.iter().enumerate() {
        let why = match (run.series_value_rps(), &run.revision, order) {
            (None, _, _) => Some(run.reason_without_value().to_owned()),
            (Some(_), None, SeriesOrder::Commit) => Some("the run was made outside a git repository".to_owned()),
            (Some(_), Some(revision), SeriesOrder::Commit) if revision.dirty == Some(true) => {
                Some("the run was made with uncommitted changes in the repository".to_owned())
            }
            _ => None,
        };
        if let Some(why) = why {
            excluded_runs.push((number, why));
            continue;
        }
        let commit = run.revision.as_ref().map(|revision| revision.commit.as_str());
        match (order, commit.and_then(|commit| places.get(commit))) {
            (SeriesOrder::Commit, Some(place)) => points[*place].runs.push(number),
            _ => {
                commit.map(|commit| places.insert(commit, points.len()));
                points.push(SeriesPoint { runs: vec![number], rps: 0.0, interval: None });
            }
        }
    }
    for point in &mut points {
        let logs: Vec<f64> = point.runs.iter().filter_map(|run| runs[*run].series_value_rps()).map(f64::ln).collect();
        point.rps = (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp();
        let lines = point.runs.iter().filter_map(|run| runs[*run].valid_load_line());
        point.interval =
            lines.map(|line| (line.lower, line.upper.unwrap_or(line.rps))).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    }
    let values: Vec<f64> = points.iter().map(|point| point.rps).collect();
    // The seed of the permutation test depends only on the values, so that the same runs always
    // give the same permutations.
    let seed = values.iter().fold(0, |seed, value| mix_bits(seed ^ value.to_bits()));
    let found = change_points(&values, seed);
    let ends: Vec<usize> = found.iter().map(|point| point.run_index).chain([points.len()]).collect();
    let mut begin = 0;
    let mut changes = Vec::new();
    for (number, point) in found.into_iter().enumerate() {
        let level = |from: usize, to: usize| -> Vec<&HistoryRun> {
            points[from..to].iter().flat_map(|point| &point.runs).map(|run| &runs[*run]).collect()
        };
        let moved = concurrent_changes(&level(begin, point.run_index), &level(point.run_index, ends[number + 1]));
        begin = point.run_index;
        changes.push(SeriesChange { point, concurrent: moved });
    }
    Some(ComparableRunSeries {
        service: first.service.clone(),
        measure: first.measure_name(),
        slo: first.slo.clone(),
        machine: first.machine.clone(),
        points,
        changes,
        separation_reasons: Vec::new(),
        excluded_runs,
        runs,
    })
}

/// Finds the figures, other than the level itself, that differ between the runs before and after a
/// change point.
fn concurrent_changes(before: &[&HistoryRun], after: &[&HistoryRun]) -> ConcurrentChanges {
    let mean = |runs: &[&HistoryRun], figure: fn(&HistoryRun) -> Option<f64>| {
        let values: Vec<f64> = runs.iter().filter_map(|run| figure(run)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let both = |figure| mean(before, figure).zip(mean(after, figure));
    let causes = most_frequent_cause(before).zip(most_frequent_cause(after)).filter(|(first, second)| first != second);
    let mut functions: Vec<(String, f64, f64)> = Vec::new();
    let shares = [before, after].map(function_shares);
    for name in shares[0].keys().chain(shares[1].keys().filter(|name| !shares[0].contains_key(*name))) {
        let [first, second] = [0, 1].map(|side: usize| shares[side].get(name).copied().unwrap_or(0.0));
        // A run lists only the functions with the largest shares of the CPU time. A function that
        // is missing from the lists has a small, unknown share, which counts as 0.
        if !shares[0].is_empty() && !shares[1].is_empty() && (second - first).abs() >= SHARE_CHANGE_MIN {
            functions.push(((*name).to_owned(), first, second));
        }
    }
    functions.sort_by(|a, b| (b.2 - b.1).abs().total_cmp(&(a.2 - a.1).abs()));
    functions.truncate(FUNCTIONS_MAX);
    ConcurrentChanges {
        cpu_us: both(|run| run.summary.as_ref()?.cpu_us),
        p99_ns: both(|run| run.summary.as_ref()?.p99_ns),
        cause: causes,
        functions,
    }
}

fn most_frequent_cause(runs: &[&HistoryRun]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let causes = runs.iter().filter_map(|run| run.summary.as_ref()?.cause.as_deref());
    causes.for_each(|cause| *counts.entry(cause).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(cause, _)| cause.to_owned())
}

fn function_shares<'a>(runs: &[&'a HistoryRun]) -> BTreeMap<&'a str, f64> {
    let sampled: Vec<_> =
        runs.iter().filter_map(|run| run.summary.as_ref()).filter(|it| !it.functions.is_empty()).collect();
    let mut shares: BTreeMap<&str, f64> = BTreeMap::new();
    for summary in &sampled {
        for (name, share) in &summary.functions {
            *shares.entry(name).or_default() += share / sampled.len() as f64;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::super::run::RunState;
    use super::*;
    use plimsoll_model::{LineSummary, SourceRevision, StudySummary};

    fn history_run(number: u64, rps: f64, commit: u64) -> HistoryRun {
        let line = LineSummary { rps, lower: rps * 0.98, upper: Some(rps * 1.02), confirmed: true };
        HistoryRun {
            file: format!("find-{number}-1.plimsoll"),
            started_unix_ms: number * 1000,
            study: "find".to_owned(),
            service: "http://h:80/".to_owned(),
            origin: "http://h:80".to_owned(),
            traffic: "t".to_owned(),
            slo: Some("p99<=500ms".to_owned()),
            machine: "2 cores".to_owned(),
            revision: Some(SourceRevision {
                commit: format!("{commit:040}"),
                branch: Some("main".to_owned()),
                dirty: Some(false),
                committed_unix_s: Some(1_000_000 - commit),
            }),
            tags: vec![],
            is_pinned: false,
            state: RunState::Whole,
            elapsed_ns: Some(1),
            summary: Some(StudySummary { load_line: Some(line), cpu_us: Some(1e6 / rps), ..StudySummary::default() }),
        }
    }

    #[test]
    fn only_comparable_runs_are_grouped() {
        let mut runs: Vec<HistoryRun> = (0..6).map(|number| history_run(number, 2000.0, number)).collect();
        runs[1].slo = Some("p99<=50ms".to_owned());
        runs[2].machine = "8 cores".to_owned();
        runs[3].traffic = "u".to_owned();
        runs[4].service = "http://h:81/".to_owned();
        runs.push(HistoryRun { study: "prove".to_owned(), ..history_run(9, 1.0, 1) });
        let lanes = group_comparable_runs(&runs, SeriesOrder::Time);
        assert_eq!(lanes.len(), 5);
        // The first lane of a service has the latest run. The other lanes of the service contain
        // the reasons why they are separate from the first lane.
        assert_eq!((lanes[0].runs.len(), lanes[0].separation_reasons.len()), (2, 0));
        assert!(lanes[1..4].iter().all(|lane| lane.separation_reasons.len() == 1), "{lanes:?}");
        assert!(lanes[4].separation_reasons.is_empty());
        assert!(incomparability_reasons(&runs[0], &runs[2])[0].contains("2 cores and 8 cores"));
        assert!(incomparability_reasons(&runs[0], &runs[5]).is_empty());
    }

    #[test]
    fn wide_line_intervals_give_their_middle() {
        let with = |rps: f64, lower: f64, upper: f64| {
            let line = LineSummary { rps, lower, upper: Some(upper), confirmed: true };
            let summary = Some(StudySummary { load_line: Some(line), ..StudySummary::default() });
            HistoryRun { summary, ..history_run(1, 1.0, 1) }.series_value_rps()
        };
        assert_eq!(with(1000.0, 980.0, 1020.0), Some(1000.0));
        assert_eq!(with(900.0, 900.0, 1225.0), Some(1050.0));
        assert_eq!(with(900.0, 900.0, 9000.0), None);
    }

    #[test]
    fn commits_appear_once_in_commit_order() {
        // The commits were measured in reverse order of their commit times, each commit twice.
        let mut runs: Vec<HistoryRun> =
            (0..8).map(|number| history_run(number, 2000.0 + number as f64, number % 4)).collect();
        runs[3].revision.as_mut().expect("one").dirty = Some(true);
        runs[7].revision = None;
        runs.push(HistoryRun { summary: None, ..history_run(20, 1.0, 1) });
        let lanes = group_comparable_runs(&runs, SeriesOrder::Commit);
        let [lane] = &lanes[..] else { panic!("{lanes:?}") };
        let commits: Vec<&str> = lane
            .points
            .iter()
            .map(|point| &lane.runs[point.runs[0]].revision.as_ref().expect("one").commit[39..])
            .collect();
        assert_eq!(commits, ["2", "1", "0"]);
        assert!(lane.points.iter().all(|point| point.runs.len() == 2));
        assert_eq!(lane.excluded_runs.len(), 3, "{:?}", lane.excluded_runs);
    }

    #[test]
    fn concurrent_changes_are_named() {
        let mut runs: Vec<HistoryRun> = (0..20)
            .map(|number| history_run(number, if number < 10 { 2000.0 } else { 1500.0 } + (number % 3) as f64, number))
            .collect();
        for (number, run) in runs.iter_mut().enumerate() {
            let summary = run.summary.as_mut().expect("one");
            summary.cause = Some(if number < 10 { "cpu" } else { "lock" }.to_owned());
            summary.functions =
                vec![("json".to_owned(), if number < 10 { 0.1 } else { 0.3 }), ("read".to_owned(), 0.2)];
        }
        let lanes = group_comparable_runs(&runs, SeriesOrder::Time);
        let [change] = &lanes[0].changes[..] else { panic!("{lanes:?}") };
        assert_eq!(change.point.run_index, 10);
        assert!((change.point.ratio - 0.75).abs() < 0.01);
        assert_eq!(change.concurrent.cause, Some(("cpu".to_owned(), "lock".to_owned())));
        assert_eq!(change.concurrent.functions.len(), 1);
        let (before, after) = change.concurrent.cpu_us.expect("seen");
        assert!((after / before - 4.0 / 3.0).abs() < 0.01);
    }
}
