//! `plimsoll replay`: what access logs hold, asked again at its times. From what is asked on it goes the way of a load (`run`).

use super::traffic::{ReadingMeter, folded, folds, patterns, reading, refuse_unread, strictly};
use super::{replay_file, run};
use crate::args::{LogArgs, ReplayArgs, RequestArgs, SchemaArgs, ScriptArgs, all_of, redaction};
use crate::fields;
use crate::plan_from_args;
use crate::quantity::{flag, path_text, positive_time};
use plimsoll_model::completion::FromFile;
use plimsoll_model::failure::Failure;
use plimsoll_model::terms::{LogReadingTerms, ReplayTerms};
use plimsoll_model::units::{SECOND, parse_number};
use plimsoll_model::{LoadShape, Plan, Redact, ReplayFacts, RunAsked, Terms};
use plimsoll_report::format;
use plimsoll_study::logs::{Counts, LogRead, Logs};
use plimsoll_study::output::note;
use plimsoll_traffic::replay::{Gathered, Gathering, ReplayChoice, ReplayDefaults, ReplayError, ReplayTiming};
use plimsoll_traffic::target_url::Url;
use std::path::PathBuf;

/// Most and least that time or visitors are multiplied by.
const TIMES: std::ops::RangeInclusive<f64> = 0.001..=1000.0;

/// What the flags ask for. The logs are read.
pub fn asked(args: &ReplayArgs) -> Result<(RunAsked<Plan>, Terms<String>), Failure> {
    let speed_milli = times("--speed", args.speed.as_deref())?;
    let scale_milli = times("--scale", args.scale.as_deref())?;
    if let Some(file) = replay_file::among(&args.logs) {
        return replay_file::asked(args, file, request(args), scale_milli);
    }
    let (stop_if, fail_if) = run::conditions(&args.stop_if, &all_of(&args.fail_if))?;
    let Some(target) = &args.target else {
        return Err(Failure::usage("--target URL: a log does not say where to ask"));
    };
    if args.generator.arrivals.is_some() {
        return Err(Failure::usage("--arrivals: the log says when requests arrive; leave it out"));
    }
    let length_ns = args.duration.as_deref().map(|text| positive_time("--duration", text)).transpose()?;
    // Everything that can be wrong with flags is found before a long log is read.
    let (mut plan, mut terms) = plan_from_args::plan(&request(args), &args.generator, &ScriptArgs::default())?;
    let words = LogWords {
        logs: &args.logs,
        target,
        headers: &args.headers,
        reading: &args.log,
        only: &args.only,
        skip: &args.skip,
        with_unsafe: args.allow_unsafe,
    };
    let replay = ReplayTerms { speed_milli, scale_milli, length_ns, ..words.terms(&plan)? };
    terms.probes = plan_from_args::probes(&args.probes)?;
    terms.profiles = plan_from_args::profiles(&args.profiles);
    terms.output = plan_from_args::output(&args.out, args.output.as_deref())?;
    terms.fail_if = fail_if;
    let FromFile { traffic, arrivals } =
        of_logs(&replay, plan.load.seed, redaction(args.redact, args.keep_failed_bodies), args.out.quiet)?;
    plan.traffic = traffic;
    if let Some(arrivals) = arrivals {
        plan.load.duration_ns = arrivals.rate().duration_ns();
        plan.load.shape = LoadShape::Given { arrivals };
    }
    if plan.load.duration_ns.is_none_or(|ns| ns > 120 * SECOND) {
        plan.load.interval_ns = SECOND;
    }
    terms.replay = Some(replay);
    Ok((RunAsked { plan, stop_if, profiles: None }, terms))
}

/// What is said of logs, wherever they are asked again.
pub struct LogWords<'a> {
    pub logs: &'a [PathBuf],
    /// Where: a URL.
    pub target: &'a str,
    pub headers: &'a [String],
    pub reading: &'a LogArgs,
    pub only: &'a [String],
    pub skip: &'a [String],
    pub with_unsafe: bool,
}

