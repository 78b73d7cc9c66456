//! A reference server with a known bottleneck: its connection pool (`plimsoll baseline --behind URL
//! --pool N`). For each request to `/items`, the server sends a request to a downstream server over
//! a pool of N connections. If all N connections are in use, further requests queue for a free
//! connection. Paths other than `/items` return 404 at once. `plimsoll demo` finds the connection
//! pool as the bottleneck.
//!
//! The server has one thread for each accepted connection, as many real servers do: threads wait
//! for the pool while cores are idle. Not here: a fast server (the parent module `baseline`), TLS,
//! and downstream responses without a declared length.

use plimsoll_traffic::target_url::Url;
use plimsoll_wire::h1::{RequestParser, RequestStep};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The stack size of a connection's thread, bytes. A small stack suffices, because calls are nested
/// only a few levels deep.
const STACK_BYTES: usize = 128 << 10;
/// The longest head of a request or response, bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// The pause before the server accepts connections again, after the system refused a connection or
/// thread.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(10);
/// The longest time to wait for the next byte from the downstream server.
const DOWNSTREAM_TIMEOUT: Duration = Duration::from_secs(30);

const OK_RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nitems\n";
const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nno\n";
const BAD_REQUEST_RESPONSE: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const BAD_GATEWAY: &[u8] = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n";

/// Starts the server and returns its address. The server accepts connections when this function
/// returns, and runs until the process exits.
pub fn start(listen: SocketAddr, behind: &Url, connections: usize) -> io::Result<SocketAddr> {
    plimsoll_sys::process::raise_open_files_limit();
    let pool = Arc::new(DownstreamPool::new(behind, connections));
    let listener = TcpListener::bind(listen)?;
    let address = listener.local_addr()?;
    std::thread::Builder::new().name("accept".into()).spawn(move || {
        loop {
            let begun = listener.accept().and_then(|(stream, _)| {
                let pool = Arc::clone(&pool);
                let thread = std::thread::Builder::new().name("items".into()).stack_size(STACK_BYTES);
                // The error is ignored: a client that leaves during a request does not affect other
                // clients.
                thread.spawn(move || drop(serve_connection(stream, &pool)))
            });
            if begun.is_err() {
                std::thread::sleep(ACCEPT_RETRY_PAUSE);
            }
        }
    })?;
    Ok(address)
}

/// Serves one connection until the client closes it.
fn serve_connection(mut stream: TcpStream, pool: &DownstreamPool) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut parser = RequestParser::new();
    let (mut held, mut buffer) = (Vec::new(), [0; 4096]);
    let mut is_items = false;
    loop {
        let (used, step) = parser.read(&held);
        let answer = match step {
            RequestStep::More => None,
            RequestStep::Refused(_) => return stream.write_all(BAD_REQUEST_RESPONSE),
            RequestStep::Head(head) => {
                is_items = head.target == b"/items";
                None
            }
            RequestStep::End if !is_items => Some(NOT_FOUND),
            RequestStep::End => Some(if pool.query_downstream().is_ok() { OK_RESPONSE } else { BAD_GATEWAY }),
        };
        let waits = matches!(step, RequestStep::More);
        held.drain(..used);
        if let Some(answer) = answer {
            stream.write_all(answer)?;
        }
        if waits {
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                read if held.len() + read > HEAD_BYTES_MAX => return stream.write_all(BAD_REQUEST_RESPONSE),
                read => held.extend_from_slice(&buffer[..read]),
            }
        }
    }
}

/// The pool of connections to the downstream server.
struct DownstreamPool {
    address: String,
    request: Vec<u8>,
    /// The free connections; `None` stands for a connection that is not open yet.
    free: Mutex<Vec<Option<TcpStream>>>,
    freed: Condvar,
}

impl DownstreamPool {
    fn new(behind: &Url, connections: usize) -> DownstreamPool {
        let origin = &behind.origin;
        let address = format!("{}:{}", origin.host, origin.port);
        let request = format!("GET {} HTTP/1.1\r\nHost: {address}\r\n\r\n", behind.path).into_bytes();
        DownstreamPool {
            address,
            request,
            free: Mutex::new((0..connections).map(|_| None).collect()),
            freed: Condvar::new(),
        }
    }

