//! How failed answers look: a fact for each kind, and the list of a JSON document.

use crate::format::{count, duration};
use plimsoll_analysis::failed::FailedKind;
use plimsoll_model::Purpose;
use serde_json::{Value, json};

/// A fact for each kind: what the first of them said, how many there were, when it began.
pub(crate) fn facts(kinds: &[FailedKind]) -> Vec<(&'static str, String)> {
    let fact = |kind: &FailedKind| {
        let side = match (kind.tag.purpose, kind.tag.arm) {
            (Purpose::Block, Some(arm)) => format!(" from {}", arm.letter()),
            _ => String::new(),
        };
        let requests =
            if kind.requests == 1 { "1 request".to_owned() } else { format!("{} requests", count(kind.requests)) };
        let text = format!("{} ({requests}; the first{side} after {})", kind.first.text(), duration(kind.at_ns as f64));
        ("failed answer", text)
    };
    kinds.iter().map(fact).collect()
}

/// The list `failed_answers` of every document.
pub(crate) fn list(kinds: &[FailedKind]) -> Value {
    let one = |kind: &FailedKind| {
        let first = &kind.first;
        let said = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        json!({
            "status": Some(first.status).filter(|status| *status != 0),
            "requests": kind.requests,
            "first_s": kind.at_ns as f64 / 1e9,
            "status_line": said(&first.status_line),
            "body": first.body,
            "reason": said(&first.reason),
        })
    };
    kinds.iter().map(one).collect()
}
