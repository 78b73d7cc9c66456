//! Profiles of both sides of a comparison: what each function costs a request there and here, as text and as JSON.

use crate::block::Report;
use crate::format::{count, rate};
use crate::profile::{DiffFields, DoubtsFields, above, diff_report};
use plimsoll_analysis::Doubted;
use plimsoll_analysis::profile::{ProfileDiff, Sort};
use serde::Serialize;

/// Rows of the table in the text, and of the document.
const ROWS: usize = 15;
const ROWS_DOCUMENT: usize = 50;

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

/// The part of a report that is about profiles.
pub fn report(profiles: &Doubted<ProveProfiles>) -> Report {
    let (doubts, profiles) = profiles.open();
    let mut report = above(doubts);
    let side = |at: usize| {
        let ProveProfiles { bases, files, requests, .. } = profiles;
        format!(
            "{} profiles of {} s from {}, {} requests meanwhile",
            files[at].len(),
            profiles.seconds,
            bases[at],
            count(requests[at] as u64)
        )
    };
    report.facts(vec![
        ("A", side(0)),
        ("B", side(1)),
        (
            "load",
            format!("{} {}/s, the same on both sides, after the blocks", rate(profiles.rate_rps), profiles.counted),
        ),
    ]);
    if let Some(comparison) = &profiles.comparison {
        report.append(diff_report(comparison, Sort::Flat, ROWS));
    }
    report
}

/// The member `profiles` of a document.
#[derive(Serialize)]
pub(crate) struct ProveProfilesFields<'a> {
    bases: &'a [String; 2],
    seconds: u32,
    rate_rps: f64,
    requests: [f64; 2],
    files: &'a [Vec<String>; 2],
    comparison: Option<DiffFields<'a>>,
    #[serde(flatten)]
    doubts: DoubtsFields,
}

impl<'a> ProveProfilesFields<'a> {
    /// What these profiles say.
    pub(crate) fn of(profiles: &'a Doubted<ProveProfiles>) -> ProveProfilesFields<'a> {
        let (doubts, profiles) = profiles.open();
        ProveProfilesFields {
            bases: &profiles.bases,
            seconds: profiles.seconds,
            rate_rps: profiles.rate_rps,
            requests: profiles.requests,
            files: &profiles.files,
            comparison: profiles.comparison.as_ref().map(|comparison| DiffFields::of(comparison, ROWS_DOCUMENT)),
            doubts: DoubtsFields::from(doubts),
        }
    }
}
