//! The run file: one experiment as an append-only list of frames, each with a checksum.
//!
//! ```text
//!     file  = magic (8 bytes: "PLIMSOL", version 3) frame*
//!     frame = length of payload (u32 LE)  kind (u8)  payload  CRC-32 of kind and payload (u32 LE)
//! ```
//!
//! Frames of rare kinds contain JSON. Frames of intervals are frequent, so they contain tagged
//! fields of variable-length integers. A reader decodes whole frames up to the first damaged frame,
//! and reports the length of the remaining file. The reader skips and counts frames and figures
//! that this version of plimsoll does not know. This module converts values to bytes and back; its
//! callers read and write the files.

use crate::agent_account::AgentAccount;
use crate::bounds::{INJECTORS_MAX, is_valid_schedule_time};
use crate::experiment_settings::{ExperimentSettings, RedactedText};
use crate::failed_response::{FailedResponse, KINDS_MAX};
use crate::injector::Injector;
use crate::interval::{Interval, RouteNumber};
use crate::interval_codec::{read_interval, write_interval};
use crate::ledger::Ledger;
use crate::plan::LoadTag;
use crate::probes::Probes;
use crate::probes_codec::{read_probes, write_probes};
use crate::record::PlanRecord;
use crate::run::{Environment, Experiment, ExperimentEvent, LoadEnd, Run, StartNotes, Trial};
use crate::sampled::SampledFunctions;
use crate::spec::ExperimentSpec;
use crate::study_summary::StudySummary;
use crate::tagged_fields::FieldReader;
use crate::units::TIME_NS_MAX;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The first bytes of every run file; the last of these bytes is the format version.
pub const MAGIC: [u8; 8] = *b"PLIMSOL\x03";
/// The oldest format version that this crate reads. Files of version 2 do not contain the
/// settings of a run, so their runs cannot be repeated.
const VERSION_MIN: u8 = 2;
/// Longest valid payload of a frame, in bytes: a guard against damaged lengths.
const PAYLOAD_MAX: usize = 64 << 20;
/// Upper bound for the start of an experiment, ms since 1970: the end of the year 9999.
const STARTED_UNIX_MS_MAX: u64 = 253_402_300_799_999;
const FRAME_HEAD_BYTES: usize = 5;
const FRAME_TAIL_BYTES: usize = 4;

/// One frame of a run file. The variants are in the order in which plimsoll writes the frames.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// The description of the experiment, which is always the first frame.
    Experiment(Box<RunFileHeader>),
    /// A load begins; loads are numbered from 0 in the order of their `TrialStart` frames.
    TrialStart {
        /// The purpose of the load, and its position in the experiment.
        tag: LoadTag,
        /// Time from the beginning of the experiment to the start of the load, ns.
        start_ns: u64,
        /// The plan of the load, without its secrets.
        plan: Box<PlanRecord>,
        /// The machines that generate the load; see [`Run::injectors`].
        injectors: Vec<Injector>,
    },
    /// The figures of one interval of the latest load.
    Interval {
        /// Number of the interval in its load, as in [`Run::intervals`].
        index: u32,
        /// The figures of the interval.
        interval: Box<Interval>,
    },
    /// A part of the probes' readings during the latest load. [`Probes::merge`] combines all parts.
    Probes(Box<Probes>),
    /// A part of the functions that were sampled during the latest load.
    /// [`SampledFunctions::merge`] combines all parts.
    Sampled(Box<SampledFunctions>),
    /// What each agent of a fleet did in the latest load.
    Agents(Vec<AgentAccount>),
    /// The latest load has ended.
    TrialEnd {
        /// How the load ended, such as finished or stopped.
        ending: LoadEnd,
        /// Start and end of the measured window, ns; see [`Run::window_ns`].
        window_ns: (u64, u64),
        /// Time from the beginning of the experiment to the start of the schedule, ns. The schedule
        /// starts later than the load (`TrialStart`), because plimsoll opens connections first.
        start_ns: u64,
        /// The addresses of the target host, including addresses that were found during the load.
        addresses: Vec<SocketAddr>,
        /// The first failed response of each kind; see [`Run::failed_answers`].
        failed_answers: Vec<FailedResponse>,
    },
    /// An event of the experiment that belongs to no load.
    Event(ExperimentEvent),
    /// The experiment has ended. The run file of a finished experiment ends with the frame
    /// `ExperimentEnd`.
    ExperimentEnd {
        /// Length of the experiment, ns.
        elapsed_ns: u64,
        /// The summary of the finding, for lists of runs; `None` in older files.
        summary: Option<Box<StudySummary>>,
    },
}

