//! Tests more connections than a process may open files: client and server use threads with their
//! own file tables.

use crate::test_support::{assert_ledger_closes, number_at_path};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn command_with_file_limit(script: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("ulimit -n 64; exec {} {script}", env!("CARGO_BIN_EXE_plimsoll"))]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn three_hundred_connections_work_with_64_open_files() {
    let mut server = command_with_file_limit("baseline --listen 127.0.0.1:0 --connections 1000").spawn().expect("bash");
    let mut url = String::new();
    BufReader::new(server.stdout.take().expect("piped")).read_line(&mut url).expect("an address");
    let url = format!("{}/healthz", url.trim());
    let output = command_with_file_limit(&format!("run {url} -c 300 -d 1s --json")).output().expect("bash");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // The flag -t fixes a number of threads that is too small for the connections. The error about
    // the threads names the number of threads that is needed.
    let fixed = command_with_file_limit(&format!("run {url} -c 300 -t 2 -n 300")).output().expect("bash");
    let _ = server.kill();
    let _ = server.wait();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let fitted = document["fitted"].to_string();
    assert!(fitted.contains("10 threads for 300 connections") && fitted.contains("ulimit -n"), "{fitted}");
    assert_ledger_closes(&document, "300 connections");
    assert_eq!(number_at_path(&document, "connections_open_max"), 300.0, "{document:#}");
    assert_eq!(number_at_path(&document, "success_rate"), 1.0, "{document:#}");
    assert_eq!(fixed.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&fixed.stderr).contains("-t 10"), "{}", String::from_utf8_lossy(&fixed.stderr));
}
