//! Tests hostile text: no output may control the terminal, whatever a run file, profile or .dat
//! file contains.

use crate::extremes::{frames, join_frames, varint_positions};
use crate::test_support::{create_new_folder, plimsoll, slow_server};
use plimsoll_report::visible_controls::is_control_character;
use serde_json::Value;

/// Control sequences that clear the screen, set the title, change colours (8-bit), reverse the
/// direction, ring the bell, and forge a line.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}31m\u{202e}\u{8}\r\nplimsoll: all is well\u{7f}";

/// Fields of a run file whose text comes from outside plimsoll, such as from a server or a user.
const EXTERNAL_TEXT_FIELDS: [&str; 17] = [
    "host",
    "method",
    "target",
    "kernel",
    "cpu",
    "plimsoll",
    "name",
    "found_by",
    "reason",
    "stopped",
    "base",
    "unit",
    "kept",
    "server_name",
    "finished",
    "unix",
    "stderr",
];
/// Fields of a run file that contain lists of text from outside plimsoll.
const EXTERNAL_TEXT_LIST_FIELDS: [&str; 5] = ["unseen", "warnings", "sides", "command", "headers"];

fn insert_hostile_text(value: &mut Value, inside: bool) {
    match value {
        Value::String(text) if inside => text.push_str(HOSTILE),
        Value::Array(items) => items.iter_mut().for_each(|item| insert_hostile_text(item, inside)),
        Value::Object(fields) => {
            for (name, field) in fields {
                let text = (EXTERNAL_TEXT_FIELDS.contains(&name.as_str()) && field.is_string())
                    || EXTERNAL_TEXT_LIST_FIELDS.contains(&name.as_str());
                insert_hostile_text(field, inside || text);
            }
        }
        _ => {}
    }
}

fn json_with_hostile_text(json: &[u8]) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(json).expect("JSON");
    insert_hostile_text(&mut value, false);
    serde_json::to_vec(&value).expect("JSON")
}

/// Returns a run file with hostile text in every field of free text.
fn run_file_with_hostile_text(bytes: &[u8]) -> Vec<u8> {
    let mut frames = frames(bytes);
    for (kind, payload) in &mut frames {
        match kind {
            3 => {}
            6 => {
                let head = varint_positions(payload)[1];
                let length = payload[..head].iter().rev().fold(0usize, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
                let json = json_with_hostile_text(&payload[head..head + length]);
                let rest = payload.split_off(head + length);
                payload.clear();
                let mut left = json.len();
                while left >= 0x80 {
                    payload.push(left as u8 | 0x80);
                    left >>= 7;
                }
                payload.push(left as u8);
                payload.extend(json);
                payload.extend(rest);
            }
            _ => *payload = json_with_hostile_text(payload),
        }
    }
    join_frames(&frames)
}

fn assert_harmless(text: &str, what: &str) {
    // Lines of CSV end with CR and LF, so a CR before a LF is harmless.
    let text = text.replace("\r\n", "\n");
    if let Some(at) = text.find(|c| is_control_character(c) && c != '\n') {
        let around: String = text[..at].chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
        panic!("{what}: {:?} after {around:?}", text[at..].chars().next());
    }
    assert!(!text.lines().any(|line| line.starts_with("plimsoll: all is well")), "{what}: a forged line in {text}");
}

#[test]
fn no_format_contains_terminal_control_characters() {
    let server = slow_server();
    let url = server.url("/healthz");
    let work = create_new_folder("hostile");
    let named = |name: &str| work.join(name).display().to_string();
    let (run, find, prove, sweep) =
        (named("run.plimsoll"), named("find.plimsoll"), named("prove.plimsoll"), named("sweep.plimsoll"));
    plimsoll(&["run", &url, "-c", "2", "-d", "600ms", "-q", "-o", &run]);
    plimsoll(&["sweep", &url, "-c", "1,2", "--for", "300ms", "-q", "--dir", work.to_str().expect("text")]);
    plimsoll(&["find", &url, "--budget", "3s", "-q", "-o", &find]);
    plimsoll(&["prove", &url, &url, "--budget", "3s", "-q", "-o", &prove]);
    for file in [&run, &sweep, &find, &prove] {
        let whole = std::fs::read(file).expect("a run file");
        std::fs::write(file, run_file_with_hostile_text(&whole)).expect("written");
        let mut seen = false;
        for arguments in [
            &["show", file.as_str()][..],
            &["show", "--verbose", file],
            &["show", "--json", file],
            &["show", "--csv", file],
            &["show", "--probes", file],
            &["report", file, "--format", "md"],
            &["report", file, "--format", "junit"],
            &["report", file, "--format", "json"],
            &["report", file, "--format", "svg"],
            &["report", file, "-o", &named("page.html")],
            &["diff", file, file, "--dir", &named("charts")],
            &["rerun", "--print", file],
        ] {
            let done = plimsoll(arguments);
            assert_harmless(&done.stdout, &format!("standard output of {arguments:?}"));
            assert_harmless(&done.stderr, &format!("standard error of {arguments:?}"));
            assert!(!done.stderr.contains("damaged"), "{arguments:?}: the file is not what was meant: {}", done.stderr);
            seen |= done.stdout.contains("all is well");
        }
        assert!(seen, "{file}: nothing hostile was shown at all");
        assert_harmless(&std::fs::read_to_string(named("page.html")).expect("a page"), "the page");
    }
}

#[test]
fn profiles_and_tables_contain_no_terminal_control_characters() {
    let work = create_new_folder("hostile-profile");
    let named = |name: &str| work.join(name).display().to_string();
    let stacks = format!("main;a{} 30\nmain;b 10\n", HOSTILE.replace(['\n', '\r', '\u{7}', '\u{8}'], ""));
    std::fs::write(named("stacks"), stacks).expect("written");
    let dat = named("x.dat");
    std::fs::write(&dat, "1 2 3 4\n\u{1b}[2J 5 6 7\n").expect("written");
    let missing = format!("{}{HOSTILE}", named("none"));
    for arguments in [
        &["profile", &named("stacks")][..],
        &["profile", "--json", &named("stacks")],
        &["profile", &named("stacks"), "-o", &named("flame.svg"), "-o", &named("flame.html")],
        &["diff", &dat, &dat],
        &["show", &missing],
        &["diff", &missing, &missing],
        &["run", &missing],
        &["find", "http://127.0.0.1:1/\u{1b}[2J\u{202e}", "-q"],
        &["run", "http://127.0.0.1:1/", "--fail-if", HOSTILE],
    ] {
        let done = plimsoll(arguments);
        assert_harmless(&done.stdout, &format!("standard output of {arguments:?}"));
        assert_harmless(&done.stderr, &format!("standard error of {arguments:?}"));
    }
    for flame in ["flame.svg", "flame.html"] {
        assert_harmless(&std::fs::read_to_string(named(flame)).expect("a flame graph"), flame);
    }
}
