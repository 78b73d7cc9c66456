//! Opens the log files of the command line, detects their formats, reads their lines and merges the
//! logs by time. The size of the longest line bounds the memory. Not here: the formats
//! (`plimsoll_logs::access_log`), and parsing lines.

mod unpack;

use plimsoll_logs::access_log::{
    Entry, Format, FormatError, LINE_BYTES_MAX, LineBuffers, TimestampMeaning, find_format,
};
use plimsoll_model::failure::Failure;
use plimsoll_model::redact;
use plimsoll_sys::system_text;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use unpack::LogBytes;

/// Initial size of the buffer for reading a log, bytes.
const READ_BUFFER_BYTES: usize = 1 << 20;
/// The largest number of lines at the beginning of a log that are used to detect its format.
const SAMPLE_LINES: usize = 200;
/// The largest number of bytes at the beginning of a log that are used to detect its format.
const SAMPLE_BYTES: usize = 1 << 20;
/// The time by which one log may be read ahead of another log, in ns of log time. The caller sorts
/// the requests, so an exact merge is not needed.
const READ_AHEAD_NS: u64 = 1_000_000_000;

/// Options from the command line for parsing log lines.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogParsingOptions<'a> {
    /// Value of `--log-format`: the format of text lines.
    pub log_format: Option<&'a str>,
    /// Value of `--field`: the mapping of JSON fields.
    pub field: Option<&'a str>,
    /// Value of `--session`: the part of a line that contains the session id.
    pub session: Option<&'a str>,
}

/// A log file that was read: its name, its format and the meaning of its timestamps.
#[derive(Debug, Clone)]
pub struct LogSource {
    /// The path of the log, as the user gave it.
    pub name: String,
    /// The name of the log's format, detected or set by the user.
    pub format: String,
    /// The meaning of a timestamp in the log: start or end of a request.
    pub stamp: TimestampMeaning,
}

/// The number of log lines that were read, and of lines that could not be parsed.
#[derive(Debug, Clone, Default)]
pub struct LogLineCounts {
    /// The number of lines that are not empty.
    pub read: u64,
    /// The number of lines that could not be parsed.
    pub unparsed: u64,
    /// The first line that could not be parsed: its position (`FILE:LINE`) and its redacted
    /// beginning.
    pub first: Option<(String, String)>,
}

impl LogLineCounts {
    fn count_unparsed(&mut self, name: &str, line: u64, text: &[u8]) {
        self.unparsed += 1;
        self.first.get_or_insert_with(|| (format!("{name}:{line}"), redacted_beginning(text)));
    }
}

/// Reads a log file and holds the bytes that were read but not yet parsed.
struct LogBuffer {
    name: String,
    bytes: LogBytes,
    buffer: Vec<u8>,
    /// The start of the unparsed bytes in the buffer.
    from: usize,
    /// The end of the unparsed bytes in the buffer.
    to: usize,
    ended: bool,
    /// The line terminator: a line feed, or a carriage return in a file without line feeds.
    line_end: u8,
}

/// An open log with its format and reading position.
struct Log {
    text: LogBuffer,
    format: Format,
    /// The number of the last line read, from 1.
    line: u64,
    /// Whether the current line is too long, so that its remaining bytes are skipped.
    too_long: bool,
    counts: LogLineCounts,
}

/// The position up to which a log was read.
enum LogPosition {
    /// The next line of the log has this timestamp, ns.
    At(u64),
    Ended,
}

/// Logs that are read together, merged by time.
pub struct Logs {
    logs: Vec<Log>,
    length: Option<u64>,
}

