//! Tests how the cost of parsing traffic files, JMeter test plans, Postman collections, HAR
//! recordings and curl command lines grows with their size.

use super::{Shape, listed, pieces, product, shape, text};
use plimsoll_traffic::file::{FileContext, TrafficFile, TrafficFormat};
use plimsoll_traffic::import::{curl, har, jmx, postman};

/// A file context (a parser's access to files and variables) in which every file and variable
/// exists.
struct Everything;

impl FileContext for Everything {
    fn file(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(vec![0; 100])
    }

    /// Returns data rows whose number or columns the path states: `columns-N` and `json-N` have N
    /// columns, `rows-N` has N rows.
    fn rows(&mut self, path: &str) -> Result<String, String> {
        let (kind, count) = path.split_once('-').unwrap_or(("", "0"));
        let count: usize = count.parse().unwrap_or(0);
        Ok(match kind {
            "columns" => format!("{}\n{}\n", listed(count, |n| format!("c{n}")), listed(count, |_| "1".into())),
            "json" => {
                let line = format!("{{{}}}\n", listed(count, |n| format!("\"c{n}\":{n}")));
                line.repeat(2)
            }
            "rows" => format!("a,b\n{}", "1,\"x\"\"y\"\n".repeat(count)),
            _ => "c\n1\n".to_owned(),
        })
    }

    fn pattern(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn variable(&mut self, _: &str) -> Option<String> {
        Some("x".to_owned())
    }
}

fn read_jmx(input: &[u8]) -> Result<(), String> {
    jmx(text(input)).map(drop).map_err(|error| error.to_string())
}

fn read_postman(input: &[u8]) -> Result<(), String> {
    postman(text(input)).map(drop).map_err(|error| error.to_string())
}

fn read_har(input: &[u8]) -> Result<(), String> {
    har(text(input), None).map(drop).map_err(|error| error.to_string())
}

fn read_curl(input: &[u8]) -> Result<(), String> {
    let words = curl::words(text(input)).map_err(|error| error.to_string())?;
    curl::CurlRequest::read(&words).map(drop).map_err(|error| error.to_string())
}

fn read_traffic(input: &[u8], format: TrafficFormat) -> Result<(), String> {
    TrafficFile::read(text(input), format, &mut Everything).map(drop).map_err(|error| error.to_string())
}

fn read_toml(input: &[u8]) -> Result<(), String> {
    read_traffic(input, TrafficFormat::Toml)
}

fn read_yaml(input: &[u8]) -> Result<(), String> {
    read_traffic(input, TrafficFormat::Yaml)
}

fn read_json(input: &[u8]) -> Result<(), String> {
    read_traffic(input, TrafficFormat::Json)
}

mod xml {
    use super::super::pieces;

    pub fn plan(inside: &str) -> Vec<u8> {
        format!("<jmeterTestPlan><hashTree>{inside}</hashTree></jmeterTestPlan>").into_bytes()
    }

    pub fn property(name: &str, text: &str) -> String {
        format!("<stringProp name='{name}'>{text}</stringProp>")
    }

    pub fn group(inside: &str) -> String {
        format!("<ThreadGroup testname='g'/><hashTree>{inside}</hashTree>")
    }

    pub fn sampler(number: usize, path: &str, own: &str, below: &str) -> String {
        format!(
            "<HTTPSamplerProxy testname='s{number}'>{}{}{own}</HTTPSamplerProxy><hashTree>{below}</hashTree>",
            property("HTTPSampler.domain", "h"),
            property("HTTPSampler.path", path)
        )
    }

    pub fn samplers(count: usize) -> String {
        pieces(count, |n| sampler(n, "/a", "", ""))
    }

    /// Returns a JMeter property with a collection of `count` elements.
    pub fn collection(name: &str, count: usize, element: impl Fn(usize) -> String) -> String {
        let elements = pieces(count, |n| format!("<elementProp name='n{n}'>{}</elementProp>", element(n)));
        format!("<collectionProp name='{name}'>{elements}</collectionProp>")
    }

    pub fn manager(kind: &str, name: &str, count: usize, element: impl Fn(usize) -> String) -> String {
        format!("<{kind}>{}</{kind}><hashTree/>", collection(name, count, element))
    }

