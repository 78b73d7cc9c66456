//! Tests of traffic files: the parsed meaning of valid files, and the errors of invalid files.

use plimsoll_model::data::RowChoice;
use plimsoll_model::expect::{Expectations, JsonExpectation, TextExpectation};
use plimsoll_model::json_path::JsonPath;
use plimsoll_model::redact::RedactionLevel;
use plimsoll_model::traffic::{Origin, StatusSet};
use plimsoll_model::{LoadCurve, Route, Traffic};
use plimsoll_traffic::file::{FileContext, RequestDefaults, TrafficFile, TrafficFileError, TrafficFormat};
use proptest::prelude::*;

/// A file context (a parser's access to files) with one body file.
struct SampleFileContext;

impl FileContext for SampleFileContext {
    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, String> {
        if path == "order.bin" { Ok(vec![0, 1, 255]) } else { Err("cannot be read: no such file or directory".into()) }
    }

    fn read_data_rows(&mut self, path: &str) -> Result<String, String> {
        match path {
            "users.csv" => Ok("name,password\nann,a1\nbob,\"b,2\"\n".into()),
            "empty.csv" => Ok("name\n".into()),
            "bad.csv" => Ok("name,id\nann\n".into()),
            "users.jsonl" => Ok("{\"name\":\"ann\",\"n\":1}\n{\"n\":2,\"name\":\"bob\"}\n".into()),
            _ => Err("cannot be read: no such file or directory".into()),
        }
    }

    fn check_regex(&mut self, text: &str) -> Result<(), String> {
        if text.contains("((") { Err(format!("'{text}' is not a regular expression")) } else { Ok(()) }
    }

    fn environment_variable(&mut self, name: &str) -> Option<String> {
        (name == "TOKEN").then(|| "s3cret".to_owned())
    }
}

fn read(text: &str, format: TrafficFormat) -> Result<TrafficFile, TrafficFileError> {
    TrafficFile::read(text, format, &mut SampleFileContext)
}

fn traffic(file: &TrafficFile) -> Traffic {
    let defaults = RequestDefaults {
        headers: vec![("X-Run".into(), "7".into()), ("Accept".into(), "*/*".into())],
        ok_status: StatusSet::default(),
        timeout_ns: 30_000_000_000,
    };
    let origin = Origin { scheme: "http".into(), host: "h".into(), port: 80 };
    file.traffic(origin, "/api/", &defaults, RedactionLevel::Secrets)
}

const TOML: &str = r#"
base = "http://127.0.0.1:8080/api"

[[request]]
name = "list"
weight = 80
get = "/items?q=green tea#top"
headers = { accept = "text/html", "x-n" = 5 }

[[request]]
post = "/orders/550e8400-e29b-41d4-a716-446655440000"
json = { ok = true, qty = 3, names = ["a\"b", "c"], none = {} }
timeout = "2s"
expect = { status = "201" }

[[request]]
method = "PURGE"
url = "/cache"
body = "@order.bin"
"#;

const YAML: &str = r#"
base: http://127.0.0.1:8080/api
request:
  - name: list
    weight: 80
    get: "/items?q=green tea#top"
    headers: { accept: text/html, x-n: 5 }
  - post: /orders/550e8400-e29b-41d4-a716-446655440000
    json:
      ok: true
      qty: 3
      names: &names ['a"b', c]
      none: {}
    timeout: 2s
    expect: { status: 201 }
  - method: PURGE
    url: /cache
    body: "@order.bin"
"#;

const JSON: &str = r#"{
  "base": "http://127.0.0.1:8080/api",
  "request": [
    {"name": "list", "weight": 80, "get": "/items?q=green tea#top", "headers": {"accept": "text/html", "x-n": 5}},
    {"post": "/orders/550e8400-e29b-41d4-a716-446655440000",
     "json": {"ok": true, "qty": 3, "names": ["a\"b", "c"], "none": {}},
     "timeout": "2s", "expect": {"status": 201}},
    {"method": "PURGE", "url": "/cache", "body": "@order.bin"}
  ]
}"#;

