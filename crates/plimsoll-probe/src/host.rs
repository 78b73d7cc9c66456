//! Reads figures of the machine that plimsoll runs on. With a local target, plimsoll's machine is
//! also the server's machine. With a remote target, plimsoll's machine is only the load generator's
//! machine. Not here: the machine's CPU time ([`super::machine`]).

use super::optional_file::OptionalFile;
use super::ports::TimeWaitProbe;
use super::probe::Probe;
use super::sink::Sink;
use plimsoll_model::SeriesKind;
use plimsoll_sys::probe::{ProcFile, host};
use plimsoll_sys::tcp::is_local;
use std::net::{IpAddr, SocketAddr};

pub struct HostProbe {
    pressure: [([&'static str; 2], OptionalFile); 3],
    memory: OptionalFile,
    load: OptionalFile,
    frequencies: Vec<ProcFile>,
    traffic: OptionalFile,
    interface: Option<String>,
    snmp: OptionalFile,
    netstat: OptionalFile,
    ports: TimeWaitProbe,
    buffer: Vec<u8>,
}

/// Number of samples from one reading to the next of figures that need no dense readings: available
/// memory, and the kernel's cumulative counters such as TCP and pressure. With 10 samples a second,
/// these figures are read every 0.5 s.
const SAMPLES_PER_SLOW_READING: u64 = 5;
/// Means over a minute and almost constant values are read in every tenth sample only, that is
/// every second.
const SAMPLES_PER_SLOWEST_READING: u64 = 10;

const PRESSURE_SERIES_NAMES: [(&str, [&str; 2]); 3] = [
    ("cpu", ["host.pressure_cpu_some", "host.pressure_cpu_full"]),
    ("memory", ["host.pressure_memory_some", "host.pressure_memory_full"]),
    ("io", ["host.pressure_io_some", "host.pressure_io_full"]),
];

/// The TCP counters that are read from the kernel's file `snmp`: series name, and name in the file.
const SNMP_TCP_COUNTERS: [(&str, &str); 2] = [("tcp.retransmits", "RetransSegs"), ("tcp.segments_out", "OutSegs")];
/// The TCP counters that are read from the kernel's file `netstat`: series name, and name in the
/// file.
const NETSTAT_TCP_COUNTERS: [(&str, &str); 10] = [
    ("tcp.listen_overflows", "ListenOverflows"),
    ("tcp.listen_drops", "ListenDrops"),
    ("tcp.syn_retransmits", "TCPSynRetrans"),
    ("tcp.timeouts", "TCPTimeouts"),
    ("tcp.syn_queue_drops", "TCPReqQFullDrop"),
    ("tcp.syn_queue_cookies", "TCPReqQFullDoCookies"),
    ("tcp.backlog_drops", "TCPBacklogDrop"),
    ("tcp.receive_queue_drops", "TCPRcvQDrop"),
    ("tcp.zero_window_drops", "TCPZeroWindowDrop"),
    ("tcp.memory_pressures", "TCPMemoryPressures"),
];

impl HostProbe {
    /// Creates the probe. `server` is the process whose network namespace is read, if known.
    /// `is_remote_load` says whether the load comes from another machine.
    pub fn new(server: Option<u32>, addresses: &[SocketAddr], is_remote_load: bool) -> HostProbe {
        let net = server
            .map(|pid| format!("/proc/{pid}/net"))
            .filter(|folder| ProcFile::open(format!("{folder}/dev")).is_ok());
        let net = net.unwrap_or_else(|| "/proc/net".into());
        // If the load comes from another machine, the server's address does not determine which
        // interface the load uses.
        let reached = addresses.first().filter(|_| !is_remote_load);
        let interface = reached.and_then(|address| match address.ip() {
            own if is_local(&own) => Some("lo".to_owned()),
            IpAddr::V4(v4) => host::route_interface(&std::fs::read("/proc/net/route").ok()?, v4),
            IpAddr::V6(_) => None,
        });
        let cores = plimsoll_sys::process::allowed_core_count();
        let frequency = |core| format!("/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq");
        HostProbe {
            pressure: PRESSURE_SERIES_NAMES
                .map(|(kind, names)| (names, OptionalFile::open(&format!("/proc/pressure/{kind}")))),
            memory: OptionalFile::open("/proc/meminfo"),
            load: OptionalFile::open("/proc/loadavg"),
            frequencies: (0..cores.min(64)).filter_map(|core| ProcFile::open(frequency(core)).ok()).collect(),
            // The interface of the load is in plimsoll's own network namespace.
            traffic: OptionalFile::open("/proc/net/dev"),
            interface,
            snmp: OptionalFile::open(&format!("{net}/snmp")),
            netstat: OptionalFile::open(&format!("{net}/netstat")),
            ports: TimeWaitProbe::new(OptionalFile::open(&format!("{net}/sockstat")), server, addresses),
            buffer: Vec::new(),
        }
    }

    fn report_pressure(&mut self, sink: &mut Sink) {
        for ([some, full], reading) in &self.pressure {
            match reading.read(&mut self.buffer, host::parse_pressure) {
                Ok(pressure) => {
                    sink.counter(some, "ns waiting", pressure.some_us as f64 * 1e3);
                    if let Some(full_us) = pressure.full_us {
                        sink.counter(full, "ns waiting", full_us as f64 * 1e3);
                    }
                }
                Err(reason) => sink.add_gap(some, SeriesKind::Counter, "ns waiting", &reason),
            }
        }
    }

    fn report_network_traffic(&mut self, sink: &mut Sink) {
        if let Some(interface) = &self.interface {
            match self.traffic.read(&mut self.buffer, |text| host::parse_interface_counters(text, interface)) {
                Ok(traffic) => {
                    for (what, value) in [
                        ("bytes_in", traffic.bytes_in),
                        ("bytes_out", traffic.bytes_out),
                        ("packets_in", traffic.packets_in),
                        ("packets_out", traffic.packets_out),
                        ("dropped_in", traffic.dropped_in),
                        ("dropped_out", traffic.dropped_out),
                    ] {
                        let unit = if what.starts_with("bytes") { "bytes" } else { "" };
                        sink.counter(&format!("net.{interface}.{what}"), unit, value as f64);
                    }
                }
                Err(reason) => {
                    sink.add_gap(&format!("net.{interface}.bytes_in"), SeriesKind::Counter, "bytes", &reason)
                }
            }
        }
    }

    fn report_tcp_counters(&mut self, sink: &mut Sink) {
        for (reading, group, counters) in
            [(&self.snmp, "Tcp:", &SNMP_TCP_COUNTERS[..]), (&self.netstat, "TcpExt:", &NETSTAT_TCP_COUNTERS[..])]
        {
            let told = reading.read(&mut self.buffer, |text| {
                // A kernel may lack one of the counters; a missing counter is skipped and does not
                // count as a failed reading.
                host::for_each_counter(text, group, |name, value| {
                    if let Some((series, _)) = counters.iter().find(|(_, key)| key.as_bytes() == name) {
                        sink.counter(series, "", value as f64);
                    }
                })
            });
            if let Err(reason) = told {
                counters.iter().for_each(|(name, _)| sink.add_gap(name, SeriesKind::Counter, "", &reason));
            }
        }
    }

    fn report_available_memory(&mut self, sink: &mut Sink) {
        match self.memory.read(&mut self.buffer, host::parse_memory_available) {
            Ok(bytes) => sink.gauge("host.memory_available", "bytes", bytes as f64),
            Err(reason) => sink.add_gap("host.memory_available", SeriesKind::Gauge, "bytes", &reason),
        }
    }

    fn report_load_and_frequency(&mut self, sink: &mut Sink) {
        let HostProbe { load, ports, frequencies, buffer, .. } = self;
        if let Ok(load) = load.read(buffer, host::parse_load) {
            sink.gauge("host.load_1m", "", load);
        }
        ports.sample(sink, buffer);
        let read = frequencies.iter().filter_map(|source| host::parse_frequency(source.read(buffer).ok()?));
        let read: Vec<u64> = read.collect();
        if !read.is_empty() {
            sink.gauge("host.frequency", "hz", read.iter().sum::<u64>() as f64 / read.len() as f64);
        }
    }
}

impl Probe for HostProbe {
    fn sample(&mut self, sink: &mut Sink) {
        self.report_network_traffic(sink);
        if sink.is_due_in_this_sample(SAMPLES_PER_SLOW_READING, 1) {
            self.report_tcp_counters(sink);
        }
        if sink.is_due_in_this_sample(SAMPLES_PER_SLOW_READING, 2) {
            self.report_pressure(sink);
        }
        if sink.is_due_in_this_sample(SAMPLES_PER_SLOW_READING, 3) {
            self.report_available_memory(sink);
        }
        if sink.is_due_in_this_sample(SAMPLES_PER_SLOWEST_READING, 4) {
            self.report_load_and_frequency(sink);
        }
    }
}
