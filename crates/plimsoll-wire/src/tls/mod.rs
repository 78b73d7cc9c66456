//! TLS as a layer without I/O between the network and a protocol: decrypts received bytes, and
//! encrypts bytes to send.
//!
//! All connections of a thread share a [`Client`], with the trusted issuers, the client certificate
//! and resumable sessions. A [`Session`] is one connection of a client or a server. All connections
//! of a server share a [`ServerTls`]. The plan of a run contains the offered protocols, and the
//! session contains the negotiated protocol (ALPN).
//!
//! The cryptographic library is rustls with ring. Not here: sockets, timeouts, files.

mod fault;
mod parameters;
mod records;
mod serving;
mod trust;

pub use fault::{ConfigError, tls_failure_from_error};
pub use parameters::TlsParameters;
use records::ProcessRecords;
pub use serving::{ServerSession, ServerTls};

use plimsoll_model::{TlsFailure, TlsSpec};
use rustls::client::UnbufferedClientConnection;
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::unbuffered::{ConnectionState, UnbufferedConnectionCommon, UnbufferedStatus, WriteTraffic};
use rustls::{ClientConfig, HandshakeKind, ProtocolVersion, SignatureScheme};
use std::ops::DerefMut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of TLS sessions that are stored for resumption. A single server name needs no more
/// stored sessions.
const SESSIONS_KEPT: usize = 8;
/// The maximum size of the empty receive buffer that a session keeps for reuse, bytes. Most
/// responses of an API are shorter than the limit, and thousands of idle connections need little
/// memory.
const RECEIVE_BUFFER_KEPT_BYTES_MAX: usize = 4 << 10;
/// The maximum number of received bytes that a session decrypts at once, so that the receive buffer
/// stays small. A record, which has at most 16 KiB of plain text, may need several steps.
const RECEIVED_AT_ONCE_BYTES_MAX: usize = 8 << 10;
/// The maximum number of received bytes that a session keeps while a record or a handshake message
/// is incomplete. A handshake message has at most 64 KiB, and may be split into small records with
/// headers of their own. rustls's interface without buffers sets no limit.
const RECEIVED_BYTES_MAX: usize = 128 << 10;
/// The number of records after which a connection over TLS 1.2 sends no further request. rustls
/// encrypts at most 2^24 records with one AES-GCM key. The difference of 2^16 records is room for a
/// request of 1 GiB.
const RECORDS_PER_KEY_MAX: u64 = (1 << 24) - (1 << 16);

/// Parses the certificates of a PEM file. Returns `None` if the file has no certificate or an
/// invalid certificate.
pub fn certificates(pem: &[u8]) -> Option<Vec<Vec<u8>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found: Vec<Vec<u8>> = found.ok()?.into_iter().map(|certificate| certificate.to_vec()).collect();
    (!found.is_empty()).then_some(found)
}

/// Parses the certificate of a client or server with its chain, and its private key. If `key_pem`
/// is `None`, `pem` also contains the key.
fn parse_certificate_and_key(
    pem: &[u8],
    key_pem: Option<&[u8]>,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), ConfigError> {
    let chain = certificates(pem).ok_or(ConfigError::Certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key_pem.unwrap_or(pem)).map_err(|_| ConfigError::Key)?;
    Ok((chain.into_iter().map(CertificateDer::from).collect(), key))
}

/// The TLS state that the connections of one thread share.
#[derive(Debug, Clone)]
pub struct Client {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    resume: bool,
    certificate_request: Arc<CertificateRequestFlag>,
}

/// For a client without a certificate, whether a server has asked for a client certificate.
#[derive(Debug, Default)]
struct CertificateRequestFlag(AtomicBool);

