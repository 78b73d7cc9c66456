//! From a load that is wanted to a plan that fits the budget and meets the server in a known state.

use super::evidence::rejecting_rps;
use super::{Measure, Settings, peak};
use crate::judge::{TrialOutcome, Verdict};
use crate::watch::{Watch, judged_window_ns};
use plimsoll_model::units::{MS, SECOND};
use plimsoll_model::{Curve, LoadShape, Plan, Purpose, Stage};

/// What a trial takes beyond its schedule: connecting, and handing over the result.
const OVERHEAD_NS: u64 = 150 * MS;
/// Load before the judged window on fresh connections; only near the line, as an overload would leave a backlog.
const WARMUP_LINE_NS: u64 = 200 * MS;
/// A limiter's bucket is emptied by this many times its rate...
const PRIME_FACTOR: f64 = 3.0;
/// ... for at most so long at a time (less in a small budget),
const PRIME_NS: u64 = 4 * SECOND;
/// at most so often in a row;
const PRIMES_MAX: usize = 3;
/// and held empty by a first stage of the trial itself, which a stage at the trial's own rate follows.
const PRIMED_STAGE_NS: u64 = 500 * MS;
const PRIMED_STAGE_FACTOR: f64 = 2.0;
const PRIMED_LEVEL_NS: u64 = 300 * MS;
/// A trial from this share of the limit on leaves its bucket nearly empty.
const NEAR_LIMIT: f64 = 0.95;
/// A backlog that is gone after this long needs no drain.
const DRAIN_FROM_S: f64 = 0.03;
/// A server is given so many drains in a row to come to rest.
const DRAINS_MAX: usize = 2;
/// Connections made ready before a trial.
const READY_MAX: u64 = 2048;

/// A rate with four significant digits.
pub fn round_rate(rate: f64) -> f64 {
    let unit = 10f64.powf(rate.max(1e-9).log10().floor() - 3.0);
    (rate / unit).round() * unit
}

/// Makes plans after a given history.
pub struct Planner<'a> {
    pub settings: &'a Settings,
    pub history: &'a [TrialOutcome],
    pub elapsed_ns: u64,
}

