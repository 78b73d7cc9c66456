//! Profiles taken at loads, as a page shows them: with flame graphs, drawn from the files beside
//! the run file.

use plimsoll_analysis::Assessment;
use plimsoll_analysis::profile::{Basis, Sort, View, diff, diff_tree, read as read_profile, top, tree};
use plimsoll_analysis::taken_profiles::Profiles;
use plimsoll_model::Experiment;
use plimsoll_model::profile::Profile;
use plimsoll_report::Report;
use plimsoll_report::flame::{Flame, inline_svg};
use plimsoll_report::load_profiles::profiles_report;
use plimsoll_study::load_profiles;
use plimsoll_sys::files::{self, Use};
use std::path::Path;

/// Frames of a flame graph inside a page: a page of a normal run stays below 1 MB.
const PAGE_FRAMES_MAX: usize = 4000;

/// What profiles taken at loads say, with flame graphs.
pub fn with_flames(profiles: &Assessment<Profiles>) -> Report {
    let mut report = Report::default();
    report.heading("CPU time of the server by function").append(profiles_report(profiles));
    let profiles = profiles.open().1;
    let (low, high) = (cpu_profile(profiles, "low"), cpu_profile(profiles, &profiles.level_name));
    if let Some(profile) = high.as_ref().or(low.as_ref()) {
        let level = if high.is_some() { &profiles.level_name } else { "low" };
        let view = View::all(profile.sample_type_default);
        let column = &profile.sample_types[view.sample_type];
        let flame = Flame {
            tree: &tree(profile, &view, PAGE_FRAMES_MAX),
            title: &format!("CPU by function ({level})"),
            subtitle: &format!("{} of {}; {} s", column.kind, profiles.base, profiles.seconds),
            unit: &column.unit,
            per: None,
            total: top(profile, &view, Sort::Cum).selected_total as f64,
        };
        report.fragment(inline_svg(&flame));
    }
    if let (Some(low), Some(high), Some(comparison)) = (&low, &high, &profiles.comparison) {
        let (a, b) = (View::all(low.sample_type_default), View::all(high.sample_type_default));
        // Two profiles that were compared have a tree, too.
        if let Ok(tree) = diff_tree((low, &a), (high, &b), comparison.basis, PAGE_FRAMES_MAX) {
            let flame = Flame {
                tree: &tree,
                title: &format!("CPU a request: low load against the {}", profiles.level_name),
                subtitle: "red: costs more than at low load; blue: less; grey: may be chance",
                unit: &comparison.sample_type.unit,
                per: Some("request"),
                total: comparison.total.after,
            };
            report.fragment(inline_svg(&flame));
        }
    }
    report
}

/// The CPU profile of a level, where one was kept.
fn cpu_profile(profiles: &Profiles, level: &str) -> Option<Profile> {
    let kept = profiles.files.iter().find(|kept| kept.level == level && kept.kind == "cpu")?;
    read_profile(&files::read(kept.file.as_ref(), Use::Profile).ok()?).ok()
}

/// The flame graph of the difference of two runs, where both have a CPU profile: B against A, a
/// request.
pub fn flame_difference(a: (&Experiment, &Path), b: (&Experiment, &Path)) -> Option<Report> {
    let side = |(experiment, path): (&Experiment, &Path)| {
        let profiles = load_profiles::read_back(experiment, Some(path))?;
        let profiles = profiles.open().1;
        let profile = cpu_profile(profiles, &profiles.level_name)?;
        Some((profile, profiles.requests.last().copied().unwrap_or(0.0)))
    };
    let ((before, before_requests), (after, after_requests)) = (side(a)?, side(b)?);
    let basis = match before_requests > 0.0 && after_requests > 0.0 {
        true => Basis::Requests { before: before_requests, after: after_requests },
        false => Basis::Shares,
    };
    let (before_view, after_view) = (View::all(before.sample_type_default), View::all(after.sample_type_default));
    let (before, after) = ((&before, &before_view), (&after, &after_view));
    let comparison = diff(before, after, basis, Sort::Flat).ok()?;
    let tree = diff_tree(before, after, basis, PAGE_FRAMES_MAX).ok()?;
    let is_of_requests = matches!(basis, Basis::Requests { .. });
    let flame = Flame {
        tree: &tree,
        title: if is_of_requests { "CPU a request: B against A" } else { "CPU shares: B against A" },
        subtitle: "red: costs more than in A; blue: less; grey: may be chance",
        unit: if is_of_requests { &comparison.sample_type.unit } else { "percent" },
        per: is_of_requests.then_some("request"),
        total: comparison.total.after,
    };
    let mut report = Report::default();
    report.heading("Differences of CPU time by function").fragment(inline_svg(&flame));
    Some(report)
}
