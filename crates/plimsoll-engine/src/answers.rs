//! Stores and checks the responses of routes (kinds of request) with expectations or captures. The
//! head and the content of a response are stored while they arrive, and checked when the response
//! is complete.
//!
//! If a route has no checks, the content of its responses is not stored. Each exchange (one request
//! with its response) has a buffer that is reused for later responses. Not here: checks of the
//! status, and the use of captured values.

use crate::content_coding::{self, ContentBudget, DecodeError, is_coded};
use crate::json_find;
use crate::patterns::{PatternCache, PatternError};
use memchr::memmem::Finder;
use plimsoll_model::expect::{CONTENT_BYTES_MAX, CaptureSource, JsonExpectation, TextExpectation};
use plimsoll_model::grpc_message::GrpcMessageConverter;
use plimsoll_model::json_path::JsonPath;
use plimsoll_model::{RequestFailure, Route};
use plimsoll_wire::ResponsePiece;
use regex::bytes::Regex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The maximum length in bytes of a stored response head. Connections accept only shorter heads.
const HEAD_BYTES_MAX: usize = 128 << 10;
/// The maximum size in bytes of the buffer that an exchange keeps for its next response. Larger
/// buffers are shrunk to this size.
const REUSED_BUFFER_BYTES_MAX: usize = 64 << 10;

/// The memory budget for the contents of all responses in flight, shared by all workers.
static CONTENT_BUDGET: ContentBudget = ContentBudget::new();

/// The received part of a response, stored for checks.
#[derive(Debug, Default)]
pub struct StoredResponse {
    /// The response head: over HTTP/1.1 all bytes before the content, over HTTP/2 the header fields
    /// as lines.
    head: Vec<u8>,
    content: Vec<u8>,
    content_bytes: u64,
    has_separate_head: bool,
    head_only: bool,
    /// The number of bytes that this response takes from `CONTENT_BUDGET`. The first
    /// `REUSED_BUFFER_BYTES_MAX` of the response's buffer are not counted.
    reservation: BufferReservation,
    /// Whether the memory budget was exhausted, so that further content is not stored.
    is_budget_exhausted: bool,
}

/// The number of responses whose content was not stored because the memory budget was exhausted.
static CONTENT_BUDGET_MISSES: AtomicU64 = AtomicU64::new(0);

/// Returns how many responses of this process were not stored because responses in flight had used
/// the whole memory budget. Checks of their contents failed.
pub fn content_budget_miss_count() -> u64 {
    CONTENT_BUDGET_MISSES.load(Ordering::Relaxed)
}

/// A number of bytes that a stored response has taken from [`CONTENT_BUDGET`]. Dropping the
/// reservation returns the bytes to the budget.
#[derive(Debug, Default)]
struct BufferReservation(usize);

impl BufferReservation {
    fn return_to_budget(&mut self) {
        CONTENT_BUDGET.return_bytes(std::mem::take(&mut self.0));
    }
}

impl Drop for BufferReservation {
    fn drop(&mut self) {
        self.return_to_budget();
    }
}

impl StoredResponse {
    /// Clears the stored response and prepares for the next one. Over HTTP/2 `fields` is the head,
    /// which arrives separately from the content. If `head_only` is true, the content is not
    /// stored.
    pub fn begin_response(&mut self, fields: Option<&[u8]>, head_only: bool) {
        self.clear_response();
        (self.has_separate_head, self.head_only, self.content_bytes) = (fields.is_some(), head_only, 0);
        self.head.extend_from_slice(fields.unwrap_or_default());
    }

    /// Removes the stored response, and releases memory beyond [`REUSED_BUFFER_BYTES_MAX`].
    pub fn clear_response(&mut self) {
        for room in [&mut self.head, &mut self.content] {
            room.clear();
            room.shrink_to(REUSED_BUFFER_BYTES_MAX);
        }
        self.reservation.return_to_budget();
        self.is_budget_exhausted = false;
    }

