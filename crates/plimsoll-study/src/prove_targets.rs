//! Resolves the targets of a comparison. A target is a running server, found by its listening
//! socket, or a build to start. Also warns if two running servers have different uptimes.
//!
//! Not here: the order in which the sides are measured, and the decision (`plimsoll-analysis`).

use crate::base::{ResolvedTarget, authorization_from_url};
use crate::pprof::Endpoint;
use crate::preflight::run_preflight;
use crate::profile_capture::RequestedProfiles;
use crate::runner::builds::ComparisonTarget;
use crate::script_run::{ScriptRun, into_author_factory};
use crate::subject;
use plimsoll_analysis::Sentence;
use plimsoll_analysis::prove::arm_name;
use plimsoll_analysis::prove::process_age::{ProcessAge, process_age_warning};
use plimsoll_model::experiment_settings::ProfilesSettings;
use plimsoll_model::failure::Failure;
use plimsoll_model::{Arm, Criterion, EndpointChoice, ExperimentSettings, HttpChoice, Plan};
use plimsoll_probe::{FoundServer, ServerFinder};
use plimsoll_sys::group::CpuClocks;
use plimsoll_sys::probe::process::{read_process_stat, ticks_per_second};

/// Resolves the target of each side (arm) of a comparison. A comparison by CPU time fails if a
/// server's processes are not visible.
pub fn resolve_targets(
    arms: &[Arm<Plan>],
    settings: &ExperimentSettings<String>,
    criterion: Criterion,
) -> Result<Vec<ComparisonTarget>, Failure> {
    let commands = [&settings.builds.a, &settings.builds.b];
    let mut targets = Vec::with_capacity(arms.len());
    for (number, arm) in arms.iter().enumerate() {
        let base = ResolvedTarget::resolve_target(&arm.plan, settings)?;
        let authoring = ScriptRun::from_settings(&arm.plan, settings)?.map(into_author_factory);
        if arm.is_started_per_load {
            let command = commands.get(number).copied().cloned().flatten();
            let missing =
                || Failure::cannot_start("the command that starts a build is missing: give --a CMD and --b CMD");
            let command = command.ok_or_else(missing)?;
            let command = subject::server_start_command(&command, arm.plan.traffic.origin.port);
            targets.push(ComparisonTarget { base, command: Some(command), finder: None, authoring });
            continue;
        }
        let finder = ServerFinder::for_listener_process(&base.watch_target(&base.url_resolver()));
        // With --watch, an agent on the server's machine finds the process, so this machine need
        // not see the process.
        if let (Criterion::Cpu, Err(reason), None) = (criterion, finder.initial_result(), &settings.probes.watch) {
            return Err(Failure::usage(format!("--measure cpu: of {}, {reason}", arm_name(number as u8))));
        }
        targets.push(ComparisonTarget { base, command: None, finder: Some(finder), authoring });
    }
    Ok(targets)
}

/// Sends a preflight request to each running server. Both sides are measured with the protocol of
/// the first response, because a comparison of two different protocols is unfair. Returns the
/// warnings of the preflight requests.
pub fn send_preflight_requests(
    targets: &mut [ComparisonTarget],
    settings: &ExperimentSettings<String>,
) -> Result<Vec<String>, Failure> {
    let mut warnings = Vec::new();
    // The HTTP version of the first server's response, and the name of that server.
    let mut spoken: Option<(HttpChoice, String)> = None;
    for (number, target) in targets.iter_mut().enumerate().filter(|(_, target)| target.command.is_none()) {
        let plan = &mut target.base.plan;
        let (is_open, name) = (plan.connection_plan.negotiates_http_version(), arm_name(number as u8));
        if let (true, Some((http, _))) = (is_open, &spoken) {
            plan.connection_plan.fix_http_version(*http);
        }
        let said = run_preflight(plan, &target.base.injector, settings).map_err(|failure| match &spoken {
            Some((http, first)) if is_open => Failure::cannot_start(format!(
                "{failure}; {first} speaks HTTP/{version}, and {name} must speak the same version (--http 1.1 sets \
                 this version for all targets)",
                version = http.name()
            )),
            _ => failure,
        })?;
        if is_open && spoken.is_none() && !plan.connection_plan.negotiates_http_version() {
            spoken = Some((plan.connection_plan.http, name.to_string()));
        }
        warnings.extend(said.iter().map(|warning| format!("{name}: {warning}")));
    }
    Ok(warnings)
}

