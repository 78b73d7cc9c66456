//! Tests `plimsoll import` end to end: `check` accepts an imported file, `run` sends its requests,
//! and an invalid source is refused.

use crate::test_support::{create_new_folder, number_at_path, plimsoll, run_to_json, start_baseline};
use std::path::Path;

fn path_text(path: &Path) -> &str {
    path.to_str().expect("text")
}

const API: &str = r#"{"openapi": "3.1.0", "info": {"title": "T"}, "servers": [{"url": "URL"}], "paths": {
    "/bytes/{n}": {"get": {"operationId": "bytes", "parameters": [
        {"name": "n", "in": "path", "required": true, "schema": {"type": "integer", "minimum": 1, "maximum": 9}}],
        "responses": {"200": {}}}},
    "/status/404": {"get": {"responses": {"200": {}}}}}}"#;

#[test]
fn requests_of_an_imported_api_description_are_sent() {
    let (server, folder) = (start_baseline(1), create_new_folder("import"));
    let (api, mix) = (folder.join("api.json"), folder.join("api.toml"));
    std::fs::write(&api, API.replace("URL", server.url.trim_end_matches('/'))).expect("written");
    let done = plimsoll(&["import", "openapi", path_text(&api), "-o", path_text(&mix)]);
    assert_eq!((done.code, done.stdout.as_str()), (0, ""), "{}", done.stderr);
    assert!(done.stderr.contains("2 requests") && done.stderr.contains("api.json:3:"), "{}", done.stderr);
    assert_eq!(plimsoll(&["check", "-f", path_text(&mix)]).code, 0);
    let document = run_to_json(&["run", "-f", path_text(&mix), "-n", "40", "-c", "2"]);
    assert_eq!(number_at_path(&document, "ledger.scheduled"), 40.0);
    let routes = document["routes"].as_array().expect("routes");
    assert_eq!(routes[0]["name"], "bytes");
    assert_eq!((number_at_path(&routes[0], "success_rate"), number_at_path(&routes[1], "success_rate")), (1.0, 0.0));
}

#[test]
fn unimportable_documents_are_refused() {
    let folder = create_new_folder("import");
    let (cut, latin) = (folder.join("cut.har"), folder.join("latin.har"));
    std::fs::write(&cut, "{\"log\": {\n  \"entries\": [").expect("written");
    std::fs::write(&latin, b"{\n\"\xe9\"}").expect("written");
    for (words, said) in [
        (vec!["har", path_text(&cut)], "cut.har:2:15: this is not JSON"),
        (vec!["jmx", path_text(&cut)], "cut.har:1:1: this is not complete XML"),
        (vec!["har", path_text(&latin)], "latin.har:2: this is not UTF-8"),
        (vec!["har", "/nowhere/a.har"], "/nowhere/a.har"),
        (vec!["har", "http://127.0.0.1:9/a.har"], "only an API description"),
        (vec!["openapi", "http://127.0.0.1:9/a.json"], "is the server running?"),
        (vec!["openapi", path_text(&cut), "--host", "h"], "--host"),
        (vec!["hat", path_text(&cut)], "har"),
    ] {
        let done = plimsoll(&[&["import"][..], &words].concat());
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{words:?}: {}", done.stderr);
        assert!(done.stderr.contains(said), "{words:?}: {}", done.stderr);
    }
}
