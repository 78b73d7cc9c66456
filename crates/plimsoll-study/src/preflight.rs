//! Sends a preflight request before the load. The preflight request checks that a server responds
//! in HTTP, and over TLS if required. The measured results of the load do not include the preflight
//! request.
//!
//! Not here: the connections of a load (`plimsoll_engine`).

use crate::connection_inputs::tls_failure;
use crate::grpc;
use plimsoll_model::failed_response::KEPT_RESPONSE_BYTES;
use plimsoll_model::failure::Failure;
use plimsoll_model::{
    AddressRange, CallFault, ExperimentSettings, FailedResponse, GrpcStatus, HttpChoice, Injector, Plan,
    RedactionLevel, TlsFailure,
};
use plimsoll_probe::client::{BlockingSocket, NoResponse, SingleRequest};
use plimsoll_sys::probe::listener::tcp_listeners_on;
use plimsoll_sys::probe::sockets::SocketDiagnostics;
use plimsoll_sys::tcp::{Socket, is_local};
use plimsoll_wire::EncodedRequest;
use plimsoll_wire::tls::Client;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The longest timeout of the preflight request. If `--timeout` is shorter, the preflight request
/// uses the timeout of `--timeout`.
const TIMEOUT_MAX: Duration = Duration::from_secs(10);
/// The timeout of each check between loads whether the server responds. A short timeout suffices,
/// because an overloaded server is checked again later.
const RESPONSE_CHECK_TIMEOUT: Duration = Duration::from_millis(500);

/// The server's response to a preflight request.
#[derive(Debug, Clone)]
pub struct PreflightResponse {
    /// The HTTP status of the response.
    pub status: u16,
    /// The gRPC status of the response, if it contains one.
    pub grpc_status: Option<u16>,
    /// The time in ns from the start of the connection to the address that responded, to the end of
    /// the response. Failed attempts at other addresses are not included in the time.
    pub took_ns: u64,
    /// Whether the response came over HTTP/2.
    pub is_h2: bool,
    /// The server's limit of concurrent HTTP/2 streams; `None` if the server sets no limit.
    pub streams_allowed: Option<u32>,
    /// The status line and the beginning of the content, redacted.
    pub text: String,
}

impl PreflightResponse {
    /// Returns the gRPC status of the response. If the response has no gRPC status, returns the
    /// gRPC status that corresponds to the HTTP status.
    pub fn grpc_status_or_mapped(&self) -> GrpcStatus {
        self.grpc_status.map_or(GrpcStatus::from_http_status(self.status), |code| GrpcStatus::from_code(code.into()))
    }
}

/// Sends the plan's preflight request, and returns the server's response. The check succeeds as
/// soon as one address of the target sends an HTTP response, whatever its status. The error
/// contains the reason of the failure for each address. If no request of the plan is safe to send,
/// the function only opens a connection, and returns `None`.
pub fn send_preflight_request(plan: &Plan, injector: &Injector) -> Result<Option<PreflightResponse>, Failure> {
    send_preflight_with_timeout(plan, injector, TIMEOUT_MAX)
}

/// Whether the target currently responds successfully to a request from the first source address of
/// `injector`. Returns `None` if no valid response came in time, or if no request of the plan is
/// safe to send.
pub fn responds_successfully(plan: &Plan, injector: &Injector) -> Option<bool> {
    plan.traffic.preflight?;
    let answer = send_preflight_with_timeout(plan, injector, RESPONSE_CHECK_TIMEOUT).ok()??;
    let call = plan.traffic.preflight_route().and_then(|route| route.grpc.as_ref());
    Some(
        plan.traffic.counts_as_success(answer.status)
            && call.is_none_or(|call| call.ok.contains(answer.grpc_status_or_mapped())),
    )
}

