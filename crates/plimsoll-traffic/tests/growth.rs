//! Every reader in one table: an input of twice the size takes about twice the memory and time, or is refused.
//!
//! Memory is counted by the allocator, and so the same on every machine; time is CPU time of the thread, with a bound that a busy
//! machine keeps. Not here: what readers make of their inputs.

#![forbid(unsafe_code)]

use plimsoll_sys::allocations::{Allocations, CountingAllocator, count_allocations};
use plimsoll_sys::clock::thread_cpu_ns;
use plimsoll_traffic::file::{Surroundings, TrafficFile, TrafficFormat};
use plimsoll_traffic::grpc::Schema;
use plimsoll_traffic::import::{har, jmx, openapi, postman};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A world that has everything.
struct Everything;

impl Surroundings for Everything {
    fn file(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(vec![0; 100])
    }

    fn rows(&mut self, _: &str) -> Result<String, String> {
        Ok("c\n1\n".to_owned())
    }

    fn pattern(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn variable(&mut self, _: &str) -> Option<String> {
        Some("x".to_owned())
    }
}

/// A reader: whether it takes the input, or the sentence that refuses it.
type Reader = fn(&str) -> Result<(), String>;

fn read_jmx(text: &str) -> Result<(), String> {
    jmx(text).map(drop).map_err(|error| error.to_string())
}

fn read_openapi(text: &str) -> Result<(), String> {
    openapi(text).map(drop).map_err(|error| error.to_string())
}

fn read_postman(text: &str) -> Result<(), String> {
    postman(text).map(drop).map_err(|error| error.to_string())
}

fn read_har(text: &str) -> Result<(), String> {
    har(text, None).map(drop).map_err(|error| error.to_string())
}

fn read_toml(text: &str) -> Result<(), String> {
    TrafficFile::read(text, TrafficFormat::Toml, &mut Everything).map(drop).map_err(|error| error.to_string())
}

fn read_proto(text: &str) -> Result<(), String> {
    let text = text.to_owned();
    let source = move |name: &str| (name == "a.proto").then(|| Ok(text.clone()));
    Schema::of_protos(&["a.proto".to_owned()], source).map(drop).map_err(|error| error.to_string())
}

/// An input of a size, and how it grows: one dimension of the grammar.
struct Shape {
    name: &'static str,
    read: Reader,
    /// The size at which it takes milliseconds.
    size: usize,
    input: fn(usize) -> String,
}

/// `count` pieces in a row.
fn pieces(count: usize, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect()
}

fn listed(count: usize, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect::<Vec<_>>().join(",")
}

mod xml {
    use super::pieces;

    pub fn plan(inside: &str) -> String {
        format!("<jmeterTestPlan><hashTree>{inside}</hashTree></jmeterTestPlan>")
    }

    pub fn text(name: &str, text: &str) -> String {
        format!("<stringProp name='{name}'>{text}</stringProp>")
    }

    pub fn group(inside: &str) -> String {
        plan(&format!("<ThreadGroup testname='g'/><hashTree>{inside}</hashTree>"))
    }

    pub fn sampler(number: usize, path: &str, below: &str) -> String {
        format!(
            "<HTTPSamplerProxy testname='s{number}'>{}{}</HTTPSamplerProxy><hashTree>{below}</hashTree>",
            text("HTTPSampler.domain", "h"),
            text("HTTPSampler.path", path)
        )
    }

    pub fn samplers(count: usize) -> String {
        pieces(count, |n| sampler(n, "/a", ""))
    }

    /// A manager whose collection has so many elements.
    pub fn manager(kind: &str, collection: &str, count: usize, element: impl Fn(usize) -> String) -> String {
        let elements = pieces(count, |n| format!("<elementProp name='n{n}'>{}</elementProp>", element(n)));
        format!("<{kind}><collectionProp name='{collection}'>{elements}</collectionProp></{kind}><hashTree/>")
    }

