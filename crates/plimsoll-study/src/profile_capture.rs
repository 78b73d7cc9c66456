//! Takes profiles of the server after the measurement, in loads of their own: at low load and at
//! the load in question, or of both sides in turn. They are stored beside the run file.
//!
//! They come afterwards so that no figure of the measurement pays for them. Results are computed
//! from the run file and its profiles, as in `show`.
//!
//! Not here: the choice and timing of these loads (`plimsoll-analysis`), their execution
//! (`study_loop`), the content of profiles and their presentation.

use crate::base::user_info;
use crate::pprof::{Endpoint, PATIENCE};
use crate::recording::Recording;
use crate::study_loop::Profiler;
use plimsoll_analysis::profile::Stretches;
use plimsoll_analysis::study::TrialPlan;
use plimsoll_engine::Tick;
use plimsoll_model::failure::Failure;
use plimsoll_model::terms::ProfilesTerms;
use plimsoll_model::{ArmIndex, EndpointChoice, LoadEnd, Plan, ProfileRecord, ProfilesSpec, Remark, Stop, Tag, Terms};
use plimsoll_probe::fetch::awaited;
use plimsoll_sys::system_text;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The name of CPU profiles in file names and documents, and in URLs.
pub const CPU: (&str, &str) = ("cpu", "profile");
/// Other kinds: their name; the summed column (a difference of two snapshots does not mark it); and
/// whether the sum is a stock, which has no share for a request.
pub const OTHERS: [(&str, &str, bool); 5] = [
    ("allocs", "alloc_space", false),
    ("heap", "inuse_space", true),
    ("block", "delay", false),
    ("mutex", "delay", false),
    ("goroutine", "goroutine", true),
];

/// The suffix of their file names.
pub const SUFFIX: &str = ".pb.gz";

/// Profiles to take.
pub struct Capture {
    /// The endpoint of the target, or of each side.
    endpoints: Vec<Endpoint>,
    seconds: u32,
}

impl Capture {
    /// CPU profiles of this length from these endpoints.
    pub fn new(endpoints: Vec<Endpoint>, seconds: u32) -> Capture {
        Capture { endpoints, seconds }
    }

    /// The requested profiles of a target. Checks that the server agrees, so that no load is
    /// wasted.
    pub fn from_terms(plan: &Plan, terms: &Terms<String>) -> Result<Option<Capture>, Failure> {
        let Some(ProfilesTerms { endpoint: served, seconds }) = &terms.profiles else { return Ok(None) };
        let endpoint = match served {
            EndpointChoice::ByTarget => on_target(plan, terms)?,
            EndpointChoice::At(urls) => Endpoint::resolve(urls.first().map_or("", String::as_str), terms.public)
                .map_err(|error| Failure::usage(format!("--pprof: {error}")))?,
        };
        endpoint.check(*seconds)?;
        Ok(Some(Capture::new(vec![endpoint], *seconds)))
    }

    /// A hint that the target serves profiles; `None` if it does not.
    pub fn hint(plan: &Plan, terms: &Terms<String>) -> Option<String> {
        let endpoint = on_target(plan, terms).ok().filter(Endpoint::is_served)?;
        Some(format!(
            "the target serves profiles at {}: --pprof shows the cost of each function per request at the line",
            endpoint.shown
        ))
    }

    /// The record for the run file.
    pub fn spec(&self) -> ProfilesSpec {
        let bases = self.endpoints.iter().map(|endpoint| endpoint.shown.clone()).collect();
        ProfilesSpec { bases, seconds: self.seconds }
    }

    /// The profiler, which writes beside this run file.
    pub fn profiler(self, path: &Path) -> Box<dyn Profiler> {
        let Capture { endpoints, seconds } = self;
        Box::new(ProfileTaker {
            endpoints,
            seconds,
            path: path.to_owned(),
            patience: PATIENCE,
            arm: None,
            due: Vec::new(),
            threads: Vec::new(),
            failed: Vec::new(),
        })
    }
}

/// The usual profile endpoint on the target.
fn on_target(plan: &Plan, terms: &Terms<String>) -> Result<Endpoint, Failure> {
    Endpoint::of_target(plan, user_info(plan, terms, 0)).map_err(|error| Failure::usage(format!("--pprof: {error}")))
}

/// The bytes of a profile, or the reason for its absence.
type CaptureResult = Result<Vec<u8>, String>;

/// A profile to take under a load.
struct DueProfile {
    /// Start in schedule time, ns.
    from_ns: u64,
    /// The name in file names, and in URLs.
    name: &'static str,
    kind: &'static str,
    /// Its length, s.
    seconds: u32,
}

