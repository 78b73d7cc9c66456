//! Measures the target while a load runs ([`Watcher`]). Ten times a second, a separate thread reads
//! the kernel's figures about the server's processes, the host, control groups and sockets.
//!
//! A failed reading becomes a gap with its reason, and never fails the run. The readings include
//! the CPU time that the probes themselves use. This crate also sends single HTTP requests outside
//! any load ([`client`], [`fetch`]), and reads facts about this machine ([`machine_facts`]).
//!
//! Not here: the meaning of readings, the execution of loads, and reports.

#![forbid(unsafe_code)]

mod cgroup;
pub mod client;
mod downstream;
pub mod fetch;
mod finder;
mod functions;
mod host;
mod kernel;
mod machine;
pub mod machine_facts;
mod metrics;
mod metrics_text;
mod optional_file;
mod own_ports;
mod peers;
mod ports;
mod probe;
mod server;
mod sink;
mod sockets;
mod source;
#[cfg(test)]
mod tests;
mod threads;
mod watch_target;

pub use finder::{FoundServer, ServerFinder, has_process_name};
pub use machine::MachineRecorder;
pub use metrics::find_metrics_endpoint;
pub use probe::LiveServerCpu;
pub use sink::ProbeEffort;
pub use source::ReadingSource;
pub use watch_target::WatchTarget;

use metrics::MetricsProbe;
use plimsoll_model::Failure;
use plimsoll_model::Probes;
use plimsoll_model::experiment_settings::ProbesSettings;
use plimsoll_sys::clock::{monotonic_ns, thread_cpu_ns};
use probe::Probe;
use sink::Sink;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time between two samples, ns.
const SAMPLE_PERIOD_NS: u64 = 100_000_000;
/// The number of samples after which the sampling thread publishes its readings. A requested sample
/// is published at once.
const SAMPLES_PER_HANDOVER: u32 = 10;
/// The longest wait for a requested sample. A load is not delayed for a late sample.
const REQUESTED_SAMPLE_TIMEOUT: Duration = Duration::from_millis(200);

#[derive(Default)]
struct SharedState {
    /// Readings since the last `take_new_readings`; times are of the monotonic clock.
    readings: Probes,
    stop: bool,
    /// The number of samples that were requested so far.
    samples_requested: u64,
    /// The number of requested samples that were taken so far.
    samples_taken: u64,
}

struct WatcherChannel {
    /// The ids of other plimsoll processes that generate a part of the load.
    generator_pids: machine::GeneratorPids,
    state: Mutex<SharedState>,
    changed: Condvar,
}

