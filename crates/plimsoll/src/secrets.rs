//! What of a command line must not stand in a message: every flag of every command has a class
//! here, and the class says what of its value may be repeated. A flag that nobody classified is not
//! repeated at all.
//!
//! Not here: what of a URL, header or path is harmless (`plimsoll_model::redact`), and what is
//! recorded: that is made of what was understood, never of its text (`plimsoll_model::terms`).

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use plimsoll_model::redact::{self, REDACTED, Redact};
use plimsoll_model::terms;
use plimsoll_study::message::SecretReplacements;
use std::ffi::OsStr;

/// What the value of a flag is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A number, a time, a word that plimsoll knows, a condition, the name of a process: repeated.
    Plain,
    /// There is none.
    Switch,
    /// A URL; several with commas between them.
    Url,
    /// A header: its name is repeated.
    Header,
    /// A body: its size, or the file it is in.
    Body,
    /// A command for the shell: the program's name, and a digest.
    Command,
    /// A file or socket that is read.
    Path,
    /// A script: its own messages name it, with the line.
    Program,
    /// A word for a script: what is plain of it.
    Argument,
    /// Where results go: a path.
    Place,
    /// Anything: nothing is repeated.
    Secret,
}

/// The class of an argument, by its command and clap's name for it.
pub fn class_of(command: &str, id: &str) -> Option<Class> {
    Some(match (command, id) {
        ("diff", "a" | "b") | ("gate", "run") | (_, "logs") => Class::Path,
        ("gate", "against") => Class::Plain,
        ("clean", "keep") | ("grpc", "shown") => Class::Plain,
        ("clean", "dry_run") => Class::Switch,
        (_, "fleet" | "on_loss" | "max_skew" | "agents" | "wait" | "weights" | "watch") => Class::Plain,
        ("agent", "allow" | "join" | "name" | "trust") => Class::Plain,
        ("fleet", "what" | "place" | "word" | "local" | "bus" | "allow") => Class::Plain,
        ("agent", "creds" | "bus_ca") => Class::Path,
        ("agent", "spool") => Class::Place,
        (_, "fleet_copy" | "watch_copy" | "watch_only" | "stdio") => Class::Switch,
        ("profile", "source" | "diff") | ("import", "source") => Class::Url,
        ("import", "kind" | "host") => Class::Plain,
        ("model", "verify" | "keep_keys") => Class::Switch,
        (_, "lua") => Class::Program,
        ("rerun", "file") | ("show" | "report", "files") => Class::Path,
        (_, "url" | "urls" | "more" | "target" | "pprof" | "metrics" | "reference" | "behind" | "against") => {
            Class::Url
        }
        (_, "curl") => Class::Secret,
        (_, "headers" | "identities") => Class::Header,
        (_, "body" | "other_body") => Class::Body,
        (_, "a" | "b" | "build" | "start" | "before_block" | "vary") => Class::Command,
        (_, "words") => Class::Argument,
        (
            _,
            "file" | "traffic" | "unix" | "cacert" | "cert" | "key" | "tls_cert" | "tls_key" | "cgroup" | "proto"
            | "proto_path" | "descriptor_set",
        ) => Class::Path,
        (_, "output" | "dir" | "name" | "store") => Class::Place,
        (
            _,
            "no_keepalive"
            | "in_turn"
            | "insecure"
            | "no_resumption"
            | "no_preflight"
            | "allow_public"
            | "allow_commands"
            | "no_probes"
            | "json"
            | "json_lines"
            | "verbose"
            | "quiet"
            | "quick"
            | "ladder"
            | "record_commands"
            | "allow_different_answers"
            | "dry_run"
            | "csv"
            | "probes"
            | "full"
            | "dark"
            | "no_intervene"
            | "print"
            | "keep_failed_bodies"
            | "yes"
            | "strict"
            | "allow_unsafe"
            | "help"
            | "version",
        ) => Class::Switch,
        (
            _,
            "method" | "follow" | "timeout" | "ok_status" | "ok_grpc" | "max_connections" | "connect_to" | "source_ip"
            | "resolve_every" | "close" | "http" | "streams" | "redact" | "threads" | "spin" | "seed" | "arrivals"
            | "pprof_seconds" | "pid" | "process" | "concurrency" | "rate" | "requests" | "duration" | "warmup"
            | "stop_if" | "fail_if" | "on_inconclusive" | "slo" | "line" | "retries" | "budget" | "headroom" | "need"
            | "soak" | "max_rate" | "level_time" | "listen" | "connections" | "start_timeout" | "measure" | "margin"
            | "blocks" | "load_time" | "seconds" | "requests_a" | "requests_b" | "sample_index" | "focus" | "ignore"
            | "by" | "top" | "sort" | "keep" | "format" | "chart" | "log_format" | "field" | "session" | "fold"
            | "pool" | "values" | "speed" | "scale" | "only" | "skip" | "may_signal" | "shell" | "tags" | "branch"
            | "last",
        ) => Class::Plain,
        _ => return None,
    })
}

