//! Tests how the cost of parsing OpenAPI documents grows with their size.

use super::{Shape, listed, pieces, product, shape, text};
use plimsoll_traffic::import::openapi;

fn read_openapi(input: &[u8]) -> Result<(), String> {
    openapi(text(input)).map(drop).map_err(|error| error.to_string())
}

fn openapi_document(paths: &str, components: &str) -> Vec<u8> {
    format!(
        "{{\"openapi\":\"3.0.0\",\"servers\":[{{\"url\":\"http://h\"}}],\"paths\":{{{paths}}},\"components\":{{{components}}}}}"
    )
    .into_bytes()
}

fn openapi_parameters(count: usize, place: &str) -> String {
    listed(count, |n| {
        format!("{{\"name\":\"p{n}\",\"in\":\"{place}\",\"required\":true,\"schema\":{{\"type\":\"integer\"}}}}")
    })
}

fn get(path: &str, inside: &str) -> String {
    format!("\"{path}\":{{\"get\":{{{inside}}}}}")
}

fn post_path_item(path: &str, kind: &str, schema: &str) -> String {
    format!("\"{path}\":{{\"post\":{{\"requestBody\":{{\"content\":{{\"{kind}\":{{\"schema\":{schema}}}}}}}}}}}")
}

fn schema_properties(count: usize) -> String {
    listed(count, |n| format!("\"k{n}\":{{\"type\":\"string\"}}"))
}

