//! Tests `plimsoll run` on real servers: nginx, Go's net/http, and the reference server.

use crate::test_support::{
    assert_ledger_closes, command, go_server, nginx, number_at_path, plimsoll, run_to_json,
    run_until_generator_is_not_limit, signal, start_baseline, wait_for_exit,
};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn loads_of_every_shape_work_on_common_servers() {
    let servers = [nginx(), go_server(), start_baseline(1)];
    for server in &servers {
        let path = if server.url == servers[2].url { "/healthz" } else { "/" };
        let url = format!("{}{path}", server.url);
        for (load, scheduled) in [
            (&["-c", "4", "-d", "200ms"][..], None),
            (&["-c", "3", "-n", "1000"], Some(1000.0)),
            (&["-c", "1@100ms,5@100ms"], None),
            (&["-c", "5", "-n", "3"], Some(3.0)),
            (&["-c", "4", "-d", "200ms", "--warmup", "100ms"], None),
            (&["--rate", "1k", "-d", "500ms"], Some(500.0)),
            (&["--rate", "1k", "-n", "200", "--spin", "auto"], Some(200.0)),
            (&["--rate", "0..1000@500ms,1000@200ms"], Some(450.0)),
            (&["--rate", "1k", "-d", "500ms", "--arrivals", "poisson", "--seed", "7"], None),
            (&["-c", "4", "-n", "200", "--no-keepalive"], Some(200.0)),
            (&["-c", "4", "-n", "50", "-X", "HEAD"], Some(50.0)),
            (&["-c", "4", "-d", "200ms", "--spin", "on", "-t", "2"], None),
        ] {
            let what = format!("{load:?} on {url}");
            let document = run_to_json(&[&["run", &url], load].concat());
            assert_ledger_closes(&document, &what);
            assert_eq!(number_at_path(&document, "success_rate"), 1.0, "{what}: {:#}", document["ledger"]);
            assert!(number_at_path(&document, "throughput_rps") > 0.0, "{what}");
            if let Some(scheduled) = scheduled {
                assert_eq!(number_at_path(&document, "ledger.scheduled"), scheduled, "{what}");
            }
            for quantile in ["min", "mean", "max"] {
                let [response, service, ttfb] = ["response_time_ns", "service_time_ns", "ttfb_ns"]
                    .map(|clock| number_at_path(&document, &format!("{clock}.{quantile}")));
                assert!(response >= service && service >= ttfb && ttfb > 0.0, "{what}: {quantile}");
            }
            assert_eq!(
                number_at_path(&document, "response_time_ns.count"),
                number_at_path(&document, "requests"),
                "{what}"
            );
        }
    }
}

#[test]
fn responses_are_classified_correctly() {
    let server = go_server();
    for (path, flags, succeeded, status) in [
        ("/moved", &[][..], 20.0, "302"),
        ("/missing/", &["--ok-status", "2xx"], 20.0, "200"),
        ("/close", &[], 20.0, "200"),
        ("/chunked", &[], 20.0, "200"),
        ("/echo-length?want=5", &["-X", "PUT", "-b", "hello"], 20.0, "200"),
        ("/echo-length?want=6", &["-X", "PUT", "-b", "hello"], 0.0, "400"),
        ("/echo-length?want=6", &["-X", "PUT", "-b", "hello", "--ok-status", "400"], 20.0, "400"),
        ("/moved", &["--ok-status", "200"], 0.0, "302"),
    ] {
        let url = format!("{}{path}", server.url);
        let document = run_to_json(&[&["run", &url, "-n", "20", "-c", "2"], flags].concat());
        assert_ledger_closes(&document, path);
        assert_eq!(
            number_at_path(&document, "ledger.succeeded"),
            succeeded,
            "{path} {flags:?}: {:#}",
            document["ledger"]
        );
        assert_eq!(number_at_path(&document, &format!("statuses.{status}")), 20.0, "{path} {flags:?}");
        assert_eq!(number_at_path(&document, "ledger.failed.status"), 20.0 - succeeded, "{path} {flags:?}");
    }
}

