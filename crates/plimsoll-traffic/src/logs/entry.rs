//! What a line says of one request, and how that follows from the texts found in it.

use super::stamp::StampFormat;
use std::net::IpAddr;

/// What the stamp of a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stamp {
    /// The moment at which the request came.
    Start,
    /// The moment at which it was answered, and the line written.
    #[default]
    End,
}

/// One request, as a line tells it. Texts point into the line. Times in ns since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entry<'a> {
    /// The stamp as it stands there.
    pub stamp_ns: u64,
    /// When the request came, as far as the line tells: without a duration, a stamp that is an end
    /// stands for it.
    pub start_ns: u64,
    /// From its first byte to the end of its answer, where that is logged.
    pub duration_ns: Option<u64>,
    /// Such as `GET`; empty if the request was none.
    pub method: &'a [u8],
    /// Path and query, as asked for; empty if the request was none.
    pub target: &'a [u8],
    /// The answer's status.
    pub status: Option<u16>,
    /// Bytes of the answer.
    pub bytes: Option<u64>,
    /// Who asked: mostly an address.
    pub client: &'a [u8],
    /// What it called itself.
    pub user_agent: &'a [u8],
    /// What tells sessions apart, where the user said what does.
    pub session: &'a [u8],
}

impl Entry<'_> {
    /// The path without its query.
    pub fn path(&self) -> &[u8] {
        memchr::memchr2(b'?', b'#', self.target).map_or(self.target, |at| &self.target[..at])
    }

    /// When the answer had come.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns.unwrap_or(0))
    }
}

/// What a place of a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LinePlace {
    /// The stamp, whose meaning is the format's.
    Time(StampFormat),
    /// A stamp of the start.
    Start(StampFormat),
    /// A stamp of the end.
    End(StampFormat),
    /// `GET`.
    Method,
    /// The same where nothing else tells the format: capitals alone.
    Verb,
    /// Path and query, or a URL.
    Target,
    /// The same where nothing else tells the format: it begins with a slash or a scheme.
    Path,
    /// `GET /path HTTP/1.1`.
    Request,
    /// The answer's status.
    Status,
    /// Bytes of the answer.
    Bytes,
    /// A duration; one of it is so many ns. Several add up.
    Duration(u64),
    /// Who asked.
    Client,
    /// Who asked, which is an address or a name of a host: anything else says that the line is
    /// written otherwise.
    Address,
    /// The same with the port of its connection.
    AddressPort,
    /// Who asked, with the port of its connection.
    ClientPort,
    /// A word without blanks that is no address.
    Word,
    /// What stands of several servers, with `, ` and ` : ` between.
    List,
    /// HAProxy's times with `/` between, ms: the last is the whole.
    ProxyTimes,
    /// What it called itself.
    UserAgent,
    /// What tells sessions apart.
    Session,
    /// Nothing that is wanted.
    Other,
}

impl LinePlace {
    /// Whether it tells when a request was.
    pub fn is_moment(&self) -> bool {
        matches!(self, LinePlace::Time(_) | LinePlace::Start(_) | LinePlace::End(_))
    }
}

/// The texts of a line by what they are.
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
    /// Takes one text in; `None` if it cannot be what its place says. A dash is a value that was
    /// not there.
    #[inline]
    pub fn put(&mut self, place: &LinePlace, text: &'a [u8]) -> Option<()> {
        // Columns are filled up with blanks.
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
            // Nobody is written as a dash.
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
            // Proxies add themselves to a list; the first is who asked.
            LinePlace::Address => {
                // A port would make each connection a client of its own.
                let bare = Some(without_port(text)).filter(|bare| is_ip(bare));
                self.client = bare.or(Some(text).filter(|text| is_address(text)))?;
            }
            LinePlace::AddressPort => self.client = Some(without_port(text)).filter(|text| is_address(text))?,
            LinePlace::ProxyTimes => {
                let whole = text.rsplit(|b| *b == b'/').next().unwrap_or(text);
                let whole = whole.strip_prefix(b"+").unwrap_or(whole);
                self.duration_ns = duration_ns(whole, plimsoll_model::units::MS)?;
            }
            // Nothing was answered.
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

    /// The entry that the texts make; `None` without a moment or a request.
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

/// Whether a word is a method as programs write it.
fn is_verb(word: &[u8]) -> bool {
    (3..=20).contains(&word.len()) && word.iter().all(u8::is_ascii_uppercase)
}

/// Whether a word is a path or a URL.
fn is_path(word: &[u8]) -> bool {
    word.starts_with(b"/") || word.starts_with(b"http://") || word.starts_with(b"https://") || word == b"*"
}

/// Method and target of a request line. What is not HTTP (a TLS handshake on a plain port) has
/// none.
fn request_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memchr::memchr(b' ', line)?;
    let (method, rest) = (&line[..space], &line[space + 1..]);
    let is_method =
        (1..=32).contains(&method.len()) && method.iter().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(b));
    // HTTP/0.9 has no version; targets with blanks in them were sent by broken clients. Some write
    // the version as a number.
    let is_version = |word: &[u8]| word.starts_with(b"HTTP/") || [&b"1.0"[..], b"1.1", b"2", b"3"].contains(&word);
    let target = match memchr::memrchr(b' ', rest) {
        Some(at) if is_version(&rest[at + 1..]) => &rest[..at],
        _ => rest,
    };
    (is_method && !target.is_empty()).then_some((method, target))
}

/// A target without scheme and host, if it has them.
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
            // A number of JSON may be written with a fraction.
            return number(text).filter(|v| *v >= 0.0).map(|v| v as u64);
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.trim().parse::<f64>().ok().filter(|v| v.is_finite())
}

/// A status; 0, as some write for an answer that never was, is one.
fn status(text: &[u8]) -> Option<u16> {
    let value = whole(text)?;
    (value == 0 || (100..1000).contains(&value)).then_some(value as u16)
}

fn is_ip(text: &[u8]) -> bool {
    // Most words are none: what begins otherwise is not looked at.
    text.first().is_some_and(|b| b.is_ascii_hexdigit() || *b == b':')
        && std::str::from_utf8(text).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

/// Whether it can be who asked: an address, the name of a host, or what stands for one where
/// addresses are not kept.
fn is_address(text: &[u8]) -> bool {
    const HASH_DIGITS_MIN: usize = 8;
    let is_of_host = |b: &u8| b.is_ascii_alphanumeric() || b"-._:%[]".contains(b);
    let has_parts = text.contains(&b'.') || text.contains(&b':');
    is_ip(text)
        || (has_parts && text.iter().all(is_of_host) && stamp_like(text).is_none())
        || [&b"localhost"[..], b"unknown", b"unix:"].contains(&text)
        || (text.len() >= HASH_DIGITS_MIN && text.iter().all(u8::is_ascii_hexdigit))
}

/// Whether a text is a moment, which is nobody.
fn stamp_like(text: &[u8]) -> Option<u64> {
    text.first().filter(|b| b.is_ascii_digit()).and_then(|_| super::stamp::read(text))
}

/// A duration in the unit of its place, or with a unit of its own; `Some(None)` for what was not
/// measured (-1).
fn duration_ns(text: &[u8], unit_ns: u64) -> Option<Option<u64>> {
    // `0.010, 0.020`: several servers were asked, one after the other.
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

/// Digits with at most one point, without rounding.
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

/// `1m30.5s`, `12ms`, `930.1µs`.
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
