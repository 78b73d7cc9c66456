//! Runs the benchmark scripts with small loads, so that they cannot break unnoticed. These tests do
//! not check the measured figures.

use std::path::Path;
use std::process::Command;

/// Number of measures that need an optional feature: `grpc` and `wrk` (Lua scripts).
const FEATURE_MEASURES_COUNT: usize = 2;

#[test]
fn benchmark_scripts_run_with_small_settings() {
    let built = Path::new(env!("CARGO_BIN_EXE_bare-loop")).parent().expect("a folder");
    let plimsoll = built.join("plimsoll");
    assert!(plimsoll.exists(), "{} is not built: cargo test --workspace builds it", plimsoll.display());
    let run = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/run"))
        .arg("--smoke")
        .env("PLIMSOLL", &plimsoll)
        .env("PLIMSOLL_BENCH_BIN", built)
        .output()
        .expect("bench/run needs python3");
    let (text, errors) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{text}{errors}");
    // The table has a header, a separator row, and a row for each measure. Measures that need a
    // feature are left out if plimsoll was built without this feature.
    let rows = text.lines().filter(|line| line.starts_with('|')).count();
    let left_out = errors.lines().filter(|line| line.contains("is left out: plimsoll ended with 2")).count();
    assert_eq!(rows + left_out, 2 + 24, "{text}{errors}");
    assert!(left_out <= FEATURE_MEASURES_COUNT, "{text}{errors}");
}
