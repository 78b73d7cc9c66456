//! Tests `plimsoll model` end to end: the model of a log must be valid, and its traffic must
//! resemble the log's traffic.

use crate::test_support::{create_new_folder, number_at_path, plimsoll, run_to_json, start_baseline};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const FORMAT: &str = r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $msec $request_time"#;

fn path_text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Writes a log of visitors who arrive at random and view some items, mostly popular items.
fn write_visitor_log() -> PathBuf {
    let mut state = 9u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut requests: Vec<(u64, u64, String)> = Vec::new();
    for visitor in 0..3000 {
        let mut at_ms = draw(300_000);
        for step in 0..1 + draw(5) {
            let most = 1 + draw(200);
            let target = if step == 0 { "/healthz".to_owned() } else { format!("/bytes/{}", 1 + draw(most)) };
            requests.push((at_ms, visitor, target));
            at_ms += 300 + draw(900);
        }
    }
    requests.sort();
    let mut lines = String::new();
    for (at_ms, visitor, target) in requests.into_iter().filter(|request| request.0 < 300_000) {
        let (s, ms) = (1_795_341_600 + at_ms / 1000, at_ms % 1000);
        let address = format!("10.0.{}.{}", visitor / 250, visitor % 250);
        let _ = writeln!(
            lines,
            "{address} - - [22/Nov/2026:10:00:00 +0000] \"GET {target} HTTP/1.1\" 200 20 \"-\" \"agent\" {s}.{ms:03} 0.000"
        );
    }
    let path = create_new_folder("model").join("access.log");
    std::fs::write(&path, lines).expect("written");
    path
}

/// Runs `plimsoll model --json`. The exit code may be 1, if the model differs too much from the
/// log.
fn run_model_command(arguments: &[&str]) -> Value {
    let done = plimsoll(&[&["model"], arguments, &["--json"]].concat());
    assert!(done.code < 2, "{arguments:?}: {} {}", done.code, done.stderr);
    done.json()
}

/// Examples of secrets as they occur in paths and queries.
const EXAMPLE_SECRET_KEYS: [&str; 5] = [
    "Zq7xK2mW9vLp4TnR8sYd",
    "550e8400-e29b-41d4-a716-446655440000",
    "A1B2-C3D4-E5F6",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVPmB92K27u",
    "hunter2secret",
];

#[test]
fn path_keys_are_withheld_by_default() {
    let folder = create_new_folder("keys");
    let (log, file) = (folder.join("access.log"), folder.join("scenario.toml"));
    let mut lines = String::new();
    for number in 0..400 {
        let target = match number % 8 {
            0 => format!("/reset/{}{}", EXAMPLE_SECRET_KEYS[0], number % 16),
            1 => format!("/hook/{}/x", EXAMPLE_SECRET_KEYS[1]),
            2 => format!("/invite/{}", EXAMPLE_SECRET_KEYS[2]),
            3 => format!("/in/{}?q=tea", EXAMPLE_SECRET_KEYS[3]),
            4 => format!("/u?token={}", EXAMPLE_SECRET_KEYS[4]),
            _ => format!("/items/{}", number % 5),
        };
        let _ = writeln!(
            lines,
            "10.0.0.{} - - [22/Nov/2026:10:{:02}:{:02} +0000] \"GET {target} HTTP/1.1\" 200 20 \"-\" \"agent\"",
            number % 40,
            number / 60,
            number % 60
        );
    }
    std::fs::write(&log, lines).expect("written");
    // Returns all text that `plimsoll model` writes to files or prints.
    let written = |more: &[&str]| {
        let _ = std::fs::remove_dir_all(file.with_extension("paths"));
        let done = plimsoll(&[&["model", path_text(&log), "-o", path_text(&file)], more].concat());
        assert!(done.code == 0, "{}", done.stdout + &done.stderr);
        let mut all = done.stdout + &done.stderr + &std::fs::read_to_string(&file).expect("read");
        for entry in std::fs::read_dir(file.with_extension("paths")).expect("a folder") {
            all += &std::fs::read_to_string(entry.expect("an entry").path()).expect("read");
        }
        all
    };
    let withheld = written(&[]);
    for key in EXAMPLE_SECRET_KEYS {
        assert!(!withheld.contains(key), "{key}: {withheld}");
    }
    for part in ["withheld-1", "/items/", "q=tea", "6 parts of paths look like secret keys, and the model replaces"] {
        assert!(withheld.contains(part), "{part}: {withheld}");
    }
    assert_eq!(plimsoll(&["check", "-f", path_text(&file)]).code, 0);
    // A request whose path has a placeholder in place of a secret key still counts as a request of
    // the same endpoint.
    let document = run_model_command(&[path_text(&log), "-o", path_text(&file), "--verify"]);
    assert!(document["keys_withheld"] == 6 && number_at_path(&document, "verify.mix_tv") < 0.1, "{document:#}");
    let kept = written(&["--keep-keys"]);
    assert!(EXAMPLE_SECRET_KEYS.iter().all(|key| kept.contains(key)) && !kept.contains("withheld"), "{kept}");
    let shown = plimsoll(&["traffic", path_text(&log)]);
    let document = plimsoll(&["traffic", path_text(&log), "--json"]).stdout;
    for key in EXAMPLE_SECRET_KEYS {
        assert!(!shown.stdout.contains(key) && !document.contains(key), "{key}: {}", shown.stdout);
    }
}

