//! Chooses the source of a target's measurements (readings) by the options of a study
//! ([`start_reading_source`]). The source is the probes of this machine, or with `--watch` an agent
//! on the server's machine.
//!
//! Not here: readings (`plimsoll-probe`), and their use (`plimsoll-study`).

use crate::fleet_location::{FleetLocation, SshHost};
use crate::message::WatchTask;
use crate::pipe_bus::PipeBus;
use crate::remote_readings::RemoteReadings;
use crate::service::system_identifier;
use crate::ssh_login::{read_own_executable, remote_agent_command};
use crate::watch_link::WatchLink;
use plimsoll_model::experiment_settings::ProbesSettings;
use plimsoll_model::failure::Failure;
use plimsoll_model::{ExperimentSettings, RemoteWatchSettings};
use plimsoll_probe::{ProbeEffort, ReadingSource, WatchTarget, Watcher};
use plimsoll_study::base::ResolvedTarget;

/// The option that copies this program to the server's machine.
const COPY_FLAG: &str = "--watch-copy";

/// Parses the location of a server that `--watch` names. The text must name exactly one machine.
pub fn parse_watch_host(text: &str) -> Result<SshHost, String> {
    let FleetLocation::Ssh(hosts) = FleetLocation::parse(text)? else {
        return Err(format!(
            "'{text}' is the address of a message bus, not of a machine: name the server's machine, such as \
             ssh://server1"
        ));
    };
    match hosts.as_slice() {
        [host] => Ok(host.clone()),
        hosts => Err(format!(
            "'{text}' names {machines} machines: name only the machine of the server",
            machines = hosts.len()
        )),
    }
}

/// Returns the source of a target's readings; `None` if the target is not measured.
pub fn start_reading_source(
    base: &ResolvedTarget,
    settings: &ExperimentSettings<String>,
    effort: ProbeEffort,
) -> Result<Option<Box<dyn ReadingSource>>, Failure> {
    let resolve = base.url_resolver();
    let watched = base.watch_target(&resolve);
    match &settings.probes.watch {
        Some(watch) => Ok(Some(Box::new(start_remote_measurement(watch, &settings.probes, &watched, effort)?))),
        None => {
            let watcher = Watcher::begin(&settings.probes, &watched, effort)?;
            Ok(watcher.map(|watcher| Box::new(watcher) as Box<dyn ReadingSource>))
        }
    }
}

/// Returns a remote source of readings for each of several targets if `--watch` is set, and
/// otherwise an empty list.
pub fn remote_reading_sources<'a>(
    bases: impl Iterator<Item = &'a ResolvedTarget>,
    settings: &ExperimentSettings<String>,
) -> Result<Vec<Box<dyn ReadingSource>>, Failure> {
    if settings.probes.watch.is_none() {
        return Ok(Vec::new());
    }
    let sources: Vec<_> =
        bases.map(|base| start_reading_source(base, settings, ProbeEffort::Little)).collect::<Result<_, Failure>>()?;
    Ok(sources.into_iter().flatten().collect())
}

/// Logs in to the server's machine and starts the measurement there.
fn start_remote_measurement(
    watch: &RemoteWatchSettings,
    settings: &ProbesSettings<String>,
    watched: &WatchTarget,
    effort: ProbeEffort,
) -> Result<RemoteReadings, Failure> {
    if watched.plan.connection_plan.unix.is_some() {
        return Err(Failure::usage(
            "--watch: the server of a unix socket is on this machine: leave --watch out, or name a host and port",
        ));
    }
    let host = parse_watch_host(&watch.url).map_err(|why| Failure::usage(format!("--watch: {why}")))?;
    let failed = |why: String| Failure::cannot_start(format!("--watch: {}: {why}", host.name));
    let program = if watch.copied { Some(read_own_executable(COPY_FLAG)?) } else { None };
    let bus = PipeBus::start(vec![remote_agent_command(&host, "--watch-only", program, COPY_FLAG)])?;
    let mut link = WatchLink::wait_for_agent(bus, &host.name).map_err(failed)?;
    let task = WatchTask {
        addresses: watched.plan.connection_plan.addresses.clone(),
        pid: settings.pid,
        process: settings.process.clone(),
        cgroup: settings.cgroup.clone(),
        thorough: effort == ProbeEffort::Thorough,
    };
    link.start_watching(&task).map_err(failed)?;
    let is_here = link.hello_message().is_some_and(|hello| is_this_machine(&hello.system));
    let generator = Watcher::begin_without_server_processes(settings, watched, is_here)?;
    Ok(RemoteReadings::start_receiving(link, &host.name, generator))
}

/// Whether an agent runs on this machine, possibly in a container. All processes on one machine,
/// even in containers, have the same boot id.
fn is_this_machine(theirs: &str) -> bool {
    let boot = |system: &str| system.split(' ').next().filter(|boot| !boot.is_empty()).map(str::to_owned);
    boot(theirs).is_some() && boot(theirs) == boot(&system_identifier())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_machine_is_watched() {
        assert_eq!(parse_watch_host("ssh://ann@server1:2222").map(|host| host.name), Ok("ann@server1:2222".to_owned()));
        for (text, part) in
            [("ssh://a,b", "2 machines"), ("server1", "ssh://server1"), ("nats://bus", "address of a message bus")]
        {
            assert!(parse_watch_host(text).is_err_and(|why| why.contains(part)), "{text}");
        }
    }

    #[test]
    fn a_machine_is_identified_by_its_boot() {
        let own = system_identifier();
        if let Some((boot, _)) = own.split_once(' ') {
            assert!(is_this_machine(&own) && is_this_machine(&format!("{boot} pid:[1]")), "{own}");
        }
        assert!(!is_this_machine("") && !is_this_machine("another pid:[1]"));
    }
}
