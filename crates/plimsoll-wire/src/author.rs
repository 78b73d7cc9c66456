//! Authors: sources that write requests during a load and may receive the responses. These traits
//! are all that a worker knows of a script.
//!
//! A batch is one or several messages that are sent in one piece on a connection; their responses
//! arrive in order (pipelining). Not here: the language of scripts, the time of requests, and their
//! figures.

use crate::tls::TlsParameters;
use plimsoll_model::{Failure, LoadShape, RequestFailure, Stop};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

/// A source that writes the requests of one worker, batch by batch.
pub trait Author: Send + std::fmt::Debug {
    /// Whether [`write`](Self::write) is called for each batch. Otherwise the first batch is sent
    /// repeatedly.
    fn writes_each(&self) -> bool;

    /// Whether [`delay_ns`](Self::delay_ns) is called before each batch (closed loops only).
    fn delays(&self) -> bool;

    /// Whether the author receives responses, with head and content.
    fn hears(&self) -> bool;

    /// The usual number of messages in a batch. Rates count messages, so a rate is exact only if
    /// batches have this number.
    fn messages(&self) -> u32;

    /// Writes the next batch into `batch`, which is empty.
    fn write(&mut self, batch: &mut Batch) -> Result<(), Halt>;

    /// Returns the wait before the next batch, ns.
    fn delay_ns(&mut self) -> Result<u64, Halt>;

    /// Takes a response to an earlier batch. An error halts the author.
    fn hear(&mut self, answer: &AuthorAnswer) -> Result<(), Halt>;

    /// Lets the author follow a redirect, the response to a batch of one message. The author
    /// may write the next request into the empty `batch`, with a mark. The exchange then continues,
    /// and this response is not reported. Returns whether the author did so. Only called for
    /// authors that receive responses.
    fn redirect(&mut self, answer: &AuthorAnswer, batch: &mut Batch) -> bool {
        let _ = (answer, batch);
        false
    }

    /// Takes the news that a response never arrived, or was cut. Only called for authors that
    /// receive responses.
    fn miss(&mut self, lost: &LostAnswer) {
        let _ = lost;
    }

    /// Tells the author that a TLS connection is open. `agreed` returns its parameters. Only called
    /// for authors that receive responses.
    fn stands(&mut self, agreed: &dyn Fn() -> Option<TlsParameters>) {
        let _ = agreed;
    }
}

/// The author of one worker's requests, and the address of its connections if it differs from the
/// plan's.
#[derive(Debug)]
pub struct WorkerAuthor {
    /// The author, called by this worker only.
    pub author: Box<dyn Author>,
    /// The target address; `None`: the plan's addresses.
    pub address: Option<SocketAddr>,
    /// The reason, set when the author does not return. Its worker is then abandoned, and the load
    /// ends with the results of the other workers.
    pub given_up: Arc<OnceLock<String>>,
}

/// The source of a load's requests, if they are not in its plan.
pub trait AuthorFactory {
    /// Returns the author of each worker and its target address, for a load of this shape.
    fn begin(&self, shape: &LoadShape, workers: u32) -> Result<Vec<WorkerAuthor>, Failure>;

    /// Returns `Break` if an author has failed, which ends the load.
    fn goes_on(&self) -> ControlFlow<Stop>;

    /// Cleans up after the load has ended.
    fn unload(&self);
}

/// Why an author writes no more requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// The script requested it.
    Asked,
    /// The script failed; its owner has the error. The whole load ends.
    Failed,
}

/// A response as its author receives it.
#[derive(Debug, Clone, Copy)]
pub struct AuthorAnswer<'a> {
    /// The HTTP status.
    pub status: u16,
    /// Status line and fields as received, with the final blank line.
    pub head: &'a [u8],
    /// The stored part of the content, without framing.
    pub content: &'a [u8],
    /// Length of the whole content in bytes.
    pub content_bytes: u64,
    /// The mark of the batch that the response belongs to.
    pub mark: u64,
    /// Whether no further response to the batch follows.
    pub is_last: bool,
    /// The times of the request and its response.
    pub times: AnswerTimes,
}

/// The times of a request, ns of the load's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnswerTimes {
    /// The intended start.
    pub intended_ns: u64,
    /// Time at which the first byte was sent; 0: none was sent.
    pub sent_ns: u64,
    /// Time at which the first byte of the response arrived; 0: none arrived.
    pub first_byte_ns: u64,
    /// End of the response, or time at which the request was given up.
    pub done_ns: u64,
}

impl<'a> AuthorAnswer<'a> {
    /// The header fields, in order: names as received, values without surrounding blanks.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.head.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    }
}

/// A request that was given up, or whose response was cut.
#[derive(Debug, Clone, Copy)]
pub struct LostAnswer {
    /// The mark of the batch that the request belongs to.
    pub mark: u64,
    /// The kind of failure.
    pub failure: RequestFailure,
    /// The times of the request; its end is when it was given up.
    pub times: AnswerTimes,
}

/// One or several messages that are sent in one piece.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// The bytes of all messages. Empty: the plan's own request, over any protocol.
    pub bytes: Vec<u8>,
    /// Whether each message is a HEAD request; there are as many responses as messages.
    pub heads_only: Vec<bool>,
    /// The author's mark, by which it recognises the responses.
    pub mark: u64,
}

impl Batch {
    /// Empties the batch and keeps its memory.
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
