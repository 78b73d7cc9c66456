//! Tests outputs that cannot be written: closed standard output, full disks, and files that another
//! run is writing. plimsoll must keep the measurements, report the error, and exit with code 2.

use crate::test_support::{
    CommandOutcome, command, create_new_folder, path_in_new_folder, plimsoll, plimsoll_without_turn, slow_server,
    start_baseline, wait_for_exit,
};
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs the binary through a shell line with redirections, such as `"$0" "$@" >&-`.
fn run_through_shell(line: &str, arguments: &[&str]) -> CommandOutcome {
    let mut shell = Command::new("sh");
    shell.args(["-c", line, env!("CARGO_BIN_EXE_plimsoll")]).args(arguments).current_dir(create_new_folder("work"));
    wait_for_exit(shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell"))
}

#[test]
fn failing_standard_output_is_an_error_and_files_remain() {
    let server = slow_server();
    let url = server.url("/healthz");
    let folder = create_new_folder("stdout");
    let kept = folder.join("kept.plimsoll").display().to_string();
    assert_eq!(plimsoll(&["run", &url, "-n", "20", "-q", "-o", &kept]).code, 0);
    let out = folder.join("out.plimsoll").display().to_string();
    let dir = folder.display().to_string();
    let run = ["run", &url, "-n", "20", "-q", "-o", &out];
    let sweep = ["sweep", &url, "-c", "1", "--for", "100ms", "--spin=off", "-q", "--name", "out", "--dir", &dir];
    let find = ["find", &url, "--budget", "3s", "--spin=off", "-q", "-o", &out];
    let prove = ["prove", &url, &url, "--budget", "3s", "--spin=off", "-q", "-o", &out];
    let commands: [(&[&str], bool); 13] = [
        (&run, true),
        (&[&run[..], &["--json"]].concat(), true),
        (&sweep, true),
        (&[&sweep[..], &["--json"]].concat(), true),
        (&find, true),
        (&prove, true),
        (&["show", &kept], false),
        (&["show", "--json", &kept], false),
        (&["show", "--csv", &kept], false),
        (&["report", &kept, "--format", "md"], false),
        (&["diff", &kept, &kept, "--dir", &dir], false),
        (&["--help"], false),
        (&["--version"], false),
    ];
    for (arguments, writes) in commands {
        for line in ["\"$0\" \"$@\" >/dev/full", "\"$0\" \"$@\" >&-"] {
            let _ = std::fs::remove_file(&out);
            let done = run_through_shell(line, arguments);
            assert_eq!(done.code, 2, "{line} {arguments:?}: {}", done.stderr);
            let said: Vec<_> = done.stderr.lines().filter(|line| line.contains("plimsoll: standard output")).collect();
            assert_eq!(said.len(), 1, "{line} {arguments:?}: {}", done.stderr);
            if writes {
                let shown = plimsoll(&["show", &out]);
                assert_eq!((shown.code, shown.stderr.as_str()), (0, ""), "{line} {arguments:?}");
            }
        }
    }
}

#[test]
fn a_closed_output_reader_is_an_error() {
    let server = start_baseline(1);
    let url = format!("{}/healthz", server.url);
    let mut child = command(&["run", &url, "-n", "20", "-q"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.as_mut().expect("starts");
    drop(child.stdout.take());
    let mut errors = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().expect("piped"), &mut errors).expect("text");
    assert_eq!(child.wait().expect("ends").code(), Some(2), "{errors}");
    assert!(errors.contains("standard output cannot be written: broken pipe"), "{errors}");
    // If the shell discards the output, plimsoll reports no error.
    for line in ["\"$0\" \"$@\" >/dev/null", "\"$0\" \"$@\" 1<>/dev/null"] {
        let done = run_through_shell(line, &["run", &url, "-n", "20", "-q"]);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{line}");
    }
}

#[test]
fn a_full_disk_ends_every_command_the_same_way() {
    let server = slow_server();
    let url = server.url("/healthz");
    // To simulate a full disk, `ulimit` forbids files of more than 2 blocks (1024 bytes).
    let line = "ulimit -f 2; exec \"$0\" \"$@\"";
    for arguments in [
        &["run", &url, "-d", "500ms", "--spin=off", "-q", "-o", "x.plimsoll"][..],
        &["find", &url, "--budget", "3s", "--spin=off", "-q", "-o", "x.plimsoll"],
        &["sweep", &url, "-c", "1,2", "--for", "300ms", "--spin=off", "-q", "--dir", "."],
        &["prove", &url, &url, "--budget", "3s", "--spin=off", "-q", "-o", "x.plimsoll"],
    ] {
        let done = run_through_shell(line, arguments);
        assert_eq!(done.code, 2, "{arguments:?}: {}", done.stderr);
        let whole = "is incomplete: file too large";
        assert_eq!(done.stderr.matches(whole).count(), 1, "{arguments:?}: {}", done.stderr);
        assert!(!done.stdout.is_empty(), "{arguments:?}: measured, and not shown: {}", done.stderr);
    }
}

#[test]
fn two_runs_cannot_write_the_same_file() {
    let server = slow_server();
    let url = server.url("/healthz");
    let file = create_new_folder("locked").join("one.plimsoll").display().to_string();
    let first = command(&["run", &url, "-c", "1", "-d", "2s", "--spin=off", "-q", "-o", &file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    while std::fs::metadata(&file).map_or(0, |metadata| metadata.len()) < 100 {
        std::thread::sleep(Duration::from_millis(10));
    }
    for verb in ["run", "find"] {
        // The second command must start before the first run ends, so it does not wait for other
        // measurements of the test suite.
        let second = plimsoll_without_turn(&[verb, &url, "-q", "-o", &file]);
        assert_eq!(second.code, 2, "{}", second.stderr);
        assert!(second.stderr.contains("is being written by another run"), "{}", second.stderr);
        assert_eq!(second.stderr.lines().count(), 1, "{}", second.stderr);
    }
    let first = wait_for_exit(first);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let shown = plimsoll(&["show", &file]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
    // After the first run has ended, the file can be written again.
    assert_eq!(plimsoll(&["run", &url, "-n", "5", "-q", "-o", &file]).code, 0);
}

#[test]
fn special_files_get_no_page_beside_them() {
    let server = slow_server();
    let url = server.url("/healthz");
    let folder = create_new_folder("beside");
    let pipe = folder.join("pipe.plimsoll");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let mut reader = Command::new("cat").arg(&pipe).stdout(Stdio::null()).spawn().expect("cat");
    let done = plimsoll(&["find", &url, "--budget", "3s", "-q", "-o", pipe.to_str().expect("text")]);
    // On a busy machine the search may find no load line, which does not matter in this test.
    assert!(done.code < 2, "{}", done.stderr);
    reader.wait().expect("ends");
    assert!(!folder.join("pipe.html").exists(), "{}", done.stderr);
    // A run file with the name `run.html` gets the page `run.html.html`, which does not replace the
    // run file.
    let page = folder.join("run.html");
    let done = plimsoll(&["find", &url, "--budget", "3s", "-q", "-o", page.to_str().expect("text")]);
    assert!(done.code < 2, "{}", done.stderr);
    assert!(File::open(folder.join("run.html.html")).is_ok(), "{}", done.stderr);
    assert_eq!(plimsoll(&["show", page.to_str().expect("text")]).code, 0);
}

/// Checks that `--json-lines` reports loads, ticks and the finding in order, and writes no other
/// text to standard output.
#[test]
fn json_lines_report_a_study_in_order() {
    let server = start_baseline(1);
    let (url, path) = (format!("{}/delay/5", server.url), path_in_new_folder("json-lines", "lines.plimsoll"));
    let find = ["find", &url, "--budget", "4s", "--max-rate", "100", "-o", &path, "--quiet", "--json-lines"];
    let run = ["run", &url, "-d", "300ms", "-o", &path, "--quiet", "--json-lines"];
    for arguments in [&find[..], &run] {
        let done = plimsoll(arguments);
        let lines: Vec<serde_json::Value> =
            done.stdout.lines().map(|line| serde_json::from_str(line).expect("a document a line")).collect();
        let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().expect("a word")).collect();
        assert_eq!((events[0], events[1], events[events.len() - 1]), ("begin", "load", "finding"), "{events:?}");
        assert_eq!(lines[0]["schema"], "plimsoll.events/1");
        // Loads are numbered as in the run file, and every tick lies inside its load.
        let (mut load, mut under_way, mut ended) = (0, false, 0);
        for line in &lines[1..lines.len() - 1] {
            assert_eq!(line["load"], load, "{line}");
            match line["event"].as_str().expect("a word") {
                "load" => under_way = true,
                "tick" => assert!(under_way, "{line}"),
                "load_end" => (load, under_way, ended) = (load + 1, false, ended + 1),
                other => panic!("{other}"),
            }
        }
        let shown = plimsoll(&["show", "--json", &path]).json();
        assert_eq!(shown, lines[lines.len() - 1]["document"]);
        assert!(shown["trials"].as_array().is_none_or(|trials| trials.len() == ended), "{ended}");
    }
    let refused = plimsoll(&["run", &url, "--json", "--json-lines"]);
    assert!(refused.code == 2 && refused.stderr.contains("--json-lines"), "{}", refused.stderr);
}
