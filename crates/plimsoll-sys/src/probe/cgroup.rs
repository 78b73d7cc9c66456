//! Reads the CPU and memory limits and the throttling of a control group (versions 1 and 2).

use super::{number_after_key, parse_leading_number, parse_number_field, split_fields};
use std::path::{Path, PathBuf};

/// The throttling of a control group so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttling {
    /// The number of periods in which the group ran with a CPU quota.
    pub periods: u64,
    /// The number of periods in which the group exhausted its CPU quota and was throttled.
    pub throttled_periods: u64,
    /// The time for which the group was throttled, ns.
    pub throttled_ns: u64,
}

/// Parses the throttling in `cpu.stat` of control groups (version 1 or 2); `None` if the file
/// counts no quota periods.
pub fn parse_throttling(text: &[u8]) -> Option<Throttling> {
    // Version 2 of control groups reports the throttled time in us, and version 1 in ns.
    let throttled_ns = match number_after_key(text, b"throttled_usec") {
        Some(us) => us.checked_mul(1000)?,
        None => number_after_key(text, b"throttled_time")?,
    };
    Some(Throttling {
        periods: number_after_key(text, b"nr_periods")?,
        throttled_periods: number_after_key(text, b"nr_throttled")?,
        throttled_ns,
    })
}

/// Parses the CPU time in ns that a control group has used, from `cpu.stat` of version 2.
pub fn parse_usage_ns(text: &[u8]) -> Option<u64> {
    number_after_key(text, b"usage_usec")?.checked_mul(1000)
}

/// Parses the CPU quota in `cpu.max` of control groups version 2 (such as `50000 100000`), and
/// returns it in cores. `Some(None)` means no quota.
pub fn parse_cpu_max(text: &[u8]) -> Option<Option<f64>> {
    let mut parts = split_fields(text);
    let quota = parts.next()?;
    let period = parse_number_field(parts.next()).filter(|period| *period > 0)?;
    if quota == b"max" {
        return Some(None);
    }
    Some(Some(parse_number_field(Some(quota))? as f64 / period as f64))
}

/// Parses the CPU quota of control groups version 1 (`cpu.cfs_quota_us` and `cpu.cfs_period_us`),
/// and returns it in cores. `Some(None)` means no quota (-1).
pub fn parse_cfs(quota: &[u8], period: &[u8]) -> Option<Option<f64>> {
    let period = parse_leading_number(period).map(|(period, _)| period).filter(|period| *period > 0)?;
    if quota.trim_ascii_start().starts_with(b"-") {
        return Some(None);
    }
    Some(Some(parse_leading_number(quota)?.0 as f64 / period as f64))
}

/// Parses how often the kernel killed a process of the group because memory ran out. The file is
/// `memory.events` for control groups version 2, and `memory.oom_control` for version 1.
pub fn parse_oom_kills(text: &[u8]) -> Option<u64> {
    number_after_key(text, b"oom_kill")
}

/// Parses a limit or amount of memory in bytes. Returns `None` (no limit) for `max`, and for the
/// very large number that control groups version 1 use for no limit.
pub fn parse_bytes(text: &[u8]) -> Option<u64> {
    parse_leading_number(text).map(|(bytes, _)| bytes).filter(|bytes| *bytes < 1 << 62)
}

/// Folders of the control groups of a process, by controller.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CgroupFolders {
    /// The folder with the CPU limits: the group's folder in version 2, or its folder of the cpu
    /// controller in version 1.
    pub cpu: Option<PathBuf>,
    /// The folder with the memory limits: the group's folder in version 2, or its folder of the
    /// memory controller in version 1.
    pub memory: Option<PathBuf>,
    /// The folder of the cpuacct controller of version 1, which reports used CPU time; `None` with
    /// version 2.
    pub usage: Option<PathBuf>,
}

