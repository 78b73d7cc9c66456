//! Renders findings, which are the results of experiments. A finding becomes a [`Report`] of
//! blocks, and a report becomes text, Markdown or an HTML page. Findings also become JSON, CSV,
//! JUnit XML and charts.
//!
//! This crate does not depend on the load generator. Other crates, such as `plimsoll_analysis`,
//! compute the figures that this crate renders. The crate returns text; the binary decides where
//! the text goes.

#![forbid(unsafe_code)]

pub mod block;
pub mod calibration;
pub mod chart;
pub mod csv;
pub mod doctor;
pub mod event_lines;
pub mod flame;
pub mod grpc_services;
pub mod history;
pub mod json;
pub mod junit;
pub mod load_profiles;
pub mod markdown;
pub mod model;
pub mod page;
pub mod pages;
pub mod profile;
pub mod profile_flames;
pub mod prove_profiles;
pub mod questions;
pub mod remedy;
pub mod repeat_command;
pub mod rerun;
pub mod study_status;
pub mod text;
pub mod traffic;
pub mod visible_controls;

mod agents;
mod attacks;
mod comparison;
mod diff;
mod document;
mod explain;
mod explain_json;
mod failure_kinds;
mod find;
mod one_chart;
mod overload;
mod page_charts;
mod page_flames;
mod progress;
mod prove;
mod prove_json;
mod replay;
mod result_view;
mod run;
mod sampled_functions;
mod screen;
mod searches;
mod server;
mod sweep;
mod sweep_files;
mod table_layout;
mod traffic_check;
mod traffic_json;
mod wrap;

pub use plimsoll_analysis::format;

pub use attacks::attacks_page;
pub use block::{Report, ReportBlock, Tone};
pub use comparison::{RecordedInput, RecordedPair};
pub use explain::prediction_text;
pub use find::{live_log_heading, live_log_trial_row, next_load_texts};
pub use one_chart::{ChartKind, one_chart};
pub use page_charts::{PageAdditions, series_section};
pub use page_flames::{flame_difference, profiles_section};
pub use progress::{Progress, progress_display_lines, progress_line};
pub use prove::{
    abort_reason_text, comparison_log_heading, comparison_log_row, comparison_progress_text, ladder_log_heading,
    ladder_log_row, ladder_progress_text, measure_text, prove_answer,
};
pub use remedy::sentence_text;
pub use result_view::ResultView;
pub use run::load_text;
pub use screen::{COLUMNS_MAX, LINES_MAX, render_shortened_report};
pub use searches::{RecordedSearch, SearchTarget};
pub use server::probes_csv;
pub use sweep::{dat_line, sweep_row, sweep_table_heading};
pub use sweep_files::{ROUTES_MAX, route_tables, sweep_charts};
pub use traffic_check::{CheckedRequest, TrafficCheck, render_traffic_check};
pub use traffic_json::traffic_document;
