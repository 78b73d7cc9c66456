//! An experiment as it is made: each load is driven, kept in memory and, where asked for, written
//! to its run file as it happens, so that a crash loses no more than the interval under way.
//!
//! Not here: how a command line is spelled ([`SpellCommand`]), and who drives loads (`runner`).

use crate::runner::{LoadOutcome, Runner, TickProbes};
use crate::source_revision;
use plimsoll_analysis::conclude;
use plimsoll_analysis::history::study_summary;
use plimsoll_engine::Tick;
use plimsoll_model::codec::{self, Frame};
use plimsoll_model::failure::Failure;
use plimsoll_model::{
    Environment, Experiment, ExperimentSpec, Injector, Interval, MachineLimits, PlanRecord, Probes, Purpose,
    RedactedText, Remark, Run, SampledFunctions, StartNotes, Stop, Tag, Terms, Trial,
};
use plimsoll_sys::file::WriteMode;
use plimsoll_sys::output_file;
use plimsoll_sys::signal;
use plimsoll_sys::system_text;
use std::fs::{File, TryLockError};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The command line that asks this, as it is recorded.
pub type SpellCommand = fn(&ExperimentSpec, &Terms<RedactedText>) -> Vec<String>;

/// An experiment under way.
pub struct Recording {
    experiment: Experiment,
    file: Option<RunFile>,
}

/// A run file being written. The first failure to write ends the writing, not the experiment. The
/// file is locked: a second run that is told to write it is refused.
struct RunFile {
    path: PathBuf,
    file: File,
    failed: bool,
    buffer: Vec<u8>,
    /// The interval being summed up: its number and content.
    open: Option<(u32, Interval)>,
}

impl RunFile {
    fn create(path: &Path) -> Result<RunFile, Failure> {
        let cannot = |e: std::io::Error| {
            Failure::start(format!("the run file '{}' cannot be written: {}", path.display(), system_text(&e)))
        };
        // Not emptied before it is known to be nobody else's.
        let mut file = output_file::open_file(path, WriteMode::Over).map_err(cannot)?;
        if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            match file.try_lock() {
                Ok(()) => file.set_len(0).map_err(cannot)?,
                Err(TryLockError::WouldBlock) => {
                    return Err(Failure::usage(format!(
                        "the run file '{}' is being written by another run: give another name (-o; sweep: --name)",
                        path.display()
                    )));
                }
                // Some file systems know no locks; then there is none.
                Err(TryLockError::Error(_)) => file.set_len(0).map_err(cannot)?,
            }
        }
        file.write_all(&codec::MAGIC).map_err(cannot)?;
        Ok(RunFile { path: path.to_owned(), file, failed: false, buffer: Vec::new(), open: None })
    }

    fn write(&mut self, frame: &Frame) {
        if self.failed {
            return;
        }
        self.buffer.clear();
        frame.encode(&mut self.buffer);
        if let Err(error) = self.file.write_all(&self.buffer) {
            self.failed = true;
            plimsoll_sys::stdout::failed(format!(
                "the run file '{}' is incomplete: {}",
                self.path.display(),
                system_text(&error)
            ));
        }
    }

    fn tick(&mut self, interval_ns: u64, tick: &Tick) {
        let index = (tick.start_ns / interval_ns) as u32;
        match &mut self.open {
            Some((open, sum)) if *open == index => sum.merge_after(tick.interval),
            _ => {
                self.close_interval();
                self.open = Some((index, tick.interval.clone()));
            }
        }
        // A whole interval is written at once, not when the next one begins.
        if (tick.end_ns / interval_ns) as u32 > index {
            self.close_interval();
        }
    }

    fn close_interval(&mut self) {
        if let Some((index, interval)) = self.open.take() {
            self.write(&Frame::Interval { index, interval: Box::new(interval) });
        }
    }
}

