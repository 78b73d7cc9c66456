//! Tests `plimsoll profile` end to end: files, URLs, pictures, differences, and invalid input.

use crate::test_support::{create_new_folder, plimsoll};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// Returns the path of a real profile, which the tests of the profile parser also use.
fn test_profile_path(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plimsoll-analysis/tests/profiles");
    folder.join(name).to_str().expect("text").to_owned()
}

/// Starts a server that answers one request with the bytes `answer`. Returns the server's URL, and
/// a thread that returns the request.
pub fn start_single_response_server(answer: Vec<u8>) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    let answered = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut asked = Vec::new();
        let mut buffer = [0; 1024];
        while !asked.ends_with(b"\r\n\r\n") {
            let length = stream.read(&mut buffer).expect("a request");
            assert_ne!(length, 0, "the request is whole");
            asked.extend_from_slice(&buffer[..length]);
        }
        stream.write_all(&answer).expect("answered");
        String::from_utf8(asked).expect("text")
    });
    (address, answered)
}

pub fn encode_http_response(status: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.0 {status}\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

fn check(arguments: &[&str], expected: &str) {
    let done = plimsoll(&[&["profile"], arguments].concat());
    let last = done.stderr.lines().last().unwrap_or_default();
    assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{arguments:?}: {}", done.stderr);
    assert!(last.starts_with("plimsoll: ") && last.contains(expected), "{arguments:?}: {}", done.stderr);
    assert!(done.stderr.lines().count() <= 2, "{arguments:?} is not one sentence: {}", done.stderr);
}

#[test]
fn a_profile_becomes_a_table_and_a_document() {
    let file = test_profile_path("cpu.pb.gz");
    let done = plimsoll(&["profile", &file, "--top", "3"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    assert!(done.stdout.starts_with("cpu: ") && done.stdout.contains("main.serve"), "{}", done.stdout);
    assert_eq!(plimsoll(&["profile", "--top", &file]).code, 0, "--top needs no number");
    let document = plimsoll(&["profile", &file, "--json", "--sort", "flat", "--sample-index", "samples"]).json();
    assert_eq!((&document["schema"], &document["unit"]), (&"plimsoll.profile/1".into(), &"count".into()));
    let rows = document["top"].as_array().expect("rows");
    let flat: i64 = rows.iter().map(|row| row["flat"].as_i64().expect("a count")).sum();
    assert_eq!(Some(flat), document["total"].as_i64());
    let focused = plimsoll(&["profile", &file, "--json", "--focus", "^main\\.list$", "--ignore", "json"]).json();
    assert!(focused["top"].as_array().expect("rows").len() < rows.len());
}

#[test]
fn images_are_written_completely() {
    let output = create_new_folder("flames");
    let path = |name: &str| output.join(name).to_str().expect("text").to_owned();
    let (html, svg, copy) = (path("new/a.html"), path("a.svg"), path("a.pb.gz"));
    let file = test_profile_path("heap.pb.gz");
    let done = plimsoll(&["profile", &file, "-o", &html, "-o", &svg, "-o", &copy]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(done.stderr.lines().count(), 3, "{}", done.stderr);
    let read = |path: &str| fs::read_to_string(PathBuf::from(path)).expect("written");
    for text in [read(&html), read(&svg)] {
        assert!(text.contains("<title>main.encode:") && text.contains("</svg>"));
        assert!(!text.contains("src=") && !text.contains("href="), "nothing is fetched");
    }
    assert_eq!(fs::read(copy).expect("written"), fs::read(file).expect("there"));
}

#[test]
fn two_profiles_are_compared_per_request() {
    let output = create_new_folder("diff");
    let write = |name: &str, text: &str| {
        let path = output.join(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("text").to_owned()
    };
    let (a, b) = (write("a.txt", "main;json 900\nmain;sql 400\n"), write("b.txt", "main;json 3600\nmain;sql 820\n"));
    let html = output.join("diff.html");
    let html = html.to_str().expect("text");
    let arguments = ["profile", "--diff", &a, &b, "--requests-a", "100", "--requests-b", "200"];
    let done = plimsoll(&[&arguments[..], &["-o", html]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("json") && !done.stdout.contains("sql"), "{}", done.stdout);
    assert!(fs::read_to_string(html).expect("written").contains("9 / request before, 18 / request after"));
    let document = plimsoll(&[&arguments[..], &["--json"]].concat()).json();
    assert_eq!(document["top"][0]["flat"]["delta"], 9.0);
    assert!(plimsoll(&["profile", "--diff", &a, &b]).stdout.starts_with("warning: without --requests-a"));
    check(&["--diff", &a, &test_profile_path("heap.pb.gz")], "count different things");
    check(&["--diff", &a, &b, "--requests-a", "5"], "both --requests-a and --requests-b");
    check(&["--diff", &a, &b, "-o", "x.pb.gz"], ".html or .svg");
    check(&["--diff", &a, &b, &a], "not both");
}

#[test]
fn profile_costs_are_split_by_endpoint() {
    let file = test_profile_path("cpu.pb.gz");
    let sums = |arguments: &[&str]| -> Vec<(String, i64)> {
        let document = plimsoll(&[&["profile", &file, "--json"], arguments].concat()).json();
        let rows = document["top"].as_array().expect("rows").iter();
        rows.map(|row| (row["function"].as_str().expect("a name").to_owned(), row["cum"].as_i64().expect("a sum")))
            .collect()
    };
    let groups = |by: &str| -> Vec<(String, i64)> {
        let start = format!("{by}: ");
        sums(&["--by", by]).into_iter().filter(|(name, _)| name.starts_with(&start)).collect()
    };
    let document = plimsoll(&["profile", &file, "--json"]).json();
    let labelled = groups("endpoint");
    assert!(labelled.len() >= 2, "{labelled:?}");
    assert_eq!(labelled.iter().map(|(_, sum)| sum).sum::<i64>(), document["total"].as_i64().expect("a total"));
    // If a profile is grouped by a function, the group's cost is the function's cumulative sum.
    let by = "^main\\.serve$";
    let serve = sums(&[]).into_iter().find(|(name, _)| name == "main.serve").expect("a row").1;
    assert!(groups(by).contains(&(format!("{by}: main.serve"), serve)), "{:?}", groups(by));
    let shown = plimsoll(&["profile", &file, "--by", "endpoint"]).stdout;
    assert!(shown.contains("\n  endpoint "), "{shown}");
}

#[test]
fn profiles_are_fetched_from_pprof_urls() {
    let cpu = fs::read(test_profile_path("cpu.pb.gz")).expect("there");
    // The server sends the profile once whole, and once in chunks, as Go servers do if they do not
    // know the length.
    let mut chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in cpu.chunks(1_000) {
        chunked.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        chunked.extend_from_slice(chunk);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    for answer in [encode_http_response("200 OK", &cpu), chunked] {
        let (base, asked) = start_single_response_server(answer);
        let done = plimsoll(&["profile", &format!("{base}/debug/pprof/"), "--seconds", "1"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(
            done.stderr.contains("for 1 s") && done.stdout.contains("main.serve"),
            "{}{}",
            done.stdout,
            done.stderr
        );
        let asked = asked.join().expect("no panic");
        assert!(asked.starts_with("GET /debug/pprof/profile?seconds=1 HTTP/1.1\r\n"), "{asked}");
    }
}

#[test]
fn refusals_are_one_sentence_with_a_remedy() {
    for (status, body, said) in [
        ("404 Not Found", "404 page not found\n", "net/http/pprof"),
        ("500 Oops", "Could not enable CPU profiling: cpu profiling already in use\n", "wait until it ends"),
        ("400 Bad", "profile duration exceeds server's WriteTimeout\n", "fewer seconds"),
        ("200 OK", "<html>hello</html>", "HTML"),
        ("200 OK", "", "empty"),
    ] {
        let (base, asked) = start_single_response_server(encode_http_response(status, body.as_bytes()));
        check(&[&format!("{base}/debug/pprof/profile"), "--seconds", "1"], said);
        asked.join().expect("no panic");
    }
    let (base, asked) =
        start_single_response_server(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxy\r\n".to_vec());
    check(&[&base], "the chunked framing");
    asked.join().expect("no panic");
    check(&["http://192.0.2.1/debug/pprof"], "--allow-public");
    check(&["https://127.0.0.1/debug/pprof"], "plain HTTP");
    let closed = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound");
    check(&[&format!("http://{closed}/")], "is the server running");
}

#[test]
fn bad_input_is_one_sentence() {
    let output = create_new_folder("bad");
    let cut = output.join("cut.pb.gz");
    let whole = fs::read(test_profile_path("cpu.pb.gz")).expect("there");
    fs::write(&cut, &whole[..whole.len() / 2]).expect("written");
    check(&[cut.to_str().expect("text")], "cut off");
    check(&[&test_profile_path("regenerate")], "is no profile");
    check(&["/no/such/file.pb.gz"], "/no/such/file.pb.gz");
    check(&["localhost:6060"], "http://");
    check(&[], "give a profile");
    let file = test_profile_path("cpu.pb.gz");
    check(&[&file, "--sample-index", "heap"], "samples, cpu");
    check(&[&file, "--focus", "("], "--focus");
    check(&[&file, "--sort", "name"], "flat or cum");
    check(&[&file, "--top", "many"], "--top");
    check(&[&file, "-o", "flame.png"], ".html or .svg");
    check(&[&file, "--seconds", "0"], "--seconds");
    check(&[&file, "--seconds", "5"], "give an address");
    check(&[&file, "--by", "no such thing"], "labels of the file: endpoint");
    check(&[&file, "-o", "/proc/no/flame.svg"], "cannot be written");
}
