//! Tests how the cost of parsing OpenAPI documents grows with their size.

use super::{
    GrowingInput, comma_separated_pieces, concatenated_pieces, growing_input, two_dimensional_input, utf8_text,
};
use plimsoll_traffic::import::import_openapi;

fn read_openapi(input: &[u8]) -> Result<(), String> {
    import_openapi(utf8_text(input)).map(drop).map_err(|error| error.to_string())
}

fn openapi_document(paths: &str, components: &str) -> Vec<u8> {
    format!(
        "{{\"openapi\":\"3.0.0\",\"servers\":[{{\"url\":\"http://h\"}}],\"paths\":{{{paths}}},\"components\":{{{components}}}}}"
    )
    .into_bytes()
}

fn openapi_parameters(count: usize, place: &str) -> String {
    comma_separated_pieces(count, |n| {
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
    comma_separated_pieces(count, |n| format!("\"k{n}\":{{\"type\":\"string\"}}"))
}

pub fn shapes() -> Vec<GrowingInput> {
    vec![
        growing_input("OpenAPI: paths", read_openapi, 1_500, |n| {
            openapi_document(&comma_separated_pieces(n, |n| get(&format!("/a{n}"), "")), "")
        }),
        growing_input("OpenAPI: parameters of a path", read_openapi, 2_000, |n| {
            let path = concatenated_pieces(n, |n| format!("/{{p{n}}}"));
            openapi_document(&get(&path, &format!("\"parameters\":[{}]", openapi_parameters(n, "path"))), "")
        }),
        growing_input("OpenAPI: parameters that nothing describes", read_openapi, 2_000, |n| {
            openapi_document(&get(&concatenated_pieces(n, |n| format!("/{{p{n}}}")), ""), "")
        }),
        growing_input("OpenAPI: parameters of a query", read_openapi, 2_000, |n| {
            openapi_document(&get("/a", &format!("\"parameters\":[{}]", openapi_parameters(n, "query"))), "")
        }),
        growing_input("OpenAPI: cookies", read_openapi, 2_000, |n| {
            openapi_document(&get("/a", &format!("\"parameters\":[{}]", openapi_parameters(n, "cookie"))), "")
        }),
        growing_input("OpenAPI: headers", read_openapi, 2_000, |n| {
            openapi_document(&get("/a", &format!("\"parameters\":[{}]", openapi_parameters(n, "header"))), "")
        }),
        two_dimensional_input("OpenAPI: paths that share parameters", read_openapi, 700, |n| {
            let item = format!("\"x\":{{\"get\":{{}},\"parameters\":[{}]}}", openapi_parameters(n, "query"));
            let paths = comma_separated_pieces(n, |n| format!("\"/a{n}\":{{\"$ref\":\"#/components/pathItems/x\"}}"));
            openapi_document(&paths, &format!("\"pathItems\":{{{item}}}"))
        }),
        two_dimensional_input("OpenAPI: paths that share optional parameters", read_openapi, 700, |n| {
            let item = openapi_parameters(n, "query").replace("true", "false");
            let item = format!("\"x\":{{\"get\":{{}},\"parameters\":[{item}]}}");
            let paths = comma_separated_pieces(n, |n| format!("\"/a{n}\":{{\"$ref\":\"#/components/pathItems/x\"}}"));
            openapi_document(&paths, &format!("\"pathItems\":{{{item}}}"))
        }),
        growing_input("OpenAPI: security of an operation", read_openapi, 2_000, |n| {
            let schemes = comma_separated_pieces(n, |n| {
                format!("\"s{n}\":{{\"type\":\"apiKey\",\"in\":\"query\",\"name\":\"k{n}\"}}")
            });
            let choice = comma_separated_pieces(n, |n| format!("\"s{n}\":[]"));
            openapi_document(
                &get("/a", &format!("\"security\":[{{{choice}}}]")),
                &format!("\"securitySchemes\":{{{schemes}}}"),
            )
        }),
        growing_input("OpenAPI: security in cookies", read_openapi, 2_000, |n| {
            let schemes = comma_separated_pieces(n, |n| {
                format!("\"s{n}\":{{\"type\":\"apiKey\",\"in\":\"cookie\",\"name\":\"k{n}\"}}")
            });
            let choice = comma_separated_pieces(n, |n| format!("\"s{n}\":[]"));
            openapi_document(
                &get("/a", &format!("\"security\":[{{{choice}}}]")),
                &format!("\"securitySchemes\":{{{schemes}}}"),
            )
        }),
        growing_input("OpenAPI: schemas", read_openapi, 1_000, |n| {
            let schema = |n: usize| format!("\"S{n}\":{{\"type\":\"string\"}}");
            let path = |n: usize| {
                let reference = format!("{{\"$ref\":\"#/components/schemas/S{n}\"}}");
                post_path_item(&format!("/a{n}"), "application/json", &reference)
            };
            openapi_document(
                &comma_separated_pieces(n, path),
                &format!("\"schemas\":{{{}}}", comma_separated_pieces(n, schema)),
            )
        }),
        two_dimensional_input("OpenAPI: paths that share a schema", read_openapi, 700, |n| {
            let schema = format!("\"S\":{{\"type\":\"object\",\"properties\":{{{}}}}}", schema_properties(n));
            let path = |n: usize| {
                post_path_item(&format!("/a{n}"), "application/json", "{\"$ref\":\"#/components/schemas/S\"}")
            };
            openapi_document(&comma_separated_pieces(n, path), &format!("\"schemas\":{{{schema}}}"))
        }),
        growing_input("OpenAPI: properties", read_openapi, 2_000, |n| {
            let schema = format!("{{\"type\":\"object\",\"properties\":{{{}}}}}", schema_properties(n));
            openapi_document(&post_path_item("/a", "application/json", &schema), "")
        }),
        growing_input("OpenAPI: required properties", read_openapi, 2_000, |n| {
            let required = comma_separated_pieces(n, |n| format!("\"k{n}\""));
            let schema = format!(
                "{{\"type\":\"object\",\"required\":[{required}],\"properties\":{{{}}}}}",
                schema_properties(n)
            );
            openapi_document(&post_path_item("/a", "application/json", &schema), "")
        }),
        growing_input("OpenAPI: fields of a form", read_openapi, 1_500, |n| {
            let schema = format!("{{\"type\":\"object\",\"properties\":{{{}}}}}", schema_properties(n));
            openapi_document(&post_path_item("/a", "multipart/form-data", &schema), "")
        }),
        growing_input("OpenAPI: parts of a schema", read_openapi, 2_000, |n| {
            let parts = comma_separated_pieces(n, |n| format!("{{\"properties\":{{\"k{n}\":{{}}}}}}"));
            openapi_document(&post_path_item("/a", "application/json", &format!("{{\"allOf\":[{parts}]}}")), "")
        }),
        growing_input("OpenAPI: choices of a schema", read_openapi, 2_000, |n| {
            let parts = comma_separated_pieces(n, |n| format!("{{\"properties\":{{\"k{n}\":{{}}}}}}"));
            openapi_document(&post_path_item("/a", "application/json", &format!("{{\"oneOf\":[{parts}]}}")), "")
        }),
        growing_input("OpenAPI: choices of a value", read_openapi, 3_000, |n| {
            let choices = comma_separated_pieces(n, |n| format!("\"x{n}\""));
            openapi_document(
                &post_path_item("/a", "application/json", &format!("{{\"type\":\"string\",\"enum\":[{choices}]}}")),
                "",
            )
        }),
        growing_input("OpenAPI: an example", read_openapi, 3_000, |n| {
            let example = comma_separated_pieces(n, |n| format!("{{\"k{n}\":[1,\"x\"]}}"));
            openapi_document(&post_path_item("/a", "application/json", &format!("{{\"example\":[{example}]}}")), "")
        }),
        growing_input("OpenAPI: answers", read_openapi, 2_000, |n| {
            openapi_document(
                &get(
                    "/a",
                    &format!("\"responses\":{{{}}}", comma_separated_pieces(n, |n| format!("\"{}\":{{}}", 200 + n))),
                ),
                "",
            )
        }),
        growing_input("OpenAPI: kinds of a body", read_openapi, 2_000, |n| {
            let kinds = comma_separated_pieces(n, |n| format!("\"x/a{n}\":{{\"schema\":{{}}}}"));
            openapi_document(&format!("\"/a\":{{\"post\":{{\"requestBody\":{{\"content\":{{{kinds}}}}}}}}}"), "")
        }),
        growing_input("OpenAPI: variables of a server", read_openapi, 2_000, |n| {
            let url = concatenated_pieces(n, |n| format!("/{{v{n}}}"));
            let variables = comma_separated_pieces(n, |n| format!("\"v{n}\":{{\"default\":\"x\"}}"));
            let server = format!("{{\"url\":\"http://h{url}\",\"variables\":{{{variables}}}}}");
            format!("{{\"openapi\":\"3.0.0\",\"servers\":[{server}],\"paths\":{{\"/a\":{{\"get\":{{}}}}}}}}")
                .into_bytes()
        }),
        two_dimensional_input("OpenAPI: a long variable of a server, many times", read_openapi, 2_000, |n| {
            let (url, value) = ("/{v}".repeat(n), "x".repeat(n));
            let server = format!("{{\"url\":\"http://h{url}\",\"variables\":{{\"v\":{{\"default\":\"{value}\"}}}}}}");
            format!("{{\"openapi\":\"3.0.0\",\"servers\":[{server}],\"paths\":{{\"/a\":{{\"get\":{{}}}}}}}}")
                .into_bytes()
        }),
        growing_input("OpenAPI: servers", read_openapi, 3_000, |n| {
            let servers = comma_separated_pieces(n, |n| format!("{{\"url\":\"http://h{n}\"}}"));
            format!("{{\"openapi\":\"3.0.0\",\"servers\":[{servers}],\"paths\":{{\"/a\":{{\"get\":{{}}}}}}}}")
                .into_bytes()
        }),
        two_dimensional_input("OpenAPI: paths that share a server", read_openapi, 500, |n| {
            let variables = comma_separated_pieces(n, |n| format!("\"v{n}\":{{\"default\":\"x\"}}"));
            let url = concatenated_pieces(n, |n| format!("/{{v{n}}}"));
            let item =
                format!("\"x\":{{\"servers\":[{{\"url\":\"{url}\",\"variables\":{{{variables}}}}}],\"get\":{{}}}}");
            let paths = comma_separated_pieces(n, |n| format!("\"/a{n}\":{{\"$ref\":\"#/components/pathItems/x\"}}"));
            openapi_document(&paths, &format!("\"pathItems\":{{{item}}}"))
        }),
        growing_input("Swagger: fields of a form", read_openapi, 1_500, |n| {
            let fields = comma_separated_pieces(n, |n| {
                format!("{{\"name\":\"p{n}\",\"in\":\"formData\",\"required\":true,\"type\":\"string\"}}")
            });
            format!(
                "{{\"swagger\":\"2.0\",\"host\":\"h\",\"paths\":{{\"/a\":{{\"post\":{{\"parameters\":[{fields}]}}}}}}}}"
            )
            .into_bytes()
        }),
    ]
}