/// The content of a run file's first frame; see [`Experiment`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of Experiment")]
pub struct RunFileHeader {
    #[serde(rename = "asked")]
    pub spec: ExperimentSpec,
    pub started_unix_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "terms")]
    pub settings: Option<Box<ExperimentSettings<RedactedText>>>,
    pub command: Vec<String>,
    pub environment: Environment,
    #[serde(rename = "noted")]
    pub start_notes: StartNotes,
}

#[derive(Serialize, Deserialize)]
struct TrialStart {
    tag: LoadTag,
    start_ns: u64,
    plan: PlanRecord,
    injectors: Vec<Injector>,
}

#[derive(Serialize, Deserialize)]
struct TrialEnd {
    ending: LoadEnd,
    window_ns: (u64, u64),
    start_ns: u64,
    addresses: Vec<SocketAddr>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failed_answers: Vec<FailedResponse>,
}

#[derive(Serialize, Deserialize)]
struct ExperimentEnd {
    elapsed_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<Box<StudySummary>>,
}

const KIND_EXPERIMENT: u8 = 1;
const KIND_TRIAL_START: u8 = 2;
const KIND_INTERVAL: u8 = 3;
const KIND_TRIAL_END: u8 = 4;
const KIND_EXPERIMENT_END: u8 = 5;
const KIND_PROBES: u8 = 6;
const KIND_EVENT: u8 = 7;
const KIND_SAMPLED: u8 = 8;
const KIND_AGENTS: u8 = 9;
/// The largest kind of frame that this version of plimsoll knows. Frames with a larger kind come
/// from later versions of plimsoll.
const KIND_MAX: u8 = KIND_AGENTS;

impl Frame {
    /// Returns the frames that store the readings `probes`. Without readings, there is no frame.
    pub fn probe_frames(mut probes: Probes) -> impl Iterator<Item = Frame> {
        let sampled = std::mem::take(&mut probes.sampled);
        let probes = (!probes.is_empty()).then(|| Frame::Probes(Box::new(probes)));
        let sampled = (!sampled.is_empty()).then(|| Frame::Sampled(Box::new(sampled)));
        probes.into_iter().chain(sampled)
    }

