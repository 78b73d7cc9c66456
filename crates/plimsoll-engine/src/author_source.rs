//! Requests that an author writes as the load goes on (a script): the worker asks it for each
//! batch, and hands it the answers if it hears them. Only this arm of a source knows that there is
//! somebody to ask; what the author is, it does not know either.
//!
//! Not here: how a batch is sent and its answers told apart (`plimsoll_wire`), and what becomes of
//! the load when an author has failed.

use crate::answers::AnswerText;
use plimsoll_model::RequestFailure;
use plimsoll_wire::redirect::is_redirect;
use plimsoll_wire::tls::TlsParameters;
use plimsoll_wire::{AnswerTimes, Author, AuthorAnswer, Batch, EncodedRequest, Halt, LostAnswer, Piece};

/// What one worker asks of its author.
#[derive(Debug)]
pub struct AuthorSource {
    /// What every batch is like.
    like: EncodedRequest,
    author: Box<dyn Author>,
    writes_each: bool,
    delays: bool,
    /// In a batch as a rule.
    pub(crate) messages: u32,
    pub(crate) hears: bool,
    /// Written, and not begun yet.
    batch: Batch,
    is_written: bool,
    /// Why nothing more is asked.
    pub(crate) halted: Option<Halt>,
    /// What was sent last, by the number of its exchange.
    sent: Vec<EncodedRequest>,
    /// What has come of the answers under way, by the number of their exchange.
    heard: Vec<AnswerText>,
    /// The marks of batches under way; `None` once their last answer was told.
    marks: Vec<Option<u64>>,
}

impl AuthorSource {
    /// For one worker. `like` is like the requests that will be written.
    /// `is_open`: arrivals come when the schedule says, and nothing delays them.
    pub(crate) fn new(like: EncodedRequest, author: Box<dyn Author>, is_open: bool) -> AuthorSource {
        AuthorSource {
            writes_each: author.writes_each(),
            delays: author.delays() && !is_open,
            hears: author.hears(),
            messages: author.messages().max(1),
            like: if author.hears() { like.with_content() } else { like },
            author,
            batch: Batch::default(),
            is_written: false,
            halted: None,
            sent: Vec::new(),
            heard: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// How long a user that begins is to wait, ns; `None`: nothing more is asked. A delay is asked
    /// for before each request, also the first.
    pub(crate) fn wait_ns(&mut self) -> Option<u64> {
        match self.halted {
            Some(_) => None,
            None if self.delays => self.author.delay_ns().map_err(|halt| self.halted = Some(halt)).ok(),
            None => Some(0),
        }
    }

    /// Has the next batch written. Returns whether there is one.
    pub(crate) fn ready(&mut self) -> bool {
        if self.halted.is_some() {
            return false;
        }
        // Who writes but once is asked once.
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

    /// The batch that is ready becomes what `exchange` sends. Returns how many messages it has.
    pub(crate) fn begin(&mut self, exchange: u32) -> u32 {
        let at = exchange as usize;
        while self.sent.len() <= at {
            self.sent.push(self.like.clone());
            self.heard.push(AnswerText::default());
            self.marks.push(None);
        }
        self.heard[at].begin(None, false);
        self.marks[at] = Some(self.batch.mark);
        if self.writes_each {
            self.is_written = false;
            self.sent[at].rewrite_as(&mut self.batch, self.hears);
        } else if !self.batch.bytes.is_empty() && self.sent[at].h1() != self.batch.bytes {
            self.sent[at].rewrite_as(&mut self.batch.clone(), self.hears);
        }
        self.sent[at].messages()
    }

    /// What `exchange` sends.
    #[inline]
    pub(crate) fn request(&self, exchange: u32) -> &EncodedRequest {
        &self.sent[exchange as usize]
    }

    /// More of an answer has come.
    pub(crate) fn gather(&mut self, exchange: u32, piece: Piece) {
        self.heard[exchange as usize].add(piece);
    }

    /// One of the exchange's answers is whole: its author hears it, or has the exchange ask on
    /// where it redirects to; returns that. `is_last`: no more of its exchange are to come.
    /// `may_ask_on`: there is time for that.
    pub(crate) fn hear(
        &mut self,
        exchange: u32,
        status: u16,
        piece: Piece,
        times: AnswerTimes,
        (is_last, may_ask_on): (bool, bool),
    ) -> bool {
        let heard = &mut self.heard[exchange as usize];
        heard.add(piece);
        let mut asks_on = false;
        if self.halted.is_none() {
            let mark = self.marks[exchange as usize].unwrap_or_default();
            let (head, content, content_bytes) = (heard.head(), heard.content(), heard.content_bytes());
            let answer = AuthorAnswer { status, head, content, content_bytes, mark, is_last, times };
            // Redirects are few: what they need may be allocated.
            let mut further = Batch::default();
            asks_on = may_ask_on && is_redirect(status) && self.author.redirect(&answer, &mut further);
            if asks_on {
                self.marks[exchange as usize] = Some(further.mark);
                self.sent[exchange as usize].rewrite_as(&mut further, true);
            } else {
                self.halted = self.author.hear(&answer).err();
                if is_last {
                    self.marks[exchange as usize] = None;
                }
            }
        }
        heard.begin(None, false);
        asks_on
    }

    /// A connection over TLS stands, of which this was agreed on.
    pub(crate) fn stands(&mut self, agreed: &dyn Fn() -> Option<TlsParameters>) {
        self.author.stands(agreed);
    }

    /// The exchange has ended without an answer that was heard: its author is told, also after it
    /// has halted.
    pub(crate) fn miss(&mut self, exchange: u32, failure: RequestFailure, times: AnswerTimes) {
        if let Some(mark) = self.marks.get_mut(exchange as usize).and_then(Option::take) {
            self.author.miss(&LostAnswer { mark, failure, times });
        }
    }
}