impl WatcherChannel {
    fn lock(&self) -> MutexGuard<'_, SharedState> {
        // The state changes only by merging under the lock, so it is consistent even after a panic
        // of a probe.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `until_ns` or until a sample is requested. Returns the number of requested
    /// samples so far; `None` if the measurement has ended.
    fn wait_until(&self, until_ns: u64) -> Option<u64> {
        let mut state = self.lock();
        loop {
            let now_ns = monotonic_ns();
            if state.stop {
                return None;
            }
            if state.samples_requested > state.samples_taken || now_ns >= until_ns {
                return Some(state.samples_requested);
            }
            let left = Duration::from_nanos(until_ns - now_ns);
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A running measurement of the target. Dropping this value ends the measurement.
pub struct Watcher {
    shared: Arc<WatcherChannel>,
    live: LiveServerCpu,
    threads: Vec<JoinHandle<()>>,
}

/// The settings of a watcher: how to find the server, and where server and load run.
struct WatchSite {
    /// Finds the server's processes; `None` if the server's processes are measured on another
    /// machine.
    finder: Option<ServerFinder>,
    cgroup: Option<cgroup::CgroupProbe>,
    addresses: Vec<SocketAddr>,
    /// Whether the server is on this machine.
    local: bool,
    /// Whether the load comes from another machine.
    is_remote_load: bool,
}

impl Watcher {
    /// Starts to measure the process that listens on the target's address, or a named process,
    /// which must exist. Returns `None` if the user asks for no probes (`settings.is_disabled`).
    pub fn begin(
        settings: &ProbesSettings<String>,
        watched: &WatchTarget,
        effort: ProbeEffort,
    ) -> Result<Option<Watcher>, Failure> {
        if settings.is_disabled {
            return Ok(None);
        }
        let finder = ServerFinder::new(settings, watched)?;
        // A server process that is visible in `/proc` runs on this machine, whatever the server's
        // address.
        let local = watched.local || finder.initial_result().is_ok();
        let site = WatchSite {
            finder: Some(finder),
            cgroup: settings.cgroup.as_deref().map(cgroup::CgroupProbe::from_flag_path).transpose()?,
            addresses: watched.plan.connection_plan.addresses.clone(),
            local,
            is_remote_load: false,
        };
        Watcher::start(site, MetricsProbe::from_settings(settings, watched)?, effort, SAMPLES_PER_HANDOVER).map(Some)
    }

    /// Starts to measure a server on this machine: a named process, or the server that another
    /// machine reaches at `addresses`. The function fails if the server does not exist.
    pub fn begin_for_remote_load(
        settings: &ProbesSettings<String>,
        addresses: &[SocketAddr],
        effort: ProbeEffort,
    ) -> Result<Watcher, Failure> {
        let finder = ServerFinder::for_server_at_port(settings, addresses)?;
        finder.initial_result().clone().map_err(Failure::cannot_start)?;
        let site = WatchSite {
            finder: Some(finder),
            cgroup: settings.cgroup.as_deref().map(cgroup::CgroupProbe::from_flag_path).transpose()?,
            addresses: addresses.to_vec(),
            local: true,
            is_remote_load: true,
        };
        // The machine that reads the samples needs each sample immediately, so every sample is
        // published by itself.
        Watcher::start(site, None, effort, 1)
    }

    /// Starts to measure plimsoll, the other processes of this machine, and the server's own
    /// metrics, but not the server's processes. Another watcher, such as a watcher on the server's
    /// machine, measures the server's processes. `shared` says whether the server runs on this
    /// machine, for example in a container.
    pub fn begin_without_server_processes(
        settings: &ProbesSettings<String>,
        watched: &WatchTarget,
        shared: bool,
    ) -> Result<Watcher, Failure> {
        let site =
            WatchSite { finder: None, cgroup: None, addresses: Vec::new(), local: shared, is_remote_load: false };
        Watcher::start(site, MetricsProbe::from_settings(settings, watched)?, ProbeEffort::Little, SAMPLES_PER_HANDOVER)
    }

    fn start(
        site: WatchSite,
        metrics: Option<MetricsProbe>,
        effort: ProbeEffort,
        together: u32,
    ) -> Result<Watcher, Failure> {
        let live = LiveServerCpu::without_value();
        let shared = Arc::new(WatcherChannel {
            generator_pids: Arc::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let mut threads = Vec::new();
        let cannot =
            |reason: std::io::Error| Failure::cannot_start(format!("no thread for probes could be started: {reason}"));
        {
            let (shared, live) = (Arc::clone(&shared), live.clone());
            let watch = move || {
                // The watcher's thread gets its own file table. The /proc files that the watcher
                // keeps open for thousands of server threads then do not count against the load's
                // limit of open files. In a container that refuses a separate file table, the
                // watcher shares the file table of the load.
                let _ = plimsoll_sys::process::copy_file_table();
                let mut probes = site.create_probes(live, &shared, effort);
                take_samples(&shared, &mut probes, SAMPLE_PERIOD_NS, effort, together, true);
            };
            threads.push(std::thread::Builder::new().name("probes".into()).spawn(watch).map_err(cannot)?);
        }
        if let Some(metrics) = metrics {
            // Metrics have their own thread, because a slow response must not delay other readings.
            let shared = Arc::clone(&shared);
            let watch = move || {
                take_samples(
                    &shared,
                    &mut [Box::new(metrics)],
                    metrics::METRICS_PERIOD_NS,
                    ProbeEffort::Little,
                    1,
                    false,
                )
            };
            threads.push(std::thread::Builder::new().name("metrics".into()).spawn(watch).map_err(cannot)?);
        }
        Ok(Watcher { shared, live, threads })
    }
}

impl WatchSite {
    /// Creates the probes of the watcher.
    fn create_probes(self, live: LiveServerCpu, shared: &WatcherChannel, effort: ProbeEffort) -> Vec<Box<dyn Probe>> {
        let WatchSite { finder, cgroup, addresses, local, is_remote_load } = self;
        let machine = Box::new(machine::MachineProbe::with_other_processes(local, Arc::clone(&shared.generator_pids)));
        let Some(finder) = finder else { return vec![machine] };
        let port = addresses.first().filter(|_| local).map(SocketAddr::port);
        let server = server::ServerProbe::new(finder, live, port);
        let (roots, tables, asked) =
            (server.root_pids().to_vec(), server.shared_file_tables(), server.dependency_addresses());
        let root = roots.first().copied();
        let mut probes: Vec<Box<dyn Probe>> = vec![Box::new(server), machine];
        probes.push(Box::new(host::HostProbe::new(root, &addresses, is_remote_load)));
        if let Some(group) = cgroup.or_else(|| root.and_then(cgroup::CgroupProbe::for_process)) {
            probes.push(Box::new(group));
        }
        if effort == ProbeEffort::Thorough {
            probes.push(Box::new(functions::FunctionSampling::new(Arc::clone(&tables))));
        }
        if let Some(port) = port {
            probes.push(Box::new(sockets::SocketProbe::new(port, root, tables, asked)));
        }
        probes
    }
}

impl ReadingSource for Watcher {
    fn live_server_cpu(&self) -> LiveServerCpu {
        self.live.clone()
    }

    fn count_process_as_plimsoll(&self, pid: u32) {
        self.shared.generator_pids.lock().unwrap_or_else(PoisonError::into_inner).insert(pid);
    }

    fn sample_now(&self) {
        let mut state = self.shared.lock();
        state.samples_requested += 1;
        let asked = state.samples_requested;
        self.shared.changed.notify_all();
        let wait = self
            .shared
            .changed
            .wait_timeout_while(state, REQUESTED_SAMPLE_TIMEOUT, |state| state.samples_taken < asked);
        // The load continues even if the requested sample was not taken in time.
        drop(wait);
    }

    fn take_new_readings(&self) -> Probes {
        std::mem::take(&mut self.shared.lock().readings)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // If the sampling thread panicked, it has printed its panic already. The load's figures
            // do not depend on the sampling thread.
            let _ = thread.join();
        }
    }
}

/// Takes samples until the measurement is stopped. `takes_requested_samples` says whether this
/// thread takes the samples that [`ReadingSource::sample_now`] requests. If so, readings are
/// published after every `together` samples and after every requested sample. If this thread takes
/// no requested samples, every sample is published.
fn take_samples(
    shared: &WatcherChannel,
    probes: &mut [Box<dyn Probe>],
    period_ns: u64,
    effort: ProbeEffort,
    together: u32,
    takes_requested_samples: bool,
) {
    let mut sink = Sink::new(monotonic_ns(), effort);
    let (mut cpu_ns, mut wall_ns) = (thread_cpu_ns(), monotonic_ns());
    let mut next_ns = wall_ns;
    let mut held = 0;
    loop {
        let asked = if takes_requested_samples {
            match shared.wait_until(next_ns) {
                None => return,
                Some(asked) => asked,
            }
        } else {
            let mut state = shared.lock();
            while !state.stop && monotonic_ns() < next_ns {
                let left = Duration::from_nanos(next_ns.saturating_sub(monotonic_ns()));
                state = shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            if state.stop {
                return;
            }
            0
        };
        let edge = takes_requested_samples && asked > shared.lock().samples_taken;
        sink.begin_sample(monotonic_ns(), edge);
        probes.iter_mut().for_each(|probe| probe.sample(&mut sink));
        held += 1;
        let mut state = shared.lock();
        let wanted = takes_requested_samples && asked > state.samples_taken;
        if wanted || held >= together || !takes_requested_samples {
            let mut seen = sink.take();
            let (cpu_now_ns, now_ns) = (thread_cpu_ns(), monotonic_ns());
            seen.cpu_ns = cpu_now_ns.saturating_sub(cpu_ns);
            // Of the two sampling threads, only one reports the wall-clock time; the thread for
            // metrics adds only its CPU time.
            seen.wall_ns = if takes_requested_samples { now_ns.saturating_sub(wall_ns) } else { 0 };
            (cpu_ns, wall_ns, held) = (cpu_now_ns, now_ns, 0);
            state.readings.merge(&seen);
        }
        if wanted {
            state.samples_taken = asked;
            shared.changed.notify_all();
        }
        drop(state);
        let now_ns = monotonic_ns();
        if now_ns >= next_ns {
            // Missed samples are skipped. The next sample is at the next multiple of the period.
            next_ns += (now_ns - next_ns) / period_ns * period_ns + period_ns;
        }
    }
}