    /// Appends the frame's bytes to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_HEAD_BYTES]);
        let kind = match self {
            Frame::Experiment(header) => {
                append_json(out, header);
                KIND_EXPERIMENT
            }
            Frame::TrialStart { tag, start_ns, plan, injectors } => {
                let (plan, injectors) = (PlanRecord::clone(plan), injectors.clone());
                append_json(out, &TrialStart { tag: *tag, start_ns: *start_ns, plan, injectors });
                KIND_TRIAL_START
            }
            Frame::Interval { index, interval } => {
                write_interval(out, *index, interval);
                KIND_INTERVAL
            }
            Frame::Probes(probes) => {
                write_probes(out, probes);
                KIND_PROBES
            }
            Frame::Sampled(sampled) => {
                append_json(out, sampled.as_ref());
                KIND_SAMPLED
            }
            Frame::Agents(agents) => {
                append_json(out, agents);
                KIND_AGENTS
            }
            Frame::TrialEnd { ending, window_ns, start_ns, addresses, failed_answers } => {
                let (ending, addresses) = (ending.clone(), addresses.clone());
                let (window_ns, start_ns, failed_answers) = (*window_ns, *start_ns, failed_answers.clone());
                append_json(out, &TrialEnd { ending, window_ns, start_ns, addresses, failed_answers });
                KIND_TRIAL_END
            }
            Frame::Event(event) => {
                append_json(out, event);
                KIND_EVENT
            }
            Frame::ExperimentEnd { elapsed_ns, summary } => {
                append_json(out, &ExperimentEnd { elapsed_ns: *elapsed_ns, summary: summary.clone() });
                KIND_EXPERIMENT_END
            }
        };
        let length = (out.len() - start - FRAME_HEAD_BYTES) as u32;
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
        out[start + 4] = kind;
        let checksum = crc32fast::hash(&out[start + 4..]);
        out.extend_from_slice(&checksum.to_le_bytes());
    }

    /// Decodes a frame. The number in the result is the count of figures that this version of
    /// plimsoll does not know. `None` means that the kind is unknown or the payload is damaged.
    fn decode(kind: u8, payload: &[u8]) -> Option<(Frame, usize)> {
        if kind == KIND_INTERVAL {
            let (index, interval, unknown) = read_interval(FieldReader::new(payload))?;
            return Some((Frame::Interval { index, interval: Box::new(interval) }, unknown));
        }
        let frame = match kind {
            KIND_EXPERIMENT => serde_json::from_slice(payload).ok().map(|header| Frame::Experiment(Box::new(header))),
            KIND_TRIAL_START => {
                let TrialStart { tag, start_ns, plan, injectors } = serde_json::from_slice(payload).ok()?;
                Some(Frame::TrialStart { tag, start_ns, plan: Box::new(plan), injectors })
            }
            KIND_PROBES => {
                let mut reader = FieldReader::new(payload);
                let probes = read_probes(&mut reader)?;
                reader.bytes.is_empty().then(|| Frame::Probes(Box::new(probes)))
            }
            KIND_TRIAL_END => {
                let TrialEnd { ending, window_ns, start_ns, addresses, failed_answers } =
                    serde_json::from_slice(payload).ok()?;
                Some(Frame::TrialEnd { ending, window_ns, start_ns, addresses, failed_answers })
            }
            KIND_EVENT => serde_json::from_slice(payload).ok().map(Frame::Event),
            KIND_SAMPLED => serde_json::from_slice(payload).ok().map(|sampled| Frame::Sampled(Box::new(sampled))),
            KIND_AGENTS => serde_json::from_slice(payload).ok().map(Frame::Agents),
            KIND_EXPERIMENT_END => {
                let ExperimentEnd { elapsed_ns, summary } = serde_json::from_slice(payload).ok()?;
                Some(Frame::ExperimentEnd { elapsed_ns, summary })
            }
            _ => None,
        };
        Some((frame?, 0))
    }
}

fn append_json<T: Serialize>(out: &mut Vec<u8>, value: &T) {
    // Serialising plain structs of numbers and strings into memory cannot fail.
    serde_json::to_writer(out, value).unwrap_or_else(|error| unreachable!("a frame serialises: {error}"));
}

/// Why bytes cannot be read as a run file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The bytes do not begin like a run file.
    #[error("this is not a plimsoll run file")]
    NotARunFile,
    /// The file has an unsupported version of the format.
    #[error("{text}", text = other_version_text(*.0))]
    OtherVersion(u8),
    /// The file is cut off or damaged within its first frame.
    #[error("this run file is cut off or damaged at its beginning: plimsoll cannot read any data from the file")]
    NoReadableFrame,
}

