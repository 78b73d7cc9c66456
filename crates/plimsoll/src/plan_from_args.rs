//! Converts the flags that several commands share to plans (the requests to send) and settings (all
//! other settings). Contradictions and invalid values are refused before any host is resolved or
//! any process is started. Only files with bodies, scripts and traffic are read.
//!
//! Not here: the load and the goal, which each command converts itself. Also not here: resolving
//! the target (`plimsoll_study::base`), and adapting the plan to this machine
//! (`plimsoll_study::capacity`).

use crate::args::redaction_level;
use crate::args::{
    ConnectionArgs, FleetArgs, GeneratorArgs, GrpcArgs, InconclusiveArgs, OutputArgs, PprofArgs, ProbeArgs,
    RequestArgs, SchemaArgs, ScriptArgs, StoreArgs, WatchArgs,
};
use crate::curl;
use plimsoll_fleet::parse_watch_host;
use plimsoll_model::bounds::WORKERS_REQUESTED_MAX;
use plimsoll_model::experiment_settings::{
    InjectorSettings, OutputSettings, ProbesSettings, ProfilesSettings, SchemaSettings, TrafficFileSettings,
};
use plimsoll_model::failure::Failure;
use plimsoll_model::{
    AddressRange, AgentLossPolicy, ArrivalSpacing, ConnectionPlan, EndpointChoice, ExperimentSettings, FleetSettings,
    GrpcStatusSet, HttpChoice, Load, LoadCurve, LoadShape, OnInconclusive, Origin, Plan, RemoteWatchSettings, Request,
    ResolveSpec, Route, ScriptSettings, StatusSet, TlsSpec, Traffic, completion, redact,
};
use plimsoll_study::fields::{parse_body_flag, parse_header_flag, parse_tag, path_text};
use plimsoll_study::file_traffic::{convert_to_grpc_call, http_choice, push_authorization, traffic_from_parsed};
use plimsoll_study::quantity::{parse_positive_count, parse_positive_time, with_flag_name};
use plimsoll_study::script_run;
use plimsoll_study::target::parse_connect_to;
use plimsoll_study::traffic_file;
use plimsoll_traffic::file::FileLoad;
use plimsoll_traffic::target_url::Url;
use std::path::Path;
use std::sync::OnceLock;

