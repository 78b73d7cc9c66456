//! Formats of access logs. The user names a format, or states a `log_format` or a mapping of JSON
//! fields. If the user states no format, plimsoll detects the format from the first lines of a
//! file.

use super::directives;
use super::entry::{Entry, FieldMeaning, ParsedLogFields, TimestampMeaning};
use super::json::{self, FieldMappingError, PathMeaning, PathNode};
use super::known::{
    FIELD_NAMES_BY_MEANING, FORMATS_ENDING_IN_SECONDS, JSON_FORMATS, KNOWN_TEXT_FORMATS, KnownPairFormat,
    LOGFMT_FORMATS, RAILS_BEGIN, RAILS_FORMAT_NAME, SHORT_NAMES,
};
use super::logfmt;
use super::pattern::{FormatPiece, Pattern};
use super::prefix::{LogPrefix, PREFIXES_MAX, without_colours};
use super::w3c::{self, W3cFields};
use plimsoll_model::timestamp::TimestampFormat;
use plimsoll_model::units::{MS, SECOND};
use std::borrow::Cow;

/// The known formats, as a clause for messages.
pub const KNOWN_FORMATS: &str = "plimsoll knows the log formats common, combined, ingress-nginx, Nginx Proxy Manager, \
     Traefik, Caddy, Envoy, HAProxy, Squid, IIS, W3C. Clouds: AWS, Google Cloud, Heroku. Programs: gunicorn, uvicorn, \
     uWSGI, Django, aiohttp, PHP, Gin, chi, Rails, Puma, morgan. Pairs: JSON lines, logfmt. Prefixes: syslog, \
     Kubernetes, Docker, loggers";

/// Reusable buffers for parsing one line.
#[derive(Debug, Clone, Default)]
pub struct LineBuffers {
    /// The line without its Docker JSON wrapper.
    line: Vec<u8>,
    /// The line without terminal colours.
    plain: Vec<u8>,
    /// The unescaped or joined texts of fields.
    texts: Vec<u8>,
}

/// The format of an access log, which parses each line of the log.
#[derive(Debug, Clone)]
pub struct Format {
    name: String,
    stamp: TimestampMeaning,
    line_parser: LogLineParser,
    /// Whether a session is identified by the client address alone.
    is_session_by_client: bool,
    /// Prefixes that are removed from each line, outermost first.
    prefixes: Vec<LogPrefix>,
    /// Whether the log lines themselves have timestamps. If false, a prefix of each line has the
    /// timestamp.
    has_time: bool,
}

#[derive(Debug, Clone)]
enum LogLineParser {
    Text(Pattern),
    Pairs(PairNotation, PathNode),
    W3c(W3cFields),
}

/// The notation of log lines that consist of names and values: JSON or logfmt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PairNotation {
    Json,
    Logfmt,
}

impl PairNotation {
    fn read<'a>(self, root: &PathNode, line: &'a [u8], texts: &'a mut Vec<u8>) -> Option<ParsedLogFields<'a>> {
        match self {
            PairNotation::Json => json::read(root, line, texts),
            PairNotation::Logfmt => logfmt::read(root, line),
        }
    }

    /// Returns whether a line may be in this notation. The quick check avoids slow parsing of lines
    /// in another notation.
    fn can_match_line(self, line: &[u8]) -> bool {
        match self {
            PairNotation::Json => line.trim_ascii_start().first() == Some(&b'{'),
            PairNotation::Logfmt => memchr::memchr(b'=', line).is_some(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            PairNotation::Json => "JSON lines",
            PairNotation::Logfmt => "logfmt lines",
        }
    }
}

/// The reason why a log has no usable format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// An invalid `log_format`. The text is the end of an error message that begins with
    /// "--log-format".
    #[error("{0}")]
    LogFormat(String),
    /// An invalid mapping of JSON fields. The text is the end of an error message that begins with
    /// "--field".
    #[error(transparent)]
    Fields(#[from] FieldMappingError),
    /// The lines match no known format.
    #[error("has no known format ({KNOWN_FORMATS})")]
    Unknown,
    /// The lines contain requests but no times.
    #[error(
        "the access log has no times. Configure the server to log times (uvicorn: %(asctime)s, morgan: combined), \
         or read the log of its container, which has times (docker logs -t)"
    )]
    NoTimes,
    /// The detected format lacks the session field that the user requested. The two values are the
    /// field and the name of the format. The error text is the end of a message that begins with
    /// "--session".
    #[error("'{0}' is not a field of the detected format ({1})")]
    Session(String, String),
}

