//! Verifies the server's certificate in a client: by given issuers, by a given certificate, or not
//! at all.

use super::fault::ConfigError;
use plimsoll_model::TlsSpec;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// Creates the verifier for the options `spec`.
pub fn verifier(spec: &TlsSpec, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, ConfigError> {
    let trusted = if spec.verify { Some(TrustVerifier::new(spec, provider)?) } else { None };
    Ok(Arc::new(Verifier { provider: Arc::clone(provider), trusted }))
}

/// Verifies that the server has the private key of its certificate, and that the certificate is
/// acceptable.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// The rules by which certificates are acceptable; `None`: any certificate is acceptable.
    trusted: Option<TrustVerifier>,
}

/// Verifies certificates by their issuers, with the rules for certificates on the web, and also
/// accepts the given certificates themselves. Self-signed certificates, as `openssl req -x509`
/// creates them, do not meet the rules for the web, so they must be accepted directly.
#[derive(Debug)]
struct TrustVerifier {
    issuers: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl TrustVerifier {
    fn new(spec: &TlsSpec, provider: &Arc<CryptoProvider>) -> Result<TrustVerifier, ConfigError> {
        let given: Vec<CertificateDer<'static>> = spec.roots.iter().map(|der| der.clone().into()).collect();
        if given.is_empty() {
            return Err(ConfigError::NoRoots);
        }
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(given.iter().cloned());
        if added == 0 {
            return Err(ConfigError::Roots);
        }
        let issuers = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()
            .map_err(|error| ConfigError::Other(error.to_string()))?;
        Ok(TrustVerifier { issuers, given })
    }

    /// Accepts or refuses a certificate. `verdict` is the result of verifying the certificate by
    /// its issuers.
    fn decide_from_issuer_verdict(
        &self,
        end_entity: &CertificateDer<'_>,
        server_name: &ServerName<'_>,
        verdict: Result<ServerCertVerified, Error>,
    ) -> Result<ServerCertVerified, Error> {
        match &verdict {
            // The TLS library checks the certificate's dates before it returns the error `Other`,
            // so only the server name is checked here.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.given.iter().any(|given| given.as_ref() == end_entity.as_ref()) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            // The certificate is self-signed and is not one of the given certificates. The
            // library's error "CA used as end entity" would not help the user. The library's reason
            // for the error can only be recognised by its text.
            Err(Error::InvalidCertificate(CertificateError::Other(reason)))
                if format!("{reason:?}").contains("CaUsedAsEndEntity") =>
            {
                Err(CertificateError::UnknownIssuer.into())
            }
            _ => verdict,
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trusted) = &self.trusted else { return Ok(ServerCertVerified::assertion()) };
        let issuers = &trusted.issuers;
        let verdict = issuers.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        trusted.decide_from_issuer_verdict(end_entity, server_name, verdict)
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
