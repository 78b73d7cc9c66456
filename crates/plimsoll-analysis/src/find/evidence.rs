//! What the trials so far say about where the line is ([`Evidences`]).
//!
//! Verdicts classify loads ([`Evidences::class`]); what failing trials show of the server's capacity gives a
//! [`Place`], which only chooses loads; failing trials whose capacities agree give away a second, slower
//! regime ([`Regimes`]), of which a passing trial at a higher load says nothing.

use super::grid::{index_below, load_of};
use super::peak;
use super::posterior::{Place, Posterior, Sight};
use super::so_far::TrialsSoFar;
use super::stalls::Pool;
use crate::judge::{GROWTH_MAX, TrialOutcome, Verdict};
use plimsoll_model::Purpose;

/// Capacities that differ by at most this (as a logarithm) agree.
const AGREE: f64 = 0.015;
/// A load this far above a capacity would have shown it.
const SHOWS: f64 = 1.02;
/// A trial is set aside as disturbed from this probability on.
const DISTURBED_FROM: f64 = 0.9;
/// So many trials near the line that fail one after the other are not disturbed by chance.
const FAILS_IN_A_ROW: usize = 3;
/// ... where each showed so much less than the server held before.
const SLOWER: f64 = 1.05;
/// Capacities known to this relative standard error can be compared.
const PRECISE: f64 = 0.006;
/// A capacity shows as such only below this share of the load; above, it may be the load itself.
const BELOW: f64 = 0.985;
/// Odds for a second regime before anything is seen, and what each kind of trial does to them. A second regime is taken
/// to show in two of five trials, a disturbance in one of ten, and two disturbances to agree in one of ten.
const REGIME_PRIOR: f64 = 0.1;
const REGIME_FIRST: f64 = 4.0;
const REGIME_AGREES: f64 = 27.0;
const REGIME_ABSENT: f64 = 0.61;
/// Odds from which a second regime is a fact, from which it is believed in the end, and below which it is none.
const REGIME_FACT: f64 = 8.0;
const REGIME_LIKELY: f64 = 1.0;
const REGIME_NONE: f64 = 0.2;
/// A trial near the line.
#[derive(Debug, Clone, Copy)]
pub struct Near {
    /// Requests a second offered.
    pub rate: f64,
    /// Whether it passed.
    pub pass: bool,
    /// Planned seconds.
    pub seconds: f64,
    /// Grid index: of a pass, the highest load it speaks for; of a fail, the lowest.
    pub index: i32,
    /// Whether it was to confirm the line.
    confirm: bool,
    /// Probably disturbed: it counts in decisions until a pass refutes it, but does not keep from trying higher loads.
    suspect: bool,
}

/// Two alternating capacities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regimes {
    /// The slower, in requests a second.
    pub slower_rps: f64,
    /// Odds that there are two at all.
    odds: f64,
}

impl Regimes {
    /// There are two.
    pub fn certain(&self) -> bool {
        self.odds >= REGIME_FACT
    }

    /// More likely than not.
    pub fn likely(&self) -> bool {
        self.odds >= REGIME_LIKELY
    }

    /// More trials could tell.
    pub fn open(&self) -> bool {
        self.odds > REGIME_NONE && !self.certain()
    }
}

/// What a load is, by the trials at, above and below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadClass {
    /// The server holds it.
    Lower,
    /// The server does not hold it.
    Upper,
    /// Not decided.
    Open,
}

/// All that the trials say.
pub struct Evidences<'a> {
    open: Vec<&'a TrialOutcome>,
    /// Trials near the line that count.
    pub near: Vec<Near>,
    /// Trials that are set aside: passes that met the faster of two regimes, fails that were disturbed.
    pub set_aside: usize,
    /// Two regimes, if there is any sign of them.
    pub regimes: Option<Regimes>,
    posterior: Option<Posterior>,
    limiter: bool,
    success_min: f64,
    share_max: f64,
    bound_ns: u64,
    budget_ns: u64,
    stalls_recur: bool,
    silent_when_full: bool,
    /// Open trials that are not set aside.
    counted: Vec<&'a TrialOutcome>,
}

/// Fewer failures than this share may be something else than what a server rejects for being too much: connections that it closed while
/// they stood idle, say.
const REJECTED_FEW: f64 = 0.05;
/// What is rejected at one rate is so at this many times it for certain.
const REJECTED_ABOVE: f64 = 1.05;
/// More than this share of what was to empty a limiter's bucket is not answered yet: it waits.
const WAITING_MANY: f64 = 0.05;

