//! `plimsoll rerun`: does again what a run file records, with the same seed, or refuses.
//!
//! It starts from the recorded arguments, each with its flag. What was left out of the record is asked for under the name of
//! its flag, and what is given must leave the same record; anything else that is given is refused. What only a file says is
//! shown first, and asked about where it could do harm: commands, files that are sent, public addresses. Before anything
//! starts, the whole question, with the plan of every target, is compared with the recorded one.

use crate::args::RerunArgs;
use crate::failure::Failure;
use crate::output::note;
use crate::results;
use crate::secrets::{Class, is_flag, kept, words};
use clap::CommandFactory;
use plimsoll_model::{Asked, Experiment, PlanRecord, Redact, RouteRecord, Said};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What was asked of what is repeated.
static RECORDED: OnceLock<Asked> = OnceLock::new();

/// The words of the command to do again; `None` where it is only printed. Nothing is started here.
pub fn repeated(args: &RerunArgs) -> Result<Option<Vec<OsString>>, Failure> {
    let experiment = results::read(&args.file)?;
    let command = command_of(&experiment)?;
    if args.print {
        crate::output::print(&format!("{}\n", shown(&words(&command, &experiment.said))));
        let missing = missing(&experiment.said);
        if !missing.is_empty() {
            say(&format!("what the record leaves out must be given again: {}", missing.join(", ")));
        }
        return Ok(None);
    }
    let filled = filled(&command, &experiment.said, args)?;
    let place = place(&command, args)?;
    let kept: Vec<Said> = experiment.said.iter().filter(|said| !is_place(said)).chain(&place).cloned().collect();
    say(&format!("again: {}", shown(&words(&command, &kept))));
    differences(&experiment);
    consent(&experiment.said, args)?;
    // Another process does not do two commands.
    let _ = RECORDED.set(experiment.asked);
    let arguments = filled.iter().chain(&place).map(Said::word);
    Ok(Some(["plimsoll".to_owned(), command].into_iter().chain(arguments).map(OsString::from).collect()))
}

fn say(text: &str) {
    note(text);
}

/// The name of the recorded command.
fn command_of(experiment: &Experiment) -> Result<String, Failure> {
    let name = experiment.command.get(1).cloned().unwrap_or_default();
    let fits = match &experiment.asked {
        Asked::Run(_) => name == "run",
        Asked::Sweep(_) => name == "sweep",
        Asked::Find(_) => ["find", "demo"].contains(&name.as_str()),
        Asked::Explain(_) => name == "explain",
        Asked::Prove(_) | Asked::Ladder(_) => name == "prove",
    };
    match fits && !experiment.said.is_empty() {
        true => Ok(name),
        false => Err(Failure::start(format!(
            "the run file does not say what to repeat; its command was: {}",
            experiment.command.join(" ")
        ))),
    }
}

/// The flag under which an argument is given again.
fn flag_of(said: &Said) -> &str {
    said.flag.as_deref().unwrap_or("--url")
}

/// How to give an argument again, as a person writes it.
fn to_give(said: &Said) -> String {
    let value = said.value.as_deref().unwrap_or_default();
    match flag_of(said) {
        "--header" => format!("-H '{}: ...'", value.split(':').next().unwrap_or_default()),
        "--body" => format!("-b TEXT or -b @FILE (the body was {value})"),
        flag => format!("{flag} ... (it was {value})"),
    }
}

/// Arguments that only say where results go are not repeated.
fn is_place(said: &Said) -> bool {
    ["--output", "--dir", "--name"].iter().any(|flag| is_flag(said, flag))
}

/// All that was left out and is needed again, in words.
fn missing(recorded: &[Said]) -> Vec<String> {
    recorded.iter().filter(|said| said.withheld.is_some() && !is_place(said)).map(to_give).collect()
}

/// What was given again, by flag and in order.
fn given(args: &RerunArgs) -> BTreeMap<&'static str, Vec<&str>> {
    let mut given: BTreeMap<&'static str, Vec<&str>> = BTreeMap::new();
    for (flag, texts) in [("--url", &args.urls), ("--header", &args.headers)] {
        given.insert(flag, texts.iter().map(String::as_str).collect());
    }
    for (flag, text) in [
        ("--body", &args.body),
        ("--file", &args.traffic),
        ("--target", &args.target),
        ("--a", &args.a),
        ("--b", &args.b),
        ("--before-block", &args.before_block),
        ("--pprof", &args.pprof),
        ("--metrics", &args.metrics),
        ("--unix", &args.unix),
        ("--cacert", &args.cacert),
        ("--cert", &args.cert),
        ("--key", &args.key),
        ("--cgroup", &args.cgroup),
    ] {
        given.insert(flag, text.as_deref().into_iter().collect());
    }
    given
}

/// The class of an argument that is given again.
fn class_of(flag: &str) -> Class {
    let command = crate::args::Cli::command();
    let known = command.find_subcommand("rerun").into_iter().flat_map(|rerun| rerun.get_arguments());
    let arg = known.into_iter().find(|arg| arg.get_long() == flag.strip_prefix("--"));
    arg.and_then(|arg| crate::secrets::class_of("rerun", arg.get_id().as_str())).unwrap_or(Class::Secret)
}

