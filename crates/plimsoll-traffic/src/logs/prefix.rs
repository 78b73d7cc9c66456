//! What stands before the lines of a log that somebody else has carried: syslog, Kubernetes,
//! Docker, compose. Not here: what the lines themselves say.

use super::json::unescaped;
use super::stamp;
use std::borrow::Cow;

/// How many may stand before each other: `docker compose logs -t` has two.
pub(super) const PREFIXES_MAX: usize = 3;
/// Of so many lines one may be without it.
const WITHOUT_ONE_IN: usize = 5;

/// What stands before each line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogPrefix {
    /// `{"log":"...\n","stream":"stdout","time":"..."}`.
    DockerJson,
    /// `2025-10-10T13:55:30.1Z stdout F `.
    Cri,
    /// `<134>Oct 10 13:55:30 host nginx[12]: `, or as RFC 5424 has it.
    Syslog,
    /// `web-1  | `.
    Compose,
    /// `[pod/web-5d/nginx] `.
    Pod,
    /// `2025-10-10T13:55:30.1Z `.
    Time,
}

const ALL: [LogPrefix; 6] =
    [LogPrefix::DockerJson, LogPrefix::Cri, LogPrefix::Syslog, LogPrefix::Compose, LogPrefix::Pod, LogPrefix::Time];

impl LogPrefix {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            LogPrefix::DockerJson => "Docker's JSON",
            LogPrefix::Cri => "Kubernetes (CRI)",
            LogPrefix::Syslog => "syslog",
            LogPrefix::Compose => "docker compose",
            LogPrefix::Pod => "kubectl",
            LogPrefix::Time => "a time",
        }
    }

    /// What stands before most of these lines.
    pub fn of_lines(lines: &[Cow<[u8]>]) -> Option<LogPrefix> {
        let stands = |prefix: &LogPrefix| {
            let mut room = Vec::new();
            let without = lines.iter().filter(|line| prefix.strip(line, &mut room).is_none()).count();
            without * WITHOUT_ONE_IN <= lines.len() && without < lines.len()
        };
        ALL.into_iter().find(|prefix| stands(prefix))
    }

    /// A line without it; what has escapes is put in order in `room`.
    pub fn strip<'a>(self, line: &'a [u8], room: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        match self {
            LogPrefix::DockerJson => docker_line(line, room),
            _ => self.plain(line),
        }
    }

    /// The same where nothing has escapes: `None` in JSON.
    pub fn plain(self, line: &[u8]) -> Option<&[u8]> {
        let rest = match self {
            LogPrefix::DockerJson => return None,
            LogPrefix::Cri => {
                let (_, rest) = word(line).filter(|(time, _)| is_time(time))?;
                let (_, rest) = word(rest).filter(|(stream, _)| [&b"stdout"[..], b"stderr"].contains(stream))?;
                word(rest).filter(|(tag, _)| [&b"F"[..], b"P"].contains(tag))?.1
            }
            LogPrefix::Syslog => syslog(line)?,
            LogPrefix::Compose => {
                let bare = without_colour(line);
                let bar = memchr::memchr(b'|', bare)?;
                let name = bare[..bar].trim_ascii_end();
                let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
                let padded = bar > name.len() && !name.is_empty() && name.iter().all(is_name);
                without_colour(padded.then(|| bare[bar + 1..].strip_prefix(b" "))??)
            }
            LogPrefix::Pod => {
                let (name, rest) = word(line)?;
                (name.starts_with(b"[pod/") && name.ends_with(b"]")).then_some(rest)?
            }
            LogPrefix::Time => word(line).filter(|(time, _)| is_time(time))?.1,
        };
        (!rest.is_empty()).then_some(rest)
    }
}

/// The first word, and what comes after it.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = memchr::memchr(b' ', text).filter(|blank| *blank > 0)?;
    Some((&text[..blank], &text[blank + 1..]))
}

/// `2025-10-10T13:55:30.123Z`.
fn is_time(text: &[u8]) -> bool {
    text.len() >= 19 && text[4] == b'-' && text[10] == b'T' && stamp::read(text).is_some()
}

/// Terminals are told colours of names.
fn without_colour(text: &[u8]) -> &[u8] {
    match text.strip_prefix(b"\x1b[") {
        Some(rest) => memchr::memchr(b'm', rest).map_or(text, |end| &rest[end + 1..]),
        None => text,
    }
}

/// The message of a line of syslog (RFC 3164, RFC 5424).
fn syslog(line: &[u8]) -> Option<&[u8]> {
    let after_priority = line.strip_prefix(b"<").and_then(|rest| {
        let end = memchr::memchr(b'>', rest).filter(|end| (1..=3).contains(end))?;
        rest[..end].iter().all(u8::is_ascii_digit).then(|| &rest[end + 1..])
    });
    let rest = after_priority.unwrap_or(line);
    if let Some(rest) = rest.strip_prefix(b"1 ").filter(|_| after_priority.is_some()) {
        // Time, host, program, process and kind of message; then data in brackets, or a dash.
        let mut rest = rest;
        for _ in 0..5 {
            rest = word(rest)?.1;
        }
        let rest = match rest.first()? {
            b'[' => &rest[memchr::memmem::find(rest, b"] ")? + 2..],
            _ => word(rest)?.1,
        };
        return Some(rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest));
    }
    let rest = match word(rest).filter(|(time, _)| is_time(time)) {
        Some((_, rest)) => rest,
        None => after_month_time(rest)?,
    };
    // The host may be left out; the program ends with a colon.
    let (first, rest) = word(rest)?;
    if first.ends_with(b":") {
        return Some(rest);
    }
    let (program, rest) = word(rest)?;
    program.ends_with(b":").then_some(rest)
}

/// What comes after `Oct 10 13:55:30 `.
fn after_month_time(text: &[u8]) -> Option<&[u8]> {
    const MONTHS: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    let (month, rest) = word(text)?;
    MONTHS.contains(&month).then_some(())?;
    let (day, rest) = word(rest.trim_ascii_start())?;
    (day.len() <= 2 && day.iter().all(u8::is_ascii_digit)).then_some(())?;
    let (time, rest) = word(rest)?;
    let is_time = time.len() >= 8 && time[2] == b':' && time[5] == b':' && time[..2].iter().all(u8::is_ascii_digit);
    is_time.then_some(rest)
}

/// The text of a line of Docker's `json-file`.
fn docker_line<'a>(line: &'a [u8], room: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    // Some that carry it on put blanks between its signs.
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
    room.clear();
    unescaped(&rest[..end], room)?;
    let text = room.trim_ascii_end();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_a_line_is_known() {
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
            ("Oct x", None),
            ("", None),
        ] {
            let found = LogPrefix::of_lines(&[Cow::Borrowed(line.as_bytes())]).map(|prefix| {
                let mut room = Vec::new();
                let rest = prefix.strip(line.as_bytes(), &mut room).unwrap_or_default();
                (prefix, String::from_utf8_lossy(rest).into_owned())
            });
            assert_eq!(found, expect.map(|(prefix, rest)| (prefix, rest.to_owned())), "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_it_panic(line in "(<1>|1 |Oct |10 |13:55:30 |2025-10-10T13:55:30Z |stdout |F |\\| |\\[pod/|\\{\"log\":\"|\\\\|\"|[a-z:\\[\\] ]){0,12}") {
            for prefix in ALL {
                let _ = prefix.strip(line.as_bytes(), &mut Vec::new());
            }
        }
    }
}
