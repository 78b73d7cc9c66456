//! What of a command line is recorded: every flag of every command has a class here, and the class says what of its value is
//! kept. It is taken from the arguments as they were understood, never from their text, so that the way of writing makes no
//! difference; a flag that nobody classified is left out.
//!
//! Not here: what of a URL, header or path is harmless (`plimsoll_model::redact`).

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use plimsoll_model::Said;
use plimsoll_model::redact::{self, REDACTED, Redact};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::OnceLock;

/// What the value of a flag is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A number, a time, a word that plimsoll knows, a condition, the name of a process: kept.
    Plain,
    /// There is none.
    Switch,
    /// A URL; several with commas between them.
    Url,
    /// A header: its name is kept.
    Header,
    /// A body: its size is kept, or the file it is in.
    Body,
    /// A command for the shell: the program's name is kept, and a digest.
    Command,
    /// A file or socket that is read.
    Path,
    /// Where results go: kept as a path, but not done again.
    Place,
    /// Anything: nothing is kept.
    Secret,
}

/// The class of an argument, by its command and clap's name for it.
pub fn class_of(command: &str, id: &str) -> Option<Class> {
    Some(match (command, id) {
        ("diff", "a" | "b") | (_, "logs") => Class::Path,
        ("clean", "keep") => Class::Plain,
        ("clean", "dry_run") => Class::Switch,
        ("profile", "source" | "diff") => Class::Url,
        ("rerun", "file") | ("show" | "report", "files") => Class::Path,
        (_, "url" | "urls" | "more" | "target" | "pprof" | "metrics") => Class::Url,
        (_, "headers") => Class::Header,
        (_, "body") => Class::Body,
        (_, "a" | "b" | "before_block") => Class::Command,
        (_, "file" | "traffic" | "unix" | "cacert" | "cert" | "key" | "cgroup") => Class::Path,
        (_, "output" | "dir" | "name") => Class::Place,
        (
            _,
            "no_keepalive" | "insecure" | "no_resumption" | "no_preflight" | "allow_public" | "no_probes" | "json"
            | "quiet" | "ladder" | "record_commands" | "count_disturbed" | "dry_run" | "csv" | "probes" | "full"
            | "dark" | "print" | "yes" | "strict" | "help" | "version",
        ) => Class::Switch,
        (
            _,
            "method" | "timeout" | "ok_status" | "max_connections" | "connect_to" | "source_ip" | "resolve_every"
            | "close" | "redact" | "threads" | "spin" | "seed" | "arrivals" | "pprof_seconds" | "pid" | "process"
            | "concurrency" | "rate" | "requests" | "duration" | "warmup" | "stop_if" | "fail_if" | "slo" | "budget"
            | "max_rate" | "level_time" | "listen" | "connections" | "start_timeout" | "measure" | "margin" | "blocks"
            | "load_time" | "seconds" | "requests_a" | "requests_b" | "sample_index" | "focus" | "ignore" | "by"
            | "top" | "sort" | "keep" | "format" | "chart" | "log_format" | "field" | "session" | "fold",
        ) => Class::Plain,
        _ => return None,
    })
}

/// A command for the shell as it is named in records and messages: the program, and a digest by which two can be told apart.
pub fn command_shown(command: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let assigned =
        |word: &str| word.split_once('=').filter(|(name, _)| name.chars().all(is_name)).map(|(_, to)| to.to_owned());
    let mut words = command.split_whitespace();
    let name = loop {
        let Some(word) = words.next() else { break "" };
        match assigned(word) {
            // Where what is assigned ends is the shell's to tell.
            Some(value) if value.contains(['"', '\'', '\\', '$', '`', '(']) => break "",
            Some(_) => {}
            None => break word.rsplit('/').next().unwrap_or_default(),
        }
    };
    // A name, not a secret that stands alone or a piece of what was quoted.
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) && name == redact::word(name);
    let name = if plain && !name.is_empty() { name } else { "command" };
    format!("{name} (sha256 {})", digest(command))
}