    /// Stores the next received piece of the response.
    pub fn add_piece(&mut self, piece: ResponsePiece) {
        let framing = piece.framing();
        // Before the content begins, bytes that are not content belong to the head. After the first
        // content, bytes that are not content are chunk framing.
        if !self.has_separate_head && self.content.is_empty() && self.head.len() < HEAD_BYTES_MAX {
            self.head.extend_from_slice(framing);
        }
        let content = piece.content();
        self.content_bytes += content.len() as u64;
        if self.head_only {
            // With `head_only`, only the first byte of the content is stored, to mark the end of
            // the head.
            return self.content.extend(content.first().filter(|_| self.content.is_empty()));
        }
        let room = CONTENT_BYTES_MAX - self.content.len();
        let content = &content[..content.len().min(room)];
        if self.reserve_content(content.len(), &CONTENT_BUDGET) {
            self.content.extend_from_slice(content);
        }
    }

    /// Reserves memory for `bytes` more bytes of content. Returns false if the shared memory budget
    /// has too little left.
    fn reserve_content(&mut self, bytes: usize, room: &ContentBudget) -> bool {
        let wanted = self.content.len() + bytes;
        if self.is_budget_exhausted || wanted <= self.content.capacity() {
            return !self.is_budget_exhausted;
        }
        let capacity = wanted.next_power_of_two().clamp(REUSED_BUFFER_BYTES_MAX, CONTENT_BYTES_MAX.max(wanted));
        let more = capacity.saturating_sub(REUSED_BUFFER_BYTES_MAX).saturating_sub(self.reservation.0);
        if !room.take(more) {
            self.is_budget_exhausted = true;
            CONTENT_BUDGET_MISSES.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.reservation.0 += more;
        self.content.reserve_exact(capacity - self.content.len());
        true
    }

    /// Replaces the stored head by the header fields, which over HTTP/2 arrive separately from the
    /// content.
    pub fn set_separate_head(&mut self, fields: &[u8]) {
        self.has_separate_head = true;
        self.head.clear();
        self.head.extend_from_slice(fields);
    }

    /// Returns the stored content: the first `CONTENT_BYTES_MAX` bytes at most, because checks
    /// search no further.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// Returns the length of the received content in bytes, including content that was not stored.
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Returns the response head with its final blank line, without the interim responses (1xx)
    /// before it.
    pub fn head(&self) -> &[u8] {
        let end = |head: &[u8]| {
            let end = memchr::memmem::find(head, b"\n\r\n").map(|at| at + 3);
            end.or_else(|| memchr::memmem::find(head, b"\n\n").map(|at| at + 2)).unwrap_or(head.len())
        };
        let mut head = self.head.trim_ascii_start();
        while !self.has_separate_head && is_interim(head) {
            head = head[end(head)..].trim_ascii_start();
        }
        &head[..end(head)]
    }

    /// Iterates over the lines of the response head: over HTTP/1.1 the status line first, then the
    /// header fields.
    fn head_lines(&self) -> impl Iterator<Item = &[u8]> {
        let head = self.head();
        let line = |line: &'_ [u8]| line.strip_suffix(b"\r").map_or(line.len(), <[u8]>::len);
        head.split(|byte| *byte == b'\n').map(move |text| &text[..line(text)]).take_while(|line| !line.is_empty())
    }

    /// Returns the status line of the response. HTTP/2 has no status line, so an equivalent line is
    /// built.
    pub fn status_line(&self, status: u16) -> Vec<u8> {
        match self.has_separate_head {
            true => format!("HTTP/2 {status}").into_bytes(),
            false => self.head_lines().next().unwrap_or_default().to_vec(),
        }
    }

    /// Returns the values of all header fields with this name.
    pub fn field_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.head_lines().filter_map(move |line| {
            let colon = memchr::memchr(b':', line)?;
            line[..colon].eq_ignore_ascii_case(name.as_bytes()).then(|| line[colon + 1..].trim_ascii())
        })
    }

    /// Returns the value of the cookie `name` that the response sets. If the response sets the
    /// cookie several times, the last value counts.
    fn cookie_value<'a>(&'a self, name: &'a str) -> Option<&'a [u8]> {
        let value = |field: &'a [u8]| {
            let pair = field.split(|byte| *byte == b';').next()?;
            let equals = memchr::memchr(b'=', pair)?;
            (pair[..equals].trim_ascii() == name.as_bytes()).then(|| pair[equals + 1..].trim_ascii())
        };
        self.field_values("set-cookie").filter_map(value).last()
    }
}

fn is_interim(head: &[u8]) -> bool {
    head.strip_prefix(b"HTTP/1.").is_some_and(|rest| rest.get(1..3) == Some(b" 1"))
}

