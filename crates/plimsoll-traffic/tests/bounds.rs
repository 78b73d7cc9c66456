//! Tests parsers with small inputs that expand to very large values, such as nested aliases. Each
//! parser must take time and memory in proportion to its input, or reject the input.
//!
//! The bounds of the tests are generous: without limits, the parsers took minutes for these inputs
//! or never ended. Not here: the results of the parsers for real inputs.

use plimsoll_traffic::file::{FileContext, TrafficFile, TrafficFormat};
use plimsoll_traffic::import::{import_har, import_jmx, import_openapi, import_postman};
use std::time::{Duration, Instant};

/// The longest accepted time to parse one test input, also on a busy machine.
pub const PARSE_TIME_MAX: Duration = Duration::from_secs(20);
/// The largest accepted size of the value that a parser returns for a small input, bytes of text.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// A file context (a parser's access to files) in which every path names a large file.
struct LargeFileContext;

impl FileContext for LargeFileContext {
    fn read_file(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(vec![0; 16 << 20])
    }

    fn read_data_rows(&mut self, _: &str) -> Result<String, String> {
        Ok((0..200_000).map(|n| format!("c{n}")).collect::<Vec<_>>().join(",") + "\n1\n")
    }

    fn check_regex(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn environment_variable(&mut self, _: &str) -> Option<String> {
        None
    }
}

/// A parser under test. The result is the size of the parsed value in bytes, or an error.
type Reader = fn(&str) -> Result<usize, String>;

fn imported_har_bytes(text: &str) -> Result<usize, String> {
    import_har(text, None).map(|made| made.text.len()).map_err(|error| error.to_string())
}

fn imported_openapi_bytes(text: &str) -> Result<usize, String> {
    import_openapi(text).map(|made| made.text.len()).map_err(|error| error.to_string())
}

fn imported_postman_bytes(text: &str) -> Result<usize, String> {
    import_postman(text).map(|made| made.text.len()).map_err(|error| error.to_string())
}

fn imported_jmx_bytes(text: &str) -> Result<usize, String> {
    import_jmx(text).map(|made| made.text.len()).map_err(|error| error.to_string())
}

fn parse_traffic_file(text: &str, format: TrafficFormat) -> Result<usize, String> {
    TrafficFile::read(text, format, &mut LargeFileContext).map(|_| text.len()).map_err(|error| error.to_string())
}

fn parse_toml_traffic_file(text: &str) -> Result<usize, String> {
    parse_traffic_file(text, TrafficFormat::Toml)
}

fn parse_yaml_traffic_file(text: &str) -> Result<usize, String> {
    parse_traffic_file(text, TrafficFormat::Yaml)
}

fn parse_json_traffic_file(text: &str) -> Result<usize, String> {
    parse_traffic_file(text, TrafficFormat::Json)
}

/// Returns the definitions of `count` variables. Each variable contains the next variable ten
/// times, so the expansion grows as 10^count.
fn nested_variable_definitions(
    count: usize,
    write: impl Fn(usize, String) -> String,
    name: impl Fn(usize) -> String,
) -> String {
    (0..count).map(|n| write(n, name(n + 1).repeat(10))).collect()
}

fn jmeter_plan_xml(plan: &str) -> String {
    format!("<jmeterTestPlan><hashTree>{plan}</hashTree></jmeterTestPlan>")
}

fn http_sampler(path: &str) -> String {
    format!(
        "<ThreadGroup/><hashTree><HTTPSamplerProxy testname='a'><stringProp name='HTTPSampler.domain'>h</stringProp>\
         <stringProp name='HTTPSampler.path'>{path}</stringProp></HTTPSamplerProxy><hashTree/></hashTree>"
    )
}

#[test]
fn no_input_expands_beyond_its_budget() {
    let entries = |count: usize, entry: &dyn Fn(usize) -> String| (0..count).map(entry).collect::<Vec<_>>().join(",");
    let openapi_of = |paths: &str, schemas: &str| {
        format!("{{\"openapi\":\"3.0.0\",\"paths\":{{{paths}}},\"components\":{{\"schemas\":{{{schemas}}}}}}}")
    };
    let body = |name: &str| {
        format!(
            "{{\"requestBody\":{{\"content\":{{\"application/json\":{{\"schema\":{{\"$ref\":\"#/components/schemas/{name}\"}}}}}}}}}}"
        )
    };
    let all: Vec<(&str, Reader, String)> = vec![
        ("postman variables", imported_postman_bytes, {
            let variables = nested_variable_definitions(
                9,
                |n, value| format!("{{\"key\":\"v{n}\",\"value\":\"{value}\"}},"),
                |n| format!("{{{{v{n}}}}}"),
            );
            let variables = variables.trim_end_matches(',');
            format!("{{\"variable\":[{variables}],\"item\":[{{\"request\":{{\"url\":\"http://h/{{{{v0}}}}\"}}}}]}}")
        }),
        ("postman many variables", imported_postman_bytes, {
            let variables = entries(20_000, &|n| format!("{{\"key\":\"v{n}\",\"value\":\"x\"}}"));
            let text = (0..20_000).map(|n| format!("{{{{v{n}}}}}")).collect::<String>();
            format!("{{\"variable\":[{variables}],\"item\":[{{\"request\":{{\"url\":\"http://h/{text}\"}}}}]}}")
        }),
        ("jmx variables", imported_jmx_bytes, {
            let arguments = nested_variable_definitions(
                9,
                |n, value| {
                    format!(
                        "<elementProp><stringProp name='Argument.name'>v{n}</stringProp>\
                         <stringProp name='Argument.value'>{value}</stringProp></elementProp>"
                    )
                },
                |n| format!("${{v{n}}}"),
            );
            let arguments = format!(
                "<Arguments><collectionProp name='Arguments.arguments'>{arguments}</collectionProp></Arguments><hashTree/>"
            );
            jmeter_plan_xml(&format!("{arguments}{}", http_sampler("/${v0}")))
        }),
        ("jmx attributes", imported_jmx_bytes, {
            format!("<a {}/>", (0..100_000).map(|n| format!("a{n}=\"x\"")).collect::<Vec<_>>().join(" "))
        }),
        ("jmx headers of all requests", imported_jmx_bytes, {
            let header = |n: usize| {
                format!(
                    "<elementProp><stringProp name='Header.name'>h{n}</stringProp>\
                     <stringProp name='Header.value'>x</stringProp></elementProp>"
                )
            };
            let headers = (0..3_000).map(header).collect::<String>();
            let manager = format!(
                "<HeaderManager><collectionProp name='HeaderManager.headers'>{headers}</collectionProp></HeaderManager><hashTree/>"
            );
            jmeter_plan_xml(&format!("{manager}{}", http_sampler("/a").repeat(3_000)))
        }),
        ("openapi allOf", imported_openapi_bytes, {
            let reference = "{\"$ref\":\"#/components/schemas/A\"}";
            openapi_of(
                &format!("\"/a\":{{\"post\":{}}}", body("A")),
                &format!("\"A\":{{\"allOf\":[{reference},{reference}]}}"),
            )
        }),
        ("openapi allOf in turn", imported_openapi_bytes, {
            let schema = |n: usize| {
                let next = format!("{{\"$ref\":\"#/components/schemas/S{}\"}}", n + 1);
                format!("\"S{n}\":{{\"allOf\":[{next},{next}],\"properties\":{{\"p{n}\":{next},\"q{n}\":{next}}}}}")
            };
            let paths = entries(300, &|n| format!("\"/a{n}\":{{\"post\":{}}}", body("S0")));
            openapi_of(&paths, &entries(40, &schema))
        }),
        ("openapi a parameter that holds itself", imported_openapi_bytes, {
            let parameter =
                "{\"name\":\"q\",\"in\":\"query\",\"required\":true,\"schema\":{\"$ref\":\"#/components/schemas/A\"}}";
            openapi_of(
                &format!("\"/a\":{{\"get\":{{\"parameters\":[{parameter}]}}}}"),
                "\"A\":{\"anyOf\":[{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/A\"}}]}",
            )
        }),
        ("openapi examples", imported_openapi_bytes, {
            let paths = entries(2_000, &|n| format!("\"/a{n}\":{{\"post\":{}}}", body("S")));
            openapi_of(&paths, &format!("\"S\":{{\"example\":\"{}\"}}", "x".repeat(1 << 20)))
        }),
        ("openapi servers", imported_openapi_bytes, {
            let variables = entries(40, &|n| format!("\"v{n}\":{{\"default\":\"{{v{0}}}{{v{0}}}\"}}", n + 1));
            format!(
                "{{\"openapi\":\"3.0.0\",\"servers\":[{{\"url\":\"http://{{v0}}/\",\"variables\":{{{variables}}}}}],\"paths\":{{\"/a\":{{\"get\":{{}}}}}}}}"
            )
        }),
        ("har headers", imported_har_bytes, {
            let headers = entries(100_000, &|n| format!("{{\"name\":\"h{n}\",\"value\":\"x\"}}"));
            format!(
                "{{\"log\":{{\"entries\":[{{\"request\":{{\"method\":\"GET\",\"url\":\"http://h/\",\"headers\":[{headers}]}}}}]}}}}"
            )
        }),
        ("json keys", parse_json_traffic_file, format!("{{{}}}", entries(200_000, &|n| format!("\"k{n}\":1")))),
        ("yaml keys", parse_yaml_traffic_file, (0..100_000).map(|n| format!("k{n}: 1\n")).collect()),
        ("yaml aliases", parse_yaml_traffic_file, {
            let lists = (1..10).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(",")));
            format!("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n{}", lists.collect::<String>())
        }),
        ("yaml long aliases", parse_yaml_traffic_file, {
            format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 100_000].join(","))
        }),
        ("requests of one name", parse_toml_traffic_file, {
            format!("base = \"http://h\"\n{}", "[[request]]\nget = \"/a\"\n".repeat(10_000))
        }),
        ("steps of one name", parse_toml_traffic_file, {
            let step = "[[scenario.step]]\nget = \"/a\"\n".repeat(3_000);
            format!("base = \"http://h\"\n[[scenario]]\n{step}")
        }),
        ("captured names", parse_toml_traffic_file, {
            let names = (0..20_000).map(|n| format!("c{n}=\"$.x\"")).collect::<Vec<_>>().join(",");
            let uses = (0..20_000).map(|n| format!("{{{{ c{n} }}}}")).collect::<String>();
            format!(
                "base = \"http://h\"\n[[scenario]]\n[[scenario.step]]\nget = \"/a\"\ncapture = {{ {names} }}\n\
                 [[scenario.step]]\npost = \"/b\"\nbody = \"{uses}\"\n"
            )
        }),
        ("files of bodies", parse_toml_traffic_file, {
            format!("base = \"http://h\"\n{}", "[[request]]\npost = \"/a\"\nbody = \"@f\"\n".repeat(1_000))
        }),
        ("columns", parse_toml_traffic_file, {
            "base = \"http://h\"\n[data.u]\nfile = \"u.csv\"\n[[request]]\nget = \"/{{ u.c1 }}\"\n".to_owned()
        }),
    ];
    for (name, read, text) in all {
        let began = Instant::now();
        let made = read(&text);
        let took = began.elapsed();
        assert!(took < PARSE_TIME_MAX, "{name}: {} bytes take {took:?}", text.len());
        match made {
            Ok(bytes) => assert!(bytes <= TEXT_BYTES_MAX, "{name}: {} bytes become {bytes}", text.len()),
            Err(error) => assert!(error.len() < 1_000 && !error.is_empty(), "{name}: {error:.300}"),
        }
    }
}

/// Checks that an OpenAPI description is rejected if each request body would have 20 x 20 x 20 long
/// texts. The result of importing the description would be small, but each request would be large.
#[test]
fn an_openapi_body_of_many_long_texts_is_refused() {
    let list = |items: &str| format!("{{\"type\":\"array\",\"minItems\":20,\"items\":{items}}}");
    let body_of = |characters: usize| {
        let schema = list(&list(&list(&format!("{{\"type\":\"string\",\"minLength\":{characters}}}"))));
        let content = format!("{{\"requestBody\":{{\"content\":{{\"application/json\":{{\"schema\":{schema}}}}}}}}}");
        imported_openapi_bytes(&format!("{{\"openapi\":\"3.0.0\",\"paths\":{{\"/a\":{{\"post\":{content}}}}}}}"))
    };
    assert!(body_of(8).is_ok());
    let error = body_of(100_000).expect_err("a body of up to 800 MB");
    assert!(error.contains("smallest lists and texts are too long"), "{error}");
}
