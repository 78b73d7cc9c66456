//! The files that a sweep writes next to its run file: tables for each route (kind of request), and
//! charts.
//!
//! Not here: the lines of a table (`sweep`), drawing the charts (`chart`), and writing files.

use crate::chart::{Theme, heading, success_chart, throughput_chart};
use crate::sweep::{RouteDat, dat_by_route, level_durations_text};
use plimsoll_analysis::finding::SweepLevel;
use plimsoll_analysis::levels::recorded_levels;
use plimsoll_model::Experiment;

/// The maximum number of routes for which separate tables are written.
pub const ROUTES_MAX: usize = 200;
/// The maximum number of characters of a route's name in a file name.
const ROUTE_NAME_CHARS_MAX: usize = 40;

/// Returns a table for each route of a sweep with several routes: the end of the file name, and the
/// lines of the table. The error is the number of routes, if it exceeds [`ROUTES_MAX`].
pub fn route_tables(levels: &[SweepLevel]) -> Result<Vec<(String, String)>, usize> {
    let routes = dat_by_route(levels);
    if routes.len() > ROUTES_MAX {
        return Err(routes.len());
    }
    let table =
        |(number, route): (usize, RouteDat)| (format!("_{number}-{}.dat", file_name_part(&route.route)), route.lines);
    Ok((1..).zip(routes).map(table).collect())
}

/// Returns the charts of a sweep: the end of the file name without extension, and the SVG. The list
/// is empty if no level was measured.
pub fn sweep_charts(experiment: &Experiment, levels: &[SweepLevel]) -> Vec<(&'static str, String)> {
    let Some((over, measured)) = recorded_levels(experiment) else { return Vec::new() };
    let target = experiment.trials.first().map_or_else(String::new, |t| heading::target_title(&t.run.plan));
    let subtitle = format!("{target}{}", level_durations_text(levels));
    let throughput = heading::throughput_heading(over, &measured, &subtitle);
    let success = heading::success_heading(over, &measured, &subtitle);
    vec![
        ("_qps_ttlb", throughput_chart(&throughput, over, &measured, Theme::Light)),
        ("_successrate", success_chart(&success, over, &measured, Theme::Light)),
    ]
}

/// Converts a route's name to a part of a file name. The part has the letters and digits of the
/// name, joined by `-`, with at most [`ROUTE_NAME_CHARS_MAX`] characters.
fn file_name_part(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").chars().take(ROUTE_NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn route_names_become_valid_file_names() {
        for (name, expect) in [
            ("list", "list"),
            ("GET /items/{}", "GET-items"),
            ("../../etc/passwd", "etc-passwd"),
            ("\u{e9}t\u{e9}", "t"),
            ("\u{1b}[31m", "31m"),
            ("", ""),
            (&"x".repeat(300), &"x".repeat(40)),
        ] {
            assert_eq!(file_name_part(name), expect);
        }
    }
}
