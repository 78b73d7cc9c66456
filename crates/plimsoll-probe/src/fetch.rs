//! Fetches one document over plain HTTP with a deadline, and blocks until the document arrives.
//! Probes fetch profiles and metrics with this module during a load, but requests for profiles and
//! metrics are not part of the load.
//!
//! Not here: the exchange (`client`), redirects, TLS.

use crate::client::{NoResponse, SingleRequest};
use plimsoll_model::traffic::url_host;
use plimsoll_model::{Failure, HttpChoice, Origin, Plan};
use plimsoll_sys::signal;
use plimsoll_sys::system_text;
use plimsoll_sys::tcp::Socket;
use plimsoll_wire::EncodedRequest;
use plimsoll_wire::h1::RequestParts;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The interval between two checks in [`await_fetch`] whether the user has interrupted plimsoll.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The longest time for opening a connection to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The parts of a URL, with its resolved addresses.
#[derive(Debug, Clone)]
pub struct FetchTarget {
    /// Scheme, host and port.
    pub origin: Origin,
    /// Path and query of the document.
    pub path: String,
    /// Value of an Authorization header for the user info in the URL.
    pub authorization: Option<String>,
    /// The addresses, in the order of attempts.
    pub addresses: Vec<SocketAddr>,
}

impl FetchTarget {
    /// Returns the target for requests for metrics and profiles to the server of a load. The
    /// requests go to the resolved addresses of the load, without another name lookup. The user has
    /// already permitted requests to that server. Fails if the load uses TLS or a unix socket.
    pub fn for_load_server(plan: &Plan, authorization: Option<String>) -> Result<FetchTarget, Failure> {
        let origin = plan.traffic.origin.clone();
        if origin.scheme != "http" {
            return Err(Failure::usage(format!(
                "'{origin}': plimsoll reads metrics and profiles only over plain HTTP: give their http:// address"
            )));
        }
        if plan.connection_plan.unix.is_some() || plan.connection_plan.addresses.is_empty() {
            return Err(Failure::usage(
                "the target is a unix socket: give the http:// address of the server's metrics or profiles",
            ));
        }
        Ok(FetchTarget {
            origin,
            path: "/".to_owned(),
            authorization,
            addresses: plan.connection_plan.addresses.clone(),
        })
    }
}

/// A complete HTTP response. The content is kept for every status, also for an error status.
#[derive(Debug)]
pub struct FetchResponse {
    /// The status of the response.
    pub status: u16,
    /// The content of the response.
    pub body: Vec<u8>,
}

/// The number of bytes that one fetch, or several fetches together, may still receive.
#[derive(Debug, Clone)]
pub struct ByteBudget(Arc<AtomicUsize>);

impl ByteBudget {
    /// Creates a budget of `bytes` bytes.
    pub fn new(bytes: usize) -> ByteBudget {
        ByteBudget(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Takes `bytes` bytes from the budget. Returns `false` if the budget has fewer bytes left.
    fn take(&self, bytes: usize) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

/// The reason why a fetch got no response.
#[derive(Debug)]
pub enum FetchError {
    /// The response was not complete before the deadline.
    Timeout,
    /// The fetch failed for another reason. The text is a sentence.
    Other(String),
}

impl FetchError {
    /// Returns the error text, a sentence.
    pub fn error_message(&self) -> &str {
        match self {
            FetchError::Timeout => "the server sent no complete response in time",
            FetchError::Other(text) => text,
        }
    }

    fn other_error(text: impl Into<String>) -> FetchError {
        FetchError::Other(text.into())
    }
}

/// Requests `path` from the target, and tries its addresses in turn. The whole response must arrive
/// within `timeout` and fit the byte budget. The user may interrupt the request.
///
/// # Errors
/// Returns [`FetchError::Timeout`] if the response is not complete within `timeout`. If every
/// address fails earlier, the text of the error has one reason for each address.
pub fn fetch(
    target: &FetchTarget,
    path: &str,
    timeout: Duration,
    budget: &ByteBudget,
) -> Result<FetchResponse, FetchError> {
    let Origin { scheme, host, port } = &target.origin;
    if scheme != "http" {
        return Err(FetchError::other_error(
            "plimsoll fetches files only over plain HTTP: fetch the file with another program, and give the file",
        ));
    }
    let host = url_host(host);
    let authorization = target.authorization.as_ref().map(|value| ("Authorization".to_owned(), value.clone()));
    let host = format!("{host}:{port}");
    let parts = RequestParts {
        method: "GET",
        target: path,
        host: &host,
        headers: authorization.as_slice(),
        body: &[],
        keep_alive: false,
    };
    let request = EncodedRequest::new(&parts)
        .map_err(|error| FetchError::Other(format!("the request to {host} is not valid: {error}")))?
        .with_content();
    let deadline = Instant::now() + timeout;
    let mut reasons = Vec::new();
    for address in &target.addresses {
        match fetch_at(address, &request, deadline, budget) {
            Err(FetchError::Other(reason)) => reasons.push(reason),
            done => return done,
        }
    }
    Err(FetchError::Other(reasons.join("; ")))
}

/// Waits for the result of a thread that fetches a document. The user may interrupt the wait.
pub fn await_fetch<T>(thread: JoinHandle<Result<T, String>>) -> Result<T, String> {
    while !thread.is_finished() {
        if signal::is_stop_requested() {
            return Err("the user stopped plimsoll before the response was complete".into());
        }
        std::thread::sleep(STOP_CHECK_INTERVAL);
    }
    thread.join().unwrap_or_else(|_| Err("a bug of plimsoll prevented the reading of the server's response".into()))
}

/// Requests the document from one address. The text of an error names the address.
fn fetch_at(
    address: &SocketAddr,
    request: &EncodedRequest,
    deadline: Instant,
    bytes_left: &ByteBudget,
) -> Result<FetchResponse, FetchError> {
    let connect_until = Instant::now() + CONNECT_TIMEOUT;
    let question =
        SingleRequest { request, tls: None, http: HttpChoice::H1, deadline, connect_until, ignores_stop: false };
    let mut body = Vec::new();
    let asked = question.send_and_receive(|| Socket::connect_from(None, address), &mut |piece| {
        body.extend_from_slice(piece.content());
        bytes_left.take(piece.bytes.len())
    });
    let reply = asked.map_err(|error| match error {
        NoResponse::ResponseTimeout => FetchError::Timeout,
        NoResponse::Connect(error) if error.kind() == ErrorKind::TimedOut => {
            FetchError::Other(format!("{address} accepts no connection: connection timed out (is the server running?)"))
        }
        NoResponse::Connect(error) => FetchError::Other(format!(
            "{address} accepts no connection: {reason} (is the server running?)",
            reason = system_text(&error)
        )),
        NoResponse::TooLong => FetchError::Other(format!("{address} sent more data than plimsoll accepts")),
        NoResponse::Interrupted => {
            FetchError::other_error("the user stopped plimsoll before the response was complete")
        }
        error => FetchError::Other(error.error_message(&address.to_string(), CONNECT_TIMEOUT, false)),
    })?;
    Ok(FetchResponse { status: reply.status, body })
}
