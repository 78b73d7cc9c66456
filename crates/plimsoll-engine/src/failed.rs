//! Stores the first bytes of the first failed response of each kind, until the end of the load.
//!
//! A response that arrives in one piece costs nothing in this module unless the response fails. A
//! failed response costs one lookup in a short list, and only the first response of a kind is
//! copied. The first piece of a longer response usually contains the status. A first piece without
//! the whole status is stored until the next piece arrives.
//!
//! Not here: deciding which responses fail, and formatting their text
//! (`plimsoll_model::failed_response`).

use crate::answers::StoredResponse;
use plimsoll_model::failed_response::{FailedRouteCheck, KEPT_RESPONSE_BYTES, KINDS_MAX};
use plimsoll_model::{CallFault, FailedResponse, GrpcStatus, RedactionLevel};
use plimsoll_wire::ProtocolError;

/// The kind of a failed response; one response of each kind is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedResponseKind {
    /// A response whose status has not arrived yet.
    StatusPending,
    /// A failed response with the given HTTP status.
    Status(u16),
    /// The response to a gRPC call.
    Call {
        /// The HTTP status of the response.
        status: u16,
        /// The gRPC status of the call.
        grpc_status: GrpcStatus,
        /// Whether the response has a `grpc-status` field. Without the field, the gRPC status was
        /// derived from `status`.
        is_stated: bool,
        /// The fault in the messages of the response, if any.
        fault: Option<CallFault>,
    },
    /// The received bytes are not a valid HTTP response.
    Protocol(ProtocolError),
}

impl FailedResponseKind {
    /// Returns whether a report counts two kinds of failed responses as one. All protocol errors
    /// are one kind. All gRPC calls with equal HTTP status, gRPC status and fault are one kind,
    /// too.
    fn counts_as_same_kind(self, other: FailedResponseKind) -> bool {
        match (self, other) {
            (FailedResponseKind::Protocol(_), FailedResponseKind::Protocol(_)) => true,
            (
                FailedResponseKind::Call { status, grpc_status: ended, fault, .. },
                FailedResponseKind::Call { status: other_status, grpc_status: other_ended, fault: other_fault, .. },
            ) => (status, ended, fault) == (other_status, other_ended, other_fault),
            _ => self == other,
        }
    }
}

/// A received piece of a response, with its exchange and its arrival time.
#[derive(Debug, Clone, Copy)]
pub struct TimedResponsePiece<'a> {
    /// The number of the exchange that received the piece.
    pub exchange: u32,
    /// Whether this is the first piece of the response.
    pub first: bool,
    /// Whether the piece contains only content, because the head arrived separately.
    pub has_separate_head: bool,
    pub bytes: &'a [u8],
    /// The time at which the piece arrived, ns of schedule time.
    pub at_ns: u64,
}

struct FailedResponseCopy {
    kind: FailedResponseKind,
    at_ns: u64,
    bytes: Vec<u8>,
    /// The number of the exchange whose next pieces continue this copy of a response; `None` once
    /// the copy is complete.
    unfinished_exchange: Option<u32>,
}

