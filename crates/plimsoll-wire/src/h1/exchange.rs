//! Handles exchanges (a request with its response) on one HTTP/1.1 connection, one exchange at a
//! time. An exchange may have several request messages that are sent in one piece (pipelining). The
//! responses arrive in the order of the request messages.

use super::response::{ResponseExpectation, ResponseParser};
use crate::connection_event::{ConnectionEvent, ExchangeNumber, ResponsePiece};
use crate::error::{EarlyCloseError, ExchangeError};

/// The client's side of an HTTP/1.1 connection.
#[derive(Debug)]
pub struct H1 {
    parser: ResponseParser,
    /// The number of bytes of the request that are not sent yet.
    unsent: usize,
    exchange: Option<ExchangeNumber>,
    /// Whether the request permits further exchanges on the connection.
    keep_alive: bool,
    /// Whether the connection accepts no further exchange.
    over: bool,
    /// The expected responses of an exchange with several request messages. The field is boxed to
    /// save memory, because few exchanges have several request messages.
    pipeline: Option<Box<Pipeline>>,
}

/// The request messages of a pipelined exchange, and the position of the message whose response is
/// expected now.
#[derive(Debug, Default)]
struct Pipeline {
    /// The expectations that apply to all responses of the exchange. Only the flag for HEAD
    /// requests differs between the request messages.
    expect: ResponseExpectation,
    /// For each message, whether it is a HEAD request.
    head_request_flags: Vec<bool>,
    /// The index of the message whose response is expected now.
    at: usize,
}

impl Pipeline {
    /// Moves to the next request message and returns the expected properties of its response;
    /// `None`: there is no further request message.
    fn next(&mut self) -> Option<ResponseExpectation> {
        self.at += 1;
        let head_request = *self.head_request_flags.get(self.at)?;
        Some(ResponseExpectation { head_request, ..self.expect })
    }
}

impl H1 {
    pub const fn new() -> H1 {
        H1 { parser: ResponseParser::new(), unsent: 0, exchange: None, keep_alive: false, over: false, pipeline: None }
    }

    /// Returns the number of exchanges that can be started now: 0 or 1.
    #[inline]
    pub fn exchanges_available(&self) -> u32 {
        u32::from(self.exchange.is_none() && !self.over)
    }

    #[inline]
    pub fn is_busy(&self) -> bool {
        self.exchange.is_some()
    }