/// Open trials in which the server rejected what was too much. Few failures are not that where it let more wait at a higher rate, and
/// failed none of it.
pub fn rejections(history: &[TrialOutcome]) -> impl Iterator<Item = &TrialOutcome> {
    let lets_wait = |t: &TrialOutcome, rate: f64| {
        let waits = match t.purpose {
            Purpose::Settle => t.evidence.unanswered as f64 > WAITING_MANY * t.evidence.scheduled as f64,
            _ => t.evidence.growth > GROWTH_MAX,
        };
        let higher = t.offered_rps().is_some_and(|it| it >= REJECTED_ABOVE * rate);
        higher && t.verdict == Verdict::Fail && waits && t.evidence.failed_count() == 0
    };
    history.iter().filter(move |t| {
        let Some(rate) = t.offered_rps().filter(|_| t.evidence.rejecting) else { return false };
        let many = t.evidence.failed_count() as f64 >= REJECTED_FEW * t.evidence.scheduled as f64;
        many || !history.iter().any(|other| lets_wait(other, rate))
    })
}

/// The rate of a limiter: successes a second of trials that were rejected without falling behind; `None` if there is no
/// such trial. The median, as a single trial may have been disturbed.
pub fn rejecting_rps(history: &[TrialOutcome]) -> Option<f64> {
    let rejected = rejections(history).filter(|t| t.verdict == Verdict::Fail);
    let mut rates: Vec<f64> = rejected.filter_map(|t| t.evidence.saturated_rps).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied()
}

