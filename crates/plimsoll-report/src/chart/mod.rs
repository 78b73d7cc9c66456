//! Charts of results. Each chart is one SVG document, which is embedded in a page or converted to a
//! PNG image.
//!
//! [`scale`] maps values to positions, `plot` draws the common parts of charts, and `svg` writes
//! the document. Files such as `find`, `ladder` and `history` each contain one kind of chart. A
//! chart is a pure function of figures and a [`Theme`]. A chart without figures states why it has
//! no figures.
//!
//! Not here: computing figures, files, pages.

mod curve;
mod evidence;
mod find;
pub mod heading;
mod history;
mod label_placement;
mod ladder;
mod levels;
mod plot;
mod prove;
mod run;
pub mod scale;
mod svg;
mod theme;

#[cfg(feature = "png")]
mod png;
#[cfg(not(feature = "png"))]
#[path = "png_off.rs"]
mod png;
#[cfg(feature = "png")]
mod text_outlines;

pub use curve::{AxisQuantity, curve_chart};
pub use evidence::{EvidenceBars, evidence_chart};
pub use find::{NamedSearch, search_chart};
pub use history::history_chart;
pub use ladder::{LadderChartData, ladder_chart};
pub use levels::{NamedLevels, success_chart, success_diff_chart, throughput_chart, throughput_diff_chart};
pub use plot::{AxisUnit, Heading};
pub use png::{PICTURE_SUFFIX, render_picture};
pub use prove::{ComparisonChartData, prove_chart};
pub use run::{ChartLine, Panel, heat_chart, interval_panels, percentile_chart, time_chart};
pub use theme::{Paint, Theme, css_variables};

pub use svg::escape_xml;
