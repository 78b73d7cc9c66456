//! From the library's errors to the reasons that are counted.

use plimsoll_model::TlsFailure;
use rustls::{AlertDescription, CertificateError, Error};

/// The reason that an error of the library counts as.
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

/// What the server complains of.
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
