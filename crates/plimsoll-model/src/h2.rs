//! The HTTP/2 error codes: the reasons why a server ended a stream or a connection.

use serde::{Deserialize, Serialize};

/// An HTTP/2 error code ([RFC 9113, 7](https://www.rfc-editor.org/rfc/rfc9113#section-7)). The
/// discriminant is the code on the wire and in records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u16)]
#[allow(missing_docs, reason = "the names are those of the standard")]
pub enum H2Error {
    NoError = 0,
    ProtocolError = 1,
    InternalError = 2,
    FlowControlError = 3,
    SettingsTimeout = 4,
    StreamClosed = 5,
    FrameSizeError = 6,
    RefusedStream = 7,
    Cancel = 8,
    CompressionError = 9,
    ConnectError = 10,
    EnhanceYourCalm = 11,
    InadequateSecurity = 12,
    Http11Required = 13,
    /// The code is outside the standard.
    Unknown = 14,
}

impl H2Error {
    /// Every error, in the order of its code.
    pub const ALL: [H2Error; 15] = [
        H2Error::NoError,
        H2Error::ProtocolError,
        H2Error::InternalError,
        H2Error::FlowControlError,
        H2Error::SettingsTimeout,
        H2Error::StreamClosed,
        H2Error::FrameSizeError,
        H2Error::RefusedStream,
        H2Error::Cancel,
        H2Error::CompressionError,
        H2Error::ConnectError,
        H2Error::EnhanceYourCalm,
        H2Error::InadequateSecurity,
        H2Error::Http11Required,
        H2Error::Unknown,
    ];

    /// Returns the HTTP/2 error whose code on the wire is `code`.
    pub fn from_code(code: u32) -> H2Error {
        H2Error::ALL.get(code as usize).copied().unwrap_or(H2Error::Unknown)
    }

    /// Returns the name of the error in text and JSON: the name in the standard, in small letters.
    pub fn name(self) -> &'static str {
        match self {
            H2Error::NoError => "no_error",
            H2Error::ProtocolError => "protocol_error",
            H2Error::InternalError => "internal_error",
            H2Error::FlowControlError => "flow_control_error",
            H2Error::SettingsTimeout => "settings_timeout",
            H2Error::StreamClosed => "stream_closed",
            H2Error::FrameSizeError => "frame_size_error",
            H2Error::RefusedStream => "refused_stream",
            H2Error::Cancel => "cancel",
            H2Error::CompressionError => "compression_error",
            H2Error::ConnectError => "connect_error",
            H2Error::EnhanceYourCalm => "enhance_your_calm",
            H2Error::InadequateSecurity => "inadequate_security",
            H2Error::Http11Required => "http_1_1_required",
            H2Error::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_error_codes_match_their_order() {
        for (code, error) in H2Error::ALL.into_iter().enumerate() {
            assert_eq!((error as usize, H2Error::from_code(code as u32)), (code, error));
        }
        assert_eq!(H2Error::from_code(u32::MAX), H2Error::Unknown);
    }
}
