//! The twin of `grpc` for a build without gRPC: a plan with calls is refused before any request is
//! sent.
//!
//! Not here: gRPC (`grpc`).

use plimsoll_model::failure::Failure;
use plimsoll_model::grpc_message::MessageTexts;
use plimsoll_model::terms::SchemaTerms;
use plimsoll_model::{Plan, Terms};
use plimsoll_traffic::grpc::{Schema, SchemaError};

fn refused() -> Failure {
    Failure::usage(format!("{}: build it with --features grpc", SchemaError::NoGrpc))
}

/// Refuses a plan with calls.
pub fn make_messages(plan: &mut Plan, _: &Terms<String>) -> Result<(), Failure> {
    match plan.traffic.routes.iter().any(|route| route.grpc.is_some()) {
        true => Err(refused()),
        false => Ok(()),
    }
}

/// No converters.
pub fn texts(plan: &Plan) -> Result<MessageTexts, Failure> {
    Ok(plan.traffic.routes.iter().map(|_| None).collect())
}

/// Always refused.
pub fn of_files(_: &SchemaTerms<String>) -> Result<Schema, Failure> {
    Err(refused())
}

/// Always refused.
pub fn learn(_: &Plan, _: &[&str]) -> Result<Schema, Failure> {
    Err(refused())
}

/// Nothing to check.
pub fn refuse_unhealthy(_: &Plan) -> Result<(), Failure> {
    Ok(())
}
