//! The context of a traffic file: other files, the environment, and defaults for all requests.

use plimsoll_model::traffic::StatusSet;

/// Access to files and the environment for the reader of a traffic file.
pub trait FileContext {
    /// The content of a file at a path relative to the traffic file. An error completes "the file
    /// 'PATH' ...".
    fn file(&mut self, path: &str) -> Result<Vec<u8>, String>;

    /// The text of a file of rows, which may be long.
    fn rows(&mut self, path: &str) -> Result<String, String>;

    /// Checks a regular expression. The error is a sentence with the reason.
    fn pattern(&mut self, text: &str) -> Result<(), String>;

    /// The value of an environment variable.
    fn variable(&mut self, name: &str) -> Option<String>;
}

/// Defaults for requests without their own settings.
#[derive(Debug, Clone)]
pub struct RequestDefaults {
    /// Header fields for requests without a field of that name.
    pub headers: Vec<(String, String)>,
    /// The statuses that count as success.
    pub ok_status: StatusSet,
    /// The timeout of a request, ns.
    pub timeout_ns: u64,
}
