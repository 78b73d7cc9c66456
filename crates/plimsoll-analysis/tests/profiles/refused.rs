//! Tests that bytes that are no complete profile are refused, and that the error says why.

use super::encode::{EncodingChoices, PlainProfile, PlainSample, encode_bytes_field, encode_profile, encode_varint};
use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_analysis::profile::{ReadLimits, read, read_within_limits};
use std::fs;
use std::io::Write;
use std::path::Path;

fn check(input: &[u8], said: &str) {
    let error = read(input).expect_err(said).to_string();
    assert!(error.contains(said), "{error:?} does not say {said:?}");
}

#[test]
fn bytes_without_a_profile_are_refused() {
    check(b"", "empty");
    check(b" \n", "empty");
    check(b"PERFILE2....", "perf script");
    check(b"go 1.26 trace\0\0\0", "execution trace");
    check(b"FLR\0\0\x02", "jfrconv");
    check(b"heap profile: 3: 4 [5: 6] @ heap/1", "debug=");
    check(b"goroutine 1 [running]:\nmain.main()\n", "debug=");
    check(b"<!doctype html><p>404", "HTML");
    check(b"{\"nodes\": []}", "JSON");
    check(b"# A note\nOnce upon a time\n", "line 2");
    check(b"\x7fELF\x02\x01\x01\0\0\0\0\0", "neither pprof");
    check(&[0; 64], "neither pprof");
    check(&[0x0a, 0x02, 0x08, 0x01], "no string table");
}

#[test]
fn a_truncated_profile_is_refused() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/profiles/cpu.pb.gz");
    let whole = fs::read(file).expect("the file is there");
    for length in [3, 10, 11, 100, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        check(&whole[..length], "cut off");
    }
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 0x10;
    check(&damaged, "gzip");
    damaged.clone_from(&whole);
    damaged[whole.len() - 6] ^= 1;
    check(&damaged, "damaged");
}

#[test]
fn inconsistent_profiles_are_refused() {
    let good = PlainProfile {
        types: vec![("samples".into(), "count".into())],
        places: vec![vec!["main".into()]],
        samples: vec![PlainSample { stack: vec![0], values: vec![1], labels: vec![] }],
    };
    let with = |change: &dyn Fn(&mut PlainProfile)| {
        let mut bad = good.clone();
        change(&mut bad);
        encode_profile(&bad, EncodingChoices::default())
    };
    read(&with(&|_| ())).expect("good");
    check(&with(&|p| p.samples[0].values.push(2)), "fewer or more values");
    check(&with(&|p| p.samples[0].stack.push(1)), "refers to a location");
    check(&with(&|p| p.types.clear()), "does not name the types");
    let mut location = Vec::new();
    encode_bytes_field(&mut location, 4, &[0x08, 0x63]);
    let mut bad = with(&|_| ());
    encode_bytes_field(&mut bad, 4, &location);
    check(&bad, "refers to a function");
    let mut bad = with(&|_| ());
    encode_bytes_field(&mut bad, 1, &[0x08, 0x63]);
    check(&bad, "refers to a string");
    let mut bad = with(&|_| ());
    encode_varint(&mut bad, 2 << 3 | 2);
    encode_varint(&mut bad, u64::MAX);
    check(&bad, "longer than the rest of the file");
}

fn compress_gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(bytes).expect("into memory");
    packer.finish().expect("into memory")
}

#[test]
fn a_small_profile_uses_bounded_memory() {
    // The limits are small, so that the test is quick.
    const LIMITS: ReadLimits = ReadLimits { unpacked_bytes_max: 64 << 20, memory_bytes_max: 16 << 20 };
    const BYTES: usize = 9 << 18;
    // The bytes at the start of each case: one column, the empty string and one location. After
    // these first bytes, a case repeats one table entry many times.
    let start = [0x0a, 0, 0x32, 0, 0x22, 2, 0x08, 1];
    let many = |unit: &[u8]| [&start[..], &unit.repeat(BYTES / unit.len())].concat();
    let mut stack = Vec::new();
    encode_bytes_field(&mut stack, 1, &vec![1; BYTES]);
    let mut sample = start.to_vec();
    encode_bytes_field(&mut sample, 2, &stack);
    // Many functions refer to one file with a very long name.
    let mut long_file = start.to_vec();
    encode_bytes_field(&mut long_file, 6, &vec![b'f'; 1 << 20]);
    for number in 0..2_000u32 {
        encode_bytes_field(&mut long_file, 6, number.to_string().as_bytes());
        let mut function = Vec::new();
        for (field, value) in [(1, u64::from(number) + 1), (2, u64::from(number) + 2), (4, 1)] {
            encode_varint(&mut function, field << 3);
            encode_varint(&mut function, value);
        }
        encode_bytes_field(&mut long_file, 5, &function);
    }
    let names = |before: &str, after: &str| {
        (0..BYTES / 16).map(|number| format!("{before}{number:x}{after}")).collect::<String>()
    };
    let perf = format!("a 1 1.5: 9 cycles:\n{}", names("1 x", "\n"));
    // Each case is compressed immediately, so that only one case at a time is in memory.
    let [strings, columns, functions, locations, binaries, samples] =
        [[0x32, 0, 0, 0], [0x0a, 0, 0, 0], [0x2a, 0, 0, 0], [0x22, 0, 0, 0], [0x1a, 0, 0, 0], [0x12, 2, 0x10, 0]]
            .map(|unit| compress_gzip(&many(if unit[2] == 0 { &unit[..2] } else { &unit })));
    for (what, profile) in [
        ("strings", strings),
        ("columns", columns),
        ("functions", functions),
        ("locations", locations),
        ("binaries", binaries),
        ("samples", samples),
        ("one stack", compress_gzip(&sample)),
        ("a long file", compress_gzip(&long_file)),
        ("folded names", compress_gzip((names("", ";") + "x 1").as_bytes())),
        ("folded lines", compress_gzip("x 1\n".repeat(BYTES / 4).as_bytes())),
        ("perf", compress_gzip(perf.as_bytes())),
    ] {
        let error = read_within_limits(&profile, LIMITS).expect_err(what).to_string();
        assert!(error.contains("entries that take more than 16 MiB"), "{what}: {error}");
    }
    // The profile is refused under both limits: the limits of a small file, and the limits for an
    // untrusted sender.
    let long_file = compress_gzip(&long_file);
    check(&long_file, "entries that take more than 256 MiB");
    let error = read_within_limits(&long_file, ReadLimits::for_untrusted_sender(24 << 20)).expect_err("too large");
    assert!(error.to_string().contains("entries that take more than 256 MiB"), "{error}");
    // If a file would unpack to more than the limit, it is refused before it is fully unpacked.
    check(&compress_gzip(&vec![b'a'; 300 << 20]), "unpacks to more than 256 MiB");
}
