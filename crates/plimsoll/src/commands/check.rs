//! `plimsoll check`: checks whether a traffic file is valid, and prints its first requests. Nothing
//! is sent, and no host name is resolved.

use crate::args::CheckArgs;
use crate::plan_from_args;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::{ExperimentSettings, HttpChoice};
use plimsoll_report::{CheckedRequest, TrafficCheck, render_traffic_check};
use plimsoll_study::file_traffic::plan_from_traffic_file;
use plimsoll_study::output::print;
use plimsoll_study::{grpc, traffic_file};

/// The number of requests of the traffic file that `plimsoll check` prints.
const REQUESTS_SHOWN: usize = 5;
/// Reads the traffic file and prints its first requests. Returns the exit code.
pub fn run(args: &CheckArgs) -> Result<u8, Failure> {
    let file = traffic_file::read_to_show(&args.file)?;
    let (mut plan, mix) =
        plan_from_traffic_file(&file, &args.file.display().to_string(), args.target.clone(), args.http.as_deref())?;
    plan.load.seed = args.seed;
    let http = plan.connection_plan.http;
    let schema = plan_from_args::schema_settings(&args.schema)?;
    let is_grpc = plan.traffic.origin.is_grpc();
    match (&schema, is_grpc) {
        (Some(_), true) => {
            let mut called = plan.clone();
            grpc::encode_grpc_bodies(
                &mut called,
                &ExperimentSettings { mix: Some(mix), schema: schema.clone(), ..ExperimentSettings::default() },
            )?;
            traffic_file::check_encodable(&called)?;
        }
        (Some(_), false) => {
            return Err(Failure::usage(
                "--proto, --descriptor-set: these flags need gRPC; write grpc:// or grpcs:// in --target, or in the \
                 'base' of the file of traffic",
            ));
        }
        (None, _) => {}
    }
    for route in &mut plan.traffic.routes {
        if let Some(call) = &mut route.grpc {
            // The bodies of gRPC calls are printed as in the traffic file, not as encoded messages.
            call.content = Some(route.request.body.clone());
        }
    }
    traffic_file::check_encodable(&plan)?;
    let first = plimsoll_engine::first_requests(&plan, REQUESTS_SHOWN)?;
    let requests: Vec<CheckedRequest> = first
        .iter()
        .map(|asked| CheckedRequest {
            arrival: asked.arrival,
            wait_ns: asked.wait_ns,
            route: asked.route,
            bytes: &asked.bytes,
        })
        .collect();
    print(&render_traffic_check(&TrafficCheck {
        traffic: &plan.traffic,
        negotiates_http_version: http == HttpChoice::Auto,
        has_schema: schema.is_some(),
        seed: args.seed,
        requests_max: REQUESTS_SHOWN,
        first_requests: &requests,
    }));
    Ok(exit::SUCCESS)
}
