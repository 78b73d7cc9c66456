//! Encrypts and decrypts TLS records through rustls's unbuffered interface. The unbuffered
//! interface reads and writes the caller's memory, so a connection needs no buffers of rustls, and
//! encrypted records need no list of chunks.
//!
//! Not here: when a session reads and writes (the parent module).

use rustls::client::ClientConnectionData;
use rustls::server::ServerConnectionData;
use rustls::unbuffered::{
    EncodeError, EncodeTlsData, EncryptError, UnbufferedConnectionCommon, UnbufferedStatus, WriteTraffic,
};

/// The maximum length of the plain text of a record (RFC 8446, section 5.1).
const RECORD_TEXT_BYTES_MAX: usize = 1 << 14;
/// The maximum number of bytes that encryption adds to the plain text of a record, over all cipher
/// suites that rustls supports. The header has 5 bytes, and AES-GCM in TLS 1.2 adds 24 bytes (RFC
/// 5288, section 3).
const RECORD_OVERHEAD_BYTES_MAX: usize = 5 + 24;
/// The maximum length of an encrypted close_notify alert, whose plain text has 2 bytes.
const CLOSE_NOTIFY_BYTES_MAX: usize = 2 + RECORD_OVERHEAD_BYTES_MAX;

/// Processes the TLS records of a client's or a server's connection. The trait is needed because
/// rustls's client and server methods have equal names but no common trait.
pub trait ProcessRecords: Sized + 'static {
    /// Processes received records until plain text is available, a message must be sent, or more
    /// bytes are needed.
    fn process_records<'c, 'r>(
        connection: &'c mut UnbufferedConnectionCommon<Self>,
        received: &'r mut [u8],
    ) -> UnbufferedStatus<'c, 'r, Self>;
}

impl ProcessRecords for ClientConnectionData {
    #[inline]
    fn process_records<'c, 'r>(
        connection: &'c mut UnbufferedConnectionCommon<Self>,
        received: &'r mut [u8],
    ) -> UnbufferedStatus<'c, 'r, Self> {
        connection.process_tls_records(received)
    }
}

impl ProcessRecords for ServerConnectionData {
    #[inline]
    fn process_records<'c, 'r>(
        connection: &'c mut UnbufferedConnectionCommon<Self>,
        received: &'r mut [u8],
    ) -> UnbufferedStatus<'c, 'r, Self> {
        connection.process_tls_records(received)
    }
}

/// Appends a message of the handshake, or an alert, to `out`.
pub(super) fn append_message<D>(message: &mut EncodeTlsData<'_, D>, out: &mut Vec<u8>) {
    append_sized(out, 0, |_, space| match message.encode(space) {
        Ok(written) => WriteOutcome::Bytes(written),
        Err(EncodeError::InsufficientSize(missing)) => WriteOutcome::TooSmall(missing.required_size),
        Err(EncodeError::AlreadyEncoded) => WriteOutcome::Bytes(0),
    });
}

/// Encrypts `plain` and appends it to `out`. Returns false if the connection cannot encrypt any
/// more, because the number of records for one TLS 1.2 key is limited.
pub(super) fn append_encrypted<D>(traffic: &mut WriteTraffic<'_, D>, plain: &[u8], out: &mut Vec<u8>) -> bool {
    append_sized(out, encrypted_bytes_max(plain.len()), |_, space| {
        WriteOutcome::from_encryption(traffic.encrypt(plain, space))
    })
}

/// Replaces `bytes` by their encrypted form. Returns false if the connection cannot encrypt any
/// more, as [`append_encrypted`] does.
pub(super) fn replace_by_encrypted<D>(traffic: &mut WriteTraffic<'_, D>, bytes: &mut Vec<u8>) -> bool {
    let plain_bytes = bytes.len();
    let is_encrypted = append_sized(bytes, encrypted_bytes_max(plain_bytes), |plain, space| {
        WriteOutcome::from_encryption(traffic.encrypt(plain, space))
    });
    bytes.drain(..plain_bytes);
    is_encrypted
}

/// Appends the encrypted close_notify alert, which ends the TLS stream, to `out`.
pub(super) fn append_close_notify<D>(traffic: &mut WriteTraffic<'_, D>, out: &mut Vec<u8>) {
    append_sized(out, CLOSE_NOTIFY_BYTES_MAX, |_, space| {
        WriteOutcome::from_encryption(traffic.queue_close_notify(space))
    });
}

/// Returns the maximum total length of the encrypted records for `plain_bytes` bytes of plain text.
fn encrypted_bytes_max(plain_bytes: usize) -> usize {
    plain_bytes + records_max(plain_bytes) * RECORD_OVERHEAD_BYTES_MAX
}

/// Returns the maximum number of records for `plain_bytes` bytes of plain text.
#[inline]
pub(super) fn records_max(plain_bytes: usize) -> usize {
    plain_bytes / RECORD_TEXT_BYTES_MAX + 1
}

/// The result of an attempt to write into a buffer of limited size.
enum WriteOutcome {
    /// The number of bytes written.
    Bytes(usize),
    /// Nothing was written, because the buffer must have at least this number of bytes.
    TooSmall(usize),
    /// Nothing was written, because the connection cannot encrypt any more.
    Refused,
}

impl WriteOutcome {
    fn from_encryption(result: Result<usize, EncryptError>) -> WriteOutcome {
        match result {
            Ok(written) => WriteOutcome::Bytes(written),
            Err(EncryptError::InsufficientSize(missing)) => WriteOutcome::TooSmall(missing.required_size),
            Err(EncryptError::EncryptExhausted) => WriteOutcome::Refused,
        }
    }
}

/// Extends `out` by a space of `size_bytes` bytes, and lets `write` fill the space. If `write`
/// needs a larger space, `write` is called again with a space of the size it needs. The first
/// argument of `write` is the earlier content of `out`. Returns false if nothing was written.
fn append_sized(
    out: &mut Vec<u8>,
    mut size_bytes: usize,
    mut write: impl FnMut(&[u8], &mut [u8]) -> WriteOutcome,
) -> bool {
    let start = out.len();
    loop {
        out.resize(start + size_bytes, 0);
        let (before, space) = out.split_at_mut(start);
        match write(before, space) {
            WriteOutcome::Bytes(written) => {
                out.truncate(start + written);
                return true;
            }
            WriteOutcome::TooSmall(larger_bytes) if larger_bytes > size_bytes => size_bytes = larger_bytes,
            WriteOutcome::TooSmall(_) | WriteOutcome::Refused => {
                out.truncate(start);
                return false;
            }
        }
    }
}
