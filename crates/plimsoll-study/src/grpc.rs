//! Prepares the gRPC messages of a plan: reads the message types from files or server reflection,
//! and encodes request bodies. For all other modules, a gRPC call with an encoded body is an
//! ordinary request.
//!
//! Not here: parsing descriptors (`plimsoll-traffic`), and sending the calls of a load.

use crate::connection_inputs::tls_failure;
use plimsoll_engine::{encode_request, tls_client};
use plimsoll_model::experiment_settings::SchemaSettings;
use plimsoll_model::failure::Failure;
use plimsoll_model::grpc_message::RouteMessageConverters;
use plimsoll_model::{ExperimentSettings, GrpcCall, GrpcStatus, HttpChoice, Plan, Request, Route};
use plimsoll_probe::client::SingleRequest;
use plimsoll_sys::files::{self, FilePurpose};
use plimsoll_sys::tcp::Socket;
use plimsoll_traffic::grpc::reflection::{DescriptorCollector, REFLECTION_PATHS, ReflectionError};
use plimsoll_traffic::grpc::{Schema, SchemaError, health};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// The timeout of one request for message types (reflection) or for the health status.
const GRPC_QUERY_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout of all reflection requests together.
const REFLECTION_TOTAL_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest response to a reflection request, bytes.
const REFLECTION_RESPONSE_BYTES_MAX: usize = 64 << 20;

/// Encodes the request bodies of all gRPC calls of a plan. The message types come from files that
/// the user names, or from the server's reflection service.
pub fn encode_grpc_bodies(plan: &mut Plan, settings: &ExperimentSettings<String>) -> Result<(), Failure> {
    if !plan.traffic.routes.iter().any(|route| route.grpc.is_some()) {
        return Ok(());
    }
    let schema = match &settings.schema {
        Some(files) => schema_from_files(files)?,
        None => schema_from_called_services(plan)?,
    };
    let types: std::sync::Arc<[u8]> = schema.to_descriptor_set().into();
    let mut answers_in_turn = false;
    for route in &mut plan.traffic.routes {
        let Route { label, request, template_flags: filled, expect, captures, grpc: Some(call), .. } = route else {
            continue;
        };
        // gRPC has no query string, so the request target is the method's path.
        let method = schema.method(&request.target).map_err(|error| Failure::usage(error.to_string()))?;
        call.returns_stream = method.has_server_stream();
        answers_in_turn |= call.returns_stream && method.has_client_stream();
        if filled.body || !expect.is_empty() || !captures.is_empty() {
            call.descriptor_set = Some(types.clone());
        }
        if filled.body {
            continue;
        }
        let content = method.encode_messages(&request.body, is_gzip(request)?).map_err(|error| {
            let place = if settings.mix.is_some() { format!("-f: the request '{label}'") } else { "--body".into() };
            match error {
                SchemaError::InvalidJson(_) => Failure::usage(format!("{place}: {error}")),
                _ => Failure::usage(format!("{place}: {error}; an example body: {}", method.example())),
            }
        })?;
        call.content = Some(content);
    }
    let in_turn = plan.traffic.routes.iter().any(|route| route.grpc.as_ref().is_some_and(|call| call.in_turn));
    if in_turn && !answers_in_turn {
        return Err(Failure::usage("--in-turn: no called method has streams in both directions: leave --in-turn out"));
    }
    Ok(())
}

/// Returns a converter between gRPC messages and text for each route; `None` for a route without
/// known message types.
pub fn message_converters(plan: &Plan) -> Result<RouteMessageConverters, Failure> {
    plimsoll_traffic::grpc::build_message_converters(&plan.traffic).map_err(|error| Failure::usage(error.to_string()))
}

/// Reads the message types from .proto files or from a descriptor set.
pub fn schema_from_files(files: &SchemaSettings<String>) -> Result<Schema, Failure> {
    if let Some(path) = &files.descriptor_set {
        let bytes = files::read(path.as_ref(), FilePurpose::Schema)
            .map_err(|why| Failure::usage(format!("--descriptor-set: the file '{path}' {why}")))?;
        return Schema::from_descriptor_set(&bytes)
            .map_err(|error| Failure::usage(format!("--descriptor-set: '{path}': {error}")));
    }
    // The schema names each .proto file relative to an import folder. The folder of a .proto file
    // outside all --proto-path folders becomes one more import folder.
    let mut folders: Vec<String> = files.proto_paths.clone();
    let mut names = Vec::new();
    for path in &files.protos {
        files::read(path.as_ref(), FilePurpose::Schema)
            .map_err(|why| Failure::usage(format!("--proto: the file '{path}' {why}")))?;
        let inside = folders.iter().find_map(|folder| Path::new(path).strip_prefix(folder).ok());
        match inside {
            Some(name) => names.push(name.display().to_string()),
            None => {
                let path = Path::new(path);
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                folders.push(folder.display().to_string());
                names.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
            }
        }
    }
    let text = move |name: &str| {
        let found = folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists())?;
        let bytes = files::read(&found, FilePurpose::Schema).map_err(|why| format!("'{}' {why}", found.display()));
        let text = |bytes| String::from_utf8(bytes).map_err(|_| format!("'{}' is no text", found.display()));
        Some(bytes.and_then(text))
    };
    Schema::from_protos(&names, text).map_err(|error| {
        let said = error.to_string();
        let places = match said.contains("import") {
            true => " (plimsoll looks for imports in the folder of the .proto file, or in --proto-path)",
            false => "",
        };
        Failure::usage(format!("--proto: {said}{places}"))
    })
}

