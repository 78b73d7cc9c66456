//! The reference server (`plimsoll baseline`, and what `plimsoll demo` loads): HTTP/1.1, bare and fast, so that what is
//! measured against it is the client and the kernel.
//!
//! One edge-triggered event loop a thread, each with a listener of its own. A request that arrives whole is read in
//! place, answered into a buffer of the thread and sent at once: one `recv` and one `send`, no `epoll_ctl`, no
//! allocation. Only a request cut in two, or an answer that the socket does not take, is kept, and only for as long as
//! that lasts: an idle connection is a hundred bytes. A large `/bytes/N` is sent in pieces from one constant.
//!
//! Routes: `/healthz`, `/bytes/N`, `/delay/MS`, `/status/N`, `/burn/US`; anything else is a 404. Any method will do, and
//! a body is read and dropped.
//!
//! Not here: TLS, HTTP/2, files, timeouts of idle connections, logs. It is no server for the open internet.

use plimsoll_sys::clock;
use plimsoll_sys::epoll::{Epoll, Event};
use plimsoll_sys::process;
use plimsoll_sys::tcp::{Listener, Socket};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The most bytes of request line and header fields; more is answered 431.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// The most bytes in one line of a chunked body (a chunk's size or a trailer).
const CHUNK_LINE_BYTES_MAX: u32 = 4096;
/// The longest body of `/bytes/N`.
const BODY_BYTES_MAX: u64 = 1 << 30;
/// The longest delay of `/delay/MS`.
const DELAY_MS_MAX: u64 = 3_600_000;
/// The most CPU time of `/burn/US`.
const BURN_US_MAX: u64 = 60_000_000;

/// How much is received at once.
const INPUT_BYTES: usize = 64 * 1024;
/// Answers are collected up to this size before they are sent, when many requests came at once.
const OUTPUT_BYTES: usize = 32 * 1024;
/// The body of `/bytes/N`, as often as needed.
static FILLER: [u8; 64 * 1024] = [b'x'; 64 * 1024];
/// Turns for one connection, or connections accepted, before the others are served.
const TURNS_MAX: usize = 64;
/// Pause after the system refused another connection (open files, memory).
const ACCEPT_PAUSE_NS: u64 = 10_000_000;
/// After a refusal the rest of what the client sends is read for at most this long, so that it sees the answer and not
/// a reset.
const DRAIN_NS: u64 = 1_000_000_000;
/// Asked of the system, which caps it (`net.core.somaxconn`).
const BACKLOG: i32 = 65_535;

/// What to listen on.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The address; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Event loops, each on its own thread; at least 1.
    pub threads: usize,
}

/// A server that runs until it is stopped or dropped.
pub struct Server {
    address: SocketAddr,
    threads: Vec<JoinHandle<io::Result<()>>>,
    /// Dropping it is the sign to stop: every loop watches the other end.
    stop: Option<PipeWriter>,
}

/// Starts the server; it accepts connections when this returns.
pub fn start(options: Options) -> io::Result<Server> {
    if options.threads == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a server needs at least one thread"));
    }
    process::raise_files_max();
    let (stopped, stop) = io::pipe()?;
    let stopped = Arc::new(stopped);
    let mut server = Server { address: options.listen, threads: Vec::new(), stop: Some(stop) };
    let mut loops = Vec::with_capacity(options.threads);
    for _ in 0..options.threads {
        let listener = Listener::bind(&server.address, BACKLOG, options.threads > 1)?;
        server.address = listener.local_address()?;
        loops.push(Loop::new(listener, Arc::clone(&stopped))?);
    }
    for (index, each) in loops.into_iter().enumerate() {
        let thread = std::thread::Builder::new().name(format!("baseline-{index}"));
        server.threads.push(thread.spawn(move || each.run())?);
    }
    Ok(server)
}

impl Server {
    /// The address listened on, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes every connection and joins the threads; the error is the first that ended a loop before its time.
    pub fn stop(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        self.stop = None;
        let mut result = Ok(());
        for thread in self.threads.drain(..) {
            let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the server panicked")));
            result = result.and(ended);
        }
        result
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nobody is left to hear of an error here; `stop` is for those who want to know.
        let _ = self.end();
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Requests: bytes in, what is asked out. No I/O.

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Health,
    Bytes(u64),
    Delay(u64),
    Status(u16),
    Burn(u64),
    /// A known route with a number that is none or out of bounds.
    BadNumber,
    Unknown,
}

/// One request, as far as the answer depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    route: Route,
    /// HEAD: the answer has no body.
    head: bool,
    /// The client wants to keep the connection.
    keep: bool,
    /// HTTP/1.0, which has to be told that the connection is kept.
    old: bool,
}

/// What the reader found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The rest of the request is still to come. Bytes that were not consumed must be offered again with more.
    More,
    /// A request is complete, its body included.
    Request(Request),
    /// The client waits for permission to send its body (`Expect: 100-continue`).
    Continue,
    /// Not HTTP as we know it: answer with this status and close.
    Refuse(u16),
}

/// Where the reader stands between two calls.
#[derive(Clone, Copy, Debug)]
enum Reader {
    /// Before or within a head; `scanned` bytes of it hold no end.
    Head { scanned: u32 },
    /// Within a body of known length.
    Length { request: Request, left: u64 },
    /// Within a chunked body.
    Chunked { request: Request, chunk: Chunk },
}

/// Where the reader stands within a chunked body.
#[derive(Clone, Copy, Debug)]
enum Chunk {
    /// In the digits of a size.
    Size { size: u64, digits: u8 },
    /// After the digits, before the line feed.
    Extension { size: u64, length: u32 },
    /// In the data.
    Data { left: u64 },
    /// After the data, before the line feed.
    DataEnd { carriage: bool },
    /// In the lines after the last chunk; `length` bytes of the line are read (carriage returns not counted).
    Trailer { length: u32 },
}

impl Reader {
    const fn new() -> Reader {
        Reader::Head { scanned: 0 }
    }

