//! Builds the command line that repeats a recorded experiment, from the flags that the run file
//! contains. A secret that the run file withholds is therefore not in the built command line.
//!
//! Not here: the content of a run file (`plimsoll_model::experiment_settings`), and parsing command
//! lines (`args`, `plan_from_args`).

use plimsoll_model::completion::has_one_url;
use plimsoll_model::experiment_settings::{
    BUILD_START_NS_MAX_DEFAULT, CLOCK_ERROR_NS_MAX_DEFAULT, LogReadingSettings, ReplaySettings,
};
use plimsoll_model::units::{SECOND, format_exact_duration};
use plimsoll_model::{
    AgentLossPolicy, ArrivalSpacing, BlocksSpec, BodySource, Criterion, EndpointChoice, ExperimentSettings,
    ExperimentSpec, GrpcStatusSet, HttpChoice, LevelDurations, Load, LoadShape, OnInconclusive, PlanRecord,
    RedactedText, RedactionLevel, RouteRecord, Spin, StatusSet,
};
use plimsoll_traffic::target_url::default_port;

/// The default of `--timeout`, in ns. The built command line omits `--timeout` if the flag has its
/// default value.
const DEFAULT_TIMEOUT_NS: u64 = 30 * SECOND;

/// A command line that is being built, as a list of words.
struct CommandLine(Vec<String>);

impl CommandLine {
    fn add_flag_if(&mut self, flag: &str, on: bool) {
        if on {
            self.0.push(flag.to_owned());
        }
    }

    fn add_flag_with_value(&mut self, flag: &str, value: impl std::fmt::Display) {
        self.0.push(format!("{flag}={value}"));
    }

    /// Adds a flag by its name without dashes. With the value `None`, the flag is added without a
    /// value.
    fn add_flag_by_name(&mut self, name: &str, value: Option<&str>) {
        match value {
            Some(value) => self.add_flag_with_value(&format!("--{name}"), value),
            None => self.add_flag_if(&format!("--{name}"), true),
        }
    }

    fn add_optional_flag(&mut self, flag: &str, value: Option<impl std::fmt::Display>) {
        value.into_iter().for_each(|value| self.add_flag_with_value(flag, value));
    }

    fn add_redacted_text_flag(&mut self, flag: &str, text: &Option<RedactedText>) {
        self.add_optional_flag(flag, text.as_ref().map(|text| &text.text));
    }

    fn add_endpoint_flag(&mut self, flag: &str, endpoint: &EndpointChoice<RedactedText>) {
        match endpoint {
            EndpointChoice::ByTarget => self.add_flag_with_value(flag, "auto"),
            EndpointChoice::At(urls) => {
                let urls: Vec<&str> = urls.iter().map(|url| url.text.as_str()).collect();
                self.add_flag_with_value(flag, urls.join(","));
            }
        }
    }
}

/// Returns the words of the command line that repeats an experiment. `settings` are the flags that
/// the run file contains.
pub fn repeat_command_words(spec: &ExperimentSpec, settings: &ExperimentSettings<RedactedText>) -> Vec<String> {
    let command = match spec {
        ExperimentSpec::Run(_) if settings.replay.is_some() => "replay",
        ExperimentSpec::Run(_) => "run",
        ExperimentSpec::Sweep(_) => "sweep",
        ExperimentSpec::Find(_) if settings.demo => "demo",
        ExperimentSpec::Find(_) => "find",
        ExperimentSpec::Explain(_) => "explain",
        ExperimentSpec::Overload(_) => "overload",
        ExperimentSpec::Prove(_) | ExperimentSpec::Ladder(_) => "prove",
    };
    let mut words = CommandLine(vec!["plimsoll".to_owned(), command.to_owned()]);
    let plans = spec.plans();
    let Some(first) = plans.first() else { return words.0 };
    if !settings.demo {
        add_traffic_flags(&mut words, first, settings);
        add_connection_flags(&mut words, first, settings);
    }
    add_study_flags(&mut words, spec, settings);
    add_generator_flags(&mut words, &first.load, spec, settings);
    add_probe_flags(&mut words, spec, settings);
    words.add_optional_flag("--fail-if", settings.fail_if.as_ref());
    words.add_flag_if("--on-inconclusive=pass", settings.on_inconclusive == Some(OnInconclusive::Pass));
    words.add_flag_if("--on-inconclusive=fail", settings.on_inconclusive == Some(OnInconclusive::Fail));
    for (flag, value) in settings.output.flags() {
        words.add_flag_by_name(flag, value.as_deref());
    }
    let beside = matches!(spec, ExperimentSpec::Overload(overload) if overload.second_target.is_some());
    if let Some(replay) = &settings.replay {
        match replay.draws_sessions {
            true => words.0.push(replay.target.text.clone()),
            false => words.0.extend(replay.logs.iter().map(|log| log.text.clone())),
        }
    } else if let Some(mix) = &settings.mix {
        words.0.extend(mix.bases.iter().map(|base| base.text.clone()));
    } else if !settings.demo {
        let shown = if has_one_url(spec) || beside { &plans[..1] } else { &plans[..] };
        words.0.extend(shown.iter().map(|plan| first_request_url(plan)));
    }
    if let Some(script) = settings.script.as_ref().filter(|script| !script.args.is_empty()) {
        words.0.push("--".to_owned());
        words.0.extend(script.args.iter().map(|arg| arg.text.clone()));
    }
    words.0
}

