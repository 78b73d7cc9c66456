//! Reads the source of an import, and checks whether the resulting traffic file is usable.
//!
//! Not here: parsing the imported formats (`plimsoll_traffic::import`).

use crate::file_traffic::plan_of;
use crate::target::resolve_plain;
use crate::traffic_file::{self, text_of};
use plimsoll_model::failure::Failure;
use plimsoll_probe::fetch::{ByteBudget, FetchResponse, fetch};
use plimsoll_sys::files::{self, Use};
use plimsoll_traffic::target_url::redact_query;
use std::path::Path;
use std::time::Duration;

/// The longest API description that is fetched from a URL, bytes (64 MiB).
const FETCHED_BYTES_MAX: usize = 64 << 20;
/// The longest time for fetching an API description.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);
/// Reads an import source: a file, standard input (`-`), or a URL if `may_fetch`. Returns the
/// redacted name of the source and its text.
pub fn read(source: &str, may_fetch: bool, allow_public: bool) -> Result<(String, String), Failure> {
    if source == "-" {
        let bytes = files::read_stdin(Use::Import).map_err(|why| Failure::start(format!("standard input {why}")))?;
        return text_of(bytes, "standard input").map(|text| ("standard input".to_owned(), text));
    }
    if !source.contains("://") {
        let bytes = files::read(Path::new(source), Use::Import)
            .map_err(|why| Failure::start(format!("the file '{source}' {why}")))?;
        return text_of(bytes, source).map(|text| (source.to_owned(), text));
    }
    if !may_fetch {
        return Err(Failure::usage(format!(
            "'{address}': only an API description (openapi) may have an address; save other sources as files",
            address = redact_query(source)
        )));
    }
    let target = resolve_plain(source, allow_public)?;
    let name = redact_query(source);
    match fetch(&target, &target.path, FETCH_TIMEOUT, &ByteBudget::new(FETCHED_BYTES_MAX)) {
        Ok(FetchResponse { status: 200..=299, body }) => text_of(body, &name).map(|text| (name, text)),
        Ok(FetchResponse { status, .. }) => {
            Err(Failure::start(format!("'{name}' has status {status}: give the address of the description itself")))
        }
        Err(error) => Err(Failure::start(format!("'{name}': the fetch failed: {}", error.text()))),
    }
}

/// Returns a text about the inputs that a traffic file needs and that do not exist; `None` if all
/// inputs exist. The commands `check` and `run` report the same inputs.
pub fn missing_inputs_text(text: &str, folder: &Path) -> Option<String> {
    let (file, lacks) = match traffic_file::missing_inputs(text, folder) {
        Ok(read) => read,
        Err(lacks) => return Some(lacks),
    };
    if !lacks.is_empty() {
        return Some(lacks.join(", "));
    }
    let asked = plan_of(&file, "what was imported", None, None);
    asked.and_then(|(plan, _)| traffic_file::check_encodable(&plan)).err().map(|failure| failure.to_string())
}
