//! Where probes put what they read: series by name, on the monotonic clock.

use plimsoll_model::{Gap, Probes, Sample, Series, SeriesKind, ServerSeen};
use plimsoll_sys::clock::{monotonic_ns, thread_cpu_ns};

/// What was read since the last [`Sink::take`].
pub struct Sink {
    seen: Probes,
    /// When the sampling under way, and the one before it, began.
    now_ns: u64,
    before_ns: u64,
    /// The server watched, and what cannot be seen: as long as they hold they belong to everything that is taken.
    server: Option<ServerSeen>,
    unseen: Option<String>,
}

impl Sink {
    pub fn new(now_ns: u64) -> Sink {
        Sink { seen: Probes::default(), now_ns, before_ns: now_ns, server: None, unseen: None }
    }

    /// A sampling begins.
    pub fn begin(&mut self, now_ns: u64) {
        (self.before_ns, self.now_ns) = (self.now_ns, now_ns);
    }

    fn series(&mut self, name: &str, kind: SeriesKind, unit: &str) -> &mut Series {
        // Looked up first: the name is only copied for a series that is new.
        if !self.seen.series.contains_key(name) {
            self.seen.series.insert(name.to_owned(), Series::new(kind, unit));
        }
        self.seen.series.get_mut(name).unwrap_or_else(|| unreachable!("put in above"))
    }

    fn push(&mut self, name: &str, kind: SeriesKind, unit: &str, at_ns: u64, value: f64) {
        self.series(name, kind, unit).push(Sample { at_ns: at_ns as i64, value });
    }

    /// A level, read in this sampling.
    pub fn gauge(&mut self, name: &str, unit: &str, value: f64) {
        self.push(name, SeriesKind::Gauge, unit, self.now_ns, value);
    }

    /// A growing sum, read in this sampling.
    pub fn counter(&mut self, name: &str, unit: &str, value: f64) {
        self.push(name, SeriesKind::Counter, unit, self.now_ns, value);
    }

    /// A growing sum, read at `at_ns`.
    pub fn counter_at(&mut self, name: &str, unit: &str, at_ns: u64, value: f64) {
        self.push(name, SeriesKind::Counter, unit, at_ns, value);
    }

    /// A reading that failed in this sampling.
    pub fn gap(&mut self, name: &str, kind: SeriesKind, unit: &str, reason: &str) {
        let gap = Gap { from_ns: self.before_ns as i64, to_ns: self.now_ns as i64, reason: reason.to_owned() };
        self.series(name, kind, unit).push_gap(gap);
    }

    /// A server process was found, and is watched from now on.
    pub fn server(&mut self, pid: u32, name: &str, found_by: &str) {
        // The one before it stays part of what was seen.
        self.seen.servers.extend(self.server.take());
        let (name, found_by) = (name.to_owned(), found_by.to_owned());
        self.server = Some(ServerSeen { from_ns: self.now_ns as i64, pid, name, found_by });
    }

    /// Why no server process is watched; `None`: one is.
    pub fn unseen(&mut self, reason: Option<&str>) {
        if self.unseen.as_deref() != reason {
            self.unseen = reason.map(str::to_owned);
        }
    }

    /// A part that cannot be seen, and why.
    pub fn unseen_part(&mut self, reason: &str) {
        if !self.seen.unseen.iter().any(|known| known == reason) {
            self.seen.unseen.push(reason.to_owned());
        }
    }

    /// Gaps in every series whose name begins so.
    pub fn gaps(&mut self, beginning: &str, reason: &str) {
        let gap = Gap { from_ns: self.before_ns as i64, to_ns: self.now_ns as i64, reason: reason.to_owned() };
        let series = self.seen.series.iter_mut().filter(|(name, _)| name.starts_with(beginning));
        series.for_each(|(_, series)| series.push_gap(gap.clone()));
    }

    /// What was read since the last call. Series keep their names, so that a gap in one that was read before is told.
    pub fn take(&mut self) -> Probes {
        let empty = |(name, series): (&String, &Series)| (name.clone(), Series::new(series.kind, &series.unit));
        let next = Probes { series: self.seen.series.iter().map(empty).collect(), ..Probes::default() };
        let mut seen = std::mem::replace(&mut self.seen, next);
        seen.series.retain(|_, series| !series.samples.is_empty() || !series.gaps.is_empty());
        seen.servers.extend(self.server.clone());
        seen.unseen.extend(self.unseen.clone());
        seen.unseen.sort_unstable();
        seen
    }
}

/// When something expensive may be read: so seldom that it takes at most a given share of a core.
pub struct Seldom {
    period_ns: u64,
    /// One part in so many of a core.
    part: u64,
    due_ns: u64,
}

impl Seldom {
    /// At most every `period_ns`, and at most a thousandth of a core.
    pub fn new(period_ns: u64) -> Seldom {
        Seldom::with_part(period_ns, 1000)
    }

    pub fn with_part(period_ns: u64, part: u64) -> Seldom {
        Seldom { period_ns, part, due_ns: 0 }
    }

    /// Reads with `read` if it is time for it.
    pub fn read<T>(&mut self, read: impl FnOnce() -> T) -> Option<T> {
        if monotonic_ns() < self.due_ns {
            return None;
        }
        let before_ns = thread_cpu_ns();
        let result = read();
        let cost_ns = thread_cpu_ns().saturating_sub(before_ns);
        self.due_ns = monotonic_ns() + self.period_ns.max(cost_ns * self.part);
        Some(result)
    }
}
