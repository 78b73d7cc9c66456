//! Tests the progress display, on a pseudo terminal (which the program `script` provides) and
//! without a terminal.

use crate::test_support::{
    CommandOutcome, create_new_folder, plimsoll, signal, slow_server, start_baseline, wait_for_exit,
};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Simulates a terminal of 80 columns. Returns the terminal's lines after `text`, and all lines
/// that the terminal ever showed.
fn simulate_terminal(text: &str) -> (Vec<String>, Vec<String>) {
    let mut rows: Vec<Vec<char>> = vec![Vec::new()];
    let mut ever: Vec<String> = Vec::new();
    let (mut row, mut column) = (0usize, 0usize);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => column = 0,
            '\n' => {
                row += 1;
                while rows.len() <= row {
                    rows.push(Vec::new());
                }
            }
            '\x1b' => {
                assert_eq!(chars.next(), Some('['), "only control sequences are written");
                let mut argument = String::new();
                let end = loop {
                    match chars.next().expect("a whole sequence") {
                        c if c.is_ascii_alphabetic() => break c,
                        c => argument.push(c),
                    }
                };
                let count = argument.parse().unwrap_or(1usize);
                match end {
                    'A' => row = row.checked_sub(count).expect("never above the first line"),
                    'J' => {
                        ever.extend(rows[row..].iter().map(|r| r.iter().collect::<String>()));
                        rows.truncate(row + 1);
                        rows[row].truncate(column);
                    }
                    'h' | 'l' | 'm' => {}
                    other => panic!("an unknown sequence: {argument}{other}"),
                }
            }
            c => {
                let line = &mut rows[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = c;
                column += 1;
            }
        }
    }
    (rows.into_iter().map(|r| r.into_iter().collect()).collect(), ever)
}

/// Runs the binary on a pseudo terminal, and sends ^C after `interrupt_after`.
fn run_on_terminal(arguments: &str, interrupt_after: Option<Duration>) -> CommandOutcome {
    let binary = env!("CARGO_BIN_EXE_plimsoll");
    let mut script = Command::new("script");
    // The shell replaces itself by the binary, so that the signal reaches the binary.
    script.args([
        "--quiet",
        "--return",
        "--command",
        &format!("echo pid $$; exec '{binary}' {arguments}"),
        "/dev/null",
    ]);
    script.current_dir(create_new_folder("terminal")).env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
    let child =
        script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("script is there");
    if let Some(time) = interrupt_after {
        let parent = child.id();
        std::thread::spawn(move || {
            std::thread::sleep(time);
            let children =
                std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
            for pid in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
                signal(pid, "INT");
            }
        });
    }
    wait_for_exit(child)
}

fn assert_whole_report(done: &CommandOutcome) -> Vec<String> {
    let (rows, ever) = simulate_terminal(&done.stdout);
    let text = rows.join("\n");
    assert_eq!(text.matches("requests/s succeeded").count(), 1, "{text}");
    assert!(rows.iter().any(|r| r.starts_with("  response time ")) && rows.iter().any(|r| r.starts_with("  ledger ")));
    assert!(!text.contains("s left") && !text.contains('\u{2501}'), "progress is left over: {text}");
    assert!(ever.iter().all(|line| line.chars().count() < 80), "{ever:?}");
    ever
}

#[test]
fn terminal_progress_does_not_change_the_report() {
    let server = start_baseline(1);
    let done = run_on_terminal(&format!("run {}/delay/5 -c 2 -d 2s --spin=off -v", server.url), None);
    assert_eq!(done.code, 0, "{}", done.stdout);
    let ever = assert_whole_report(&done);
    for part in ["2 users", "s left", "p50 ", "p99 ", "in flight", "/s  "] {
        assert!(ever.iter().any(|line| line.contains(part)), "{part} was never shown: {ever:?}");
    }
    assert!(ever.iter().any(|line| line.contains('\u{2588}')), "no sparkline: {ever:?}");
}

#[test]
fn an_interrupted_run_ends_with_a_complete_report() {
    let server = start_baseline(1);
    let done =
        run_on_terminal(&format!("run {}/delay/5 -c 2 -d 60s --spin=off -v", server.url), Some(Duration::from_secs(1)));
    assert_eq!(done.code, 130, "{}", done.stdout);
    assert_whole_report(&done);
    assert!(done.stdout.contains("ended early: interrupted"), "{}", done.stdout);
}

#[test]
fn a_search_explains_its_progress() {
    let server = slow_server();
    let done = run_on_terminal(&format!("find {} --budget 3s --spin=off", server.url("/")), None);
    // On a busy machine, the search may find no load line.
    assert!(done.code < 2, "{}", done.stdout);
    let (rows, ever) = simulate_terminal(&done.stdout);
    assert!(ever.iter().any(|line| line.starts_with("finding the peak: 1 user")), "{rows:?}");
    assert!(ever.iter().any(|line| line.contains("shows where to search for the load line")), "{rows:?}");
    assert!(!rows.join("\n").contains("s left"), "{rows:?}");
}

#[test]
fn without_a_terminal_progress_is_occasional_plain_lines() {
    let server = start_baseline(1);
    let url = format!("{}/delay/5", server.url);
    let arguments = ["run", &url, "-c", "1", "-d", "6s"];
    let done = plimsoll(&arguments);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.lines().any(|l| l.contains(" of 6 s, 1 user, ") && l.contains("p99 ")), "{}", done.stderr);
    assert!(!done.stderr.contains('\x1b') && !done.stdout.contains('\x1b'));
    let quiet = plimsoll(&["run", &url, "-c", "1", "-d", "300ms", "--quiet"]);
    assert_eq!(quiet.stderr, "");
}
