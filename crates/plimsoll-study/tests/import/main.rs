//! Tests that every importer writes traffic files that plimsoll can read. The tests import random
//! documents in each format, with unusual texts in every field. Each imported traffic file is
//! parsed as in the command `check`, and converted to requests.

#![forbid(unsafe_code)]

use plimsoll_model::rng::Rng;
use plimsoll_study::file_traffic::plan_of;
use plimsoll_study::traffic_file;
use plimsoll_traffic::file::TrafficFileError;
use plimsoll_traffic::import::{self, ImportResult};
use serde_json::{Value, json};
use std::path::Path;

/// The formats that can be imported.
#[derive(Debug, Clone, Copy)]
enum ImportKind {
    Har,
    Openapi,
    Postman,
    Jmx,
}

fn imported(kind: ImportKind, text: &str, host: Option<&str>) -> Result<ImportResult, TrafficFileError> {
    match kind {
        ImportKind::Har => import::har(text, host),
        ImportKind::Openapi => import::openapi(text),
        ImportKind::Postman => import::postman(text),
        ImportKind::Jmx => import::jmx(text),
    }
}

/// The number of random documents for each format; `PROPTEST_CASES` overrides it.
const CASES: u64 = 1_000;

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn cases() -> u64 {
    from_environment("PROPTEST_CASES").unwrap_or(CASES)
}

/// Returns the first seed of the random documents, derived from `PROPTEST_RNG_SEED`; 0 if that
/// variable is not set.
fn seed_first() -> u64 {
    const APART: u64 = 1 << 32;
    from_environment("PROPTEST_RNG_SEED").unwrap_or(0).wrapping_mul(APART)
}

/// Unusual texts for the random documents. Some of the texts have a special meaning in one of the
/// import formats.
const ODD: [&str; 52] = [
    "",
    "a",
    "id",
    "7",
    "-1.50",
    "1e400",
    "true",
    "{{x}}",
    "{{ token }}",
    "{{$guid}}",
    "{{$randomName}}",
    "{{a b}}",
    "{{",
    "}}",
    "{{{x}}}",
    "${x}",
    "${token}",
    "${__P(a,1)}",
    "${__Random(1,9)}",
    "${__groovy(1)}",
    "${",
    ":id",
    "@file.txt",
    "@",
    "a b",
    "\u{fc}\u{2603}",
    "line\nbreak",
    "cr\r\nlf",
    "tab\t",
    "\"quoted\"",
    "it's",
    "'''",
    "\"\"\"",
    "back\\slash",
    "\u{200b}",
    "\u{7f}",
    "\u{1}",
    "http://127.0.0.1/a",
    "https://other.example:8443",
    "//",
    "?q=1",
    "#top",
    "regex:(",
    "$.a[0]",
    "$..",
    "(",
    "a=b&c=d",
    "a;b",
    "text/plain",
    "application/json",
    "[1, 2]",
    "multipart/form-data; boundary=x",
];

struct Drawn(Rng);

impl Drawn {
    fn below(&mut self, most: usize) -> usize {
        self.0.below(most as u64) as usize
    }

    fn often(&mut self) -> bool {
        self.below(4) > 0
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn odd(&mut self) -> String {
        match self.below(3) {
            0 => format!("{}{}", self.one(&ODD), self.one(&ODD)),
            _ => self.one(&ODD).to_owned(),
        }
    }

    /// Usually returns one of the valid texts in `of`, and sometimes an unusual text.
    fn mostly(&mut self, of: &[&str]) -> String {
        if self.often() { self.one(of).to_owned() } else { self.odd() }
    }

    fn list<T>(&mut self, most: usize, mut make: impl FnMut(&mut Drawn) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }

    fn method(&mut self) -> String {
        self.mostly(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "PURGE", "CONNECT", "get"])
    }

    fn url(&mut self) -> String {
        let (path, query) = (self.odd(), self.odd());
        let host = self.mostly(&[
            "http://127.0.0.1:8001",
            "http://h",
            "{{base}}",
            "https://b\u{fc}cher.example",
            "http://h:99999",
        ]);
        if self.often() { format!("{host}/{path}?{query}") } else { self.odd() }
    }

