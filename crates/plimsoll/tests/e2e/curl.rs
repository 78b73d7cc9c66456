//! Tests `--curl` and `plimsoll curl`: the server receives the request that curl itself would send.

use crate::test_support::{create_new_folder, number_at_path, plimsoll, run_to_json, start_baseline};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::time::Duration;

/// Returns head and body of the first request that a load with one request sends.
fn capture_first_request(words: &[&str], line: &str) -> (String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let line = line.replace("HOST", &address.to_string());
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        let mut reader = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if line.trim().is_empty() {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").expect("answered");
        (head, String::from_utf8(body).expect("text"))
    });
    let options = ["-n1", "-c1", "--no-preflight", "--no-probes", "--json", "--quiet"];
    let done = plimsoll(&[words, &["--curl", &line], &options].concat());
    assert_eq!(done.code, 0, "{line}: {}", done.stderr);
    server.join().expect("a request")
}

#[test]
fn a_curl_line_is_sent_as_by_curl() {
    let file = create_new_folder("curl").join("order.txt");
    std::fs::write(&file, "a\nb c").expect("written");
    let file = file.to_str().expect("text");
    for (line, head, body) in [
        (
            "curl 'http://HOST/a?b=c' -H 'X-One: 1' -b sid=7".to_owned(),
            vec!["GET /a?b=c ", "X-One: 1", "Cookie: sid=7"],
            "",
        ),
        (
            "curl http://HOST/ -u ann:secret -d a=1 -d b=2".to_owned(),
            vec!["POST / ", "Authorization: Basic YW5uOnNlY3JldA==", "Content-Type: application/x-www-form-urlencoded"],
            "a=1&b=2",
        ),
        ("curl http://HOST/ --json '{\"n\":1}'".to_owned(), vec!["Content-Type: application/json"], "{\"n\":1}"),
        ("curl -G http://HOST/s -d q=1 --data-urlencode 't=a b'".to_owned(), vec!["GET /s?q=1&t=a+b "], ""),
        (format!("curl http://HOST/ -d @{file}"), vec!["POST / "], "ab c"),
        (format!("curl http://HOST/ --data-binary @{file} -X PUT"), vec!["PUT / "], "a\nb c"),
    ] {
        let (got, content) = capture_first_request(&["run"], &line);
        for part in head {
            assert!(got.contains(part), "{line}: {part}: {got}");
        }
        assert_eq!(content, body, "{line}");
    }
    let (head, body) =
        capture_first_request(&["run"], &format!("curl http://HOST/f -F note=hello -F 'file=@{file};type=text/plain'"));
    assert!(head.contains("Content-Type: multipart/form-data; boundary="), "{head}");
    for part in
        ["name=\"note\"\r\n\r\nhello\r\n", "filename=\"order.txt\"\r\nContent-Type: text/plain\r\n\r\na\nb c\r\n"]
    {
        assert!(body.contains(part), "{part}: {body}");
    }
}

#[test]
fn flags_precede_the_curl_line_and_omissions_are_reported() {
    let (head, _) =
        capture_first_request(&["run", "-H", "X-One: 2"], "curl http://HOST/ -H 'x-one: 1' -H 'Content-Length: 9'");
    assert!(head.contains("X-One: 2") && !head.contains("x-one: 1") && !head.contains("Content-Length"), "{head}");
    let server = start_baseline(1);
    let line = format!("curl -L -x proxy:1 {}/bytes/5", server.url);
    let done = plimsoll(&["run", "-n5", "--curl", &line]);
    assert!(done.code == 0 && done.stderr.contains("--curl: ignored: -x"), "{}", done.stderr);
    let found = run_to_json(&["run", "-n5", "--curl", &format!("curl {}/bytes/5", server.url)]);
    assert_eq!(number_at_path(&found, "ledger.succeeded"), 5.0);
}

#[test]
fn an_invalid_curl_line_is_refused() {
    for (words, said) in [
        (vec!["run", "--curl", "curl 'http://h/"], "--curl: the curl command ends inside quotation marks"),
        (vec!["run", "--curl", "wget http://h/"], "--curl: the text is not a curl command"),
        (vec!["run", "--curl", "curl -s"], "--curl: the curl command names no URL"),
        (vec!["run", "--curl", "curl --frobnicate http://h/"], "--frobnicate"),
        (vec!["run", "--curl", "curl -d @/nowhere/at/all http://h/"], "--curl: the file"),
        (vec!["run", "--curl", "curl http://h/", "http://h/"], "--curl"),
        (vec!["curl", "-Z", "http://h/"], "-Z"),
    ] {
        let done = plimsoll(&words);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{words:?}: {}", done.stderr);
        assert!(done.stderr.contains(said), "{words:?}: {}", done.stderr);
    }
}
