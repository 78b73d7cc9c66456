//! Tests the store (a folder of run files): recorded source revisions, and the commands `history`,
//! `gate`, `clean` and `diff`.

use crate::test_support::{command, create_new_folder, plimsoll, start_baseline, wait_for_exit};
use plimsoll_model::codec::{self, Frame};
use plimsoll_model::{LineSummary, SourceRevision, StudySummary};
use std::path::Path;
use std::process::{Command, Stdio};

/// Creates a repository with one commit on `main`.
fn create_git_repository(name: &str) -> std::path::PathBuf {
    let folder = create_new_folder(name);
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(&folder).args(["-c", "user.name=a", "-c", "user.email=a@b.test"]).args(words);
        assert!(command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("git").success(), "{words:?}");
    };
    git(&["init", "-b", "main"]);
    std::fs::write(folder.join("a.txt"), "a").expect("written");
    git(&["add", "a.txt"]);
    git(&["commit", "-m", "a"]);
    folder
}

#[test]
fn a_run_records_its_source_revision() {
    let server = start_baseline(1);
    let url = format!("{}/healthz", server.url.trim_end_matches('/'));
    let (repository, store) = (create_git_repository("history-origin"), create_new_folder("history-origin-store"));
    let store_text = store.to_str().expect("text");
    let run = |more: &[&str]| {
        let store = format!("--store={store_text}");
        let words = [&["run", "-c", "2", "-d", "300ms", "-q", store.as_str(), url.as_str()][..], more].concat();
        let mut command = command(&words);
        let child = command.current_dir(&repository).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        wait_for_exit(child.expect("the binary starts"))
    };
    let done = run(&["--tag", "release=1.4", "--tag=who=ann"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    std::fs::write(repository.join("a.txt"), "b").expect("written");
    assert_eq!(run(&[]).code, 0);
    let document = plimsoll(&["history", "--json", "--store", store_text]).json();
    let runs = document["lanes"][0]["runs"].as_array().expect("runs").clone();
    assert_eq!(runs.len(), 2, "{document}");
    assert_eq!(runs[0]["tags"], serde_json::json!([["release", "1.4"], ["who", "ann"]]));
    let revision = &runs[0]["revision"];
    assert_eq!((&revision["branch"], &revision["dirty"]), (&"main".into(), &false.into()));
    assert_eq!(revision["commit"].as_str().map(str::len), Some(40));
    assert_eq!(runs[1]["revision"]["dirty"], true);
    assert!(runs[0]["summary"]["goodput_rps"]["value"].as_f64().is_some_and(|rps| rps > 100.0), "{document}");
    // A history by commit does not count a run with uncommitted changes, and gives the reason.
    let document = plimsoll(&["history", "--json", "--by", "commit", "--store", store_text]).json();
    assert!(document["lanes"][0]["runs"][1]["not_counted"].is_string(), "{document}");
    let text = plimsoll(&["history", "--store", store_text]);
    assert!(text.stdout.contains("goodput") && text.stdout.contains("target on it"), "{}", text.stdout);

    // `clean` keeps tagged runs.
    let done = plimsoll(&["clean", "--keep", "0", "--dir", store_text]);
    assert!(done.stdout.contains("1 of 2 runs"), "{}", done.stdout);
    assert_eq!(run_files(&store).len(), 1);
}

fn run_files(store: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(store).expect("a folder").flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|suffix| suffix == "plimsoll")).collect()
}

/// Creates a store (a folder of run files) with one search for each entry of `lines`: its load line
/// and its branch. Each run file has the changed header of a recorded search, and an end without
/// trials.
fn create_history_store(name: &str, lines: &[(f64, &str)]) -> std::path::PathBuf {
    let folder = create_new_folder(name);
    let recorded = std::fs::read(crate::test_support::copy_recorded_run_file("find")).expect("a recording");
    let head = codec::read_head(&recorded).expect("a head");
    for (number, (rps, branch)) in lines.iter().enumerate() {
        let mut header = head.clone();
        header.started_unix_ms = 1_700_000_000_000 + number as u64 * 60_000;
        header.environment.revision = Some(SourceRevision {
            commit: format!("{number:09x}{:031}", 0),
            branch: Some((*branch).to_owned()),
            dirty: Some(false),
            committed_unix_s: Some(1_700_000_000 + number as u64),
        });
        let mut bytes = codec::MAGIC.to_vec();
        Frame::Experiment(Box::new(header)).encode(&mut bytes);
        let line = LineSummary { rps: *rps, lower: rps * 0.99, upper: Some(rps * 1.01), confirmed: true };
        let summary = StudySummary { load_line: Some(line), cause: Some("cpu".into()), ..StudySummary::default() };
        Frame::ExperimentEnd { elapsed_ns: 1, summary: Some(Box::new(summary)) }.encode(&mut bytes);
        let path = folder.join(format!("find-{}-4194999.plimsoll", 1_700_000_000 + number));
        std::fs::write(path, bytes).expect("written");
    }
    folder
}

