//! Runs a response parser, or a whole connection, over bytes in many splits. An error is returned
//! if the result depends on the split, or is inconsistent.
//!
//! The driver is a separate file because several kinds of tests use it. The driver serves tables of
//! cases, property tests, seeded fuzz tests, and the cargo-fuzz targets in `fuzz/`, which include
//! this file. The driver is generic over the parser, so that a test can pass a broken parser to
//! prove that the driver detects mistakes.
//!
//! Not here: the expected results, which the tables and generators of the tests contain.

use plimsoll_wire::h1::{FeedResult, RequestParts, ResponseExpectation, ResponseParser, ResponseSummary};
use plimsoll_wire::{Conn, ConnectionEvent, EarlyCloseError, EncodedRequest, ExchangeError, ProtocolError};

/// A parser that the driver tests: [`ResponseParser`], or a deliberately broken one.
pub trait Parser {
    fn begin(&mut self, head_request: bool);
    fn feed(&mut self, bytes: &[u8]) -> Result<FeedResult, ProtocolError>;
    fn finish(&mut self) -> Result<ResponseSummary, EarlyCloseError>;
    fn started(&self) -> bool;
}

impl Parser for ResponseParser {
    fn begin(&mut self, head_request: bool) {
        self.begin(ResponseExpectation { head_request, ..ResponseExpectation::default() });
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<FeedResult, ProtocolError> {
        self.feed(bytes)
    }

    fn finish(&mut self) -> Result<ResponseSummary, EarlyCloseError> {
        self.finish()
    }

    fn started(&self) -> bool {
        self.has_received_bytes()
    }
}

/// The result of parsing bytes that are followed by a close of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The parser returned a response, which used this number of bytes.
    Reply(ResponseSummary, usize),
    /// The close of the connection completed the response.
    ReplyAtClose(ResponseSummary),
    /// The parser returned no response, because the connection was closed too early.
    Cut(EarlyCloseError),
    /// The parser returned no response, because the bytes are invalid.
    Refused(ProtocolError),
}

/// Feeds `pieces` to the parser, then reports a close of the connection. A returned error describes
/// which rule of its interface the parser broke.
pub fn parse_pieces_then_close<'a>(
    parser: &mut impl Parser,
    head_request: bool,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Outcome, String> {
    parser.begin(head_request);
    let mut taken = 0;
    for piece in pieces {
        let fed = match parser.feed(piece) {
            Ok(fed) => fed,
            Err(error) if parser.feed(piece) == Err(error) => return Ok(Outcome::Refused(error)),
            Err(error) => return Err(format!("{error:?} was forgotten")),
        };
        taken += fed.consumed;
        if parser.started() != (taken > 0) {
            return Err(format!("started is wrong after {taken} bytes"));
        }
        match fed.response {
            None if fed.consumed == piece.len() => {}
            Some(reply) if fed.consumed <= piece.len() => return check_parsed_response(parser, reply, taken),
            _ => return Err(format!("of {} bytes: {fed:?}", piece.len())),
        }
    }
    Ok(match parser.finish() {
        Ok(reply) => Outcome::ReplyAtClose(reply),
        Err(error) => Outcome::Cut(error),
    })
}

/// Checks that a parsed response, which used `taken` bytes, is consistent.
fn check_parsed_response(parser: &mut impl Parser, reply: ResponseSummary, taken: usize) -> Result<Outcome, String> {
    if !(200..1000).contains(&reply.status) || reply.body_bytes >= taken as u64 {
        return Err(format!("of {taken} bytes: {reply:?}"));
    }
    if parser.feed(b"H") != Err(ProtocolError::Surplus) {
        return Err("bytes after the reply were taken".to_owned());
    }
    Ok(Outcome::Reply(reply, taken))
}

/// Returns the outcome of parsing `bytes`, if the outcome is the same in one piece, byte by byte
/// and in some random splits. If the outcomes differ, returns a description of the difference. The
/// parser is reused for each split, so that left-over state is detected, too.
pub fn same_in_all_splits(
    parser: &mut impl Parser,
    head_request: bool,
    bytes: &[u8],
    random: &mut Random,
) -> Result<Outcome, String> {
    let whole = parse_pieces_then_close(parser, head_request, [bytes])?;
    compare_in_all_splits(bytes, random, |what, pieces| {
        let other = parse_pieces_then_close(parser, head_request, pieces)?;
        if other == whole { Ok(()) } else { Err(format!("whole: {whole:?}, {what}: {other:?}")) }
    })?;
    Ok(whole)
}

