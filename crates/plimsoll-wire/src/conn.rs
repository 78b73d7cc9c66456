//! One connection of a client as a state machine, for every protocol, without I/O and without a
//! clock.
//!
//! The caller starts exchanges (a request with its response) under its own numbers, at most
//! [`exchanges_available`](Conn::exchanges_available) at a time. The caller sends the bytes that
//! [`bytes_to_send`](Conn::bytes_to_send) returns, and reports the sent bytes with
//! [`record_sent`](Conn::record_sent). The caller passes received bytes to
//! [`receive`](Conn::receive), and takes the events in the received bytes one by one with
//! [`next`](Conn::next).
//!
//! Because the caller takes one event at a time, events need no storage. The caller does not see
//! TLS or the protocol, because each method selects the protocol by itself. For plain HTTP/1.1,
//! each method costs one branch to select the protocol.
//!
//! Some bytes must be sent without a request: when a TLS connection begins, and when
//! [`next`](Conn::next) returns [`ConnectionEvent::HasBytesToSend`]. Cancelling an exchange ends
//! the connection only if the protocol cannot continue: see [`is_over`](Conn::is_over). Over
//! HTTP/2, requests that are started while the caller takes events are sent together after the last
//! event: see [`start`](Conn::start).
//!
//! Not here: sockets, deadlines, retries, the meaning of a status.

use crate::connection_event::{ConnectionEvent, ExchangeNumber};
use crate::h1::H1;
use crate::h2::H2;
use crate::request::EncodedRequest;
use crate::tls::{Client, Session, TlsParameters};
use plimsoll_model::{CallFault, TlsFailure};

/// The maximum number of bytes that are encrypted at once. The rest of a longer request is
/// encrypted once the network has accepted the earlier bytes.
const ENCRYPTED_AT_ONCE_BYTES_MAX: usize = 64 << 10;

/// The client's side of one connection.
#[derive(Debug)]
pub struct Conn {
    /// The TLS layer below the protocol; `None` without TLS.
    tls: Option<Box<TlsLayer>>,
    protocol: Protocol,
}

/// The protocol of requests and responses.
#[derive(Debug)]
enum Protocol {
    H1(H1),
    // The HTTP/2 state is boxed, so that HTTP/1.1 connections stay small.
    H2(Box<H2>),
}

#[derive(Debug)]
struct TlsLayer {
    session: Session,
    /// Encrypted bytes that the network did not accept at the first attempt.
    unsent: Vec<u8>,
    /// The number of bytes at the start of `unsent` that the network has accepted since the first
    /// attempt.
    unsent_from: usize,
    /// Whether the peer has properly ended its TLS stream.
    ended: bool,
    /// The maximum number of concurrent exchanges if HTTP/2 is negotiated.
    streams_max: u32,
    /// Whether HTTP/2 is the only protocol that the client offered.
    only_h2: bool,
}

/// Received bytes from which the caller has not yet taken all events, such as a complete response.
#[derive(Debug)]
pub struct ReceivedBytes<'a> {
    /// The decrypted bytes from which the caller has not yet taken the events.
    text: &'a [u8],
    /// The events of the TLS layer in the received bytes; `None` without TLS, without events, or
    /// after the events were reported.
    tls_events: Option<TlsLayerEvents>,
    /// Whether further events may follow after all received bytes are parsed, which is always true
    /// over HTTP/2.
    may_have_more_events: bool,
}

#[derive(Debug)]
struct TlsLayerEvents {
    /// Whether the TLS handshake has ended. [`ConnectionEvent::HandshakeDone`], which reports the
    /// end of the handshake, comes before the events in the received bytes.
    is_handshake_done: bool,
    /// Whether the TLS layer has bytes to send. [`ConnectionEvent::HasBytesToSend`], which reports
    /// these bytes, comes after the events in the received bytes.
    has_bytes_to_send: bool,
    /// Whether the peer has properly ended its TLS stream. The event that reports the end comes
    /// last.
    ended: bool,
    /// The failure of the TLS layer, if any. The event that reports the failure comes last.
    tls_failure: Option<TlsFailure>,
}