/// The compiled expectations and captures of a route.
#[derive(Debug, Clone)]
pub struct ResponseChecks {
    response_time_ns_max: Option<u64>,
    headers: Vec<(String, TextCheck)>,
    json: Vec<(JsonPath, JsonExpectation)>,
    body: Option<TextCheck>,
    captures: Vec<(CaptureExtractor, Option<String>)>,
    /// The error message of each check, in the order of the checks. Messages contain no secrets.
    reasons: Vec<String>,
    scratch: Vec<u8>,
    /// The converter from gRPC content to JSON text for the checks; `None` if no check needs it.
    messages: Option<Arc<dyn GrpcMessageConverter>>,
    /// The index in `reasons` of the first message about content that could not be decoded (see
    /// `DecodeError`). `None`: no check reads the content.
    first_decode_reason: Option<usize>,
    /// A reused buffer for converted or decoded content.
    text: Vec<u8>,
    /// Whether the content of the last response was converted or decoded into `text`.
    is_content_converted: bool,
}

#[derive(Debug, Clone)]
enum TextCheck {
    Contains(Box<Finder<'static>>),
    Matches(Regex),
}

impl TextCheck {
    fn compile(expected: &TextExpectation, patterns: &mut PatternCache) -> Result<TextCheck, PatternError> {
        Ok(match expected {
            TextExpectation::Contains(text) => TextCheck::Contains(Box::new(Finder::new(text).into_owned())),
            TextExpectation::Matches(text) => TextCheck::Matches(patterns.compile(text)?),
        })
    }

    fn is_met_by(&self, text: &[u8]) -> bool {
        match self {
            TextCheck::Contains(finder) => finder.find(text).is_some(),
            TextCheck::Matches(pattern) => pattern.is_match(text),
        }
    }
}

/// The source of a captured value in a response: a JSON path, a pattern, a header field or a
/// cookie.
#[derive(Debug, Clone)]
enum CaptureExtractor {
    Json(JsonPath),
    Regex(Regex, regex::bytes::CaptureLocations),
    Header(String),
    HeaderRegex(String, Regex, regex::bytes::CaptureLocations),
    Cookie(String),
}

/// Returns the text of the first group in the pattern's first match. If the pattern has no group,
/// returns the whole match.
fn first_group<'a>(pattern: &Regex, places: &mut regex::bytes::CaptureLocations, text: &'a [u8]) -> Option<&'a [u8]> {
    pattern.captures_read(places, text)?;
    places.get(1).or(places.get(0)).map(|(from, to)| &text[from..to])
}

/// A failed expectation, or a capture that found no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedCheck {
    /// The kind of failure under which the ledger (the counts of request outcomes) counts the
    /// request.
    pub failure: RequestFailure,
    /// The index of the error message for the failed check.
    reason_index: usize,
}

