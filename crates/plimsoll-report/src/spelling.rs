//! Builds the command line that repeats a recorded experiment, as far as the run file contains its
//! flags. Every command line that plimsoll displays is built from the run file. Therefore no file
//! and no screen shows secrets that the run file withholds.
//!
//! Not here: the content of a run file (`plimsoll_model::terms`), and parsing command lines
//! (`args`, `plan_from_args`).

use plimsoll_model::completion::has_one_url;
use plimsoll_model::terms::{LogReadingTerms, ReplayTerms, SKEW_NS_MAX, START_NS_MAX};
use plimsoll_model::units::{SECOND, exact_duration};
use plimsoll_model::{
    AgentLossPolicy, Arrivals, BlocksSpec, BodySource, Criterion, EndpointChoice, ExperimentSpec, GrpcStatusSet,
    HttpChoice, Lengths, Load, LoadShape, OnInconclusive, PlanRecord, Redact, RedactedText, RouteRecord, Spin,
    StatusSet, Terms,
};
use plimsoll_traffic::target_url::default_port;

/// The default of `--timeout`, in ns. The built command line omits the flag if it has this value.
const TIMEOUT_NS: u64 = 30 * SECOND;

/// A command line that is being built, as a list of words.
struct CommandLine(Vec<String>);

impl CommandLine {
    fn switch(&mut self, flag: &str, on: bool) {
        if on {
            self.0.push(flag.to_owned());
        }
    }

    fn value(&mut self, flag: &str, value: impl std::fmt::Display) {
        self.0.push(format!("{flag}={value}"));
    }

    /// Adds a flag by its name without dashes. With the value `None`, the flag is added without a
    /// value.
    fn flag(&mut self, name: &str, value: Option<&str>) {
        match value {
            Some(value) => self.value(&format!("--{name}"), value),
            None => self.switch(&format!("--{name}"), true),
        }
    }

    fn optional(&mut self, flag: &str, value: Option<impl std::fmt::Display>) {
        value.into_iter().for_each(|value| self.value(flag, value));
    }

    fn text(&mut self, flag: &str, text: &Option<RedactedText>) {
        self.optional(flag, text.as_ref().map(|text| &text.text));
    }

    fn served(&mut self, flag: &str, served: &EndpointChoice<RedactedText>) {
        match served {
            EndpointChoice::ByTarget => self.value(flag, "auto"),
            EndpointChoice::At(urls) => {
                let urls: Vec<&str> = urls.iter().map(|url| url.text.as_str()).collect();
                self.value(flag, urls.join(","));
            }
        }
    }
}

/// Returns the words of the command line that repeats an experiment. `terms`: the flags that the
/// run file contains.
pub fn words(asked: &ExperimentSpec, terms: &Terms<RedactedText>) -> Vec<String> {
    let command = match asked {
        ExperimentSpec::Run(_) if terms.replay.is_some() => "replay",
        ExperimentSpec::Run(_) => "run",
        ExperimentSpec::Sweep(_) => "sweep",
        ExperimentSpec::Find(_) if terms.demo => "demo",
        ExperimentSpec::Find(_) => "find",
        ExperimentSpec::Explain(_) => "explain",
        ExperimentSpec::Overload(_) => "overload",
        ExperimentSpec::Prove(_) | ExperimentSpec::Ladder(_) => "prove",
    };
    let mut words = CommandLine(vec!["plimsoll".to_owned(), command.to_owned()]);
    let plans = asked.plans();
    let Some(first) = plans.first() else { return words.0 };
    if !terms.demo {
        request(&mut words, first, terms);
        connections(&mut words, first, terms);
    }
    study(&mut words, asked, terms);
    generator(&mut words, &first.load, asked, terms);
    watched(&mut words, asked, terms);
    words.optional("--fail-if", terms.fail_if.as_ref());
    words.switch("--on-inconclusive=pass", terms.on_inconclusive == Some(OnInconclusive::Pass));
    words.switch("--on-inconclusive=fail", terms.on_inconclusive == Some(OnInconclusive::Fail));
    output(&mut words, terms);
    let beside = matches!(asked, ExperimentSpec::Overload(overload) if overload.second_target.is_some());
    if let Some(replay) = &terms.replay {
        match replay.draws_sessions {
            true => words.0.push(replay.target.text.clone()),
            false => words.0.extend(replay.logs.iter().map(|log| log.text.clone())),
        }
    } else if let Some(mix) = &terms.mix {
        words.0.extend(mix.bases.iter().map(|base| base.text.clone()));
    } else if !terms.demo {
        let shown = if has_one_url(asked) || beside { &plans[..1] } else { &plans[..] };
        words.0.extend(shown.iter().map(|plan| url(plan)));
    }
    if let Some(script) = terms.script.as_ref().filter(|script| !script.args.is_empty()) {
        words.0.push("--".to_owned());
        words.0.extend(script.args.iter().map(|arg| arg.text.clone()));
    }
    words.0
}

