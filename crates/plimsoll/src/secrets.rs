//! What is kept out of run files and reports: secrets in the command line, and in the commands of builds.
//!
//! A command is text for a shell, so this can only know what a secret usually looks like: `NAME=value`, `--name value` and
//! `Name: value` where the name says so, and what stands before the `@` and after the `?` of a URL. Not here: secrets of
//! plans, which the model redacts.

use crate::target::shown;
use plimsoll_model::plan::{REDACTED, is_secret_header};

/// Names of secrets: one of these, or a longer name that has one as a part of its own (`DB_PASSWORD`, `--api-key`).
const PARTS: [&str; 16] = [
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pwd",
    "secret",
    "secrets",
    "token",
    "tokens",
    "apikey",
    "credential",
    "credentials",
    "auth",
    "authorization",
    "bearer",
    "cookie",
];
/// As ends of a name they say enough, too (`PGPASSWORD`, `authToken`).
const ENDS: [&str; 6] = ["password", "passwd", "secret", "token", "apikey", "credentials"];
/// What makes a `key` a secret one.
const KEYS: [&str; 6] = ["api", "access", "private", "secret", "signing", "encryption"];

/// Whether what bears this name is a secret.
fn is_secret_name(name: &str) -> bool {
    let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
    let parts: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    parts.iter().any(|part| PARTS.contains(part))
        || ENDS.iter().any(|end| name.ends_with(end))
        || parts.windows(2).any(|pair| pair[1] == "key" && KEYS.contains(&pair[0]))
        || is_secret_header(&name)
}

/// The words of a shell command as they stand there, quotes and all, with the white space before each.
fn words(command: &str) -> Vec<(String, String)> {
    let mut words = Vec::new();
    let (mut space, mut word) = (String::new(), String::new());
    let (mut quote, mut escaped) = (None, false);
    for c in command.chars() {
        if quote.is_none() && !escaped && c.is_whitespace() {
            if !word.is_empty() {
                words.push((std::mem::take(&mut space), std::mem::take(&mut word)));
            }
            space.push(c);
            continue;
        }
        quote = match quote {
            _ if escaped => quote,
            None if c == '\'' || c == '"' => Some(c),
            Some(open) if c == open => None,
            other => other,
        };
        escaped = !escaped && c == '\\' && quote != Some('\'');
        word.push(c);
    }
    if !word.is_empty() || !space.is_empty() {
        words.push((space, word));
    }
    words
}

/// A quoted word as (quote, what is inside, quote).
fn unquoted(word: &str) -> (&str, &str, &str) {
    let inside = |quote: char| word.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    match inside('\'').or_else(|| inside('"')) {
        Some(inside) => (&word[..1], inside, &word[..1]),
        None => ("", word, ""),
    }
}

/// A word of which only parts are quoted: each part by itself, inside of its quotes.
fn in_parts(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find(['\'', '"']) {
        let quote = &rest[at..=at];
        out.push_str(&rest[..at]);
        let Some(end) = rest[at + 1..].find(quote) else { break };
        out.push_str(&redacted_word(&rest[at..at + end + 2]));
        rest = &rest[at + end + 2..];
    }
    // What follows the last quote; of a quote that is not closed, all of it from there on, without the quote itself.
    match rest.find(['\'', '"']) {
        Some(at) => out + &rest[at..=at] + &redacted_command(&rest[at + 1..]),
        None => out + rest,
    }
}

/// One word that stands for itself.
fn redacted_word(word: &str) -> String {
    let (open, inside, close) = unquoted(word);
    let kept = match (inside.split_once('='), inside.split_once(':')) {
        (Some((name, _)), _) if is_secret_name(name) => format!("{name}={REDACTED}"),
        (_, Some((name, value))) if is_secret_name(name) && !value.starts_with("//") => format!("{name}: {REDACTED}"),
        _ if !open.is_empty() && inside.contains(char::is_whitespace) => redacted_command(inside),
        _ if open.is_empty() && inside.contains(['\'', '"']) => return in_parts(inside),
        (Some((name, value)), _) if value.contains("://") => format!("{name}={}", shown(value)),
        _ if inside.contains("://") => shown(inside),
        _ => inside.to_owned(),
    };
    format!("{open}{kept}{close}")
}