/// Formats the error for a file of an unsupported format version. The error says which versions of
/// plimsoll read the file.
fn other_version_text(version: u8) -> String {
    if version < MAGIC[7] {
        format!(
            "this run file has format version {version}, which only a plimsoll 0.1 from before 2026-11-22 reads; this \
             plimsoll reads versions 2 and 3"
        )
    } else {
        format!(
            "this run file has format version {version}, which only a newer plimsoll reads; this plimsoll reads \
             versions 2 and 3"
        )
    }
}

/// The unreadable tail of a run file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedTail {
    /// Length of the readable part, in bytes.
    pub good_bytes: usize,
    /// Length of the unreadable tail, in bytes.
    pub lost_bytes: usize,
}

/// The content of a run file.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFileContents {
    /// The experiment, up to the first damaged frame.
    pub experiment: Experiment,
    /// The unreadable tail; `None` means that the file is intact.
    pub damage: Option<DamagedTail>,
    /// Number of frames whose kind this version of plimsoll does not know.
    pub frames_unknown: usize,
    /// Number of values of figures (measures) that this version of plimsoll does not know.
    pub figures_unknown: usize,
}

/// Returns whether the bytes begin like a run file of any format version.
pub fn is_run_file(bytes: &[u8]) -> bool {
    bytes.len() >= MAGIC.len() && bytes[..7] == MAGIC[..7]
}

/// Decodes a run file. A cut or damaged tail is skipped and reported in
/// [`RunFileContents::damage`]. The result is an error if the format is unknown, or if the first
/// frame is not readable.
pub fn decode(bytes: &[u8]) -> Result<RunFileContents, FileError> {
    if !is_run_file(bytes) {
        return Err(FileError::NotARunFile);
    }
    if !(VERSION_MIN..=MAGIC[7]).contains(&bytes[7]) {
        return Err(FileError::OtherVersion(bytes[7]));
    }
    let mut at = MAGIC.len();
    let (mut frames_unknown, mut figures_unknown) = (0, 0);
    let mut experiment: Option<Experiment> = None;
    while let Some((kind, payload, next)) = next_frame(bytes, at) {
        match (Frame::decode(kind, payload), &mut experiment) {
            (Some((Frame::Experiment(header), _)), None) if header.is_within_limits() => {
                experiment = Some(experiment_from_header(*header));
            }
            (Some((frame, unknown)), Some(experiment)) if !matches!(frame, Frame::Experiment(_)) => {
                if !add_frame(experiment, frame) {
                    break;
                }
                figures_unknown += unknown;
            }
            (None, _) if kind > KIND_MAX => frames_unknown += 1,
            // The frame has a valid checksum, but plimsoll never writes this content, or never
            // writes a frame of this kind at this position. The rest of the file after an
            // unexpected frame cannot be trusted.
            _ => break,
        }
        at = next;
    }
    let mut experiment = experiment.ok_or(FileError::NoReadableFrame)?;
    experiment.trials.iter_mut().for_each(|trial| complete_ledger(&mut trial.run));
    let damage = (at < bytes.len()).then(|| DamagedTail { good_bytes: at, lost_bytes: bytes.len() - at });
    Ok(RunFileContents { experiment, damage, frames_unknown, figures_unknown })
}

impl RunFileHeader {
    /// Returns whether every number of the header is in its valid range.
    fn is_within_limits(&self) -> bool {
        self.started_unix_ms <= STARTED_UNIX_MS_MAX
            && self.spec.is_within_limits()
            && self.settings.as_ref().is_none_or(|settings| settings.is_within_limits(&self.spec))
            && Injector::are_within_limits(&self.environment.injectors)
    }
}

/// Number of bytes at the start of a run file that suffice to compute the length of the file's
/// head. The bytes are the magic bytes, and the length and kind of the first frame.
pub const HEAD_BYTES_MIN: usize = MAGIC.len() + FRAME_HEAD_BYTES;

