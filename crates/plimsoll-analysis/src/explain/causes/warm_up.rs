//! The cause warm-up: the server had not warmed up during the search, and is faster now.

use super::card::{CauseCard, CauseForm, CauseText, ExpectedAnswer};
use crate::explain::demands::UsedResource;
use crate::explain::features::Feature;
use crate::explain::predictions::Predictions;
use crate::explain::queues::sustained_rate_gain;
use crate::explain::signals::Signal;

pub(super) static CARD: CauseCard = CauseCard {
    name: "a server that had not warmed up during the search",
    forms: &[CauseForm {
        word: "warm_up",
        expects: &[
            (Feature::WarmerNow, ExpectedAnswer::Is("yes")),
            (Feature::Plateau, ExpectedAnswer::Any),
            (Feature::CoresFull, ExpectedAnswer::Any),
            (Feature::ThreadsFull, ExpectedAnswer::Any),
            (Feature::PlimsollLimited, ExpectedAnswer::Any),
            (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
            (Feature::ServedAsFast, ExpectedAnswer::Any),
            (Feature::FixedConnections, ExpectedAnswer::Any),
            (Feature::CallsPileUp, ExpectedAnswer::Any),
        ],
    }],
    predicts: Predictions::UNTESTED_CAUSE,
    resources: &[UsedResource::Thread, UsedResource::Cores, UsedResource::AllowedCores],
    is_countable: false,
    missing_evidence: &[],
    describe: |case| {
        let closed = case.best_closed_load().and_then(|sight| sight.get(Signal::Goodput));
        let held = case.held_past_rps.filter(|_| sustained_rate_gain(case).is_some());
        let comparison = match (held, case.upper_rps, case.saturated_rps, closed) {
            (Some(held), Some(upper), ..) if upper < held => format!(
                "the server broke the SLO at {broken_rate} during the search, and meets the SLO at {held_rate} now",
                broken_rate = case.rate_text(upper),
                held_rate = case.rate_text(held)
            ),
            (Some(held), _, Some(peak), _) => format!(
                "the server's peak was {search_peak} during the search, and the server meets the SLO at {held_rate} now",
                search_peak = case.rate_text(peak),
                held_rate = case.rate_text(held)
            ),
            (None, _, Some(peak), Some(closed)) => format!(
                "the server's peak was {search_peak} during the search, and the server completes {goodput_now} now",
                search_peak = case.rate_text(peak),
                goodput_now = case.rate_text(closed)
            ),
            _ => "the server was slower at the beginning of the search than now".to_owned(),
        };
        let whole = format!("the server had not warmed up during the search: {comparison}");
        CauseText::from_sentence(CARD.name, whole)
    },
};