fn send_preflight_with_timeout(
    plan: &Plan,
    injector: &Injector,
    timeout_max: Duration,
) -> Result<Option<PreflightResponse>, Failure> {
    let Some((number, route)) = plan.traffic.preflight.zip(plan.traffic.preflight_route()) else {
        return match is_address_in_use(plan) {
            true => Ok(None),
            false => Err(Failure::cannot_start(format!(
                "nothing was started: no server accepts connections at {origin}. Start the server, or skip this \
                check with --no-preflight",
                origin = plan.traffic.origin
            ))),
        };
    };
    let first = PreflightRequest {
        request: plimsoll_engine::first_request(plan, &grpc::message_converters(plan)?, number)
            .map_err(|e| Failure::usage(e.to_string()))?,
        timeout: Duration::from_nanos(route.timeout_ns).min(timeout_max),
        http: plan.connection_plan.http,
        tls: plimsoll_engine::tls_client(plan).map_err(|e| tls_failure(&e))?,
        is_call: route.grpc.is_some(),
        redact: plan.traffic.redact,
    };
    let mut reasons = Vec::new();
    if let Some(path) = &plan.connection_plan.unix {
        match first.send_request(&format!("the unix socket {path}"), || Socket::connect_unix(path)) {
            Ok(answer) => return Ok(Some(answer)),
            Err(reason) => reasons.push(reason),
        }
    }
    for address in plan.connection_plan.addresses.iter().filter(|_| plan.connection_plan.unix.is_none()) {
        let sources: Vec<AddressRange> =
            injector.sources.iter().filter(|range| range.is_ipv4() == address.is_ipv4()).copied().collect();
        let connect = || Socket::connect_from(AddressRange::nth_address(&sources, 0), address);
        match first.send_request(&address.to_string(), connect) {
            Ok(answer) => return Ok(Some(answer)),
            Err(reason) => reasons.push(reason),
        }
    }
    Err(Failure::cannot_start(format!(
        "nothing was started: {reasons} (--no-preflight skips this check)",
        reasons = reasons.join("; ")
    )))
}

/// Whether a process listens at the plan's address.
pub fn is_address_in_use(plan: &Plan) -> bool {
    let deadline = Instant::now() + Duration::from_secs(1);
    if let Some(path) = &plan.connection_plan.unix {
        return BlockingSocket::open(|| Socket::connect_unix(path), deadline).is_ok();
    }
    // A failed connection does not prove that nothing listens, because a listener may be too busy
    // to accept. On this machine, the kernel has a list of listening sockets. On other machines,
    // only an accepted connection proves that a process listens.
    let held = |address: &SocketAddr| {
        is_local(&address.ip())
            && SocketDiagnostics::open()
                .and_then(|mut asker| tcp_listeners_on(&mut asker, *address))
                .is_ok_and(|sockets| !sockets.is_empty())
    };
    let accepts = |address: &SocketAddr| BlockingSocket::open(|| Socket::connect_from(None, address), deadline).is_ok();
    plan.connection_plan.addresses.iter().any(|address| held(address) || accepts(address))
}

/// The preflight request, which is sent to each address of a plan until an address responds.
struct PreflightRequest {
    request: EncodedRequest,
    timeout: Duration,
    http: HttpChoice,
    tls: Option<Client>,
    /// Whether the request is a gRPC call.
    is_call: bool,
    /// The redaction level for the response in messages.
    redact: RedactionLevel,
}