pub fn shapes() -> Vec<Shape> {
    vec![
        shape("OpenAPI: paths", read_openapi, 1_500, |n| {
            openapi_document(&listed(n, |n| get(&format!("/a{n}"), "")), "")
        }),
        shape("OpenAPI: parameters of a path", read_openapi, 2_000, |n| {
            let path = pieces(n, |n| format!("/{{p{n}}}"));
            openapi_document(&get(&path, &format!("\"parameters\":[{}]", openapi_parameters(n, "path"))), "")
        }),
        shape("OpenAPI: parameters that nothing describes", read_openapi, 2_000, |n| {
            openapi_document(&get(&pieces(n, |n| format!("/{{p{n}}}")), ""), "")
        }),
        shape("OpenAPI: parameters of a query", read_openapi, 2_000, |n| {
            openapi_document(&get("/a", &format!("\"parameters\":[{}]", openapi_parameters(n, "query"))), "")
        }),
        shape("OpenAPI: cookies", read_openapi, 2_000, |n| {
            openapi_document(&get("/a", &format!("\"parameters\":[{}]", openapi_parameters(n, "cookie"))), "")
        }),
        shape("OpenAPI: headers", read_openapi, 2_000, |n| {
            openapi_document(&get("/a", &format!("\"parameters\":[{}]", openapi_parameters(n, "header"))), "")
        }),
        product("OpenAPI: paths that share parameters", read_openapi, 700, |n| {
            let item = format!("\"x\":{{\"get\":{{}},\"parameters\":[{}]}}", openapi_parameters(n, "query"));
            let paths = listed(n, |n| format!("\"/a{n}\":{{\"$ref\":\"#/components/pathItems/x\"}}"));
            openapi_document(&paths, &format!("\"pathItems\":{{{item}}}"))
        }),
        product("OpenAPI: paths that share optional parameters", read_openapi, 700, |n| {
            let item = openapi_parameters(n, "query").replace("true", "false");
            let item = format!("\"x\":{{\"get\":{{}},\"parameters\":[{item}]}}");
            let paths = listed(n, |n| format!("\"/a{n}\":{{\"$ref\":\"#/components/pathItems/x\"}}"));
            openapi_document(&paths, &format!("\"pathItems\":{{{item}}}"))
        }),
        shape("OpenAPI: security of an operation", read_openapi, 2_000, |n| {
            let schemes = listed(n, |n| format!("\"s{n}\":{{\"type\":\"apiKey\",\"in\":\"query\",\"name\":\"k{n}\"}}"));
            let choice = listed(n, |n| format!("\"s{n}\":[]"));
            openapi_document(
                &get("/a", &format!("\"security\":[{{{choice}}}]")),
                &format!("\"securitySchemes\":{{{schemes}}}"),
            )
        }),
        shape("OpenAPI: security in cookies", read_openapi, 2_000, |n| {
            let schemes =
                listed(n, |n| format!("\"s{n}\":{{\"type\":\"apiKey\",\"in\":\"cookie\",\"name\":\"k{n}\"}}"));
            let choice = listed(n, |n| format!("\"s{n}\":[]"));
            openapi_document(
                &get("/a", &format!("\"security\":[{{{choice}}}]")),
                &format!("\"securitySchemes\":{{{schemes}}}"),
            )
        }),
        shape("OpenAPI: schemas", read_openapi, 1_000, |n| {
            let schema = |n: usize| format!("\"S{n}\":{{\"type\":\"string\"}}");
            let path = |n: usize| {
                let reference = format!("{{\"$ref\":\"#/components/schemas/S{n}\"}}");
                post_path_item(&format!("/a{n}"), "application/json", &reference)
            };
            openapi_document(&listed(n, path), &format!("\"schemas\":{{{}}}", listed(n, schema)))
        }),
        product("OpenAPI: paths that share a schema", read_openapi, 700, |n| {
            let schema = format!("\"S\":{{\"type\":\"object\",\"properties\":{{{}}}}}", schema_properties(n));
            let path = |n: usize| {
                post_path_item(&format!("/a{n}"), "application/json", "{\"$ref\":\"#/components/schemas/S\"}")
            };
            openapi_document(&listed(n, path), &format!("\"schemas\":{{{schema}}}"))
        }),
        shape("OpenAPI: properties", read_openapi, 2_000, |n| {
            let schema = format!("{{\"type\":\"object\",\"properties\":{{{}}}}}", schema_properties(n));
            openapi_document(&post_path_item("/a", "application/json", &schema), "")
        }),
        shape("OpenAPI: required properties", read_openapi, 2_000, |n| {
            let required = listed(n, |n| format!("\"k{n}\""));
            let schema = format!(
                "{{\"type\":\"object\",\"required\":[{required}],\"properties\":{{{}}}}}",
                schema_properties(n)
            );
            openapi_document(&post_path_item("/a", "application/json", &schema), "")
        }),
        shape("OpenAPI: fields of a form", read_openapi, 1_500, |n| {
            let schema = format!("{{\"type\":\"object\",\"properties\":{{{}}}}}", schema_properties(n));
            openapi_document(&post_path_item("/a", "multipart/form-data", &schema), "")
        }),
        shape("OpenAPI: parts of a schema", read_openapi, 2_000, |n| {
            let parts = listed(n, |n| format!("{{\"properties\":{{\"k{n}\":{{}}}}}}"));
            openapi_document(&post_path_item("/a", "application/json", &format!("{{\"allOf\":[{parts}]}}")), "")
        }),
        shape("OpenAPI: choices of a schema", read_openapi, 2_000, |n| {
            let parts = listed(n, |n| format!("{{\"properties\":{{\"k{n}\":{{}}}}}}"));
            openapi_document(&post_path_item("/a", "application/json", &format!("{{\"oneOf\":[{parts}]}}")), "")
        }),
        shape("OpenAPI: choices of a value", read_openapi, 3_000, |n| {
            let choices = listed(n, |n| format!("\"x{n}\""));
            openapi_document(
                &post_path_item("/a", "application/json", &format!("{{\"type\":\"string\",\"enum\":[{choices}]}}")),
                "",
            )
        }),
        shape("OpenAPI: an example", read_openapi, 3_000, |n| {
            let example = listed(n, |n| format!("{{\"k{n}\":[1,\"x\"]}}"));
            openapi_document(&post_path_item("/a", "application/json", &format!("{{\"example\":[{example}]}}")), "")
        }),
        shape("OpenAPI: answers", read_openapi, 2_000, |n| {
            openapi_document(
                &get("/a", &format!("\"responses\":{{{}}}", listed(n, |n| format!("\"{}\":{{}}", 200 + n)))),
                "",
            )
        }),
        shape("OpenAPI: kinds of a body", read_openapi, 2_000, |n| {
            let kinds = listed(n, |n| format!("\"x/a{n}\":{{\"schema\":{{}}}}"));
            openapi_document(&format!("\"/a\":{{\"post\":{{\"requestBody\":{{\"content\":{{{kinds}}}}}}}}}"), "")
        }),
        shape("OpenAPI: variables of a server", read_openapi, 2_000, |n| {
            let url = pieces(n, |n| format!("/{{v{n}}}"));
            let variables = listed(n, |n| format!("\"v{n}\":{{\"default\":\"x\"}}"));
            let server = format!("{{\"url\":\"http://h{url}\",\"variables\":{{{variables}}}}}");
            format!("{{\"openapi\":\"3.0.0\",\"servers\":[{server}],\"paths\":{{\"/a\":{{\"get\":{{}}}}}}}}")
                .into_bytes()
        }),
        product("OpenAPI: a long variable of a server, many times", read_openapi, 2_000, |n| {
            let (url, value) = ("/{v}".repeat(n), "x".repeat(n));
            let server = format!("{{\"url\":\"http://h{url}\",\"variables\":{{\"v\":{{\"default\":\"{value}\"}}}}}}");
            format!("{{\"openapi\":\"3.0.0\",\"servers\":[{server}],\"paths\":{{\"/a\":{{\"get\":{{}}}}}}}}")
                .into_bytes()
        }),
        shape("OpenAPI: servers", read_openapi, 3_000, |n| {
            let servers = listed(n, |n| format!("{{\"url\":\"http://h{n}\"}}"));
            format!("{{\"openapi\":\"3.0.0\",\"servers\":[{servers}],\"paths\":{{\"/a\":{{\"get\":{{}}}}}}}}")
                .into_bytes()
        }),
        product("OpenAPI: paths that share a server", read_openapi, 500, |n| {
            let variables = listed(n, |n| format!("\"v{n}\":{{\"default\":\"x\"}}"));
            let url = pieces(n, |n| format!("/{{v{n}}}"));
            let item =
                format!("\"x\":{{\"servers\":[{{\"url\":\"{url}\",\"variables\":{{{variables}}}}}],\"get\":{{}}}}");
            let paths = listed(n, |n| format!("\"/a{n}\":{{\"$ref\":\"#/components/pathItems/x\"}}"));
            openapi_document(&paths, &format!("\"pathItems\":{{{item}}}"))
        }),
        shape("Swagger: fields of a form", read_openapi, 1_500, |n| {
            let fields = listed(n, |n| {
                format!("{{\"name\":\"p{n}\",\"in\":\"formData\",\"required\":true,\"type\":\"string\"}}")
            });
            format!(
                "{{\"swagger\":\"2.0\",\"host\":\"h\",\"paths\":{{\"/a\":{{\"post\":{{\"parameters\":[{fields}]}}}}}}}}"
            )
            .into_bytes()
        }),
    ]
}
