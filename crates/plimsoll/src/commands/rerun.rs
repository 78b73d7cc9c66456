//! `plimsoll rerun`: does again what a run file records, with the same seed. The new process takes the place of this one,
//! so that it is recorded like any other. Secrets are not in the record: they must be given again.

use super::show;
use crate::args::RerunArgs;
use crate::failure::{Failure, exit};
use crate::target::system_text;
use plimsoll_model::Experiment;
use plimsoll_model::plan::REDACTED;
use std::io::Write;
use std::os::unix::process::CommandExt;

/// Repeats; returns only where it cannot start, or with `--print`.
pub fn run(args: &RerunArgs) -> Result<u8, Failure> {
    let experiment = show::read(&args.file)?;
    let command = repeated(&experiment.command, seed_of(&experiment), args)?;
    if args.print {
        super::print(&format!("plimsoll {}\n", command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")));
        return Ok(exit::DONE);
    }
    differences(&experiment);
    let program = std::env::current_exe()
        .map_err(|e| Failure::start(format!("this program cannot be found again: {}", system_text(&e))))?;
    let error = std::process::Command::new(program).args(command).exec();
    Err(Failure::start(format!("the command cannot be started again: {}", system_text(&error))))
}

/// The seed from which all seeds of the experiment came.
fn seed_of(experiment: &Experiment) -> Option<u64> {
    let base = experiment.options.get("base").and_then(|base| base.get("seed")).and_then(serde_json::Value::as_u64);
    base.or_else(|| experiment.trials.first().map(|trial| trial.run.plan.seed))
}

/// Says on standard error what is not as it was.
fn differences(experiment: &Experiment) {
    let now = crate::recording::environment(experiment.environment.target_local);
    let then = &experiment.environment;
    for (what, then, now) in [
        ("plimsoll", &then.plimsoll, &now.plimsoll),
        ("kernel", &then.kernel, &now.kernel),
        ("processor", &then.cpu, &now.cpu),
        ("cores", &then.cores.to_string(), &now.cores.to_string()),
    ] {
        if then != now {
            let _ = writeln!(std::io::stderr(), "warning: not as it was: {what} '{now}' instead of '{then}'");
        }
    }
}

/// The arguments after the program's name, with what was left out of the record put in again.
fn repeated(recorded: &[String], seed: Option<u64>, args: &RerunArgs) -> Result<Vec<String>, Failure> {
    let mut out = Vec::new();
    let mut words = recorded.iter().skip(1).cloned();
    let mut seeded = false;
    while let Some(word) = words.next() {
        // A flag with its value beside it, behind '=' or, for short flags, right behind.
        let flag = |names: [&str; 2]| -> Option<Option<String>> {
            if names.contains(&word.as_str()) {
                return Some(None);
            }
            let long = word.strip_prefix(names[1]).and_then(|rest| rest.strip_prefix('='));
            let short = word.strip_prefix(names[0]).filter(|_| !word.starts_with("--"));
            long.or(short).map(|value| Some(value.to_owned()))
        };
        if let Some(attached) = flag(["-o", "--output"]) {
            // The record is not written over.
            if attached.is_none() {
                words.next();
            }
        } else if let Some(attached) = flag(["-H", "--header"]) {
            let value = attached.or_else(|| words.next()).unwrap_or_default();
            out.extend(["-H".to_owned(), header(&value, args)?]);
        } else if let Some(attached) = flag(["-b", "--body"]) {
            let value = attached.or_else(|| words.next()).unwrap_or_default();
            let known = value == "-" || value.starts_with('@');
            let body = args.body.clone().or(known.then_some(value)).ok_or_else(|| {
                Failure::usage("the body is not in the record; give it again with -b TEXT or -b @FILE")
            })?;
            out.extend(["-b".to_owned(), body]);
        } else {
            seeded |= word == "--seed" || word.starts_with("--seed=");
            if word.contains(REDACTED) {
                let url = args.url.clone().ok_or_else(|| {
                    Failure::usage(format!(
                        "'{word}' is recorded without its query values; give the URL again with --url"
                    ))
                })?;
                out.push(url);
            } else {
                out.push(word);
            }
        }
    }
    let demo = out.first().is_some_and(|command| command == "demo");
    if let (Some(seed), false, false) = (seed, seeded, demo) {
        out.push(format!("--seed={seed}"));
    }
    if out.first().is_some_and(|command| command == "sweep") {
        // Files of a sweep bear its name: the first ones stay.
        out.push("--name=rerun".into());
        out = last_name_only(out);
    }
    if let Some(path) = &args.output {
        out.push(format!("--output={}", path.display()));
    }
    Ok(out)
}

/// `--name` may be given once: the last stays.
fn last_name_only(words: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let last = words.iter().rposition(|word| word.starts_with("--name"));
    let mut skip = false;
    for (at, word) in words.into_iter().enumerate() {
        if std::mem::take(&mut skip) {
            continue;
        }
        if Some(at) != last && word == "--name" {
            skip = true;
        } else if Some(at) == last || !word.starts_with("--name=") {
            out.push(word);
        }
    }
    out
}

fn header(recorded: &str, args: &RerunArgs) -> Result<String, Failure> {
    if !recorded.contains(REDACTED) {
        return Ok(recorded.to_owned());
    }
    let name = recorded.split(':').next().unwrap_or_default().trim();
    let given = args
        .headers
        .iter()
        .find(|header| header.split_once(':').is_some_and(|(given, _)| given.trim().eq_ignore_ascii_case(name)));
    given.cloned().ok_or_else(|| {
        Failure::usage(format!(
            "the value of the header '{name}' is not in the record; give it again with -H '{name}: ...'"
        ))
    })
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_asked_for_and_put_in() {
        let args = |url: Option<&str>, headers: &[&str], body: Option<&str>| RerunArgs {
            file: "f".into(),
            url: url.map(str::to_owned),
            headers: headers.iter().map(|h| (*h).to_owned()).collect(),
            body: body.map(str::to_owned),
            output: None,
            print: false,
        };
        let none = args(None, &[], None);
        for (line, given, expect) in [
            ("plimsoll run http://h/ -o x.plimsoll", &none, Ok("run http://h/ --seed=7")),
            ("plimsoll run --seed 5 -ox http://h/", &none, Ok("run --seed 5 http://h/")),
            ("plimsoll http://h/ --output=x", &none, Ok("http://h/ --seed=7")),
            ("plimsoll demo --budget 5s", &none, Ok("demo --budget 5s")),
            ("plimsoll sweep --name a http://h/", &none, Ok("sweep http://h/ --seed=7 --name=rerun")),
            ("plimsoll run http://h/?k=[redacted]", &none, Err("--url")),
            (
                "plimsoll run http://h/?k=[redacted]",
                &args(Some("http://h/?k=1"), &[], None),
                Ok("run http://h/?k=1 --seed=7"),
            ),
            ("plimsoll run -HCookie:[redacted] h", &none, Err("'Cookie'")),
            (
                "plimsoll run -HCookie:[redacted] h",
                &args(None, &["cookie: a"], None),
                Ok("run -H cookie: a h --seed=7"),
            ),
            ("plimsoll run -b [5_bytes] h", &none, Err("-b")),
            ("plimsoll run -b [5_bytes] h", &args(None, &[], Some("x")), Ok("run -b x h --seed=7")),
            ("plimsoll run -b @f h", &none, Ok("run -b @f h --seed=7")),
        ] {
            let recorded: Vec<String> = line.split(' ').map(str::to_owned).collect();
            match (repeated(&recorded, Some(7), given), expect) {
                (Ok(words), Ok(expect)) => assert_eq!(words.join(" "), expect, "{line}"),
                (Err(failure), Err(part)) => assert!(failure.to_string().contains(part), "{line}: {failure}"),
                (got, want) => panic!("{line}: {got:?}, expected {want:?}"),
            }
        }
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
