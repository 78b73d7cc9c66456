//! The effect of a change on the cost of a request, by function. A test shows whether a difference
//! of the costs exceeds chance.
//!
//! The compared measure is the cost `c = value / requests` on each side (before and after the
//! change). If every function becomes more expensive, the costs show this change, but shares of a
//! total would hide the change. A profile is a sample, so `c` has an error. If a value comes from
//! `n` events of weight `w`, with `n` Poisson distributed, the variance of the value is `n w^2`. So
//! the difference of the costs, in standard deviations, is
//!
//! ```text
//! z = (c_after - c_before) / sqrt(sum of n w^2 / requests^2 over both sides)
//! ```
//!
//! For CPU profiles (`w` = the period), `z` gives the usual two-sample test of Poisson rates. The
//! p-values of all functions are corrected after Benjamini and Hochberg ("Controlling the false
//! discovery rate", 1995). The p-values of flat costs and of cumulative costs are corrected
//! separately. In the long run, at most a share [`FALSE_DISCOVERY_RATE_MAX`] of the differences
//! called a finding is noise. If events come in bursts, more findings are noise. A steady load at a
//! fixed rate on both sides prevents bursts.
//!
//! [`diff_repeated`] compares several profiles before the change with several profiles after the
//! change, taken alternately. If each side has several profiles, the error of a cost includes the
//! differences among the profiles of one side. The variance of a cost is at least the observed
//! variance between the profiles of one side. The variance of a cost is also at least its Poisson
//! variance, times the mean ratio of observed variance to Poisson variance over all functions.
//!
//! Not here: the choice of the compared runs, and the display of the result.

use super::{FunctionCostOrder, ProfileView};
use plimsoll_model::profile::{Profile, ProfileSample, ValueType};
use std::collections::HashMap;
use std::f64::consts::{FRAC_1_SQRT_2, PI};
use thiserror::Error;

/// The false discovery rate up to which a difference counts as a finding.
pub const FALSE_DISCOVERY_RATE_MAX: f64 = 0.05;

/// Smallest size of a finding, in standard deviations, even if only few functions were tested.
const FINDING_DEVIATIONS_MIN: f64 = 2.0;

/// Smallest number of sampled events on both sides together for which a difference is tested. For
/// fewer events, the normal distribution is no good approximation of the Poisson distribution.
const EVENTS_MIN: f64 = 10.0;

/// One side of a comparison of profiles: a profile, its view, and the divisor of its values.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProfileSide<'a> {
    pub(super) profile: &'a Profile,
    pub(super) view: &'a ProfileView,
    /// The divisor of the side's values: the number of requests. For percentages, the divisor is a
    /// hundredth of the profile's total.
    pub(super) divisor: f64,
}

impl ProfileSide<'_> {
    fn sample_type(&self) -> ValueType {
        self.profile.sample_types[self.view.column].clone()
    }
}

/// The divisor that makes the costs of two profiles comparable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CostDivisor {
    /// Costs are divided by the number of requests that completed while each profile was taken.
    Requests {
        /// Requests completed while the first profile was taken; above 0.
        before: f64,
        /// Requests completed while the second profile was taken; above 0.
        after: f64,
    },
    /// Costs are percentages of each profile's total, because the number of requests is not known.
    /// Percentages show only whether the mix of functions changed.
    Shares,
}

/// Why two profiles cannot be compared.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DiffError {
    /// The selected columns of the two profiles differ in kind or unit.
    #[error("count different things ({} in {} and {} in {}): give two profiles of the same kind", .0.kind, .0.unit, .1.kind, .1.unit)]
    TypeMismatch(ValueType, ValueType),
    /// The total of one profile is 0, so that no cost is a percentage of the total.
    #[error("cannot be compared by shares, because one profile has no {}: take this profile under load", .0.kind)]
    ZeroTotal(ValueType),
}