/// Reads the types of the services that the plan calls from the server's reflection service. If the
/// server does not know a called service, reads the types of all services.
fn schema_from_called_services(plan: &Plan) -> Result<Schema, Failure> {
    let paths = plan.traffic.routes.iter().map(|route| route.request.target.trim_start_matches('/'));
    let services: BTreeSet<&str> = paths.map(|path| path.split('/').next().unwrap_or_default()).collect();
    reflected_schema(plan, &services.into_iter().collect::<Vec<_>>())
}

/// Reads the types of the named services from the server's reflection. Reads the types of all
/// services if `services` is empty.
pub fn reflected_schema(plan: &Plan, services: &[&str]) -> Result<Schema, Failure> {
    let learner = || match services {
        [] => DescriptorCollector::for_all_services(),
        named => DescriptorCollector::for_services(named.iter().copied()),
    };
    let mut reason = "the server does not describe its messages (no reflection)".to_owned();
    let until = Instant::now() + REFLECTION_TOTAL_TIMEOUT;
    for path in REFLECTION_PATHS {
        match reflected_schema_at_path(plan, path, learner(), until) {
            Ok(schema) => return Ok(schema),
            // The server may support only the older version of the reflection protocol, so the next
            // version in the list is tried.
            Err(ReflectionFailure::Unimplemented) => {}
            // Gateways send UNAVAILABLE for an unknown service, so the next version of the
            // reflection service is tried.
            Err(ReflectionFailure::Unavailable(said)) => reason = said,
            Err(ReflectionFailure::Unreached(why)) => return Err(Failure::cannot_start(why)),
            Err(ReflectionFailure::NotGrpc(reason)) => {
                return Err(Failure::usage(format!(
                    "{reason} (if the server speaks gRPC without reflection, give --proto FILE or --descriptor-set \
                     FILE)"
                )));
            }
            // If the called service is unknown, the types of all services let the caller show the
            // user the right service name.
            Err(ReflectionFailure::NotFound(said)) => {
                match reflected_schema_at_path(plan, path, DescriptorCollector::for_all_services(), until) {
                    Ok(schema) => return Ok(schema),
                    Err(_) => {
                        reason = said;
                        break;
                    }
                }
            }
            Err(ReflectionFailure::Other(said)) => {
                reason = said;
                break;
            }
        }
    }
    Err(Failure::usage(format!("{reason}: give --proto FILE or --descriptor-set FILE")))
}

/// The reason why the server's reflection service gave no message types.
enum ReflectionFailure {
    /// The server does not implement this version of the reflection service.
    Unimplemented,
    /// A gateway found no server (gRPC status UNAVAILABLE); the value is the gateway's message.
    Unavailable(String),
    /// The called service is unknown to the server; the value is the server's message.
    NotFound(String),
    /// No response arrived; the value is the reason.
    Unreached(String),
    /// The response is not gRPC; the value describes the response.
    NotGrpc(String),
    /// The reflection failed for any other reason; the value is a text for the user.
    Other(String),
}

fn reflected_schema_at_path(
    plan: &Plan,
    path: &str,
    mut learner: DescriptorCollector,
    until: Instant,
) -> Result<Schema, ReflectionFailure> {
    let other = |error: ReflectionError| match error {
        ReflectionError::NotFound(_) => ReflectionFailure::NotFound(error.to_string()),
        error => ReflectionFailure::Other(error.to_string()),
    };
    while let Some(content) = learner.next_request() {
        let answer = send_grpc_call(plan, path, content, until);
        if Instant::now() >= until {
            let seconds = REFLECTION_TOTAL_TIMEOUT.as_secs();
            return Err(ReflectionFailure::Other(format!(
                "the server's reflection did not describe the messages within {seconds} s"
            )));
        }
        let GrpcCallResult { grpc_status, has_grpc_status, http_status, content: heard } =
            answer.map_err(ReflectionFailure::Unreached)?;
        match grpc_status {
            GrpcStatus::Ok => {}
            GrpcStatus::Unimplemented => return Err(ReflectionFailure::Unimplemented),
            _ if !has_grpc_status => {
                return Err(ReflectionFailure::NotGrpc(format!(
                    "the server's response has no gRPC status (HTTP {http_status}), so it does not speak gRPC"
                )));
            }
            ended => {
                let said =
                    format!("the server's reflection ended with the gRPC status {status}", status = ended.name());
                return Err(match ended {
                    GrpcStatus::Unavailable => ReflectionFailure::Unavailable(said),
                    _ => ReflectionFailure::Other(said),
                });
            }
        }
        learner.take_response(&heard).map_err(other)?;
    }
    learner.schema().map_err(other)
}

