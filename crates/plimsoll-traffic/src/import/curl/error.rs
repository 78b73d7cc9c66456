//! Errors of a curl command line, as sentences. Not here: their detection.

/// Why a curl command line cannot be parsed. Messages never repeat values, which may be secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CurlError {
    /// A quotation mark is not closed.
    #[error("it ends within a quotation ({0}): copy all of it")]
    Quotation(char),
    /// The command is not curl.
    #[error("it is no command line of curl, which begins with that word: copy all of it")]
    NotCurl,
    /// The command has no URL.
    #[error("it names no URL")]
    NoUrl,
    /// The command has several URLs.
    #[error("it names {0} URLs, and one is asked: give one")]
    Urls(usize),
    /// An unknown option.
    #[error("the option {0} is not understood: leave it out")]
    Unknown(String),
    /// An option without its value, at the end.
    #[error("the option {0} needs a value")]
    NoValue(String),
    /// An invalid value.
    #[error("the value of {0} is not understood: write {1}")]
    Value(String, &'static str),
    /// A shell expansion.
    #[error("a shell would fill in {0}, and none reads this line: write the value in its place")]
    Shell(String),
    /// Another command follows.
    #[error("another command follows it, and one is asked: copy the first alone")]
    Commands,
    /// The URL is a glob.
    #[error("its URL has {0}, by which curl asks several URLs: write one, or add -g where the sign stands for itself")]
    Glob(char),
    /// The command has two kinds of body.
    #[error("it has both -F and -d, which curl does not send either: leave one out")]
    TwoBodies,
}
