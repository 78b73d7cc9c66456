//! Tests that every importer writes traffic files that plimsoll can read. The tests import random
//! documents in each format, with unusual texts in every field. Each imported traffic file is
//! parsed as in the command `check`, and converted to requests.

#![forbid(unsafe_code)]

use plimsoll_model::rng::Rng;
use plimsoll_study::file_traffic::plan_from_traffic_file;
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

fn import_document(kind: ImportKind, text: &str, host: Option<&str>) -> Result<ImportResult, TrafficFileError> {
    match kind {
        ImportKind::Har => import::import_har(text, host),
        ImportKind::Openapi => import::import_openapi(text),
        ImportKind::Postman => import::import_postman(text),
        ImportKind::Jmx => import::import_jmx(text),
    }
}

/// The default number of random documents for each format. The environment variable
/// `PROPTEST_CASES` sets another number.
const RANDOM_DOCUMENTS_DEFAULT: u64 = 1_000;

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn random_document_count() -> u64 {
    from_environment("PROPTEST_CASES").unwrap_or(RANDOM_DOCUMENTS_DEFAULT)
}

/// Returns the first seed of the random documents, derived from the environment variable
/// `PROPTEST_RNG_SEED`; 0 if the variable is not set.
fn seed_first() -> u64 {
    const SEED_DISTANCE: u64 = 1 << 32;
    from_environment("PROPTEST_RNG_SEED").unwrap_or(0).wrapping_mul(SEED_DISTANCE)
}