/// A shell command without what looks like a secret in it.
pub fn redacted_command(command: &str) -> String {
    let mut out = String::with_capacity(command.len());
    let mut secret_follows = false;
    for (space, word) in words(command) {
        out.push_str(&space);
        let flag = word.starts_with('-') && !word.contains('=');
        if secret_follows && !flag {
            // `Authorization: Bearer abc`: the scheme is none, but what follows it is.
            let scheme = ["bearer", "basic", "digest"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme));
            out.push_str(if scheme { &word } else { REDACTED });
            secret_follows = scheme;
            continue;
        }
        secret_follows = (flag || word.ends_with(':')) && is_secret_name(&word);
        out.push_str(&if secret_follows { word } else { redacted_word(&word) });
    }
    out
}

/// plimsoll's own command line without secrets: header values of secret headers, bodies, user info and query values, and
/// what the commands of builds hold.
pub fn redacted_arguments(arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    enum Next {
        Anything,
        Header,
        Body,
    }
    let header = |text: &str| match text.split_once(':') {
        Some((name, _)) if is_secret_header(name) => format!("{name}: {REDACTED}"),
        Some(_) => text.to_owned(),
        // Not a header: whatever it is, its writer may have meant a secret.
        None => REDACTED.to_owned(),
    };
    let body = |text: &str| {
        if text == "-" || text.starts_with('@') { text.to_owned() } else { format!("[{} bytes]", text.len()) }
    };
    let is_command = |text: &str| text.contains(char::is_whitespace);
    let mut next = Next::Anything;
    let mut out = Vec::new();
    for (number, argument) in arguments.into_iter().enumerate() {
        let attached = |names: [&str; 2]| {
            let long = argument.strip_prefix(names[1]).and_then(|rest| rest.strip_prefix('='));
            let short = argument.strip_prefix(names[0]).filter(|rest| !rest.is_empty() && !argument.starts_with("--"));
            long.map(|rest| (format!("{}=", names[1]), rest)).or(short.map(|rest| (names[0].to_owned(), rest)))
        };
        let kept = match next {
            // The program's path is of no use to anybody else.
            _ if number == 0 => "plimsoll".to_owned(),
            Next::Header => header(&argument),
            Next::Body => body(&argument),
            Next::Anything => match (attached(["-H", "--header"]), attached(["-b", "--body"])) {
                (Some((flag, value)), _) => format!("{flag}{}", header(value)),
                (_, Some((flag, value))) => format!("{flag}{}", body(value)),
                _ if argument.starts_with('-') => match argument.split_once('=') {
                    Some((flag, command)) if is_command(command) => format!("{flag}={}", redacted_command(command)),
                    _ => argument.clone(),
                },
                _ if is_command(&argument) => redacted_command(&argument),
                _ => shown(&argument),
            },
        };
        next = match (&next, argument.as_str()) {
            (Next::Anything, "-H" | "--header") => Next::Header,
            (Next::Anything, "-b" | "--body") => Next::Body,
            _ => Next::Anything,
        };
        out.push(kept);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_command_line_holds_no_secret() {
        for (line, expect) in [
            ("/usr/bin/plimsoll run http://h/", "plimsoll run http://h/"),
            ("p run http://u:s3cret@h/?k=s3cret", "plimsoll run http://h/?k=[redacted]"),
            ("p run -H Authorization:s3cret h", "plimsoll run -H Authorization: [redacted] h"),
            ("p run -HCookie:s3cret h", "plimsoll run -HCookie: [redacted] h"),
            ("p run --header=X-Api-Key:s3cret h", "plimsoll run --header=X-Api-Key: [redacted] h"),
            ("p run -H Accept:x -c 5 h", "plimsoll run -H Accept:x -c 5 h"),
            ("p run -b s3cret h", "plimsoll run -b [6 bytes] h"),
            ("p run --body=s3cret h", "plimsoll run --body=[6 bytes] h"),
            ("p run -b @file h", "plimsoll run -b @file h"),
            ("p run --fail-if p99>200ms h", "plimsoll run --fail-if p99>200ms h"),
        ] {
            let got = redacted_arguments(line.split(' ').map(str::to_owned)).join(" ");
            assert_eq!(got, expect, "{line}");
        }
        let builds = ["p", "prove", "--a", "TOKEN=s3cret ./a", "--b=./b --password s3cret", "http://h/"];
        let got = redacted_arguments(builds.map(str::to_owned)).join(" | ");
        assert_eq!(got, "plimsoll | prove | --a | TOKEN=[redacted] ./a | --b=./b --password [redacted] | http://h/");
    }

    #[test]
    fn commands_of_builds_hold_no_secret() {
        for (command, expect) in [
            ("./server --port 8080 --log debug", "./server --port 8080 --log debug"),
            ("PASSWORD=s3cret ./server", "PASSWORD=[redacted] ./server"),
            ("DB_PASSWORD='s3 cret' PGPASSWORD=s3cret x", "DB_PASSWORD=[redacted] PGPASSWORD=[redacted] x"),
            ("AWS_SECRET_ACCESS_KEY=s3cret  x", "AWS_SECRET_ACCESS_KEY=[redacted]  x"),
            ("./s --token s3cret --port 1", "./s --token [redacted] --port 1"),
            ("./s --token=s3cret --api-key \"s3cret\"", "./s --token=[redacted] --api-key [redacted]"),
            ("./s --authToken s3cret -v", "./s --authToken [redacted] -v"),
            ("curl -H 'Authorization: Bearer s3cret' h", "curl -H 'Authorization: [redacted]' h"),
            ("curl -H \"X-Api-Key: s3cret\"", "curl -H \"X-Api-Key: [redacted]\""),
            ("echo Authorization: Bearer s3cret ok", "echo Authorization: Bearer [redacted] ok"),
            ("sh -c 'exec ./s --token s3cret'", "sh -c 'exec ./s --token [redacted]'"),
            // What is quoted may be one value with spaces in it.
            ("env 'PASSWORD=s3 cret' x", "env 'PASSWORD=[redacted]' x"),
            ("./s --db postgres://u:s3cret@h/db?sslkey=s3cret", "./s --db postgres://h/db?sslkey=[redacted]"),
            ("DB=postgres://u:s3cret@h/db ./s", "DB=postgres://h/db ./s"),
            ("./s --author me --monkey x --key-file k", "./s --author me --monkey x --key-file k"),
            ("./s --token --port 1", "./s --token --port 1"),
            ("./s 'unclosed TOKEN=s3cret", "./s 'unclosed TOKEN=[redacted]"),
            (
                "(sh -c 'TOKEN=s3cret ./s'); x=\"a --token s3cret\"b",
                "(sh -c 'TOKEN=[redacted] x=\"a --token [redacted]\"b",
            ),
        ] {
            assert_eq!(redacted_command(command), expect, "{command}");
        }
    }

    /// Without anything that looks like a secret, a command stays as it is.
    #[test]
    fn other_commands_stay_as_they_are() {
        for command in ["", " ", "a  b\tc", "x 'a b' \"c d\" e\\ f", "cd dir && ./server -p 8080 > log 2>&1"] {
            assert_eq!(redacted_command(command), command);
        }
        // Whatever the quotes: it comes to an end, and nothing is lost.
        let mut rng = plimsoll_model::rng::Rng::new(7);
        for _ in 0..20_000 {
            let length = rng.below(12) as usize;
            let command: String =
                (0..length).map(|_| ['a', ' ', '\'', '"', '\\', ';', 'é'][rng.below(7) as usize]).collect();
            assert_eq!(redacted_command(&command), command);
        }
    }
}