/// A cost on both sides of a comparison: per request in the unit of the column, or in percent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CostChange {
    /// Cost on the first side of the comparison, before the change.
    pub before: f64,
    /// Cost on the second side of the comparison, after the change.
    pub after: f64,
    /// Number of sampled events on both sides together; 0 if the profiles do not contain this
    /// number.
    pub events: f64,
    /// The difference of the costs in standard deviations; `None` if there are too few events for a
    /// test.
    pub z: Option<f64>,
    /// The smallest false discovery rate at which this difference counts as a finding. `None` if
    /// `z` is `None`, and for the total of all functions.
    pub q: Option<f64>,
    variance: f64,
}

impl CostChange {
    /// Returns the cost on the second side minus the cost on the first side.
    pub fn delta(&self) -> f64 {
        self.after - self.before
    }

    /// Returns whether the difference counts as a finding: it exceeds chance.
    pub fn is_finding(&self) -> bool {
        self.q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE_MAX)
            && self.z.is_some_and(|z| z.abs() >= FINDING_DEVIATIONS_MIN)
    }

    fn add(&mut self, cost: f64, events: Option<(f64, f64)>, is_after: bool) {
        *(if is_after { &mut self.after } else { &mut self.before }) += cost;
        if let Some((events, variance)) = events {
            self.events += events;
            self.variance += variance;
        }
    }

    fn compute_standardised_difference(&mut self) {
        let testable = self.events >= EVENTS_MIN && self.variance > 0.0;
        self.z = testable.then(|| self.delta() / self.variance.sqrt());
    }
}

/// The costs of one function on both sides of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffRow {
    /// The name of the function.
    pub function: String,
    /// The cost of the function itself (flat cost), without its callees.
    pub flat: CostChange,
    /// The cost of the function and its callees.
    pub cum: CostChange,
    /// The cost, on the second side, that was spent in the most expensive callee of the function.
    /// For a function that only calls one other function, this cost equals `cum`.
    pub costliest_callee_cost: f64,
}

impl DiffRow {
    fn cost_for_sort(&self, sort: FunctionCostOrder) -> &CostChange {
        match sort {
            FunctionCostOrder::Flat => &self.flat,
            FunctionCostOrder::Cum => &self.cum,
        }
    }

    fn cost_for_sort_mut(&mut self, sort: FunctionCostOrder) -> &mut CostChange {
        match sort {
            FunctionCostOrder::Flat => &mut self.flat,
            FunctionCostOrder::Cum => &mut self.cum,
        }
    }
}

/// The comparison of two profiles, function by function.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileDiff {
    /// The compared column: its kind and its unit.
    pub sample_type: ValueType,
    /// The divisor that made the costs of the two profiles comparable.
    pub basis: CostDivisor,
    /// The cost of all samples together, on both sides.
    pub total: CostChange,
    /// One row for each function of either side: findings first, then by the size of the
    /// difference.
    pub rows: Vec<DiffRow>,
    /// Number of functions whose flat cost was tested.
    pub tested_flat: usize,
    /// Number of functions whose cumulative cost was tested.
    pub tested_cum: usize,
}

/// Compares two profiles. `sort` selects the cost (flat or cumulative) by which the rows are
/// ordered.
///
/// # Errors
/// The function returns [`DiffError`] if the columns differ in kind, or if `basis` is shares and a
/// total is 0.
pub fn diff(
    before: (&Profile, &ProfileView),
    after: (&Profile, &ProfileView),
    basis: CostDivisor,
    sort: FunctionCostOrder,
) -> Result<ProfileDiff, DiffError> {
    let [first, second] = comparison_sides(before, after, basis)?;
    let mut sums = CostSums::default();
    sums.add(&first, false);
    sums.add(&second, true);
    Ok(sums.into_profile_diff(first.sample_type(), basis, sort))
}

/// One of several profiles of one side (before or after the change) of a comparison. The profiles
/// of the two sides are taken alternately.
#[derive(Debug, Clone, Copy)]
pub struct RepeatedProfile<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// The column and the samples of the profile that are compared.
    pub view: &'a ProfileView,
    /// Requests completed while the profile was taken; above 0.
    pub requests: f64,
}