impl ResponseChecks {
    /// Compiles the checks of a route. Returns `None` if the route checks nothing but the status.
    pub fn compile(route: &Route, patterns: &mut PatternCache) -> Result<Option<ResponseChecks>, PatternError> {
        let (expect, captures) = (&route.expect, &route.captures);
        if expect.is_empty() && captures.is_empty() {
            return Ok(None);
        }
        let mut reasons = Vec::new();
        reasons.extend(expect.response_time_ns_max.map(|ns| {
            format!(
                "the response took longer than {duration}",
                duration = plimsoll_model::units::format_exact_duration(ns)
            )
        }));
        let header_text = |name: &str| format!("the response header {name} does not match the expected text");
        reasons.extend(expect.headers.iter().map(|(name, _)| header_text(name)));
        reasons.extend(expect.json.iter().map(|(path, expected)| match expected {
            JsonExpectation::Null => format!("{json_path} is not null", json_path = path.source_text()),
            JsonExpectation::Flag(flag) => format!("{json_path} is not {flag}", json_path = path.source_text()),
            JsonExpectation::Number(number) => format!("{json_path} is not {number}", json_path = path.source_text()),
            JsonExpectation::Text(_) => {
                format!("{json_path} of the response is not the expected text", json_path = path.source_text())
            }
        }));
        let content_text = "the content of the response does not match the expected text";
        reasons.extend(expect.body.iter().map(|_| content_text.to_owned()));
        reasons.extend(captures.iter().map(|capture| match &capture.from {
            CaptureSource::Json(path) => format!(
                "the response has no {json_path} to capture '{capture}' from",
                json_path = path.source_text(),
                capture = capture.name
            ),
            CaptureSource::Regex(_) => {
                format!(
                    "the regular expression of the capture '{capture}' matches nothing in the response",
                    capture = capture.name
                )
            }
            CaptureSource::Header(name) => {
                format!("the response has no header {name} to capture '{capture}' from", capture = capture.name)
            }
            CaptureSource::HeaderRegex(name, _) => format!(
                "the regular expression of the capture '{capture}' matches nothing in the response header {name}",
                capture = capture.name
            ),
            CaptureSource::Cookie(name) => {
                format!("the response sets no cookie {name} to capture '{capture}' from", capture = capture.name)
            }
        }));
        let looks_into = expect.body.is_some()
            || !expect.json.is_empty()
            || captures.iter().any(|capture| capture.from.reads_content());
        let first_decode_reason = looks_into.then_some(reasons.len());
        if looks_into {
            reasons.extend(DecodeError::ALL.map(|why| why.reason(CONTENT_BYTES_MAX)));
        }
        let mut headers = Vec::new();
        for (name, expected) in &expect.headers {
            headers.push((name.clone(), TextCheck::compile(expected, patterns)?));
        }
        let body = expect.body.as_ref().map(|body| TextCheck::compile(body, patterns)).transpose()?;
        let mut capture = |from: &CaptureSource| {
            Ok::<_, PatternError>(match from {
                CaptureSource::Json(path) => CaptureExtractor::Json(path.clone()),
                CaptureSource::Regex(text) => {
                    let pattern = patterns.compile(text)?;
                    let places = pattern.capture_locations();
                    CaptureExtractor::Regex(pattern, places)
                }
                CaptureSource::Header(name) => CaptureExtractor::Header(name.clone()),
                CaptureSource::HeaderRegex(name, text) => {
                    let pattern = patterns.compile(text)?;
                    let places = pattern.capture_locations();
                    CaptureExtractor::HeaderRegex(name.clone(), pattern, places)
                }
                CaptureSource::Cookie(name) => CaptureExtractor::Cookie(name.clone()),
            })
        };
        Ok(Some(ResponseChecks {
            response_time_ns_max: expect.response_time_ns_max,
            headers,
            json: expect.json.clone(),
            body,
            captures: captures
                .iter()
                .map(|it| Ok((capture(&it.from)?, it.default.clone())))
                .collect::<Result<_, _>>()?,
            reasons,
            scratch: Vec::new(),
            messages: None,
            first_decode_reason,
            text: Vec::new(),
            is_content_converted: false,
        }))
    }

    /// Sets the converter that turns gRPC messages into JSON text.
    pub fn set_message_converter(&mut self, messages: Arc<dyn GrpcMessageConverter>) {
        if self.first_decode_reason.is_some() {
            self.reasons
                .push("the content of the response is not a message of the gRPC method's response type".to_owned());
            self.messages = Some(messages);
        }
    }

