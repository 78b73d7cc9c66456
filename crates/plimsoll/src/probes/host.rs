//! The machine that plimsoll runs on: for a local target the server's, for a remote one only the load generator's.

use super::Probe;
use super::sink::{Seldom, Sink};
use plimsoll_model::SeriesKind;
use plimsoll_sys::probe::process::ticks_per_second;
use plimsoll_sys::probe::{Source, host};
use std::net::{IpAddr, SocketAddr};

/// A file, or why it cannot be read.
struct Reading {
    source: Result<Source, String>,
}

impl Reading {
    fn open(path: &str) -> Reading {
        Reading { source: Source::open(path).map_err(|error| reason(path, &error)) }
    }

    /// The parsed content; else the reason.
    fn read<T>(&self, buffer: &mut Vec<u8>, parse: impl FnOnce(&[u8]) -> Option<T>) -> Result<T, String> {
        let source = self.source.as_ref().map_err(String::clone)?;
        let text = source.read(buffer).map_err(|error| crate::target::system_text(&error))?;
        parse(text).ok_or_else(|| "in a form that is not known".to_owned())
    }
}

fn reason(path: &str, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => format!("{path} is not there"),
        _ => format!("{path}: {}", crate::target::system_text(error)),
    }
}

pub struct Host {
    stat: Reading,
    pressure: [(&'static str, Reading); 3],
    memory: Reading,
    load: Reading,
    frequencies: Vec<Source>,
    traffic: Reading,
    interface: Option<String>,
    snmp: Reading,
    netstat: Reading,
    sockstat: Reading,
    slowly: Seldom,
    buffer: Vec<u8>,
}

/// TCP counters: name of the series, group and name in the kernel's files; those of `snmp`, then those of `netstat`.
const SNMP: [(&str, &str, &str); 2] =
    [("tcp.retransmits", "Tcp:", "RetransSegs"), ("tcp.segments_out", "Tcp:", "OutSegs")];
const NETSTAT: [(&str, &str, &str); 10] = [
    ("tcp.listen_overflows", "TcpExt:", "ListenOverflows"),
    ("tcp.listen_drops", "TcpExt:", "ListenDrops"),
    ("tcp.syn_retransmits", "TcpExt:", "TCPSynRetrans"),
    ("tcp.timeouts", "TcpExt:", "TCPTimeouts"),
    ("tcp.syn_queue_drops", "TcpExt:", "TCPReqQFullDrop"),
    ("tcp.syn_queue_cookies", "TcpExt:", "TCPReqQFullDoCookies"),
    ("tcp.backlog_drops", "TcpExt:", "TCPBacklogDrop"),
    ("tcp.receive_queue_drops", "TcpExt:", "TCPRcvQDrop"),
    ("tcp.zero_window_drops", "TcpExt:", "TCPZeroWindowDrop"),
    ("tcp.memory_pressures", "TcpExt:", "TCPMemoryPressures"),
];

impl Host {
    /// `server`: the process whose network is of interest, if one is known.
    pub fn new(server: Option<u32>, addresses: &[SocketAddr], local: bool) -> Host {
        let net =
            server.map(|pid| format!("/proc/{pid}/net")).filter(|folder| Source::open(format!("{folder}/dev")).is_ok());
        let net = net.unwrap_or_else(|| "/proc/net".into());
        let interface = if local {
            Some("lo".to_owned())
        } else {
            addresses.iter().find_map(|address| match address.ip() {
                IpAddr::V4(v4) => host::route_interface(&std::fs::read("/proc/net/route").ok()?, v4),
                IpAddr::V6(_) => None,
            })
        };
        let cores = plimsoll_sys::process::cores();
        let frequency = |core| format!("/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq");
        Host {
            stat: Reading::open("/proc/stat"),
            pressure: ["cpu", "memory", "io"].map(|kind| (kind, Reading::open(&format!("/proc/pressure/{kind}")))),
            memory: Reading::open("/proc/meminfo"),
            load: Reading::open("/proc/loadavg"),
            frequencies: (0..cores.min(64)).filter_map(|core| Source::open(frequency(core)).ok()).collect(),
            traffic: Reading::open(&format!("{net}/dev")),
            interface,
            snmp: Reading::open(&format!("{net}/snmp")),
            netstat: Reading::open(&format!("{net}/netstat")),
            sockstat: Reading::open(&format!("{net}/sockstat")),
            slowly: Seldom::new(1_000_000_000),
            buffer: Vec::new(),
        }
    }

    fn cpu(&mut self, sink: &mut Sink) {
        let tick_ns = 1e9 / ticks_per_second() as f64;
        match self.stat.read(&mut self.buffer, host::parse_stat) {
            Ok(stat) => {
                let cpu = stat.cpu;
                for (name, ticks) in [
                    ("host.cpu_user", cpu.user + cpu.nice),
                    ("host.cpu_system", cpu.system),
                    ("host.cpu_interrupts", cpu.irq + cpu.softirq),
                    ("host.cpu_iowait", cpu.iowait),
                    ("host.cpu_steal", cpu.steal),
                    ("host.cpu_idle", cpu.idle),
                ] {
                    sink.counter(name, "ns", ticks as f64 * tick_ns);
                }
                sink.counter("host.switches", "", stat.switches as f64);
                sink.gauge("host.threads_runnable", "", stat.runnable as f64);
                sink.gauge("host.threads_blocked", "", stat.blocked as f64);
            }
            Err(reason) => sink.gap("host.cpu_user", SeriesKind::Counter, "ns", &reason),
        }
        for (kind, reading) in &self.pressure {
            let some = format!("host.pressure_{kind}_some");
            match reading.read(&mut self.buffer, host::parse_pressure) {
                Ok(pressure) => {
                    sink.counter(&some, "ns waiting", pressure.some_us as f64 * 1e3);
                    if let Some(full_us) = pressure.full_us {
                        sink.counter(&format!("host.pressure_{kind}_full"), "ns waiting", full_us as f64 * 1e3);
                    }
                }
                Err(reason) => sink.gap(&some, SeriesKind::Counter, "ns waiting", &reason),
            }
        }
    }

    fn network(&mut self, sink: &mut Sink) {
        if let Some(interface) = &self.interface {
            match self.traffic.read(&mut self.buffer, |text| host::parse_traffic(text, interface)) {
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
                Err(reason) => sink.gap(&format!("net.{interface}.bytes_in"), SeriesKind::Counter, "bytes", &reason),
            }
        }
        for (reading, counters) in [(&self.snmp, &SNMP[..]), (&self.netstat, &NETSTAT[..])] {
            let told = reading.read(&mut self.buffer, |text| {
                let values = counters.iter().map(|(name, group, key)| (*name, host::counter(text, group, key)));
                // A counter that this kernel does not have is no reading that failed.
                values
                    .for_each(|(name, value)| value.into_iter().for_each(|value| sink.counter(name, "", value as f64)));
                Some(())
            });
            if let Err(reason) = told {
                counters.iter().for_each(|(name, ..)| sink.gap(name, SeriesKind::Counter, "", &reason));
            }
        }
    }
}

impl Probe for Host {
    fn sample(&mut self, sink: &mut Sink) {
        self.cpu(sink);
        self.network(sink);
        let Host { memory, load, sockstat, frequencies, buffer, slowly, .. } = self;
        match memory.read(buffer, host::parse_memory_available) {
            Ok(bytes) => sink.gauge("host.memory_available", "bytes", bytes as f64),
            Err(reason) => sink.gap("host.memory_available", SeriesKind::Gauge, "bytes", &reason),
        }
        slowly.read(|| {
            if let Ok(load) = load.read(buffer, host::parse_load) {
                sink.gauge("host.load_1m", "", load);
            }
            if let Ok(count) = sockstat.read(buffer, host::parse_time_wait) {
                sink.gauge("tcp.time_wait", "", count as f64);
            }
            let read = frequencies.iter().filter_map(|source| host::parse_frequency(source.read(buffer).ok()?));
            let read: Vec<u64> = read.collect();
            if !read.is_empty() {
                sink.gauge("host.frequency", "hz", read.iter().sum::<u64>() as f64 / read.len() as f64);
            }
        });
    }
}