/// A detected format must parse at least 1/`PARSED_LINES_DIVISOR` of the first lines of a log.
const PARSED_LINES_DIVISOR: usize = 5;

impl Format {
    fn new(name: String, stamp: TimestampMeaning, line_parser: LogLineParser) -> Format {
        let has_time = match &line_parser {
            LogLineParser::Text(pattern) => pattern.has_time(),
            LogLineParser::Pairs(_, root) => root.has_time(),
            LogLineParser::W3c(_) => true,
        };
        Format { name, stamp, line_parser, is_session_by_client: false, prefixes: Vec::new(), has_time }
    }

    /// Parses the name of a known format, or a `log_format` or `LogFormat` string. `session` is the
    /// directive whose value identifies sessions, or the word `client` for the client address.
    ///
    /// # Errors
    /// Returns [`FormatError::LogFormat`] if the text is not a valid format, and
    /// [`FormatError::Session`] if a known format lacks the session field.
    pub fn from_text(text: &str, session: Option<&str>) -> Result<Format, FormatError> {
        if let Some(mut format) = known_format_by_name(text.trim()) {
            format.set_session_field(session)?;
            return Ok(format);
        }
        let (session, is_session_by_client) = split_session_choice(session);
        let said = directives::parse_log_format(text, session).map_err(FormatError::LogFormat)?;
        let pattern = Pattern::new(said.pieces, false).ok_or_else(|| {
            FormatError::LogFormat(format!(
                "{log_format} has two fields without a separator between them",
                log_format = directives::format_beginning(text)
            ))
        })?;
        let name = format!("{}'s, as given", said.language);
        Ok(Format { is_session_by_client, ..Format::new(name, said.stamp, LogLineParser::Text(pattern)) })
    }

    /// Creates a format of JSON lines from a mapping of fields, such as `path=.url,time=.ts`.
    pub fn from_json_mapping(mapping: &str, session: Option<&str>) -> Result<Format, FormatError> {
        let (session, is_session_by_client) = split_session_choice(session);
        let (wanted, stamp) = json::parse_mapping(mapping, session)?;
        let lines = LogLineParser::Pairs(PairNotation::Json, PathNode::new(&wanted));
        Ok(Format { is_session_by_client, ..Format::new("JSON lines with the given fields".into(), stamp, lines) })
    }

    /// Returns the name of the format, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the timestamp is the start or the end of a request.
    pub fn timestamp_meaning(&self) -> TimestampMeaning {
        self.stamp
    }

    /// Parses a line without its line break. `None` if the line does not match the format.
    /// `buffers` has the buffers for text without wrappers, colours and escapes.
    #[inline]
    pub fn parse<'a>(&self, line: &'a [u8], buffers: &'a mut LineBuffers) -> Option<Entry<'a>> {
        let LineBuffers { line: inner, plain, texts } = buffers;
        let (mut line, mut prefixes) = (line, self.prefixes.as_slice());
        let mut unix_time_ns = None;
        if let [first @ LogPrefix::DockerJson, rest @ ..] = prefixes {
            if !self.has_time {
                unix_time_ns = first.unix_time_ns(line);
            }
            (line, prefixes) = (first.strip(line, inner)?, rest);
        }
        line = without_colours(line, plain);
        for prefix in prefixes {
            if !self.has_time {
                unix_time_ns = prefix.unix_time_ns(line).or(unix_time_ns);
            }
            line = prefix.line_without_prefix(line)?;
        }
        self.parse_unprefixed_line(line, texts, unix_time_ns)
    }

