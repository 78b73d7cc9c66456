//! Tests experiments of `plimsoll explain`: another request body, a second load process, and pauses
//! of a downstream process.

use crate::test_support::{
    command, create_new_folder, plimsoll, signal, start_baseline, start_server_process, wait_for_exit,
};
use plimsoll_model::codec::{self, Frame, MAGIC};
use plimsoll_model::{EarlyStopReason, Injector, LoadCurve, LoadEnd, LoadShape, Plan};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::probe::process::read_process_stat;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Starts a process that sends part of a load, as plimsoll does. The process sends part number
/// `of[0]` (counted from 0) of `of[1]` parts. Returns the process, and an empty buffer for its
/// output after the greeting.
fn start_load_part(plan: &Plan, index_and_count: [u64; 2]) -> (Child, Vec<u8>) {
    let mut child =
        command(&["carry-out-part"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary starts");
    let injector = serde_json::to_vec(&Injector::default()).expect("serialises");
    let to = child.stdin.as_mut().expect("piped");
    for part in [plan.to_bytes(), injector] {
        to.write_all(&(part.len() as u64).to_le_bytes()).and_then(|()| to.write_all(&part)).expect("is read");
    }
    index_and_count.into_iter().for_each(|number| to.write_all(&number.to_le_bytes()).expect("is read"));
    let mut greeting = [0; 8];
    child.stdout.as_mut().expect("piped").read_exact(&mut greeting).expect("a greeting");
    assert_eq!(greeting, MAGIC);
    (child, Vec::new())
}

/// Returns the next frame (one record) of the process's output; `None` after the end of the output.
fn next_frame((child, come): &mut (Child, Vec<u8>)) -> Option<Frame> {
    loop {
        if let Some((frame, length)) = codec::read_first_frame(come).expect("a frame") {
            come.drain(..length);
            return Some(frame);
        }
        let mut piece = [0; 4096];
        match child.stdout.as_mut().expect("piped").read(&mut piece).expect("reads") {
            0 => return None,
            count => come.extend_from_slice(&piece[..count]),
        }
    }
}

#[test]
fn another_process_generates_a_part_of_a_load() {
    let server = start_baseline(1);
    let port: u16 = server.url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let address = ([127, 0, 0, 1], port).into();
    let mut plan =
        Plan::for_get_request("127.0.0.1", port, vec![address], LoadShape::Closed { users: LoadCurve::constant(4.0) });
    plan.traffic.routes[0].request.target = "/healthz".into();
    plan.load.duration_ns = Some(500_000_000);
    // In the first case, the process sends half of the load until the load ends. In the second
    // case, the process sends all of the load until the test stops the process.
    for (of, stops) in [([1, 2], false), ([0, 1], true)] {
        let mut part = start_load_part(&plan, of);
        assert!(matches!(next_frame(&mut part), Some(Frame::TrialStart { .. })));
        let origin_ns = monotonic_ns() + 20_000_000;
        part.0.stdin.as_mut().expect("piped").write_all(&origin_ns.to_le_bytes()).expect("is read");
        let (mut scheduled, mut ended, mut ticks) = (0, 0, 0);
        let ending = loop {
            match next_frame(&mut part).expect("an end") {
                Frame::Interval { interval, .. } => {
                    let ledger = interval.all_routes().ledger;
                    scheduled += ledger.scheduled;
                    ended += ledger.finished_requests() + ledger.unsent + ledger.in_flight;
                    ticks += 1;
                    if stops && ticks == 2 {
                        part.0.stdin.as_mut().expect("piped").write_all(&[0]).expect("is read");
                    }
                }
                Frame::TrialEnd { ending, .. } => break ending,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(ending, if stops { LoadEnd::Stopped(EarlyStopReason::Interrupted) } else { LoadEnd::Finished });
        assert!(scheduled > 0 && scheduled == ended, "{scheduled} {ended}");
        assert!(next_frame(&mut part).is_none() && part.0.wait().expect("ends").success());
    }
    // When the parent process has ended, a process that sends part of a load ends by itself, even
    // in the middle of the load.
    plan.load.duration_ns = Some(60_000_000_000);
    let mut left = start_load_part(&plan, [0, 1]);
    assert!(matches!(next_frame(&mut left), Some(Frame::TrialStart { .. })));
    let origin = monotonic_ns().to_le_bytes();
    left.0.stdin.as_mut().expect("piped").write_all(&origin).expect("is read");
    drop(left.0.stdin.take());
    let began = Instant::now();
    while next_frame(&mut left).is_some() {}
    assert!(!left.0.wait().expect("ends").success() && began.elapsed() < Duration::from_secs(20));
    // The process `damaged` refuses its invalid task.
    let mut damaged =
        command(&["carry-out-part"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    damaged.stdin.take().expect("piped").write_all(&[9; 40]).expect("is read");
    let done = read_output_until_end(damaged);
    let frame = codec::read_first_frame(&done[MAGIC.len()..]).expect("a frame");
    assert!(matches!(frame, Some((Frame::Event(plimsoll_model::ExperimentEvent::Aborted { .. }), _))), "{frame:?}");
}

fn read_output_until_end(mut child: Child) -> Vec<u8> {
    let mut said = Vec::new();
    child.stdout.take().expect("piped").read_to_end(&mut said).expect("reads");
    child.wait().expect("ends");
    said
}

/// Checks that the experiments with another body and with a second process are reported with their
/// predictions.
#[test]
fn experiments_with_another_body_and_a_second_process_run() {
    // The server is faster than plimsoll, so an experiment with a second load process is worth its
    // time.
    let server = start_baseline(1);
    let file = create_new_folder("experiments").join("explain.plimsoll");
    let path = file.to_str().expect("text");
    let url = format!("{}/healthz", server.url);
    let flags =
        ["--no-probes", "--slo", "p99<=100ms", "-b", "four", "--other-body", "a longer body, not kept", "--json"];
    let done = plimsoll(&[&["explain", &url, "--budget", "42s", "-o", path][..], &flags].concat());
    let document = done.json();
    let made = document["interventions"].as_array().expect("changes");
    for name in ["larger_body", "second_generator"] {
        let change = made.iter().find(|change| change["name"] == name).unwrap_or_else(|| panic!("{name}: {made:#?}"));
        assert!(change["measured"].as_str().is_some_and(|text| text.contains("with the change")), "{change:#}");
    }
    // A load of two processes is recorded like a load of two machines.
    let shown = plimsoll(&["show", "--json", path]).json();
    assert_eq!(shown["interventions"], document["interventions"]);
    let again = plimsoll(&["rerun", "--print", path]);
    assert!(
        again.stdout.contains("--other-body='[23 bytes") || again.stdout.contains("--other-body=[23 bytes"),
        "{}",
        again.stdout
    );
    assert!(again.stderr.contains("--other-body"), "{}", again.stderr);
    let bytes = std::fs::read(&file).expect("a run file");
    assert!(!String::from_utf8_lossy(&bytes).contains("a longer body"));
    let experiment = codec::decode(&bytes).expect("a run file").experiment;
    let two: Vec<usize> =
        experiment.trials.iter().map(|trial| trial.run.injectors.len()).filter(|it| *it == 2).collect();
    assert_eq!(two, [2]);
    for (flags, expect) in [
        (&["--other-body", "x"][..], "--other-body"),
        (&["-b", "four", "--other-body", "fore"], "both have 4 bytes"),
        (&["-b", "four", "--other-body", "-"], "--other-body"),
        (&["-b", "four", "--other-body", "@/no/such/file"], "--other-body"),
    ] {
        let refused = plimsoll(&[&["explain", &url][..], flags].concat());
        assert!(refused.code == 2 && refused.stderr.contains(expect), "{}", refused.stderr);
    }
}

fn process_state(pid: u32) -> u8 {
    read_process_stat(pid, &mut Vec::new()).map_or(b'Z', |(stat, _)| stat.state)
}

/// Checks that a downstream process is paused only with the user's permission, and continues
/// however plimsoll ends.
#[test]
fn paused_processes_always_resume() {
    // The server's threads share their open files, as in other servers, so the kernel shows which
    // process owns a connection.
    let pooled = |behind: &str| {
        start_server_process(
            &mut command(&["baseline", "--listen", "127.0.0.1:0", "--behind", behind, "--pool", "2"]),
            "plimsoll",
        )
    };
    let last = start_baseline(1);
    let store = pooled(&format!("{}/delay/20", last.url));
    let server = pooled(&format!("{}/items", store.url));
    let url = format!("{}/items", server.url);
    let pid = store.pid().to_string();
    for (whom, expect) in [
        ("1", "the init process of the system"),
        (&server.pid().to_string(), "is the server itself"),
        (&std::process::id().to_string(), "started plimsoll or the server"),
        ("no-such-program", "no process has the name"),
    ] {
        let refused = plimsoll(&["explain", &url, "--may-signal", whom, "-q"]);
        assert!(refused.code == 2 && refused.stderr.contains(expect), "{whom}: {}", refused.stderr);
    }
    // If plimsoll is killed while a process is paused, the process still resumes.
    let arguments = ["explain", &url, "--may-signal", &pid, "--budget", "40s", "--slo", "p99<=200ms", "-q"];
    let child = command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let (ours, deadline) = (child.id(), Instant::now() + Duration::from_secs(60));
    while process_state(store.pid()) != b'T' {
        assert!(Instant::now() < deadline && process_state(ours) != b'Z', "it was never stopped");
        std::thread::sleep(Duration::from_millis(3));
    }
    signal(ours, "KILL");
    wait_for_exit(child);
    let (deadline, mut going) = (Instant::now() + Duration::from_secs(10), 0);
    while going < 40 {
        going = if process_state(store.pid()) == b'T' { 0 } else { going + 1 };
        assert!(Instant::now() < deadline, "it does not go on");
        std::thread::sleep(Duration::from_millis(10));
    }
}