fn add_traffic_flags(words: &mut CommandLine, plan: &PlanRecord, settings: &ExperimentSettings<RedactedText>) {
    let route = plan.traffic.first_route();
    let (ok_status, timeout_ns) = match (&settings.replay, &settings.mix) {
        (Some(replay), _) => {
            add_replay_flags(words, replay);
            (&replay.ok_status, replay.timeout_ns)
        }
        (None, Some(mix)) => {
            words.add_flag_with_value("--file", &mix.file.text);
            mix.headers.iter().for_each(|header| words.add_flag_with_value("--header", &header.text));
            (&mix.ok_status, mix.timeout_ns)
        }
        (None, None) => {
            words.add_optional_flag("--lua", settings.script.as_ref().map(|script| &script.file.text));
            add_request_flags(words, route, settings);
            (&route.ok_status, route.timeout_ns)
        }
    };
    if timeout_ns != DEFAULT_TIMEOUT_NS {
        words.add_flag_with_value("--timeout", format_exact_duration(timeout_ns));
    }
    if *ok_status != StatusSet::default() {
        words.add_flag_with_value("--ok-status", String::from(ok_status.clone()));
    }
    if let Some(ok) = route.ok_grpc.filter(|ok| *ok != GrpcStatusSet::default()) {
        words.add_flag_with_value("--ok-grpc", ok);
    }
    words.add_flag_if("--in-turn", route.in_turn);
    if let Some(schema) = &settings.schema {
        schema.protos.iter().for_each(|file| words.add_flag_with_value("--proto", &file.text));
        schema.proto_paths.iter().for_each(|folder| words.add_flag_with_value("--proto-path", &folder.text));
        words.add_redacted_text_flag("--descriptor-set", &schema.descriptor_set);
    }
    if plan.connection_plan.http != HttpChoice::Auto {
        words.add_flag_with_value("--http", plan.connection_plan.http.name());
    }
    if plan.connection_plan.streams_max > 1 {
        words.add_flag_with_value("--streams", plan.connection_plan.streams_max.to_string());
    }
    words.add_flag_if("--no-keepalive", !plan.connection_plan.keep_alive);
    words.add_optional_flag("--max-connections", settings.connections_max);
    words.add_flag_if("--no-preflight", !settings.preflight && settings.script.is_none());
    words.add_flag_if("--allow-public", settings.public);
    words.add_flag_if("--redact=all", settings.redact == RedactionLevel::All);
    words.add_flag_if("--keep-failed-bodies", settings.redact == RedactionLevel::SecretsButBodies);
}