/// Compares two sides (before and after a change), each with one or more profiles. With at least
/// two profiles on each side, the error includes the differences among the profiles of one side.
///
/// # Errors
/// The function returns [`DiffError::TypeMismatch`] if the columns are not all of one kind.
pub fn diff_repeated(
    before: &[RepeatedProfile],
    after: &[RepeatedProfile],
    sort: FunctionCostOrder,
) -> Result<ProfileDiff, DiffError> {
    let mut sums = CostSums::default();
    let mut each: [Vec<CostSums>; 2] = Default::default();
    let mut sample_type = None;
    let mut requests = [0.0; 2];
    for (number, repetitions) in [before, after].into_iter().enumerate() {
        requests[number] = repetitions.iter().map(|one| one.requests).sum();
        for RepeatedProfile { profile, view, requests: own } in repetitions {
            let side = ProfileSide { profile, view, divisor: requests[number] };
            let known = sample_type.get_or_insert_with(|| side.sample_type());
            if *known != side.sample_type() {
                return Err(DiffError::TypeMismatch(known.clone(), side.sample_type()));
            }
            sums.add(&side, number == 1);
            let mut alone = CostSums::default();
            alone.add(&ProfileSide { divisor: *own, ..side }, false);
            each[number].push(alone);
        }
    }
    sums.widen_variances(&each);
    let basis = CostDivisor::Requests { before: requests[0], after: requests[1] };
    let nothing = || ValueType { kind: String::new(), unit: String::new() };
    Ok(sums.into_profile_diff(sample_type.unwrap_or_else(nothing), basis, sort))
}

/// Sums of costs by function, over the profiles added so far.
#[derive(Default)]
struct CostSums {
    total: CostChange,
    rows: Vec<DiffRow>,
    known: HashMap<String, usize>,
    /// For each call (indices of the rows of caller and callee), the cost on the second side of all
    /// samples with this call. Each entry also contains the number of the last counted sample, so
    /// that no sample counts twice for a call.
    calls: HashMap<(usize, usize), (f64, usize)>,
    samples: usize,
}

impl CostSums {
    fn add(&mut self, side: &ProfileSide, is_after: bool) {
        let CostSums { total, rows, known, calls, samples } = self;
        let functions = side.profile.functions();
        let row_of: Vec<usize> = functions
            .iter()
            .map(|f| match known.get(&f.name) {
                Some(row) => *row,
                None => {
                    let none = CostChange::default();
                    rows.push(DiffRow { function: f.name.clone(), flat: none, cum: none, costliest_callee_cost: 0.0 });
                    known.insert(f.name.clone(), rows.len() - 1);
                    rows.len() - 1
                }
            })
            .collect();
        let mut seen = vec![usize::MAX; functions.len()];
        for (number, sample) in side.profile.samples().enumerate() {
            let value = sample.values()[side.view.column];
            if value == 0 || !side.view.contains_sample(&sample) {
                continue;
            }
            let cost = value as f64 / side.divisor;
            let events = events_variance(side, &sample).map(|(n, v)| (n, v / side.divisor / side.divisor));
            total.add(cost, events, is_after);
            *samples += 1;
            let mut leaf = None;
            for function in sample.functions_from_root() {
                let at = function as usize;
                if let Some(caller) = leaf.filter(|caller| is_after && *caller != row_of[at]) {
                    let (handed, last) = calls.entry((caller, row_of[at])).or_default();
                    // With indirect recursion the same call occurs several times on one stack, but
                    // the cost of the sample counts only once.
                    if *last != *samples {
                        (*handed, *last) = (*handed + cost, *samples);
                    }
                }
                if seen[at] != number {
                    seen[at] = number;
                    rows[row_of[at]].cum.add(cost, events, is_after);
                }
                leaf = Some(row_of[at]);
            }
            if let Some(row) = leaf {
                rows[row].flat.add(cost, events, is_after);
            }
        }
    }