impl<'a> Evidences<'a> {
    /// While the search goes on: a second regime must be certain.
    pub(super) fn new(known: &TrialsSoFar<'a>) -> Evidences<'a> {
        Evidences::believing(known, REGIME_FACT)
    }

    /// Once no further trial can tell: a second regime that is likelier than not is believed.
    pub(super) fn concluding(known: &TrialsSoFar<'a>) -> Evidences<'a> {
        Evidences::believing(known, REGIME_LIKELY)
    }

    fn believing(known: &TrialsSoFar<'a>, regime_odds: f64) -> Evidences<'a> {
        let (settings, history) = (known.settings, known.history);
        let open: Vec<&TrialOutcome> = history
            .iter()
            .filter(|t| matches!(t.purpose, Purpose::Climb | Purpose::Line | Purpose::Confirm))
            .filter(|t| t.verdict != Verdict::Void && t.offered_rps().is_some_and(|rate| rate > 0.0))
            .collect();
        let limiter = rejecting_rps(history).is_some();
        let success_min = settings.slo.success_min;
        let share_max = settings.slo.allowances().iter().map(|a| a.share).fold(1e-9, f64::max);
        let mut evidence = Evidences {
            open,
            near: Vec::new(),
            set_aside: 0,
            regimes: None,
            posterior: None,
            limiter,
            success_min,
            share_max,
            bound_ns: settings.slo.bound_min_ns().unwrap_or(u64::MAX),
            budget_ns: settings.budget_ns,
            stalls_recur: known.stalls.as_ref().is_some_and(|stalls| stalls.recur),
            silent_when_full: known.silent_when_full,
            counted: Vec::new(),
        };
        // What a stall broke says nothing of the rate, unless stalls are the server's own.
        let telling = evidence.open.iter().filter(|t| !evidence.stalled(t));
        let sights: Vec<Sight> = telling.filter_map(|t| evidence.sight(t)).collect();
        evidence.posterior = Posterior::new(&sights, peak::of(history).map(|p| p.rps));
        evidence.regimes = if limiter { None } else { evidence.find_regimes() };
        let slower = evidence.regimes.filter(|r| r.odds >= regime_odds).map(|r| r.slower_rps);
        let voice_ns = known.pace.line_ns;
        let failing_from_ns = evidence.failing_now().and_then(|failing| failing.last().map(|t| t.start_ns));
        for trial in evidence.open.clone() {
            let Some(rate) = trial.offered_rps() else { continue };
            let pass = trial.verdict == Verdict::Pass;
            // A limiter's tokens may have carried a trial that began with a full bucket; a pass of the faster regime
            // says nothing of the slower.
            let unprimed = limiter && pass && !trial.evidence.primed;
            if trial.purpose == Purpose::Climb || unprimed {
                evidence.counted.push(trial);
                continue;
            }
            if pass && slower.is_some_and(|slower| rate > slower * 1.008) {
                evidence.set_aside += 1;
                continue;
            }
            let lasts = failing_from_ns.is_some_and(|from_ns| trial.start_ns >= from_ns);
            let suspect = !pass && !lasts && evidence.suspect(trial);
            if suspect && evidence.refuted(trial, rate) {
                evidence.set_aside += 1;
                continue;
            }
            evidence.counted.push(trial);
            let index = if pass { index_below(rate) } else { evidence.fails_from(trial, rate) };
            // A confirming trial may be longer, and yet is one voice.
            let seconds = trial.planned_ns.min(voice_ns) as f64 / 1e9;
            evidence.near.push(Near {
                rate,
                pass,
                seconds,
                index,
                confirm: trial.purpose == Purpose::Confirm,
                suspect,
            });
        }
        evidence
    }

    /// Whether a failing trial was probably disturbed. Where such trials agree there are two regimes, and none of them is
    /// a disturbance.
    fn suspect(&self, trial: &TrialOutcome) -> bool {
        if self.stalled(trial) {
            return true;
        }
        let (Some(sight), Some(posterior)) = (self.sight(trial), self.posterior.as_ref()) else { return false };
        if let (Some(regimes), Some(shown)) = (self.regimes, self.capacity(trial))
            && regimes.likely()
            && (shown / regimes.slower_rps).ln().abs() <= 2.0 * AGREE
        {
            return false;
        }
        // Where the server stalls, a trial that met a stall was not disturbed.
        (!self.stalls_recur || trial.evidence.stalls.is_empty()) && posterior.disturbed(&sight) > DISTURBED_FROM
    }

    /// The trials near the line of a server that fails in each by now, if there are so many that it has become slower: chance does not
    /// disturb one after the other.
    fn failing_now(&self) -> Option<Vec<&'a TrialOutcome>> {
        let near = self.open.iter().rev().filter(|t| t.purpose != Purpose::Climb);
        let failing: Vec<&TrialOutcome> = near.take_while(|t| t.verdict == Verdict::Fail).copied().collect();
        let shown = |t: &&&TrialOutcome| self.capacity(t).is_some_and(|rps| self.held_rps() > SLOWER * rps);
        let far_off = failing.iter().filter(shown).count();
        (far_off >= FAILS_IN_A_ROW).then_some(failing)
    }

    /// The lowest load that a server failed which has become slower, if it is one that it held before: what passed then is no bound.
    pub fn lost(&self) -> Option<i32> {
        let failing = self.failing_now()?;
        let lowest = failing.iter().filter_map(|t| t.offered_rps()).fold(f64::INFINITY, f64::min);
        let held = self.near.iter().any(|n| n.pass && n.rate >= 0.999 * lowest);
        held.then(|| index_below(lowest))
    }

    /// Whether a failing trial met a stall that does not recur, long enough to break a bound.
    fn stalled(&self, trial: &TrialOutcome) -> bool {
        let broke = trial.evidence.stalls.iter().any(|stall| stall.beyond_ns(self.bound_ns) > 0);
        broke && !self.stalls_recur && !self.silent_when_full && trial.verdict == Verdict::Fail
    }

    /// Whether the server held for a whole trial what it did not hold in this failing one.
    fn refuted(&self, trial: &TrialOutcome, rate: f64) -> bool {
        self.held_rps() > self.capacity(trial).map_or(rate * 0.9, |shown| shown * 1.02)
    }

    /// The most that the server held for a whole trial; 0 where there is none.
    fn held_rps(&self) -> f64 {
        let held = self.open.iter().filter(|t| t.verdict == Verdict::Pass && t.purpose != Purpose::Climb);
        let held = held.filter(|t| !self.limiter || t.evidence.primed).filter_map(|t| t.offered_rps());
        held.fold(0.0, f64::max)
    }

    /// The lowest load that a failing trial speaks for: one that met the slower of two regimes at a higher load would have
    /// failed at any load above that regime's capacity.
    fn fails_from(&self, trial: &TrialOutcome, rate: f64) -> i32 {
        let own = index_below(rate);
        match (trial.evidence.saturated_rps, self.regimes.filter(Regimes::certain)) {
            (Some(shown), Some(regimes)) if (shown / regimes.slower_rps).ln().abs() <= 2.0 * AGREE => {
                own.min(index_below(shown * 1.012) + 1)
            }
            _ => own,
        }
    }

    /// The highest load that a trial of the climb passed.
    pub fn climb_lower(&self) -> Option<f64> {
        let upper = self.climb_upper().unwrap_or(f64::INFINITY);
        let passed = self.climb().filter(|(rate, pass)| *pass && *rate < upper);
        passed.map(|(rate, _)| rate).max_by(f64::total_cmp)
    }

    /// The lowest load that failed and did not pass when repeated.
    pub fn climb_upper(&self) -> Option<f64> {
        let passed = |rate: f64| self.climb().any(|(r, pass)| pass && r >= rate);
        let failed = self.climb().filter(|(rate, pass)| !pass && !passed(*rate));
        failed.map(|(rate, _)| rate).min_by(f64::total_cmp)
    }

    fn climb(&self) -> impl Iterator<Item = (f64, bool)> + '_ {
        let climbing = self.open.iter().filter(|t| t.purpose == Purpose::Climb);
        climbing.filter_map(|t| Some((t.offered_rps()?, t.verdict == Verdict::Pass)))
    }

    /// Seconds that passed at load `index` or above, and seconds that failed there or below.
    fn seconds(&self, index: i32) -> (f64, f64) {
        let passed = self.near.iter().filter(|n| n.pass && n.index >= index);
        let failed = self.near.iter().filter(|n| !n.pass && n.index <= index);
        (passed.map(|n| n.seconds).sum(), failed.map(|n| n.seconds).sum())
    }

    /// MLRsearch's classification with an exceed ratio of one half: a load is a lower (upper) bound once no outcome of
    /// the trials still missing to `decide_s` seconds could make it something else.
    pub fn class(&self, index: i32, decide_s: f64) -> LoadClass {
        let (passed, failed) = self.seconds(index);
        let whole = (passed + failed).max(decide_s * 0.999);
        if failed > 0.5 * whole {
            LoadClass::Upper
        } else if whole - passed <= 0.5 * whole && passed > 0.0 {
            LoadClass::Lower
        } else {
            LoadClass::Open
        }
    }

    /// The grid's indices that any trial speaks for, with one more at either side.
    fn span(&self) -> std::ops::RangeInclusive<i32> {
        let from = self.near.iter().map(|n| n.index).min().unwrap_or(0) - 1;
        let to = self.near.iter().map(|n| n.index).max().unwrap_or(-1) + 1;
        from..=to
    }

    /// The highest lower bound.
    pub fn lower(&self, decide_s: f64) -> Option<i32> {
        self.span().rev().find(|k| self.class(*k, decide_s) == LoadClass::Lower)
    }

    /// The lowest upper bound.
    pub fn upper(&self, decide_s: f64) -> Option<i32> {
        self.span().find(|k| self.class(*k, decide_s) == LoadClass::Upper)
    }

    /// The same without trials that were probably disturbed: where to look next.
    pub fn room(&self) -> (Option<i32>, Option<i32>) {
        let sum = |of: &dyn Fn(&&Near) -> bool| self.near.iter().filter(of).map(|n| n.seconds).sum::<f64>();
        let lead = |k: i32| sum(&|n| n.pass && n.index >= k) - sum(&|n| !n.pass && !n.suspect && n.index <= k);
        (self.span().rev().find(|k| lead(*k) > 0.0), self.span().find(|k| lead(*k) < 0.0))
    }

    /// The highest load for which more speaks than against.
    pub fn leans_lower(&self) -> Option<i32> {
        self.span().rev().find(|k| {
            let (passed, failed) = self.seconds(*k);
            passed > failed
        })
    }

    /// The lowest load against which more speaks than for it.
    pub fn leans_upper(&self) -> Option<i32> {
        self.span().find(|k| {
            let (passed, failed) = self.seconds(*k);
            failed > passed
        })
    }

    /// The grid's load that the verdicts make the line, measured or not.
    pub fn target(&self, decide_s: f64) -> Option<i32> {
        self.lower(decide_s).max(self.leans_lower())
    }

    /// Whether more speaks for a load than against it.
    pub fn speaks_for(&self, index: i32) -> bool {
        let (passed, failed) = self.seconds(index);
        passed > failed
    }

    /// The line: the highest rate that passed a whole trial, for which more speaks than against, and which all time
    /// measured there and below does not contradict. One that a further trial confirmed comes first.
    pub fn held(&self, decide_s: f64, confirmed: impl Fn(f64) -> bool) -> Option<f64> {
        let target = self.target(decide_s)?;
        let holds = |n: &&Near| n.pass && n.index <= target && self.speaks_for(n.index) && !self.contradicted(n.rate);
        let rates = || self.near.iter().filter(holds).map(|n| n.rate);
        rates().filter(|rate| confirmed(*rate)).max_by(f64::total_cmp).or_else(|| rates().max_by(f64::total_cmp))
    }

    /// The lowest load that a confirming trial did not hold, and none did since: it was not disturbed as far as one can tell.
    pub fn not_confirmed(&self) -> Option<i32> {
        let confirms = |pass: bool| {
            let of = self.near.iter().filter(move |n| n.confirm && n.pass == pass);
            of.filter(|n| !n.suspect)
        };
        let held = |k: i32| confirms(true).any(|n| n.index >= k);
        confirms(false).map(|n| n.index).filter(|k| !held(*k)).min()
    }

    /// The rate of a whole trial that passed near the line, though as much may speak against it: the nearest to where the
    /// verdicts point.
    pub fn passed_once(&self, decide_s: f64) -> Option<f64> {
        let target = self.target(decide_s).unwrap_or(i32::MIN / 2);
        let passed = self.near.iter().filter(|n| n.pass && !self.contradicted(n.rate));
        passed.min_by_key(|n| (n.index - target).abs()).map(|n| n.rate)
    }

    /// Whether all time measured at and below a rate says that the promise does not hold.
    pub fn contradicted(&self, rate: f64) -> bool {
        let below = self.counted.iter().filter(|t| t.offered_rps().is_some_and(|r| r <= rate * 1.001));
        Pool::of(below.copied(), self.share_max, !self.stalls_recur).contradicts(self.budget_ns, self.stalls_recur)
    }

    /// The line as single trials suggest it.
    pub fn estimate(&self) -> Option<Place> {
        if let Some(regimes) = self.regimes.filter(Regimes::certain) {
            return Some(Place { rps: regimes.slower_rps, spread: 0.0 });
        }
        self.posterior.as_ref().map(Posterior::place)
    }

    /// The same if it lies between two of the grid's loads.
    pub fn estimate_within(&self, lower: Option<i32>, upper: Option<i32>) -> Option<Place> {
        if self.regimes.is_some_and(|r| r.certain()) {
            return self.estimate();
        }
        let from = lower.map_or(f64::NEG_INFINITY, |k| load_of(k).ln());
        let to = upper.map_or(f64::INFINITY, |k| load_of(k).ln());
        self.posterior.as_ref()?.place_within(from, to)
    }

    fn sight(&self, trial: &TrialOutcome) -> Option<Sight> {
        let rate = trial.offered_rps()?;
        let pass = trial.verdict == Verdict::Pass;
        if pass && self.limiter && !trial.evidence.primed {
            return None;
        }
        let evidence = &trial.evidence;
        let few = evidence.bad < 3 || evidence.excess <= 0.0;
        // Fewer than three bad requests are an upper end for the bad share, not a measure of it.
        let per_bad = if evidence.bad > 0 { evidence.excess / evidence.bad as f64 } else { 1.0 / self.allowed(trial) };
        let y = if few { (3.0 * per_bad).ln() } else { evidence.excess.ln() };
        let most = (per_bad * evidence.scheduled.max(1) as f64).ln();
        Some(Sight {
            x: rate.ln(),
            pass,
            seconds: trial.duration_ns as f64 / 1e9,
            capacity: self.capacity(trial).map(f64::ln),
            capacity_error: evidence.saturated_error,
            few,
            y,
            most,
        })
    }

    /// Requests that may be bad by the widest bound.
    fn allowed(&self, trial: &TrialOutcome) -> f64 {
        (self.share_max * trial.evidence.scheduled as f64).max(1.0)
    }

    /// The capacity that a failing trial showed.
    fn capacity(&self, trial: &TrialOutcome) -> Option<f64> {
        let (rate, rps) = (trial.offered_rps()?, trial.evidence.saturated_rps?);
        let rps = if trial.evidence.rejecting { rps / self.success_min.max(0.5) } else { rps };
        (trial.verdict == Verdict::Fail).then_some(rps.min(rate))
    }

    /// The lowest capacity that failing trials agree on while others did not meet it.
    fn find_regimes(&self) -> Option<Regimes> {
        let saturated = |t: &&'a TrialOutcome| {
            let (rate, rps) = (t.offered_rps()?, t.evidence.saturated_rps?);
            (t.verdict == Verdict::Fail
                && !t.evidence.rejecting
                && rps < rate * BELOW
                && t.evidence.saturated_error < PRECISE)
                .then_some(rps)
        };
        let capacities: Vec<f64> = self.open.iter().filter_map(saturated).collect();
        let agreeing = |c: f64| capacities.iter().filter(move |d| (**d / c).ln().abs() <= AGREE);
        let mut found: Option<Regimes> = None;
        for capacity in &capacities {
            let mut cluster: Vec<f64> = agreeing(*capacity).copied().collect();
            cluster.sort_by(f64::total_cmp);
            let middle = cluster[cluster.len() / 2];
            let absent = self.open.iter().filter(|t| {
                let rate = t.offered_rps().unwrap_or(0.0);
                let higher = match t.verdict {
                    Verdict::Pass => t.purpose != Purpose::Climb,
                    _ => t.evidence.saturated_rps.is_some_and(|c| c > middle * SHOWS),
                };
                rate > middle * SHOWS && higher
            });
            let absent = absent.count();
            if cluster.len() < 2 || absent == 0 {
                continue;
            }
            let odds = REGIME_PRIOR
                * REGIME_FIRST
                * REGIME_AGREES.powi(cluster.len() as i32 - 1)
                * REGIME_ABSENT.powi(absent as i32);
            if odds > REGIME_NONE && found.is_none_or(|f| odds > f.odds) {
                found = Some(Regimes { slower_rps: middle, odds });
            }
        }
        found
    }