    pub fn regex_extractor(number: usize) -> String {
        format!(
            "<RegexExtractor testname='e{number}'>{}{}{}</RegexExtractor><hashTree/>",
            text("RegexExtractor.refname", &format!("v{number}")),
            text("RegexExtractor.regex", "a(.)"),
            text("RegexExtractor.template", "$1$")
        )
    }
}

fn proto(inside: &str) -> String {
    format!("syntax = \"proto3\";\n{inside}")
}

fn shapes() -> Vec<Shape> {
    let cookies = |n| {
        xml::manager("CookieManager", "CookieManager.cookies", n, |_| {
            xml::text("Cookie.value", "x") + &xml::text("Cookie.domain", "h")
        })
    };
    let _ = cookies;
    let all: Vec<(&'static str, Reader, usize, fn(usize) -> String)> = vec![
        (".proto: a repeated file option", read_proto, 400, |n| {
            proto(&pieces(n, |_| "option java_package = \"a\";\n".to_owned()))
        }),
        ("JMX: cookies and samplers", read_jmx, 60, |n| {
            let cookies = xml::manager("CookieManager", "CookieManager.cookies", n, |_| {
                xml::text("Cookie.value", "x") + &xml::text("Cookie.domain", "h")
            });
            xml::group(&(cookies + &xml::samplers(n)))
        }),
        ("TOML: values in a body", read_toml, 1_000, |n| {
            format!("base = \"http://h\"\n[[request]]\npost = \"/\"\nbody = \"{}\"\n", "{{ int(1,9) }}".repeat(n))
        }),
        ("OpenAPI: parameters in a path", read_openapi, 200, |n| {
            let path = pieces(n, |n| format!("/{{p{n}}}"));
            let parameters = listed(n, |n| {
                format!("{{\"name\":\"p{n}\",\"in\":\"path\",\"required\":true,\"schema\":{{\"type\":\"integer\"}}}}")
            });
            format!(
                "{{\"openapi\":\"3.0.0\",\"servers\":[{{\"url\":\"http://h\"}}],\"paths\":{{\"{path}\":{{\"get\":{{\"parameters\":[{parameters}]}}}}}}}}"
            )
        }),
        ("TOML: captures of a scenario", read_toml, 200, |n| {
            let names = listed(n, |n| format!("c{n}=\"$.x\""));
            let uses = pieces(n, |n| format!("{{{{ c{n} }}}}"));
            format!(
                "base = \"http://h\"\n[[scenario]]\n[[scenario.step]]\nget = \"/a\"\ncapture = {{ {names} }}\n[[scenario.step]]\npost = \"/b\"\nbody = \"{uses}\"\n"
            )
        }),
        ("JMX: captured variables", read_jmx, 200, |n| {
            let uses = pieces(n, |n| format!("${{v{n}}}"));
            let extractors = pieces(n, xml::regex_extractor);
            xml::group(&(xml::sampler(0, "/a", &extractors) + &xml::sampler(1, &format!("/{uses}"), "")))
        }),
        (".proto: fields of a message", read_proto, 400, |n| {
            proto(&format!("message A {{ {} }}", pieces(n, |n| format!("string f{n} = {};\n", n + 1))))
        }),
        ("OpenAPI: security of an operation", read_openapi, 200, |n| {
            let schemes = listed(n, |n| format!("\"s{n}\":{{\"type\":\"apiKey\",\"in\":\"query\",\"name\":\"k{n}\"}}"));
            let security = listed(n, |n| format!("\"s{n}\":[]"));
            format!(
                "{{\"openapi\":\"3.0.0\",\"servers\":[{{\"url\":\"http://h\"}}],\"components\":{{\"securitySchemes\":{{{schemes}}}}},\"paths\":{{\"/a\":{{\"get\":{{\"security\":[{{{security}}}]}}}}}}}}"
            )
        }),
        (".proto: parts of a package", read_proto, 1_000, |n| {
            proto(&format!("package {};", (0..n).map(|n| format!("p{n}")).collect::<Vec<_>>().join(".")))
        }),
    ];
    all.into_iter().map(|(name, read, size, input)| Shape { name, read, size, input }).collect()
}

/// What one reading took.
struct Cost {
    input_bytes: usize,
    allocated: Allocations,
    cpu_ns: u64,
    refusal: Option<String>,
}

fn cost(shape: &Shape, size: usize) -> Cost {
    let input = (shape.input)(size);
    let began_ns = thread_cpu_ns();
    let (result, allocated) = count_allocations(|| (shape.read)(&input));
    Cost { input_bytes: input.len(), allocated, cpu_ns: thread_cpu_ns() - began_ns, refusal: result.err() }
}

/// Measures shapes whose names contain `GROWTH_SHAPE` at `GROWTH_SIZE` and four times that: for people.
#[test]
#[ignore = "a measurement for people"]
fn measure() {
    let wanted = std::env::var("GROWTH_SHAPE").unwrap_or_default();
    let factor: usize = std::env::var("GROWTH_FACTOR").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    for shape in shapes().iter().filter(|shape| shape.name.contains(&wanted)) {
        for times in [factor, 4 * factor] {
            let cost = cost(shape, shape.size * times);
            println!(
                "{:<40} {:>8} {:>10} B {:>8.3} s {:>12} B allocated, peak {:>11}, {:>8} times {}",
                shape.name,
                shape.size * times,
                cost.input_bytes,
                cost.cpu_ns as f64 / 1e9,
                cost.allocated.bytes,
                cost.allocated.peak_bytes,
                cost.allocated.count,
                cost.refusal.map_or_else(String::new, |text| text.chars().take(150).collect())
            );
        }
    }
}
