//! Feeds bytes in many splits to an HTTP/2 client connection with three exchanges (requests and
//! their responses). An error is returned if the results of the exchanges depend on the split, or
//! are inconsistent.
//!
//! The driver is a separate file, like [`crate::driver`], because the cargo-fuzz targets in `fuzz/`
//! include this file, too. Not here: the expected results of the exchanges.

use crate::driver::{Random, compare_in_all_splits, request};
use plimsoll_wire::h2::{Content, H2Server, ServerEvent};
use plimsoll_wire::{Conn, ConnectionEvent, EncodedRequest, ExchangeError};

/// The result of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum H2Outcome {
    /// The exchange has a response, with this status and content length.
    Answered(u16, u64),
    Failed(ExchangeError),
    Refused,
}

/// The results of a client connection under test: the outcome of each exchange, and the resets and
/// the GOAWAY that the client sent.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct H2Results {
    /// The results of the GET on stream 1, the HEAD on stream 3 and the POST on stream 5.
    pub outcomes: [Option<H2Outcome>; 3],
    /// The streams that the client reset, with the error codes.
    pub resets: Vec<(u32, u32)>,
    /// The error code of the client's GOAWAY, if it sent one.
    pub goaway_code: Option<u32>,
}

/// Returns the requests of the three exchanges that the driver runs.
pub fn h2_requests() -> [EncodedRequest; 3] {
    [request("GET", b"", true), request("HEAD", b"", true), request("POST", b"n=1", true)]
}

/// Appends all bytes that the connection has to send to `sent`.
fn append_bytes_to_send(
    conn: &mut Conn,
    requests: &[EncodedRequest; 3],
    sent: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
) -> Result<(), String> {
    for _ in 0..1_000 {
        let bytes = conn.bytes_to_send(|number| &requests[number as usize], scratch);
        if bytes.is_empty() {
            return Ok(());
        }
        let count = bytes.len().div_ceil(2);
        sent.extend_from_slice(&bytes[..count]);
        conn.record_sent(count, scratch);
    }
    Err("there is always more to be sent".into())
}

/// Checks the bytes that the client sent: the preface, then whole frames.
fn check_sent_frames(sent: &[u8], heard: &mut H2Results) -> Result<(), String> {
    let mut rest = sent.strip_prefix(plimsoll_wire::h2::CONNECTION_PREFACE).ok_or("no preface")?;
    while let [a, b, c, kind, _, stream @ ..] = rest {
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        let number = |bytes: &[u8]| bytes.first_chunk().map(|four| u32::from_be_bytes(*four));
        let payload = rest.get(9..9 + length).ok_or("a frame that is cut")?;
        match (kind, number(stream), number(payload)) {
            (3, Some(stream), Some(code)) => heard.resets.push((stream, code)),
            (7, Some(0), _) => heard.goaway_code = number(&payload[4..]),
            _ => {}
        }
        rest = &rest[9 + length..];
    }
    if rest.is_empty() { Ok(()) } else { Err("a frame that is cut".into()) }
}

/// Sends the requests, feeds `pieces` as received bytes, then closes the connection. A returned
/// error describes which rule of its interface the connection broke.
fn drive_connection<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<H2Results, String> {
    let requests = h2_requests();
    let (mut conn, mut scratch, mut plain, mut sent) = (Conn::h2(3), Vec::new(), Vec::new(), Vec::new());
    for (number, request) in requests.iter().enumerate() {
        conn.start(number as u32, request);
    }
    if conn.exchanges_available() != 0 {
        return Err("there is room for more than was asked for".into());
    }
    append_bytes_to_send(&mut conn, &requests, &mut sent, &mut scratch)?;
    let mut heard = H2Results::default();
    let mut content = [0; 3];
    for piece in pieces {
        let mut received = conn.receive(piece, &mut plain);
        let mut facts = 0;
        while let Some(event) = conn.next(&mut received) {
            facts += 1;
            if facts > 3 * piece.len() + 16 {
                return Err(format!("{facts} facts of {} bytes", piece.len()));
            }
            match event {
                ConnectionEvent::HasBytesToSend => append_bytes_to_send(&mut conn, &requests, &mut sent, &mut scratch)?,
                event => record_event(&mut heard, &mut content, event)?,
            }
        }
        if conn.is_busy() != heard.outcomes.contains(&None) {
            return Err(format!("wrong about what is under way: {conn:?}"));
        }
    }
    append_bytes_to_send(&mut conn, &requests, &mut sent, &mut scratch)?;
    while let Some(event) = conn.end_by_peer() {
        record_event(&mut heard, &mut content, event)?;
    }
    if !conn.is_over() || conn.exchanges_available() > 0 || heard.outcomes.contains(&None) {
        return Err(format!("goes on after the end: {conn:?}"));
    }
    check_sent_frames(&sent, &mut heard)?;
    Ok(heard)
}

