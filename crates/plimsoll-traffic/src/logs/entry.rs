//! One request of a log line, and its construction from the fields of the line.

use super::stamp::StampFormat;
use std::net::IpAddr;

/// The meaning of a line's timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stamp {
    /// The arrival of the request.
    Start,
    /// The end of the response, when the line was written.
    #[default]
    End,
}

/// One request of a log line. Texts are slices of the line. Times are ns since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entry<'a> {
    /// The timestamp of the line.
    pub stamp_ns: u64,
    /// The arrival of the request; without a duration, a timestamp at the end takes its place.
    pub start_ns: u64,
    /// Time from the first byte of the request to the end of the response, if logged.
    pub duration_ns: Option<u64>,
    /// The method, such as `GET`; empty if the request was invalid.
    pub method: &'a [u8],
    /// Path and query as requested; empty if the request was invalid.
    pub target: &'a [u8],
    /// The status of the response.
    pub status: Option<u16>,
    /// Bytes of the response.
    pub bytes: Option<u64>,
    /// The client, usually an address.
    pub client: &'a [u8],
    /// The client's `User-Agent`.
    pub user_agent: &'a [u8],
    /// The field that identifies sessions, if the user named one.
    pub session: &'a [u8],
}

impl Entry<'_> {
    /// The path without its query.
    pub fn path(&self) -> &[u8] {
        memchr::memchr2(b'?', b'#', self.target).map_or(self.target, |at| &self.target[..at])
    }

    /// The end of the response.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns.unwrap_or(0))
    }
}

/// The meaning of a field of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LinePlace {
    /// The timestamp; its meaning depends on the format.
    Time(StampFormat),
    /// A timestamp of the arrival.
    Start(StampFormat),
    /// A timestamp of the end.
    End(StampFormat),
    /// A method such as `GET`.
    Method,
    /// A method in capitals, for formats without other distinctive fields.
    Verb,
    /// Path and query, or a URL.
    Target,
    /// A target that begins with a slash or scheme, for formats without other distinctive fields.
    Path,
    /// A request line: `GET /path HTTP/1.1`.
    Request,
    /// The status of the response.
    Status,
    /// Bytes of the response.
    Bytes,
    /// A duration with this unit in ns. Several durations add up.
    Duration(u64),
    /// The client.
    Client,
    /// The client as an address or host name; any other text means that the line has another
    /// format.
    Address,
    /// The client's address with its port.
    AddressPort,
    /// The client with its port.
    ClientPort,
    /// A word without blanks that is no address.
    Word,
    /// A list of upstream servers, separated by `, ` and ` : `.
    List,
    /// HAProxy's times, separated by `/`, ms: the last one is the total.
    ProxyTimes,
    /// The `User-Agent`.
    UserAgent,
    /// The session identifier.
    Session,
    /// An unused field.
    Other,
}

impl LinePlace {
    /// Whether the field is a timestamp.
    pub fn is_moment(&self) -> bool {
        matches!(self, LinePlace::Time(_) | LinePlace::Start(_) | LinePlace::End(_))
    }
}

/// The texts of a line by meaning.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Raw<'a> {
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

impl<'a> Raw<'a> {
    /// Stores the text of a field; `None` if it does not fit the field. A dash stands for a missing
    /// value.
    #[inline]
    pub fn put(&mut self, place: &LinePlace, text: &'a [u8]) -> Option<()> {
        // Columns are padded with blanks.
        let text = match place {
            LinePlace::Other | LinePlace::List | LinePlace::Word => text,
            LinePlace::Request | LinePlace::UserAgent | LinePlace::Session => text,
            _ => text.trim_ascii(),
        };
        let missing = text.is_empty() || text == b"-";
        match place {
            LinePlace::Other | LinePlace::List => {}
            LinePlace::Word => {
                (!text.is_empty() && !text.iter().any(|b| b" :".contains(b)) && !is_ip(text)).then_some(())?
            }
            LinePlace::Time(writing) => self.stamp = Some(writing.read(text)?),
            LinePlace::Start(writing) if !missing => self.start = Some(writing.read(text)?),
            LinePlace::End(writing) if !missing => self.end = Some(writing.read(text)?),
            LinePlace::Request => self.request = Some(text),
            LinePlace::Verb => self.method = Some(text).filter(|text| is_verb(text))?,
            LinePlace::Path => self.target = Some(text).filter(|text| is_path(text))?,
            // A missing client is written as a dash, never as an empty text.
            LinePlace::Address | LinePlace::AddressPort if text.is_empty() => return None,
            _ if missing => {}
            LinePlace::Method => self.method = text,
            LinePlace::Target => self.target = text,
            LinePlace::Bytes => self.bytes = Some(whole(text)?),
            LinePlace::Duration(unit_ns) => {
                if let Some(ns) = duration_ns(text, *unit_ns)? {
                    self.duration_ns = Some(self.duration_ns.unwrap_or(0).saturating_add(ns));
                }
            }
            // Proxies append themselves to a list; the first entry is the client.
            LinePlace::Address => {
                // With its port, each connection would count as a client.
                let bare = Some(without_port(text)).filter(|bare| is_ip(bare));
                self.client = bare.or(Some(text).filter(|text| is_address(text)))?;
            }
            LinePlace::AddressPort => self.client = Some(without_port(text)).filter(|text| is_address(text))?,
            LinePlace::ProxyTimes => {
                let whole = text.rsplit(|b| *b == b'/').next().unwrap_or(text);
                let whole = whole.strip_prefix(b"+").unwrap_or(whole);
                self.duration_ns = duration_ns(whole, plimsoll_model::units::MS)?;
            }
            // There was no response.
            LinePlace::Status if text == b"-1" => {}
            LinePlace::Status => self.status = Some(status(text)?),
            LinePlace::Client => self.client = text.split(|b| *b == b',').next().unwrap_or(text),
            LinePlace::ClientPort => self.client = without_port(text),
            LinePlace::UserAgent => self.user_agent = text,
            LinePlace::Session => self.session = text,
            LinePlace::Start(_) | LinePlace::End(_) => {}
        }
        Some(())
    }

