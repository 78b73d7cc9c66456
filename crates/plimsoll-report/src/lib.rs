//! How findings look. Figures become a [`Report`] of blocks; blocks become text, Markdown or a
//! page. The same figures become JSON, CSV, JUnit's XML and charts.
//!
//! This crate does not know how numbers were computed, and nothing of the engine. It returns text;
//! the binary decides where the text goes.

#![forbid(unsafe_code)]

pub mod block;
pub mod chart;
pub mod csv;
pub mod doctor;
pub mod event_lines;
pub mod flame;
pub mod history;
pub mod json;
pub mod junit;
pub mod load_profiles;
pub mod markdown;
pub mod model;
pub mod page;
pub mod profile;
pub mod prove_profiles;
pub mod remedy;
pub mod spelling;
pub mod text;
pub mod traffic;
pub mod visible;

mod agents;
mod attacks;
mod charted;
mod diff;
mod document;
mod explain;
mod explain_json;
mod failed;
mod find;
mod overload;
mod progress;
mod prove;
mod prove_json;
mod replay;
mod result_view;
mod run;
mod sampled;
mod screen;
mod searches;
mod server;
mod sweep;
mod tabular;
mod traffic_check;
mod traffic_json;
mod wrap;

pub use plimsoll_analysis::format;

pub use attacks::attacks_page;
pub use block::{Report, ReportBlock, Tone};
pub use charted::{PageContext, heat_svg, percentiles_svg, series_section, time_svg, two_searches};
pub use diff::{DiffSide, diff_document, diff_report};
pub use explain::prediction_text;
pub use find::{search_text, trial_heading, trial_line};
pub use progress::{LiveFigures, Progress, progress_block, progress_line};
pub use prove::{
    broken_text, ladder_heading, ladder_line, ladder_standing, measure_text, prove_answer, prove_heading, prove_line,
    prove_standing,
};
pub use remedy::spelled;
pub use result_view::ResultView;
pub use run::load_text;
pub use screen::{COLUMNS_MAX, LINES_MAX, render_short};
pub use searches::{SearchSide, SearchTarget, searches_chart, searches_document, searches_report};
pub use server::probes_csv;
pub use sweep::{RouteDat, dat_by_route, dat_line, sweep_header, sweep_lengths, sweep_row};
pub use traffic_check::{CheckedRequest, TrafficCheck, check_text};
pub use traffic_json::traffic_document;
