//! Authors of requests during a load, who may receive the responses: all that a worker knows of a
//! script.
//!
//! A batch is sent in one piece on a connection: one or several messages, whose responses arrive in
//! order (pipelining). Not here: the language of scripts, the time of requests, and their figures.

use crate::tls::TlsParameters;
use plimsoll_model::{Failure, LoadShape, RequestFailure, Stop};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

/// Says what is asked, batch by batch. Each worker has one of its own.
pub trait Author: Send + std::fmt::Debug {
    /// Whether [`write`](Self::write) is to be asked for each batch; else the first is sent again
    /// and again.
    fn writes_each(&self) -> bool;

    /// Whether [`delay_ns`](Self::delay_ns) is to be asked before each batch (closed loads).
    fn delays(&self) -> bool;

    /// Whether answers are to be handed over, with their heads and content.
    fn hears(&self) -> bool;

    /// How many messages a batch has: rates count messages, and are kept as far as batches have so
    /// many.
    fn messages(&self) -> u32;

    /// Writes the next batch into `batch`, which is empty.
    fn write(&mut self, batch: &mut Batch) -> Result<(), Halt>;

    /// How long to wait before the next batch, ns.
    fn delay_ns(&mut self) -> Result<u64, Halt>;

    /// An answer has come.
    fn hear(&mut self, answer: &AuthorAnswer) -> Result<(), Halt>;

    /// The response to a batch of one message is a redirect. The author may write the next request
    /// into the empty `batch`, with a mark: the exchange then continues, and this response is not
    /// reported. Returns whether it does. Only called for authors that receive responses.
    fn redirect(&mut self, answer: &AuthorAnswer, batch: &mut Batch) -> bool {
        let _ = (answer, batch);
        false
    }

    /// No whole answer has come, nor will one. Only told to those who hear.
    fn miss(&mut self, lost: &LostAnswer) {
        let _ = lost;
    }

    /// A TLS connection is open, with its parameters. Only called for authors that receive
    /// responses.
    fn stands(&mut self, agreed: &dyn Fn() -> Option<TlsParameters>) {
        let _ = agreed;
    }
}

/// The author of one worker's requests, and the address of its connections if it differs from the
/// plan's.
#[derive(Debug)]
pub struct WorkerAuthor {
    /// Asked by the worker alone.
    pub author: Box<dyn Author>,
    /// Instead of the plan's addresses.
    pub address: Option<SocketAddr>,
    /// Set with the reason when the author does not return: its worker is then abandoned, and the
    /// load ends with the results of the others.
    pub given_up: Arc<OnceLock<String>>,
}

/// The source of a load's requests, if they are not in its plan.
pub trait AuthorFactory {
    /// Who writes for each worker, for a load of this shape, and where its connections go.
    fn begin(&self, shape: &LoadShape, workers: u32) -> Result<Vec<WorkerAuthor>, Failure>;

    /// Ends a load whose author has failed.
    fn goes_on(&self) -> ControlFlow<Stop>;

    /// The load has ended.
    fn unload(&self);
}

/// An author asks nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// The script requested it.
    Asked,
    /// The script failed; its owner has the error. The whole load ends.
    Failed,
}

/// An answer as its author hears it.
#[derive(Debug, Clone, Copy)]
pub struct AuthorAnswer<'a> {
    /// Its status.
    pub status: u16,
    /// Status line and fields as they came, with the blank line that ends them.
    pub head: &'a [u8],
    /// The stored part of its content, without framing.
    pub content: &'a [u8],
    /// Bytes of all its content.
    pub content_bytes: u64,
    /// That of its batch.
    pub mark: u64,
    /// No more answers to its batch are to come.
    pub is_last: bool,
    /// When it came.
    pub times: AnswerTimes,
}

/// When what happened to a request, ns of the clock of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnswerTimes {
    /// The intended start.
    pub intended_ns: u64,
    /// Its first byte was sent; 0: it never was.
    pub sent_ns: u64,
    /// The first byte of its answer came; 0: none did.
    pub first_byte_ns: u64,
    /// The end of the response, or the time at which it was given up.
    pub done_ns: u64,
}

impl<'a> AuthorAnswer<'a> {
    /// The fields of its head, in their order: names as they came, values without the blanks around
    /// them.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.head.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    }
}

/// A request that was given up, or whose answer broke off.
#[derive(Debug, Clone, Copy)]
pub struct LostAnswer {
    /// That of its batch.
    pub mark: u64,
    /// Why.
    pub failure: RequestFailure,
    /// When it was given up.
    pub times: AnswerTimes,
}

/// Messages that go out in one piece.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// The bytes of all messages. Empty: the plan's own request, over any protocol.
    pub bytes: Vec<u8>,
    /// For each message whether it is a HEAD request; there are as many responses.
    pub heads_only: Vec<bool>,
    /// The author's mark, by which it recognises the responses.
    pub mark: u64,
}

impl Batch {
    /// Makes room for another.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.heads_only.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_its_fields() {
        let head = b"HTTP/1.1 200 OK\r\nX-Token:  a:b \r\nEmpty:\r\nset-cookie: 1\nno field\r\n\r\n";
        let times = AnswerTimes::default();
        let answer = AuthorAnswer { status: 200, head, content: b"", content_bytes: 0, mark: 0, is_last: true, times };
        let found: Vec<(&[u8], &[u8])> = answer.fields().collect();
        assert_eq!(found, [(&b"X-Token"[..], &b"a:b"[..]), (b"Empty", b""), (b"set-cookie", b"1")]);
    }
}
