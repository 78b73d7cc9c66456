//! TLS errors: the reasons why a configuration is invalid, and the mapping from the library's
//! errors to the reasons that plimsoll counts.

use plimsoll_model::TlsFailure;
use rustls::{AlertDescription, CertificateError, Error};

/// The reason why a TLS configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The server's name cannot occur in a certificate.
    #[error("'{0}' is not a host name that a certificate can contain")]
    ServerName(String),
    /// The configuration has no trusted issuer.
    #[error("there is no certificate issuer to trust")]
    NoRoots,
    /// The trusted issuers contain bytes that are not a certificate.
    #[error("a certificate in the file cannot be read")]
    Roots,
    /// The PEM data contain no valid certificate.
    #[error("the file contains no readable certificate (PEM is expected)")]
    Certificate,
    /// The PEM data contain no private key.
    #[error("the file contains no readable private key (unencrypted PEM is expected)")]
    Key,
    /// The certificate and the key do not match, or cannot be used.
    #[error("do not match each other or cannot be used: {0}")]
    Pair(String),
    /// The TLS library rejects the configuration.
    #[error("TLS cannot be set up: {0}")]
    Other(String),
}

/// Maps an error of the TLS library to the failure reason under which plimsoll counts the error.
pub fn tls_failure_from_error(error: &Error) -> TlsFailure {
    match error {
        Error::InvalidCertificate(error) => certificate_failure(error),
        Error::NoCertificatesPresented => TlsFailure::BadCertificate,
        Error::AlertReceived(alert) => alert_failure(*alert),
        Error::PeerIncompatible(_) | Error::NoApplicationProtocol => TlsFailure::NothingInCommon,
        Error::InvalidMessage(_) | Error::PeerSentOversizedRecord => TlsFailure::NotTls,
        Error::DecryptError => TlsFailure::BadRecord,
        _ => TlsFailure::Other,
    }
}

fn certificate_failure(error: &CertificateError) -> TlsFailure {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFailure::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => TlsFailure::NotYetValid,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => TlsFailure::WrongName,
        CertificateError::UnknownIssuer => TlsFailure::UnknownIssuer,
        CertificateError::Revoked => TlsFailure::Revoked,
        _ => TlsFailure::BadCertificate,
    }
}

/// Maps a TLS alert of the server to the failure reason under which plimsoll counts the alert.
fn alert_failure(alert: AlertDescription) -> TlsFailure {
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
