//! The byte format of messages between agents and their coordinator. Each message is one frame:
//! length, kind, body and checksum.
//!
//! ```text
//! stream = greeting (8 bytes: "PLIMFLT", version 1) frame*
//! frame  = length of body (u32 LE)  kind (u8)  body  CRC-32 of kind and body (u32 LE)
//! body   = 1: a message as JSON
//!          2: length of head (u32 LE)  a task as JSON  its plan as bytes
//!          3: epoch (u64 LE)  sequence (u64 LE)  an interval as a frame of a run file
//!          4: sample request (u32 LE)  CPU use of the server, thousandths of a core (u32 LE; all
//!             ones: unknown)
//!             readings as frames of a run file
//! ```
//!
//! A reader allocates memory only for bytes that have arrived. Invalid bytes give an error. Not
//! here: the order of messages (`agent`, `coordinator`).

use crate::message::{AgentLoadTask, ToAgent, ToCoordinator};
use plimsoll_model::{Probes, codec};
use serde::Serialize;

/// The first bytes that each peer sends on a connection. The last byte is the version of the
/// protocol.
pub const PROTOCOL_GREETING: [u8; 8] = *b"PLIMFLT\x01";
/// The longest body of a message to a coordinator, bytes (16 MiB). Even the measurements of a tick
/// (100 ms) with thousands of routes need fewer bytes.
pub const TO_COORDINATOR_BYTES_MAX: usize = 16 << 20;
/// The longest body of a message to an agent, bytes (512 MiB). The largest message is a plan with
/// its request bodies.
pub const TO_AGENT_BYTES_MAX: usize = 512 << 20;
const FRAME_HEAD_BYTES: usize = 5;
const FRAME_TAIL_BYTES: usize = 4;
const KIND_JSON_MESSAGE: u8 = 1;
const KIND_TASK: u8 = 2;
const KIND_TICK: u8 = 3;
const KIND_READINGS: u8 = 4;

/// The reason why bytes are not a valid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The stream does not begin with the greeting of plimsoll.
    #[error("the program there is not a plimsoll agent")]
    NoGreeting,
    /// The peer and this plimsoll use different versions of the protocol. The values are the peer's
    /// protocol version and this program's protocol version.
    #[error(
        "the plimsoll there uses version {0} of the fleet protocol, and this plimsoll uses version {1}: install the same \
         plimsoll on both machines"
    )]
    OtherVersion(u8, u8),
    /// The body of a message is longer than the limit; the value is its length in bytes.
    #[error("a message of {0} bytes exceeds the maximum length")]
    TooLong(usize),
    /// The checksum of a message is wrong, or its content is invalid.
    #[error("a message is damaged")]
    Damaged,
}

fn append_frame(out: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEAD_BYTES]);
    write(out);
    let length = (out.len() - start - FRAME_HEAD_BYTES) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4] = kind;
    let checksum = crc32fast::hash(&out[start + 4..]);
    out.extend_from_slice(&checksum.to_le_bytes());
}

fn append_json<T: Serialize>(out: &mut Vec<u8>, value: &T) {
    // Serialising plain structs of numbers and strings into memory cannot fail.
    serde_json::to_writer(out, value).unwrap_or_else(|error| unreachable!("a message serialises: {error}"));
}

impl ToAgent {
    /// Appends the message to `out` as a frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            ToAgent::Prepare(task) => append_frame(out, KIND_TASK, |out| {
                let start = out.len();
                out.extend_from_slice(&[0; 4]);
                append_json(out, task);
                let length = (out.len() - start - 4) as u32;
                out[start..start + 4].copy_from_slice(&length.to_le_bytes());
                out.extend_from_slice(&task.plan);
            }),
            words => append_frame(out, KIND_JSON_MESSAGE, |out| append_json(out, words)),
        }
    }

    fn decode(kind: u8, body: &[u8]) -> Option<ToAgent> {
        match kind {
            KIND_JSON_MESSAGE => serde_json::from_slice(body).ok(),
            KIND_TASK => {
                let (length, rest) = body.split_first_chunk::<4>()?;
                let (head, plan) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
                let task = AgentLoadTask { plan: plan.to_vec(), ..serde_json::from_slice(head).ok()? };
                task.schedule_stripe().is_some().then(|| ToAgent::Prepare(Box::new(task)))
            }
            _ => None,
        }
    }
}