    fn lock_free_connections(&self) -> MutexGuard<'_, Vec<Option<TcpStream>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a free connection of the pool, and sends one request to the downstream server on
    /// this connection.
    fn query_downstream(&self) -> io::Result<()> {
        let mut free = self.lock_free_connections();
        let taken = loop {
            match free.pop() {
                Some(taken) => break taken,
                None => free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(free);
        let answered = taken.map_or_else(|| self.open_connection(), Ok).and_then(|mut link| {
            link.write_all(&self.request)?;
            read_and_discard_response(&mut link).map(|()| link)
        });
        // A connection that failed is opened again at its next use.
        let (back, result) = match answered {
            Ok(link) => (Some(link), Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.lock_free_connections().push(back);
        self.freed.notify_one();
        result
    }

    fn open_connection(&self) -> io::Result<TcpStream> {
        let link = TcpStream::connect(&self.address)?;
        link.set_nodelay(true)?;
        link.set_read_timeout(Some(DOWNSTREAM_TIMEOUT))?;
        Ok(link)
    }
}

/// Reads one response whose head declares its length, and discards it.
fn read_and_discard_response(link: &mut impl Read) -> io::Result<()> {
    let wrong = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the downstream server's response has no valid Content-Length, or its head is too long",
        )
    };
    let (mut held, mut buffer) = (Vec::new(), [0; 4096]);
    let head_end = loop {
        if let Some(at) = held.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        match link.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read if held.len() + read > HEAD_BYTES_MAX => return Err(wrong()),
            read => held.extend_from_slice(&buffer[..read]),
        }
    };
    let head = String::from_utf8_lossy(&held[..head_end]).to_ascii_lowercase();
    let length = head.lines().find_map(|field| field.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    let mut missing = length.ok_or_else(wrong)?.checked_sub(held.len() - head_end).ok_or_else(wrong)?;
    while missing > 0 {
        let room = missing.min(buffer.len());
        match link.read(&mut buffer[..room])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => missing -= read,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::{ReferenceServerOptions, start as start_plain};
    use std::time::Instant;

    fn fetch_response(address: SocketAddr, target: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("connects");
        write!(stream, "GET {target} HTTP/1.1\r\nHost: h\r\n\r\n").expect("is sent");
        let mut held = [0; 512];
        let read = stream.read(&mut held).expect("is answered");
        String::from_utf8_lossy(&held[..read]).into_owned()
    }

    #[test]
    fn concurrent_requests_of_the_pool_are_limited() {
        let any = "127.0.0.1:0".parse().expect("an address");
        let store = start_plain(ReferenceServerOptions { listen: any, threads: 1, tls: None }).expect("starts");
        let url = Url::parse(&format!("http://{}/delay/50", store.listen_address())).expect("a URL");
        let address = start(any, &url, 2).expect("starts");
        assert!(fetch_response(address, "/other").starts_with("HTTP/1.1 404"));
        let began = Instant::now();
        let askers: Vec<_> = (0..6).map(|_| std::thread::spawn(move || fetch_response(address, "/items"))).collect();
        for asker in askers {
            assert!(asker.join().expect("no panic").starts_with("HTTP/1.1 200"));
        }
        // The requests take three rounds, each with two concurrent requests.
        assert!(began.elapsed() >= Duration::from_millis(150), "{:?}", began.elapsed());
        // If the downstream server has failed, the server responds with status 502.
        drop(store);
        assert!(fetch_response(address, "/items").starts_with("HTTP/1.1 502"));
    }

    #[test]
    fn a_response_is_read_to_its_end() {
        for (bytes, good) in [
            (&b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"[..], true),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", true),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", false),
            (b"HTTP/1.1 200 OK\r\n\r\n", false),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc", false),
            (b"", false),
        ] {
            assert_eq!(read_and_discard_response(&mut &bytes[..]).is_ok(), good, "{bytes:?}");
        }
    }
}
