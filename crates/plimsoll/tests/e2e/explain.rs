//! Tests `plimsoll explain` with one real server that has a known bottleneck, and with recorded
//! studies (scripts/record).

use crate::test_support::{
    Server, copy_recorded_run_file, create_new_folder, number_at_path, plimsoll, run_to_json, start_baseline,
    start_server_process,
};
use serde_json::Value;
use std::process::Command;

/// Starts a server that accepts 300 requests/s with bursts of 60 and refuses the rest. The server
/// runs in its own process, so that the CPU time of other tests does not count as the server's CPU
/// time.
fn start_rate_limited_server() -> Server {
    const SOURCE: &str = r#"
import asyncio, time
rate, burst = 300.0, 60.0
tokens, filled = burst, time.monotonic()
class Limited(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
    def data_received(self, data):
        global tokens, filled
        for _ in range(data.count(b"\r\n\r\n")):
            now = time.monotonic()
            tokens, filled = min(burst, tokens + (now - filled) * rate), now
            status = b"200 OK" if tokens >= 1 else b"429 Too Many Requests"
            tokens -= tokens >= 1
            self.transport.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\n\r\nok")
async def main():
    server = await asyncio.get_running_loop().create_server(Limited, "127.0.0.1", 0)
    print("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"#;
    start_server_process(Command::new("python3").args(["-c", SOURCE]), "python3")
}

/// Whether the generator was the limit or interference disturbed the machine, so that the result
/// has no information about the server.
fn was_generator_limited_or_disturbed(document: &Value) -> bool {
    let warnings = document["warnings"].as_array().expect("warnings");
    let disturbed = warnings.iter().any(|warning| warning.as_str().is_some_and(|text| text.contains("disturbed")));
    disturbed || document["cause"] == "client"
}

/// Explains a live server up to three times, until `cause` is named. Any other named cause must be
/// interference, the generator or "unknown", and never a wrong cause.
fn explain_until_cause_named(url: &str, file: &str, cause: &str) -> Value {
    let explain = || run_to_json(&["explain", url, "--budget", "15s", "-o", file]);
    let mut document = explain();
    for _ in 0..2 {
        let named = document["cause"].as_str().expect("a word");
        assert!([cause, "neighbour", "client", "unknown"].contains(&named), "{}", document["sentence"]);
        if named == cause || was_generator_limited_or_disturbed(&document) {
            break;
        }
        document = explain();
    }
    document
}

/// Checks that the cause of a live server's bottleneck is named in the run file and on the page.
/// Only this test names the bottleneck of a live server; recorded studies test the other causes.
#[test]
fn the_bottleneck_of_a_live_server_is_named() {
    let limited = start_rate_limited_server();
    let file = create_new_folder("explain").join("limiter.plimsoll");
    let path = file.to_str().expect("text");
    let document = explain_until_cause_named(&format!("{}/", limited.url), path, "limiter");
    assert_eq!(document["schema"], "plimsoll.explain/2");
    assert!(number_at_path(&document, "elapsed_s") <= 15.5, "{:#}", document["elapsed_s"]);
    let named = document["cause"].as_str().expect("a word");
    let wide = ["limiter", "neighbour", "client", "unknown"];
    let allowed = if was_generator_limited_or_disturbed(&document) { &wide[..] } else { &wide[..1] };
    assert!(allowed.contains(&named), "{} {:#}", document["sentence"], document["causes"]);
    assert_eq!(plimsoll(&["show", "--json", path]).json()["sentence"], document["sentence"]);
    // The page uses other words for an unknown cause than the document.
    let on_page = if named == "unknown" { "ot known" } else { named };
    assert!(std::fs::read_to_string(file.with_extension("html")).expect("a page").contains(on_page));
}

/// Checks that the findings of a recorded study are the same in every output format.
#[test]
fn a_recorded_study_has_equal_findings_in_every_format() {
    for (name, cause, signal, not_it) in
        [("one-thread", "one_thread", "fullest_thread", "limiter"), ("limiter", "limiter", "refused", "delay")]
    {
        let path = copy_recorded_run_file(name);
        let document = plimsoll(&["explain", "--json", &path]).json();
        assert!(
            document["cause"] == cause && document["abstained"] == false,
            "{} {:#} {:#}",
            document["sentence"],
            document["causes"],
            document["evidence"]
        );
        assert_eq!(document["causes"][0]["name"], cause);
        let evidence = document["evidence"].as_array().expect("evidence");
        let shown = evidence.iter().find(|shown| shown["signal"] == signal).expect("its signal");
        assert!(number_at_path(shown, "past") > number_at_path(shown, "low"), "{shown:#}");
        let ruled_out = document["ruled_out"].as_array().expect("what was ruled out");
        assert!(ruled_out.iter().any(|out| out["name"] == not_it), "{ruled_out:#?}");
        let again = plimsoll(&["show", "--json", &path]);
        assert_eq!(again.code, 0, "{}", again.stderr);
        for field in ["sentence", "profiles", "interventions"] {
            assert_eq!(again.json()[field], document[field], "{field}");
        }
        assert!(plimsoll(&["show", &path]).stdout.contains(&format!("{cause} (")));
        let page = path.replace(".plimsoll", ".html");
        let report = plimsoll(&["report", &path, "-o", &page]);
        assert!(report.code == 0, "{}", report.stderr);
        assert!(std::fs::read_to_string(page).expect("a page").contains(cause));
        let svg = plimsoll(&["report", &path, "--chart", "evidence"]).stdout;
        assert!(svg.starts_with("<svg ") && svg.contains("Changes from a low load"), "{svg}");
    }
}

/// Checks that the kernel's samples show the costly functions without profiles from the server. One
/// function of plimsoll's server spends half a millisecond of CPU time on each request.
#[test]
fn kernel_samples_name_costly_functions() {
    let document = plimsoll(&["explain", "--json", &copy_recorded_run_file("one-thread")]).json();
    let profiles = &document["profiles"];
    assert_eq!((&profiles["source"], &profiles["unit"]), (&"kernel samples".into(), &"nanoseconds".into()));
    let top = profiles["top"].as_array().expect("functions");
    let named = |row: &&Value| row["function"].as_str().is_some_and(|name| name.contains("plimsoll::baseline"));
    let dearest = top.iter().filter(named).map(|row| number_at_path(row, "cum.after")).fold(0.0, f64::max);
    assert!((300e3..900e3).contains(&dearest), "{dearest} ns: {profiles:#}");
}

/// Checks that the document of a recorded study lists the experiments with their measured effects,
/// and that invalid flags of experiments are refused.
#[test]
fn experiments_are_reported_and_invalid_flags_refused() {
    let path = copy_recorded_run_file("one-thread");
    let document = plimsoll(&["explain", "--json", &path]).json();
    let made = document["interventions"].as_array().expect("changes");
    assert!(!made.is_empty(), "{document:#}");
    for change in made {
        assert!(change["measured"].as_str().is_some_and(|text| text.contains("with the change")), "{change:#}");
    }
    // Flags of experiments that exclude each other, are incomplete or have invalid values are
    // refused.
    let server = start_baseline(1);
    let url = format!("{}/burn/500", server.url);
    for (arguments, expect) in [
        (["--no-intervene", "--reference", "/x"], "--reference"),
        (["--reference", "http://127.0.0.2:1/", "-q"], "another server"),
        (["--identity", "two", "-q"], "--identity"),
        (["--vary", "./set {n}", "-q"], "--values"),
        (["--values", "2,4", "-q"], "--vary"),
        (["--vary", "./set", "--values=2,4"], "{n}"),
        (["--vary", "./set {n}", "--values=2,none"], "--values"),
    ] {
        let refused = plimsoll(&[&["explain", &url][..], &arguments].concat());
        assert!(refused.code == 2 && refused.stderr.contains(expect), "{}", refused.stderr);
    }
}

/// Checks that the effect of a setting is measured. The user's script changes the setting by
/// restarting the server with a pool of another size.
#[test]
fn the_effect_of_a_setting_is_measured() {
    let (folder, store) = (create_new_folder("vary"), start_baseline(1));
    let (file, program) = (folder.join("explain.plimsoll"), env!("CARGO_BIN_EXE_plimsoll"));
    let path = file.to_str().expect("text");
    let port = crate::prove::free_port();
    // The script ends only the server that it started itself.
    let script = folder.join("set");
    std::fs::write(
        &script,
        format!(
            "#!/bin/sh\ncd '{}'\n[ -f pid ] && kill -9 $(cat pid) && sleep 0.3\n\
             '{program}' baseline --listen 127.0.0.1:{port} --behind {}/delay/20 --pool $1 >log 2>&1 &\necho $! >pid\n\
             while ! grep -q http log; do sleep 0.05; done\n",
            folder.display(),
            store.url
        ),
    )
    .expect("written");
    let set = |value: &str| Command::new("sh").arg(&script).arg(value).status().expect("runs");
    assert!(set("2").success());
    let url = format!("http://127.0.0.1:{port}/items");
    let command = format!("sh '{}' {{n}}", script.display());
    let done = plimsoll(&[
        "explain", &url, "--budget", "32s", "--vary", &command, "--values", "2,4", "--json", "-q", "-o", path,
    ]);
    let ended = std::fs::read_to_string(folder.join("pid")).expect("a number");
    let _ = Command::new("kill").arg(ended.trim()).status();
    let document = done.json();
    let steps = document["varied"]["steps"].as_array().unwrap_or_else(|| panic!("{document:#}"));
    assert_eq!(steps.iter().map(|step| number_at_path(step, "value")).collect::<Vec<_>>(), [2.0, 4.0]);
    let counts = steps.iter().all(|step| step["counts"] == true);
    assert!(
        !counts || (0.6..1.3).contains(&number_at_path(&document, "varied.elasticity")),
        "{:#}",
        document["varied"]
    );
    assert_eq!(plimsoll(&["show", "--json", path]).json()["varied"], document["varied"]);
}

#[test]
fn an_unobserved_cause_is_not_named() {
    let done = plimsoll(&["explain", "--json", &copy_recorded_run_file("no-probes")]);
    let document = done.json();
    assert_eq!((done.code, &document["cause"], &document["abstained"]), (1, &"unknown".into(), &true.into()));
    assert!(document["to_tell"][0].as_str().is_some_and(|text| text.contains("was not observed")), "{document:#}");
}

#[test]
fn a_recorded_search_is_explained() {
    let done = plimsoll(&["explain", &copy_recorded_run_file("find"), "--json"]);
    assert!([0, 1].contains(&done.code), "{}", done.stderr);
    assert!(
        ["one_thread", "unknown"].iter().any(|cause| done.json()["cause"] == *cause),
        "{}",
        done.json()["sentence"]
    );
    let refused = plimsoll(&["explain", &copy_recorded_run_file("run")]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("contains no load line"), "{}", refused.stderr);
}