    fn header(&mut self) -> (String, String) {
        let names = [
            "Accept",
            "X-Twice",
            "Content-Type",
            "Cookie",
            "Host",
            "Content-Length",
            "Transfer-Encoding",
            "Authorization",
        ];
        (self.mostly(&names), self.odd())
    }
}

fn postman(rng: &mut Drawn) -> String {
    fn part(rng: &mut Drawn) -> Value {
        let mut part = json!({ "key": rng.odd(), "value": rng.odd(), "type": rng.mostly(&["text", "file"]) });
        match rng.below(4) {
            0 => part["src"] = json!([rng.odd(), rng.odd()]),
            1 => part["src"] = json!(rng.odd()),
            _ => {}
        }
        if !rng.often() {
            part["contentType"] = json!(rng.odd());
        }
        part
    }
    fn item(rng: &mut Drawn, depth: usize) -> Value {
        if depth < 3 && rng.below(4) == 0 {
            return json!({ "name": rng.odd(), "item": rng.list(3, |rng| item(rng, depth + 1)) });
        }
        let body = match rng.below(6) {
            0 => {
                json!({ "mode": "raw", "raw": rng.odd(), "options": { "raw": { "language": rng.mostly(&["json", "xml"]) } } })
            }
            1 => json!({ "mode": "urlencoded", "urlencoded": rng.list(3, part) }),
            2 => json!({ "mode": "formdata", "formdata": rng.list(3, part) }),
            3 => json!({ "mode": "file", "file": { "src": rng.odd() } }),
            4 => json!({ "mode": "graphql", "graphql": { "query": rng.odd(), "variables": rng.odd() } }),
            _ => Value::Null,
        };
        let headers = rng.list(4, |rng| {
            let (key, value) = rng.header();
            json!({ "key": key, "value": value })
        });
        let auth = match rng.below(4) {
            0 => json!({ "type": "bearer", "bearer": [{ "key": "token", "value": rng.odd() }] }),
            1 => {
                json!({ "type": "basic", "basic": [{ "key": "username", "value": rng.odd() }, { "key": "password", "value": rng.odd() }] })
            }
            2 => {
                json!({ "type": "apikey", "apikey": [{ "key": "key", "value": rng.odd() }, { "key": "value", "value": rng.odd() },
                { "key": "in", "value": rng.mostly(&["query", "header"]) }] })
            }
            _ => Value::Null,
        };
        let script = match rng.below(4) {
            0 => format!(
                "pm.environment.set(\"{}\", pm.response.json().{});",
                rng.odd().replace(['"', '\n', '\r'], ""),
                rng.odd()
            ),
            1 => "pm.environment.set('token', pm.response.json().token); pm.response.to.have.status(201);".to_owned(),
            2 => format!("pm.globals.set('x', pm.response.headers.get('{}'))", rng.odd().replace('\'', "")),
            _ => String::new(),
        };
        json!({
            "name": rng.odd(),
            "request": { "method": rng.method(), "url": rng.url(), "header": headers, "body": body, "auth": auth },
            "event": [{ "listen": "test", "script": { "exec": [script] } }],
            "protocolProfileBehavior": { "disableBodyPruning": rng.often(), "maxRedirects": rng.below(30) },
        })
    }
    let variables = rng.list(2, |rng| json!({ "key": rng.mostly(&["base", "x"]), "value": rng.odd() }));
    let items: Vec<Value> = (0..=rng.below(4)).map(|_| item(rng, 0)).collect();
    json!({ "info": { "name": rng.odd() }, "item": items, "variable": variables }).to_string()
}

fn har(rng: &mut Drawn) -> String {
    let entry = |rng: &mut Drawn| {
        let headers = rng.list(4, |rng| {
            let (name, value) = rng.header();
            json!({ "name": name, "value": value })
        });
        let data = match rng.below(3) {
            0 => json!({ "mimeType": rng.mostly(&["application/json", "multipart/form-data"]), "text": rng.odd() }),
            1 => json!({
                "mimeType": rng.mostly(&["multipart/form-data", "application/x-www-form-urlencoded"]),
                "params": rng.list(3, |rng| {
                    let mut part = json!({ "name": rng.odd(), "value": rng.odd(), "contentType": rng.odd() });
                    if rng.below(3) == 0 {
                        part["fileName"] = json!(rng.odd());
                    }
                    part
                }),
            }),
            _ => Value::Null,
        };
        let url = if rng.often() { format!("http://127.0.0.1:8001/{}", rng.odd()) } else { rng.url() };
        let status = [200, 204, 302, 304, 404, 500, 999, 0][rng.below(8)];
        json!({
            "startedDateTime": format!("2025-10-10T10:00:{:02}.000Z", rng.below(60)),
            "time": rng.below(2_000),
            "request": { "method": rng.method(), "url": url, "headers": headers, "postData": data },
            "response": { "status": status, "headers": [], "content": {} },
        })
    };
    let entries: Vec<Value> = (0..=rng.below(4)).map(|_| entry(rng)).collect();
    json!({ "log": { "entries": entries, "pages": [{ "title": rng.odd() }] } }).to_string()
}

