//! Builds the traffic of each target from a traffic file, and converts requests to gRPC calls.
//!
//! Not here: reading the file (`traffic_file`), and the command-line flags.

use crate::fields::parse_header_flag;
use crate::traffic_file;
use plimsoll_model::experiment_settings::TrafficFileSettings;
use plimsoll_model::failure::Failure;
use plimsoll_model::{
    ConnectionPlan, GrpcCall, GrpcStatusSet, HttpChoice, Load, LoadCurve, LoadShape, Origin, Plan, RedactionLevel,
    Route, StatusSet, Traffic,
};
use plimsoll_traffic::file::{RequestDefaults, TrafficFile};
use plimsoll_traffic::target_url::Url;

/// The target for checking a traffic file that names no target. plimsoll only checks the file and
/// sends no request to the placeholder URL.
const PLACEHOLDER_TARGET: &str = "http://localhost/";

/// Converts a request to a gRPC call. `place` names the source of the request's header fields in
/// errors.
pub fn convert_to_grpc_call(route: &mut Route, ok: GrpcStatusSet, in_turn: bool, place: &str) -> Result<(), Failure> {
    // Every content type except `application/grpc...` is removed, because gRPC messages need the
    // content type `application/grpc`.
    let is_of_json = |name: &str, value: &str| {
        name.eq_ignore_ascii_case("content-type") && !value.trim_start().starts_with("application/grpc")
    };
    route.request.headers.retain(|(name, value)| !is_of_json(name, value));
    for (name, value) in &mut route.request.headers {
        // gRPC header fields (metadata) whose names end in -bin must have base64 values, so other
        // values are encoded here.
        if name.to_ascii_lowercase().ends_with("-bin") && !is_base64(value) && !value.contains("{{") {
            use base64::Engine;
            *value = base64::engine::general_purpose::STANDARD_NO_PAD.encode(value.as_bytes());
        }
        if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return Err(Failure::usage(format!(
                "{place}: gRPC requires ASCII, but the value of {name} is not ASCII: send the value as {name}-bin"
            )));
        }
    }
    route.grpc = Some(GrpcCall { ok, in_turn, ..GrpcCall::default() });
    Ok(())
}

/// Whether a text is valid base64, with or without padding.
fn is_base64(text: &str) -> bool {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD_NO_PAD.decode(text.trim_end_matches('=')).is_ok()
}

/// Parses the HTTP version of `--http`: auto, 1.1 or 2. gRPC always uses HTTP/2.
pub fn http_choice(text: Option<&str>, origin: &Origin) -> Result<HttpChoice, Failure> {
    let http = match text {
        None | Some("auto") => HttpChoice::Auto,
        Some("1.1" | "1") => HttpChoice::H1,
        Some("2") => HttpChoice::H2,
        Some(other) => return Err(Failure::usage(format!("--http: '{other}' is not auto, 1.1 or 2"))),
    };
    match (http, origin.is_grpc()) {
        (HttpChoice::H1, true) => Err(Failure::usage("--http 1.1: gRPC needs HTTP/2; leave --http out")),
        (_, true) => Ok(HttpChoice::H2),
        (http, false) => Ok(http),
    }
}

/// Reads a traffic file. Returns the traffic of each target, and whether the URL of the target
/// contains a user name.
pub fn traffic_from_file(
    mix: &TrafficFileSettings<String>,
    redact: RedactionLevel,
) -> Result<Vec<(Traffic, bool)>, Failure> {
    traffic_from_parsed(&traffic_file::read(mix.file.as_ref())?, mix, redact)
}

/// Returns the traffic of each target from a parsed traffic file, and whether the URL of the target
/// contains a user name.
pub fn traffic_from_parsed(
    file: &TrafficFile,
    mix: &TrafficFileSettings<String>,
    redact: RedactionLevel,
) -> Result<Vec<(Traffic, bool)>, Failure> {
    let in_file = match mix.bases.is_empty() {
        true => Some(file.base().ok_or_else(|| {
            Failure::usage(
                "-f: the file names no target: add base = \"http://HOST:PORT\" to the file, or give --target URL",
            )
        })?),
        false => None,
    };
    let headers = mix.headers.iter().map(|text| parse_header_flag(text)).collect::<Result<Vec<_>, _>>()?;
    let of_base = |base: &str| {
        let Url { origin, path, authorization } = Url::parse(base)?;
        let mut headers = headers.clone();
        let user_info = push_authorization(&mut headers, authorization);
        let defaults = RequestDefaults { headers, ok_status: mix.ok_status.clone(), timeout_ns: mix.timeout_ns };
        let is_grpc = origin.is_grpc();
        let mut traffic = file.traffic(origin, &path, &defaults, redact);
        if is_grpc && !traffic.setup_teardown.is_empty() {
            return Err(Failure::usage(
                "-f: gRPC has no setup or cleanup requests: leave [[setup]] and [[cleanup]] out",
            ));
        }
        for route in traffic.routes.iter_mut().filter(|_| is_grpc) {
            if route.redirects_max > 0 {
                return Err(Failure::usage(format!(
                    "-f: the request '{request}': gRPC has no redirects: leave 'follow' out",
                    request = route.label
                )));
            }
            route.request.method = "POST".into();
            let place = format!("-f: the request '{}'", route.label);
            convert_to_grpc_call(route, mix.ok_grpc.unwrap_or_default(), mix.in_turn, &place)?;
        }
        Ok((traffic, user_info))
    };
    mix.bases.iter().map(String::as_str).chain(in_file).map(of_base).collect()
}

/// Adds the `Authorization` header field from the user part of a URL, unless `headers` already has
/// this field. Returns whether the field was added.
pub fn push_authorization(headers: &mut Vec<(String, String)>, authorization: Option<String>) -> bool {
    let said = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let authorization = authorization.filter(|_| !said);
    let user_info = authorization.is_some();
    headers.extend(authorization.map(|value| ("Authorization".to_owned(), value)));
    user_info
}

/// Returns a plan with the traffic of a traffic file. The requests go to `target`, or to the target
/// in the traffic file if `target` is `None`.
pub fn plan_from_traffic_file(
    file: &TrafficFile,
    name: &str,
    target: Option<String>,
    http: Option<&str>,
) -> Result<(Plan, TrafficFileSettings<String>), Failure> {
    let address = target.or_else(|| file.base().map(str::to_owned)).unwrap_or_else(|| PLACEHOLDER_TARGET.to_owned());
    let mix = TrafficFileSettings {
        file: name.to_owned(),
        bases: vec![address],
        headers: Vec::new(),
        ok_status: StatusSet::default(),
        ok_grpc: None,
        in_turn: false,
        timeout_ns: 30_000_000_000,
    };
    let (traffic, _) = traffic_from_parsed(file, &mix, RedactionLevel::Secrets)?.remove(0);
    let load = Load::new(LoadShape::Closed { users: LoadCurve::constant(1.0) });
    let http = http_choice(http, &traffic.origin)?;
    Ok((Plan { traffic, load, connection_plan: ConnectionPlan { http, ..ConnectionPlan::tcp(vec![]) } }, mix))
}
