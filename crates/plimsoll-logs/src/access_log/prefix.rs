//! Detects and removes the line prefixes of log transports and loggers: syslog, Kubernetes, Docker,
//! docker compose, and loggers of applications. Not here: parsing the text after the prefixes.

use super::json::unescape_json;
use plimsoll_model::timestamp::unix_time_ns;
use std::borrow::Cow;

/// The largest number of prefixes of a line. `docker compose logs -t` adds two prefixes, and an
/// application's logger adds two more.
pub(super) const PREFIXES_MAX: usize = 4;
/// Detection accepts a prefix if at most 1/`UNPREFIXED_LINES_DIVISOR` of the lines lack the prefix.
const UNPREFIXED_LINES_DIVISOR: usize = 5;

/// A kind of prefix that log transports and loggers add to each line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogPrefix {
    /// A line of Docker's `json-file`: `{"log":"...\n","stream":"stdout","time":"..."}`.
    DockerJson,
    /// A line of a Kubernetes container runtime (CRI): `2025-10-10T13:55:30.1Z stdout F `.
    Cri,
    /// The header of a syslog message: `<134>Oct 10 13:55:30 host nginx[12]: `, or the header of
    /// RFC 5424.
    Syslog,
    /// The service name of docker compose: `web-1  | `.
    Compose,
    /// The pod name of `kubectl logs --prefix`: `[pod/web-5d/nginx] `.
    Pod,
    /// A timestamp such as `2025-10-10T13:55:30.1Z ` or `[2025-10-10 13:55:30 +0000] `, also in the
    /// notations of common loggers.
    Time,
    /// The level and name of a logger: `INFO:     `, `[8] [INFO] `, `- uvicorn.access - INFO - `.
    Level,
    /// Request tags of Rails, such as `[6ba7b810-9dad-11d1-80b4-00c04fd430c8] `.
    Tags,
}

const LOG_PREFIXES: [LogPrefix; 8] = [
    LogPrefix::DockerJson,
    LogPrefix::Cri,
    LogPrefix::Syslog,
    LogPrefix::Compose,
    LogPrefix::Pod,
    LogPrefix::Time,
    LogPrefix::Level,
    LogPrefix::Tags,
];

