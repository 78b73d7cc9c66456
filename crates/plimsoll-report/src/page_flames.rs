//! Renders flame graphs inside an HTML page. A flame graph shows a profile of a run's loads, or the
//! difference between the profiles of two runs.
//!
//! Not here: how a flame graph is drawn (`flame`), and reading the profiles.

use crate::block::Report;
use crate::flame::{FlameGraph, inline_svg};
use crate::load_profiles::profiles_report;
use plimsoll_analysis::Assessment;
use plimsoll_analysis::profile::{
    CostDivisor, FunctionCostOrder, ProfileView, diff, flame_graph_difference_tree, flame_graph_tree, sum_by_function,
};
use plimsoll_analysis::profile_findings::SingleTargetProfiles;
use plimsoll_model::profile::Profile;

/// The maximum number of frames of a flame graph inside a page. With this limit, the page of a
/// typical run is smaller than 1 MB.
const PAGE_FRAMES_MAX: usize = 4000;

/// Renders the section about the server's profiles: the tables, and a flame graph of the CPU
/// profile at the higher load. If profiles of both loads exist, a flame graph of the difference
/// between both profiles follows. `low` and `high` are the CPU profiles at the low load and at the
/// higher load.
pub fn profiles_section(
    profiles: &Assessment<SingleTargetProfiles>,
    low: Option<&Profile>,
    high: Option<&Profile>,
) -> Report {
    let mut report = Report::default();
    report.add_heading("CPU time of the server by function").append(profiles_report(profiles));
    let profiles = profiles.doubts_and_figures().1;
    if let Some(profile) = high.or(low) {
        let level = if high.is_some() { &profiles.level_name } else { "low" };
        let view = ProfileView::all_samples(profile.sample_type_default);
        let column = &profile.sample_types[view.column];
        let flame = FlameGraph {
            tree: &flame_graph_tree(profile, &view, PAGE_FRAMES_MAX),
            title: &format!("CPU by function ({level})"),
            subtitle: &format!("{} of {}; {} s", column.kind, profiles.base, profiles.seconds),
            unit: &column.unit,
            divisor: None,
            total: sum_by_function(profile, &view, FunctionCostOrder::Cum).selected_total as f64,
        };
        report.add_raw_html(inline_svg(&flame));
    }
    if let (Some(low), Some(high), Some(comparison)) = (low, high, &profiles.comparison) {
        let (a, b) =
            (ProfileView::all_samples(low.sample_type_default), ProfileView::all_samples(high.sample_type_default));
        // `flame_graph_difference_tree` never fails here, because the two profiles were already
        // compared successfully.
        if let Ok(tree) = flame_graph_difference_tree((low, &a), (high, &b), comparison.basis, PAGE_FRAMES_MAX) {
            let flame = FlameGraph {
                tree: &tree,
                title: &format!(
                    "CPU time per request: low load compared with the {high_load}",
                    high_load = profiles.level_name
                ),
                subtitle: "red: costs more than at low load; blue: less; grey: may be chance",
                unit: &comparison.sample_type.unit,
                divisor: Some("request"),
                total: comparison.total.after,
            };
            report.add_raw_html(inline_svg(&flame));
        }
    }
    report
}

/// Renders the flame graph of the difference from run A to run B. The arguments for each run are
/// its CPU profile and its number of requests. The graph shows costs per request, or shares of the
/// CPU time if the number of requests of a run is 0.
pub fn flame_difference(
    (before, before_requests): (&Profile, f64),
    (after, after_requests): (&Profile, f64),
) -> Report {
    let mut report = Report::default();
    let basis = match before_requests > 0.0 && after_requests > 0.0 {
        true => CostDivisor::Requests { before: before_requests, after: after_requests },
        false => CostDivisor::Shares,
    };
    let (before_view, after_view) =
        (ProfileView::all_samples(before.sample_type_default), ProfileView::all_samples(after.sample_type_default));
    let (before, after) = ((before, &before_view), (after, &after_view));
    let (Ok(comparison), Ok(tree)) = (
        diff(before, after, basis, FunctionCostOrder::Flat),
        flame_graph_difference_tree(before, after, basis, PAGE_FRAMES_MAX),
    ) else {
        return report;
    };
    let is_of_requests = matches!(basis, CostDivisor::Requests { .. });
    let flame = FlameGraph {
        tree: &tree,
        title: if is_of_requests { "CPU a request: B against A" } else { "CPU shares: B against A" },
        subtitle: "red: costs more than in A; blue: less; grey: may be chance",
        unit: if is_of_requests { &comparison.sample_type.unit } else { "percent" },
        divisor: is_of_requests.then_some("request"),
        total: comparison.total.after,
    };
    report.add_heading("Differences of CPU time by function").add_raw_html(inline_svg(&flame));
    report
}
