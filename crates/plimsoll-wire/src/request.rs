//! A request that is encoded for each protocol that a connection may use. The encoded request also
//! contains the expected properties of its response.

use crate::author::Batch;
use crate::h1::{self, GrpcCallFlags, ResponseExpectation};
use crate::h2::{self, H2Request};
use std::sync::Arc;

/// An encoded request, ready to be sent over HTTP/1.1 or HTTP/2.
#[derive(Clone, Debug)]
pub struct EncodedRequest {
    /// The HTTP/1.1 bytes of the request, with the content at the end.
    h1: Arc<Vec<u8>>,
    body_bytes: usize,
    /// The number of bytes after the content: the end of the chunks if the body is chunked, or 0.
    after_body: usize,
    /// The HTTP/2 form of the request; `None` if no connection uses HTTP/2.
    h2: Option<H2Head>,
    expect: ResponseExpectation,
    keep_alive: bool,
    /// For each request message of a pipelined exchange, whether it is a HEAD request. The list is
    /// empty for a single message.
    head_request_flags: Vec<bool>,
}

/// The HTTP/2 parts of a request besides its content.
#[derive(Clone, Debug)]
struct H2Head {
    /// The encoded frames of the request's head.
    head: Arc<Vec<u8>>,
    is_https: bool,
}

impl EncodedRequest {
    /// Encodes a request for HTTP/1.1. The events about the response will not contain its content.
    /// Returns an error if the request is not valid HTTP.
    pub fn new(parts: &h1::RequestParts) -> Result<EncodedRequest, h1::RequestError> {
        let expect = ResponseExpectation {
            head_request: parts.method.eq_ignore_ascii_case("HEAD"),
            wants_content: false,
            call: grpc_call_flags(parts.headers),
        };
        let (h1, body_bytes, after_body) = (h1::encode(parts)?.into(), parts.body.len(), h1::bytes_after_body(parts));
        let keep_alive = parts.keep_alive;
        Ok(EncodedRequest { h1, body_bytes, after_body, h2: None, expect, keep_alive, head_request_flags: Vec::new() })
    }

    /// Adds the HTTP/2 form of the request, for connections that may use HTTP/2.
    pub fn with_h2(mut self, parts: &h1::RequestParts, is_https: bool) -> EncodedRequest {
        let mut head = Vec::new();
        h2::write(parts, is_https, &mut head);
        self.h2 = Some(H2Head { head: head.into(), is_https });
        self
    }

    /// Declares that the reported events about the response include its content. Over HTTP/2, the
    /// header fields of the response are available as well if its content is included
    /// ([`Conn::fields`](crate::Conn::fields)).
    pub fn with_content(mut self) -> EncodedRequest {
        self.expect.wants_content = true;
        self
    }

    /// Declares that each further gRPC message of the request is sent only after another message of
    /// the response has arrived. Without `with_messages_in_turn`, all messages of the request are
    /// sent at once.
    pub fn with_messages_in_turn(mut self) -> EncodedRequest {
        self.expect.call = self.expect.call.union(GrpcCallFlags::MESSAGES_IN_TURN);
        self
    }

    /// Declares that the gRPC response must have exactly one message. A gRPC response with no
    /// message or with several messages fails, whatever its status.
    pub fn requiring_one_response_message(mut self) -> EncodedRequest {
        self.expect.call = self.expect.call.union(GrpcCallFlags::ONE_MESSAGE);
        self
    }

    /// Encodes the request again from `parts`, which must be valid. The expected properties of the
    /// response, and whether the connection is used again, are copied from `like`. The memory of
    /// the earlier encoding is reused.
    pub fn rewrite(&mut self, like: &EncodedRequest, parts: &h1::RequestParts) {
        let bytes = Arc::make_mut(&mut self.h1);
        bytes.clear();
        h1::write(parts, bytes);
        (self.body_bytes, self.after_body) = (parts.body.len(), h1::bytes_after_body(parts));
        if let (Some(h2), Some(like)) = (&mut self.h2, &like.h2) {
            let head = Arc::make_mut(&mut h2.head);
            head.clear();
            h2::write(parts, like.is_https, head);
        }
        (self.expect, self.keep_alive) = (like.expect, like.keep_alive);
    }

