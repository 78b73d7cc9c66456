//! Tests `prove --pprof`: profiles of both sides, taken in turn, show which function makes the
//! difference.

use crate::prove::free_port;
use crate::test_support::{
    create_new_folder, go_binary, go_server, number_at_path, path_in_new_folder, plimsoll, plimsoll_without_turn,
};
use serde_json::Value;

#[test]
fn the_function_that_makes_the_difference_is_named() {
    let go = go_server();
    let file = &path_in_new_folder("prove-profiles", "prove.plimsoll");
    let (a, b) = (go.url.clone(), format!("{}/costly?key=s3cret", go.url));
    let common = ["--blocks", "4", "--for", "200ms", "--measure", "p50", "--rate", "1000", "--pprof-seconds", "1"];
    let done = plimsoll(&[&["prove", "--pprof", &a, &b, "--json", "-o", file], &common[..]].concat());
    assert!([0, 3].contains(&done.code), "{}", done.stderr);
    let document = done.json();
    let profiles = &document["profiles"];
    assert_eq!(profiles["missing"], serde_json::json!([]), "{profiles:#}");
    for side in 0..2 {
        assert_eq!(profiles["files"][side].as_array().map(Vec::len), Some(4), "{profiles:#}");
        assert!(profiles["requests"][side].as_f64().is_some_and(|requests| requests > 0.0), "{profiles:#}");
    }
    let top = profiles["comparison"]["top"].as_array().expect("rows");
    let row = |name: &str| top.iter().find(|row| row["function"] == name);
    let costly = row("main.costly").unwrap_or_else(|| panic!("{profiles:#}"));
    assert_eq!(costly["flat"]["finding"], true, "{costly:#}");
    assert!(
        number_at_path(costly, "flat.before") == 0.0 && number_at_path(costly, "flat.delta") > 20_000.0,
        "{costly:#}"
    );
    assert_eq!(top[0], *costly, "it leads");
    // The run file, the page and the text show the same result.
    assert_eq!(plimsoll(&["show", "--json", file]).json()["profiles"], *profiles);
    let text = plimsoll(&["show", "-v", file]).stdout;
    assert!(text.contains("CPU time per request by function") && text.contains("main.costly"), "{text}");
    let page = std::fs::read_to_string(file.replace(".plimsoll", ".html")).expect("a page");
    assert!(page.contains("main.costly"));
    assert!(!(done.stdout + &done.stderr + &text + &page).contains("s3cret"));
}

#[test]
fn an_unprofilable_build_is_one_sentence() {
    let server = crate::test_support::start_baseline(1);
    let url = format!("{}/healthz", server.url);
    for (arguments, part) in [
        (&["prove", "--pprof", &url, &url][..], "net/http/pprof"),
        (&["prove", "--pprof=http://127.0.0.1:1", &url, &url], "--pprof=URL_A,URL_B"),
        (&["prove", "--pprof=http://127.0.0.1:1,x:y:z", &url, &url], "--pprof"),
        (&["prove", "--ladder", "--pprof", &url, &url], "--ladder"),
    ] {
        let done = plimsoll_without_turn(arguments);
        assert_eq!(done.code, 2, "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains(part) && done.stderr.trim().lines().count() == 1, "{}", done.stderr);
        let nothing: Option<Value> = serde_json::from_str(&done.stdout).ok();
        assert_eq!(nothing, None);
    }
}

/// Checks that profiles still belong to the right sides if a build fails at its first start.
#[test]
fn profiles_stay_on_their_side_if_one_is_missing() {
    let file = create_new_folder("prove-turns").join("prove.plimsoll");
    let (port, folder) = (free_port(), file.parent().expect("a folder").display().to_string());
    let go = format!("ADDRESS=127.0.0.1:{port} exec {}", go_binary().display());
    // The script of build A fails once, at its first start for a profile. `--before-block` creates
    // the file `block` before each block, so the script distinguishes starts for a block from
    // starts for a profile.
    let a = format!(
        "cd {folder}; if [ -e climbed ] && [ ! -e block ] && [ ! -e failed ]; then touch failed; exit 3; fi; \
         touch climbed; rm -f block; {go}"
    );
    let announce = format!("touch {folder}/block");
    let b = format!("COSTLY=1; export COSTLY; {go}");
    let url = format!("http://127.0.0.1:{port}/");
    let path = file.to_str().expect("text");
    let load = ["--blocks", "2", "--for", "200ms", "--warmup", "50ms", "-c", "1", "--pprof-seconds", "1", "--pprof"];
    let sides = ["prove", "--a", &a, "--b", &b, &url, "--before-block", &announce, "--json", "-q", "-o", path];
    let done = plimsoll(&[&sides[..], &load[..]].concat());
    // On a busy machine both blocks may be void. Even without a valid block, profiles are taken if
    // the comparison has found a rate.
    let document = done.json();
    let profiles = &document["profiles"];
    if profiles["rate_rps"].as_f64().is_none_or(|rate| rate <= 0.0) {
        assert!(profiles["missing"].to_string().contains("no load"), "{document:#}");
        return;
    }
    let mut missing = profiles["missing"].as_array().expect("texts").iter().filter_map(|text| text.as_str());
    let is_exit_of_a =
        |text: &str| text.starts_with("a1: no profile: ") && text.contains(": A ended unexpectedly with exit code 3");
    assert!(missing.any(is_exit_of_a), "{profiles:#}");
    let files = |side: usize| profiles["files"][side].as_array().map_or(0, Vec::len);
    assert_eq!((files(0), files(1)), (3, 4), "{profiles:#}");
    let top = profiles["comparison"]["top"].as_array().expect("rows");
    let costly = top.iter().find(|row| row["function"] == "main.costly").unwrap_or_else(|| panic!("{profiles:#}"));
    assert!(number_at_path(costly, "flat.before") == 0.0 && number_at_path(costly, "flat.delta") > 0.0, "{costly:#}");
    // The text, the page and the record show the same profiles.
    assert_eq!(plimsoll(&["show", "--json", path]).json()["profiles"], *profiles);
    for text in
        [plimsoll(&["show", "-v", path]).stdout, std::fs::read_to_string(file.with_extension("html")).expect("a page")]
    {
        assert!(text.contains("a1: no profile:"), "{text}");
    }
}
