//! The server's side of TLS, as far as plimsoll's reference server needs it. The server has one
//! certificate for all host names, and clients can resume sessions. The server uses HTTP/2 if the
//! client offers HTTP/2, and HTTP/1.1 otherwise. Clients need no certificate.
//!
//! Not here: sockets, several names, files.

use super::fault::{ConfigError, tls_failure_from_error};
use super::{Session, parse_certificate_and_key};
use plimsoll_model::TlsFailure;
use rustls::ServerConfig;
use rustls::server::UnbufferedServerConnection;
use std::sync::Arc;

/// The server's side of one TLS connection.
pub type ServerSession = Session<UnbufferedServerConnection>;

/// The TLS state that all connections and threads of a server share.
#[derive(Clone, Debug)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// Creates the TLS state of a server. `certificate_pem` contains the certificate and its
    /// issuers, and also the key if `key_pem` is `None`.
    pub fn new(certificate_pem: &[u8], key_pem: Option<&[u8]>) -> Result<ServerTls, ConfigError> {
        let (chain, key) = parse_certificate_and_key(certificate_pem, key_pem)?;
        let other = |error: rustls::Error| ConfigError::Other(error.to_string());
        let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(other)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| ConfigError::Pair(error.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // Clients store session tickets themselves. So the server stores nothing for each client,
        // and its threads share no sessions.
        config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(other)?;
        Ok(ServerTls { config: Arc::new(config) })
    }

    /// Creates the session of a connection whose client is about to begin.
    pub fn session(&self) -> Result<ServerSession, TlsFailure> {
        UnbufferedServerConnection::new(Arc::clone(&self.config))
            .and_then(|connection| Session::new(connection, None))
            .map_err(|error| tls_failure_from_error(&error))
    }
}
