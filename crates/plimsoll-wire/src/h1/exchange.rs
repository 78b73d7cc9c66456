//! HTTP/1.1 on one connection: one exchange at a time, as long as both sides let it go on.

use super::response::{Expect, ResponseParser};
use crate::error::{EndError, ExchangeError};
use crate::fact::{ExchangeNumber, Fact, Piece};

/// The client's side of a connection that speaks HTTP/1.1.
#[derive(Debug)]
pub struct H1 {
    parser: ResponseParser,
    /// Bytes of the request that are not sent yet.
    unsent: usize,
    exchange: Option<ExchangeNumber>,
    /// The request lets the connection go on.
    keep_alive: bool,
    /// No further exchange can be started.
    over: bool,
}

impl H1 {
    pub const fn new() -> H1 {
        H1 { parser: ResponseParser::new(), unsent: 0, exchange: None, keep_alive: false, over: false }
    }

    /// How many exchanges can be started now.
    #[inline]
    pub fn room(&self) -> u32 {
        u32::from(self.exchange.is_none() && !self.over)
    }

    /// The exchange under way.
    pub fn exchange(&self) -> Option<ExchangeNumber> {
        self.exchange
    }

    #[inline]
    pub fn is_busy(&self) -> bool {
        self.exchange.is_some()
    }

    /// Whether nothing is under way, nor can be any more.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.over && self.exchange.is_none()
    }

    /// Begins an exchange whose request has `length` bytes.
    #[inline]
    pub fn start(&mut self, exchange: ExchangeNumber, length: usize, expect: Expect, keep_alive: bool) {
        debug_assert!(self.room() > 0, "one exchange at a time");
        self.exchange = Some(exchange);
        self.unsent = length;
        self.keep_alive = keep_alive;
        self.parser.begin(expect);
    }

    /// What of which request is to be sent: so many of its last bytes.
    #[inline]
    pub fn unsent(&self) -> Option<(ExchangeNumber, usize)> {
        self.exchange.filter(|_| self.unsent > 0).map(|exchange| (exchange, self.unsent))
    }

    /// So many bytes of the request were sent. Returns whether that was all.
    #[inline]
    pub fn sent(&mut self, count: usize) -> bool {
        self.unsent -= count;
        self.unsent == 0
    }

    /// The next fact in `bytes`, which move on behind it.
    // Always: once a request, and the fact need not go through memory.
    #[inline(always)]
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<Fact<'a>> {
        if bytes.is_empty() {
            return None;
        }
        let all = *bytes;
        let Some(exchange) = self.exchange else {
            *bytes = &[];
            self.over = true;
            return Some(Fact::Surplus(all));
        };
        match self.parser.feed(all) {
            Ok(fed) => {
                let piece = |bytes| Piece { bytes, content_bytes: fed.content, content_end: fed.consumed };
                let (taken, rest) = all.split_at(fed.consumed);
                match fed.reply {
                    None => {
                        *bytes = rest;
                        Some(Fact::Piece { exchange, status: self.parser.status(), piece: piece(taken) })
                    }
                    Some(reply) => {
                        *bytes = &[];
                        self.exchange = None;
                        // An answer to a request that was not sent whole, or with more bytes than an answer has: answered,
                        // but this connection ends here.
                        self.over |= !(reply.keep_alive && self.keep_alive && self.unsent == 0 && rest.is_empty());
                        let (status, body_bytes) = (reply.status, reply.body_bytes);
                        Some(Fact::Answered { exchange, status, body_bytes, piece: piece(all), surplus: rest.len() })
                    }
                }
            }
            Err(error) => {
                *bytes = &[];
                Some(self.fail(exchange, error.into(), all))
            }
        }
    }

    /// What the end of the peer's stream means for the exchange under way. `vouched`: it is the peer who has ended it.
    pub fn end(&mut self, vouched: bool) -> Option<Fact<'static>> {
        self.over = true;
        let exchange = self.exchange?;
        // Where anybody could have cut it, an end ends no answer.
        let ended = self.parser.finish().and_then(|reply| if vouched { Ok(reply) } else { Err(EndError::Truncated) });
        Some(match ended {
            Ok(reply) => {
                self.exchange = None;
                let (status, body_bytes) = (reply.status, reply.body_bytes);
                Fact::Answered { exchange, status, body_bytes, piece: Piece::default(), surplus: 0 }
            }
            Err(error) => self.fail(exchange, error.into(), &[]),
        })
    }

    /// The exchange under way is the last.
    pub fn end_after(&mut self) {
        self.over = true;
    }

    /// The exchange under way is no longer wanted, or no longer possible: HTTP/1.1 has no way to go on from there.
    pub fn give_up(&mut self) -> Option<ExchangeNumber> {
        self.over = true;
        self.exchange.take()
    }

    #[cold]
    fn fail<'a>(&mut self, exchange: ExchangeNumber, error: ExchangeError, bytes: &'a [u8]) -> Fact<'a> {
        self.exchange = None;
        self.over = true;
        Fact::Failed { exchange, error, piece: Piece { bytes, ..Piece::default() } }
    }
}
