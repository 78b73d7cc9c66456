//! Converts access logs to a load: the requests to send, and the time of each request.
//!
//! Not here: opening logs (`logs`), parsing lines (`plimsoll_logs`), and the display of progress
//! ([`ReadingProgress`]).

use crate::fields::parse_header_flag;
use crate::file_traffic::push_authorization;
use crate::logs::{LogLineCounts, LogParsingOptions, LogSource, Logs};
use crate::output::print_to_stderr;
use plimsoll_analysis::format;
use plimsoll_logs::replay::{LogRequests, ReplayChoice, ReplayDefaults, ReplayError, ReplayTiming, RequestCollector};
use plimsoll_model::completion::TrafficFromFile;
use plimsoll_model::experiment_settings::{LogReadingSettings, ReplaySettings};
use plimsoll_model::failure::Failure;
use plimsoll_model::{RedactionLevel, ReplayFacts};
use plimsoll_traffic::target_url::Url;
use regex::Regex;
use std::path::PathBuf;

/// Displays the progress of reading log files.
pub trait ReadingProgress {
    /// Receives the number of bytes read so far, and the total length of the logs if known.
    fn show_bytes_read(&mut self, read: u64, length: Option<u64>);

    /// Removes the progress display when reading is complete.
    fn clear(&mut self);
}

/// Converts the user's options for parsing log lines to the parser's options.
pub fn log_reading_options(args: &LogReadingSettings) -> LogParsingOptions<'_> {
    LogParsingOptions {
        log_format: args.log_format.as_deref(),
        field: args.field.as_deref(),
        session: args.session.as_deref(),
    }
}

/// Compiles the patterns of --fold. [`fold_path`] replaces every match in a path by `{}`, so that
/// paths that differ only in the matches count as one endpoint.
pub fn compile_fold_patterns(args: &LogReadingSettings) -> Result<Vec<Regex>, Failure> {
    compile_patterns("--fold", &args.fold)
}

/// Compiles the regular expressions of a flag. `flag` is the flag's name for error messages.
pub fn compile_patterns(flag: &str, texts: &[String]) -> Result<Vec<Regex>, Failure> {
    let compile = |pattern: &String| {
        Regex::new(pattern).map_err(|error| {
            // The message of the regex library has several lines, and its last line contains the
            // reason.
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Failure::usage(format!("{flag} '{pattern}' is no regular expression: {reason}"))
        })
    };
    texts.iter().map(compile).collect()
}

/// Returns a path with all matches of the patterns replaced by `{}`.
pub fn fold_path(path_folds: &[Regex], path: &str) -> String {
    path_folds.iter().fold(path.to_owned(), |path, fold| fold.replace_all(&path, "{}").into_owned())
}

/// Returns an error if --strict is set and a log line cannot be parsed.
pub fn check_strict(args: &LogReadingSettings, counts: &LogLineCounts) -> Result<(), Failure> {
    match &counts.first {
        Some((place, text)) if args.strict => Err(Failure::cannot_start(format!(
            "--strict: {place} cannot be parsed: \"{text}\"; {unparsed_lines} of {all_lines} lines have this problem",
            unparsed_lines = format::count(counts.unparsed),
            all_lines = format::count(counts.read)
        ))),
        _ => Ok(()),
    }
}

/// Returns an error if no log line could be parsed, which means that the logs have another format.
pub fn refuse_if_no_line_parsed(counts: &LogLineCounts) -> Result<(), Failure> {
    if counts.unparsed == counts.read {
        let first = counts.first.as_ref().map_or(String::new(), |(place, text)| format!("; {place}: \"{text}\""));
        return Err(Failure::cannot_start(format!(
            "none of the {all_lines} log lines can be parsed: describe the format with --log-format or \
             --field{first}",
            all_lines = format::count(counts.read)
        )));
    }
    Ok(())
}

/// Reads the logs and returns the load that replays their requests. Prints a summary to standard
/// error unless `quiet`.
pub fn traffic_from_logs(
    replay: &ReplaySettings<String>,
    seed: u64,
    redact: RedactionLevel,
    quiet: bool,
    progress: &mut dyn ReadingProgress,
) -> Result<TrafficFromFile, Failure> {
    let Url { origin, path, authorization } = Url::parse(&replay.target)?;
    let prefix = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let mut headers = replay.headers.iter().map(|text| parse_header_flag(text)).collect::<Result<Vec<_>, _>>()?;
    push_authorization(&mut headers, authorization);
    let paths: Vec<PathBuf> = replay.logs.iter().map(PathBuf::from).collect();
    let choice = LogRequestSelection {
        logs: &paths,
        reading: &replay.reading,
        only: &replay.only,
        skip: &replay.skip,
        with_unsafe: replay.with_unsafe,
        prefix,
    };
    let (gathered, logs, counts) = read_requests(&choice, progress)?;
    let (speed_milli, scale_milli, lines) = (replay.speed_milli, replay.scale_milli, counts.read);
    let timing = ReplayTiming { seed, speed_milli, scale_milli, length_ns: replay.length_ns, lines };
    let without_method = gathered.lines_without_method();
    let timed = match replay.draws_sessions {
        true => gathered.to_session_replay(seed, lines),
        false => gathered.to_replay(&timing),
    };
    let timed = timed.map_err(|error| replay_failure(replay, &error, without_method))?;
    let defaults = ReplayDefaults { headers, ok_status: replay.ok_status.clone(), timeout_ns: replay.timeout_ns };
    let traffic = timed.traffic(origin, &defaults, redact);
    if !quiet && let Some(listed) = &traffic.request_list {
        let asked = (timed.request_count(), timed.endpoint_count(), timed.length_ns);
        print_to_stderr(&log_summary_text(&logs, &counts, asked, &listed.facts));
    }
    Ok(TrafficFromFile { traffic, arrivals: timed.arrivals })
}

