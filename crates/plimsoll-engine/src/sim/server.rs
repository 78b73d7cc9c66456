//! Simulated servers as data: how fast one serves, when it stalls, and what it does wrong how
//! often.
//!
//! A [`SimServer`] only describes; [`super::net::SimWorld`] plays it. Not here: clocks, buffers,
//! connections.

use plimsoll_model::RequestFailure;
use plimsoll_model::rng::Rng;
use std::net::SocketAddr;

/// A stretch of every period in which nothing moves: the last `length_ns` of every `every_ns`, from
/// schedule time 0 on.
#[derive(Debug, Clone, Copy)]
pub struct SimStall {
    pub every_ns: u64,
    pub length_ns: u64,
}

impl SimStall {
    /// `at_ns`, or the end of the stall that it lies in. Times in ns of schedule time.
    pub fn end_of(self, at_ns: u64) -> u64 {
        let phase_ns = at_ns % self.every_ns;
        if phase_ns >= self.every_ns - self.length_ns { at_ns - phase_ns + self.every_ns } else { at_ns }
    }

    /// When work of `need_ns`, begun at `at_ns`, is done.
    pub fn work(self, at_ns: u64, need_ns: u64) -> u64 {
        let (mut at_ns, mut need_ns) = (self.end_of(at_ns), need_ns);
        loop {
            let left_ns = self.every_ns - self.length_ns - at_ns % self.every_ns;
            if need_ns < left_ns {
                return at_ns + need_ns;
            }
            need_ns -= left_ns;
            at_ns = self.end_of(at_ns + left_ns);
        }
    }
}

/// How long a request is worked on.
#[derive(Debug, Clone, Copy)]
pub enum Service {
    Constant(u64),
    /// Exponentially distributed with this mean.
    Exponential(u64),
    /// The first time for most, the second for one in so many.
    SlowOneIn(u64, u64, u64),
}

impl Service {
    pub fn draw_ns(self, rng: &mut Rng) -> u64 {
        match self {
            Service::Constant(ns) => ns,
            Service::SlowOneIn(usual_ns, slow_ns, count) if rng.below(count) == 0 => slow_ns.max(usual_ns),
            Service::SlowOneIn(usual_ns, ..) => usual_ns,
            Service::Exponential(mean_ns) => (rng.exponential() * mean_ns as f64) as u64,
        }
    }
}

/// What a server does wrong, or in a way of its own. Those of the first group befall a connection,
/// the others a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// The client's own system refuses at once (no port left).
    NoPort,
    Refuses,
    NeverAccepts,
    ResetsOnAccept,

    ResetsBeforeReading,
    ResetsAfterReading,
    /// Ends the connection in place of an answer.
    ClosesWithoutReply,
    ClosesInReply,
    ResetsInReply,
    Garbage,
    /// A whole answer, and garbage in the same breath.
    GarbageAfterReply,
    /// Two answers to one request, the second so much later.
    AnswersTwice(u64),
    /// One byte at a time, so many ns apart.
    Drips(u64),
    NeverAnswers,
    Status(u16),
    /// `Connection: close`, and closes.
    SaysClose,
    /// Closes along with the answer without having said so.
    ClosesUnannounced,
    /// Closes so long after the answer without having said so.
    ClosesAfter(u64),
    /// A body that ends with the connection.
    UntilClose,
    /// Chunks and trailers.
    Chunked,
    /// The answer in many pieces, cut anywhere, some of them later.
    Pieces,
    /// Interim answers first.
    Interim,
    /// An answer larger than a read.
    Large,
    /// An answer of 3 MB, all of it there at once.
    Huge,
    /// The same, ended by the connection.
    HugeUntilClose,
    /// A body of small chunks without end, as fast as it is read.
    Floods,
    /// Bytes that nobody asked for, so long after the answer.
    Blurts(u64),
    /// Takes half of the request and no more.
    TakesHalf,
    /// Answers 413 when it has half of the request, and closes.
    AnswersEarlyAndCloses,
    /// Answers 413 when it has half of the request, takes the rest and goes on.
    AnswersEarlyAndGoesOn,
}

/// Length of a huge body: several slices of a connection's turn.
const HUGE_BYTES: usize = 3_000_000;
/// What a flood repeats.
pub const FLOOD: &[u8] = b"30\r\n................................................\r\n";
/// CPU time of the client that reading from a flood takes, each time: about what it costs when the
/// chunks are tiny.
pub const FLOOD_READ_NS: u64 = 200_000;

/// A millisecond.
pub const MS: u64 = 1_000_000;