#[test]
fn toml_yaml_and_json_give_equal_plans() {
    let toml = read(TOML, TrafficFormat::Toml).expect("TOML");
    assert_eq!(toml, read(YAML, TrafficFormat::Yaml).expect("YAML"));
    assert_eq!(toml, read(JSON, TrafficFormat::Json).expect("JSON"));
    assert_eq!(toml.base(), Some("http://127.0.0.1:8080/api"));
    let Traffic { routes, preflight: first, .. } = traffic(&toml);
    assert_eq!(first, Some(0));
    let header = |route: &Route, name: &str| {
        let found: Vec<&str> =
            route.request.headers.iter().filter(|(own, _)| own == name).map(|(_, value)| value.as_str()).collect();
        found.join(",")
    };
    let [list, order, purge] = routes.as_slice() else { panic!("three routes") };
    assert_eq!((list.label.as_str(), list.weight, list.request.method.as_str()), ("list", 80, "GET"));
    assert_eq!(list.request.target, "/api/items?q=green%20tea");
    assert_eq!(
        [header(list, "accept"), header(list, "Accept"), header(list, "x-n"), header(list, "X-Run")],
        ["text/html", "", "5", "7"]
    );
    assert_eq!((order.label.as_str(), order.weight), ("POST /orders/55...", 1));
    assert_eq!(order.request.body, br#"{"ok":true,"qty":3,"names":["a\"b","c"],"none":{}}"#);
    assert_eq!(header(order, "content-type"), "application/json");
    assert_eq!(
        (order.timeout_ns, order.ok_status.contains(201), order.ok_status.contains(200)),
        (2_000_000_000, true, false)
    );
    assert_eq!((purge.label.as_str(), purge.request.body.as_slice()), ("PURGE /cache", &[0, 1, 255][..]));
}

const TEMPLATED_TRAFFIC_FILE: &str = r#"
[[request]]
get = "/items/{{ user.name }}?page={{ int(1, 50) }}#x"
headers = { authorization = "Bearer {{ env.TOKEN }}" }
[[request]]
post = "/orders"
json = { id = "{{ uuid() }}", qty = "{{ int(1,3) }}", note = "{{ \"{{\" }} \"{{ user.name }}\"", n = 1 }
[[request]]
post = "/raw"
raw = true
body = '{{ int(1,2) }}'
[[request]]
post = "/literal"
json = ["{{ '{{' }}", "\""]
[data.user]
file = "users.csv"
pick = "zipf(1.1)"
[data.other]
file = "users.jsonl"
pick = "random"
each = "use"
"#;

#[test]
fn texts_with_placeholders_are_templates() {
    let traffic = traffic(&read(TEMPLATED_TRAFFIC_FILE, TrafficFormat::Toml).expect("a file"));
    let [items, orders, raw, literal] = traffic.routes.as_slice() else { panic!("four routes") };
    assert_eq!(items.label, "GET /items/{}");
    assert_eq!(items.request.target, "/api/items/{{ user.name }}?page={{ int(1, 50) }}#x");
    assert!(items.template_flags.target && items.template_flags.headers && !items.template_flags.body);
    let body = |route: &Route| String::from_utf8(route.request.body.clone()).expect("text");
    assert_eq!(
        body(orders),
        r#"{"id":"{{ uuid() | json }}","qty":{{ int(1,3) }},"note":"{{ '{{' }} \"{{ user.name | json }}\"","n":1}"#
    );
    assert!(orders.template_flags.body && !orders.template_flags.target);
    assert_eq!((body(raw).as_str(), raw.template_flags.any_template()), ("{{ int(1,2) }}", false));
    assert_eq!((body(literal).as_str(), literal.template_flags.any_template()), (r#"["{{","\""]"#, false));
    let [user, other] = traffic.data.as_slice() else { panic!("two tables") };
    assert_eq!((user.row_count(), user.cell(1, 1), user.pick), (2, "b,2", RowChoice::Zipf { exponent_milli: 1_100 }));
    assert_eq!((other.cell(1, 0), other.each_use), ("bob", true));
    assert_eq!(traffic.variables, [("TOKEN".to_owned(), "s3cret".to_owned())]);
}

#[test]
fn expectations_besides_the_status_are_in_the_plan() {
    let text = r#"
[[request]]
get = "/"
expect = { status = 201, json = { "$.ok" = true, "$['n']" = 1_000, "$.s" = "x", }, header = { location = "/orders/" }, body = "regex:^a", within = "300ms" }
[[request]]
get = "/raw"
raw = true
expect = { body = "{{" }
"#;
    let routes = traffic(&read(text, TrafficFormat::Toml).expect("TOML")).routes;
    let path = |text: &str| JsonPath::parse(text).expect("a path");
    let expect = Expectations {
        response_time_ns_max: Some(300_000_000),
        headers: vec![("location".into(), TextExpectation::Contains("/orders/".into()))],
        json: vec![
            (path("$.ok"), JsonExpectation::Flag(true)),
            (path("$['n']"), JsonExpectation::Number("1000".into())),
            (path("$.s"), JsonExpectation::Text("x".into())),
        ],
        body: Some(TextExpectation::Matches("^a".into())),
    };
    assert_eq!(routes[0].expect, expect);
    assert!(routes[0].ok_status.contains(201) && !routes[0].ok_status.contains(200));
    assert_eq!(routes[1].expect.body, Some(TextExpectation::Contains("{{".into())));
}

#[test]
fn a_form_with_files_is_a_multipart_body() {
    let form = |parts: &str| {
        let text = format!("[[request]]\npost = \"/\"\nmultipart = {{ {parts} }}\n");
        let file = read(&text, TrafficFormat::Toml).unwrap_or_else(|error| panic!("{error}"));
        traffic(&file).routes.remove(0)
    };
    let plain = form(r#"note = "a {{ '{{' }}", file = "@order.bin", two = ["x", 7]"#);
    let (_, kind) = plain.request.headers.iter().find(|(name, _)| name == "content-type").expect("a type");
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").expect("a boundary");
    let part = |head: &str, content: &[u8]| {
        let head = format!("--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n");
        [head.as_bytes(), content, b"\r\n"].concat()
    };
    let file = "name=\"file\"; filename=\"order.bin\"\r\nContent-Type: application/octet-stream";
    let whole = [
        part("name=\"note\"", b"a {{"),
        part(file, &[0, 1, 255]),
        part("name=\"two\"", b"x"),
        part("name=\"two\"", b"7"),
        format!("--{boundary}--\r\n").into_bytes(),
    ];
    assert_eq!(plain.request.body, whole.concat());
    assert!(!plain.template_flags.body);
    // If one part of a multipart form is a template, texts with `{{` in the other parts stay
    // literal.
    let filled = form(r#"note = "a {{ '{{' }}", id = "{{ uuid() }}", file = "@order.bin""#);
    assert!(filled.template_flags.body);
    let body = String::from_utf8_lossy(&filled.request.body).into_owned();
    assert!(body.contains("a {{ '{{' }}\r\n") && body.contains("{{ uuid() }}\r\n"), "{body}");
}

#[test]
fn post_only_files_get_no_preflight_request() {
    let file = read("[[request]]\npost = \"/a\"\n[[request]]\npost = \"/a\"", TrafficFormat::Toml).expect("a file");
    let Traffic { routes, preflight: first, .. } = traffic(&file);
    assert_eq!(first, None);
    assert_eq!(routes.iter().map(|route| route.label.as_str()).collect::<Vec<_>>(), ["POST /a", "POST /a (2)"]);
}

#[test]
fn file_errors_have_a_position() {
    use TrafficFormat::{Json, Toml, Yaml};
    for (format, text, place, part) in [
        (Toml, "", (1, 1), "add a [[request]]"),
        (Toml, "request = []", (1, 11), "is empty"),
        (Toml, "[[request]]\nget = \"/\"\nwieght = 3", (3, 1), "did you mean 'weight'?"),
        (Toml, "[[request]]\nget = \"/\"\ncolour = 3", (3, 1), "the known keys are name, weight"),
        (Toml, "[[reqest]]\nget = \"/\"", (1, 3), "did you mean 'request'?"),
        (Toml, "[[request]]\nget = \"/\"\nweight = 0", (3, 10), "from 1 to"),
        (Toml, "[[request]]\nget = \"/\"\nweight = \"x\"", (3, 10), "a whole number"),
        (Toml, "[[request]]\nname = \"a\"", (1, 1), "no method and path"),
        (Toml, "[[request]]\nget = \"/\"\npost = \"/\"", (3, 1), "a second method"),
        (Toml, "[[request]]\nget = \"/\"\nmethod = \"GET\"", (2, 1), "already"),
        (Toml, "[[request]]\nget = \"items\"", (2, 7), "begins with /"),
        (Toml, "[[request]]\nget = \"*\"", (2, 7), "begins with /"),
        (
            Toml,
            "[[request]]\nget = \"/\"\nheaders = { \"x y\" = \"1\" }",
            (3, 13),
            "\"x y\" is not the name of a header",
        ),
        (Toml, "[[request]]\nget = \"/\"\nheaders = { x = \"1\\r\\nevil: 2\" }", (3, 17), "contains a line break"),
        (Toml, "[[request]]\nget = \"http://h/\"", (2, 7), "'base'"),
        (Toml, "[[request]]\nget = \"/\"\nname = \"a\\nb\"", (3, 8), "one line of 1 to 80 characters"),
        (Toml, "[[request]]\nget = \"/\"\ntimeout = \"0s\"", (3, 11), "more than 0"),
        (Toml, "[[request]]\nget = \"/\"\ntimeout = \"soon\"", (3, 11), "'timeout'"),
        (Toml, "[[request]]\nget = \"/\"\nexpect = { status = \"abc\" }", (3, 21), "status codes"),
        (Toml, "[[request]]\nget = \"/\"\nexpect = { stat = \"200\" }", (3, 12), "did you mean 'status'?"),
        (Toml, "[[request]]\nget = \"/\"\nexpect = { json = { token = 1 } }", (3, 21), "begins with $"),
        (
            Toml,
            "[[request]]\nget = \"/\"\nexpect = { json = { \"$.a\" = [1] } }",
            (3, 29),
            "write a path for each value",
        ),
        (
            Toml,
            "[[request]]\nget = \"/\"\nexpect = { json = { \"$.a\" = nan } }",
            (3, 29),
            "'nan' is not a number that JSON allows",
        ),
        (Toml, "[[request]]\nget = \"/\"\nexpect = { body = \"regex:((\" }", (3, 19), "not a regular expression"),
        (Toml, "[[request]]\nget = \"/\"\nexpect = { body = \"{{ x }}\" }", (3, 19), "cannot contain placeholders"),
        (Toml, "[[request]]\nget = \"/\"\nexpect = { within = \"0s\" }", (3, 21), "more than 0"),
        (Toml, "[[request]]\npost = \"/\"\nbody = \"@none\"", (3, 8), "the file 'none' cannot be read"),
        (Toml, "[[request]]\npost = \"/\"\nbody = \"x\"\njson = 1", (4, 8), "one body"),
        (Toml, "[[request]]\npost = \"/\"\njson = inf", (3, 8), "is not a number that JSON allows"),
        (Toml, "[[request]]\npost = \"/\"\nmultipart = { a = \"@none\" }", (3, 19), "the file 'none' cannot be read"),
        (Toml, "[[request]]\npost = \"/\"\nmultipart = {}", (3, 13), "no part"),
        (Toml, "[[request]]\nget = \"/\"\n[[scenario]]\nstep = [{ get = \"/\" }]", (3, 1), "requests or scenarios"),
        (Yaml, "scenario:\n  - step:\n    - get: /\n      capture: {a: id}", (4, 20), "header:NAME"),
        (Json, "{\"scenario\": [{\"step\": [{\"get\": \"/\", \"thnk\": \"1s\"}]}]}", (1, 38), "did you mean 'think'?"),
        (
            Toml,
            "[[request]]\nget = \"/\"\nname = \"a\"\n[[request]]\nget = \"/b\"\nname = \"a\"",
            (6, 8),
            "another name",
        ),
        (Toml, "[[request]\nget = \"/\"", (1, 11), "not TOML"),
        (Toml, "[[request]]\nget = \"/\"\nget = \"/\"", (3, 1), "not TOML"),
        (Toml, "[[request]]\nget = \"/{{ int(1) }}\"", (2, 7), "int(1,50)"),
        (Toml, "[[request]]\nget = \"/{{ int(1,2)\"", (2, 7), "no closing"),
        (Toml, "[[request]]\nget = \"/{{ user.name }}\"", (2, 7), "add [data.user]"),
        (Toml, "[[request]]\nget = \"/{{ token }}\"", (2, 7), "nothing sets 'token'"),
        (Toml, "[[request]]\nget = \"/{{ env.NONE }}\"", (2, 7), "no variable 'NONE'"),
        (
            Toml,
            "[[request]]\nget = \"/{{ u.id }}\"\n[data.u]\nfile = \"users.csv\"",
            (2, 7),
            "the columns are name, password",
        ),
        (Toml, "[[request]]\nget = \"/\"\n[data.u]\nfile = \"empty.csv\"", (4, 8), "has no rows"),
        (Toml, "[[request]]\nget = \"/\"\n[data.u]\nfile = \"bad.csv\"", (4, 8), "'bad.csv', line 2"),
        (Toml, "[[request]]\nget = \"/\"\n[data.u]\nfile = \"none.csv\"", (4, 8), "cannot be read"),
        (Toml, "[[request]]\nget = \"/\"\n[data.u]\nfile = \"users.csv\"\npick = \"any\"", (5, 8), "zipf(1.1)"),
        (
            Toml,
            "[[request]]\nget = \"/\"\n[data.u]\nfile = \"users.csv\"\npick = \"unique\"\neach = \"use\"",
            (6, 8),
            "uses one row",
        ),
        (Toml, "[[request]]\nget = \"/\"\n[data.env]\nfile = \"users.csv\"", (3, 1), "is not a valid name for data"),
        (Toml, "[[request]]\nget = \"/\"\n[data.u]\npick = \"random\"", (3, 1), "needs a file with rows"),
        (Toml, "[[request]]\nget = \"/\"\nraw = 1", (3, 7), "true or false"),
        (Yaml, "", (1, 1), "empty"),
        (Yaml, "request:\n  - get: /\n    wieght: 3", (3, 5), "did you mean 'weight'?"),
        (Yaml, "request:\n  - get: /\n    get: /", (3, 5), "twice"),
        (Yaml, "request:\n  - get: [", (2, 10), "not YAML"),
        (Yaml, "request: &a\n  - *a", (2, 5), "refers to the anchor that contains"),
        (Yaml, "a: 1\n---\nb: 1", (2, 1), "second YAML document"),
        (Json, "{\"request\": [{\"get\": \"/\", \"wieght\": 3}]}", (1, 27), "did you mean 'weight'?"),
        (Json, "{\"request\": 3}", (1, 13), "a list"),
        (Json, "[]", (1, 1), "a table of keys"),
    ] {
        let error = read(text, format).expect_err(text);
        assert!(error.text.contains(part), "{text}: {error}");
        assert_eq!((error.at.line, error.at.column), place, "{text}: {error}");
    }
}

#[test]
fn yaml_aliases_are_bounded() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let before = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    assert!(read(&text, TrafficFormat::Yaml).expect_err("too large").text.contains("more than"));
    assert!(read(&"[".repeat(100_000), TrafficFormat::Yaml).is_err());
}

proptest! {
    /// Checks that every text is parsed or rejected without a panic.
    #[test]
    fn any_file_text_parses_without_a_panic(text in "[\\[\\]{}a-z0-9=\":,.\\\\ \n'&*-]{0,80}", which in 0usize..3) {
        let _ = read(&text, [TrafficFormat::Toml, TrafficFormat::Yaml, TrafficFormat::Json][which]);
    }

    #[test]
    fn any_changed_file_parses_without_a_panic(which in 0usize..3, at in any::<prop::sample::Index>(), new in any::<char>()) {
        let (text, format) = [(TOML, TrafficFormat::Toml), (YAML, TrafficFormat::Yaml), (JSON, TrafficFormat::Json)][which];
        let mut chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len());
        chars[at] = new;
        let _ = read(&chars.iter().collect::<String>(), format);
        let _ = read(&chars[..at].iter().collect::<String>(), format);
    }
}

#[test]
fn a_file_defines_setup_teardown_and_load() {
    let text = r#"
[load]
users = "1@5s,20@10s"
sessions = 500
[[setup]]
name = "seed"
post = "/seed/{{ seq() }}"
repeat = 3
capture = { token = "$.token" }
[[setup]]
get = "/warm?t={{ token }}"
on_fail = "continue"
[[request]]
get = "/items"
headers = { authorization = "Bearer {{ token }}" }
[[cleanup]]
delete = "/seed?t={{ token }}"
"#;
    let file = read(text, TrafficFormat::Toml).expect("a file");
    let load = file.load();
    assert_eq!((load.users.clone(), load.sessions), (LoadCurve::parse("1@5s,20@10s").ok(), Some(500)));
    assert_eq!((load.rate.clone(), load.duration_ns), (None, None));
    let traffic = traffic(&file);
    let shown = |asked: &plimsoll_model::OneOffRoute| {
        (asked.route.label.clone(), asked.route.request.target.clone(), asked.times, asked.may_fail)
    };
    let around = &traffic.setup_teardown;
    assert_eq!(
        around.setup.iter().map(shown).collect::<Vec<_>>(),
        [
            ("seed".to_owned(), "/api/seed/{{ seq() }}".to_owned(), 3, false),
            ("GET /warm".to_owned(), "/api/warm?t={{ token }}".to_owned(), 1, true)
        ]
    );
    assert_eq!(around.teardown.iter().map(shown).collect::<Vec<_>>().len(), 1);
    assert_eq!((traffic.captured_names(), traffic.preflight), (vec!["token"], None), "it needs what is captured first");
    let record = traffic.record();
    let mut other = traffic;
    other.setup_teardown.setup[0].times = 4;
    assert!(record.setup_teardown_digest.is_some() && record != other.record());
    for (text, place, part) in [
        ("[[setup]]\nget = \"/{{ a }}\"\n[[request]]\nget = \"/\"", (2, 7), "nothing sets 'a'"),
        (
            "[[setup]]\nget = \"/\"\nthink = \"1s\"\n[[request]]\nget = \"/\"",
            (3, 1),
            "no key 'think' in a step of 'setup'",
        ),
        ("[[request]]\nget = \"/\"\n[load]\nuser = 3", (4, 1), "did you mean 'users'?"),
        ("[[request]]\nget = \"/\"\n[load]\nusers = 1.5", (4, 9), "must be a whole number, not 1.5"),
        ("[[request]]\nget = \"/\"\n[load]\nusers = 3\nrate = 5", (5, 8), "exclude each other"),
        ("[[request]]\nget = \"/\"\n[load]\nrate = \"5@5s\"\nduration = \"3s\"", (5, 12), "leave 'duration' out"),
        ("[[request]]\nget = \"/\"\n[load]\nsessions = 0", (4, 12), "more than 0"),
        (
            "[[setup]]\nget = \"/\"\ncapture = { a = \"$.a\" }\n[[scenario]]\nstep = [{ get = \"/\", capture = { a = \"$.b\" } }]",
            (5, 34),
            "already captures the name",
        ),
    ] {
        let error = read(text, TrafficFormat::Toml).expect_err(text);
        assert_eq!((error.at.line, error.at.column), place, "{text}: {error}");
        assert!(error.text.contains(part), "{text}: {error}");
    }
}

/// Checks that names which differ only in their secrets get different labels, because labels
/// contain no secrets.
#[test]
fn redacted_names_get_a_number() {
    let text = "[[request]]\nname = \"https://user:one@a.example\"\nget = \"/\"\n\
                [[request]]\nname = \"https://user:two@a.example\"\nget = \"/\"\n";
    let file = read(text, TrafficFormat::Toml).expect("a traffic file");
    let labels: Vec<String> = traffic(&file).routes.iter().map(|route| route.label.clone()).collect();
    assert!(labels[1] == format!("{} (2)", labels[0]) && !labels[0].contains("one@"), "{labels:?}");
}
