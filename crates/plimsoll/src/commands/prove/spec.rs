//! Converts the flags of a comparison to arms (the compared sides), a criterion (the measure that
//! decides) and limits. All flags are checked before any host name is resolved.

use crate::args::{ProveArgs, RequestArgs};
use crate::plan_from_args;
use plimsoll_analysis::study::climb::NEW_TARGET_WARMUP_NS_MIN;
use plimsoll_model::bounds::ARM_COUNT_RANGE;
use plimsoll_model::experiment_settings::{BuildsSettings, ProfilesSettings, parse_git_revision};
use plimsoll_model::failure::Failure;
use plimsoll_model::redact;
use plimsoll_model::units::{parse_duration_ns, parse_number};
use plimsoll_model::{
    Arm, BlocksSpec, Criterion, EndpointChoice, ExperimentSettings, ExperimentSpec, LadderSpec, Plan, ProveSpec,
    completion,
};
use plimsoll_report::format::flag_time;
use plimsoll_study::quantity::{parse_positive_count, parse_positive_time, with_flag_name};
use plimsoll_study::traffic_file;
use plimsoll_sys::system_text;
use plimsoll_traffic::file::FileLoad;

fn parse_margin(text: &str) -> Result<f64, Failure> {
    let bad =
        || Failure::usage(format!("--margin: '{text}' is not a percentage between 0 and 100; write for example 2%"));
    let percent = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok()).ok_or_else(bad)?;
    if percent > 0.0 && percent < 100.0 { Ok(percent / 100.0) } else { Err(bad()) }
}

fn parse_measure(text: &str) -> Result<Criterion, Failure> {
    let bad = || Failure::usage(format!("--measure: '{text}' is not goodput, p50, p99 or cpu"));
    Criterion::from_flag_word(text).ok_or_else(bad)
}

/// Returns the settings for the profiles of both sides; `None` without --pprof.
fn profile_settings(args: &ProveArgs) -> Result<Option<ProfilesSettings<String>>, Failure> {
    let Some(named) = &args.pprof else { return Ok(None) };
    if args.ladder {
        return Err(Failure::usage("--pprof: profiles need a comparison of two sides; leave --ladder out"));
    }
    let served = EndpointChoice::parse(named, true);
    match &served {
        // Builds that run one after another may serve profiles at the same address.
        EndpointChoice::At(urls) if urls.len() < 2 && args.a.is_none() => Err(Failure::usage(
            "--pprof: give both addresses as --pprof=URL_A,URL_B, or none if each side serves /debug/pprof",
        )),
        _ => Ok(Some(ProfilesSettings { endpoint: served, seconds: args.pprof_seconds })),
    }
}

/// Returns a usage error if a side begins with `git:` but names no revision. Also returns a usage
/// error if a revision is given without --start, or --start without a revision.
fn check_revisions(args: &ProveArgs) -> Result<(), Failure> {
    let sides = [("--a", &args.a), ("--b", &args.b)];
    let named = sides.iter().filter_map(|(flag, side)| Some((*flag, side.as_deref()?)));
    for (flag, side) in named.clone().filter(|(_, side)| side.starts_with("git:")) {
        if parse_git_revision(side).is_none() {
            return Err(Failure::usage(format!(
                "{flag}: write git: and the name of a revision, as git:main or git:HEAD~1"
            )));
        }
        if args.start.is_none() {
            return Err(Failure::usage(format!(
                "{flag} {side}: the start command is missing. Add --start './server --port {{port}}', and --build \
                 if the revision must be built"
            )));
        }
    }
    let any = named.into_iter().any(|(_, side)| parse_git_revision(side).is_some());
    match args.start.is_some() && !any {
        true => Err(Failure::usage(
            "--start: the command starts a revision from git, but neither --a nor --b names one; give a side as --a \
             git:main",
        )),
        false => Ok(()),
    }
}

