//! Records of TLS, as rustls's interface without buffers reads and writes them. This interface
//! decrypts in the memory of its caller, so that no received byte is copied through a second buffer
//! and no list of chunks is written.
//!
//! Not here: when a session reads and writes (the parent module).

use rustls::client::ClientConnectionData;
use rustls::server::ServerConnectionData;
use rustls::unbuffered::{
    EncodeError, EncodeTlsData, EncryptError, UnbufferedConnectionCommon, UnbufferedStatus, WriteTraffic,
};

/// The maximum length of the plain text of a record (RFC 8446, section 5.1).
const RECORD_TEXT_BYTES_MAX: usize = 1 << 14;
/// What encryption adds to the plain text of a record, at most, in the cipher suites that rustls
/// supports: the header of 5 bytes, and 24 bytes of AES-GCM in TLS 1.2 (RFC 5288, section 3).
const RECORD_OVERHEAD_BYTES_MAX: usize = 5 + 24;
/// A close_notify alert of 2 bytes with its record.
const CLOSE_NOTIFY_BYTES_MAX: usize = 2 + RECORD_OVERHEAD_BYTES_MAX;

/// The client's or the server's data of a rustls connection. rustls gives the two sides methods of
/// the same name without a common trait.
pub trait ProcessRecords: Sized + 'static {
    /// Processes received records until plain text is read, a message is to be sent, or more bytes
    /// are needed.
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
        Ok(written) => Written::Bytes(written),
        Err(EncodeError::InsufficientSize(missing)) => Written::Needs(missing.required_size),
        Err(EncodeError::AlreadyEncoded) => Written::Bytes(0),
    });
}

/// Encrypts `plain` and appends it to `out`. Returns whether the connection can still encrypt: over
/// TLS 1.2, the number of records with one key is limited.
pub(super) fn append_encrypted<D>(traffic: &mut WriteTraffic<'_, D>, plain: &[u8], out: &mut Vec<u8>) -> bool {
    append_sized(out, encrypted_bytes_max(plain.len()), |_, space| {
        Written::from_encryption(traffic.encrypt(plain, space))
    })
}

/// Encrypts all bytes of `bytes`, and replaces them by the encrypted bytes. Returns the same as
/// [`append_encrypted`].
pub(super) fn replace_by_encrypted<D>(traffic: &mut WriteTraffic<'_, D>, bytes: &mut Vec<u8>) -> bool {
    let plain_bytes = bytes.len();
    let is_encrypted = append_sized(bytes, encrypted_bytes_max(plain_bytes), |plain, space| {
        Written::from_encryption(traffic.encrypt(plain, space))
    });
    bytes.drain(..plain_bytes);
    is_encrypted
}

/// Appends the alert that ends the stream to `out`.
pub(super) fn append_close_notify<D>(traffic: &mut WriteTraffic<'_, D>, out: &mut Vec<u8>) {
    append_sized(out, CLOSE_NOTIFY_BYTES_MAX, |_, space| Written::from_encryption(traffic.queue_close_notify(space)));
}

/// Returns the length of encrypted records with `plain_bytes` bytes of plain text, at most.
fn encrypted_bytes_max(plain_bytes: usize) -> usize {
    plain_bytes + (plain_bytes / RECORD_TEXT_BYTES_MAX + 1) * RECORD_OVERHEAD_BYTES_MAX
}

/// The result of an attempt to write into a space of a certain size.
enum Written {
    /// The number of bytes written.
    Bytes(usize),
    /// Nothing was written, because the space must have at least this number of bytes.
    Needs(usize),
    /// Nothing can be written any more.
    Refused,
}

impl Written {
    fn from_encryption(result: Result<usize, EncryptError>) -> Written {
        match result {
            Ok(written) => Written::Bytes(written),
            Err(EncryptError::InsufficientSize(missing)) => Written::Needs(missing.required_size),
            Err(EncryptError::EncryptExhausted) => Written::Refused,
        }
    }
}

/// Appends to `out` what `write` writes into a space of `size_bytes`, or of the size that `write`
/// asks for. `write` also receives the bytes before the space. Returns false if `write` refused.
fn append_sized(out: &mut Vec<u8>, mut size_bytes: usize, mut write: impl FnMut(&[u8], &mut [u8]) -> Written) -> bool {
    let start = out.len();
    loop {
        out.resize(start + size_bytes, 0);
        let (before, space) = out.split_at_mut(start);
        match write(before, space) {
            Written::Bytes(written) => {
                out.truncate(start + written);
                return true;
            }
            Written::Needs(larger_bytes) if larger_bytes > size_bytes => size_bytes = larger_bytes,
            Written::Needs(_) | Written::Refused => {
                out.truncate(start);
                return false;
            }
        }
    }
}
