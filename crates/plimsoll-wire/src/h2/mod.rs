//! HTTP/2: the client's side, and as much of the server's side as plimsoll's reference server needs
//! ([RFC 9113]), with HPACK ([RFC 7541]).
//!
//! As over HTTP/1.1, a request is encoded once, and a response is parsed only to find its end. Only
//! three parts of a response head are used: the status, the length of the content, and the fields
//! of gRPC. Other header fields are only checked, and are stored if the request wants the content
//! of its response.
//!
//! Not here: pushed streams (refused), priorities (ignored), `CONNECT`, upgrades from HTTP/1.1.
//!
//! [RFC 9113]: https://www.rfc-editor.org/rfc/rfc9113
//! [RFC 7541]: https://www.rfc-editor.org/rfc/rfc7541

mod client;
mod frame;
mod head;
mod hpack;
mod huffman;
mod request;
mod serving;
mod window;

pub use frame::{BLOCK_BYTES_MAX, CONNECTION_PREFACE};
pub use hpack::{HpackDecoder, HpackError, Secrecy, TABLE_BYTES, write_field};
pub use serving::{Content, H2Server, ServerEvent};

pub(crate) use client::H2;
pub(crate) use request::{H2Request, is_call, read, write};