/// Enough of a digest to tell two texts apart, and too little to find a long one by.
fn digest(text: &str) -> String {
    let whole = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    whole.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// What is kept of a value; the same text means that all of it is.
pub fn kept(class: Class, value: &str, how: Redact, whole_commands: bool) -> String {
    match class {
        Class::Plain | Class::Switch => value.to_owned(),
        Class::Secret => REDACTED.to_owned(),
        // Two are written with a comma between them; other commas are part of one.
        Class::Url => value.split(",http").map(|url| redact::url(url, how)).collect::<Vec<_>>().join(",http"),
        Class::Path | Class::Place => redact::path(value),
        Class::Command if whole_commands => value.to_owned(),
        Class::Command => command_shown(value),
        Class::Body if value == "-" => value.to_owned(),
        Class::Body => match value.strip_prefix('@') {
            Some(path) => format!("@{}", redact::path(path)),
            None => format!("[{} bytes, sha256 {}]", value.len(), digest(value)),
        },
        Class::Header => match value.split_once(':') {
            Some((name, value)) => {
                let name = redact::word(name.trim());
                format!("{name}: {}", redact::header_value(&name, value.trim(), how))
            }
            // Not a header: whatever it is, its writer may have meant a secret.
            None => REDACTED.to_owned(),
        },
    }
}

/// Whether all of a value is kept. A header may be written with or without a blank.
fn is_whole(class: Class, value: &str, kept: &str) -> bool {
    match class {
        Class::Header => !kept.contains(REDACTED) && !kept.contains("..."),
        // Standard input is gone once it was read.
        Class::Body => value == kept && value != "-",
        _ => value == kept,
    }
}

/// How a flag is written, by its longest name.
fn spelled(arg: &clap::Arg) -> Option<String> {
    match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => Some(format!("--{long}")),
        (None, Some(short)) => Some(format!("-{short}")),
        (None, None) => None,
    }
}