/// The log files to read, and which of their requests are replayed.
pub struct LogRequestSelection<'a> {
    /// Paths of the access logs; `-` is standard input.
    pub logs: &'a [PathBuf],
    /// Options for parsing log lines.
    pub reading: &'a LogReadingSettings,
    /// Patterns (regular expressions) of the requests to use. An empty list selects all requests.
    pub only: &'a [String],
    /// Patterns (regular expressions) of the requests to skip.
    pub skip: &'a [String],
    /// Whether requests with methods other than GET and HEAD, which may change data, are used.
    pub with_unsafe: bool,
    /// A path prefix that is added to every logged path.
    pub prefix: &'a str,
}

/// Reads the selected requests from the logs. Also returns the log files with their formats, and
/// the numbers of lines.
pub fn read_requests(
    choice: &LogRequestSelection,
    progress: &mut dyn ReadingProgress,
) -> Result<(LogRequests, Vec<LogSource>, LogLineCounts), Failure> {
    let (folding, only) = (compile_fold_patterns(choice.reading)?, compile_patterns("--only", choice.only)?);
    let skip = compile_patterns("--skip", choice.skip)?;
    let fold = |path: &str| fold_path(&folding, path);
    let wanted = |request: &str| {
        (only.is_empty() || only.iter().any(|pattern| pattern.is_match(request)))
            && !skip.iter().any(|pattern| pattern.is_match(request))
    };
    let mut logs = Logs::open(choice.logs, log_reading_options(choice.reading))?;
    let taken = ReplayChoice {
        fold: if folding.is_empty() { None } else { Some(&fold) },
        wanted: &wanted,
        is_unsafe_included: choice.with_unsafe,
        prefix: choice.prefix,
    };
    let mut gathering = RequestCollector::new(taken);
    let counts =
        logs.for_each_request(|entry, _| gathering.add(entry), |read, length| progress.show_bytes_read(read, length))?;
    progress.clear();
    check_strict(choice.reading, &counts)?;
    refuse_if_no_line_parsed(&counts)?;
    let gathered = gathering.finish().map_err(|error| {
        Failure::cannot_start(format!("{error}: use fewer requests of the log (--only, --skip, or a shorter log)"))
    })?;
    Ok((gathered, logs.log_sources(), counts))
}

/// Converts a replay error to a failure that says how to correct the problem.
fn replay_failure(replay: &ReplaySettings<String>, error: &ReplayError, without_method: u64) -> Failure {
    let way_out = match error {
        ReplayError::TooManyRequests if replay.scale_milli > 1000 => {
            "use fewer requests of the log (--only, --skip, or a shorter log), or a smaller --scale"
        }
        ReplayError::TooManyRequests => "use fewer requests of the log (--only, --skip, or a shorter log)",
        ReplayError::TooLong { .. } => {
            "replay only the beginning of the log with -d TIME, replay faster with --speed, or shorten the log"
        }
        ReplayError::NoRequests if without_method > 0 => {
            let lines = format::count(without_method);
            return Failure::cannot_start(format!(
                "{logs}: {error}: {lines} log lines have no method: name the place of the method with --field \
                 method=.PATH or --log-format",
                logs = replay.logs.join(", ")
            ));
        }
        ReplayError::NoRequests if !replay.with_unsafe => {
            "add --allow-unsafe for methods other than GET and HEAD, or check --only, --skip and -d, which exclude \
             requests"
        }
        ReplayError::NoRequests => "check --only, --skip and -d, which exclude requests of the log",
    };
    Failure::cannot_start(format!("{}: {error}: {way_out}", replay.logs.join(", ")))
}

/// Returns a summary of the logs that were read, and of the load that replays them.
fn log_summary_text(
    logs: &[LogSource],
    counts: &LogLineCounts,
    asked: (u64, usize, u64),
    facts: &ReplayFacts,
) -> String {
    let (requests, endpoints, length_ns) = asked;
    let formats: Vec<String> = logs.iter().map(|log| format!("{} ({})", log.name, log.format)).collect();
    let (what, sessions) = match facts.sessions {
        None => ("replays", String::new()),
        Some(drawn_from) => ("draws from", format!(" of {} sessions", format::count(drawn_from.sessions))),
    };
    let mut text = format!(
        "{what} {request_count} {request_word}{sessions} to {endpoint_count} {endpoint_word} in {length}: {logs}",
        request_count = format::count(requests),
        request_word = if requests == 1 { "request" } else { "requests" },
        endpoint_count = format::count(endpoints as u64),
        endpoint_word = if endpoints == 1 { "endpoint" } else { "endpoints" },
        length = format::duration(length_ns as f64),
        logs = formats.join(", "),
    );
    if facts.has_whole_seconds {
        text.push_str("; the log's timestamps are whole seconds, and the requests are spread within each second");
    }
    let mut left_out: Vec<String> =
        facts.skip_counts.iter().map(|(why, count)| format!("{why} {}", format::count(*count))).collect();
    if counts.unparsed > 0 {
        left_out.push(format!("not understood {}", format::count(counts.unparsed)));
    }
    if !left_out.is_empty() {
        text.push_str(&format!("; left out: {}", left_out.join(", ")));
    }
    text
}