/// Returns the length of the head of a run file in bytes, from its first [`HEAD_BYTES_MIN`] bytes.
pub fn head_length(first: &[u8]) -> Result<usize, FileError> {
    if !is_run_file(first) {
        return Err(FileError::NotARunFile);
    }
    if !(VERSION_MIN..=MAGIC[7]).contains(&first[7]) {
        return Err(FileError::OtherVersion(first[7]));
    }
    let length = first.get(MAGIC.len()..MAGIC.len() + 4).ok_or(FileError::NoReadableFrame)?;
    let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
    if length > PAYLOAD_MAX { Err(FileError::NoReadableFrame) } else { Ok(HEAD_BYTES_MIN + length + FRAME_TAIL_BYTES) }
}

/// Reads the head of a run file, which describes the experiment.
pub fn read_head(bytes: &[u8]) -> Result<RunFileHeader, FileError> {
    head_length(bytes)?;
    match next_frame(bytes, MAGIC.len()).and_then(|(kind, payload, _)| Frame::decode(kind, payload)) {
        Some((Frame::Experiment(header), _)) if header.is_within_limits() => Ok(*header),
        _ => Err(FileError::NoReadableFrame),
    }
}

/// Number of bytes at the end of a file in which [`read_end`] searches for the last frame.
pub const END_BYTES_MAX: usize = 64 << 10;

/// The end of a run file.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFileEnd {
    /// Length of the experiment, ns.
    pub elapsed_ns: u64,
    /// The summary of the finding; `None` in older files.
    pub summary: Option<Box<StudySummary>>,
}

/// Reads the end of a run file from its last bytes. `None` means that the experiment still runs or
/// was aborted, or that the file was cut off. The last frame is recognised by its length, which
/// leads exactly to the end of the file, and by its valid checksum.
pub fn read_end(tail: &[u8]) -> Option<RunFileEnd> {
    let last = tail.len().checked_sub(FRAME_HEAD_BYTES + FRAME_TAIL_BYTES)?;
    let ends_there = |at: &usize| {
        let length = u32::from_le_bytes([tail[*at], tail[at + 1], tail[at + 2], tail[at + 3]]) as usize;
        tail[at + 4] == KIND_EXPERIMENT_END && at + FRAME_HEAD_BYTES + length + FRAME_TAIL_BYTES == tail.len()
    };
    let at = (0..=last).rev().filter(ends_there).find(|at| next_frame(tail, *at).is_some())?;
    let (kind, payload, _) = next_frame(tail, at)?;
    match Frame::decode(kind, payload)? {
        (Frame::ExperimentEnd { elapsed_ns, summary }, _) if elapsed_ns <= TIME_NS_MAX => {
            Some(RunFileEnd { elapsed_ns, summary: summary.filter(|summary| summary.is_within_limits()) })
        }
        _ => None,
    }
}

/// Returns the frame at offset `at`: its kind, its payload, and the offset of the next frame.
/// `None` means that the frame is incomplete, or that its checksum is wrong.
fn next_frame(bytes: &[u8], at: usize) -> Option<(u8, &[u8], usize)> {
    let head = bytes.get(at..at + FRAME_HEAD_BYTES)?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    if length > PAYLOAD_MAX {
        return None;
    }
    let end = at + FRAME_HEAD_BYTES + length;
    let tail = bytes.get(end..end + FRAME_TAIL_BYTES)?;
    let checksum = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
    (crc32fast::hash(&bytes[at + 4..end]) == checksum)
        .then(|| (head[4], &bytes[at + FRAME_HEAD_BYTES..end], end + FRAME_TAIL_BYTES))
}

/// The error for bytes that are no valid frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("damaged, or of another version")]
pub struct InvalidFrame;