/// Adds the flags for replaying access logs: the log files, their format, and which requests to
/// send.
fn add_replay_flags(words: &mut CommandLine, replay: &ReplaySettings<RedactedText>) {
    match replay.draws_sessions {
        true => replay.logs.iter().for_each(|log| words.add_flag_with_value("--replay", &log.text)),
        false => words.add_flag_with_value("--target", &replay.target.text),
    }
    replay.headers.iter().for_each(|header| words.add_flag_with_value("--header", &header.text));
    let times = |milli: u64| Some(milli).filter(|milli| *milli != 1000).map(|milli| milli as f64 / 1e3);
    words.add_optional_flag("--speed", times(replay.speed_milli));
    words.add_optional_flag("--scale", times(replay.scale_milli));
    replay.only.iter().for_each(|pattern| words.add_flag_with_value("--only", pattern));
    replay.skip.iter().for_each(|pattern| words.add_flag_with_value("--skip", pattern));
    words.add_flag_if("--allow-unsafe", replay.with_unsafe);
    words.add_optional_flag("--duration", replay.length_ns.map(format_exact_duration));
    let LogReadingSettings { log_format, field, session, fold, strict } = &replay.reading;
    words.add_optional_flag("--log-format", log_format.as_ref());
    words.add_optional_flag("--field", field.as_ref());
    words.add_optional_flag("--session", session.as_ref());
    fold.iter().for_each(|pattern| words.add_flag_with_value("--fold", pattern));
    words.add_flag_if("--strict", *strict);
}

/// Adds the flags that describe the request, for a load with a single URL.
fn add_request_flags(words: &mut CommandLine, route: &RouteRecord, settings: &ExperimentSettings<RedactedText>) {
    let usual = if settings.body.is_some() || route.ok_grpc.is_some() { "POST" } else { "GET" };
    words.add_optional_flag("--method", Some(&route.method).filter(|method| *method != usual));
    // Credentials in the URL are also recorded as an `Authorization` header. The command line omits
    // this `Authorization` header, because the URL already contains the credentials.
    let hidden = settings.targets.first().is_some_and(|target| target.user_info);
    let hidden = hidden.then(|| route.headers.iter().rposition(|(name, _)| name.eq_ignore_ascii_case("authorization")));
    for (at, (name, value)) in route.headers.iter().enumerate() {
        if hidden.flatten() != Some(at) {
            words.add_flag_with_value("--header", format!("{name}: {value}"));
        }
    }
    words.add_optional_flag("--follow", Some(route.redirects_max).filter(|hops| *hops > 0));
    match &settings.body {
        None => {}
        Some(BodySource::Text) if route.body_bytes == 0 => words.add_flag_with_value("--body", ""),
        Some(BodySource::Text) => words.add_flag_with_value("--body", route.redacted_body_text()),
        Some(BodySource::Stdin) => words.add_flag_with_value("--body", "-"),
        Some(BodySource::File(path)) => words.add_flag_with_value("--body", format!("@{}", path.text)),
    }
}

fn add_connection_flags(words: &mut CommandLine, plan: &PlanRecord, settings: &ExperimentSettings<RedactedText>) {
    let connection_plan = &plan.connection_plan;
    words.add_optional_flag(
        "--connect-to",
        settings.connect_to.as_ref().map(|(host, port)| format!("{}:{port}", host_for_url(host))),
    );
    words.add_optional_flag("--unix", connection_plan.unix.as_ref());
    let sources: Vec<String> = settings.injector.sources.iter().map(ToString::to_string).collect();
    words.add_optional_flag("--source-ip", Some(sources.join(",")).filter(|sources| !sources.is_empty()));
    words.add_optional_flag(
        "--resolve-every",
        connection_plan.resolve.as_ref().map(|resolve| format_exact_duration(resolve.every_ns)),
    );
    words.add_flag_if("--close=reset", connection_plan.close_reset);
    words.add_flag_if("--insecure", connection_plan.tls.as_ref().is_some_and(|tls| !tls.verify));
    words.add_redacted_text_flag("--cacert", &settings.issuers);
    words.add_redacted_text_flag("--cert", &settings.certificate);
    words.add_redacted_text_flag("--key", &settings.key);
    words.add_flag_if("--no-resumption", connection_plan.tls.as_ref().is_some_and(|tls| !tls.resume));
}

