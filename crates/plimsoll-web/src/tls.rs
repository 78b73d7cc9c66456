//! TLS for the web pages ([`WebTls`]): a certificate, and a listener that makes handshakes. A slow
//! or unfinished handshake does not block other clients.
//!
//! Not here: access control (`guard`), and reading the certificate files.

use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

/// The TLS settings that all connections share: the certificate and its key.
#[derive(Clone)]
pub struct WebTls(Arc<ServerConfig>);

/// The reason why a certificate or its key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebTlsError {
    /// The certificate cannot be used. The text is the reason, which messages print after the name
    /// of the file.
    Certificate(String),
    /// The private key cannot be used. The text is the reason, which messages print after the name
    /// of the file.
    Key(String),
}

impl WebTls {
    /// Creates the TLS settings from PEM text: a certificate followed by the certificates of its
    /// issuers, and its private key.
    pub fn new(certificate_pem: &[u8], key_pem: &[u8]) -> Result<WebTls, WebTlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate_pem).collect();
        let chain = chain.map_err(|error| WebTlsError::Certificate(format!("the file is no PEM: {error}")))?;
        if chain.is_empty() {
            return Err(WebTlsError::Certificate("the file contains no certificate in PEM format".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(key_pem)
            .map_err(|error| WebTlsError::Key(format!("the file contains no private key in PEM format: {error}")))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| WebTlsError::Certificate(error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| {
                WebTlsError::Key(format!("the file is not the private key of the certificate: {error}"))
            })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(WebTls(Arc::new(config)))
    }

    /// Returns a TLS listener that accepts the connections of the TCP listener.
    pub fn wrap_listener(&self, listener: TcpListener) -> TlsListener {
        TlsListener { listener, acceptor: TlsAcceptor::from(Arc::clone(&self.0)) }
    }
}

/// A listener that accepts TLS connections. The handshake of a connection runs when the connection
/// is first read or written. Accepting a connection therefore never waits for a handshake.
pub struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TlsConnection, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (TlsConnection::Handshake(Box::new(self.acceptor.accept(stream))), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A TCP connection with TLS. The variants are the states of the TLS handshake.
pub enum TlsConnection {
    /// The handshake is in progress.
    Handshake(Box<Accept<TcpStream>>),
    /// The handshake succeeded, and data can be exchanged.
    Open(Box<TlsStream<TcpStream>>),
    /// The handshake failed.
    Failed,
}

impl TlsConnection {
    /// Continues the handshake if it is in progress, and returns the stream when the handshake is
    /// complete.
    fn poll_open(&mut self, context: &mut Context) -> Poll<io::Result<Pin<&mut TlsStream<TcpStream>>>> {
        if let TlsConnection::Handshake(accept) = self {
            *self = match ready!(Pin::new(accept.as_mut()).poll(context)) {
                Ok(stream) => TlsConnection::Open(Box::new(stream)),
                Err(_) => TlsConnection::Failed,
            };
        }
        Poll::Ready(match self {
            TlsConnection::Open(stream) => Ok(Pin::new(stream.as_mut())),
            TlsConnection::Handshake(_) | TlsConnection::Failed => Err(io::ErrorKind::ConnectionAborted.into()),
        })
    }
}

impl AsyncRead for TlsConnection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context, into: &mut ReadBuf) -> Poll<io::Result<()>> {
        ready!(self.poll_open(context))?.poll_read(context, into)
    }
}

impl AsyncWrite for TlsConnection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(context))?.poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        match &mut *self {
            TlsConnection::Open(stream) => Pin::new(stream.as_mut()).poll_flush(context),
            TlsConnection::Handshake(_) | TlsConnection::Failed => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        match &mut *self {
            TlsConnection::Open(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
            TlsConnection::Handshake(_) | TlsConnection::Failed => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_certificate_files_are_named() {
        for (certificate, key) in [("", ""), ("-----BEGIN CERTIFICATE-----\n", ""), ("text", "text")] {
            let error = WebTls::new(certificate.as_bytes(), key.as_bytes()).err().expect("refused");
            assert!(matches!(error, WebTlsError::Certificate(_)), "{certificate}: {error:?}");
        }
    }
}