    /// Parses a line whose prefixes were removed. If the line itself has no timestamp, its time is
    /// `unix_time_ns`, which was in a removed prefix.
    #[inline]
    fn parse_unprefixed_line<'a>(
        &self,
        line: &'a [u8],
        texts: &'a mut Vec<u8>,
        unix_time_ns: Option<u64>,
    ) -> Option<Entry<'a>> {
        let mut raw = match &self.line_parser {
            LogLineParser::Text(pattern) if self.has_time => pattern.read(line)?,
            LogLineParser::Text(pattern) => pattern.read(line.trim_ascii_start())?,
            LogLineParser::Pairs(notation, root) => notation.read(root, line, texts)?,
            LogLineParser::W3c(fields) => fields.parse(line, texts)?,
        };
        if !self.has_time {
            raw.stamp = unix_time_ns;
        }
        let mut entry = raw.into_entry(self.stamp)?;
        if self.is_session_by_client {
            entry.session = entry.client;
        }
        Some(entry)
    }

    /// Returns whether a line describes no new request, because the line is a W3C directive or a
    /// further line of a Rails request. If the line is a W3C `#Fields` directive, the method also
    /// changes the fields of later lines.
    pub fn consume_non_request_line(&mut self, line: &[u8]) -> bool {
        if self.is_rails() {
            return memchr::memmem::find(line, RAILS_BEGIN).is_none();
        }
        let LogLineParser::W3c(fields) = &mut self.line_parser else { return false };
        if w3c::is_directive(line)
            && let Some(others) = W3cFields::parse_fields_directive(line)
        {
            *fields = others;
        }
        w3c::is_directive(line)
    }

    /// Adds prefixes to the format until the format parses one of `lines`. The format stays
    /// unchanged if no prefix is needed, or if no prefix makes a line match.
    pub fn add_missing_prefixes(mut self, lines: &[&[u8]]) -> Format {
        if self.count_parsed(lines) > 0 {
            return self;
        }
        let mut texts: Vec<Cow<[u8]>> = lines.iter().map(|line| Cow::Borrowed(*line)).collect();
        let plain = self.clone();
        while let Some(prefix) = LogPrefix::detect_in_lines(&texts).filter(|_| self.prefixes.len() < PREFIXES_MAX) {
            texts = lines_without_prefix(prefix, &texts);
            self.prefixes.push(prefix);
            if self.count_parsed(lines) > 0 {
                self.name.push_str(&describe_prefixes(&self.prefixes));
                return self;
            }
        }
        plain
    }

    fn count_parsed(&self, lines: &[&[u8]]) -> usize {
        let mut buffer = LineBuffers::default();
        lines.iter().filter(|line| self.parse(line, &mut buffer).is_some()).count()
    }

    fn is_rails(&self) -> bool {
        self.name.starts_with(RAILS_FORMAT_NAME) && matches!(self.line_parser, LogLineParser::Text(_))
    }

    fn from_known_text((name, stamp, places, open_end): (&str, TimestampMeaning, &str, bool)) -> Format {
        let pattern =
            Pattern::new(parse_format_pieces(places), open_end).unwrap_or_else(|| unreachable!("a constant: {places}"));
        Format::new(name.to_owned(), stamp, LogLineParser::Text(pattern))
    }

    fn from_pairs(
        notation: PairNotation,
        name: &str,
        stamp: TimestampMeaning,
        path_meanings: &[PathMeaning],
    ) -> Format {
        Format::new(name.to_owned(), stamp, LogLineParser::Pairs(notation, PathNode::new(path_meanings)))
    }

    /// Sets the field that identifies sessions. The word `client` means the client address. Any
    /// other word is a path of names, which only formats of names and values support.
    fn set_session_field(&mut self, field: Option<&str>) -> Result<(), FormatError> {
        let (field, by_client) = split_session_choice(field);
        self.is_session_by_client = by_client;
        let Some(field) = field else { return Ok(()) };
        match (&mut self.line_parser, json::split_json_path(field)) {
            (LogLineParser::Pairs(_, root), Some(keys)) => {
                root.set_meaning(&keys, FieldMeaning::Session);
                Ok(())
            }
            _ => Err(FormatError::Session(field.to_owned(), self.name.clone())),
        }
    }
}

/// Splits the user's choice of a session identifier into two results: a field of the log, and
/// whether the client address (`client`) identifies sessions.
fn split_session_choice(session: Option<&str>) -> (Option<&str>, bool) {
    (session.filter(|field| *field != "client"), session == Some("client"))
}

