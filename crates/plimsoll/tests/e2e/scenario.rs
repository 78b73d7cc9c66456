//! Scenarios (`-f`): users who log in, carry what they were given, and do one thing after the other, under every command that loads.

use crate::rig::{Heard, assert_ledger_closes, folder, json, number, plimsoll};
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

/// A file in a folder of its own.
fn file(name: &str, text: &str) -> PathBuf {
    let folder = folder("scenario");
    std::fs::write(folder.join("users.csv"), "name,password\nann,a\"1\nbob,b2\ncid,c3\n").expect("written");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a name in UTF-8")
}

const BUYER: &str = r#"
[[scenario]]
name = "buyer"
[[scenario.step]]
name = "login"
once = true
post = "/login"
json = { user = "{{ user.name }}", password = "{{ user.password }}" }
expect = { status = "201", json = { "$.ok" = true } }
capture = { token = "$.token", home = "header:Location" }
[[scenario.step]]
name = "me"
think = "uniform(1ms,3ms)"
get = "{{ home }}"
headers = { authorization = "Bearer {{ token }}" }
repeat = 2
expect = { body = "regex:^hello " }
[[scenario.step]]
if = "{{ token }}"
name = "order"
post = "/orders"
headers = { authorization = "Bearer {{ token }}" }
json = { id = "{{ uuid() }}", n = "{{ int(1,3) }}" }
[data.user]
file = "users.csv"
"#;

/// A shop that lets in who has logged in: by token and cookie, both of the same user.
fn shop() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    // Both end with the test's process.
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let Ok(socket) = socket else { return };
            std::thread::spawn(move || serve(socket));
        }
    });
    format!("http://{address}")
}

fn serve(socket: TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let mut out = socket.try_clone()?;
    let mut lines = BufReader::new(socket);
    loop {
        let Some(heard) = Heard::next(&mut lines)? else { return Ok(()) };
        let (head, body, field) = (&heard.head, &heard.body, |name: &str| heard.field(name));
        let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let token = field("authorization").strip_prefix("Bearer t0k-").unwrap_or("nobody");
        let is_in = field("cookie") == format!("sid=c0okie-{token}");
        let target = head[0].split(' ').nth(1).unwrap_or_default();
        let (status, fields, content) = match target {
            "/login" => match (body["user"].as_str(), body["password"].as_str()) {
                (Some(user), Some("a\"1" | "b2" | "c3")) => (
                    "201 Created",
                    format!(
                        "Set-Cookie: sid=c0okie-{user}; HttpOnly; Path=/\r\nLocation: http://{}/home/{user}\r\n",
                        field("host")
                    ),
                    format!("{{\"ok\": true, \"token\": \"t0k-{user}\"}}"),
                ),
                _ => ("401 Unauthorized", String::new(), "{}".to_owned()),
            },
            _ if !is_in => ("403 Forbidden", String::new(), "who are you?".to_owned()),
            "/orders" if body["n"].is_u64() && body["id"].is_string() => ("200 OK", String::new(), "{}".to_owned()),
            home if home.strip_prefix("/home/") == Some(token) => ("200 OK", String::new(), format!("hello {token}")),
            _ => ("404 Not Found", String::new(), String::new()),
        };
        write!(out, "HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{content}", content.len())?;
    }
}

