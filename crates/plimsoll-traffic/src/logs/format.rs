//! The formats of logs: by name, as a `log_format`, as a mapping of the fields of JSON, or found by
//! the first lines of a file.

use super::directives;
use super::entry::{Entry, LinePlace, Stamp};
use super::json::{self, FieldsError, PathNode, PathPlace};
use super::known::{ENDS_IN_SECONDS, JSONS, KnownJson, NAMES, TEXTS};
use super::pattern::{FormatPiece, Pattern};
use super::prefix::{LogPrefix, PREFIXES_MAX};
use super::stamp::StampFormat;
use super::w3c::{self, W3cFields};
use plimsoll_model::units::{MS, SECOND};
use std::borrow::Cow;

/// The formats that are known, for people.
pub const KNOWN_FORMATS: &str = "common, combined, ingress-nginx, Nginx Proxy Manager, Traefik, Caddy, Envoy, HAProxy, IIS, W3C, AWS, Google \
     Cloud, JSON lines; with syslog, Kubernetes or Docker prefixes";

/// Room for what of a line is put in order before it is read, used again for each.
#[derive(Debug, Clone, Default)]
pub struct LineRoom {
    /// A line that stood in another.
    line: Vec<u8>,
    /// Texts with escapes.
    texts: Vec<u8>,
}

/// What each place of a line means.
#[derive(Debug, Clone)]
pub struct Format {
    name: String,
    stamp: Stamp,
    lines: LogLines,
    /// Sessions are told apart by who asked alone.
    by_client: bool,
    /// What stands before each line, from the outside in.
    prefixes: Vec<LogPrefix>,
}

#[derive(Debug, Clone)]
enum LogLines {
    Text(Pattern),
    Json(PathNode),
    W3c(W3cFields),
}

/// Why there is no format to read a log by.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A `log_format` that cannot be used; completes "--log-format ...".
    #[error("{0}")]
    Said(String),
    /// A mapping that cannot be used; completes "--field ...".
    #[error(transparent)]
    Fields(#[from] FieldsError),
    /// No format is known in which these lines are written.
    #[error("has no known format ({KNOWN_FORMATS})")]
    Unknown,
    /// Lines of requests without times.
    #[error(
        "has no times. Configure the server to log them (uvicorn: %(asctime)s; nginx and Apache: the combined \
         log format), or put a proxy with an access log in front"
    )]
    NoTimes,
    /// The format found does not tell sessions apart as asked; completes "--session ...".
    #[error("'{0}' is not in the format that was found ({1})")]
    Session(String, String),
}

/// How many of the first lines a format must understand to be the one: one of so many.
const UNDERSTOOD_ONE_IN: usize = 5;

impl Format {
    /// As a `log_format` or `LogFormat` string says, or by one of the names that stand for one;
    /// `session` is the directive of it that tells sessions apart.
    pub fn from_text(text: &str, session: Option<&str>) -> Result<Format, FormatError> {
        if let Some(mut format) = named(text.trim()) {
            format.telling_sessions(session)?;
            return Ok(format);
        }
        let (session, by_client) = by_client(session);
        let said = directives::read(text, session).map_err(FormatError::Said)?;
        let pattern = Pattern::new(said.pieces, false)
            .ok_or_else(|| FormatError::Said("has two fields without a separator between them".into()))?;
        let name = format!("{}'s, as given", said.language);
        Ok(Format { name, stamp: said.stamp, lines: LogLines::Text(pattern), by_client, prefixes: Vec::new() })
    }

    /// Lines of JSON with fields as mapped: `path=.url,time=.ts`.
    pub fn fields(mapping: &str, session: Option<&str>) -> Result<Format, FormatError> {
        let (session, by_client) = by_client(session);
        let (wanted, stamp) = json::mapping(mapping, session)?;
        let lines = LogLines::Json(PathNode::new(&wanted));
        Ok(Format { name: "JSON, fields as given".into(), stamp, lines, by_client, prefixes: Vec::new() })
    }

