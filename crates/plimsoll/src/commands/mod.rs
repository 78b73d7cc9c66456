//! The commands, one file each: they connect arguments, the engine, the analysis and the report, and do no more.

pub mod baseline;
pub mod capture;
mod changes;
pub mod check;
pub mod clean;
pub mod demo;
pub mod diff;
pub mod experiment;
pub mod explain;
pub mod find;
pub mod grpc;
pub mod import;
pub mod model;
pub mod overload;
pub mod profile;
pub mod prove;
pub mod replay;
mod replay_file;
pub mod report;
pub mod rerun;
pub mod run;
mod search;
pub mod show;
pub mod sweep;
pub mod traffic;

use crate::failure::Failure;
use crate::live::Live;
use plimsoll_analysis::Summary;
use plimsoll_model::{HttpChoice, Injector, Plan, Terms};

/// Asks once before the load, unless told not to; returns warnings: of an answer that would not count, of more streams than the server
/// takes. What the server has taken of the protocols offered is what all loads speak from there on.
pub fn preflight(plan: &mut Plan, injector: &Injector, terms: &Terms<String>) -> Result<Vec<String>, Failure> {
    first_answer(plan, injector, terms).map(|(warnings, _)| warnings)
}

/// The same with how long the answer took, in ns; 0 if it was skipped.
pub fn first_answer(
    plan: &mut Plan,
    injector: &Injector,
    terms: &Terms<String>,
) -> Result<(Vec<String>, u64), Failure> {
    if !terms.preflight {
        return Ok((Vec::new(), 0));
    }
    crate::grpc::refuse_unhealthy(plan)?;
    let Some(answer) = crate::preflight::ask(plan, injector)? else { return Ok((Vec::new(), 0)) };
    let ended = answer.ended();
    let crate::preflight::Answer { status, is_h2, streams_allowed, took_ns, text, .. } = answer;
    let carriage = &mut plan.carriage;
    if carriage.streams_max > 1 && !is_h2 {
        return Err(Failure::usage(format!(
            "--streams {}: the server speaks HTTP/1.1 only, which carries one request at a time on a connection",
            carriage.streams_max
        )));
    }
    carriage.speak(if is_h2 { HttpChoice::H2 } else { HttpChoice::H1 });
    let shared = streams_allowed.filter(|allowed| *allowed < carriage.streams_max).map(|allowed| {
        format!(
            "--streams {}: the server takes {allowed} at a time on a connection, and what is beyond that waits on our side: --streams \
             {allowed} spreads it over more connections",
            carriage.streams_max
        )
    });
    let call = plan.traffic.first().and_then(|route| route.grpc.as_ref());
    let warning = match call {
        _ if !plan.traffic.succeeds(status) => {
            Some(format!("the first answer had status {status}, which does not count as success (--ok-status): {text}"))
        }
        Some(call) if !call.ok.contains(ended) => {
            let ended = ended.name();
            Some(format!("the first call ended with {ended}, which does not count as success (--ok-grpc): {text}"))
        }
        _ => None,
    };
    Ok((shared.into_iter().chain(warning).collect(), took_ns))
}

/// After a load: how many ports are taken by connections that are over, if connections were short of ports.
pub fn note_ports(live: &mut Live, summary: &Summary) {
    if summary.load.connect_errors.get(plimsoll_sys::tcp::NO_PORT_LEFT) > 0 {
        live.note(&format!("{} local ports are in TIME-WAIT now", plimsoll_sys::process::time_wait()));
    }
}
