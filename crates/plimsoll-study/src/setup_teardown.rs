//! Sends the setup requests before a load and the cleanup requests after it, however the load ends.
//! Setup and cleanup requests do not count in the load's figures.
//!
//! Not here: which requests are sent (the plan), and templates and checks of these requests (the
//! engine).

use crate::connection_inputs::tls_failure;
use plimsoll_engine::{OneOffRequest, StoredOneOffResponse};
use plimsoll_model::failed_response::KEPT_RESPONSE_BYTES;
use plimsoll_model::failure::Failure;
use plimsoll_model::{FailedResponse, Injector, OneOffRoute, Plan, SetupTeardown};
use plimsoll_probe::client::{NoResponse, SingleRequest};
use plimsoll_sys::tcp::Socket;
use plimsoll_wire::EncodedRequest;
use plimsoll_wire::tls::Client;
use std::time::{Duration, Instant};

/// The timeout of a cleanup request after the user pressed ^C.
const CLEANUP_TIMEOUT_AFTER_INTERRUPT: Duration = Duration::from_secs(5);

/// Represents a load whose setup requests were sent. The cleanup requests are sent when the
/// `TeardownGuard` is ended or dropped.
pub struct TeardownGuard {
    /// A copy of the load's plan, with the values that the setup requests captured. The copied plan
    /// serves only to send its setup and cleanup requests.
    plan: Plan,
    injector: Injector,
    tls: Option<Client>,
}

impl TeardownGuard {
    /// Sends the setup requests of `plan`, and stores the values that they capture in `plan`.
    /// Returns `None` if the plan has neither setup nor cleanup requests. If a required setup
    /// request fails, the cleanup requests are sent, and the function returns the failure.
    pub fn begin(plan: &mut Plan, injector: &Injector) -> Result<Option<TeardownGuard>, Failure> {
        if plan.traffic.setup_teardown.is_empty() {
            return Ok(None);
        }
        plan.traffic.setup_teardown.captured_values.clear();
        let tls = plimsoll_engine::tls_client(plan).map_err(|e| tls_failure(&e))?;
        let mut around = TeardownGuard { plan: plan.clone(), injector: injector.clone(), tls };
        for asked in around.plan.traffic.setup_teardown.setup.clone() {
            if let Err(outcome) = around.send_and_capture(&asked, false)
                && !asked.may_fail
            {
                let name = &asked.route.label;
                return Err(Failure::cannot_start(format!(
                    "the load was not started: the setup request '{name}' {outcome}"
                )));
            }
        }
        plan.traffic.setup_teardown.captured_values.clone_from(&around.plan.traffic.setup_teardown.captured_values);
        Ok(Some(around))
    }

    /// Sends the cleanup requests after the load. Returns a sentence for each failed cleanup
    /// request.
    pub fn end(mut self) -> Vec<String> {
        self.run_teardown()
    }

    fn run_teardown(&mut self) -> Vec<String> {
        let mut failed = Vec::new();
        for asked in self.plan.traffic.setup_teardown.teardown.clone() {
            if let Err(why) = self.send_and_capture(&asked, true)
                && !asked.may_fail
            {
                failed.push(format!("the cleanup request '{}' {why}", asked.route.label));
            }
        }
        self.plan.traffic.setup_teardown.teardown.clear();
        failed
    }

    /// Sends one setup or cleanup request as often as the plan says, and stores the captured
    /// values. If `ignores_stop` is true, the request is sent even after the user has asked to
    /// stop. The error text continues a sentence such as `the setup request 'NAME' ...`.
    fn send_and_capture(&mut self, route: &OneOffRoute, ignores_stop: bool) -> Result<(), String> {
        let mut once =
            OneOffRequest::compile(&self.plan, &route.route).map_err(|error| format!("cannot be sent: {error}"))?;
        for number in 0..u64::from(route.times) {
            let taken = self.send_with_redirects(&mut once, number, route.route.timeout_ns, ignores_stop)?;
            let SetupTeardown { captured_values: given, .. } = &mut self.plan.traffic.setup_teardown;
            for (name, value) in taken {
                given.retain(|(known, _)| *known != name);
                given.push((name, value));
            }
        }
        Ok(())
    }

