//! Decides whether a machine is fit for measurements ([`MachineFitness`]). Each check examines one
//! fact about the machine, and contains the observation and the remedy.
//!
//! On an *unfit* machine, loads would be void (without information about the server), or figures
//! would not describe the server. On a *limited* machine, some loads, probes or profiles do not
//! work, or are less exact.
//!
//! Not here: the reading of facts (`plimsoll-probe`), and the display of checks
//! (`plimsoll-report`).

use crate::format;
use crate::interference::{BURST_CORES_MAX, OTHER_PROCESSES_CORES_MAX, STEAL_SHARE_MAX};
use plimsoll_model::machine_facts::{InterferenceSample, MachineFacts, MissingProbe, SamplingAccess, SelfMeasurement};
use plimsoll_model::units::MS;

/// The highest rate of plimsoll with the reference server, 1/s. The value comes from
/// docs/reference/benchmarks.md (`sweep`, 1 000 users, two cores).
pub const BENCHMARK_RPS: f64 = 79_523.0;
/// CPU time of plimsoll for each request, us. The value comes from docs/reference/benchmarks.md (64
/// connections, one thread).
pub const BENCHMARK_CPU_US: f64 = 9.06;

/// Largest stolen share of the CPU time of a fit machine. Above this share the machine is limited:
/// loads are less exact.
const STEAL_SHARE_FIT_MAX: f64 = 0.01;
/// Smallest limit of open files of a fit machine. Below this limit the machine is limited: the
/// users of a usual sweep need more files.
const OPEN_FILES_FIT_MIN: u64 = 4096;
/// Smallest limit of open files of a limited machine. Below this limit the machine is unfit: the
/// loads of a search need more files.
const OPEN_FILES_MIN: u64 = 512;
/// Smallest number of local ports of a fit machine. A machine with fewer local ports is limited:
/// soon all ports would be in the state TIME-WAIT.
const LOCAL_PORTS_FIT_MIN: u64 = 16_000;
/// Shortest accept queue of a fit machine. A machine with a shorter queue is limited: the queue
/// drops connections if many are opened at one time.
const ACCEPT_QUEUE_FIT_MIN: u64 = 1024;
/// Smallest available memory of a fit machine, in bytes. A machine with less available memory is
/// limited.
const MEMORY_BYTES_FIT_MIN: u64 = 1 << 30;
/// Smallest available memory of a limited machine, in bytes. A machine with less available memory
/// is unfit.
const MEMORY_BYTES_MIN: u64 = 256 << 20;
/// Longest lag p99 of a fit machine, in ns (lag: time from a request's scheduled start to its real
/// start). A machine with a longer lag is limited: plimsoll sends the requests of an open loop
/// late. For measured loads, `summary::lag_allowed_ns` gives the largest allowed lag.
pub const LAG_NS_FIT_MAX: u64 = MS;
/// Longest lag p99 of a limited machine, in ns. A machine with a longer lag is unfit: the lag
/// distorts even a response time p99 of 100 ms too much.
const LAG_MAX_NS: u64 = 10 * MS;
/// Lowest rate of plimsoll on a fit machine, 1/s. A machine on which plimsoll reaches only a lower
/// rate is limited, because most servers reach a higher rate.
const RATE_RPS_FIT_MIN: f64 = 10_000.0;

/// How fit a machine is in one respect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fitness {
    /// The machine is fit to measure.
    Fit,
    /// Some loads, probes or profiles do not work, or are less exact.
    Limited,
    /// Figures measured on the machine would not describe the server.
    Unfit,
}

impl Fitness {
    /// Returns the word for this fitness in texts and in machine-readable documents.
    pub fn word(self) -> &'static str {
        match self {
            Fitness::Fit => "fit",
            Fitness::Limited => "limited",
            Fitness::Unfit => "unfit",
        }
    }
}

/// One fact about the machine, and the fitness that follows from the fact.
#[derive(Debug, Clone, PartialEq)]
pub struct FitnessCheck {
    /// The name of the check.
    pub name: &'static str,
    /// The fitness of the machine that follows from the observed fact alone.
    pub fitness: Fitness,
    /// The observed fact, in words.
    pub observation: String,
    /// The remedy: a command or a sentence. `None` if the check found the machine fit, or if no
    /// remedy is known.
    pub remedy: Option<String>,
}

