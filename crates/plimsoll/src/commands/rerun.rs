//! `plimsoll rerun`: does again what a run file records, with the same seed, or refuses.
//!
//! It starts from what was recorded: what was asked, and on what terms. What was left out of that
//! is asked for under the name of its flag, and what is given must leave the same record; anything
//! else that is given is refused. What only a file says is shown first, and asked about where it
//! could do harm: commands, files that are sent, public addresses. From there on it goes the way of
//! a command.

use super::traffic::ReadingMeter;
use super::{change_args, experiment};
use crate::args::RerunArgs;
use crate::plan_from_args;
use crate::quantity::path_text;
use crate::results;
use plimsoll_model::completion::{
    FromFile, Incomplete, MissingInput, RerunInputs, RerunUrl, body_file, complete, logs, missing, other_body_file,
    script_file, traffic_file,
};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::shell;
use plimsoll_model::terms::{BuildsTerms, OutputTerms};
use plimsoll_model::{BodyFrom, EndpointChoice, Experiment, ExperimentSpec, RedactedText, Terms, TextKind};
use plimsoll_report::spelling::words;
use plimsoll_study::fields;
use plimsoll_study::output::{note, print};
use plimsoll_study::result_store::FOLDER;
use plimsoll_study::{file_traffic, log_replay};
use plimsoll_sys::signal;
use plimsoll_traffic::target_url::Url;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Repeats what was recorded, and says with which code to end.
pub fn run(args: &RerunArgs) -> Result<u8, Failure> {
    let experiment = results::read(&args.file)?;
    let (asked, terms) = (&experiment.asked, experiment.terms.as_deref());
    let Some(terms) = terms else {
        let command = experiment.command.join(" ");
        return Err(Failure::start(format!("the run file has no details to repeat; its command was: {command}")));
    };
    let missing = missing(asked, terms);
    let to_give = || missing.iter().map(to_give).collect::<Vec<_>>().join(", ");
    if args.print {
        print(&format!("{}\n", command_text(&words(asked, terms))));
        if !missing.is_empty() {
            note(&format!("the record withholds these values; give them again: {}", to_give()));
        }
        return Ok(exit::DONE);
    }
    let mut given = read_inputs(args, asked)?;
    let output = place(asked, args, terms)?;
    let placed = Terms { output: output.clone(), ..Terms::default() }.record().output;
    note(&format!("again: {}", command_text(&words(asked, &Terms { output: placed, ..terms.clone() }))));
    differences(&experiment);
    consent(terms, asked, args)?;
    signal::catch_interrupts();
    if let (Some(path), None) = (body_file(terms), &given.body) {
        given.body = Some((BodyFrom::File(path.to_owned()), fields::body_file(path)?));
    }
    let mut unread = None;
    let seed = asked.plans().first().map_or(0, |plan| plan.load.seed);
    let outcome = complete(asked, terms, given, &mut |complete| match from_files(complete, seed) {
        Ok(asked) => Some(asked),
        Err(failure) => {
            unread = Some(failure);
            None
        }
    });
    let (asked, complete) = outcome.map_err(|why| match why {
        Incomplete::Unread => unread.unwrap_or_else(|| {
            Failure::start("the file of traffic differs from the recorded file; give the file of that time")
        }),
        Incomplete::Missing => Failure::usage(format!(
            "{}: the record of plimsoll {} withholds a value: give it again with {}",
            args.file.display(),
            asked.word(),
            to_give()
        )),
        Incomplete::Superfluous(kind) => Failure::usage(format!(
            "{}: the record already has this value, or does not use it: leave it out, or start a new run with it",
            flag(kind)
        )),
        Incomplete::Differs(MissingInput { kind, was }) => Failure::usage(format!(
            "{}: this differs from the record ({was}): give the recorded value, or start a new run",
            flag(kind)
        )),
        Incomplete::Alike => Failure::usage(
            "--url: the recorded targets differ where these are equal, or the reverse; give each target in the \
             record's order",
        ),
    })?;
    experiment::carry_out(asked, &Terms { output, ..complete })
}

