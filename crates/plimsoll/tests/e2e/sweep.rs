//! Tests `plimsoll sweep`: the table, the file of the table, and concurrencies for which this
//! machine has too few resources.

use crate::test_support::{create_new_folder, plimsoll, run_to_json, start_baseline};
use plimsoll_bench::servers::start_slots_server;
use std::process::{Command, Stdio};

#[test]
fn a_sweep_writes_its_table() {
    let server = start_baseline(1);
    let folder = create_new_folder("sweep");
    let (dir, url) = (folder.to_str().expect("text"), format!("{}/delay/2", server.url));
    let done = plimsoll(&["sweep", &url, "-c", "1,2,4", "--for", "200ms", "--name", "api", "--dir", dir, "-qv"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    // The table has a heading and three rows. Additional lines that explain a disturbed concurrency
    // are not counted.
    let rows = done.stdout.lines().take_while(|line| !line.is_empty());
    assert_eq!(rows.filter(|line| !line.contains("measured while other software")).count(), 4, "{}", done.stdout);
    assert!(done.stdout.contains("peak: ") && done.stdout.contains("requests/s with "), "{}", done.stdout);
    let table = std::fs::read_to_string(folder.join("api.dat")).expect("a table");
    let rows: Vec<Vec<f64>> =
        table.lines().map(|line| line.split(' ').map(|field| field.parse().expect("a number")).collect()).collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), [1.0, 2.0, 4.0]);
    for row in &rows {
        assert!(row.len() == 4 && row[1] > 0.0 && row[2] >= 0.0 && row[3] == 100.0, "{row:?}");
    }
    let shown = plimsoll(&["show", "-v", folder.join("api.plimsoll").to_str().expect("text")]);
    assert_eq!(shown.stdout, done.stdout);
    let document = run_to_json(&["sweep", &url, "-c", "2", "--for", "100ms", "--dir", dir]);
    assert_eq!(document["schema"], "plimsoll.sweep/1");
    assert_eq!(document["levels"][0]["concurrency"], 2);
    assert_eq!((&document["peak"]["concurrency"], &document["knee"]["concurrency"]), (&2.into(), &2.into()));
    assert!(document["warnings"].is_array());
}

#[test]
fn a_sweep_keeps_its_budget_and_reports_its_peak() {
    let server = start_slots_server(64, 20.0).expect("starts");
    let folder = create_new_folder("budget");
    let (dir, url) = (folder.to_str().expect("text"), server.url("/"));
    let began = std::time::Instant::now();
    let document = run_to_json(&["sweep", &url, "--budget", "8s", "--dir", dir]);
    assert!(began.elapsed().as_secs_f64() < 16.0, "{:?} of 8 s", began.elapsed());
    let levels = document["levels"].as_array().expect("levels");
    let users: Vec<u64> = levels.iter().filter_map(|level| level["concurrency"].as_u64()).collect();
    assert_eq!(users, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]);
    // Peak and knee are rows of the table, with the same figures.
    for what in ["peak", "knee"] {
        let found = &document[what];
        let level = levels.iter().find(|level| level["concurrency"] == found["concurrency"]).expect("a level");
        assert_eq!(level["throughput_rps"], found["rps"], "{what}");
    }
    // 64 users saturate the server; with 32 users its goodput is half.
    assert!(document["knee"]["concurrency"].as_u64().is_some_and(|users| users >= 64), "{document:#}");
    let page = std::fs::read_to_string(folder.join("sweep.html")).expect("a page");
    assert!(page.contains("CPU a request") && page.contains("Peak: "), "columns of the server, and the answer");
    // A concurrency that the budget left unmeasured has an `error`, but does not count as failed.
    let measured = || levels.iter().filter(|level| level.get("error").is_none());
    assert!(measured().count() >= 8, "{levels:?}");
    let all = measured().all(|level| level["success_rate"] == 1.0);
    assert_eq!(page.contains("First failures at"), !all, "a picture of 100 % shows nothing");
    assert!(!page.contains("Every request succeeded"));
    let refused = plimsoll(&["sweep", &url, "--budget", "1s", "--dir", dir]);
    assert!(refused.code == 2 && refused.stderr.contains("-c"), "{}", refused.stderr);
}

#[test]
fn confidence_intervals_come_from_repeated_loads() {
    let server = start_baseline(1);
    let folder = create_new_folder("visits");
    let (dir, url) = (folder.to_str().expect("text"), format!("{}/delay/20", server.url));
    let document = run_to_json(&["sweep", &url, "-c", "2,8", "--budget", "9s", "--dir", dir]);
    for level in document["levels"].as_array().expect("levels") {
        let visits = level["visits"].as_array().expect("visits");
        assert!(visits.len() >= 3, "{visits:?}");
        assert_eq!(level["throughput_error_of"], "visits");
        // The throughput of a concurrency is the number of responses in all its loads, divided by
        // their total time.
        let sum = |of: &dyn Fn(&serde_json::Value) -> f64| visits.iter().map(of).sum::<f64>();
        let seconds = sum(&|visit| visit["duration_s"].as_f64().expect("a length"));
        let answers = sum(&|visit| {
            visit["duration_s"].as_f64().expect("a length") * visit["throughput_rps"].as_f64().expect("a rate")
        });
        let rate = level["throughput_rps"].as_f64().expect("a rate");
        assert!((answers / seconds / rate - 1.0).abs() < 1e-3, "{visits:?}, {rate}");
    }
    let text = plimsoll(&["show", folder.join("sweep.plimsoll").to_str().expect("text")]).stdout;
    assert!(text.contains("loads with each user count"), "{text}");
    assert_eq!(std::fs::read_to_string(folder.join("sweep.dat")).expect("a table").lines().count(), 2);
    let once = plimsoll(&["sweep", &url, "-c", "2", "--for", "600ms", "--dir", dir, "--quiet"]);
    assert!(once.stdout.contains("valid within this run only"), "{}", once.stdout);
}

#[test]
fn an_impossible_level_is_reported_and_not_fatal() {
    let server = start_baseline(1);
    let folder = create_new_folder("limit");
    let script = format!(
        "ulimit -n 64; exec {} sweep {}/healthz -t 1 -c 2,500 --for 100ms --quiet --dir {}",
        env!("CARGO_BIN_EXE_plimsoll"),
        server.url,
        folder.display()
    );
    let output = Command::new("bash").args(["-c", &script]).stdin(Stdio::null()).output().expect("bash");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains("open files") && stdout.contains("-t 16"), "{stdout}");
    assert_eq!(std::fs::read_to_string(folder.join("sweep.dat")).expect("a table").lines().count(), 1);
    // The run file and the page also show the concurrency that failed.
    let shown = plimsoll(&["show", folder.join("sweep.plimsoll").to_str().expect("text")]);
    assert_eq!(shown.stdout, stdout);
    let page = std::fs::read_to_string(folder.join("sweep.html")).expect("a page");
    assert!(page.contains("the load with 500 users was not measured: ") && page.contains("open files"));
}
