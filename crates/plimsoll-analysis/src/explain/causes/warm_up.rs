//! The cause warm-up: the server had not warmed up during the search, and is faster now.

use super::card::{CauseCard, CauseForm, CauseText, ExpectedAnswer};
use crate::explain::cause::Cause;
use crate::explain::demands::UsedResource;
use crate::explain::features::Feature;
use crate::explain::predictions::Predictions;
use crate::explain::queues::sustained_rate_gain;
use crate::explain::signals::Signal;

pub(super) static CARD: CauseCard = CauseCard {
    cause: Cause::WarmUp,
    forms: &[CauseForm {
        word: "warm_up",
        expects: &[
            (Feature::WarmerNow, ExpectedAnswer::Is("yes")),
            (Feature::Plateau, ExpectedAnswer::Any),
            (Feature::CoresFull, ExpectedAnswer::Any),
            (Feature::ThreadsFull, ExpectedAnswer::Any),
            (Feature::PlimsollLimited, ExpectedAnswer::Any),
            (Feature::WorkersAsServed, ExpectedAnswer::Any),
            (Feature::ServedAsFast, ExpectedAnswer::Any),
            (Feature::FixedConnections, ExpectedAnswer::Any),
            (Feature::CallsPileUp, ExpectedAnswer::Any),
        ],
    }],
    predicts: Predictions::UNTESTED_CAUSE,
    resources: &[UsedResource::Thread, UsedResource::Cores, UsedResource::Allowed],
    is_countable: false,
    missing_evidence: &[],
    tell: |case| {
        let rate_now = case.offered_text(case.past.get(Signal::Goodput).unwrap_or(0.0));
        let search_peak = case.offered_text(case.saturated_rps.unwrap_or(0.0));
        let closed = case.best_closed_load().and_then(|sight| sight.get(Signal::Goodput));
        let comparison = match (sustained_rate_gain(case), closed) {
            (None, Some(closed)) => {
                format!(
                    "the server's peak was {search_peak} during the search, and the server completes {goodput_now} now",
                    goodput_now = case.offered_text(closed)
                )
            }
            (Some(_), _) if case.upper_rps < case.held_past_rps => {
                format!("at {rate_now}, the server broke the SLO during the search, and meets the SLO now")
            }
            _ => format!(
                "the server's peak was {search_peak} during the search, and the server meets the SLO at {rate_now} now"
            ),
        };
        let whole = format!("the server had not warmed up during the search: {comparison}");
        CauseText::from_sentence(Cause::WarmUp, whole)
    },
};
