//! The errors in curl command lines, as sentences. Not here: detecting errors.

/// The reason why a curl command line cannot be parsed. Messages never repeat values, which may be
/// secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CurlError {
    /// A quotation is never closed; the value is its quotation mark.
    #[error("the curl command ends inside quotation marks ({0}): copy the whole command")]
    UnclosedQuotation(char),
    /// The command line does not begin with `curl`.
    #[error("the text is not a curl command, which begins with curl: copy the whole command")]
    NotCurl,
    /// The command line has no URL.
    #[error("the curl command names no URL")]
    NoUrl,
    /// The command line has several URLs; the value is their number.
    #[error("the curl command names {0} URLs: give only one")]
    SeveralUrls(usize),
    /// The command line has an unknown option.
    #[error("the option {0} is not supported: leave this option out")]
    UnknownOption(String),
    /// The last option lacks its value.
    #[error("the option {0} needs a value")]
    MissingValue(String),
    /// An option has an invalid value. The second field says which values are valid.
    #[error("the value of {0} is not supported: {1}")]
    InvalidValue(String, &'static str),
    /// The command line has a shell expansion, such as a variable.
    #[error("a shell would replace {0}, but no shell reads this command: write the value itself")]
    ShellExpansion(String),
    /// Another command follows the curl command.
    #[error("a second command follows the curl command: copy only the first command")]
    TrailingCommand,
    /// The URL has a character that curl expands to several URLs; the value is this character.
    #[error(
        "the URL of the curl command has {0}, which curl expands to several URLs: write one URL, or add -g to use \
        the character literally"
    )]
    Glob(char),
    /// The command line has two kinds of body, `-F` and `-d`.
    #[error("the curl command has both -F and -d, which curl also refuses: leave one out")]
    TwoBodies,
}
