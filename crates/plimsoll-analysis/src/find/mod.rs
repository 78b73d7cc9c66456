//! The search for the load line: the highest open-loop rate that a server holds under an SLO for as long as one cares to
//! look. [`next`] is a pure function of what was measured so far; who calls it carries the plans out.
//!
//! The search goes through four parts. *Peak*: a closed-loop climb (1, 2, 4, ... users) finds the peak goodput and the
//! knee. *Climb*: open trials of 1 s double the rate until the SLO breaks, twice, and close in on the line. *Line*:
//! trials of 5 s at neighbouring loads of a 1 % grid, interleaved, are classified as MLRsearch does (a load is a lower
//! bound once enough time passed there or above, an upper bound once enough failed there or below; one bad trial in
//! between decides nothing). *Confirm*: a last trial at the line. What a failing trial shows of the server's capacity
//! only chooses the next load; the verdicts alone decide.
//!
//! Servers with a memory are brought into a known state first: one that fell behind is let drain, one that rejects (a
//! limiter with saved-up tokens) is pushed until it rejects again right before each trial.
//!
//! Not here: carrying plans out, and any account of *why* a server has its limit.

mod evidence;
mod findings;
mod line;
mod peak;
mod plans;
mod posterior;

pub use findings::{Bracket, Findings, Forecast, Knee, Peak, StoppedBy, conclude, forecast};

use crate::judge::{TrialOutcome, Verdict};
use crate::slo::Slo;
use crate::watch::Watch;
use evidence::Evidences;
use plans::Planner;
use plimsoll_model::units::{MS, SECOND};
use plimsoll_model::{Arrivals, Plan, Purpose};

/// What is searched for.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The request and everything else that all trials share; its load is not used.
    pub base: Plan,
    /// The promise that must hold.
    pub slo: Slo,
    /// The search ends within this time.
    pub budget_ns: u64,
    /// No rate above this is tried.
    pub max_rate: Option<f64>,
    /// Spacing of arrivals.
    pub arrivals: Arrivals,
}

/// A trial to carry out now.
#[derive(Debug, Clone)]
pub struct Measure {
    /// What it is for.
    pub purpose: Purpose,
    /// What to do.
    pub plan: Plan,
    /// Feed it every tick; it says when to end the run early.
    pub watch: Watch,
}

/// What to do next.
#[derive(Debug, Clone)]
pub enum Step {
    /// Carry this out, judge it, and ask again.
    Measure(Box<Measure>),
    /// The search is over.
    Stop(Box<Findings>),
}

/// What to do after the trials in `history`, `elapsed_ns` after the search began. The same arguments always give the
/// same step.
pub fn next(settings: &Settings, history: &[TrialOutcome], elapsed_ns: u64) -> Step {
    match Search::new(settings, history, elapsed_ns).step() {
        Ok(measure) => Step::Measure(Box::new(measure)),
        Err(stopped_by) => Step::Stop(Box::new(findings::of(settings, history, elapsed_ns, stopped_by))),
    }
}

/// How a budget is spent.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Length of a closed-loop trial.
    peak_ns: u64,
    /// The climb to the peak ends at this time.
    peak_until_ns: u64,
    /// Factor from one closed-loop trial to the next.
    users_factor: u64,
    /// The first open trial, as a share of the peak.
    first_share: f64,
    /// Length of an open trial while climbing.
    climb_ns: u64,
    /// Length of an open trial near the line.
    line_ns: u64,
    /// A load is decided by the majority of so many trials of that length; by fewer once they cannot be outvoted.
    repeats: f64,
}

impl Pace {
    fn of(budget_ns: u64) -> Pace {
        let small = budget_ns < 25 * SECOND;
        Pace {
            peak_ns: if small { 300 * MS } else { 500 * MS },
            peak_until_ns: budget_ns / 6,
            users_factor: if small { 4 } else { 2 },
            first_share: if small { 0.5 } else { 0.125 },
            climb_ns: SECOND,
            line_ns: match budget_ns {
                b if b >= 600 * SECOND => 10 * SECOND,
                b => (b / 12 / (100 * MS) * (100 * MS)).clamp(SECOND, 5 * SECOND),
            },
            repeats: match budget_ns {
                b if b >= 300 * SECOND => 7.0,
                b if b >= 150 * SECOND => 5.0,
                b if b >= 25 * SECOND => 3.0,
                _ => 1.0,
            },
        }
    }
}

