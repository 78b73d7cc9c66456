//! Tests of `encode`: the bytes of encoded requests, and the requests that `encode` refuses.

use plimsoll_wire::h1::{RequestError, RequestParts, encode};

const GET: RequestParts = RequestParts {
    method: "GET",
    target: "/healthz?deep=1",
    host: "localhost:8080",
    headers: &[],
    body: b"",
    keep_alive: true,
};

fn owned_headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Checks the encoded request; `VERSION` in `expect` stands for plimsoll's version.
#[track_caller]
fn check(parts: RequestParts, expect: &str) {
    let bytes = encode(&parts).expect("the request is valid");
    let expect = expect.replace("VERSION", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8(bytes).expect("these requests are text"), expect);
}

#[track_caller]
fn check_refused(parts: RequestParts, expect: RequestError) {
    assert_eq!(encode(&parts), Err(expect));
}

#[test]
fn a_get_request_has_only_the_default_headers() {
    check(
        GET,
        "GET /healthz?deep=1 HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: plimsoll/VERSION\r\nAccept: */*\r\n\r\n",
    );
}

#[test]
fn a_body_adds_content_length() {
    check(
        RequestParts { method: "POST", target: "/", body: b"a=1", ..GET },
        "POST / HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: plimsoll/VERSION\r\nAccept: */*\r\n\
         Content-Length: 3\r\n\r\na=1",
    );
    check(
        RequestParts { target: "/", body: b"odd", ..GET },
        "GET / HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: plimsoll/VERSION\r\nAccept: */*\r\n\
         Content-Length: 3\r\n\r\nodd",
    );
    for method in ["POST", "PUT", "PATCH"] {
        let bytes = encode(&RequestParts { method, ..GET }).expect("the request is valid");
        assert!(bytes.ends_with(b"\r\nContent-Length: 0\r\n\r\n"), "{method}");
    }
    for method in ["GET", "HEAD", "DELETE", "OPTIONS"] {
        let bytes = encode(&RequestParts { method, ..GET }).expect("the request is valid");
        assert!(bytes.ends_with(b"\r\nAccept: */*\r\n\r\n"), "{method}");
    }
}

#[test]
fn user_headers_replace_the_defaults() {
    let given = owned_headers(&[
        ("host", "example.org"),
        ("USER-AGENT", "me"),
        ("accept", "text/html"),
        ("content-length", "3"),
        ("X-Twice", "1"),
        ("X-Twice", "2"),
    ]);
    check(
        RequestParts { method: "POST", target: "/", headers: &given, body: b"abc", ..GET },
        "POST / HTTP/1.1\r\nhost: example.org\r\nUSER-AGENT: me\r\naccept: text/html\r\ncontent-length: 3\r\n\
         X-Twice: 1\r\nX-Twice: 2\r\n\r\nabc",
    );
    // An empty value removes the default fields `Accept` and `User-Agent` from the request. Any
    // other field with an empty value is sent.
    let none = owned_headers(&[("Accept", ""), ("user-agent", ""), ("X-Empty", "")]);
    check(
        RequestParts { target: "/", headers: &none, ..GET },
        "GET / HTTP/1.1\r\nHost: localhost:8080\r\nX-Empty: \r\n\r\n",
    );
}

#[test]
fn a_transfer_encoding_header_makes_the_body_chunked() {
    let chunked = owned_headers(&[("Transfer-Encoding", "chunked")]);
    let head = "PUT / HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: plimsoll/VERSION\r\nAccept: */*\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    for (body, sent) in [("", "0\r\n\r\n"), ("hello, chunks: 16", "11\r\nhello, chunks: 16\r\n0\r\n\r\n")] {
        let parts = RequestParts { method: "PUT", target: "/", headers: &chunked, body: body.as_bytes(), ..GET };
        check(parts, &format!("{head}{sent}"));
    }
    for (fields, body, error) in [
        (&[("Transfer-Encoding", "gzip, chunked")][..], "a", RequestError::Coding),
        (&[("Transfer-Encoding", "identity")], "", RequestError::Coding),
        (&[("Transfer-Encoding", "chunked"), ("Content-Length", "1")], "a", RequestError::CodingAndLength),
        (&[("Transfer-Encoding", "chunked"), ("transfer-encoding", "chunked")], "a", RequestError::Coding),
        (&[("Content-Length", "5")], "a", RequestError::Length(1)),
        (&[("Content-Length", "a lot")], "", RequestError::Length(0)),
        (&[("Content-Length", "1"), ("Content-Length", "1")], "a", RequestError::Repeated("Content-Length")),
        (&[("Host", "a"), ("host", "b")], "", RequestError::Repeated("Host")),
    ] {
        let fields = owned_headers(fields);
        check_refused(RequestParts { headers: &fields, body: body.as_bytes(), ..GET }, error);
    }
}

#[test]
fn a_single_use_connection_sends_close_once() {
    let once = RequestParts { target: "/", keep_alive: false, ..GET };
    let start = "GET / HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: plimsoll/VERSION\r\nAccept: */*\r\n";
    check(once, &format!("{start}Connection: close\r\n\r\n"));
    let said = owned_headers(&[("connection", "TE, Close")]);
    check(RequestParts { headers: &said, ..once }, &format!("{start}connection: TE, Close\r\n\r\n"));
    let other = owned_headers(&[("Connection", "TE")]);
    check(RequestParts { headers: &other, ..once }, &format!("{start}Connection: TE\r\nConnection: close\r\n\r\n"));
}

#[test]
fn body_bytes_are_sent_unchanged() {
    let body: Vec<u8> = (0..=255).collect();
    let bytes = encode(&RequestParts { body: &body, ..GET }).expect("the request is valid");
    assert!(bytes.ends_with(&body));
}

#[test]
fn parts_that_would_break_the_framing_are_refused() {
    for method in ["", "G ET", "GET\r\n", "GÉT", "GET:"] {
        check_refused(RequestParts { method, ..GET }, RequestError::Method(method.to_owned()));
    }
    check_refused(RequestParts { method: "CONNECT", ..GET }, RequestError::ConnectMethod);
    for target in ["", "/a b", "/a\r\nX: y", "/a\tb", "/\0", "/\u{7f}", "/ä"] {
        check_refused(RequestParts { target, ..GET }, RequestError::Target(target.to_owned()));
    }
    for host in ["", "a b", "a\r\nX: y", "a\0"] {
        check_refused(RequestParts { host, ..GET }, RequestError::Host(host.to_owned()));
    }
    for name in ["", "X Y", "X:", "X\r\n", " X", "Ä"] {
        let bad = owned_headers(&[("Fine", "x"), (name, "x")]);
        check_refused(RequestParts { headers: &bad, ..GET }, RequestError::HeaderName(name.to_owned()));
    }
    for value in ["a\r\nX: y", "a\nb", "a\rb", "\0"] {
        let bad = owned_headers(&[("Fine", "grüß\t!"), ("X", value)]);
        check_refused(RequestParts { headers: &bad, ..GET }, RequestError::HeaderValue("X".to_owned()));
    }
}

#[test]
fn refusals_name_the_invalid_part() {
    let sentence = RequestError::HeaderName("X Y".to_owned()).to_string();
    assert_eq!(sentence, "the header name 'X Y' is not a word of letters, digits and !#$%&'*+-.^_`|~");
    assert!(RequestError::Target("/a b".to_owned()).to_string().contains("\"/a b\""));
}
