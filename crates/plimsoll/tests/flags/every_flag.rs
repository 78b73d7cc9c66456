//! Tests every flag of every command in every spelling. The flags come from clap's own list. The
//! record of a run must contain the flag's value but no secret, and must lead to the same
//! experiment. Error messages must not repeat a secret.

use super::*;
use crate::args::Cli;
use crate::commands::experiment::{self, ExperimentInput};
use crate::commands::traffic::LogReadingDisplay;
use crate::{parse_with_secrets, usage_error};
use clap::CommandFactory;
use plimsoll_model::completion::{RerunInputs, RerunUrl, missing_inputs, restore_experiment};
use plimsoll_model::failure::Failure;
use plimsoll_model::{BodySource, ExperimentSettings, TextKind};
use plimsoll_report::repeat_command;
use plimsoll_study::rerun::traffic_from_recorded_files;
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;

/// The commands that measure. Each measuring command records its specification.
const MEASURING_COMMANDS: [&str; 8] = ["run", "find", "explain", "overload", "sweep", "prove", "demo", "replay"];

/// Checks that every flag of every command has a class, which says how much of the flag's value
/// messages may show.
#[test]
fn every_flag_has_a_secrecy_class() {
    let mut cli = Cli::command();
    cli.build();
    let mut missing = Vec::new();
    for command in cli.get_subcommands().filter(|command| command.get_name() != "help") {
        for arg in command.get_arguments() {
            let class = argument_class(command.get_name(), arg);
            let takes = arg.get_action().takes_values();
            if class.is_none() || takes == (class == Some(ValueClass::Switch)) {
                missing.push(format!("{} {}: {class:?}", command.get_name(), arg.get_id()));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "name the value of these as one that value_name_class knows (what may be repeated?): {missing:#?}"
    );
}

/// Checks that `rerun` has a flag for every value that a record withholds, under the same name.
#[test]
fn redacted_inputs_can_be_supplied_again() {
    let cli = Cli::command();
    let rerun = cli.find_subcommand("rerun").expect("a command");
    for name in MEASURING_COMMANDS {
        let command = cli.find_subcommand(name).expect("a command");
        for arg in command.get_arguments() {
            let class = argument_class(name, arg);
            let asked = matches!(class, Some(ValueClass::Plain | ValueClass::Switch | ValueClass::OutputPath));
            let flag = arg.get_long().unwrap_or("url");
            // The request of a curl command line is recorded as URL, header fields and body. Logs
            // have one flag in `rerun`, whether they are replayed or sampled.
            let flag = if arg.get_id() == "logs" && arg.get_long().is_some() { "log" } else { flag };
            let known = flag == "curl" || rerun.get_arguments().any(|arg| arg.get_long() == Some(flag));
            assert!(asked || known, "rerun has no --{flag} to give again what {name} leaves out of its record");
        }
    }
}

/// A text like a real token, used in every place that may hold a secret.
const CANARY: &str = "Zq7xK2mW9vLp4TnR8sYd";

/// Returns flag values of this class; each value contains the secret.
fn values_with_secret(class: ValueClass) -> Vec<String> {
    let patterns: &[&str] = match class {
        ValueClass::Url => &[
            "http://u:C@127.0.0.1:1/",
            "http://C@127.0.0.1:1/",
            "http://u:x/C@127.0.0.1:1/",
            "http://127.0.0.1:1/C/x",
            "http://127.0.0.1:1/bot12:C/send",
            "http://127.0.0.1:1/?token=C",
            "http://127.0.0.1:1/?q=a,C",
            "http://127.0.0.1:1/?C",
            "http://127.0.0.1:1/?C=1&id=5",
            "http://127.0.0.1:1/#C",
            "http://127.0.0.1:1/,http://u:C@127.0.0.1:2/",
            "127.0.0.1:1/?k=C",
        ],
        ValueClass::Header => &["Authorization: Bearer C", "X-Any:C", "C", "C: x", "Cookie:a=C", "Authorization=C: x"],
        ValueClass::Body => &["C", "{\"k\":\"C\"}", "@/tmp/C/file"],
        ValueClass::Command => &["C", "./x C", "KEY=C ./x", "'C' x", "./x -pC", "sh -c 'exec ./x C'", "K='a C' ./x"],
        ValueClass::InputPath | ValueClass::OutputPath | ValueClass::ScriptPath => &["/tmp/C/x", "C"],
        ValueClass::ScriptArgument => &["C", "token=C", "--key=C"],
        ValueClass::Secret => &["C", "curl http://127.0.0.1:1/ -H 'X-Any: C' -u ann:C -d C -b sid=C"],
        ValueClass::Plain | ValueClass::Switch => &[],
    };
    patterns.iter().map(|pattern| pattern.replace('C', CANARY)).collect()
}

/// Writes a temporary file with this text.
fn write_temporary_file(name: &str, text: &str) -> PathBuf {
    let whose = format!("plimsoll-{}-{:?}-{name}", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(whose);
    std::fs::write(&path, text).expect("written");
    path
}

/// Writes a file with a request body.
fn body_file() -> PathBuf {
    write_temporary_file("body", "a body")
}

/// Writes a traffic file.
fn traffic_file() -> PathBuf {
    let base = "base = \"http://127.0.0.1:1\"\n";
    write_temporary_file(
        "mix.toml",
        &format!("{base}[[request]]\nget = \"/items?token=s3cret\"\n[[request]]\npost = \"/\"\n"),
    )
}

/// Writes a script.
fn script_file() -> PathBuf {
    write_temporary_file("script.lua", "wrk.path = '/'")
}

/// Writes a text log, a JSON log, and a log whose name is a secret.
fn log_files() -> [PathBuf; 3] {
    let line = |n: u32| {
        format!("127.0.0.{n} - - [22/Nov/2026:10:00:0{n} +0000] \"GET /items/{n} HTTP/1.1\" 200 5 \"-\" \"-\"\n")
    };
    let text: String = (1..7).map(line).collect();
    let json = |n: u32| format!("{{\"at\":\"2026-11-22T10:00:0{n}Z\",\"url\":\"/items/{n}\",\"verb\":\"GET\"}}\n");
    let json: String = (1..7).map(json).collect();
    [
        write_temporary_file("access.log", &text),
        write_temporary_file("access.json", &json),
        write_temporary_file(&format!("{CANARY}.log"), &text),
    ]
}

fn remove_files() {
    [body_file(), traffic_file(), script_file(), write_temporary_file(CANARY, "")]
        .iter()
        .chain(&log_files())
        .for_each(|file| std::fs::remove_file(file).expect("removed"));
}

/// Returns a valid value for a flag that differs from the flag's default.
fn non_default_value(command: &str, arg: &clap::Arg) -> String {
    let kind = arg.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
    let text = match (command, arg.get_id().as_str()) {
        (_, "soak") => "30m",
        (_, "fleet") => "ssh://load1,ann@load2:2222",
        (_, "watch") => "ssh://ann@server1:2222",
        (_, "on_loss") => "stop",
        (_, "max_skew") => "3s",
        (_, "agents") => "a1,a2",
        (_, "weights") => "2,1",
        (_, "wait") => "5s",
        ("agent" | "fleet", "allow") => "10.0.0.0/8:8080",
        ("agent", "join") => "nats://bus:4222",
        (_, "method") => "PUT",
        (_, "curl") => "curl http://127.0.0.1:1/items -H 'Accept: text/html' -m 3",
        (_, "headers") => "Accept: text/html",
        (_, "body") => return format!("@{}", body_file().display()),
        (_, "file") => return traffic_file().display().to_string(),
        (_, "lua") => return script_file().display().to_string(),
        (_, "logs") => return log_files()[0].display().to_string(),
        (_, "log_format") => "combined",
        (_, "field") => "time=.at,path=.url,method=.verb",
        (_, "session") => "client",
        (_, "only") => "^GET /items",
        (_, "skip") => "/items/3",
        (_, "speed" | "scale") => "2x",
        (_, "ok_status") => "200-299,404",
        (_, "source_ip") => "127.0.0.1-127.0.0.9",
        (_, "close") => "reset",
        (_, "redact") => "all",
        (_, "spin") => "off",
        // These commands use Poisson arrivals by default, so `constant` differs from their default.
        ("find" | "explain" | "overload", "arrivals") => "constant",
        (_, "arrivals") => "poisson",
        ("prove", "pprof") => "http://127.0.0.1:1/a,http://127.0.0.1:2/b",
        ("prove", "rate") => "2.5k",
        (_, "rate") => "0..5000@4s,5000@4s",
        (_, "concurrency") if command == "run" => "10@10s,100@1500ms",
        (_, "slo") => "success>=99.9%, p99<=50ms",
        ("find", "fail_if") => "line<5000",
        ("prove", "fail_if") => "worse",
        (_, "on_inconclusive") => "pass",
        (_, "stop_if" | "fail_if") => "p99>200ms, errors>5%",
        (_, "against") => "http://127.0.0.1:2/items?id=5",
        (_, "reference") => "http://127.0.0.1:1/ping?id=5",
        (_, "identities") => "Accept-Language: eo",
        (_, "headroom") => "30%",
        (_, "http") => "2",
        (_, "margin") => "1.5%",
        (_, "measure") => "p99",
        (_, "other_body") => "a longer one",
        (_, "vary") => "TOKEN=x ./set -p '{n}' --a=b",
        (_, "values") => "2,4.5,8",
        (_, "ok_grpc") => "OK,NOT_FOUND",
        (_, "output" | "dir" | "store") => "/run/a b/x.y",
        (_, "tags") => "release=1.4",
        (_, "listen") => "127.0.0.1:0",
        // The steps of an overload study take a while, so the budget must be long.
        ("overload", "budget") => "90s",
        (_, "load_time") => "300ms",
        _ => return sample_value_for_value_name(kind).to_owned(),
    };
    text.to_owned()
}

/// Returns a valid value for the value name of a flag (such as `TIME`).
fn sample_value_for_value_name(kind: &str) -> &'static str {
    match kind {
        "TIME" => "3s",
        "FILE" | "PATH" | "DIR" => "/run/a b/x=y.pem",
        "CMD" | "CMD|git:REV" => "TOKEN=x ./server -p '8080' --a=b",
        "NAME" => "api",
        "REGEX" => "[a-f]+",
        "URL" | "URL|auto" => "http://127.0.0.1:1/items?id=5",
        "HOST:PORT" => "127.0.0.1:8080",
        _ => "7",
    }
}

/// Returns spellings of a flag with its value: every spelling that clap accepts, and an
/// abbreviation that clap refuses.
fn flag_spellings(arg: &clap::Arg, value: &str, has_quiet: bool) -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let mut all = Vec::new();
    if arg.is_last_set() {
        return vec![words(&["--", value])];
    }
    if let Some(long) = arg.get_long() {
        all.push(words(&[&format!("--{long}={value}")]));
        all.push(words(&[&format!("--{long}"), value]));
        // Abbreviated flags are not accepted. The errors about abbreviated flags must not repeat
        // the value either.
        all.push(words(&[&format!("--{}={value}", &long[..long.len().min(2)])]));
        all.push(words(&[&format!("--{long}={value}"), &format!("--{long}={value}")]));
    }
    if let Some(short) = arg.get_short() {
        all.push(words(&[&format!("-{short}"), value]));
        all.push(words(&[&format!("-{short}{value}")]));
        all.push(words(&[&format!("-{short}={value}")]));
        if has_quiet {
            all.push(words(&[&format!("-q{short}{value}")]));
            all.push(words(&[&format!("-q{short}"), value]));
            all.push(words(&[&format!("-q{short}={value}")]));
        }
    }
    if all.is_empty() {
        all.push(words(&[value]));
    }
    all
}

/// Returns the further arguments that a command needs for the flag to make sense.
fn companion_arguments(command: &str, id: &str) -> Vec<String> {
    const URL: &str = "http://127.0.0.1:1/";
    const GRPC: &str = "grpc://target.test:1/pkg.Service/Method";
    const TLS: &str = "https://127.0.0.1:1/";
    if command == "replay" {
        let [text, json, _] = log_files();
        let target = match id {
            "insecure" | "cacert" | "cert" | "no_resumption" | "key" => TLS,
            _ => URL,
        };
        let log = if id == "field" { json } else { text };
        let more = match id {
            "key" => Some("--cert=/run/own.pem"),
            "streams" => Some("--http=2"),
            "pprof_seconds" => Some("--pprof=auto"),
            "watch_copy" => Some("--watch=ssh://server1"),
            _ => None,
        };
        let target = (id != "target").then(|| format!("--target={target}"));
        let log = (id != "logs").then(|| log.display().to_string());
        return more.map(str::to_owned).into_iter().chain(target).chain(log).collect();
    }
    if command == "find"
        && ["logs", "only", "skip", "allow_unsafe", "log_format", "field", "session", "fold", "strict"].contains(&id)
    {
        let [text, json, _] = log_files();
        let log = if id == "field" { json } else { text };
        let log = (id != "logs").then(|| format!("--replay={}", log.display()));
        return log.into_iter().chain([URL.to_owned()]).collect();
    }
    let words: &[&str] = match (command, id) {
        ("prove", "words") => {
            return [&[format!("--lua={}", script_file().display())][..], &companion_arguments("prove", "")].concat();
        }
        (_, "words") if MEASURING_COMMANDS.contains(&command) => {
            return vec![format!("--lua={}", script_file().display()), URL.to_owned()];
        }
        ("prove", "target") => {
            return [&["--a=./a".to_owned(), "--b=./b".to_owned()][..], &companion_arguments("run", id)].concat();
        }
        (_, "target") if MEASURING_COMMANDS.contains(&command) => {
            return vec![format!("--file={}", traffic_file().display())];
        }
        ("explain", "other_body") => &["--body=four", URL],
        ("fleet", "fleet_copy") => &["status", "ssh://load1"],
        ("fleet", "agents" | "wait") => &["status", "nats://bus"],
        ("fleet", "word") => &["fetch", "nats://bus"],
        ("fleet", "local" | "bus" | "allow") => &["up"],
        ("prove", "agents" | "wait") => &["--fleet=nats://bus", URL, URL],
        (_, "agents" | "wait") => &["--fleet=nats://bus", URL],
        ("prove", "weights") => &["--fleet=ssh://load1,load2", URL, URL],
        (_, "weights") => &["--fleet=ssh://load1,load2", URL],
        ("prove", "fleet_copy" | "on_loss" | "max_skew") => &["--fleet=ssh://load1", URL, URL],
        (_, "fleet_copy" | "on_loss" | "max_skew") => &["--fleet=ssh://load1", URL],
        ("prove", "watch_copy") => &["--watch=ssh://server1", URL, URL],
        (_, "watch_copy") => &["--watch=ssh://server1", URL],
        ("agent", "stdio" | "join") => &[],
        ("agent", "allow" | "watch_only") => &["--stdio"],
        ("agent", _) => &["--join=nats://bus"],
        ("prove", "build") => &["--start=./s", "--a=git:main", "--b=git:HEAD", URL],
        ("prove", "start") => &["--a=git:main", "--b=git:HEAD", URL],
        ("prove", "a") => &["--b=./b", URL],
        ("prove", "b") => &["--a=./a", URL],
        ("prove", "url" | "more") => &[URL],
        ("prove", "curl") => &["--a=./a", "--b=./b"],
        ("prove", "insecure" | "cacert" | "cert" | "no_resumption") => &[TLS, TLS],
        ("grpc", "url") => &[],
        ("grpc", "key") => &["list", "--cert=/run/own.pem", GRPC],
        ("grpc", "proto_path") => &["list", "--proto=/run/a.proto", GRPC],
        ("grpc", _) => &["list", GRPC],
        ("check", "proto_path") => &["--proto=/run/a.proto", "--file=mix.toml"],
        ("check", "proto" | "descriptor_set") => &["--file=mix.toml"],
        ("prove", "ok_grpc" | "in_turn" | "proto" | "descriptor_set") => &[GRPC, GRPC],
        ("prove", "proto_path") => &["--proto=/run/a.proto", GRPC, GRPC],
        (_, "ok_grpc" | "in_turn" | "proto" | "descriptor_set") => &[GRPC],
        (_, "proto_path") => &["--proto=/run/a.proto", GRPC],
        ("prove", "key") => &["--cert=/run/own.pem", TLS, TLS],
        ("prove", "streams") => &["--http=2", URL, URL],
        (_, "streams") => &["--http=2", URL],
        ("explain", "vary") => &["--values=2,4", URL],
        ("explain", "values") => &["--vary=./set {n}", URL],
        ("prove", "rate" | "arrivals" | "max_connections") => &["--measure=p50", URL, URL],
        ("prove", "pprof_seconds") => &["--pprof", URL, URL],
        ("prove", _) => &[URL, URL],
        ("baseline", "behind") => &["--pool=4"],
        ("baseline", "pool") => &["--behind=http://127.0.0.1:1/"],
        ("baseline", "key") => &["--cert=/run/own.pem"],
        ("serve", "tls_cert") => &["--tls-key=/run/own.key"],
        ("serve", "tls_key") => &["--tls-cert=/run/own.pem"],
        ("demo" | "doctor" | "baseline" | "clean" | "man" | "completions", _)
        | (_, "url" | "files" | "file" | "curl") => &[],
        ("show" | "report" | "rerun", _) => &["run.plimsoll"],
        ("check", _) => &["--file=mix.toml"],
        ("import", "source") => &[],
        ("model", "logs") => &["-oa.toml"],
        ("model", "output") => &["a.log"],
        ("model", _) => &["-oa.toml", "a.log"],
        ("import", _) => &["a.har"],
        ("diff", "a" | "b") => &["b.dat"],
        ("gate", "against") | ("history" | "serve", _) => &[],
        ("gate", _) => &["--against=main"],
        ("diff", _) => &["a.dat", "b.dat"],
        ("profile", "diff") => &["b.pb.gz"],
        ("profile", _) => &[],
        (_, "insecure" | "cacert" | "cert" | "no_resumption") => &[TLS],
        (_, "key") => &["--cert=/run/own.pem", TLS],
        ("run", "arrivals" | "max_connections") => &["--rate=5", URL],
        (_, "pprof_seconds") => &["--pprof=auto", URL],
        ("sweep", "budget") => &["-c1,2", URL],
        _ => &[URL],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Returns the arguments that come before the flag.
fn arguments_before_flag(command: &str, id: &str) -> Vec<String> {
    if (command, id) == ("grpc", "url") { vec!["list".into()] } else { vec![] }
}

/// Whether a command has this flag but always refuses it.
fn is_refused(command: &str, id: &str) -> bool {
    (command == "sweep" && ["arrivals", "max_connections"].contains(&id)) || (command == "replay" && id == "arrivals")
}

fn parse_command_line(
    command: &str,
    words: &[String],
    besides: &[String],
) -> Result<(Cli, SecretReplacements), String> {
    // If the words begin with `--`, they come last; without `--`, the further arguments come last.
    let (first, then) =
        if words.first().is_some_and(|word| word == "--") { (besides, words) } else { (words, besides) };
    let kind = (command == "import").then(|| "har".to_owned());
    let line = ["plimsoll", command].map(str::to_owned).into_iter().chain(kind).chain(first.iter().cloned());
    let line = line.chain(then.iter().cloned()).map(OsString::from);
    parse_with_secrets(line).map_err(|error| usage_error::error_sentence(&Cli::command(), &error))
}

fn parse_command(command: &str, words: &[String], extra_words: &[String]) -> Option<Result<ExperimentInput, Failure>> {
    let (cli, _) = parse_command_line(command, words, extra_words).ok()?;
    experiment::spec_from_command(&cli.command).transpose()
}

/// Returns everything that a run file records of an experiment, and the command line shown for it.
fn experiment_record_text((asked, settings): &ExperimentInput) -> String {
    let (asked, settings) = (asked.record(), settings.record());
    let json = |value: serde_json::Result<String>| value.expect("serialises");
    let words = repeat_command::repeat_command_words(&asked, &settings).join(" ");
    format!("{}{}{words}", json(serde_json::to_string(&asked)), json(serde_json::to_string(&settings)))
}

fn commands_except_help() -> Vec<Command> {
    let mut cli = Cli::command();
    cli.build();
    cli.get_subcommands().filter(|command| command.get_name() != "help").cloned().collect()
}

#[test]
fn no_spelling_of_a_secret_is_recorded() {
    let mut tried = 0;
    for command in commands_except_help() {
        let name = command.get_name();
        let has_quiet = command.get_arguments().any(|arg| arg.get_short() == Some('q'));
        for arg in command.get_arguments() {
            let id = arg.get_id().as_str();
            let class = argument_class(name, arg).unwrap_or(ValueClass::Secret);
            let mut understood = class == ValueClass::Switch || class == ValueClass::Plain;
            let mut values = values_with_secret(class);
            // The file `present` exists, and its name contains the secret.
            let present = write_temporary_file(CANARY, "base = \"http://127.0.0.1:1\"\n[[request]]\nget = \"/\"\n")
                .display()
                .to_string();
            match id {
                "file" | "lua" => values.push(present),
                "logs" => values.push(log_files()[2].display().to_string()),
                "body" => values.push(format!("@{present}")),
                "vary" => values.iter_mut().for_each(|value| value.push_str(" {n}")),
                _ => {}
            }
            for value in values {
                for words in flag_spellings(arg, &value, has_quiet) {
                    let words = [arguments_before_flag(name, id), words].concat();
                    tried += 1;
                    match parse_command_line(name, &words, &companion_arguments(name, id)) {
                        Ok((cli, hidden)) => {
                            let may = matches!(class, ValueClass::OutputPath | ValueClass::ScriptPath);
                            let silent = |message: &str| {
                                let message = hidden.replace_secrets(message);
                                assert!(may || !message.contains(CANARY), "{name} {words:?}: {message}");
                            };
                            silent(&format!("'{value}' is no good: {value}"));
                            match experiment::spec_from_command(&cli.command) {
                                Err(failure) => silent(&failure.to_string()),
                                Ok(None) => understood = true,
                                Ok(Some(question)) => {
                                    understood = true;
                                    let recorded = experiment_record_text(&question);
                                    assert!(!recorded.contains(CANARY), "{name} {words:?}: {recorded}");
                                }
                            }
                        }
                        Err(sentence) => assert!(!sentence.contains(CANARY), "{name} {words:?}: {sentence}"),
                    }
                }
            }
            assert!(understood, "{name} {id} is understood in no way of writing: mend `besides` or `values`");
        }
    }
    assert!(tried > 500, "{tried}");
    remove_files();
}

/// Checks that errors repeat no secret that a user typed in a wrong place. For example, the value
/// of an unquoted header field becomes a target.
#[test]
fn error_sentences_repeat_no_secret() {
    for line in [
        "run -H Authorization: C http://h/",
        "run http://h/ C",
        "run --tokn=C http://h/",
        "run --tokn C http://h/",
        "run --C http://h/",
        "run -C http://h/",
        "run --heade=Authorization:C http://h/",
        "run --pid http://u:C@h/ ",
        "C",
        "C http://h/",
        "show --csv=C x",
        "run --quiet=C http://h/",
        "prove --a C http://h/",
        "report --format http://h/?C x",
    ] {
        let words: Vec<String> = line.replace('C', CANARY).split_whitespace().map(str::to_owned).collect();
        let line = std::iter::once("plimsoll".to_owned()).chain(words.clone()).map(OsString::from);
        match parse_with_secrets(line) {
            Ok((cli, hidden)) => match experiment::spec_from_command(&cli.command) {
                Ok(Some(question)) => assert!(!experiment_record_text(&question).contains(CANARY), "{words:?}"),
                Ok(None) => {}
                Err(failure) => {
                    assert!(!hidden.replace_secrets(&failure.to_string()).contains(CANARY), "{words:?}: {failure}")
                }
            },
            Err(error) => {
                let sentence = usage_error::error_sentence(&Cli::command(), &error);
                assert!(
                    !sentence.contains(CANARY) && !sentence.contains('\n') && sentence.len() < 300,
                    "{words:?}: {sentence}"
                );
            }
        }
    }
}

/// Returns the withheld values of a record, as a user would give them again.
fn withheld_values((asked, settings): &ExperimentInput) -> RerunInputs {
    let missing = missing_inputs(&asked.record(), &settings.record());
    let is_missing = |kind| missing.iter().any(|it| it.kind == kind);
    let mut given = RerunInputs::default();
    for plan in asked.plans() {
        let request = &plan.traffic.routes[0].request;
        if is_missing(TextKind::Url) {
            let (origin, target) = (plan.traffic.origin.clone(), request.target.clone());
            let text = format!("{origin}{target}");
            given.urls.push_back(RerunUrl { text, origin, target, authorization: None });
        }
        let names = missing.iter().filter(|it| it.kind == TextKind::Header).map(|it| it.record_text.as_str());
        let names: Vec<&str> = names.collect();
        given.headers = request.headers.iter().filter(|(name, _)| names.contains(&name.as_str())).cloned().collect();
        given.body = settings.body.clone().map(|from| (from, request.body.clone()));
    }
    let listed = settings.map_texts(|kind, text: &String| {
        if is_missing(kind) && kind != TextKind::Body {
            given.texts.entry(kind).or_default().push_back(text.clone());
        }
        Ok::<_, Infallible>(())
    });
    let Ok(_) = listed;
    if is_missing(TextKind::Unix) {
        let path = asked.plans()[0].connection_plan.unix.clone().expect("a path");
        given.texts.entry(TextKind::Unix).or_default().push_back(path);
    }
    given
}

/// Checks that the record contains every flag of a measuring command and leads to the same
/// experiment. The test first supplies the values that the record withholds. If no value is
/// withheld, the test also parses the recorded command line.
#[test]
fn a_recorded_command_parses_to_the_same_plan() {
    let mut whole = 0;
    for command in commands_except_help().iter().filter(|command| MEASURING_COMMANDS.contains(&command.get_name())) {
        let name = command.get_name();
        for arg in command.get_arguments().filter(|arg| !["help", "version"].contains(&arg.get_id().as_str())) {
            let id = arg.get_id().as_str();
            let value = non_default_value(name, arg);
            let spelled = match (arg.get_action().takes_values(), arg.get_long()) {
                (false, Some(long)) => vec![vec![format!("--{long}")]],
                _ => flag_spellings(arg, &value, false),
            };
            let without = parse_command(name, &[], &companion_arguments(name, id))
                .map(|without| without.map(|it| experiment_record_text(&it)));
            let mut understood_any = false;
            for words in spelled {
                let question = match parse_command(name, &words, &companion_arguments(name, id)) {
                    Some(Ok(question)) => question,
                    // If the flag requires `=`, a value in a separate word would be taken as the
                    // target.
                    Some(Err(_)) if arg.is_require_equals_set() && words.len() > 1 => continue,
                    Some(Err(failure)) if !is_refused(name, id) => panic!("{name} {words:?}: {failure}"),
                    _ => continue,
                };
                understood_any = true;
                let record = experiment_record_text(&question);
                let lost = matches!(&without, Some(Ok(without)) if *without == record);
                assert!(
                    !lost,
                    "{name} {words:?}: this flag is not in the record: add it to the plan or to ExperimentSettings"
                );
                let (asked_record, settings_record) = (question.0.record(), question.1.record());
                let again =
                    restore_experiment(&asked_record, &settings_record, withheld_values(&question), &mut |complete| {
                        let seed = asked_record.plans()[0].load.seed;
                        Some(
                            traffic_from_recorded_files(complete, seed, &mut LogReadingDisplay::new())
                                .expect("a file of traffic, or a log"),
                        )
                    });
                let again = again.unwrap_or_else(|why| panic!("{name} {words:?}: {why:?}"));
                assert_eq!(again, question, "{name} {words:?}");
                if missing_inputs(&asked_record, &settings_record).is_empty() {
                    whole += 1;
                    let shown = repeat_command::repeat_command_words(&asked_record, &settings_record);
                    let again = parse_command(name, &shown[2..], &[]);
                    let again = again.unwrap_or_else(|| panic!("{shown:?} is not understood"));
                    let again = again.unwrap_or_else(|failure| panic!("{shown:?}: {failure}"));
                    assert_eq!(again, question, "{name} {words:?}: {shown:?}");
                }
            }
            assert!(
                understood_any || is_refused(name, id),
                "{name} {id}: no sample value is understood: mend `sample`"
            );
        }
    }
    assert!(whole > 200, "{whole}");
    remove_files();
}

/// Checks that a rerun asks for a body that came from standard input.
#[test]
fn a_missing_body_is_requested() {
    let words = ["-b".to_owned(), "one".to_owned()];
    let (asked, settings) =
        parse_command("run", &words, &companion_arguments("run", "body")).expect("understood").expect("a question");
    let settings = ExperimentSettings { body: Some(BodySource::Stdin), ..settings };
    let missing = missing_inputs(&asked.record(), &settings.record());
    assert_eq!(missing.iter().map(|it| it.kind).collect::<Vec<_>>(), [TextKind::Body]);
}