impl LogPrefix {
    /// Returns the name of the prefix, for messages.
    pub fn name(self) -> &'static str {
        match self {
            LogPrefix::DockerJson => "Docker's JSON",
            LogPrefix::Cri => "Kubernetes (CRI)",
            LogPrefix::Syslog => "syslog",
            LogPrefix::Compose => "docker compose",
            LogPrefix::Pod => "kubectl",
            LogPrefix::Time => "a time",
            LogPrefix::Level => "a level",
            LogPrefix::Tags => "tags",
        }
    }

    /// Detects a prefix that most of the given lines have.
    pub fn detect_in_lines(lines: &[Cow<[u8]>]) -> Option<LogPrefix> {
        let stands = |prefix: &LogPrefix| {
            let mut buffer = Vec::new();
            let without = lines.iter().filter(|line| prefix.strip(line, &mut buffer).is_none()).count();
            without * UNPREFIXED_LINES_DIVISOR <= lines.len() && without < lines.len()
        };
        LOG_PREFIXES.into_iter().find(|prefix| stands(prefix))
    }

    /// Returns a line without the prefix; `None` if the line lacks the prefix. `buffer` is a buffer
    /// for unescaped text.
    pub fn strip<'a>(self, line: &'a [u8], buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        match self {
            LogPrefix::DockerJson => docker_json_log_text(line, buffer),
            _ => self.line_without_prefix(line),
        }
    }

    /// Returns a line without the prefix; `None` if the line lacks the prefix. Docker's JSON always
    /// gives `None`, because its text needs unescaping ([`Self::strip`]).
    pub fn line_without_prefix(self, line: &[u8]) -> Option<&[u8]> {
        let rest = match self {
            LogPrefix::DockerJson => return None,
            LogPrefix::Cri => {
                let (_, rest) = split_word(line).filter(|(time, _)| is_time(time))?;
                let (_, rest) = split_word(rest).filter(|(stream, _)| [&b"stdout"[..], b"stderr"].contains(stream))?;
                split_word(rest).filter(|(tag, _)| [&b"F"[..], b"P"].contains(tag))?.1
            }
            LogPrefix::Syslog => syslog_message(line)?,
            LogPrefix::Compose => {
                let bare = without_colour(line);
                let bar = memchr::memchr(b'|', bare)?;
                let name = bare[..bar].trim_ascii_end();
                let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
                let padded = bar > name.len() && !name.is_empty() && name.iter().all(is_name);
                without_colour(padded.then(|| bare[bar + 1..].strip_prefix(b" "))??)
            }
            LogPrefix::Pod => {
                let (name, rest) = split_word(line)?;
                (name.starts_with(b"[pod/") && name.ends_with(b"]")).then_some(rest)?
            }
            LogPrefix::Time => leading_time(line)?.1,
            LogPrefix::Level => text_after_level(line)?,
            LogPrefix::Tags => text_after_tags(line)?,
        };
        (!rest.is_empty()).then_some(rest)
    }

    /// Returns the time in the prefix, ns since the Unix epoch, for lines without a timestamp.
    /// `None` if the prefix has no time or no year.
    pub fn unix_time_ns(self, line: &[u8]) -> Option<u64> {
        match self {
            LogPrefix::DockerJson => {
                let at = memchr::memmem::rfind(line, b"\"time\"")?;
                let text = line[at + b"\"time\"".len()..].trim_ascii_start().strip_prefix(b":")?;
                let text = text.trim_ascii_start().strip_prefix(b"\"")?;
                unix_time_ns(&text[..memchr::memchr(b'"', text)?])
            }
            LogPrefix::Cri => unix_time_ns(split_word(line)?.0),
            LogPrefix::Syslog => {
                let after_priority = line.strip_prefix(b"<").and_then(split_word).filter(|(first, _)| {
                    // A syslog header that begins with `<134>1` has the syntax of RFC 5424, in
                    // which the second word is the time.
                    first.ends_with(b">1")
                });
                let (time, _) = split_word(after_priority.map_or(line, |(_, rest)| rest))?;
                let time = memchr::memchr(b'>', time).map_or(time, |end| &time[end + 1..]);
                is_time(time).then(|| unix_time_ns(time))?
            }
            LogPrefix::Time => Some(leading_time(line)?.0),
            LogPrefix::Compose | LogPrefix::Pod | LogPrefix::Level | LogPrefix::Tags => None,
        }
    }
}

/// Splits off the first word and the blank after the word.
fn split_word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = memchr::memchr(b' ', text).filter(|blank| *blank > 0)?;
    Some((&text[..blank], &text[blank + 1..]))
}

/// Returns whether a text is a time such as `2025-10-10T13:55:30.123Z`.
fn is_time(text: &[u8]) -> bool {
    text.len() >= 19 && text[4] == b'-' && text[10] == b'T' && unix_time_ns(text).is_some()
}

/// Returns a line without terminal colours. If the line has colours, the result is in `buffer`.
pub(super) fn without_colours<'a>(line: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
    if memchr::memchr(ESCAPE_BYTE, line).is_none() {
        return line;
    }
    buffer.clear();
    let mut rest = line;
    while let Some(at) = memchr::memchr(ESCAPE_BYTE, rest) {
        buffer.extend_from_slice(&rest[..at]);
        let after = &rest[at + 1..];
        let is_end = |b: &u8| !(b.is_ascii_digit() || *b == b';');
        rest = match after.strip_prefix(b"[") {
            Some(codes) => codes.iter().position(is_end).map_or(&[][..], |end| &codes[end + 1..]),
            None => after,
        };
    }
    buffer.extend_from_slice(rest);
    buffer
}

/// The first byte of a terminal colour sequence.
const ESCAPE_BYTE: u8 = 0x1b;

/// Splits off the first word at a blank or tab, and skips further blanks.
fn split_token(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|b| matches!(b, b' ' | b'\t')).filter(|end| *end > 0)?;
    Some((&text[..end], text[end..].trim_ascii_start()))
}

