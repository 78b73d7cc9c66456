//! The cause client: plimsoll cannot generate the load, or reads responses late.

use super::card::{CauseCard, CauseForm, CauseText, ExpectedAnswer, max_at_high_load_or_zero};
use crate::explain::demands::UsedResource;
use crate::explain::features::Feature;
use crate::explain::predictions::{
    ALWAYS_STAYS, ANY_EFFECT, MOSTLY_RISES, Predictions, RISES_OR_STAYS, STAYS_OR_FALLS,
};
use crate::explain::queues::is_limited_by_plimsoll_connections;
use crate::explain::signals::Signal;
use crate::explain::thresholds::MOST_SHARE_MIN;
use crate::sentence::{Remedy, Sentence};

pub(super) static CARD: CauseCard = CauseCard {
    name: "plimsoll itself",
    forms: &[CauseForm {
        word: "client",
        expects: &[
            (Feature::PlimsollLimited, ExpectedAnswer::Is("yes")),
            (Feature::CoresFull, ExpectedAnswer::Any),
            (Feature::ThreadsFull, ExpectedAnswer::Any),
            (Feature::DataInTransit, ExpectedAnswer::Any),
            (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
        ],
    }],
    predicts: Predictions {
        reference: ALWAYS_STAYS,
        more_users: ALWAYS_STAYS,
        new_connections: STAYS_OR_FALLS,
        kept_connections: RISES_OR_STAYS,
        head: RISES_OR_STAYS,
        smaller_answer: RISES_OR_STAYS,
        larger_body: STAYS_OR_FALLS,
        smaller_body: RISES_OR_STAYS,
        second_generator: MOSTLY_RISES,
        stopped: ANY_EFFECT,
        other_clients: ALWAYS_STAYS,
        bursts: ANY_EFFECT,
        together: ANY_EFFECT,
        abreast: ANY_EFFECT,
    },
    resources: &[UsedResource::Client],
    is_countable: false,
    missing_evidence: &[],
    describe: |case| {
        let why = case.line.limited.clone().or_else(|| case.past.limited.clone());
        let reads_late = case.max_at_high_load(Signal::WindowLimited).is_some_and(|share| share >= MOST_SHARE_MIN);
        let why = match is_limited_by_plimsoll_connections(case) {
            Some(true) => Sentence::from(format!(
                "plimsoll allows at most {requests_max:.0} requests in flight, and the server handles all of \
                     these requests at once. Raise this limit",
                requests_max = case.past.under_way_max
            ))
            .words(" (")
            .remedy(Remedy::MaxConnections)
            .words(")"),
            _ if why.is_none() && reads_late => "plimsoll read responses later than the server sent them".into(),
            _ => why.unwrap_or_else(|| {
                format!("plimsoll used {:.2} cores", max_at_high_load_or_zero(case, Signal::ClientCores)).into()
            }),
        };
        let whole = Sentence::from("plimsoll itself was the limit, not the server: ").append_sentence(&why);
        let subject = "the load generator (plimsoll) on this machine".to_owned();
        CauseText { subject, ..CauseText::from_sentence(CARD.name, whole) }
    },
};
