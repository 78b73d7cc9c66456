//! Tests scenarios (`-f`) under every command that generates load: users log in, reuse captured
//! values, and send their requests in order.

use crate::test_support::{
    ReceivedRequest, assert_ledger_closes, create_new_folder, number_at_path, plimsoll, run_to_json,
};
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

/// Writes a traffic file into a new folder.
fn write_traffic_file(name: &str, text: &str) -> PathBuf {
    let folder = create_new_folder("scenario");
    std::fs::write(folder.join("users.csv"), "name,password\nann,a\"1\nbob,b2\ncid,c3\n").expect("written");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn path_text(path: &Path) -> &str {
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

/// Starts a shop that requires a login: token and cookie must belong to the same user.
fn start_login_shop() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    // The threads end with the test's process.
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
        let Some(heard) = ReceivedRequest::next(&mut lines)? else { return Ok(()) };
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
fn a_user_logs_in_and_sends_captured_values() {
    let url = start_login_shop();
    let path = write_traffic_file("buyer.toml", BUYER);
    let record = create_new_folder("scenario-run").join("run.plimsoll");
    let run = ["run", "-n", "30", "-c", "3", "-f", path_text(&path), "--target", &url, "-o", path_text(&record)];
    let document = run_to_json(&run);
    assert_ledger_closes(&document, "a scenario");
    assert_eq!(
        number_at_path(&document, "success_rate"),
        1.0,
        "{:#} {:#}",
        document["ledger"],
        document["failed_answers"]
    );
    let sessions = &document["sessions"];
    for (name, expect) in [("started", 30.0), ("completed", 30.0), ("abandoned", 0.0), ("cut", 0.0)] {
        assert_eq!(number_at_path(sessions, name), expect, "{sessions:#}");
    }
    assert_eq!(number_at_path(sessions, "time_ns.count"), 30.0);
    assert!(number_at_path(sessions, "time_ns.min") >= 2e6, "thoughts are part of it: {sessions:#}");
    let requests: Vec<(&str, f64)> = document["routes"]
        .as_array()
        .expect("routes")
        .iter()
        .map(|route| (route["name"].as_str().expect("a name"), number_at_path(route, "requests")))
        .collect();
    assert_eq!(requests, [("login", 3.0), ("me", 60.0), ("order", 30.0)], "each user logs in once");
    let shown = plimsoll(&["show", "-v", path_text(&record)]).stdout;
    assert!(shown.contains("30 started = 30 completed"), "{shown}");
    // In an open loop, each arrival is a new user. The same seed gives the same requests.
    let open = ["run", "-n", "20", "--rate", "200", "-f", path_text(&path), "--target", &url];
    let opened = run_to_json(&open);
    assert_eq!(number_at_path(&opened, "sessions.completed"), 20.0, "{opened:#}");
    assert_eq!(number_at_path(&opened["routes"][0], "requests"), 20.0);
    assert_eq!(opened["load"].as_str(), Some("200 sessions/s, evenly spaced"));
    // The record contains no token, cookie or password.
    let bytes = std::fs::read(&record).expect("a record");
    for secret in [&b"t0k-"[..], b"c0okie-"] {
        assert!(!bytes.windows(secret.len()).any(|part| part == secret));
    }
    let again = plimsoll(&["rerun", path_text(&record), "--yes"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    std::fs::write(&path, BUYER.replace("repeat = 2", "repeat = 3")).expect("written");
    let other = plimsoll(&["rerun", path_text(&record), "--yes"]);
    assert!(other.code == 2 && other.stderr.contains("the value differs from the record"), "{}", other.stderr);
}

#[test]
fn searches_and_comparisons_report_sessions() {
    let url = start_login_shop();
    let path = write_traffic_file("search.toml", BUYER);
    let found = run_to_json(&[
        "find",
        "--budget",
        "4s",
        "--slo",
        "success>=99%, p99<=1s",
        "-f",
        path_text(&path),
        "--target",
        &url,
    ]);
    assert!(number_at_path(&found, "peak.rps") > 0.0, "{found:#}");
    let proved = plimsoll(&[
        "prove",
        "--budget",
        "3s",
        "--blocks",
        "1",
        "--for",
        "200ms",
        "-c",
        "2",
        "-f",
        path_text(&path),
        &url,
        &url,
    ]);
    assert!([0, 3].contains(&proved.code), "{}{}", proved.stdout, proved.stderr);
}

#[test]
fn a_failing_session_is_abandoned_with_an_example() {
    let url = start_login_shop();
    // The login response has no `$.other`, so the capture at login fails, and plimsoll abandons
    // each session.
    let broken = BUYER.replace("Bearer {{ token }}", "Bearer none").replace("\"$.token\"", "\"$.other\"");
    let path = write_traffic_file("broken.toml", &broken);
    let document =
        run_to_json(&["run", "-n", "10", "-c", "2", "-f", path_text(&path), "--target", &url, "--no-preflight"]);
    assert_ledger_closes(&document, "captures that find nothing");
    assert_eq!(number_at_path(&document, "ledger.failed.capture"), number_at_path(&document["routes"][0], "requests"));
    assert_eq!(number_at_path(&document, "sessions.abandoned"), 10.0, "{:#}", document["sessions"]);
    let kept = &document["failed_answers"][0];
    assert_eq!((kept["missed"].as_str(), kept["route"].as_str()), (Some("capture"), Some("login")), "{kept:#}");
    assert!(kept["reason"].as_str().is_some_and(|reason| reason.contains("the response has no $.other")), "{kept:#}");
    assert!(!kept.to_string().contains("t0k-"), "{kept:#}");
}

#[test]
fn check_shows_a_session_and_its_captures() {
    let path = write_traffic_file("check.toml", BUYER);
    let done = plimsoll(&["check", "-f", path_text(&path), "--seed", "3"]);
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
        ("[[scenario]]\nname = \"idle\"\n".to_owned(), "this scenario has no steps"),
        (BUYER.replace("name = \"buyer\"", "name = \"buyer\"\nweight = 0"), "'weight' must be a whole number from 1"),
    ] {
        let path = write_traffic_file("scenario.toml", &text_of);
        let done = plimsoll(&["run", "-f", path_text(&path), "--target", "http://127.0.0.1:1"]);
        assert!(done.code == 2 && done.stderr.contains(part), "{part}: {}", done.stderr);
    }
}

/// `{"token": "t0k-br", ...}`, compressed by brotli 1.2 at quality 11.
const BROTLI_RESPONSE_BODY: &[u8] = b"\x1b\x54\x00\xb8\x2d\x0b\x6c\x67\x37\x38\x54\x34\xc8\x34\x74\x91\xb5\x90\x33\xbf\xd8\x11\x2a\xbd\x59\
    \xba\xc4\xf6\xb6\x88\xcc\xcc\xd6\x16\xa1\x8b\x61\x99\x3a\x2c\x7d\x01\x92\x78\x6b\x2d\x59\x06\x23\x07\x1b\x70\xc0\x1c\
    \x2c\xeb\x04\x83\xf8\x4e\x97\x0d\x3c\x7d\x00\x15\xb2\x68\x72\xc2\x40\xdd\x96\xdf\xfc\xb2\x88\xb0\xa6\xc2\x46\x03\x1e";

/// Starts a server that compresses its response with the coding in the path, if the client accepts
/// it.
fn start_compressing_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let answer = |socket: TcpStream| -> std::io::Result<()> {
        let mut out = socket.try_clone()?;
        let mut lines = BufReader::new(socket);
        while let Some(heard) = ReceivedRequest::next(&mut lines)? {
            let target = heard.head[0].split(' ').nth(1).unwrap_or_default().to_owned();
            let asked = heard.field("accept-encoding").to_owned();
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(b"{\"token\": \"t0k-gz\"}")?;
            let (status, coding, content) = match target.as_str() {
                "/gzip" if asked.contains("gzip") => ("200 OK", "gzip", gzip.finish()?),
                "/br" if asked.contains("br") => ("200 OK", "br", BROTLI_RESPONSE_BODY.to_vec()),
                "/broken" => ("200 OK", "gzip", b"{\"token\": 1}".to_vec()),
                "/in/t0k-gz" | "/in/t0k-br" => ("200 OK", "identity", b"in".to_vec()),
                _ => ("403 Forbidden", "identity", Vec::new()),
            };
            write!(
                out,
                "HTTP/1.1 {status}\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n",
                content.len()
            )?;
            out.write_all(&content)?;
        }
        Ok(())
    };
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(socket));
        }
    });
    url
}

