//! Decides whether other processes disturbed a load ([`Interference`]). The evidence of a
//! disturbance is CPU time used by processes other than plimsoll, the server, its dependencies and
//! the kernel's own threads. CPU time stolen by the host of a virtual machine is evidence of a
//! disturbance, too. Times in which threads of the server or plimsoll waited for a core are also
//! evidence of a disturbance.
//!
//! One rule, fixed before any measurement, decides in every command whether a load was disturbed.
//! The rule about disturbances ignores the measured figures of the load, so that a result cannot
//! decide which loads count. The rule has one exception: a load in which every response failed does
//! not count as disturbed. Interference does not cause such failures, for example a status 404.
//!
//! Other processes disturb a load if two conditions hold. The first condition: other processes used
//! more than [`OTHER_PROCESSES_CORES_MAX`] cores, and more than the share
//! [`OTHER_PROCESSES_CPU_RATIO_MAX`] of the CPU time of the server and plimsoll. The second
//! condition: [`BUSY_CORES_SHARE_MIN`] of all cores were in use, or threads of the server and
//! plimsoll waited for a core. Waits for a core count if they exceed [`CORE_WAIT_SHARE_MIN`] of the
//! time in which the threads of the server and plimsoll wanted a core.
//!
//! If enough cores are idle, other processes do not slow down the server or plimsoll. A burst also
//! disturbs a load: for half a second, other processes used more than [`BURST_CORES_MAX`] cores,
//! and [`BUSY_CORES_SHARE_MIN`] of all cores were in use. Even such a short burst can raise a p99.
//! The host of a virtual machine disturbs a load if it takes more than [`STEAL_SHARE_MAX`] of the
//! wanted CPU time. If the CPU use of other processes is not known, only stolen CPU time can make a
//! load count as disturbed.
//!
//! Not here: the reading of the CPU times by probes.

use crate::doubts::{Doubt, DoubtKind};
use plimsoll_model::series_table as table;
use plimsoll_model::units::MS;
use plimsoll_model::{Ledger, Probes, Run, Series};

/// Number of cores that other processes may use on average without disturbing a load. On a quiet
/// machine, other processes use far fewer cores than this limit. CPU times are counted in ticks of
/// 10 ms. One tick too many at both ends of the shortest observed time ([`OBSERVED_TIME_NS_MIN`])
/// is 0.08 cores, about half of this limit.
pub const OTHER_PROCESSES_CORES_MAX: f64 = 0.15;
/// CPU time that other processes may use without disturbing a load, as a ratio to the CPU time of
/// the server and plimsoll.
pub const OTHER_PROCESSES_CPU_RATIO_MAX: f64 = 0.05;
/// Other processes affect a load if at least this share of all cores is in use.
pub const BUSY_CORES_SHARE_MIN: f64 = 0.75;
/// Other processes affect a load if threads of the server and plimsoll wait for cores during more
/// than this share of their wanted CPU time.
pub const CORE_WAIT_SHARE_MIN: f64 = 0.1;
/// Number of cores that other processes may use for half a second without disturbing a load. A
/// larger limit applies if twice the share [`OTHER_PROCESSES_CPU_RATIO_MAX`] of the cores that the
/// server and plimsoll use exceeds this number.
pub const BURST_CORES_MAX: f64 = 0.4;
/// Share of the wanted CPU time that the host of a virtual machine may take without disturbing a
/// load.
pub const STEAL_SHARE_MAX: f64 = 0.05;
/// Stolen time below this value, in ns, is ignored, because the kernel counts stolen time in
/// hundredths of a second.
const STEAL_NS_MIN: f64 = 30.0 * MS as f64;
/// If other processes disturbed more than this share of several loads, all these loads together
/// count as disturbed.
pub const DISTURBED_LOADS_SHARE_MAX: f64 = 0.1;
/// The minimum length, in ns, of a period that is checked for a burst of other processes.
const BURST_NS: i64 = 500 * MS as i64;
/// Shortest observed time of a load, in ns, from which the CPU use of other processes is computed.
const OBSERVED_TIME_NS_MIN: i64 = 250 * MS as i64;
/// Maximum distance, in ns, between a probe reading and the time for which it is used: three times
/// the usual time between readings.
const READING_DISTANCE_NS_MAX: i64 = 300 * MS as i64;