impl PreflightRequest {
    /// Sends the request to `server`, over the connection that `connect` starts. The error is a
    /// sentence for the user that names `server`.
    fn send_request(
        &self,
        server: &str,
        connect: impl FnOnce() -> io::Result<Socket>,
    ) -> Result<PreflightResponse, String> {
        let began = Instant::now();
        let deadline = began + self.timeout;
        let question = SingleRequest {
            request: &self.request,
            tls: self.tls.as_ref(),
            http: self.http,
            deadline,
            connect_until: deadline,
            ignores_stop: false,
        };
        let mut kept = Vec::new();
        let reply = question
            .send_and_receive(connect, &mut |piece| {
                kept.extend_from_slice(&piece.bytes[..piece.bytes.len().min(KEPT_RESPONSE_BYTES - kept.len())]);
                true
            })
            .map_err(|error| match error {
                NoResponse::Connect(error) if error.kind() == ErrorKind::TimedOut => {
                    NoResponse::ResponseTimeout.error_message(server, self.timeout, self.is_call)
                }
                // The user allowed only one HTTP version, which the server does not speak.
                NoResponse::Tls(TlsFailure::NothingInCommon) if self.http != HttpChoice::Auto && !self.is_call => {
                    format!(
                        "the TLS connection to {server} failed, because the server has no TLS version, cipher or \
                         HTTP version in common with plimsoll. Leave --http out to allow any HTTP version"
                    )
                }
                error => error.error_message(server, self.timeout, self.is_call),
            })?;
        if reply.grpc_status.is_some() {
            // A gRPC body is binary, so the gRPC status message is shown instead.
            kept.clone_from(&reply.grpc_error_message);
            kept.truncate(KEPT_RESPONSE_BYTES);
        }
        // Over HTTP/2 the header fields arrive separately from the content, so a status line is put
        // before the content.
        if reply.is_h2 {
            kept.splice(..0, format!("HTTP/2 {}\r\n\r\n", reply.status).into_bytes());
        }
        let status = reply.status;
        let mut said = FailedResponse::from_response(status, 0, &kept, self.redact);
        let unsaid = (self.is_call && reply.grpc_status.is_none()).then_some(FailedResponse::NO_GRPC_STATUS);
        said.reason = reply.call_fault.map(CallFault::description).or(unsaid).unwrap_or_default().to_owned();
        Ok(PreflightResponse {
            status,
            grpc_status: reply.grpc_status,
            is_h2: reply.is_h2,
            streams_allowed: reply.streams_allowed,
            took_ns: began.elapsed().as_nanos() as u64,
            text: said.description(),
        })
    }
}

/// Sends the preflight request unless the user disabled it. All loads use the protocol that the
/// preflight request negotiates. Returns warnings: an unsuccessful response, or fewer HTTP/2
/// streams than the plan needs.
pub fn run_preflight(
    plan: &mut Plan,
    injector: &Injector,
    settings: &ExperimentSettings<String>,
) -> Result<Vec<String>, Failure> {
    run_timed_preflight(plan, injector, settings).map(|(warnings, _)| warnings)
}

/// Sends the preflight request like [`run_preflight`]. Also returns the response time in ns, or 0
/// if no request was sent.
pub fn run_timed_preflight(
    plan: &mut Plan,
    injector: &Injector,
    settings: &ExperimentSettings<String>,
) -> Result<(Vec<String>, u64), Failure> {
    if !settings.preflight {
        return Ok((Vec::new(), 0));
    }
    grpc::refuse_unhealthy(plan)?;
    let Some(answer) = send_preflight_request(plan, injector)? else { return Ok((Vec::new(), 0)) };
    let ended = answer.grpc_status_or_mapped();
    let PreflightResponse { status, is_h2, streams_allowed, took_ns, text, .. } = answer;
    let connection_plan = &mut plan.connection_plan;
    if connection_plan.streams_max > 1 && !is_h2 {
        return Err(Failure::usage(format!(
            "--streams {streams}: the server speaks only HTTP/1.1, with one request at a time on a connection; leave \
             --streams out",
            streams = connection_plan.streams_max
        )));
    }
    connection_plan.fix_http_version(if is_h2 { HttpChoice::H2 } else { HttpChoice::H1 });
    let shared = streams_allowed.filter(|allowed| *allowed < connection_plan.streams_max).map(|allowed| {
        format!(
            "--streams {streams}: the server allows {allowed} streams on a connection, and further requests wait in \
            plimsoll. --streams {allowed} uses more connections",
            streams = connection_plan.streams_max
        )
    });
    let call = plan.traffic.preflight_route().and_then(|route| route.grpc.as_ref());
    let warning = match call {
        _ if !plan.traffic.counts_as_success(status) => Some(format!(
            "the first response had status {status}, which does not count as success (--ok-status \
            lists the successful statuses): {text}"
        )),
        Some(call) if !call.ok.contains(ended) => {
            let ended = ended.name();
            Some(format!("the first call ended with {ended}, which does not count as success (--ok-grpc): {text}"))
        }
        _ => None,
    };
    Ok((shared.into_iter().chain(warning).collect(), took_ns))
}
