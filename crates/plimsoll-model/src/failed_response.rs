//! The first failed response of each kind: its status line, type, length and the beginning of its
//! content, redacted.
//!
//! The bytes of failed responses are converted to text only in this file, so that no unredacted
//! text is recorded or shown. A failed response may repeat secrets of its request (keys, codes,
//! passphrases). To hide such secrets, the record contains only short plain words of the response,
//! unless the user wants the whole text.
//!
//! Not here: the rules by which responses fail, and how the engine gets the bytes of responses.

use crate::RouteNumber;
use crate::grpc::{CallFault, GrpcStatus};
use crate::ledger::RequestFailure;
use crate::redact::{self, RedactionLevel};
use serde::{Deserialize, Serialize};

/// The maximum number of kinds of failed responses that a load records. A load records one response
/// of each kind.
pub const KINDS_MAX: usize = 16;
/// Number of first bytes of a failed response that plimsoll keeps. The number exceeds the length of
/// most response headers.
pub const KEPT_RESPONSE_BYTES: usize = 4 << 10;
/// The maximum number of characters of a response's content that are shown.
const SHOWN_CONTENT_CHARS_MAX: usize = 200;

/// The first failed response of a kind. The kind is the HTTP status or the failed check. For gRPC,
/// the kind also contains the gRPC status and the fault of the call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FailedResponse {
    /// The HTTP status, by which failed responses are grouped unless `failed_check` is set. The
    /// status is 0 if the received bytes were no HTTP response.
    pub status: u16,
    /// The failed check (expectation or capture) of a response whose status counts as success. If a
    /// check failed, responses are grouped by the check instead of the HTTP status.
    #[serde(rename = "missed", default, skip_serializing_if = "Option::is_none")]
    pub failed_check: Option<FailedRouteCheck>,
    /// The status of a gRPC call ([`GrpcStatus`]). Failed responses with different gRPC statuses
    /// are different kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc_status: Option<u16>,
    /// The fault in the messages of a gRPC call that ended with `OK`. Failed responses with
    /// different faults are different kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_fault: Option<CallFault>,
    /// Schedule time of the failure, in ns since the start of the load.
    pub at_ns: u64,
    /// The status line of the response; empty if the received bytes were no HTTP response.
    pub status_line: String,
    /// The beginning of the content, on one line. If the received bytes are no HTTP response, the
    /// field contains the beginning of all received bytes.
    pub body: String,
    /// The media type of the response; empty if the response has no header field `Content-Type`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content_type: String,
    /// The declared length of the content, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_bytes: Option<u64>,
    /// The reason of the failure in words; empty if the status already tells the reason.
    pub reason: String,
    /// Whether the response has the header field `Retry-After`; `None` means that plimsoll did not
    /// keep the response header.
    #[serde(default)]
    #[serde(rename = "retry_after")]
    pub has_retry_after: Option<bool>,
}

/// A failed check of a route: a response did not meet an expectation, or lacked a value to capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FailedRouteCheck {
    /// The route of the failed request.
    pub route: RouteNumber,
    /// The kind of failure: [`RequestFailure::Expectation`] or [`RequestFailure::Capture`].
    pub failure: RequestFailure,
}

impl FailedResponse {
    /// The reason text for a response to a gRPC call that has no gRPC status, because a proxy or a
    /// server without gRPC sent it. The gRPC status of the call was derived from the HTTP status.
    pub const NO_GRPC_STATUS: &str = "the response has no grpc-status";

    /// Returns the kind of the failed response.
    pub fn kind(&self) -> (u16, Option<u16>, Option<CallFault>, Option<FailedRouteCheck>) {
        // All responses that fail the same check are one kind, whatever their HTTP status, so the
        // kind of a failed check contains the status 0.
        (
            if self.failed_check.is_some() { 0 } else { self.status },
            self.grpc_status,
            self.call_fault,
            self.failed_check,
        )
    }

