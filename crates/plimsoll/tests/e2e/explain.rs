//! `plimsoll explain`: real servers of a known limit are explained by it, from the network and from a file.

use crate::rig::{Server, baseline, folder, json, number, plimsoll, serve};
use serde_json::Value;
use std::process::Command;

/// Answers 300 requests a second and bursts of 60, and refuses the rest. A process of its own: in that of the tests the work of other
/// tests would be the server's.
fn limited() -> Server {
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
    serve(Command::new("python3").args(["-c", SOURCE]), "python3")
}

/// Whether plimsoll or others were the limit: on a busy machine that tells nothing of the server.
fn was_hindered(document: &Value) -> bool {
    let warnings = document["warnings"].as_array().expect("warnings");
    let disturbed = warnings.iter().any(|warning| warning.as_str().is_some_and(|text| text.contains("disturbed")));
    disturbed || document["cause"] == "client"
}

/// Explains until `cause` is named with nobody in the way and time for all loads, a few times. No other cause is ever named meanwhile,
/// but that others were in the way, or that nothing is known.
fn explained(url: &str, file: &str, cause: &str) -> Value {
    let explain = || json(&["explain", url, "--budget", "15s", "-o", file]);
    let mut document = explain();
    for _ in 0..3 {
        let named = document["cause"].as_str().expect("a word");
        assert!([cause, "neighbour", "client", "unknown"].contains(&named), "{}", document["sentence"]);
        if named == cause && !was_hindered(&document) && !document["profiles"].is_null() {
            break;
        }
        document = explain();
    }
    document
}

/// Which functions cost what, nobody asked the server for: the kernel shows it, or says why not.
fn functions_are_told(document: &Value) {
    let profiles = &document["profiles"];
    assert_eq!(profiles["source"], "kernel samples", "{profiles:#} {:#}", document["warnings"]);
    if let Some(why) = profiles["refused"].as_str() {
        assert!(why.contains("kernel"), "{why}");
        return;
    }
    let top = profiles["top"].as_array().expect("functions");
    assert!(!top.is_empty() && profiles["unit"] == "nanoseconds", "{profiles:#}");
    if document["cause"] == "one_thread" {
        // Half a millisecond of each request is burnt in one function of ours.
        let named = |row: &&Value| row["function"].as_str().is_some_and(|name| name.contains("plimsoll::baseline"));
        let cost = |row: &Value| number(row, "cum.after");
        let dearest = top.iter().filter(named).map(cost).fold(0.0, f64::max);
        assert!((300e3..900e3).contains(&dearest), "{dearest} ns: {profiles:#}");
    }
}

#[test]
fn what_holds_a_server_is_named() {
    let (one, limited) = (baseline(1), limited());
    for (url, cause, signal, not_it) in [
        (format!("{}/burn/500", one.url), "one_thread", "fullest_thread", "limiter"),
        (format!("{}/", limited.url), "limiter", "refused", "delay"),
    ] {
        let file = folder("explain").join(format!("{cause}.plimsoll"));
        let path = file.to_str().expect("text");
        let document = explained(&url, path, cause);
        assert_eq!(document["schema"], "plimsoll.explain/1");
        functions_are_told(&document);
        if was_hindered(&document) {
            // Others used the machine all the time: it is they who are named, or nobody.
            let named = document["cause"].as_str().expect("a word");
            assert!([cause, "neighbour", "client", "unknown"].contains(&named), "{}", document["sentence"]);
            continue;
        }
        assert!(number(&document, "elapsed_s") <= 15.5, "{:#}", document["elapsed_s"]);
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
        assert!(number(shown, "past") > number(shown, "low"), "{shown:#}");
        let ruled_out = document["ruled_out"].as_array().expect("what was ruled out");
        assert!(ruled_out.iter().any(|out| out["name"] == not_it), "{ruled_out:#?}");
        // What the file holds says the same, on whatever way it is read.
        for arguments in [["explain", "--json", path], ["show", "--json", path]] {
            let again = plimsoll(&arguments);
            assert_eq!(again.code, 0, "{}", again.stderr);
            assert_eq!(again.json()["sentence"], document["sentence"], "{arguments:?}");
            assert_eq!(again.json()["profiles"], document["profiles"], "{arguments:?}");
        }
        assert!(plimsoll(&["show", path]).stdout.contains(&format!("{cause}: ")));
        assert!(std::fs::read_to_string(file.with_extension("html")).expect("a page").contains(cause));
        let svg = plimsoll(&["report", path, "--chart", "evidence"]).stdout;
        assert!(svg.starts_with("<svg ") && svg.contains("What changes from a low load"), "{svg}");
    }
}