impl ReceivedBytes<'_> {
    /// Returns whether the caller has taken all events. Over HTTP/2 the result is always false,
    /// because events may follow after all received bytes are parsed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.tls_events.is_none() && !self.may_have_more_events
    }
}

impl Default for Conn {
    fn default() -> Conn {
        Conn::new()
    }
}

impl Conn {
    /// Creates a plain connection that uses HTTP/1.1.
    pub const fn new() -> Conn {
        Conn { tls: None, protocol: Protocol::H1(H1::new()) }
    }

    /// Creates a plain connection that uses HTTP/2 without negotiation, with at most `streams_max`
    /// concurrent exchanges.
    pub fn h2(streams_max: u32) -> Conn {
        Conn { tls: None, protocol: Protocol::H2(Box::new(H2::new(streams_max))) }
    }

    /// Creates a connection over TLS, whose first message must be sent at once.
    /// [`ConnectionEvent::HandshakeDone`] reports the end of the handshake. `streams_max` is the
    /// maximum number of concurrent exchanges if HTTP/2 is negotiated.
    pub fn over_tls(client: &Client, streams_max: u32) -> Result<Conn, TlsFailure> {
        let tls = TlsLayer {
            session: client.session()?,
            unsent: Vec::new(),
            unsent_from: 0,
            ended: false,
            streams_max,
            only_h2: client.offers_only_h2(),
        };
        // The protocol is HTTP/1.1 until the TLS handshake negotiates another protocol.
        Ok(Conn { tls: Some(Box::new(tls)), protocol: Protocol::H1(H1::new()) })
    }

    /// Returns whether the connection uses HTTP/2. Over TLS, the protocol is known once the
    /// connection is open.
    #[inline]
    pub fn is_h2(&self) -> bool {
        matches!(self.protocol, Protocol::H2(_))
    }

    /// Returns the negotiated TLS parameters; `None` without TLS or before the connection is open.
    pub fn tls_parameters(&self) -> Option<TlsParameters> {
        self.tls.as_ref()?.session.tls_parameters()
    }

    /// Returns the header fields of the last response head as lines, if the request wants the
    /// content of the response. Directly after [`next`](Self::next) has returned the first event of
    /// a response, the fields belong to this response. The method is only for HTTP/2; over
    /// HTTP/1.1, the received pieces of a response contain the header fields.
    pub fn fields(&self) -> &[u8] {
        match &self.protocol {
            Protocol::H1(_) => &[],
            Protocol::H2(h2) => h2.fields(),
        }
    }

    /// Returns the number of exchanges that can be started now.
    #[inline]
    pub fn exchanges_available(&self) -> u32 {
        if self.tls.as_ref().is_some_and(|tls| !tls.session.is_established()) {
            return 0;
        }
        match &self.protocol {
            Protocol::H1(h1) => h1.exchanges_available(),
            Protocol::H2(h2) => h2.exchanges_available(),
        }
    }

    /// Returns the latest limit of concurrent streams that the server announced; `None`: no limit.
    /// The result is 1 for HTTP/1.1, and the assumed limit before the first announcement.
    pub fn streams_allowed(&self) -> Option<u32> {
        match &self.protocol {
            Protocol::H1(_) => Some(1),
            Protocol::H2(h2) => h2.streams_allowed(),
        }
    }

    /// Returns the `grpc-message` field of the last gRPC call, percent-encoded and possibly cut.
    pub fn grpc_error_message(&self) -> &[u8] {
        match &self.protocol {
            Protocol::H1(_) => &[],
            Protocol::H2(h2) => h2.grpc_error_message(),
        }
    }

    /// Returns the fault in the messages of the last gRPC call, if the server sent the gRPC status
    /// `OK` in spite of the fault. The event of a faulty response contains the gRPC status that
    /// gRPC clients derive from the fault.
    #[inline]
    pub fn grpc_message_fault(&self) -> Option<CallFault> {
        match &self.protocol {
            Protocol::H1(_) => None,
            Protocol::H2(h2) => h2.grpc_message_fault(),
        }
    }

