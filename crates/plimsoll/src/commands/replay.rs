//! `plimsoll replay`: sends the requests of access logs again, with the recorded timing. Once the
//! plan is made, the command works like `plimsoll run`.

use super::traffic::{LogReadingDisplay, log_reading_settings};
use super::{replay_file, run};
use crate::args::{LogArgs, ReplayArgs, RequestArgs, SchemaArgs, ScriptArgs, join_conditions, redaction_level};
use crate::plan_from_args;
use plimsoll_model::completion::TrafficFromFile;
use plimsoll_model::experiment_settings::ReplaySettings;
use plimsoll_model::failure::Failure;
use plimsoll_model::units::SECOND;
use plimsoll_model::{ExperimentSettings, LoadShape, Plan, RunSpec};
use plimsoll_study::fields::{self, path_text};
use plimsoll_study::log_replay;
use plimsoll_study::quantity::{parse_factor_milli, parse_positive_time};
use std::path::PathBuf;

/// Converts the flags to a load, reading the logs.
pub fn spec_from_args(args: &ReplayArgs) -> Result<(RunSpec<Plan>, ExperimentSettings<String>), Failure> {
    let speed_milli = parse_factor_milli("--speed", args.speed.as_deref())?;
    let scale_milli = parse_factor_milli("--scale", args.scale.as_deref())?;
    if let Some(file) = replay_file::find_traffic_file(&args.logs) {
        return replay_file::spec_from_args(args, file, shared_request_args(args), scale_milli);
    }
    let (stop_if, fail_if) = run::parse_conditions(&args.stop_if, &join_conditions(&args.fail_if))?;
    let Some(target) = &args.target else {
        return Err(Failure::usage("--target URL: a log does not name its target; add --target URL"));
    };
    if args.generator.arrivals.is_some() {
        return Err(Failure::usage("--arrivals: the log sets the times of requests; leave --arrivals out"));
    }
    let length_ns = args.duration.as_deref().map(|text| parse_positive_time("--duration", text)).transpose()?;
    // All flags are checked before a long log is read.
    let (mut plan, mut settings) =
        plan_from_args::plan_for_url(&shared_request_args(args), &args.generator, &ScriptArgs::default())?;
    let words = LogOptions {
        logs: &args.logs,
        target,
        headers: &args.headers,
        reading: &args.log,
        only: &args.only,
        skip: &args.skip,
        with_unsafe: args.allow_unsafe,
    };
    let replay = ReplaySettings { speed_milli, scale_milli, length_ns, ..words.replay_settings(&plan)? };
    settings.probes = plan_from_args::probe_settings(&args.probes)?;
    settings.profiles = plan_from_args::profile_settings(&args.profiles);
    settings.output = plan_from_args::stored_output_settings(&args.out, args.output.as_deref(), &args.place)?;
    settings.fail_if = fail_if;
    settings.on_inconclusive = plan_from_args::verdict_when_inconclusive(&args.inconclusive);
    let TrafficFromFile { traffic, arrivals } = log_replay::traffic_from_logs(
        &replay,
        plan.load.seed,
        redaction_level(args.redact, args.keep_failed_bodies),
        args.out.quiet,
        &mut LogReadingDisplay::new(),
    )?;
    plan.traffic = traffic;
    if let Some(arrivals) = arrivals {
        plan.load.duration_ns = arrivals.rate().duration_ns();
        plan.load.shape = LoadShape::ArrivalTimes { arrivals };
    }
    if plan.load.duration_ns.is_none_or(|ns| ns > 120 * SECOND) {
        plan.load.interval_ns = SECOND;
    }
    settings.replay = Some(replay);
    Ok((RunSpec { plan, stop_if, profiles: None }, settings))
}

/// The options about logs that several commands share, as the user typed them.
pub struct LogOptions<'a> {
    pub logs: &'a [PathBuf],
    /// The URL to which the requests are sent.
    pub target: &'a str,
    pub headers: &'a [String],
    pub reading: &'a LogArgs,
    pub only: &'a [String],
    pub skip: &'a [String],
    pub with_unsafe: bool,
}

impl LogOptions<'_> {
    /// Converts the options to the settings of a replay that run files record. The success statuses
    /// and the timeout come from `plan`.
    pub fn replay_settings(&self, plan: &Plan) -> Result<ReplaySettings<String>, Failure> {
        Ok(ReplaySettings {
            logs: self.logs.iter().map(|log| path_text("LOG", log)).collect::<Result<_, _>>()?,
            target: self.target.to_owned(),
            headers: self.headers.iter().map(|text| header_text(text)).collect::<Result<_, _>>()?,
            ok_status: plan.traffic.routes[0].ok_status.clone(),
            timeout_ns: plan.traffic.routes[0].timeout_ns,
            reading: log_reading_settings(self.reading),
            speed_milli: 1000,
            scale_milli: 1000,
            only: self.only.to_vec(),
            skip: self.skip.to_vec(),
            with_unsafe: self.with_unsafe,
            length_ns: None,
            draws_sessions: false,
        })
    }
}

/// Returns the request options that all requests of the log share: target, header fields and
/// connection settings.
fn shared_request_args(args: &ReplayArgs) -> RequestArgs {
    RequestArgs {
        url: args.target.clone(),
        file: None,
        curl: None,
        target: None,
        method: None,
        headers: args.headers.clone(),
        body: None,
        timeout: args.timeout.clone(),
        ok_status: args.ok_status.clone(),
        follow: None,
        ok_grpc: None,
        in_turn: false,
        schema: SchemaArgs::default(),
        no_keepalive: args.no_keepalive,
        max_connections: args.max_connections.clone(),
        connection: args.connection.clone(),
        no_preflight: args.no_preflight,
        allow_public: args.allow_public,
        redact: args.redact,
        keep_failed_bodies: args.keep_failed_bodies,
    }
}

/// Parses a header field, and formats the field as run files record header fields: `Name: value`.
fn header_text(text: &str) -> Result<String, Failure> {
    fields::parse_header_flag(text).map(|(name, value)| format!("{name}: {value}"))
}