impl<'a> Planner<'a> {
    pub fn new(settings: &'a Settings, history: &'a [TrialOutcome], elapsed_ns: u64) -> Planner<'a> {
        Planner { settings, history, elapsed_ns }
    }

    /// A closed-loop trial.
    pub fn closed(&self, users: u64, length_ns: u64) -> Measure {
        let load = LoadShape::Closed { users: Curve::constant_for(users as f64, length_ns) };
        let ready = u32::try_from(users).unwrap_or(u32::MAX);
        self.measure(Purpose::Peak, self.plan(load, length_ns, 0, ready))
    }

    /// An open trial of this judged length; of a server that rejects, with its bucket emptied first. `Settle` when that
    /// needs a load of its own.
    pub fn open(&self, purpose: Purpose, rate: f64, length_ns: u64) -> Measure {
        let ready = self.ready(rate);
        let Some(limit) = rejecting_rps(self.history) else {
            let warmup_ns = if purpose == Purpose::Climb { 0 } else { WARMUP_LINE_NS };
            let plan = self.plan(self.rate(Curve::constant_for(rate, length_ns)), length_ns, warmup_ns, ready);
            return self.measure(purpose, plan);
        };
        if !self.bucket_empty(limit) {
            return self.prime(limit.max(rate * 0.7));
        }
        let stage = |level, ns| Stage { from: level, to: level, duration_ns: Some(ns) };
        let high = self.capped(limit.max(rate) * PRIMED_STAGE_FACTOR);
        let stages = vec![stage(high, PRIMED_STAGE_NS), stage(rate, PRIMED_LEVEL_NS), stage(rate, length_ns)];
        let whole_ns = PRIMED_STAGE_NS + PRIMED_LEVEL_NS + length_ns;
        self.measure(purpose, self.plan(self.rate(Curve { stages }), whole_ns, 0, ready))
    }

    /// A low load until the server that fell behind in the last trial answers quickly again; `None` if it did not fall
    /// behind, or will not come to rest.
    pub fn drain(&self) -> Option<Measure> {
        let settled = self.history.iter().rev().take_while(|t| t.purpose == Purpose::Settle);
        let failed_drains = settled.clone().filter(|t| t.verdict == Verdict::Fail).count();
        if settled.clone().any(|t| t.verdict == Verdict::Pass) || failed_drains >= DRAINS_MAX {
            return None;
        }
        let last = self.history.iter().rev().find(|t| t.purpose != Purpose::Settle)?;
        let peak = peak::of(self.history).map_or(100.0, |p| p.rps);
        let capacity = last.evidence.saturated_rps.unwrap_or(peak).max(1.0);
        let drain_s = last.evidence.unanswered as f64 / capacity;
        if last.evidence.rejecting || drain_s < DRAIN_FROM_S {
            return None;
        }
        let left_s = self.settings.budget_ns.saturating_sub(self.elapsed_ns) as f64 / 1e9;
        let length_s = (2.0 * drain_s + 1.5).min(15.0).min((left_s - 1.0).max(0.3));
        let length_ns = ((length_s * 10.0).ceil() * 1e8) as u64;
        let rate = self.capped(round_rate((peak * 0.02).clamp(20.0, 100.0).min(peak * 0.2).max(1.0)));
        let mut plan = self.plan(self.rate(Curve::constant_for(rate, length_ns)), length_ns, 0, self.ready(rate));
        plan.grace_ns = plan.grace_ns.min(100 * MS);
        let watch = Watch::until_calm(&plan, &self.settings.slo, self.calm_ns());
        let measure = Measure { purpose: Purpose::Settle, plan, watch };
        self.affords(&measure).then_some(measure)
    }

    /// Whether a trial can end within the budget even if it takes all its time.
    pub fn affords(&self, measure: &Measure) -> bool {
        self.elapsed_ns + cost_ns(&measure.plan) <= self.settings.budget_ns
    }

    /// Time left in the budget.
    pub fn left_ns(&self) -> u64 {
        self.settings.budget_ns.saturating_sub(self.elapsed_ns)
    }

    fn prime(&self, limit: f64) -> Measure {
        let rate = self.capped(round_rate(limit * PRIME_FACTOR));
        let length_ns = (self.settings.budget_ns / 12 / (100 * MS) * (100 * MS)).clamp(SECOND, PRIME_NS);
        let plan = self.plan(self.rate(Curve::constant_for(rate, length_ns)), length_ns, 0, self.ready(rate));
        let watch = Watch::until_rejecting(&plan, &self.settings.slo);
        Measure { purpose: Purpose::Settle, plan, watch }
    }

    /// Whether the last load left a limiter without tokens (or there is no sense in trying again).
    fn bucket_empty(&self, limit: f64) -> bool {
        let Some(last) = self.history.last() else { return false };
        let primes = self.history.iter().rev().take_while(|t| t.purpose == Purpose::Settle).count();
        if last.purpose == Purpose::Settle {
            return last.verdict == Verdict::Pass && last.success_rate < 1.0 || primes >= PRIMES_MAX;
        }
        // A trial well below the limit fills the bucket again.
        let near = last.offered_rps().is_some_and(|rate| rate > limit * NEAR_LIMIT);
        last.evidence.rejecting || last.evidence.primed && near
    }

    fn measure(&self, purpose: Purpose, plan: Plan) -> Measure {
        let watch = Watch::new(purpose, &plan, &self.settings.slo);
        Measure { purpose, plan, watch }
    }

    fn rate(&self, rate: Curve) -> LoadShape {
        LoadShape::Open { rate, arrivals: self.settings.arrivals }
    }

    fn capped(&self, rate: f64) -> f64 {
        rate.min(self.settings.max_rate.unwrap_or(f64::INFINITY))
    }

    fn plan(&self, load: LoadShape, length_ns: u64, warmup_ns: u64, ready: u32) -> Plan {
        let base = &self.settings.base;
        // Whoever waits longer than the longest bound is bad already.
        let bound_ns = self.settings.slo.bound_max_ns().unwrap_or(base.grace_ns);
        Plan {
            // Every trial has arrivals of its own.
            seed: plimsoll_model::rng::mix(base.seed.wrapping_add(self.history.len() as u64)),
            load,
            requests_max: None,
            duration_ns: Some(length_ns),
            warmup_ns,
            grace_ns: base.grace_ns.min(bound_ns),
            connections_ready: ready.min(base.connections_max),
            interval_ns: Plan::TICK_NS,
            ..base.clone()
        }
    }

    /// Connections that a load will need at once by Little's law, with as much again and a margin: near the line those
    /// of the closed-loop peak.
    fn ready(&self, rate: f64) -> u32 {
        let low_s = self.low_load().map_or(0.0, |t| t.evidence.service_mean_ns / 1e9);
        let in_flight = (rate * low_s).ceil() as u64;
        let peak = peak::of(self.history);
        let at_peak = peak.filter(|p| rate > 0.5 * p.rps).map_or(0, |p| p.concurrency);
        (2 * in_flight.max(at_peak) + 8).min(READY_MAX) as u32
    }

    /// The trial with the least load.
    fn low_load(&self) -> Option<&TrialOutcome> {
        self.history.iter().find(|t| t.purpose == Purpose::Peak && t.concurrency() == Some(1))
    }

    /// A server that answers within this time is at rest.
    fn calm_ns(&self) -> u64 {
        self.low_load().map_or(100 * MS, |t| 3 * t.p99_ns + 5 * MS)
    }
}

/// What a plan takes at most.
pub fn cost_ns(plan: &Plan) -> u64 {
    judged_window_ns(plan).1 + plan.grace_ns + OVERHEAD_NS
}