#[test]
fn a_gate_gives_each_verdict() {
    let noise = [0.0, 3.0, -2.0, 1.0, -3.0, 2.0, 0.5, -1.0, 2.5, -2.5];
    let main: Vec<(f64, &str)> = noise.iter().map(|noise| (2000.0 + noise, "main")).collect();
    for (line, code, verdict) in
        [(1800.0, 1, "worse"), (2200.0, 0, "better"), (2001.0, 0, "same"), (1962.0, 3, "not known")]
    {
        let all = [&main[..], &[(line, "feature")]].concat();
        let store = create_history_store(&format!("gate-{code}-{line}"), &all);
        let store = store.to_str().expect("text");
        let done = plimsoll(&["gate", "--against", "main", "--json", "--store", store]);
        let document = done.json();
        assert_eq!((done.code, &document["verdict"]), (code, &verdict.into()), "{document}");
    }
    let few = create_history_store("gate-few", &[(2000.0, "main"), (1000.0, "feature")]);
    let done = plimsoll(&["gate", "--against", "main", "--store", few.to_str().expect("text")]);
    assert_eq!(done.code, 3, "{}{}", done.stdout, done.stderr);
    assert!(
        done.stdout.contains("main has 1 comparable run") && done.stdout.contains("plimsoll prove"),
        "{}",
        done.stdout
    );
    for (words, expect) in [
        (&["gate", "@9", "--against", "main"][..], "has 2 finished runs"),
        (&["gate", "@other", "--against", "main"], "no run of the store"),
        (&["gate", "nowhere.plimsoll", "--against", "main"], "cannot be read"),
    ] {
        let done = plimsoll(&[words, &["--store", few.to_str().expect("text")]].concat());
        assert_eq!(done.code, 2, "{words:?}");
        assert!(done.stderr.contains(expect) && done.stderr.lines().count() == 1, "{words:?}: {}", done.stderr);
    }
}

#[test]
fn a_planted_change_is_named_with_its_commit() {
    let lines: Vec<(f64, &str)> = (0..30)
        .map(|number| (if number < 18 { 2000.0 } else { 1880.0 } + f64::from(number % 5) * 4.0, "main"))
        .collect();
    let store = create_history_store("history-change", &lines);
    let store = store.to_str().expect("text");
    let document = plimsoll(&["history", "--by", "commit", "--json", "--store", store]).json();
    let changes = document["lanes"][0]["changes"].as_array().expect("changes").clone();
    assert_eq!(changes.len(), 1, "{document}");
    assert_eq!((&changes[0]["point"], &changes[0]["at"]), (&18.into(), &"000000012".into()));
    assert!((changes[0]["ratio"].as_f64().expect("a ratio") - 0.94).abs() < 0.005, "{}", changes[0]);
    let text = plimsoll(&["history", "--by=commit", "--last=3", "--store", store]).stdout;
    assert!(text.contains("-5.9 %") && text.contains("\u{2586}\u{2583}"), "{text}");
    // The small chart (sparkline) of a long series of runs still fits on a line.
    let long = self::create_history_store("history-long", &[(2000.0, "main"); 90]);
    let text = plimsoll(&["history", "--store", long.to_str().expect("text")]).stdout;
    let sparks = |line: &str| line.chars().filter(|spark| ('\u{2581}'..='\u{2588}').contains(spark)).count();
    assert_eq!(text.lines().map(sparks).max(), Some(72), "{text}");
    // `diff` accepts the number of a run in the store, such as `@2`; a store of 30 runs has no run
    // `@999`.
    let done = plimsoll(&["diff", "@2", "@999", "--store", store]);
    assert_eq!(done.code, 2, "{}", done.stderr);
    assert!(done.stderr.contains("has 30 finished runs"), "{}", done.stderr);
}
