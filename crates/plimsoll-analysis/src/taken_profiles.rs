//! The results of the profiles that an experiment took, as data.
//!
//! Not here: reading the profile files, and how results look.

use crate::profile::{ProfileDiff, ProfiledTrial};
use crate::{Assessment, Doubts};
use serde::Serialize;

/// The results of the profiles that an experiment took.
#[derive(Debug, Clone)]
pub enum ProfileFindings {
    /// Profiles of a single target: at a low load, and at the load under investigation.
    SingleTarget(Assessment<Profiles>),
    /// Profiles of both sides of a comparison.
    BothSides(Assessment<ProveProfiles>),
}

impl ProfileFindings {
    /// Returns the profiles of a single target; `None` for profiles of two sides.
    pub fn of_loads(&self) -> Option<&Assessment<Profiles>> {
        match self {
            ProfileFindings::SingleTarget(profiles) => Some(profiles),
            ProfileFindings::BothSides(_) => None,
        }
    }

    /// Returns the profiles of both sides; `None` for profiles of a single target.
    pub fn of_sides(&self) -> Option<&Assessment<ProveProfiles>> {
        match self {
            ProfileFindings::BothSides(profiles) => Some(profiles),
            ProfileFindings::SingleTarget(_) => None,
        }
    }

    /// Returns the evidence against the profiles.
    pub fn doubts(&self) -> &Doubts {
        match self {
            ProfileFindings::SingleTarget(profiles) => profiles.doubts_and_figures().0,
            ProfileFindings::BothSides(profiles) => profiles.doubts_and_figures().0,
        }
    }
}

/// The profiles of one kind at both levels, as the sum of one column.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileTotals {
    /// The kind of profile as in its URL: `allocs`, `mutex`, ...
    pub kind: String,
    /// The column, such as `alloc_space`.
    pub sample_type: String,
    /// Unit of the sums, in the spelling of pprof.
    pub unit: String,
    /// The sums at the low load and at the load under investigation; `None` for a missing profile.
    pub sums: [Option<ProfileTotal>; 2],
    /// Whether the sum is a stock (memory in use, goroutines). A stock cannot be divided by
    /// requests.
    pub stock: bool,
}

/// The sum of one profile, and the requests in its time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ProfileTotal {
    /// The sum of the values added while the profile was taken.
    pub sum: f64,
    /// The requests completed while the profile was taken.
    pub requests: f64,
}

/// A stored profile file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProfile {
    /// The level at which the profile was taken.
    pub level: String,
    /// The kind of profile as in its URL.
    pub kind: String,
    /// The path of the profile file.
    pub file: String,
}

/// The profiles of the loads of one experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Profiles {
    /// The base URL from which the profiles were fetched.
    pub base: String,
    /// Requested length of the CPU profiles, s.
    pub seconds: u32,
    /// The name of the higher level: `line`, or `load` for a single run.
    pub level_name: String,
    /// The unit counted by rates: `requests` or `sessions`.
    pub counted: &'static str,
    /// The profiled loads that were made: the low load and the load under investigation.
    pub levels: Vec<ProfiledTrial>,
    /// Requests completed while each CPU profile was taken.
    pub requests: Vec<f64>,
    /// CPU time per request at the low load compared with the load under investigation; `None`
    /// unless both profiles exist.
    pub comparison: Option<ProfileDiff>,
    /// The sums of the other kinds of profiles.
    pub kinds: Vec<ProfileTotals>,
    /// The stored profile files.
    pub files: Vec<StoredProfile>,
}

impl Profiles {
    /// Returns the names of both levels.
    pub fn level_names(&self) -> [&str; 2] {
        ["low", &self.level_name]
    }
}

/// CPU profiles of both sides, taken alternately at one rate.
#[derive(Debug, Clone, PartialEq)]
pub struct ProveProfiles {
    /// The base URLs from which the profiles were fetched, by side.
    pub bases: [String; 2],
    /// Requested length of a profile, s.
    pub seconds: u32,
    /// The rate at which the profiles were taken, 1/s.
    pub rate_rps: f64,
    /// The unit counted by the rate: `requests` or `sessions`.
    pub counted: &'static str,
    /// Requests completed while the profiles were taken, by side.
    pub requests: [f64; 2],
    /// The stored profile files, by side.
    pub files: [Vec<String>; 2],
    /// CPU time per request, A compared with B; `None` unless both sides have a profile.
    pub comparison: Option<ProfileDiff>,
}