fn openapi(rng: &mut Drawn) -> String {
    fn schema(rng: &mut Drawn, depth: usize) -> Value {
        let kind = rng.mostly(&["string", "integer", "number", "boolean", "array", "object"]);
        let mut schema = json!({ "type": kind });
        match rng.below(12) {
            0 => schema["example"] = json!(rng.odd()),
            1 => schema["enum"] = json!([rng.odd(), rng.odd(), 7]),
            2 => schema["format"] = json!(rng.mostly(&["uuid", "date-time", "email", "binary", "uri"])),
            3 => (schema["minimum"], schema["multipleOf"]) = (json!(rng.below(100)), json!(rng.below(9))),
            4 => (schema["minLength"], schema["pattern"]) = (json!(rng.below(30)), json!(rng.odd())),
            5 => schema["default"] = json!(rng.odd()),
            6 => schema["const"] = json!([rng.odd()]),
            7 => schema = json!({ "$ref": "#/components/schemas/Cat" }),
            _ => {}
        }
        if depth < 3 {
            schema["items"] = self::openapi_schema(rng, depth);
            schema["properties"] =
                json!({ rng.odd(): self::openapi_schema(rng, depth), "b": self::openapi_schema(rng, depth) });
            if rng.below(5) == 0 {
                schema["oneOf"] = json!([self::openapi_schema(rng, depth), { "$ref": "#/components/schemas/Cat" }]);
                schema["discriminator"] =
                    json!({ "propertyName": rng.odd(), "mapping": { rng.odd(): "#/components/schemas/Cat" } });
            }
        }
        schema
    }
    fn openapi_schema_of(rng: &mut Drawn, depth: usize) -> Value {
        schema(rng, depth)
    }
    let parameter = |rng: &mut Drawn| {
        let mut parameter = json!({
            "name": rng.mostly(&["id", "q", "x"]),
            "in": rng.one(&["query", "path", "header", "cookie"]),
            "required": rng.often(),
            "style": rng.mostly(&["form", "simple", "label", "matrix", "deepObject", "spaceDelimited", "pipeDelimited"]),
            "explode": rng.often(),
            "schema": openapi_schema_of(rng, 0),
        });
        if rng.below(3) == 0 {
            parameter["example"] =
                [json!([rng.odd(), 2]), json!({ rng.odd(): rng.odd() }), json!(rng.odd())][rng.below(3)].clone();
        }
        parameter
    };
    let operation = |rng: &mut Drawn| {
        let kind =
            rng.mostly(&["application/json", "multipart/form-data", "application/x-www-form-urlencoded", "text/plain"]);
        json!({
            "operationId": rng.odd(),
            "parameters": rng.list(3, parameter),
            "requestBody": { "content": { kind: { "schema": openapi_schema_of(rng, 0) } } },
            "responses": { rng.mostly(&["200", "2xx", "default"]): {} },
            "security": [{ "key": [] }],
        })
    };
    let mut paths = serde_json::Map::new();
    for _ in 0..=rng.below(3) {
        let path = format!("/{}/{{id}}", rng.odd());
        paths.insert(path, json!({ rng.one(&["get", "post", "put", "delete", "head"]): operation(rng) }));
    }
    let server = rng.mostly(&["http://127.0.0.1:8001/v1", "/api", "https://h"]);
    json!({
        "openapi": "3.0.3",
        "info": { "title": rng.odd() },
        "servers": [{ "url": server }],
        "paths": paths,
        "components": {
            "schemas": { "Cat": { "type": "object", "properties": { "kind": { "type": "string" }, "name": openapi_schema_of(rng, 2) } } },
            "securitySchemes": { "key": { "type": "apiKey", "in": rng.one(&["query", "header", "cookie"]), "name": rng.odd() } },
        },
    })
    .to_string()
}

