//! The server's side of TLS, as far as a reference server needs it: one certificate for all names,
//! HTTP/2 if the client offers it and HTTP/1.1 otherwise, resumable sessions. Clients need no
//! certificate.
//!
//! Not here: sockets, several names, files.

use super::fault::{ConfigError, failure_of};
use super::{Session, own_certificate};
use plimsoll_model::TlsFailure;
use rustls::{ServerConfig, ServerConnection};
use std::sync::Arc;

/// The server's side of one TLS connection.
pub type ServedSession = Session<ServerConnection>;

/// The state shared by all connections and threads of a server.
#[derive(Clone, Debug)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// Creates a server. `certificate_pem` has the certificate and its issuers, and also the key
    /// unless `key_pem` has it.
    pub fn new(certificate_pem: &[u8], key_pem: Option<&[u8]>) -> Result<ServerTls, ConfigError> {
        let (chain, key) = own_certificate(certificate_pem, key_pem)?;
        let other = |error: rustls::Error| ConfigError::Other(error.to_string());
        let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(other)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| ConfigError::Pair(error.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // Session tickets are stored by the clients, so that nothing is stored here for each
        // client, or shared between threads.
        config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(other)?;
        Ok(ServerTls { config: Arc::new(config) })
    }

    /// Creates the session of a connection whose client is about to begin.
    pub fn session(&self) -> Result<ServedSession, TlsFailure> {
        let mut connection = ServerConnection::new(Arc::clone(&self.config)).map_err(|error| failure_of(&error))?;
        // The size of a response is bounded by its sender.
        connection.set_buffer_limit(None);
        Ok(Session { connection: Box::new(connection), established: false, asked: None })
    }
}