/// The probe series that together count the CPU time during which the cores of a machine work.
const BUSY_CPU_SERIES: [&str; 3] =
    [table::HOST_CPU_USER.name, table::HOST_CPU_SYSTEM.name, table::HOST_CPU_INTERRUPTS.name];

/// The use of the CPU by processes other than the server and plimsoll, during one load or several
/// loads.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Interference {
    /// Cores used on average by processes other than the server, its dependencies, the kernel's own
    /// threads and plimsoll. `None` means that the CPU use of other processes is not known.
    pub cores: Option<f64>,
    /// Cores of the machine; 0 means that the number is not known.
    pub machine_cores: f64,
    /// Steal, 0..=1: the share of the time in which the virtual machine wanted a core, but its host
    /// used the core for something else. `None` means that the share is not known.
    pub steal_share: Option<f64>,
    /// Whether other processes, or the host of the virtual machine, disturbed the load.
    pub is_disturbed: bool,
    /// For a load that other processes disturbed, a sentence without a full stop about the
    /// disturbance. For an undisturbed load, a sentence that says which figure is not known and
    /// why; `None` if all figures are known.
    pub reason: Option<String>,
    /// Length of the time that the figures cover, ns.
    pub span_ns: u64,
}

/// CPU times of the machine from the first reading of a load to a later reading, ns.
#[derive(Debug, Clone, Copy)]
struct MachineCpuTimes {
    at_ns: i64,
    busy_ns: f64,
    stolen_ns: f64,
    /// CPU time used by the server, its dependencies, the kernel's own threads and plimsoll, ns;
    /// `None` if it is not known.
    known_ns: Option<f64>,
}

/// The probe series of one machine: of the server's machine, or of the machine that generates the
/// load.
#[derive(Clone, Copy)]
struct MachineSeries<'a> {
    probes: &'a Probes,
    /// Whether this machine only generates the load, while the server runs on another machine and
    /// is observed by probes there.
    is_generator: bool,
}

impl<'a> MachineSeries<'a> {
    fn get(&self, name: &str) -> Option<&'a Series> {
        match self.is_generator {
            true => self.probes.generator_series(name),
            false => self.probes.series.get(name),
        }
    }

    /// Returns the change of a counter between two times; `None` if the probes took no reading near
    /// one of these times.
    fn counter_change_between(&self, name: &str, from_ns: i64, to_ns: i64) -> Option<f64> {
        counter_change(self.get(name)?, from_ns, to_ns)
    }

    /// Returns the change of a counter, summed over plimsoll's own processes on this machine.
    /// Plimsoll has two processes on a machine if one of them observes the server inside a
    /// container of the same machine.
    fn own_processes_change(&self, name: &str, from_ns: i64, to_ns: i64) -> Option<f64> {
        let own = self.counter_change_between(name, from_ns, to_ns);
        if self.is_generator || self.probes.host.is_none() || !self.probes.shares_machine() {
            return own;
        }
        let other = counter_change(self.probes.generator_series(name)?, from_ns, to_ns);
        own.zip(other).map(|(own, other)| own + other)
    }
}

fn counter_change(series: &Series, from_ns: i64, to_ns: i64) -> Option<f64> {
    Some(
        (series.value_at(to_ns, READING_DISTANCE_NS_MAX)? - series.value_at(from_ns, READING_DISTANCE_NS_MAX)?)
            .max(0.0),
    )
}

