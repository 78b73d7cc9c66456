//! Data types of gRPC: the statuses of calls, and the set of statuses that count as success.
//!
//! A call is a request over HTTP/2. The content of a call is a list of length-prefixed messages;
//! the trailers of the response carry the status ([the
//! protocol](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md)). Not here: the
//! content of messages, and the encoding of calls as bytes.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The status of a call. The discriminant is the code on the wire and in records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
#[allow(missing_docs, reason = "the names are those of the standard")]
pub enum GrpcStatus {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl GrpcStatus {
    /// Every status, in the order of its code.
    pub const ALL: [GrpcStatus; 17] = [
        GrpcStatus::Ok,
        GrpcStatus::Cancelled,
        GrpcStatus::Unknown,
        GrpcStatus::InvalidArgument,
        GrpcStatus::DeadlineExceeded,
        GrpcStatus::NotFound,
        GrpcStatus::AlreadyExists,
        GrpcStatus::PermissionDenied,
        GrpcStatus::ResourceExhausted,
        GrpcStatus::FailedPrecondition,
        GrpcStatus::Aborted,
        GrpcStatus::OutOfRange,
        GrpcStatus::Unimplemented,
        GrpcStatus::Internal,
        GrpcStatus::Unavailable,
        GrpcStatus::DataLoss,
        GrpcStatus::Unauthenticated,
    ];

    /// Returns the status with this code. A code outside the standard is `Unknown`, as the standard
    /// demands.
    pub fn from_code(code: u32) -> GrpcStatus {
        GrpcStatus::ALL.get(code as usize).copied().unwrap_or(GrpcStatus::Unknown)
    }

    /// Returns the status of a response without a `grpc-status`, derived from its HTTP status. A
    /// response without a `grpc-status` comes from a proxy, or from a server without gRPC.
    pub fn from_http_status(status: u16) -> GrpcStatus {
        match status {
            400 => GrpcStatus::Internal,
            401 => GrpcStatus::Unauthenticated,
            403 => GrpcStatus::PermissionDenied,
            404 => GrpcStatus::Unimplemented,
            429 | 502 | 503 | 504 => GrpcStatus::Unavailable,
            _ => GrpcStatus::Unknown,
        }
    }

    /// Returns the name of the status in the gRPC standard.
    pub fn name(self) -> &'static str {
        match self {
            GrpcStatus::Ok => "OK",
            GrpcStatus::Cancelled => "CANCELLED",
            GrpcStatus::Unknown => "UNKNOWN",
            GrpcStatus::InvalidArgument => "INVALID_ARGUMENT",
            GrpcStatus::DeadlineExceeded => "DEADLINE_EXCEEDED",
            GrpcStatus::NotFound => "NOT_FOUND",
            GrpcStatus::AlreadyExists => "ALREADY_EXISTS",
            GrpcStatus::PermissionDenied => "PERMISSION_DENIED",
            GrpcStatus::ResourceExhausted => "RESOURCE_EXHAUSTED",
            GrpcStatus::FailedPrecondition => "FAILED_PRECONDITION",
            GrpcStatus::Aborted => "ABORTED",
            GrpcStatus::OutOfRange => "OUT_OF_RANGE",
            GrpcStatus::Unimplemented => "UNIMPLEMENTED",
            GrpcStatus::Internal => "INTERNAL",
            GrpcStatus::Unavailable => "UNAVAILABLE",
            GrpcStatus::DataLoss => "DATA_LOSS",
            GrpcStatus::Unauthenticated => "UNAUTHENTICATED",
        }
    }

    /// Returns whether the status is a rejection under load, which a rate limiter or an overloaded
    /// server sends.
    pub fn is_refusal(self) -> bool {
        matches!(self, GrpcStatus::ResourceExhausted | GrpcStatus::Unavailable)
    }
}

/// A fault in the messages of a response that ends with `OK`. gRPC clients count a call with faulty
/// messages as failed ([cardinality and
/// framing](https://github.com/grpc/grpc/blob/master/doc/statuscodes.md)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u16)]
pub enum CallFault {
    /// The response has no message, although the method returns one.
    NoMessage = 0,
    /// The response has several messages, although the method returns one.
    SeveralMessages = 1,
    /// The last message of the response is cut short.
    Cut = 2,
    /// A message prefix is invalid: its compression flag is neither 0 nor 1.
    #[serde(rename = "prefix")]
    InvalidPrefix = 3,
    /// A message is compressed, but the response header names no compression (`grpc-encoding`).
    Compressed = 4,
    /// A message has a compression that the client does not accept.
    Encoding = 5,
    /// The response has a `Content-Type` other than the type for gRPC.
    #[serde(rename = "content")]
    WrongContentType = 6,
}

