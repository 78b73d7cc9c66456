//! The events that a connection finds in received bytes, such as a complete response or a failure.

use crate::error::{ExchangeError, ProtocolError};
use plimsoll_model::{H2Error, TlsFailure};

/// The number by which the caller identifies an exchange (a request with its response).
pub type ExchangeNumber = u32;

/// A piece of a response as received, after decryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ResponsePiece<'a> {
    /// The bytes of the piece. Over HTTP/1.1, the bytes include framing and header fields, and in
    /// the last piece also surplus bytes after the response. Over HTTP/2, the bytes are only
    /// content.
    pub bytes: &'a [u8],
    /// The number of content bytes in the piece.
    pub(crate) content_bytes: usize,
    /// The index in `bytes` at which the content ends.
    pub(crate) content_end: usize,
    /// The number of gRPC messages that this piece completes.
    pub messages: u32,
}

impl<'a> ResponsePiece<'a> {
    /// Returns the content bytes in the piece. The content is complete only if the request wants
    /// the content of its response.
    pub fn content(&self) -> &'a [u8] {
        &self.bytes[self.content_end - self.content_bytes..self.content_end]
    }

    /// Returns the bytes before the content: over HTTP/1.1 the head, or the framing of a chunk.
    pub fn framing(&self) -> &'a [u8] {
        &self.bytes[..self.content_end - self.content_bytes]
    }
}

/// An event that a connection finds in received bytes, such as a complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEvent<'a> {
    /// The TLS handshake has ended, so requests can start. A plain connection, which is open at
    /// once, does not report this event.
    HandshakeDone {
        /// Whether an earlier TLS session was resumed.
        resumed: bool,
    },
    /// A piece of a response arrived, and the response is incomplete.
    Piece {
        /// The exchange of the response.
        exchange: ExchangeNumber,
        /// The status of the response, once its head is parsed.
        status: Option<u16>,
        /// The bytes that arrived.
        piece: ResponsePiece<'a>,
    },
    /// A response is complete, and further responses of the same exchange follow, because the
    /// exchange has several request messages.
    AnsweredWithMore {
        /// The exchange of the response.
        exchange: ExchangeNumber,
        /// The HTTP status of the response, 200 to 999.
        status: u16,
        /// The last piece of the response.
        piece: ResponsePiece<'a>,
    },
    /// The last or only response of an exchange is complete.
    Answered {
        /// The exchange of the response.
        exchange: ExchangeNumber,
        /// The HTTP status of the response, 200 to 999.
        status: u16,
        /// The gRPC status in the trailers of the response, or in its head if the response consists
        /// of only the head. `None`: the response has no valid gRPC status.
        grpc_status: Option<u16>,
        /// The length of the whole content in bytes, without framing.
        body_bytes: u64,
        /// The last piece of the response.
        piece: ResponsePiece<'a>,
        /// The number of bytes at the end of the piece that do not belong to the response.
        surplus: usize,
    },
    /// An exchange has failed.
    Failed {
        /// The exchange that failed.
        exchange: ExchangeNumber,
        /// The reason why the exchange failed.
        error: ExchangeError,
        /// The last received piece of the response.
        piece: ResponsePiece<'a>,
    },
    /// The server has not processed an exchange's request, so the request can be sent again on
    /// another connection.
    Refused {
        /// The exchange that was not processed.
        exchange: ExchangeNumber,
        /// The error of the exchange if its request is not sent again.
        error: ExchangeError,
    },
    /// The server sent GOAWAY: exchanges in flight may complete, and no new exchange can start.
    GoAway {
        /// The error code of the GOAWAY frame.
        error: H2Error,
    },
    /// The server broke a protocol rule while no exchange was in flight. The connection is over.
    ProtocolViolation(ProtocolError),
    /// Bytes arrived that belong to no response. The connection is over.
    Surplus(&'a [u8]),
    /// The server has nearly exhausted a flow-control window of a stream or of the connection: less
    /// than a frame fits, so the server may have to wait for the client.
    WindowNearlyEmpty,
    /// The connection has bytes to send that belong to no request, such as an acknowledgement.
    HasBytesToSend,
    /// The peer has properly ended its TLS stream. [`Conn::end_by_peer`](crate::Conn::end_by_peer)
    /// returns the effect of the end on the exchanges in flight.
    TlsStreamEnded,
    /// The TLS layer has failed, so the connection is over. The next bytes to send are a TLS alert,
    /// which tells the peer the reason.
    TlsFailed(TlsFailure),
}
