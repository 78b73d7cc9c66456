//! Renders the profiles of both sides of a comparison, servers A and B, as text and as JSON. The
//! cost of each function per request is compared between A and B.

use crate::block::Report;
use crate::format::{count, rate};
use crate::profile::{ProfileDiffFields, ProfileWarningFields, diff_report, profile_warnings};
use plimsoll_analysis::Assessment;
use plimsoll_analysis::profile::FunctionCostOrder;
use plimsoll_analysis::profile_findings::BothSidesProfiles;
use serde::Serialize;

/// The maximum number of functions in the table of the text output; `FUNCTIONS_LISTED_IN_JSON_MAX`
/// is the limit of the JSON document.
const FUNCTIONS_SHOWN_IN_TEXT_MAX: usize = 15;
const FUNCTIONS_LISTED_IN_JSON_MAX: usize = 50;

/// Renders the section of a comparison's report about the CPU profiles of both sides (servers A and
/// B).
pub fn prove_profiles_report(profiles: &Assessment<BothSidesProfiles>) -> Report {
    let (doubts, profiles) = profiles.doubts_and_figures();
    let mut report = profile_warnings(doubts);
    let side = |at: usize| {
        let BothSidesProfiles { bases, files, requests, .. } = profiles;
        format!(
            "{profiles} profiles of {seconds} s from {address}, during {requests} requests",
            profiles = files[at].len(),
            seconds = profiles.seconds,
            address = bases[at],
            requests = count(requests[at] as u64)
        )
    };
    report.add_facts(vec![
        ("A", side(0)),
        ("B", side(1)),
        (
            "load",
            format!(
                "{rate} {counted}/s for A and for B, after the loads that were compared",
                rate = rate(profiles.rate_rps),
                counted = profiles.rate_unit
            ),
        ),
    ]);
    if let Some(comparison) = &profiles.comparison {
        report.append(diff_report(comparison, FunctionCostOrder::Flat, FUNCTIONS_SHOWN_IN_TEXT_MAX));
    }
    report
}

/// The member `profiles` in the JSON documents of comparisons and ladders.
#[derive(Serialize)]
pub(crate) struct ProveProfilesFields<'a> {
    bases: &'a [String; 2],
    seconds: u32,
    rate_rps: f64,
    requests: [f64; 2],
    files: &'a [Vec<String>; 2],
    comparison: Option<ProfileDiffFields<'a>>,
    #[serde(flatten)]
    doubts: ProfileWarningFields,
}

impl<'a> ProveProfilesFields<'a> {
    /// Creates the member `profiles` from the CPU profiles of both sides (servers A and B).
    pub(crate) fn new(profiles: &'a Assessment<BothSidesProfiles>) -> ProveProfilesFields<'a> {
        let (doubts, profiles) = profiles.doubts_and_figures();
        ProveProfilesFields {
            bases: &profiles.bases,
            seconds: profiles.seconds,
            rate_rps: profiles.rate_rps,
            requests: profiles.requests,
            files: &profiles.files,
            comparison: profiles
                .comparison
                .as_ref()
                .map(|comparison| ProfileDiffFields::new(comparison, FUNCTIONS_LISTED_IN_JSON_MAX)),
            doubts: ProfileWarningFields::from(doubts),
        }
    }
}
