//! What holds a load line: of an explanation by its steady loads, of a search by its own trials.

use super::recording::NoFinding;
use super::search::{self, SearchFinding};
use crate::doubts::{Doubted, Doubts};
use crate::explain::{Explanation, Loads, explain};
use crate::study::explain::loads;
use plimsoll_model::{Experiment, ExplainAsked};

/// What holds a load line.
#[derive(Debug, Clone)]
pub struct ExplainFinding<'a> {
    /// The search that it rests on.
    pub searched: SearchFinding<'a>,
    /// The answer.
    pub explanation: Explanation,
}

pub(super) fn conclude<'a>(
    experiment: &'a Experiment,
    asked: &ExplainAsked,
) -> Result<Doubted<ExplainFinding<'a>>, NoFinding> {
    let searched = search::conclude(experiment, &asked.search)?;
    let loads = loads(&experiment.trials, &searched.open().1.settings.slo);
    Ok(explained(&searched, &loads))
}

/// The same of a search, as far as its own trials tell.
pub fn of_search<'a>(searched: &Doubted<SearchFinding<'a>>) -> Doubted<ExplainFinding<'a>> {
    let found = searched.open().1;
    explained(searched, &Loads::of_search(&found.findings, &found.server.runs))
}

fn explained<'a>(searched: &Doubted<SearchFinding<'a>>, loads: &Loads) -> Doubted<ExplainFinding<'a>> {
    let (of_search, found) = searched.open();
    let explained = explain(&found.findings, loads);
    let (own, explanation) = explained.open();
    let doubts: Doubts = of_search.clone().into_iter().chain(own.clone()).collect();
    Doubted::new(doubts, ExplainFinding { searched: found.clone(), explanation: explanation.clone() })
}