/// With time for it one thing after the other is changed; what was predicted and what came of it is told and recorded.
#[test]
fn what_is_changed_is_told_with_what_was_predicted() {
    let server = baseline(1);
    let file = folder("explain-changes").join("explain.plimsoll");
    let path = file.to_str().expect("text");
    let url = format!("{}/burn/500", server.url);
    let arguments = ["explain", &url, "--budget", "30s", "--identity", "X-Client: two", "--json", "-o", path];
    let done = plimsoll(&arguments);
    let document = done.json();
    assert!(number(&document, "elapsed_s") <= 30.5, "{:#}", document["elapsed_s"]);
    let made = document["interventions"].as_array().expect("changes");
    // A machine that is never quiet leaves no time for them.
    assert!(!made.is_empty() || was_hindered(&document), "{document:#}");
    for change in made {
        let name = change["name"].as_str().expect("a word");
        // What was asked for is tried where no cause stands, too, as on a machine that is never quiet.
        let unforetold = change["predictions"].as_object().expect("by cause").is_empty();
        let expect = if unforetold { "no cause that stands predicts anything" } else { "what is answered" };
        assert!(done.stderr.contains(expect), "{name}: {}", done.stderr);
        assert!(change["measured"].as_str().is_some_and(|text| text.contains("with it")), "{change:#}");
    }
    assert_eq!(plimsoll(&["show", "--json", path]).json()["interventions"], document["interventions"]);
    // Nothing is changed where that is not wanted.
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

/// A script of the user's changes a setting: here it starts the server anew, with another pool.
#[test]
fn what_a_setting_matters_is_measured() {
    let (folder, store) = (folder("vary"), baseline(1));
    let (file, program) = (folder.join("explain.plimsoll"), env!("CARGO_BIN_EXE_plimsoll"));
    let path = file.to_str().expect("text");
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port").port();
    // Only what the script started itself is ended by it.
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
    assert_eq!(steps.iter().map(|step| number(step, "value")).collect::<Vec<_>>(), [2.0, 4.0]);
    let counts = steps.iter().all(|step| step["counts"] == true);
    assert!(!counts || (0.6..1.3).contains(&number(&document, "varied.elasticity")), "{:#}", document["varied"]);
    assert_eq!(plimsoll(&["show", "--json", path]).json()["varied"], document["varied"]);
}

#[test]
fn what_is_not_seen_is_not_named() {
    let server = baseline(1);
    let url = format!("{}/burn/500", server.url);
    let done = plimsoll(&["explain", &url, "--budget", "15s", "--no-probes", "--json", "-q"]);
    let document = done.json();
    assert_eq!((done.code, &document["cause"], &document["abstained"]), (1, &"unknown".into(), &true.into()));
    assert!(document["to_tell"][0].as_str().is_some_and(|text| text.contains("were not seen")), "{document:#}");
}

#[test]
fn a_search_is_explained_by_what_it_holds() {
    let server = baseline(1);
    let file = folder("explain-search").join("find.plimsoll");
    let path = file.to_str().expect("text");
    json(&["find", &format!("{}/burn/500", server.url), "--budget", "15s", "-o", path]);
    let done = plimsoll(&["explain", path, "--json"]);
    assert!([0, 1].contains(&done.code), "{}", done.stderr);
    assert!(["one_thread", "unknown", "client", "neighbour"].iter().any(|cause| done.json()["cause"] == *cause));
    let run = folder("explain-search").join("run.plimsoll");
    let run = run.to_str().expect("text");
    json(&["run", &format!("{}/healthz", server.url), "-n", "10", "-o", run]);
    let refused = plimsoll(&["explain", run]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("holds no search"), "{}", refused.stderr);
}