    /// Returns whether the last complete gRPC response has a message that is longer than gRPC
    /// clients accept by default.
    #[inline]
    pub fn has_large_grpc_message(&self) -> bool {
        match &self.protocol {
            Protocol::H1(_) => false,
            Protocol::H2(h2) => h2.has_large_grpc_message(),
        }
    }

    /// Returns whether an exchange is in flight.
    #[inline]
    pub fn is_busy(&self) -> bool {
        match &self.protocol {
            Protocol::H1(h1) => h1.is_busy(),
            Protocol::H2(h2) => h2.is_busy(),
        }
    }

    /// Returns whether there are unsent bytes: the unsent part of a request, or bytes that belong
    /// to no request. Bytes of the TLS layer are not considered.
    pub fn wants_to_send(&self) -> bool {
        match &self.protocol {
            Protocol::H1(h1) => h1.unsent().is_some(),
            Protocol::H2(h2) => h2.wants_to_send(),
        }
    }

    /// Returns whether the connection is unusable: no exchange is in flight, and none can be
    /// started any more.
    #[inline]
    pub fn is_over(&self) -> bool {
        match &self.protocol {
            Protocol::H1(h1) => h1.is_over(),
            Protocol::H2(h2) => h2.is_over(),
        }
    }

    /// Returns whether the server has sent GOAWAY. After GOAWAY, the server accepts no new
    /// exchanges, and exchanges in flight continue.
    pub fn has_received_goaway(&self) -> bool {
        match &self.protocol {
            Protocol::H1(_) => false,
            Protocol::H2(h2) => h2.has_received_goaway(),
        }
    }

    /// Starts an exchange; [`exchanges_available`](Self::exchanges_available) must not be 0.
    /// Returns whether the caller must send the request now. If the result is false, the request is
    /// part of the next bytes to send.
    #[inline(always)]
    pub fn start(&mut self, exchange: ExchangeNumber, request: &EncodedRequest) -> bool {
        let is_key_exhausted = self.tls.as_ref().is_some_and(|tls| tls.session.is_key_nearly_exhausted());
        let keep_alive = request.keep_alive() && !is_key_exhausted;
        match &mut self.protocol {
            Protocol::H1(h1) => {
                h1.start(exchange, request.h1().len(), request.response_expectation(), keep_alive);
                if !request.head_request_flags().is_empty() {
                    h1.expect_several_responses(request.head_request_flags());
                }
                true
            }
            Protocol::H2(h2) => h2.start(exchange, keep_alive),
        }
    }

