//! `plimsoll import`: converts a recording, an API description or another tool's file to a traffic
//! file. The command lists the parts that have no equivalent in a traffic file. Not here:
//! interpreting the formats (`plimsoll_traffic`).

use crate::args::{ImportArgs, ImportKind};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_study::import_source::{missing_inputs_text, read_import_source};
use plimsoll_study::output::write_and_note;
use plimsoll_study::output::{print_to_stderr, print_unescaped};
use plimsoll_traffic::file::TrafficFileError;
use plimsoll_traffic::import::{ImportResult, import_har, import_jmx, import_openapi, import_postman};
use std::path::Path;

/// The largest number of printed lines about parts that have no equivalent in a traffic file.
/// Further parts without an equivalent are only counted.
const OMISSION_LINES_MAX: usize = 50;

/// Reads the source and writes the traffic file. Returns the exit code, or a usage error if the
/// imported traffic is incomplete.
pub fn run(args: &ImportArgs) -> Result<u8, Failure> {
    if args.host.is_some() && args.kind != ImportKind::Har {
        return Err(Failure::usage("--host: only a browser's recording (har) has several hosts; leave --host out"));
    }
    let (name, text) = read_import_source(&args.source, args.kind == ImportKind::Openapi, args.allow_public)?;
    let imported = convert_to_traffic(args.kind, &text, args.host.as_deref())
        .map_err(|error| Failure::usage(format!("{name}:{error}")))?;
    match &args.output {
        Some(path) => {
            let what = format!(": {}", request_count_text(imported.requests));
            write_and_note(path, imported.text.as_bytes(), &what)?;
        }
        // Control characters are already escaped in the TOML text, so the text is printed
        // unchanged, with the same bytes as in a file.
        None => print_unescaped(&imported.text),
    }
    print_omissions(&name, &imported);
    let folder = args.output.as_ref().and_then(|path| path.parent()).unwrap_or(Path::new(""));
    match missing_inputs_text(&imported.text, folder) {
        None => Ok(exit::SUCCESS),
        Some(problem) => Err(Failure::usage(format!("the imported traffic is incomplete: {problem}"))),
    }
}

/// Converts a text of the format `kind` to a traffic file.
fn convert_to_traffic(kind: ImportKind, text: &str, host: Option<&str>) -> Result<ImportResult, TrafficFileError> {
    match kind {
        ImportKind::Har => import_har(text, host),
        ImportKind::Openapi => import_openapi(text),
        ImportKind::Postman => import_postman(text),
        ImportKind::Jmx => import_jmx(text),
    }
}

fn request_count_text(count: usize) -> String {
    if count == 1 { "1 request".to_owned() } else { format!("{count} requests") }
}

/// Prints the parts that have no equivalent in the traffic file, each with its position.
fn print_omissions(name: &str, imported: &ImportResult) {
    let left_out = &imported.left_out;
    if left_out.is_empty() {
        return;
    }
    print_to_stderr("plimsoll did not import these parts, or changed them:");
    for left in left_out.iter().take(OMISSION_LINES_MAX) {
        print_to_stderr(&format!("  {name}:{}:{}: {}", left.at.line, left.at.column, left.text));
    }
    if left_out.len() > OMISSION_LINES_MAX {
        print_to_stderr(&format!("  and {} more", left_out.len() - OMISSION_LINES_MAX));
    }
}