    /// Creates the entry for a response with a successful status that fails an expectation or a
    /// capture. `answer` has the status line and the content of the response. `at_ns` is the
    /// schedule time of the failure, ns.
    pub fn from_failed_check(
        status: u16,
        missed: FailedRouteCheck,
        at_ns: u64,
        answer: (&[u8], &[u8]),
        reason: &str,
        how: RedactionLevel,
    ) -> FailedResponse {
        let (line, content) = answer;
        let status_line = shorten_text(&redact::redact_line(String::from_utf8_lossy(line).trim()));
        let (body, reason) = (
            redacted_one_line_text(&content[..content.len().min(KEPT_RESPONSE_BYTES)], how),
            redact::redact_line(reason),
        );
        FailedResponse { failed_check: Some(missed), reason, ..FailedResponse::new(status, at_ns, status_line, body) }
    }

    /// Creates an entry with the given fields; all other fields are empty.
    fn new(status: u16, at_ns: u64, status_line: String, body: String) -> FailedResponse {
        FailedResponse {
            status,
            failed_check: None,
            grpc_status: None,
            call_fault: None,
            at_ns,
            status_line,
            body,
            content_type: String::new(),
            content_bytes: None,
            reason: String::new(),
            has_retry_after: None,
        }
    }

    /// Creates the entry for a response with this status. `bytes` are the first bytes of the
    /// response, including interim (1xx) responses.
    pub fn from_response(status: u16, at_ns: u64, bytes: &[u8], how: RedactionLevel) -> FailedResponse {
        let (mut head, mut content) = head_and_content(bytes);
        // Skip interim (1xx) responses: each interim response has a header, but no content.
        while is_interim(head) && !content.is_empty() {
            (head, content) = head_and_content(content);
        }
        let head = String::from_utf8_lossy(head);
        let status_line = redact::redact_line(head.trim_start().lines().next().unwrap_or_default().trim());
        let lower = head.to_ascii_lowercase();
        let field =
            |name: &str| lower.lines().find_map(|field| Some(field.strip_prefix(name)?.strip_prefix(':')?.trim()));
        let chunked = field("transfer-encoding").is_some_and(|coding| coding.ends_with("chunked"));
        // For HTTP/2 no header fields are kept, only a status line that plimsoll writes, so
        // `Retry-After` is unknown.
        let has_retry_after = (!head.starts_with("HTTP/2")).then(|| field("retry-after").is_some());
        let body = if chunked {
            redacted_one_line_text(&decode_chunked_content(content), how)
        } else {
            redacted_one_line_text(content, how)
        };
        let content_type = field("content-type").map_or_else(String::new, media_type);
        let content_bytes = field("content-length").and_then(|length| length.parse().ok());
        let answer = FailedResponse::new(status, at_ns, shorten_text(&status_line), body);
        FailedResponse { has_retry_after, content_type, content_bytes, ..answer }
    }

    /// Marks the entry as the response to a gRPC call with status `status`, and adds the fault of
    /// the call's messages, if any. `is_stated` is true if the response has a `grpc-status`. If
    /// `is_stated` is false, the gRPC status was derived from the HTTP status.
    pub fn with_grpc_status(mut self, status: GrpcStatus, is_stated: bool, fault: Option<CallFault>) -> FailedResponse {
        (self.grpc_status, self.call_fault) = (Some(status as u16), fault);
        self.status_line = format!("{}, {}", self.status_line, status.name());
        if let Some(fault) = fault {
            self.reason = fault.description().to_owned();
        } else if !is_stated {
            self.reason = FailedResponse::NO_GRPC_STATUS.to_owned();
        }
        self
    }

    /// Creates the entry for bytes that are no HTTP response, with the reason.
    pub fn from_non_http_bytes(at_ns: u64, bytes: &[u8], reason: &str, how: RedactionLevel) -> FailedResponse {
        let answer = FailedResponse::new(0, at_ns, String::new(), redacted_one_line_text(bytes, how));
        FailedResponse { reason: reason.to_owned(), ..answer }
    }

