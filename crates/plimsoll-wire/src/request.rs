//! A request, encoded once in each form that connections may turn out to speak, and what is wanted of its answer.

use crate::h1::{self, Expect};
use std::sync::Arc;

/// A request as connections take it.
#[derive(Clone, Debug)]
pub struct EncodedRequest {
    /// In HTTP/1.1.
    h1: Arc<Vec<u8>>,
    expect: Expect,
    keep_alive: bool,
}

impl EncodedRequest {
    /// Encodes a request, of whose answer nothing is wanted but its status and its end.
    pub fn new(parts: &h1::RequestParts) -> Result<EncodedRequest, h1::RequestError> {
        let expect = Expect { head_request: parts.method.eq_ignore_ascii_case("HEAD"), content: false };
        Ok(EncodedRequest { h1: h1::encode(parts)?.into(), expect, keep_alive: parts.keep_alive })
    }

    /// The same with the content of its answer asked for, which then is in the facts.
    pub fn with_content(mut self) -> EncodedRequest {
        self.expect.content = true;
        self
    }

    /// Becomes another request of the same kind as `like`: with its method, and the same wishes of its answer. What is in the
    /// parts is in order; the room is used again.
    pub fn rewrite(&mut self, like: &EncodedRequest, parts: &h1::RequestParts) {
        let bytes = Arc::make_mut(&mut self.h1);
        bytes.clear();
        h1::write(parts, bytes);
        (self.expect, self.keep_alive) = (like.expect, like.keep_alive);
    }

    /// As HTTP/1.1 has it on the wire.
    #[inline]
    pub fn h1(&self) -> &[u8] {
        &self.h1
    }

    /// What may be expected of its answer.
    #[inline]
    pub(crate) fn expect(&self) -> Expect {
        self.expect
    }

    /// Whether the connection may be used again after it.
    #[inline]
    pub(crate) fn keep_alive(&self) -> bool {
        self.keep_alive
    }
}
