//! When a load asks, and by whom, as data: a [`LoadShape`] says who asks and how often, a [`Curve`] how that changes over
//! time, a [`Load`] when it begins and ends.
//!
//! Not here: what is asked ([`crate::traffic`]), the moments that follow ([`crate::schedule`]).

use crate::given::GivenArrivals;
use crate::units::{self, UnitError};
use serde::{Deserialize, Serialize};

/// One stretch of a curve: from one level to another, linearly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Level at the start (users, or requests a second).
    pub from: f64,
    /// Level at the end.
    pub to: f64,
    /// Length in ns; `None`: as long as the run lasts (only as the single stage of a curve).
    pub duration_ns: Option<u64>,
}

/// A level over time: stages one after the other. A constant is one stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The stages; never empty.
    pub stages: Vec<Stage>,
}

/// How arrivals of an open load are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Evenly.
    #[default]
    Constant,
    /// As a Poisson process of the same rate: independent users.
    Poisson,
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
    /// Requests that start at moments which were given one by one, whether or not earlier ones were answered.
    Given {
        /// The moments, warm-up included.
        arrivals: GivenArrivals,
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

    /// Requests a second over time, where they start whether or not earlier ones were answered: an open load.
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
    /// Connections opened before the schedule begins, so that opening them is not measured.
    pub connections_ready: u32,
    /// Length of a recorded interval, ns: a multiple of [`Load::TICK_NS`].
    pub interval_ns: u64,
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
    /// The same load where each arrival is a batch of so many requests: as many requests, in fewer arrivals.
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

/// Why a curve could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CurveError {
    /// A level or time that does not parse.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// A negative level.
    #[error("'{0}' is negative; a level is 0 or more")]
    Negative(String),
    /// A curve that is zero all along.
    #[error("'{0}' asks for no load at all")]
    Zero(String),
    /// Several stages, one of them without a length.
    #[error("'{0}' has no length; with several stages write each as LEVEL@TIME, such as 10@10s,100@30s")]
    NoLength(String),
    /// A ramp without a length.
    #[error("'{0}' is a ramp without a length; write FROM..TO@TIME, such as 0..5000@30s")]
    RampNoLength(String),
    /// A stage of no length.
    #[error("'{0}' lasts no time")]
    ZeroLength(String),
}

impl Curve {
    /// The same level for as long as the run lasts.
    pub fn constant(level: f64) -> Curve {
        Curve { stages: vec![Stage { from: level, to: level, duration_ns: None }] }
    }

    /// The same level for a given time.
    pub fn constant_for(level: f64, duration_ns: u64) -> Curve {
        Curve { stages: vec![Stage { from: level, to: level, duration_ns: Some(duration_ns) }] }
    }

    /// Reads `100`, `10@10s,100@30s` or `0..5000@30s,5000@60s`.
    pub fn parse(text: &str) -> Result<Curve, CurveError> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let mut stages = Vec::with_capacity(parts.len());
        for part in &parts {
            let (levels, length) = match part.split_once('@') {
                Some((levels, length)) => (levels, Some(units::parse_duration_ns(length)?)),
                None => (*part, None),
            };
            let (from, to) = match levels.split_once("..") {
                Some((from, to)) => (units::parse_number(from)?, units::parse_number(to)?),
                None => {
                    let level = units::parse_number(levels)?;
                    (level, level)
                }
            };
            if from < 0.0 || to < 0.0 {
                return Err(CurveError::Negative((*part).to_owned()));
            }
            match length {
                None if parts.len() > 1 => return Err(CurveError::NoLength((*part).to_owned())),
                None if from != to => return Err(CurveError::RampNoLength((*part).to_owned())),
                Some(0) => return Err(CurveError::ZeroLength((*part).to_owned())),
                _ => stages.push(Stage { from, to, duration_ns: length }),
            }
        }
        if stages.iter().all(|s| s.from == 0.0 && s.to == 0.0) {
            return Err(CurveError::Zero(text.to_owned()));
        }
        Ok(Curve { stages })
    }

    /// Total length in ns; `None` when open-ended.
    pub fn duration_ns(&self) -> Option<u64> {
        self.stages.iter().map(|s| s.duration_ns).sum()
    }

    /// The highest level.
    pub fn max(&self) -> f64 {
        self.stages.iter().fold(0.0, |max, s| max.max(s.from).max(s.to))
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

    #[test]
    fn curves_parse_or_say_why_not() {
        let stage = |from, to, s: Option<u64>| Stage { from, to, duration_ns: s.map(|s| s * SECOND) };
        for (text, expect) in [
            ("100", Ok(vec![stage(100.0, 100.0, None)])),
            ("1k@5s", Ok(vec![stage(1000.0, 1000.0, Some(5))])),
            ("10@10s,100@30s", Ok(vec![stage(10.0, 10.0, Some(10)), stage(100.0, 100.0, Some(30))])),
            ("0..5000@30s,5000@60s", Ok(vec![stage(0.0, 5000.0, Some(30)), stage(5000.0, 5000.0, Some(60))])),
            ("10,20@5s", Err("no length")),
            ("0..50", Err("ramp without a length")),
            ("-5", Err("negative")),
            ("0", Err("no load")),
            ("0@5s", Err("no load")),
            ("5@0s", Err("lasts no time")),
            ("", Err("not a number")),
            ("5@", Err("not a time")),
            ("5@x", Err("not a time")),
        ] {
            match (Curve::parse(text), expect) {
                (Ok(curve), Ok(stages)) => assert_eq!(curve.stages, stages, "{text}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{text}: {error}"),
                (got, want) => panic!("{text}: {got:?}, expected {want:?}"),
            }
        }
    }
}
