//! Tests attacks on plimsoll: each test is one way to make plimsoll fail, report falsely, hang,
//! write to a wrong place, or reveal a secret.
//!
//! Not here: parsers alone (`plimsoll-traffic/tests/bounds.rs`), and misbehaving servers
//! (`hostile`, `floods`).

use crate::test_support::{
    CommandOutcome, command, create_new_folder, path_in_new_folder, plimsoll, signal, start_baseline, wait_for_exit,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A random secret, in which no part is a word.
const SECRET: &str = "Zq7xK2mW9vLp4TnR8sYd";
/// The time within which a command must end after its last signal. Most of this time is an
/// allowance for a busy machine.
const COMMAND_END_TIMEOUT: Duration = Duration::from_secs(4);

fn write_file(name: &str, file: &str, text: &str) -> String {
    let path = path_in_new_folder(name, file);
    std::fs::write(&path, text).expect("written");
    path
}

/// Starts a server that sends the response `answer` to every request. Returns the server's address,
/// and the first lines of the requests.
fn start_fixed_response_server(answer: &str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (heard, answer) = (Arc::clone(&asked), answer.to_owned());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (heard, answer) = (Arc::clone(&heard), answer.clone());
            std::thread::spawn(move || {
                let mut lines = BufReader::new(&stream).lines();
                while let Some(Ok(first)) = lines.next() {
                    heard.lock().expect("no panic").push(first);
                    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                    if (&stream).write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, asked)
}

#[test]
fn import_prints_and_writes_the_same() {
    let har = r#"{"log":{"entries":[{"startedDateTime":"2024-01-01T00:00:00Z","time":1,"request":{"method":"POST",
        "url":"http://127.0.0.1:1/a","headers":[],"postData":{"mimeType":"text/plain",
        "text":"zero\u200bwidth, soft\u00adhyphen, \u202eturned \ud83d\ude00 \u001b[2J"}},"response":{"status":200,"headers":[]}}]}}"#;
    let source = write_file("import-stdout", "x.har", har);
    let output = path_in_new_folder("import-stdout", "x.toml");
    let printed = plimsoll(&["import", "har", &source]);
    let written = plimsoll(&["import", "har", &source, "-o", &output]);
    assert_eq!((printed.code, written.code), (0, 0), "{}", printed.stderr);
    assert_eq!(printed.stdout, std::fs::read_to_string(&output).expect("written"));
    assert!(printed.stdout.contains("zero\\u200Bwidth"), "{}", printed.stdout);
    assert_eq!(plimsoll(&["check", "-f", &output]).code, 0);
}