/// What may be repeated of a value.
fn redact_value(class: Class, value: &str) -> String {
    match class {
        Class::Plain | Class::Switch => value.to_owned(),
        Class::Secret => REDACTED.to_owned(),
        // Two are written with a comma between them; other commas are part of one.
        Class::Url => {
            value.split(",http").map(|url| redact::url(url, Redact::Secrets)).collect::<Vec<_>>().join(",http")
        }
        Class::Path | Class::Place | Class::Program => redact::path(value),
        Class::Command if terms::revision(value).is_some() => value.to_owned(),
        Class::Command => redact::command(value),
        Class::Argument => redact::argument(value, Redact::Secrets),
        Class::Body if value == "-" => value.to_owned(),
        Class::Body => match value.strip_prefix('@') {
            Some(path) => format!("@{}", redact::path(path)),
            None => format!("[{} bytes]", value.len()),
        },
        Class::Header => match value.split_once(':').filter(|(name, _)| is_field_name(name)) {
            Some((name, value)) => {
                let name = redact::word(name.trim());
                format!("{name}: {}", redact::header_value(&name, value.trim(), Redact::Secrets))
            }
            // Not a header: whatever it is, its writer may have meant a secret.
            None => REDACTED.to_owned(),
        },
    }
}

/// Whether something can be the name of a field: one word. What is none may be a value whose colon
/// stands elsewhere.
fn is_field_name(name: &str) -> bool {
    let name = name.trim();
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// What was given for one argument, in order; nothing for what stands there by default.
fn argument_values<'a>(matches: &'a ArgMatches, arg: &clap::Arg) -> Vec<&'a OsStr> {
    let id = arg.get_id().as_str();
    match matches.value_source(id) {
        Some(ValueSource::CommandLine | ValueSource::EnvVariable) => {
            matches.get_raw(id).map(Iterator::collect).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// What of a command line that was understood must not stand in a message.
pub fn hidden_of(command: &Command, matches: &ArgMatches) -> SecretReplacements {
    SecretReplacements::new(hidden(command, matches))
}

/// What of the values given must not stand in a message: each as a whole, and the parts that errors
/// quote.
fn hidden(command: &Command, matches: &ArgMatches) -> Vec<(String, String)> {
    let mut hidden = Vec::new();
    for arg in command.get_arguments() {
        let class = class_of(command.get_name(), arg.get_id().as_str()).unwrap_or(Class::Secret);
        if matches!(class, Class::Plain | Class::Switch | Class::Program | Class::Place) {
            continue;
        }
        for raw in argument_values(matches, arg) {
            let text = raw.to_string_lossy().into_owned();
            // The name of a file that is there and only read is shown as its user has typed it.
            let is_read = (command.get_name(), arg.get_id().as_str()) == ("import", "source");
            if is_read && std::path::Path::new(raw).exists() {
                continue;
            }
            let shown = redact_value(class, &text);
            if shown == text {
                continue;
            }
            match class {
                Class::Header => {
                    let (name, value) = text.split_once(':').unwrap_or(("", &text));
                    hidden.push((value.trim().to_owned(), REDACTED.to_owned()));
                    if !is_field_name(name) {
                        hidden.push((name.trim().to_owned(), redact::excerpt(name.trim())));
                        let odd = name.split_whitespace().filter(|word| redact::word(word) != *word);
                        hidden.extend(odd.map(|word| (word.to_owned(), REDACTED.to_owned())));
                    }
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

#[cfg(test)]
mod tests;
