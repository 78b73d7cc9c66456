//! Server faults: every known way for a server to misbehave, as steps for the event loop.
//!
//! One table gives the name of each fault, its effect, and the outcomes that a correct client may
//! report. Tests check every fault of the table.

use crate::event_loop::{Counts, Request, Service, Step, Steps, reply};

/// An outcome that a correct client may report for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The client got a complete response with a status below 400.
    Success,
    /// The client got a complete response with a status of 400 or more.
    Status,
    /// The connection could not be opened.
    Connect,
    /// The connection was reset.
    Reset,
    /// The connection was closed before the response was complete.
    Closed,
    /// The bytes are not a valid HTTP response, or exceed the client's limits.
    Protocol,
    /// The response was not complete within the client's timeout.
    Timeout,
}

use Outcome::{Closed, Connect, Protocol, Reset, Status, Success, Timeout};

/// A fault of a server, or a correct behaviour that is rarely tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Refuses all connections.
    Refuses,
    /// Resets a connection before anything is read.
    ResetOnConnect,
    /// Closes a connection before anything is read.
    CloseOnConnect,
    /// Accepts connections and never reads from them.
    NeverReads,
    /// Resets the connection once the request is read.
    ResetOnRequest,
    /// Closes the connection once the request is read.
    CloseOnRequest,
    /// Reads requests and never responds.
    NeverAnswers,
    /// Closes the connection in the middle of the head.
    CloseInHead,
    /// Closes the connection after half of the body that the Content-Length announced.
    CloseInBody,
    /// Resets the connection after half of the body.
    ResetInBody,
    /// Sends half of the body and then nothing more.
    StopsInBody,
    /// Closes the connection in the middle of a chunk.
    CloseInChunk,
    /// Sends bytes that are not HTTP.
    Garbage,
    /// Sends a correct response, followed by random bytes.
    GarbageAfterReply,
    /// Sends a body that is longer than its Content-Length.
    LongBody,
    /// Sends a status line without a number.
    BadStatus,
    /// Sends a Content-Length that is not a number.
    BadLength,
    /// Sends two different Content-Length fields.
    TwoLengths,
    /// Sends a chunk size that is not a number.
    BadChunk,
    /// Sends a head of 4 MiB.
    HugeHead,
    /// Sends a head of 20 000 fields.
    ManyHeaders,
    /// Sends interim responses (1xx) without end.
    EndlessInterim,
    /// Sends one byte of the response at a time, at this interval in ms.
    Drip(u64),
    /// Sends every byte of the response in its own packet.
    ByteByByte,
    /// Sends a correct chunked response, in chunks of several sizes.
    Chunked,
    /// Sends a correct chunked response with trailers.
    ChunkedTrailers,
    /// Sends a body that ends with the connection.
    BodyUntilClose,
    /// Sends an HTTP/1.0 response without header fields, whose body ends with the connection.
    Http10Reply,
    /// Sends interim responses (100, 103) before the final response.
    Interim,
    /// Sends status 204 with fields that announce a body.
    NoContent,
    /// Sends status 304 with the Content-Length of a body that does not follow.
    NotModified,
    /// Announces in each response that the connection closes, and closes it.
    CloseEach,
    /// Closes the connection after each response without announcing that.
    CloseSilently,
    /// Sends a body of 100 MB.
    HugeBody,
    /// Sends a response with this status.
    WithStatus(u16),
}

/// The length of the body of [`Fault::HugeBody`], bytes.
pub(crate) const HUGE_BODY_BYTES: u64 = 100_000_000;
const HUGE_HEAD_BYTES: usize = 4 << 20;
const MANY_HEADERS_COUNT: usize = 20_000;

