//! Takes profiles of the server in separate loads after the measurement. The profiled loads are a
//! low load and the load that the study examined. A comparison takes profiles of its two sides in
//! turn. The profiles are stored next to the run file.
//!
//! The loads for profiles are separate, so profiling does not affect the measured figures. Later
//! commands, such as `show`, compute results from the run file and its profiles.
//!
//! Not here: choosing and timing the profiled loads (`plimsoll-analysis`), executing the profiled
//! loads (`study_loop`), parsing and presenting profiles.

use crate::base::authorization_from_url;
use crate::pprof::{Endpoint, PROFILE_FETCH_GRACE};
use crate::recording::Recording;
use crate::study_loop::Profiler;
use plimsoll_analysis::profile::ProfilingSchedule;
use plimsoll_analysis::study::TrialPlan;
use plimsoll_engine::Tick;
use plimsoll_model::experiment_settings::ProfilesSettings;
use plimsoll_model::failure::Failure;
use plimsoll_model::{
    ArmIndex, EarlyStopReason, EndpointChoice, ExperimentEvent, ExperimentSettings, LoadEnd, LoadTag, Plan,
    ProfileRecord, ProfilesSpec,
};
use plimsoll_probe::fetch::await_fetch;
use plimsoll_sys::system_text;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The two names of the CPU profile kind: the name in file names and results, and the name in URLs.
pub const CPU_PROFILE_NAMES: (&str, &str) = ("cpu", "profile");
/// The profile kinds other than CPU. Each entry has the name of the kind, the name of the summed
/// column (sample type), and whether the sum is a level. A level, such as live heap memory, is not
/// divided by the number of requests. A profile over a period (the difference of two snapshots) has
/// no default column, so each entry names its column.
pub const OTHER_PROFILE_KINDS: [(&str, &str, bool); 5] = [
    ("allocs", "alloc_space", false),
    ("heap", "inuse_space", true),
    ("block", "delay", false),
    ("mutex", "delay", false),
    ("goroutine", "goroutine", true),
];

/// The suffix of the profiles' file names.
pub const PROFILE_FILE_SUFFIX: &str = ".pb.gz";

/// The profiles that the user requested: the endpoints to fetch from, and the duration of a CPU
/// profile in seconds.
pub struct RequestedProfiles {
    /// The profile endpoint of the target, or one for each side of a comparison.
    endpoints: Vec<Endpoint>,
    seconds: u32,
}

impl RequestedProfiles {
    /// Prepares to take profiles from these endpoints, with CPU profiles of `seconds` seconds.
    pub fn new(endpoints: Vec<Endpoint>, seconds: u32) -> RequestedProfiles {
        RequestedProfiles { endpoints, seconds }
    }

    /// Returns the profiles that the user requested of a target; `None` if the user requested none.
    /// Checks first that the server agrees to profile, so that no load is wasted.
    pub fn from_settings(
        plan: &Plan,
        settings: &ExperimentSettings<String>,
    ) -> Result<Option<RequestedProfiles>, Failure> {
        let Some(ProfilesSettings { endpoint: served, seconds }) = &settings.profiles else { return Ok(None) };
        let endpoint = match served {
            EndpointChoice::ByTarget => endpoint_on_target(plan, settings)?,
            EndpointChoice::At(urls) => {
                Endpoint::resolve_base_url(urls.first().map_or("", String::as_str), settings.public)
                    .map_err(|error| Failure::usage(format!("--pprof: {error}")))?
            }
        };
        endpoint.check_cpu_profiles_permitted(*seconds)?;
        Ok(Some(RequestedProfiles::new(vec![endpoint], *seconds)))
    }

    /// Returns a hint for the user if the target has an endpoint for profiles; `None` otherwise.
    pub fn profile_hint(plan: &Plan, settings: &ExperimentSettings<String>) -> Option<String> {
        let endpoint = endpoint_on_target(plan, settings).ok().filter(Endpoint::has_profile_index)?;
        Some(format!(
            "the target serves profiles at {url}: --pprof shows the cost of each function per request at the load line",
            url = endpoint.shown
        ))
    }

