//! A file of traffic named on the command line: read with what it names beside it. What it means is `plimsoll_traffic`'s to say.

use crate::failure::Failure;
use crate::files::{self, Use};
use plimsoll_model::Plan;
use plimsoll_traffic::file::{Surroundings, TrafficFile, TrafficFormat};
use std::path::{Path, PathBuf};

/// Reads a file. The error names it, with line and column.
pub fn read(path: &Path) -> Result<TrafficFile, Failure> {
    let named = path.display();
    let bytes =
        files::read(path, Use::Traffic).map_err(|why| Failure::start(format!("-f: the file '{named}' {why}")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        Failure::usage(format!("{named}:{line}: this is no text in UTF-8: save the file as UTF-8"))
    })?;
    let mut beside = Beside { folder: path.parent().unwrap_or(Path::new("")).to_owned() };
    let format = TrafficFormat::of_name(&path.to_string_lossy());
    TrafficFile::read(&text, format, &mut beside).map_err(|error| Failure::usage(format!("{named}:{error}")))
}

/// Whether every request of a plan from a file can be written as HTTP. The error names the request.
pub fn encodes(plan: &Plan) -> Result<(), Failure> {
    plan.traffic.routes.iter().try_for_each(|route| {
        plimsoll_engine::encode_request(plan, &route.request)
            .map(|_| ())
            .map_err(|error| Failure::usage(format!("-f: the request '{}': {error}", route.label)))
    })
}

/// The folder of a file of traffic.
struct Beside {
    folder: PathBuf,
}

impl Surroundings for Beside {
    fn file(&mut self, path: &str) -> Result<Vec<u8>, String> {
        files::read(&self.folder.join(path), Use::Body)
    }
}