    /// Increases the variances if the profiles of one side differ by more than chance explains.
    /// `each` contains the sums of every single profile, by side. The sums of every single profile
    /// are in the fields for the first side (`before`), even if the profile belongs to the second
    /// side.
    fn widen_variances(&mut self, each: &[Vec<CostSums>; 2]) {
        if each.iter().any(|side| side.len() < 2) {
            return;
        }
        let between = |cost: &dyn Fn(&CostSums) -> f64| {
            let of = |side: &Vec<CostSums>| {
                let costs: Vec<f64> = side.iter().map(cost).collect();
                let count = costs.len() as f64;
                let mean = costs.iter().sum::<f64>() / count;
                costs.iter().map(|cost| (cost - mean) * (cost - mean)).sum::<f64>() / (count - 1.0) / count
            };
            of(&each[0]) + of(&each[1])
        };
        let total = between(&|one| one.total.before);
        for sort in [FunctionCostOrder::Flat, FunctionCostOrder::Cum] {
            let mut seen = Vec::new();
            let mut excesses = Vec::new();
            for row in &self.rows {
                let cost = |one: &CostSums| {
                    one.known.get(&row.function).map_or(0.0, |at| one.rows[*at].cost_for_sort(sort).before)
                };
                let variance = between(&cost);
                let change = row.cost_for_sort(sort);
                if change.events >= EVENTS_MIN && change.variance > 0.0 {
                    excesses.push(variance / change.variance);
                }
                seen.push(variance);
            }
            let excess = excesses.iter().sum::<f64>() / (excesses.len() as f64).max(1.0);
            for (row, variance) in self.rows.iter_mut().zip(seen) {
                let change = row.cost_for_sort_mut(sort);
                change.variance = (change.variance * excess.max(1.0)).max(variance);
            }
        }
        self.total.variance = self.total.variance.max(total);
    }

    fn into_profile_diff(self, sample_type: ValueType, basis: CostDivisor, sort: FunctionCostOrder) -> ProfileDiff {
        let CostSums { mut total, mut rows, calls, .. } = self;
        total.compute_standardised_difference();
        for ((caller, _), (handed, _)) in calls {
            rows[caller].costliest_callee_cost = rows[caller].costliest_callee_cost.max(handed);
        }
        rows.retain(|row| [row.flat.before, row.flat.after, row.cum.before, row.cum.after].iter().any(|c| *c != 0.0));
        let tested_flat = test_cost_differences(&mut rows, |row| &mut row.flat);
        let tested_cum = test_cost_differences(&mut rows, |row| &mut row.cum);
        rows.sort_by(|a, b| {
            let (x, y) = (a.cost_for_sort(sort), b.cost_for_sort(sort));
            (y.is_finding().cmp(&x.is_finding()))
                .then(y.delta().abs().total_cmp(&x.delta().abs()))
                .then_with(|| a.function.cmp(&b.function))
        });
        ProfileDiff { sample_type, basis, total, rows, tested_flat, tested_cum }
    }
}

/// Returns both sides of a comparison, each with the divisor of its values. Returns [`DiffError`]
/// if the columns differ in kind or unit, or if a divisor is 0.
pub(super) fn comparison_sides<'a>(
    before: (&'a Profile, &'a ProfileView),
    after: (&'a Profile, &'a ProfileView),
    basis: CostDivisor,
) -> Result<[ProfileSide<'a>; 2], DiffError> {
    let type_of = |(profile, view): (&Profile, &ProfileView)| profile.sample_types[view.column].clone();
    if type_of(before) != type_of(after) {
        return Err(DiffError::TypeMismatch(type_of(before), type_of(after)));
    }
    let units = match basis {
        CostDivisor::Requests { before, after } => [before, after],
        CostDivisor::Shares => [before, after].map(|(profile, view)| view.percent_denominator(profile) as f64 / 100.0),
    };
    if units.contains(&0.0) {
        return Err(DiffError::ZeroTotal(type_of(before)));
    }
    let side = |(profile, view), units| ProfileSide { profile, view, divisor: units };
    Ok([side(before, units[0]), side(after, units[1])])
}