fn openapi_schema(rng: &mut Drawn, depth: usize) -> Value {
    match depth {
        0 | 1 => {
            json!({ "type": rng.mostly(&["string", "integer", "array"]), "items": { "type": "string" }, "example": rng.odd() })
        }
        _ => json!({ "type": "string" }),
    }
}

fn jmx(rng: &mut Drawn) -> String {
    fn text(text: &str) -> String {
        let plain = text.chars().filter(|c| !c.is_control() || "\n\t".contains(*c)).collect::<String>();
        plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    }
    fn prop(name: &str, value: &str) -> String {
        format!("<stringProp name=\"{name}\">{}</stringProp>", text(value))
    }
    fn all(rng: &mut Drawn, most: usize, make: impl FnMut(&mut Drawn) -> String) -> String {
        rng.list(most, make).concat()
    }
    fn element(rng: &mut Drawn, kind: &str, props: &str, below: &str) -> String {
        format!(
            "<{kind} testname=\"{}\">{props}</{kind}><hashTree>{below}</hashTree>",
            text(&rng.odd()).replace('\n', " ")
        )
    }
    fn check(rng: &mut Drawn) -> String {
        let props = match rng.below(5) {
            0 => {
                prop("RegexExtractor.refname", &rng.mostly(&["token", "x"]))
                    + &prop("RegexExtractor.regex", &rng.mostly(&["a(.*)", "Location: (.+)", "("]))
                    + &prop("RegexExtractor.template", "$1$")
                    + &prop("RegexExtractor.useHeaders", rng.one(&["false", "true"]))
                    + &prop("RegexExtractor.default", &rng.odd())
            }
            1 => {
                prop("JSONPostProcessor.referenceNames", &rng.mostly(&["token", "x;y"]))
                    + &prop("JSONPostProcessor.jsonPathExprs", &rng.mostly(&["$.a", "$.a;$..b", "$.["]))
                    + &prop("JSONPostProcessor.defaultValues", &rng.odd())
            }
            2 => {
                prop("BoundaryExtractor.refname", &rng.mostly(&["token"]))
                    + &prop("BoundaryExtractor.lboundary", &rng.odd())
                    + &prop("BoundaryExtractor.rboundary", &rng.odd())
            }
            3 => {
                prop(
                    "Assertion.test_field",
                    rng.one(&["Assertion.response_code", "Assertion.response_data", "Assertion.response_headers"]),
                ) + &prop("Assertion.test_type", rng.one(&["1", "2", "8", "16", "34"]))
                    + &format!(
                        "<collectionProp name=\"Asserion.test_strings\">{}</collectionProp>",
                        prop("1", &rng.mostly(&["200", "X-A: b"]))
                    )
            }
            _ => {
                prop("JSON_PATH", &rng.mostly(&["$.a"]))
                    + &prop("EXPECTED_VALUE", &rng.odd())
                    + &prop("JSONVALIDATION", "true")
            }
        };
        let kind =
            ["RegexExtractor", "JSONPostProcessor", "BoundaryExtractor", "ResponseAssertion", "JSONPathAssertion"];
        let kind = kind.into_iter().find(|kind| props.contains(&kind[..8])).unwrap_or("ResponseAssertion");
        let kind = if props.contains("JSON_PATH") {
            "JSONPathAssertion"
        } else if props.contains("Assertion.test") {
            "ResponseAssertion"
        } else {
            kind
        };
        element(rng, kind, &props, "")
    }
    fn sampler(rng: &mut Drawn) -> String {
        let argument = |rng: &mut Drawn| {
            let parts = prop("Argument.name", &rng.odd()) + &prop("Argument.value", &rng.odd());
            format!(
                "<elementProp name=\"a\">{parts}{}</elementProp>",
                prop("HTTPArgument.always_encode", rng.one(&["true", "false"]))
            )
        };
        let file = |rng: &mut Drawn| {
            let parts = prop("File.path", &rng.odd())
                + &prop("File.paramname", &rng.odd())
                + &prop("File.mimetype", &rng.odd());
            format!("<elementProp name=\"f\">{parts}</elementProp>")
        };
        let props = prop("HTTPSampler.domain", &rng.mostly(&["127.0.0.1", "", "${host}"]))
            + &prop("HTTPSampler.port", &rng.mostly(&["8001", "", "99999"]))
            + &prop("HTTPSampler.path", &rng.odd())
            + &prop("HTTPSampler.method", &rng.method())
            + &prop("HTTPSampler.postBodyRaw", rng.one(&["true", "false"]))
            + &prop("HTTPSampler.DO_MULTIPART_POST", rng.one(&["true", "false"]))
            + &format!("<collectionProp name=\"Arguments.arguments\">{}</collectionProp>", all(rng, 3, argument))
            + &format!("<collectionProp name=\"HTTPFileArgs.files\">{}</collectionProp>", all(rng, 2, file));
        let below = all(rng, 3, check);
        element(rng, "HTTPSamplerProxy", &props, &below)
    }
    fn step(rng: &mut Drawn, depth: usize) -> String {
        match rng.below(8) {
            0 if depth < 3 => {
                let props = prop("LoopController.loops", &rng.mostly(&["3", "0", "-1"]));
                let below = all(rng, 3, |rng| step(rng, depth + 1));
                element(rng, "LoopController", &props, &below)
            }
            1 if depth < 3 => {
                let props =
                    prop("IfController.condition", &rng.mostly(&["\"${token}\" != \"\"", "${x} == \"NOT_FOUND\""]));
                let below = all(rng, 3, |rng| step(rng, depth + 1));
                element(rng, "IfController", &props, &below)
            }
            2 => {
                let (name, value) = rng.header();
                let header = prop("Header.name", &name) + &prop("Header.value", &value);
                let props = format!(
                    "<collectionProp name=\"HeaderManager.headers\"><elementProp>{header}</elementProp></collectionProp>"
                );
                element(rng, "HeaderManager", &props, "")
            }
            3 => {
                let cookie = prop("Cookie.value", &rng.odd())
                    + &prop("Cookie.domain", &rng.mostly(&["127.0.0.1"]))
                    + &prop("Cookie.path", "/");
                let name = text(&rng.odd()).replace('\n', " ");
                let props = format!(
                    "<collectionProp name=\"CookieManager.cookies\"><elementProp name=\"{name}\">{cookie}</elementProp></collectionProp>"
                );
                element(rng, "CookieManager", &props, "")
            }
            4 => {
                let user = prop("Authorization.url", &rng.mostly(&["http://127.0.0.1:8001/", ""]))
                    + &prop("Authorization.username", &rng.odd())
                    + &prop("Authorization.password", &rng.odd());
                let props = format!(
                    "<collectionProp name=\"AuthManager.auth_list\"><elementProp>{user}</elementProp></collectionProp>"
                );
                element(rng, "AuthManager", &props, "")
            }
            5 => {
                let props = prop("ConstantTimer.delay", &rng.mostly(&["300", "-5", "${x}"]))
                    + &prop("RandomTimer.range", "100.0");
                let kind = rng.one(&["ConstantTimer", "UniformRandomTimer", "ConstantThroughputTimer"]);
                element(rng, kind, &props, "")
            }
            _ => sampler(rng),
        }
    }
    let mut groups = String::new();
    for _ in 0..=rng.below(2) {
        let kind = rng.one(&["ThreadGroup", "ThreadGroup", "SetupThreadGroup", "PostThreadGroup"]);
        let props = prop("ThreadGroup.num_threads", &rng.mostly(&["3", "0", "1"]))
            + &prop("ThreadGroup.ramp_time", &rng.mostly(&["0", "10"]))
            + &prop("LoopController.loops", &rng.mostly(&["1", "-1", "7"]))
            + &prop("ThreadGroup.scheduler", rng.one(&["true", "false"]))
            + &prop("ThreadGroup.duration", &rng.mostly(&["60", ""]))
            + &prop("ThreadGroup.on_sample_error", rng.one(&["continue", "stopthread"]));
        let below = all(rng, 5, |rng| step(rng, 0));
        groups.push_str(&element(rng, kind, &props, &below));
    }
    let variable = prop("Argument.name", &rng.mostly(&["x", "host"])) + &prop("Argument.value", &rng.odd());
    let variables =
        format!("<collectionProp name=\"Arguments.arguments\"><elementProp>{variable}</elementProp></collectionProp>");
    format!(
        "<jmeterTestPlan><hashTree><TestPlan>{variables}</TestPlan><hashTree>{groups}</hashTree></hashTree></jmeterTestPlan>"
    )
}