/// Finds the folders named in `/proc/PID/cgroup`, below `root` (`/sys/fs/cgroup`). If an enclosing
/// group has a lower CPU or memory limit, the enclosing group's folder is returned, since a limit
/// applies to the whole subtree. The field `usage` always names the process's own group. Only
/// existing folders are returned.
pub fn find_cgroup_folders(text: &[u8], root: &Path) -> CgroupFolders {
    let mut found = CgroupFolders::default();
    let there = |folder: PathBuf, file: &str| folder.join(file).exists().then_some(folder);
    for line in text.split(|byte| *byte == b'\n') {
        let mut parts = line.splitn(3, |byte| *byte == b':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let Ok(path) = std::str::from_utf8(path) else { continue };
        let path = path.trim_start_matches('/');
        // A path with `..` leads to a group outside the cgroup namespace of this process.
        if path.split('/').any(|part| part == "..") {
            continue;
        }
        if controllers.is_empty() {
            for base in [root.to_owned(), root.join("unified")] {
                let of = |file: &str, limit: fn(&Path) -> Option<f64>| {
                    there(base.join(path), file).map(|folder| folder_with_lowest_limit(folder, &base, limit))
                };
                found.cpu = found.cpu.or_else(|| of("cpu.stat", cpu_quota_cores));
                found.memory = found.memory.or_else(|| of("memory.current", memory_limit));
            }
            continue;
        }
        for controller in controllers.split(|byte| *byte == b',').filter_map(|name| std::str::from_utf8(name).ok()) {
            // In a container, the container's own group may be the root of each controller, so the
            // root is tried second.
            let place = |file: &str| {
                let below = there(root.join(controller).join(path), file);
                below.or_else(|| there(root.join(controller), file))
            };
            let of = |file: &str, limit: fn(&Path) -> Option<f64>| {
                place(file).map(|folder| folder_with_lowest_limit(folder, &root.join(controller), limit))
            };
            match controller {
                "cpu" => found.cpu = of("cpu.cfs_quota_us", cpu_quota_cores).or(found.cpu),
                "memory" => found.memory = of("memory.usage_in_bytes", memory_limit).or(found.memory),
                "cpuacct" => found.usage = place("cpuacct.usage").or(found.usage),
                _ => {}
            }
        }
    }
    found
}

/// Returns the folder with the lowest limit among a group's folder and its enclosing folders up to
/// `top`. Returns the group's own folder if no folder has a limit.
fn folder_with_lowest_limit(folder: PathBuf, top: &Path, limit: fn(&Path) -> Option<f64>) -> PathBuf {
    let groups = folder.ancestors().take_while(|group| group.starts_with(top));
    let limited = groups.filter_map(|group| Some((limit(group)?, group)));
    let least = limited.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, group)| group.to_owned());
    least.unwrap_or(folder)
}

/// Returns the quota of a group in cores; `None` without a quota.
fn cpu_quota_cores(group: &Path) -> Option<f64> {
    let read = |name: &str| std::fs::read(group.join(name)).ok();
    let quota = match read("cpu.max") {
        Some(max) => parse_cpu_max(&max),
        None => parse_cfs(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?),
    };
    quota?
}

/// Returns the limits of this process's control group, in cores and in bytes of memory. `None` in
/// place of a limit means no limit.
pub fn own_limits() -> (Option<f64>, Option<f64>) {
    let text = std::fs::read("/proc/self/cgroup").unwrap_or_default();
    let CgroupFolders { cpu, memory, .. } = find_cgroup_folders(&text, Path::new("/sys/fs/cgroup"));
    (cpu.as_deref().and_then(cpu_quota_cores), memory.as_deref().and_then(memory_limit))
}

/// Returns the number of busy threads that this process can run at full speed: its allowed cores,
/// limited by the quota of its control group. The kernel would throttle further busy threads.
pub fn usable_cores() -> u32 {
    limit_by_quota(crate::process::allowed_core_count(), own_limits().0)
}

/// Limits a number of cores by a quota. The quota is rounded down, because a thread that is always
/// busy needs a whole core.
fn limit_by_quota(cores: u32, quota: Option<f64>) -> u32 {
    quota.map_or(cores, |quota| cores.min(quota as u32)).max(1)
}

