//! Tests `plimsoll diff`: tables, charts, and recordings that cannot be compared.

use crate::test_support::{copy_recorded_run_file, create_new_folder, plimsoll};
use std::path::Path;

fn is_picture(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes.starts_with(b"\x89PNG") && bytes.len() > 5_000
}

#[test]
fn recordings_are_compared_and_charted() {
    let folder = create_new_folder("diff");
    let dir = folder.to_str().expect("text");
    let one = copy_recorded_run_file("sweep-a");
    let two = folder.join("sweep-b.dat");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/sweep-b.dat");
    std::fs::copy(kept, &two).expect("copied");
    let (one, two) = (one.as_str(), two.to_str().expect("text"));
    let done = plimsoll(&["diff", one, two, "--dir", dir]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("prove no difference smaller than their own variation"), "{}", done.stdout);
    assert!(is_picture(&folder.join("sweep-a_sweep-b.qps.ttlb.diff.png")));
    assert!(is_picture(&folder.join("sweep-a_sweep-b.success_rate.diff.png")));
    let document = plimsoll(&["diff", one, two, "--dir", dir, "--json"]).json();
    assert_eq!(document["schema"], "plimsoll.diff/1");
    assert_eq!(document["levels"].as_array().map(Vec::len), Some(2));
    assert!(document["levels"][0]["a"]["spread"].is_number() && document["levels"][0]["b"]["spread"].is_null());

    let picture = folder.join("chart.png");
    let done = plimsoll(&["report", one, "-o", picture.to_str().expect("text")]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(is_picture(&picture));
}

#[test]
fn incomparable_recordings_are_reported_in_one_sentence() {
    let folder = create_new_folder("not-compared");
    let at = |name: &str| folder.join(name).to_str().expect("text").to_owned();
    for (kept, name) in [("open", "open.plimsoll"), ("users", "stages.plimsoll")] {
        std::fs::copy(copy_recorded_run_file(kept), at(name)).expect("copied");
    }
    std::fs::write(at("good.dat"), "200 13000 15.2 100\n").expect("written");
    std::fs::write(at("bad.dat"), "200 13000 15.2 100\n500 fast 15.2 100\n").expect("written");
    std::fs::write(at("bytes.dat"), [0xff, 0xfe, 0x00]).expect("written");
    for (a, b, expect) in [
        ("good.dat", "bad.dat", "bad.dat': line 2: 'fast' is not a number for the column 'requests/s'"),
        ("absent.dat", "good.dat", "absent.dat' cannot be read"),
        ("good.dat", "bytes.dat", "neither a run file nor the text of a .dat file"),
        ("good.dat", "open.plimsoll", "are of different kinds"),
        ("stages.plimsoll", "good.dat", "contains no constant load"),
    ] {
        let done = plimsoll(&["diff", &at(a), &at(b), "--dir", &at("out")]);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{a} {b}: {}", done.stderr);
        assert!(done.stderr.lines().count() == 1 && done.stderr.contains(expect), "{a} {b}: {}", done.stderr);
    }
}