impl Interference {
    /// Computes the interference during `run`, on the server's machine and on the machine that
    /// generates the load.
    pub fn from_run(run: &Run) -> Interference {
        let probes = &run.probes;
        let there = Interference::from_machine_series(run, MachineSeries { probes, is_generator: false });
        let Some(host) = probes.host.as_ref().filter(|_| !probes.shares_machine()) else { return there };
        let here = Interference::from_machine_series(run, MachineSeries { probes, is_generator: true });
        let named = |others: &Interference, machine: &str| {
            let reason = others.reason.as_ref().filter(|_| others.is_disturbed)?;
            Some(format!("{reason} (on {machine})"))
        };
        let reasons: Vec<String> =
            [named(&there, host), named(&here, "the machine that generates the load")].into_iter().flatten().collect();
        let reason = if reasons.is_empty() { there.reason } else { Some(reasons.join(", and ")) };
        Interference { is_disturbed: there.is_disturbed || here.is_disturbed, reason, ..there }
    }

    fn from_machine_series(run: &Run, machine: MachineSeries) -> Interference {
        let probes = machine.probes;
        let unknown = |reason: &str| Interference {
            reason: Some(format!("the CPU use of other processes is not known: {reason}")),
            ..Interference::default()
        };
        let Some(idle) = machine.get(table::HOST_CPU_IDLE.name).filter(|idle| idle.samples.len() > 1) else {
            return match probes.is_empty() {
                true => unknown("no probe ran"),
                false => unknown("the machine's CPU time was not read"),
            };
        };
        let gauge = |name: &str| Some(machine.get(name)?.samples.last()?.value);
        let (Some(cores), Some(local)) = (gauge(table::HOST_CORES.name), gauge(table::TARGET_LOCAL.name)) else {
            return unknown("the run file was written by an older plimsoll");
        };
        let (from_ns, to_ns) = (run.window_ns.0 as i64, run.window_ns.1 as i64);
        // All counters are read at the same times. The period starts and ends at readings of the
        // counters, so that no value must be interpolated.
        let first = idle.samples.partition_point(|sample| sample.at_ns <= from_ns).saturating_sub(1);
        let last = idle.samples.partition_point(|sample| sample.at_ns < to_ns).min(idle.samples.len() - 1);
        let (start_ns, end_ns) = (idle.samples[first].at_ns, idle.samples[last.max(first)].at_ns);
        if end_ns - start_ns < OBSERVED_TIME_NS_MIN {
            return unknown("the load was too short to measure the CPU use");
        }
        let account = |at_ns: i64| {
            let since = |name: &str| machine.counter_change_between(name, start_ns, at_ns);
            let stolen_ns = since(table::HOST_CPU_STEAL.name).unwrap_or(0.0);
            let rest_ns =
                since(table::HOST_CPU_IDLE.name)? + since(table::HOST_CPU_IOWAIT.name).unwrap_or(0.0) + stolen_ns;
            let not_idle_ns = (cores * (at_ns - start_ns) as f64 - rest_ns).max(0.0);
            // The machine's busy CPU time is counted in two ways, each with an error. The first
            // count is all time that is not idle. The first count includes the time in which cores
            // fall asleep and wake up, which belongs to no process. The second count of busy CPU
            // time is sampled at the kernel's ticks. The code uses the smaller count, because the
            // work of a process appears in both counts.
            let ticks_ns = BUSY_CPU_SERIES.iter().map(|name| since(name)).sum::<Option<f64>>().unwrap_or(f64::INFINITY);
            let busy_ns = not_idle_ns.min(ticks_ns);
            let server_ns = if local > 0.0 { since(table::SERVER_CPU.name) } else { Some(0.0) };
            // Dependencies such as a database work for the server. The kernel's own threads also
            // work for the server: for example, they write the server's files.
            let its_ns =
                [table::DOWNSTREAM_CPU.name, table::KERNEL_CPU.name].iter().filter_map(|name| since(name)).sum::<f64>();
            let our_ns = machine.own_processes_change(table::CLIENT_CPU.name, start_ns, at_ns);
            let known_ns = our_ns.zip(server_ns).map(|(ours, server)| ours + server + its_ns);
            Some(MachineCpuTimes { at_ns, busy_ns, stolen_ns, known_ns })
        };
        let accounts: Vec<MachineCpuTimes> =
            idle.samples[first..=last].iter().filter_map(|sample| account(sample.at_ns)).collect();
        let Some(whole) = accounts.last().copied() else { return unknown("the machine's CPU time was not read") };
        let span_ns = (end_ns - start_ns) as f64;
        let wanted_ns = whole.busy_ns + whole.stolen_ns;
        let steal_share = if wanted_ns > 0.0 { whole.stolen_ns / wanted_ns } else { 0.0 };
        let mut others = Interference {
            machine_cores: cores,
            steal_share: Some(steal_share),
            span_ns: span_ns as u64,
            ..Interference::default()
        };
        let mut reasons = Vec::new();
        match whole.known_ns {
            Some(known_ns) => {
                let used = (whole.busy_ns - known_ns).max(0.0) / span_ns;
                others.cores = Some(used);
                let server_waited_ns =
                    machine.counter_change_between(table::SERVER_RUN_QUEUE_WAIT.name, start_ns, end_ns);
                let we_waited_ns = machine.own_processes_change(table::CLIENT_RUN_QUEUE_WAIT.name, start_ns, end_ns);
                let waited_ns = server_waited_ns.unwrap_or(0.0) + we_waited_ns.unwrap_or(0.0);
                let waited = waited_ns > CORE_WAIT_SHARE_MIN * (waited_ns + known_ns);
                let felt = waited || whole.busy_ns >= BUSY_CORES_SHARE_MIN * cores * span_ns;
                if felt && used > OTHER_PROCESSES_CORES_MAX.max(OTHER_PROCESSES_CPU_RATIO_MAX * known_ns / span_ns) {
                    reasons.push(format!("other processes used {used:.1} of {cores:.0} cores"));
                } else if let Some((burst, seconds)) = find_cpu_burst(
                    &accounts,
                    cores,
                    BURST_CORES_MAX.max(2.0 * OTHER_PROCESSES_CPU_RATIO_MAX * known_ns / span_ns),
                ) {
                    reasons.push(format!("other processes used {burst:.1} of {cores:.0} cores for {seconds:.1} s"));
                }
            }
            None => {
                others.reason = Some(format!(
                    "the CPU use of other processes is not known: {reason}",
                    reason = unknown_server_reason(probes)
                ))
            }
        }
        if steal_share > STEAL_SHARE_MAX && whole.stolen_ns >= STEAL_NS_MIN {
            reasons.push(format!(
                "the host of this machine took {steal_percent:.0} % of its CPU time (steal)",
                steal_percent = steal_share * 100.0
            ));
        }
        others.is_disturbed = !reasons.is_empty() && !only_failed_answers(&run.ledger());
        if others.is_disturbed {
            others.reason = Some(reasons.join(", and "));
        }
        others
    }