#[test]
fn regular_expressions_of_a_file_have_a_memory_budget() {
    let request = |number: usize, pattern: &str| {
        format!("[[request]]\nget = \"/{number}\"\nexpect = {{ body = 'regex:{pattern}' }}\n")
    };
    let file = |requests: Vec<String>| format!("base = \"http://127.0.0.1:1\"\n{}", requests.concat());
    let many =
        write_file("patterns", "many.toml", &file((0..2_000).map(|n| request(n, &format!("\\w{{60}}{n}"))).collect()));
    let began = Instant::now();
    let done = plimsoll(&["check", "-f", &many]);
    assert_eq!(done.code, 2, "{}", done.stdout);
    assert!(done.stderr.contains("more than 64 MiB together"), "{}", done.stderr);
    // A regular expression that occurs in many requests is compiled only once.
    let same = write_file("patterns", "same.toml", &file((0..2_000).map(|n| request(n, "\\w{60}")).collect()));
    let done = plimsoll(&["check", "-f", &same]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[cfg(feature = "grpc")]
#[test]
fn a_library_panic_is_one_sentence() {
    let path = path_in_new_folder("syntax", "proto4.pb");
    std::fs::write(&path, b"\n\x11\n\x07a.protob\x06proto4").expect("written");
    let done = plimsoll(&["grpc", "list", "grpc://127.0.0.1:1/", "--descriptor-set", &path]);
    assert_eq!(done.code, 2, "{}", done.stderr);
    assert!(done.stderr.contains("'proto4'") && !done.stderr.contains("panicked"), "{}", done.stderr);
}

#[cfg(feature = "lua")]
#[test]
fn script_output_does_not_mix_with_the_document() {
    let server = start_baseline(1);
    let url = format!("{}/bytes/1", server.url);
    let script = "print('hello'); io.write('there\\n'); os.execute('echo child')\n\
                  function done() io.stdout:write('done\\n') end";
    let script = write_file("prints", "prints.lua", script);
    let done = plimsoll(&["run", "--json", "-q", "-n", "5", "-c", "1", "--lua", &script, &url]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(done.json()["ledger"]["succeeded"], 5);
    for said in ["hello", "there", "child", "done"] {
        assert!(done.stderr.contains(said), "{said}: {}", done.stderr);
    }
}

#[cfg(feature = "lua")]
#[test]
fn a_script_that_exits_does_not_pass_a_gate() {
    let server = start_baseline(1);
    for hook in [
        "function response() os.exit(0) end",
        "function request() os.exit(0) end",
        "os.exit()",
        "function init() os.exit(true) end",
    ] {
        let script = write_file("exits", "exits.lua", hook);
        let done =
            plimsoll(&["run", "-q", "-n", "50", "-c", "1", "--fail-if", "errors>0%", "--lua", &script, &server.url]);
        assert!(done.code == 1 || done.code == 2, "{hook}: {} {}", done.code, done.stderr);
        assert!(done.stderr.contains("os.exit") || done.stdout.contains("os.exit"), "{hook}: {}", done.stderr);
    }
}

/// Sends signals to a command after `begun` has returned, and waits for the command's end. Returns
/// the command's exit code or signal, and the time from the last signal to the end.
fn signal_and_wait_for_end(mut child: Child, begun: impl FnOnce(&mut Child), signals: &[&str]) -> (i32, Duration) {
    use std::os::unix::process::ExitStatusExt;
    begun(&mut child);
    let began = Instant::now();
    for (number, name) in signals.iter().enumerate() {
        // The pause is needed, because two signals of the same kind that arrive together count as
        // one signal.
        if number > 0 {
            std::thread::sleep(Duration::from_millis(200));
        }
        if child.try_wait().expect("a child").is_none() {
            signal(child.id(), name);
        }
    }
    let deadline = began + Duration::from_secs(30);
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().expect("a child") {
            return (status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)), began.elapsed());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    panic!("{signals:?}: it goes on");
}

#[cfg(feature = "lua")]
#[test]
fn a_signal_ends_a_command_at_any_point() {
    let server = start_baseline(1);
    let script = write_file("endless", "endless.lua", "function request() while true do end end");
    let fifo = path_in_new_folder("fifo", "run.plimsoll");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let endless = ["run", "-q", "-n", "5", "-c", "1", "--lua", &script, &server.url];
    let waits = ["run", "-q", "-n", "3", "-o", &fifo, &server.url];
    // A process that a shell starts in the background ignores ^C; the test restores the default
    // effect of ^C.
    let reads = ["import", "har", "-"];
    let check = |arguments: &[&str], stdin: bool, signals: &[&str], codes: [i32; 2]| {
        let mut command = command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.stdin(if stdin { Stdio::piped() } else { Stdio::null() }).spawn().expect("starts");
        let pid = child.id();
        let (got, took) = signal_and_wait_for_end(
            child,
            |_| {
                // The command is ready for signals once /proc lists its signal handlers, or once
                // the command waits for input.
                let status = || std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                let deadline = Instant::now() + Duration::from_secs(20);
                // Bit 14 of the mask is signal 15, SIGTERM.
                let mask = |line: &str| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok();
                let handles = || status().lines().filter_map(mask).any(|mask| mask & 1 << 14 != 0);
                // Before the process becomes plimsoll it is `env`, which may ignore ^C like its
                // parent.
                let is_plimsoll = || status().starts_with("Name:\tplimsoll\n");
                let is_ready = || if stdin { is_plimsoll() } else { handles() };
                while !is_ready() && Instant::now() < deadline {
                    std::thread::sleep(Duration::from_millis(10));
                }
            },
            signals,
        );
        assert!(took < COMMAND_END_TIMEOUT, "{arguments:?} {signals:?}: {took:?}");
        assert!(codes.contains(&got), "{arguments:?} {signals:?}: {got}");
    };
    // Most of these commands wait, so all run in parallel.
    std::thread::scope(|scope| {
        for (arguments, stdin) in [(&endless[..], false), (&waits, false), (&reads, true)] {
            // A command that ends with a report has exit code 130 for any signal except SIGHUP.
            for (signals, codes) in [(&["INT", "INT"][..], [130, 130]), (&["TERM"], [143, 130]), (&["HUP"], [129, 129])]
            {
                let check = &check;
                scope.spawn(move || check(arguments, stdin, signals, codes));
            }
        }
    });
}

#[test]
fn output_does_not_follow_symbolic_links() {
    let server = start_baseline(1);
    let work = create_new_folder("links");
    let victim = work.join("victim");
    let run = |arguments: &[&str]| -> CommandOutcome {
        wait_for_exit(
            command(arguments)
                .current_dir(&work)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("starts"),
        )
    };
    std::fs::create_dir_all(work.join("_output/plimsoll")).expect("a folder");
    for (file, arguments) in [
        ("_output/plimsoll/sweep.plimsoll", &["sweep", "-c", "1", "--for", "200ms", "-q", &server.url][..]),
        ("_output/plimsoll/sweep.dat", &["sweep", "-c", "1", "--for", "200ms", "-q", &server.url]),
        ("run.plimsoll", &["run", "-q", "-n", "3", "-o", "run.plimsoll", &server.url]),
        ("a.toml", &["import", "har", "a.har", "-o", "a.toml"]),
    ] {
        std::fs::write(&victim, "precious").expect("written");
        let har = r#"{"log":{"entries":[{"request":{"method":"GET","url":"http://h/"}}]}}"#;
        std::fs::write(work.join("a.har"), har).expect("written");
        let link = work.join(file);
        let _ = std::fs::remove_file(&link);
        symlink(&victim, &link).expect("a link");
        let done = run(arguments);
        assert_eq!(std::fs::read_to_string(&victim).expect("there"), "precious", "{file}");
        assert!(done.code == 2 && done.stderr.contains("symbolic link"), "{file}: {} {}", done.code, done.stderr);
        std::fs::remove_file(&link).expect("removed");
    }
    // In the last case, the folder of results itself is a symbolic link.
    let elsewhere = work.join("elsewhere");
    std::fs::create_dir_all(&elsewhere).expect("a folder");
    std::fs::remove_dir_all(work.join("_output")).expect("removed");
    symlink(&elsewhere, work.join("_output")).expect("a link");
    let done = run(&["sweep", "-c", "1", "--for", "200ms", "-q", &server.url]);
    assert!(done.code == 2 && done.stderr.contains("symbolic link"), "{}", done.stderr);
    assert_eq!(std::fs::read_dir(&elsewhere).expect("a folder").count(), 0);
}

#[test]
fn pprof_and_metrics_requests_go_to_the_load_target() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let ((named, heard), (load, _)) = (start_fixed_response_server(ok), start_fixed_response_server(ok));
    let url = format!("http://u:{SECRET}@{named}/");
    for flag in ["--pprof=auto", "--metrics=auto"] {
        let run = ["run", "-n", "3", "-c", "1", "-q", "--pprof-seconds", "1", "--connect-to", &load, flag, &url];
        let done = plimsoll(&run);
        assert!(heard.lock().expect("no panic").is_empty(), "{flag}: {heard:?}");
        assert!(!done.stderr.contains(SECRET) && !done.stdout.contains(SECRET), "{flag}: {}", done.stderr);
    }
}

#[test]
fn error_messages_contain_no_secret() {
    let header = format!("Authorization Bearer {SECRET}:x");
    let curl_option = format!("curl --{SECRET} http://127.0.0.1:1/");
    let curl_joined = format!("curl --tok={SECRET} http://127.0.0.1:1/");
    let flag = format!("--{SECRET}");
    for arguments in [
        &["run", "-H", &header, "http://127.0.0.1:1/"][..],
        &["run", "-H", SECRET, "http://127.0.0.1:1/"],
        &["run", "-H", "Authorization:", "Bearer", SECRET, "http://127.0.0.1:1/"],
        &["run", "--curl", &curl_option],
        &["run", "--curl", &curl_joined],
        &["run", &flag, "http://127.0.0.1:1/"],
        &["run", "http://127.0.0.1:1/", "correct-horse-battery-staple"],
    ] {
        let done = plimsoll(arguments);
        assert_eq!(done.code, 2, "{arguments:?}");
        for secret in [SECRET, "correct-horse"] {
            assert!(!done.stderr.contains(secret), "{arguments:?}: {}", done.stderr);
        }
    }
}

#[test]
fn failed_responses_are_redacted_unless_requested() {
    let body = format!("{{\"error\":\"no such key\",\"key\":\"{SECRET}\",\"invite\":\"A1B2-C3D4-E5F6\"}}");
    let head = format!("HTTP/1.1 401 No\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    let (address, _) = start_fixed_response_server(&format!("{head}{body}"));
    let url = format!("http://{address}/");
    let file = path_in_new_folder("failed", "run.plimsoll");
    let run = ["run", "-n", "3", "-c", "1", "--json", "-o", &file];
    let kept = |more: &[&str]| {
        let done = plimsoll(&[&run, more, &[&url]].concat());
        let recorded = std::fs::read(&file).expect("a run file");
        let recorded = recorded.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        (recorded, done.stdout.contains(SECRET), done.stdout.contains("C3D4"), done.stdout)
    };
    let (in_file, in_document, grouped, text) = kept(&[]);
    assert!(!in_file && !in_document && !grouped && text.contains("no such key"), "{text}");
    let (in_file, in_document, ..) = kept(&["--keep-failed-bodies"]);
    assert!(in_file && in_document);
    let page = path_in_new_folder("failed", "page.html");
    let done = plimsoll(&["report", &file, "-o", &page]);
    assert_eq!(done.code, 0, "{}", done.stderr);
}

#[test]
fn unparsed_log_lines_are_not_repeated() {
    let log = format!(
        "10.0.0.1 - - [12/Mar/2024:10:00:00 +0000] \"GET /items/1 HTTP/1.1\" 200 5 \"-\" \"ua\"\n\
         password={SECRET} Authorization: Bearer 8f14e45fceea167a5a36dedd4bea2543\n"
    );
    let log = write_file("unparsed", "u.log", &log);
    let page = path_in_new_folder("unparsed", "page.html");
    for arguments in [&["traffic", &log][..], &["traffic", "--json", &log], &["traffic", "-o", &page, &log]] {
        let done = plimsoll(arguments);
        let page = std::fs::read_to_string(&page).unwrap_or_default();
        for secret in [SECRET, "8f14e45f"] {
            let all = [&done.stdout, &done.stderr, &page];
            assert!(!all.iter().any(|text| text.contains(secret)), "{arguments:?}: {}", done.stdout);
        }
    }
}

#[test]
fn build_logs_are_bounded() {
    let work = create_new_folder("loud");
    let loud = format!("yes & exec {} baseline --listen 127.0.0.1:$PORT", env!("CARGO_BIN_EXE_plimsoll"));
    let free = plimsoll_sys::tcp::unused_loopback_address().expect("a free port");
    let build = loud.replace("$PORT", &free.port().to_string());
    let place = work.join("p.plimsoll");
    let place = place.to_str().expect("text");
    let url = format!("http://{free}/");
    let arguments = ["prove", "-q", "--budget", "4s", "--a", &build, "--b", &build, "-o", place, &url];
    let mut child = command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    child.wait().expect("ends");
    let mut logs = 0;
    for entry in std::fs::read_dir(&work).expect("a folder").flatten() {
        if entry.file_name().to_string_lossy().ends_with(".log") {
            let length = entry.metadata().expect("there").len();
            assert!(length < 5 << 20, "{length} bytes: {said}");
            logs += 1;
        }
    }
    assert!(logs > 0, "{said}");
}

/// Checks that `clean` deletes no file in the target of a symbolic link that replaces the default
/// folder. Likewise, `model` must write no list of paths into the target of a symbolic link that
/// replaces the lists' folder.
#[test]
fn nothing_behind_a_linked_folder_is_changed() {
    let work = create_new_folder("linked");
    let other = work.join("other");
    std::fs::create_dir_all(&other).expect("a folder");
    std::fs::create_dir_all(work.join("_output")).expect("a folder");
    std::os::unix::fs::symlink("../other", work.join("_output/plimsoll")).expect("a link");
    std::fs::write(other.join("paths1.csv"), "precious\n").expect("written");
    std::fs::write(other.join("run-11-4194999.plimsoll"), "precious\n").expect("written");
    std::os::unix::fs::symlink("other", work.join("s.paths")).expect("a link");
    let lines = (0..400).map(|n| {
        format!(
            "10.0.{}.{} - - [28/Nov/2026:10:{:02}:{:02} +0000] \"GET /items/{} HTTP/1.1\" 200 5 \"-\" \"x\"\n",
            n / 200,
            n % 200,
            n / 60,
            n % 60,
            n % 90
        )
    });
    std::fs::write(work.join("access.log"), lines.collect::<String>()).expect("written");
    for words in [&["clean", "--keep", "0"][..], &["model", "access.log", "-o", "s.toml"]] {
        let mut started = command(words);
        started.current_dir(&work).stdout(Stdio::piped()).stderr(Stdio::piped());
        let done = wait_for_exit(started.spawn().expect("the binary starts"));
        assert!(done.code == 2 && done.stderr.contains("symbolic link"), "{words:?}: {} {}", done.code, done.stderr);
    }
    for name in ["paths1.csv", "run-11-4194999.plimsoll"] {
        assert_eq!(std::fs::read_to_string(other.join(name)).expect("still there"), "precious\n", "{name}");
    }
}
