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
mod gate;
mod line;
mod peak;
mod plans;
mod posterior;
mod stalls;

pub use peak::{Knee, Peak, best};
pub use stalls::Stalls;

pub use findings::{Bracket, Findings, Forecast, StoppedBy, conclude, forecast};
pub use gate::{Demand, DemandError};

use crate::judge::{Offered, TrialOutcome, Verdict};
use crate::slo::Slo;
use crate::watch::Watch;
use evidence::Evidences;
use plans::Planner;
use plimsoll_model::units::{MS, SECOND};
use plimsoll_model::{Arrivals, Plan, PlanRecord, Purpose};

/// What is searched for.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The request and everything else that all trials share; its load is not used.
    pub base: PlanRecord,
    /// The promise that must hold.
    pub slo: Slo,
    /// The search ends within this time.
    pub budget_ns: u64,
    /// No rate above this is tried.
    pub max_rate: Option<f64>,
    /// Spacing of arrivals.
    pub arrivals: Arrivals,
    /// How long the first answer took, before the search; 0 if nobody asked. Trials are made long enough for such answers
    /// until they have shown how long answers take.
    pub first_answer_ns: u64,
}

/// A trial to carry out now.
#[derive(Debug, Clone)]
pub struct Measure {
    /// What it is for.
    pub purpose: Purpose,
    /// What to do.
    pub plan: PlanRecord,
    /// Feed it every tick; it says when to end the run early.
    pub watch: Watch,
}

/// What to do next.
#[derive(Debug, Clone)]
pub enum SearchStep {
    /// Carry this out, judge it, and ask again.
    Measure(Box<Measure>),
    /// The search is over.
    Stop(Box<Findings>),
}

/// What to do after the trials in `history`, `elapsed_ns` after the search began. The same arguments always give the
/// same step.
pub fn next(settings: &Settings, history: &[TrialOutcome], elapsed_ns: u64) -> SearchStep {
    let sound = sound(history);
    match LoadChoice::new(settings, &sound, elapsed_ns).step() {
        Ok(measure) => SearchStep::Measure(Box::new(measure)),
        Err(stopped_by) => SearchStep::Stop(Box::new(findings::of(settings, history, elapsed_ns, stopped_by))),
    }
}

/// No figure of a trial is larger than this, no time longer, and no rate smaller.
const FIGURE_MAX: f64 = 1e12;
const TIME_MAX_NS: u64 = 3600 * SECOND;
const RATE_MIN: f64 = 1e-6;

