//! Sends one blocking request over its own connection, outside any load. Preflight, health checks,
//! metrics and profiles use this module. This module encodes and parses HTTP with the same code as
//! loads ([`Conn`]).
//!
//! Every request has a deadline, and the user may interrupt every request. The caller limits the
//! number of received bytes. Not here: the choice of the address, redirects, keep-alive.

use plimsoll_model::{CallFault, HttpChoice, TlsFailure, grpc};
use plimsoll_sys::epoll::Epoll;
use plimsoll_sys::signal;
use plimsoll_sys::system_text;
use plimsoll_sys::tcp::Socket;
use plimsoll_wire::{
    Conn, ConnectionEvent, EarlyCloseError, EncodedRequest, ExchangeError, ProtocolError, ResponsePiece, tls,
};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// The time between two checks for a stop by the user (such as ^C), so that a wait ends promptly.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The size of the receive buffer in bytes.
const RECEIVE_BUFFER_BYTES: usize = 64 << 10;

/// The reason why a request got no response.
#[derive(Debug)]
pub enum NoResponse {
    /// No connection was opened. The error kind `TimedOut` means that the deadline passed before
    /// the connection was open.
    Connect(io::Error),
    /// The TLS handshake was not complete before the deadline.
    HandshakeTimeout,
    /// The response was not complete before the deadline.
    ResponseTimeout,
    /// The TLS handshake or an established TLS connection failed for the contained reason.
    Tls(TlsFailure),
    /// The request used HTTP/1.1, and the response is HTTP/2.
    SpeaksH2,
    /// The request used no TLS, and the response is a TLS alert.
    SpeaksTls,
    /// The received bytes are no response, or the response is incomplete.
    Exchange(ExchangeError),
    /// The operating system reported an error of the connection.
    System(io::Error),
    /// The response is longer than the caller accepts, so the caller ended the reading.
    TooLong,
    /// The user interrupted the request.
    Interrupted,
}

impl NoResponse {
    /// Returns the error as a sentence for a request to `server` with the timeout `within`.
    /// `is_call` says whether the request was a gRPC call.
    pub fn error_message(&self, server: &str, within: Duration, is_call: bool) -> String {
        let seconds = within.as_secs_f64();
        let plain = if is_call { "grpc://" } else { "http://" };
        match self {
            NoResponse::Connect(error) => format!("{server} accepts no connection: {}", system_text(error)),
            NoResponse::HandshakeTimeout => {
                format!(
                    "{server} finished no TLS handshake within {seconds} s (write {plain} if the server speaks plain \
                     HTTP)"
                )
            }
            NoResponse::ResponseTimeout => format!("{server} sent no complete response within {seconds} s"),
            NoResponse::Tls(TlsFailure::NothingInCommon) if is_call => {
                format!("{server} does not speak HTTP/2 on this port, which gRPC needs")
            }
            NoResponse::Tls(reason) => tls_failure_message(server, *reason, plain),
            NoResponse::SpeaksH2 => {
                format!("{server} speaks only HTTP/2 on this port, not HTTP/1.1 (add --http 2)")
            }
            NoResponse::SpeaksTls if is_call => format!("{server} speaks TLS on this port (write grpcs://)"),
            NoResponse::SpeaksTls => format!("{server} speaks TLS on this port (write https://)"),
            NoResponse::Exchange(ExchangeError::Protocol(ProtocolError::NotHttp2)) if is_call => {
                format!("{server} does not speak HTTP/2 on this port, which gRPC needs")
            }
            NoResponse::Exchange(ExchangeError::Protocol(ProtocolError::NotHttp2)) => {
                format!("{server} does not speak HTTP/2 on this port (omit --http 2)")
            }
            NoResponse::Exchange(ExchangeError::Protocol(error)) => {
                format!("{server} sent a response that is not HTTP: {error}")
            }
            NoResponse::Exchange(ExchangeError::End(EarlyCloseError::NothingReceived)) if is_call => {
                format!("{server} closed the connection without a response (write grpcs:// if the server speaks TLS)")
            }
            NoResponse::Exchange(ExchangeError::End(EarlyCloseError::NothingReceived)) => {
                format!("{server} closed the connection without a response")
            }
            NoResponse::Exchange(ExchangeError::End(EarlyCloseError::Truncated)) => {
                format!("{server} closed the connection in the middle of the response")
            }
            NoResponse::Exchange(ExchangeError::Reset) => format!("{server} reset the connection"),
            NoResponse::Exchange(ExchangeError::StreamReset(error)) => {
                format!("{server} reset the request's HTTP/2 stream ({error_name})", error_name = error.name())
            }
            NoResponse::Exchange(ExchangeError::GoAway(error)) => {
                format!("{server} ended the connection ({error_name})", error_name = error.name())
            }
            NoResponse::System(error) => {
                format!("the connection to {server} failed: {reason}", reason = system_text(error))
            }
            NoResponse::TooLong => format!("{server} sent more data than requested"),
            NoResponse::Interrupted => format!("the request to {server} was interrupted"),
        }
    }
}

