//! Reads figures of the whole machine: `/proc/{stat,pressure,meminfo,loadavg}`, frequencies, and
//! network counters (of the network namespace whose /proc files are read).

use super::{number_after_key, parse_leading_number, parse_number_field, split_fields};

/// CPU time by kind, in ticks, summed over the cores. User time includes the time of virtual
/// machines (guests).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the kernel's own names")]
pub struct CpuTicks {
    pub user: u64,
    pub nice: u64,
    pub system: u64,
    pub idle: u64,
    pub iowait: u64,
    pub irq: u64,
    pub softirq: u64,
    pub steal: u64,
}

/// The values of `/proc/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostStat {
    /// CPU time by kind, summed over the cores.
    pub cpu: CpuTicks,
    /// The number of cores whose CPU time is summed in `cpu`.
    pub cores: u32,
    /// The number of context switches.
    pub switches: u64,
    /// The number of threads that run or wait for a core.
    pub runnable: u64,
    /// The number of threads that wait for a device.
    pub blocked: u64,
}

/// Parses `/proc/stat`.
pub fn parse_stat(text: &[u8]) -> Option<HostStat> {
    let mut ticks = split_fields(text.split(|byte| *byte == b'\n').next()?.strip_prefix(b"cpu ")?);
    let mut next = || parse_number_field(ticks.next());
    let cpu = CpuTicks {
        user: next()?,
        nice: next()?,
        system: next()?,
        idle: next()?,
        iowait: next()?,
        irq: next()?,
        softirq: next()?,
        // Some containers provide an incomplete `/proc/stat`, so a missing steal time counts as 0.
        steal: next().unwrap_or(0),
    };
    let one = |line: &[u8]| line.strip_prefix(b"cpu").is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit));
    Some(HostStat {
        cpu,
        cores: text.split(|byte| *byte == b'\n').filter(|line| one(line)).count() as u32,
        switches: number_after_key(text, b"ctxt")?,
        runnable: number_after_key(text, b"procs_running")?,
        blocked: number_after_key(text, b"procs_blocked")?,
    })
}

/// The time in us in which tasks were stalled because a resource was short (`/proc/pressure/*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    /// The time in which at least one thread waited, us.
    pub some_us: u64,
    /// The time in which all threads waited at once, us; `None` if the kernel does not report this
    /// time.
    pub full_us: Option<u64>,
}

/// Parses a pressure file of the host or of a control group.
pub fn parse_pressure(text: &[u8]) -> Option<Pressure> {
    let total = |kind: &[u8]| {
        let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(kind))?;
        split_fields(line).find_map(|part| parse_number_field(part.strip_prefix(b"total=")))
    };
    Some(Pressure { some_us: total(b"some ")?, full_us: total(b"full ") })
}

/// Parses the memory available without swapping, in bytes (`/proc/meminfo`).
pub fn parse_memory_available(text: &[u8]) -> Option<u64> {
    number_after_key(text, b"MemAvailable")?.checked_mul(1024)
}

/// Parses the mean number of runnable threads over the last minute (`/proc/loadavg`).
pub fn parse_load(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(split_fields(text).next()?)
        .ok()?
        .parse()
        .ok()
        .filter(|load: &f64| load.is_finite() && *load >= 0.0)
}

/// Parses a core's frequency in Hz (`cpufreq/scaling_cur_freq`, in kHz).
pub fn parse_frequency(text: &[u8]) -> Option<u64> {
    parse_leading_number(text)?.0.checked_mul(1000)
}

/// The counters of a network interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct InterfaceCounters {
    pub bytes_in: u64,
    pub packets_in: u64,
    pub dropped_in: u64,
    pub bytes_out: u64,
    pub packets_out: u64,
    pub dropped_out: u64,
}

/// Parses the traffic of `interface` in `/proc/net/dev`.
pub fn parse_interface_counters(text: &[u8], interface: &str) -> Option<InterfaceCounters> {
    let line = text
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.trim_ascii_start().strip_prefix(interface.as_bytes())?.strip_prefix(b":"))?;
    let mut values = split_fields(line);
    let mut skip = |count: usize| parse_number_field(values.nth(count));
    Some(InterfaceCounters {
        bytes_in: skip(0)?,
        packets_in: skip(0)?,
        dropped_in: skip(1)?,
        bytes_out: skip(4)?,
        packets_out: skip(0)?,
        dropped_out: skip(1)?,
    })
}

/// Calls `tell` with the name and value of each counter in a group of `/proc/net/snmp` or
/// `/proc/net/netstat`. For each group, a line of names precedes a line of values, and both lines
/// have a prefix such as `TcpExt:`. Returns `None` if the file has no such group.
pub fn for_each_counter(text: &[u8], group: &str, mut tell: impl FnMut(&[u8], u64)) -> Option<()> {
    let mut lines = text.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(group.as_bytes()));
    let (names, values) = (lines.next()?, lines.next()?);
    for (name, value) in split_fields(names).zip(split_fields(values)) {
        if let Some(value) = parse_number_field(Some(value)) {
            tell(name, value);
        }
    }
    Some(())
}

/// Parses the number of TCP sockets in TIME-WAIT (`/proc/net/sockstat`).
pub fn parse_time_wait(text: &[u8]) -> Option<u64> {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"TCP:"))?;
    let mut parts = split_fields(line);
    parts.find(|part| *part == b"tw")?;
    parse_number_field(parts.next())
}

