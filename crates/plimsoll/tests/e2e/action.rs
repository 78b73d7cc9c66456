//! The steps of the CI action (`action/run.sh`), as a runner carries them out.
//!
//! Not here: what reports look like (`report`).

use crate::rig::{baseline, folder};
use std::path::Path;
use std::process::{Command, Output};

fn action(out: &Path, variables: &[(&str, &str)]) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../action/run.sh");
    let mut command = Command::new(script);
    command.current_dir(out).env("OUT", out.join("out")).env("PLIMSOLL", env!("CARGO_BIN_EXE_plimsoll"));
    command.env("GITHUB_STEP_SUMMARY", out.join("summary")).env("GITHUB_OUTPUT", out.join("outputs"));
    command.envs(variables.iter().copied()).output().expect("bash")
}

#[test]
fn reports_are_written_and_the_exit_code_is_kept() {
    let server = baseline(1);
    let out = folder("action");
    let args = format!("-c 2 -d 500ms -H 'X-Words: a b' '{}/bytes/10'", server.url);
    let baseline = out.join("old.plimsoll").display().to_string();
    let run = [("COMMAND", "run"), ("ARGS", args.as_str()), ("SLO", "p99<=5s")];
    let done = action(&out, &[&run[..], &[("BASELINE", &baseline)]].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let read = |name: &str| std::fs::read_to_string(out.join(name)).expect(name);
    assert!(read("out/junit.xml").contains("<testcase") && read("out/page.html").contains("<html"));
    assert!(read("out/comment.md").starts_with("<!-- plimsoll -->\n") && read("summary").contains("no baseline"));
    assert!(read("outputs").contains("exit-code=0\n"), "{}", read("outputs"));
    std::fs::rename(out.join("out/run.plimsoll"), &baseline).expect("moved");
    let done = action(&out, &[&run[..], &[("BASELINE", &baseline), ("FAIL_IF", "p99>1us")]].concat());
    assert_eq!(done.status.code(), Some(1), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(read("out/summary.md").contains("Compared with the baseline"), "{}", read("out/summary.md"));
}

#[test]
fn nothing_in_its_words_is_run() {
    let out = folder("action-words");
    let done = action(&out, &[("COMMAND", "run"), ("ARGS", "-n 1 '$(touch made)' `touch made` ; touch made")]);
    assert_eq!(done.status.code(), Some(2));
    assert!(!out.join("made").exists());
    assert!(std::fs::read_to_string(out.join("out/summary.md")).expect("written").contains("exit code 2"));
    let done = action(&out, &[("COMMAND", "rm"), ("ARGS", "x")]);
    assert_eq!(done.status.code(), Some(2));
}
