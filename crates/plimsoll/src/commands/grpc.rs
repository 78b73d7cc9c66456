//! `plimsoll grpc`: what a server offers, and a body to start from. Nothing is loaded.

use crate::args::{GrpcArgs, GrpcView};
use crate::plan_from_args;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_report::visible::visible;
use plimsoll_study::base::Base;
use plimsoll_study::grpc::{learn, of_files};
use plimsoll_study::output::print;
use plimsoll_traffic::grpc::reflection::Learner;
use std::fmt::Write;

/// Asks, and shows what was learned.
pub fn run(args: &GrpcArgs) -> Result<u8, Failure> {
    let (plan, terms) = plan_from_args::grpc_server(args)?;
    let plan = Base::reach(&plan, &terms)?.plan;
    let path = &plan.traffic.routes[0].request.target;
    let (service, method) = path.trim_start_matches('/').split_once('/').unwrap_or((path.trim_start_matches('/'), ""));
    let schema = match &terms.schema {
        Some(files) => of_files(files)?,
        None if args.shown == GrpcView::Describe && !service.is_empty() => {
            learn(&plan, || Learner::of_services([service].into_iter()))?
        }
        None => learn(&plan, Learner::of_all)?,
    };
    let wrong = |error: plimsoll_traffic::grpc::SchemaError| Failure::usage(error.to_string());
    let services = if service.is_empty() { schema.services() } else { vec![service.to_owned()] };
    let mut text = String::new();
    for service in &services {
        let methods = schema.methods(service).map_err(wrong)?;
        if args.shown == GrpcView::List {
            let _ = writeln!(text, "{service}");
            methods.iter().for_each(|line| _ = writeln!(text, "  {line}"));
            continue;
        }
        for line in methods {
            let name = line.split('(').next().unwrap_or_default();
            if !method.is_empty() && name != method {
                continue;
            }
            let path = format!("/{service}/{name}");
            let described = schema.method(&path).map_err(wrong)?;
            let url = format!("{}{path}", plan.traffic.origin);
            let _ = writeln!(text, "{service}.{line}\n{}", described.shape());
            let _ = writeln!(text, "plimsoll run {url} -b '{}'\n", described.example());
        }
    }
    if text.is_empty() {
        // With the names that there are.
        schema.method(&format!("/{service}/{method}")).map_err(wrong)?;
    }
    // Names come from the server.
    let lines: Vec<String> = text.lines().map(|line| visible(line).into_owned()).collect();
    print(&format!("{}\n", lines.join("\n").trim_end()));
    Ok(exit::DONE)
}