fn tls_failure_message(server: &str, reason: TlsFailure, plain: &str) -> String {
    let not_tls = format!(" (write {plain} if the server speaks plain HTTP)");
    let way_out = match reason {
        TlsFailure::UnknownIssuer => {
            " (trust the issuer with --cacert FILE, or skip the check of certificates with --insecure)"
        }
        TlsFailure::WrongName => {
            " (plimsoll checks only the names in subjectAltName; skip the check of certificates with --insecure)"
        }
        TlsFailure::Expired | TlsFailure::NotYetValid | TlsFailure::BadCertificate => {
            " (skip the check of certificates with --insecure)"
        }
        TlsFailure::ClientCertificate => " (--cert, --key)",
        TlsFailure::NotTls => &not_tls,
        _ => "",
    };
    format!("the TLS connection to {server} failed: {failure}{way_out}", failure = reason.description())
}

/// A connected socket whose operations wait until a deadline.
pub struct BlockingSocket {
    socket: Socket,
    epoll: Epoll,
    deadline: Instant,
    /// Whether operations continue after the user has asked to stop, as cleanup requests need.
    ignores_stop: bool,
}

impl BlockingSocket {
    /// Starts a connection with `connect`, and waits until the connection is open. Fails if the
    /// deadline passes (`TimedOut`), or if the user asks to stop.
    pub fn open(connect: impl FnOnce() -> io::Result<Socket>, deadline: Instant) -> io::Result<BlockingSocket> {
        BlockingSocket::open_until_deadline(connect, deadline, false)
    }

    /// Starts a connection, and waits like [`BlockingSocket::open`] until the connection is open.
    /// If `ignores_stop` is true, the wait continues after the user has asked to stop.
    fn open_until_deadline(
        connect: impl FnOnce() -> io::Result<Socket>,
        deadline: Instant,
        ignores_stop: bool,
    ) -> io::Result<BlockingSocket> {
        let socket = connect()?;
        let epoll = Epoll::new(1)?;
        epoll.add(socket.as_raw_fd(), 0)?;
        let mut line = BlockingSocket { socket, epoll, deadline, ignores_stop };
        while !line.wait_for_event()? {}
        line.socket.take_error()?;
        Ok(line)
    }

    /// Waits for an event on the socket, at most until the next check whether the user has asked to
    /// stop. Returns whether the socket is writable.
    fn wait_for_event(&mut self) -> io::Result<bool> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        if self.is_interrupted() {
            return Err(interrupted_error());
        }
        Ok(self.epoll.wait(Some(left.min(STOP_CHECK_INTERVAL).as_nanos() as u64))?.iter().any(|event| event.writable()))
    }

    fn is_interrupted(&self) -> bool {
        signal::is_stop_requested() && !self.ignores_stop
    }
}

fn interrupted_error() -> io::Error {
    io::Error::other("interrupted")
}

/// The response to a single request.
#[derive(Clone, Debug)]
pub struct SingleResponse {
    /// The HTTP status of the response.
    pub status: u16,
    /// The gRPC status, if the response has one.
    pub grpc_status: Option<u16>,
    /// The text of the `grpc-message` field, decoded or empty.
    pub grpc_error_message: Vec<u8>,
    /// The fault in the messages of a gRPC response, although the server sent the gRPC status `OK`;
    /// `None` if the messages have no fault.
    pub call_fault: Option<CallFault>,
    /// Whether the response came over HTTP/2.
    pub is_h2: bool,
    /// The server's limit of concurrent HTTP/2 streams; `None` if the server sets no limit.
    pub streams_allowed: Option<u32>,
    /// The header fields of an HTTP/2 response, if the caller asked for content.
    pub fields: Vec<u8>,
}