    /// Checks a complete response, which arrived `took_ns` after the request's intended start.
    /// Returns the first failed check. Calls `store_capture` with the number and text of each
    /// captured value, until a check fails.
    pub fn check_response(
        &mut self,
        answer: &StoredResponse,
        took_ns: u64,
        store_capture: &mut dyn FnMut(usize, &[u8]),
    ) -> Option<FailedCheck> {
        self.is_content_converted = false;
        let expects = self.body.is_some() || !self.json.is_empty();
        let of_content = if expects { RequestFailure::Expectation } else { RequestFailure::Capture };
        if let (Some(reasons), true) = (self.first_decode_reason, answer.is_budget_exhausted) {
            return Some(FailedCheck {
                failure: of_content,
                reason_index: reasons + DecodeError::BudgetExhausted as usize,
            });
        }
        let coded = || is_coded(answer.field_values("content-encoding")) && !answer.content.is_empty();
        let content: &[u8] = match (&self.messages, self.first_decode_reason) {
            (Some(messages), _) => {
                self.text.clear();
                self.text.shrink_to(REUSED_BUFFER_BYTES_MAX);
                if !messages.decode_to_json(&answer.content, &mut self.text) {
                    return Some(FailedCheck {
                        failure: RequestFailure::Expectation,
                        reason_index: self.reasons.len() - 1,
                    });
                }
                self.is_content_converted = true;
                &self.text
            }
            (None, Some(reasons)) if coded() => {
                self.text.clear();
                self.text.shrink_to(REUSED_BUFFER_BYTES_MAX);
                let decoded = match answer.content_bytes > CONTENT_BYTES_MAX as u64 {
                    true => Err(DecodeError::TooLong),
                    false => {
                        let codings = answer.field_values("content-encoding");
                        content_coding::decode(codings, &answer.content, CONTENT_BYTES_MAX, &mut self.text)
                    }
                };
                if let Err(why) = decoded {
                    return Some(FailedCheck { failure: of_content, reason_index: reasons + why as usize });
                }
                self.is_content_converted = true;
                &self.text
            }
            _ => &answer.content,
        };
        let mut check = 0;
        let mut missed = |holds: bool| {
            check += 1;
            (!holds).then_some(FailedCheck { failure: RequestFailure::Expectation, reason_index: check - 1 })
        };
        if let Some(within_ns) = self.response_time_ns_max
            && let Some(miss) = missed(took_ns <= within_ns)
        {
            return Some(miss);
        }
        for (name, expected) in &self.headers {
            if let Some(miss) = missed(answer.field_values(name).any(|value| expected.is_met_by(value))) {
                return Some(miss);
            }
        }
        for (path, expected) in &self.json {
            let value = json_find::find(content, path);
            let holds = value.is_some_and(|value| json_find::meets_expectation(value, expected, &mut self.scratch));
            if let Some(miss) = missed(holds) {
                return Some(miss);
            }
        }
        if let Some(expected) = &self.body
            && let Some(miss) = missed(expected.is_met_by(content))
        {
            return Some(miss);
        }
        for (number, (capture, default)) in self.captures.iter_mut().enumerate() {
            let found = match capture {
                CaptureExtractor::Json(path) => match json_find::find(content, path) {
                    Some(value) => {
                        self.scratch.clear();
                        json_find::append_value_as_text(value, &mut self.scratch);
                        Some(&self.scratch[..])
                    }
                    None => None,
                },
                CaptureExtractor::Regex(pattern, places) => first_group(pattern, places, content),
                CaptureExtractor::Header(name) => answer.field_values(name).next(),
                CaptureExtractor::HeaderRegex(name, pattern, places) => {
                    answer.field_values(name).find_map(|value| first_group(pattern, places, value))
                }
                CaptureExtractor::Cookie(name) => answer.cookie_value(name),
            };
            match found.or(default.as_deref().map(str::as_bytes)) {
                Some(value) => store_capture(number, value),
                None => return Some(FailedCheck { failure: RequestFailure::Capture, reason_index: check + number }),
            }
        }
        None
    }

    /// Returns the content of the last response after conversion for the checks: a gRPC message as
    /// JSON, or decompressed content. `None`: the checks used the content as received, or the
    /// converted content is empty.
    pub fn converted_content(&self) -> Option<&[u8]> {
        Some(&self.text[..]).filter(|text| self.is_content_converted && !text.is_empty())
    }

