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
mod serving;
mod trust;

pub use fault::{ConfigError, tls_failure_from_error};
pub use parameters::TlsParameters;
pub use serving::{ServedSession, ServerTls};

use plimsoll_model::{TlsFailure, TlsSpec};
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, ConnectionCommon, HandshakeKind, SignatureScheme};
use std::io::{BufRead, Write};
use std::ops::DerefMut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of TLS sessions that are stored for resumption. A single server name needs no more
/// stored sessions.
const SESSIONS_KEPT: usize = 8;
/// The maximum number of encrypted bytes that wait to be sent in a session. At the maximum, the
/// session accepts no more plain text.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// Parses the certificates of a PEM file. Returns `None` if the file has no certificate or an
/// invalid certificate.
pub fn certificates(pem: &[u8]) -> Option<Vec<Vec<u8>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found: Vec<Vec<u8>> = found.ok()?.into_iter().map(|certificate| certificate.to_vec()).collect();
    (!found.is_empty()).then_some(found)
}

/// Parses the certificate of a client or server with its chain, and its private key. Without
/// `key_pem`, the key is in `pem`, too.
fn own_certificate(
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
    asked: Arc<CertificateRequestFlag>,
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
                let (chain, key) = own_certificate(pem, spec.key_pem.as_deref())?;
                builder.with_client_auth_cert(chain, key).map_err(|e| ConfigError::Pair(e.to_string()))?
            }
        };
        config.alpn_protocols = spec.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.resumption = session_resumption(spec.resume);
        Ok(Client { config: Arc::new(config), name, resume: spec.resume, asked })
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
        let mut connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .map_err(|error| tls_failure_from_error(&error))?;
        connection.set_buffer_limit(Some(WAITING_BYTES_MAX));
        Ok(Session { connection: Box::new(connection), established: false, asked: Some(Arc::clone(&self.asked)) })
    }
}

fn session_resumption(resume: bool) -> Resumption {
    if resume { Resumption::in_memory_sessions(SESSIONS_KEPT) } else { Resumption::disabled() }
}

/// The events, other than plain text, that received bytes caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionEvents {
    /// Whether the handshake has just ended.
    pub established: bool,
    /// Whether the peer has properly ended its stream, so that nothing follows.
    pub ended: bool,
}

/// The TLS state of one connection of a client, or of a server ([`ServedSession`]).
pub struct Session<C = ClientConnection> {
    connection: Box<C>,
    established: bool,
    /// For a client without a certificate, whether the server has asked for a client certificate.
    asked: Option<Arc<CertificateRequestFlag>>,
}

impl<C, D> Session<C>
where
    C: DerefMut<Target = ConnectionCommon<D>>,
    D: 'static,
{
    /// Decrypts bytes from the network and appends the plain text to `plain`.
    ///
    /// After an error the session is over, and the remaining bytes to send are the TLS alert for
    /// the peer.
    pub fn receive(&mut self, mut cipher: &[u8], plain: &mut Vec<u8>) -> Result<SessionEvents, TlsFailure> {
        let mut news = SessionEvents::default();
        while !cipher.is_empty() {
            // Bytes after the end of the TLS stream are ignored.
            let taken = self.connection.read_tls(&mut cipher).map_err(|_| TlsFailure::Other)?;
            if taken == 0 {
                news.ended = true;
                break;
            }
            let state = self.connection.process_new_packets().map_err(|error| self.failure_of(&error))?;
            if state.plaintext_bytes_to_read() > 0 {
                let mut reader = self.connection.reader();
                while let Ok(bytes) = reader.fill_buf()
                    && !bytes.is_empty()
                {
                    plain.extend_from_slice(bytes);
                    let count = bytes.len();
                    reader.consume(count);
                }
            }
            news.ended |= state.peer_has_closed();
        }
        if !self.established && !self.connection.is_handshaking() {
            self.established = true;
            news.established = true;
        }
        Ok(news)
    }

    /// Returns the failure reason under which plimsoll counts a TLS error. Before TLS 1.3, a server
    /// that demands a client certificate reports only a failed handshake.
    fn failure_of(&self, error: &rustls::Error) -> TlsFailure {
        let is_asked = self.asked.as_ref().is_some_and(|asked| asked.0.load(Ordering::Relaxed));
        match error {
            rustls::Error::AlertReceived(rustls::AlertDescription::HandshakeFailure) if is_asked => {
                TlsFailure::ClientCertificate
            }
            error => tls_failure_from_error(error),
        }
    }

    /// Encrypts plain text, and returns how many bytes of the plain text were accepted. The session
    /// accepts fewer bytes than given if too many encrypted bytes wait to be sent.
    pub fn send(&mut self, plain: &[u8]) -> usize {
        // The write goes to memory, so only the buffer limit can make it incomplete.
        self.connection.writer().write(plain).unwrap_or(0)
    }

    /// Appends to `out` the encrypted bytes that wait to be sent, and removes these bytes from the
    /// session.
    pub fn take_cipher(&mut self, out: &mut Vec<u8>) {
        while self.connection.wants_write() {
            // The write goes to memory and cannot fail.
            if self.connection.write_tls(out).unwrap_or(0) == 0 {
                break;
            }
        }
    }

    /// Ends the TLS stream properly, with a close_notify alert.
    pub fn end(&mut self) {
        self.connection.send_close_notify();
    }

    /// Returns whether encrypted bytes wait to be sent.
    pub fn wants_to_send(&self) -> bool {
        self.connection.wants_write()
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
