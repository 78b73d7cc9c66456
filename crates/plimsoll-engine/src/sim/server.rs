//! Descriptions of simulated servers: service times, stalls, and faults with their probabilities.
//!
//! A [`SimServer`] is only a description; [`super::net::SimWorld`] executes it. Not here: clocks,
//! buffers, connections.

use plimsoll_model::RequestFailure;
use plimsoll_model::rng::Rng;
use std::net::SocketAddr;

/// A periodic stall. The server stops during the last `length_ns` of every `every_ns` of schedule
/// time.
#[derive(Debug, Clone, Copy)]
pub struct SimStall {
    pub every_ns: u64,
    pub length_ns: u64,
}

impl SimStall {
    /// Returns `at_ns`, or the end of the stall if `at_ns` lies in a stall; ns of schedule time.
    pub fn end_of_stall(self, at_ns: u64) -> u64 {
        let phase_ns = at_ns % self.every_ns;
        if phase_ns >= self.every_ns - self.length_ns { at_ns - phase_ns + self.every_ns } else { at_ns }
    }

    /// Returns the time at which work that begins at `at_ns` and takes `need_ns` is done. The work
    /// pauses during stalls.
    pub fn completion_ns(self, at_ns: u64, need_ns: u64) -> u64 {
        let (mut at_ns, mut need_ns) = (self.end_of_stall(at_ns), need_ns);
        loop {
            let left_ns = self.every_ns - self.length_ns - at_ns % self.every_ns;
            if need_ns < left_ns {
                return at_ns + need_ns;
            }
            need_ns -= left_ns;
            at_ns = self.end_of_stall(at_ns + left_ns);
        }
    }
}

/// The distribution of the server's service times, ns.
#[derive(Debug, Clone, Copy)]
pub enum ServiceTimes {
    Constant(u64),
    /// Service times are exponentially distributed with this mean, ns.
    Exponential(u64),
    /// A mix of usual and slow requests: the usual service time in ns, the slow service time in ns,
    /// and n. On average one of n requests is slow.
    SlowOneIn(u64, u64, u64),
}

impl ServiceTimes {
    pub fn draw_ns(self, rng: &mut Rng) -> u64 {
        match self {
            ServiceTimes::Constant(ns) => ns,
            ServiceTimes::SlowOneIn(usual_ns, slow_ns, count) if rng.uniform_below(count) == 0 => slow_ns.max(usual_ns),
            ServiceTimes::SlowOneIn(usual_ns, ..) => usual_ns,
            ServiceTimes::Exponential(mean_ns) => (rng.exponential() * mean_ns as f64) as u64,
        }
    }
}

/// A fault or unusual behaviour of a server. The variants from `NoPort` to `ResetsOnAccept` affect
/// connections, and all later variants affect requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// The client's system refuses the connect (no free port).
    NoPort,
    Refuses,
    NeverAccepts,
    ResetsOnAccept,

    ResetsBeforeReading,
    ResetsAfterReading,
    /// Closes the connection without a response.
    ClosesWithoutReply,
    ClosesInReply,
    ResetsInReply,
    Garbage,
    /// Sends a complete response with garbage after it.
    GarbageAfterReply,
    /// Sends two responses to one request, the second after this time, ns.
    AnswersTwice(u64),
    /// Sends one byte at a time, with this interval between bytes, ns.
    Drips(u64),
    NeverAnswers,
    Status(u16),
    /// Sends the header `Connection: close` with the response, and closes.
    SaysClose,
    /// Closes the connection with the response, although no header announces the close.
    ClosesUnannounced,
    /// Closes the connection this long after the response, ns, although no header announces the
    /// close.
    ClosesAfter(u64),
    /// Sends a body without a length, whose end is the end of the connection.
    UntilClose,
    /// Sends a chunked body with trailers.
    Chunked,
    /// Sends the response in many pieces, some of them delayed.
    Pieces,
    /// Sends interim responses (1xx) before the response.
    Interim,
    /// Sends a response that is larger than the client's read buffer.
    Large,
    /// Sends a response of 3 MB in one piece.
    Huge,
    /// Sends a response of 3 MB in one piece, whose end is the end of the connection.
    HugeUntilClose,
    /// Sends an endless body of small chunks, as fast as the client reads them.
    Floods,
    /// Sends unsolicited bytes this long after the response, ns.
    SendsUnsolicited(u64),
    /// Reads only half of the request and then stops reading.
    TakesHalf,
    /// Responds with 413 after half of the request, and closes.
    AnswersEarlyAndCloses,
    /// Responds with 413 after half of the request, reads the rest and continues.
    AnswersEarlyAndGoesOn,
}