/// Takes profiles with threads that start at their time in the load.
struct ProfileTaker {
    endpoints: Vec<Endpoint>,
    seconds: u32,
    path: PathBuf,
    /// Remaining waiting time for all loads together.
    patience: Duration,
    /// The current side.
    arm: Option<ArmIndex>,
    /// Profiles to take in this load.
    due: Vec<DueProfile>,
    threads: Vec<(&'static str, JoinHandle<CaptureResult>)>,
    failed: Vec<(&'static str, String)>,
}

impl Profiler for ProfileTaker {
    fn begin(&mut self, trial: &TrialPlan) {
        self.arm = trial.tag.arm;
        let (name, kind) = CPU;
        let cpu = |from_ns| DueProfile { from_ns, name, kind, seconds: self.seconds };
        self.due = match trial.tag.arm {
            // Sides get CPU profiles only, to compare the cost of functions for a request.
            Some(_) => vec![cpu(trial.plan.load.warmup_ns.max(1))],
            None => {
                let stretches = Stretches::new(self.seconds);
                let (from_ns, seconds) = (stretches.others.0, Stretches::others_seconds(self.seconds));
                let others = OTHERS.map(|(kind, _, _)| DueProfile { from_ns, name: kind, kind, seconds });
                std::iter::once(cpu(stretches.cpu.0)).chain(others).collect()
            }
        };
    }

    fn tick(&mut self, tick: &Tick) {
        while let Some(due) = self.due.first().filter(|due| tick.end_ns >= due.from_ns) {
            let (name, kind, seconds, patience) = (due.name, due.kind, due.seconds, self.patience);
            self.due.remove(0);
            let Some(endpoint) = self.endpoints.get(self.arm.map_or(0, ArmIndex::index)).cloned() else { continue };
            let taking = move || endpoint.take(kind, seconds, patience);
            match std::thread::Builder::new().name(format!("pprof-{name}")).spawn(taking) {
                Ok(thread) => self.threads.push((name, thread)),
                Err(error) => self.failed.push((name, format!("no thread for it: {}", system_text(&error)))),
            }
        }
    }

    /// Waits for running profiles, unless the user stops.
    fn end(&mut self, tag: Tag, driven: Result<(Option<u32>, Option<LoadEnd>), String>, recording: &mut Recording) {
        let waiting = Instant::now();
        let mut taken: Vec<(&'static str, CaptureResult)> =
            self.failed.drain(..).map(|(name, reason)| (name, Err(reason))).collect();
        taken.extend(self.threads.drain(..).map(|(name, thread)| (name, awaited(thread))));
        // Profiles that were never started count as missing.
        let never = match tag.arm {
            Some(_) if plimsoll_sys::signal::interrupted() => "the user stopped it",
            Some(_) => "the load ended early",
            None => "the load ended before the profile",
        };
        taken.extend(self.due.drain(..).map(|due| (due.name, Err(never.to_owned()))));
        // All loads share one waiting budget.
        self.patience = self.patience.saturating_sub(waiting.elapsed());
        let (trial, spoilt) = match driven {
            Ok((trial, Some(LoadEnd::Stopped(Stop::Died(why))))) => (trial, Some(why)),
            Ok((trial, _)) => (trial, None),
            Err(why) => (None, Some(why)),
        };
        if taken.is_empty() {
            // It was never started.
            taken.push((CPU.0, Err(never.to_owned())));
        }
        for (kind, one) in taken {
            let one = spoilt.clone().map_or(one, Err);
            keep(recording, &self.path, tag, kind, trial, one);
        }
    }
}

/// Stores a profile beside the run file, or records why there is none. Later reads use the record,
/// so that files of other runs are ignored. `trial`: the index of its load.
fn keep(
    recording: &mut Recording,
    path: &Path,
    tag: Tag,
    kind: &str,
    trial: Option<u32>,
    taken: Result<Vec<u8>, String>,
) {
    let what = recording.spec().profile_name(&tag);
    let file = taken.and_then(|bytes| {
        let name = file_name(path, recording.started_unix_ms(), &what, kind);
        let file = path.with_file_name(&name);
        let written = std::fs::File::create_new(&file).and_then(|mut file| file.write_all(&bytes));
        written.map(|()| name).map_err(|e| format!("'{}' cannot be written: {}", file.display(), system_text(&e)))
    });
    recording.remark(Remark::Profile(ProfileRecord { tag, kind: kind.to_owned(), trial, file }));
}

/// `DIR/find-1.plimsoll` has `DIR/find-1.19ab0c2d3e4.line.heap.pb.gz` beside it; the start time of
/// the run makes the name unique.
fn file_name(path: &Path, started_unix_ms: u64, what: &str, kind: &str) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    format!("{stem}.{started_unix_ms:x}.{what}.{kind}{SUFFIX}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_lie_beside_the_run_file() {
        for (path, expect) in [
            ("a/find-1.plimsoll", "find-1.19ab.line.cpu.pb.gz"),
            ("run", "run.19ab.line.cpu.pb.gz"),
            ("x.y.plimsoll", "x.y.19ab.line.cpu.pb.gz"),
        ] {
            assert_eq!(file_name(Path::new(path), 0x19ab, "line", "cpu"), expect);
        }
    }
}