/// All checks of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineFitness {
    /// The checks, in the order in which they are shown.
    pub checks: Vec<FitnessCheck>,
}

impl MachineFitness {
    /// Checks the facts of a machine, and the result of plimsoll's measurement of itself if there
    /// is one.
    pub fn assess(facts: &MachineFacts, measured: Option<&SelfMeasurement>) -> MachineFitness {
        let mut checks = vec![check_cores(facts), check_governor(facts)];
        checks.extend(check_interference(facts.interference.as_ref()));
        checks.extend([
            check_open_files(facts),
            check_ports(facts),
            check_accept_queue(facts),
            check_memory(facts),
            check_cpu_quota(facts),
        ]);
        checks.extend([check_probes(facts), check_sampling(facts)]);
        checks.extend(measured.map(check_self_measurement));
        MachineFitness { checks }
    }

    /// Returns the fitness of the worst check.
    pub fn fitness(&self) -> Fitness {
        self.checks.iter().map(|check| check.fitness).max().unwrap_or(Fitness::Fit)
    }

    /// Returns the names of the checks that have this fitness.
    pub fn check_names_with_fitness(&self, fitness: Fitness) -> Vec<&'static str> {
        self.checks.iter().filter(|check| check.fitness == fitness).map(|check| check.name).collect()
    }
}

fn create_check(name: &'static str, fitness: Fitness, found: impl Into<String>, remedy: Option<&str>) -> FitnessCheck {
    FitnessCheck { name, fitness, observation: found.into(), remedy: remedy.map(str::to_owned) }
}

fn check_cores(facts: &MachineFacts) -> FitnessCheck {
    let of = if facts.cores < facts.cores_online { format!(" of {}", facts.cores_online) } else { String::new() };
    let mut found = format!("{}{of}", facts.cores);
    if !facts.cpu_model.is_empty() {
        found.push_str(&format!(", {}", facts.cpu_model));
    }
    if facts.is_virtual {
        found.push_str(", virtual");
    }
    found.push_str(&format!(", {}", facts.kernel));
    match facts.cores {
        0 | 1 => create_check(
            "cores",
            Fitness::Limited,
            found,
            Some(
                "1 core: plimsoll and a server on this machine share this core. Give plimsoll 2 cores, or a machine \
                 of its own",
            ),
        ),
        _ => create_check("cores", Fitness::Fit, found, None),
    }
}

fn check_governor(facts: &MachineFacts) -> FitnessCheck {
    let governors = facts.governors.join(", ");
    match &facts.governors[..] {
        [] if facts.is_virtual => {
            create_check("governor", Fitness::Fit, "the host of this virtual machine sets the CPU clock", None)
        }
        [] => create_check(
            "governor",
            Fitness::Fit,
            "no CPU governor: the CPU clock is fixed, or the system does not report its governor",
            None,
        ),
        [only] if only == "performance" => create_check("governor", Fitness::Fit, governors, None),
        _ => create_check(
            "governor",
            Fitness::Limited,
            format!("CPU governor {governors}: the CPU clock speed follows the load"),
            Some("sudo cpupower frequency-set -g performance, so that the CPU clock speed stays the same"),
        ),
    }
}

fn check_interference(sample: Option<&InterferenceSample>) -> Vec<FitnessCheck> {
    let Some(sample) = sample else {
        return vec![create_check(
            "interference",
            Fitness::Limited,
            "the CPU use of other processes is not known: /proc/stat is not readable",
            None,
        )];
    };
    let steal = match sample.steal_share {
        share if share > STEAL_SHARE_MAX => Fitness::Unfit,
        share if share > STEAL_SHARE_FIT_MAX => Fitness::Limited,
        _ => Fitness::Fit,
    };
    let busy = match sample.cores {
        cores if cores > BURST_CORES_MAX => Fitness::Unfit,
        cores if cores > OTHER_PROCESSES_CORES_MAX => Fitness::Limited,
        _ => Fitness::Fit,
    };
    let busiest = sample.busiest.as_ref().filter(|_| busy > Fitness::Fit);
    let busiest_process = busiest.map_or_else(String::new, |(name, cores)| format!(", {name} uses {cores:.2}"));
    let stop = busiest.map_or_else(
        || "Wait until other processes are idle".to_owned(),
        |(name, _)| format!("Stop {name}, or wait until this process ends"),
    );
    vec![
        create_check(
            "steal",
            steal,
            format!(
                "the host took {share_percent} of the machine's CPU time",
                share_percent = format::share(sample.steal_share)
            ),
            (steal > Fitness::Fit).then_some("Use a host with free cores, or measure at a quieter hour"),
        ),
        create_check(
            "interference",
            busy,
            format!("other processes use {cores:.2} cores{busiest_process}", cores = sample.cores),
            (busy > Fitness::Fit).then_some(&stop),
        ),
    ]
}

