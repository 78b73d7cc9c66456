//! One request before the load, not counted: whether anybody answers there, in HTTP.

use crate::failure::Failure;
use crate::target::system_text;
use plimsoll_model::Plan;
use plimsoll_wire::h1::{EndError, ResponseParser};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Longer than any healthy first answer; `--timeout` can make it shorter.
const TIMEOUT_MAX: Duration = Duration::from_secs(10);

/// Asks once and returns the status of the answer; any HTTP answer will do.
pub fn ask(plan: &Plan) -> Result<u16, Failure> {
    let request = plimsoll_engine::encode_request(plan).map_err(|e| Failure::usage(e.to_string()))?;
    let head = plan.request.method.eq_ignore_ascii_case("HEAD");
    let timeout = Duration::from_nanos(plan.timeout_ns).min(TIMEOUT_MAX);
    let mut reasons = Vec::new();
    for address in &plan.request.addresses {
        match ask_at(address, &request, head, timeout) {
            Ok(status) => return Ok(status),
            Err(reason) => reasons.push(format!("{address} {reason}")),
        }
    }
    Err(Failure::start(format!("nothing was started: {} (--no-preflight starts all the same)", reasons.join("; "))))
}

/// Whether anybody accepts connections there.
pub fn listens(address: &SocketAddr) -> bool {
    TcpStream::connect_timeout(address, Duration::from_secs(1)).is_ok()
}

fn ask_at(address: &SocketAddr, request: &[u8], head: bool, timeout: Duration) -> Result<u16, String> {
    let late = format!("gave no whole answer within {} s", timeout.as_secs_f64());
    let text = |error: std::io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => late.clone(),
        _ => format!("failed: {}", system_text(&error)),
    };
    let deadline = Instant::now() + timeout;
    let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let mut stream = TcpStream::connect_timeout(address, timeout)
        .map_err(|e| format!("cannot be connected to: {}", system_text(&e)))?;
    stream.set_write_timeout(Some(timeout)).map_err(text)?;
    // A server may answer and close before it has taken a long body: its answer counts.
    let written = stream.write_all(request);
    let mut parser = ResponseParser::new();
    parser.begin(head);
    let mut buffer = vec![0; 64 << 10];
    loop {
        if Instant::now() >= deadline {
            return Err(late);
        }
        stream.set_read_timeout(Some(left())).map_err(text)?;
        let received = match stream.read(&mut buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(text(written.err().unwrap_or(error))),
        };
        if received == 0 {
            return match parser.finish() {
                Ok(reply) => Ok(reply.status),
                Err(EndError::NothingReceived) => Err("closed the connection without an answer".into()),
                Err(EndError::Truncated) => Err("closed the connection in the middle of its answer".into()),
            };
        }
        match parser.feed(&buffer[..received]) {
            Ok(fed) => {
                if let Some(reply) = fed.reply {
                    return Ok(reply.status);
                }
            }
            Err(error) => return Err(format!("does not answer in HTTP/1.1: {error}")),
        }
    }
}
