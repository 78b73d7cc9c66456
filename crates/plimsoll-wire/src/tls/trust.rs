//! Trust of a client: given issuers, a given certificate, or any certificate.

use super::fault::ConfigError;
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
    let trusted = if spec.verify { Some(TrustVerifier::new(spec, provider)?) } else { None };
    Ok(Arc::new(Verifier { provider: Arc::clone(provider), trusted }))
}

/// Sees that the server has its certificate's key, and whether that certificate will do.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// `None`: any certificate will do.
    trusted: Option<TrustVerifier>,
}

/// Issuers, by the rules of the web, and the given certificates themselves: a certificate that is
/// its own issuer, as `openssl req -x509` makes them, is no issuer's by those rules.
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

    /// What the verdict of the issuers' rules means for a certificate.
    fn judged(
        &self,
        end_entity: &CertificateDer<'_>,
        server_name: &ServerName<'_>,
        verdict: Result<ServerCertVerified, Error>,
    ) -> Result<ServerCertVerified, Error> {
        match &verdict {
            // Its dates were found good before this was found; its name is looked at here.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.given.iter().any(|given| given.as_ref() == end_entity.as_ref()) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            // One that is its own issuer, and was not given: that it may not be both is not what
            // its user wants to know. The library's reason cannot be named from here but by its
            // text.
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
        trusted.judged(end_entity, server_name, verdict)
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