impl ToCoordinator {
    /// Appends the message to `out` as a frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            ToCoordinator::Tick { epoch, sequence, index, interval } => append_frame(out, KIND_TICK, |out| {
                out.extend_from_slice(&epoch.to_le_bytes());
                out.extend_from_slice(&sequence.to_le_bytes());
                codec::Frame::Interval { index: *index, interval: interval.clone() }.encode(out);
            }),
            ToCoordinator::Readings { sample, live_milli, probes } => append_frame(out, KIND_READINGS, |out| {
                out.extend_from_slice(&sample.to_le_bytes());
                out.extend_from_slice(&live_milli.unwrap_or(u32::MAX).to_le_bytes());
                codec::Frame::probe_frames(Probes::clone(probes)).for_each(|frame| frame.encode(out));
            }),
            words => append_frame(out, KIND_JSON_MESSAGE, |out| append_json(out, words)),
        }
    }

    fn decode(kind: u8, body: &[u8]) -> Option<ToCoordinator> {
        let message = match kind {
            KIND_JSON_MESSAGE => serde_json::from_slice(body).ok()?,
            KIND_TICK => {
                let (epoch, rest) = body.split_first_chunk::<8>()?;
                let (sequence, rest) = rest.split_first_chunk::<8>()?;
                let (epoch, sequence) = (u64::from_le_bytes(*epoch), u64::from_le_bytes(*sequence));
                match codec::read_first_frame(rest) {
                    Ok(Some((codec::Frame::Interval { index, interval }, length))) if length == rest.len() => {
                        ToCoordinator::Tick { epoch, sequence, index, interval }
                    }
                    _ => return None,
                }
            }
            KIND_READINGS => {
                let (sample, rest) = body.split_first_chunk::<4>()?;
                let (live_milli, rest) = rest.split_first_chunk::<4>()?;
                let live_milli = Some(u32::from_le_bytes(*live_milli)).filter(|milli| *milli != u32::MAX);
                let probes = Box::new(decode_probes(rest)?);
                ToCoordinator::Readings { sample: u32::from_le_bytes(*sample), live_milli, probes }
            }
            _ => return None,
        };
        message.sanitize()
    }
}

/// Decodes readings from frames of a run file. Returns `None` if a frame is damaged or contains
/// anything other than readings.
fn decode_probes(mut rest: &[u8]) -> Option<Probes> {
    let mut probes = Probes::default();
    while !rest.is_empty() {
        let (frame, length) = codec::read_first_frame(rest).ok()??;
        match frame {
            codec::Frame::Probes(read) => probes.merge(&read),
            codec::Frame::Sampled(sampled) => probes.sampled.merge(&sampled),
            _ => return None,
        }
        rest = rest.get(length..)?;
    }
    Some(probes)
}

/// A message that can be decoded from a frame: [`ToAgent`] or [`ToCoordinator`].
pub trait FleetMessage: Sized {
    /// The longest accepted body of a frame, bytes.
    const BYTES_MAX: usize;

    /// Decodes the message from the kind and body of a complete frame. Returns `None` if the
    /// content of the frame is invalid.
    fn read(kind: u8, body: &[u8]) -> Option<Self>;
}

impl FleetMessage for ToAgent {
    const BYTES_MAX: usize = TO_AGENT_BYTES_MAX;

    fn read(kind: u8, body: &[u8]) -> Option<ToAgent> {
        ToAgent::decode(kind, body)
    }
}

impl FleetMessage for ToCoordinator {
    const BYTES_MAX: usize = TO_COORDINATOR_BYTES_MAX;

