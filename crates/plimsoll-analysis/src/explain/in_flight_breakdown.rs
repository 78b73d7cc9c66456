//! The places of the requests in flight during a load ([`InFlightBreakdown`]). A place is what a
//! request waits for or uses, such as a core or a dependency. The numbers at all places add up to
//! the requests in flight (Little's law). Requests whose wait no probe observed have a separate
//! place.
//!
//! Not here: the conclusions (`features`), and the chart.

use super::server_facts::ServerFacts;
use super::signals::{LoadSignals, Signal};

/// What a request in flight waits for or uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InFlightState {
    /// The request's connection waits to be accepted.
    NotAccepted,
    /// The request runs on a core.
    OnCore,
    /// The request's thread waits for a core.
    WaitsForCore,
    /// The server's control group is throttled by its CPU quota until the next period.
    Throttled,
    /// The request's thread waits for another thread, for example at a lock.
    WaitsForLock,
    /// The request's call is in service at a dependency.
    AtDependency,
    /// The request's call waits to be accepted by a dependency.
    InDependencyAcceptQueue,
    /// The request's thread waits for storage.
    AtStorage,
    /// Data that the server wrote for the request waits for its reader, or for the network.
    UnreadOutput,
    /// The request's thread sleeps for a time, for example to poll.
    Asleep,
    /// The server has the request, but no probe shows what the request waits for.
    Unobserved,
}

impl InFlightState {
    /// All places, in the order of the chart.
    pub const ALL: [InFlightState; 11] = [
        InFlightState::NotAccepted,
        InFlightState::OnCore,
        InFlightState::WaitsForCore,
        InFlightState::Throttled,
        InFlightState::WaitsForLock,
        InFlightState::InDependencyAcceptQueue,
        InFlightState::AtDependency,
        InFlightState::AtStorage,
        InFlightState::UnreadOutput,
        InFlightState::Asleep,
        InFlightState::Unobserved,
    ];

    /// Returns the identifier of the place, as used in JSON.
    pub fn identifier(self) -> &'static str {
        match self {
            InFlightState::NotAccepted => "not_accepted",
            InFlightState::OnCore => "on_core",
            InFlightState::WaitsForCore => "for_core",
            InFlightState::Throttled => "throttled",
            InFlightState::WaitsForLock => "for_lock",
            InFlightState::InDependencyAcceptQueue => "before_dependency",
            InFlightState::AtDependency => "at_dependency",
            InFlightState::AtStorage => "at_storage",
            InFlightState::UnreadOutput => "before_reader",
            InFlightState::Asleep => "asleep",
            InFlightState::Unobserved => "unobserved",
        }
    }

    /// Returns the place in words for people.
    pub fn display_text(self) -> &'static str {
        match self {
            InFlightState::NotAccepted => "not accepted",
            InFlightState::OnCore => "on a core",
            InFlightState::WaitsForCore => "waiting for a core",
            InFlightState::Throttled => "stopped by a quota",
            InFlightState::WaitsForLock => "blocked by another thread",
            InFlightState::InDependencyAcceptQueue => "waiting to be accepted by a dependency",
            InFlightState::AtDependency => "at a dependency",
            InFlightState::AtStorage => "at storage",
            InFlightState::UnreadOutput => "server output not yet sent or read",
            InFlightState::Asleep => "asleep",
            InFlightState::Unobserved => "not observed",
        }
    }
}

/// The number of requests in flight at one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestsAtPlace {
    /// The place: what the requests wait for or use.
    pub place: InFlightState,
    /// Mean number of requests at the place.
    pub requests: f64,
}

/// The number of requests in flight at each place during one load.
#[derive(Debug, Clone, PartialEq)]
pub struct InFlightBreakdown {
    /// Mean number of requests in flight.
    pub in_flight: f64,
    /// The number of requests at each place, in the order of [`InFlightState::ALL`]. Places without
    /// a request are left out. The numbers add up to `in_flight`.
    pub parts: Vec<RequestsAtPlace>,
    /// Whether the number of open calls to dependencies is known, or the server has no dependency.
    pub are_calls_known: bool,
}

