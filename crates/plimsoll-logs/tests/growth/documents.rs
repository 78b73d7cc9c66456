//! Tests how the cost of parsing traffic files, JMeter test plans, Postman collections, HAR
//! recordings and curl command lines grows with their size.

use super::{
    GrowingInput, comma_separated_pieces, concatenated_pieces, growing_input, two_dimensional_input, utf8_text,
};
use plimsoll_traffic::file::{FileContext, TrafficFile, TrafficFormat};
use plimsoll_traffic::import::{curl, import_har, import_jmx, import_postman};

/// A file context (a parser's access to files and variables) in which every file and variable
/// exists.
struct AllFilesExistContext;

impl FileContext for AllFilesExistContext {
    fn read_file(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(vec![0; 100])
    }

    /// Returns data rows whose number or columns the path states: `columns-N` and `json-N` have N
    /// columns, `rows-N` has N rows.
    fn read_data_rows(&mut self, path: &str) -> Result<String, String> {
        let (kind, count) = path.split_once('-').unwrap_or(("", "0"));
        let count: usize = count.parse().unwrap_or(0);
        Ok(match kind {
            "columns" => format!(
                "{}\n{}\n",
                comma_separated_pieces(count, |n| format!("c{n}")),
                comma_separated_pieces(count, |_| "1".into())
            ),
            "json" => {
                let line = format!("{{{}}}\n", comma_separated_pieces(count, |n| format!("\"c{n}\":{n}")));
                line.repeat(2)
            }
            "rows" => format!("a,b\n{}", "1,\"x\"\"y\"\n".repeat(count)),
            _ => "c\n1\n".to_owned(),
        })
    }

    fn check_regex(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn environment_variable(&mut self, _: &str) -> Option<String> {
        Some("x".to_owned())
    }
}

fn read_jmx(input: &[u8]) -> Result<(), String> {
    import_jmx(utf8_text(input)).map(drop).map_err(|error| error.to_string())
}

fn read_postman(input: &[u8]) -> Result<(), String> {
    import_postman(utf8_text(input)).map(drop).map_err(|error| error.to_string())
}

fn read_har(input: &[u8]) -> Result<(), String> {
    import_har(utf8_text(input), None).map(drop).map_err(|error| error.to_string())
}

fn read_curl(input: &[u8]) -> Result<(), String> {
    let words = curl::split_curl_command(utf8_text(input)).map_err(|error| error.to_string())?;
    curl::CurlRequest::read(&words).map(drop).map_err(|error| error.to_string())
}

fn read_traffic(input: &[u8], format: TrafficFormat) -> Result<(), String> {
    TrafficFile::read(utf8_text(input), format, &mut AllFilesExistContext).map(drop).map_err(|error| error.to_string())
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
    use super::super::concatenated_pieces;

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
        concatenated_pieces(count, |n| sampler(n, "/a", "", ""))
    }

