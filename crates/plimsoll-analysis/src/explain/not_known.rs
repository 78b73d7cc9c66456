//! The texts for an unknown cause: the possible causes, and the missing observations that would
//! show which cause applies.

use super::cause::Cause;
use super::causes::cause_description;
use super::server_facts::Contrast;
use super::signals::Signal;
use crate::format;
use crate::sentence::{Remedy, Sentence};

/// Returns the sentence that the cause is not known, with the reason or with the possible causes.
pub(super) fn unknown_cause_sentence(case: &Contrast, possible: &[Cause]) -> String {
    if let Some(gone) = &case.target_loss {
        return format!("not known: {gone}");
    }
    if let Some(answered_rps) = case.goodput_of_broken_server_rps() {
        return format!(
            "not known: the server has not recovered from the search: the load line was {load_line}, and \
             {success_rps} of {offered_load} succeed now",
            load_line = case.offered_text(case.lower_rps),
            success_rps = format::rate(answered_rps),
            offered_load = case.offered_text(case.low.get(Signal::Offered).unwrap_or(0.0))
        );
    }
    if let Some(failing) = &case.constant_failure {
        return format!("not known: {failure}: this breaks the SLO at any load", failure = failing.text);
    }
    if let Some(share) = case.constant_failure_share() {
        let most = case.low.failures.iter().max_by_key(|(_, times)| *times).map_or("", |(how, _)| how.as_str());
        return format!(
            "not known: {share_percent} of the requests fail even at a low load ({most}), where no request queues: \
             this breaks the SLO at any load",
            share_percent = format::share(share)
        );
    }
    if case.best_rps > 0.0 && !case.is_seen() {
        return "not known: the budget was too short for the steady loads that reveal the cause".to_owned();
    }
    if let Some(held_rps) = case.held_past_rps.filter(|_| case.upper_rps.is_none() && case.plateau() == Some(false)) {
        let held = case.offered_text(held_rps);
        return format!("not known: the server met the SLO up to {held}, and the budget ended there");
    }
    match possible {
        [] if case.best_rps <= 0.0 => "not known: no request succeeded".to_owned(),
        [] => "not known: no observed resource is saturated".to_owned(),
        [one] => format!("not known; {one} is possible, but the evidence is too weak"),
        [one, other, ..] => {
            format!("not known: {one} and {other} are possible, and the observations fit both")
        }
    }
}

/// Returns advice on the observations that would show the cause, as sentences without a full stop.
pub(super) fn missing_evidence(case: &Contrast, possible: &[Cause]) -> Vec<Sentence> {
    if case.goodput_of_broken_server_rps().is_some() {
        return vec![Sentence::from(
            "restart the server and load it below its load line: plimsoll overload shows how the server fails and \
             whether it recovers",
        )];
    }
    if case.constant_failure_share().is_some() {
        return vec![Sentence::from(
            "look at the failures at a low load: plimsoll run at a low rate shows these failures",
        )];
    }
    if case.best_rps <= 0.0 {
        return vec![Sentence::from("first make a request succeed: plimsoll run shows the server's responses")];
    }
    if !case.is_seen() {
        let more =
            Sentence::from("loads at a low rate, at the load line and past the load line: give the study more time (");
        return vec![more.remedy(Remedy::Budget).words(")")];
    }
    let of = |cause: &Cause| {
        let card = cause_description(*cause).filter(|card| !card.missing_evidence.is_empty())?;
        Some(Sentence::from(format!("{cause}: ")).then(&card.missing_evidence.into()))
    };
    let mut told: Vec<Sentence> = possible.iter().filter_map(of).collect();
    told.dedup();
    if case.line.get(Signal::ServerCores).is_none() {
        let reasons = case.line.unseen.iter().chain(&case.low.unseen).chain(&case.past.unseen);
        let why = reasons.into_iter().next().cloned().unwrap_or_else(|| "no probe ran".to_owned());
        told.insert(0, format!("the server's process was not observed: {why}").into());
    }
    told
}
