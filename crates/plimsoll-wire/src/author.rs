//! Authors: programs (such as scripts) that write the requests during a load and may receive the
//! responses. A worker (a thread that generates load) knows a script only through the traits of
//! this file.
//!
//! A batch is one or several requests that are sent in one piece on a connection; their responses
//! arrive in order (pipelining). Not here: the language of scripts, the times of requests, and the
//! counting of responses.

use crate::tls::TlsParameters;
use plimsoll_model::{EarlyStopReason, Failure, LoadShape, RequestFailure};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

/// A program, such as a script, that writes the requests of one worker, batch by batch.
pub trait Author: Send + std::fmt::Debug {
    /// Returns whether [`write`](Self::write) is called for each batch. If [`write`](Self::write)
    /// is not called for each batch, the first batch is sent repeatedly.
    fn writes_every_batch(&self) -> bool;

    /// Returns whether [`delay_ns`](Self::delay_ns) is called before each batch (closed loops
    /// only).
    fn has_delays(&self) -> bool;

    /// Returns whether the author wants the responses, with head and content.
    fn wants_responses(&self) -> bool;

    /// Returns the usual number of messages (requests) in a batch. The rate of a load counts
    /// messages, so the rate is exact only if every batch has the usual number.
    fn messages_per_batch(&self) -> u32;

    /// Writes the next batch of requests into `batch`, which is empty. If the author writes no more
    /// requests, returns the reason as an error.
    fn write(&mut self, batch: &mut Batch) -> Result<(), AuthorStopReason>;

    /// Returns how long a simulated user waits before the next batch of requests, ns. If the author
    /// writes no more requests, returns the reason as an error.
    fn delay_ns(&mut self) -> Result<u64, AuthorStopReason>;

    /// Receives a response to an earlier batch. If the method returns an error, the author writes
    /// no more requests.
    fn receive_response(&mut self, answer: &AuthorResponse) -> Result<(), AuthorStopReason>;

    /// Lets the author follow a redirect, which is the response to a batch of one message. To
    /// follow the redirect, the author writes the next request and its mark (a number that
    /// identifies the batch) into the empty `batch`. If the author follows the redirect, the
    /// exchange continues, and `receive_response` does not report the redirect. Returns whether the
    /// author follows the redirect. This method is only called for authors that want responses.
    fn follow_redirect(&mut self, answer: &AuthorResponse, batch: &mut Batch) -> bool {
        let _ = (answer, batch);
        false
    }

    /// Receives the report that a response never arrived or is incomplete. This method is only
    /// called for authors that want responses.
    fn receive_lost_response(&mut self, response: &LostResponse) {
        let _ = response;
    }

    /// Receives the report that a TLS connection is open. `agreed` returns the negotiated TLS
    /// parameters of the connection. This method is only called for authors that want responses.
    fn receive_tls_open(&mut self, agreed: &dyn Fn() -> Option<TlsParameters>) {
        let _ = agreed;
    }
}

/// The author of one worker's requests. The struct also contains a target address if the worker's
/// connections use another address than the addresses of the plan.
#[derive(Debug)]
pub struct WorkerAuthor {
    /// The author of the worker's requests, which no other worker calls.
    pub author: Box<dyn Author>,
    /// The target address of the worker's connections; `None`: the addresses of the plan.
    pub address: Option<SocketAddr>,
    /// The reason why the worker is abandoned; set if the author does not return from a call. A
    /// load with an abandoned worker ends with the results of the other workers.
    pub abandon_reason: Arc<OnceLock<String>>,
}

/// Creates the authors of a load whose requests are not in its plan.
pub trait AuthorFactory {
    /// Returns one author (a program that writes requests) for each worker, with the worker's
    /// target address, for a load of the given shape (closed or open loop). Returns an error if an
    /// author cannot be created.
    fn create_authors(&self, shape: &LoadShape, workers: u32) -> Result<Vec<WorkerAuthor>, Failure>;

    /// Returns `Break` if an author has failed, which ends the load.
    fn may_continue(&self) -> ControlFlow<EarlyStopReason>;

    /// Records that the load has ended. Functions of a script that run after the load have a longer
    /// time limit.
    fn mark_load_ended(&self);
}

/// The reason why an author writes no more requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorStopReason {
    /// The script itself requested to send no more requests.
    Requested,
    /// The script failed, so the whole load ends. The error is available from the code that runs
    /// the script.
    Failed,
}

/// A response in the form that an author receives.
#[derive(Debug, Clone, Copy)]
pub struct AuthorResponse<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The status line and the header fields as received, with the final blank line.
    pub head: &'a [u8],
    /// The stored part of the content, without framing.
    pub content: &'a [u8],
    /// The length of the whole content in bytes.
    pub content_bytes: u64,
    /// The mark (a number) by which the author recognises the batch that the response belongs to.
    pub mark: u64,
    /// Whether no further response to the batch follows.
    pub is_last: bool,
    /// The times of the request and its response.
    pub times: ResponseTimes,
}

/// The times of a request and its response, ns of the load's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResponseTimes {
    /// The time at which the request was intended to start.
    pub intended_ns: u64,
    /// The time at which the first byte of the request was sent; 0: no byte was sent.
    pub sent_ns: u64,
    /// The time at which the first byte of the response arrived; 0: no byte arrived.
    pub first_byte_ns: u64,
    /// The time at which the response was complete, or the request was given up.
    pub done_ns: u64,
}

impl<'a> AuthorResponse<'a> {
    /// Iterates over the header fields in order. Names are as received, values without surrounding
    /// blanks.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.head.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    }
}

/// A request that was given up, or whose response is incomplete.
#[derive(Debug, Clone, Copy)]
pub struct LostResponse {
    /// The mark (a number) by which the author recognises the batch that the request belongs to.
    pub mark: u64,
    /// The kind of failure.
    pub failure: RequestFailure,
    /// The times of the request. `done_ns` is the time at which the request was given up.
    pub times: ResponseTimes,
}

/// A batch: one or several requests that are sent in one piece.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// The encoded bytes of all messages of the batch. If there are no bytes, the request of the
    /// plan is sent, over HTTP/1.1 or HTTP/2.
    pub bytes: Vec<u8>,
    /// For each message, whether it is a HEAD request. The number of responses equals the number of
    /// messages.
    pub head_request_flags: Vec<bool>,
    /// A number by which the author recognises the responses to this batch.
    pub mark: u64,
}

impl Batch {
    /// Removes all messages from the batch and keeps the memory for reuse.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.head_request_flags.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_head_is_split_into_fields() {
        let head = b"HTTP/1.1 200 OK\r\nX-Token:  a:b \r\nEmpty:\r\nset-cookie: 1\nno field\r\n\r\n";
        let times = ResponseTimes::default();
        let answer =
            AuthorResponse { status: 200, head, content: b"", content_bytes: 0, mark: 0, is_last: true, times };
        let found: Vec<(&[u8], &[u8])> = answer.fields().collect();
        assert_eq!(found, [(&b"X-Token"[..], &b"a:b"[..]), (b"Empty", b""), (b"set-cookie", b"1")]);
    }
}
