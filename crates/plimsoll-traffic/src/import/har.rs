//! Imports browser recordings (HAR 1.2). The result is one scenario with the requests to the page's
//! host, in order of time and with pauses.
//!
//! Recorded cookies are omitted, because each session gets new cookies from the server. Values that
//! came from the server (identifiers, tokens) stay as recorded. A note about the import names the
//! values that look like secrets. Not here: the browser's cache, and concurrent requests.

mod recorded_secrets;

use self::recorded_secrets::RecordedSecretFinder;
use super::draft::{
    self, Draft, DraftAction, DraftBody, DraftExpect, DraftPart, DraftRequest, DraftScenario, DraftStep, DraftText,
    ImportResult,
};
use super::nodes::{
    entries, field, field_number, is_http_token, items, percent_encode_text, scalar_field_text, split_http_url,
};
use crate::file::json;
use crate::file::tree::{TrafficFileError, TreeNode};
use plimsoll_model::timestamp::unix_time_ns;
use std::collections::{HashMap, HashSet};

/// The shortest imported pause, ms. Shorter pauses come from the browser, not from the user.
const PAUSE_MS_MIN: u64 = 100;
/// The longest imported pause, ms (1 hour).
const PAUSE_MS_MAX: u64 = 3_600_000;
/// The largest number of imported entries; an entry is one request of the recording.
const ENTRIES_MAX: usize = 10_000;

/// The largest number of header fields of a request. Typical servers accept a hundred header
/// fields.
const HEADERS_MAX: usize = 1_000;

/// Header fields that are not imported, because the HTTP client or the session's cookies set these
/// fields.
const CLIENT_SET_HEADERS: [&str; 13] = [
    "host",
    "connection",
    "content-length",
    "cookie",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
    "expect",
];
/// Header fields of conditional requests. The importer omits conditional fields, because their
/// values depend on the browser's cache.
const CONDITIONAL_FIELDS: [&str; 5] =
    ["if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range"];

/// Imports the recorded requests to `host`. Without `host`, the first host of the recording is
/// used.
pub fn import_har(source: &str, host: Option<&str>) -> Result<ImportResult, TrafficFileError> {
    let tree = json::parse_json_tree(source.strip_prefix('\u{feff}').unwrap_or(source))?;
    let Some(log) = field(&tree, "log") else {
        return tree.error("this is not a HAR recording: it has no 'log'");
    };
    let Some(list) = field(log, "entries") else {
        return log.error("this is not a HAR recording: its 'log' has no 'entries'");
    };
    let (list, is_sorted) = sort_by_start_time(list.list("'entries'")?);
    let list = list.as_slice();
    let Some(origin) = most_frequent_origin(list, host) else {
        return match host {
            Some(host) => tree.error(format!("this HAR recording has no request to {host}")),
            None => tree.error("no entry of this HAR recording is an HTTP request"),
        };
    };
    let mut reader = HarReader {
        draft: Draft { base: Some(origin.clone()), ..Draft::default() },
        origin,
        set_cookies: HashSet::new(),
        secret_finder: RecordedSecretFinder::default(),
        ended_ns: None,
        steps: Vec::new(),
    };
    if let (false, [first, ..]) = (is_sorted, list) {
        reader.draft.note_omission(
            first.at,
            "some entries of the HAR recording are not in order of time: the importer sorts the requests by time",
        );
    }
    for node in list {
        if reader.steps.len() == ENTRIES_MAX {
            reader.draft.note_repeated_omission(
                node.at,
                format!("HAR entries beyond the first {ENTRIES_MAX} are not imported"),
            );
            continue;
        }
        reader.import_entry(node);
    }
    let title = items(log, "pages").first().and_then(|page| scalar_field_text(page, "title"));
    let HarReader { mut draft, origin, steps, .. } = reader;
    draft.about.push(format!("A recording of {origin}."));
    let name = title.filter(|title| !title.trim().is_empty()).unwrap_or("recording").to_owned();
    draft.scenarios.push(DraftScenario { name, weight: 1, cookies: true, steps });
    draft.finish("plimsoll can import no entry of this HAR recording")
}

/// Sorts entries by start time, because the HAR specification allows any order. Returns whether the
/// entries were sorted already. An entry without a time follows its predecessor.
fn sort_by_start_time(list: &[TreeNode]) -> (Vec<&TreeNode>, bool) {
    let mut last_ns = 0;
    let stamped = list.iter().map(|node| {
        last_ns = scalar_field_text(node, "startedDateTime")
            .and_then(|text| unix_time_ns(text.as_bytes()))
            .unwrap_or(last_ns);
        (last_ns, node)
    });
    let mut stamped: Vec<(u64, &TreeNode)> = stamped.collect();
    let is_sorted = stamped.is_sorted_by_key(|(ns, _)| *ns);
    stamped.sort_by_key(|(ns, _)| *ns);
    (stamped.into_iter().map(|(_, node)| node).collect(), is_sorted)
}