    /// Reads on in `input`: how many bytes are done with, and what was found.
    fn read(&mut self, input: &[u8]) -> (usize, Step) {
        match *self {
            Reader::Head { scanned } => self.read_head(input, scanned as usize),
            Reader::Length { request, left } => {
                let used = left.min(input.len() as u64);
                if used == left {
                    return (used as usize, self.finish(request));
                }
                *self = Reader::Length { request, left: left - used };
                (used as usize, Step::More)
            }
            Reader::Chunked { request, chunk } => self.read_chunks(input, request, chunk),
        }
    }

    fn finish(&mut self, request: Request) -> Step {
        *self = Reader::new();
        Step::Request(request)
    }

    fn read_head(&mut self, input: &[u8], scanned: usize) -> (usize, Step) {
        // Empty lines before a request are allowed (RFC 9112, 2.2).
        let blank = input.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
        if blank > 0 {
            *self = Reader::new();
            return (blank, Step::More);
        }
        let Some(end) = head_end(input, scanned).filter(|end| *end <= HEAD_BYTES_MAX) else {
            if input.len() > HEAD_BYTES_MAX {
                return (input.len(), Step::Refuse(431));
            }
            // The end is at most three bytes long, so two of it may be here already.
            *self = Reader::Head { scanned: input.len().saturating_sub(2) as u32 };
            return (0, Step::More);
        };
        let Some(Head { request, body, expect }) = parse_head(&input[..end]) else {
            return (input.len(), Step::Refuse(400));
        };
        let step = match body {
            Body::Length(0) => return (end, self.finish(request)),
            _ if expect && input.len() == end => Step::Continue,
            _ => Step::More,
        };
        *self = match body {
            Body::Length(left) => Reader::Length { request, left },
            Body::Chunked => Reader::Chunked { request, chunk: Chunk::Size { size: 0, digits: 0 } },
        };
        (end, step)
    }

    fn read_chunks(&mut self, input: &[u8], request: Request, mut chunk: Chunk) -> (usize, Step) {
        let mut at = 0;
        while at < input.len() {
            if let Chunk::Data { left } = chunk {
                let used = left.min((input.len() - at) as u64);
                at += used as usize;
                chunk = match left - used {
                    0 => Chunk::DataEnd { carriage: false },
                    left => Chunk::Data { left },
                };
                continue;
            }
            let byte = input[at];
            at += 1;
            let next = match chunk {
                Chunk::Trailer { length: 0 } if byte == b'\n' => return (at, self.finish(request)),
                other => other.next(byte),
            };
            match next {
                Some(next) => chunk = next,
                None => return (input.len(), Step::Refuse(400)),
            }
        }
        *self = Reader::Chunked { request, chunk };
        (at, Step::More)
    }
}

impl Chunk {
    /// The state after one byte that is not data; `None` if it cannot stand there.
    fn next(self, byte: u8) -> Option<Chunk> {
        let after_size = |size| if size == 0 { Chunk::Trailer { length: 0 } } else { Chunk::Data { left: size } };
        match (self, byte) {
            (Chunk::Size { size, digits: 1.. }, b'\n') => Some(after_size(size)),
            (Chunk::Size { size, digits: 1.. }, b'\r' | b';' | b' ' | b'\t') => {
                Some(Chunk::Extension { size, length: 0 })
            }
            (Chunk::Size { size, digits: digits @ 0..15 }, _) => {
                let digit = (byte as char).to_digit(16)?;
                Some(Chunk::Size { size: size * 16 + u64::from(digit), digits: digits + 1 })
            }
            (Chunk::Extension { size, .. }, b'\n') => Some(after_size(size)),
            (Chunk::Extension { size, length }, _) if length < CHUNK_LINE_BYTES_MAX => {
                Some(Chunk::Extension { size, length: length + 1 })
            }
            (Chunk::DataEnd { carriage: false }, b'\r') => Some(Chunk::DataEnd { carriage: true }),
            (Chunk::DataEnd { .. }, b'\n') => Some(Chunk::Size { size: 0, digits: 0 }),
            (Chunk::Trailer { .. }, b'\n') => Some(Chunk::Trailer { length: 0 }),
            (Chunk::Trailer { length }, b'\r') => Some(Chunk::Trailer { length }),
            (Chunk::Trailer { length }, _) if length < CHUNK_LINE_BYTES_MAX => {
                Some(Chunk::Trailer { length: length + 1 })
            }
            _ => None,
        }
    }
}

/// How a request's body ends.
#[derive(Clone, Copy)]
enum Body {
    Length(u64),
    Chunked,
}

/// A head, parsed.
struct Head {
    request: Request,
    body: Body,
    /// `Expect: 100-continue`.
    expect: bool,
}

/// Where the head ends (after its empty line); the first `scanned` bytes hold no beginning of that end.
fn head_end(input: &[u8], scanned: usize) -> Option<usize> {
    let mut at = scanned;
    loop {
        at += input[at..].iter().position(|b| *b == b'\n')? + 1;
        match &input[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
}

fn parse_head(head: &[u8]) -> Option<Head> {
    let mut lines = head.split(|b| *b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut words = lines.next()?.split(|b| *b == b' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if !is_token(method) || !is_text(target) || target.is_empty() || words.next().is_some() {
        return None;
    }
    let old = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] => false,
        _ => return None,
    };
    let (mut length, mut chunked, mut close, mut keep, mut expect) = (None, false, false, false, false);
    for line in lines.take_while(|line| !line.is_empty()) {
        let colon = line.iter().position(|b| *b == b':')?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if !is_token(name) || !is_text(value) {
            return None;
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let said = number(value)?;
            if length.is_some_and(|other| other != said) {
                return None;
            }
            length = Some(said);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return None;
            }
            chunked = true;
        } else if name.eq_ignore_ascii_case(b"connection") {
            for option in value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
                close |= option.eq_ignore_ascii_case(b"close");
                keep |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if name.eq_ignore_ascii_case(b"expect") {
            expect = value.eq_ignore_ascii_case(b"100-continue");
        }
    }
    let body = match (length, chunked) {
        // Both at once is how requests are smuggled past proxies.
        (Some(_), true) => return None,
        (None, true) => Body::Chunked,
        (length, false) => Body::Length(length.unwrap_or(0)),
    };
    let request = Request { route: route(target), head: method == b"HEAD", keep: !close && (!old || keep), old };
    Some(Head { request, body, expect: expect && !old })
}

/// The bytes of methods and field names.
const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let marks = b"!#$%&'*+-.^_`|~";
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    table
};

fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|b| TOKEN[*b as usize])
}

/// Without control characters, except the tab.
fn is_text(bytes: &[u8]) -> bool {
    !bytes.iter().any(|b| (*b < b' ' && *b != b'\t') || *b == 0x7f)
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

fn route(target: &[u8]) -> Route {
    let path = match target.strip_prefix(b"http://") {
        Some(rest) => rest.iter().position(|b| *b == b'/').map_or(&rest[..0], |slash| &rest[slash..]),
        None => target,
    };
    let path = path.split(|b| matches!(b, b'?' | b'#')).next().unwrap_or_default();
    if path == b"/healthz" {
        return Route::Health;
    }
    let bounded = |digits, max: u64, route: fn(u64) -> Route| match number(digits) {
        Some(value) if value <= max => route(value),
        _ => Route::BadNumber,
    };
    if let Some(digits) = path.strip_prefix(b"/bytes/") {
        bounded(digits, BODY_BYTES_MAX, Route::Bytes)
    } else if let Some(digits) = path.strip_prefix(b"/delay/") {
        bounded(digits, DELAY_MS_MAX, Route::Delay)
    } else if let Some(digits) = path.strip_prefix(b"/burn/") {
        bounded(digits, BURN_US_MAX, Route::Burn)
    } else if let Some(digits) = path.strip_prefix(b"/status/") {
        // Interim statuses (1xx) are no answer, so they cannot be asked for.
        match number(digits) {
            Some(status @ 200..=599) => Route::Status(status as u16),
            _ => Route::BadNumber,
        }
    } else {
        Route::Unknown
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Answers: what is asked in, bytes out. No I/O.

/// What `/healthz` says to a client that asks as nearly all do.
const HEALTHY: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"status\":\"ok\"}";
const OK: &[u8] = b"{\"status\":\"ok\"}";

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Content Too Large",
        418 => "I'm a teapot",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        // A courtesy to people (RFC 9112, 4); the number is what counts.
        _ => ["Success", "Redirection", "Client Error", "Server Error"][(status / 100).clamp(2, 5) as usize - 2],
    }
}

fn write(output: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = output.write_fmt(text);
}

/// Status line and header fields, up to and with the empty line.
fn write_head(output: &mut Vec<u8>, request: &Request, status: u16, kind: &str, length: u64) {
    write(output, format_args!("HTTP/1.1 {status} {}\r\n", reason(status)));
    // 204 and 304 have no body, and a length of 0 would be untrue of 304's.
    if !matches!(status, 204 | 304) {
        write(output, format_args!("Content-Type: {kind}\r\nContent-Length: {length}\r\n"));
    }
    output.extend_from_slice(match (request.keep, request.old) {
        (false, _) => b"Connection: close\r\n\r\n".as_slice(),
        (true, true) => b"Connection: keep-alive\r\n\r\n",
        (true, false) => b"\r\n",
    });
}

fn write_json(output: &mut Vec<u8>, request: &Request, status: u16, body: &[u8]) {
    let body = if matches!(status, 204 | 205 | 304) { b"" } else { body };
    write_head(output, request, status, "application/json", body.len() as u64);
    if !request.head {
        output.extend_from_slice(body);
    }
}

/// Answers at once (everything but a delay) and returns how many bytes of filler are to follow.
fn write_answer(output: &mut Vec<u8>, request: &Request) -> u64 {
    match request.route {
        Route::Health | Route::Delay(_) | Route::Burn(_) if request.keep && !request.old && !request.head => {
            output.extend_from_slice(HEALTHY);
        }
        Route::Health | Route::Delay(_) | Route::Burn(_) => write_json(output, request, 200, OK),
        Route::Bytes(length) => {
            write_head(output, request, 200, "application/octet-stream", length);
            let length = if request.head { 0 } else { length };
            let now = length.min(FILLER.len() as u64 / 4);
            output.extend_from_slice(&FILLER[..now as usize]);
            return length - now;
        }
        Route::Status(status) => {
            let mut body = *b"{\"status\":000}";
            let at = body.len() - 4;
            for (place, ten) in [100, 10, 1].into_iter().enumerate() {
                body[at + place] = b'0' + (status / ten % 10) as u8;
            }
            write_json(output, request, status, &body);
        }
        Route::BadNumber => write_json(output, request, 400, b"{\"error\":\"not a number within bounds\"}"),
        Route::Unknown => write_json(
            output,
            request,
            404,
            b"{\"error\":\"not found\",\"routes\":[\"/healthz\",\"/bytes/N\",\"/delay/MS\",\"/status/N\",\"/burn/US\"]}",
        ),
    }
    0
}

fn write_refusal(output: &mut Vec<u8>, status: u16) {
    let closing = Request { route: Route::Unknown, head: false, keep: false, old: false };
    let body: &[u8] = match status {
        431 => b"{\"error\":\"the header is larger than 16 KiB\"}",
        _ => b"{\"error\":\"not an HTTP/1 request\"}",
    };
    write_json(output, &closing, status, body);
}

/// Uses `us` microseconds of this thread's CPU time: however often the thread is put aside meanwhile, the work it
/// stands for is the same.
fn burn(us: u64) {
    let end_ns = clock::thread_cpu_ns() + us * 1000;
    while clock::thread_cpu_ns() < end_ns {
        std::hint::spin_loop();
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Connections.

/// What a thread has once for all its connections.
struct Tools {
    input: Box<[u8]>,
    output: Vec<u8>,
    timers: Timers,
}

/// (when, slot), the earliest first. An entry counts only if the connection in the slot still waits for that moment.
type Timers = BinaryHeap<Reverse<(u64, u32)>>;

/// How a connection goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Requests are taken.
    Open,
    /// An answer is due at `due_ns`; nothing else is taken meanwhile.
    Delayed(Request),
    /// Closed as soon as all is sent.
    Closing,
    /// As soon as all is sent our side ends, and the rest of theirs is read before the socket is closed: closing it
    /// with unread bytes would reset the connection and could take the answer with it.
    Refusing,
    /// Our side has ended; until `due_ns`.
    Draining,
}

/// What to do with a connection after its turn.
#[derive(PartialEq, Eq)]
enum Turn {
    /// Nothing before the next event or timer.
    Wait,
    /// There is more to do, but others come first.
    Again,
    /// The end.
    Close,
}

struct Connection {
    socket: Socket,
    /// Received but not consumed: a head cut in two, or requests behind one that takes its time. Mostly empty.
    held: Vec<u8>,
    /// Answers that the socket did not take. Mostly empty.
    unsent: Vec<u8>,
    /// Bytes of filler to send after them.
    filler_left: u64,
    reader: Reader,
    phase: Phase,
    due_ns: u64,
    slot: u32,
    /// The socket may have bytes for us (edge-triggered: known until a short read).
    readable: bool,
    /// The peer's end was announced, so that reads go on until it shows.
    hangup: bool,
    /// `held` is not worth reading again before more comes.
    starved: bool,
    /// In the list of those who have more to do.
    queued: bool,
}

impl Connection {
    fn new(socket: Socket, slot: u32) -> Connection {
        Connection {
            socket,
            held: Vec::new(),
            unsent: Vec::new(),
            filler_left: 0,
            reader: Reader::new(),
            phase: Phase::Open,
            due_ns: 0,
            slot,
            readable: false,
            hangup: false,
            starved: false,
            queued: false,
        }
    }

    fn on_event(&mut self, event: Event, tools: &mut Tools) -> Turn {
        self.readable |= event.readable();
        self.hangup |= event.hangup();
        if self.hangup && matches!(self.phase, Phase::Delayed(_)) && self.socket.take_error().is_err() {
            return Turn::Close;
        }
        self.advance(tools)
    }

    fn on_timer(&mut self, due_ns: u64, tools: &mut Tools) -> Turn {
        if due_ns != self.due_ns {
            return Turn::Wait;
        }
        match self.phase {
            Phase::Delayed(request) => {
                self.phase = if request.keep { Phase::Open } else { Phase::Closing };
                write_answer(&mut tools.output, &request);
                self.send(&mut tools.output);
                self.advance(tools)
            }
            Phase::Draining => Turn::Close,
            Phase::Open | Phase::Closing | Phase::Refusing => Turn::Wait,
        }
    }

    /// Does what can be done without waiting, within bounds.
    fn advance(&mut self, tools: &mut Tools) -> Turn {
        for _ in 0..TURNS_MAX {
            match self.flush() {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Turn::Wait,
                Err(_) => return Turn::Close,
            }
            match self.phase {
                Phase::Open | Phase::Draining => {}
                Phase::Delayed(_) => return Turn::Wait,
                Phase::Closing => return Turn::Close,
                Phase::Refusing => {
                    if self.socket.shutdown_send().is_err() {
                        return Turn::Close;
                    }
                    self.phase = Phase::Draining;
                    self.wait_ns(DRAIN_NS, &mut tools.timers);
                }
            }
            if !self.held.is_empty() && !self.starved {
                let held = std::mem::take(&mut self.held);
                let used = self.serve(&held, &mut tools.output, &mut tools.timers);
                self.hold(held, used);
                continue;
            }
            if !self.readable {
                return Turn::Wait;
            }
            let received = match self.socket.recv(&mut tools.input) {
                Ok(0) => return Turn::Close,
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    return Turn::Wait;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Turn::Close,
            };
            // Fewer bytes than there was room for: the socket is empty, and the next byte will be an event.
            self.readable = received == tools.input.len() || self.hangup;
            let input = &tools.input[..received];
            if self.phase == Phase::Draining {
                continue;
            }
            if self.held.is_empty() {
                let used = self.serve(input, &mut tools.output, &mut tools.timers);
                self.held.extend_from_slice(&input[used..]);
            } else {
                self.held.extend_from_slice(input);
                self.starved = false;
            }
        }
        Turn::Again
    }

    /// Keeps what is left of bytes held before; without a rest their memory is given back.
    fn hold(&mut self, mut held: Vec<u8>, used: usize) {
        if used < held.len() {
            held.drain(..used);
            self.held = held;
        }
    }

    /// Takes requests from `input` and sends their answers; returns how many bytes are done with.
    fn serve(&mut self, input: &[u8], output: &mut Vec<u8>, timers: &mut Timers) -> usize {
        let mut at = 0;
        self.starved = false;
        while at < input.len() && self.phase == Phase::Open && self.filler_left == 0 && output.len() < OUTPUT_BYTES {
            let (used, step) = self.reader.read(&input[at..]);
            at += used;
            match step {
                Step::More if used == 0 => {
                    self.starved = true;
                    break;
                }
                Step::More => {}
                Step::Continue => output.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n"),
                Step::Request(request) => self.answer(request, output, timers),
                Step::Refuse(status) => {
                    write_refusal(output, status);
                    self.phase = Phase::Refusing;
                }
            }
        }
        self.send(output);
        at
    }

    fn answer(&mut self, request: Request, output: &mut Vec<u8>, timers: &mut Timers) {
        match request.route {
            Route::Delay(ms) if ms > 0 => {
                self.phase = Phase::Delayed(request);
                self.wait_ns(ms * 1_000_000, timers);
                return;
            }
            Route::Burn(us) => {
                // What was answered before is not to wait for this.
                self.send(output);
                burn(us);
            }
            _ => {}
        }
        self.filler_left = write_answer(output, &request);
        if !request.keep {
            self.phase = Phase::Closing;
        }
    }

    fn wait_ns(&mut self, ns: u64, timers: &mut Timers) {
        self.due_ns = clock::monotonic_ns() + ns;
        timers.push(Reverse((self.due_ns, self.slot)));
    }

    /// Sends `output` behind what is unsent, and empties it.
    fn send(&mut self, output: &mut Vec<u8>) {
        let mut sent = 0;
        if self.unsent.is_empty() && !output.is_empty() {
            match self.socket.send(output) {
                Ok(count) => sent = count,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(_) => {
                    // Nobody to answer any more.
                    sent = output.len();
                    self.filler_left = 0;
                    self.phase = Phase::Closing;
                }
            }
        }
        self.unsent.extend_from_slice(&output[sent..]);
        output.clear();
    }

    /// Sends one piece of what is unsent. True: all is sent.
    fn flush(&mut self) -> io::Result<bool> {
        if !self.unsent.is_empty() {
            let sent = self.socket.send(&self.unsent)?;
            self.unsent.drain(..sent);
            if self.unsent.is_empty() {
                self.unsent = Vec::new();
            }
        } else if self.filler_left > 0 {
            let piece = self.filler_left.min(FILLER.len() as u64) as usize;
            self.filler_left -= self.socket.send(&FILLER[..piece])? as u64;
        }
        Ok(self.unsent.is_empty() && self.filler_left == 0)
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// The event loop of one thread.

const TOKEN_STOP: u64 = u64::MAX;
const TOKEN_LISTENER: u64 = u64::MAX - 1;

struct Loop {
    epoll: Epoll,
    connections: Connections,
    tools: Tools,
    listener: Listener,
    /// When to accept next, if there may be somebody to accept.
    accept_due_ns: Option<u64>,
    /// Watched; it only has to live as long as the loop.
    _stopped: Arc<PipeReader>,
}

/// The connections by slot, and which of them have more to do.
#[derive(Default)]
struct Connections {
    slots: Vec<Option<Connection>>,
    free: Vec<u32>,
    again: Vec<u32>,
}

impl Connections {
    /// Gives the connection in `slot`, if there is one, its turn.
    fn turn(&mut self, slot: u32, turn: impl FnOnce(&mut Connection) -> Turn) {
        let Some(place) = self.slots.get_mut(slot as usize) else { return };
        let Some(connection) = place else { return };
        match turn(connection) {
            Turn::Wait => {}
            Turn::Again if connection.queued => {}
            Turn::Again => {
                connection.queued = true;
                self.again.push(slot);
            }
            Turn::Close => {
                *place = None;
                self.free.push(slot);
            }
        }
    }

    fn add(&mut self, socket: Socket, epoll: &Epoll) -> io::Result<()> {
        let slot = self.free.last().copied().unwrap_or(self.slots.len() as u32);
        epoll.add(socket.as_raw_fd(), u64::from(slot))?;
        let connection = Some(Connection::new(socket, slot));
        match self.free.pop() {
            Some(slot) => self.slots[slot as usize] = connection,
            None => self.slots.push(connection),
        }
        Ok(())
    }
}

impl Loop {
    fn new(listener: Listener, stopped: Arc<PipeReader>) -> io::Result<Loop> {
        let epoll = Epoll::new(512)?;
        epoll.add_level(stopped.as_raw_fd(), TOKEN_STOP)?;
        epoll.add(listener.as_raw_fd(), TOKEN_LISTENER)?;
        let tools = Tools {
            input: vec![0; INPUT_BYTES].into_boxed_slice(),
            output: Vec::with_capacity(2 * OUTPUT_BYTES),
            timers: Timers::new(),
        };
        let connections = Connections::default();
        Ok(Loop { epoll, connections, tools, listener, accept_due_ns: None, _stopped: stopped })
    }

    fn run(mut self) -> io::Result<()> {
        clock::set_timer_slack_ns(1_000);
        loop {
            let timeout_ns = self.timeout_ns();
            for event in self.epoll.wait(timeout_ns)? {
                match event.token() {
                    TOKEN_STOP => return Ok(()),
                    TOKEN_LISTENER => self.accept_due_ns = Some(0),
                    slot => self.connections.turn(slot as u32, |c| c.on_event(*event, &mut self.tools)),
                }
            }
            for slot in std::mem::take(&mut self.connections.again) {
                self.connections.turn(slot, |c| {
                    c.queued = false;
                    c.advance(&mut self.tools)
                });
            }
            self.fire_timers();
            self.accept();
        }
    }

    /// How long there is nothing to do unless something happens.
    fn timeout_ns(&self) -> Option<u64> {
        if !self.connections.again.is_empty() {
            return Some(0);
        }
        let timer_ns = self.tools.timers.peek().map(|Reverse((due_ns, _))| *due_ns);
        let due_ns = [timer_ns, self.accept_due_ns].into_iter().flatten().min()?;
        Some(due_ns.saturating_sub(clock::monotonic_ns()))
    }

    fn fire_timers(&mut self) {
        if self.tools.timers.is_empty() {
            return;
        }
        let now_ns = clock::monotonic_ns();
        while let Some(Reverse((due_ns, slot))) = self.tools.timers.peek().copied().filter(|t| t.0.0 <= now_ns) {
            self.tools.timers.pop();
            self.connections.turn(slot, |c| c.on_timer(due_ns, &mut self.tools));
        }
    }

    fn accept(&mut self) {
        if self.accept_due_ns.is_none_or(|due_ns| due_ns > 0 && due_ns > clock::monotonic_ns()) {
            return;
        }
        self.accept_due_ns = Some(0);
        for _ in 0..TURNS_MAX {
            match self.listener.accept().and_then(|socket| self.connections.add(socket, &self.epoll)) {
                Ok(()) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        self.accept_due_ns = None;
                        return;
                    }
                    // It went away while it waited.
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => {}
                    // No descriptor or memory left for it. It stays in the backlog, and asking again at once would
                    // only burn the core.
                    _ => {
                        self.accept_due_ns = Some(clock::monotonic_ns() + ACCEPT_PAUSE_NS);
                        return;
                    }
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{Shutdown, TcpStream};
    use std::time::{Duration, Instant};

    // The reader, without sockets.

    /// All that the reader finds in `bytes` cut at `cuts`, as a connection would offer them.
    fn read_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Step> {
        let (mut reader, mut held, mut found) = (Reader::new(), Vec::new(), Vec::new());
        for piece in pieces {
            held.extend_from_slice(piece);
            while !held.is_empty() {
                let (used, step) = reader.read(&held);
                assert!(used <= held.len());
                held.drain(..used);
                match step {
                    Step::More if used == 0 => break,
                    Step::More => {}
                    Step::Request(_) => found.push(step),
                    // Whether it is needed depends on whether the body came along.
                    Step::Continue => {}
                    Step::Refuse(_) => {
                        found.push(step);
                        return found;
                    }
                }
            }
            assert!(held.len() <= HEAD_BYTES_MAX + piece.len(), "the reader holds {} bytes", held.len());
        }
        found
    }

    fn get(route: Route) -> Step {
        Step::Request(Request { route, head: false, keep: true, old: false })
    }

    fn closing(route: Route) -> Step {
        Step::Request(Request { route, head: false, keep: false, old: false })
    }

    fn check(bytes: &[u8], expect: &[Step]) {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
        assert_eq!(read_pieces([bytes].into_iter()), expect, "all at once: {shown:?}");
        assert_eq!(read_pieces(bytes.chunks(1)), expect, "byte by byte: {shown:?}");
        for at in 1..bytes.len().min(300) {
            let (left, right) = bytes.split_at(at);
            assert_eq!(read_pieces([left, right].into_iter()), expect, "cut at {at}: {shown:?}");
        }
    }

    #[test]
    fn requests_are_read_whatever_the_cuts() {
        use Route::{BadNumber, Burn, Bytes, Delay, Health, Status, Unknown};
        let one = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
        let routes = [
            ("/healthz", Health),
            ("/healthz?x=/bytes/1", Health),
            ("http://host:1/healthz", Health),
            ("http://host", Unknown),
            ("/", Unknown),
            ("*", Unknown),
            ("/healthz/", Unknown),
            ("/bytes/0", Bytes(0)),
            ("/bytes/1073741824", Bytes(1 << 30)),
            ("/bytes/1073741825", BadNumber),
            ("/bytes/", BadNumber),
            ("/bytes/-1", BadNumber),
            ("/bytes/99999999999999999999999", BadNumber),
            ("/delay/15?q", Delay(15)),
            ("/delay/3600001", BadNumber),
            ("/status/200", Status(200)),
            ("/status/599", Status(599)),
            ("/status/100", BadNumber),
            ("/status/600", BadNumber),
            ("/burn/100", Burn(100)),
            ("/burn/1e3", BadNumber),
        ];
        for (target, expect) in routes {
            check(&one(target), &[get(expect)]);
        }
        // Several at once, with the tolerance that is asked for: empty lines between, line feeds alone.
        let pipelined = [one("/healthz"), b"\r\n\r\n".to_vec(), one("/bytes/5"), one("/burn/7")].concat();
        check(&pipelined, &[get(Health), get(Bytes(5)), get(Burn(7))]);
        check(b"GET /healthz HTTP/1.1\n\nGET /delay/1 HTTP/1.1\nHost:b\n\n", &[get(Health), get(Delay(1))]);
        // What becomes of the connection.
        check(b"GET /healthz HTTP/1.1\r\nConnection: x, Close\r\n\r\n", &[closing(Health)]);
        let old = |keep| Step::Request(Request { route: Health, head: false, keep, old: true });
        check(b"GET /healthz HTTP/1.0\r\n\r\n", &[old(false)]);
        check(b"GET /healthz HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n", &[old(true)]);
        let head = Step::Request(Request { route: Health, head: true, keep: true, old: false });
        check(b"HEAD /healthz HTTP/1.1\r\n\r\n", &[head]);
    }

    #[test]
    fn bodies_are_dropped_whatever_the_cuts() {
        let then = |head: &str, body: &str| {
            format!("POST /healthz HTTP/1.1\r\n{head}\r\n\r\n{body}GET /bytes/1 HTTP/1.1\r\n\r\n").into_bytes()
        };
        let both = [get(Route::Health), get(Route::Bytes(1))];
        check(&then("Content-Length: 0", ""), &both);
        check(&then("Content-Length: 5", "GET /"), &both);
        check(&then("Content-Length: 5\r\ncontent-length: 5", "12345"), &both);
        check(&then("Content-Length: 5\r\nExpect: 100-continue", "12345"), &both);
        check(&then("Transfer-Encoding: chunked", "0\r\n\r\n"), &both);
        check(&then("Transfer-Encoding: Chunked", "5\r\nhello\r\nA;x=\"y\"\r\n0123456789\r\n000\r\n\r\n"), &both);
        check(&then("Transfer-Encoding: chunked", "1 \r\nx\r\n0\r\nDigest: a\r\nOther: b\r\n\r\n"), &both);
        check(&then("Transfer-Encoding: chunked", "1\nx\n0\n\n"), &both);
    }

    #[test]
    fn what_is_not_http_is_refused_whatever_the_cuts() {
        let bad: [&[u8]; 19] = [
            b"\x16\x03\x01\x02\x00\x01\n\r\n",
            b"GET\r\n\r\n",
            b"GET /\r\n\r\n",
            b"GET  / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1 \r\n\r\n",
            b"GET / http/1.1\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\n",
            b"G(T / HTTP/1.1\r\n\r\n",
            b"GET /a\x00b HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
            b"GET / HTTP/1.1\r\n: empty\r\n\r\n",
            b"GET / HTTP/1.1\r\nspace : before\r\n\r\n",
            b"GET / HTTP/1.1\r\na: b\r\n folded\r\n\r\n",
            b"GET / HTTP/1.1\r\na: \x01\r\n\r\n",
            b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            b"GET / HTTP/1.1\r\nContent-Length: 1, 2\r\n\r\n",
            b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        ];
        for bytes in bad {
            check(bytes, &[Step::Refuse(400)]);
        }
        for body in ["\r\n", "x\r\n", "-1\r\n", "1\r\nab", "1\r\na\r\r\n", "1111111111111111\r\n"] {
            let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
            check(format!("{head}{body}").as_bytes(), &[Step::Refuse(400)]);
        }
        let line = format!("1;{}\r\n", "x".repeat(CHUNK_LINE_BYTES_MAX as usize + 1));
        check(format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{line}").as_bytes(), &[Step::Refuse(400)]);
        // Refused as soon as the limit is passed, whether or not the head ends.
        let long = format!("GET / HTTP/1.1\r\na: {}", "x".repeat(HEAD_BYTES_MAX));
        assert_eq!(read_pieces(long.as_bytes().chunks(1)), [Step::Refuse(431)]);
        assert_eq!(read_pieces(format!("{long}\r\n\r\n").as_bytes().chunks(4096)), [Step::Refuse(431)]);
    }

    /// A small generator of random numbers (splitmix64).
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) % bound as u64) as usize
        }
    }

    #[test]
    fn no_bytes_make_it_panic_and_no_cut_changes_what_it_finds() {
        let seed = std::env::var("PLIMSOLL_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(|| {
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64)
        });
        let words: [&[u8]; 24] = [
            b"GET ",
            b"POST ",
            b"HEAD ",
            b"/healthz",
            b"/bytes/12",
            b"/",
            b" HTTP/1.1",
            b" HTTP/1.0",
            b"\r\n",
            b"\n",
            b"\r",
            b"Host: a\r\n",
            b"Content-Length: 3\r\n",
            b"Transfer-Encoding: chunked\r\n",
            b"Connection: close\r\n",
            b"Expect: 100-continue\r\n",
            b"\r\n\r\n",
            b"3\r\nabc\r\n",
            b"0\r\n\r\n",
            b"abc",
            b"\x00",
            b"\xff\xfe",
            b";",
            b":",
        ];
        for round in 0..3_000 {
            let mut random = Random(seed.wrapping_add(round));
            let mut bytes = Vec::new();
            for _ in 0..random.below(40) {
                match random.below(8) {
                    0 => bytes.push(random.below(256) as u8),
                    1 => bytes.extend_from_slice(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"),
                    _ => bytes.extend_from_slice(words[random.below(words.len())]),
                }
            }
            let at_once = read_pieces([bytes.as_slice()].into_iter());
            let by_byte = read_pieces(bytes.chunks(1));
            let size = 1 + random.below(9);
            let by_size = read_pieces(bytes.chunks(size));
            let again = format!("PLIMSOLL_SEED={seed}, round {round}, {:?}", String::from_utf8_lossy(&bytes));
            assert_eq!(at_once, by_byte, "{again}");
            assert_eq!(at_once, by_size, "{again}");
        }
    }

    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<Option<Connection>>() <= 192, "{} bytes", size_of::<Option<Connection>>());
    }

    // The server, over real sockets.

    fn server(threads: usize) -> Server {
        start(Options { listen: "127.0.0.1:0".parse().expect("an address"), threads }).expect("starts")
    }

    fn connect(server: &Server) -> TcpStream {
        let stream = TcpStream::connect(server.address()).expect("connects");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
        stream.set_nodelay(true).expect("set");
        stream
    }

    /// Everything the server says to `bytes`, after which the client says no more.
    fn exchange(server: &Server, bytes: &[u8]) -> String {
        let mut stream = connect(server);
        stream.write_all(bytes).expect("written");
        stream.shutdown(Shutdown::Write).expect("ended");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("read");
        String::from_utf8(answer).expect("text")
    }

    /// One answer with a Content-Length: its head and body.
    fn receive(stream: &mut TcpStream) -> (String, Vec<u8>) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a head");
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).expect("text");
        let length = head.lines().find_map(|l| l.strip_prefix("Content-Length: ")).map_or(0, |l| l.parse().expect("n"));
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("a body");
        (head, body)
    }

    #[test]
    fn every_route_answers() {
        let server = server(1);
        let json = |status: &str, body: &str| {
            let kind = "Content-Type: application/json\r\nContent-Length";
            format!("HTTP/1.1 {status}\r\n{kind}: {}\r\n\r\n{body}", body.len())
        };
        let get = |target: &str| exchange(&server, format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        assert_eq!(get("/healthz"), json("200 OK", r#"{"status":"ok"}"#));
        assert_eq!(get("/delay/1"), json("200 OK", r#"{"status":"ok"}"#));
        assert_eq!(get("/burn/10"), json("200 OK", r#"{"status":"ok"}"#));
        assert_eq!(get("/status/503"), json("503 Service Unavailable", r#"{"status":503}"#));
        assert_eq!(get("/status/299"), json("299 Success", r#"{"status":299}"#));
        assert_eq!(get("/status/204"), "HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(get("/status/304"), "HTTP/1.1 304 Not Modified\r\n\r\n");
        assert!(get("/status/205").ends_with("Content-Length: 0\r\n\r\n"));
        assert!(get("/status/99").starts_with("HTTP/1.1 400 "));
        assert!(get("/nowhere").starts_with("HTTP/1.1 404 Not Found\r\n"));
        let bytes = get("/bytes/3");
        assert!(bytes.ends_with("Content-Length: 3\r\n\r\nxxx") && bytes.contains("octet-stream"), "{bytes}");
    }

    #[test]
    fn connections_are_kept_or_closed_as_asked() {
        let server = server(2);
        let mut stream = connect(&server);
        for _ in 0..3 {
            stream.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").expect("written");
            assert_eq!(receive(&mut stream).1, OK);
        }
        stream.write_all(b"GET /bytes/70000 HTTP/1.1\r\nConnection: close\r\n\r\n").expect("written");
        let (head, body) = receive(&mut stream);
        assert!(head.contains("Connection: close\r\n"), "{head}");
        assert_eq!(body.len(), 70_000);
        assert_eq!(stream.read(&mut [0]).expect("the end"), 0);

        let old = exchange(&server, b"GET /healthz HTTP/1.0\r\n\r\nGET /healthz HTTP/1.0\r\n\r\n");
        assert_eq!(old.matches("HTTP/1.1 200 OK").count(), 1, "{old}");
        let kept = exchange(&server, &b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".repeat(2));
        assert_eq!(kept.matches("Connection: keep-alive").count(), 2, "{kept}");
        let head = exchange(&server, &b"HEAD /bytes/100000 HTTP/1.1\r\n\r\n".repeat(2));
        assert_eq!(head.matches("Content-Length: 100000\r\n\r\n").count(), 2, "{head}");
        assert!(!head.contains('x'), "{head}");
    }

    #[test]
    fn pipelined_requests_are_answered_in_order() {
        let server = server(1);
        let mut stream = connect(&server);
        let lengths: Vec<usize> = (0..500).map(|n| n * 37 % 5000).collect();
        let mut requests = Vec::new();
        for (index, length) in lengths.iter().enumerate() {
            let slow =
                if index % 100 == 99 { "GET /delay/5 HTTP/1.1\r\n\r\nGET /burn/50 HTTP/1.1\r\n\r\n" } else { "" };
            write(&mut requests, format_args!("{slow}POST /bytes/{length} HTTP/1.1\r\nContent-Length: 9\r\n\r\n"));
            requests.extend_from_slice(b"GET /123\n");
        }
        let mut writer = stream.try_clone().expect("cloned");
        let writing = std::thread::spawn(move || writer.write_all(&requests).expect("written"));
        for (index, length) in lengths.iter().enumerate() {
            if index % 100 == 99 {
                assert_eq!(receive(&mut stream).1, OK);
                assert_eq!(receive(&mut stream).1, OK);
            }
            assert_eq!(receive(&mut stream).1.len(), *length);
        }
        writing.join().expect("joined");
    }

    #[test]
    fn a_delay_blocks_nobody_else() {
        let server = server(1);
        let mut slow = connect(&server);
        let start = Instant::now();
        slow.write_all(b"GET /delay/300 HTTP/1.1\r\n\r\n").expect("written");
        let mut quick = connect(&server);
        for _ in 0..20 {
            quick.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").expect("written");
            receive(&mut quick);
        }
        assert!(start.elapsed() < Duration::from_millis(300), "{:?}", start.elapsed());
        receive(&mut slow);
        assert!(start.elapsed() >= Duration::from_millis(300), "{:?}", start.elapsed());
        // One who leaves before the answer harms nobody, even if his place is taken.
        let mut gone = connect(&server);
        gone.write_all(b"GET /delay/50 HTTP/1.1\r\n\r\n").expect("written");
        drop(gone);
        let mut next = connect(&server);
        next.write_all(b"GET /delay/100 HTTP/1.1\r\n\r\n").expect("written");
        assert_eq!(receive(&mut next).1, OK);
    }

    #[test]
    fn a_burn_costs_what_it_says() {
        let start_ns = clock::thread_cpu_ns();
        burn(20_000);
        let used_ns = clock::thread_cpu_ns() - start_ns;
        assert!((20_000_000..25_000_000).contains(&used_ns), "{used_ns} ns");
    }

    #[test]
    fn a_large_body_is_streamed_to_a_slow_reader() {
        let server = server(1);
        let before = process::resident_bytes();
        let mut stream = connect(&server);
        stream.write_all(b"GET /bytes/1073741824 HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n").expect("written");
        std::thread::sleep(Duration::from_millis(50));
        let mut quick = connect(&server);
        quick.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").expect("written");
        receive(&mut quick);
        let mut buffer = vec![0; 1 << 20];
        let mut left = (1 << 30) + "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n".len();
        left += "Content-Length: 1073741824\r\n\r\n".len();
        while left > 0 {
            let take = left.min(buffer.len());
            left -= stream.read(&mut buffer[..take]).expect("read");
        }
        assert_eq!(receive(&mut stream).1, OK);
        let grown = process::resident_bytes().saturating_sub(before);
        assert!(grown < 256 << 20, "grown by {grown} bytes");
    }

    #[test]
    fn refusals_arrive_even_when_the_client_talks_on() {
        let server = server(1);
        for (bytes, status) in [
            (format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(300_000)), "431"),
            (format!("nonsense\r\n\r\n{}", "x".repeat(300_000)), "400"),
        ] {
            let answer = exchange(&server, bytes.as_bytes());
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
            assert!(answer.contains("Connection: close\r\n"), "{answer}");
        }
        let mut stream = connect(&server);
        stream
            .write_all(b"POST /healthz HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
            .expect("written");
        assert_eq!(receive(&mut stream).0, "HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(b"abc").expect("written");
        assert_eq!(receive(&mut stream).1, OK);
    }

    #[test]
    fn one_byte_at_a_time_over_a_socket() {
        let server = server(1);
        let mut stream = connect(&server);
        for byte in b"POST /bytes/4 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n" {
            stream.write_all(&[*byte]).expect("written");
            std::thread::sleep(Duration::from_micros(200));
        }
        assert_eq!(receive(&mut stream).1, b"xxxx");
    }

    #[test]
    fn many_connections_on_two_threads() {
        let server = server(2);
        let mut streams: Vec<TcpStream> = (0..300).map(|_| connect(&server)).collect();
        for _ in 0..3 {
            for stream in &mut streams {
                stream.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").expect("written");
            }
            for stream in &mut streams {
                assert_eq!(receive(stream).1, OK);
            }
        }
        let address = server.address();
        server.stop().expect("no loop had failed");
        assert!(TcpStream::connect(address).is_err());
        assert!(matches!(streams[0].read(&mut [0]), Ok(0) | Err(_)));
    }

    #[test]
    fn no_thread_is_no_server() {
        let options = Options { listen: "127.0.0.1:0".parse().expect("an address"), threads: 0 };
        assert_eq!(start(options).err().expect("an error").kind(), io::ErrorKind::InvalidInput);
    }
}