fn request(words: &mut CommandLine, plan: &PlanRecord, terms: &Terms<RedactedText>) {
    let route = plan.traffic.first();
    let (ok_status, timeout_ns) = match (&terms.replay, &terms.mix) {
        (Some(replay), _) => {
            replayed(words, replay);
            (&replay.ok_status, replay.timeout_ns)
        }
        (None, Some(mix)) => {
            words.value("--file", &mix.file.text);
            mix.headers.iter().for_each(|header| words.value("--header", &header.text));
            (&mix.ok_status, mix.timeout_ns)
        }
        (None, None) => {
            words.optional("--lua", terms.script.as_ref().map(|script| &script.file.text));
            request_flags(words, route, terms);
            (&route.ok_status, route.timeout_ns)
        }
    };
    if timeout_ns != TIMEOUT_NS {
        words.value("--timeout", exact_duration(timeout_ns));
    }
    if *ok_status != StatusSet::default() {
        words.value("--ok-status", String::from(ok_status.clone()));
    }
    if let Some(ok) = route.ok_grpc.filter(|ok| *ok != GrpcStatusSet::default()) {
        words.value("--ok-grpc", ok);
    }
    words.switch("--in-turn", route.in_turn);
    if let Some(schema) = &terms.schema {
        schema.protos.iter().for_each(|file| words.value("--proto", &file.text));
        schema.proto_paths.iter().for_each(|folder| words.value("--proto-path", &folder.text));
        words.text("--descriptor-set", &schema.descriptor_set);
    }
    if plan.carriage.http != HttpChoice::Auto {
        words.value("--http", plan.carriage.http.name());
    }
    if plan.carriage.streams_max > 1 {
        words.value("--streams", plan.carriage.streams_max.to_string());
    }
    words.switch("--no-keepalive", !plan.carriage.keep_alive);
    words.optional("--max-connections", terms.connections_max);
    words.switch("--no-preflight", !terms.preflight && terms.script.is_none());
    words.switch("--allow-public", terms.public);
    words.switch("--redact=all", terms.redact == Redact::All);
    words.switch("--keep-failed-bodies", terms.redact == Redact::SecretsButBodies);
}