type Row = (Fault, &'static str, &'static str, &'static [Outcome]);

/// All faults: fault, name, effect, and the outcomes that a correct client may report.
const FAULT_TABLE: [Row; 39] = [
    (Fault::Refuses, "refuses", "refuses connections", &[Connect]),
    // The client of `ResetOnConnect` or `CloseOnConnect` may send its request before it notices
    // that the connection is closed. Such a client sees a reset.
    (Fault::ResetOnConnect, "reset-on-connect", "resets before it reads", &[Reset, Connect, Closed]),
    (Fault::CloseOnConnect, "close-on-connect", "closes before it reads", &[Closed, Reset, Connect]),
    (Fault::NeverReads, "never-reads", "accepts and never reads", &[Timeout]),
    (Fault::ResetOnRequest, "reset", "resets once the request is read", &[Reset]),
    (Fault::CloseOnRequest, "close", "closes once the request is read", &[Closed]),
    (Fault::NeverAnswers, "never-answers", "never answers", &[Timeout]),
    (Fault::CloseInHead, "close-in-head", "closes in the middle of the head", &[Closed]),
    (Fault::CloseInBody, "close-in-body", "closes in the middle of the body", &[Closed]),
    (Fault::ResetInBody, "reset-in-body", "resets in the middle of the body", &[Reset]),
    (Fault::StopsInBody, "stops-in-body", "goes silent in the middle of the body", &[Timeout]),
    (Fault::CloseInChunk, "close-in-chunk", "closes in the middle of a chunk", &[Closed]),
    (Fault::Garbage, "garbage", "sends bytes that are no HTTP", &[Protocol]),
    (Fault::GarbageAfterReply, "garbage-after", "sends garbage behind a good reply", &[Success, Protocol]),
    (Fault::LongBody, "long-body", "sends more body than it said", &[Success, Protocol]),
    (Fault::BadStatus, "bad-status", "sends a status that is no number", &[Protocol]),
    (Fault::BadLength, "bad-length", "sends a Content-Length that is no number", &[Protocol]),
    (Fault::TwoLengths, "two-lengths", "sends two Content-Lengths that differ", &[Protocol]),
    (Fault::BadChunk, "bad-chunk", "sends a chunk size that is no number", &[Protocol]),
    (Fault::HugeHead, "huge-head", "sends a head of 4 MiB", &[Protocol]),
    (Fault::ManyHeaders, "many-headers", "sends a head of 20 000 fields", &[Protocol]),
    (Fault::EndlessInterim, "endless-interim", "sends interim replies without end", &[Protocol, Timeout]),
    (Fault::Drip(5), "drip:5", "sends one byte each 5 ms", &[Success]),
    (Fault::Drip(1000), "drip:1000", "sends one byte a second", &[Success, Timeout]),
    (Fault::ByteByByte, "every-byte", "sends every byte by itself", &[Success]),
    (Fault::Chunked, "chunked", "sends chunks", &[Success]),
    (Fault::ChunkedTrailers, "chunked-trailers", "sends chunks and trailers", &[Success]),
    (Fault::BodyUntilClose, "until-close", "ends the body by closing", &[Success]),
    (Fault::Http10Reply, "old-reply", "answers in HTTP/1.0 without fields", &[Success]),
    (Fault::Interim, "interim", "sends interim replies before the reply", &[Success]),
    (Fault::NoContent, "no-content", "sends 204 with fields that speak of a body", &[Success]),
    (Fault::NotModified, "not-modified", "sends 304 with a length", &[Success]),
    (Fault::CloseEach, "close-each", "closes after each reply, as announced", &[Success]),
    // A client may send its next request before it notices that the connection is closed, and then
    // sees a reset or a closed connection.
    (Fault::CloseSilently, "close-silently", "closes after each reply, not announced", &[Success, Closed, Reset]),
    (Fault::HugeBody, "huge-body", "sends a body of 100 MB", &[Success]),
    (Fault::WithStatus(302), "status:302", "answers 302", &[Success]),
    (Fault::WithStatus(429), "status:429", "answers 429", &[Status]),
    (Fault::WithStatus(500), "status:500", "answers 500", &[Status]),
    (Fault::WithStatus(503), "status:503", "answers 503", &[Status]),
];

impl Fault {
    /// Returns all faults. Faults with a parameter appear with the values that tests use.
    pub fn all() -> impl Iterator<Item = Fault> {
        FAULT_TABLE.iter().map(|row| row.0)
    }

    fn fault_table_row(&self) -> &'static Row {
        // A fault whose parameter is not in the table uses the row of its variant.
        let kind = std::mem::discriminant(self);
        let same = FAULT_TABLE.iter().find(|row| row.0 == *self);
        same.or_else(|| FAULT_TABLE.iter().find(|row| std::mem::discriminant(&row.0) == kind))
            .expect("a row for every fault")
    }

    /// Returns the fault with this name from the table. `drip:` accepts any number of milliseconds,
    /// and `status:` accepts any status from 200 to 599.
    pub fn from_name(name: &str) -> Option<Fault> {
        match name.split_once(':') {
            Some(("drip", ms)) => ms.parse().ok().map(Fault::Drip),
            Some(("status", status)) => status.parse().ok().filter(|s| (200..600).contains(s)).map(Fault::WithStatus),
            _ => FAULT_TABLE.iter().find(|row| row.1 == name).map(|row| row.0),
        }
    }

    /// Returns the name of the fault; [`Fault::from_name`] parses it.
    pub fn name(&self) -> String {
        match self {
            Fault::Drip(ms) => format!("drip:{ms}"),
            Fault::WithStatus(status) => format!("status:{status}"),
            other => other.fault_table_row().1.to_owned(),
        }
    }

    /// Describes in a few words what the server does.
    pub fn description(&self) -> String {
        match self {
            Fault::Drip(ms) => format!("sends one byte each {ms} ms"),
            Fault::WithStatus(status) => format!("answers {status}"),
            other => other.fault_table_row().2.to_owned(),
        }
    }

    /// Returns the outcomes that a correct client with a timeout of 1 to 10 s may report for a
    /// request.
    pub fn outcomes(&self) -> &'static [Outcome] {
        match self {
            Fault::WithStatus(200..400) => &[Success],
            Fault::WithStatus(_) => &[Status],
            other => other.fault_table_row().3,
        }
    }

    /// Whether the fault affects connections when they open, instead of requests.
    pub fn affects_connect(&self) -> bool {
        matches!(self, Fault::Refuses | Fault::ResetOnConnect | Fault::CloseOnConnect | Fault::NeverReads)
    }

    fn connect_steps(&self) -> &'static [Step] {
        match self {
            Fault::ResetOnConnect => &[Step::Reset],
            Fault::CloseOnConnect => &[Step::Close],
            Fault::NeverReads => &[Step::WaitForHangup],
            _ => &[],
        }
    }

    fn request_steps(&self, steps: &mut Steps) {
        let bytes = |text: &'static str| Step::Send(text.as_bytes().into());
        const HALF_RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
        const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        match self {
            Fault::Refuses | Fault::ResetOnConnect | Fault::CloseOnConnect | Fault::NeverReads => {}
            Fault::ResetOnRequest => steps.push_back(Step::Reset),
            Fault::CloseOnRequest => steps.push_back(Step::Close),
            Fault::NeverAnswers => steps.push_back(Step::WaitForHangup),
            Fault::CloseInHead => steps.extend([bytes("HTTP/1.1 200 OK\r\nContent-Le"), Step::Close]),
            Fault::CloseInBody => steps.extend([bytes(HALF_RESPONSE), Step::Close]),
            // The pause lets the client read the first half, because a reset discards bytes that
            // the client has not read.
            Fault::ResetInBody => steps.extend([bytes(HALF_RESPONSE), Step::Pause(20_000_000), Step::Reset]),
            Fault::StopsInBody => steps.extend([bytes(HALF_RESPONSE), Step::WaitForHangup]),
            Fault::CloseInChunk => steps.extend([bytes(CHUNKED), bytes("5\r\nhello\r\nff\r\nhel"), Step::Close]),
            Fault::Garbage => {
                steps.push_back(Step::Send(b"\x00\xff\x80garbage\r\n\r\n\x16\x03\x01 no HTTP\r\n\r\n"[..].into()))
            }
            Fault::GarbageAfterReply => {
                steps.push_back(bytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\x00garbage\r\n\r\n"));
            }
            Fault::LongBody => steps.push_back(bytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more")),
            Fault::BadStatus => steps.push_back(bytes("HTTP/1.1 abc OK\r\nContent-Length: 2\r\n\r\nok")),
            Fault::BadLength => steps.push_back(bytes("HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok")),
            Fault::TwoLengths => {
                steps.push_back(bytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"));
            }
            Fault::BadChunk => steps.extend([bytes(CHUNKED), bytes("5\r\nhello\r\nxyz\r\nhello\r\n0\r\n\r\n")]),
            Fault::HugeHead => {
                let value = "x".repeat(HUGE_HEAD_BYTES);
                let text = format!("HTTP/1.1 200 OK\r\nX-Long: {value}\r\nContent-Length: 2\r\n\r\nok");
                steps.push_back(Step::Send(text.into_bytes().into()));
            }
            Fault::ManyHeaders => {
                let fields = "X-Field: value\r\n".repeat(MANY_HEADERS_COUNT);
                let text = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok");
                steps.push_back(Step::Send(text.into_bytes().into()));
            }
            Fault::EndlessInterim => {
                // The server sends a large number of interim responses, enough to exceed any limit,
                // and then nothing more.
                let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n".repeat(20_000);
                steps.extend([Step::Send(interim.into_bytes().into()), Step::WaitForHangup]);
            }
            Fault::Drip(ms) => steps.extend(send_byte_by_byte(ms * 1_000_000)),
            Fault::ByteByByte => steps.extend(send_byte_by_byte(100_000)),
            Fault::Chunked => {
                steps.extend([bytes(CHUNKED), bytes("5\r\nhello\r\n"), Step::Pause(1_000_000)]);
                steps.push_back(bytes("0A;name=\"value\"\r\n0123456789\r\n1\r\n!\r\n0\r\n\r\n"));
            }
            Fault::ChunkedTrailers => {
                steps.extend([bytes(CHUNKED), bytes("5\r\nhello\r\n0\r\nDigest: abc\r\n")]);
                steps.extend([Step::Pause(1_000_000), bytes("X-Time: 1\r\n\r\n")]);
            }
            Fault::BodyUntilClose => steps.extend([
                bytes("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello"),
                Step::Pause(1_000_000),
                bytes(" and good bye"),
                Step::Close,
            ]),
            Fault::Http10Reply => steps.extend([bytes("HTTP/1.0 200 OK\r\n\r\nhello"), Step::Close]),
            Fault::Interim => steps.extend([
                bytes("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"),
                Step::Pause(1_000_000),
                bytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            ]),
            Fault::NoContent => steps
                .push_back(bytes("HTTP/1.1 204 No Content\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n")),
            Fault::NotModified => {
                steps.push_back(bytes("HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\nETag: \"a\"\r\n\r\n"));
            }
            Fault::CloseEach => steps
                .extend([bytes("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"), Step::Close]),
            Fault::CloseSilently => {
                steps.extend([bytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), Step::Close]);
            }
            Fault::HugeBody => steps.extend([
                Step::Send(format!("HTTP/1.1 200 OK\r\nContent-Length: {HUGE_BODY_BYTES}\r\n\r\n").into_bytes().into()),
                Step::SendFiller(HUGE_BODY_BYTES),
            ]),
            Fault::WithStatus(status) => {
                let location = if (300..400).contains(status) { "Location: /elsewhere\r\n" } else { "" };
                let body = if matches!(status, 204 | 205 | 304) { "" } else { "no" };
                let length = body.len();
                let text = format!("HTTP/1.1 {status} As Told\r\n{location}Content-Length: {length}\r\n\r\n{body}");
                steps.push_back(Step::Send(text.into_bytes().into()));
            }
        }
    }
}

fn send_byte_by_byte(pause_ns: u64) -> impl Iterator<Item = Step> {
    const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";
    REPLY.chunks(1).flat_map(move |byte| [Step::Pause(pause_ns), Step::Send(byte.into())])
}

/// The server that applies a fault to every `every`-th request or connection.
pub(crate) struct FaultyServer {
    fault: Fault,
    fault_interval: u64,
    events_so_far: u64,
}

impl FaultyServer {
    pub(crate) fn new(fault: Fault, every: u64) -> FaultyServer {
        FaultyServer { fault, fault_interval: every.max(1), events_so_far: 0 }
    }

    fn is_fault_due(&mut self, counts: &mut Counts) -> bool {
        self.events_so_far += 1;
        let strikes = self.events_so_far.is_multiple_of(self.fault_interval);
        counts.special += u64::from(strikes);
        strikes
    }
}

impl Service for FaultyServer {
    fn append_connect_steps(&mut self, steps: &mut Steps, counts: &mut Counts) {
        if self.fault.affects_connect() && self.is_fault_due(counts) {
            steps.extend(self.fault.connect_steps().iter().cloned());
        }
    }

    fn answer(&mut self, request: &Request<'_>, steps: &mut Steps, counts: &mut Counts) {
        if !self.fault.affects_connect() && self.is_fault_due(counts) {
            self.fault.request_steps(steps);
        } else {
            steps.extend(reply(request, "200 OK", "ok"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_names_are_distinct() {
        for fault in Fault::all() {
            assert_eq!(Fault::from_name(&fault.name()), Some(fault));
            assert!(!fault.description().is_empty() && !fault.outcomes().is_empty());
            let mut steps = Steps::new();
            fault.request_steps(&mut steps);
            assert_eq!(fault.affects_connect(), steps.is_empty(), "{fault:?}");
        }
        assert_eq!(Fault::from_name("drip:7"), Some(Fault::Drip(7)));
        assert_eq!(Fault::Drip(7).description(), "sends one byte each 7 ms");
        assert_eq!(Fault::from_name("status:99"), None);
        assert_eq!(Fault::from_name("kindness"), None);
    }
}