/// Returns one plan with one user for each of several URLs, the common settings of the plans, and
/// the load that a traffic file contains. The first URL is in `request` or in its traffic file. The
/// caller adds the settings of probes, profiles, builds, conditions and output paths.
pub fn plans_for_urls(
    request: &RequestArgs,
    more: &[String],
    generator: &GeneratorArgs,
    script: &ScriptArgs,
) -> Result<(Vec<Plan>, ExperimentSettings<String>, FileLoad), Failure> {
    let (of_curl, curl_body) = match &request.curl {
        None => (None, None),
        Some(line) => curl::apply_curl_line(request, line).map(|(request, body)| (Some(request), body))?,
    };
    let request = of_curl.as_ref().unwrap_or(request);
    let timeout_ns = parse_positive_time("--timeout", &request.timeout)?;
    let ok_status = with_flag_name("--ok-status", StatusSet::parse(&request.ok_status))?;
    let ok_grpc = request.ok_grpc.as_deref().map(GrpcStatusSet::parse).transpose();
    let ok_grpc = with_flag_name("--ok-grpc", ok_grpc)?;
    let connections_max =
        request.max_connections.as_deref().map(|text| parse_positive_count("--max-connections", text));
    let connections_max = connections_max
        .transpose()?
        .map(u32::try_from)
        .transpose()
        .map_err(|_| Failure::usage("--max-connections: at most 4 billion connections"))?;
    let workers = generator.threads.as_deref().map(|text| parse_positive_count("--threads", text)).transpose()?;
    let workers = match workers {
        Some(workers) if workers > u64::from(WORKERS_REQUESTED_MAX) => {
            return Err(Failure::usage(format!("--threads: at most {WORKERS_REQUESTED_MAX}")));
        }
        workers => workers.map(|workers| workers as u32),
    };
    let headers = request.headers.iter().map(|text| parse_header_flag(text)).collect::<Result<Vec<_>, _>>()?;
    let (body_from, body) = match request.body.as_deref().map(parse_body_flag).transpose()?.or(curl_body) {
        Some((from, body)) => (Some(from), body),
        None => (None, Vec::new()),
    };
    let method = match (&request.method, &body_from) {
        (Some(method), _) => method.clone(),
        (None, Some(_)) => "POST".into(),
        (None, None) => "GET".into(),
    };
    let flags = &request.connection;
    refuse_contradictions(flags)?;
    let connect_to = flags.connect_to.as_deref().map(parse_connect_to).transpose()?;
    let sources = flags.source_ip.as_deref().map(AddressRange::parse_list).transpose();
    let sources = with_flag_name("--source-ip", sources)?.unwrap_or_default();
    let urls: Vec<&String> = request.target.iter().chain(&request.url).chain(more).collect();
    let mix = match &request.file {
        Some(file) => Some(TrafficFileSettings {
            file: path_text("-f", file)?,
            bases: urls.iter().map(|url| (*url).clone()).collect(),
            headers: headers.iter().map(|(name, value)| format!("{name}: {value}")).collect(),
            ok_status: ok_status.clone(),
            ok_grpc,
            in_turn: request.in_turn,
            timeout_ns,
        }),
        None => None,
    };
    let script = script.lua.as_ref().map(|file| script_settings(file, &script.words)).transpose()?;
    let mut file_load = FileLoad::default();
    let asked = match &mix {
        Some(mix) => {
            let file = traffic_file::read(mix.file.as_ref())?;
            file_load.clone_from(file.load());
            traffic_from_parsed(&file, mix, redaction_level(request.redact, request.keep_failed_bodies))?
        }
        None => {
            let of_url = |url: &&String| {
                let Url { origin, path, authorization } = Url::parse(url)?;
                let mut headers = headers.clone();
                let user_info = push_authorization(&mut headers, authorization);
                let method = if origin.is_grpc() { "POST".to_owned() } else { method.clone() };
                let asked = Request { method, target: path, headers, body: body.clone() };
                let redirects_max = request.follow.unwrap_or(0);
                let mut route = Route { ok_status: ok_status.clone(), timeout_ns, redirects_max, ..Route::new(asked) };
                if let Some(name) = script.as_ref().and_then(|script| Path::new(&script.file).file_name()) {
                    route.label = redact::redact_path(&name.to_string_lossy());
                }
                if origin.is_grpc() {
                    if script.is_some() {
                        return Err(Failure::usage(
                            "--lua: scripts write HTTP/1.1, and gRPC needs HTTP/2; leave --lua out",
                        ));
                    }
                    if request.method.is_some() {
                        return Err(Failure::usage(
                            "--method: the URL names the gRPC method, grpc://HOST:PORT/package.Service/Method; \
                             leave --method out",
                        ));
                    }
                    if redirects_max > 0 {
                        return Err(Failure::usage("--follow: gRPC has no redirects; leave --follow out"));
                    }
                    route.label = route.request.target.trim_start_matches('/').to_owned();
                    convert_to_grpc_call(&mut route, ok_grpc.unwrap_or_default(), request.in_turn, "--header")?;
                }
                Ok((
                    Traffic {
                        redact: redaction_level(request.redact, request.keep_failed_bodies),
                        ..Traffic::with_one_route(origin, route)
                    },
                    user_info,
                ))
            };
            urls.iter().map(of_url).collect::<Result<Vec<_>, Failure>>()?
        }
    };
    if !asked.iter().any(|(traffic, _)| traffic.origin.is_grpc()) {
        refuse_grpc_flags(request)?;
    }
    let seed = generator.seed.unwrap_or_else(process_seed);
    let (mut plans, mut user_info) = (Vec::new(), Vec::new());
    for (traffic, has_user) in asked {
        let mut connection_plan = connection_plan(flags, connect_to.as_ref(), &traffic.origin, request.allow_public)?;
        connection_plan.keep_alive = !request.no_keepalive;
        if request.no_keepalive && connection_plan.streams_max > 1 {
            return Err(Failure::usage(
                "--streams and --no-keepalive: without keep-alive, a connection has one request and so one \
                 stream; leave one of the flags out",
            ));
        }
        if script.is_some() {
            set_http1(&mut connection_plan)?;
        }
        connection_plan.connections_max = connections_max.unwrap_or(connection_plan.connections_max);
        let mut load = Load::new(LoadShape::Closed { users: LoadCurve::constant(1.0) });
        load.seed = seed;
        load.grace_ns = traffic.timeout_ns_max().min(load.grace_ns);
        plans.push(Plan { traffic, load, connection_plan });
        user_info.push(has_user);
    }
    let path =
        |name: &str, path: &Option<std::path::PathBuf>| path.as_deref().map(|it| path_text(name, it)).transpose();
    let settings = ExperimentSettings {
        targets: completion::number_equal_targets(&plans, &user_info),
        redact: redaction_level(request.redact, request.keep_failed_bodies),
        public: request.allow_public,
        // A load with a script has no preflight request, because the response to the URL has no
        // information about the requests of the script.
        preflight: !request.no_preflight && script.is_none(),
        mix,
        script,
        body: body_from,
        connect_to,
        schema: schema_settings(&request.schema)?,
        issuers: path("--cacert", &flags.cacert)?,
        certificate: path("--cert", &flags.cert)?,
        key: path("--key", &flags.key)?,
        connections_max,
        injector: InjectorSettings { workers, spin: generator.spin, sources },
        ..ExperimentSettings::default()
    };
    Ok((plans, settings, file_load))
}

