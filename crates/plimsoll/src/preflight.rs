//! One request before the load, not counted: whether anybody answers there, in HTTP, and over TLS where that is asked.

use crate::failure::Failure;
use crate::target::system_text;
use plimsoll_model::failed_answer::KEPT_BYTES;
use plimsoll_model::{AddressRange, FailedAnswer, Injector, Plan, TlsFailure};
use plimsoll_sys::epoll::Epoll;
use plimsoll_sys::probe::listener::listening_on;
use plimsoll_sys::probe::sockets::Asker;
use plimsoll_sys::signal;
use plimsoll_sys::tcp::{Socket, is_local};
use plimsoll_wire::h1::{EndError, ResponseParser};
use plimsoll_wire::tls::{Client, Session};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Longer than any healthy first answer; `--timeout` can make it shorter.
const TIMEOUT_MAX: Duration = Duration::from_secs(10);

/// How often it is looked whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(100);

/// The first answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// How long it took from the first attempt to connect, in ns.
    pub took_ns: u64,
    /// Its status line and the beginning of its content, as a reader may have them.
    pub text: String,
}

/// Asks once and returns the answer; any HTTP answer will do. Of several addresses the first that answers
/// is enough; the reasons of all others are in the error.
pub fn ask(plan: &Plan, injector: &Injector) -> Result<Answer, Failure> {
    let question = Question {
        request: plimsoll_engine::encode_request(plan, &plan.traffic.first().request)
            .map_err(|e| Failure::usage(e.to_string()))?,
        head: plan.traffic.first().request.method.eq_ignore_ascii_case("HEAD"),
        timeout: Duration::from_nanos(plan.traffic.first().timeout_ns).min(TIMEOUT_MAX),
        tls: plimsoll_engine::tls_client(plan).map_err(|e| Failure::usage(e.to_string()))?,
    };
    let mut reasons = Vec::new();
    if let Some(path) = &plan.carriage.unix {
        match question.ask(|| Socket::connect_unix(path)) {
            Ok(answer) => return Ok(answer),
            Err(reason) => reasons.push(format!("the unix socket {path} {reason}")),
        }
    }
    for address in plan.carriage.addresses.iter().filter(|_| plan.carriage.unix.is_none()) {
        let sources: Vec<AddressRange> =
            injector.sources.iter().filter(|range| range.is_ipv4() == address.is_ipv4()).copied().collect();
        match question.ask(|| Socket::connect_from(AddressRange::nth_of(&sources, 0), address)) {
            Ok(answer) => return Ok(answer),
            Err(reason) => reasons.push(format!("{address} {reason}")),
        }
    }
    Err(Failure::start(format!("nothing was started: {} (--no-preflight starts all the same)", reasons.join("; "))))
}

/// Whether anybody accepts connections where the plan's go, or holds an address there: then nobody else can.
pub fn is_taken(plan: &Plan) -> bool {
    let deadline = Instant::now() + Duration::from_secs(1);
    if let Some(path) = &plan.carriage.unix {
        return Line::open(|| Socket::connect_unix(path), deadline).is_ok();
    }
    // Who holds the address may be too busy to accept; where the kernel does not tell, only who accepts is seen.
    let held = |address: &SocketAddr| {
        is_local(&address.ip())
            && Asker::open()
                .and_then(|mut asker| listening_on(&mut asker, *address))
                .is_ok_and(|sockets| !sockets.is_empty())
    };
    let accepts = |address: &SocketAddr| Line::open(|| Socket::connect_from(None, address), deadline).is_ok();
    plan.carriage.addresses.iter().any(|address| held(address) || accepts(address))
}

struct Question {
    request: Vec<u8>,
    head: bool,
    timeout: Duration,
    tls: Option<Client>,
}

/// A connection that waits, up to a moment.
struct Line {
    socket: Socket,
    epoll: Epoll,
    deadline: Instant,
}

impl Line {
    fn open(connect: impl FnOnce() -> io::Result<Socket>, deadline: Instant) -> io::Result<Line> {
        let socket = connect()?;
        let epoll = Epoll::new(1)?;
        epoll.add(socket.as_raw_fd(), 0)?;
        let mut line = Line { socket, epoll, deadline };
        while !line.wait()? {}
        line.socket.take_error()?;
        Ok(line)
    }

    /// Waits for an event; whether the connection could be written to then. The user may end it.
    fn wait(&mut self) -> io::Result<bool> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        if signal::interrupted() {
            return Err(io::Error::other("interrupted"));
        }
        Ok(self.epoll.wait(Some(left.min(LOOK).as_nanos() as u64))?.iter().any(|event| event.writable()))
    }

    fn send_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.socket.send(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait()?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if Instant::now() >= self.deadline {
                return Err(ErrorKind::TimedOut.into());
            }
            match self.socket.recv(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait()?;
                }
                other => return other,
            }
        }
    }
}