    pub fn cookies(count: usize) -> String {
        manager("CookieManager", "CookieManager.cookies", count, |_| {
            property("Cookie.value", "x") + &property("Cookie.domain", "h")
        })
    }

    pub fn headers(count: usize, value: impl Fn(usize) -> String) -> String {
        manager("HeaderManager", "HeaderManager.headers", count, |n| {
            property("Header.name", &format!("h{n}")) + &property("Header.value", &value(n))
        })
    }

    pub fn users(count: usize) -> String {
        manager("AuthManager", "AuthManager.auth_list", count, |n| {
            property("Authorization.url", &format!("http://h/{n}"))
                + &property("Authorization.username", "u")
                + &property("Authorization.password", "p")
        })
    }

    pub fn arguments(count: usize) -> String {
        collection("Arguments.arguments", count, |n| {
            property("Argument.name", &format!("a{n}")) + &property("Argument.value", "x")
        })
    }

    pub fn defaults(inside: &str) -> String {
        format!("<ConfigTestElement guiclass='HttpDefaultsGui'>{inside}</ConfigTestElement><hashTree/>")
    }

    pub fn variables(count: usize, value: impl Fn(usize) -> String) -> String {
        manager("Arguments", "Arguments.arguments", count, |n| {
            property("Argument.name", &format!("v{n}")) + &property("Argument.value", &value(n))
        })
    }