impl CallFault {
    /// Every fault, in the order of its number.
    pub const ALL: [CallFault; 7] = [
        CallFault::NoMessage,
        CallFault::SeveralMessages,
        CallFault::Cut,
        CallFault::InvalidPrefix,
        CallFault::Compressed,
        CallFault::Encoding,
        CallFault::WrongContentType,
    ];

    /// The gRPC status that clients report for a response whose messages have a fault.
    pub const REPORTED_STATUS: GrpcStatus = GrpcStatus::Internal;

    /// Returns the fault with this number; `None` means that only a later version of plimsoll knows
    /// the number.
    pub fn from_number(number: u16) -> Option<CallFault> {
        CallFault::ALL.get(usize::from(number)).copied()
    }

    /// Returns the name of the fault in JSON.
    pub fn name(self) -> &'static str {
        match self {
            CallFault::NoMessage => "no_message",
            CallFault::SeveralMessages => "several_messages",
            CallFault::Cut => "cut",
            CallFault::InvalidPrefix => "prefix",
            CallFault::Compressed => "compressed",
            CallFault::Encoding => "encoding",
            CallFault::WrongContentType => "content",
        }
    }

    /// Returns the fault in words, shown after the server's own message.
    pub fn description(self) -> &'static str {
        match self {
            CallFault::NoMessage => "the gRPC status is OK, but the response has no message",
            CallFault::SeveralMessages => "the gRPC status is OK, but the response has several messages instead of one",
            CallFault::Cut => "the gRPC status is OK, but the last message of the response is incomplete",
            CallFault::InvalidPrefix => {
                "the gRPC status is OK, but the content of the response is not a sequence of gRPC messages"
            }
            CallFault::Compressed => {
                "the gRPC status is OK, but a message is compressed, and the header grpc-encoding is missing"
            }
            CallFault::Encoding => {
                "the gRPC status is OK, but a message has a compression (grpc-encoding) that plimsoll does not accept"
            }
            CallFault::WrongContentType => {
                "the gRPC status is OK, but the content-type of the response is not application/grpc"
            }
        }
    }
}

/// The gRPC part of a request: the statuses that count as success, and the messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrpcCall {
    /// The gRPC statuses that count as success.
    pub ok: GrpcStatusSet,
    /// The length-prefixed messages made from the JSON body. The value is `None` until the messages
    /// are encoded with their protobuf types.
    pub content: Option<Vec<u8>>,
    /// A protobuf `FileDescriptorSet` of the messages. The `FileDescriptorSet` is needed to check
    /// responses, and to encode a body whose template is filled in for each request.
    pub descriptor_set: Option<Arc<[u8]>>,
    /// Whether the method returns a stream; if so, plimsoll records the time of each message of a
    /// response. The field is set only when the messages of the request are encoded.
    pub returns_stream: bool,
    /// Whether each message of a bidirectional stream is sent only after the response to the
    /// previous message. If `in_turn` is false, all messages of the stream are sent at once.
    pub in_turn: bool,
}

/// A set of gRPC statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GrpcStatusSet(u32);

/// Why a set of gRPC statuses could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a set of gRPC statuses; write for example OK,NOT_FOUND or 0,5")]
pub struct GrpcStatusSetError(String);

impl GrpcStatusSet {
    /// Parses a list of names and codes of gRPC statuses.
    pub fn parse(text: &str) -> Result<GrpcStatusSet, GrpcStatusSetError> {
        let mut bits = 0;
        for part in text.split(',').map(str::trim) {
            let by_name = |status: &GrpcStatus| status.name().eq_ignore_ascii_case(part);
            let by_code = |status: &GrpcStatus| part.parse::<u16>() == Ok(*status as u16);
            let found = GrpcStatus::ALL.into_iter().find(|status| by_name(status) || by_code(status));
            bits |= 1 << found.ok_or_else(|| GrpcStatusSetError(text.to_owned()))? as u32;
        }
        Ok(GrpcStatusSet(bits))
    }

    /// Returns whether `status` is in the set.
    #[inline]
    pub fn contains(self, status: GrpcStatus) -> bool {
        self.0 & (1 << status as u32) != 0
    }
}

impl Default for GrpcStatusSet {
    /// Returns the set with `OK` alone.
    fn default() -> GrpcStatusSet {
        GrpcStatusSet(1)
    }
}

impl std::fmt::Display for GrpcStatusSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> =
            GrpcStatus::ALL.into_iter().filter(|status| self.contains(*status)).map(GrpcStatus::name).collect();
        f.write_str(&names.join(","))
    }
}

