//! Tests every kind of address: hosts with only IPv6, an address other than the URL's, unix
//! sockets, local addresses, and closing by reset.

use crate::test_support::{
    assert_ledger_closes, baseline_at, create_new_folder, nginx_unix, number_at_path, plimsoll, run_to_json,
    start_baseline, wait_for_exit,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

#[test]
fn a_target_with_ipv6_only_is_loaded() {
    let server = baseline_at("[::1]:0", 1);
    let url = format!("{}/healthz", server.url);
    let document = run_to_json(&["run", &url, "-c", "3", "-n", "50"]);
    assert_eq!(number_at_path(&document, "ledger.succeeded"), 50.0, "{document:#}");
    let document = run_to_json(&["run", &url, "-n", "20", "--source-ip", "::1", "--no-keepalive"]);
    assert_eq!(number_at_path(&document, "ledger.succeeded"), 20.0, "{document:#}");
}

#[test]
fn connections_use_the_requested_addresses() {
    let server = start_baseline(1);
    let there = server.url.trim_start_matches("http://");
    let document = run_to_json(&["run", "http://api.invalid:81/healthz", "--connect-to", there, "-n", "20"]);
    assert_eq!(number_at_path(&document, "ledger.succeeded"), 20.0, "{document:#}");
    assert_eq!(document["url"], "http://api.invalid:81/healthz");
    // Resolving the name repeatedly changes nothing if the addresses stay the same.
    let url = format!("{}/healthz", server.url.replace("127.0.0.1", "localhost"));
    let document = run_to_json(&["run", &url, "-c", "2", "-d", "400ms", "--resolve-every", "20ms", "--no-keepalive"]);
    assert_ledger_closes(&document, "resolved again");
    assert_eq!(number_at_path(&document, "success_rate"), 1.0, "{document:#}");
}

#[test]
fn unix_sockets_are_loaded_or_reported() {
    // The system limits the length of a socket's path, so the folder has a short path.
    let folder = std::env::temp_dir().join(format!("plimsoll-e2e-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("n.sock");
    let shown = path.to_str().expect("text");
    let server = nginx_unix(&path);
    for load in
        [&["-c", "3", "-n", "100"][..], &["-c", "3", "-n", "50", "--no-keepalive"], &["--rate", "200", "-n", "50"]]
    {
        let document = run_to_json(&[&["run", "http://api/", "--unix", shown], load].concat());
        assert_ledger_closes(&document, "unix");
        assert_eq!(number_at_path(&document, "success_rate"), 1.0, "{load:?}: {document:#}");
        // plimsoll finds the server's processes by the unix socket on which they listen.
        assert_eq!(document["server"]["name"], "nginx", "{:#}", document["server"]);
        assert_eq!(document["server"]["found_by"], format!("it listens on the unix socket {shown}"));
        assert!(document["server"]["rss_bytes_max"].is_number(), "{:#}", document["server"]);
    }
    drop(server);
    // In the first case the socket file exists without a listener; in the second case the socket
    // file is missing.
    let left = folder.join("left.sock");
    drop(UnixListener::bind(&left).expect("bound"));
    for (path, said) in [(left.to_str().expect("text"), "refused"), ("/no/such.sock", "no such file")] {
        let done = plimsoll(&["run", "http://api/", "--unix", path]);
        assert!(done.code == 2 && done.stderr.contains(said) && done.stderr.contains(path), "{}", done.stderr);
        let document = run_to_json(&["run", "http://api/", "--unix", path, "--no-preflight", "-c", "2", "-n", "4"]);
        assert_ledger_closes(&document, path);
        assert_eq!(number_at_path(&document, "ledger.failed.connect"), 4.0, "{document:#}");
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn abstract_sockets_are_loaded_and_observed() {
    use std::os::linux::net::SocketAddrExt;
    let name = format!("plimsoll-e2e-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).expect("a name");
    let listener = UnixListener::bind_addr(&address).expect("bound");
    let serving = std::thread::spawn(move || {
        // The server accepts the connections of two users and of the preflight request.
        let answering: Vec<_> = (0..3)
            .map_while(|_| listener.accept().ok())
            .map(|(mut stream, _)| {
                std::thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    while stream.read(&mut buffer).is_ok_and(|length| length > 0) {
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                    }
                })
            })
            .collect();
        answering.into_iter().for_each(|thread| thread.join().expect("ends"));
    });
    let at = format!("@{name}");
    let document = run_to_json(&["run", "http://api/", "--unix", &at, "-c", "2", "-d", "500ms"]);
    serving.join().expect("ends");
    assert_ledger_closes(&document, "abstract");
    assert_eq!(number_at_path(&document, "success_rate"), 1.0, "{document:#}");
    assert_eq!(number_at_path(&document, "server.pid"), f64::from(std::process::id()), "{:#}", document["server"]);
}

/// The source addresses of all connections, and the number of connections that ended by a reset.
type RecordedConnections = Arc<Mutex<(BTreeSet<IpAddr>, u64)>>;

/// Starts a server that records its connections. Returns the server's address, and the record of
/// the connections.
fn start_recording_server() -> (String, RecordedConnections) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let seen = Arc::new(Mutex::new((BTreeSet::new(), 0)));
    let remembered = Arc::clone(&seen);
    std::thread::spawn(move || {
        while let Ok((mut stream, from)) = listener.accept() {
            remembered.lock().expect("no poison").0.insert(from.ip());
            let remembered = Arc::clone(&remembered);
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                loop {
                    match stream.read(&mut buffer) {
                        Ok(0) => return,
                        Ok(_) => {
                            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                        }
                        Err(_) => {
                            remembered.lock().expect("no poison").1 += 1;
                            return;
                        }
                    }
                }
            });
        }
    });
    (address, seen)
}

#[test]
fn source_addresses_rotate_and_connections_close_as_requested() {
    for (flags, sources, resets) in [
        (&[][..], 1, false),
        (&["--source-ip", "127.0.3.1-127.0.3.7"], 7, false),
        (&["--source-ip", "127.0.4.0/29,127.0.5.1"], 7, false),
        (&["--no-keepalive", "--close", "reset"], 1, true),
        (&["--close", "fin", "--source-ip", "127.0.0.1"], 1, false),
    ] {
        let (address, seen) = start_recording_server();
        let url = format!("http://{address}/");
        let document = run_to_json(&[&["run", &url, "--no-preflight", "-c", "14", "-n", "140"], flags].concat());
        assert_ledger_closes(&document, &format!("{flags:?}"));
        assert_eq!(number_at_path(&document, "ledger.succeeded"), 140.0, "{flags:?}: {document:#}");
        // The test waits, because the server's threads may not have received the last connection
        // resets yet.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while resets && seen.lock().expect("no poison").1 < 100 && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let seen = seen.lock().expect("no poison");
        assert_eq!(seen.0.len(), sources, "{flags:?}: {:?}", seen.0);
        assert_eq!(seen.1 > 0, resets, "{flags:?}: {} resets", seen.1);
    }
}

#[test]
fn short_lived_connections_spread_over_loopback_addresses() {
    let (address, seen) = start_recording_server();
    let done = plimsoll(&["run", &format!("http://{address}/"), "-c", "4", "-n", "200", "--no-keepalive", "-v"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("connections come from 127.0.0.1 to"), "{}", done.stdout);
    assert!(seen.lock().expect("no poison").0.len() > 50);
}

/// Runs the plimsoll binary with the text `hosts` as the content of /etc/hosts. Returns `None` if
/// this user may not mount a hosts file.
fn run_with_hosts_file(hosts: &str, arguments: &[&str]) -> Option<Value> {
    let allowed = Command::new("unshare").args(["-rm", "true"]).stderr(Stdio::null()).status();
    if !allowed.is_ok_and(|status| status.success()) {
        return None;
    }
    let path = create_new_folder("names").join("hosts");
    std::fs::write(&path, hosts).expect("written");
    let script = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script]).arg(&path).arg(env!("CARGO_BIN_EXE_plimsoll")).args(arguments);
    let child = command.args(["--json", "--quiet"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let done = wait_for_exit(child.expect("unshare starts"));
    assert_eq!(done.code, 0, "{arguments:?}: {}", done.stderr);
    Some(done.json())
}

#[test]
fn a_dead_address_of_a_host_is_reported_and_fails_no_request() {
    let server = start_baseline(1);
    let url = format!("{}/healthz", server.url.replace("127.0.0.1", "api.test"));
    let port = server.url.rsplit(':').next().expect("a port");
    let hosts = "127.0.0.1 localhost\n127.0.0.9 api.test\n127.0.0.1 api.test\n::1 api.test\n";
    for load in [&["-c", "4", "-n", "200"][..], &["--rate", "400", "-n", "200", "--no-keepalive"]] {
        let Some(document) = run_with_hosts_file(hosts, &[&["run", &url], load].concat()) else {
            eprintln!("not tried: a name of several addresses takes a mount namespace, which this user may not make");
            return;
        };
        assert_ledger_closes(&document, "a dead address");
        assert_eq!(number_at_path(&document, "success_rate"), 1.0, "{document:#}");
        let errors = document["address_errors"].as_object().expect("an object");
        let named: BTreeSet<&str> = errors.keys().map(String::as_str).collect();
        let dead = [format!("127.0.0.9:{port}"), format!("[::1]:{port}")];
        assert_eq!(named, dead.iter().map(String::as_str).collect(), "{document:#}");
    }
}
