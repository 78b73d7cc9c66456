//! A digest of what was asked, and how ([`ExperimentSpec::traffic_digest`]): runs with another one
//! must not be compared.
//!
//! Where it was asked is not in it: a service that moved to another address is the same service.
//! Neither is a seed, since another draw of the same traffic is the same question. It is made of a
//! record, as files have it, so that a file of before has the same.

use crate::load::LoadShape;
use crate::record::{PlanRecord, TrafficRecord};
use crate::redact::digest;
use crate::spec::ExperimentSpec;
use serde::Serialize;

/// What the digest of one plan is made of.
#[derive(Serialize)]
struct DigestedPlan<'a> {
    traffic: DigestedTraffic<'a>,
    http: &'a str,
    streams_max: u32,
    keep_alive: bool,
    tls: bool,
    unix: bool,
    /// How the arrivals of a search are spaced.
    search_arrivals: Option<&'static str>,
    /// The load, where it is a part of the question: a search sets it itself.
    load: Option<DigestedLoad>,
}

#[derive(Serialize)]
struct DigestedTraffic<'a>(
    Vec<serde_json::Value>,
    serde_json::Value,
    serde_json::Value,
    serde_json::Value,
    &'a [String],
    &'a Option<String>,
    serde_json::Value,
);

#[derive(Serialize)]
struct DigestedLoad {
    open: bool,
    curve: String,
    arrivals: &'static str,
}

impl ExperimentSpec {
    /// Enough of a digest of all plans to tell other traffic by.
    pub fn traffic_digest(&self) -> String {
        let plans: Vec<DigestedPlan> = self.plans().into_iter().map(|plan| digested(self, plan)).collect();
        digest(serde_json::to_string(&plans).unwrap_or_default().as_bytes())
    }
}

fn digested<'a>(asked: &ExperimentSpec, plan: &'a PlanRecord) -> DigestedPlan<'a> {
    let PlanRecord { traffic, load, carriage } = plan;
    let TrafficRecord { origin: _, routes, choice, scenarios, data, variables, around_digest, listed } = traffic;
    let json = |value: Result<serde_json::Value, serde_json::Error>| value.unwrap_or_default();
    let of_load = |shape: &LoadShape| DigestedLoad {
        open: shape.is_open(),
        curve: shape.curve().to_string(),
        arrivals: shape.arrivals().word(),
    };
    DigestedPlan {
        traffic: DigestedTraffic(
            routes.iter().map(|route| json(serde_json::to_value(route))).collect(),
            json(serde_json::to_value(choice)),
            json(serde_json::to_value(scenarios)),
            json(serde_json::to_value(data)),
            variables,
            around_digest,
            json(serde_json::to_value(listed)),
        ),
        http: carriage.http.name(),
        streams_max: carriage.streams_max,
        keep_alive: carriage.keep_alive,
        tls: carriage.tls.is_some(),
        unix: carriage.unix.is_some(),
        search_arrivals: asked.search().map(|search| search.arrivals.word()),
        load: matches!(asked, ExperimentSpec::Run(_)).then(|| of_load(&load.shape)),
    }
}
