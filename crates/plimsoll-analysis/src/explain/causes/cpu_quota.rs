//! The cause CPU quota: the CPU quota of a control group, of the server or of a dependency, is
//! exhausted.

use super::card::{
    CauseCard, CauseForm, CauseText, ExpectedAnswer, idle_cores_text, max_at_high_load_or_zero, percent_at_high_load,
    text_part,
};
use crate::explain::demands::UsedResource;
use crate::explain::features::Feature;
use crate::explain::predictions::{ANY_EFFECT, Predictions};
use crate::explain::signals::Signal;
use crate::sentence::{Remedy, SentencePart};

pub(super) static CARD: CauseCard = CauseCard {
    name: "the CPU quota of the server's control group",
    forms: &[
        CauseForm {
            word: "cpu_quota",
            expects: &[
                (Feature::QuotaUsed, ExpectedAnswer::Is("server")),
                (Feature::CeilingMet, ExpectedAnswer::Mostly("quota")),
                (Feature::WarmerNow, ExpectedAnswer::Any),
                (Feature::ConnectsLate, ExpectedAnswer::Any),
                (Feature::AcceptsLate, ExpectedAnswer::Any),
                (Feature::CoresFull, ExpectedAnswer::Any),
                (Feature::ThreadsFull, ExpectedAnswer::Any),
                (Feature::ThreadsRunOneAtATime, ExpectedAnswer::Any),
                (Feature::Collects, ExpectedAnswer::Any),
            ],
        },
        CauseForm {
            word: "cpu_quota_dependency",
            expects: &[
                (Feature::QuotaUsed, ExpectedAnswer::Is("dependency")),
                (Feature::Plateau, ExpectedAnswer::Mostly("yes")),
                (Feature::CallsPileUp, ExpectedAnswer::Any),
                (Feature::FixedConnections, ExpectedAnswer::Any),
            ],
        },
    ],
    predicts: Predictions { bursts: ANY_EFFECT, ..Predictions::BUSY_RESOURCE_PREDICTIONS },
    resources: &[UsedResource::Quota],
    is_countable: true,
    missing_evidence: &[
        text_part("name the server's control group, so that probes can read the control group's CPU quota ("),
        SentencePart::Remedy(Remedy::ControlGroup),
        text_part(")"),
    ],
    describe: |case| match case.is_quota_exhausted() {
        Some(true) => CauseText::for_resource(
            format!(
                "the CPU quota of {quota_cores:.2} cores of the server's control group",
                quota_cores = max_at_high_load_or_zero(case, Signal::Quota)
            ),
            format!(
                "the CPU quota was exhausted in {periods_share} of the quota's periods{idle_cores}",
                periods_share = percent_at_high_load(case, Signal::Throttled),
                idle_cores = idle_cores_text(case)
            ),
        ),
        _ => CauseText::for_resource(
            match (case.max_at_high_load(Signal::DownstreamQuota), case.throttled_dependency()) {
                (Some(quota_cores), Some(process)) => {
                    format!("the CPU quota of {quota_cores:.2} cores of the control group of {process}, a dependency")
                }
                (None, Some(process)) => format!("the CPU quota of the control group of {process}, a dependency"),
                (_, None) => "a CPU quota of a dependency".to_owned(),
            },
            format!(
                "the CPU quota was exhausted in {periods_share} of the quota's periods{idle_cores}",
                periods_share = percent_at_high_load(case, Signal::DownstreamThrottled),
                idle_cores = idle_cores_text(case)
            ),
        ),
    },
};
