//! Tests `plimsoll serve`: its pages, access control, and studies that start from a form.

use crate::test_support::{Server, command, copy_recorded_run_file, create_new_folder, plimsoll, start_baseline};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A running `plimsoll serve`. Dropping this value ends the server.
pub struct ServeProcess {
    child: Child,
    pub address: String,
    pub token: String,
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        // The process belongs to this test and has no work to finish.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A response: status, headers and body.
pub struct PageResponse {
    pub status: u16,
    pub headers: String,
    body: String,
}

impl ServeProcess {
    pub fn start(store: &Path) -> ServeProcess {
        ServeProcess::start_with(store, &[])
    }

    fn start_with(store: &Path, flags: &[&str]) -> ServeProcess {
        let words = ["serve", "--listen=127.0.0.1:0", "--store", store.to_str().expect("text")];
        let mut child =
            command(&[&words[..], flags].concat()).stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let link = lines.find_map(|line| line.ok().filter(|line| line.starts_with("http"))).expect("a link");
        let (address, token) =
            link.split_once("://").expect("a scheme").1.split_once("/login?token=").expect("a token");
        ServeProcess { child, address: address.to_owned(), token: token.to_owned() }
    }

    /// Sends these bytes and returns the response.
    fn send(&self, bytes: &[u8]) -> PageResponse {
        let mut stream = TcpStream::connect(&self.address).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (headers, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = headers.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        PageResponse { status, headers: headers.to_ascii_lowercase(), body: body.to_owned() }
    }

    fn send_request(&self, method: &str, path: &str, headers: &[&str], body: &str) -> PageResponse {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        headers.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
        self.send(format!("{head}\r\n{body}").as_bytes())
    }

    pub fn get(&self, path: &str) -> PageResponse {
        self.send_request("GET", path, &[&format!("Host: {}", self.address)], "")
    }

    /// Sends a POST request like a browser that has opened the link with the token.
    fn send_post_request(&self, path: &str, body: &str) -> PageResponse {
        let port = self.address.rsplit(':').next().expect("a port");
        let headers = [
            format!("Host: {}", self.address),
            format!("Origin: http://{}", self.address),
            format!("Cookie: plimsoll_{port}={}", self.token),
        ];
        self.send_request("POST", path, &headers.each_ref().map(String::as_str), body)
    }

    fn json(&self, path: &str) -> Value {
        let page = self.get(path);
        serde_json::from_str(&page.body).unwrap_or_else(|error| panic!("{path}: {error}: {}", page.body))
    }
}

/// Creates a store with recorded runs of several kinds.
fn create_store_with_runs(name: &str) -> std::path::PathBuf {
    let folder = create_new_folder(name);
    for (number, kept) in ["find-a", "find-b", "run", "prove", "overload"].iter().enumerate() {
        let path =
            folder.join(format!("{}-{}-4194999.plimsoll", kept.split('-').next().expect("a word"), 100 + number));
        std::fs::copy(copy_recorded_run_file(kept), path).expect("copied");
    }
    folder
}

#[test]
fn every_page_is_served_complete_and_protected() {
    let store = create_store_with_runs("serve-pages");
    let pages = ServeProcess::start(&store);
    let runs = pages.json("/api/v1/runs");
    let files: Vec<String> = runs["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| run["file"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(files.len(), 5);
    let service =
        runs["runs"].as_array().expect("runs").iter().find(|run| run["study"] == "find").expect("one")["service"]
            .clone();
    let service: String = url::form_urlencoded::byte_serialize(service.as_str().expect("text").as_bytes()).collect();
    let mut all: Vec<(String, &str)> = vec![
        ("/".into(), "<h1>Services</h1>"),
        ("/runs".into(), "two to six runs"),
        ("/start".into(), "<form"),
        (format!("/history?service={service}"), "oad line "),
        ("/metrics".into(), "plimsoll_rps{"),
        ("/app.css".into(), "@font-face"),
        ("/app.js".into(), "use strict"),
        ("/page.js".into(), "use strict"),
        ("/flame.js".into(), "use strict"),
        ("/api/v1/history".into(), "plimsoll.history/1"),
        ("/api/v1/studies".into(), "plimsoll.studies/1"),
        ("/compare?run=find-100-4194999.plimsoll&run=find-101-4194999.plimsoll".into(), "A:"),
    ];
    for file in &files {
        all.push((format!("/runs/{file}"), "All figures"));
        all.push((format!("/api/v1/runs/{file}"), "plimsoll."));
        all.push((format!("/runs/{file}/summary.md"), "\n"));
        all.push((format!("/runs/{file}/page.html"), "<!doctype html>"));
    }
    for (path, part) in all {
        let page = pages.get(&path);
        assert_eq!(page.status, 200, "{path}: {}", page.body);
        // Only pages of loads have the heading "All figures".
        assert!(part == "All figures" || page.body.contains(part), "{path}: no {part}");
        assert!(page.headers.contains("content-security-policy: default-src 'none'; script-src 'self'"), "{path}");
        assert!(page.headers.contains("x-content-type-options: nosniff"), "{path}");
    }
    for path in [
        "/nowhere",
        "/runs/nowhere.plimsoll",
        "/runs/..%2F..%2Fetc%2Fpasswd",
        "/runs/%2Fetc%2Fpasswd/file",
        "/studies/../x",
        "/studies/..%2F..%2Fx",
        "/api/v1/runs/index.sqlite",
        "/runs/index.sqlite/file",
    ] {
        assert_eq!(pages.get(path).status, 404, "{path}");
    }
    let picture = pages.get("/runs/find-100-4194999.plimsoll/picture");
    assert!(picture.status == 200 && picture.headers.contains("content-type: image/"), "{}", picture.headers);
    assert_eq!(pages.get("/compare?run=a.plimsoll").status, 400);
}

#[test]
fn actions_require_host_origin_and_token() {
    let store = create_store_with_runs("serve-guard");
    let pages = ServeProcess::start(&store);
    let (own, origin) = (format!("Host: {}", pages.address), format!("Origin: http://{}", pages.address));
    let port = pages.address.rsplit(':').next().expect("a port");
    let cookie = format!("Cookie: plimsoll_{port}={}", pages.token);
    let wrong = format!("Cookie: plimsoll_{port}={}", "0".repeat(32));
    let form = "study=find&url=http://127.0.0.1:1/";
    for (headers, expect) in [
        (vec![own.as_str(), &origin], 401),
        (vec![own.as_str(), &origin, &wrong], 401),
        (vec![own.as_str(), &cookie], 403),
        (vec![own.as_str(), "Origin: http://evil.test", &cookie], 403),
        (vec![own.as_str(), "Origin: null", &cookie], 403),
        (vec!["Host: evil.test", "Origin: http://evil.test", &cookie], 421),
        (vec!["Host: evil.test", &origin, &cookie], 421),
    ] {
        for path in ["/start", "/api/v1/studies", "/studies/find-1-1/stop", "/api/v1/studies/find-1-1/stop"] {
            assert_eq!(pages.send_request("POST", path, &headers, form).status, expect, "{path} {headers:?}");
        }
    }
    assert_eq!(pages.send_request("GET", "/", &["Host: evil.test"], "").status, 421);
    assert_eq!(pages.get("/login?token=wrong").status, 401);
    let login = pages.get(&format!("/login?token={}", pages.token));
    assert_eq!(login.status, 303);
    assert!(login.headers.contains("httponly") && login.headers.contains("samesite=strict"), "{}", login.headers);
    // The server must refuse forms with invalid values.
    for (form, part) in [
        ("study=find&url=--allow-public", "an address begins"),
        ("study=clean&url=http://h/", "must be find"),
        ("study=find", "give the address"),
    ] {
        let page = pages.send_post_request("/start", form);
        assert!(page.status == 400 && page.body.contains(part), "{form}: {} {}", page.status, page.body);
    }
    let long = format!("study=find&url=http://h/{}", "a".repeat(300_000));
    assert_eq!(pages.send_post_request("/start", &long).status, 413);
    assert!(pages.json("/api/v1/studies")["studies"].as_array().expect("a list").is_empty());
}

#[test]
fn malformed_requests_do_no_damage() {
    let store = create_store_with_runs("serve-malformed");
    let pages = ServeProcess::start(&store);
    let memory = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
        let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("a line").to_owned();
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).expect("a number")
    };
    // `env` has been replaced by plimsoll, so this process id is plimsoll's.
    let before = memory(pages.child.id());
    let long = "a".repeat(20_000);
    let bad: Vec<Vec<u8>> = vec![
        b"\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_vec(),
        b"POST /start HTTP/1.1\r\nContent-Length: -5\r\n\r\n".to_vec(),
        b"POST /start HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\nzzz\r\n".to_vec(),
        format!("GET /{long} HTTP/1.1\r\n\r\n").into_bytes(),
        format!("GET / HTTP/1.1\r\nX: {long}\r\n\r\n").into_bytes(),
        format!(
            "GET /history?by=%00%ff&service={} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            &long[..500],
            pages.address
        )
        .into_bytes(),
        format!("GET /runs/%ff%fe HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", pages.address).into_bytes(),
    ];
    for round in 0..50 {
        for (number, bytes) in bad.iter().enumerate() {
            let mut stream = TcpStream::connect(&pages.address).expect("connected");
            let _ = stream.write_all(&bytes[..bytes.len() - (round + number) % 2]);
        }
    }
    assert_eq!(pages.get("/").status, 200);
    let after = memory(pages.child.id());
    assert!(after < before + 64 * 1024, "{before} kB became {after} kB");
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(90);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what}: waited too long");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn location_header(page: &PageResponse) -> String {
    let line = page.headers.lines().find(|line| line.starts_with("location: ")).unwrap_or_default();
    line.trim_start_matches("location: ").to_owned()
}

