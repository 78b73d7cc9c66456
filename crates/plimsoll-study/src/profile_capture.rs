//! Profiles of the server, taken after the measurement under loads of their own, at low load and at
//! the one in question, or of two sides in turn; they are kept beside the run file.
//!
//! They are taken afterwards so that no figure of the measurement itself pays for them. What is
//! said of them is computed from the run file and the profiles beside it; `show` does the same.
//!
//! Not here: which loads these are and how the time of one is divided (`plimsoll-analysis`), who
//! drives them (`study_loop`), what the profiles say and how that looks.

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

/// Name in file names and documents, name in addresses.
pub const CPU: (&str, &str) = ("cpu", "profile");
/// The other kinds: both names are one; the column that is summed up (the difference of two
/// snapshots does not say which is meant); whether the sum is a stock, of which no share for a
/// request can be stated.
pub const OTHERS: [(&str, &str, bool); 5] = [
    ("allocs", "alloc_space", false),
    ("heap", "inuse_space", true),
    ("block", "delay", false),
    ("mutex", "delay", false),
    ("goroutine", "goroutine", true),
];

/// The end of their names.
pub const SUFFIX: &str = ".pb.gz";

/// Profiles that are going to be taken.
pub struct Capture {
    /// Where, of one target or of each side.
    endpoints: Vec<Endpoint>,
    seconds: u32,
}

impl Capture {
    /// Of these endpoints, CPU profiles of so many seconds.
    pub fn new(endpoints: Vec<Endpoint>, seconds: u32) -> Capture {
        Capture { endpoints, seconds }
    }

    /// The profiles that are asked for of one target; looks whether the server will do it, so that
    /// nobody waits in vain.
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

    /// A line for somebody who did not ask for profiles that the target serves; `None` where it
    /// serves none.
    pub fn hint(plan: &Plan, terms: &Terms<String>) -> Option<String> {
        let endpoint = on_target(plan, terms).ok().filter(Endpoint::is_served)?;
        Some(format!(
            "the target serves profiles at {}: --pprof shows the cost of each function per request at the line",
            endpoint.shown
        ))
    }

    /// What the run file says of it.
    pub fn spec(&self) -> ProfilesSpec {
        let bases = self.endpoints.iter().map(|endpoint| endpoint.shown.clone()).collect();
        ProfilesSpec { bases, seconds: self.seconds }
    }

    /// Who takes them, and writes them beside this run file.
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

/// The usual place for profiles on the target itself.
fn on_target(plan: &Plan, terms: &Terms<String>) -> Result<Endpoint, Failure> {
    Endpoint::of_target(plan, user_info(plan, terms, 0)).map_err(|error| Failure::usage(format!("--pprof: {error}")))
}

/// The bytes of a profile, or why there is none.
type CaptureResult = Result<Vec<u8>, String>;

/// A profile that is to be taken under a load.
struct DueProfile {
    /// From when on, ns of schedule time.
    from_ns: u64,
    /// Its name in file names, and in addresses.
    name: &'static str,
    kind: &'static str,
    /// Its length, s.
    seconds: u32,
}

/// Takes profiles: fetched by threads that start when their stretch of the load does.
struct ProfileTaker {
    endpoints: Vec<Endpoint>,
    seconds: u32,
    path: PathBuf,
    /// What all loads together may wait for profiles beyond their time.
    patience: Duration,
    /// Whose turn it is.
    arm: Option<ArmIndex>,
    /// What is to be taken under this load.
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
            // Of a side its CPU profile only: what each function costs a request is compared.
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

    /// Waits for what is under way, as long as the user does.
    fn end(&mut self, tag: Tag, driven: Result<(Option<u32>, Option<LoadEnd>), String>, recording: &mut Recording) {
        let waiting = Instant::now();
        let mut taken: Vec<(&'static str, CaptureResult)> =
            self.failed.drain(..).map(|(name, reason)| (name, Err(reason))).collect();
        taken.extend(self.threads.drain(..).map(|(name, thread)| (name, awaited(thread))));
        // What was never begun is missing, too.
        let never = match tag.arm {
            Some(_) if plimsoll_sys::signal::interrupted() => "the user stopped it",
            Some(_) => "the load ended early",
            None => "the load ended before the profile",
        };
        taken.extend(self.due.drain(..).map(|due| (due.name, Err(never.to_owned()))));
        // The patience is one for all loads.
        self.patience = self.patience.saturating_sub(waiting.elapsed());
        let (trial, spoilt) = match driven {
            Ok((trial, Some(LoadEnd::Stopped(Stop::Died(why))))) => (trial, Some(why)),
            Ok((trial, _)) => (trial, None),
            Err(why) => (None, Some(why)),
        };
        if taken.is_empty() {
            // It was not even begun.
            taken.push((CPU.0, Err(never.to_owned())));
        }
        for (kind, one) in taken {
            let one = spoilt.clone().map_or(one, Err);
            keep(recording, &self.path, tag, kind, trial, one);
        }
    }
}

/// Keeps a profile beside the run file, or the reason why there is none, and says so in the record:
/// what is read back later is what the record names, never what another run left there. `trial`:
/// the load under which it was taken.
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

/// `DIR/find-1.plimsoll` has `DIR/find-1.19ab0c2d3e4.line.heap.pb.gz` beside it: the run's own, by
/// the time of its start.
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
