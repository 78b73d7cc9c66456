//! Represents one request of an access log, and builds the request from the fields of a log line.

use plimsoll_model::timestamp::TimestampFormat;
use std::net::IpAddr;

/// Whether the timestamp of a log line is the start or the end of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimestampMeaning {
    /// The timestamp is the arrival of the request.
    Start,
    /// The timestamp is the end of the response, when the server wrote the line.
    #[default]
    End,
}

/// One request of a log line. Texts are slices of the line, or of a buffer with unescaped texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entry<'a> {
    /// The start of the request if the line states it, otherwise the timestamp of the line, ns
    /// since the Unix epoch.
    pub stamp_ns: u64,
    /// The arrival of the request, ns since the Unix epoch. If the log line states neither an
    /// arrival nor a duration, this field has the end of the response.
    pub start_ns: u64,
    /// The time from the first byte of the request to the end of the response, ns; `None` if not
    /// logged.
    pub duration_ns: Option<u64>,
    /// The HTTP method, such as `GET`; empty if the request was invalid.
    pub method: &'a [u8],
    /// The path and query as logged; empty if the request was invalid.
    pub target: &'a [u8],
    /// The HTTP status of the response.
    pub status: Option<u16>,
    /// The size of the response, bytes.
    pub bytes: Option<u64>,
    /// The client that sent the request, usually as an IP address; empty if not logged.
    pub client: &'a [u8],
    /// The `User-Agent` of the client.
    pub user_agent: &'a [u8],
    /// The value of the field that identifies sessions; empty if the user named no such field.
    pub session: &'a [u8],
}

impl Entry<'_> {
    /// Returns the path without its query.
    pub fn path(&self) -> &[u8] {
        memchr::memchr2(b'?', b'#', self.target).map_or(self.target, |at| &self.target[..at])
    }

    /// Returns the end of the response, ns since the Unix epoch. If the log line has no duration,
    /// the value is `start_ns`.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns.unwrap_or(0))
    }
}

/// The meaning of one field of a log line, such as the status or the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FieldMeaning {
    /// A timestamp that is the start or the end of the request, depending on the log format.
    Time(TimestampFormat),
    /// A timestamp of the arrival of the request.
    Start(TimestampFormat),
    /// A timestamp of the end of the response.
    End(TimestampFormat),
    /// An HTTP method such as `GET`.
    Method,
    /// An HTTP method in capital letters only. Formats without other distinctive fields need the
    /// check for capital letters, so that lines of other formats do not match.
    UppercaseMethod,
    /// The path and query, or a whole URL.
    Target,
    /// A path or URL that must begin with a slash or scheme. Formats without other distinctive
    /// fields need the check for a slash or scheme, so that lines of other formats do not match.
    Path,
    /// A request line, such as `GET /path HTTP/1.1`.
    Request,
    /// The HTTP status of the response.
    Status,
    /// The size of the response, bytes.
    Bytes,
    /// A duration in the unit that the variant's value states in ns. If the value is 0, only a
    /// duration with a unit in its text, such as `12ms`, is accepted. If a log line has several
    /// durations, the durations are added.
    Duration(u64),
    /// The client that sent the request; any text is accepted.
    Client,
    /// The client as an IP address, a host name, or a placeholder for a hidden address. A line with
    /// any other text as the client is rejected as a line of another format.
    Address,
    /// The client as an address with a port.
    AddressWithPort,
    /// The client that sent the request, with a port; any text is accepted.
    ClientWithPort,
    /// An ignored word without blanks and colons, which must not be an IP address.
    IgnoredWord,
    /// An ignored list of upstream servers, separated by `, ` and ` : `.
    UpstreamList,
    /// HAProxy's times in ms, separated by `/`. The last time is the total duration of the
    /// request.
    ProxyTimes,
    /// The `User-Agent` of the client.
    UserAgent,
    /// The value that identifies the session.
    Session,
    /// An ignored field with any text.
    Ignored,
}

impl FieldMeaning {
    /// Returns whether the field is a timestamp of any kind.
    pub fn is_timestamp(&self) -> bool {
        matches!(self, FieldMeaning::Time(_) | FieldMeaning::Start(_) | FieldMeaning::End(_))
    }
}

/// The parsed fields of a log line by meaning, from which an [`Entry`] is built.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ParsedLogFields<'a> {
    pub stamp: Option<u64>,
    pub start: Option<u64>,
    pub end: Option<u64>,
    pub method: &'a [u8],
    pub target: &'a [u8],
    pub request: Option<&'a [u8]>,
    pub status: Option<u16>,
    pub bytes: Option<u64>,
    pub duration_ns: Option<u64>,
    pub client: &'a [u8],
    pub user_agent: &'a [u8],
    pub session: &'a [u8],
}