/// Checks that a form starts a load, its page shows the progress, and its run is found at the end.
/// A stopped load keeps its measurements.
#[test]
fn a_web_study_starts_reports_progress_and_stops() {
    let server: Server = start_baseline(1);
    let store = create_new_folder("serve-start");
    let pages = ServeProcess::start(&store);
    let url: String =
        url::form_urlencoded::byte_serialize(format!("{}/delay/50", server.url.trim_end_matches('/')).as_bytes())
            .collect();
    let started =
        pages.send_post_request("/start", &format!("study=run&url={url}&concurrency=2&duration=1s&tag=from%3Dpage"));
    assert_eq!(started.status, 303, "{}", started.body);
    let study = location_header(&started);
    let name = study.trim_start_matches("/studies/").to_owned();
    assert!(pages.get(&study).body.contains("plimsoll run"), "its command line is shown");
    let done = wait_for("the run", || {
        Some(pages.json(&format!("/api/v1/studies/{name}"))).filter(|job| job["running"] == false)
    });
    assert_eq!(done["progress"]["is_found"], true, "{done}");
    let runs = pages.json("/api/v1/runs");
    assert_eq!(runs["runs"][0]["file"], done["run_file"], "{runs}");
    assert_eq!(runs["runs"][0]["tags"][0], serde_json::json!(["from", "page"]));
    let page = pages.get(&format!("/runs/{}", done["run_file"].as_str().expect("a file")));
    assert!(page.status == 200 && page.body.contains("from=page"), "{}", page.status);

    // During a long study, a second study is refused. A restarted server sees the study and can
    // stop it.
    let started = pages.send_post_request("/start", &format!("study=run&url={url}&concurrency=2&duration=60s"));
    let name = location_header(&started).trim_start_matches("/studies/").to_owned();
    wait_for("its ticks", || {
        Some(()).filter(|()| !pages.json(&format!("/api/v1/studies/{name}"))["progress"]["tick"].is_null())
    });
    let second = pages.send_post_request("/start", &format!("study=run&url={url}&duration=1s"));
    assert!(second.status == 400 && second.body.contains("two studies would disturb each other"), "{}", second.body);
    drop(pages);
    let pages = ServeProcess::start(&store);
    let job = pages.json(&format!("/api/v1/studies/{name}"));
    assert_eq!(job["running"], true, "{job}");
    assert!(pages.get("/").body.contains("Running now"));
    assert_eq!(pages.send_post_request(&format!("/studies/{name}/stop"), "").status, 303);
    let done = wait_for("its end", || {
        Some(pages.json(&format!("/api/v1/studies/{name}"))).filter(|job| job["running"] == false)
    });
    let file = store.join(done["run_file"].as_str().expect("a file"));
    let shown = plimsoll(&["show", "--json", file.to_str().expect("text")]).json();
    assert!(shown["requests"].as_u64().is_some_and(|requests| requests > 0), "{shown}");
}