impl ResolvesClientCert for CertificateRequestFlag {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.store(true, Ordering::Relaxed);
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

impl Client {
    /// Creates the client for the options `spec`. Returns an error if the options are invalid.
    pub fn new(spec: &TlsSpec) -> Result<Client, ConfigError> {
        let name = ServerName::try_from(spec.server_name.clone())
            .map_err(|_| ConfigError::ServerName(spec.server_name.clone()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let other = |error: rustls::Error| ConfigError::Other(error.to_string());
        let verifier = trust::verifier(spec, &provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(other)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let asked = Arc::new(CertificateRequestFlag::default());
        let mut config = match &spec.certificate_pem {
            None => builder.with_client_cert_resolver(Arc::clone(&asked) as Arc<dyn ResolvesClientCert>),
            Some(pem) => {
                let (chain, key) = parse_certificate_and_key(pem, spec.key_pem.as_deref())?;
                builder.with_client_auth_cert(chain, key).map_err(|e| ConfigError::Pair(e.to_string()))?
            }
        };
        config.alpn_protocols = spec.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.resumption = session_resumption(spec.resume);
        Ok(Client { config: Arc::new(config), name, resume: spec.resume, certificate_request: asked })
    }

    /// Creates the same client for another thread, with separate resumable sessions.
    pub fn for_thread(&self) -> Client {
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = session_resumption(self.resume);
        Client { config: Arc::new(config), ..self.clone() }
    }

    /// Returns whether HTTP/2 is the only protocol that the client offers.
    pub(crate) fn offers_only_h2(&self) -> bool {
        let offered = &self.config.alpn_protocols;
        !offered.is_empty() && offered.iter().all(|name| name == b"h2")
    }

    /// Creates the session of a new connection, whose first message is ready to be sent. Returns
    /// the failure if the TLS library refuses the session.
    pub fn session(&self) -> Result<Session, TlsFailure> {
        UnbufferedClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .and_then(|connection| Session::new(connection, Some(Arc::clone(&self.certificate_request))))
            .map_err(|error| tls_failure_from_error(&error))
    }
}

fn session_resumption(resume: bool) -> Resumption {
    if resume { Resumption::in_memory_sessions(SESSIONS_KEPT) } else { Resumption::disabled() }
}

/// The events, other than plain text, that received bytes caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionEvents {
    /// Whether the handshake has just ended.
    pub is_handshake_done: bool,
    /// Whether the peer has properly ended its stream, so that nothing follows.
    pub is_stream_ended: bool,
}

/// The TLS state of one connection of a client, or of a server ([`ServerSession`]).
pub struct Session<C = UnbufferedClientConnection> {
    connection: Box<C>,
    /// Received bytes that are not yet decrypted: the beginning of a record, or of a message of the
    /// handshake.
    received: Vec<u8>,
    /// Bytes to send that no plain text caused: the handshake, and alerts.
    to_send: Vec<u8>,
    /// The number of records that the session has encrypted, at most.
    records_encrypted_max: u64,
    established: bool,
    /// Whether the peer has properly ended its stream. Bytes after the end are ignored.
    ended: bool,
    /// The failure that ended the session.
    failure: Option<TlsFailure>,
    /// For a client without a certificate, whether the server has asked for a client certificate.
    asked: Option<Arc<CertificateRequestFlag>>,
}

impl<C, D> Session<C>
where
    C: DerefMut<Target = UnbufferedConnectionCommon<D>>,
    D: ProcessRecords,
{
    /// Creates the session of a new connection. The first message of a client is ready to be sent.
    fn new(connection: C, asked: Option<Arc<CertificateRequestFlag>>) -> Result<Session<C>, rustls::Error> {
        let mut session = Session {
            connection: Box::new(connection),
            received: Vec::new(),
            to_send: Vec::new(),
            records_encrypted_max: 0,
            established: false,
            ended: false,
            failure: None,
            asked,
        };
        session.process_received(&mut Vec::new())?;
        Ok(session)
    }

    /// Decrypts bytes from the network and appends the plain text to `plain`.
    ///
    /// After an error the session is over, and the remaining bytes to send are the TLS alert for
    /// the peer.
    pub fn receive(&mut self, cipher: &[u8], plain: &mut Vec<u8>) -> Result<SessionEvents, TlsFailure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if self.ended {
            return Ok(SessionEvents::default());
        }
        for piece in cipher.chunks(RECEIVED_AT_ONCE_BYTES_MAX) {
            self.received.extend_from_slice(piece);
            let failure = match self.process_received(plain) {
                Err(error) => self.failure_from_error(&error),
                Ok(()) if self.received.len() > RECEIVED_BYTES_MAX => TlsFailure::Other,
                Ok(()) => continue,
            };
            self.failure = Some(failure);
            self.received = Vec::new();
            return Err(failure);
        }
        let established = !self.established && !self.connection.is_handshaking();
        self.established |= established;
        Ok(SessionEvents { is_handshake_done: established, is_stream_ended: self.ended })
    }

    /// Decrypts the received records, continues the handshake, and appends the plain text to
    /// `plain`. After an error, the alert for the peer is in the bytes to send.
    fn process_received(&mut self, plain: &mut Vec<u8>) -> Result<(), rustls::Error> {
        let mut done_bytes = 0;
        let result = loop {
            let UnbufferedStatus { discard, state, .. } =
                D::process_records(&mut self.connection, &mut self.received[done_bytes..]);
            done_bytes += discard;
            match state {
                Ok(ConnectionState::ReadTraffic(mut records)) => {
                    while let Some(record) = records.next_record() {
                        let Ok(record) = record else { break };
                        done_bytes += record.discard;
                        plain.extend_from_slice(record.payload);
                    }
                    // The loop usually ends here, because one record contains a whole response, and
                    // no message waits to be sent.
                    let is_message_waiting = !self.to_send.is_empty() || self.connection.wants_write();
                    if done_bytes == self.received.len() && !is_message_waiting {
                        break Ok(());
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut message)) => {
                    records::append_message(&mut message, &mut self.to_send)
                }
                Ok(ConnectionState::TransmitTlsData(messages)) => messages.done(),
                Ok(ConnectionState::PeerClosed) => self.ended = true,
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if result.is_err() {
            self.append_alerts(done_bytes);
        }
        if done_bytes == self.received.len() {
            self.received.clear();
            self.received.shrink_to(RECEIVE_BUFFER_KEPT_BYTES_MAX);
        } else {
            self.received.drain(..done_bytes);
        }
        result
    }

    /// Appends the alerts that rustls has prepared to the bytes to send. `done_bytes` is the number
    /// of received bytes that are already processed. The method processes no received bytes.
    fn append_alerts(&mut self, done_bytes: usize) {
        while self.connection.wants_write()
            && let Ok(ConnectionState::EncodeTlsData(mut message)) =
                D::process_records(&mut self.connection, &mut self.received[done_bytes..]).state
        {
            records::append_message(&mut message, &mut self.to_send);
        }
    }

    /// Returns the failure reason under which plimsoll counts a TLS error. Before TLS 1.3, a server
    /// that demands a client certificate reports only a failed handshake.
    fn failure_from_error(&self, error: &rustls::Error) -> TlsFailure {
        let is_asked = self.asked.as_ref().is_some_and(|asked| asked.0.load(Ordering::Relaxed));
        match error {
            rustls::Error::AlertReceived(rustls::AlertDescription::HandshakeFailure) if is_asked => {
                TlsFailure::ClientCertificate
            }
            error => tls_failure_from_error(error),
        }
    }

    /// Encrypts plain text, and appends it to `out` after the bytes that wait to be sent. Returns
    /// false if the plain text cannot be sent: the handshake has not ended, the session has failed,
    /// or the key is exhausted.
    pub fn append_encrypted(&mut self, plain: &[u8], out: &mut Vec<u8>) -> bool {
        self.take_bytes_to_send(out);
        let is_encrypted = self.encrypt_with(plain.len(), |traffic| records::append_encrypted(traffic, plain, out));
        self.take_bytes_to_send(out);
        is_encrypted
    }

    /// Replaces `bytes` by the bytes that wait to be sent and the encrypted `bytes`. If the result
    /// is false, `bytes` could not be encrypted, for the same reasons as in
    /// [`append_encrypted`](Self::append_encrypted).
    pub fn encrypt(&mut self, bytes: &mut Vec<u8>) -> bool {
        let is_encrypted = self.encrypt_with(bytes.len(), |traffic| records::replace_by_encrypted(traffic, bytes));
        if !is_encrypted {
            bytes.clear();
        }
        if !self.to_send.is_empty() {
            bytes.splice(..0, std::mem::take(&mut self.to_send));
        }
        is_encrypted
    }

    /// Lets `encrypt` encrypt `plain_bytes` bytes of plain text, and returns the result of
    /// `encrypt`. Returns false if the session cannot encrypt. If the key is exhausted, the alert
    /// that ends the stream waits to be sent.
    #[inline]
    fn encrypt_with(&mut self, plain_bytes: usize, encrypt: impl FnOnce(&mut WriteTraffic<'_, D>) -> bool) -> bool {
        // rustls must see no other received bytes after a failure than the bytes that failed, and
        // these bytes are dropped.
        if self.failure.is_some() {
            return false;
        }
        self.records_encrypted_max += records::records_max(plain_bytes) as u64;
        let state = D::process_records(&mut self.connection, &mut self.received).state;
        let is_encrypted = match state {
            Ok(ConnectionState::WriteTraffic(mut traffic)) => encrypt(&mut traffic),
            _ => false,
        };
        if !is_encrypted {
            self.append_alerts(0);
        }
        is_encrypted
    }

    /// Appends to `out` the bytes that wait to be sent, and removes these bytes from the session.
    pub fn take_bytes_to_send(&mut self, out: &mut Vec<u8>) {
        if !self.to_send.is_empty() {
            out.append(&mut std::mem::take(&mut self.to_send));
        }
    }

    /// Ends the TLS stream properly, with a close_notify alert.
    pub fn queue_close_notify(&mut self) {
        if self.failure.is_some() {
            return;
        }
        let state = D::process_records(&mut self.connection, &mut self.received).state;
        if let Ok(ConnectionState::WriteTraffic(mut traffic)) = state {
            records::append_close_notify(&mut traffic, &mut self.to_send);
        }
    }

    /// Returns whether a handshake message or an alert waits to be sent.
    pub fn wants_to_send(&self) -> bool {
        !self.to_send.is_empty()
    }

    /// Returns whether the connection should send no further request, because the key has encrypted
    /// nearly as many records as the TLS library permits. Over TLS 1.3, the library renews the key.
    #[inline]
    pub fn is_key_nearly_exhausted(&self) -> bool {
        self.records_encrypted_max >= RECORDS_PER_KEY_MAX
            && self.connection.protocol_version() == Some(ProtocolVersion::TLSv1_2)
    }

    /// Returns whether the handshake has ended.
    #[inline]
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Returns whether the connection resumed an earlier session.
    pub fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Returns the negotiated protocol (ALPN), once the handshake has ended.
    pub fn alpn_protocol(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }
}

impl Session {
    /// Returns the negotiated TLS parameters, once the handshake has ended.
    pub fn tls_parameters(&self) -> Option<TlsParameters> {
        TlsParameters::from_connection(&self.connection)
    }
}

impl<C> std::fmt::Debug for Session<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("established", &self.established).finish_non_exhaustive()
    }
}