#[test]
fn large_bodies_are_streamed_in_both_directions() {
    let server = start_baseline(1);
    let document = run_to_json(&["run", &format!("{}/bytes/30000000", server.url), "-n", "4", "-c", "2"]);
    assert_eq!(number_at_path(&document, "ledger.succeeded"), 4.0);
    assert!(number_at_path(&document, "bytes_in") >= 120e6);
    let go = go_server();
    let folder = crate::test_support::create_new_folder("body");
    let body = folder.join("body.bin");
    std::fs::write(&body, vec![b'x'; 3_000_000]).expect("written");
    let flag = format!("@{}", body.display());
    let document = run_to_json(&[
        "run",
        &format!("{}/echo-length?want=3000000", go.url),
        "-X",
        "PUT",
        "-b",
        &flag,
        "-n",
        "6",
        "-c",
        "3",
    ]);
    assert_eq!(number_at_path(&document, "ledger.succeeded"), 6.0);
    assert!(number_at_path(&document, "bytes_out") >= 18e6);
}

#[test]
fn requests_beyond_the_connection_limit_count_as_unsent() {
    let server = start_baseline(1);
    let url = format!("{}/delay/300", server.url);
    let document = run_to_json(&["run", &url, "--rate", "200", "-d", "1s", "--max-connections", "10"]);
    assert_ledger_closes(&document, "unsent");
    assert!(number_at_path(&document, "ledger.unsent") > 100.0, "{:#}", document["ledger"]);
    assert!(number_at_path(&document, "connections_open_max") <= 10.0);
    // Without a connection limit (`--max-connections`), every arrival gets its own connection.
    let document = run_to_json(&["run", &url, "--rate", "200", "-d", "1s"]);
    assert_eq!(number_at_path(&document, "ledger.unsent"), 0.0);
    assert_eq!(number_at_path(&document, "ledger.succeeded"), 200.0);
    assert!(number_at_path(&document, "response_time_ns.min") >= 300e6);
}

#[test]
fn conditions_decide_the_exit_code() {
    let server = start_baseline(1);
    let (good, bad) = (format!("{}/healthz", server.url), format!("{}/status/500", server.url));
    for (url, flags, code, said) in [
        (&good, &["--fail-if", "p99<0ms"][..], 0, ""),
        (&good, &["--fail-if", "p50>=0ms", "--on-inconclusive=fail"], 1, "--fail-if p50"),
        (&bad, &["--fail-if", "errors>5%"], 1, "--fail-if errors"),
        (&bad, &["--stop-if", "errors>5%", "-d", "60s", "--rate", "200"], 1, "--stop-if errors"),
    ] {
        let flags = if flags.contains(&"-d") { flags.to_vec() } else { [flags, &["-n", "100"]].concat() };
        let done = plimsoll(&[&["run", url.as_str(), "--quiet"], flags.as_slice()].concat());
        assert_eq!(done.code, code, "{flags:?}: {}{}", done.stdout, done.stderr);
        assert!(format!("{}{}", done.stdout, done.stderr).contains(said), "{flags:?}: {}{}", done.stdout, done.stderr);
    }
}

/// Checks that ^C works in each phase, also while a connection attempt hangs.
#[test]
fn an_interrupt_works_while_connecting() {
    // The accept queue is full, so further connection attempts hang until the kernel's timeout.
    let any = "127.0.0.1:0".parse().expect("an address");
    let dead = plimsoll_sys::tcp::Listener::bind(&any, 0, false).expect("bound");
    let address = dead.local_address().expect("bound");
    let _queue: Vec<_> = (0..4).map(|_| plimsoll_sys::tcp::Socket::connect(&address)).collect();
    let (server, dead) = (start_baseline(1), format!("http://{address}/"));
    let live = format!("{}/healthz", server.url);
    for arguments in [
        &["run", &dead, "-d", "60s"][..],
        &["run", &live, "-d", "60s", "--pprof", &dead],
        &["run", &live, "-d", "60s", "--metrics", &dead],
        &["find", &dead],
        &["prove", &dead, &live],
    ] {
        let child = command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        // The interrupt comes before plimsoll gives up by itself: a profile endpoint has 700 ms to
        // respond.
        std::thread::sleep(Duration::from_millis(300));
        let told = Instant::now();
        signal(child.id(), "INT");
        let done = wait_for_exit(child);
        assert_eq!(done.code, 130, "{arguments:?}: {}", done.stderr);
        assert!(told.elapsed() < Duration::from_secs(2), "{arguments:?}: {:?}", told.elapsed());
    }
}