/// Returns an error if the user gives a flag that applies only to gRPC calls.
fn refuse_grpc_flags(request: &RequestArgs) -> Result<(), Failure> {
    for (given, flag) in [
        (request.ok_grpc.is_some(), "--ok-grpc"),
        (request.in_turn, "--in-turn"),
        (!request.schema.proto.is_empty(), "--proto"),
        (request.schema.descriptor_set.is_some(), "--descriptor-set"),
    ] {
        if given {
            return Err(Failure::usage(format!(
                "{flag}: only gRPC uses this flag; write grpc:// or grpcs:// in the URL"
            )));
        }
    }
    Ok(())
}

/// Returns the files that describe gRPC messages; `None` if no flag names such a file.
pub fn schema_settings(flags: &SchemaArgs) -> Result<Option<SchemaSettings<String>>, Failure> {
    let texts = |flag: &str, paths: &[std::path::PathBuf]| -> Result<Vec<String>, Failure> {
        paths.iter().map(|path| path_text(flag, path)).collect()
    };
    if flags.proto.is_empty() && flags.descriptor_set.is_none() {
        return Ok(None);
    }
    let descriptor_set = flags.descriptor_set.as_deref().map(|it| path_text("--descriptor-set", it)).transpose()?;
    let (protos, proto_paths) = (texts("--proto", &flags.proto)?, texts("--proto-path", &flags.proto_path)?);
    Ok(Some(SchemaSettings { protos, proto_paths, descriptor_set }))
}

/// Returns the plan and the settings for reading a gRPC server's message types: only the target and
/// its connection.
pub fn grpc_server_plan(args: &GrpcArgs) -> Result<(Plan, ExperimentSettings<String>), Failure> {
    // Without a scheme, the server is contacted without TLS.
    let url = if args.url.contains("://") { args.url.clone() } else { format!("grpc://{}", args.url) };
    let Url { origin, path: target, authorization } = Url::parse(&url)?;
    if !origin.is_grpc() {
        return Err(Failure::usage("the URL of a gRPC server begins with grpc:// or grpcs://"));
    }
    let mut headers = args.headers.iter().map(|text| parse_header_flag(text)).collect::<Result<Vec<_>, _>>()?;
    push_authorization(&mut headers, authorization);
    let flags = &args.connection;
    refuse_contradictions(flags)?;
    let connect_to = flags.connect_to.as_deref().map(parse_connect_to).transpose()?;
    let connection_plan = connection_plan(flags, connect_to.as_ref(), &origin, args.allow_public)?;
    let route = Route::new(Request { method: "POST".into(), target, headers, body: Vec::new() });
    let load = Load::new(LoadShape::Closed { users: LoadCurve::constant(1.0) });
    let path =
        |name: &str, path: &Option<std::path::PathBuf>| path.as_deref().map(|it| path_text(name, it)).transpose();
    let settings = ExperimentSettings {
        public: args.allow_public,
        schema: schema_settings(&args.schema)?,
        connect_to,
        issuers: path("--cacert", &flags.cacert)?,
        certificate: path("--cert", &flags.cert)?,
        key: path("--key", &flags.key)?,
        ..ExperimentSettings::default()
    };
    Ok((Plan { traffic: Traffic::with_one_route(origin, route), load, connection_plan }, settings))
}

/// Returns the plan of a single URL, and all settings that are not in the plan.
pub fn plan_for_url(
    request: &RequestArgs,
    generator: &GeneratorArgs,
    script: &ScriptArgs,
) -> Result<(Plan, ExperimentSettings<String>), Failure> {
    plan_and_load(request, generator, script).map(|(plan, settings, _)| (plan, settings))
}

