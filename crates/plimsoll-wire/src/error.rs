//! Errors of a server on a connection of any protocol: bytes that are no response, or an end before
//! the response is complete. Not here: TLS errors (`plimsoll_model::TlsFailure`), statuses,
//! timeouts.

use plimsoll_model::H2Error;
use thiserror::Error;

/// The bytes are not HTTP, or no response to the request. The server or an intermediary is always
/// at fault, and usually the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ProtocolError {
    /// No `HTTP/1.0` or `HTTP/1.1` status line with a status of three digits
    /// ([RFC 9112, 4](https://www.rfc-editor.org/rfc/rfc9112#section-4)).
    #[error("the answer does not start with an HTTP/1.0 or HTTP/1.1 status line")]
    BadStatusLine,
    /// A header line without a valid name, with a NUL or a lone CR, or folded where that would
    /// change the framing ([RFC 9112, 5](https://www.rfc-editor.org/rfc/rfc9112#section-5)).
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
    /// Broken chunk framing, or a size line beyond
    /// [`CHUNK_LINE_BYTES_MAX`](crate::h1::CHUNK_LINE_BYTES_MAX).
    #[error("the chunked framing of the answer is broken")]
    BadChunk,
    /// `101 Switching Protocols`, which the request did not ask for.
    #[error("the server switched protocols without being asked")]
    UnexpectedUpgrade,
    /// More than [`INTERIM_REPLIES_MAX`](crate::h1::INTERIM_REPLIES_MAX) interim replies.
    #[error("the server sent more than 64 interim (1xx) answers before one reply")]
    TooManyInterim,
    /// Bytes after the end of a reply, before the next request.
    #[error("the server sent bytes that no request asked for")]
    Surplus,

    /// The first frame is no SETTINGS frame ([RFC 9113,
    /// 3.4](https://www.rfc-editor.org/rfc/rfc9113#section-3.4)).
    #[error("the server does not speak HTTP/2 there")]
    NotHttp2,
    /// A frame is longer than permitted, or has a wrong length for its type ([RFC 9113,
    /// 4.2](https://www.rfc-editor.org/rfc/rfc9113#section-4.2)).
    #[error("a frame has a length that none of its kind may have")]
    FrameSize,
    /// A frame is not permitted at its place: on a wrong or missing stream, or between the pieces
    /// of a head.
    #[error("a frame came where none of its kind may")]
    FrameOrder,
    /// The padding is as long as its frame, or longer.
    #[error("a frame's padding is longer than the frame")]
    Padding,
    /// A setting has an invalid value.
    #[error("a setting has a value that it may not have")]
    Setting,
    /// The compression of a head is invalid ([RFC 7541](https://www.rfc-editor.org/rfc/rfc7541)).
    #[error("the compression of a head is broken")]
    Compression,
    /// The content exceeds its flow-control window, or a window exceeds the largest size.
    #[error("the server disregarded the flow control")]
    Window,
    /// A window update of 0 bytes.
    #[error("the server enlarged a window by nothing")]
    ZeroWindow,
    /// The server pushed a stream, although that was forbidden.
    #[error("the server pushed a stream, which it was told not to")]
    Pushed,
    /// Very many frames that do not advance any response.
    #[error("the server sent a flood of frames that bring no answer forward")]
    Flood,
    /// A pseudo-header field is unknown, misplaced or missing.
    #[error("the head of the answer lacks its status, or has pseudo-headers that it may not have")]
    PseudoHeader,
    /// A status is outside 100 to 999, or not permitted at its place.
    #[error("the status of the answer is none of 100 to 999, or may not stand there")]
    BadStatus,
    /// A header field that HTTP/2 forbids ([RFC 9113,
    /// 8.2.2](https://www.rfc-editor.org/rfc/rfc9113#section-8.2.2)).
    #[error("the answer has a header of HTTP/1.1 connections, which HTTP/2 forbids")]
    ConnectionHeader,
    /// The length of the content differs from the declared one.
    #[error("the content of the answer is not as long as its Content-Length says")]
    WrongLength,
    /// Content in a response that may have none.
    #[error("the answer has content where none may be")]
    UnexpectedContent,
}

impl ProtocolError {
    /// The HTTP/2 error code sent to the server.
    pub(crate) fn h2_error(self) -> H2Error {
        match self {
            ProtocolError::FrameSize => H2Error::FrameSizeError,
            ProtocolError::Compression => H2Error::CompressionError,
            ProtocolError::Window => H2Error::FlowControlError,
            ProtocolError::Flood | ProtocolError::HeadTooLarge | ProtocolError::TooManyInterim => {
                H2Error::EnhanceYourCalm
            }
            _ => H2Error::ProtocolError,
        }
    }
}

/// The connection was closed, although that does not complete a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum EndError {
    /// The connection was closed before the first byte of a response. This happens when the server
    /// closes an idle connection.
    #[error("the server closed the connection without a response")]
    NothingReceived,
    /// The connection was closed in the middle of a response.
    #[error("the server closed the connection in the middle of an answer")]
    Truncated,
}

/// Why an exchange has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ExchangeError {
    /// The bytes are no response.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The server closed the connection.
    #[error(transparent)]
    End(#[from] EndError),
    /// The connection broke.
    #[error("the connection was reset")]
    Reset,
    /// The server reset the exchange's stream; the connection continues.
    #[error("the server reset the stream ({})", .0.name())]
    StreamReset(H2Error),
    /// The server ended the connection with this error code, while the exchange was in flight.
    #[error("the server went away ({})", .0.name())]
    Left(H2Error),
}
