//! When a load asks, and by whom, as data: a [`LoadShape`] says who asks and how often, a [`Load`]
//! when it begins and ends.
//!
//! Not here: how a level changes over time ([`crate::curve`]), what is asked ([`crate::traffic`]),
//! the moments that follow ([`crate::schedule`]).

use crate::arrival_times::ArrivalTimes;
use crate::curve::{Curve, USERS_MAX};
use serde::{Deserialize, Serialize};

/// How arrivals of an open load are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Evenly.
    #[default]
    Constant,
    /// As a Poisson process of the same rate: independent users.
    Poisson,
    /// As those of a log, whose sessions are drawn anew ([`crate::session_draws`]).
    Replayed,
}

impl Arrivals {
    /// Index of dispersion of the arrivals (variance over mean of their counts): 0 evenly spaced, 1
    /// for a Poisson process. Those of a log are taken for independent sessions.
    pub fn dispersion(self) -> f64 {
        match self {
            Arrivals::Constant => 0.0,
            Arrivals::Poisson | Arrivals::Replayed => 1.0,
        }
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Arrivals::Constant => "constant",
            Arrivals::Poisson => "poisson",
            Arrivals::Replayed => "replayed",
        }
    }

    /// The one that a word names where people choose.
    pub fn named(word: &str) -> Option<Arrivals> {
        [Arrivals::Constant, Arrivals::Poisson].into_iter().find(|arrivals| arrivals.word() == word)
    }
}

/// Who makes requests, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadShape {
    /// Users who each wait for the answer before they ask again.
    Closed {
        /// How many, over time.
        users: Curve,
    },
    /// Requests that start when the schedule says, whether or not earlier ones were answered.
    Open {
        /// Requests a second, over time.
        rate: Curve,
        /// Their spacing.
        arrivals: Arrivals,
    },
    /// Requests that start at moments which were given one by one, whether or not earlier ones were
    /// answered.
    Given {
        /// The moments, warm-up included.
        arrivals: ArrivalTimes,
    },
}

impl LoadShape {
    /// The curve of this shape.
    pub fn curve(&self) -> &Curve {
        match self {
            LoadShape::Closed { users } => users,
            LoadShape::Open { rate, .. } => rate,
            LoadShape::Given { arrivals } => arrivals.rate(),
        }
    }

    /// Requests a second over time, where they start whether or not earlier ones were answered: an
    /// open load.
    pub fn rate(&self) -> Option<&Curve> {
        match self {
            LoadShape::Closed { .. } => None,
            LoadShape::Open { .. } | LoadShape::Given { .. } => Some(self.curve()),
        }
    }

    /// Whether requests start whether or not earlier ones were answered.
    pub fn is_open(&self) -> bool {
        self.rate().is_some()
    }

    /// How arrivals are spaced where another load of the same kind is made.
    pub fn arrivals(&self) -> Arrivals {
        match self {
            LoadShape::Open { arrivals, .. } => *arrivals,
            LoadShape::Closed { .. } | LoadShape::Given { .. } => Arrivals::Constant,
        }
    }

    /// Whether all is there to carry it out: the record of a load may lack its moments.
    pub fn is_whole(&self) -> bool {
        !matches!(self, LoadShape::Given { arrivals } if !arrivals.is_whole())
    }
}

/// When a load begins and ends, and all that is drawn by chance meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// All that is random follows from it.
    pub seed: u64,
    /// Who asks, and how often. Covers the measured part only; the warm-up is put before it.
    pub shape: LoadShape,
    /// At most so many measured requests.
    pub requests_max: Option<u64>,
    /// Length of the measured part, ns; `None` with `requests_max` only.
    pub duration_ns: Option<u64>,
    /// Load at the shape's first level before anything is measured, ns.
    pub warmup_ns: u64,
    /// How long to wait after the schedule's end for answers under way, ns.
    pub grace_ns: u64,
    /// Connections opened before the schedule begins, so that opening them is not measured; none
    /// where they are not kept.
    pub connections_ready: u32,
    /// Length of a recorded interval, ns: a multiple of [`Load::TICK_NS`].
    pub interval_ns: u64,
    /// Whether each session of a closed load is that of a new user, as an arrival's is: it has
    /// nothing of the session before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub newcomers: bool,
}