impl Recording {
    /// Begins an experiment, in memory and, with a path, in a file. `spell` writes the command line
    /// of the record.
    pub fn begin(
        asked: ExperimentSpec,
        terms: &Terms<String>,
        noted: StartNotes,
        target_local: bool,
        injector: &Injector,
        path: Option<&Path>,
        spell: SpellCommand,
    ) -> Result<Recording, Failure> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let terms = terms.record();
        let experiment = Experiment {
            command: spell(&asked, &terms),
            terms: Some(Box::new(terms)),
            spec: asked,
            started_unix_ms: now.as_millis() as u64,
            environment: Environment {
                injectors: vec![injector.clone()],
                revision: path.and_then(|_| source_revision::current()),
                ..environment(target_local)
            },
            start_notes: noted,
            trials: Vec::new(),
            remarks: Vec::new(),
            elapsed_ns: None,
        };
        let mut file = path.map(RunFile::create).transpose()?;
        if let Some(file) = &mut file {
            file.write(&Frame::Experiment(Box::new(codec::Header {
                spec: experiment.spec.clone(),
                started_unix_ms: experiment.started_unix_ms,
                command: experiment.command.clone(),
                terms: experiment.terms.clone(),
                environment: experiment.environment.clone(),
                start_notes: experiment.start_notes.clone(),
            })));
        }
        Ok(Recording { experiment, file })
    }

    /// What it was asked.
    pub fn spec(&self) -> &ExperimentSpec {
        &self.experiment.spec
    }

    /// When it began, in ms since 1970.
    pub fn started_unix_ms(&self) -> u64 {
        self.experiment.started_unix_ms
    }

    /// The loads so far.
    pub fn trials(&self) -> &[Trial] {
        &self.experiment.trials
    }

    /// What the loads do not tell, so far.
    pub fn remarks(&self) -> &[Remark] {
        &self.experiment.remarks
    }

    /// Has `runner` drive a load, and returns it. `on_tick` may end it; it is told the cores that
    /// the server uses.
    pub fn drive(
        &mut self,
        runner: &mut dyn Runner,
        tag: Tag,
        plan: &PlanRecord,
        on_tick: &mut dyn FnMut(&Tick, Option<f64>) -> ControlFlow<Stop>,
    ) -> Result<&Trial, Failure> {
        if !plan.is_bounded() {
            return Err(Failure::usage(
                "a load lasts at most ten years, with at most a thousand million users or requests/s",
            ));
        }
        let mut ended = false;
        let file = &mut self.file;
        if let Some(file) = file {
            let (start_ns, plan, injectors) = (runner.elapsed_ns(), Box::new(plan.clone()), runner.injectors());
            file.write(&Frame::TrialStart { tag, start_ns, plan, injectors });
        }
        let mut on_tick = |tick: &Tick, glance: TickProbes| {
            if let Some(file) = file {
                if tick.end_ns > 0 {
                    file.tick(plan.load.interval_ns, tick);
                }
                if let Some(mut part) = glance.part {
                    // Samples of functions are joined over the load, which makes a tenth of them.
                    part.sampled = SampledFunctions::default();
                    Frame::of_probes(part).for_each(|frame| file.write(&frame));
                }
            }
            // What comes after the load was ended is recorded, but nobody is asked again.
            let flow = if ended { ControlFlow::Continue(()) } else { on_tick(tick, glance.server_cores) };
            ended |= flow.is_break();
            flow
        };
        runner.connect(&mut on_tick)?;
        let start_ns = runner.elapsed_ns() + runner.start_ahead_ns();
        let LoadOutcome { mut run, seen_last } = runner.run(start_ns, &mut on_tick)?;
        run.probes.sampled = kept_samples(&run, tag.purpose);
        if let Some(file) = &mut self.file {
            file.close_interval();
            if let Some(seen) = seen_last {
                let seen = Probes { sampled: run.probes.sampled.clone(), ..seen };
                Frame::of_probes(seen).for_each(|frame| file.write(&frame));
            }
            if !run.agents.is_empty() {
                file.write(&Frame::Agents(run.agents.clone()));
            }
            if let Some(ending) = run.ending.clone() {
                let (addresses, window_ns) = (run.plan.carriage.addresses.clone(), run.window_ns);
                let failed_answers = run.failed_answers.clone();
                file.write(&Frame::TrialEnd { ending, window_ns, start_ns, addresses, failed_answers });
            }
        }
        self.experiment.trials.push(Trial { tag, start_ns, run });
        Ok(&self.experiment.trials[self.experiment.trials.len() - 1])
    }

    /// Adds what no load tells.
    pub fn remark(&mut self, remark: Remark) {
        if let Some(file) = &mut self.file {
            file.write(&Frame::Remark(remark.clone()));
        }
        self.experiment.remarks.push(remark);
    }

    /// Its run file, as long as that is whole.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().filter(|file| !file.failed).map(|file| file.path.as_path())
    }

    /// Leaves the experiment as it is: what was measured is kept, with the reason in place of the
    /// mark of a whole recording.
    pub fn break_off(mut self, reason: &str) -> (Experiment, Option<String>) {
        signal::release_interrupts();
        self.remark(Remark::Broken { reason: reason.to_owned() });
        let whole = self.file.filter(|file| !file.failed);
        let note = whole.map(|file| format!("run file: {} (incomplete)", file.path.display()));
        (self.experiment, note)
    }

    /// Ends the experiment after `elapsed_ns`. The note says where its file is, if it is whole.
    /// What is left to do, such as drawing a page, the user may end at once.
    pub fn end(mut self, elapsed_ns: u64) -> (Experiment, Option<String>) {
        self.experiment.elapsed_ns = Some(elapsed_ns);
        // Only a file is listed by it.
        let found = self.file.as_ref().and_then(|_| conclude(&self.experiment).ok());
        let summary = found.map(|finding| Box::new(study_summary(&finding)));
        let note = self.file.and_then(|mut file| {
            file.write(&Frame::ExperimentEnd { elapsed_ns, summary });
            (!file.failed).then(|| format!("run file: {}", file.path.display()))
        });
        // A file that is whole is not left half by who is impatient.
        signal::release_interrupts();
        (self.experiment, note)
    }
}

/// What is kept of the functions that were sampled: those of steady loads, which are compared. The
/// trials of a search are many.
fn kept_samples(run: &Run, purpose: Purpose) -> SampledFunctions {
    match purpose {
        Purpose::Hold => run.probes.sampled.joined(run.window_ns.0 as i64, run.window_ns.1 as i64),
        _ => SampledFunctions::default(),
    }
}

/// What a container leaves of this machine.
fn limits() -> MachineLimits {
    let (cores, memory_bytes) = plimsoll_sys::probe::cgroup::own_limits();
    MachineLimits {
        cores_milli: cores.map(|cores| (cores * 1000.0).round() as u64),
        memory_bytes: memory_bytes.map(|bytes| bytes as u64),
    }
}

/// Where and by what this is measured.
pub fn environment(target_local: bool) -> Environment {
    use plimsoll_sys::process;
    Environment {
        plimsoll: env!("CARGO_PKG_VERSION").into(),
        kernel: process::kernel(),
        cpu: process::cpu_model(),
        cores: process::cores(),
        memory_bytes: process::memory_bytes(),
        files_max: process::raise_files_max(),
        target_local,
        injectors: Vec::new(),
        limits: limits(),
        revision: None,
    }
}
