//! What a file of traffic takes from outside: other files, and what the caller says for all
//! requests.

use plimsoll_model::traffic::StatusSet;

/// What a file may ask of the world about it.
pub trait FileContext {
    /// The content of a file that it names, whose path is relative to it. An error completes "the
    /// file 'PATH' ...".
    fn file(&mut self, path: &str) -> Result<Vec<u8>, String>;

    /// The text of a file of rows, which may be long.
    fn rows(&mut self, path: &str) -> Result<String, String>;

    /// Whether a regular expression is one. The error is a sentence with the reason.
    fn pattern(&mut self, text: &str) -> Result<(), String>;

    /// A variable of the environment.
    fn variable(&mut self, name: &str) -> Option<String>;
}

/// What holds for requests that say nothing else.
#[derive(Debug, Clone)]
pub struct RequestDefaults {
    /// Headers that are sent along, unless a request has its own of that name.
    pub headers: Vec<(String, String)>,
    /// What counts as success.
    pub ok_status: StatusSet,
    /// A request that takes longer has failed, ns.
    pub timeout_ns: u64,
}
