//! The texts for an unknown cause: the possible causes, and the missing observations that would
//! show which cause applies.

use super::causes::Cause;
use super::causes::card::PROCESS_PROBES_ADVICE;
use super::causes::cause_card;
use super::server_facts::ServerFacts;
use super::signals::Signal;
use crate::format;
use crate::sentence::{Remedy, Sentence};

/// Returns the sentence that the cause is not known, with the reason or with the possible causes.
pub(super) fn unknown_cause_sentence(case: &ServerFacts, possible: &[Cause]) -> String {
    if let Some(server_loss) = &case.target_loss {
        return format!("the bottleneck is not known: {server_loss}");
    }
    if let Some(answered_rps) = case.goodput_of_broken_server_rps() {
        return format!(
            "the bottleneck is not known: the server has not recovered from the search. The load line was \
             {load_line}, and only {success_rps} of {offered_load} succeed now",
            load_line = case.load_line_text(),
            success_rps = format::rate(answered_rps),
            offered_load = case.rate_text(case.low.get(Signal::Offered).unwrap_or(0.0))
        );
    }
    if let Some(failing) = &case.constant_failure {
        return format!("the bottleneck is not known: {failure}, so no load meets the SLO", failure = failing.text);
    }
    if let Some(share) = case.constant_failure_share() {
        let kind = case.low.failures.iter().max_by_key(|(_, times)| *times).map_or("", |(how, _)| how.as_str());
        return format!(
            "the bottleneck is not known: {share_percent} of the requests fail even at a low load ({kind}) without \
             a queue, so no load meets the SLO",
            share_percent = format::share(share)
        );
    }
    if case.best_rps > 0.0 && !case.has_steady_loads() {
        return "the bottleneck is not known: the budget was too short for the steady loads that reveal the bottleneck"
            .to_owned();
    }
    if let Some(held_rps) = highest_rate_in_budget(case) {
        let rate = case.rate_text(held_rps);
        return format!(
            "the bottleneck is not known: the server met the SLO at {rate} after the search, and the budget allowed \
             no higher rate"
        );
    }
    match possible {
        [] if case.best_rps <= 0.0 => "the bottleneck is not known: no request succeeded".to_owned(),
        [] => "the bottleneck is not known: no observed resource is saturated".to_owned(),
        [cause] => {
            format!("the bottleneck is not known: the cause '{cause}' is possible, but the evidence is too weak")
        }
        [cause_a, cause_b, ..] => {
            format!("the bottleneck is not known: the observations fit the causes '{cause_a}' and '{cause_b}'")
        }
    }
}

/// Returns the highest rate that met the SLO, requests a second, if the server met the SLO at every
/// rate for which the budget had time.
fn highest_rate_in_budget(case: &ServerFacts) -> Option<f64> {
    case.held_past_rps.filter(|_| case.upper_rps.is_none() && case.has_throughput_plateau() == Some(false))
}

/// Returns advice on the observations that would show the cause, as sentences without a full stop.
pub(super) fn missing_evidence(case: &ServerFacts, possible: &[Cause]) -> Vec<Sentence> {
    if case.target_loss.is_some() {
        return vec![Sentence::from(
            "find out why the server stopped (its log, its exit status), and restart the server",
        )];
    }
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
    if !case.has_steady_loads() {
        let more = Sentence::from(
            "for loads at a low rate, at the load line and above the load line, give the study more time (",
        );
        return vec![more.remedy(Remedy::Budget).words(")")];
    }
    if highest_rate_in_budget(case).is_some() {
        let more = Sentence::from("for loads at higher rates, give the study more time (");
        return vec![more.remedy(Remedy::Budget).words(")")];
    }
    let is_process_observed = case.line.get(Signal::ServerCores).is_some();
    let of = |cause: &Cause| {
        let advice = cause_card(*cause)?.missing_evidence;
        let is_known = is_process_observed && advice == PROCESS_PROBES_ADVICE;
        (!advice.is_empty() && !is_known).then(|| Sentence::from(format!("{cause}: ")).append_sentence(&advice.into()))
    };
    let mut told: Vec<Sentence> = possible.iter().filter_map(of).collect();
    told.dedup();
    let loads = [&case.line, &case.low, &case.past];
    if !is_process_observed {
        let reason = loads.into_iter().flat_map(|load| &load.unseen).next().cloned();
        let reason = reason.unwrap_or_else(|| "no probe ran".to_owned());
        told.insert(0, format!("the server's process was not observed: {reason}").into());
    } else if loads.into_iter().any(|load| load.disturbed.is_some()) {
        told.push(
            "other programs or the machine's host disturbed the loads: run explain again on an idle machine".into(),
        );
    } else if possible.len() > 1 {
        let more = Sentence::from("for experiments that decide between these causes, give the study more time (");
        told.push(more.remedy(Remedy::Budget).words(")"));
    }
    told
}