    pub fn extractor(number: usize) -> String {
        format!(
            "<RegexExtractor testname='e{number}'>{}{}{}</RegexExtractor><hashTree/>",
            property("RegexExtractor.refname", &format!("v{number}")),
            property("RegexExtractor.regex", "a(.)"),
            property("RegexExtractor.template", "$1$")
        )
    }
}

fn jmx_shapes() -> Vec<Shape> {
    vec![
        shape("JMX: cookies", read_jmx, 3_000, |n| xml::plan(&xml::group(&(xml::cookies(n) + &xml::samplers(1))))),
        product("JMX: cookies and samplers", read_jmx, 1_000, |n| {
            xml::plan(&xml::group(&(xml::cookies(n) + &xml::samplers(n))))
        }),
        product("JMX: cookies of another host and samplers", read_jmx, 1_000, |n| {
            let cookies =
                xml::manager("CookieManager", "CookieManager.cookies", n, |_| xml::property("Cookie.domain", "x"));
            xml::plan(&xml::group(&(cookies + &xml::samplers(n))))
        }),
        shape("JMX: headers", read_jmx, 3_000, |n| {
            xml::plan(&xml::group(&(xml::headers(n, |_| "x".into()) + &xml::samplers(1))))
        }),
        product("JMX: headers and samplers", read_jmx, 1_000, |n| {
            xml::plan(&xml::group(&(xml::headers(n, |_| "x".into()) + &xml::samplers(n))))
        }),
        shape("JMX: captured variables in headers", read_jmx, 1_000, |n| {
            let headers = xml::headers(n, |n| format!("${{v{n}}}"));
            let sampler = xml::sampler(0, "/a", "", &pieces(n, xml::extractor));
            xml::plan(&(headers + &xml::group(&sampler)))
        }),
        product("JMX: users and samplers", read_jmx, 1_000, |n| {
            xml::plan(&xml::group(&(xml::users(n) + &xml::samplers(n))))
        }),
        shape("JMX: samplers", read_jmx, 2_000, |n| xml::plan(&xml::group(&xml::samplers(n)))),
        shape("JMX: thread groups", read_jmx, 1_500, |n| xml::plan(&pieces(n, |_| xml::group(&xml::samplers(1))))),
        shape("JMX: thread groups with extractors", read_jmx, 1_000, |n| {
            xml::plan(&pieces(n, |n| xml::group(&xml::sampler(n, &format!("/${{v{n}}}"), "", &xml::extractor(n)))))
        }),
        shape("JMX: captured variables", read_jmx, 1_000, |n| {
            let first = xml::sampler(0, "/a", "", &pieces(n, xml::extractor));
            let uses = pieces(n, |n| format!("${{v{n}}}"));
            xml::plan(&xml::group(&(first + &xml::sampler(1, &format!("/{uses}"), "", ""))))
        }),
        shape("JMX: regular expressions", read_jmx, 30, |n| {
            let pattern = |n: usize| xml::extractor(n).replace("a(.)", &format!("(\\w{{{}}})", 500 + n));
            xml::plan(&xml::group(&xml::sampler(0, "/a", "", &pieces(n, pattern))))
        }),
        shape("JMX: variables", read_jmx, 2_000, |n| {
            let uses = pieces(n, |n| format!("${{v{n}}}"));
            let sampler = xml::sampler(0, &format!("/{uses}"), "", "");
            xml::plan(&(xml::variables(n, |_| "x".into()) + &xml::group(&sampler)))
        }),
        shape("JMX: unset variables", read_jmx, 2_000, |n| {
            let uses = pieces(n, |n| format!("${{v{n}}}"));
            xml::plan(&xml::group(&xml::sampler(0, &format!("/{uses}"), "", "")))
        }),
        product("JMX: a variable that names others", read_jmx, 1_000, |n| {
            let all = pieces(n, |n| format!("${{v{}}}", n + 1));
            let variables = xml::variables(n + 1, |n| if n == 0 { all.clone() } else { "x".into() });
            let samplers = pieces(n, |n| xml::sampler(n, "/${v0}", "", ""));
            xml::plan(&(variables + &xml::group(&samplers)))
        }),
        shape("JMX: arguments", read_jmx, 3_000, |n| {
            xml::plan(&xml::group(&xml::sampler(0, "/a", &xml::arguments(n), "")))
        }),
        shape("JMX: arguments and those of defaults", read_jmx, 2_000, |n| {
            let defaults = xml::defaults(&xml::arguments(n));
            xml::plan(&xml::group(&(defaults + &xml::sampler(0, "/a", &xml::arguments(n), ""))))
        }),
        product("JMX: arguments of defaults and samplers", read_jmx, 1_000, |n| {
            xml::plan(&xml::group(&(xml::defaults(&xml::arguments(n)) + &xml::samplers(n))))
        }),
        product("JMX: properties of defaults and samplers", read_jmx, 1_000, |n| {
            let properties = pieces(n, |n| xml::property(&format!("p{n}"), "x"));
            xml::plan(&xml::group(&(xml::defaults(&properties) + &xml::samplers(n))))
        }),
        product("JMX: defaults and samplers", read_jmx, 1_000, |n| {
            xml::plan(&xml::group(&(xml::defaults("").repeat(n) + &xml::samplers(n))))
        }),
        shape("JMX: assertions", read_jmx, 2_000, |n| {
            let assertion = xml::property("DurationAssertion.duration", "100");
            let assertions = format!("<DurationAssertion>{assertion}</DurationAssertion><hashTree/>").repeat(n);
            xml::plan(&xml::group(&xml::sampler(0, "/a", "", &assertions)))
        }),
        product("JMX: assertions and samplers", read_jmx, 1_000, |n| {
            let assertion = xml::property("DurationAssertion.duration", "100");
            let assertions = format!("<DurationAssertion>{assertion}</DurationAssertion><hashTree/>").repeat(n);
            xml::plan(&xml::group(&(assertions + &xml::samplers(n))))
        }),
        product("JMX: timers and samplers", read_jmx, 1_000, |n| {
            let delay = xml::property("ConstantTimer.delay", "100");
            let timers = format!("<ConstantTimer>{delay}</ConstantTimer><hashTree/>").repeat(n);
            xml::plan(&xml::group(&(timers + &xml::samplers(n))))
        }),
        shape("JMX: files of rows of one name", read_jmx, 1_500, |n| {
            let data = format!("<CSVDataSet>{}</CSVDataSet><hashTree/>", xml::property("filename", "u.csv"));
            xml::plan(&(data.repeat(n) + &xml::group(&xml::samplers(1))))
        }),
        shape("JMX: columns of a file of rows", read_jmx, 1_000, |n| {
            let (file, names) = (xml::property("filename", "u.csv"), listed(n, |n| format!("v{n}")));
            let data = format!("<CSVDataSet>{file}{}</CSVDataSet><hashTree/>", xml::property("variableNames", &names));
            let uses = pieces(n, |n| format!("${{v{n}}}"));
            xml::plan(&(data + &xml::group(&xml::sampler(0, &format!("/{uses}"), "", ""))))
        }),
        shape("JMX: conditions", read_jmx, 1_500, |n| {
            let condition = |n: usize| {
                let text = xml::property("IfController.condition", &format!("${{v{n}}} != \"\""));
                format!("<IfController testname='i'>{text}</IfController><hashTree>{}</hashTree>", xml::samplers(1))
            };
            xml::plan(&xml::group(&pieces(n, condition)))
        }),
        shape("JMX: functions", read_jmx, 2_000, |n| {
            xml::plan(&xml::group(&xml::sampler(0, &format!("/{}", "${__Random(1,${__P(n,9)})}".repeat(n)), "", "")))
        }),
        shape("JMX: a function that is not closed", read_jmx, 3_000, |n| {
            xml::plan(&xml::group(&xml::sampler(0, &format!("/{}", "${__a(".repeat(n)), "", "")))
        }),
        shape("JMX: uploads", read_jmx, 2_000, |n| {
            let files = xml::collection("HTTPFileArgs.files", n, |n| {
                xml::property("File.path", &format!("f{n}")) + &xml::property("File.paramname", "f")
            });
            let method = xml::property("HTTPSampler.method", "POST");
            xml::plan(&xml::group(&xml::sampler(0, "/a", &(method + &files), "")))
        }),
    ]
}

fn collection(inside: &str) -> Vec<u8> {
    format!("{{\"info\":{{\"name\":\"c\"}},{inside}}}").into_bytes()
}

fn postman_item(url: &str, more: &str) -> String {
    format!("{{\"name\":\"i\",\"request\":{{\"method\":\"POST\",\"url\":\"http://h/{url}\"{more}}}}}")
}

fn postman_test_script(lines: &str) -> String {
    format!("\"event\":[{{\"listen\":\"test\",\"script\":{{\"exec\":[{lines}]}}}}]")
}

fn postman_shapes() -> Vec<Shape> {
    vec![
        shape("Postman: requests", read_postman, 1_500, |n| {
            collection(&format!("\"item\":[{}]", listed(n, |_| postman_item("a", ""))))
        }),
        shape("Postman: headers", read_postman, 3_000, |n| {
            let headers = listed(n, |n| format!("{{\"key\":\"h{n}\",\"value\":\"x\"}}"));
            collection(&format!("\"item\":[{}]", postman_item("a", &format!(",\"header\":[{headers}]"))))
        }),
        shape("Postman: variables", read_postman, 2_000, |n| {
            let variables = listed(n, |n| format!("{{\"key\":\"v{n}\",\"value\":\"x\"}}"));
            let uses = pieces(n, |n| format!("{{{{v{n}}}}}"));
            collection(&format!("\"variable\":[{variables}],\"item\":[{}]", postman_item(&uses, "")))
        }),
        shape("Postman: unset variables", read_postman, 2_000, |n| {
            collection(&format!("\"item\":[{}]", postman_item(&pieces(n, |n| format!("{{{{v{n}}}}}")), "")))
        }),
        product("Postman: a variable that names others", read_postman, 1_000, |n| {
            let all = pieces(n, |n| format!("{{{{v{}}}}}", n + 1));
            let value = |n: usize| if n == 0 { all.clone() } else { "x".to_owned() };
            let variables = listed(n + 1, |n| format!("{{\"key\":\"v{n}\",\"value\":\"{}\"}}", value(n)));
            collection(&format!("\"variable\":[{variables}],\"item\":[{}]", listed(n, |_| postman_item("{{v0}}", ""))))
        }),
        shape("Postman: captures", read_postman, 1_000, |n| {
            let line = |n: usize| format!("\"pm.environment.set('v{n}', pm.response.json().a{n});\"");
            let uses = pieces(n, |n| format!("{{{{v{n}}}}}"));
            let first =
                format!("{{\"name\":\"i\",{},\"request\":\"http://h/\"}}", postman_test_script(&listed(n, line)));
            collection(&format!("\"item\":[{first},{}]", postman_item(&uses, "")))
        }),
        shape("Postman: requests that capture", read_postman, 1_000, |n| {
            let one = |n: usize| {
                let line = format!("\"pm.environment.set('v{n}', pm.response.json().a);\"");
                format!("{{\"name\":\"i\",{},\"request\":\"http://h/{{{{v{n}}}}}\"}}", postman_test_script(&line))
            };
            collection(&format!("\"item\":[{}]", listed(n, one)))
        }),
        shape("Postman: places that name each other", read_postman, 1_500, |n| {
            let line = |n: usize| format!("\"var x{} = x{n}.a;\"", n + 1);
            let lines = format!("\"var x0 = pm.response.json();\",{}", listed(n, line));
            collection(&format!(
                "\"item\":[{{\"name\":\"i\",{},\"request\":\"http://h/\"}}]",
                postman_test_script(&lines)
            ))
        }),
        shape("Postman: calls that are not closed", read_postman, 3_000, |n| {
            let lines = listed(n, |_| "\"pm.environment.set('v', (\"".to_owned());
            collection(&format!(
                "\"item\":[{{\"name\":\"i\",{},\"request\":\"http://h/\"}}]",
                postman_test_script(&lines)
            ))
        }),
        shape("Postman: path variables", read_postman, 2_000, |n| {
            let variables = listed(n, |n| format!("{{\"key\":\"v{n}\",\"value\":\"x\"}}"));
            let path = pieces(n, |n| format!("/:v{n}"));
            let url = format!("{{\"raw\":\"http://h{path}\",\"variable\":[{variables}]}}");
            collection(&format!("\"item\":[{{\"name\":\"i\",\"request\":{{\"url\":{url}}}}}]"))
        }),
        shape("Postman: fields of a form", read_postman, 2_000, |n| {
            let fields = listed(n, |n| format!("{{\"key\":\"k{n}\",\"value\":\"x\"}}"));
            let body = format!(",\"body\":{{\"mode\":\"urlencoded\",\"urlencoded\":[{fields}]}}");
            collection(&format!("\"item\":[{}]", postman_item("a", &body)))
        }),
        shape("Postman: parts of a form", read_postman, 2_000, |n| {
            let fields = listed(n, |n| format!("{{\"key\":\"k{n}\",\"type\":\"file\",\"src\":\"f{n}\"}}"));
            let body = format!(",\"body\":{{\"mode\":\"formdata\",\"formdata\":[{fields}]}}");
            collection(&format!("\"item\":[{}]", postman_item("a", &body)))
        }),
        product("Postman: parts of an authorization and requests", read_postman, 1_000, |n| {
            let parts = listed(n, |n| format!("{{\"key\":\"k{n}\",\"value\":\"x\"}}"));
            let auth = format!("\"auth\":{{\"type\":\"basic\",\"basic\":[{parts}]}}");
            collection(&format!("{auth},\"item\":[{}]", listed(n, |_| postman_item("a", ""))))
        }),
        product("Postman: a long token and requests", read_postman, 1_000, |n| {
            let token = format!("\"auth\":{{\"type\":\"bearer\",\"bearer\":{{\"token\":\"{}\"}}}}", "x".repeat(10 * n));
            collection(&format!("{token},\"item\":[{}]", listed(n, |_| postman_item("a", ""))))
        }),
        shape("Postman: events of a long name", read_postman, 1_500, |n| {
            let events = listed(n, |_| "{\"listen\":\"prerequest\",\"script\":{\"exec\":\"x\"}}".to_owned());
            let name = "n".repeat(10 * n);
            collection(&format!("\"item\":[{{\"name\":\"{name}\",\"event\":[{events}],\"request\":\"http://h/\"}}]"))
        }),
    ]
}

fn har_document(entries: &str) -> Vec<u8> {
    format!("{{\"log\":{{\"entries\":[{entries}]}}}}").into_bytes()
}

fn har_entry(url: &str, more: &str, response: &str) -> String {
    format!(
        "{{\"startedDateTime\":\"2026-01-01T00:00:00Z\",\"request\":{{\"method\":\"POST\",\"url\":\"http://h/{url}\"{more}}},\
         \"response\":{{\"status\":200{response}}}}}"
    )
}

fn har_shapes() -> Vec<Shape> {
    vec![
        shape("HAR: entries", read_har, 1_500, |n| har_document(&listed(n, |_| har_entry("a", "", "")))),
        shape("HAR: headers", read_har, 3_000, |n| {
            let headers = listed(n, |n| format!("{{\"name\":\"h{n}\",\"value\":\"x\"}}"));
            har_document(&har_entry("a", &format!(",\"headers\":[{headers}]"), ""))
        }),
        shape("HAR: headers of one name", read_har, 3_000, |n| {
            let headers = listed(n, |n| format!("{{\"name\":\"h\",\"value\":\"x{n}\"}}"));
            har_document(&har_entry("a", &format!(",\"headers\":[{headers}]"), ""))
        }),
        shape("HAR: cookies", read_har, 2_000, |n| {
            let cookies = (0..n).map(|n| format!("c{n}=x")).collect::<Vec<_>>().join(";");
            har_document(&har_entry(
                "a",
                &format!(",\"headers\":[{{\"name\":\"cookie\",\"value\":\"{cookies}\"}}]"),
                "",
            ))
        }),
        shape("HAR: fields of a form", read_har, 2_000, |n| {
            let fields = listed(n, |n| format!("{{\"name\":\"k{n}\",\"value\":\"x\"}}"));
            let data = format!(",\"postData\":{{\"mimeType\":\"multipart/form-data\",\"params\":[{fields}]}}");
            har_document(&har_entry("a", &data, ""))
        }),
        shape("HAR: files of a form and a long path", read_har, 2_000, |n| {
            let fields = listed(n, |n| format!("{{\"name\":\"k{n}\",\"fileName\":\"f{n}\"}}"));
            let data = format!(",\"postData\":{{\"mimeType\":\"multipart/form-data\",\"params\":[{fields}]}}");
            har_document(&har_entry(&"p".repeat(10 * n), &data, ""))
        }),
        shape("HAR: parameters of a query", read_har, 2_000, |n| {
            let pairs = (0..n).map(|n| format!("token{n}=secret-{n}")).collect::<Vec<_>>().join("&");
            har_document(&har_entry(&format!("a?{pairs}"), "", ""))
        }),
        shape("HAR: secrets and answers", read_har, 500, |n| {
            let one = |n: usize| {
                let header = format!(",\"headers\":[{{\"name\":\"authorization\",\"value\":\"Bearer secret-{n}\"}}]");
                let content = format!(",\"content\":{{\"text\":\"{{\\\"token\\\":\\\"secret-{}\\\"}}\"}}", n + 1);
                har_entry("a", &header, &content)
            };
            har_document(&listed(n, one))
        }),
        shape("HAR: a body of JSON", read_har, 2_000, |n| {
            let body = listed(n, |n| format!("{{\\\"password\\\":\\\"{n}\\\"}}"));
            har_document(&har_entry("a", &format!(",\"postData\":{{\"text\":\"[{body}]\"}}"), ""))
        }),
        shape("HAR: hosts", read_har, 1_500, |n| {
            har_document(&listed(n, |n| format!("{{\"request\":{{\"url\":\"http://h{n}/\"}}}}")))
        }),
    ]
}

fn curl_shapes() -> Vec<Shape> {
    vec![
        shape("curl: headers", read_curl, 4_000, |n| {
            format!("curl http://h/ {}", pieces(n, |n| format!("-H 'h{n}: x' "))).into_bytes()
        }),
        shape("curl: pieces of a body", read_curl, 4_000, |n| {
            format!("curl http://h/ {}", pieces(n, |n| format!("-d 'k{n}=x' "))).into_bytes()
        }),
        shape("curl: pieces of a query", read_curl, 4_000, |n| {
            format!("curl -G http://h/ {}", pieces(n, |n| format!("--data-urlencode 'k{n}=x y' "))).into_bytes()
        }),
        shape("curl: parts of a form", read_curl, 4_000, |n| {
            format!("curl http://h/ {}", pieces(n, |n| format!("-F 'k{n}=x;type=a/b' "))).into_bytes()
        }),
        shape("curl: cookies", read_curl, 4_000, |n| {
            format!("curl http://h/ {}", pieces(n, |n| format!("-b 'k{n}=x' "))).into_bytes()
        }),
        shape("curl: letters in a row", read_curl, 10_000, |n| {
            format!("curl http://h/ -{}", "s".repeat(n)).into_bytes()
        }),
        shape("curl: a long word", read_curl, 100_000, |n| {
            format!("curl http://h/ -d $'{}'", "\\x41\\n".repeat(n / 6)).into_bytes()
        }),
        shape("curl: URLs", read_curl, 4_000, |n| format!("curl {}", "http://h/ ".repeat(n)).into_bytes()),
    ]
}

fn toml_with_request(inside: &str) -> Vec<u8> {
    format!("base = \"http://h\"\n[[request]]\npost = \"/\"\n{inside}").into_bytes()
}

fn toml_with_scenario(inside: &str) -> Vec<u8> {
    format!("base = \"http://h\"\n[[scenario]]\n{inside}").into_bytes()
}

fn toml_shapes() -> Vec<Shape> {
    vec![
        shape("TOML: requests", read_toml, 1_500, |n| {
            format!("base = \"http://h\"\n{}", "[[request]]\nget = \"/a\"\n".repeat(n)).into_bytes()
        }),
        shape("TOML: values in a body", read_toml, 5_000, |n| {
            toml_with_request(&format!("body = \"{}\"\n", "{{ int(1,9) }}".repeat(n)))
        }),
        shape("TOML: values in a path", read_toml, 3_000, |n| {
            format!("base = \"http://h\"\n[[request]]\nget = \"/{}\"\n", "{{ int(1,9) }}".repeat(n)).into_bytes()
        }),
        shape("TOML: texts that stand for themselves", read_toml, 5_000, |n| {
            toml_with_request(&format!("body = \"{}\"\n", "{{ '{{' }}".repeat(n)))
        }),
        shape("TOML: choices of a value", read_toml, 2_000, |n| {
            toml_with_request(&format!("body = \"{{{{ pick({}) }}}}\"\n", listed(n, |n| n.to_string())))
        }),
        shape("TOML: variables of the environment", read_toml, 4_000, |n| {
            toml_with_request(&format!("body = \"{}\"\n", pieces(n, |n| format!("{{{{ env.V{n} }}}}"))))
        }),
        shape("TOML: columns", read_toml, 3_000, |n| {
            let uses = pieces(n, |n| format!("{{{{ d.c{n} }}}}"));
            let data = format!("[data.d]\nfile = \"columns-{n}\"\n");
            let inside = format!("body = \"{uses}\"\n{data}");
            toml_with_request(&inside)
        }),
        shape("TOML: columns of JSON", read_toml, 3_000, |n| {
            toml_with_request(&format!("body = \"x\"\n[data.d]\nfile = \"json-{n}.jsonl\"\n").replace(".jsonl", ""))
        }),
        shape("TOML: rows", read_toml, 10_000, |n| {
            toml_with_request(&format!("body = \"x\"\n[data.d]\nfile = \"rows-{n}\"\n"))
        }),
        shape("TOML: tables of rows", read_toml, 1_500, |n| {
            let uses = pieces(n, |n| format!("{{{{ d{n}.c }}}}"));
            let data = pieces(n, |n| format!("[data.d{n}]\nfile = \"f\"\n"));
            toml_with_request(&format!("body = \"{uses}\"\n{data}"))
        }),
        shape("TOML: headers", read_toml, 3_000, |n| {
            toml_with_request(&format!("headers = {{ {} }}\n", listed(n, |n| format!("h{n} = \"{{{{ seq() }}}}\""))))
        }),
        shape("TOML: keys of JSON", read_toml, 3_000, |n| {
            toml_with_request(&format!("json = {{ {} }}\n", listed(n, |n| format!("k{n} = \"{{{{ seq() }}}}\""))))
        }),
        shape("TOML: dotted keys", read_toml, 3_000, |n| {
            toml_with_request(&pieces(n, |n| format!("json.a.b.k{n} = 1\n")))
        }),
        shape("TOML: parts of a form", read_toml, 2_000, |n| {
            toml_with_request(&format!("multipart = {{ {} }}\n", listed(n, |n| format!("k{n} = \"@f\""))))
        }),
        shape("TOML: expected values", read_toml, 2_000, |n| {
            toml_with_request(&format!("expect = {{ json = {{ {} }} }}\n", listed(n, |n| format!("\"$.a{n}\" = 1"))))
        }),
        shape("TOML: captures of a scenario", read_toml, 1_200, |n| {
            let names = listed(n, |n| format!("c{n}=\"$.x\""));
            let uses = pieces(n, |n| format!("{{{{ c{n} }}}}"));
            toml_with_scenario(&format!(
                "[[scenario.step]]\nget = \"/a\"\ncapture = {{ {names} }}\n[[scenario.step]]\npost = \"/b\"\nbody = \"{uses}\"\n"
            ))
        }),
        shape("TOML: steps", read_toml, 1_500, |n| toml_with_scenario(&"[[scenario.step]]\nget = \"/a\"\n".repeat(n))),
        shape("TOML: scenarios", read_toml, 1_500, |n| {
            format!("base = \"http://h\"\n{}", "[[scenario]]\n[[scenario.step]]\nget = \"/a\"\n".repeat(n)).into_bytes()
        }),
        shape("TOML: a setup", read_toml, 1_500, |n| {
            let setup =
                pieces(n, |n| format!("[[setup]]\nget = \"/{{{{ c{n} }}}}\"\ncapture = {{ c{} = \"$.x\" }}\n", n + 1));
            let first = "[[setup]]\nget = \"/\"\ncapture = { c0 = \"$.x\" }\n";
            format!("base = \"http://h\"\n{first}{setup}[[request]]\nget = \"/\"\n").into_bytes()
        }),
        shape("TOML: lines without an end", read_toml, 5_000, |n| format!("a = '''{}", "\n".repeat(n)).into_bytes()),
        shape("YAML: keys", read_yaml, 3_000, |n| pieces(n, |n| format!("k{n}: 1\n")).into_bytes()),
        shape("YAML: a list", read_yaml, 5_000, |n| format!("a: [{}]\n", listed(n, |_| "x".into())).into_bytes()),
        shape("YAML: a list of blocks", read_yaml, 3_000, |n| {
            format!("a:\n{}", "- b: 1\n  c: 2\n".repeat(n)).into_bytes()
        }),
        product("YAML: aliases", read_yaml, 1_000, |n| {
            format!("a: &a [{}]\nb: [{}]\n", listed(n, |_| "x".into()), listed(n, |_| "*a".into())).into_bytes()
        }),
        shape("YAML: anchors", read_yaml, 3_000, |n| pieces(n, |n| format!("k{n}: &a{n} x\n")).into_bytes()),
        shape("YAML: a folded text", read_yaml, 5_000, |n| format!("a: >\n{}", "  x y\n".repeat(n)).into_bytes()),
        shape("YAML: a quoted text", read_yaml, 5_000, |n| format!("a: \"{}\"\n", "x\\n  \n ".repeat(n)).into_bytes()),
        shape("YAML: comments", read_yaml, 5_000, |n| format!("{}a: 1\n", "# x\n".repeat(n)).into_bytes()),
        shape("YAML: a plain text of many lines", read_yaml, 5_000, |n| {
            format!("a: x\n{}", "  y\n".repeat(n)).into_bytes()
        }),
        shape("JSON: keys", read_json, 5_000, |n| format!("{{{}}}", listed(n, |n| format!("\"k{n}\":1"))).into_bytes()),
        shape("JSON: a list", read_json, 20_000, |n| format!("{{\"a\":[{}]}}", listed(n, |_| "1".into())).into_bytes()),
        shape("JSON: a text", read_json, 20_000, |n| format!("{{\"a\":\"{}\"}}", "\\u0041".repeat(n)).into_bytes()),
        shape("JSON: lines", read_json, 20_000, |n| format!("{{\"a\":[{}1]}}", "1,\n".repeat(n)).into_bytes()),
    ]
}

pub fn file_shapes() -> Vec<Shape> {
    toml_shapes()
}

pub fn import_shapes() -> Vec<Shape> {
    [jmx_shapes(), postman_shapes(), har_shapes(), curl_shapes()].into_iter().flatten().collect()
}
