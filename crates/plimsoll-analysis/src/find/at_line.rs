//! The server's CPU and memory at the load line that a search found ([`ServerUseAtLine`]).

use super::findings::Findings;
use super::search_settings::is_void_by_generator;
use crate::judge::{TrialOutcome, Verdict};
use crate::server::ServerUse;
use plimsoll_model::{LoadPurpose, Run};

/// A trial shows the server's CPU and memory use at the load line if its rate is at least this
/// share of the load line.
const NEAR_LINE_RATE_SHARE_MIN: f64 = 0.9;

/// The server's CPU and memory at the load line. The figures come from trials that met the SLO at
/// 90 to 100 % of the load line. If no trial near the line met the SLO, the figures come from the
/// valid trial with the highest goodput. Without a valid trial, the figures come from the disturbed
/// trial with the highest goodput.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerUseAtLine {
    /// The server's CPU time and memory in the trials at the load line.
    pub usage: ServerUse,
    /// The source of the figures in words: how many trials, and at which shares of the load line.
    pub source: String,
}

impl ServerUseAtLine {
    /// Computes the server's use at the load line. `runs` contains the runs of the search's trials,
    /// in the order of `findings.trials`. Returns the reason as an error if no trial has figures of
    /// the server's CPU and memory use.
    pub fn from_findings(findings: &Findings, runs: &[&Run]) -> Result<ServerUseAtLine, String> {
        let line = findings.load_line.rps;
        let trials = || findings.trials.iter().zip(runs);
        let near: Vec<_> = trials()
            .filter(|(trial, _)| {
                trial.purpose != LoadPurpose::Settle
                    && trial.verdict == Verdict::Pass
                    && trial
                        .offered_rps()
                        .is_some_and(|rate| rate >= line * NEAR_LINE_RATE_SHARE_MIN && rate <= line * 1.000_001)
            })
            .collect();
        let chosen = if near.is_empty() {
            let best = |is_usable: fn(&TrialOutcome) -> bool| {
                let usable = trials().filter(|(trial, _)| trial.purpose != LoadPurpose::Settle && is_usable(trial));
                usable.max_by(|(a, _), (b, _)| a.goodput_rps.total_cmp(&b.goodput_rps))
            };
            // Other programs hardly change the server's CPU time for each request, so a disturbed
            // trial may replace a missing valid trial.
            best(|trial| trial.verdict != Verdict::Void)
                .or_else(|| best(|trial| trial.is_void_by_interference() && !is_void_by_generator(trial)))
                .into_iter()
                .collect()
        } else {
            near
        };
        let mut sum: Option<ServerUse> = None;
        let mut reason = "no trial says what the server used".to_owned();
        let mut counted = 0;
        for (_, run) in &chosen {
            match (ServerUse::from_run(run), &mut sum) {
                (Ok(used), Some(sum)) => sum.add(used),
                (Ok(used), None) => sum = Some(used),
                (Err(why), _) => {
                    reason = why;
                    continue;
                }
            }
            counted += 1;
        }
        let used = sum.ok_or(reason)?;
        let rates = chosen.iter().filter_map(|(trial, _)| trial.offered_rps());
        let lowest = rates.clone().fold(f64::INFINITY, f64::min);
        let from = match (line > 0.0 && lowest.is_finite(), counted) {
            (false, _) => "the trial with the best goodput".to_owned(),
            (true, 1) => {
                format!("one trial at {rate_percent:.0} % of the load line", rate_percent = lowest / line * 100.0)
            }
            (true, _) => format!(
                "{counted} trials at {lowest_percent:.0} to {highest_percent:.0} % of the load line",
                lowest_percent = lowest / line * 100.0,
                highest_percent = rates.fold(0.0, f64::max) / line * 100.0
            ),
        };
        Ok(ServerUseAtLine { usage: used, source: from })
    }
}