    /// Returns the description of the requested profiles for the run file.
    pub fn profiles_spec(&self) -> ProfilesSpec {
        let bases = self.endpoints.iter().map(|endpoint| endpoint.shown.clone()).collect();
        ProfilesSpec { bases, seconds: self.seconds }
    }

    /// Returns the profiler that takes the requested profiles, and stores each profile next to the
    /// run file at `path`.
    pub fn into_profiler(self, path: &Path) -> Box<dyn Profiler> {
        let RequestedProfiles { endpoints, seconds } = self;
        Box::new(ProfileTaker {
            endpoints,
            seconds,
            path: path.to_owned(),
            patience: PROFILE_FETCH_GRACE,
            arm: None,
            due: Vec::new(),
            threads: Vec::new(),
            failed: Vec::new(),
        })
    }
}

/// Returns the usual profile endpoint (`/debug/pprof`) on the target.
fn endpoint_on_target(plan: &Plan, settings: &ExperimentSettings<String>) -> Result<Endpoint, Failure> {
    Endpoint::default_endpoint_on_target(plan, authorization_from_url(plan, settings, 0))
        .map_err(|error| Failure::usage(format!("--pprof: {error}")))
}

/// The bytes of a profile, or the reason why there is none.
type CaptureResult = Result<Vec<u8>, String>;

/// A profile that is to be taken during a load.
struct DueProfile {
    /// The start of the profile in ns since the start of the load's schedule.
    from_ns: u64,
    /// The name of the profile kind in file names.
    name: &'static str,
    /// The name of the profile kind in URLs.
    kind: &'static str,
    /// The length of this profile in seconds.
    seconds: u32,
}