/// Unusual texts for the random documents. Some of the texts have a special meaning in one of the
/// import formats.
const UNUSUAL_TEXTS: [&str; 52] = [
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

struct RandomDocumentSource(Rng);

impl RandomDocumentSource {
    fn below(&mut self, most: usize) -> usize {
        self.0.uniform_below(most as u64) as usize
    }

    fn is_usually_true(&mut self) -> bool {
        self.below(4) > 0
    }

    fn pick_text<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn unusual_text(&mut self) -> String {
        match self.below(3) {
            0 => format!("{}{}", self.pick_text(&UNUSUAL_TEXTS), self.pick_text(&UNUSUAL_TEXTS)),
            _ => self.pick_text(&UNUSUAL_TEXTS).to_owned(),
        }
    }

    /// Usually returns one of the valid texts in `of`, and sometimes an unusual text.
    fn usually_valid_text(&mut self, of: &[&str]) -> String {
        if self.is_usually_true() { self.pick_text(of).to_owned() } else { self.unusual_text() }
    }

    fn random_list<T>(&mut self, most: usize, mut make: impl FnMut(&mut RandomDocumentSource) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }

    fn random_http_method(&mut self) -> String {
        self.usually_valid_text(&[
            "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "PURGE", "CONNECT", "get",
        ])
    }

    fn random_url(&mut self) -> String {
        let (path, query) = (self.unusual_text(), self.unusual_text());
        let host = self.usually_valid_text(&[
            "http://127.0.0.1:8001",
            "http://h",
            "{{base}}",
            "https://b\u{fc}cher.example",
            "http://h:99999",
        ]);
        if self.is_usually_true() { format!("{host}/{path}?{query}") } else { self.unusual_text() }
    }

    fn random_header(&mut self) -> (String, String) {
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
        (self.usually_valid_text(&names), self.unusual_text())
    }
}

fn random_postman_collection(rng: &mut RandomDocumentSource) -> String {
    fn random_form_part(rng: &mut RandomDocumentSource) -> Value {
        let mut part = json!({ "key": rng.unusual_text(), "value": rng.unusual_text(), "type": rng.usually_valid_text(&["text", "file"]) });
        match rng.below(4) {
            0 => part["src"] = json!([rng.unusual_text(), rng.unusual_text()]),
            1 => part["src"] = json!(rng.unusual_text()),
            _ => {}
        }
        if !rng.is_usually_true() {
            part["contentType"] = json!(rng.unusual_text());
        }
        part
    }
    fn random_postman_item(rng: &mut RandomDocumentSource, depth: usize) -> Value {
        if depth < 3 && rng.below(4) == 0 {
            return json!({ "name": rng.unusual_text(), "item": rng.random_list(3, |rng| random_postman_item(rng, depth + 1)) });
        }
        let body = match rng.below(6) {
            0 => {
                json!({ "mode": "raw", "raw": rng.unusual_text(), "options": { "raw": { "language": rng.usually_valid_text(&["json", "xml"]) } } })
            }
            1 => json!({ "mode": "urlencoded", "urlencoded": rng.random_list(3, random_form_part) }),
            2 => json!({ "mode": "formdata", "formdata": rng.random_list(3, random_form_part) }),
            3 => json!({ "mode": "file", "file": { "src": rng.unusual_text() } }),
            4 => {
                json!({ "mode": "graphql", "graphql": { "query": rng.unusual_text(), "variables": rng.unusual_text() } })
            }
            _ => Value::Null,
        };
        let headers = rng.random_list(4, |rng| {
            let (key, value) = rng.random_header();
            json!({ "key": key, "value": value })
        });
        let auth = match rng.below(4) {
            0 => json!({ "type": "bearer", "bearer": [{ "key": "token", "value": rng.unusual_text() }] }),
            1 => {
                json!({ "type": "basic", "basic": [{ "key": "username", "value": rng.unusual_text() }, { "key": "password", "value": rng.unusual_text() }] })
            }
            2 => {
                json!({ "type": "apikey", "apikey": [{ "key": "key", "value": rng.unusual_text() }, { "key": "value", "value": rng.unusual_text() },
                { "key": "in", "value": rng.usually_valid_text(&["query", "header"]) }] })
            }
            _ => Value::Null,
        };
        let script = match rng.below(4) {
            0 => format!(
                "pm.environment.set(\"{}\", pm.response.json().{});",
                rng.unusual_text().replace(['"', '\n', '\r'], ""),
                rng.unusual_text()
            ),
            1 => "pm.environment.set('token', pm.response.json().token); pm.response.to.have.status(201);".to_owned(),
            2 => format!("pm.globals.set('x', pm.response.headers.get('{}'))", rng.unusual_text().replace('\'', "")),
            _ => String::new(),
        };
        json!({
            "name": rng.unusual_text(),
            "request": { "method": rng.random_http_method(), "url": rng.random_url(), "header": headers, "body": body, "auth": auth },
            "event": [{ "listen": "test", "script": { "exec": [script] } }],
            "protocolProfileBehavior": { "disableBodyPruning": rng.is_usually_true(), "maxRedirects": rng.below(30) },
        })
    }
    let variables =
        rng.random_list(2, |rng| json!({ "key": rng.usually_valid_text(&["base", "x"]), "value": rng.unusual_text() }));
    let items: Vec<Value> = (0..=rng.below(4)).map(|_| random_postman_item(rng, 0)).collect();
    json!({ "info": { "name": rng.unusual_text() }, "item": items, "variable": variables }).to_string()
}

fn random_har(rng: &mut RandomDocumentSource) -> String {
    let entry = |rng: &mut RandomDocumentSource| {
        let headers = rng.random_list(4, |rng| {
            let (name, value) = rng.random_header();
            json!({ "name": name, "value": value })
        });
        let data = match rng.below(3) {
            0 => {
                json!({ "mimeType": rng.usually_valid_text(&["application/json", "multipart/form-data"]), "text": rng.unusual_text() })
            }
            1 => json!({
                "mimeType": rng.usually_valid_text(&["multipart/form-data", "application/x-www-form-urlencoded"]),
                "params": rng.random_list(3, |rng| {
                    let mut part = json!({ "name": rng.unusual_text(), "value": rng.unusual_text(), "contentType": rng.unusual_text() });
                    if rng.below(3) == 0 {
                        part["fileName"] = json!(rng.unusual_text());
                    }
                    part
                }),
            }),
            _ => Value::Null,
        };
        let url = if rng.is_usually_true() {
            format!("http://127.0.0.1:8001/{}", rng.unusual_text())
        } else {
            rng.random_url()
        };
        let status = [200, 204, 302, 304, 404, 500, 999, 0][rng.below(8)];
        json!({
            "startedDateTime": format!("2025-10-10T10:00:{:02}.000Z", rng.below(60)),
            "time": rng.below(2_000),
            "request": { "method": rng.random_http_method(), "url": url, "headers": headers, "postData": data },
            "response": { "status": status, "headers": [], "content": {} },
        })
    };
    let entries: Vec<Value> = (0..=rng.below(4)).map(|_| entry(rng)).collect();
    json!({ "log": { "entries": entries, "pages": [{ "title": rng.unusual_text() }] } }).to_string()
}

fn random_openapi(rng: &mut RandomDocumentSource) -> String {
    fn random_schema(rng: &mut RandomDocumentSource, depth: usize) -> Value {
        let kind = rng.usually_valid_text(&["string", "integer", "number", "boolean", "array", "object"]);
        let mut schema = json!({ "type": kind });
        match rng.below(12) {
            0 => schema["example"] = json!(rng.unusual_text()),
            1 => schema["enum"] = json!([rng.unusual_text(), rng.unusual_text(), 7]),
            2 => schema["format"] = json!(rng.usually_valid_text(&["uuid", "date-time", "email", "binary", "uri"])),
            3 => (schema["minimum"], schema["multipleOf"]) = (json!(rng.below(100)), json!(rng.below(9))),
            4 => (schema["minLength"], schema["pattern"]) = (json!(rng.below(30)), json!(rng.unusual_text())),
            5 => schema["default"] = json!(rng.unusual_text()),
            6 => schema["const"] = json!([rng.unusual_text()]),
            7 => schema = json!({ "$ref": "#/components/schemas/Cat" }),
            _ => {}
        }
        if depth < 3 {
            schema["items"] = self::openapi_schema(rng, depth);
            schema["properties"] =
                json!({ rng.unusual_text(): self::openapi_schema(rng, depth), "b": self::openapi_schema(rng, depth) });
            if rng.below(5) == 0 {
                schema["oneOf"] = json!([self::openapi_schema(rng, depth), { "$ref": "#/components/schemas/Cat" }]);
                schema["discriminator"] = json!({ "propertyName": rng.unusual_text(), "mapping": { rng.unusual_text(): "#/components/schemas/Cat" } });
            }
        }
        schema
    }
    fn openapi_schema_of(rng: &mut RandomDocumentSource, depth: usize) -> Value {
        random_schema(rng, depth)
    }
    let parameter = |rng: &mut RandomDocumentSource| {
        let mut parameter = json!({
            "name": rng.usually_valid_text(&["id", "q", "x"]),
            "in": rng.pick_text(&["query", "path", "header", "cookie"]),
            "required": rng.is_usually_true(),
            "style": rng.usually_valid_text(&["form", "simple", "label", "matrix", "deepObject", "spaceDelimited", "pipeDelimited"]),
            "explode": rng.is_usually_true(),
            "schema": openapi_schema_of(rng, 0),
        });
        if rng.below(3) == 0 {
            parameter["example"] = [
                json!([rng.unusual_text(), 2]),
                json!({ rng.unusual_text(): rng.unusual_text() }),
                json!(rng.unusual_text()),
            ][rng.below(3)]
            .clone();
        }
        parameter
    };
    let operation = |rng: &mut RandomDocumentSource| {
        let kind = rng.usually_valid_text(&[
            "application/json",
            "multipart/form-data",
            "application/x-www-form-urlencoded",
            "text/plain",
        ]);
        json!({
            "operationId": rng.unusual_text(),
            "parameters": rng.random_list(3, parameter),
            "requestBody": { "content": { kind: { "schema": openapi_schema_of(rng, 0) } } },
            "responses": { rng.usually_valid_text(&["200", "2xx", "default"]): {} },
            "security": [{ "key": [] }],
        })
    };
    let mut paths = serde_json::Map::new();
    for _ in 0..=rng.below(3) {
        let path = format!("/{}/{{id}}", rng.unusual_text());
        paths.insert(path, json!({ rng.pick_text(&["get", "post", "put", "delete", "head"]): operation(rng) }));
    }
    let server = rng.usually_valid_text(&["http://127.0.0.1:8001/v1", "/api", "https://h"]);
    json!({
        "openapi": "3.0.3",
        "info": { "title": rng.unusual_text() },
        "servers": [{ "url": server }],
        "paths": paths,
        "components": {
            "schemas": { "Cat": { "type": "object", "properties": { "kind": { "type": "string" }, "name": openapi_schema_of(rng, 2) } } },
            "securitySchemes": { "key": { "type": "apiKey", "in": rng.pick_text(&["query", "header", "cookie"]), "name": rng.unusual_text() } },
        },
    })
    .to_string()
}

fn openapi_schema(rng: &mut RandomDocumentSource, depth: usize) -> Value {
    match depth {
        0 | 1 => {
            json!({ "type": rng.usually_valid_text(&["string", "integer", "array"]), "items": { "type": "string" }, "example": rng.unusual_text() })
        }
        _ => json!({ "type": "string" }),
    }
}

fn random_jmx(rng: &mut RandomDocumentSource) -> String {
    fn escape_xml(text: &str) -> String {
        let plain = text.chars().filter(|c| !c.is_control() || "\n\t".contains(*c)).collect::<String>();
        plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    }
    fn string_property_xml(name: &str, value: &str) -> String {
        format!("<stringProp name=\"{name}\">{}</stringProp>", escape_xml(value))
    }
    fn random_elements_xml(
        rng: &mut RandomDocumentSource,
        most: usize,
        make: impl FnMut(&mut RandomDocumentSource) -> String,
    ) -> String {
        rng.random_list(most, make).concat()
    }
    fn element_xml(rng: &mut RandomDocumentSource, kind: &str, props: &str, below: &str) -> String {
        format!(
            "<{kind} testname=\"{}\">{props}</{kind}><hashTree>{below}</hashTree>",
            escape_xml(&rng.unusual_text()).replace('\n', " ")
        )
    }
    fn random_check_xml(rng: &mut RandomDocumentSource) -> String {
        let props = match rng.below(5) {
            0 => {
                string_property_xml("RegexExtractor.refname", &rng.usually_valid_text(&["token", "x"]))
                    + &string_property_xml(
                        "RegexExtractor.regex",
                        &rng.usually_valid_text(&["a(.*)", "Location: (.+)", "("]),
                    )
                    + &string_property_xml("RegexExtractor.template", "$1$")
                    + &string_property_xml("RegexExtractor.useHeaders", rng.pick_text(&["false", "true"]))
                    + &string_property_xml("RegexExtractor.default", &rng.unusual_text())
            }
            1 => {
                string_property_xml("JSONPostProcessor.referenceNames", &rng.usually_valid_text(&["token", "x;y"]))
                    + &string_property_xml(
                        "JSONPostProcessor.jsonPathExprs",
                        &rng.usually_valid_text(&["$.a", "$.a;$..b", "$.["]),
                    )
                    + &string_property_xml("JSONPostProcessor.defaultValues", &rng.unusual_text())
            }
            2 => {
                string_property_xml("BoundaryExtractor.refname", &rng.usually_valid_text(&["token"]))
                    + &string_property_xml("BoundaryExtractor.lboundary", &rng.unusual_text())
                    + &string_property_xml("BoundaryExtractor.rboundary", &rng.unusual_text())
            }
            3 => {
                string_property_xml(
                    "Assertion.test_field",
                    rng.pick_text(&[
                        "Assertion.response_code",
                        "Assertion.response_data",
                        "Assertion.response_headers",
                    ]),
                ) + &string_property_xml("Assertion.test_type", rng.pick_text(&["1", "2", "8", "16", "34"]))
                    + &format!(
                        "<collectionProp name=\"Asserion.test_strings\">{}</collectionProp>",
                        string_property_xml("1", &rng.usually_valid_text(&["200", "X-A: b"]))
                    )
            }
            _ => {
                string_property_xml("JSON_PATH", &rng.usually_valid_text(&["$.a"]))
                    + &string_property_xml("EXPECTED_VALUE", &rng.unusual_text())
                    + &string_property_xml("JSONVALIDATION", "true")
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
        element_xml(rng, kind, &props, "")
    }
    fn random_sampler_xml(rng: &mut RandomDocumentSource) -> String {
        let argument = |rng: &mut RandomDocumentSource| {
            let parts = string_property_xml("Argument.name", &rng.unusual_text())
                + &string_property_xml("Argument.value", &rng.unusual_text());
            format!(
                "<elementProp name=\"a\">{parts}{}</elementProp>",
                string_property_xml("HTTPArgument.always_encode", rng.pick_text(&["true", "false"]))
            )
        };
        let file = |rng: &mut RandomDocumentSource| {
            let parts = string_property_xml("File.path", &rng.unusual_text())
                + &string_property_xml("File.paramname", &rng.unusual_text())
                + &string_property_xml("File.mimetype", &rng.unusual_text());
            format!("<elementProp name=\"f\">{parts}</elementProp>")
        };
        let props = string_property_xml("HTTPSampler.domain", &rng.usually_valid_text(&["127.0.0.1", "", "${host}"]))
            + &string_property_xml("HTTPSampler.port", &rng.usually_valid_text(&["8001", "", "99999"]))
            + &string_property_xml("HTTPSampler.path", &rng.unusual_text())
            + &string_property_xml("HTTPSampler.method", &rng.random_http_method())
            + &string_property_xml("HTTPSampler.postBodyRaw", rng.pick_text(&["true", "false"]))
            + &string_property_xml("HTTPSampler.DO_MULTIPART_POST", rng.pick_text(&["true", "false"]))
            + &format!(
                "<collectionProp name=\"Arguments.arguments\">{}</collectionProp>",
                random_elements_xml(rng, 3, argument)
            )
            + &format!(
                "<collectionProp name=\"HTTPFileArgs.files\">{}</collectionProp>",
                random_elements_xml(rng, 2, file)
            );
        let below = random_elements_xml(rng, 3, random_check_xml);
        element_xml(rng, "HTTPSamplerProxy", &props, &below)
    }
    fn random_step_xml(rng: &mut RandomDocumentSource, depth: usize) -> String {
        match rng.below(8) {
            0 if depth < 3 => {
                let props = string_property_xml("LoopController.loops", &rng.usually_valid_text(&["3", "0", "-1"]));
                let below = random_elements_xml(rng, 3, |rng| random_step_xml(rng, depth + 1));
                element_xml(rng, "LoopController", &props, &below)
            }
            1 if depth < 3 => {
                let props = string_property_xml(
                    "IfController.condition",
                    &rng.usually_valid_text(&["\"${token}\" != \"\"", "${x} == \"NOT_FOUND\""]),
                );
                let below = random_elements_xml(rng, 3, |rng| random_step_xml(rng, depth + 1));
                element_xml(rng, "IfController", &props, &below)
            }
            2 => {
                let (name, value) = rng.random_header();
                let header = string_property_xml("Header.name", &name) + &string_property_xml("Header.value", &value);
                let props = format!(
                    "<collectionProp name=\"HeaderManager.headers\"><elementProp>{header}</elementProp></collectionProp>"
                );
                element_xml(rng, "HeaderManager", &props, "")
            }
            3 => {
                let cookie = string_property_xml("Cookie.value", &rng.unusual_text())
                    + &string_property_xml("Cookie.domain", &rng.usually_valid_text(&["127.0.0.1"]))
                    + &string_property_xml("Cookie.path", "/");
                let name = escape_xml(&rng.unusual_text()).replace('\n', " ");
                let props = format!(
                    "<collectionProp name=\"CookieManager.cookies\"><elementProp name=\"{name}\">{cookie}</elementProp></collectionProp>"
                );
                element_xml(rng, "CookieManager", &props, "")
            }
            4 => {
                let user =
                    string_property_xml("Authorization.url", &rng.usually_valid_text(&["http://127.0.0.1:8001/", ""]))
                        + &string_property_xml("Authorization.username", &rng.unusual_text())
                        + &string_property_xml("Authorization.password", &rng.unusual_text());
                let props = format!(
                    "<collectionProp name=\"AuthManager.auth_list\"><elementProp>{user}</elementProp></collectionProp>"
                );
                element_xml(rng, "AuthManager", &props, "")
            }
            5 => {
                let props = string_property_xml("ConstantTimer.delay", &rng.usually_valid_text(&["300", "-5", "${x}"]))
                    + &string_property_xml("RandomTimer.range", "100.0");
                let kind = rng.pick_text(&["ConstantTimer", "UniformRandomTimer", "ConstantThroughputTimer"]);
                element_xml(rng, kind, &props, "")
            }
            _ => random_sampler_xml(rng),
        }
    }
    let mut groups = String::new();
    for _ in 0..=rng.below(2) {
        let kind = rng.pick_text(&["ThreadGroup", "ThreadGroup", "SetupThreadGroup", "PostThreadGroup"]);
        let props = string_property_xml("ThreadGroup.num_threads", &rng.usually_valid_text(&["3", "0", "1"]))
            + &string_property_xml("ThreadGroup.ramp_time", &rng.usually_valid_text(&["0", "10"]))
            + &string_property_xml("LoopController.loops", &rng.usually_valid_text(&["1", "-1", "7"]))
            + &string_property_xml("ThreadGroup.scheduler", rng.pick_text(&["true", "false"]))
            + &string_property_xml("ThreadGroup.duration", &rng.usually_valid_text(&["60", ""]))
            + &string_property_xml("ThreadGroup.on_sample_error", rng.pick_text(&["continue", "stopthread"]));
        let below = random_elements_xml(rng, 5, |rng| random_step_xml(rng, 0));
        groups.push_str(&element_xml(rng, kind, &props, &below));
    }
    let variable = string_property_xml("Argument.name", &rng.usually_valid_text(&["x", "host"]))
        + &string_property_xml("Argument.value", &rng.unusual_text());
    let variables =
        format!("<collectionProp name=\"Arguments.arguments\"><elementProp>{variable}</elementProp></collectionProp>");
    format!(
        "<jmeterTestPlan><hashTree><TestPlan>{variables}</TestPlan><hashTree>{groups}</hashTree></hashTree></jmeterTestPlan>"
    )
}

/// Returns a name for the first syntax that TOML 1.0 forbids: a line break in an inline table, or
/// an escape of newer TOML. An unterminated string is also reported. Returns `None` for valid TOML
/// 1.0.
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
fn import_gives_requests(kind: ImportKind, document: &str) -> Result<bool, String> {
    let made = match import_document(kind, document, None) {
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
    let (plan, _) = plan_from_traffic_file(&file, "imported", None, None).map_err(|failure| failure.to_string())?;
    traffic_file::check_encodable(&plan).map_err(|failure| failure.to_string())?;
    Ok(true)
}

#[test]
fn imported_files_parse_or_name_the_missing_parts() {
    type Draw = fn(&mut RandomDocumentSource) -> String;
    let kinds: [(ImportKind, Draw); 4] = [
        (ImportKind::Postman, random_postman_collection),
        (ImportKind::Har, random_har),
        (ImportKind::Openapi, random_openapi),
        (ImportKind::Jmx, random_jmx),
    ];
    for (kind, draw) in kinds {
        let (mut asked, mut refused) = (0, Vec::new());
        for seed in (0..random_document_count()).map(|number| seed_first().wrapping_add(number)) {
            let document = draw(&mut RandomDocumentSource(Rng::new(seed)));
            match import_gives_requests(kind, &document) {
                Ok(is_asked) => asked += u64::from(is_asked),
                Err(why) => refused.push((seed, why)),
            }
        }
        assert!(refused.is_empty(), "{kind:?}: {} of {}: {refused:#?}", refused.len(), random_document_count());
        // At least one in twenty documents must give a traffic file with requests.
        assert!(asked * 20 > random_document_count(), "{kind:?}: {asked}");
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
