//! Every flag of every command, by clap's own list, in every way of writing it: what is recorded holds no secret, says the
//! same again, and a sentence about a mistake repeats none.

use super::*;
use crate::args::Cli;
use crate::{refused, understood};
use clap::CommandFactory;
use std::ffi::OsString;

/// Every flag of every command, by clap's own list.
#[test]
fn every_flag_has_a_class() {
    let mut cli = Cli::command();
    cli.build();
    let mut missing = Vec::new();
    for command in cli.get_subcommands().filter(|command| command.get_name() != "help") {
        for arg in command.get_arguments() {
            let class = class_of(command.get_name(), arg.get_id().as_str());
            let takes = arg.get_action().takes_values();
            if class.is_none() || takes == (class == Some(Class::Switch)) {
                missing.push(format!("{} {}: {class:?}", command.get_name(), arg.get_id()));
            }
        }
    }
    assert!(missing.is_empty(), "give these a class in class_of (what may be recorded of them?): {missing:#?}");
}

/// What is left out of a record can be given again to `rerun` under the same name.
#[test]
fn what_is_left_out_can_be_given_again() {
    let cli = Cli::command();
    let rerun = cli.find_subcommand("rerun").expect("a command");
    for name in ["run", "find", "sweep", "prove", "demo"] {
        let command = cli.find_subcommand(name).expect("a command");
        for arg in command.get_arguments() {
            let class = class_of(name, arg.get_id().as_str());
            let asked = matches!(class, Some(Class::Plain | Class::Switch | Class::Place));
            let flag = arg.get_long().unwrap_or("url");
            let known = rerun.get_arguments().any(|arg| arg.get_long() == Some(flag));
            assert!(asked || known, "rerun has no --{flag} to give again what {name} leaves out of its record");
        }
    }
}

#[test]
fn commands_are_told_by_their_program() {
    for (command, expect) in [
        ("./server --port 8080", "server (sha256 "),
        ("PASSWORD=s3cret /opt/new/api -v", "api (sha256 "),
        ("Zq7xK2mW9vLp4TnR8sYd", "command (sha256 "),
        ("mysql -ps3cret", "mysql (sha256 "),
        ("OPENAI_KEY='s3 cret x' ./server", "command (sha256 "),
        ("OPENAI_KEY=s3\\ cret ./server", "command (sha256 "),
        ("'my secret'", "command (sha256 "),
        ("./x:s3cret", "command (sha256 "),
        ("s3cret", "command (sha256 "),
        ("", "command (sha256 "),
    ] {
        let shown = command_shown(command);
        assert!(shown.starts_with(expect) && !shown.contains("s3cret"), "{command}: {shown}");
    }
    assert_ne!(command_shown("./a 1"), command_shown("./a 2"));
}

/// As tokens are; it stands in every place where a secret could.
const CANARY: &str = "Zq7xK2mW9vLp4TnR8sYd";

/// Values of a class with the canary in them.
fn values(class: Class) -> Vec<String> {
    let patterns: &[&str] = match class {
        Class::Url => &[
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
        Class::Header => &["Authorization: Bearer C", "X-Any:C", "C", "C: x", "Cookie:a=C", "Authorization=C: x"],
        Class::Body => &["C", "{\"k\":\"C\"}", "@/tmp/C/file"],
        Class::Command => &["C", "./x C", "KEY=C ./x", "'C' x", "./x -pC", "sh -c 'exec ./x C'", "K='a C' ./x"],
        Class::Path | Class::Place => &["/tmp/C/x", "C"],
        Class::Secret => &["C"],
        Class::Plain | Class::Switch => &[],
    };
    patterns.iter().map(|pattern| pattern.replace('C', CANARY)).collect()
}

/// A value that each flag takes.
fn sample(command: &str, id: &str) -> &'static str {
    match (command, id) {
        (_, "method") => "PUT",
        (_, "headers") => "Accept: text/html",
        (_, "body") => "@/tmp/body",
        (_, "ok_status") => "200-299,404",
        (_, "connect_to") => "127.0.0.1:8080",
        (_, "source_ip") => "127.0.0.1-127.0.0.9",
        (_, "close") => "reset",
        (_, "redact") => "all",
        (_, "spin") => "off",
        (_, "arrivals") => "poisson",
        (_, "url" | "more" | "target" | "metrics") | ("run" | "find", "pprof") => "http://127.0.0.1:1/items?id=5",
        ("prove", "pprof") => "http://127.0.0.1:1/a,http://127.0.0.1:2/b",
        (_, "rate") => "0..5000@4s,5000@4s",
        (_, "concurrency") if command == "run" => "10@10s,100@30s",
        (_, "slo") => "success>=99.9%, p99<=50ms",
        (_, "stop_if" | "fail_if") => "p99>200ms, errors>5%",
        (_, "margin") => "1.5%",
        (_, "measure") => "p99",
        (_, "a" | "b" | "before_block") => "TOKEN=x ./server -p '8080' --a=b",
        (_, "process" | "name") => "api",
        (_, "file" | "unix" | "cacert" | "cert" | "key" | "cgroup" | "output" | "dir") => "/run/a b/x=y.pem",
        (_, "listen") => "127.0.0.1:0",
        (_, "timeout" | "resolve_every" | "duration" | "warmup" | "budget" | "level_time" | "start_timeout") => "3s",
        (_, "load_time") => "300ms",
        _ => "5",
    }
}

