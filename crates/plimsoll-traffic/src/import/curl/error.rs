//! Errors of curl command lines, as sentences. Not here: their detection.

/// The reason why a curl command line cannot be parsed. Messages never repeat values, which may be
/// secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CurlError {
    /// A quotation mark, which the value names, is never closed.
    #[error("it ends within a quotation ({0}): copy all of it")]
    Quotation(char),
    /// The command line does not begin with `curl`.
    #[error("it is no command line of curl, which begins with that word: copy all of it")]
    NotCurl,
    /// The command line has no URL.
    #[error("it names no URL")]
    NoUrl,
    /// The command line has several URLs; the value is their number.
    #[error("it names {0} URLs, and one is asked: give one")]
    Urls(usize),
    /// The command line has an unknown option.
    #[error("the option {0} is not understood: leave it out")]
    Unknown(String),
    /// The last option lacks its value.
    #[error("the option {0} needs a value")]
    NoValue(String),
    /// An option has an invalid value; the second value describes valid ones.
    #[error("the value of {0} is not understood: write {1}")]
    Value(String, &'static str),
    /// The command line has a shell expansion, such as a variable.
    #[error("a shell would fill in {0}, and none reads this line: write the value in its place")]
    Shell(String),
    /// Another command follows the curl command.
    #[error("another command follows it, and one is asked: copy the first alone")]
    Commands,
    /// The URL has a character of curl's patterns for several URLs.
    #[error("its URL has {0}, by which curl asks several URLs: write one, or add -g where the sign stands for itself")]
    Glob(char),
    /// The command line has two kinds of body, `-F` and `-d`.
    #[error("it has both -F and -d, which curl does not send either: leave one out")]
    TwoBodies,
}