/// Returns the request with a complete address: a free local port if the URL is missing or only a
/// path.
fn request_with_address(request: &RequestArgs) -> Result<RequestArgs, Failure> {
    let path = match request.url.as_deref() {
        None if request.file.is_none() && request.curl.is_none() => "/",
        Some(path) if path.starts_with('/') => path,
        _ => return Ok(request.clone()),
    };
    let free = plimsoll_sys::tcp::unused_loopback_address();
    let free = free.map_err(|error| Failure::cannot_start(format!("no free port: {}", system_text(&error))))?;
    Ok(RequestArgs { url: Some(format!("http://{free}{path}")), ..request.clone() })
}

/// Converts the flags to a comparison.
pub fn spec_from_args(args: &ProveArgs) -> Result<(ExperimentSpec<Plan>, ExperimentSettings<String>), Failure> {
    let commands = args.a.is_some();
    check_revisions(args)?;
    // Without a URL, the traffic file or --target names the target.
    let targets = 1 + args.more.len();
    match (commands, args.ladder, targets) {
        (true, _, 1) | (false, false, 2) => {}
        (false, true, targets) if ARM_COUNT_RANGE.contains(&targets) => {}
        (true, _, _) => return Err(Failure::usage("--a and --b: give one URL, where both builds listen")),
        (false, true, _) => {
            return Err(Failure::usage(format!(
                "--ladder: give 2 to {maximum} URLs to compare",
                maximum = ARM_COUNT_RANGE.end()
            )));
        }
        (false, false, 1) => {
            return Err(Failure::usage("a comparison needs two targets: give a second URL, or --a CMD and --b CMD"));
        }
        (false, false, _) => {
            return Err(Failure::usage("plimsoll prove compares two URLs; for more URLs add --ladder"));
        }
    }
    let primary = parse_measure(&args.measure)?;
    if args.ladder && primary != Criterion::Goodput {
        return Err(Failure::usage("--ladder: plimsoll compares the URLs by goodput; leave --measure out"));
    }
    if args.concurrency.is_some() && primary.needs_fixed_rate() {
        return Err(Failure::usage(format!(
            "-c: {measure} is measured at a fixed rate; set --rate instead",
            measure = primary.flag_word()
        )));
    }
    if args.rate.is_some() && !primary.needs_fixed_rate() {
        return Err(Failure::usage(format!(
            "--rate: {measure} is measured with a fixed number of users, not at a rate; set -c instead",
            measure = primary.flag_word()
        )));
    }
    if args.generator.arrivals.is_some() && !primary.needs_fixed_rate() {
        return Err(Failure::usage(
            "--arrivals: only loads at a fixed rate (--measure p50 or p99) have arrivals; leave --arrivals out",
        ));
    }
    if args.request.max_connections.is_some() && !primary.needs_fixed_rate() {
        return Err(Failure::usage(
            "--max-connections: a closed loop has one connection for each user; set -c instead",
        ));
    }
    let blocks_max = args.blocks.as_deref().map(|text| parse_positive_count("--blocks", text)).transpose()?;
    let users = args.concurrency.as_deref().map(|text| parse_positive_count("--concurrency", text)).transpose()?;
    if users.is_some_and(|users| users > 1_000_000) {
        return Err(Failure::usage("--concurrency: at most 1M users"));
    }
    let rate = match args.rate.as_deref().map(parse_number).transpose() {
        Ok(rate) if rate.is_none_or(|rate| rate > 0.0 && rate <= 1e8) => rate,
        Ok(_) => return Err(Failure::usage("--rate: must be more than 0 and at most 100M requests a second")),
        Err(error) => return Err(Failure::usage(format!("--rate: {error}"))),
    };
    let load_ns = args.load_time.as_deref().map(|text| parse_positive_time("--for", text)).transpose()?;
    let warmup_ns = with_flag_name("--warmup", args.warmup.as_deref().map(parse_duration_ns).transpose())?;
    let fail_if = match args.fail_if.as_deref() {
        None => None,
        Some("worse") if !args.ladder => Some("worse".to_owned()),
        Some("worse") => {
            return Err(Failure::usage(
                "--fail-if cannot be used with --ladder, which gives no verdict: leave --fail-if out",
            ));
        }
        Some(other) => {
            return Err(Failure::usage(format!(
                "--fail-if: '{other}' is no verdict to fail on; write worse, and choose the measure with \
                 --measure"
            )));
        }
    };
    let margin = parse_margin(&args.margin)?;
    let budget_ns = parse_positive_time("--budget", &args.budget)?;
    let start_ns_max = parse_positive_time("--start-timeout", &args.start_timeout)?;
    if let Some(load_ns) = load_ns {
        let warmup_ns = warmup_ns.unwrap_or(if commands { NEW_TARGET_WARMUP_NS_MIN } else { 0 });
        let sides = if commands { 2 } else { targets as u64 };
        let block_ns = (load_ns.saturating_add(warmup_ns)).saturating_mul(sides);
        // The search for the number of users or the rate takes a quarter of the budget, so the
        // compared loads get three quarters.
        if block_ns > budget_ns / 4 * 3 {
            return Err(Failure::usage(format!(
                "--for {load_time}: one block, a load on each of {sides} sides, does not fit into --budget {budget}: \
                 increase --budget to {minimum}, or shorten --for",
                load_time = args.load_time.as_deref().unwrap_or_default(),
                budget = args.budget,
                minimum = flag_time(block_ns.saturating_mul(4).div_ceil(3))
            )));
        }
    }
    // Both sides get the same arrivals, because all plans have the same seed.
    let request = if commands { request_with_address(&args.request)? } else { args.request.clone() };
    let (mut plans, mut settings, file) =
        plan_from_args::plans_for_urls(&request, &args.more, &args.generator, &args.script)?;
    // Only a load at a fixed rate has arrivals, so only such a load takes the spacing of arrivals
    // from the traffic file.
    let file = if primary.needs_fixed_rate() { file } else { FileLoad::default() };
    let arrivals = plan_from_args::arrival_spacing(&args.generator, &file)?;
    plans.iter().try_for_each(traffic_file::refuse_unique_rows)?;
    let mut started = vec![None; plans.len()];
    if let (Some(a), Some(b)) = (&args.a, &args.b) {
        plans.push(plans[0].clone());
        started = vec![Some(a), Some(b)];
        let user_info = settings.targets[0].user_info;
        settings.targets = completion::number_equal_targets(&plans, &[user_info, user_info]);
    }
    let name = |plan: &Plan, command: Option<&String>| match command {
        Some(side) if parse_git_revision(side).is_some() => side.clone(),
        Some(command) if args.record_commands => command.clone(),
        Some(command) => redact::redact_command_line(command),
        None => plan.record().traffic.target_label(),
    };
    let arms = plans.into_iter().zip(started);
    let arms =
        arms.map(|(plan, command)| Arm { name: name(&plan, command), plan, is_started_per_load: command.is_some() });
    let blocks = BlocksSpec {
        arms: arms.collect(),
        users,
        rate,
        arrivals,
        load_ns,
        warmup_ns,
        budget_ns,
        blocks_max,
        answers_may_differ: args.allow_different_answers,
    };
    settings.probes.watch = plan_from_args::watch_settings(&args.watch)?;
    if settings.probes.watch.is_some() && args.a.is_some() {
        return Err(Failure::usage(
            "--watch: builds of --a and --b are started on this machine: leave --watch out, or give two URLs",
        ));
    }
    if let Some(first) = blocks.arms.first() {
        settings.fleet = plan_from_args::fleet_settings(&args.fleet, &first.plan, &settings)?;
    }
    settings.profiles = profile_settings(args)?;
    settings.builds = BuildsSettings {
        a: args.a.clone(),
        b: args.b.clone(),
        build: args.build.clone(),
        start: args.start.clone(),
        before_block: args.before_block.clone(),
        start_ns_max,
        record_commands: args.record_commands,
    };
    settings.fail_if = fail_if;
    settings.on_inconclusive = plan_from_args::verdict_when_inconclusive(&args.inconclusive);
    settings.output = plan_from_args::stored_output_settings(&args.out, args.output.as_deref(), &args.place)?;
    let asked = match args.ladder {
        true => ExperimentSpec::Ladder(LadderSpec { blocks }),
        false => ExperimentSpec::Prove(ProveSpec { blocks, criterion: primary, margin, profiles: None }),
    };
    Ok((asked, settings))
}