/// Adds the flags for replaying access logs: the log files, their format, and which requests to
/// send.
fn replayed(words: &mut CommandLine, replay: &ReplayTerms<RedactedText>) {
    match replay.draws_sessions {
        true => replay.logs.iter().for_each(|log| words.value("--replay", &log.text)),
        false => words.value("--target", &replay.target.text),
    }
    replay.headers.iter().for_each(|header| words.value("--header", &header.text));
    let times = |milli: u64| Some(milli).filter(|milli| *milli != 1000).map(|milli| milli as f64 / 1e3);
    words.optional("--speed", times(replay.speed_milli));
    words.optional("--scale", times(replay.scale_milli));
    replay.only.iter().for_each(|pattern| words.value("--only", pattern));
    replay.skip.iter().for_each(|pattern| words.value("--skip", pattern));
    words.switch("--allow-unsafe", replay.with_unsafe);
    words.optional("--duration", replay.length_ns.map(exact_duration));
    let LogReadingTerms { log_format, field, session, fold, strict } = &replay.reading;
    words.optional("--log-format", log_format.as_ref());
    words.optional("--field", field.as_ref());
    words.optional("--session", session.as_ref());
    fold.iter().for_each(|pattern| words.value("--fold", pattern));
    words.switch("--strict", *strict);
}

/// Adds the flags that describe the request, for a load with a single URL.
fn request_flags(words: &mut CommandLine, route: &RouteRecord, terms: &Terms<RedactedText>) {
    let usual = if terms.body.is_some() || route.ok_grpc.is_some() { "POST" } else { "GET" };
    words.optional("--method", Some(&route.method).filter(|method| *method != usual));
    // Credentials in the URL are also recorded as an `Authorization` header. This header is
    // omitted, because the URL contains the credentials already.
    let hidden = terms.targets.first().is_some_and(|target| target.user_info);
    let hidden = hidden.then(|| route.headers.iter().rposition(|(name, _)| name.eq_ignore_ascii_case("authorization")));
    for (at, (name, value)) in route.headers.iter().enumerate() {
        if hidden.flatten() != Some(at) {
            words.value("--header", format!("{name}: {value}"));
        }
    }
    words.optional("--follow", Some(route.follow).filter(|hops| *hops > 0));
    match &terms.body {
        None => {}
        Some(BodySource::Text) if route.body_bytes == 0 => words.value("--body", ""),
        Some(BodySource::Text) => words.value("--body", route.body_text()),
        Some(BodySource::Input) => words.value("--body", "-"),
        Some(BodySource::File(path)) => words.value("--body", format!("@{}", path.text)),
    }
}

fn connections(words: &mut CommandLine, plan: &PlanRecord, terms: &Terms<RedactedText>) {
    let carriage = &plan.carriage;
    words.optional("--connect-to", terms.connect_to.as_ref().map(|(host, port)| format!("{}:{port}", bracketed(host))));
    words.optional("--unix", carriage.unix.as_ref());
    let sources: Vec<String> = terms.injector.sources.iter().map(ToString::to_string).collect();
    words.optional("--source-ip", Some(sources.join(",")).filter(|sources| !sources.is_empty()));
    words.optional("--resolve-every", carriage.resolve.as_ref().map(|resolve| exact_duration(resolve.every_ns)));
    words.switch("--close=reset", carriage.close_reset);
    words.switch("--insecure", carriage.tls.as_ref().is_some_and(|tls| !tls.verify));
    words.text("--cacert", &terms.issuers);
    words.text("--cert", &terms.certificate);
    words.text("--key", &terms.key);
    words.switch("--no-resumption", carriage.tls.as_ref().is_some_and(|tls| !tls.resume));
}