    /// Describes the response in words: `HTTP/1.1 503 Busy, "try later"`. If a part of the content
    /// is redacted, the text includes the type and length of the content.
    pub fn description(&self) -> String {
        let shape = || {
            let bytes = self.content_bytes.map(|bytes| format!("{bytes} bytes"));
            let parts = [(!self.content_type.is_empty()).then(|| self.content_type.clone()), bytes];
            let shape = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
            if shape.is_empty() { shape } else { format!(" ({shape})") }
        };
        let is_whole = !self.body.contains(redact::REDACTED);
        let body = match (self.body.is_empty(), is_whole) {
            (true, _) => String::new(),
            (false, true) => format!("\"{}\"", self.body),
            (false, false) => format!("\"{}\"{}", self.body, shape()),
        };
        let parts = [self.status_line.clone(), body, self.reason.clone()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// Merges `theirs` into `mine`: two lists of first failed responses. The merged list is sorted by
/// kind, contains the earlier response of each kind, and has at most [`KINDS_MAX`] responses.
pub fn merge_first_failures(mine: &mut Vec<FailedResponse>, theirs: &[FailedResponse]) {
    mine.extend_from_slice(theirs);
    mine.sort_unstable_by(|one, other| (one.kind(), one.at_ns, one).cmp(&(other.kind(), other.at_ns, other)));
    mine.dedup_by_key(|answer| answer.kind());
    mine.truncate(KINDS_MAX);
}

fn head_and_content(bytes: &[u8]) -> (&[u8], &[u8]) {
    // Find the first empty line, which ends the head. Lines may end with a bare line feed, and
    // empty lines may precede a head.
    let begin = bytes.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(bytes.len());
    let after = |at: usize| match &bytes[at + 1..] {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    };
    let ends = (begin..bytes.len()).filter(|at| bytes[*at] == b'\n').find_map(after);
    bytes.split_at(ends.unwrap_or(bytes.len()))
}

fn is_interim(head: &[u8]) -> bool {
    head.trim_ascii_start().strip_prefix(b"HTTP/1.").is_some_and(|rest| rest.get(1..3) == Some(b" 1"))
}

/// Returns the content of a chunked body, up to the last chunk whose size was received completely.
fn decode_chunked_content(mut bytes: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        let size = String::from_utf8_lossy(&bytes[..end]);
        let size = size.split(';').next().unwrap_or_default().trim();
        let Ok(length @ 1..) = usize::from_str_radix(size, 16) else { break };
        let chunk = &bytes[end + 1..];
        content.extend_from_slice(&chunk[..length.min(chunk.len())]);
        bytes = chunk.get(length..).unwrap_or_default();
        bytes = bytes.strip_prefix(b"\r").unwrap_or(bytes);
        bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
    }
    content
}

/// Returns the media type of a `Content-Type` field, without its parameters.
fn media_type(value: &str) -> String {
    let name = value.split(';').next().unwrap_or_default().trim();
    let is_one = name.len() <= 60 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/+-.".contains(&byte));
    if is_one { redact::redact_path(name) } else { String::new() }
}

/// Converts untrusted bytes to text that fits one line, redacted as `how` says.
fn redacted_one_line_text(bytes: &[u8], how: RedactionLevel) -> String {
    if bytes.is_empty() {
        return String::new();
    }
    let text = String::from_utf8_lossy(bytes);
    let strange = text.chars().filter(|c| *c == '\u{fffd}' || (c.is_control() && !c.is_whitespace())).count();
    if strange * 10 > text.chars().count() {
        return "(no text)".into();
    }
    let one_line = |text: &str| {
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    match how {
        RedactionLevel::SecretsButBodies => one_line(&text),
        // Redact the text before it is shortened, because the first half of a secret could look
        // like a plain word.
        RedactionLevel::Secrets | RedactionLevel::All => shorten_text(&one_line(&redact::redact_excerpt(&text))),
    }
}

fn shorten_text(text: &str) -> String {
    let more = if text.chars().count() > SHOWN_CONTENT_CHARS_MAX { " ..." } else { "" };
    text.chars().take(SHOWN_CONTENT_CHARS_MAX).chain(more.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_response_is_shown_on_one_line() {
        for (bytes, expect) in [
            (
                &b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nno such\nx"[..],
                "HTTP/1.1 404 Not Found, \"no such x\"",
            ),
            (b"HTTP/1.1 500 Oops\r\n\r\n", "HTTP/1.1 500 Oops"),
            (b"\r\nHTTP/1.1 500 Oops\nX: y\n\nbare", "HTTP/1.1 500 Oops, \"bare\""),
            (b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nlater", "HTTP/1.1 503 Busy, \"later\""),
            (
                b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3;x=y\r\ntry\r\n6\r\n later\r\n0\r\n\r\n",
                "HTTP/1.1 503 Busy, \"try later\"",
            ),
            (
                b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 Oops\r\n\r\nno",
                "HTTP/1.1 500 Oops, \"no\"",
            ),
            (
                b"HTTP/1.1 500 Oops\r\n\r\n\x1b[2J\x07password=hunter2 x",
                "HTTP/1.1 500 Oops, \"[2J password=[redacted] x\"",
            ),
            (b"HTTP/1.1 500 Oops\r\n\r\n\x1f\x8b\x08\x00\x00\xff\xfe\x80", "HTTP/1.1 500 Oops, \"(no text)\""),
            (b"HTTP/1.1 500", "HTTP/1.1 500"),
            (b"HTTP/1.1 401 token=abc\r\n\r\n", "HTTP/1.1 401 token=[redacted]"),
        ] {
            assert_eq!(FailedResponse::from_response(500, 0, bytes, RedactionLevel::Secrets).description(), expect);
        }
        let long = [&b"HTTP/1.1 500 Oops\r\n\r\n"[..], "word ".repeat(500).as_bytes()].concat();
        let shown = FailedResponse::from_response(500, 0, &long, RedactionLevel::Secrets).description();
        assert!(shown.ends_with(" ...\"") && shown.chars().count() < 240, "{shown}");
        let no_http =
            FailedResponse::from_non_http_bytes(0, b"SSH server\r\n", "no status line", RedactionLevel::Secrets);
        assert_eq!(no_http.description(), "\"SSH server\", no status line");
        for (bytes, expect) in [
            (&b"HTTP/1.1 503 Busy\r\nRetry-after: 3\r\n\r\n"[..], Some(true)),
            (b"HTTP/1.1 503 Busy\r\n\r\nRetry-After: 3", Some(false)),
            (b"HTTP/2 503\r\n\r\n", None),
        ] {
            assert_eq!(FailedResponse::from_response(503, 0, bytes, RedactionLevel::Secrets).has_retry_after, expect);
        }
    }

    #[test]
    fn possible_secrets_are_redacted_unless_requested() {
        let head = "HTTP/1.1 401 No\r\nContent-Type: application/json; charset=x\r\nContent-Length: 99\r\n\r\n";
        for (body, expect) in [
            ("{\"error\":\"no such user\",\"id\":5}", "HTTP/1.1 401 No, \"{\"error\":\"no such user\",\"id\":5}\""),
            (
                "{\"key\":\"aGVsbG8gd29ybGQ=\"}",
                "HTTP/1.1 401 No, \"{\"key\":\"[redacted]=\"}\" (application/json, 99 bytes)",
            ),
            (
                "code A1B2-C3D4-E5F6 is used",
                "HTTP/1.1 401 No, \"code [redacted] is used\" (application/json, 99 bytes)",
            ),
            (
                "<p>passphrase: correct horse battery</p>",
                "HTTP/1.1 401 No, \"<p>passphrase: [redacted]</p>\" (application/json, 99 bytes)",
            ),
            (
                "see http://h/reset?token=Zq7xK2mW9vLp",
                "HTTP/1.1 401 No, \"see http://h/reset?token=[redacted]\" (application/json, 99 bytes)",
            ),
        ] {
            let bytes = [head, body].concat();
            let shown = FailedResponse::from_response(401, 0, bytes.as_bytes(), RedactionLevel::Secrets);
            assert_eq!(shown.description(), expect, "{body}");
            let whole = FailedResponse::from_response(401, 0, bytes.as_bytes(), RedactionLevel::SecretsButBodies);
            assert_eq!(whole.body, body);
        }
    }

    #[test]
    fn merging_keeps_the_earliest_failure_of_each_kind() {
        let one = |status, at_ns, body: &str| FailedResponse::new(status, at_ns, String::new(), body.into());
        let parts = [
            vec![one(503, 5, "b"), one(500, 9, "late")],
            vec![one(500, 2, "early")],
            vec![one(503, 5, "a"), one(0, 1, "")],
        ];
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let mut sum = Vec::new();
            order.iter().for_each(|part| merge_first_failures(&mut sum, &parts[*part as usize]));
            assert_eq!(sum, [one(0, 1, ""), one(500, 2, "early"), one(503, 5, "a")]);
        }
        let many: Vec<FailedResponse> = (400..440).map(|status| one(status, 0, "")).collect();
        let mut sum = Vec::new();
        merge_first_failures(&mut sum, &many);
        assert_eq!(sum.len(), KINDS_MAX);
    }
}
