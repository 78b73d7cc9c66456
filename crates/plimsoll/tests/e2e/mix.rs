//! Tests traffic files (`-f`): several requests by weight, under every command that generates load,
//! and errors about invalid files.

use crate::test_support::{
    ReceivedRequest, assert_ledger_closes, command, create_new_folder, number_at_path, plimsoll, run_to_json,
    start_baseline, wait_for_exit,
};
use std::io::{BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Writes a traffic file into a new folder.
fn write_traffic_file(name: &str, text: &str) -> PathBuf {
    let path = create_new_folder("mix").join(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn path_text(path: &std::path::Path) -> &str {
    path.to_str().expect("a name in UTF-8")
}

const MIX: &str = r#"
[[request]]
name = "list"
weight = 3
get = "/bytes/20"
[[request]]
name = "missing"
get = "/status/404"
expect = { status = "404" }
[[request]]
name = "order"
weight = 4
post = "/bytes/5"
json = { ok = true }
"#;

#[test]
fn every_command_requests_a_mix_by_weight() {
    let server = start_baseline(1);
    let path = write_traffic_file("mix.toml", MIX);
    let mix = ["-f", path_text(&path), "--target", &server.url];
    let document = run_to_json(&[&["run", "-n", "800", "-c", "4", "--seed", "3"], &mix[..]].concat());
    assert_ledger_closes(&document, "a mix");
    assert_eq!(number_at_path(&document, "success_rate"), 1.0, "{:#}", document["ledger"]);
    assert_eq!(number_at_path(&document, "ledger.scheduled"), 800.0);
    let missing = number_at_path(&document, "statuses.404");
    assert!((60.0..=140.0).contains(&missing), "an eighth of them: {missing}");
    assert_eq!(number_at_path(&document, "statuses.200"), 800.0 - missing);
    // Each request has its own figures, and their sums equal the totals.
    let routes = document["routes"].as_array().expect("routes");
    let names: Vec<&str> = routes.iter().filter_map(|route| route["name"].as_str()).collect();
    assert_eq!(names, ["list", "missing", "order"]);
    assert_eq!(routes.iter().map(|route| number_at_path(route, "requests")).sum::<f64>(), 800.0);
    assert_eq!(number_at_path(&routes[1], "statuses.404"), missing);
    assert_eq!(
        routes.iter().map(|route| number_at_path(route, "bytes_in")).sum::<f64>(),
        number_at_path(&document, "bytes_in")
    );
    assert!(number_at_path(&routes[0], "bytes_in") > 20.0 * number_at_path(&routes[0], "requests"), "{:#}", routes[0]);
    for route in routes {
        assert_eq!(number_at_path(route, "response_time_ns.count"), number_at_path(route, "requests"), "{route:#}");
        assert_eq!(number_at_path(route, "success_rate"), 1.0, "{route:#}");
    }
    // In an open loop, the same seed gives the same requests for any number of threads. In a closed
    // loop, the mix is about the same.
    let again = run_to_json(&[&["run", "-n", "800", "-c", "4", "-t", "2", "--seed", "3"], &mix[..]].concat());
    let open = ["run", "-n", "400", "--rate", "4k", "--seed", "3", "-t"];
    let opened = ["1", "2"].map(|threads| run_to_json(&[&open[..], &[threads], &mix[..]].concat()));
    assert_eq!(number_at_path(&opened[0], "statuses.404"), number_at_path(&opened[1], "statuses.404"));
    assert!((number_at_path(&again, "statuses.404") - missing).abs() < 60.0);

    let found = run_to_json(
        &[&["find", "--budget", "3s", "--max-rate", "400", "--slo", "success>=99%, p99<=1s"], &mix[..]].concat(),
    );
    assert!(number_at_path(&found, "peak.rps") > 0.0, "{found:#}");
    let dir = create_new_folder("mix-sweep");
    let swept = plimsoll(&[&["sweep", "-c", "1,2", "--for", "200ms", "--dir", path_text(&dir)], &mix[..]].concat());
    assert_eq!(swept.code, 0, "{}", swept.stderr);
    // `sweep` writes a table for the whole load, and a table for each route (request of the traffic
    // file).
    assert!(swept.stderr.contains("sweep_1-list.dat to "), "{}", swept.stderr);
    let goodputs = |name: &str| -> Vec<f64> {
        let table = std::fs::read_to_string(dir.join(name)).expect("a table");
        table.lines().map(|line| line.split(' ').nth(1).and_then(|rps| rps.parse().ok()).expect("a rate")).collect()
    };
    let whole = goodputs("sweep.dat");
    assert_eq!(whole.len(), 2);
    let routes = ["sweep_1-list.dat", "sweep_2-missing.dat", "sweep_3-order.dat"].map(goodputs);
    for (level, whole) in whole.iter().enumerate() {
        let sum: f64 = routes.iter().map(|rates| rates[level]).sum();
        assert!((sum - whole).abs() < 0.1, "{sum} of {whole}");
    }
    // If requests cost the server no CPU time, plimsoll would be the limit, and the blocks (loads)
    // of the comparison would be void. Each `list` request of the comparison therefore costs the
    // server 500 us of CPU time.
    let path = write_traffic_file("mix-burning.toml", &MIX.replace("/bytes/20", "/burn/500"));
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
        &server.url,
        &server.url,
    ]);
    assert!([0, 3].contains(&proved.code), "{}{}", proved.stdout, proved.stderr);
}

#[test]
fn a_run_of_a_mix_is_repeated_from_its_record() {
    let server = start_baseline(1);
    let path = write_traffic_file("again.toml", MIX);
    let record = create_new_folder("mix-again").join("run.plimsoll");
    let run =
        ["run", "-n", "50", "-c", "2", "-f", path_text(&path), "--target", &server.url, "-o", path_text(&record), "-q"];
    assert_eq!(plimsoll(&run).code, 0);
    let (again, other) = (record.with_file_name("again.plimsoll"), record.with_file_name("other.plimsoll"));
    let unasked = plimsoll(&["rerun", path_text(&record)]);
    assert!(unasked.code == 2 && unasked.stderr.contains("--yes"), "{}", unasked.stderr);
    let again = plimsoll(&["rerun", path_text(&record), "--yes", "-o", path_text(&again)]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    // A changed traffic file is a different load, which `rerun` refuses.
    std::fs::write(&path, MIX.replace("/bytes/20", "/bytes/21")).expect("written");
    let other = plimsoll(&["rerun", path_text(&record), "--yes", "-o", path_text(&other)]);
    assert_eq!(other.code, 2, "{}", other.stdout);
    assert!(other.stderr.contains("--file: the value differs from the record"), "{}", other.stderr);
}

#[test]
fn check_shows_the_first_requests() {
    let path = write_traffic_file(
        "check.yaml",
        "base: http://h:1/api\nrequest:\n  - {post: /orders, name: order, json: {ok: true}}\n",
    );
    let done = plimsoll(&["check", "-f", path_text(&path)]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    for part in ["1 request at http://h:1", "5. order", "POST /api/orders HTTP/1.1", "Host: h:1", "{\"ok\":true}"] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    let done = plimsoll(&["check", "-f", path_text(&path), "--http", "2"]);
    for part in [
        ":method: POST",
        ":scheme: http",
        ":authority: h:1",
        ":path: /api/orders",
        "content-length: 11",
        "{\"ok\":true}",
    ] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    assert!(!done.stdout.contains("HTTP/1.1") && !done.stdout.contains("user-agent"), "{}", done.stdout);
    let secure = plimsoll(&["check", "-f", path_text(&path), "--target", "https://h:1/api"]).stdout;
    assert!(secure.contains("the requests use HTTP/2 if the server offers HTTP/2"), "{secure}");
}

#[test]
fn file_errors_are_one_sentence_with_a_position() {
    let misspelt =
        write_traffic_file("misspelt.toml", "base = \"http://127.0.0.1:1\"\n[[request]]\nwieght = 1\nget = \"/\"\n");
    let nowhere = write_traffic_file("nowhere.toml", "[[request]]\nget = \"/\"\n");
    let header = write_traffic_file(
        "header.toml",
        "base = \"http://127.0.0.1:1\"\n[[request]]\nget = \"/\"\nheaders = { \"a b\" = \"x\" }\n",
    );
    let steers = write_traffic_file("steers.json", "{\"\\u001b[31mx\": 1}");
    let bytes = create_new_folder("mix").join("bytes.toml");
    std::fs::write(&bytes, b"a = 1\n\xff").expect("written");
    for (arguments, part) in [
        (
            vec!["run", "-f", path_text(&misspelt)],
            "misspelt.toml:3:1: there is no key 'wieght' in a request: did you mean 'weight'?",
        ),
        (vec!["check", "-f", path_text(&misspelt)], "misspelt.toml:3:1: "),
        (vec!["run", "-f", path_text(&nowhere)], "--target URL"),
        (vec!["check", "-f", path_text(&header)], "header.toml:4:13: \"a b\" is not the name of a header"),
        (vec!["find", "-f", path_text(&header)], "header.toml:4:13: \"a b\" is not the name of a header"),
        (vec!["check", "-f", path_text(&steers)], "there is no key '?[31mx'"),
        (vec!["check", "-f", path_text(&bytes)], "bytes.toml:2: this is not UTF-8"),
        (vec!["check", "-f", "/no/such/file.toml"], "cannot be read"),
        (vec!["check", "-f", "/dev/zero"], "the limit for a file of traffic"),
        (vec!["run", "-f", path_text(&nowhere), "-X", "POST"], "exclude each other"),
        (vec!["run", "--target", "http://127.0.0.1:1/"], "--file"),
    ] {
        let done = plimsoll(&arguments);
        assert_eq!(done.code, 2, "{arguments:?}: {}{}", done.stdout, done.stderr);
        let said = done.stderr.replace("\n  ", " ");
        assert!(said.contains(part), "{arguments:?}: {said}");
        assert!(!done.stderr.contains('\u{1b}'));
    }
}

/// Starts a server with JSON responses. Every third response has the wrong value `"ok": false`.
fn start_server_with_wrong_third_responses() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let asked = Arc::new(AtomicUsize::new(0));
    // The threads end with the test's process.
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (Ok(mut socket), asked) = (socket, Arc::clone(&asked)) else { return };
            std::thread::spawn(move || -> std::io::Result<()> {
                socket.set_nodelay(true)?;
                while socket.read(&mut [0; 4096])? > 0 {
                    let is_right = asked.fetch_add(1, Ordering::Relaxed) % 3 < 2;
                    let body = format!("{{\"ok\": {is_right}, \"token\": \"s3cretvalue\"}}");
                    let head =
                        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
                    socket.write_all(format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).as_bytes())?;
                }
                Ok(())
            });
        }
    });
    format!("http://{address}")
}