/// Returns the number of events behind a sample's value, and the variance of the value if events
/// are Poisson distributed. Returns `None` if the profile does not contain the number of events.
///
/// Go's heap profiles contain estimates of all objects, not counts of the sampled objects. An
/// object of mean size `s` was sampled with probability `1 - exp(-s / period)` (`runtime/pprof`,
/// `scaleHeapSample`). So the number of sampled objects is computed from the estimate. In other
/// profiles the number of events is the first column, or the value divided by the period.
pub(super) fn events_variance(side: &ProfileSide, sample: &ProfileSample) -> Option<(f64, f64)> {
    let ProfileSide { profile, view, .. } = side;
    let values = sample.values();
    let value = values[view.column] as f64;
    let events = heap_events(profile, view.column, values).or_else(|| {
        let column = &profile.sample_types[view.column];
        if profile.sample_types[0].unit == "count" {
            Some(values[0].unsigned_abs() as f64)
        } else if profile.period > 0 && profile.period_type.as_ref() == Some(column) {
            Some(value.abs() / profile.period as f64)
        } else {
            None
        }
    })?;
    (events > 0.0).then(|| (events, value * value / events))
}

fn heap_events(profile: &Profile, column: usize, values: &[i64]) -> Option<f64> {
    let period_type = profile.period_type.as_ref()?;
    if period_type.kind != "space" || profile.period <= 0 {
        return None;
    }
    let kind = profile.sample_types[column].kind.as_str();
    let stem = kind.strip_suffix("_objects").or(kind.strip_suffix("_space"))?;
    let of = |suffix: &str| {
        let at = profile.sample_types.iter().position(|t| t.kind.strip_prefix(stem) == Some(suffix))?;
        Some(values[at].unsigned_abs() as f64)
    };
    let (objects, bytes) = (of("_objects")?, of("_space")?);
    (objects > 0.0).then(|| objects * -(-bytes / objects / profile.period as f64).exp_m1())
}

/// Tests one cost (flat or cumulative) of all rows, and corrects the p-values for the number of
/// tests. Returns the number of tests.
fn test_cost_differences(rows: &mut [DiffRow], mut column: impl FnMut(&mut DiffRow) -> &mut CostChange) -> usize {
    let mut by_p: Vec<(f64, usize)> = Vec::new();
    for (at, row) in rows.iter_mut().enumerate() {
        let change = column(row);
        change.compute_standardised_difference();
        by_p.extend(change.z.map(|z| (two_sided_p(z), at)));
    }
    by_p.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut q: f64 = 1.0;
    for (rank, (p, at)) in by_p.iter().enumerate().rev() {
        q = q.min(p * by_p.len() as f64 / (rank + 1) as f64);
        column(&mut rows[*at]).q = Some(q);
    }
    by_p.len()
}

/// Returns the probability that a standard normal value is at least as far from 0 as `z`, exact to
/// twelve digits.
fn two_sided_p(z: f64) -> f64 {
    let x = z.abs() * FRAC_1_SQRT_2;
    if x < 3.0 {
        // The series of erf with positive terms only (Abramowitz and Stegun, 7.1.6).
        let (mut term, mut sum, mut n) = (x, x, 1.0);
        while term > sum * 1e-16 {
            term *= 2.0 * x * x / (2.0 * n + 1.0);
            sum += term;
            n += 1.0;
        }
        1.0 - sum * (-x * x).exp() * 2.0 / PI.sqrt()
    } else {
        // The continued fraction of erfc (Abramowitz and Stegun, 7.1.14), evaluated from its last
        // term.
        let fraction = (1..60).rev().fold(x, |inner, k| x + f64::from(k) / 2.0 / inner);
        (-x * x).exp() / (fraction * PI.sqrt())
    }
}

#[cfg(test)]
mod tests;