/// Reads the first frame of a stream of bytes. Returns the frame and its length in bytes; `None`
/// means that the frame is not complete yet. The numbers of a load's frames are checked against
/// [`crate::bounds`]. The other frames ([`Frame::Experiment`], [`Frame::Event`],
/// [`Frame::ExperimentEnd`]) are not checked.
pub fn read_first_frame(bytes: &[u8]) -> Result<Option<(Frame, usize)>, InvalidFrame> {
    let Some(head) = bytes.get(..FRAME_HEAD_BYTES) else { return Ok(None) };
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    if length > PAYLOAD_MAX {
        return Err(InvalidFrame);
    }
    if bytes.len() < FRAME_HEAD_BYTES + length + FRAME_TAIL_BYTES {
        return Ok(None);
    }
    let (kind, payload, next) = next_frame(bytes, 0).ok_or(InvalidFrame)?;
    let (frame, _) = Frame::decode(kind, payload).ok_or(InvalidFrame)?;
    let is_within_limits = match &frame {
        Frame::Interval { interval, .. } => interval.is_within_limits(),
        Frame::Probes(probes) => probes.is_within_limits(),
        Frame::Sampled(sampled) => sampled.is_within_limits(is_valid_schedule_time),
        Frame::Agents(agents) => are_accounts_within_limits(agents),
        Frame::TrialStart { plan, injectors, start_ns, .. } => {
            plan.is_within_limits() && Injector::are_within_limits(injectors) && *start_ns <= TIME_NS_MAX
        }
        Frame::TrialEnd { window_ns, failed_answers, .. } => {
            window_ns.0.max(window_ns.1) <= TIME_NS_MAX
                && failed_answers.len() <= KINDS_MAX
                && failed_answers.iter().all(|answer| answer.at_ns <= TIME_NS_MAX)
        }
        Frame::Experiment(_) | Frame::Event(_) | Frame::ExperimentEnd { .. } => true,
    };
    if is_within_limits { Ok(Some((frame, next))) } else { Err(InvalidFrame) }
}

fn are_accounts_within_limits(agents: &[AgentAccount]) -> bool {
    agents.len() <= INJECTORS_MAX && agents.iter().all(AgentAccount::is_within_limits)
}

fn experiment_from_header(header: RunFileHeader) -> Experiment {
    Experiment {
        spec: header.spec,
        started_unix_ms: header.started_unix_ms,
        command: header.command,
        settings: header.settings,
        environment: header.environment,
        start_notes: header.start_notes,
        trials: Vec::new(),
        events: Vec::new(),
        elapsed_ns: None,
    }
}

/// Adds a frame to the experiment. Returns false if plimsoll never writes the frame at this
/// position, or if a number in the frame is out of range ([`crate::bounds`]).
fn add_frame(experiment: &mut Experiment, frame: Frame) -> bool {
    if let (Frame::TrialEnd { start_ns, .. }, Some(trial)) = (&frame, experiment.trials.last_mut())
        && *start_ns <= TIME_NS_MAX
    {
        trial.start_ns = *start_ns;
    }
    let latest = experiment.trials.last_mut().map(|trial| &mut trial.run);
    match (frame, latest) {
        (Frame::TrialStart { tag, start_ns, plan, injectors }, _)
            if plan.is_within_limits() && Injector::are_within_limits(&injectors) && start_ns <= TIME_NS_MAX =>
        {
            let mut run = Run { injectors, ..Run::new(*plan) };
            // Until the frame with the end of the load is read, the measured window grows with the
            // intervals.
            run.window_ns = (run.plan.load.warmup_ns, run.plan.load.warmup_ns);
            experiment.trials.push(Trial { tag, start_ns, run });
        }
        (Frame::Interval { index, interval }, Some(run))
            if run.accepts_interval(index) && interval.is_within_limits() =>
        {
            let end_ns = (u64::from(index) + 1).saturating_mul(run.plan.load.interval_ns);
            let measured_end_ns =
                run.plan.load.duration_ns.map_or(u64::MAX, |ns| ns.saturating_add(run.plan.load.warmup_ns));
            run.window_ns.1 = run.window_ns.1.max(end_ns.min(measured_end_ns));
            run.intervals.entry(index).and_modify(|mine| mine.merge_after(&interval)).or_insert(*interval);
        }
        (Frame::Probes(probes), Some(run)) if probes.is_within_limits() => run.probes.merge(&probes),
        (Frame::Sampled(sampled), Some(run)) if sampled.is_within_limits(is_valid_schedule_time) => {
            run.probes.sampled.merge(&sampled)
        }
        (Frame::Agents(agents), Some(run)) if are_accounts_within_limits(&agents) => run.agents = agents,
        (Frame::TrialEnd { ending, window_ns, start_ns: _, addresses, failed_answers }, Some(run))
            if run.accepts_window(window_ns)
                && failed_answers.len() <= KINDS_MAX
                && failed_answers.iter().all(|answer| answer.at_ns <= TIME_NS_MAX) =>
        {
            run.ending = Some(ending);
            run.failed_answers = failed_answers;
            run.window_ns = window_ns;
            run.plan.connection_plan.addresses = addresses;
        }
        (Frame::Event(event), _) => experiment.events.push(event),
        (Frame::ExperimentEnd { elapsed_ns, summary: _ }, _) if elapsed_ns <= TIME_NS_MAX => {
            experiment.elapsed_ns = Some(elapsed_ns)
        }
        _ => return false,
    }
    true
}