/// What was given for one argument, in order; nothing for what stands there by default.
fn given<'a>(matches: &'a ArgMatches, arg: &clap::Arg) -> Vec<&'a OsStr> {
    let id = arg.get_id().as_str();
    match matches.value_source(id) {
        Some(ValueSource::CommandLine | ValueSource::EnvVariable) => {
            matches.get_raw(id).map(Iterator::collect).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// The record of a command line: flags in the order of `--help`, then targets. `seed`: what is drawn where none was given, so
/// that the record has it.
fn said(command: &Command, matches: &ArgMatches, seed: u64) -> Vec<Said> {
    let how = matches.try_get_one::<Redact>("redact").ok().flatten().copied().unwrap_or_default();
    let whole_commands = matches.try_get_one::<bool>("record_commands").ok().flatten().copied().unwrap_or_default();
    let (mut flags, mut targets) = (Vec::new(), Vec::new());
    // Equal secrets of one flag have one number.
    let mut secrets: BTreeMap<&OsStr, u32> = BTreeMap::new();
    for arg in command.get_arguments() {
        let flag = spelled(arg);
        let class = class_of(command.get_name(), arg.get_id().as_str()).unwrap_or(Class::Secret);
        let is_switch = !arg.get_action().takes_values();
        if arg.get_id() == "seed" && given(matches, arg).is_empty() {
            flags.push(Said { flag: flag.clone(), value: Some(seed.to_string()), withheld: None });
        }
        for raw in given(matches, arg) {
            if is_switch {
                flags.push(Said { flag: flag.clone(), value: None, withheld: None });
                continue;
            }
            let text = raw.to_string_lossy();
            let shown = kept(class, &text, how, whole_commands);
            let whole = raw.to_str().is_some() && is_whole(class, &text, &shown);
            let next = secrets.len() as u32 + 1;
            let withheld = (!whole).then(|| *secrets.entry(raw).or_insert(next));
            let said = Said { flag: flag.clone(), value: Some(shown), withheld };
            if flag.is_some() { flags.push(said) } else { targets.push(said) }
        }
    }
    flags.extend(targets);
    flags
}

/// The words of what was said, as they are shown.
pub fn words(command: &str, said: &[Said]) -> Vec<String> {
    ["plimsoll", command].into_iter().map(str::to_owned).chain(said.iter().map(Said::word)).collect()
}

/// What this process was told to do.
#[derive(Debug, Default)]
pub struct Told {
    /// The name of the command.
    pub command: String,
    /// Its arguments.
    pub said: Vec<Said>,
    /// What must not stand in a message, and what may in its place; the longest first.
    hidden: Vec<(String, String)>,
}

static TOLD: OnceLock<Told> = OnceLock::new();

impl Told {
    /// Of a command line that was understood; `seed` is drawn where none was given.
    pub fn of(command: &Command, matches: &ArgMatches, seed: u64) -> Told {
        let said = said(command, matches, seed);
        Told { command: command.get_name().to_owned(), said, hidden: hidden(command, matches) }
    }

    /// With what the command line hides that led here.
    pub fn also_hiding(mut self, other: Told) -> Told {
        self.hidden.extend(other.hidden);
        self.hidden.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        self
    }

    /// A message without the secrets of this command line.
    pub fn hide(&self, message: &str) -> String {
        self.hidden.iter().fold(message.to_owned(), |text, (secret, shown)| text.replace(secret, shown))
    }

    /// Keeps it for [`told`]; only the first counts.
    pub fn remember(self) {
        // A second one has nothing to say: a process does one command.
        let _ = TOLD.set(self);
    }
}

/// Whether an argument is that of a flag.
pub fn is_flag(said: &Said, flag: &str) -> bool {
    said.flag.as_deref() == Some(flag)
}

/// What this process was told to do, for its record.
pub fn told() -> Option<&'static Told> {
    TOLD.get()
}

/// What of the values given must not stand in a message: each as a whole, and the parts that errors quote.
fn hidden(command: &Command, matches: &ArgMatches) -> Vec<(String, String)> {
    let mut hidden = Vec::new();
    for arg in command.get_arguments() {
        let class = class_of(command.get_name(), arg.get_id().as_str()).unwrap_or(Class::Secret);
        if matches!(class, Class::Plain | Class::Switch | Class::Place) {
            continue;
        }
        for raw in given(matches, arg) {
            let text = raw.to_string_lossy().into_owned();
            let shown = kept(class, &text, Redact::Secrets, false);
            if shown == text {
                continue;
            }
            match class {
                Class::Header => {
                    let value = text.split_once(':').map_or(text.as_str(), |(_, value)| value).trim();
                    hidden.push((value.to_owned(), REDACTED.to_owned()));
                }
                Class::Path => hidden.push((text.clone(), shown.clone())),
                Class::Body => {
                    let bare = text.strip_prefix('@').unwrap_or(&text);
                    hidden.push((bare.to_owned(), shown.trim_start_matches('@').to_owned()));
                }
                Class::Url => {
                    let secrets = text.split(['/', '?', '&', '=', '@', ':', '#', ';', ',']);
                    let secret = |part: &&str| part.len() > 3 && !shown.contains(*part);
                    hidden.extend(secrets.filter(secret).map(|part| (part.to_owned(), REDACTED.to_owned())));
                }
                _ => {}
            }
            hidden.push((text, shown));
        }
    }
    hidden.retain(|(text, _)| text.len() > 3);
    hidden.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
    hidden
}

/// A message without what must not stand in one, whoever wrote it.
pub fn without_secrets(message: &str) -> String {
    told().map_or_else(|| message.to_owned(), |told| told.hide(message))
}

#[cfg(test)]
mod tests;