fn header_name(text: &str) -> String {
    text.split(':').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The recorded arguments with what was given again in its place.
fn filled(command: &str, recorded: &[Said], args: &RerunArgs) -> Result<Vec<Said>, Failure> {
    let how = match recorded.iter().find(|said| is_flag(said, "--redact")).and_then(|said| said.value.as_deref()) {
        Some("all") => Redact::All,
        _ => Redact::Secrets,
    };
    let mut given = given(args);
    let mut numbers: BTreeMap<(&str, u32), &str> = BTreeMap::new();
    let mut out = Vec::new();
    for said in recorded.iter().filter(|said| !is_place(said)) {
        let (Some(number), Some(was)) = (said.withheld, &said.value) else {
            out.push(said.clone());
            continue;
        };
        let flag = flag_of(said);
        let texts = given.get_mut(flag);
        let at = texts.as_ref().and_then(|texts| match flag {
            "--header" => texts.iter().position(|text| header_name(text) == header_name(was)),
            _ => (!texts.is_empty()).then_some(0),
        });
        let (Some(texts), Some(at)) = (texts, at) else {
            return Err(Failure::usage(format!(
                "{}: something was left out of the record of plimsoll {command}: give it again with {}",
                args.file.display(),
                missing(recorded).join(", ")
            )));
        };
        let text = texts.remove(at);
        let same = match flag {
            "--header" => true,
            // Read from a file, a body may be the one that was written out.
            "--body" => text == "-" || text.starts_with('@') || kept(Class::Body, text, how, false) == *was,
            _ => kept(class_of(flag), text, how, false) == *was,
        };
        if !same {
            return Err(Failure::usage(format!(
                "{flag}: this is not what was recorded ({was}): give the same, or start a new run"
            )));
        }
        // What differed then must differ now, and what was one must be one: else A would be compared with A.
        let flag_numbers = || numbers.iter().filter(|((other, _), _)| *other == flag);
        let clash = flag_numbers().any(|((_, other), before)| (*other == number) != (*before == text));
        if clash {
            return Err(Failure::usage(format!(
                "{flag}: the values given are the same where they differed when it was recorded, or the other way round; \
                 give each in its order"
            )));
        }
        numbers.insert((flag, number), text);
        out.push(Said { value: Some(text.to_owned()), withheld: None, ..said.clone() });
    }
    if let Some((flag, _)) = given.iter().find(|(_, texts)| !texts.is_empty()) {
        return Err(Failure::usage(format!(
            "{flag}: the record has this already, or has no such thing: leave it out, or start a new run with it"
        )));
    }
    Ok(out)
}

/// Where the results of the repetition go; never over the record.
fn place(command: &str, args: &RerunArgs) -> Result<Vec<Said>, Failure> {
    let flag = |flag: &str, value: String| Said { flag: Some(flag.into()), value: Some(value), withheld: None };
    let said = match (command, &args.output) {
        ("demo", Some(_)) => return Err(Failure::usage("-o: a demo writes no file that could be named; leave it out")),
        ("sweep", Some(path)) => {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            if path.extension().is_none_or(|extension| extension != "plimsoll") || stem.is_empty() {
                return Err(Failure::usage(
                    "-o: the run file of a sweep ends in .plimsoll; other files bear its name, too",
                ));
            }
            refuse_the_record(path, &args.file)?;
            vec![flag("--dir", text(folder)?), flag("--name", stem.to_owned())]
        }
        ("sweep", None) => vec![flag("--name", free_name(Path::new("_output/plimsoll")))],
        (_, Some(path)) => {
            refuse_the_record(path, &args.file)?;
            vec![flag("--output", text(path)?)]
        }
        (_, None) => Vec::new(),
    };
    Ok(said)
}

fn text(path: &Path) -> Result<String, Failure> {
    path.to_str().map(str::to_owned).ok_or_else(|| Failure::usage("-o: a file name of a repetition must be UTF-8"))
}

/// A name for the files of a sweep under which there are none yet.
fn free_name(folder: &Path) -> String {
    let names = std::iter::once("rerun".to_owned()).chain((2u32..).map(|number| format!("rerun-{number}")));
    names.into_iter().find(|name| !folder.join(format!("{name}.plimsoll")).exists()).unwrap_or_default()
}

/// The record is not written over, by whatever name.
fn refuse_the_record(output: &Path, record: &Path) -> Result<(), Failure> {
    let real = |path: &Path| -> Option<PathBuf> { std::fs::canonicalize(path).ok() };
    let same_file = || {
        use std::os::unix::fs::MetadataExt;
        let of = |path: &Path| std::fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
        of(output).is_some() && of(output) == of(record)
    };
    match (real(output).is_some() && real(output) == real(record)) || same_file() {
        true => Err(Failure::usage(format!("-o {}: that is the record itself: name another file", output.display()))),
        false => Ok(()),
    }
}

/// Asks before something is done that only the file says and that could do harm.
fn consent(recorded: &[Said], args: &RerunArgs) -> Result<(), Failure> {
    let from_file = |flag: &str| recorded.iter().any(|said| is_flag(said, flag) && said.withheld.is_none());
    let sends_file = recorded.iter().any(|said| {
        is_flag(said, "--body")
            && said.withheld.is_none()
            && said.value.as_deref().is_some_and(|it| it.starts_with('@'))
    });
    let mut reasons = Vec::new();
    if ["--a", "--b", "--before-block"].iter().any(|flag| from_file(flag)) {
        reasons.push("runs commands");
    }
    if sends_file {
        reasons.push("sends a file of this machine");
    }
    if from_file("--unix") {
        reasons.push("uses a unix socket");
    }
    if from_file("--allow-public") {
        reasons.push("puts load on addresses that are not private (--allow-public)");
    }
    if reasons.is_empty() || args.yes {
        return Ok(());
    }
    let what = format!("what the run file says {}", reasons.join(" and "));
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::usage(format!("{what}: look at it with --print, then add --yes")));
    }
    let _ = write!(std::io::stderr(), "{what}: do it? [y/N] ");
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    match ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()) {
        true => Ok(()),
        false => Err(Failure::usage("nothing was started")),
    }
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
            say(&format!("warning: not as it was: {what} '{now}' instead of '{then}'"));
        }
    }
}