#[test]
fn a_model_sends_requests_like_its_log() {
    let (server, log) = (start_baseline(1), write_visitor_log());
    let file = create_new_folder("modelled").join("scenario.toml");
    let model = [path_text(&log), "--log-format", FORMAT, "--target", &server.url, "-o", path_text(&file)];
    let document = run_model_command(&[&model[..], &["--verify"]].concat());
    assert_eq!(document["schema"], "plimsoll.model/1");
    let verify = &document["verify"];
    assert_eq!(verify["holds"], true, "{verify:#}");
    assert!(
        number_at_path(verify, "mix_tv") < 0.02 && number_at_path(verify, "sessions.requests.p50.log") >= 2.0,
        "{verify:#}"
    );
    assert!(verify["dispersion"][3]["ratio"].is_null(), "{verify:#}");
    assert!((1..=200).contains(&document["scenarios"].as_u64().expect("a number")), "{document:#}");
    let checked = plimsoll(&["check", "-f", path_text(&file)]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    let run = run_to_json(&["run", "-f", path_text(&file), "--rate", "50", "-d", "1s"]);
    assert_eq!(number_at_path(&run, "success_rate"), 1.0, "{run:#}");
    // The test replays the model at the recorded rate of sessions, and at half of that rate.
    let text_of_file = std::fs::read_to_string(&file).expect("text");
    for key in ["[load]", "rate = ", "arrivals = \"poisson\""] {
        assert!(text_of_file.contains(key), "{key}: {}", &text_of_file[..text_of_file.len().min(2000)]);
    }
    let carried_rps = 3000.0 / 300.0;
    for (scale, rate) in [("1x", carried_rps), ("0.5x", carried_rps / 2.0)] {
        let replayed = run_to_json(&["replay", path_text(&file), "--scale", scale, "-d", "2s", "--seed", "3"]);
        assert_eq!(number_at_path(&replayed, "success_rate"), 1.0, "{replayed:#}");
        let load = replayed["load"].as_str().expect("a load");
        assert!(load.contains("sessions/s, Poisson arrivals"), "{load}");
        let started = number_at_path(&replayed, "sessions.started") / 2.0;
        assert!((0.3 * rate..=2.0 * rate).contains(&started), "{scale}: {started} sessions/s, {load}");
    }
    // A log without sessions becomes a mix of single requests.
    let mix = create_new_folder("modelled").join("mix.toml");
    let alone = std::fs::read_to_string(&log).expect("text").replace("\"GET /healthz", "\"POST /healthz");
    std::fs::write(&log, alone.replace("10.0.", "10.1.")).expect("written");
    let skipped = ["--skip", "/bytes", "--allow-unsafe", "-o", path_text(&mix)];
    let document = run_model_command(&[&[path_text(&log), "--log-format", FORMAT][..], &skipped].concat());
    assert_eq!((document["scenarios"].as_u64(), document["endpoints"].as_u64()), (Some(0), Some(1)), "{document:#}");
}

#[test]
fn invalid_models_are_refused() {
    let log = write_visitor_log();
    for (words, said) in [
        (vec![path_text(&log)], "--output"),
        (vec![path_text(&log), "-o", "a.txt"], ".toml"),
        (vec!["/nowhere/a.log", "-o", "a.toml"], "/nowhere/a.log"),
        (vec![path_text(&log), "--log-format", FORMAT, "-o", "a.toml", "--only", "^PUT"], "--only"),
    ] {
        let done = plimsoll(&[&["model"][..], &words].concat());
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{words:?}: {}", done.stderr);
        assert!(done.stderr.contains(said), "{words:?}: {}", done.stderr);
    }
}

#[test]
fn a_traffic_file_is_replayed_with_its_load_or_refused() {
    let server = start_baseline(1);
    let at = |name: &str, load: &str, verb: &str| {
        let path = create_new_folder("replayed-files").join(name);
        let file = format!("base = \"{}\"\n{load}[[request]]\n{verb} = \"/healthz\"\n", server.url);
        std::fs::write(&path, file).expect("written");
        path
    };
    let mix = at("mix.toml", "[load]\nrate = \"20@1s,60@1s\"\narrivals = \"constant\"\n", "get");
    let users = at("users.toml", "[load]\nusers = 2\nsessions = 30\n", "get");
    let post = at("post.toml", "[load]\nrate = 10\nduration = \"500ms\"\n", "post");
    let bare = at("bare.toml", "", "get");
    for (words, scheduled) in [
        (vec![path_text(&mix)], 80.0),
        (vec![path_text(&mix), "--scale", "2x", "-d", "1500ms"], 100.0),
        (vec![path_text(&users), "--scale", "2"], 60.0),
        (vec![path_text(&post), "--allow-unsafe"], 5.0),
    ] {
        let document = run_to_json(&[&["replay"][..], &words].concat());
        assert_eq!(number_at_path(&document, "ledger.scheduled"), scheduled, "{words:?}");
    }
    for (words, said) in [
        (vec![path_text(&bare)], "has no [load]"),
        (vec![path_text(&post)], "--allow-unsafe"),
        (vec![path_text(&mix), path_text(&bare)], "alone"),
        (vec![path_text(&mix), "--speed", "2"], "--speed"),
        (vec![path_text(&mix), "--only", "a"], "--only"),
        (vec![path_text(&mix), "--strict"], "--strict"),
        (vec![path_text(&users), "--scale", "0.01"], "--scale"),
        (vec!["nowhere.toml"], "nowhere.toml"),
    ] {
        let done = plimsoll(&[&["replay"][..], &words].concat());
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{words:?}: {}", done.stderr);
        assert!(done.stderr.contains(said), "{words:?}: {}", done.stderr);
    }
}
