//! What a server can do wrong on a connection, whatever protocol is spoken there: it sends what is no answer, or it ends before
//! an answer does. Not here: what goes wrong in TLS (`plimsoll_model::TlsFailure`), statuses, timeouts.

use thiserror::Error;

/// What the server sent is not HTTP/1.x, or not what was asked for. Always the fault of the server (or of something
/// in between), and the end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ProtocolError {
    /// No `HTTP/1.0` or `HTTP/1.1` status line with a status of 100 to 599
    /// ([RFC 9112, 4](https://www.rfc-editor.org/rfc/rfc9112#section-4)).
    #[error("the answer does not start with an HTTP/1.0 or HTTP/1.1 status line")]
    BadStatusLine,
    /// A header line without a valid name, with a NUL or a lone CR, or folded where that would change the framing
    /// ([RFC 9112, 5](https://www.rfc-editor.org/rfc/rfc9112#section-5)).
    #[error("a header line of the answer is malformed")]
    BadHeader,
    /// Head or trailers beyond [`HEAD_BYTES_MAX`](crate::h1::HEAD_BYTES_MAX) or
    /// [`HEAD_LINES_MAX`](crate::h1::HEAD_LINES_MAX).
    #[error("the head or the trailers of the answer are larger than 64 KiB or 256 lines")]
    HeadTooLarge,
    /// A `Content-Length` that is no number, is too large or contradicts another
    /// ([RFC 9112, 6.3](https://www.rfc-editor.org/rfc/rfc9112#section-6.3)).
    #[error("the Content-Length of the answer is not a number or contradicts itself")]
    BadContentLength,
    /// Broken chunk framing, or a size line beyond [`CHUNK_LINE_BYTES_MAX`](crate::h1::CHUNK_LINE_BYTES_MAX).
    #[error("the chunked framing of the answer is broken")]
    BadChunk,
    /// `101 Switching Protocols`, which nobody asked for.
    #[error("the server switched protocols without being asked")]
    UnexpectedUpgrade,
    /// More than [`INTERIM_REPLIES_MAX`](crate::h1::INTERIM_REPLIES_MAX) interim replies.
    #[error("the server sent more than 64 interim (1xx) answers before one reply")]
    TooManyInterim,
    /// Bytes after the end of a reply, before the next request.
    #[error("the server sent bytes that no request asked for")]
    Surplus,
}

/// The connection was closed, and that did not end a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum EndError {
    /// Before the first byte of a reply: what happens when a kept-alive connection is closed as idle.
    #[error("the server closed the connection without an answer")]
    NothingReceived,
    /// In the midst of a reply.
    #[error("the server closed the connection in the middle of an answer")]
    Truncated,
}

/// Why an exchange has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ExchangeError {
    /// What came is no answer.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The server closed the connection.
    #[error(transparent)]
    End(#[from] EndError),
    /// The connection broke.
    #[error("the connection was reset")]
    Reset,
}
