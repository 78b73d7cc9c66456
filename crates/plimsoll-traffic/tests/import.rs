//! Tests of importers with files as the tools write them, with invalid files, and with damaged
//! files. No damaged file may cause a panic.
//!
//! Next to each input file is the expected traffic file, which ends with a list of the omitted
//! parts. `PLIMSOLL_UPDATE_GOLDEN=1` rewrites the expected traffic files.

use plimsoll_traffic::file::{FileContext, TrafficFile, TrafficFileError, TrafficFormat};
use plimsoll_traffic::import::{ImportResult, import_har, import_jmx, import_openapi, import_postman};
use proptest::prelude::*;
use std::fmt::Write;
use std::path::PathBuf;

type Importer = fn(&str) -> Result<ImportResult, TrafficFileError>;

fn import_har_of_first_host(text: &str) -> Result<ImportResult, TrafficFileError> {
    import_har(text, None)
}

fn fixture_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/import")
}

fn read_fixture(name: &str) -> String {
    std::fs::read_to_string(fixture_folder().join(name)).expect(name)
}

/// A file context (a parser's access to files and variables) in which every file and variable
/// exists.
struct FixtureFileContext;

impl FileContext for FixtureFileContext {
    fn read_file(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(vec![1])
    }

    fn read_data_rows(&mut self, _: &str) -> Result<String, String> {
        Ok("user,password\nann,a\n".into())
    }

    fn check_regex(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn environment_variable(&mut self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }
}

#[test]
fn files_of_other_tools_become_traffic_files() {
    let all: [(&str, Importer); 6] = [
        ("shop.har", import_har_of_first_host),
        ("pets.yaml", import_openapi),
        ("pets2.json", import_openapi),
        ("shop.postman_collection.json", import_postman),
        ("shop.jmx", import_jmx),
        ("groups.jmx", import_jmx),
    ];
    for (name, import) in all {
        let imported = import(&read_fixture(name)).unwrap_or_else(|error| panic!("{name}:{error}"));
        let mut got = imported.text.clone();
        got.push_str("\n# left out:\n");
        for left in &imported.left_out {
            writeln!(got, "# {}:{}:{}: {}", name, left.at.line, left.at.column, left.text).expect("a string");
        }
        let golden = fixture_folder().join(format!("{name}.toml"));
        if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
            std::fs::write(&golden, &got).expect("written");
        }
        let expect = std::fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(got, expect, "{name}");
        TrafficFile::read(&imported.text, TrafficFormat::Toml, &mut FixtureFileContext)
            .unwrap_or_else(|error| panic!("{name}: {error}\n{}", imported.text));
    }
}

/// Returns a JMeter test plan with one thread group and one request.
fn jmeter_plan_with_group(group: &str) -> String {
    format!(
        "<jmeterTestPlan><hashTree><TestPlan/><hashTree>{group}<hashTree><HTTPSamplerProxy testname=\"a\">\
         <stringProp name=\"HTTPSampler.path\">/a</stringProp></HTTPSamplerProxy><hashTree/></hashTree>\
         </hashTree></hashTree></jmeterTestPlan>"
    )
}

#[test]
fn a_variable_can_contain_a_url_or_a_method() {
    let plan = |variables: &str, method: &str| {
        format!(
            "<jmeterTestPlan><hashTree><TestPlan><collectionProp name=\"Arguments.arguments\">{variables}</collectionProp>\
             </TestPlan><hashTree><ThreadGroup/><hashTree><HTTPSamplerProxy testname=\"a\">\
             <stringProp name=\"HTTPSampler.path\">${{url}}</stringProp>\
             <stringProp name=\"HTTPSampler.method\">{method}</stringProp></HTTPSamplerProxy><hashTree/></hashTree>\
             </hashTree></hashTree></jmeterTestPlan>"
        )
    };
    let variable = |name: &str, value: &str| {
        let part = |part: &str, text: &str| format!("<stringProp name=\"Argument.{part}\">{text}</stringProp>");
        format!("<elementProp name=\"{name}\">{}{}</elementProp>", part("name", name), part("value", value))
    };
    let variables = variable("url", "http://127.0.0.1:8080/a?b=1") + &variable("verb", "put");
    let imported = import_jmx(&plan(&variables, "${verb}")).expect("a plan");
    assert!(imported.text.contains("base = \"http://127.0.0.1:8080\""), "{}", imported.text);
    assert!(imported.text.contains("put = \"/a?b=1\""), "{}", imported.text);
    let imported = import_jmx(&plan(&variables, "${unknown}")).expect("a plan");
    assert!(imported.text.contains("get = \"/a?b=1\""), "{}", imported.text);
    assert!(
        imported.left_out.iter().any(|left| left.text.contains("the method of this request is not known")),
        "{:?}",
        imported.left_out
    );
}

