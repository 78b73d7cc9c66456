//! Coverage-guided fuzzing of plimsoll-traffic's importers; each gets the same file. The file is
//! imported or refused, and the result of an import is valid TOML.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_traffic::file::{FileContext, TrafficFile, TrafficFormat};
use plimsoll_traffic::import::{curl, import_har, import_jmx, openapi, postman};

struct PermissiveFileContext;

impl FileContext for PermissiveFileContext {
    fn file(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(vec![1])
    }

    fn read_data_rows(&mut self, _: &str) -> Result<String, String> {
        Ok("a,b\n1,2\n".to_owned())
    }

    fn check_regex(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn environment_variable(&mut self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }
}

fuzz_target!(|text: &str| {
    if let Ok(words) = curl::split_curl_command(text) {
        let _ = curl::CurlRequest::read(&words);
    }
    for imported in [import_har(text, None), openapi(text), postman(text), import_jmx(text)].into_iter().flatten() {
        if let Err(error) = TrafficFile::read(&imported.text, TrafficFormat::Toml, &mut PermissiveFileContext) {
            assert!(!error.text.contains("no TOML"), "{error}\n{}", imported.text);
        }
    }
});
