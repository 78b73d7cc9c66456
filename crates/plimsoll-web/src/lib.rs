//! Pages over a store of run files ([`serve`]): services, history, runs, comparisons, and studies
//! that are started from a form. One small runtime on one thread serves them. Studies run in
//! processes of their own, so that a page cannot disturb a load, and may end without harming one.
//!
//! What must never be known here: the engine, how figures are computed, and how a finding looks
//! (`plimsoll-report`).

#![forbid(unsafe_code)]

mod again;
mod api;
mod guard;
mod jobs;
mod layout;
mod marking;
mod metrics;
mod problem;
mod query;
mod server;
mod start_form;
mod state;
mod tls;
mod views;

pub use guard::Access;
pub use server::{WebSettings, serve};
pub use state::Renderers;
pub use tls::{WebTls, WebTlsError};