    /// Sends one request and follows its redirects, all within one timeout.
    fn send_with_redirects(
        &self,
        once: &mut OneOffRequest,
        number: u64,
        timeout_ns: u64,
        ignores_stop: bool,
    ) -> Result<Vec<(String, String)>, String> {
        let timeout = Duration::from_nanos(timeout_ns);
        let timeout = if ignores_stop && plimsoll_sys::signal::is_stop_requested() {
            timeout.min(CLEANUP_TIMEOUT_AFTER_INTERRUPT)
        } else {
            timeout
        };
        let began = Instant::now();
        let mut request = once.encode_repetition(number).clone();
        loop {
            let OneOffResponse { status, answer, kept } =
                self.send_to_first_address(&request, began + timeout, timeout, ignores_stop)?;
            let text = || FailedResponse::from_response(status, 0, &kept, self.plan.traffic.redact).description();
            let missed = |why: &str| format!("got a response, but {why}: {}", text());
            match once.request_after_redirect(status, &answer) {
                Some(Ok(next)) => {
                    request = next.clone();
                    continue;
                }
                Some(Err(why)) => return Err(missed(why)),
                None => {}
            }
            if !once.succeeds(status) {
                return Err(format!(
                    "got a response with status {status}, which does not count as success: {response}",
                    response = text()
                ));
            }
            return once.check_response(&answer, began.elapsed().as_nanos() as u64).map_err(|why| missed(&why));
        }
    }

    /// Sends one request to the first address that accepts a connection.
    fn send_to_first_address(
        &self,
        request: &EncodedRequest,
        deadline: Instant,
        timeout: Duration,
        ignores_stop: bool,
    ) -> Result<OneOffResponse, String> {
        let connection_plan = &self.plan.connection_plan;
        let connects: Vec<(String, Connect)> = match &connection_plan.unix {
            Some(path) => vec![(format!("the unix socket {path}"), Box::new(|| Socket::connect_unix(path)))],
            None => {
                let connect = |address| {
                    let sources = self.injector.sources.clone();
                    move || connect_from(&sources, address)
                };
                connection_plan.addresses.iter().map(|it| (it.to_string(), Box::new(connect(*it)) as Connect)).collect()
            }
        };
        let mut reasons = Vec::new();
        for (server, connect) in connects {
            let question = SingleRequest {
                request,
                tls: self.tls.as_ref(),
                http: connection_plan.http,
                deadline,
                connect_until: deadline,
                ignores_stop,
            };
            let (mut answer, mut kept) = (StoredOneOffResponse::default(), Vec::new());
            let reply = question.send_and_receive(connect, &mut |piece| {
                answer.add(*piece);
                kept.extend_from_slice(&piece.bytes[..piece.bytes.len().min(KEPT_RESPONSE_BYTES - kept.len())]);
                true
            });
            let reply = match reply {
                Ok(reply) => reply,
                // Without a connection no request was sent, so the next address is tried.
                Err(error @ NoResponse::Connect(_)) => {
                    reasons.push(error.error_message(&server, timeout, false));
                    continue;
                }
                Err(error) => return Err(format!("got no response: {}", error.error_message(&server, timeout, false))),
            };
            if reply.is_h2 {
                answer.set_header_fields(&reply.fields);
                kept.splice(..0, format!("HTTP/2 {}\r\n\r\n", reply.status).into_bytes());
            }
            return Ok(OneOffResponse { status: reply.status, answer, kept });
        }
        Err(format!("got no response: {}", reasons.join("; ")))
    }
}

/// The response to one setup or cleanup request.
struct OneOffResponse {
    status: u16,
    answer: StoredOneOffResponse,
    /// The first bytes of the response, which error messages show redacted.
    kept: Vec<u8>,
}

impl Drop for TeardownGuard {
    fn drop(&mut self) {
        // If the load ended without a call of `end`, the cleanup requests are sent now.
        let _ = self.run_teardown();
    }
}

/// A function that opens a connection.
type Connect<'a> = Box<dyn FnOnce() -> std::io::Result<Socket> + 'a>;

/// Opens a connection from the first local address in `sources` that has the same IP version as the
/// target.
fn connect_from(sources: &[plimsoll_model::AddressRange], to: std::net::SocketAddr) -> std::io::Result<Socket> {
    let sources: Vec<_> = sources.iter().filter(|range| range.is_ipv4() == to.is_ipv4()).copied().collect();
    Socket::connect_from(plimsoll_model::AddressRange::nth_address(&sources, 0), &to)
}