impl LogWords<'_> {
    /// The terms of this, all of it and as it was; what answers are to be is that of `plan`.
    pub fn terms(&self, plan: &Plan) -> Result<ReplayTerms<String>, Failure> {
        let LogArgs { log_format, field, session, fold, strict } = self.reading.clone();
        Ok(ReplayTerms {
            logs: self.logs.iter().map(|log| path_text("LOG", log)).collect::<Result<_, _>>()?,
            target: self.target.to_owned(),
            headers: self.headers.iter().map(|text| header_text(text)).collect::<Result<_, _>>()?,
            ok_status: plan.traffic.routes[0].ok_status.clone(),
            timeout_ns: plan.traffic.routes[0].timeout_ns,
            reading: LogReadingTerms { log_format, field, session, fold, strict },
            speed_milli: 1000,
            scale_milli: 1000,
            only: self.only.to_vec(),
            skip: self.skip.to_vec(),
            with_unsafe: self.with_unsafe,
            length_ns: None,
            drawn: false,
        })
    }
}

/// The request that everything of the log has in common: its target, and how it is carried.
fn request(args: &ReplayArgs) -> RequestArgs {
    RequestArgs {
        url: args.target.clone(),
        file: None,
        curl: None,
        target: None,
        method: None,
        headers: args.headers.clone(),
        body: None,
        timeout: args.timeout.clone(),
        ok_status: args.ok_status.clone(),
        follow: None,
        ok_grpc: None,
        in_turn: false,
        schema: SchemaArgs::default(),
        no_keepalive: args.no_keepalive,
        max_connections: args.max_connections.clone(),
        connection: args.connection.clone(),
        no_preflight: args.no_preflight,
        allow_public: args.allow_public,
        redact: args.redact,
        keep_failed_bodies: args.keep_failed_bodies,
    }
}

/// A header field as terms have it.
fn header_text(text: &str) -> Result<String, Failure> {
    fields::header(text).map(|(name, value)| format!("{name}: {value}"))
}

/// `2x`, in thousandths.
fn times(name: &str, text: Option<&str>) -> Result<u64, Failure> {
    let Some(text) = text else { return Ok(1000) };
    let number = text.trim().strip_suffix(['x', 'X']).unwrap_or(text);
    match flag(name, parse_number(number))? {
        times if TIMES.contains(&times) => Ok((times * 1e3).round() as u64),
        _ => Err(Failure::usage(format!("{name}: '{text}' is not between {}x and {}x", TIMES.start(), TIMES.end()))),
    }
}

/// The load that logs make. What was made of them is said on standard error, unless `quiet`.
pub fn of_logs(replay: &ReplayTerms<String>, seed: u64, redact: Redact, quiet: bool) -> Result<FromFile, Failure> {
    let LogReadingTerms { log_format, field, session, fold, strict } = replay.reading.clone();
    let reading = LogArgs { log_format, field, session, fold, strict };
    let Url { origin, path, authorization } = Url::read(&replay.target)?;
    let prefix = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let mut headers = replay.headers.iter().map(|text| fields::header(text)).collect::<Result<Vec<_>, _>>()?;
    plan_from_args::push_authorization(&mut headers, authorization);
    let paths: Vec<PathBuf> = replay.logs.iter().map(PathBuf::from).collect();
    let choice = LogChoice {
        logs: &paths,
        reading: &reading,
        only: &replay.only,
        skip: &replay.skip,
        with_unsafe: replay.with_unsafe,
        prefix,
    };
    let (gathered, logs, counts) = gathered(&choice)?;
    let (speed_milli, scale_milli, lines) = (replay.speed_milli, replay.scale_milli, counts.read);
    let timing = ReplayTiming { seed, speed_milli, scale_milli, length_ns: replay.length_ns, lines };
    let without_method = gathered.without_method();
    let timed = match replay.drawn {
        true => gathered.in_sessions(seed, lines),
        false => gathered.timed(&timing),
    };
    let timed = timed.map_err(|error| refused(replay, &error, without_method))?;
    let defaults = ReplayDefaults { headers, ok_status: replay.ok_status.clone(), timeout_ns: replay.timeout_ns };
    let traffic = timed.traffic(origin, &defaults, redact);
    if !quiet && let Some(listed) = &traffic.listed {
        let asked = (timed.requests(), timed.endpoints(), timed.length_ns);
        note(&said(&logs, &counts, asked, &listed.facts));
    }
    Ok(FromFile { traffic, arrivals: timed.arrivals })
}

/// What of which logs is taken.
pub struct LogChoice<'a> {
    pub logs: &'a [PathBuf],
    pub reading: &'a LogArgs,
    pub only: &'a [String],
    pub skip: &'a [String],
    pub with_unsafe: bool,
    /// What paths begin with besides.
    pub prefix: &'a str,
}

