//! Tests `plimsoll rerun`, which repeats the recorded experiment or returns an error. The tests
//! compare the whole specifications in both run files.

use crate::test_support::{Server, create_new_folder, number_at_path, plimsoll, start_baseline};
use plimsoll_model::experiment_settings::OutputSettings;
use plimsoll_model::{ExperimentSettings, ExperimentSpec, RedactedText, codec};
use serde_json::Value;
use std::convert::Infallible;

/// Returns the specification of a run file, without parts that depend on the machine or the time,
/// and without output paths.
fn comparable_recorded_spec(file: &str) -> (ExperimentSpec, ExperimentSettings<RedactedText>) {
    let experiment = codec::decode(&std::fs::read(file).expect("a run file")).expect("a run file").experiment;
    let mut asked = experiment.spec.map_plans(|mut plan| {
        (plan.connection_plan.addresses, plan.connection_plan.connections_max) = (Vec::new(), 0);
        Ok::<_, Infallible>(plan)
    });
    if let Ok(ExperimentSpec::Find(find)) = &mut asked {
        find.preflight_ns = 0;
    }
    let Ok(asked) = asked;
    let settings = *experiment.settings.expect("settings");
    let output = OutputSettings { file: None, files: None, ..settings.output };
    (asked, ExperimentSettings { output, ..settings })
}

/// Runs a command line and reruns its record; `again` are further arguments of `rerun`. Returns the
/// documents of the first run and of the rerun.
fn record_and_rerun(name: &str, words: &[&str], again: &[&str]) -> (Value, Value) {
    let folder = create_new_folder("again");
    let (first, second) = (folder.join("first.plimsoll"), folder.join("second.plimsoll"));
    let (first, second) = (first.to_str().expect("text"), second.to_str().expect("text"));
    let dir = folder.to_str().expect("text");
    let output: &[&str] = if words[0] == "sweep" { &["--dir", dir, "--name", "first"] } else { &["-qo", first] };
    let done = plimsoll(&[words, output].concat());
    // On a busy machine, a short search may find no load line, but its specification is still
    // recorded. A short comparison has no verdict.
    let codes: &[i32] = match words[0] {
        "find" => &[0, 1],
        "prove" => &[0, 3],
        _ => &[0],
    };
    assert!(codes.contains(&done.code), "{name}: {}", done.stderr);
    let record = std::fs::read(first).expect("a run file");
    let repeated = plimsoll(&[&["rerun", first, "-o", second], again].concat());
    assert!(codes.contains(&repeated.code), "{name}: {}", repeated.stderr);
    assert!(repeated.stderr.contains("again: plimsoll "), "{name}: {}", repeated.stderr);
    assert_eq!(std::fs::read(first).expect("a run file"), record, "{name}: the record was written over");
    assert_eq!(comparable_recorded_spec(first), comparable_recorded_spec(second), "{name}");
    let shown = plimsoll(&["show", "--json", first, second]);
    let documents = shown.json();
    (documents[0].clone(), documents[1].clone())
}

#[test]
fn rerun_repeats_every_command_with_its_seed() {
    let server = start_baseline(1);
    let folder = create_new_folder("bodies");
    let body = folder.join("body");
    std::fs::write(&body, "0123456789").expect("written");
    let body = format!("@{}", body.display());
    let url = format!("{}/healthz?id=5", server.url);
    let secret = format!("{}/delay/2?token=abc", server.url);
    let other = format!("{}/delay/2?token=def", server.url);
    let delay = format!("{}/delay/2", server.url);
    let user = url.replace("http://", "http://me:s3cret@");
    let short = ["--spin=off", "--for", "100ms", "--warmup", "20ms", "--blocks", "2", "-c", "2", "--budget", "4s"];
    for (name, words, again) in [
        ("closed", vec!["run", "-c3", "-d", "100ms", &delay], vec![]),
        ("staged users", vec!["run", "-c", "2@100ms,4@100ms", &delay], vec![]),
        ("staged rate", vec!["run", "--rate", "0..300@300ms,300@200ms", "--arrivals", "poisson", &url], vec![]),
        ("counted", vec!["run", "-n", "30", "--no-keepalive", "--close", "reset", "-X", "PUT", &url], vec![]),
        // The helper `plimsoll` runs all rows except this row with `--spin=off`.
        ("harmless header", vec!["run", "--spin=auto", "-n", "5", "-H", "Accept: a/b", "--seed", "7", &url], vec![]),
        (
            "tuned",
            vec!["run", "--rate=50", "-d300ms", "-t1", "--spin=off", "--fail-if", "p99>9s", "--timeout=2s", &url],
            vec![],
        ),
        ("left out", vec!["run", "-n5", "-HX-Any: a", "-bxyz", &secret], vec!["-HX-Any:a", "-bxyz", "--url", &secret]),
        ("a file is sent", vec!["run", "-n5", "-b", &body, &url], vec!["--yes"]),
        ("public", vec!["run", "-n5", "--allow-public", &url], vec!["-y"]),
        ("sweep", vec!["sweep", "-c1,2", "--for", "100ms", &delay], vec![]),
        ("find", vec!["find", "--budget", "2s", "--max-rate", "500", &url], vec![]),
        ("prove", [&["prove", &delay, &delay][..], &short].concat(), vec![]),
        ("user", vec!["run", "-n5", &user], vec!["--url", &user]),
        ("ladder", [&["prove", "--ladder", &delay, &delay][..], &short].concat(), vec![]),
        ("secret sides", [&["prove", &secret, &other][..], &short].concat(), vec!["--url", &secret, "--url", &other]),
    ] {
        let (first, second) = record_and_rerun(name, &words, &again);
        assert_eq!(number_at_path(&first, "seed"), number_at_path(&second, "seed"), "{name}");
        for same in ["url", "method", "load", "slo", "sides", "measure"] {
            // A load that a measurement found may differ between record and rerun.
            assert!(
                same == "load" && first[same].is_number() || first[same] == second[same],
                "{name} {same}: {first:#}"
            );
        }
    }
}

