//! TLS as data: the options of a plan, and the reasons for failures.

use serde::{Deserialize, Serialize};

/// TLS options of a load. Certificates and keys are part of a plan, but never of the plan's record
/// in a run file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSpec {
    /// The expected name in the server's certificate, also sent as SNI unless the name is an IP
    /// address.
    pub server_name: String,
    /// Whether the server's certificate is verified.
    pub verify: bool,
    /// Whether a new connection may resume an earlier session.
    pub resume: bool,
    /// Protocols that the client offers (ALPN), the preferred protocol first.
    pub alpn: Vec<String>,
    /// Certificates of trusted issuers, in DER format.
    pub roots: Vec<Vec<u8>>,
    /// The client certificate and its chain, in PEM format.
    pub certificate_pem: Option<Vec<u8>>,
    /// The key of the client certificate, in PEM format.
    pub key_pem: Option<Vec<u8>>,
}

impl Default for TlsSpec {
    fn default() -> TlsSpec {
        TlsSpec {
            server_name: String::new(),
            verify: true,
            resume: true,
            alpn: vec!["http/1.1".into()],
            roots: Vec::new(),
            certificate_pem: None,
            key_pem: None,
        }
    }
}

/// Why TLS failed on a connection. The discriminant of each variant is the number of the failure
/// reason in records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u16)]
pub enum TlsFailure {
    /// The server's certificate has expired.
    Expired = 0,
    /// The server's certificate is not valid yet.
    NotYetValid = 1,
    /// The server's certificate is for other names.
    WrongName = 2,
    /// No trusted issuer issued the server's certificate.
    UnknownIssuer = 3,
    /// The server's certificate was revoked.
    Revoked = 4,
    /// The server's certificate is invalid in another way (its form, purpose or signature).
    BadCertificate = 5,
    /// The server demands a client certificate, or another client certificate.
    ClientCertificate = 6,
    /// Client and server have no protocol version, cipher or application protocol in common.
    NothingInCommon = 7,
    /// The bytes from the server are not TLS.
    NotTls = 8,
    /// The server ended the connection during the handshake.
    Closed = 9,
    /// The server reset the connection during the handshake.
    Reset = 10,
    /// The server ended the session with an alert that fits no other reason.
    Alert = 11,
    /// A record was damaged or out of order.
    BadRecord = 12,
    /// TLS failed for another reason.
    Other = 13,
}

impl TlsFailure {
    /// Every reason for a TLS failure, in the order of the reasons' numbers.
    pub const ALL: [TlsFailure; 14] = [
        TlsFailure::Expired,
        TlsFailure::NotYetValid,
        TlsFailure::WrongName,
        TlsFailure::UnknownIssuer,
        TlsFailure::Revoked,
        TlsFailure::BadCertificate,
        TlsFailure::ClientCertificate,
        TlsFailure::NothingInCommon,
        TlsFailure::NotTls,
        TlsFailure::Closed,
        TlsFailure::Reset,
        TlsFailure::Alert,
        TlsFailure::BadRecord,
        TlsFailure::Other,
    ];

    /// Returns the failure reason with the given number, or `Other` for an unknown number.
    pub fn from_number(number: u16) -> TlsFailure {
        TlsFailure::ALL.get(usize::from(number)).copied().unwrap_or(TlsFailure::Other)
    }

    /// Returns the name of the reason in JSON.
    pub fn name(self) -> &'static str {
        match self {
            TlsFailure::Expired => "expired",
            TlsFailure::NotYetValid => "not_yet_valid",
            TlsFailure::WrongName => "wrong_name",
            TlsFailure::UnknownIssuer => "unknown_issuer",
            TlsFailure::Revoked => "revoked",
            TlsFailure::BadCertificate => "bad_certificate",
            TlsFailure::ClientCertificate => "client_certificate",
            TlsFailure::NothingInCommon => "nothing_in_common",
            TlsFailure::NotTls => "not_tls",
            TlsFailure::Closed => "closed",
            TlsFailure::Reset => "reset",
            TlsFailure::Alert => "alert",
            TlsFailure::BadRecord => "bad_record",
            TlsFailure::Other => "other",
        }
    }

    /// Returns the reason in words, shown after "TLS failed:".
    pub fn description(self) -> &'static str {
        match self {
            TlsFailure::Expired => "the server's certificate has expired",
            TlsFailure::NotYetValid => "the server's certificate is not valid yet",
            TlsFailure::WrongName => "the server's certificate is for another host name",
            TlsFailure::UnknownIssuer => "the server's certificate has an unknown issuer",
            TlsFailure::Revoked => "the server's certificate was revoked",
            TlsFailure::BadCertificate => "the server's certificate is not valid",
            TlsFailure::ClientCertificate => "the server requires a client certificate that it trusts",
            TlsFailure::NothingInCommon => {
                "the server has no TLS version (1.2 or 1.3), cipher or protocol in common with plimsoll"
            }
            TlsFailure::NotTls => "the server does not speak TLS on this port",
            TlsFailure::Closed => "the server closed the connection during the TLS handshake",
            TlsFailure::Reset => "the server reset the connection during the TLS handshake",
            TlsFailure::Alert => "the server ended the TLS handshake with an alert",
            TlsFailure::BadRecord => "a TLS record was damaged",
            TlsFailure::Other => "the TLS handshake failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_failure_numbers_match_their_order() {
        for (number, reason) in TlsFailure::ALL.into_iter().enumerate() {
            assert_eq!((reason as usize, TlsFailure::from_number(number as u16)), (number, reason));
        }
        assert_eq!(TlsFailure::from_number(99), TlsFailure::Other);
    }
}
