//! Records an experiment. Each load (trial) is executed, kept in memory and written to the run file
//! while the load runs. A crash of plimsoll loses at most the current interval of a load, because
//! earlier intervals are already in the run file.
//!
//! Not here: formatting command lines ([`FormatCommand`]), and executing loads (`runner`).

use crate::runner::{LoadOutcome, Runner, TickProbes};
use crate::source_revision;
use plimsoll_analysis::compute_finding;
use plimsoll_analysis::history::study_summary;
use plimsoll_engine::Tick;
use plimsoll_model::codec::{self, Frame};
use plimsoll_model::failure::Failure;
use plimsoll_model::{
    EarlyStopReason, Environment, Experiment, ExperimentEvent, ExperimentSettings, ExperimentSpec, Injector, Interval,
    LoadPurpose, LoadTag, MachineLimits, PlanRecord, Probes, RedactedText, Run, SampledFunctions, StartNotes, Trial,
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

/// A function that formats an experiment's command line for the run file, with secrets redacted.
pub type FormatCommand = fn(&ExperimentSpec, &ExperimentSettings<RedactedText>) -> Vec<String>;

/// An experiment in progress: its results in memory, and its run file if the results are stored.
pub struct Recording {
    experiment: Experiment,
    file: Option<RunFile>,
}

/// An open run file of an experiment in progress. After the first write error, nothing more is
/// written to the run file, but the experiment continues. The file is locked, so a second run with
/// the same path is refused.
struct RunFile {
    path: PathBuf,
    file: File,
    failed: bool,
    buffer: Vec<u8>,
    /// The current interval, to which the measurements of the next tick (100 ms) are added: its
    /// index and its measurements so far.
    open: Option<(u32, Interval)>,
}

impl RunFile {
    fn create(path: &Path) -> Result<RunFile, Failure> {
        let cannot = |e: std::io::Error| {
            Failure::cannot_start(format!(
                "the run file '{file}' cannot be written: {reason}",
                file = path.display(),
                reason = system_text(&e)
            ))
        };
        // The file is truncated only after it is locked, because another run may be writing to the
        // file.
        let mut file = output_file::open_file(path, WriteMode::Overwrite).map_err(cannot)?;
        if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            match file.try_lock() {
                Ok(()) => file.set_len(0).map_err(cannot)?,
                Err(TryLockError::WouldBlock) => {
                    return Err(Failure::usage(format!(
                        "the run file '{}' is being written by another run: give another name (-o; sweep: --name)",
                        path.display()
                    )));
                }
                // Some file systems do not support locks. On a file system without locks, the run
                // file is written without a lock.
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
            plimsoll_sys::stdout::record_write_failure(format!(
                "the run file '{file}' is incomplete: {reason}",
                file = self.path.display(),
                reason = system_text(&error)
            ));
        }
    }

    fn add_tick(&mut self, interval_ns: u64, tick: &Tick) {
        let index = (tick.start_ns / interval_ns) as u32;
        match &mut self.open {
            Some((open, sum)) if *open == index => sum.merge_after(tick.interval),
            _ => {
                self.close_interval();
                self.open = Some((index, tick.interval.clone()));
            }
        }
        // If the tick completes an interval, the interval is written at once, so that a crash
        // cannot lose it.
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
    /// Begins an experiment in memory. If `path` is given, also creates a run file. `spell` formats
    /// the experiment's command line for the run file.
    pub fn begin(
        spec: ExperimentSpec,
        settings: &ExperimentSettings<String>,
        start_notes: StartNotes,
        target_local: bool,
        injector: &Injector,
        path: Option<&Path>,
        spell: FormatCommand,
    ) -> Result<Recording, Failure> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let settings = settings.record();
        let experiment = Experiment {
            command: spell(&spec, &settings),
            settings: Some(Box::new(settings)),
            spec,
            started_unix_ms: now.as_millis() as u64,
            environment: Environment {
                injectors: vec![injector.clone()],
                revision: path.and_then(|_| source_revision::current_revision()),
                ..describe_environment(target_local)
            },
            start_notes,
            trials: Vec::new(),
            events: Vec::new(),
            elapsed_ns: None,
        };
        let mut file = path.map(RunFile::create).transpose()?;
        if let Some(file) = &mut file {
            file.write(&Frame::Experiment(Box::new(codec::RunFileHeader {
                spec: experiment.spec.clone(),
                started_unix_ms: experiment.started_unix_ms,
                command: experiment.command.clone(),
                settings: experiment.settings.clone(),
                environment: experiment.environment.clone(),
                start_notes: experiment.start_notes.clone(),
            })));
        }
        Ok(Recording { experiment, file })
    }

    /// Returns the specification of the experiment: its command and settings.
    pub fn experiment_spec(&self) -> &ExperimentSpec {
        &self.experiment.spec
    }

    /// Returns the start of the experiment, in ms since 1970 (Unix time).
    pub fn started_unix_ms(&self) -> u64 {
        self.experiment.started_unix_ms
    }

    /// Returns the loads (trials) recorded so far.
    pub fn trials(&self) -> &[Trial] {
        &self.experiment.trials
    }

    /// Returns the recorded events, such as skipped loads and missing profiles.
    pub fn events(&self) -> &[ExperimentEvent] {
        &self.experiment.events
    }

    /// Executes and records one load with `runner`, and returns the recorded load. On each tick
    /// (every 100 ms), `on_tick` receives the number of CPU cores that the server uses, and may end
    /// the load.
    pub fn run_and_record_load(
        &mut self,
        runner: &mut dyn Runner,
        tag: LoadTag,
        plan: &PlanRecord,
        on_tick: &mut dyn FnMut(&Tick, Option<f64>) -> ControlFlow<EarlyStopReason>,
    ) -> Result<&Trial, Failure> {
        if !plan.is_within_limits() {
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
                    file.add_tick(plan.load.interval_ns, tick);
                }
                if let Some(mut part) = glance.new_readings {
                    // At each tick, the readings of the target are written without function samples
                    // (samples of running code). Function samples are merged and written at the end
                    // of the load, because merging makes the samples ten times smaller.
                    part.sampled = SampledFunctions::default();
                    Frame::probe_frames(part).for_each(|frame| file.write(&frame));
                }
            }
            // After `on_tick` has ended the load, later ticks are recorded without another call of
            // `on_tick`.
            let flow = if ended { ControlFlow::Continue(()) } else { on_tick(tick, glance.server_cores) };
            ended |= flow.is_break();
            flow
        };
        runner.connect(&mut on_tick)?;
        let start_ns = runner.elapsed_ns() + runner.start_ahead_ns();
        let LoadOutcome { mut run, unreported_readings } = runner.run(start_ns, &mut on_tick)?;
        run.probes.sampled = samples_to_record(&run, tag.purpose);
        if let Some(file) = &mut self.file {
            file.close_interval();
            if let Some(seen) = unreported_readings {
                let seen = Probes { sampled: run.probes.sampled.clone(), ..seen };
                Frame::probe_frames(seen).for_each(|frame| file.write(&frame));
            }
            if !run.agents.is_empty() {
                file.write(&Frame::Agents(run.agents.clone()));
            }
            if let Some(ending) = run.ending.clone() {
                let (addresses, window_ns) = (run.plan.connection_plan.addresses.clone(), run.window_ns);
                let failed_answers = run.failed_answers.clone();
                file.write(&Frame::TrialEnd { ending, window_ns, start_ns, addresses, failed_answers });
            }
        }
        self.experiment.trials.push(Trial { tag, start_ns, run });
        Ok(&self.experiment.trials[self.experiment.trials.len() - 1])
    }

    /// Records an event, such as a skipped load.
    pub fn record_event(&mut self, event: ExperimentEvent) {
        if let Some(file) = &mut self.file {
            file.write(&Frame::Event(event.clone()));
        }
        self.experiment.events.push(event);
    }

    /// Returns the path of the run file, if there is one and all writes succeeded.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().filter(|file| !file.failed).map(|file| file.path.as_path())
    }

    /// Ends the experiment early. The run file keeps all measurements, and contains the reason for
    /// the early end in place of the frame that ends a complete run file. Returns the experiment,
    /// and a note with the path of the incomplete run file.
    pub fn end_early(mut self, reason: &str) -> (Experiment, Option<String>) {
        signal::restore_stop_signals();
        self.record_event(ExperimentEvent::Aborted { reason: reason.to_owned() });
        let whole = self.file.filter(|file| !file.failed);
        let note = whole.map(|file| format!("run file: {} (incomplete)", file.path.display()));
        (self.experiment, note)
    }

    /// Ends the experiment after `elapsed_ns`. Returns the experiment, and a note with the path of
    /// the run file. Once the run file is complete, ^C interrupts plimsoll at once, because the
    /// remaining work, such as writing a page, can be repeated.
    pub fn end(mut self, elapsed_ns: u64) -> (Experiment, Option<String>) {
        self.experiment.elapsed_ns = Some(elapsed_ns);
        // The summary of the study is only stored in the run file, so without a run file no summary
        // is computed.
        let found = self.file.as_ref().and_then(|_| compute_finding(&self.experiment).ok());
        let summary = found.map(|finding| Box::new(study_summary(&finding)));
        let note = self.file.and_then(|mut file| {
            file.write(&Frame::ExperimentEnd { elapsed_ns, summary });
            (!file.failed).then(|| format!("run file: {}", file.path.display()))
        });
        // The run file is complete now, so ^C may interrupt plimsoll at once.
        signal::restore_stop_signals();
        (self.experiment, note)
    }
}

