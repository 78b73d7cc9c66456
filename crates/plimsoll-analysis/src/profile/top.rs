//! Sums of a profile by function: flat and cumulative, as in `go tool pprof -top`.
//!
//! A sample's value counts in `cum` once for every distinct function on its stack, however often
//! the function occurs there. The value counts in `flat` only for the function at the leaf, which
//! may be an inlined function (pprof, `internal/graph/graph.go`).

use super::ProfileView;
use plimsoll_model::profile::{FunctionId, Profile};

/// The sums of a profile's samples by function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionCostTable {
    /// The denominator of percentages: the sum of the absolute values of all samples
    /// ([`ProfileView::total`]).
    pub total: i64,
    /// The sum of the samples in the view (the selected samples). The sum differs from `total` if
    /// the view leaves out samples, or if some values are negative.
    pub selected_total: i64,
    /// One row for each function with a sum other than 0, sorted by the requested column.
    pub rows: Vec<FunctionCostRow>,
}

/// The sums of one function, in the unit of the selected column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionCostRow {
    /// The id of the function in the profile.
    pub function: FunctionId,
    /// Value spent in the function itself.
    pub flat: i64,
    /// Value spent in the function and its callees.
    pub cum: i64,
}

/// The sum (flat or cumulative) by which rows are sorted, from the largest to the smallest absolute
/// value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionCostOrder {
    /// Rows are sorted by `flat`, the cost of a function itself.
    Flat,
    /// Rows are sorted by `cum`, the cost of a function and its callees.
    Cum,
}

/// Returns a value as a percentage of a total; 0 if the total is 0.
pub fn percent(value: i64, total: i64) -> f64 {
    if total == 0 { 0.0 } else { value as f64 / total as f64 * 100.0 }
}

/// Sums up the samples in a view of a profile by function.
pub fn sum_by_function(profile: &Profile, view: &ProfileView, sort: FunctionCostOrder) -> FunctionCostTable {
    let functions = profile.functions();
    let mut rows: Vec<FunctionCostRow> =
        (0..functions.len() as u32).map(|function| FunctionCostRow { function, flat: 0, cum: 0 }).collect();
    // `seen` contains, for each function, the number of the last sample that contained the
    // function. So a recursive function counts only once in each sample.
    let mut seen = vec![usize::MAX; rows.len()];
    let mut kept = 0_i64;
    for (number, sample) in profile.samples().enumerate() {
        let value = sample.values()[view.column];
        if value == 0 || !view.contains_sample(&sample) {
            continue;
        }
        kept = kept.saturating_add(value);
        let mut leaf = None;
        for function in sample.functions_from_root() {
            let at = function as usize;
            if seen[at] != number {
                seen[at] = number;
                rows[at].cum = rows[at].cum.saturating_add(value);
            }
            leaf = Some(at);
        }
        if let Some(at) = leaf {
            rows[at].flat = rows[at].flat.saturating_add(value);
        }
    }
    rows.retain(|row| row.flat != 0 || row.cum != 0);
    rows.sort_by(|a, b| {
        let (flat, cum) = (
            b.flat.unsigned_abs().cmp(&a.flat.unsigned_abs()), //
            b.cum.unsigned_abs().cmp(&a.cum.unsigned_abs()),
        );
        let by_value = match sort {
            FunctionCostOrder::Flat => flat.then(cum),
            FunctionCostOrder::Cum => cum.then(flat),
        };
        by_value.then_with(|| functions[a.function as usize].name.cmp(&functions[b.function as usize].name))
    });
    FunctionCostTable { total: view.percent_denominator(profile), selected_total: kept, rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::read;

    fn check(
        text: &str,
        view: impl Fn(&Profile) -> ProfileView,
        sort: FunctionCostOrder,
        expect: &[(&str, i64, i64)],
        total: i64,
    ) {
        let profile = read(text.as_bytes()).expect("folded stacks");
        let top = sum_by_function(&profile, &view(&profile), sort);
        let rows: Vec<_> = top
            .rows
            .iter()
            .map(|row| (profile.functions()[row.function as usize].name.as_str(), row.flat, row.cum))
            .collect();
        assert_eq!((rows.as_slice(), top.total), (expect, total), "{text}");
    }

    #[test]
    fn sums_count_recursion_once() {
        let text = "main;f;f;g 3\nmain;f;g;f 2\nmain;h 4\n";
        let all = |_: &Profile| ProfileView::all_samples(0);
        check(text, all, FunctionCostOrder::Cum, &[("main", 0, 9), ("g", 3, 5), ("f", 2, 5), ("h", 4, 4)], 9);
        check(text, all, FunctionCostOrder::Flat, &[("h", 4, 4), ("g", 3, 5), ("f", 2, 5), ("main", 0, 9)], 9);
        let focus = |p: &Profile| ProfileView::all_samples(0).focus(p, |name| name == "g");
        check(text, focus, FunctionCostOrder::Cum, &[("g", 3, 5), ("f", 2, 5), ("main", 0, 5)], 9);
        let ignore = |p: &Profile| ProfileView::all_samples(0).ignore(p, |name| name == "g");
        check(text, ignore, FunctionCostOrder::Cum, &[("h", 4, 4), ("main", 0, 4)], 9);
        let both =
            |p: &Profile| ProfileView::all_samples(0).focus(p, |name| name == "main").ignore(p, |name| name == "h");
        check(text, both, FunctionCostOrder::Flat, &[("g", 3, 5), ("f", 2, 5), ("main", 0, 5)], 9);
    }

    #[test]
    fn negative_values_count_by_their_size() {
        let all = |_: &Profile| ProfileView::all_samples(0);
        check(
            "main;a -4\nmain;b 1\nlone;c 2\nlone;d -2\n",
            all,
            FunctionCostOrder::Flat,
            &[("a", -4, -4), ("c", 2, 2), ("d", -2, -2), ("b", 1, 1), ("main", 0, -3)],
            9,
        );
        assert_eq!(percent(-4, 9), -400.0 / 9.0);
        assert_eq!(percent(0, 0), 0.0);
    }
}
