//! What holds a load line: of an explanation by its steady loads, of a search by its own trials.

use super::recording::NoFinding;
use super::search::{self, SearchFinding};
use crate::doubts::{DoubtKind, Doubted, Doubts};
use crate::explain::{Cause, ExperimentLoads, Explanation, Loads, explain};
use crate::format::unheld;
use crate::sentence::Sentence;
use crate::study::explain::{changed, loads};
use plimsoll_model::intervention::varied_number;
use plimsoll_model::{Experiment, ExplainAsked, Intervention, Remark};

/// What holds a load line.
#[derive(Debug, Clone)]
pub struct ExplainFinding<'a> {
    /// The search that it rests on.
    pub searched: SearchFinding<'a>,
    /// The answer.
    pub explanation: Explanation,
}

/// What seems to hold a line, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBy {
    /// Its name.
    pub cause: Cause,
    /// What it is in this case.
    pub subject: String,
    /// How it shows.
    pub how: String,
}

pub(super) fn conclude<'a>(
    experiment: &'a Experiment,
    asked: &ExplainAsked,
) -> Result<Doubted<ExplainFinding<'a>>, NoFinding> {
    let searched = search::conclude(experiment, &asked.search)?;
    let loads = loads(&experiment.trials, &searched.open().1.settings.slo);
    let explained = explained(&searched, &loads, &changed(&experiment.trials, &asked.varied));
    let (doubts, found) = explained.open();
    Ok(Doubted::new(doubts.clone().into_iter().chain(unmade(experiment, asked)).collect(), found.clone()))
}

/// Changes that could not be made, and why.
fn unmade(experiment: &Experiment, asked: &ExplainAsked) -> Doubts {
    let mut doubts = Doubts::default();
    for remark in &experiment.remarks {
        let Remark::Unheld { tag, reason } = remark else { continue };
        let value = varied_number(tag).and_then(|number| asked.varied.get(number));
        let what = match (Intervention::of(tag), value) {
            (Some(intervention), _) => intervention.text().to_owned(),
            (None, Some(value)) => format!("the setting at {value}"),
            (None, None) => continue,
        };
        doubts.add(DoubtKind::Unmeasured, Sentence::from(format!("{what} was not tried: ")).then(&unheld(reason)));
    }
    doubts
}

/// The same of a search, as far as its own trials tell.
pub fn of_search<'a>(searched: &Doubted<SearchFinding<'a>>) -> Doubted<ExplainFinding<'a>> {
    let found = searched.open().1;
    let loads = Loads::of_search(&found.findings, &found.server.runs);
    explained(searched, &loads, &ExperimentLoads::default())
}

/// What holds the line of a search, as far as its own trials make that clear; `None`: they do not, or nothing of the server does.
pub fn held_by(found: &SearchFinding) -> Option<HeldBy> {
    let loads = Loads::of_search(&found.findings, &found.server.runs);
    let explained = explain(&found.findings, &loads, &ExperimentLoads::default());
    let (_, explanation) = explained.open();
    let how = explanation.how.clone().filter(|_| found.findings.load_line_rps.lower > 0.0)?;
    let first = explanation.causes.first()?;
    Some(HeldBy { cause: explanation.cause, subject: first.subject.clone(), how })
}

fn explained<'a>(
    searched: &Doubted<SearchFinding<'a>>,
    loads: &Loads,
    made: &ExperimentLoads,
) -> Doubted<ExplainFinding<'a>> {
    let (of_search, found) = searched.open();
    let explained = explain(&found.findings, loads, made);
    let (own, explanation) = explained.open();
    let doubts: Doubts = of_search.clone().into_iter().chain(own.clone()).collect();
    Doubted::new(doubts, ExplainFinding { searched: found.clone(), explanation: explanation.clone() })
}
