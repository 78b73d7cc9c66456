//! A closed-loop HTTP/1.1 client that does the least possible work. The difference between the
//! figures of a load tester and of this client is the load tester's own cost.
//!
//! One thread serves N connections with edge-triggered epoll. A response costs one `recv`, one read
//! of the clock and one `send`. The bytes of a response are counted but not parsed. The client
//! assumes that every response is as long as the first response.
//!
//! Not here: the checks, errors, rates and percentiles (beyond the median) that a load tester
//! needs.

use plimsoll_sys::clock;
use plimsoll_sys::epoll::Epoll;
use plimsoll_sys::tcp::Socket;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "bare-loop http://HOST:PORT/PATH [-c CONNECTIONS] [-d SECONDS] [--spin on|off]";
/// The width of one bucket in the latency array, ns.
const BUCKET_NS: u64 = 100;
/// The number of buckets in the latency array. The last bucket also counts all longer latencies.
const LATENCY_BUCKETS: usize = 100_000;
/// The longest wait for an event, ns (5 s). After each wait, the client checks whether its planned
/// duration is over.
const EVENT_WAIT_MAX_NS: u64 = 5_000_000_000;

struct Options {
    host: String,
    path: String,
    connections: usize,
    seconds: f64,
    spin: bool,
}

struct BareLoopResult {
    requests: u64,
    elapsed_ns: u64,
    cpu_ns: u64,
    latencies: Vec<u32>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(options) = parse(&arguments) else {
        return exit_code_ignoring_write_error(writeln!(io::stderr(), "{USAGE}"), 2);
    };
    match measure(&options).and_then(|measured| report(&options, &measured)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit_code_ignoring_write_error(writeln!(io::stderr(), "bare-loop: {error}"), 1),
    }
}

fn exit_code_ignoring_write_error(_written: io::Result<()>, code: u8) -> ExitCode {
    ExitCode::from(code)
}

fn parse(arguments: &[String]) -> Option<Options> {
    let mut options = Options { host: String::new(), path: "/".into(), connections: 64, seconds: 3.0, spin: false };
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-c" => options.connections = words.next()?.parse().ok().filter(|n| *n > 0)?,
            "-d" => options.seconds = words.next()?.trim_end_matches('s').parse().ok().filter(|s| *s > 0.0)?,
            "--spin" => options.spin = matches!(words.next()?, "on"),
            url => {
                let rest = url.strip_prefix("http://")?;
                let slash = rest.find('/').unwrap_or(rest.len());
                options.host = rest[..slash].to_owned();
                if slash < rest.len() {
                    options.path = rest[slash..].to_owned();
                }
            }
        }
    }
    (!options.host.is_empty()).then_some(options)
}

/// Returns the length of one response in bytes: its head, plus the body of its Content-Length.
fn reply_bytes(address: &SocketAddr, request: &[u8]) -> io::Result<usize> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(request)?;
    let (mut reply, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = reply.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&reply[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            let length: usize = length.ok_or_else(|| io::Error::other("the reply has no Content-Length"))?;
            return Ok(end + 4 + length);
        }
        match stream.read(&mut buffer)? {
            0 => return Err(io::Error::other("the server closed the connection")),
            count => reply.extend_from_slice(&buffer[..count]),
        }
    }
}

struct Connection {
    socket: Socket,
    missing_bytes: usize,
    sent_ns: u64,
}

fn measure(options: &Options) -> io::Result<BareLoopResult> {
    let address = options.host.to_socket_addrs()?.next().ok_or_else(|| io::Error::other("no such host"))?;
    let request = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", options.path, options.host).into_bytes();
    let reply_bytes = reply_bytes(&address, &request)?;
    let mut epoll = Epoll::new(options.connections)?;
    let mut connections = Vec::with_capacity(options.connections);
    for token in 0..options.connections {
        let socket = Socket::connect(&address)?;
        epoll.add(socket.as_raw_fd(), token as u64)?;
        connections.push(Connection { socket, missing_bytes: reply_bytes, sent_ns: 0 });
    }
    let mut connecting = options.connections;
    while connecting > 0 {
        for event in epoll.wait(Some(EVENT_WAIT_MAX_NS))? {
            connections[event.token() as usize].socket.take_error()?;
            connecting -= usize::from(event.writable());
        }
    }

    let mut latencies = vec![0u32; LATENCY_BUCKETS];
    let mut buffer = vec![0; 64 * 1024];
    let mut requests = 0;
    let timeout_ns = Some(if options.spin { 0 } else { EVENT_WAIT_MAX_NS });
    let (start_ns, start_cpu_ns) = (clock::monotonic_ns(), clock::thread_cpu_ns());
    let end_ns = start_ns + (options.seconds * 1e9) as u64;
    for connection in &mut connections {
        connection.sent_ns = clock::monotonic_ns();
        connection.socket.send(&request)?;
    }
    let mut now_ns = start_ns;
    while now_ns < end_ns {
        let events = epoll.wait(timeout_ns)?;
        if events.is_empty() {
            now_ns = clock::monotonic_ns();
        }
        for event in events {
            let connection = &mut connections[event.token() as usize];
            let received = match connection.socket.recv(&mut buffer) {
                Ok(0) => return Err(io::Error::other("the server closed the connection")),
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            };
            if received > connection.missing_bytes {
                return Err(io::Error::other("a reply is longer than the first"));
            }
            connection.missing_bytes -= received;
            if connection.missing_bytes > 0 {
                continue;
            }
            now_ns = clock::monotonic_ns();
            latencies[((now_ns - connection.sent_ns) / BUCKET_NS).min(LATENCY_BUCKETS as u64 - 1) as usize] += 1;
            requests += 1;
            connection.missing_bytes = reply_bytes;
            connection.sent_ns = now_ns;
            connection.socket.send(&request)?;
        }
    }
    let cpu_ns = clock::thread_cpu_ns() - start_cpu_ns;
    Ok(BareLoopResult { requests, elapsed_ns: clock::monotonic_ns() - start_ns, cpu_ns, latencies })
}

fn report(options: &Options, measured: &BareLoopResult) -> io::Result<()> {
    let BareLoopResult { requests, elapsed_ns, cpu_ns, latencies } = measured;
    if *requests == 0 {
        return Err(io::Error::other("no reply came"));
    }
    let mut below = 0;
    let median = latencies.iter().position(|count| {
        below += u64::from(*count);
        below * 2 >= *requests
    });
    let p50_us = (median.unwrap_or(0) as f64 + 0.5) * BUCKET_NS as f64 / 1e3;
    writeln!(
        io::stdout(),
        "{{\"requests\":{requests},\"throughput_rps\":{:.1},\"cpu_us_per_request\":{:.4},\"p50_us\":{p50_us:.2},\
         \"connections\":{},\"spin\":{},\"duration_s\":{:.4}}}",
        *requests as f64 / (*elapsed_ns as f64 / 1e9),
        *cpu_ns as f64 / 1e3 / *requests as f64,
        options.connections,
        options.spin,
        *elapsed_ns as f64 / 1e9,
    )
}
