//! Carries a plan out on this machine, fast and honestly. One public entry: [`prepare`], whose load is then run.
//!
//! Each worker thread owns an event loop, its connections and its recorder; workers share nothing but the wish to stop.
//! Every 100 ms each hands over what it counted; the caller sees the sum and may end the run.
//!
//! This crate knows no command line, no reports or analyses, no probes and no async runtime. Requests that fail are
//! data; only what keeps a plan from being carried out at all is an [`Error`].

#![forbid(unsafe_code)]

mod addresses;
mod answers;
mod authored;
mod collect;
mod connection;
mod encode;
mod exchanges;
mod failed;
mod fill;
mod job;
mod json_find;
mod net;
mod prepared;
mod recorder;
#[cfg(test)]
mod sim;
mod source;
mod spin;
mod worker;

pub use answers::{PatternError, pattern};
pub use collect::{Collector, Phase, Reported, Tick, TickListener};
pub use encode::{encode_request, tls_client};
pub use prepared::{Authorship, Prepared, prepare, prepare_authored};
pub use source::SourceError;

use plimsoll_model::{Plan, Route, RouteNumber, Stripe, Traffic};
use plimsoll_wire::{EncodedRequest, tls};
use source::Source;

/// Why a plan could not be carried out at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request cannot be written as HTTP, or not be filled in.
    #[error(transparent)]
    Request(#[from] SourceError),
    /// The plan names no address to connect to.
    #[error("the host has no address")]
    NoAddress,
    /// TLS cannot be set up as the plan asks.
    #[error(transparent)]
    Tls(#[from] tls::ConfigError),
    /// The system refused what an event loop needs.
    #[error("the system refused an event loop: {0}")]
    System(#[from] std::io::Error),
}

/// The request of a route as the first session would send it.
pub fn first_request(plan: &Plan, route: RouteNumber) -> Result<EncodedRequest, Error> {
    Ok(Source::compile(plan)?.route(route).request.clone())
}

/// Whether a route of the plan can be asked, whatever is filled in.
pub fn check_route(plan: &Plan, route: &Route) -> Result<(), Error> {
    if !route.filled.any() {
        encode_request(plan, &route.request).map_err(SourceError::Request)?;
        return Ok(());
    }
    // With none of the other routes, of which there may be very many.
    let Traffic { origin, choice, data, variables, redact, routes: _, first: _ } = &plan.traffic;
    let traffic = Traffic {
        origin: origin.clone(),
        routes: vec![route.clone()],
        choice: *choice,
        first: None,
        data: data.clone(),
        variables: variables.clone(),
        redact: *redact,
    };
    Source::compile(&Plan { traffic, load: plan.load.clone(), carriage: plan.carriage.clone() })?;
    Ok(())
}

/// What the first arrivals of `plan` ask: the route of each, and its request as it goes on the wire.
pub fn first_requests(plan: &Plan, count: u64) -> Result<Vec<(RouteNumber, Vec<u8>)>, Error> {
    let mut source = Source::compile(plan)?.for_worker(Stripe::ALL, None);
    let now_ns = plimsoll_sys::clock::monotonic_ns();
    let asked = (0..count).filter_map(|arrival| match source.next(arrival, None) {
        source::Next::Send(route) | source::Next::Wait(_, route) => {
            source.fill(0, arrival, route, now_ns);
            Some((route, source.request(0, route).h1().to_vec()))
        }
        source::Next::End => None,
    });
    Ok(asked.collect())
}