#[test]
fn an_interrupt_ends_with_a_report() {
    let server = start_baseline(1);
    let url = format!("{}/delay/5", server.url);
    for signal_name in ["INT", "TERM"] {
        let child = command(&["run", &url, "-d", "60s", "--spin=off", "--json", "--quiet"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        std::thread::sleep(Duration::from_millis(700));
        signal(child.id(), signal_name);
        let done = wait_for_exit(child);
        assert_eq!(done.code, 130, "{}", done.stderr);
        let document = done.json();
        assert_ledger_closes(&document, "interrupted");
        assert!(number_at_path(&document, "duration_s") < 30.0);
        assert!(number_at_path(&document, "ledger.succeeded") > 0.0);
        assert_eq!(document["ended"], "stopped: interrupted");
    }
}

#[test]
fn a_stalling_server_shows_in_response_times() {
    let server = plimsoll_bench::servers::start_periodic_stall_server(200, 1000).expect("starts");
    // The server stalls for 200 ms in each second, and a fifth of the arrivals waits until the
    // stall ends. So p95 is 150 ms, and p99 190 ms. A busy machine only adds to the response times,
    // so the minimum of a few runs is compared.
    let mut least = [f64::INFINITY; 2];
    for _ in 0..4 {
        let document = run_to_json(&["run", &server.url("/"), "--rate", "500", "-d", "3s"]);
        assert_ledger_closes(&document, "stall");
        for (least, quantile) in least.iter_mut().zip(["p95", "p99"]) {
            *least = least.min(number_at_path(&document, &format!("response_time_ns.{quantile}")));
        }
        if (least[0] / 150e6 - 1.0).abs() < 0.2 && (least[1] / 190e6 - 1.0).abs() < 0.2 {
            return;
        }
    }
    panic!("p95 and p99 in ns: {least:?}");
}

#[test]
fn throughput_equals_server_capacity_for_any_load_window() {
    let server = plimsoll_bench::servers::start_slots_server(4, 20.0).expect("starts");
    for load in [
        &["-c", "64", "--warmup", "1s", "-d", "1s"][..],
        &["-c", "64", "-d", "1s"],
        &["-c", "4", "--warmup", "333ms", "-d", "1500ms"],
        &["--rate", "300", "--warmup", "1s", "-d", "1s"],
    ] {
        // A busy machine slows the server, so the best of a few runs is compared. At both ends of
        // the measured window, each of the server's 4 workers may be within a request, which
        // explains the tolerance.
        let seconds = if load.contains(&"1500ms") { 1.5 } else { 1.0 };
        let near = (0..4).any(|_| {
            let document = run_until_generator_is_not_limit(&[&["run", &server.url("/")], load].concat());
            assert_ledger_closes(&document, &format!("{load:?}"));
            // With four users there is no queue: a worker is idle from a response until the next
            // request arrives, however long the machine takes. Little's law gives the throughput of
            // four users.
            let pool_rps = match load[1] {
                "4" => 4.0 / (number_at_path(&document, "response_time_ns.mean") / 1e9),
                _ => 200.0,
            };
            (number_at_path(&document, "throughput_rps") - pool_rps).abs() <= 4.0 / seconds + 2.0
        });
        assert!(near, "{load:?}");
    }
}

#[test]
fn a_run_report_does_not_contradict_itself() {
    // Each response takes 700 ms, so some responses come after the measured window of 1 s. The
    // reported rate counts only responses within the window, but the share of successes counts all
    // requests scheduled in the window.
    let server = plimsoll_bench::servers::start_slots_server(64, 700.0).expect("starts");
    let late = plimsoll(&["run", &server.url("/"), "--rate", "40", "-d", "1s", "-qv"]);
    let answer =
        |text: &str| text.lines().find(|line| line.contains("requests/s succeeded")).unwrap_or_default().to_owned();
    let first = answer(&late.stdout);
    for part in [
        "requests/s succeeded in the window (offered: 40 requests/s",
        "; 100 % of 40 requests",
        "after the measured window",
    ] {
        assert!(first.contains(part), "{part}: {first}");
    }
    // With only 40 requests there is no p99, and no tail of the generator's lag either.
    assert!(late.stdout.contains("p99, p99.9 unknown: fewer than 10 of 40 requests are slower"), "{}", late.stdout);
    assert!(late.stdout.contains(" (40 samples), "), "{}", late.stdout);
    let server = plimsoll_bench::servers::start_instant_server().expect("starts");
    let users = plimsoll(&["run", &server.url("/"), "-c", "2", "-n", "200", "--quiet"]);
    let first = answer(&users.stdout);
    assert!(first.ends_with(" requests/s succeeded with 2 users; 100 % of 200 requests succeeded"), "{first}");
}