/// The trials as the search takes them. Figures that are no numbers say nothing, and a server that did nothing showed no
/// capacity: whoever compares capacities may take their ratio.
fn sound(history: &[TrialOutcome]) -> Vec<TrialOutcome> {
    let meant = |x: f64| (0.0..=FIGURE_MAX).contains(&x);
    let number = |x: &mut f64| {
        if !meant(*x) {
            *x = 0.0;
        }
    };
    let clean = |trial: &TrialOutcome| {
        let mut trial = trial.clone();
        match &mut trial.load {
            Offered::Rate(rate) => {
                number(rate);
                if *rate < RATE_MIN {
                    *rate = 0.0;
                }
            }
            // No plan has none, and twice none is none.
            Offered::Users(users) => *users = (*users).max(1),
        }
        for time_ns in [&mut trial.p50_ns, &mut trial.p99_ns, &mut trial.duration_ns, &mut trial.planned_ns] {
            *time_ns = (*time_ns).min(TIME_MAX_NS);
        }
        let TrialOutcome { achieved_rps, success_rate, evidence, .. } = &mut trial;
        evidence.saturated_rps = evidence.saturated_rps.filter(|rps| meant(*rps) && *rps > 0.0);
        evidence.little_gap = evidence.little_gap.filter(|gap| meant(*gap));
        if !meant(evidence.saturated_error) {
            // Not known at all.
            evidence.saturated_error = 1.0;
        }
        let evidence = [&mut evidence.excess, &mut evidence.service_mean_ns, &mut evidence.work_share];
        evidence.into_iter().chain([achieved_rps, success_rate]).for_each(number);
        trial
    };
    history.iter().map(clean).collect()
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

/// Every trial is as long as so many answers in turn take.
const ANSWERS_IN_TURN: u64 = 3;
/// Trials near the line take this share of the budget at most, if both ends are decided by repeats.
const LINE_SHARE: f64 = 0.6;

impl Pace {
    /// For this budget, and a server that takes `answer_ns` for an answer while it has nothing else to do.
    fn of(budget_ns: u64, answer_ns: u64) -> Pace {
        let least_ns = (answer_ns.min(TIME_MAX_NS) * ANSWERS_IN_TURN).next_multiple_of(Plan::TICK_NS);
        let small = budget_ns < 25 * SECOND || least_ns > budget_ns / 30;
        let line_ns = match budget_ns {
            b if b >= 600 * SECOND => 10 * SECOND,
            b => (b / 12 / (100 * MS) * (100 * MS)).clamp(SECOND, 5 * SECOND),
        };
        let line_ns = line_ns.max(least_ns);
        let repeats: f64 = match budget_ns {
            b if b >= 300 * SECOND => 7.0,
            b if b >= 150 * SECOND => 5.0,
            b if b >= 25 * SECOND => 3.0,
            _ => 1.0,
        };
        let affordable = (LINE_SHARE / 2.0 * budget_ns as f64 / line_ns as f64).floor();
        Pace {
            peak_ns: if budget_ns < 25 * SECOND { 300 * MS } else { 500 * MS }.max(least_ns),
            peak_until_ns: budget_ns / 6,
            users_factor: if small { 4 } else { 2 },
            first_share: if small { 0.5 } else { 0.125 },
            climb_ns: SECOND.max(least_ns),
            line_ns,
            repeats: repeats.min(affordable).max(1.0),
        }
    }

    /// A load is decided by so many seconds of trials.
    fn decide_s(&self) -> f64 {
        self.repeats * self.line_ns as f64 / 1e9
    }

    /// The same after some trials: how long an answer takes is known from the first load, beforehand from the first answer.
    fn after(settings: &Settings, history: &[TrialOutcome]) -> Pace {
        let mut pace = Pace::of(settings.budget_ns, peak::answer_ns(history).unwrap_or(settings.first_answer_ns));
        if let Some(stalls) = Stalls::seen(settings, history) {
            pace.line_ns = pace.line_ns.max(stalls.line_ns(settings.budget_ns) / Plan::TICK_NS * Plan::TICK_NS);
        }
        pace
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
    let places = 4 - rate.log10().floor() as i32;
    let power = 10f64.powi(places.abs());
    // By a whole power of ten either way: 2002.3, not 2002.3000000000002.
    if places > 0 { (rate * power).round() / power } else { (rate / power).round() * power }
}

/// A first load in which nobody answered is repeated so often, so many times as long.
const FIRST_LOADS_MAX: u32 = 3;
const FIRST_LOAD_FACTOR: u64 = 4;
/// Most voids in a row before the generator is taken for the limit.
const VOIDS_MAX: usize = 3;
/// A rate of the climb at which others disturbed is tried so often before another one is: only once while nothing has held,
/// since a lower rate is likelier to hold in spite of them.
const DISTURBED_TRIES: usize = 6;
const DISTURBED_TRIES_FIRST: usize = 1;

/// Whether others spoilt a trial.
fn disturbed(trial: &TrialOutcome) -> bool {
    trial.verdict == Verdict::Void && trial.others.disturbed
}

/// Whether a trial was more than plimsoll could carry out.
fn limited(trial: &TrialOutcome) -> bool {
    trial.verdict == Verdict::Void && trial.evidence.generator_limited
}

/// Whether a trial was near the line, and not on the way there.
fn near_line(trial: &TrialOutcome) -> bool {
    matches!(trial.purpose, Purpose::Line | Purpose::Confirm)
}

struct LoadChoice<'a> {
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

impl<'a> LoadChoice<'a> {
    fn new(settings: &'a Settings, history: &'a [TrialOutcome], elapsed_ns: u64) -> LoadChoice<'a> {
        let pace = Pace::after(settings, history);
        LoadChoice { settings, history, pace, plans: Planner::new(settings, history, elapsed_ns) }
    }

    fn step(&self) -> Result<Measure, StoppedBy> {
        if let Some(measure) = self.peak() {
            return measure;
        }
        if let Some(measure) = self.plans.drain() {
            return Ok(measure);
        }
        if Stalls::seen(self.settings, self.history).is_some_and(|stalls| stalls.forbids.is_some()) {
            return Err(StoppedBy::Stalls);
        }
        let evidence = Evidences::new(self.settings, self.history);
        let climb_over = self.history.iter().any(near_line);
        if !climb_over {
            match self.climb(&evidence) {
                Climb::Try(rate) => return self.affordable(self.plans.open(Purpose::Climb, rate, self.pace.climb_ns)),
                Climb::Over(stopped_by) => return Err(stopped_by),
                Climb::Between => {}
            }
        } else if self.voids_in_a_row() >= VOIDS_MAX {
            return Err(StoppedBy::Client);
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
        let users_max = u64::from(self.settings.base.carriage.connections_max).min(16_384);
        if peak::answer_ns(self.history).is_none() {
            return Some(self.first_load());
        }
        let users = peak::next(self.history, self.pace.users_factor, users_max)?;
        let (p50_ns, planned_ns) = self.history.last().map_or((0, 0), |t| (t.p50_ns, t.planned_ns));
        // Answers of a crowd take longer than those of a single user.
        let least_ns = p50_ns.saturating_mul(ANSWERS_IN_TURN).min(planned_ns.saturating_mul(2));
        let shown_ns = p50_ns.saturating_mul(8).min(SECOND);
        let length_ns = shown_ns.max(least_ns).max(self.pace.peak_ns) / Plan::TICK_NS * Plan::TICK_NS;
        if self.plans.elapsed_ns.saturating_add(length_ns) > self.pace.peak_until_ns {
            return None;
        }
        Some(self.affordable(self.plans.closed(users, length_ns)))
    }

    /// The first load: a single user, for as long as some answers take. The first answer of all may have been a slow one,
    /// so it ends as soon as enough are there; and nobody may have asked before, so it is repeated for longer.
    fn first_load(&self) -> Result<Measure, StoppedBy> {
        let silent = self.history.iter().filter(|t| t.purpose == Purpose::Peak).count() as u32;
        if silent > FIRST_LOADS_MAX {
            return Err(StoppedBy::NothingAnswered);
        }
        let wanted_ns = self.pace.peak_ns.saturating_mul(2).saturating_mul(FIRST_LOAD_FACTOR.saturating_pow(silent));
        let shown_ns = Pace::of(self.settings.budget_ns, 0).peak_ns;
        let no_room = if silent > 0 { StoppedBy::NothingAnswered } else { StoppedBy::Budget };
        let measure = self.plans.first(wanted_ns, shown_ns).ok_or(no_room)?;
        let longer = self.history.last().is_none_or(|t| measure.plan.load.duration_ns > Some(t.planned_ns));
        if longer { Ok(measure) } else { Err(StoppedBy::NothingAnswered) }
    }

    fn affordable(&self, measure: Measure) -> Result<Measure, StoppedBy> {
        if self.plans.affords(&measure) { Ok(measure) } else { Err(StoppedBy::Budget) }
    }

    /// Of the trials near the line.
    fn voids_in_a_row(&self) -> usize {
        self.history.iter().rev().filter(|t| near_line(t)).take_while(|t| limited(t)).count()
    }

    fn climb(&self, evidence: &Evidences) -> Climb {
        let climb = || self.history.iter().filter(|t| t.purpose == Purpose::Climb);
        let trials: Vec<(f64, Verdict)> = climb()
            .filter_map(|t| t.offered_rps().map(|rate| (rate, t.verdict)))
            .filter(|(rate, _)| *rate > 0.0)
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
        let disturbed = climb().next_back().is_some_and(disturbed);
        let tries = if highest_pass.is_some() { DISTURBED_TRIES } else { DISTURBED_TRIES_FIRST };
        if disturbed && times < tries {
            return Climb::Try(rate);
        }
        let by_client = climb().next_back().is_some_and(limited);
        // Far below the peak a fail is looked at once more again.
        let times_max = if rate < 0.6 * peak && !by_client { 3 } else { 2 };
        match verdict {
            Verdict::Fail | Verdict::Void if !disturbed && times < times_max && !self.narrowing(&trials) => {
                return Climb::Try(rate);
            }
            _ => {}
        }
        match (highest_pass, lowest_fail) {
            (Some(lower), None) if lower >= rate_max => Climb::Between,
            (Some(lower), None) => {
                let void_above =
                    climb().filter(|t| limited(t)).filter_map(TrialOutcome::offered_rps).filter(|r| *r > lower);
                let void = void_above.min_by(f64::total_cmp).or((verdict == Verdict::Void).then_some(rate));
                match void {
                    // The generator is the limit somewhere above the highest pass: close in on it a little.
                    Some(void) if void / lower > 1.2 => Climb::Try(plans::round_rate((lower * void).sqrt())),
                    // Near the line trials are longer: what is stated holds for longer than a second, wherever the limit is.
                    Some(_) => Climb::Between,
                    None => Climb::Try(plans::round_rate(lower * 2.0).min(rate_max)),
                }
            }
            (None, None) if rate > 1.0 => Climb::Try(plans::round_rate((rate / 4.0).max(1.0))),
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