/// Returns the plan of a single URL, all settings that are not in the plan, and the
/// load that its traffic file contains.
pub fn plan_and_load(
    request: &RequestArgs,
    generator: &GeneratorArgs,
    script: &ScriptArgs,
) -> Result<(Plan, ExperimentSettings<String>, FileLoad), Failure> {
    let (plans, settings, load) = plans_for_urls(request, &[], generator, script)?;
    let plan = plans.into_iter().next().ok_or_else(|| Failure::usage("the target is missing: give a URL"))?;
    Ok((plan, settings, load))
}

/// Returns the settings of a script that run files record: its file, digest and arguments.
fn script_settings(file: &str, words: &[String]) -> Result<ScriptSettings<String>, Failure> {
    let digest = redact::short_digest(&script_run::read_script_file(file)?);
    Ok(ScriptSettings { file: file.to_owned(), digest, args: words.to_vec() })
}

/// Sets the protocol to HTTP/1.1, because scripts write requests in HTTP/1.1.
fn set_http1(connection: &mut ConnectionPlan) -> Result<(), Failure> {
    if connection.http == HttpChoice::H2 {
        return Err(Failure::usage("--http 2 and --lua: scripts write HTTP/1.1; leave one out"));
    }
    connection.http = HttpChoice::H1;
    if let Some(tls) = &mut connection.tls {
        tls.alpn = connection.http.alpn();
    }
    Ok(())
}

/// Returns the spacing of arrivals in an open loop; flags override the traffic file.
pub fn arrival_spacing(generator: &GeneratorArgs, file: &FileLoad) -> Result<ArrivalSpacing, Failure> {
    match generator.arrivals.as_deref() {
        None => Ok(file.arrivals.unwrap_or_default()),
        Some(word) => ArrivalSpacing::from_name(word)
            .ok_or_else(|| Failure::usage(format!("--arrivals: '{word}' is not constant or poisson"))),
    }
}

/// Converts the flags about probes to the settings that run files record.
pub fn probe_settings(args: &ProbeArgs) -> Result<ProbesSettings<String>, Failure> {
    if args.pid.is_some() && args.process.is_some() {
        return Err(Failure::usage("--pid and --process exclude each other: leave one out"));
    }
    Ok(ProbesSettings {
        is_disabled: args.no_probes,
        pid: args.pid,
        process: args.process.clone(),
        metrics: args.metrics.as_deref().map(|place| EndpointChoice::parse(place, false)),
        cgroup: args.cgroup.clone(),
        watch: watch_settings(&args.remote_watch)?,
    })
}

/// Returns the settings for measuring a server on another machine; `None` without --watch.
pub fn watch_settings(args: &WatchArgs) -> Result<Option<RemoteWatchSettings>, Failure> {
    let Some(place) = &args.watch else { return Ok(None) };
    with_flag_name("--watch", parse_watch_host(place))?;
    Ok(Some(RemoteWatchSettings { url: place.clone(), copied: args.watch_copy }))
}

/// Returns the settings for profiles of one target; `None` without --pprof.
pub fn profile_settings(args: &PprofArgs) -> Option<ProfilesSettings<String>> {
    let place = args.pprof.as_deref()?;
    Some(ProfilesSettings { endpoint: EndpointChoice::parse(place, false), seconds: args.pprof_seconds })
}

/// Returns the settings of the fleet that generates the load in place of this machine; `None`
/// without --fleet.
pub fn fleet_settings(
    args: &FleetArgs,
    plan: &Plan,
    settings: &ExperimentSettings<String>,
) -> Result<Option<FleetSettings>, Failure> {
    let Some(url) = &args.fleet else { return Ok(None) };
    plimsoll_fleet::refuse_local_only_options(plan, settings)?;
    let on_loss = if args.on_loss == "stop" { AgentLossPolicy::Stop } else { AgentLossPolicy::Continue };
    let skew_ns_max = parse_positive_time("--max-skew", &args.max_skew)?;
    let wait_ns = args.wait.as_deref().map(|wait| parse_positive_time("--wait", wait)).transpose()?;
    let (url, copied, agents) = (url.clone(), args.fleet_copy, args.agents.clone());
    let weights = args.weights.clone();
    let fleet = FleetSettings { url, copied, on_loss, skew_ns_max, agents, wait_ns, weights };
    plimsoll_fleet::check_fleet_options(&fleet).map_err(Failure::usage)?;
    Ok(Some(fleet))
}

/// Returns the verdict that the user set (`--on-inconclusive`) for a gate that cannot decide.
/// Returns `None` if the user set no verdict.
pub fn verdict_when_inconclusive(args: &InconclusiveArgs) -> Option<OnInconclusive> {
    args.on_inconclusive.as_deref().map(|word| if word == "pass" { OnInconclusive::Pass } else { OnInconclusive::Fail })
}