    fn read(kind: u8, body: &[u8]) -> Option<ToCoordinator> {
        ToCoordinator::decode(kind, body)
    }
}

/// Decodes messages from a stream whose bytes arrive in pieces of any length.
#[derive(Debug, Default)]
pub struct MessageReader {
    bytes: Vec<u8>,
    is_greeting_read: bool,
}

impl MessageReader {
    /// Adds bytes that were received.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Decodes the next complete message. `None` means that more bytes are needed.
    pub fn read_next<M: FleetMessage>(&mut self) -> Result<Option<M>, FrameError> {
        if !self.is_greeting_read {
            let version = PROTOCOL_GREETING.len() - 1;
            if self.bytes.iter().zip(PROTOCOL_GREETING).take(version).any(|(came, greeting)| *came != greeting) {
                return Err(FrameError::NoGreeting);
            }
            match self.bytes.get(version) {
                None => return Ok(None),
                Some(theirs) if *theirs != PROTOCOL_GREETING[version] => {
                    return Err(FrameError::OtherVersion(*theirs, PROTOCOL_GREETING[version]));
                }
                Some(_) => {}
            }
            self.bytes.drain(..PROTOCOL_GREETING.len());
            self.is_greeting_read = true;
        }
        let Some(head) = self.bytes.first_chunk::<FRAME_HEAD_BYTES>() else { return Ok(None) };
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if length > M::BYTES_MAX {
            return Err(FrameError::TooLong(length));
        }
        let end = FRAME_HEAD_BYTES + length;
        let Some(tail) = self.bytes.get(end..end + FRAME_TAIL_BYTES) else { return Ok(None) };
        let checksum = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
        if crc32fast::hash(&self.bytes[4..end]) != checksum {
            return Err(FrameError::Damaged);
        }
        let message = M::read(head[4], &self.bytes[FRAME_HEAD_BYTES..end]).ok_or(FrameError::Damaged)?;
        self.bytes.drain(..end + FRAME_TAIL_BYTES);
        Ok(Some(message))
    }
}

/// Encodes one message as a complete stream: the greeting and one frame.
pub fn encode_single_message_stream(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = PROTOCOL_GREETING.to_vec();
    encode(&mut bytes);
    bytes
}