/// The length of a huge body in bytes, which is several times what the client reads in one
/// iteration of its event loop.
const HUGE_BYTES: usize = 3_000_000;
/// The chunk that an endless response repeats.
pub const ENDLESS_BODY_CHUNK: &[u8] = b"30\r\n................................................\r\n";
/// The CPU time, ns, that each read from an endless response costs the client, which is about the
/// cost of parsing tiny chunks.
pub const ENDLESS_BODY_READ_NS: u64 = 200_000;

/// A millisecond in ns.
pub const MS: u64 = 1_000_000;

impl Fault {
    /// The faults that most tests use: all but `AnswersTwice`, `Huge`, `HugeUntilClose` and
    /// `Floods`. `verify` reports `AnswersTwice` as an error, and the other three faults send
    /// millions of bytes. The durations of the listed faults are chosen for the request timeout of
    /// the tests, 60 ms.
    pub const TESTED: [Fault; 29] = [
        Fault::NoPort,
        Fault::Refuses,
        Fault::NeverAccepts,
        Fault::ResetsOnAccept,
        Fault::ResetsBeforeReading,
        Fault::ResetsAfterReading,
        Fault::ClosesWithoutReply,
        Fault::ClosesInReply,
        Fault::ResetsInReply,
        Fault::Garbage,
        Fault::GarbageAfterReply,
        Fault::Drips(10_000),
        Fault::Drips(10 * MS),
        Fault::NeverAnswers,
        Fault::Status(500),
        Fault::Status(404),
        Fault::SaysClose,
        Fault::ClosesUnannounced,
        Fault::ClosesAfter(50_000),
        Fault::ClosesAfter(10 * MS),
        Fault::UntilClose,
        Fault::Chunked,
        Fault::Pieces,
        Fault::Interim,
        Fault::Large,
        Fault::SendsUnsolicited(5 * MS),
        Fault::TakesHalf,
        Fault::AnswersEarlyAndCloses,
        Fault::AnswersEarlyAndGoesOn,
    ];

    /// Returns whether the fault affects a connection before any request, rather than a request.
    pub fn is_connection_level(self) -> bool {
        matches!(self, Fault::NoPort | Fault::Refuses | Fault::NeverAccepts | Fault::ResetsOnAccept)
    }

    /// Returns the outcomes that requests with this fault may have: whether success is possible,
    /// and which failures.
    pub fn possible_outcomes(self) -> (bool, &'static [RequestFailure]) {
        match self {
            Fault::NoPort | Fault::Refuses => (false, &[RequestFailure::Connect]),
            Fault::NeverAccepts | Fault::NeverAnswers | Fault::TakesHalf | Fault::Floods => {
                (false, &[RequestFailure::Timeout])
            }
            // A reset that arrives together with the connect result counts as a failed connect.
            Fault::ResetsOnAccept => (false, &[RequestFailure::Connect, RequestFailure::Reset]),
            Fault::ResetsBeforeReading | Fault::ResetsAfterReading | Fault::ResetsInReply => {
                (false, &[RequestFailure::Reset])
            }
            Fault::ClosesWithoutReply | Fault::ClosesInReply => (false, &[RequestFailure::ClosedEarly]),
            Fault::Garbage => (false, &[RequestFailure::Protocol]),
            Fault::Drips(gap_ns) if gap_ns >= MS => (false, &[RequestFailure::Timeout]),
            Fault::Status(_) | Fault::AnswersEarlyAndCloses | Fault::AnswersEarlyAndGoesOn => {
                (false, &[RequestFailure::Status])
            }
            Fault::GarbageAfterReply
            | Fault::Drips(_)
            | Fault::SaysClose
            | Fault::ClosesUnannounced
            | Fault::UntilClose
            | Fault::Chunked
            | Fault::Pieces
            | Fault::Interim
            | Fault::Large
            | Fault::Huge
            | Fault::HugeUntilClose => (true, &[]),
            // The next request may be in transit already when the server closes the connection, and
            // can fail for this reason.
            Fault::ClosesAfter(_) => (true, &[RequestFailure::ClosedEarly, RequestFailure::Reset]),
            Fault::SendsUnsolicited(_) => (true, &[RequestFailure::Protocol]),
            Fault::AnswersTwice(_) => (true, &[RequestFailure::Protocol]),
        }
    }
}

/// How the server's bytes are split into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseSplit {
    /// A response arrives in one piece, unless a fault splits it.
    Whole,
    /// Each byte arrives separately, 1 ns after the byte before.
    Bytes,
}

