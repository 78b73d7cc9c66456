//! HTTP/1.0 and HTTP/1.1: the client's side, and as much of the server's side as plimsoll's
//! reference server needs ([RFC 9110], [RFC 9112]).
//!
//! A request is encoded once ([`encode`]) and sent many times. A response is only *delimited*
//! ([`ResponseParser`]): a load generator needs its status, its end, and whether the connection can
//! be used again. Only the few header fields that determine the response's end and the reuse of the
//! connection are used. All other header fields are only checked for their form.
//!
//! No byte of a body is stored. If a request wants the content of its response, the returned pieces
//! of content refer to the received bytes.
//!
//! Not here: the meaning of a status (the engine decides what counts as success), redirects,
//! cookies, decompression, `Upgrade` and `CONNECT`.
//!
//! [RFC 9110]: https://www.rfc-editor.org/rfc/rfc9110
//! [RFC 9112]: https://www.rfc-editor.org/rfc/rfc9112

mod chunked;
mod exchange;
mod field;
mod head;
mod request;
mod response;
mod serving;
mod token;

pub use chunked::CHUNK_LINE_BYTES_MAX;
pub use head::{BLANK_LINES_MAX, HEAD_BYTES_MAX, HEAD_LINES_MAX};
pub use request::{RequestError, RequestParts, encode};
pub use response::{
    FeedResult, GrpcCallFlags, INTERIM_RESPONSES_MAX, ResponseExpectation, ResponseParser, ResponseSummary,
};
pub use serving::{InvalidRequest, REQUEST_HEAD_BYTES_MAX, RequestHead, RequestParser, RequestStep};

pub(crate) use exchange::H1;
pub(crate) use field::content_length;
pub(crate) use request::{bytes_after_body, format_decimal, write};
pub(crate) use token::{IS_TOKEN_BYTE, trim};