    /// Returns whether the connection is finished: no exchange is in flight, and no further
    /// exchange can start.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.over && self.exchange.is_none()
    }

    /// Starts an exchange whose request has `length` bytes.
    #[inline]
    pub fn start(&mut self, exchange: ExchangeNumber, length: usize, expect: ResponseExpectation, keep_alive: bool) {
        debug_assert!(self.exchanges_available() > 0, "a connection has at most one exchange at a time");
        self.exchange = Some(exchange);
        self.unsent = length;
        self.keep_alive = keep_alive;
        self.parser.begin(expect);
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.head_request_flags.clear();
            pipeline.expect = expect;
        }
    }

    /// Declares that the exchange that was just started has several request messages.
    #[cold]
    pub fn expect_several_responses(&mut self, heads_only: &[bool]) {
        let expect = self.parser.expect();
        let pipeline = self.pipeline.get_or_insert_default();
        pipeline.head_request_flags.clear();
        pipeline.head_request_flags.extend_from_slice(heads_only);
        (pipeline.at, pipeline.expect) = (0, expect);
    }

    /// Returns the exchange whose request has unsent bytes, and the number of the unsent bytes at
    /// the end of the request.
    #[inline]
    pub fn unsent(&self) -> Option<(ExchangeNumber, usize)> {
        self.exchange.filter(|_| self.unsent > 0).map(|exchange| (exchange, self.unsent))
    }

    /// Records that `count` bytes of the request were sent. Returns whether the request is sent
    /// completely.
    #[inline]
    pub fn record_sent(&mut self, count: usize) -> bool {
        self.unsent -= count;
        self.unsent == 0
    }

    /// Returns the next event in `bytes`, such as a complete response, and advances `bytes` past
    /// the event.
    ///
    /// The function is always inlined, because it runs once per request. An inlined function need
    /// not copy the returned event through memory.
    #[inline(always)]
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<ConnectionEvent<'a>> {
        if bytes.is_empty() {
            return None;
        }
        let all = *bytes;
        let Some(exchange) = self.exchange else {
            *bytes = &[];
            self.over = true;
            return Some(ConnectionEvent::Surplus(all));
        };
        match self.parser.feed(all) {
            Ok(fed) => {
                let piece = |bytes| ResponsePiece {
                    bytes,
                    content_bytes: fed.content_bytes,
                    content_end: fed.consumed,
                    messages: 0,
                };
                let (taken, rest) = all.split_at(fed.consumed);
                match fed.response {
                    None => {
                        *bytes = rest;
                        Some(ConnectionEvent::Piece { exchange, status: self.parser.status(), piece: piece(taken) })
                    }
                    Some(reply) => {
                        if let Some(next) = self.pipeline.as_mut().and_then(|pipeline| pipeline.next()) {
                            *bytes = rest;
                            // If the server closes the connection after this response, the
                            // connection accepts no further exchange.
                            self.over |= !reply.keep_alive;
                            self.parser.begin(next);
                            let status = reply.status;
                            return Some(ConnectionEvent::AnsweredWithMore { exchange, status, piece: piece(taken) });
                        }
                        *bytes = &[];
                        self.exchange = None;
                        // The exchange has succeeded, even if its request was not sent completely
                        // or surplus bytes follow the response. But after an incompletely sent
                        // request or surplus bytes, the connection accepts no further exchange.
                        self.over |= !(reply.keep_alive && self.keep_alive && self.unsent == 0 && rest.is_empty());
                        let (status, body_bytes) = (reply.status, reply.body_bytes);
                        let (piece, surplus) = (piece(all), rest.len());
                        Some(ConnectionEvent::Answered {
                            exchange,
                            status,
                            grpc_status: None,
                            body_bytes,
                            piece,
                            surplus,
                        })
                    }
                }
            }
            Err(error) => {
                *bytes = &[];
                Some(self.fail_exchange(exchange, error.into(), all))
            }
        }
    }

    /// Handles the close of the connection by the peer. Returns the event that the close causes for
    /// the exchange in flight, if any. `is_authenticated_end` is true for a plain connection, and
    /// for a TLS connection whose end is authenticated.
    pub fn end_by_peer(&mut self, is_authenticated_end: bool) -> Option<ConnectionEvent<'static>> {
        self.over = true;
        let exchange = self.exchange?;
        // Over TLS, a close without authentication may come from an attacker, so such a close does
        // not complete a response.
        let ended = self
            .parser
            .finish()
            .and_then(|reply| if is_authenticated_end { Ok(reply) } else { Err(EarlyCloseError::Truncated) });
        Some(match ended {
            Ok(reply) => {
                self.exchange = None;
                let (status, body_bytes) = (reply.status, reply.body_bytes);
                let (piece, surplus) = (ResponsePiece::default(), 0);
                ConnectionEvent::Answered { exchange, status, grpc_status: None, body_bytes, piece, surplus }
            }
            Err(error) => self.fail_exchange(exchange, error.into(), &[]),
        })
    }

    /// Prevents further exchanges on the connection. The exchange in flight continues.
    pub fn end_after_open_exchanges(&mut self) {
        self.over = true;
    }

    /// Gives up the exchange in flight and returns its number. After an exchange is given up, the
    /// HTTP/1.1 connection is unusable.
    pub fn abandon_next_exchange(&mut self) -> Option<ExchangeNumber> {
        self.over = true;
        self.exchange.take()
    }

    #[cold]
    fn fail_exchange<'a>(
        &mut self,
        exchange: ExchangeNumber,
        error: ExchangeError,
        bytes: &'a [u8],
    ) -> ConnectionEvent<'a> {
        self.exchange = None;
        self.over = true;
        ConnectionEvent::Failed { exchange, error, piece: ResponsePiece { bytes, ..ResponsePiece::default() } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE_ANSWERS: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab\
        HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n\
        HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\ncd\r\n1\r\ne\r\n0\r\n\r\n";

    /// The parsed responses of an exchange: for each response its status, its content, and whether
    /// it is the last response of the exchange.
    type AnswerRow = Vec<(u16, Vec<u8>, bool)>;

    /// Parses `bytes`, split at the positions `cuts`, as the responses to the request messages of
    /// one exchange. `head_request_flags` contains for each request message whether it is a HEAD
    /// request. Returns for each response its status, its content and whether it is the last, and
    /// the number of surplus bytes.
    fn read_answers(bytes: &[u8], cuts: &[usize], heads_only: &[bool]) -> (AnswerRow, Option<usize>) {
        let mut h1 = H1::new();
        h1.start(
            7,
            10,
            ResponseExpectation { head_request: heads_only[0], wants_content: true, ..ResponseExpectation::default() },
            true,
        );
        h1.expect_several_responses(heads_only);
        h1.record_sent(10);
        let (mut answers, mut content, mut surplus) = (Vec::new(), Vec::new(), None);
        let edges: Vec<usize> = [0].into_iter().chain(cuts.iter().copied()).chain([bytes.len()]).collect();
        for part in edges.windows(2) {
            let mut part = &bytes[part[0]..part[1]];
            while let Some(event) = h1.next(&mut part) {
                match event {
                    ConnectionEvent::Piece { exchange: 7, piece, .. } => content.extend_from_slice(piece.content()),
                    ConnectionEvent::AnsweredWithMore { exchange: 7, status, piece } => {
                        content.extend_from_slice(piece.content());
                        answers.push((status, std::mem::take(&mut content), false));
                    }
                    ConnectionEvent::Answered { exchange: 7, status, piece, surplus: after, .. } => {
                        content.extend_from_slice(piece.content());
                        answers.push((status, std::mem::take(&mut content), true));
                        surplus = (after > 0).then_some(after);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        (answers, surplus)
    }

    #[test]
    fn pipelined_responses_are_separated_in_any_split() {
        let expect = [(200, b"ab".to_vec(), false), (204, vec![], false), (404, b"cde".to_vec(), true)];
        for first in 0..=SAMPLE_ANSWERS.len() {
            for second in [first, SAMPLE_ANSWERS.len().min(first + 1), SAMPLE_ANSWERS.len().min(first + 9)] {
                let (answers, surplus) = read_answers(SAMPLE_ANSWERS, &[first, second], &[false, true, false]);
                assert_eq!((answers, surplus), (expect.to_vec(), None), "cut at {first} and {second}");
            }
        }
        let surplus = read_answers(&[SAMPLE_ANSWERS, b"more"].concat(), &[], &[false, true, false]).1;
        assert_eq!(surplus, Some(4));
    }

    #[test]
    fn a_connection_closed_between_responses_fails_the_rest() {
        let mut h1 = H1::new();
        h1.start(7, 10, ResponseExpectation::default(), true);
        h1.expect_several_responses(&[false; 3]);
        h1.record_sent(10);
        let mut bytes = &b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"[..];
        assert!(matches!(h1.next(&mut bytes), Some(ConnectionEvent::AnsweredWithMore { status: 200, .. })));
        assert!(matches!(h1.end_by_peer(true), Some(ConnectionEvent::Failed { exchange: 7, .. })));
        assert!(h1.is_over() && h1.end_by_peer(true).is_none());
        // After a pipelined exchange, the next exchange on the connection may have a single
        // message.
        let mut h1 = H1::new();
        for messages in [2, 1] {
            h1.start(7, 10, ResponseExpectation::default(), true);
            if messages > 1 {
                h1.expect_several_responses(&[false, false]);
            }
            h1.record_sent(10);
            let answers = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".repeat(messages);
            let mut bytes = &answers[..];
            let facts = std::iter::from_fn(|| h1.next(&mut bytes).map(|_| ())).count();
            assert_eq!((facts, h1.exchanges_available()), (messages, 1));
        }
    }
}
