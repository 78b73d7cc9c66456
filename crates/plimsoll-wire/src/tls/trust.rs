//! Whom a client trusts: the issuers it was given, a certificate that it was given itself, or anybody.

use super::ConfigError;
use plimsoll_model::TlsSpec;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// The verifier that `spec` asks for.
pub fn verifier(spec: &TlsSpec, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, ConfigError> {
    if !spec.verify {
        return Ok(Arc::new(Anybody { provider: Arc::clone(provider) }));
    }
    let given: Vec<CertificateDer<'static>> = spec.roots.iter().map(|der| der.clone().into()).collect();
    if given.is_empty() {
        return Err(ConfigError::NoRoots);
    }
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(given.iter().cloned());
    if added == 0 {
        return Err(ConfigError::Roots);
    }
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| ConfigError::Other(error.to_string()))?;
    Ok(Arc::new(Trusted { inner, given }))
}

/// Issuers, by the rules of the web, and the given certificates themselves: a certificate that is its own issuer, as
/// `openssl req -x509` makes them, is no issuer's by those rules.
#[derive(Debug)]
struct Trusted {
    inner: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let result = self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match &result {
            // Its dates were found good before this was found; its name is looked at here.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.given.iter().any(|given| given.as_ref() == end_entity.as_ref()) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            // One that is its own issuer, and was not given: that it may not be both is not what its user wants to know. The
            // library's reason cannot be named from here but by its text.
            Err(Error::InvalidCertificate(CertificateError::Other(reason)))
                if format!("{reason:?}").contains("CaUsedAsEndEntity") =>
            {
                Err(CertificateError::UnknownIssuer.into())
            }
            _ => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Any certificate will do; that the server has its key is still seen.
#[derive(Debug)]
struct Anybody {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