    /// Replaces the request by the requests of `batch`, which an `Author` (such as a script) wrote
    /// as HTTP/1.1. The batch gets the old buffers of the request for reuse. If `content` is true,
    /// the reported events about responses include their content.
    pub fn rewrite_from_batch(&mut self, batch: &mut Batch, wants_content: bool) {
        std::mem::swap(Arc::make_mut(&mut self.h1), &mut batch.bytes);
        let head_request = batch.head_request_flags.first().copied().unwrap_or(false);
        self.head_request_flags.clear();
        if batch.head_request_flags.len() > 1 {
            std::mem::swap(&mut self.head_request_flags, &mut batch.head_request_flags);
        }
        (self.h2, self.body_bytes, self.after_body) = (None, 0, 0);
        // The server decides whether the connection is kept. The flag `head_request` describes a
        // single request message; for several messages, `head_request_flags` contains a flag for
        // each message.
        self.expect = ResponseExpectation { head_request, wants_content, call: GrpcCallFlags::NOT_GRPC };
    }

    /// Returns the number of messages in the request. Each message of the request has a response.
    pub fn messages(&self) -> u32 {
        self.head_request_flags.len().max(1) as u32
    }

    /// Returns for each of several request messages whether it is a HEAD request. The returned list
    /// is empty for a single message.
    #[inline]
    pub(crate) fn head_request_flags(&self) -> &[bool] {
        &self.head_request_flags
    }

    /// Returns the request as HTTP/1.1 bytes.
    #[inline]
    pub fn h1(&self) -> &[u8] {
        &self.h1
    }

    /// Returns the HTTP/2 form of the request as readable text: the header fields as lines, as in
    /// HTTP/1.1, and the content.
    pub fn h2_form_text(&self) -> Vec<u8> {
        let H2Request { head, body, .. } = self.h2_form();
        let mut lines = Vec::new();
        h2::read(head, |name, value| {
            [name, b": ", value, b"\r\n"].iter().for_each(|part| lines.extend_from_slice(part))
        });
        lines.extend_from_slice(b"\r\n");
        lines.extend_from_slice(body);
        lines
    }

    /// Returns the request in its HTTP/2 form.
    #[inline]
    pub(crate) fn h2_form(&self) -> H2Request<'_> {
        let end = self.h1.len() - self.after_body;
        let body = &self.h1[end - self.body_bytes..end];
        let head = self.h2.as_ref().map_or(&[][..], |h2| &h2.head);
        debug_assert!(!head.is_empty(), "the request was not encoded for HTTP/2");
        H2Request { head, body, expect: self.expect }
    }

    /// Returns the expected properties of the response.
    #[inline]
    pub(crate) fn response_expectation(&self) -> ResponseExpectation {
        self.expect
    }

    /// Returns whether the connection may be used again after this request.
    #[inline]
    pub(crate) fn keep_alive(&self) -> bool {
        self.keep_alive
    }
}

/// Returns the gRPC flags of a request with these header fields.
fn grpc_call_flags(headers: &[(String, String)]) -> GrpcCallFlags {
    let values = |of: &'static str| {
        headers.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(of)).map(|(_, value)| value.as_str())
    };
    if !h2::is_call(headers) {
        return GrpcCallFlags::NOT_GRPC;
    }
    // A gRPC request that accepts compressions other than gzip shows that its client can decode
    // them.
    let is_usual = |coding: &str| matches!(coding.trim(), "" | "identity" | "gzip");
    let is_other = |value: &str| !value.split(',').all(is_usual);
    match values("grpc-accept-encoding").any(is_other) {
        true => GrpcCallFlags::ANY_ENCODING,
        false => GrpcCallFlags::GRPC_CALL,
    }
}