/// Decodes a complete stream with exactly one message.
pub fn decode_single_message_stream<M: FleetMessage>(bytes: Vec<u8>) -> Result<M, FrameError> {
    let mut reader = MessageReader { bytes, is_greeting_read: false };
    let message = reader.read_next()?.ok_or(FrameError::Damaged)?;
    if reader.bytes.is_empty() { Ok(message) } else { Err(FrameError::Damaged) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{AgentPhase, CalibrationTask, Hello, PartTotals, TaskSignature, WatchTask};
    use plimsoll_model::machine_facts::SelfMeasurement;
    use plimsoll_model::{Injector, Interval, Ledger, Series, SeriesKind, SeriesSample, Spin};
    use proptest::prelude::*;

    fn example_messages_to_agents() -> Vec<ToAgent> {
        let task = AgentLoadTask {
            epoch: 3,
            share_index: 1,
            share_count: 3,
            weights: vec![2, 1, 1],
            workers: Some(2),
            spin: Spin::Off,
            preflight: true,
            signature: Some(TaskSignature { expires_unix_s: 5, signature: "00".to_owned() }),
            plan: vec![7; 999],
        };
        vec![
            ToAgent::Ping { number: 4 },
            ToAgent::Prepare(Box::new(task)),
            ToAgent::Start { epoch: 3, origin_ns: u64::MAX, length_ns_max: 5 },
            ToAgent::Lease,
            ToAgent::Commit { epoch: 3, sequence: 9 },
            ToAgent::Stop { epoch: 3 },
            ToAgent::Leave,
            ToAgent::Watch(WatchTask {
                addresses: vec![([10, 0, 0, 1], 80).into()],
                pid: Some(7),
                process: None,
                cgroup: None,
                thorough: true,
            }),
            ToAgent::Sample { number: 5 },
            ToAgent::Calibrate(CalibrationTask { number: 2, signature: None }),
        ]
    }

    fn example_messages_to_coordinator() -> Vec<ToCoordinator> {
        let mut interval = Interval::default();
        interval.routes.figures_mut(0).ledger.scheduled = 7;
        let measured =
            SelfMeasurement { highest_rps: 5.5, cpu_us: 0.0, rate_rps: 5.0, lag_p99_ns: 6, disturbance: None };
        let seal = PartTotals {
            ticks: 8,
            ledger: Ledger { scheduled: 7, ..Ledger::default() },
            window_end_ns: 9,
            failed_answers: Vec::new(),
            has_no_more_requests: false,
            failure_reason: Some("a thread".to_owned()),
        };
        vec![
            ToCoordinator::Hello(Hello {
                version: "0.1.0".to_owned(),
                cores: 4,
                pid: 7,
                system: "x".to_owned(),
                machine: "0af3".to_owned(),
            }),
            ToCoordinator::Pong { number: 1, agent_ns: 2 },
            ToCoordinator::Ready { epoch: 1, injector: Injector::default(), fitted: vec!["less".to_owned()] },
            ToCoordinator::Refused { epoch: 1, reason: "no".to_owned() },
            ToCoordinator::Beat { epoch: 1, phase: AgentPhase::Running },
            ToCoordinator::Tick { epoch: 1, sequence: 2, index: 3, interval: Box::new(interval) },
            ToCoordinator::Seal { epoch: 1, sequence: 3, seal },
            ToCoordinator::Calibrated { number: 2, result: Ok(measured) },
            ToCoordinator::Calibrated { number: 2, result: Err("no".to_owned()) },
            ToCoordinator::Watching(Err("no process listens".to_owned())),
            ToCoordinator::Watching(Ok(())),
            ToCoordinator::Readings {
                sample: 5,
                live_milli: Some(1_500),
                probes: Box::new(probes_with_series("server.cpu", "ns")),
            },
            ToCoordinator::Readings { sample: 0, live_milli: None, probes: Box::default() },
        ]
    }

    fn probes_with_series(name: &str, unit: &str) -> Probes {
        let mut series = Series::new(SeriesKind::Counter, unit);
        series.push(SeriesSample { at_ns: 86_400_000_000_000, value: 5e6 });
        let mut probes = Probes { missing: vec!["it has too many threads".to_owned()], cpu_ns: 3, ..Probes::default() };
        probes.series.insert(name.to_owned(), series);
        probes.sampled.missing_reason = Some("the kernel permits it to root only".to_owned());
        probes
    }

    #[test]
    fn readings_of_unknown_probes_are_refused() {
        let read = |probes: Probes| {
            let mut bytes = PROTOCOL_GREETING.to_vec();
            ToCoordinator::Readings { sample: 0, live_milli: None, probes: Box::new(probes) }.encode(&mut bytes);
            read_all::<ToCoordinator>(&bytes, 64)
        };
        assert!(read(probes_with_series("server.cpu", "ns")).is_ok());
        // Readings of an unknown series, of a series with a wrong unit, and of series that only the
        // generator's machine can measure are refused.
        for (name, unit) in
            [("server.soul", "ns"), ("server.cpu", ""), ("generator.client.cpu", "ns"), ("metrics.up", "")]
        {
            assert_eq!(read(probes_with_series(name, unit)), Err(FrameError::Damaged), "{name}");
        }
        let named = Probes { host: Some("another".to_owned()), ..probes_with_series("server.cpu", "ns") };
        let read = read(named).expect("readings");
        let [ToCoordinator::Readings { probes, .. }] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!(probes.host, None, "who it is the user has said");
    }

    fn read_all<M: FleetMessage>(bytes: &[u8], piece: usize) -> Result<Vec<M>, FrameError> {
        let (mut reader, mut all) = (MessageReader::default(), Vec::new());
        for part in bytes.chunks(piece.max(1)) {
            reader.push(part);
            while let Some(message) = reader.read_next()? {
                all.push(message);
            }
        }
        Ok(all)
    }

    #[test]
    fn messages_decode_from_any_split() {
        let (mut there, mut back) = (PROTOCOL_GREETING.to_vec(), PROTOCOL_GREETING.to_vec());
        example_messages_to_agents().iter().for_each(|message| message.encode(&mut there));
        example_messages_to_coordinator().iter().for_each(|message| message.encode(&mut back));
        for piece in [1, 2, 7, 64, 1 << 20] {
            assert_eq!(read_all(&there, piece), Ok(example_messages_to_agents()), "{piece}");
            assert_eq!(read_all(&back, piece), Ok(example_messages_to_coordinator()), "{piece}");
        }
    }

    #[test]
    fn invalid_message_streams_are_refused() {
        let mut whole = PROTOCOL_GREETING.to_vec();
        ToAgent::Lease.encode(&mut whole);
        let changed = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            bytes
        };
        for (bytes, error) in [
            (b"bash: plimsoll: command not found\n".to_vec(), FrameError::NoGreeting),
            (changed(7, 9), FrameError::OtherVersion(9, 1)),
            (changed(11, 0xff), FrameError::TooLong(0xff00_0007)),
            (changed(14, b'#'), FrameError::Damaged),
        ] {
            assert_eq!(read_all::<ToAgent>(&bytes, 3), Err(error));
        }
        // Frames with a correct length and checksum are refused, too, if their content is invalid.
        for (kind, body) in [(9, &b"{}"[..]), (1, b"{\"shoot\":1}"), (2, b"\xff\xff\xff\xff{}"), (3, b"short")] {
            let mut bytes = PROTOCOL_GREETING.to_vec();
            append_frame(&mut bytes, kind, |out| out.extend_from_slice(body));
            assert_eq!(read_all::<ToAgent>(&bytes, 64), Err(FrameError::Damaged), "{kind}");
            assert_eq!(read_all::<ToCoordinator>(&bytes, 64), Err(FrameError::Damaged), "{kind}");
        }
    }

    #[test]
    fn single_message_streams_reject_missing_or_extra_bytes() {
        for message in example_messages_to_coordinator() {
            let bytes = encode_single_message_stream(|out| message.encode(out));
            assert_eq!(decode_single_message_stream(bytes.clone()), Ok(message));
            let cut = bytes[..bytes.len() - 1].to_vec();
            let longer = [bytes, vec![0]].concat();
            for wrong in [cut, longer] {
                assert_eq!(decode_single_message_stream::<ToCoordinator>(wrong), Err(FrameError::Damaged));
            }
        }
    }

    #[test]
    fn text_of_other_machines_is_sanitized() {
        let reason = format!("\u{1b}[31mno\n{}", "x".repeat(5_000));
        let mut bytes = PROTOCOL_GREETING.to_vec();
        ToCoordinator::Refused { epoch: 1, reason }.encode(&mut bytes);
        let read = read_all::<ToCoordinator>(&bytes, 64).expect("read");
        let [ToCoordinator::Refused { reason, .. }] = read.as_slice() else { panic!("{read:?}") };
        assert!(reason.len() <= 400 && !reason.contains(['\u{1b}', '\n']), "{reason}");
    }

    proptest! {
        #[test]
        fn any_frame_bytes_are_messages_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..60) {
            let mut stream = PROTOCOL_GREETING.to_vec();
            example_messages_to_coordinator().iter().for_each(|message| message.encode(&mut stream));
            let at = at.min(stream.len());
            stream.splice(at..(at + bytes.len()).min(stream.len()), bytes);
            for piece in [1, 33] {
                let _ = read_all::<ToCoordinator>(&stream, piece);
                let _ = read_all::<ToAgent>(&stream, piece);
            }
        }
    }
}