fn check_open_files(facts: &MachineFacts) -> FitnessCheck {
    let each = if facts.has_own_file_tables { "a thread" } else { "for all threads" };
    let found = format!("{} {each}", format::count(facts.files_max));
    let fitness = match facts.files_max {
        files if files < OPEN_FILES_MIN => Fitness::Unfit,
        files if files < OPEN_FILES_FIT_MIN => Fitness::Limited,
        _ => Fitness::Fit,
    };
    let remedy = "Raise the limit of open files (as root): ulimit -Hn 65536, or edit /etc/security/limits.conf";
    create_check("open files", fitness, found, (fitness > Fitness::Fit).then_some(remedy))
}

fn check_ports(facts: &MachineFacts) -> FitnessCheck {
    let (all, waiting) = (facts.local_ports, facts.ports_in_time_wait);
    let found = format!("{} local ports, {} in TIME-WAIT", format::count(all), format::count(waiting));
    let (fitness, remedy) = match (all < LOCAL_PORTS_FIT_MIN, waiting > all / 2) {
        (_, true) => {
            (Fitness::Limited, Some("Wait a minute: the kernel then frees the ports of connections in TIME-WAIT"))
        }
        (true, _) => (Fitness::Limited, Some("sudo sysctl -w net.ipv4.ip_local_port_range='16000 65000'")),
        (false, false) => (Fitness::Fit, None),
    };
    create_check("ports", fitness, found, remedy)
}

fn check_accept_queue(facts: &MachineFacts) -> FitnessCheck {
    let found = format!("{} connections", format::count(facts.accept_queue_max));
    match facts.accept_queue_max {
        0 => create_check("accept queue", Fitness::Fit, "not known", None),
        queue if queue < ACCEPT_QUEUE_FIT_MIN => {
            create_check("accept queue", Fitness::Limited, found, Some("sudo sysctl -w net.core.somaxconn=4096"))
        }
        _ => create_check("accept queue", Fitness::Fit, found, None),
    }
}

fn check_memory(facts: &MachineFacts) -> FitnessCheck {
    let available = match facts.limits.memory_bytes {
        Some(limit) => limit.min(facts.memory_available_bytes),
        None => facts.memory_available_bytes,
    };
    let found = format!("{} available", format::bytes(available as f64));
    let fitness = match available {
        0 => return create_check("memory", Fitness::Fit, "not known", None),
        bytes if bytes < MEMORY_BYTES_MIN => Fitness::Unfit,
        bytes if bytes < MEMORY_BYTES_FIT_MIN => Fitness::Limited,
        _ => Fitness::Fit,
    };
    let remedy = "Stop other programs, or raise the container's memory limit: 50 000 connections use 400 MB";
    create_check("memory", fitness, found, (fitness > Fitness::Fit).then_some(remedy))
}

fn check_cpu_quota(facts: &MachineFacts) -> FitnessCheck {
    match facts.limits.cores_milli.map(|milli| milli as f64 / 1e3) {
        Some(quota) if quota < f64::from(facts.cores) => create_check(
            "container",
            Fitness::Limited,
            format!("the CPU quota is {quota} cores: the kernel pauses plimsoll when the quota is exhausted"),
            Some("Give the container whole cores (cpuset) instead of a CPU quota"),
        ),
        Some(quota) => create_check("container", Fitness::Fit, format!("the CPU quota is {quota} cores"), None),
        None => create_check("container", Fitness::Fit, "no CPU quota limits plimsoll", None),
    }
}