/// What a file of traffic, or logs, ask of each target.
pub fn from_files(terms: &Terms<String>, seed: u64) -> Result<Vec<FromFile>, Failure> {
    match (&terms.replay, &terms.mix) {
        (Some(logs), _) => {
            Ok(vec![log_replay::of_logs(logs, seed, terms.redact, terms.output.quiet, &mut ReadingMeter::new())?])
        }
        (None, Some(mix)) => {
            let asked = file_traffic::of_file(mix, terms.redact)?;
            Ok(asked.into_iter().map(|(traffic, _)| FromFile { traffic, arrivals: None }).collect())
        }
        (None, None) => Ok(Vec::new()),
    }
}

/// The flag under which something is given again.
fn flag(kind: TextKind) -> &'static str {
    match kind {
        TextKind::Url => "--url",
        TextKind::Header => "--header",
        TextKind::Body => "--body",
        TextKind::Traffic => "--file",
        TextKind::Script => "--lua",
        TextKind::Argument => "--",
        TextKind::Log => "--log",
        TextKind::Unix => "--unix",
        TextKind::Issuers => "--cacert",
        TextKind::Certificate => "--cert",
        TextKind::Key => "--key",
        TextKind::Proto => "--proto",
        TextKind::ProtoPath => "--proto-path",
        TextKind::DescriptorSet => "--descriptor-set",
        TextKind::Cgroup => "--cgroup",
        TextKind::Metrics => "--metrics",
        TextKind::Profiles => "--pprof",
        TextKind::Reference => "--reference",
        TextKind::Identity => "--identity",
        TextKind::Vary => "--vary",
        TextKind::OtherBody => "--other-body",
        TextKind::BuildA => "--a",
        TextKind::BuildB => "--b",
        TextKind::BeforeBlock => "--before-block",
        TextKind::Build => "--build",
        TextKind::Start => "--start",
        TextKind::Place => "--output",
    }
}

/// How to give something again, as a person writes it.
fn to_give(missing: &MissingInput) -> String {
    let MissingInput { kind, was } = missing;
    match kind {
        TextKind::Header => format!("-H '{was}: ...'"),
        TextKind::Body => format!("-b TEXT or -b @FILE (the body was {was})"),
        kind => format!("{} ... (it was {was})", flag(*kind)),
    }
}

/// What is given again.
fn read_inputs(args: &RerunArgs, asked: &ExperimentSpec) -> Result<RerunInputs, Failure> {
    let mut given = RerunInputs::default();
    for url in args.target.iter().chain(&args.urls).chain(&args.against) {
        let Url { origin, path, authorization } = Url::read(url)?;
        given.urls.push_back(RerunUrl { text: url.clone(), origin, target: path, authorization });
    }
    given.headers = args.headers.iter().map(|text| fields::header(text)).collect::<Result<_, _>>()?;
    given.body = args.body.as_deref().map(fields::body).transpose()?;
    let sides = matches!(asked, ExperimentSpec::Prove(_));
    let profiles = match args.pprof.as_deref().map(|place| plan_from_args::served(place, sides)) {
        None | Some(EndpointChoice::ByTarget) => Vec::new(),
        Some(EndpointChoice::At(urls)) => urls,
    };
    given.texts.insert(TextKind::Profiles, profiles.into());
    given.texts.insert(TextKind::Argument, args.words.clone().into());
    let identities: Vec<String> =
        args.identities.iter().map(|text| change_args::identity(text)).collect::<Result<_, _>>()?;
    given.texts.insert(TextKind::Identity, identities.into());
    given.texts.insert(TextKind::Proto, args.proto.clone().into());
    given.texts.insert(TextKind::ProtoPath, args.proto_path.clone().into());
    given.texts.insert(TextKind::Log, args.logs.iter().cloned().collect());
    for (kind, text) in [
        (TextKind::Traffic, &args.traffic),
        (TextKind::Script, &args.lua),
        (TextKind::DescriptorSet, &args.descriptor_set),
        (TextKind::BuildA, &args.a),
        (TextKind::BuildB, &args.b),
        (TextKind::BeforeBlock, &args.before_block),
        (TextKind::Build, &args.build),
        (TextKind::Start, &args.start),
        (TextKind::Metrics, &args.metrics),
        (TextKind::Reference, &args.reference),
        (TextKind::Vary, &args.vary),
        (TextKind::OtherBody, &args.other_body),
        (TextKind::Unix, &args.unix),
        (TextKind::Issuers, &args.cacert),
        (TextKind::Certificate, &args.cert),
        (TextKind::Key, &args.key),
        (TextKind::Cgroup, &args.cgroup),
    ] {
        given.texts.insert(kind, text.iter().cloned().collect());
    }
    Ok(given)
}