/// Splits a format in the notation of [`KNOWN_TEXT_FORMATS`] into fields, which are written as
/// `<...>`, and fixed texts.
fn parse_format_pieces(text: &str) -> Vec<FormatPiece> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        if !before.is_empty() {
            out.push(FormatPiece::Text(before.as_bytes().to_vec()));
        }
        let (name, after) = after.split_once('>').unwrap_or((after, ""));
        rest = after;
        out.push(FormatPiece::Field(match name {
            "client" => FieldMeaning::Address,
            "client:port" => FieldMeaning::AddressWithPort,
            "word" => FieldMeaning::IgnoredWord,
            "list" => FieldMeaning::UpstreamList,
            "proxy" => FieldMeaning::ProxyTimes,
            "method" => FieldMeaning::Method,
            "target" => FieldMeaning::Target,
            "verb" => FieldMeaning::UppercaseMethod,
            "path" => FieldMeaning::Path,
            "time" => FieldMeaning::Time(TimestampFormat::Auto),
            "start" => FieldMeaning::Start(TimestampFormat::Auto),
            "end" => FieldMeaning::End(TimestampFormat::Auto),
            "request" => FieldMeaning::Request,
            "status" => FieldMeaning::Status,
            "bytes" => FieldMeaning::Bytes,
            "agent" => FieldMeaning::UserAgent,
            "s" => FieldMeaning::Duration(SECOND),
            "ms" => FieldMeaning::Duration(MS),
            _ => FieldMeaning::Ignored,
        }));
    }
    if !rest.is_empty() {
        out.push(FormatPiece::Text(rest.as_bytes().to_vec()));
    }
    out
}

fn parse_json_paths(paths: &[(&str, FieldMeaning)]) -> Vec<PathMeaning> {
    paths.iter().filter_map(|(path, place)| Some((json::split_json_path(path)?, place.clone()))).collect()
}

/// Returns the known format with this name on the command line.
fn known_format_by_name(name: &str) -> Option<Format> {
    let name = name.to_ascii_lowercase();
    let (_, long) = SHORT_NAMES.into_iter().find(|(short, _)| *short == name)?;
    let text = KNOWN_TEXT_FORMATS.into_iter().find(|(name, ..)| *name == long).map(Format::from_known_text);
    text.or_else(|| {
        let known = JSON_FORMATS.into_iter().find(|known| known.name == long)?;
        Some(Format::from_pairs(PairNotation::Json, known.name, known.stamp, &parse_json_paths(known.paths)))
    })
}

/// Detects the format of a log, and the prefixes of its lines, from the first lines of the log.
///
/// # Errors
/// Returns an error if no known format fits, if the lines have no times, or if the format lacks the
/// field `session`.
pub fn find_format(lines: &[&[u8]], session: Option<&str>) -> Result<Format, FormatError> {
    let mut prefixes = Vec::new();
    let mut has_moment = false;
    let mut texts: Vec<Cow<[u8]>> = lines.iter().map(|line| strip_colours(line)).collect();
    loop {
        let bare: Vec<&[u8]> = texts.iter().map(AsRef::as_ref).collect();
        if let Some(mut format) = find_format_of_bare_lines(&bare, has_moment) {
            format.name.push_str(&describe_prefixes(&prefixes));
            format.prefixes = prefixes;
            format.set_session_field(session)?;
            return Ok(format);
        }
        match LogPrefix::detect_in_lines(&texts).filter(|_| prefixes.len() < PREFIXES_MAX) {
            Some(prefix) => {
                has_moment |= texts.iter().any(|line| prefix.unix_time_ns(line).is_some());
                texts = lines_without_prefix(prefix, &texts);
                prefixes.push(prefix);
            }
            None => {
                let timeless = bare.iter().filter(|line| is_request_without_time(line)).count();
                let is_timeless = timeless * 2 > bare.len() || find_format_of_bare_lines(&bare, true).is_some();
                return Err(if is_timeless { FormatError::NoTimes } else { FormatError::Unknown });
            }
        }
    }
}

/// Returns a line without terminal colours.
fn strip_colours(line: &[u8]) -> Cow<'_, [u8]> {
    let mut buffer = Vec::new();
    match without_colours(line, &mut buffer).len() == line.len() {
        true => Cow::Borrowed(line),
        false => Cow::Owned(buffer),
    }
}