    /// Returns the next bytes to send; empty if there are none. `request` must always return the
    /// same request for an exchange in flight. `scratch` is a buffer for generated bytes.
    ///
    /// The caller must pass the number of bytes actually sent to [`record_sent`](Self::record_sent)
    /// before the next call.
    #[inline(always)]
    pub fn bytes_to_send<'a>(
        &'a mut self,
        request: impl Fn(ExchangeNumber) -> &'a EncodedRequest,
        scratch: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let text = match &self.protocol {
            Protocol::H2(_) => return self.next_h2_bytes(request, scratch),
            Protocol::H1(h1) => h1.unsent().map_or(&[][..], |(exchange, unsent)| {
                let bytes = request(exchange).h1();
                &bytes[bytes.len() - unsent..]
            }),
        };
        if self.tls.is_some() { self.next_encrypted_bytes(text, scratch) } else { text }
    }

    /// Returns the next encrypted bytes to send: bytes that the network did not accept before,
    /// otherwise the beginning of `text`.
    #[inline(never)]
    fn next_encrypted_bytes<'a>(&'a mut self, text: &[u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let Some(tls) = &mut self.tls else { return &[] };
        if tls.unsent_from < tls.unsent.len() {
            return &tls.unsent[tls.unsent_from..];
        }
        scratch.clear();
        if tls.session.is_established() && !text.is_empty() {
            // The unsent rest of the TLS handshake is sent together with the request (`text`).
            let text = &text[..text.len().min(ENCRYPTED_AT_ONCE_BYTES_MAX)];
            if tls.session.append_encrypted(text, scratch)
                && let Protocol::H1(h1) = &mut self.protocol
            {
                h1.record_sent(text.len());
            }
        } else {
            tls.session.take_bytes_to_send(scratch);
        }
        scratch
    }

    /// Returns the next bytes to send over HTTP/2, with or without TLS.
    fn next_h2_bytes<'a>(
        &'a mut self,
        request: impl Fn(ExchangeNumber) -> &'a EncodedRequest,
        scratch: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let Protocol::H2(h2) = &mut self.protocol else { return &[] };
        let Some(tls) = &mut self.tls else {
            if h2.unsent().is_empty() {
                scratch.clear();
                h2.write(|exchange| request(exchange).h2_form(), scratch);
                return scratch;
            }
            return h2.unsent();
        };
        if tls.unsent_from < tls.unsent.len() {
            return &tls.unsent[tls.unsent_from..];
        }
        scratch.clear();
        h2.write(|exchange| request(exchange).h2_form(), scratch);
        tls.session.encrypt(scratch);
        scratch
    }

    /// Records that `count` bytes of the last [`bytes_to_send`](Self::bytes_to_send) were sent.
    /// `scratch` must be unchanged since the call of [`bytes_to_send`](Self::bytes_to_send).
    /// Returns whether all bytes are sent.
    #[inline(always)]
    pub fn record_sent(&mut self, count: usize, scratch: &[u8]) -> bool {
        if self.tls.is_some() {
            return self.record_sent_cipher(count, scratch);
        }
        match &mut self.protocol {
            Protocol::H1(h1) => h1.record_sent(count),
            Protocol::H2(h2) => {
                if h2.unsent().is_empty() {
                    h2.keep_unsent(&scratch[count..]);
                } else {
                    h2.record_sent_bytes(count);
                }
                !h2.wants_to_send()
            }
        }
    }

    #[inline(never)]
    fn record_sent_cipher(&mut self, count: usize, scratch: &[u8]) -> bool {
        let Some(tls) = &mut self.tls else { return true };
        if tls.unsent_from < tls.unsent.len() {
            tls.unsent_from += count;
            if tls.unsent_from == tls.unsent.len() {
                (tls.unsent, tls.unsent_from) = (Vec::new(), 0);
            }
        } else {
            tls.unsent.extend_from_slice(&scratch[count..]);
        }
        tls.unsent.is_empty() && !self.wants_to_send()
    }

    /// Accepts received bytes. [`next`](Self::next) returns the events in the received bytes.
    /// `scratch` is a buffer for decrypted bytes.
    #[inline(always)]
    pub fn receive<'a>(&mut self, bytes: &'a [u8], scratch: &'a mut Vec<u8>) -> ReceivedBytes<'a> {
        if self.tls.is_some() {
            return self.decrypt_received(bytes, scratch);
        }
        let more = match &mut self.protocol {
            Protocol::H1(_) => false,
            Protocol::H2(h2) => {
                h2.begin_reading();
                true
            }
        };
        ReceivedBytes { text: bytes, tls_events: None, may_have_more_events: more }
    }

    #[inline(never)]
    fn decrypt_received<'a>(&mut self, cipher: &[u8], scratch: &'a mut Vec<u8>) -> ReceivedBytes<'a> {
        scratch.clear();
        let Some(tls) = &mut self.tls else {
            return ReceivedBytes { text: &[], tls_events: None, may_have_more_events: false };
        };
        let mut news = match tls.session.receive(cipher, scratch) {
            Ok(progress) => TlsLayerEvents {
                is_handshake_done: progress.is_handshake_done,
                has_bytes_to_send: tls.session.wants_to_send(),
                ended: progress.is_stream_ended,
                tls_failure: None,
            },
            // If the TLS stream ends and fails at the same time, only the failure is reported.
            Err(reason) => TlsLayerEvents {
                is_handshake_done: false,
                has_bytes_to_send: false,
                ended: false,
                tls_failure: Some(reason),
            },
        };
        if news.is_handshake_done {
            if tls.session.alpn_protocol() == Some(b"h2") {
                self.protocol = Protocol::H2(Box::new(H2::new(tls.streams_max)));
            } else if tls.only_h2 {
                // The client offered only HTTP/2, but the server ignored the offer and uses another
                // protocol.
                news = TlsLayerEvents {
                    is_handshake_done: false,
                    has_bytes_to_send: false,
                    ended: false,
                    tls_failure: Some(TlsFailure::NothingInCommon),
                };
            }
        }
        if news.ended {
            tls.ended = true;
        }
        let more = match &mut self.protocol {
            Protocol::H1(h1) => {
                if news.ended {
                    h1.end_after_open_exchanges();
                }
                false
            }
            Protocol::H2(h2) => {
                if news.ended {
                    h2.end_after_open_exchanges();
                }
                h2.begin_reading();
                true
            }
        };
        let quiet = !news.is_handshake_done && !news.has_bytes_to_send && !news.ended && news.tls_failure.is_none();
        ReceivedBytes { text: scratch, tls_events: (!quiet).then_some(news), may_have_more_events: more }
    }

    /// Returns the next event in the received bytes; `None`: all events were taken.
    #[inline(always)]
    pub fn next<'a>(&mut self, received: &mut ReceivedBytes<'a>) -> Option<ConnectionEvent<'a>> {
        if self.tls.is_some() {
            return self.next_event_over_tls(received);
        }
        match &mut self.protocol {
            Protocol::H1(h1) => h1.next(&mut received.text),
            Protocol::H2(h2) => h2.next(&mut received.text),
        }
    }

    #[inline(never)]
    fn next_event_over_tls<'a>(&mut self, received: &mut ReceivedBytes<'a>) -> Option<ConnectionEvent<'a>> {
        let tls = self.tls.as_ref()?;
        if let Some(news) = &mut received.tls_events
            && std::mem::take(&mut news.is_handshake_done)
        {
            return Some(ConnectionEvent::HandshakeDone { resumed: tls.session.is_resumed() });
        }
        let event = match &mut self.protocol {
            Protocol::H1(h1) => {
                let event = h1.next(&mut received.text);
                if matches!(event, Some(ConnectionEvent::Answered { .. })) && !tls.unsent.is_empty() {
                    // The response was complete before the request was sent completely, so the
                    // connection ends.
                    h1.end_after_open_exchanges();
                }
                event
            }
            Protocol::H2(h2) => h2.next(&mut received.text),
        };
        event.or_else(|| {
            if received.tls_events.as_mut().is_some_and(|news| std::mem::take(&mut news.has_bytes_to_send)) {
                return Some(ConnectionEvent::HasBytesToSend);
            }
            let news = received.tls_events.take()?;
            news.tls_failure.map(ConnectionEvent::TlsFailed).or(news.ended.then_some(ConnectionEvent::TlsStreamEnded))
        })
    }

    /// Handles the end of the connection by the peer. Each call returns one event (a response or a
    /// failure) that the end causes for an exchange in flight. After the method has returned
    /// `None`, the connection is over.
    pub fn end_by_peer(&mut self) -> Option<ConnectionEvent<'static>> {
        let is_authenticated_end = self.tls.as_ref().is_none_or(|tls| tls.ended);
        match &mut self.protocol {
            Protocol::H1(h1) => h1.end_by_peer(is_authenticated_end),
            // Over HTTP/2 the end of the connection never completes a response.
            Protocol::H2(h2) => h2.end_by_peer(),
        }
    }

    /// Cancels an exchange, whose response is no longer wanted.
    pub fn cancel(&mut self, exchange: ExchangeNumber) {
        match &mut self.protocol {
            Protocol::H1(h1) => {
                let cancelled = h1.abandon_next_exchange();
                debug_assert_eq!(cancelled, Some(exchange));
            }
            Protocol::H2(h2) => h2.cancel(exchange),
        }
    }

    /// Handles a broken connection. Each call removes and returns one exchange that was in flight.
    /// After the method has returned `None`, the connection is over.
    pub fn abandon_next_exchange(&mut self) -> Option<ExchangeNumber> {
        match &mut self.protocol {
            Protocol::H1(h1) => h1.abandon_next_exchange(),
            Protocol::H2(h2) => h2.abandon_next_exchange(),
        }
    }
}
