//! Requests that fail whatever the load ([`Failing`]), as by a server that leaves one in two hundred without an answer: no
//! rate keeps a promise of fewer, and it is not load that ends it.
//!
//! Not here: a limiter, which refuses a larger share of a larger load.

use crate::format;
use crate::judge::{TrialOutcome, Verdict};
use crate::slo::Slo;
use plimsoll_model::Purpose;

/// So many failures tell a share, at the lowest loads that have them together.
const FAILED_MIN: f64 = 5.0;
/// Who fails more than this is not at work. A limiter that refuses so much of a load refuses three times as large a share of
/// twice the load.
const SHARE_MAX: f64 = 0.2;
/// A load is another one from this many times the rate on.
const OTHER: f64 = 2.0;
/// At another load the share may be this much larger.
const LIKE: f64 = 2.0;
/// Where so many failures were to be expected and there were none, there are none.
const SPARED_MAX: f64 = 4.0;
/// Standard deviations by which chance may differ.
const SURE: f64 = 2.33;

/// Requests that fail at low loads as at higher ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failing {
    /// The share of the requests, 0..1.
    pub share: f64,
    /// The lowest load at which some did, a second.
    pub from_rps: f64,
    /// The highest at which no more did.
    pub to_rps: f64,
}

impl Failing {
    /// Of the open trials of a search; `None`: none fail, or the more the higher the load, or too few were seen to tell.
    pub fn seen(slo: &Slo, history: &[TrialOutcome]) -> Option<Failing> {
        Failing::of(1.0 - slo.success_min, history.iter().filter_map(FailingLoad::of).collect())
    }

    /// In a few words: `0.5 % of the requests fail whatever the load (at 250 a second as at 4 000)`.
    pub fn text(&self) -> String {
        let (from, to) = (format::rate(self.from_rps), format::rate(self.to_rps));
        let share = format::rough_share(format::rounded(self.share, 2));
        format!("{share} of the requests fail whatever the load (at {from} a second as at {to})")
    }

    /// `allowed`: share of the requests that may fail.
    fn of(allowed: f64, mut loads: Vec<FailingLoad>) -> Option<Failing> {
        loads.sort_by(|a, b| a.rps.total_cmp(&b.rps));
        let first = loads.iter().position(|load| load.failed > 0.0)?;
        let (spared, loads) = loads.split_at(first);
        let from_rps = loads[0].rps;
        // The lowest loads that have enough failures together.
        let (mut low, mut failed) = (0.0, 0.0);
        for (at, load) in loads.iter().enumerate() {
            if failed >= FAILED_MIN && load.rps > loads[at - 1].rps {
                break;
            }
            (low, failed) = (low + load.asked, failed + load.failed);
        }
        let share = failed / low;
        let sure = failed - SURE * failed.sqrt() > allowed * low;
        // At lower loads there were too few requests for some to fail.
        let any = spared.iter().map(|load| load.asked * share).sum::<f64>() < SPARED_MAX;
        if failed < FAILED_MIN || share > SHARE_MAX || !sure || !any {
            return None;
        }
        let alike = |load: &&FailingLoad| {
            let at_most = LIKE * share * load.asked;
            load.failed > 0.0 && load.failed <= at_most + SURE * at_most.sqrt()
        };
        let to_rps = loads.iter().filter(alike).map(|load| load.rps).fold(0.0, f64::max);
        (to_rps >= OTHER * from_rps).then_some(Failing { share, from_rps, to_rps })
    }
}

/// Requests of a load, and those of them that failed.
#[derive(Debug, Clone, Copy)]
struct FailingLoad {
    rps: f64,
    asked: f64,
    failed: f64,
}

impl FailingLoad {
    /// `None` of a load that says nothing of failures: nobody was asked, others disturbed, or the server fell behind.
    fn of(trial: &TrialOutcome) -> Option<FailingLoad> {
        let (rps, evidence) = (trial.offered_rps()?, &trial.evidence);
        let counts = trial.purpose != Purpose::Settle && trial.verdict != Verdict::Void && evidence.scheduled > 0;
        // Of a load that was cut short some wait rightly for their answers.
        let unanswered = if trial.stopped { 0 } else { evidence.unanswered };
        let failed = evidence.failed_count() as f64 + unanswered as f64;
        let asked = evidence.scheduled as f64;
        // What is never answered adds up.
        let keeps_up = evidence.growth <= crate::judge::GROWTH_MAX + LIKE * failed / asked;
        (counts && keeps_up && evidence.unsent == 0).then_some(FailingLoad { rps, asked, failed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_whatever_the_load_is_told_from_a_limit() {
        // (rate, requests, of which failed)
        type Loads = &'static [(f64, f64, f64)];
        const SHARE: Loads = &[(250.0, 500.0, 0.0), (500.0, 2000.0, 11.0), (1000.0, 4000.0, 19.0), (4000.0, 9e3, 50.0)];
        const SPARED: Loads =
            &[(250.0, 9000.0, 0.0), (500.0, 2000.0, 11.0), (1000.0, 4000.0, 19.0), (4000.0, 9e3, 50.0)];
        const LIMITER: Loads =
            &[(500.0, 2000.0, 0.0), (1010.0, 5050.0, 50.0), (1100.0, 5500.0, 500.0), (2000.0, 2000.0, 1000.0)];
        const LOWEST_REFUSED: Loads = &[(110.0, 550.0, 50.0), (220.0, 1100.0, 600.0), (440.0, 2200.0, 1700.0)];
        const ONE_LOAD: Loads = &[(500.0, 2000.0, 11.0), (510.0, 2000.0, 9.0)];
        const FEW: Loads = &[(500.0, 2000.0, 2.0), (4000.0, 2000.0, 2.0)];
        const BROKEN: Loads = &[(500.0, 2000.0, 1900.0), (4000.0, 2000.0, 1900.0)];
        for (name, allowed, loads, expect) in [
            ("one in two hundred", 0.001, SHARE, Some((500.0, 4000.0))),
            ("as many as may", 0.01, SHARE, None),
            ("not at a low load", 0.001, SPARED, None),
            ("a limiter", 0.001, LIMITER, None),
            ("a limiter, whose rate was never tried", 0.001, LOWEST_REFUSED, None),
            ("one load", 0.001, ONE_LOAD, None),
            ("too few to tell", 0.0, FEW, None),
            ("nearly all", 0.001, BROKEN, None),
            ("nothing was tried", 0.001, &[], None),
        ] {
            let loads = loads.iter().map(|&(rps, asked, failed)| FailingLoad { rps, asked, failed }).collect();
            let seen = Failing::of(allowed, loads).map(|failing| (failing.from_rps, failing.to_rps));
            assert_eq!(seen, expect, "{name}");
        }
    }
}