fn study(words: &mut CommandLine, asked: &ExperimentSpec, terms: &Terms<RedactedText>) {
    match asked {
        ExperimentSpec::Run(run) => {
            words.optional("--stop-if", run.stop_if.as_ref());
            let load = &run.plan.load;
            if !matches!(load.shape, LoadShape::Given { .. }) {
                load_flags(words, load);
            }
        }
        ExperimentSpec::Sweep(sweep) => {
            let levels: Vec<String> = sweep.levels.iter().map(u64::to_string).collect();
            words.value("--concurrency", levels.join(","));
            match sweep.lengths {
                Lengths::Fixed(ns) => words.value("--for", exact_duration(ns)),
                Lengths::Budget(ns) => words.value("--budget", exact_duration(ns)),
            }
            words.value("--warmup", exact_duration(sweep.warmup_ns));
        }
        ExperimentSpec::Find(find) => {
            words.switch("--quick", terms.demo_quick);
            if !terms.demo {
                words.value("--slo", &find.slo);
            }
            words.value("--budget", exact_duration(find.budget_ns));
            words.optional("--max-rate", find.max_rate);
            words.optional("--soak", find.planning.soak_ns.map(exact_duration));
            words.optional("--headroom", find.planning.headroom.map(percent));
            words.optional("--need", find.planning.need_rps);
        }
        ExperimentSpec::Explain(explain) => {
            words.value("--slo", &explain.search.slo);
            words.value("--budget", exact_duration(explain.budget_ns));
            words.optional("--max-rate", explain.search.max_rate);
            for (flag, value) in terms.changes.flags() {
                words.flag(flag, value);
            }
            if terms.changes.vary.is_some() {
                let values: Vec<String> = explain.setting_values.iter().map(f64::to_string).collect();
                words.value("--values", values.join(","));
            }
        }
        ExperimentSpec::Overload(overload) => {
            words.value("--slo", &overload.search.slo);
            words.value("--budget", exact_duration(overload.budget_ns));
            words.optional("--line", overload.line_rps);
            words.optional("--retries", Some(overload.retries).filter(|times| *times > 0));
            words.optional("--against", overload.second_target.as_ref().map(url));
        }
        ExperimentSpec::Prove(prove) => {
            builds(words, terms);
            words.optional(
                "--measure",
                Some(prove.criterion).filter(|it| *it != Criterion::Goodput).map(Criterion::word),
            );
            words.value("--margin", percent(prove.margin));
            blocks(words, &prove.blocks);
        }
        ExperimentSpec::Ladder(ladder) => {
            builds(words, terms);
            words.switch("--ladder", true);
            blocks(words, &ladder.blocks);
        }
    }
}

fn load_flags(words: &mut CommandLine, load: &Load) {
    let name = if load.shape.is_open() { "--rate" } else { "--concurrency" };
    words.value(name, load.shape.curve());
    words.optional("--requests", load.requests_max);
    let staged = load.shape.curve().duration_ns().is_some();
    words.optional("--duration", load.duration_ns.filter(|_| !staged).map(exact_duration));
    words.optional("--warmup", Some(load.warmup_ns).filter(|ns| *ns > 0).map(exact_duration));
}

fn builds(words: &mut CommandLine, terms: &Terms<RedactedText>) {
    let builds = &terms.builds;
    words.text("--a", &builds.a);
    words.text("--b", &builds.b);
    words.text("--build", &builds.build);
    words.text("--start", &builds.start);
    words.optional("--start-timeout", Some(builds.start_ns_max).filter(|ns| *ns != START_NS_MAX).map(exact_duration));
    words.text("--before-block", &builds.before_block);
    words.switch("--record-commands", builds.record_commands);
}

fn blocks(words: &mut CommandLine, blocks: &BlocksSpec) {
    words.value("--budget", exact_duration(blocks.budget_ns));
    words.optional("--blocks", blocks.blocks_max);
    words.switch("--allow-different-answers", blocks.answers_may_differ);
    words.optional("--concurrency", blocks.users);
    words.optional("--rate", blocks.rate);
    words.optional("--for", blocks.load_ns.map(exact_duration));
    words.optional("--warmup", blocks.warmup_ns.map(exact_duration));
}

