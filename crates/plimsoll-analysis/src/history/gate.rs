//! Decides whether a new commit performs worse than a branch ([`compare_commit_with_branch`]). The
//! decision compares the runs of the commit with the runs of the branch since its last change in
//! performance (change point).
//!
//! The runs of the branch since the last change point have one performance level. The noise between
//! runs is the scatter of the branch's runs around their common level. The new commit is worse if
//! the 98 % interval of its change is below 0 and the change exceeds the margin
//! [`CHANGE_MARGIN_SHARE`]. So at most one of a hundred commits without any effect on performance
//! is reported as worse.
//!
//! The commit has the same performance as the branch if the whole interval of its change is within
//! the margin. If the interval of the change allows neither the verdict "worse" nor the verdict
//! "same", more runs are needed. The command `prove` runs both commits alternately, so that the
//! noise between runs does not affect the comparison.
//!
//! Not here: the exit code, and the display of the result.

use super::change_points::{change_points, limit_outliers, student_quantile};
use super::lanes::incomparability_reasons;
use super::run::HistoryRun;
use plimsoll_statistics::basics::ConfidenceInterval;

/// The minimum number of runs of the branch for a verdict on a new commit. Fewer runs do not show
/// how much runs scatter.
pub const REFERENCE_RUNS_MIN: usize = 5;
/// The margin, as a share of the performance: the gate ignores smaller changes, as the command
/// `prove` does.
pub const CHANGE_MARGIN_SHARE: f64 = 0.02;
/// Confidence level of the interval around the new commit's change, 0..1.
const CHANGE_INTERVAL_CONFIDENCE: f64 = 0.98;

/// The verdict on a new commit, compared with a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateVerdict {
    /// The commit is slower than the branch by more than the margin [`CHANGE_MARGIN_SHARE`].
    Worse,
    /// The commit is faster than the branch by more than the margin [`CHANGE_MARGIN_SHARE`].
    Better,
    /// The commit is as fast as the branch: any change is within the margin
    /// [`CHANGE_MARGIN_SHARE`].
    Same,
    /// The runs do not show whether the performance changed.
    NotKnown,
}

impl GateVerdict {
    /// Returns the word for this verdict in texts.
    pub fn word(self) -> &'static str {
        match self {
            GateVerdict::Worse => "worse",
            GateVerdict::Better => "better",
            GateVerdict::Same => "same",
            GateVerdict::NotKnown => "not known",
        }
    }
}

/// The verdict on a new commit, and the figures that lead to this verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct GateFinding {
    /// The verdict on the commit.
    pub verdict: GateVerdict,
    /// Level of the new commit divided by the level of the branch, and the 98 % interval of this
    /// ratio. `None` if the levels could not be compared.
    pub change: Option<(f64, ConfidenceInterval)>,
    /// The level of the branch, 1/s, and the number of runs at that level. The level is `None` if
    /// the levels could not be compared.
    pub reference: (Option<f64>, usize),
    /// The level of the new commit, 1/s, and its number of runs. The level is `None` if the levels
    /// could not be compared.
    pub candidate: (Option<f64>, usize),
    /// Why no verdict is possible. `None` if there is a verdict, or if only the noise between runs
    /// prevents a verdict.
    pub reason: Option<String>,
}

/// Compares the commit of the run `candidate` with `branch`. The reference consists of the branch's
/// earlier, comparable runs among `runs` since the branch's last change point.
pub fn compare_commit_with_branch(runs: &[HistoryRun], candidate: &HistoryRun, branch: &str) -> GateFinding {
    let commit = |run: &HistoryRun| {
        run.revision.as_ref().map(|revision| (revision.commit.clone(), revision.dirty == Some(true)))
    };
    let new = commit(candidate);
    let is_new = |run: &HistoryRun| run.file == candidate.file || (new.is_some() && commit(run) == new);
    let mut known: Vec<&HistoryRun> = runs
        .iter()
        .filter(|run| {
            run.service == candidate.service
                && incomparability_reasons(run, candidate).is_empty()
                && run.series_value_rps().is_some()
        })
        .collect();
    known.sort_by_key(|run| run.started_unix_ms);
    let on_branch = |run: &HistoryRun| {
        run.revision.as_ref().is_some_and(|it| it.branch.as_deref() == Some(branch) && it.dirty != Some(true))
    };
    let logs = |runs: Vec<&HistoryRun>| -> Vec<f64> {
        runs.iter().filter_map(|run| run.series_value_rps()).map(f64::ln).collect()
    };
    let (mut candidates, mut before) = (Vec::new(), Vec::new());
    for run in known {
        match (is_new(run), on_branch(run) && run.started_unix_ms <= candidate.started_unix_ms) {
            (true, _) => candidates.push(run),
            (false, true) => before.push(run),
            (false, false) => {}
        }
    }
    if candidate.series_value_rps().is_none() {
        let reason = candidate.reason_without_value();
        return no_verdict(
            before.len(),
            0,
            format!(
                "the run {file} has no {measure}: {reason}",
                file = candidate.file,
                measure = candidate.measure_name()
            ),
        );
    }
    let (reference, new) = (logs(before), logs(candidates));
    let values: Vec<f64> = reference.iter().map(|log| log.exp()).collect();
    let level = change_points(&values, 1).last().map_or(0, |change| change.run_index);
    compare_levels(&limit_outliers(&reference[level..]), &new, branch)
}

