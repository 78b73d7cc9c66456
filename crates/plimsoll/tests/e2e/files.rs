//! Tests run files: a run file can be shown again, survives a kill, and contains no secrets.

use crate::test_support::{
    assert_ledger_closes, command, create_new_folder, number_at_path, path_in_new_folder, plimsoll, run_to_json,
    signal, start_baseline, wait_for_exit,
};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn a_run_is_shown_unchanged_from_its_file() {
    let server = start_baseline(1);
    let file = &path_in_new_folder("run", "run.plimsoll");
    let url = format!("{}/healthz", server.url);
    let run = run_to_json(&["run", &url, "-n", "500", "-o", file]);
    let shown = plimsoll(&["show", "--json", file]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert_eq!(shown.json(), run);
    let text = plimsoll(&["show", file]);
    assert!(text.stdout.contains("100 % of 500 requests succeeded"), "{}", text.stdout);
    let csv = plimsoll(&["show", "--csv", file]);
    let rows: Vec<&str> = csv.stdout.lines().collect();
    assert!(rows.len() >= 2 && rows[0].starts_with("trial,purpose,start_s,scheduled"), "{}", csv.stdout);
    let several = plimsoll(&["show", "--json", file, file]).json();
    assert_eq!(several, Value::Array(vec![run.clone(), run]));
}

#[test]
fn a_killed_run_loses_at_most_one_interval() {
    let server = start_baseline(1);
    let file = &path_in_new_folder("killed", "run.plimsoll");
    // Responses take 200 ms, so some requests are in flight at any time.
    let url = format!("{}/delay/200", server.url);
    let mut child = command(&["run", &url, "--rate", "1000", "-d", "60s", "-o", file, "--quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    // The test waits until the file has content, then 1.5 s more, because a load may begin late.
    while std::fs::metadata(file).map_or(0, |metadata| metadata.len()) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(1500));
    signal(child.id(), "KILL");
    child.wait().expect("ends");
    let shown = plimsoll(&["show", "--json", file]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stderr.contains("cut off"), "{}", shown.stderr);
    let document = shown.json();
    assert_eq!(document["ended"], "cut off");
    assert_ledger_closes(&document, "cut off");
    let seconds = number_at_path(&document, "duration_s");
    assert!((0.5..2.0).contains(&seconds), "{seconds} s of 1.5");
    let scheduled = number_at_path(&document, "ledger.scheduled");
    let in_flight = number_at_path(&document, "ledger.in_flight");
    assert!((100.0..=400.0).contains(&in_flight), "{in_flight} of about 200 in flight");
    assert!((scheduled / (seconds * 1000.0) - 1.0).abs() < 0.2, "{scheduled} requests in {seconds} s");

    // A file cut at any position is read up to its last valid frame, or refused.
    let bytes = std::fs::read(file).expect("read");
    let cut = create_new_folder("cut").join("cut.plimsoll");
    for share in [0.02, 0.3, 0.7, 0.99] {
        std::fs::write(&cut, &bytes[..(bytes.len() as f64 * share) as usize]).expect("written");
        let shown = plimsoll(&["show", "--json", cut.to_str().expect("text")]);
        match shown.code {
            0 => assert!(shown.stderr.contains("cut"), "{}", shown.stderr),
            2 => assert_eq!(shown.stderr.lines().count(), 1, "{}", shown.stderr),
            code => panic!("exit code {code}: {}", shown.stderr),
        }
    }
}

#[test]
fn a_finished_run_file_with_a_damaged_end_has_a_closed_ledger() {
    let server = start_baseline(1);
    let file = create_new_folder("damaged").join("run.plimsoll");
    run_to_json(&["run", &format!("{}/healthz", server.url), "-n", "50", "-o", file.to_str().expect("text")]);
    let mut bytes = std::fs::read(&file).expect("read");
    let at = bytes.len() - 6;
    bytes[at] ^= 0xff;
    std::fs::write(&file, &bytes).expect("written");
    let shown = plimsoll(&["show", "--json", file.to_str().expect("text")]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stderr.contains("damaged"), "{}", shown.stderr);
    assert_ledger_closes(&shown.json(), "damaged tail");
}

#[test]
fn no_secret_reaches_a_report_or_a_file() {
    let server = start_baseline(1);
    let file = create_new_folder("secret").join("run.plimsoll");
    let path = file.to_str().expect("text");
    let url = format!("{}/healthz?token=s3cret", server.url.replace("http://", "http://user:s3cret@"));
    let arguments = [
        &["run", &url, "-n", "10", "-o", path, "-b", "s3cret"][..],
        &["-H", "Authorization: Bearer s3cret", "-H", "Cookie: s3cret", "-HX-Api-Key:s3cret"],
    ]
    .concat();
    for format in [&[][..], &["--json"]] {
        let done = plimsoll(&[&arguments[..], format].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(!format!("{}{}", done.stdout, done.stderr).contains("s3cret"), "{}{}", done.stdout, done.stderr);
        let bytes = std::fs::read(&file).expect("read");
        assert!(!bytes.windows(6).any(|window| window == b"s3cret"));
    }
    let shown = plimsoll(&["show", "--json", path]);
    assert!(!shown.stdout.contains("s3cret") && shown.stdout.contains("[redacted]"), "{}", shown.stdout);
}

#[test]
fn old_runs_are_removed_and_nothing_else() {
    let folder = create_new_folder("clean");
    let kept = folder.join("_output/plimsoll");
    std::fs::create_dir_all(&kept).expect("a folder");
    let run = folder.join("one.plimsoll");
    let server = start_baseline(1);
    let url = format!("{}/healthz", server.url);
    let arguments = ["run", &url, "-d", "100ms", "-o", run.to_str().expect("text")];
    assert_eq!(plimsoll(&arguments).code, 0);
    // The process id in the names is above the system's maximum, so no running process owns these
    // files.
    for number in 0..52 {
        std::fs::copy(&run, kept.join(format!("find-{}-4194999.plimsoll", 1000 + number))).expect("copied");
    }
    std::fs::write(kept.join("find-1000-4194999.html"), "a page").expect("written");
    std::fs::write(kept.join("mine.txt"), "mine").expect("written");
    let count = || std::fs::read_dir(&kept).expect("a folder").count();
    let clean = |arguments: &[&str]| {
        let arguments = [&["clean"], arguments].concat();
        let mut command = command(&arguments);
        wait_for_exit(
            command.current_dir(&folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts"),
        )
    };
    let listed = clean(&["--dry-run"]);
    assert!(listed.stdout.contains("2 of 52 runs") && listed.stdout.contains("would be removed"), "{}", listed.stdout);
    assert_eq!(count(), 54, "a dry run removes nothing");
    // A command that writes to the folder of results removes the oldest runs and reports the
    // removal.
    let done = command(&["find", &url, "--budget", "1s", "--quiet"])
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let done = wait_for_exit(done.expect("starts"));
    assert!(done.stderr.contains("removed the oldest 3 runs"), "{}", done.stderr);
    assert!(!kept.join("find-1002-4194999.plimsoll").exists() && !kept.join("find-1000-4194999.html").exists());
    let removed = clean(&["--keep", "0"]);
    assert!(removed.stdout.contains("50 of 50 runs"), "{}", removed.stdout);
    assert_eq!(count(), 1, "what is not plimsoll's stays");
    assert!(clean(&[]).stdout.contains("no runs in _output/plimsoll"));
}
