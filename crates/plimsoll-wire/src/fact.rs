//! Facts about received bytes of a connection, one at a time, in order.

use crate::error::{ExchangeError, ProtocolError};
use plimsoll_model::{H2Error, TlsFailure};

/// The number that the caller gave an exchange.
pub type ExchangeNumber = u32;

/// A piece of a response as received, without TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Piece<'a> {
    /// Over HTTP/1.1 with framing and header fields; the last piece includes surplus bytes. Over
    /// HTTP/2 only content.
    pub bytes: &'a [u8],
    /// Number of content bytes in the piece, and the index at which they end.
    pub(crate) content_bytes: usize,
    pub(crate) content_end: usize,
    /// Number of messages that this piece completes, in a gRPC response.
    pub messages: u32,
}

impl<'a> Piece<'a> {
    /// The content in these bytes, if the request wants content.
    pub fn content(&self) -> &'a [u8] {
        &self.bytes[self.content_end - self.content_bytes..self.content_end]
    }

    /// The bytes before the content: over HTTP/1.1 the head, or the framing of a chunk.
    pub fn framing(&self) -> &'a [u8] {
        &self.bytes[..self.content_end - self.content_bytes]
    }
}

/// Something that follows from received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact<'a> {
    /// The TLS handshake has ended: requests can start. Not reported for a plain connection, which
    /// is open at once.
    Stands {
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
        piece: Piece<'a>,
    },
    /// A response is complete, and further ones follow, because the exchange has several messages.
    AnsweredOneOf {
        /// The exchange of the response.
        exchange: ExchangeNumber,
        /// The status, 200 to 999.
        status: u16,
        /// The last piece of the response.
        piece: Piece<'a>,
    },
    /// A response is complete: the last or only one of its exchange.
    Answered {
        /// The exchange of the response.
        exchange: ExchangeNumber,
        /// The status, 200 to 999.
        status: u16,
        /// The gRPC status in its trailers, or in its head if it has nothing else.
        grpc_status: Option<u16>,
        /// Length of the whole content in bytes, without framing.
        body_bytes: u64,
        /// The last piece of the response.
        piece: Piece<'a>,
        /// Number of bytes at the end of the piece that do not belong to the response.
        surplus: usize,
    },
    /// An exchange has failed.
    Failed {
        /// The exchange that failed.
        exchange: ExchangeNumber,
        /// Why the exchange failed.
        error: ExchangeError,
        /// The last received piece of the response.
        piece: Piece<'a>,
    },
    /// The server has not processed an exchange's request: it can be sent again on another
    /// connection.
    Refused {
        /// The exchange that was not processed.
        exchange: ExchangeNumber,
        /// The error, unless the exchange is sent again.
        error: ExchangeError,
    },
    /// The server will end the connection: exchanges in flight may complete, and no new one can
    /// start.
    Leaves {
        /// The error code of the GOAWAY frame.
        error: H2Error,
    },
    /// The server broke a protocol rule while no exchange was in flight. The connection is over.
    Broke(ProtocolError),
    /// Bytes arrived that belong to no response. The connection is over.
    Surplus(&'a [u8]),
    /// The server has used up a flow-control window of a stream or of the connection, so that it
    /// must wait for the client.
    WindowEmpty,
    /// There are bytes to send that no request caused, such as an acknowledgement.
    Owes,
    /// The peer has properly ended its TLS stream. [`Conn::end`](crate::Conn::end) returns what
    /// follows.
    Ended,
    /// TLS has failed. The bytes to send now are the alert for the peer. The connection is over.
    TlsFailed(TlsFailure),
}
