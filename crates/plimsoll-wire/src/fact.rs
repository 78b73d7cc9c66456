//! Facts about received bytes of a connection, one at a time, in order.

use crate::error::{ExchangeError, ProtocolError};
use plimsoll_model::{H2Error, TlsFailure};

/// The number that the caller gave an exchange.
pub type ExchangeNumber = u32;

/// Bytes of an answer as they came, without TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Piece<'a> {
    /// Over HTTP/1.1 with framing and header fields; the last piece includes surplus bytes. Over
    /// HTTP/2 only content.
    pub bytes: &'a [u8],
    /// How many of them are content, and where that ends.
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

    /// What comes before its content: over HTTP/1.1 the head, or the framing of a chunk.
    pub fn framing(&self) -> &'a [u8] {
        &self.bytes[..self.content_end - self.content_bytes]
    }
}

/// Something that has come true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact<'a> {
    /// The TLS handshake has ended: requests can start. Not reported for a plain connection, which
    /// is open at once.
    Stands {
        /// An earlier session was taken up again.
        resumed: bool,
    },
    /// More of an answer has come, and it goes on.
    Piece {
        /// Whose.
        exchange: ExchangeNumber,
        /// Its status, once its head is read.
        status: Option<u16>,
        /// What has come.
        piece: Piece<'a>,
    },
    /// An answer is whole, and more are to come: the exchange has several messages.
    AnsweredOneOf {
        /// Whose.
        exchange: ExchangeNumber,
        /// Its status, 200 to 999.
        status: u16,
        /// The last piece.
        piece: Piece<'a>,
    },
    /// An answer is whole, the last or only one of its exchange.
    Answered {
        /// Whose.
        exchange: ExchangeNumber,
        /// Its status, 200 to 999.
        status: u16,
        /// The gRPC status in its trailers, or in its head if it has nothing else.
        grpc_status: Option<u16>,
        /// Bytes of content in all, without framing.
        body_bytes: u64,
        /// The last piece.
        piece: Piece<'a>,
        /// Number of bytes at the end of the piece that do not belong to the response.
        surplus: usize,
    },
    /// An exchange has come to nothing.
    Failed {
        /// Which.
        exchange: ExchangeNumber,
        /// Why.
        error: ExchangeError,
        /// What came last.
        piece: Piece<'a>,
    },
    /// The server has not taken an exchange's request, and has done nothing for it: it can be asked
    /// again, elsewhere.
    Refused {
        /// Which.
        exchange: ExchangeNumber,
        /// The error, unless the exchange is sent again.
        error: ExchangeError,
    },
    /// The server will end the connection: exchanges in flight may complete, and no new one can
    /// start.
    Leaves {
        /// Why.
        error: H2Error,
    },
    /// The server has broken a rule, and no exchange was under way: the connection is over.
    Broke(ProtocolError),
    /// Bytes that no request asked for: the connection is over.
    Surplus(&'a [u8]),
    /// The server has used up a flow-control window, of one stream or of the connection: it waits
    /// for the client.
    WindowEmpty,
    /// Something is to be sent that no request asked for, such as an acknowledgement.
    Owes,
    /// The peer has ended its stream in a way that TLS vouches for: [`Conn::end`](crate::Conn::end)
    /// says what follows.
    Ended,
    /// TLS has failed. What is to be sent now is the alert that tells the peer; the connection is
    /// over.
    TlsFailed(TlsFailure),
}
