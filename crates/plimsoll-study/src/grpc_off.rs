//! Replaces the module `grpc` in a build without gRPC: plans with gRPC calls are refused before any
//! request is sent.
//!
//! Not here: the gRPC implementation (`grpc`).

use plimsoll_model::experiment_settings::SchemaSettings;
use plimsoll_model::failure::Failure;
use plimsoll_model::grpc_message::RouteMessageConverters;
use plimsoll_model::{ExperimentSettings, Plan};
use plimsoll_traffic::grpc::{Schema, SchemaError};

fn no_grpc_failure() -> Failure {
    Failure::usage(format!("{reason}: build plimsoll with --features grpc", reason = SchemaError::NoGrpc))
}

/// Returns an error if the plan contains gRPC calls, because this build lacks gRPC.
pub fn encode_grpc_bodies(plan: &mut Plan, _: &ExperimentSettings<String>) -> Result<(), Failure> {
    match plan.traffic.routes.iter().any(|route| route.grpc.is_some()) {
        true => Err(no_grpc_failure()),
        false => Ok(()),
    }
}

/// Returns `None` for each route: this build has no message converters.
pub fn message_converters(plan: &Plan) -> Result<RouteMessageConverters, Failure> {
    Ok(plan.traffic.routes.iter().map(|_| None).collect())
}

/// Always returns an error, because this build lacks gRPC.
pub fn schema_from_files(_: &SchemaSettings<String>) -> Result<Schema, Failure> {
    Err(no_grpc_failure())
}

/// Always returns an error, because this build lacks gRPC.
pub fn reflected_schema(_: &Plan, _: &[&str]) -> Result<Schema, Failure> {
    Err(no_grpc_failure())
}

/// Always succeeds: a build without gRPC has no health check.
pub fn refuse_unhealthy(_: &Plan) -> Result<(), Failure> {
    Ok(())
}