/// Returns the most frequent origin of the wanted host. Without a wanted host, the first host
/// counts, because a recording begins with the request for its page.
fn most_frequent_origin(list: &[&TreeNode], wanted: Option<&str>) -> Option<String> {
    let urls: Vec<_> =
        list.iter().filter_map(|node| split_http_url(scalar_field_text(field(node, "request")?, "url")?)).collect();
    let host = |authority: &str| match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host.to_owned(),
        _ => authority.to_owned(),
    };
    let wanted = wanted.map(str::to_ascii_lowercase).or_else(|| urls.first().map(|url| host(&url.authority)))?;
    let mut counts: HashMap<String, (u64, usize)> = HashMap::new();
    for (number, url) in urls.iter().enumerate() {
        if url.authority == wanted || host(&url.authority) == wanted {
            counts.entry(url.origin()).or_insert((0, usize::MAX - number)).0 += 1;
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(origin, _)| origin)
}

struct HarReader<'a> {
    draft: Draft,
    origin: String,
    /// The names of cookies that recorded responses set.
    set_cookies: HashSet<String>,
    secret_finder: RecordedSecretFinder<'a>,
    /// The latest end of a response so far, ns since the Unix epoch.
    ended_ns: Option<u64>,
    steps: Vec<DraftStep>,
}

impl<'a> HarReader<'a> {
    fn import_entry(&mut self, node: &'a TreeNode) {
        let (Some(request), response) = (field(node, "request"), field(node, "response")) else {
            return self.draft.note_omission(node.at, "a HAR entry without a request is not imported");
        };
        let method = scalar_field_text(request, "method").unwrap_or("GET").trim().to_ascii_uppercase();
        let whole = scalar_field_text(request, "url").unwrap_or_default();
        let Some(parts) = split_http_url(whole) else {
            let scheme = whole.split(':').next().unwrap_or_default();
            let scheme: String = scheme.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(20).collect();
            let text =
                format!("a request to a {scheme}: URL is not imported: plimsoll imports only http: and https: URLs");
            return self.draft.note_repeated_omission(node.at, text);
        };
        if parts.origin() != self.origin {
            let text =
                format!("a request to {origin} is not imported: import that host separately", origin = parts.origin());
            return self.draft.note_repeated_omission(node.at, text);
        }
        let path = parts.target.split('?').next().unwrap_or("/");
        let request_name = draft::short_name(&format!("{method} {path}"));
        let status = response.and_then(|response| field_number(response, "status")).unwrap_or(0.0) as u16;
        if let Some(cache) = scalar_field_text(node, "_fromCache") {
            let text = format!("{request_name} is not imported: its response came from the browser's cache ({cache})");
            return self.draft.note_omission(node.at, text);
        }
        if status == 101 || scalar_field_text(node, "_resourceType") == Some("websocket") {
            return self.draft.note_omission(node.at, format!("{request_name} is not imported: it opens a WebSocket"));
        }
        if scalar_field_text(node, "_resourceType") == Some("eventsource") || is_event_stream(response) {
            let text = format!("{request_name} is not imported: its response is a stream of events without an end");
            return self.draft.note_omission(node.at, text);
        }
        if !is_http_token(&method) || method == "CONNECT" {
            return self.draft.note_omission(node.at, "a request with an invalid method is not imported");
        }
        // A request without a response, which a hand-written file may have, is imported. Browsers
        // write status 0 if there was no response, so a request with status 0 is omitted.
        if response.is_some() && !(200..600).contains(&status) {
            return self
                .draft
                .note_omission(node.at, format!("{request_name} is not imported: its response never arrived"));
        }
        let think = self.pause_before_request(node, &request_name);
        let mut request_made = DraftRequest {
            method,
            target: DraftText::literal(&parts.target),
            expect: response.map_or_else(DraftExpect::default, |_| expected_status(status)),
            ..DraftRequest::default()
        };
        self.import_headers(request, &mut request_made);
        if let Some(authorization) = parts.authorization().filter(|_| !request_made.has_header("authorization")) {
            request_made.headers.push(("authorization".to_owned(), DraftText::literal(&authorization)));
        }
        self.import_body(request, &mut request_made, &request_name);
        let is_sent = |name: &str| !CLIENT_SET_HEADERS.contains(&name) && !CONDITIONAL_FIELDS.contains(&name);
        for (at, text) in self.secret_finder.find_secret_notes(request, &request_name, is_sent) {
            self.draft.note_repeated_omission(at, text);
        }
        if let Some(response) = response {
            self.secret_finder.add_answer(&request_name, response);
            let cookies = items(response, "cookies").iter().filter_map(|cookie| scalar_field_text(cookie, "name"));
            let fields = items(response, "headers").iter().filter_map(|header| {
                let is_it = scalar_field_text(header, "name")?.eq_ignore_ascii_case("set-cookie");
                scalar_field_text(header, "value").filter(|_| is_it)?.split('=').next()
            });
            self.set_cookies.extend(cookies.chain(fields).map(|name| name.trim().to_owned()));
        }
        self.steps.push(DraftStep {
            at: Some(node.at),
            name: Some(request_name),
            think,
            action: DraftAction::Request(Box::new(request_made)),
            ..DraftStep::default()
        });
    }