    /// What it is called, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a stamp of it means.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// The entry of a line without its end; `None` if it is written otherwise. `room` is for what
    /// is put in order first.
    #[inline]
    pub fn parse<'a>(&self, line: &'a [u8], room: &'a mut LineRoom) -> Option<Entry<'a>> {
        let LineRoom { line: inner, texts } = room;
        let (mut line, mut prefixes) = (line, self.prefixes.as_slice());
        if let [first @ LogPrefix::DockerJson, rest @ ..] = prefixes {
            (line, prefixes) = (first.strip(line, inner)?, rest);
        }
        for prefix in prefixes {
            line = prefix.plain(line)?;
        }
        let raw = match &self.lines {
            LogLines::Text(pattern) => pattern.read(line)?,
            LogLines::Json(root) => json::read(root, line, texts)?,
            LogLines::W3c(fields) => fields.parse(line, texts)?,
        };
        let mut entry = raw.entry(self.stamp)?;
        if self.by_client {
            entry.session = entry.client;
        }
        Some(entry)
    }

    /// Whether a line is none of a request's: a head of W3C's, whose fields hold from here on.
    pub fn takes_directive(&mut self, line: &[u8]) -> bool {
        let LogLines::W3c(fields) = &mut self.lines else { return false };
        if w3c::is_directive(line)
            && let Some(others) = W3cFields::read(line)
        {
            *fields = others;
        }
        w3c::is_directive(line)
    }

    /// The same behind what stands before these lines, where it understands them only so.
    pub fn fitting(mut self, lines: &[&[u8]]) -> Format {
        if self.understands(lines) > 0 {
            return self;
        }
        let mut texts: Vec<Cow<[u8]>> = lines.iter().map(|line| Cow::Borrowed(*line)).collect();
        let plain = self.clone();
        while let Some(prefix) = LogPrefix::of_lines(&texts).filter(|_| self.prefixes.len() < PREFIXES_MAX) {
            texts = stripped(prefix, &texts);
            self.prefixes.push(prefix);
            if self.understands(lines) > 0 {
                self.name.push_str(&behind(&self.prefixes));
                return self;
            }
        }
        plain
    }

    fn understands(&self, lines: &[&[u8]]) -> usize {
        let mut room = LineRoom::default();
        lines.iter().filter(|line| self.parse(line, &mut room).is_some()).count()
    }

    fn of_text((name, stamp, places, open_end): (&str, Stamp, &str, bool)) -> Format {
        let pattern = Pattern::new(pieces(places), open_end).unwrap_or_else(|| unreachable!("a constant: {places}"));
        Format { name: name.to_owned(), stamp, lines: LogLines::Text(pattern), by_client: false, prefixes: Vec::new() }
    }

    fn of_json(name: &str, stamp: Stamp, wanted: &[PathPlace]) -> Format {
        let lines = LogLines::Json(PathNode::new(wanted));
        Format { name: name.to_owned(), stamp, lines, by_client: false, prefixes: Vec::new() }
    }

    /// Has sessions told apart by `field`, a path of JSON; `client` is the address alone, which
    /// every format has.
    fn telling_sessions(&mut self, field: Option<&str>) -> Result<(), FormatError> {
        let (field, by_client) = by_client(field);
        self.by_client = by_client;
        let Some(field) = field else { return Ok(()) };
        match (&mut self.lines, json::keys(field)) {
            (LogLines::Json(root), Some(keys)) => {
                root.also(&keys, LinePlace::Session);
                Ok(())
            }
            _ => Err(FormatError::Session(field.to_owned(), self.name.clone())),
        }
    }
}

/// What tells sessions apart: a field, or who asked alone, which every format has.
fn by_client(session: Option<&str>) -> (Option<&str>, bool) {
    (session.filter(|field| *field != "client"), session == Some("client"))
}

/// The places of one of the formats above.
fn pieces(written: &str) -> Vec<FormatPiece> {
    let mut out = Vec::new();
    let mut rest = written;
    while let Some((before, after)) = rest.split_once('<') {
        if !before.is_empty() {
            out.push(FormatPiece::Text(before.as_bytes().to_vec()));
        }
        let (name, after) = after.split_once('>').unwrap_or((after, ""));
        rest = after;
        out.push(FormatPiece::Place(match name {
            "client" => LinePlace::Address,
            "client:port" => LinePlace::AddressPort,
            "word" => LinePlace::Word,
            "list" => LinePlace::List,
            "proxy" => LinePlace::ProxyTimes,
            "method" => LinePlace::Method,
            "target" => LinePlace::Target,
            "time" => LinePlace::Time(StampFormat::Auto),
            "start" => LinePlace::Start(StampFormat::Auto),
            "end" => LinePlace::End(StampFormat::Auto),
            "request" => LinePlace::Request,
            "status" => LinePlace::Status,
            "bytes" => LinePlace::Bytes,
            "agent" => LinePlace::UserAgent,
            "s" => LinePlace::Duration(SECOND),
            "ms" => LinePlace::Duration(MS),
            _ => LinePlace::Other,
        }));
    }
    if !rest.is_empty() {
        out.push(FormatPiece::Text(rest.as_bytes().to_vec()));
    }
    out
}