/// Calls `compare` for `bytes` split into single bytes, and for some random splits.
pub fn compare_in_all_splits(
    bytes: &[u8],
    random: &mut Random,
    mut compare: impl FnMut(&str, &mut dyn Iterator<Item = &[u8]>) -> Result<(), String>,
) -> Result<(), String> {
    compare("byte by byte", &mut bytes.chunks(1))?;
    for _ in 0..3 {
        let mut rest = bytes;
        // Pieces are limited to a random length, so that short, long and empty ones all occur.
        let longest = 1 + random.below(bytes.len().min(64) + 1);
        let mut pieces = std::iter::from_fn(|| {
            let (piece, after) = rest.split_at(random.below(longest + 1).min(rest.len()));
            let more = !rest.is_empty();
            rest = after;
            more.then_some(piece)
        });
        compare("in random pieces", &mut pieces)?;
    }
    Ok(())
}

/// Everything that a connection reported about the bytes that it received after one request, and
/// about the close of the connection.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReportedEvents {
    /// Status and content length of the response, or the reason why there is no response.
    pub answer: Option<Result<(u16, u64), ExchangeError>>,
    /// The bytes of the response; the field `content` has the bytes that were reported as content.
    pub bytes: Vec<u8>,
    pub content: Vec<u8>,
    /// The number of bytes after the response.
    pub surplus: usize,
}

/// Returns a request with which the driver tests connections.
pub fn request(method: &str, body: &[u8], content: bool) -> EncodedRequest {
    let parts = RequestParts { method, target: "/", host: "h", headers: &[], body, keep_alive: true };
    let request = EncodedRequest::new(&parts).expect("a request").with_h2(&parts, false);
    if content { request.with_content() } else { request }
}

/// Records an event that a connection reported. Returns whether the connection continues.
pub fn record_event(heard: &mut ReportedEvents, event: ConnectionEvent) -> Result<bool, String> {
    match event {
        ConnectionEvent::Piece { exchange: 7, piece, .. } if heard.answer.is_none() => {
            heard.bytes.extend_from_slice(piece.bytes);
            heard.content.extend_from_slice(piece.content());
        }
        ConnectionEvent::Answered { exchange: 7, status, body_bytes, piece, surplus, .. } if heard.answer.is_none() => {
            heard.bytes.extend_from_slice(&piece.bytes[..piece.bytes.len() - surplus]);
            heard.content.extend_from_slice(piece.content());
            heard.surplus += surplus;
            heard.answer = Some(Ok((status, body_bytes)));
        }
        ConnectionEvent::Failed { exchange: 7, error, .. } if heard.answer.is_none() => {
            heard.answer = Some(Err(error));
            return Ok(false);
        }
        ConnectionEvent::Surplus(bytes) if heard.answer.is_some() => heard.surplus += bytes.len(),
        other => return Err(format!("{other:?} after {heard:?}")),
    }
    Ok(true)
}

/// Sends `request` over a new plain connection, feeds `pieces` as received bytes, then closes the
/// connection. A returned error describes which rule of its interface the connection broke.
fn receive_response_pieces<'a>(
    request: &EncodedRequest,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<ReportedEvents, String> {
    let (mut conn, mut scratch, mut plain) = (Conn::new(), Vec::new(), Vec::new());
    conn.start(7, request);
    let mut sent = 0;
    while sent < request.h1().len() {
        let bytes = conn.bytes_to_send(|_| request, &mut scratch);
        if bytes != &request.h1()[sent..] {
            return Err(format!("after {sent} bytes: {}", bytes.escape_ascii()));
        }
        let count = bytes.len().div_ceil(2);
        sent += count;
        if conn.record_sent(count, &scratch) != (sent == request.h1().len()) {
            return Err(format!("wrong about the end after {sent} bytes"));
        }
    }
    let mut heard = ReportedEvents::default();
    'all: for piece in pieces {
        let mut received = conn.receive(piece, &mut plain);
        while let Some(event) = conn.next(&mut received) {
            if !record_event(&mut heard, event)? {
                break 'all;
            }
        }
        if !received.is_empty() {
            return Err("facts were kept back".into());
        }
        if (conn.exchanges_available() > 0) != (heard.answer.is_some() && !conn.is_over())
            || conn.is_busy() != heard.answer.is_none()
        {
            return Err(format!("wrong about what is under way: {conn:?}"));
        }
    }
    while let Some(event) = conn.end_by_peer() {
        record_event(&mut heard, event)?;
    }
    if !conn.is_over() || conn.exchanges_available() > 0 {
        return Err("goes on after the end".into());
    }
    Ok(heard)
}

