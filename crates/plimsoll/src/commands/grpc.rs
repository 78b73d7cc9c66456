//! `plimsoll grpc`: shows the services of a gRPC server, or a method with an example body. No load
//! is sent.

use crate::args::{GrpcArgs, GrpcView};
use crate::plan_from_args;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_report::grpc_services::{describe_services, services_list};
use plimsoll_study::base::ResolvedTarget;
use plimsoll_study::grpc::{reflected_schema, schema_from_files};
use plimsoll_study::output::print;

/// Reads the server's message types and prints its services or methods. Returns the exit code.
pub fn run(args: &GrpcArgs) -> Result<u8, Failure> {
    let (plan, settings) = plan_from_args::grpc_server_plan(args)?;
    let plan = ResolvedTarget::resolve_target(&plan, &settings)?.plan;
    let path = &plan.traffic.routes[0].request.target;
    let (service, method) = path.trim_start_matches('/').split_once('/').unwrap_or((path.trim_start_matches('/'), ""));
    let schema = match &settings.schema {
        Some(files) => schema_from_files(files)?,
        None if args.shown == GrpcView::Describe && !service.is_empty() => reflected_schema(&plan, &[service])?,
        None => reflected_schema(&plan, &[])?,
    };
    let text = match args.shown {
        GrpcView::List => services_list(&schema, service),
        GrpcView::Describe => describe_services(&schema, service, method, &plan.traffic.origin),
    };
    print(&text.map_err(|error| Failure::usage(error.to_string()))?);
    Ok(exit::SUCCESS)
}
