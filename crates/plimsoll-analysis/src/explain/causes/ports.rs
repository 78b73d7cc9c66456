//! The cause ports: plimsoll or the server has no free local port for a new connection. A server
//! needs local ports for the connections to its dependencies.

use super::card::{
    CauseCard, CauseForm, CauseText, ExpectedAnswer, idle_cores_text, percent_at_high_load, server_name,
};
use crate::explain::features::Feature;
use crate::explain::predictions::{ALWAYS_RISES, ALWAYS_STAYS, ANY_EFFECT, MOSTLY_STAYS, Predictions, STAYS_OR_FALLS};
use crate::explain::signals::Signal;

pub(super) static CARD: CauseCard = CauseCard {
    name: "local ports for new connections",
    forms: &[CauseForm {
        word: "ports",
        expects: &[
            (Feature::PortsUsedUp, ExpectedAnswer::Is("yes")),
            (Feature::AcceptsLate, ExpectedAnswer::Any),
            (Feature::PlimsollLimited, ExpectedAnswer::Any),
            (Feature::ConnectsLate, ExpectedAnswer::Any),
            (Feature::CoresFull, ExpectedAnswer::Any),
            (Feature::ThreadsFull, ExpectedAnswer::Any),
        ],
    }],
    predicts: Predictions {
        reference: ANY_EFFECT,
        more_users: STAYS_OR_FALLS,
        new_connections: STAYS_OR_FALLS,
        kept_connections: ALWAYS_RISES,
        head: MOSTLY_STAYS,
        smaller_answer: MOSTLY_STAYS,
        larger_body: ALWAYS_STAYS,
        smaller_body: ALWAYS_STAYS,
        second_generator: ALWAYS_STAYS,
        stopped: ANY_EFFECT,
        other_clients: ANY_EFFECT,
        bursts: ANY_EFFECT,
        together: ANY_EFFECT,
        abreast: ANY_EFFECT,
    },
    resources: &[],
    is_countable: false,
    missing_evidence: &[],
    describe: |case| {
        let ours = case.line.no_port + case.past.no_port > 0;
        let behind = case.past.ports_behind || case.line.ports_behind;
        let server = server_name(case);
        let (subject, how) = match (ours, behind) {
            (true, _) => (
                "local ports of this machine".to_owned(),
                format!("no local port was free for new connections{idle_cores}", idle_cores = idle_cores_text(case)),
            ),
            (false, true) => (format!("local ports of a dependency of {server}"), String::new()),
            (false, false) => (format!("local ports of {server}"), String::new()),
        };
        let held = format!(
            "{share_percent} of the local ports to one peer are taken by closed connections (TIME-WAIT){idle_cores}",
            share_percent = percent_at_high_load(case, Signal::TimeWait),
            idle_cores = idle_cores_text(case)
        );
        CauseText::for_resource(subject, if ours { how } else { held }).with_plural_subject(true)
    },
};