fn generator(words: &mut CommandLine, load: &Load, asked: &ExperimentSpec, terms: &Terms<RedactedText>) {
    words.optional("--threads", terms.injector.workers);
    match terms.injector.spin {
        Spin::Auto => {}
        Spin::On => words.value("--spin", "on"),
        Spin::Off => words.value("--spin", "off"),
    }
    words.value("--seed", load.seed);
    if let Some(fleet) = &terms.fleet {
        words.value("--fleet", &fleet.place);
        words.switch("--fleet-copy", fleet.copied);
        words.switch("--on-loss=stop", fleet.on_loss == AgentLossPolicy::Stop);
        words.optional("--agents", fleet.agents.as_deref());
        words.optional("--wait", fleet.wait_ns.map(exact_duration));
        words.optional("--weights", fleet.weights.as_deref());
        words.optional("--max-skew", Some(fleet.skew_ns_max).filter(|ns| *ns != SKEW_NS_MAX).map(exact_duration));
    }
    let arrivals = match asked {
        ExperimentSpec::Run(run) => run.plan.load.shape.arrivals(),
        ExperimentSpec::Sweep(_) => Arrivals::Constant,
        ExperimentSpec::Find(find) => find.arrivals,
        ExperimentSpec::Explain(explain) => explain.search.arrivals,
        ExperimentSpec::Overload(overload) => overload.search.arrivals,
        ExperimentSpec::Prove(_) | ExperimentSpec::Ladder(_) => {
            asked.blocks().map_or(Arrivals::Constant, |blocks| blocks.arrivals)
        }
    };
    // The flag for the spacing of arrivals is added only if the spacing differs from the default.
    // The default is Poisson for a search and constant spacing for any other load.
    let is_search = matches!(asked, ExperimentSpec::Find(_) | ExperimentSpec::Explain(_) | ExperimentSpec::Overload(_));
    words.switch("--arrivals=poisson", arrivals == Arrivals::Poisson && !is_search);
    words.switch("--arrivals=constant", arrivals == Arrivals::Constant && is_search);
}

fn watched(words: &mut CommandLine, asked: &ExperimentSpec, terms: &Terms<RedactedText>) {
    let probes = &terms.probes;
    words.optional("--pid", probes.pid);
    words.optional("--process", probes.process.as_ref());
    if let Some(metrics) = &probes.metrics {
        words.served("--metrics", metrics);
    }
    words.text("--cgroup", &probes.cgroup);
    words.switch("--no-probes", probes.none);
    if let Some(watch) = &probes.watch {
        words.value("--watch", &watch.place);
        words.switch("--watch-copy", watch.copied);
    }
    if let Some(profiles) = &terms.profiles {
        words.served("--pprof", &profiles.endpoint);
        let usual = if matches!(asked, ExperimentSpec::Prove(_)) { 5 } else { 10 };
        words.optional("--pprof-seconds", Some(profiles.seconds).filter(|seconds| *seconds != usual));
    }
}

fn output(words: &mut CommandLine, terms: &Terms<RedactedText>) {
    let output = &terms.output;
    words.text("--output", &output.file);
    if let Some((folder, name)) = &output.files {
        words.value("--dir", &folder.text);
        words.value("--name", &name.text);
    }
    words.text("--store", &output.store);
    output.tags.iter().for_each(|(key, value)| words.value("--tag", format!("{key}={value}")));
    words.switch("--json", output.json);
    words.switch("--json-lines", output.json_lines);
    words.switch("--verbose", output.verbose);
    words.switch("--quiet", output.quiet);
}

fn bracketed(host: &str) -> std::borrow::Cow<'_, str> {
    plimsoll_model::traffic::url_host(host)
}

/// Formats the URL of a plan's first request. The port is omitted if it is the default port of the
/// scheme.
fn url(plan: &PlanRecord) -> String {
    let origin = &plan.traffic.origin;
    let target = &plan.traffic.first().target;
    match default_port(&origin.scheme) == Some(origin.port) {
        true => format!("{}://{}{target}", origin.scheme, bracketed(&origin.host)),
        false => format!("{origin}{target}"),
    }
}

/// Formats a share as a percentage with enough digits that parsing the text gives an equal value.
fn percent(share: f64) -> String {
    let digits = format!("{:.9}", share * 100.0);
    format!("{}%", digits.trim_end_matches('0').trim_end_matches('.'))
}