impl Load {
    /// How often a load is looked at: 100 ms.
    pub const TICK_NS: u64 = 100_000_000;

    /// The shape for its own length, or for 10 s, with a grace period of 5 s.
    pub fn new(shape: LoadShape) -> Load {
        Load {
            seed: 1,
            duration_ns: Some(shape.curve().duration_ns().unwrap_or(10_000_000_000)),
            shape,
            requests_max: None,
            warmup_ns: 0,
            grace_ns: 5_000_000_000,
            connections_ready: 0,
            interval_ns: Load::TICK_NS,
            newcomers: false,
        }
    }

    /// What a run file holds of it.
    pub fn record(&self) -> Load {
        match &self.shape {
            LoadShape::Given { arrivals } => {
                Load { shape: LoadShape::Given { arrivals: arrivals.record() }, ..self.clone() }
            }
            LoadShape::Closed { .. } | LoadShape::Open { .. } => self.clone(),
        }
    }

    /// Becomes the load of a record. Moments that were given stay where the record is of the same.
    pub fn become_recorded(&mut self, record: &Load) {
        let own = std::mem::replace(self, record.clone());
        if let (LoadShape::Given { arrivals }, LoadShape::Given { arrivals: own }) = (&mut self.shape, own.shape)
            && own.is_of(arrivals)
        {
            *arrivals = own;
        }
    }
}

impl Load {
    /// Multiplies the visitors. The error is a number of users that no load can have.
    pub fn scale(&mut self, times: f64) -> Result<(), f64> {
        match &mut self.shape {
            LoadShape::Open { rate, .. } => *rate = rate.times(times),
            LoadShape::Closed { users } => {
                *users = users.times(times);
                for level in users.stages.iter_mut().flat_map(|stage| [&mut stage.from, &mut stage.to]) {
                    *level = level.round();
                }
                if !(1.0..=USERS_MAX).contains(&users.max()) {
                    return Err(users.max());
                }
                self.connections_ready = (f64::from(self.connections_ready) * times).round() as u32;
            }
            LoadShape::Given { .. } => {}
        }
        self.requests_max = self.requests_max.map(|max| (max as f64 * times).round().max(1.0) as u64);
        Ok(())
    }

    /// Ends the load after this time at the latest.
    pub fn shorten(&mut self, length_ns: u64) {
        self.duration_ns = Some(self.duration_ns.map_or(length_ns, |ns| ns.min(length_ns)));
        if let LoadShape::Open { rate: curve, .. } | LoadShape::Closed { users: curve } = &mut self.shape
            && curve.duration_ns().is_some()
        {
            *curve = curve.until(length_ns);
        }
    }

    /// The same load where each arrival is a batch of so many requests: as many requests, in fewer
    /// arrivals.
    pub fn in_batches_of(&self, requests: u32) -> Load {
        let mut load = self.clone();
        let requests = requests.max(1);
        load.requests_max = load.requests_max.map(|max| max.div_ceil(u64::from(requests)));
        if let LoadShape::Open { rate, .. } = &mut load.shape {
            for stage in &mut rate.stages {
                stage.from /= f64::from(requests);
                stage.to /= f64::from(requests);
            }
        }
        load
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::SECOND;

    #[test]
    fn batches_make_as_many_requests() {
        let open = |level| LoadShape::Open { rate: Curve::constant_for(level, SECOND), arrivals: Arrivals::Constant };
        let load = Load { requests_max: Some(10), ..Load::new(open(300.0)) };
        assert_eq!(load.in_batches_of(1), load);
        assert_eq!(load.in_batches_of(3), Load { requests_max: Some(4), shape: open(100.0), ..load.clone() });
        // As many users, who send more each time.
        let closed = Load { requests_max: Some(9), ..Load::new(LoadShape::Closed { users: Curve::constant(6.0) }) };
        assert_eq!(closed.in_batches_of(3), Load { requests_max: Some(3), ..closed.clone() });
    }
}
