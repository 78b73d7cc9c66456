//! The finding of one load: the figures of the load, and what probes observed of the server.

use super::recording::{NoFinding, cut_off_doubt};
use crate::by_route::{RouteSummary, summarize_routes};
use crate::doubts::{Assessment, Doubt, DoubtKind, Doubts};
use crate::server_view::ServerView;
use crate::summary::Summary;
use plimsoll_model::{Experiment, Trial};

/// The finding of one load.
#[derive(Debug, Clone)]
pub struct RunFinding<'a> {
    /// The recorded load.
    pub trial: &'a Trial,
    /// The figures of the load over all routes.
    pub summary: Summary,
    /// The figures of each route, if the plan has several routes.
    pub routes: Vec<RouteSummary>,
    /// What probes observed of the server and its machine during the load.
    pub server: ServerView<'a>,
}

pub(super) fn run_finding(experiment: &Experiment) -> Result<Assessment<RunFinding<'_>>, NoFinding> {
    let trial = experiment.trials.first().ok_or(NoFinding::NoLoad)?;
    let (summary, server) = (Summary::from_run(&trial.run), ServerView::from_run(&trial.run));
    let doubts = server.restart_doubt().into_iter().chain(cut_off_doubt(experiment));
    let doubts = doubts.chain(ordered_doubts(&summary, &experiment.start_notes.warnings)).collect();
    Ok(Assessment::new(doubts, RunFinding { trial, summary, routes: summarize_routes(&trial.run), server }))
}

/// Returns the evidence against the figures of a load. First come doubts about whether the figures
/// describe the server. The warnings from before the load come next, and then all other doubts.
fn ordered_doubts(summary: &Summary, noted: &[String]) -> Doubts {
    let no_figures = |kind| matches!(kind, DoubtKind::Interference | DoubtKind::Generator | DoubtKind::Unsent);
    let (first, then): (Vec<Doubt>, Vec<Doubt>) =
        summary.doubts.clone().into_iter().partition(|doubt| no_figures(doubt.kind));
    first.into_iter().chain(Doubts::from_warnings(noted)).chain(then).collect()
}
