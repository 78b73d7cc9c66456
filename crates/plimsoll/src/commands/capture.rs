//! `run --pprof` and `find --pprof`: after the measurement, profiles of the server at low load and at the load in
//! question, kept beside the run file.
//!
//! They are taken afterwards, in trials of their own with a fixed rate each, so that no figure of the measurement itself
//! pays for them. What is said of them is computed from the run file and the profiles beside it; `show` does the same.
//!
//! Not here: how the time of a trial is divided, arithmetic (`plimsoll-analysis`), layout (`plimsoll-report`).

use crate::base::user_info;
use crate::conduct::{Conduct, Saying};
use crate::failure::Failure;
use crate::fetch::awaited;
use crate::live::Live;
use crate::pprof::{Endpoint, PATIENCE};
use crate::recording::Recording;
use crate::results::profiles::{CPU, OTHERS, SUFFIX, level_tag};
use crate::target::system_text;
use plimsoll_analysis::profile::{Stretches, rates};
use plimsoll_analysis::study::{TrialPlan, Until};
use plimsoll_engine::Tick;
use plimsoll_model::terms::ProfilesTerms;
use plimsoll_model::{
    Arrivals, Curve, Load, LoadShape, Plan, PlanRecord, ProfileTaken, ProfilesAsked, Remark, Served, Tag, Terms,
};
use plimsoll_report::format;
use std::io::Write;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Connections made ready before a trial, at most.
const READY_MAX: f64 = 512.0;

/// Profiles that are going to be taken.
pub struct Capture {
    endpoint: Endpoint,
    seconds: u32,
}

impl Capture {
    /// The profiles that are asked for; looks whether the server will do it, so that nobody waits in vain.
    pub fn of(plan: &Plan, terms: &Terms<String>) -> Result<Option<Capture>, Failure> {
        let Some(ProfilesTerms { served, seconds }) = &terms.profiles else { return Ok(None) };
        let endpoint = match served {
            Served::ByTarget => on_target(plan, terms)?,
            Served::At(urls) => Endpoint::resolve(urls.first().map_or("", String::as_str), terms.public)
                .map_err(|error| Failure::usage(format!("--pprof: {error}")))?,
        };
        endpoint.check(*seconds)?;
        Ok(Some(Capture { endpoint, seconds: *seconds }))
    }

    /// Says that the target serves profiles, to somebody who did not ask for them.
    pub fn hint(plan: &Plan, terms: &Terms<String>, live: &mut Live) {
        if let Ok(endpoint) = on_target(plan, terms)
            && endpoint.is_served()
        {
            live.line(&format!(
                "the target serves profiles at {}: --pprof shows what each function costs a request at the line",
                endpoint.shown
            ));
        }
    }

    /// What the run file says of it.
    pub fn asked(&self) -> ProfilesAsked {
        ProfilesAsked { bases: vec![self.endpoint.shown.clone()], seconds: self.seconds }
    }

    /// Drives both levels and writes the profiles beside the run file. What goes wrong is in the record; nothing of that
    /// ends the experiment.
    pub fn capture(&self, conduct: &mut Conduct, like: &Like, level_rps: f64, path: &Path) -> Result<(), Failure> {
        let stretches = Stretches::new(self.seconds);
        let mut patience = PATIENCE;
        if level_rps <= 0.0 {
            conduct.live.line("no profiles are taken: there is no load that the server holds");
            keep(
                &mut conduct.recording,
                path,
                (level_tag(0), CPU.0),
                None,
                Err("there is no load that the server holds".into()),
            );
            return Ok(());
        }
        for (rate, turn) in rates(level_rps).into_iter().zip(0..) {
            let tag = level_tag(turn);
            let name = conduct.recording.asked().profile_name(&tag);
            if plimsoll_sys::signal::interrupted() {
                keep(&mut conduct.recording, path, (tag, CPU.0), None, Err("the user ended it".into()));
                break;
            }
            let length = format::duration(stretches.end_ns as f64);
            conduct.live.line(&format!("profiling at {} requests/s ({name}), {length}", format::rate(rate)));
            let plan = plan(like, rate, &stretches);
            let mut taking = Taking::new(self, stretches, patience);
            conduct.measure_beside(TrialPlan { tag, plan, until: Until::End }, &mut |tick| {
                taking.tick(tick);
                Saying {
                    doing: format!("profiling at {} requests/s ({name})", format::rate(rate)),
                    why: "after the measurement, so that no figure of it pays for profiles".into(),
                    elapsed_s: tick.end_ns as f64 / 1e9,
                    total_s: Some(stretches.end_ns as f64 / 1e9),
                }
            })?;
            let waiting = Instant::now();
            let trial = conduct.recording.trials().len().checked_sub(1).map(|at| at as u32);
            for (kind, taken) in taking.end() {
                keep(&mut conduct.recording, path, (tag, kind), trial, taken);
            }
            // The patience is one for all levels.
            patience = patience.saturating_sub(waiting.elapsed());
        }
        Ok(())
    }
}

