//! `run --pprof` and `find --pprof`: after the measurement, profiles of the server at low load and at the load in
//! question, kept beside the run file.
//!
//! They are taken afterwards, in trials of their own with a fixed rate each, so that no figure of the measurement itself
//! pays for them. What is said of them is computed from the run file and the profiles beside it; `show` does the same.
//!
//! Not here: how the time of a trial is divided, arithmetic (`plimsoll-analysis`), layout (`plimsoll-report`).

use crate::args::{PprofArgs, RequestArgs};
use crate::conduct::{Conduct, Saying};
use crate::failure::Failure;
use crate::fetch::awaited;
use crate::files::{self, Use};
use crate::live::Live;
use crate::pprof::{Endpoint, PATIENCE};
use crate::recording::Recording;
use crate::target::system_text;
use plimsoll_analysis::Summary;
use plimsoll_analysis::profile::{Basis, Level, Sort, Stretches, View, diff, rates, read, top};
use plimsoll_analysis::study::{TrialPlan, Until};
use plimsoll_engine::Tick;
use plimsoll_model::profile::Profile;
use plimsoll_model::units::SECOND;
use plimsoll_model::{
    Arrivals, Curve, Ending, Experiment, Load, LoadShape, Plan, ProfileTaken, ProfilesAsked, Purpose, Remark, Run, Tag,
};
use plimsoll_report::format;
use plimsoll_report::levels::{Kind, Profiles};
use std::io::Write;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Name in file names and documents, name in addresses.
const CPU: (&str, &str) = ("cpu", "profile");
/// The other kinds: both names are one; the column that is summed up (the difference of two snapshots does not say which
/// is meant); whether the sum is a stock, of which no share for a request can be stated.
const OTHERS: [(&str, &str, bool); 5] = [
    ("allocs", "alloc_space", false),
    ("heap", "inuse_space", true),
    ("block", "delay", false),
    ("mutex", "delay", false),
    ("goroutine", "goroutine", true),
];
/// Connections made ready before a trial, at most.
const READY_MAX: f64 = 512.0;

/// Profiles that are going to be taken.
pub struct Wanted {
    endpoint: Endpoint,
    seconds: u32,
}

impl Wanted {
    /// What the flags mean; looks whether the server will do it, so that nobody waits in vain.
    pub fn of(args: &PprofArgs, request: &RequestArgs) -> Result<Option<Wanted>, Failure> {
        let Some(address) = &args.pprof else { return Ok(None) };
        let endpoint = match address.as_str() {
            "auto" => Endpoint::of_target(&request.url, request.allow_public)?,
            address => Endpoint::resolve(address, request.allow_public)
                .map_err(|error| Failure::usage(format!("--pprof: {error}")))?,
        };
        endpoint.check(args.pprof_seconds)?;
        Ok(Some(Wanted { endpoint, seconds: args.pprof_seconds }))
    }

