//! Coverage-guided fuzzing of traffic files, each in every format. A file is parsed or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_traffic::file::{FileContext, TrafficFile, TrafficFormat};

struct Nothing;

impl FileContext for Nothing {
    fn file(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Err("is not there".into())
    }

    fn read_data_rows(&mut self, path: &str) -> Result<String, String> {
        // The path itself stands for the content of a file of rows.
        Ok(path.to_owned())
    }

    fn check_regex(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn environment_variable(&mut self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }
}

fuzz_target!(|text: &str| {
    for format in [TrafficFormat::Toml, TrafficFormat::Yaml, TrafficFormat::Json] {
        let _ = TrafficFile::read(text, format, &mut Nothing);
    }
});
