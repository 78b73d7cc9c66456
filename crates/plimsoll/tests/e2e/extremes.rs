//! Tests extreme files: run files with valid frames and absurd numbers, and endless files. Every
//! command must show valid data or name the problem, within little memory and time.

use crate::test_support::{
    COMMAND_DURATION_MAX, CommandOutcome, create_new_folder, plimsoll, slow_server, start_baseline, wait_for_exit,
};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs the binary with its address space limited to this number of MiB.
fn run_with_memory_limit(mebibytes: u32, arguments: &[&str], work: &Path) -> CommandOutcome {
    let line = format!("ulimit -v {}; exec \"$0\" \"$@\"", mebibytes << 10);
    let mut shell = Command::new("sh");
    shell.args(["-c", &line, env!("CARGO_BIN_EXE_plimsoll")]).args(arguments).current_dir(work);
    wait_for_exit(shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell"))
}

/// A random number generator (splitmix64) that is independent of the tested code.
struct SplitMixRng(u64);

impl SplitMixRng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn random_below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Computes a CRC-32, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0u32, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

/// Splits a run file into frames: kind and payload.
pub fn frames(bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut out = Vec::new();
    let mut at = 8;
    while at + 9 <= bytes.len() {
        let length = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
        out.push((bytes[at + 4], bytes[at + 5..at + 5 + length].to_vec()));
        at += 9 + length;
    }
    out
}

pub fn join_frames(frames: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut out = b"PLIMSOL\x03".to_vec();
    for (kind, payload) in frames {
        out.extend((payload.len() as u32).to_le_bytes());
        let start = out.len();
        out.push(*kind);
        out.extend(payload);
        out.extend(checksum(&out[start..]).to_le_bytes());
    }
    out
}

const EXTREMES: [u64; 10] =
    [0, 1, 1 << 31, (1 << 32) - 1, 1 << 36, 1 << 40, 1 << 53, i64::MAX as u64, 1 << 63, u64::MAX];

fn collect_numbers<'a>(value: &'a mut Value, out: &mut Vec<&'a mut Value>) {
    match value {
        Value::Number(_) => out.push(value),
        Value::Array(items) => items.iter_mut().for_each(|item| collect_numbers(item, out)),
        Value::Object(fields) => fields.values_mut().for_each(|field| collect_numbers(field, out)),
        _ => {}
    }
}

/// Replaces one number of a JSON text by an extreme number.
fn put_extreme_number_into_json(json: &mut Vec<u8>, rng: &mut SplitMixRng) {
    let mut value: Value = serde_json::from_slice(json).expect("JSON");
    let mut places = Vec::new();
    collect_numbers(&mut value, &mut places);
    if places.is_empty() {
        return;
    }
    let at = rng.random_below(places.len());
    *places[at] = match rng.random_below(14) {
        10 => (-1).into(),
        11 => 1e308.into(),
        12 => 1e-300.into(),
        13 => (-1e18).into(),
        at => EXTREMES[at].into(),
    };
    *json = serde_json::to_vec(&value).expect("JSON");
}

/// Returns the start of each integer of variable length (varint), and the end of the last integer.
pub fn varint_positions(bytes: &[u8]) -> Vec<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte < 0x80).map(|(at, _)| at + 1);
    std::iter::once(0).chain(ends).collect()
}

fn put_extreme_number_into_packed(bytes: &mut Vec<u8>, rng: &mut SplitMixRng) {
    let places = varint_positions(bytes);
    // Half of the changes go to the first numbers of a frame, which are counters; most later
    // numbers belong to histograms.
    let reach = if rng.random_below(2) == 0 { places.len().min(14) } else { places.len() };
    let at = rng.random_below(reach.saturating_sub(1));
    let Some(end) = places.get(at + 1).copied() else { return };
    bytes.splice(places[at]..end, varint_bytes(EXTREMES[rng.random_below(EXTREMES.len())]));
}

/// Splits a message into its tagged fields. Returns for each field the tag, and the start and end
/// of the field's value.
fn tagged_field_ranges(bytes: &[u8]) -> Vec<(u64, usize, usize)> {
    let number = |at: &mut usize| {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = bytes[*at];
            *at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    };
    let (mut at, mut out) = (0, Vec::new());
    while at < bytes.len() {
        let tag = number(&mut at);
        let length = number(&mut at) as usize;
        out.push((tag, at, at + length));
        at += length;
    }
    out
}