/// Returns the lines that have the prefix, without the prefix and colours.
fn lines_without_prefix(prefix: LogPrefix, lines: &[Cow<[u8]>]) -> Vec<Cow<'static, [u8]>> {
    let mut buffer = Vec::new();
    let strip = |line: &Cow<[u8]>| {
        let bare = prefix.strip(line, &mut buffer)?;
        Some(Cow::Owned(strip_colours(bare).into_owned()))
    };
    lines.iter().filter_map(strip).collect()
}

fn describe_prefixes(prefixes: &[LogPrefix]) -> String {
    let names: Vec<&str> = prefixes.iter().map(|prefix| prefix.name()).collect();
    if names.is_empty() { String::new() } else { format!(", behind {}", names.join(" and ")) }
}

/// Returns whether a line has a request such as `"GET / HTTP/1.1"` but no time of day.
fn is_request_without_time(line: &[u8]) -> bool {
    let digit = |at: usize| line.get(at).is_some_and(u8::is_ascii_digit);
    let is_time = |at: usize| [0, 1, 3, 4, 6, 7].iter().all(|place| digit(at + place)) && line[at + 2] == b':';
    memchr::memmem::find(line, b" HTTP/").is_some() && !(0..line.len().saturating_sub(7)).any(is_time)
}

/// Detects the format of lines whose prefixes were removed. `has_timestamp` states whether one of
/// the removed prefixes has a timestamp.
fn find_format_of_bare_lines(lines: &[&[u8]], has_timestamp: bool) -> Option<Format> {
    let mut candidates: Vec<Format> = KNOWN_TEXT_FORMATS.into_iter().map(Format::from_known_text).collect();
    for (name, digits) in FORMATS_ENDING_IN_SECONDS {
        if !lines.iter().all(|line| ends_in_seconds(line, digits)) {
            candidates.retain(|format| format.name != name);
        }
    }
    let named = lines.iter().find_map(|line| W3cFields::parse_fields_directive(line));
    if let Some(fields) = &named {
        let name = if fields.is_cloudfront { "AWS CloudFront" } else { "W3C with the fields of its #Fields line" };
        candidates.push(Format::new(name.to_owned(), TimestampMeaning::End, LogLineParser::W3c(fields.clone())));
    }
    let known = JSON_FORMATS.into_iter().map(|known| (PairNotation::Json, known));
    for (notation, known) in known.chain(LOGFMT_FORMATS.into_iter().map(|known| (PairNotation::Logfmt, known))) {
        let KnownPairFormat { name, stamp, marker_paths: telling, paths } = known;
        let keys: Vec<PathMeaning> = parse_json_paths(paths);
        let tells = |line: &&[u8]| {
            telling.iter().all(|path| {
                json::split_json_path(path)
                    .is_some_and(|keys| has_field_value(notation, &keys, &FieldMeaning::Ignored, line))
            })
        };
        if lines.iter().any(tells) {
            candidates.push(Format::from_pairs(notation, name, stamp, &keys));
            // If the lines have no timestamps, a removed prefix may have had the timestamp. A
            // variant of the format without timestamps is therefore also a candidate.
            let timeless: Vec<PathMeaning> = keys.into_iter().filter(|(_, place)| !place.is_timestamp()).collect();
            candidates.push(Format::from_pairs(notation, name, stamp, &timeless));
        }
    }
    candidates.extend(guess_pair_format(PairNotation::Json, lines));
    candidates.extend(guess_pair_format(PairNotation::Logfmt, lines));
    let unix_time_ns = has_timestamp.then_some(SECOND);
    let mut texts = Vec::new();
    let mut best: Option<(usize, Format)> = None;
    for format in candidates {
        let count =
            lines.iter().filter(|line| format.parse_unprefixed_line(line, &mut texts, unix_time_ns).is_some()).count();
        if count > best.as_ref().map_or(0, |(count, _)| *count) {
            best = Some((count, format));
        }
    }
    // W3C directives do not count as lines of the log.
    let lines = lines.iter().filter(|line| named.is_none() || !w3c::is_directive(line)).count();
    best.filter(|(count, format)| format.is_rails() || count * PARSED_LINES_DIVISOR >= lines).map(|(_, format)| format)
}

