//! Profiles taken at loads, as a page shows them: with flame graphs, drawn from the files beside the run file.

use plimsoll_analysis::Doubted;
use plimsoll_analysis::profile::{Sort, View, diff_tree, read as read_profile, top, tree};
use plimsoll_analysis::taken_profiles::Profiles;
use plimsoll_report::Report;
use plimsoll_report::flame::{Flame, inline_svg};
use plimsoll_report::load_profiles::profiles_report;
use plimsoll_sys::files::{self, Use};

/// Frames of a flame graph inside a page: a page of a normal run stays below 1 MB.
const PAGE_FRAMES_MAX: usize = 4000;

/// What profiles taken at loads say, with flame graphs.
pub fn with_flames(profiles: &Doubted<Profiles>) -> Report {
    let mut report = Report::default();
    report.heading("CPU time of the server by function").append(profiles_report(profiles));
    let profiles = profiles.open().1;
    let cpu = |level: &str| {
        let kept = profiles.files.iter().find(|kept| kept.level == level && kept.kind == "cpu")?;
        read_profile(&files::read(kept.file.as_ref(), Use::Profile).ok()?).ok()
    };
    let (low, high) = (cpu("low"), cpu(&profiles.level_name));
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
            total: top(profile, &view, Sort::Cum).kept as f64,
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