/// Completes the ledger (request outcomes) of a recording that was cut off: requests without an
/// outcome count as in flight.
fn complete_ledger(run: &mut Run) {
    if run.ending.is_some() {
        return;
    }
    // The requests in flight are added route by route, because each route's ledger must be
    // complete, and not just the ledger of the whole load.
    let mut sums: BTreeMap<RouteNumber, Ledger> = BTreeMap::new();
    for (route, figures) in run.intervals.values().flat_map(|interval| interval.routes.iter()) {
        sums.entry(route).or_default().merge(&figures.ledger);
    }
    let Some(mut last) = run.intervals.last_entry() else { return };
    for (route, sum) in sums {
        let in_flight = &mut last.get_mut().routes.figures_mut(route).ledger.in_flight;
        *in_flight = in_flight.saturating_add(sum.requests_without_outcome());
    }
}

/// Encodes an experiment as a whole run file.
pub fn encode(experiment: &Experiment) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let header = RunFileHeader {
        spec: experiment.spec.clone(),
        started_unix_ms: experiment.started_unix_ms,
        command: experiment.command.clone(),
        settings: experiment.settings.clone(),
        environment: experiment.environment.clone(),
        start_notes: experiment.start_notes.clone(),
    };
    Frame::Experiment(Box::new(header)).encode(&mut out);
    for trial in &experiment.trials {
        let plan = Box::new(trial.run.plan.clone());
        let injectors = trial.run.injectors.clone();
        Frame::TrialStart { tag: trial.tag, start_ns: trial.start_ns, plan, injectors }.encode(&mut out);
        for (index, interval) in &trial.run.intervals {
            Frame::Interval { index: *index, interval: Box::new(interval.clone()) }.encode(&mut out);
        }
        Frame::probe_frames(trial.run.probes.clone()).for_each(|frame| frame.encode(&mut out));
        if !trial.run.agents.is_empty() {
            Frame::Agents(trial.run.agents.clone()).encode(&mut out);
        }
        if let Some(ending) = trial.run.ending.clone() {
            let addresses = trial.run.plan.connection_plan.addresses.clone();
            let (window_ns, start_ns) = (trial.run.window_ns, trial.start_ns);
            let failed_answers = trial.run.failed_answers.clone();
            Frame::TrialEnd { ending, window_ns, start_ns, addresses, failed_answers }.encode(&mut out);
        }
    }
    for event in &experiment.events {
        Frame::Event(event.clone()).encode(&mut out);
    }
    if let Some(elapsed_ns) = experiment.elapsed_ns {
        Frame::ExperimentEnd { elapsed_ns, summary: None }.encode(&mut out);
    }
    out
}
