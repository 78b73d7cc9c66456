//! A web server for a store of run files ([`serve_pages`]). The web pages show services, history,
//! runs and comparisons, and have a form that starts studies. A small async runtime on one thread
//! serves the pages. Studies run in separate processes, so that serving a page does not disturb a
//! load, and a study continues if the server ends.
//!
//! Not here: the load generator, the computation of figures, and the rendering of findings
//! (`plimsoll-report`).

#![forbid(unsafe_code)]

mod api;
mod guard;
mod jobs;
mod layout;
mod mark_form;
mod metrics;
mod problem;
mod query;
mod repeat_study;
mod server;
mod start_form;
mod state;
mod tls;
mod views;

pub use guard::AccessRules;
pub use server::{WebSettings, serve_pages};
pub use state::Renderers;
pub use tls::{WebTls, WebTlsError};