fn wanted(paths: &[(&str, LinePlace)]) -> Vec<PathPlace> {
    paths.iter().filter_map(|(path, place)| Some((json::keys(path)?, place.clone()))).collect()
}

/// The formats that have names of their own on the command line.
fn named(name: &str) -> Option<Format> {
    let text = |at: usize| Some(Format::of_text(TEXTS[at]));
    let json = |at: usize| {
        let KnownJson { name, stamp, paths, .. } = JSONS[at];
        Some(Format::of_json(name, stamp, &wanted(paths)))
    };
    match name.to_ascii_lowercase().as_str() {
        "combined" | "nginx" | "apache" => text(8),
        "common" => text(9),
        "ingress-nginx" => text(7),
        "vhost_combined" => text(5),
        "traefik-common" => text(0),
        "alb" => text(1),
        "elb" => text(2),
        "envoy" => text(3),
        "istio" => text(4),
        "haproxy" => text(13),
        "s3" => text(14),
        "nginx-proxy-manager" => text(15),
        "caddy" => json(0),
        "traefik" => json(1),
        "envoy-json" => json(2),
        _ => None,
    }
}

/// The format in which most of the first lines of a log are written.
pub fn find_format(lines: &[&[u8]], session: Option<&str>) -> Result<Format, FormatError> {
    let mut prefixes = Vec::new();
    let mut texts: Vec<Cow<[u8]>> = lines.iter().map(|line| Cow::Borrowed(*line)).collect();
    loop {
        let bare: Vec<&[u8]> = texts.iter().map(AsRef::as_ref).collect();
        if let Some(mut format) = find_bare(&bare) {
            format.name.push_str(&behind(&prefixes));
            format.prefixes = prefixes;
            format.telling_sessions(session)?;
            return Ok(format);
        }
        match LogPrefix::of_lines(&texts).filter(|_| prefixes.len() < PREFIXES_MAX) {
            Some(prefix) => {
                texts = stripped(prefix, &texts);
                prefixes.push(prefix);
            }
            None => {
                let timeless = bare.iter().filter(|line| is_request_without_time(line)).count();
                let is_timeless = timeless * 2 > bare.len();
                return Err(if is_timeless { FormatError::NoTimes } else { FormatError::Unknown });
            }
        }
    }
}

/// Lines without what stands before them.
fn stripped(prefix: LogPrefix, lines: &[Cow<[u8]>]) -> Vec<Cow<'static, [u8]>> {
    let mut room = Vec::new();
    let strip = |line: &Cow<[u8]>| Some(Cow::Owned(prefix.strip(line, &mut room)?.to_vec()));
    lines.iter().filter_map(strip).collect()
}

fn behind(prefixes: &[LogPrefix]) -> String {
    let names: Vec<&str> = prefixes.iter().map(|prefix| prefix.name()).collect();
    if names.is_empty() { String::new() } else { format!(", behind {}", names.join(" and ")) }
}

/// `"GET / HTTP/1.1"` in a line that has no time of day.
fn is_request_without_time(line: &[u8]) -> bool {
    let digit = |at: usize| line.get(at).is_some_and(u8::is_ascii_digit);
    let is_time = |at: usize| [0, 1, 3, 4, 6, 7].iter().all(|place| digit(at + place)) && line[at + 2] == b':';
    memchr::memmem::find(line, b" HTTP/").is_some() && !(0..line.len().saturating_sub(7)).any(is_time)
}