fn record_event(heard: &mut H2Results, content: &mut [u64; 3], event: ConnectionEvent) -> Result<(), String> {
    let (exchange, outcome) = match event {
        ConnectionEvent::Piece { exchange, piece, .. } => {
            content[exchange as usize] += piece.content().len() as u64;
            return match heard.outcomes[exchange as usize] {
                None => Ok(()),
                Some(_) => Err(format!("a piece of {exchange} after its end")),
            };
        }
        ConnectionEvent::Answered { exchange, status, body_bytes, piece, surplus: 0, .. }
            if (200..1000).contains(&status) =>
        {
            content[exchange as usize] += piece.content().len() as u64;
            if content[exchange as usize] != body_bytes {
                return Err(format!("{body_bytes} bytes of content, {content:?} were told"));
            }
            (exchange, H2Outcome::Answered(status, body_bytes))
        }
        ConnectionEvent::Failed { exchange, error, .. } => (exchange, H2Outcome::Failed(error)),
        ConnectionEvent::Refused { exchange, .. } => (exchange, H2Outcome::Refused),
        ConnectionEvent::GoAway { .. } => return Ok(()),
        ConnectionEvent::ProtocolViolation(_) if !heard.outcomes.contains(&None) => return Ok(()),
        other => return Err(format!("{other:?} after {heard:?}")),
    };
    match heard.outcomes[exchange as usize].replace(outcome) {
        None => Ok(()),
        Some(before) => Err(format!("{exchange} ended twice: {before:?}")),
    }
}

/// Returns the results of the exchanges, if they are the same in one piece, byte by byte and in
/// some random splits. If the results differ, returns a description of the difference.
pub fn same_h2_events_in_all_splits(bytes: &[u8], random: &mut Random) -> Result<H2Results, String> {
    let whole = drive_connection([bytes])?;
    compare_in_all_splits(bytes, random, |what, pieces| {
        let other = drive_connection(pieces)?;
        if other == whole { Ok(()) } else { Err(format!("whole: {whole:?}, {what}: {other:?}")) }
    })?;
    Ok(whole)
}

/// Feeds `bytes` in random pieces to the server's side of HTTP/2, which responds to every request.
/// A returned error describes which rule of its interface the server's side broke.
pub fn serve(bytes: &[u8], random: &mut Random) -> Result<usize, String> {
    let (mut server, mut out, mut answered) = (H2Server::new(), Vec::new(), 0);
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(1 + random.below(40)));
        rest = after;
        let (mut piece, mut facts) = (piece, 0);
        while let Some(event) = server.next(&mut piece) {
            facts += 1;
            if facts > 64 {
                return Err("more facts than bytes".into());
            }
            if let ServerEvent::Head { stream, ends: true } | ServerEvent::End { stream } = event {
                answered += 1;
                let content = match stream % 3 {
                    0 => Content::Bytes(b"hello".to_vec()),
                    _ => Content::Filling(u64::from(stream)),
                };
                server.answer(stream, 200, "text/plain", content, stream % 5 == 0);
            }
        }
        if !piece.is_empty() {
            return Err("bytes were left".into());
        }
        out.clear();
        server.write(&mut out, 1 << 16, &[b'x'; 1 << 10]);
    }
    Ok(answered)
}

/// Frames of a correct server, which the fuzz tests mutate.
const CORPUS: &[&[u8]] = &[
    // The first entry has settings, and a response on each stream. Further entries have response
    // heads with literal fields or in several frames, content, padding and trailers.
    b"\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0\0\0\x01\x01\x05\0\0\0\x01\x88\0\0\x01\x01\x05\0\0\0\x03\x89\0\0\x01\x01\x05\0\0\0\x05\x8d",
    b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64\0\0\x06\x01\x04\0\0\0\x01\x88\x0f\x0d\x01\x35\x88\0\0\x05\0\x01\0\0\0\x01hello",
    b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\x01\0\0\x01\x01\0\0\0\0\x05\x88\0\0\x03\x09\x04\0\0\0\x05\0\x01a\0\0\x05\0\x08\0\0\0\x05\x02xx\0\0",
    b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x06\0\0\0\0\0pingpong\0\0\x04\x08\0\0\0\0\0\0\0\x01\0\0\0\x04\x03\0\0\0\0\x03\0\0\0\x07",
    b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\x01\x01\x05\0\0\0\x03\x88\0\0\x01\x01\x04\0\0\0\x01\x88",
    b"\0\0\0\x04\0\0\0\0\0\0\0\x05\x01\x04\0\0\0\x01\x08\x03100\0\0\x01\x01\x04\0\0\0\x01\x88\0\0\x01\0\0\0\0\0\x01x\0\0\x07\x01\x05\0\0\0\x01\0\x03sum\x011",
];

/// Runs `cases` random fuzz cases on HTTP/2 connections. The error describes the first failure.
pub fn fuzz_h2(seed: u64, cases: u32) -> Result<(), String> {
    let mut random = Random(seed);
    for case in 0..cases {
        let bytes = randomly_mutated_frames(&mut random);
        same_h2_events_in_all_splits(&bytes, &mut random)
            .and_then(|_| serve(&bytes, &mut random))
            .map_err(|what| format!("seed {seed}, case {case}: {what}; bytes: {}", bytes.escape_ascii()))?;
    }
    Ok(())
}

/// Returns valid frames with some mutations.
fn randomly_mutated_frames(random: &mut Random) -> Vec<u8> {
    let some = |random: &mut Random| CORPUS[random.below(CORPUS.len())];
    let mut bytes = some(random).to_vec();
    if random.below(3) == 0 {
        bytes.extend_from_slice(some(random));
    }
    for _ in 0..random.below(5) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(12)).min(bytes.len());
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 if at < end => bytes[at] = random.below(12) as u8,
            3 if at < end => bytes[at] ^= 1 << random.below(8),
            4 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            _ if at < end => bytes[at] = random.next() as u8,
            _ => bytes.extend_from_slice(some(random)),
        }
    }
    bytes
}