impl Logs {
    /// Opens all logs and detects the format of each log, unless `reading` sets the format.
    pub fn open(paths: &[PathBuf], reading: LogParsingOptions) -> Result<Logs, Failure> {
        if reading.log_format.is_some() && reading.field.is_some() {
            return Err(Failure::usage(
                "--log-format (for text logs) and --field (for JSON logs) exclude each other: leave one out",
            ));
        }
        if paths.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
            return Err(Failure::usage("standard input (-) can be read only once"));
        }
        let said = match (reading.log_format, reading.field) {
            (Some(format), _) => Some(
                Format::from_text(format, reading.session).map_err(|e| usage_failure_for_flag(&e, "--log-format"))?,
            ),
            (_, Some(mapping)) => Some(
                Format::from_json_mapping(mapping, reading.session)
                    .map_err(|e| usage_failure_for_flag(&e, "--field"))?,
            ),
            (None, None) => None,
        };
        let logs = paths.iter().map(|path| Log::open(path, said.as_ref(), reading.session));
        let logs = logs.collect::<Result<Vec<_>, _>>()?;
        let length = logs.iter().map(|log| log.text.bytes.length).sum();
        Ok(Logs { logs, length })
    }

    /// Returns the name, the format and the meaning of timestamps of each log.
    pub fn log_sources(&self) -> Vec<LogSource> {
        let read = |log: &Log| LogSource {
            name: log.text.name.clone(),
            format: log.format.name().to_owned(),
            stamp: log.format.timestamp_meaning(),
        };
        self.logs.iter().map(read).collect()
    }

    /// Calls `take` with every request. The requests of one log come in the order of its lines,
    /// and several logs are merged by time to within one second (`READ_AHEAD_NS`). Calls `passing`
    /// with the number of bytes read so far, and the total number of bytes if known.
    pub fn for_each_request(
        &mut self,
        mut take: impl FnMut(&Entry, TimestampMeaning),
        mut passing: impl FnMut(u64, Option<u64>),
    ) -> Result<LogLineCounts, Failure> {
        let mut stands: Vec<LogPosition> = Vec::with_capacity(self.logs.len());
        for log in &mut self.logs {
            stands.push(log.read_requests_until(0, &mut take, &mut || {})?);
        }
        loop {
            let mut at: Vec<(u64, usize)> = Vec::new();
            for (number, stand) in stands.iter().enumerate() {
                if let LogPosition::At(stamp) = stand {
                    at.push((*stamp, number));
                }
            }
            at.sort_unstable();
            let Some((_, first)) = at.first() else { break };
            let limit = at.get(1).map_or(u64::MAX, |(stamp, _)| stamp.saturating_add(READ_AHEAD_NS));
            let read: u64 = self.logs.iter().map(|log| log.text.bytes.read.load(Ordering::Relaxed)).sum();
            let own = self.logs[*first].text.bytes.read.clone();
            let (length, before) = (self.length, read.saturating_sub(own.load(Ordering::Relaxed)));
            let mut pass = || passing(before + own.load(Ordering::Relaxed), length);
            stands[*first] = self.logs[*first].read_requests_until(limit, &mut take, &mut pass)?;
        }
        let mut counts = LogLineCounts::default();
        for log in &self.logs {
            counts.read += log.counts.read;
            counts.unparsed += log.counts.unparsed;
            counts.first = counts.first.or_else(|| log.counts.first.clone());
        }
        Ok(counts)
    }
}

fn usage_failure_for_flag(error: &FormatError, flag: &str) -> Failure {
    let flag = if matches!(error, FormatError::Session(..)) { "--session" } else { flag };
    Failure::usage(format!("{flag} {error}"))
}

impl LogBuffer {
    /// Returns the first lines for format detection. The lines stay in the buffer.
    fn read_sample_lines(&mut self) -> Result<Vec<&[u8]>, Failure> {
        while self.to < SAMPLE_BYTES && !self.ended && count_line_feeds(&self.buffer[..self.to]) <= SAMPLE_LINES {
            self.fill_buffer()?;
        }
        if self.buffer[..self.to].starts_with(b"\xef\xbb\xbf") {
            // The byte order mark at the beginning of a log file is skipped.
            self.from = 3;
        }
        let sample = &self.buffer[self.from..self.to];
        let has = |byte: u8| memchr::memchr(byte, sample.trim_ascii_end()).is_some();
        if !has(b'\n') && has(b'\r') {
            self.line_end = b'\r';
        }
        let end = self.line_end;
        let last = memchr::memrchr(end, sample).filter(|_| !self.ended);
        let whole = &sample[..last.map_or(sample.len(), |at| at + 1)];
        let lines = whole.split(|b| *b == end).map(<[u8]>::trim_ascii_end).filter(|line| !line.is_empty());
        Ok(lines.take(SAMPLE_LINES).collect())
    }