/// Returns a name for the first syntax that TOML 1.0 forbids: a line break in an inline table, or
/// an escape of newer TOML. An unterminated string is also reported. The result is `None` for valid
/// TOML 1.0.
fn newer_than_toml_1_0(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0usize);
    while at < bytes.len() {
        let rest = &text[at..];
        if let Some(quote) = ["'''", "\"\"\"", "'", "\""].into_iter().find(|quote| rest.starts_with(quote)) {
            let is_basic = quote.starts_with('"');
            at += quote.len();
            loop {
                let inner = &text[at..];
                if inner.is_empty() || (inner.starts_with('\n') && quote.len() == 1) {
                    return Some("a text without its end");
                }
                if inner.starts_with(quote) {
                    at += quote.len();
                    break;
                }
                if is_basic && inner.starts_with('\\') {
                    if !inner[1..].starts_with(['b', 't', 'n', 'f', 'r', '"', '\\', 'u', 'U', '\n']) {
                        return Some("an escape");
                    }
                    at += 1;
                }
                at += text[at..].chars().next().map_or(1, char::len_utf8);
            }
            continue;
        }
        match bytes[at] {
            b'#' if depth == 0 => at += rest.find('\n').unwrap_or(rest.len() - 1),
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b'\n' if depth > 0 => return Some("a line break in a table of one line"),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Imports a document and returns whether the resulting traffic file has requests. The error says
/// why the traffic file is invalid. Missing variables and files are not errors.
fn is_asked(kind: ImportKind, document: &str) -> Result<bool, String> {
    let made = match imported(kind, document, None) {
        Ok(made) => made,
        // The text `plimsoll cannot make a traffic file` means that the importer's own result is
        // invalid, not the imported document.
        Err(error) if error.text.contains("plimsoll cannot make a traffic file") => return Err(error.text),
        Err(_) => return Ok(false),
    };
    if let Some(what) = newer_than_toml_1_0(&made.text) {
        return Err(format!("{what}: {}", made.text));
    }
    let (file, _) = traffic_file::missing_inputs(&made.text, Path::new("/nowhere"))?;
    let (plan, _) = plan_of(&file, "imported", None, None).map_err(|failure| failure.to_string())?;
    traffic_file::check_encodable(&plan).map_err(|failure| failure.to_string())?;
    Ok(true)
}

#[test]
fn imported_files_parse_or_name_the_missing_parts() {
    type Draw = fn(&mut Drawn) -> String;
    let kinds: [(ImportKind, Draw); 4] = [
        (ImportKind::Postman, postman),
        (ImportKind::Har, har),
        (ImportKind::Openapi, openapi),
        (ImportKind::Jmx, jmx),
    ];
    for (kind, draw) in kinds {
        let (mut asked, mut refused) = (0, Vec::new());
        for seed in (0..cases()).map(|number| seed_first().wrapping_add(number)) {
            let document = draw(&mut Drawn(Rng::new(seed)));
            match is_asked(kind, &document) {
                Ok(is_asked) => asked += u64::from(is_asked),
                Err(why) => refused.push((seed, why)),
            }
        }
        assert!(refused.is_empty(), "{kind:?}: {} of {}: {refused:#?}", refused.len(), cases());
        // At least one in twenty documents must give a traffic file with requests.
        assert!(asked * 20 > cases(), "{kind:?}: {asked}");
    }
}

#[test]
fn syntax_newer_than_toml_1_0_is_detected() {
    for (text, expect) in [
        ("a = { b = 1 }\nc = '''\n{\n'''\n# {\n", None),
        ("a = {\n  b = 1\n}\n", Some("a line break in a table of one line")),
        ("a = \"\\e\"", Some("an escape")),
        ("a = \"\\u00e9\\\\\"", None),
    ] {
        assert_eq!(newer_than_toml_1_0(text), expect, "{text}");
    }
}