    /// Returns the pause between the last response and the request of `node`, in the syntax of a
    /// think time.
    fn pause_before_request(&mut self, node: &TreeNode, request_name: &str) -> Option<String> {
        let start_ns = unix_time_ns(scalar_field_text(node, "startedDateTime")?.as_bytes())?;
        let length_ns = (field_number(node, "time").unwrap_or(0.0).clamp(0.0, 1e9) * 1e6) as u64;
        let ended_ns = self.ended_ns;
        self.ended_ns = Some(ended_ns.unwrap_or(0).max(start_ns.saturating_add(length_ns)));
        let Some(pause_ns) = start_ns.checked_sub(ended_ns?) else {
            self.draft.note_repeated_omission(
                node.at,
                "the browser sent this request in parallel with another request: plimsoll sends the requests one at a \
                 time",
            );
            return None;
        };
        match pause_ns / 1_000_000 {
            ms if ms < PAUSE_MS_MIN => None,
            ms if ms <= PAUSE_MS_MAX => Some(format!("{ms}ms")),
            _ => {
                let text = format!("{request_name}: the pause of more than an hour before this request is left out");
                self.draft.note_omission(node.at, text);
                None
            }
        }
    }

    fn import_headers(&mut self, request: &TreeNode, out: &mut DraftRequest) {
        for (number, header) in items(request, "headers").iter().enumerate() {
            if number == HEADERS_MAX {
                let text = format!("header fields beyond the first {HEADERS_MAX} of a request are not imported");
                return self.draft.note_omission(header.at, text);
            }
            let (Some(name), value) =
                (scalar_field_text(header, "name"), scalar_field_text(header, "value").unwrap_or_default())
            else {
                continue;
            };
            let lower = name.trim().to_ascii_lowercase();
            if CONDITIONAL_FIELDS.contains(&lower.as_str()) {
                let text =
                    format!("the header {header_name} is not imported: plimsoll has no cache", header_name = lower);
                self.draft.note_repeated_omission(header.at, text);
            } else if lower == "cookie" {
                for pair in value.split(';') {
                    let name = pair.split('=').next().unwrap_or_default().trim();
                    if !name.is_empty() && !self.set_cookies.contains(name) {
                        let name: String = name.chars().filter(|c| !c.is_control()).take(60).collect();
                        let text = format!(
                            "the cookie '{name}' is not sent: it was set before the recording, and plimsoll sends only \
                                 cookies that responses set"
                        );
                        self.draft.note_repeated_omission(header.at, text);
                    }
                }
            } else if !lower.starts_with(':') && !lower.is_empty() && !CLIENT_SET_HEADERS.contains(&lower.as_str()) {
                if !is_http_token(&lower) || value.contains(['\r', '\n', '\0']) {
                    self.draft
                        .note_repeated_omission(header.at, "a header with an invalid name or value is not imported");
                    continue;
                }
                // Repeated header fields, other than cookies, are joined with commas, as HTTP
                // permits.
                match out.headers.iter_mut().find(|(own, _)| *own == lower) {
                    // Some tools record a field twice: as the page set the field, and as the
                    // browser sent the field.
                    Some((_, own)) if own.as_literal() == Some(value) => {}
                    Some((_, own)) => own.push(&format!(", {value}")),
                    None => out.headers.push((lower, DraftText::literal(value))),
                }
            }
        }
    }