    /// Returns the message for a failed check, without secrets.
    pub fn reason(&self, miss: FailedCheck) -> &str {
        self.reasons.get(miss.reason_index).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Request;
    use plimsoll_model::expect::{Expectations, ResponseCapture};

    fn stored_response(head: &str, content: &str) -> StoredResponse {
        let has_separate_head = !head.starts_with("HTTP/");
        StoredResponse { head: head.into(), content: content.into(), has_separate_head, ..StoredResponse::default() }
    }

    fn judge_answer(answer: &StoredResponse, expect: Expectations, captures: &[&str]) -> Result<Vec<String>, String> {
        // Parses a capture in the syntax `FROM or DEFAULT`, in which the default is optional.
        let capture = |text: &&str| {
            let (from, default) =
                text.split_once(" or ").map_or((*text, None), |(from, to)| (from, Some(to.to_owned())));
            ResponseCapture { name: "it".into(), from: CaptureSource::parse(from).expect("a capture"), default }
        };
        let route =
            Route { expect, captures: captures.iter().map(capture).collect(), ..Route::new(Request::get_root()) };
        let mut checks =
            ResponseChecks::compile(&route, &mut PatternCache::default()).expect("compiles").expect("some");
        let mut all = Vec::new();
        let mut taken = |_: usize, value: &[u8]| all.push(String::from_utf8(value.to_vec()).expect("text"));
        match checks.check_response(answer, 1_000, &mut taken) {
            None => Ok(all),
            Some(miss) => Err(format!("{}: {}", miss.failure.name(), checks.reason(miss))),
        }
    }

    const SAMPLE_ANSWER_HEAD: &str = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Type: application/json; a=b\r\n\
                        set-cookie: sid=\"a b\"; Path=/\r\nSet-Cookie: x=1\r\nLocation:  /orders/7\r\n\r\n5\r\n";
    const SAMPLE_ANSWER_CONTENT: &str = "{\"ok\": true, \"id\": 7, \"token\": \"t\\u002fx\", \"items\": []}";

    #[test]
    fn responses_share_a_memory_budget() {
        let room = ContentBudget::new();
        let piece = vec![b'x'; 1 << 20];
        let mut answers: Vec<StoredResponse> = Vec::new();
        let fits = |answer: &mut StoredResponse| {
            (0..4).all(|_| {
                let fits = answer.reserve_content(piece.len(), &room);
                if fits {
                    answer.content.extend_from_slice(&piece);
                }
                fits
            })
        };
        let crowded = loop {
            let mut answer = StoredResponse::default();
            if !fits(&mut answer) {
                break answer;
            }
            answers.push(answer);
            assert!(answers.len() < 1_000, "there is a bound");
        };
        let held: usize = answers.iter().map(|answer| answer.content.capacity()).sum();
        assert!(held <= ContentBudget::BYTES_MAX + answers.len() * REUSED_BUFFER_BYTES_MAX, "{held}");
        let expect = Expectations { body: Some(TextExpectation::parse("x")), ..Expectations::default() };
        let error = judge_answer(&crowded, expect, &[]).expect_err("not looked at");
        assert!(error.contains("responses in flight take more than 128 MiB together"), "{error}");
        // A response returns its memory to the shared budget when it ends. This test returns the
        // memory of the first response by hand, because the test has a budget of its own.
        room.return_bytes(std::mem::take(&mut answers[0].reservation.0));
        assert!(fits(&mut StoredResponse { reservation: BufferReservation(0), ..StoredResponse::default() }));
        answers.iter_mut().for_each(|answer| answer.reservation.0 = 0);
    }

    #[test]
    fn missed_expectations_are_named() {
        let path = |text: &str| JsonPath::parse(text).expect("a path");
        let text = TextExpectation::parse;
        let json = |at: &str, expected| Expectations { json: vec![(path(at), expected)], ..Expectations::default() };
        let header =
            |name: &str, it: &str| Expectations { headers: vec![(name.into(), text(it))], ..Default::default() };
        let body = |it: &str| Expectations { body: Some(text(it)), ..Expectations::default() };
        let within = |ns| Expectations { response_time_ns_max: Some(ns), ..Expectations::default() };
        for (expect, miss) in [
            (json("$.ok", JsonExpectation::Flag(true)), None),
            (json("$.ok", JsonExpectation::Flag(false)), Some("expectation: $.ok is not false")),
            (json("$.no", JsonExpectation::Null), Some("expectation: $.no is not null")),
            (json("$.token", JsonExpectation::Text("t/x".into())), None),
            (
                json("$.token", JsonExpectation::Text("s3cret".into())),
                Some("expectation: $.token of the response is not the expected text"),
            ),
            (header("content-type", "application/json"), None),
            (header("CONTENT-TYPE", "regex:^application/json(;|$)"), None),
            (header("X-None", ""), Some("expectation: the response header X-None")),
            (body("\"id\": 7"), None),
            (body("regex:\"id\": \\d+,"), None),
            (body("nothing"), Some("expectation: the content")),
            (within(1_000), None),
            (within(999), Some("expectation: the response took longer than")),
        ] {
            let found = judge_answer(&stored_response(SAMPLE_ANSWER_HEAD, SAMPLE_ANSWER_CONTENT), expect.clone(), &[]);
            match miss {
                None => assert_eq!(found, Ok(vec![]), "{expect:?}"),
                Some(part) => assert!(found.as_ref().is_err_and(|it| it.starts_with(part)), "{expect:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn captures_work_over_http1_and_http2() {
        let fields = SAMPLE_ANSWER_HEAD.split("201 Created\r\n").nth(1).expect("fields").trim_end_matches("5\r\n");
        for head in [SAMPLE_ANSWER_HEAD, fields] {
            let taken = |captures: &[&str]| {
                judge_answer(&stored_response(head, SAMPLE_ANSWER_CONTENT), Expectations::default(), captures)
            };
            let all = ["$.token", "$.items", "regex:\"id\": (\\d+)", "regex:true", "header:location", "cookie:x"];
            assert_eq!(taken(&all), Ok(["t/x", "[]", "7", "true", "/orders/7", "1"].map(String::from).to_vec()));
            assert_eq!(taken(&["cookie:sid"]), Ok(vec!["\"a b\"".to_owned()]));
            let part =
                ["header:location regex:/orders/(\\d+)", "header:set-cookie regex:x=.", "header:none regex:x or no"];
            assert_eq!(taken(&part), Ok(["7", "x=1", "no"].map(String::from).to_vec()));
            let missing = ["$.none or NF", "regex:none or ", "header:none or a", "cookie:none or b", "$.id or c"];
            assert_eq!(taken(&missing), Ok(["NF", "", "a", "b", "7"].map(String::from).to_vec()));
            for (from, part) in [
                ("$.none", "capture: the response has no $.none to capture 'it' from"),
                ("regex:none", "capture: the regular expression of the capture 'it' matches nothing"),
                ("header:none", "capture: the response has no header none to capture 'it' from"),
                (
                    "header:location regex:none",
                    "capture: the regular expression of the capture 'it' matches nothing in the response header",
                ),
                ("cookie:none", "capture: the response sets no cookie none to capture 'it' from"),
            ] {
                let found = taken(&["$.ok", from]);
                assert!(found.as_ref().is_err_and(|it| it.starts_with(part)), "{found:?}");
            }
        }
    }

    #[test]
    fn checked_content_is_decoded() {
        let gzip = |text: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut encoder, text).expect("memory");
            encoder.finish().expect("memory")
        };
        let coded = |coding: &str, content: Vec<u8>| StoredResponse {
            content,
            ..stored_response(&format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\n\r\n"), "")
        };
        let body = |it: &str| Expectations { body: Some(TextExpectation::parse(it)), ..Expectations::default() };
        let whole = coded("gzip", gzip(SAMPLE_ANSWER_CONTENT.as_bytes()));
        assert_eq!(judge_answer(&whole, body("\"id\": 7"), &["$.token"]), Ok(vec!["t/x".to_owned()]));
        let mut long = coded("gzip", gzip(SAMPLE_ANSWER_CONTENT.as_bytes()));
        long.content_bytes = CONTENT_BYTES_MAX as u64 + 1;
        let bomb = coded("gzip", gzip(&vec![b' '; CONTENT_BYTES_MAX + 1]));
        for (answer, part) in [
            (
                &coded("gzip", SAMPLE_ANSWER_CONTENT.into()),
                "the content of the response cannot be decoded as its content-encoding says",
            ),
            (&coded("zstd", SAMPLE_ANSWER_CONTENT.into()), "the content-encoding of the response is not"),
            (&long, "the decoded content of the response is longer than 4 MiB"),
            (&bomb, "the decoded content of the response is longer than 4 MiB"),
        ] {
            let found = judge_answer(answer, body("id"), &[]);
            assert!(found.as_ref().is_err_and(|it| it.starts_with(&format!("expectation: {part}"))), "{found:?}");
            let found = judge_answer(answer, Expectations::default(), &["$.id"]);
            assert!(found.as_ref().is_err_and(|it| it.starts_with(&format!("capture: {part}"))), "{found:?}");
            // Checks that do not read the content accept an unknown content coding.
            let within = Expectations { response_time_ns_max: Some(1_000), ..Expectations::default() };
            assert_eq!(judge_answer(answer, within, &[]), Ok(vec![]));
        }
        // Empty content needs no decoding.
        assert_eq!(judge_answer(&coded("gzip", Vec::new()), body(""), &[]), Ok(vec![]));
    }

    #[test]
    fn invalid_patterns_are_refused_with_a_reason() {
        let route = Route {
            captures: vec![ResponseCapture {
                name: "it".into(),
                from: CaptureSource::Regex("a(".into()),
                default: None,
            }],
            ..Route::new(Request::get_root())
        };
        let error = ResponseChecks::compile(&route, &mut PatternCache::default())
            .map(|_| ())
            .expect_err("no pattern")
            .to_string();
        assert!(error.contains("'a('") && error.contains("unclosed group"), "{error}");
    }
}
