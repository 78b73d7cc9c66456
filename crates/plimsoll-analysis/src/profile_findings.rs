//! The results of the profiles that an experiment took.
//!
//! Not here: how profile files are read, and how reports show the results.

use crate::profile::{ProfileDiff, ProfiledTrial};
use crate::{Assessment, Doubts};
use serde::Serialize;

/// The results of the profiles that an experiment took.
#[derive(Debug, Clone)]
pub enum ProfileFindings {
    /// Profiles of a single target, at a low load and at the load under investigation (such as the
    /// load line).
    SingleTarget(Assessment<SingleTargetProfiles>),
    /// Profiles of both sides of a comparison, A and B.
    BothSides(Assessment<BothSidesProfiles>),
}

impl ProfileFindings {
    /// Returns the profiles of a single target; `None` if the profiles belong to two sides.
    pub fn single_target_profiles(&self) -> Option<&Assessment<SingleTargetProfiles>> {
        match self {
            ProfileFindings::SingleTarget(profiles) => Some(profiles),
            ProfileFindings::BothSides(_) => None,
        }
    }

    /// Returns the profiles of both sides; `None` if the profiles belong to a single target.
    pub fn both_sides_profiles(&self) -> Option<&Assessment<BothSidesProfiles>> {
        match self {
            ProfileFindings::BothSides(profiles) => Some(profiles),
            ProfileFindings::SingleTarget(_) => None,
        }
    }

    /// Returns the reasons to doubt the profiles.
    pub fn doubts(&self) -> &Doubts {
        match self {
            ProfileFindings::SingleTarget(profiles) => profiles.doubts_and_figures().0,
            ProfileFindings::BothSides(profiles) => profiles.doubts_and_figures().0,
        }
    }
}

/// The sums of the profiles of one kind, at both levels of load.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileTotals {
    /// The kind of the profiles, as in their URL: `allocs`, `mutex`, ...
    pub kind: String,
    /// The column that is summed, such as `alloc_space`.
    pub sample_type: String,
    /// Unit of the sums, as pprof writes it.
    pub unit: String,
    /// The sums at the low load and at the load under investigation (such as the load line); `None`
    /// for a missing profile.
    pub sums: [Option<ProfileTotal>; 2],
    /// Whether the column is a stock (an amount at one moment), such as memory in use or
    /// goroutines. A stock is not divided by the number of requests.
    pub is_stock: bool,
}

/// The sum of one profile, and the number of requests completed while the profile was taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ProfileTotal {
    /// The total of the profile's column over all samples. The total of a stock (an amount at one
    /// moment) is its change while the profile was taken, and may be negative.
    pub sum: f64,
    /// The number of requests completed while the profile was taken.
    pub requests: f64,
}

/// A stored profile file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProfile {
    /// The name of the load level at which the profile was taken.
    pub level: String,
    /// The kind of the profile, as in its URL.
    pub kind: String,
    /// The path of the profile file.
    pub file: String,
}

/// The profiles that one experiment took of a single target.
#[derive(Debug, Clone, PartialEq)]
pub struct SingleTargetProfiles {
    /// The base URL from which the profiles were fetched.
    pub base: String,
    /// Requested length of the CPU profiles, s.
    pub seconds: u32,
    /// The name of the higher of both load levels: `line`, or `load` for a single run.
    pub level_name: String,
    /// What the rates count: `requests` or `sessions`.
    pub rate_unit: &'static str,
    /// The measured loads with profiles: the low load and the load under investigation, if they
    /// were made.
    pub levels: Vec<ProfiledTrial>,
    /// Number of requests completed while each CPU profile was taken.
    pub requests: Vec<f64>,
    /// CPU time per request at the low load, compared with the load under investigation; `None`
    /// unless both CPU profiles exist.
    pub comparison: Option<ProfileDiff>,
    /// The sums of the profiles of other kinds than CPU.
    pub kinds: Vec<ProfileTotals>,
    /// The stored profile files.
    pub files: Vec<StoredProfile>,
}

impl SingleTargetProfiles {
    /// Returns the names of both load levels, the low level first.
    pub fn level_names(&self) -> [&str; 2] {
        ["low", &self.level_name]
    }
}

/// CPU profiles of both sides, taken alternately at one rate.
#[derive(Debug, Clone, PartialEq)]
pub struct BothSidesProfiles {
    /// The base URLs from which the profiles were fetched, by side.
    pub bases: [String; 2],
    /// Requested length of a profile, s.
    pub seconds: u32,
    /// The rate at which the profiles were taken, 1/s.
    pub rate_rps: f64,
    /// What the rate counts: `requests` or `sessions`.
    pub rate_unit: &'static str,
    /// Number of requests completed while the profiles were taken, by side.
    pub requests: [f64; 2],
    /// The stored profile files, by side.
    pub files: [Vec<String>; 2],
    /// CPU time per request of A, compared with B; `None` unless both sides have a profile.
    pub comparison: Option<ProfileDiff>,
}