fn encode_form_value(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Waits for the end of a study that a form started, and returns its document.
fn wait_for_study_end(pages: &ServeProcess, started: &PageResponse) -> Value {
    assert_eq!(started.status, 303, "{}", started.body);
    let name = location_header(started).trim_start_matches("/studies/").to_owned();
    wait_for("its end", || Some(pages.json(&format!("/api/v1/studies/{name}"))).filter(|job| job["running"] == false))
}

/// Checks that studies can start from a curl command line, from a traffic file, and from a recorded
/// run.
#[test]
fn studies_start_from_curl_files_of_traffic_and_runs() {
    let server: Server = start_baseline(1);
    let store = create_new_folder("serve-forms");
    let pages = ServeProcess::start(&store);
    let base = server.url.trim_end_matches('/');
    let short = "study=run&concurrency=1&duration=300ms";
    let curl = encode_form_value(&format!("curl -X POST -H 'X-A: b c' -d 'x=1' {base}/delay/50"));
    let done = wait_for_study_end(&pages, &pages.send_post_request("/start", &format!("{short}&curl={curl}")));
    let file = done["run_file"].as_str().unwrap_or_else(|| panic!("{done}")).to_owned();
    let document = pages.json(&format!("/api/v1/runs/{file}"));
    assert!(document["requests"].as_u64().is_some_and(|requests| requests > 0), "{document}");

    let traffic = format!("base = \"{base}\"\n[[request]]\nname = \"list\"\nget = \"/bytes/10\"\n");
    let form = format!("{short}&traffic={}", encode_form_value(&traffic));
    let shown = pages.send_post_request("/start", &format!("{form}&show=line"));
    assert!(shown.status == 200 && shown.body.contains("--file=traffic.toml"), "{}", shown.body);
    let done = wait_for_study_end(&pages, &pages.send_post_request("/start", &form));
    assert!(done["command"].as_str().is_some_and(|line| line.contains("--file=traffic.toml")), "{done}");
    assert!(done["run_file"].is_string(), "{done}");
    for (form, part) in [
        (format!("{short}&curl={}", encode_form_value(&format!("curl -d @/etc/passwd {base}/"))), "names files"),
        (
            format!("{short}&traffic={}", encode_form_value(&format!("{traffic}body = \"@/etc/passwd\"\n"))),
            "may not name",
        ),
        (format!("study=prove&url={}&a=touch+made&b=touch+made", encode_form_value(base)), "--allow-commands"),
    ] {
        let refused = pages.send_post_request("/start", &form);
        assert!(refused.status == 400 && refused.body.contains(part), "{form}: {}", refused.body);
    }

    // A form can repeat a run of the store as recorded, but no file outside the store.
    let done = wait_for_study_end(
        &pages,
        &pages.send_post_request(
            "/start",
            &format!("{short}&url={}&rate=", encode_form_value(&format!("{base}/delay/50"))),
        ),
    );
    let plain = done["run_file"].as_str().expect("a file").to_owned();
    let page = pages.get(&format!("/start?again={plain}"));
    assert!(page.body.contains("Again, as recorded") && page.body.contains("--concurrency=1"), "{}", page.body);
    let again = wait_for_study_end(&pages, &pages.send_post_request("/start", &format!("again={plain}")));
    assert!(again["run_file"].is_string() && again["run_file"] != plain.as_str(), "{again}");
    let seed = |file: &Value| {
        let file = file.as_str().expect("a file");
        pages.json(&format!("/api/v1/runs/{file}"))["seed"].clone()
    };
    assert_eq!(seed(&again["run_file"]), seed(&done["run_file"]));
    let refused = pages.send_post_request("/start", "again=../../etc/passwd");
    assert_eq!(refused.status, 404, "{}", refused.body);
}

#[test]
fn commands_run_only_where_the_server_allows_them() {
    let store = create_new_folder("serve-commands");
    let made = store.join("made");
    let form = format!(
        "study=prove&url={}&a={}&b={}&budget=3s",
        encode_form_value("http://127.0.0.1:9/"),
        encode_form_value(&format!("touch {}", made.display())),
        encode_form_value("true")
    );
    let pages = ServeProcess::start(&store);
    assert_eq!(pages.send_post_request("/start", &form).status, 400);
    assert!(!pages.get("/start").body.contains("name=\"before_block\""));
    drop(pages);
    assert!(!made.exists());
    let pages = ServeProcess::start_with(&store, &["--allow-commands"]);
    assert!(pages.get("/start").body.contains("name=\"before_block\""));
    wait_for_study_end(&pages, &pages.send_post_request("/start", &form));
    assert!(made.exists(), "A was started");
}

#[test]
fn pages_set_marks_that_keep_a_run() {
    let store = create_store_with_runs("serve-marks");
    let pages = ServeProcess::start(&store);
    let file = "find-100-4194999.plimsoll";
    let bytes = std::fs::read(store.join(file)).expect("a run file");
    let runs = |path: &str, form: &str| {
        let page = pages.send_post_request(path, form);
        (page.status, serde_json::from_str::<Value>(&page.body).unwrap_or_default())
    };
    let address = format!("/api/v1/runs/{file}/marks");
    let (status, document) = runs(&address, "tag=release%3D1.4&pin=yes");
    let run = &document["runs"][0];
    assert!(status == 200 && run["is_pinned"] == true, "{document}");
    assert!(run["tags"].as_array().is_some_and(|tags| tags.contains(&serde_json::json!(["release", "1.4"]))), "{run}");
    assert_eq!(std::fs::read(store.join(file)).expect("a run file"), bytes, "the run file is never changed");
    assert_eq!(runs(&address, "").0, 400);
    assert_eq!(runs(&address, "tag=nothing").0, 400);
    assert_eq!(runs(&address, "pin=perhaps").0, 400);
    assert_eq!(runs(&format!("/api/v1/runs/{file}/delete"), "").0, 400, "it is pinned");
    // The command `clean` keeps only runs with a tag or a pin.
    let dir = store.to_str().expect("text");
    let cleaned = plimsoll(&["clean", "--keep", "0", "--dir", dir]);
    assert_eq!(cleaned.code, 0, "{}", cleaned.stderr);
    let left = pages.json("/api/v1/runs");
    assert_eq!(left["runs"].as_array().map(Vec::len), Some(1), "{left}");
    assert_eq!(runs(&address, "untag=release&pin=no").0, 200);
    let origin = format!("Origin: http://{}", pages.address);
    let without = pages.send_request(
        "POST",
        &format!("/runs/{file}/delete"),
        &[&format!("Host: {}", pages.address), &origin],
        "",
    );
    assert_eq!(without.status, 401);
    assert_eq!(runs(&format!("/api/v1/runs/{file}/delete"), "").0, 200);
    assert!(!store.join(file).exists());
}

#[test]
fn pages_are_served_over_tls() {
    let store = create_new_folder("serve-tls");
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
    let (cert, key) = (store.join("cert.pem"), store.join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let (cert, key) = (text(&cert), text(&key));
    let pages = ServeProcess::start_with(&store, &["--tls-cert", &cert, "--tls-key", &key]);
    // A client that never begins its TLS handshake does not block other clients.
    let silent = TcpStream::connect(&pages.address).expect("connected");
    let url = format!("https://{}/", pages.address);
    let done = plimsoll(&["run", &url, "-n", "20", "-c", "2", "--cacert", &cert, "--json", "-q"]);
    assert_eq!(
        (done.code, done.json()["ledger"]["succeeded"].as_u64()),
        (0, Some(20)),
        "{}{}",
        done.stdout,
        done.stderr
    );
    drop(silent);
    assert_eq!(pages.get("/").status, 0, "plain HTTP has no answer");
    for (flags, part) in [
        (vec!["--tls-cert", &cert], "--tls-key"),
        (vec!["--tls-cert", &key, "--tls-key", &key], "--tls-cert"),
        (vec!["--tls-cert", &cert, "--tls-key", &cert], "--tls-key"),
        (vec!["--tls-cert", "/nowhere", "--tls-key", &key], "--tls-cert"),
    ] {
        let done = plimsoll(
            &[&["serve", "--listen", "127.0.0.1:0", "--store", store.to_str().expect("text")], &flags[..]].concat(),
        );
        assert!(done.code == 2 && done.stderr.contains(part), "{flags:?}: {}", done.stderr);
    }
}
