//! HTTP/1.0 and HTTP/1.1 from the client's side, and as much of the server's as a reference server
//! needs ([RFC 9110], [RFC 9112]).
//!
//! A request is encoded once ([`encode`]) and sent many times. A reply is only *delimited*
//! ([`ResponseParser`]): a load generator needs its status, where it ends, and whether the
//! connection lives on. So the few header fields that answer those questions are read, the others
//! are checked for their form and forgotten, and no byte of a body is ever kept; content is pointed
//! at as it passes, where a request asks for it.
//!
//! Not here: what a status means (the engine decides what counts as success), redirects, cookies,
//! decompression, pipelining, `Upgrade` and `CONNECT`.
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
pub use response::{CallState, Expect, FeedResult, INTERIM_REPLIES_MAX, Reply, ResponseParser};
pub use serving::{REQUEST_HEAD_BYTES_MAX, Refusal, RequestHead, RequestParser, RequestStep};

pub(crate) use exchange::H1;
pub(crate) use field::content_length;
pub(crate) use request::{after_body, decimal, write};
pub(crate) use token::{TOKEN, trim};