/// Returns an error if the server's health check reports that the first called service is not
/// serving. All other errors of the health check are ignored, because the first call of the load
/// reports them.
pub fn refuse_unhealthy(plan: &Plan) -> Result<(), Failure> {
    let Some(route) = plan.traffic.preflight_route().filter(|route| route.grpc.is_some()) else { return Ok(()) };
    let service = route.request.target.trim_start_matches('/').split('/').next().unwrap_or_default();
    match send_grpc_call(
        plan,
        health::CHECK_METHOD_PATH,
        health::encode_request(service),
        Instant::now() + GRPC_QUERY_TIMEOUT,
    ) {
        Ok(GrpcCallResult { grpc_status: GrpcStatus::Ok, content: heard, .. }) if health::is_not_serving(&heard) => {
            Err(Failure::cannot_start(format!(
                "nothing was started: {target} reports that the service {service} is not serving (--no-preflight skips \
                 this check)",
                target = plan.traffic.origin
            )))
        }
        _ => Ok(()),
    }
}

/// The result of one gRPC call: its gRPC status, whether the server sent that status, the HTTP
/// status, and the content of the response.
struct GrpcCallResult {
    grpc_status: GrpcStatus,
    has_grpc_status: bool,
    http_status: u16,
    content: Vec<u8>,
}

/// Sends one gRPC call outside the load, with the deadline `until`. The error says why no response
/// arrived.
fn send_grpc_call(plan: &Plan, path: &str, content: Vec<u8>, until: Instant) -> Result<GrpcCallResult, String> {
    let tls = tls_client(plan).map_err(|error| tls_failure(&error).to_string())?;
    let mut route = Route::new(Request { method: "POST".into(), target: path.into(), headers: vec![], body: vec![] });
    // The user's header fields may authorise the call. Header fields for compression are left out,
    // because the call outside the load is not compressed.
    let along = plan.traffic.routes[0].request.headers.iter();
    route.request.headers = along.filter(|(name, _)| !controls_compression(name)).cloned().collect();
    route.timeout_ns = GRPC_QUERY_TIMEOUT.as_nanos() as u64;
    route.grpc = Some(GrpcCall { content: Some(content), ..GrpcCall::default() });
    let request = encode_request(plan, &route.request_to_send()).map_err(|error| error.to_string())?.with_content();
    let (mut heard, mut reasons) = (Vec::new(), Vec::new());
    let deadline = until.min(Instant::now() + GRPC_QUERY_TIMEOUT);
    let question = SingleRequest {
        request: &request,
        tls: tls.as_ref(),
        http: HttpChoice::H2,
        deadline,
        connect_until: deadline,
        ignores_stop: false,
    };
    let places: Vec<Box<dyn Fn() -> std::io::Result<Socket> + '_>> = match &plan.connection_plan.unix {
        Some(path) => vec![Box::new(move || Socket::connect_unix(path))],
        None => plan.connection_plan.addresses.iter().map(|to| socket_connector(to)).collect(),
    };
    for connect in places {
        heard.clear();
        let asked = question.send_and_receive(connect, &mut |piece| {
            heard.extend_from_slice(piece.content());
            heard.len() <= REFLECTION_RESPONSE_BYTES_MAX
        });
        match asked {
            Ok(reply) => {
                let said = reply.grpc_status.map(|code| GrpcStatus::from_code(code.into()));
                let grpc_status = said.unwrap_or(GrpcStatus::from_http_status(reply.status));
                return Ok(GrpcCallResult {
                    grpc_status,
                    has_grpc_status: said.is_some(),
                    http_status: reply.status,
                    content: heard,
                });
            }
            Err(error) => reasons.push(error.error_message(&plan.traffic.origin.to_string(), GRPC_QUERY_TIMEOUT, true)),
        }
    }
    Err(reasons.join("; "))
}

/// Whether a header field controls message compression.
fn controls_compression(name: &str) -> bool {
    ["grpc-encoding", "grpc-accept-encoding"].iter().any(|of| name.eq_ignore_ascii_case(of))
}

/// Whether the header fields of the call ask for gzip compression of messages.
fn is_gzip(request: &Request) -> Result<bool, Failure> {
    let encoding = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("grpc-encoding"));
    match encoding.map(|(_, value)| value.trim()) {
        None | Some("identity") => Ok(false),
        Some("gzip") => Ok(true),
        Some(_) => Err(Failure::usage("--header: the only supported compression is grpc-encoding: gzip")),
    }
}

/// Returns a function that connects to an address.
fn socket_connector(to: &std::net::SocketAddr) -> Box<dyn Fn() -> std::io::Result<Socket> + '_> {
    Box::new(move || Socket::connect_from(None, to))
}