    /// Reads more bytes into the buffer, which grows if it is full.
    fn fill_buffer(&mut self) -> Result<(), Failure> {
        if self.from > 0 {
            self.buffer.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
        }
        if self.to == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        match self.bytes.read(&mut self.buffer[self.to..]) {
            Ok(0) => self.ended = true,
            Ok(length) => self.to += length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                let reason = system_text(&error);
                return Err(Failure::cannot_start(format!(
                    "'{log}' cannot be read to its end: {reason}",
                    log = self.name
                )));
            }
        }
        Ok(())
    }
}

impl Log {
    fn open(path: &Path, said: Option<&Format>, session: Option<&str>) -> Result<Log, Failure> {
        let name = if path == Path::new("-") { "standard input".into() } else { path.display().to_string() };
        let failed = |why: String| Failure::cannot_start(format!("'{name}' {why}"));
        let bytes = unpack::open(path, &name).map_err(Failure::cannot_start)?;
        let mut text = LogBuffer {
            name: name.clone(),
            bytes,
            buffer: vec![0; READ_BUFFER_BYTES],
            from: 0,
            to: 0,
            ended: false,
            line_end: b'\n',
        };
        let lines = text.read_sample_lines()?;
        let Some(first) = lines.first() else { return Err(failed("holds no line".into())) };
        let format = match said {
            Some(format) => format.clone().add_missing_prefixes(&lines),
            None => find_format(&lines, session).map_err(|error| match error {
                FormatError::Session(..) => usage_failure_for_flag(&error, "--log-format"),
                FormatError::NoTimes => Failure::cannot_start(format!("'{name}': {error}")),
                error => {
                    let begin = redacted_beginning(first);
                    failed(format!(
                        "{error}: the first line begins with \"{begin}\"; describe the format with \
                        --log-format or --field"
                    ))
                }
            })?,
        };
        Ok(Log { text, format, line: 0, too_long: false, counts: LogLineCounts::default() })
    }

    /// Passes all requests with timestamps up to `limit_ns` to `take`. Returns the position up to
    /// which the log was read.
    fn read_requests_until(
        &mut self,
        limit_ns: u64,
        take: &mut impl FnMut(&Entry, TimestampMeaning),
        passing: &mut impl FnMut(),
    ) -> Result<LogPosition, Failure> {
        let mut escapes = LineBuffers::default();
        let stamp = self.format.timestamp_meaning();
        loop {
            let rest = &self.text.buffer[self.text.from..self.text.to];
            let length = match memchr::memchr(self.text.line_end, rest) {
                Some(length) => length,
                None if self.text.ended && rest.is_empty() => return Ok(LogPosition::Ended),
                None if self.text.ended => rest.len(),
                None => {
                    if rest.len() > LINE_BYTES_MAX {
                        (self.text.from, self.too_long) = (self.text.to, true);
                    }
                    self.text.fill_buffer()?;
                    passing();
                    continue;
                }
            };
            let line = rest[..length].trim_ascii_end();
            let too_long = self.too_long || line.len() > LINE_BYTES_MAX;
            let (name, number) = (self.text.name.as_str(), self.line + 1);
            let is_head = !too_long && self.format.consume_non_request_line(line);
            if too_long {
                self.counts.count_unparsed(name, number, b"a line of more than 1 MiB");
            } else if !line.is_empty() && !is_head {
                match self.format.parse(line, &mut escapes) {
                    Some(entry) if entry.stamp_ns > limit_ns => return Ok(LogPosition::At(entry.stamp_ns)),
                    Some(entry) => take(&entry, stamp),
                    None => self.counts.count_unparsed(name, number, line),
                }
            }
            self.counts.read += u64::from(too_long || (!line.is_empty() && !is_head));
            self.line += 1;
            self.too_long = false;
            self.text.from = (self.text.from + length + 1).min(self.text.to);
        }
    }
}

/// Returns the beginning of an unparsed line for messages, redacted.
fn redacted_beginning(line: &[u8]) -> String {
    // An unparsed line may contain secrets, so words that may be secrets are removed. If words of
    // the line are removed, the message shows the length of the line.
    let whole = redact::redact_excerpt(&String::from_utf8_lossy(&line[..line.len().min(400)]));
    let text: String = whole.chars().take(80).collect();
    let more = if text.len() < whole.len() || line.len() > 400 { "..." } else { "" };
    match text.contains(redact::REDACTED) {
        true => format!("{text}{more} ({} bytes)", line.len()),
        false => format!("{text}{more}"),
    }
}

fn count_line_feeds(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}