    /// Returns a JMeter property with a collection of `count` elements.
    pub fn collection(name: &str, count: usize, element: impl Fn(usize) -> String) -> String {
        let elements = concatenated_pieces(count, |n| format!("<elementProp name='n{n}'>{}</elementProp>", element(n)));
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

fn jmx_inputs() -> Vec<GrowingInput> {
    vec![
        growing_input("JMX: cookies", read_jmx, 3_000, |n| {
            xml::plan(&xml::group(&(xml::cookies(n) + &xml::samplers(1))))
        }),
        two_dimensional_input("JMX: cookies and samplers", read_jmx, 1_000, |n| {
            xml::plan(&xml::group(&(xml::cookies(n) + &xml::samplers(n))))
        }),
        two_dimensional_input("JMX: cookies of another host and samplers", read_jmx, 1_000, |n| {
            let cookies =
                xml::manager("CookieManager", "CookieManager.cookies", n, |_| xml::property("Cookie.domain", "x"));
            xml::plan(&xml::group(&(cookies + &xml::samplers(n))))
        }),
        growing_input("JMX: headers", read_jmx, 3_000, |n| {
            xml::plan(&xml::group(&(xml::headers(n, |_| "x".into()) + &xml::samplers(1))))
        }),
        two_dimensional_input("JMX: headers and samplers", read_jmx, 1_000, |n| {
            xml::plan(&xml::group(&(xml::headers(n, |_| "x".into()) + &xml::samplers(n))))
        }),
        growing_input("JMX: captured variables in headers", read_jmx, 1_000, |n| {
            let headers = xml::headers(n, |n| format!("${{v{n}}}"));
            let sampler = xml::sampler(0, "/a", "", &concatenated_pieces(n, xml::extractor));
            xml::plan(&(headers + &xml::group(&sampler)))
        }),
        two_dimensional_input("JMX: users and samplers", read_jmx, 1_000, |n| {
            xml::plan(&xml::group(&(xml::users(n) + &xml::samplers(n))))
        }),
        growing_input("JMX: samplers", read_jmx, 2_000, |n| xml::plan(&xml::group(&xml::samplers(n)))),
        growing_input("JMX: thread groups", read_jmx, 1_500, |n| {
            xml::plan(&concatenated_pieces(n, |_| xml::group(&xml::samplers(1))))
        }),
        growing_input("JMX: thread groups with extractors", read_jmx, 1_000, |n| {
            xml::plan(&concatenated_pieces(n, |n| {
                xml::group(&xml::sampler(n, &format!("/${{v{n}}}"), "", &xml::extractor(n)))
            }))
        }),
        growing_input("JMX: captured variables", read_jmx, 1_000, |n| {
            let first = xml::sampler(0, "/a", "", &concatenated_pieces(n, xml::extractor));
            let uses = concatenated_pieces(n, |n| format!("${{v{n}}}"));
            xml::plan(&xml::group(&(first + &xml::sampler(1, &format!("/{uses}"), "", ""))))
        }),
        growing_input("JMX: regular expressions", read_jmx, 30, |n| {
            let pattern = |n: usize| xml::extractor(n).replace("a(.)", &format!("(\\w{{{}}})", 500 + n));
            xml::plan(&xml::group(&xml::sampler(0, "/a", "", &concatenated_pieces(n, pattern))))
        }),
        growing_input("JMX: variables", read_jmx, 2_000, |n| {
            let uses = concatenated_pieces(n, |n| format!("${{v{n}}}"));
            let sampler = xml::sampler(0, &format!("/{uses}"), "", "");
            xml::plan(&(xml::variables(n, |_| "x".into()) + &xml::group(&sampler)))
        }),
        growing_input("JMX: unset variables", read_jmx, 2_000, |n| {
            let uses = concatenated_pieces(n, |n| format!("${{v{n}}}"));
            xml::plan(&xml::group(&xml::sampler(0, &format!("/{uses}"), "", "")))
        }),
        two_dimensional_input("JMX: a variable that names others", read_jmx, 1_000, |n| {
            let all = concatenated_pieces(n, |n| format!("${{v{}}}", n + 1));
            let variables = xml::variables(n + 1, |n| if n == 0 { all.clone() } else { "x".into() });
            let samplers = concatenated_pieces(n, |n| xml::sampler(n, "/${v0}", "", ""));
            xml::plan(&(variables + &xml::group(&samplers)))
        }),
        growing_input("JMX: arguments", read_jmx, 3_000, |n| {
            xml::plan(&xml::group(&xml::sampler(0, "/a", &xml::arguments(n), "")))
        }),
        growing_input("JMX: arguments and those of defaults", read_jmx, 2_000, |n| {
            let defaults = xml::defaults(&xml::arguments(n));
            xml::plan(&xml::group(&(defaults + &xml::sampler(0, "/a", &xml::arguments(n), ""))))
        }),
        two_dimensional_input("JMX: arguments of defaults and samplers", read_jmx, 1_000, |n| {
            xml::plan(&xml::group(&(xml::defaults(&xml::arguments(n)) + &xml::samplers(n))))
        }),
        two_dimensional_input("JMX: properties of defaults and samplers", read_jmx, 700, |n| {
            let properties = concatenated_pieces(n, |n| xml::property(&format!("p{n}"), "x"));
            xml::plan(&xml::group(&(xml::defaults(&properties) + &xml::samplers(n))))
        }),
        two_dimensional_input("JMX: defaults and samplers", read_jmx, 1_000, |n| {
            xml::plan(&xml::group(&(xml::defaults("").repeat(n) + &xml::samplers(n))))
        }),
        growing_input("JMX: assertions", read_jmx, 2_000, |n| {
            let assertion = xml::property("DurationAssertion.duration", "100");
            let assertions = format!("<DurationAssertion>{assertion}</DurationAssertion><hashTree/>").repeat(n);
            xml::plan(&xml::group(&xml::sampler(0, "/a", "", &assertions)))
        }),
        two_dimensional_input("JMX: assertions and samplers", read_jmx, 1_000, |n| {
            let assertion = xml::property("DurationAssertion.duration", "100");
            let assertions = format!("<DurationAssertion>{assertion}</DurationAssertion><hashTree/>").repeat(n);
            xml::plan(&xml::group(&(assertions + &xml::samplers(n))))
        }),
        two_dimensional_input("JMX: timers and samplers", read_jmx, 1_000, |n| {
            let delay = xml::property("ConstantTimer.delay", "100");
            let timers = format!("<ConstantTimer>{delay}</ConstantTimer><hashTree/>").repeat(n);
            xml::plan(&xml::group(&(timers + &xml::samplers(n))))
        }),
        growing_input("JMX: files of rows of one name", read_jmx, 1_500, |n| {
            let data = format!("<CSVDataSet>{}</CSVDataSet><hashTree/>", xml::property("filename", "u.csv"));
            xml::plan(&(data.repeat(n) + &xml::group(&xml::samplers(1))))
        }),
        growing_input("JMX: columns of a file of rows", read_jmx, 1_000, |n| {
            let (file, names) = (xml::property("filename", "u.csv"), comma_separated_pieces(n, |n| format!("v{n}")));
            let data = format!("<CSVDataSet>{file}{}</CSVDataSet><hashTree/>", xml::property("variableNames", &names));
            let uses = concatenated_pieces(n, |n| format!("${{v{n}}}"));
            xml::plan(&(data + &xml::group(&xml::sampler(0, &format!("/{uses}"), "", ""))))
        }),
        growing_input("JMX: conditions", read_jmx, 1_500, |n| {
            let condition = |n: usize| {
                let text = xml::property("IfController.condition", &format!("${{v{n}}} != \"\""));
                format!("<IfController testname='i'>{text}</IfController><hashTree>{}</hashTree>", xml::samplers(1))
            };
            xml::plan(&xml::group(&concatenated_pieces(n, condition)))
        }),
        growing_input("JMX: functions", read_jmx, 2_000, |n| {
            xml::plan(&xml::group(&xml::sampler(0, &format!("/{}", "${__Random(1,${__P(n,9)})}".repeat(n)), "", "")))
        }),
        growing_input("JMX: a function that is not closed", read_jmx, 3_000, |n| {
            xml::plan(&xml::group(&xml::sampler(0, &format!("/{}", "${__a(".repeat(n)), "", "")))
        }),
        growing_input("JMX: uploads", read_jmx, 2_000, |n| {
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

fn postman_inputs() -> Vec<GrowingInput> {
    vec![
        growing_input("Postman: requests", read_postman, 1_500, |n| {
            collection(&format!("\"item\":[{}]", comma_separated_pieces(n, |_| postman_item("a", ""))))
        }),
        growing_input("Postman: headers", read_postman, 3_000, |n| {
            let headers = comma_separated_pieces(n, |n| format!("{{\"key\":\"h{n}\",\"value\":\"x\"}}"));
            collection(&format!("\"item\":[{}]", postman_item("a", &format!(",\"header\":[{headers}]"))))
        }),
        growing_input("Postman: variables", read_postman, 2_000, |n| {
            let variables = comma_separated_pieces(n, |n| format!("{{\"key\":\"v{n}\",\"value\":\"x\"}}"));
            let uses = concatenated_pieces(n, |n| format!("{{{{v{n}}}}}"));
            collection(&format!("\"variable\":[{variables}],\"item\":[{}]", postman_item(&uses, "")))
        }),
        growing_input("Postman: unset variables", read_postman, 2_000, |n| {
            collection(&format!(
                "\"item\":[{}]",
                postman_item(&concatenated_pieces(n, |n| format!("{{{{v{n}}}}}")), "")
            ))
        }),
        two_dimensional_input("Postman: a variable that names others", read_postman, 1_000, |n| {
            let all = concatenated_pieces(n, |n| format!("{{{{v{}}}}}", n + 1));
            let value = |n: usize| if n == 0 { all.clone() } else { "x".to_owned() };
            let variables =
                comma_separated_pieces(n + 1, |n| format!("{{\"key\":\"v{n}\",\"value\":\"{}\"}}", value(n)));
            collection(&format!(
                "\"variable\":[{variables}],\"item\":[{}]",
                comma_separated_pieces(n, |_| postman_item("{{v0}}", ""))
            ))
        }),
        growing_input("Postman: captures", read_postman, 1_000, |n| {
            let line = |n: usize| format!("\"pm.environment.set('v{n}', pm.response.json().a{n});\"");
            let uses = concatenated_pieces(n, |n| format!("{{{{v{n}}}}}"));
            let first = format!(
                "{{\"name\":\"i\",{},\"request\":\"http://h/\"}}",
                postman_test_script(&comma_separated_pieces(n, line))
            );
            collection(&format!("\"item\":[{first},{}]", postman_item(&uses, "")))
        }),
        growing_input("Postman: requests that capture", read_postman, 1_000, |n| {
            let one = |n: usize| {
                let line = format!("\"pm.environment.set('v{n}', pm.response.json().a);\"");
                format!("{{\"name\":\"i\",{},\"request\":\"http://h/{{{{v{n}}}}}\"}}", postman_test_script(&line))
            };
            collection(&format!("\"item\":[{}]", comma_separated_pieces(n, one)))
        }),
        growing_input("Postman: places that name each other", read_postman, 1_500, |n| {
            let line = |n: usize| format!("\"var x{} = x{n}.a;\"", n + 1);
            let lines = format!("\"var x0 = pm.response.json();\",{}", comma_separated_pieces(n, line));
            collection(&format!(
                "\"item\":[{{\"name\":\"i\",{},\"request\":\"http://h/\"}}]",
                postman_test_script(&lines)
            ))
        }),
        growing_input("Postman: calls that are not closed", read_postman, 3_000, |n| {
            let lines = comma_separated_pieces(n, |_| "\"pm.environment.set('v', (\"".to_owned());
            collection(&format!(
                "\"item\":[{{\"name\":\"i\",{},\"request\":\"http://h/\"}}]",
                postman_test_script(&lines)
            ))
        }),
        growing_input("Postman: path variables", read_postman, 2_000, |n| {
            let variables = comma_separated_pieces(n, |n| format!("{{\"key\":\"v{n}\",\"value\":\"x\"}}"));
            let path = concatenated_pieces(n, |n| format!("/:v{n}"));
            let url = format!("{{\"raw\":\"http://h{path}\",\"variable\":[{variables}]}}");
            collection(&format!("\"item\":[{{\"name\":\"i\",\"request\":{{\"url\":{url}}}}}]"))
        }),
        growing_input("Postman: fields of a form", read_postman, 2_000, |n| {
            let fields = comma_separated_pieces(n, |n| format!("{{\"key\":\"k{n}\",\"value\":\"x\"}}"));
            let body = format!(",\"body\":{{\"mode\":\"urlencoded\",\"urlencoded\":[{fields}]}}");
            collection(&format!("\"item\":[{}]", postman_item("a", &body)))
        }),
        growing_input("Postman: parts of a form", read_postman, 2_000, |n| {
            let fields =
                comma_separated_pieces(n, |n| format!("{{\"key\":\"k{n}\",\"type\":\"file\",\"src\":\"f{n}\"}}"));
            let body = format!(",\"body\":{{\"mode\":\"formdata\",\"formdata\":[{fields}]}}");
            collection(&format!("\"item\":[{}]", postman_item("a", &body)))
        }),
        two_dimensional_input("Postman: parts of an authorization and requests", read_postman, 1_000, |n| {
            let parts = comma_separated_pieces(n, |n| format!("{{\"key\":\"k{n}\",\"value\":\"x\"}}"));
            let auth = format!("\"auth\":{{\"type\":\"basic\",\"basic\":[{parts}]}}");
            collection(&format!("{auth},\"item\":[{}]", comma_separated_pieces(n, |_| postman_item("a", ""))))
        }),
        two_dimensional_input("Postman: a long token and requests", read_postman, 1_000, |n| {
            let token = format!("\"auth\":{{\"type\":\"bearer\",\"bearer\":{{\"token\":\"{}\"}}}}", "x".repeat(10 * n));
            collection(&format!("{token},\"item\":[{}]", comma_separated_pieces(n, |_| postman_item("a", ""))))
        }),
        growing_input("Postman: events of a long name", read_postman, 1_500, |n| {
            let events =
                comma_separated_pieces(n, |_| "{\"listen\":\"prerequest\",\"script\":{\"exec\":\"x\"}}".to_owned());
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

fn har_inputs() -> Vec<GrowingInput> {
    vec![
        growing_input("HAR: entries", read_har, 1_500, |n| {
            har_document(&comma_separated_pieces(n, |_| har_entry("a", "", "")))
        }),
        growing_input("HAR: headers", read_har, 3_000, |n| {
            let headers = comma_separated_pieces(n, |n| format!("{{\"name\":\"h{n}\",\"value\":\"x\"}}"));
            har_document(&har_entry("a", &format!(",\"headers\":[{headers}]"), ""))
        }),
        growing_input("HAR: headers of one name", read_har, 3_000, |n| {
            let headers = comma_separated_pieces(n, |n| format!("{{\"name\":\"h\",\"value\":\"x{n}\"}}"));
            har_document(&har_entry("a", &format!(",\"headers\":[{headers}]"), ""))
        }),
        growing_input("HAR: cookies", read_har, 2_000, |n| {
            let cookies = (0..n).map(|n| format!("c{n}=x")).collect::<Vec<_>>().join(";");
            har_document(&har_entry(
                "a",
                &format!(",\"headers\":[{{\"name\":\"cookie\",\"value\":\"{cookies}\"}}]"),
                "",
            ))
        }),
        growing_input("HAR: fields of a form", read_har, 2_000, |n| {
            let fields = comma_separated_pieces(n, |n| format!("{{\"name\":\"k{n}\",\"value\":\"x\"}}"));
            let data = format!(",\"postData\":{{\"mimeType\":\"multipart/form-data\",\"params\":[{fields}]}}");
            har_document(&har_entry("a", &data, ""))
        }),
        growing_input("HAR: files of a form and a long path", read_har, 2_000, |n| {
            let fields = comma_separated_pieces(n, |n| format!("{{\"name\":\"k{n}\",\"fileName\":\"f{n}\"}}"));
            let data = format!(",\"postData\":{{\"mimeType\":\"multipart/form-data\",\"params\":[{fields}]}}");
            har_document(&har_entry(&"p".repeat(10 * n), &data, ""))
        }),
        growing_input("HAR: parameters of a query", read_har, 2_000, |n| {
            let pairs = (0..n).map(|n| format!("token{n}=secret-{n}")).collect::<Vec<_>>().join("&");
            har_document(&har_entry(&format!("a?{pairs}"), "", ""))
        }),
        growing_input("HAR: secrets and answers", read_har, 500, |n| {
            let one = |n: usize| {
                let header = format!(",\"headers\":[{{\"name\":\"authorization\",\"value\":\"Bearer secret-{n}\"}}]");
                let content = format!(",\"content\":{{\"text\":\"{{\\\"token\\\":\\\"secret-{}\\\"}}\"}}", n + 1);
                har_entry("a", &header, &content)
            };
            har_document(&comma_separated_pieces(n, one))
        }),
        growing_input("HAR: a body of JSON", read_har, 2_000, |n| {
            let body = comma_separated_pieces(n, |n| format!("{{\\\"password\\\":\\\"{n}\\\"}}"));
            har_document(&har_entry("a", &format!(",\"postData\":{{\"text\":\"[{body}]\"}}"), ""))
        }),
        growing_input("HAR: hosts", read_har, 1_500, |n| {
            har_document(&comma_separated_pieces(n, |n| format!("{{\"request\":{{\"url\":\"http://h{n}/\"}}}}")))
        }),
    ]
}

fn curl_inputs() -> Vec<GrowingInput> {
    vec![
        growing_input("curl: headers", read_curl, 4_000, |n| {
            format!("curl http://h/ {}", concatenated_pieces(n, |n| format!("-H 'h{n}: x' "))).into_bytes()
        }),
        growing_input("curl: pieces of a body", read_curl, 4_000, |n| {
            format!("curl http://h/ {}", concatenated_pieces(n, |n| format!("-d 'k{n}=x' "))).into_bytes()
        }),
        growing_input("curl: pieces of a query", read_curl, 4_000, |n| {
            format!("curl -G http://h/ {}", concatenated_pieces(n, |n| format!("--data-urlencode 'k{n}=x y' ")))
                .into_bytes()
        }),
        growing_input("curl: parts of a form", read_curl, 4_000, |n| {
            format!("curl http://h/ {}", concatenated_pieces(n, |n| format!("-F 'k{n}=x;type=a/b' "))).into_bytes()
        }),
        growing_input("curl: cookies", read_curl, 4_000, |n| {
            format!("curl http://h/ {}", concatenated_pieces(n, |n| format!("-b 'k{n}=x' "))).into_bytes()
        }),
        growing_input("curl: letters in a row", read_curl, 10_000, |n| {
            format!("curl http://h/ -{}", "s".repeat(n)).into_bytes()
        }),
        growing_input("curl: a long word", read_curl, 100_000, |n| {
            format!("curl http://h/ -d $'{}'", "\\x41\\n".repeat(n / 6)).into_bytes()
        }),
        growing_input("curl: URLs", read_curl, 4_000, |n| format!("curl {}", "http://h/ ".repeat(n)).into_bytes()),
    ]
}

fn toml_with_request(inside: &str) -> Vec<u8> {
    format!("base = \"http://h\"\n[[request]]\npost = \"/\"\n{inside}").into_bytes()
}

fn toml_with_scenario(inside: &str) -> Vec<u8> {
    format!("base = \"http://h\"\n[[scenario]]\n{inside}").into_bytes()
}

fn toml_yaml_json_inputs() -> Vec<GrowingInput> {
    vec![
        growing_input("TOML: requests", read_toml, 1_500, |n| {
            format!("base = \"http://h\"\n{}", "[[request]]\nget = \"/a\"\n".repeat(n)).into_bytes()
        }),
        growing_input("TOML: values in a body", read_toml, 5_000, |n| {
            toml_with_request(&format!("body = \"{}\"\n", "{{ int(1,9) }}".repeat(n)))
        }),
        growing_input("TOML: values in a path", read_toml, 3_000, |n| {
            format!("base = \"http://h\"\n[[request]]\nget = \"/{}\"\n", "{{ int(1,9) }}".repeat(n)).into_bytes()
        }),
        growing_input("TOML: texts that stand for themselves", read_toml, 5_000, |n| {
            toml_with_request(&format!("body = \"{}\"\n", "{{ '{{' }}".repeat(n)))
        }),
        growing_input("TOML: choices of a value", read_toml, 2_000, |n| {
            toml_with_request(&format!("body = \"{{{{ pick({}) }}}}\"\n", comma_separated_pieces(n, |n| n.to_string())))
        }),
        growing_input("TOML: variables of the environment", read_toml, 4_000, |n| {
            toml_with_request(&format!("body = \"{}\"\n", concatenated_pieces(n, |n| format!("{{{{ env.V{n} }}}}"))))
        }),
        growing_input("TOML: columns", read_toml, 3_000, |n| {
            let uses = concatenated_pieces(n, |n| format!("{{{{ d.c{n} }}}}"));
            let data = format!("[data.d]\nfile = \"columns-{n}\"\n");
            let inside = format!("body = \"{uses}\"\n{data}");
            toml_with_request(&inside)
        }),
        growing_input("TOML: columns of JSON", read_toml, 3_000, |n| {
            toml_with_request(&format!("body = \"x\"\n[data.d]\nfile = \"json-{n}.jsonl\"\n").replace(".jsonl", ""))
        }),
        growing_input("TOML: rows", read_toml, 10_000, |n| {
            toml_with_request(&format!("body = \"x\"\n[data.d]\nfile = \"rows-{n}\"\n"))
        }),
        growing_input("TOML: tables of rows", read_toml, 1_500, |n| {
            let uses = concatenated_pieces(n, |n| format!("{{{{ d{n}.c }}}}"));
            let data = concatenated_pieces(n, |n| format!("[data.d{n}]\nfile = \"f\"\n"));
            toml_with_request(&format!("body = \"{uses}\"\n{data}"))
        }),
        growing_input("TOML: headers", read_toml, 3_000, |n| {
            toml_with_request(&format!(
                "headers = {{ {} }}\n",
                comma_separated_pieces(n, |n| format!("h{n} = \"{{{{ seq() }}}}\""))
            ))
        }),
        growing_input("TOML: keys of JSON", read_toml, 3_000, |n| {
            toml_with_request(&format!(
                "json = {{ {} }}\n",
                comma_separated_pieces(n, |n| format!("k{n} = \"{{{{ seq() }}}}\""))
            ))
        }),
        growing_input("TOML: dotted keys", read_toml, 3_000, |n| {
            toml_with_request(&concatenated_pieces(n, |n| format!("json.a.b.k{n} = 1\n")))
        }),
        growing_input("TOML: parts of a form", read_toml, 2_000, |n| {
            toml_with_request(&format!(
                "multipart = {{ {} }}\n",
                comma_separated_pieces(n, |n| format!("k{n} = \"@f\""))
            ))
        }),
        growing_input("TOML: expected values", read_toml, 2_000, |n| {
            toml_with_request(&format!(
                "expect = {{ json = {{ {} }} }}\n",
                comma_separated_pieces(n, |n| format!("\"$.a{n}\" = 1"))
            ))
        }),
        growing_input("TOML: captures of a scenario", read_toml, 1_200, |n| {
            let names = comma_separated_pieces(n, |n| format!("c{n}=\"$.x\""));
            let uses = concatenated_pieces(n, |n| format!("{{{{ c{n} }}}}"));
            toml_with_scenario(&format!(
                "[[scenario.step]]\nget = \"/a\"\ncapture = {{ {names} }}\n[[scenario.step]]\npost = \"/b\"\nbody = \"{uses}\"\n"
            ))
        }),
        growing_input("TOML: steps", read_toml, 1_500, |n| {
            toml_with_scenario(&"[[scenario.step]]\nget = \"/a\"\n".repeat(n))
        }),
        growing_input("TOML: scenarios", read_toml, 1_500, |n| {
            format!("base = \"http://h\"\n{}", "[[scenario]]\n[[scenario.step]]\nget = \"/a\"\n".repeat(n)).into_bytes()
        }),
        growing_input("TOML: a setup", read_toml, 1_500, |n| {
            let setup = concatenated_pieces(n, |n| {
                format!("[[setup]]\nget = \"/{{{{ c{n} }}}}\"\ncapture = {{ c{} = \"$.x\" }}\n", n + 1)
            });
            let first = "[[setup]]\nget = \"/\"\ncapture = { c0 = \"$.x\" }\n";
            format!("base = \"http://h\"\n{first}{setup}[[request]]\nget = \"/\"\n").into_bytes()
        }),
        growing_input("TOML: lines without an end", read_toml, 5_000, |n| {
            format!("a = '''{}", "\n".repeat(n)).into_bytes()
        }),
        growing_input("YAML: keys", read_yaml, 3_000, |n| {
            concatenated_pieces(n, |n| format!("k{n}: 1\n")).into_bytes()
        }),
        growing_input("YAML: a list", read_yaml, 5_000, |n| {
            format!("a: [{}]\n", comma_separated_pieces(n, |_| "x".into())).into_bytes()
        }),
        growing_input("YAML: a list of blocks", read_yaml, 3_000, |n| {
            format!("a:\n{}", "- b: 1\n  c: 2\n".repeat(n)).into_bytes()
        }),
        two_dimensional_input("YAML: aliases", read_yaml, 1_000, |n| {
            format!(
                "a: &a [{}]\nb: [{}]\n",
                comma_separated_pieces(n, |_| "x".into()),
                comma_separated_pieces(n, |_| "*a".into())
            )
            .into_bytes()
        }),
        growing_input("YAML: anchors", read_yaml, 3_000, |n| {
            concatenated_pieces(n, |n| format!("k{n}: &a{n} x\n")).into_bytes()
        }),
        growing_input("YAML: a folded text", read_yaml, 5_000, |n| {
            format!("a: >\n{}", "  x y\n".repeat(n)).into_bytes()
        }),
        growing_input("YAML: a quoted text", read_yaml, 5_000, |n| {
            format!("a: \"{}\"\n", "x\\n  \n ".repeat(n)).into_bytes()
        }),
        growing_input("YAML: comments", read_yaml, 5_000, |n| format!("{}a: 1\n", "# x\n".repeat(n)).into_bytes()),
        growing_input("YAML: a plain text of many lines", read_yaml, 5_000, |n| {
            format!("a: x\n{}", "  y\n".repeat(n)).into_bytes()
        }),
        growing_input("JSON: keys", read_json, 5_000, |n| {
            format!("{{{}}}", comma_separated_pieces(n, |n| format!("\"k{n}\":1"))).into_bytes()
        }),
        growing_input("JSON: a list", read_json, 20_000, |n| {
            format!("{{\"a\":[{}]}}", comma_separated_pieces(n, |_| "1".into())).into_bytes()
        }),
        growing_input("JSON: a text", read_json, 20_000, |n| {
            format!("{{\"a\":\"{}\"}}", "\\u0041".repeat(n)).into_bytes()
        }),
        growing_input("JSON: lines", read_json, 20_000, |n| format!("{{\"a\":[{}1]}}", "1,\n".repeat(n)).into_bytes()),
    ]
}

pub fn traffic_file_inputs() -> Vec<GrowingInput> {
    toml_yaml_json_inputs()
}

pub fn import_inputs() -> Vec<GrowingInput> {
    [jmx_inputs(), postman_inputs(), har_inputs(), curl_inputs()].into_iter().flatten().collect()
}