/// Where the results of the repetition go; never over the record.
fn place(
    asked: &ExperimentSpec,
    args: &RerunArgs,
    terms: &Terms<RedactedText>,
) -> Result<OutputTerms<String>, Failure> {
    let OutputTerms { json, json_lines, verbose, quiet, .. } = terms.output;
    let (store, tags) = (None, terms.output.tags.clone());
    let (mut file, mut files) = (None, None);
    match (asked, &args.output) {
        (_, Some(_)) if terms.demo => {
            return Err(Failure::usage("-o: a demo writes no run file; leave it out"));
        }
        (ExperimentSpec::Sweep(_), Some(path)) => {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            if path.extension().is_none_or(|extension| extension != "plimsoll") || stem.is_empty() {
                return Err(Failure::usage(
                    "-o: the run file of a sweep ends in .plimsoll, since its other files have the same name; \
                     add the ending",
                ));
            }
            refuse_the_record(path, &args.file)?;
            files = Some((path_text("-o", folder)?, stem.to_owned()));
        }
        (ExperimentSpec::Sweep(_), None) => files = Some((FOLDER.to_owned(), free_name(Path::new(FOLDER)))),
        (_, Some(path)) => {
            refuse_the_record(path, &args.file)?;
            file = Some(path_text("-o", path)?);
        }
        (_, None) => {}
    }
    Ok(OutputTerms { json, json_lines, verbose, quiet, file, files, store, tags })
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
        true => {
            Err(Failure::usage(format!("-o {}: that is the recorded file itself: name another file", output.display())))
        }
        false => Ok(()),
    }
}

/// Asks before something is done that only the file says and that could do harm.
fn consent(terms: &Terms<RedactedText>, asked: &ExperimentSpec, args: &RerunArgs) -> Result<(), Failure> {
    let builds = &terms.builds;
    let BuildsTerms { a, b, build, start, before_block, .. } = builds;
    let commands = [a, b, build, start, before_block, &terms.changes.vary];
    let unix = asked.plans().iter().any(|plan| plan.carriage.unix.is_some() && !plan.carriage.unix_withheld);
    let mut reasons = Vec::new();
    if commands.into_iter().flatten().any(|command| !command.withheld) {
        reasons.push("run commands");
    }
    if script_file(terms).is_some_and(|file| !file.is_empty()) {
        reasons.push("run a script of this machine");
    }
    let sent = body_file(terms).or_else(|| traffic_file(terms)).or_else(|| other_body_file(terms));
    if sent.is_some() || logs(terms).is_some() {
        reasons.push("send a file of this machine");
    }
    if !terms.changes.may_signal.is_empty() {
        reasons.push("pause processes of this machine for milliseconds (--may-signal)");
    }
    if terms.fleet.is_some() {
        reasons.push("log in to other machines to generate load there (--fleet)");
    }
    if terms.probes.watch.is_some() {
        reasons.push("logs in to the server's machine, which is watched (--watch)");
    }
    if unix {
        reasons.push("use a unix socket");
    }
    if terms.public {
        reasons.push("put load on public addresses (--allow-public)");
    }
    if reasons.is_empty() || args.yes {
        return Ok(());
    }
    let what = format!("the run file's plan will {}", reasons.join(" and "));
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
    let now = plimsoll_study::recording::environment(experiment.environment.target_local);
    let then = &experiment.environment;
    for (what, then, now) in [
        ("plimsoll", &then.plimsoll, &now.plimsoll),
        ("kernel", &then.kernel, &now.kernel),
        ("processor", &then.cpu, &now.cpu),
        ("cores", &then.cores.to_string(), &now.cores.to_string()),
    ] {
        if then != now {
            note(&format!("warning: the machine differs from the record: {what} '{now}' instead of '{then}'"));
        }
    }
}

/// Words as a shell reads them, and as a terminal may have them.
fn command_text(words: &[String]) -> String {
    let shown = |word: &String| {
        let word: String = word.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        shell::word(&word)
    };
    words.iter().map(shown).collect::<Vec<_>>().join(" ")
}