    /// The request of these texts; `None` without a timestamp or request.
    #[inline]
    pub fn entry(self, meaning: Stamp) -> Option<Entry<'a>> {
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
            Stamp::Start => (self.start.or(self.stamp), self.end),
            Stamp::End => (self.start, self.end.or(self.stamp)),
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

/// Whether a word is a method in the usual spelling.
fn is_verb(word: &[u8]) -> bool {
    (3..=20).contains(&word.len()) && word.iter().all(u8::is_ascii_uppercase)
}

/// Whether a word is a path or URL.
fn is_path(word: &[u8]) -> bool {
    word.starts_with(b"/") || word.starts_with(b"http://") || word.starts_with(b"https://") || word == b"*"
}

/// Method and target of a request line; both empty for bytes that are no HTTP, such as a TLS
/// handshake on a plain port.
fn request_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memchr::memchr(b' ', line)?;
    let (method, rest) = (&line[..space], &line[space + 1..]);
    let is_method =
        (1..=32).contains(&method.len()) && method.iter().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(b));
    // HTTP/0.9 has no version. Broken clients send targets with blanks. Some servers log the
    // version as a number.
    let is_version = |word: &[u8]| word.starts_with(b"HTTP/") || [&b"1.0"[..], b"1.1", b"2", b"3"].contains(&word);
    let target = match memchr::memrchr(b' ', rest) {
        Some(at) if is_version(&rest[at + 1..]) => &rest[..at],
        _ => rest,
    };
    (is_method && !target.is_empty()).then_some((method, target))
}

/// The target without scheme and host.
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
        // An IPv6 address without brackets has colons of its own.
        Some(at) if text[..at].contains(&b':') && !text.starts_with(b"[") => text,
        Some(at) => {
            text[..at].strip_prefix(b"[").map_or(&text[..at], |inner| inner.strip_suffix(b"]").unwrap_or(inner))
        }
        None => text,
    }
}

fn whole(text: &[u8]) -> Option<u64> {
    let mut value: u64 = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            // A JSON number may have a fraction.
            return number(text).filter(|v| *v >= 0.0).map(|v| v as u64);
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.trim().parse::<f64>().ok().filter(|v| v.is_finite())
}

/// A status; some servers log 0 without a response.
fn status(text: &[u8]) -> Option<u16> {
    let value = whole(text)?;
    (value == 0 || (100..1000).contains(&value)).then_some(value as u16)
}

fn is_ip(text: &[u8]) -> bool {
    // A quick check: most words are no addresses.
    text.first().is_some_and(|b| b.is_ascii_hexdigit() || *b == b':')
        && std::str::from_utf8(text).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

/// Whether a text can be a client: an address, a host name, or a placeholder for hidden addresses.
fn is_address(text: &[u8]) -> bool {
    const HASH_DIGITS_MIN: usize = 8;
    let is_of_host = |b: &u8| b.is_ascii_alphanumeric() || b"-._:%[]".contains(b);
    let has_parts = text.contains(&b'.') || text.contains(&b':');
    is_ip(text)
        || (has_parts && text.iter().all(is_of_host) && stamp_like(text).is_none())
        || [&b"localhost"[..], b"unknown", b"unix:"].contains(&text)
        || (text.len() >= HASH_DIGITS_MIN && text.iter().all(u8::is_ascii_hexdigit))
}

/// The timestamp, if the text is one, and so no client.
fn stamp_like(text: &[u8]) -> Option<u64> {
    text.first().filter(|b| b.is_ascii_digit()).and_then(|_| super::stamp::read(text))
}

/// A duration in the unit of its field, or with its own unit; `Some(None)` if it was not measured
/// (-1).
fn duration_ns(text: &[u8], unit_ns: u64) -> Option<Option<u64>> {
    // `0.010, 0.020`: several upstream servers in sequence.
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
    if let Some(value) = number(text) {
        return Some((value >= 0.0).then(|| (value * unit_ns as f64).min(u64::MAX as f64) as u64));
    }
    go_duration_ns(text).map(Some)
}

/// A decimal number of digits with at most one point, converted exactly.
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

/// A duration in Go's syntax: `1m30.5s`, `12ms`, `930.1µs`.
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
    fn durations_have_the_unit_of_their_place_or_their_own() {
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
    fn request_lines() {
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