    /// Combines the interference of several loads. `what` names the loads, such as `trials`. All
    /// loads together count as disturbed if more than [`DISTURBED_LOADS_SHARE_MAX`] of the loads
    /// were disturbed.
    pub fn combine<'a>(loads: impl IntoIterator<Item = &'a Interference>, what: &str) -> Interference {
        let loads: Vec<&Interference> = loads.into_iter().collect();
        let disturbed: Vec<&Interference> = loads.iter().copied().filter(|load| load.is_disturbed).collect();
        let mut all = Interference {
            cores: mean(&loads, |load| load.cores),
            machine_cores: loads.iter().map(|load| load.machine_cores).fold(0.0, f64::max),
            steal_share: mean(&loads, |load| load.steal_share),
            is_disturbed: disturbed.len() as f64 > DISTURBED_LOADS_SHARE_MAX * loads.len() as f64,
            reason: None,
            span_ns: loads.iter().map(|load| load.span_ns).sum(),
        };
        all.reason = if all.is_disturbed {
            Some(format!(
                "{} in {} of {} {what}",
                Interference::mean_disturbance_text(&disturbed),
                disturbed.len(),
                loads.len()
            ))
        } else if all.cores.is_none() {
            loads.iter().find_map(|load| load.reason.clone())
        } else {
            None
        };
        all
    }

    /// Formats the mean disturbance of several disturbed loads as a sentence without a full stop.
    pub(crate) fn mean_disturbance_text(disturbed: &[&Interference]) -> String {
        let used = mean(disturbed, |load| load.cores).unwrap_or(0.0);
        let taken = mean(disturbed, |load| load.steal_share).unwrap_or(0.0);
        let cores = disturbed.iter().map(|load| load.machine_cores).fold(0.0, f64::max);
        let mut reasons = Vec::new();
        if used > OTHER_PROCESSES_CORES_MAX || taken <= STEAL_SHARE_MAX {
            reasons.push(format!("other processes used {used:.1} of {cores:.0} cores"));
        }
        if taken > STEAL_SHARE_MAX {
            reasons.push(format!(
                "the host of this machine took {steal_percent:.0} % of its CPU time (steal)",
                steal_percent = taken * 100.0
            ));
        }
        reasons.join(", and ")
    }

    /// Returns the doubt (evidence against a result) that disturbed loads raise; `None` for
    /// undisturbed loads.
    pub fn doubt(&self) -> Option<Doubt> {
        let reason = self.reason.as_deref().filter(|_| self.is_disturbed)?;
        let text = format!("the machine was disturbed: {reason}; the server's real capacity may be higher");
        Some(Doubt { kind: DoubtKind::Interference, text: text.into() })
    }
}