#[test]
fn unexpected_responses_are_failures_with_an_example() {
    let url = start_server_with_wrong_third_responses();
    let checked = r#"
[[request]]
name = "checked"
get = "/"
expect = { json = { "$.ok" = true }, header = { content-type = "json" }, body = "regex:.tok", within = "5s" }
"#;
    let with_other = |checked: &str| format!("{checked}[[request]]\nname = \"any\"\nget = \"/any\"\n");
    let path = write_traffic_file("expect.toml", &with_other(checked));
    let mix = ["-f", path_text(&path), "--target", &url, "--no-preflight"];
    let record = create_new_folder("expect").join("run.plimsoll");
    let run = [&["run", "-n", "300", "-c", "2", "-o", path_text(&record)], &mix[..]].concat();
    let document = run_to_json(&run);
    assert_ledger_closes(&document, "expectations");
    let missed = number_at_path(&document, "ledger.failed.expectation");
    assert!((10.0..120.0).contains(&missed), "{:#}", document["ledger"]);
    assert_eq!(number_at_path(&document, "ledger.succeeded"), 300.0 - missed);
    assert_eq!(number_at_path(&document["routes"][0], "failed.expectation"), missed);
    let kept = &document["failed_answers"][0];
    assert_eq!((kept["missed"].as_str(), kept["route"].as_str()), (Some("expectation"), Some("checked")), "{kept:#}");
    assert_eq!((kept["status"].as_u64(), number_at_path(kept, "requests")), (Some(200), missed), "{kept:#}");
    assert_eq!(kept["reason"].as_str(), Some("$.ok is not true"), "{kept:#}");
    let shown = plimsoll(&["show", path_text(&record)]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["expectation", "checked: HTTP/1.1 200 OK", "$.ok is not true"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    for bytes in [shown.as_bytes(), &std::fs::read(&record).expect("a record")] {
        assert!(!bytes.windows(7).any(|part| part == b"s3cretv"));
    }
    // A changed expectation in the traffic file makes a different load, which `rerun` refuses.
    std::fs::write(&path, with_other(&checked.replace("true", "false"))).expect("written");
    let again = plimsoll(&["rerun", path_text(&record), "--yes"]);
    assert!(again.code == 2 && again.stderr.contains("the value differs from the record"), "{}", again.stderr);
}

#[test]
fn post_only_loads_have_no_preflight_request() {
    let server = start_baseline(1);
    let path = write_traffic_file("post.toml", "[[request]]\npost = \"/bytes/1\"\n");
    let run = ["run", "-n", "3", "-c", "1", "-f", path_text(&path), "--target"];
    let document = run_to_json(&[&run[..], &[&server.url]].concat());
    assert_eq!(number_at_path(&document, "ledger.succeeded"), 3.0);
    let closed = plimsoll(&[&run[..], &["http://127.0.0.1:1"]].concat());
    assert_eq!(closed.code, 2);
    assert!(closed.stderr.contains("no server accepts connections"), "{}", closed.stderr);
}

const TEMPLATE_TRAFFIC_FILE: &str = r#"
[[request]]
name = "row"
weight = 3
get = "/status/{{ row.status }}?id={{ uuid() }}"
headers = { authorization = "Bearer {{ env.PLIMSOLL_TEST_TOKEN }}" }
[[request]]
name = "drawn"
post = "/bytes/{{ int(1,9) }}"
json = { n = "{{ seq() }}", who = "{{ row.who }}" }
[data.row]
file = "rows.csv"
"#;

#[test]
fn requests_use_data_rows_and_random_values() {
    let server = start_baseline(1);
    let path = write_traffic_file("filled.toml", TEMPLATE_TRAFFIC_FILE);
    std::fs::write(path.with_file_name("rows.csv"), "status,who\n200,\"a \"\"b\"\"\"\n404,c\n200,d\n")
        .expect("written");
    let record = create_new_folder("mix-filled").join("run.plimsoll");
    let run = |arguments: &[&str]| {
        let mut command =
            command(&[&["run", "--json", "-q", "-f", path_text(&path), "--target", &server.url], arguments].concat());
        command.env("PLIMSOLL_TEST_TOKEN", "Zq7xK2mW9vLp4TnR8sYd").stdout(Stdio::piped()).stderr(Stdio::piped());
        wait_for_exit(command.spawn().expect("starts"))
    };
    let open = ["--rate", "3k", "-n", "600", "--seed", "5", "-o", path_text(&record), "-t"];
    let [one, two] = ["1", "2"].map(|threads| run(&[&open[..], &[threads]].concat()).json());
    assert_ledger_closes(&one, "filled in");
    // The request number determines the row of the data file. One row in three has status 404. The
    // server responds with the status of the row, which the request contains.
    let missing = number_at_path(&one, "statuses.404");
    assert!((100.0..=200.0).contains(&missing), "{missing}");
    assert_eq!(missing, number_at_path(&two, "statuses.404"));
    assert_eq!(number_at_path(&one, "statuses.200") + missing, 600.0, "{:#}", one["statuses"]);
    let bytes = std::fs::read(&record).expect("a run file");
    assert!(!bytes.windows(8).any(|window| window == b"Zq7xK2mW"), "no value of the environment is recorded");

    let check = |arguments: &[&str]| {
        let mut command = command(&[&["check", "-f", path_text(&path)], arguments].concat());
        command.env("PLIMSOLL_TEST_TOKEN", "s3cret").stdout(Stdio::piped()).stderr(Stdio::piped());
        wait_for_exit(command.spawn().expect("starts"))
    };
    let shown = check(&["--seed", "1"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(
        shown.stdout.contains("authorization: Bearer [redacted]") && !shown.stdout.contains("s3cret"),
        "{}",
        shown.stdout
    );
    assert_eq!(shown.stdout, check(&["--seed", "1"]).stdout);
    assert_ne!(shown.stdout, check(&["--seed", "2"]).stdout);
    // Without its environment variable, the traffic file is refused, and nothing is sent.
    let unset = plimsoll(&["check", "-f", path_text(&path)]);
    assert_eq!(unset.code, 2);
    assert!(unset.stderr.contains("filled.toml:6:"), "{}", unset.stderr);
}

#[test]
fn single_use_rows_must_suffice() {
    let server = start_baseline(1);
    let path = write_traffic_file(
        "once.toml",
        "[[request]]\nget = \"/status/{{ row.status }}\"\n[data.row]\nfile = \"once.csv\"\npick = \"unique\"\n",
    );
    std::fs::write(path.with_file_name("once.csv"), "status\n200\n201\n202\n203\n204\n").expect("written");
    let arguments = ["-f", path_text(&path), "--target", &server.url];
    let exact = run_to_json(&[&["run", "-n", "5", "-c", "2"], &arguments[..]].concat());
    for status in ["200", "201", "202", "203", "204"] {
        assert_eq!(number_at_path(&exact, &format!("statuses.{status}")), 1.0, "{:#}", exact["statuses"]);
    }
    // A closed load limited by time ends when each row of its data file has been used.
    let timed = run_to_json(&[&["run", "-d", "20s", "-c", "2"], &arguments[..]].concat());
    assert_eq!(number_at_path(&timed, "requests"), 5.0);
    assert!(
        timed["ended"].as_str().is_some_and(|ended| ended.contains("no unused row left (pick = \"unique\"")),
        "{}",
        timed["ended"]
    );
    assert_eq!(exact["ended"].as_str(), Some("finished"));
    for (words, part) in [
        (&["run", "-n", "6", "-c", "2"][..], "has 5 rows, each used once, and this load needs 6 requests"),
        (&["run", "--rate", "100", "-d", "1s"], "this load needs 100 requests"),
        (&["find"], "used once each"),
        (&["sweep", "-c", "1"], "used once each"),
    ] {
        let done = plimsoll(&[words, &arguments].concat());
        assert_eq!(done.code, 2, "{words:?}: {}", done.stdout);
        assert!(done.stderr.replace("\n  ", " ").contains(part), "{words:?}: {}", done.stderr);
    }
}

/// Starts a server that takes `ms` for `/order` and no time for other paths.
fn start_server_with_slow_orders(ms: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || -> std::io::Result<()> {
                let mut out = socket.try_clone()?;
                let mut lines = BufReader::new(socket);
                while let Some(heard) = ReceivedRequest::next(&mut lines)? {
                    if heard.head[0].contains("/order") {
                        std::thread::sleep(std::time::Duration::from_millis(ms));
                    }
                    out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
                }
                Ok(())
            });
        }
    });
    url
}