impl TryFrom<String> for GrpcStatusSet {
    type Error = GrpcStatusSetError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        GrpcStatusSet::parse(&text)
    }
}

impl From<GrpcStatusSet> for String {
    fn from(set: GrpcStatusSet) -> String {
        set.to_string()
    }
}

/// Decodes the percent-encoded `grpc-message` of a response; invalid escapes stay as they are.
pub fn decode_percent_encoded_message(encoded: &[u8]) -> Vec<u8> {
    let digit = |byte: &u8| (*byte as char).to_digit(16).map(|digit| digit as u8);
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut left = encoded;
    while let [first, after @ ..] = left {
        let escaped = match after {
            [high, low, ..] if *first == b'%' => digit(high).zip(digit(low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                bytes.push(high << 4 | low);
                left = &after[2..];
            }
            None => {
                bytes.push(*first);
                left = after;
            }
        }
    }
    bytes
}

/// Returns the `grpc-timeout` value for a deadline of `ns`: at most eight digits and a unit, never
/// longer than the deadline.
pub fn grpc_timeout_text(ns: u64) -> String {
    const EIGHT_DIGITS_MAX: u64 = 99_999_999;
    let units = [(1, 'n'), (1_000, 'u'), (1_000_000, 'm'), (1_000_000_000, 'S'), (60_000_000_000, 'M')];
    let fits = units.into_iter().find(|(unit_ns, _)| ns / unit_ns <= EIGHT_DIGITS_MAX);
    let (unit_ns, letter) = fits.unwrap_or((60_000_000_000, 'M'));
    format!("{}{letter}", (ns / unit_ns).min(EIGHT_DIGITS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_status_codes_match_their_order() {
        for (code, status) in GrpcStatus::ALL.into_iter().enumerate() {
            assert_eq!((status as usize, GrpcStatus::from_code(code as u32)), (code, status));
        }
        assert_eq!(GrpcStatus::from_code(17), GrpcStatus::Unknown);
        assert_eq!(GrpcStatus::from_code(u32::MAX), GrpcStatus::Unknown);
    }

    #[test]
    fn call_fault_numbers_match_their_order() {
        for (number, fault) in CallFault::ALL.into_iter().enumerate() {
            assert_eq!((fault as usize, CallFault::from_number(number as u16)), (number, Some(fault)));
            assert_eq!(serde_json::to_value(fault).expect("a name"), fault.name());
        }
        assert_eq!(CallFault::from_number(CallFault::ALL.len() as u16), None);
    }

    #[test]
    fn grpc_status_sets_parse_or_fail() {
        for (text, shown) in [
            ("OK", "OK"),
            ("0", "OK"),
            ("NOT_FOUND,OK", "OK,NOT_FOUND"),
            ("ok, 5", "OK,NOT_FOUND"),
            ("16,16", "UNAUTHENTICATED"),
        ] {
            let set = GrpcStatusSet::parse(text).expect(text);
            assert_eq!(set.to_string(), shown);
            assert_eq!(GrpcStatusSet::parse(&set.to_string()), Ok(set), "{text} is read back");
        }
        for text in ["", "17", "-1", "FINE", "OK,", "0-5"] {
            assert!(GrpcStatusSet::parse(text).is_err(), "{text:?}");
        }
        let usual = GrpcStatusSet::default();
        assert!(usual.contains(GrpcStatus::Ok) && !usual.contains(GrpcStatus::Unauthenticated));
    }

    #[test]
    fn messages_are_percent_decoded() {
        for (encoded, text) in [
            ("", ""),
            ("so it is", "so it is"),
            ("50%25 of caf%C3%a9", "50% of caf\u{e9}"),
            ("%", "%"),
            ("%4", "%4"),
            ("%zz%41", "%zzA"),
        ] {
            assert_eq!(String::from_utf8_lossy(&decode_percent_encoded_message(encoded.as_bytes())), text);
        }
    }

    #[test]
    fn deadlines_use_the_finest_unit_that_fits() {
        for (ns, text) in [
            (1, "1n"),
            (99_999_999, "99999999n"),
            (100_000_000, "100000u"),
            (30_000_000_000, "30000000u"),
            (100_000_000_000, "100000m"),
            (3_600_000_000_000, "3600000m"),
            (u64::MAX, "99999999M"),
        ] {
            let shown = grpc_timeout_text(ns);
            assert!(shown.len() <= 9, "{shown}");
            if ns < u64::MAX {
                assert_eq!(shown, text);
            }
        }
    }
}
