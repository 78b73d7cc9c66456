//! A digest of requests and load options ([`ExperimentSpec::traffic_digest`]): runs with different
//! digests must not be compared.
//!
//! The digest does not include the server's address, because a service that moved to another
//! address is still the same service. The digest does not include the seed, because loads with
//! different seeds measure the same traffic. The digest is computed from the recorded plan, so that
//! older run files with the same traffic have the same digest.

use crate::load::LoadShape;
use crate::record::{PlanRecord, TrafficRecord};
use crate::redact::short_digest;
use crate::spec::ExperimentSpec;
use serde::Serialize;

/// The parts of one plan that the digest includes.
#[derive(Serialize)]
struct PlanDigestInput<'a> {
    traffic: TrafficDigestInput<'a>,
    http: &'a str,
    streams_max: u32,
    keep_alive: bool,
    tls: bool,
    unix: bool,
    /// Spacing of arrivals in a search for the load line; `None` for other studies.
    search_arrivals: Option<&'static str>,
    /// The load of a single run; `None` for studies that choose their loads themselves.
    load: Option<LoadDigestInput>,
}

/// The parts of the traffic that the digest includes. The order is: routes, route choice,
/// scenarios, tables of values, names of variables, digest of setup and teardown, record of the
/// request list.
#[derive(Serialize)]
struct TrafficDigestInput<'a>(
    Vec<serde_json::Value>,
    serde_json::Value,
    serde_json::Value,
    serde_json::Value,
    &'a [String],
    &'a Option<String>,
    serde_json::Value,
);

#[derive(Serialize)]
struct LoadDigestInput {
    open: bool,
    curve: String,
    arrivals: &'static str,
}

impl ExperimentSpec {
    /// Computes a short digest of the requests and load options of all plans.
    pub fn traffic_digest(&self) -> String {
        let plans: Vec<PlanDigestInput> = self.plans().into_iter().map(|plan| plan_digest_input(self, plan)).collect();
        short_digest(serde_json::to_string(&plans).unwrap_or_default().as_bytes())
    }
}

fn plan_digest_input<'a>(spec: &ExperimentSpec, plan: &'a PlanRecord) -> PlanDigestInput<'a> {
    let PlanRecord { traffic, load, connection_plan } = plan;
    let TrafficRecord { origin: _, routes, choice, scenarios, data, variables, setup_teardown_digest, request_list } =
        traffic;
    let json = |value: Result<serde_json::Value, serde_json::Error>| value.unwrap_or_default();
    let of_load = |shape: &LoadShape| LoadDigestInput {
        open: shape.is_open(),
        curve: shape.curve().to_string(),
        arrivals: shape.arrival_spacing().name(),
    };
    PlanDigestInput {
        traffic: TrafficDigestInput(
            routes.iter().map(|route| json(serde_json::to_value(route))).collect(),
            json(serde_json::to_value(choice)),
            json(serde_json::to_value(scenarios)),
            json(serde_json::to_value(data)),
            variables,
            setup_teardown_digest,
            json(serde_json::to_value(request_list)),
        ),
        http: connection_plan.http.name(),
        streams_max: connection_plan.streams_max,
        keep_alive: connection_plan.keep_alive,
        tls: connection_plan.tls.is_some(),
        unix: connection_plan.unix.is_some(),
        search_arrivals: spec.search_spec().map(|search| search.arrivals.name()),
        load: matches!(spec, ExperimentSpec::Run(_)).then(|| of_load(&load.shape)),
    }
}
