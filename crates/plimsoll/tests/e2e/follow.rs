//! Tests redirects that are followed (`follow = N`), and SLOs and conditions (`--fail-if`) that
//! name one request of a traffic file.

use crate::test_support::{
    ReceivedRequest, assert_ledger_closes, create_new_folder, number_at_path, plimsoll, run_to_json, start_baseline,
};
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

fn write_traffic_file(name: &str, text: &str) -> PathBuf {
    let path = create_new_folder("follow").join(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("a name in UTF-8")
}

/// Starts a server whose login redirects to a home page and sets a cookie with the redirect.
fn start_login_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    // The threads end with the test's process.
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
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
        let (host, cookie) = (field("host"), field("cookie"));
        let first = head[0].trim_end_matches(" HTTP/1.1");
        let (status, fields, content) = match first {
            "POST /login" => {
                ("302 Found", format!("Set-Cookie: sid=7; Path=/\r\nLocation: http://{host}/a/welcome\r\n"), "")
            }
            "GET /a/welcome" if cookie == "sid=7" || field("x-any") == "1" => {
                ("301 Moved Permanently", "Location: ../home?by=redirect\r\nConnection: close\r\n".to_owned(), "moved")
            }
            "GET /home?by=redirect" => ("200 OK", String::new(), "{\"at\": \"home\"}"),
            "POST /keeps" => ("307 Temporary Redirect", "Location: /kept\r\n".to_owned(), ""),
            "POST /kept" if body == b"n=1" => ("200 OK", String::new(), "kept"),
            "GET /round" => ("302 Found", "Location: /round\r\n".to_owned(), ""),
            "GET /away" => ("302 Found", "Location: http://elsewhere.test/\r\n".to_owned(), ""),
            _ => ("404 Not Found", String::new(), ""),
        };
        write!(out, "HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{content}", content.len())?;
        if fields.contains("close") {
            return Ok(());
        }
    }
}

#[test]
fn a_followed_redirect_is_one_request_until_the_last_response() {
    let url = start_login_server();
    let path = write_traffic_file(
        "portal.toml",
        r#"
[[scenario]]
[[scenario.step]]
name = "login"
post = "/login"
body = "user=ann"
follow = 3
expect = { status = "200", json = { "$.at" = "home" } }
[[scenario.step]]
name = "keeps"
post = "/keeps"
body = "n=1"
follow = 1
expect = { body = "kept" }
"#,
    );
    for load in [&["-c", "2"][..], &["--rate", "100"]] {
        let run = [&["run", "-n", "20", "--no-preflight", "-f", path_text(&path), "--target", &url], load].concat();
        let document = run_to_json(&run);
        assert_ledger_closes(&document, "redirects");
        assert_eq!(
            number_at_path(&document, "success_rate"),
            1.0,
            "{:#} {:#}",
            document["ledger"],
            document["failed_answers"]
        );
        assert_eq!(number_at_path(&document, "ledger.scheduled"), 40.0, "{load:?}");
        assert_eq!(number_at_path(&document, "redirects"), 60.0, "{load:?}");
        assert_eq!(document["statuses"], serde_json::json!({"200": 40}), "{load:?}");
    }
    // A mix (requests without sessions and templates) also follows redirects.
    let path = write_traffic_file(
        "mix.toml",
        "[[request]]\nget = \"/a/welcome\"\nheaders = { x-any = 1 }\nfollow = 2\nexpect = { status = \"200\" }\n",
    );
    let document = run_to_json(&["run", "-n", "10", "-c", "2", "-f", path_text(&path), "--target", &url]);
    assert_eq!(
        (number_at_path(&document, "success_rate"), number_at_path(&document, "redirects")),
        (1.0, 10.0),
        "{document:#}"
    );
}

#[test]
fn setup_requests_follow_redirects_too() {
    let url = start_login_server();
    let setup = |more: &str| {
        let text = format!(
            "[[setup]]\nget = \"/a/welcome\"\nheaders = {{ x-any = 1 }}\nexpect = {{ status = \"200\" }}\n\
             capture = {{ place = \"$.at\" }}\n{more}\n[[request]]\nget = \"/{{{{ place }}}}?by=redirect\"\n"
        );
        write_traffic_file("setup.toml", &text)
    };
    let path = setup("follow = 2");
    let document =
        run_to_json(&["run", "-n", "4", "-c", "1", "--no-preflight", "-f", path_text(&path), "--target", &url]);
    assert_eq!(number_at_path(&document, "success_rate"), 1.0, "{:#}", document["failed_answers"]);
    for (more, said) in [("", "status 301"), ("follow = 0", "status 301")] {
        let path = setup(more);
        let refused =
            plimsoll(&["run", "-n", "4", "-c", "1", "--no-preflight", "-f", path_text(&path), "--target", &url]);
        assert!(refused.code == 2 && refused.stderr.contains(said), "{}", refused.stderr);
    }
    let path =
        write_traffic_file("setup.toml", "[[setup]]\nget = \"/round\"\nfollow = 3\n[[request]]\nget = \"/round\"\n");
    let refused = plimsoll(&["run", "-n", "4", "-c", "1", "--no-preflight", "-f", path_text(&path), "--target", &url]);
    assert!(
        refused.code == 2 && refused.stderr.contains("was redirected more often than the limit"),
        "{}",
        refused.stderr
    );
}