fn no_verdict(reference: usize, candidate: usize, reason: String) -> GateFinding {
    GateFinding {
        verdict: GateVerdict::NotKnown,
        change: None,
        reference: (None, reference),
        candidate: (None, candidate),
        reason: Some(reason),
    }
}

/// Compares the level of the branch (`reference`) with the level of the commit (`new`). `reference`
/// and `new` contain the logarithms of the values of the runs.
fn compare_levels(reference: &[f64], new: &[f64], branch: &str) -> GateFinding {
    let (n, m) = (reference.len(), new.len());
    if n < REFERENCE_RUNS_MIN || m == 0 {
        let comparable_runs = if n == 1 { "1 comparable run".to_owned() } else { format!("{n} comparable runs") };
        return no_verdict(
            n,
            m,
            format!(
                "branch {branch} has {comparable_runs} since its last change in performance, and the gate needs at \
                 least {REFERENCE_RUNS_MIN} runs"
            ),
        );
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (old_level, new_level) = (mean(reference), mean(new));
    let squares: f64 = reference.iter().map(|log| (log - old_level).powi(2)).sum();
    // The new commit has too few runs to estimate their scatter. So the runs of the commit are
    // assumed to scatter like the runs of the branch.
    let deviation = (squares / (n - 1) as f64).sqrt();
    let half = student_quantile((1.0 + CHANGE_INTERVAL_CONFIDENCE) / 2.0, n - 1)
        * deviation
        * (1.0 / n as f64 + 1.0 / m as f64).sqrt();
    let shift = new_level - old_level;
    let interval = ConfidenceInterval { lower: shift - half, upper: shift + half };
    let margin = (1.0 + CHANGE_MARGIN_SHARE).ln();
    let verdict = match () {
        () if interval.upper < 0.0 && shift < -margin => GateVerdict::Worse,
        () if interval.lower > 0.0 && shift > margin => GateVerdict::Better,
        () if interval.is_within_ratio(margin) => GateVerdict::Same,
        () => GateVerdict::NotKnown,
    };
    GateFinding {
        verdict,
        change: Some((shift.exp(), interval.map(f64::exp))),
        reference: (Some(old_level.exp()), n),
        candidate: (Some(new_level.exp()), m),
        reason: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::rng::Rng;

    fn noisy_logs(rng: &mut Rng, runs: usize, noise: f64, level: f64) -> Vec<f64> {
        let normal = |rng: &mut Rng| (0..12).map(|_| rng.next_f64()).sum::<f64>() - 6.0;
        (0..runs).map(|_| level.ln() + noise * normal(rng)).collect()
    }

    fn verdict_shares(noise: f64, level: f64, runs: usize) -> [f64; 4] {
        let mut rng = Rng::new(7);
        let mut counts = [0.0; 4];
        for _ in 0..2000 {
            let (reference, new) = (noisy_logs(&mut rng, 20, noise, 2000.0), noisy_logs(&mut rng, runs, noise, level));
            let verdict = compare_levels(&reference, &new, "main").verdict;
            counts[verdict as usize] += 1.0 / 2000.0;
        }
        counts
    }

    #[test]
    fn false_alarms_are_at_most_one_percent() {
        for (noise, runs) in [(0.02, 1), (0.005, 1), (0.02, 5)] {
            let [worse, better, ..] = verdict_shares(noise, 2000.0, runs);
            assert!(worse <= 0.016 && better <= 0.016, "noise {noise}, {runs} runs: {worse} {better}");
        }
    }

    #[test]
    fn verdicts_depend_on_noise() {
        let [worse, _, same, _] = verdict_shares(0.005, 1900.0, 1);
        assert!(worse > 0.99 && same == 0.0, "{worse}");
        let [_, _, same, _] = verdict_shares(0.003, 2000.0, 1);
        assert!(same > 0.9, "{same}");
        // With one run on a noisy machine, a change of 5 % usually gives no verdict.
        let [worse, better, same, not_known] = verdict_shares(0.03, 1900.0, 1);
        assert!(not_known > 0.6 && better < 0.01 && same < 0.01, "{worse} {not_known}");
    }

    #[test]
    fn few_branch_runs_give_no_verdict() {
        let finding = compare_levels(&[7.0; 4], &[7.0], "main");
        assert_eq!(finding.verdict, GateVerdict::NotKnown);
        assert!(finding.reason.is_some_and(|reason| reason.contains("main has 4 comparable runs")));
    }
}
