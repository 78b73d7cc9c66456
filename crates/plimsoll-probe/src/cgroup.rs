//! Reads CPU quota, throttling and memory of the control group that limits the server. The limiting
//! group is the server's own group, an enclosing group with a lower limit, or the group that
//! `--cgroup` names.

use super::probe::Probe;
use super::sink::Sink;
use plimsoll_model::Failure;
use plimsoll_model::SeriesKind;
use plimsoll_sys::probe::{ProcFile, cgroup};
use plimsoll_sys::system_text;
use std::path::{Path, PathBuf};

const CGROUP_ROOT: &str = "/sys/fs/cgroup";
/// Slowly changing values are read in every fifth sample only, that is every 0.5 s.
pub const SAMPLES_PER_SLOW_READING: u64 = 5;

pub struct CgroupProbe {
    cpu: CpuLimit,
    usage: Option<ProcFile>,
    memory: Option<ProcFile>,
    memory_max: Option<ProcFile>,
    memory_events: Option<ProcFile>,
    buffer: Vec<u8>,
}

impl CgroupProbe {
    /// Creates the probe of the group that `--cgroup` names. The flag's value is the path of a
    /// folder, either as written or below /sys/fs/cgroup.
    pub fn from_flag_path(path: &str) -> Result<CgroupProbe, Failure> {
        let bad = |why: String| Failure::cannot_start(format!("--cgroup: {why}"));
        let within = Path::new(CGROUP_ROOT).join(path.trim_start_matches('/'));
        let whole = PathBuf::from(path);
        let folder = [&whole, &within].into_iter().find(|folder| folder.is_dir());
        let folder = folder.ok_or_else(|| {
            bad(format!("there is no folder '{path}' or '{below_root}'", below_root = within.display()))
        })?;
        std::fs::read(folder.join("cpu.stat")).map_err(|error| {
            let folder = folder.display();
            bad(format!(
                "the folder '{folder}' has no readable file cpu.stat with the CPU time: {reason}",
                reason = system_text(&error)
            ))
        })?;
        let folder = Some(folder.clone());
        Ok(CgroupProbe::open(&cgroup::CgroupFolders { cpu: folder.clone(), memory: folder.clone(), usage: folder }))
    }

    /// Creates the probe of the control group that limits a process; `None` if the group is not
    /// visible.
    pub fn for_process(pid: u32) -> Option<CgroupProbe> {
        let text = std::fs::read(format!("/proc/{pid}/cgroup")).ok()?;
        let folders = cgroup::find_cgroup_folders(&text, Path::new(CGROUP_ROOT));
        (folders != cgroup::CgroupFolders::default()).then(|| CgroupProbe::open(&folders))
    }

    fn open(folders: &cgroup::CgroupFolders) -> CgroupProbe {
        let memory = &folders.memory;
        CgroupProbe {
            cpu: CpuLimit::open(&folders.cpu),
            usage: open_folder_file(&folders.usage, "cpuacct.usage"),
            memory: open_folder_file(memory, "memory.current")
                .or_else(|| open_folder_file(memory, "memory.usage_in_bytes")),
            memory_max: open_folder_file(memory, "memory.max")
                .or_else(|| open_folder_file(memory, "memory.limit_in_bytes")),
            memory_events: open_folder_file(memory, "memory.events")
                .or_else(|| open_folder_file(memory, "memory.oom_control")),
            buffer: Vec::new(),
        }
    }
}

fn open_folder_file(folder: &Option<PathBuf>, name: &str) -> Option<ProcFile> {
    ProcFile::open(folder.as_ref()?.join(name)).ok()
}

/// The CPU quota of a control group, and the count of its throttled periods.
pub struct CpuLimit {
    throttling: Option<ProcFile>,
    /// The files that contain the quota: `cpu.max` in cgroup version 2, two files in version 1.
    quota: Vec<ProcFile>,
}

