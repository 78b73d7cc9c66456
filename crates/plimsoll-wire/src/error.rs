//! The errors that a server makes on a connection, for every protocol: invalid bytes, or an end
//! before the response is complete. Not here: TLS errors (`plimsoll_model::TlsFailure`), statuses,
//! timeouts.

use plimsoll_model::H2Error;
use thiserror::Error;

/// The reason why received bytes are not valid HTTP, or are not a response to the request. For a
/// client, the cause is always the server or an intermediary. The connection usually ends after the
/// error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ProtocolError {
    /// The first line is no `HTTP/1.0` or `HTTP/1.1` status line with a status of three digits
    /// ([RFC 9112, 4](https://www.rfc-editor.org/rfc/rfc9112#section-4)).
    #[error("the response does not start with an HTTP/1.0 or HTTP/1.1 status line")]
    BadStatusLine,
    /// A header line has no valid name, has a NUL or a lone CR, or has a continuation line that
    /// would change the framing ([RFC 9112, 5](https://www.rfc-editor.org/rfc/rfc9112#section-5)).
    #[error("a header line of the response is malformed")]
    BadHeader,
    /// The head of a response (status line and header fields) or its trailers exceed
    /// [`HEAD_BYTES_MAX`](crate::h1::HEAD_BYTES_MAX) or
    /// [`HEAD_LINES_MAX`](crate::h1::HEAD_LINES_MAX).
    #[error("the header or the trailers of the response are larger than 64 KiB or 256 lines")]
    HeadTooLarge,
    /// A `Content-Length` is no number, is too large or contradicts another `Content-Length` ([RFC
    /// 9112, 6.3](https://www.rfc-editor.org/rfc/rfc9112#section-6.3)).
    #[error("the Content-Length of the response is not a number or contradicts itself")]
    BadContentLength,
    /// The chunk framing is broken, or the line with the size of a chunk exceeds
    /// [`CHUNK_LINE_BYTES_MAX`](crate::h1::CHUNK_LINE_BYTES_MAX).
    #[error("the chunked framing of the response is not valid")]
    BadChunk,
    /// The response is `101 Switching Protocols`, although the request asked for no other protocol.
    #[error("the server switched protocols without a request")]
    UnexpectedUpgrade,
    /// There are more than [`INTERIM_RESPONSES_MAX`](crate::h1::INTERIM_RESPONSES_MAX) interim
    /// responses.
    #[error("the server sent more than 64 interim (1xx) responses before the final response")]
    TooManyInterim,
    /// Bytes arrived after the end of a response and before the next request.
    #[error("the server sent bytes that belong to no request")]
    Surplus,

    /// The first HTTP/2 frame of the server is not a SETTINGS frame ([RFC 9113,
    /// 3.4](https://www.rfc-editor.org/rfc/rfc9113#section-3.4)).
    #[error("the server does not speak HTTP/2 on this port")]
    NotHttp2,
    /// A frame is longer than permitted, or has a wrong length for its type ([RFC 9113,
    /// 4.2](https://www.rfc-editor.org/rfc/rfc9113#section-4.2)).
    #[error("a frame has a length that its type does not allow")]
    FrameSize,
    /// An HTTP/2 frame is not permitted at this point: its stream is wrong or missing, or the frame
    /// comes between the pieces of a head.
    #[error("a frame of this type is not allowed at this point")]
    FrameOrder,
    /// The padding of an HTTP/2 frame is as long as the frame, or longer.
    #[error("a frame's padding is longer than the frame")]
    Padding,
    /// An HTTP/2 setting of the server has an invalid value.
    #[error("a setting has a value that is not allowed")]
    Setting,
    /// The header compression (HPACK) of a head is invalid ([RFC
    /// 7541](https://www.rfc-editor.org/rfc/rfc7541)).
    #[error("the compressed header block is not valid")]
    Compression,
    /// The content exceeds its HTTP/2 flow-control window, or a flow-control window exceeds the
    /// largest size.
    #[error("the server violated the flow control")]
    Window,
    /// A window update has an increment of 0 bytes.
    #[error("the server sent a window update of zero bytes")]
    ZeroWindow,
    /// The server pushed a stream, although the client had disabled server push.
    #[error("the server pushed a stream, although plimsoll disabled server push")]
    Pushed,
    /// The server sent very many frames that do not advance any response.
    #[error("the server sent too many frames that carry no part of a response")]
    Flood,
    /// A pseudo-header field is unknown, misplaced or missing.
    #[error("the header of the response has no status, or has pseudo-headers that are not allowed")]
    PseudoHeader,
    /// The status of a response is outside 100 to 999, or not permitted at this point of the
    /// exchange.
    #[error("the status of the response is not between 100 and 999, or is not allowed at this point")]
    BadStatus,
    /// A response has a header field that HTTP/2 forbids ([RFC 9113,
    /// 8.2.2](https://www.rfc-editor.org/rfc/rfc9113#section-8.2.2)).
    #[error("the response has a connection header of HTTP/1.1, which HTTP/2 forbids")]
    ConnectionHeader,
    /// The length of the content differs from the declared length.
    #[error("the length of the response's content differs from the Content-Length")]
    WrongLength,
    /// A response has content, although no content is permitted, for example in a response to HEAD.
    #[error("the response has content where no content is allowed")]
    UnexpectedContent,
}

impl ProtocolError {
    /// Returns the HTTP/2 error code that reports the protocol error to the peer.
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

/// The reason why a response is incomplete: the connection was closed too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum EarlyCloseError {
    /// The connection was closed before the first byte of a response, for example because the
    /// server closed an idle connection.
    #[error("the server closed the connection without a response")]
    NothingReceived,
    /// The connection was closed in the middle of a response.
    #[error("the server closed the connection in the middle of a response")]
    Truncated,
}

/// The reason why an exchange (a request with its response) has no valid response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ExchangeError {
    /// The received bytes are not a valid response.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The server closed the connection before the response was complete.
    #[error(transparent)]
    End(#[from] EarlyCloseError),
    /// The connection was reset, or broke for another reason.
    #[error("the connection was reset")]
    Reset,
    /// The server reset the exchange's stream; the connection continues.
    #[error("the server reset the stream ({})", .0.name())]
    StreamReset(H2Error),
    /// The server sent a GOAWAY frame with this error code, and the exchange got no response.
    #[error("the server ended the connection with GOAWAY ({})", .0.name())]
    GoAway(H2Error),
}