#[test]
fn an_unfollowable_redirect_fails_with_the_reason() {
    let url = start_login_server();
    for (target, follow, kind, reason) in [
        ("/round", 3, "expectation", "was redirected more often than the limit"),
        ("/away", 3, "expectation", "redirects to another origin"),
        ("/round", 0, "", ""),
    ] {
        let path = write_traffic_file("fails.toml", &format!("[[request]]\nget = \"{target}\"\nfollow = {follow}\n"));
        let document = run_to_json(&["run", "-n", "4", "-c", "1", "-f", path_text(&path), "--target", &url]);
        assert_ledger_closes(&document, target);
        match kind {
            "" => assert_eq!(number_at_path(&document, "success_rate"), 1.0, "not followed, it is a success"),
            kind => {
                assert_eq!(
                    number_at_path(&document, &format!("ledger.failed.{kind}")),
                    4.0,
                    "{:#}",
                    document["ledger"]
                );
                let kept = &document["failed_answers"][0];
                assert!(kept["reason"].as_str().is_some_and(|it| it.contains(reason)), "{kept:#}");
            }
        }
    }
}

#[test]
fn a_url_redirect_is_followed_as_by_curl() {
    let url = start_login_server();
    let welcome = format!("{url}/a/welcome");
    let line = format!("curl -L {welcome} -H 'X-Any: 1'");
    let login = format!("curl {url}/keeps -d n=1 -L --max-redirs 5");
    let once = format!("{line} --max-redirs 0");
    for (words, redirects, statuses) in [
        (&["-H", "X-Any: 1", "--follow", "2", &welcome][..], 10.0, serde_json::json!({"200": 10})),
        (&["-H", "X-Any: 1", &welcome], 0.0, serde_json::json!({"301": 10})),
        (&["--curl", &line], 10.0, serde_json::json!({"200": 10})),
        (&["--curl", &login], 10.0, serde_json::json!({"200": 10})),
        (&["--curl", &once], 0.0, serde_json::json!({"301": 10})),
        (&["--curl", &line, "--follow", "0"], 0.0, serde_json::json!({"301": 10})),
    ] {
        for load in [&["-c", "2"][..], &["--rate", "200"]] {
            let document = run_to_json(&[&["run", "-n", "10"], load, words].concat());
            assert_ledger_closes(&document, "followed");
            assert_eq!(number_at_path(&document, "success_rate"), 1.0, "{words:?} {:#}", document["failed_answers"]);
            assert_eq!(
                (number_at_path(&document, "redirects"), &document["statuses"]),
                (redirects, &statuses),
                "{words:?}"
            );
        }
    }
    // A rerun follows redirects, too, and its run file records the number of redirects.
    let record = create_new_folder("follow").join("url.plimsoll");
    let run = ["run", "-n", "5", "-c", "1", "-H", "X-Any: 1", "--follow", "2", "-o", path_text(&record), &welcome];
    assert_eq!(plimsoll(&run).code, 0);
    let second = create_new_folder("follow").join("again.plimsoll");
    assert_eq!(plimsoll(&["rerun", path_text(&record), "-H", "X-Any: 1", "-o", path_text(&second)]).code, 0);
    let again = plimsoll(&["show", "--json", path_text(&second)]).json();
    assert_eq!(number_at_path(&again, "redirects"), 5.0, "{again:#}");
    let shown = plimsoll(&["rerun", path_text(&record), "--print"]);
    assert!(shown.stdout.contains("--follow 2") || shown.stdout.contains("--follow=2"), "{}", shown.stdout);
    for (words, part) in [
        (&["--follow", "21", &url][..], "--follow"),
        (&["--follow", "1", "grpc://127.0.0.1:1/a.B/C"], "gRPC has no redirects"),
    ] {
        let refused = plimsoll(&[&["run"], words].concat());
        assert!(refused.code == 2 && refused.stderr.contains(part), "{}", refused.stderr);
    }
}

#[test]
fn slos_and_conditions_can_name_one_request() {
    let server = start_baseline(1);
    let path = write_traffic_file(
        "slo.toml",
        "[[request]]\nname = \"list\"\nweight = 3\nget = \"/healthz\"\n[[request]]\nname = \"slow, sorted\"\nget = \"/delay/20\"\n",
    );
    let with = |more: &[&str]| {
        let run = [&["run", "-d", "1s", "-c", "4", "-f", path_text(&path), "--target", &server.url], more].concat();
        plimsoll(&run)
    };
    for (gate, code, part) in [
        ("'slow, sorted'.p50>5ms", 1, "--fail-if 'slow, sorted'.p50>5ms: it was 2"),
        ("list.p50>5s, 'slow, sorted'.p50>5s", 0, ""),
        ("lst.p50>1ms", 2, "--fail-if: no request is called 'lst': the requests are list, 'slow, sorted'"),
    ] {
        let done = with(&["--fail-if", gate, "--on-inconclusive=fail"]);
        assert!(done.code == code && done.stderr.contains(part), "{gate}: {} {}", done.code, done.stderr);
    }
    let slo = "success>=99%, p99<=1s, 'slow, sorted'.p99<=10ms";
    let find =
        ["find", "--budget", "4s", "--max-rate", "200", "--slo", slo, "-f", path_text(&path), "--target", &server.url];
    let found = plimsoll(&find);
    assert_eq!(found.code, 1, "no rate holds what one request never does: {}{}", found.stdout, found.stderr);
    let said = format!("{}{}", found.stdout, found.stderr);
    assert!(said.contains("'slow, sorted'"), "{said}");
}