impl InFlightBreakdown {
    /// Computes the breakdown of a load from its signals. `baseline`: the signals of a load without
    /// queues, in which waiting threads are idle workers. Returns `None` without requests in
    /// flight.
    pub fn from_signals(signals: &LoadSignals, baseline: &LoadSignals) -> Option<InFlightBreakdown> {
        let in_flight = signals.get(Signal::InFlight).filter(|count| *count > 0.0)?;
        let get = |signal: Signal| signals.get(signal).unwrap_or(0.0);
        // Threads that wait during the load `baseline` have no request and wait for work. In the
        // analysed load, only the waiting threads beyond the number in `baseline` count as threads
        // with a request.
        let more = |signal: Signal| (get(signal) - baseline.get(signal).unwrap_or(0.0)).max(0.0);
        let calls: f64 = signals.calls_to_peers.values().sum::<f64>() + get(Signal::PeerComing);
        let queued: f64 = signals.queued_at_peers.values().sum();
        let throttled = get(Signal::Throttled) * (in_flight - get(Signal::ServerCores)).max(0.0);
        let before_reader = get(Signal::WindowWaiting).max(more(Signal::InWrite));
        let found = [
            (InFlightState::NotAccepted, get(Signal::Unaccepted)),
            (InFlightState::OnCore, get(Signal::ServerCores)),
            (InFlightState::WaitsForCore, more(Signal::RunQueue)),
            (InFlightState::AtStorage, more(Signal::InDisk).max(more(Signal::Blocked))),
            (InFlightState::UnreadOutput, before_reader),
            (InFlightState::InDependencyAcceptQueue, queued),
            (InFlightState::AtDependency, calls),
            (InFlightState::WaitsForLock, more(Signal::InLock)),
            (InFlightState::Asleep, more(Signal::InSleep)),
            (InFlightState::Throttled, throttled),
        ];
        // A request may appear in several observations, but counts once. The most certain
        // observations come first, so that a request counts at its most certain place.
        let mut left = in_flight;
        let mut parts: Vec<RequestsAtPlace> = Vec::new();
        for (place, requests) in found {
            let requests = requests.min(left);
            left -= requests;
            parts.push(RequestsAtPlace { place, requests });
        }
        parts.push(RequestsAtPlace { place: InFlightState::Unobserved, requests: left });
        parts.retain(|part| part.requests > 0.0);
        parts.sort_by_key(|part| part.place);
        let are_calls_known = signals.peers.is_empty() || !signals.calls_to_peers.is_empty();
        Some(InFlightBreakdown { in_flight, parts, are_calls_known })
    }

    /// Returns the share of the requests in flight that are at a place, 0..=1; `None` if too few
    /// readings show the share.
    pub fn share_at_place(&self, place: InFlightState) -> Option<f64> {
        let share =
            self.parts.iter().find(|part| part.place == place).map_or(0.0, |part| part.requests / self.in_flight);
        (place != InFlightState::AtDependency || share > 0.0 || self.are_calls_known).then_some(share)
    }
}

/// Returns the breakdowns at the low load, at the load line and above; `None` for a load without
/// requests in flight.
pub fn breakdown_at_each_load(case: &ServerFacts) -> [Option<InFlightBreakdown>; 3] {
    [&case.low, &case.line, &case.past].map(|sight| InFlightBreakdown::from_signals(sight, &case.low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_sum_to_requests_in_flight() {
        let sight = |values: &[(Signal, f64)]| LoadSignals {
            values: values.iter().copied().collect(),
            ..LoadSignals::default()
        };
        let idle = sight(&[(Signal::InFlight, 1.0), (Signal::InLock, 8.0)]);
        for (values, expect) in [
            (
                &[(Signal::InFlight, 40.0), (Signal::InLock, 40.0), (Signal::ServerCores, 1.0)][..],
                InFlightState::WaitsForLock,
            ),
            (&[(Signal::InFlight, 40.0), (Signal::Unaccepted, 50.0)], InFlightState::NotAccepted),
            (
                &[(Signal::InFlight, 40.0), (Signal::ServerCores, 2.0), (Signal::RunQueue, 30.0)],
                InFlightState::WaitsForCore,
            ),
            (&[(Signal::InFlight, 40.0)], InFlightState::Unobserved),
            (&[(Signal::InFlight, 9.0), (Signal::InDisk, 7.0), (Signal::Blocked, 6.0)], InFlightState::AtStorage),
        ] {
            let found = InFlightBreakdown::from_signals(&sight(values), &idle).expect("requests are in flight");
            let sum: f64 = found.parts.iter().map(|part| part.requests).sum();
            assert!((sum - found.in_flight).abs() < 1e-9, "{found:?}");
            let most = found.parts.iter().max_by(|a, b| a.requests.total_cmp(&b.requests));
            assert_eq!(most.map(|part| part.place), Some(expect), "{found:?}");
        }
        assert_eq!(InFlightBreakdown::from_signals(&sight(&[]), &idle), None);
    }

    #[test]
    fn unread_calls_are_not_stated_as_zero() {
        let check = |peers: &[(&str, f64)], calls: &[(&str, f64)], expect: Option<f64>| {
            let by_address =
                |found: &[(&str, f64)]| found.iter().map(|(at, count)| ((*at).to_owned(), *count)).collect();
            let signals = LoadSignals {
                values: [(Signal::InFlight, 2.0)].into(),
                peers: by_address(peers),
                calls_to_peers: by_address(calls),
                ..LoadSignals::default()
            };
            let found = InFlightBreakdown::from_signals(&signals, &signals).expect("requests are in flight");
            assert_eq!(found.share_at_place(InFlightState::AtDependency), expect, "{peers:?} {calls:?}");
        };
        check(&[], &[], Some(0.0));
        check(&[("a", 4.0)], &[], None);
        check(&[("a", 4.0)], &[("a", 0.0)], Some(0.0));
        check(&[("a", 4.0)], &[("a", 1.0)], Some(0.5));
    }
}