/// A command line with one flag, in each way that clap takes.
fn spellings(arg: &clap::Arg, value: &str, has_quiet: bool) -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let mut all = Vec::new();
    if let Some(long) = arg.get_long() {
        all.push(words(&[&format!("--{long}={value}")]));
        all.push(words(&[&format!("--{long}"), value]));
        // Abbreviated: not taken today, and then not repeated either.
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

/// What a command needs besides.
fn besides(command: &str, id: &str) -> &'static [&'static str] {
    match (command, id) {
        ("prove", "a") => &["--b=./b", "http://127.0.0.1:1/"],
        ("prove", "b") => &["--a=./a", "http://127.0.0.1:1/"],
        ("demo" | "baseline" | "clean", _) | (_, "url" | "files" | "file") => &[],
        ("show" | "report" | "rerun", _) => &["run.plimsoll"],
        ("check", _) | (_, "target") => &["--file=mix.toml"],
        ("diff", "a" | "b") => &["b.dat"],
        ("diff", _) => &["a.dat", "b.dat"],
        ("profile", "diff") => &["b.pb.gz"],
        ("profile", _) => &[],
        _ => &["http://127.0.0.1:1/"],
    }
}

fn told(command: &str, words: &[String], besides: &[&str]) -> Result<(Cli, Told), String> {
    let line = ["plimsoll", command].map(str::to_owned).into_iter().chain(words.iter().cloned());
    let line = line.chain(besides.iter().map(|word| (*word).to_owned())).map(OsString::from);
    understood(line).map_err(|error| refused::sentence(&Cli::command(), &error))
}

fn commands() -> Vec<Command> {
    let mut cli = Cli::command();
    cli.build();
    cli.get_subcommands().filter(|command| command.get_name() != "help").cloned().collect()
}

#[test]
fn no_way_of_writing_a_secret_is_recorded() {
    let mut tried = 0;
    for command in commands() {
        let name = command.get_name();
        let has_quiet = command.get_arguments().any(|arg| arg.get_short() == Some('q'));
        for arg in command.get_arguments() {
            let id = arg.get_id().as_str();
            let class = class_of(name, id).unwrap_or(Class::Secret);
            let mut understood = class == Class::Switch || class == Class::Plain;
            for value in values(class) {
                for words in spellings(arg, &value, has_quiet) {
                    tried += 1;
                    match told(name, &words, besides(name, id)) {
                        Ok((_, told)) => {
                            understood = true;
                            let recorded = super::words(name, &told.said).join(" ");
                            assert!(!recorded.contains(CANARY), "{name} {words:?}: {recorded}");
                            let message = told.hide(&format!("'{value}' is no good: {value}"));
                            let may = class == Class::Place;
                            assert!(may || !message.contains(CANARY), "{name} {words:?}: {message}");
                        }
                        Err(sentence) => assert!(!sentence.contains(CANARY), "{name} {words:?}: {sentence}"),
                    }
                }
            }
            assert!(understood, "{name} {id} is understood in no way of writing: mend `besides` or `values`");
        }
    }
    assert!(tried > 500, "{tried}");
}

/// In the wrong place, too: an unquoted header leaves its value behind as a target.
#[test]
fn sentences_about_mistakes_repeat_no_secret() {
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
        match understood(line) {
            Ok((_, told)) => assert!(!super::words("", &told.said).join(" ").contains(CANARY), "{words:?}"),
            Err(error) => {
                let sentence = refused::sentence(&Cli::command(), &error);
                assert!(
                    !sentence.contains(CANARY) && !sentence.contains('\n') && sentence.len() < 300,
                    "{words:?}: {sentence}"
                );
            }
        }
    }
}

/// What is recorded says the same again: the arguments of a repetition are understood as those that were recorded.
#[test]
fn a_record_says_the_same_again() {
    for command in commands() {
        let name = command.get_name();
        if !["run", "find", "sweep", "prove", "demo"].contains(&name) {
            continue;
        }
        for arg in command.get_arguments().filter(|arg| !["help", "version"].contains(&arg.get_id().as_str())) {
            let id = arg.get_id().as_str();
            let value = sample(name, id);
            let spelled = match (arg.get_action().takes_values(), arg.get_long()) {
                (false, Some(long)) => vec![vec![format!("--{long}")]],
                _ => spellings(arg, value, false),
            };
            let spelled_as = super::spelled(arg);
            let mut understood_any = false;
            for words in spelled {
                let Ok((cli, told)) = self::told(name, &words, besides(name, id)) else { continue };
                understood_any = true;
                // What was left out is given again, as `rerun` does.
                let given = |said: &Said| match said.flag.as_deref() {
                    flag if flag == spelled_as.as_deref() => value,
                    Some("--a") => "./a",
                    _ => "./b",
                };
                let whole: Vec<Said> = told
                    .said
                    .iter()
                    .map(|said| match said.withheld {
                        Some(_) => Said { value: Some(given(said).to_owned()), withheld: None, ..said.clone() },
                        None => said.clone(),
                    })
                    .collect();
                let again = understood(super::words(name, &whole).into_iter().map(OsString::from));
                let (again, told_again) = again.unwrap_or_else(|error| panic!("{name} {words:?}: {error}"));
                // The seed was drawn; now it is said.
                let unseeded = |cli: &Cli| {
                    let text = format!("{cli:?}");
                    let seed = format!("seed: Some({})", crate::resolve::fresh_seed());
                    text.replace(&seed, "seed: None")
                };
                assert_eq!(unseeded(&cli), unseeded(&again), "{name} {words:?}");
                assert_eq!(told.said, told_again.said, "{name} {words:?}");
            }
            assert!(understood_any, "{name} {id}: no sample value is understood: mend `sample`");
        }
    }
}
