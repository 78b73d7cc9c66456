//! `plimsoll import`: a file of traffic from a recording, a description of an API, or the file of
//! another tool. What could not be carried over is listed; what a file means is
//! `plimsoll_traffic`'s to say.

use crate::args::{ImportArgs, ImportKind};
use crate::pictures::write;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_probe::fetch::{ByteBudget, FetchResponse, fetch};
use plimsoll_study::file_traffic::plan_of;
use plimsoll_study::output::{note, print_as_it_is};
use plimsoll_study::target::resolve_plain;
use plimsoll_study::traffic_file::{self, text_of};
use plimsoll_sys::files::{self, Use};
use plimsoll_traffic::file::TrafficFileError;
use plimsoll_traffic::import::{ImportResult, har, jmx, openapi, postman};
use plimsoll_traffic::target_url::redact_query;
use std::path::Path;
use std::time::Duration;

/// Bytes of a description that are fetched, at most, and how long that may take.
const FETCHED_BYTES_MAX: usize = 64 << 20;
const FETCHED_WITHIN: Duration = Duration::from_secs(30);
/// Lines of what was left out, at most; the rest is counted.
const LINES_MAX: usize = 50;

/// Reads the file, writes a file of traffic, and says with which code to end.
pub fn run(args: &ImportArgs) -> Result<u8, Failure> {
    if args.host.is_some() && args.kind != ImportKind::Har {
        return Err(Failure::usage("--host: only a recording (har) has several hosts"));
    }
    let (name, text) = source(args)?;
    let imported =
        imported(args.kind, &text, args.host.as_deref()).map_err(|error| Failure::usage(format!("{name}:{error}")))?;
    match &args.output {
        Some(path) => {
            write(path, imported.text.as_bytes())?;
            note(&format!("wrote {}: {}", path.display(), requests(imported.requests)));
        }
        // What steers a terminal is escaped in it already, in the way of TOML: it is byte for byte
        // what a file would be.
        None => print_as_it_is(&imported.text),
    }
    say_left_out(&name, &imported);
    let folder = args.output.as_ref().and_then(|path| path.parent()).unwrap_or(Path::new(""));
    match lacks(&imported.text, folder) {
        None => Ok(exit::DONE),
        Some(lacks) => Err(Failure::usage(format!("the imported traffic is incomplete: {lacks}"))),
    }
}

/// What is made of a text.
fn imported(kind: ImportKind, text: &str, host: Option<&str>) -> Result<ImportResult, TrafficFileError> {
    match kind {
        ImportKind::Har => har(text, host),
        ImportKind::Openapi => openapi(text),
        ImportKind::Postman => postman(text),
        ImportKind::Jmx => jmx(text),
    }
}

/// What a file lacks to be asked, as `check` and `run` would say; `None`: nothing.
fn lacks(text: &str, folder: &Path) -> Option<String> {
    let (file, lacks) = match traffic_file::lacks(text, folder) {
        Ok(read) => read,
        Err(lacks) => return Some(lacks),
    };
    if !lacks.is_empty() {
        return Some(lacks.join(", "));
    }
    let asked = plan_of(&file, "what was imported", None, None);
    asked.and_then(|(plan, _)| traffic_file::encodes(&plan)).err().map(|failure| failure.to_string())
}

fn requests(count: usize) -> String {
    if count == 1 { "1 request".to_owned() } else { format!("{count} requests") }
}

/// The name of what is read, as it may be told, and its text.
fn source(args: &ImportArgs) -> Result<(String, String), Failure> {
    let source = &args.source;
    if source == "-" {
        let bytes = files::read_stdin(Use::Import).map_err(|why| Failure::start(format!("standard input {why}")))?;
        return text_of(bytes, "standard input").map(|text| ("standard input".to_owned(), text));
    }
    if !source.contains("://") {
        let bytes = files::read(Path::new(source), Use::Import)
            .map_err(|why| Failure::start(format!("the file '{source}' {why}")))?;
        return text_of(bytes, source).map(|text| (source.clone(), text));
    }
    if args.kind != ImportKind::Openapi {
        return Err(Failure::usage(format!(
            "'{}': only an API description (openapi) may have an address; save the rest as a file",
            redact_query(source)
        )));
    }
    let target = resolve_plain(source, args.allow_public)?;
    let name = redact_query(source);
    match fetch(&target, &target.path, FETCHED_WITHIN, &ByteBudget::new(FETCHED_BYTES_MAX)) {
        Ok(FetchResponse { status: 200..=299, body }) => text_of(body, &name).map(|text| (name, text)),
        Ok(FetchResponse { status, .. }) => {
            Err(Failure::start(format!("'{name}' has status {status}: give the address of the description itself")))
        }
        Err(error) => Err(Failure::start(format!("'{name}': the fetch failed: {}", error.text()))),
    }
}

/// What the file of traffic lacks, by place.
fn say_left_out(name: &str, imported: &ImportResult) {
    let left_out = &imported.left_out;
    if left_out.is_empty() {
        return;
    }
    note("without an exact equivalent:");
    for left in left_out.iter().take(LINES_MAX) {
        note(&format!("  {name}:{}:{}: {}", left.at.line, left.at.column, left.text));
    }
    if left_out.len() > LINES_MAX {
        note(&format!("  and {} more", left_out.len() - LINES_MAX));
    }
}