impl FailedResponseCopy {
    fn add(&mut self, bytes: &[u8]) {
        let room = KEPT_RESPONSE_BYTES - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// The first failed response of each kind that one worker received.
#[derive(Default)]
pub struct FailedResponses {
    kept: Vec<FailedResponseCopy>,
    /// Responses whose status is successful, but which fail an expectation or a capture: the first
    /// response for each failed check.
    failed_checks: Vec<FailedResponse>,
    /// How much of the stored responses is redacted.
    redact: RedactionLevel,
}

impl FailedResponses {
    /// Creates an empty collection. `redact` says how much of the responses is redacted.
    pub fn new(redact: RedactionLevel) -> FailedResponses {
        FailedResponses { redact, ..FailedResponses::default() }
    }

    /// Stores a piece of an unfinished response that has failed or may fail.
    #[cold]
    pub fn add_unfinished_piece(&mut self, kind: FailedResponseKind, piece: TimedResponsePiece) {
        self.store_piece(kind, piece);
    }

    /// Stores the last piece of a failed response.
    #[cold]
    pub fn store_last_piece(&mut self, kind: FailedResponseKind, piece: TimedResponsePiece) {
        if let Some(at) = self.store_piece(kind, piece) {
            self.kept[at].unfinished_exchange = None;
        }
    }

    /// Adds a response with a successful status that failed a check. For each check, only the first
    /// response that failed the check is kept.
    #[cold]
    pub fn add_failed_check(
        &mut self,
        missed: FailedRouteCheck,
        status: u16,
        answer: &StoredResponse,
        content: &[u8],
        at_ns: u64,
        reason: &str,
    ) {
        if self.failed_checks.len() < KINDS_MAX
            && self.failed_checks.iter().all(|other| other.failed_check != Some(missed))
        {
            let said = (&answer.status_line(status)[..], content);
            self.failed_checks.push(FailedResponse::from_failed_check(
                status,
                missed,
                at_ns,
                said,
                reason,
                self.redact,
            ));
        }
    }

    /// Discards the unfinished response of `exchange`, which receives no further bytes.
    #[cold]
    pub fn discard_unfinished_response(&mut self, exchange: u32) {
        self.kept.retain(|kept| kept.unfinished_exchange != Some(exchange));
    }

    /// Stores a piece of a response, if no failed response of the same kind is stored yet. Returns
    /// the index of the stored copy; `None` if the piece is not stored.
    fn store_piece(&mut self, kind: FailedResponseKind, piece: TimedResponsePiece) -> Option<usize> {
        let open = self.kept.iter().position(|kept| kept.unfinished_exchange == Some(piece.exchange));
        let open = match open {
            // The stored copy belongs to an earlier response of this exchange, which succeeded in
            // the end, so the copy is removed.
            Some(at) if piece.first => {
                self.kept.swap_remove(at);
                None
            }
            other => other,
        };
        if let Some(at) = open {
            let known =
                (0..self.kept.len()).any(|other| other != at && self.kept[other].kind.counts_as_same_kind(kind));
            if known && kind != FailedResponseKind::StatusPending {
                self.kept.swap_remove(at);
                return None;
            }
            let kept = &mut self.kept[at];
            kept.kind = if kind == FailedResponseKind::StatusPending { kept.kind } else { kind };
            kept.add(piece.bytes);
            return Some(at);
        }
        // Content is shown only together with its response head, or if the content itself is the
        // fault. A response without a `grpc-status` is known to fail only at its end, so its last
        // piece is shown.
        let shown = piece.first || matches!(kind, FailedResponseKind::Protocol(_) | FailedResponseKind::Call { .. });
        if !shown || self.kept.iter().any(|kept| kept.kind.counts_as_same_kind(kind)) || self.kept.len() >= KINDS_MAX {
            return None;
        }
        let mut kept = FailedResponseCopy {
            kind,
            at_ns: piece.at_ns,
            bytes: Vec::new(),
            unfinished_exchange: Some(piece.exchange),
        };
        if let (true, FailedResponseKind::Status(status) | FailedResponseKind::Call { status, .. }) =
            (piece.has_separate_head, kind)
        {
            kept.add(format!("HTTP/2 {status}\r\n\r\n").as_bytes());
        }
        kept.add(piece.bytes);
        self.kept.push(kept);
        Some(self.kept.len() - 1)
    }

    /// Removes and returns the collected responses, as redacted text.
    pub fn take_failed_responses(&mut self) -> Vec<FailedResponse> {
        let how = self.redact;
        let told = |kept: FailedResponseCopy| match kept.kind {
            FailedResponseKind::StatusPending => None,
            FailedResponseKind::Status(status) => {
                Some(FailedResponse::from_response(status, kept.at_ns, &kept.bytes, how))
            }
            FailedResponseKind::Call { status, grpc_status: ended, is_stated, fault } => Some(
                FailedResponse::from_response(status, kept.at_ns, &kept.bytes, how)
                    .with_grpc_status(ended, is_stated, fault),
            ),
            FailedResponseKind::Protocol(error) => {
                Some(FailedResponse::from_non_http_bytes(kept.at_ns, &kept.bytes, &error.to_string(), how))
            }
        };
        let kept = std::mem::take(&mut self.kept).into_iter().filter_map(told);
        kept.chain(std::mem::take(&mut self.failed_checks)).collect()
    }
}

/// Returns the HTTP status in the first bytes of a response. `None`: the status is incomplete, or
/// the bytes begin an interim response (1xx).
pub fn status_in_partial_head(bytes: &[u8]) -> Option<u16> {
    let line = bytes.trim_ascii_start();
    let digits = line.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    let status = digits.iter().try_fold(0, |status, digit| match digit {
        b'0'..=b'9' => Some(status * 10 + u16::from(digit - b'0')),
        _ => None,
    })?;
    (status >= 200).then_some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_piece(exchange: u32, first: bool, bytes: &[u8]) -> TimedResponsePiece<'_> {
        TimedResponsePiece { exchange, first, has_separate_head: false, bytes, at_ns: u64::from(exchange) }
    }

    #[test]
    fn the_first_failure_of_each_kind_is_stored_whole() {
        let mut failed = FailedResponses::default();
        // Exchange 1 receives a failed response in pieces, and the first piece is too short for the
        // status. Between the pieces, exchange 3 receives a response of the same kind, and exchange
        // 2 receives a successful response.
        failed.add_unfinished_piece(FailedResponseKind::StatusPending, answer_piece(1, true, b"HTT"));
        failed.add_unfinished_piece(FailedResponseKind::StatusPending, answer_piece(2, true, b"HT"));
        failed.add_unfinished_piece(FailedResponseKind::Status(503), answer_piece(1, false, b"P/1.1 503 Busy\r\n\r\n"));
        failed.store_last_piece(FailedResponseKind::Status(503), answer_piece(3, true, b"HTTP/1.1 503 Second\r\n\r\n"));
        failed.store_last_piece(FailedResponseKind::Status(503), answer_piece(1, false, b"try later"));
        // Exchange 2 begins a new response: the open copy of exchange 2 belongs to an earlier
        // response that succeeded.
        failed.store_last_piece(FailedResponseKind::Status(500), answer_piece(2, true, b"HTTP/1.1 500 Oops\r\n\r\n"));
        // Exchange 4 receives the end of a response whose beginning was not stored.
        failed.store_last_piece(FailedResponseKind::Status(502), answer_piece(4, false, b"the end of a page"));
        failed.store_last_piece(
            FailedResponseKind::Protocol(ProtocolError::BadChunk),
            answer_piece(5, false, b"xyz\r\n"),
        );
        failed.store_last_piece(
            FailedResponseKind::Protocol(ProtocolError::BadStatusLine),
            answer_piece(6, true, b"SSH"),
        );
        // A response without a gRPC status is known to fail only at its end, so its last piece is
        // shown.
        let page = TimedResponsePiece { has_separate_head: true, ..answer_piece(8, false, b"<h1>a page</h1>") };
        failed.store_last_piece(
            FailedResponseKind::Call { status: 200, grpc_status: GrpcStatus::Unknown, is_stated: false, fault: None },
            page,
        );
        // The unfinished response of exchange 7 is discarded, because the exchange was given up.
        failed.add_unfinished_piece(FailedResponseKind::Status(504), answer_piece(7, true, b"HTTP/1.1 504 "));
        failed.discard_unfinished_response(7);
        let mut told: Vec<(u16, String)> =
            failed.take_failed_responses().iter().map(|one| (one.status, one.description())).collect();
        told.sort();
        let no_http = format!("\"xyz\", {}", ProtocolError::BadChunk);
        let expect = [
            (0, no_http.as_str()),
            (200, "HTTP/2 200, UNKNOWN, \"<h1>a page</h1>\", the response has no grpc-status"),
            (500, "HTTP/1.1 500 Oops"),
            (503, "HTTP/1.1 503 Busy, \"try later\""),
        ];
        assert_eq!(told, expect.map(|(status, text)| (status, text.to_owned())));
        assert!(failed.take_failed_responses().is_empty());
    }

    #[test]
    fn stored_failed_responses_are_bounded() {
        let mut failed = FailedResponses::default();
        let long = [b"HTTP/1.1 500 Oops\r\n\r\n", &[b'x'; 100_000][..]].concat();
        for status in 400..440 {
            failed.store_last_piece(FailedResponseKind::Status(status), answer_piece(1, true, &long));
        }
        assert_eq!(failed.kept.len(), KINDS_MAX);
        assert!(failed.kept.iter().all(|kept| kept.bytes.len() == KEPT_RESPONSE_BYTES));
    }

    #[test]
    fn the_status_is_parsed_from_a_partial_head() {
        for (bytes, expect) in [
            (&b"HTTP/1.1 503"[..], Some(503)),
            (b"\r\nHTTP/1.0 200 OK", Some(200)),
            (b"HTTP/1.1 100 Continue", None),
            (b"HTTP/1.1 50", None),
            (b"SSH-2.0-x", None),
            (b"", None),
        ] {
            assert_eq!(status_in_partial_head(bytes), expect, "{bytes:?}");
        }
    }
}
