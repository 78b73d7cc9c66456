//! Seeded fuzz tests of the response parser and of whole connections. Deliberately broken parsers
//! prove that the fuzz driver detects mistakes.

use crate::driver::{Parser, fuzz, fuzz_conn};
use crate::h2_driver::fuzz_h2;
use plimsoll_wire::h1::{FeedResult, ResponseExpectation, ResponseParser, ResponseSummary};
use plimsoll_wire::{EarlyCloseError, ProtocolError};

/// The number of random cases of a fuzz test, which take about one second.
const CASES: u32 = 250_000;

#[test]
fn no_split_changes_the_response() {
    fuzz(&mut ResponseParser::new(), crate::seed(), CASES).unwrap_or_else(|what| panic!("{what}"));
}

#[test]
fn no_split_changes_the_events() {
    fuzz_conn(crate::seed(), CASES / 2).unwrap_or_else(|what| panic!("{what}"));
}

#[test]
fn no_split_changes_http2_outcomes() {
    fuzz_h2(crate::seed(), CASES / 10).unwrap_or_else(|what| panic!("{what}"));
}

/// A parser with a typical mistake.
struct BrokenParser {
    inner: ResponseParser,
    mistake: Mistake,
}

enum Mistake {
    /// A line feed is lost if its carriage return ended the previous read.
    LosesLineFeed,
    /// Only the content of the last read is counted.
    CountsLastReadOnly,
    /// The state of an unfinished reply remains when the next reply begins.
    KeepsOldState,
    /// The parser reports more consumed bytes than it was given.
    ConsumesTooMuch,
}

impl Parser for BrokenParser {
    fn begin(&mut self, head_request: bool) {
        if !matches!(self.mistake, Mistake::KeepsOldState) || self.inner.finish().is_ok() {
            self.inner.begin(ResponseExpectation { head_request, ..ResponseExpectation::default() });
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<FeedResult, ProtocolError> {
        if let (Mistake::LosesLineFeed, [b'\n', rest @ ..]) = (&self.mistake, bytes) {
            let fed = self.inner.feed(rest)?;
            return Ok(FeedResult { consumed: fed.consumed + 1, ..fed });
        }
        let mut fed = self.inner.feed(bytes)?;
        match (&self.mistake, &mut fed.response) {
            (Mistake::CountsLastReadOnly, Some(reply)) => {
                reply.body_bytes = reply.body_bytes.min(bytes.len() as u64);
            }
            (Mistake::ConsumesTooMuch, Some(_)) => fed.consumed = bytes.len() + 1,
            _ => {}
        }
        Ok(fed)
    }

    fn finish(&mut self) -> Result<ResponseSummary, EarlyCloseError> {
        self.inner.finish()
    }

    fn started(&self) -> bool {
        self.inner.has_received_bytes()
    }
}

#[test]
fn the_fuzz_driver_detects_broken_parsers() {
    let seed = crate::seed();
    for mistake in
        [Mistake::LosesLineFeed, Mistake::CountsLastReadOnly, Mistake::KeepsOldState, Mistake::ConsumesTooMuch]
    {
        let mut broken = BrokenParser { inner: ResponseParser::new(), mistake };
        assert!(fuzz(&mut broken, seed, 1_000).is_err(), "seed {seed}: a broken parser passed");
    }
}