#[test]
fn jmeter_thread_groups_become_the_load() {
    let property = |name: &str, value: &str| format!("<stringProp name=\"{name}\">{value}</stringProp>");
    let plain = |threads: &str, ramp: &str, loops: &str, duration: &str| {
        let timed = format!("<boolProp name=\"ThreadGroup.scheduler\">{}</boolProp>", !duration.is_empty());
        let parts = [("num_threads", threads), ("ramp_time", ramp), ("duration", duration)];
        let parts: String = parts.map(|(name, value)| property(&format!("ThreadGroup.{name}"), value)).concat();
        let loops = property("LoopController.loops", loops);
        format!(
            "<ThreadGroup>{parts}{timed}<elementProp name=\"ThreadGroup.main_controller\">{loops}</elementProp></ThreadGroup>"
        )
    };
    let parts = |kind: &str, parts: &[(&str, &str)]| {
        let parts: String = parts.iter().map(|(name, value)| property(name, value)).collect();
        format!("<{kind}>{parts}</{kind}>")
    };
    let target = |kind: &str, unit: &str, steps: &str| {
        parts(kind, &[("TargetLevel", "12"), ("RampUp", "2"), ("Steps", steps), ("Hold", "3"), ("Unit", unit)])
    };
    let stepping = [
        ("ThreadGroup.num_threads", "10"),
        ("Threads initial delay", "2"),
        ("Start users count", "4"),
        ("Start users count burst", "2"),
        ("Start users period", "5"),
        ("Stop users count", "5"),
        ("Stop users period", "1"),
        ("flighttime", "20"),
        ("rampUp", "0"),
    ];
    let open =
        [("OpenModelThreadGroup.schedule", "rate(0/s) random_arrivals(10 s) rate(120/min) random_arrivals(1 min)")];
    for (group, expect) in [
        (plain("5", "0", "-1", "60"), "users = 5\nduration = \"60s\"\n"),
        (plain("5", "10", "-1", "60"), "users = \"1..5@10s,5@50s\"\n"),
        (plain("5", "0", "7", ""), "users = 5\nsessions = 35\n"),
        // JMeter threads that run their requests once become arrivals of an open loop.
        (plain("50", "10", "1", ""), "rate = 5\nsessions = 50\n"),
        (plain("5", "10", "7", ""), "users = 5\nsessions = 35\n"),
        (plain("${__P(n,8)}", "0", "${__P(loops,2)}", ""), "users = 8\nsessions = 16\n"),
        (plain("${unknown}", "0", "2", ""), ""),
        (
            target("com.blazemeter.jmeter.threads.concurrency.ConcurrencyThreadGroup", "S", ""),
            "users = \"1..12@2s,12@3s\"\n",
        ),
        (target("ConcurrencyThreadGroup", "M", "2"), "users = \"6@60s,12@240s\"\n"),
        (
            target("com.blazemeter.jmeter.threads.arrivals.ArrivalsThreadGroup", "M", "1"),
            "rate = \"0..0.2@120s,0.2@180s\"\n",
        ),
        (parts("kg.apc.jmeter.threads.SteppingThreadGroup", &stepping), "users = \"0@2s,2@5s,6@5s,10@20s,10..0@2s\"\n"),
        (parts("OpenModelThreadGroup", &open), "rate = \"0..2@10s,2@60s\"\n"),
        (parts("UltimateThreadGroup", &[]), ""),
        ("<SomeThreadGroup/>".to_owned(), ""),
    ] {
        let imported = import_jmx(&jmeter_plan_with_group(&group)).expect(&group);
        let load =
            imported.text.split_once("[load]\n").map_or("", |(_, rest)| rest.split("\n[").next().unwrap_or(rest));
        assert_eq!(load.trim_end(), expect.trim_end(), "{group}: {:?}", imported.left_out);
        TrafficFile::read(&imported.text, TrafficFormat::Toml, &mut FixtureFileContext)
            .unwrap_or_else(|error| panic!("{error}\n{}", imported.text));
    }
}

#[test]
fn an_imported_openapi_mix_is_a_valid_traffic_file() {
    for name in ["pets.yaml", "pets2.json"] {
        let imported = import_openapi(&read_fixture(name)).expect(name);
        TrafficFile::read(&imported.text, TrafficFormat::Toml, &mut FixtureFileContext)
            .unwrap_or_else(|error| panic!("{name}: {error}\n{}", imported.text));
    }
}

/// Checks that parts missing from browser recordings are reported. Recordings of headless Chromium
/// have duplicate header fields, and lack the bodies of multipart forms with files.
#[test]
fn omissions_of_browser_recordings_are_reported() {
    let field = |name: &str, value: &str| format!("{{\"name\": \"{name}\", \"value\": \"{value}\"}}");
    let entry = |method: &str, fields: &[String]| {
        let fields = fields.join(",");
        format!(
            "{{\"request\": {{\"method\": \"{method}\", \"url\": \"http://h/{}\", \"headers\": [{fields}]}}, \"response\": {{\"status\": 200}}}}",
            method.to_lowercase()
        )
    };
    let form = field("Content-Type", "multipart/form-data; boundary=x");
    let entries = [
        entry("GET", &[field("Referer", "http://h/"), field("referer", "http://h/"), form.clone()]),
        entry("POST", &[form.clone(), form.clone()]),
        entry("PUT", &[field("content-length", "0"), form.clone()]),
        entry("DELETE", &[field("Content-Length", "5"), field("accept", "a/b"), field("accept", "c/d")]),
    ];
    let imported =
        import_har(&format!("{{\"log\": {{\"entries\": [{}]}}}}", entries.join(",")), None).expect("a scenario");
    assert!(imported.text.contains("referer = \"http://h/\"") && imported.text.contains("accept = \"a/b, c/d\""));
    let said: Vec<&str> = imported.left_out.iter().map(|left| left.text.as_str()).collect();
    assert_eq!(said, ["POST /post: its body was not recorded", "DELETE /delete: its body was not recorded"]);
}

