//! What is asked once a load: before it, to make something ready whose traces its requests may
//! need, and after it, to take that away again, however it ended and whoever ended it. None of it
//! is part of the load, and none of it is counted.
//!
//! Not here: what is asked (the plan says so), and how it is filled in and looked at (the engine).

use crate::connecting::tls_refused;
use plimsoll_engine::{OneOffAnswer, OneOffRequest};
use plimsoll_model::failed_answer::KEPT_BYTES;
use plimsoll_model::failure::Failure;
use plimsoll_model::{FailedAnswer, Injector, OneOffRoute, Plan, SetupTeardown};
use plimsoll_probe::client::{AskError, Question};
use plimsoll_sys::tcp::Socket;
use plimsoll_wire::EncodedRequest;
use plimsoll_wire::tls::Client;
use std::time::{Duration, Instant};

/// After the user wants to stop, no answer is waited for longer.
const TIMEOUT_STOPPING: Duration = Duration::from_secs(5);

/// A load that something was made ready for: what that was is taken away when it is ended, or
/// dropped.
pub struct TeardownGuard {
    /// What is asked after it, with whom to ask and what is known by then; none of the load's own
    /// requests.
    plan: Plan,
    injector: Injector,
    tls: Option<Client>,
}

impl TeardownGuard {
    /// Asks what is to be asked before the load of `plan`, which is given what that leaves behind.
    /// `None`: nothing is.
    pub fn begin(plan: &mut Plan, injector: &Injector) -> Result<Option<TeardownGuard>, Failure> {
        if plan.traffic.setup_teardown.is_empty() {
            return Ok(None);
        }
        plan.traffic.setup_teardown.captured_values.clear();
        let tls = plimsoll_engine::tls_client(plan).map_err(|e| tls_refused(&e))?;
        let mut around = TeardownGuard { plan: plan.clone(), injector: injector.clone(), tls };
        for asked in around.plan.traffic.setup_teardown.setup.clone() {
            if let Err(why) = around.ask(&asked, false)
                && !asked.may_fail
            {
                let name = &asked.route.label;
                return Err(Failure::start(format!("the load was not started: the setup '{name}' {why}")));
            }
        }
        plan.traffic.setup_teardown.captured_values.clone_from(&around.plan.traffic.setup_teardown.captured_values);
        Ok(Some(around))
    }

    /// The load has ended: asks what is to be asked then. Returns what of that failed.
    pub fn end(mut self) -> Vec<String> {
        self.clean_up()
    }

    fn clean_up(&mut self) -> Vec<String> {
        let mut failed = Vec::new();
        for asked in self.plan.traffic.setup_teardown.cleanup.clone() {
            if let Err(why) = self.ask(&asked, true)
                && !asked.may_fail
            {
                failed.push(format!("the cleanup '{}' {why}", asked.route.label));
            }
        }
        self.plan.traffic.setup_teardown.cleanup.clear();
        failed
    }

    /// Asks as often as is said, and keeps what the answers leave behind. The error completes "the
    /// setup 'NAME' ...".
    fn ask(&mut self, asked: &OneOffRoute, in_any_case: bool) -> Result<(), String> {
        let mut once =
            OneOffRequest::compile(&self.plan, &asked.route).map_err(|error| format!("cannot be sent: {error}"))?;
        for number in 0..u64::from(asked.times) {
            let taken = self.ask_once(&mut once, number, asked.route.timeout_ns, in_any_case)?;
            let SetupTeardown { captured_values: given, .. } = &mut self.plan.traffic.setup_teardown;
            for (name, value) in taken {
                given.retain(|(known, _)| *known != name);
                given.push((name, value));
            }
        }
        Ok(())
    }