/// Returns the events that a connection reports about `bytes`. The events must be equal for every
/// tested split, and also if the request does not want the content. If the events differ, returns a
/// description of the difference.
pub fn same_events_in_all_splits(method: &str, bytes: &[u8], random: &mut Random) -> Result<ReportedEvents, String> {
    let asked = request(method, b"", true);
    let whole = receive_response_pieces(&asked, [bytes])?;
    if !bytes.starts_with(&whole.bytes) {
        return Err(format!("not what was sent: {whole:?}"));
    }
    if let Some(Ok((_, body_bytes))) = whole.answer
        && body_bytes != whole.content.len() as u64
    {
        return Err(format!("content was lost: {whole:?}"));
    }
    compare_in_all_splits(bytes, random, |what, pieces| {
        let other = receive_response_pieces(&asked, pieces)?;
        // Before a response fails, the number of its bytes that were reported may depend on the
        // split.
        let same = other == whole || (matches!(whole.answer, Some(Err(_))) && other.answer == whole.answer);
        if same { Ok(()) } else { Err(format!("whole: {whole:?}, {what}: {other:?}")) }
    })?;
    let unasked = receive_response_pieces(&request(method, b"", false), [bytes])?;
    if unasked.answer != whole.answer || unasked.surplus != whole.surplus {
        return Err(format!("{whole:?}, with no content asked for: {unasked:?}"));
    }
    Ok(whole)
}

/// Valid responses, which the fuzz tests mutate. The responses contain each framing and reach each
/// branch of the parser.
const CORPUS: &[&str] = &[
    "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1A;x=\"y\"\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\nTrailer: A\r\n\r\n3 \r\nabc\r\n000;e\r\nA: b\r\nC: d\r\n\r\n",
    "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2, 2\r\n\r\nhi",
    "HTTP/1.0 404 Not Found\r\n\r\nuntil close",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 304\r\nContent-Length: 999\r\nETag: \"x\"\r\n\r\n",
    "\r\n\nHTTP/1.1 500 \nX: 1\n folded\nContent-Length: 1\nconnection: Upgrade, close\n\nx",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nrest",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
];

/// Bytes that mutations insert.
const MUTATION_BYTES: &[&str] = &[
    "\r",
    "\n",
    "\r\n",
    "\r\n\r\n",
    "\0",
    " ",
    ":",
    ",",
    ";",
    "0",
    "f",
    "-1",
    "FFFFFFFFFFFFFFFFF",
    "18446744073709551616",
    "HTTP/1.1 200 OK\r\n",
    "Content-Length: 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
];

/// Runs `cases` random fuzz cases on the parser. The error describes the first case in which the
/// parser makes a mistake.
pub fn fuzz(parser: &mut impl Parser, seed: u64, cases: u32) -> Result<(), String> {
    let mut random = Random(seed);
    for case in 0..cases {
        let bytes = random_bytes(&mut random);
        let head_request = random.below(8) == 0;
        same_in_all_splits(parser, head_request, &bytes, &mut random).map_err(|what| {
            format!("seed {seed}, case {case}: {what}; head request: {head_request}, bytes: {}", bytes.escape_ascii())
        })?;
    }
    Ok(())
}

/// Runs `cases` random fuzz cases on connections. The error describes the first failure.
pub fn fuzz_conn(seed: u64, cases: u32) -> Result<(), String> {
    let mut random = Random(seed);
    for case in 0..cases {
        let bytes = random_bytes(&mut random);
        let method = if random.below(8) == 0 { "HEAD" } else { "GET" };
        same_events_in_all_splits(method, &bytes, &mut random)
            .map_err(|what| format!("seed {seed}, case {case}: {what}; {method}, bytes: {}", bytes.escape_ascii()))?;
    }
    Ok(())
}

/// Returns a response with some mutations, or sometimes random bytes.
fn random_bytes(random: &mut Random) -> Vec<u8> {
    if random.below(16) == 0 {
        return (0..random.below(200)).map(|_| random.next() as u8).collect();
    }
    let mut bytes = random.choose_one(CORPUS).as_bytes().to_vec();
    for _ in 0..random.below(6) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(12)).min(bytes.len());
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                bytes.splice(at..at, random.choose_one(MUTATION_BYTES).bytes());
            }
            3 => {
                bytes.splice(at..end, random.choose_one(MUTATION_BYTES).bytes());
            }
            4 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            _ if at < end => bytes[at] = random.next() as u8,
            _ => bytes.extend_from_slice(random.choose_one(CORPUS).as_bytes()),
        }
    }
    bytes
}

/// The generator SplitMix64 (Steele, Lea and Flood, 2014): it has the full period with any seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`. `bound` is so small that the bias of the remainder is
    /// negligible.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn choose_one<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}