/// The highest power of the grid's step, 1 %.
const STEP: f64 = 1.01;

/// The grid's index at or below `rate`.
fn index_below(rate: f64) -> i32 {
    // The small addition undoes the rounding of the grid's own loads.
    (rate.ln() / STEP.ln() + 0.05).floor() as i32
}

/// The grid's load number `index`, with five significant digits.
fn load_of(index: i32) -> f64 {
    let rate = STEP.powi(index);
    let unit = 10f64.powf(rate.log10().floor() - 4.0);
    (rate / unit).round() * unit
}

/// Most voids in a row before the generator is taken for the limit.
const VOIDS_MAX: usize = 3;
/// A rate of the climb at which others disturbed is tried so often before another one is.
const DISTURBED_TRIES: usize = 6;

/// Whether others spoilt a trial.
fn disturbed(trial: &TrialOutcome) -> bool {
    trial.verdict == Verdict::Void && trial.others.disturbed
}

struct Search<'a> {
    settings: &'a Settings,
    history: &'a [TrialOutcome],
    pace: Pace,
    plans: Planner<'a>,
}

/// Where the open climb stands.
enum Climb {
    /// Try this rate next.
    Try(f64),
    /// The line lies between these.
    Between,
    /// The search cannot go on.
    Over(StoppedBy),
}

