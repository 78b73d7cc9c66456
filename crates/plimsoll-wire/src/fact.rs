//! What a connection has to tell of the bytes that came: facts, one at a time, in the order in
//! which they happened.

use crate::error::{ExchangeError, ProtocolError};
use plimsoll_model::{H2Error, TlsFailure};

/// The number that the caller gave an exchange.
pub type ExchangeNumber = u32;

/// Bytes of an answer as they came, without TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Piece<'a> {
    /// Over HTTP/1.1 with the framing and fields among them, those that end an answer with what
    /// came beyond it; over HTTP/2 its content alone.
    pub bytes: &'a [u8],
    /// How many of them are content, and where that ends.
    pub(crate) content_bytes: usize,
    pub(crate) content_end: usize,
    /// How many messages are whole with it, of an answer to a call of gRPC's.
    pub messages: u32,
}

impl<'a> Piece<'a> {
    /// Those of the bytes that are content, if the request asks for content.
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
    /// TLS is agreed on: requests can be started. Nobody is told so of a plain connection, which
    /// stands at once.
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
        /// What of it came last.
        piece: Piece<'a>,
    },
    /// An answer is whole, the last or only one of its exchange.
    Answered {
        /// Whose.
        exchange: ExchangeNumber,
        /// Its status, 200 to 999.
        status: u16,
        /// What gRPC's status says in it, in its trailers or, where it has nothing else, in its
        /// head.
        grpc_status: Option<u16>,
        /// Bytes of content in all, without framing.
        body_bytes: u64,
        /// What of it came last.
        piece: Piece<'a>,
        /// How many bytes, the last of the piece, came after it and belong to no answer.
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
        /// What has become of it, if it is not asked again.
        error: ExchangeError,
    },
    /// The server is about to end the connection: what it has taken it may still answer, and no
    /// exchange can be started any more.
    Leaves {
        /// Why.
        error: H2Error,
    },
    /// The server has broken a rule, and no exchange was under way: the connection is over.
    Broke(ProtocolError),
    /// Bytes that no request asked for: the connection is over.
    Surplus(&'a [u8]),
    /// The server has used up what it might send until it is told of more, of one answer or of all
    /// together: it waits for us.
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