#[test]
fn builds_are_compared_for_each_request() {
    let (a, b) = (start_server_with_slow_orders(4), start_server_with_slow_orders(48));
    let path = write_traffic_file(
        "compared.toml",
        "[[request]]\nname = \"list\"\nget = \"/list\"\n[[request]]\nname = \"order\"\npost = \"/order\"\n",
    );
    let record = create_new_folder("mix-prove").join("prove.plimsoll");
    let document = run_to_json(&[
        "prove",
        "-f",
        path_text(&path),
        &a,
        &b,
        "-c",
        "4",
        "--for",
        "150ms",
        "--blocks",
        "14",
        "--budget",
        "40s",
        "-o",
        path_text(&record),
    ]);
    assert_eq!(document["verdict"], "worse", "{document:#}");
    let routes = document["routes"].as_array().expect("routes");
    let names: Vec<&str> = routes.iter().filter_map(|route| route["name"].as_str()).collect();
    assert_eq!(names, ["list", "order"]);
    let p50 = |route: &serde_json::Value| {
        let measures = route["measures"].as_array().expect("measures").clone();
        measures.into_iter().find(|one| one["name"] == "p50_ns").expect("a median")
    };
    let (list, order) = (p50(&routes[0]), p50(&routes[1]));
    assert_eq!((&order["verdict"], &order["primary"]), (&"worse".into(), &false.into()), "{order:#}");
    // On side B of the comparison, cores go idle between requests and wake up late. A list request
    // may therefore take twice as long, but its ratio of times (B to A) stays below the ratio of
    // the order requests.
    let (list_ratio, order_ratio) = (number_at_path(&list, "ratio"), number_at_path(&order, "ratio"));
    assert!(order_ratio > 2.0 && list_ratio < order_ratio / 2.0, "{routes:#?}");
    assert!(
        number_at_path(&order, "p") <= 0.05 && routes[1]["requests"][0].as_f64().is_some_and(|asked| asked > 10.0),
        "{routes:#?}"
    );
    // The run file gives the same results in every format.
    let shown = plimsoll(&["show", "--json", path_text(&record)]).json();
    assert_eq!(shown["routes"], document["routes"]);
    // If the list requests are really slower on B, because idle cores wake up late, the text names
    // the list requests first.
    let measures = routes[0]["measures"].as_array().expect("measures");
    let first = match measures.iter().any(|measure| measure["verdict"] == "worse") {
        true => "worse: list (p",
        false => "worse: order (p50 +",
    };
    for show in
        [plimsoll(&["show", "-v", path_text(&record)]), plimsoll(&["report", "--format", "md", path_text(&record)])]
    {
        let told = show.stdout.lines().any(|line| line.contains(first) && line.contains("order (p50 +"));
        assert!(told, "{first}: {}{}", show.stdout, show.stderr);
    }
    let page = std::fs::read_to_string(record.with_extension("html")).expect("a page");
    assert!(page.contains("corrected for the number of comparisons"));
}