/// Returns the time at the beginning of a line in ns since the Unix epoch, and the text after the
/// time.
fn leading_time(line: &[u8]) -> Option<(u64, &[u8])> {
    let (time, rest) = split_ruby_prefix(line).or_else(|| split_bracketed_time(line)).or_else(|| plain_time(line))?;
    let rest = rest.trim_ascii_start();
    Some((unix_time_ns(time)?, rest.strip_prefix(b"- ").unwrap_or(rest)))
}

/// Parses the prefix of Ruby's logger: `I, [2025-10-10T13:55:30.123456 #1234]  INFO -- name: `.
/// Returns the time in the prefix, and the text after the prefix.
fn split_ruby_prefix(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (letter, rest) = line.split_first()?;
    let rest = rest.strip_prefix(b", [").filter(|_| letter.is_ascii_uppercase())?;
    let (time, rest) = split_word(rest)?;
    let rest = &rest[memchr::memmem::find(rest, b" -- ")? + 4..];
    let name_end = memchr::memchr(b':', rest)?;
    is_time(time).then_some((time, &rest[name_end + 1..]))
}

/// Parses a time in brackets at the beginning of a line: `[2025-10-10 13:55:30 +0000] `, or
/// `[2025-10-10T13:55:30Z INFO name] ` of Rust's loggers. Returns the time, and the text after the
/// brackets.
fn split_bracketed_time(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = line.strip_prefix(b"[")?;
    let end = memchr::memchr(b']', inner)?;
    let (inner, rest) = (&inner[..end], inner[end + 1..].strip_prefix(b" ")?);
    let first = split_word(inner).map_or(inner, |(first, _)| first);
    let time = if is_time(first) { first } else { inner };
    // A short text in brackets is a process id or level, not a time.
    (time.len() >= 19).then_some((time, rest))
}

/// Parses a time without brackets at the beginning of a line, with an optional zone:
/// `2025-10-10T13:55:30.1Z ` or `2025-10-10 13:55:30,123 `. Returns the time, and the text after
/// the time.
fn plain_time(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let digit = |at: usize| line.get(at).is_some_and(u8::is_ascii_digit);
    let (first, rest) = split_token(line).filter(|_| digit(0) && digit(3) && digit(5))?;
    let upto = |rest: &[u8]| line[..line.len() - rest.len()].trim_ascii();
    if is_time(first) {
        return Some((first, rest));
    }
    let (_, rest) = split_token(rest).filter(|_| first.len() == 10)?;
    let is_zone =
        |zone: &[u8]| zone == b"UTC" || (zone.len() >= 5 && matches!(zone[0], b'+' | b'-') && zone[1].is_ascii_digit());
    let time = match split_token(rest).filter(|(zone, _)| is_zone(zone)) {
        Some((_, rest)) => (upto(rest), rest),
        None => (upto(rest), rest),
    };
    unix_time_ns(time.0).is_some().then_some(time)
}

/// Returns the text after the level, process id, name and punctuation of a logger.
fn text_after_level(line: &[u8]) -> Option<&[u8]> {
    let (mut rest, mut has_level) = (line.trim_ascii_start(), false);
    loop {
        // Python's `INFO:name:` has no blank between level and name.
        if let Some(after) = text_after_level_and_name(rest) {
            (rest, has_level) = (after, true);
            continue;
        }
        let Some((first, after)) = split_token(rest) else { break };
        match first {
            _ if is_level(first) => has_level = true,
            b"-" | b"--" | b"---" | b"|" | b":" => {}
            [b'[', inner @ .., b']'] if !inner.contains(&b'[') => {}
            _ if is_logger(first) || (has_level && first.iter().all(u8::is_ascii_digit)) => {}
            _ => break,
        }
        rest = after;
    }
    // Some loggers write a few words and a tab before JSON.
    if rest.ends_with(b"}")
        && !rest.starts_with(b"{")
        && let Some(at) = memchr::memmem::find(rest, b"\t{")
    {
        rest = &rest[at + 1..];
    }
    has_level.then_some(rest)
}

/// The longest accepted name of a logger, bytes.
const LOGGER_BYTES_MAX: usize = 64;

