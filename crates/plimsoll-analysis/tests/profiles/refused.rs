//! What is no profile, or only part of one, is refused with a reason.

use crate::encode::{Plain, PlainSample, Spelling, bytes, encode, varint};
use plimsoll_analysis::profile::read;
use std::fs;
use std::path::Path;

fn check(input: &[u8], said: &str) {
    let error = read(input).expect_err(said).to_string();
    assert!(error.contains(said), "{error:?} does not say {said:?}");
}

#[test]
fn what_is_no_profile_is_refused() {
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
    check(&[0x0a, 0x02, 0x08, 0x01], "no table of strings");
}

#[test]
fn a_cut_profile_is_refused() {
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
    let good = Plain {
        types: vec![("samples".into(), "count".into())],
        places: vec![vec!["main".into()]],
        samples: vec![PlainSample { stack: vec![0], values: vec![1], labels: vec![] }],
    };
    let with = |change: &dyn Fn(&mut Plain)| {
        let mut bad = good.clone();
        change(&mut bad);
        encode(&bad, Spelling::default())
    };
    read(&with(&|_| ())).expect("good");
    check(&with(&|p| p.samples[0].values.push(2)), "another number of values");
    check(&with(&|p| p.samples[0].stack.push(1)), "names no location");
    check(&with(&|p| p.types.clear()), "what it counts");
    let mut location = Vec::new();
    bytes(&mut location, 4, &[0x08, 0x63]);
    let mut bad = with(&|_| ());
    bytes(&mut bad, 4, &location);
    check(&bad, "names no function");
    let mut bad = with(&|_| ());
    bytes(&mut bad, 1, &[0x08, 0x63]);
    check(&bad, "a string is named");
    let mut bad = with(&|_| ());
    varint(&mut bad, 2 << 3 | 2);
    varint(&mut bad, u64::MAX);
    check(&bad, "longer than what is left");
}