impl<'a> ParsedLogFields<'a> {
    /// Parses and stores the text of a field. `None` means that the text does not fit the field, so
    /// the line has another format. For most fields, a dash or an empty text means that the value
    /// is missing.
    #[inline]
    pub fn parse_field(&mut self, meaning: &FieldMeaning, text: &'a [u8]) -> Option<()> {
        // Some formats pad columns with blanks.
        let text = match meaning {
            FieldMeaning::Ignored | FieldMeaning::UpstreamList | FieldMeaning::IgnoredWord => text,
            FieldMeaning::Request | FieldMeaning::UserAgent | FieldMeaning::Session => text,
            _ => text.trim_ascii(),
        };
        let missing = text.is_empty() || text == b"-";
        match meaning {
            FieldMeaning::Ignored | FieldMeaning::UpstreamList => {}
            FieldMeaning::IgnoredWord => {
                (!text.is_empty() && !text.iter().any(|b| b" :".contains(b)) && !is_ip(text)).then_some(())?
            }
            FieldMeaning::Time(writing) => self.stamp = Some(writing.parse_unix_ns(text)?),
            FieldMeaning::Start(writing) if !missing => self.start = Some(writing.parse_unix_ns(text)?),
            FieldMeaning::End(writing) if !missing => self.end = Some(writing.parse_unix_ns(text)?),
            FieldMeaning::Request => self.request = Some(text),
            FieldMeaning::UppercaseMethod => self.method = Some(text).filter(|text| is_uppercase_method(text))?,
            FieldMeaning::Path => self.target = Some(text).filter(|text| is_path(text))?,
            // An empty text is not a client, because servers log a missing client as a dash.
            FieldMeaning::Address | FieldMeaning::AddressWithPort if text.is_empty() => return None,
            _ if missing => {}
            FieldMeaning::Method => self.method = text,
            FieldMeaning::Target => self.target = text,
            FieldMeaning::Bytes => self.bytes = Some(parse_whole_number(text)?),
            FieldMeaning::Duration(unit_ns) => {
                if let Some(ns) = duration_ns(text, *unit_ns)? {
                    self.duration_ns = Some(self.duration_ns.unwrap_or(0).saturating_add(ns));
                }
            }
            FieldMeaning::Address => {
                // The port is removed, because otherwise each connection would count as a separate
                // client.
                let bare = Some(without_port(text)).filter(|bare| is_ip(bare));
                self.client = bare.or(Some(text).filter(|text| is_address(text)))?;
            }
            FieldMeaning::AddressWithPort => self.client = Some(without_port(text)).filter(|text| is_address(text))?,
            FieldMeaning::ProxyTimes => {
                let whole = text.rsplit(|b| *b == b'/').next().unwrap_or(text);
                let whole = whole.strip_prefix(b"+").unwrap_or(whole);
                self.duration_ns = duration_ns(whole, plimsoll_model::units::MS)?;
            }
            // Status -1 means that there was no response.
            FieldMeaning::Status if text == b"-1" => {}
            FieldMeaning::Status => self.status = Some(parse_status(text)?),
            // Each proxy appends an address to the list of clients; the first address is the client
            // itself.
            FieldMeaning::Client => self.client = text.split(|b| *b == b',').next().unwrap_or(text),
            FieldMeaning::ClientWithPort => self.client = without_port(text),
            FieldMeaning::UserAgent => self.user_agent = text,
            FieldMeaning::Session => self.session = text,
            FieldMeaning::Start(_) | FieldMeaning::End(_) => {}
        }
        Some(())
    }

    /// Builds the entry from the parsed fields. Returns `None` if the timestamp or the request is
    /// missing. `meaning` states whether the timestamp is the start or the end of the request.
    #[inline]
    pub fn into_entry(self, meaning: TimestampMeaning) -> Option<Entry<'a>> {
        let (mut method, mut target) = (self.method, self.target);
        if target.is_empty()
            && let Some(line) = self.request
        {
            (method, target) = request_line(line).unwrap_or_default();
        } else if target.is_empty() {
            return None;
        }
        let target = without_origin(target);
        let (start, end) = match meaning {
            TimestampMeaning::Start => (self.start.or(self.stamp), self.end),
            TimestampMeaning::End => (self.start, self.end.or(self.stamp)),
        };
        let duration_ns = self.duration_ns.or_else(|| end?.checked_sub(start?));
        let (stamp_ns, start_ns) = match (start, end) {
            (Some(start), _) => (start, start),
            (None, Some(end)) => (end, end.saturating_sub(duration_ns.unwrap_or(0))),
            (None, None) => return None,
        };
        Some(Entry {
            stamp_ns,
            start_ns,
            duration_ns,
            method,
            target,
            status: self.status,
            bytes: self.bytes,
            client: self.client,
            user_agent: self.user_agent,
            session: self.session,
        })
    }
}

