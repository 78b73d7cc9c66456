//! Tests that the counts of request outcomes (the ledger) are right under every fault of a server.

use crate::test_support::{assert_ledger_closes, number_at_path, run_to_json};
use plimsoll_bench::servers::start_faulty_server;
use plimsoll_bench::{Fault, Outcome};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

fn ledger_path_of_outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Success => "ledger.succeeded",
        Outcome::Status => "ledger.failed.status",
        Outcome::Connect => "ledger.failed.connect",
        Outcome::Reset => "ledger.failed.reset",
        Outcome::Closed => "ledger.failed.closed_early",
        Outcome::Protocol => "ledger.failed.protocol",
        Outcome::Timeout => "ledger.failed.timeout",
    }
}

fn check(fault: Fault, every: u64, load: &[&str]) {
    let what = format!("{} every {every}, {load:?}", fault.name());
    let server = start_faulty_server(fault, every).expect("starts");
    let url = server.url("/");
    let document = run_to_json(&[&["run", &url, "--no-preflight", "--timeout", "1s"], load].concat());
    assert_ledger_closes(&document, &what);
    let mut allowed: Vec<&str> = fault.outcomes().iter().map(|outcome| ledger_path_of_outcome(*outcome)).collect();
    if every > 1 && !allowed.contains(&"ledger.succeeded") {
        allowed.push("ledger.succeeded");
    }
    let counted: f64 = allowed.iter().map(|path| number_at_path(&document, path)).sum();
    let open = number_at_path(&document, "ledger.in_flight") + number_at_path(&document, "ledger.unsent");
    assert_eq!(counted + open, number_at_path(&document, "ledger.scheduled"), "{what}: {:#}", document["ledger"]);
    assert!(number_at_path(&document, "requests") > 0.0, "{what}: {:#}", document["ledger"]);
    // A request that timed out took at least the timeout.
    if number_at_path(&document, "ledger.failed.timeout") > 0.0 {
        assert!(number_at_path(&document, "response_time_ns.max") >= 1e9, "{what}");
    }
}

#[test]
fn the_ledger_closes_under_every_fault() {
    let mut cases: Vec<(Fault, u64, &[&str])> = Vec::new();
    for fault in Fault::all() {
        // Responses of 100 MB are requested only a few times.
        let huge = fault.name() == "huge-body";
        cases.push((fault, 1, if huge { &["-c", "1", "-n", "2"] } else { &["-c", "2", "-d", "100ms"] }));
        cases.push((fault, 1, if huge { &["--rate", "4", "-n", "2"] } else { &["--rate", "100", "-d", "400ms"] }));
        if !fault.affects_connect() && !huge {
            cases.push((fault, 3, &["-c", "3", "-n", "30"]));
        }
    }
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        // Most cases wait for timeouts, so running several cases in parallel saves time and needs
        // no more CPU time.
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some((fault, every, load)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if std::panic::catch_unwind(|| check(*fault, *every, load)).is_err() {
                        failed.lock().expect("no poison").push((*fault, *every, *load));
                    }
                }
            });
        }
    });
    // On a busy machine a server may miss the timeout, so cases that failed in parallel are
    // repeated alone.
    let failed = failed.into_inner().expect("no poison");
    for (fault, every, load) in failed {
        check(fault, every, load);
    }
}
