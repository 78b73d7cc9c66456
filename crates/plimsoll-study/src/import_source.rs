//! Reads the source of an import, and checks whether the resulting traffic file is usable.
//!
//! Not here: parsing the imported formats (`plimsoll_traffic::import`).

use crate::file_traffic::plan_from_traffic_file;
use crate::target::resolve_plain_http_url;
use crate::traffic_file::{self, decode_utf8};
use plimsoll_model::failure::Failure;
use plimsoll_probe::fetch::{ByteBudget, FetchResponse, fetch};
use plimsoll_sys::files::{self, FilePurpose};
use plimsoll_traffic::target_url::redact_query;
use std::path::Path;
use std::time::Duration;

/// The longest API description that is fetched from a URL, bytes (64 MiB).
const FETCHED_BYTES_MAX: usize = 64 << 20;
/// The longest time for fetching an API description.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);
/// Reads an import source: a file, standard input (`-`), or a URL if `may_fetch`. Returns the
/// redacted name of the source and its text.
pub fn read_import_source(source: &str, may_fetch: bool, allow_public: bool) -> Result<(String, String), Failure> {
    if source == "-" {
        let bytes = files::read_stdin(FilePurpose::Import)
            .map_err(|why| Failure::cannot_start(format!("standard input {why}")))?;
        return decode_utf8(bytes, "standard input").map(|text| ("standard input".to_owned(), text));
    }
    if !source.contains("://") {
        let bytes = files::read(Path::new(source), FilePurpose::Import)
            .map_err(|why| Failure::cannot_start(format!("the file '{source}' {why}")))?;
        return decode_utf8(bytes, source).map(|text| (source.to_owned(), text));
    }
    if !may_fetch {
        return Err(Failure::usage(format!(
            "'{address}': only an API description (openapi) may have an address; save other sources as files",
            address = redact_query(source)
        )));
    }
    let target = resolve_plain_http_url(source, allow_public)?;
    let name = redact_query(source);
    match fetch(&target, &target.path, FETCH_TIMEOUT, &ByteBudget::new(FETCHED_BYTES_MAX)) {
        Ok(FetchResponse { status: 200..=299, body }) => decode_utf8(body, &name).map(|text| (name, text)),
        Ok(FetchResponse { status, .. }) => Err(Failure::cannot_start(format!(
            "the response of '{name}' has status {status}: give the address of the API description"
        ))),
        Err(error) => Err(Failure::cannot_start(format!("'{name}': the fetch failed: {}", error.error_message()))),
    }
}

/// Returns a text that names the missing files and environment variables of a traffic file, or says
/// why its requests cannot be sent. Returns `None` if the traffic file is usable. The commands
/// `check` and `run` report the same problems for the traffic file.
pub fn missing_inputs_text(text: &str, folder: &Path) -> Option<String> {
    let (file, lacks) = match traffic_file::missing_inputs(text, folder) {
        Ok(read) => read,
        Err(lacks) => return Some(lacks),
    };
    if !lacks.is_empty() {
        return Some(lacks.join(", "));
    }
    let asked = plan_from_traffic_file(&file, "what was imported", None, None);
    asked.and_then(|(plan, _)| traffic_file::check_encodable(&plan)).err().map(|failure| failure.to_string())
}