/// Converts the flags about output to settings, including the store and the tags of the run.
pub fn stored_output_settings(
    args: &OutputArgs,
    file: Option<&Path>,
    store: &StoreArgs,
) -> Result<OutputSettings<String>, Failure> {
    let tags = store.tags.iter().map(|text| parse_tag(text)).collect::<Result<_, _>>()?;
    let folder = store.store.as_deref().map(|folder| path_text("--store", folder)).transpose()?;
    Ok(OutputSettings { store: folder, tags, ..args.to_settings(file)? })
}

/// Returns an error if connection flags contradict each other.
fn refuse_contradictions(flags: &ConnectionArgs) -> Result<(), Failure> {
    if flags.unix.is_some() {
        for (given, flag) in [
            (flags.connect_to.is_some(), "--connect-to"),
            (flags.source_ip.is_some(), "--source-ip"),
            (flags.resolve_every.is_some(), "--resolve-every"),
        ] {
            if given {
                return Err(Failure::usage(format!(
                    "--unix and {flag}: a unix socket has no IP address; leave one out"
                )));
            }
        }
    }
    if flags.key.is_some() && flags.cert.is_none() {
        return Err(Failure::usage("--key: the certificate is missing; add --cert"));
    }
    if flags.insecure && flags.cacert.is_some() {
        return Err(Failure::usage(
            "--insecure and --cacert: one disables the verification that the other configures; leave one out",
        ));
    }
    Ok(())
}

/// The largest number of HTTP/2 streams per connection that a flag may request. No server allows a
/// million streams per connection.
const STREAMS_MAX: u32 = 1_000_000;

/// Converts the connection flags to a plan. Addresses are not resolved and certificates are not
/// read yet.
fn connection_plan(
    flags: &ConnectionArgs,
    connect_to: Option<&(String, u16)>,
    origin: &Origin,
    public: bool,
) -> Result<ConnectionPlan, Failure> {
    let close_reset = match flags.close.as_deref() {
        None | Some("fin") => false,
        Some("reset") => true,
        Some(other) => return Err(Failure::usage(format!("--close: '{other}' is not fin or reset"))),
    };
    let http = http_choice(flags.http.as_deref(), origin)?;
    let streams_max = match &flags.streams {
        None => 1,
        Some(text) => u32::try_from(parse_positive_count("--streams", text)?)
            .ok()
            .filter(|streams| *streams <= STREAMS_MAX)
            .ok_or_else(|| Failure::usage("--streams: at most 1M requests at a time on a connection"))?,
    };
    if streams_max > 1 && (http == HttpChoice::H1 || (http == HttpChoice::Auto && !origin.is_secure())) {
        return Err(Failure::usage(format!(
            "--streams {streams_max}: HTTP/1.1 allows one request at a time on a connection; add --http 2"
        )));
    }
    let every_ns =
        flags.resolve_every.as_deref().map(|text| parse_positive_time("--resolve-every", text)).transpose()?;
    let resolve = every_ns.map(|every_ns| {
        let (host, port) = connect_to.cloned().unwrap_or_else(|| (origin.host.clone(), origin.port));
        ResolveSpec { host, port, every_ns, public }
    });
    let tls = match origin.is_secure() {
        true => Some(TlsSpec {
            server_name: origin.host.clone(),
            verify: !flags.insecure,
            resume: !flags.no_resumption,
            alpn: http.alpn(),
            ..TlsSpec::default()
        }),
        false => {
            for (given, flag) in [
                (flags.insecure, "--insecure"),
                (flags.cacert.is_some(), "--cacert"),
                (flags.cert.is_some(), "--cert"),
                (flags.no_resumption, "--no-resumption"),
            ] {
                if given {
                    return Err(Failure::usage(format!("{flag}: this flag needs TLS; write https:// in the URL")));
                }
            }
            None
        }
    };
    let unix = flags.unix.clone();
    Ok(ConnectionPlan { unix, resolve, close_reset, tls, http, streams_max, ..ConnectionPlan::tcp(Vec::new()) })
}

/// Returns a random seed, the same for the whole process. The seed is shown, so that the run can be
/// repeated.
pub fn process_seed() -> u64 {
    static PROCESS_SEED: OnceLock<u64> = OnceLock::new();
    *PROCESS_SEED.get_or_init(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        plimsoll_model::rng::mix_bits(now.as_nanos() as u64 ^ u64::from(std::process::id()) << 32) >> 16
    })
}
