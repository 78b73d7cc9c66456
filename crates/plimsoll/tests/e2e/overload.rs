//! Tests `plimsoll overload`: real servers under loads above their load line, and their recovery.

use crate::test_support::{
    create_new_folder, number_at_path, path_in_new_folder, plimsoll, plimsoll_without_turn, run_to_json, start_baseline,
};
use plimsoll_bench::servers::start_token_bucket_server;

#[test]
fn throughput_above_the_load_line_is_reported() {
    let limited = start_token_bucket_server(300.0, 30.0).expect("starts");
    let file = create_new_folder("overload").join("overload.plimsoll");
    let path = file.to_str().expect("text");
    let document = run_to_json(&["overload", &limited.url("/"), "--line", "300", "--budget", "17s", "-o", path]);
    assert_eq!(document["schema"], "plimsoll.overload/1");
    assert!(number_at_path(&document, "elapsed_s") <= 17.5, "{:#}", document["elapsed_s"]);
    let steps = document["steps"].as_array().expect("steps");
    let factors: Vec<f64> = steps.iter().map(|step| number_at_path(step, "factor")).collect();
    assert_eq!(factors, [0.5, 1.0, 1.5, 2.0, 3.0, 0.5]);
    for step in steps {
        let offered = number_at_path(step, "offered_rps") / (300.0 * number_at_path(step, "factor"));
        // Arrivals are random. The shortest step has about 425 arrivals, so 25 % are five standard
        // deviations.
        assert!((0.75..1.25).contains(&offered), "{step:#}");
    }
    assert!(number_at_path(&steps[4], "refused.too_much") > 300.0, "{:#}", steps[4]);
    // On a disturbed machine, late responses add to the lost requests, so the verdict may differ
    // from `sheds`.
    let verdict = document["verdict"].as_str().expect("a word");
    let disturbed = document["warnings"].as_array().is_some_and(|warnings| !warnings.is_empty());
    assert!(verdict == "sheds" && document["recovered"] == true || disturbed, "{document:#}");
    assert_eq!(document["retry_after"], false);
    let shown = plimsoll(&["show", "--json", path]);
    assert_eq!(shown.json()["steps"], document["steps"], "{}", shown.stderr);
    assert!(plimsoll(&["show", path]).stdout.contains(verdict));
    assert!(
        std::fs::read_to_string(file.with_extension("html")).expect("a page").contains("Past the load line and back")
    );
}

#[test]
fn refused_requests_are_retried() {
    let limited = start_token_bucket_server(200.0, 20.0).expect("starts");
    let path = &path_in_new_folder("overload-again", "overload.plimsoll");
    let url = limited.url("/");
    let document = run_to_json(&["overload", &url, "--line", "200", "--retries", "2", "--budget", "17s", "-o", path]);
    let steps = document["steps"].as_array().expect("steps");
    // At half of the load line (the first step), the server refuses few requests, so plimsoll
    // retries few requests. At three times the load line (the fifth step), most requests are
    // retried repeatedly.
    assert!(number_at_path(&steps[0], "again_rps") <= 20.0, "{:#}", steps[0]);
    let third = &steps[4];
    let (offered, again) = (number_at_path(third, "offered_rps"), number_at_path(third, "again_rps"));
    // The offered rate varies, because arrivals are random, and the fifth step has only about a
    // thousand arrivals.
    assert!((0.85..1.15).contains(&(offered / 600.0)) && again > 0.5 * offered, "{third:#}");
    assert!(number_at_path(third, "refused.too_much") > 0.8 * again, "{third:#}");
    assert_eq!(document["retries"], 2);
    assert_eq!(plimsoll(&["show", "--json", path]).json()["steps"], document["steps"]);
    assert!(plimsoll(&["show", path]).stdout.contains("/s again"));
    for (arguments, expect) in [
        (["--retries", "11", "-q"], "at most"),
        (["--retries=1", "--lua", ""], "only one constant request"),
        (["--budget", "14s", "-q"], "take at least 17.0 s"),
    ] {
        let refused = plimsoll(&[&["overload", &url, "--line", "200"][..], &arguments].concat());
        assert!(refused.code == 2 && refused.stderr.contains(expect), "{}", refused.stderr);
    }
}

/// Checks that two targets get the same load. One target refuses excess requests, the other target
/// serves all requests.
#[test]
fn another_target_gets_the_same_load() {
    let (limited, open) = (start_token_bucket_server(200.0, 20.0).expect("starts"), start_baseline(1));
    let path = &path_in_new_folder("overload-against", "overload.plimsoll");
    let (url, other) = (limited.url("/"), format!("{}/delay/1", open.url));
    let words = ["overload", &url, "--line", "200", "--against", &other, "--budget", "34s", "-o", path];
    let document = run_to_json(&words);
    assert!(number_at_path(&document, "elapsed_s") <= 34.5, "{:#}", document["elapsed_s"]);
    let (steps, against) = (&document["steps"], &document["against"]["steps"]);
    let refused = |steps: &serde_json::Value| number_at_path(&steps[4], "refused.too_much");
    assert!(refused(steps) > 200.0 && refused(against) == 0.0, "{against:#}");
    let offered = |steps: &serde_json::Value| number_at_path(&steps[4], "offered_rps");
    assert!((0.95..1.05).contains(&(offered(against) / offered(steps))), "{against:#}");
    assert!(number_at_path(&against[4], "answered_rps") > 400.0, "{against:#}");
    assert!(document["against"]["target"].as_str().is_some_and(|target| target.contains(&open.url[7..])));
    assert_eq!(plimsoll(&["show", "--json", path]).json()["against"], document["against"]);
    assert!(plimsoll(&["show", path]).stdout.contains("against "));
    let refused = plimsoll(&["overload", &url, "--lua", "", "--against", &other]);
    assert!(refused.code == 2 && refused.stderr.contains("--against"), "{}", refused.stderr);
}

#[test]
fn the_line_flag_needs_a_rate() {
    for (line, expect) in [("0", "--line"), ("fast", "--line")] {
        let refused = plimsoll_without_turn(&["overload", "http://127.0.0.1:9/", "--line", line]);
        assert!(refused.code == 2 && refused.stderr.contains(expect), "{}", refused.stderr);
    }
}

/// Checks the error about a server that never meets the SLO. The error must say that there is no
/// load line, and must not call the run file incomplete.
#[test]
fn a_server_without_a_load_line_is_reported() {
    let server = start_baseline(1);
    let path = &path_in_new_folder("overload-without", "overload.plimsoll");
    let refused = plimsoll(&["overload", &format!("{}/nothing-here", server.url), "--budget", "29s", "-q", "-o", path]);
    assert!(refused.code == 2 && refused.stderr.contains("no load met the SLO"), "{}", refused.stderr);
}