/// Returns whether a word is a method: 3 to 20 capital letters.
fn is_uppercase_method(word: &[u8]) -> bool {
    (3..=20).contains(&word.len()) && word.iter().all(u8::is_ascii_uppercase)
}

/// Returns whether a word is a path, a URL, or `*`.
fn is_path(word: &[u8]) -> bool {
    word.starts_with(b"/") || word.starts_with(b"http://") || word.starts_with(b"https://") || word == b"*"
}

/// Splits a request line into method and path. `None` if the text is not an HTTP request. An
/// example is a TLS handshake on a plain port.
fn request_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memchr::memchr(b' ', line)?;
    let (method, rest) = (&line[..space], &line[space + 1..]);
    let is_method =
        (1..=32).contains(&method.len()) && method.iter().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(b));
    // A request line of HTTP/0.9 ends without a version, and some servers log only the version
    // number. The path may contain blanks, because broken clients send blanks unencoded.
    let is_version = |word: &[u8]| word.starts_with(b"HTTP/") || [&b"1.0"[..], b"1.1", b"2", b"3"].contains(&word);
    let target = match memchr::memrchr(b' ', rest) {
        Some(at) if is_version(&rest[at + 1..]) => &rest[..at],
        _ => rest,
    };
    (is_method && !target.is_empty()).then_some((method, target))
}

/// Returns the path and query of a URL, without scheme and host.
fn without_origin(target: &[u8]) -> &[u8] {
    if target.first() == Some(&b'/') || target == b"*" {
        return target;
    }
    let scheme = [&b"http://"[..], b"https://", b"ws://", b"wss://"].into_iter().find(|s| target.starts_with(s));
    match scheme {
        Some(scheme) => {
            let host = &target[scheme.len()..];
            memchr::memchr(b'/', host).map_or(b"/", |at| &host[at..])
        }
        None => target,
    }
}

fn without_port(text: &[u8]) -> &[u8] {
    match memchr::memrchr(b':', text) {
        // The colons of an IPv6 address without brackets do not begin a port.
        Some(at) if text[..at].contains(&b':') && !text.starts_with(b"[") => text,
        Some(at) => {
            text[..at].strip_prefix(b"[").map_or(&text[..at], |inner| inner.strip_suffix(b"]").unwrap_or(inner))
        }
        None => text,
    }
}

fn parse_whole_number(text: &[u8]) -> Option<u64> {
    let mut value: u64 = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            // Some JSON loggers write whole numbers with a fraction, such as `200.0`.
            return parse_number(text).filter(|v| *v >= 0.0).map(|v| v as u64);
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

fn parse_number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.trim().parse::<f64>().ok().filter(|v| v.is_finite())
}

/// Parses a status: 100 to 999, or 0, which some servers log if there was no response.
fn parse_status(text: &[u8]) -> Option<u16> {
    let value = parse_whole_number(text)?;
    (value == 0 || (100..1000).contains(&value)).then_some(value as u16)
}