/// Returns the uptime and the CPU time so far of a server process on this machine.
fn process_age(server: &FoundServer) -> Option<ProcessAge> {
    let started = |pid: &u32| read_process_stat(*pid, &mut Vec::new()).ok().map(|(stat, _)| stat.started_ticks);
    let first_s = server.roots.iter().filter_map(started).min()? as f64 / ticks_per_second() as f64;
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let uptime_s: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    let cpu_s = CpuClocks::with_descendants(&server.roots).cpu_ns() as f64 / 1e9;
    Some(ProcessAge { age_s: (uptime_s - first_s).max(0.0), cpu_s })
}

/// Compares the uptimes of two running servers. Returns a warning if the uptimes differ, and a
/// general note about comparing running processes. Returns neither warning nor note if both URLs
/// lead to the same server, or if a server process is not found.
pub fn uptime_warnings(targets: &[ComparisonTarget]) -> (Option<Sentence>, Option<&'static str>) {
    let [a, b] = targets else { return (None, None) };
    let (Some(a), Some(b)) = (&a.finder, &b.finder) else { return (None, None) };
    let (Ok(found_a), Ok(found_b)) = (a.initial_result(), b.initial_result()) else { return (None, None) };
    if found_a.roots == found_b.roots {
        return (None, None);
    }
    let differing = process_age(found_a).zip(process_age(found_b)).and_then(|(a, b)| process_age_warning(&a, &b));
    let hint = "with two URLs, prove compares two running processes, not two builds: one build, started twice, often \
        differs by 1 to 2 %. To compare builds, use --a CMD --b CMD, which starts the server anew for each load";
    (differing, Some(hint))
}

/// Returns the profiles to take in a comparison; `None` if the user requested none. Checks first
/// that running servers agree to profile, so that no load is wasted.
pub fn requested_profiles(
    settings: &ExperimentSettings<String>,
    targets: &[ComparisonTarget],
) -> Result<Option<RequestedProfiles>, Failure> {
    let (Some(ProfilesSettings { endpoint: served, seconds }), [a, b]) = (&settings.profiles, targets) else {
        return Ok(None);
    };
    let (public, seconds) = (settings.public, *seconds);
    let flagged = |error: Failure| Failure::usage(format!("--pprof: {error}"));
    let of_target = |target: &ComparisonTarget, number| {
        let plan = &target.base.plan;
        Endpoint::default_endpoint_on_target(plan, authorization_from_url(plan, settings, number))
    };
    let [a, b] = match served {
        EndpointChoice::ByTarget => [of_target(a, 0), of_target(b, 1)],
        EndpointChoice::At(urls) => {
            [urls.first(), urls.last()].map(|url| Endpoint::resolve_base_url(url.map_or("", |url| url), public))
        }
    };
    let endpoints = [a.map_err(flagged)?, b.map_err(flagged)?];
    let fresh = targets.iter().any(|target| target.command.is_some());
    if !fresh {
        let [a, b] = &endpoints;
        a.check_cpu_profiles_permitted(seconds)?;
        // A server needs a while to end a cancelled profile. Because of this delay, a server that
        // is both sides of the comparison is checked only once.
        if b.shown != a.shown {
            b.check_cpu_profiles_permitted(seconds)?;
        }
    }
    Ok(Some(RequestedProfiles::new(endpoints.into(), seconds)))
}
