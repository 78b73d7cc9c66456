//! `plimsoll replay` of a traffic file that contains its own load, as `plimsoll model` writes it.
//! The command applies the same load as `plimsoll run -f`. In addition, flags can multiply the
//! number of visitors, or limit the load to its first part.
//!
//! Not here: replaying logs (`replay`), and the format of the file (`plimsoll-traffic`).

use super::run;
use crate::args::{FleetArgs, ReplayArgs, RequestArgs, RunArgs, ScriptArgs};
use plimsoll_model::failure::Failure;
use plimsoll_model::{ExperimentSettings, Plan, RunSpec};
use plimsoll_report::load_text;
use plimsoll_study::output::print_to_stderr;
use plimsoll_study::quantity::parse_positive_time;
use plimsoll_study::traffic_file;
use std::path::{Path, PathBuf};

/// Returns the traffic file among the files to replay, recognised by its suffix; `None` if no file
/// has such a suffix.
pub fn find_traffic_file(logs: &[PathBuf]) -> Option<&Path> {
    let is_model = |path: &&PathBuf| {
        let suffix = path.extension().map(|suffix| suffix.to_ascii_lowercase());
        suffix.is_some_and(|suffix| ["toml", "yaml", "yml"].iter().any(|it| suffix == *it))
    };
    logs.iter().find(is_model).map(PathBuf::as_path)
}

/// Reads the traffic file `file`, and converts the flags to the load of the traffic file. `request`
/// has the options that all requests share. `scale_milli` multiplies the load, in thousandths.
pub fn spec_from_args(
    args: &ReplayArgs,
    file: &Path,
    request: RequestArgs,
    scale_milli: u64,
) -> Result<(RunSpec<Plan>, ExperimentSettings<String>), Failure> {
    let file_name = file.display();
    refuse_log_flags(args, file)?;
    let length_ns = args.duration.as_deref().map(|text| parse_positive_time("--duration", text)).transpose()?;
    let carried = traffic_file::read(file)?.load().clone();
    if carried.rate.is_none() && carried.users.is_none() {
        return Err(Failure::usage(format!(
            "{file_name} has no [load] with a rate or users: use plimsoll run -f {file_name} --rate N"
        )));
    }
    let request = RequestArgs { url: None, file: Some(file.to_owned()), target: args.target.clone(), ..request };
    let (mut asked, settings) = run::spec_from_args(&RunArgs {
        fleet: FleetArgs::default(),
        request,
        concurrency: None,
        rate: None,
        requests: None,
        duration: None,
        warmup: "0s".to_owned(),
        generator: args.generator.clone(),
        probes: args.probes.clone(),
        stop_if: args.stop_if.clone(),
        fail_if: args.fail_if.clone(),
        inconclusive: args.inconclusive.clone(),
        profiles: args.profiles.clone(),
        output: args.output.clone(),
        out: args.out.clone(),
        place: args.place.clone(),
        script: ScriptArgs::default(),
    })?;
    let plan = &mut asked.plan;
    let is_safe = |method: &str| matches!(method, "GET" | "HEAD");
    if let Some(route) = plan.traffic.routes.iter().find(|route| !is_safe(&route.request.method))
        && !args.allow_unsafe
    {
        return Err(Failure::usage(format!(
            "{file_name} contains '{request}' with {method}: methods other than GET and HEAD need --allow-unsafe",
            request = route.label,
            method = route.request.method
        )));
    }
    plan.load.scale(scale_milli as f64 / 1e3).map_err(|users| {
        Failure::usage(format!("--scale: the scaled load has {users} users; a load must have 1 to 1M users"))
    })?;
    if let Some(length_ns) = length_ns {
        plan.load.shorten(length_ns);
    }
    if !args.out.quiet {
        print_to_stderr(&format!("replays {file_name}: {}", load_text(&plan.record())));
    }
    Ok((asked, settings))
}

/// Returns a usage error if the user gives further files, or a flag that applies only to logs.
fn refuse_log_flags(args: &ReplayArgs, file: &Path) -> Result<(), Failure> {
    let file_name = file.display();
    if args.logs.len() > 1 {
        return Err(Failure::usage(format!("{file_name} is a file of traffic, not a log: replay this file alone")));
    }
    if args.speed.is_some() {
        return Err(Failure::usage(format!(
            "--speed: {file_name} is a file of traffic, which has no request times to compress; leave --speed out, or \
             double the sessions with --scale 2x"
        )));
    }
    for (given, flag) in [(!args.only.is_empty(), "--only"), (!args.skip.is_empty(), "--skip")] {
        if given {
            return Err(Failure::usage(format!(
                "{flag}: plimsoll sends all requests of the file of traffic {file_name}; leave {flag} out, or remove \
                 requests from the file"
            )));
        }
    }
    let log = &args.log;
    for (given, flag) in [
        (log.log_format.is_some(), "--log-format"),
        (log.field.is_some(), "--field"),
        (log.session.is_some(), "--session"),
        (!log.fold.is_empty(), "--fold"),
        (log.strict, "--strict"),
    ] {
        if given {
            return Err(Failure::usage(format!(
                "{flag}: {file_name} is a file of traffic, and {flag} applies only to logs; leave {flag} out"
            )));
        }
    }
    Ok(())
}
