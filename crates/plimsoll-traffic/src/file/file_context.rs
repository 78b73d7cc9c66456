//! The context in which a traffic file is read: other files, the environment, and defaults for all
//! requests.

use plimsoll_model::traffic::StatusSet;

/// Gives the parser of a traffic file access to other files and to the environment.
pub trait FileContext {
    /// Reads the file at a path relative to the traffic file. A returned error is a phrase that
    /// completes "the file 'PATH' ...".
    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, String>;

    /// Reads the text of a file of data rows, which may be long. A returned error is a phrase that
    /// completes "the file 'PATH' ...".
    fn read_data_rows(&mut self, path: &str) -> Result<String, String>;

    /// Checks whether a regular expression is valid. A returned error is a sentence with the reason
    /// why the regular expression is invalid.
    fn check_regex(&mut self, text: &str) -> Result<(), String>;

    /// Returns the value of an environment variable; `None` if the variable is not set.
    fn environment_variable(&mut self, name: &str) -> Option<String>;
}

/// Default settings for requests of a traffic file that do not state their own values.
#[derive(Debug, Clone)]
pub struct RequestDefaults {
    /// The header fields added to every request that has no field of the same name.
    pub headers: Vec<(String, String)>,
    /// The response statuses that count as success.
    pub ok_status: StatusSet,
    /// The timeout of a request, ns.
    pub timeout_ns: u64,
}