#[test]
fn a_user_logs_in_and_carries_what_it_was_given() {
    let url = shop();
    let path = file("buyer.toml", BUYER);
    let record = folder("scenario-run").join("run.plimsoll");
    let run = ["run", "-n", "30", "-c", "3", "-f", text(&path), "--target", &url, "-o", text(&record)];
    let document = json(&run);
    assert_ledger_closes(&document, "a scenario");
    assert_eq!(number(&document, "success_rate"), 1.0, "{:#} {:#}", document["ledger"], document["failed_answers"]);
    let sessions = &document["sessions"];
    for (name, expect) in [("started", 30.0), ("completed", 30.0), ("abandoned", 0.0), ("cut", 0.0)] {
        assert_eq!(number(sessions, name), expect, "{sessions:#}");
    }
    assert_eq!(number(sessions, "time_ns.count"), 30.0);
    assert!(number(sessions, "time_ns.min") >= 2e6, "thoughts are part of it: {sessions:#}");
    let requests: Vec<(&str, f64)> = document["routes"]
        .as_array()
        .expect("routes")
        .iter()
        .map(|route| (route["name"].as_str().expect("a name"), number(route, "requests")))
        .collect();
    assert_eq!(requests, [("login", 3.0), ("me", 60.0), ("order", 30.0)], "each user logs in once");
    let shown = plimsoll(&["show", text(&record)]).stdout;
    assert!(shown.contains("30 started = 30 completed"), "{shown}");
    // Arrivals are users of their own; the same seed asks the same.
    let open = ["run", "-n", "20", "--rate", "200", "-f", text(&path), "--target", &url];
    let opened = json(&open);
    assert_eq!(number(&opened, "sessions.completed"), 20.0, "{opened:#}");
    assert_eq!(number(&opened["routes"][0], "requests"), 20.0);
    assert_eq!(opened["load"].as_str(), Some("200 sessions/s, evenly spaced"));
    // Nothing of a token, a cookie or a password is kept.
    let bytes = std::fs::read(&record).expect("a record");
    for secret in [&b"t0k-"[..], b"c0okie-"] {
        assert!(!bytes.windows(secret.len()).any(|part| part == secret));
    }
    let again = plimsoll(&["rerun", text(&record), "--yes"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    std::fs::write(&path, BUYER.replace("repeat = 2", "repeat = 3")).expect("written");
    let other = plimsoll(&["rerun", text(&record), "--yes"]);
    assert!(other.code == 2 && other.stderr.contains("this is not what was recorded"), "{}", other.stderr);
}

#[test]
fn searches_and_comparisons_count_sessions() {
    let url = shop();
    let path = file("search.toml", BUYER);
    let found =
        json(&["find", "--budget", "4s", "--slo", "success>=99%, p99<=1s", "-f", text(&path), "--target", &url]);
    assert!(number(&found, "peak.rps") > 0.0, "{found:#}");
    let proved = plimsoll(&["prove", "--budget", "3s", "--count-disturbed", "-f", text(&path), &url, &url]);
    assert_eq!(proved.code, 0, "{}{}", proved.stdout, proved.stderr);
}

#[test]
fn a_session_that_fails_is_abandoned_with_an_example() {
    let url = shop();
    // Nobody has logged in.
    let broken = BUYER.replace("Bearer {{ token }}", "Bearer none").replace("\"$.token\"", "\"$.other\"");
    let path = file("broken.toml", &broken);
    let document = json(&["run", "-n", "10", "-c", "2", "-f", text(&path), "--target", &url, "--no-preflight"]);
    assert_ledger_closes(&document, "captures that find nothing");
    assert_eq!(number(&document, "ledger.failed.capture"), number(&document["routes"][0], "requests"));
    assert_eq!(number(&document, "sessions.abandoned"), 10.0, "{:#}", document["sessions"]);
    let kept = &document["failed_answers"][0];
    assert_eq!((kept["missed"].as_str(), kept["route"].as_str()), (Some("capture"), Some("login")), "{kept:#}");
    assert!(kept["reason"].as_str().is_some_and(|reason| reason.contains("there is no $.other")), "{kept:#}");
    assert!(!kept.to_string().contains("t0k-"), "{kept:#}");
}

#[test]
fn check_shows_a_session_and_what_it_would_carry() {
    let path = file("check.toml", BUYER);
    let done = plimsoll(&["check", "-f", text(&path), "--seed", "3"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    for part in [
        "1 scenario of 3 requests at http://localhost:80",
        "1. login (session 1)\n   POST /login HTTP/1.1",
        "{\"user\":\"ann\",\"password\":\"a\\\"1\"}",
        "2. me (session 1, after ",
        "GET /{{ home }} HTTP/1.1",
        "authorization: Bearer {{ token }}",
        "4. order (session 1)",
        "5. login (session 2)",
    ] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    for (text_of, part) in [
        (BUYER.replace("\"$.token\"", "\"token\""), "scenario.toml:10:21: "),
        (BUYER.replace("{{ token }}\"\nname", "{{ tokn }}\"\nname"), "nothing sets 'tokn'"),
        (BUYER.replace("repeat = 2", "repeet = 2"), "did you mean 'repeat'?"),
        (format!("{BUYER}[[request]]\nget = \"/\"\n"), "requests or scenarios"),
        ("[[scenario]]\nname = \"idle\"\n".to_owned(), "nothing is done in this scenario"),
        (BUYER.replace("name = \"buyer\"", "name = \"buyer\"\nweight = 0"), "'weight' is a whole number from 1"),
    ] {
        let path = file("scenario.toml", &text_of);
        let done = plimsoll(&["run", "-f", text(&path), "--target", "http://127.0.0.1:1"]);
        assert!(done.code == 2 && done.stderr.contains(part), "{part}: {}", done.stderr);
    }
}