fn add_study_flags(words: &mut CommandLine, spec: &ExperimentSpec, settings: &ExperimentSettings<RedactedText>) {
    match spec {
        ExperimentSpec::Run(run) => {
            words.add_optional_flag("--stop-if", run.stop_if.as_ref());
            let load = &run.plan.load;
            if !matches!(load.shape, LoadShape::ArrivalTimes { .. }) {
                add_load_flags(words, load);
            }
        }
        ExperimentSpec::Sweep(sweep) => {
            let levels: Vec<String> = sweep.levels.iter().map(u64::to_string).collect();
            words.add_flag_with_value("--concurrency", levels.join(","));
            match sweep.lengths {
                LevelDurations::Fixed(ns) => words.add_flag_with_value("--for", format_exact_duration(ns)),
                LevelDurations::Budget(ns) => words.add_flag_with_value("--budget", format_exact_duration(ns)),
            }
            words.add_flag_with_value("--warmup", format_exact_duration(sweep.warmup_ns));
        }
        ExperimentSpec::Find(find) => {
            words.add_flag_if("--quick", settings.demo_quick);
            if !settings.demo {
                words.add_flag_with_value("--slo", &find.slo);
            }
            words.add_flag_with_value("--budget", format_exact_duration(find.budget_ns));
            words.add_optional_flag("--max-rate", find.max_rate);
            words.add_optional_flag("--soak", find.planning.soak_ns.map(format_exact_duration));
            words.add_optional_flag("--headroom", find.planning.headroom.map(exact_percent));
            words.add_optional_flag("--need", find.planning.need_rps);
        }
        ExperimentSpec::Explain(explain) => {
            words.add_flag_with_value("--slo", &explain.search.slo);
            words.add_flag_with_value("--budget", format_exact_duration(explain.budget_ns));
            words.add_optional_flag("--max-rate", explain.search.max_rate);
            for (flag, value) in settings.interventions.flags() {
                words.add_flag_by_name(flag, value);
            }
            if settings.interventions.vary.is_some() {
                let values: Vec<String> = explain.setting_values.iter().map(f64::to_string).collect();
                words.add_flag_with_value("--values", values.join(","));
            }
        }
        ExperimentSpec::Overload(overload) => {
            words.add_flag_with_value("--slo", &overload.search.slo);
            words.add_flag_with_value("--budget", format_exact_duration(overload.budget_ns));
            words.add_optional_flag("--line", overload.line_rps);
            words.add_optional_flag("--retries", Some(overload.retries).filter(|times| *times > 0));
            words.add_optional_flag("--against", overload.second_target.as_ref().map(first_request_url));
        }
        ExperimentSpec::Prove(prove) => {
            add_build_flags(words, settings);
            words.add_optional_flag(
                "--measure",
                Some(prove.criterion).filter(|it| *it != Criterion::Goodput).map(Criterion::flag_word),
            );
            words.add_flag_with_value("--margin", exact_percent(prove.margin));
            add_block_flags(words, &prove.blocks);
        }
        ExperimentSpec::Ladder(ladder) => {
            add_build_flags(words, settings);
            words.add_flag_if("--ladder", true);
            add_block_flags(words, &ladder.blocks);
        }
    }
}

fn add_load_flags(words: &mut CommandLine, load: &Load) {
    let name = if load.shape.is_open() { "--rate" } else { "--concurrency" };
    words.add_flag_with_value(name, load.shape.curve());
    words.add_optional_flag("--requests", load.requests_max);
    let staged = load.shape.curve().duration_ns().is_some();
    words.add_optional_flag("--duration", load.duration_ns.filter(|_| !staged).map(format_exact_duration));
    words.add_optional_flag("--warmup", Some(load.warmup_ns).filter(|ns| *ns > 0).map(format_exact_duration));
}

fn add_build_flags(words: &mut CommandLine, settings: &ExperimentSettings<RedactedText>) {
    let builds = &settings.builds;
    words.add_redacted_text_flag("--a", &builds.a);
    words.add_redacted_text_flag("--b", &builds.b);
    words.add_redacted_text_flag("--build", &builds.build);
    words.add_redacted_text_flag("--start", &builds.start);
    words.add_optional_flag(
        "--start-timeout",
        Some(builds.start_ns_max).filter(|ns| *ns != BUILD_START_NS_MAX_DEFAULT).map(format_exact_duration),
    );
    words.add_redacted_text_flag("--before-block", &builds.before_block);
    words.add_flag_if("--record-commands", builds.record_commands);
}

fn add_block_flags(words: &mut CommandLine, blocks: &BlocksSpec) {
    words.add_flag_with_value("--budget", format_exact_duration(blocks.budget_ns));
    words.add_optional_flag("--blocks", blocks.blocks_max);
    words.add_flag_if("--allow-different-answers", blocks.answers_may_differ);
    words.add_optional_flag("--concurrency", blocks.users);
    words.add_optional_flag("--rate", blocks.rate);
    words.add_optional_flag("--for", blocks.load_ns.map(format_exact_duration));
    words.add_optional_flag("--warmup", blocks.warmup_ns.map(format_exact_duration));
}