/// The description of a simulated server: its speed, its limits and its faults.
#[derive(Debug, Clone)]
pub struct SimServer {
    /// The maximum number of requests that are served at once, first come, first served; `None`: no
    /// limit.
    pub slots: Option<usize>,
    pub service: ServiceTimes,
    pub stall: Option<SimStall>,
    /// Whether connections are accepted during a stall.
    pub accepts_in_stall: bool,
    /// The network latency in one direction, ns.
    pub latency_ns: u64,
    /// The faults of the server, each with the share (0 to 1) of connections or requests that it
    /// affects.
    pub faults: Vec<(Fault, f64)>,
    /// The schedule time after which no fault occurs, ns.
    pub faults_until_ns: u64,
    /// The addresses on which no server listens.
    pub dead: Vec<SocketAddr>,
    /// The size in bytes of the buffer between the client's sends and the server's reads.
    pub buffer_bytes: usize,
    /// The maximum number of bytes that the server reads in an interval, and the interval in ns;
    /// `None`: no limit.
    pub intake: Option<(usize, u64)>,
    pub cut: ResponseSplit,
    /// The idle time after which the server closes a connection, ns; `None`: never.
    pub idle_close_ns: Option<u64>,
    /// The server's HTTP/2 behaviour; `None`: HTTP/1.1. A server that uses HTTP/2 has no faults of
    /// requests.
    pub h2: Option<SimH2>,
}

/// The HTTP/2 behaviour of a simulated server.
#[derive(Debug, Clone, Copy)]
pub struct SimH2 {
    /// The maximum number of concurrent streams of a connection. The server refuses further
    /// streams.
    pub streams_max: u32,
    /// The server refuses every n-th stream of a connection; `None`: the server refuses no stream.
    pub refuses_every: Option<u64>,
    /// The server sends GOAWAY after this number of streams, and closes the connection after their
    /// responses.
    pub goaway_after: Option<u64>,
    /// The number of messages in a streamed response, and the interval between them in ns. With 0
    /// messages, the response is not streamed.
    pub messages: (u32, u64),
}

impl SimH2 {
    /// Creates an HTTP/2 server without faults, with this limit of streams.
    pub fn new(streams_max: u32) -> SimH2 {
        SimH2 { streams_max, refuses_every: None, goaway_after: None, messages: (0, 0) }
    }
}

impl SimServer {
    /// Creates a server without faults: unlimited concurrency, `service_ns` of service time, 50 us
    /// latency.
    pub fn new(service_ns: u64) -> SimServer {
        SimServer {
            slots: None,
            service: ServiceTimes::Constant(service_ns),
            stall: None,
            accepts_in_stall: true,
            latency_ns: 50_000,
            faults: vec![],
            faults_until_ns: u64::MAX,
            dead: vec![],
            buffer_bytes: 64 << 10,
            intake: None,
            cut: ResponseSplit::Whole,
            idle_close_ns: None,
            h2: None,
        }
    }

    /// Returns the server with a single fault, which affects this share of connections or requests.
    pub fn with_fault(self, fault: Fault, share: f64) -> SimServer {
        SimServer { faults: vec![(fault, share)], ..self }
    }
}

/// Returns the bytes of a response.
pub fn response_bytes(fault: Option<Fault>, head_request: bool, serial: u64) -> Vec<u8> {
    let (head, body) = match fault {
        Some(Fault::Garbage) => {
            // The garbage responses are invalid from the first byte on, or from a later byte on, or
            // have wrong framing.
            let texts = ["\0\x01\x02garbage\r\n\r\n", "HTTP/9.9 nonsense\r\n\r\n", "SSH-2.0-thing\r\n", "HTTP/1.1 abc\r\n\r\n"];
            return texts[serial as usize % texts.len()].into();
        }
        Some(Fault::Status(status)) => (format!("HTTP/1.1 {status} No\r\nContent-Length: 2\r\n\r\n"), b"no".to_vec()),
        Some(Fault::AnswersEarlyAndCloses | Fault::AnswersEarlyAndGoesOn) => {
            ("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n".into(), vec![])
        }
        Some(Fault::SaysClose) => {
            ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n".into(), b"hello".to_vec())
        }
        Some(Fault::UntilClose) => ("HTTP/1.1 200 OK\r\n\r\n".into(), b"until the end".to_vec()),
        Some(Fault::Chunked) => (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Sum\r\n\r\n".into(),
            b"5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nSum: 6\r\n\r\n".to_vec(),
        ),
        Some(Fault::Interim) => (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n".into(),
            vec![],
        ),
        Some(Fault::Huge) => (format!("HTTP/1.1 200 OK\r\nContent-Length: {HUGE_BYTES}\r\n\r\n"), vec![b'x'; HUGE_BYTES]),
        Some(Fault::HugeUntilClose) => ("HTTP/1.1 200 OK\r\n\r\n".into(), vec![b'x'; HUGE_BYTES]),
        Some(Fault::Floods) => ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".into(), vec![]),
        Some(Fault::Large) => ("HTTP/1.1 200 OK\r\nContent-Length: 150000\r\n\r\n".into(), vec![b'x'; 150_000]),
        _ => ("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n".into(), b"hello".to_vec()),
    };
    let mut bytes = head.into_bytes();
    if !head_request {
        bytes.extend(body);
    }
    if fault == Some(Fault::GarbageAfterReply) {
        bytes.extend(b"\0garbage");
    }
    bytes
}