fn varint_bytes(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

/// Replaces a number in one field by an extreme number. In a tick (the figures of one interval),
/// the number is a figure of the load (tag 2) or of a route (tag 3). The lengths of the fields stay
/// correct.
fn put_extreme_number_into_field(bytes: &mut Vec<u8>, rng: &mut SplitMixRng, depth: usize) {
    let all = tagged_field_ranges(bytes);
    if all.is_empty() {
        return;
    }
    let chosen = rng.random_below(all.len());
    let mut out = Vec::new();
    for (at, (tag, from, to)) in all.into_iter().enumerate() {
        let mut value = bytes[from..to].to_vec();
        match (at == chosen, depth, tag) {
            (false, ..) => {}
            (true, 2, 2) => put_extreme_number_into_field(&mut value, rng, 1),
            (true, 2, 3) => {
                let mut figures = value.split_off(varint_positions(&value)[1]);
                put_extreme_number_into_field(&mut figures, rng, 1);
                value.extend(figures);
            }
            _ => put_extreme_number_into_packed(&mut value, rng),
        }
        out.extend(varint_bytes(tag));
        out.extend(varint_bytes(value.len() as u64));
        out.extend(value);
    }
    *bytes = out;
}

fn put_extreme_number_into_frame(frames: &mut [(u8, Vec<u8>)], rng: &mut SplitMixRng) {
    let at = rng.random_below(frames.len());
    let (kind, payload) = &mut frames[at];
    match kind {
        3 => put_extreme_number_into_field(payload, rng, 2),
        6 => {
            let head = varint_positions(payload)[1];
            let length = payload[..head].iter().rev().fold(0usize, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
            let mut rest = payload.split_off(head + length);
            put_extreme_number_into_packed(&mut rest, rng);
            payload.extend(rest);
        }
        _ => put_extreme_number_into_json(payload, rng),
    }
}

#[test]
fn extreme_numbers_are_refused_or_shown() {
    let server = slow_server();
    let url = server.url("/healthz");
    let work = create_new_folder("extremes");
    let named = |name: &str| work.join(name).display().to_string();
    let (run, find, prove) = (named("run.plimsoll"), named("find.plimsoll"), named("prove.plimsoll"));
    plimsoll(&["run", &url, "-c", "2", "-d", "500ms", "-q", "-o", &run]);
    plimsoll(&["sweep", &url, "-c", "1,2", "--for", "300ms", "-q", "--dir", work.to_str().expect("text")]);
    plimsoll(&["find", &url, "--budget", "3s", "--spin=off", "-q", "-o", &find]);
    plimsoll(&["prove", &url, &url, "--budget", "3s", "--spin=off", "-q", "-o", &prove]);
    let strained = named("strained.plimsoll");
    let page = named("strained.html");
    let commands: [&[&str]; 9] = [
        &["show", &strained],
        &["show", "--json", &strained],
        &["show", "--csv", &strained],
        &["show", "--probes", &strained],
        &["report", &strained, "-o", &page],
        &["report", &strained, "--format", "md"],
        &["report", &strained, "--format", "svg"],
        &["report", &strained, "--format", "junit"],
        &["diff", &strained, &run],
    ];
    let seed = std::env::var("PLIMSOLL_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let rounds = std::env::var("PLIMSOLL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let mut draw = SplitMixRng(seed);
    for (number, file) in [&run, &named("sweep.plimsoll"), &find, &prove].into_iter().enumerate() {
        let whole = frames(&std::fs::read(file).expect("a run file"));
        assert_eq!(join_frames(&whole), std::fs::read(file).expect("a run file"), "this test knows the format");
        for round in 0..rounds {
            let mut frames = whole.clone();
            for _ in 0..=draw.random_below(2) {
                // Half of the changes go to the first frames: the experiment's specification and
                // the plan.
                let end = if draw.random_below(2) == 0 { 2.min(frames.len()) } else { frames.len() };
                put_extreme_number_into_frame(&mut frames[..end], &mut draw);
            }
            std::fs::write(&strained, join_frames(&frames)).expect("written");
            let command = commands[(round + number) % commands.len()];
            let began = Instant::now();
            let done = run_with_memory_limit(2048, command, &work);
            let what = format!("seed {seed}, {command:?} of {file}, round {round}: {}", done.stderr);
            assert!((0..=2).contains(&done.code) && !done.stderr.contains("panicked"), "code {} {what}", done.code);
            assert!(began.elapsed() < COMMAND_DURATION_MAX / 4, "{:?} {what}", began.elapsed());
        }
    }
}

#[test]
fn endless_files_are_refused_in_one_sentence() {
    let server = start_baseline(1);
    let url = server.url.replace("http://", "https://");
    let plain = format!("{}/healthz", server.url);
    let work = create_new_folder("endless");
    for arguments in [
        &["show", "/dev/full"][..],
        &["show", "/dev/zero"],
        &["report", "/dev/zero"],
        &["rerun", "/dev/zero"],
        &["diff", "/dev/zero", "/dev/zero"],
        &["profile", "/dev/zero"],
        &["run", &plain, "--body", "@/dev/zero"],
        &["run", &url, "--cacert", "/dev/zero"],
        &["run", &url, "--cert", "/dev/zero"],
        &["show", "."],
    ] {
        let began = Instant::now();
        let done = run_with_memory_limit(1024, arguments, &work);
        assert_eq!((done.code, done.stderr.lines().count()), (2, 1), "{arguments:?}: {} {}", done.stdout, done.stderr);
        assert!(began.elapsed() < COMMAND_DURATION_MAX / 4, "{arguments:?}: {:?}", began.elapsed());
    }
    // A pipe that contains a run file is read like a file.
    let kept = work.join("kept.plimsoll").display().to_string();
    plimsoll(&["run", &plain, "-n", "20", "-q", "-o", &kept]);
    let pipe = work.join("pipe").display().to_string();
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    for command in ["show", "report", "diff"] {
        let mut writer = Command::new("cp").args([&kept, &pipe]).spawn().expect("cp");
        let rest: &[&str] = if command == "diff" { &[&kept] } else { &[] };
        let rest = if command == "report" { &["--format", "md"] } else { rest };
        let done = run_with_memory_limit(1024, &[&[command, pipe.as_str()], rest].concat(), &work);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{command}");
        writer.wait().expect("ends");
    }
}