fn add_generator_flags(
    words: &mut CommandLine,
    load: &Load,
    spec: &ExperimentSpec,
    settings: &ExperimentSettings<RedactedText>,
) {
    words.add_optional_flag("--threads", settings.injector.workers);
    match settings.injector.spin {
        Spin::Auto => {}
        Spin::On => words.add_flag_with_value("--spin", "on"),
        Spin::Off => words.add_flag_with_value("--spin", "off"),
    }
    words.add_flag_with_value("--seed", load.seed);
    if let Some(fleet) = &settings.fleet {
        words.add_flag_with_value("--fleet", &fleet.url);
        words.add_flag_if("--fleet-copy", fleet.copied);
        words.add_flag_if("--on-loss=stop", fleet.on_loss == AgentLossPolicy::Stop);
        words.add_optional_flag("--agents", fleet.agents.as_deref());
        words.add_optional_flag("--wait", fleet.wait_ns.map(format_exact_duration));
        words.add_optional_flag("--weights", fleet.weights.as_deref());
        words.add_optional_flag(
            "--max-skew",
            Some(fleet.skew_ns_max).filter(|ns| *ns != CLOCK_ERROR_NS_MAX_DEFAULT).map(format_exact_duration),
        );
    }
    let arrivals = match spec {
        ExperimentSpec::Run(run) => run.plan.load.shape.arrival_spacing(),
        ExperimentSpec::Sweep(_) => ArrivalSpacing::Constant,
        ExperimentSpec::Find(find) => find.arrivals,
        ExperimentSpec::Explain(explain) => explain.search.arrivals,
        ExperimentSpec::Overload(overload) => overload.search.arrivals,
        ExperimentSpec::Prove(_) | ExperimentSpec::Ladder(_) => {
            spec.blocks_spec().map_or(ArrivalSpacing::Constant, |blocks| blocks.arrivals)
        }
    };
    // The flag for the spacing of arrivals is added only if the spacing differs from the default.
    // The default is Poisson for a search and constant spacing for any other load.
    let is_search = matches!(spec, ExperimentSpec::Find(_) | ExperimentSpec::Explain(_) | ExperimentSpec::Overload(_));
    words.add_flag_if("--arrivals=poisson", arrivals == ArrivalSpacing::Poisson && !is_search);
    words.add_flag_if("--arrivals=constant", arrivals == ArrivalSpacing::Constant && is_search);
}

fn add_probe_flags(words: &mut CommandLine, spec: &ExperimentSpec, settings: &ExperimentSettings<RedactedText>) {
    let probes = &settings.probes;
    words.add_optional_flag("--pid", probes.pid);
    words.add_optional_flag("--process", probes.process.as_ref());
    if let Some(metrics) = &probes.metrics {
        words.add_endpoint_flag("--metrics", metrics);
    }
    words.add_redacted_text_flag("--cgroup", &probes.cgroup);
    words.add_flag_if("--no-probes", probes.is_disabled);
    if let Some(watch) = &probes.watch {
        words.add_flag_with_value("--watch", &watch.url);
        words.add_flag_if("--watch-copy", watch.copied);
    }
    if let Some(profiles) = &settings.profiles {
        words.add_endpoint_flag("--pprof", &profiles.endpoint);
        let usual = if matches!(spec, ExperimentSpec::Prove(_)) { 5 } else { 10 };
        words.add_optional_flag("--pprof-seconds", Some(profiles.seconds).filter(|seconds| *seconds != usual));
    }
}

fn host_for_url(host: &str) -> std::borrow::Cow<'_, str> {
    plimsoll_model::traffic::url_host(host)
}

/// Formats the URL of a plan's first request. The port is omitted if it is the default port of the
/// scheme.
fn first_request_url(plan: &PlanRecord) -> String {
    let origin = &plan.traffic.origin;
    let target = &plan.traffic.first_route().target;
    match default_port(&origin.scheme) == Some(origin.port) {
        true => format!("{}://{}{target}", origin.scheme, host_for_url(&origin.host)),
        false => format!("{origin}{target}"),
    }
}

/// Formats a share as a percentage with enough digits that parsing the text gives an equal value.
fn exact_percent(share: f64) -> String {
    let digits = format!("{:.9}", share * 100.0);
    format!("{}%", digits.trim_end_matches('0').trim_end_matches('.'))
}
