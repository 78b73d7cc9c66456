//! The source of requests that an author (a script) writes during the load. The worker fetches each
//! batch of messages from the author, and reports responses to an author that wants them. This code
//! does not know what kind of program the author is.
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
    like: EncodedRequest,
    author: Box<dyn Author>,
    writes_each: bool,
    delays: bool,
    /// The number of messages that the author usually writes in a batch, at least 1.
    pub(crate) messages: u32,
    pub(crate) hears: bool,
    /// The batch that the author wrote last. The batch is not assigned to an exchange (one request
    /// with its response) yet.
    batch: Batch,
    is_written: bool,
    /// The reason why the author halted; `None` while the author continues.
    pub(crate) halted: Option<AuthorStopReason>,
    /// The last request that each exchange sent, by exchange number.
    sent: Vec<EncodedRequest>,
    /// The received part of the current response of each exchange, by exchange number.
    heard: Vec<StoredResponse>,
    /// The mark with which the author identifies the batch in flight, by exchange number. `None`:
    /// the last response of the batch was reported.
    marks: Vec<Option<u64>>,
}

impl AuthorSource {
    /// Creates the request source of one worker. Requests are built from `like`. If `is_open` is
    /// true, the load is an open loop, and the author cannot delay requests.
    pub(crate) fn new(like: EncodedRequest, author: Box<dyn Author>, is_open: bool) -> AuthorSource {
        AuthorSource {
            writes_each: author.writes_every_batch(),
            delays: author.has_delays() && !is_open,
            hears: author.wants_responses(),
            messages: author.messages_per_batch().max(1),
            like: if author.wants_responses() { like.with_content() } else { like },
            author,
            batch: Batch::default(),
            is_written: false,
            halted: None,
            sent: Vec::new(),
            heard: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Returns how long a simulated user waits before its next request, ns, as the author decides.
    /// `None`: the author has halted. The delay also applies to the user's first request.
    pub(crate) fn user_delay_ns(&mut self) -> Option<u64> {
        match self.halted {
            Some(_) => None,
            None if self.delays => self.author.delay_ns().map_err(|halt| self.halted = Some(halt)).ok(),
            None => Some(0),
        }
    }

    /// Makes the author write the next batch of messages, unless a batch is ready. Returns false if
    /// the author has halted.
    pub(crate) fn prepare_batch(&mut self) -> bool {
        if self.halted.is_some() {
            return false;
        }
        // An author whose requests are all equal is called only once.
        if !self.is_written {
            self.batch.clear();
            match self.author.write(&mut self.batch) {
                Ok(()) => self.is_written = true,
                Err(halt) => {
                    self.halted = Some(halt);
                    return false;
                }
            }
        }
        true
    }

    /// Assigns the ready batch to `exchange`. Returns its number of messages.
    pub(crate) fn assign_batch(&mut self, exchange: u32) -> u32 {
        let at = exchange as usize;
        while self.sent.len() <= at {
            self.sent.push(self.like.clone());
            self.heard.push(StoredResponse::default());
            self.marks.push(None);
        }
        self.heard[at].begin_response(None, false);
        self.marks[at] = Some(self.batch.mark);
        if self.writes_each {
            self.is_written = false;
            self.sent[at].rewrite_from_batch(&mut self.batch, self.hears);
        } else if !self.batch.bytes.is_empty() && self.sent[at].h1() != self.batch.bytes {
            self.sent[at].rewrite_from_batch(&mut self.batch.clone(), self.hears);
        }
        self.sent[at].messages()
    }

    /// Returns the request that `exchange` sends.
    #[inline]
    pub(crate) fn request(&self, exchange: u32) -> &EncodedRequest {
        &self.sent[exchange as usize]
    }

    /// Stores the next piece of the response that `exchange` receives.
    pub(crate) fn add_response_piece(&mut self, exchange: u32, piece: ResponsePiece) {
        self.heard[exchange as usize].add_piece(piece);
    }

    /// Reports a complete response to the author, or lets the author follow the redirect in the
    /// response. Returns whether the exchange sends another request. `is_last`: the exchange
    /// receives no further response. `may_ask_on`: the author may follow a redirect.
    pub(crate) fn report_response(
        &mut self,
        exchange: u32,
        status: u16,
        piece: ResponsePiece,
        times: ResponseTimes,
        (is_last, may_ask_on): (bool, bool),
    ) -> bool {
        let heard = &mut self.heard[exchange as usize];
        heard.add_piece(piece);
        let mut asks_on = false;
        if self.halted.is_none() {
            let mark = self.marks[exchange as usize].unwrap_or_default();
            let (head, content, content_bytes) = (heard.head(), heard.content(), heard.content_bytes());
            let answer = AuthorResponse { status, head, content, content_bytes, mark, is_last, times };
            // Redirects are rare, so this code may allocate memory.
            let mut further = Batch::default();
            asks_on = may_ask_on && is_redirect(status) && self.author.follow_redirect(&answer, &mut further);
            if asks_on {
                self.marks[exchange as usize] = Some(further.mark);
                self.sent[exchange as usize].rewrite_from_batch(&mut further, true);
            } else {
                self.halted = self.author.receive_response(&answer).err();
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
    /// also gets this report.
    pub(crate) fn report_missing_response(&mut self, exchange: u32, failure: RequestFailure, times: ResponseTimes) {
        if let Some(mark) = self.marks.get_mut(exchange as usize).and_then(Option::take) {
            self.author.receive_lost_response(&LostResponse { mark, failure, times });
        }
    }
}
