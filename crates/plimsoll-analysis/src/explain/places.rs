//! Where requests are ([`Whereabouts`]): the requests in flight of one load, divided by what each
//! of them waits for or works on, as far as that was observed. The parts add up to what is in
//! flight (Little's law); what no observation accounts for is said to be unobserved.
//!
//! Not here: what follows from it (`features`), and how it is drawn.

use super::contrast::Contrast;
use super::signals::{LoadSignals, Signal};

/// Where a request can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Its connection waits to be accepted.
    NotAccepted,
    /// It runs on a core.
    OnCore,
    /// Its thread waits for a core.
    ForCore,
    /// The control group is stopped until its next period.
    Throttled,
    /// Its thread waits for another thread.
    ForLock,
    /// A dependency has its call.
    AtDependency,
    /// Its call waits to be accepted by a dependency.
    BeforeDependency,
    /// Its thread waits for storage.
    AtStorage,
    /// What was written waits for its reader, or for the link.
    BeforeReader,
    /// Its thread sleeps for a time.
    Asleep,
    /// The server has it, and nothing shows what it waits for.
    Unobserved,
}

impl Place {
    /// All, in the order in which they are drawn.
    pub const ALL: [Place; 11] = [
        Place::NotAccepted,
        Place::OnCore,
        Place::ForCore,
        Place::Throttled,
        Place::ForLock,
        Place::BeforeDependency,
        Place::AtDependency,
        Place::AtStorage,
        Place::BeforeReader,
        Place::Asleep,
        Place::Unobserved,
    ];

    /// Its name in documents.
    pub fn word(self) -> &'static str {
        match self {
            Place::NotAccepted => "not_accepted",
            Place::OnCore => "on_core",
            Place::ForCore => "for_core",
            Place::Throttled => "throttled",
            Place::ForLock => "for_lock",
            Place::BeforeDependency => "before_dependency",
            Place::AtDependency => "at_dependency",
            Place::AtStorage => "at_storage",
            Place::BeforeReader => "before_reader",
            Place::Asleep => "asleep",
            Place::Unobserved => "unobserved",
        }
    }

    /// What it is, in words.
    pub fn text(self) -> &'static str {
        match self {
            Place::NotAccepted => "not accepted",
            Place::OnCore => "on a core",
            Place::ForCore => "waiting for a core",
            Place::Throttled => "stopped by a quota",
            Place::ForLock => "waiting for a thread",
            Place::BeforeDependency => "not accepted by a dependency",
            Place::AtDependency => "at a dependency",
            Place::AtStorage => "at storage",
            Place::BeforeReader => "waiting for a reader or link",
            Place::Asleep => "asleep",
            Place::Unobserved => "not observed",
        }
    }
}

/// A part of the requests in flight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlaceShare {
    /// Where they are.
    pub place: Place,
    /// How many, on average.
    pub requests: f64,
}

/// Where the requests in flight of one load are.
#[derive(Debug, Clone, PartialEq)]
pub struct Whereabouts {
    /// Requests in flight on average.
    pub in_flight: f64,
    /// Their parts, in the order of [`Place::ALL`], each above 0; they add up to `in_flight`.
    pub parts: Vec<PlaceShare>,
}

impl Whereabouts {
    /// Those of a load; `idle`: a load at which nobody waits, whose sleeping threads are the
    /// server's own. `None`: nothing was in flight.
    pub fn of(sight: &LoadSignals, idle: &LoadSignals) -> Option<Whereabouts> {
        let in_flight = sight.get(Signal::InFlight).filter(|count| *count > 0.0)?;
        let get = |signal: Signal| sight.get(signal).unwrap_or(0.0);
        // Threads that wait at rest wait for work; only those beyond them have a request.
        let more = |signal: Signal| (get(signal) - idle.get(signal).unwrap_or(0.0)).max(0.0);
        let calls: f64 = sight.calls_to_peers.values().sum::<f64>() + get(Signal::PeerComing);
        let queued: f64 = sight.queued_at_peers.values().sum();
        let throttled = get(Signal::Throttled) * (in_flight - get(Signal::ServerCores)).max(0.0);
        let before_reader = get(Signal::WindowWaiting).max(more(Signal::InWrite));
        let found = [
            (Place::NotAccepted, get(Signal::Unaccepted)),
            (Place::OnCore, get(Signal::ServerCores)),
            (Place::ForCore, more(Signal::RunQueue)),
            (Place::AtStorage, more(Signal::InDisk).max(more(Signal::Blocked))),
            (Place::BeforeReader, before_reader),
            (Place::BeforeDependency, queued),
            (Place::AtDependency, calls),
            (Place::ForLock, more(Signal::InLock)),
            (Place::Asleep, more(Signal::InSleep)),
            (Place::Throttled, throttled),
        ];
        // What is counted by several observations is counted once: the surer ones come first.
        let mut left = in_flight;
        let mut parts: Vec<PlaceShare> = Vec::new();
        for (place, requests) in found {
            let requests = requests.min(left);
            left -= requests;
            parts.push(PlaceShare { place, requests });
        }
        parts.push(PlaceShare { place: Place::Unobserved, requests: left });
        parts.retain(|part| part.requests > 0.0);
        parts.sort_by_key(|part| part.place);
        Some(Whereabouts { in_flight, parts })
    }

    /// The share of the requests at a place, 0..=1.
    pub fn share(&self, place: Place) -> f64 {
        self.parts.iter().find(|part| part.place == place).map_or(0.0, |part| part.requests / self.in_flight)
    }
}

/// Those of the loads at a low rate, at the line and past it, each where there was such a load.
pub fn over_loads(case: &Contrast) -> [Option<Whereabouts>; 3] {
    [&case.low, &case.line, &case.past].map(|sight| Whereabouts::of(sight, &case.low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_what_is_in_flight() {
        let sight = |values: &[(Signal, f64)]| LoadSignals {
            values: values.iter().copied().collect(),
            ..LoadSignals::default()
        };
        let idle = sight(&[(Signal::InFlight, 1.0), (Signal::InLock, 8.0)]);
        for (values, expect) in [
            (&[(Signal::InFlight, 40.0), (Signal::InLock, 40.0), (Signal::ServerCores, 1.0)][..], Place::ForLock),
            (&[(Signal::InFlight, 40.0), (Signal::Unaccepted, 50.0)], Place::NotAccepted),
            (&[(Signal::InFlight, 40.0), (Signal::ServerCores, 2.0), (Signal::RunQueue, 30.0)], Place::ForCore),
            (&[(Signal::InFlight, 40.0)], Place::Unobserved),
            (&[(Signal::InFlight, 9.0), (Signal::InDisk, 7.0), (Signal::Blocked, 6.0)], Place::AtStorage),
        ] {
            let found = Whereabouts::of(&sight(values), &idle).expect("requests are in flight");
            let sum: f64 = found.parts.iter().map(|part| part.requests).sum();
            assert!((sum - found.in_flight).abs() < 1e-9, "{found:?}");
            let most = Place::ALL.into_iter().max_by(|a, b| found.share(*a).total_cmp(&found.share(*b)));
            assert_eq!(most, Some(expect), "{found:?}");
        }
        assert_eq!(Whereabouts::of(&sight(&[]), &idle), None);
    }
}