fn text_after_level_and_name(text: &[u8]) -> Option<&[u8]> {
    // The search for a colon covers only the length of the longest accepted name, because a line
    // may be very long.
    let colon = |text: &[u8]| memchr::memchr(b':', &text[..text.len().min(LOGGER_BYTES_MAX)]);
    let level = colon(text).filter(|end| is_level(&text[..*end]))?;
    let rest = &text[level + 1..];
    let name = colon(rest).filter(|end| *end > 0)?;
    let is_name = |b: &u8| b.is_ascii_alphabetic() || b"._".contains(b);
    rest[..name].iter().all(is_name).then(|| rest[name + 1..].trim_ascii_start())
}

/// Returns whether a word is a log level, such as `INFO`, `[INFO]` or `info:`.
fn is_level(word: &[u8]) -> bool {
    const LOG_LEVEL_WORDS: [&[u8]; 11] =
        [b"trace", b"debug", b"info", b"inf", b"notice", b"warn", b"warning", b"error", b"err", b"critical", b"fatal"];
    let bare = word.strip_prefix(b"[").unwrap_or(word);
    let bare = bare.strip_suffix(b":").unwrap_or(bare);
    let bare = bare.strip_suffix(b"]").unwrap_or(bare);
    LOG_LEVEL_WORDS.iter().any(|level| bare.eq_ignore_ascii_case(level))
}

/// Returns whether a word is the name of a logger, such as `uvicorn.access` or
/// `uvicorn.protocols:send:447`.
fn is_logger(word: &[u8]) -> bool {
    let has_parts = word.iter().any(|b| b".:_".contains(b));
    let fits = |b: &u8| b.is_ascii_alphanumeric() || b"._:<>-/".contains(b);
    word.first().is_some_and(u8::is_ascii_lowercase) && has_parts && word.iter().all(fits)
}

/// Returns the text after one or more tags in brackets, `[tag] [tag] `.
fn text_after_tags(line: &[u8]) -> Option<&[u8]> {
    let mut rest = line;
    while let Some(inner) = rest.strip_prefix(b"[") {
        let end = memchr::memchr(b']', inner).filter(|end| *end > 0 && !inner[..*end].contains(&b' '))?;
        rest = inner[end + 1..].strip_prefix(b" ")?;
    }
    (rest.len() < line.len()).then_some(rest)
}

/// Removes one terminal colour sequence at the beginning of a text.
fn without_colour(text: &[u8]) -> &[u8] {
    match text.strip_prefix(b"\x1b[") {
        Some(rest) => memchr::memchr(b'm', rest).map_or(text, |end| &rest[end + 1..]),
        None => text,
    }
}

/// Returns the message of a syslog line (RFC 3164 or RFC 5424).
fn syslog_message(line: &[u8]) -> Option<&[u8]> {
    let after_priority = line.strip_prefix(b"<").and_then(|rest| {
        let end = memchr::memchr(b'>', rest).filter(|end| (1..=3).contains(end))?;
        rest[..end].iter().all(u8::is_ascii_digit).then(|| &rest[end + 1..])
    });
    let rest = after_priority.unwrap_or(line);
    if let Some(rest) = rest.strip_prefix(b"1 ").filter(|_| after_priority.is_some()) {
        // The header of RFC 5424 has time, host, program, process and message id. After the header,
        // structured data in brackets or a dash follows.
        let mut rest = rest;
        for _ in 0..5 {
            rest = split_word(rest)?.1;
        }
        let rest = match rest.first()? {
            b'[' => &rest[memchr::memmem::find(rest, b"] ")? + 2..],
            _ => split_word(rest)?.1,
        };
        return Some(rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest));
    }
    let rest = match split_word(rest).filter(|(time, _)| is_time(time)) {
        Some((_, rest)) => rest,
        None => text_after_month_time(rest)?,
    };
    // The host of a syslog header may be missing. The program name ends with a colon.
    let (first, rest) = split_word(rest)?;
    // A word such as `INFO:` is a logger's level, not a program.
    let is_program = |word: &[u8]| word.ends_with(b":") && !is_level(word);
    if is_program(first) {
        return Some(rest);
    }
    let (program, rest) = split_word(rest)?;
    is_program(program).then_some(rest)
}

