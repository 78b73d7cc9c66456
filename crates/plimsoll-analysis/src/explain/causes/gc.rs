//! The cause GC: garbage collection of the server's runtime takes CPU time from requests.

use super::card::{
    CauseCard, CauseForm, CauseText, ExpectedAnswer, max_at_high_load_or_zero, percent_at_high_load, server_name,
    text_part,
};
use crate::explain::demands::UsedResource;
use crate::explain::features::Feature;
use crate::explain::predictions::{
    ALWAYS_STAYS, ANY_EFFECT, MOSTLY_RISES, MOSTLY_STAYS, Predictions, RISES_OR_STAYS, STAYS_OR_FALLS,
};
use crate::explain::signals::Signal;
use crate::explain::thresholds::SMALL_SHARE_MAX;
use crate::format;
use crate::sentence::{Remedy, SentencePart};

pub(super) static CARD: CauseCard = CauseCard {
    name: "garbage collection",
    forms: &[CauseForm {
        word: "gc",
        expects: &[
            (Feature::Collects, ExpectedAnswer::Is("yes")),
            (Feature::CoresFull, ExpectedAnswer::Any),
            (Feature::ThreadsFull, ExpectedAnswer::Any),
            (Feature::ThreadsRunOneAtATime, ExpectedAnswer::Any),
            (Feature::ConnectsLate, ExpectedAnswer::Any),
            (Feature::WarmerNow, ExpectedAnswer::Any),
            (Feature::ThreadsWait, ExpectedAnswer::Any),
            (Feature::BusyWorkersEqualInService, ExpectedAnswer::Any),
            (Feature::AcceptsLate, ExpectedAnswer::Any),
            (Feature::SpinsForLocks, ExpectedAnswer::Any),
            (Feature::Polls, ExpectedAnswer::Any),
        ],
    }],
    predicts: Predictions {
        reference: MOSTLY_RISES,
        more_users: STAYS_OR_FALLS,
        new_connections: STAYS_OR_FALLS,
        kept_connections: MOSTLY_STAYS,
        head: RISES_OR_STAYS,
        smaller_answer: RISES_OR_STAYS,
        larger_body: STAYS_OR_FALLS,
        smaller_body: RISES_OR_STAYS,
        second_generator: STAYS_OR_FALLS,
        stopped: MOSTLY_STAYS,
        other_clients: ALWAYS_STAYS,
        bursts: ANY_EFFECT,
        together: ANY_EFFECT,
        abreast: ANY_EFFECT,
    },
    resources: &[UsedResource::Thread, UsedResource::Cores, UsedResource::AllowedCores],
    is_countable: false,
    missing_evidence: &[
        text_part("plimsoll must read the metrics of the server's runtime: name the address of the metrics ("),
        SentencePart::Remedy(Remedy::Metrics),
        text_part(")"),
    ],
    describe: |case| {
        let how = match max_at_high_load_or_zero(case, Signal::GcPauses) >= SMALL_SHARE_MAX {
            true => format!(
                "garbage collection stops all requests for {share} of the time",
                share = percent_at_high_load(case, Signal::GcPauses)
            ),
            false => {
                let taken = format::short_percent(case.gc_share().unwrap_or(0.0).min(1.0));
                format!("garbage collection takes {taken} of the server's CPU time")
            }
        };
        CauseText::for_resource(format!("garbage collection of {}", server_name(case)), how)
    },
};