impl CpuLimit {
    fn open(folder: &Option<PathBuf>) -> CpuLimit {
        let quota = match open_folder_file(folder, "cpu.max") {
            Some(source) => vec![source],
            None => ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
                .iter()
                .filter_map(|name| open_folder_file(folder, name))
                .collect(),
        };
        CpuLimit { throttling: open_folder_file(folder, "cpu.stat"), quota }
    }

    /// Opens the files with the CPU quota of the control group that limits a process. Returns the
    /// group's folder and the open files; `None` if the group is not visible.
    pub fn for_process(pid: u32) -> Option<(PathBuf, CpuLimit)> {
        let text = std::fs::read(format!("/proc/{pid}/cgroup")).ok()?;
        let folder = cgroup::find_cgroup_folders(&text, Path::new(CGROUP_ROOT)).cpu?;
        Some((folder.clone(), CpuLimit::open(&Some(folder))))
    }

    /// Returns the quota in cores; `Some(None)` if the group has no quota, `None` if the reading
    /// failed.
    pub fn read_quota_cores(&self, buffer: &mut Vec<u8>) -> Option<Option<f64>> {
        match &self.quota[..] {
            [max] => cgroup::parse_cpu_max(max.read(buffer).ok()?),
            [quota, period] => {
                let quota = quota.read(buffer).ok()?.to_vec();
                cgroup::parse_cfs(&quota, period.read(buffer).ok()?)
            }
            _ => None,
        }
    }

    /// Reads how often and how long the group was throttled so far; `None` if the reading failed.
    pub fn read_throttling(&self, buffer: &mut Vec<u8>) -> Option<cgroup::Throttling> {
        cgroup::parse_throttling(self.throttling.as_ref()?.read(buffer).ok()?)
    }
}

impl Probe for CgroupProbe {
    fn sample(&mut self, sink: &mut Sink) {
        let slow = sink.is_due_in_this_sample(SAMPLES_PER_SLOW_READING, 4);
        if slow && let Some(Some(cores)) = self.cpu.read_quota_cores(&mut self.buffer) {
            sink.gauge("cgroup.quota", "cores", cores);
        }
        let buffer = &mut self.buffer;
        match self.cpu.throttling.as_ref().map(|source| source.read(buffer)) {
            Some(Ok(text)) => {
                if let Some(ns) = cgroup::parse_usage_ns(text) {
                    sink.counter("cgroup.cpu", "ns", ns as f64);
                }
                if let Some(throttling) = cgroup::parse_throttling(text) {
                    sink.counter("cgroup.periods", "", throttling.periods as f64);
                    sink.counter("cgroup.periods_throttled", "", throttling.throttled_periods as f64);
                    sink.counter("cgroup.throttled", "ns waiting", throttling.throttled_ns as f64);
                }
            }
            Some(Err(error)) => {
                let reason = format!(
                    "the server's control group (cgroup) cannot be read: {reason}",
                    reason = system_text(&error)
                );
                sink.add_gap("cgroup.throttled", SeriesKind::Counter, "ns waiting", &reason);
            }
            None => {}
        }
        if !slow {
            return;
        }
        let events = self.memory_events.as_ref().and_then(|source| source.read(buffer).ok());
        if let Some(times) = events.and_then(cgroup::parse_oom_kills) {
            sink.counter("cgroup.oom_kills", "", times as f64);
        }
        let mut read = |source: &Option<ProcFile>| cgroup::parse_bytes(source.as_ref()?.read(buffer).ok()?);
        for (name, kind, unit, value) in [
            ("cgroup.cpu", SeriesKind::Counter, "ns", read(&self.usage)),
            ("cgroup.memory", SeriesKind::Gauge, "bytes", read(&self.memory)),
            ("cgroup.memory_max", SeriesKind::Gauge, "bytes", read(&self.memory_max)),
        ] {
            match (kind, value) {
                (SeriesKind::Counter, Some(value)) => sink.counter(name, unit, value as f64),
                (SeriesKind::Gauge, Some(value)) => sink.gauge(name, unit, value as f64),
                (_, None) => {}
            }
        }
    }
}