    /// Trials that failed at a load below one that passed.
    pub fn inversions(&self) -> usize {
        let highest = self.near.iter().filter(|n| n.pass).map(|n| n.rate).fold(0.0, f64::max);
        self.near.iter().filter(|n| !n.pass && n.rate < highest * 0.985).count()
    }

    /// Trials near the line that count: what was disturbed, and refuted by what the server held, is not among them.
    pub fn whole(&self) -> impl Iterator<Item = &'a TrialOutcome> + '_ {
        self.counted.iter().copied().filter(|t| t.purpose != Purpose::Climb)
    }

    /// All open trials that count for anything, in order.
    pub fn open(&self) -> &[&'a TrialOutcome] {
        &self.open
    }
}

/// The load that is tried near an estimate: the grid's load at or below it.
pub fn index_near(rps: f64) -> i32 {
    index_below(rps * 1.002)
}

/// The rate of a grid index, not above `rate_max`.
pub fn rate_of(index: i32, rate_max: f64) -> f64 {
    load_of(index).min(rate_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Evidence, Offered};
    use plimsoll_model::RequestFailure;

    /// Purpose, rate, failed of 1000, not answered of 1000, growth, whether it rejects.
    type Made = (Purpose, f64, u64, u64, f64, bool);

    #[test]
    fn what_waits_at_a_higher_rate_is_not_rejected() {
        const MANY: Made = (Purpose::Line, 1000.0, 80, 0, 0.0, true);
        const FEW: Made = (Purpose::Line, 1000.0, 3, 0, 0.0, true);
        let cases: [(&str, &[Made], usize); 7] = [
            ("a limiter", &[MANY, (Purpose::Climb, 2000.0, 500, 0, 0.0, true)], 2),
            ("many, whatever waits above", &[MANY, (Purpose::Line, 1100.0, 0, 90, 0.1, false)], 1),
            ("a few above its limit", &[FEW], 1),
            ("and none at a higher rate, where more wait", &[FEW, (Purpose::Line, 1100.0, 0, 90, 0.1, false)], 0),
            ("and a higher rate that was held", &[FEW, (Purpose::Climb, 1100.0, 0, 0, 0.0, false)], 1),
            ("and more wait at the same rate", &[FEW, (Purpose::Line, 1000.0, 0, 90, 0.1, false)], 1),
            ("and none where a bucket was to be emptied", &[FEW, (Purpose::Settle, 3000.0, 0, 600, 0.0, false)], 0),
        ];
        for (name, trials, expect) in cases {
            let history: Vec<TrialOutcome> = trials.iter().map(trial).collect();
            assert_eq!(rejections(&history).count(), expect, "{name}");
        }
    }

    fn trial((purpose, rate, failed, unanswered, growth, rejecting): &Made) -> TrialOutcome {
        let mut evidence = Evidence {
            scheduled: 1000,
            unanswered: *unanswered,
            growth: *growth,
            rejecting: *rejecting,
            ..Evidence::default()
        };
        evidence.failed[RequestFailure::Reset as usize] = *failed;
        let verdict = if failed + unanswered > 0 { Verdict::Fail } else { Verdict::Pass };
        TrialOutcome { evidence, ..TrialOutcome::of_a_second(*purpose, Offered::Rate(*rate), verdict) }
    }
}