impl Question {
    fn ask(&self, connect: impl FnOnce() -> io::Result<Socket>) -> Result<Answer, String> {
        let began = Instant::now();
        let mut kept = Vec::new();
        let status = self.status(connect, &mut kept)?;
        Ok(Answer {
            status,
            took_ns: began.elapsed().as_nanos() as u64,
            text: FailedAnswer::answer(status, 0, &kept).text(),
        })
    }

    /// The status of the answer; its first bytes are put into `kept`.
    fn status(&self, connect: impl FnOnce() -> io::Result<Socket>, kept: &mut Vec<u8>) -> Result<u16, String> {
        let text = |error: io::Error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                format!("gave no whole answer within {} s", self.timeout.as_secs_f64())
            }
            _ => format!("failed: {}", system_text(&error)),
        };
        let deadline = Instant::now() + self.timeout;
        let mut line = Line::open(connect, deadline).map_err(|error| match error.kind() {
            ErrorKind::TimedOut => text(error),
            _ => format!("cannot be connected to: {}", system_text(&error)),
        })?;
        let mut buffer = vec![0; 64 << 10];
        let mut plain = Vec::new();
        let mut session = match &self.tls {
            None => None,
            Some(client) => Some(self.handshake(client, &mut line, &mut buffer, &mut plain)?),
        };
        // A server may answer and close before it has taken a long body: its answer counts.
        let written = match &mut session {
            None => line.send_all(&self.request),
            Some(session) => send_secure(session, &mut line, &self.request),
        };
        let mut parser = ResponseParser::new();
        parser.begin(self.head);
        loop {
            let received = match line.receive(&mut buffer) {
                Ok(received) => received,
                Err(error) => return Err(text(written.err().unwrap_or(error))),
            };
            let mut ended = received == 0;
            let bytes = match &mut session {
                None => &buffer[..received],
                Some(session) => {
                    plain.clear();
                    let progress = session.receive(&buffer[..received], &mut plain).map_err(tls_text)?;
                    ended |= progress.ended;
                    &plain[..]
                }
            };
            kept.extend_from_slice(&bytes[..bytes.len().min(KEPT_BYTES - kept.len())]);
            match parser.feed(bytes) {
                Ok(fed) => {
                    if let Some(reply) = fed.reply {
                        return Ok(reply.status);
                    }
                }
                Err(error) => return Err(format!("does not answer in HTTP/1.1: {error}")),
            }
            if ended {
                return match parser.finish() {
                    Ok(reply) => Ok(reply.status),
                    Err(EndError::NothingReceived) => Err("closed the connection without an answer".into()),
                    Err(EndError::Truncated) => Err("closed the connection in the middle of its answer".into()),
                };
            }
        }
    }

    fn handshake(
        &self,
        client: &Client,
        line: &mut Line,
        buffer: &mut [u8],
        plain: &mut Vec<u8>,
    ) -> Result<Session, String> {
        let mut session = client.session().map_err(tls_text)?;
        let mut cipher = Vec::new();
        while !session.is_established() {
            cipher.clear();
            session.take_cipher(&mut cipher);
            let sent = line.send_all(&cipher);
            let received = match line.receive(buffer) {
                Ok(0) => return Err(tls_text(TlsFailure::Closed)),
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(tls_text(TlsFailure::Reset)),
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    return Err(format!(
                        "finished no TLS handshake within {} s (write http:// if it speaks plain HTTP)",
                        self.timeout.as_secs_f64()
                    ));
                }
                Err(error) => return Err(format!("failed: {}", system_text(&sent.err().unwrap_or(error)))),
            };
            if let Err(reason) = session.receive(&buffer[..received], plain) {
                // The alert tells the server why; whether it arrives changes nothing here.
                cipher.clear();
                session.take_cipher(&mut cipher);
                let _ = line.send_all(&cipher);
                return Err(tls_text(reason));
            }
        }
        Ok(session)
    }
}

fn send_secure(session: &mut Session, line: &mut Line, mut plain: &[u8]) -> io::Result<()> {
    let mut cipher = Vec::new();
    loop {
        session.take_cipher(&mut cipher);
        line.send_all(&cipher)?;
        cipher.clear();
        if plain.is_empty() {
            return Ok(());
        }
        plain = &plain[session.send(plain)..];
    }
}

fn tls_text(reason: TlsFailure) -> String {
    let way_out = match reason {
        TlsFailure::UnknownIssuer => " (--cacert FILE trusts it, --insecure trusts everybody)",
        TlsFailure::WrongName => " (names count in its subjectAltName only; --insecure takes it all the same)",
        TlsFailure::Expired | TlsFailure::NotYetValid | TlsFailure::BadCertificate => {
            " (--insecure takes it all the same)"
        }
        TlsFailure::ClientCertificate => " (--cert, --key)",
        TlsFailure::NotTls => " (write http:// if it speaks plain HTTP)",
        _ => "",
    };
    format!("fails in TLS: {}{way_out}", reason.text())
}
