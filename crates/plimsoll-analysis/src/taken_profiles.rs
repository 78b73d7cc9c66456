//! The results of an experiment's profiles, as data.
//!
//! Not here: reading the profiles back, and their presentation.

use crate::profile::{ProfileDiff, ProfiledTrial};
use crate::{Assessment, Doubts};
use serde::Serialize;

/// The results of an experiment's profiles.
#[derive(Debug, Clone)]
pub enum ProfileFindings {
    /// At low load, and at the load in question.
    OfLoads(Assessment<Profiles>),
    /// Of both sides of a comparison.
    OfSides(Assessment<ProveProfiles>),
}

impl ProfileFindings {
    /// Those of loads.
    pub fn of_loads(&self) -> Option<&Assessment<Profiles>> {
        match self {
            ProfileFindings::OfLoads(profiles) => Some(profiles),
            ProfileFindings::OfSides(_) => None,
        }
    }

    /// Those of both sides.
    pub fn of_sides(&self) -> Option<&Assessment<ProveProfiles>> {
        match self {
            ProfileFindings::OfSides(profiles) => Some(profiles),
            ProfileFindings::OfLoads(_) => None,
        }
    }

    /// The evidence against these results.
    pub fn doubts(&self) -> &Doubts {
        match self {
            ProfileFindings::OfLoads(profiles) => profiles.open().0,
            ProfileFindings::OfSides(profiles) => profiles.open().0,
        }
    }
}

/// A profile of one kind at both levels: the sum of one column.
#[derive(Debug, Clone, PartialEq)]
pub struct KindSums {
    /// As in its address: `allocs`, `mutex`, ...
    pub kind: String,
    /// The column, such as `alloc_space`.
    pub sample_type: String,
    /// Unit of the sums, as pprof spells it.
    pub unit: String,
    /// At low load and at the load in question; none where the profile is missing.
    pub sums: [Option<KindSum>; 2],
    /// Whether the sum is a stock (memory in use, goroutines), of which a share for each request
    /// says nothing.
    pub stock: bool,
}

/// The sum of a profile of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct KindSum {
    /// The sum of what was added meanwhile.
    pub sum: f64,
    /// The requests meanwhile.
    pub requests: f64,
}

/// A profile that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProfile {
    /// The level at which it was taken.
    pub level: String,
    /// As in its address.
    pub kind: String,
    /// Where it is.
    pub file: String,
}

/// The profiles of one experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Profiles {
    /// Where from.
    pub base: String,
    /// Length of the CPU profiles as asked for, s.
    pub seconds: u32,
    /// What the higher level is called: `line`, or `load` of a single run.
    pub level_name: String,
    /// What the rates are of: `requests`, or `sessions`.
    pub counted: &'static str,
    /// Low load and the load in question, as far as they were driven.
    pub levels: Vec<ProfiledTrial>,
    /// Requests completed while each CPU profile was taken.
    pub requests: Vec<f64>,
    /// CPU a request, low against the load in question; none unless both profiles are there.
    pub comparison: Option<ProfileDiff>,
    /// The other kinds.
    pub kinds: Vec<KindSums>,
    /// The profiles kept.
    pub files: Vec<StoredProfile>,
}

impl Profiles {
    /// The names of both levels.
    pub fn level_names(&self) -> [&str; 2] {
        ["low", &self.level_name]
    }
}

/// CPU profiles of both sides, taken in turn at one rate.
#[derive(Debug, Clone, PartialEq)]
pub struct ProveProfiles {
    /// Where from, by side.
    pub bases: [String; 2],
    /// Length of a profile as asked for, s.
    pub seconds: u32,
    /// The rate at which they were taken, 1/s.
    pub rate_rps: f64,
    /// Of what: `requests`, or `sessions`.
    pub counted: &'static str,
    /// Requests completed meanwhile, by side.
    pub requests: [f64; 2],
    /// The profiles kept, by side.
    pub files: [Vec<String>; 2],
    /// CPU a request, A against B; none unless there is a profile of both.
    pub comparison: Option<ProfileDiff>,
}