impl SingleResponse {
    fn from_conn(conn: &Conn, status: u16, grpc_status: Option<u16>) -> SingleResponse {
        let grpc_error_message = grpc::decode_percent_encoded_message(conn.grpc_error_message());
        let fields = conn.fields().to_vec();
        let call_fault = conn.grpc_message_fault().filter(|_| grpc_status.is_some());
        let (is_h2, streams_allowed) = (conn.is_h2(), conn.streams_allowed());
        SingleResponse { status, grpc_status, grpc_error_message, call_fault, is_h2, streams_allowed, fields }
    }
}

/// A single request, with its options and deadline.
#[derive(Clone, Copy)]
pub struct SingleRequest<'a> {
    /// The request to send.
    pub request: &'a EncodedRequest,
    /// The TLS client; `None` if the connection does not use TLS.
    pub tls: Option<&'a tls::Client>,
    /// The HTTP version to use without TLS. Over TLS the version is negotiated.
    pub http: HttpChoice,
    /// The deadline of the whole exchange.
    pub deadline: Instant,
    /// The deadline for opening the connection, if it is earlier than `deadline`.
    pub connect_until: Instant,
    /// Whether to send the request even after the user has asked to stop.
    pub ignores_stop: bool,
}

impl SingleRequest<'_> {
    /// Sends the request over the connection that `connect` starts, and returns the response. The
    /// callback `heard` receives every piece of the response, and returns `false` to end the
    /// reading.
    pub fn send_and_receive(
        &self,
        connect: impl FnOnce() -> io::Result<Socket>,
        heard: &mut dyn FnMut(&ResponsePiece) -> bool,
    ) -> Result<SingleResponse, NoResponse> {
        let mut line =
            BlockingSocket::open_until_deadline(connect, self.connect_until.min(self.deadline), self.ignores_stop)
                .map_err(NoResponse::Connect)?;
        line.deadline = self.deadline;
        let mut conn = match (self.tls, self.http) {
            (Some(client), _) => Conn::over_tls(client, 1).map_err(NoResponse::Tls)?,
            (None, HttpChoice::H2) => Conn::h2(1),
            (None, HttpChoice::Auto | HttpChoice::H1) => Conn::new(),
        };
        let mut stands = self.tls.is_none();
        if stands {
            conn.start(0, self.request);
        }
        let (mut buffer, mut scratch, mut plain) = (vec![0; RECEIVE_BUFFER_BYTES], Vec::new(), Vec::new());
        // A server may respond and close the connection before it has read a long request. A
        // response to a partly sent request counts as a response.
        let mut unsent = None;
        loop {
            if unsent.is_none() {
                unsent = self.send(&line, &mut conn, &mut scratch).err();
            }
            let late = if stands { NoResponse::ResponseTimeout } else { NoResponse::HandshakeTimeout };
            let received = match line.socket.recv(&mut buffer) {
                _ if Instant::now() >= self.deadline => return Err(late),
                _ if line.is_interrupted() => return Err(NoResponse::Interrupted),
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => match line.wait_for_event() {
                    Ok(_) => continue,
                    Err(error) if error.kind() == ErrorKind::TimedOut => return Err(late),
                    Err(_) if line.is_interrupted() => return Err(NoResponse::Interrupted),
                    Err(error) => return Err(NoResponse::System(error)),
                },
                Err(error) if !stands && error.kind() == ErrorKind::ConnectionReset => {
                    return Err(NoResponse::Tls(TlsFailure::Reset));
                }
                Err(error) => return Err(NoResponse::System(unsent.unwrap_or(error))),
            };
            if received == 0 {
                return handle_close(&mut conn, stands);
            }
            let mut received = conn.receive(&buffer[..received], &mut plain);
            while let Some(event) = conn.next(&mut received) {
                match event {
                    ConnectionEvent::HandshakeDone { .. } => {
                        stands = true;
                        conn.start(0, self.request);
                    }
                    ConnectionEvent::Piece { piece, .. } if !heard(&piece) => return Err(NoResponse::TooLong),
                    // No action is needed: the loop sends pending bytes before its next read.
                    ConnectionEvent::Piece { .. }
                    | ConnectionEvent::HasBytesToSend
                    | ConnectionEvent::WindowNearlyEmpty => {}
                    // `AnsweredWithMore` cannot occur, because a request of this module consists of
                    // a single message.
                    ConnectionEvent::AnsweredWithMore { .. } => {}
                    ConnectionEvent::Answered { piece, .. } if !heard(&piece) => return Err(NoResponse::TooLong),
                    ConnectionEvent::Answered { status, grpc_status, .. } => {
                        return Ok(SingleResponse::from_conn(&conn, status, grpc_status));
                    }
                    ConnectionEvent::Failed {
                        error: ExchangeError::Protocol(ProtocolError::BadStatusLine),
                        piece,
                        ..
                    } if begins_with_h2_settings(piece.bytes) => {
                        return Err(NoResponse::SpeaksH2);
                    }
                    ConnectionEvent::Failed { error: ExchangeError::Protocol(_), piece, .. }
                        if begins_tls_alert(piece.bytes) =>
                    {
                        return Err(NoResponse::SpeaksTls);
                    }
                    ConnectionEvent::Failed { error, .. } | ConnectionEvent::Refused { error, .. } => {
                        return Err(NoResponse::Exchange(error));
                    }
                    ConnectionEvent::ProtocolViolation(error) => return Err(NoResponse::Exchange(error.into())),
                    // A request in flight still gets a response after the server has sent the frame
                    // GOAWAY.
                    ConnectionEvent::GoAway { .. } => {}
                    ConnectionEvent::Surplus(_) => return Err(NoResponse::Exchange(ProtocolError::Surplus.into())),
                    ConnectionEvent::TlsStreamEnded => return handle_close(&mut conn, stands),
                    ConnectionEvent::TlsFailed(reason) => {
                        // The TLS alert tells the server why TLS failed; a failure to send the
                        // alert does not matter.
                        let _ = self.send(&line, &mut conn, &mut scratch);
                        return Err(NoResponse::Tls(reason));
                    }
                }
            }
        }
    }

    /// Sends as many pending bytes as the socket accepts.
    fn send(&self, line: &BlockingSocket, conn: &mut Conn, scratch: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let bytes = conn.bytes_to_send(|_| self.request, scratch);
            if bytes.is_empty() {
                return Ok(());
            }
            match line.socket.send(bytes) {
                Ok(sent) => {
                    conn.record_sent(sent, scratch);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    conn.record_sent(0, scratch);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    conn.record_sent(0, scratch);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether `bytes` start with an HTTP/2 SETTINGS frame, the first frame that a server sends. The
/// length of a SETTINGS frame is a multiple of six bytes.
fn begins_with_h2_settings(bytes: &[u8]) -> bool {
    matches!(bytes, [0, 0, length, 4, 0, 0, 0, 0, 0, ..] if length.is_multiple_of(6))
}

/// Whether `bytes` start with a TLS alert, with which a TLS server refuses plain HTTP.
fn begins_tls_alert(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15, 3, 0..=4, 0, 2, ..])
}

/// Handles a connection that the server has closed. Returns the response if the response ends with
/// the connection. `is_ready` says whether the connection was ready for the request (over TLS:
/// after the handshake).
fn handle_close(conn: &mut Conn, is_ready: bool) -> Result<SingleResponse, NoResponse> {
    match conn.end_by_peer() {
        _ if !is_ready => Err(NoResponse::Tls(TlsFailure::Closed)),
        Some(ConnectionEvent::Answered { status, grpc_status, .. }) => {
            Ok(SingleResponse::from_conn(conn, status, grpc_status))
        }
        Some(ConnectionEvent::Failed { error, .. }) => Err(NoResponse::Exchange(error)),
        _ => Err(NoResponse::Exchange(EarlyCloseError::NothingReceived.into())),
    }
}
