//! What a search found: the line, and what the server used there.

use super::recording::{NoFinding, cut_off};
use crate::doubts::{Doubt, DoubtKind, Doubted, Doubts};
use crate::find::AtLine;
use crate::find::{self, Findings, Settings, StoppedBy};
use crate::server_view::ServerView;
use crate::slo::Slo;
use crate::study::search::{outcome, settings};
use plimsoll_model::{Experiment, FindAsked, Purpose, Run, Trial};

/// What a search found.
#[derive(Debug, Clone)]
pub struct SearchFinding<'a> {
    /// What was searched for.
    pub settings: Settings,
    /// The line, and how it was found.
    pub findings: Findings,
    /// What was seen of the server: what it used at the line, and all loads of the search.
    pub server: ServerView<'a>,
}

impl SearchFinding<'_> {
    /// CPU time of the server for each request at the line, us, where it was seen.
    pub fn cpu_us(&self) -> Option<f64> {
        self.server.used.as_ref().ok().and_then(|used| used.cpu_us_per_request())
    }
}

pub(super) fn conclude<'a>(
    experiment: &'a Experiment,
    asked: &FindAsked,
) -> Result<Doubted<SearchFinding<'a>>, NoFinding> {
    let slo = Slo::parse(&asked.slo).map_err(|error| NoFinding::Promise(error.to_string()))?;
    let settings = settings(asked, slo);
    let judged = experiment.trials.iter().filter_map(|trial| Some((trial, outcome(trial, &settings.slo)?)));
    let (whole, history): (Vec<_>, Vec<_>) = judged.unzip();
    let latest_ns = || experiment.trials.iter().map(|t| t.start_ns + t.run.duration_ns()).max().unwrap_or(0);
    // The search was over when loads began that are none of its own.
    let is_after = |trial: &&Trial| matches!(trial.tag.purpose, Purpose::Profile | Purpose::Hold);
    let began_ns = experiment.trials.iter().find(is_after).map(|trial| trial.start_ns);
    let elapsed_ns = began_ns.or(experiment.elapsed_ns).unwrap_or_else(latest_ns);
    let findings = find::conclude(&settings, &history, elapsed_ns);
    let runs: Vec<&Run> = whole.iter().map(|trial| &trial.run).collect();
    let (used, from) = match AtLine::of(&findings, &runs) {
        Ok(at) => (Ok(at.used), Some(at.from)),
        Err(reason) => (Err(reason), None),
    };
    let server = ServerView { used, from, runs };
    let limited = (findings.stopped_by == StoppedBy::Client).then(|| Doubt {
        kind: DoubtKind::Generator,
        text: "the generator was the limit, not the server: the line lies above what it could offer".into(),
    });
    let doubts = server.doubt().into_iter().chain(cut_off(experiment)).chain(limited);
    let doubts = doubts.chain(Doubts::noted(&experiment.noted.warnings)).chain(findings.doubts.clone()).collect();
    Ok(Doubted::new(doubts, SearchFinding { settings, findings, server }))
}