#[test]
fn encoded_responses_are_decoded_for_checks() {
    let url = start_compressing_server();
    let step =
        |path: &str, more: &str| format!("[[scenario.step]]\nget = \"{path}\"\non_fail = \"continue\"\n{more}\n");
    let ask =
        |coding: &str| format!("headers = {{ accept-encoding = \"{coding}\" }}\ncapture = {{ token = \"$.token\" }}");
    let text_of = ["[[scenario]]\n".to_owned()]
        .into_iter()
        .chain([
            step("/gzip", &ask("gzip, br")),
            step("/in/{{ token }}", ""),
            step("/br", &ask("br")),
            step("/in/{{ token }}", "name = \"by brotli\"\nexpect = { body = \"in\" }"),
            step("/broken", "expect = { json = { \"$.token\" = 1 } }"),
            step("/broken", "name = \"not looked into\""),
        ])
        .collect::<String>();
    let path = write_traffic_file("coded.toml", &text_of);
    let document = run_to_json(&["run", "-n", "5", "-c", "1", "-f", path_text(&path), "--target", &url]);
    assert_ledger_closes(&document, "coded answers");
    assert_eq!(
        number_at_path(&document, "ledger.succeeded"),
        25.0,
        "{:#} {:#}",
        document["routes"],
        document["failed_answers"]
    );
    assert_eq!(number_at_path(&document, "ledger.failed.expectation"), 5.0);
    let reason = document["failed_answers"][0]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("cannot be decoded as its content-encoding says"), "{:#}", document["failed_answers"]);
}
