//! Fetches one document over plain HTTP, blocking, with a deadline: profiles are fetched beside the load, not as load.
//!
//! It asks in HTTP/1.0, so that the answer comes in one piece, and reads it with the parser of the engine. Not here:
//! redirects, TLS, connections that are kept.

use crate::target::{Target, system_text};
use plimsoll_model::traffic::bracketed;
use plimsoll_sys::signal;
use plimsoll_wire::h1::{EndError, ResponseParser};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it is looked whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(200);

/// A connection that takes longer comes to nothing.
const CONNECT: Duration = Duration::from_secs(10);

/// An answer: its status, and its content whatever the status.
#[derive(Debug)]
pub struct Fetched {
    pub status: u16,
    pub body: Vec<u8>,
}

/// How many bytes may still be received: by one fetch, or by all that share it.
#[derive(Debug, Clone)]
pub struct BytesLeft(Arc<AtomicUsize>);

impl BytesLeft {
    /// So many.
    pub fn new(bytes: usize) -> BytesLeft {
        BytesLeft(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Takes some; `false` if there were not so many any more.
    fn take(&self, bytes: usize) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum FetchError {
    /// None that was whole in time.
    Late,
    /// Another reason; the text completes "ADDRESS ...".
    Other(String),
}

impl FetchError {
    /// Completes "ADDRESS ...".
    pub fn text(&self) -> &str {
        match self {
            FetchError::Late => "gave no whole answer in time",
            FetchError::Other(text) => text,
        }
    }

    fn other(text: impl Into<String>) -> FetchError {
        FetchError::Other(text.into())
    }
}

/// Asks for `path` at the target; the whole answer must be there within `timeout` and have no more bytes than are left.
/// Every address is tried in turn. The user may end it.
///
/// # Errors
/// [`FetchError`] of the last address, with the address in its text.
pub fn fetch(target: &Target, path: &str, timeout: Duration, left: &BytesLeft) -> Result<Fetched, FetchError> {
    let Target { scheme, host, port, .. } = target;
    if scheme != "http" {
        return Err(FetchError::other(
            "is fetched over plain HTTP only: take it with another program and give the file",
        ));
    }
    let host = bracketed(host);
    let authorization = target.authorization.as_ref().map_or(String::new(), |a| format!("Authorization: {a}\r\n"));
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}:{port}\r\n{authorization}Accept: */*\r\n\r\n");
    let deadline = Instant::now() + timeout;
    let mut reasons = Vec::new();
    for address in &target.addresses {
        match fetch_at(address, request.as_bytes(), deadline, left) {
            Err(FetchError::Other(reason)) => reasons.push(format!("{address} {reason}")),
            done => return done,
        }
    }
    Err(FetchError::Other(reasons.join("; ")))
}

/// Connects; a thread of its own waits for that, so that the user may end it.
fn connect(address: SocketAddr, timeout: Duration) -> std::io::Result<TcpStream> {
    let (tell, told) = mpsc::channel();
    std::thread::Builder::new().name("connect".into()).spawn(move || {
        // Where nobody waits any more, it is closed at once.
        let _ = tell.send(TcpStream::connect_timeout(&address, timeout));
    })?;
    loop {
        match told.recv_timeout(LOOK) {
            Ok(connected) => return connected,
            Err(RecvTimeoutError::Timeout) if !signal::interrupted() => {}
            Err(_) => return Err(std::io::Error::other("interrupted")),
        }
    }
}

/// What a thread that fetches comes to; the user may end the waiting, whatever the thread is at.
pub fn awaited<T>(thread: JoinHandle<Result<T, String>>) -> Result<T, String> {
    while !thread.is_finished() {
        if signal::interrupted() {
            return Err("was not waited for: the user ended it".into());
        }
        std::thread::sleep(LOOK / 20);
    }
    thread.join().unwrap_or_else(|_| Err("it could not be read".into()))
}

fn fetch_at(
    address: &SocketAddr,
    request: &[u8],
    deadline: Instant,
    bytes_left: &BytesLeft,
) -> Result<Fetched, FetchError> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => FetchError::Late,
        _ => FetchError::Other(format!("failed: {}", system_text(&error))),
    };
    let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let mut stream = connect(*address, left().min(CONNECT)).map_err(|e| {
        FetchError::Other(format!("cannot be connected to: {} (is the server running?)", system_text(&e)))
    })?;
    stream.set_write_timeout(Some(left())).map_err(failed)?;
    stream.write_all(request).map_err(failed)?;
    let mut parser = ResponseParser::new();
    parser.begin(false);
    let (mut received, mut buffer) = (Vec::new(), vec![0; 256 << 10]);
    let reply = loop {
        stream.set_read_timeout(Some(left().min(LOOK))).map_err(failed)?;
        let read = stream.read(&mut buffer);
        if signal::interrupted() {
            return Err(FetchError::other("was not waited for: the user ended it"));
        }
        let length = match read {
            _ if Instant::now() > deadline => return Err(FetchError::Late),
            Ok(length) => length,
            Err(error)
                if [ErrorKind::Interrupted, ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) =>
            {
                continue;
            }
            Err(error) => return Err(failed(error)),
        };
        if length == 0 {
            break parser.finish().map_err(|error| {
                FetchError::other(match error {
                    EndError::NothingReceived => "closed the connection without an answer",
                    EndError::Truncated => "closed the connection in the middle of its answer",
                })
            })?;
        }
        let fed = parser
            .feed(&buffer[..length])
            .map_err(|error| FetchError::Other(format!("does not answer in HTTP/1.1: {error}")))?;
        if !bytes_left.take(fed.consumed) {
            return Err(FetchError::other("sent more than any profile needs"));
        }
        received.extend_from_slice(&buffer[..fed.consumed]);
        if let Some(reply) = fed.reply {
            break reply;
        }
    };
    let head = received.len() - (reply.body_bytes as usize).min(received.len());
    // The content follows the empty line unless it came in chunks, which nobody may send to HTTP/1.0.
    if !received[..head].ends_with(b"\n\r\n") && !received[..head].ends_with(b"\n\n") {
        return Err(FetchError::other(
            "answers HTTP/1.0 in chunks: fetch the profile with another program and give the file",
        ));
    }
    Ok(Fetched { status: reply.status, body: received.split_off(head) })
}
