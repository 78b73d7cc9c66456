//! Reads facts about this machine ([`read_machine_facts`]) for `plimsoll doctor`.
//!
//! Not here: whether the machine suffices for measurements (`plimsoll_analysis::fitness`), and
//! readings during a load (`machine`, `host`).

use plimsoll_model::MachineLimits;
use plimsoll_model::machine_facts::{InterferenceSample, MachineFacts, MissingProbe, SamplingAccess};
use plimsoll_sys::clock::{monotonic_ns, process_cpu_ns};
use plimsoll_sys::probe::process::{numbered_entries, read_process_stat, ticks_per_second};
use plimsoll_sys::probe::sockets::SocketDiagnostics;
use plimsoll_sys::probe::{ProcFile, cgroup, host};
use plimsoll_sys::{process, sampling};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The largest number of cores whose frequency governor is read.
const CORES_READ_MAX: u32 = 1024;
/// The smallest CPU use, in cores, at which the busiest other process is named to the user.
const NAMED_PROCESS_CORES_MIN: f64 = 0.01;

/// Reads all facts about this machine. CPU use of other processes is sampled for the time `sample`,
/// while the caller is idle.
pub fn read_machine_facts(sample: Duration) -> MachineFacts {
    let cores_online = process::cores_online();
    // The check whether a thread can have its own file table runs in a new thread. After the check,
    // this new thread can no longer use the open files of the process.
    let has_own_file_tables = std::thread::spawn(|| process::unshare_file_table(None).is_ok()).join().unwrap_or(false);
    MachineFacts {
        cores: process::allowed_core_count(),
        cores_online,
        cpu_model: process::cpu_model(),
        is_virtual: is_virtual(),
        kernel: process::kernel_version_text(),
        governors: read_cpu_governors(cores_online),
        interference: measure_interference(sample),
        files_max: process::raise_open_files_limit(),
        has_own_file_tables,
        local_ports: process::local_port_count(),
        ports_in_time_wait: process::time_wait_connections(),
        accept_queue_max: process::backlog_max(),
        memory_available_bytes: process::memory_available_bytes(),
        limits: cgroup_limits(),
        sampling: sampling_access(),
        perf_event_paranoid: sampling::perf_event_paranoid_level(),
        probes_missing: find_missing_probes(),
    }
}

fn is_virtual() -> bool {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    flags.split_whitespace().any(|flag| flag == "hypervisor")
}

fn read_cpu_governors(cores: u32) -> Vec<String> {
    let read = |core: u32| {
        let path = format!("/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor");
        Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
    };
    let all: BTreeSet<String> = (0..cores.min(CORES_READ_MAX)).filter_map(read).collect();
    all.into_iter().collect()
}

fn cgroup_limits() -> MachineLimits {
    let (cores, memory_bytes) = cgroup::own_limits();
    MachineLimits {
        cores_milli: cores.map(|cores| (cores * 1000.0).round() as u64),
        memory_bytes: memory_bytes.map(|bytes| bytes as u64),
    }
}

fn sampling_access() -> SamplingAccess {
    match sampling::CpuSampler::open(std::process::id()) {
        Ok(sampler) if !sampler.needs_thread_ids() => SamplingAccess::AllProcesses,
        Ok(sampler) => SamplingAccess::OwnProcesses { in_kernel: sampler.covers_kernel() },
        Err(_) => SamplingAccess::Refused,
    }
}

fn find_missing_probes() -> Vec<MissingProbe> {
    let is_readable = |path: &str| ProcFile::open(path).is_ok_and(|file| file.read(&mut Vec::new()).is_ok());
    // Plimsoll sees the processes of other users if it can read the open files of process 1, which
    // only root can read.
    let sees_others = std::fs::read_dir("/proc/1/fd").is_ok();
    [
        (is_readable("/proc/pressure/cpu"), MissingProbe::Pressure),
        (SocketDiagnostics::open().is_ok(), MissingProbe::Sockets),
        (is_readable("/proc/self/schedstat"), MissingProbe::ThreadWaits),
        (sees_others, MissingProbe::OtherUsers),
    ]
    .into_iter()
    .filter_map(|(is_there, probe)| (!is_there).then_some(probe))
    .collect()
}

/// Returns the CPU time of the machine so far, in ticks: time in use, and time stolen by the
/// hypervisor.
fn machine_cpu_ticks() -> Option<(u64, u64)> {
    let text = std::fs::read("/proc/stat").ok()?;
    let cpu = host::parse_stat(&text)?.cpu;
    Some((cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq, cpu.steal))
}

/// Returns the CPU time so far of each process except this process, in ticks, with its name.
fn process_cpu_ticks() -> BTreeMap<u32, (String, u64)> {
    let mut buffer = Vec::new();
    let pids = numbered_entries("/proc").unwrap_or_default();
    pids.into_iter()
        .filter(|pid| *pid != std::process::id())
        .filter_map(|pid| {
            let (stat, name) = read_process_stat(pid, &mut buffer).ok()?;
            Some((pid, (name, stat.user_ticks + stat.system_ticks)))
        })
        .collect()
}

/// Measures the CPU use of other processes for the time `sample`.
fn measure_interference(sample: Duration) -> Option<InterferenceSample> {
    let before = process_cpu_ticks();
    let (began_ns, own_before_ns, (busy_before, steal_before)) =
        (monotonic_ns(), process_cpu_ns(), machine_cpu_ticks()?);
    std::thread::sleep(sample);
    let (busy, steal) = machine_cpu_ticks()?;
    let own_ns = process_cpu_ns().saturating_sub(own_before_ns) as f64;
    let span_ns = monotonic_ns().saturating_sub(began_ns).max(1) as f64;
    let tick_ns = 1e9 / ticks_per_second() as f64;
    let busy_ns = busy.saturating_sub(busy_before) as f64 * tick_ns;
    let steal_ns = steal.saturating_sub(steal_before) as f64 * tick_ns;
    let used = process_cpu_ticks().into_iter().filter_map(|(pid, (name, ticks))| {
        let before = before.get(&pid).map_or(0, |(_, ticks)| *ticks);
        Some((name, ticks.saturating_sub(before) as f64 * tick_ns / span_ns))
            .filter(|used| used.1 >= NAMED_PROCESS_CORES_MIN)
    });
    Some(InterferenceSample {
        cores: ((busy_ns - own_ns) / span_ns).max(0.0),
        steal_share: if steal_ns > 0.0 { steal_ns / (busy_ns + steal_ns) } else { 0.0 },
        busiest: used.max_by(|a, b| a.1.total_cmp(&b.1)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_this_machine_are_read() {
        let facts = read_machine_facts(Duration::from_millis(50));
        assert!(facts.cores >= 1 && facts.cores_online >= facts.cores.min(1), "{facts:?}");
        assert!(facts.kernel.starts_with("Linux ") && facts.files_max > 0 && facts.local_ports > 0, "{facts:?}");
        let sample = facts.interference.expect("/proc/stat is there");
        assert!((0.0..=1.0).contains(&sample.steal_share), "{sample:?}");
        assert!(sample.cores <= f64::from(facts.cores_online) * 1.5, "{sample:?}");
    }

    /// Checks that the busiest other process is named while a child process of the test uses CPU
    /// time.
    #[test]
    fn a_busy_process_is_named() {
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
        let sample = measure_interference(Duration::from_millis(500)).expect("/proc/stat is there");
        // The child process loops forever, so the test ends the process.
        child.kill().and_then(|()| child.wait()).expect("it ends");
        assert!(sample.cores > 0.05, "{sample:?}");
        assert!(sample.busiest.is_some(), "{sample:?}");
    }
}