impl<'a> Search<'a> {
    fn new(settings: &'a Settings, history: &'a [TrialOutcome], elapsed_ns: u64) -> Search<'a> {
        let pace = Pace::of(settings.budget_ns);
        Search { settings, history, pace, plans: Planner::new(settings, history, elapsed_ns) }
    }

    fn step(&self) -> Result<Measure, StoppedBy> {
        if let Some(measure) = self.peak() {
            return measure;
        }
        if let Some(measure) = self.plans.drain() {
            return Ok(measure);
        }
        if self.voids_in_a_row() >= VOIDS_MAX {
            return Err(StoppedBy::Client);
        }
        let evidence = Evidences::new(self.settings, self.history);
        let climb_over = self.history.iter().any(|t| matches!(t.purpose, Purpose::Line | Purpose::Confirm));
        if !climb_over {
            match self.climb(&evidence) {
                Climb::Try(rate) => return self.affordable(self.plans.open(Purpose::Climb, rate, self.pace.climb_ns)),
                Climb::Over(stopped_by) => return Err(stopped_by),
                Climb::Between => {}
            }
        }
        line::step(&evidence, &self.pace, &self.plans)
    }

    /// The next closed-loop trial; `None` once that part is over.
    fn peak(&self) -> Option<Result<Measure, StoppedBy>> {
        if self.history.iter().any(|t| t.offered_rps().is_some() && t.purpose != Purpose::Settle) {
            return None;
        }
        if peak::nothing_succeeds(self.history) {
            return Some(Err(StoppedBy::NothingSucceeds));
        }
        let users_max = u64::from(self.settings.base.connections_max).min(16_384);
        let users = peak::next(self.history, self.pace.users_factor, users_max)?;
        let over = self.plans.elapsed_ns + self.pace.peak_ns > self.pace.peak_until_ns;
        if over && !self.history.is_empty() {
            return None;
        }
        let slow_ns = self.history.last().map_or(0, |t| t.p50_ns * 8);
        let length_ns = slow_ns.clamp(self.pace.peak_ns, SECOND) / (100 * MS) * (100 * MS);
        Some(self.affordable(self.plans.closed(users, length_ns)))
    }

    fn affordable(&self, measure: Measure) -> Result<Measure, StoppedBy> {
        if self.plans.affords(&measure) { Ok(measure) } else { Err(StoppedBy::Budget) }
    }

    fn voids_in_a_row(&self) -> usize {
        let open = self.history.iter().rev().filter(|t| t.offered_rps().is_some() && t.purpose != Purpose::Settle);
        open.take_while(|t| t.verdict == Verdict::Void && t.evidence.generator_limited).count()
    }

    fn climb(&self, evidence: &Evidences) -> Climb {
        let trials: Vec<(f64, Verdict)> = self
            .history
            .iter()
            .filter(|t| t.purpose == Purpose::Climb)
            .filter_map(|t| t.offered_rps().map(|rate| (rate, t.verdict)))
            .collect();
        let peak = peak::of(self.history).map_or(100.0, |p| p.rps);
        let rate_max = self.settings.max_rate.unwrap_or(f64::INFINITY);
        let Some(&(rate, verdict)) = trials.last() else {
            return Climb::Try(plans::round_rate((peak * self.pace.first_share).max(1.0)).min(rate_max));
        };
        let highest_pass = evidence.climb_lower();
        let lowest_fail = evidence.climb_upper();
        let times = trials.iter().filter(|t| t.0 == rate).count();
        // Others come and go: what they spoilt is tried again for a while.
        let disturbed = self.history.iter().rev().find(|t| t.purpose == Purpose::Climb).is_some_and(disturbed);
        if disturbed && times < DISTURBED_TRIES {
            return Climb::Try(rate);
        }
        // Far below the peak a fail is looked at once more again.
        let times_max = if rate < 0.6 * peak { 3 } else { 2 };
        match verdict {
            Verdict::Fail | Verdict::Void if times < times_max && !self.narrowing(&trials) => return Climb::Try(rate),
            _ => {}
        }
        match (highest_pass, lowest_fail) {
            (Some(lower), None) if lower >= rate_max => Climb::Between,
            (Some(lower), None) if verdict == Verdict::Void => {
                // The generator is the limit somewhere above the highest pass: close in on it a little.
                let middle = plans::round_rate((lower * rate).sqrt());
                match rate / lower > 1.2 {
                    true => Climb::Try(middle),
                    // Near the line trials are longer, and there is time for many.
                    false if disturbed => Climb::Between,
                    false => Climb::Over(StoppedBy::Client),
                }
            }
            (Some(lower), None) => Climb::Try(plans::round_rate(lower * 2.0).min(rate_max)),
            (None, None) if disturbed && rate > 1.0 => Climb::Try(plans::round_rate((rate / 4.0).max(1.0))),
            (None, None) if disturbed => Climb::Over(StoppedBy::Disturbed),
            (None, None) => Climb::Over(StoppedBy::Client),
            (None, Some(upper)) => {
                let floor = (peak / 2000.0).max(1.0);
                if upper <= floor * 1.001 {
                    Climb::Over(StoppedBy::LowestFails)
                } else {
                    Climb::Try(plans::round_rate((upper / 4.0).max(floor)))
                }
            }
            (Some(lower), Some(upper)) => {
                let narrow = trials.len() > 12 || upper / lower <= 1.12;
                match evidence.estimate() {
                    _ if narrow => Climb::Between,
                    Some(estimate) if estimate.spread < 0.03 => Climb::Between,
                    Some(estimate) if estimate.rps > lower * 1.02 && estimate.rps < upper * 0.98 => {
                        Climb::Try(plans::round_rate(estimate.rps))
                    }
                    _ => Climb::Try(plans::round_rate((lower * upper).sqrt())),
                }
            }
        }
    }

    /// Whether the climb has seen both a pass and a second fail: from there on no trial is repeated as such.
    fn narrowing(&self, trials: &[(f64, Verdict)]) -> bool {
        let failed_twice = trials
            .iter()
            .enumerate()
            .any(|(at, t)| t.1 == Verdict::Fail && trials[at + 1..].iter().any(|u| u.1 == Verdict::Fail && u.0 == t.0));
        failed_twice && trials.iter().any(|t| t.1 == Verdict::Pass)
    }
}