/// The usual place for profiles on the target itself.
fn on_target(plan: &Plan, terms: &Terms<String>) -> Result<Endpoint, Failure> {
    Endpoint::of_target(&plan.traffic.origin, user_info(plan, terms, 0), terms.public)
}

/// The load that profiles are taken under is like that of the measurement, but for its rate and length.
pub struct Like<'a> {
    pub plan: &'a PlanRecord,
    pub arrivals: Arrivals,
}

/// A trial at a fixed rate, like those of the measurement.
fn plan(like: &Like, rate: f64, stretches: &Stretches) -> PlanRecord {
    let (base, length_ns) = (like.plan, stretches.end_ns - stretches.warmup_ns);
    let load = Load {
        seed: plimsoll_model::rng::mix(base.load.seed ^ rate.to_bits()),
        shape: LoadShape::Open { rate: Curve::constant_for(rate, length_ns), arrivals: like.arrivals },
        requests_max: None,
        duration_ns: Some(length_ns),
        warmup_ns: stretches.warmup_ns,
        // As many as answers of 10 ms keep busy; the warm-up opens what is missing.
        connections_ready: ((rate / 100.0 + 8.0).min(READY_MAX) as u32).min(base.carriage.connections_max),
        grace_ns: base.load.grace_ns,
        interval_ns: Plan::TICK_NS,
    };
    PlanRecord { load, ..base.clone() }
}

/// The bytes of a profile, or why there is none.
type Captured = Result<Vec<u8>, String>;

/// The profiles of one trial, fetched by threads that start when their stretch does.
struct Taking<'a> {
    wanted: &'a Capture,
    stretches: Stretches,
    patience: Duration,
    started: [bool; 2],
    threads: Vec<(&'static str, JoinHandle<Captured>)>,
    failed: Vec<(&'static str, String)>,
}

impl<'a> Taking<'a> {
    fn new(wanted: &'a Capture, stretches: Stretches, patience: Duration) -> Taking<'a> {
        Taking { wanted, stretches, patience, started: [false; 2], threads: Vec::new(), failed: Vec::new() }
    }

    fn tick(&mut self, tick: &Tick) {
        if tick.end_ns >= self.stretches.cpu.0 && !std::mem::replace(&mut self.started[0], true) {
            self.take(CPU.0, CPU.1, self.wanted.seconds);
        }
        if tick.end_ns >= self.stretches.others.0 && !std::mem::replace(&mut self.started[1], true) {
            let seconds = Stretches::others_seconds(self.wanted.seconds);
            for (kind, _, _) in OTHERS {
                self.take(kind, kind, seconds);
            }
        }
    }

    fn take(&mut self, name: &'static str, kind: &'static str, seconds: u32) {
        let (endpoint, patience) = (self.wanted.endpoint.clone(), self.patience);
        let taking = move || endpoint.take(kind, seconds, patience);
        let thread = std::thread::Builder::new().name(format!("pprof-{name}")).spawn(taking);
        match thread {
            Ok(thread) => self.threads.push((name, thread)),
            Err(error) => self.failed.push((name, format!("no thread for it: {}", system_text(&error)))),
        }
    }

    /// Waits for what is under way, as long as the user does.
    fn end(self) -> Vec<(&'static str, Captured)> {
        let mut taken: Vec<_> = self.failed.into_iter().map(|(name, reason)| (name, Err(reason))).collect();
        for (name, thread) in self.threads {
            taken.push((name, awaited(thread)));
        }
        // What was never begun is missing, too.
        for kind in std::iter::once(CPU.0).chain(OTHERS.map(|(kind, _, _)| kind)) {
            if taken.iter().all(|(name, _)| *name != kind) {
                taken.push((kind, Err("the load ended before it was begun".to_owned())));
            }
        }
        taken
    }
}

/// Keeps a profile beside the run file, or the reason why there is none, and says so in the record: what is read back later is
/// what the record names, never what another run left there. `trial`: the load under which it was taken.
pub fn keep(
    recording: &mut Recording,
    path: &Path,
    (tag, kind): (Tag, &str),
    trial: Option<u32>,
    taken: Result<Vec<u8>, String>,
) {
    let what = recording.asked().profile_name(&tag);
    let file = taken.and_then(|bytes| {
        let name = file_name(path, recording.started_unix_ms(), &what, kind);
        let file = path.with_file_name(&name);
        let written = std::fs::File::create_new(&file).and_then(|mut file| file.write_all(&bytes));
        written.map(|()| name).map_err(|e| format!("'{}' cannot be written: {}", file.display(), system_text(&e)))
    });
    recording.remark(Remark::Profile(ProfileTaken { tag, kind: kind.to_owned(), trial, file }));
}

/// `DIR/find-1.plimsoll` has `DIR/find-1.19ab0c2d3e4.line.heap.pb.gz` beside it: the run's own, by the time of its start.
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
