//! Fuzzes the importers of plimsoll-traffic by coverage: the first byte says which, the others are the file. It is understood or
//! refused, and what is made of it is TOML.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_traffic::file::{Surroundings, TrafficFile, TrafficFormat};
use plimsoll_traffic::import::{curl, har, jmx, openapi, postman};

struct Everything;

impl Surroundings for Everything {
    fn file(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(vec![1])
    }

    fn rows(&mut self, _: &str) -> Result<String, String> {
        Ok("a,b\n1,2\n".to_owned())
    }

    fn pattern(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn variable(&mut self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }
}

fuzz_target!(|data: &[u8]| {
    let [first, rest @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let imported = match first % 5 {
        0 => har(text, None),
        1 => openapi(text),
        2 => postman(text),
        3 => jmx(text),
        _ => {
            let _ = curl::words(text).and_then(|words| curl::CurlRequest::read(&words));
            return;
        }
    };
    if let Ok(imported) = imported
        && let Err(error) = TrafficFile::read(&imported.text, TrafficFormat::Toml, &mut Everything)
    {
        assert!(!error.text.contains("no TOML"), "{error}\n{}", imported.text);
    }
});
