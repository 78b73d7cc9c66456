//! Opens the destination of results: a file, or standard output. Not here: the encodings of
//! results.

use plimsoll_logs::vegeta::VegetaEncoding;
use plimsoll_model::failure::Failure;
use plimsoll_sys::output_file;
use plimsoll_sys::system_text;
use std::io::{IsTerminal, Write};

/// Returns an error if results in a binary encoding would be written to a terminal.
pub fn refuse_bytes_on_terminal(encoding: VegetaEncoding, output: Option<&str>) -> Result<(), Failure> {
    match encoding == VegetaEncoding::Gob && output.is_none() && std::io::stdout().is_terminal() {
        true => Err(Failure::usage("-to gob: binary data cannot go to a terminal; add -output FILE or > FILE")),
        false => Ok(()),
    }
}

/// Opens the output file; with `None`, opens standard output. Also returns the name of the
/// destination for error messages.
pub fn open_output(output: Option<&str>) -> Result<(Box<dyn Write + Send>, String), Failure> {
    match output {
        // A closed standard output is an error, because the results would be lost silently.
        None if plimsoll_sys::process::stdout_was_closed() => {
            Err(Failure::cannot_start("'stdout' is closed: results cannot be written; add -output FILE"))
        }
        None => Ok((Box::new(std::io::stdout()), "stdout".to_owned())),
        Some(path) => {
            let file = output_file::create(path.as_ref()).map_err(|error| write_failure(path, &error))?;
            Ok((Box::new(file), path.to_owned()))
        }
    }
}

/// Returns the error for a failed write to the destination `place`.
pub fn write_failure(place: &str, error: &std::io::Error) -> Failure {
    Failure::cannot_start(format!("'{place}' cannot be written: {}", system_text(error)))
}
