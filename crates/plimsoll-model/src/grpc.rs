//! gRPC as data: how calls end, and which of these ends count as success.
//!
//! A call is a request over HTTP/2 whose content is messages, each with a length before it, and
//! whose answer says in its trailers how it ended ([the
//! protocol](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md)). Not here: what
//! messages hold, bytes.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How a call ended. The discriminant is the code on the wire, and what stands in records.
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

    /// The status with this code; one that the standard does not have is unknown, as the standard
    /// wants it.
    pub fn of_code(code: u32) -> GrpcStatus {
        GrpcStatus::ALL.get(code as usize).copied().unwrap_or(GrpcStatus::Unknown)
    }

    /// What an answer without a status of its own stands for, by that of HTTP: a proxy's, or that
    /// of a server that speaks no gRPC.
    pub fn of_http(status: u16) -> GrpcStatus {
        match status {
            400 => GrpcStatus::Internal,
            401 => GrpcStatus::Unauthenticated,
            403 => GrpcStatus::PermissionDenied,
            404 => GrpcStatus::Unimplemented,
            429 | 502 | 503 | 504 => GrpcStatus::Unavailable,
            _ => GrpcStatus::Unknown,
        }
    }

    /// The standard's name.
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

    /// Whether a server says by it that it takes no more for now: what a limiter answers, or one
    /// that is overloaded.
    pub fn is_refusal(self) -> bool {
        matches!(self, GrpcStatus::ResourceExhausted | GrpcStatus::Unavailable)
    }
}

/// What is wrong with the messages of an answer that ends with `OK`: clients of gRPC make a failure
/// of it all the same ([cardinality and
/// framing](https://github.com/grpc/grpc/blob/master/doc/statuscodes.md)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u16)]
pub enum CallFault {
    /// There is none, and the method gives one.
    NoMessage = 0,
    /// There are several, and the method gives one.
    SeveralMessages = 1,
    /// The last one is cut short.
    Cut = 2,
    /// What stands before a message is no gRPC: whether it is compressed is said by something else
    /// than 0 or 1.
    Prefix = 3,
    /// One is compressed, and the head does not say how.
    Compressed = 4,
    /// One is compressed in a way that the client has not said it takes.
    Encoding = 5,
    /// The head says that the content is of another type than gRPC's.
    Content = 6,
}

impl CallFault {
    /// Every fault, in the order of its number.
    pub const ALL: [CallFault; 7] = [
        CallFault::NoMessage,
        CallFault::SeveralMessages,
        CallFault::Cut,
        CallFault::Prefix,
        CallFault::Compressed,
        CallFault::Encoding,
        CallFault::Content,
    ];

    /// What clients make of the call.
    pub const STATUS: GrpcStatus = GrpcStatus::Internal;

    /// The fault with this number; `None`: a later plimsoll knows it.
    pub fn of_number(number: u16) -> Option<CallFault> {
        CallFault::ALL.get(usize::from(number)).copied()
    }

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            CallFault::NoMessage => "no_message",
            CallFault::SeveralMessages => "several_messages",
            CallFault::Cut => "cut",
            CallFault::Prefix => "prefix",
            CallFault::Compressed => "compressed",
            CallFault::Encoding => "encoding",
            CallFault::Content => "content",
        }
    }

    /// In words, behind what the server said.
    pub fn text(self) -> &'static str {
        match self {
            CallFault::NoMessage => "the status is OK, but the method's message is missing",
            CallFault::SeveralMessages => "the status is OK, but there are several messages instead of one",
            CallFault::Cut => "the status is OK, but the last message is cut short",
            CallFault::Prefix => "the status is OK, but the content is not a sequence of gRPC messages",
            CallFault::Compressed => "the status is OK, but a message is compressed, and grpc-encoding is missing",
            CallFault::Encoding => {
                "the status is OK, but a message has a compression that the client does not accept (grpc-encoding)"
            }
            CallFault::Content => "the server says OK, but the content-type is not application/grpc",
        }
    }
}