fn check_probes(facts: &MachineFacts) -> FitnessCheck {
    let text = |probe: &MissingProbe| match probe {
        MissingProbe::Pressure => "pressure",
        MissingProbe::Sockets => "sockets",
        MissingProbe::ThreadWaits => "waits of threads",
        MissingProbe::OtherUsers => "server processes of other users",
    };
    let missing: Vec<&str> = facts.probes_missing.iter().map(text).collect();
    // Of several remedies, the remedy that most users can apply comes first.
    let remedy = match &facts.probes_missing[..] {
        [] => return create_check("probes", Fitness::Fit, "all", None),
        missing if missing.contains(&MissingProbe::OtherUsers) => {
            "Run plimsoll as the server's user or as root, so that plimsoll finds the server's process"
        }
        missing if missing.contains(&MissingProbe::Sockets) => {
            "sudo modprobe -a inet_diag tcp_diag unix_diag, so that plimsoll can read the state of sockets"
        }
        missing if missing.contains(&MissingProbe::Pressure) => {
            "Start the kernel with psi=1, so that plimsoll can read the pressure in /proc/pressure"
        }
        _ => "Use a kernel with CONFIG_SCHED_INFO, so that plimsoll can read how long threads wait for a core",
    };
    create_check("probes", Fitness::Limited, format!("not read: {}", missing.join(", ")), Some(remedy))
}

fn check_sampling(facts: &MachineFacts) -> FitnessCheck {
    let paranoid_level =
        facts.perf_event_paranoid.map_or_else(String::new, |level| format!(" (perf_event_paranoid is {level})"));
    let remedy = "sudo sysctl -w kernel.perf_event_paranoid=-1, so that explain can name the server's functions";
    match facts.sampling {
        SamplingAccess::AllProcesses => {
            create_check("sampling", Fitness::Fit, "plimsoll can sample the functions of all processes", None)
        }
        SamplingAccess::OwnProcesses { in_kernel: true } => {
            create_check("sampling", Fitness::Fit, "plimsoll can sample the functions of your own processes", None)
        }
        SamplingAccess::OwnProcesses { in_kernel: false } => create_check(
            "sampling",
            Fitness::Limited,
            format!("plimsoll can sample functions of your processes, but not of the kernel{paranoid_level}"),
            Some(remedy),
        ),
        SamplingAccess::Refused => {
            let text = format!("the kernel does not let plimsoll sample functions{paranoid_level}");
            create_check("sampling", Fitness::Limited, text, Some(remedy))
        }
    }
}

