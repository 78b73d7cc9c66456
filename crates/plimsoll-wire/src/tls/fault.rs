//! TLS errors: why a configuration is invalid, and the mapping from the library's errors to counted
//! reasons.

use plimsoll_model::TlsFailure;
use rustls::{AlertDescription, CertificateError, Error};

/// Why a TLS configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The server's name cannot occur in a certificate.
    #[error("'{0}' is no host name that a certificate could have")]
    ServerName(String),
    /// There is no trusted issuer.
    #[error("there is no issuer to trust")]
    NoRoots,
    /// Some bytes among the trusted issuers are no certificate.
    #[error("a certificate in it cannot be read")]
    Roots,
    /// The PEM contains no client certificate.
    #[error("there is no certificate in it that can be read (PEM is expected)")]
    Certificate,
    /// The PEM contains no key.
    #[error("there is no private key in it that can be read (unencrypted PEM is expected)")]
    Key,
    /// Certificate and key do not match, or cannot be used.
    #[error("do not belong together or cannot be used: {0}")]
    Pair(String),
    /// The TLS library rejects the configuration.
    #[error("TLS cannot be set up: {0}")]
    Other(String),
}

/// Returns the counted reason for an error of the library.
pub fn failure_of(error: &Error) -> TlsFailure {
    match error {
        Error::InvalidCertificate(error) => certificate(error),
        Error::NoCertificatesPresented => TlsFailure::BadCertificate,
        Error::AlertReceived(alert) => received(*alert),
        Error::PeerIncompatible(_) | Error::NoApplicationProtocol => TlsFailure::NothingInCommon,
        Error::InvalidMessage(_) | Error::PeerSentOversizedRecord => TlsFailure::NotTls,
        Error::DecryptError => TlsFailure::BadRecord,
        _ => TlsFailure::Other,
    }
}

fn certificate(error: &CertificateError) -> TlsFailure {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFailure::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => TlsFailure::NotYetValid,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => TlsFailure::WrongName,
        CertificateError::UnknownIssuer => TlsFailure::UnknownIssuer,
        CertificateError::Revoked => TlsFailure::Revoked,
        _ => TlsFailure::BadCertificate,
    }
}

/// Returns the counted reason for an alert of the server.
fn received(alert: AlertDescription) -> TlsFailure {
    match alert {
        AlertDescription::CertificateRequired
        | AlertDescription::NoCertificate
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied => TlsFailure::ClientCertificate,
        AlertDescription::HandshakeFailure
        | AlertDescription::ProtocolVersion
        | AlertDescription::InsufficientSecurity
        | AlertDescription::NoApplicationProtocol => TlsFailure::NothingInCommon,
        _ => TlsFailure::Alert,
    }
}