/// What makes a request a call: how it may end, and what its body stands for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrpcCall {
    /// The ends that are success.
    pub ok: GrpcStatusSet,
    /// The messages that the body, which is JSON, stands for, each with its length before it;
    /// `None` until somebody who knows their types has made them.
    pub content: Option<Vec<u8>>,
    /// What messages are described by (a `FileDescriptorSet` of protobuf's), where somebody looks
    /// into answers, or the body is filled in and made into messages anew each time.
    pub types: Option<Arc<[u8]>>,
    /// The method gives a stream of messages: each has a time of its own. Known once the messages
    /// are made.
    pub gives_stream: bool,
    /// Each message is sent when the one before it was answered, where the method gives a stream;
    /// else all are sent in one go.
    pub in_turn: bool,
}

/// A set of ends of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GrpcStatusSet(u32);

/// Why a set of ends of calls could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a set of gRPC statuses; write for example OK,NOT_FOUND or 0,5")]
pub struct GrpcStatusSetError(String);

impl GrpcStatusSet {
    /// Reads names and codes, as a list.
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

    /// Whether `status` is in the set.
    #[inline]
    pub fn contains(self, status: GrpcStatus) -> bool {
        self.0 & (1 << status as u32) != 0
    }
}

impl Default for GrpcStatusSet {
    /// `OK` alone.
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

/// What a server says with a status (`grpc-message`), out of its percent-encoding; what is not well
/// encoded stays as it is.
pub fn message_bytes(encoded: &[u8]) -> Vec<u8> {
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

/// How a deadline of so many ns is told to a server (`grpc-timeout`): at most eight digits and a
/// unit, never longer than it is.
pub fn timeout_text(ns: u64) -> String {
    const DIGITS: u64 = 99_999_999;
    let units = [(1, 'n'), (1_000, 'u'), (1_000_000, 'm'), (1_000_000_000, 'S'), (60_000_000_000, 'M')];
    let fits = units.into_iter().find(|(unit_ns, _)| ns / unit_ns <= DIGITS);
    let (unit_ns, letter) = fits.unwrap_or((60_000_000_000, 'M'));
    format!("{}{letter}", (ns / unit_ns).min(DIGITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_the_code_they_stand_at() {
        for (code, status) in GrpcStatus::ALL.into_iter().enumerate() {
            assert_eq!((status as usize, GrpcStatus::of_code(code as u32)), (code, status));
        }
        assert_eq!(GrpcStatus::of_code(17), GrpcStatus::Unknown);
        assert_eq!(GrpcStatus::of_code(u32::MAX), GrpcStatus::Unknown);
    }

    #[test]
    fn faults_have_the_number_they_stand_at() {
        for (number, fault) in CallFault::ALL.into_iter().enumerate() {
            assert_eq!((fault as usize, CallFault::of_number(number as u16)), (number, Some(fault)));
            assert_eq!(serde_json::to_value(fault).expect("a name"), fault.name());
        }
        assert_eq!(CallFault::of_number(CallFault::ALL.len() as u16), None);
    }

    #[test]
    fn sets_of_statuses() {
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
    fn messages_are_taken_out_of_their_encoding() {
        for (encoded, text) in [
            ("", ""),
            ("so it is", "so it is"),
            ("50%25 of caf%C3%a9", "50% of caf\u{e9}"),
            ("%", "%"),
            ("%4", "%4"),
            ("%zz%41", "%zzA"),
        ] {
            assert_eq!(String::from_utf8_lossy(&message_bytes(encoded.as_bytes())), text);
        }
    }

    #[test]
    fn deadlines_are_told_in_the_finest_unit_that_holds_them() {
        for (ns, text) in [
            (1, "1n"),
            (99_999_999, "99999999n"),
            (100_000_000, "100000u"),
            (30_000_000_000, "30000000u"),
            (100_000_000_000, "100000m"),
            (3_600_000_000_000, "3600000m"),
            (u64::MAX, "99999999M"),
        ] {
            let shown = timeout_text(ns);
            assert!(shown.len() <= 9, "{shown}");
            if ns < u64::MAX {
                assert_eq!(shown, text);
            }
        }
    }
}