/// Returns the text after a syslog time, `Oct 10 13:55:30 `.
fn text_after_month_time(text: &[u8]) -> Option<&[u8]> {
    const MONTH_NAMES: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    let (month, rest) = split_word(text)?;
    MONTH_NAMES.contains(&month).then_some(())?;
    let (day, rest) = split_word(rest.trim_ascii_start())?;
    (day.len() <= 2 && day.iter().all(u8::is_ascii_digit)).then_some(())?;
    let (time, rest) = split_word(rest)?;
    let is_time = time.len() >= 8 && time[2] == b':' && time[5] == b':' && time[..2].iter().all(u8::is_ascii_digit);
    is_time.then_some(rest)
}

/// Unescapes the log text of a line of Docker's `json-file`; `None` if the line is not of this
/// format.
fn docker_json_log_text<'a>(line: &'a [u8], buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    // Some log shippers add blanks between the JSON tokens.
    let mut rest = line.trim_ascii();
    for sign in [&b"{"[..], b"\"log\"", b":", b"\""] {
        rest = rest.trim_ascii_start().strip_prefix(sign)?;
    }
    let mut end = 0;
    loop {
        end += memchr::memchr2(b'"', b'\\', rest.get(end..)?)?;
        if rest[end] == b'"' {
            break;
        }
        end += 2;
    }
    memchr::memmem::find(&rest[end..], b"\"stream\"")?;
    buffer.clear();
    unescape_json(&rest[..end], buffer)?;
    let text = buffer.trim_ascii_end();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_prefixes_are_detected() {
        for (line, expect) in [
            ("Oct 10 13:55:30 web nginx[123]: x y", Some((LogPrefix::Syslog, "x y"))),
            ("<190>Oct  1 13:55:30 web nginx: x y", Some((LogPrefix::Syslog, "x y"))),
            ("2025-10-10T13:55:30.123+02:00 web nginx[1]: x y", Some((LogPrefix::Syslog, "x y"))),
            ("<134>1 2025-10-10T13:55:30Z web nginx 12 - - x y", Some((LogPrefix::Syslog, "x y"))),
            ("<134>1 2025-10-10T13:55:30Z web nginx 12 - [a b=\"c\"] x y", Some((LogPrefix::Syslog, "x y"))),
            ("2025-10-10T13:55:30.123456789Z stdout F x y", Some((LogPrefix::Cri, "x y"))),
            ("web-1  | x y", Some((LogPrefix::Compose, "x y"))),
            ("\u{1b}[36mweb_1    |\u{1b}[0m x y", None),
            ("\u{1b}[36mweb_1    | \u{1b}[0mx y", Some((LogPrefix::Compose, "x y"))),
            ("[pod/web-5d/nginx] x y", Some((LogPrefix::Pod, "x y"))),
            ("2025-10-10T13:55:30.123456789Z x y", Some((LogPrefix::Time, "x y"))),
            (
                r#"{"log":"x \"y\"\n","stream":"stdout","time":"2025-10-10T13:55:30.1Z"}"#,
                Some((LogPrefix::DockerJson, "x \"y\"")),
            ),
            (
                r#"{"log": " x \"y\"\n", "stream": "stdout", "time": "2025-10-10T13:55:30.1Z"}"#,
                Some((LogPrefix::DockerJson, " x \"y\"")),
            ),
            ("10.0.0.1 - - [10/Oct/2025:13:55:30 +0000] x", None),
            ("2025-10-10 13:55:30,123 x y", Some((LogPrefix::Time, "x y"))),
            ("2025-10-10 13:55:30 +0000 - x y", Some((LogPrefix::Time, "x y"))),
            ("2025/10/10 13:55:30.123\tx y", Some((LogPrefix::Time, "x y"))),
            ("[2025-10-10 13:55:30 +0000] [8] x y", Some((LogPrefix::Time, "[8] x y"))),
            ("[2025-10-10T13:55:30Z INFO  actix_web::logger] x y", Some((LogPrefix::Time, "x y"))),
            ("I, [2025-10-10T13:55:30.123456 #12]  INFO -- : x y", Some((LogPrefix::Time, "x y"))),
            ("2025-10-10T13:55:30Z INFO: x y", Some((LogPrefix::Time, "INFO: x y"))),
            ("INFO:     x y", Some((LogPrefix::Level, "x y"))),
            ("[8] [INFO] x y", Some((LogPrefix::Level, "x y"))),
            ("- uvicorn.access - INFO - x y", Some((LogPrefix::Level, "x y"))),
            ("| INFO     | uvicorn.protocols:send:447 - x y", Some((LogPrefix::Level, "x y"))),
            ("INFO:aiohttp.access:x y", Some((LogPrefix::Level, "x y"))),
            ("INFO 1 --- [nio-8080] o.a.c.AccessLog : x y", Some((LogPrefix::Level, "x y"))),
            ("INFO\thttp.log.access\thandled request\t{\"a\": 1}", Some((LogPrefix::Level, "{\"a\": 1}"))),
            ("[6ba7b810-9dad] [1.2.3.4] x y", Some((LogPrefix::Tags, "x y"))),
            ("[12] [10/Oct/2025:13:55:30 +0000] x", None),
            ("INFORMATION x y", None),
            ("Oct x", None),
            ("", None),
        ] {
            let found = LogPrefix::detect_in_lines(&[Cow::Borrowed(line.as_bytes())]).map(|prefix| {
                let mut buffer = Vec::new();
                let rest = prefix.strip(line.as_bytes(), &mut buffer).unwrap_or_default();
                (prefix, String::from_utf8_lossy(rest).into_owned())
            });
            assert_eq!(found, expect.map(|(prefix, rest)| (prefix, rest.to_owned())), "{line}");
        }
    }

    #[test]
    fn prefix_timestamps_need_a_year() {
        const LOG_TIME_UNIX_S: u64 = 1_760_104_530;
        for (line, prefix, seconds) in [
            (
                r#"{"log":"\"time\":\n","stream":"stdout","time":"2025-10-10T13:55:30Z"}"#,
                LogPrefix::DockerJson,
                Some(LOG_TIME_UNIX_S),
            ),
            ("2025-10-10T13:55:30Z stdout F x", LogPrefix::Cri, Some(LOG_TIME_UNIX_S)),
            ("Oct 10 13:55:30 web nginx[123]: x", LogPrefix::Syslog, None),
            ("<134>1 2025-10-10T13:55:30Z web nginx 12 - - x", LogPrefix::Syslog, Some(LOG_TIME_UNIX_S)),
            ("<134>2025-10-10T13:55:30Z web nginx: x", LogPrefix::Syslog, Some(LOG_TIME_UNIX_S)),
            ("2025-10-10T15:55:30+02:00 heroku[router]: x", LogPrefix::Syslog, Some(LOG_TIME_UNIX_S)),
            ("[2025-10-10 15:55:30 +0200] x", LogPrefix::Time, Some(LOG_TIME_UNIX_S)),
            ("I, [2025-10-10T13:55:30 #1]  INFO -- : x", LogPrefix::Time, Some(LOG_TIME_UNIX_S)),
            ("web-1  | x", LogPrefix::Compose, None),
        ] {
            assert_eq!(prefix.unix_time_ns(line.as_bytes()).map(|ns| ns / 1_000_000_000), seconds, "{line}");
        }
    }

    #[test]
    fn colour_codes_are_removed() {
        for (line, expect) in
            [("\u{1b}[97;42m 200 \u{1b}[0m|a", " 200 |a"), ("plain", "plain"), ("a\u{1b}[1", "a"), ("a\u{1b}b", "ab")]
        {
            let mut buffer = Vec::new();
            assert_eq!(without_colours(line.as_bytes(), &mut buffer), expect.as_bytes(), "{line:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_line_parses_without_a_panic(line in "(<1>|1 |Oct |10 |13:55:30 |2025-10-10T13:55:30Z |2025-10-10 |I, \\[|INFO|stdout |F |\\| |\\[pod/|\\{\"log\":\"|\"time\"|\\\\|\"|\u{1b}|[a-z:\\[\\] \t]){0,12}") {
            for prefix in LOG_PREFIXES {
                let _ = prefix.strip(line.as_bytes(), &mut Vec::new());
                let _ = prefix.unix_time_ns(line.as_bytes());
            }
            let _ = without_colours(line.as_bytes(), &mut Vec::new());
        }
    }
}