    /// Says that the target serves profiles, to somebody who did not ask for them.
    pub fn hint(request: &RequestArgs, live: &mut Live) {
        if let Ok(endpoint) = Endpoint::of_target(&request.url, request.allow_public)
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

/// The load that profiles are taken under is like that of the measurement, but for its rate and length.
pub struct Like<'a> {
    pub plan: &'a Plan,
    pub arrivals: Arrivals,
}

/// A trial at a fixed rate, like those of the measurement.
fn plan(like: &Like, rate: f64, stretches: &Stretches) -> Plan {
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
    Plan { load, ..base.clone() }
}

/// The bytes of a profile, or why there is none.
type Taken = Result<Vec<u8>, String>;

/// The profiles of one trial, fetched by threads that start when their stretch does.
struct Taking<'a> {
    wanted: &'a Wanted,
    stretches: Stretches,
    patience: Duration,
    started: [bool; 2],
    threads: Vec<(&'static str, JoinHandle<Taken>)>,
    failed: Vec<(&'static str, String)>,
}

impl<'a> Taking<'a> {
    fn new(wanted: &'a Wanted, stretches: Stretches, patience: Duration) -> Taking<'a> {
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
    fn end(self) -> Vec<(&'static str, Taken)> {
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

/// The place of a profile at the low level (0) or the load in question (1).
fn level_tag(turn: u32) -> Tag {
    Tag { turn, ..Tag::of(Purpose::Profile) }
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

/// The end of their names.
const SUFFIX: &str = ".pb.gz";

/// A profile that the record names, and where it is.
pub fn read_kept(path: Option<&Path>, taken: &ProfileTaken) -> Result<(Profile, String), String> {
    let name = taken.file.clone()?;
    // A record may come from anywhere: its names lead nowhere but beside it.
    let bare = Path::new(&name).file_name().filter(|bare| *bare == name.as_str() && name.ends_with(SUFFIX));
    let bare = bare.ok_or_else(|| "the record names no profile".to_owned())?;
    let file = path.ok_or_else(|| "there is no run file".to_owned())?.with_file_name(bare);
    let profile = files::read(&file, Use::Profile)
        .and_then(|bytes| read(&bytes).map_err(|error| error.to_string()))
        .map_err(|why| format!("'{}' {why}", file.display()))?;
    Ok((profile, file.display().to_string()))
}

/// What the profiles beside a run file say; `None` if none were asked for.
pub fn read_back(experiment: &Experiment, path: Option<&Path>) -> Option<Profiles> {
    let recorded = experiment.asked.profiles().filter(|_| experiment.asked.blocks().is_none())?;
    let stretches = Stretches::new(recorded.seconds);
    let trials = || experiment.trials.iter().filter(|trial| trial.tag.purpose == Purpose::Profile);
    let levels: Vec<Level> = trials().map(|trial| Level::of(&trial.run, &stretches)).collect();
    if levels.is_empty() && experiment.profiles().next().is_none() {
        return None;
    }
    let name_of = |tag: &Tag| experiment.asked.profile_name(tag);
    let level_name = name_of(&level_tag(1));
    let names = [name_of(&level_tag(0)), level_name.clone()];
    let names = [names[0].as_str(), names[1].as_str()];
    let (mut files, mut missing) = (Vec::new(), Vec::new());
    // Of levels that were not driven, why.
    for taken in experiment.profiles().filter(|taken| taken.trial.is_none()) {
        if let Err(reason) = &taken.file {
            missing.push(format!("{}: no profiles: {reason}", name_of(&taken.tag)));
        }
    }
    let mut profile = |level: &str, kind: &str| -> Option<Profile> {
        let taken = experiment.profiles().find(|taken| name_of(&taken.tag) == level && taken.kind == kind);
        let cut = || Err("the recording was cut off before it was taken".to_owned());
        match taken.map_or_else(cut, |taken| read_kept(path, taken)) {
            Ok((profile, file)) => {
                files.push((level.to_owned(), kind.to_owned(), file));
                Some(profile)
            }
            Err(reason) => {
                missing.push(format!("{level}: no {kind} profile: {reason}"));
                None
            }
        }
    };
    let doubts = trials().zip(&levels).zip(names).map(|((trial, level), name)| doubt(&trial.run, level, name));
    let warnings: Vec<String> = doubts.flatten().collect();
    let driven = || levels.iter().zip(names);
    let cpu: Vec<Option<Profile>> = driven().map(|(_, name)| profile(name, CPU.0)).collect();
    let requests: Vec<f64> = levels
        .iter()
        .zip(&cpu)
        .map(|(level, cpu)| {
            // A profile that does not say for how long it was taken was taken for as long as asked.
            let duration_ns = cpu.as_ref().map(|p| p.duration_ns).filter(|ns| *ns > 0);
            Level::requests(&level.with, duration_ns.unwrap_or((u64::from(recorded.seconds) * SECOND) as i64))
        })
        .collect();
    let kinds = OTHERS
        .iter()
        .map(|(kind, column_name, stock)| {
            let mut sums = [None, None];
            let mut column = None;
            for (at, (level, name)) in driven().enumerate() {
                let Some(profile) = profile(name, kind) else { continue };
                let view = View::all(profile.sample_type(Some(column_name)).unwrap_or(profile.sample_type_default));
                let sum = top(&profile, &view, Sort::Cum).kept as f64;
                sums[at] = Some((sum, Level::requests(&level.others, profile.duration_ns)));
                column = Some(profile.sample_types[view.sample_type].clone());
            }
            let (sample_type, unit) = column.map_or_else(Default::default, |column| (column.kind, column.unit));
            Kind { kind: (*kind).to_owned(), sample_type, unit, sums, stock: *stock }
        })
        .collect();
    let comparison = match (cpu.as_slice(), requests.as_slice()) {
        ([Some(low), Some(high)], [before, after]) if *before > 0.0 && *after > 0.0 => {
            let basis = Basis::Requests { before: *before, after: *after };
            let (a, b) = (View::all(low.sample_type_default), View::all(high.sample_type_default));
            match diff((low, &a), (high, &b), basis, Sort::Cum) {
                Ok(comparison) => Some(comparison),
                Err(error) => {
                    missing.push(format!("the CPU profiles {error}"));
                    None
                }
            }
        }
        _ => None,
    };
    let (base, seconds) = (recorded.bases.first().cloned().unwrap_or_default(), recorded.seconds);
    Some(Profiles { base, seconds, level_name, levels, requests, comparison, kinds, files, missing, warnings })
}

/// What speaks against the figures of a level.
fn doubt(run: &Run, level: &Level, name: &str) -> Option<String> {
    let generator = Summary::of(run).generator;
    let reason = generator.reason.unwrap_or_default();
    if let Some(Ending::Stopped(stop)) = &run.ending {
        Some(format!("{name}: profiling ended early: {}", format::stop(stop)))
    } else if generator.limited {
        Some(format!("{name}: while profiles were taken the generator was the limit, not the server: {reason}"))
    } else if level.is_steady() {
        None
    } else {
        let (offered, held) = (format::rate(level.offered_rps), format::rate(level.without.goodput_rps));
        Some(format!(
            "{name}: no steady state: of {offered} requests/s the server answered {held} even without profiling, so its \
             costs are those of a server that falls behind"
        ))
    }
}

/// Where the profiles went, and how to look at them.
pub fn note(profiles: &Profiles) -> Option<String> {
    let cpu = |level: &str| {
        profiles.files.iter().find(|(of, kind, _)| of == level && kind == CPU.0).map(|(_, _, file)| file.as_str())
    };
    let (low, high) = (cpu("low")?, cpu(&profiles.level_name)?);
    let [before, after] = profiles.requests.as_slice() else { return None };
    Some(format!(
        "profiles: {} files beside it; the flame graph of the difference: plimsoll profile --diff {low} {high} \
         --requests-a {before:.0} --requests-b {after:.0} -o diff.html",
        profiles.files.len(),
    ))
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

    #[test]
    fn a_record_leads_nowhere_but_beside_it() {
        for (file, part) in [
            (Ok("../../etc/passwd"), "names no profile"),
            (Ok("/etc/hostname.pb.gz"), "names no profile"),
            (Ok("x/y.pb.gz"), "names no profile"),
            (Ok("run.plimsoll"), "names no profile"),
            (Ok(""), "names no profile"),
            (Ok("no-such.1.a1.cpu.pb.gz"), "cannot be read"),
            (Err("it answers 404"), "it answers 404"),
        ] {
            let file = file.map(str::to_owned).map_err(str::to_owned);
            let taken = ProfileTaken { tag: level_tag(0), kind: "cpu".to_owned(), trial: None, file };
            let reason = read_kept(Some(Path::new("/tmp/run.plimsoll")), &taken).expect_err("no profile");
            assert!(reason.contains(part), "{reason}");
        }
    }
}
