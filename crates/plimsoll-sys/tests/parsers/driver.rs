//! Passes given bytes to every parser of kernel files and of program files. No parser may panic.

use plimsoll_sys::probe::{cgroup, host, listener, process, sockets};
use plimsoll_sys::sampling::for_each_record;
use plimsoll_sys::symbols::{Functions, JitNames, RandomAccessBytes, parse_maps};
use std::borrow::Cow;

/// A file in memory.
struct Memory<'a>(&'a [u8]);

impl RandomAccessBytes for Memory<'_> {
    fn read_part(&self, at: u64, length: usize) -> Cow<'_, [u8]> {
        self.0.read_part(at, length)
    }
}

/// Looks up functions and frames at some offsets of a program. Returns whether a name was found.
fn has_function_name(bytes: &[u8]) -> bool {
    let Some(functions) = Functions::read(Memory(bytes)) else { return false };
    let step = (bytes.len() / 64).max(1);
    let places = (0..bytes.len()).step_by(step).map(|at| at as u64).chain([u64::MAX, u64::MAX / 2]);
    let told = |at: &u64| {
        _ = functions.frame_at(*at);
        functions.function_at(*at).is_some()
    };
    places.filter(told).count() > 0
}

/// Passes `bytes` to every parser. Returns the number of parsers that accepted the bytes.
pub fn parse_all(bytes: &[u8]) -> usize {
    let half = bytes.len() / 2;
    let mut sockets_told = 0;
    sockets::parse(bytes, 7, &mut |_| sockets_told += 1);
    let mut records_told = 0;
    for_each_record(bytes, &mut Vec::new(), &mut |_| records_told += 1);
    [
        process::parse_stat(bytes).is_some(),
        process::parse_name(bytes).is_some(),
        process::parse_schedstat(bytes).is_some(),
        process::parse_status(bytes).is_some(),
        process::parse_files_max(bytes).is_some(),
        process::parse_wait_channel(bytes).is_some(),
        process::parse_futex_address(bytes).is_some(),
        host::parse_stat(bytes).is_some(),
        host::parse_pressure(bytes).is_some(),
        host::parse_memory_available(bytes).is_some(),
        host::parse_load(bytes).is_some(),
        host::parse_frequency(bytes).is_some(),
        host::parse_interface_counters(bytes, "lo").is_some(),
        host::for_each_counter(bytes, "TcpExt:", |_, _| {}).is_some(),
        host::parse_time_wait(bytes).is_some(),
        host::route_interface(bytes, [10, 0, 0, 1].into()).is_some(),
        cgroup::parse_throttling(bytes).is_some(),
        cgroup::parse_usage_ns(bytes).is_some(),
        cgroup::parse_cpu_max(bytes).is_some(),
        cgroup::parse_cfs(&bytes[..half], &bytes[half..]).is_some(),
        cgroup::parse_bytes(bytes).is_some(),
        cgroup::find_cgroup_folders(bytes, "/nowhere".as_ref()) != cgroup::CgroupFolders::default(),
        listener::socket_inode(bytes).is_some(),
        sockets_told > 0,
        records_told > 0,
        !parse_maps(bytes).is_empty(),
        JitNames::parse(bytes.to_vec()).function_at(0x1000).is_some(),
        has_function_name(bytes),
    ]
    .iter()
    .filter(|understood| **understood)
    .count()
}