    /// Asks once, and again where that redirects to, if it is followed. The timeout is for all.
    fn ask_once(
        &self,
        once: &mut OneOffRequest,
        number: u64,
        timeout_ns: u64,
        in_any_case: bool,
    ) -> Result<Vec<(String, String)>, String> {
        let timeout = Duration::from_nanos(timeout_ns);
        let timeout =
            if in_any_case && plimsoll_sys::signal::interrupted() { timeout.min(TIMEOUT_STOPPING) } else { timeout };
        let began = Instant::now();
        let mut request = once.request(number).clone();
        loop {
            let OneOffResponse { status, answer, kept } = self.tell(&request, began + timeout, timeout, in_any_case)?;
            let text = || FailedAnswer::answer(status, 0, &kept, self.plan.traffic.redact).text();
            let missed = |why: &str| format!("got a response, but {why}: {}", text());
            match once.redirected(status, &answer) {
                Some(Ok(next)) => {
                    request = next.clone();
                    continue;
                }
                Some(Err(why)) => return Err(missed(why)),
                None => {}
            }
            if !once.succeeds(status) {
                return Err(format!("got status {status}, which does not count as success: {}", text()));
            }
            return once.judge(&answer, began.elapsed().as_nanos() as u64).map_err(|why| missed(&why));
        }
    }

    /// Sends one request to the first address that takes the connection.
    fn tell(
        &self,
        request: &EncodedRequest,
        deadline: Instant,
        timeout: Duration,
        in_any_case: bool,
    ) -> Result<OneOffResponse, String> {
        let carriage = &self.plan.carriage;
        let connects: Vec<(String, Connect)> = match &carriage.unix {
            Some(path) => vec![(format!("the unix socket {path}"), Box::new(|| Socket::connect_unix(path)))],
            None => {
                let connect = |address| {
                    let sources = self.injector.sources.clone();
                    move || connect_from(&sources, address)
                };
                carriage.addresses.iter().map(|it| (it.to_string(), Box::new(connect(*it)) as Connect)).collect()
            }
        };
        let mut reasons = Vec::new();
        for (who, connect) in connects {
            let question = Question {
                request,
                tls: self.tls.as_ref(),
                http: carriage.http,
                deadline,
                connect_until: deadline,
                in_any_case,
            };
            let (mut answer, mut kept) = (OneOffAnswer::default(), Vec::new());
            let reply = question.ask(connect, &mut |piece| {
                answer.add(*piece);
                kept.extend_from_slice(&piece.bytes[..piece.bytes.len().min(KEPT_BYTES - kept.len())]);
                true
            });
            let reply = match reply {
                Ok(reply) => reply,
                // Nothing was asked yet.
                Err(error @ AskError::Connect(_)) => {
                    reasons.push(format!("{who} {}", error.text(timeout, false)));
                    continue;
                }
                Err(error) => return Err(format!("got no response: {who} {}", error.text(timeout, false))),
            };
            if reply.is_h2 {
                answer.told_apart(&reply.fields);
                kept.splice(..0, format!("HTTP/2 {}\r\n\r\n", reply.status).into_bytes());
            }
            return Ok(OneOffResponse { status: reply.status, answer, kept });
        }
        Err(format!("got no response: {}", reasons.join("; ")))
    }
}

/// An answer to one request.
struct OneOffResponse {
    status: u16,
    answer: OneOffAnswer,
    /// Its first bytes.
    kept: Vec<u8>,
}

impl Drop for TeardownGuard {
    fn drop(&mut self) {
        // The load did not come to its end: what was made ready for it goes all the same.
        let _ = self.clean_up();
    }
}

/// Begins a connection.
type Connect<'a> = Box<dyn FnOnce() -> std::io::Result<Socket> + 'a>;

/// Begins a connection from one of the addresses that are to be used, if any are.
fn connect_from(sources: &[plimsoll_model::AddressRange], to: std::net::SocketAddr) -> std::io::Result<Socket> {
    let sources: Vec<_> = sources.iter().filter(|range| range.is_ipv4() == to.is_ipv4()).copied().collect();
    Socket::connect_from(plimsoll_model::AddressRange::nth_of(&sources, 0), &to)
}