impl Fault {
    /// Every fault, with parameters that fit a timeout of 60 ms. Not here, for their cost: those of
    /// millions of bytes.
    pub const ALL: [Fault; 29] = [
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
        Fault::Blurts(5 * MS),
        Fault::TakesHalf,
        Fault::AnswersEarlyAndCloses,
        Fault::AnswersEarlyAndGoesOn,
    ];

    /// Whether it befalls a connection, before any request.
    pub fn is_of_connection(self) -> bool {
        matches!(self, Fault::NoPort | Fault::Refuses | Fault::NeverAccepts | Fault::ResetsOnAccept)
    }

    /// How requests may end when this fault befalls all of them: (whether with success, with which
    /// failures).
    pub fn may_end(self) -> (bool, &'static [RequestFailure]) {
        match self {
            Fault::NoPort | Fault::Refuses => (false, &[RequestFailure::Connect]),
            Fault::NeverAccepts | Fault::NeverAnswers | Fault::TakesHalf | Fault::Floods => {
                (false, &[RequestFailure::Timeout])
            }
            // A reset that comes along with the news that the connection stands is one of
            // connecting.
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
            // The next request may be on its way already.
            Fault::ClosesAfter(_) => (true, &[RequestFailure::ClosedEarly, RequestFailure::Reset]),
            Fault::Blurts(_) => (true, &[RequestFailure::Protocol]),
            Fault::AnswersTwice(_) => (true, &[RequestFailure::Protocol]),
        }
    }
}

/// How a server's bytes are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// An answer is one piece, unless a fault says otherwise.
    Whole,
    /// Every byte is a piece, a nanosecond apart.
    Bytes,
}

/// A server.
#[derive(Debug, Clone)]
pub struct SimServer {
    /// Requests worked on at once, first come, first served; `None`: any number.
    pub slots: Option<usize>,
    pub service: Service,
    pub stall: Option<SimStall>,
    /// Whether connections are accepted during a stall.
    pub accepts_in_stall: bool,
    /// One way.
    pub latency_ns: u64,
    /// Faults and the share of connections or requests that each befalls; the rest is served well.
    pub faults: Vec<(Fault, f64)>,
    /// Faults end at this schedule time.
    pub faults_until_ns: u64,
    /// Addresses where nobody listens.
    pub dead: Vec<SocketAddr>,
    /// Bytes that fit between a client's send and the server's reading.
    pub buffer_bytes: usize,
    /// Reads at most so many bytes in every so many ns; `None`: at once.
    pub intake: Option<(usize, u64)>,
    pub cut: Cut,
    /// Closes connections that were idle for this long.
    pub idle_close_ns: Option<u64>,
    /// Speaks HTTP/2 instead, and then none of the faults of requests befalls it.
    pub h2: Option<SimH2>,
}

/// How a server speaks HTTP/2.
#[derive(Debug, Clone, Copy)]
pub struct SimH2 {
    /// Streams of a connection that it takes at a time; what comes above is refused.
    pub streams_max: u32,
    /// Every so-manieth stream of a connection is refused.
    pub refuses_every: Option<u64>,
    /// It goes away from a connection that it has taken so many streams of (GOAWAY), and ends it
    /// when these are answered.
    pub leaves_after: Option<u64>,
    /// Its answers are streams of so many messages, so far apart in ns; 0: single ones, with the
    /// end of the request.
    pub messages: (u32, u64),
}

impl SimH2 {
    /// A good one, that takes so many streams at a time.
    pub fn new(streams_max: u32) -> SimH2 {
        SimH2 { streams_max, refuses_every: None, leaves_after: None, messages: (0, 0) }
    }
}

impl SimServer {
    /// A good server: any number at once, `service_ns` each, 50 us away.
    pub fn new(service_ns: u64) -> SimServer {
        SimServer {
            slots: None,
            service: Service::Constant(service_ns),
            stall: None,
            accepts_in_stall: true,
            latency_ns: 50_000,
            faults: vec![],
            faults_until_ns: u64::MAX,
            dead: vec![],
            buffer_bytes: 64 << 10,
            intake: None,
            cut: Cut::Whole,
            idle_close_ns: None,
            h2: None,
        }
    }

    /// The same server with one fault.
    pub fn with_fault(self, fault: Fault, share: f64) -> SimServer {
        SimServer { faults: vec![(fault, share)], ..self }
    }
}

/// An answer as bytes.
pub fn reply(fault: Option<Fault>, head_request: bool, serial: u64) -> Vec<u8> {
    let (head, body) = match fault {
        Some(Fault::Garbage) => {
            // Not even the first byte could be HTTP, or only a later one could not, or the framing
            // is nonsense.
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