#[test]
fn unchanged_recorded_values_are_reported() {
    let entry = |what: &str, request: &str, response: &str| {
        let (method, target) = what.split_once(' ').expect("two words");
        format!(
            "{{\"request\": {{\"method\": \"{method}\", \"url\": \"http://h{target}\", {request}}},\n\
             \"response\": {{\"status\": 200, {response}}}}}"
        )
    };
    let header = |name: &str, value: &str| format!("\"headers\": [{{\"name\": \"{name}\", \"value\": \"{value}\"}}]");
    let body = |kind: &str, text: &str| format!("\"postData\": {{\"mimeType\": \"{kind}\", \"text\": {text:?}}}");
    let content = |text: &str| format!("\"content\": {{\"text\": {text:?}}}");
    let entries = [
        entry(
            "POST /login",
            &body("application/json", r#"{"user":"ann","password":"horse7"}"#),
            &content(r#"{"data":[{"a-token":"abc.def.ghi"}]}"#),
        ),
        entry(
            "GET /me",
            &header("Authorization", "Bearer abc.def.ghi"),
            &header("Set-Cookie", "XSRF-TOKEN=q1w2e3r4; Path=/"),
        ),
        entry("GET /you", &header("authorization", "Bearer abc.def.ghi"), &content("<input name=csrf value=z9y8x7w6>")),
        entry("POST /x?api_key=k%2B1&page=2", &header("X-XSRF-TOKEN", "q1w2e3r4"), &header("X-Next-Token", "n0n1n2n3")),
        entry(
            "POST /y",
            &body("application/x-www-form-urlencoded", "csrf_token=z9y8x7w6&color=red&token="),
            "\"headers\": []",
        ),
        entry("POST /z", &header("Next-Token", "n0n1n2n3"), "\"headers\": []"),
    ];
    let imported =
        import_har(&format!("{{\"log\": {{\"entries\": [{}]}}}}", entries.join(",\n")), None).expect("a scenario");
    let said: Vec<String> = imported.left_out.iter().map(|left| format!("{} {}", left.at.line, left.text)).collect();
    assert_eq!(
        said,
        [
            "1 POST /login: the recorded value of 'password' of its body is sent: write {{ env.PASSWORD }} in its place, or capture the value from an earlier response",
            "3 GET /me: the recorded value of the header authorization is sent. POST /login returned this value: add capture = { authorization = \"$.data[0]['a-token']\" } to that request, and write {{ authorization }} in this request (2 times)",
            "7 POST /x: the recorded value of 'api_key' of its query is sent: write {{ env.API_KEY }} in its place, or capture the value from an earlier response",
            "7 POST /x: the recorded value of the header x-xsrf-token is sent. GET /me returned this value: add capture = { x_xsrf_token = \"cookie:XSRF-TOKEN\" } to that request, and write {{ x_xsrf_token }} in this request",
            "9 POST /y: the recorded value of 'csrf_token' of its body is sent. GET /you returned this value: capture the value in that request, and write {{ csrf_token }} in this request",
            "11 POST /z: the recorded value of the header next-token is sent. POST /x returned this value: add capture = { next_token = \"header:X-Next-Token\" } to that request, and write {{ next_token }} in this request",
        ]
    );
}

#[test]
fn variables_without_an_extractor_are_sent_literally() {
    let element = |kind: &str, inner: &str, below: &str| {
        format!(
            "<{kind} testclass=\"{kind}\" testname=\"{kind}\" enabled=\"true\">{inner}</{kind}><hashTree>{below}</hashTree>"
        )
    };
    let text = |name: &str, value: &str| format!("<stringProp name=\"{name}\">{value}</stringProp>");
    let ask = |path: &str, below: &str| {
        let inner =
            text("HTTPSampler.domain", "h") + &text("HTTPSampler.path", path) + &text("HTTPSampler.method", "GET");
        element("HTTPSamplerProxy", &inner, below)
    };
    let header = "<collectionProp name=\"HeaderManager.headers\"><elementProp name=\"\" elementType=\"Header\">\
                  <stringProp name=\"Header.name\">X-Token</stringProp><stringProp name=\"Header.value\">t ${token}</stringProp>\
                  </elementProp></collectionProp>";
    let token = text("JSONPostProcessor.referenceNames", "token") + &text("JSONPostProcessor.jsonPathExprs", "$.t");
    let token = element("JSONPostProcessor", &token, "");
    let base = "<collectionProp name=\"Arguments.arguments\"><elementProp name=\"base\" elementType=\"Argument\">\
                <stringProp name=\"Argument.name\">base</stringProp><stringProp name=\"Argument.value\">/api</stringProp>\
                </elementProp></collectionProp>";
    let each = text("ForeachController.inputVal", "token") + &text("ForeachController.returnVal", "one");
    let each = element("ForeachController", &each, &ask("/each/${one}", ""));
    let groups = [
        element("SetupThreadGroup", "", &ask("seed", "")),
        element("ThreadGroup", "", &(ask("${base}/login", &token) + &ask("/a/${token}", "") + &each)),
        element("ThreadGroup", "", &ask("/b/${token}", "")),
        element("PostThreadGroup", "", &ask("/clean", "")),
    ];
    let all = element("Arguments", base, "") + &element("HeaderManager", header, "") + &groups.concat();
    let plan = format!("<jmeterTestPlan><hashTree>{}</hashTree></jmeterTestPlan>", element("TestPlan", "", &all));
    let imported = import_jmx(&plan).expect("a scenario");
    let file = TrafficFile::read(&imported.text, TrafficFormat::Toml, &mut FixtureFileContext)
        .unwrap_or_else(|error| panic!("{error}\n{}", imported.text));
    assert_eq!(file.base(), Some("http://h"), "{}", imported.text);
    for part in [
        "get = \"/seed\"\nheaders = { X-Token = \"t ${token}\" }",
        "get = \"/api/login\"\nheaders = { X-Token = \"t {{ token }}\" }",
        "get = \"/a/{{ token }}\"",
        "get = \"/each/{{ token }}\"",
        "get = \"/b/${token}\"\nheaders = { X-Token = \"t ${token}\" }",
        "get = \"/clean\"\nheaders = { X-Token = \"t ${token}\" }",
    ] {
        assert!(imported.text.contains(part), "{part}\n{}", imported.text);
    }
    let said = imported.left_out.iter().filter(|left| left.text.contains("nothing sets the variable token")).count();
    assert_eq!(said, 1, "{:?}", imported.left_out);
}

#[test]
fn invalid_request_parts_are_omitted() {
    let entries = [
        r#"{"request": {"method": "GE T", "url": "http://h/a"}}"#,
        r#"{"request": {"method": "GET", "url": "http://h/b", "headers": [{"name": "a b", "value": "c"}, {"name": "x", "value": "1\r\n2"}]}}"#,
        r#"{"_resourceType": "eventsource", "request": {"method": "GET", "url": "http://h/c"}, "response": {"status": 200}}"#,
        r#"{"request": {"method": "GET", "url": "http://h/d"}, "response": {"status": 200, "content": {"mimeType": "text/event-stream;charset=utf-8"}}}"#,
    ];
    let imported =
        import_har(&format!("{{\"log\": {{\"entries\": [{}]}}}}", entries.join(",")), None).expect("a scenario");
    assert_eq!((imported.requests, imported.text.contains("headers")), (1, false), "{}", imported.text);
    let said: Vec<&str> = imported.left_out.iter().map(|left| left.text.as_str()).collect();
    assert_eq!(
        said,
        [
            "a request with an invalid method is not imported",
            "a header with an invalid name or value is not imported (2 times)",
            "GET /c is not imported: its response is a stream of events without an end",
            "GET /d is not imported: its response is a stream of events without an end",
        ]
    );
}

#[test]
fn another_host_of_a_recording_can_be_chosen() {
    let imported = import_har(&read_fixture("shop.har"), Some("cdn.example.net")).expect("a scenario");
    assert!(imported.text.contains("base = \"https://cdn.example.net\""), "{}", imported.text);
    assert_eq!(imported.requests, 2);
    let error = import_har(&read_fixture("shop.har"), Some("nobody.example")).expect_err("nothing");
    assert!(error.text.contains("nobody.example"), "{error}");
}

#[test]
fn documents_of_other_formats_are_refused_with_a_position() {
    let cut = read_fixture("shop.jmx");
    let cut = &cut[..cut.len() / 2];
    let cases: &[(Importer, &str, &str)] = &[
        (import_har_of_first_host, "", "1:1: "),
        (import_har_of_first_host, "{\"log\": {\"entries\": [", "1:22: this is not JSON"),
        (import_har_of_first_host, "{}", "1:1: this is not a HAR"),
        (import_har_of_first_host, "{\"log\":\n {}}", "2:2: this is not a HAR"),
        (import_har_of_first_host, "{\"log\": {\"entries\": 1}}", "a list"),
        (import_har_of_first_host, "{\"log\": {\"entries\": []}}", "no entry"),
        (import_openapi, "", "empty"),
        (import_openapi, "a: b", "1:1: this is not an OpenAPI description"),
        (import_openapi, "a: [", "this is not YAML"),
        (import_openapi, "swagger: '1.2'", "1.2 is not supported"),
        (import_openapi, "openapi: 3.1.0", "no 'paths'"),
        (import_openapi, "openapi: 3.1.0\npaths: {}", "no operation"),
        (import_postman, "{}", "not a Postman collection"),
        (import_postman, "{\"requests\": []}", "format 1"),
        (import_postman, "{\"item\": []}", "no request"),
        (import_jmx, "", "not complete XML"),
        (import_jmx, "<html/>", "1:1: this is not a test plan"),
        (
            import_jmx,
            "<jmeterTestPlan>\n<hashTree>\n",
            "2:11: this is not complete XML: the root node was opened but never closed: the file is cut off",
        ),
        (import_jmx, "<jmeterTestPlan/>", "no request"),
        (import_jmx, "<!DOCTYPE a [<!ENTITY b \"c\">]><jmeterTestPlan/>", "not complete XML"),
        (import_jmx, cut, "not complete XML"),
    ];
    for (import, text, part) in cases {
        let error = import(text).expect_err(text).to_string();
        assert!(error.contains(part), "{text}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let deep = format!("<jmeterTestPlan>{}", "<hashTree>".repeat(100_000));
    assert!(import_jmx(&deep).expect_err("cut").text.contains("not complete XML"));
    let group = |inner: String| format!("<hashTree><GenericController/>{inner}</hashTree>");
    let deep = (0..5_000).fold(String::new(), |inner, _| group(inner));
    let deep = format!("<jmeterTestPlan><hashTree><ThreadGroup/>{deep}</hashTree></jmeterTestPlan>");
    assert!(import_jmx(&deep).expect_err("nothing").text.contains("no request"));
}

/// Returns copies of a fixture with one defect: a word is removed, swapped or repeated, or the rest
/// of the file is cut off.
fn damaged_copies(name: &'static str) -> impl Strategy<Value = String> {
    let text = read_fixture(name);
    let words: Vec<String> =
        text.split_inclusive([' ', '\n', '"', '>', '<', ',', ':', '{', '}']).map(str::to_owned).collect();
    let count = words.len();
    (0..count, 0..count, 0..4usize).prop_map(move |(at, other, how)| {
        let mut words = words.clone();
        match how {
            0 => _ = words.remove(at),
            1 => words.swap(at, other),
            2 => words.truncate(at),
            _ => words.insert(at, words[other].clone()),
        }
        words.concat()
    })
}

fn assert_imported_is_toml(import: Importer, text: &str) {
    if let Ok(imported) = import(text) {
        let read = TrafficFile::read(&imported.text, TrafficFormat::Toml, &mut FixtureFileContext);
        if let Err(error) = read {
            assert!(!error.text.contains("not TOML"), "{error}\n{}", imported.text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_text_is_imported_or_refused(text in "\\PC{0,200}") {
        [import_har_of_first_host as Importer, import_openapi, import_postman, import_jmx].into_iter().for_each(|import| assert_imported_is_toml(import, &text));
    }

    #[test]
    fn damaged_recordings_are_imported_or_refused(text in damaged_copies("shop.har")) {
        assert_imported_is_toml(import_har_of_first_host, &text);
    }

    #[test]
    fn damaged_descriptions_are_imported_or_refused(text in damaged_copies("pets.yaml")) {
        assert_imported_is_toml(import_openapi, &text);
    }

    #[test]
    fn damaged_json_descriptions_are_imported_or_refused(text in damaged_copies("pets2.json")) {
        assert_imported_is_toml(import_openapi, &text);
    }

    #[test]
    fn damaged_collections_are_imported_or_refused(text in damaged_copies("shop.postman_collection.json")) {
        assert_imported_is_toml(import_postman, &text);
    }

    #[test]
    fn damaged_test_plans_are_imported_or_refused(text in damaged_copies("shop.jmx")) {
        assert_imported_is_toml(import_jmx, &text);
    }
}

/// Checks that the imported text contains all of `parts`. If `left_out` is not empty, a note about
/// an omitted part must contain `left_out`.
fn assert_import_contains(import: Importer, source: &str, parts: &[&str], left_out: &str) {
    let imported = import(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    for part in parts {
        assert!(imported.text.contains(part), "{part}: {}", imported.text);
    }
    let said: Vec<&str> = imported.left_out.iter().map(|left| left.text.as_str()).collect();
    assert!(left_out.is_empty() || said.iter().any(|text| text.contains(left_out)), "{left_out}: {said:?}");
}

#[test]
fn descriptions_define_how_values_are_formatted() {
    let api = |paths: &str| {
        format!("openapi: 3.0.3\ninfo: {{title: t}}\nservers: [{{url: \"http://h/v1\"}}]\npaths:\n{paths}")
    };
    let get = |rest: &str| api(&format!("  /a:\n    get:\n      {rest}\n      responses: {{\"200\": {{}}}}\n"));
    let post = |kind: &str, schema: &str| {
        let body = format!("requestBody: {{content: {{{kind}: {{{schema}}}}}}}");
        api(&format!("  /a:\n    post:\n      {body}\n      responses: {{\"200\": {{}}}}\n"))
    };
    for (source, parts, left_out) in [
        (
            get(
                "parameters: [{name: a, in: query, required: true, style: pipeDelimited, schema: {type: array}, example: [x, y]}]",
            ),
            &["/a?a=x|y"][..],
            "",
        ),
        (
            get("parameters: [{name: a, in: query, required: true, schema: {type: object}, example: {R: 1, G: 2}}]"),
            &["/a?R=1&G=2"],
            "",
        ),
        (
            get("parameters: [{name: a, in: header, required: true, schema: {type: array}, example: [x, y]}]"),
            &["a = \"x,y\""],
            "",
        ),
        (get("parameters: [{name: a, in: query, schema: {type: string}}]"), &["get = \"/a\""], "an optional parameter"),
        (
            get("requestBody: {content: {application/json: {schema: {type: object}}}}"),
            &["get = \"/a\""],
            "GET cannot have a body",
        ),
        (
            get("servers: [{url: \"http://other/\"}]").replace("  /a:", "  /b: {get: {responses: {}}}\n  /a:"),
            &["get = \"/b\""],
            "another server (http://other/)",
        ),
        (get("servers: [{url: \"http://h/v1/x\"}]"), &["get = \"/x/a\""], ""),
        (
            post("application/json", "schema: {type: array, minItems: 2, uniqueItems: true, items: {enum: [a, b]}}"),
            &["post = \"/a\""],
            "the items of a list must differ",
        ),
        (
            post("application/json", "schema: {type: array, minItems: 50, items: {const: a}}"),
            &["post = \"/a\""],
            "a list gets 20 items, although its minimum is 50",
        ),
        // YAML merge keys (`<<`) work in OpenAPI documents.
        (
            api("  /a:\n    x-base: &base {responses: {\"204\": {}}}\n    get: {<<: *base}\n"),
            &["expect = { status = \"204\" }"],
            "",
        ),
        // An OpenAPI parameter gets the value null only if the parameter has no other value.
        (
            get(
                "parameters: [{name: a, in: query, required: true, schema: {type: string, nullable: true, enum: [null, v]}}]",
            ),
            &["/a?a=v\""],
            "",
        ),
        (
            post("application/x-www-form-urlencoded", "example: {a: [1, 2], b: x y}"),
            &["body = \"a=1&a=2&b=x%20y\""],
            "",
        ),
        (
            post(
                "multipart/form-data",
                "schema: {type: object, properties: {m: {type: object, properties: {k: {type: string, example: v}}}, l: {type: array, example: [1, 2]}}}, encoding: {l: {contentType: text/csv}}",
            ),
            &[
                r#"m = { text = '{"k":"v"}', type = "application/json" }"#,
                r#"l = [{ text = "1", type = "text/csv" }, { text = "2", type = "text/csv" }]"#,
            ],
            "",
        ),
        (
            post("application/json", "examples: {a: {$ref: \"#/components/examples/A\"}}")
                + "components: {examples: {A: {value: {k: 1}}}}\n",
            &[r#"body = '{"k":1}'"#],
            "",
        ),
        (
            post("application/json", "schema: {$ref: \"#/components/schemas/Dog\"}")
                + "components: {schemas: {Pet: {type: object, discriminator: {propertyName: kind}, properties: {kind: {type: string}}}, Dog: {allOf: [{$ref: \"#/components/schemas/Pet\"}, {type: object, properties: {age: {type: integer, minimum: 3, maximum: 3, multipleOf: 3}}}]}}}\n",
            &[r#"body = '{"kind":"Dog","age":3}'"#],
            "",
        ),
    ] {
        assert_import_contains(import_openapi, &source, parts, left_out);
    }
    let swagger = "swagger: \"2.0\"\ninfo: {title: t}\nhost: h\npaths:\n  /a:\n    get:\n      parameters:\n        \
        - {name: a, in: query, required: true, type: array, items: {type: string}, collectionFormat: multi, x-example: [1, 2]}\n        \
        - {name: b, in: query, required: true, type: array, items: {type: string}, x-example: [1, 2]}\n      responses: {}\n";
    assert_import_contains(import_openapi, swagger, &["/a?a=1&a=2&b=1,2"], "");
    let paths = "\npaths: {/a: {get: {responses: {}}}}\n";
    for (head, said) in [
        ("basePath: /v2", "the OpenAPI file names no host: give the host as the target, with the path /v2"),
        ("", "as the target"),
    ] {
        let imported = import_openapi(&format!("swagger: \"2.0\"\ninfo: {{title: t}}\n{head}{paths}")).expect(head);
        assert!(imported.left_out.iter().any(|left| left.text.ends_with(said)), "{:?}", imported.left_out);
    }
}

#[test]
fn collections_define_authorization() {
    let collection =
        |request: &str| format!("{{\"info\": {{}}, \"item\": [{{\"name\": \"a\", \"request\": {request}}}]}}");
    for (request, parts, left_out) in [
        (r#"{"url": "http://key7@h/a"}"#, &["Authorization = \"Basic a2V5Nzo=\"", "base = \"http://h\""][..], ""),
        (
            r#"{"url": "http://h/a", "auth": {"type": "oauth2", "oauth2": [{"key": "accessToken", "value": "t"}, {"key": "addTokenTo", "value": "queryParams"}]}}"#,
            &["/a?access_token=t"],
            "",
        ),
        (
            r#"{"url": "http://h/a", "header": [{"key": "authorization", "value": "own"}], "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "t"}]}}"#,
            &["headers = { Authorization = \"Bearer t\" }"],
            "",
        ),
        (
            r#"{"url": {"host": "h", "path": "a", "query": [{"key": "y", "value": ""}, {"key": "z", "value": null}]}}"#,
            &["/a?y=&z\""],
            "",
        ),
        // The raw URL of a Postman request may contain a disabled query parameter, which must not
        // be imported.
        (
            r#"{"url": {"raw": "http://h/a?x=1&off=2#top", "host": ["h"], "path": ["a"], "query": [{"key": "x", "value": "1"}, {"key": "off", "value": "2", "disabled": true}]}}"#,
            &["get = \"/a?x=1\""],
            "",
        ),
        (
            r#"{"url": "http://h/a", "header": [{"key": "Host", "value": "x"}, {"key": "host", "value": "y"}]}"#,
            &["headers = { Host = \"x\" }"],
            "a second header Host",
        ),
        (r#"{"url": "http://h/a?x={{missing}}"}"#, &["{{ env.missing | url }}"], "is not in the Postman collection"),
        (r#"{"url": "http://h/a", "method": "CONNECT"}"#, &[], ""),
        (
            r#"{"url": "http://h/a", "method": "POST", "header": [{"key": "Transfer-Encoding", "value": "chunked"}]}"#,
            &["post = \"/a\""],
            "plimsoll sets this header from the body",
        ),
        (
            r#"{"url": "http://h/a", "method": "POST", "body": {"mode": "formdata", "formdata": [{"key": "t", "value": "@home"}]}}"#,
            &["t = { text = \"@home\" }"],
            "",
        ),
        (
            r#"{"url": "http://h/a", "protocolProfileBehavior": 1, "method": "GET", "proxy": {"host": "p"}}"#,
            &["get = \"/a\""],
            "a proxy of a request",
        ),
    ] {
        let source = collection(request);
        match request.contains("CONNECT") {
            true => assert!(import_postman(&source).expect_err("nothing").text.contains("is not valid")),
            false => {
                let parts: Vec<&str> = parts.iter().filter(|part| !part.contains("| url")).copied().collect();
                assert_import_contains(import_postman, &source, &parts, left_out);
            }
        }
    }
}

#[test]
fn test_plans_keep_scopes_and_defaults() {
    let property = |name: &str, value: &str| format!("<stringProp name=\"{name}\">{value}</stringProp>");
    let element = |kind: &str, properties: &str, below: &str| {
        format!("<{kind} testname=\"{kind}\">{properties}</{kind}><hashTree>{below}</hashTree>")
    };
    let plan = |inside: &str| {
        let group = element("ThreadGroup", "", inside);
        format!("<jmeterTestPlan><hashTree><TestPlan/><hashTree>{group}</hashTree></hashTree></jmeterTestPlan>")
    };
    let ask = |path: &str, more: &str, below: &str| {
        let parts = property("HTTPSampler.domain", "h") + &property("HTTPSampler.path", path);
        element("HTTPSamplerProxy", &(parts + more), below)
    };
    let headers = |pairs: &[(&str, &str)]| {
        let pair = |(name, value): &(&str, &str)| {
            format!("<elementProp>{}{}</elementProp>", property("Header.name", name), property("Header.value", value))
        };
        let pairs: String = pairs.iter().map(pair).collect();
        element(
            "HeaderManager",
            &format!("<collectionProp name=\"HeaderManager.headers\">{pairs}</collectionProp>"),
            "",
        )
    };
    let regex = |name: &str, pattern: &str, more: &str| {
        let parts = property("RegexExtractor.refname", name) + &property("RegexExtractor.regex", pattern);
        element("RegexExtractor", &(parts + more), "")
    };
    let first = property("RegexExtractor.template", "$1$");
    let all = first.clone() + &property("RegexExtractor.match_number", "-1");
    let of_headers = first.clone() + &property("RegexExtractor.useHeaders", "true");
    let second = property("RegexExtractor.template", "$2$") + &property("RegexExtractor.default", "none");
    let defaults = |name: &str, value: &str| {
        let parts = property(name, value);
        format!("<ConfigTestElement guiclass=\"HttpDefaultsGui\" testname=\"d\">{parts}</ConfigTestElement><hashTree/>")
    };
    let boundary = |number: &str| {
        let parts =
            ["refname", "lboundary", "rboundary"].map(|name| property(&format!("BoundaryExtractor.{name}"), "t"));
        element("BoundaryExtractor", &(parts.concat() + &property("BoundaryExtractor.match_number", number)), "")
    };
    let each = property("ForeachController.inputVal", "id") + &property("ForeachController.returnVal", "one");
    let times = property("LoopController.loops", "3");
    let once = |path: &str| element("OnceOnlyController", "", &ask(path, "", ""));
    for (inside, parts, left_out) in [
        (ask("/a/${__urlencode(a b&amp;c)}", "", ""), vec!["get = \"/a/a+b%26c\""], ""),
        (
            ask("/x", "", &regex("id", "id=(.+?);", &first)) + &ask("/a?q=${__urlencode(${id})}", "", ""),
            vec!["get = \"/a?q={{ id | url }}\""],
            "",
        ),
        // The request in a JMeter once-only controller is sent once in each iteration of the thread
        // group, not in each pass of the loop.
        (
            element("LoopController", &times, &(once("/once") + &ask("/l", "", ""))),
            vec![
                "get = \"/once\"\non_fail = \"continue\"\n\n[[scenario.step]]\nname = \"LoopController\"\ntimes = 3\n",
            ],
            "",
        ),
        (
            element("LoopController", &times, &(ask("/l", "", "") + &once("/once"))),
            vec![
                "get = \"/once\"\non_fail = \"continue\"\n\n[[scenario.step]]\nname = \"LoopController\"\ntimes = 3\n",
            ],
            "the steps of this loop that run once are executed before its other steps",
        ),
        (once("/once") + &ask("/a", "", ""), vec!["once = true"], ""),
        (ask("/a", "", "") + &ask("/b", "", ""), vec!["cookies = false\n\n[[scenario.step]]", "get = \"/b\""], ""),
        (
            headers(&[("A", "0"), ("B", "1"), ("B", "2")]) + &ask("/a", "", &headers(&[("a", "3")])),
            vec!["headers = { B = [\"1\", \"2\"], a = \"3\" }"],
            "",
        ),
        (
            ask("/a", "", &regex("id", "id=(.+?);", &all))
                + &element("ForeachController", &each, &ask("/b/${one}/${id_1}", "", "")),
            vec!["id_1 = { from = \"regex:id=(.+?);\"", "get = \"/b/{{ id }}/{{ id_1 }}\""],
            "the JMeter extractor takes all matches",
        ),
        (
            ask("/a", "", &regex("id", "Location: .*/(\\\\d+)", &of_headers)) + &ask("${id}/x", "", ""),
            vec!["header:Location regex:^(?:.*/(\\\\d+))", "default = \"${id}\"", "get = \"{{ id }}/x\""],
            "",
        ),
        (ask("/a", "", &regex("id", "(a)(b)", &second)), vec!["from = \"regex:(?:a)(b)\", default = \"none\""], ""),
        (ask("/a", &property("HTTPSampler.proxyHost", "p"), ""), vec!["get = \"/a\""], "HTTPSampler.proxyHost = p"),
        (
            ask("/a", &property("HTTPSampler.connect_timeout", "500"), ""),
            vec!["get = \"/a\""],
            "HTTPSampler.connect_timeout = 500",
        ),
        (defaults("HTTPSampler.proxyHost", "p") + &ask("/a", "", ""), vec!["get = \"/a\""], "proxyHost = p"),
        (
            defaults("HTTPSampler.image_parser", "true") + &ask("/a", "", ""),
            vec!["get = \"/a\""],
            "resources embedded in pages",
        ),
        (ask("/a", "", &boundary("0")), vec!["t = { from"], "the JMeter extractor takes a random match"),
        (ask("/a", "", &boundary("-1")), vec!["t_1 = { from", "t = { from"], "the JMeter extractor takes all matches"),
        (ask("/a", "", &boundary("2")), vec!["get = \"/a\""], "it takes a match after the first match"),
        (
            ask("/a", &property("HTTPSampler.contentEncoding", "UTF-16"), ""),
            vec![],
            "HTTPSampler.contentEncoding = UTF-16",
        ),
        (
            ask("/a?x=${__RandomString(3,ab)}", "", ""),
            vec!["{{ text(3)"],
            "the function __RandomString draws letters and digits",
        ),
        (
            element("DNSCacheManager", "<boolProp name='DNSCacheManager.isCustomResolver'>true</boolProp>", "")
                + &element("DNSCacheManager", "", "")
                + &ask("/a", "", ""),
            vec!["get = \"/a\""],
            "DNSCacheManager",
        ),
        (ask("/a?${never}", "", ""), vec!["{{ env.never }}"], "nothing sets the variable never"),
    ] {
        assert_import_contains(import_jmx, &plan(&inside), &parts, left_out);
    }
    let kept = element("CookieManager", "", "") + &ask("/a", "", "") + &ask("/b", "", "");
    let kept = import_jmx(&plan(&kept)).expect("a plan");
    assert!(!kept.text.contains("cookies ="), "{}", kept.text);
    assert!(!kept.left_out.iter().any(|left| left.text.contains("Cookie")), "{:?}", kept.left_out);
}

#[test]
fn collection_variables_are_substituted_as_in_postman() {
    let collection = |variables: &str, request: &str, more: &str| {
        format!("{{\"variable\": [{variables}], \"item\": [{{\"name\": \"a\", \"request\": {request}{more}}}]}}")
    };
    let of_path = |path: &str| {
        let variables = r#"{"key": "id", "value": "1"}, {"key": "id", "value": "2"}, {"key": "none", "value": ""}"#;
        format!("{{\"url\": {{\"raw\": \"http://h{path}\", \"variable\": [{variables}]}}}}")
    };
    let twice =
        r#"{"key": "x", "value": "1"}, {"key": "x", "value": "2"}, {"key": "x", "value": "3", "disabled": true}"#;
    let plain = r#""http://h/a""#;
    for (source, part) in [
        // If several Postman variables have the same name, the last enabled variable determines the
        // value.
        (collection(twice, r#""http://h/{{x}}""#, ""), "get = \"/2\""),
        (collection("", &of_path("/:id/:id.json/:none/:other"), ""), "get = \"/2/2.json/:none/:other\""),
        (collection("", plain, ""), "follow = 10"),
        (collection("", plain, r#", "protocolProfileBehavior": {"maxRedirects": 3}"#), "follow = 3"),
    ] {
        assert_import_contains(import_postman, &source, &[part], "");
    }
    for more in [r#"{"followRedirects": false}"#, r#"{"maxRedirects": 0}"#] {
        let source = collection("", plain, &format!(", \"protocolProfileBehavior\": {more}"));
        let imported = import_postman(&source).expect(more);
        assert!(!imported.text.contains("follow ="), "{}", imported.text);
    }
}

#[test]
fn recordings_keep_the_recorded_body() {
    let asked = |data: &str| {
        format!(
            "{{\"log\": {{\"entries\": [{{\"request\": {{\"method\": \"POST\", \"url\": \"http://h/a\", \"headers\": [], \
             \"postData\": {{{data}}}}}, \"response\": {{\"status\": 200}}}}]}}}}"
        )
    };
    let bytes = |text: &str| format!(r#""mimeType": "text/plain", "encoding": "base64", "text": "{text}""#);
    let part = |value: &str| {
        format!(
            r#""mimeType": "multipart/form-data", "params": [{{"name": "f", "fileName": "C:\\\\a.csv", "contentType": "text/csv", "value": "{value}"}}]"#
        )
    };
    let file = "its form uploads the file a.csv: put this file beside the traffic file";
    for (data, parts, left_out) in [
        (bytes("aGVsbG8="), vec!["body = \"hello\""], ""),
        (bytes("//8="), vec!["post = \"/a\""], "its body is not text"),
        (bytes("no base64"), vec!["post = \"/a\""], "its body is not text"),
        (part("1,2"), vec!["text = \"1,2\"", "filename = \"a.csv\"", "type = \"text/csv\""], ""),
        (part(""), vec!["a.csv"], file),
        (part("(binary)"), vec!["a.csv"], file),
    ] {
        let said = import_har(&asked(&data), None).expect(&data).left_out;
        assert!(!left_out.is_empty() || said.is_empty(), "{data}: {said:?}");
        assert_import_contains(import_har_of_first_host, &asked(&data), &parts, left_out);
    }
}

/// Checks that parts beyond a limit are omitted with a note, and that the other parts are imported.
#[test]
fn parts_beyond_a_limit_are_omitted() {
    let listed = |count: usize, piece: &dyn Fn(usize) -> String| (0..count).map(piece).collect::<Vec<_>>().join(",");
    let line = |n: usize| format!("\"pm.environment.set('v{n}', pm.response.json().a{n});\"");
    let event =
        |count| format!("\"event\":[{{\"listen\":\"test\",\"script\":{{\"exec\":[{}]}}}}]", listed(count, &line));
    let collection = format!("{{\"item\":[{{\"name\":\"i\",{},\"request\":\"http://h/\"}}]}}", event(5_100));
    let made = import_postman(&collection).expect("a file");
    let is_noted =
        |made: &ImportResult, part: &str| made.left_out.iter().filter(|left| left.text.contains(part)).count();
    assert_eq!(is_noted(&made, "a scenario captures at most 5000 names"), 100);
    let entry = |n: usize| {
        format!(
            "{{\"startedDateTime\":\"2026-01-01T{:02}:{:02}:{:02}Z\",\"request\":{{\"url\":\"http://h/\"}}}}",
            n / 3_600,
            n / 60 % 60,
            n % 60
        )
    };
    let recording = format!("{{\"log\":{{\"entries\":[{}]}}}}", listed(6_000, &entry));
    let made = import_har(&recording, None).expect("a file");
    assert_eq!((made.requests, is_noted(&made, "steps beyond the first 10000")), (5_000, 1));
}
