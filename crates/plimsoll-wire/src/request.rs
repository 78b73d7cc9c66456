//! A request encoded for each protocol that a connection may use, and the expectation of its
//! response.

use crate::author::Batch;
use crate::h1::{self, CallState, Expect};
use crate::h2::{self, H2Request};
use std::sync::Arc;

/// A request in the form that connections send.
#[derive(Clone, Debug)]
pub struct EncodedRequest {
    /// The HTTP/1.1 bytes, with the content at the end.
    h1: Arc<Vec<u8>>,
    body_bytes: usize,
    /// Number of bytes after the content: the end of the chunks, if the body is chunked.
    after_body: usize,
    /// The HTTP/2 form, if wanted.
    h2: Option<H2Head>,
    expect: Expect,
    keep_alive: bool,
    /// For several messages, whether each is a HEAD request; otherwise empty.
    heads_only: Vec<bool>,
}

/// The HTTP/2 parts of a request besides its content.
#[derive(Clone, Debug)]
struct H2Head {
    /// The encoded frames of the request's head.
    head: Arc<Vec<u8>>,
    is_https: bool,
}

impl EncodedRequest {
    /// Encodes a request for HTTP/1.1. Of its response only the status and the end are wanted.
    pub fn new(parts: &h1::RequestParts) -> Result<EncodedRequest, h1::RequestError> {
        let expect = Expect {
            head_request: parts.method.eq_ignore_ascii_case("HEAD"),
            content: false,
            call: called(parts.headers),
        };
        let (h1, body_bytes, after_body) = (h1::encode(parts)?.into(), parts.body.len(), h1::after_body(parts));
        let keep_alive = parts.keep_alive;
        Ok(EncodedRequest { h1, body_bytes, after_body, h2: None, expect, keep_alive, heads_only: Vec::new() })
    }

    /// Adds the HTTP/2 form, for connections that may use HTTP/2.
    pub fn with_h2(mut self, parts: &h1::RequestParts, is_https: bool) -> EncodedRequest {
        let mut head = Vec::new();
        h2::write(parts, is_https, &mut head);
        self.h2 = Some(H2Head { head: head.into(), is_https });
        self
    }

    /// Makes the response's content part of the facts; over HTTP/2 header fields, too
    /// ([`Conn::fields`](crate::Conn::fields)).
    pub fn with_content(mut self) -> EncodedRequest {
        self.expect.content = true;
        self
    }

    /// Makes each gRPC message of the content wait for another message of the response, instead of
    /// sending all at once.
    pub fn in_turn(mut self) -> EncodedRequest {
        self.expect.call = self.expect.call.and(CallState::IN_TURN);
        self
    }

    /// Makes the request a gRPC call with exactly one response message. Any other number is a
    /// failure, whatever the status.
    pub fn with_one_message(mut self) -> EncodedRequest {
        self.expect.call = self.expect.call.and(CallState::ONE_MESSAGE);
        self
    }

    /// Rewrites the request from `parts`, with the method and the wishes about the response of
    /// `like`. The parts must be valid; the memory is reused.
    pub fn rewrite(&mut self, like: &EncodedRequest, parts: &h1::RequestParts) {
        let bytes = Arc::make_mut(&mut self.h1);
        bytes.clear();
        h1::write(parts, bytes);
        (self.body_bytes, self.after_body) = (parts.body.len(), h1::after_body(parts));
        if let (Some(h2), Some(like)) = (&mut self.h2, &like.h2) {
            let head = Arc::make_mut(&mut h2.head);
            head.clear();
            h2::write(parts, like.is_https, head);
        }
        (self.expect, self.keep_alive) = (like.expect, like.keep_alive);
    }

    /// Rewrites the request from a batch that an author wrote for HTTP/1.1. The old buffers go to
    /// the batch for reuse. `content`: the content of the responses is wanted.
    pub fn rewrite_as(&mut self, batch: &mut Batch, content: bool) {
        std::mem::swap(Arc::make_mut(&mut self.h1), &mut batch.bytes);
        let head_request = batch.heads_only.first().copied().unwrap_or(false);
        self.heads_only.clear();
        if batch.heads_only.len() > 1 {
            std::mem::swap(&mut self.heads_only, &mut batch.heads_only);
        }
        (self.h2, self.body_bytes, self.after_body) = (None, 0, 0);
        // The server decides on keep-alive; only a single HEAD is known in advance.
        self.expect = Expect { head_request, content, call: CallState::NO };
    }

    /// Number of messages, with a response each.
    pub fn messages(&self) -> u32 {
        self.heads_only.len().max(1) as u32
    }

    /// For several messages, whether each is a HEAD request; empty for one.
    #[inline]
    pub(crate) fn heads_only(&self) -> &[bool] {
        &self.heads_only
    }

    /// The request as HTTP/1.1 bytes.
    #[inline]
    pub fn h1(&self) -> &[u8] {
        &self.h1
    }

    /// The HTTP/2 form as text for people: the fields of the head as lines as in HTTP/1.1, and the
    /// content.
    pub fn h2_in_lines(&self) -> Vec<u8> {
        let H2Request { head, body, .. } = self.h2();
        let mut lines = Vec::new();
        h2::read(head, |name, value| {
            [name, b": ", value, b"\r\n"].iter().for_each(|part| lines.extend_from_slice(part))
        });
        lines.extend_from_slice(b"\r\n");
        lines.extend_from_slice(body);
        lines
    }

    /// The request in its HTTP/2 form.
    #[inline]
    pub(crate) fn h2(&self) -> H2Request<'_> {
        let end = self.h1.len() - self.after_body;
        let body = &self.h1[end - self.body_bytes..end];
        let head = self.h2.as_ref().map_or(&[][..], |h2| &h2.head);
        debug_assert!(!head.is_empty(), "a request for HTTP/2 is written for it");
        H2Request { head, body, expect: self.expect }
    }

    /// The expectation of the request's response.
    #[inline]
    pub(crate) fn expect(&self) -> Expect {
        self.expect
    }

    /// Whether the connection may be used again after the request.
    #[inline]
    pub(crate) fn keep_alive(&self) -> bool {
        self.keep_alive
    }
}

/// The gRPC state of a request from its header fields.
fn called(headers: &[(String, String)]) -> CallState {
    let values = |of: &'static str| {
        headers.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(of)).map(|(_, value)| value.as_str())
    };
    if !h2::is_call(headers) {
        return CallState::NO;
    }
    // A client that names other codings can read them.
    let is_usual = |coding: &str| matches!(coding.trim(), "" | "identity" | "gzip");
    let is_other = |value: &str| !value.split(',').all(is_usual);
    match values("grpc-accept-encoding").any(is_other) {
        true => CallState::ANY_ENCODING,
        false => CallState::CALL,
    }
}
