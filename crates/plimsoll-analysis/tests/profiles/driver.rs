//! Runs a profile reader on any bytes, and reports a panic or an inconsistent profile.
//!
//! The driver is separate from the tests, because the seeded fuzz test and the cargo-fuzz target in
//! `fuzz/` share it. The reader is an argument, so that a test can pass a broken reader and check
//! that the driver notices it.
//!
//! Not here: the expected profile, which is known only if the bytes were generated from a profile.

use plimsoll_analysis::profile::{FunctionCostOrder, FunctionCostRow, ProfileView, flame_graph_tree, sum_by_function};
use plimsoll_model::profile::Profile;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the reader on any bytes. `Ok(None)` means that the reader refused the bytes. The error
/// describes what the reader did wrong, or which sums over the profile are wrong.
pub fn check_reader<E: std::fmt::Display>(
    read: impl Fn(&[u8]) -> Result<Profile, E>,
    bytes: &[u8],
) -> Result<Option<Profile>, String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| match read(bytes) {
        Ok(profile) => check_profile_sums(&profile).map(|()| Some(profile)),
        Err(error) => {
            let text = error.to_string();
            if text.is_empty() || text.contains('\n') { Err(format!("no sentence: {text:?}")) } else { Ok(None) }
        }
    }));
    outcome.unwrap_or_else(|_| Err("panic".to_owned()))
}

/// Checks that the sums by function and the tree of stacks agree with the samples.
fn check_profile_sums(profile: &Profile) -> Result<(), String> {
    if profile.sample_type_default >= profile.sample_types.len() {
        return Err("the default column is not there".into());
    }
    let last = profile.samples().last().map(|sample| sample.labels().count() + sample.values().len());
    if last.is_some_and(|last| last < profile.sample_types.len()) {
        return Err("a sample without values".into());
    }
    for column in 0..profile.sample_types.len() {
        let values: Vec<i128> = profile
            .samples()
            .filter(|sample| sample.functions_from_root().next().is_some())
            .map(|sample| i128::from(sample.values()[column]))
            .collect();
        let absolute: i128 = values.iter().map(|value| value.abs()).sum();
        if absolute > 1 << 52 {
            // A float does not represent sums above 2^52 exactly, and sums of integers saturate.
            // For sums above 2^52, the code only checks that nothing panics.
            sum_by_function(profile, &ProfileView::all_samples(column), FunctionCostOrder::Cum);
            continue;
        }
        let top = sum_by_function(profile, &ProfileView::all_samples(column), FunctionCostOrder::Flat);
        let flat: i128 = top.rows.iter().map(|FunctionCostRow { flat, .. }| i128::from(*flat)).sum();
        if flat != values.iter().sum() {
            return Err(format!("column {column}: {flat} by function"));
        }
        for frames_max in [0, 3, usize::MAX] {
            let width = flame_graph_tree(profile, &ProfileView::all_samples(column), frames_max).width();
            if width != absolute as f64 {
                return Err(format!("column {column}: {width} wide in {frames_max} frames instead of {absolute}"));
            }
        }
    }
    Ok(())
}