/// Takes the profiles of a load, each in its own thread that starts when the profile is due.
struct ProfileTaker {
    endpoints: Vec<Endpoint>,
    seconds: u32,
    path: PathBuf,
    /// The time that plimsoll may still wait for late profiles, in this load and all later loads
    /// together.
    patience: Duration,
    /// The side of the comparison that the current load measures; `None` outside comparisons.
    arm: Option<ArmIndex>,
    /// The profiles of the current load that have not started.
    due: Vec<DueProfile>,
    threads: Vec<(&'static str, JoinHandle<CaptureResult>)>,
    failed: Vec<(&'static str, String)>,
}

impl Profiler for ProfileTaker {
    fn begin(&mut self, trial: &TrialPlan) {
        self.arm = trial.tag.arm;
        let (name, kind) = CPU_PROFILE_NAMES;
        let cpu = |from_ns| DueProfile { from_ns, name, kind, seconds: self.seconds };
        self.due = match trial.tag.arm {
            // The sides of a comparison get only CPU profiles, to compare the CPU cost of functions
            // for each request.
            Some(_) => vec![cpu(trial.plan.load.warmup_ns.max(1))],
            None => {
                let stretches = ProfilingSchedule::new(self.seconds);
                let (from_ns, seconds) =
                    (stretches.other_kinds_interval_ns.0, ProfilingSchedule::other_kinds_seconds(self.seconds));
                let others = OTHER_PROFILE_KINDS.map(|(kind, _, _)| DueProfile { from_ns, name: kind, kind, seconds });
                std::iter::once(cpu(stretches.cpu_interval_ns.0)).chain(others).collect()
            }
        };
    }

    fn tick(&mut self, tick: &Tick) {
        while let Some(due) = self.due.first().filter(|due| tick.end_ns >= due.from_ns) {
            let (name, kind, seconds, patience) = (due.name, due.kind, due.seconds, self.patience);
            self.due.remove(0);
            let Some(endpoint) = self.endpoints.get(self.arm.map_or(0, ArmIndex::index)).cloned() else { continue };
            let taking = move || endpoint.take_profile(kind, seconds, patience);
            match std::thread::Builder::new().name(format!("pprof-{name}")).spawn(taking) {
                Ok(thread) => self.threads.push((name, thread)),
                Err(error) => self.failed.push((
                    name,
                    format!("no thread could be started for the profile: {reason}", reason = system_text(&error)),
                )),
            }
        }
    }

    /// Waits for the profiles in progress, unless the user presses ^C, and stores them.
    fn end(&mut self, tag: LoadTag, driven: Result<(Option<u32>, Option<LoadEnd>), String>, recording: &mut Recording) {
        let waiting = Instant::now();
        let mut taken: Vec<(&'static str, CaptureResult)> =
            self.failed.drain(..).map(|(name, reason)| (name, Err(reason))).collect();
        taken.extend(self.threads.drain(..).map(|(name, thread)| (name, await_fetch(thread))));
        // Profiles that never started are recorded as missing, with the reason.
        let never = match tag.arm {
            Some(_) if plimsoll_sys::signal::is_stop_requested() => "the user stopped the run",
            Some(_) => "the load ended early",
            None => "the load ended before the profile was taken",
        };
        taken.extend(self.due.drain(..).map(|due| (due.name, Err(never.to_owned()))));
        // The wait for late profiles is subtracted from `patience`, because the profiles of all
        // loads share one time budget for waiting.
        self.patience = self.patience.saturating_sub(waiting.elapsed());
        let (trial, spoilt) = match driven {
            Ok((trial, Some(LoadEnd::Stopped(EarlyStopReason::CannotContinue(why))))) => (trial, Some(why)),
            Ok((trial, _)) => (trial, None),
            Err(why) => (None, Some(why)),
        };
        if taken.is_empty() {
            // No profile was started in this load, so the CPU profile is recorded as missing.
            taken.push((CPU_PROFILE_NAMES.0, Err(never.to_owned())));
        }
        for (kind, one) in taken {
            let one = spoilt.clone().map_or(one, Err);
            store_profile(recording, &self.path, tag, kind, trial, one);
        }
    }
}

/// Stores a profile in a file next to the run file, and records the file's name. If the profile is
/// missing, records the reason. Later commands read only profiles whose names are recorded, so
/// profiles of other runs are ignored.
///
/// `trial` is the index of the load during which the profile was taken.
fn store_profile(
    recording: &mut Recording,
    path: &Path,
    tag: LoadTag,
    kind: &str,
    trial: Option<u32>,
    body: Result<Vec<u8>, String>,
) {
    let what = recording.experiment_spec().profile_name(&tag);
    let file = body.and_then(|bytes| {
        let name = file_name(path, recording.started_unix_ms(), &what, kind);
        let file = path.with_file_name(&name);
        let written = std::fs::File::create_new(&file).and_then(|mut file| file.write_all(&bytes));
        written.map(|()| name).map_err(|e| format!("'{}' cannot be written: {}", file.display(), system_text(&e)))
    });
    recording.record_event(ExperimentEvent::Profile(ProfileRecord { tag, kind: kind.to_owned(), trial, file }));
}

/// Returns the file name of a profile. For example, a profile next to the run file
/// `DIR/find-1.plimsoll` is `DIR/find-1.19ab0c2d3e4.line.heap.pb.gz`. The start time of the run
/// makes the name unique.
fn file_name(path: &Path, started_unix_ms: u64, what: &str, kind: &str) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    format!("{stem}.{started_unix_ms:x}.{what}.{kind}{PROFILE_FILE_SUFFIX}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_stored_beside_the_run_file() {
        for (path, expect) in [
            ("a/find-1.plimsoll", "find-1.19ab.line.cpu.pb.gz"),
            ("run", "run.19ab.line.cpu.pb.gz"),
            ("x.y.plimsoll", "x.y.19ab.line.cpu.pb.gz"),
        ] {
            assert_eq!(file_name(Path::new(path), 0x19ab, "line", "cpu"), expect);
        }
    }
}
