//! Gives any bytes to every parser of what the kernel tells: none may panic.

use plimsoll_sys::probe::{cgroup, host, listener, process, sockets};

/// Gives `bytes` to every parser; how many understood them.
pub fn parse_all(bytes: &[u8]) -> usize {
    let half = bytes.len() / 2;
    let mut sockets_told = 0;
    sockets::parse(bytes, 7, &mut |_| sockets_told += 1);
    [
        process::parse_stat(bytes).is_some(),
        process::parse_name(bytes).is_some(),
        process::parse_schedstat(bytes).is_some(),
        process::parse_status(bytes).is_some(),
        process::parse_files_max(bytes).is_some(),
        host::parse_stat(bytes).is_some(),
        host::parse_pressure(bytes).is_some(),
        host::parse_memory_available(bytes).is_some(),
        host::parse_load(bytes).is_some(),
        host::parse_frequency(bytes).is_some(),
        host::parse_traffic(bytes, "lo").is_some(),
        host::counters(bytes, "TcpExt:", |_, _| {}).is_some(),
        host::parse_time_wait(bytes).is_some(),
        host::route_interface(bytes, [10, 0, 0, 1].into()).is_some(),
        cgroup::parse_throttling(bytes).is_some(),
        cgroup::parse_usage_ns(bytes).is_some(),
        cgroup::parse_cpu_max(bytes).is_some(),
        cgroup::parse_cfs(&bytes[..half], &bytes[half..]).is_some(),
        cgroup::parse_bytes(bytes).is_some(),
        cgroup::folders(bytes, "/nowhere".as_ref()) != cgroup::Folders::default(),
        listener::socket_inode(bytes).is_some(),
        sockets_told > 0,
    ]
    .iter()
    .filter(|understood| **understood)
    .count()
}