fn record_run(server: &Server, words: &[&str]) -> String {
    let file = create_new_folder("record").join("record.plimsoll");
    let file = file.to_str().expect("text").to_owned();
    let url = format!("{}/healthz", server.url);
    let bare = [url.as_str()];
    let target: &[&str] = if words.len() < 4 { &bare } else { &[] };
    let done = plimsoll(&[words, &["-qo", &file], target].concat());
    assert!([0, 2, 3].contains(&done.code), "{words:?}: {}", done.stderr);
    file
}

#[test]
fn rerun_refuses_changed_inputs() {
    let server = start_baseline(1);
    let plain = format!("{}/delay/2", server.url);
    let (a, b) = (format!("{plain}?token=abc"), format!("{plain}?token=def"));
    let short = ["--spin=off", "--for", "100ms", "--warmup", "20ms", "--blocks", "2", "-c", "2", "--budget", "10s"];
    let run = record_run(&server, &["run", "-n5", "-HAuthorization:x", "-bxyz", &a]);
    let bare = record_run(&server, &["run", "-n5"]);
    let public = record_run(&server, &["run", "-n5", "--allow-public"]);
    let sides = record_run(&server, &[&["prove", &a, &b][..], &short].concat());
    let marker = create_new_folder("marker").join("ran");
    let touch = format!("touch {}; exec sleep 60", marker.display());
    let start = ["--start-timeout", "200ms", "http://127.0.0.1:9/"];
    let builds = record_run(&server, &[&["prove", "--a", &touch, "--b", &touch][..], &start].concat());
    let whole =
        record_run(&server, &[&["prove", "--record-commands", "--a", &touch, "--b", &touch][..], &start].concat());
    let _ = std::fs::remove_file(&marker);
    let body = create_new_folder("body").join("body");
    std::fs::write(&body, "four").expect("written");
    let at = format!("@{}", body.display());
    let sent = record_run(&server, &["run", "-n5", "-b", &at, &plain]);
    std::fs::write(&body, "five5").expect("written");
    let link = create_new_folder("link").join("link.plimsoll");
    std::os::unix::fs::symlink(&bare, &link).expect("a link");
    let link = link.to_str().expect("text");
    let given = ["-HAuthorization:x", "-bxyz", "--url", &a];
    for (words, said) in [
        (vec![run.as_str()], "--url"),
        (vec![&run, "-bxyz", "--url", &a], "-H 'Authorization"),
        (vec![&run, "-HAuthorization:x", "-bxy", "--url", &a], "--body"),
        (vec![&run, "-HAuthorization:x", "-bxyy", "--url", &a], "--body"),
        (vec![&run, "-HAuthorization:x", "-bxyz", "--url", &plain], "differs from the record"),
        ([&[run.as_str()][..], &given, &["-HAccept:x"]].concat(), "--header"),
        ([&[run.as_str()][..], &given, &["--url", &a]].concat(), "--url"),
        (vec![&bare, "--url", &plain], "--url"),
        (vec![&bare, "-HAccept:x"], "--header"),
        (vec![&bare, "--a", "true"], "--a"),
        (vec![&bare, "-o", &bare], "the run file that rerun reads"),
        (vec![&bare, "-o", link], "the run file that rerun reads"),
        (vec![&public], "--yes"),
        (vec![&sides], "--url"),
        (vec![&sides, "--url", &a], "--url"),
        (vec![&sides, "--url", &a, "--url", &a], "--url"),
        (vec![&builds], "--a"),
        (vec![&builds, "--yes"], "--a"),
        (vec![&builds, "--a", "true", "--b", &touch], "--a"),
        (vec![&whole], "--yes"),
        (vec![&sent, "--yes"], "body"),
    ] {
        let done = plimsoll(&[&["rerun"][..], &words].concat());
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{words:?}: {}", done.stderr);
        assert!(done.stderr.contains(said), "{words:?}: {}", done.stderr);
    }
    assert!(!marker.exists(), "a command of a file was run without leave");
    let printed = plimsoll(&["rerun", &whole, "--print"]);
    assert!(printed.code == 0 && printed.stdout.contains("exec sleep 60"), "{}{}", printed.stdout, printed.stderr);
    assert!(!plimsoll(&["rerun", &builds, "--print"]).stdout.contains("exec sleep 60"));
}
