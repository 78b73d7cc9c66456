//! The load of a plan as data. A [`LoadShape`] is a closed or open loop with its level (the number
//! of users, or the request rate). A [`Load`] has a shape, and settings for the beginning and the
//! end of the load.
//!
//! Not here: how a level changes over time ([`crate::curve`]), the requests ([`crate::traffic`]),
//! and the intended starts ([`crate::schedule`]).

use crate::arrival_times::ArrivalTimes;
use crate::curve::{LoadCurve, USERS_MAX};
use serde::{Deserialize, Serialize};

/// Spacing of the arrivals of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalSpacing {
    /// Even spacing: the time between two consecutive arrivals is always the same.
    #[default]
    Constant,
    /// Random spacing of a Poisson process with the same rate: requests arrive like independent
    /// users.
    Poisson,
    /// The spacing of requests within the sessions of a log; the sessions are drawn at random
    /// ([`crate::session_draws`]).
    Replayed,
}

impl ArrivalSpacing {
    /// Returns the index of dispersion of the arrivals (variance over mean of the numbers of
    /// arrivals): 0 for even spacing, 1 for a Poisson process. Arrivals drawn from a log count as a
    /// Poisson process, because their sessions start independently.
    pub fn dispersion(self) -> f64 {
        match self {
            ArrivalSpacing::Constant => 0.0,
            ArrivalSpacing::Poisson | ArrivalSpacing::Replayed => 1.0,
        }
    }

    /// Returns the word for the spacing in flags and records.
    pub fn name(self) -> &'static str {
        match self {
            ArrivalSpacing::Constant => "constant",
            ArrivalSpacing::Poisson => "poisson",
            ArrivalSpacing::Replayed => "replayed",
        }
    }

    /// Returns the spacing with this word; `None` if the word names no spacing that a user can
    /// choose.
    pub fn from_name(word: &str) -> Option<ArrivalSpacing> {
        [ArrivalSpacing::Constant, ArrivalSpacing::Poisson].into_iter().find(|arrivals| arrivals.name() == word)
    }
}

/// The load model (closed or open loop), with the level (number of users or request rate) over
/// time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadShape {
    /// Closed loop: each user waits for the response to a request before the next request.
    Closed {
        /// Number of users over time.
        users: LoadCurve,
    },
    /// Open loop: requests start on schedule, independent of earlier responses.
    Open {
        /// Request rate over time, 1/s.
        rate: LoadCurve,
        /// Spacing of the arrivals.
        arrivals: ArrivalSpacing,
    },
    /// Open loop with given arrival times, one for each request.
    #[serde(rename = "given")]
    ArrivalTimes {
        /// The arrival times, including the warm-up.
        arrivals: ArrivalTimes,
    },
}

impl LoadShape {
    /// Returns the level of the load (number of users or request rate) over time.
    pub fn curve(&self) -> &LoadCurve {
        match self {
            LoadShape::Closed { users } => users,
            LoadShape::Open { rate, .. } => rate,
            LoadShape::ArrivalTimes { arrivals } => arrivals.rate(),
        }
    }

    /// Returns the request rate of an open loop over time, 1/s; `None` for a closed loop.
    pub fn rate(&self) -> Option<&LoadCurve> {
        match self {
            LoadShape::Closed { .. } => None,
            LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. } => Some(self.curve()),
        }
    }

    /// Returns whether the load is an open loop.
    pub fn is_open(&self) -> bool {
        self.rate().is_some()
    }

    /// Returns the spacing of arrivals for a further open loop, such as the load for a profile. If
    /// this load has no rule for the spacing of arrivals, the result is even spacing.
    pub fn arrival_spacing(&self) -> ArrivalSpacing {
        match self {
            LoadShape::Open { arrivals, .. } => *arrivals,
            LoadShape::Closed { .. } | LoadShape::ArrivalTimes { .. } => ArrivalSpacing::Constant,
        }
    }

    /// Returns whether the load can be executed. A load from a run file may lack its arrival times,
    /// which are needed for execution.
    pub fn is_executable(&self) -> bool {
        !matches!(self, LoadShape::ArrivalTimes { arrivals } if !arrivals.has_starts())
    }
}