fn check_self_measurement(measured: &SelfMeasurement) -> FitnessCheck {
    let (name, lag) = ("plimsoll", format::duration(measured.lag_p99_ns as f64));
    let rate = format::rate(measured.rate_rps);
    if let Some(disturbed) = &measured.disturbance {
        let remedy = "Measure again when other processes are idle";
        return create_check(name, Fitness::Limited, format!("disturbed: {disturbed}"), Some(remedy));
    }
    match (measured.lag_p99_ns, measured.highest_rps) {
        (lag_ns, _) if lag_ns > LAG_NS_FIT_MAX => create_check(
            name,
            if lag_ns > LAG_MAX_NS { Fitness::Unfit } else { Fitness::Limited },
            format!("plimsoll sends requests late at {rate}/s: lag p99 {lag}"),
            Some("Stop other processes, or use a machine with more or faster cores"),
        ),
        (_, highest) if highest < RATE_RPS_FIT_MIN => create_check(
            name,
            Fitness::Limited,
            format!(
                "one thread of plimsoll generates at most {highest_rate} requests/s",
                highest_rate = format::rate(highest)
            ),
            Some("Generate the load on a faster machine, or on several machines"),
        ),
        _ => create_check(
            name,
            Fitness::Fit,
            format!("plimsoll sends requests on time at {rate}/s: lag p99 {lag}"),
            None,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::MachineLimits;

    const QUIET_MEASUREMENT: SelfMeasurement = SelfMeasurement {
        highest_rps: 90_000.0,
        cpu_us: 9.0,
        rate_rps: 10_000.0,
        lag_p99_ns: 100_000,
        disturbance: None,
    };

    fn fit_machine_facts() -> MachineFacts {
        MachineFacts {
            cores: 4,
            cores_online: 4,
            governors: vec!["performance".into()],
            interference: Some(InterferenceSample::default()),
            files_max: 20_000,
            has_own_file_tables: true,
            local_ports: 28_232,
            accept_queue_max: 4096,
            memory_available_bytes: 8 << 30,
            sampling: SamplingAccess::AllProcesses,
            ..MachineFacts::default()
        }
    }

    #[test]
    fn each_machine_problem_is_found_and_has_a_remedy() {
        use Fitness::{Limited, Unfit};
        assert_eq!(MachineFitness::assess(&fit_machine_facts(), Some(&QUIET_MEASUREMENT)).fitness(), Fitness::Fit);
        let sample = |cores, steal_share| {
            Some(InterferenceSample { cores, steal_share, busiest: Some(("cargo".into(), cores)) })
        };
        let quota = MachineLimits { cores_milli: Some(1500), memory_bytes: None };
        let group = MachineLimits { cores_milli: None, memory_bytes: Some(100 << 20) };
        for (facts, name, fitness) in [
            (MachineFacts { cores: 1, ..fit_machine_facts() }, "cores", Limited),
            (MachineFacts { governors: vec!["powersave".into()], ..fit_machine_facts() }, "governor", Limited),
            (MachineFacts { interference: sample(0.2, 0.0), ..fit_machine_facts() }, "interference", Limited),
            (MachineFacts { interference: sample(1.0, 0.0), ..fit_machine_facts() }, "interference", Unfit),
            (MachineFacts { interference: sample(0.0, 0.02), ..fit_machine_facts() }, "steal", Limited),
            (MachineFacts { interference: sample(0.0, 0.2), ..fit_machine_facts() }, "steal", Unfit),
            (MachineFacts { files_max: 1024, ..fit_machine_facts() }, "open files", Limited),
            (MachineFacts { files_max: 256, ..fit_machine_facts() }, "open files", Unfit),
            (MachineFacts { local_ports: 1000, ..fit_machine_facts() }, "ports", Limited),
            (MachineFacts { ports_in_time_wait: 20_000, ..fit_machine_facts() }, "ports", Limited),
            (MachineFacts { accept_queue_max: 128, ..fit_machine_facts() }, "accept queue", Limited),
            (MachineFacts { memory_available_bytes: 500 << 20, ..fit_machine_facts() }, "memory", Limited),
            (MachineFacts { limits: group, ..fit_machine_facts() }, "memory", Unfit),
            (MachineFacts { limits: quota, ..fit_machine_facts() }, "container", Limited),
            (MachineFacts { probes_missing: vec![MissingProbe::OtherUsers], ..fit_machine_facts() }, "probes", Limited),
            (MachineFacts { sampling: SamplingAccess::Refused, ..fit_machine_facts() }, "sampling", Limited),
        ] {
            let found = MachineFitness::assess(&facts, None);
            assert_eq!(found.check_names_with_fitness(fitness), [name], "{found:?}");
            assert_eq!(found.fitness(), fitness, "{found:?}");
            let found = found.checks.iter().find(|check| check.name == name).expect("named");
            assert!(found.remedy.is_some(), "{found:?}");
        }
    }

    #[test]
    fn the_generator_is_judged_by_lag_and_rate() {
        for (measured, fitness) in [
            (QUIET_MEASUREMENT, Fitness::Fit),
            (SelfMeasurement { lag_p99_ns: 2 * MS, ..QUIET_MEASUREMENT }, Fitness::Limited),
            (SelfMeasurement { lag_p99_ns: 50 * MS, ..QUIET_MEASUREMENT }, Fitness::Unfit),
            (SelfMeasurement { highest_rps: 3000.0, ..QUIET_MEASUREMENT }, Fitness::Limited),
            // If other processes caused the lag, the lag does not make the machine unfit.
            (
                SelfMeasurement { lag_p99_ns: 50 * MS, disturbance: Some("others".into()), ..QUIET_MEASUREMENT },
                Fitness::Limited,
            ),
        ] {
            let found = MachineFitness::assess(&fit_machine_facts(), Some(&measured));
            assert_eq!(found.fitness(), fitness, "{measured:?}: {found:?}");
        }
    }
}