/// What a repetition asks must be what the record says that was asked, apart from what belongs to the machine: addresses,
/// connections that are fitted to it, the port of a server that was started for it, how long the first answer took.
pub fn same_as_recorded(asked: &Asked) -> Result<(), Failure> {
    match RECORDED.get().and_then(|recorded| differing(recorded, asked)) {
        None => Ok(()),
        Some(what) => Err(Failure::start(format!(
            "nothing was started: this would not be what was recorded, its {what} differs; start a new run instead"
        ))),
    }
}

/// What of a question is not as recorded.
fn differing(recorded: &Asked, asked: &Asked) -> Option<&'static str> {
    let (mut then, mut now) = (recorded.clone(), asked.clone());
    let (plans_then, plans_now) = (then.plans_mut(), now.plans_mut());
    if plans_then.len() != plans_now.len() {
        return Some("number of targets");
    }
    for (then, now) in plans_then.into_iter().zip(plans_now) {
        if let Some(what) = difference(then, now) {
            return Some(what);
        }
        *then = now.clone();
    }
    for question in [&mut then, &mut now] {
        match question {
            Asked::Find(find) => find.first_answer_ns = 0,
            Asked::Explain(explain) => explain.search.first_answer_ns = 0,
            // They are called by their URLs.
            Asked::Prove(_) | Asked::Ladder(_) => {
                question.blocks_mut().into_iter().flat_map(|it| &mut it.arms).for_each(|arm| arm.name.clear());
            }
            Asked::Run(_) | Asked::Sweep(_) => {}
        }
    }
    (then != now).then_some("question")
}

/// What of a plan is not as recorded. Addresses may have changed, and connections are fitted to the machine.
fn difference(recorded: &PlanRecord, plan: &PlanRecord) -> Option<&'static str> {
    // Each asks the same of as many routes, in their order.
    let routes = || recorded.traffic.routes.iter().zip(&plan.traffic.routes);
    let same = |as_then: fn(&RouteRecord, &RouteRecord) -> bool| routes().all(|(then, now)| as_then(then, now));
    let host = |plan: &PlanRecord| (plan.traffic.origin.scheme.clone(), plan.traffic.origin.host.clone());
    let connections = |plan: &PlanRecord| (plan.carriage.keep_alive, plan.carriage.close_reset);
    let (load_then, load_now) = (&recorded.load, &plan.load);
    let checks = [
        ("seed", load_then.seed == load_now.seed),
        ("host", host(recorded) == host(plan)),
        ("number of different requests", recorded.traffic.routes.len() == plan.traffic.routes.len()),
        ("method", same(|then, now| then.method == now.method)),
        ("path or query", same(|then, now| then.target == now.target)),
        ("header fields", same(|then, now| then.headers == now.headers)),
        ("body", same(|then, now| then.body_bytes == now.body_bytes)),
        ("weights", same(|then, now| then.weight == now.weight)),
        ("use of connections", connections(recorded) == connections(plan)),
        ("unix socket", recorded.carriage.unix == plan.carriage.unix),
        ("shape", load_then.shape == load_now.shape),
        ("number of requests", load_then.requests_max == load_now.requests_max),
        ("length", load_then.duration_ns == load_now.duration_ns && load_then.warmup_ns == load_now.warmup_ns),
        ("timeout", same(|then, now| then.timeout_ns == now.timeout_ns)),
        ("set of successful statuses", same(|then, now| then.ok_status == now.ok_status)),
    ];
    checks.into_iter().find(|(_, same)| !same).map(|(what, _)| what)
}

/// Words as a shell reads them, and as a terminal may have them.
fn shown(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let quoted = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            let word: String = word.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