/// The load of a plan: its load model, beginning, end and random seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The seed of all random numbers of the load.
    pub seed: u64,
    /// The load model and its level over time, for the measured part of the load. The warm-up
    /// precedes the measured part.
    pub shape: LoadShape,
    /// Number of measured requests after which the load ends; `None` means no limit.
    pub requests_max: Option<u64>,
    /// Length of the measured part, ns; `None` means that `requests_max` alone ends the load.
    pub duration_ns: Option<u64>,
    /// Length of the unmeasured warm-up at the first level of the shape, ns.
    pub warmup_ns: u64,
    /// Longest wait after the end of the schedule for responses to requests in flight, ns.
    pub grace_ns: u64,
    /// Number of connections that are opened before the schedule begins, so that their opening is
    /// not measured. The value is 0 without keep-alive.
    pub connections_ready: u32,
    /// Length of a recorded interval, ns: a multiple of [`Load::TICK_NS`].
    pub interval_ns: u64,
    /// Whether each session of a closed loop belongs to a new user, without the cookies, captured
    /// values and connection of an earlier session.
    #[serde(rename = "newcomers", default, skip_serializing_if = "std::ops::Not::not")]
    pub new_users: bool,
}

impl Load {
    /// Length of a tick, ns: the load reports its figures every 100 ms.
    pub const TICK_NS: u64 = 100_000_000;

    /// Creates a load with a grace period of 5 s. The load lasts as long as its shape, or 10 s if
    /// the shape has no end.
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
            new_users: false,
        }
    }

    /// Returns the load in the form that a run file stores: without the list of arrival times.
    pub fn record(&self) -> Load {
        match &self.shape {
            LoadShape::ArrivalTimes { arrivals } => {
                Load { shape: LoadShape::ArrivalTimes { arrivals: arrivals.record() }, ..self.clone() }
            }
            LoadShape::Closed { .. } | LoadShape::Open { .. } => self.clone(),
        }
    }

    /// Replaces this load by the recorded load. A record lacks the list of arrival times, so this
    /// load keeps its own list if the list matches the record.
    pub fn restore_from_record(&mut self, record: &Load) {
        let own = std::mem::replace(self, record.clone());
        if let (LoadShape::ArrivalTimes { arrivals }, LoadShape::ArrivalTimes { arrivals: own }) =
            (&mut self.shape, own.shape)
            && own.has_same_starts(arrivals)
        {
            *arrivals = own;
        }
    }
}

impl Load {
    /// Multiplies the users or the rate by `times`, and also the maximum number of requests. In a
    /// closed loop, the number of ready connections is multiplied, too. A list of arrival times
    /// stays unchanged. If the resulting number of users is outside the allowed range, the error is
    /// this number.
    pub fn scale(&mut self, times: f64) -> Result<(), f64> {
        match &mut self.shape {
            LoadShape::Open { rate, .. } => *rate = rate.scale_levels(times),
            LoadShape::Closed { users } => {
                *users = users.scale_levels(times);
                for level in users.stages.iter_mut().flat_map(|stage| [&mut stage.from, &mut stage.to]) {
                    *level = level.round();
                }
                if !(1.0..=USERS_MAX).contains(&users.max()) {
                    return Err(users.max());
                }
                self.connections_ready = (f64::from(self.connections_ready) * times).round() as u32;
            }
            LoadShape::ArrivalTimes { .. } => {}
        }
        self.requests_max = self.requests_max.map(|max| (max as f64 * times).round().max(1.0) as u64);
        Ok(())
    }

    /// Ends the load after `length_ns` at the latest.
    pub fn shorten(&mut self, length_ns: u64) {
        self.duration_ns = Some(self.duration_ns.map_or(length_ns, |ns| ns.min(length_ns)));
        if let LoadShape::Open { rate: curve, .. } | LoadShape::Closed { users: curve } = &mut self.shape
            && curve.duration_ns().is_some()
        {
            *curve = curve.part_before(length_ns);
        }
    }

    /// Returns the load in which each arrival is a batch of `requests` requests. In an open loop,
    /// the load has fewer arrivals, so that the rate of requests stays the same. In a closed loop,
    /// the number of users stays the same.
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
    fn batches_contain_the_requested_number() {
        let open = |level| LoadShape::Open {
            rate: LoadCurve::constant_for_duration(level, SECOND),
            arrivals: ArrivalSpacing::Constant,
        };
        let load = Load { requests_max: Some(10), ..Load::new(open(300.0)) };
        assert_eq!(load.in_batches_of(1), load);
        assert_eq!(load.in_batches_of(3), Load { requests_max: Some(4), shape: open(100.0), ..load.clone() });
        // In a closed loop, batches do not change the number of users, but each user sends more
        // requests at a time.
        let closed = Load { requests_max: Some(9), ..Load::new(LoadShape::Closed { users: LoadCurve::constant(6.0) }) };
        assert_eq!(closed.in_batches_of(3), Load { requests_max: Some(3), ..closed.clone() });
    }
}