/// Returns whether a line ends in a number of seconds with `fraction` decimals.
fn ends_in_seconds(line: &[u8], fraction: usize) -> bool {
    let word = line.rsplit(|b| *b == b' ').next().unwrap_or_default();
    let are_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let Some(point) = word.len().checked_sub(fraction + 1) else { return false };
    word[point] == b'.' && are_digits(&word[..point]) && are_digits(&word[point + 1..])
}

/// Guesses the format of an unknown program that logs names and values, from the usual names of
/// fields ([`FIELD_NAMES_BY_MEANING`]). `None` if the lines have no usual names.
fn guess_pair_format(notation: PairNotation, lines: &[&[u8]]) -> Option<Format> {
    if !lines.iter().any(|line| notation.can_match_line(line)) {
        return None;
    }
    let mut found: Vec<PathMeaning> = Vec::new();
    let mut said = Vec::new();
    for (place, names) in FIELD_NAMES_BY_MEANING {
        let Some(name) = names.iter().find(|name| {
            json::split_json_path(name).is_some_and(|keys| {
                let holds = lines.iter().filter(|line| has_field_value(notation, &keys, &place, line)).count();
                holds * PARSED_LINES_DIVISOR >= lines.len().max(1)
            })
        }) else {
            continue;
        };
        let duration = |place: &FieldMeaning| matches!(place, FieldMeaning::Duration(_));
        let moment = |place: &FieldMeaning| matches!(place, FieldMeaning::Time(_) | FieldMeaning::End(_));
        let known = |kind: &dyn Fn(&FieldMeaning) -> bool| found.iter().any(|(_, place)| kind(place));
        let again = (duration(&place) && known(&duration))
            || (matches!(place, FieldMeaning::Time(_)) && known(&moment))
            || (place == FieldMeaning::Request && known(&|place| *place == FieldMeaning::Target));
        if !again {
            said.push(*name);
            found.push((json::split_json_path(name)?, place));
        }
    }
    let name = format!("{} ({})", notation.name(), said.join(", "));
    (!found.is_empty()).then(|| Format::from_pairs(notation, &name, TimestampMeaning::End, &found))
}

/// Returns whether a line has a value at the path `keys` that fits the field.
fn has_field_value(notation: PairNotation, keys: &[String], place: &FieldMeaning, line: &[u8]) -> bool {
    if !notation.can_match_line(line) {
        return false;
    }
    // The parser does not store fields of the kind `Ignored`. To test whether such a field has a
    // value, the field is read as a session field, which accepts any text.
    let any = *place == FieldMeaning::Ignored;
    let node = PathNode::new(&[(keys.to_vec(), if any { FieldMeaning::Session } else { place.clone() })]);
    let mut buffer = Vec::new();
    notation.read(&node, line, &mut buffer).is_some_and(|raw| match place {
        FieldMeaning::Ignored => !raw.session.is_empty(),
        FieldMeaning::Time(_) => raw.stamp.is_some(),
        FieldMeaning::Start(_) => raw.start.is_some(),
        FieldMeaning::End(_) => raw.end.is_some(),
        FieldMeaning::Target | FieldMeaning::Path => {
            raw.target.first().is_some_and(|b| matches!(b, b'/' | b'h' | b'*'))
        }
        FieldMeaning::Request => raw.request.is_some_and(|request| request.contains(&b' ')),
        FieldMeaning::Duration(0) => raw.duration_ns.is_some_and(|ns| ns > 0),
        FieldMeaning::Duration(_) => raw.duration_ns.is_some(),
        FieldMeaning::Method | FieldMeaning::UppercaseMethod => {
            raw.method.iter().all(u8::is_ascii_alphabetic) && !raw.method.is_empty()
        }
        FieldMeaning::Status => raw.status.is_some(),
        FieldMeaning::Bytes => raw.bytes.is_some(),
        FieldMeaning::Client | FieldMeaning::ClientWithPort | FieldMeaning::Address | FieldMeaning::AddressWithPort => {
            !raw.client.is_empty()
        }
        FieldMeaning::ProxyTimes => raw.duration_ns.is_some(),
        FieldMeaning::IgnoredWord | FieldMeaning::UpstreamList => false,
        FieldMeaning::UserAgent => !raw.user_agent.is_empty(),
        FieldMeaning::Session => !raw.session.is_empty(),
    })
}
