//! The source of requests that an author (a script) writes during the load. The worker fetches each
//! batch of messages from the author, and reports responses to an author that wants them. Any
//! program that implements the trait `Author` can be the author.
//!
//! Not here: sending a batch and parsing its responses (`plimsoll_wire`), and ending a load after
//! its author failed.

use crate::answers::StoredResponse;
use plimsoll_model::RequestFailure;
use plimsoll_wire::redirect::is_redirect;
use plimsoll_wire::tls::TlsParameters;
use plimsoll_wire::{
    Author, AuthorResponse, AuthorStopReason, Batch, EncodedRequest, LostResponse, ResponsePiece, ResponseTimes,
};

/// The request source of one worker whose requests are written by an author (a script).
#[derive(Debug)]
pub struct AuthorSource {
    /// The plan's request, from which every batch is built. The plan's request sets the protocol
    /// and the framing.
    base_request: EncodedRequest,
    author: Box<dyn Author>,
    writes_every_batch: bool,
    has_delays: bool,
    /// The number of messages that the author usually writes in a batch, at least 1.
    pub(crate) messages: u32,
    pub(crate) wants_responses: bool,
    /// The batch that the author wrote last. The batch is not assigned to an exchange (one request
    /// with its response) yet.
    batch: Batch,
    is_batch_ready: bool,
    /// The reason why the author halted; `None` while the author continues.
    pub(crate) stop_reason: Option<AuthorStopReason>,
    /// The last request that each exchange sent, by exchange number.
    requests: Vec<EncodedRequest>,
    /// The received part of the current response of each exchange, by exchange number.
    responses: Vec<StoredResponse>,
    /// The mark with which the author identifies the batch in flight, by exchange number. `None`:
    /// the last response of the batch was reported.
    marks: Vec<Option<u64>>,
}

impl AuthorSource {
    /// Creates the request source of one worker. Requests are built from `like`. If `is_open` is
    /// true, the load is an open loop, and the author cannot delay requests.
    pub(crate) fn new(like: EncodedRequest, author: Box<dyn Author>, is_open: bool) -> AuthorSource {
        AuthorSource {
            writes_every_batch: author.writes_every_batch(),
            has_delays: author.has_delays() && !is_open,
            wants_responses: author.wants_responses(),
            messages: author.messages_per_batch().max(1),
            base_request: if author.wants_responses() { like.with_content() } else { like },
            author,
            batch: Batch::default(),
            is_batch_ready: false,
            stop_reason: None,
            requests: Vec::new(),
            responses: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Returns how long a simulated user waits before its next request, ns, as the author decides.
    /// `None`: the author has halted. The delay also applies to the user's first request.
    pub(crate) fn user_delay_ns(&mut self) -> Option<u64> {
        match self.stop_reason {
            Some(_) => None,
            None if self.has_delays => self.author.delay_ns().map_err(|halt| self.stop_reason = Some(halt)).ok(),
            None => Some(0),
        }
    }

    /// Makes the author write the next batch of messages, unless a batch is ready. Returns false if
    /// the author has halted.
    pub(crate) fn prepare_batch(&mut self) -> bool {
        if self.stop_reason.is_some() {
            return false;
        }
        // An author whose requests are all equal is called only once.
        if !self.is_batch_ready {
            self.batch.clear();
            match self.author.write(&mut self.batch) {
                Ok(()) => self.is_batch_ready = true,
                Err(halt) => {
                    self.stop_reason = Some(halt);
                    return false;
                }
            }
        }
        true
    }

    /// Assigns the ready batch to `exchange`. Returns its number of messages.
    pub(crate) fn assign_batch(&mut self, exchange: u32) -> u32 {
        let at = exchange as usize;
        while self.requests.len() <= at {
            self.requests.push(self.base_request.clone());
            self.responses.push(StoredResponse::default());
            self.marks.push(None);
        }
        self.responses[at].begin_response(None, false);
        self.marks[at] = Some(self.batch.mark);
        if self.writes_every_batch {
            self.is_batch_ready = false;
            self.requests[at].rewrite_from_batch(&mut self.batch, self.wants_responses);
        } else if !self.batch.bytes.is_empty() && self.requests[at].h1() != self.batch.bytes {
            self.requests[at].rewrite_from_batch(&mut self.batch.clone(), self.wants_responses);
        }
        self.requests[at].messages()
    }

    /// Returns the request that `exchange` sends.
    #[inline]
    pub(crate) fn request(&self, exchange: u32) -> &EncodedRequest {
        &self.requests[exchange as usize]
    }

    /// Stores the next piece of the response that `exchange` receives.
    pub(crate) fn add_response_piece(&mut self, exchange: u32, piece: ResponsePiece) {
        self.responses[exchange as usize].add_piece(piece);
    }

    /// Reports a complete response to the author, or lets the author follow the redirect in the
    /// response. Returns whether the exchange sends another request. `is_last` is true if the
    /// exchange receives no further response. `may_ask_on` is true if the author may follow a
    /// redirect.
    pub(crate) fn report_response(
        &mut self,
        exchange: u32,
        status: u16,
        piece: ResponsePiece,
        times: ResponseTimes,
        (is_last, may_ask_on): (bool, bool),
    ) -> bool {
        let heard = &mut self.responses[exchange as usize];
        heard.add_piece(piece);
        let mut asks_on = false;
        if self.stop_reason.is_none() {
            let mark = self.marks[exchange as usize].unwrap_or_default();
            let (head, content, content_bytes) = (heard.head(), heard.content(), heard.content_bytes());
            let answer = AuthorResponse { status, head, content, content_bytes, mark, is_last, times };
            // Redirects are rare, so an allocation of memory for each redirect is acceptable.
            let mut further = Batch::default();
            asks_on = may_ask_on && is_redirect(status) && self.author.follow_redirect(&answer, &mut further);
            if asks_on {
                self.marks[exchange as usize] = Some(further.mark);
                self.requests[exchange as usize].rewrite_from_batch(&mut further, true);
            } else {
                self.stop_reason = self.author.receive_response(&answer).err();
                if is_last {
                    self.marks[exchange as usize] = None;
                }
            }
        }
        heard.begin_response(None, false);
        asks_on
    }

    /// Reports the TLS parameters of a newly opened connection to the author.
    pub(crate) fn report_tls_parameters(&mut self, agreed: &dyn Fn() -> Option<TlsParameters>) {
        self.author.receive_tls_open(agreed);
    }

    /// Reports to the author that an exchange ended without a response. An author that has halted
    /// also gets the report about the missing response.
    pub(crate) fn report_missing_response(&mut self, exchange: u32, failure: RequestFailure, times: ResponseTimes) {
        if let Some(mark) = self.marks.get_mut(exchange as usize).and_then(Option::take) {
            self.author.receive_lost_response(&LostResponse { mark, failure, times });
        }
    }
}