fn is_ip(text: &[u8]) -> bool {
    // The quick check of the first byte saves time, because most words are not addresses.
    text.first().is_some_and(|b| b.is_ascii_hexdigit() || *b == b':')
        && std::str::from_utf8(text).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

/// Returns whether a text can be a client: an IP address, a host name, or a placeholder for a
/// hidden address.
fn is_address(text: &[u8]) -> bool {
    const HASH_DIGITS_MIN: usize = 8;
    let is_of_host = |b: &u8| b.is_ascii_alphanumeric() || b"-._:%[]".contains(b);
    let has_parts = text.contains(&b'.') || text.contains(&b':');
    is_ip(text)
        || (has_parts && text.iter().all(is_of_host) && parse_client_like_timestamp(text).is_none())
        || [&b"localhost"[..], b"unknown", b"unix:"].contains(&text)
        || (text.len() >= HASH_DIGITS_MIN && text.iter().all(u8::is_ascii_hexdigit))
}

/// Parses a text that begins with a digit as a timestamp, in ns since the Unix epoch. The check of
/// clients rejects such a text, because a timestamp is not a client.
fn parse_client_like_timestamp(text: &[u8]) -> Option<u64> {
    text.first().filter(|b| b.is_ascii_digit()).and_then(|_| plimsoll_model::timestamp::unix_time_ns(text))
}

/// Parses a duration to ns. The duration is in the unit `unit_ns`, unless the text itself has a
/// unit, such as `12ms`. `Some(None)` means that the server logged -1, because the duration was not
/// measured. `None` means that the text is not a duration.
fn duration_ns(text: &[u8], unit_ns: u64) -> Option<Option<u64>> {
    // A list such as `0.010, 0.020` has the times of several upstream servers, which nginx tried in
    // sequence.
    if text.contains(&b',') {
        let mut sum = None;
        for part in text.split(|b| matches!(b, b',' | b':')) {
            if let Some(ns) = duration_ns(part.trim_ascii(), unit_ns).flatten() {
                sum = Some(sum.unwrap_or(0u64).saturating_add(ns));
            }
        }
        return Some(sum);
    }
    if let Some(ns) = decimal_ns(text, unit_ns) {
        return Some(Some(ns));
    }
    if let Some(value) = parse_number(text) {
        return Some((value >= 0.0).then(|| (value * unit_ns as f64).min(u64::MAX as f64) as u64));
    }
    go_duration_ns(text).map(Some)
}

/// Converts a decimal number to ns without floating-point arithmetic, so that the result has no
/// rounding error. `unit_ns` is the unit of the number. Digits below 1 ns are dropped. `None` if
/// the text is not a decimal number, or has more than 12 digits before or after the point.
fn decimal_ns(text: &[u8], unit_ns: u64) -> Option<u64> {
    let point = memchr::memchr(b'.', text).unwrap_or(text.len());
    let (digits, fraction) = text.split_at(point);
    if digits.is_empty() || digits.len() > 12 || fraction.len() > 13 {
        return None;
    }
    let mut value: u64 = 0;
    for byte in digits {
        value = value * 10 + u64::from(byte.is_ascii_digit().then(|| byte - b'0')?);
    }
    let mut ns = u128::from(value) * u128::from(unit_ns);
    let mut place = u128::from(unit_ns);
    for byte in fraction.iter().skip(1) {
        place /= 10;
        ns += place * u128::from(byte.is_ascii_digit().then(|| byte - b'0')?);
    }
    u64::try_from(ns).ok()
}

/// Parses a duration in Go's syntax, such as `1m30.5s`, `12ms` or `930.1µs`. The result is in ns.
fn go_duration_ns(text: &[u8]) -> Option<u64> {
    let mut rest = std::str::from_utf8(text).ok()?.trim();
    let mut ns = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let value: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        ns += value
            * match rest[..letters].trim() {
                "h" => 3600e9,
                "m" => 60e9,
                "s" => 1e9,
                "ms" => 1e6,
                "us" | "\u{b5}s" | "\u{3bc}s" => 1e3,
                "ns" => 1.0,
                _ => return None,
            };
        rest = &rest[letters..];
    }
    Some(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_use_their_own_or_the_field_unit() {
        for (text, unit, expect) in [
            ("0.123", 1_000_000_000, Some(Some(123_000_000))),
            ("12", 1_000_000, Some(Some(12_000_000))),
            ("0.000929675", 1_000_000_000, Some(Some(929_675))),
            ("5e-05", 1_000_000_000, Some(Some(50_000))),
            ("-1", 1_000_000_000, Some(None)),
            ("0.010, 0.020 : 0.003", 1_000_000_000, Some(Some(33_000_000))),
            ("1m30.5s", 1, Some(Some(90_500_000_000))),
            ("12ms", 1, Some(Some(12_000_000))),
            ("930.5µs", 1, Some(Some(930_500))),
            ("fast", 1, None),
            ("", 1, None),
        ] {
            assert_eq!(duration_ns(text.as_bytes(), unit), expect, "{text}");
        }
    }

    #[test]
    fn request_lines_are_split() {
        let text = |line: &str| {
            let (method, target) = request_line(line.as_bytes())?;
            Some((String::from_utf8_lossy(method).into_owned(), String::from_utf8_lossy(target).into_owned()))
        };
        for (line, expect) in [
            ("GET /a?b=c HTTP/1.1", Some(("GET", "/a?b=c"))),
            ("GET /a b HTTP/2.0", Some(("GET", "/a b"))),
            ("GET /old", Some(("GET", "/old"))),
            ("GET /a 1.1", Some(("GET", "/a"))),
            ("GET /a 1.5", Some(("GET", "/a 1.5"))),
            ("\\x16\\x03\\x01", None),
            ("-", None),
            ("", None),
            ("GET  HTTP/1.1", None),
        ] {
            let expect = expect.map(|(m, t)| (m.to_owned(), t.to_owned()));
            assert_eq!(text(line), expect, "{line}");
        }
        assert_eq!(without_origin(b"http://h:80/a?b"), b"/a?b");
        assert_eq!(without_origin(b"https://h"), b"/");
        assert_eq!(without_port(b"10.0.0.1:2817"), b"10.0.0.1");
        assert_eq!(without_port(b"[::1]:80"), b"::1");
        assert_eq!(without_port(b"::1"), b"::1");
    }
}