/// Returns the function samples (samples of running code) to record in the run file. Samples are
/// recorded only for steady loads (`LoadPurpose::SteadyLoad`), because only the samples of steady
/// loads are compared later. The many trials of a search have no samples in the record.
fn samples_to_record(run: &Run, purpose: LoadPurpose) -> SampledFunctions {
    match purpose {
        LoadPurpose::SteadyLoad => {
            run.probes.sampled.merge_into_one_interval(run.window_ns.0 as i64, run.window_ns.1 as i64)
        }
        _ => SampledFunctions::default(),
    }
}

/// Returns the limits of cores and memory of plimsoll's container (cgroup).
fn container_limits() -> MachineLimits {
    let (cores, memory_bytes) = plimsoll_sys::probe::cgroup::own_limits();
    MachineLimits {
        cores_milli: cores.map(|cores| (cores * 1000.0).round() as u64),
        memory_bytes: memory_bytes.map(|bytes| bytes as u64),
    }
}

/// Describes this machine and plimsoll's version for the run file.
pub fn describe_environment(target_local: bool) -> Environment {
    use plimsoll_sys::process;
    Environment {
        plimsoll: env!("CARGO_PKG_VERSION").into(),
        kernel: process::kernel_version_text(),
        cpu: process::cpu_model(),
        cores: process::allowed_core_count(),
        memory_bytes: process::memory_total_bytes(),
        files_max: process::raise_open_files_limit(),
        target_local,
        injectors: Vec::new(),
        limits: container_limits(),
        revision: None,
    }
}