/// Returns the mean of a figure over the loads in which the figure is known, weighted by the length
/// of the load.
fn mean(loads: &[&Interference], of: fn(&Interference) -> Option<f64>) -> Option<f64> {
    let known = loads.iter().filter_map(|load| Some((of(load)?, load.span_ns.max(1) as f64)));
    let (sum, weight) = known.fold((0.0, 0.0), |sum, (value, ns)| (sum.0 + value * ns, sum.1 + ns));
    (weight > 0.0).then(|| sum / weight)
}

/// Returns whether no request succeeded, although most of the ended requests got a response.
fn only_failed_answers(ledger: &Ledger) -> bool {
    ledger.succeeded == 0 && 2 * ledger.response_count() > ledger.finished_requests()
}

/// Returns the reason why the server's CPU time is not known.
fn unknown_server_reason(probes: &Probes) -> String {
    match (probes.series.contains_key(table::SERVER_CPU.name), probes.missing.first()) {
        (true, _) => "the server was observed only during a part of the load".into(),
        (false, Some(reason)) => format!("the server's process was not found ({reason})"),
        (false, None) => "the server's process was not found".into(),
    }
}

/// Finds the period of about half a second in which other processes used most CPU time. Returns the
/// number of cores that other processes used, and the length of the period in s. Returns `None` if
/// no period exceeds `used_max` cores.
fn find_cpu_burst(accounts: &[MachineCpuTimes], cores: f64, used_max: f64) -> Option<(f64, f64)> {
    // The CPU time of a server's short-lived children is added to the server's counter late. Until
    // the addition, the children's CPU time seems to belong to other processes. A running minimum
    // of the other processes' CPU time, computed from the end backwards, removes this error.
    let mut theirs: Vec<(i64, f64, f64)> = Vec::with_capacity(accounts.len());
    let mut least_ns = f64::INFINITY;
    for account in accounts.iter().rev() {
        least_ns = least_ns.min(account.busy_ns - account.known_ns?);
        theirs.push((account.at_ns, least_ns, account.busy_ns));
    }
    theirs.reverse();
    let mut worst: Option<(f64, f64)> = None;
    let mut to = 0;
    for from in 0..theirs.len() {
        while to < theirs.len() && theirs[to].0 - theirs[from].0 < BURST_NS {
            to += 1;
        }
        let Some(end) = theirs.get(to) else { break };
        let start = theirs[from];
        let length_ns = (end.0 - start.0) as f64;
        let (used, busy) = ((end.1 - start.1) / length_ns, (end.2 - start.2) / length_ns);
        if used > used_max && busy >= BUSY_CORES_SHARE_MIN * cores && worst.is_none_or(|worst| used > worst.0) {
            worst = Some((used, length_ns / 1e9));
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{
        Interval, LoadCurve, LoadShape, Plan, RequestFailure, RouteFigures, Series, SeriesKind, SeriesSample,
    };

    /// A simulated machine: the cores used during each tenth of a second.
    struct SimulatedCores {
        cores: f64,
        local: bool,
        server: Option<f64>,
        ours: f64,
        others: fn(usize) -> f64,
        stolen: f64,
        waiting: f64,
        downstream: f64,
        /// Cores used by the kernel's own threads.
        kernel: f64,
        /// Number of cores occupied by threads that fall asleep or wake up, in time that is neither
        /// idle nor the work of a process.
        waking: f64,
        /// The length of the load in tenths of a second.
        length: usize,
    }

    const QUIET_CORES: SimulatedCores = SimulatedCores {
        cores: 2.0,
        local: true,
        server: Some(1.0),
        ours: 0.5,
        others: |_| 0.03,
        stolen: 0.0,
        waiting: 0.2,
        downstream: 0.0,
        kernel: 0.0,
        waking: 0.0,
        length: 10,
    };

    fn simulated_run(scene: &SimulatedCores) -> Run {
        let mut run =
            Run::new(Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }));
        let step_ns = 100 * MS as i64;
        run.window_ns = (0, scene.length as u64 * step_ns as u64);
        let mut sums = [0.0f64; 11];
        let names = [
            "host.cpu_idle",
            "host.cpu_steal",
            "server.cpu",
            "client.cpu",
            "server.run_queue_wait",
            "downstream.cpu",
            "host.cpu_iowait",
            "host.cpu_user",
            "host.cpu_system",
            "host.cpu_interrupts",
            "kernel.cpu",
        ];
        for tick in 0..=scene.length {
            for (name, sum) in names.iter().zip(sums) {
                if *name == "server.cpu" && scene.server.is_none() {
                    continue;
                }
                let series =
                    run.probes.series.entry((*name).into()).or_insert_with(|| Series::new(SeriesKind::Counter, "ns"));
                // The kernel counts CPU time of the machine in hundredths of a second.
                let unit = if name.starts_with("host") { 1e7 } else { 1.0 };
                let at_ns = tick as i64 * step_ns - 20 * MS as i64;
                series.push(SeriesSample { at_ns, value: (sum / unit).floor() * unit });
            }
            let load = scene.server.unwrap_or(1.0) + scene.ours + scene.downstream + scene.kernel;
            let used = load + (scene.others)(tick) + scene.stolen;
            let rates = [
                scene.cores - used - scene.waking,
                scene.stolen,
                scene.server.unwrap_or(0.0),
                scene.ours,
                scene.waiting,
                scene.downstream,
                0.0,
                0.6 * (used - scene.stolen),
                0.35 * (used - scene.stolen),
                0.05 * (used - scene.stolen),
                scene.kernel,
            ];
            sums.iter_mut().zip(rates).for_each(|(sum, rate)| *sum += rate.max(0.0) * step_ns as f64);
        }
        for (name, value) in [("host.cores", scene.cores), ("target.local", f64::from(u8::from(scene.local)))] {
            let mut series = Series::new(SeriesKind::Gauge, "");
            series.push(SeriesSample { at_ns: 0, value });
            run.probes.series.insert(name.into(), series);
        }
        if scene.server.is_none() {
            run.probes.missing.push("no process listens".into());
        }
        run
    }

    #[test]
    fn only_disturbing_processes_are_named() {
        for (name, scene, expect) in [
            ("quiet", QUIET_CORES, None),
            (
                "quiet, full, and the server's threads wait for each other",
                SimulatedCores { server: Some(1.4), waiting: 3.0, ..QUIET_CORES },
                None,
            ),
            (
                "burners",
                SimulatedCores { server: Some(0.4), ours: 0.2, others: |_| 1.38, ..QUIET_CORES },
                Some("other processes used 1.4 of 2 cores"),
            ),
            (
                "one burner, nobody waits, a core is free",
                SimulatedCores { cores: 4.0, waiting: 0.05, others: |_| 1.0, ..QUIET_CORES },
                None,
            ),
            (
                "the same, but they wait",
                SimulatedCores { cores: 4.0, waiting: 0.4, others: |_| 1.0, ..QUIET_CORES },
                Some("other processes used 1.0 of 4 cores"),
            ),
            (
                "a large machine",
                SimulatedCores {
                    cores: 64.0,
                    server: Some(40.0),
                    ours: 8.0,
                    waiting: 9.0,
                    others: |_| 2.0,
                    ..QUIET_CORES
                },
                None,
            ),
            (
                "a large machine, many others",
                SimulatedCores {
                    cores: 64.0,
                    server: Some(40.0),
                    ours: 8.0,
                    waiting: 9.0,
                    others: |_| 9.0,
                    ..QUIET_CORES
                },
                Some("other processes used 9.0 of 64 cores"),
            ),
            ("its own database", SimulatedCores { server: Some(0.7), ours: 0.3, downstream: 0.9, ..QUIET_CORES }, None),
            ("its files are written", SimulatedCores { server: Some(1.0), kernel: 0.45, ..QUIET_CORES }, None),
            (
                "a burst",
                SimulatedCores {
                    length: 50,
                    server: Some(0.7),
                    ours: 0.3,
                    others: |tick| if (20..26).contains(&tick) { 1.0 } else { 0.0 },
                    ..QUIET_CORES
                },
                Some("other processes used 1.0 of 2 cores for 0.5 s"),
            ),
            (
                "a short spike",
                SimulatedCores {
                    length: 50,
                    server: Some(0.9),
                    others: |tick| if tick == 20 { 0.6 } else { 0.0 },
                    ..QUIET_CORES
                },
                None,
            ),
            (
                "steal",
                SimulatedCores { server: Some(0.8), stolen: 0.2, ..QUIET_CORES },
                Some("the host of this machine took 13 % of its CPU time (steal)"),
            ),
            ("waking often", SimulatedCores { waking: 0.3, ..QUIET_CORES }, None),
            ("a little steal", SimulatedCores { server: Some(0.8), stolen: 0.04, ..QUIET_CORES }, None),
            ("an unknown server", SimulatedCores { server: None, others: |_| 0.5, ..QUIET_CORES }, None),
            (
                "an unknown server and steal",
                SimulatedCores { server: None, stolen: 0.4, ..QUIET_CORES },
                Some("the host of this machine took 21 % of its CPU time (steal)"),
            ),
            (
                "another machine's server, and others here",
                SimulatedCores { local: false, server: None, others: |_| 0.5, ..QUIET_CORES },
                Some("other processes used 1.5 of 2 cores"),
            ),
            ("short", SimulatedCores { length: 3, ..QUIET_CORES }, None),
            (
                "short, burners",
                SimulatedCores { length: 3, server: Some(0.5), others: |_| 1.0, ..QUIET_CORES },
                Some("other processes used 1.0 of 2 cores"),
            ),
        ] {
            let others = Interference::from_run(&simulated_run(&scene));
            assert_eq!(others.reason.as_deref().filter(|_| others.is_disturbed), expect, "{name}: {others:?}");
            assert_eq!(others.is_disturbed, expect.is_some(), "{name}");
        }
        let unknown = Interference::from_run(&simulated_run(&SimulatedCores { server: None, ..QUIET_CORES }));
        let reason =
            "the CPU use of other processes is not known: the server's process was not found (no process listens)";
        assert_eq!((unknown.cores, unknown.reason.as_deref()), (None, Some(reason)));
        let quiet = Interference::from_run(&simulated_run(&QUIET_CORES));
        assert!(quiet.cores.is_some_and(|cores| cores < 0.06) && quiet.reason.is_none(), "{quiet:?}");
    }

    #[test]
    fn late_child_cpu_time_is_not_a_burst() {
        // Every half second the server waits for its child processes. The children's CPU time is
        // added to the server's counter only when the server waits for the children.
        let mut late = simulated_run(&SimulatedCores { server: Some(1.0), others: |_| 0.0, length: 40, ..QUIET_CORES });
        let server = late.probes.series.get_mut("server.cpu").expect("there");
        for (at, sample) in server.samples.iter_mut().enumerate() {
            sample.value = (at / 5 * 5) as f64 * 1e8;
        }
        let others = Interference::from_run(&late);
        assert!(!others.is_disturbed, "{others:?}");
    }

    #[test]
    fn unrecorded_cpu_use_is_unknown() {
        let mut empty = simulated_run(&QUIET_CORES);
        empty.probes = Probes::default();
        let others = Interference::from_run(&empty);
        assert_eq!(others.reason.as_deref(), Some("the CPU use of other processes is not known: no probe ran"));
        assert!(!others.is_disturbed && others.cores.is_none() && others.steal_share.is_none());
        let mut old = simulated_run(&QUIET_CORES);
        old.probes.series.remove("host.cores");
        assert!(Interference::from_run(&old).reason.is_some_and(|why| why.contains("an older plimsoll")));
        let mut brief = simulated_run(&QUIET_CORES);
        brief.window_ns = (100 * MS, 200 * MS);
        assert!(Interference::from_run(&brief).reason.is_some_and(|why| why.contains("too short")));
    }

    #[test]
    fn all_failed_responses_are_not_interference() {
        let loud = SimulatedCores { server: Some(0.4), ours: 0.2, others: |_| 1.38, ..QUIET_CORES };
        for (succeeded, failed, kind, expect) in [
            (0, 90, RequestFailure::Status, false),
            (0, 90, RequestFailure::Expectation, false),
            (0, 90, RequestFailure::Timeout, true),
            (1, 90, RequestFailure::Status, true),
            (90, 0, RequestFailure::Status, true),
        ] {
            let mut run = simulated_run(&loud);
            let mut figures = RouteFigures::default();
            figures.ledger.scheduled = succeeded + failed;
            figures.ledger.succeeded = succeeded;
            figures.ledger.failed[kind as usize] = failed;
            run.push(0, Interval { routes: figures.into(), ..Interval::default() });
            let others = Interference::from_run(&run);
            assert_eq!(others.is_disturbed, expect, "{succeeded} {failed} {kind:?}: {others:?}");
            // The CPU use of other processes is known, although the load does not count as
            // disturbed.
            assert!(others.cores.is_some_and(|cores| cores > 1.0), "{others:?}");
            assert_eq!(others.doubt().is_some(), expect);
        }
    }

    #[test]
    fn interference_is_combined_over_loads() {
        let quiet = Interference::from_run(&simulated_run(&QUIET_CORES));
        let loud = Interference::from_run(&simulated_run(&SimulatedCores {
            server: Some(0.4),
            ours: 0.2,
            others: |_| 1.38,
            ..QUIET_CORES
        }));
        let over = |quiet_count: usize, loud_count: usize| {
            let loads = std::iter::repeat_n(&quiet, quiet_count).chain(std::iter::repeat_n(&loud, loud_count));
            Interference::combine(loads, "trials")
        };
        assert_eq!(over(6, 34).reason.as_deref(), Some("other processes used 1.4 of 2 cores in 34 of 40 trials"));
        assert_eq!((over(39, 1).is_disturbed, over(39, 1).reason), (false, None));
        assert!(over(10, 10).cores.is_some_and(|cores| (0.6..0.8).contains(&cores)));
        assert_eq!(over(0, 0), Interference::default());
    }
}
