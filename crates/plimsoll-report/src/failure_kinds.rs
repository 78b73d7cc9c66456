//! Renders failed responses by kind of failure: as facts of a report, and as a list in a JSON
//! document.

use crate::format::{count, duration};
use plimsoll_analysis::failed::FailedResponseGroup;
use plimsoll_model::LoadPurpose;
use serde::Serialize;

/// Returns a labelled fact for each kind of failure. Each fact states the first failed response of
/// its kind, the number of requests with this failure, and the time of the first failure.
pub(crate) fn failure_facts(kinds: &[FailedResponseGroup]) -> Vec<(&'static str, String)> {
    let fact = |kind: &FailedResponseGroup| {
        let from_server = match (kind.tag.purpose, kind.tag.arm) {
            (LoadPurpose::Block, Some(arm)) => format!(" from {}", arm.letter()),
            _ => String::new(),
        };
        let requests =
            if kind.requests == 1 { "1 request".to_owned() } else { format!("{} requests", count(kind.requests)) };
        let route_prefix = kind.route.as_ref().map_or_else(String::new, |label| format!("{label}: "));
        let response = kind.first.description();
        let text = format!(
            "{route_prefix}{response} ({requests}; the first{from_server} after {load_time})",
            load_time = duration(kind.at_ns as f64)
        );
        ("failed response", text)
    };
    kinds.iter().map(fact).collect()
}

/// The fields of one kind of failure in the list `failed_answers` of a JSON document.
#[derive(Serialize)]
pub(crate) struct FailedAnswerFields<'a> {
    status: Option<u16>,
    missed: Option<&'static str>,
    route: Option<&'a str>,
    requests: u64,
    first_s: f64,
    status_line: Option<&'a str>,
    body: &'a str,
    reason: Option<&'a str>,
}

/// Returns the list `failed_answers`, with an entry for each kind of failure.
pub(crate) fn failed_answers(kinds: &[FailedResponseGroup]) -> Vec<FailedAnswerFields<'_>> {
    kinds.iter().map(FailedAnswerFields::from).collect()
}

impl<'a> From<&'a FailedResponseGroup> for FailedAnswerFields<'a> {
    fn from(kind: &'a FailedResponseGroup) -> FailedAnswerFields<'a> {
        let first = &kind.first;
        let said = |text: &'a String| Some(text.as_str()).filter(|text| !text.is_empty());
        FailedAnswerFields {
            status: Some(first.status).filter(|status| *status != 0),
            missed: first.failed_check.map(|missed| missed.failure.name()),
            route: kind.route.as_deref(),
            requests: kind.requests,
            first_s: kind.at_ns as f64 / 1e9,
            status_line: said(&first.status_line),
            body: &first.body,
            reason: said(&first.reason),
        }
    }
}