/// The requests of logs, how these were read, and how many lines.
pub fn gathered(choice: &LogChoice) -> Result<(Gathered, Vec<LogRead>, Counts), Failure> {
    let (folding, only) = (folds(choice.reading)?, patterns("--only", choice.only)?);
    let skip = patterns("--skip", choice.skip)?;
    let fold = |path: &str| folded(&folding, path);
    let wanted = |request: &str| {
        (only.is_empty() || only.iter().any(|pattern| pattern.is_match(request)))
            && !skip.iter().any(|pattern| pattern.is_match(request))
    };
    let mut logs = Logs::open(choice.logs, reading(choice.reading))?;
    let taken = ReplayChoice {
        fold: if folding.is_empty() { None } else { Some(&fold) },
        wanted: &wanted,
        with_unsafe: choice.with_unsafe,
        prefix: choice.prefix,
    };
    let (mut gathering, mut meter) = (Gathering::new(taken), ReadingMeter::new());
    let counts = logs.each(|entry, _| gathering.add(entry), |read, length| meter.passing(read, length))?;
    meter.clear();
    strictly(choice.reading, &counts)?;
    refuse_unread(&counts)?;
    let gathered = gathering.finish().map_err(|error| {
        Failure::start(format!("{error}: take less of it: --only, --skip, or a log of a shorter time"))
    })?;
    Ok((gathered, logs.read(), counts))
}

/// Why logs are no load, with the way out.
fn refused(replay: &ReplayTerms<String>, error: &ReplayError, without_method: u64) -> Failure {
    let way_out = match error {
        ReplayError::TooMany if replay.scale_milli > 1000 => {
            "take less of it (--only, --skip, or a log of a shorter time), or a smaller --scale"
        }
        ReplayError::TooMany => "take less of it: --only, --skip, or a log of a shorter time",
        ReplayError::TooLong { .. } => {
            "take its beginning with -d TIME, let time run faster with --speed, or cut the log"
        }
        ReplayError::Nothing if without_method > 0 => {
            let lines = format::count(without_method);
            return Failure::start(format!(
                "{}: {error}: {lines} lines say no method: --field method=.PATH (or --log-format) says where it stands",
                replay.logs.join(", ")
            ));
        }
        ReplayError::Nothing if !replay.with_unsafe => {
            "methods other than GET and HEAD need --allow-unsafe, and --only, --skip and -d leave requests out"
        }
        ReplayError::Nothing => "--only, --skip and -d leave requests out",
    };
    Failure::start(format!("{}: {error}: {way_out}", replay.logs.join(", ")))
}

/// What was made of the logs, in a sentence.
fn said(logs: &[LogRead], counts: &Counts, asked: (u64, usize, u64), facts: &ReplayFacts) -> String {
    let (requests, endpoints, length_ns) = asked;
    let formats: Vec<String> = logs.iter().map(|log| format!("{} ({})", log.name, log.format)).collect();
    let (what, sessions) = match facts.drawn_from {
        None => ("replays", String::new()),
        Some(drawn_from) => ("draws from", format!(" of {} sessions", format::count(drawn_from.sessions))),
    };
    let mut text = format!(
        "{what} {} request{}{sessions} to {} endpoint{} in {}: {}",
        format::count(requests),
        if requests == 1 { "" } else { "s" },
        format::count(endpoints as u64),
        if endpoints == 1 { "" } else { "s" },
        format::duration(length_ns as f64),
        formats.join(", "),
    );
    if facts.spread {
        text.push_str("; its stamps tell whole seconds only, within which requests are spread");
    }
    let mut left_out: Vec<String> =
        facts.left_out.iter().map(|(why, count)| format!("{why} {}", format::count(*count))).collect();
    if counts.unparsed > 0 {
        left_out.push(format!("not understood {}", format::count(counts.unparsed)));
    }
    if !left_out.is_empty() {
        text.push_str(&format!("; left out: {}", left_out.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_or_refused() {
        for (text, expect) in [
            (None, Some(1000)),
            (Some("2x"), Some(2000)),
            (Some("0.5"), Some(500)),
            (Some("1.25X"), Some(1250)),
            (Some("0"), None),
            (Some("-1x"), None),
            (Some("2000x"), None),
            (Some("fast"), None),
            (Some("x"), None),
        ] {
            assert_eq!(times("--speed", text).ok(), expect, "{text:?}");
        }
    }
}
