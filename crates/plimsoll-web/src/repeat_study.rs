//! Repeats the command of a recorded run from a web page ([`repeat_recorded_command`]). A run file
//! may come from an untrusted source, so a page repeats a recorded command only if all its flags
//! are harmless. Harmless flags run no command, read or write no file, and permit no public target.
//! A server that was started with permission for commands also repeats other flags, but never load
//! on public targets. The flags for the output are left out, because the server sets its own output
//! flags.
//!
//! Not here: the recorded command (`plimsoll-report`), and forms (`start_form`).

use crate::problem::Problem;
use crate::start_form::{STARTABLE_STUDIES, StudyForm, check_target_url};
use plimsoll_model::redact::REDACTED;

/// The flags of a recorded command that are harmless, so that every server repeats them.
const REPEATABLE_FLAGS: [&str; 52] = [
    "--allow-different-answers",
    "--arrivals",
    "--blocks",
    "--budget",
    "--close",
    "--concurrency",
    "--duration",
    "--fail-if",
    "--follow",
    "--for",
    "--header",
    "--headroom",
    "--http",
    "--identity",
    "--in-turn",
    "--insecure",
    "--keep-failed-bodies",
    "--ladder",
    "--line",
    "--margin",
    "--max-connections",
    "--max-rate",
    "--measure",
    "--method",
    "--need",
    "--no-intervene",
    "--no-keepalive",
    "--no-preflight",
    "--no-probes",
    "--no-resumption",
    "--ok-grpc",
    "--ok-status",
    "--on-inconclusive",
    "--pprof-seconds",
    "--rate",
    "--redact",
    "--reference",
    "--requests",
    "--resolve-every",
    "--retries",
    "--seed",
    "--slo",
    "--soak",
    "--spin",
    "--start-timeout",
    "--stop-if",
    "--streams",
    "--tag",
    "--threads",
    "--timeout",
    "--values",
    "--warmup",
];
/// The flags for the output: its files and its format. The output flags of a recorded command are
/// not repeated, because the server sets its own output flags.
const OUTPUT_FLAGS: [&str; 8] =
    ["--output", "--store", "--dir", "--name", "--json", "--json-lines", "--quiet", "--verbose"];

/// Converts a recorded command into a form that starts the command again. `file` is the name of the
/// run file, for error messages. Returns an error if the command has a flag that pages may not use.
/// Also returns an error if the run file withholds a value of the command, such as a secret.
pub fn repeat_recorded_command(file: &str, recorded: &[String], allows_commands: bool) -> Result<StudyForm, Problem> {
    let line = |why: String| Problem::bad_request(format!("{why}: use plimsoll rerun {file}"));
    let study = recorded.get(1).map(String::as_str).unwrap_or_default();
    if !STARTABLE_STUDIES.iter().any(|(known, _)| *known == study) {
        return Err(line(format!("a page cannot start {study}")));
    }
    let mut words = vec![study.to_owned()];
    for word in &recorded[2..] {
        if word.contains(REDACTED) || word.starts_with("--body=[") {
            return Err(line("this run needs secrets or bodies, which run files do not contain".to_owned()));
        }
        let flag = word.split('=').next().unwrap_or_default();
        match word.starts_with('-') {
            true if OUTPUT_FLAGS.contains(&flag) => {}
            // Pages never send load to public addresses, even if the server has permission for
            // commands.
            true if flag == "--allow-public" => {
                return Err(line("the web pages cannot start loads on public targets".to_owned()));
            }
            true if REPEATABLE_FLAGS.contains(&flag) || allows_commands => words.push(word.clone()),
            true => return Err(line(format!("this run used {flag}, which the web pages may not set"))),
            false => words.push(check_target_url("again", word).map_err(|problem| line(problem.text))?),
        }
    }
    Ok(StudyForm { words, traffic: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_restarts_without_forbidden_flags() {
        for (recorded, allowed, expect) in [
            ("plimsoll find --slo=p99<=50ms --seed=7 http://h/", false, Ok("find --slo=p99<=50ms --seed=7 http://h/")),
            ("plimsoll run --output=x --store=y --json --rate=5 http://h/", false, Ok("run --rate=5 http://h/")),
            ("plimsoll prove --a=./x --b=./y http://h/", false, Err("used --a")),
            ("plimsoll prove --a=./x --b=./y http://h/", true, Ok("prove --a=./x --b=./y http://h/")),
            ("plimsoll find --vary=rm http://h/", false, Err("used --vary")),
            ("plimsoll find --lua=/x.lua http://h/", false, Err("used --lua")),
            ("plimsoll find --file=/etc/passwd", false, Err("used --file")),
            ("plimsoll find --unix=/run/x http://h/", false, Err("used --unix")),
            ("plimsoll find --allow-public http://h/", false, Err("public targets")),
            ("plimsoll find --allow-public http://h/", true, Err("public targets")),
            ("plimsoll find --header=A:[redacted] http://h/", true, Err("needs secrets or bodies")),
            ("plimsoll find --body=[12 bytes] http://h/", true, Err("needs secrets or bodies")),
            ("plimsoll sweep --dir=x http://h/", true, Err("cannot start sweep")),
            ("plimsoll find /etc/passwd", true, Err("an address begins")),
            ("plimsoll", true, Err("cannot start")),
        ] {
            let recorded: Vec<String> = recorded.split(' ').map(str::to_owned).collect();
            match (repeat_recorded_command("r.plimsoll", &recorded, allowed), expect) {
                (Ok(form), Ok(expect)) => assert_eq!(form.words.join(" "), expect),
                (Err(problem), Err(part)) => assert!(problem.text.contains(part), "{recorded:?}: {}", problem.text),
                (got, expect) => panic!("{recorded:?}: {got:?}, expected {expect:?}"),
            }
        }
    }
}