/// The format in which most of these lines are written, with nothing before them.
fn find_bare(lines: &[&[u8]]) -> Option<Format> {
    let mut candidates: Vec<Format> = TEXTS.into_iter().map(Format::of_text).collect();
    if !lines.iter().all(|line| ends_in_seconds(line)) {
        candidates.retain(|format| format.name != ENDS_IN_SECONDS);
    }
    let named = lines.iter().find_map(|line| W3cFields::read(line));
    if let Some(fields) = &named {
        let name = if fields.is_cloudfront { "AWS CloudFront" } else { "W3C, as its #Fields say" };
        let lines = LogLines::W3c(fields.clone());
        candidates.push(Format {
            name: name.to_owned(),
            stamp: Stamp::End,
            lines,
            by_client: false,
            prefixes: Vec::new(),
        });
    }
    for KnownJson { name, stamp, telling, paths } in JSONS {
        let keys: Vec<PathPlace> = wanted(paths);
        let tells = |line: &&[u8]| {
            telling.iter().all(|path| json::keys(path).is_some_and(|keys| has(&keys, &LinePlace::Other, line)))
        };
        if lines.iter().any(tells) {
            candidates.push(Format::of_json(name, stamp, &keys));
        }
    }
    candidates.extend(json_of_nobody(lines));
    let mut best: Option<(usize, Format)> = None;
    for format in candidates {
        let count = format.understands(lines);
        if count > best.as_ref().map_or(0, |(count, _)| *count) {
            best = Some((count, format));
        }
    }
    // Lines of its own head are none.
    let lines = lines.iter().filter(|line| named.is_none() || !w3c::is_directive(line)).count();
    best.filter(|(count, _)| count * UNDERSTOOD_ONE_IN >= lines).map(|(_, format)| format)
}

/// Whether a line ends in seconds with three digits after the point.
fn ends_in_seconds(line: &[u8]) -> bool {
    let word = line.rsplit(|b| *b == b' ').next().unwrap_or_default();
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    word.len() > 4 && word[word.len() - 4] == b'.' && digits(&word[..word.len() - 4]) && digits(&word[word.len() - 3..])
}

/// JSON whose names say what they hold.
fn json_of_nobody(lines: &[&[u8]]) -> Option<Format> {
    let mut found: Vec<PathPlace> = Vec::new();
    let mut said = Vec::new();
    for (place, names) in NAMES {
        let Some(name) = names.iter().find(|name| {
            json::keys(name).is_some_and(|keys| {
                let holds = lines.iter().filter(|line| has(&keys, &place, line)).count();
                holds * UNDERSTOOD_ONE_IN >= lines.len().max(1)
            })
        }) else {
            continue;
        };
        let duration = |place: &LinePlace| matches!(place, LinePlace::Duration(_));
        let moment = |place: &LinePlace| matches!(place, LinePlace::Time(_) | LinePlace::End(_));
        let known = |kind: &dyn Fn(&LinePlace) -> bool| found.iter().any(|(_, place)| kind(place));
        let again = (duration(&place) && known(&duration))
            || (matches!(place, LinePlace::Time(_)) && known(&moment))
            || (place == LinePlace::Request && known(&|place| *place == LinePlace::Target));
        if !again {
            said.push(*name);
            found.push((json::keys(name)?, place));
        }
    }
    let name = format!("JSON lines ({})", said.join(", "));
    (!found.is_empty()).then(|| Format::of_json(&name, Stamp::End, &found))
}

/// Whether a line of JSON has a value at this path that fits the place.
fn has(keys: &[String], place: &LinePlace, line: &[u8]) -> bool {
    if line.trim_ascii_start().first() != Some(&b'{') {
        return false;
    }
    // Any value will do where nothing is asked of it.
    let any = *place == LinePlace::Other;
    let node = PathNode::new(&[(keys.to_vec(), if any { LinePlace::Session } else { place.clone() })]);
    let mut buffer = Vec::new();
    json::read(&node, line, &mut buffer).is_some_and(|raw| match place {
        LinePlace::Other => !raw.session.is_empty(),
        LinePlace::Time(_) => raw.stamp.is_some(),
        LinePlace::Start(_) => raw.start.is_some(),
        LinePlace::End(_) => raw.end.is_some(),
        LinePlace::Target => raw.target.first().is_some_and(|b| matches!(b, b'/' | b'h' | b'*')),
        LinePlace::Request => raw.request.is_some_and(|request| request.contains(&b' ')),
        LinePlace::Duration(0) => raw.duration_ns.is_some_and(|ns| ns > 0),
        LinePlace::Duration(_) => raw.duration_ns.is_some(),
        LinePlace::Method => raw.method.iter().all(u8::is_ascii_alphabetic) && !raw.method.is_empty(),
        LinePlace::Status => raw.status.is_some(),
        LinePlace::Bytes => raw.bytes.is_some(),
        LinePlace::Client | LinePlace::ClientPort | LinePlace::Address | LinePlace::AddressPort => {
            !raw.client.is_empty()
        }
        LinePlace::ProxyTimes => raw.duration_ns.is_some(),
        LinePlace::Word | LinePlace::List => false,
        LinePlace::UserAgent => !raw.user_agent.is_empty(),
        LinePlace::Session => !raw.session.is_empty(),
    })
}
