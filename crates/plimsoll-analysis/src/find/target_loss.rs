//! The loss of the server during a search ([`ServerLoss`]): the server responded at first, and
//! accepts no connections from some load on. Trials after the loss have no information about the
//! load line. If trials after the loss counted, the search would find a load line that is far too
//! low.
//!
//! Not here: a server that never ran, and a server that is slow to accept.

use crate::format;
use crate::judge::{OfferedLoad, TrialOutcome};
use plimsoll_model::RequestFailure;
use plimsoll_model::units::SECOND;

/// The minimum number of consecutive loads without connections before the server counts as lost.
const LOADS_WITHOUT_CONNECTIONS_MIN: usize = 3;
/// The minimum time without connections before the server counts as lost, ns: a restarted server
/// is available sooner.
const LOSS_NS_MIN: u64 = 5 * SECOND;
/// The minimum share of sent requests that find no connection, in each load that counts as evidence
/// for the loss of the server.
const REFUSED_SHARE_MIN: f64 = 0.98;

/// The point of the search from which on the server accepts no connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerLoss {
    /// Number of trials before the first load without connections.
    pub trials_before: usize,
    /// The first load in which the server accepted no connections.
    pub first_refused_load: OfferedLoad,
}

impl ServerLoss {
    /// Finds the loss of the server in the trials of a search. Returns `None` if the server
    /// responds or never responded, or if the loads without connections are too few or too short.
    pub fn detect(history: &[TrialOutcome]) -> Option<ServerLoss> {
        let refused = |trial: &&TrialOutcome| {
            let evidence = &trial.evidence;
            let failed = evidence.failed[RequestFailure::Connect as usize];
            let sent = evidence.scheduled.saturating_sub(evidence.unsent);
            sent > 0 && trial.success_rate <= 0.0 && failed as f64 >= REFUSED_SHARE_MIN * sent as f64
        };
        let loads = history.iter().rev().take_while(refused).count();
        let (before, since) = history.split_at(history.len() - loads);
        let (first, last) = (since.first()?, since.last()?);
        let gone_ns = last.start_ns.saturating_add(last.duration_ns).saturating_sub(first.start_ns);
        let answered = before.iter().any(|trial| trial.success_rate > 0.0);
        (answered && loads >= LOADS_WITHOUT_CONNECTIONS_MIN && gone_ns >= LOSS_NS_MIN)
            .then_some(ServerLoss { trials_before: before.len(), first_refused_load: first.load })
    }

    /// Formats the loss in a few words, such as `the server has accepted no connections since
    /// plimsoll applied a load of 4 096 users`.
    pub fn server_loss_text(&self) -> String {
        let load = match self.first_refused_load {
            OfferedLoad::Rate(rate) => format!("{} a second", format::rate(rate)),
            OfferedLoad::Users(users) => format!("{} users", format::rate(users as f64)),
        };
        format!("the server has accepted no connections since plimsoll applied a load of {load}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Evidence, Verdict};
    use plimsoll_model::LoadPurpose;

    #[test]
    fn a_lost_server_differs_from_a_restarted_server() {
        // Each load has a start in s, and for 100 requests the number of successes and of failed
        // connections.
        type Loads = &'static [(u64, u64, u64)];
        const ALIVE_LOAD: (u64, u64, u64) = (0, 100, 0);
        for (name, loads, expect) in [
            ("gone", &[ALIVE_LOAD, (1, 0, 99), (3, 0, 100), (6, 0, 100)] as Loads, Some(1)),
            ("not for long", &[ALIVE_LOAD, (1, 0, 100), (2, 0, 100), (3, 0, 100)], None),
            ("few loads", &[ALIVE_LOAD, (1, 0, 100), (9, 0, 100)], None),
            ("it is back", &[ALIVE_LOAD, (1, 0, 100), (3, 0, 100), (6, 0, 100), (7, 60, 40)], None),
            ("it breaks off, and takes connections", &[ALIVE_LOAD, (1, 0, 50), (3, 0, 50), (6, 0, 50)], None),
            ("it never was there", &[(1, 0, 100), (3, 0, 100), (6, 0, 100)], None),
            ("nothing was tried", &[], None),
        ] {
            let trial = |&(start_s, succeeded, refused): &(u64, u64, u64)| {
                let mut evidence = Evidence { scheduled: 100, ..Evidence::default() };
                evidence.failed[RequestFailure::Connect as usize] = refused;
                TrialOutcome {
                    start_ns: start_s * SECOND,
                    goodput_rps: succeeded as f64,
                    success_rate: succeeded as f64 / 100.0,
                    evidence,
                    ..TrialOutcome::one_second_trial(LoadPurpose::Climb, OfferedLoad::Rate(100.0), Verdict::Fail)
                }
            };
            let history: Vec<TrialOutcome> = loads.iter().map(trial).collect();
            assert_eq!(ServerLoss::detect(&history).map(|gone| gone.trials_before), expect, "{name}");
        }
    }
}