/// Finds the interface of the route with the longest mask to `address` in `/proc/net/route` (IPv4).
pub fn route_interface(text: &[u8], address: std::net::Ipv4Addr) -> Option<String> {
    let wanted = u32::from_ne_bytes(address.octets());
    let hex = |part: Option<&[u8]>| u32::from_str_radix(std::str::from_utf8(part?).ok()?, 16).ok();
    let mut best: Option<(u32, &[u8])> = None;
    for line in text.split(|byte| *byte == b'\n').skip(1) {
        let mut parts = split_fields(line);
        let (Some(name), Some(destination), Some(mask)) = (parts.next(), hex(parts.next()), hex(parts.nth(5))) else {
            continue;
        };
        if wanted & mask == destination && best.is_none_or(|(longest, _)| mask.count_ones() > longest) {
            best = Some((mask.count_ones(), name));
        }
    }
    best.map(|(_, name)| String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_counter(text: &[u8], group: &str, name: &str) -> Option<u64> {
        let mut found = None;
        for_each_counter(text, group, |key, value| found = if key == name.as_bytes() { Some(value) } else { found })?;
        found
    }

    #[test]
    fn host_statistics_are_parsed() {
        let text =
            b"cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3\nintr 5 6\nctxt 77\nbtime 1\nprocs_running 3\nprocs_blocked 1\n";
        let cpu = CpuTicks { user: 1, nice: 2, system: 3, idle: 4, iowait: 5, irq: 6, softirq: 7, steal: 8 };
        assert_eq!(parse_stat(text), Some(HostStat { cpu, cores: 1, switches: 77, runnable: 3, blocked: 1 }));
        assert_eq!(parse_stat(b"cpu  1 2 3\nctxt 1\n"), None);
        for (text, expect) in [
            (
                "some avg10=0.00 avg60=1.00 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n",
                Some(Pressure { some_us: 12, full_us: Some(3) }),
            ),
            ("some avg10=0.00 avg60=1.00 avg300=0.00 total=12\n", Some(Pressure { some_us: 12, full_us: None })),
            ("some avg10=0.00\n", None),
            ("", None),
        ] {
            assert_eq!(parse_pressure(text.as_bytes()), expect, "{text}");
        }
        assert_eq!(parse_memory_available(b"MemTotal: 5 kB\nMemAvailable:  3 kB\n"), Some(3072));
        for (text, expect) in [("0.50 0.3 0.2 1/2 3\n", Some(0.5)), ("x\n", None), ("nan 1\n", None), ("", None)] {
            assert_eq!(parse_load(text.as_bytes()), expect, "{text}");
        }
        assert_eq!(parse_frequency(b"2400000\n"), Some(2_400_000_000));
    }

    #[test]
    fn network_statistics_are_parsed() {
        let dev = b"Inter-| Receive\n face |bytes\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  eth0:100 2 3 4 5 6 7 8 900 10 11 12 13 14 15 16\n";
        let traffic = parse_interface_counters(dev, "eth0").expect("there");
        assert_eq!((traffic.bytes_in, traffic.dropped_in, traffic.bytes_out, traffic.packets_out), (100, 4, 900, 10));
        assert_eq!((traffic.packets_in, traffic.dropped_out), (2, 12));
        assert_eq!(parse_interface_counters(dev, "eth"), None);
        let netstat =
            b"TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 20 30\nIpExt: InNoRoutes\nIpExt: 5\n";
        for (group, name, expect) in [
            ("TcpExt:", "ListenOverflows", Some(20)),
            ("TcpExt:", "ListenDrops", Some(30)),
            ("TcpExt:", "Nothing", None),
            ("IpExt:", "InNoRoutes", Some(5)),
            ("Tcp:", "RetransSegs", None),
        ] {
            assert_eq!(find_counter(netstat, group, name), expect, "{group}{name}");
        }
        assert_eq!(parse_time_wait(b"sockets: used 5\nTCP: inuse 1 orphan 0 tw 9 alloc 2 mem 1\n"), Some(9));
        assert_eq!(parse_time_wait(b"UDP: inuse 1\n"), None);
        let route = b"Iface Destination Gateway Flags RefCnt Use Metric Mask\neth0 00000000 0100000A 3 0 0 0 00000000\neth1 0000000A 0 1 0 0 0 000000FF\n";
        for (address, expect) in [([10, 1, 2, 3], "eth1"), ([192, 168, 0, 1], "eth0")] {
            assert_eq!(route_interface(route, address.into()).as_deref(), Some(expect));
        }
        assert_eq!(route_interface(b"", [1, 2, 3, 4].into()), None);
    }

    #[test]
    fn statistics_of_this_machine_are_parsed() {
        let read = |path: &str| std::fs::read(path).expect(path);
        let stat = parse_stat(&read("/proc/stat")).expect("the format is known");
        assert!(stat.cpu.user + stat.cpu.system > 0 && stat.switches > 0);
        assert!(parse_memory_available(&read("/proc/meminfo")).is_some_and(|bytes| bytes > 1 << 20));
        assert!(parse_load(&read("/proc/loadavg")).is_some());
        assert!(find_counter(&read("/proc/net/snmp"), "Tcp:", "RetransSegs").is_some());
        assert!(find_counter(&read("/proc/net/netstat"), "TcpExt:", "ListenOverflows").is_some());
        assert!(parse_interface_counters(&read("/proc/net/dev"), "lo").is_some());
        assert!(parse_time_wait(&read("/proc/net/sockstat")).is_some());
    }
}