    fn import_body(&mut self, request: &TreeNode, out: &mut DraftRequest, request_name: &str) {
        let Some(data) = field(request, "postData") else {
            // In a recording, browsers omit the content of uploaded files, and some tools omit all
            // request bodies.
            let length = items(request, "headers").iter().find_map(|header| {
                let is_it = scalar_field_text(header, "name")?.eq_ignore_ascii_case("content-length");
                scalar_field_text(header, "value").filter(|_| is_it)?.trim().parse::<u64>().ok()
            });
            if length.is_some_and(|length| length > 0)
                || field_number(request, "bodySize").unwrap_or(0.0) > 0.0
                || (length.is_none()
                    && matches!(out.method.as_str(), "POST" | "PUT" | "PATCH")
                    && out.has_header("content-type"))
            {
                self.draft.note_omission(request.at, format!("{request_name}: its body was not recorded"));
            }
            return;
        };
        let kind = scalar_field_text(data, "mimeType").unwrap_or_default();
        let content = scalar_field_text(data, "text").filter(|content| !content.is_empty());
        let parameters = items(data, "params");
        // Some tools record every body that may be binary in base64, but the decoded body may still
        // be text.
        let decoded = match (scalar_field_text(data, "encoding"), content) {
            (Some("base64"), Some(content)) => base64_text(content),
            _ => None,
        };
        let is_encoded = field(data, "encoding").is_some() && decoded.is_none();
        let content = decoded.as_deref().or(content);
        if is_encoded || content.is_some_and(|content| content.contains('\u{fffd}')) {
            self.draft.note_omission(
                data.at,
                format!("{request_name}: its body is not text: put the body into a file, body = \"@FILE\""),
            );
        } else if let Some(content) = content {
            out.body = DraftBody::Text(DraftText::literal(content));
        } else if kind.starts_with("multipart/") && !parameters.is_empty() {
            let mut parts = Vec::new();
            for parameter in parameters {
                let name = scalar_field_text(parameter, "name").unwrap_or_default();
                let value = scalar_field_text(parameter, "value").unwrap_or_default();
                let file = scalar_field_text(parameter, "fileName")
                    .map(|file| file.rsplit(['/', '\\']).next().unwrap_or(file));
                let mut part = match file {
                    None => DraftPart::text(name, DraftText::literal(value)),
                    // The recording contains the content of the uploaded file (HAR 1.2, `params`).
                    Some(file) if is_text(value) => DraftPart {
                        file_name: Some(file.to_owned()),
                        ..DraftPart::text(name, DraftText::literal(value))
                    },
                    Some(file) => {
                        let said = format!(
                            "{request_name}: its form uploads the file {file}: put this file beside the traffic file"
                        );
                        self.draft.note_omission(parameter.at, said);
                        DraftPart::file(name, file)
                    }
                };
                part.kind =
                    scalar_field_text(parameter, "contentType").filter(|kind| !kind.is_empty()).map(str::to_owned);
                parts.push(part);
            }
            // The imported multipart body gets a new boundary and a new content type, so the
            // recorded content type is removed.
            out.headers.retain(|(name, _)| name != "content-type");
            out.body = DraftBody::Parts(parts);
        } else if !parameters.is_empty() {
            let pair = |parameter: &TreeNode| {
                let part = |key: &str| encode_if_needed(scalar_field_text(parameter, key).unwrap_or_default());
                format!("{}={}", part("name"), part("value"))
            };
            let pairs: Vec<String> = parameters.iter().map(pair).collect();
            out.body = DraftBody::Text(DraftText::literal(&pairs.join("&")));
        }
        if !matches!(out.body, DraftBody::None | DraftBody::Parts(_))
            && !kind.is_empty()
            && !out.has_header("content-type")
        {
            out.headers.push(("content-type".to_owned(), DraftText::literal(kind)));
        }
        if matches!(out.body, DraftBody::None)
            && field_number(request, "bodySize").unwrap_or(0.0) > 0.0
            && entries(data).is_empty()
        {
            self.draft.note_omission(data.at, format!("{request_name}: its body was not recorded"));
        }
    }
}

/// Returns whether a value is the content of a file and not only a placeholder.
fn is_text(value: &str) -> bool {
    !["", "(binary)"].contains(&value) && !value.contains('\u{fffd}')
}

/// Decodes base64 to text; `None` if the input is not base64, or the result is not UTF-8.
fn base64_text(content: &str) -> Option<String> {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::STANDARD.decode(content.trim()).ok()?;
    String::from_utf8(bytes).ok()
}

/// Returns whether a response is a stream of events (`EventSource`), which has no end.
fn is_event_stream(response: Option<&TreeNode>) -> bool {
    let content = response.and_then(|response| field(response, "content"));
    content
        .and_then(|content| scalar_field_text(content, "mimeType"))
        .is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// Percent-encodes a text that is not encoded yet. Some browsers record form fields
/// percent-encoded, and some record them as plain texts.
fn encode_if_needed(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~+%*".contains(c);
    if text.chars().all(is_plain) { text.to_owned() } else { percent_encode_text(text) }
}

/// Returns the expectation that the response has the recorded status. If the recorded status is 304
/// (not modified), status 200 is accepted too, because plimsoll has no cache.
fn expected_status(status: u16) -> DraftExpect {
    let status = if status == 304 { "200,304".to_owned() } else { status.to_string() };
    DraftExpect { status: Some(status), ..DraftExpect::default() }
}
