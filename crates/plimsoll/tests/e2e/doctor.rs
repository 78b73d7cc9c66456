//! Tests `plimsoll doctor`: the screen, the document and the exit code.

use crate::test_support::plimsoll;

/// Checks that the worst check of `doctor` decides the exit code.
#[test]
fn this_machine_is_checked_and_measured() {
    let done = plimsoll(&["doctor", "--json"]);
    let document = done.json();
    let fitness = document["fitness"].as_str().expect("a word");
    assert_eq!(done.code, i32::from(fitness == "unfit"), "{}{}", done.stdout, done.stderr);
    let checks = document["checks"].as_array().expect("a list");
    let worst =
        ["unfit", "limited", "fit"].into_iter().find(|word| checks.iter().any(|check| check["fitness"] == *word));
    assert_eq!(worst, Some(fitness), "{document:#}");
    for check in checks.iter().filter(|check| check["fitness"] == "unfit") {
        assert!(check["remedy"].is_string(), "{check}");
    }
    let measured = &document["measured"];
    let number = |name: &str| measured[name].as_f64().unwrap_or_else(|| panic!("{name}: {document:#}"));
    assert!(number("highest_rps") > 1000.0 && number("rate_rps") <= 10_000.0, "{measured}");
    // On current processors, a request costs some microseconds of CPU time.
    assert!((0.5..500.0).contains(&number("cpu_us")), "{measured}");
    assert!(document["machine"]["files_max"].as_u64().is_some_and(|files| files > 0), "{document:#}");
}

#[test]
fn a_quick_doctor_check_is_one_screen() {
    let done = plimsoll(&["doctor", "--quick"]);
    assert!(done.code <= 1 && done.stderr.is_empty(), "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.starts_with("this machine is "), "{}", done.stdout);
    assert!(done.stdout.lines().count() <= 25, "{}", done.stdout);
    for check in ["cores", "governor", "interference", "open files", "ports", "container", "probes", "sampling"] {
        assert!(done.stdout.contains(check), "no {check}: {}", done.stdout);
    }
    assert!(!done.stdout.contains("reference server"), "{}", done.stdout);
    let done = plimsoll(&["doctor", "http://127.0.0.1:1/"]);
    assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{}", done.stderr);
}