/// Returns the memory limit of a group in bytes; `None` without a limit.
fn memory_limit(group: &Path) -> Option<f64> {
    let limit = ["memory.max", "memory.limit_in_bytes"].iter().find_map(|name| std::fs::read(group.join(name)).ok())?;
    parse_bytes(&limit).map(|bytes| bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_quotas_are_parsed() {
        for (text, expect) in [
            ("max 100000\n", Some(None)),
            ("50000 100000\n", Some(Some(0.5))),
            ("50000 0\n", None),
            ("50000\n", None),
            ("", None),
        ] {
            assert_eq!(parse_cpu_max(text.as_bytes()), expect, "{text}");
        }
        for (quota, period, expect) in [
            ("-1\n", "100000\n", Some(None)),
            ("200000\n", "100000\n", Some(Some(2.0))),
            ("x\n", "100000\n", None),
            ("1\n", "0\n", None),
        ] {
            assert_eq!(parse_cfs(quota.as_bytes(), period.as_bytes()), expect, "{quota} {period}");
        }
        let v2 = b"usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_periods 10\nnr_throttled 4\nthrottled_usec 7\n";
        let v1 = b"nr_periods 10\nnr_throttled 4\nthrottled_time 7000\n";
        let want = Throttling { periods: 10, throttled_periods: 4, throttled_ns: 7000 };
        assert_eq!((parse_throttling(v2), parse_throttling(v1)), (Some(want), Some(want)));
        assert_eq!((parse_usage_ns(v2), parse_usage_ns(v1)), (Some(5000), None));
        assert_eq!(parse_throttling(b"usage_usec 5\n"), None);
        for (text, expect) in [
            ("low 0\nhigh 0\nmax 7\noom 2\noom_kill 2\noom_group_kill 0\n", Some(2)),
            ("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", Some(1)),
            ("oom_kill_disable 0\nunder_oom 0\n", None),
        ] {
            assert_eq!(parse_oom_kills(text.as_bytes()), expect, "{text}");
        }
        for (text, expect) in [("4096\n", Some(4096)), ("max\n", None), ("9223372036854771712\n", None)] {
            assert_eq!(parse_bytes(text.as_bytes()), expect, "{text}");
        }
    }

    #[test]
    fn a_cpu_quota_rounds_to_whole_cores() {
        for (cores, quota, expect) in
            [(16, None, 16), (16, Some(2.0), 2), (16, Some(2.9), 2), (2, Some(8.0), 2), (4, Some(0.2), 1)]
        {
            assert_eq!(limit_by_quota(cores, quota), expect, "{cores} {quota:?}");
        }
        assert!((1..=crate::process::allowed_core_count()).contains(&usable_cores()));
    }

    #[test]
    fn cgroup_folders_are_found() {
        let root = std::env::temp_dir().join(format!("plimsoll-cgroup-{}", std::process::id()));
        for file in
            ["a/b/cpu.stat", "cpu/x/cpu.cfs_quota_us", "memory/memory.usage_in_bytes", "cpuacct/x/cpuacct.usage"]
        {
            let file = root.join(file);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
            std::fs::write(file, "").expect("written");
        }
        let v2 = find_cgroup_folders(b"0::/a/b\n", &root);
        assert_eq!(v2, CgroupFolders { cpu: Some(root.join("a/b")), ..CgroupFolders::default() });
        let v1 = find_cgroup_folders(b"4:memory:/gone\n3:cpu,cpuacct:/x\n0::/\n", &root);
        assert_eq!(v1.cpu, Some(root.join("cpu/x")));
        assert_eq!(v1.memory, Some(root.join("memory")));
        assert_eq!(v1.usage, Some(root.join("cpuacct/x")));
        assert_eq!(find_cgroup_folders(b"0::/../other\nrubbish\n", &root), CgroupFolders::default());

        // Each row writes a limit (second value) to a file (first value). The third value is the
        // folder that is expected after the write.
        let write = |file: &str, text: &str| std::fs::write(root.join(file), text).expect("written");
        for (file, text, expect) in [
            ("a/b/cpu.max", "max 100000\n", "a/b"),
            ("a/cpu.max", "150000 100000\n", "a"),
            ("a/b/cpu.max", "150000 100000\n", "a/b"),
            ("a/b/cpu.max", "160000 100000\n", "a"),
        ] {
            write(file, text);
            assert_eq!(find_cgroup_folders(b"0::/a/b\n", &root).cpu, Some(root.join(expect)), "{file} {text}");
        }
        for (file, text) in [
            ("cpu/x/cpu.cfs_quota_us", "-1\n"),
            ("cpu/x/cpu.cfs_period_us", "100000\n"),
            ("cpu/cpu.cfs_quota_us", "40000\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
        ] {
            write(file, text);
        }
        assert_eq!(find_cgroup_folders(b"3:cpu,cpuacct:/x\n", &root).cpu, Some(root.join("cpu")));
        std::fs::remove_dir_all(&root).expect("removed");
    }
}
