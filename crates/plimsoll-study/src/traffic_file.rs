//! Reads the traffic file that the command line names, and the files that the traffic file names.
//! The parser is in `plimsoll_traffic`.
//!
//! Not here: building the traffic of each target (`file_traffic`).

use crate::grpc;
use plimsoll_engine::PatternCache;
use plimsoll_model::Plan;
use plimsoll_model::data::RowChoice;
use plimsoll_model::failure::Failure;
use plimsoll_model::redact::REDACTED;
use plimsoll_model::traffic::RouteChoice;
use plimsoll_sys::files::{self, FilePurpose};
use plimsoll_traffic::file::{FileContext, TrafficFile, TrafficFormat};
use std::path::{Path, PathBuf};

/// Reads a traffic file whose requests will be sent, with the values of environment variables.
/// Errors name the file, line and column.
pub fn read(path: &Path) -> Result<TrafficFile, Failure> {
    read_with(path, true)
}

/// Reads a traffic file to display it, without the values of environment variables.
pub fn read_to_show(path: &Path) -> Result<TrafficFile, Failure> {
    read_with(path, false)
}

/// Parses a traffic file. Returns the parsed file, and the missing environment variables and files
/// that the traffic file needs. Fails if the traffic file has a problem other than missing
/// variables and files.
pub fn missing_inputs(text: &str, folder: &Path) -> Result<(TrafficFile, Vec<String>), String> {
    let beside = TrafficFolder::new(folder, false);
    let mut asked = MissingInputFinder { beside, lacks: Vec::new() };
    let file = TrafficFile::read(text, TrafficFormat::Toml, &mut asked);
    match file {
        Ok(file) => Ok((file, asked.lacks)),
        Err(error) => {
            asked.lacks.push(error.text);
            Err(asked.lacks.join(", "))
        }
    }
}

fn read_with(path: &Path, shows_variables: bool) -> Result<TrafficFile, Failure> {
    let named = path.display();
    let bytes = files::read(path, FilePurpose::Traffic)
        .map_err(|why| Failure::cannot_start(format!("-f: the file '{named}' {why}")))?;
    let text = decode_utf8(bytes, &named.to_string())?;
    let mut beside = TrafficFolder::new(path.parent().unwrap_or(Path::new("")), shows_variables);
    let format = TrafficFormat::from_file_name(&path.to_string_lossy());
    TrafficFile::read(&text, format, &mut beside).map_err(|error| Failure::usage(format!("{named}:{error}")))
}

/// Decodes a file as UTF-8. The error names the first invalid line.
pub fn decode_utf8(bytes: Vec<u8>, file_name: &str) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        Failure::usage(format!("{file_name}:{line}: this is not UTF-8: save the file as UTF-8"))
    })
}

/// Checks that every request of a plan can be encoded as valid HTTP. The error names the request.
pub fn check_encodable(plan: &Plan) -> Result<(), Failure> {
    let texts = grpc::message_converters(plan)?;
    // Setup and cleanup requests are never gRPC calls and need no message converter (`None`).
    let around = plan.traffic.setup_teardown.requests().map(|asked| (&asked.route, None));
    let mut routes = plimsoll_engine::RouteEncodeCheck::new(plan);
    plan.traffic.routes.iter().zip(texts.iter().map(Option::as_ref)).chain(around).try_for_each(|(route, text)| {
        routes.check(route, text).map_err(|error| Failure::usage(format!("-f: the request '{}': {error}", route.label)))
    })
}

/// Checks that data with unique rows has enough rows for `needed` requests or sessions. A unique
/// row is used for at most one request or session. The check succeeds if `needed` is unknown.
pub fn check_unique_rows_suffice(plan: &Plan, needed: Option<u64>) -> Result<(), Failure> {
    let counted = match plan.traffic.choice {
        RouteChoice::Weighted | RouteChoice::RequestList => "requests",
        RouteChoice::Scenarios => "sessions",
    };
    let unique = plan.traffic.data.iter().filter(|data| data.pick == RowChoice::Unique);
    match unique.min_by_key(|data| data.row_count()).zip(needed) {
        Some((data, needed)) if data.row_count() < needed => Err(Failure::usage(format!(
            "-f: the data '{data_name}' has {rows} rows, each used once, and this load needs {needed} {counted}: add \
             rows, or send fewer requests",
            data_name = data.name,
            rows = data.row_count()
        ))),
        _ => Ok(()),
    }
}

/// Returns an error if the plan uses data with unique rows. A command that executes many loads
/// would need too many rows, because each unique row is used once.
pub fn refuse_unique_rows(plan: &Plan) -> Result<(), Failure> {
    match plan.traffic.data.iter().find(|data| data.pick == RowChoice::Unique) {
        None => Ok(()),
        Some(data) => Err(Failure::usage(format!(
            "-f: the rows of '{data_name}' are used once each, and this command applies many loads: set pick = \
            \"sequential\", or use plimsoll run",
            data_name = data.name
        ))),
    }
}

/// The folder of a traffic file, against which the names of files are resolved. A `TrafficFolder`
/// also reads the environment variables that the traffic file names.
struct TrafficFolder {
    folder: PathBuf,
    /// Whether environment variables have their real values; otherwise the values are redacted.
    uses_variable_values: bool,
    patterns: PatternCache,
}

impl TrafficFolder {
    fn new(folder: &Path, uses_variable_values: bool) -> TrafficFolder {
        TrafficFolder { folder: folder.to_owned(), uses_variable_values, patterns: PatternCache::default() }
    }
}

/// Reads files and environment variables like `TrafficFolder`, but collects the names of missing
/// files and variables in a list instead of failing.
struct MissingInputFinder {
    beside: TrafficFolder,
    lacks: Vec<String>,
}

impl MissingInputFinder {
    fn add_missing_input(&mut self, what: String) {
        if !self.lacks.contains(&what) {
            self.lacks.push(what);
        }
    }
}

impl FileContext for MissingInputFinder {
    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, String> {
        self.beside.read_file(path).or_else(|why| {
            self.add_missing_input(format!("the file '{path}' {why}"));
            Ok(Vec::new())
        })
    }

    fn read_data_rows(&mut self, path: &str) -> Result<String, String> {
        self.beside.read_data_rows(path)
    }

    fn check_regex(&mut self, text: &str) -> Result<(), String> {
        self.beside.check_regex(text)
    }

    fn environment_variable(&mut self, name: &str) -> Option<String> {
        self.beside.environment_variable(name).or_else(|| {
            self.add_missing_input(format!("the environment has no variable '{name}'"));
            Some(String::new())
        })
    }
}

impl FileContext for TrafficFolder {
    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, String> {
        files::read(&self.folder.join(path), FilePurpose::Body)
    }

    fn read_data_rows(&mut self, path: &str) -> Result<String, String> {
        let bytes = files::read(&self.folder.join(path), FilePurpose::Rows)?;
        String::from_utf8(bytes).map_err(|_| "is not UTF-8".into())
    }

    fn check_regex(&mut self, text: &str) -> Result<(), String> {
        self.patterns.compile(text).map(|_| ()).map_err(|error| error.to_string())
    }

    fn environment_variable(&mut self, name: &str) -> Option<String> {
        match self.uses_variable_values {
            true => std::env::var(name).ok(),
            // The variable's value stays hidden; only whether it is set is shown.
            false => std::env::var_os(name).map(|_| REDACTED.to_owned()),
        }
    }
}
